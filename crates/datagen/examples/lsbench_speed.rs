//! How fast are LSBench's streams generated on one core? `cargo run --release -p jindou-datagen
//! --example lsbench_speed [USERS [SECONDS [FACTOR]]]` makes streams at the paper's rates times the
//! factor, as events and as lines in memory, and reports tuples a second of this machine's time.

use std::error::Error;
use std::time::Instant;

use jindou_datagen::lsbench::{Load, Lsbench, Pace, Rates, Stream};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let users = arguments.next().map_or(Ok(1000), |n| n.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(60), |n| n.parse())?;
    let factor = arguments.next().map_or(Ok(1.), |n| n.parse())?;
    let data = Lsbench::new(users, 0);
    let load = Load {
        rates: Rates::PAPER.times(factor),
        pace: Pace::Even,
        duration_ms: seconds * 1000,
    };

    let start = Instant::now();
    let statements = data.write_stored(&mut std::io::sink())?;
    report("stored graph, lines", statements, start);

    let mut streams = data.streams(&load, &Stream::ALL)?;
    let start = Instant::now();
    let (mut tuples, mut bytes, mut most_kept) = (0, 0, 0);
    while let Some(event) = streams.next_event() {
        for tuple in event.tuples() {
            tuples += 1;
            bytes += tuple.subject.len() + tuple.predicate.len();
        }
        if tuples % 1024 == 0 {
            most_kept = most_kept.max(streams.kept());
        }
    }
    report("events", tuples, start);
    println!("      {bytes} bytes of subjects and predicates, {most_kept} items kept at most");

    let mut streams = data.streams(&load, &Stream::ALL)?;
    let start = Instant::now();
    let (mut text, mut tuples, mut bytes) = (String::new(), 0, 0);
    while let Some(event) = streams.next_event() {
        text.clear();
        event.push_lines(&mut text);
        tuples += event.statements.len() as u64;
        bytes += text.len();
    }
    report("lines", tuples, start);
    println!("      {bytes} bytes");

    for stream in Stream::ALL {
        let mut streams = data.streams(&load, &[stream])?;
        let start = Instant::now();
        let mut tuples = 0;
        while let Some(event) = streams.next_event() {
            tuples += event.statements.len() as u64;
        }
        report(stream.name(), tuples, start);
    }
    Ok(())
}

fn report(what: &str, count: u64, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{what}: {count} statements, {seconds:.3} s, {:.2} M/s",
        count as f64 / seconds / 1e6
    );
}
