//! Was this pushed before: what is the last sequence number of each producer?

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Producers of a stream that are remembered: of more, those that were silent for longest are forgotten.
pub const MOST_PRODUCERS: usize = 10_000;

/// The last sequence number of each producer of a stream.
#[derive(Debug, Default)]
pub struct Producers {
    last: HashMap<Arc<str>, Last>,
    /// By when each was heard of.
    by_turn: BTreeMap<u64, Arc<str>>,
    turn: u64,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    sequence: u64,
    turn: u64,
}

impl Producers {
    /// True if a producer has sent this before: it numbers what it sends upwards.
    #[must_use]
    pub fn has_sent(&self, producer: &str, sequence: u64) -> bool {
        self.last_of(producer).is_some_and(|last| sequence <= last)
    }

    /// The last sequence number of a producer; `None` if it is not known.
    #[must_use]
    pub fn last_of(&self, producer: &str) -> Option<u64> {
        self.last.get(producer).map(|last| last.sequence)
    }

    /// Notes what a producer sent last.
    pub fn note(&mut self, producer: &str, sequence: u64) {
        self.turn += 1;
        let turn = self.turn;
        let name = match self.last.get_mut(producer) {
            Some(last) => {
                let name = self.by_turn.remove(&last.turn);
                *last = Last { sequence, turn };
                name.expect("each producer has its turn")
            }
            None => {
                let name: Arc<str> = producer.into();
                self.last.insert(Arc::clone(&name), Last { sequence, turn });
                name
            }
        };
        self.by_turn.insert(turn, name);
        if self.last.len() > MOST_PRODUCERS
            && let Some((_, oldest)) = self.by_turn.pop_first()
        {
            self.last.remove(&oldest);
        }
        debug_assert_eq!(self.last.len(), self.by_turn.len());
    }

    /// All of them with their last sequence numbers, the one that was silent for longest first.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.by_turn
            .values()
            .filter_map(|name| Some((&**name, self.last_of(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_were_silent_for_longest_are_forgotten() {
        let mut producers = Producers::default();
        for number in 0..MOST_PRODUCERS {
            producers.note(&number.to_string(), 7);
        }
        producers.note("0", 8);
        producers.note("new", 1);
        assert_eq!(producers.last_of("1"), None);
        assert!(producers.has_sent("0", 8) && !producers.has_sent("0", 9));
        assert!(!producers.has_sent("1", 0) && producers.has_sent("new", 0));
        let all: Vec<(&str, u64)> = producers.iter().collect();
        assert_eq!(all.len(), MOST_PRODUCERS);
        assert_eq!((all[0], all[MOST_PRODUCERS - 1]), (("2", 7), ("new", 1)));
    }
}
