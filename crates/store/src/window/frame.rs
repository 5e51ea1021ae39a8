//! Rows packed into words: which bits of a row do not all rows have in common?
//!
//! Sorting and merging compare words of 64 bits where the subjects, objects and times of a predicate
//! lie close enough, of 128 otherwise, and whole rows where even that is too narrow.

/// A tuple of a known predicate, its time since the run's first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    pub(super) subject: u64,
    pub(super) object: u64,
    pub(super) time: u64,
}

/// The least of each column, and how many bits what is above it takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    least: Row,
    object_bits: u32,
    time_bits: u32,
    /// Of all three columns.
    pub(super) bits: u32,
}

impl Frame {
    /// The frame of rows whose columns lie between those of two rows, both inside.
    pub(super) fn new(least: Row, most: Row) -> Self {
        let bits = |least: u64, most: u64| u64::BITS - (most - least).leading_zeros();
        let object_bits = bits(least.object, most.object);
        let time_bits = bits(least.time, most.time);
        Self {
            least,
            object_bits,
            time_bits,
            bits: bits(least.subject, most.subject) + object_bits + time_bits,
        }
    }

    /// True if an object less the least one fits above a row number in one word of 64 bits.
    pub(super) fn has_short_objects(&self) -> bool {
        self.object_bits <= u32::BITS
    }
}

/// A row in a frame, in the order of rows.
pub(super) trait Word: Copy + Default + Ord {
    fn pack(row: Row, frame: &Frame) -> Self;

    fn unpack(self, frame: &Frame) -> Row;

    /// The row's object, less the least one.
    fn object(self, frame: &Frame) -> u64;
}

/// Packs into a word whose bits are more than the frame's: so shifts stay below them.
macro_rules! word {
    ($word:ty) => {
        impl Word for $word {
            #[inline]
            fn pack(row: Row, frame: &Frame) -> Self {
                debug_assert!(frame.bits < Self::BITS);
                let subject = (row.subject - frame.least.subject) as Self;
                let object = (row.object - frame.least.object) as Self;
                let time = (row.time - frame.least.time) as Self;
                (subject << (frame.object_bits + frame.time_bits))
                    | (object << frame.time_bits)
                    | time
            }

            #[inline]
            fn unpack(self, frame: &Frame) -> Row {
                Row {
                    subject: frame.least.subject
                        + (self >> (frame.object_bits + frame.time_bits)) as u64,
                    object: frame.least.object + self.object(frame),
                    time: frame.least.time + (self & ((1 << frame.time_bits) - 1)) as u64,
                }
            }

            #[inline]
            fn object(self, frame: &Frame) -> u64 {
                ((self >> frame.time_bits) & ((1 << frame.object_bits) - 1)) as u64
            }
        }
    };
}

word!(u64);
word!(u128);

impl Word for Row {
    fn pack(row: Row, _: &Frame) -> Self {
        row
    }

    fn unpack(self, _: &Frame) -> Row {
        self
    }

    fn object(self, frame: &Frame) -> u64 {
        self.object - frame.least.object
    }
}

/// A row's object and its number, in the order of these.
pub(super) trait ObjectKey: Copy + Default + Ord {
    fn new(object: u64, number: u32) -> Self;

    fn number(self) -> u32;
}

impl ObjectKey for u64 {
    #[inline]
    fn new(object: u64, number: u32) -> Self {
        debug_assert!(object <= u64::from(u32::MAX));
        (object << u32::BITS) | u64::from(number)
    }

    #[inline]
    fn number(self) -> u32 {
        self as u32
    }
}

impl ObjectKey for u128 {
    #[inline]
    fn new(object: u64, number: u32) -> Self {
        (Self::from(object) << u32::BITS) | Self::from(number)
    }

    #[inline]
    fn number(self) -> u32 {
        self as u32
    }
}
