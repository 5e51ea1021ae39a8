//! What has to be measured in a process of its own, and how is that process started?
//!
//! Memory after a load and the time to open a store mean little in a process that did other
//! things before. The measuring program starts itself again with a hidden command whose
//! arguments go to [`main`]; the child prints one line of JSON.

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::{Config, Database};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::generated::Generated;
use crate::machine::Memory;
use crate::running::{Running, end_with_input, say_step};

/// How to start a program that hands its remaining arguments to [`main`].
#[derive(Debug, Clone)]
pub struct ChildProgram {
    /// The program.
    pub program: PathBuf,
    /// What comes before the arguments of [`main`].
    pub arguments: Vec<OsString>,
}

/// What a child that loads, stores or opens tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChildReport {
    /// Time of the load or of opening, in seconds.
    pub seconds: f64,
    /// Triples and quads held then.
    pub triples: u64,
    /// Memory of the process right after.
    pub memory: Memory,
    /// What the store itself says it holds, in bytes.
    pub footprint_bytes: u64,
    /// Bytes of text that it read from a pipe; 0 if it read none.
    pub text_bytes: u64,
}

/// A load of what a generator writes to a pipe, into a store that is not there yet.
#[derive(Debug, Clone)]
pub struct Piped {
    /// What it writes.
    pub graph: Generated,
    /// The folder of the store, which is made.
    pub location: PathBuf,
    /// Threads of the load.
    pub threads: usize,
    /// Bytes that the load may take; without them it holds all that it makes a store of.
    pub memory: Option<u64>,
}

/// Stands for a load without a limit on its memory.
const NO_LIMIT: &str = "-";

impl Piped {
    fn arguments(&self) -> Vec<OsString> {
        let limit = self
            .memory
            .map_or(NO_LIMIT.to_owned(), |bytes| bytes.to_string());
        let [kind, size, seed] = self.graph.words();
        vec![
            "pipe".into(),
            kind.into(),
            size.into(),
            seed.into(),
            self.location.clone().into(),
            self.threads.to_string().into(),
            limit.into(),
        ]
    }

    /// Of what comes after the task's name.
    fn parse(arguments: &[OsString]) -> Option<Self> {
        let [kind, size, seed, location, threads, memory] = arguments else {
            return None;
        };
        let memory = match memory.to_str()? {
            NO_LIMIT => None,
            bytes => Some(bytes.parse().ok()?),
        };
        Some(Self {
            graph: Generated::of_words([kind.to_str()?, size.to_str()?, seed.to_str()?])?,
            location: location.into(),
            threads: threads.to_str()?.parse().ok()?,
            memory,
        })
    }
}

/// What a child may be asked.
#[derive(Debug, Clone)]
pub enum Task {
    /// Load a file into memory on so many threads.
    Load(PathBuf, usize),
    /// Load a file into a new store in a folder, on so many threads.
    Create(PathBuf, PathBuf, usize),
    /// Load what is generated meanwhile into a new store.
    Pipe(Piped),
    /// Open the store in a folder.
    Open(PathBuf),
}

impl Task {
    fn arguments(&self) -> Vec<OsString> {
        match self {
            Self::Load(file, threads) => {
                vec!["load".into(), file.into(), threads.to_string().into()]
            }
            Self::Create(file, folder, threads) => vec![
                "create".into(),
                file.into(),
                folder.into(),
                threads.to_string().into(),
            ],
            Self::Pipe(piped) => piped.arguments(),
            Self::Open(folder) => vec!["open".into(), folder.into()],
        }
    }

    /// The folder that has what a load puts on disk before it is a store.
    fn left_at_end(&self) -> Option<PathBuf> {
        match self {
            Self::Pipe(piped) => Some(piped.location.clone()),
            Self::Load(..) | Self::Create(..) | Self::Open(_) => None,
        }
    }

    /// The database that it makes or opens, and the bytes that it read from a pipe.
    fn run(self) -> Result<(Database, u64), BenchError> {
        let database = match self {
            Self::Load(file, threads) => load(&file, threads)?,
            Self::Create(file, folder, threads) => {
                let sources = vec![Source::path(file)];
                let options = load_options(threads);
                let progress = Progress::default();
                Database::create(&folder, sources, &options, &progress, Config::default())?.0
            }
            Self::Pipe(piped) => return load_piped(&piped),
            Self::Open(folder) => Database::open(&folder, Config::default())?,
        };
        Ok((database, 0))
    }

    fn parse(arguments: &[OsString]) -> Option<Self> {
        let threads = |text: &OsString| text.to_str()?.parse().ok();
        match arguments {
            [task, file, count] if task == "load" => Some(Self::Load(file.into(), threads(count)?)),
            [task, file, folder, count] if task == "create" => {
                Some(Self::Create(file.into(), folder.into(), threads(count)?))
            }
            [task, rest @ ..] if task == "pipe" => Some(Self::Pipe(Piped::parse(rest)?)),
            [task, folder] if task == "open" => Some(Self::Open(folder.into())),
            _ => None,
        }
    }
}

impl ChildProgram {
    /// This very program with these arguments first.
    ///
    /// # Errors
    /// [`BenchError::Io`] if the system does not tell where the program is.
    pub fn this(arguments: &[&str]) -> Result<Self, BenchError> {
        let program = std::env::current_exe().map_err(BenchError::io("this program"))?;
        let arguments = arguments.iter().map(OsString::from).collect();
        Ok(Self { program, arguments })
    }

    /// Runs a task in a new process and waits for what it tells.
    ///
    /// # Errors
    /// [`BenchError::Child`], with the last line of what it said on its standard error.
    pub fn run(&self, task: &Task) -> Result<ChildReport, BenchError> {
        self.run_with(&task.arguments())
    }

    /// Runs the program with these arguments after its own and reads one line of JSON from it.
    ///
    /// # Errors
    /// [`BenchError::Child`].
    pub fn run_with<T: DeserializeOwned>(&self, arguments: &[OsString]) -> Result<T, BenchError> {
        Ok(self.start_with(arguments)?.finish()?.0)
    }

    /// Starts a task in a new process.
    ///
    /// # Errors
    /// [`BenchError::Child`].
    pub(crate) fn start(&self, task: &Task) -> Result<Running, BenchError> {
        self.start_with(&task.arguments())
    }

    fn start_with(&self, arguments: &[OsString]) -> Result<Running, BenchError> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(arguments);
        Running::start(command)
    }
}

/// The child's side: runs the task named by `arguments` and prints what it measured. `Ok(false)`
/// if the arguments name none.
///
/// # Errors
/// [`BenchError::Engine`], [`BenchError::Memory`].
pub fn main(arguments: &[OsString]) -> Result<bool, BenchError> {
    let Some(task) = Task::parse(arguments) else {
        return Ok(false);
    };
    // What was there before may be of somebody else.
    let left_at_end = task.left_at_end().filter(|location| !location.exists());
    end_with_input(move || remove_unless_store(left_at_end.as_deref()));
    let start = Instant::now();
    let (database, text_bytes) = task.run()?;
    let seconds = start.elapsed().as_secs_f64();
    let memory = Memory::of_this_process()?;
    let statistics = database.statistics();
    let report = ChildReport {
        seconds,
        triples: statistics.triples,
        memory,
        footprint_bytes: statistics.total_bytes(),
        text_bytes,
    };
    let text = serde_json::to_string(&report).expect("numbers are JSON");
    println!("{text}");
    Ok(true)
}

/// Removes what a load has put on disk that does not come to its end.
fn remove_unless_store(location: Option<&Path>) {
    if let Some(location) = location
        && matches!(Database::is_at(location), Ok(false))
    {
        // An error has no reader any more; what stays is removed by the next load there.
        let _ = std::fs::remove_dir_all(location);
    }
}

/// A list of so many nodes with these names, at ports that nobody has.
pub(crate) fn list_of_nodes(
    nodes: u32,
    shards: usize,
    name: impl Fn(u32) -> String,
) -> Result<String, BenchError> {
    let ports: Result<Vec<TcpListener>, _> = (0..nodes)
        .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect();
    let ports = ports.map_err(BenchError::io("a port"))?;
    let mut list = format!("shards = {shards}\n");
    for (number, port) in (0..).zip(&ports) {
        let address = port.local_addr().map_err(BenchError::io("a port"))?;
        let name = name(number);
        list += &format!("[[node]]\nname = \"{name}\"\naddress = \"{address}\"\n");
    }
    Ok(list)
}

/// A new database in memory with the file's triples.
pub(crate) fn load(file: &Path, threads: usize) -> Result<Database, BenchError> {
    let database = Database::new();
    let sources = vec![Source::path(file)];
    database.load(sources, &load_options(threads), &Progress::default())?;
    Ok(database)
}

/// A new store of what the generator writes to a pipe, and the bytes of that.
fn load_piped(piped: &Piped) -> Result<(Database, u64), BenchError> {
    let (reader, writer) = std::io::pipe().map_err(BenchError::io("a pipe"))?;
    let graph = piped.graph;
    let generator = std::thread::spawn(move || {
        let mut counted = Counted(writer, 0);
        graph.write(&mut counted).map(|()| counted.1)
    });
    let sources = vec![Source::reader(graph.to_string(), reader).with_format(Format::NTriples)];
    let mut config = Config::default();
    config.load_memory_bytes = piped.memory;
    let options = load_options(piped.threads);
    let progress = Progress::with_listener(say_step);
    let made = Database::create(&piped.location, sources, &options, &progress, config);
    // Where the load failed, the generator has nobody to write to, which is no news.
    let written = generator.join().map_err(|_| BenchError::Setup {
        reason: "the generator panicked".to_owned(),
    })?;
    let (database, _) = made?;
    Ok((database, written.map_err(BenchError::io("the pipe"))?))
}

/// What is written, and its bytes.
struct Counted<W>(W, u64);

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.0.write(bytes)?;
        self.1 += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn load_options(threads: usize) -> LoadOptions {
    LoadOptions {
        threads: threads.try_into().unwrap_or(std::num::NonZeroUsize::MIN),
        ..LoadOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use jindou_datagen::literals::Literals;
    use jindou_datagen::lubm::Lubm;

    use super::*;

    #[test]
    fn a_task_survives_the_command_line() {
        for task in [
            Task::Load("a b.nt".into(), 2),
            Task::Create("f.nt".into(), "store".into(), 1),
            Task::Pipe(Piped {
                graph: Generated::Lubm(Lubm::new(3, 1)),
                location: "a store".into(),
                threads: 2,
                memory: Some(5),
            }),
            Task::Pipe(Piped {
                graph: Generated::Literals(Literals::new(7, 9)),
                location: "store".into(),
                threads: 1,
                memory: None,
            }),
            Task::Open("store".into()),
        ] {
            let parsed = Task::parse(&task.arguments()).unwrap();
            assert_eq!(format!("{parsed:?}"), format!("{task:?}"));
        }
        assert!(Task::parse(&["load".into()]).is_none());
        assert!(Task::parse(&["load".into(), "f".into(), "two".into()]).is_none());
    }
}
