//! Which server processes are measured, and how are they started, killed and ended?
//!
//! They are `jindou serve` of this same program, and end when their standard input does: with this process, however
//! that ends.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::BenchError;

/// How long anything may take that is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(2);
/// How long a server may take to end once it is asked to.
const END_WITHIN: Duration = Duration::from_secs(15);
/// Where the ports of servers begin: connections get others, from 32768 on, so a server that is started again finds its own
/// free.
const FIRST_PORT: u32 = 20_000;
/// How many ports there are from there on.
const PORTS: u32 = 12_000;

/// Asks again and again until there is an answer.
///
/// # Errors
/// Those of `ask`, and [`BenchError::Overdue`].
pub(super) fn wait_for<T>(
    what: &str,
    mut ask: impl FnMut() -> Result<Option<T>, BenchError>,
) -> Result<T, BenchError> {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if begun.elapsed() > PATIENCE {
            return Err(BenchError::Overdue {
                what: what.to_owned(),
                seconds: PATIENCE.as_secs(),
            });
        }
        std::thread::sleep(LOOK);
    }
}

/// Addresses on loopback that nobody has, each another one.
pub(super) fn free_addresses(count: usize) -> Result<Vec<SocketAddr>, BenchError> {
    let first = std::process::id() % PORTS;
    let all = (0..PORTS).map(|number| (FIRST_PORT + (first + number) % PORTS) as u16);
    let bound = all.filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok());
    // Held until all are there, so that they differ.
    let listeners: Vec<TcpListener> = bound.take(count).collect();
    if listeners.len() < count {
        return Err(BenchError::Setup {
            reason: format!("{count} ports of loopback are needed, and fewer are free"),
        });
    }
    let addresses = listeners.iter().map(TcpListener::local_addr);
    addresses
        .collect::<Result<_, _>>()
        .map_err(BenchError::io("a port"))
}

/// What makes a server a node of a cluster, whose list of nodes etcd keeps.
#[derive(Debug, Clone)]
pub(super) struct Membership {
    /// Where the other nodes reach it.
    pub(super) advertise: SocketAddr,
    /// Where etcd answers.
    pub(super) etcd: String,
    /// As `--copy-rate`.
    pub(super) copy_rate: u64,
}

/// A server, whether it runs or not. It is killed when this is dropped.
pub(super) struct Server {
    pub(super) name: String,
    /// Where it answers over HTTP.
    pub(super) address: SocketAddr,
    /// The folder of its store.
    pub(super) store: PathBuf,
    program: PathBuf,
    membership: Option<Membership>,
    process: Option<Child>,
}

impl Server {
    /// One that is not started yet; its store is in a folder of its name.
    pub(super) fn new(
        program: &Path,
        folder: &Path,
        (name, address): (&str, SocketAddr),
        membership: Option<Membership>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            address,
            store: folder.join(name),
            program: program.to_owned(),
            membership,
            process: None,
        }
    }

    /// Starts it. That it answers is not waited for.
    ///
    /// # Errors
    /// [`BenchError::Io`], [`BenchError::Child`].
    pub(super) fn start(&mut self) -> Result<(), BenchError> {
        assert!(
            self.process.is_none(),
            "it ended before it is started again"
        );
        let mut command = Command::new(&self.program);
        command
            .args(["serve", "--ends-with-input", "--location"])
            .arg(&self.store)
            .args(["--bind", &self.address.to_string()]);
        if let Some(node) = &self.membership {
            command.args(["--node", &self.name, "--cluster", &node.etcd]);
            command.args(["--advertise", &node.advertise.to_string()]);
            command.args(["--copy-rate", &node.copy_rate.to_string()]);
        }
        // Variables are of servers that somebody else starts.
        for (variable, _) in env::vars_os().filter(|(name, _)| is_option(name)) {
            command.env_remove(variable);
        }
        let said = File::create(self.said()).map_err(BenchError::io(self.said()))?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(said)
            // Ctrl-C at a terminal is for this process, with which it ends.
            .process_group(0);
        let process = command.spawn().map_err(|error| self.failed(&error))?;
        self.process = Some(process);
        Ok(())
    }

    /// Waits until it takes connections.
    ///
    /// # Errors
    /// [`BenchError::Child`] if it ended instead, [`BenchError::Overdue`].
    pub(super) fn wait_until_it_serves(&mut self) -> Result<(), BenchError> {
        wait_for(&format!("{} did not serve", self.name), || {
            self.check_it_runs()?;
            Ok(TcpStream::connect(self.address).is_ok().then_some(()))
        })
    }

    /// # Errors
    /// [`BenchError::Child`] with the last line that it said, if it ended though nobody asked it to.
    pub(super) fn check_it_runs(&mut self) -> Result<(), BenchError> {
        let ended = match &mut self.process {
            Some(process) => process.try_wait().map_err(BenchError::io("a server"))?,
            None => None,
        };
        match ended {
            None => Ok(()),
            Some(status) => {
                let said = fs::read_to_string(self.said()).unwrap_or_default();
                let last = said.lines().last().unwrap_or("it said nothing");
                Err(self.failed(&format!("{status}: {last}")))
            }
        }
    }

    /// Kills it by SIGKILL; says when.
    ///
    /// # Errors
    /// [`BenchError::Child`] if it does not run.
    pub(super) fn kill(&mut self) -> Result<Instant, BenchError> {
        self.check_it_runs()?;
        let mut process = self
            .process
            .take()
            .ok_or_else(|| self.failed(&"it does not run"))?;
        let killed = Instant::now();
        let gone = process.kill().and_then(|()| process.wait());
        gone.map_err(|error| self.failed(&error))?;
        Ok(killed)
    }

    /// Waits until it has ended by itself, as it should.
    ///
    /// # Errors
    /// [`BenchError::Child`] if it failed, [`BenchError::Overdue`].
    pub(super) fn wait_until_it_has_ended(&mut self) -> Result<(), BenchError> {
        let name = self.name.clone();
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        let status = wait_for(&format!("{name} did not end"), || {
            process.try_wait().map_err(BenchError::io("a server"))
        })?;
        self.process = None;
        match status.success() {
            true => Ok(()),
            false => Err(self.failed(&status)),
        }
    }

    /// Asks it to end. One that has not after a while is killed when it is dropped.
    pub(super) fn end(&mut self) -> Result<(), BenchError> {
        self.check_it_runs()?;
        let Some(process) = &mut self.process else {
            return Ok(());
        };
        drop(process.stdin.take());
        let begun = Instant::now();
        while begun.elapsed() < END_WITHIN {
            let ended = process.try_wait().map_err(BenchError::io("a server"))?;
            if ended.is_some() {
                self.process = None;
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Where its standard error goes.
    fn said(&self) -> PathBuf {
        self.store.with_extension("log")
    }

    fn failed(&self, reason: &dyn std::fmt::Display) -> BenchError {
        BenchError::Child {
            command: format!("jindou serve, {}", self.name),
            reason: reason.to_string(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            // One that has ended is not there to be killed.
            let _has_ended = process.kill();
            let _status = process.wait();
        }
    }
}

/// Whether a variable of the environment gives a server an option.
fn is_option(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("JINDOU_") && name != "JINDOU_LOG"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_differ_and_are_of_no_connection() {
        let addresses = free_addresses(5).unwrap();
        let ports: Vec<u16> = addresses.iter().map(SocketAddr::port).collect();
        assert!(ports.iter().all(|port| (20_000..32_000).contains(port)));
        let mut different = ports.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), 5, "{ports:?}");
    }

    #[test]
    fn a_server_that_ends_is_reported_with_what_it_said() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("program");
        fs::write(&script, "#!/bin/sh\necho no store here >&2\nexit 3\n").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&script, mode).unwrap();
        let address = free_addresses(1).unwrap()[0];
        let mut server = Server::new(&script, folder.path(), ("a", address), None);
        server.start().unwrap();
        let error = server.wait_until_it_serves().unwrap_err().to_string();
        assert!(error.contains("no store here"), "{error}");
    }
}
