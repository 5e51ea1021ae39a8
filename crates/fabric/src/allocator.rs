//! The process's allocator: which one is it, and when does memory go back?

/// The allocator that the command runs on: fast for the many small tables of light queries.
#[cfg(feature = "mimalloc")]
pub use mimalloc::MiMalloc as Allocator;

/// Keeps mimalloc, before anything is allocated, from asking for huge pages for all it takes, as it
/// does by default. Each thread has pages of its own, and one that holds some hundred kilobytes
/// would hold five huge pages: ten times its memory, and milliseconds to clear them on a thread
/// that answers light queries. Where huge pages pay, in regions, they are asked for by
/// [`crate::Region`].
#[cfg(all(feature = "mimalloc", target_os = "linux"))]
mod start {
    use std::ffi::c_long;

    use libmimalloc_sys::{mi_option_set, mi_option_t, mi_process_init};

    /// Has no name in the bindings; a test sees to it that it is this one.
    const ALLOW_THP: mi_option_t = 43;
    const NO: c_long = 0;

    #[used]
    // SAFETY: the system calls what stands in this section as functions without a result, before
    // `main`.
    #[unsafe(link_section = ".init_array")]
    static START: extern "C" fn() = use_small_pages;

    extern "C" fn use_small_pages() {
        // SAFETY: both may be called at any time, take no pointers, and mimalloc starts itself only
        // once. Set before it has started, the option would take huge pages from all of the process.
        unsafe {
            mi_process_init();
            mi_option_set(ALLOW_THP, NO);
        }
    }
}

/// From here on freed memory goes back to the operating system only when
/// [`release_free_memory`] is called, by a thread that has nothing else to do: otherwise whichever
/// thread frees something a second later returns all of it, hundreds of megabytes at times.
pub fn release_only_when_asked() {
    // A day: without any delay set, not even those who ask would get it done.
    #[cfg(feature = "mimalloc")]
    set_purge_delay(24 * 60 * 60 * 1000);
}

/// Ends [`release_only_when_asked`]: freed memory goes back after a second.
pub fn release_in_time() {
    #[cfg(feature = "mimalloc")]
    set_purge_delay(1000);
}

#[cfg(feature = "mimalloc")]
fn set_purge_delay(milliseconds: std::ffi::c_long) {
    /// Has no name in the bindings, as that of huge pages.
    const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
    // SAFETY: the call takes no pointers and may be made at any time from any thread.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, milliseconds) };
}

/// Gives freed memory back to the operating system, for after a bulk load: its tables are many
/// times the size of what it leaves, and an allocator keeps them for the next time that may never
/// come. Costs milliseconds.
pub fn release_free_memory() {
    #[cfg(feature = "mimalloc")]
    // SAFETY: the call takes no pointers and may be made at any time from any thread.
    unsafe {
        libmimalloc_sys::mi_collect(true);
    }
    #[cfg(all(not(feature = "mimalloc"), target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call takes no pointers and may be made at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}
