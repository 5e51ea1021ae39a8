//! A process that is killed in the middle of an operation on its files: from then on none of its
//! operations reaches them, so that what is there is what the process left.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use jindou_engine::{Config, DurabilityOptions};
use jindou_store::log::{Folder, LogFile, Storage};

/// The life of a process.
#[derive(Debug)]
pub(crate) struct Life {
    /// Operations until it ends.
    left: AtomicU64,
    /// Bytes that it wrote.
    pub(crate) written: AtomicU64,
}

impl Life {
    pub(crate) fn of(operations: u64) -> Arc<Self> {
        Arc::new(Self {
            left: operations.into(),
            written: AtomicU64::new(0),
        })
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.left.load(SeqCst) == 0
    }

    /// Has a database of these settings live it.
    pub(crate) fn configure(self: &Arc<Self>, config: &mut Config) {
        let life = Arc::clone(self);
        let mut durability = DurabilityOptions::default();
        durability.fsync = config.durability.fsync;
        durability.storage = Arc::new(move |path| {
            Box::new(Mortal {
                folder: Folder::new(path),
                life: Arc::clone(&life),
            })
        });
        config.durability = durability;
    }

    /// Nothing if the process is alive; otherwise whether it ends with this operation.
    fn step(&self) -> Result<(), bool> {
        let before = self
            .left
            .fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        match before {
            Ok(1) => Err(true),
            Ok(_) => Ok(()),
            Err(_) => Err(false),
        }
    }

    fn pass(&self) -> io::Result<()> {
        self.step().map_err(|_| gone())
    }
}

fn gone() -> io::Error {
    io::Error::other("the process was killed")
}

#[derive(Debug)]
struct Mortal {
    folder: Folder,
    life: Arc<Life>,
}

#[derive(Debug)]
struct MortalFile {
    file: Arc<dyn LogFile>,
    life: Arc<Life>,
}

impl Mortal {
    fn wrap(&self, file: Arc<dyn LogFile>) -> Arc<dyn LogFile> {
        let life = Arc::clone(&self.life);
        Arc::new(MortalFile { file, life })
    }
}

impl Storage for Mortal {
    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        self.life.pass()?;
        Ok(self.wrap(self.folder.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        Ok(self.wrap(self.folder.open(name)?))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        Ok(self.wrap(self.folder.open_to_read(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.life.pass()?;
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.life.pass()?;
        self.folder.remove(name)
    }

    fn sync(&self) -> io::Result<()> {
        self.life.pass()?;
        self.folder.sync()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }
}

impl LogFile for MortalFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        match self.life.step() {
            Ok(()) => {
                let count = self.file.write_at(bytes, offset)?;
                self.life.written.fetch_add(count as u64, SeqCst);
                Ok(count)
            }
            Err(is_last) => {
                if is_last {
                    // Some of it gets there.
                    self.file.write_at(&bytes[..bytes.len() / 2], offset)?;
                }
                Err(gone())
            }
        }
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.life.pass()?;
        self.file.set_length(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.life.pass()
    }
}
