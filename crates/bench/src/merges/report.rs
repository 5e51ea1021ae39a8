//! What does the measurement of merges say, and how is it printed?

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::tenths::{self, Tenth};
use crate::machine::{Machine, Resident};
use crate::table::{Table, bytes, millis, thousands};
use crate::timing::Timing;

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MergeReport {
    /// Where it was measured.
    pub machine: Machine,
    /// Version of this program.
    pub version: String,
    /// Whether the program was built with optimization; figures without it say little.
    pub optimized: bool,
    /// A merge of one predicate.
    pub single: Option<Single>,
    /// A stream of new vertices.
    pub stream: Option<Stream>,
    /// As many deletes as inserts: on an empty store, then on LUBM.
    pub churn: Vec<Churn>,
    /// ORDER BY of literals that were appended.
    pub order: Option<Order>,
    /// Vertices that were typed later.
    pub birth: Option<Birth>,
}

/// Two merges of one predicate, as large as each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Single {
    /// Universities of the data, whose seed is 0.
    pub universities: u32,
    /// Its triples.
    pub triples: u64,
    /// Triples inserted before each merge.
    pub inserted: u64,
    /// Time until the data was stored.
    pub load_seconds: f64,
    /// Time for the first insert, in durable transactions of 1,000 triples.
    pub insert_seconds: f64,
    /// Bytes of the store's files at the end.
    pub store_bytes: u64,
    /// The merge with nothing beside it.
    pub alone: MergeCost,
    /// The merge with queries beside it.
    pub beside: MergeCost,
    /// These queries.
    pub queries: Vec<QueryBeside>,
}

/// What a merge costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MergeCost {
    /// Time.
    pub wall_seconds: f64,
    /// Time of cores, without that of queries beside it.
    pub cpu_seconds: f64,
    /// How much anonymous memory grew at most; beside queries their records are part of it.
    pub growth_bytes: u64,
    /// Bytes of files that were not there before.
    pub written_bytes: u64,
}

/// A query on one thread, in a quiet time and beside a merge or a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryBeside {
    /// Its name.
    pub name: String,
    /// Rows of its answer.
    pub rows: u64,
    /// Before the merge, for as long as the merge alone took, or before the stream.
    pub quiet: Timing,
    /// The longest run there.
    pub quiet_longest_ms: f64,
    /// Beside the merge or the stream.
    pub beside: Timing,
    /// The longest run there.
    pub beside_longest_ms: f64,
}

impl QueryBeside {
    /// Of at least one run before and one meanwhile.
    pub(super) fn of(name: &str, rows: u64, quiet: Vec<Duration>, beside: Vec<Duration>) -> Self {
        let longest =
            |times: &[Duration]| times.iter().max().map_or(0.0, |t| t.as_secs_f64() * 1e3);
        Self {
            name: name.to_owned(),
            rows,
            quiet_longest_ms: longest(&quiet),
            beside_longest_ms: longest(&beside),
            quiet: Timing::of(quiet),
            beside: Timing::of(beside),
        }
    }
}

/// A stream of new vertices, and what it leaves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// Universities of the data that was stored before, whose seed is 0.
    pub universities: u32,
    /// Clients that committed.
    pub clients: usize,
    /// Whether they did over HTTP.
    pub is_served: bool,
    /// Triples a second that they were to change.
    pub asked_rate: u64,
    /// How long they did.
    pub seconds: f64,
    /// Transactions.
    pub transactions: u64,
    /// Triples inserted.
    pub inserted: u64,
    /// Triples deleted.
    pub deleted: u64,
    /// What a transaction took.
    pub transaction: Timing,
    /// The longest.
    pub longest_ms: f64,
    /// The time in ten parts; their rates are of triples changed.
    pub tenths: Vec<Tenth>,
    /// A query whose answer the stream leaves alone, before and meanwhile.
    pub queries: Vec<QueryBeside>,
    /// Time of cores that clients had.
    pub client_cpu_seconds: f64,
    /// Time of cores that the background had: merges, rewritten lists, the log.
    pub background_cpu_seconds: f64,
    /// Merges meanwhile.
    pub merges: u64,
    /// Merges afterwards, until the background had nothing to do.
    pub merges_after: u64,
    /// Time until then.
    pub settle_seconds: f64,
    /// False if that never was so.
    pub has_settled: bool,
    /// Changes that it left.
    pub changes_left: u64,
    /// Anonymous memory before.
    pub anonymous_before_bytes: u64,
    /// The most memory meanwhile.
    pub peak: Resident,
    /// Anonymous memory once the background had nothing to do.
    pub anonymous_after_bytes: u64,
    /// Triples at the end.
    pub triples: u64,
    /// What they take in the store of the stream.
    pub streamed: Sizes,
    /// In a fresh load of them.
    pub fresh: Sizes,
    /// In the store of the stream, numbered anew.
    pub renumbered: Sizes,
    /// Time of the fresh load.
    pub fresh_load_seconds: f64,
    /// Time of numbering anew.
    pub renumber_seconds: f64,
    /// The queries on the store of the stream, beside the fresh load.
    pub after_stream: Vec<Compared>,
    /// After it was numbered anew.
    pub after_renumbering: Vec<Compared>,
}

impl Default for Stream {
    /// Of a stream of which nothing is known.
    fn default() -> Self {
        let transaction = Timing::of(vec![Duration::ZERO]);
        Self {
            universities: 0,
            clients: 0,
            is_served: false,
            asked_rate: 0,
            seconds: 0.0,
            transactions: 0,
            inserted: 0,
            deleted: 0,
            transaction,
            longest_ms: 0.0,
            tenths: Vec::new(),
            queries: Vec::new(),
            client_cpu_seconds: 0.0,
            background_cpu_seconds: 0.0,
            merges: 0,
            merges_after: 0,
            settle_seconds: 0.0,
            has_settled: false,
            changes_left: 0,
            anonymous_before_bytes: 0,
            peak: Resident::default(),
            anonymous_after_bytes: 0,
            triples: 0,
            streamed: Sizes::default(),
            fresh: Sizes::default(),
            renumbered: Sizes::default(),
            fresh_load_seconds: 0.0,
            renumber_seconds: 0.0,
            after_stream: Vec::new(),
            after_renumbering: Vec::new(),
        }
    }
}

/// What a store takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// What it says it holds, changes included.
    pub held_bytes: u64,
    /// The dictionary among that.
    pub dictionary_bytes: u64,
    /// Its characteristic sets.
    pub characteristic_sets: u64,
    /// Its files.
    pub disk_bytes: u64,
}

/// A query on two stores with the same data, by turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Its name.
    pub name: String,
    /// Rows of its answer, the same on both.
    pub rows: u64,
    /// On the fresh load.
    pub fresh: Timing,
    /// On the other store.
    pub other: Timing,
}

impl Compared {
    /// How many times longer it takes on the other store, by the medians.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.other.median_ms / self.fresh.median_ms
    }
}

/// ORDER BY of literals of which some were appended to the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// Literals of each kind.
    pub literals: u64,
    /// How many of them were appended.
    pub appended: u64,
    /// What was measured on each store.
    pub stores: Vec<Ordered>,
}

/// ORDER BY on one store, beside a fresh load of the same data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ordered {
    /// Where the texts of appended literals lie: `between` those of the load or `behind` them.
    pub texts: String,
    /// Merges of what was appended; 0 if all of it is in the delta.
    pub merges: u64,
    /// The queries.
    pub queries: Vec<Compared>,
}

/// LUBM committed to an empty store, the types of each vertex one transaction after all else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Birth {
    /// Universities.
    pub universities: u32,
    /// Transactions.
    pub transactions: u64,
    /// How long they took.
    pub seconds: f64,
    /// Whether the background came to rest.
    pub has_settled: bool,
    /// How long that took.
    pub settle_seconds: f64,
    /// Triples.
    pub triples: u64,
    /// What a fresh load of them takes.
    pub fresh: Sizes,
    /// What the store takes.
    pub typed: Sizes,
    /// The queries, beside the fresh load.
    pub queries: Vec<Compared>,
}

/// As many deletes as inserts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Churn {
    /// Universities of the data that was stored before; 0 for none.
    pub universities: u32,
    /// Transactions.
    pub transactions: u64,
    /// How many of them are not deleted at the end.
    pub live: u64,
    /// Clients that committed.
    pub clients: u64,
    /// Merges meanwhile.
    pub merges: u64,
    /// Changes that were not merged at the end.
    pub changes_left: u64,
    /// The run in ten parts with as many transactions each.
    pub tenths: Vec<Tenth>,
}

impl Churn {
    /// The third to sixth tenth together and the last four: the mean rate, the most of everything. What
    /// does not grow is the same in both. `None` if there are no ten tenths.
    #[must_use]
    pub fn early_and_late(&self) -> Option<[Tenth; 2]> {
        tenths::compared(&self.tenths)
    }
}

impl Single {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nmerge of {} new triples of ub:takesCourse, LUBM, {} universities, {} triples stored \
             in {:.2} s;\ninserted in {:.2} s; {} on disk at the end",
            thousands(self.inserted),
            self.universities,
            thousands(self.triples),
            self.load_seconds,
            self.insert_seconds,
            bytes(self.store_bytes)
        )?;
        let mut table = Table::new(["merge", "wall, s", "CPU, s", "memory", "written"]);
        for (name, cost) in [("alone", self.alone), ("beside queries", self.beside)] {
            table.row([
                name.to_owned(),
                format!("{:.3}", cost.wall_seconds),
                format!("{:.3}", cost.cpu_seconds),
                bytes(cost.growth_bytes),
                bytes(cost.written_bytes),
            ]);
        }
        write!(f, "{table}")?;
        writeln!(
            f,
            "\nmilliseconds in {:.2} s before the merge and beside it, every id read, 1 thread",
            self.alone.wall_seconds
        )?;
        write!(f, "{}", beside_table(&self.queries))
    }
}

fn beside_table(queries: &[QueryBeside]) -> Table {
    let mut table = Table::new([
        "query",
        "rows",
        "quiet p50",
        "p99",
        "longest",
        "beside p50",
        "p99",
        "longest",
        "ratio p50",
        "p99",
        "runs",
    ]);
    for query in queries {
        let ratio = |of: fn(&Timing) -> f64| format!("{:.2}", of(&query.beside) / of(&query.quiet));
        table.row([
            query.name.clone(),
            thousands(query.rows),
            millis(query.quiet.median_ms),
            millis(query.quiet.p99_ms),
            millis(query.quiet_longest_ms),
            millis(query.beside.median_ms),
            millis(query.beside.p99_ms),
            millis(query.beside_longest_ms),
            ratio(|timing| timing.median_ms),
            ratio(|timing| timing.p99_ms),
            thousands(u64::from(query.beside.runs)),
        ]);
    }
    table
}

impl Stream {
    /// Triples changed a second.
    #[must_use]
    pub fn triples_per_second(&self) -> f64 {
        (self.inserted + self.deleted) as f64 / self.seconds
    }

    /// The rate of the last tenth divided by that of the first; 0 if there is none.
    #[must_use]
    pub fn last_beside_first(&self) -> f64 {
        match (self.tenths.first(), self.tenths.last()) {
            (Some(first), Some(last)) if first.per_second > 0.0 => {
                last.per_second / first.per_second
            }
            _ => 0.0,
        }
    }

    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nstream of new vertices into LUBM, {} universities; {} clients, {} triples a second \
             asked for",
            self.universities,
            self.clients,
            thousands(self.asked_rate)
        )?;
        self.write_figures(f)?;
        self.write_tenths(f)?;
        writeln!(
            f,
            "\nmilliseconds before the stream and beside it, every id read, 1 thread, one at a time with \
             pauses"
        )?;
        write!(f, "{}", beside_table(&self.queries))?;
        self.write_sizes(f)?;
        self.write_queries(f)
    }

    fn write_figures(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(["stream", "figure", "unit"]);
        let mut row = |what: &str, figure: String, unit: &str| table.row([what, &figure, unit]);
        let rate = self.triples_per_second();
        row("triples changed", format!("{rate:.0}"), "a second");
        row("  for", format!("{:.2}", self.seconds), "s");
        row("transactions", thousands(self.transactions), "");
        row("  median", millis(self.transaction.median_ms), "ms");
        row("  p99", millis(self.transaction.p99_ms), "ms");
        row("  longest", millis(self.longest_ms), "ms");
        row("triples inserted", thousands(self.inserted), "");
        row("triples deleted", thousands(self.deleted), "");
        row(
            "CPU of clients",
            format!("{:.2}", self.client_cpu_seconds),
            "s",
        );
        let others = match self.is_served {
            true => "CPU of the server",
            false => "CPU of the background",
        };
        row(others, format!("{:.2}", self.background_cpu_seconds), "s");
        row("merges meanwhile", thousands(self.merges), "");
        row("merges afterwards", thousands(self.merges_after), "");
        let within = match self.has_settled {
            true => "  until nothing was due",
            false => "  NEVER AT REST in",
        };
        row(within, format!("{:.2}", self.settle_seconds), "s");
        row("changes left", thousands(self.changes_left), "");
        row("peak resident memory", bytes(self.peak.all_bytes), "");
        row(
            "peak anonymous memory",
            bytes(self.peak.anonymous_bytes),
            "",
        );
        row("  before", bytes(self.anonymous_before_bytes), "");
        row("  afterwards", bytes(self.anonymous_after_bytes), "");
        row("fresh load", format!("{:.2}", self.fresh_load_seconds), "s");
        row(
            "numbering anew",
            format!("{:.2}", self.renumber_seconds),
            "s",
        );
        write!(f, "{table}")
    }

    fn write_tenths(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nthe most of everything in each tenth of the time; the last tenth changes {:.2} times as many \
             triples a second as the first",
            self.last_beside_first()
        )?;
        write!(f, "{}", tenths::table("triples/s", &self.tenths))
    }

    fn write_sizes(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{} triples at the end", thousands(self.triples))?;
        let stores = [
            ("fresh load", self.fresh),
            ("streamed", self.streamed),
            ("numbered anew", self.renumbered),
        ];
        write!(f, "{}", sizes_table(&stores, self.triples))
    }

    fn write_queries(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let runs = self
            .after_stream
            .first()
            .map_or(0, |query| query.fresh.runs);
        writeln!(
            f,
            "\nmilliseconds, median of {runs} warm runs by turns with the fresh load, every id read, \
             1 thread"
        )?;
        let mut table = Table::new([
            "query",
            "rows",
            "fresh",
            "streamed",
            "ratio",
            "fresh",
            "numbered anew",
            "ratio",
        ]);
        for (streamed, renumbered) in self.after_stream.iter().zip(&self.after_renumbering) {
            let mut row = vec![streamed.name.clone(), thousands(streamed.rows)];
            for compared in [streamed, renumbered] {
                row.push(millis(compared.fresh.median_ms));
                row.push(millis(compared.other.median_ms));
                row.push(format!("{:.2}", compared.ratio()));
            }
            table.row(row);
        }
        write!(f, "{table}")
    }
}

impl Churn {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let on = match self.universities {
            0 => "an empty store".to_owned(),
            universities => format!("LUBM, {universities} universities"),
        };
        writeln!(
            f,
            "\n{} transactions of {} clients on {on}, each inserts 3 triples and deletes 3;\n{} are \
             live; {} merges, {} changes left; the most of everything in each tenth",
            thousands(self.transactions),
            self.clients,
            thousands(self.live),
            thousands(self.merges),
            thousands(self.changes_left)
        )?;
        let mut table = tenths::table("transactions/s", &self.tenths);
        if let Some(compared) = self.early_and_late() {
            tenths::add_compared(&mut table, compared);
        }
        write!(f, "{table}")
    }
}

impl Order {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{} literals, {} of them appended; milliseconds, median of warm runs by turns with a \
             fresh load, every id read, 1 thread",
            thousands(self.literals),
            thousands(self.appended)
        )?;
        let mut table = Table::new([
            "texts", "merges", "query", "rows", "fresh", "appended", "ratio",
        ]);
        for store in &self.stores {
            for query in &store.queries {
                table.row([
                    store.texts.clone(),
                    store.merges.to_string(),
                    query.name.clone(),
                    thousands(query.rows),
                    millis(query.fresh.median_ms),
                    millis(query.other.median_ms),
                    format!("{:.2}", query.ratio()),
                ]);
            }
        }
        write!(f, "{table}")
    }
}

impl Birth {
    fn write(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nLUBM, {} universities, committed in {} transactions in {:.1} s; types come one transaction \
             after all else",
            self.universities,
            thousands(self.transactions),
            self.seconds
        )?;
        let rest = match self.has_settled {
            true => "until nothing was due",
            false => "and NEVER AT REST",
        };
        writeln!(
            f,
            "{:.1} s {rest}; {} triples",
            self.settle_seconds,
            thousands(self.triples)
        )?;
        let stores = [("fresh load", self.fresh), ("typed later", self.typed)];
        write!(f, "{}", sizes_table(&stores, self.triples))?;
        writeln!(
            f,
            "\nmilliseconds, median of warm runs by turns with the fresh load, every id read, 1 thread"
        )?;
        let mut table = Table::new(["query", "rows", "fresh", "typed later", "ratio"]);
        for query in &self.queries {
            table.row([
                query.name.clone(),
                thousands(query.rows),
                millis(query.fresh.median_ms),
                millis(query.other.median_ms),
                format!("{:.2}", query.ratio()),
            ]);
        }
        write!(f, "{table}")
    }
}

/// What stores of so many triples take.
fn sizes_table(stores: &[(&str, Sizes)], triples: u64) -> Table {
    let mut table = Table::new([
        "store",
        "held",
        "B/triple",
        "dictionary",
        "sets",
        "disk",
        "B/triple",
    ]);
    for (name, sizes) in stores {
        let each = |of: u64| format!("{:.1}", of as f64 / triples.max(1) as f64);
        table.row([
            (*name).to_owned(),
            bytes(sizes.held_bytes),
            each(sizes.held_bytes),
            bytes(sizes.dictionary_bytes),
            thousands(sizes.characteristic_sets),
            bytes(sizes.disk_bytes),
            each(sizes.disk_bytes),
        ]);
    }
    table
}

impl Display for MergeReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "merges; jindou {} on {}", self.version, self.machine)?;
        if !self.optimized {
            writeln!(
                f,
                "This program was built without optimization: build with --release."
            )?;
        }
        if let Some(single) = &self.single {
            single.write(f)?;
        }
        if let Some(stream) = &self.stream {
            stream.write(f)?;
        }
        self.churn.iter().try_for_each(|churn| churn.write(f))?;
        self.order.iter().try_for_each(|order| order.write(f))?;
        self.birth.iter().try_for_each(|birth| birth.write(f))
    }
}
