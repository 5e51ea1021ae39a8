//! Which memory may a peer read, and which may it write?
//!
//! A [`Region`] is read only: nobody writes to it once it is there. [`SharedMemory`] is words that
//! peers and their owner read and write at once, so each is an atomic of eight bytes, and there is
//! no other access to them.

use std::any::Any;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::region::LentMemory;
use crate::remote::{MemoryKey, NodeId};
use crate::{FabricError, Region};

/// Bytes of a word.
pub(crate) const WORD_BYTES: usize = 8;
/// Bytes that are copied before it is asked again whether to go on.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// The most bytes of one [`SharedMemory`].
pub const MAX_SHARED_BYTES: usize = 1 << 32;

/// An error if there may be no memory of so many words.
pub(crate) fn check_words(words: usize) -> Result<(), FabricError> {
    if words > MAX_SHARED_BYTES / WORD_BYTES {
        let (what, limit) = ("bytes in one memory", MAX_SHARED_BYTES);
        return Err(FabricError::Exhausted { what, limit });
    }
    Ok(())
}

/// Words that peers may read and write while their owner does; clones share them.
///
/// No order holds between words: a peer's write of several is seen word by word.
#[derive(Clone)]
pub struct SharedMemory {
    words: NonNull<[AtomicU64]>,
    /// What the words lie in.
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: the words are atomics in memory that the owner keeps and that may be sent and shared.
unsafe impl Send for SharedMemory {}
// SAFETY: as above.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Words of this process, all zero.
    pub(crate) fn new(words: usize) -> Self {
        let own: Arc<[AtomicU64]> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let words = NonNull::from(&own[..]);
        let _owner = Arc::new(own);
        Self { words, _owner }
    }

    /// The first words of memory that a fabric lends.
    ///
    /// # Panics
    /// If the memory is shorter or not aligned to words.
    pub(crate) fn lent(memory: Box<dyn LentMemory>, words: usize) -> Self {
        let bytes = memory.bytes();
        assert!(
            bytes.len() / WORD_BYTES >= words,
            "lent memory is too short"
        );
        let start = bytes.cast::<AtomicU64>();
        assert!(start.is_aligned(), "lent memory is not aligned");
        let words = NonNull::slice_from_raw_parts(start, words);
        let _owner = Arc::new(memory);
        Self { words, _owner }
    }

    /// The words.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the owner holds that many words at this address for as long as `self` lives, and
        // they are accessed as atomics only, here as by peers.
        unsafe { self.words.as_ref() }
    }

    /// Bytes of all words.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.words.len() * WORD_BYTES
    }
}

impl fmt::Debug for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedMemory({} words)", self.words.len())
    }
}

/// A registered memory, as the node that owns it keeps it to answer its peers.
#[derive(Clone, Debug)]
pub(crate) enum Served {
    Region(Region),
    Shared(SharedMemory),
}

impl Served {
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Region(region) => region.len() as u64,
            Self::Shared(memory) => memory.bytes() as u64,
        }
    }

    /// An error unless these bytes lie in the memory, which is `node`'s.
    fn check(&self, node: NodeId, offset: u64, length: u64) -> Result<(), FabricError> {
        check_bounds(node, offset, length, self.length())
    }

    /// Copies bytes from the memory. Those of shared memory come word by word.
    pub(crate) fn read(
        &self,
        node: NodeId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), FabricError> {
        self.check(node, offset, into.len() as u64)?;
        let start = offset as usize;
        match self {
            Self::Region(region) => {
                into.copy_from_slice(&region[start..start + into.len()]);
                if region.is_damaged() {
                    return Err(FabricError::Damaged(node));
                }
            }
            Self::Shared(memory) => read_words(memory.words(), start, into),
        }
        Ok(())
    }

    /// Stores words one after the other.
    pub(crate) fn write(
        &self,
        node: NodeId,
        offset: u64,
        words: &[u64],
    ) -> Result<(), FabricError> {
        let places = self.writable(node, offset, words.len())?;
        write_words(places, words);
        Ok(())
    }

    /// One atomic operation; what the word held before.
    pub(crate) fn atomic(
        &self,
        node: NodeId,
        offset: u64,
        operation: Atomic,
    ) -> Result<u64, FabricError> {
        Ok(operation.apply(&self.writable(node, offset, 1)?[0]))
    }

    fn writable(
        &self,
        node: NodeId,
        offset: u64,
        words: usize,
    ) -> Result<&[AtomicU64], FabricError> {
        self.check(node, offset, (words * WORD_BYTES) as u64)?;
        check_alignment(node, offset)?;
        let start = offset as usize / WORD_BYTES;
        match self {
            Self::Region(_) => Err(FabricError::ReadOnly(node)),
            Self::Shared(memory) => Ok(&memory.words()[start..start + words]),
        }
    }
}

/// An operation on one word that nothing comes between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomic {
    /// Puts `new` in the place of `expected`, if that is there.
    CompareAndSwap { expected: u64, new: u64 },
    /// Adds, modulo 2^64.
    FetchAdd { by: u64 },
}

impl Atomic {
    /// What the word held before.
    pub(crate) fn apply(self, word: &AtomicU64) -> u64 {
        match self {
            Self::CompareAndSwap { expected, new } => {
                match word.compare_exchange(expected, new, Ordering::SeqCst, Ordering::SeqCst) {
                    Ok(before) | Err(before) => before,
                }
            }
            Self::FetchAdd { by } => word.fetch_add(by, Ordering::SeqCst),
        }
    }
}

/// An error unless `length` bytes from `offset` lie in a memory of `of` bytes.
pub(crate) fn check_bounds(
    node: NodeId,
    offset: u64,
    length: u64,
    of: u64,
) -> Result<(), FabricError> {
    match offset.checked_add(length) {
        Some(end) if end <= of => Ok(()),
        _ => Err(FabricError::OutOfBounds {
            node,
            offset,
            length,
            of,
        }),
    }
}

/// An error unless a word begins at `offset`.
pub(crate) fn check_alignment(node: NodeId, offset: u64) -> Result<(), FabricError> {
    if offset.is_multiple_of(WORD_BYTES as u64) {
        Ok(())
    } else {
        Err(FabricError::Misaligned { node, offset })
    }
}

/// Copies bytes from byte `start` of the words, each loaded whole.
///
/// # Panics
/// If they lie outside.
pub(crate) fn read_words(words: &[AtomicU64], start: usize, into: &mut [u8]) {
    let (mut place, mut skip) = (start / WORD_BYTES, start % WORD_BYTES);
    let mut rest = into;
    while !rest.is_empty() {
        let word = words[place].load(Ordering::SeqCst).to_ne_bytes();
        let length = rest.len().min(WORD_BYTES - skip);
        let (now, later) = rest.split_at_mut(length);
        now.copy_from_slice(&word[skip..skip + length]);
        (rest, place, skip) = (later, place + 1, 0);
    }
}

/// Stores words, each whole, the last of them before whatever this thread does next.
///
/// # Panics
/// If there are fewer places than words.
pub(crate) fn write_words(places: &[AtomicU64], words: &[u64]) {
    assert!(places.len() >= words.len(), "words outside their memory");
    for (place, word) in places.iter().zip(words) {
        place.store(*word, Ordering::Release);
    }
    // The writer of a ring looks at its reader's mark next, and the reader, having set the mark,
    // at these words: one of them must see the other's.
    std::sync::atomic::fence(Ordering::SeqCst);
}

/// A memory that peers may reach, for as long as this lives: dropping it ends that, after which
/// operations on it fail and nothing reads or writes the memory for a peer.
#[must_use = "dropping a registration ends it"]
pub struct Registration {
    key: MemoryKey,
    _guard: Box<dyn Any + Send + Sync>,
}

impl Registration {
    /// Dropping `guard` ends the registration.
    pub(crate) fn new(key: MemoryKey, guard: impl Any + Send + Sync) -> Self {
        let _guard = Box::new(guard);
        Self { key, _guard }
    }

    /// What peers need.
    #[must_use]
    pub fn key(&self) -> &MemoryKey {
        &self.key
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.key).finish()
    }
}

struct Opened {
    key: MemoryKey,
    /// What the fabric that opened the key needs to reach the memory.
    handle: Box<dyn Any + Send + Sync>,
}

/// A peer's memory as [`Fabric::open`](crate::remote::Fabric::open) found it; clones are cheap.
/// To be used with the fabric that opened it.
#[derive(Clone)]
pub struct RemoteMemory(Arc<Opened>);

impl RemoteMemory {
    pub(crate) fn new(key: MemoryKey, handle: impl Any + Send + Sync) -> Self {
        let handle = Box::new(handle);
        Self(Arc::new(Opened { key, handle }))
    }

    /// What the memory is called.
    #[must_use]
    pub fn key(&self) -> &MemoryKey {
        &self.0.key
    }

    /// The owner of the memory.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.0.key.node()
    }

    /// Bytes of the memory.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.0.key.length()
    }

    /// What the fabric that opened this keeps with it.
    pub(crate) fn handle<T: Any>(&self) -> Result<&T, FabricError> {
        let handle = self.0.handle.downcast_ref();
        handle.ok_or(FabricError::Unsupported("use memory that another opened"))
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for RemoteMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RemoteMemory").field(&self.0.key).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(1);

    #[test]
    fn bytes_of_words_are_read_from_any_place() {
        let memory = SharedMemory::new(4);
        let words: Vec<u64> = (1..=4).map(|i| i * 0x0123_4567_89ab_cdef).collect();
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        let served = Served::Shared(memory);
        served.write(NODE, 0, &words).unwrap();
        for start in 0..=32 {
            for end in start..=32 {
                let mut into = vec![0; end - start];
                served.read(NODE, start as u64, &mut into).unwrap();
                assert_eq!(into, bytes[start..end]);
            }
        }
    }

    #[test]
    fn what_lies_outside_is_refused_whatever_the_numbers() {
        let served = Served::Shared(SharedMemory::new(2));
        for (offset, length) in [(0, 17), (16, 1), (u64::MAX, 1), (u64::MAX - 8, 16), (17, 0)] {
            let mut into = vec![0; length];
            let read = served.read(NODE, offset, &mut into);
            assert!(
                matches!(read, Err(FabricError::OutOfBounds { .. })),
                "{offset}"
            );
        }
        assert!(served.read(NODE, 16, &mut []).is_ok());
        let region = Served::Region(Region::copy_from(&[0; 16]));
        assert_eq!(
            region.write(NODE, 0, &[1]),
            Err(FabricError::ReadOnly(NODE))
        );
        let (node, offset) = (NODE, 4);
        let misaligned = FabricError::Misaligned { node, offset };
        assert_eq!(served.write(NODE, 4, &[1]), Err(misaligned));
    }
}
