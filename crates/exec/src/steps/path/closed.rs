//! When is it worth to find all that a path reaches at once, and what comes of that for a row?
//!
//! Searches from single terms cost what they reach, and a closure about what all edges of its predicates cost. So one is
//! made once the searches of a path took as long as it does: nothing takes longer than twice the better of both.

use jindou_model::TermId;

use super::automaton::Automaton;
use super::closure::Closure;
use super::view::View;
use super::{Current, FollowPath, Found, KEPT_PART};
use crate::ExecError;
use crate::context::Context;

/// Edges of a graph that does not count them.
const UNCOUNTED_EDGES: u64 = 1 << 20;
/// Edges that a closure is not worth.
const FEW_EDGES: u64 = 256;

/// The end from which a path is followed, and the graph.
type Way = (usize, TermId);

/// The closure of the way that was asked for last.
#[derive(Default)]
pub(super) struct Closed {
    way: Option<Way>,
    /// Edges that were followed on it.
    work: u64,
    /// At how many a closure is made, once that was asked for.
    worth: Option<u64>,
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    NotMade,
    Made(Box<Closure>),
    /// It takes too much memory.
    TooLarge,
}

impl Closed {
    /// Forgets another way.
    fn turn_to(&mut self, way: Way, cx: &Context) {
        if self.way == Some(way) {
            return;
        }
        let before = std::mem::take(self);
        if let State::Made(closure) = before.state {
            closure.release(cx);
        }
        self.way = Some(way);
    }

    /// Notes that edges were followed.
    pub(super) fn note_work(&mut self, way: Way, edges: u64) {
        if self.way == Some(way) {
            self.work += edges;
        }
    }

    /// The closure, which is made if it is not there; `None` if there is no room for it.
    pub(super) fn get(
        &mut self,
        way: Way,
        automaton: &Automaton,
        view: &View,
        cx: &Context,
    ) -> Result<Option<&mut Closure>, ExecError> {
        self.turn_to(way, cx);
        if matches!(self.state, State::NotMade) {
            // Each thread that follows the path may make one.
            let most_bytes = (cx.memory_bytes() / KEPT_PART) as usize / cx.threads.max(1);
            self.state = match Closure::find(automaton, view, most_bytes, cx)? {
                Some(closure) => State::Made(Box::new(closure)),
                None => State::TooLarge,
            };
        }
        Ok(match &mut self.state {
            State::Made(closure) => Some(closure),
            State::NotMade | State::TooLarge => None,
        })
    }

    /// The closure once searches took as long as it does.
    fn get_if_worth(
        &mut self,
        way: Way,
        automaton: &Automaton,
        view: &View,
        cx: &Context,
    ) -> Result<Option<&mut Closure>, ExecError> {
        self.turn_to(way, cx);
        if matches!(self.state, State::NotMade) {
            if self.work < FEW_EDGES {
                return Ok(None);
            }
            let edges = || view.edges(automaton, cx).unwrap_or(UNCOUNTED_EDGES);
            if self.work < *self.worth.get_or_insert_with(edges) {
                return Ok(None);
            }
        }
        self.get(way, automaton, view, cx)
    }

    /// True if there is a closure from now on: see [`Closed::get_if_worth`].
    pub(super) fn is_worth(
        &mut self,
        way: Way,
        automaton: &Automaton,
        view: &View,
        cx: &Context,
    ) -> Result<bool, ExecError> {
        Ok(self.get_if_worth(way, automaton, view, cx)?.is_some())
    }

    /// Hands on the answers from a term of the closure at hand from the given one on, of which it is one itself where it is
    /// its `own`; true when that is all.
    pub(super) fn hand_on(
        &mut self,
        (start, own): (TermId, Option<TermId>),
        row: u32,
        answers: &mut usize,
        emit: &dyn Fn(TermId) -> [TermId; 3],
        found: &mut Found,
        cx: &Context,
    ) -> Result<bool, ExecError> {
        let State::Made(closure) = &mut self.state else {
            unreachable!("it was made before");
        };
        let list = closure.answers(start, cx)?;
        let all = own.iter().copied().chain(list.iter().copied());
        let first = usize::from(own.is_some());
        for (place, answer) in all.enumerate().skip(*answers) {
            if found.is_full() {
                return Ok(false);
            }
            *answers += 1;
            if place < first || own != Some(answer) {
                found.push(row, emit(answer));
            }
        }
        Ok(true)
    }
}

impl FollowPath {
    /// As [`FollowPath::reach`] by a closure, where there is one or it is worth one; `None` otherwise.
    #[expect(clippy::too_many_arguments, reason = "those of `reach`")]
    pub(super) fn reach_known(
        &mut self,
        key: (usize, TermId, TermId),
        row: u32,
        current: &mut Current,
        view: &View,
        emit: &dyn Fn(TermId) -> [TermId; 3],
        found: &mut Found,
        cx: &Context,
    ) -> Result<Option<bool>, ExecError> {
        let (end, graph, term) = key;
        // A row is answered in one way from its first answer to its last.
        if current.answers > 0 && !current.is_known {
            return Ok(None);
        }
        let (automaton, counts_ends) = (&self.automata[end], self.counts_ends(end));
        let closure = (self.closed).get_if_worth((end, graph), automaton, view, cx)?;
        let Some(closure) = closure else {
            return Ok(None);
        };
        current.is_known = true;
        let begins = closure.begins_at(term);
        let counted = match counts_ends {
            true => Some(closure.count(term, cx)?),
            false => None,
        };
        let is_own = match begins {
            true => self.automata[end].is_nullable,
            false => self.is_own_answer(end, term, view, cx)?,
        };
        if let Some(count) = counted {
            let count = count + u64::from(is_own && !begins);
            if count > 0 {
                found.push_many(row, emit(TermId::NONE), count);
            }
            return Ok(Some(true));
        }
        let own = is_own.then_some(term);
        let answers = &mut current.answers;
        let closed = &mut self.closed;
        closed
            .hand_on((term, own), row, answers, emit, found, cx)
            .map(Some)
    }
}
