//! Which options have the benchmarks?

use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jindou_bench::graphs::Layout;
use jindou_bench::ingest::Case;
use jindou_bench::merges::Scenario;
use jindou_bench::operators::{DEFAULT_SETS, Family, UNIVERSITIES};

use crate::values::{parse_count, parse_duration, parse_memory, parse_seconds};

/// Measure transactions, INSERT DATA in batches, and queries after many updates on LUBM data
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench updates --universities 40

Data and a database for the time of the measurement are kept under target/bench-data in the
current folder, which decides what an fsync costs.")]
pub(crate) struct UpdateBenchArguments {
    /// How many universities
    #[arg(
        long,
        default_value = "5",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,

    /// Triples to update before the queries, half of them new and half of them removed
    #[arg(long, default_value = "500000", value_name = "N")]
    pub(crate) triples: u64,

    /// Timed runs of each query, the shortest of which counts
    #[arg(
        long,
        value_name = "R",
        default_value = "1000",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) runs: NonZeroU32,
    /// Only this query, such as q4
    #[arg(long, value_name = "QUERY", value_parser = ["q1", "q2", "q3", "q4", "q5", "q6", "q7"])]
    pub(crate) only: Option<String>,
    /// Clients that send transactions of one triple
    #[arg(
        long,
        default_value = "16",
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) clients: NonZeroUsize,

    /// How long transactions and batches are sent, in seconds
    #[arg(
        long,
        default_value = "5",
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true
    )]
    pub(crate) duration: Duration,

    /// Folder for data and database
    #[arg(long, default_value = jindou_bench::data::DEFAULT_FOLDER, value_name = "DIR")]
    pub(crate) data: PathBuf,

    /// Write the report as JSON to a file, or to standard output for -
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Measure loading, the seven queries and a light load on LUBM data
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench lubm --universities 40
  jindou bench lubm --universities 40 --http --location /tmp/store --json report.json

Generated data is kept under target/bench-data in the current folder.")]
pub(crate) struct BenchArguments {
    /// How many universities
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// Seed of the data; the literature uses 0
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Threads for loading, for each query's parallel runs and for the light load [default: all]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Timed runs of each query in each way
    #[arg(
        long,
        value_name = "R",
        default_value = "20",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) runs: NonZeroU32,
    /// How long each light load runs, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true,
        default_value = "3"
    )]
    pub(crate) light: Duration,
    /// Measure over a loopback HTTP server, too
    #[arg(long)]
    pub(crate) http: bool,
    /// Measure a stored database, too, in this folder; made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) location: Option<PathBuf>,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder of generated data
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
}

/// Measure each operator: queries over LUBM, WatDiv and SSB, each heavy in one thing
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench operators
  jindou bench operators --family path --family order
  jindou bench operators --only 'count ' --json report.json

LUBM is generated. WatDiv and SSB are read from --sets and left out, visibly, where they are
absent. Every answer is compared with the recorded one; one that differs ends in an error.")]
pub(crate) struct OperatorArguments {
    /// Only queries with this in their name
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,
    /// Only queries of this family; may be given several times
    #[arg(long, value_name = "F")]
    pub(crate) family: Vec<Family>,
    /// Universities of the LUBM data; answers are recorded for the usual number
    #[arg(long, value_name = "N", default_value_t = UNIVERSITIES)]
    pub(crate) universities: u32,
    /// Threads of one query [default: as the engine decides]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Time for the timed runs of one query, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true,
        default_value = "1"
    )]
    pub(crate) budget: Duration,
    /// Time after which a query is given up, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true,
        default_value = "20"
    )]
    pub(crate) limit: Duration,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder of generated and unpacked data
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
    /// Folder of the packed data sets of WatDiv and SSB
    #[arg(long, value_name = "DIR", default_value = DEFAULT_SETS)]
    pub(crate) sets: PathBuf,
}

/// Measure light queries beside queries and clients made to hurt
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench hostile
  jindou bench hostile --universities 10 --duration 10m --json report.json

Ends with status 1 if a light query failed, or memory, times or cancelled work missed the targets.")]
pub(crate) struct HostileArguments {
    /// How many universities
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// How long the hostile mix goes on, as in 20s or 10m
    #[arg(
        long,
        value_name = "TIME",
        value_parser = parse_duration,
        allow_negative_numbers = true,
        default_value = "20s"
    )]
    pub(crate) duration: Duration,
    /// Connections that read slowly
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(crate) slow: usize,
    /// What all queries of the server may hold together
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = parse_memory,
        allow_negative_numbers = true,
        default_value = "1GiB"
    )]
    pub(crate) memory: u64,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder of generated data
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
}

/// Measure what named graphs cost beside the default graph, on LUBM data
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench graphs
  jindou bench graphs --universities 1 --layout one-graph --only q4
  jindou bench graphs --runs 5 --json report.json

Layouts: one-graph, graph-per-university, random-graph (each statement in one of 1,000 graphs),
repeated-in-graphs (each subject in 20 of 200 graphs, of a twentieth of the universities). The
queries of each run by turns with those of the default graph. Files are generated under
target/bench-data in the current folder and removed again. Ends with status 1 if an answer is not
the one that the default graph gives.")]
pub(crate) struct GraphBenchArguments {
    /// How many universities
    #[arg(
        long,
        value_name = "N",
        default_value = "40",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// Timed runs of each query in each form, the median of which counts
    #[arg(
        long,
        value_name = "R",
        default_value = "15",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) runs: NonZeroU32,
    /// Time after which a query is given up, and for all its runs in one form, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true,
        default_value = "20"
    )]
    pub(crate) limit: Duration,
    /// Only this layout; may be given several times
    #[arg(long, value_name = "L")]
    pub(crate) layout: Vec<Layout>,
    /// Only this query, such as q4
    #[arg(long, value_name = "QUERY", value_parser = ["q1", "q2", "q3", "q4", "q5", "q6", "q7"])]
    pub(crate) only: Option<String>,
    /// Threads for loading; queries have one [default: all]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder of generated data
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
}

/// Measure what merges cost, what they leave, and whether anything grows, on LUBM data
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench merges
  jindou bench merges --only stream --seconds 60 --json report.json

Published figures:
  jindou bench merges --only single --universities 1000
  jindou bench merges --only stream --stream-universities 100 --seconds 600
  jindou bench merges --only churn --transactions 1000000

Scenarios: single (new triples of one predicate are merged, alone and beside queries), stream
(clients commit new vertices while the background merges; queries and sizes are compared with a
fresh load), churn (as much is deleted as inserted; memory and files by tenths of the run), order
(ORDER BY of literals of which one in ten was appended, beside a fresh load), birth (all of LUBM is
committed, the types of a vertex one transaction after all else; beside a fresh load). Memory
is measured best with one scenario at a time; all five take about four minutes on two cores. Data and
stores for the time of the measurement are kept under target/bench-data in the current folder, which
decides what an fsync costs. Ends with status 1
if an answer is not the one that a fresh load gives.")]
pub(crate) struct MergeBenchArguments {
    /// Only this scenario: single, stream, churn, order or birth
    #[arg(long, value_name = "SCENARIO")]
    pub(crate) only: Option<Scenario>,
    /// Universities of single and birth, and of churn with --on-lubm
    #[arg(
        long,
        value_name = "N",
        default_value = "40",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// Triples inserted before each merge of single
    #[arg(
        long,
        value_name = "N",
        default_value = "120000",
        value_parser = parse_count::<NonZeroU64>,
        allow_negative_numbers = true
    )]
    pub(crate) triples: NonZeroU64,
    /// Universities of stream
    #[arg(
        long,
        value_name = "N",
        default_value = "5",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) stream_universities: NonZeroU32,
    /// How long the clients of stream commit, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true,
        default_value = "20"
    )]
    pub(crate) seconds: Duration,
    /// Clients of stream
    #[arg(
        long,
        value_name = "N",
        default_value = "4",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) clients: NonZeroUsize,
    /// Triples a second that the clients of stream change together, if the database keeps up
    #[arg(
        long,
        value_name = "N",
        default_value = "200000",
        value_parser = parse_count::<NonZeroU64>,
        allow_negative_numbers = true
    )]
    pub(crate) rate: NonZeroU64,
    /// The clients of stream commit, and ask, over HTTP
    #[arg(long)]
    pub(crate) http: bool,
    /// Literals of each kind of order
    #[arg(
        long,
        value_name = "N",
        default_value = "500000",
        value_parser = parse_count::<NonZeroU64>,
        allow_negative_numbers = true
    )]
    pub(crate) literals: NonZeroU64,
    /// Timed runs of each query of stream and order on each store, the median of which counts
    #[arg(
        long,
        value_name = "R",
        default_value = "30",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) runs: NonZeroU32,
    /// Transactions of churn
    #[arg(
        long,
        value_name = "N",
        default_value = "500000",
        value_parser = parse_count::<NonZeroU64>,
        allow_negative_numbers = true
    )]
    pub(crate) transactions: NonZeroU64,
    /// After how many transactions of churn what one inserted is deleted
    #[arg(
        long,
        value_name = "N",
        default_value = "10000",
        value_parser = parse_count::<NonZeroU64>,
        allow_negative_numbers = true
    )]
    pub(crate) live: NonZeroU64,
    /// Measure churn on LUBM, too, beside an empty store
    #[arg(long)]
    pub(crate) on_lubm: bool,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder for data and stores
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct BenchChildArguments {
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    pub(crate) arguments: Vec<OsString>,
}

/// Measure continuous queries over the streams of LSBench, beside stored data
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench lsbench
  jindou bench lsbench --only L5 --range 10000

The social graph and the streams are generated in memory, at the rates of the Wukong+S paper, and pushed
as fast as they are taken; one thread does everything.")]
pub(crate) struct LsbenchBenchArguments {
    /// Users of the social graph, each with about a hundred stored triples
    #[arg(
        long,
        value_name = "N",
        default_value = "1000",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) users: NonZeroU32,
    /// Seconds of the streams
    #[arg(
        long,
        value_name = "N",
        default_value = "20",
        value_parser = parse_count::<NonZeroU64>,
        allow_negative_numbers = true
    )]
    pub(crate) seconds: NonZeroU64,
    /// How many times the paper's 133,500 tuples a second
    #[arg(long, value_name = "TIMES", default_value = "1", value_parser = parse_rate)]
    pub(crate) rate: f64,
    /// How many of each of L1, L2 and L3, which start at other users
    #[arg(long, value_name = "N", default_value = "100")]
    pub(crate) selective: u32,
    /// The range of windows, in milliseconds
    #[arg(
        long,
        value_name = "MS",
        default_value = "1000",
        value_parser = parse_count::<NonZeroU64>,
        allow_negative_numbers = true
    )]
    pub(crate) range: NonZeroU64,
    /// How far they slide each time, in milliseconds
    #[arg(
        long,
        value_name = "MS",
        default_value = "100",
        value_parser = parse_count::<NonZeroU64>,
        allow_negative_numbers = true
    )]
    pub(crate) step: NonZeroU64,
    /// When solutions are kept until they expire, instead of being found again at each instant
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Keep::ByCost)]
    pub(crate) keep: Keep,
    /// Measure one-shot queries instead, alone and beside the streams at the pace of the clock
    #[arg(long)]
    pub(crate) one_shot: bool,
    /// Only this query; `none` for streams alone, C4 to C6 count what L4 to L6 find
    #[arg(long, value_name = "QUERY", value_parser = [
        "L1", "L2", "L3", "L4", "L5", "L6", "C4", "C5", "C6", "none",
    ])]
    pub(crate) only: Option<String>,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// When solutions of continuous queries are kept.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Keep {
    /// Where that is expected to cost less
    ByCost,
    /// Wherever it can be done
    Always,
    /// Nowhere
    Never,
}

/// Measure the published queries of CityBench over the observations of a city
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench citybench --data citybench
  jindou bench citybench --data citybench --only Q10_5 --json report.json

The folder has queries/csparql/NAME.txt, whose texts are registered as they are, and what these name:
streams/NAME.tnt.zst, lines of time, tab and statement, and static/NAME.n3. Observations are pushed as fast
as they are taken; a stream that ends begins anew at later times. One thread does everything.")]
pub(crate) struct CitybenchArguments {
    /// Folder of CityBench's data
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Seconds of the streams
    #[arg(
        long,
        value_name = "N",
        default_value = "300",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) seconds: NonZeroU32,
    /// Only this query, such as Q1
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Measure how many tuples a second streams take
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench ingest
  jindou bench ingest --only stored --threads 1 --location /tmp
  jindou bench ingest --http --json report.json

Cases: timing (into windows of a second that one query reads), memory (timeless tuples into a graph in
memory), stored (timeless tuples into a graph in a folder, with an fsync a transaction). The five streams of
LSBench are generated in memory before, at the rates of the Wukong+S paper; each thread owns some of them,
and none goes more than a second of the streams ahead. Merges after the end are those until none is
pending, the last of which begins after five quiet seconds. CPU is all of the process; with --http
that has clients and server.")]
pub(crate) struct IngestBenchArguments {
    /// Only this case: timing, memory or stored
    #[arg(long, value_name = "CASE")]
    pub(crate) only: Option<Case>,
    /// How long each case is pushed to, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true,
        default_value = "10"
    )]
    pub(crate) seconds: Duration,
    /// Seconds of the streams, after which a case ends, too; each has 133,500 tuples and takes about 20 MB
    /// [default: six times --seconds]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) stream_seconds: Option<NonZeroU32>,
    /// Threads that push, of which five have a stream [default: cores]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Push over a loopback HTTP server
    #[arg(long)]
    pub(crate) http: bool,
    /// Where the folder of the stored case is made, which decides what an fsync costs; it is removed
    /// afterwards
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) location: PathBuf,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

pub(crate) fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e6 => Ok(rate),
        _ => Err("a number above zero, up to a million".to_owned()),
    }
}
