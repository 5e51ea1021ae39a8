//! Of which predicates does a base of another node have the same edges as one of this node?

use jindou_model::PredicateId;

/// The predicates of which two bases have the same edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alike {
    /// By number, as far as one of the bases has predicates.
    is_alike: Box<[bool]>,
    /// Of all others: neither base has edges of them.
    beyond: bool,
}

impl Alike {
    /// All predicates.
    pub(crate) fn all() -> Self {
        Self {
            is_alike: Box::default(),
            beyond: true,
        }
    }

    /// Those of which the digests are equal.
    pub(crate) fn of(own: &[u64], theirs: &[u64]) -> Self {
        let count = own.len().max(theirs.len());
        let is_alike = |place: usize| match (own.get(place), theirs.get(place)) {
            (Some(own), Some(theirs)) => own == theirs,
            _ => false,
        };
        Self {
            is_alike: (0..count).map(is_alike).collect(),
            beyond: true,
        }
    }

    /// Those of one or the other.
    pub(crate) fn or(&self, other: &Self) -> Self {
        let count = self.is_alike.len().max(other.is_alike.len());
        let has = |place: usize| {
            let predicate = PredicateId(place as u32);
            self.has(predicate) || other.has(predicate)
        };
        Self {
            is_alike: (0..count).map(has).collect(),
            beyond: self.beyond || other.beyond,
        }
    }

    /// No predicate.
    pub(crate) fn none() -> Self {
        Self {
            is_alike: Box::default(),
            beyond: false,
        }
    }

    /// How many of those that one of the bases has are alike,
    pub(crate) fn count(&self) -> usize {
        self.is_alike.iter().filter(|is_alike| **is_alike).count()
    }

    /// and how many these are.
    pub(crate) fn known(&self) -> usize {
        self.is_alike.len()
    }

    #[inline]
    pub(crate) fn has(&self, predicate: PredicateId) -> bool {
        let known = self.is_alike.get(predicate.index());
        known.copied().unwrap_or(self.beyond)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_predicate_that_one_base_has_and_the_other_lacks_is_not_alike() {
        let (short, long) = (Alike::of(&[1, 2], &[1, 3, 4]), Alike::of(&[1, 2], &[5, 2]));
        let has = |alike: &Alike| [0, 1, 2, 3].map(|number| alike.has(PredicateId(number)));
        assert_eq!(has(&short), [true, false, false, true]);
        assert_eq!(has(&long), [false, true, true, true]);
        assert_eq!(has(&short.or(&long)), [true; 4]);
        assert_eq!(has(&Alike::none().or(&short)), has(&short));
    }
}
