//! How fast is LUBM generated on one core? `cargo run --release -p jindou-datagen --example
//! lubm_speed [UNIVERSITIES]` writes each university to memory and reports lines a second.

use std::error::Error;
use std::time::Instant;

use jindou_datagen::lubm::{Counts, Lubm};

fn main() -> Result<(), Box<dyn Error>> {
    let universities = std::env::args().nth(1).map_or(Ok(10), |n| n.parse())?;
    let data = Lubm::new(universities, 0);

    let start = Instant::now();
    let mut text = String::new();
    let (mut counts, mut bytes) = (Counts::default(), 0);
    for university in data.indices()? {
        text.clear();
        counts += &data.append_university(university, &mut text);
        bytes += text.len();
    }
    report("text", &counts, start);
    println!("      {bytes} bytes");

    let start = Instant::now();
    let mut characters = 0;
    let counts = data.generate(|triple| {
        characters += triple.predicate.as_str().len();
    })?;
    report("triples", &counts, start);

    let start = Instant::now();
    report("counts", &data.count()?, start);
    println!(
        "      {counts:?}, {} distinct, {characters}",
        counts.distinct()
    );
    Ok(())
}

fn report(what: &str, counts: &Counts, start: Instant) {
    let seconds = start.elapsed().as_secs_f64();
    let lines = counts.statements();
    println!(
        "{what}: {lines} statements, {seconds:.3} s, {:.2} M/s",
        lines as f64 / seconds / 1e6
    );
}
