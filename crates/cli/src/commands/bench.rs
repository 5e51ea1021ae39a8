//! `jindou bench`: how fast is it on this machine?

use std::fmt::Display;
use std::io::IsTerminal;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;

use anyhow::{Context, bail};
use clap::ValueEnum as _;
use jindou_bench::bulk;
use jindou_bench::child::{self, ChildProgram};
use jindou_bench::counts;
use jindou_bench::emulate;
use jindou_bench::generated::Generated;
use jindou_bench::graphs;
use jindou_bench::hostile;
use jindou_bench::lubm::{Options, measure};
use jindou_bench::merges;
use jindou_bench::nodes;
use jindou_bench::operators::{self, Jindou, Read};
use jindou_bench::scale::{self, model::Link};
use jindou_bench::served;
use jindou_bench::together;
use jindou_bench::updates;
use jindou_datagen::literals::Literals;
use jindou_datagen::lubm::Lubm;
use jindou_engine::{NodeFabric, Shards};
use serde::Serialize;

use super::bench_streams;
use crate::args::BenchCommand;
use crate::bench_args::{
    BenchArguments, BenchChildArguments, ClusterBenchArguments, CountBenchArguments,
    EmulateArguments, FabricName, GraphBenchArguments, HostileArguments, LoadBenchArguments,
    MergeBenchArguments, NodesArguments, OperatorArguments, ScaleArguments, ServedArguments,
    UpdateBenchArguments,
};
use crate::bench_bulk_args::{BulkBenchArguments, GraphName, WayName};
use crate::output;

/// How many times as fast each operator is to be on two threads as on one.
const SPEED_UP: f64 = 1.6;

/// # Errors
/// What keeps the figures from being taken; a wrong answer among them.
pub(crate) fn run(command: BenchCommand) -> anyhow::Result<()> {
    match command {
        BenchCommand::Lubm(arguments) => lubm(arguments),
        BenchCommand::Operators(arguments) => operators(arguments),
        BenchCommand::Served(arguments) => served(&arguments),
        BenchCommand::Nodes(arguments) => nodes(arguments),
        BenchCommand::Load(arguments) => load(arguments),
        BenchCommand::Bulk(arguments) => bulk(&arguments),
        BenchCommand::Cluster(arguments) => cluster(arguments),
        BenchCommand::Emulate(arguments) => emulate(arguments),
        BenchCommand::Scale(arguments) => scale(arguments),
        BenchCommand::Updates(arguments) => updates(arguments),
        BenchCommand::Hostile(arguments) => hostile(&arguments),
        BenchCommand::Graphs(arguments) => graphs(arguments),
        BenchCommand::Counts(arguments) => counts(arguments),
        BenchCommand::Merges(arguments) => merges(arguments),
        BenchCommand::Lsbench(arguments) => bench_streams::lsbench(&arguments),
        BenchCommand::Citybench(arguments) => bench_streams::citybench(&arguments),
        BenchCommand::Ingest(arguments) => bench_streams::ingest(arguments),
    }
}

fn hostile(arguments: &HostileArguments) -> anyhow::Result<()> {
    let _room = jindou_server::room_for_connections();
    if arguments.streams {
        return hostile_streams(arguments);
    }
    let options = hostile::Options {
        universities: arguments.universities.get(),
        folder: arguments.data.clone(),
        duration: arguments.duration,
        slow_connections: arguments.slow,
        memory_bytes: arguments.memory,
        child: ChildProgram::this(&["bench-child"])?,
    };
    let report = hostile::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())?;
    match report.verdicts().iter().find(|(_, _, met)| !met) {
        None => Ok(()),
        Some((target, found, _)) => bail!("missed: {target}: {found}"),
    }
}

fn hostile_streams(arguments: &HostileArguments) -> anyhow::Result<()> {
    let options = hostile::streams::Options {
        folder: arguments.data.clone(),
        duration: arguments.duration,
        memory_bytes: arguments.memory,
        registrations: arguments.registrations,
        clients: arguments.clients,
        only: arguments.only.clone(),
        child: ChildProgram::this(&["bench-child"])?,
    };
    let report = hostile::streams::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())?;
    match report.failures().len() {
        0 => Ok(()),
        1 => bail!("a bound is broken"),
        broken => bail!("{broken} bounds are broken"),
    }
}

fn lubm(arguments: BenchArguments) -> anyhow::Result<()> {
    let mut options = Options::new(arguments.universities.get());
    if let Some(threads) = arguments.threads {
        options.threads = threads.get();
    }
    options.seed = arguments.seed;
    options.folder = arguments.data;
    options.runs = arguments.runs.get();
    options.http = arguments.http;
    options.light = arguments.light;
    options.child = Some(ChildProgram::this(&["bench-child"])?);
    options.location = arguments.location.clone();
    options.memory = arguments.memory;
    print_report(&measure(&options, note)?, arguments.json.as_deref())
}

fn operators(arguments: OperatorArguments) -> anyhow::Result<()> {
    let options = operators::Options {
        universities: arguments.universities,
        folder: arguments.data,
        sets: arguments.sets,
        only: arguments.only,
        families: arguments.family,
        budget: arguments.budget,
        limit: arguments.limit,
        data: arguments.set,
        read: match arguments.ids {
            true => Read::Ids,
            false => Read::Text,
        },
        ..operators::Options::default()
    };
    let engine = |threads: Option<NonZeroUsize>| {
        let name = match threads.filter(|_| arguments.against_threads.is_some()) {
            None => "jindou".to_owned(),
            Some(NonZeroUsize::MIN) => "1 thread".to_owned(),
            Some(threads) => format!("{threads} threads"),
        };
        Jindou::new(threads.map(usize::from)).named(name, options.read)
    };
    let mut first = engine(arguments.threads);
    let report = match arguments.against_threads {
        None => operators::measure(&options, &mut [&mut first], note)?,
        against => {
            let mut second = engine(against);
            let wanted = SPEED_UP;
            let options = operators::Options { wanted, ..options };
            operators::measure(&options, &mut [&mut first, &mut second], note)?
        }
    };
    print_report(&report, arguments.json.as_deref())?;
    if !report.is_right() {
        bail!("some answers are wrong or missing: see the lines that begin with WRONG");
    }
    Ok(())
}

fn nodes(arguments: NodesArguments) -> anyhow::Result<()> {
    let (fabric, processes) = reached(arguments.fabric, arguments.processes)?;
    let options = nodes::Options {
        universities: arguments.universities.get(),
        folder: arguments.data,
        nodes: arguments.nodes.get(),
        shards: Shards::new(arguments.shards.get())?,
        fabric,
        processes,
        heavy_priority: None,
        only: arguments.only,
        runs: arguments.runs.get(),
    };
    let json = arguments.json.as_deref();
    match arguments.switches {
        true => print_report(&nodes::switches::measure(&options, note)?, json),
        false => print_report(&nodes::measure(&options, note)?, json),
    }
}

fn load(arguments: LoadBenchArguments) -> anyhow::Result<()> {
    let options = together::Options {
        universities: arguments.universities.get(),
        folder: arguments.data,
        nodes: arguments.nodes.get(),
        shards: Shards::new(arguments.shards.get())?,
        rounds: arguments.rounds.get(),
        child: ChildProgram::this(&["bench-child"])?,
    };
    let report = together::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())
}

fn bulk(arguments: &BulkBenchArguments) -> anyhow::Result<()> {
    let generated = |name: &GraphName| match name {
        GraphName::Lubm => Generated::Lubm(Lubm::new(arguments.universities.get(), 0)),
        GraphName::Literals => Generated::Literals(Literals::new(arguments.things.get(), 0)),
    };
    let graphs = match arguments.graph.as_slice() {
        [] => GraphName::value_variants(),
        named => named,
    };
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let options = bulk::Options {
        graphs: graphs.iter().map(generated).collect(),
        ways: match arguments.only {
            None => vec![bulk::Way::InMemory, bulk::Way::Within],
            Some(WayName::Memory) => vec![bulk::Way::InMemory],
            Some(WayName::Within) => vec![bulk::Way::Within],
        },
        memory_bytes: arguments.memory,
        threads: arguments.threads.map_or(cores, NonZeroUsize::get),
        turns: arguments.turns.get(),
        kills: arguments.kills,
        folder: arguments.data.clone(),
        child: ChildProgram::this(&["bench-child"])?,
    };
    let report = bulk::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())?;
    let mut verdicts = report.verdicts().into_iter();
    match verdicts.find(|verdict| verdict.outcome == bulk::Outcome::Missed) {
        None => Ok(()),
        Some(verdict) => bail!("missed: {}: {}", verdict.target, verdict.found),
    }
}

#[cfg(target_os = "linux")]
fn cluster(arguments: ClusterBenchArguments) -> anyhow::Result<()> {
    let options = jindou_bench::cluster::Options {
        universities: arguments.universities.get(),
        folder: arguments.data,
        nodes: arguments.nodes,
        rounds: arguments.rounds.get(),
        clients: arguments.clients.get(),
        length: arguments.seconds,
        runs: arguments.runs.get(),
        copy_rate: arguments.copy_rate,
        program: std::env::current_exe().context("cannot find this program")?,
    };
    let report = jindou_bench::cluster::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())
}

#[cfg(not(target_os = "linux"))]
fn cluster(_: ClusterBenchArguments) -> anyhow::Result<()> {
    bail!("nodes of a cluster run on Linux only, for now")
}

/// How nodes reach each other, and how they are started where they are processes.
fn reached(
    fabric: Option<FabricName>,
    are_processes: bool,
) -> anyhow::Result<(NodeFabric, Option<ChildProgram>)> {
    let fabric = match (fabric, are_processes) {
        (Some(FabricName::Local), true) => {
            bail!("processes do not copy each other's memory: use --fabric shared-memory or tcp")
        }
        (Some(FabricName::Local) | None, false) => NodeFabric::Local,
        (Some(FabricName::SharedMemory), _) | (None, true) => NodeFabric::SharedMemory,
        (Some(FabricName::Tcp), _) => NodeFabric::Tcp,
    };
    let processes = are_processes.then(|| ChildProgram::this(&["bench-child"]));
    Ok((fabric, processes.transpose()?))
}

fn emulate(arguments: EmulateArguments) -> anyhow::Result<()> {
    let (fabric, processes) = reached(arguments.fabric, arguments.processes)?;
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let options = emulate::Options {
        universities: arguments.universities.get(),
        folder: arguments.data,
        nodes: arguments.nodes.into_iter().map(NonZeroU32::get).collect(),
        shards: Shards::new(arguments.shards.get())?,
        fabric,
        processes,
        clients: arguments.clients.map_or(cores, NonZeroU32::get),
        length: arguments.seconds,
    };
    let report = emulate::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())?;
    if let Some(folder) = &arguments.plots {
        for path in report.write_plots(folder)? {
            note(&path.display().to_string());
        }
    }
    Ok(())
}

fn scale(arguments: ScaleArguments) -> anyhow::Result<()> {
    let link = Link {
        gigabits: arguments.gigabits,
        latency_us: arguments.latency,
        wake_us: arguments.wake,
    };
    let is_one = |figure: f64| figure.is_finite() && figure > 0.0;
    if ![link.gigabits, link.latency_us, link.wake_us]
        .into_iter()
        .all(is_one)
    {
        bail!("--gigabits, --latency and --wake are more than zero");
    }
    if !arguments.nodes.iter().any(|nodes| nodes.get() > 1) {
        bail!("--nodes has a number above 1: what goes between nodes is counted there");
    }
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let doubled = std::iter::successors(Some(1), |threads| Some(threads * 2));
    let mut threads: Vec<usize> = doubled.take_while(|threads| *threads < cores).collect();
    threads.push(cores);
    if !arguments.threads.is_empty() {
        threads = arguments
            .threads
            .into_iter()
            .map(NonZeroUsize::get)
            .collect();
    }
    // The measurement by data is of one.
    threads.push(1);
    threads.sort_unstable();
    threads.dedup();
    let numbers = |all: Vec<NonZeroU32>| all.into_iter().map(NonZeroU32::get).collect();
    let options = scale::Options {
        universities: numbers(arguments.universities),
        folder: arguments.data,
        threads,
        nodes: numbers(arguments.nodes),
        shards: Shards::new(arguments.shards.get())?,
        runs: arguments.runs.get(),
        link,
        machines: numbers(arguments.machines),
    };
    let report = scale::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())
}

fn served(arguments: &ServedArguments) -> anyhow::Result<()> {
    let options = served::Options {
        universities: arguments.universities.get(),
        connections: vec![1, arguments.connections.get()],
        length: arguments.seconds,
    };
    let report = served::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())
}

fn updates(arguments: UpdateBenchArguments) -> anyhow::Result<()> {
    let mut options = updates::Options::new(arguments.universities.get());
    options.triples = arguments.triples;
    options.runs = arguments.runs.get();
    options.only = arguments.only;
    options.clients = arguments.clients.get();
    options.duration = arguments.duration;
    options.folder = arguments.data;
    let report = updates::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())
}

fn graphs(arguments: GraphBenchArguments) -> anyhow::Result<()> {
    let mut options = graphs::Options::new(arguments.universities.get());
    if let Some(threads) = arguments.threads {
        options.load_threads = threads.get();
    }
    options.runs = arguments.runs.get();
    options.limit = arguments.limit;
    options.layouts = arguments.layout;
    options.only = arguments.only;
    options.folder = arguments.data;
    let report = graphs::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())?;
    if !report.is_right() {
        bail!("some answers are wrong or missing: see the lines that begin with WRONG");
    }
    Ok(())
}

fn counts(arguments: CountBenchArguments) -> anyhow::Result<()> {
    let options = counts::Options {
        universities: arguments.universities.get(),
        runs: arguments.runs.get(),
        changes: arguments.changes.get(),
        limit: arguments.limit,
        threads: arguments.threads.map(NonZeroUsize::get),
        folder: arguments.data,
        sets: arguments.sets,
    };
    let report = counts::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())?;
    if !report.is_right() {
        bail!("some answers are wrong or missing: see the lines that begin with WRONG");
    }
    Ok(())
}

fn merges(arguments: MergeBenchArguments) -> anyhow::Result<()> {
    let options = merges::Options {
        only: arguments.only,
        triples: arguments.triples.get(),
        stream_universities: arguments.stream_universities.get(),
        duration: arguments.seconds,
        clients: arguments.clients.get(),
        rate: arguments.rate.get(),
        http: arguments.http,
        literals: arguments.literals.get(),
        runs: arguments.runs.get(),
        transactions: arguments.transactions.get(),
        live: arguments.live.get(),
        on_lubm: arguments.on_lubm,
        folder: arguments.data,
        ..merges::Options::new(arguments.universities.get())
    };
    let report = merges::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())
}

/// Says what is being done to whoever watches.
pub(super) fn note(step: &str) {
    if std::io::stderr().is_terminal() {
        note!("{step} ...");
    }
}

pub(super) fn print_report(
    report: &(impl Display + Serialize),
    json_file: Option<&Path>,
) -> anyhow::Result<()> {
    let json = || serde_json::to_string_pretty(report).context("the report is no JSON");
    match json_file {
        Some(path) if path == Path::new("-") => output::print(&format!("{}\n", json()?)),
        Some(path) => {
            std::fs::write(path, json()? + "\n")
                .with_context(|| format!("{}: cannot write", path.display()))?;
            output::print(&report.to_string())
        }
        None => output::print(&report.to_string()),
    }
}

/// # Errors
/// What keeps the child from measuring.
pub(crate) fn child(arguments: &BenchChildArguments) -> anyhow::Result<()> {
    let arguments = &arguments.arguments;
    #[cfg(target_os = "linux")]
    if nodes::child(arguments)? {
        return Ok(());
    }
    let is_done =
        hostile::child(arguments)? || together::child(arguments)? || child::main(arguments)?;
    if !is_done {
        bail!("bench-child is started by `jindou bench` only; use that");
    }
    Ok(())
}
