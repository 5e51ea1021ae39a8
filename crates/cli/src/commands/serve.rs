//! `jindou serve`: queries over HTTP until Ctrl-C.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use jindou_engine::{Anew, Config, Database, Fsync};
use jindou_server::{
    Cors, HeavyPriority, Log, MemoryLimits, RereadFiles, Server, ServerConfig, ServerError,
    room_for_connections,
};
use tokio::sync::watch;

use crate::allow::{broker_policy, check_folders, load_policies, service_policy};
use crate::args::{CorsOrigin, FsyncArgument, ServeArguments};
use crate::control;
use crate::interrupt::{EndOfInput, Signals, end_at_once};
use crate::limit_args::{HeavyPriorityArgument, LimitArguments};
use crate::node::{End, Node, ToEnd, start_anew};
use crate::open;

/// # Errors
/// Files, a store or an address that cannot be used.
pub(crate) fn run(mut arguments: ServeArguments) -> anyhow::Result<()> {
    if let Some(file) = &arguments.config {
        note!(
            "options that are not given otherwise are those of {}",
            file.display()
        );
    }
    if let Some(port) = arguments.port {
        arguments.bind.set_port(port);
    }
    check_folders(&arguments.allow_load)?;
    let mut config = config(arguments.bind, &arguments.limits);
    arguments.access.apply(&mut config)?;
    arguments.logs.apply(&mut config)?;
    config.cors = cors(&arguments.cors_origin);
    config.public_url.clone_from(&arguments.public_url);
    config.read_only = arguments.read_only;
    config.brokers = broker_policy(&arguments.allow_broker);
    if let Some(services) = service_policy(&arguments.allow_service) {
        config.services = services;
    }
    let mut engine = memory(&arguments.limits).engine_config(config.heavy_priority);
    let half = engine.threads.div_ceil(2);
    engine.continuous_threads = arguments.limits.continuous_threads.unwrap_or(half);
    engine.continuous_timeout = Some(config.default_timeout);
    arguments.spill.apply(&mut engine)?;
    arguments.spill.warn_of_default(&engine);
    engine.union_default_graph = arguments.union_default_graph;
    engine.contexts = open::contexts(&arguments.read)?;
    (engine.load, engine.load_addresses) = load_policies(&arguments.allow_load);
    if arguments.fsync == FsyncArgument::Never {
        engine.durability.fsync = Fsync::Never;
        note!("--fsync never: a crash of the machine may lose acknowledged updates");
    }
    check_address(arguments.bind)?;
    // Only now: a node adds itself to the list of its cluster, where what else was asked for is to be right.
    let location = arguments.location.as_deref();
    let node = Node::of(&arguments.cluster, location, !arguments.files.is_empty())?;
    engine.is_replicated = node.is_some() && !arguments.read_only;
    engine.copy_rate = arguments.cluster.copy_rate;
    if let Some((node, location)) = node.as_ref().zip(location)
        && !arguments.read_only
    {
        node.copy_if_needed(location, arguments.cluster.copy_anew)?;
    }
    let database = match &arguments.location {
        Some(location) => {
            let may_be_new = node.as_ref().is_none_or(Node::makes_store);
            at_location((location, may_be_new), &arguments, engine)?
        }
        None if arguments.files.is_empty() => {
            note!("no files and no --location: the database is empty");
            Database::with_config(engine)
        }
        None => open::in_memory(&arguments.files, &arguments.read, Duration::ZERO, engine)?,
    };
    let on_leaving = node.as_ref().and_then(Node::on_leaving);
    let to_end = match node {
        Some(node) => node.join(&database)?,
        None => ToEnd::never(),
    };
    let end = match arguments.cluster.ends_with_input {
        true => EndOfInput::watch()?,
        false => EndOfInput::never(),
    };
    let asks = (end, to_end);
    match serve_until(asks, database, config, arguments.location.as_deref())? {
        Ended::ForGood => Ok(()),
        Ended::AsLeft => on_leaving.map_or(Ok(()), |leave| leave()),
        Ended::ToBeginAnew(anew) => Err(start_anew(anew)),
    }
}

/// Why a server has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    ForGood,
    /// It is no node of its cluster any more.
    AsLeft,
    /// Its store is to be opened anew.
    ToBeginAnew(Anew),
}

/// Which pages of other origins may use the server.
fn cors(origins: &[CorsOrigin]) -> Cors {
    let mut listed = Vec::new();
    for origin in origins {
        match origin {
            CorsOrigin::Any => return Cors::Any,
            CorsOrigin::None => {}
            CorsOrigin::One(origin) => listed.push(origin.clone()),
        }
    }
    match listed.is_empty() {
        // Nothing was said.
        true if origins.is_empty() => Cors::Local,
        true => Cors::None,
        false => Cors::Origins(listed),
    }
}

/// What is served of a folder; a store that has nothing where there is none, if that `may_be_new`: it would be no copy of
/// any other.
fn at_location(
    (location, may_be_new): (&Path, bool),
    arguments: &ServeArguments,
    engine: Config,
) -> anyhow::Result<Database> {
    match (arguments.read_only, arguments.files.is_empty()) {
        (true, true) => {
            let database = match arguments.cluster.node {
                Some(_) => open::to_join(location, engine)?,
                None => open::to_read(location, engine)?,
            };
            // The graph is served whatever became of them.
            if let Err(error) = database.show_resting_streams() {
                note!("streams and continuous queries are not shown: {error}");
            }
            return Ok(database);
        }
        (true, false) => bail!(
            "files are loaded into a store, and --read-only changes none; load them with `jindou \
             load --location DIR FILE...` first"
        ),
        (false, true) => {
            let opened = match may_be_new {
                true => open::stored_or_new(location, engine),
                false => open::stored(location, engine),
            };
            return opened.map_err(|error| match open::may_not_be_written(&error) {
                true => anyhow!("{error}; --read-only serves a store without writing it"),
                false => error,
            });
        }
        (false, false) => {}
    }
    let sources = open::sources(&arguments.files, &arguments.read, None)?;
    let options = open::load_options(&arguments.read)?;
    open::create(location, sources, &options, engine)
}

/// The settings of a server at this address.
pub(crate) fn config(address: SocketAddr, limits: &LimitArguments) -> ServerConfig {
    let defaults = ServerConfig::default();
    let mut config = ServerConfig {
        address,
        max_rows: limits.max_rows,
        heavy_queries: limits
            .heavy_queries
            .map_or(defaults.heavy_queries, NonZeroUsize::get),
        queued_queries: limits.queued_queries.unwrap_or(defaults.queued_queries),
        heavy_priority: match limits.heavy_priority {
            HeavyPriorityArgument::Idle => HeavyPriority::Idle,
            HeavyPriorityArgument::Low => HeavyPriority::Low,
            HeavyPriorityArgument::Same => HeavyPriority::Same,
        },
        result_readers: limits.result_readers.unwrap_or(defaults.result_readers),
        queue_wait: limits.queue_wait.unwrap_or(defaults.queue_wait),
        write_timeout: limits.client_timeout.unwrap_or(defaults.write_timeout),
        ..defaults
    };
    if let Some(timeout) = limits.query_timeout {
        config.default_timeout = timeout;
        config.max_timeout = timeout;
    }
    if let Some(bytes) = limits.max_body {
        config.max_body_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    }
    if let Some(connections) = limits.max_connections {
        config.max_connections = connections.get();
    }
    config
}

/// What queries may hold.
pub(crate) fn memory(limits: &LimitArguments) -> MemoryLimits {
    MemoryLimits::new(limits.memory, limits.query_memory)
}

/// Fails if the address cannot be listened at: a port that is taken should not cost a load first.
///
/// # Errors
/// An address that cannot be used.
pub(crate) fn check_address(address: SocketAddr) -> anyhow::Result<()> {
    match std::net::TcpListener::bind(address) {
        Ok(_closed_at_once) => Ok(()),
        Err(source) => Err(cannot_listen(ServerError::Bind { address, source })),
    }
}

/// Serves until Ctrl-C or a request to terminate, then lets queries under way end; a second Ctrl-C
/// ends at once. Whoever owns the `store` that the database is of can ask for backups.
///
/// # Errors
/// An address that cannot be used.
pub(crate) fn serve(
    database: Database,
    config: ServerConfig,
    store: Option<&Path>,
) -> anyhow::Result<()> {
    let asks = (EndOfInput::never(), ToEnd::never());
    serve_until(asks, database, config, store).map(drop)
}

/// As [`serve`], or until the end of standard input.
fn serve_until(
    asks: (EndOfInput, ToEnd),
    database: Database,
    mut config: ServerConfig,
    store: Option<&Path>,
) -> anyhow::Result<Ended> {
    config.max_connections = config.max_connections.min(room_for_connections());
    let runtime = jindou_server::runtime().context("cannot start the server's threads")?;
    runtime.block_on(async {
        // Watched before anything is there that an end must remove.
        let signals = Signals::new().context("cannot watch for Ctrl-C")?;
        let wait = config.max_timeout;
        // Nothing is written into the folder of a store that is only read.
        let written = store.filter(|_| !config.read_only);
        let updates = match config.read_only {
            true => "no updates",
            false => "updates at /update",
        };
        let control = written.and_then(|store| control::listen(store, &database, wait));
        let slow = config.slow_queries.as_ref().map(|slow| &slow.log);
        let logs = config.access_log.iter().chain(slow);
        let on_hangup = OnHangup {
            files: RereadFiles::of(&config),
            logs: logs.cloned().collect(),
        };
        if !on_hangup.is_empty() {
            let rereading = reread_on_hangup(on_hangup).context("cannot watch for SIGHUP")?;
            tokio::spawn(rereading);
        }
        let scheme = match config.tls {
            Some(_) => "https",
            None => "http",
        };
        let server = Server::new(database, config);
        let listener = server.bind().await.map_err(cannot_listen)?;
        let address = listener.local_addr().context("cannot tell the address")?;
        note!("serving at {scheme}://{address}/ (queries at /query, {updates}); Ctrl-C ends");
        let (running, stopping) = watch::channel(());
        let asked = async {
            if let Some(control) = control {
                control.serve(stopping).await;
            }
        };
        let ended = OnceLock::new();
        let stop = async {
            // It stops once.
            let _is_first = ended.set(stop(signals, asks, running).await).is_ok();
        };
        tokio::join!(server.serve(listener, stop), asked);
        Ok(ended.into_inner().unwrap_or(Ended::ForGood))
    })
}

/// What is read or opened again on SIGHUP.
#[derive(Clone)]
struct OnHangup {
    files: RereadFiles,
    logs: Vec<Log>,
}

impl OnHangup {
    fn is_empty(&self) -> bool {
        self.files.is_empty() && self.logs.is_empty()
    }

    /// Files that cannot be used change nothing.
    fn run(&self) {
        self.logs.iter().for_each(Log::reopen);
        for read in self.files.reread() {
            match read.is_failure() {
                false => note!("{read}"),
                true => note!("warning: {read}"),
            }
        }
    }
}

/// Reads files again whenever the process is asked to by SIGHUP.
#[cfg(unix)]
fn reread_on_hangup(files: OnHangup) -> io::Result<impl Future<Output = ()> + Send> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangups = signal(SignalKind::hangup())?;
    Ok(async move {
        while hangups.recv().await.is_some() {
            let files = files.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || files.run()).await {
                note!("warning: {error}; files could not be read again");
            }
        }
    })
}

/// There is no such signal here; files are read again when they change.
#[cfg(not(unix))]
fn reread_on_hangup(_: OnHangup) -> io::Result<impl Future<Output = ()> + Send> {
    Ok(std::future::ready(()))
}

/// Says why it ends: at the first signal, the end of input or when the store is to be opened anew, when `running` goes too. A
/// second signal ends the process.
async fn stop(
    mut signals: Signals,
    (end, to_end): (EndOfInput, ToEnd),
    running: watch::Sender<()>,
) -> Ended {
    let ended = tokio::select! {
        () = signals.next() => Ended::ForGood,
        () = end.wait() => Ended::ForGood,
        end = to_end.wait() => match end {
            End::Anew(anew) => Ended::ToBeginAnew(anew),
            End::Left => Ended::AsLeft,
        },
    };
    drop(running);
    note!("ending once the queries and backups under way have; Ctrl-C again ends at once");
    tokio::spawn(async move {
        signals.next().await;
        end_at_once();
    });
    ended
}

/// The error with what to do about it.
pub(super) fn cannot_listen(error: ServerError) -> anyhow::Error {
    match error {
        ServerError::Bind { address, source } => {
            let advice = match source.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "another program has the port; end it, or choose another with --bind ADDR:PORT"
                }
                std::io::ErrorKind::PermissionDenied => {
                    "choose a port from 1024 on with --bind ADDR:PORT"
                }
                _ => "choose another address with --bind ADDR:PORT",
            };
            anyhow!("cannot listen at {address}: {source}; {advice}")
        }
        error => error.into(),
    }
}
