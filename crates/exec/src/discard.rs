//! Who waits until a large structure is freed? Nobody: a thread of its own does it.

use std::thread;

/// What takes fewer bytes is freed at once, in a few milliseconds.
const LARGE: usize = 16 << 20;

/// Drops a value that holds about so many bytes.
pub(crate) fn discard<T: Send + 'static>(value: T, bytes: usize) {
    if is_large(bytes) {
        let freeing = thread::Builder::new().name("jindou-free".to_owned());
        // Without a thread the closure comes back in the error and is dropped here.
        drop(freeing.spawn(move || drop(value)));
    }
}

/// True if freeing so many bytes is worth a thread.
pub(crate) fn is_large(bytes: usize) -> bool {
    bytes >= LARGE
}
