//! Loads within a given memory that are killed in each of their steps: is the store as it was, and does the next load
//! come to its end?
//!
//! The test starts its own executable again as the process to kill. A moment is a step, and how many operations on
//! files there were in it; the process stops there, says so, and is killed. No moment depends on time. Steps are those that
//! the load says, and moments are tried until it says none any more and ends.

use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{Database, EngineError, MERGING_TERMS, StoreError};

use crate::bounded_loads::{LEAST_BYTES, bounded, contents, create, document, options};
use crate::faults::{Faults, say, stop};
use crate::{config, environment, names};

/// The step of a load that reads its source; those that it says come after it.
const READING: u64 = 0;
/// The last step of a load.
const WRITING: &str = "writing the store";
/// What a load puts on disk beside the store.
const SCRATCH: &str = ".jindou-loading";
/// Before any operation of a step.
const AT_ITS_BEGINNING: u64 = 0;

/// Where a process stops.
#[derive(Clone, Copy, Debug)]
struct Moment {
    /// The step: [`READING`], and from 1 on what the load says.
    step: u64,
    /// The operation of it, [`AT_ITS_BEGINNING`] or from 1 on.
    operation: u64,
}

impl Moment {
    /// Of the process that is to stop.
    fn of_environment() -> Self {
        Self {
            step: environment("JINDOU_KILL_STEP", READING),
            operation: environment("JINDOU_KILL_AT", AT_ITS_BEGINNING),
        }
    }

    /// Stops, or has the operation of the step that begins now stop.
    fn begin(self, step: u64, faults: &Faults) {
        if step == self.step + 1 {
            say("passed");
            std::process::exit(0);
        }
        if step == self.step {
            match self.operation {
                AT_ITS_BEGINNING => stop(),
                count => faults.stop_after.store(count, Ordering::SeqCst),
            }
        }
    }
}

/// A document that says when it is first read.
struct Begun<R> {
    text: R,
    begin: Option<Box<dyn FnOnce() + Send>>,
}

impl<R: Read> Read for Begun<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if let Some(begin) = self.begin.take() {
            begin();
        }
        self.text.read(buffer)
    }
}

#[test]
#[ignore = "run by the tests below, to be killed"]
fn the_load_that_is_killed() {
    let location = std::env::var("JINDOU_KILL_STORE").expect("the store's folder");
    let moment = Moment::of_environment();
    let faults = Faults::new();
    let mut config = bounded(LEAST_BYTES);
    let heard = Arc::clone(&faults);
    let begun = AtomicU64::new(READING);
    let progress = Progress::with_listener(move |name| {
        say(&format!("step {name}"));
        moment.begin(begun.fetch_add(1, Ordering::SeqCst) + 1, &heard);
    });
    let first = Arc::clone(&faults);
    let source = Begun {
        text: std::io::Cursor::new(document()),
        begin: Some(Box::new(move || moment.begin(READING, &first))),
    };
    let source = vec![Source::reader("data.nq", source).with_format(Format::NQuads)];
    faults.configure(&mut config);
    let location = Path::new(&location);
    match environment("JINDOU_KILL_FILLS", 0) {
        0 => {
            let made = Database::create(location, source, &options(), &progress, config);
            drop(made.expect("there is room"));
        }
        _ => {
            let database = Database::open(location, config).expect("it is an empty store");
            let filled = database.load(source, &options(), &progress);
            filled.expect("there is room");
        }
    }
    say("loaded");
}

/// What became of a process.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// It was killed in the step of this name, the last that it said.
    Killed(String),
    /// The step had fewer operations.
    Passed,
    /// There are fewer steps, and the load came to its end.
    Loaded,
}

fn run(location: &Path, fills: bool, moment: Moment) -> Ended {
    let mut child = Command::new(std::env::current_exe().expect("a test knows its file"))
        .args([
            "--exact",
            "killed_loads::the_load_that_is_killed",
            "--ignored",
            "--nocapture",
        ])
        .env("JINDOU_KILL_STORE", location)
        .env("JINDOU_KILL_FILLS", u64::from(fills).to_string())
        .env("JINDOU_KILL_STEP", moment.step.to_string())
        .env("JINDOU_KILL_AT", moment.operation.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the test can be started again");
    let said = BufReader::new(child.stdout.take().expect("a pipe"));
    let (mut step, mut ended) = ("reading".to_owned(), None);
    for line in said.lines() {
        let line = line.expect("a pipe can be read");
        let Some(words) = line.strip_prefix("@ ") else {
            continue;
        };
        match words.strip_prefix("step ") {
            Some(name) => name.clone_into(&mut step),
            None if words == "stopped" => {
                child.kill().expect("it is there");
                ended = Some(Ended::Killed(step.clone()));
            }
            None if words == "passed" => ended = Some(Ended::Passed),
            None if words == "loaded" => ended = Some(Ended::Loaded),
            None => panic!("{line}"),
        }
    }
    let output = child.wait_with_output().expect("it ends");
    let was_killed = matches!(ended, Some(Ended::Killed(_)));
    let ends_well = output.status.success() || was_killed && output.status.code().is_none();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(ends_well, "{moment:?}: {}: {errors}", output.status);
    ended.unwrap_or_else(|| panic!("{moment:?}: it said nothing: {errors}"))
}

/// Where a load is killed, and what has to be there then.
struct Killing<'a> {
    location: &'a Path,
    /// Whether the loads are into an empty store, which is there before; otherwise they make the store.
    fills: bool,
    /// Quads of the document in the default graph and in named graphs.
    quads: [u64; 2],
}

impl Killing<'_> {
    /// The steps in which loads were killed, each load onto what the one before it left: at the beginning of each step and
    /// at its first operation on files, and in the last step at operations 1, 2, 4 and so on. Ends with a load that
    /// comes to its end.
    fn everywhere(&self) -> Vec<String> {
        let mut steps = Vec::new();
        for step in READING.. {
            let mut operation = AT_ITS_BEGINNING;
            loop {
                let name = match run(self.location, self.fills, Moment { step, operation }) {
                    Ended::Loaded => return steps,
                    Ended::Passed => break,
                    Ended::Killed(name) => name,
                };
                let is_last = name == WRITING;
                self.check(&name, is_last && operation > AT_ITS_BEGINNING);
                match operation {
                    AT_ITS_BEGINNING => steps.push(name),
                    _ if is_last => {}
                    _ => break,
                }
                operation = (2 * operation).max(1);
            }
        }
        unreachable!("the last step comes to its end");
    }

    /// Asserts that nothing was loaded; or all of it, which may be, and is removed then.
    fn check(&self, step: &str, may_be_whole: bool) {
        let found = match Database::open(self.location, config()) {
            Ok(database) => {
                let statistics = database.statistics();
                assert!(!self.location.join(SCRATCH).exists(), "killed in {step}");
                Some([statistics.triples, statistics.named_quads])
            }
            Err(EngineError::Store(StoreError::NotAStore { .. })) => None,
            Err(error) => panic!("killed in {step}: {error}"),
        };
        let before = self.fills.then_some([0, 0]);
        if found != before {
            let is_whole = may_be_whole && found == Some(self.quads);
            assert!(is_whole, "killed in {step}: {found:?} quads");
            Database::verify(self.location).expect("it is whole");
            fs::remove_dir_all(self.location).expect("it is there");
            self.begin();
        }
    }

    /// Makes what is there before a load.
    fn begin(&self) {
        if self.fills {
            drop(Database::open_or_create(self.location, config()).expect("there is room"));
        }
    }
}

/// Kills loads in all their steps; the folder has what the last one loaded, and nothing else.
fn killed_in_each_step(location: &Path, fills: bool) {
    let other = location.with_extension("other");
    let expected = create(&other, &document(), bounded(LEAST_BYTES)).expect("it is sound");
    let killing = Killing {
        location,
        fills,
        quads: [expected.triples, expected.named_quads],
    };
    killing.begin();
    let steps = killing.everywhere();
    println!("killed in {steps:?}");
    let mut kinds: Vec<&str> = steps
        .iter()
        .map(|step| step.split(',').next().unwrap_or_default())
        .collect();
    kinds.dedup();
    // A step that is new has to be among these, and to be what it was written to be: killed at any time.
    let all = [
        "reading",
        MERGING_TERMS,
        "numbering terms",
        "making the dictionary",
        "building segments",
        WRITING,
    ];
    assert_eq!(kinds, all);
    let report = Database::verify(location).expect("it is whole");
    assert_eq!([report.triples, report.named_quads], killing.quads);
    let mut files: Vec<String> = report.files.into_iter().map(|file| file.name).collect();
    files.push("LOCK".to_owned());
    files.sort();
    assert_eq!(names(location), files, "nothing is left of the killed ones");
    if !fills {
        assert!(contents(location) == contents(&other), "the same ids");
    }
}

#[test]
fn a_load_killed_in_any_step_leaves_no_store_and_the_next_one_makes_it() {
    let folder = tempfile::tempdir().expect("there is room");
    killed_in_each_step(&folder.path().join("store"), false);
}

#[test]
fn a_load_killed_in_any_step_leaves_an_empty_store_empty_and_the_next_one_fills_it() {
    let folder = tempfile::tempdir().expect("there is room");
    killed_in_each_step(&folder.path().join("store"), true);
}
