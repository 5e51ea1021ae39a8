//! Which variables?

use crate::physical::Var;

/// A set of variables: one bit each, from the word of the first to that of the last, so that a
/// few neighbours take little space whatever their numbers are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct VarSet {
    /// Words of zeros before `words`; 0 for the empty set.
    first: usize,
    /// Neither the first nor the last is zero, so that equal sets are equal vectors.
    words: Vec<u64>,
}

impl VarSet {
    fn end(&self) -> usize {
        self.first + self.words.len()
    }

    /// The word of this number.
    fn word(&self, number: usize) -> u64 {
        let word = number.checked_sub(self.first);
        let word = word.and_then(|place| self.words.get(place));
        word.copied().unwrap_or_default()
    }

    pub(crate) fn contains(&self, var: Var) -> bool {
        self.word(var.index() / 64) >> (var.index() % 64) & 1 == 1
    }

    pub(crate) fn insert(&mut self, var: Var) {
        let word = var.index() / 64;
        self.cover(word, word + 1);
        self.words[word - self.first] |= 1 << (var.index() % 64);
    }

    /// Makes room for the words from `first` to before `end`.
    fn cover(&mut self, first: usize, end: usize) {
        if self.words.is_empty() {
            self.first = first;
        }
        if first < self.first {
            let more = self.first - first;
            self.words.splice(0..0, std::iter::repeat_n(0, more));
            self.first = first;
        }
        if end > self.end() {
            self.words.resize(end - self.first, 0);
        }
    }

    pub(crate) fn extend(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.cover(other.first, other.end());
        let words = &mut self.words[other.first - self.first..];
        for (word, more) in words.iter_mut().zip(&other.words) {
            *word |= more;
        }
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut set = self.clone();
        set.extend(other);
        set
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let (first, words) = self.common(other);
        Self::trimmed(first, words.map(|(a, b)| a & b).collect())
    }

    /// The words that two sets have both, with the number of the first.
    fn common<'s>(&'s self, other: &'s Self) -> (usize, impl Iterator<Item = (u64, u64)> + 's) {
        let first = self.first.max(other.first);
        let end = self.end().min(other.end());
        let words = (first..end).map(|number| (self.word(number), other.word(number)));
        (first, words)
    }

    /// This set less another.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let words = self.words.iter().zip(self.first..);
        let words = words.map(|(word, number)| word & !other.word(number));
        Self::trimmed(self.first, words.collect())
    }

    /// This set less one variable.
    pub(crate) fn without(mut self, var: Var) -> Self {
        let place = (var.index() / 64).checked_sub(self.first);
        if let Some(word) = place.and_then(|place| self.words.get_mut(place)) {
            *word &= !(1 << (var.index() % 64));
        }
        Self::trimmed(self.first, self.words)
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.common(other).1.any(|(a, b)| a & b != 0)
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        let mut words = self.words.iter().zip(self.first..);
        words.all(|(word, number)| word & !other.word(number) == 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// In ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Var> + '_ {
        self.words
            .iter()
            .zip(self.first..)
            .flat_map(|(word, index)| {
                (0..64usize)
                    .filter(move |bit| word >> bit & 1 == 1)
                    .map(move |bit| {
                        let number = u16::try_from(index * 64 + bit).expect("made from a Var");
                        Var(number)
                    })
            })
    }

    fn trimmed(first: usize, mut words: Vec<u64>) -> Self {
        while words.last() == Some(&0) {
            words.pop();
        }
        let zeros = words.iter().take_while(|word| **word == 0).count();
        words.drain(..zeros);
        let first = if words.is_empty() { 0 } else { first + zeros };
        Self { first, words }
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
        assert_eq!(a.clone().without(Var(1)), [Var(70)].into_iter().collect());
        assert_eq!(
            a.clone().without(Var(70)).without(Var(1)),
            VarSet::default()
        );
        let mut high: VarSet = [Var(u16::MAX)].into_iter().collect();
        assert_eq!(high.words.len(), 1, "no words before the first");
        assert!(!high.intersects(&a) && high.difference(&a) == high);
        high.extend(&a);
        high.insert(Var(64));
        let all = [Var(1), Var(64), Var(70), Var(u16::MAX)];
        assert_eq!(high.iter().collect::<Vec<_>>(), all);
        assert!(a.is_subset(&high) && !high.is_subset(&a) && high.contains(Var(u16::MAX)));
    }
}
