//! Do nodes that load together get the parts of the store that one node would have loaded?

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use jindou_model::{NodeId, PredicateId};
use jindou_partition::ShardMap;
use jindou_store::bulk::dealt::{DealtPart, Exchange, ExchangeError, InProcess, build_part};
use jindou_store::{Base, Directory, DurabilityOptions, DurableStore, Snapshot, StoreError};
use oxrdf::vocab::rdf;
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, Quad};

use super::common::{
    DOCUMENTS, Random, SEEDS, SHARDS, check_places, check_terms, cut, figures, map_of, names,
    places, quads, quads_of, read, rows, sink_of, split, store_of, terms,
};

/// Bytes of a round that make a small load one of many rounds.
const SMALL_ROUND: usize = 600;

fn iri(text: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/{text}"))
}

/// Quads of whatever else may be: predicates and graphs that are subjects and objects, types that are literals or inline
/// values, inline objects of all sorts, blank nodes, graphs of few and of many subjects, terms that occur once.
fn odd_quads(random: &mut Random) -> Vec<Quad> {
    let default = GraphName::DefaultGraph;
    let label = iri("label");
    let mut quads = vec![
        Quad::new(rdf::TYPE, label.clone(), iri("p2"), default.clone()),
        Quad::new(label.clone(), rdf::TYPE, iri("Class0"), iri("g0")),
        Quad::new(
            iri("g0"),
            label.clone(),
            Literal::from("a graph"),
            iri("g1"),
        ),
        Quad::new(iri("v1"), label.clone(), rdf::TYPE, default.clone()),
        Quad::new(iri("v1"), rdf::TYPE, Literal::from("text"), default.clone()),
        Quad::new(iri("v2"), rdf::TYPE, Literal::from(7), default.clone()),
        Quad::new(iri("v2"), rdf::TYPE, Literal::from(7), iri("g3")),
        Quad::new(iri("v3"), rdf::TYPE, iri("v3"), iri("v3")),
        Quad::new(iri("v3"), iri("only/named"), Literal::from(true), iri("g3")),
    ];
    for number in 0..400_u32 {
        let blank = BlankNode::new_unchecked(format!("b{}", number % 97));
        let value = match random.below(4) {
            0 => Literal::from(number),
            1 => Literal::from(f64::from(number) / 4.0),
            2 => Literal::from(number % 2 == 0),
            _ => Literal::new_typed_literal("2024-02-29", oxrdf::vocab::xsd::DATE),
        };
        let graph = match random.below(3) {
            0 => default.clone(),
            1 => GraphName::from(BlankNode::new_unchecked("graph")),
            _ => GraphName::from(iri(&format!("small/{}", number / 3))),
        };
        quads.push(Quad::new(blank.clone(), iri("value"), value, graph.clone()));
        quads.push(Quad::new(
            iri(&format!("v{}", number % 50)),
            iri("to"),
            blank,
            graph,
        ));
    }
    // The same texts of several kinds, side by side in their order, and far more of one kind.
    for number in 0..1_500_u32 {
        let text = format!("{:04}", number / 3);
        let datatype = iri(&format!("type{}", number % 2));
        let value = match number {
            0..600 if number % 3 == 0 => Literal::new_typed_literal(text, datatype),
            0..600 if number % 3 == 1 => Literal::new_language_tagged_literal_unchecked(text, "en"),
            _ => Literal::from(text),
        };
        quads.push(Quad::new(iri("v4"), iri("says"), value, default.clone()));
    }
    // Many of one set at home in one graph, and some in another one.
    for number in 0..300 {
        let graph = if number < 200 { "home" } else { "g1" };
        let subject = iri(&format!("at/{number}"));
        quads.push(Quad::new(subject, iri("at"), iri("v9"), iri(graph)));
    }
    quads
}

/// Quads, each given to one of so many nodes, and some to others, too.
fn dealt(quads: &[Quad], nodes: u32, random: &mut Random) -> Vec<Vec<Quad>> {
    let mut dealt = vec![Vec::new(); nodes as usize];
    for quad in quads {
        dealt[random.below(nodes.into()) as usize].push(quad.clone());
    }
    dealt
}

/// Loads what each node has.
fn load<E: Exchange + Send>(
    map: &ShardMap,
    dealt: &[Vec<Quad>],
    round_bytes: usize,
    exchanges: Vec<E>,
) -> Vec<Result<Base, StoreError>> {
    std::thread::scope(|scope| {
        let nodes = exchanges.into_iter().zip(dealt);
        let node = |(exchange, quads): (E, &Vec<Quad>)| {
            let quads = quads.clone();
            scope.spawn(move || {
                let name = format!("n{}", exchange.here().0);
                let part = DealtPart {
                    round_bytes,
                    ..DealtPart::new(map, &name)
                };
                // As if two threads had parsed.
                let (one, other) = quads.split_at(quads.len() / 2);
                let sinks = vec![sink_of(one), sink_of(other)];
                build_part(sinks, DOCUMENTS, part, &exchange)
            })
        };
        let threads: Vec<_> = nodes.map(node).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|base| base.expect("no node panics")).collect()
    })
}

/// Loads quads on so many nodes and compares the parts with those into which a whole store is split.
fn check(quads_of_all: &[Quad], nodes: u32, round_bytes: usize, random: &mut Random, at: &str) {
    // Quads that some nodes have and others, too, count as often.
    let repeated = quads_of_all.iter().filter(|_| random.below(5) == 0);
    let repeated: Vec<Quad> = repeated.cloned().collect();
    let all: Vec<Quad> = quads_of_all.iter().cloned().chain(repeated).collect();
    let folder = store_of(&all);
    let whole = read(&folder.path().join("store")).unwrap();
    let map = map_of(nodes);
    let expected = split(folder.path(), &map).unwrap();
    let dealt = dealt(&all, nodes, random);
    let bases = load(&map, &dealt, round_bytes, InProcess::nodes(nodes));
    let mut parts: Vec<Snapshot> = Vec::new();
    for (node, base) in map.nodes().zip(bases) {
        let base = base.unwrap();
        let location = folder.path().join(format!("dealt-{}", node.0));
        let directory = Directory::create(&location).unwrap();
        base.verify().unwrap();
        DurableStore::create(directory, DurabilityOptions::default(), &base).unwrap();
        DurableStore::verify(&Directory::open_to_read(&location).unwrap()).unwrap();
        parts.push(read(&location).unwrap());
    }
    let (all_terms, all_names) = (terms(&whole), names(&whole));
    let all_places = places(&whole);
    for ((node, part), expected) in map.nodes().zip(&parts).zip(&expected) {
        let at = format!("{at}, {node:?}");
        let said = part.base().node_part().unwrap();
        assert_eq!((said.map(), said.node()), (&map, node), "{at}");
        assert_eq!(said.name(), format!("n{}", node.0), "{at}");
        assert_eq!(part.epoch(), parts[0].epoch(), "{at}");
        assert_eq!(figures(part), figures(expected), "{at}");
        assert!(rows(part) == rows(expected), "{at}: rows");
        let of_both = [part, expected].map(|part| quads(part, PredicateId::TYPE));
        assert!(of_both[0] == of_both[1], "{at}: quads");
        assert_eq!(part.dictionary_terms(), whole.dictionary_terms(), "{at}");
        check_terms(part, (&all_terms, &all_names), (&map, node), &at);
        check_places(part, &all_places, &at);
        let footprints = [part, expected].map(|part| part.base().footprint());
        assert_eq!(footprints[0].segments, footprints[1].segments, "{at}");
        assert_eq!(footprints[0].clusters, footprints[1].clusters, "{at}");
        let digests = |part, node| cut(part, &map, node).digests;
        assert_eq!(digests(part, node), digests(&parts[0], NodeId(0)), "{at}");
    }
}

#[test]
fn nodes_that_load_together_have_the_parts_of_the_whole() {
    for seed in SEEDS {
        let mut random = Random::of(seed);
        let mut all = quads_of(seed, 3_000);
        all.extend(odd_quads(&mut random));
        for (nodes, round_bytes) in [
            (1, 1 << 20),
            (2, SMALL_ROUND),
            (3, 1 << 20),
            (5, 20_000),
            (SHARDS, 1),
        ] {
            let at = format!("seed {seed}, {nodes} nodes");
            println!("{at}");
            check(&all, nodes, round_bytes, &mut random, &at);
        }
    }
}

#[test]
fn nodes_may_have_nothing() {
    let mut random = Random::of(11);
    let few = quads_of(11, 2);
    for nodes in [1, 3] {
        for quads in [&[], &few[..], &few[2..]] {
            let at = format!("{} quads, {nodes} nodes", quads.len());
            check(quads, nodes, 1 << 20, &mut random, &at);
        }
    }
}

#[test]
fn only_quads_of_named_graphs_are_loaded_and_only_types_too() {
    let mut random = Random::of(12);
    let all = quads_of(12, 2_000);
    let is_named = |quad: &&Quad| !quad.graph_name.is_default_graph();
    let named: Vec<Quad> = all.iter().filter(is_named).cloned().collect();
    check(&named, 3, 5_000, &mut random, "named graphs");
    let is_type = |quad: &&Quad| quad.predicate == rdf::TYPE;
    let types: Vec<Quad> = all.iter().filter(is_type).cloned().collect();
    check(&types, 3, 5_000, &mut random, "types");
}

#[test]
fn pairs_of_sets_are_too_many_where_those_of_all_nodes_are() {
    const SETS: u32 = 4_096;
    let mut random = Random::of(15);
    let mut all = Vec::new();
    let mut add = |subject: u32, predicate: String, object: u32| {
        let [subject, object] = [subject, object].map(|number| iri(&format!("v{number}")));
        let graph = GraphName::DefaultGraph;
        all.push(Quad::new(subject, iri(&predicate), object, graph));
    };
    for number in 0..SETS {
        // Each is of a set of its own.
        for bit in (0..12).filter(|bit| number >> bit & 1 == 1) {
            add(number, format!("bit{bit}"), SETS);
        }
        // Of three nodes none has more than are counted, but all together have; then each has; and at last none.
        add(number, "some".to_owned(), number * 7 % SETS);
        for step in 0..4 {
            add(number, "many".to_owned(), (number * 5 + step * 77) % SETS);
        }
        if number < 1_500 {
            add(number, "few".to_owned(), number * 3 % SETS);
        }
    }
    check(&all, 3, 1 << 20, &mut random, "pairs");
    let folder = store_of(&all);
    let whole = read(&folder.path().join("store")).unwrap();
    let counted = |predicate: &str| {
        let predicate = whole.find_predicate(&format!("http://e/{predicate}"));
        let layer = whole.default_graph();
        layer.edges_between(predicate.unwrap(), &[], &[])
    };
    assert_eq!(
        ["some", "many", "few"].map(counted),
        [None, None, Some(1_500.0)]
    );
}

#[test]
fn a_large_load_goes_in_small_rounds() {
    let mut random = Random::of(13);
    let all = large_quads(13, 300_000);
    check(&all, 3, 64 << 10, &mut random, "large");
}

/// Quads of many vertices and some hundred predicates.
fn large_quads(seed: u64, count: usize) -> Vec<Quad> {
    let mut random = Random::of(seed);
    let quad = |_| {
        let subject = random.below(count as u64 / 8);
        let predicate = subject % 7 * 30 + random.below(30);
        let graph = match random.below(4) {
            0 => iri(&format!("g{}", subject / 100)).into(),
            _ => GraphName::DefaultGraph,
        };
        let subject = iri(&format!("resource/{subject}"));
        match predicate % 9 {
            0 => Quad::new(subject, rdf::TYPE, iri(&format!("C{predicate}")), graph),
            1..4 => {
                let text = Literal::from(format!("some text {}", random.below(90_000)));
                Quad::new(subject, iri(&format!("p{predicate}")), text, graph)
            }
            _ => {
                let object = iri(&format!("resource/{}", random.below(count as u64 / 8)));
                Quad::new(subject, iri(&format!("p{predicate}")), object, graph)
            }
        }
    };
    (0..count).map(quad).collect()
}

/// Bits that are changed at each call, one at a time.
const FLIPS_OF_CALL: usize = 20;

/// How a call of an exchange goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Nothing is exchanged.
    Nothing,
    /// A message that came is cut short.
    Short,
    /// A bit of a message that came is another one: that of a byte, by a number of both.
    Flipped(usize),
}

/// An exchange of which one call may go wrong, and which counts its calls.
struct Failing {
    inner: InProcess,
    calls: Arc<AtomicUsize>,
    at: Option<(usize, Fault)>,
}

#[derive(Debug, thiserror::Error)]
#[error("the cable was pulled")]
struct Pulled;

impl Exchange for Failing {
    fn nodes(&self) -> u32 {
        self.inner.nodes()
    }

    fn here(&self) -> NodeId {
        self.inner.here()
    }

    fn exchange(&self, to: &mut [Vec<u8>], got: &mut [Vec<u8>]) -> Result<(), ExchangeError> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let fault = self.at.filter(|(at, _)| *at == call);
        if fault == Some((call, Fault::Nothing)) {
            return Err(ExchangeError::new(Pulled));
        }
        self.inner.exchange(to, got)?;
        match fault {
            Some((_, Fault::Short)) => got[0].clear(),
            Some((_, Fault::Flipped(at))) => {
                // What a node has for itself is on no way.
                let others = got.len() - 1;
                let from = (self.inner.here().0 as usize + 1 + at % others) % got.len();
                let bytes = got[from].len();
                if let Some(byte) = got[from].get_mut(at / 8 % bytes.max(1)) {
                    *byte ^= 1 << (at % 8);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The exchanges of so many nodes, and how many calls that of node 0 has made.
fn failing(nodes: u32, at: Option<(NodeId, usize, Fault)>) -> (Vec<Failing>, Arc<AtomicUsize>) {
    let node = |inner: InProcess| Failing {
        at: at
            .filter(|(node, ..)| *node == inner.here())
            .map(|(_, call, fault)| (call, fault)),
        inner,
        calls: Arc::default(),
    };
    let nodes: Vec<Failing> = InProcess::nodes(nodes).into_iter().map(node).collect();
    let calls = Arc::clone(&nodes[0].calls);
    (nodes, calls)
}

#[test]
fn what_fails_at_one_node_fails_at_all() {
    const NODES: u32 = 3;
    const ROUND_BYTES: usize = 4_000;
    let map = map_of(NODES);
    let mut random = Random::of(14);
    let dealt = dealt(&quads_of(14, 60), NODES, &mut random);
    let (exchanges, calls) = failing(NODES, None);
    let bases = load(&map, &dealt, ROUND_BYTES, exchanges);
    assert!(bases.iter().all(Result::is_ok));
    let calls = calls.load(Ordering::Relaxed);
    assert!(calls > 20, "{calls} calls");
    for call in 0..calls {
        for fault in [Fault::Nothing, Fault::Short] {
            let node = NodeId(call as u32 % NODES);
            let (exchanges, _) = failing(NODES, Some((node, call, fault)));
            let bases = load(&map, &dealt, ROUND_BYTES, exchanges);
            for (here, base) in map.nodes().zip(bases) {
                let at = format!("call {call} of {node:?}, {here:?}");
                match (base, fault) {
                    (Err(StoreError::Exchange(_)), Fault::Nothing) => {}
                    (Err(StoreError::Exchange(_)), Fault::Short) if here == node => {}
                    (Err(StoreError::OtherNode { node: of, .. }), Fault::Short) if of == node => {}
                    // Of the last call, nobody hears whether it came.
                    (Ok(_), Fault::Short) if here != node && call + 1 == calls => {}
                    (base, _) => panic!("{at}: {:?}", base.err()),
                }
            }
        }
    }
}

#[test]
fn whatever_a_node_sends_no_other_one_panics() {
    const NODES: u32 = 3;
    let map = map_of(NODES);
    for seed in [16, 17] {
        let mut random = Random::of(seed);
        let mut all = quads_of(seed, 60);
        all.extend(odd_quads(&mut random).into_iter().take(60));
        let dealt = dealt(&all, NODES, &mut random);
        let (exchanges, calls) = failing(NODES, None);
        load(&map, &dealt, 4_000, exchanges);
        for call in 0..calls.load(Ordering::Relaxed) {
            for _ in 0..FLIPS_OF_CALL {
                let fault = Fault::Flipped(random.below(1 << 40) as usize);
                let node = NodeId(random.below(NODES.into()) as u32);
                println!("seed {seed}: call {call} of {node:?}, {fault:?}");
                let (exchanges, _) = failing(NODES, Some((node, call, fault)));
                load(&map, &dealt, 4_000, exchanges);
            }
        }
    }
}

#[test]
fn an_error_names_its_cause() {
    let (exchanges, _) = failing(2, Some((NodeId(0), 0, Fault::Nothing)));
    let bases = load(&map_of(2), &[Vec::new(), Vec::new()], 1 << 20, exchanges);
    let errors = bases
        .into_iter()
        .map(|base| base.err().unwrap().to_string());
    let errors: Vec<String> = errors.collect();
    assert!(errors[0].contains("the cable was pulled"), "{errors:?}");
    assert!(errors[1].contains("node 0 has left"), "{errors:?}");
}
