//! What is asked of remote memory at once, and where do the answers go?

use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};

use crate::FabricError;
use crate::remote::memory::{Atomic, WORD_BYTES, check_alignment, check_bounds};
use crate::remote::{BellAddress, NodeId, RemoteMemory};

/// The most operations of a batch, rings of bells included.
pub const MAX_BATCH_OPERATIONS: usize = 1 << 16;
/// The most bytes that a batch reads and writes together.
pub const MAX_BATCH_BYTES: usize = 1 << 30;

/// Names an operation of a batch, to find its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the answer is found by it"]
pub struct OperationId(u32);

/// One-sided operations that are begun and completed together, and the buffers of their data.
///
/// A batch owns its buffers and is itself owned by whoever flies it, so they outlive all that a
/// network card may do to them; [`Completed::reuse`] gives them back. Operations have no order among
/// each other, with two exceptions: each word is read or written whole, and bells are rung after
/// all writes and atomic operations of the batch are in place.
///
/// ```
/// use jindou_fabric::local::LocalNetwork;
/// use jindou_fabric::remote::{Batch, Fabric, Interrupt};
/// use jindou_fabric::Region;
///
/// # fn main() -> Result<(), jindou_fabric::FabricError> {
/// let network = LocalNetwork::new(2);
/// let (here, there) = (network.fabric(0), network.fabric(1));
/// let registration = there.register(&Region::copy_from(b"the graph"))?;
/// let memory = here.open(registration.key())?;
/// let mut batch = Batch::new();
/// let (article, noun) = (batch.read(&memory, 0, 3)?, batch.read(&memory, 4, 5)?);
/// let completed = here.start(batch).wait(&Interrupt::never())?;
/// assert_eq!(completed.bytes(article), b"the");
/// assert_eq!(completed.bytes(noun), b"graph");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Batch {
    operations: Vec<Operation>,
    /// Each differs from the one before it.
    targets: Vec<RemoteMemory>,
    bells: Vec<BellAddress>,
    /// What is to be written.
    input: Vec<u64>,
    /// What was read, each answer from a word on.
    output: Vec<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) action: Action,
    /// Place of its memory in `targets`; of no meaning for a probe.
    target: u32,
    /// First byte in the memory.
    pub(crate) offset: u64,
}

/// What an operation does. Places are words of the batch's buffers.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Read { into: usize, length: usize },
    Write { from: Range<usize> },
    Atomic { into: usize, operation: Atomic },
    Probe { node: NodeId },
}

impl Batch {
    /// A batch without operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of operations, without the bells.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// True if there is nothing to do, no bell to ring either.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty() && self.bells.is_empty()
    }

    /// Reads `length` bytes from byte `offset` of the memory. [`Completed::bytes`] has them, at an
    /// address that is a multiple of eight.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`], [`FabricError::BatchFull`].
    pub fn read(
        &mut self,
        memory: &RemoteMemory,
        offset: u64,
        length: usize,
    ) -> Result<OperationId, FabricError> {
        check_bounds(memory.node(), offset, length as u64, memory.length())?;
        let words = length.div_ceil(WORD_BYTES);
        self.check_room(words)?;
        let into = self.room_for_answer(words);
        self.push(memory, offset, Action::Read { into, length })
    }

    /// Writes words from byte `offset` of a [`SharedMemory`](crate::remote::SharedMemory) on.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`], [`FabricError::Misaligned`], [`FabricError::BatchFull`].
    pub fn write(
        &mut self,
        memory: &RemoteMemory,
        offset: u64,
        words: &[u64],
    ) -> Result<OperationId, FabricError> {
        let length = size_of_val(words) as u64;
        check_bounds(memory.node(), offset, length, memory.length())?;
        check_alignment(memory.node(), offset)?;
        self.check_room(words.len())?;
        let from = self.input.len();
        self.input.extend_from_slice(words);
        let from = from..self.input.len();
        self.push(memory, offset, Action::Write { from })
    }

    /// Puts `new` in the place of the word at byte `offset` if that is `expected`;
    /// [`Completed::word`] is what was there before. Happens once or not at all.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`], [`FabricError::Misaligned`], [`FabricError::BatchFull`].
    pub fn compare_and_swap(
        &mut self,
        memory: &RemoteMemory,
        offset: u64,
        expected: u64,
        new: u64,
    ) -> Result<OperationId, FabricError> {
        self.atomic(memory, offset, Atomic::CompareAndSwap { expected, new })
    }

    /// Adds to the word at byte `offset`, modulo 2^64; [`Completed::word`] is what was there before.
    /// Happens once or not at all.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`], [`FabricError::Misaligned`], [`FabricError::BatchFull`].
    pub fn fetch_add(
        &mut self,
        memory: &RemoteMemory,
        offset: u64,
        by: u64,
    ) -> Result<OperationId, FabricError> {
        self.atomic(memory, offset, Atomic::FetchAdd { by })
    }

    fn atomic(
        &mut self,
        memory: &RemoteMemory,
        offset: u64,
        operation: Atomic,
    ) -> Result<OperationId, FabricError> {
        check_bounds(memory.node(), offset, WORD_BYTES as u64, memory.length())?;
        check_alignment(memory.node(), offset)?;
        self.check_room(1)?;
        let into = self.room_for_answer(1);
        self.push(memory, offset, Action::Atomic { into, operation })
    }

    /// Completes if the node answers.
    ///
    /// # Errors
    /// [`FabricError::BatchFull`].
    pub fn probe(&mut self, node: NodeId) -> Result<OperationId, FabricError> {
        self.check_room(0)?;
        let action = Action::Probe { node };
        let (target, offset) = (0, 0);
        Ok(self.add(Operation {
            action,
            target,
            offset,
        }))
    }

    /// Rings a bell once all writes and atomic operations of this batch are in place.
    ///
    /// # Errors
    /// [`FabricError::BatchFull`].
    pub fn wake(&mut self, bell: BellAddress) -> Result<(), FabricError> {
        self.check_room(0)?;
        self.bells.push(bell);
        Ok(())
    }

    fn check_room(&self, words: usize) -> Result<(), FabricError> {
        let full = |what, limit| Err(FabricError::BatchFull { what, limit });
        if self.operations.len() + self.bells.len() >= MAX_BATCH_OPERATIONS {
            return full("operations", MAX_BATCH_OPERATIONS);
        }
        let taken = self.input.len() + self.output.len();
        if words > MAX_BATCH_BYTES / WORD_BYTES - taken {
            return full("bytes", MAX_BATCH_BYTES);
        }
        Ok(())
    }

    fn room_for_answer(&mut self, words: usize) -> usize {
        let place = self.output.len();
        self.output.resize(place + words, 0);
        place
    }

    fn push(
        &mut self,
        memory: &RemoteMemory,
        offset: u64,
        action: Action,
    ) -> Result<OperationId, FabricError> {
        if !self.targets.last().is_some_and(|last| last.is(memory)) {
            self.targets.push(memory.clone());
        }
        let target = (self.targets.len() - 1) as u32;
        Ok(self.add(Operation {
            action,
            target,
            offset,
        }))
    }

    fn add(&mut self, operation: Operation) -> OperationId {
        let id = OperationId(self.operations.len() as u32);
        self.operations.push(operation);
        id
    }

    pub(crate) fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// The memory of an operation that is no probe.
    pub(crate) fn target(&self, operation: &Operation) -> &RemoteMemory {
        &self.targets[operation.target as usize]
    }

    pub(crate) fn bells(&self) -> &[BellAddress] {
        &self.bells
    }

    /// The words that a write writes.
    pub(crate) fn input(&self, from: Range<usize>) -> &[u64] {
        &self.input[from]
    }

    /// Where an answer of `length` bytes goes.
    pub(crate) fn output(&mut self, into: usize, length: usize) -> &mut [u8] {
        &mut cast_slice_mut(&mut self.output[into..])[..length]
    }

    /// Where the answer of an atomic operation goes.
    pub(crate) fn output_word(&mut self, into: usize) -> &mut u64 {
        &mut self.output[into]
    }
}

/// A batch all of whose operations are done.
#[derive(Debug)]
pub struct Completed(Batch);

impl Completed {
    pub(crate) fn new(batch: Batch) -> Self {
        Self(batch)
    }

    /// What a read found; of an atomic operation the bytes of its word, otherwise nothing.
    ///
    /// # Panics
    /// If the operation is no one of this batch.
    #[must_use]
    pub fn bytes(&self, operation: OperationId) -> &[u8] {
        match self.0.operations[operation.0 as usize].action {
            Action::Read { into, length } => &cast_slice(&self.0.output[into..])[..length],
            Action::Atomic { into, .. } => cast_slice(&self.0.output[into..=into]),
            Action::Write { .. } | Action::Probe { .. } => &[],
        }
    }

    /// The words that a read found, without a last piece that is shorter; of an atomic operation
    /// what was there before.
    ///
    /// # Panics
    /// If the operation is no one of this batch.
    #[must_use]
    pub fn words(&self, operation: OperationId) -> &[u64] {
        let bytes = self.bytes(operation);
        cast_slice(&bytes[..bytes.len() / WORD_BYTES * WORD_BYTES])
    }

    /// What an atomic operation found before it, or the first word of a read.
    ///
    /// # Panics
    /// If the operation is no one of this batch, or has no word for an answer.
    #[must_use]
    pub fn word(&self, operation: OperationId) -> u64 {
        self.words(operation)[0]
    }

    /// An empty batch with the same buffers.
    #[must_use]
    pub fn reuse(self) -> Batch {
        let mut batch = self.0;
        batch.operations.clear();
        batch.targets.clear();
        batch.bells.clear();
        batch.input.clear();
        batch.output.clear();
        batch
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::MemoryKey;

    const NODE: NodeId = NodeId(1);

    fn memory(length: u64) -> RemoteMemory {
        RemoteMemory::new(MemoryKey::new(NODE, length, b""), ())
    }

    #[test]
    fn operations_outside_of_their_memory_never_enter_a_batch() {
        let memory = memory(20);
        let mut batch = Batch::new();
        assert!(batch.read(&memory, 13, 8).is_err());
        assert!(batch.read(&memory, u64::MAX, 1).is_err());
        assert!(batch.write(&memory, 16, &[1]).is_err());
        assert!(batch.write(&memory, 4, &[1]).is_err());
        assert!(batch.compare_and_swap(&memory, 16, 0, 0).is_err());
        assert!(batch.fetch_add(&memory, 1, 1).is_err());
        assert!(batch.is_empty() && batch.input.is_empty() && batch.output.is_empty());
        assert!(batch.read(&memory, 13, 7).is_ok());
    }

    #[test]
    fn a_batch_is_bounded_in_operations_and_bytes() {
        let memory = memory(u64::MAX);
        let mut batch = Batch::new();
        let _ = batch.read(&memory, 0, 8).unwrap();
        let too_much = batch.read(&memory, 0, MAX_BATCH_BYTES);
        assert!(matches!(
            too_much,
            Err(FabricError::BatchFull { what: "bytes", .. })
        ));
        for _ in 1..MAX_BATCH_OPERATIONS {
            let _ = batch.read(&memory, 0, 0).unwrap();
        }
        assert!(batch.read(&memory, 0, 0).is_err() && batch.probe(NODE).is_err());
        let (node, number) = (NODE, 1);
        assert!(batch.wake(BellAddress { node, number }).is_err());
        assert_eq!(batch.targets.len(), 1);
        let batch = Completed::new(batch).reuse();
        assert!(batch.is_empty() && batch.targets.is_empty());
    }
}
