//! What does a load cost that several nodes do together, beside that of one process?
//!
//! `cargo run --release -p jindou-store --example dealt_load_cost -- [QUADS] [NODES] [ROUND_BYTES]` loads the same
//! random quads, of each subject at a random node, by as many threads of this process as there are nodes; with no nodes, as
//! one process does. It prints seconds, CPU seconds and bytes at most, without those of parsing.

use std::error::Error;
use std::time::Instant;

use jindou_partition::{ShardMap, Shards};
use jindou_store::bulk::dealt::{DealtPart, InProcess, ROUND_BYTES, build_part};
use jindou_store::bulk::{BulkSink, build};
use oxrdf::vocab::rdf;
use oxrdf::{GraphName, Literal, NamedNode, Quad, Term};

const SEED: u64 = 1;
const SHARDS: u32 = 64;
const KINDS: u64 = 7;
const SLOTS: u64 = 8;

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

fn iri(kind: &str, number: u64) -> NamedNode {
    NamedNode::new_unchecked(format!("http://www.example.org/{kind}/{number}"))
}

/// What is said of a subject, of which there are so many: a type, two texts and five edges to one subject in fifty, of
/// predicates that its kind has, each with nine chances in ten. One subject in eight is in a named graph, of which
/// each has a thousand.
fn quads_of(random: &mut Random, subject: u64, subjects: u64, take: &mut dyn FnMut(Quad)) {
    let kind = subject % KINDS;
    let graph = match random.below(8) {
        0 => iri("graph", subject / 8_000).into(),
        _ => GraphName::DefaultGraph,
    };
    for slot in 0..SLOTS {
        if random.below(10) == 0 {
            continue;
        }
        let (predicate, object): (_, Term) = match slot {
            0 => (rdf::TYPE.into_owned(), iri("class", kind).into()),
            1..3 => {
                let text = format!("a text of some length, {}", random.below(subjects * 4));
                let literal = Literal::from(text);
                (iri("text", kind * SLOTS + slot), literal.into())
            }
            _ => {
                let object = random.below(subjects / 50) * 50;
                (
                    iri("to", kind * SLOTS + slot),
                    iri("resource", object).into(),
                )
            }
        };
        let subject = iri("resource", subject);
        take(Quad::new(subject, predicate, object, graph.clone()));
    }
}

/// Bytes of the process that were in memory at most, and CPU seconds, as the operating system says.
fn usage() -> Result<(u64, f64), Box<dyn Error>> {
    const TICKS_A_SECOND: f64 = 100.0;
    let status = std::fs::read_to_string("/proc/self/status")?;
    let most = status.lines().find(|line| line.starts_with("VmHWM"));
    let most = most.and_then(|line| line.split_whitespace().nth(1));
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = fields.split(' ').skip(11).take(2).map(str::parse::<u64>);
    let ticks: u64 = ticks.sum::<Result<u64, _>>()?;
    let most: u64 = most.unwrap_or("0").parse()?;
    Ok((most * 1024, ticks as f64 / TICKS_A_SECOND))
}

fn main() -> Result<(), Box<dyn Error>> {
    let numbers = std::env::args().skip(1).map(|argument| argument.parse());
    let numbers: Vec<u64> = numbers.collect::<Result<_, _>>()?;
    let number = |place: usize, default| numbers.get(place).copied().unwrap_or(default);
    let (quads, nodes) = (number(0, 3_000_000), number(1, 3));
    let round_bytes = number(2, ROUND_BYTES as u64) as usize;
    let mut random = Random(SEED);
    let mut sinks: Vec<BulkSink> = (0..nodes.max(1)).map(|_| BulkSink::new()).collect();
    let subjects = quads / SLOTS;
    for subject in 0..subjects {
        let sink = &mut sinks[random.below(nodes.max(1)) as usize];
        let mut taken = Ok(());
        quads_of(&mut random, subject, subjects, &mut |quad| {
            taken = sink
                .quad(quad.as_ref())
                .and(std::mem::replace(&mut taken, Ok(())));
        });
        taken?;
    }
    let parsed: u64 = sinks.iter().map(BulkSink::bytes).sum();
    let (before, begin) = (usage()?, Instant::now());
    let bases = match nodes {
        0 => vec![build(sinks, 1)?],
        _ => {
            let map = ShardMap::dealt(Shards::new(SHARDS)?, nodes as u32)?;
            let part = DealtPart {
                round_bytes,
                ..DealtPart::new(&map, "a node")
            };
            let exchanges = InProcess::nodes(nodes as u32).into_iter();
            std::thread::scope(|scope| {
                let node = |(sink, exchange)| {
                    scope.spawn(move || build_part(vec![sink], 1, part, &exchange))
                };
                let threads: Vec<_> = sinks.into_iter().zip(exchanges).map(node).collect();
                let joined = threads.into_iter().map(|thread| thread.join());
                let bases = joined.map(|base| base.expect("no node panics"));
                bases.collect::<Result<Vec<_>, _>>()
            })?
        }
    };
    let (after, seconds) = (usage()?, begin.elapsed().as_secs_f64());
    let made: usize = bases.iter().map(|base| base.footprint().total()).sum();
    println!(
        "{quads} quads, {nodes} nodes: {seconds:.2} s, {:.2} CPU s; parsed {} MB, made {} MB, at most {} MB",
        after.1 - before.1,
        parsed >> 20,
        made >> 20,
        after.0 >> 20,
    );
    Ok(())
}
