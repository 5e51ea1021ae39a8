//! Of which kinds are terms: IRIs, blank nodes, and literals of which datatype and language; and how many of each?
//!
//! What the ids tell is counted by ids, the rest by what the dictionary keeps of its keys (`text_order`): two bits a
//! vertex and a byte a literal.

use jindou_model::{KindCount, TermId, TermKind};
use rustc_hash::FxHashMap;

use crate::Snapshot;

/// Kinds that have a row of their own beyond which nothing is counted: literals whose keys have to be read one by one.
const MOST_KINDS: usize = 1 << 14;
/// Words of a bitmap.
const WORD: u64 = u64::BITS as u64;

/// What tells a kind; literals of one kind may have several of these.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Iri,
    Blank,
    /// Held in the id, with one datatype.
    Inline(TermKind),
    /// The number of an end of keys in the base's dictionary.
    Code(u8),
    /// The end itself, of a literal that came since.
    End(Box<[u8]>),
    /// A literal whose key has to be read to tell.
    Own(TermId),
}

/// Counts of terms, or of edges by the terms at their ends, by kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct KindCounts {
    /// With one of the terms of each. Changes are counted apart from what they change, so that numbers may be below zero
    /// meanwhile.
    kinds: FxHashMap<Kind, (TermId, i64)>,
    /// No kind is told from another.
    is_of_all: bool,
}

impl KindCounts {
    /// None yet; all are as one kind where they are not told apart `by_kind`.
    pub(crate) fn new(by_kind: bool) -> Self {
        Self {
            is_of_all: !by_kind,
            ..Self::default()
        }
    }

    /// Counts a term, or edges with this end: `count` more.
    pub(crate) fn add(&mut self, snapshot: &Snapshot, id: TermId, count: i64) {
        let kind = match self.is_of_all {
            true => Kind::Iri,
            false => kind_of(snapshot, id),
        };
        self.add_kind(kind, id, count);
    }

    fn add_kind(&mut self, kind: Kind, id: TermId, count: i64) {
        let known = self.kinds.entry(kind).or_insert((id, 0));
        known.1 += count;
    }

    /// Number of kinds that were met.
    pub(crate) fn kinds(&self) -> usize {
        self.kinds.len()
    }

    /// False of too many kinds.
    pub(crate) fn are_few(&self) -> bool {
        self.kinds.len() <= MOST_KINDS
    }

    /// Kinds with one at least.
    pub(crate) fn list(&self) -> Vec<KindCount> {
        let counts = self.kinds.values().filter(|(_, count)| *count != 0);
        counts
            .map(|(term, count)| KindCount {
                term: *term,
                count: u64::try_from(*count).expect("there are no fewer than none"),
            })
            .collect()
    }

    /// All of them together.
    pub(crate) fn total(&self) -> u64 {
        let total: i64 = self.kinds.values().map(|(_, count)| count).sum();
        u64::try_from(total).expect("there are no fewer than none")
    }
}

/// Of which kind is a term?
fn kind_of(snapshot: &Snapshot, id: TermId) -> Kind {
    let is_literal = match id.kind() {
        TermKind::Vertex => false,
        TermKind::Literal => true,
        inline => return Kind::Inline(inline),
    };
    match (snapshot.appended_key(id), is_literal) {
        (Some(key), false) => match crate::kind_column::vertex_kind(key) {
            jindou_model::TextKind::Blank => Kind::Blank,
            _ => Kind::Iri,
        },
        (None, false) if snapshot.base().is_blank(id.number()) => Kind::Blank,
        (None, false) => Kind::Iri,
        (Some(key), true) => {
            let border = key.iter().position(|byte| *byte == 0);
            match border.map(|border| &key[border..]) {
                // With a second zero byte, the first one is the value's.
                Some([0, rest @ ..]) if !rest.contains(&0) => Kind::End(rest.into()),
                _ => Kind::Own(id),
            }
        }
        (None, true) => match snapshot.base().literal_end_number(id.number()) {
            Some(code) => Kind::Code(code),
            None => Kind::Own(id),
        },
    }
}

/// Counts many terms of a base: nothing is hashed for most.
pub(crate) struct BaseTally<'a> {
    snapshot: &'a Snapshot,
    /// IRIs and blank nodes.
    vertices: [(TermId, i64); 2],
    /// By the number of the end of a literal's key.
    codes: Box<[(TermId, i64); 1 << u8::BITS]>,
    others: KindCounts,
}

impl<'a> BaseTally<'a> {
    pub(crate) fn new(snapshot: &'a Snapshot, by_kind: bool) -> Self {
        let none = (TermId::NONE, 0);
        Self {
            snapshot,
            vertices: [none; 2],
            codes: Box::new([none; 1 << u8::BITS]),
            others: KindCounts::new(by_kind),
        }
    }

    /// Counts terms of the base from this one on, `count(n)` for the n-th of them, and `sum` for all together.
    pub(crate) fn add(
        &mut self,
        first: TermId,
        len: usize,
        sum: i64,
        count: impl Fn(usize) -> i64,
    ) {
        let base = self.snapshot.base();
        if self.others.is_of_all {
            return self.others.add_kind(Kind::Iri, first, sum);
        }
        match first.kind() {
            TermKind::Vertex => {
                for place in 0..len {
                    let id = TermId::from_raw(first.raw() + place as u64);
                    let known = &mut self.vertices[usize::from(base.is_blank(id.number()))];
                    *known = (id, known.1 + count(place));
                }
            }
            TermKind::Literal => {
                for place in 0..len {
                    let id = TermId::from_raw(first.raw() + place as u64);
                    match base.literal_end_number(id.number()) {
                        Some(code) => {
                            let known = &mut self.codes[usize::from(code)];
                            *known = (id, known.1 + count(place));
                        }
                        None => self.others.add_kind(Kind::Own(id), id, count(place)),
                    }
                }
            }
            kind => self.others.add_kind(Kind::Inline(kind), first, sum),
        }
    }

    /// False of too many kinds.
    pub(crate) fn are_few(&self) -> bool {
        self.others.are_few()
    }

    pub(crate) fn counts(self) -> KindCounts {
        let mut counts = self.others;
        let known = |(id, _): &(TermId, i64)| !id.is_none();
        for (kind, found) in [Kind::Iri, Kind::Blank].into_iter().zip(self.vertices) {
            if known(&found) {
                counts.add_kind(kind, found.0, found.1);
            }
        }
        for (code, found) in self.codes.into_iter().enumerate() {
            if known(&found) {
                counts.add_kind(Kind::Code(code as u8), found.0, found.1);
            }
        }
        counts
    }
}

/// Terms of several segments, each once.
#[derive(Default)]
pub(crate) struct TermSet {
    /// By number.
    vertices: Vec<u64>,
    literals: Vec<u64>,
    /// Those that are held in their ids, perhaps more than once.
    inline: Vec<u64>,
}

impl TermSet {
    /// Puts a term in, and those after it.
    pub(crate) fn add(&mut self, first: TermId, len: usize) {
        let bits = match first.kind() {
            TermKind::Vertex => &mut self.vertices,
            TermKind::Literal => &mut self.literals,
            _ => return self.inline.extend(first.raw()..first.raw() + len as u64),
        };
        set_bits(bits, first.number(), len as u64);
    }

    /// Bytes that it holds, also while it is put in order.
    pub(crate) fn bytes(&self) -> usize {
        let words =
            self.vertices.capacity() + self.literals.capacity() + 2 * self.inline.capacity();
        words * size_of::<u64>()
    }

    /// Calls `visit` with each term, as many at once as follow one another.
    pub(crate) fn for_each_stretch(mut self, visit: &mut dyn FnMut(TermId, usize)) {
        for_each_run(&self.vertices, &mut |first, len| {
            visit(TermId::vertex(first), len)
        });
        for_each_run(&self.literals, &mut |first, len| {
            visit(TermId::literal(first), len);
        });
        // Sorted runs one after the other, which a stable sort merges.
        self.inline.sort();
        self.inline.dedup();
        for run in self.inline.chunk_by(|a, b| *a + 1 == *b) {
            let kinds =
                run.chunk_by(|a, b| TermId::from_raw(*a).kind() == TermId::from_raw(*b).kind());
            kinds.for_each(|run| visit(TermId::from_raw(run[0]), run.len()));
        }
    }
}

fn set_bits(words: &mut Vec<u64>, first: u64, len: u64) {
    let end = first + len;
    let needed = end.div_ceil(WORD) as usize;
    if words.len() < needed {
        words.resize(needed, 0);
    }
    let mut at = first;
    while at < end {
        let here = (WORD - at % WORD).min(end - at);
        words[(at / WORD) as usize] |= u64::MAX >> (WORD - here) << (at % WORD);
        at += here;
    }
}

fn for_each_run(words: &[u64], visit: &mut dyn FnMut(u64, usize)) {
    for (index, word) in words.iter().enumerate() {
        let mut bits = *word;
        while bits != 0 {
            let at = bits.trailing_zeros();
            let len = (bits >> at).trailing_ones();
            visit(index as u64 * WORD + u64::from(at), len as usize);
            bits = match at + len {
                64.. => 0,
                behind => bits >> behind << behind,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_set_has_what_was_put_in_once(
            runs in proptest::collection::vec((0..3_usize, 0..400_u64, 1..200_usize), 0..20)
        ) {
            let (mut set, mut model) = (TermSet::default(), BTreeSet::new());
            for (kind, first, len) in runs {
                let kind = [TermKind::Vertex, TermKind::Literal, TermKind::Integer][kind];
                set.add(TermId::new(kind, first), len);
                model.extend((first..first + len as u64).map(|n| TermId::new(kind, n)));
            }
            let mut found = Vec::new();
            set.for_each_stretch(&mut |first, len| {
                found.extend((0..len as u64).map(|n| TermId::from_raw(first.raw() + n)));
            });
            prop_assert_eq!(found, model.into_iter().collect::<Vec<_>>());
        }
    }
}
