//! How are numbers and strings written for other nodes?

use super::failed::Failed;

/// Bytes of an edge on its way: the number of its subject, and its object's id.
pub(super) const EDGE_BYTES: usize = 12;
/// Those of a quad: the number of its graph, too.
pub(super) const QUAD_BYTES: usize = EDGE_BYTES + 4;

/// Appends a number in as many bytes as it has groups of seven bits.
pub(super) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a string with its length.
pub(super) fn push_string(out: &mut Vec<u8>, string: &[u8]) {
    push_number(out, string.len() as u64);
    out.extend_from_slice(string);
}

/// Reads what another node wrote.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(super) fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// How many bytes are left.
    pub(super) fn len(self) -> usize {
        self.bytes.len()
    }

    /// The next number.
    ///
    /// # Errors
    /// If the bytes end before.
    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, Failed> {
        // Most are of one byte.
        match self.bytes.split_first() {
            Some((first, rest)) if *first < 0x80 => {
                self.bytes = rest;
                Ok(u64::from(*first))
            }
            _ => self.long_number(),
        }
    }

    fn long_number(&mut self) -> Result<u64, Failed> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let (first, rest) = self.bytes.split_first().ok_or_else(Failed::malformed)?;
            self.bytes = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Ok(number);
            }
            shift += 7;
            if shift > 63 {
                return Err(Failed::malformed());
            }
        }
    }

    /// The next number, of 32 bits.
    ///
    /// # Errors
    /// If it has more, or the bytes end before.
    #[inline]
    pub(super) fn narrow(&mut self) -> Result<u32, Failed> {
        u32::try_from(self.number()?).map_err(|_| Failed::malformed())
    }

    /// So many bytes.
    ///
    /// # Errors
    /// If there are fewer.
    #[inline]
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Failed> {
        let split = self.bytes.split_at_checked(count);
        let (taken, rest) = split.ok_or_else(Failed::malformed)?;
        self.bytes = rest;
        Ok(taken)
    }

    /// The next string.
    ///
    /// # Errors
    /// If the bytes end before.
    #[inline]
    pub(super) fn string(&mut self) -> Result<&'a [u8], Failed> {
        let length = usize::try_from(self.number()?).map_err(|_| Failed::malformed())?;
        self.bytes(length)
    }
}

/// The word of eight bytes.
pub(super) fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a word has eight bytes"))
}

/// Numbers of four bytes each; what is left over is no number.
pub(super) fn numbers(bytes: &[u8]) -> impl ExactSizeIterator<Item = u32> + '_ {
    let numbers = bytes.chunks_exact(4);
    numbers.map(|bytes| u32::from_le_bytes(bytes.try_into().expect("there are four")))
}

/// An edge as it travels.
#[inline]
pub(super) fn edge_bytes(subject: u32, object: u64) -> [u8; EDGE_BYTES] {
    let mut bytes = [0; EDGE_BYTES];
    bytes[..4].copy_from_slice(&subject.to_le_bytes());
    bytes[4..].copy_from_slice(&object.to_le_bytes());
    bytes
}

/// Subject and object of an edge that travelled; what follows these is not looked at.
#[inline]
pub(super) fn edge_of(bytes: &[u8]) -> (u32, u64) {
    let subject = u32::from_le_bytes(bytes[..4].try_into().expect("there are four"));
    (subject, word(&bytes[4..EDGE_BYTES]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_what_is_cut_off_is_noticed() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            push_number(&mut bytes, number);
            push_string(&mut bytes, &number.to_le_bytes());
        }
        for end in 0..=bytes.len() {
            let mut reader = Reader::new(&bytes[..end]);
            let mut read = || -> Result<(), Failed> {
                for number in numbers {
                    assert_eq!(reader.number()?, number);
                    assert_eq!(reader.string()?, number.to_le_bytes());
                }
                Ok(())
            };
            assert_eq!(read().is_ok(), end == bytes.len(), "{end}");
        }
        assert!(Reader::new(&[0xff; 11]).number().is_err());
        assert!(
            Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x7f])
                .narrow()
                .is_err()
        );
        assert_eq!(edge_of(&edge_bytes(7, u64::MAX - 1)), (7, u64::MAX - 1));
    }
}
