//! Which positions have the literals of a bulk load where others lie between them?
//!
//! They are in stretches of the same length, about a quarter as many as there are later literals. In
//! each stretch there is the same room before each literal, as much as the fullest place in it needs;
//! so a position is computed from two words that lie side by side.

/// Later literals of a stretch.
const STRETCH_SHARE: u64 = 4;

/// The positions of the literals of a bulk load; without stretches they are their numbers.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    /// The length of a stretch is two to this power.
    pub(super) shift: u32,
    /// The first position of each stretch, and of one behind the last.
    pub(super) starts: Vec<u64>,
}

/// A later literal among those of the bulk load.
#[derive(Clone, Copy)]
pub(super) struct Between {
    /// As [`Place::at`](crate::places::Place::at).
    pub(super) at: u64,
    /// How many lesser texts have the same even one.
    pub(super) before: u32,
    /// The literal, by its number less the first later one.
    pub(super) later: u32,
}

impl Rooms {
    /// For so many literals of the bulk load, and these between them. No position is greater than
    /// about four times all of them.
    pub(super) fn new(load: u64, order: &[Between]) -> Self {
        if order.is_empty() {
            return Self::default();
        }
        let mut shift = 0;
        while load >> shift > order.len() as u64 / STRETCH_SHARE {
            shift += 1;
        }
        // There is a place behind the last, too.
        let mut starts = vec![1_u64; (load >> shift) as usize + 2];
        for later in order.iter().filter(|later| later.at % 2 == 0) {
            let room = &mut starts[((later.at / 2) >> shift) as usize];
            *room = (*room).max(u64::from(later.before) + 2);
        }
        let mut next = 0;
        for start in &mut starts {
            let room = std::mem::replace(start, next);
            next += room << shift;
        }
        Self { shift, starts }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.starts)
    }

    /// The position of a literal of the bulk load.
    #[inline]
    pub(super) fn of_load(&self, number: u64) -> u64 {
        match self.starts.is_empty() {
            true => number,
            false => self.room(number).1,
        }
    }

    /// The position where the room before a literal begins, and its own.
    #[inline]
    pub(super) fn room(&self, number: u64) -> (u64, u64) {
        if self.starts.is_empty() {
            return (number, number);
        }
        let stretch = (number >> self.shift) as usize;
        let start = self.starts[stretch];
        let room = (self.starts[stretch + 1] - start) >> self.shift;
        let begin = start + (number & ((1 << self.shift) - 1)) * room;
        (begin, begin + room - 1)
    }

    /// The position of a later literal.
    pub(super) fn of_later(&self, later: &Between) -> u64 {
        let (begin, own) = self.room(later.at / 2);
        match later.at % 2 {
            0 => begin + u64::from(later.before),
            _ => own,
        }
    }

    /// The `at` of a literal that has a position. `stretch` is that of one before it, and becomes its
    /// own.
    pub(super) fn at_of(&self, position: u64, stretch: &mut usize) -> u64 {
        while self.starts[*stretch + 1] <= position {
            *stretch += 1;
        }
        let start = self.starts[*stretch];
        let room = (self.starts[*stretch + 1] - start) >> self.shift;
        let number = ((*stretch as u64) << self.shift) + (position - start) / room;
        2 * number + u64::from((position - start) % room == room - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_rise_and_lead_back_to_the_places_that_they_were_made_of() {
        for (load, ats) in [
            (0, vec![0, 0, 0]),
            (1, vec![0, 1, 1, 2]),
            (1000, (0..2001).step_by(7).collect()),
            (1000, vec![2000; 300]),
            (50, vec![8; 30]),
        ] {
            let mut order: Vec<Between> = Vec::new();
            for (later, at) in ats.into_iter().enumerate() {
                let last = order.last().filter(|last| last.at == at && at % 2 == 0);
                let before = last.map_or(0, |last| last.before + 1);
                let later = later as u32;
                order.push(Between { at, before, later });
            }
            let rooms = Rooms::new(load, &order);
            let mut all: Vec<(u64, u64, u64)> = (0..load)
                .map(|n| (2 * n + 1, 0, rooms.of_load(n)))
                .collect();
            let mut stretch = 0;
            for later in &order {
                let position = rooms.of_later(later);
                assert_eq!(rooms.at_of(position, &mut stretch), later.at);
                all.push((later.at, later.before.into(), position));
            }
            all.sort_unstable();
            for pair in all.windows(2) {
                let is_same = pair[0].0 == pair[1].0 && pair[0].0 % 2 == 1;
                assert_eq!(is_same, pair[0].2 == pair[1].2, "{pair:?}");
                assert!(pair[0].2 <= pair[1].2, "{pair:?}");
            }
        }
    }
}
