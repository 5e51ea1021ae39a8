//! What may sub-queries of other nodes hold while they wait for a thread?
//!
//! What all queries together may: their messages are charged to the memory pool when they come. The first MiB
//! of what waits is not, as the first MiB of each query is not: light ones go on when heavy ones hold
//! everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jindou_exec::{ExecError, FREE_BYTES, MemoryPool, Reservation};

/// Messages that wait.
pub(super) struct Waiting {
    pool: Option<Arc<MemoryPool>>,
    /// Bytes of those that the pool does not count: up to [`FREE_BYTES`].
    free_bytes: Arc<AtomicU64>,
}

/// The bytes of a message, until this is dropped.
pub(super) enum Held {
    Free { bytes: u64, of: Arc<AtomicU64> },
    Pooled { _reservation: Reservation },
    Uncounted,
}

impl Waiting {
    pub(super) fn new(pool: Option<Arc<MemoryPool>>) -> Self {
        Self {
            pool,
            free_bytes: Arc::default(),
        }
    }

    /// Charges a message of so many bytes.
    ///
    /// # Errors
    /// [`ExecError::PoolExhausted`].
    pub(super) fn take(&self, bytes: usize) -> Result<Held, ExecError> {
        let Some(pool) = &self.pool else {
            return Ok(Held::Uncounted);
        };
        let bytes = bytes as u64;
        let with_it = |free: u64| free.checked_add(bytes).filter(|free| *free <= FREE_BYTES);
        let order = Ordering::Relaxed;
        if self.free_bytes.fetch_update(order, order, with_it).is_ok() {
            let of = Arc::clone(&self.free_bytes);
            return Ok(Held::Free { bytes, of });
        }
        match pool.reserve(bytes) {
            Some(_reservation) => Ok(Held::Pooled { _reservation }),
            None => Err(ExecError::PoolExhausted {
                limit_bytes: pool.limit_bytes(),
            }),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Self::Free { bytes, of } = self {
            of.fetch_sub(*bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn what_waits_is_charged_beyond_the_first_mib() {
        let pool = Arc::new(MemoryPool::new(4 * MIB as u64));
        let waiting = Waiting::new(Some(Arc::clone(&pool)));
        let first = waiting.take(MIB).expect("it is free");
        assert_eq!(pool.held_bytes(), 0);
        let second = waiting.take(3 * MIB).expect("there is room");
        assert_eq!(pool.held_bytes(), 3 * MIB as u64);
        let refused = waiting.take(2 * MIB).err();
        let limit = 4 * MIB as u64;
        assert!(
            matches!(refused, Some(ExecError::PoolExhausted { limit_bytes }) if limit_bytes == limit),
            "{refused:?}"
        );
        drop(second);
        assert_eq!(pool.held_bytes(), 0);
        drop(first);
        let again = waiting.take(MIB).expect("it is free");
        assert_eq!(pool.held_bytes(), 0);
        drop(again);
    }

    #[test]
    fn light_sub_queries_come_in_when_the_pool_is_empty() {
        let waiting = Waiting::new(Some(Arc::new(MemoryPool::new(0))));
        let light = waiting.take(1000).expect("it is free");
        assert!(waiting.take(MIB).is_err());
        drop(light);
        assert!(waiting.take(MIB).is_ok());
    }
}
