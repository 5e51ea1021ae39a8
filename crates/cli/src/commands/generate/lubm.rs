//! `jindou generate lubm`: universities as N-Triples.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jindou_bench::table::thousands;
use jindou_datagen::lubm::{Counts, Lubm};

use super::output::write_ntriples;
use crate::args::GenerateArguments;
use crate::progress::Watch;

pub(super) fn run(arguments: &GenerateArguments) -> anyhow::Result<()> {
    let data = Lubm::new(arguments.universities.get(), arguments.seed);
    let counts = write_ntriples(&arguments.output, |out| write(data, out))?;
    note!(
        "{} statements, {} different, of {} universities",
        thousands(counts.statements()),
        thousands(counts.distinct()),
        thousands(u64::from(data.universities)),
    );
    Ok(())
}

/// Writes all universities under a progress bar.
fn write(data: Lubm, mut out: &mut dyn Write) -> io::Result<Counts> {
    let indices = data
        .indices()
        .map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
    let done = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let watched = Arc::clone(&done);
    let total = u64::from(data.universities);
    let _watch = Watch::start("generating".to_owned(), move || {
        let words = format!("{} triples", thousands(watched.1.load(Ordering::Relaxed)));
        (watched.0.load(Ordering::Relaxed), Some(total), words)
    });
    let mut counts = Counts::default();
    for university in indices {
        counts += &data.write_university(university, &mut out)?;
        done.0.fetch_add(1, Ordering::Relaxed);
        done.1.store(counts.statements(), Ordering::Relaxed);
    }
    Ok(counts)
}
