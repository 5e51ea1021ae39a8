//! How much was generated? Statements by predicate and by class, and how many are different.

use std::ops::AddAssign;

use super::DEGREE_POOL;
use super::vocabulary::{CLASSES, Class, PREDICATES, Predicate};

const POOL_WORDS: usize = (DEGREE_POOL as usize).div_ceil(64);

/// Counts of generated statements. Counts of different universities add up with `+=`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    predicates: [u64; PREDICATES],
    classes: [u64; CLASSES],
    /// Universities below [`DEGREE_POOL`] that were mentioned, one bit each.
    pool: [u64; POOL_WORDS],
    /// Generated universities from [`DEGREE_POOL`] on: no degree mentions them.
    beyond_pool: u64,
}

impl Counts {
    /// All statements, repeats included: the number of lines of the N-Triples text.
    pub fn statements(&self) -> u64 {
        self.predicates.iter().sum()
    }

    /// Different statements: what a graph that loads the data holds.
    ///
    /// Only the statement that a university is one is ever repeated.
    pub fn distinct(&self) -> u64 {
        let mentioned: u64 = self.pool.iter().map(|w| u64::from(w.count_ones())).sum();
        self.statements() - self.class(Class::University) + mentioned + self.beyond_pool
    }

    /// Statements with this predicate, repeats included.
    pub fn predicate(&self, predicate: Predicate) -> u64 {
        self.predicates[predicate as usize]
    }

    /// `rdf:type` statements with this class, repeats included. All classes but
    /// [`Class::University`] have no repeats, so this is their number of instances.
    pub fn class(&self, class: Class) -> u64 {
        self.classes[class as usize]
    }

    #[inline]
    pub(super) fn add_property(&mut self, predicate: Predicate) {
        self.predicates[predicate as usize] += 1;
    }

    #[inline]
    pub(super) fn add_type(&mut self, class: Class) {
        self.predicates[Predicate::Type as usize] += 1;
        self.classes[class as usize] += 1;
    }

    #[inline]
    pub(super) fn add_degree_target(&mut self, university: u32) {
        self.add_type(Class::University);
        self.pool[university as usize / 64] |= 1 << (university % 64);
    }

    /// Notes that the university itself is generated; its statements are counted apart.
    pub(super) fn note_generated(&mut self, university: u32) {
        if university < DEGREE_POOL {
            self.pool[university as usize / 64] |= 1 << (university % 64);
        } else {
            self.beyond_pool += 1;
        }
    }
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        for (sum, n) in self.predicates.iter_mut().zip(other.predicates) {
            *sum += n;
        }
        for (sum, n) in self.classes.iter_mut().zip(other.classes) {
            *sum += n;
        }
        for (sum, n) in self.pool.iter_mut().zip(other.pool) {
            *sum |= n;
        }
        self.beyond_pool += other.beyond_pool;
    }
}
