//! An allocator that counts: what is held, the most that was, and what accounts said then.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};

static HELD: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
/// What the account said at the peak.
static COUNTED: AtomicU64 = AtomicU64::new(0);

/// Gives what an account says, without allocating.
type Account = Box<dyn Fn() -> u64 + Sync>;

static ACCOUNT: AtomicPtr<Account> = AtomicPtr::new(std::ptr::null_mut());

struct Counting;

impl Counting {
    fn add(bytes: usize) {
        let held = HELD.fetch_add(bytes as u64, Relaxed) + bytes as u64;
        if PEAK.fetch_max(held, Relaxed) < held {
            let account = ACCOUNT.load(Relaxed);
            if !account.is_null() {
                // SAFETY: the pointer is set while what it points to lives, which is for ever.
                COUNTED.store(unsafe { (*account)() }, Relaxed);
            }
        }
    }
}

// SAFETY: each call is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that were held beyond those before, and what the account said then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peak {
    pub(crate) bytes: u64,
    pub(crate) counted: u64,
}

/// Runs `work` and gives the peak. One at a time: there is one counter.
///
/// `account` gives the bytes that are counted; it must not allocate.
pub(crate) fn peak<T>(
    account: impl Fn() -> u64 + Sync + 'static,
    work: impl FnOnce() -> T,
) -> (Peak, T) {
    // Other threads may still be at it when this ends.
    let account: &mut Account = Box::leak(Box::new(Box::new(account)));
    let begin = HELD.load(Relaxed);
    PEAK.store(begin, Relaxed);
    COUNTED.store(0, Relaxed);
    ACCOUNT.store(account, Relaxed);
    let made = work();
    ACCOUNT.store(std::ptr::null_mut(), Relaxed);
    let bytes = PEAK.load(Relaxed) - begin;
    let counted = COUNTED.load(Relaxed);
    (Peak { bytes, counted }, made)
}
