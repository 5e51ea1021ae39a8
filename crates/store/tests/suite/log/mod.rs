//! The log on a simulated disk: what is there after kills, power losses, full disks, failed syncs
//! and damage?

mod crashes;
mod damage;
mod disk;
mod threads;

use jindou_store::log::{self, Fsync, Log, LogOptions, Recovered};
use jindou_store::{Identity, StoreError};

use disk::Disk;

const GENERATION: u64 = 4;

/// Files and steps small enough that a few records need several.
fn options() -> LogOptions {
    LogOptions {
        fsync: Fsync::Always,
        file_bytes: 6 << 10,
        grow_bytes: 1 << 10,
    }
}

type Groups = Vec<Vec<Vec<u8>>>;

fn create(disk: &Disk) -> Log {
    Log::create(
        Box::new(disk.clone()),
        options(),
        GENERATION,
        Identity::default(),
    )
    .unwrap()
}

fn create_unsynced(disk: &Disk) -> Log {
    let options = LogOptions {
        fsync: Fsync::Never,
        ..options()
    };
    Log::create(
        Box::new(disk.clone()),
        options,
        GENERATION,
        Identity::default(),
    )
    .unwrap()
}

/// Gathers what is handed out into groups.
struct Gather {
    groups: Groups,
    open: Vec<Vec<u8>>,
    sequence: Option<u64>,
}

impl Gather {
    fn new() -> Self {
        Self {
            groups: Vec::new(),
            open: Vec::new(),
            sequence: None,
        }
    }

    fn take(&mut self, record: log::Record<'_>) -> Result<(), StoreError> {
        let expected = self.sequence.map_or(record.sequence, |before| before + 1);
        assert_eq!(record.sequence, expected, "no gap");
        self.sequence = Some(record.sequence);
        self.open.push(record.payload.to_vec());
        if record.ends_group {
            self.groups.push(std::mem::take(&mut self.open));
        }
        Ok(())
    }

    fn finish(self) -> Groups {
        assert!(self.open.is_empty(), "whole groups only");
        self.groups
    }
}

fn open(disk: &Disk, first: u64) -> Result<(Log, Recovered, Groups), StoreError> {
    let mut gather = Gather::new();
    let storage = Box::new(disk.clone());
    let (log, recovered) = Log::open(
        storage,
        options(),
        GENERATION,
        Identity::default(),
        first,
        |r| gather.take(r),
    )?;
    let groups = gather.finish();
    assert_eq!(recovered.groups, groups.len() as u64);
    assert_eq!(log.last_sequence(), recovered.last_sequence);
    Ok((log, recovered, groups))
}

fn read(disk: &Disk, first: u64) -> Result<(Recovered, Groups), StoreError> {
    let mut gather = Gather::new();
    let recovered = log::read(disk, GENERATION, Identity::default(), first, |record| {
        gather.take(record)
    })?;
    Ok((recovered, gather.finish()))
}
