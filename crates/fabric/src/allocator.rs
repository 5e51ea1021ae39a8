//! The process's allocator: which one is it, and when does memory go back?

/// The allocator that the command runs on: fast for the many small tables of light queries.
#[cfg(feature = "mimalloc")]
pub use mimalloc::MiMalloc as Allocator;

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
