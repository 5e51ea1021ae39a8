//! Which options have the benchmarks?

use std::ffi::OsString;
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use jindou_bench::graphs::Layout;
use jindou_bench::merges::Scenario;
use jindou_bench::operators::{DEFAULT_SETS, DataSet, Family, UNIVERSITIES};
use jindou_bench::scale::model::Link;

use crate::cluster_args::MOST_NODES;
use crate::values::{parse_bytes, parse_count, parse_duration, parse_memory, parse_seconds};

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
  jindou bench lubm --universities 2560 --memory 6GiB --location /tmp/store

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
    /// Load within so much memory, as in 6GiB, what the generator writes to a pipe, into the folder of --location, and
    /// ask the queries of that store: of data for which memory, or a file, has no room. A store that is there is
    /// taken as it is
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = parse_memory,
        allow_negative_numbers = true,
        requires = "location"
    )]
    pub(crate) memory: Option<u64>,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder of generated data
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
}

/// Measure the seven queries on several logical nodes, in each way in which rows get to their keys
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench nodes --universities 10 --nodes 3
  jindou bench nodes --processes --fabric tcp
  jindou bench nodes --switches --universities 10

The nodes share this process: nothing travels over a network, and what would is counted.
With `--fabric tcp` it travels over loopback. With `--processes` each node is a process.")]
pub(crate) struct NodesArguments {
    /// How many universities
    #[arg(
        long,
        default_value = "5",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// How many logical nodes
    #[arg(
        long,
        default_value = "3",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) nodes: NonZeroU32,
    /// How many virtual shards these hold, a power of two
    #[arg(
        long,
        default_value = "16",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) shards: NonZeroU32,
    /// How the nodes reach each other's memory [default: local, and shared-memory between processes]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) fabric: Option<FabricName>,
    /// Have each node be a process that meets the others over loopback
    #[arg(long)]
    pub(crate) processes: bool,
    /// Measure what each part of the distribution contributes instead, switched on one after the other: one-sided
    /// reads, rows that go with their whole history, scans of indexes by all nodes, and the choice of the way
    #[arg(long, conflicts_with = "processes")]
    pub(crate) switches: bool,
    /// Only queries with this in their name
    #[arg(long, value_name = "PATTERN")]
    pub(crate) only: Option<String>,
    /// Timed runs of each query in each way and round
    #[arg(
        long,
        value_name = "R",
        default_value = "20",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) runs: NonZeroU32,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder of generated data
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
}

/// Measure how fast processes that load together are, each its part of the store, beside one process
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench load --universities 40 --nodes 3

The processes share the cores of this machine and send each other what they have over loopback. Data is kept under
target/bench-data in the current folder, and the stores for the time of the measurement: about 30 MB a university.")]
pub(crate) struct LoadBenchArguments {
    /// How many universities
    #[arg(
        long,
        default_value = "5",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// How many processes load together
    #[arg(
        long,
        default_value = "3",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) nodes: NonZeroU32,
    /// Virtual shards of the store, a power of two
    #[arg(
        long,
        default_value = "64",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) shards: NonZeroU32,
    /// How often each way is measured, by turns
    #[arg(
        long,
        default_value = "3",
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) rounds: NonZeroUsize,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder for data and stores
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
}

/// Measure what copies of a store at several servers cost, and what happens when one of them is killed
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench cluster
  jindou bench cluster --rounds 20 --universities 5

Takes an etcd on the path, which is started for it (Debian's package etcd-server). One server, and then the nodes of a
cluster, are processes that share the cores and the device of this machine. Measured are light queries and updates a second, also without
one node; how long it takes after kill -9 of the leader, and of another node, until updates go on and until it has caught
up; what clients notice while one more node joins, and is drained; and the seven queries beside updates. An acknowledged update that a node lacks in the end is an error. Stores are
kept under target/bench-data in the current folder for the time of the measurement. On Linux.")]
pub(crate) struct ClusterBenchArguments {
    /// How many universities
    #[arg(
        long,
        default_value = "1",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// How many nodes
    #[arg(
        long,
        default_value = "3",
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(2..=MOST_NODES),
        allow_negative_numbers = true
    )]
    pub(crate) nodes: u32,
    /// How often the leader is killed, and another node
    #[arg(
        long,
        default_value = "5",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) rounds: NonZeroU32,
    /// Clients of light queries, and then of updates of one triple, each with one request at a time
    #[arg(
        long,
        default_value = "16",
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) clients: NonZeroUsize,
    /// How long they ask, and how long they update, each time; and how long the seven queries are asked, alone and beside
    /// updates
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true,
        default_value = "5"
    )]
    pub(crate) seconds: Duration,
    /// Bytes of its store that a node sends in a second, at most, to one that joins
    #[arg(long, value_name = "BYTES", default_value = "128MiB", value_parser = parse_bytes)]
    pub(crate) copy_rate: u64,
    /// Timed runs of each of the seven queries at least, the median of which counts
    #[arg(
        long,
        value_name = "R",
        default_value = "20",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) runs: NonZeroUsize,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder for data and stores
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
}

/// Measure the throughput of light queries by number of nodes, alone and beside a heavy query
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench emulate --universities 40 --nodes 1,2,4,8
  jindou bench emulate --processes --nodes 1,3 --plots plots

Clients ask six classes of light queries about entities drawn at random, as frequent as the reciprocals
of their latencies, as in the Wukong paper. The nodes share the cores of this machine.")]
pub(crate) struct EmulateArguments {
    /// How many universities
    #[arg(
        long,
        default_value = "10",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// Numbers of nodes
    #[arg(
        long,
        default_value = "1,2,4,8",
        value_name = "N,...",
        value_delimiter = ',',
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) nodes: Vec<NonZeroU32>,
    /// How many virtual shards several nodes hold, a power of two
    #[arg(
        long,
        default_value = "16",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) shards: NonZeroU32,
    /// How the nodes reach each other's memory [default: local, and shared-memory between processes]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) fabric: Option<FabricName>,
    /// Have each node be a process with clients of its own
    #[arg(long)]
    pub(crate) processes: bool,
    /// Clients of light queries, each with one at a time [default: one for each core]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) clients: Option<NonZeroU32>,
    /// How long they ask, each time
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true,
        default_value = "5"
    )]
    pub(crate) seconds: Duration,
    /// Write plots into this folder: throughput by nodes, and how latencies are spread
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder of generated data
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
}

/// Measure how the seven queries grow with data, threads and nodes, and predict them for many machines
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench scale --universities 5,20,80
  jindou bench scale --machines 8,64,256 --gigabits 25 --latency 5

Threads are measured over the largest data, nodes over the smallest: logical ones, which share the
cores of this machine. What they read and send is counted, and a model says from it what machines
with a network between them would take: see docs/cluster.md.")]
pub(crate) struct ScaleArguments {
    /// How many universities, several numbers of them
    #[arg(
        long,
        default_value = "5,20,80",
        value_name = "N,...",
        value_delimiter = ',',
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: Vec<NonZeroU32>,
    /// Numbers of threads of a query [default: 1, 2, 4 ... up to one for each core]
    #[arg(
        long,
        value_name = "N,...",
        value_delimiter = ',',
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) threads: Vec<NonZeroUsize>,
    /// Numbers of logical nodes
    #[arg(
        long,
        default_value = "2,4,8",
        value_name = "N,...",
        value_delimiter = ',',
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) nodes: Vec<NonZeroU32>,
    /// How many virtual shards these hold, a power of two
    #[arg(
        long,
        default_value = "16",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) shards: NonZeroU32,
    /// Numbers of machines to predict
    #[arg(
        long,
        default_value = "8,64",
        value_name = "N,...",
        value_delimiter = ',',
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) machines: Vec<NonZeroU32>,
    /// Gigabits a second of each of them
    #[arg(long, default_value_t = Link::default().gigabits, value_name = "N")]
    pub(crate) gigabits: f64,
    /// Until a one-sided read of another is there, in microseconds
    #[arg(long, default_value_t = Link::default().latency_us, value_name = "US")]
    pub(crate) latency: f64,
    /// Until a sleeping thread has begun with a message, in microseconds
    #[arg(long, default_value_t = Link::default().wake_us, value_name = "US")]
    pub(crate) wake: f64,
    /// Timed runs of each query in each way
    #[arg(
        long,
        value_name = "R",
        default_value = "20",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) runs: NonZeroU32,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder of generated data
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
}

/// How logical nodes reach each other's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FabricName {
    /// By copying it within the process
    Local,
    /// As processes of one machine do
    SharedMemory,
    /// By messages over loopback
    Tcp,
}

/// Measure each operator: queries over LUBM, WatDiv and SSB, each heavy in one thing
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench operators
  jindou bench operators --family path --family order
  jindou bench operators --only 'count ' --json report.json
  jindou bench operators --set lubm --universities 40 --ids --threads 2 --against-threads 1

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
    /// Measure with N threads of one query as well, in alternate runs, and print the ratio of the times
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true,
        requires = "threads"
    )]
    pub(crate) against_threads: Option<NonZeroUsize>,
    /// Read the ids of rows, and write none of them as text
    #[arg(long)]
    pub(crate) ids: bool,
    /// Only this data set; may be given several times
    #[arg(long, value_name = "SET")]
    pub(crate) set: Vec<DataSet>,
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

/// Measure what credentials and TLS cost light queries over kept connections
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench served
  jindou bench served --connections 64 --seconds 30 --json report.json

One server speaks HTTP to everybody, the other HTTPS to whoever has a name and a password; both have the same data
in memory and are asked by turns. The clients are in the same process, so their part of TLS counts, too.")]
pub(crate) struct ServedArguments {
    /// Universities of the LUBM data
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// Connections, beside one alone
    #[arg(
        long,
        value_name = "N",
        default_value = "16",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) connections: NonZeroUsize,
    /// How long each server is asked for one figure
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "10",
        value_parser = parse_seconds,
        allow_negative_numbers = true
    )]
    pub(crate) seconds: Duration,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// Measure light queries beside queries and clients made to hurt
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench hostile
  jindou bench hostile --universities 10 --duration 10m --json report.json
  jindou bench hostile --streams --duration 10s

Ends with status 1 if a light query failed, or memory, times or cancelled work missed the targets; with
--streams, if an attack broke a bound or was not answered as it should be.")]
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
    /// Attack streams and continuous queries instead, one attack after the other
    #[arg(long)]
    pub(crate) streams: bool,
    /// With --streams: queries that are registered
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100_000,
        requires = "streams"
    )]
    pub(crate) registrations: usize,
    /// With --streams: clients that stop in the middle, or never read
    #[arg(long, value_name = "N", default_value_t = 1_200, requires = "streams")]
    pub(crate) clients: usize,
    /// With --streams: only attacks that have this in their names
    #[arg(long, value_name = "NAME", requires = "streams")]
    pub(crate) only: Option<String>,
    /// How long the hostile mix, or each attack of --streams, goes on, as in 20s or 10m
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

/// Measure counts of the ends of edges, and closures: asked first, again, with changes, and after a merge
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench counts
  jindou bench counts --universities 1 --runs 3 --json report.json

The data is LUBM, WatDiv, SSB and two made graphs, in one database: 12 million triples by default. Ends with
status 1 if an answer is another one once changes are merged.")]
pub(crate) struct CountBenchArguments {
    /// Universities of the LUBM data
    #[arg(
        long,
        value_name = "N",
        default_value = "80",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// How often each query is asked again
    #[arg(
        long,
        value_name = "R",
        default_value = "5",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) runs: NonZeroU32,
    /// Triples that are inserted, and not merged
    #[arg(
        long,
        value_name = "N",
        default_value = "1000",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) changes: NonZeroU32,
    /// Time after which a query is given up, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true,
        default_value = "60"
    )]
    pub(crate) limit: Duration,
    /// Threads of one query [default: as the engine decides]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Write the report as JSON to this file, too; `-` is standard output, instead of the table
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder of generated and unpacked data
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
    /// Folder of the packed data sets of WatDiv and SSB
    #[arg(long, value_name = "DIR", default_value = jindou_bench::operators::DEFAULT_SETS)]
    pub(crate) sets: PathBuf,
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
