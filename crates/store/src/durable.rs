//! A store that outlives its process: base, checkpoint and log of a directory, together.
//!
//! Opening reads the base, applies the checkpoint (what changed up to a certain log file) and
//! replays the log behind it. A merge makes another base, which becomes current with a checkpoint of
//! what it lacks; ids stay, so that the log goes on. So does that of a load onto data. Only the first
//! load and numbering everything anew replace all three by a new generation.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jindou_model::SnapshotNumber;

use crate::delta::{Replay, ReplayError, Snapshot, Transaction};
use crate::directory::{Current, Directory, FIRST_SNAPSHOT, InUse};
use crate::log::{self, Folder, Fsync, Log, LogOptions, Recovered, Storage, Ticket};
use crate::{Base, History, Identity, Merged, PrefixFile, SideLog, StoreError, verify};

/// Bytes of a transaction that go into one record of the log.
const RECORD_BYTES: usize = 64 << 20;

/// How a directory's folder is reached: tests put faults in between.
pub type OpenStorage = Arc<dyn Fn(&Path) -> Box<dyn Storage> + Send + Sync>;

/// How a store is kept.
///
/// All of its files are written through `storage`; those that never change are read by mapping
/// them.
#[derive(Clone)]
#[non_exhaustive]
pub struct DurabilityOptions {
    /// When a transaction is on the device.
    pub fsync: Fsync,
    /// How the directory's files are reached.
    pub storage: OpenStorage,
}

impl Default for DurabilityOptions {
    fn default() -> Self {
        Self {
            fsync: Fsync::Always,
            storage: Arc::new(|path| Box::new(Folder::new(path))),
        }
    }
}

impl std::fmt::Debug for DurabilityOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DurabilityOptions")
            .field("fsync", &self.fsync)
            .finish_non_exhaustive()
    }
}

impl DurabilityOptions {
    fn log(&self) -> LogOptions {
        LogOptions {
            fsync: self.fsync,
            ..LogOptions::default()
        }
    }
}

/// The files of an open store.
#[derive(Debug)]
pub struct DurableStore {
    directory: Arc<Directory>,
    options: DurabilityOptions,
    current: Current,
    /// The bases of the generation that are needed, by the number of their merge, with the numbers
    /// of their files: that on disk, and that in memory where it is another.
    bases: BTreeMap<u64, BTreeSet<u64>>,
    log: Arc<Log>,
    /// Set once nobody knows which files a later process will find current: what would be written
    /// to some of them might be lost.
    uncertain: Option<(PathBuf, Arc<io::Error>)>,
}

/// What opening a store found in its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovery {
    /// Transactions replayed.
    pub transactions: u64,
    /// Bytes of the log that were read.
    pub bytes: u64,
    /// Bytes at its end that no acknowledged transaction was in.
    pub dropped_bytes: u64,
    /// Transactions that were [given up](History::giving_up).
    pub given_up: u64,
}

/// Puts the records of a transaction together again.
#[derive(Default)]
struct Assembler {
    bytes: Vec<u8>,
    /// They are a whole transaction.
    is_whole: bool,
}

impl Assembler {
    /// The bytes of the transaction that ends with this record, if one does.
    fn add<'a>(&'a mut self, record: &log::Record<'a>) -> Option<&'a [u8]> {
        if std::mem::take(&mut self.is_whole) {
            self.bytes.clear();
        }
        if record.ends_group && self.bytes.is_empty() {
            return Some(record.payload);
        }
        self.bytes.extend_from_slice(record.payload);
        self.is_whole = record.ends_group;
        self.is_whole.then_some(&self.bytes)
    }
}

impl Assembler {
    fn replay(
        &mut self,
        record: &log::Record<'_>,
        (replay, most): (&mut Replay, SnapshotNumber),
        recovery: &mut Recovery,
        log: &Path,
    ) -> Result<(), StoreError> {
        let Some(bytes) = self.add(record) else {
            return Ok(());
        };
        if Transaction::number_of(bytes).is_some_and(|number| number > most) {
            recovery.given_up += 1;
            return Ok(());
        }
        let replayed = Transaction::decode(bytes)
            .map_err(ReplayError::from)
            .and_then(|transaction| replay.add(&transaction));
        replayed.map_err(|error| corrupt(log, &error))?;
        recovery.transactions += 1;
        Ok(())
    }
}

impl DurableStore {
    /// Makes a store of a base in a directory that has none, and gives the snapshot that it begins
    /// with.
    ///
    /// # Errors
    /// What the operating system says; the directory is then as it was.
    /// [`StoreError::Uncertain`] if nobody knows whether it is.
    ///
    /// # Panics
    /// If the directory has a store: [`DurableStore::replace`] goes on from its snapshot number.
    pub fn create(
        mut directory: Directory,
        options: DurabilityOptions,
        base: &Base,
    ) -> Result<(Self, Snapshot), StoreError> {
        directory.write_through((options.storage)(directory.path()));
        directory.begin()?;
        let current = directory.current()?;
        assert!(
            current.generation == 0,
            "a store is begun where there is none"
        );
        let nothing = InUse::nothing();
        directory.remove_leftovers(&nothing);
        let generation = current.generation + 1;
        let written = write_generation(&directory, &options, base, generation);
        let written = written.inspect_err(|_| directory.remove_leftovers(&nothing));
        let (base, log) = written?;
        let next = Current {
            generation,
            merge: base.merges(),
            checkpoint: 0,
            base: base.identity,
            snapshot: FIRST_SNAPSHOT,
        };
        if let Err(failed) = directory.make_current(next) {
            if !failed.is_uncertain {
                directory.remove_leftovers(&nothing);
            }
            return Err(failed.into());
        }
        let store = Self {
            directory: Arc::new(directory),
            options,
            current: next,
            bases: BTreeMap::from([(next.merge, base.files.numbers())]),
            log: Arc::new(log),
            uncertain: None,
        };
        store.abandon();
        Ok((store, Snapshot::of_base(base, generation, next.snapshot)))
    }

    /// Opens the store of a directory at the last transaction in its log.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the name of a file that is not as it was written; [`StoreError::NodePart`] of
    /// the part of a store.
    pub fn open(
        mut directory: Directory,
        options: DurabilityOptions,
    ) -> Result<(Self, Snapshot, Recovery), StoreError> {
        directory.write_through((options.storage)(directory.path()));
        let mut current = directory.current()?;
        let snapshot = snapshot_at(&directory, current)?;
        if let Some(part) = snapshot.base().node_part() {
            return Err(part.refusal(directory.path()));
        }
        // Where `CURRENT` is of a version without numbers, the checkpoint may have a later one.
        current.snapshot = snapshot.number();
        // Not before it is known that what is current is whole; and before the log may need room.
        let numbers = snapshot.base().files.numbers();
        directory.remove_leftovers(&InUse::base(current, numbers.clone()));
        directory.remove_scratch();
        let history = History::read(&directory)?.unwrap_or_default();
        let most = history.most();
        let mut replay = Replay::new(snapshot);
        let mut recovery = Recovery::default();
        let mut assembler = Assembler::default();
        let path = log_path(&directory, current);
        let (log, recovered) = Log::open(
            (options.storage)(directory.path()),
            options.log(),
            current.generation,
            current.base,
            current.checkpoint + 1,
            |record| assembler.replay(&record, (&mut replay, most), &mut recovery, &path),
        )?;
        note(&mut recovery, &recovered);
        let mut store = Self {
            directory: Arc::new(directory),
            options,
            current,
            bases: BTreeMap::from([(current.merge, numbers)]),
            log: Arc::new(log),
            uncertain: None,
        };
        let snapshot = replay.finish();
        if most < SnapshotNumber(u64::MAX) {
            store.give_up(&snapshot, &history)?;
        }
        Ok((store, snapshot, recovery))
    }

    /// Removes what the log has after a snapshot, which is the last one that the history is to have.
    fn give_up(&mut self, snapshot: &Snapshot, history: &History) -> Result<(), StoreError> {
        // A checkpoint takes the place of the log: it is there as a whole or not at all, and then this is done again.
        if let Some(checkpoint) = self.begin_checkpoint(snapshot.clone())? {
            Self::write_checkpoint(&self.directory, &checkpoint)?;
            self.finish_checkpoint(&checkpoint)?;
        }
        history.given_up().write(&self.directory)
    }

    /// The store of a directory at the last transaction in its log, to be read only: alters nothing,
    /// and needs no right to. Another process may write the store meanwhile, and the snapshot is one
    /// that it had: the files of each stay what they are, though their names may go.
    ///
    /// # Errors
    /// As [`DurableStore::open`].
    pub fn read(
        directory: &Directory,
        options: &DurabilityOptions,
    ) -> Result<(Snapshot, Recovery), StoreError> {
        let storage = (options.storage)(directory.path());
        unmoved(directory, |current| {
            let snapshot = snapshot_at(directory, current)?;
            read_log(directory, &*storage, current, snapshot)
        })
    }

    /// Reads all files of the store in a directory and alters nothing: every checksum, the
    /// dictionary both ways, and whether all that is derived from the edges says the same as they
    /// do. Reads every edge several times; memory holds a number for each characteristic set.
    ///
    /// # Errors
    /// As [`DurableStore::open`].
    pub fn verify(directory: &Directory) -> Result<(Snapshot, Recovery), StoreError> {
        let storage = Folder::new(directory.path());
        let (snapshot, recovery) = unmoved(directory, |current| {
            let snapshot = snapshot_at(directory, current)?;
            read_log(directory, &storage, current, snapshot)
        })?;
        verify::base(snapshot.base(), directory.path())?;
        verify::counts(&snapshot, directory.path())?;
        snapshot.base().check()?;
        Ok((snapshot, recovery))
    }

    /// The directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The number of the generation, within which ids mean the same.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.current.generation
    }

    /// The log that transactions go to now.
    #[must_use]
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Bytes of the log since the last checkpoint or merge.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// Appends a transaction to the log. It is lasting once the ticket is synced.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`], after which the log is as it was; [`StoreError::LogFailed`] and
    /// [`StoreError::Uncertain`], after which nothing more is taken.
    pub fn append(&self, transaction: &Transaction) -> Result<Ticket, StoreError> {
        let mut bytes = Vec::new();
        transaction.encode(&mut bytes);
        self.append_encoded(&bytes)
    }

    /// Appends the [bytes](Transaction::encode) of a transaction to the log, as [`DurableStore::append`] does.
    ///
    /// # Errors
    /// As [`DurableStore::append`].
    ///
    /// # Panics
    /// If there are none. Others that are no transaction keep the store from being opened.
    pub fn append_encoded(&self, transaction: &[u8]) -> Result<Ticket, StoreError> {
        self.check()?;
        append(&self.log, transaction)
    }

    /// The snapshot of the last checkpoint or base: the log has all transactions after it.
    #[must_use]
    pub fn checkpointed(&self) -> SnapshotNumber {
        self.current.snapshot
    }

    /// Hands out the [bytes](Transaction::encode) of the transactions that a log had when this was called, in
    /// order, until `deliver` ends it. The last of them may be on their way to the device.
    ///
    /// Costs a pass over the log up to there.
    ///
    /// # Errors
    /// As [`Log::read_back`].
    pub fn logged(
        log: &Log,
        mut deliver: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut assembler = Assembler::default();
        let read = log.read_back(|record| match assembler.add(&record).map(&mut deliver) {
            Some(ControlFlow::Break(())) => Err(Stopped::Wanted),
            Some(ControlFlow::Continue(())) | None => Ok(()),
        });
        match read {
            Ok(()) | Err(Stopped::Wanted) => Ok(()),
            Err(Stopped::Failed(error)) => Err(error),
        }
    }

    fn check(&self) -> Result<(), StoreError> {
        match &self.uncertain {
            None => Ok(()),
            Some((path, source)) => Err(StoreError::Uncertain {
                path: path.clone(),
                source: Arc::clone(source),
            }),
        }
    }

    /// Begins a checkpoint: transactions appended from now on come after it. `snapshot` must be
    /// that of the last transaction appended; its base becomes current with the checkpoint. `None`
    /// if that is current, and there was no transaction since the last checkpoint.
    ///
    /// # Errors
    /// As [`DurableStore::append`].
    pub fn begin_checkpoint(
        &mut self,
        snapshot: Snapshot,
    ) -> Result<Option<Checkpoint>, StoreError> {
        self.check()?;
        let next = self.log.start_next_file()?;
        let at = Current {
            merge: snapshot.base().files.merge,
            checkpoint: next - 1,
            snapshot: snapshot.number(),
            ..self.current
        };
        let place = |at: &Current| (at.merge, at.checkpoint);
        let is_new = place(&at) != place(&self.current);
        Ok(is_new.then_some(Checkpoint { snapshot, at }))
    }

    /// Writes the files of a checkpoint; meant for a thread that holds up nobody.
    ///
    /// # Errors
    /// What the operating system says; the store is as it was.
    pub fn write_checkpoint(
        directory: &Directory,
        checkpoint: &Checkpoint,
    ) -> Result<(), StoreError> {
        let snapshot = &checkpoint.snapshot;
        if checkpoint.at.checkpoint == 0 {
            assert!(snapshot.is_merged(), "what changed is in the log");
            return Ok(());
        }
        let mut bytes = Vec::new();
        Transaction::from_base(snapshot).encode(&mut bytes);
        snapshot.base().check()?;
        directory.write_changes(checkpoint.at, &bytes)
    }

    /// Makes a checkpoint current whose files were written, and removes what it covers.
    ///
    /// # Errors
    /// What the operating system says: the store is as it was. [`StoreError::Uncertain`]: nothing
    /// more is taken.
    pub fn finish_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        self.check()?;
        // A generation of its own covers more.
        if checkpoint.at.generation != self.current.generation {
            self.directory.remove_changes(checkpoint.at);
            return Ok(());
        }
        self.make_current(checkpoint.at)?;
        self.current = checkpoint.at;
        self.bases.retain(|merge, _| *merge >= checkpoint.at.merge);
        self.abandon();
        // What stays of the log goes when the store is opened next, or with the next checkpoint.
        let _ = self.log.remove_before(checkpoint.at.checkpoint + 1);
        Ok(())
    }

    fn make_current(&mut self, next: Current) -> Result<(), StoreError> {
        assert!(
            next.snapshot >= self.current.snapshot,
            "snapshot numbers do not decrease"
        );
        self.directory.make_current(next).map_err(|failed| {
            let is_uncertain = failed.is_uncertain;
            let error = StoreError::from(failed);
            if let (true, StoreError::Uncertain { path, source }) = (is_uncertain, &error) {
                self.uncertain = Some((path.clone(), Arc::clone(source)));
            }
            error
        })
    }

    /// Removes what a checkpoint or a base left that was not finished, so that it takes no space.
    /// Nobody may be writing one meanwhile.
    pub fn abandon(&self) {
        // Otherwise it may be what a later process finds current.
        if self.uncertain.is_none() {
            let in_use = InUse::base(self.current, BTreeSet::new());
            let with = |in_use: InUse, (merge, numbers): (&u64, &BTreeSet<u64>)| {
                in_use.with(*merge, numbers)
            };
            let in_use = self.bases.iter().fold(in_use, with);
            self.directory.remove_leftovers(&in_use);
        }
    }

    /// The directory, to write a checkpoint or a base with.
    #[must_use]
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Writes a base beside the current one, and maps it; nothing is replaced yet. It gets an identity of its own, unless it
    /// is a node's part, which has that of the whole.
    ///
    /// # Errors
    /// What the operating system says; the store is as it was.
    pub fn write_next_base(
        directory: &Directory,
        base: &Base,
        generation: u64,
    ) -> Result<Base, StoreError> {
        // The parts that nodes load are those of one base.
        let identity = match base.node_part() {
            Some(_) => base.identity,
            None => Identity::random(),
        };
        directory.write_base(base, generation, identity)
    }

    /// Writes what a merge made new, and maps it; nothing is replaced yet. The base that is returned
    /// becomes current with the next checkpoint of a snapshot of it: until then the one before and
    /// the log hold all that it does.
    ///
    /// # Errors
    /// What the operating system says; the store is as it was.
    pub fn write_merged(directory: &Directory, merged: Merged) -> Result<Merged, StoreError> {
        let (generation, identity) = (merged.from.generation(), merged.base.identity);
        let base = directory.write_base(&merged.base, generation, identity)?;
        Ok(Merged { base, ..merged })
    }

    /// True if a base is the one on disk.
    #[must_use]
    pub fn is_current(&self, base: &Base) -> bool {
        base.files.merge == self.current.merge
    }

    /// Notes that snapshots go on from a base whose files were written: these stay.
    pub fn keep(&mut self, base: &Base) {
        self.bases.insert(base.files.merge, base.files.numbers());
    }

    /// Makes a snapshot of a base that was written current, with a checkpoint of what the base lacks:
    /// both at once, so that what the base has more than the one before need not be in the log.
    /// Nothing may be appended meanwhile.
    ///
    /// Costs what the base lacks.
    ///
    /// # Errors
    /// As [`DurableStore::replace`].
    ///
    /// # Panics
    /// If the base is current already.
    pub fn advance(&mut self, to: Snapshot) -> Result<(), StoreError> {
        let merge = to.base().files.merge;
        assert!(!self.is_current(to.base()), "a base becomes current once");
        self.keep(to.base());
        let begun = self.begin_checkpoint(to);
        let done = begun.and_then(|checkpoint| {
            let checkpoint = checkpoint.expect("another base is another checkpoint");
            Self::write_checkpoint(&self.directory, &checkpoint)?;
            self.finish_checkpoint(&checkpoint)
        });
        if done.is_err() {
            self.bases.remove(&merge);
        }
        done
    }

    /// Makes a generation current whose base was written and is `base`, a snapshot of this number,
    /// with a log of its own.
    ///
    /// # Errors
    /// What the operating system says: the store is as it was. [`StoreError::Uncertain`]: nothing
    /// more is taken.
    pub fn replace(
        &mut self,
        generation: u64,
        (base, number): (&Base, SnapshotNumber),
    ) -> Result<(), StoreError> {
        assert!(
            generation > self.current.generation,
            "a generation is replaced by a later one"
        );
        self.check()?;
        let next = Current {
            generation,
            merge: base.merges(),
            checkpoint: 0,
            base: base.identity,
            snapshot: number,
        };
        let log = new_log(
            &self.directory,
            &self.options,
            (generation, base.identity),
            &[],
        )?;
        self.make_current(next)?;
        self.current = next;
        self.bases = BTreeMap::from([(next.merge, base.files.numbers())]);
        self.log = Arc::new(log);
        self.abandon();
        Ok(())
    }

    /// Writes a store of a base, a snapshot of this number, into a directory that has none.
    ///
    /// # Errors
    /// What the operating system says; part of the files may then be in the directory.
    pub fn write_new(
        directory: &Directory,
        base: &Base,
        number: SnapshotNumber,
    ) -> Result<(), StoreError> {
        directory.begin()?;
        let options = DurabilityOptions::default();
        let (base, log) = write_generation(directory, &options, base, 1)?;
        log.close()?;
        Ok(directory.make_current(Current {
            generation: 1,
            merge: base.merges(),
            checkpoint: 0,
            base: base.identity,
            snapshot: number,
        })?)
    }

    /// True if a snapshot is upon the base that the files of its store say is current, or a later one:
    /// the files of an earlier one may be gone. Neither a merge nor a checkpoint may run meanwhile.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn is_upon_current(directory: &Directory, snapshot: &Snapshot) -> Result<bool, StoreError> {
        let current = directory.current()?;
        let base = (snapshot.generation(), snapshot.base().files.merge);
        Ok((current.generation, current.merge) <= base)
    }

    /// Writes a store of its own into another directory that holds what `snapshot`, one of the
    /// current generation, does. Files that never change are linked where that is possible, else
    /// copied. Neither a merge nor a checkpoint may run meanwhile; transactions may.
    ///
    /// Costs the changes since the last merge, and the base where it must be copied.
    ///
    /// # Errors
    /// What the operating system says; part of the files may then be in the other directory.
    pub fn copy(
        from: &Directory,
        snapshot: &Snapshot,
        to: &Directory,
    ) -> Result<Copied, StoreError> {
        to.begin()?;
        let names = snapshot.base().files.names(snapshot.generation());
        let is_linked = from.link_or_copy(&names, to)?;
        let transaction = Transaction::from_base(snapshot);
        // Also that what was linked or copied is whole.
        snapshot.base().check()?;
        let transactions = Vec::from_iter((!transaction.is_empty()).then_some(transaction));
        go_on_in(to, snapshot, &transactions)?;
        Ok(Copied { is_linked })
    }

    /// Writes a part of the base of a snapshot that has nothing more into another directory, as a store of the same
    /// snapshot, with its prefixes and streams.
    ///
    /// # Errors
    /// As [`DurableStore::copy`].
    pub(crate) fn write_part(
        from: &Directory,
        snapshot: &Snapshot,
        part: &Base,
        to: &Directory,
    ) -> Result<(), StoreError> {
        let generation = snapshot.generation();
        to.begin()?;
        PrefixFile::copy(from, to)?;
        SideLog::copy(from, to)?;
        let written = to.write_base(part, generation, snapshot.base().identity)?;
        snapshot.base().check()?;
        written.check()?;
        go_on_in(to, snapshot, &[])
    }
}

/// Makes the base of a snapshot current in another directory that has its files, with a log of these transactions.
/// The base is the same one and keeps its identity.
fn go_on_in(
    to: &Directory,
    snapshot: &Snapshot,
    transactions: &[Transaction],
) -> Result<(), StoreError> {
    let (generation, base) = (snapshot.generation(), snapshot.base());
    let options = DurabilityOptions::default();
    new_log(to, &options, (generation, base.identity), transactions)?.close()?;
    Ok(to.make_current(Current {
        generation,
        merge: base.files.merge,
        checkpoint: 0,
        base: base.identity,
        snapshot: snapshot.number(),
    })?)
}

/// How a store was copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// The files of the base are the same ones under a second name.
    pub is_linked: bool,
}

/// Why a log is read no further.
enum Stopped {
    Wanted,
    Failed(StoreError),
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// A checkpoint under way.
#[derive(Clone)]
pub struct Checkpoint {
    snapshot: Snapshot,
    at: Current,
}

impl Checkpoint {
    /// The snapshot that it is of.
    #[must_use]
    pub fn number(&self) -> SnapshotNumber {
        self.snapshot.number()
    }
}

/// The files of a log, for messages: which of them a transaction came from is not known.
fn log_path(directory: &Directory, current: Current) -> PathBuf {
    let generation = current.generation;
    directory.path().join(format!("log-{generation}-*.jnd"))
}

fn corrupt(path: &Path, error: &ReplayError) -> StoreError {
    StoreError::Corrupt {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

fn note(recovery: &mut Recovery, recovered: &Recovered) {
    recovery.bytes = recovered.bytes;
    recovery.dropped_bytes = recovered.dropped_bytes;
}

/// The snapshot of a base and its checkpoint.
/// Attempts to read a store that another process writes: each but the first follows a change of its
/// files, or a record that was half written.
const MOST_ATTEMPTS: u32 = 20;

/// Reads what is current. Where another process writes the store meanwhile, files may go before they
/// are opened, and a record may be read of which a part is not written yet: then it begins anew.
fn unmoved<T>(
    directory: &Directory,
    mut read: impl FnMut(Current) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    for _ in 1..MOST_ATTEMPTS {
        let current = directory.current()?;
        let is_written = || !directory.is_locked() && directory.has_writer();
        // A writer may end while this reads.
        let was_written = is_written();
        match read(current) {
            Err(_) if was_written || is_written() || directory.current()? != current => {}
            done => return done,
        }
    }
    read(directory.current()?)
}

fn snapshot_at(directory: &Directory, current: Current) -> Result<Snapshot, StoreError> {
    let base = directory.read_base(current)?;
    if base.identity != current.base {
        return Err(directory.foreign_base(current, base.identity));
    }
    let snapshot = Snapshot::of_base(base, current.generation, current.snapshot);
    if current.checkpoint == 0 {
        return Ok(snapshot);
    }
    let bytes = directory.read_changes(current)?;
    let mut replay = Replay::new(snapshot);
    let added = Transaction::decode(bytes.as_slice())
        .map_err(ReplayError::from)
        .and_then(|transaction| replay.add(&transaction));
    added.map_err(|error| corrupt(&directory.changes_file(current), &error))?;
    if bytes.is_damaged() {
        return Err(StoreError::lost_bytes(&directory.changes_file(current)));
    }
    Ok(replay.finish())
}

/// The snapshot with the transactions of the log, which stays as it is.
fn read_log(
    directory: &Directory,
    storage: &dyn Storage,
    current: Current,
    snapshot: Snapshot,
) -> Result<(Snapshot, Recovery), StoreError> {
    let most = History::read(directory)?.unwrap_or_default().most();
    let mut replay = Replay::new(snapshot);
    let mut recovery = Recovery::default();
    let mut assembler = Assembler::default();
    let path = log_path(directory, current);
    let recovered = log::read(
        storage,
        current.generation,
        current.base,
        current.checkpoint + 1,
        |record| assembler.replay(&record, (&mut replay, most), &mut recovery, &path),
    )?;
    note(&mut recovery, &recovered);
    Ok((replay.finish(), recovery))
}

fn append(log: &Log, transaction: &[u8]) -> Result<Ticket, StoreError> {
    let mut pieces = transaction.chunks(RECORD_BYTES).peekable();
    let mut group = log.group()?;
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return group.commit(piece);
        }
        group = group.append(piece)?;
    }
    unreachable!("a transaction has bytes")
}

fn new_log(
    directory: &Directory,
    options: &DurabilityOptions,
    (generation, base): (u64, Identity),
    transactions: &[Transaction],
) -> Result<Log, StoreError> {
    let storage = (options.storage)(directory.path());
    log::remove_log(&*storage, generation)?;
    let log = Log::create(storage, options.log(), generation, base)?;
    let mut last = None;
    for transaction in transactions {
        let mut bytes = Vec::new();
        transaction.encode(&mut bytes);
        last = Some(append(&log, &bytes)?);
    }
    if let Some(ticket) = last {
        log.sync(ticket)?;
    }
    Ok(log)
}

fn write_generation(
    directory: &Directory,
    options: &DurabilityOptions,
    base: &Base,
    generation: u64,
) -> Result<(Base, Log), StoreError> {
    let base = DurableStore::write_next_base(directory, base, generation)?;
    let log = new_log(directory, options, (generation, base.identity), &[])?;
    Ok((base, log))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::build;

    fn number_on_opening(location: &Path) -> (DurableStore, SnapshotNumber) {
        let directory = Directory::open(location).expect("it is a store");
        let opened = DurableStore::open(directory, DurabilityOptions::default());
        let (store, snapshot, _) = opened.expect("the store is whole");
        (store, snapshot.number())
    }

    #[test]
    fn a_snapshot_keeps_its_number_behind_checkpoints_and_bases() {
        let folder = tempfile::tempdir().expect("there is room");
        let location = folder.path().join("store");
        let directory = Directory::create(&location).expect("there is room");
        let base = build(Vec::new(), 0).expect("it is empty");
        let (mut store, mut snapshot) =
            DurableStore::create(directory, DurabilityOptions::default(), &base).expect("room");
        assert_eq!(snapshot.number(), FIRST_SNAPSHOT);
        for number in 2..=5 {
            let mut next = snapshot.clone();
            next.set_number(SnapshotNumber(number));
            let ticket = store.append(&Transaction::between(&snapshot, &next, Vec::new()));
            store.log().sync(ticket.expect("room")).expect("room");
            snapshot = next;
            if number == 3 {
                let begun = store.begin_checkpoint(snapshot.clone()).expect("room");
                let begun = begun.expect("there were transactions");
                DurableStore::write_checkpoint(store.directory(), &begun).expect("room");
                store.finish_checkpoint(&begun).expect("room");
            }
        }
        drop(store);
        let (mut store, number) = number_on_opening(&location);
        assert_eq!(number, SnapshotNumber(5));
        assert_eq!(store.current.snapshot, SnapshotNumber(3));
        // Behind a base without a log, too.
        let next = DurableStore::write_next_base(store.directory(), &base, 2).expect("room");
        store.replace(2, (&next, number)).expect("room");
        drop(store);
        assert_eq!(number_on_opening(&location).1, number);
    }
}
