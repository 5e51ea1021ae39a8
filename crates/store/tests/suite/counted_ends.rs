//! Counts of the ends of edges beside those of a set of quads.

use std::collections::{BTreeMap, BTreeSet};

use jindou_model::{
    Counted, Direction, EndsAsked, GraphRef, KindCount, PredicateId, TermId, TermKind,
};
use jindou_store::Snapshot;

type Row = (TermId, PredicateId, TermId, TermId);

/// What tells the kind of a term: the kind of its id, and of vertices and literals what their keys say.
fn kind(base: &Snapshot, id: TermId) -> (u8, Vec<u8>) {
    let mut key = Vec::new();
    let told = match id.kind() {
        TermKind::Vertex => {
            base.push_key(id, &mut key);
            vec![u8::from(key.starts_with(b"_:"))]
        }
        TermKind::Literal => {
            base.push_key(id, &mut key);
            let border = key.iter().position(|byte| *byte == 0).unwrap();
            key[border..].to_vec()
        }
        _ => Vec::new(),
    };
    (id.kind() as u8, told)
}

fn by_kind(base: &Snapshot, counts: &[KindCount]) -> BTreeMap<(u8, Vec<u8>), u64> {
    let mut sums = BTreeMap::new();
    for KindCount { term, count } in counts {
        assert!(*count > 0);
        *sums.entry(kind(base, *term)).or_default() += count;
    }
    sums
}

/// Asks for all counts of a graph that has these triples.
pub(crate) fn compare_ends(base: &Snapshot, graph: GraphRef<'_>, rows: &BTreeSet<Row>) {
    let each = (0..base.predicate_count()).map(|number| Some(PredicateId(number as u32)));
    for predicate in each.chain([None]) {
        for direction in [Direction::Out, Direction::In] {
            let of_predicate = rows
                .iter()
                .filter(|row| predicate.is_none_or(|p| p == row.1));
            let ends: Vec<TermId> = of_predicate
                .map(|row| match direction {
                    Direction::Out => row.0,
                    Direction::In => row.2,
                })
                .collect();
            let terms: BTreeSet<TermId> = ends.iter().copied().collect();
            let all: [(Counted, Vec<TermId>); 2] = [
                (Counted::Edges, ends),
                (Counted::Terms, terms.into_iter().collect()),
            ];
            for (counted, ends) in all {
                let asked = |by_kind| EndsAsked {
                    graph,
                    predicate,
                    direction,
                    counted,
                    by_kind,
                };
                let note = format!("{:?}", asked(true));
                let answers = [true, false].map(|by_kind| {
                    let count = || base.count_ends(&asked(by_kind), &mut |_| true);
                    let first = count();
                    assert_eq!(first, count(), "{note}");
                    first
                });
                let is_plain = matches!(
                    graph,
                    GraphRef::Default | GraphRef::Named | GraphRef::One(_)
                );
                let must_answer =
                    is_plain || (graph == GraphRef::Union && counted == Counted::Terms);
                assert!(
                    !must_answer || answers.iter().all(Option::is_some),
                    "{note}"
                );
                let mut expected = BTreeMap::new();
                for end in &ends {
                    *expected.entry(kind(base, *end)).or_default() += 1;
                }
                let [kinds, total] = answers;
                if let Some(kinds) = kinds {
                    assert_eq!(by_kind(base, &kinds), expected, "{note}");
                }
                if let Some(total) = total {
                    let total: Vec<u64> = total.iter().map(|all| all.count).collect();
                    let all = ends.len() as u64;
                    assert_eq!(total, Vec::from_iter((all > 0).then_some(all)), "{note}");
                }
            }
        }
    }
}
