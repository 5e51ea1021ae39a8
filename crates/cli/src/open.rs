//! How do files, a folder or standard input become a database?

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jindou_bench::table::{bytes, thousands};
use jindou_engine::ingest::{Contexts, LoadOptions, Progress, Source};
use jindou_engine::{Config, Database, EngineError, LoadReport, StoreError, parquet_source};
use oxrdf::NamedNode;

use crate::args::{ContextArgument, ReadArguments};
use crate::files;
use crate::progress::Watch;

/// Errors of a lenient load that are described one by one.
const SHOWN_ERRORS: usize = 5;

/// The sources named on a command line; `-` is standard input.
pub(crate) fn sources(
    files: &[PathBuf],
    read: &ReadArguments,
    base: Option<&NamedNode>,
) -> anyhow::Result<Vec<Source>> {
    let files = &files::expand(files)?;
    let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
    match files.iter().filter(|path| is_stdin(path)).count() {
        0 => {}
        1 if read.format.is_some() => {}
        1 => bail!("standard input has no name to tell its format; name it with --format"),
        _ => bail!("standard input can be read once only; give `-` once"),
    }
    let sources = files.iter().map(|path| {
        if read.format.is_none() && files::is_parquet(path) {
            return Ok(parquet_source(path)?);
        }
        let mut source = if is_stdin(path) {
            Source::stdin()
        } else {
            Source::path(path)
        };
        if let Some(format) = read.format {
            source = source.with_format(format);
        }
        Ok(match base {
            Some(base) => source.with_base_iri(base.as_str()),
            None => source,
        })
    });
    sources.collect()
}

/// The contexts of JSON-LD that options give.
pub(crate) fn contexts(read: &ReadArguments) -> anyhow::Result<Contexts> {
    let mut contexts = Contexts::default();
    for ContextArgument { iri, file } in &read.context {
        let name = file.display();
        let document = std::fs::read_to_string(file).with_context(|| name.to_string())?;
        contexts = contexts
            .with(iri, &document)
            .with_context(|| name.to_string())?;
    }
    Ok(contexts)
}

/// The options of a load.
pub(crate) fn load_options(read: &ReadArguments) -> anyhow::Result<LoadOptions> {
    Ok(LoadOptions {
        lenient: read.lenient,
        max_reported_errors: SHOWN_ERRORS,
        contexts: contexts(read)?,
        ..LoadOptions::default()
    })
}

/// A database in memory with these files, loaded under a progress bar. Says what it came to if
/// that took at least `patience`.
pub(crate) fn in_memory(
    files: &[PathBuf],
    read: &ReadArguments,
    patience: Duration,
    config: Config,
) -> anyhow::Result<Database> {
    let sources = sources(files, read, None)?;
    let options = load_options(read)?;
    let database = Database::with_config(config);
    load("loading", patience, |progress| {
        let report = database.load(sources, &options, progress)?;
        Ok((database.clone(), report))
    })
}

/// The store in a folder with these sources beside what it holds, loaded under a progress bar;
/// made if it is not there.
pub(crate) fn create(
    location: &Path,
    sources: Vec<Source>,
    options: &LoadOptions,
    config: Config,
) -> anyhow::Result<Database> {
    check_new_folder(location)?;
    load("loading and storing", Duration::ZERO, |progress| {
        Ok(Database::create(
            location, sources, options, progress, config,
        )?)
    })
}

/// Whether a store cannot be opened because another process has it open.
pub(crate) fn is_in_use(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(EngineError::Store(StoreError::Locked { .. }))
    )
}

/// The store in a folder.
pub(crate) fn stored(location: &Path, config: Config) -> anyhow::Result<Database> {
    check_folder(location)?;
    Ok(Database::open(location, config)?)
}

/// The store in a folder, to be copied: kept as it is meanwhile.
pub(crate) fn to_copy(location: &Path, config: Config) -> anyhow::Result<Database> {
    check_folder(location)?;
    Ok(Database::open_to_copy(location, config)?)
}

/// The store in a folder, to be read as it is now, though another process may write it.
pub(crate) fn to_read(location: &Path, config: Config) -> anyhow::Result<Database> {
    check_folder(location)?;
    Ok(Database::open_to_read(location, config)?)
}

/// The store in a folder, to be read by a node of a cluster: also the node's part of one.
pub(crate) fn to_join(location: &Path, config: Config) -> anyhow::Result<Database> {
    check_folder(location)?;
    Ok(Database::open_to_join(location, config)?)
}

/// Whether a store cannot be opened because this user may not write it, or nobody may.
pub(crate) fn may_not_be_written(error: &anyhow::Error) -> bool {
    let Some(EngineError::Io { source, .. }) = error.downcast_ref() else {
        return false;
    };
    matches!(
        source.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}

/// Whether a store may be read there: what has that name is a folder that may be looked at.
pub(crate) fn check_folder(location: &Path) -> anyhow::Result<()> {
    check_there(
        location,
        "make a store with `jindou load --location DIR FILE...`",
    )
}

/// As [`check_folder`], with what to do where nothing is there.
pub(crate) fn check_there(location: &Path, advice: &str) -> anyhow::Result<()> {
    let name = location.display();
    match std::fs::metadata(location) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => bail!("{name}: it is a file, and a store is a folder"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("{name}: there is no such folder; {advice}")
        }
        Err(error) => Err(error).context(name.to_string()),
    }
}

/// Whether a store or a copy of one may be made there: a file has not that name.
pub(crate) fn check_new_folder(location: &Path) -> anyhow::Result<()> {
    if std::fs::metadata(location).is_ok_and(|metadata| !metadata.is_dir()) {
        bail!(
            "{}: it is a file, and a store is a folder; name another",
            location.display()
        );
    }
    Ok(())
}

/// The store in a folder, an empty one if there is none yet.
pub(crate) fn stored_or_new(location: &Path, config: Config) -> anyhow::Result<Database> {
    check_new_folder(location)?;
    let is_new = !location.exists();
    let database = Database::open_or_create(location, config)?;
    if is_new {
        note!("{}: made an empty store", location.display());
    }
    Ok(database)
}

fn load(
    what: &str,
    patience: Duration,
    work: impl FnOnce(&Progress) -> anyhow::Result<(Database, LoadReport)>,
) -> anyhow::Result<Database> {
    let progress = Progress::default();
    let start = Instant::now();
    let watch = Watch::load(what, progress.clone(), None);
    let outcome = work(&progress);
    drop(watch);
    let (database, report) = outcome?;
    tell_about_text(&report);
    if start.elapsed() >= patience {
        tell(&report, start.elapsed());
    }
    Ok(database)
}

/// Says what was left out, what was kept though it is odd, and what is in another format than its
/// name says.
pub(crate) fn tell_about_text(report: &LoadReport) {
    for mistaken in report.mistaken.iter().take(SHOWN_ERRORS) {
        note!(
            "{}: read as {}, which it looks like, and not as {} (--format decides)",
            mistaken.file,
            mistaken.format,
            mistaken.likely
        );
    }
    if report.mistaken.len() > SHOWN_ERRORS {
        let files = thousands(report.mistaken.len() as u64);
        note!("{files} files in all are in another format than their names say");
    }
    for skipped in &report.errors {
        let rest = match skipped.rest_dropped {
            true => " (and the rest of the file)",
            false => "",
        };
        note!("left out{rest}: {}", skipped.error);
    }
    if report.skipped > report.errors.len() as u64 {
        let faults = &report.faults;
        let kinds = kinds(&[
            (faults.strings, "of strings"),
            (faults.iris, "of IRIs"),
            (faults.prefixes, "of prefixes"),
            (faults.others, "others"),
        ]);
        note!(
            "left out: {} errors in all: {kinds}",
            thousands(report.skipped)
        );
    }
    if !report.odd.is_none() {
        let kinds = kinds(&[
            (
                report.odd.iris,
                "statements with IRIs that RFC 3987 refuses",
            ),
            (
                report.odd.languages,
                "with language tags that RFC 5646 refuses",
            ),
            (report.odd.escapes, "characters in two escapes"),
        ]);
        note!("kept though odd: {kinds}");
    }
}

/// Numbers with what they count, but for those that are zero.
fn kinds(counts: &[(u64, &str)]) -> String {
    let known = counts.iter().filter(|(count, _)| *count > 0);
    let shown: Vec<String> = known
        .map(|(count, what)| format!("{} {what}", thousands(*count)))
        .collect();
    shown.join(", ")
}

/// Says what a load came to.
pub(crate) fn tell(report: &LoadReport, time: Duration) {
    let named = match report.named_quads {
        0 => String::new(),
        quads => format!(" and {} quads of named graphs", thousands(quads)),
    };
    let seconds = time.as_secs_f64();
    note!(
        "read {} in {seconds:.2} s, {:.2} million statements a second; there are {} triples{named}",
        bytes(report.bytes_read),
        report.quads as f64 / seconds / 1e6,
        thousands(report.triples),
    );
}

/// The text of the query, or of the update, and what to call it in errors.
pub(crate) fn query_text(
    text: crate::args::TextArguments,
    kind: &str,
) -> anyhow::Result<(String, String)> {
    if let Some(query) = text.query {
        return Ok((without_mark(query), kind.to_owned()));
    }
    let path = text
        .query_file
        .expect("the command line has one of the two");
    let name = path.display().to_string();
    let text = if name == "-" {
        std::io::read_to_string(std::io::stdin()).context("standard input")?
    } else {
        std::fs::read_to_string(&path).with_context(|| format!("{name}: cannot read the {kind}"))?
    };
    Ok((without_mark(text), name))
}

/// A text without the byte order mark that some editors begin files with.
fn without_mark(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}
