//! States that a loss of power may leave: does each of them open, with all that was acknowledged?
//!
//! The process of `kills` runs under strace, so that what is replayed is what the kernel was asked
//! for and not what we believe to have asked. Its system calls on the store's folder become a model
//! of the disk: what a sync has covered is there, of all else any part may be: names that were
//! given or taken without a sync of the folder, and of each write any of its sectors. From a random
//! moment such a state is written to a folder of its own and opened.
//!
//! `JINDOU_CRASH_STATES=10000 cargo test -p jindou-engine --test durability crash_states`
//! makes more of them.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use jindou_engine::{Config, Database, EngineError, MergePolicy, StoreError};

use crate::disk::{Change, Disk, Naming};
use crate::kills::{Counts, Known, config, counts};
use crate::{Random, environment};

/// States of each trace.
const STATES_OF_A_TRACE: u64 = 25;
/// Traces recorded of one store before another one is begun.
const TRACES_OF_A_STORE: u64 = 6;
const CALLS: &str = "trace=openat,open,creat,close,write,pwrite64,ftruncate,fsync,fdatasync,\
                     rename,renameat,renameat2,unlink,unlinkat,link,linkat,fallocate,writev,\
                     pwritev,pwritev2,copy_file_range,sendfile,msync,sync_file_range";

/// One call, whole: its parts put together where other threads' calls came between.
#[derive(Debug)]
struct Call {
    name: String,
    arguments: Vec<String>,
    result: i64,
    /// Number of the line where it began.
    began: usize,
}

/// Splits arguments at commas outside of strings and brackets.
fn arguments(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut quoted) = (vec![String::new()], 0, false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        parts.last_mut().expect("there is one").push(c);
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}

/// The bytes of a string that strace printed in hexadecimal.
fn bytes_of(argument: &str) -> Vec<u8> {
    let inner = argument
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let inner = inner.unwrap_or_else(|| panic!("a string was cut: {argument:.80}"));
    let digits = inner.split("\\x").skip(1);
    digits
        .map(|pair| u8::from_str_radix(pair, 16).expect("two digits"))
        .collect()
}

fn path_of(argument: &str) -> String {
    String::from_utf8(bytes_of(argument)).expect("paths are text")
}

/// The calls of a trace in the order in which they ended, and the lines in which each began.
fn calls(trace: &str) -> Vec<Call> {
    let mut begun: HashMap<&str, (usize, String)> = HashMap::new();
    let mut calls = Vec::new();
    for (number, line) in trace.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let rest = rest.trim_start();
        if let Some(start) = rest.strip_suffix("<unfinished ...>") {
            let start = start.trim_end();
            match start.strip_prefix("close(") {
                // Another thread may be given the number before this call is said to have ended.
                Some(descriptor) => calls.push(Call {
                    name: "close".to_owned(),
                    arguments: vec![descriptor.trim_end_matches(')').to_owned()],
                    result: 0,
                    began: number,
                }),
                None => drop(begun.insert(thread, (number, start.to_owned()))),
            }
            continue;
        }
        let (began, text) = match rest.strip_prefix("<... ") {
            Some(rest) => {
                let Some((began, start)) = begun.remove(thread) else {
                    continue;
                };
                let (_, end) = rest.split_once(" resumed>").expect("it is resumed");
                (began, start + end)
            }
            None => (number, rest.to_owned()),
        };
        let Some((call, result)) = text.rsplit_once(" = ") else {
            continue;
        };
        let Some((name, inside)) = call.trim_end().split_once('(') else {
            continue;
        };
        let inside = inside.strip_suffix(')').unwrap_or(inside);
        let result = result.split(' ').next().and_then(|text| text.parse().ok());
        calls.push(Call {
            name: name.to_owned(),
            arguments: arguments(inside),
            result: result.unwrap_or(-1),
            began,
        });
    }
    calls
}

/// The disk as the calls change it, and what the process said.
struct Replay<'a> {
    folder: &'a str,
    disk: Disk,
    /// Descriptors of files in the folder; `None` is the folder itself.
    open: HashMap<i64, Option<usize>>,
    acknowledged: Known,
}

impl Replay<'_> {
    /// The name of a path in the folder.
    fn inside(&self, path: &str) -> Option<String> {
        let name = path.strip_prefix(self.folder)?.strip_prefix('/')?;
        assert!(!name.contains('/'), "a store has no folders: {path}");
        Some(name.to_owned())
    }

    fn step(&mut self, call: &Call) {
        let Call {
            name,
            arguments,
            result,
            began,
        } = call;
        if *result < 0 {
            return;
        }
        let number = |at: usize| -> usize { arguments[at].parse().expect("a number") };
        let descriptor = |at: usize| -> i64 { arguments[at].parse().unwrap_or(-1) };
        let file = |replay: &Self| replay.open.get(&descriptor(0)).copied();
        match name.as_str() {
            "open" | "openat" | "creat" => self.opened(call),
            "close" => {
                self.open.remove(&descriptor(0));
            }
            "write" if descriptor(0) == 1 => self.said(&bytes_of(&arguments[1])),
            "write" | "writev" | "pwritev" | "pwritev2" | "copy_file_range" | "sendfile"
            | "msync" | "sync_file_range" | "fallocate" => {
                assert_eq!(file(self), None, "the model has no {name}");
            }
            "pwrite64" => {
                if let Some(Some(inode)) = file(self) {
                    let mut bytes = bytes_of(&arguments[1]);
                    bytes.truncate(*result as usize);
                    let offset = number(3);
                    self.disk
                        .change(inode, *began, Change::Data { offset, bytes });
                }
            }
            "ftruncate" => {
                if let Some(Some(inode)) = file(self) {
                    self.disk.change(inode, *began, Change::Length(number(1)));
                }
            }
            "fsync" | "fdatasync" => match file(self) {
                Some(Some(inode)) => self.disk.sync(inode, *began),
                Some(None) => self.disk.sync_names(*began),
                None => {}
            },
            "rename" => self.moved(*began, &arguments[0], &arguments[1]),
            "renameat" | "renameat2" => self.moved(*began, &arguments[1], &arguments[3]),
            "unlink" | "unlinkat" => {
                let path = path_of(&arguments[usize::from(name == "unlinkat")]);
                if let Some(name) = self.inside(&path) {
                    self.disk.name(*began, Naming::Unlink(name));
                }
            }
            "link" => assert_eq!(self.inside(&path_of(&arguments[1])), None),
            "linkat" => assert_eq!(self.inside(&path_of(&arguments[3])), None),
            _ => panic!("the model has no {name}"),
        }
    }

    fn opened(&mut self, call: &Call) {
        let at = usize::from(call.name == "openat");
        let path = path_of(&call.arguments[at]);
        if path == self.folder {
            self.open.insert(call.result, None);
            return;
        }
        let Some(name) = self.inside(&path) else {
            return;
        };
        let flags = call.arguments.get(at + 1).map_or("", String::as_str);
        let inode = self.disk.open(call.began, &name, flags.contains("O_TRUNC"));
        self.open.insert(call.result, Some(inode));
    }

    fn moved(&mut self, began: usize, from: &str, to: &str) {
        let (from, to) = (self.inside(&path_of(from)), self.inside(&path_of(to)));
        match (from, to) {
            (Some(from), Some(to)) => {
                let inode = self.disk.names[&from];
                self.disk.name(began, Naming::Rename(from, to, inode));
            }
            (None, None) => {}
            other => panic!("the store's files stay in its folder: {other:?}"),
        }
    }

    fn said(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        for line in text.lines() {
            let Some(rest) = line.strip_prefix("@ ") else {
                continue;
            };
            let numbers = rest.split(' ').skip(1).filter_map(|word| word.parse().ok());
            let numbers: Vec<u64> = numbers.collect();
            if rest.starts_with("done ") {
                self.acknowledged.acknowledge(&numbers);
            } else if rest.starts_with("state ") {
                self.acknowledged = Known::found(&numbers);
            }
        }
    }
}

/// Runs the process of `kills` on a store until its `stop`-th operation on a file, and gives its
/// system calls.
fn trace(location: &Path, file: &Path, seed: u64, stop: u64) -> String {
    let mut child = Command::new("strace")
        .args(["-f", "-qq", "-xx", "-s", "100000000", "-e", CALLS, "-o"])
        .arg(file)
        .arg(std::env::current_exe().expect("a test knows its file"))
        .args(["--exact", "kills::the_process_that_is_killed"])
        .args(["--ignored", "--nocapture"])
        .env("JINDOU_KILL_STORE", location)
        .env("JINDOU_KILL_SEED", seed.to_string())
        .env("JINDOU_KILL_AT", stop.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("strace was started before");
    let said = BufReader::new(child.stdout.take().expect("a pipe"));
    let stopped = said
        .lines()
        .map(|line| line.expect("a pipe can be read"))
        .find(|line| line.starts_with("@ stopped") || line.starts_with("@ bad"));
    let calls = || fs::read_to_string(file).expect("strace has written");
    // The process waits for its end, and strace ends with it. Its first thread has its number.
    let process = calls().split(' ').next().map(str::to_owned);
    let killed = Command::new("kill").arg("-9").args(&process).output();
    let killed = killed.expect("kill is there");
    let ended = child.wait_with_output().expect("it was started");
    assert!(
        killed.status.success() && stopped.as_deref() == Some("@ stopped"),
        "{stopped:?}, process {process:?}, {}: {}{}",
        ended.status,
        String::from_utf8_lossy(&ended.stderr),
        String::from_utf8_lossy(&killed.stderr),
    );
    calls()
}

/// Why no trace can be recorded, if none can.
fn no_strace() -> Option<String> {
    let tried = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "true"])
        .stderr(Stdio::null())
        .status();
    match tried {
        Ok(status) if status.success() => None,
        Ok(_) => Some("strace may not trace here".to_owned()),
        Err(error) => Some(format!("strace: {error}")),
    }
}

#[test]
fn each_state_that_a_loss_of_power_leaves_has_all_that_was_acknowledged() {
    if let Some(reason) = no_strace() {
        println!("SKIPPED: states after a loss of power ({reason})");
        return;
    }
    let states = environment("JINDOU_CRASH_STATES", 200);
    let seed = environment("JINDOU_CRASH_SEED", 7);
    println!("seed {seed}");
    let mut random = Random(seed);
    let folder = tempfile::tempdir().expect("there is room");
    let location = folder.path().join("store");
    let mut known = Known::default();
    let (mut opened, mut lost) = (0, 0);
    for round in 0..states.div_ceil(STATES_OF_A_TRACE) {
        if round % TRACES_OF_A_STORE == 0 {
            for name in ["store", "store.backup", "store.old"] {
                let _ = fs::remove_dir_all(folder.path().join(name));
            }
            known = Known::default();
        }
        let disk = Disk::of(&location);
        let stop = 100 + random.below(500);
        let text = trace(&location, &folder.path().join("trace"), random.next(), stop);
        let calls = calls(&text);
        let mut replay = Replay {
            folder: location.to_str().expect("paths are text"),
            disk,
            open: HashMap::new(),
            acknowledged: known,
        };
        let mut moments: Vec<usize> = (0..STATES_OF_A_TRACE)
            .map(|_| random.below(calls.len() as u64) as usize)
            .collect();
        moments.sort_unstable();
        let mut moments = moments.into_iter().peekable();
        for (number, call) in calls.iter().enumerate() {
            replay.step(call);
            while moments.next_if_eq(&number).is_some() {
                let state = folder.path().join("state");
                replay.disk.crash(&mut random, &state);
                let what = format!("seed {seed}, trace {round}, call {number}");
                check(&state, &replay.acknowledged, &what);
                opened += 1;
                lost += u64::from(replay.disk.has_pending_names());
                fs::remove_dir_all(&state).expect("it is there");
            }
        }
        known = replay.acknowledged;
    }
    println!("{opened} states, {lost} of them with names that no sync had covered");
    assert!(opened >= states.min(STATES_OF_A_TRACE));
}

/// What one that only reads finds in a state, which it leaves as it is; nothing if no store had
/// been made yet.
fn read(state: &Path, config: &Config, what: &str) -> Option<Counts> {
    let before = contents(state);
    let shown = match Database::open_to_read(state, config.clone()) {
        Ok(database) => Some(counts(&database).unwrap_or_else(|wrong| panic!("{what}: {wrong}"))),
        Err(EngineError::Store(StoreError::NotAStore { .. })) => None,
        Err(error) => panic!("{what}: {error}; {:?}", crate::names(state)),
    };
    assert!(contents(state) == before, "{what}: reading altered a file");
    shown
}

/// The files of a store but for the one that is locked.
fn contents(state: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = crate::names(state)
        .into_iter()
        .filter(|name| name != "LOCK");
    let content = |name: String| {
        let bytes = fs::read(state.join(&name)).expect("it can be read");
        (name, bytes)
    };
    names.map(content).collect()
}

/// A state opens, and has whole transactions, those that were acknowledged among them.
fn check(state: &Path, acknowledged: &Known, what: &str) {
    let mut config = config();
    config.merge = MergePolicy::never();
    let listed = || crate::names(state);
    let shown = read(state, &config, what);
    let database = Database::open_or_create(state, config)
        .unwrap_or_else(|error| panic!("{what}: {error}; {:?}", listed()));
    let found = counts(&database).unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
    if let Some(shown) = shown {
        assert_eq!(shown, found, "{what}: one that only reads finds the same");
    }
    let has_all = found
        .iter()
        .zip(&acknowledged.counts)
        .all(|(found, told)| found >= told);
    assert!(
        has_all,
        "{what}: {acknowledged:?} were acknowledged, {found:?} are there"
    );
    let snapshot = database.snapshot_number();
    assert!(
        snapshot.0 >= acknowledged.snapshot,
        "{what}: {acknowledged:?} was acknowledged, {snapshot:?} is the latest"
    );
    drop(database);
    Database::verify(state).unwrap_or_else(|error| panic!("{what}: {error}"));
}
