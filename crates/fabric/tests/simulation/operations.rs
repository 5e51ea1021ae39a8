//! Is each batch of reads, writes and atomic operations done or an error, and is what it says true?

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jindou_fabric::remote::{
    Batch, Completed, Fabric, Interrupt, NodeId, OperationId, Registration, RemoteMemory,
    SharedMemory,
};
use jindou_fabric::sim::{SimulatedFabric, Simulation, SimulationOptions};
use jindou_fabric::{FabricError, Region};

use crate::random::Random;

const NODES: u64 = 3;
const REGION_BYTES: usize = 2000;
/// Words of a run that one batch writes, all with the same value.
const RUN: usize = 40;
/// More events than any case has.
const MOST_EVENTS: u64 = 1_000_000;

/// What a case came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) done: u64,
    pub(crate) lost: u64,
    pub(crate) trace: u64,
}

/// What a node offers: bytes to read, a counter, a lock, and a run of words.
struct Offer {
    region: Region,
    words: SharedMemory,
    registrations: [Registration; 2],
    /// Additions that were acknowledged, and those that were tried.
    added: (u64, u64),
    /// Runs that were begun.
    written: Vec<u64>,
}

/// The same at a peer.
struct Opened {
    region: RemoteMemory,
    words: RemoteMemory,
}

/// What a batch does at one node.
struct Asked {
    node: usize,
    read: (OperationId, usize, usize),
    add: OperationId,
    swap: (OperationId, u64),
    run: u64,
}

const COUNTER: u64 = 0;
const LOCK: u64 = 8;
const RUN_START: u64 = 16;

fn offer(fabric: &SimulatedFabric, random: &mut Random) -> Offer {
    let bytes: Vec<u8> = (0..REGION_BYTES).map(|_| random.next() as u8).collect();
    let region = Region::copy_from(&bytes);
    let (words, shared) = fabric.share(2 + RUN).unwrap();
    let registrations = [fabric.register(&region).unwrap(), shared];
    Offer {
        region,
        words,
        registrations,
        added: (0, 0),
        written: vec![0],
    }
}

/// Operations at random nodes, all in one batch.
fn ask(
    opened: &[Opened],
    offers: &mut [Offer],
    own: u64,
    random: &mut Random,
) -> (Batch, Vec<Asked>) {
    let mut batch = Batch::new();
    let mut asked = Vec::new();
    for _ in 0..=random.below(3) {
        let node = random.below(NODES) as usize;
        let (there, offer) = (&opened[node], &mut offers[node]);
        let start = random.below(REGION_BYTES as u64) as usize;
        let length = random.below((REGION_BYTES - start) as u64 + 1) as usize;
        let read = batch.read(&there.region, start as u64, length).unwrap();
        let add = batch.fetch_add(&there.words, COUNTER, 1).unwrap();
        let swap = batch.compare_and_swap(&there.words, LOCK, 0, own).unwrap();
        let run = random.next();
        let _ = batch.write(&there.words, RUN_START, &[run; RUN]).unwrap();
        offer.added.1 += 1;
        offer.written.push(run);
        asked.push(Asked {
            node,
            read: (read, start, length),
            add,
            swap: (swap, own),
            run,
        });
    }
    (batch, asked)
}

/// The answers of a batch that was done.
fn check(completed: &Completed, asked: &[Asked], offers: &mut [Offer], holders: &mut [u64]) {
    for one in asked {
        let offer = &mut offers[one.node];
        let (read, start, length) = one.read;
        assert_eq!(completed.bytes(read), &offer.region[start..start + length]);
        offer.added.0 += 1;
        assert!(completed.word(one.add) < offer.added.1);
        let (swap, own) = one.swap;
        let holder = &mut holders[one.node];
        match completed.word(swap) {
            0 => {
                assert_eq!(*holder, 0, "two nodes have one lock");
                *holder = own;
            }
            before => assert!(before <= NODES && (*holder == 0 || *holder == before)),
        }
        assert!(offer.written.contains(&one.run));
    }
}

/// Counters and runs of nodes that are alive are what the batches made of them.
fn check_memory(offers: &[Offer], fabrics: &[Arc<SimulatedFabric>]) {
    for (offer, fabric) in offers.iter().zip(fabrics) {
        if fabric.doorbell().is_err() {
            continue;
        }
        let word = |place: usize| offer.words.words()[place].load(Ordering::SeqCst);
        let (acknowledged, tried) = offer.added;
        assert!((acknowledged..=tried).contains(&word(0)));
        assert!(word(1) <= NODES);
        for place in 2..2 + RUN {
            assert!(offer.written.contains(&word(place)), "a word of nobody's");
        }
    }
}

pub(crate) fn play(seed: u64) -> Outcome {
    let mut random = Random(seed);
    let simulation = Simulation::new(seed, NODES as u32, SimulationOptions::hostile(seed));
    let fabrics: Vec<_> = (0..NODES as u32)
        .map(|node| simulation.fabric(node))
        .collect();
    let mut offers: Vec<_> = fabrics
        .iter()
        .map(|fabric| offer(fabric, &mut random))
        .collect();
    let open = |fabric: &Arc<SimulatedFabric>| -> Vec<Opened> {
        let opened = offers.iter().map(|offer| Opened {
            region: fabric.open(offer.registrations[0].key()).unwrap(),
            words: fabric.open(offer.registrations[1].key()).unwrap(),
        });
        opened.collect()
    };
    let opened: Vec<_> = fabrics.iter().map(open).collect();
    if random.below(2) == 0 {
        let (node, event) = (random.below(NODES) as u32, random.below(1500));
        simulation.crash_after(NodeId(node), event);
    }
    let (mut done, mut lost) = (0, 0);
    let mut holders = [0; NODES as usize];
    for _ in 0..8 {
        // All nodes at once; they end in another order than they began.
        let mut flights = Vec::new();
        for (node, fabric) in fabrics.iter().enumerate() {
            let (batch, asked) = ask(&opened[node], &mut offers, node as u64 + 1, &mut random);
            flights.push((asked, fabric.start(batch)));
        }
        while !flights.is_empty() {
            let next = random.below(flights.len() as u64) as usize;
            let (asked, mut flight) = flights.swap_remove(next);
            match flight.wait(&Interrupt::never()) {
                Ok(completed) => {
                    check(&completed, &asked, &mut offers, &mut holders);
                    done += 1;
                }
                Err(FabricError::PeerLost(_)) => lost += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(simulation.events() < MOST_EVENTS, "it never ends");
    }
    while simulation.step() {}
    check_memory(&offers, &fabrics);
    Outcome {
        done,
        lost,
        trace: simulation.trace(),
    }
}
