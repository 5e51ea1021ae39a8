//! `jindou generate lubm`: universities as N-Triples.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};
use jindou_bench::table::thousands;
use jindou_datagen::lubm::{Counts, Lubm};

use super::output::{Compression, OutputFile};
use crate::args::GenerateArguments;
use crate::progress::Watch;

pub(super) fn run(arguments: &GenerateArguments) -> anyhow::Result<()> {
    let data = Lubm::new(arguments.universities.get(), arguments.seed);
    let path = &arguments.output;
    let counts = if path.as_os_str() == "-" {
        let mut out = BufWriter::new(io::stdout().lock());
        write(data, &mut out)
            .and_then(|counts| out.flush().map(|()| counts))
            .context("writing to standard output")?
    } else {
        to_file(data, path).with_context(|| format!("{}: cannot write", path.display()))?
    };
    note!(
        "{} statements, {} different, of {} universities",
        thousands(counts.statements()),
        thousands(counts.distinct()),
        thousands(u64::from(data.universities)),
    );
    Ok(())
}

fn to_file(data: Lubm, path: &Path) -> anyhow::Result<Counts> {
    let ending = path
        .extension()
        .map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    let ending = ending.as_deref();
    if matches!(
        ending,
        Some("bz2" | "xz" | "7z" | "zip" | "ttl" | "rdf" | "nq")
    ) {
        bail!("N-Triples are written plain, or compressed to .gz or .zst; choose such a name");
    }
    let compression = match ending {
        Some("gz") => Compression::Gzip,
        Some("zst") => Compression::Zstandard,
        _ => Compression::None,
    };
    let mut file = OutputFile::create(path, compression)?;
    let counts = write(data, &mut file)?;
    file.finish()?;
    Ok(counts)
}

/// Writes all universities under a progress bar.
fn write(data: Lubm, out: &mut impl Write) -> io::Result<Counts> {
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
        counts += &data.write_university(university, out)?;
        done.0.fetch_add(1, Ordering::Relaxed);
        done.1.store(counts.statements(), Ordering::Relaxed);
    }
    Ok(counts)
}
