//! Which pieces does a simulated batch consist of, and how far is each?

use std::ops::Range;
use std::sync::Arc;

use crate::FabricError;
use crate::registry::{Registry, Target};
use crate::remote::memory::{Atomic, WORD_BYTES};
use crate::remote::{Action, Batch, NodeId, RemoteMemory};

/// A batch that is under way.
pub(super) struct FlightRecord {
    pub(super) source: Arc<Registry>,
    pub(super) batch: Batch,
    pub(super) pieces: Vec<Piece>,
    /// Pieces without an answer, of those that were sent.
    pub(super) unanswered: usize,
    /// Packets and retries that are still to come.
    pub(super) packets: usize,
    pub(super) are_bells_sent: bool,
    pub(super) outcome: Option<Result<(), FabricError>>,
    /// Nobody waits for it any more.
    pub(super) is_abandoned: bool,
}

/// What travels together.
pub(super) struct Piece {
    pub(super) node: NodeId,
    pub(super) task: Task,
    pub(super) attempts: u32,
    /// What the target did, so that it does it once.
    pub(super) answer: Option<Result<Answer, FabricError>>,
    pub(super) is_answered: bool,
}

/// What a target does for a piece. Places are bytes of answers, and words of what is written.
#[derive(Clone)]
pub(super) enum Task {
    Read {
        memory: RemoteMemory,
        offset: u64,
        /// The place of the operation's answer, in words, and in that of the piece's, in bytes.
        into: (usize, usize),
        length: usize,
    },
    Write {
        memory: RemoteMemory,
        offset: u64,
        from: Range<usize>,
    },
    Atomic {
        memory: RemoteMemory,
        offset: u64,
        into: usize,
        operation: Atomic,
    },
    Probe,
    Ring {
        number: u64,
    },
}

#[derive(Clone)]
pub(super) enum Answer {
    Bytes(Vec<u8>),
    Word(u64),
    Done,
}

impl Piece {
    fn new(node: NodeId, task: Task) -> Self {
        Self {
            node,
            task,
            attempts: 0,
            answer: None,
            is_answered: false,
        }
    }

    /// The node that the piece is for, as it was when its key was opened.
    pub(super) fn owner(&self) -> Option<Result<&Arc<Registry>, FabricError>> {
        match &self.task {
            Task::Read { memory, .. }
            | Task::Write { memory, .. }
            | Task::Atomic { memory, .. } => Some(memory.handle::<Target>().map(Target::owner)),
            Task::Probe | Task::Ring { .. } => None,
        }
    }
}

/// The pieces of all operations.
pub(super) fn pieces(batch: &Batch, piece_bytes: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for operation in batch.operations() {
        let offset = operation.offset;
        if let Action::Probe { node } = operation.action {
            pieces.push(Piece::new(node, Task::Probe));
            continue;
        }
        let memory = batch.target(operation);
        let mut add = |task| pieces.push(Piece::new(memory.node(), task));
        match operation.action.clone() {
            Action::Read { into, length } => {
                for part in parts(length, piece_bytes) {
                    add(Task::Read {
                        memory: memory.clone(),
                        offset: offset + part.start as u64,
                        into: (into, part.start),
                        length: part.len(),
                    });
                }
            }
            Action::Write { from } => {
                for part in parts(from.len(), piece_bytes / WORD_BYTES) {
                    add(Task::Write {
                        memory: memory.clone(),
                        offset: offset + (part.start * WORD_BYTES) as u64,
                        from: from.start + part.start..from.start + part.end,
                    });
                }
            }
            Action::Atomic { into, operation } => add(Task::Atomic {
                memory: memory.clone(),
                offset,
                into,
                operation,
            }),
            Action::Probe { .. } => {}
        }
    }
    pieces
}

/// The rings of all bells.
pub(super) fn rings(batch: &Batch) -> impl Iterator<Item = Piece> + use<'_> {
    let bells = batch.bells().iter();
    bells.map(|bell| {
        let number = bell.number;
        Piece::new(bell.node, Task::Ring { number })
    })
}

/// `0..length` in parts, at least one.
fn parts(length: usize, part: usize) -> impl Iterator<Item = Range<usize>> {
    (0..length.div_ceil(part).max(1)).map(move |i| i * part..((i + 1) * part).min(length))
}

/// Does what a piece asks for.
pub(super) fn perform(
    task: &Task,
    batch: &Batch,
    target: &Registry,
) -> Result<Answer, FabricError> {
    let node = target.node();
    match task.clone() {
        Task::Read {
            memory,
            offset,
            length,
            ..
        } => {
            let mut bytes = vec![0; length];
            let target = memory.handle::<Target>()?;
            target.with(|served| served.read(node, offset, &mut bytes))?;
            Ok(Answer::Bytes(bytes))
        }
        Task::Write {
            memory,
            offset,
            from,
        } => {
            let words = batch.input(from);
            let target = memory.handle::<Target>()?;
            target.with(|served| served.write(node, offset, words))?;
            Ok(Answer::Done)
        }
        Task::Atomic {
            memory,
            offset,
            operation,
            ..
        } => {
            let target = memory.handle::<Target>()?;
            let before = target.with(|served| served.atomic(node, offset, operation))?;
            Ok(Answer::Word(before))
        }
        Task::Probe => Ok(Answer::Done),
        Task::Ring { number } => target.ring(number).map(|()| Answer::Done),
    }
}

/// Puts an answer where the batch wants it.
pub(super) fn deliver(task: &Task, answer: &Answer, batch: &mut Batch) {
    match (task, answer) {
        (Task::Read { into, .. }, Answer::Bytes(bytes)) => {
            let (word, byte) = *into;
            let place = &mut batch.output(word, byte + bytes.len())[byte..];
            place.copy_from_slice(bytes);
        }
        (Task::Atomic { into, .. }, Answer::Word(before)) => *batch.output_word(*into) = *before,
        (_, answer) => assert!(
            matches!(answer, Answer::Done),
            "an answer to another question"
        ),
    }
}
