//! Which files do the names on a command line stand for?
//!
//! A folder stands for the files in it and in its folders, a pattern such as `data/*.ttl.gz` for those
//! that match, where the shell has left it alone; both in the order of their names, and only for files
//! whose ending is that of a format. A file that is there is itself, whatever its name looks like.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use jindou_engine::PARQUET_ENDING;
use jindou_engine::ingest::Format;

/// Files that are left out of a folder or a pattern that are named one by one.
const SHOWN_FILES: usize = 5;

/// The files that these names stand for. Says which of a folder's or a pattern's are left out.
///
/// # Errors
/// A folder or a pattern without a file that can be loaded, or what the operating system says.
pub(crate) fn expand(names: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for name in names {
        if name.is_dir() {
            let mut found = Vec::new();
            walk(name, &mut found)?;
            files.extend(readable(name, found)?);
        } else if is_pattern(name) {
            let found = matching(name)?;
            files.extend(readable(name, found)?);
        } else {
            files.push(name.clone());
        }
    }
    Ok(files)
}

fn is_pattern(name: &Path) -> bool {
    let text = name.to_string_lossy();
    text != "-" && text.contains(['*', '?', '[']) && !name.exists()
}

/// All files of a folder and of those in it; links to folders are not followed, as they may lead back.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let failed = || folder.display().to_string();
    for entry in std::fs::read_dir(folder).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let path = entry.path();
        if entry.file_type().with_context(failed)?.is_dir() {
            walk(&path, files)?;
        } else if path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

fn matching(pattern: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let shown = pattern.display();
    let Some(text) = pattern.to_str() else {
        bail!("{shown}: a pattern is a text in UTF-8");
    };
    let paths = glob::glob(text).with_context(|| format!("{shown}: it is no pattern of files"))?;
    let mut files = Vec::new();
    for path in paths {
        let path = path.with_context(|| shown.to_string())?;
        if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

/// The files whose names tell a format, sorted.
fn readable(name: &Path, mut files: Vec<PathBuf>) -> anyhow::Result<Vec<PathBuf>> {
    files.sort();
    let (known, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| is_known(file));
    for file in others.iter().take(SHOWN_FILES) {
        note!("left out: {}: its ending tells no format", file.display());
    }
    if others.len() > SHOWN_FILES {
        note!(
            "left out: {} files in all whose endings tell no format",
            others.len()
        );
    }
    if known.is_empty() {
        bail!(
            "{}: there is no file whose ending tells a format",
            name.display()
        );
    }
    Ok(known)
}

fn is_known(file: &Path) -> bool {
    let name = file.to_string_lossy();
    Format::from_file_name(&name).0.is_some() || is_parquet(file)
}

/// Whether a file is one of Parquet by its name.
pub(crate) fn is_parquet(file: &Path) -> bool {
    let ending = file.extension();
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case(PARQUET_ENDING))
}
