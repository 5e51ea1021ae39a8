//! How much does a query hold and how far is it, and how much may all queries hold together?

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// Bytes that a query takes from the pool at once, so that small bookings do not meet there.
const GRANULE: u64 = 256 << 10;
/// Bytes of each query that no pool counts: a light query never finds it empty.
pub const FREE_BYTES: u64 = 1 << 20;
/// Bytes of tables that are not held against a query's own budget: the batches that a light query
/// needs however small that is.
const FREE_TABLE_BYTES: u64 = 1 << 20;

/// Memory that all queries share.
///
/// The first MiB of each query is not counted, so that light ones go on when heavy ones hold
/// everything; callers bound how many run.
#[derive(Debug)]
pub struct MemoryPool {
    limit_bytes: u64,
    held_bytes: AtomicU64,
    /// Held by the process beside what was reserved: see [`MemoryPool::note_unreserved`].
    unreserved_bytes: AtomicU64,
}

impl MemoryPool {
    /// A pool of so many bytes.
    #[must_use]
    pub fn new(limit_bytes: u64) -> Self {
        Self {
            limit_bytes,
            held_bytes: AtomicU64::new(0),
            unreserved_bytes: AtomicU64::new(0),
        }
    }

    /// Its size.
    #[must_use]
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// What is taken now.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Relaxed)
    }

    /// Notes how much is in use that should have been reserved and was not, as it was measured:
    /// what an allocator keeps, and what no estimate foresaw. It lowers what may be reserved until
    /// it is noted anew; what is held already stays.
    pub fn note_unreserved(&self, bytes: u64) {
        self.unreserved_bytes.store(bytes, Relaxed);
    }

    /// What was noted last.
    #[must_use]
    pub fn unreserved_bytes(&self) -> u64 {
        self.unreserved_bytes.load(Relaxed)
    }

    /// Takes bytes until the reservation is dropped; `None` if there are not as many.
    #[must_use]
    pub fn reserve(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        self.take(bytes).then(|| Reservation {
            pool: Arc::clone(self),
            bytes,
        })
    }

    fn take(&self, bytes: u64) -> bool {
        let limit = self.limit_bytes.saturating_sub(self.unreserved_bytes());
        let room = |held: u64| {
            let then = held.checked_add(bytes)?;
            (then <= limit).then_some(then)
        };
        self.held_bytes.fetch_update(Relaxed, Relaxed, room).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        let before = self.held_bytes.fetch_sub(bytes, Relaxed);
        debug_assert!(before >= bytes, "only what was taken is given back");
    }
}

/// Bytes of a [`MemoryPool`], given back when this is dropped.
#[derive(Debug)]
pub struct Reservation {
    pool: Arc<MemoryPool>,
    bytes: u64,
}

impl Reservation {
    /// Takes more bytes, for what grows as it comes; false, and nothing taken, if the pool has not
    /// as many.
    #[must_use]
    pub fn try_grow(&mut self, bytes: u64) -> bool {
        let taken = self.pool.take(bytes);
        if taken {
            self.bytes += bytes;
        }
        taken
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.pool.give_back(self.bytes);
    }
}

/// What one query holds, and how far it is. Whoever has a clone of the `Arc` may watch it.
#[derive(Debug, Default)]
pub struct Account {
    held_bytes: AtomicU64,
    /// Those beyond what is set aside for operators that can spill.
    shared_bytes: AtomicU64,
    /// Of tables under way between operators.
    table_bytes: AtomicU64,
    /// Of [`crate::Terms`], as last seen.
    computed_bytes: AtomicU64,
    pool: OnceLock<Arc<MemoryPool>>,
    /// Taken from the pool.
    pooled_bytes: AtomicU64,
    rows: AtomicU64,
    batches: AtomicU64,
}

impl Account {
    /// Lets the account take from a pool what it holds from now on. Only the first call counts.
    pub fn join(&self, pool: &Arc<MemoryPool>) {
        self.pool.get_or_init(|| Arc::clone(pool));
    }

    /// Bytes that the query holds.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.held_bytes() + self.computed_bytes.load(Relaxed)
    }

    /// Rows that the query has found.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows.load(Relaxed)
    }

    /// Batches that its operators have begun: what moves also while no row is found.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.batches.load(Relaxed)
    }

    /// What all queries of the pool may hold together, if it has joined one.
    pub(crate) fn pool_limit_bytes(&self) -> Option<u64> {
        self.pool.get().map(|pool| pool.limit_bytes())
    }

    pub(crate) fn count_rows(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Relaxed);
    }

    pub(crate) fn count_batch(&self) {
        self.batches.fetch_add(1, Relaxed);
    }

    /// Bytes that operators hold, without computed terms.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Relaxed) + self.table_bytes.load(Relaxed)
    }

    /// Notes how much the terms hold that the query computed.
    pub(crate) fn note_computed(&self, bytes: u64) {
        self.computed_bytes.store(bytes, Relaxed);
    }

    /// Books bytes, of which `shared` are beyond what is set aside for an operator; gives what the
    /// query then holds beyond that, computed terms included.
    pub(crate) fn add(&self, bytes: u64, shared: u64) -> u64 {
        if bytes > 0 {
            self.held_bytes.fetch_add(bytes, Relaxed);
        }
        let before = match shared {
            0 => self.shared_bytes.load(Relaxed),
            _ => self.shared_bytes.fetch_add(shared, Relaxed),
        };
        let tables = self.table_bytes.load(Relaxed);
        let tables = tables.saturating_sub(FREE_TABLE_BYTES);
        before + shared + tables + self.computed_bytes.load(Relaxed)
    }

    /// Takes from the pool what the query holds beyond what it took before.
    ///
    /// # Errors
    /// The size of the pool, if it has no more.
    pub(crate) fn cover(&self) -> Result<(), u64> {
        let counted = self.bytes().saturating_sub(FREE_BYTES);
        let pooled = self.pooled_bytes.load(Relaxed);
        if counted <= pooled {
            return Ok(());
        }
        let Some(pool) = self.pool.get() else {
            return Ok(());
        };
        let more = (counted - pooled).next_multiple_of(GRANULE);
        if !pool.take(more) {
            return Err(pool.limit_bytes);
        }
        // Two threads may both take what one would need: given back with the rest.
        self.pooled_bytes.fetch_add(more, Relaxed);
        Ok(())
    }

    /// Gives back what [`Account::add`] booked.
    pub(crate) fn subtract(&self, bytes: u64, shared: u64) {
        self.held_bytes.fetch_sub(bytes, Relaxed);
        self.shared_bytes.fetch_sub(shared, Relaxed);
        self.give_back();
    }

    /// Gives back to the pool what was taken and is not needed.
    fn give_back(&self) {
        let counted = self.bytes().saturating_sub(FREE_BYTES);
        // Room for two granules stays, so that what comes and goes does not wander.
        let kept = counted.next_multiple_of(GRANULE) + 2 * GRANULE;
        let lower = |pooled: u64| (pooled > kept).then_some(kept);
        if let Ok(pooled) = self.pooled_bytes.fetch_update(Relaxed, Relaxed, lower)
            && let Some(pool) = self.pool.get()
        {
            pool.give_back(pooled - kept);
        }
    }
}

impl Account {
    /// Gives back what was taken from the pool: the query has ended, whoever still watches.
    pub(crate) fn close(&self) {
        if let Some(pool) = self.pool.get() {
            pool.give_back(self.pooled_bytes.swap(0, Relaxed));
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.close();
    }
}

/// What of a table is booked; given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct BookedTable {
    bytes: usize,
    held: Option<Arc<Account>>,
}

impl BookedTable {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Books more.
    pub(crate) fn grow(&mut self, bytes: usize, account: &Arc<Account>) {
        let more = (bytes - self.bytes) as u64;
        self.bytes = bytes;
        let held = self.held.get_or_insert_with(|| Arc::clone(account));
        held.table_bytes.fetch_add(more, Relaxed);
    }

    /// Books less, if it is less.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let less = self.bytes.saturating_sub(bytes);
        if let (Some(held), true) = (&self.held, less > 0) {
            self.bytes = bytes;
            held.table_bytes.fetch_sub(less as u64, Relaxed);
            held.give_back();
        }
    }
}

impl Drop for BookedTable {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pool: &Arc<MemoryPool>) -> Account {
        let account = Account::default();
        account.join(pool);
        account
    }

    #[test]
    fn accounts_take_from_one_pool_and_give_all_back() {
        let pool = Arc::new(MemoryPool::new(8 << 20));
        let (one, two) = (joined(&pool), joined(&pool));
        one.add(6 << 20, 6 << 20);
        assert_eq!(one.cover(), Ok(()));
        assert_eq!(pool.held_bytes(), 5 << 20);
        two.add(6 << 20, 0);
        assert_eq!(two.cover(), Err(8 << 20), "what is set aside counts, too");
        drop(two);
        assert_eq!(pool.held_bytes(), 5 << 20);
        one.subtract(5 << 20, 5 << 20);
        assert_eq!(pool.held_bytes(), 2 * GRANULE);
        one.close();
        assert_eq!(pool.held_bytes(), 0);
    }

    #[test]
    fn a_light_query_asks_no_pool() {
        let pool = Arc::new(MemoryPool::new(0));
        let account = joined(&pool);
        account.add(FREE_BYTES, FREE_BYTES);
        assert_eq!(account.cover(), Ok(()));
        account.note_computed(1);
        assert_eq!(account.cover(), Err(0), "computed terms count, too");
    }

    #[test]
    fn a_reservation_lasts_until_it_is_dropped() {
        let pool = Arc::new(MemoryPool::new(10));
        let first = pool.reserve(7).expect("there is room");
        assert!(pool.reserve(4).is_none());
        assert!(pool.reserve(u64::MAX).is_none());
        drop(first);
        assert!(pool.reserve(10).is_some());
    }

    #[test]
    fn what_was_not_reserved_leaves_less_to_reserve() {
        let pool = Arc::new(MemoryPool::new(10));
        let first = pool.reserve(4).expect("there is room");
        pool.note_unreserved(5);
        assert!(pool.reserve(2).is_none());
        assert!(pool.reserve(1).is_some());
        pool.note_unreserved(u64::MAX);
        assert!(pool.reserve(1).is_none(), "and nothing overflows");
        drop(first);
        pool.note_unreserved(0);
        assert!(pool.reserve(10).is_some());
    }

    #[test]
    fn a_reservation_that_grew_gives_all_back() {
        let pool = Arc::new(MemoryPool::new(10));
        let mut reservation = pool.reserve(3).expect("there is room");
        assert!(reservation.try_grow(6));
        assert!(!reservation.try_grow(2), "the pool has one byte");
        assert_eq!(pool.held_bytes(), 9);
        drop(reservation);
        assert_eq!(pool.held_bytes(), 0);
    }
}
