//! How does a process lend memory to others of its machine, and they map it?
//!
//! As a file in memory without a name (`memfd_create`), whose length is sealed: nobody can take bytes
//! away from those who have it mapped. Others open it by its owner's number and descriptor, which
//! fails once the owner is gone; what is mapped stays as it is then.
//!
//! UCX's own segments are not used: version 1.13 faults when it maps memory of a process that has
//! just ended.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::ptr::NonNull;

use memmap2::{Advice, MmapOptions, MmapRaw};

use crate::FabricError;
use crate::region::LentMemory;
use crate::remote::Fields;

/// From this size on, huge pages are asked for.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Memory that this process lends.
pub(super) struct Segment {
    file: File,
    map: MmapRaw,
}

/// Where others find a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) process: u32,
    pub(super) descriptor: u32,
    /// The first byte in the segment.
    pub(super) offset: u64,
}

impl Place {
    pub(super) fn encode(self, into: &mut Vec<u8>) {
        into.extend(self.process.to_le_bytes());
        into.extend(self.descriptor.to_le_bytes());
        into.extend(self.offset.to_le_bytes());
    }

    pub(super) fn decode(fields: &mut Fields<'_>) -> Result<Self, FabricError> {
        Ok(Self {
            process: fields.u32()?,
            descriptor: fields.u32()?,
            offset: fields.u64()?,
        })
    }
}

impl Segment {
    /// Zeroed memory.
    pub(super) fn new(bytes: usize) -> Result<Self, FabricError> {
        Self::create(bytes).map_err(|_| FabricError::OutOfMemory(bytes as u64))
    }

    fn create(bytes: usize) -> io::Result<Self> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a string.
        let descriptor = unsafe { libc::memfd_create(c"jindou".as_ptr(), flags) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else's.
        let file = unsafe { File::from_raw_fd(descriptor) };
        file.set_len(bytes.max(1) as u64)?;
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: the call takes numbers only.
        if unsafe { libc::fcntl(descriptor, libc::F_ADD_SEALS, seals) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let map = MmapOptions::new().len(bytes.max(1)).map_raw(&file)?;
        if bytes >= HUGE_PAGE_BYTES {
            // Advice only: a kernel without huge pages refuses it and nothing is lost.
            let _ = map.advise(Advice::HugePage);
        }
        Ok(Self { file, map })
    }

    /// Where others find the byte at `address`, which lies in the segment.
    pub(super) fn place(&self, address: *const u8) -> Place {
        let offset = address.addr() - self.map.as_ptr().addr();
        assert!(
            offset <= self.map.len(),
            "an address outside of its segment"
        );
        Place {
            process: std::process::id(),
            descriptor: self.file.as_raw_fd() as u32,
            offset: offset as u64,
        }
    }
}

// SAFETY: the mapping stays where it is until the drop, and is this value's alone in this process.
// Others write only to what is shared as atomic words, and nobody can shorten the file.
unsafe impl LentMemory for Segment {
    fn bytes(&self) -> NonNull<[u8]> {
        let start = NonNull::new(self.map.as_mut_ptr()).expect("a mapping is not at zero");
        NonNull::slice_from_raw_parts(start, self.map.len())
    }
}

/// Memory of another process, mapped into this one.
pub(super) struct Mapped {
    map: MmapRaw,
    offset: usize,
}

impl Mapped {
    /// Maps so many bytes from a place on, to be written if they are shared. `None` if there is no
    /// such segment, or not any more. It is the one that was meant if its owner still offers it
    /// afterwards.
    pub(super) fn open(place: Place, bytes: u64, is_shared: bool) -> Option<Self> {
        let path = format!("/proc/{}/fd/{}", place.process, place.descriptor);
        let file = File::options()
            .read(true)
            .write(is_shared)
            .open(path)
            .ok()?;
        // SAFETY: the call takes numbers only.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return None;
        }
        let end = place.offset.checked_add(bytes)?;
        let length = file.metadata().ok()?.len();
        if end > length || !place.offset.is_multiple_of(8) {
            return None;
        }
        let length = usize::try_from(length).ok()?;
        let mut options = MmapOptions::new();
        let map = match is_shared {
            true => options.len(length).map_raw(&file).ok()?,
            false => options.len(length).map_raw_read_only(&file).ok()?,
        };
        let offset = place.offset as usize;
        Some(Self { map, offset })
    }

    /// The first byte. As many as were asked for are there until `self` is dropped, also when their
    /// owner is gone.
    pub(super) fn start(&self) -> NonNull<u8> {
        let start = self.map.as_mut_ptr().wrapping_add(self.offset);
        NonNull::new(start).expect("a mapping is not at zero")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_is_the_segment_and_stays_when_it_is_gone() {
        let segment = Segment::new(10_000).unwrap();
        let start = segment.bytes().cast::<u8>();
        // SAFETY: the byte lies in the segment, which nobody else has.
        let byte = unsafe { start.add(4096) };
        let place = segment.place(byte.as_ptr());
        assert_eq!(place.offset, 4096);
        let mapped = Mapped::open(place, 5904, true).unwrap();
        // SAFETY: both are mapped, and no other thread has them.
        unsafe {
            byte.write(7);
            assert_eq!(mapped.start().read(), 7);
        }
        assert!(Mapped::open(place, 5905, true).is_none());
        let misplaced = Place { offset: 3, ..place };
        assert!(Mapped::open(misplaced, 8, false).is_none());
        drop(segment);
        // SAFETY: as above.
        assert_eq!(unsafe { mapped.start().read() }, 7);
        assert!(Mapped::open(place, 1, false).is_none());
    }

    #[test]
    fn what_is_no_segment_is_not_mapped() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let place = Place {
            process: std::process::id(),
            descriptor: file.as_raw_fd() as u32,
            offset: 0,
        };
        assert!(Mapped::open(place, 8, false).is_none());
        let process = u32::MAX;
        assert!(Mapped::open(Place { process, ..place }, 8, false).is_none());
    }
}
