//! What can be reached from one term by a path?
//!
//! A breadth-first search over (state of the path's automaton, term), each visited once. It goes
//! on piece by piece and keeps what it has found, so that several rows can share it and none
//! waits for more than it needs.

use jindou_model::{Cursor, TermId};

use super::automaton::Automaton;
use super::id_set::IdSet;
use super::view::View;
use crate::ExecError;
use crate::context::Context;

/// What a search takes that has found nothing.
const FIXED_BYTES: usize = 512;

/// A search from one term.
pub(super) struct Search {
    /// What was reached at an end of the path so far, each term once.
    answers: Vec<TermId>,
    answered: IdSet,
    /// By state: terms that wait to be left, or were.
    visited: Vec<IdSet>,
    /// By state: terms that wait.
    waiting: Vec<Vec<TermId>>,
    current: Option<Leaving>,
    /// Bytes booked.
    charged: usize,
}

/// Terms that are being left by the moves of a state.
struct Leaving {
    state: usize,
    terms: Vec<TermId>,
    next_move: usize,
    cursor: Cursor,
}

impl Search {
    /// A search from `source`, which is an answer itself if `is_answer`.
    pub(super) fn new(source: TermId, is_answer: bool, automaton: &Automaton) -> Self {
        let states = automaton.states.len();
        let mut search = Self {
            answers: Vec::new(),
            answered: IdSet::default(),
            visited: (0..states).map(|_| IdSet::default()).collect(),
            waiting: vec![Vec::new(); states],
            current: None,
            charged: 0,
        };
        if is_answer {
            search.answered.insert(source);
            search.answers.push(source);
        }
        if !automaton.states[0].is_empty() {
            search.visited[0].insert(source);
            search.waiting[0].push(source);
        }
        search
    }

    pub(super) fn answers(&self) -> &[TermId] {
        &self.answers
    }

    /// True if the term is known to be reached.
    pub(super) fn has_reached(&self, term: TermId) -> bool {
        self.answered.contains(term)
    }

    /// True once everything was reached that can be.
    pub(super) fn is_done(&self) -> bool {
        self.current.is_none() && self.waiting.iter().all(Vec::is_empty)
    }

    /// Follows some more edges; returns how much work that was, 1 at least.
    pub(super) fn advance(
        &mut self,
        automaton: &Automaton,
        view: &View,
        cx: &Context,
    ) -> Result<usize, ExecError> {
        cx.check()?;
        let Some(mut leaving) = self.current.take().or_else(|| self.next_terms()) else {
            return Ok(1);
        };
        let moves = &automaton.states[leaving.state];
        let step = &moves[leaving.next_move];
        let (mut rows, mut found) = (Vec::new(), Vec::new());
        view.follow(
            &step.edge,
            &leaving.terms,
            &mut leaving.cursor,
            &mut rows,
            &mut found,
            cx,
        )?;
        for target in &step.targets {
            let goes_on = !automaton.states[target.state].is_empty();
            for term in &found {
                if target.accepts && self.answered.insert(*term) {
                    self.answers.push(*term);
                }
                if goes_on && self.visited[target.state].insert(*term) {
                    self.waiting[target.state].push(*term);
                }
            }
        }
        if leaving.cursor.key >= leaving.terms.len() {
            leaving.cursor = Cursor::default();
            leaving.next_move += 1;
        }
        if leaving.next_move < moves.len() {
            self.current = Some(leaving);
        }
        self.charge(cx)?;
        Ok(1 + found.len())
    }

    fn next_terms(&mut self) -> Option<Leaving> {
        let state = self.waiting.iter().position(|terms| !terms.is_empty())?;
        Some(Leaving {
            state,
            terms: std::mem::take(&mut self.waiting[state]),
            next_move: 0,
            cursor: Cursor::default(),
        })
    }

    /// Bytes that it holds, as last counted.
    pub(super) fn bytes(&self) -> usize {
        self.charged + FIXED_BYTES
    }

    fn charge(&mut self, cx: &Context) -> Result<(), ExecError> {
        let waiting: usize = self.waiting.iter().map(Vec::capacity).sum();
        let leaving = self
            .current
            .as_ref()
            .map_or(0, |leaving| leaving.terms.capacity());
        let sets: usize = self.visited.iter().map(IdSet::bytes).sum();
        let bytes = (self.answers.capacity() + waiting + leaving) * size_of::<TermId>()
            + self.answered.bytes()
            + sets;
        if bytes > self.charged {
            cx.charge(bytes - self.charged)?;
            self.charged = bytes;
        }
        Ok(())
    }

    /// Ends it and gives back what it has booked.
    pub(super) fn release(self, cx: &Context) {
        cx.release(self.charged);
    }
}
