//! What can be reached by a path from each of many terms?
//!
//! One breadth-first search for all of them: each (state, term) has a mask of the starts that
//! have reached it, and is left again only for starts that are new there. Where much is reached
//! from many starts, an edge is looked at once a level and not once a start (Then et al., "The
//! more the merrier: efficient multi-source graph traversal", VLDB 2014).

use jindou_model::{Cursor, TermId};
use rustc_hash::FxHashMap;

use super::automaton::Automaton;
use super::view::View;
use crate::ExecError;
use crate::context::Context;

/// Terms that are searched from together.
pub(super) const STARTS: usize = 256;
const WORDS: usize = STARTS / 64;

/// A set of starts.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Mask([u64; WORDS]);

impl Mask {
    fn insert(&mut self, start: usize) {
        self.0[start / 64] |= 1 << (start % 64);
    }

    fn contains(self, start: usize) -> bool {
        self.0[start / 64] & (1 << (start % 64)) != 0
    }

    fn is_empty(self) -> bool {
        self.0 == [0; WORDS]
    }

    fn add(&mut self, other: Self) {
        for (mine, others) in self.0.iter_mut().zip(other.0) {
            *mine |= others;
        }
    }

    /// Adds what is in the other, and gives what of it is new.
    fn add_new(&mut self, other: Self) -> Self {
        let mut new = Self::default();
        for ((mine, others), new) in self.0.iter_mut().zip(other.0).zip(&mut new.0) {
            *new = others & !*mine;
            *mine |= others;
        }
        new
    }

    /// Takes the first start out.
    fn pop(&mut self) -> Option<usize> {
        let word = self.0.iter().position(|word| *word != 0)?;
        let bit = self.0[word].trailing_zeros();
        self.0[word] &= self.0[word] - 1;
        Some(word * 64 + bit as usize)
    }

    fn len(self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// What the search knows of the terms in one state.
#[derive(Default)]
struct State {
    /// By the number of a term: starts that have come there.
    seen: Vec<Mask>,
    /// Those of them that wait to go on.
    waiting: Vec<Mask>,
    /// The terms where some wait.
    places: Vec<u32>,
}

/// A search from many terms.
pub(super) struct Many {
    starts: Vec<TermId>,
    /// All terms met, numbered.
    terms: Vec<TermId>,
    numbers: FxHashMap<TermId, u32>,
    /// By the number of a term: starts from which it is reached at an end of the path.
    answers: Vec<Mask>,
    states: Vec<State>,
    /// How many answers were handed on: terms, then starts of the next one.
    handed_on: usize,
    rest: Mask,
    /// Edges that were followed.
    followed: u64,
    charged: usize,
}

impl Many {
    /// A search from up to [`STARTS`] terms, each an answer itself if the path need not have an
    /// edge.
    pub(super) fn new(starts: Vec<TermId>, automaton: &Automaton) -> Self {
        let mut search = Self {
            terms: Vec::new(),
            numbers: FxHashMap::default(),
            answers: Vec::new(),
            states: automaton.states.iter().map(|_| State::default()).collect(),
            handed_on: 0,
            rest: Mask::default(),
            followed: 0,
            charged: 0,
            starts: Vec::new(),
        };
        for (start, term) in starts.iter().enumerate() {
            let number = search.number(*term);
            let mut mask = Mask::default();
            mask.insert(start);
            if automaton.is_nullable {
                search.answers[number as usize].add(mask);
            }
            search.states[0].arrive(number, mask);
        }
        search.starts = starts;
        search
    }

    /// Searches to the end; false if that would take more than `most_bytes`, and then nothing
    /// can be told.
    pub(super) fn run(
        &mut self,
        automaton: &Automaton,
        view: &View,
        most_bytes: usize,
        cx: &Context,
    ) -> Result<bool, ExecError> {
        while let Some(state) = self
            .states
            .iter()
            .position(|state| !state.places.is_empty())
        {
            let (terms, masks) = self.leave(state);
            for step in &automaton.states[state] {
                let mut cursor = Cursor::default();
                while cursor.key < terms.len() {
                    cx.check()?;
                    let (mut rows, mut found) = (Vec::new(), Vec::new());
                    view.follow(&step.edge, &terms, &mut cursor, &mut rows, &mut found, cx)?;
                    self.followed += 1 + found.len() as u64;
                    for (row, term) in rows.iter().zip(&found) {
                        let number = self.number(*term);
                        let mask = masks[*row as usize];
                        for target in &step.targets {
                            if target.accepts {
                                self.answers[number as usize].add(mask);
                            }
                            if !automaton.states[target.state].is_empty() {
                                self.states[target.state].arrive(number, mask);
                            }
                        }
                    }
                    if !self.charge(most_bytes, cx)? {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(true)
    }

    /// The terms that wait in a state, and the starts that wait there.
    fn leave(&mut self, state: usize) -> (Vec<TermId>, Vec<Mask>) {
        let state = &mut self.states[state];
        let places = std::mem::take(&mut state.places);
        let terms = &self.terms;
        places
            .into_iter()
            .map(|place| {
                let mask = std::mem::take(&mut state.waiting[place as usize]);
                (terms[place as usize], mask)
            })
            .unzip()
    }

    fn number(&mut self, term: TermId) -> u32 {
        let next = self.terms.len() as u32;
        let number = *self.numbers.entry(term).or_insert(next);
        if number == next {
            self.terms.push(term);
            self.answers.push(Mask::default());
        }
        number
    }

    /// Calls `add` with start and end of answers that were not handed on, until it returns
    /// false or there are no more; true then.
    pub(super) fn hand_on(&mut self, add: &mut dyn FnMut(TermId, TermId) -> bool) -> bool {
        loop {
            let number = self.handed_on;
            while let Some(start) = self.rest.pop() {
                if !add(self.starts[start], self.terms[number - 1]) {
                    return false;
                }
            }
            let Some(mask) = self.answers.get(number) else {
                return true;
            };
            self.rest = *mask;
            self.handed_on += 1;
        }
    }

    /// Calls `add` with each start that reaches itself.
    pub(super) fn for_each_loop(&self, mut add: impl FnMut(TermId)) {
        for (start, term) in self.starts.iter().enumerate() {
            let number = self.numbers[term] as usize;
            if self.answers[number].contains(start) {
                add(*term);
            }
        }
    }

    /// Edges that it followed.
    pub(super) fn followed(&self) -> u64 {
        self.followed
    }

    /// Number of its answers.
    pub(super) fn count(&self) -> u64 {
        self.answers.iter().map(|mask| mask.len()).sum()
    }

    /// The terms that it began with; gives back what it has booked.
    pub(super) fn into_starts(self, cx: &Context) -> Vec<TermId> {
        cx.release(self.charged);
        self.starts
    }

    /// Ends it and gives back what it has booked.
    pub(super) fn release(self, cx: &Context) {
        cx.release(self.charged);
    }

    /// Books what it holds; false if that is more than it may.
    fn charge(&mut self, most_bytes: usize, cx: &Context) -> Result<bool, ExecError> {
        let masks = |masks: &Vec<Mask>| masks.capacity() * size_of::<Mask>();
        let states = self.states.iter().map(|state| {
            // The places are left with a copy of what waits there.
            masks(&state.seen) + 3 * masks(&state.waiting) + state.places.capacity() * 4
        });
        let bytes = self.terms.capacity() * size_of::<TermId>()
            + self.numbers.capacity() * (size_of::<(TermId, u32)>() + 1)
            + masks(&self.answers)
            + states.sum::<usize>();
        if bytes > most_bytes || self.terms.len() > (u32::MAX / 2) as usize {
            return Ok(false);
        }
        if bytes > self.charged {
            cx.charge(bytes - self.charged)?;
            self.charged = bytes;
        }
        Ok(true)
    }
}

impl State {
    /// Lets starts come to a term; those that are new go on from there.
    fn arrive(&mut self, number: u32, mask: Mask) {
        let place = number as usize;
        if place >= self.seen.len() {
            self.seen.resize(place + 1, Mask::default());
            self.waiting.resize(place + 1, Mask::default());
        }
        let new = self.seen[place].add_new(mask);
        if new.is_empty() {
            return;
        }
        if self.waiting[place].is_empty() {
            self.places.push(number);
        }
        self.waiting[place].add(new);
    }
}
