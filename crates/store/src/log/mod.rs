//! The log of a store: which transactions came after the base, and which of them will be there
//! after a crash?
//!
//! A log is a row of files `log-G-N.jnd` (G: generation of the base, N: 1, 2, ...) of records with
//! opaque payloads. A transaction is a *group* of one record or more, which is recovered whole or
//! not at all. [`Log::append`] writes, [`Log::sync`] waits until the record is on the device; all
//! that wait share one `fdatasync`. The bytes are described in `format.rs`.
//!
//! # What a crash leaves
//! A process that is killed loses nothing that was appended. When the machine stops, any subset
//! of the sectors written since the last sync may be there. [`Log::open`] keeps the longest run of
//! whole groups from the beginning, clears what is behind it, and syncs what it keeps before it
//! returns: what was once recovered stays.
//!
//! # What counts as damage
//! Every record says up to which byte its file had been synced when it was written, and after each
//! sync a mark of 40 bytes says so for the records just synced (it is not synced itself, but is
//! there after a kill, and after the next sync or the system's own writing also when the machine
//! stops). The largest such number in a file, found even behind a bad record, is what the file is
//! *known* to hold. The first block of the next file says where the one before ends. So:
//!
//! - a bad record (any flipped bit, bytes overwritten, sectors lost) in what the last file is known
//!   to hold, or anywhere in a file that another one follows: [`StoreError::Corrupt`], which names
//!   the file, the record and its byte. The same for a header, a missing file in between, and a
//!   missing last file once the file before it has noted it;
//! - a last file that is shorter than it was when its newest records were synced: refused likewise.
//!   A file always is longer than its records, and promises its length in its first block;
//! - a bad record behind what is known is a torn one: it was not acknowledged, or it was
//!   acknowledged and the machine stopped before the mark behind it reached the device. It and all
//!   behind it are dropped, and [`Recovered::dropped_bytes`] says how much that was.
//!
//! Not told from a crash, therefore: damage to the last synced group when it also hits, or the
//! machine's stop also lost, every later record and mark; a device that forgets whole synced
//! sectors at the very end of the log; files put back from an older copy of all of them; and, with
//! [`Fsync::Never`], anything in the last file since it was begun, opened or closed.
//! A flipped bit in a mark or in one of two promises, while what they vouch for is whole, goes
//! unnoticed and harms nothing.

mod commit;
mod format;
mod recover;
mod storage;
mod writer;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use parking_lot::{Mutex, MutexGuard};

use crate::identity::random;
use crate::{Identity, StoreError};
use commit::{Commits, Position};
use format::{ALIGNMENT, BLOCK_BYTES, COUNT_LIMIT, FileHeader, Kind, Promise};
use recover::{Access, Contents, Repaired};
use writer::{Point, Shared, Writer, create_file};

pub use format::MAX_PAYLOAD_BYTES;
pub use storage::{Folder, LogFile, Storage};
pub(crate) use storage::{read_exact, write_all, write_file};

/// When is a record waited for?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fsync {
    /// [`Log::sync`] returns when the record is on the device.
    #[default]
    Always,
    /// [`Log::sync`] returns at once: a killed process loses nothing, a stopped machine may lose
    /// what was written since the last file was begun.
    Never,
}

/// How a log is written.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// When a record is waited for.
    pub fsync: Fsync,
    /// A group that would begin beyond this many bytes begins in a new file instead.
    pub file_bytes: u64,
    /// A file grows by multiples of this many bytes, which take no space until they are written.
    /// Each step costs one more sync.
    pub grow_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            fsync: Fsync::Always,
            file_bytes: 64 << 20,
            grow_bytes: 1 << 20,
        }
    }
}

/// A record that was recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its sequence number: 1 for the first record of a generation.
    pub sequence: u64,
    /// True if it ends its group.
    pub ends_group: bool,
    /// What was appended.
    pub payload: &'a [u8],
}

/// What was found when a log was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// Files read.
    pub files: u64,
    /// Records handed out.
    pub records: u64,
    /// Groups of them, which are transactions.
    pub groups: u64,
    /// Bytes of the files up to the last record.
    pub bytes: u64,
    /// Sequence number of the last record; 0 if the generation has had none.
    pub last_sequence: u64,
    /// Bytes behind the last whole group that were dropped: writes that a crash cut short.
    pub dropped_bytes: u64,
}

/// A file of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFileInfo {
    /// Its number.
    pub number: u64,
    /// Its path.
    pub path: PathBuf,
    /// Where its records end.
    pub bytes: u64,
}

/// A group that was appended, to be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

impl Ticket {
    /// The sequence number of the group's last record.
    #[must_use]
    pub fn sequence(self) -> u64 {
        self.0
    }
}

/// A log that is open for writing. The directory must be locked by this process.
///
/// ```
/// use jindou_store::{Identity, StoreError};
/// use jindou_store::log::{Folder, Log, LogOptions};
///
/// let folder = tempfile::tempdir().unwrap();
/// let storage = || Box::new(Folder::new(folder.path()));
/// let base = Identity::random();
/// let log = Log::create(storage(), LogOptions::default(), 1, base)?;
/// let ticket = log.append(b"a transaction")?;
/// log.sync(ticket)?;
/// drop(log);
///
/// let mut found = Vec::new();
/// let (_log, recovered) = Log::open(storage(), LogOptions::default(), 1, base, 1, |record| {
///     found.push(record.payload.to_vec());
///     Ok::<_, StoreError>(())
/// })?;
/// assert_eq!(found, [b"a transaction"]);
/// assert_eq!(recovered.groups, 1);
/// # Ok::<_, StoreError>(())
/// ```
#[derive(Debug)]
pub struct Log {
    shared: Shared,
    writer: Mutex<Writer>,
}

impl Log {
    /// Begins the log of a generation, whose base is `base`, with file 1. What another attempt left of that generation's
    /// log is removed.
    ///
    /// # Errors
    /// What the operating system says.
    ///
    /// # Panics
    /// If the options are not usable: see [`LogOptions`].
    pub fn create(
        storage: Box<dyn Storage>,
        options: LogOptions,
        generation: u64,
        base: Identity,
    ) -> Result<Self, StoreError> {
        remove_log(&*storage, generation)?;
        let header = FileHeader {
            generation,
            number: 1,
            first_sequence: 1,
            previous_end: 0,
            previous_chain: 0,
            random: random(),
            base,
        };
        let (handle, length) = create_file(&*storage, &header, checked(options).grow_bytes)
            .map_err(|failed| StoreError::Io {
                path: storage.path(&file_name(generation, 1)),
                source: failed.source,
            })?;
        let repaired = Repaired {
            handle,
            point: Point {
                end: BLOCK_BYTES,
                chain: header.salt(),
                sequence: 0,
                claimed: BLOCK_BYTES,
            },
            length,
            promise: Promise { counter: 1, length },
            first_sequence: 1,
            complete: BTreeMap::new(),
            changed: false,
        };
        Ok(Self::from_parts(
            storage,
            options,
            (generation, base),
            repaired,
        ))
    }

    /// Opens the log of a generation, whose base is `base`, from file number `first` on, and hands
    /// its records to `deliver` in order, whole groups only. Files before `first`, which a checkpoint covers, are
    /// removed. What is kept is durable when this returns.
    ///
    /// Every file is read twice, the first time before anything is handed out; memory holds one
    /// record.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for damage (see the module) and for the log of another base, before anything is handed out or
    /// altered; what `deliver` says, before anything is altered; what the operating system says.
    ///
    /// # Panics
    /// If the options are not usable: see [`LogOptions`].
    pub fn open<E: From<StoreError>>(
        storage: Box<dyn Storage>,
        options: LogOptions,
        generation: u64,
        base: Identity,
        first: u64,
        mut deliver: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(Self, Recovered), E> {
        let options = checked(options);
        let mut contents = Contents::read(&*storage, Access::Write, (generation, base), first)?;
        contents.deliver(&mut deliver)?;
        let recovered = contents.summary();
        remove_files(&*storage, generation, |number| number < first)?;
        // The last file may have been begun by a process that ended before its name was lasting.
        storage.sync().map_err(|source| folder(&*storage, source))?;
        let repaired = contents.repair()?;
        let changed = repaired.changed;
        let log = Self::from_parts(storage, options, (generation, base), repaired);
        {
            let mut writer = log.writer.lock();
            writer.promise_length(&log.shared)?;
            if changed {
                // From here on what was recovered is known to be there.
                log.mark_and_sync(&mut writer)?;
            }
        }
        Ok((log, recovered))
    }

    fn from_parts(
        storage: Box<dyn Storage>,
        options: LogOptions,
        (generation, base): (u64, Identity),
        repaired: Repaired,
    ) -> Self {
        let writer = Writer::new(
            repaired.handle,
            repaired.point,
            (repaired.length, repaired.promise),
            repaired.first_sequence,
            repaired.complete,
        );
        let shared = Shared {
            storage,
            options,
            generation,
            base,
            commits: Commits::new(writer.position()),
        };
        Self {
            shared,
            writer: Mutex::new(writer),
        }
    }

    /// Appends a transaction of one record. One `write`, no sync.
    ///
    /// # Errors
    /// As [`Group::append`].
    pub fn append(&self, payload: &[u8]) -> Result<Ticket, StoreError> {
        self.group()?.commit(payload)
    }

    /// Begins a transaction of several records. Until the group is committed or dropped nothing
    /// else is appended.
    ///
    /// # Errors
    /// As [`Group::append`]; a full file is ended here and the next one begun.
    pub fn group(&self) -> Result<Group<'_>, StoreError> {
        let mut writer = self.writer.lock();
        self.shared.commits.check()?;
        if writer.point.end >= self.shared.options.file_bytes && !writer.is_empty() {
            writer.start_next_file(&self.shared)?;
        }
        let start = writer.point;
        Ok(Group {
            log: self,
            writer,
            start,
            committed: false,
        })
    }

    /// Returns when a group, and every one before it, is on the device; at once with
    /// [`Fsync::Never`]. Threads that wait at the same time share one sync.
    ///
    /// # Errors
    /// [`StoreError::LogFailed`] if that could not be done, now or ever before: the group must not
    /// be acknowledged, though it may be there when the log is opened again.
    ///
    /// # Panics
    /// If the ticket is of another log.
    pub fn sync(&self, ticket: Ticket) -> Result<(), StoreError> {
        let commits = &self.shared.commits;
        if self.shared.options.fsync == Fsync::Never {
            return commits.check();
        }
        let Some(lead) = commits.lead_for(ticket.0)? else {
            return Ok(());
        };
        lead.gather();
        lead.sync()?;
        // Whoever appends at this moment says in its record what the mark would say.
        if let Some(mut writer) = self.writer.try_lock() {
            writer.mark(&self.shared);
        }
        Ok(())
    }

    /// Ends the current file and begins the next one, so that a checkpoint can cover whole files:
    /// what was appended before is in files before the number returned, what is appended
    /// afterwards is not. Syncs four times; a file without records is not ended.
    ///
    /// # Errors
    /// As [`Group::append`].
    pub fn start_next_file(&self) -> Result<u64, StoreError> {
        let mut writer = self.writer.lock();
        self.shared.commits.check()?;
        if !writer.is_empty() {
            writer.start_next_file(&self.shared)?;
        }
        Ok(writer.handle.number)
    }

    /// Removes the files before a number, which a durable checkpoint covers.
    ///
    /// # Errors
    /// What the operating system says; the rest is removed when the log is opened from `number`.
    ///
    /// # Panics
    /// If there is no file of that number yet.
    pub fn remove_before(&self, number: u64) -> Result<(), StoreError> {
        let mut writer = self.writer.lock();
        assert!(number <= writer.handle.number, "a file yet to be written");
        remove_files(&*self.shared.storage, self.shared.generation, |n| {
            n < number
        })?;
        writer.complete = writer.complete.split_off(&number);
        Ok(())
    }

    /// The files, in order.
    #[must_use]
    pub fn files(&self) -> Vec<LogFileInfo> {
        let writer = self.writer.lock();
        let current = (writer.handle.number, writer.point.end);
        let info = |(number, bytes)| LogFileInfo {
            number,
            path: (self.shared.storage).path(&file_name(self.shared.generation, number)),
            bytes,
        };
        writer
            .complete
            .iter()
            .map(|(&number, &bytes)| (number, bytes))
            .chain([current])
            .map(info)
            .collect()
    }

    /// Bytes in all files: what a recovery reads, and a checkpoint would save.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let writer = self.writer.lock();
        writer.complete.values().sum::<u64>() + writer.point.end
    }

    /// Hands out the records that were appended before this was called, in order, from the first file that
    /// is still there; what is appended meanwhile is not among them. A record may be on its way to the device.
    ///
    /// Costs a pass over the files; memory holds one record.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a record that is not as it was written; what the operating system says, as
    /// where a checkpoint removes a file meanwhile; what `deliver` says.
    pub fn read_back<E: From<StoreError>>(
        &self,
        mut deliver: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Shared {
            storage,
            generation,
            base,
            ..
        } = &self.shared;
        for file in self.files() {
            let part = (file.number, file.bytes);
            recover::read_until(&**storage, (*generation, *base), part, &mut deliver)?;
        }
        Ok(())
    }

    /// The generation whose log this is.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.shared.generation
    }

    /// The sequence number of the last record; 0 if there was none.
    #[must_use]
    pub fn last_sequence(&self) -> u64 {
        self.writer.lock().point.sequence
    }

    /// How often the device was asked to sync.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.shared.commits.syncs()
    }

    /// Syncs everything and notes it, so that damage to any record will be noticed.
    ///
    /// # Errors
    /// As [`Log::sync`].
    pub fn close(self) -> Result<(), StoreError> {
        let mut writer = self.writer.lock();
        self.shared.commits.lead()?.sync()?;
        self.mark_and_sync(&mut writer)
    }

    fn mark_and_sync(&self, writer: &mut Writer) -> Result<(), StoreError> {
        writer.mark(&self.shared);
        self.shared.commits.lead()?.sync()
    }
}

/// A transaction being appended. Dropped without [`Group::commit`] it leaves nothing behind.
#[derive(Debug)]
pub struct Group<'a> {
    log: &'a Log,
    writer: MutexGuard<'a, Writer>,
    start: Point,
    committed: bool,
}

impl Group<'_> {
    /// Appends a record that is not the group's last.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`]: the group is gone, the log is as it was before and can be used.
    /// [`StoreError::RecordTooLarge`]: likewise. [`StoreError::LogFailed`]: a write or a sync
    /// failed, now or before, and the log takes nothing more until it is opened again.
    pub fn append(mut self, payload: &[u8]) -> Result<Self, StoreError> {
        self.writer.append(&self.log.shared, Kind::Part, payload)?;
        Ok(self)
    }

    /// Appends the group's last record. The group is recovered after a crash of the process from
    /// now on, and after one of the machine when [`Log::sync`] returned.
    ///
    /// # Errors
    /// As [`Group::append`].
    pub fn commit(mut self, payload: &[u8]) -> Result<Ticket, StoreError> {
        let shared = &self.log.shared;
        self.writer.append(shared, Kind::Last, payload)?;
        let position: Position = self.writer.position();
        let ticket = Ticket(position.sequence);
        shared.commits.set_appended(position);
        self.committed = true;
        Ok(ticket)
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        if !self.committed {
            self.writer.rewind(&self.log.shared, self.start);
        }
    }
}

/// Reads the log of a generation as [`Log::open`] does, and alters nothing: the files need only be
/// readable, and a torn end stays for the next [`Log::open`] to clear. Where another process appends
/// meanwhile, what was read may look damaged that is not.
///
/// What is handed out may be in the system's memory only, where the process that wrote it was
/// killed before it synced: a loss of power can still take what was read, which is nothing that was
/// acknowledged.
///
/// # Errors
/// As [`Log::open`].
pub fn read<E: From<StoreError>>(
    storage: &dyn Storage,
    generation: u64,
    base: Identity,
    first: u64,
    mut deliver: impl FnMut(Record<'_>) -> Result<(), E>,
) -> Result<Recovered, E> {
    let mut contents = Contents::read(storage, Access::Read, (generation, base), first)?;
    contents.deliver(&mut deliver)?;
    Ok(contents.summary())
}

/// Removes the log of a generation that is no longer the current one.
///
/// # Errors
/// What the operating system says.
pub fn remove_log(storage: &dyn Storage, generation: u64) -> Result<(), StoreError> {
    remove_files(storage, generation, |_| true)
}

/// The numbers of a generation's files, ascending.
///
/// # Errors
/// What the operating system says.
pub fn numbers(storage: &dyn Storage, generation: u64) -> Result<Vec<u64>, StoreError> {
    let names = storage.list().map_err(|source| folder(storage, source))?;
    let mut numbers: Vec<u64> = names
        .iter()
        .filter_map(|name| number_in(name, generation))
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Removes some files of a generation, the oldest first, and what was never finished.
fn remove_files(
    storage: &dyn Storage,
    generation: u64,
    which: impl Fn(u64) -> bool,
) -> Result<(), StoreError> {
    let failed = |source| folder(storage, source);
    let unfinished = storage.list().map_err(failed)?.into_iter().filter(|name| {
        name.strip_suffix(".new")
            .is_some_and(|stem| number_in(&format!("{stem}.jnd"), generation).is_some())
    });
    let complete = numbers(storage, generation)?
        .into_iter()
        .filter(|&number| which(number))
        .map(|number| file_name(generation, number));
    let mut removed = false;
    for name in unfinished.chain(complete) {
        storage.remove(&name).map_err(|source| StoreError::Io {
            path: storage.path(&name),
            source,
        })?;
        removed = true;
    }
    match removed {
        true => storage.sync().map_err(failed),
        false => Ok(()),
    }
}

fn folder(storage: &dyn Storage, source: io::Error) -> StoreError {
    StoreError::Io {
        path: storage.path(""),
        source,
    }
}

fn file_name(generation: u64, number: u64) -> String {
    format!("log-{generation}-{number}.jnd")
}

/// The name of a file until its first block is synced.
fn temporary_name(generation: u64, number: u64) -> String {
    format!("log-{generation}-{number}.new")
}

fn number_in(name: &str, generation: u64) -> Option<u64> {
    let number = name
        .strip_prefix(&format!("log-{generation}-"))?
        .strip_suffix(".jnd")?
        .parse()
        .ok()?;
    // Other spellings of the number are no files of ours.
    ((1..COUNT_LIMIT).contains(&number) && name == file_name(generation, number)).then_some(number)
}

fn checked(options: LogOptions) -> LogOptions {
    assert!(options.grow_bytes >= ALIGNMENT && options.grow_bytes.is_multiple_of(ALIGNMENT));
    options
}
