//! Numbers and texts as bytes, read back with an error where they are not what was written.

/// Bytes that no writer here has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a record of streams is not what was written: {0}")]
pub(super) struct BadRecord(pub(super) &'static str);

/// Appends a number in as few bytes as it needs, seven bits in each.
pub(super) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a time or a difference of times: small ones of either sign take few bytes.
pub(super) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, ((number << 1) ^ (number >> 63)) as u64);
}

pub(super) fn put_option(out: &mut Vec<u8>, number: Option<i64>) {
    out.push(u8::from(number.is_some()));
    if let Some(number) = number {
        put_signed(out, number);
    }
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// What is left to be read.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], BadRecord> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(bytes)
    }

    pub(super) fn byte(&mut self) -> Result<u8, BadRecord> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn flag(&mut self) -> Result<bool, BadRecord> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(BadRecord("a flag is neither yes nor no")),
        }
    }

    pub(super) fn number(&mut self) -> Result<u64, BadRecord> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BadRecord("a number is too large"))
    }

    pub(super) fn signed(&mut self) -> Result<i64, BadRecord> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(super) fn option(&mut self) -> Result<Option<i64>, BadRecord> {
        match self.flag()? {
            true => self.signed().map(Some),
            false => Ok(None),
        }
    }

    /// The length of a list whose items take at least a byte each: never more than the bytes left, so it
    /// may be used as a capacity.
    pub(super) fn count(&mut self) -> Result<usize, BadRecord> {
        let count = self.number()?;
        match usize::try_from(count).ok() {
            Some(count) if count <= self.0.len() => Ok(count),
            _ => Err(TOO_SHORT),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], BadRecord> {
        let count = self.count()?;
        self.take(count)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, BadRecord> {
        std::str::from_utf8(self.bytes()?).map_err(|_| BadRecord("a text is no UTF-8"))
    }

    /// Nothing may be left.
    pub(super) fn end(self) -> Result<(), BadRecord> {
        match self.0 {
            [] => Ok(()),
            _ => Err(BadRecord("more comes after its end")),
        }
    }
}

const TOO_SHORT: BadRecord = BadRecord("it ends too soon");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_written() {
        let numbers = [0, 1, 0x7f, 0x80, 1 << 35, u64::MAX >> 1, u64::MAX];
        let mut out = Vec::new();
        numbers
            .iter()
            .for_each(|number| put_number(&mut out, *number));
        let signed = numbers.map(|number| number as i64);
        signed
            .iter()
            .for_each(|number| put_signed(&mut out, *number));
        put_option(&mut out, Some(i64::MIN));
        put_option(&mut out, None);
        put_bytes(&mut out, b"text");
        let mut input = Input(&out);
        assert_eq!(numbers.map(|_| input.number().unwrap()), numbers);
        assert_eq!(signed.map(|_| input.signed().unwrap()), signed);
        assert_eq!(input.option().unwrap(), Some(i64::MIN));
        assert_eq!(input.option().unwrap(), None);
        assert_eq!(input.text().unwrap(), "text");
        input.end().unwrap();
        let mut long = Input(&[0xff; 20]);
        assert!(long.number().is_err());
    }
}
