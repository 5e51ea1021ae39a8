//! Bulk load by several nodes: each has some of the quads at first and its part of the store at the end.
//!
//! What comes out is what [`build`](super::build) makes of all quads and [`Split`](crate::Split) of that, with the
//! same ids, but no node ever holds the whole.
//!
//! A term is first numbered where its hash says (`terms`); there vertices find their sets (`sets`) and homes
//! (`runs`), by which all nodes number them in one order (`numbers`). Then edges go, renumbered, to where their ends
//! are (`edges`), and all sum what they count (`whole`). What the nodes tell each other goes in rounds of bounded
//! bytes (`peers`), so that a node holds what it has parsed, its part, and some rounds.

mod edges;
mod exchange;
mod failed;
mod in_process;
mod joined;
mod kinds;
mod names;
mod numbers;
mod peers;
mod runs;
mod sets;
mod strings;
mod terms;
#[cfg(test)]
mod tests;
mod whole;
mod wire;

use jindou_model::{NodeId, TermId, TermKind};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use jindou_partition::ShardMap;

pub use exchange::{Exchange, ExchangeError};
pub use in_process::InProcess;

use edges::{Ids, Parsed, Rows, Segments};
use failed::Failed;
use joined::Joined;
use names::{Class, Classes, Graphs};
use numbers::Numbered;
use peers::Peers;
use sets::{Own, Sets};
use terms::{Extent, Owned, Sent};

use super::BulkSink;
use super::build::{Parts, Renumbering, assemble, sorted_types};
use super::cluster::{Symbol, types_of_paths};
use crate::clusters::{Clusters, Lists, SetCounts, Stretches};
use crate::graph_table::{GraphCoder, GraphTable};
use crate::kind_column::KeyKinds;
use crate::layer::{Layer, LayerKind};
use crate::node_part::{NodePart, WholeFigures, names_of};
use crate::runs::{NO_HOME, Runs};
use crate::whole_texts::WholeTexts;
use crate::{Base, StoreError};

/// Bytes that a node sends in one call of its [`Exchange`], and gets, about; unless said otherwise. It holds a few times
/// as much of what is on its way.
pub const ROUND_BYTES: usize = 16 << 20;
/// Segments are made on all cores of the edges of about so many rounds.
const ROUNDS_OF_SEGMENTS: usize = 4;

/// Which part of a store a node loads.
#[derive(Clone, Copy, Debug)]
pub struct DealtPart<'a> {
    /// Which node holds which shard: the same at all nodes, of as many nodes as exchange.
    pub map: &'a ShardMap,
    /// The node's name, which the part says.
    pub name: &'a str,
    /// Bytes that the node sends in one call of its [`Exchange`], and gets, about: see [`ROUND_BYTES`].
    pub round_bytes: usize,
}

impl<'a> DealtPart<'a> {
    /// The part of a node of this name, in rounds of [`ROUND_BYTES`].
    #[must_use]
    pub fn new(map: &'a ShardMap, name: &'a str) -> Self {
        Self {
            map,
            name,
            round_bytes: ROUND_BYTES,
        }
    }
}

/// Makes the node's part of the store of what the sinks of all nodes collected: all call it together. What
/// one of them fails at, all fail at, but for the last exchange, which has nothing but that all are there.
///
/// A node holds what it has parsed, and later its part, with some ten bytes a term for each of both; what is on its
/// way; and what all nodes have: sets, types, predicates and named graphs. An edge travels twice, to each of its ends; a
/// term from each node that has seen it, and then twice.
///
/// `documents` is the number of documents that the store has seen with this load; the largest that a node says counts.
///
/// # Errors
/// [`StoreError::TooLarge`] beyond 2^32 - 1 distinct vertices or literals in all; [`StoreError::Exchange`] where the
/// nodes lose each other; [`StoreError::OtherNode`] where another one fails.
///
/// # Panics
/// If the map has another number of nodes than the exchange.
///
/// ```
/// use jindou_partition::{ShardMap, Shards};
/// use jindou_store::bulk::BulkSink;
/// use jindou_store::bulk::dealt::{DealtPart, InProcess, build_part};
///
/// let map = ShardMap::dealt(Shards::new(8)?, 2)?;
/// let parts = std::thread::scope(|scope| {
///     let part = DealtPart::new(&map, "a node");
///     let load = |node| scope.spawn(move || build_part(vec![BulkSink::new()], 1, part, &node));
///     let nodes: Vec<_> = InProcess::nodes(2).into_iter().map(load).collect();
///     let parts = nodes.into_iter().map(|node| node.join().expect("no node panics"));
///     parts.collect::<Result<Vec<_>, _>>()
/// })?;
/// assert!(parts.iter().all(|part| part.node_part().is_some()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn build_part(
    sinks: Vec<BulkSink>,
    documents: u64,
    part: DealtPart<'_>,
    exchange: &dyn Exchange,
) -> Result<Base, StoreError> {
    assert_eq!(
        part.map.nodes().len(),
        exchange.nodes() as usize,
        "the map is of the nodes that exchange"
    );
    let peers = Peers::new(exchange, part.round_bytes);
    load(&peers, sinks, documents, part).map_err(|failed| {
        if let Failed::Here(error) = &failed {
            peers.tell(error);
        }
        failed.into_error()
    })
}

/// The most nodes: owners are remembered in so many bits.
const MOST_NODES: usize = 1 << u16::BITS;

fn load(
    peers: &Peers<'_>,
    sinks: Vec<BulkSink>,
    documents: u64,
    part: DealtPart<'_>,
) -> Result<Base, Failed> {
    if peers.nodes > MOST_NODES {
        return Err(Failed::too_large(format!(
            "{MOST_NODES} nodes load at most"
        )));
    }
    let joined = joined::join(sinks)?;
    let (identity, documents) = whole::agree(peers, documents)?;
    let (known, parsed, runs) = known(peers, part.map, joined)?;
    let table = GraphTable::new(known.graphs.clone(), Lists::default());
    let coder = (GraphCoder::new(table), &runs);
    let ids = Ids {
        map: part.map,
        here: NodeId(peers.here as u32),
        terms: Extent {
            vertices: known.vertices.kinds.len(),
            literals: known.literals.kinds.len(),
        },
        graphs: known.graphs.len() as u64,
    };
    let most_bytes = part.round_bytes.saturating_mul(ROUNDS_OF_SEGMENTS);
    let rows = edges::deal(peers, &ids, parsed, coder, most_bytes)?;
    let Rows { segments, named } = rows;
    let types = types_of_paths(
        known.paths.iter().map(Vec::as_slice),
        known.classes.each_ref().map(Vec::as_slice),
    );
    let mut layers = Vec::new();
    for (segments, types) in segments.into_iter().zip(&types) {
        layers.push(layer(peers, segments, types, &known.starts)?);
    }
    let mut base = assemble(Parts {
        vertices: known.vertices.tables,
        literals: known.literals.tables,
        predicate_terms: known.predicates,
        layers: <[Layer; 2]>::try_from(layers).expect("there are two"),
        named,
        runs,
        documents,
    });
    base.identity = identity;
    let texts = WholeTexts::of_load(known.vertices.kinds, known.literals.kinds);
    let whole = figures(peers, &base, texts, &known.names)?;
    for (kind, layer) in LayerKind::ALL.into_iter().zip(&mut base.layers) {
        let counts = std::sync::Arc::clone(&whole.layers[kind as usize]);
        *layer = std::mem::take(layer).of_node(counts);
    }
    let here = NodeId(peers.here as u32);
    let mut base = base.of_node(NodePart::new(part.map.clone(), here, part.name, whole));
    // What nodes sum is that of all.
    base.check_part().map_err(|_| Failed::malformed())?;
    let all: Vec<_> = base.predicates().collect();
    base.pack(&all)?;
    // Nobody has a part unless all have theirs.
    peers.meet()?;
    Ok(base)
}

/// What a node knows once all terms have their numbers.
struct Known {
    vertices: Numbered,
    literals: Numbered,
    /// The vertices that predicates are.
    predicates: Vec<TermId>,
    /// The ids of types, by layer and rank.
    classes: [Vec<u64>; 2],
    /// The ids of named graphs, sorted.
    graphs: Vec<u64>,
    /// The sets, and where their numbers begin, and one more.
    paths: Vec<Vec<Symbol>>,
    starts: Vec<u64>,
    /// The keys of those vertices whose names all nodes know.
    names: FxHashMap<TermId, Vec<u8>>,
}

/// Numbers all terms; what was parsed comes back in ids of the store.
fn known(
    peers: &Peers<'_>,
    map: &ShardMap,
    mut joined: Joined,
) -> Result<(Known, Parsed, Runs), Failed> {
    let iris = names::share_predicates(peers, &mut joined)?;
    let of_default = joined.edges[0].iter().map(|(_, class)| *class);
    let of_named = joined.named[0].iter().map(|(_, class, _)| *class);
    let classes = [
        names::share_classes(peers, &joined, of_default)?,
        names::share_classes(peers, &joined, of_named)?,
    ];
    let graphs = names::share_graphs(peers, &joined)?;
    let Joined {
        mut vertices,
        literals,
        edges,
        named,
        ..
    } = joined;
    let predicates = iris.iter().map(|iri| vertices.intern(iri));
    let predicates: Vec<u32> = predicates.collect::<Result<_, _>>()?;
    let (vertices, mut owned) = {
        let all = vertices;
        terms::deal(peers, map, &all)?
    };
    let (literals, mut owned_literals) = {
        let all = literals;
        terms::deal(peers, map, &all)?
    };

    let own = Own {
        vertices: &vertices,
        edges: &edges,
        named: &named,
        classes: &classes,
    };
    let Sets { paths, of_own } = sets::find(peers, &own, &owned)?;
    let homes = runs::homes(peers, &named, &vertices, &graphs, &owned)?;
    let (runs, run_of) = runs::find(peers, paths.len(), &of_own, &homes)?;
    drop((of_own, homes));
    let run_of = |number: u32| run_of[number as usize];
    let given = numbers::give(peers, map, &mut owned, &run_of, KeyKinds::VERTICES)?;
    // Every vertex is of a run.
    if runs.starts.last() != Some(&given.kinds.len()) {
        return Err(Failed::malformed());
    }
    let of_literals = KeyKinds::LITERALS;
    let given_literals = numbers::give(peers, map, &mut owned_literals, &|_| 0, of_literals)?;
    let renumbering = Renumbering {
        vertices: told(peers, &vertices, &owned, &given)?,
        literals: told(peers, &literals, &owned_literals, &given_literals)?,
    };
    drop((vertices, owned, literals, owned_literals));

    let extent = Extent {
        vertices: given.kinds.len(),
        literals: given_literals.kinds.len(),
    };
    let ids_of = |classes: &Classes| {
        let own = classes.rank_of.iter();
        let own = own.map(|(raw, rank)| (*rank, renumbering.term(*raw)));
        let is_sound = |rank: usize, id| extent.has(id) && classes.all[rank].may_be(id);
        names::ids_of_ranks(peers, classes.all.len(), own, &is_sound)
    };
    let class_ids = [ids_of(&classes[0])?, ids_of(&classes[1])?];
    let term = |number: u32| TermId::vertex(renumbering.vertices[number as usize].into());
    let own = graphs
        .own()
        .map(|(number, rank)| (rank, term(number).raw()));
    let is_sound = |_, id: TermId| extent.has(id) && id.kind() == TermKind::Vertex;
    let graph_ids = names::ids_of_ranks(peers, graphs.texts.len(), own, &is_sound)?;
    let predicates: Vec<TermId> = predicates.into_iter().map(term).collect();
    let mut sorted_ids = graph_ids.clone();
    sorted_ids.sort_unstable();
    let number = |id: &u64| sorted_ids.binary_search(id).expect("it is one of them") as u32;
    let graph_numbers: Vec<u32> = graph_ids.iter().map(number).collect();

    let names = predicates.iter().copied().zip(&iris);
    let names = names.chain(
        graph_ids
            .iter()
            .map(|raw| TermId::from_raw(*raw))
            .zip(&graphs.texts),
    );
    let of_classes = class_ids.iter().zip(&classes);
    let of_classes = of_classes.flat_map(|(ids, classes)| ids.iter().zip(&classes.all));
    let of_classes = of_classes.filter_map(|(raw, class): (_, &Class)| {
        let text = class.text.as_ref()?;
        Some((TermId::from_raw(*raw), text))
    });
    let names = names
        .chain(of_classes)
        .map(|(id, key)| (id, key.to_vec()))
        .collect();
    let starts = runs.starts_of_sets();
    let home = |rank: &u32| match *rank {
        NO_HOME => Some(NO_HOME),
        rank => graph_numbers.get(rank as usize).copied(),
    };
    let homes: Option<Vec<u32>> = runs.homes.iter().map(home).collect();
    let homes = homes.ok_or_else(Failed::malformed)?;
    let runs = Runs::new(runs.starts, homes, sorted_ids.len());
    let mut parsed = Parsed { edges, named };
    renumber(&mut parsed, &renumbering, &graphs, &graph_numbers);
    let known = Known {
        vertices: given,
        literals: given_literals,
        predicates,
        classes: class_ids,
        graphs: sorted_ids,
        paths,
        starts,
        names,
    };
    Ok((known, parsed, runs))
}

/// The numbers of the strings that this node has seen, as their owners say, who tell theirs.
fn told(
    peers: &Peers<'_>,
    sent: &Sent,
    owned: &Owned,
    given: &Numbered,
) -> Result<Vec<u32>, Failed> {
    let counts = owned.sent_by.iter().map(Vec::len).collect();
    let number = |node: usize, place: usize| given.of_own[owned.sent_by[node][place] as usize];
    let said = peers.numbers(counts, &number, (sent.counts(), given.kinds.len()))?;
    Ok(sent.by_number(&said))
}

/// Brings what was parsed into ids of the store; graphs get their numbers.
fn renumber(parsed: &mut Parsed, renumbering: &Renumbering, graphs: &Graphs, numbers: &[u32]) {
    // Types of the default graph are in the sets.
    parsed.edges[0] = Vec::new();
    parsed.edges.par_iter_mut().for_each(|edges| {
        for (subject, object) in edges {
            *subject = renumbering.term(*subject);
            *object = renumbering.term(*object);
        }
    });
    parsed.named.par_iter_mut().for_each(|quads| {
        for (subject, object, graph) in quads {
            *subject = renumbering.term(*subject);
            *object = renumbering.term(*object);
            let rank = graphs.rank_of[TermId::from_raw(*graph).number() as usize];
            *graph = numbers[rank as usize].into();
        }
    });
}

/// The layer of these segments of a node, of which the types of each set are given, and where the numbers of sets begin.
fn layer(
    peers: &Peers<'_>,
    segments: Segments,
    types: &[Vec<u64>],
    starts: &[u64],
) -> Result<Layer, Failed> {
    let stretches = Stretches::one_each(starts.to_vec()).indexed();
    let own = SetCounts::of_segments(&stretches, types.len(), &segments);
    let counts = whole::set_counts(peers, own)?;
    let is_empty = counts.edges[0].iter().all(Vec::is_empty) && types.iter().all(Vec::is_empty);
    let clusters = match is_empty {
        true => Clusters::none(segments[0].len()),
        false => Clusters::of_counts(stretches, sorted_types(types, |class| class), counts),
    };
    Ok(Layer::new(clusters, segments))
}

/// What is counted over the rows of all nodes, given this one's and the names that all know.
fn figures(
    peers: &Peers<'_>,
    own: &Base,
    texts: WholeTexts,
    names: &FxHashMap<TermId, Vec<u8>>,
) -> Result<WholeFigures, Failed> {
    let edges = whole::edge_figures(peers, own)?;
    Ok(WholeFigures {
        layers: edges.layers,
        named: whole::named_figures(peers, own.named(), own.predicate_count())?,
        digests: edges.digests,
        // Of terms that are loaded, each is there.
        strings: [texts.vertices.len(), texts.literals.len()],
        names: names_of(own, |id| names[&id].clone())?,
        texts,
    })
}
