//! Questions about single edges and lists: each is asked the shard of its key, and those for shards of one node go
//! there together.

use jindou_exec::GraphSource;
use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, PredicateId, TermId, Unavailable,
};
use jindou_partition::{Part, Split};

use crate::Sharded;
use crate::rows::{Holder, is_of_graph};

/// Neighbours that are counted together.
const COUNTED_AT_ONCE: usize = 4096;

/// The graph of some rows, given by number: where each has its own, those of these, in `graphs`.
pub(crate) fn of_rows<'g>(
    graph: GraphRef<'g>,
    rows: impl Iterator<Item = usize>,
    graphs: &'g mut Vec<TermId>,
) -> GraphRef<'g> {
    let GraphRef::Each(each) = graph else {
        return graph;
    };
    graphs.clear();
    graphs.extend(rows.map(|row| each[row]));
    GraphRef::Each(graphs)
}

/// Of two reasons not to answer, the one to report: what is lost does not come back.
pub(crate) fn worse(one: Option<Unavailable>, other: Unavailable) -> Unavailable {
    match one {
        Some(lost @ (Unavailable::Never(_) | Unavailable::Gone)) => lost,
        Some(Unavailable::NotNow) | None => other,
    }
}

/// Makes a call for each part of some keys.
///
/// All are made before it is said that one is not answered, so that all are on their way.
fn ask_all(
    split: &Split,
    mut ask: impl FnMut(u32, &Part) -> Result<(), Unavailable>,
) -> Result<(), Unavailable> {
    let mut reason = None;
    for (number, part) in split.parts() {
        if let Err(why) = ask(number, part) {
            reason = Some(worse(reason, why));
        }
    }
    reason.map_or(Ok(()), Err)
}

impl Sharded {
    /// Calls `ask` once for each holder of lists, with its part of the keys.
    fn ask_holders(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        mut ask: impl FnMut(Holder<'_>, &Part) -> Result<(), Unavailable>,
    ) -> Result<(), Unavailable> {
        Split::lend(|split| {
            let segment = (list.predicate, list.direction);
            self.split(graph, segment, list.keys.iter().copied(), split);
            ask_all(split, |number, part| {
                ask(self.holder_of_part(graph, segment, number)?, part)
            })
        })
    }

    /// Calls `ask` for those that have the shards of some of the keys, with these.
    pub(crate) fn ask_shards(
        &self,
        keys: impl IntoIterator<Item = TermId>,
        mut ask: impl FnMut(&dyn GraphSource, &Part) -> Result<(), Unavailable>,
    ) -> Result<(), Unavailable> {
        Split::lend(|split| {
            split.fill(keys, |key| match is_of_graph(key) {
                true => self.part_of(self.shards.owner(key)),
                false => self.part_of_others(),
            });
            ask_all(split, |number, part| ask(self.of_part(number)?, part))
        })
    }

    /// As [`GraphSource::contains`].
    pub(crate) fn contains_of(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        if list.predicate == PredicateId::TYPE {
            return self.shared.contains(graph, list, to, rows);
        }
        let (read, by_subject) = self.read_in(graph, list.predicate, list.direction);
        let (graph, direction, keys, to) = match by_subject {
            true => (graph, Direction::Out, to, list.keys),
            false => (read, list.direction, list.keys, to),
        };
        let mut found: Vec<u32> = Vec::new();
        let (mut ends, mut of_part, mut graphs) = (Vec::new(), Vec::new(), Vec::new());
        let predicate = list.predicate;
        let from = Lists {
            predicate,
            direction,
            keys,
        };
        self.ask_holders(graph, &from, |holder, part| {
            let places = part.places.iter().map(|place| *place as usize);
            ends.clear();
            ends.extend(places.clone().map(|place| to[place]));
            let graph = of_rows(graph, places, &mut graphs);
            of_part.clear();
            let list = Lists {
                predicate,
                direction,
                keys: &part.keys,
            };
            holder.contains(graph, &list, &ends, &mut of_part)?;
            found.extend(of_part.iter().map(|row| part.places[*row as usize]));
            Ok(())
        })?;
        found.sort_unstable();
        rows.append(&mut found);
        Ok(())
    }

    /// As [`GraphSource::degrees`].
    pub(crate) fn degrees_of(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        if list.predicate == PredicateId::TYPE {
            return self.shared.degrees(graph, list, allowed, out);
        }
        let (read, by_subject) = self.read_in(graph, list.predicate, list.direction);
        let mut counts = match by_subject {
            true => self.count(graph, list, allowed)?,
            false => self.own_degrees(read, list, allowed)?,
        };
        out.append(&mut counts);
        Ok(())
    }

    /// The degrees in a graph that the shards of the keys know.
    fn own_degrees(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
    ) -> Result<Vec<u64>, Unavailable> {
        let mut counts = vec![0; list.keys.len()];
        let (mut of_part, mut graphs) = (Vec::new(), Vec::new());
        self.ask_holders(graph, list, |holder, part| {
            let places = part.places.iter().map(|place| *place as usize);
            let graph = of_rows(graph, places, &mut graphs);
            of_part.clear();
            let list = Lists {
                keys: &part.keys,
                ..*list
            };
            holder.degrees(graph, &list, allowed, &mut of_part)?;
            let places = part.places.iter().zip(&of_part);
            places.for_each(|(place, count)| counts[*place as usize] = *count);
            Ok(())
        })?;
        Ok(counts)
    }

    /// The degrees, by following the lists.
    fn count(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
    ) -> Result<Vec<u64>, Unavailable> {
        let mut counts = vec![0; list.keys.len()];
        let (mut rows, mut found) = (Vec::new(), Vec::new());
        let mut cursor = Cursor::default();
        while cursor.key < list.keys.len() {
            rows.clear();
            found.clear();
            let lists = std::slice::from_ref(list);
            let out = (&mut rows, &mut found);
            self.follow(graph, lists, &mut cursor, allowed, COUNTED_AT_ONCE, out)?;
            rows.iter().for_each(|row| counts[*row as usize] += 1);
        }
        Ok(counts)
    }

    /// The lengths of lists before anything is left out of them, or a little more than that: what it
    /// costs to follow them.
    pub(crate) fn lengths(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
    ) -> Result<Vec<u64>, Unavailable> {
        let of_layer = |layer| {
            let mut lengths = Vec::with_capacity(list.keys.len());
            self.degrees_of(layer, list, None, &mut lengths)?;
            Ok::<_, Unavailable>(lengths)
        };
        match graph {
            GraphRef::Default => of_layer(graph),
            GraphRef::Named | GraphRef::One(_) | GraphRef::Some(_) | GraphRef::Each(_) => {
                of_layer(GraphRef::Named)
            }
            GraphRef::Union => {
                let (default, named) = (of_layer(GraphRef::Default)?, of_layer(GraphRef::Named)?);
                Ok(default.iter().zip(named).map(|(a, b)| a + b).collect())
            }
        }
    }

    /// As [`GraphSource::graphs_of`].
    pub(crate) fn graphs_of_edges(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        graphs: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        if list.predicate == PredicateId::TYPE {
            return self.shared.graphs_of(list, to, rows, graphs);
        }
        let (subjects, objects) = match list.direction {
            Direction::Out => (list.keys, to),
            Direction::In => (to, list.keys),
        };
        let mut found: Vec<(u32, TermId)> = Vec::new();
        let (mut ends, mut part_rows, mut part_graphs) = (Vec::new(), Vec::new(), Vec::new());
        self.ask_shards(subjects.iter().copied(), |shard, part| {
            ends.clear();
            ends.extend(part.places.iter().map(|place| objects[*place as usize]));
            part_rows.clear();
            part_graphs.clear();
            let list = Lists {
                predicate: list.predicate,
                direction: Direction::Out,
                keys: &part.keys,
            };
            shard.graphs_of(&list, &ends, &mut part_rows, &mut part_graphs)?;
            let part_rows = part_rows.iter().map(|row| part.places[*row as usize]);
            found.extend(part_rows.zip(part_graphs.iter().copied()));
            Ok(())
        })?;
        found.sort_by_key(|(row, _)| *row);
        rows.extend(found.iter().map(|(row, _)| *row));
        graphs.extend(found.iter().map(|(_, graph)| *graph));
        Ok(())
    }
}
