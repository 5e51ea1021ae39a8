//! What does one of the processes do that load?

use std::ffi::OsString;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::time::Duration;

use jindou_engine::ingest::{LoadOptions, Progress, Source};
use jindou_engine::{Config, Database};
use serde::{Deserialize, Serialize};

use super::bytes_of;
use crate::BenchError;
use crate::machine::{Memory, process_cpu};
use crate::running::end_with_input;

/// The child's task.
pub(super) const TASK: &str = "load-together";
/// How long nodes may take to meet.
#[cfg(target_os = "linux")]
const PATIENCE: Duration = Duration::from_secs(60);

/// What it came to.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) triples: u64,
    pub(super) processor_seconds: f64,
    pub(super) peak_bytes: u64,
    pub(super) file_bytes: u64,
    pub(super) sent_bytes: u64,
}

/// Loads, if the arguments ask for it, and prints what it came to. `Ok(false)` if they do not.
///
/// # Errors
/// What keeps it from loading.
pub fn child(arguments: &[OsString]) -> Result<bool, BenchError> {
    let [task, file, place, list, name, are_several] = arguments else {
        return Ok(false);
    };
    if task != TASK {
        return Ok(false);
    }
    end_with_input(|| ());
    let (file, place) = (Path::new(file), Path::new(place));
    let sources = vec![Source::path(file)];
    let (triples, sent_bytes) = match are_several == "true" {
        true => part(sources, place, Path::new(list), &name.to_string_lossy())?,
        false => {
            let (options, progress) = (LoadOptions::default(), Progress::default());
            let made = Database::create(place, sources, &options, &progress, Config::default())?;
            (made.1.triples, 0)
        }
    };
    let made = Made {
        triples,
        processor_seconds: process_cpu().as_secs_f64(),
        peak_bytes: Memory::of_this_process()?.peak_bytes,
        file_bytes: bytes_of(place)?,
        sent_bytes,
    };
    println!(
        "{}",
        serde_json::to_string(&made).expect("numbers are JSON")
    );
    Ok(true)
}

/// Triples of the whole, and bytes that went to other nodes.
#[cfg(target_os = "linux")]
fn part(
    sources: Vec<Source>,
    place: &Path,
    list: &Path,
    name: &str,
) -> Result<(u64, u64), BenchError> {
    let failed = |reason: String| BenchError::Child {
        command: TASK.to_owned(),
        reason,
    };
    let (peers, secret) =
        jindou_engine::PeerList::read(list).map_err(|error| failed(error.to_string()))?;
    let node = peers
        .node(name)
        .map_err(|error| failed(error.to_string()))?;
    let with = jindou_engine::PartOptions {
        peers,
        node,
        secret,
        listener: None,
        meet_within: PATIENCE,
        purpose: "load a file of a measurement".to_owned(),
        union_default_graph: false,
    };
    let (options, progress) = (LoadOptions::default(), Progress::default());
    let made = Database::create_part(place, sources, &options, &progress, with, &|_| ())?;
    Ok((made.load.triples, made.sent_bytes))
}

#[cfg(not(target_os = "linux"))]
fn part(_: Vec<Source>, _: &Path, _: &Path, _: &str) -> Result<(u64, u64), BenchError> {
    Err(BenchError::Child {
        command: TASK.to_owned(),
        reason: "nodes of a cluster run on Linux".to_owned(),
    })
}
