//! Which stores do the nodes of a cluster for a first look have? Copies of that of a folder, or of one that is made
//! of files or of generated data, in a temporary folder.

use std::path::{Path, PathBuf};
use std::time::Instant;

use jindou_datagen::lubm::Lubm;
use jindou_engine::ingest::{LoadOptions, Progress};
use jindou_engine::{Config, Database};

use crate::cluster_args::DevArguments;
use crate::progress::Watch;
use crate::{open, universities};

/// Universities where neither files nor a store are named.
const UNIVERSITIES: u32 = 1;

/// The folder of a node's store in that of all.
pub(super) fn of_node(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("store-{name}"))
}

/// Makes a store for each of the nodes in `folder`, and says of what.
///
/// # Errors
/// What keeps them from being made, and what is no folder.
pub(super) fn prepare(
    arguments: &DevArguments,
    folder: &Path,
    names: &[String],
) -> anyhow::Result<PathBuf> {
    let location = original(arguments, folder)?;
    let store = open::to_copy(&location, Config::default())?;
    for name in names {
        store.backup(&of_node(folder, name))?;
    }
    Ok(location)
}

/// The folder of the store of which they are copies; one that is made is in `folder`.
fn original(arguments: &DevArguments, folder: &Path) -> anyhow::Result<PathBuf> {
    if let Some(location) = &arguments.location {
        open::check_folder(location)?;
        return Ok(location.clone());
    }
    let location = folder.join("store");
    match arguments.files.is_empty() {
        true => generate(&location)?,
        false => load(arguments, &location)?,
    }
    Ok(location)
}

fn load(arguments: &DevArguments, location: &Path) -> anyhow::Result<()> {
    let sources = open::sources(&arguments.files, &arguments.read, None)?;
    let options = open::load_options(&arguments.read)?;
    open::create(location, sources, &options, Config::default())?;
    Ok(())
}

fn generate(location: &Path) -> anyhow::Result<()> {
    let data = Lubm::new(UNIVERSITIES, 0);
    let statements = data.count()?.statements();
    let sources = universities::sources(data)?;
    let (options, progress) = (LoadOptions::default(), Progress::default());
    let start = Instant::now();
    let what = "generating and storing a university";
    let watch = Watch::load(what, progress.clone(), Some(statements));
    let made = Database::create(location, sources, &options, &progress, Config::default());
    drop(watch);
    let (_closed, report) = made?;
    open::tell(&report, start.elapsed());
    Ok(())
}
