//! Which commands and options are there?

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use jindou_engine::ingest::Format;
use jindou_engine::results::GraphFormat;
use jindou_server::Role;
use oxrdf::NamedNode;

use crate::access_args::AccessArguments;
use crate::allow::{AllowBroker, AllowLoad, AllowService, parse_broker, parse_load, parse_service};
use crate::bench_args::{
    BenchArguments, BenchChildArguments, ClusterBenchArguments, CountBenchArguments,
    EmulateArguments, GraphBenchArguments, HostileArguments, LoadBenchArguments,
    MergeBenchArguments, NodesArguments, OperatorArguments, ScaleArguments, ServedArguments,
    UpdateBenchArguments,
};
use crate::bench_bulk_args::BulkBenchArguments;
use crate::bench_stream_args::{
    CitybenchArguments, IngestBenchArguments, LsbenchBenchArguments, parse_rate,
};
use crate::cluster_args::{ClusterArguments, ClusterCommand};
use crate::limit_args::LimitArguments;
use crate::log_args::LogArguments;
use crate::proxy_args::ProxyArguments;
use crate::sources::{naming_variable, with_file, with_variables, without_empty};
use crate::spill::SpillArguments;
use crate::stream_args::{ServerArguments, StreamCommand};
use crate::values::{
    Prefix, parse_address, parse_context, parse_cors_origin, parse_count, parse_duration,
    parse_format, parse_graph_format, parse_iri, parse_memory, parse_prefix, parse_public_url,
    parse_role, parse_seconds, parse_stream_rate, parse_user_name,
};

const EXAMPLES: &str = "\
Examples:
  jindou demo                                     generate data, query it, serve it
  jindou cluster dev                              the same data at three servers that answer as one
  jindou serve data.ttl                           load a file, then answer at http://127.0.0.1:7878/
  jindou query --data data.ttl --query 'SELECT * WHERE { ?s ?p ?o } LIMIT 10'
  jindou load --location store data.nt.gz more.ttl
  jindou query --location store --query-file q.rq --results-format csv
  jindou dump --location store --output store.nq.zst
  jindou generate lubm --universities 10 --output lubm10.nt.zst
  jindou generate lsbench --users 1000 --seconds 60 --output lsbench
";

/// An in-memory RDF graph database that answers SPARQL by exploring the graph.
#[derive(Debug, Parser)]
#[command(name = "jindou", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Box<ServeArguments>),
    Load(LoadArguments),
    Query(QueryArguments),
    Update(UpdateArguments),
    Explain(ExplainArguments),
    Dump(DumpArguments),
    Stats(StatsArguments),
    Prefixes(PrefixesArguments),
    Backup(BackupArguments),
    Restore(RestoreArguments),
    Verify(VerifyArguments),
    Compact(CompactArguments),
    #[command(subcommand)]
    Stream(StreamCommand),
    /// Generate benchmark data
    #[command(subcommand)]
    Generate(GenerateCommand),
    /// Measure this machine
    #[command(subcommand)]
    Bench(BenchCommand),
    Demo(DemoArguments),
    #[command(subcommand)]
    Cluster(ClusterCommand),
    Proxy(ProxyArguments),
    HashPassword(HashPasswordArguments),
    Health(HealthArguments),
    Completions(CompletionsArguments),
    Manual(ManualArguments),
    /// A measurement in a process of its own, started by `bench`
    #[command(hide = true)]
    BenchChild(BenchChildArguments),
}

impl Arguments {
    /// Whether variables of the environment give options of the command.
    pub(crate) fn takes_variables(&self) -> bool {
        let command = &self.command;
        matches!(
            command,
            Command::Serve(_)
                | Command::Health(_)
                | Command::Stream(_)
                | Command::Proxy(_)
                | Command::Cluster(ClusterCommand::Status(_))
        )
    }

    /// The command line of this process, which ends where that is wrong, with what is.
    pub(crate) fn of_process() -> Self {
        Self::of_line(std::env::args_os().collect()).unwrap_or_else(|error| error.exit())
    }

    fn of_line(line: Vec<OsString>) -> Result<Self, clap::Error> {
        let command = Self::command();
        // Which variables count depends on what the line itself gives, not on what a file adds to it.
        let typed = line.clone();
        let line = match line.get(1) {
            Some(word) if word == "serve" => with_file(&command, line)?,
            _ => line,
        };
        let command =
            without_empty(command).mut_subcommand("serve", |serve| with_variables(serve, &typed));
        let matches = command.clone().try_get_matches_from(&line);
        let parsed = matches.and_then(|matches| Self::from_arg_matches(&matches));
        parsed.map_err(|error| {
            let error = naming_variable(error, &command, &line);
            with_advice(error, &line)
        })
    }
}

/// Says how a store and a query are named, to whom names them without an option.
fn with_advice(mut error: clap::Error, line: &[OsString]) -> clap::Error {
    let is_query = line
        .get(1)
        .is_some_and(|word| word == "query" || word == "explain");
    let argument = error.get(ContextKind::InvalidArg);
    let is_name = matches!(argument, Some(ContextValue::String(word)) if !word.starts_with('-'));
    if is_query && is_name && error.kind() == ErrorKind::UnknownArgument {
        let files = match line.get(1) {
            Some(word) if word == "query" => ", or files by --data FILE...",
            _ => "",
        };
        let advice = format!(
            "name a store by --location DIR{files}, and what is asked by --query QUERY or --query-file FILE"
        );
        let advice = ContextValue::StyledStrs(vec![advice.into()]);
        error.insert(ContextKind::Suggested, advice);
    }
    error
}

/// How files are read.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReadArguments {
    /// Format of the files, whatever their names say: nt, nq, turtle, trig, rdfxml, jsonld
    #[arg(long, value_name = "F", value_parser = parse_format)]
    pub(crate) format: Option<Format>,
    /// Go on after syntax errors: leave out statements that cannot be read, keep those with IRIs and
    /// language tags that are odd but can be read, and say so
    #[arg(long)]
    pub(crate) lenient: bool,
    /// A file that holds the context that documents of JSON-LD name by this IRI, as
    /// https://example.org/context=context.jsonld; may be given more than once. Those of schema.org and
    /// some of the W3C are known; none is fetched
    #[arg(long, value_name = "IRI=FILE", value_parser = parse_context)]
    pub(crate) context: Vec<ContextArgument>,
}

/// A context of JSON-LD and the file that it is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContextArgument {
    pub(crate) iri: String,
    pub(crate) file: PathBuf,
}

/// Answer SPARQL queries over HTTP
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou serve data.nt.gz                 in memory; ask at http://127.0.0.1:7878/query
  jindou serve --location store           a store in a folder, made if it is not there
  jindou serve --location store data.ttl  load into the store first, as `jindou load` does
  jindou serve --location store --read-only --peers nodes.toml --node a
  curl http://127.0.0.1:7878/query -d query='SELECT * WHERE { ?s ?p ?o } LIMIT 10'

Each option may be given by a variable of the environment instead, as JINDOU_BIND and
JINDOU_MAX_ROWS: an option that may be repeated has commas between its values there, and one without
a value is true or false. What neither gives may be in a TOML file that --config names: bind = \":7878\",
read-only = true, allow-service = [\"https://a.example/\", \"https://b.example/\"]. The command line goes
before the environment, and that before the file.

Ctrl-C lets queries under way end; a second Ctrl-C ends at once. `jindou backup` copies the store
while it is served.")]
pub(crate) struct ServeArguments {
    /// Files to load first; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// File of options in TOML, named as here without the dashes; what the command line or the environment
    /// gives goes before
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Folder of the store to serve, made if it is not there; without it, files and updates are
    /// held in memory only
    #[arg(long, value_name = "DIR")]
    pub(crate) location: Option<PathBuf>,
    /// Take no updates; a store is served as it is now, need not be writable, and may be written
    /// by another process meanwhile
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Address or name, and port, to listen at; without an address, as in :8080, at all of the machine,
    /// for which see --insecure
    #[arg(
        long,
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:7878",
        value_parser = parse_address
    )]
    pub(crate) bind: SocketAddr,
    /// Port to listen at, instead of that of --bind; 0 is a free one, which is printed
    #[arg(long, value_name = "N")]
    pub(crate) port: Option<u16>,
    /// Endpoints that queries may call with SERVICE: those whose IRI begins so, or `any`; may be
    /// given more than once [default: none, as clients could otherwise reach what only this machine can]
    #[arg(long, value_name = "PREFIX", value_parser = parse_service)]
    pub(crate) allow_service: Vec<AllowService>,
    /// Brokers that sources of streams and sinks of continuous queries may connect to, as in
    /// kafka.example.org:9092, or `any`; may be given more than once [default: none, as clients could
    /// otherwise reach what only this machine can]
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_broker)]
    pub(crate) allow_broker: Vec<AllowBroker>,
    /// Whether updates are on the device before they are acknowledged: `never` leaves it to the
    /// operating system when they are, and a crash of the machine may lose the last ones
    #[arg(long, value_name = "WHEN", value_enum, default_value = "always")]
    pub(crate) fsync: FsyncArgument,
    /// What an update's LOAD may read: files of this folder, or what is at addresses that begin so,
    /// as in https://example.org/data, or `web` for all addresses; may be given more than once. Streams
    /// may follow event streams (LDES) at these addresses, too
    /// [default: nothing, as clients could otherwise reach what only this machine can]
    #[arg(long, value_name = "DIR|PREFIX", value_parser = parse_load)]
    pub(crate) allow_load: Vec<AllowLoad>,
    /// Pages of which origin may use the server, as in https://example.org; may be given more than
    /// once. Pages of `*` may read but change nothing; those of an origin that is named may change
    /// data, too; `none` is for pages of the server itself only [default: * if --bind is a loopback
    /// address, otherwise none]
    #[arg(long, value_name = "ORIGIN", value_parser = parse_cors_origin)]
    pub(crate) cors_origin: Vec<CorsOrigin>,
    /// What browsers see before the path of a URL, as in https://example.org, where the server is
    /// reached by a name, as behind a proxy; without it, pages may use it by its address and
    /// localhost only
    #[arg(long, value_name = "URL", value_parser = parse_public_url)]
    pub(crate) public_url: Option<String>,
    /// Find all graphs in the default graph: the union of the stored one and all named graphs, where
    /// a query names no dataset; updates change the stored one. A store that is made keeps it
    #[arg(long)]
    pub(crate) union_default_graph: bool,
    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,
    #[command(flatten)]
    pub(crate) access: AccessArguments,
    #[command(flatten)]
    pub(crate) logs: LogArguments,
    #[command(flatten)]
    pub(crate) limits: LimitArguments,
    #[command(flatten)]
    pub(crate) spill: SpillArguments,
    #[command(flatten)]
    pub(crate) read: ReadArguments,
}

/// Print what a file of credentials says about a password, read from the terminal or standard input
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou hash-password --name ann --role write >> credentials
  jindou hash-password --name backup --role read --token >> credentials
  jindou serve --location store --credentials credentials
  curl -u ann http://127.0.0.1:7878/query -d query='ASK {}'")]
pub(crate) struct HashPasswordArguments {
    /// Print the whole line of this user, and not the hash alone
    #[arg(long, requires = "role", value_parser = parse_user_name)]
    pub(crate) name: Option<String>,
    /// What the user may do: read, write or admin
    #[arg(long, requires = "name", value_parser = parse_role)]
    pub(crate) role: Option<Role>,
    /// Make a token instead, for `Authorization: Bearer`; it goes to standard error
    #[arg(long)]
    pub(crate) token: bool,
}

/// Ask a running server whether it is well; succeeds if so
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou health
  until jindou health --url http://db.example.org:7878; do sleep 1; done

It fails with the reasons where the server takes no changes, or soon will not, and where it does not answer
in time. Without --url it asks the server of this machine that has the same environment: JINDOU_BIND,
JINDOU_PORT, JINDOU_TLS_CERTIFICATE and the file JINDOU_CONFIG say where that is, whose certificate may be for
any name.")]
pub(crate) struct HealthArguments {
    #[command(flatten)]
    pub(crate) server: ServerArguments,
    /// How long it may take until the server has answered, as in 500ms
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5s",
        value_parser = parse_duration,
        allow_negative_numbers = true
    )]
    pub(crate) timeout: Duration,
}

/// Print what a shell needs to complete this command
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou completions bash > ~/.local/share/bash-completion/completions/jindou
  jindou completions zsh > ~/.zfunc/_jindou
  jindou completions fish > ~/.config/fish/completions/jindou.fish")]
pub(crate) struct CompletionsArguments {
    /// Which shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// Write the pages of the manual, one for each command, as man reads them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou manual ~/.local/share/man/man1 && man jindou-serve")]
pub(crate) struct ManualArguments {
    /// Folder to write them to, made if it is not there
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
}

/// When updates are on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FsyncArgument {
    /// Before they are acknowledged
    Always,
    /// When the operating system sees fit
    Never,
}

/// Pages of which origin may use a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CorsOrigin {
    /// All of them, to read.
    Any,
    None,
    /// Those of one.
    One(String),
}

/// Load files into a store in a folder
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou load --location store data.nt.gz more.ttl
  zcat dump.gz | jindou load --location store --format nt -
  jindou load --location store --graph http://example.org/g data.ttl
  jindou load --location store data/ 'more/*.ttl.gz'
  jindou load --location store --memory 6GiB dump.nq.gz              of more data than memory
  jindou load --location part --peers nodes.toml --node a data.nt    at node a, and so on at the others

Files may end in .nt .nq .ttl .trig .rdf .jsonld and others, and in .gz .zst .bz2 after that; one
whose first bytes are of another format is read in that, unless --format is given. A folder stands for
all such files in it. What a store holds already stays, under the ids that it has.")]
pub(crate) struct LoadArguments {
    /// Folder of the store; made if it is not there, and what it holds stays
    #[arg(long, value_name = "DIR")]
    pub(crate) location: PathBuf,
    /// Files, folders or patterns to load; `-` is standard input, which needs --format
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) read: ReadArguments,
    /// IRI that relative IRIs are resolved against [default: the file's own]
    #[arg(long, value_name = "IRI", value_parser = parse_iri)]
    pub(crate) base: Option<NamedNode>,
    /// Graph for statements that name none [default: the default graph]
    #[arg(long, value_name = "IRI", value_parser = parse_iri)]
    pub(crate) graph: Option<NamedNode>,
    /// Queries of the store find all graphs in its default graph, unless they say otherwise; for a
    /// store that is made, which keeps it
    #[arg(long)]
    pub(crate) union_default_graph: bool,
    /// Threads [default: all]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Memory the load may take, as in 6GiB; what is more waits in files in the folder of the store, which may
    /// be several times as large as the store. Terms and triples count; a predicate takes 6 kB and a named
    /// graph up to 250 bytes beside that, and literals of several MiB are held, one of each file. For a
    /// store that has nothing yet [default: as much as the data needs, 60 bytes a triple or more]
    #[arg(
        long,
        value_name = "BYTES",
        value_parser = parse_memory,
        allow_negative_numbers = true,
        conflicts_with = "peers"
    )]
    pub(crate) memory: Option<u64>,
    #[command(flatten)]
    pub(crate) together: TogetherArguments,
}

/// With whom files are loaded.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct TogetherArguments {
    /// File of the nodes of a cluster, the same at each of them: all load the same files together, each ends with its
    /// part of the store in --location, for `jindou serve --read-only` by the same list
    #[arg(long, value_name = "FILE", requires = "node")]
    pub(crate) peers: Option<PathBuf>,
    /// Which of these nodes this is
    #[arg(long, value_name = "NAME", requires = "peers")]
    pub(crate) node: Option<String>,
    /// Longest time until all nodes are there, as in 5m
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1m",
        value_parser = parse_duration,
        requires = "peers",
        allow_negative_numbers = true
    )]
    pub(crate) meet_within: Duration,
}

/// Run one query and print its result
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou query --data data.ttl --query 'SELECT * WHERE { ?s ?p ?o } LIMIT 10'
  jindou query --location store --query-file q.rq --results-format json > result.json
  jindou query --location store --query-file q.rq --output result.parquet
  jindou query --location store --query-file q.rq --profile

Tables (SELECT) are written as table (the default), tsv, csv, json, xml, arrow or parquet; truth
values (ASK) as table, tsv, csv, json or xml; graphs (CONSTRUCT, DESCRIBE) as nt (the default),
turtle, rdfxml, jsonld, trig, nq, n3, arrow or parquet. In arrow (an IPC stream) and parquet each
variable is a struct of kind, value, datatype and language.")]
pub(crate) struct QueryArguments {
    #[command(flatten)]
    pub(crate) subject: SubjectArguments,
    #[command(flatten)]
    pub(crate) text: TextArguments,
    /// IRI that relative IRIs of the query are resolved against, unless it has a BASE
    #[arg(long, value_name = "IRI", value_parser = parse_iri)]
    pub(crate) base: Option<NamedNode>,
    /// Find all graphs in the default graph, where the query names no dataset
    #[arg(long)]
    pub(crate) union_default_graph: bool,
    /// Form of the result [default: what the output's name tells; table, for graphs nt]
    #[arg(long, value_name = "F", value_enum)]
    pub(crate) results_format: Option<ResultsFormat>,
    /// File to write instead of standard output, compressed if it ends in .gz or .zst; it appears
    /// when it is whole
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Longest time the query may take, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true
    )]
    pub(crate) timeout: Option<Duration>,
    /// Threads one query may use [default: as the engine decides]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroUsize>,
        allow_negative_numbers = true
    )]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Endpoints that the query may call with SERVICE: those whose IRI begins so, `any` or `none`;
    /// may be given more than once [default: any]
    #[arg(long, value_name = "PREFIX", value_parser = parse_service)]
    pub(crate) allow_service: Vec<AllowService>,
    /// Show whole IRIs in tables, where prefixes of the query or of the data would shorten them
    #[arg(long)]
    pub(crate) full_iris: bool,
    /// Print rows and time of each step on standard error, after the result
    #[arg(long)]
    pub(crate) profile: bool,
    /// Print the plan instead of running it
    #[arg(long, conflicts_with_all = ["profile", "results_format", "output"])]
    pub(crate) explain: bool,
    #[command(flatten)]
    pub(crate) spill: SpillArguments,
    #[command(flatten)]
    pub(crate) read: ReadArguments,
}

/// What to query: a store or files.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct SubjectArguments {
    /// Folder of the store to query
    #[arg(long, value_name = "DIR")]
    pub(crate) location: Option<PathBuf>,
    /// Files to load into memory and query; `-` is standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub(crate) data: Vec<PathBuf>,
}

/// The query.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct TextArguments {
    /// The query's text
    #[arg(long, short, value_name = "Q")]
    pub(crate) query: Option<String>,
    /// File with the query's text; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) query_file: Option<PathBuf>,
}

/// Change a store by SPARQL Update, as one transaction
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou update --location store --update 'CLEAR GRAPH <http://example.org/g>'
  jindou update --location store --update-file changes.ru

A store that a server has open is changed through the server's /update.")]
pub(crate) struct UpdateArguments {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    pub(crate) location: PathBuf,
    #[command(flatten)]
    pub(crate) text: UpdateTextArguments,
    /// IRI that relative IRIs of the request are resolved against, unless it has a BASE
    #[arg(long, value_name = "IRI", value_parser = parse_iri)]
    pub(crate) base: Option<NamedNode>,
    /// Find all graphs in the default graph of WHERE clauses that name no dataset; what is changed is
    /// the stored default graph
    #[arg(long)]
    pub(crate) union_default_graph: bool,
    /// Longest time the update may take, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = parse_seconds,
        allow_negative_numbers = true
    )]
    pub(crate) timeout: Option<Duration>,
    /// Print the quads that were really removed and added, as an RDF Patch
    #[arg(long)]
    pub(crate) return_delta: bool,
}

/// Where the request is.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct UpdateTextArguments {
    /// The request's text
    #[arg(long, short, value_name = "U")]
    pub(crate) update: Option<String>,
    /// File with the request's text; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) update_file: Option<PathBuf>,
}

impl From<UpdateTextArguments> for TextArguments {
    fn from(text: UpdateTextArguments) -> Self {
        Self {
            query: text.update,
            query_file: text.update_file,
        }
    }
}

/// Print how a query would be answered
#[derive(Debug, Args)]
pub(crate) struct ExplainArguments {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    pub(crate) location: PathBuf,
    #[command(flatten)]
    pub(crate) text: TextArguments,
    /// IRI that relative IRIs of the query are resolved against, unless it has a BASE
    #[arg(long, value_name = "IRI", value_parser = parse_iri)]
    pub(crate) base: Option<NamedNode>,
    /// Find all graphs in the default graph, where the query names no dataset
    #[arg(long)]
    pub(crate) union_default_graph: bool,
}

/// Write what a store holds as a file
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou dump --location store --output store.nq.zst
  jindou dump --location store --graph http://example.org/g --format ttl
  jindou dump --location store --output store.parquet

Formats: nq (the default), trig, jsonld, parquet and arrow hold all graphs; nt, ttl, rdf and n3 hold
one. Parquet and arrow (an IPC stream) have the columns subject, predicate, object (a struct of
kind, value, datatype and language) and graph (null in the default graph); blank nodes are written
as _:label. What is dumped loads as the same dataset, but for the names of blank nodes.")]
pub(crate) struct DumpArguments {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    pub(crate) location: PathBuf,
    /// File to write, compressed if it ends in .gz or .zst; it appears when it is whole
    /// [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Format [default: what the output's name tells, or nq]
    #[arg(long, value_name = "F", value_parser = parse_graph_format)]
    pub(crate) format: Option<GraphFormat>,
    /// Write this named graph only
    #[arg(long, value_name = "IRI", value_parser = parse_iri, conflicts_with = "default_graph")]
    pub(crate) graph: Option<NamedNode>,
    /// Write the default graph only
    #[arg(long)]
    pub(crate) default_graph: bool,
}

/// Print what a store holds
#[derive(Debug, Args)]
pub(crate) struct StatsArguments {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    pub(crate) location: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print or change the prefixes that a store knows
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou prefixes --location store
  jindou prefixes --location store --set foaf=http://xmlns.com/foaf/0.1/ --remove old

What is loaded brings its prefixes along, and a name that is known keeps its IRI. Results in Turtle, TriG,
N3, RDF/XML and JSON-LD use them beside those of the query. A server has them at /prefixes.")]
pub(crate) struct PrefixesArguments {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    pub(crate) location: PathBuf,
    /// Let this name stand for this IRI from now on; may be given more than once
    #[arg(long, value_name = "NAME=IRI", value_parser = parse_prefix)]
    pub(crate) set: Vec<Prefix>,
    /// Forget this name; may be given more than once
    #[arg(long, value_name = "NAME")]
    pub(crate) remove: Vec<String>,
    /// Print declarations in Turtle
    #[arg(long, conflicts_with_all = ["set", "remove"])]
    pub(crate) turtle: bool,
}

/// Copy a store, also while a server has it open
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou backup --location store --to backups/monday
  jindou serve --location backups/monday          a backup is a store

On one device the large files, which never change, are shared with the store and take no space; copy
the backup elsewhere to be safe from that device.

Where `jindou serve --location` has the store open, the server makes the backup, as its user and
while queries and updates go on; it holds all that was acknowledged before. The command asks for it
through the socket `control.sock` in the store's folder, which only that user may open. Ctrl-C ends
the command, not a backup that the server has begun.")]
pub(crate) struct BackupArguments {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    pub(crate) location: PathBuf,
    /// Folder to make; it appears when it is whole
    #[arg(long, value_name = "DIR")]
    pub(crate) to: PathBuf,
}

/// Make a store of a backup, after reading all of it
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou restore --from backups/monday --location store

The folder must be absent or empty: nothing is overwritten.")]
pub(crate) struct RestoreArguments {
    /// Folder of the backup, which stays as it is
    #[arg(long, value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// Folder of the store to make; it appears when it is whole
    #[arg(long, value_name = "DIR")]
    pub(crate) location: PathBuf,
}

/// Read all of a store, alter nothing, and say whether it is as it should be
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou verify --location store && echo whole

Compares checksums, the dictionary in both directions, edges by subject and by object, the tables
derived from them, and counts. The exit status is 0 if all agree, 1 if not, and then the error names
the file.")]
pub(crate) struct VerifyArguments {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    pub(crate) location: PathBuf,
}

/// Merge the changes of a store into its base, for queries as fast as after a load
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou compact --location store
  jindou compact --location store --renumber

A merge writes those parts of the base anew that have changed; every term keeps its id. With
--renumber all of it is written anew, and all terms get other ids, as in a fresh load, which nothing
else does: that takes longer, and no update is taken meanwhile.

A store that a server has open is merged by the server, which answers queries and takes updates
meanwhile, goes on if this command is ended, and merges by itself after many changes.")]
pub(crate) struct CompactArguments {
    /// Folder of the store
    #[arg(long, value_name = "DIR")]
    pub(crate) location: PathBuf,

    /// Number all terms anew and write the whole base
    #[arg(long)]
    pub(crate) renumber: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GenerateCommand {
    Lubm(GenerateArguments),
    Literals(LiteralsArguments),
    Lsbench(LsbenchArguments),
}

/// Generate data of the Lehigh University Benchmark as N-Triples
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou generate lubm --universities 10 --output lubm10.nt.zst
  jindou generate lubm --universities 1 --output - | wc -l

The same number and seed always give the same bytes. One university has about 130,000 triples.")]
pub(crate) struct GenerateArguments {
    /// How many universities
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// Seed; the literature uses 0
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// File to write, compressed if it ends in .gz or .zst; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// Generate a graph with many different literals as N-Triples
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou generate literals --things 100000 --output things.nt.zst
  jindou generate literals --things 10000000 --output - | jindou load --location store --memory 6GiB --format nt -

The same number and seed always give the same bytes. A thing has ten triples: three literals that no other thing has,
and seven edges to other things.")]
pub(crate) struct LiteralsArguments {
    /// How many things
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) things: NonZeroU32,
    /// Seed
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// File to write, compressed if it ends in .gz or .zst; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

/// Generate the Linked Stream Benchmark: a stored social graph and five streams
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou generate lsbench --users 1000 --seconds 60 --output lsbench
  jindou generate lsbench --users 1000 --seconds 240 --rate data --pace daily --output as-given
  jindou generate lsbench --users 1000000 --seconds 0 --compress zst --output stored-only

The folder gets static.nt, N-Triples of about 102 statements a user, and post.tnt, postlike.tnt,
photo.tnt, photolike.tnt and gps.tnt, whose lines are `time_ms TAB N-Triples statement` in the order of
time. The same arguments always give the same bytes; the same users and seed the same static.nt. Memory
depends on --rate alone. At --rate 1 a second takes 18 MB.")]
pub(crate) struct LsbenchArguments {
    /// How many users
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) users: NonZeroU32,
    /// Seed
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// How long the streams are, in seconds of stream time; 0 writes the stored graph alone
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) seconds: u32,
    /// Tuples a second: times 133,500, the rates of the paper on Wukong+S (posts 10,000, their likes
    /// 86,000, photos 10,000, their likes 7,500, GPS 20,000), whatever the number of users; or `data`,
    /// those of the benchmark's own data, which are 1,958 for each 1,000 users
    #[arg(
        long,
        value_name = "FACTOR|data",
        value_parser = parse_stream_rate,
        default_value = "1",
        allow_negative_numbers = true
    )]
    pub(crate) rate: StreamRate,
    /// How tuples are spread over time: `even`, or `daily`, in days of 24 s with twice the rate in the
    /// first half and nothing in the second, as in the benchmark's own data
    #[arg(long, value_name = "PACE", value_enum, default_value_t)]
    pub(crate) pace: PaceArgument,
    /// Compress each file, whose name then ends in .gz or .zst
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) compress: Option<CompressArgument>,
    /// Folder to write to, made if it is not there; files of the same names are overwritten
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// How many tuples a second streams have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum StreamRate {
    /// So many times the paper's.
    OfPaper(f64),
    /// As many for each user as in the benchmark's data.
    OfData,
}

/// How tuples are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PaceArgument {
    /// As evenly as events allow
    #[default]
    Even,
    /// In days of 24 s, of which half is night
    Daily,
}

/// How files are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompressArgument {
    Gz,
    Zst,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Lubm(BenchArguments),
    Operators(OperatorArguments),
    Served(ServedArguments),
    Nodes(NodesArguments),
    Load(LoadBenchArguments),
    Cluster(ClusterBenchArguments),
    Emulate(EmulateArguments),
    Scale(ScaleArguments),
    Bulk(BulkBenchArguments),
    Hostile(HostileArguments),
    Updates(UpdateBenchArguments),
    Graphs(GraphBenchArguments),
    Counts(CountBenchArguments),
    Merges(MergeBenchArguments),
    Lsbench(LsbenchBenchArguments),
    Citybench(CitybenchArguments),
    Ingest(IngestBenchArguments),
}

/// Generate LUBM data in memory, run its seven queries, then serve it
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  jindou demo
  jindou demo --universities 40 --no-serve
  jindou demo streams"
)]
pub(crate) struct DemoArguments {
    #[command(subcommand)]
    pub(crate) command: Option<DemoCommand>,
    /// How many universities
    #[arg(
        long,
        value_name = "N",
        default_value = "10",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) universities: NonZeroU32,
    /// End after the queries
    #[arg(long)]
    pub(crate) no_serve: bool,
    /// Address or name, and port, to listen at; without an address, as in :8080, at all of the machine,
    /// for which see --insecure
    #[arg(
        long,
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:7878",
        value_parser = parse_address
    )]
    pub(crate) bind: SocketAddr,
    /// Listen beyond this machine: anyone who reaches the address can do everything
    #[arg(long)]
    pub(crate) insecure: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DemoCommand {
    Streams(DemoStreamsArguments),
}

/// Generate a social graph and five streams of what its people do, ask three continuous queries, and
/// serve a page that shows them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  jindou demo streams
  jindou demo streams --rate 1")]
pub(crate) struct DemoStreamsArguments {
    /// People, each with about a hundred stored triples
    #[arg(
        long,
        value_name = "N",
        default_value = "1000",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) users: NonZeroU32,
    /// How many times 133,500 facts a second, the rates of the Wukong+S paper
    #[arg(long, value_name = "TIMES", default_value = "0.05", value_parser = parse_rate)]
    pub(crate) rate: f64,
    /// Address or name, and port, to listen at; without an address, as in :8080, at all of the machine,
    /// for which see --insecure
    #[arg(
        long,
        value_name = "ADDR:PORT",
        default_value = "127.0.0.1:7878",
        value_parser = parse_address
    )]
    pub(crate) bind: SocketAddr,
    /// Listen beyond this machine: anyone who reaches the address can do everything
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResultsFormat {
    /// Aligned columns, long values cut
    Table,
    /// Tab-separated terms
    Tsv,
    /// Comma-separated values
    Csv,
    /// SPARQL results in JSON
    Json,
    /// SPARQL results in XML
    Xml,
    /// N-Triples, for graphs
    Nt,
    /// Turtle, for graphs
    #[value(alias = "ttl")]
    Turtle,
    /// RDF/XML, for graphs
    #[value(alias = "rdf")]
    Rdfxml,
    /// JSON-LD, for graphs
    Jsonld,
    /// TriG, for graphs
    Trig,
    /// N-Quads, for graphs
    Nq,
    /// Notation3, for graphs
    N3,
    /// Apache Arrow IPC stream
    Arrow,
    /// Apache Parquet
    Parquet,
}

impl ResultsFormat {
    /// The format of files with this ending, in lower case and without the dot.
    pub(crate) fn from_ending(ending: &str) -> Option<Self> {
        Some(match ending {
            "txt" => Self::Table,
            "tsv" => Self::Tsv,
            "csv" => Self::Csv,
            "json" | "srj" => Self::Json,
            "xml" | "srx" => Self::Xml,
            "nt" => Self::Nt,
            "ttl" => Self::Turtle,
            "rdf" => Self::Rdfxml,
            "jsonld" => Self::Jsonld,
            "trig" => Self::Trig,
            "nq" => Self::Nq,
            "n3" => Self::N3,
            "arrows" => Self::Arrow,
            "parquet" => Self::Parquet,
            _ => return None,
        })
    }

    /// Whether it is no text, and has compression of its own or none at all.
    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Arrow | Self::Parquet)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_meaning_and_with_advice() {
        let said = |line: &str| {
            let arguments = format!("jindou {line}");
            let parsed = Arguments::of_line(arguments.split(' ').map(OsString::from).collect());
            parsed.expect_err(line).to_string()
        };
        for line in ["query store.ttl ASK{}", "explain --location s ASK{}"] {
            let said = said(line);
            assert!(said.contains("unexpected argument"), "{said}");
            assert!(said.contains("--location DIR"), "{said}");
        }
        assert!(!said("query --frob").contains("--location DIR"));
        for line in [
            "generate lubm --output - --universities 0",
            "generate lubm --output - --universities -1",
            "generate literals --output - --things 0",
            "generate lsbench --output d --users 0",
            "serve --heavy-queries 0",
            "bench lubm --universities 1 --runs x",
            "bench graphs --universities 0",
            "bench merges --live 0",
            "bench bulk --turns 0",
        ] {
            let said = said(line);
            assert!(said.contains("give a whole number from 1 on"), "{said}");
        }
        for rate in ["0", "-1", "NaN", "1001", "papers"] {
            let said = said(&format!(
                "generate lsbench --output d --users 1 --rate {rate}"
            ));
            assert!(said.contains("give a factor over 0"), "{said}");
        }
        for line in ["serve --query-timeout -1", "serve --memory -1"] {
            let said = said(line);
            assert!(!said.contains("-- -1"), "{said}");
            assert!(said.contains("not a") || said.contains("give"), "{said}");
        }
    }

    #[test]
    fn a_query_needs_one_subject_and_one_text() {
        let parse = |rest: &[&str]| {
            let line = ["jindou", "query"].iter().chain(rest);
            Arguments::try_parse_from(line)
        };
        assert!(parse(&["--location", "s", "--query", "q"]).is_ok());
        assert!(parse(&["--data", "a", "b", "--query", "q"]).is_ok());
        assert!(parse(&["--query", "q"]).is_err());
        assert!(parse(&["--location", "s"]).is_err());
        assert!(parse(&["--location", "s", "--data", "a", "--query", "q"]).is_err());
        assert!(parse(&["--data", "a", "--query", "q", "--query-file", "f"]).is_err());
    }
}
