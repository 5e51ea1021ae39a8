//! A store in a directory: which files is it made of, and are they whole?
//!
//! `CURRENT` says which version of the format it is, and names the generation G, the number of
//! merges M, the checkpoint C, the identity of G and the number of the snapshot that base and
//! checkpoint make, with a checksum. That number is what a store goes on from when its log is empty:
//! clients keep snapshot numbers, which therefore never decrease. Ids mean the same for the whole of
//! a generation. The base is `base-G-M.jnd` and the files that it names (see `base_files`);
//! `changes-G-M-C.jnd` holds what the checkpoint has and the base has not, and is absent where C is
//! 0; `log-G-N.jnd` with N > C what was committed after it. New files are written
//! beside the old ones and become current by one rename of `CURRENT`, so that whatever fails before
//! leaves the store as it was. Generation 0 is a store that was begun and has no files yet: files
//! without `CURRENT` therefore are a store that lost it. `LOCK` is locked for as long as a process
//! has the store open to write it, or copies its files, which several may do at the same time. Those
//! that only read lock nothing: what they have mapped stays when its name goes, and where a name went
//! before they had it they begin anew (see `DurableStore::read`). `streams/` has
//! the streams and the continuous queries, of which no other file knows (see `side_log`); `PREFIXES` has
//! names for the beginnings of IRIs (see `prefix_file`). `.jindou-loading/` has what a first load that keeps within
//! a given memory puts on disk meanwhile (see `bulk::spilled`), and is no part of the store: it goes with the
//! load or, where that was killed, when the directory is locked the next time to write it. So do the files of a store of
//! generation 0, whose first load was killed while it wrote them.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use jindou_fabric::Region;
use jindou_model::SnapshotNumber;
use xxhash_rust::xxh3::xxh3_64;

use crate::StoreError;
use crate::base_files::base_name;
use crate::copies_file;
use crate::history::{self, History};
use crate::identity::Identity;
use crate::image::{ImageReader, ImageWriter};
use crate::log::{Folder, Storage, write_file};
use crate::prefix_file::{self, PrefixFile};
use crate::side_log::SideLog;

const CURRENT: &str = "CURRENT";
const CURRENT_NEW: &str = "CURRENT.new";
const LOCK: &str = "LOCK";
/// The folder of what a load puts on disk that keeps within a given memory: see `bulk::spilled`.
pub(crate) const SCRATCH: &str = ".jindou-loading";

/// What a file holds, as its header says.
const KIND_CHANGES: u64 = 3;

/// Raised with the version of any of the files, and with that of `CURRENT` itself.
const MANIFEST_VERSION: u64 = 7;
/// The last version whose `CURRENT` does not say which it is.
const UNNAMED_VERSION: u64 = 2;

/// The number that a store begins with, and every base did before `CURRENT` named one.
pub(crate) const FIRST_SNAPSHOT: SnapshotNumber = SnapshotNumber(1);

/// What a store is made of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Current {
    pub(crate) generation: u64,
    /// Merges since the generation began.
    pub(crate) merge: u64,
    /// The last log file that the checkpoint covers; 0 for no checkpoint.
    pub(crate) checkpoint: u64,
    /// Of the generation.
    pub(crate) base: Identity,
    /// Of the snapshot that the base and the checkpoint make; those of the log have later ones.
    pub(crate) snapshot: SnapshotNumber,
}

/// Why `CURRENT` says nothing.
#[derive(Debug, PartialEq, Eq)]
enum BadManifest {
    Version(u64),
    Damaged,
}

impl Current {
    /// What `CURRENT` holds, to the byte.
    fn text(self) -> String {
        let Self {
            generation,
            merge,
            checkpoint,
            base,
            snapshot: SnapshotNumber(snapshot),
        } = self;
        with_checksum(&format!(
            "{MANIFEST_VERSION} {generation} {merge} {checkpoint} {base} {snapshot}"
        ))
    }

    fn parse(text: &[u8]) -> Result<Self, BadManifest> {
        let words = words_of(text).ok_or(BadManifest::Damaged)?;
        let number = |word: &str| word.parse::<u64>().map_err(|_| BadManifest::Damaged);
        match *words.as_slice() {
            [_, _] => Err(BadManifest::Version(UNNAMED_VERSION)),
            [version, ref rest @ ..] => match (number(version)?, rest) {
                (MANIFEST_VERSION, [generation, merge, checkpoint, base, snapshot]) => Ok(Self {
                    generation: number(generation)?,
                    merge: number(merge)?,
                    checkpoint: number(checkpoint)?,
                    base: Identity::parse(base).ok_or(BadManifest::Damaged)?,
                    snapshot: SnapshotNumber(number(snapshot)?),
                }),
                (MANIFEST_VERSION, _) => Err(BadManifest::Damaged),
                (other, _) => Err(BadManifest::Version(other)),
            },
            [] => Err(BadManifest::Damaged),
        }
    }
}

fn with_checksum(words: &str) -> String {
    format!("{words} {:016x}\n", xxh3_64(words.as_bytes()))
}

/// The words of a text before its checksum, if that is right.
fn words_of(text: &[u8]) -> Option<Vec<&str>> {
    let text = std::str::from_utf8(text).ok()?;
    let (words, _) = text.rsplit_once(' ')?;
    (with_checksum(words) == text).then(|| words.split(' ').collect())
}

/// Why other files did not become current.
pub(crate) struct NotCurrent {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
    /// They may be current when the store is opened next.
    pub(crate) is_uncertain: bool,
}

impl From<NotCurrent> for StoreError {
    fn from(failed: NotCurrent) -> Self {
        let NotCurrent { path, source, .. } = failed;
        match failed.is_uncertain {
            true => Self::Uncertain {
                path,
                source: source.into(),
            },
            false => Self::Io { path, source },
        }
    }
}

/// A file of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreFile {
    /// Its name in the directory.
    pub name: String,
    /// Its length.
    pub bytes: u64,
}

/// True if a path still names the file that was opened there.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match fs::metadata(path) {
        Ok(found) => Ok(identity(found) == identity(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Files that are open are not removed on other systems.
#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> io::Result<bool> {
    fs::exists(path)
}

/// Whom a process that has a directory open keeps out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exclusion {
    /// Those that would write it.
    Writers,
    /// Those that copy it, too.
    All,
}

/// A directory that this process has locked, or reads while others may write it.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// How its files are written.
    storage: Box<dyn Storage>,
    /// `None` if it is only read.
    lock: Option<File>,
    made: Made,
}

/// What was made for a store that may not come.
#[derive(Debug, Default)]
struct Made {
    /// The file `LOCK`.
    lock: bool,
    /// Directories, the innermost first.
    folders: Vec<PathBuf>,
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.made.lock && !self.path.join(CURRENT).exists() {
            // No store was begun. The file goes while it is locked: a process that opened it
            // meanwhile finds that it is not the one of this name.
            let _ = fs::remove_file(self.path.join(LOCK));
            let made = &self.made.folders;
            // What others have put something in stays.
            let _ = made.iter().try_for_each(fs::remove_dir);
        }
        // Closing the file would leave it locked while a process that is just being started shares
        // it. A failure leaves it to the close.
        let _ = self.lock.as_ref().map(File::unlock);
    }
}

impl Directory {
    /// Locks a directory that holds a store, for this process alone.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`], [`StoreError::Locked`], [`StoreError::Corrupt`] for a store that
    /// lost its file `CURRENT`, or what the operating system says.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        check_is_a_store(path)?;
        Self::lock(path)?.with_store()
    }

    /// Locks a directory that holds a store against processes that would write it, to copy its
    /// files. Nothing in it needs to be writable.
    ///
    /// # Errors
    /// As [`Directory::open`].
    pub fn open_to_copy(path: &Path) -> Result<Self, StoreError> {
        check_is_a_store(path)?;
        Self::lock_against(Exclusion::Writers, path)?.with_store()
    }

    /// Opens a directory that holds a store, which another process may write meanwhile. Locks and
    /// alters nothing; nothing in it needs to be writable.
    ///
    /// # Errors
    /// As [`Directory::open`], but for [`StoreError::Locked`].
    pub fn open_to_read(path: &Path) -> Result<Self, StoreError> {
        check_is_a_store(path)?;
        let directory = Self {
            path: path.to_owned(),
            storage: Box::new(Folder::new(path)),
            lock: None,
            made: Made::default(),
        };
        directory.with_store()
    }

    fn with_store(self) -> Result<Self, StoreError> {
        match self.has_store()? {
            true => Ok(self),
            false => Err(StoreError::NotAStore {
                path: self.path.clone(),
            }),
        }
    }

    /// Whether what the files say stays so while this is open, as no other process may write them.
    #[must_use]
    pub fn is_locked(&self) -> bool {
        self.lock.is_some()
    }

    /// Whether another process has the store open to write it.
    pub(crate) fn has_writer(&self) -> bool {
        let Ok(lock) = File::open(self.path.join(LOCK)) else {
            return false;
        };
        match lock.try_lock_shared() {
            Err(TryLockError::WouldBlock) => true,
            Ok(()) => {
                // Closing it does the same.
                let _ = lock.unlock();
                false
            }
            Err(TryLockError::Error(_)) => false,
        }
    }

    /// Locks a directory for a store, and makes it if it is not there. A directory with other
    /// things in it is refused. What was made goes with this if no store was begun.
    ///
    /// # Errors
    /// As [`Directory::open`]; [`StoreError::NotEmpty`] for a directory of other things.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let failed = |source: io::Error| StoreError::Io {
            path: path.to_owned(),
            source,
        };
        let is_absent = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let absent = path.ancestors().take_while(is_absent);
        let folders: Vec<PathBuf> = absent.map(Path::to_owned).collect();
        fs::create_dir_all(path).map_err(failed)?;
        if !path.join(CURRENT).is_file() {
            if !files_of_a_store(path)?.is_empty() {
                return Err(no_current(path));
            }
            // What is called so and was not locked is not ours.
            let may_be_left = path.join(LOCK).is_file();
            for entry in fs::read_dir(path).map_err(failed)? {
                let name = entry.map_err(failed)?.file_name();
                let is_left = may_be_left && name == SCRATCH;
                if name != LOCK && name != CURRENT_NEW && !is_left {
                    return Err(StoreError::NotEmpty {
                        path: path.to_owned(),
                    });
                }
            }
        }
        let mut directory = Self::lock(path)?;
        directory.made.folders = folders;
        directory.remove_scratch();
        directory.remove_unfinished()?;
        Ok(directory)
    }

    /// The files that the store is made of now, and their bytes.
    ///
    /// # Errors
    /// What the operating system says, or what is wrong with `CURRENT`.
    pub fn files(&self) -> Result<Vec<StoreFile>, StoreError> {
        let current = self.current()?;
        let in_use = match current.generation {
            0 => InUse::nothing(),
            _ => InUse::base(current, self.numbers_of_base(current)?),
        };
        let failed = |path: &Path, source| StoreError::Io {
            path: path.to_owned(),
            source,
        };
        let mut names = Folder::new(&self.path)
            .list()
            .map_err(|source| failed(&self.path, source))?;
        names.retain(|name| name == CURRENT || (is_ours(name) && !in_use.is_leftover(name)));
        names.sort();
        let file = |name: String| {
            let path = self.path.join(&name);
            match fs::metadata(&path) {
                Ok(found) => Some(Ok(StoreFile {
                    bytes: found.len(),
                    name,
                })),
                // It was one of them when the names were read.
                Err(error) if error.kind() == io::ErrorKind::NotFound && !self.is_locked() => None,
                Err(source) => Some(Err(failed(&path, source))),
            }
        };
        let files: Result<Vec<StoreFile>, StoreError> =
            names.into_iter().filter_map(file).collect();
        let mut files = files?;
        files.extend(PrefixFile::file(self)?);
        files.extend(History::file(self)?);
        files.extend(SideLog::files(self)?);
        Ok(files)
    }

    /// Copies the files that the store is made of into another directory, which holds none. They
    /// are lasting when this returns.
    ///
    /// # Errors
    /// What the operating system says; part of the files may then be in the other directory, which
    /// is no store yet.
    pub fn copy_to(&self, to: &Self) -> Result<(), StoreError> {
        to.begin()?;
        SideLog::copy(self, to)?;
        let is_copied = |file: &&StoreFile| file.name != CURRENT && !SideLog::has(&file.name);
        for file in self.files()?.iter().filter(is_copied) {
            copy_file(&self.path.join(&file.name), &to.path.join(&file.name))?;
        }
        Ok(to.make_current(self.current()?)?)
    }

    /// Writes through another storage: tests put faults in between.
    pub(crate) fn write_through(&mut self, storage: Box<dyn Storage>) {
        self.storage = storage;
    }

    /// How its files are written.
    pub(crate) fn storage(&self) -> &dyn Storage {
        &*self.storage
    }

    pub(crate) fn lock(path: &Path) -> Result<Self, StoreError> {
        Self::lock_against(Exclusion::All, path)
    }

    fn lock_against(exclusion: Exclusion, path: &Path) -> Result<Self, StoreError> {
        let name = path.join(LOCK);
        let failed = |source: io::Error| StoreError::Io {
            path: name.clone(),
            source,
        };
        let made = File::options().create_new(true).write(true).open(&name);
        let is_made = made.is_ok();
        let lock = made
            .or_else(|_| {
                let mut options = File::options();
                options.create(true).truncate(false).write(true).open(&name)
            })
            // Where nothing can be written, a file that is there can be locked all the same.
            .or_else(|error| File::open(&name).map_err(|_| error))
            .map_err(failed)?;
        let locked = match exclusion {
            Exclusion::Writers => lock.try_lock_shared(),
            Exclusion::All => lock.try_lock(),
        };
        match locked {
            // Its maker has removed the file, and another process may have made a new one.
            Ok(()) if !is_at(&lock, &name).map_err(failed)? => Err(StoreError::Locked {
                path: path.to_owned(),
            }),
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                storage: Box::new(Folder::new(path)),
                lock: Some(lock),
                made: Made {
                    lock: is_made,
                    folders: Vec::new(),
                },
            }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked {
                path: path.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// The directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if a generation was written.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the file that would say so is not as it was written.
    pub fn has_store(&self) -> Result<bool, StoreError> {
        Ok(self.current()?.generation > 0)
    }

    pub(crate) fn current(&self) -> Result<Current, StoreError> {
        let path = self.path.join(CURRENT);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Current::default()),
            Err(source) => return Err(StoreError::Io { path, source }),
        };
        Current::parse(&text).map_err(|bad| match bad {
            BadManifest::Version(found) => StoreError::Version {
                path,
                found,
                supported: MANIFEST_VERSION,
            },
            BadManifest::Damaged => StoreError::Corrupt {
                path,
                reason: "it does not name a generation and a checkpoint, with their checksum"
                    .to_owned(),
            },
        })
    }

    /// Notes that files of a store are to come, if that was not done yet: whoever finds them later
    /// and no `CURRENT` knows that something was lost.
    pub(crate) fn begin(&self) -> Result<(), StoreError> {
        match self.path.join(CURRENT).is_file() {
            true => Ok(()),
            false => Ok(self.make_current(Current::default())?),
        }
    }

    /// Removes the file by which this is locked: it is no store's then.
    pub(crate) fn remove_lock_file(&self) -> Result<(), StoreError> {
        let path = self.path.join(LOCK);
        fs::remove_file(&path).map_err(|source| StoreError::Io { path, source })
    }

    /// Removes files that nothing in use needs, which a crash may have left. A file that cannot be
    /// removed costs space only.
    pub(crate) fn remove_leftovers(&self, in_use: &InUse) {
        let names = self.storage.list().unwrap_or_default();
        for name in names.iter().filter(|name| in_use.is_leftover(name)) {
            let _ = self.storage.remove(name);
        }
    }

    /// Removes what a load has put on disk whose process was killed. What cannot be removed costs
    /// space only.
    pub(crate) fn remove_scratch(&self) {
        let _ = fs::remove_dir_all(self.path.join(SCRATCH));
    }

    /// Removes the files of a store that was begun and is none, as the process that made it failed or was killed. Its
    /// prefixes would be those of the store that is made here next; other files that cannot be removed cost space only.
    fn remove_unfinished(&self) -> Result<(), StoreError> {
        if self.has_store()? {
            return Ok(());
        }
        self.remove_leftovers(&InUse::nothing());
        let path = self.path.join(prefix_file::PREFIXES);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::Io { path, source })
            }
            _ => Ok(()),
        }
    }

    /// Writes the bytes of a checkpoint that is not current.
    ///
    /// # Errors
    /// What the operating system says; the store is as it was.
    pub(crate) fn write_changes(&self, at: Current, bytes: &[u8]) -> Result<(), StoreError> {
        let mut image = ImageWriter::default();
        at.base.0.into_iter().for_each(|word| image.word(word));
        image.word(at.checkpoint);
        image.region(&Region::copy_from(bytes));
        image.finish(self.storage(), &changes_name(at), KIND_CHANGES)?;
        Ok(())
    }

    /// The bytes of a checkpoint.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if they are not what was written, or of another base.
    pub(crate) fn read_changes(&self, at: Current) -> Result<Region, StoreError> {
        let mut image = ImageReader::open(&self.changes_file(at), KIND_CHANGES)?;
        let base = Identity([image.word()?, image.word()?]);
        if base != at.base {
            return Err(image.corrupt(&at.base.mismatch(base)));
        }
        if image.word()? != at.checkpoint {
            return Err(image.corrupt("it is another checkpoint than its name says"));
        }
        image.region()
    }

    /// The error of a base that is not the one that `CURRENT` names.
    pub(crate) fn foreign_base(&self, current: Current, found: Identity) -> StoreError {
        let named = current.base;
        StoreError::Corrupt {
            path: self.path.join(base_name(current.generation, current.merge)),
            reason: format!("it is the base {found} of another store, and CURRENT names {named}"),
        }
    }

    pub(crate) fn changes_file(&self, at: Current) -> PathBuf {
        self.path.join(changes_name(at))
    }

    /// Removes a file, which if it stays costs space and goes when the store is opened next.
    pub(crate) fn remove_changes(&self, at: Current) {
        let _ = self.storage.remove(&changes_name(at));
    }

    /// Makes other files current, all of which were written and synced.
    pub(crate) fn make_current(&self, current: Current) -> Result<(), NotCurrent> {
        let failed = |source, is_uncertain| NotCurrent {
            path: self.path.join(CURRENT),
            source,
            is_uncertain,
        };
        // The names of the files come first, on a file system of whatever kind.
        self.storage
            .sync()
            .map_err(|source| failed(source, false))?;
        write_file(self.storage(), CURRENT, |writer| {
            writer.write_all(current.text().as_bytes())
        })
        .map_err(|error| match error {
            StoreError::Io { source, .. } => failed(source, false),
            other => failed(io::Error::other(other), false),
        })?;
        self.storage.sync().map_err(|source| failed(source, true))
    }

    /// Links some files into another directory, or copies them where that cannot be done; true if
    /// all are linked. They are lasting once that directory is synced.
    pub(crate) fn link_or_copy(&self, names: &[String], to: &Self) -> Result<bool, StoreError> {
        let mut is_linked = true;
        for name in names {
            let (from, place) = (self.path.join(name), to.path.join(name));
            if fs::hard_link(&from, &place).is_ok() {
                continue;
            }
            is_linked = false;
            copy_file(&from, &place)?;
        }
        Ok(is_linked)
    }
}

fn changes_name(at: Current) -> String {
    format!(
        "changes-{}-{}-{}.jnd",
        at.generation, at.merge, at.checkpoint
    )
}

fn check_is_a_store(path: &Path) -> Result<(), StoreError> {
    if path.join(CURRENT).is_file() {
        return Ok(());
    }
    if path.is_dir() && !files_of_a_store(path)?.is_empty() {
        return Err(no_current(path));
    }
    Err(StoreError::NotAStore {
        path: path.to_owned(),
    })
}

fn no_current(path: &Path) -> StoreError {
    StoreError::Corrupt {
        path: path.join(CURRENT),
        reason: "it is missing, and other files of a store are there".to_owned(),
    }
}

/// Copies a file; the bytes are lasting when this returns.
pub(crate) fn copy_file(from: &Path, to: &Path) -> Result<(), StoreError> {
    let failed = |path: &Path, source| StoreError::Io {
        path: path.to_owned(),
        source,
    };
    let mut source = File::open(from).map_err(|source| failed(from, source))?;
    let mut copy = || -> io::Result<()> {
        let mut target = File::create(to)?;
        io::copy(&mut source, &mut target)?;
        target.sync_all()
    };
    copy().map_err(|source| failed(to, source))
}

/// The names of a store's files in a directory, but for `CURRENT`.
fn files_of_a_store(path: &Path) -> Result<Vec<String>, StoreError> {
    let names = Folder::new(path).list().map_err(|source| StoreError::Io {
        path: path.to_owned(),
        source,
    })?;
    Ok(names.into_iter().filter(|name| is_ours(name)).collect())
}

/// True of the name of a file of a store, `CURRENT` and `LOCK` aside.
fn is_ours(name: &str) -> bool {
    name.ends_with(".jnd") && InUse::nothing().is_leftover(name)
}

/// Which files are needed: those of what is current, and of bases that will be.
#[derive(Debug)]
pub(crate) struct InUse {
    current: Current,
    /// Merges whose bases are needed, and the numbers of the files that these name.
    merges: BTreeSet<u64>,
    numbers: BTreeSet<u64>,
}

impl InUse {
    /// Everything is left over: nothing but the generation 0, which has no files, is current.
    pub(crate) fn nothing() -> Self {
        Self::base(Current::default(), BTreeSet::new())
    }

    /// What is current, whose base names the files of these numbers.
    pub(crate) fn base(current: Current, numbers: BTreeSet<u64>) -> Self {
        Self {
            current,
            merges: BTreeSet::from([current.merge]),
            numbers,
        }
    }

    /// With another base of the same generation.
    pub(crate) fn with(mut self, merge: u64, numbers: &BTreeSet<u64>) -> Self {
        self.merges.insert(merge);
        self.numbers.extend(numbers);
        self
    }

    /// True of a file of ours that is not needed; files of the current log are its own affair.
    fn is_leftover(&self, name: &str) -> bool {
        let Some(stem) = name.strip_suffix(".jnd") else {
            // Prefixes may be written while a merge or a checkpoint removes what is left over.
            let is_unfinished = Path::new(name).extension().is_some_and(|e| e == "new");
            let is_being_written = [
                prefix_file::UNFINISHED,
                history::UNFINISHED,
                copies_file::UNFINISHED,
            ]
            .contains(&name);
            return is_unfinished && !is_being_written;
        };
        let mut parts = stem.split('-');
        let kind = parts.next().unwrap_or_default();
        let numbers: Option<Vec<u64>> = parts.map(|part| part.parse().ok()).collect();
        let Some([generation, rest @ ..]) = numbers.as_deref() else {
            return false;
        };
        // No generation has the number 0.
        if *generation == 0 {
            return false;
        }
        let is_other = *generation != self.current.generation;
        match (kind, rest) {
            ("log", [_]) => is_other,
            ("base", [merge]) => is_other || !self.merges.contains(merge),
            ("terms" | "edges", [number]) => is_other || !self.numbers.contains(number),
            ("changes", [merge, checkpoint]) => {
                let current = (self.current.merge, self.current.checkpoint);
                is_other || (*merge, *checkpoint) != current
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_read_as_written_and_one_of_another_version_is_named() {
        let current = Current {
            generation: 7,
            merge: 2,
            checkpoint: 3,
            base: Identity::random(),
            snapshot: SnapshotNumber(12),
        };
        let text = current.text();
        assert_eq!(Current::parse(text.as_bytes()), Ok(current));
        let parse = |words: &str| Current::parse(with_checksum(words).as_bytes());
        assert_eq!(parse("7 3"), Err(BadManifest::Version(2)));
        let base = current.base;
        let other = format!("6 7 3 {base} 12 more");
        assert_eq!(parse(&other), Err(BadManifest::Version(6)));
        assert_eq!(parse("6 7 3"), Err(BadManifest::Version(6)));
        assert_eq!(parse("4 7 3 1 12"), Err(BadManifest::Version(4)));
        let wrong_count = format!("7 7 2 3 {base}");
        let damaged = ["x", "7 7 3", "7 7 2 -1 12 5 6", &wrong_count];
        for damaged in damaged {
            assert_eq!(parse(damaged), Err(BadManifest::Damaged), "{damaged:?}");
        }
        for place in 0..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[place] ^= 1;
            assert_eq!(Current::parse(&altered), Err(BadManifest::Damaged));
        }
    }
}
