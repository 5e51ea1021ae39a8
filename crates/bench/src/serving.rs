//! How is a server run beside a measurement, on the loopback?

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread::JoinHandle;

use jindou_engine::Database;
use jindou_server::{Server, ServerConfig};
use tokio::sync::oneshot;

use crate::BenchError;

/// Where queries are sent.
pub(crate) const QUERY_PATH: &str = "/sparql";
/// Where updates are sent.
pub(crate) const UPDATE_PATH: &str = "/update";

/// A port that the system picks.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A server on a port of its own; it ends when this is dropped or [stopped](Self::stop).
pub(crate) struct Serving {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<(), BenchError>>>,
}

impl Serving {
    pub(crate) fn start(database: Database) -> Result<Self, BenchError> {
        Self::start_with(database, |_| {})
    }

    pub(crate) fn start_with(
        database: Database,
        configure: impl FnOnce(&mut ServerConfig) + Send + 'static,
    ) -> Result<Self, BenchError> {
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, address) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::spawn(move || {
            let runtime =
                jindou_server::runtime().map_err(BenchError::io("the server's event loop"))?;
            runtime.block_on(async {
                let mut config = ServerConfig {
                    address: ANY_PORT,
                    ..ServerConfig::default()
                };
                configure(&mut config);
                let server = Server::new(database, config);
                let listener = server.bind().await?;
                let address = listener
                    .local_addr()
                    .map_err(BenchError::io("the server's address"))?;
                // The measurement may be gone already; then the server ends at once, too.
                let _ = ready.send(address);
                server.serve(listener, async { drop(stopped.await) }).await;
                Ok(())
            })
        });
        let mut serving = Self {
            address: ANY_PORT,
            stop: Some(stop),
            thread: Some(thread),
        };
        match address.recv() {
            Ok(address) => serving.address = address,
            // It ended before it listened: its own error says why.
            Err(_) => serving.join()?,
        }
        Ok(serving)
    }

    /// Ends the server and waits for it.
    pub(crate) fn stop(mut self) -> Result<(), BenchError> {
        self.stop.take();
        self.join()
    }

    fn join(&mut self) -> Result<(), BenchError> {
        match self.thread.take() {
            Some(thread) => thread.join().map_err(|_| BenchError::Thread)?,
            None => Ok(()),
        }
    }
}
