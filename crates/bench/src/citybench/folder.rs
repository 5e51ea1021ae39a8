//! What is there of CityBench in a folder, and which of it do the queries need?
//!
//! Queries are `queries/csparql/NAME.txt`. A stream is called by an IRI that ends with the name of its
//! file, `streams/NAME.tnt.zst` (or `.tnt`), a stored graph by one that ends with that of its own,
//! `static/NAME.n3` (or another ending).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use jindou_engine::ingest::Format;
use jindou_syntax::continuous::CatalogueName;

use crate::BenchError;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of the data.
    pub folder: PathBuf,
    /// Seconds of the streams.
    pub seconds: u64,
    /// The query of this name only.
    pub only: Option<String>,
}

impl Options {
    /// The usual measurement of the data in this folder.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            seconds: 300,
            only: None,
        }
    }
}

/// A query with its text as it is given.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) name: String,
    pub(super) text: String,
}

/// What is measured of a folder.
#[derive(Debug)]
pub(super) struct City {
    pub(super) queries: Vec<Query>,
    /// IRIs and files.
    pub(super) streams: Vec<(String, PathBuf)>,
    /// IRIs and files; one file may be several graphs, as texts call it differently.
    pub(super) graphs: Vec<(String, PathBuf)>,
}

impl City {
    /// # Errors
    /// [`BenchError::NoData`], [`BenchError::NoQuery`], [`BenchError::QueryText`], [`BenchError::Io`].
    pub(super) fn read(options: &Options) -> Result<Self, BenchError> {
        let folder = &options.folder;
        if !folder.is_dir() {
            return Err(missing(folder));
        }
        let queries = queries(&folder.join("queries/csparql"), options.only.as_deref())?;
        let (mut streams, mut graphs) = (BTreeSet::new(), BTreeSet::new());
        for query in &queries {
            add_names(query, &mut streams, &mut graphs)?;
        }
        let files = |iris: BTreeSet<String>,
                     find: fn(&Path, &str) -> Result<PathBuf, BenchError>| {
            let found = iris.into_iter().map(|iri| {
                let file = find(folder, local_name(&iri))?;
                Ok((iri, file))
            });
            found.collect::<Result<Vec<_>, BenchError>>()
        };
        Ok(Self {
            streams: files(streams, stream_file)?,
            graphs: files(graphs, graph_file)?,
            queries,
        })
    }
}

/// What an IRI ends with.
pub(super) fn local_name(iri: &str) -> &str {
    iri.rsplit(['#', '/']).next().unwrap_or(iri)
}

fn missing(path: &Path) -> BenchError {
    BenchError::NoData {
        path: path.to_owned(),
    }
}

/// Queries in the order of their names, numbers by their values.
fn queries(folder: &Path, only: Option<&str>) -> Result<Vec<Query>, BenchError> {
    let entries = fs::read_dir(folder).map_err(|_| missing(folder))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(BenchError::io(folder))?.path();
        if path.extension().is_some_and(|ending| ending == "txt") {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        return Err(missing(&folder.join("*.txt")));
    }
    let name_of = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    paths.sort_by_cached_key(|path| order_of(&name_of(path)));
    let names: Vec<String> = paths.iter().map(name_of).collect();
    let mut queries = Vec::new();
    for (path, name) in paths.iter().zip(&names) {
        if only.is_none_or(|only| only == name) {
            queries.push(Query {
                name: name.clone(),
                text: fs::read_to_string(path).map_err(BenchError::io(path))?,
            });
        }
    }
    match only {
        Some(only) if queries.is_empty() => Err(BenchError::NoQuery {
            name: only.to_owned(),
            known: names.join(", "),
        }),
        _ => Ok(queries),
    }
}

/// What a name is ordered by: `Q2` before `Q10`, `Q10` before `Q10_5`.
fn order_of(name: &str) -> (String, u64, String) {
    let begin = name.find(|letter: char| letter.is_ascii_digit());
    let (word, rest) = name.split_at(begin.unwrap_or(name.len()));
    let end = rest.find(|letter: char| !letter.is_ascii_digit());
    let (number, rest) = rest.split_at(end.unwrap_or(rest.len()));
    (
        word.to_owned(),
        number.parse().unwrap_or(0),
        rest.to_owned(),
    )
}

/// Adds the streams and the stored graphs that a query reads.
fn add_names(
    query: &Query,
    streams: &mut BTreeSet<String>,
    graphs: &mut BTreeSet<String>,
) -> Result<(), BenchError> {
    let options = jindou_syntax::Options::default();
    let read = jindou_syntax::parse_continuous(&query.text, options);
    let read = read.map_err(|source| BenchError::QueryText {
        name: query.name.clone(),
        source: Box::new(source),
    })?;
    for window in &read.windows {
        streams.insert(match &window.stream {
            CatalogueName::Iri(iri) => iri.value.clone().into_owned(),
            CatalogueName::Bare(bare) => bare.name.to_owned(),
        });
    }
    if let Some(dataset) = &read.query.dataset {
        let all = dataset.default.iter().chain(&dataset.named);
        graphs.extend(all.map(|iri| iri.value.clone().into_owned()));
    }
    Ok(())
}

fn stream_file(folder: &Path, name: &str) -> Result<PathBuf, BenchError> {
    let path = |ending: &str| folder.join("streams").join(format!("{name}{ending}"));
    let found = [".tnt.zst", ".tnt"].map(path).into_iter();
    let mut found = found.filter(|path| path.is_file());
    found.next().ok_or_else(|| missing(&path(".tnt.zst")))
}

/// The file of a graph: texts name files of other endings than there are.
fn graph_file(folder: &Path, name: &str) -> Result<PathBuf, BenchError> {
    let folder = folder.join("static");
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let is_of_graph = |path: &PathBuf| {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let ending = file.strip_prefix(stem);
        ending.is_some_and(|ending| ending.starts_with('.'))
            && Format::from_file_name(&file).0.is_some()
    };
    let entries = fs::read_dir(&folder).map_err(|_| missing(&folder))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let found = paths.filter(is_of_graph).min();
    found.ok_or_else(|| missing(&folder.join(format!("{stem}.n3"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_queries_are_ordered_by_value() {
        let mut names = ["Q10_5", "Q2", "Q10", "Q1", "location"];
        names.sort_by_cached_key(|name| order_of(name));
        assert_eq!(names, ["Q1", "Q2", "Q10", "Q10_5", "location"]);
    }
}
