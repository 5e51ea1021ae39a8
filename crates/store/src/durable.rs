//! A store that outlives its process: base, checkpoint and log of a directory, together.
//!
//! Opening reads the base, applies the checkpoint (what changed up to a certain log file) and
//! replays the log behind it. A merge replaces all three by a new generation.

use std::path::Path;
use std::sync::Arc;

use jindou_model::SnapshotNumber;

use crate::delta::{Replay, ReplayError, Snapshot, Transaction};
use crate::directory::{Current, Directory};
use crate::log::{self, Folder, Fsync, Log, LogOptions, Recovered, Storage, Ticket};
use crate::{Base, StoreError};

/// Bytes of a transaction that go into one record of the log.
const RECORD_BYTES: usize = 64 << 20;

/// How a directory's folder is reached: tests put faults in between.
pub type OpenStorage = Arc<dyn Fn(&Path) -> Box<dyn Storage> + Send + Sync>;

/// How a store is kept.
#[derive(Clone)]
#[non_exhaustive]
pub struct DurabilityOptions {
    /// When a transaction is on the device.
    pub fsync: Fsync,
    /// How the log's files are reached.
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
    log: Arc<Log>,
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
}

/// Puts the records of a transaction together again.
#[derive(Default)]
struct Assembler {
    bytes: Vec<u8>,
}

impl Assembler {
    /// The transaction that ends with this record, if one does.
    fn add(
        &mut self,
        record: &log::Record<'_>,
    ) -> Result<Option<Transaction>, crate::TransactionError> {
        if !record.ends_group {
            self.bytes.extend_from_slice(record.payload);
            return Ok(None);
        }
        if self.bytes.is_empty() {
            return Transaction::decode(record.payload).map(Some);
        }
        self.bytes.extend_from_slice(record.payload);
        let transaction = Transaction::decode(&self.bytes)?;
        self.bytes.clear();
        Ok(Some(transaction))
    }
}

impl Assembler {
    fn replay(
        &mut self,
        record: &log::Record<'_>,
        replay: &mut Replay,
        recovery: &mut Recovery,
        folder: &Path,
    ) -> Result<(), StoreError> {
        let replayed = match self.add(record) {
            Ok(Some(transaction)) => {
                recovery.transactions += 1;
                replay.add(&transaction)
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error.into()),
        };
        replayed.map_err(|error| corrupt(&folder.join(LOG), &error))
    }
}

impl DurableStore {
    /// Makes a store of a base in a directory, in place of the one that is there.
    ///
    /// # Errors
    /// What the operating system says; the directory is then as it was.
    pub fn create(
        directory: Directory,
        options: DurabilityOptions,
        base: &Base,
    ) -> Result<(Self, Base), StoreError> {
        let current = directory.current()?;
        let next = Current {
            generation: current.generation + 1,
            checkpoint: 0,
        };
        let (base, log) = write_generation(&directory, &options, base, next, &[])?;
        directory.make_current(next)?;
        directory.remove_leftovers(next)?;
        let store = Self {
            directory: Arc::new(directory),
            options,
            current: next,
            log: Arc::new(log),
        };
        Ok((store, base))
    }

    /// Opens the store of a directory at the last transaction in its log.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the name of a file that is not as it was written.
    pub fn open(
        directory: Directory,
        options: DurabilityOptions,
    ) -> Result<(Self, Snapshot, Recovery), StoreError> {
        let current = directory.current()?;
        directory.remove_leftovers(current)?;
        let storage = (options.storage)(directory.path());
        let mut replay = Replay::new(snapshot_at(&directory, current)?);
        let mut recovery = Recovery::default();
        let mut assembler = Assembler::default();
        let (log, recovered) = Log::open(
            storage,
            options.log(),
            current.generation,
            current.checkpoint + 1,
            |record| assembler.replay(&record, &mut replay, &mut recovery, directory.path()),
        )?;
        note(&mut recovery, &recovered);
        let store = Self {
            directory: Arc::new(directory),
            options,
            current,
            log: Arc::new(log),
        };
        Ok((store, replay.finish(), recovery))
    }

    /// Reads all files of the store in a directory and alters nothing.
    ///
    /// # Errors
    /// As [`DurableStore::open`].
    pub fn verify(directory: &Directory) -> Result<(Snapshot, Recovery), StoreError> {
        let current = directory.current()?;
        let snapshot = snapshot_at(directory, current)?;
        snapshot
            .base()
            .verify(directory.path(), current.generation)?;
        let mut replay = Replay::new(snapshot);
        let mut recovery = Recovery::default();
        let mut assembler = Assembler::default();
        let storage = Folder::new(directory.path());
        let recovered = log::read(
            &storage,
            current.generation,
            current.checkpoint + 1,
            |record| assembler.replay(&record, &mut replay, &mut recovery, directory.path()),
        )?;
        note(&mut recovery, &recovered);
        Ok((replay.finish(), recovery))
    }

    /// The directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The number of the base on disk.
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
    /// [`StoreError::DiskFull`], after which the log is as it was; [`StoreError::LogFailed`].
    pub fn append(&self, transaction: &Transaction) -> Result<Ticket, StoreError> {
        append(&self.log, transaction)
    }

    /// Begins a checkpoint: transactions appended from now on come after it. `snapshot` must be
    /// that of the last transaction appended. None if nothing was appended since the last one.
    ///
    /// # Errors
    /// As [`DurableStore::append`].
    pub fn begin_checkpoint(
        &mut self,
        snapshot: Snapshot,
    ) -> Result<Option<Checkpoint>, StoreError> {
        let next = self.log.start_next_file()?;
        let at = Current {
            generation: self.current.generation,
            checkpoint: next - 1,
        };
        // A log file without records is not ended: the files of the checkpoint would be those of
        // the current one.
        Ok((at != self.current).then_some(Checkpoint { snapshot, at }))
    }

    /// Writes the files of a checkpoint; meant for a thread that holds up nobody.
    ///
    /// # Errors
    /// What the operating system says; the store is as it was.
    pub fn write_checkpoint(
        directory: &Directory,
        checkpoint: &Checkpoint,
    ) -> Result<(), StoreError> {
        let mut bytes = Vec::new();
        Transaction::from_base(&checkpoint.snapshot).encode(&mut bytes);
        directory.write_changes(checkpoint.at, &bytes)
    }

    /// Makes a checkpoint current whose files were written, and removes what it covers.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn finish_checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        // A merge in the meantime covers more.
        if checkpoint.at.generation != self.current.generation {
            let _ = std::fs::remove_file(self.directory.changes_file(checkpoint.at));
            return Ok(());
        }
        self.directory.make_current(checkpoint.at)?;
        if self.current.checkpoint > 0 {
            // A file that stays costs space, and goes when the store is opened next.
            let _ = std::fs::remove_file(self.directory.changes_file(self.current));
        }
        self.current = checkpoint.at;
        self.log.remove_before(checkpoint.at.checkpoint + 1)
    }

    /// The directory, to write a checkpoint or a base with.
    #[must_use]
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// Writes a base beside the current one, and maps it; nothing is replaced yet.
    ///
    /// # Errors
    /// What the operating system says; the store is as it was.
    pub fn write_next_base(
        directory: &Directory,
        base: &Base,
        generation: u64,
    ) -> Result<Base, StoreError> {
        directory.write_base(base, generation)?;
        directory.read_base(generation)
    }

    /// Makes a generation current whose base was written, with a log of its own that begins with
    /// these transactions. They are lasting when this returns.
    ///
    /// # Errors
    /// What the operating system says; the store is as it was.
    pub fn replace(
        &mut self,
        generation: u64,
        transactions: &[Transaction],
    ) -> Result<(), StoreError> {
        assert!(
            generation > self.current.generation,
            "a generation is replaced by a later one"
        );
        let log = new_log(&self.directory, &self.options, generation, transactions)?;
        let next = Current {
            generation,
            checkpoint: 0,
        };
        self.directory.make_current(next)?;
        self.current = next;
        self.log = Arc::new(log);
        self.directory.remove_leftovers(next)
    }
}

const LOG: &str = "log";

/// A checkpoint under way.
#[derive(Clone)]
pub struct Checkpoint {
    snapshot: Snapshot,
    at: Current,
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
fn snapshot_at(directory: &Directory, current: Current) -> Result<Snapshot, StoreError> {
    let base = directory.read_base(current.generation)?;
    let snapshot = Snapshot::of_base(base, current.generation, SnapshotNumber(1));
    if current.checkpoint == 0 {
        return Ok(snapshot);
    }
    let bytes = directory.read_changes(current)?;
    let mut replay = Replay::new(snapshot);
    let added = Transaction::decode(bytes.as_slice())
        .map_err(ReplayError::from)
        .and_then(|transaction| replay.add(&transaction));
    added.map_err(|error| corrupt(&directory.changes_file(current), &error))?;
    Ok(replay.finish())
}

fn append(log: &Log, transaction: &Transaction) -> Result<Ticket, StoreError> {
    let mut bytes = Vec::new();
    transaction.encode(&mut bytes);
    let mut pieces = bytes.chunks(RECORD_BYTES).peekable();
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
    generation: u64,
    transactions: &[Transaction],
) -> Result<Log, StoreError> {
    let storage = (options.storage)(directory.path());
    log::remove_log(&*storage, generation)?;
    let log = Log::create(storage, options.log(), generation)?;
    let mut last = None;
    for transaction in transactions {
        last = Some(append(&log, transaction)?);
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
    at: Current,
    transactions: &[Transaction],
) -> Result<(Base, Log), StoreError> {
    let base = DurableStore::write_next_base(directory, base, at.generation)?;
    let log = new_log(directory, options, at.generation, transactions)?;
    Ok((base, log))
}
