//! Which rows of the segments has a node?
//!
//! Edges go, predicate by predicate, to the nodes that hold the shards of their ends: those of subjects have them in
//! the outgoing segment, with the named graphs, and those of objects in the incoming one.

use std::sync::Arc;

use jindou_model::{Direction, NodeId, PredicateId, TermId};
use jindou_partition::{ShardMap, Shards};
use rayon::prelude::*;

use super::failed::Failed;
use super::peers::{Outbox, Peers, Stream};
use super::terms::Extent;
use super::wire::{EDGE_BYTES, QUAD_BYTES, edge_bytes, edge_of};
use crate::bulk::named::graphs_of;
use crate::bulk::sink::{Edges, NamedEdges};
use crate::bulk::sort::sorted_pairs;
use crate::graph_table::GraphCoder;
use crate::layer::LayerKind;
use crate::named::NamedGraphs;
use crate::predicate_graphs::PredicateGraphs;
use crate::runs::Runs;
use crate::segment::Segment;

/// Steps of a predicate: each layer, out and in.
const STEPS_OF_PREDICATE: u32 = 4;

/// Segments by direction and predicate.
pub(super) type Segments = [Vec<Option<Segment>>; 2];

/// What a node has of the graph.
pub(super) struct Rows {
    /// By layer.
    pub(super) segments: [Segments; 2],
    pub(super) named: NamedGraphs,
}

/// Edges that this node has parsed, by predicate, in ids of the store; of quads, the graphs by number.
pub(super) struct Parsed {
    pub(super) edges: Vec<Edges>,
    pub(super) named: Vec<NamedEdges>,
}

/// One of the steps of a predicate.
#[derive(Clone, Copy)]
struct Step {
    predicate: PredicateId,
    layer: LayerKind,
    direction: Direction,
}

/// The predicates but `rdf:type` come one after the other.
fn step(number: u32) -> Step {
    Step {
        predicate: PredicateId(1 + number / STEPS_OF_PREDICATE),
        layer: LayerKind::ALL[(number as usize / 2) % 2],
        direction: [Direction::Out, Direction::In][number as usize % 2],
    }
}

/// Ids that terms and graphs have, and where the edges of a term belong: what a node is sent is to be of these.
pub(super) struct Ids<'a> {
    pub(super) map: &'a ShardMap,
    pub(super) here: NodeId,
    pub(super) terms: Extent,
    pub(super) graphs: u64,
}

impl Ids<'_> {
    #[inline]
    fn node_of(&self, raw: u64) -> NodeId {
        self.map.node_of(TermId::from_raw(raw))
    }

    #[inline]
    fn has(&self, raw: u64) -> bool {
        self.terms.has(TermId::from_raw(raw))
    }

    /// True of an edge from a key of this node's.
    #[inline]
    fn has_row(&self, (key, other): (u64, u64)) -> bool {
        self.has(key) && self.has(other) && self.node_of(key) == self.here
    }

    #[inline]
    fn has_quad(&self, (subject, object, graph): (u64, u64, u64)) -> bool {
        self.has(subject) && self.has(object) && graph < self.graphs
    }
}

/// Edges of a step that are all here, as they came: they are decoded where they are sorted, on all cores.
struct Whole {
    step: Step,
    pieces: Vec<Vec<u8>>,
}

impl Whole {
    fn len(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum::<usize>() / EDGE_BYTES
    }

    /// From keys to others, sorted.
    fn rows(&self) -> Edges {
        let edges = self.pieces.iter().flat_map(|piece| edges_of(piece));
        match self.step.direction {
            Direction::Out => sorted_pairs(self.len(), edges),
            Direction::In => sorted_pairs(self.len(), edges.map(|(s, o)| (o, s))),
        }
    }
}

struct Dealing<'a> {
    ids: &'a Ids<'a>,
    parsed: Parsed,
    /// How much of the step was sent.
    sent: usize,
    /// What came of the step: edges or quads.
    pieces: Vec<Vec<u8>>,
    quads: NamedEdges,
    /// Edges of which segments are to be made, together: so many bytes at most, but for one list.
    whole: Vec<Whole>,
    most_bytes: usize,
    coder: GraphCoder,
    runs: &'a Runs,
    graphs: Vec<Arc<PredicateGraphs>>,
    segments: [Segments; 2],
}

/// Deals edges; `coder` knows the named graphs, and `runs` where subjects are at home.
pub(super) fn deal(
    peers: &Peers<'_>,
    ids: &Ids<'_>,
    mut parsed: Parsed,
    (mut coder, runs): (GraphCoder, &Runs),
    most_bytes: usize,
) -> Result<Rows, Failed> {
    let predicates = parsed.edges.len();
    let mut types = share_types(peers, ids, std::mem::take(&mut parsed.named[0]))?;
    let types = graphs_of(&mut types, |graph| graph as u32, &mut coder, runs);
    let none = || vec![None; predicates];
    let mut dealing = Dealing {
        ids,
        parsed,
        sent: 0,
        pieces: Vec::new(),
        quads: Vec::new(),
        whole: Vec::new(),
        most_bytes,
        coder,
        runs,
        graphs: vec![Arc::new(types)],
        segments: [[none(), none()], [none(), none()]],
    };
    let steps = (predicates as u32 - 1) * STEPS_OF_PREDICATE;
    peers.in_steps(steps, &mut dealing)?;
    dealing.make_segments()?;
    let table = Arc::new(dealing.coder.finish());
    Ok(Rows {
        segments: dealing.segments,
        named: NamedGraphs::join(table, dealing.graphs),
    })
}

/// All quads of `rdf:type`, which every node has.
fn share_types(
    peers: &Peers<'_>,
    ids: &Ids<'_>,
    mut own: NamedEdges,
) -> Result<NamedEdges, Failed> {
    own.par_sort_unstable();
    own.dedup();
    let mut left = own.iter();
    let mut all = Vec::new();
    let mut write = |out: &mut Vec<u8>| match left.next() {
        Some((subject, class, graph)) => {
            let number = TermId::from_raw(*subject).number() as u32;
            out.extend_from_slice(&edge_bytes(number, *class));
            out.extend_from_slice(&(*graph as u32).to_le_bytes());
            false
        }
        None => true,
    };
    peers.to_all(&mut write, &mut |_, reader| {
        all.extend(quads_of(reader.bytes(reader.len())?));
        Ok(())
    })?;
    match all.iter().all(|quad| ids.has_quad(*quad)) {
        true => Ok(all),
        false => Err(Failed::malformed()),
    }
}

/// Edges that travelled.
fn edges_of(bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
    let edges = bytes.chunks_exact(EDGE_BYTES).map(edge_of);
    edges.map(|(subject, object)| (TermId::vertex(subject.into()).raw(), object))
}

/// Quads that travelled.
fn quads_of(bytes: &[u8]) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
    bytes.chunks_exact(QUAD_BYTES).map(|bytes| {
        let (subject, object) = edge_of(bytes);
        let graph = super::wire::numbers(&bytes[EDGE_BYTES..]).next();
        let graph = graph.expect("a quad ends with its graph");
        (TermId::vertex(subject.into()).raw(), object, graph.into())
    })
}

impl Dealing<'_> {
    /// Sends the edges of a step that are left; true once that is all.
    fn send<E: Copy>(
        &mut self,
        edges: &[E],
        key: impl Fn(E) -> u64,
        put: impl Fn(&mut Outbox, usize, E) -> bool,
        out: &mut Outbox,
    ) -> bool {
        for edge in &edges[self.sent..] {
            self.sent += 1;
            let node = self.ids.node_of(key(*edge)).0 as usize;
            if put(out, node, *edge) && self.sent < edges.len() {
                return false;
            }
        }
        self.sent = 0;
        true
    }

    fn make_segments(&mut self) -> Result<(), Failed> {
        let ids = self.ids;
        // Of two to a power of nodes, the keys of one are a stride apart, too.
        let strides = Shards::new(ids.map.nodes().len() as u32).unwrap_or(Shards::ONE);
        let segment = |whole: Whole| {
            let rows = whole.rows();
            let step = whole.step;
            drop(whole);
            let are_sound = rows.iter().all(|row| ids.has_row(*row));
            are_sound.then(|| (step, Segment::from_sorted_apart(&rows, strides)))
        };
        let whole = std::mem::take(&mut self.whole);
        let made: Option<Vec<(Step, Segment)>> = whole.into_par_iter().map(segment).collect();
        for (step, segment) in made.ok_or_else(Failed::malformed)? {
            let of_layer = &mut self.segments[step.layer as usize];
            of_layer[step.direction as usize][step.predicate.index()] = Some(segment);
        }
        Ok(())
    }
}

fn number(subject: u64) -> u32 {
    TermId::from_raw(subject).number() as u32
}

impl Stream for Dealing<'_> {
    fn fill(&mut self, number_of_step: u32, out: &mut Outbox) -> Result<bool, Failed> {
        let step = step(number_of_step);
        let place = step.predicate.index();
        let is_out = step.direction == Direction::Out;
        let end = |subject, object| if is_out { subject } else { object };
        let edge = |out: &mut Outbox, node, subject, object| {
            out.put(node, &edge_bytes(number(subject), object))
        };
        let is_all = match step.layer {
            LayerKind::Default => {
                let edges = std::mem::take(&mut self.parsed.edges[place]);
                let put = |out: &mut Outbox, node, (s, o)| edge(out, node, s, o);
                let is_all = self.send(&edges, |(s, o)| end(s, o), put, out);
                self.parsed.edges[place] = edges;
                is_all
            }
            LayerKind::Named => {
                let quads = std::mem::take(&mut self.parsed.named[place]);
                let put = |out: &mut Outbox, node, (s, o, g): (u64, u64, u64)| {
                    edge(out, node, s, o) | (is_out && out.put(node, &(g as u32).to_le_bytes()))
                };
                let is_all = self.send(&quads, |(s, o, _)| end(s, o), put, out);
                self.parsed.named[place] = quads;
                is_all
            }
        };
        if is_all && !is_out {
            // They were sent both ways.
            match step.layer {
                LayerKind::Default => self.parsed.edges[place] = Vec::new(),
                LayerKind::Named => self.parsed.named[place] = Vec::new(),
            }
        }
        Ok(is_all)
    }

    fn take(&mut self, number: u32, _: usize, bytes: &[u8]) -> Result<(), Failed> {
        let step = step(number);
        match (step.layer, step.direction) {
            (LayerKind::Named, Direction::Out) => self.quads.extend(quads_of(bytes)),
            _ => self.pieces.push(bytes.to_vec()),
        }
        Ok(())
    }

    fn done(&mut self, number_of_step: u32) -> Result<(), Failed> {
        let step = step(number_of_step);
        if (step.layer, step.direction) == (LayerKind::Named, Direction::Out) {
            let mut quads = std::mem::take(&mut self.quads);
            if !quads.iter().all(|quad| self.ids.has_quad(*quad)) {
                return Err(Failed::malformed());
            }
            let graphs = graphs_of(&mut quads, |graph| graph as u32, &mut self.coder, self.runs);
            self.graphs.push(Arc::new(graphs));
            let edges = quads.iter().map(|(s, o, _)| edge_bytes(number(*s), *o));
            self.pieces.push(edges.flatten().collect());
        }
        let pieces = std::mem::take(&mut self.pieces);
        let whole = Whole { step, pieces };
        if whole.len() == 0 {
            return Ok(());
        }
        self.whole.push(whole);
        let bytes = self.whole.iter().map(|whole| whole.len() * EDGE_BYTES);
        match bytes.sum::<usize>() >= self.most_bytes {
            true => self.make_segments(),
            false => Ok(()),
        }
    }
}
