//! `jindou dump`: what a store holds, as a file.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jindou_bench::table::{bytes, thousands};
use jindou_engine::results::{GraphFormat, GraphWriter};
use jindou_engine::{CancellationToken, Config, Database, GraphSelection};

use crate::args::DumpArguments;
use crate::interrupt::{self, Interrupted};
use crate::open;
use crate::progress::Watch;
use crate::target::{Name, Target, refuse_terminal};

/// A dump that takes less shows no progress.
const PATIENCE: Duration = Duration::from_secs(2);
/// Text held back before it is written.
const FLUSH_BYTES: usize = 64 << 10;
/// What a graph may take, with its text, to be laid out as a whole.
pub(crate) const MOST_GATHERED_BYTES: usize = 256 << 20;
/// Quads between two steps of the progress.
const STEP_QUADS: u64 = 4096;

/// # Errors
/// A folder that is no store, a format that cannot hold what is there, and what keeps the file
/// from being written; nothing is left of it then.
pub(crate) fn run(arguments: &DumpArguments) -> anyhow::Result<()> {
    let path = arguments
        .output
        .as_deref()
        .filter(|path| path.as_os_str() != "-");
    let name = Name::of(path)?;
    let format = format(arguments.format, &name)?;
    if matches!(format, GraphFormat::Arrow | GraphFormat::Parquet) {
        name.refuse_compression(format.name())?;
        refuse_terminal(path, format.name())?;
    }
    let database = open::to_read(&arguments.location, Config::default())?;
    let selection = selection(&database, arguments)?;
    let counts = database.quad_counts();
    if selection == GraphSelection::All && counts.named_quads > 0 && !format.has_named_graphs() {
        bail!(
            "the store has {} quads in named graphs, which {} cannot hold; choose nq, trig, jsonld \
             or parquet, or one graph with --graph IRI or --default-graph",
            thousands(counts.named_quads),
            format.name()
        );
    }
    let total = match selection {
        GraphSelection::All => Some(counts.total()),
        GraphSelection::Default => Some(counts.triples),
        GraphSelection::Named(_) => None,
    };
    let token = interrupt::watch()?;
    let begin = Instant::now();
    let mut target = Target::create(path, &name)?;
    let quads = write(&database, &selection, format, total, &token, &mut target)?;
    let written = target.bytes();
    target.finish()?;
    if let Some(path) = path {
        tell(path, quads, written, begin.elapsed());
    }
    Ok(())
}

fn format(given: Option<GraphFormat>, name: &Name) -> anyhow::Result<GraphFormat> {
    Ok(match (given, name.ending.as_deref()) {
        (Some(format), _) => format,
        (None, None) => GraphFormat::NQuads,
        (None, Some("arrows")) => GraphFormat::Arrow,
        (None, Some("arrow" | "feather")) => {
            bail!("what is written is an Arrow stream; name it .arrows, or give --format arrow")
        }
        (None, Some(ending)) => match GraphFormat::from_name(ending) {
            Some(format) => format,
            None => bail!("the ending .{ending} tells no format; name it with --format"),
        },
    })
}

fn selection(database: &Database, arguments: &DumpArguments) -> anyhow::Result<GraphSelection> {
    Ok(match &arguments.graph {
        Some(graph) if database.has_graph(&graph.clone().into()) => {
            GraphSelection::Named(graph.clone().into())
        }
        Some(graph) => bail!("the store has no graph {graph}"),
        None if arguments.default_graph => GraphSelection::Default,
        None => GraphSelection::All,
    })
}

/// Writes the quads under a progress bar; gives their number.
fn write(
    database: &Database,
    selection: &GraphSelection,
    format: GraphFormat,
    total: Option<u64>,
    token: &CancellationToken,
    target: &mut Target,
) -> anyhow::Result<u64> {
    let done = Arc::new(AtomicU64::new(0));
    let watched = Arc::clone(&done);
    let _watch = Watch::after(PATIENCE, "dumping".to_owned(), move || {
        let quads = watched.load(Ordering::Relaxed);
        (quads, total, format!("{} quads", thousands(quads)))
    });
    let mut writer = GraphWriter::new(format)
        .with_names(database.prefixes().after(&[]))
        .with_memory(None, MOST_GATHERED_BYTES);
    let mut text = Vec::with_capacity(2 * FLUSH_BYTES);
    let quads = database.for_each_quad(selection, |mut quad| {
        if !format.has_named_graphs() {
            // There is one graph only, and its name is known to whoever asked for it.
            quad.graph = None;
        }
        writer.quad(&mut text, quad)?;
        if text.len() >= FLUSH_BYTES {
            target.write_all(&text).context("writing the dump")?;
            text.clear();
        }
        if writer.triples().is_multiple_of(STEP_QUADS) {
            done.store(writer.triples(), Ordering::Relaxed);
            if token.is_cancelled() {
                return Err(anyhow::Error::new(Interrupted));
            }
        }
        Ok(())
    })?;
    writer.finish(&mut text)?;
    target.write_all(&text).context("writing the dump")?;
    if token.is_cancelled() {
        return Err(Interrupted.into());
    }
    Ok(quads)
}

fn tell(path: &Path, quads: u64, written: u64, time: Duration) {
    note!(
        "wrote {} quads, {} before any compression, to {} in {:.2} s",
        thousands(quads),
        bytes(written),
        path.display(),
        time.as_secs_f64()
    );
}
