//! How many triples a second can one machine parse? Prints the rate of each file given, handed to
//! sinks that only count.
//!
//! `cargo run --release -p jindou-ingest --example load_speed -- FILE [THREADS...]`

use jindou_ingest::{LoadOptions, Progress, QuadSink, Source, load};
use oxrdf::QuadRef;
use std::convert::Infallible;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::time::Instant;

struct Count(u64);

impl QuadSink for Count {
    type Error = Infallible;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), Infallible> {
        black_box(quad);
        self.0 += 1;
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("usage: measure FILE [THREADS...]")?;
    let mut threads: Vec<NonZeroUsize> = args.map(|n| n.parse()).collect::<Result<_, _>>()?;
    if threads.is_empty() {
        threads.push(LoadOptions::default().threads);
    }
    for threads in threads {
        let options = LoadOptions {
            threads,
            ..LoadOptions::default()
        };
        for round in 1..=3 {
            let start = Instant::now();
            let (_, report) = load(
                vec![Source::path(&file)],
                &options,
                |_| Count(0),
                &Progress::default(),
            )?;
            let seconds = start.elapsed().as_secs_f64();
            println!(
                "{threads} threads, round {round}: {} triples, {:.3} s, {:.2} million triples/s, \
                 {:.0} ns a triple, {:.0} MB/s",
                report.quads,
                seconds,
                report.quads as f64 / seconds / 1e6,
                seconds * 1e9 / report.quads as f64,
                report.bytes_read as f64 / seconds / 1e6,
            );
        }
    }
    Ok(())
}
