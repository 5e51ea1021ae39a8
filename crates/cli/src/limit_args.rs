//! What may queries and clients of a server do at most: which options say so?

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::values::{parse_count, parse_duration, parse_memory, parse_some_bytes};

/// What queries and clients of a server may do at most.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitArguments {
    /// Longest time a query may take, as in 90, 1.5m or 500ms [default: 60 s, and 10 min for those
    /// that ask for it]
    #[arg(
        long,
        visible_alias = "timeout",
        value_name = "TIME",
        value_parser = parse_duration,
        allow_negative_numbers = true
    )]
    pub(crate) query_timeout: Option<Duration>,
    /// Most rows a result may have, and statements a graph that is read from /store; one that has more ends
    /// with an error, which a client that has begun to read meets as a cut [default: any number]
    #[arg(long, value_name = "N")]
    pub(crate) max_rows: Option<u64>,
    /// Memory all queries may take together, as in 8GiB; a fifth of it, 512 MiB at most, is kept
    /// for connections and the like, and the data is not counted [default: half of the machine's]
    #[arg(long, value_name = "BYTES", value_parser = parse_memory, allow_negative_numbers = true)]
    pub(crate) memory: Option<u64>,
    /// Memory one query may hold [default: 4GiB, or half of what all may hold if that is less]
    #[arg(long, value_name = "BYTES", value_parser = parse_memory, allow_negative_numbers = true)]
    pub(crate) query_memory: Option<u64>,
    /// Heavy queries that compute at once; light ones are not counted [default: one a core]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) heavy_queries: Option<NonZeroUsize>,
    /// When heavy queries run: `idle`, while a core has nothing else to do; `low`, at a lower
    /// priority, which other busy programs leave more to; `same`, as any other. With `idle`, long
    /// updates and documents have a very low priority, which is a share in any case
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(crate) heavy_priority: HeavyPriorityArgument,
    /// Heavy queries that wait for their turn; more are answered 503 [default: 64]
    #[arg(long, value_name = "N")]
    pub(crate) queued_queries: Option<usize>,
    /// How long a heavy query waits for its turn [default: 30 s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_negative_numbers = true)]
    pub(crate) queue_wait: Option<Duration>,
    /// How long a client may read nothing of what is sent to it [default: 60 s]
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_negative_numbers = true)]
    pub(crate) client_timeout: Option<Duration>,
    /// Largest request body, decompressed: tuples, and texts of updates and queries (a query has 64MiB
    /// at most). A document of the graph store may be as large as --spill-limit says [default: 64MiB]
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = parse_some_bytes,
        allow_negative_numbers = true
    )]
    pub(crate) max_body: Option<u64>,
    /// Threads for continuous queries that take more than 50 ms, beside one for those that take more
    /// than 10 ms; with 0, a push is answered after all
    /// queries that it makes due [default: half of the cores]
    #[arg(long, value_name = "N")]
    pub(crate) continuous_threads: Option<usize>,
    /// Clients that read results of continuous queries at once; more are answered 503 [default: 1024]
    #[arg(long, value_name = "N")]
    pub(crate) result_readers: Option<usize>,
    /// Connections open at once; more wait [default: 4096]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) max_connections: Option<NonZeroUsize>,
}

/// When heavy queries run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeavyPriorityArgument {
    /// While a core has nothing else to do
    #[default]
    Idle,
    /// At a lower priority than light ones
    Low,
    /// As any other
    Same,
}
