//! How is an order of later literals written for those who have not the texts, and read again?
//!
//! It has their positions and the rooms of the literals of the bulk load, and so tells where each literal lies; where
//! another text would lie, it does not tell.

use jindou_model::PAYLOAD_BITS;

use super::OrderVersion;
use super::rooms::Rooms;
use crate::StoreError;
use crate::column::Column;
use crate::image::{ImageReader, ImageWriter};
use crate::places::Place;

/// Positions are compared in ids' place.
const MOST_POSITIONS: u64 = 1 << PAYLOAD_BITS;

impl OrderVersion {
    pub(crate) fn write(&self, image: &mut ImageWriter) {
        image.word(self.first);
        Column::from_values(&self.words).write(image);
        self.rooms.write(image);
    }

    /// That of a store with so many literals.
    pub(crate) fn read(image: &mut ImageReader, literals: u64) -> Result<Self, StoreError> {
        let first = image.word()?;
        let words = Column::read(image)?;
        let rooms = Rooms::read(image)?;
        let version = Self::of_positions(
            first,
            (0..words.len()).map(|at| words.get(at)).collect(),
            rooms,
        );
        match version.is_sound(literals) {
            true => Ok(version),
            false => Err(image.corrupt("the positions of literals contradict each other")),
        }
    }

    /// Is it the order of some of so many literals, with a position for each of these that has one?
    fn is_sound(&self, literals: u64) -> bool {
        let end = self.rooms.end();
        let is_placed = |word: &u64| match Place::of_word(*word) {
            Some(place) => place.kind.is_none() || place.at < end,
            None => *word == 0,
        };
        let known = self.first.checked_add(self.words.len() as u64);
        known.is_some_and(|known| known <= literals)
            && end <= MOST_POSITIONS
            && self.rooms.are_sound(self.first)
            && self.words.iter().all(is_placed)
    }
}

impl Rooms {
    fn write(&self, image: &mut ImageWriter) {
        image.word(self.shift.into());
        image.words(&self.starts);
    }

    fn read(image: &mut ImageReader) -> Result<Self, StoreError> {
        let shift = image.word()?;
        Ok(Self {
            shift: u32::try_from(shift).unwrap_or(u32::MAX),
            starts: image.words()?,
        })
    }

    /// The position behind the last.
    fn end(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Have so many literals of a bulk load, and the place behind them, a room each?
    fn are_sound(&self, load: u64) -> bool {
        let Some(first) = self.starts.first() else {
            return true;
        };
        let has_rooms = |pair: &[u64]| {
            let length = pair[1].checked_sub(pair[0]);
            length.is_some_and(|length| {
                let room = length >> self.shift;
                room > 0 && room << self.shift == length
            })
        };
        self.shift < u64::BITS
            && *first == 0
            && self.starts.len() as u64 == (load >> self.shift) + 2
            && self.starts.windows(2).all(has_rooms)
    }
}

#[cfg(test)]
mod tests {
    use jindou_model::TextKind;

    use super::super::rooms::Between;
    use super::*;

    /// The order of three literals behind ten, the last of which has no text any more.
    fn version() -> OrderVersion {
        let order = [(7, 0, 1), (20, 0, 0)];
        let order = order.map(|(at, before, later)| Between { at, before, later });
        let rooms = Rooms::new(10, &order);
        let mut words = vec![0; 3];
        for later in &order {
            let place = Place {
                kind: Some(TextKind::String),
                at: rooms.of_later(later),
            };
            words[later.later as usize] = place.word();
        }
        OrderVersion::of_positions(10, words, rooms)
    }

    fn read(version: &OrderVersion, literals: u64) -> Result<OrderVersion, StoreError> {
        let mut image = ImageWriter::default();
        version.write(&mut image);
        OrderVersion::read(&mut image.in_memory(), literals)
    }

    #[test]
    fn positions_are_read_as_they_were_written() {
        let version = version();
        for (version, until) in [(&version, 13), (&OrderVersion::empty(10), 10)] {
            let again = read(version, 13).unwrap();
            assert_eq!((again.first(), again.until()), (10, until));
            for number in 0..10 {
                assert_eq!(again.position(number), version.position(number));
            }
            for number in 10..14 {
                assert_eq!(again.of_later(number), version.of_later(number));
            }
        }
        assert_eq!(version.of_later(11).unwrap().at, version.position(3));
    }

    #[test]
    fn positions_that_contradict_each_other_are_refused() {
        let broken: [fn(&mut OrderVersion); 9] = [
            |version| version.first = 11,
            |version| version.first = u64::MAX,
            |version| version.words[2] = 4,
            |version| version.words[0] += 1 << 40,
            |version| version.rooms.shift = 64,
            |version| version.rooms.starts[0] = 1,
            |version| version.rooms.starts.truncate(1),
            |version| version.rooms.starts[1] = 0,
            |version| *version.rooms.starts.last_mut().unwrap() = u64::MAX,
        ];
        for (number, break_it) in broken.iter().enumerate() {
            let mut version = version();
            break_it(&mut version);
            let read = read(&version, 13);
            let is_refused = matches!(read, Err(StoreError::Corrupt { .. }));
            assert!(is_refused, "{number}");
        }
    }
}
