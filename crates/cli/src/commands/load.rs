//! `jindou load`: files become a store in a folder, or a node's part of one.

use jindou_engine::Config;

use crate::args::LoadArguments;
use crate::open;

/// # Errors
/// What keeps the store from being made; nothing is left of it then.
pub(crate) fn run(arguments: LoadArguments) -> anyhow::Result<()> {
    if arguments.together.peers.is_some() {
        return together::run(arguments);
    }
    let sources = open::sources(&arguments.files, &arguments.read, arguments.base.as_ref())?;
    let mut options = open::load_options(&arguments.read)?;
    options.graph = arguments.graph;
    if let Some(threads) = arguments.threads {
        options.threads = threads;
    }
    let mut config = Config::default();
    config.union_default_graph = arguments.union_default_graph;
    config.load_memory_bytes = arguments.memory;
    open::create(&arguments.location, sources, &options, config)?;
    Ok(())
}

#[cfg(target_os = "linux")]
mod together {
    use std::fmt::Write as _;
    use std::time::Instant;

    use anyhow::{Context, bail};
    use jindou_bench::table::bytes;
    use jindou_engine::ingest::Progress;
    use jindou_engine::{Database, PartOptions, PeerList};

    use crate::args::LoadArguments;
    use crate::progress::Watch;
    use crate::{files, open};

    /// # Errors
    /// What keeps one of the nodes from making its part; nothing is left at any of them then.
    pub(super) fn run(arguments: LoadArguments) -> anyhow::Result<()> {
        open::check_new_folder(&arguments.location)?;
        if arguments.files.iter().any(|file| file.as_os_str() == "-") {
            bail!(
                "--peers: all nodes read the same files, and standard input is of one process; name files"
            );
        }
        let (Some(file), Some(name)) = (&arguments.together.peers, &arguments.together.node) else {
            unreachable!("the command line has both or none");
        };
        let (peers, secret) = PeerList::read(file).context("--peers")?;
        let node = peers.node(name).context("--node")?;
        let sources = open::sources(&arguments.files, &arguments.read, arguments.base.as_ref())?;
        let mut options = open::load_options(&arguments.read)?;
        options.graph.clone_from(&arguments.graph);
        if let Some(threads) = arguments.threads {
            options.threads = threads;
        }
        let with = PartOptions {
            node,
            secret,
            listener: None,
            meet_within: arguments.together.meet_within,
            purpose: purpose(&arguments)?,
            union_default_graph: arguments.union_default_graph,
            peers,
        };
        let start = Instant::now();
        let progress = Progress::default();
        let watch = Watch::load("loading and storing", progress.clone(), None);
        let waiting = |names: &[&str]| note!("node {name} waits for {}", names.join(", "));
        let location = &arguments.location;
        let made = Database::create_part(location, sources, &options, &progress, with, &waiting);
        drop(watch);
        let report = made?;
        open::tell_about_text(&report.load);
        open::tell(&report.load, start.elapsed());
        note!(
            "the part of node {name} has {}: edges {}, dictionary {}; sent {} to other nodes",
            bytes(report.bytes.total()),
            bytes(report.bytes.edges),
            bytes(report.bytes.dictionary),
            bytes(report.sent_bytes),
        );
        Ok(())
    }

    /// What is loaded, in words that are the same at nodes that load the same: where the files lie may differ.
    fn purpose(arguments: &LoadArguments) -> anyhow::Result<String> {
        let mut purpose = "load".to_owned();
        for file in files::expand(&arguments.files)? {
            let name = file.file_name().map(|name| name.display().to_string());
            let length = std::fs::metadata(&file).with_context(|| file.display().to_string())?;
            if !length.is_file() {
                bail!(
                    "{}: it is no regular file, of which all nodes could read their shares",
                    file.display()
                );
            }
            let name = name.unwrap_or_default();
            let _ = write!(purpose, " {name} ({} bytes)", length.len());
        }
        let read = &arguments.read;
        let said = [
            ("--format", read.format.map(|format| format!("{format:?}"))),
            ("--base", arguments.base.as_ref().map(ToString::to_string)),
            ("--graph", arguments.graph.as_ref().map(ToString::to_string)),
            ("--lenient", read.lenient.then(String::new)),
            (
                "--union-default-graph",
                arguments.union_default_graph.then(String::new),
            ),
        ];
        for (option, value) in said {
            if let Some(value) = value {
                let _ = write!(purpose, " {option} {value}");
            }
        }
        Ok(purpose)
    }
}

#[cfg(not(target_os = "linux"))]
mod together {
    use crate::args::LoadArguments;

    /// # Errors
    /// Nodes of a cluster run on Linux.
    pub(super) fn run(_: LoadArguments) -> anyhow::Result<()> {
        anyhow::bail!("--peers: nodes of a cluster run on Linux")
    }
}
