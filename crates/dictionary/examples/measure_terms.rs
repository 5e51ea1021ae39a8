//! What do given numbers cost over a string table's own ids, in bytes and in time?
//!
//! `cargo run --release -p jindou-dictionary --example measure_terms [terms [seed]]` prints both
//! for generated IRIs, 1.3 million unless said.

use std::hint::black_box;
use std::time::Instant;

use jindou_dictionary::{StringTable, TermTable};

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

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

/// IRIs in the order in which a generator meets them, which is not that of their bytes.
fn iris(count: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let classes = ["UndergraduateStudent", "Publication", "GraduateStudent"];
    let mut iris: Vec<Vec<u8>> = (0..count)
        .map(|i| {
            let (department, class) = (i / 1_200, classes[i % 3]);
            let (university, department) = (department / 20, department % 20);
            let student = i % 1_200;
            format!("http://www.Department{department}.University{university}.edu/{class}{student}")
                .into_bytes()
        })
        .collect();
    for run in iris.chunks_mut(1_200) {
        random.shuffle(run);
    }
    iris
}

/// Prints nanoseconds for one of `count` operations that `work` does: the best of five times, by
/// the clock.
fn measure<T>(what: &str, count: usize, mut work: impl FnMut() -> T) -> T {
    let mut best = f64::INFINITY;
    let mut result = None;
    for _ in 0..5 {
        drop(result.take());
        let start = Instant::now();
        result = Some(black_box(work()));
        best = best.min(start.elapsed().as_nanos() as f64 / count as f64);
    }
    println!("{what:<52} {best:>9.1} ns");
    result.expect("worked")
}

fn argument(place: usize, default: usize) -> usize {
    let text = std::env::args().nth(place);
    text.map_or(default, |text| text.parse().expect("a number"))
}

fn main() {
    let (count, seed) = (argument(1, 1_300_000), argument(2, 1));
    let threads = rayon::current_num_threads();
    println!("terms {count}, seed {seed}, threads {threads}");
    let random = &mut Random(seed as u64);
    let terms = iris(count, random);
    let first = 1_u64 << 40;
    let numbers: Vec<u64> = (first..first + count as u64).collect();
    let strings = measure("build a string table, a term", count, || {
        StringTable::build(count, |id| terms[id].as_slice()).expect("built")
    });
    let range = TermTable::from_range(first, strings.clone()).expect("a range");
    let mapped = measure("build a table with mapped numbers, a term", count, || {
        TermTable::build(&numbers, |at| terms[at].as_slice()).expect("built")
    });
    measure("open a table with mapped numbers", 1, || {
        let (strings, map) = mapped.regions();
        let strings = StringTable::open(strings.clone()).expect("opened");
        TermTable::open(strings, map.cloned(), 0).expect("opened")
    });
    measure("verify, a term", count, || mapped.verify().expect("sound"));
    for (name, table) in [("range", &range), ("mapped", &mapped)] {
        let per_term = |bytes: usize| bytes as f64 / count as f64;
        let map = table.bytes() - table.strings().bytes();
        println!(
            "{name}: {:.2} bytes a term in the strings,",
            per_term(table.strings().bytes())
        );
        println!("{name}: {:.2} bytes a term in the numbers", per_term(map));
        measure_reading(name, table, random);
        measure_lookups(name, table, &terms, random);
    }
    measure_merges(&range, &terms, random);
}

fn measure_reading(name: &str, table: &TermTable, random: &mut Random) {
    let count = table.len() as usize;
    let all: Vec<u64> = table.numbers().collect();
    let mut scattered = all.clone();
    random.shuffle(&mut scattered);
    for (order, numbers) in [("ascending", &all), ("random", &scattered)] {
        measure(&format!("{name}: number to row, {order}"), count, || {
            numbers.iter().filter_map(|n| table.row(*n)).sum::<u64>()
        });
        measure(&format!("{name}: number to string, {order}"), count, || {
            let mut decoder = table.decoder();
            let lens = numbers
                .iter()
                .map(|n| decoder.get(*n).expect("a string").len());
            lens.sum::<usize>()
        });
    }
}

fn measure_lookups(name: &str, table: &TermTable, terms: &[Vec<u8>], random: &mut Random) {
    let count = terms.len();
    let keys: Vec<&[u8]> = (0..count)
        .map(|_| terms[random.below(count)].as_slice())
        .collect();
    measure(
        &format!("{name}: string to id in the strings, random"),
        count,
        || {
            keys.iter()
                .filter_map(|key| table.strings().lookup(key))
                .sum::<u64>()
        },
    );
    measure(&format!("{name}: string to number, random"), count, || {
        keys.iter()
            .filter_map(|key| table.lookup(key))
            .fold(0, u64::wrapping_add)
    });
    measure(
        &format!("{name}: string to number, batches of 1000"),
        count,
        || {
            let mut numbers = Vec::new();
            for keys in keys.chunks(1_000) {
                numbers.clear();
                numbers.resize(keys.len(), None);
                table.lookup_batch(keys, &mut numbers);
                black_box(&numbers);
            }
        },
    );
}

/// Merges eight tables of appended terms, and a range with one of these.
fn measure_merges(range: &TermTable, terms: &[Vec<u8>], random: &mut Random) {
    let count = terms.len();
    let mut order: Vec<usize> = (0..count).collect();
    random.shuffle(&mut order);
    let tables: Vec<TermTable> = order
        .chunks(count.div_ceil(8).max(1))
        .map(|order| {
            let numbers: Vec<u64> = order.iter().map(|at| *at as u64).collect();
            TermTable::build(&numbers, |at| terms[order[at]].as_slice()).expect("built")
        })
        .collect();
    let tables: Vec<&TermTable> = tables.iter().collect();
    measure("merge eight mapped tables, a term", count, || {
        TermTable::merge(&tables, |_| true).expect("merged")
    });
    measure(
        "merge eight mapped tables, a third dropped, a term",
        count,
        || TermTable::merge(&tables, |number| number % 3 > 0).expect("merged"),
    );
    measure("sort a range, a term", count, || {
        TermTable::merge(&[range], |_| true).expect("merged")
    });
}
