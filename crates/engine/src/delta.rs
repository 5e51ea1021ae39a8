//! Which quads did an update really change?
//!
//! The difference of two snapshots, before the transaction and after it, as the sets of changed quads
//! know it: no graph is read, and a quad that was deleted and inserted again is in neither list. The
//! memory for it is taken before the update is committed, by the number of its changes, so that what
//! would not fit is refused while nothing has happened; the difference itself is made when all
//! others can go on. Terms are read when somebody asks for the quads.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use jindou_exec::Terms;
use jindou_model::IdQuad;
use jindou_store::{Changes, Effect, Snapshot};

use crate::graph::StoredGraph;
use crate::quads::{QUADS_BETWEEN_CHECKS, QuadReader};
use crate::request_memory::RequestMemory;
use crate::results::QuadText;
use crate::{Config, EngineError};

/// Bytes that a change takes: in the two sets while they are compared, and in the list that it ends in.
const CHANGE_BYTES: u64 = 160;

/// The quads that an update added and removed: the net effect of the whole request.
///
/// Clones share one list. It holds the snapshot after the update until it is dropped.
#[derive(Clone)]
pub struct UpdateDelta(Arc<Delta>);

struct Delta {
    graph: Arc<StoredGraph>,
    changes: Changes,
    /// What they take.
    _memory: RequestMemory,
}

/// Memory for what an update that is not committed yet will have changed.
pub(crate) struct DeltaMemory(RequestMemory);

impl DeltaMemory {
    /// Takes memory for the changes of an update.
    ///
    /// # Errors
    /// [`EngineError::DeltaTooLarge`], [`EngineError::PoolExhausted`].
    pub(crate) fn reserve(effect: Effect, config: &Config) -> Result<Self, EngineError> {
        let changes = effect.added + effect.removed;
        let bytes = changes.saturating_mul(CHANGE_BYTES);
        let limit_bytes = config.query_memory_bytes;
        if bytes > limit_bytes {
            return Err(EngineError::DeltaTooLarge {
                changes,
                limit_bytes,
            });
        }
        let mut memory = RequestMemory::new(config.memory_pool.as_ref());
        memory.take(bytes)?;
        Ok(Self(memory))
    }

    /// What led from one snapshot to the next one.
    pub(crate) fn delta(self, before: &Snapshot, after: Snapshot) -> UpdateDelta {
        let changes = after.quads_since(before);
        UpdateDelta(Arc::new(Delta {
            graph: Arc::new(StoredGraph { snapshot: after }),
            changes,
            _memory: self.0,
        }))
    }
}

impl UpdateDelta {
    /// Number of quads that are there and were not.
    #[must_use]
    pub fn added(&self) -> usize {
        self.0.changes.add.len()
    }

    /// Number of quads that were there and are not.
    #[must_use]
    pub fn removed(&self) -> usize {
        self.0.changes.remove.len()
    }

    /// Calls `visit` with some of the quads that were added, by their numbers; ends with its first error.
    ///
    /// Those of the default graph come first. The numbers of a range that no quad has are passed over.
    ///
    /// ```
    /// use jindou_engine::{Database, EngineError, UpdateOptions};
    ///
    /// let database = Database::new();
    /// let options = UpdateOptions {
    ///     return_delta: true,
    ///     ..UpdateOptions::default()
    /// };
    /// let text = "INSERT DATA { <http://e/a> <http://e/p> 1 } ; DELETE DATA { <http://e/a> <http://e/p> 2 }";
    /// let delta = database.update_with(text, options)?.delta.unwrap();
    /// assert_eq!((delta.added(), delta.removed()), (1, 0));
    /// delta.for_each_added(0..delta.added(), |quad| {
    ///     assert_eq!(quad.predicate, "http://e/p");
    ///     Ok::<(), EngineError>(())
    /// })?;
    /// # Ok::<(), EngineError>(())
    /// ```
    ///
    /// # Errors
    /// The first of `visit`; [`EngineError::Corrupt`] if a file of the store lost bytes meanwhile.
    pub fn for_each_added<E: From<EngineError>>(
        &self,
        numbers: Range<usize>,
        visit: impl FnMut(QuadText<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.visit(&self.0.changes.add, numbers, visit)
    }

    /// As [`UpdateDelta::for_each_added`], with quads that were removed.
    ///
    /// # Errors
    /// As [`UpdateDelta::for_each_added`].
    pub fn for_each_removed<E: From<EngineError>>(
        &self,
        numbers: Range<usize>,
        visit: impl FnMut(QuadText<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.visit(&self.0.changes.remove, numbers, visit)
    }

    fn visit<E: From<EngineError>>(
        &self,
        quads: &[IdQuad],
        numbers: Range<usize>,
        mut visit: impl FnMut(QuadText<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let graph = &self.0.graph;
        let terms = Terms::new(Arc::clone(graph) as _);
        let mut reader = QuadReader::new(graph, &terms, None);
        let end = numbers.end.min(quads.len());
        let quads = &quads[numbers.start.min(end)..end];
        let mut read = || {
            for (number, quad) in (0_u64..).zip(quads) {
                if number.is_multiple_of(QUADS_BETWEEN_CHECKS) {
                    graph.read(|| ())?;
                }
                let text = reader.text(quad.subject, quad.predicate, quad.object, quad.graph);
                visit(text)?;
            }
            Ok(())
        };
        graph.read(&mut read)?
    }
}

impl fmt::Debug for UpdateDelta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpdateDelta")
            .field("added", &self.added())
            .field("removed", &self.removed())
            .finish_non_exhaustive()
    }
}
