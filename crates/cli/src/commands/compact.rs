//! `jindou compact`: the changes of a store become part of its base.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use jindou_bench::table::{bytes, thousands};
use jindou_engine::Config;

use crate::args::CompactArguments;
use crate::control::{self, Merged};
use crate::open;
use crate::progress::Watch;

/// Ctrl-C ends this command only: a server goes on with what it was asked for, and without one the
/// next process that opens the store removes what was not finished.
///
/// # Errors
/// A folder that is no store or in use by something else than a server, and what keeps the base
/// from being written; the store is then as it was.
pub(crate) fn run(arguments: &CompactArguments) -> anyhow::Result<()> {
    let location = &arguments.location;
    let opened = match open::stored(location, Config::default()) {
        Ok(database) => Some(database),
        Err(error) if open::is_in_use(&error) => None,
        Err(error) => return Err(error),
    };
    let before = size(location)?;
    let begin = Instant::now();
    let merged = {
        let _watch = Watch::start("merging".to_owned(), || (0, None, "changes".to_owned()));
        match opened {
            Some(database) => Merged::of(&database, arguments.renumber, None)?,
            None => control::compact(location, arguments.renumber)?,
        }
    };
    let time = begin.elapsed().as_secs_f64();
    if !merged.had_changes {
        note!(
            "{}: there are no changes to merge; {} on disk",
            location.display(),
            bytes(before)
        );
        return Ok(());
    }
    let changes = thousands(merged.changes);
    let done = match arguments.renumber {
        true => "numbered everything anew".to_owned(),
        false => format!("merged {changes} added or removed quads"),
    };
    note!(
        "{done} in {time:.2} s; the store has {} quads; {} on disk before, {} now",
        thousands(merged.quads),
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
            sum += match entry?.metadata() {
                Ok(metadata) => blocks(&metadata),
                // A server may have removed it meanwhile.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
                Err(error) => return Err(error),
            };
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
