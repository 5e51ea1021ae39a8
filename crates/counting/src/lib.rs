//! How much memory does a piece of work hold at most? The allocator of tests counts.
//!
//! A test that uses this crate runs on its allocator, which hands all on to the system's. There is
//! one counter for a process: while [`peak`] runs, other threads should allocate nothing.
//!
//! ```
//! let (peak, text) = jindou_counting::peak(|| "x".repeat(1000));
//! assert_eq!((peak, text.len()), (1000, 1000));
//! ```

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

// SAFETY: each call is handed on to the system's allocator as it came; counting does not allocate.
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

// Here and not in each test: one that forgot it would find that nothing is ever held.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that were held beyond those before, and what the account said then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Bytes held.
    pub bytes: u64,
    /// Bytes of the account.
    pub counted: u64,
}

/// The bytes that the process holds.
#[must_use]
pub fn held() -> u64 {
    HELD.load(Relaxed)
}

/// Runs `work` and gives the most bytes that were held meanwhile, beyond those before.
pub fn peak<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let begin = HELD.load(Relaxed);
    PEAK.store(begin, Relaxed);
    let made = work();
    (PEAK.load(Relaxed) - begin, made)
}

/// As [`peak`], beside what `account` says at that moment, which must not allocate. The account
/// stays for ever, as threads may still be at it when this ends.
pub fn peak_beside<T>(
    account: impl Fn() -> u64 + Sync + 'static,
    work: impl FnOnce() -> T,
) -> (Peak, T) {
    let account: &mut Account = Box::leak(Box::new(Box::new(account)));
    COUNTED.store(0, Relaxed);
    ACCOUNT.store(account, Relaxed);
    let (bytes, made) = peak(work);
    ACCOUNT.store(std::ptr::null_mut(), Relaxed);
    let counted = COUNTED.load(Relaxed);
    (Peak { bytes, counted }, made)
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    /// One test, as there is one counter.
    #[test]
    fn the_peak_is_what_was_held_together_whatever_is_held_in_the_end() {
        let held_before = held();
        let _before = black_box(vec![0_u8; 5000]);
        assert_eq!(held(), held_before + 5000);
        let (bytes, kept) = peak(|| {
            drop(black_box(vec![0_u8; 3000]));
            let kept = black_box(vec![0_u8; 1000]);
            drop(black_box(vec![0_u8; 2500]));
            kept
        });
        assert_eq!((bytes, kept.len()), (3500, 1000));
        assert_eq!(peak(|| ()), (0, ()));
        static NOTED: AtomicU64 = AtomicU64::new(0);
        let (peak, ()) = peak_beside(
            || NOTED.load(Relaxed),
            || {
                NOTED.store(7, Relaxed);
                drop(black_box(vec![0_u8; 600]));
                NOTED.store(8, Relaxed);
                drop(black_box(vec![0_u8; 500]));
            },
        );
        let expected = Peak {
            bytes: 600,
            counted: 7,
        };
        assert_eq!(peak, expected);
    }
}
