//! `jindou compact`: the changes of a store become part of its base.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use jindou_bench::table::{bytes, thousands};
use jindou_engine::Config;

use crate::args::CompactArguments;
use crate::open;

/// # Errors
/// A folder that is no store or in use, and what keeps the base from being written; the store is
/// then as it was.
pub(crate) fn run(arguments: &CompactArguments) -> anyhow::Result<()> {
    let location = &arguments.location;
    let database = open::stored(location, Config::default())?;
    let before = size(location)?;
    let begin = Instant::now();
    let has_merged = database.compact()?;
    let time = begin.elapsed().as_secs_f64();
    let statistics = database.statistics();
    drop(database);
    if !has_merged {
        note!(
            "{}: there are no changes to merge; {} on disk",
            location.display(),
            bytes(before)
        );
        return Ok(());
    }
    note!(
        "merged {} quads in {time:.2} s; {} on disk before, {} now",
        thousands(statistics.triples + statistics.named_quads),
        bytes(before),
        bytes(size(location)?)
    );
    Ok(())
}

/// Bytes that the files of a folder take; the log has room ahead that takes none.
fn size(location: &Path) -> anyhow::Result<u64> {
    let taken = || -> std::io::Result<u64> {
        let mut sum = 0;
        for entry in std::fs::read_dir(location)? {
            sum += blocks(&entry?.metadata()?);
        }
        Ok(sum)
    };
    taken().with_context(|| format!("{}: cannot be read", location.display()))
}

#[cfg(unix)]
fn blocks(metadata: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    // Of 512 bytes, whatever the file system's own are.
    metadata.blocks() * 512
}

#[cfg(not(unix))]
fn blocks(metadata: &std::fs::Metadata) -> u64 {
    metadata.len()
}
