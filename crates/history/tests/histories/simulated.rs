//! What does a database with one mistake answer to several clients at once?
//!
//! A database of versions with numbers, played in one thread: a seed decides which client takes its next step.

use std::collections::HashMap;

use jindou_history::workload::{Mix, Request, Workload, WorkloadConfig};
use jindou_history::{Key, Kind, Operation, Outcome, Random, Value};

/// What the database does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Nothing,
    /// Reads see a state of some time ago.
    OldSnapshot,
    /// Every other client reads a copy that lags.
    StaleReplica,
    /// Some writes are acknowledged and not made.
    LostWrite,
    /// Some writes are made and then taken back.
    DirtyAbort,
    /// The values of one write are made one after the other.
    TornWrite,
    /// What reads and writes does not look whether what it read is still there.
    UncheckedUpdate,
    /// What reads and writes only looks whether what it writes is still as it was: snapshot isolation.
    WriteSkew,
}

/// What is played.
#[derive(Clone, Debug)]
pub(crate) struct Game {
    pub(crate) seed: u64,
    pub(crate) fault: Fault,
    pub(crate) mix: Mix,
    pub(crate) keys: u32,
    pub(crate) clients: u32,
    pub(crate) operations: usize,
    /// Operations in a thousand of which the client hears nothing, and that fail.
    pub(crate) unknown_per_mille: u32,
    pub(crate) failed_per_mille: u32,
}

impl Game {
    pub(crate) fn new(seed: u64, fault: Fault) -> Self {
        Self {
            seed,
            fault,
            mix: Mix::LISTS,
            keys: 5,
            clients: 6,
            operations: 400,
            unknown_per_mille: 30,
            failed_per_mille: 30,
        }
    }
}

/// The history, which ends with correct reads of all keys.
pub(crate) struct Played {
    pub(crate) history: Vec<Operation>,
    pub(crate) finals_from: u64,
}

impl Played {
    /// The history without snapshot numbers, for what is to be found without them.
    pub(crate) fn without_numbers(mut self) -> Self {
        for operation in &mut self.history {
            if let Outcome::Done { snapshot } = &mut operation.outcome {
                *snapshot = None;
            }
        }
        self
    }
}

/// Values of each key with the number at which each was made.
#[derive(Default)]
pub(crate) struct Versions {
    lists: HashMap<Key, Vec<(u64, Value)>>,
    registers: HashMap<Key, Vec<(u64, Value)>>,
    pub(crate) number: u64,
}

impl Versions {
    fn list(&self, key: Key, snapshot: u64) -> Vec<Value> {
        let all = self.lists.get(&key).into_iter().flatten();
        let shown = all.filter(|(number, _)| *number <= snapshot);
        shown.map(|(_, value)| *value).collect()
    }

    fn register(&self, key: Key, snapshot: u64) -> Option<Value> {
        let all = self.registers.get(&key)?.iter();
        let mut shown = all.filter(|(number, _)| *number <= snapshot);
        shown.next_back().map(|(_, value)| *value)
    }

    /// The kind with what it reads at a snapshot.
    pub(crate) fn read(&self, kind: &Kind, snapshot: u64) -> Kind {
        let lists = |keys: &[Key]| keys.iter().map(|key| self.list(*key, snapshot)).collect();
        let value = |key: &Key| self.register(*key, snapshot);
        let mut kind = kind.clone();
        match &mut kind {
            Kind::Read { keys, lists: read } => *read = lists(keys),
            Kind::ReadAppend {
                keys, lists: read, ..
            } => *read = Some(lists(keys)),
            Kind::ReadRegister { keys, values: read } => *read = keys.iter().map(value).collect(),
            Kind::ReadWrite {
                keys, values: read, ..
            } => *read = Some(keys.iter().map(value).collect()),
            Kind::Append { .. } | Kind::Write { .. } => {}
        }
        kind
    }

    /// Makes one value at the number that is current.
    fn make(&mut self, write: Write) {
        let family = match write.is_list {
            true => &mut self.lists,
            false => &mut self.registers,
        };
        let versions = family.entry(write.key).or_default();
        versions.push((self.number, write.value));
    }

    fn take_back(&mut self, write: Write) {
        let family = match write.is_list {
            true => &mut self.lists,
            false => &mut self.registers,
        };
        let versions = family.entry(write.key).or_default();
        versions.retain(|(_, value)| *value != write.value);
    }

    fn changed_since(&self, write: Write, snapshot: u64) -> bool {
        let family = match write.is_list {
            true => &self.lists,
            false => &self.registers,
        };
        let last = family.get(&write.key).and_then(|versions| versions.last());
        last.is_some_and(|(number, _)| *number > snapshot)
    }

    /// Makes all values of an operation, at a number of their own.
    pub(crate) fn commit(&mut self, kind: &Kind) -> u64 {
        self.number += 1;
        writes(kind).into_iter().for_each(|write| self.make(write));
        self.number
    }
}

#[derive(Clone, Copy)]
struct Write {
    is_list: bool,
    key: Key,
    value: Value,
}

fn writes(kind: &Kind) -> Vec<Write> {
    let (is_list, written) = match kind {
        Kind::Append { appends } | Kind::ReadAppend { appends, .. } => (true, &appends[..]),
        Kind::Write { writes } | Kind::ReadWrite { writes, .. } => (false, &writes[..]),
        Kind::Read { .. } | Kind::ReadRegister { .. } => (true, &[][..]),
    };
    let write = |&(key, value): &(Key, Value)| Write {
        is_list,
        key,
        value,
    };
    written.iter().map(write).collect()
}

/// How far an operation is.
enum Stage {
    Begun,
    /// It has read, at this number.
    Read(u64),
    /// These values are still to be made.
    Making(Vec<Write>),
    /// These values are to be taken back.
    TakingBack(Vec<Write>),
    Finished(Outcome),
}

struct Running {
    begun: u64,
    kind: Kind,
    stage: Stage,
}

struct Play {
    game: Game,
    random: Random,
    versions: Versions,
    /// What the copy that lags has.
    replica: u64,
    clock: u64,
}

/// Plays a game to its end.
pub(crate) fn play(game: &Game) -> Played {
    let config = WorkloadConfig {
        keys: game.keys,
        writes_per_key: 12,
        keys_per_operation: 3,
        mix: game.mix,
    };
    let mut workload = Workload::new(game.seed, config);
    let mut play = Play {
        game: game.clone(),
        random: Random::new(game.seed ^ 0x5eed),
        versions: Versions::default(),
        replica: 0,
        clock: 0,
    };
    let mut running: Vec<Option<Running>> = (0..game.clients).map(|_| None).collect();
    let mut history = Vec::new();
    let mut begun = 0;
    while begun < game.operations || running.iter().any(Option::is_some) {
        let client = play.random.below(u64::from(game.clients)) as usize;
        play.tick();
        match running[client].take() {
            None if begun < game.operations => {
                begun += 1;
                running[client] = Some(play.begin(workload.request()));
            }
            None => {}
            Some(operation) => match play.step(client, operation) {
                Ok(done) => history.push(done),
                Err(operation) => running[client] = Some(operation),
            },
        }
    }
    play.tick();
    let finals_from = play.clock;
    for request in workload.finals() {
        history.push(play.read_last(&request));
    }
    Played {
        history,
        finals_from,
    }
}

impl Play {
    fn tick(&mut self) {
        self.clock += 1 + self.random.below(20);
        if self.random.chance(150) {
            self.replica = self.versions.number;
        }
    }

    fn begin(&mut self, request: Request) -> Running {
        Running {
            begun: self.clock,
            kind: request.into_kind(),
            stage: Stage::Begun,
        }
    }

    fn read_last(&mut self, request: &Request) -> Operation {
        let begun = self.clock;
        self.tick();
        let snapshot = Some(self.versions.number);
        let operation = Operation {
            client: self.game.clients,
            begun,
            ended: Some(self.clock),
            kind: self.versions.read(request.kind(), self.versions.number),
            outcome: Outcome::Done { snapshot },
        };
        self.tick();
        operation
    }

    /// The next step of an operation; `Ok` if that was its last.
    fn step(&mut self, client: usize, mut running: Running) -> Result<Operation, Running> {
        running.stage = match running.stage {
            Stage::Begun => {
                let snapshot = self.snapshot(client);
                running.kind = self.versions.read(&running.kind, snapshot);
                Stage::Read(snapshot)
            }
            Stage::Read(snapshot) => self.commit(snapshot, &mut running.kind),
            Stage::Making(mut writes) => {
                self.versions.make(writes.remove(0));
                match writes.is_empty() {
                    true => self.done(),
                    false => Stage::Making(writes),
                }
            }
            Stage::TakingBack(writes) => {
                let take_back = |write| self.versions.take_back(write);
                writes.into_iter().for_each(take_back);
                Stage::Finished(Outcome::Failed)
            }
            Stage::Finished(outcome) => {
                return Ok(self.end(client, running.begun, running.kind, outcome));
            }
        };
        Err(running)
    }

    fn end(&self, client: usize, begun: u64, kind: Kind, outcome: Outcome) -> Operation {
        let mut kind = kind;
        if !matches!(outcome, Outcome::Done { .. }) {
            forget_reads(&mut kind);
        }
        Operation {
            client: client as u32,
            begun,
            ended: Some(self.clock),
            kind,
            outcome,
        }
    }

    /// The number at which an operation reads.
    fn snapshot(&mut self, client: usize) -> u64 {
        let current = self.versions.number;
        match self.game.fault {
            Fault::OldSnapshot => current.saturating_sub(self.random.below(6)),
            Fault::StaleReplica if client % 2 == 1 => self.replica,
            _ => current,
        }
    }

    fn done(&self) -> Stage {
        let snapshot = Some(self.versions.number);
        Stage::Finished(Outcome::Done { snapshot })
    }

    fn commit(&mut self, snapshot: u64, kind: &mut Kind) -> Stage {
        let to_make = writes(kind);
        if to_make.is_empty() {
            let snapshot = Some(snapshot);
            return Stage::Finished(Outcome::Done { snapshot });
        }
        if self.random.chance(self.game.failed_per_mille) {
            return Stage::Finished(Outcome::Failed);
        }
        match self.game.fault {
            Fault::LostWrite if self.random.chance(50) => {
                self.versions.number += 1;
                *kind = self.versions.read(kind, self.versions.number);
                return self.done();
            }
            Fault::TornWrite => {
                *kind = self.versions.read(kind, self.versions.number);
                self.versions.number += 1;
                return Stage::Making(to_make);
            }
            Fault::DirtyAbort if self.random.chance(200) => {
                self.versions.commit(kind);
                return Stage::TakingBack(to_make);
            }
            Fault::WriteSkew => {
                let changed = |write: &Write| self.versions.changed_since(*write, snapshot);
                if to_make.iter().any(changed) {
                    return Stage::Finished(Outcome::Failed);
                }
            }
            Fault::UncheckedUpdate => {}
            _ => *kind = self.versions.read(kind, self.versions.number),
        }
        if self.random.chance(self.game.unknown_per_mille) {
            if self.random.chance(500) {
                self.versions.commit(kind);
            }
            return Stage::Finished(Outcome::Unknown);
        }
        self.versions.commit(kind);
        self.done()
    }
}

/// What a client that hears nothing does not know.
fn forget_reads(kind: &mut Kind) {
    match kind {
        Kind::Read { lists, .. } => lists.clear(),
        Kind::ReadRegister { values, .. } => values.clear(),
        Kind::ReadAppend { lists, .. } => *lists = None,
        Kind::ReadWrite { values, .. } => *values = None,
        Kind::Append { .. } | Kind::Write { .. } => {}
    }
}
