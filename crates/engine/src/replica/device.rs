//! What follows when the device of a copy takes no more?
//!
//! A copy that follows cannot leave out a transaction, so it applies nothing any more; one that leads leaves that to others.
//! Both begin anew once the device takes as much as it refused: nobody has to look after that.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use jindou_replication::Timing;
use jindou_store::StoreError;

use super::apply::ApplyError;
use crate::EngineError;

/// Times that a lease holds, between two looks at the device: another node leads by then where one can.
const LEASES: u32 = 5;
/// Bytes for which there is to be room beside what was refused.
const ROOM_BESIDE: usize = 1 << 20;

/// Why a copy applies nothing any more.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) reason: String,
    /// Bytes that its device did not take, where that is why.
    pub(super) refused: Option<usize>,
}

impl Stop {
    /// The stop that an error calls for; `bytes` is the size of the write that failed.
    pub(super) fn of(error: &EngineError, bytes: usize) -> Self {
        let reason = match error {
            // That it takes no updates is said with the reason.
            EngineError::ReadOnly { reason } => reason.clone(),
            other => other.to_string(),
        };
        Self {
            reason,
            refused: is_of_device(error).then_some(bytes),
        }
    }
}

impl From<String> for Stop {
    fn from(reason: String) -> Self {
        let refused = None;
        Self { reason, refused }
    }
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        Self::of(&error, 0)
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<(ApplyError, usize)> for Stop {
    fn from((error, bytes): (ApplyError, usize)) -> Self {
        match error {
            ApplyError::Engine(error) => Self::of(&error, bytes),
            other => other.to_string().into(),
        }
    }
}

/// Whether the device may do later what it did not do now.
fn is_of_device(error: &EngineError) -> bool {
    match error {
        // What the writer says of a log that takes no more.
        EngineError::ReadOnly { .. } | EngineError::Io { .. } => true,
        EngineError::Store(error) => matches!(
            error,
            StoreError::DiskFull { .. }
                | StoreError::LogFailed { .. }
                | StoreError::Uncertain { .. }
        ),
        _ => false,
    }
}

/// A device that took no more, until it does.
#[derive(Debug)]
pub(super) struct Refusal {
    bytes: usize,
    next_look: Instant,
    pause: Duration,
}

impl Refusal {
    pub(super) fn new(bytes: usize, timing: &Timing) -> Self {
        let pause = timing.lease * LEASES;
        Self {
            bytes: bytes.saturating_add(ROOM_BESIDE),
            next_look: Instant::now() + pause,
            pause,
        }
    }

    /// Whether it is time to look, and a folder takes as much now.
    pub(super) fn is_over(&mut self, folder: &Path) -> bool {
        if Instant::now() < self.next_look {
            return false;
        }
        let taken = write_and_remove(folder, self.bytes);
        self.next_look = Instant::now() + self.pause;
        taken.is_ok()
    }
}

/// Tries whether a folder takes so many bytes: writes and syncs an unnamed temporary file of that size.
fn write_and_remove(folder: &Path, bytes: usize) -> io::Result<()> {
    let zeros = vec![0; bytes.min(ROOM_BESIDE)];
    let mut file = tempfile::tempfile_in(folder)?;
    let mut left = bytes;
    while left > 0 {
        let now = left.min(zeros.len());
        file.write_all(&zeros[..now])?;
        left -= now;
    }
    file.sync_all()
}
