//! What all nodes know by its text: predicates, types, and named graphs.

use jindou_dictionary::Interner;
use jindou_model::{TermId, TermKind};
use rustc_hash::{FxHashMap, FxHashSet};

use super::failed::Failed;
use super::joined::Joined;
use super::peers::Peers;
use super::wire::{Reader, push_number, push_string};
use crate::bulk::build::predicates_in_order;
use crate::bulk::cluster::class_order;

/// A type, whatever its number is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Class {
    /// Its key, if it is in the dictionary.
    pub(super) text: Option<Box<[u8]>>,
    /// An inline value; of what is in the dictionary, the first of its kind.
    pub(super) raw: u64,
}

impl Class {
    /// True of ids that it may have: an inline value is its own.
    pub(super) fn may_be(&self, id: TermId) -> bool {
        match self.text {
            Some(_) => id.kind() == TermId::from_raw(self.raw).kind(),
            None => id.raw() == self.raw,
        }
    }
}

/// Sends strings to all nodes; all that are sent, once each, in no order.
fn strings_of_all<'s>(
    peers: &Peers<'_>,
    mut own: impl Iterator<Item = &'s [u8]>,
) -> Result<Interner, Failed> {
    let mut all = Interner::new();
    let mut write = |out: &mut Vec<u8>| match own.next() {
        Some(string) => {
            push_string(out, string);
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
    Ok(all)
}

/// Brings predicates into the order of those of all nodes, each of them a vertex; their IRIs in order.
pub(super) fn share_predicates(
    peers: &Peers<'_>,
    joined: &mut Joined,
) -> Result<Vec<Box<[u8]>>, Failed> {
    let of_all = strings_of_all(peers, joined.predicates.iter())?;
    let mut all = Interner::new();
    // `rdf:type` is the first of any sink's.
    for iri in joined.predicates.iter().take(1).chain(of_all.iter()) {
        all.intern(iri)?;
    }
    let order = predicates_in_order(&all);
    let iris: Vec<Box<[u8]>> = order.iter().map(|number| all.get(*number).into()).collect();
    let (mut edges, mut named) = (Vec::new(), Vec::new());
    for iri in &iris {
        let own = joined.predicates.find(iri).map(|number| number as usize);
        let of_own = own.map(|number| {
            let edges = std::mem::take(&mut joined.edges[number]);
            (edges, std::mem::take(&mut joined.named[number]))
        });
        let (of_default, of_named) = of_own.unwrap_or_default();
        edges.push(of_default);
        named.push(of_named);
    }
    (joined.edges, joined.named) = (edges, named);
    joined.predicates = Interner::new();
    Ok(iris)
}

/// The types of a layer, as all nodes order them.
pub(super) struct Classes {
    /// By rank.
    pub(super) all: Vec<Class>,
    /// The ranks of those that this node has seen, by its own ids.
    pub(super) rank_of: FxHashMap<u64, u32>,
}

/// The class of an own id.
fn class_of(joined: &Joined, raw: u64) -> Class {
    let id = TermId::from_raw(raw);
    let number = id.number() as u32;
    let (text, raw) = match id.kind() {
        TermKind::Vertex => (Some(joined.vertices.get(number)), TermId::vertex(0).raw()),
        TermKind::Literal => (Some(joined.literals.get(number)), TermId::literal(0).raw()),
        _ => (None, raw),
    };
    let text = text.map(Box::from);
    Class { text, raw }
}

/// The types of all nodes, of which `own` are this node's edges' (objects of `rdf:type`): how often each occurs in
/// all decides its rank.
pub(super) fn share_classes(
    peers: &Peers<'_>,
    joined: &Joined,
    own: impl Iterator<Item = u64>,
) -> Result<Classes, Failed> {
    let mut counts: FxHashMap<u64, u64> = FxHashMap::default();
    own.for_each(|class| *counts.entry(class).or_default() += 1);
    let mut left = counts.iter();
    let mut write = |out: &mut Vec<u8>| match left.next() {
        Some((raw, count)) => {
            let class = class_of(joined, *raw);
            push_number(out, *count);
            push_number(out, class.raw);
            push_number(out, class.text.is_some().into());
            push_string(out, class.text.as_deref().unwrap_or_default());
            false
        }
        None => true,
    };
    let mut all: FxHashMap<Class, u64> = FxHashMap::default();
    let mut take = |_, reader: &mut Reader<'_>| {
        while !reader.is_empty() {
            let (count, raw) = (reader.number()?, reader.number()?);
            let has_text = reader.number()? == 1;
            let text = reader.string()?;
            let text = has_text.then(|| Box::from(text));
            let sum = all.entry(Class { text, raw }).or_default();
            *sum = count.saturating_add(*sum);
        }
        Ok(())
    };
    peers.to_all(&mut write, &mut take)?;
    let mut all: Vec<(Class, u64)> = all.into_iter().collect();
    all.sort_unstable_by(|(class, count), (other, others)| {
        class_order(
            (*count as usize, class.text.as_deref(), class.raw),
            (*others as usize, other.text.as_deref(), other.raw),
        )
    });
    let all: Vec<Class> = all.into_iter().map(|(class, _)| class).collect();
    let ranks: FxHashMap<&Class, u32> = all.iter().zip(0..).collect();
    let rank_of = |raw: &u64| (*raw, ranks[&class_of(joined, *raw)]);
    let rank_of = counts.keys().map(rank_of).collect();
    Ok(Classes { all, rank_of })
}

/// The named graphs of all nodes.
pub(super) struct Graphs {
    /// By rank: in the order of their texts.
    pub(super) texts: Vec<Box<[u8]>>,
    /// The ranks of those that this node has seen, by its own numbers of vertices; nothing without graphs.
    pub(super) rank_of: Vec<u32>,
}

/// What stands for no rank.
const NONE: u32 = u32::MAX;

impl Graphs {
    /// The own numbers of the graphs that this node has seen, each with its rank.
    pub(super) fn own(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let all = (0..).zip(self.rank_of.iter().copied());
        all.filter(|(_, rank)| *rank != NONE)
    }
}

/// The named graphs of all nodes.
pub(super) fn share_graphs(peers: &Peers<'_>, joined: &Joined) -> Result<Graphs, Failed> {
    let has_own = joined.named.iter().any(|quads| !quads.is_empty());
    let mut rank_of = vec![NONE; if has_own { joined.vertices.len() } else { 0 }];
    for (_, _, graph) in joined.named.iter().flatten() {
        rank_of[TermId::from_raw(*graph).number() as usize] = 0;
    }
    let own: Vec<u32> = (0..rank_of.len() as u32)
        .filter(|number| rank_of[*number as usize] != NONE)
        .collect();
    let of_all = strings_of_all(peers, own.iter().map(|number| joined.vertices.get(*number)))?;
    let mut texts: Vec<Box<[u8]>> = of_all.iter().map(Box::from).collect();
    drop(of_all);
    texts.sort_unstable();
    for number in own {
        let text = joined.vertices.get(number);
        let rank = texts.binary_search_by(|other| (**other).cmp(text));
        rank_of[number as usize] = rank.expect("all have it") as u32;
    }
    Ok(Graphs { texts, rank_of })
}

/// The ids that all nodes have of what they know by rank, so many, each another one: each node tells of those that it
/// has seen. `is_sound` says whether a rank may have an id.
pub(super) fn ids_of_ranks(
    peers: &Peers<'_>,
    count: usize,
    own: impl Iterator<Item = (u32, u64)>,
    is_sound: &dyn Fn(usize, TermId) -> bool,
) -> Result<Vec<u64>, Failed> {
    let mut ids = vec![TermId::NONE.raw(); count];
    let mut own = own;
    let mut write = |out: &mut Vec<u8>| match own.next() {
        Some((rank, raw)) => {
            push_number(out, rank.into());
            push_number(out, raw);
            false
        }
        None => true,
    };
    peers.to_all(&mut write, &mut |_, reader| {
        while !reader.is_empty() {
            let rank = reader.narrow()? as usize;
            let raw = reader.number()?;
            *ids.get_mut(rank).ok_or_else(Failed::malformed)? = raw;
        }
        Ok(())
    })?;
    // Some node has seen each.
    let mut numbered = ids.iter().enumerate();
    let are_sound = numbered.all(|(rank, raw)| is_sound(rank, TermId::from_raw(*raw)));
    let different: FxHashSet<u64> = ids.iter().copied().collect();
    match are_sound && different.len() == count {
        true => Ok(ids),
        false => Err(Failed::malformed()),
    }
}
