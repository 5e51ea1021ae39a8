//! How do sixteen strings lie in one block, and how is one of them found there?
//!
//! ```text
//! width: u8                1, 2 or 4: bytes of each number that follows
//! first length             of the first string, the head
//! shared[count - 1]        how much of the head each later string begins with
//! length[count - 1]        of what follows that in each later string: its tail
//! head, tails              bytes
//! ```
//!
//! Strings share with the head of their block, not with the string before them: one string is
//! then two copies away, whatever its place, for a few per cent more bytes. Numbers of a fixed
//! width in columns make the way to a tail a short sum, without a branch for each string.

use crate::error::DictionaryError;

/// Strings in a block.
pub(crate) const BLOCK: usize = 16;
pub(crate) const BLOCK_SHIFT: u32 = BLOCK.trailing_zeros();
/// The longest string that a block keeps.
pub(crate) const LONGEST: usize = u32::MAX as usize;

const DAMAGED: DictionaryError = DictionaryError::Damaged {
    what: "a block of strings is cut short",
};

/// Appends one to [`BLOCK`] strings as a block.
pub(crate) fn push_block(out: &mut Vec<u8>, strings: &[&[u8]]) -> Result<(), DictionaryError> {
    debug_assert!((1..=BLOCK).contains(&strings.len()));
    let head = strings[0];
    let later = &strings[1..];
    let mut shared = [0; BLOCK];
    let mut largest = head.len();
    for (string, shared) in later.iter().zip(&mut shared) {
        *shared = common_prefix(head, string);
        largest = largest.max(*shared).max(string.len() - *shared);
    }
    let width = match largest {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=LONGEST => 4,
        bytes => {
            let limit = LONGEST;
            return Err(DictionaryError::TooLong { bytes, limit });
        }
    };
    let push_number = |out: &mut Vec<u8>, number: usize| {
        out.extend_from_slice(&(number as u32).to_le_bytes()[..width]);
    };
    out.push(width as u8);
    push_number(out, head.len());
    for shared in &shared[..later.len()] {
        push_number(out, *shared);
    }
    for (string, shared) in later.iter().zip(shared) {
        push_number(out, string.len() - shared);
    }
    out.extend_from_slice(head);
    for (string, shared) in later.iter().zip(shared) {
        out.extend_from_slice(&string[shared..]);
    }
    Ok(())
}

/// How many bytes `a` and `b` begin with alike.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let words = a
        .chunks_exact(8)
        .zip(b.chunks_exact(8))
        .take_while(|(a, b)| a == b)
        .count();
    let start = words * 8;
    let rest = a[start..]
        .iter()
        .zip(&b[start..])
        .take_while(|(a, b)| a == b)
        .count();
    start + rest
}

/// A block whose numbers have been found, not checked.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    width: usize,
    shared: &'a [u8],
    lengths: &'a [u8],
    head: &'a [u8],
    tails: &'a [u8],
}

impl<'a> Block<'a> {
    pub(crate) const EMPTY: Self = Self {
        width: 1,
        shared: &[],
        lengths: &[],
        head: &[],
        tails: &[],
    };

    /// Reads the block of `count` strings that is `bytes`.
    #[inline]
    pub(crate) fn open(bytes: &'a [u8], count: usize) -> Result<Self, DictionaryError> {
        let (width, bytes) = bytes.split_first().ok_or(DAMAGED)?;
        let width = usize::from(*width);
        if !matches!(width, 1 | 2 | 4) {
            return Err(DAMAGED);
        }
        let (first, bytes) = bytes.split_at_checked(width).ok_or(DAMAGED)?;
        let column = count.saturating_sub(1) * width;
        let (shared, bytes) = bytes.split_at_checked(column).ok_or(DAMAGED)?;
        let (lengths, bytes) = bytes.split_at_checked(column).ok_or(DAMAGED)?;
        let (head, tails) = bytes
            .split_at_checked(number(first, width, 0))
            .ok_or(DAMAGED)?;
        Ok(Self {
            width,
            shared,
            lengths,
            head,
            tails,
        })
    }

    /// The first string.
    #[inline]
    pub(crate) fn head(&self) -> &'a [u8] {
        self.head
    }

    /// The two parts of string `place`, which is less than the count.
    #[inline]
    pub(crate) fn parts(&self, place: usize) -> Result<(&'a [u8], &'a [u8]), DictionaryError> {
        if place == 0 {
            return Ok((self.head, &[]));
        }
        let place = place - 1;
        let start = self.sum_of_lengths(place);
        let length = number(self.lengths, self.width, place);
        let shared = self
            .head
            .get(..number(self.shared, self.width, place))
            .ok_or(DAMAGED)?;
        let tail = self
            .tails
            .get(start..)
            .and_then(|tails| tails.get(..length))
            .ok_or(DAMAGED)?;
        Ok((shared, tail))
    }

    #[inline]
    fn sum_of_lengths(&self, count: usize) -> usize {
        if self.width == 1 {
            return self.lengths[..count]
                .iter()
                .map(|length| usize::from(*length))
                .sum();
        }
        (0..count)
            .map(|place| number(self.lengths, self.width, place))
            .sum()
    }
}

/// Number `place` of a column.
#[inline]
fn number(column: &[u8], width: usize, place: usize) -> usize {
    let bytes = &column[place * width..][..width];
    match bytes {
        [a] => usize::from(*a),
        [a, b] => usize::from(u16::from_le_bytes([*a, *b])),
        [a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]) as usize,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(strings: &[&[u8]]) -> usize {
        let mut bytes = Vec::new();
        push_block(&mut bytes, strings).unwrap();
        let block = Block::open(&bytes, strings.len()).unwrap();
        for (place, string) in strings.iter().enumerate() {
            let (shared, tail) = block.parts(place).unwrap();
            assert_eq!([shared, tail].concat(), *string);
        }
        bytes.len()
    }

    #[test]
    fn blocks_of_every_width_give_their_strings_back() {
        let middle = vec![b'm'; 300];
        let long = vec![b'l'; 70_000];
        assert_eq!(round_trip(&[b"abc"]), 1 + 1 + 3);
        assert_eq!(round_trip(&[b"abc1", b"abc2", b""]), 1 + 1 + 2 + 2 + 4 + 1);
        round_trip(&[b"", b"", b"x"]);
        round_trip(&[b"m", &middle, b"", &middle]);
        round_trip(&[&long, b"lll", &middle, &long]);
    }

    #[test]
    fn common_prefixes_are_counted_to_the_byte() {
        for length in 0..40 {
            let a = vec![b'a'; length];
            for at in 0..length {
                let mut b = a.clone();
                b[at] = b'b';
                assert_eq!(common_prefix(&a, &b), at);
            }
            assert_eq!(common_prefix(&a, &[b'a'; 20]), length.min(20));
        }
    }

    #[test]
    fn a_cut_block_is_an_error() {
        let mut bytes = Vec::new();
        push_block(&mut bytes, &[b"abc1", b"abc2", b"x"]).unwrap();
        for length in 0..bytes.len() {
            let last = Block::open(&bytes[..length], 3).and_then(|block| block.parts(2));
            assert_eq!(last, Err(DAMAGED));
        }
    }
}
