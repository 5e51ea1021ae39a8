//! Which variables of a plan are meant?

use jindou_plan::physical::Var;
use smallvec::SmallVec;

/// A set of variables. Those of most queries are in the set itself: a light query makes several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VarSet {
    words: SmallVec<[u64; 2]>,
}

impl VarSet {
    /// The set of which these are the [words](Self::words).
    pub(crate) fn from_words(words: Vec<u64>) -> Self {
        Self {
            words: words.into(),
        }
    }

    /// Its variables as bits, 64 a word.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Adds a variable.
    pub fn insert(&mut self, var: Var) {
        let word = var.index() / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (var.index() % 64);
    }

    /// Takes a variable out.
    pub(crate) fn remove(&mut self, var: Var) {
        if let Some(word) = self.words.get_mut(var.index() / 64) {
            *word &= !(1 << (var.index() % 64));
        }
    }

    /// Its variables.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Var> + '_ {
        let words = self.words.iter().enumerate();
        words.flat_map(|(place, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros();
                left &= left.checked_sub(1)?;
                Some(Var((64 * place) as u16 + bit as u16))
            })
        })
    }

    /// True if the variable is in it.
    #[inline]
    #[must_use]
    pub fn contains(&self, var: Var) -> bool {
        self.words
            .get(var.index() / 64)
            .is_some_and(|word| word & (1 << (var.index() % 64)) != 0)
    }
}

impl Extend<Var> for VarSet {
    fn extend<I: IntoIterator<Item = Var>>(&mut self, vars: I) {
        vars.into_iter().for_each(|var| self.insert(var));
    }
}

impl FromIterator<Var> for VarSet {
    fn from_iter<I: IntoIterator<Item = Var>>(vars: I) -> Self {
        let mut set = Self::default();
        set.extend(vars);
        set
    }
}
