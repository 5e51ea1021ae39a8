//! How does a transaction of the leader become the latest snapshot of a follower?
//!
//! As one of the log does when a store is opened, after it was checked that it is one: what is at fault is refused,
//! and leaves the snapshot and the log as they were.

use jindou_model::{IdQuad, SnapshotNumber, TermId, TermKind};
use jindou_store::{Replay, ReplayError, Snapshot, Stage, Transaction, TransactionError};

use crate::EngineError;
use crate::database::Inner;
use crate::graph::read_whole;
use crate::writer::Appended;

/// Why a follower cannot apply what it was sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    /// It is not the one that comes next.
    #[error("snapshot {} was sent, and this copy is at {}", .sent.0, .latest.0)]
    OutOfOrder {
        sent: SnapshotNumber,
        latest: SnapshotNumber,
    },
    /// It does not follow from what is here.
    #[error("a transaction of the leader does not fit this copy of the store: {0}")]
    Unrelated(#[from] ReplayError),
    /// It names what is no term, or uses one as what it is not.
    #[error("a transaction of the leader has a term where none of its kind can be")]
    Misplaced,
    /// The log does not take it.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<TransactionError> for ApplyError {
    fn from(error: TransactionError) -> Self {
        Self::Unrelated(error.into())
    }
}

impl Inner {
    /// Applies the encoded transaction that makes a snapshot, which is one more than the latest. It is lasting and seen
    /// once it was published.
    ///
    /// # Errors
    /// Why it cannot be; the latest snapshot and the log are then as they were, and nothing more may be applied.
    pub(super) fn apply(
        &self,
        number: SnapshotNumber,
        bytes: &[u8],
    ) -> Result<Appended, ApplyError> {
        let transaction = Transaction::decode(bytes)?;
        let mut writer = self.writer.lock();
        let latest = writer.begin_fold()?;
        let is_next = number.0 == latest.number().0 + 1;
        if !is_next || transaction.number != number {
            return Err(ApplyError::OutOfOrder {
                sent: transaction.number,
                latest: latest.number(),
            });
        }
        check(&latest, &transaction)?;
        let next = read_whole(&latest, || replayed(&latest, &transaction))??;
        if !transaction.forgotten.is_empty() {
            // Ids are taken from terms, and plans remember ids.
            self.forget_plans();
        }
        Ok(writer.follow(next, bytes)?)
    }
}

fn replayed(latest: &Snapshot, transaction: &Transaction) -> Result<Snapshot, ReplayError> {
    let mut replay = Replay::new(latest.clone());
    replay.add(transaction)?;
    Ok(replay.finish())
}

/// That what a replay takes from the log on trust is so.
fn check(latest: &Snapshot, transaction: &Transaction) -> Result<(), ApplyError> {
    let mut forgotten = transaction.forgotten.clone();
    forgotten.sort_unstable();
    let are_distinct = forgotten.is_sorted_by(|a, b| a < b);
    let is_living = |id: &TermId| {
        let is_term = matches!(id.kind(), TermKind::Vertex | TermKind::Literal);
        is_term && latest.knows(*id) && latest.is_living(*id)
    };
    if !are_distinct || !forgotten.iter().all(is_living) {
        return Err(TransactionError::UnknownTerm.into());
    }
    let is_text = |(_, key): &(u64, Box<[u8]>)| std::str::from_utf8(key).is_ok();
    let are_texts = transaction.terms.vertices.iter().all(is_text);
    match are_texts && transaction.stages.iter().all(is_placed) {
        true => Ok(()),
        false => Err(ApplyError::Misplaced),
    }
}

/// Whether all terms of a step are of kinds that may be in their places.
fn is_placed(stage: &Stage) -> bool {
    let is_vertex = |id: &TermId| id.kind() == TermKind::Vertex;
    let is_quad = |quad: &IdQuad| {
        is_vertex(&quad.subject)
            && is_object(quad.object)
            && (quad.graph.is_none() || is_vertex(&quad.graph))
    };
    let changes = &stage.changes;
    changes.remove.iter().chain(&changes.add).all(is_quad)
        && stage.forget.iter().chain(&stage.declare).all(is_vertex)
}

fn is_object(id: TermId) -> bool {
    match id.kind() {
        TermKind::Vertex
        | TermKind::Literal
        | TermKind::Integer
        | TermKind::Decimal
        | TermKind::Double
        | TermKind::Float
        | TermKind::Boolean
        | TermKind::DateTime
        | TermKind::Date => true,
        TermKind::None | TermKind::Window | TermKind::Triple | TermKind::Computed => false,
    }
}
