//! A folder that says which point of a merge, a checkpoint or an update its files have come to, and
//! keeps a model of what a loss of power would leave of them.
//!
//! Nothing is really synced: the model alone knows what a sync has covered.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use jindou_engine::{Config, DurabilityOptions};
use jindou_store::log::{Folder, LogFile, Storage};

use crate::Random;
use crate::disk::{Change, Disk, Naming};

/// What a database is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum During {
    Opening,
    Update,
    Checkpoint,
    /// The files of a merge, which goes on from the base before.
    Merge,
    /// The latest snapshot is brought upon the merged base.
    MovingOver,
    /// The checkpoint that makes a merged base current.
    Finishing,
    /// The first load, or everything numbered anew.
    Replacing,
    /// A load onto what is there.
    Loading,
}

/// Where in its work a database is, at an operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Point {
    SegmentBegun,
    SegmentWritten,
    TableWritten,
    CountsUnnamed,
    CountsWritten,
    BeforeForgetting,
    Forgetting,
    CheckpointWritten,
    BeforeCurrent,
    AfterCurrent,
    BeforeUnlink,
    BeforeUnlinkOnOpening,
    TransactionWritten,
    TransactionSynced,
    ReplacementWritten,
    BeforeReplacing,
    AfterReplacing,
    LoadLogged,
    LoadWritten,
    LoadCheckpointWritten,
    BeforeLoaded,
    AfterLoaded,
}

impl Point {
    /// All that a run must come to.
    pub(crate) const ALL: [Self; 22] = [
        Self::SegmentBegun,
        Self::SegmentWritten,
        Self::TableWritten,
        Self::CountsUnnamed,
        Self::CountsWritten,
        Self::BeforeForgetting,
        Self::Forgetting,
        Self::CheckpointWritten,
        Self::BeforeCurrent,
        Self::AfterCurrent,
        Self::BeforeUnlink,
        Self::BeforeUnlinkOnOpening,
        Self::TransactionWritten,
        Self::TransactionSynced,
        Self::ReplacementWritten,
        Self::BeforeReplacing,
        Self::AfterReplacing,
        Self::LoadLogged,
        Self::LoadWritten,
        Self::LoadCheckpointWritten,
        Self::BeforeLoaded,
        Self::AfterLoaded,
    ];

    /// Whether the operation is about to begin, and may fail without a loss: the store goes on.
    pub(crate) fn may_fail(self) -> bool {
        matches!(
            self,
            Self::SegmentBegun
                | Self::CountsUnnamed
                | Self::BeforeForgetting
                | Self::BeforeCurrent
                | Self::BeforeUnlink
                | Self::BeforeUnlinkOnOpening
                | Self::BeforeReplacing
                | Self::BeforeLoaded
        )
    }

    /// Whether transactions are taken at this point: the writer's lock is free.
    pub(crate) fn takes_transactions(self) -> bool {
        matches!(
            self,
            Self::SegmentBegun
                | Self::SegmentWritten
                | Self::TableWritten
                | Self::CountsUnnamed
                | Self::CountsWritten
                | Self::CheckpointWritten
                | Self::LoadWritten
        )
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Before,
    After,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Create,
    Write,
    Sync,
    Rename,
    Remove,
}

/// The point of an operation on a file whose name begins so.
fn point(during: During, when: When, operation: Operation, kind: &str) -> Option<Point> {
    use During::{Checkpoint, Finishing, Loading, Merge, MovingOver, Opening, Replacing, Update};
    use Operation::{Remove, Rename, Sync, Write};
    use When::{After, Before};
    Some(match (during, when, operation, kind) {
        (Merge, Before, Write, "edges") => Point::SegmentBegun,
        (Merge, After, Rename, "edges") => Point::SegmentWritten,
        (Merge, After, Rename, "terms") => Point::TableWritten,
        (Merge, Before, Rename, "base") => Point::CountsUnnamed,
        // What follows it is no part of writing them.
        (MovingOver, After, Rename, "base") => Point::CountsWritten,
        (MovingOver, Before, Write, "log") => Point::BeforeForgetting,
        (MovingOver, After, Write, "log") => Point::Forgetting,
        (Finishing | Checkpoint, After, Rename, "changes") => Point::CheckpointWritten,
        (Finishing | Checkpoint, Before, Rename, "CURRENT") => Point::BeforeCurrent,
        (Finishing | Checkpoint, After, Rename, "CURRENT") => Point::AfterCurrent,
        (Finishing | Checkpoint, Before, Remove, _) => Point::BeforeUnlink,
        (Opening, Before, Remove, _) => Point::BeforeUnlinkOnOpening,
        (Update, After, Write, "log") => Point::TransactionWritten,
        (Update, After, Sync, "log") => Point::TransactionSynced,
        (Replacing, After, Rename, "base" | "edges" | "terms") => Point::ReplacementWritten,
        (Replacing, Before, Rename, "CURRENT") => Point::BeforeReplacing,
        (Replacing, After, Rename, "CURRENT") => Point::AfterReplacing,
        (Loading, After, Write, "log") => Point::LoadLogged,
        (Loading, After, Rename, "edges" | "terms") => Point::LoadWritten,
        (Loading, After, Rename, "changes") => Point::LoadCheckpointWritten,
        (Loading, Before, Rename, "CURRENT") => Point::BeforeLoaded,
        (Loading, After, Rename, "CURRENT") => Point::AfterLoaded,
        _ => return None,
    })
}

/// Told of each point. What it does to files itself is told to nobody. An operation that is about to
/// begin fails if it says so.
pub(crate) type Visitor = Box<dyn FnMut(Point) -> Outcome + Send>;

/// Whether an operation shall be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// There is no space.
    Refused,
}

/// What is known of the files of one database.
pub(crate) struct Watch {
    disk: Mutex<Disk>,
    calls: AtomicUsize,
    during: Mutex<During>,
    visitor: Mutex<Option<Visitor>>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    /// All that the folder has is on the device.
    pub(crate) fn of(location: &Path) -> Arc<Self> {
        Arc::new(Self {
            disk: Mutex::new(Disk::of(location)),
            calls: AtomicUsize::new(0),
            during: Mutex::new(During::Opening),
            visitor: Mutex::new(None),
        })
    }

    pub(crate) fn configure(self: &Arc<Self>, config: &mut Config) {
        let watch = Arc::clone(self);
        let mut durability = DurabilityOptions::default();
        durability.storage = Arc::new(move |path| {
            Box::new(Watched {
                folder: Folder::new(path),
                watch: Arc::clone(&watch),
            })
        });
        config.durability = durability;
    }

    pub(crate) fn begin(&self, during: During) {
        *self.during.lock().expect("no test panicked") = during;
    }

    pub(crate) fn visit(&self, visitor: Option<Visitor>) {
        *self.visitor.lock().expect("no test panicked") = visitor;
    }

    /// Writes a state that a loss of power at this moment may leave.
    pub(crate) fn lose_power(&self, random: &mut Random, to: &Path) {
        self.disk
            .lock()
            .expect("no test panicked")
            .crash(random, to);
    }

    fn call(&self) -> usize {
        self.calls.fetch_add(1, Ordering::SeqCst)
    }

    fn change(&self, change: impl FnOnce(&mut Disk, usize)) {
        let call = self.call();
        change(&mut self.disk.lock().expect("no test panicked"), call);
    }

    fn pass(&self, when: When, operation: Operation, name: &str) -> io::Result<()> {
        let taken = self.visitor.lock().expect("no test panicked").take();
        let Some(mut visitor) = taken else {
            return Ok(());
        };
        let kind = name.split(['-', '.']).next().unwrap_or_default();
        let during = {
            let mut during = self.during.lock().expect("no test panicked");
            *during = match (*during, when, operation, kind) {
                (During::Merge, When::After, Operation::Rename, "base") => During::MovingOver,
                (During::MovingOver, _, Operation::Create, "log" | "changes" | "CURRENT") => {
                    During::Finishing
                }
                (during, ..) => during,
            };
            *during
        };
        let point = point(during, when, operation, kind);
        let outcome = point.map_or(Outcome::Done, &mut visitor);
        *self.visitor.lock().expect("no test panicked") = Some(visitor);
        match (outcome, when) {
            (Outcome::Refused, When::Before) => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Watched {
    folder: Folder,
    watch: Arc<Watch>,
}

impl Watched {
    fn wrap(&self, name: &str, cut: bool, file: Arc<dyn LogFile>) -> Arc<dyn LogFile> {
        let call = self.watch.call();
        let mut disk = self.watch.disk.lock().expect("no test panicked");
        Arc::new(WatchedFile {
            file,
            name: name.to_owned(),
            inode: disk.open(call, name, cut),
            watch: Arc::clone(&self.watch),
        })
    }
}

impl Storage for Watched {
    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        self.watch.pass(When::Before, Operation::Create, name)?;
        Ok(self.wrap(name, true, self.folder.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        Ok(self.wrap(name, false, self.folder.open(name)?))
    }

    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        self.folder.open_to_read(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.watch.pass(When::Before, Operation::Rename, to)?;
        self.folder.rename(from, to)?;
        self.watch.change(|disk, call| {
            let inode = disk.names[from];
            disk.name(call, Naming::Rename(from.to_owned(), to.to_owned(), inode));
        });
        self.watch.pass(When::After, Operation::Rename, to)?;
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.watch.pass(When::Before, Operation::Remove, name)?;
        self.folder.remove(name)?;
        self.watch
            .change(|disk, call| disk.name(call, Naming::Unlink(name.to_owned())));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.watch.change(|disk, call| disk.sync_names(call));
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }
}

#[derive(Debug)]
struct WatchedFile {
    file: Arc<dyn LogFile>,
    name: String,
    inode: usize,
    watch: Arc<Watch>,
}

impl LogFile for WatchedFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.watch
            .pass(When::Before, Operation::Write, &self.name)?;
        let count = self.file.write_at(bytes, offset)?;
        let data = Change::Data {
            offset: usize::try_from(offset).expect("a small file"),
            bytes: bytes[..count].to_vec(),
        };
        self.watch
            .change(|disk, call| disk.change(self.inode, call, data));
        self.watch.pass(When::After, Operation::Write, &self.name)?;
        Ok(count)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)?;
        let length = Change::Length(usize::try_from(length).expect("a small file"));
        self.watch
            .change(|disk, call| disk.change(self.inode, call, length));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.watch.change(|disk, call| disk.sync(self.inode, call));
        self.watch.pass(When::After, Operation::Sync, &self.name)?;
        Ok(())
    }
}
