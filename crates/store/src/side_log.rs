//! A second log in a store's directory: what has somebody above done that no transaction has?
//!
//! The folder `streams/` holds a log of opaque records, in the files and with the guarantees of the
//! store's own (see `log`), and a state, `state-N.jnd`: records that say what all files before number
//! `N` of the log said. A new state takes the place of the one before by a rename, after which the
//! files before it go: so the folder takes about what the state does and what was appended since.
//!
//! The folder itself is made whole, under another name first. One without a state is therefore damaged.

use std::fs;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use xxhash_rust::xxh3::Xxh3Default;

use crate::directory::{Directory, StoreFile, copy_file};
use crate::durable::DurabilityOptions;
use crate::log::{self, Folder, Fsync, Log, LogOptions, MAX_PAYLOAD_BYTES, Storage, Ticket};
use crate::log::{Recovered, write_file};
use crate::{Identity, StoreError};

const FOLDER: &str = "streams";
const UNFINISHED: &str = "streams.new";
/// The log is never replaced by one of another generation.
const GENERATION: u64 = 1;
/// The first word of a state; the last byte is its version.
const MAGIC: u64 = u64::from_le_bytes(*b"JNDSIDE\x01");
/// How often it is read beside a writer, which may take away a file in between.
const MOST_ATTEMPTS: u32 = 20;
/// The length that stands after the last record.
const END: u32 = u32::MAX;
const WORDS: usize = 4;

/// A log of opaque records with a state that covers its beginning, open to be written.
#[derive(Debug)]
pub struct SideLog {
    path: PathBuf,
    storage: Box<dyn Storage>,
    identity: Identity,
    log: Log,
    last: Mutex<Option<Ticket>>,
}

/// What writes the records of a state, in order.
pub type WriteState<'a> = dyn FnMut(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> + 'a;

impl SideLog {
    /// Whether a directory has one.
    #[must_use]
    pub fn is_in(directory: &Directory) -> bool {
        directory.path().join(FOLDER).is_dir()
    }

    /// Makes one in a directory that has none, with a state and nothing after it.
    ///
    /// # Errors
    /// What the operating system says; there is none then.
    pub fn create(
        directory: &Directory,
        options: &DurabilityOptions,
        state: &mut WriteState<'_>,
    ) -> Result<Self, StoreError> {
        let (place, path) = (
            directory.path().join(UNFINISHED),
            directory.path().join(FOLDER),
        );
        let identity = Identity::random();
        let mut made = || -> Result<(), StoreError> {
            match fs::remove_dir_all(&place) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => fs::create_dir(&place),
            }
            .map_err(|source| failed(&place, source))?;
            let storage = (options.storage)(&place);
            let log = Log::create(
                (options.storage)(&place),
                log_options(options.fsync),
                GENERATION,
                identity,
            )?;
            log.close()?;
            write_state(&*storage, (identity, 1), state)?;
            storage.sync().map_err(|source| failed(&place, source))?;
            fs::rename(&place, &path).map_err(|source| failed(&path, source))?;
            sync(directory.storage(), directory.path())
        };
        if let Err(error) = made() {
            // What cannot be removed goes when it is tried again.
            let _ = fs::remove_dir_all(&place);
            return Err(error);
        }
        let opened = Self::open(directory, options, &mut |_| Ok::<_, StoreError>(()))?;
        opened.map_or_else(
            || Err(failed(&path, io::ErrorKind::NotFound.into())),
            |(log, _)| Ok(log),
        )
    }

    /// Opens that of a directory, and hands over its state and what was appended since, in order;
    /// `None` if there is none. What is handed over is durable when this returns.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the file that is not as it was written; what `deliver` says; what
    /// the operating system says.
    pub fn open<E: From<StoreError>>(
        directory: &Directory,
        options: &DurabilityOptions,
        deliver: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Option<(Self, Recovered)>, E> {
        let path = directory.path().join(FOLDER);
        if !path.is_dir() {
            return Ok(None);
        }
        let storage = (options.storage)(&path);
        let first = state_number(&*storage, &path)?;
        let identity = read_state(&path.join(state_name(first)), first, deliver)?;
        let (log, recovered) = Log::open(
            (options.storage)(&path),
            log_options(options.fsync),
            GENERATION,
            identity,
            first,
            |record| deliver(record.payload),
        )?;
        let opened = Self {
            path,
            storage,
            identity,
            log,
            last: Mutex::default(),
        };
        opened.remove_states(first)?;
        Ok(Some((opened, recovered)))
    }

    /// Calls what reads that of a directory, again where another process writes it meanwhile and it could not be
    /// read.
    ///
    /// # Errors
    /// Those of the last call.
    pub fn unmoved<T, E>(
        directory: &Directory,
        mut read: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let is_written = || !directory.is_locked() && directory.has_writer();
        for _ in 1..MOST_ATTEMPTS {
            // A writer may end while this reads.
            let was_written = is_written();
            match read() {
                Err(_) if was_written || is_written() => {}
                done => return done,
            }
        }
        read()
    }

    /// Reads that of a directory and alters nothing; hands over nothing where there is none.
    ///
    /// # Errors
    /// As [`SideLog::open`].
    pub fn read<E: From<StoreError>>(
        directory: &Directory,
        deliver: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let path = directory.path().join(FOLDER);
        if !path.is_dir() {
            return Ok(());
        }
        let storage = Folder::new(&path);
        let first = state_number(&storage, &path)?;
        let identity = read_state(&path.join(state_name(first)), first, deliver)?;
        log::read(&storage, GENERATION, identity, first, |record| {
            deliver(record.payload)
        })?;
        Ok(())
    }

    /// True of the name of one of its files.
    pub(crate) fn has(name: &str) -> bool {
        name.starts_with("streams/")
    }

    /// Its files, by their names in the store's directory.
    pub(crate) fn files(directory: &Directory) -> Result<Vec<StoreFile>, StoreError> {
        let path = directory.path().join(FOLDER);
        if !path.is_dir() {
            return Ok(Vec::new());
        }
        let names = Folder::new(&path).list();
        let mut names = names.map_err(|source| failed(&path, source))?;
        names.retain(|name| name.ends_with(".jnd"));
        names.sort();
        let file = |name: String| {
            let found = fs::metadata(path.join(&name));
            Ok(StoreFile {
                bytes: found
                    .map_err(|source| failed(&path.join(&name), source))?
                    .len(),
                name: format!("{FOLDER}/{name}"),
            })
        };
        names.into_iter().map(file).collect()
    }

    /// Copies that of a directory in which nobody writes into another one, if there is one.
    ///
    /// # Errors
    /// What the operating system says; part of the files may then be in the other directory.
    pub fn copy(from: &Directory, to: &Directory) -> Result<(), StoreError> {
        let files = Self::files(from)?;
        if files.is_empty() {
            return Ok(());
        }
        let place = to.path().join(FOLDER);
        fs::create_dir(&place).map_err(|source| failed(&place, source))?;
        for file in files {
            copy_file(&from.path().join(&file.name), &to.path().join(&file.name))?;
        }
        sync(&Folder::new(&place), &place)
    }

    /// Appends a record. It is lasting once the ticket is synced.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn append(&self, record: &[u8]) -> Result<Ticket, StoreError> {
        let ticket = self.log.append(record)?;
        let mut last = self.last.lock();
        *last = (*last).max(Some(ticket));
        Ok(ticket)
    }

    /// Returns when a record and all before it are lasting, as the store's option has it.
    ///
    /// # Errors
    /// As [`Log::sync`].
    pub fn sync(&self, ticket: Ticket) -> Result<(), StoreError> {
        self.log.sync(ticket)
    }

    /// Returns when all that was appended before is lasting, as the store's option has it.
    ///
    /// # Errors
    /// As [`Log::sync`].
    pub fn sync_all(&self) -> Result<(), StoreError> {
        let last = *self.last.lock();
        last.map_or(Ok(()), |ticket| self.log.sync(ticket))
    }

    /// Bytes of the log, without the state.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    /// How often the device was asked to sync the log.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.log.syncs()
    }

    /// Begins another file, whose number the next state has: it says what was appended before.
    ///
    /// # Errors
    /// As [`Log::start_next_file`].
    pub fn begin_state(&self) -> Result<u64, StoreError> {
        self.log.start_next_file()
    }

    /// Writes the state that says what all files before a number did, and removes these. Returns its
    /// bytes. Only one thread may be at it.
    ///
    /// # Errors
    /// What the operating system says; what was there before stays.
    pub fn write_state(&self, number: u64, state: &mut WriteState<'_>) -> Result<u64, StoreError> {
        let bytes = write_state(&*self.storage, (self.identity, number), state)?;
        sync(&*self.storage, &self.path)?;
        self.remove_states(number)?;
        self.log.remove_before(number)?;
        Ok(bytes)
    }

    /// Removes all states but one, and what was never finished.
    fn remove_states(&self, number: u64) -> Result<(), StoreError> {
        let kept = state_name(number);
        let names = self.storage.list();
        for name in names.map_err(|source| failed(&self.path, source))? {
            let is_state = name.starts_with("state-") && name != kept;
            if is_state {
                let removed = self.storage.remove(&name);
                removed.map_err(|source| failed(&self.path.join(&name), source))?;
            }
        }
        Ok(())
    }
}

fn log_options(fsync: Fsync) -> LogOptions {
    LogOptions {
        fsync,
        // A file ends where a state begins.
        file_bytes: u64::MAX,
        ..LogOptions::default()
    }
}

fn failed(path: &Path, source: io::Error) -> StoreError {
    StoreError::Io {
        path: path.to_owned(),
        source,
    }
}

fn sync(storage: &dyn Storage, path: &Path) -> Result<(), StoreError> {
    storage.sync().map_err(|source| failed(path, source))
}

fn state_name(number: u64) -> String {
    format!("state-{number}.jnd")
}

/// The number of the last state.
fn state_number(storage: &dyn Storage, path: &Path) -> Result<u64, StoreError> {
    let names = storage.list().map_err(|source| failed(path, source))?;
    let number = |name: &String| -> Option<u64> {
        let number = name.strip_prefix("state-")?.strip_suffix(".jnd")?;
        number.parse().ok()
    };
    names
        .iter()
        .filter_map(number)
        .max()
        .ok_or_else(|| StoreError::Corrupt {
            path: path.to_owned(),
            reason: "no file in it says what the streams are".to_owned(),
        })
}

/// Counts and hashes what goes through it.
struct Hashed<'a> {
    writer: &'a mut dyn Write,
    hash: Xxh3Default,
    bytes: u64,
}

impl Hashed<'_> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        self.writer.write_all(bytes)
    }
}

fn write_state(
    storage: &dyn Storage,
    (identity, number): (Identity, u64),
    state: &mut WriteState<'_>,
) -> Result<u64, StoreError> {
    write_file(storage, &state_name(number), |writer| {
        let mut out = Hashed {
            writer,
            hash: Xxh3Default::new(),
            bytes: 0,
        };
        for word in [MAGIC, identity.0[0], identity.0[1], number] {
            out.put(&word.to_le_bytes())?;
        }
        state(&mut |record| {
            let length = u32::try_from(record.len())
                .ok()
                .filter(|length| *length < END);
            let length = length.ok_or(io::ErrorKind::InvalidInput)?;
            out.put(&length.to_le_bytes())?;
            out.put(record)
        })?;
        out.put(&END.to_le_bytes())?;
        let checksum = out.hash.digest();
        out.put(&checksum.to_le_bytes())?;
        Ok(out.bytes)
    })
}

/// Hands over the records of a state, once it is known that it is whole.
fn read_state<E: From<StoreError>>(
    path: &Path,
    number: u64,
    deliver: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<Identity, E> {
    let corrupt = |reason: &str| StoreError::Corrupt {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let io = |source: io::Error| match source.kind() {
        io::ErrorKind::UnexpectedEof => corrupt("it ends too soon"),
        _ => failed(path, source),
    };
    check_sum(path)
        .map_err(io)?
        .ok_or_else(|| corrupt("its checksum is another one than it says"))?;
    let file = fs::File::open(path).map_err(io)?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut words = [0_u64; WORDS];
    for word in &mut words {
        let mut bytes = [0; 8];
        reader.read_exact(&mut bytes).map_err(io)?;
        *word = u64::from_le_bytes(bytes);
    }
    if words[0] != MAGIC {
        return Err(corrupt("it is no state of streams that this version reads").into());
    }
    if words[3] != number {
        return Err(corrupt("it is another state than its name says").into());
    }
    let mut record = Vec::new();
    loop {
        let mut length = [0; 4];
        reader.read_exact(&mut length).map_err(io)?;
        let length = u32::from_le_bytes(length);
        if length == END {
            return Ok(Identity([words[1], words[2]]));
        }
        if u64::from(length) > MAX_PAYLOAD_BYTES {
            return Err(corrupt("a record is too long").into());
        }
        record.resize(length as usize, 0);
        reader.read_exact(&mut record).map_err(io)?;
        deliver(&record)?;
    }
}

/// Nothing if the last eight bytes are not the checksum of those before.
fn check_sum(path: &Path) -> io::Result<Option<()>> {
    let file = fs::File::open(path)?;
    let length = file.metadata()?.len();
    let Some(mut left) = length.checked_sub(8) else {
        return Ok(None);
    };
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut hash = Xxh3Default::new();
    let mut piece = vec![0; 1 << 16];
    while left > 0 {
        let here = left.min(piece.len() as u64) as usize;
        reader.read_exact(&mut piece[..here])?;
        hash.update(&piece[..here]);
        left -= here as u64;
    }
    let mut said = [0; 8];
    reader.read_exact(&mut said)?;
    Ok((u64::from_le_bytes(said) == hash.digest()).then_some(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Records = Vec<Vec<u8>>;

    fn opened(directory: &Directory) -> Result<(Option<SideLog>, Records), StoreError> {
        let mut found = Vec::new();
        let options = DurabilityOptions::default();
        let log = SideLog::open(directory, &options, &mut |record| {
            found.push(record.to_vec());
            Ok::<_, StoreError>(())
        })?;
        Ok((log.map(|(log, _)| log), found))
    }

    fn created(directory: &Directory, record: &str) -> SideLog {
        let options = DurabilityOptions::default();
        let mut state = |put: &mut dyn FnMut(&[u8]) -> io::Result<()>| put(record.as_bytes());
        SideLog::create(directory, &options, &mut state).unwrap()
    }

    #[test]
    fn a_state_covers_what_was_appended_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::create(folder.path()).unwrap();
        assert!(opened(&directory).unwrap().0.is_none());
        let log = created(&directory, "a");
        log.sync(log.append(b"b").unwrap()).unwrap();
        let number = log.begin_state().unwrap();
        log.append(b"c").unwrap();
        drop(log);
        // The state was never written.
        let (log, found) = opened(&directory).unwrap();
        assert_eq!(found, [b"a", b"b", b"c"]);
        let log = log.unwrap();
        assert_eq!(log.begin_state().unwrap(), number + 1);
        log.append(b"d").unwrap();
        let mut state = |put: &mut dyn FnMut(&[u8]) -> io::Result<()>| {
            put(b"abc")?;
            put(b"")
        };
        log.write_state(number + 1, &mut state).unwrap();
        drop(log);
        let (log, found) = opened(&directory).unwrap();
        assert_eq!(found, [&b"abc"[..], b"", b"d"]);
        drop(log);
        let names: Vec<String> = SideLog::files(&directory)
            .unwrap()
            .into_iter()
            .map(|file| file.name)
            .collect();
        assert_eq!(names, ["streams/log-1-3.jnd", "streams/state-3.jnd"]);
        let path = folder.path().join("streams/state-3.jnd");
        let whole = fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            fs::write(&path, &damaged).unwrap();
            let error = opened(&directory).unwrap_err().to_string();
            assert!(error.contains("state-3.jnd"), "byte {place}: {error}");
            fs::write(&path, &whole[..place]).unwrap();
            assert!(opened(&directory).is_err(), "{place} bytes");
        }
        fs::remove_file(&path).unwrap();
        assert!(matches!(
            opened(&directory),
            Err(StoreError::Corrupt { .. })
        ));
    }
}
