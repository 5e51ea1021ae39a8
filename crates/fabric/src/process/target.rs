//! How is a memory reached that a key names: directly, or by asking its owner?

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use xxhash_rust::xxh3::xxh3_64;

use super::flight::Messages;
use super::node::Peer;
use super::segment::{Mapped, Place};
use super::wire::Item;
use crate::region::PeerMemory;
use crate::registry::Target;
use crate::remote::memory::{WORD_BYTES, check_alignment, check_bounds, read_words, write_words};
use crate::remote::{Action, Batch, Fields, MemoryKey, NodeId, Operation};
use crate::{FabricError, Region};

/// What stands behind a `RemoteMemory`.
pub(super) enum Reach {
    /// This node's.
    Own(Target),
    /// A neighbour's, mapped here.
    Neighbours(NeighbourMemory),
    /// The owner does what is to be done.
    Served { peer: Arc<Peer>, number: u64 },
}

/// What a key says beside node and length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyName {
    /// The name of the registration.
    pub(super) number: u64,
    /// Its place in the owner's table.
    pub(super) slot: u64,
    pub(super) is_shared: bool,
    /// Where it can be mapped, if it can.
    pub(super) place: Option<Place>,
}

impl KeyName {
    pub(super) fn key(&self, node: NodeId, length: u64) -> MemoryKey {
        let mut name = Vec::new();
        for word in [self.number, self.slot, u64::from(self.is_shared)] {
            name.extend(word.to_le_bytes());
        }
        if let Some(place) = self.place {
            place.encode(&mut name);
        }
        name.extend(checksum(node, length, &name).to_le_bytes());
        MemoryKey::new(node, length, &name)
    }

    /// What the key says, unless it is damaged.
    pub(super) fn of(key: &MemoryKey) -> Result<Self, FabricError> {
        let malformed = FabricError::Malformed("key of a process");
        let (name, sum) = key.name().split_last_chunk().ok_or(malformed.clone())?;
        if checksum(key.node(), key.length(), name) != u64::from_le_bytes(*sum) {
            return Err(malformed);
        }
        let mut fields = Fields::new(name, "key of a process");
        let (number, slot, is_shared) = (fields.u64()?, fields.u64()?, fields.u64()? != 0);
        let place = match fields.rest() {
            [] => None,
            _ => Some(Place::decode(&mut fields)?),
        };
        fields.end()?;
        Ok(Self {
            number,
            slot,
            is_shared,
            place,
        })
    }
}

fn checksum(node: NodeId, length: u64, name: &[u8]) -> u64 {
    let mut bytes = name.to_vec();
    bytes.extend(node.0.to_le_bytes());
    bytes.extend(length.to_le_bytes());
    xxh3_64(&bytes)
}

/// Memory of a node on this machine, mapped into this process.
pub(super) struct NeighbourMemory {
    peer: Arc<Peer>,
    mapped: Arc<Mapped>,
    number: u64,
    slot: u64,
    is_shared: bool,
    length: u64,
}

/// The bytes of a neighbour's region.
struct NeighbourRegion {
    mapped: Arc<Mapped>,
    length: usize,
}

// SAFETY: the bytes lie in the mapping, as was found when it was opened, which is aligned to words and there for
// as long as `self`. The owner made them a region, to which nobody writes while it is registered, nor
// after: the memory is given back then, and stays as it is for those who have it mapped.
unsafe impl PeerMemory for NeighbourRegion {
    fn bytes(&self) -> NonNull<[u8]> {
        NonNull::slice_from_raw_parts(self.mapped.start(), self.length)
    }
}

impl NeighbourMemory {
    /// The memory that a key names, of which `mapped` is the first byte.
    pub(super) fn new(peer: Arc<Peer>, mapped: Mapped, name: &KeyName, length: u64) -> Self {
        Self {
            peer,
            mapped: Arc::new(mapped),
            number: name.number,
            slot: name.slot,
            is_shared: name.is_shared,
            length,
        }
    }

    /// An error unless the owner is alive and still offers the memory.
    pub(super) fn check(&self) -> Result<(), FabricError> {
        self.peer.check()?;
        let offers = |table: &super::table::Table| table.offers(self.slot, self.number);
        if self.peer.table().is_some_and(offers) {
            return Ok(());
        }
        Err(FabricError::Unregistered(self.peer.node()))
    }

    /// The memory, unless it is shared words.
    pub(super) fn region(&self) -> Result<Option<Region>, FabricError> {
        self.check()?;
        if self.is_shared {
            return Ok(None);
        }
        Ok(Some(Region::of_peer(Box::new(NeighbourRegion {
            mapped: Arc::clone(&self.mapped),
            length: self.length as usize,
        }))))
    }

    fn words(&self) -> Result<&[AtomicU64], FabricError> {
        if !self.is_shared {
            return Err(FabricError::ReadOnly(self.peer.node()));
        }
        let words = (self.length / WORD_BYTES as u64) as usize;
        let start = self.mapped.start().cast::<AtomicU64>();
        // SAFETY: the owner registered so many words there as shared, which all processes access as
        // atomics only; the mapping is aligned to words and lives as long as `self`.
        Ok(unsafe { NonNull::slice_from_raw_parts(start, words).as_ref() })
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), FabricError> {
        check_bounds(self.peer.node(), offset, into.len() as u64, self.length)?;
        if self.is_shared {
            read_words(self.words()?, offset as usize, into);
        } else {
            let start = self.mapped.start().as_ptr().wrapping_add(offset as usize);
            // SAFETY: the bytes lie in the mapping, as was checked. The owner made them a region,
            // to which nobody writes while it is registered, nor after: the memory is given back
            // then, and stays as it is for those who have it mapped.
            unsafe { std::ptr::copy_nonoverlapping(start, into.as_mut_ptr(), into.len()) };
        }
        Ok(())
    }

    /// Copies bytes that were there all the time.
    pub(super) fn read_checked(&self, offset: u64, into: &mut [u8]) -> Result<(), FabricError> {
        self.check()?;
        self.read(offset, into)?;
        self.check()
    }

    /// Does an operation with loads and stores of this thread.
    pub(super) fn perform(
        &self,
        batch: &mut Batch,
        operation: &Operation,
    ) -> Result<(), FabricError> {
        self.check()?;
        let (node, offset) = (self.peer.node(), operation.offset);
        let place = offset as usize / WORD_BYTES;
        match operation.action.clone() {
            Action::Read { into, length } => self.read(offset, batch.output(into, length))?,
            Action::Write { from } => {
                check_bounds(node, offset, (from.len() * WORD_BYTES) as u64, self.length)?;
                check_alignment(node, offset)?;
                write_words(&self.words()?[place..], batch.input(from));
            }
            Action::Atomic { into, operation } => {
                check_bounds(node, offset, WORD_BYTES as u64, self.length)?;
                check_alignment(node, offset)?;
                *batch.output_word(into) = operation.apply(&self.words()?[place]);
            }
            Action::Probe { .. } => {}
        }
        // It was there all the time.
        self.check()
    }
}

/// Adds the pieces of an operation to the messages for its owner.
pub(super) fn ask(messages: &mut Messages, peer: &Arc<Peer>, number: u64, operation: &Operation) {
    let offset = operation.offset;
    match operation.action.clone() {
        Action::Read { into, length } => {
            let piece = messages.most_words() * WORD_BYTES;
            for start in (0..length.max(1)).step_by(piece) {
                let item = Item::Read {
                    number,
                    offset: offset + start as u64,
                    into: (into, start),
                    length: piece.min(length - start),
                };
                messages.add(peer, item);
            }
        }
        Action::Write { from } => {
            let piece = messages.most_words();
            for start in (0..from.len().max(1)).step_by(piece) {
                let end = from.len().min(start + piece);
                let item = Item::Write {
                    number,
                    offset: offset + (start * WORD_BYTES) as u64,
                    from: from.start + start..from.start + end,
                };
                messages.add(peer, item);
            }
        }
        Action::Atomic { into, operation } => {
            let item = Item::Atomic {
                number,
                offset,
                into,
                operation,
            };
            messages.add(peer, item);
        }
        Action::Probe { .. } => messages.add(peer, Item::Probe),
    }
}
