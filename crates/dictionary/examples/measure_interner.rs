//! How long do the dictionary's operations take, and how many bytes does a term cost?
//!
//! `cargo run --release -p jindou-dictionary --example measure_interner [terms [seed]]` prints both for
//! generated IRIs shaped like those of the LUBM benchmark, 1.3 million unless said.

use std::hint::black_box;
use std::time::{Duration, Instant};

use jindou_dictionary::{Interner, StringTable};
use jindou_fabric::Region;

/// The least time that is measured.
const SAMPLE: Duration = Duration::from_millis(250);

/// A generator of numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

/// IRIs in runs by class, each run sorted, as the bulk loader numbers them.
fn iris(count: usize) -> Vec<Vec<u8>> {
    let classes = [
        ("UndergraduateStudent", 500, ""),
        ("Publication", 490, "AssociateProfessor"),
        ("GraduateStudent", 130, ""),
        ("GraduateCourse", 60, ""),
    ];
    let departments = count.div_ceil(classes.iter().map(|class| class.1).sum());
    let mut iris = Vec::with_capacity(count);
    for (class, of_department, author) in classes {
        let start = iris.len();
        for department in 0..departments {
            let (university, department) = (department / 20, department % 20);
            for i in 0..of_department {
                let path = if author.is_empty() {
                    format!("{class}{i}")
                } else {
                    format!("{author}{}/{class}{}", i / 15, i % 15)
                };
                let iri =
                    format!("http://www.Department{department}.University{university}.edu/{path}");
                iris.push(iri.into_bytes());
            }
        }
        iris[start..].sort_unstable();
    }
    iris.truncate(count);
    iris
}

/// Nanoseconds that this thread has spent on a processor, where the system tells, so that other
/// programs at work on the machine count less.
fn processor_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Prints nanoseconds for one of `count` operations that `work` does: the best of three samples,
/// of this thread on a processor if that is told, and else by the clock.
fn measure(what: &str, count: usize, mut work: impl FnMut()) {
    let best = (0..3).map(|_| {
        let (start, processor_start) = (Instant::now(), processor_ns());
        let mut times = 0;
        // The time on a processor is counted in steps of some milliseconds.
        while start.elapsed() < SAMPLE {
            work();
            times += 1;
        }
        let elapsed = start.elapsed().as_nanos() as f64;
        let processor = processor_start
            .zip(processor_ns())
            .map(|(start, end)| end - start);
        processor.map_or(elapsed, |ns| ns as f64) / (count * times) as f64
    });
    println!("{what:<52} {:>9.1} ns", best.fold(f64::INFINITY, f64::min));
}

fn argument(place: usize, default: usize) -> usize {
    std::env::args()
        .nth(place)
        .map_or(default, |text| text.parse().expect("a number"))
}

fn main() {
    let count = argument(1, 1_300_000);
    let seed = argument(2, 1);
    println!(
        "terms {count}, seed {seed}, threads {}",
        rayon::current_num_threads()
    );
    let mut random = Random(seed as u64);
    let terms = iris(count);
    let bytes: usize = terms.iter().map(Vec::len).sum();
    let per_term = |bytes: usize| bytes as f64 / count as f64;
    println!("{:<52} {:>9.1} bytes", "a term itself", per_term(bytes));

    let build = || StringTable::build(count, |id| terms[id].as_slice()).expect("built");
    let table = build();
    println!(
        "{:<52} {:>9.1} bytes",
        "a term in the table",
        per_term(table.bytes())
    );
    println!(
        "{:<52} {:>9.1} bytes",
        "of these, in the index",
        per_term(table.index_bytes())
    );
    let start = Instant::now();
    black_box(build());
    let ns = start.elapsed().as_nanos() as f64 / count as f64;
    println!("{:<52} {ns:>9.1} ns", "build, a term, by the clock");
    let region: Region = table.region().clone();
    measure("open, a table", 100, || {
        for _ in 0..100 {
            black_box(StringTable::open(region.clone()).expect("opened"));
        }
    });
    measure_decoding(&table, &mut random);
    measure_lookups(&table, &terms, &mut random);
    measure_interner(&terms, &mut random);
}

fn measure_decoding(table: &StringTable, random: &mut Random) {
    let count = table.len() as usize;
    let decode = |what: &str, ids: &[u64]| {
        measure(what, ids.len(), || {
            let mut decoder = table.decoder();
            for id in ids {
                black_box(decoder.get(*id).expect("a string"));
            }
        });
    };
    let sequential: Vec<u64> = (0..count as u64).collect();
    let few: Vec<u64> = (0..count)
        .map(|_| (random.below(8) * 1000 + random.below(16)) as u64 % count as u64)
        .collect();
    let scattered: Vec<u64> = (0..count).map(|_| random.below(count) as u64).collect();
    decode("id to term, sequential", &sequential);
    decode("id to term, 128 ids of 8 blocks", &few);
    decode("id to term, random", &scattered);
    measure("id to term, extract, random", count, || {
        let mut text = Vec::new();
        for id in &scattered {
            text.clear();
            table.extract(*id, &mut text).expect("a string");
            black_box(&text);
        }
    });
    measure("a decoder for ten random ids", count / 10, || {
        for ids in scattered.chunks_exact(10) {
            let mut decoder = table.decoder();
            for id in ids {
                black_box(decoder.get(*id).expect("a string"));
            }
        }
    });
}

fn measure_lookups(table: &StringTable, terms: &[Vec<u8>], random: &mut Random) {
    let count = terms.len();
    // The keys are copied so that they are read in order, as a parser's are.
    let mut arena = Vec::new();
    let mut ends = vec![0];
    for _ in 0..count {
        arena.extend_from_slice(&terms[random.below(count)]);
        ends.push(arena.len());
    }
    let keys: Vec<&[u8]> = ends
        .windows(2)
        .map(|ends| &arena[ends[0]..ends[1]])
        .collect();
    measure("term to id, random", count, || {
        for key in &keys {
            assert!(black_box(table.lookup(key)).is_some());
        }
    });
    let mut ids = Vec::new();
    measure("term to id, random, batches of 1000", count, || {
        for keys in keys.chunks(1000) {
            ids.clear();
            table.lookup_batch(keys, &mut ids);
            black_box(&ids);
        }
    });
    let few: Vec<&[u8]> = keys.iter().take(1000).copied().collect();
    measure("term to id, 1000 terms again and again", count, || {
        for i in 0..count {
            assert!(black_box(table.lookup(few[i % few.len()])).is_some());
        }
    });
    let absent: Vec<Vec<u8>> = keys.iter().map(|key| [*key, b"x"].concat()).collect();
    measure("term to id, absent", count, || {
        for key in &absent {
            assert!(black_box(table.lookup(key)).is_none());
        }
    });
}

fn measure_interner(terms: &[Vec<u8>], random: &mut Random) {
    let count = terms.len();
    // Each term is met about twelve times, near to where it was met first, as in a dump.
    let calls: Vec<usize> = (0..count * 12)
        .map(|call| (call / 12).saturating_sub(random.below(2_000)))
        .collect();
    measure("intern, a call of twelve for a term", calls.len(), || {
        let mut interner = Interner::new();
        for call in &calls {
            black_box(interner.intern(&terms[*call]).expect("an id"));
        }
    });
    let mut interner = Interner::new();
    for term in terms {
        interner.intern(term).expect("an id");
    }
    println!(
        "{:<52} {:>9.1} bytes",
        "a term interned",
        interner.bytes() as f64 / count as f64
    );
    let scattered: Vec<usize> = (0..count).map(|_| random.below(count)).collect();
    measure("intern, known, random", count, || {
        for at in &scattered {
            black_box(interner.intern(&terms[*at]).expect("an id"));
        }
    });
}
