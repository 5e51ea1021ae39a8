//! MIN and MAX: which term of a group comes first or last?

use std::cmp::Ordering;

use jindou_model::TermId;

use super::{Run, SortKey, order_of_ids, run_of};
use crate::Terms;

/// The least or greatest term so far.
#[derive(Debug, Default)]
pub(super) enum Extreme {
    #[default]
    Empty,
    /// A term that its id puts in order among those of its run.
    Placed(Run, TermId),
    /// Any term, decoded.
    Term(Box<(SortKey, TermId)>),
    Error,
}

impl Extreme {
    /// Bytes that this added, or took away.
    #[inline]
    pub(super) fn add(&mut self, id: TermId, greatest: bool, terms: &Terms) -> isize {
        if let Self::Placed(run, known) = self {
            if *known == id {
                return 0;
            }
            let of_id = run_of(id, terms).filter(|_| !id.is_none());
            let order = of_id.and_then(|of_id| order_of_ids((of_id, id), (*run, *known)));
            if let (Some(order), Some(of_id)) = (order, of_id) {
                if is_better(order, greatest) {
                    *self = Self::Placed(of_id, id);
                }
                return 0;
            }
        }
        self.add_slowly(id, greatest, terms)
    }

    fn add_slowly(&mut self, id: TermId, greatest: bool, terms: &Terms) -> isize {
        let before = self.bytes();
        let is_known = matches!(self, Self::Term(known) if known.1 == id);
        if id.is_none() {
            *self = Self::Error;
        } else if !is_known {
            let other = match run_of(id, terms) {
                Some(run) => Self::Placed(run, id),
                None => Self::Term(Box::new((SortKey::new(id, terms), id))),
            };
            self.merge(other, greatest, terms);
        }
        self.bytes() as isize - before as isize
    }

    /// Takes the other where it is the better; the earlier of two equal ones stays.
    pub(super) fn merge(&mut self, other: Self, greatest: bool, terms: &Terms) {
        let better = match (&*self, &other) {
            (Self::Error, _) | (_, Self::Empty) => false,
            (_, Self::Error) | (Self::Empty, _) => true,
            (Self::Placed(our_run, ours), Self::Placed(their_run, theirs)) => {
                match order_of_ids((*their_run, *theirs), (*our_run, *ours)) {
                    Some(order) => is_better(order, greatest),
                    None => return self.merge_decoded(other, greatest, terms),
                }
            }
            (Self::Term(_) | Self::Placed(..), _) => {
                return self.merge_decoded(other, greatest, terms);
            }
        };
        if better {
            *self = other;
        }
    }

    fn merge_decoded(&mut self, other: Self, greatest: bool, terms: &Terms) {
        *self = std::mem::take(self).decoded(terms);
        let other = other.decoded(terms);
        if let (Self::Term(ours), Self::Term(theirs)) = (&*self, &other)
            && is_better(theirs.0.cmp(&ours.0), greatest)
        {
            *self = other;
        }
    }

    fn decoded(self, terms: &Terms) -> Self {
        match self {
            Self::Placed(_, id) => Self::Term(Box::new((SortKey::new(id, terms), id))),
            other => other,
        }
    }

    /// Bytes that it holds beyond its own size.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Term(term) => size_of_val(&**term) + term.0.heap_bytes(),
            Self::Empty | Self::Placed(..) | Self::Error => 0,
        }
    }

    pub(super) fn id(&self) -> TermId {
        match self {
            Self::Empty | Self::Error => TermId::NONE,
            Self::Placed(_, id) => *id,
            Self::Term(term) => term.1,
        }
    }
}

#[inline]
fn is_better(order: Ordering, greatest: bool) -> bool {
    match order {
        Ordering::Equal => false,
        order => order.is_gt() == greatest,
    }
}
