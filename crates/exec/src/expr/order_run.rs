//! Which of two terms comes first, as far as numbers tell?

use std::cmp::Ordering;

use jindou_model::{PAYLOAD_BITS, TermId, TermKind, TextKind, TextPlace, Unavailable, inline};

use super::order::rank;
use crate::Terms;
use crate::terms::QueryOrder;

/// The terms of a query with an order of their texts.
#[derive(Clone, Copy)]
pub(crate) struct OrderedTerms<'a> {
    pub(crate) terms: &'a Terms,
    pub(crate) order: &'a QueryOrder,
}

/// Why no numbers are found.
pub(super) enum Stop<E> {
    /// There is no memory.
    NoMemory,
    /// The order of texts is to be extended first.
    OrderIsWanting,
    /// A text cannot be read.
    Lost(Unavailable),
    /// The query must end.
    Error(E),
}

impl<E> From<Unavailable> for Stop<E> {
    fn from(why: Unavailable) -> Self {
        Self::Lost(why)
    }
}

/// Called now and then with the bytes held.
pub(super) type Poll<'a, E> = dyn FnMut(usize) -> Result<(), Stop<E>> + 'a;

/// Terms that are in an order of their own; see [`place_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    /// That of the kind of terms.
    pub(super) rank: u8,
    number: u32,
}

/// Where a term lies among those of its kind, by the rules of [`TextPlace`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(super) run: Run,
    pub(super) at: u64,
    /// The payload of the id, or the position of a literal.
    pub(super) order: u64,
}

impl Run {
    /// Of terms that are in an order with no others.
    const ALONE: u32 = TextPlace::ALONE;
}

impl Place {
    /// Terms of its run are in order.
    pub(super) fn is_ordered(&self) -> bool {
        self.run.number != Run::ALONE
    }

    /// True of literals that lie between those of the main run.
    pub(super) fn is_between(&self) -> bool {
        self.at != 0 && !self.is_ordered()
    }

    /// A number by which a term of its run is ordered among those of all runs of which there is only
    /// one of its kind.
    #[inline]
    pub(super) fn number(&self) -> u64 {
        u64::from(self.run.rank) << PAYLOAD_BITS | self.order
    }
}

/// The place of a term, [`TermId::NONE`] included; `None` if nothing is known of it.
#[inline]
pub(crate) fn place_of(id: TermId, order: &QueryOrder) -> Option<Place> {
    let place = |rank, number| {
        Some(Place {
            run: Run { rank, number },
            at: 0,
            order: id.payload(),
        })
    };
    let alone = |number: Option<u32>| number.unwrap_or(Run::ALONE);
    match id.kind() {
        TermKind::None => place(rank::UNBOUND, 0),
        TermKind::Boolean => place(rank::BOOLEAN, 0),
        TermKind::Integer => place(rank::NUMBER, 0),
        TermKind::Decimal => place(rank::NUMBER, alone(inline::order_group(id).map(|n| n + 1))),
        TermKind::Double | TermKind::Float => place(rank::NUMBER, Run::ALONE),
        TermKind::DateTime => place(rank::DATE_TIME, alone(inline::order_group(id))),
        TermKind::Date => place(rank::DATE, alone(inline::order_group(id))),
        TermKind::Vertex | TermKind::Literal => {
            let text = order.place(id)?;
            let rank = match text.kind {
                TextKind::Blank => rank::BLANK,
                TextKind::Iri => rank::IRI,
                TextKind::String => rank::STRING,
                TextKind::LangString => rank::LANG_STRING,
            };
            Some(Place {
                run: Run {
                    rank,
                    number: text.run,
                },
                at: text.at,
                order: text.order,
            })
        }
        TermKind::Triple | TermKind::Window | TermKind::Computed => None,
    }
}

/// The runs of terms whose order places tell, as long as no two of one kind are of different runs.
#[derive(Clone, Debug, Default)]
pub(super) struct RunOfEachKind([Option<Run>; rank::COUNT]);

impl RunOfEachKind {
    /// Adds a term with this place; true if that tells the order of it and those before.
    #[inline]
    pub(super) fn add(&mut self, place: Place) -> bool {
        let known = self.0[usize::from(place.run.rank)].get_or_insert(place.run);
        *known == place.run && place.is_ordered()
    }
}

/// The order of two terms, each with its place, if these tell it.
#[inline]
pub(crate) fn order_of_places(left: (Place, TermId), right: (Place, TermId)) -> Option<Ordering> {
    if left.1 == right.1 {
        return Some(Ordering::Equal);
    }
    let (left, right) = (left.0, right.0);
    let order = (left.run.rank.cmp(&right.run.rank)).then_with(|| left.at.cmp(&right.at));
    match order {
        Ordering::Equal if left.run == right.run && left.is_ordered() => {
            Some(left.order.cmp(&right.order))
        }
        // Both have the text of one and the same literal of the bulk load.
        Ordering::Equal => (left.at % 2 == 1).then_some(Ordering::Equal),
        order => Some(order),
    }
}
