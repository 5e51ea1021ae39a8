//! How is the server run, and its memory watched, in a process of its own?

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use jindou_engine::Database;
use jindou_engine::ingest::{LoadOptions, Progress, Source};
use jindou_server::{MemoryLimits, Server as HttpServer, ServerConfig, room_for_connections};

use super::Options;
use crate::BenchError;
use crate::child::ChildProgram;
use crate::http::Connection;
use crate::machine::Memory;

/// The first of a child's arguments.
const TASK: &str = "hostile-server";

/// A server in a process that ends with this.
pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which its requests have told by then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    pub(super) fn start(options: &Options, file: &Path) -> Result<Self, BenchError> {
        let most_body_bytes = ServerConfig::default().max_body_bytes as u64;
        Self::start_with(&options.child, file, options.memory_bytes, most_body_bytes)
    }

    /// Starts one that loads a file, whose queries may hold so many bytes, and that takes bodies up to so
    /// many.
    pub(super) fn start_with(
        child: &ChildProgram,
        file: &Path,
        memory_bytes: u64,
        most_body_bytes: u64,
    ) -> Result<Self, BenchError> {
        let mut command = Command::new(&child.program);
        command
            .args(&child.arguments)
            .arg(TASK)
            .arg(file)
            .arg(memory_bytes.to_string())
            .arg(most_body_bytes.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let failed = |reason: String| BenchError::Child {
            command: TASK.to_owned(),
            reason,
        };
        let mut child = command.spawn().map_err(|e| failed(e.to_string()))?;
        let mut line = String::new();
        let out = child.stdout.take().expect("its output is a pipe");
        let read = BufReader::new(out).read_line(&mut line);
        let address = read.ok().and_then(|_| line.trim().parse().ok());
        let mut server = Self {
            child,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
        };
        server.address = address.ok_or_else(|| failed("it gave no address".to_owned()))?;
        Ok(server)
    }

    fn memory(&self) -> Result<Memory, BenchError> {
        Memory::of_process(self.child.id())
    }

    pub(super) fn resident(&self) -> Result<u64, BenchError> {
        Ok(self.memory()?.resident_bytes)
    }

    /// Begins to watch for a new peak, and tells what is resident now.
    pub(super) fn begin_peak(&self) -> Result<u64, BenchError> {
        Memory::forget_peak_of(self.child.id())?;
        self.resident()
    }

    pub(super) fn peak(&self) -> Result<u64, BenchError> {
        Ok(self.memory()?.peak_bytes)
    }

    /// The server's own counters.
    pub(super) fn metrics(&self) -> Result<BTreeMap<String, f64>, BenchError> {
        let text = get(self.address, "/metrics")?.1;
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Ok(lines
            .filter_map(|line| {
                let (name, value) = line.rsplit_once(' ')?;
                Some((name.to_owned(), value.parse().ok()?))
            })
            .collect())
    }
}

/// One GET on a connection of its own: status and body.
pub(super) fn get(address: SocketAddr, path: &str) -> Result<(u16, String), BenchError> {
    request(&mut Connection::open(address)?, address, "GET", path)
}

/// One request without a body: status and body.
pub(super) fn request(
    connection: &mut Connection,
    address: SocketAddr,
    method: &str,
    path: &str,
) -> Result<(u16, String), BenchError> {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    connection.send(head.as_bytes())?;
    let mut body = Vec::new();
    let answer = connection.receive(|piece| body.extend_from_slice(piece))?;
    Ok((answer.status, String::from_utf8_lossy(&body).into_owned()))
}

/// The server's side: loads and serves until its standard input ends. `Ok(false)` if the
/// arguments ask for something else.
///
/// # Errors
/// What keeps it from serving.
pub fn child(arguments: &[OsString]) -> Result<bool, BenchError> {
    let [task, file, memory, body] = arguments else {
        return Ok(false);
    };
    let number = |text: &OsString| text.to_str().and_then(|text| text.parse::<u64>().ok());
    let (true, Some(memory), Some(body)) = (task == TASK, number(memory), number(body)) else {
        return Ok(false);
    };
    let mut config = ServerConfig {
        address: (Ipv4Addr::LOCALHOST, 0).into(),
        ..ServerConfig::default()
    };
    let limits = MemoryLimits::new(Some(memory), None);
    config.max_body_bytes = usize::try_from(body).unwrap_or(usize::MAX);
    let mut engine = limits.engine_config(config.heavy_priority);
    // As the command has them.
    engine.continuous_threads = config.heavy_queries.div_ceil(2);
    engine.continuous_timeout = Some(config.default_timeout);
    let database = Database::with_config(engine);
    let sources = vec![Source::path(PathBuf::from(file))];
    database.load(sources, &LoadOptions::default(), &Progress::default())?;
    config.max_connections = config.max_connections.min(room_for_connections());
    let event_loop = || BenchError::io("the server's event loop");
    let runtime = jindou_server::runtime().map_err(event_loop())?;
    runtime.block_on(async {
        let server = HttpServer::new(database, config);
        let listener = server.bind().await?;
        let address = listener.local_addr().map_err(event_loop())?;
        println!("{address}");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        std::thread::spawn(move || {
            // Whatever comes, the measuring process is gone once it ends.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            drop(stop);
        });
        server.serve(listener, async { drop(stopped.await) }).await;
        Ok(true)
    })
}
