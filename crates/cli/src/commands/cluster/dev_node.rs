//! How is a node of a cluster for a first look started, heard and ended? It is this same program as
//! `jindou serve`, whose lines are read, and which ends when its standard input does: so it ends with this
//! process, whatever ends that.

use std::collections::VecDeque;
use std::env;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::dev::Event;
use super::dev_store;

/// Lines of a node that are kept, to be shown when it ends.
const KEPT_LINES: usize = 5;
/// The longest line that is kept, in bytes.
const MOST_LINE_BYTES: u64 = 4096;
/// How long it takes until a node is started again: at first, and doubled where it has not run for as long as
/// the longest,
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// What all nodes have in common.
pub(super) struct NodeCommand {
    pub(super) program: PathBuf,
    /// Of which their stores are copies,
    pub(super) location: PathBuf,
    /// in here.
    pub(super) folder: PathBuf,
    pub(super) peers: PathBuf,
    pub(super) no_shared_memory: bool,
    /// What keeps which of them leads.
    pub(super) etcd: Option<String>,
}

/// A node, whether it runs or not.
pub(super) struct DevNode {
    pub(super) name: String,
    /// Of its HTTP server, at the loopback address.
    pub(super) port: u16,
    /// Shards that it holds.
    pub(super) shards: usize,
    /// It has said that all nodes are there.
    pub(super) sees_all: bool,
    child: Option<Child>,
    last_lines: VecDeque<String>,
    started: Instant,
    pause: Duration,
    /// When it is to be started again.
    again_at: Option<Instant>,
}

impl DevNode {
    pub(super) fn new(name: String, port: u16, shards: usize) -> Self {
        Self {
            name,
            port,
            shards,
            sees_all: false,
            child: None,
            last_lines: VecDeque::new(),
            started: Instant::now(),
            pause: FIRST_PAUSE,
            again_at: None,
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    pub(super) fn runs(&self) -> bool {
        self.child.is_some()
    }

    pub(super) fn again_at(&self) -> Option<Instant> {
        self.again_at
    }

    /// Starts it. Its lines and its end are events, with its number.
    pub(super) fn start(
        &mut self,
        number: usize,
        command: &NodeCommand,
        events: &Sender<Event>,
    ) -> anyhow::Result<()> {
        assert!(self.child.is_none(), "it ended before it is started again");
        let mut child = self.command(command).spawn().with_context(|| {
            let program = command.program.display();
            format!("{program}: cannot start node {}", self.name)
        })?;
        let lines = child.stderr.take();
        self.child = Some(child);
        self.started = Instant::now();
        self.again_at = None;
        self.sees_all = false;
        self.last_lines.clear();
        let lines = lines.context("a node has no standard error")?;
        let events = events.clone();
        let thread = thread::Builder::new().name(format!("hear node {}", self.name));
        thread
            .spawn(move || hear(number, lines, &events))
            .context("cannot start a thread")?;
        Ok(())
    }

    fn command(&self, of: &NodeCommand) -> Command {
        let mut command = Command::new(&of.program);
        command.args(["serve", "--ends-with-input", "--location"]);
        command.arg(dev_store::of_node(&of.folder, &self.name));
        command.arg("--peers").arg(&of.peers);
        command.args(["--node", &self.name, "--bind"]);
        command.arg(format!("127.0.0.1:{}", self.port));
        if of.no_shared_memory {
            command.arg("--no-shared-memory");
        }
        if let Some(etcd) = &of.etcd {
            command.args(["--cluster", etcd]);
        }
        // Variables are of servers that somebody else starts.
        for (variable, _) in env::vars_os().filter(|(name, _)| is_option(name)) {
            command.env_remove(variable);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.stderr(Stdio::piped());
        // Ctrl-C at a terminal is for this process, which ends its nodes then.
        command.process_group(0);
        command
    }

    /// Keeps a line that it said.
    pub(super) fn keep(&mut self, line: String) {
        if self.last_lines.len() == KEPT_LINES {
            self.last_lines.pop_front();
        }
        self.last_lines.push_back(line);
    }

    pub(super) fn last_lines(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.last_lines.iter().map(String::as_str)
    }

    /// It has ended: says how.
    pub(super) fn ended(&mut self) -> String {
        let Some(mut child) = self.child.take() else {
            return "it did not run".to_owned();
        };
        self.sees_all = false;
        match child.wait() {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    /// Has it started again after a pause, which it says.
    pub(super) fn start_later(&mut self) -> Duration {
        self.pause = match self.started.elapsed() >= LONGEST_PAUSE {
            true => FIRST_PAUSE,
            false => self.pause,
        };
        let pause = self.pause;
        self.pause = (2 * pause).min(LONGEST_PAUSE);
        self.again_at = Some(Instant::now() + pause);
        pause
    }

    /// Asks it to end once its queries have.
    pub(super) fn ask_to_end(&mut self) {
        self.again_at = None;
        drop(self.child.as_mut().and_then(|child| child.stdin.take()));
    }

    /// Ends it now.
    pub(super) fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            // One that has ended is not there to be killed.
            let _has_ended = child.kill();
        }
    }
}

impl Drop for DevNode {
    fn drop(&mut self) {
        self.kill();
        self.ended();
    }
}

/// Whether a variable of the environment gives a server an option.
fn is_option(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    name.starts_with("JINDOU_") && name != "JINDOU_LOG"
}

/// Tells what a node says, and its end.
fn hear(number: usize, lines: ChildStderr, events: &Sender<Event>) {
    let mut lines = BufReader::new(lines);
    loop {
        let mut line = Vec::new();
        let mut bounded = std::io::Read::take(&mut lines, MOST_LINE_BYTES);
        match bounded.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => {
                let line = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
                // Nobody hears it who has ended.
                let _unheard = events.send(Event::Line(number, line));
            }
        }
    }
    let _unheard = events.send(Event::Ended(number));
}
