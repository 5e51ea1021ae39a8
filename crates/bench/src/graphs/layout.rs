//! How are the statements of LUBM spread over graphs?

use std::fmt::{self, Display, Formatter};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use jindou_datagen::lubm::Lubm;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::form::Form;
use crate::{BenchError, data};

/// Graphs of [`Layout::RandomGraph`].
const RANDOM_GRAPHS: u32 = 1_000;
/// Graphs of [`Layout::RepeatedInGraphs`].
const REPEATING_GRAPHS: u32 = 200;
/// Graphs that repeat one subject there, and what [`Layout::universities`] divides by.
pub(super) const REPEATS: u32 = 20;
/// Text written at once.
const WRITE_BYTES: usize = 1 << 20;

/// Where each statement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Layout {
    /// In the default graph, beside which the others are measured.
    DefaultGraph,
    /// All in one named graph.
    OneGraph,
    /// Those of each university in a graph of its own.
    GraphPerUniversity,
    /// Each in one of 1,000 graphs, by a hash of the statement.
    RandomGraph,
    /// Those of each subject in 20 of 200 graphs, by a hash of the subject. 20 times the quads,
    /// and therefore of a twentieth of the universities.
    RepeatedInGraphs,
}

impl Layout {
    /// All; those of the same universities follow each other.
    pub const ALL: [Self; 5] = [
        Self::DefaultGraph,
        Self::OneGraph,
        Self::GraphPerUniversity,
        Self::RandomGraph,
        Self::RepeatedInGraphs,
    ];

    /// Its name on the command line and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DefaultGraph => "default-graph",
            Self::OneGraph => "one-graph",
            Self::GraphPerUniversity => "graph-per-university",
            Self::RandomGraph => "random-graph",
            Self::RepeatedInGraphs => "repeated-in-graphs",
        }
    }

    /// How queries are asked of it, beside the same queries of the default graph.
    #[must_use]
    pub const fn forms(self) -> &'static [Form] {
        match self {
            Self::DefaultGraph => &[],
            Self::OneGraph => &[Form::Graph, Form::AnyGraph, Form::From],
            Self::GraphPerUniversity => {
                &[Form::Graph, Form::AnyGraph, Form::MergeOfAll, Form::Union]
            }
            Self::RandomGraph => &[Form::AnyGraphEach, Form::MergeOfAll, Form::Union],
            Self::RepeatedInGraphs => &[Form::Graph, Form::AnyGraph, Form::MergeOfAll, Form::Union],
        }
    }

    /// How many universities it has in a measurement of `universities`.
    #[must_use]
    pub fn universities(self, universities: u32) -> u32 {
        match self {
            Self::RepeatedInGraphs => (universities / REPEATS).max(1),
            _ => universities,
        }
    }

    /// Named graphs of `data`.
    #[must_use]
    pub fn graphs(self, data: Lubm) -> u32 {
        match self {
            Self::DefaultGraph => 0,
            Self::OneGraph => 1,
            Self::GraphPerUniversity => data.universities,
            Self::RandomGraph => RANDOM_GRAPHS,
            Self::RepeatedInGraphs => REPEATING_GRAPHS,
        }
    }

    /// Quads of `data` in this layout, each once. Costs about a millisecond a university.
    ///
    /// # Errors
    /// [`BenchError::Datagen`].
    pub fn quads(self, data: Lubm) -> Result<u64, BenchError> {
        if self != Self::GraphPerUniversity {
            let copies = match self {
                Self::RepeatedInGraphs => REPEATS,
                _ => 1,
            };
            return Ok(data.count()?.distinct() * u64::from(copies));
        }
        // A statement that two universities make is in both graphs.
        let of_one = |first| {
            let one = Lubm {
                universities: 1,
                first,
                ..data
            };
            Ok(one.count()?.distinct())
        };
        data.indices()?.map(of_one).sum()
    }

    /// Hands the graphs of a statement, written `subject predicate object` and made by the
    /// university of this number in its data set, to `put`; `None` is the default graph.
    fn place(
        self,
        university: u32,
        statement: &[u8],
        put: &mut impl FnMut(Option<u32>) -> io::Result<()>,
    ) -> io::Result<()> {
        match self {
            Self::DefaultGraph => put(None),
            Self::OneGraph => put(Some(0)),
            Self::GraphPerUniversity => put(Some(university)),
            Self::RandomGraph => put(Some(below(xxh3_64(statement), RANDOM_GRAPHS))),
            Self::RepeatedInGraphs => {
                let end = memchr::memchr(b' ', statement).unwrap_or(statement.len());
                repeating_graphs(xxh3_64(&statement[..end])).try_for_each(|graph| put(Some(graph)))
            }
        }
    }
}

impl Display for Layout {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|layout| layout.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no such layout; there are {names}")
        })
    }
}

/// The IRI of the named graph of this number, below [`Layout::graphs`].
pub(super) fn graph_iri(number: u32) -> String {
    format!("http://example.org/graph/{number}")
}

/// The hash's upper half scaled to `0..limit`.
fn below(hash: u64, limit: u32) -> u32 {
    let scaled = ((hash >> 32) * u64::from(limit)) >> 32;
    u32::try_from(scaled).expect("it is below the limit")
}

/// [`REPEATS`] different graphs. The step shares no divisor with the number of graphs, so that
/// none comes twice; few subjects share both start and step, so that their sets of graphs differ.
fn repeating_graphs(hash: u64) -> impl Iterator<Item = u32> {
    const STEPS: [u32; 8] = [1, 3, 7, 11, 33, 57, 71, 83];
    let start = below(hash, REPEATING_GRAPHS);
    let step = STEPS[hash as usize % STEPS.len()];
    (0..REPEATS).map(move |number| (start + number * step) % REPEATING_GRAPHS)
}

/// A file of generated N-Quads, removed when this is dropped: it is large, and made again at some
/// hundred MB a second.
#[derive(Debug)]
pub struct QuadsFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Different quads in it.
    pub quads: u64,
}

impl QuadsFile {
    /// Writes `data` in a layout into `folder`. Holds the text of one university, about 20 MB.
    ///
    /// # Errors
    /// [`BenchError::Datagen`], [`BenchError::Io`].
    pub fn write(folder: &Path, layout: Layout, data: Lubm) -> Result<Self, BenchError> {
        let quads = layout.quads(data)?;
        let name = format!(
            "lubm-{}-{layout}-{}.nq",
            data.universities,
            std::process::id()
        );
        let path = folder.join(name);
        data::written_once(&path, |file| write_quads(file, layout, data))?;
        let mut written = Self {
            path,
            bytes: 0,
            quads,
        };
        let metadata = fs::metadata(&written.path).map_err(BenchError::io(&written.path))?;
        written.bytes = metadata.len();
        Ok(written)
    }
}

impl Drop for QuadsFile {
    fn drop(&mut self) {
        // A file that cannot be removed costs space only, and its name says which process left it.
        let _ = fs::remove_file(&self.path);
    }
}

fn write_quads(file: &mut File, layout: Layout, data: Lubm) -> io::Result<()> {
    let graphs: Vec<String> = (0..layout.graphs(data)).map(graph_iri).collect();
    let mut out = BufWriter::with_capacity(WRITE_BYTES, file);
    let mut text = String::new();
    let universities = data.indices().map_err(io::Error::other)?;
    for (number, university) in (0..).zip(universities) {
        text.clear();
        data.append_university(university, &mut text);
        for line in text.lines() {
            let statement = line.strip_suffix(" .").expect("a line ends a statement");
            layout.place(number, statement.as_bytes(), &mut |graph| match graph {
                None => writeln!(out, "{statement} ."),
                Some(graph) => writeln!(out, "{statement} <{}> .", graphs[graph as usize]),
            })?;
        }
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rustc_hash::FxHashSet;

    use super::*;

    /// Different quads, graphs and statements of a file.
    fn counts(layout: Layout, data: Lubm) -> [u64; 3] {
        let folder = tempfile::tempdir().unwrap();
        let file = QuadsFile::write(folder.path(), layout, data).unwrap();
        let (mut quads, mut graphs, mut statements) = (
            FxHashSet::default(),
            FxHashSet::default(),
            FxHashSet::default(),
        );
        for line in fs::read_to_string(&file.path).unwrap().lines() {
            let line = line.strip_suffix(" .").unwrap();
            let statement = match line.rsplit_once(" <http://example.org/graph/") {
                Some((statement, graph)) => {
                    graphs.insert(graph.to_owned());
                    statement
                }
                None => line,
            };
            quads.insert(xxh3_64(line.as_bytes()));
            statements.insert(xxh3_64(statement.as_bytes()));
        }
        assert_eq!(file.quads, quads.len() as u64, "{layout}");
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        [quads.len(), graphs.len(), statements.len()].map(|count| count as u64)
    }

    #[test]
    fn each_layout_has_the_same_statements_in_as_many_graphs_as_it_says() {
        for layout in Layout::ALL {
            let data = Lubm::new(layout.universities(2), 0);
            let triples = data.count().unwrap().distinct();
            let [quads, graphs, statements] = counts(layout, data);
            assert_eq!(graphs, u64::from(layout.graphs(data)), "{layout}");
            assert_eq!(statements, triples, "{layout}");
            let expected = match layout {
                Layout::RepeatedInGraphs => triples * 20..=triples * 20,
                // Degrees from the same universities are stated in both graphs.
                Layout::GraphPerUniversity => triples + 1..=triples + 1_000,
                _ => triples..=triples,
            };
            assert!(expected.contains(&quads), "{layout}: {quads}");
        }
    }

    #[test]
    fn a_subject_is_described_in_twenty_different_graphs() {
        for subject in ["<a>", "<b>", "<c>", "<http://www.University0.edu>"] {
            let graphs: Vec<u32> = repeating_graphs(xxh3_64(subject.as_bytes())).collect();
            let different: HashSet<u32> = graphs.iter().copied().collect();
            assert_eq!((graphs.len(), different.len()), (20, 20), "{subject}");
            assert!(graphs.iter().all(|&graph| graph < 200));
        }
    }

    #[test]
    fn a_hash_is_scaled_into_the_whole_range() {
        assert_eq!(below(0, 1_000), 0);
        assert_eq!(below(u64::MAX, 1_000), 999);
        assert_eq!(below(1 << 63, 1_000), 500);
    }
}
