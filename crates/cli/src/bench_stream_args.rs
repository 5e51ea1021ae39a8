//! Which options have the benchmarks of streams and continuous queries?

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jindou_bench::ingest::Case;

use crate::values::{parse_count, parse_seconds};

/// Measure continuous queries over the streams of LSBench, beside stored data
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench lsbench
  jindou bench lsbench --only L5 --range 10000
  jindou bench lsbench --sweep --plots plots --json sweep.json
  jindou bench lsbench --served --selective 3333 --step 1000

The social graph and the streams are generated as they go, at the rates of the Wukong+S paper, and pushed
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
    #[arg(long, group = "what")]
    pub(crate) one_shot: bool,
    /// Measure L1 to L6 at several rates instead, and note every evaluation by itself
    #[arg(long, group = "what", conflicts_with_all = ["rate", "selective"])]
    pub(crate) sweep: bool,
    /// The rates of --sweep, in tuples a second of all streams
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        requires = "sweep",
        default_values_t = jindou_bench::lsbench::sweep::RATES,
        value_parser = clap::value_parser!(u32).range(1..=100_000_000),
    )]
    pub(crate) rates: Vec<u32>,
    /// Write the plots of --sweep as SVG files into this folder: latency by rate, and distributions
    #[arg(long, value_name = "DIR", requires = "sweep")]
    pub(crate) plots: Option<PathBuf>,
    /// Measure how many executions a second the mixes L1-L3 and L1-L6 give instead, with more and more queries
    #[arg(long, group = "what", conflicts_with_all = ["selective", "only"])]
    pub(crate) mix: bool,
    /// Queries of a mix, at most
    #[arg(
        long,
        value_name = "N",
        default_value = "256000",
        requires = "mix",
        value_parser = clap::value_parser!(u32).range(1_000..=10_000_000),
    )]
    pub(crate) most_queries: u32,
    /// Measure what clients wait for instead: a server on the loopback, streams over HTTP at the pace of the
    /// clock, L1 to L3 --selective times each
    #[arg(long, group = "what")]
    pub(crate) served: bool,
    /// Clients of --served, which read the results of one query each
    #[arg(
        long,
        value_name = "N",
        default_value = "300",
        requires = "served",
        value_parser = clap::value_parser!(u32).range(1..=1_024),
    )]
    pub(crate) readers: u32,
    /// Measure instead what changes with and without logs, kept solutions and shared executions, what each stream
    /// costs alone, staleness, snapshots that readers hold, and L4 to L6 on one and two threads
    #[arg(long, group = "what", conflicts_with = "only")]
    pub(crate) costs: bool,
    /// Only these of --costs
    #[arg(
        long,
        value_enum,
        value_name = "PART,...",
        value_delimiter = ',',
        requires = "costs"
    )]
    pub(crate) part: Vec<CostPart>,
    /// Where --costs makes stores, which decides what an fsync costs; they are removed afterwards
    #[arg(
        long,
        value_name = "DIR",
        requires = "costs",
        default_value = jindou_bench::data::DEFAULT_FOLDER,
    )]
    pub(crate) location: PathBuf,
    /// Only this query; `none` for streams alone, C4 to C6 count what L4 to L6 find
    #[arg(long, value_name = "QUERY", value_parser = [
        "L1", "L2", "L3", "L4", "L5", "L6", "C4", "C5", "C6", "none",
    ])]
    pub(crate) only: Option<String>,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// What `--costs` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostPart {
    /// Queries with and without logs, kept solutions, shared executions
    Settings,
    /// Each stream alone
    Streams,
    /// Until one-shot queries see a tuple
    Staleness,
    /// Memory of old snapshots that readers hold
    Snapshots,
    /// L4 to L6 on one and two threads
    Threads,
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
  jindou bench ingest --only stored --rate 200000 --seconds 600

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
    /// Push so many tuples a second of all streams at the pace of the clock, and say how long after its end each
    /// batch of 100 ms was acknowledged; streams are then made as they go
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=100_000_000),
        conflicts_with = "stream_seconds",
    )]
    pub(crate) rate: Option<u32>,
    /// Milliseconds of a stream that are pushed together, as one request: its batches are of 100 ms all the same
    #[arg(
        long,
        value_name = "N",
        default_value = "100",
        value_parser = clap::value_parser!(u32).range(1..=60_000),
        conflicts_with = "rate",
    )]
    pub(crate) push_ms: u32,
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
