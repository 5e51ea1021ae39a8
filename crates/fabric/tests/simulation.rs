//! Does a simulated network keep the contract of a fabric, and do operations and rings keep their
//! word on a bad one, whoever crashes in their middle?
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of cases; a failure prints its seed,
//! and `JINDOU_SEED=<seed> JINDOU_CASES=1` runs it alone. Thousands:
//! `JINDOU_CASES=5000 cargo test -p jindou-fabric --test simulation`

#[path = "contract/mod.rs"]
mod contract;
#[path = "simulation/operations.rs"]
mod operations;
#[path = "simulation/random.rs"]
mod random;
#[path = "simulation/rings.rs"]
mod rings;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use contract::Cluster;
use jindou_fabric::remote::{Fabric, NodeId};
use jindou_fabric::sim::{Simulation, SimulationOptions};

const DEFAULT_SEED: u64 = 1;
const DEFAULT_CASES: u64 = 300;
/// Failures shown before a test stops.
const FAILURES_SHOWN: usize = 3;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|error| panic!("{name}={text}: {error}"))
    })
}

fn cluster(seed: u64, nodes: usize, options: SimulationOptions) -> Cluster {
    let simulation = Simulation::new(seed, nodes as u32, options);
    let fabric = |node| simulation.fabric(node) as Arc<dyn Fabric>;
    let fabrics = (0..nodes as u32).map(fabric).collect();
    Cluster {
        fabrics,
        kill: Box::new(move |node| simulation.crash(node)),
        has_threads: false,
        outlives_itself: true,
    }
}

#[test]
fn simulated_nodes_keep_the_contract() {
    let seed = setting("JINDOU_SEED", DEFAULT_SEED);
    contract::all(&|nodes| cluster(seed, nodes, SimulationOptions::default()));
}

#[test]
fn simulated_nodes_keep_the_contract_though_packets_are_late_and_lost() {
    let seed = setting("JINDOU_SEED", DEFAULT_SEED);
    let options = SimulationOptions {
        delay: std::time::Duration::from_nanos(10)..std::time::Duration::from_micros(20),
        lost_per_mille: 50,
        // Whole megabytes are sent; a node that is alive is never given up.
        attempts: 50,
        ..SimulationOptions::default()
    };
    contract::all(&|nodes| cluster(seed, nodes, options.clone()));
}

/// Plays a case for each seed, and what the cases came to together.
fn play<T>(name: &str, case: impl Fn(u64) -> T, mut add: impl FnMut(T)) {
    let first = setting("JINDOU_SEED", DEFAULT_SEED);
    let cases = setting("JINDOU_CASES", DEFAULT_CASES);
    println!("{name}: seed {first}, {cases} cases (JINDOU_SEED, JINDOU_CASES)");
    let mut failed = Vec::new();
    for seed in first..first + cases {
        match catch_unwind(AssertUnwindSafe(|| case(seed))) {
            Ok(outcome) => add(outcome),
            Err(_) => failed.push(seed),
        }
        if failed.len() >= FAILURES_SHOWN {
            break;
        }
    }
    assert!(
        failed.is_empty(),
        "{name}: these seeds failed, see above: {failed:?}"
    );
}

/// Enough cases that each kind of outcome is among them.
fn is_sample() -> bool {
    setting("JINDOU_CASES", DEFAULT_CASES) >= DEFAULT_CASES
}

#[test]
fn operations_are_done_or_an_error_whoever_crashes_between() {
    let (mut done, mut lost) = (0, 0);
    play("operations", operations::play, |outcome| {
        done += outcome.done;
        lost += outcome.lost;
    });
    println!("{done} batches were done, {lost} lost a peer");
    assert!(!is_sample() || done > 1000 && lost > 50);
}

#[test]
fn rings_deliver_whole_messages_in_order_or_an_error_whoever_crashes_between() {
    let (mut delivered, mut whole, mut cut, mut torn) = (0, 0, 0, 0);
    play("rings", rings::play, |outcome| {
        delivered += outcome.delivered;
        whole += u64::from(outcome.is_whole);
        cut += u64::from(!outcome.is_whole);
        torn += u64::from(outcome.was_torn);
    });
    println!(
        "{delivered} messages; {whole} rings were closed, {cut} cut off, {torn} inside of a message"
    );
    assert!(!is_sample() || whole > 50 && cut > 50 && torn > 10);
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 1..20 {
        let (one, other) = (rings::play(seed), rings::play(seed));
        assert_eq!(one, other, "seed {seed}");
        let (one, other) = (operations::play(seed), operations::play(seed));
        assert_eq!(one, other, "seed {seed}");
    }
    assert_ne!(rings::play(1).trace, rings::play(2).trace);
}

#[test]
fn a_wait_for_what_nothing_brings_is_an_error() {
    use jindou_fabric::FabricError;
    use jindou_fabric::remote::Interrupt;
    let simulation = Simulation::new(1, 1, SimulationOptions::default());
    let fabric = simulation.fabric(0);
    let bell = fabric.doorbell().unwrap();
    let ended = fabric.wait(&bell, 0, &Interrupt::never());
    assert_eq!(ended, Err(FabricError::Stalled));
}

#[test]
fn a_restarted_node_has_nothing_of_what_it_had() {
    use jindou_fabric::FabricError;
    use jindou_fabric::remote::{Batch, Interrupt};
    let simulation = Simulation::new(1, 2, SimulationOptions::default());
    let here = simulation.fabric(0);
    let (_words, registration) = simulation.fabric(1).share(1).unwrap();
    let memory = here.open(registration.key()).unwrap();
    let again = simulation.restart(NodeId(1));
    let never = Interrupt::never();
    assert_eq!(here.probe(NodeId(1), &never), Ok(()));
    let mut batch = Batch::new();
    let _ = batch.read(&memory, 0, 8).unwrap();
    let lost = here.complete(batch, &never).unwrap_err();
    assert_eq!(lost, FabricError::PeerLost(NodeId(1)));
    let (_words, registration) = again.share(1).unwrap();
    assert!(here.open(registration.key()).is_ok());
}
