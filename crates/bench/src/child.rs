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

use jindou_datagen::lubm::Lubm;
use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::{Config, Database};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::machine::Memory;

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

/// A load of what the generator writes to a pipe.
#[derive(Debug, Clone)]
pub struct Piped {
    /// What it writes.
    pub data: Lubm,
    /// The folder of the store, which is made.
    pub location: PathBuf,
    /// Threads of the load.
    pub threads: usize,
    /// Bytes that the load may take.
    pub memory: u64,
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
            Self::Pipe(Piped {
                data,
                location,
                threads,
                memory,
            }) => vec![
                "pipe".into(),
                data.universities.to_string().into(),
                data.seed.to_string().into(),
                location.into(),
                threads.to_string().into(),
                memory.to_string().into(),
            ],
            Self::Open(folder) => vec!["open".into(), folder.into()],
        }
    }

    fn parse(arguments: &[OsString]) -> Option<Self> {
        let threads = |text: &OsString| text.to_str()?.parse().ok();
        let number = |text: &OsString| text.to_str()?.parse::<u64>().ok();
        match arguments {
            [task, file, count] if task == "load" => Some(Self::Load(file.into(), threads(count)?)),
            [task, file, folder, count] if task == "create" => {
                Some(Self::Create(file.into(), folder.into(), threads(count)?))
            }
            [task, universities, seed, location, count, memory] if task == "pipe" => {
                let universities = u32::try_from(number(universities)?).ok()?;
                Some(Self::Pipe(Piped {
                    data: Lubm::new(universities, number(seed)?),
                    location: location.into(),
                    threads: threads(count)?,
                    memory: number(memory)?,
                }))
            }
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
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(arguments);
        let failed = |reason: String| BenchError::Child {
            command: format!("{command:?}"),
            reason,
        };
        let output = Command::new(&self.program)
            .args(&self.arguments)
            .args(arguments)
            .output()
            .map_err(|e| failed(e.to_string()))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or("nothing said");
            return Err(failed(format!("{}: {last}", output.status)));
        }
        serde_json::from_slice(&output.stdout).map_err(|e| failed(e.to_string()))
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
    let start = Instant::now();
    let mut text_bytes = 0;
    let database = match task {
        Task::Load(file, threads) => load(&file, threads)?,
        Task::Create(file, folder, threads) => {
            let sources = vec![Source::path(file)];
            let options = load_options(threads);
            let progress = Progress::default();
            Database::create(&folder, sources, &options, &progress, Config::default())?.0
        }
        Task::Pipe(piped) => {
            let (database, bytes) = load_piped(&piped)?;
            text_bytes = bytes;
            database
        }
        Task::Open(folder) => Database::open(&folder, Config::default())?,
    };
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
    let data = piped.data;
    let generator = std::thread::spawn(move || {
        let mut counted = Counted(writer, 0);
        data.write(&mut counted).map(|_| counted.1)
    });
    let name = format!("{} universities", data.universities);
    let sources = vec![Source::reader(name, reader).with_format(Format::NTriples)];
    let mut config = Config::default();
    config.load_memory_bytes = Some(piped.memory);
    let options = load_options(piped.threads);
    let progress = Progress::default();
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
    use super::*;

    #[test]
    fn a_task_survives_the_command_line() {
        for task in [
            Task::Load("a b.nt".into(), 2),
            Task::Create("f.nt".into(), "store".into(), 1),
            Task::Pipe(Piped {
                data: Lubm::new(3, 1),
                location: "a store".into(),
                threads: 2,
                memory: 5,
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
