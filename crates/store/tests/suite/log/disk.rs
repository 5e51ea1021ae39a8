//! A simulated disk: what would be on it after the machine stopped, and what if it fails?
//!
//! A sync makes a file's bytes and length lasting. What was written since lasts sector by sector:
//! after a crash each sector holds any of the versions that it had since the last sync, some of
//! them torn at a byte, and the file any length that it had. Names last in the order in which they
//! were given.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use jindou_store::log::{LogFile, Storage};

const SECTOR: usize = 512;

/// A small generator of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A write takes some bytes (of 256 parts), and there is no space for the rest.
    Full(u8),
    /// A write takes some bytes, and then the device fails.
    Write(u8),
    /// A sync fails, and the system forgets what was to be synced.
    Sync,
    /// A write takes some bytes, and everything after it fails: the process is gone.
    Die(u8),
}

#[derive(Clone, Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

#[derive(Clone, Debug, Default)]
struct Content {
    /// What readers see.
    now: Vec<u8>,
    /// What the last sync left on the device.
    synced: Vec<u8>,
    since: Vec<Change>,
}

impl Content {
    fn apply(&mut self, change: Change) {
        match &change {
            Change::Write(at, bytes) => {
                let end = at + bytes.len();
                self.now.resize(self.now.len().max(end), 0);
                self.now[*at..end].copy_from_slice(bytes);
            }
            Change::Length(length) => {
                // What is cut off reads as zeros if the file is extended again.
                let cut = self.now.len().saturating_sub(*length);
                if cut > 0 {
                    self.since.push(Change::Write(*length, vec![0; cut]));
                }
                self.now.resize(*length, 0);
            }
        }
        self.since.push(change);
    }

    /// Takes to the device what was written since the last sync, failed ones included: what they
    /// forgot stays forgotten unless it was written again.
    fn sync(&mut self) {
        for change in self.since.drain(..) {
            match change {
                Change::Write(at, bytes) => {
                    let end = at + bytes.len();
                    self.synced.resize(self.synced.len().max(end), 0);
                    self.synced[at..end].copy_from_slice(&bytes);
                }
                Change::Length(length) => self.synced.resize(length, 0),
            }
        }
        self.synced.resize(self.now.len(), 0);
    }

    /// Something that may be on the device now.
    fn after_crash(&self, random: &mut Random) -> Vec<u8> {
        let mut lengths = vec![self.synced.len()];
        let mut most = self.synced.clone();
        for change in &self.since {
            let last = *lengths.last().unwrap();
            lengths.push(match change {
                Change::Write(at, bytes) => last.max(at + bytes.len()),
                Change::Length(length) => *length,
            });
        }
        most.resize(*lengths.iter().max().unwrap(), 0);
        for sector in 0..most.len().div_ceil(SECTOR) {
            let begin = sector * SECTOR;
            let end = (begin + SECTOR).min(most.len());
            let touching: Vec<(usize, &[u8])> = self
                .since
                .iter()
                .filter_map(|change| match change {
                    Change::Write(at, bytes) => {
                        let from = begin.max(*at);
                        let to = end.min(at + bytes.len());
                        (from < to).then(|| (from, &bytes[from - at..to - at]))
                    }
                    Change::Length(_) => None,
                })
                .collect();
            // Often all of them or none, so that the states of different sectors disagree.
            let count = match random.below(3) {
                0 => 0,
                1 => touching.len(),
                _ => random.below(touching.len() + 1),
            };
            for (index, &(from, bytes)) in touching[..count].iter().enumerate() {
                let torn = index + 1 == count && random.below(4) == 0;
                let taken = if torn {
                    random.below(bytes.len() + 1)
                } else {
                    bytes.len()
                };
                most[from..from + taken].copy_from_slice(&bytes[..taken]);
            }
        }
        most.truncate(lengths[random.below(lengths.len())]);
        most
    }
}

#[derive(Clone, Debug)]
enum Naming {
    Link(String, usize),
    Unlink(String),
}

#[derive(Clone, Debug, Default)]
struct Inner {
    files: Vec<Content>,
    names: BTreeMap<String, usize>,
    synced_names: BTreeMap<String, usize>,
    since: Vec<Naming>,
    /// What goes wrong, after so many changes more.
    fault: Option<(u64, Fault)>,
    dead: bool,
    /// A fault struck.
    fired: bool,
    random: Option<Random>,
}

fn rename_all(names: &mut BTreeMap<String, usize>, since: &[Naming]) {
    for naming in since {
        match naming {
            Naming::Link(name, file) => {
                // A file has one name.
                names.retain(|_, other| other != file);
                names.insert(name.clone(), *file);
            }
            Naming::Unlink(name) => {
                names.remove(name);
            }
        }
    }
}

impl Inner {
    /// Counts a change, and says what goes wrong with it.
    fn change(&mut self, sync: bool) -> io::Result<Option<Fault>> {
        if self.dead {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let Some((left, fault)) = &mut self.fault else {
            return Ok(None);
        };
        let fits = match fault {
            Fault::Sync => sync,
            Fault::Full(_) | Fault::Write(_) => !sync,
            Fault::Die(_) => true,
        };
        if *left > 0 || !fits {
            *left = left.saturating_sub(1);
            return Ok(None);
        }
        let fault = *fault;
        self.fault = None;
        self.fired = true;
        self.dead = matches!(fault, Fault::Die(_));
        Ok(Some(fault))
    }

    /// As [`Inner::change`] for what happens whole or not at all.
    fn change_whole(&mut self) -> io::Result<()> {
        match self.change(false)? {
            None => Ok(()),
            Some(Fault::Full(_)) => Err(ErrorKind::StorageFull.into()),
            Some(_) => Err(io::Error::other("the device failed")),
        }
    }

    fn naming(&mut self, naming: Naming) {
        rename_all(&mut self.names, std::slice::from_ref(&naming));
        self.since.push(naming);
    }
}

/// A folder on the simulated disk. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk(Arc<Mutex<Inner>>);

impl Disk {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    /// Arms a fault: after `after` changes more, the next change that it fits goes wrong.
    pub(crate) fn arm(&self, after: u64, fault: Fault, seed: u64) {
        let mut inner = self.lock();
        inner.fault = Some((after, fault));
        inner.random = Some(Random(seed));
    }

    /// The disk as another process finds it, now that this one is gone.
    pub(crate) fn after_kill(&self) -> Self {
        let mut inner = self.lock().clone();
        (inner.fault, inner.dead, inner.fired) = (None, false, false);
        Self(Arc::new(Mutex::new(inner)))
    }

    /// The disk as the same process finds it when it opens the log again: a fault may yet come.
    pub(crate) fn after_failure(&self) -> Self {
        let mut inner = self.lock().clone();
        (inner.dead, inner.fired) = (false, false);
        Self(Arc::new(Mutex::new(inner)))
    }

    /// True if a fault struck since the disk was made, or found again.
    pub(crate) fn had_fault(&self) -> bool {
        self.lock().fired
    }

    /// A disk as it may be when the machine has stopped.
    pub(crate) fn after_power_loss(&self, seed: u64) -> Self {
        let inner = self.lock();
        let mut random = Random(seed);
        let files = inner
            .files
            .iter()
            .map(|content| {
                let now = content.after_crash(&mut random);
                let synced = now.clone();
                Content {
                    now,
                    synced,
                    since: Vec::new(),
                }
            })
            .collect();
        let mut names = inner.synced_names.clone();
        rename_all(
            &mut names,
            &inner.since[..random.below(inner.since.len() + 1)],
        );
        Self(Arc::new(Mutex::new(Inner {
            files,
            synced_names: names.clone(),
            names,
            ..Inner::default()
        })))
    }

    /// The names and contents of all files.
    pub(crate) fn contents(&self) -> Vec<(String, Vec<u8>)> {
        let inner = self.lock();
        let content =
            |(name, file): (&String, &usize)| (name.clone(), inner.files[*file].now.clone());
        inner.names.iter().map(content).collect()
    }

    /// A disk with these files.
    pub(crate) fn of(contents: &[(String, Vec<u8>)]) -> Self {
        let disk = Self::default();
        for (name, bytes) in contents {
            let file = disk.create(name).unwrap();
            assert_eq!(file.write_at(bytes, 0).unwrap(), bytes.len());
            file.sync().unwrap();
        }
        disk.sync().unwrap();
        disk
    }
}

impl Storage for Disk {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.lock().names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        let mut inner = self.lock();
        inner.change_whole()?;
        inner.files.push(Content::default());
        let file = inner.files.len() - 1;
        inner.naming(Naming::Link(name.to_owned(), file));
        Ok(Arc::new(DiskFile(self.clone(), file)))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        let file = *self.lock().names.get(name).ok_or(ErrorKind::NotFound)?;
        Ok(Arc::new(DiskFile(self.clone(), file)))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        let file = *self.lock().names.get(name).ok_or(ErrorKind::NotFound)?;
        Ok(Arc::new(FileToRead(DiskFile(self.clone(), file))))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut inner = self.lock();
        inner.change_whole()?;
        let file = *inner.names.get(from).ok_or(ErrorKind::NotFound)?;
        inner.naming(Naming::Link(to.to_owned(), file));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut inner = self.lock();
        inner.change_whole()?;
        if !inner.names.contains_key(name) {
            return Err(ErrorKind::NotFound.into());
        }
        inner.naming(Naming::Unlink(name.to_owned()));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.lock();
        if inner.change(true)?.is_some() {
            return Err(io::Error::other("the device failed"));
        }
        inner.synced_names = inner.names.clone();
        inner.since.clear();
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from("/disk").join(name)
    }
}

#[derive(Debug)]
struct DiskFile(Disk, usize);

impl LogFile for DiskFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut inner = self.0.lock();
        let fault = inner.change(false)?;
        let taken = |part: u8| bytes.len() * usize::from(part) / 255;
        let (count, next) = match fault {
            None => (bytes.len(), None),
            // A short write now, and the error at the next call.
            Some(Fault::Full(part)) => (taken(part), Some(Fault::Full(0))),
            Some(Fault::Write(part)) => (taken(part), Some(Fault::Write(0))),
            Some(Fault::Die(part)) => (taken(part), None),
            Some(Fault::Sync) => unreachable!("a sync's fault"),
        };
        let change = Change::Write(offset as usize, bytes[..count].to_vec());
        inner.files[self.1].apply(change);
        match (fault, count) {
            (None, _) => Ok(count),
            (Some(Fault::Full(_)), 0) => Err(ErrorKind::StorageFull.into()),
            (Some(Fault::Die(_)), _) | (_, 0) => Err(io::Error::other("the device failed")),
            _ => {
                inner.fault = (count < bytes.len()).then(|| (0, next.unwrap()));
                Ok(count)
            }
        }
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let inner = self.0.lock();
        let content = &inner.files[self.1].now;
        let from = content.len().min(offset as usize);
        // Short reads are as common as can be.
        let count = bytes.len().min(content.len() - from).min(1000);
        bytes[..count].copy_from_slice(&content[from..from + count]);
        Ok(count)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.lock().files[self.1].now.len() as u64)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut inner = self.0.lock();
        inner.change_whole()?;
        inner.files[self.1].apply(Change::Length(length as usize));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.0.lock();
        let fault = inner.change(true)?;
        if fault == Some(Fault::Sync) {
            // Some of it may have got there, the rest never will: it counts as clean.
            let mut random = inner.random.take().expect("armed with a seed");
            let content = &mut inner.files[self.1];
            content.synced = content.after_crash(&mut random);
            content.since.clear();
        }
        if fault.is_some() {
            return Err(io::Error::other("the device failed"));
        }
        inner.files[self.1].sync();
        Ok(())
    }
}

/// A file that was opened to be read: to write it is a mistake.
#[derive(Debug)]
struct FileToRead(DiskFile);

impl LogFile for FileToRead {
    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        panic!("a file that was opened to be read is written");
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn set_length(&self, _: u64) -> io::Result<()> {
        panic!("a file that was opened to be read is cut or extended");
    }

    fn sync(&self) -> io::Result<()> {
        panic!("a file that was opened to be read is synced");
    }
}
