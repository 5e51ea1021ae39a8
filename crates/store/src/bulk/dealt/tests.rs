//! Is what every node has of the whole what a load of one process has?

use oxrdf::{GraphName, Literal, NamedNode, Quad};

use super::*;
use crate::bulk::build;

const NODES: u32 = 3;

fn iri(kind: &str, number: usize) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/{kind}{number}"))
}

/// Vertices of some sets, at home in graphs of which each has many or few of a set.
fn quads() -> Vec<Quad> {
    let mut quads = Vec::new();
    for number in 0..4_000 {
        let graph = match number % 10 {
            0..4 => GraphName::DefaultGraph,
            4..7 => iri("many", number % 3).into(),
            _ => iri("few", number / 40).into(),
        };
        let subject = iri("s", number / 2);
        let predicate = iri("p", number / 2 % 5);
        let object = iri("s", number * 7 % 300);
        quads.push(Quad::new(subject.clone(), predicate, object, graph.clone()));
        let text = Literal::from(format!("text {}", number % 700));
        quads.push(Quad::new(
            subject.clone(),
            iri("text", 0),
            text,
            graph.clone(),
        ));
        if number % 3 == 0 {
            let class = iri("C", number % 4);
            quads.push(Quad::new(subject, oxrdf::vocab::rdf::TYPE, class, graph));
        }
    }
    quads
}

fn sink<'q>(quads: impl Iterator<Item = &'q Quad>) -> BulkSink {
    let mut sink = BulkSink::new();
    quads.for_each(|quad| sink.quad(quad.as_ref()).expect("there are few terms"));
    sink
}

/// Where each run begins and ends, and its home.
fn list(runs: &Runs) -> Vec<(std::ops::Range<u64>, u32)> {
    (0..runs.len())
        .map(|run| (runs.members(run), runs.home_of(run)))
        .collect()
}

#[test]
fn runs_graphs_and_predicates_are_those_of_one_process() {
    let quads = quads();
    let whole = build(vec![sink(quads.iter())], 7).expect("there are few terms");
    let map = ShardMap::dealt(jindou_partition::Shards::new(8).expect("of two"), NODES);
    let map = map.expect("fewer nodes than shards");
    let parts: Vec<Base> = std::thread::scope(|scope| {
        let (map, quads) = (&map, &quads);
        let node = |exchange: InProcess| {
            scope.spawn(move || {
                let here = exchange.here().0 as usize;
                let own = quads.iter().skip(here).step_by(NODES as usize);
                let part = DealtPart {
                    round_bytes: 2_000,
                    ..DealtPart::new(map, "node")
                };
                // One of them has seen more documents.
                build_part(vec![sink(own)], 5 + here as u64, part, &exchange)
            })
        };
        let threads: Vec<_> = InProcess::nodes(NODES).into_iter().map(node).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        let bases = joined.map(|base| base.expect("no node panics"));
        bases.map(|base| base.expect("nothing fails")).collect()
    });
    assert!(list(&whole.runs).len() > 20, "homes make runs");
    for part in &parts {
        assert_eq!(list(&part.runs), list(&whole.runs));
        assert_eq!(part.runs.text_ordered(), whole.runs.text_ordered());
        assert_eq!(part.named.graphs.len(), whole.named.graphs.len());
        for number in 0..whole.named.graphs.len() as u32 {
            assert_eq!(part.named.id(number), whole.named.id(number));
            let at_home = [part, &whole].map(|base| base.runs.at_home(number).ranges());
            assert_eq!(at_home[0], at_home[1]);
        }
        assert_eq!(part.predicate_terms, whole.predicate_terms);
        assert_eq!(part.documents, 7);
        assert_eq!(part.identity, parts[0].identity);
    }
}
