//! How do processes of one machine see, without asking, what a peer offers, and ring its bells?
//!
//! Each node has a table of words that its neighbours map: whether it is alive, the names of its
//! registrations, and its bells, for which threads wait by `futex` on the count itself.

use std::ffi::c_long;
use std::ptr::{NonNull, null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::segment::Mapped;
use crate::FabricError;
use crate::remote::doorbell::Ring;
use crate::remote::{BellAddress, Doorbell, Interrupt, NodeId, SharedMemory};

/// Registrations of a node at a time.
const MAX_SLOTS: usize = 1 << 17;
/// Bells of a node at a time.
const BELL_BITS: u32 = 10;
const MAX_BELLS: usize = 1 << BELL_BITS;
/// The node's incarnation, 0 once it closed.
const LIFE: usize = 0;
/// Name, count, sleepers, and a word that keeps bells on cache lines of their own.
const BELL_WORDS: usize = 8;
const BELLS: usize = 8;
const SLOTS: usize = BELLS + MAX_BELLS * BELL_WORDS;
/// Words of a table.
pub(super) const TABLE_WORDS: usize = SLOTS + MAX_SLOTS;

/// The words of a table, this node's or a neighbour's.
enum Words {
    Own(SharedMemory),
    Neighbours(Mapped),
}

/// A node's table.
pub(super) struct Table {
    words: Words,
    incarnation: u64,
}

impl Table {
    pub(super) fn own(words: SharedMemory, incarnation: u64) -> Self {
        assert!(words.words().len() >= TABLE_WORDS && incarnation != 0);
        words.words()[LIFE].store(incarnation, Ordering::SeqCst);
        let words = Words::Own(words);
        Self { words, incarnation }
    }

    /// A neighbour's, unless it is gone already.
    pub(super) fn neighbours(mapped: Mapped, incarnation: u64) -> Self {
        let words = Words::Neighbours(mapped);
        Self { words, incarnation }
    }

    fn words(&self) -> &[AtomicU64] {
        match &self.words {
            Words::Own(memory) => memory.words(),
            // SAFETY: a peer whose address has a table maps so many words there, aligned as the
            // mapping is, which are accessed as atomics only, here as there.
            Words::Neighbours(mapped) => unsafe {
                NonNull::slice_from_raw_parts(mapped.start().cast(), TABLE_WORDS).as_ref()
            },
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.words()[LIFE].load(Ordering::SeqCst) == self.incarnation
    }

    /// The node is lost: all see so, and whoever waits for its bells ends.
    pub(super) fn close(&self) {
        self.words()[LIFE].store(0, Ordering::SeqCst);
        for bell in 0..MAX_BELLS {
            let (_, count, sleepers) = self.bell(bell);
            if sleepers.load(Ordering::SeqCst) > 0 {
                wake_all(count);
            }
        }
    }

    /// True while the registration with this name is in this slot.
    pub(super) fn offers(&self, slot: u64, number: u64) -> bool {
        let slot = usize::try_from(slot).ok().filter(|slot| *slot < MAX_SLOTS);
        slot.is_some_and(|slot| self.words()[SLOTS + slot].load(Ordering::SeqCst) == number)
    }

    /// Name, count and sleepers of a bell.
    fn bell(&self, bell: usize) -> (&AtomicU64, &AtomicU64, &AtomicU64) {
        let words = &self.words()[BELLS + bell * BELL_WORDS..];
        (&words[0], &words[1], &words[2])
    }

    /// Rings a bell of `node`, whose table this is.
    pub(super) fn ring(&self, node: NodeId, number: u64) -> Result<(), FabricError> {
        let (name, count, sleepers) = self.bell(number as usize % MAX_BELLS);
        if !self.is_alive() {
            return Err(FabricError::PeerLost(node));
        }
        if name.load(Ordering::SeqCst) != number {
            return Err(FabricError::Unregistered(node));
        }
        count.fetch_add(1, Ordering::SeqCst);
        if sleepers.load(Ordering::SeqCst) > 0 {
            wake_all(count);
        }
        Ok(())
    }
}

/// This node's table, and which of its places are free.
pub(super) struct OwnTable {
    table: Table,
    free: Mutex<Free>,
}

struct Free {
    slots: Vec<usize>,
    /// From here on slots were never used.
    next_slot: usize,
    bells: Vec<usize>,
    /// How many bells were named so far.
    named: u64,
}

impl OwnTable {
    /// Names of bells are counted from `first_name` on.
    pub(super) fn new(table: Table, first_name: u64) -> Arc<Self> {
        let free = Free {
            slots: Vec::new(),
            next_slot: 0,
            bells: (0..MAX_BELLS).rev().collect(),
            named: first_name,
        };
        let free = Mutex::new(free);
        Arc::new(Self { table, free })
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// A slot for a registration of this name, until the guard is dropped.
    pub(super) fn offer(self: &Arc<Self>, number: u64) -> Result<Slot, FabricError> {
        let mut free = self.free.lock();
        let place = match free.slots.pop() {
            Some(place) => place,
            None if free.next_slot < MAX_SLOTS => {
                free.next_slot += 1;
                free.next_slot - 1
            }
            None => {
                let (what, limit) = ("registrations", MAX_SLOTS);
                return Err(FabricError::Exhausted { what, limit });
            }
        };
        self.table.words()[SLOTS + place].store(number, Ordering::SeqCst);
        let table = Arc::clone(self);
        Ok(Slot { table, place })
    }

    /// A new bell of `node`.
    pub(super) fn doorbell(self: &Arc<Self>, node: NodeId) -> Result<Doorbell, FabricError> {
        if !self.table.is_alive() {
            return Err(FabricError::PeerLost(node));
        }
        let mut free = self.free.lock();
        let Some(place) = free.bells.pop() else {
            let (what, limit) = ("bells", MAX_BELLS);
            return Err(FabricError::Exhausted { what, limit });
        };
        free.named += 1;
        let number = (free.named << BELL_BITS) | place as u64;
        let (name, count, _) = self.table.bell(place);
        count.store(0, Ordering::SeqCst);
        name.store(number, Ordering::SeqCst);
        let bell = TableBell {
            table: Arc::clone(self),
            place,
        };
        let guard = BellGuard {
            table: Arc::clone(self),
            place,
        };
        let address = BellAddress { node, number };
        Ok(Doorbell::new(address, Arc::new(bell), guard))
    }
}

/// Ends the offer of a registration when dropped.
pub(super) struct Slot {
    table: Arc<OwnTable>,
    place: usize,
}

impl Slot {
    pub(super) fn place(&self) -> u64 {
        self.place as u64
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let table = &self.table;
        table.table.words()[SLOTS + self.place].store(0, Ordering::SeqCst);
        table.free.lock().slots.push(self.place);
    }
}

/// Takes a bell down when dropped.
struct BellGuard {
    table: Arc<OwnTable>,
    place: usize,
}

impl Drop for BellGuard {
    fn drop(&mut self) {
        let (name, ..) = self.table.table.bell(self.place);
        name.store(0, Ordering::SeqCst);
        self.table.free.lock().bells.push(self.place);
    }
}

/// A bell in this node's table.
struct TableBell {
    table: Arc<OwnTable>,
    place: usize,
}

impl Ring for TableBell {
    fn ring(&self) {
        let (_, count, sleepers) = self.table.table.bell(self.place);
        count.fetch_add(1, Ordering::SeqCst);
        if sleepers.load(Ordering::SeqCst) > 0 {
            wake_all(count);
        }
    }

    fn count(&self) -> u64 {
        let (_, count, _) = self.table.table.bell(self.place);
        count.load(Ordering::SeqCst)
    }

    fn wait(
        &self,
        node: NodeId,
        seen: u64,
        interrupt: &Interrupt<'_>,
        now: &dyn Fn() -> Duration,
    ) -> Result<u64, FabricError> {
        let (_, count, sleepers) = self.table.table.bell(self.place);
        loop {
            let found = count.load(Ordering::SeqCst);
            if found != seen {
                return Ok(found);
            }
            if !self.table.table.is_alive() {
                return Err(FabricError::PeerLost(node));
            }
            interrupt.check(now())?;
            // Whoever rings or closes looks at the sleepers after that, or is seen here.
            sleepers.fetch_add(1, Ordering::SeqCst);
            if count.load(Ordering::SeqCst) == seen && self.table.table.is_alive() {
                sleep(count, seen, interrupt.patience(now()));
            }
            sleepers.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// The half of a count that changes with each ring.
fn low_half(count: &AtomicU64) -> *const u32 {
    let place = usize::from(cfg!(target_endian = "big"));
    std::ptr::from_ref(count).cast::<u32>().wrapping_add(place)
}

/// Blocks while the count is `seen`, for this long at most, or a while longer than never.
fn sleep(count: &AtomicU64, seen: u64, patience: Option<Duration>) {
    /// A neighbour that ends between counting and waking wakes nobody.
    const LOOK: Duration = Duration::from_millis(100);
    let time = patience.map_or(LOOK, |patience| patience.min(LOOK));
    let time = libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: c_long::from(time.subsec_nanos() as i32),
    };
    // SAFETY: the word is half of an atomic that lives until this returns, and the system only
    // compares it; the time is a live value. Whatever ends the wait, the caller looks again.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            low_half(count),
            libc::FUTEX_WAIT,
            seen as u32,
            &raw const time,
        );
    }
}

/// Wakes all threads, of whatever process, that sleep at the count.
fn wake_all(count: &AtomicU64) {
    // SAFETY: the word is half of an atomic that lives until this returns; the system uses its
    // address only.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            low_half(count),
            libc::FUTEX_WAKE,
            i32::MAX,
            null::<libc::timespec>(),
            null_mut::<u32>(),
            0,
        );
    }
}
