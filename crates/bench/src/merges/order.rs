//! What does ORDER BY cost over literals of which one in ten was appended by updates?
//!
//! The stores hold the same data: a fresh load of all, and loads of nine tenths to which
//! transactions append the rest, in the delta or merged into several tables. The texts of appended
//! literals lie either between those of the load, or all behind them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use jindou_engine::{Config, Database, MergePolicy};

use super::compare::compare;
use super::report::{Order, Ordered};
use super::{Options, StoreFolder};
use crate::operators::Check;
use crate::{BenchError, run};

/// One vertex in this many is appended.
const APPENDED: u64 = 10;
/// Vertices of one request.
const BATCH: usize = 1_000;
/// The parts of the appended vertices that are merged one by one, in hundredths: each is much less
/// than the one before, so that the tables of their literals stay apart.
const MERGES: [usize; 4] = [70, 22, 6, 2];
/// Vertices of a group of GROUP BY.
const GROUP: u64 = 50;

/// The queries, by name.
const QUERIES: [(&str, &str); 9] = [
    (
        "first-10",
        "SELECT ?t { ?v <http://e/name> ?t } ORDER BY ?t LIMIT 10",
    ),
    (
        "last-10",
        "SELECT ?t { ?v <http://e/name> ?t } ORDER BY DESC(?t) LIMIT 10",
    ),
    ("all", "SELECT ?t { ?v <http://e/name> ?t } ORDER BY ?t"),
    (
        "all-desc",
        "SELECT ?t { ?v <http://e/name> ?t } ORDER BY DESC(?t)",
    ),
    (
        "language",
        "SELECT ?t { ?v <http://e/label> ?t } ORDER BY ?t",
    ),
    (
        "two-keys",
        "SELECT ?g ?t { ?v <http://e/group> ?g ; <http://e/name> ?t } ORDER BY ?g DESC(?t)",
    ),
    (
        "min-max",
        "SELECT (MIN(?t) AS ?a) (MAX(?t) AS ?z) { ?v <http://e/name> ?t }",
    ),
    (
        "min-each",
        "SELECT ?g (MIN(?t) AS ?a) { ?v <http://e/group> ?g ; <http://e/name> ?t } GROUP BY ?g ORDER BY ?g",
    ),
    (
        "distinct",
        "SELECT DISTINCT ?t { ?v <http://e/name> ?t } ORDER BY ?t",
    ),
];

/// # Errors
/// Any [`BenchError`].
pub(super) fn measure(options: &Options, note: &mut impl FnMut(&str)) -> Result<Order, BenchError> {
    let mut stores = Vec::new();
    for (texts, behind) in [("between", false), ("behind", true)] {
        let data = Data::new(options.literals, behind);
        note("loading afresh");
        let fresh_folder = StoreFolder::new(&options.folder, "merges-order-fresh");
        let fresh = data.load(&fresh_folder, &options.folder, 0..options.literals)?;
        for merges in [&[][..], &MERGES[..]] {
            note("loading and appending");
            let folder = StoreFolder::new(&options.folder, "merges-order");
            let database = data.load(&folder, &options.folder, 0..data.loaded())?;
            data.append(&database, merges)?;
            let way = match merges.is_empty() {
                true => "when appended",
                false => "when merged",
            };
            let queries = compare(
                &fresh,
                &database,
                (way, Check::Sequence),
                &QUERIES,
                options.runs,
                note,
            )?;
            stores.push(Ordered {
                texts: texts.to_owned(),
                merges: merges.len() as u64,
                queries,
            });
        }
    }
    Ok(Order {
        literals: options.literals,
        appended: options.literals / APPENDED,
        stores,
    })
}

/// Vertices with a name, a label with a language, and a group.
struct Data {
    vertices: u64,
    /// Whether the texts of those that are appended lie behind all others.
    behind: bool,
}

impl Data {
    fn new(vertices: u64, behind: bool) -> Self {
        Self { vertices, behind }
    }

    /// How many are loaded before the rest is appended.
    fn loaded(&self) -> u64 {
        self.vertices - self.vertices / APPENDED
    }

    fn line(&self, vertex: u64) -> String {
        // Odd, so that no two of fewer than 2^32 texts are the same.
        let text = (vertex as u32).wrapping_mul(0x9e37_79b1);
        let begin = match self.behind && vertex >= self.loaded() {
            true => "Visitor",
            false => "Student",
        };
        format!(
            "<http://e/v/{vertex}> <http://e/name> \"{begin} number {text:010} of the school\" .\n\
             <http://e/v/{vertex}> <http://e/label> \"{begin} {text:010}\"@en .\n\
             <http://e/v/{vertex}> <http://e/group> <http://e/g/{}> .\n",
            vertex % self.vertices.div_ceil(GROUP)
        )
    }

    fn load(
        &self,
        store: &StoreFolder,
        folder: &Path,
        vertices: std::ops::Range<u64>,
    ) -> Result<Database, BenchError> {
        let file = TextFile(folder.join(format!("order-{}.nt", std::process::id())));
        let text: String = vertices.map(|vertex| self.line(vertex)).collect();
        fs::write(&file.0, text).map_err(BenchError::io(&file.0))?;
        let mut config = Config::default();
        config.merge = MergePolicy::never();
        Ok(store.load(&file.0, config)?.0)
    }

    /// Appends what was not loaded; merges after each of these hundredths of it.
    fn append(&self, database: &Database, merges: &[usize]) -> Result<(), BenchError> {
        let vertices: Vec<u64> = (self.loaded()..self.vertices).collect();
        let mut rest = vertices.as_slice();
        for hundredths in merges {
            let part = (vertices.len() * hundredths / 100).min(rest.len());
            let (now, later) = rest.split_at(part);
            self.insert(database, now)?;
            run::once(|| Ok(database.compact()?))?;
            rest = later;
        }
        self.insert(database, rest)
    }

    fn insert(&self, database: &Database, vertices: &[u64]) -> Result<(), BenchError> {
        for some in vertices.chunks(BATCH) {
            let mut text = "INSERT DATA {\n".to_owned();
            for vertex in some {
                write!(text, "{}", self.line(*vertex)).expect("a string takes any text");
            }
            text.push('}');
            database.update(&text)?;
        }
        Ok(())
    }
}

/// A file that is removed when this is dropped.
struct TextFile(PathBuf);

impl Drop for TextFile {
    fn drop(&mut self) {
        // One that stays behind costs space only.
        let _ = fs::remove_file(&self.0);
    }
}
