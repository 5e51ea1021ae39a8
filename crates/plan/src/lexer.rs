//! What are the tokens of a SPARQL text?
//!
//! They are told as far as is needed to find operations, keywords and IRIs without a parser, in
//! one pass. As in SPARQL's grammar the longest token that fits is taken. What is no SPARQL comes
//! apart somehow.

use std::ops::Range;

use memchr::memchr2;

/// Reads tokens one after the other.
pub(crate) struct Lexer<'a> {
    pub(crate) bytes: &'a [u8],
    /// Where the next token begins.
    pub(crate) at: usize,
}

/// What a token is; white space and comments are some too.
pub(crate) enum Token {
    Space,
    /// A name without colon. Numbers, and signs and points inside names, are such as well.
    Word(Range<usize>),
    /// What is between `<` and `>`.
    Iri(Range<usize>),
    Open,
    Close,
    Separator,
    Other,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The next token. There has to be one.
    pub(crate) fn token(&mut self) -> Token {
        let byte = self.bytes[self.at];
        let mut token = Token::Other;
        let end = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {
                token = Token::Space;
                self.at + 1
            }
            b'#' => {
                token = Token::Space;
                memchr2(b'\n', b'\r', &self.bytes[self.at..])
                    .map_or(self.bytes.len(), |length| self.at + length)
            }
            b'<' => match iri_at(self.bytes, self.at) {
                Some(iri) => {
                    token = Token::Iri(iri.clone());
                    iri.end + 1
                }
                None => self.at + 1,
            },
            b'"' | b'\'' => self.end_of_string(byte),
            b'{' | b'(' | b'[' => {
                token = Token::Open;
                self.at + 1
            }
            b'}' | b')' | b']' => {
                token = Token::Close;
                self.at + 1
            }
            b';' => {
                token = Token::Separator;
                self.at + 1
            }
            b':' => self.end_of_name(),
            _ if is_name(byte) => {
                let end = self.end_of_name();
                if !self.bytes[self.at..end].contains(&b':') {
                    token = Token::Word(self.at..end);
                }
                end
            }
            _ => self.at + 1,
        };
        self.at = end;
        token
    }

    /// The end of a string, or where it is clear that it is not closed: at the end of the line or
    /// of the text.
    fn end_of_string(&self, quote: u8) -> usize {
        let long = [quote; 3];
        let is_long = self.bytes[self.at..].starts_with(&long);
        let mut end = self.at + if is_long { 3 } else { 1 };
        while let Some(byte) = self.bytes.get(end) {
            match *byte {
                b'\\' => end += 2,
                byte if byte == quote && !is_long => return end + 1,
                byte if byte == quote && self.bytes[end..].starts_with(&long) => return end + 3,
                b'\n' | b'\r' if !is_long => return end,
                _ => end += 1,
            }
        }
        self.bytes.len()
    }

    /// The end of a keyword, a number or a prefixed name.
    fn end_of_name(&self) -> usize {
        let mut end = self.at;
        let mut has_colon = false;
        while let Some(byte) = self.bytes.get(end) {
            match *byte {
                b':' => has_colon = true,
                b'\\' if has_colon => {
                    // What is escaped is one character of punctuation.
                    end = (end + 2).min(self.bytes.len());
                    continue;
                }
                b'.' | b'%' => (),
                byte if is_name(byte) => (),
                _ => break,
            }
            end += 1;
        }
        end
    }
}

/// What is between `<` at a place of a text and the `>` that makes it an IRI; none if what follows
/// is no IRI. A backslash may only begin an escaped character, which no parser has replaced yet.
pub(crate) fn iri_at(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let start = at + 1;
    for (end, byte) in (start..).zip(&bytes[start..]) {
        match *byte {
            b'>' => return Some(start..end),
            b'\\' if matches!(bytes.get(end + 1), Some(b'u' | b'U')) => (),
            b'<' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\' => return None,
            byte if byte <= b' ' => return None,
            _ => (),
        }
    }
    None
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || byte >= 0x80
}
