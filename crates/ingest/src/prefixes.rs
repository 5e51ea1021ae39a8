//! Which names do documents declare for the beginnings of IRIs?

use std::collections::BTreeMap;

/// Prefixes of a load that are noted, and those of a document: as many as a database keeps.
pub const MOST_PREFIXES: usize = 1000;
/// Bytes that a name and its IRI have at most, both together, to be noted or kept.
pub const MOST_PREFIX_BYTES: usize = 1024;

/// Notes what a parser knows, of very many the first by name. A name that is noted keeps its IRI.
pub(crate) fn note<'a>(
    noted: &mut BTreeMap<String, String>,
    declared: impl Iterator<Item = (&'a str, &'a str)>,
) {
    for (name, iri) in declared {
        if name.len() + iri.len() > MOST_PREFIX_BYTES || noted.contains_key(name) {
            continue;
        }
        noted.insert(name.to_owned(), iri.to_owned());
        if noted.len() > MOST_PREFIXES {
            noted.pop_last();
        }
    }
}

/// What the documents of a load declare: each name with the number of the first source that has it.
#[derive(Default)]
pub(crate) struct Prefixes(BTreeMap<String, (usize, String)>);

impl Prefixes {
    /// Adds what a source declares. In which order sources are added makes no difference.
    pub(crate) fn add(&mut self, source: usize, declared: BTreeMap<String, String>) {
        for (name, iri) in declared {
            let entry = self.0.entry(name).or_insert_with(|| (source, iri.clone()));
            if source < entry.0 {
                *entry = (source, iri);
            }
        }
        if self.0.len() > MOST_PREFIXES {
            let mut all: Vec<_> = std::mem::take(&mut self.0).into_iter().collect();
            all.sort_by(|(one, (of_one, _)), (other, (of_other, _))| {
                (of_one, one).cmp(&(of_other, other))
            });
            all.truncate(MOST_PREFIXES);
            self.0 = all.into_iter().collect();
        }
    }

    /// Names and IRIs, by source and name.
    pub(crate) fn into_vec(self) -> Vec<(String, String)> {
        let mut all: Vec<_> = self.0.into_iter().collect();
        all.sort_by_key(|(_, (source, _))| *source);
        let pairs = all.into_iter().map(|(name, (_, iri))| (name, iri));
        pairs.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_source_decides_and_the_first_names_stay() {
        let name = |number: usize| format!("p{number:04}");
        let of = |range: std::ops::Range<usize>, iri: &str| {
            let pair = |number| (name(number), format!("http://{iri}/{number}"));
            range.map(pair).collect::<BTreeMap<_, _>>()
        };
        let sources = [
            of(5..6, "a"),
            of(0..MOST_PREFIXES, "b"),
            of(3..MOST_PREFIXES + 9, "c"),
        ];
        let mut expected = vec![(name(5), "http://a/5".to_owned())];
        expected.extend(
            of(0..MOST_PREFIXES, "b")
                .into_iter()
                .filter(|(n, _)| *n != name(5)),
        );
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let mut all = Prefixes::default();
            for source in order {
                all.add(source, sources[source].clone());
            }
            assert_eq!(all.into_vec(), expected, "{order:?}");
        }
    }

    #[test]
    fn of_very_many_in_a_document_the_first_by_name_are_noted() {
        let names: Vec<String> = (0..3 * MOST_PREFIXES)
            .map(|n| format!("p{:04}", n * 7 % (3 * MOST_PREFIXES)))
            .collect();
        let mut noted = BTreeMap::new();
        note(
            &mut noted,
            names.iter().map(|name| (name.as_str(), "http://e/")),
        );
        let long = "x".repeat(MOST_PREFIX_BYTES);
        note(
            &mut noted,
            [("a", long.as_str()), ("p0000", "http://f/")].into_iter(),
        );
        assert_eq!(noted.len(), MOST_PREFIXES);
        assert_eq!(
            noted.first_key_value(),
            Some((&"p0000".to_owned(), &"http://e/".to_owned()))
        );
        assert_eq!(
            noted.last_key_value().map(|(name, _)| name.as_str()),
            Some("p0999")
        );
    }
}
