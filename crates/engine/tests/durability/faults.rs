//! A folder that fails as asked: no space, syncs that fail, and a stop at some operation.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jindou_engine::{Config, DurabilityOptions};
use jindou_store::log::{Folder, LogFile, Storage};

/// What is asked of all folders of one store.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// No write of another file than `CURRENT` and the log finds space.
    pub(crate) is_full: AtomicBool,
    /// The same for the log.
    pub(crate) is_log_full: AtomicBool,
    /// Syncs of files fail.
    pub(crate) fails_to_sync: AtomicBool,
    /// Syncs of the folder fail, after so many more; `u64::MAX` for never.
    pub(crate) folder_syncs_left: AtomicU64,
    /// Files begun.
    pub(crate) created: AtomicU64,
    /// Operations until the process stops for ever; 0 for never.
    pub(crate) stop_after: AtomicU64,
}

impl Faults {
    pub(crate) fn new() -> Arc<Self> {
        let faults = Self::default();
        faults.folder_syncs_left.store(u64::MAX, Ordering::SeqCst);
        Arc::new(faults)
    }

    pub(crate) fn configure(self: &Arc<Self>, config: &mut Config) {
        let faults = Arc::clone(self);
        let mut durability = DurabilityOptions::default();
        durability.fsync = config.durability.fsync;
        durability.storage = Arc::new(move |path| {
            Box::new(Faulty {
                folder: Folder::new(path),
                faults: Arc::clone(&faults),
            })
        });
        config.durability = durability;
    }

    pub(crate) fn set_full(&self, is_full: bool) {
        self.is_full.store(is_full, Ordering::SeqCst);
        self.is_log_full.store(is_full, Ordering::SeqCst);
    }

    /// Counts an operation; true where the process is to stop.
    fn step(&self) -> bool {
        let counted = self
            .stop_after
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                left.checked_sub(1)
            });
        counted == Ok(1)
    }

    fn pass(&self) {
        if self.step() {
            stop();
        }
    }
}

/// Tells the test something.
pub(crate) fn say(text: &str) {
    let line = format!("\n@ {text}\n");
    let mut out = std::io::stdout().lock();
    // Nobody listens once the test has ended.
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

/// Says so and never returns: whoever reads it kills the process.
pub(crate) fn stop() -> ! {
    say("stopped");
    loop {
        std::thread::park();
    }
}

#[derive(Debug)]
struct Faulty {
    folder: Folder,
    faults: Arc<Faults>,
}

fn full() -> io::Error {
    io::Error::from(io::ErrorKind::StorageFull)
}

impl Faulty {
    fn wrap(&self, name: &str, file: Arc<dyn LogFile>) -> Arc<dyn LogFile> {
        Arc::new(FaultyFile {
            file,
            is_log: name.starts_with("log-"),
            faults: Arc::clone(&self.faults),
        })
    }
}

impl Storage for Faulty {
    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        self.faults.pass();
        self.faults.created.fetch_add(1, Ordering::SeqCst);
        Ok(self.wrap(name, self.folder.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        Ok(self.wrap(name, self.folder.open(name)?))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        Ok(self.wrap(name, self.folder.open_to_read(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.faults.pass();
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.faults.pass();
        self.folder.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.pass();
        let left = &self.faults.folder_syncs_left;
        let take = |left: u64| (left < u64::MAX).then(|| left.saturating_sub(1));
        if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take) == Ok(0) {
            return Err(io::Error::other("the device failed"));
        }
        self.folder.sync()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }
}

#[derive(Debug)]
struct FaultyFile {
    file: Arc<dyn LogFile>,
    is_log: bool,
    faults: Arc<Faults>,
}

impl LogFile for FaultyFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if self.faults.step() {
            // Some of it gets there.
            self.file.write_at(&bytes[..bytes.len() / 2], offset)?;
            stop();
        }
        let is_full = match self.is_log {
            true => &self.faults.is_log_full,
            false => &self.faults.is_full,
        };
        // What was written once can be written over, as the log does to take a record back.
        let is_new = || {
            self.file
                .length()
                .map(|length| offset + bytes.len() as u64 > length)
        };
        let is_zeros = bytes.iter().all(|byte| *byte == 0);
        if is_full.load(Ordering::SeqCst) && (is_new()? || !is_zeros) {
            return Err(full());
        }
        self.file.write_at(bytes, offset)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.faults.pass();
        self.file.set_length(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.faults.pass();
        if self.faults.fails_to_sync.load(Ordering::SeqCst) {
            return Err(io::Error::other("the device failed"));
        }
        self.file.sync()
    }
}
