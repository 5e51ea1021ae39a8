//! What are the tokens of a SPARQL text?
//!
//! As in SPARQL's grammar, the longest token that fits is taken: `?x<?a&&?b>?y` has an IRI where
//! no operator is. Words are one kind of token, and which of them are keywords is the parser's to
//! say. Tokens are places in the text; nothing is copied. Costs a few nanoseconds for each token
//! and at most three looks at each byte, whatever the text.

use memchr::{memchr2, memchr3};

use crate::chars::{
    DIGIT, IRI, NAME, SPACE, WORD, is, is_base, is_escapable, is_inner, is_start, run,
};
use crate::tree::Span;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    End,
    /// A keyword, or what is none: letters, digits and `_`.
    Word,
    /// `<...>`; `extra` is 1 if it has escapes.
    Iri,
    /// A prefixed name, or a prefix with its colon; `extra` is the offset of the colon, with
    /// [`ESCAPED`] if the local part has a backslash.
    Name,
    /// `?x` or `$x`.
    Variable,
    /// `_:x`.
    Label,
    /// `@en` or `@en--ltr`.
    Language,
    /// `extra` is 1 if it has escapes, with [`LONG`] if there are three quotes.
    String,
    /// With its sign, if it has one.
    Integer,
    Decimal,
    Double,
    /// `()`, with nothing but white space inside.
    Nil,
    /// `[]`, with nothing but white space inside.
    Anon,
    OpenBrace,
    CloseBrace,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    /// `{|`
    OpenAnnotation,
    /// `|}`
    CloseAnnotation,
    /// `<<`
    OpenReified,
    /// `>>`
    CloseReified,
    /// `<<(`
    OpenTriple,
    /// `)>>`
    CloseTriple,
    Dot,
    Comma,
    Semicolon,
    Star,
    Slash,
    Plus,
    Minus,
    Pipe,
    Or,
    And,
    Caret,
    /// `^^`
    Datatype,
    Not,
    NotEqual,
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `?` that no variable follows.
    Question,
    Tilde,
    /// A quote whose string is not closed on its line; with [`LONG`] three quotes, one of many that
    /// nothing closes.
    Unclosed,
    /// What no token begins with.
    Unknown,
}

/// Of a [`Kind::Name`]: its local part has escapes.
pub(crate) const ESCAPED: u32 = 1 << 31;
/// Of a [`Kind::String`]: it is between three quotes on each side.
pub(crate) const LONG: u32 = 2;

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
    /// See [`Kind`].
    pub(crate) extra: u32,
}

impl Token {
    pub(crate) fn of<'t>(&self, text: &'t str) -> &'t str {
        &text[self.span.start as usize..self.span.end as usize]
    }
}

/// Reads tokens one after the other.
#[derive(Clone)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    /// Where the next token begins, or the white space before it.
    at: usize,
    /// Up to here no name has a colon: it was looked for from an earlier word on.
    no_colon_before: usize,
    /// How often three quotes began no string.
    missed: u8,
    /// Bytes looked at.
    #[cfg(test)]
    pub(crate) looks: u64,
}

/// Times that three quotes are looked for to the end of the text in vain.
const MAX_MISSED: u8 = 8;

/// Longest text in bytes: offsets are 32 bits, with one to spare.
pub(crate) const MAX_TEXT_BYTES: usize = (1 << 31) - 2;

impl<'t> Lexer<'t> {
    /// Reads from a place on.
    ///
    /// # Panics
    /// If the text is longer than [`MAX_TEXT_BYTES`].
    pub(crate) fn new(text: &'t str, at: usize) -> Self {
        assert!(text.len() <= MAX_TEXT_BYTES);
        Self {
            text,
            at,
            no_colon_before: 0,
            missed: 0,
            #[cfg(test)]
            looks: 0,
        }
    }

    /// Goes to a place before which nothing is to be read again.
    pub(crate) fn go_to(&mut self, at: u32) {
        self.at = at as usize;
    }

    /// Passes over white space and comments.
    #[inline]
    fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if is(*byte, SPACE) {
                self.at += 1;
            } else if *byte == b'#' {
                let comment = &bytes[self.at..];
                self.at += memchr2(b'\n', b'\r', comment).unwrap_or(comment.len());
            } else {
                return;
            }
        }
    }

    /// The next token.
    #[inline]
    pub(crate) fn next(&mut self) -> Token {
        self.skip_space();
        let start = self.at;
        let (kind, end, extra) = self.token(start);
        self.at = end;
        #[cfg(test)]
        {
            self.looks += (end - start) as u64 + 1;
        }
        Token {
            kind,
            span: span(start, end),
            extra,
        }
    }

    fn token(&mut self, at: usize) -> (Kind, usize, u32) {
        let bytes = self.text.as_bytes();
        let Some(byte) = bytes.get(at) else {
            return (Kind::End, at, 0);
        };
        let next = bytes.get(at + 1).copied().unwrap_or(0);
        let one = |kind| (kind, at + 1, 0);
        let two = |kind| (kind, at + 2, 0);
        match *byte {
            b'?' | b'$' => match self.variable_end(at + 1) {
                Some(end) => (Kind::Variable, end, 0),
                None if *byte == b'?' => one(Kind::Question),
                None => one(Kind::Unknown),
            },
            b'a'..=b'z' | b'A'..=b'Z' => self.word(at),
            b'<' => self.less(at),
            b':' => self.local(at, at),
            b'"' | b'\'' => self.string(at),
            b'.' if is(next, DIGIT) => self.number(at),
            b'.' => one(Kind::Dot),
            b';' => one(Kind::Semicolon),
            b',' => one(Kind::Comma),
            b'{' if next == b'|' => two(Kind::OpenAnnotation),
            b'{' => one(Kind::OpenBrace),
            b'}' => one(Kind::CloseBrace),
            b'(' => self.brackets(at, b')', Kind::Nil, Kind::OpenParen),
            b')' if bytes[at..].starts_with(b")>>") => (Kind::CloseTriple, at + 3, 0),
            b')' => one(Kind::CloseParen),
            b'[' => self.brackets(at, b']', Kind::Anon, Kind::OpenBracket),
            b']' => one(Kind::CloseBracket),
            b'0'..=b'9' => self.number(at),
            b'+' | b'-' => {
                let after = bytes.get(at + 2).copied().unwrap_or(0);
                if is(next, DIGIT) || (next == b'.' && is(after, DIGIT)) {
                    return self.number(at);
                }
                one(if *byte == b'+' {
                    Kind::Plus
                } else {
                    Kind::Minus
                })
            }
            b'_' if next == b':' => match self.label_end(at + 2) {
                Some(end) => (Kind::Label, end, 0),
                None => two(Kind::Unknown),
            },
            b'_' => (Kind::Word, run(bytes, at, WORD), 0),
            b'@' => self.language(at),
            b'*' => one(Kind::Star),
            b'/' => one(Kind::Slash),
            b'|' if next == b'|' => two(Kind::Or),
            b'|' if next == b'}' => two(Kind::CloseAnnotation),
            b'|' => one(Kind::Pipe),
            b'&' if next == b'&' => two(Kind::And),
            b'^' if next == b'^' => two(Kind::Datatype),
            b'^' => one(Kind::Caret),
            b'!' if next == b'=' => two(Kind::NotEqual),
            b'!' => one(Kind::Not),
            b'=' => one(Kind::Equal),
            b'>' if next == b'=' => two(Kind::GreaterOrEqual),
            b'>' if next == b'>' => two(Kind::CloseReified),
            b'>' => one(Kind::Greater),
            b'~' => one(Kind::Tilde),
            byte if byte >= 0x80 => self.word(at),
            _ => one(Kind::Unknown),
        }
    }

    /// Brackets with nothing but white space inside, or the one that opens.
    fn brackets(&mut self, at: usize, close: u8, empty: Kind, open: Kind) -> (Kind, usize, u32) {
        let bytes = self.text.as_bytes();
        let inside = run(bytes, at + 1, SPACE);
        #[cfg(test)]
        {
            self.looks += (inside - at) as u64;
        }
        match bytes.get(inside) {
            Some(byte) if *byte == close => {
                // `()>>` ends with the longer token.
                let is_longer = close == b')' && bytes[inside..].starts_with(b")>>");
                match is_longer && inside == at + 1 {
                    true => (Kind::OpenParen, at + 1, 0),
                    false => (empty, inside + 1, 0),
                }
            }
            _ => (open, at + 1, 0),
        }
    }

    fn character(&self, at: usize) -> Option<char> {
        match self.text.as_bytes().get(at)? {
            byte if byte.is_ascii() => Some(char::from(*byte)),
            _ => self.text[at..].chars().next(),
        }
    }

    /// The end of a variable's name, if one begins here.
    fn variable_end(&self, at: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut end = run(bytes, at, WORD);
        while let Some(byte) = bytes.get(end) {
            if byte.is_ascii() {
                break;
            }
            let c = self.character(end)?;
            if !(if end == at { is_start(c) } else { is_inner(c) }) {
                break;
            }
            end = run(bytes, end + c.len_utf8(), WORD);
        }
        (end > at).then_some(end)
    }

    /// The end of what may follow the first character of a prefix or a label: points may only be
    /// inside. With the end of what was looked at, points at the end included.
    fn dotted_end(&self, at: usize) -> (usize, usize) {
        let bytes = self.text.as_bytes();
        let mut end = at;
        let mut looked = at;
        while let Some(byte) = bytes.get(looked) {
            if is(*byte, NAME) {
                looked = run(bytes, looked, NAME);
                end = looked;
            } else if *byte == b'.' {
                looked += 1;
            } else if byte.is_ascii() {
                break;
            } else {
                match self.character(looked) {
                    Some(c) if is_inner(c) => looked += c.len_utf8(),
                    _ => break,
                }
                end = looked;
            }
        }
        (end, looked)
    }

    fn label_end(&self, at: usize) -> Option<usize> {
        let first = self.character(at)?;
        let begins = is_start(first) || first.is_ascii_digit();
        begins.then(|| self.dotted_end(at + first.len_utf8()).0)
    }

    /// A word, or the prefixed name that begins here.
    fn word(&mut self, at: usize) -> (Kind, usize, u32) {
        let bytes = self.text.as_bytes();
        let end = run(bytes, at, WORD);
        match bytes.get(end) {
            Some(b':') => return self.local(at, end),
            Some(byte)
                if (matches!(byte, b'-' | b'.') || *byte >= 0x80) && at >= self.no_colon_before =>
            {
                let begins = end > at || self.character(at).is_some_and(is_base);
                let (colon, looked) = match begins {
                    true => self.dotted_end(end),
                    false => (at, at),
                };
                #[cfg(test)]
                {
                    self.looks += (looked - end) as u64;
                }
                if begins && colon == looked && bytes.get(colon) == Some(&b':') {
                    return self.local(at, colon);
                }
                self.no_colon_before = looked;
            }
            _ => (),
        }
        if end > at {
            return (Kind::Word, end, 0);
        }
        let length = self.character(at).map_or(1, char::len_utf8);
        (Kind::Unknown, at + length, 0)
    }

    /// A prefixed name by its start and the place of its colon.
    fn local(&mut self, start: usize, colon: usize) -> (Kind, usize, u32) {
        let bytes = self.text.as_bytes();
        let from = colon + 1;
        let mut extra = offset(colon - start);
        // Most names are plain. What begins with `-` is not.
        let mut at = from;
        if bytes.get(from) != Some(&b'-') {
            at = run(bytes, from, NAME);
        }
        let mut end = at;
        while let Some(byte) = bytes.get(at) {
            at += match *byte {
                b'.' if at > from => {
                    at += 1;
                    continue;
                }
                b':' => 1,
                b'-' if at == from => break,
                byte if is(byte, NAME) => 1,
                b'%' => {
                    let digits = bytes.get(at + 1..at + 3);
                    match digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                        true => 3,
                        false => break,
                    }
                }
                b'\\' if bytes.get(at + 1).is_some_and(|byte| is_escapable(*byte)) => {
                    extra |= ESCAPED;
                    2
                }
                byte if byte.is_ascii() => break,
                _ => match self.character(at) {
                    Some(c) if is_start(c) || (at > from && is_inner(c)) => c.len_utf8(),
                    _ => break,
                },
            };
            end = at;
        }
        (Kind::Name, end, extra)
    }

    /// An IRI, or what else begins with `<`.
    fn less(&mut self, at: usize) -> (Kind, usize, u32) {
        let bytes = self.text.as_bytes();
        let mut end = at + 1;
        let mut escapes = 0;
        loop {
            end = run(bytes, end, IRI);
            match bytes.get(end) {
                Some(b'>') => return (Kind::Iri, end + 1, escapes),
                Some(b'\\') => {
                    let digits = match bytes.get(end + 1) {
                        Some(b'u') => 4,
                        Some(b'U') => 8,
                        _ => break,
                    };
                    let hex = bytes.get(end + 2..end + 2 + digits);
                    if !hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) {
                        break;
                    }
                    escapes = 1;
                    end += 2 + digits;
                }
                _ => break,
            }
        }
        #[cfg(test)]
        {
            self.looks += (end - at) as u64;
        }
        match (bytes.get(at + 1), bytes.get(at + 2)) {
            (Some(b'<'), Some(b'(')) => (Kind::OpenTriple, at + 3, 0),
            (Some(b'<'), _) => (Kind::OpenReified, at + 2, 0),
            (Some(b'='), _) => (Kind::LessOrEqual, at + 2, 0),
            _ => (Kind::Less, at + 1, 0),
        }
    }

    fn string(&mut self, at: usize) -> (Kind, usize, u32) {
        let bytes = self.text.as_bytes();
        let quote = bytes[at];
        let long = [quote; 3];
        if bytes[at..].starts_with(&long) {
            let mut escapes = 0;
            let mut end = at + 3;
            while let Some(length) = memchr2(quote, b'\\', &bytes[end..]) {
                end += length;
                if bytes[end] == b'\\' {
                    escapes = 1;
                    end = (end + 2).min(bytes.len());
                } else if bytes[end..].starts_with(&long) {
                    return (Kind::String, end + 3, escapes | LONG);
                } else {
                    end += 1;
                }
            }
            // `''` and what follows it, then; but the rest of the text is looked through only so
            // often.
            self.missed += 1;
            return match self.missed > MAX_MISSED {
                true => (Kind::Unclosed, bytes.len(), LONG),
                false => (Kind::String, at + 2, 0),
            };
        }
        let mut escapes = 0;
        let mut end = at + 1;
        // Strings are short, so that most need no search.
        loop {
            let Some(length) = memchr3(quote, b'\\', b'\n', &bytes[end..]) else {
                end = bytes.len();
                break;
            };
            if bytes[end..end + length].contains(&b'\r') {
                end += bytes[end..]
                    .iter()
                    .position(|byte| *byte == b'\r')
                    .unwrap_or(0);
                break;
            }
            end += length;
            match bytes[end] {
                b'\n' => break,
                b'\\' => {
                    escapes = 1;
                    if matches!(bytes.get(end + 1), None | Some(b'\n' | b'\r')) {
                        end += 1;
                        break;
                    }
                    // Behind a backslash may be a character of several bytes, none of which is
                    // looked for.
                    end += 2;
                }
                _ => return (Kind::String, end + 1, escapes),
            }
        }
        (Kind::Unclosed, end, 0)
    }

    fn language(&self, at: usize) -> (Kind, usize, u32) {
        let bytes = self.text.as_bytes();
        let letters = |from: usize| {
            let rest = bytes.get(from..).unwrap_or_default();
            let end = rest.iter().position(|byte| !byte.is_ascii_alphabetic());
            from + end.unwrap_or(rest.len())
        };
        let mut end = letters(at + 1);
        if end == at + 1 {
            return (Kind::Unknown, at + 1, 0);
        }
        while bytes.get(end) == Some(&b'-') {
            let rest = &bytes[end + 1..];
            let length = rest.iter().position(|byte| !byte.is_ascii_alphanumeric());
            match length.unwrap_or(rest.len()) {
                0 => break,
                length => end += 1 + length,
            }
        }
        if bytes[end..].starts_with(b"--") && letters(end + 2) > end + 2 {
            end = letters(end + 2);
        }
        (Kind::Language, end, 0)
    }

    fn number(&self, at: usize) -> (Kind, usize, u32) {
        let bytes = self.text.as_bytes();
        let exponent = |at: usize| {
            if !matches!(bytes.get(at), Some(b'e' | b'E')) {
                return None;
            }
            let is_signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
            let start = at + 1 + usize::from(is_signed);
            let end = run(bytes, start, DIGIT);
            (end > start).then_some(end)
        };
        let start = at + usize::from(matches!(bytes[at], b'+' | b'-'));
        let whole = run(bytes, start, DIGIT);
        let (fraction, has_fraction) = match bytes.get(whole) {
            Some(b'.') => {
                let end = run(bytes, whole + 1, DIGIT);
                (end, end > whole + 1)
            }
            _ => (whole, false),
        };
        if let Some(end) = exponent(fraction) {
            (Kind::Double, end, 0)
        } else if has_fraction {
            (Kind::Decimal, fraction, 0)
        } else if let Some(end) = exponent(whole) {
            (Kind::Double, end, 0)
        } else {
            (Kind::Integer, whole, 0)
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "texts have MAX_TEXT_BYTES at most"
)]
pub(crate) const fn offset(at: usize) -> u32 {
    at as u32
}

pub(crate) const fn span(start: usize, end: usize) -> Span {
    Span {
        start: offset(start),
        end: offset(end),
    }
}

#[cfg(test)]
#[path = "lexer_tests.rs"]
mod tests;
