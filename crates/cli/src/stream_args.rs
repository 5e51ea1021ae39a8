//! Which options have the commands about streams?

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use jindou_engine::ingest::Format;
use oxrdf::NamedNode;

use crate::values::{
    parse_duration, parse_format, parse_iri, parse_memory, parse_public_url, parse_stream_name,
    parse_token, parse_user,
};

/// Make, feed and read streams and continuous queries of a running server
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  jindou serve &
  jindou stream create readings --iri http://example.org/readings
  jindou stream register warm warm.rq
  jindou stream watch warm &
  jindou stream replay readings readings.tsv.gz")]
pub(crate) enum StreamCommand {
    Create(CreateArguments),
    List(ListArguments),
    /// Drop a stream; what was stored of it stays
    Drop(DropArguments),
    Push(PushArguments),
    Replay(ReplayArguments),
    Heartbeat(HeartbeatArguments),
    Register(RegisterArguments),
    /// Drop a continuous query
    Unregister(DropArguments),
    Watch(WatchArguments),
}

/// Which server is asked.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServerArguments {
    /// Where the server is [default: http://127.0.0.1:7878]
    #[arg(
        long,
        value_name = "URL",
        env = "JINDOU_URL",
        hide_env = true,
        value_parser = parse_public_url
    )]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) identity: IdentityArguments,
}

/// How a server proves who it is, and who asks it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct IdentityArguments {
    /// File of certificates in PEM: the server's own, or that of an authority that the server's leads to,
    /// instead of those of the web's authorities
    #[arg(long, value_name = "FILE", env = "JINDOU_CA", hide_env = true)]
    pub(crate) ca: Option<PathBuf>,
    /// Name and password, where the server asks for them; other users of the machine see a command line,
    /// but not a variable
    #[arg(
        long,
        value_name = "NAME:PASSWORD",
        env = "JINDOU_USER",
        hide_env_values = true,
        conflicts_with = "token",
        value_parser = parse_user
    )]
    pub(crate) user: Option<String>,
    /// Token, where the server asks for one
    #[arg(
        long,
        value_name = "TOKEN",
        env = "JINDOU_TOKEN",
        hide_env_values = true,
        value_parser = parse_token
    )]
    pub(crate) token: Option<String>,
}

/// Where `jindou serve` is unless it is told otherwise.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:7878";

/// Make a stream
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou stream create readings --iri http://example.org/readings
  jindou stream create posts --iri http://example.org/posts --timeless all --graph http://example.org/social
  jindou stream create posts --definition posts.json")]
pub(crate) struct CreateArguments {
    /// What queries call it: letters, digits, _ and -
    #[arg(value_name = "NAME", value_parser = parse_stream_name)]
    pub(crate) name: String,
    /// Its IRI, which queries may also call it
    #[arg(long, value_name = "IRI", value_parser = parse_iri, required_unless_present = "definition")]
    pub(crate) iri: Option<NamedNode>,
    /// File with its definition as JSON, instead of options; `-` is standard input
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["iri", "time", "lateness", "interval", "idle", "max_ahead", "timing", "timeless", "graph", "memory", "durable"]
    )]
    pub(crate) definition: Option<PathBuf>,
    /// Where the time of a tuple comes from: `event`, it comes with the tuple; `arrival`, it is when the
    /// tuple came; or the IRI of a predicate whose value it is in the tuple's event [default: event]
    #[arg(long, value_name = "SOURCE")]
    pub(crate) time: Option<String>,
    /// How much later than later ones a tuple may come, as in 500ms [default: it may not]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) lateness: Option<Duration>,
    /// Time of a batch [default: 100ms]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) interval: Option<Duration>,
    /// After so long without a tuple the stream goes on with the server's clock [default: it waits]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) idle: Option<Duration>,
    /// How far ahead of the server's clock the time of a tuple may be [default: 1h]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) max_ahead: Option<Duration>,
    /// Predicates of tuples that are kept only while a window may need them, or `all`; may be given
    /// more than once [default: all that are not timeless]
    #[arg(long, value_name = "IRI")]
    pub(crate) timing: Vec<String>,
    /// Predicates of tuples that are stored in the graph, too, or `all`; may be given more than once
    #[arg(long, value_name = "IRI")]
    pub(crate) timeless: Vec<String>,
    /// Graph that timeless tuples are stored in [default: the default graph]
    #[arg(long, value_name = "IRI", value_parser = parse_iri)]
    pub(crate) graph: Option<NamedNode>,
    /// Memory that its windows may take [default: 256MiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_memory)]
    pub(crate) memory: Option<u64>,
    /// Log its tuples before they are acknowledged, so that windows and results come back with the store
    #[arg(long)]
    pub(crate) durable: bool,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// Print streams and continuous queries
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// Drop what has this name
#[derive(Debug, Args)]
pub(crate) struct DropArguments {
    /// Its name
    #[arg(value_name = "NAME", value_parser = parse_stream_name)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// Add tuples to a stream: all of a file, or none
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou stream push readings now.ttl --time 1700000000000
  printf '1700000000000\\t<http://e/a> <http://e/reads> \"21\" .\\n' | jindou stream push readings -")]
pub(crate) struct PushArguments {
    /// Name of the stream
    #[arg(value_name = "NAME", value_parser = parse_stream_name)]
    pub(crate) name: String,
    /// File with tuples: lines of a time in milliseconds, a tab and a statement; or, if its name ends so
    /// or by --format, a document of RDF, lines of JSON (.ndjson, .jsonl), JSON (.json) or RDF Patch
    /// (.rdfp). `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Time of a document's statements, in milliseconds since 1970
    #[arg(long, value_name = "MS", allow_negative_numbers = true)]
    pub(crate) time: Option<i64>,
    /// Format of a document, whatever its name says: nt, nq, turtle, trig, rdfxml, jsonld
    #[arg(long, value_name = "F", value_parser = parse_format)]
    pub(crate) format: Option<Format>,
    /// Name of who sends it: what it has sent before, by its number, changes nothing
    #[arg(long, value_name = "NAME", requires = "sequence")]
    pub(crate) producer: Option<String>,
    /// Number of this file, greater than those of files that the producer sent before
    #[arg(long, value_name = "N", requires = "producer")]
    pub(crate) sequence: Option<u64>,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// Send files of tuples to a stream at the pace of their times, which stay as they are
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou stream replay readings readings.tsv.zst
  jindou stream replay readings monday.tsv tuesday.tsv --pace 60    an hour a minute

A line has a time in milliseconds since 1970, a tab, and a statement of N-Triples or N-Quads; files that are
compressed by gzip or zstd are read as such, whatever their names. At the end a heartbeat completes the last batch. Where the stream is full, the
replay waits.")]
pub(crate) struct ReplayArguments {
    /// Name of the stream
    #[arg(value_name = "NAME", value_parser = parse_stream_name)]
    pub(crate) name: String,
    /// Files with lines in the order of time; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// How many seconds of the tuples' time pass in one; `max` is as fast as it goes
    #[arg(long, value_name = "FACTOR", default_value = "max", value_parser = parse_pace)]
    pub(crate) pace: Pace,
    /// Name of this replay: one of the same files that broke off goes on where the server has it. Only
    /// as fast as it goes, since what is sent together must be the same
    #[arg(long, value_name = "NAME", conflicts_with = "pace")]
    pub(crate) producer: Option<String>,
    /// Leave the last batch open
    #[arg(long)]
    pub(crate) no_heartbeat: bool,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// How fast tuples are replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// As fast as it goes.
    Max,
    /// So many times as fast as they happened.
    Times(f64),
}

fn parse_pace(text: &str) -> Result<Pace, String> {
    if text == "max" {
        return Ok(Pace::Max);
    }
    match text.parse::<f64>() {
        Ok(times) if times.is_finite() && times > 0.0 => Ok(Pace::Times(times)),
        _ => Err("give a number above 0, as in 1.0, or max".to_owned()),
    }
}

/// Say that no tuples before a time will come any more
#[derive(Debug, Args)]
pub(crate) struct HeartbeatArguments {
    /// Name of the stream
    #[arg(value_name = "NAME", value_parser = parse_stream_name)]
    pub(crate) name: String,
    /// The time, in milliseconds since 1970; a stream that has times of arrival takes none
    #[arg(value_name = "MS", allow_negative_numbers = true)]
    pub(crate) time: Option<i64>,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// Register a continuous query
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou stream register warm warm.rq
  jindou stream watch warm

docs/streams.md has the language. A query ends by `jindou stream unregister NAME`.")]
pub(crate) struct RegisterArguments {
    /// Name of the query: letters, digits, _ and -
    #[arg(value_name = "NAME", value_parser = parse_stream_name)]
    pub(crate) name: String,
    /// File with its text; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

/// Print results of a continuous query as they come
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou stream watch warm
  jindou stream watch warm --after 0 --json | jq .results

It ends when the query is dropped, after --limit results, or by Ctrl-C. Where the server goes away, it connects
again, and goes on after the last result that it printed.")]
pub(crate) struct WatchArguments {
    /// Name of the query
    #[arg(value_name = "NAME", value_parser = parse_stream_name)]
    pub(crate) name: String,
    /// Print each result as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Begin after the result of this number; 0 is with the oldest that the server has kept [default:
    /// with the next one]
    #[arg(long, value_name = "N")]
    pub(crate) after: Option<u64>,
    /// End after N results
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// End with an error when the server goes away, instead of connecting again
    #[arg(long)]
    pub(crate) once: bool,
    /// Show whole IRIs in tables, where prefixes of the query or of the store would shorten them
    #[arg(long)]
    pub(crate) full_iris: bool,
    #[command(flatten)]
    pub(crate) server: ServerArguments,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_a_number_or_max() {
        assert_eq!(parse_pace("max"), Ok(Pace::Max));
        assert_eq!(parse_pace("0.5"), Ok(Pace::Times(0.5)));
        for wrong in ["0", "-1", "inf", "NaN", "fast", ""] {
            assert!(parse_pace(wrong).is_err(), "{wrong}");
        }
    }
}
