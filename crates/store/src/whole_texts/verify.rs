//! Are the texts of which a part has the strings in the order that it knows?

use std::ops::Range;

use jindou_model::{TermId, TextKind};

use super::WholeTexts;
use crate::base::Base;
use crate::kind_column::KeyKinds;
use crate::tables::{TermTables, TermsDecoder};

/// Where a text is to lie: in which run, and where there.
type Place = (u64, u64);

impl WholeTexts {
    /// Is it what the strings say that a part has? Reads them all.
    pub(crate) fn check(&self, base: &Base) -> Result<(), String> {
        let mut vertices = Texts::new(&base.vertices, self.vertices.kinds());
        for number in own_numbers(&base.vertices, 0..self.vertices.len()) {
            let run = base.runs.run_of(TermId::vertex(number));
            let run = run.ok_or_else(|| format!("vertex {number} is in no run"))?;
            vertices.check(number, self.vertices.get(number), (run as u64, number))?;
        }
        let later = self.later_by_position(base);
        let mut later = later.into_iter().peekable();
        let mut literals = Texts::new(&base.literals, self.literals.kinds());
        for number in own_numbers(&base.literals, 0..self.literals.len()) {
            let position = self.later.position(number);
            while let Some(before) = later.next_if(|later| later.0 < position) {
                literals.check_later(before)?;
            }
            literals.check(number, self.literals.get(number), (0, position))?;
        }
        later.try_for_each(|later| literals.check_later(later))?;
        self.check_kinds_of_later(base)
    }

    /// Position, number and kind of those literals that came after the bulk load and are in order.
    fn later_by_position(&self, base: &Base) -> Vec<(u64, u64, TextKind)> {
        let later = own_numbers(&base.literals, self.later.first()..self.later.until());
        let placed = later.filter_map(|number| {
            let place = self.later.of_later(number)?;
            Some((place.at, number, place.kind?))
        });
        let mut placed: Vec<_> = placed.collect();
        placed.sort_unstable_by_key(|(position, number, _)| (*position, *number));
        placed
    }

    /// Those that are not in order are to be of no such kind.
    fn check_kinds_of_later(&self, base: &Base) -> Result<(), String> {
        let mut texts = Texts::new(&base.literals, self.literals.kinds());
        for number in own_numbers(&base.literals, self.later.first()..self.later.until()) {
            let place = self.later.of_later(number);
            if place.is_none_or(|place| place.kind.is_none()) {
                texts.check_kind(number, None)?;
            }
        }
        Ok(())
    }
}

/// The numbers within a range whose strings are in some tables.
fn own_numbers(tables: &TermTables, range: Range<u64>) -> impl Iterator<Item = u64> + '_ {
    let parts = tables.parts().iter();
    let numbers = parts.flat_map(|part| part.table.numbers());
    numbers.filter(move |number| range.contains(number))
}

/// Texts of one sort, of which the next one is compared with the one before.
struct Texts<'a> {
    kinds: KeyKinds,
    decoder: TermsDecoder<'a>,
    last: Option<Place>,
    key: Vec<u8>,
    next: Vec<u8>,
}

impl<'a> Texts<'a> {
    fn new(tables: &'a TermTables, kinds: KeyKinds) -> Self {
        Self {
            kinds,
            decoder: tables.decoder(),
            last: None,
            key: Vec::new(),
            next: Vec::new(),
        }
    }

    /// Reads the string of a number, which is to be of this kind.
    fn check_kind(&mut self, number: u64, kind: Option<TextKind>) -> Result<(), String> {
        self.next.clear();
        let read = self.decoder.push(number, &mut self.next);
        read.map_err(|error| error.to_string())?;
        match self.kinds.of_key(&self.next) == kind {
            true => Ok(()),
            false => Err(format!("string {number} is not of the kind that it says")),
        }
    }

    /// As [`Self::check_kind`], of the next string, whose place is to tell the order of it and the one before.
    fn check(&mut self, number: u64, kind: Option<TextKind>, place: Place) -> Result<(), String> {
        self.check_kind(number, kind)?;
        let last = self.last.replace(place).filter(|last| last.0 == place.0);
        let is_in_order = last.is_none_or(|last| last.cmp(&place) == self.key.cmp(&self.next));
        std::mem::swap(&mut self.key, &mut self.next);
        match is_in_order {
            true => Ok(()),
            false => Err(format!(
                "string {number} is not where it says in the order of texts"
            )),
        }
    }

    fn check_later(
        &mut self,
        (position, number, kind): (u64, u64, TextKind),
    ) -> Result<(), String> {
        self.check(number, Some(kind), (0, position))
    }
}

#[cfg(test)]
mod tests {
    use jindou_model::{IdQuad, SnapshotNumber, key};
    use oxrdf::{GraphName, Literal, NamedNode, Quad};

    use super::*;
    use crate::bulk::{BulkSink, build};
    use crate::delta::{Changes, Rebase, Snapshot};
    use crate::kind_column::{KindBuilder, KindColumn};
    use crate::merge::Merged;

    fn iri(text: &str) -> NamedNode {
        NamedNode::new_unchecked(format!("http://e/{text}"))
    }

    /// A store with literals of several kinds, and some that came later.
    fn store(later: [&str; 3]) -> Snapshot {
        let mut sink = BulkSink::new();
        for literal in [
            Literal::from("a"),
            Literal::from("c"),
            Literal::new_language_tagged_literal_unchecked("b", "en"),
            Literal::new_typed_literal("b", iri("type")),
        ] {
            let quad = Quad::new(iri("s"), iri("p"), literal, GraphName::DefaultGraph);
            sink.quad(quad.as_ref()).unwrap();
        }
        let base = build(vec![sink], 1).unwrap();
        let mut now = Snapshot::of_base(base, 1, SnapshotNumber(1));
        let mut quad = |text: &str| {
            let mut bytes = Vec::new();
            key::push_literal(&mut bytes, Literal::from(text).as_ref());
            IdQuad {
                subject: now.intern_node(b"http://e/s").unwrap(),
                predicate: now.intern_predicate("http://e/p").unwrap(),
                object: now.intern_literal(&bytes).unwrap(),
                graph: TermId::NONE,
            }
        };
        let changes = Changes {
            add: later.iter().map(|text| quad(text)).collect(),
            ..Changes::default()
        };
        now.apply(&changes);
        now.keep_terms();
        now.set_number(SnapshotNumber(2));
        now.close_extents();
        let changed = now.changed_predicates().into_iter();
        let changed = changed.map(|one| one.predicate).collect();
        Rebase::new(Merged::new(now.clone(), changed).unwrap(), &now).apply(&now)
    }

    fn all_of(count: u64, kinds: KeyKinds, key: &[u8]) -> KindColumn {
        let mut builder = KindBuilder::new(kinds);
        (0..count).for_each(|_| builder.push_key(key));
        builder.finish()
    }

    #[test]
    fn an_order_that_strings_contradict_is_noticed() {
        let snapshot = store(["aa", "bb", "d"]);
        let texts = WholeTexts::of(&snapshot).unwrap();
        let check = |texts: &WholeTexts| texts.check(snapshot.base());
        assert_eq!(check(&texts), Ok(()));
        let blank = all_of(texts.vertices.len(), KeyKinds::VERTICES, b"_:b");
        let strings = all_of(texts.literals.len(), KeyKinds::LITERALS, b"a\0");
        for altered in [
            WholeTexts {
                vertices: blank,
                ..texts.clone()
            },
            WholeTexts {
                literals: strings,
                ..texts.clone()
            },
        ] {
            let refused = check(&altered).unwrap_err();
            assert!(refused.contains("not of the kind"), "{refused}");
        }
        for other in [store(["bb", "aa", "d"]), store(["aa", "d", "bb"])] {
            let other = WholeTexts::of(&other).unwrap();
            let refused = check(&other).unwrap_err();
            assert!(refused.contains("in the order of texts"), "{refused}");
        }
    }
}
