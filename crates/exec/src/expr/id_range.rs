//! For which ids does a comparison with a constant hold, where those are consecutive?

use jindou_model::{IdRanges, PAYLOAD_BITS, TermId, TermKind, inline};
use jindou_plan::expression::Comparison;

/// In days: no two time zones are further apart.
const TWO_DAYS: u64 = 2;

/// The ids of one kind, and of times of one time zone, for which a comparison holds, which are
/// consecutive; or, for `!=`, for which it does not.
pub(super) struct IdRange {
    kind: TermKind,
    /// Only ids with `bits` in these are told.
    mask: u64,
    bits: u64,
    first: u64,
    /// One past the last.
    end: u64,
    inside: bool,
}

impl IdRange {
    /// Of a comparison of ids with the one of an integer, a date or a dateTime.
    pub(super) fn of_constant(operator: Comparison, constant: TermId) -> Option<Self> {
        let kind = constant.kind();
        let mask = match kind {
            TermKind::Integer => 0,
            kind => inline::zone_bits(kind)?,
        };
        let id = constant.raw();
        Some(Self::new(operator, kind, id, id + 1).of_zone(mask, id))
    }

    /// Of a comparison of the YEAR of dates and dateTimes, whose ids are in the order of the
    /// times that they write, but for the time zone.
    pub(super) fn of_years(operator: Comparison, year: i64) -> Vec<Self> {
        let kinds = [TermKind::DateTime, TermKind::Date];
        let of_kind = |kind| {
            let (first, end) = inline::ids_of_years(kind, year, year.checked_add(1)?)?;
            Some(Self::new(operator, kind, first, end))
        };
        kinds.into_iter().filter_map(of_kind).collect()
    }

    /// Where the ids from `first` on and before `end` are equal to what is compared with.
    fn new(operator: Comparison, kind: TermKind, first: u64, end: u64) -> Self {
        let least = TermId::new(kind, 0).raw();
        let after = least + (1 << PAYLOAD_BITS);
        let (first, end) = match operator {
            Comparison::Equal | Comparison::NotEqual | Comparison::SameTerm => (first, end),
            Comparison::Less => (least, first),
            Comparison::LessOrEqual => (least, end),
            Comparison::Greater => (end, after),
            Comparison::GreaterOrEqual => (first, after),
        };
        Self {
            kind,
            mask: 0,
            bits: 0,
            first,
            end,
            inside: operator != Comparison::NotEqual,
        }
    }

    fn of_zone(self, mask: u64, id: u64) -> Self {
        Self {
            mask,
            bits: id & mask,
            ..self
        }
    }

    /// The ids of a set without some, or most, of those for which it does not hold.
    pub(super) fn cut(&self, ids: &IdRanges) -> IdRanges {
        if !self.inside {
            return ids.clone();
        }
        let least = TermId::new(self.kind, 0).raw();
        let after = least + (1 << PAYLOAD_BITS);
        // Times of other zones are not told; but those that lie so far apart as they are written
        // are in the same order wherever they are.
        let slack = match self.kind {
            _ if self.mask == 0 => 0,
            TermKind::DateTime => TWO_DAYS * 86_400_000 * (self.mask + 1),
            _ => TWO_DAYS * (self.mask + 1),
        };
        let first = self.first.saturating_sub(slack).clamp(least, after);
        let end = self.end.saturating_add(slack).clamp(first, after);
        let mut windows = IdRanges::new();
        for (first, end) in [(0, least), (first, end), (after, u64::MAX)] {
            windows.push(TermId::from_raw(first), TermId::from_raw(end));
        }
        ids.within(&windows)
    }

    /// Whether it holds for this id; `None` where that is not told.
    #[inline]
    pub(super) fn told(&self, id: TermId) -> Option<bool> {
        let raw = id.raw();
        (id.kind() == self.kind && raw & self.mask == self.bits)
            .then_some((self.first <= raw && raw < self.end) == self.inside)
    }
}
