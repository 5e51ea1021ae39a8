//! What the planner asks of a snapshot: the base's figures, corrected for the changes.

use jindou_model::{Direction, Membership, PredicateId};

use super::view::LayerView;

impl LayerView<'_> {
    /// How many ids have all of `traits`: exact for one trait, else an estimate.
    #[must_use]
    pub fn count_with(self, traits: &[Membership]) -> f64 {
        if traits.is_empty() {
            return self.vertices as f64;
        }
        let base = self.base.clusters().count_with(traits);
        let changes = traits.iter().map(|asked| self.trait_changes(*asked));
        // New vertices of one kind gain all traits of that kind together.
        let (gained, lost) = changes.fold((usize::MAX, 0), |sum, (gained, lost)| {
            (sum.0.min(gained), sum.1.max(lost))
        });
        (base + gained as f64 - lost as f64).max(0.0)
    }

    /// How many edges of (predicate, direction) have a key with all of `traits`: an estimate.
    #[must_use]
    pub fn edges_from(
        self,
        predicate: PredicateId,
        direction: Direction,
        traits: &[Membership],
    ) -> f64 {
        let itself = Membership::Has(predicate, direction);
        // Those of literals, too, which are in no characteristic set.
        if traits.iter().all(|asked| *asked == itself) {
            return self.counts(predicate, direction).0 as f64;
        }
        let base = self
            .base
            .clusters()
            .edges_from(predicate, direction, traits);
        let Some(delta) = self.delta.segment(predicate, direction) else {
            return base;
        };
        // Of the keys that are new to the predicate, as many have a trait as gained it.
        let keys = delta.gained.len().max(1) as f64;
        let share = traits
            .iter()
            .map(|asked| (self.trait_changes(*asked).0 as f64 / keys).min(1.0))
            .fold(1.0, f64::min);
        (base + delta.added.len() as f64 * share - delta.removed.len() as f64 * share).max(0.0)
    }

    /// How many edges of a predicate lead from subjects with all of `subjects` to vertices with
    /// all of `objects`; `None` where that was not counted.
    #[must_use]
    pub fn edges_between(
        self,
        predicate: PredicateId,
        subjects: &[Membership],
        objects: &[Membership],
    ) -> Option<f64> {
        let clusters = self.base.clusters();
        let base = clusters.edges_between(predicate, subjects, objects)?;
        let Some(delta) = self.delta.segment(predicate, Direction::Out) else {
            return Some(base);
        };
        // The counts say nothing of edges that came since: only while these are few.
        let edges = self.base.counts(predicate, Direction::Out).0;
        let few = (delta.added.len() as u64) * 8 <= edges;
        few.then_some(base)
    }
}
