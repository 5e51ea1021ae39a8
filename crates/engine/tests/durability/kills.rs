//! Processes that are really killed: is every acknowledged transaction there afterwards, and no
//! part of any other?
//!
//! The test starts its own executable again as the process to kill. That one opens a store whose
//! merges and checkpoints are due all the time, writes from several threads, loads, merges, makes
//! checkpoints and backups, and says each transaction that was acknowledged. Every third process
//! merges half of the predicates after each transaction. It is killed at a random operation on its files, recovery included, or after a random number of transactions.
//! What the store holds is a function of how many transactions of each thread it has, so that it
//! is compared quad by quad.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{Config, Database, EngineError, LoadOptions, QueryResults, StoreError};

use crate::faults::{Faults, say};
use crate::random_requests::half;
use crate::{Random, environment, names};

/// Threads that write.
const WRITERS: usize = 3;
/// A store is left after so many kills, and another one begun.
const KILLS_OF_A_STORE: u64 = 25;

/// Transactions of each writer, and loads.
pub(crate) type Counts = [u64; WRITERS + 1];

/// What a store was known to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) counts: Counts,
    /// The latest snapshot number that anybody saw.
    pub(crate) snapshot: u64,
}

impl Known {
    /// Notes that one more transaction was acknowledged: the numbers of `@ done WRITER NUMBER
    /// SNAPSHOT`.
    pub(crate) fn acknowledge(&mut self, numbers: &[u64]) {
        let [writer, number, snapshot] = *numbers else {
            panic!("three numbers, not {numbers:?}");
        };
        let count = &mut self.counts[writer as usize];
        assert_eq!(*count + 1, number);
        *count = number;
        // Those of several writers may be said in another order than they were made in.
        self.snapshot = self.snapshot.max(snapshot);
    }

    /// What a process found when it opened the store: the numbers of `@ state COUNTS.. SNAPSHOT`.
    pub(crate) fn found(numbers: &[u64]) -> Self {
        let (snapshot, counts) = numbers.split_last().expect("there are numbers");
        Self {
            counts: counts.try_into().expect("a number for each writer"),
            snapshot: *snapshot,
        }
    }
}

const LOADS: usize = WRITERS;
const LINES: u64 = 40;
const INTEGER: &str = "http://www.w3.org/2001/XMLSchema#integer";

fn fail(text: &str) -> ! {
    say(&format!("bad {text}"));
    std::process::exit(1)
}

/// The request of a writer's transaction.
fn request(writer: usize, number: u64) -> String {
    let before = number.saturating_sub(3);
    format!(
        "PREFIX : <http://e/>
         DELETE {{ :c{writer} :value ?v }} INSERT {{ :c{writer} :value {number} }}
         WHERE {{ OPTIONAL {{ :c{writer} :value ?v }} }} ;
         INSERT DATA {{
           :m{writer}-{number} :part 0, 1, 2, 3 ; :text 'text {writer} {number}' .
           GRAPH :g{writer} {{ :m{writer}-{number} :part 4, 5 }}
         }} ;
         DELETE WHERE {{ :m{writer}-{before} ?p ?o }} ;
         DELETE WHERE {{ GRAPH :g{writer} {{ :m{writer}-{before} ?p ?o }} }}"
    )
}

/// What a load brings.
fn document(number: u64) -> Vec<Source> {
    let line = |line| format!("<http://e/l{number}> <http://e/line> \"{line}\"^^<{INTEGER}> .\n");
    let prefix = format!("@prefix l{number}: <http://e/l{number}#> .\n");
    let text: String = (0..LINES).map(line).collect();
    vec![Source::bytes("document.ttl", prefix + &text).with_format(Format::Turtle)]
}

/// The first load that is there without its prefix.
fn load_without_prefix(database: &Database, loads: u64) -> Option<u64> {
    let known = database.prefixes();
    (1..=loads).find(|load| known.get(&format!("l{load}")).is_none())
}

fn expected(counts: &Counts) -> BTreeSet<String> {
    let mut quads = BTreeSet::new();
    let integer = |number: u64| format!("\"{number}\"^^<{INTEGER}>");
    for (writer, &count) in counts[..WRITERS].iter().enumerate() {
        if count > 0 {
            let value = integer(count);
            quads.insert(format!("<http://e/c{writer}> <http://e/value> {value}"));
        }
        for number in count.saturating_sub(2).max(1)..=count {
            let subject = format!("<http://e/m{writer}-{number}>");
            for part in 0..6 {
                let graph = match part {
                    0..4 => String::new(),
                    _ => format!(" <http://e/g{writer}>"),
                };
                let object = integer(part);
                quads.insert(format!("{subject} <http://e/part> {object}{graph}"));
            }
            quads.insert(format!(
                "{subject} <http://e/text> \"text {writer} {number}\""
            ));
        }
    }
    for load in 1..=counts[LOADS] {
        for line in 0..LINES {
            let object = integer(line);
            quads.insert(format!("<http://e/l{load}> <http://e/line> {object}"));
        }
    }
    quads
}

fn found(database: &Database) -> BTreeSet<String> {
    let mut quads = BTreeSet::new();
    for query in [
        "SELECT ?s ?p ?o { ?s ?p ?o }",
        "SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }",
    ] {
        let QueryResults::Solutions(solutions) = database.query(query).expect("it is sound") else {
            panic!("SELECT gives solutions");
        };
        for solution in solutions {
            let solution = solution.expect("the store is whole");
            let terms: Vec<String> = solution.iter().map(|(_, term)| term.to_string()).collect();
            quads.insert(terms.join(" "));
        }
    }
    quads
}

/// How many transactions the store has, if it has nothing else.
pub(crate) fn counts(database: &Database) -> Result<Counts, String> {
    let quads = found(database);
    let mut counts = Counts::default();
    for quad in &quads {
        let mut parts = quad
            .split(['/', '>', ' ', '"'])
            .filter(|part| !part.is_empty());
        let name = parts.nth(2).unwrap_or_default();
        if let Some(load) = name.strip_prefix('l').and_then(|load| load.parse().ok()) {
            counts[LOADS] = counts[LOADS].max(load);
        }
        if let Some(writer) = name
            .strip_prefix('c')
            .and_then(|one| one.parse::<usize>().ok())
        {
            let value = quad.split('"').nth(1).and_then(|value| value.parse().ok());
            counts[writer] = value.ok_or("a counter is no number")?;
        }
    }
    if let Some(load) = load_without_prefix(database, counts[LOADS]) {
        return Err(format!("load {load} is there, and its prefix is not"));
    }
    let expected = expected(&counts);
    let one_of = |a: &BTreeSet<String>, b| a.difference(b).next().cloned().unwrap_or_default();
    match quads == expected {
        true => Ok(counts),
        false => Err(format!(
            "at {counts:?} there is {:?} and there is not {:?}",
            one_of(&quads, &expected),
            one_of(&expected, &quads)
        )),
    }
}

pub(crate) fn config() -> Config {
    let mut config = Config::default();
    config.threads = 1;
    config.merge.changes = 150;
    config.merge.share_of_graph = u64::MAX;
    config.merge.idle = Duration::from_millis(3);
    config.merge.idle_changes = 60;
    config.merge.log_bytes = 24 << 10;
    config
}

fn open(location: &Path, random: &mut Random, config: Config) -> (Database, bool) {
    match Database::open(location, config.clone()) {
        Ok(database) => (database, false),
        Err(EngineError::Store(StoreError::NotAStore { .. })) => {
            let (options, progress) = (LoadOptions::default(), Progress::default());
            let made = match random.below(2) {
                0 => Database::open_or_create(location, config).map(|database| (database, false)),
                _ => Database::create(location, document(1), &options, &progress, config)
                    .map(|(database, _)| (database, true)),
            };
            made.unwrap_or_else(|error| fail(&format!("create: {error}")))
        }
        Err(error) => fail(&format!("open: {error}")),
    }
}

#[test]
#[ignore = "run by the test below, to be killed"]
fn the_process_that_is_killed() {
    let location = std::env::var("JINDOU_KILL_STORE").expect("the store's folder");
    let location = Path::new(&location);
    let seed = environment("JINDOU_KILL_SEED", 0);
    let mut random = Random(seed);
    let faults = Faults::new();
    faults
        .stop_after
        .store(environment("JINDOU_KILL_AT", 0), Ordering::SeqCst);
    let mut config = config();
    faults.configure(&mut config);
    say("begun");
    let (database, has_loaded) = open(location, &mut random, config);
    if has_loaded {
        let snapshot = database.snapshot_number().0;
        say(&format!("done {LOADS} 1 {snapshot}"));
    }
    let counts = counts(&database).unwrap_or_else(|wrong| fail(&wrong));
    let numbers: Vec<String> = counts.iter().map(u64::to_string).collect();
    let snapshot = database.snapshot_number().0;
    say(&format!("state {} {snapshot}", numbers.join(" ")));
    let loads = AtomicU64::new(counts[LOADS]);
    let merges_always = seed.is_multiple_of(3);
    std::thread::scope(|scope| {
        for (writer, &count) in counts[..WRITERS].iter().enumerate() {
            let mut random = Random(seed ^ (writer as u64 + 1));
            let (database, loads) = (&database, &loads);
            scope.spawn(move || {
                for number in count + 1.. {
                    let how = (location, merges_always);
                    write(database, writer, number, loads, &mut random, how);
                }
            });
        }
    });
}

fn write(
    database: &Database,
    writer: usize,
    number: u64,
    loads: &AtomicU64,
    random: &mut Random,
    (location, merges_always): (&Path, bool),
) {
    let check = |what: &str, error: Option<EngineError>| {
        if let Some(error) = error {
            fail(&format!("{what}: {error}"));
        }
    };
    match database.update(&request(writer, number)) {
        Ok(report) => say(&format!("done {writer} {number} {}", report.snapshot.0)),
        Err(error) => fail(&format!("update: {error}")),
    }
    if merges_always {
        let merged = database.compact_some(&half(number));
        check("compact some", merged.err());
    }
    if random.below(10) > 0 {
        return;
    }
    match writer {
        0 => {
            let load = loads.load(Ordering::SeqCst) + 1;
            let (options, progress) = (LoadOptions::default(), Progress::default());
            check(
                "load",
                database.load(document(load), &options, &progress).err(),
            );
            loads.store(load, Ordering::SeqCst);
            let snapshot = database.snapshot_number().0;
            say(&format!("done {LOADS} {load} {snapshot}"));
        }
        1 if random.below(2) == 0 => check("checkpoint", database.checkpoint().err()),
        1 => check("compact", database.compact().err()),
        _ => {
            let to = location.with_extension("backup");
            // Aside by one step, so that what has the name is whole whenever the process ends.
            let old = location.with_extension("old");
            let is_gone = |done: std::io::Result<()>| match done {
                Err(error) if error.kind() != ErrorKind::NotFound => fail(&format!("{error}")),
                _ => {}
            };
            is_gone(fs::remove_dir_all(&old));
            is_gone(fs::rename(&to, &old));
            check("backup", database.backup(&to).err());
        }
    }
}

/// When to kill.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// In the middle of an operation on a file or the folder, the so many-th.
    Operation(u64),
    /// After so many transactions, whatever the process does then; 0 is before it has opened.
    Transactions(u64),
}

impl Moment {
    fn any(random: &mut Random) -> Self {
        match random.below(5) {
            0 => Self::Transactions(random.below(40)),
            _ => {
                let most = 4 << random.below(9);
                Self::Operation(1 + random.below(most))
            }
        }
    }
}

/// Runs the process until its moment has come, and notes what it says. True if it had opened the
/// store.
fn run_and_kill(location: &Path, seed: u64, moment: Moment, known: &mut Known) -> bool {
    let mut command = Command::new(std::env::current_exe().expect("a test knows its file"));
    command
        .args([
            "--exact",
            "kills::the_process_that_is_killed",
            "--ignored",
            "--nocapture",
        ])
        .env("JINDOU_KILL_STORE", location)
        .env("JINDOU_KILL_SEED", seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Moment::Operation(number) = moment {
        command.env("JINDOU_KILL_AT", number.to_string());
    }
    let mut child = command.spawn().expect("the test can be started again");
    let said = BufReader::new(child.stdout.take().expect("a pipe"));
    let (mut done, mut has_opened, mut killed) = (0, false, false);
    for line in said.split(b'\n') {
        let line = line.expect("a pipe can be read");
        let line = String::from_utf8_lossy(&line);
        let mut words = line.split(' ');
        if words.next() != Some("@") {
            continue;
        }
        let word = words.next().unwrap_or_default();
        let numbers: Vec<u64> = words.clone().filter_map(|word| word.parse().ok()).collect();
        match word {
            "begun" => {}
            "state" => {
                has_opened = true;
                let found = Known::found(&numbers);
                for (known, found) in known.counts.iter().zip(&found.counts) {
                    assert!(
                        (*known..=*known + 1).contains(found),
                        "{known} transactions were acknowledged, and {found} are there"
                    );
                }
                assert!(
                    found.snapshot >= known.snapshot,
                    "snapshot {} was seen, and {} is the latest",
                    known.snapshot,
                    found.snapshot
                );
                *known = found;
            }
            "done" => {
                known.acknowledge(&numbers);
                done += 1;
            }
            "stopped" => {}
            _ => panic!("{line}"),
        }
        let is_time = match moment {
            Moment::Operation(_) => word == "stopped",
            Moment::Transactions(count) => done >= count && (count == 0 || word == "done"),
        };
        if is_time && !killed {
            child.kill().expect("it is there");
            killed = true;
        }
    }
    let output = child.wait_with_output().expect("it ends");
    assert!(
        killed && output.status.code().is_none(),
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    has_opened
}

#[test]
fn every_acknowledged_transaction_survives_kills_and_no_part_of_any_other() {
    let seed = environment("JINDOU_SEED", 1);
    let kills = environment("JINDOU_KILLS", 200);
    println!("seed {seed}, {kills} kills (JINDOU_SEED, JINDOU_KILLS)");
    let mut random = Random(seed);
    let (mut unopened, mut transactions) = (0, 0);
    for first in (0..kills).step_by(KILLS_OF_A_STORE as usize) {
        let folder = tempfile::tempdir().unwrap();
        let location = folder.path().join("store");
        let mut known = Known::default();
        for kill in first..kills.min(first + KILLS_OF_A_STORE) {
            let moment = Moment::any(&mut random);
            let before = (known, names_of(&location));
            let attempt = std::panic::AssertUnwindSafe(|| {
                let has_opened = run_and_kill(&location, random.next(), moment, &mut known);
                unopened += u64::from(!has_opened);
                if kill % 8 == 0 && known != Known::default() {
                    Database::verify(&location).unwrap_or_else(|error| panic!("{error}"));
                }
            });
            if let Err(panic) = std::panic::catch_unwind(attempt) {
                let after = names_of(&location);
                println!("seed {seed}, kill {kill}, {moment:?}: {before:?} -> {known:?} {after:?}");
                let kept = folder.keep();
                println!("what is left: {}", kept.display());
                std::panic::resume_unwind(panic);
            }
        }
        transactions += known.counts.iter().sum::<u64>();
        finish(&location, &known);
    }
    println!(
        "{kills} kills, {unopened} of them before the store was open; {transactions} transactions"
    );
    assert!(unopened > 0 && transactions > 0);
}

fn names_of(location: &Path) -> Vec<String> {
    match location.exists() {
        true => names(location),
        false => Vec::new(),
    }
}

/// What remains is the store and nothing else, and so is its last backup.
fn finish(location: &Path, known: &Known) {
    let mut config = config();
    config.merge = jindou_engine::MergePolicy::never();
    let database = Database::open_or_create(location, config.clone()).unwrap();
    let last = counts(&database).unwrap();
    let grown = last
        .iter()
        .zip(&known.counts)
        .all(|(last, known)| (*known..=*known + 1).contains(last));
    assert!(grown, "{known:?} {last:?}");
    let snapshot = database.snapshot_number();
    assert!(snapshot.0 >= known.snapshot, "{known:?} {snapshot:?}");
    drop(database);
    assert_eq!(Database::verify(location).unwrap().snapshot, snapshot);
    let names = names(location);
    let of_kind = |kind: &str| names.iter().filter(|name| name.starts_with(kind)).count();
    for (kind, most) in [("base-", 1), ("changes-", 1), ("CURRENT", 1)] {
        assert!(of_kind(kind) <= most, "{names:?}");
    }
    assert!(
        !names.iter().any(|name| name.ends_with(".new")),
        "{names:?}"
    );
    let backup = location.with_extension("backup");
    if backup.exists() {
        let database = Database::open(&backup, config).unwrap();
        let copied = counts(&database).unwrap();
        assert!(
            copied
                .iter()
                .zip(&last)
                .all(|(copied, last)| copied <= last)
        );
        drop(database);
        Database::verify(&backup).unwrap();
    }
}
