//! Which variables?

use crate::physical::Var;

/// A set of variables: one bit each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct VarSet {
    /// No trailing zero words, so that equal sets are equal vectors.
    words: Vec<u64>,
}

impl VarSet {
    pub(crate) fn contains(&self, var: Var) -> bool {
        self.words
            .get(var.index() / 64)
            .is_some_and(|word| word >> (var.index() % 64) & 1 == 1)
    }

    pub(crate) fn insert(&mut self, var: Var) {
        let word = var.index() / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (var.index() % 64);
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        if other.words.len() > self.words.len() {
            self.words.resize(other.words.len(), 0);
        }
        for (word, more) in self.words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut set = self.clone();
        set.extend(other);
        set
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        Self::trimmed(
            self.words
                .iter()
                .zip(&other.words)
                .map(|(a, b)| a & b)
                .collect(),
        )
    }

    /// This set less another.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let others = other.words.iter().chain(std::iter::repeat(&0));
        Self::trimmed(self.words.iter().zip(others).map(|(a, b)| a & !b).collect())
    }

    /// This set less one variable.
    pub(crate) fn without(mut self, var: Var) -> Self {
        if let Some(word) = self.words.get_mut(var.index() / 64) {
            *word &= !(1 << (var.index() % 64));
        }
        Self::trimmed(self.words)
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.words.iter().zip(&other.words).any(|(a, b)| a & b != 0)
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.words.iter().enumerate().all(|(index, word)| {
            let others = other.words.get(index).copied().unwrap_or_default();
            word & !others == 0
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// In ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Var> + '_ {
        self.words.iter().enumerate().flat_map(|(index, word)| {
            (0..64usize)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| {
                    let number = u16::try_from(index * 64 + bit).expect("made from a Var");
                    Var(number)
                })
        })
    }

    fn trimmed(mut words: Vec<u64>) -> Self {
        while words.last() == Some(&0) {
            words.pop();
        }
        Self { words }
    }
}

impl FromIterator<Var> for VarSet {
    fn from_iter<I: IntoIterator<Item = Var>>(vars: I) -> Self {
        let mut set = Self::default();
        for var in vars {
            set.insert(var);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_behave_as_sets() {
        let a: VarSet = [Var(1), Var(70)].into_iter().collect();
        let b: VarSet = [Var(1), Var(3)].into_iter().collect();
        assert_eq!(a.intersection(&b), [Var(1)].into_iter().collect());
        assert_eq!(a.union(&b).iter().count(), 3);
        assert_eq!(a.difference(&b), [Var(70)].into_iter().collect());
        assert!(
            b.difference(&[Var(1), Var(3), Var(99)].into_iter().collect())
                .is_empty()
        );
        assert!(a.intersects(&b) && !a.is_subset(&b));
        assert!(a.intersection(&[Var(5)].into_iter().collect()).is_empty());
        assert!(a.intersection(&b).is_subset(&a));
    }
}
