//! What does the process hold, and what does the store's folder, while something goes on?

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::BenchError;
use crate::machine::{Resident, thread_cpu};

/// Time between two looks.
pub(super) const STEP: Duration = Duration::from_millis(5);

/// What was seen from the beginning to the end.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Memory at the beginning.
    pub(super) before: Resident,
    /// The most memory of each kind.
    pub(super) peak: Resident,
    /// The most bytes of each file that was not there at the beginning, summed.
    pub(super) written_bytes: u64,
    /// What looking took of a core.
    pub(super) cpu: Duration,
}

impl Seen {
    /// How much anonymous memory grew at most.
    pub(super) fn growth_bytes(&self) -> u64 {
        self.peak
            .anonymous_bytes
            .saturating_sub(self.before.anonymous_bytes)
    }
}

/// A thread that looks every [`STEP`].
pub(super) struct Watch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Seen, BenchError>>,
}

impl Watch {
    /// Begins, with a look that this thread takes.
    ///
    /// # Errors
    /// [`BenchError::Memory`], [`BenchError::Io`].
    pub(super) fn begin(folder: &Path) -> Result<Self, BenchError> {
        let mut looker = Looker::begin(folder)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                looker.look()?;
                std::thread::park_timeout(STEP);
            }
            looker.look()?;
            looker.seen.cpu = thread_cpu();
            Ok(looker.end())
        });
        Ok(Self { stop, thread })
    }

    /// Ends, with one more look.
    ///
    /// # Errors
    /// [`BenchError::Memory`], [`BenchError::Io`].
    pub(super) fn end(self) -> Result<Seen, BenchError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().map_err(|_| BenchError::Thread)?
    }
}

struct Looker {
    folder: PathBuf,
    old: BTreeMap<OsString, u64>,
    new: BTreeMap<OsString, u64>,
    seen: Seen,
}

impl Looker {
    fn begin(folder: &Path) -> Result<Self, BenchError> {
        let before = Resident::now()?;
        Ok(Self {
            folder: folder.to_owned(),
            old: files(folder)?,
            new: BTreeMap::new(),
            seen: Seen {
                before,
                peak: before,
                written_bytes: 0,
                cpu: Duration::ZERO,
            },
        })
    }

    fn look(&mut self) -> Result<(), BenchError> {
        self.seen.peak = self.seen.peak.max(Resident::now()?);
        for (name, bytes) in files(&self.folder)? {
            if !self.old.contains_key(&name) {
                let most = self.new.entry(name).or_default();
                *most = bytes.max(*most);
            }
        }
        Ok(())
    }

    fn end(self) -> Seen {
        Seen {
            written_bytes: self.new.values().sum(),
            ..self.seen
        }
    }
}

/// Bytes of all files of a folder.
///
/// # Errors
/// [`BenchError::Io`].
pub(super) fn folder_bytes(folder: &Path) -> Result<u64, BenchError> {
    Ok(files(folder)?.values().sum())
}

/// The files of a folder and their bytes; one that goes meanwhile is none of them.
fn files(folder: &Path) -> Result<BTreeMap<OsString, u64>, BenchError> {
    let read = || -> io::Result<BTreeMap<OsString, u64>> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            match entry.metadata() {
                Ok(found) if found.is_file() => {
                    files.insert(entry.file_name(), found.len());
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(files)
    };
    read().map_err(BenchError::io(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_new_count_as_written_even_if_they_went_again() {
        if Resident::now().is_err() {
            println!("SKIPPED: memory of this process (/proc/self/status is absent)");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: usize| {
            fs::write(folder.path().join(name), vec![0; bytes]).unwrap();
        };
        write("old", 10);
        let mut looker = Looker::begin(folder.path()).unwrap();
        write("old", 100);
        write("passing", 1_000);
        looker.look().unwrap();
        fs::remove_file(folder.path().join("passing")).unwrap();
        write("new", 7);
        looker.look().unwrap();
        let seen = looker.end();
        assert_eq!(seen.written_bytes, 1_007);
        assert!(seen.peak.anonymous_bytes >= seen.before.anonymous_bytes);
        assert_eq!(folder_bytes(folder.path()).unwrap(), 107);
    }
}
