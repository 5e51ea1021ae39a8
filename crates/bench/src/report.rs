//! What does a measurement tell, and how is it printed?

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use crate::machine::{Machine, Memory};
use crate::table::{Table, bytes, millis, thousands};
use crate::timing::Timing;

/// All figures of one measurement. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Where it was measured.
    pub machine: Machine,
    /// Version of this program.
    pub version: String,
    /// Whether the program was built with optimization; figures without it say little.
    pub optimized: bool,
    /// Universities of the data.
    pub universities: u32,
    /// Seed of the data.
    pub seed: u64,
    /// Loading.
    pub load: LoadFigures,
    /// The seven queries.
    pub queries: Vec<QueryFigures>,
    /// The mixed light load in process.
    pub light: LightFigures,
    /// Light queries over HTTP.
    pub http_light: Vec<HttpLightFigures>,
    /// A stored database.
    pub stored: Option<StoredFigures>,
}

/// Universities of the data of [`PUBLISHED`].
const PUBLISHED_OF: u32 = 2560;
/// Milliseconds of the queries on one machine of 20 cores, by the Wukong paper (OSDI 2016).
const PUBLISHED: [(&str, f64); 7] = [
    ("q1", 752.0),
    ("q2", 120.0),
    ("q3", 306.0),
    ("q4", 0.19),
    ("q5", 0.11),
    ("q6", 0.56),
    ("q7", 671.0),
];

/// Loading a file of N-Triples that the system has in memory, or what the generator writes to a pipe meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadFigures {
    /// Threads.
    pub threads: usize,
    /// Size of the file, or of the text that came by a pipe; none if nothing was loaded, as the store was there.
    pub file_bytes: Option<u64>,
    /// Statements in the file, repeats included.
    pub statements: u64,
    /// Triples held afterwards.
    pub triples: u64,
    /// Time until the data can be queried, in a fresh process if one was started; none if nothing was loaded.
    pub seconds: Option<f64>,
    /// What the store itself says it holds.
    pub footprint_bytes: u64,
    /// Memory of a fresh process right after, if one was started to load.
    pub memory: Option<Memory>,
}

impl LoadFigures {
    /// Statements of the file loaded in a second; none if nothing was loaded.
    #[must_use]
    pub fn statements_per_second(&self) -> Option<f64> {
        Some(self.statements as f64 / self.seconds?)
    }

    /// Resident bytes of a fresh process a triple held, or the store's own if none was started.
    #[must_use]
    pub fn bytes_per_triple(&self) -> f64 {
        let held = self
            .memory
            .map_or(self.footprint_bytes, |m| m.resident_bytes);
        held as f64 / self.triples.max(1) as f64
    }
}

/// One query, run in several ways.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryFigures {
    /// Its name.
    pub name: String,
    /// Rows of its answer, the same in every way.
    pub rows: u64,
    /// Bytes of its answer as TSV.
    pub text_bytes: u64,
    /// The very first run, planning included, ids only, one thread.
    pub first_run_ms: f64,
    /// Every id of every row read, in process, one thread.
    pub ids: Timing,
    /// The same on several threads.
    pub ids_parallel: Timing,
    /// Every row written as TSV, in process, one thread.
    pub tsv: Timing,
    /// Every row as TSV over a loopback connection that is kept open.
    pub http: Option<Timing>,
}

/// The mixed light load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LightFigures {
    /// Threads, each with one query at a time.
    pub threads: usize,
    /// How long it ran.
    pub seconds: f64,
    /// Queries answered.
    pub queries: u64,
    /// And in a second.
    pub queries_per_second: f64,
    /// By class.
    pub classes: Vec<ClassFigures>,
}

/// One class of light queries within the mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassFigures {
    /// Its name.
    pub class: String,
    /// Its times.
    pub timing: Timing,
}

/// Light queries of one class over HTTP, the generator on the same cores as the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpLightFigures {
    /// The class.
    pub class: String,
    /// Connections, each with one request at a time.
    pub connections: usize,
    /// How long it ran.
    pub seconds: f64,
    /// Queries answered.
    pub queries: u64,
    /// And in a second.
    pub queries_per_second: f64,
}

/// A database in a folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredFigures {
    /// Time to make it from the file; none if it was there.
    pub create_seconds: Option<f64>,
    /// Size of its files.
    pub file_bytes: u64,
    /// Time to open it in a fresh process.
    pub open_seconds: f64,
    /// Memory of that process right after.
    pub memory: Memory,
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "LUBM, {} universities, seed {}; jindou {} on {}",
            self.universities, self.seed, self.version, self.machine
        )?;
        if !self.optimized {
            writeln!(
                f,
                "This program was built without optimization: build with --release."
            )?;
        }
        self.write_load(f)?;
        self.write_queries(f)?;
        self.write_light(f)
    }
}

impl Report {
    fn write_load(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let load = &self.load;
        let mut table = Table::new(["loading from N-Triples", ""]);
        let mut line = |name: &str, value: String| table.row([name.to_owned(), value]);
        line("triples", thousands(load.triples));
        // A store that was there was not loaded.
        if let Some(file_bytes) = load.file_bytes {
            line("text", bytes(file_bytes));
            line("statements", thousands(load.statements));
        }
        if let Some((seconds, rate)) = load.seconds.zip(load.statements_per_second()) {
            line("time", format!("{seconds:.2} s"));
            line("statements a second", format!("{:.2} M/s", rate / 1e6));
            line("threads", load.threads.to_string());
        }
        if let Some(memory) = load.memory {
            line("resident after the load", bytes(memory.resident_bytes));
            line("resident at most", bytes(memory.peak_bytes));
            let each = format!("{:.1} B", load.bytes_per_triple());
            line("resident bytes a triple", each);
        }
        line("held by the store", bytes(load.footprint_bytes));
        let held = load.footprint_bytes as f64 / load.triples.max(1) as f64;
        line("held bytes a triple", format!("{held:.1} B"));
        if let Some(stored) = &self.stored {
            if let Some(seconds) = stored.create_seconds {
                line("time to store", format!("{seconds:.2} s"));
            }
            line("stored files", bytes(stored.file_bytes));
            line(
                "time to open",
                format!("{} ms", millis(stored.open_seconds * 1e3)),
            );
            line("resident once open", bytes(stored.memory.resident_bytes));
        }
        write!(f, "\n{table}")
    }

    fn write_queries(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let runs = self.queries.first().map_or(0, |query| query.ids.runs);
        let threads = self.load.threads;
        writeln!(f, "\nmilliseconds of {runs} runs: shortest / median / p99")?;
        let ways = [
            "ids, 1 thread",
            &format!("ids, {threads} threads"),
            "TSV",
            "TSV over HTTP",
        ];
        let published = self.published();
        let mut headings = vec!["query".to_owned(), "rows".to_owned(), "first".to_owned()];
        let has_http = self.queries.iter().any(|query| query.http.is_some());
        let shown = if has_http { 4 } else { 3 };
        headings.extend(ways[..shown].iter().map(|&way| way.to_owned()));
        headings.extend(published.map(|_| "published, 20 cores".to_owned()));
        let mut table = Table::new(headings);
        for query in &self.queries {
            let mut row = vec![
                query.name.clone(),
                thousands(query.rows),
                millis(query.first_run_ms),
            ];
            let timings = [
                Some(query.ids),
                Some(query.ids_parallel),
                Some(query.tsv),
                query.http,
            ];
            row.extend(
                timings[..shown]
                    .iter()
                    .map(|timing| timing.map_or_else(String::new, three)),
            );
            let of_query = |times: &[(&str, f64)]| {
                let known = times.iter().find(|(name, _)| *name == query.name);
                known.map_or_else(String::new, |(_, time)| time.to_string())
            };
            row.extend(published.map(of_query));
            table.row(row);
        }
        write!(f, "{table}")
    }

    /// What was published of the same data.
    fn published(&self) -> Option<&'static [(&'static str, f64)]> {
        (self.universities == PUBLISHED_OF && self.seed == 0).then_some(&PUBLISHED)
    }

    fn write_light(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let light = &self.light;
        writeln!(
            f,
            "\nmixed light load: {} queries/s on {} threads ({:.1} s); milliseconds a query:",
            thousands(light.queries_per_second as u64),
            light.threads,
            light.seconds
        )?;
        let mut table = Table::new(["class", "queries", "shortest / median / p99"]);
        for class in &light.classes {
            let queries = thousands(u64::from(class.timing.runs));
            table.row([class.class.clone(), queries, three(class.timing)]);
        }
        write!(f, "{table}")?;
        if let Some(first) = self.http_light.first() {
            writeln!(
                f,
                "\nlight queries over HTTP on {} connections, the generator on the same cores:",
                first.connections
            )?;
            let mut table = Table::new(["class", "queries/s"]);
            for http in &self.http_light {
                table.row([
                    http.class.clone(),
                    thousands(http.queries_per_second as u64),
                ]);
            }
            write!(f, "{table}")?;
        }
        Ok(())
    }
}

fn three(timing: Timing) -> String {
    let [min, median, p99] = [timing.min_ms, timing.median_ms, timing.p99_ms].map(millis);
    format!("{min} / {median} / {p99}")
}
