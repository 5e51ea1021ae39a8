//! Which options has the benchmark of loads of more data than memory?

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::values::{parse_count, parse_memory};

/// Measure loads of generated graphs, in memory and within a limit, and what is left of loads that are killed
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou bench bulk
  jindou bench bulk --graph lubm --universities 320 --memory 1GiB
  jindou bench bulk --universities 2560 --things 10000000 --memory 6GiB --only within --kills 10

Each load is of a process of its own, which generates the graph and loads it meanwhile by a pipe. Stores are kept
under target/bench-data in the current folder for the time of the measurement, each about twice as large meanwhile
as in the end. Ends with status 1 if a load has other triples than were generated or takes more memory than its limit, and if a kill leaves
anything that counts. Whether the limit is kept to is `not shown` where all of the data fits into it.")]
pub(crate) struct BulkBenchArguments {
    /// Only this graph; may be given several times [default: both]
    #[arg(long, value_name = "GRAPH", value_enum)]
    pub(crate) graph: Vec<GraphName>,
    /// Universities of lubm: about 130,000 triples each
    #[arg(
        long,
        default_value = "40",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// Things of literals: ten triples and three literals each
    #[arg(
        long,
        default_value = "500000",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) things: NonZeroU32,
    /// Memory that a load within may take, as in 6GiB
    #[arg(
        long,
        default_value = "256MiB",
        value_name = "BYTES",
        value_parser = parse_memory,
        allow_negative_numbers = true
    )]
    pub(crate) memory: u64,
    /// Threads of a load, beside that of the generator [default: all]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) threads: Option<NonZeroUsize>,
    /// How often each way is measured, by turns; the median counts
    #[arg(
        long,
        default_value = "1",
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) turns: NonZeroU32,
    /// Only this way: of a graph that memory has no room for, within
    #[arg(long, value_name = "WAY", value_enum)]
    pub(crate) only: Option<WayName>,
    /// How many loads within are killed, at moments spread over the time of one
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) kills: u32,
    /// Write the report as JSON to a file, or to standard output for -
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Folder for stores
    #[arg(long, value_name = "DIR", default_value = jindou_bench::data::DEFAULT_FOLDER)]
    pub(crate) data: PathBuf,
}

/// A generated graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum GraphName {
    /// The Lehigh University Benchmark
    Lubm,
    /// A graph with many different literals
    Literals,
}

/// A way to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WayName {
    /// All of it is held until the store is written
    Memory,
    /// What is beyond the limit waits in files
    Within,
}
