//! What a tuple of a stream costs: to be built into a run, to be merged, to be found in a window.
//!
//! `cargo run --release -p jindou-store --example window_cost`

use std::error::Error;
use std::time::{Duration, Instant};

use jindou_model::{Cursor, Direction, Lists, PredicateId, TermId};
use jindou_store::window::{Bounds, Ring, RingOptions, Run, StreamTuple, Window};

const BATCHES: u64 = 100;
const TUPLES: u64 = 10_000;
const PREDICATES: u64 = 5;
/// A batch a second.
const BATCH_MS: i64 = 1000;
/// Subjects come about ten times in all batches, objects too.
const IDS: u64 = 100_000;
const KEYS: u64 = 100_000;
/// As many as caches hold.
const FEW: u64 = 200;

fn mixed(n: u64) -> u64 {
    let mixed = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 31)
}

fn id(n: u64) -> TermId {
    TermId::vertex((mixed(n) % IDS) * 1000)
}

fn batch(number: u64) -> Vec<StreamTuple> {
    let first = number * TUPLES;
    let tuple = |n: u64| StreamTuple {
        time_ms: number as i64 * BATCH_MS + ((n - first) * BATCH_MS as u64 / TUPLES) as i64,
        subject: id(2 * n),
        predicate: PredicateId((n % PREDICATES) as u32),
        object: id(2 * n + 1),
    };
    (first..first + TUPLES).map(tuple).collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut ring = ring();
    let (mut building, mut merging) = (Duration::ZERO, Duration::ZERO);
    let mut merged = 0;
    let mut unmerged = ring_of_all(&mut building)?;
    println!(
        "{:.1} bytes a tuple in {BATCHES} runs of {TUPLES}",
        unmerged.bytes() as f64 / (BATCHES * TUPLES) as f64
    );
    lookups(&unmerged, "before any merge")?;
    let (mut at_once, mut merged_at_once) = (Duration::ZERO, 0);
    while let Some(merge) = unmerged.merge_due() {
        merged_at_once += merge.len() as u64;
        let begin = Instant::now();
        assert!(unmerged.apply(merge.execute()));
        at_once += begin.elapsed();
    }
    for number in 0..BATCHES {
        ring.append(Run::from_batch(&batch(number))?)?;
        while let Some(merge) = ring.merge_due() {
            merged += merge.len() as u64;
            let begin = Instant::now();
            let done = merge.execute();
            merging += begin.elapsed();
            assert!(ring.apply(done));
        }
    }
    let tuples = BATCHES * TUPLES;
    let nanoseconds = |time: Duration, count: u64| time.as_nanos() as f64 / count as f64;
    println!("building: {:.0} ns a tuple", nanoseconds(building, tuples));
    println!(
        "merging as they come: {:.0} ns a tuple and merge, {:.1} merges a tuple, {:.0} ns a tuple",
        nanoseconds(merging, merged),
        merged as f64 / tuples as f64,
        nanoseconds(merging, tuples),
    );
    println!(
        "merging all at once: {:.0} ns a tuple",
        nanoseconds(at_once, merged_at_once)
    );
    println!(
        "{:.1} bytes a tuple in {} runs",
        ring.bytes() as f64 / tuples as f64,
        ring.snapshot().runs().len()
    );
    lookups(&ring, "with all merges done")
}

/// A ring for windows of a few minutes.
fn ring() -> Ring {
    Ring::new(RingOptions {
        longest_run_ms: 60_000,
    })
}

fn ring_of_all(building: &mut Duration) -> Result<Ring, Box<dyn Error>> {
    let mut ring = ring();
    for number in 0..BATCHES {
        let batch = batch(number);
        let begin = Instant::now();
        let run = Run::from_batch(&batch)?;
        *building += begin.elapsed();
        ring.append(run)?;
    }
    Ok(ring)
}

fn lookups(ring: &Ring, when: &str) -> Result<(), Box<dyn Error>> {
    let end_ms = BATCHES as i64 * BATCH_MS;
    for (what, from_ms, until_ms) in [
        ("all of it", 0, end_ms),
        ("cut on both sides", BATCH_MS / 2, end_ms - BATCH_MS / 2),
        ("the last ten seconds", end_ms - 10 * BATCH_MS, end_ms),
    ] {
        let begin = Instant::now();
        let window = Window::new([(ring.snapshot(), Bounds { from_ms, until_ms })]);
        let made = begin.elapsed();
        println!("{when}, {what}: {} runs, made in {made:?}", window.runs());
        for direction in [Direction::Out, Direction::In] {
            let mut keys: Vec<TermId> = (0..KEYS).map(|n| id(n + 1_000_000_007)).collect();
            let scattered = lookup(&window, direction, &keys);
            keys.sort_unstable();
            let sorted = lookup(&window, direction, &keys);
            println!(
                "  {direction:?}: {:.0} ns a key in no order, {:.0} ns a sorted one, {:.2} found",
                scattered.0, sorted.0, scattered.1
            );
            let few: Vec<TermId> = (0..FEW).map(|n| id(n + 1_000_000_007)).collect();
            println!(
                "    one a call: {:.0} ns, of few keys",
                lookup_each(&window, direction, &few)
            );
        }
    }
    Ok(())
}

/// Nanoseconds a key where each has a call of its own, the second time.
fn lookup_each(window: &Window, direction: Direction, keys: &[TermId]) -> f64 {
    let (mut rows, mut out) = (Vec::new(), Vec::new());
    let mut time = Duration::ZERO;
    for _ in 0..20 {
        let begin = Instant::now();
        for key in keys {
            let list = Lists {
                predicate: PredicateId(1),
                direction,
                keys: std::slice::from_ref(key),
            };
            rows.clear();
            out.clear();
            let cursor = &mut Cursor::default();
            window.expand(&[list], cursor, None, 4096, &mut rows, &mut out);
        }
        time = begin.elapsed();
    }
    time.as_nanos() as f64 / keys.len() as f64
}

/// Nanoseconds and neighbours a key.
fn lookup(window: &Window, direction: Direction, keys: &[TermId]) -> (f64, f64) {
    let list = Lists {
        predicate: PredicateId(1),
        direction,
        keys,
    };
    let mut cursor = Cursor::default();
    let (mut rows, mut out) = (Vec::new(), Vec::new());
    let mut found = 0;
    let begin = Instant::now();
    while cursor.key < keys.len() {
        rows.clear();
        out.clear();
        window.expand(&[list], &mut cursor, None, 4096, &mut rows, &mut out);
        found += out.len();
    }
    let count = keys.len() as f64;
    (
        begin.elapsed().as_nanos() as f64 / count,
        found as f64 / count,
    )
}
