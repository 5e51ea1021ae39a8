//! `jindou generate literals`: a graph with many different literals as N-Triples.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jindou_bench::table::thousands;
use jindou_datagen::literals::Literals;

use super::output::write_ntriples;
use crate::args::LiteralsArguments;
use crate::progress::Watch;

/// Things between two looks at how far it is: some milliseconds.
const STEP: usize = 10_000;

pub(super) fn run(arguments: &LiteralsArguments) -> anyhow::Result<()> {
    let data = Literals::new(arguments.things.get(), arguments.seed);
    write_ntriples(&arguments.output, |out| write(data, out))?;
    note!(
        "{} statements and {} literals, all different, of {} things",
        thousands(data.triples()),
        thousands(data.literals()),
        thousands(u64::from(data.things)),
    );
    Ok(())
}

/// Writes all things under a progress bar.
fn write(data: Literals, mut out: &mut dyn Write) -> io::Result<()> {
    let done = Arc::new(AtomicU64::new(0));
    let watched = Arc::clone(&done);
    let total = u64::from(data.things);
    let _watch = Watch::start("generating".to_owned(), move || {
        let things = watched.load(Ordering::Relaxed);
        (things, Some(total), format!("{} things", thousands(things)))
    });
    for first in (0..data.things).step_by(STEP) {
        let end = data.things.min(first.saturating_add(STEP as u32));
        data.write_things(first..end, &mut out)?;
        done.store(end.into(), Ordering::Relaxed);
    }
    Ok(())
}
