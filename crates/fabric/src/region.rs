//! One run of bytes at a fixed address: who allocated it, and who may look at it?

use std::any::Any;
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence, fence};

use memmap2::{Advice, Mmap, MmapMut, UncheckedAdvice};

use crate::fault::Watch;

/// From this size on, anonymous memory is mapped by itself and advised for huge pages.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Every region starts at a multiple of this many bytes, so that columns can be cast.
const ALIGNMENT: usize = 8;

enum Backing {
    /// Small memory: a vector of words, so that it is aligned.
    Words(Vec<u64>),
    /// Anonymous memory.
    Mapped(Mmap),
    File(MappedFile),
    /// Memory that a fabric lends.
    Lent(Box<dyn LentMemory>),
    /// What a peer registered.
    Peer(Box<dyn PeerMemory>),
}

/// Memory of a peer that loads of this process reach.
///
/// # Safety
/// [`PeerMemory::bytes`] is the same run of initialized bytes at each call, aligned to eight bytes, valid
/// for reads until the value is dropped, and nobody writes to it.
pub(crate) unsafe trait PeerMemory: Send + Sync {
    /// The memory.
    fn bytes(&self) -> NonNull<[u8]>;
}

/// Memory that a fabric allocates so that peers can reach it, for a region or for shared words.
///
/// # Safety
/// [`LentMemory::bytes`] is the same run of initialized bytes at each call, aligned to eight bytes,
/// valid for reads and writes until the value is dropped, and not accessed by anything of this
/// process but what holds the value. Peers only read what is made a region.
pub unsafe trait LentMemory: Any + Send + Sync {
    /// The memory.
    fn bytes(&self) -> NonNull<[u8]>;
}

/// A file in memory.
struct MappedFile {
    /// Ends before the mapping does.
    watch: Watch,
    map: Mmap,
    /// The file's last byte when it was mapped.
    last: u8,
}

impl MappedFile {
    fn is_damaged(&self) -> bool {
        // What was read before this, and the handler of what could not be, come before what
        // follows.
        compiler_fence(Ordering::SeqCst);
        fence(Ordering::Acquire);
        if self.watch.is_damaged() {
            return true;
        }
        let last = &self.map[self.map.len() - 1];
        // SAFETY: the byte lies in the mapping. It may be another one than before, which the
        // compiler must not know better. If it is gone, the watch notes that and gives zero.
        let now = unsafe { std::ptr::read_volatile(last) };
        if now != self.last {
            self.watch.set_damaged();
        }
        self.watch.is_damaged()
    }
}

impl Backing {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Words(words) => bytemuck::cast_slice(words),
            Self::Mapped(map) => map,
            Self::File(file) => &file.map,
            // SAFETY: the memory is there until it is dropped, which is after `self`, and nobody
            // writes to it any more: its builder is gone.
            Self::Lent(memory) => unsafe { memory.bytes().as_ref() },
            // SAFETY: the memory is there until it is dropped, which is after `self`, and nobody
            // writes to it.
            Self::Peer(memory) => unsafe { memory.bytes().as_ref() },
        }
    }
}

/// Names one allocation or mapping: no other one of this process has, had or will have the name,
/// whatever its address. Whoever registers memory with a network card or a device keeps by it what
/// is registered.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct RegionId(pub u64);

impl RegionId {
    fn next() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// One allocation or mapping.
struct Memory {
    id: RegionId,
    backing: Backing,
}

/// A shared, read-only run of bytes; clones and slices share the memory.
#[derive(Clone)]
pub struct Region {
    memory: Arc<Memory>,
    /// A part of the memory's bytes: kept, so that reading costs one load.
    bytes: NonNull<[u8]>,
}

// SAFETY: the bytes are those of the memory, which may be sent and shared, and only read.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// What a region of its own allocation takes beside its bytes and itself.
    pub const HEAD_BYTES: usize = size_of::<Memory>() + 2 * size_of::<usize>();

    /// All of a new memory up to a length.
    fn of_memory(backing: Backing, length: usize) -> Self {
        let id = RegionId::next();
        Self::part(Arc::new(Memory { id, backing }), 0..length)
    }

    /// A part of a memory.
    fn part(memory: Arc<Memory>, range: Range<usize>) -> Self {
        let bytes = NonNull::from(&memory.backing.bytes()[range]);
        Self { memory, bytes }
    }

    /// The allocation or mapping that this region is a part of.
    #[must_use]
    pub fn id(&self) -> RegionId {
        self.memory.id
    }

    /// What lends this region its memory, if that is a `T`.
    pub(crate) fn lender<T: LentMemory>(&self) -> Option<&T> {
        match &self.memory.backing {
            Backing::Lent(memory) => (&**memory as &dyn Any).downcast_ref(),
            Backing::Words(_) | Backing::Mapped(_) | Backing::File(_) | Backing::Peer(_) => None,
        }
    }

    /// All of the allocation or mapping that this region is a part of: what is to be registered.
    #[must_use]
    pub fn memory(&self) -> Self {
        let length = self.memory.backing.bytes().len();
        Self::part(Arc::clone(&self.memory), 0..length)
    }

    /// Bytes from the start of the allocation or mapping to the start of this region.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.as_ptr() as usize - self.memory.backing.bytes().as_ptr() as usize
    }

    /// A region that holds a copy of `bytes`.
    #[must_use]
    pub fn copy_from(bytes: &[u8]) -> Self {
        let mut builder = RegionBuilder::new(bytes.len());
        builder.copy_from_slice(bytes);
        builder.finish()
    }

    /// All of a peer's memory.
    pub(crate) fn of_peer(memory: Box<dyn PeerMemory>) -> Self {
        let length = memory.bytes().len();
        Self::of_memory(Backing::Peer(memory), length)
    }

    /// Maps `file` from its start to its present end.
    ///
    /// # Errors
    /// What the operating system says of the mapping.
    ///
    /// The caller keeps others from changing the file while it is mapped: a store's directory is
    /// locked, and its files are written once. If it is shortened all the same, or its device
    /// fails, what cannot be read is read as zeros: see [`Region::is_damaged`].
    pub fn map_file(file: &File) -> io::Result<Self> {
        let length = usize::try_from(file.metadata()?.len())
            .map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        if length == 0 {
            return Ok(Self::copy_from(&[]));
        }
        // SAFETY: the store holds a lock on its directory and never writes to a finished file, so
        // the mapping does not change below us.
        let map = unsafe { Mmap::map(file)? };
        let start = map.as_ptr() as usize;
        let watch = Watch::begin(start..start + length);
        // Watched already: the file may be shorter by now.
        let last = map[length - 1];
        let file = MappedFile { watch, map, last };
        Ok(Self::of_memory(Backing::File(file), length))
    }

    /// True if bytes of the mapped file that this region lies in could not be read, or are known to
    /// be gone: then what was read from it before may have been zeros in their place. Stays so.
    ///
    /// A file that is shortened is noticed by its last byte, if that was another one than zero, or
    /// by whoever reads what is gone. Costs nanoseconds.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        match &self.memory.backing {
            Backing::File(file) => file.is_damaged(),
            Backing::Words(_) | Backing::Mapped(_) | Backing::Lent(_) | Backing::Peer(_) => false,
        }
    }

    /// Where the region lies in a mapped file, gives back the memory in which the file's bytes are held for this
    /// process: who reads them again gets them from the file. All regions of the file are the same file.
    pub fn let_go(&self) {
        if let Backing::File(file) = &self.memory.backing {
            // SAFETY: the mapping is of a file and only read, so its pages can be had again.
            // It is advice: a system that does not take it keeps the pages.
            let _ = unsafe { file.map.unchecked_advise(UncheckedAdvice::DontNeed) };
        }
    }

    /// The part `range` of this region, sharing its memory.
    ///
    /// # Panics
    /// If the range lies outside, or begins at no multiple of eight bytes.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.len(),
            "slice outside its region"
        );
        assert!(
            range.start.is_multiple_of(ALIGNMENT),
            "slice of a region is not aligned"
        );
        let start = self.offset();
        let memory = Arc::clone(&self.memory);
        Self::part(memory, start + range.start..start + range.end)
    }

    /// The bytes as numbers.
    ///
    /// # Panics
    /// If the length is no multiple of the number's size.
    #[inline]
    #[must_use]
    pub fn as_slice<T: bytemuck::AnyBitPattern>(&self) -> &[T] {
        bytemuck::cast_slice(self)
    }

    /// Bytes in this region.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True of a region without bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl Deref for Region {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the memory lives as long as this region holds it, at the same address, and nobody
        // writes to it once there is a region of it. A mapped file may lose bytes: `fault` has zeros
        // read in their place.
        unsafe { self.bytes.as_ref() }
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({} bytes)", self.len())
    }
}

enum Open {
    Words(Vec<u64>),
    Mapped(MmapMut),
    Lent(Box<dyn LentMemory>),
}

/// A region while it is being filled: zeroed memory of a fixed size.
pub struct RegionBuilder {
    open: Open,
    length: usize,
}

impl RegionBuilder {
    /// Zeroed memory of `length` bytes; large ones are advised for huge pages.
    ///
    /// # Panics
    /// If the operating system has no such memory, as any allocation does.
    #[must_use]
    pub fn new(length: usize) -> Self {
        let open = if length < HUGE_PAGE_BYTES {
            Open::Words(vec![0; length.div_ceil(ALIGNMENT)])
        } else {
            let map = MmapMut::map_anon(length)
                .unwrap_or_else(|error| panic!("no memory for {length} bytes: {error}"));
            // Advice only: a kernel without huge pages refuses it and nothing is lost.
            let _ = map.advise(Advice::HugePage);
            Open::Mapped(map)
        };
        Self { open, length }
    }

    /// The first `length` bytes of memory that a fabric lends, as they are.
    ///
    /// # Panics
    /// If the memory is shorter or not aligned to eight bytes.
    #[must_use]
    pub fn in_memory(memory: Box<dyn LentMemory>, length: usize) -> Self {
        let bytes = memory.bytes();
        assert!(bytes.len() >= length, "lent memory is too short");
        assert!(
            bytes.cast::<u64>().is_aligned(),
            "lent memory is not aligned"
        );
        let open = Open::Lent(memory);
        Self { open, length }
    }

    /// The memory as numbers.
    ///
    /// # Panics
    /// If the length is no multiple of the number's size.
    pub fn as_mut_slice<T: bytemuck::Pod>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(self.bytes_mut())
    }

    /// Fills the start of the memory with `bytes`.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn copy_from_slice(&mut self, bytes: &[u8]) {
        self.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let length = self.length;
        match &mut self.open {
            Open::Words(words) => &mut bytemuck::cast_slice_mut(words)[..length],
            Open::Mapped(map) => &mut map[..length],
            // SAFETY: the memory is there until it is dropped, and only this builder, which is
            // borrowed for as long as the slice is used, accesses it.
            Open::Lent(memory) => unsafe { &mut memory.bytes().as_mut()[..length] },
        }
    }

    /// Ends the writing.
    ///
    /// # Panics
    /// If the memory cannot be made read-only, which no known kernel refuses.
    #[must_use]
    pub fn finish(self) -> Region {
        let backing = match self.open {
            Open::Words(words) => Backing::Words(words),
            Open::Mapped(map) => Backing::Mapped(
                map.make_read_only()
                    .unwrap_or_else(|error| panic!("mprotect failed: {error}")),
            ),
            // Left writable: it is mapped by peers, too, and most of it may be one registration.
            Open::Lent(memory) => Backing::Lent(memory),
        };
        Region::of_memory(backing, self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_regions_hold_what_was_written() {
        for length in [0, 1, 7, 8, 100, HUGE_PAGE_BYTES, HUGE_PAGE_BYTES + 3] {
            let bytes: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            let region = Region::copy_from(&bytes);
            assert_eq!(&*region, &bytes[..]);
        }
    }

    /// A file of five pages and a piece, without a zero byte.
    fn file() -> File {
        use std::io::Write as _;
        let bytes: Vec<u8> = (0..5 * 4096 + 100).map(|i| (i % 251) as u8 + 1).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file
    }

    #[test]
    fn what_a_file_lost_is_zeros_and_the_region_says_so() {
        let (whole, other) = (file(), file());
        for length in [0, 1, 4096, 10_000, 5 * 4096, 5 * 4096 + 99] {
            let shortened = file();
            let region = Region::map_file(&shortened).unwrap();
            let beside = Region::map_file(&other).unwrap();
            let before = Region::map_file(&whole).unwrap();
            assert!(!region.is_damaged());
            shortened.set_len(length).unwrap();
            let read: usize = region.iter().filter(|byte| **byte != 0).count();
            assert_eq!(read as u64, length);
            assert!(region.is_damaged() && region.slice(8..16).is_damaged());
            // What comes back is not what was there.
            shortened.set_len(5 * 4096 + 100).unwrap();
            assert!(region.is_damaged());
            assert!(!beside.is_damaged() && !before.is_damaged());
            assert_eq!(*beside, *before);
        }
    }

    #[test]
    fn a_shortened_file_is_noticed_though_nobody_reads_it() {
        for length in [0, 4096, 5 * 4096 + 99] {
            let shortened = file();
            let region = Region::map_file(&shortened).unwrap();
            shortened.set_len(length).unwrap();
            assert!(region.is_damaged(), "{length} bytes");
        }
    }

    #[test]
    fn threads_that_read_what_is_gone_go_on_while_others_map_and_unmap() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for round in 0..50 {
                        let file = file();
                        let region = Region::map_file(&file).unwrap();
                        file.set_len(round * 100).unwrap();
                        let read = region.iter().filter(|byte| **byte != 0).count();
                        assert_eq!(read as u64, round * 100);
                        assert!(region.is_damaged());
                    }
                });
            }
        });
    }

    #[test]
    fn a_slice_shares_memory_and_casts() {
        let mut builder = RegionBuilder::new(32);
        builder.as_mut_slice::<u64>().copy_from_slice(&[1, 2, 3, 4]);
        let region = builder.finish();
        assert_eq!(region.slice(8..24).as_slice::<u64>(), &[2, 3]);
    }

    #[test]
    fn slices_know_their_memory_and_their_place_in_it() {
        let whole = Region::copy_from(&[7; 64]);
        let slice = whole.slice(16..48).slice(8..16);
        assert_eq!((slice.id(), slice.offset()), (whole.id(), 24));
        assert_eq!(slice.memory().len(), 64);
        assert_eq!(slice.memory()[24..].as_ptr(), slice.as_ptr());
        assert_ne!(Region::copy_from(&[7; 64]).id(), whole.id());
    }

    /// Memory that says when it is given back.
    struct Lender {
        words: Arc<[AtomicU64]>,
        given_back: Arc<AtomicU64>,
    }

    // SAFETY: the words stay where they are and are the lender's alone.
    unsafe impl LentMemory for Lender {
        fn bytes(&self) -> NonNull<[u8]> {
            let start = NonNull::from(&self.words[..]).cast();
            NonNull::slice_from_raw_parts(start, self.words.len() * ALIGNMENT)
        }
    }

    impl Drop for Lender {
        fn drop(&mut self) {
            self.given_back.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn lent_memory_is_given_back_with_the_last_slice() {
        let given_back = Arc::new(AtomicU64::new(0));
        let lender = Lender {
            words: (0..4).map(|_| AtomicU64::new(0)).collect(),
            given_back: Arc::clone(&given_back),
        };
        let mut builder = RegionBuilder::in_memory(Box::new(lender), 24);
        builder.as_mut_slice::<u64>().copy_from_slice(&[1, 2, 3]);
        let region = builder.finish();
        assert_eq!(region.as_slice::<u64>(), &[1, 2, 3]);
        assert!(region.lender::<Lender>().is_some() && region.memory().len() == 32);
        let slice = region.slice(8..16);
        drop(region);
        assert_eq!(slice.as_slice::<u64>(), &[2]);
        assert_eq!(given_back.load(Ordering::Relaxed), 0);
        drop(slice);
        assert_eq!(given_back.load(Ordering::Relaxed), 1);
    }

    #[test]
    #[should_panic(expected = "slice outside")]
    fn a_slice_outside_its_region_panics() {
        let _ = Region::copy_from(&[0; 8]).slice(0..9);
    }
}
