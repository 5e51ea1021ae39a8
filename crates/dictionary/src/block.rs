//! How do sixteen strings lie in one block, and how is one of them found there?
//!
//! ```text
//! widths: u8               bytes of each number of `shared` and of the other ones: 1, 2 or 4;
//!                          the first in the low four bits
//! head length
//! end[count - 1]           where each later string's tail ends among the tails
//! shared[count - 1]        how much of its model each later string begins with
//! head, tails              bytes
//! ```
//!
//! The first string, the head, is written whole; a later string is written as the tail that
//! follows what it shares with its model, the string whose place is its own place with the lowest
//! set bit cleared: place 13 builds on 12, 12 on 8, and 8 on the head. That is within four steps
//! from every string to the head, and two steps on average; sharing with the string just before
//! would save another twentieth of the bytes and take up to fifteen steps, and sharing with the
//! head would take one step and a third more bytes. Ends of tails, and not their lengths, are
//! kept so that no sums are needed.

use crate::error::DictionaryError;

/// Strings in a block.
pub const BLOCK: usize = 16;
pub(crate) const BLOCK_SHIFT: u32 = BLOCK.trailing_zeros();
/// Bytes that are copied at once: copies of a fixed size cost a fraction of others, and what one
/// writes too much is overwritten by the next.
const STRIDE: usize = 64;
/// The same for what is mostly short.
const SHORT: usize = 16;
/// Texts grow by so many bytes at once.
const GROWTH: usize = 4 << 10;
/// The longest text that may stand before or after each string of a decoded block.
const LONGEST_AROUND: usize = 32;
/// The longest string that is always kept: the strings of a block may have 4 GiB together.
const LONGEST: usize = u32::MAX as usize / BLOCK;
/// The most steps from a string to the head.
const STEPS: usize = BLOCK_SHIFT as usize;

const DAMAGED: DictionaryError = DictionaryError::Damaged {
    what: "a block of strings is cut short",
};

/// The place of the string that a later string builds on.
#[inline]
fn model(place: usize) -> usize {
    place & (place - 1)
}

/// Appends one to [`BLOCK`] strings as a block.
pub(crate) fn push_block(out: &mut Vec<u8>, strings: &[&[u8]]) -> Result<(), DictionaryError> {
    debug_assert!((1..=BLOCK).contains(&strings.len()));
    let head = strings[0].len();
    let mut shared = [0; BLOCK];
    let mut ends = [0; BLOCK];
    for place in 1..strings.len() {
        shared[place] = common_prefix(strings[model(place)], strings[place]);
        ends[place] = ends[place - 1] + strings[place].len() - shared[place];
    }
    let longest = strings.iter().map(|string| string.len()).max().unwrap_or(0);
    let shared_width = width_for(longest, *shared.iter().max().unwrap_or(&0))?;
    let width = width_for(longest, head.max(ends[strings.len() - 1]))?;
    out.push((shared_width | width << 4) as u8);
    let mut push_number = |number: usize, width: usize| {
        out.extend_from_slice(&(number as u32).to_le_bytes()[..width]);
    };
    push_number(head, width);
    ends[1..strings.len()]
        .iter()
        .for_each(|end| push_number(*end, width));
    shared[1..strings.len()]
        .iter()
        .for_each(|shared| push_number(*shared, shared_width));
    for (string, shared) in strings.iter().zip(shared) {
        out.extend_from_slice(&string[shared..]);
    }
    Ok(())
}

/// Bytes for numbers up to `largest`, in a block whose longest string has `longest` bytes.
fn width_for(longest: usize, largest: usize) -> Result<usize, DictionaryError> {
    match largest {
        0..=0xff => Ok(1),
        0x100..=0xffff => Ok(2),
        0x1_0000..=0xffff_ffff => Ok(4),
        _ => Err(DictionaryError::TooLong {
            bytes: longest,
            limit: LONGEST,
        }),
    }
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

/// A block whose parts have been found; what they hold has not been tested.
#[derive(Clone, Copy)]
pub(crate) struct Block<'a> {
    width: usize,
    shared_width: usize,
    count: usize,
    ends: &'a [u8],
    shared: &'a [u8],
    head: &'a [u8],
    tails: &'a [u8],
    /// The head, the tails, and what may lie behind the block.
    beyond: &'a [u8],
}

impl<'a> Block<'a> {
    /// Reads the block of `count` strings that is the first `len` of `bytes`. If there are some
    /// more, all of its strings can be decoded faster.
    #[inline]
    pub(crate) fn open(bytes: &'a [u8], len: usize, count: usize) -> Result<Self, DictionaryError> {
        let (all, bytes) = (bytes, bytes.get(..len).ok_or(DAMAGED)?);
        let (widths, bytes) = bytes.split_first().ok_or(DAMAGED)?;
        let (shared_width, width) = (usize::from(widths & 15), usize::from(widths >> 4));
        if !matches!(width, 1 | 2 | 4) || !matches!(shared_width, 1 | 2 | 4) {
            return Err(DAMAGED);
        }
        let later = count.saturating_sub(1);
        let (head, bytes) = bytes.split_at_checked(width).ok_or(DAMAGED)?;
        let (ends, bytes) = bytes.split_at_checked(later * width).ok_or(DAMAGED)?;
        let (shared, bytes) = bytes
            .split_at_checked(later * shared_width)
            .ok_or(DAMAGED)?;
        let (head, tails) = bytes
            .split_at_checked(number(head, width, 0))
            .ok_or(DAMAGED)?;
        Ok(Self {
            width,
            shared_width,
            count,
            ends,
            shared,
            head,
            tails,
            beyond: &all[len - tails.len() - head.len()..],
        })
    }

    /// The first string.
    #[inline]
    pub(crate) fn head(&self) -> &'a [u8] {
        self.head
    }

    /// The pieces of string `place`, which is less than the count.
    #[inline]
    pub(crate) fn pieces(&self, place: usize) -> Result<Pieces<'a>, DictionaryError> {
        let mut pieces = Pieces {
            len: 0,
            count: 0,
            pieces: [(0, &[]); STEPS + 1],
        };
        let mut place = place;
        // Of the string at `place`, bytes from here on have been taken from strings built on it.
        let mut end = None;
        while place > 0 {
            let shared = number(self.shared, self.shared_width, place - 1);
            if end.is_none_or(|end| shared < end) {
                end = Some(pieces.push(shared, self.tail(place)?, end)?);
            }
            place = model(place);
        }
        if end != Some(0) {
            pieces.push(0, self.head, end)?;
        }
        Ok(pieces)
    }

    /// Bytes of the head and the tails.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.head.len() + self.tails.len()
    }

    /// Whether there are as many borders as strings.
    fn has_borders(&self, border: Option<u8>) -> bool {
        border.is_none_or(|border| {
            let count = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == border).count();
            count(self.head) + count(self.tails) == self.count
        })
    }

    /// The number of strings.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The head and the tails.
    pub(crate) fn raw(&self) -> (&'a [u8], &'a [u8]) {
        (self.head, self.tails)
    }

    /// Puts all strings into `text` from `at` on, one after the other, with what stands around
    /// each, and where each ends with that, counted from `at`, into `ends`. `text` grows as needed;
    /// what lies behind the strings is of no use. Gives the bytes of the strings with what stands
    /// around; `None` if not all have the border, at their ends only. The text without what stands
    /// around is at most [`BLOCK`] times as long as [`Self::bytes`], which the caller has found to
    /// fit into 32 bits.
    pub(crate) fn decode_all(
        &self,
        around: &Around,
        text: &mut Vec<u8>,
        at: usize,
        ends: &mut [u32; BLOCK],
    ) -> Result<Option<usize>, DictionaryError> {
        let (mut tails, mut shared) = ([0; BLOCK], [0; BLOCK]);
        unpack(self.ends, self.width, &mut tails[1..]);
        unpack(self.shared, self.shared_width, &mut shared[1..]);
        let Some(lens) = self.lay_out(around, &tails, &shared, ends)? else {
            return Ok(None);
        };
        let total = ends[self.count - 1] as usize;
        if text.len() < at + total + STRIDE {
            text.resize((at + total + STRIDE).next_multiple_of(GROWTH), 0);
        }
        let out = &mut text[at..];
        let mut begin = 0;
        for place in 0..self.count {
            let (shared, len) = (shared[place] as usize, lens[place]);
            out[begin..begin + LONGEST_AROUND].copy_from_slice(&around.open);
            let at = begin + around.open_len;
            if place == 0 {
                copy(out, at, self.beyond, len);
            } else {
                let model = model(place);
                let start = ends[model] as usize - around.close_len - lens[model];
                copy_within(out, start, at, shared);
                let tail = &self.beyond[self.head.len() + tails[place - 1] as usize..];
                copy_short(out, at + shared, tail, len - shared);
            }
            let end = at + len;
            out[end..end + LONGEST_AROUND].copy_from_slice(&around.close);
            begin = end + around.close_len;
        }
        Ok(Some(total))
    }

    /// The bytes of each string without what stands around it and without its border; `ends` as
    /// in [`Self::decode_all`]. `None` if not all have the border, at their ends only.
    fn lay_out(
        &self,
        around: &Around,
        tails: &[u32; BLOCK],
        shared: &[u32; BLOCK],
        ends: &mut [u32; BLOCK],
    ) -> Result<Option<[usize; BLOCK]>, DictionaryError> {
        if tails[self.count - 1] as usize > self.tails.len() {
            return Err(DAMAGED);
        }
        let cut = usize::from(around.border.is_some());
        if !around.is_border(self.head.last()) || !self.has_borders(around.border) {
            return Ok(None);
        }
        let mut lens = [0; BLOCK];
        lens[0] = self.head.len() - cut;
        let mut total = lens[0] + around.bytes();
        ends[0] = total as u32;
        for place in 1..self.count {
            let tail = self
                .tails
                .get(tails[place - 1] as usize..tails[place] as usize);
            let tail = tail.ok_or(DAMAGED)?;
            let shared = shared[place] as usize;
            if shared > lens[model(place)] + cut {
                return Err(DAMAGED);
            }
            // With a border in what is shared, there is none behind it.
            if shared > lens[model(place)] || !around.is_border(tail.last()) {
                return Ok(None);
            }
            lens[place] = shared + tail.len() - cut;
            total += lens[place] + around.bytes();
            ends[place] = total as u32;
        }
        Ok(Some(lens))
    }

    #[inline]
    fn tail(&self, place: usize) -> Result<&'a [u8], DictionaryError> {
        let start = match place {
            1 => 0,
            place => number(self.ends, self.width, place - 2),
        };
        let end = number(self.ends, self.width, place - 1);
        self.tails.get(start..end).ok_or(DAMAGED)
    }
}

/// The pieces that make up one string, from its end to its beginning.
pub(crate) struct Pieces<'a> {
    /// Bytes of the string.
    len: usize,
    count: usize,
    /// Where each piece begins in the string, and the piece.
    pieces: [(usize, &'a [u8]); STEPS + 1],
}

impl<'a> Pieces<'a> {
    /// Adds the piece that begins at `start`, up to `end` if that is known; gives `start` back.
    #[inline]
    fn push(
        &mut self,
        start: usize,
        piece: &'a [u8],
        end: Option<usize>,
    ) -> Result<usize, DictionaryError> {
        let piece = match end {
            Some(end) => piece.get(..end - start).ok_or(DAMAGED)?,
            None => {
                self.len = start + piece.len();
                piece
            }
        };
        self.pieces[self.count] = (start, piece);
        self.count += 1;
        Ok(start)
    }

    /// Appends the string.
    #[inline]
    pub(crate) fn append_to(&self, out: &mut Vec<u8>) {
        out.reserve(self.len);
        for (_, piece) in self.pieces[..self.count].iter().rev() {
            out.extend_from_slice(piece);
        }
    }

    /// True if the string is `key`.
    #[inline]
    pub(crate) fn equal(&self, key: &[u8]) -> bool {
        key.len() == self.len
            && self.pieces[..self.count]
                .iter()
                .all(|(start, piece)| key[*start..].starts_with(piece))
    }
}

/// What is put around each string of a decoded block, and what is left out of it.
pub struct Around {
    open: [u8; LONGEST_AROUND],
    open_len: usize,
    close: [u8; LONGEST_AROUND],
    close_len: usize,
    border: Option<u8>,
}

impl Around {
    /// These bytes before and after each string; each has to end with `border`, which is left out.
    ///
    /// # Panics
    /// If one of them has more than 32 bytes.
    #[must_use]
    pub fn new(open: &[u8], close: &[u8], border: Option<u8>) -> Self {
        let mut around = Self {
            open: [0; LONGEST_AROUND],
            open_len: open.len(),
            close: [0; LONGEST_AROUND],
            close_len: close.len(),
            border,
        };
        around.open[..open.len()].copy_from_slice(open);
        around.close[..close.len()].copy_from_slice(close);
        around
    }

    /// Nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::new(b"", b"", None)
    }

    #[inline]
    fn bytes(&self) -> usize {
        self.open_len + self.close_len
    }

    /// Whether a string that ends with `last` has its border, if it needs one.
    #[inline]
    fn is_border(&self, last: Option<&u8>) -> bool {
        self.border.is_none() || self.border == last.copied()
    }
}

/// Copies the first `len` bytes of `from` to `at`, and may write up to [`STRIDE`] beyond them.
#[inline(always)]
fn copy(out: &mut [u8], at: usize, from: &[u8], len: usize) {
    if from.len() < len + STRIDE {
        out[at..at + len].copy_from_slice(&from[..len]);
        return;
    }
    let mut done = 0;
    while done < len {
        let (from, to) = (&from[done..], &mut out[at + done..]);
        to[..STRIDE].copy_from_slice(&from[..STRIDE]);
        done += STRIDE;
    }
}

/// As [`copy`], for what is mostly short.
#[inline(always)]
fn copy_short(out: &mut [u8], at: usize, from: &[u8], len: usize) {
    if len <= SHORT && from.len() >= SHORT {
        out[at..at + SHORT].copy_from_slice(&from[..SHORT]);
    } else {
        copy(out, at, from, len);
    }
}

/// Copies `len` bytes from `start` to `at`, which lies behind them, and may write up to [`STRIDE`]
/// beyond them.
#[inline(always)]
fn copy_within(out: &mut [u8], start: usize, at: usize, len: usize) {
    let mut done = 0;
    while done < len {
        out.copy_within(start + done..start + done + STRIDE, at + done);
        done += STRIDE;
    }
}

/// The numbers of a column, of which there are as many as that holds.
#[inline]
fn unpack(column: &[u8], width: usize, out: &mut [u32]) {
    let pairs = |chunk: &[u8]| u32::from(u16::from_le_bytes([chunk[0], chunk[1]]));
    let quads = |chunk: &[u8]| u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]);
    match width {
        1 => out
            .iter_mut()
            .zip(column)
            .for_each(|(out, byte)| *out = u32::from(*byte)),
        2 => out
            .iter_mut()
            .zip(column.chunks_exact(2))
            .for_each(|(out, chunk)| *out = pairs(chunk)),
        _ => out
            .iter_mut()
            .zip(column.chunks_exact(4))
            .for_each(|(out, chunk)| *out = quads(chunk)),
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

    fn text(block: &Block<'_>, place: usize) -> Result<Vec<u8>, DictionaryError> {
        let mut text = Vec::new();
        block.pieces(place)?.append_to(&mut text);
        Ok(text)
    }

    fn round_trip(strings: &[&[u8]]) -> usize {
        let mut bytes = Vec::new();
        push_block(&mut bytes, strings).unwrap();
        let block = Block::open(&bytes, bytes.len(), strings.len()).unwrap();
        let (mut all, mut ends) = (Vec::new(), [0; BLOCK]);
        let mut expected = Vec::new();
        for (open, close) in [
            ("", ""),
            ("<", ">"),
            ("a long opening ", " and a long closing"),
        ] {
            let around = Around::new(open.as_bytes(), close.as_bytes(), None);
            let at = expected.len();
            for string in strings {
                expected.extend([open.as_bytes(), string, close.as_bytes()].concat());
            }
            let bytes = block.decode_all(&around, &mut all, at, &mut ends);
            assert_eq!(bytes, Ok(Some(expected.len() - at)));
            assert_eq!(ends[strings.len() - 1] as usize, expected.len() - at);
            assert_eq!(all[..expected.len()], expected);
        }
        for (place, string) in strings.iter().enumerate() {
            assert_eq!(text(&block, place).unwrap(), *string);
            for other in strings {
                assert_eq!(block.pieces(place).unwrap().equal(other), string == other);
            }
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
    fn strings_that_share_more_or_less_with_their_models_come_back() {
        let text = b"abcdefghijklmnopqrstuvwxyz";
        for seed in 0..5_000_usize {
            // Prefixes of a few texts, so that every chain of lengths occurs.
            let mixed = |place: usize| (seed + 1).wrapping_mul(0x9e37_79b9 + 77 * place) >> 7;
            let strings: Vec<Vec<u8>> = (0..1 + seed % BLOCK)
                .map(|place| {
                    let mut string = text[..mixed(place) % 9].to_vec();
                    string.extend_from_slice(&text[..mixed(place + 99) % 4]);
                    string
                })
                .collect();
            let strings: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
            round_trip(&strings);
        }
    }

    #[test]
    fn a_border_is_left_out_where_all_strings_end_with_it() {
        let around = Around::new(b"<", b">", Some(0));
        let decode = |strings: &[&[u8]]| {
            let mut bytes = Vec::new();
            push_block(&mut bytes, strings).unwrap();
            let block = Block::open(&bytes, bytes.len(), strings.len()).unwrap();
            let (mut text, mut ends) = (b"x".to_vec(), [0; BLOCK]);
            let bytes = block
                .decode_all(&around, &mut text, 1, &mut ends)
                .unwrap()?;
            text.truncate(1 + bytes);
            Some((String::from_utf8(text).unwrap(), ends[strings.len() - 1]))
        };
        let text = "x<abc><abcd><><b>".to_owned();
        assert_eq!(
            decode(&[b"abc\0", b"abcd\0", b"\0", b"b\0"]),
            Some((text, 16))
        );
        for other in [&b"abc"[..], b"abc\0@en", b"", b"abcd\0\0", b"a\0b\0"] {
            assert_eq!(decode(&[b"abcd\0", other]), None, "{other:?}");
            assert_eq!(decode(&[other, b"abc\0"]), None, "{other:?}");
        }
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
            let last = Block::open(&bytes, length, 3).and_then(|block| text(&block, 2));
            assert_eq!(last, Err(DAMAGED));
        }
    }

    #[test]
    fn changed_numbers_in_a_block_do_not_panic() {
        let mut bytes = Vec::new();
        push_block(&mut bytes, &[b"abc1", b"abc2", b"abd", b"abde", b"x"]).unwrap();
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut changed = bytes.clone();
                changed[at] = value;
                let Ok(block) = Block::open(&changed, changed.len(), 5) else {
                    continue;
                };
                for border in [None, Some(b'x')] {
                    let around = Around::new(b"(", b")", border);
                    let _ = block.decode_all(&around, &mut Vec::new(), 0, &mut [0; BLOCK]);
                }
                for place in 0..5 {
                    let _ = text(&block, place);
                    let _ = block.pieces(place).map(|pieces| pieces.equal(b"abc2"));
                }
            }
        }
    }
}
