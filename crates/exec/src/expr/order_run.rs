//! Which of two terms comes first, as far as their ids tell?

use std::cmp::Ordering;

use jindou_model::{PAYLOAD_BITS, TermId, TermKind, TextKind, inline};

use super::order::rank;
use crate::Terms;

/// Terms whose ids are in their order; see [`run_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// That of the kind of terms.
    pub(super) rank: u8,
    number: u32,
}

impl Run {
    /// Of terms that are in the order of their ids with no others.
    const ALONE: u32 = u32::MAX;

    /// Terms of this run are in the order of their ids, and no two of them are equal.
    pub(super) fn is_ordered(self) -> bool {
        self.number != Self::ALONE
    }

    /// A number by which a term of the run is ordered among those of all runs of which there is
    /// only one of its kind.
    #[inline]
    pub(super) fn number_of(self, id: TermId) -> u64 {
        u64::from(self.rank) << PAYLOAD_BITS | id.payload()
    }
}

/// The run of a term, [`TermId::NONE`] included; `None` if nothing is known of it.
#[inline]
pub(crate) fn run_of(id: TermId, terms: &Terms) -> Option<Run> {
    let run = |rank, number| Some(Run { rank, number });
    let alone = |number: Option<u32>| number.unwrap_or(Run::ALONE);
    match id.kind() {
        TermKind::None => run(rank::UNBOUND, 0),
        TermKind::Boolean => run(rank::BOOLEAN, 0),
        TermKind::Integer => run(rank::NUMBER, 0),
        TermKind::Decimal => run(rank::NUMBER, alone(inline::order_group(id).map(|n| n + 1))),
        TermKind::Double | TermKind::Float => run(rank::NUMBER, Run::ALONE),
        TermKind::DateTime => run(rank::DATE_TIME, alone(inline::order_group(id))),
        TermKind::Date => run(rank::DATE, alone(inline::order_group(id))),
        TermKind::Vertex | TermKind::Literal => {
            let text = terms.text_run(id)?;
            let rank = match text.kind {
                TextKind::Blank => rank::BLANK,
                TextKind::Iri => rank::IRI,
                TextKind::String => rank::STRING,
                TextKind::LangString => rank::LANG_STRING,
            };
            run(rank, text.number)
        }
        TermKind::Triple | TermKind::Computed => None,
    }
}

/// The order of two terms, each with its run, if their ids tell it.
#[inline]
pub(crate) fn order_of_ids(left: (Run, TermId), right: (Run, TermId)) -> Option<Ordering> {
    if left.1 == right.1 {
        return Some(Ordering::Equal);
    }
    match left.0.rank.cmp(&right.0.rank) {
        Ordering::Equal if left.0 == right.0 && left.0.is_ordered() => Some(left.1.cmp(&right.1)),
        Ordering::Equal => None,
        order => Some(order),
    }
}
