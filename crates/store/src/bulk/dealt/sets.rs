//! Which vertices of all nodes have the same types and predicates?
//!
//! Owners let their vertices walk down a trie as one process does ([`super::super::cluster`]), by what all nodes say
//! of them: a step of the stream for each type, and then for each predicate, layer and direction. The ways that
//! vertices went are the sets, which all nodes then number in one order.

use jindou_dictionary::Interner;
use jindou_model::{TermId, TermKind};

use super::failed::Failed;
use super::names::Classes;
use super::peers::{Outbox, Peers, Stream};
use super::terms::{Owned, Sent};
use super::wire::{Reader, numbers, push_number};
use crate::bulk::cluster::{IN, NAMED, OUT, Symbol, Trie};
use crate::bulk::sink::{Edges, NamedEdges};

/// Steps of a predicate: each layer, out and in.
const STEPS_OF_PREDICATE: u32 = 4;
/// Bits of a symbol that say of which layer and direction it is, and how many the others are.
const KIND_BITS: u32 = 4;

/// What this node says of vertices.
pub(super) struct Own<'a> {
    pub(super) vertices: &'a Sent,
    /// By predicate, in the order of all nodes.
    pub(super) edges: &'a [Edges],
    pub(super) named: &'a [NamedEdges],
    /// By layer.
    pub(super) classes: &'a [Classes; 2],
}

impl Own<'_> {
    /// True of a symbol of a step.
    fn has(&self, symbol: Symbol) -> bool {
        let layer = usize::from(symbol & NAMED != 0);
        let rank = symbol & !(OUT | IN | NAMED);
        match symbol & (OUT | IN) {
            0 => rank < self.classes[layer].all.len() as u64,
            OUT | IN => (1..self.edges.len() as u64).contains(&rank),
            _ => false,
        }
    }
}

/// The sets of all nodes' vertices.
pub(super) struct Sets {
    /// By set.
    pub(super) paths: Vec<Vec<Symbol>>,
    /// The set of each vertex that this node owns.
    pub(super) of_own: Vec<u32>,
}

/// A step of the walk.
#[derive(Clone, Copy)]
enum Step {
    /// By layer and rank.
    Type(usize, u32),
    /// Predicate, whether it is of named graphs, and whether its objects walk.
    Edges(usize, bool, bool),
}

/// An own vertex: where it is, and the step, and one more, at which it went last. Edges look at each in no order, so all
/// of it is in one place.
struct Vertex {
    owner: u16,
    place: u32,
    stamp: u32,
}

struct Walk<'a> {
    own: &'a Own<'a>,
    /// By layer and rank: own vertices.
    typed: [Vec<Vec<u32>>; 2],
    /// How much of the step was sent.
    sent: usize,
    vertices: Vec<Vertex>,
    owned: &'a Owned,
    trie: Trie,
    places: Vec<u32>,
}

/// Finds the sets.
pub(super) fn find(peers: &Peers<'_>, own: &Own<'_>, owned: &Owned) -> Result<Sets, Failed> {
    let default = own.edges[0].iter().copied();
    let named = own.named[0].iter().map(|(s, o, _)| (*s, *o));
    let typed = [
        by_rank(&own.classes[0], default),
        by_rank(&own.classes[1], named),
    ];
    let steps = own.classes.iter().map(|classes| classes.all.len() as u32);
    let of_predicates = (own.edges.len() as u32 - 1) * STEPS_OF_PREDICATE;
    let vertex_at = |(owner, place)| Vertex {
        owner,
        place,
        stamp: 0,
    };
    let mut walk = Walk {
        own,
        typed,
        sent: 0,
        vertices: own.vertices.iter().map(vertex_at).collect(),
        owned,
        trie: Trie::new(),
        places: Trie::places(owned.strings.len()),
    };
    peers.in_steps(steps.sum::<u32>() + of_predicates, &mut walk)?;
    let Walk {
        trie, mut places, ..
    } = walk;
    let found = trie.paths(&places);
    let paths = union(peers, &found)?;
    let mut symbols = paths.iter().flatten();
    if !symbols.all(|symbol| own.has(*symbol)) {
        return Err(Failed::malformed());
    }
    let number = |(path, node): &(Vec<Symbol>, u32)| {
        let number = paths.binary_search(path);
        (*node, number.expect("the union has it") as u32)
    };
    trie.number(&mut places, found.iter().map(number));
    let of_own = places;
    Ok(Sets { paths, of_own })
}

/// The vertices of each type, by own numbers.
fn by_rank(classes: &Classes, types: impl Iterator<Item = (u64, u64)>) -> Vec<Vec<u32>> {
    let mut vertices = vec![Vec::new(); classes.all.len()];
    for (subject, class) in types {
        vertices[classes.rank_of[&class] as usize].push(local(subject));
    }
    vertices
}

fn local(raw: u64) -> u32 {
    TermId::from_raw(raw).number() as u32
}

impl Walk<'_> {
    fn step(&self, step: u32) -> Step {
        let [default, named] = [0, 1].map(|layer: usize| self.own.classes[layer].all.len() as u32);
        if step < default {
            return Step::Type(0, step);
        }
        if step < default + named {
            return Step::Type(1, step - default);
        }
        let step = step - default - named;
        let predicate = 1 + (step / STEPS_OF_PREDICATE) as usize;
        Step::Edges(predicate, step & 2 == 2, step & 1 == 1)
    }

    fn symbol(&self, step: u32) -> Symbol {
        match self.step(step) {
            Step::Type(layer, rank) => (layer as Symbol * NAMED) | Symbol::from(rank),
            Step::Edges(predicate, is_named, is_in) => {
                let direction = if is_in { IN } else { OUT };
                direction | (Symbol::from(is_named) * NAMED) | predicate as Symbol
            }
        }
    }

    /// Sends the vertices of a step to their owners, each once.
    fn send(
        &mut self,
        step: u32,
        vertices: impl ExactSizeIterator<Item = Option<u32>>,
        out: &mut Outbox,
    ) -> bool {
        let count = vertices.len();
        for vertex in vertices.skip(self.sent) {
            self.sent += 1;
            let Some(vertex) = vertex else { continue };
            let vertex = &mut self.vertices[vertex as usize];
            if vertex.stamp == step + 1 {
                continue;
            }
            vertex.stamp = step + 1;
            let place = vertex.place.to_le_bytes();
            if out.put(vertex.owner.into(), &place) && self.sent < count {
                return false;
            }
        }
        self.sent = 0;
        true
    }
}

/// The own number of an id, of a vertex.
fn vertex(raw: u64) -> Option<u32> {
    let id = TermId::from_raw(raw);
    (id.kind() == TermKind::Vertex).then(|| id.number() as u32)
}

impl Stream for Walk<'_> {
    fn fill(&mut self, step: u32, out: &mut Outbox) -> Result<bool, Failed> {
        let (edges, named) = (self.own.edges, self.own.named);
        Ok(match self.step(step) {
            Step::Type(layer, rank) => {
                let vertices = std::mem::take(&mut self.typed[layer][rank as usize]);
                let is_all = self.send(step, vertices.iter().map(|vertex| Some(*vertex)), out);
                if !is_all {
                    self.typed[layer][rank as usize] = vertices;
                }
                is_all
            }
            Step::Edges(predicate, false, false) => {
                self.send(step, edges[predicate].iter().map(|(s, _)| vertex(*s)), out)
            }
            Step::Edges(predicate, false, true) => {
                self.send(step, edges[predicate].iter().map(|(_, o)| vertex(*o)), out)
            }
            Step::Edges(predicate, true, false) => self.send(
                step,
                named[predicate].iter().map(|(s, _, _)| vertex(*s)),
                out,
            ),
            Step::Edges(predicate, true, true) => self.send(
                step,
                named[predicate].iter().map(|(_, o, _)| vertex(*o)),
                out,
            ),
        })
    }

    fn take(&mut self, step: u32, from: usize, bytes: &[u8]) -> Result<(), Failed> {
        let symbol = self.symbol(step);
        let sent = &self.owned.sent_by[from];
        for place in numbers(bytes) {
            let number = sent.get(place as usize).ok_or_else(Failed::malformed)?;
            self.trie
                .advance(&mut self.places[*number as usize], symbol);
        }
        Ok(())
    }
}

/// The paths of all nodes, sorted.
fn union(peers: &Peers<'_>, own: &[(Vec<Symbol>, u32)]) -> Result<Vec<Vec<Symbol>>, Failed> {
    // Each path once, as one string of its numbers.
    let mut all = Interner::new();
    let mut left = own.iter();
    let mut path_bytes = Vec::new();
    let mut write = |out: &mut Vec<u8>| match left.next() {
        Some((path, _)) => {
            path_bytes.clear();
            let symbols = path.iter().map(|symbol| symbol.rotate_left(KIND_BITS));
            symbols.for_each(|symbol| push_number(&mut path_bytes, symbol));
            super::wire::push_string(out, &path_bytes);
            false
        }
        None => true,
    };
    peers.to_all(&mut write, &mut |_, reader| {
        while !reader.is_empty() {
            all.intern(reader.string()?)?;
        }
        Ok(())
    })?;
    let path = |bytes| {
        let mut reader = Reader::new(bytes);
        let mut path = Vec::new();
        while !reader.is_empty() {
            path.push(reader.number()?.rotate_right(KIND_BITS));
        }
        Ok(path)
    };
    let mut paths: Vec<Vec<Symbol>> = all.iter().map(path).collect::<Result<_, Failed>>()?;
    paths.sort_unstable();
    Ok(paths)
}
