//! How are lists followed where each row says in which graph?

use jindou_model::{Cursor, IdRanges, Lists, Neighbours, TermId};

use super::access::{READ_LISTS, READ_OWN, ends, mark, retain};
use super::snapshot::Snapshot;

/// Rows of one graph that are asked for as such, where each row says its graph; of fewer, those of
/// several graphs are asked for together.
const LONG_RUN: usize = 16;
/// Rows of several graphs whose lists are looked at together, and the length of a list that is better
/// read in its own graph.
const ROWS_LOOKED_AT: usize = 256;
const LONG_LIST: usize = 1024;
/// Such stretches of rows that are handled in one call: the caller has a time limit.
const STRETCHES_AT_ONCE: usize = 64;

/// Where the run of equal ids that begins at `first` ends.
fn end_of_run(ids: &[TermId], first: usize) -> usize {
    let same = ids[first..].iter().take_while(|id| **id == ids[first]);
    first + same.count()
}

impl Snapshot {
    /// Follows the lists of each row in the row's graph: those of a long run of one graph as such, and
    /// those of others in the merge of all, of which what is in other graphs is left out.
    #[expect(clippy::too_many_arguments, reason = "those of `expand`")]
    pub(super) fn expand_each(
        &self,
        graphs: &[TermId],
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        for _ in 0..STRETCHES_AT_ONCE {
            if cursor.key >= graphs.len() || out.len() >= budget {
                return;
            }
            let first = cursor.key;
            let graph = graphs[first];
            let mut end = end_of_run(graphs, first);
            if graph.is_none() {
                *cursor = Cursor {
                    key: end,
                    offset: 0,
                };
                continue;
            }
            let mut is_one = end - first >= LONG_RUN || cursor.offset & READ_OWN != 0;
            if !is_one {
                end = self.end_of_short_lists(graphs, lists, first);
                is_one = end == first;
                end = end.max(first + 1);
            }
            let of_rows = lists.iter().map(|list| Lists {
                keys: &list.keys[first..end],
                ..*list
            });
            let of_rows: Vec<Lists<'_>> = of_rows.collect();
            let mut at = Cursor {
                key: 0,
                offset: cursor.offset,
            };
            let begin = out.len();
            if is_one {
                let can_share = false;
                let one = (&[graph][..], can_share);
                self.expand_some(one, &of_rows, &mut at, allowed, budget, rows, out);
            } else {
                at.offset &= !READ_LISTS;
                (self.named_layer()).follow(&of_rows, &mut at, allowed, budget, rows, out);
                mark(&mut at, READ_LISTS, lists.len() > 1);
                let graph = |row: u32| graphs[first + row as usize];
                for list in &of_rows {
                    let mut graphs_of = self.graphs_of_edges(list.predicate);
                    retain(begin, rows, out, |row, id| {
                        let (s, o) = ends(list.direction, list.keys[row as usize], id);
                        graphs_of.is_in_any(s, o, &[graph(row)])
                    });
                }
            }
            let found = rows[begin..].iter_mut();
            found.for_each(|row| *row += first as u32);
            *cursor = Cursor {
                key: first + at.key,
                offset: at.offset,
            };
        }
    }

    /// The row behind some from `first` on, in short runs of a graph, of which each has a list that is
    /// not long.
    fn end_of_short_lists(&self, graphs: &[TermId], lists: &[Lists<'_>], first: usize) -> usize {
        let most = graphs.len().min(first + ROWS_LOOKED_AT);
        let mut end = first;
        while end < most {
            let run = end_of_run(graphs, end);
            if run - end >= LONG_RUN || graphs[end].is_none() {
                break;
            }
            end = run.min(most);
        }
        let layer = self.named_layer();
        let mut is_short = vec![false; end - first];
        let mut located: Vec<Neighbours<'_>> = Vec::with_capacity(end - first);
        for list in lists {
            located.clear();
            let keys = &list.keys[first..end];
            layer.locate(list.predicate, list.direction, keys, &mut located);
            let lengths = located.iter().map(|list| list.len() < LONG_LIST);
            is_short.iter_mut().zip(lengths).for_each(|(a, b)| *a |= b);
        }
        first + is_short.iter().take_while(|is| **is).count()
    }
}
