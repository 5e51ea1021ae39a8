//! How are connections accepted, served and ended?

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use jindou_engine::Database;
use jindou_fabric::pace::interrupt_long_work;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, MissedTickBehavior};

use crate::access_log::Entry;
use crate::apart::{self, Apart};
use crate::body::Sending;
use crate::config::ServerConfig;
use crate::connections::{Activity, Connections, Leave, Open, Peer};
use crate::error::ServerError;
use crate::execute::Executor;
use crate::memory::spare_bytes;
use crate::presence::Attended;
use crate::queries::Client;
use crate::reread::RereadFiles;
use crate::service::Service;
use crate::stall::StallGuard;
use crate::stopping::{ANSWER_GRACE, Phase};
use crate::strain;
use crate::threads::HeavyPriority;
use crate::ticker::Ticker;
use crate::tls::Tls;
use crate::wire::Wire;

/// Bytes of an answer that the system takes before it has sent those before them.
const UNSENT_BYTES: u32 = 128 << 10;
/// Pause after a failed accept, which usually means that there are no more file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long cancelled queries may take to end when the server stops, and how often it looks.
const LAST_GRACE: Duration = Duration::from_secs(10);
const LAST_LOOK: Duration = Duration::from_millis(1);

/// How often the files of credentials and certificates are looked at.
const REREAD_INTERVAL: Duration = Duration::from_secs(1);

/// How long a connection that is to give way may take to send what is left of its last answer.
pub(crate) const LEAVE_GRACE: Duration = Duration::from_secs(1);

/// The smallest buffer that the HTTP library takes.
pub(crate) const MIN_HEADER_BYTES: usize = 8192;

/// Serves one database over HTTP.
///
/// ```no_run
/// # async fn example() -> Result<(), jindou_server::ServerError> {
/// use jindou_engine::Database;
/// use jindou_server::{Server, ServerConfig};
///
/// let server = Server::new(Database::new(), ServerConfig::default());
/// let listener = server.bind().await?;
/// server.serve(listener, std::future::pending()).await;
/// # Ok(())
/// # }
/// ```
pub struct Server {
    service: Arc<Service>,
    config: ServerConfig,
}

/// Connections that may wait to be accepted, however few may be open, and however many. The system
/// may allow less.
const LEAST_BACKLOG: usize = 128;
const MOST_BACKLOG: usize = 65_535;

/// Listens at an address for as many connections as may be open.
///
/// # Errors
/// [`ServerError::Bind`].
pub(crate) fn listen_for(
    address: SocketAddr,
    max_connections: usize,
) -> Result<TcpListener, ServerError> {
    // A client that comes when more wait to be accepted tries again after a second.
    let backlog = max_connections.clamp(LEAST_BACKLOG, MOST_BACKLOG);
    listen(address, backlog as u32).map_err(|source| ServerError::Bind { address, source })
}

fn listen(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Elsewhere it would let two programs have the port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    // All addresses are those of both families, whatever the system's default is.
    #[cfg(unix)]
    if address.is_ipv6() && address.ip().is_unspecified() {
        socket2::SockRef::from(&socket).set_only_v6(false)?;
    }
    socket.bind(address)?;
    socket.listen(backlog)
}

impl Server {
    /// A server of this database; it listens nowhere yet.
    #[must_use]
    pub fn new(database: Database, config: ServerConfig) -> Self {
        let executor = Arc::new(Executor::new(database, &config));
        Self {
            service: Arc::new(Service::new(executor, config.clone())),
            config,
        }
    }

    /// Listens at the configured address.
    ///
    /// # Errors
    /// [`ServerError::Bind`].
    pub async fn bind(&self) -> Result<TcpListener, ServerError> {
        listen_for(self.config.address, self.config.max_connections)
    }

    /// Serves connections until `shutdown` is done. Then no more are accepted, requests under way
    /// get [`ServerConfig::shutdown_grace`] to end, and what is left is refused with 503; bodies of
    /// answers that have begun are cut short, as by a query's limit.
    ///
    /// Runs on a tokio runtime with time and I/O enabled. Several worker threads are best: a
    /// query may keep one busy for [`ServerConfig::inline_budget`].
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()> + Send) {
        self.serve_until(listener, pin!(shutdown)).await;
    }

    /// Not generic, so that no crate that calls it compiles the server once more.
    fn serve_until<'a>(
        self,
        listener: TcpListener,
        shutdown: Pin<&'a mut (dyn Future<Output = ()> + Send + 'a)>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(self.run(listener, shutdown))
    }

    async fn run(
        self,
        listener: TcpListener,
        mut shutdown: Pin<&mut (dyn Future<Output = ()> + Send + '_)>,
    ) {
        let _memory = self.watch_memory();
        let apart = self.start_apart();
        let connectors = Arc::clone(&self.service.connectors);
        let database = self.service.executor.database.clone();
        let ticker = Ticker::start(database, move || connectors.update());
        if let Some(thread) = ticker.thread() {
            self.service.set_ticker(thread);
        }
        if !self.config.read_only {
            self.service.connectors.start();
        }
        let _rereading = self.start_rereading();
        let connections = Arc::new(Connections::new(self.config.max_connections));
        let (stop, stopping) = watch::channel(());
        let mut tasks = JoinSet::new();
        loop {
            let (stream, address, leave) = tokio::select! {
                () = &mut shutdown => break,
                accepted = accept(&listener, &connections) => accepted,
            };
            let open = connections.open(leave);
            let peer = Arc::clone(&open.0);
            let connection = Box::pin(self.connection(stream, address, open, stopping.clone()));
            match &apart {
                Some(apart) => tasks.spawn(apart::run(connection, peer, apart.handle())),
                None => tasks.spawn(connection),
            };
            while tasks.try_join_next().is_some() {}
        }
        drop(listener);
        drop(stop);
        self.service.readers.stop();
        let connectors = Arc::clone(&self.service.connectors);
        let disconnected = tokio::task::spawn_blocking(move || connectors.stop());
        self.end_requests(&mut tasks).await;
        if tokio::time::timeout(LAST_GRACE, disconnected)
            .await
            .is_err()
        {
            tracing::warn!("brokers did not answer in time");
        }
        // All queries are cancelled or have lost their clients, so what still computes ends at its next batch
        // of rows. Its threads use this runtime until then.
        let idle = async {
            while !self.service.is_idle() {
                tokio::time::sleep(LAST_LOOK).await;
            }
        };
        if tokio::time::timeout(LAST_GRACE, idle).await.is_err() {
            tracing::error!("queries did not end though they were cancelled");
        }
    }

    /// Waits until all connections have ended, and sees to it that they do.
    async fn end_requests(&self, connections: &mut JoinSet<()>) {
        if has_drained(connections, self.config.shutdown_grace).await {
            return;
        }
        tracing::warn!(
            connections = connections.len(),
            "requests did not end in time; they are refused"
        );
        self.service.stopping.go_on_to(Phase::Refuses);
        self.service.executor.queries.stop();
        if has_drained(connections, ANSWER_GRACE).await {
            return;
        }
        self.service.stopping.go_on_to(Phase::GivesUp);
        if !has_drained(connections, LEAVE_GRACE).await {
            tracing::warn!(
                connections = connections.len(),
                "answers were not taken in time; cut"
            );
            connections.shutdown().await;
        }
    }

    fn start_rereading(&self) -> Option<AbortOnDrop> {
        let files = RereadFiles::of(&self.config);
        (!files.is_empty()).then(|| AbortOnDrop::new(tokio::spawn(reread(files))))
    }

    /// Keeps long work out of the way of light requests, if it is to be: where long bodies come in.
    fn start_apart(&self) -> Option<Apart> {
        let priority = self.config.heavy_priority;
        if priority == HeavyPriority::Same {
            return None;
        }
        if let Err(error) = interrupt_long_work() {
            tracing::debug!(%error, "light queries may wait some milliseconds for a core");
        }
        let started = Apart::start(priority);
        let failed = |error: &io::Error| tracing::error!(%error, "no thread for long bodies");
        started.inspect_err(failed).ok()
    }

    fn watch_memory(&self) -> Option<strain::Watch> {
        let database = &self.service.executor.database;
        let pool = database.config().memory_pool.clone()?;
        let spare = spare_bytes(pool.limit_bytes());
        strain::Watch::start(database.clone(), pool, spare)
    }

    fn connection(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        open: Open,
        mut stopping: watch::Receiver<()>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let service = Arc::clone(&self.service);
        let connected = service.connected();
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.config.idle_timeout)
            // The end of what a client sends is not its own end: see `presence`.
            .half_close(true)
            .max_buf_size(self.config.max_header_bytes.max(MIN_HEADER_BYTES));
        let write_timeout = self.config.write_timeout;
        let secure = Secure {
            tls: self.config.tls.clone(),
            limit: self.config.idle_timeout,
        };
        async move {
            let _held = connected;
            let peer = Arc::clone(&open.0);
            let client = Arc::new(Client::new(address));
            // Answers are written whole, so there is nothing to wait for.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection was gone at once");
                return;
            }
            bound_unsent(&stream);
            let stream = StallGuard::new(stream, write_timeout);
            let Some(wire) = secure.wire(stream, &peer, &mut stopping).await else {
                return;
            };
            let io = TokioIo::new(Attended::new(wire, &peer, &client));
            let (answering, asking) = (Arc::clone(&client), Arc::clone(&peer));
            let answered_by = Arc::clone(&service);
            let connection = http.serve_connection(
                io,
                service_fn(move |request| {
                    let underway = asking.begin(request.version());
                    let (service, client) = (Arc::clone(&service), Arc::clone(&answering));
                    let peer = Arc::clone(&asking);
                    let log = service.config.access_log.as_ref();
                    let mut entry = log.map(|log| Entry::new(log, &request, client.address().ip()));
                    async move {
                        let response = service.respond(request, &client, &peer).await;
                        underway.answers(response.body().waits_in_silence());
                        if let Some(entry) = &mut entry {
                            entry.answered(&response, &client);
                        }
                        Ok::<_, Infallible>(response.map(|body| Sending {
                            body,
                            entry,
                            _underway: underway,
                        }))
                    }
                }),
            );
            let connection = connection.with_upgrades();
            tokio::pin!(connection);
            let mut serving = true;
            // Set once the connection is to give way to another.
            let mut leave_at = None;
            let ended = loop {
                tokio::select! {
                    biased;
                    ended = connection.as_mut() => break ended,
                    () = client.until_cut() => {
                        tracing::debug!(%address, "cut while results were sent");
                        return;
                    }
                    () = peer.until_told_to_leave(), if leave_at.is_none() => {
                        leave_at = Some(Instant::now() + LEAVE_GRACE);
                        connection.as_mut().graceful_shutdown();
                    }
                    // Half a head, or an answer that the client does not take.
                    () = sleep_until(leave_at), if leave_at.is_some() => {
                        if peer.activity() == Activity::Idle {
                            tracing::debug!(%address, "cut to give way to another");
                            return;
                        }
                        leave_at = Some(Instant::now() + LEAVE_GRACE);
                    }
                    // Nothing is ever sent: this is the sender's end.
                    _ = stopping.changed(), if serving => {
                        serving = false;
                        connection.as_mut().graceful_shutdown();
                    }
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended early");
            }
            if let Some(session) = peer.take_session() {
                tokio::select! {
                    () = session(answered_by, peer) => {}
                    () = client.until_cut() => {
                        tracing::debug!(%address, "cut while a socket was open");
                    }
                }
            }
        }
    }
}

/// Whether all connections have ended within a time.
async fn has_drained(connections: &mut JoinSet<()>, limit: Duration) -> bool {
    let drained = async { while connections.join_next().await.is_some() {} };
    tokio::time::timeout(limit, drained).await.is_ok()
}

/// What comes before HTTP on a connection.
pub(crate) struct Secure {
    pub(crate) tls: Option<Tls>,
    /// How long a client may take for it.
    pub(crate) limit: Duration,
}

impl Secure {
    /// A connection that is ready for HTTP; `None` where its client is gone, speaks no TLS though it should,
    /// or takes too long, and where the connection is to end.
    pub(crate) async fn wire(
        self,
        stream: StallGuard,
        peer: &Peer,
        stopping: &mut watch::Receiver<()>,
    ) -> Option<Wire> {
        let Some(tls) = self.tls else {
            return Some(Wire::Plain(stream));
        };
        let accepted = tokio::select! {
            biased;
            accepted = tokio::time::timeout(self.limit, tls.accept(stream)) => accepted,
            () = peer.until_told_to_leave() => return None,
            _ = stopping.changed() => return None,
        };
        match accepted {
            Ok(Ok(stream)) => stream.map(Wire::tls),
            Ok(Err(error)) => {
                tracing::debug!(%error, "a client and this server agreed on no TLS");
                None
            }
            Err(_) => {
                tracing::debug!("a client took too long to begin TLS");
                None
            }
        }
    }
}

/// Reads files again whenever they change. Those that cannot be used change nothing.
pub(crate) async fn reread(files: RereadFiles) {
    let mut interval = tokio::time::interval(REREAD_INTERVAL);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let files = files.clone();
        let reread = tokio::task::spawn_blocking(move || {
            for read in files.reread_changed() {
                match read.is_failure() {
                    false => tracing::info!("{read}"),
                    true => tracing::warn!("{read}"),
                }
            }
        });
        if let Err(error) = reread.await {
            tracing::error!(%error, "files could not be read again");
        }
    }
}

/// A task that ends when this is dropped.
pub(crate) struct AbortOnDrop(JoinHandle<()>);

impl AbortOnDrop {
    pub(crate) fn new(task: JoinHandle<()>) -> Self {
        Self(task)
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Keeps the system from taking megabytes of an answer that its client does not read: they would
/// be memory that nobody counts, and copying them keeps others waiting. A client that reads fast
/// has as much as before under way to it.
pub(crate) fn bound_unsent(stream: &TcpStream) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Err(error) = socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES) {
        tracing::debug!(%error, "the system takes what it likes of an answer");
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = stream;
}

/// Done at a moment, or never.
pub(crate) async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The next connection, once there is room for it.
pub(crate) async fn accept(
    listener: &TcpListener,
    connections: &Connections,
) -> (TcpStream, SocketAddr, Leave) {
    let leave = connections.leave().await;
    loop {
        match listener.accept().await {
            Ok((stream, address)) => return (stream, address, leave),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}
