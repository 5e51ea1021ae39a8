//! Who waits until a large structure is freed? Nobody: a thread of its own does it.

use std::thread;

/// What takes fewer bytes is freed at once, in a few milliseconds.
const LARGE: usize = 16 << 20;

/// Drops a value that holds about so many bytes.
pub(crate) fn discard<T: Send + 'static>(value: T, bytes: usize) {
    if bytes >= LARGE {
        let freeing = thread::Builder::new().name("jindou-free".to_owned());
        // Without a thread the closure comes back in the error and is dropped here.
        drop(freeing.spawn(move || drop(value)));
    }
}
