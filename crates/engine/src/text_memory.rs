//! What does the text of a request hold of the memory that all share?

use std::sync::Arc;

use jindou_exec::{FREE_BYTES, MemoryPool, Reservation};
use jindou_plan::{Limits, PlanError};

use crate::EngineError;
use crate::deadline::Deadline;

/// Bytes taken from the pool at once.
const GRANULE: u64 = 256 << 10;

/// Memory of the pool that reading a text takes. The first MiB is not counted, as that of queries
/// is not: a short text never finds the pool empty.
pub(crate) struct TextMemory<'a> {
    pool: Option<&'a Arc<MemoryPool>>,
    held: u64,
    reserved: u64,
    reservations: Vec<Reservation>,
}

impl<'a> TextMemory<'a> {
    pub(crate) const fn new(pool: Option<&'a Arc<MemoryPool>>) -> Self {
        Self {
            pool,
            held: 0,
            reserved: 0,
            reservations: Vec::new(),
        }
    }

    /// Takes bytes until this is dropped; false if there are not as many.
    pub(crate) fn try_reserve(&mut self, bytes: usize) -> bool {
        let Some(pool) = self.pool else {
            return true;
        };
        self.held = self.held.saturating_add(bytes as u64);
        let counted = self.held.saturating_sub(FREE_BYTES);
        if counted <= self.reserved {
            return true;
        }
        // Ever more at once, so that there are few reservations.
        let least = GRANULE.max(self.reserved / 8);
        let more = (counted - self.reserved).max(least);
        let taken = pool.reserve(more);
        let taken = taken.map(|reservation| (more, reservation)).or_else(|| {
            let needed = counted - self.reserved;
            Some((needed, pool.reserve(needed)?))
        });
        let Some((taken, reservation)) = taken else {
            return false;
        };
        self.reserved += taken;
        self.reservations.push(reservation);
        true
    }

    /// [`TextMemory::try_reserve`].
    ///
    /// # Errors
    /// [`EngineError::PoolExhausted`].
    pub(crate) fn take(&mut self, bytes: usize) -> Result<(), EngineError> {
        match self.try_reserve(bytes) {
            true => Ok(()),
            false => Err(self.exhausted()),
        }
    }

    /// Parses or plans within this memory and until a deadline.
    ///
    /// # Errors
    /// As [`Deadline::plan`], and [`EngineError::PoolExhausted`].
    pub(crate) fn plan<T>(
        &mut self,
        deadline: &Deadline,
        make: impl FnOnce(Limits<'_>) -> Result<T, PlanError>,
    ) -> Result<T, EngineError> {
        let mut is_refused = false;
        let made = deadline.plan(|is_over| {
            let reserve = &mut |bytes| self.try_reserve(bytes);
            let made = make(Limits { reserve, is_over });
            is_refused = matches!(made, Err(PlanError::MemoryRefused));
            made
        });
        match is_refused {
            true => Err(self.exhausted()),
            false => made,
        }
    }

    fn exhausted(&self) -> EngineError {
        EngineError::PoolExhausted {
            limit_bytes: self.pool.map_or(0, |pool| pool.limit_bytes()),
        }
    }
}
