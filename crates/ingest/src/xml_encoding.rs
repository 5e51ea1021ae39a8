//! What does this XML document say in UTF-8?
//!
//! The parser reads nothing else. The encoding is known by the mark of the byte order or by how
//! the document begins, or it is what the document declares (XML 1.0, appendix F); what it
//! declares is replaced by spaces, as it is no longer so.

use encoding_rs::{Decoder, DecoderResult, Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};
use encoding_rs::{WINDOWS_1252, mem};
use std::io::{self, Read};
use std::ops::Range;

/// A longer declaration is not looked at.
const MAX_DECLARATION_BYTES: usize = 1024;

/// How much is decoded at once.
const BUFFER_BYTES: usize = 16 << 10;

const DECLARATION: &[u8] = b"<?xml";

/// What a document that is not in UTF-8, or says so, is refused for.
#[derive(Debug, thiserror::Error)]
enum BadEncoding {
    #[error("the encoding {0:?} is not known")]
    Unknown(String),
    #[error("the document declares to be in {0:?}, which its first bytes are not")]
    Other(String),
    #[error("the document is in UTF-32, which is not supported")]
    Utf32,
    #[error("bytes that are not {0}")]
    Malformed(&'static str),
}

impl From<BadEncoding> for io::Error {
    fn from(error: BadEncoding) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

/// Reads a document in whatever encoding as one in UTF-8.
pub(crate) struct Utf8<R> {
    inner: R,
    /// None until it is known.
    encoding: Option<Coded>,
    /// Read from the source, not yet decoded.
    input: Vec<u8>,
    at_end: bool,
    /// Decoded, from `handed_on` on not yet handed on.
    output: Vec<u8>,
    handed_on: usize,
    /// Whether `output` begins with the first byte of the document, whose declaration is still to
    /// be looked at.
    at_start: bool,
}

enum Coded {
    Utf8,
    /// Each byte is the character of its number.
    Latin1,
    Other(Box<Decoder>),
}

impl<R: Read> Utf8<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            encoding: None,
            input: Vec::new(),
            at_end: false,
            output: Vec::new(),
            handed_on: 0,
            at_start: true,
        }
    }

    /// Reads more of the source behind what is there.
    fn read_more(&mut self) -> io::Result<()> {
        let begin = self.input.len();
        self.input.resize(BUFFER_BYTES, 0);
        let read = self.inner.read(&mut self.input[begin..]);
        self.input.truncate(begin + read.as_ref().map_or(0, |n| *n));
        self.at_end = read? == 0;
        Ok(())
    }

    /// Finds out the encoding.
    fn begin(&mut self) -> io::Result<()> {
        while self.encoding.is_none() {
            self.read_more()?;
            let seen = &self.input[..self.input.len().min(MAX_DECLARATION_BYTES)];
            let is_all = self.at_end || seen.len() == MAX_DECLARATION_BYTES;
            let Some((encoding, mark_bytes)) = encoding(seen, is_all)? else {
                continue;
            };
            self.input.drain(..mark_bytes);
            self.at_start = !matches!(encoding, Coded::Utf8);
            self.encoding = Some(encoding);
        }
        Ok(())
    }

    /// Decodes more; nothing at the end of the document.
    fn decode(&mut self) -> io::Result<()> {
        if self.input.is_empty() && !self.at_end {
            self.read_more()?;
        }
        match self.encoding.as_mut().expect("it was found out first") {
            Coded::Utf8 => self.output.append(&mut self.input),
            Coded::Latin1 => {
                let begin = self.output.len();
                self.output.resize(begin + 2 * self.input.len(), 0);
                let n = mem::convert_latin1_to_utf8(&self.input, &mut self.output[begin..]);
                self.output.truncate(begin + n);
                self.input.clear();
            }
            Coded::Other(decoder) => {
                let begin = self.output.len();
                let most = decoder.max_utf8_buffer_length_without_replacement(self.input.len());
                let most = most.unwrap_or(4 * BUFFER_BYTES);
                self.output.resize(begin + most, 0);
                let output = &mut self.output[begin..];
                let (result, read, written) =
                    decoder.decode_to_utf8_without_replacement(&self.input, output, self.at_end);
                self.output.truncate(begin + written);
                self.input.drain(..read);
                if let DecoderResult::Malformed(..) = result {
                    return Err(BadEncoding::Malformed(decoder.encoding().name()).into());
                }
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.begin()?;
        if let Some(Coded::Utf8) = self.encoding
            && self.handed_on == self.output.len()
            && self.input.is_empty()
        {
            return self.inner.read(buf);
        }
        while self.handed_on == self.output.len() || self.at_start {
            if !self.at_start {
                self.output.clear();
                self.handed_on = 0;
            }
            self.decode()?;
            let is_all = self.at_end && self.input.is_empty();
            if self.at_start && (is_all || is_whole(&self.output)) {
                self.at_start = false;
                if let Some((declared, _)) = declared(&self.output) {
                    self.output[declared].fill(b' ');
                }
            }
            if is_all {
                break;
            }
        }
        let n = (&self.output[self.handed_on..]).read(buf)?;
        self.handed_on += n;
        Ok(n)
    }
}

/// The encoding of a document that begins so, and the bytes of its mark; none if more of the
/// document must be seen.
fn encoding(head: &[u8], is_all: bool) -> Result<Option<(Coded, usize)>, BadEncoding> {
    let other = |encoding: &'static Encoding, mark_bytes| {
        let decoder = encoding.new_decoder_without_bom_handling();
        Ok(Some((Coded::Other(Box::new(decoder)), mark_bytes)))
    };
    if head.len() < 4 && !is_all {
        return Ok(None);
    }
    match head {
        [0, 0, 0xfe, 0xff, ..] | [0xff, 0xfe, 0, 0, ..] => return Err(BadEncoding::Utf32),
        [0xfe, 0xff, ..] => return other(UTF_16BE, 2),
        [0xff, 0xfe, ..] => return other(UTF_16LE, 2),
        [0, b'<', 0, _, ..] => return other(UTF_16BE, 0),
        [b'<', 0, _, 0, ..] => return other(UTF_16LE, 0),
        _ => {}
    }
    if !is_all && !is_whole(head) {
        return Ok(None);
    }
    let Some((_, label)) = declared(head) else {
        return Ok(Some((Coded::Utf8, 0)));
    };
    let label = &head[label];
    let name = || String::from_utf8_lossy(label).into_owned();
    match Encoding::for_label(label) {
        None => Err(BadEncoding::Unknown(name())),
        Some(encoding) if encoding == UTF_8 => Ok(Some((Coded::Utf8, 0))),
        Some(encoding) if encoding == REPLACEMENT => Err(BadEncoding::Unknown(name())),
        Some(encoding) if encoding == UTF_16LE || encoding == UTF_16BE => {
            Err(BadEncoding::Other(name()))
        }
        // The library takes Latin-1 for the encoding of Windows, as browsers do.
        Some(encoding) if encoding == WINDOWS_1252 && !label.ends_with(b"1252") => {
            Ok(Some((Coded::Latin1, 0)))
        }
        Some(encoding) => other(encoding, 0),
    }
}

/// Whether all is there that may be the declaration.
fn is_whole(head: &[u8]) -> bool {
    let begins = head.len().min(DECLARATION.len());
    head[..begins] != DECLARATION[..begins]
        || head.contains(&b'>')
        || head.len() >= MAX_DECLARATION_BYTES
}

/// Where a document declares its encoding, and where it names it.
fn declared(head: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    const NAME: &[u8] = b"encoding";
    let seen = &head[..head.len().min(MAX_DECLARATION_BYTES)];
    let end = seen.iter().position(|&b| b == b'>')?;
    let declaration = seen[..end].strip_prefix(DECLARATION)?;
    if !declaration.first()?.is_ascii_whitespace() {
        return None;
    }
    let at = memchr::memmem::find(declaration, NAME)?;
    let blank = |at: &usize| declaration.get(*at).is_some_and(u8::is_ascii_whitespace);
    let after_blanks = |from: usize| (from..).find(|at| !blank(at));
    let equals = after_blanks(at + NAME.len())?;
    let quote = after_blanks(equals + 1)?;
    let delimiter = *declaration
        .get(quote)
        .filter(|b| matches!(b, b'"' | b'\''))?;
    if declaration[equals] != b'=' {
        return None;
    }
    let value = declaration[quote + 1..].iter();
    let close = quote + 1 + value.take_while(|&&b| b != delimiter).count();
    declaration.get(close)?;
    let shift = DECLARATION.len();
    Some((
        shift + at..shift + close + 1,
        shift + quote + 1..shift + close,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands on a byte at a time.
    struct Bytes<'a>(&'a [u8]);

    impl Read for Bytes<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = buf.len().min(1);
            self.0.read(&mut buf[..n])
        }
    }

    fn read(document: &[u8]) -> io::Result<String> {
        let mut whole = String::new();
        Utf8::new(document).read_to_string(&mut whole)?;
        let mut parts = String::new();
        Utf8::new(Bytes(document)).read_to_string(&mut parts)?;
        assert_eq!(whole, parts);
        Ok(whole)
    }

    fn utf16(text: &str, to_bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(to_bytes).collect()
    }

    #[test]
    fn utf_16_is_read_in_both_orders_with_a_mark_and_without() {
        let body = format!("<a>é 😀 {}</a>", "x".repeat(100_000));
        let text = format!("<?xml version='1.0' encoding = 'UTF-16' ?>{body}");
        let blank = " ".repeat(" encoding = 'UTF-16' ".len());
        let expected = format!("<?xml version='1.0'{blank}?>{body}");
        for to_bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            assert_eq!(read(&utf16(&text, to_bytes)).unwrap(), expected);
            let marked = format!("\u{feff}{text}");
            assert_eq!(read(&utf16(&marked, to_bytes)).unwrap(), expected);
            let bare = format!("\u{feff}{body}");
            assert_eq!(read(&utf16(&bare, to_bytes)).unwrap(), body);
        }
    }

    #[test]
    fn declared_encodings_are_read() {
        for (label, bytes, text) in [
            ("ISO-8859-1", &b"\xe9\x80"[..], "é\u{80}"),
            ("latin1", b"\xff", "ÿ"),
            ("us-ascii", b"a", "a"),
            ("windows-1252", b"\x80", "€"),
            ("iso-8859-15", b"\xa4", "€"),
            ("Shift_JIS", b"\x82\xa0", "あ"),
        ] {
            let head = format!("<?xml version=\"1.0\" encoding=\"{label}\"?><a>");
            let document = [head.as_bytes(), bytes].concat();
            let blank = " ".repeat(label.len() + "encoding=\"\"".len());
            let expected = format!("<?xml version=\"1.0\" {blank}?><a>{text}");
            assert_eq!(read(&document).unwrap(), expected, "{label}");
        }
    }

    #[test]
    fn utf_8_stays_as_it_is() {
        for document in [
            "",
            "<",
            "<a encoding='latin1'>é</a>",
            "<?xml version='1.0' encoding='utf-8'?><a>é</a>",
            "<?xml version='1.0'?><!-- encoding='latin1' --><a>é</a>",
            "<?xml-stylesheet encoding='latin1'?><a>é</a>",
            "<?xml version='1.0' encoding=latin1?><a>é</a>",
            "<?xml",
        ] {
            assert_eq!(read(document.as_bytes()).unwrap(), document);
        }
        let long = format!("<?xml {} encoding='latin1'?>", " ".repeat(2000));
        assert_eq!(read(long.as_bytes()).unwrap(), long);
    }

    #[test]
    fn what_cannot_be_decoded_is_refused_by_name() {
        let declared = |label: &str| format!("<?xml version='1.0' encoding='{label}'?><a/>");
        for (document, reason) in [
            (
                declared("ebcdic-cp-us").into_bytes(),
                "\"ebcdic-cp-us\" is not known",
            ),
            (declared("iso-2022-kr").into_bytes(), "is not known"),
            (
                declared("UTF-16").into_bytes(),
                "which its first bytes are not",
            ),
            (b"\xff\xfe\0\0<\0\0\0".to_vec(), "UTF-32"),
            (b"\xff\xfe<\0\x00\xd8".to_vec(), "not UTF-16LE"),
            (b"\xff\xfe<\0a".to_vec(), "not UTF-16LE"),
            (
                [declared("shift_jis").as_bytes(), b"\x82"].concat(),
                "not Shift_JIS",
            ),
        ] {
            let error = read(&document).expect_err(reason);
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
