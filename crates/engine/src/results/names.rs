//! Which prefixed name does an IRI have?

use jindou_syntax::push_local_name;

/// Prefixes by which IRIs are abbreviated.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// In the order in which they are declared.
    declared: Vec<(String, String)>,
    /// Places among these, by IRI.
    by_iri: Vec<usize>,
}

impl Names {
    /// Of names and IRIs, those before going first: a name that comes again is passed over, and so is
    /// another name of the same IRI.
    #[must_use]
    pub fn new(prefixes: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut declared: Vec<(String, String)> = Vec::new();
        let (mut names, mut iris) = (
            std::collections::HashSet::new(),
            std::collections::HashSet::new(),
        );
        for (name, iri) in prefixes {
            if !names.contains(&name) && !iri.is_empty() && iris.insert(iri.clone()) {
                names.insert(name.clone());
                declared.push((name, iri));
            }
        }
        let mut by_iri: Vec<usize> = (0..declared.len()).collect();
        by_iri.sort_by(|one, other| declared[*one].1.cmp(&declared[*other].1));
        Self { declared, by_iri }
    }

    /// Names and IRIs, in their order.
    pub(super) fn declared(&self) -> &[(String, String)] {
        &self.declared
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// The prefix with the longest IRI that this one begins with: its number, and what is left.
    pub(super) fn longest<'i>(&self, iri: &'i str) -> Option<(usize, &'i str)> {
        let iri_of = |place: usize| self.declared[self.by_iri[place]].1.as_str();
        let mut bound = iri;
        loop {
            // What an IRI begins with comes before it in the order, the longest last.
            let end = self
                .by_iri
                .partition_point(|number| self.declared[*number].1.as_str() <= bound);
            let last = iri_of(end.checked_sub(1)?);
            let same = common(last, bound);
            if same == last.len() {
                return Some((self.by_iri[end - 1], &iri[same..]));
            }
            bound = &bound[..same];
        }
    }

    /// Appends `name:local`, as Turtle and SPARQL write it, and gives the number of the prefix; `None`,
    /// and nothing appended, where the IRI has no such name.
    pub(super) fn push(&self, out: &mut Vec<u8>, iri: &str) -> Option<usize> {
        let (number, local) = self.longest(iri)?;
        let begin = out.len();
        out.extend_from_slice(self.declared[number].0.as_bytes());
        out.push(b':');
        if push_local_name(out, local) {
            return Some(number);
        }
        out.truncate(begin);
        None
    }
}

/// How many bytes two texts have in common from the first on, up to a border of characters.
fn common(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b);
    let mut same = same.count();
    while !one.is_char_boundary(same) || !other.is_char_boundary(same) {
        same -= 1;
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(pairs: &[(&str, &str)]) -> Names {
        Names::new(
            pairs
                .iter()
                .map(|(name, iri)| ((*name).to_owned(), (*iri).to_owned())),
        )
    }

    #[test]
    fn the_longest_prefix_names_an_iri_and_the_first_of_a_name_counts() {
        let names = names(&[
            ("obo", "http://o/"),
            ("GO", "http://o/GO_"),
            ("x", "http://x/"),
            ("GO", "http://other/"),
            ("y", "http://x/"),
            ("é", "http://é/"),
        ]);
        assert_eq!(names.declared().len(), 4);
        for (iri, expected) in [
            ("http://o/GO_1", Some("GO:1")),
            ("http://o/GO_", Some("GO:")),
            ("http://o/GO", Some("obo:GO")),
            ("http://x/a.", Some(r"x:a\.")),
            ("http://x/a/b", None),
            ("http://other/", None),
            ("http://è/", None),
            ("http://é/é", Some("é:é")),
            ("http:", None),
            ("", None),
        ] {
            let mut out = b"|".to_vec();
            let found = names.push(&mut out, iri);
            assert_eq!(found.is_some(), expected.is_some(), "{iri}");
            let written = std::str::from_utf8(&out[1..]).expect("it is text");
            assert_eq!(written, expected.unwrap_or_default(), "{iri}");
        }
    }

    proptest! {
        #[test]
        fn the_longest_is_found_among_all(
            iris in prop::collection::vec("[abé]{1,4}", 0..12),
            iri in "[abéc]{0,6}",
        ) {
            let pairs = iris.iter().enumerate().map(|(n, iri)| (format!("p{n}"), iri.clone()));
            let names = Names::new(pairs);
            let all = iris.iter().filter(|prefix| iri.starts_with(prefix.as_str()));
            let longest = all.map(String::len).max();
            let found = names.longest(&iri).map(|(number, rest)| {
                let prefix = &names.declared()[number].1;
                assert_eq!(format!("{prefix}{rest}"), iri.clone());
                prefix.len()
            });
            prop_assert_eq!(found, longest);
        }
    }
}
