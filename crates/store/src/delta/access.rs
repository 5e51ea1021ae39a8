//! One access to graphs: the calls by which executors ask, whichever graph they ask.
//!
//! The default graph and the merge of all named graphs are layers, and asked directly. What one
//! named graph has, or the merge of some, is what its layer has and [`EdgeGraphsAt`] lets pass; the
//! union of both layers is read from one and then the other.
//!
//! [`EdgeGraphsAt`]: super::EdgeGraphsAt

use std::ops::ControlFlow;

use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Neighbours, Precision, PredicateId,
    SortedSet, TermId,
};

use super::named::{GraphQuad, of_graph_and_predicate};
use super::snapshot::Snapshot;
use super::view::LayerView;
use crate::named::OfGraph;

/// Keys looked up together.
const KEYS_AT_ONCE: usize = 1024;
/// Neighbours that are counted together.
const COUNTED_AT_ONCE: usize = 4096;
/// Keys whose lists are looked at to learn whether they are longer than all that a graph has.
const KEYS_LOOKED_AT: usize = 16;
/// Edges of a predicate beyond which a graph is not read as a whole for the sake of some keys.
const MOST_OWN_EDGES: u64 = 1 << 16;
/// Lists that are together no longer than this are not worth a look at what the graph has.
const FEW_OTHERS: usize = 256;

/// Marks of a place within a list: it is one of what the graphs have of the key, or one of what the
/// layer has. Which of these is read depends on the keys behind, and these may be others next time. The
/// places of a list that is shared out have no marks: there the key alone decides.
pub(super) const READ_OWN: usize = 1 << (usize::BITS - 1);
pub(super) const READ_LISTS: usize = 1 << (usize::BITS - 2);

/// Marks a place within a list, unless the list is shared out.
pub(super) fn mark(cursor: &mut Cursor, read: usize, is_shared: bool) {
    if cursor.offset > 0 && !is_shared {
        cursor.offset |= read;
    }
}

/// Subject and object of an edge from a key to another end.
#[inline]
pub(super) fn ends(direction: Direction, key: TermId, other: TermId) -> (TermId, TermId) {
    match direction {
        Direction::Out => (key, other),
        Direction::In => (other, key),
    }
}

/// Keeps of what was appended behind `begin` the rows and ids for which `is_kept`.
pub(super) fn retain(
    begin: usize,
    rows: &mut Vec<u32>,
    out: &mut Vec<TermId>,
    mut is_kept: impl FnMut(u32, TermId) -> bool,
) {
    // Mostly all are.
    let dropped = (begin..out.len()).find(|index| !is_kept(rows[*index], out[*index]));
    let Some(mut kept) = dropped else {
        return;
    };
    for index in kept + 1..out.len() {
        let (row, id) = (rows[index], out[index]);
        (rows[kept], out[kept]) = (row, id);
        kept += usize::from(is_kept(row, id));
    }
    rows.truncate(kept);
    out.truncate(kept);
}

impl Snapshot {
    /// Follows lists from `cursor` on: for each row, appends its number to `rows` and what all of
    /// its lists hold (and `allowed`, where that is given) to `out`, until `out` has about `budget`
    /// entries or the rows are done (`cursor.key` is the number of rows). It may append nothing and
    /// not be done. Of one list of one key it goes through as many places as there is room for at
    /// most.
    ///
    /// Several lists are intersected: the shortest is walked, the others are searched.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call for a batch; each is used every time"
    )]
    pub fn expand(
        &self,
        graph: GraphRef<'_>,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        match graph {
            GraphRef::Default => {
                (self.default_graph()).follow(lists, cursor, allowed, budget, rows, out);
            }
            GraphRef::Named => {
                (self.named_layer()).follow(lists, cursor, allowed, budget, rows, out);
            }
            GraphRef::One(graph) => {
                let can_share = true;
                let graphs = (&[graph][..], can_share);
                self.expand_some(graphs, lists, cursor, allowed, budget, rows, out);
            }
            GraphRef::Some(graphs) => {
                let can_share = true;
                let graphs = (graphs, can_share);
                self.expand_some(graphs, lists, cursor, allowed, budget, rows, out);
            }
            GraphRef::Union => self.expand_union(lists, cursor, allowed, budget, rows, out),
            GraphRef::Each(graphs) => {
                self.expand_each(graphs, lists, cursor, allowed, budget, rows, out);
            }
        }
    }

    /// `can_share`: a caller may go through pieces of the list of one key.
    #[expect(clippy::too_many_arguments, reason = "those of `expand`")]
    pub(super) fn expand_some(
        &self,
        (graphs, can_share): (&[TermId], bool),
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        let mut read_last = 0;
        if let [list] = lists {
            read_last = cursor.offset & (READ_OWN | READ_LISTS);
            cursor.offset &= !read_last;
            let own = match read_last {
                0 => self.own_edges(graphs, list, cursor.key),
                READ_OWN => Some(self.edges_of_graphs(graphs, list)),
                _ => None,
            };
            let is_shared = can_share && list.keys.len() == 1 && read_last == 0;
            if let Some(own) = own {
                own.expand(list.keys, cursor, allowed, budget, rows, out);
                mark(cursor, READ_OWN, is_shared);
                return;
            }
            read_last = if is_shared { 0 } else { READ_LISTS };
        }
        let begin = out.len();
        (self.named_layer()).follow(lists, cursor, allowed, budget, rows, out);
        mark(cursor, read_last, read_last == 0);
        for list in lists
            .iter()
            .filter(|list| !self.has_all(graphs, list.predicate))
        {
            let mut graphs_of = self.graphs_of_edges(list.predicate);
            if let ([only], Some(first), Some(last)) = (graphs, rows.get(begin), rows.last()) {
                let subjects = match list.direction {
                    Direction::Out => &list.keys[*first as usize..=*last as usize],
                    Direction::In => &out[begin..],
                };
                if graphs_of.are_all_in(subjects, *only) {
                    continue;
                }
            }
            retain(begin, rows, out, |row, id| {
                let (s, o) = ends(list.direction, list.keys[row as usize], id);
                graphs_of.is_in_any(s, o, graphs)
            });
        }
    }

    /// True if one graph has every edge of a predicate that the layer has.
    fn has_all(&self, graphs: &[TermId], predicate: PredicateId) -> bool {
        let all = self.named_layer().counts(predicate, Direction::Out).0;
        matches!(graphs, [only] if self.graph_quads(*only, Some(predicate)) == all)
    }

    /// All that some graphs have of a predicate, where that is less than what the layer has of a
    /// few of the keys.
    fn own_edges(&self, graphs: &[TermId], list: &Lists<'_>, from: usize) -> Option<OwnEdges> {
        let layer = self.named_layer();
        let keys = &list.keys[from.min(list.keys.len())..];
        let length = |key: &TermId| layer.neighbours(list.predicate, list.direction, *key).len();
        let others: usize = keys.iter().take(KEYS_LOOKED_AT).map(length).sum();
        if others <= FEW_OTHERS {
            return None;
        }
        let of_graph = |graph: &TermId| self.graph_quads(*graph, Some(list.predicate));
        let own: u64 = graphs.iter().map(of_graph).sum();
        if own > MOST_OWN_EDGES || others as u64 <= 4 * own {
            return None;
        }
        Some(self.edges_of_graphs(graphs, list))
    }

    /// All that some graphs have of the predicate of a list.
    fn edges_of_graphs(&self, graphs: &[TermId], list: &Lists<'_>) -> OwnEdges {
        let mut edges = Vec::new();
        for graph in graphs {
            let flow = self.for_each_edge_of_graph(*graph, list.predicate, &mut |s, o| {
                edges.push(match list.direction {
                    Direction::Out => (s, o),
                    Direction::In => (o, s),
                });
                ControlFlow::Continue(())
            });
            debug_assert!(flow.is_continue());
        }
        edges.sort_unstable();
        edges.dedup();
        OwnEdges { edges }
    }

    /// Follows one list in both layers, and keeps what the others hold in either.
    fn expand_union(
        &self,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        let layers = [self.default_graph(), self.named_layer()];
        for (one, other) in [(0, 1), (1, 0)] {
            // Of a shard, the keys of one direction may have edges and those of the other none.
            let is_alone = |list: &Lists<'_>| {
                let counts = layers[other].counts(list.predicate, list.direction);
                counts.0 == 0
            };
            if lists.iter().all(is_alone) {
                return layers[one].follow(lists, cursor, allowed, budget, rows, out);
            }
        }
        let Some((list, others)) = lists.split_first() else {
            return;
        };
        let begin = out.len();
        let neighbours =
            |layer: usize, key| layers[layer].neighbours(list.predicate, list.direction, key);
        while cursor.key < list.keys.len() && out.len() < budget {
            let key = list.keys[cursor.key];
            let (first, second) = (neighbours(0, key), neighbours(1, key));
            let before = out.len();
            let room = budget - before;
            let taken = match cursor.offset.checked_sub(first.len()) {
                None => {
                    first.copy(cursor.offset, room, out);
                    out.len() - before
                }
                Some(offset) => {
                    second.copy(offset, room, out);
                    let taken = out.len() - before;
                    rows.resize(out.len(), cursor.key as u32);
                    retain(before, rows, out, |_, id| !first.contains(id));
                    taken
                }
            };
            rows.resize(out.len(), cursor.key as u32);
            if let Some(allowed) = allowed {
                retain(before, rows, out, |_, id| allowed.contains(id));
            }
            cursor.offset += taken;
            if cursor.offset >= first.len() + second.len() {
                *cursor = Cursor {
                    key: cursor.key + 1,
                    offset: 0,
                };
            }
            if list.keys.len() == 1 {
                break;
            }
        }
        for list in others {
            retain(begin, rows, out, |row, id| {
                layers.iter().any(|layer| {
                    let key = list.keys[row as usize];
                    let list = layer.neighbours(list.predicate, list.direction, key);
                    list.contains(id)
                })
            });
        }
    }

    /// How many places [`Snapshot::expand`] of the one key of a list goes through: cursors with
    /// offsets below that share them out.
    #[must_use]
    pub fn places(&self, graph: GraphRef<'_>, list: &Lists<'_>) -> u64 {
        let [key] = list.keys else {
            panic!("places are those of one key");
        };
        let of_layer = |layer: LayerView<'_>| {
            let list = layer.neighbours(list.predicate, list.direction, *key);
            list.len() as u64
        };
        let of_some = |graphs: &[TermId]| match self.own_edges(graphs, list, 0) {
            Some(own) => own.of_key(*key).len() as u64,
            None => of_layer(self.named_layer()),
        };
        match graph {
            GraphRef::Default => of_layer(self.default_graph()),
            GraphRef::Named => of_layer(self.named_layer()),
            GraphRef::Union => of_layer(self.default_graph()) + of_layer(self.named_layer()),
            GraphRef::One(graph) => of_some(&[graph]),
            GraphRef::Some(graphs) => of_some(graphs),
            GraphRef::Each(_) => of_layer(self.named_layer()),
        }
    }

    /// Appends the number of each row whose edge from its key to its entry of `to` is there.
    pub fn contains(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) {
        let begin = rows.len();
        let (default, named) = (self.default_graph(), self.named_layer());
        match graph {
            GraphRef::Default => default.contains(list, to, rows),
            GraphRef::Named | GraphRef::One(_) | GraphRef::Some(_) | GraphRef::Each(_) => {
                named.contains(list, to, rows);
            }
            GraphRef::Union => {
                default.contains(list, to, rows);
                named.contains(list, to, rows);
                // What the caller had before is none of it.
                let mut found = rows.split_off(begin);
                found.sort_unstable();
                found.dedup();
                rows.append(&mut found);
            }
        }
        let one = match graph {
            GraphRef::One(graph) => [graph],
            _ => [TermId::NONE],
        };
        // Those of all rows, or of each.
        let (all, each) = match graph {
            GraphRef::One(_) => (&one[..], &[][..]),
            GraphRef::Some(graphs) => (graphs, &[][..]),
            GraphRef::Each(graphs) => (&[][..], graphs),
            GraphRef::Default | GraphRef::Named | GraphRef::Union => return,
        };
        if self.has_all(all, list.predicate) {
            return;
        }
        let mut graphs_of = self.graphs_of_edges(list.predicate);
        let mut kept = begin;
        for index in begin..rows.len() {
            let row = rows[index] as usize;
            rows[kept] = rows[index];
            let (s, o) = ends(list.direction, list.keys[row], to[row]);
            let graphs = each.get(row).map_or(all, std::slice::from_ref);
            kept += usize::from(graphs_of.is_in_any(s, o, graphs));
        }
        rows.truncate(kept);
    }

    /// The named graphs of edges that the named layer has, from each key of `list` to its entry of
    /// `to`: appends the number of the row and a graph for each.
    pub fn graphs_of(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        graphs: &mut Vec<TermId>,
    ) {
        let mut graphs_of = self.graphs_of_edges(list.predicate);
        let subjects = match list.direction {
            Direction::Out => list.keys,
            Direction::In => to,
        };
        let mut row = 0;
        while row < subjects.len() {
            if let Some((graph, count)) = graphs_of.of_run(&subjects[row..]) {
                rows.extend(row as u32..(row + count) as u32);
                graphs.resize(graphs.len() + count, graph);
                row += count;
                continue;
            }
            let (s, o) = ends(list.direction, list.keys[row], to[row]);
            let flow = graphs_of.for_each(s, o, &mut |graph| {
                rows.push(row as u32);
                graphs.push(graph);
                ControlFlow::Continue(())
            });
            debug_assert!(flow.is_continue());
            row += 1;
        }
    }

    /// Appends the number of neighbours of each key, of those in `allowed` where that is given.
    pub fn degrees(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) {
        match graph {
            GraphRef::Default => return self.default_graph().degrees(list, allowed, out),
            GraphRef::Named => return self.named_layer().degrees(list, allowed, out),
            GraphRef::One(_) | GraphRef::Some(_) | GraphRef::Union | GraphRef::Each(_) => {}
        }
        let begin = out.len();
        out.resize(begin + list.keys.len(), 0);
        let (mut rows, mut found) = (Vec::new(), Vec::new());
        let mut cursor = Cursor::default();
        while cursor.key < list.keys.len() {
            rows.clear();
            found.clear();
            let lists = std::slice::from_ref(list);
            let most = COUNTED_AT_ONCE;
            self.expand(
                graph,
                lists,
                &mut cursor,
                allowed,
                most,
                &mut rows,
                &mut found,
            );
            rows.iter().for_each(|row| out[begin + *row as usize] += 1);
        }
    }

    /// Number of edges of a predicate in a graph; `None` where that is not counted.
    #[must_use]
    pub fn edges(&self, graph: GraphRef<'_>, predicate: PredicateId) -> Option<u64> {
        let of_layer = |layer: LayerView<'_>| layer.counts(predicate, Direction::Out).0;
        match graph {
            GraphRef::Default => Some(of_layer(self.default_graph())),
            GraphRef::Named | GraphRef::Each(_) => Some(of_layer(self.named_layer())),
            GraphRef::One(graph) => Some(self.graph_quads(graph, Some(predicate))),
            GraphRef::Some(_) => None,
            GraphRef::Union => {
                let counts = [self.default_graph(), self.named_layer()].map(of_layer);
                (counts[0] == 0 || counts[1] == 0).then(|| counts[0] + counts[1])
            }
        }
    }

    /// The ids that have all of `traits` in a graph, literals too where these allow them, and lie in
    /// `within` where that is given; `None` if that is no short list and an exact one is not asked
    /// for.
    ///
    /// Types are always honoured. Of a graph that is no layer, predicates may be those of other
    /// graphs of its layer.
    #[must_use]
    pub fn members(
        &self,
        graph: GraphRef<'_>,
        traits: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Option<IdRanges> {
        let exact = precision.is_exact();
        let cut = |ids: IdRanges| match within {
            Some(within) => ids.within(within),
            None => ids,
        };
        match graph {
            GraphRef::Default => self.default_graph().members(traits, precision, within),
            GraphRef::Named | GraphRef::Each(_) => {
                self.named_layer().members(traits, precision, within)
            }
            GraphRef::One(graph) => self.kept_members(&[graph], traits, exact).map(cut),
            GraphRef::Some(graphs) => self.kept_members(graphs, traits, exact).map(cut),
            GraphRef::Union => self.members_of_union(traits, exact).map(cut),
        }
    }

    /// Each trait in either of the layers.
    fn members_of_union(&self, traits: &[Membership], exact: bool) -> Option<IdRanges> {
        let layers = [self.default_graph(), self.named_layer()];
        let mut all: Option<IdRanges> = None;
        for asked in traits {
            let asked = std::slice::from_ref(asked);
            let of_layers = layers.map(|layer| match layer.edges() {
                0 => Some(IdRanges::new()),
                _ => layer.ids_with(asked, exact, None),
            });
            if let [Some(default), Some(named)] = of_layers {
                let either = default.union(&named);
                all = Some(match all {
                    Some(all) => all.intersect(&either),
                    None => either,
                });
            }
        }
        all
    }

    /// The members in some named graphs, which are kept until something changes in these traits.
    fn kept_members(
        &self,
        graphs: &[TermId],
        traits: &[Membership],
        exact: bool,
    ) -> Option<IdRanges> {
        let versions = || {
            traits.iter().flat_map(|asked| {
                let (predicate, direction) = match asked {
                    Membership::Type(_) => (PredicateId::TYPE, Direction::In),
                    Membership::Has(predicate, direction) => (*predicate, *direction),
                };
                [
                    self.named_layer().version(predicate, direction),
                    self.delta.named.version(predicate),
                ]
            })
        };
        let key = (graphs, traits, exact);
        self.generation
            .graph_sets
            .get(key, versions, || self.members_of(graphs, traits, exact))
    }

    fn members_of(
        &self,
        graphs: &[TermId],
        traits: &[Membership],
        exact: bool,
    ) -> Option<IdRanges> {
        let mut all: Option<IdRanges> = None;
        let mut predicates = Vec::new();
        for asked in traits {
            let Membership::Type(class) = asked else {
                predicates.push(*asked);
                continue;
            };
            let of_type = self.of_type_in(graphs, *class);
            all = Some(match all {
                Some(all) => all.intersect(&of_type),
                None => of_type,
            });
        }
        if all.is_none()
            && exact
            && let Some(Membership::Has(predicate, direction)) = predicates.first()
        {
            let of_graph = |graph: &TermId| match direction {
                Direction::Out => self.subjects_in_graph(*graph, *predicate),
                Direction::In => self.objects_in_graph(*graph, *predicate),
            };
            all = Some(IdRanges::union_of(graphs.iter().map(of_graph)));
        }
        if predicates.is_empty() {
            return all;
        }
        match (all, self.named_layer().ids_with(&predicates, false, None)) {
            (Some(all), Some(pruned)) => Some(all.intersect(&pruned)),
            (all, pruned) => all.or(pruned),
        }
    }

    /// The vertices that have a type in one of some named graphs.
    fn of_type_in(&self, graphs: &[TermId], class: TermId) -> IdRanges {
        let predicate = PredicateId::TYPE;
        let own = |graph: &TermId| self.graph_quads(*graph, Some(predicate));
        let own: u64 = graphs.iter().map(own).sum();
        let layer = self.named_layer();
        let members = layer.neighbours(predicate, Direction::In, class);
        if graphs.len() > 1 && (members.len() as u64) < own {
            let mut graphs_of = self.graphs_of_edges(predicate);
            let mut ids = Vec::new();
            let flow = super::view::for_each_neighbour(members, &mut |id| {
                if graphs_of.is_in_any(id, class, graphs) {
                    ids.push(id.raw());
                }
                ControlFlow::Continue(())
            });
            debug_assert!(flow.is_continue());
            let mut all = IdRanges::new();
            all.extend_sorted(ids.into_iter());
            return all;
        }
        IdRanges::union_of(graphs.iter().map(|graph| self.of_type(*graph, class)))
    }

    /// The vertices that have a type in a named graph.
    fn of_type(&self, graph: TermId, class: TermId) -> IdRanges {
        let in_base = OfGraph::new(self.base(), graph, PredicateId::TYPE);
        let in_base = in_base.map_or_else(IdRanges::new, |of| of.of_type(class));
        let delta = &self.delta.named;
        let of_class = |set: &SortedSet<GraphQuad>| {
            let range = of_graph_and_predicate(set, graph, PredicateId::TYPE);
            let quads = set.slices(range).flatten();
            let of_class = quads.filter(|quad| quad.3 == class.raw());
            of_class.map(|quad| quad.2).collect::<Vec<u64>>()
        };
        in_base
            .without(&of_class(&delta.removed))
            .with(&of_class(&delta.added))
    }

    /// The objects of a predicate in a named graph, and perhaps some of it in others only.
    fn objects_in_graph(&self, graph: TermId, predicate: PredicateId) -> IdRanges {
        let layer = self.named_layer();
        let own = self.graph_quads(graph, Some(predicate));
        if layer.counts(predicate, Direction::In).1 <= own {
            let all = layer.ids_with(&[Membership::Has(predicate, Direction::In)], true, None);
            return all.expect("an exact set is always made");
        }
        let mut ids = Vec::with_capacity(own as usize);
        let flow = self.for_each_edge_of_graph(graph, predicate, &mut |_, o| {
            ids.push(o.raw());
            ControlFlow::Continue(())
        });
        debug_assert!(flow.is_continue());
        ids.sort_unstable();
        ids.dedup();
        let mut all = IdRanges::new();
        all.extend_sorted(ids.into_iter());
        all
    }

    /// The predicates that a vertex has in a direction, `rdf:type` perhaps without an edge, and of a
    /// graph that is no layer perhaps some of its layer; appended to `out`.
    pub fn predicates_of(
        &self,
        graph: GraphRef<'_>,
        vertex: TermId,
        direction: Direction,
        out: &mut Vec<PredicateId>,
    ) {
        match graph {
            GraphRef::Default => {
                self.default_graph()
                    .predicates_of_vertex(vertex, direction, out);
            }
            GraphRef::Named | GraphRef::One(_) | GraphRef::Some(_) | GraphRef::Each(_) => {
                self.named_layer()
                    .predicates_of_vertex(vertex, direction, out);
            }
            GraphRef::Union => {
                let begin = out.len();
                self.default_graph()
                    .predicates_of_vertex(vertex, direction, out);
                self.named_layer()
                    .predicates_of_vertex(vertex, direction, out);
                let mut all = out.split_off(begin);
                all.sort_unstable();
                all.dedup();
                out.append(&mut all);
            }
        }
    }
}

/// All that some graphs have of a predicate: key and neighbour, sorted.
struct OwnEdges {
    edges: Vec<(TermId, TermId)>,
}

impl OwnEdges {
    fn of_key(&self, key: TermId) -> &[(TermId, TermId)] {
        let begin = self.edges.partition_point(|edge| edge.0 < key);
        let of_key = &self.edges[begin..];
        &of_key[..of_key.partition_point(|edge| edge.0 == key)]
    }

    fn expand(
        &self,
        keys: &[TermId],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        while cursor.key < keys.len() && out.len() < budget {
            let list = self.of_key(keys[cursor.key]);
            let end = list.len().min(cursor.offset + budget - out.len());
            let taken = list[cursor.offset.min(end)..end].iter().map(|edge| edge.1);
            out.extend(taken.filter(|id| allowed.is_none_or(|allowed| allowed.contains(*id))));
            rows.resize(out.len(), cursor.key as u32);
            *cursor = match end < list.len() {
                true => Cursor {
                    key: cursor.key,
                    offset: end,
                },
                false => Cursor {
                    key: cursor.key + 1,
                    offset: 0,
                },
            };
            if keys.len() == 1 {
                return;
            }
        }
    }
}

impl LayerView<'_> {
    pub(super) fn follow(
        self,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        match lists {
            [one] => self.expand(
                one.predicate,
                one.direction,
                one.keys,
                cursor,
                allowed,
                budget,
                rows,
                out,
            ),
            several => self.intersect(several, cursor, allowed, budget, rows, out),
        }
    }

    fn contains(self, list: &Lists<'_>, to: &[TermId], rows: &mut Vec<u32>) {
        let mut located: Vec<Neighbours<'_>> = Vec::new();
        for (batch, keys) in list.keys.chunks(KEYS_AT_ONCE).enumerate() {
            located.clear();
            self.locate(list.predicate, list.direction, keys, &mut located);
            let first = batch * KEYS_AT_ONCE;
            let found = located.iter().zip(&to[first..]).enumerate();
            let found = found.filter(|(_, (list, to))| list.contains(**to));
            rows.extend(found.map(|(index, _)| (first + index) as u32));
        }
    }

    fn degrees(self, list: &Lists<'_>, allowed: Option<&IdRanges>, out: &mut Vec<u64>) {
        let count = |list: &Neighbours<'_>| match allowed {
            None => list.len() as u64,
            Some(allowed) => {
                let mut from = 0;
                let mut count = 0;
                for (first, end) in allowed.ranges() {
                    let begin = list.seek(from, TermId::from_raw(*first));
                    from = list.seek(begin, TermId::from_raw(*end));
                    count += (from - begin) as u64;
                }
                count
            }
        };
        let is_changed = self.delta.segment(list.predicate, list.direction).is_some();
        if allowed.is_none() && !is_changed {
            return (self.base).degrees(list.predicate, list.direction, list.keys, out);
        }
        let mut located: Vec<Neighbours<'_>> = Vec::new();
        for keys in list.keys.chunks(KEYS_AT_ONCE) {
            located.clear();
            self.locate(list.predicate, list.direction, keys, &mut located);
            out.extend(located.iter().map(count));
        }
    }
}
