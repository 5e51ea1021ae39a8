//! In which named graph is a vertex at home?

use std::ops::Range;

use jindou_model::{SortedSet, TermId, TermKind};

use crate::graph_table::GraphTable;
use crate::runs::NO_HOME;

/// For each of `count` vertices, by place, the graph that more than half of the quads about it are
/// in, or [`NO_HOME`]. `quads` gives (place of the vertex, graph) of each quad, and is asked twice.
///
/// Costs 16 bytes a vertex while it runs.
pub(crate) fn majorities<I: Iterator<Item = (usize, u32)>>(
    count: usize,
    quads: impl Fn() -> I,
) -> Vec<u32> {
    // A graph that has more than half of a vertex' quads is left over when each quad cancels one of
    // another graph (Boyer and Moore); whether it has more than half is counted after that.
    let mut candidates = vec![(NO_HOME, 0_u32); count];
    for (vertex, graph) in quads() {
        let (candidate, lead) = &mut candidates[vertex];
        match (*candidate == graph, *lead) {
            (true, _) => *lead += 1,
            (false, 0) => (*candidate, *lead) = (graph, 1),
            (false, _) => *lead -= 1,
        }
    }
    let mut counts = vec![(0_u32, 0_u32); count];
    for (vertex, graph) in quads() {
        let (all, of_candidate) = &mut counts[vertex];
        *all += 1;
        *of_candidate += u32::from(candidates[vertex].0 == graph);
    }
    let home = |((candidate, _), (all, of_candidate)): ((u32, u32), (u32, u32))| {
        let is_home = all > 0 && u64::from(of_candidate) * 2 > u64::from(all);
        if is_home { candidate } else { NO_HOME }
    };
    candidates.into_iter().zip(counts).map(home).collect()
}

/// The home of each of the `new` vertices, given by number: `added` are quads by graph, predicate,
/// subject and object, among them all of which a new vertex is the subject, and `graphs` knows
/// their graphs.
///
/// Costs two walks over `added`, and 16 bytes a new vertex while it runs.
pub(crate) fn homes_of_new(
    added: &SortedSet<(u64, u32, u64, u64)>,
    new: Range<u64>,
    graphs: &GraphTable,
) -> Vec<u32> {
    let count = (new.end - new.start) as usize;
    majorities(count, || {
        let mut last = (TermId::NONE, None);
        added.iter().filter_map(move |(graph, _, subject, _)| {
            let subject = TermId::from_raw(subject);
            if subject.kind() != TermKind::Vertex || subject.number() < new.start {
                return None;
            }
            // By graph, so each is looked up once.
            let graph = TermId::from_raw(graph);
            if last.0 != graph {
                last = (graph, graphs.number(graph));
            }
            let is_new = subject.number() < new.end;
            let place = (subject.number() - new.start) as usize;
            last.1.filter(|_| is_new).map(|graph| (place, graph))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clusters::Lists;
    use jindou_model::Change;

    #[test]
    fn a_new_vertex_is_at_home_where_most_of_it_is_said() {
        let [first, second] = [1, 2].map(|number| TermId::vertex(number).raw());
        let graphs = GraphTable::new(vec![second, first], Lists::default());
        let vertex = |number: u64| TermId::vertex(number).raw();
        // 10: two of three in `first`. 11: one in each. 12: nothing. 13: all in `second`.
        let mut quads = vec![
            (first, 1, vertex(10), 7),
            (first, 2, vertex(10), 7),
            (second, 1, vertex(10), 7),
            (first, 1, vertex(11), 7),
            (second, 1, vertex(11), 7),
            (second, 4, vertex(13), 7),
            (second, 4, vertex(9), 7),
            (second, 4, vertex(14), 7),
        ];
        quads.sort_unstable();
        let mut added = SortedSet::new();
        let changes: Vec<_> = quads.into_iter().map(|quad| (quad, Change::Add)).collect();
        added.apply(&changes);
        let homes = homes_of_new(&added, 10..14, &graphs);
        assert_eq!(homes, [1, NO_HOME, NO_HOME, 0]);
    }
}
