//! Who waits until a large structure is freed? Nobody: a thread of its own does it.

use std::ops::{Deref, DerefMut};
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

/// A list that may be large, whose memory nobody waits for when it is dropped: also where a query
/// ends in the midst of a sort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Large<T: Send + 'static>(Vec<T>);

impl<T: Send + 'static> Large<T> {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }
}

impl<T: Send + 'static> Default for Large<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Send + 'static> From<Vec<T>> for Large<T> {
    fn from(list: Vec<T>) -> Self {
        Self(list)
    }
}

impl<T: Send + 'static> Deref for Large<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Send + 'static> DerefMut for Large<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T: Send + 'static> Drop for Large<T> {
    fn drop(&mut self) {
        let bytes = self.0.capacity() * size_of::<T>();
        if is_large(bytes) {
            discard(std::mem::take(&mut self.0), bytes);
        }
    }
}
