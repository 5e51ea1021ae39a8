//! What did an execution do to its copy of a snapshot, and does that stand beside later commits?
//!
//! An execution read a snapshot. Where later commits left all that it read as it was, it would find
//! and write the same on top of them: only the ids of its new terms may be others there.

use std::sync::Arc;

use jindou_store::{Effect, NewIds, Snapshot, Stage};

use crate::EngineError;
use crate::deadline::Deadline;
use crate::graph::read_whole;
use crate::reads::Reads;
use crate::request_memory::RequestMemory;

/// One step of a request.
pub(crate) struct Step {
    stage: Stage,
    /// It changed something in the copy that it was made in.
    is_effective: bool,
}

impl Step {
    /// Makes a step in a snapshot that nobody else reads yet.
    pub(crate) fn make(stage: Stage, working: &mut Snapshot) -> (Self, Effect) {
        let effect = working.apply_stage(&stage);
        let is_effective = effect != Effect::default();
        let step = Self {
            stage,
            is_effective,
        };
        (step, effect)
    }

    /// Changes of quads and of graphs.
    fn changes(&self) -> usize {
        let Stage {
            changes,
            forget,
            declare,
            ..
        } = &self.stage;
        changes.remove.len() + changes.add.len() + forget.len() + declare.len()
    }
}

/// What a request did to its copy of the latest snapshot.
pub(crate) struct Done {
    pub(crate) steps: Vec<Step>,
    pub(crate) effect: Effect,
    /// Of the quads and the new terms, until these are the database's.
    pub(crate) memory: RequestMemory,
    /// It called other endpoints, for which nobody shall wait with the writer's lock.
    pub(crate) calls_services: bool,
    /// Its client wants to know which quads it changes.
    pub(crate) returns_delta: bool,
}

impl Done {
    /// False where the copy is as it was.
    pub(crate) fn changes_anything(&self) -> bool {
        self.steps.iter().any(|step| step.is_effective)
    }

    /// The steps that the log needs.
    pub(crate) fn into_stages(self) -> Vec<Stage> {
        let effective = self.steps.into_iter().filter(|step| step.is_effective);
        effective.map(|step| step.stage).collect()
    }
}

/// An execution beside which others may have committed.
pub(crate) struct Attempt {
    /// What its copy was made of: what it read, or a later one that agrees with that in all that
    /// was read.
    basis: Arc<Snapshot>,
    working: Snapshot,
    done: Done,
    reads: Arc<Reads>,
}

impl Attempt {
    /// What was done in `working`, a copy of `start`.
    pub(crate) fn new(
        start: Arc<Snapshot>,
        working: Snapshot,
        done: Done,
        reads: Arc<Reads>,
    ) -> Self {
        assert!(
            working.is_of_generation_of(&start),
            "a copy stays in its generation"
        );
        Self {
            basis: start,
            working,
            done,
            reads,
        }
    }

    pub(crate) fn done(&self) -> &Done {
        &self.done
    }

    /// Changes of all its steps.
    pub(crate) fn changes(&self) -> usize {
        self.done.steps.iter().map(Step::changes).sum()
    }

    /// True if nobody committed since, nor were lists written out, which its copy lacks, nor did a
    /// merge begin, behind which its new vertices must be numbered.
    pub(crate) fn is_on(&self, latest: &Snapshot) -> bool {
        latest.is_same_version(&self.basis) && self.working.has_open_extents()
    }

    /// True if it would have done the same in a copy of `latest`.
    pub(crate) fn stands_beside(&self, latest: &Snapshot) -> bool {
        // What an endpoint read is not known: it may be this database.
        !self.done.calls_services
            && latest.is_of_generation_of(&self.basis)
            && self.reads.agree(&self.basis, latest)
    }

    /// Makes its steps in a copy of `latest`, beside which it [stands](Self::stands_beside).
    ///
    /// Costs what the changes themselves cost.
    ///
    /// # Errors
    /// The limit that it met, also of memory, as there are two copies for a while; too many terms.
    pub(crate) fn move_onto(
        &mut self,
        latest: Snapshot,
        deadline: &Deadline,
    ) -> Result<(), EngineError> {
        let _other_copy = self.done.memory.doubled()?;
        let mut to = latest.clone();
        // The blank nodes of its documents keep their names.
        to.set_documents(latest.documents().max(self.working.documents()));
        let mut new_ids = NewIds::beside(Snapshot::clone(&self.basis), self.working.clone());
        let mut effect = Effect::default();
        let steps = &mut self.done.steps;
        read_whole(&latest, || {
            for step in steps {
                deadline.left()?;
                let stage = new_ids.stage(&step.stage, &mut to)?;
                let (made, did) = Step::make(stage, &mut to);
                effect.added += did.added;
                effect.removed += did.removed;
                *step = made;
            }
            Ok::<_, EngineError>(())
        })??;
        self.done.effect = effect;
        self.working = to;
        self.basis = Arc::new(latest);
        Ok(())
    }

    /// The changed copy, and what was done to it.
    pub(crate) fn into_parts(self) -> (Snapshot, Done) {
        (self.working, self.done)
    }
}
