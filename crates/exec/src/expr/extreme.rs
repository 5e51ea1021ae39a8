//! MIN and MAX: which term of a group comes first or last?

use std::cmp::Ordering;

use jindou_model::TermId;

use super::{OrderedTerms, Place, SortKey, order_of_places, place_of};
use crate::Terms;

/// The least or greatest term so far.
#[derive(Debug, Default)]
pub(super) enum Extreme {
    #[default]
    Empty,
    /// A term that its place puts in order among many others.
    Placed(Place, TermId),
    /// Any term, decoded, with its place if it has one.
    Term(Box<(SortKey, TermId, Option<Place>)>),
    Error,
}

impl Extreme {
    /// Bytes that this added, or took away.
    #[inline]
    pub(super) fn add(&mut self, id: TermId, greatest: bool, terms: OrderedTerms<'_>) -> isize {
        if let Self::Placed(place, known) = self {
            if *known == id {
                return 0;
            }
            let of_id = place_of(id, terms.order).filter(|_| !id.is_none());
            let order = of_id.and_then(|of_id| order_of_places((of_id, id), (*place, *known)));
            if let (Some(order), Some(of_id)) = (order, of_id) {
                if is_better(order, greatest) {
                    *self = Self::Placed(of_id, id);
                }
                return 0;
            }
        }
        self.add_slowly(id, greatest, terms)
    }

    fn add_slowly(&mut self, id: TermId, greatest: bool, terms: OrderedTerms<'_>) -> isize {
        let before = self.bytes();
        let is_known = matches!(self, Self::Term(known) if known.1 == id);
        if id.is_none() {
            *self = Self::Error;
        } else if !is_known {
            let other = match place_of(id, terms.order) {
                Some(place) => Self::Placed(place, id),
                None => Self::Term(Box::new((SortKey::new(id, terms.terms), id, None))),
            };
            self.merge(other, greatest, terms);
        }
        self.bytes() as isize - before as isize
    }

    /// Takes the other where it is the better; the earlier of two equal ones stays.
    pub(super) fn merge(&mut self, other: Self, greatest: bool, terms: OrderedTerms<'_>) {
        let better = match (&*self, &other) {
            (Self::Error, _) | (_, Self::Empty) => false,
            (_, Self::Error) | (Self::Empty, _) => true,
            (Self::Term(_) | Self::Placed(..), _) => {
                let places = self.placed().zip(other.placed());
                match places.and_then(|(ours, theirs)| order_of_places(theirs, ours)) {
                    Some(order) => is_better(order, greatest),
                    None => return self.merge_decoded(other, greatest, terms),
                }
            }
        };
        if better {
            *self = other;
        }
    }

    fn merge_decoded(&mut self, other: Self, greatest: bool, terms: OrderedTerms<'_>) {
        terms.order.note_texts_read(2);
        *self = std::mem::take(self).decoded(terms.terms);
        let other = other.decoded(terms.terms);
        if let (Self::Term(ours), Self::Term(theirs)) = (&*self, &other)
            && is_better(theirs.0.cmp(&ours.0), greatest)
        {
            *self = other;
        }
    }

    fn decoded(self, terms: &Terms) -> Self {
        match self {
            Self::Placed(place, id) => {
                Self::Term(Box::new((SortKey::new(id, terms), id, Some(place))))
            }
            other => other,
        }
    }

    /// Goes by another order of texts from now on.
    pub(super) fn place_by(&mut self, terms: OrderedTerms<'_>) {
        match self {
            Self::Placed(place, id) => match place_of(*id, terms.order) {
                Some(now) => *place = now,
                None => {
                    let id = *id;
                    *self = Self::Term(Box::new((SortKey::new(id, terms.terms), id, None)));
                }
            },
            Self::Term(term) => term.2 = place_of(term.1, terms.order),
            Self::Empty | Self::Error => {}
        }
    }

    /// The term and its place, if that is known.
    fn placed(&self) -> Option<(Place, TermId)> {
        match self {
            Self::Placed(place, id) => Some((*place, *id)),
            Self::Term(term) => term.2.map(|place| (place, term.1)),
            Self::Empty | Self::Error => None,
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

/// The least or greatest of some terms, where one order follows another midway.
#[cfg(test)]
pub(super) fn of_all(
    ids: &[TermId],
    greatest: bool,
    terms: &Terms,
    orders: [&crate::terms::QueryOrder; 2],
) -> TermId {
    let [before, after] = orders.map(|order| OrderedTerms { terms, order });
    let mut halves = [Extreme::default(), Extreme::default()];
    let mut now = before;
    for (number, id) in ids.iter().enumerate() {
        if number == ids.len() / 2 {
            now = after;
            halves.iter_mut().for_each(|half| half.place_by(now));
        }
        halves[number % 2].add(*id, greatest, now);
    }
    let [mut all, other] = halves;
    all.merge(other, greatest, now);
    all.id()
}
