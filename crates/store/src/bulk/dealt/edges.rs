//! Which rows of the segments has a node?
//!
//! Edges go, predicate by predicate, to the nodes that hold the shards of their ends: those of subjects have them in
//! the outgoing segment, with the named graphs, and those of objects in the incoming one.

use std::sync::Arc;

use jindou_model::{Direction, PredicateId, TermId};
use jindou_partition::{ShardMap, Shards};
use rayon::prelude::*;

use super::failed::Failed;
use super::peers::{Outbox, Peers, Stream};
use super::wire::{EDGE_BYTES, QUAD_BYTES, edge_bytes, edge_of};
use crate::bulk::named::graphs_of;
use crate::bulk::sink::{Edges, NamedEdges};
use crate::bulk::sort::sort_pairs;
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

/// Edges of a step that are all here, from keys to others.
struct Whole {
    step: Step,
    edges: Edges,
}

struct Dealing<'a> {
    map: &'a ShardMap,
    parsed: Parsed,
    /// How much of the step was sent.
    sent: usize,
    /// What came of the step: edges from keys, or quads.
    edges: Edges,
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
    map: &ShardMap,
    mut parsed: Parsed,
    (mut coder, runs): (GraphCoder, &Runs),
    round_bytes: usize,
) -> Result<Rows, Failed> {
    let predicates = parsed.edges.len();
    let mut types = share_types(peers, std::mem::take(&mut parsed.named[0]))?;
    let types = graphs_of(&mut types, |graph| graph as u32, &mut coder, runs);
    let none = || vec![None; predicates];
    let mut dealing = Dealing {
        map,
        parsed,
        sent: 0,
        edges: Vec::new(),
        quads: Vec::new(),
        whole: Vec::new(),
        most_bytes: round_bytes,
        coder,
        runs,
        graphs: vec![Arc::new(types)],
        segments: [[none(), none()], [none(), none()]],
    };
    let steps = (predicates as u32 - 1) * STEPS_OF_PREDICATE;
    peers.in_steps(steps, &mut dealing)?;
    dealing.make_segments();
    let table = Arc::new(dealing.coder.finish());
    Ok(Rows {
        segments: dealing.segments,
        named: NamedGraphs::join(table, dealing.graphs),
    })
}

/// All quads of `rdf:type`, which every node has.
fn share_types(peers: &Peers<'_>, mut own: NamedEdges) -> Result<NamedEdges, Failed> {
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
    Ok(all)
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
    fn node_of(&self, raw: u64) -> usize {
        self.map.node_of(TermId::from_raw(raw)).0 as usize
    }

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
            if put(out, self.node_of(key(*edge)), *edge) && self.sent < edges.len() {
                return false;
            }
        }
        self.sent = 0;
        true
    }

    fn make_segments(&mut self) {
        // Of two to a power of nodes, the keys of one are a stride apart, too.
        let strides = Shards::new(self.map.nodes().len() as u32).unwrap_or(Shards::ONE);
        let segment = |mut whole: Whole| {
            sort_pairs(&mut whole.edges);
            (
                whole.step,
                Segment::from_sorted_apart(&whole.edges, strides),
            )
        };
        let whole = std::mem::take(&mut self.whole);
        let made: Vec<(Step, Segment)> = whole.into_par_iter().map(segment).collect();
        for (step, segment) in made {
            let of_layer = &mut self.segments[step.layer as usize];
            of_layer[step.direction as usize][step.predicate.index()] = Some(segment);
        }
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
        let edges = bytes.chunks_exact(EDGE_BYTES).map(edge_of);
        let edges = edges.map(|(subject, object)| (TermId::vertex(subject.into()).raw(), object));
        let step = step(number);
        match (step.layer, step.direction) {
            (LayerKind::Named, Direction::Out) => self.quads.extend(quads_of(bytes)),
            (LayerKind::Default, Direction::Out) => self.edges.extend(edges),
            (_, Direction::In) => self.edges.extend(edges.map(|(s, o)| (o, s))),
        }
        Ok(())
    }

    fn done(&mut self, number: u32) -> Result<(), Failed> {
        let step = step(number);
        if (step.layer, step.direction) == (LayerKind::Named, Direction::Out) {
            let mut quads = std::mem::take(&mut self.quads);
            let graphs = graphs_of(&mut quads, |graph| graph as u32, &mut self.coder, self.runs);
            self.graphs.push(Arc::new(graphs));
            self.edges.extend(quads.iter().map(|(s, o, _)| (*s, *o)));
        }
        if self.edges.is_empty() {
            return Ok(());
        }
        let edges = std::mem::take(&mut self.edges);
        self.whole.push(Whole { step, edges });
        let lists = self.whole.iter().map(|whole| size_of_val(&*whole.edges));
        if lists.sum::<usize>() >= self.most_bytes {
            self.make_segments();
        }
        Ok(())
    }
}
