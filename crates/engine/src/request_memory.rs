//! What does a request hold of the memory that all share, beside what its query does?
//!
//! Its text while that is read, the quads of its data or document, and the terms that are new:
//! each counts in one of these, before it is made.

use std::sync::Arc;

use jindou_exec::{FREE_BYTES, MemoryPool, Reservation};
use jindou_plan::{Limits, PlanError};

use crate::EngineError;
use crate::deadline::Deadline;

/// Bytes taken from the pool at once.
const GRANULE: u64 = 256 << 10;

/// Memory of the pool that a request takes. The first MiB is not counted, as that of queries is
/// not: a short text never finds the pool empty.
#[derive(Debug, Default)]
pub(crate) struct RequestMemory {
    pool: Option<Arc<MemoryPool>>,
    held: u64,
    reserved: u64,
    reservation: Option<Reservation>,
}

impl RequestMemory {
    pub(crate) fn new(pool: Option<&Arc<MemoryPool>>) -> Self {
        Self {
            pool: pool.cloned(),
            ..Self::default()
        }
    }

    /// Takes bytes until this is dropped; false if there are not as many.
    pub(crate) fn try_reserve(&mut self, bytes: u64) -> bool {
        self.held = self.held.saturating_add(bytes);
        if self.pool.is_none() {
            return true;
        }
        let counted = self.held.saturating_sub(FREE_BYTES);
        if counted <= self.reserved {
            return true;
        }
        // Ever more at once, so that the pool is asked few times.
        let needed = counted - self.reserved;
        let more = needed.max(GRANULE).max(self.reserved / 8);
        self.grow(more) || self.grow(needed)
    }

    fn grow(&mut self, bytes: u64) -> bool {
        let taken = match (&mut self.reservation, &self.pool) {
            (Some(reservation), _) => reservation.try_grow(bytes),
            (None, Some(pool)) => {
                self.reservation = pool.reserve(bytes);
                self.reservation.is_some()
            }
            (None, None) => true,
        };
        self.reserved += if taken { bytes } else { 0 };
        taken
    }

    /// [`RequestMemory::try_reserve`].
    ///
    /// # Errors
    /// [`EngineError::PoolExhausted`].
    pub(crate) fn take(&mut self, bytes: u64) -> Result<(), EngineError> {
        match self.try_reserve(bytes) {
            true => Ok(()),
            false => Err(self.exhausted()),
        }
    }

    /// True if what this was asked for, the last refused bytes included, is more than the pool would
    /// have if nobody else held any of it.
    pub(crate) fn is_beyond_pool(&self) -> bool {
        self.pool.as_ref().is_some_and(|pool| {
            let most = pool.limit_bytes().saturating_sub(pool.unreserved_bytes());
            self.held.saturating_sub(FREE_BYTES) > most
        })
    }

    /// As much again.
    ///
    /// # Errors
    /// [`EngineError::PoolExhausted`].
    pub(crate) fn doubled(&self) -> Result<Self, EngineError> {
        let mut other = Self::new(self.pool.as_ref());
        other.take(self.held)?;
        Ok(other)
    }

    /// Bytes taken so far.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held
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
            let reserve = &mut |bytes: usize| self.try_reserve(bytes as u64);
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
            limit_bytes: self.pool.as_ref().map_or(0, |pool| pool.limit_bytes()),
        }
    }
}
