//! Where does each message of a stream end?
//!
//! The gateway writes one message a line. A line is held as a whole, up to a bound.

use std::io::Read;

use crate::Cause;

/// What is read at once, in bytes.
const READ_BYTES: usize = 16 << 10;

/// The lines of a stream.
pub(crate) struct Lines<R> {
    reader: R,
    limit_bytes: usize,
    /// What was read and not handed on, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    /// Up to where there is no end of a line.
    searched: usize,
}

impl<R: Read> Lines<R> {
    pub(crate) fn new(reader: R, limit_bytes: usize) -> Self {
        Self {
            reader,
            limit_bytes,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
        }
    }

    /// The next line that is not empty, without its end; `None` where the stream ends.
    ///
    /// # Errors
    /// [`Cause::TooLarge`], [`Cause::Connection`]; [`Cause::Malformed`] if the stream ends within a line.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Cause> {
        loop {
            if let Some(end) = self.end_of_line() {
                let line = self.start..end;
                self.start = end + 1;
                self.searched = self.start;
                if !self.buffer[line.clone()].trim_ascii().is_empty() {
                    return Ok(Some(&self.buffer[line]));
                }
            } else if !self.read_on()? {
                return match self.buffer[self.start..].trim_ascii().is_empty() {
                    true => Ok(None),
                    false => Err(Cause::Malformed("it ends within a message".to_owned())),
                };
            }
        }
    }

    fn end_of_line(&mut self) -> Option<usize> {
        let found = self.buffer[self.searched..]
            .iter()
            .position(|byte| *byte == b'\n');
        let end = found.map(|place| self.searched + place);
        self.searched = end.unwrap_or(self.buffer.len());
        end
    }

    /// Reads some more bytes; false where there are none.
    fn read_on(&mut self) -> Result<bool, Cause> {
        self.buffer.drain(..self.start);
        self.start = 0;
        let held = self.buffer.len();
        if held > self.limit_bytes {
            let limit_bytes = self.limit_bytes;
            return Err(Cause::TooLarge { limit_bytes });
        }
        if held < READ_BYTES {
            // One large message should not be paid for as long as the stream goes on.
            self.buffer.shrink_to(2 * READ_BYTES);
        }
        self.buffer.resize(held + READ_BYTES, 0);
        let count = self.reader.read(&mut self.buffer[held..]);
        let count = count.map_err(|error| Cause::from(ureq::Error::from(error)));
        self.buffer
            .truncate(held + count.as_ref().map_or(0, |count| *count));
        self.searched = held;
        Ok(count? > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives a few bytes at a time.
    struct Sips<'a>(&'a [u8], usize);

    impl Read for Sips<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            let (now, later) = self.0.split_at(count);
            buffer[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    #[test]
    fn a_stream_that_ends_within_a_message_is_malformed() {
        let mut lines = Lines::new(&b"a\n\nb"[..], 10);
        assert_eq!(lines.next().unwrap(), Some(&b"a"[..]));
        assert!(matches!(lines.next(), Err(Cause::Malformed(_))));
    }

    #[test]
    fn a_line_without_end_is_read_up_to_the_bound() {
        let mut lines = Lines::new(std::io::repeat(b'x'), 100_000);
        let refused = lines.next().unwrap_err();
        assert!(matches!(
            refused,
            Cause::TooLarge {
                limit_bytes: 100_000
            }
        ));
        assert!(lines.buffer.capacity() < 300_000);
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_text(text in "[ab\n]{0,60}", sip in 1..9_usize) {
            let whole = format!("{text}\n");
            let mut lines = Lines::new(Sips(whole.as_bytes(), sip), 100);
            for expected in whole.lines().filter(|line| !line.is_empty()) {
                prop_assert_eq!(lines.next().unwrap(), Some(expected.as_bytes()));
            }
            prop_assert_eq!(lines.next().unwrap(), None);
        }
    }
}
