//! What does the process hold that nobody reserved?
//!
//! Each estimate of what a request takes may be wrong, and an allocator keeps what was freed until
//! it is asked for it. So the memory of the process is measured while requests hold some: what is in use beyond
//! the data, the process at rest, and all that may be in use, lowers what may be reserved until it
//! is there no more. Requests that reserve nothing, as light queries, never notice.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use jindou_engine::{DataMemory, Database, MemoryPool};
use jindou_fabric::allocator::{release_free_memory, release_in_time, release_only_when_asked};

/// Between two measurements while memory is reserved, and while none is.
const BUSY: Duration = Duration::from_millis(20);
const QUIET: Duration = Duration::from_millis(200);
/// What may be in use beside what is reserved, in bytes, before the allocator is asked for what it
/// keeps, however small the pool is: stacks and caches of some threads come and go. And how often
/// it is asked for less.
const KEPT_BYTES: u64 = 32 << 20;
const RELEASE_EVERY: Duration = Duration::from_secs(1);
/// What a merge may take, as a multiple of what it merges.
const WORK_FACTOR: u64 = 6;

/// Measures until it is dropped.
pub(crate) struct Watch {
    _stop: Sender<()>,
}

impl Watch {
    /// Begins to measure what is in use beside what `pool` has reserved: up to `spare_bytes` of it
    /// were left out of the pool for that. `None` where the system does not say what is in use.
    pub(crate) fn start(
        database: Database,
        pool: Arc<MemoryPool>,
        spare_bytes: u64,
    ) -> Option<Self> {
        resident_bytes()?;
        let (stop, stopped) = channel();
        let mut strain = Strain {
            database,
            pool,
            spare_bytes,
            rest: None,
            data: None,
            released: Instant::now(),
        };
        let watch = move || {
            release_only_when_asked();
            let mut pause = Duration::ZERO;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(pause) {
                strain.measure();
                pause = if strain.is_busy() { BUSY } else { QUIET };
            }
            release_free_memory();
            release_in_time();
        };
        let thread = std::thread::Builder::new().name("memory-watch".to_owned());
        match thread.spawn(watch) {
            Ok(_detached) => Some(Self { _stop: stop }),
            Err(error) => {
                tracing::warn!(%error, "the memory of the process is not watched");
                None
            }
        }
    }
}

struct Strain {
    database: Database,
    pool: Arc<MemoryPool>,
    spare_bytes: u64,
    /// What the process needs at rest, beside the data: as it was at first.
    rest: Option<u64>,
    data: Option<DataMemory>,
    released: Instant,
}

impl Strain {
    fn is_busy(&self) -> bool {
        self.pool.held_bytes() > 0 || self.pool.unreserved_bytes() > 0
    }

    fn measure(&mut self) {
        let Some(resident) = resident_bytes() else {
            return;
        };
        let held = self.pool.held_bytes();
        let data = self.database.data_memory(self.data);
        self.data = Some(data);
        let of_base = if data.is_in_files { 0 } else { data.base_bytes };
        let of_work = match data.is_in_work {
            true => WORK_FACTOR * (data.base_bytes + data.change_bytes),
            false => 0,
        };
        let counted = of_base + data.change_bytes + data.stream_bytes + of_work + held;
        let rest = *self.rest.get_or_insert(resident.saturating_sub(counted));
        let unreserved = resident.saturating_sub(rest + counted);
        let is_due = unreserved > 0 && self.released.elapsed() >= RELEASE_EVERY;
        // More would be taken again soon, and to give it back keeps a core for milliseconds.
        let kept = (self.spare_bytes / 2).max(KEPT_BYTES);
        if unreserved > kept || is_due {
            release_free_memory();
            self.released = Instant::now();
        }
        let too_much = unreserved.saturating_sub(self.spare_bytes.max(KEPT_BYTES));
        self.pool.note_unreserved(too_much);
    }
}

/// Resident memory that is no file's, in bytes; `None` where there is no `/proc`.
fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let mut fields = pages.split(' ').skip(1).map(str::parse::<u64>);
    let (resident, shared) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(resident.saturating_sub(shared) * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_reserved_lowers_what_may_be() {
        if resident_bytes().is_none() {
            println!("SKIPPED: memory of this process (/proc/self/statm is absent)");
            return;
        }
        // More than the tests beside this one take, or give back meanwhile: 250 MiB.
        let pool = Arc::new(MemoryPool::new(2 << 30));
        let mut strain = Strain {
            database: Database::new(),
            pool: Arc::clone(&pool),
            spare_bytes: 64 << 20,
            rest: None,
            data: None,
            released: Instant::now(),
        };
        strain.measure();
        assert!(pool.unreserved_bytes() < 250 << 20);
        // Written to, so that it is there.
        let taken = vec![1_u8; 512 << 20];
        strain.measure();
        let unreserved = pool.unreserved_bytes();
        assert!(unreserved > 190 << 20, "{unreserved}");
        assert!(pool.reserve(1_900 << 20).is_none());
        let reserved = pool.reserve(512 << 20).expect("there is as much");
        strain.measure();
        assert!(pool.unreserved_bytes() < 250 << 20, "it is reserved now");
        drop((taken, reserved));
        strain.measure();
        assert!(pool.unreserved_bytes() < 250 << 20, "it is there no more");
    }
}
