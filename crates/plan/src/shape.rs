//! What is left of a query's text when its constants are cut out?
//!
//! Two texts of the same shape differ only in constants between the outermost braces, in white
//! space and in comments. Cut are absolute IRIs, the local parts of prefixed names, short
//! strings without escapes, and unsigned integers and decimals; each is cut only where its form
//! is so plain that any other of that form would be parsed alike. Everything else stays as it
//! is, so a token that this lexer is not sure of costs a cache hit, never a wrong plan.

use memchr::{memchr2, memchr3, memmem};

/// What kind of token an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ArgumentKind {
    /// What is between `<` and `>`.
    Iri,
    /// What follows the colon of a prefixed name.
    Local,
    /// What is between the quotes.
    Text,
    /// Digits.
    Integer,
    /// Digits, a point, digits.
    Decimal,
}

/// Arguments above which a text is not worth caching.
const MAX_ARGUMENTS: usize = 512;
/// Precedes the kind of a cut token; no UTF-8 text holds this byte.
const MARK: u8 = 0xff;

/// A constant cut out of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) kind: ArgumentKind,
}

impl Argument {
    pub(crate) fn of<'a>(&self, text: &'a str) -> &'a str {
        &text[self.start as usize..self.end as usize]
    }
}

/// A text taken apart.
#[derive(Debug)]
pub(crate) struct Shape {
    /// The text without its arguments, with a mark and their kind in each's place.
    pub(crate) key: Vec<u8>,
    pub(crate) arguments: Vec<Argument>,
}

/// Takes a text apart in one pass; `None` if it has too many arguments.
pub(crate) fn shape_of(text: &str) -> Option<Shape> {
    let mut lexer = Lexer {
        bytes: text.as_bytes(),
        at: 0,
        kept: 0,
        depth: 0,
        names_datatype: false,
        shape: Shape {
            key: Vec::with_capacity(text.len() + 16),
            arguments: Vec::with_capacity(8),
        },
    };
    while lexer.at < lexer.bytes.len() {
        lexer.token();
    }
    lexer.flush(lexer.at);
    (lexer.shape.arguments.len() <= MAX_ARGUMENTS).then_some(lexer.shape)
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    /// From here to `at` the text is as the shape has it, and still to be copied there.
    kept: usize,
    /// Braces open.
    depth: u32,
    /// After `^^`, where an IRI is a datatype.
    names_datatype: bool,
    shape: Shape,
}

/// Classes of bytes, looked up by byte.
const NAME: u8 = 1;
const IRI: u8 = 2;
const PLAIN_IRI: u8 = 4;
const SPACE: u8 = 8;
const CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let byte = index as u8;
        let mut class = 0;
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || byte >= 0x80 {
            class |= NAME;
        }
        if byte > 0x20
            && !matches!(
                byte,
                b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\'
            )
        {
            class |= IRI;
        }
        if byte.is_ascii_alphanumeric() || byte == b'#' || is_reserved(byte) {
            class |= PLAIN_IRI;
        }
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            class |= SPACE;
        }
        table[index] = class;
        index += 1;
    }
    table
}

/// What an IRI's path and query may hold besides letters and digits, short of escapes.
const fn is_reserved(byte: u8) -> bool {
    matches!(
        byte,
        b'-' | b'.'
            | b'_'
            | b'~'
            | b'!'
            | b'$'
            | b'&'
            | b'\''
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
            | b':'
            | b'@'
            | b'/'
            | b'?'
    )
}

fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

impl Lexer<'_> {
    fn token(&mut self) {
        let byte = self.bytes[self.at];
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b'#' => return self.space(),
            b'<' => self.iri(),
            b'"' | b'\'' => self.string(byte),
            b'?' | b'$' | b'@' => self.copy_name(self.at + 1),
            b'_' if self.peek(1) == Some(b':') => self.copy_name(self.at + 2),
            b'^' if self.peek(1) == Some(b'^') => {
                self.copy(self.at + 2);
                self.names_datatype = true;
                return;
            }
            b'{' => {
                self.depth += 1;
                self.copy(self.at + 1);
            }
            b'}' => {
                self.depth = self.depth.saturating_sub(1);
                self.copy(self.at + 1);
            }
            b'0'..=b'9' => self.number(),
            b':' => self.local(),
            b'-' => self.copy(self.at + 1),
            _ if is(byte, NAME) => self.word(),
            _ => self.copy(self.at + 1),
        }
        self.names_datatype = false;
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn copy(&mut self, end: usize) {
        self.at = end;
    }

    fn flush(&mut self, end: usize) {
        self.shape
            .key
            .extend_from_slice(&self.bytes[self.kept..end]);
    }

    /// Cuts `start..end` and goes on after it.
    fn cut(&mut self, start: usize, end: usize, kind: ArgumentKind) {
        self.flush(start);
        self.shape.key.extend_from_slice(&[MARK, kind as u8]);
        (self.at, self.kept) = (end, end);
        let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) else {
            unreachable!("texts are far smaller than 4 GiB");
        };
        self.shape.arguments.push(Argument { start, end, kind });
    }

    fn may_cut(&self) -> bool {
        self.depth > 0 && !self.names_datatype
    }

    /// The end of the run of bytes of a class.
    fn run(&self, from: usize, class: u8) -> usize {
        self.bytes[from..]
            .iter()
            .position(|byte| !is(*byte, class))
            .map_or(self.bytes.len(), |length| from + length)
    }

    /// White space and comments, as one space.
    fn space(&mut self) {
        let is_one_space = self.bytes[self.at] == b' '
            && self
                .peek(1)
                .is_none_or(|next| next != b'#' && !is(next, SPACE));
        if is_one_space {
            self.at += 1;
            return;
        }
        self.flush(self.at);
        self.shape.key.push(b' ');
        loop {
            match self.bytes.get(self.at) {
                Some(b'#') => {
                    self.at = memchr2(b'\n', b'\r', &self.bytes[self.at..])
                        .map_or(self.bytes.len(), |length| self.at + length);
                }
                Some(byte) if is(*byte, SPACE) => self.at = self.run(self.at, SPACE),
                _ => break,
            }
        }
        self.kept = self.at;
    }

    /// An IRI, or the sign `<` where what follows is none.
    fn iri(&mut self) {
        let start = self.at + 1;
        let end = self.run(start, IRI);
        if self.bytes.get(end) != Some(&b'>') {
            return self.copy(start);
        }
        if self.may_cut() && !self.calls(end + 1) && is_plain_iri(&self.bytes[start..end]) {
            self.cut(start, end, ArgumentKind::Iri);
        }
        self.copy(end + 1);
    }

    /// True if a parenthesis follows: then the name before it may be that of a function.
    fn calls(&self, from: usize) -> bool {
        let next = self.run(from, SPACE);
        matches!(self.bytes.get(next), Some(b'(' | b'#'))
    }

    fn string(&mut self, quote: u8) {
        let start = self.at + 1;
        if self.bytes[start..].starts_with(&[quote, quote]) {
            return self.long_string(quote);
        }
        let rest = &self.bytes[start..];
        match memchr3(quote, b'\\', b'\n', rest) {
            Some(length) if rest[length] == quote => {
                let end = start + length;
                if self.may_cut() && !rest[..length].contains(&b'\r') {
                    self.cut(start, end, ArgumentKind::Text);
                }
                self.copy(end + 1);
            }
            Some(length) if rest[length] == b'\\' => self.string_with_escapes(quote),
            // Not closed on its line, which is an error that the parser will tell.
            _ => self.copy(start),
        }
    }

    fn string_with_escapes(&mut self, quote: u8) {
        let mut end = self.at + 1;
        while let Some(byte) = self.bytes.get(end) {
            match *byte {
                b'\\' => end += 2,
                byte if byte == quote => {
                    end += 1;
                    break;
                }
                _ => end += 1,
            }
        }
        self.copy(end.min(self.bytes.len()));
    }

    fn long_string(&mut self, quote: u8) {
        let mut end = self.at + 3;
        while end < self.bytes.len() {
            if self.bytes[end] == b'\\' {
                end += 2;
            } else if self.bytes[end..].starts_with(&[quote, quote, quote]) {
                end += 3;
                break;
            } else {
                end += 1;
            }
        }
        self.copy(end.min(self.bytes.len()));
    }

    /// What follows the sign of a variable, blank node or language tag.
    fn copy_name(&mut self, from: usize) {
        let from = from.min(self.bytes.len());
        // A variable's name has no `-`, but then what follows is copied as well.
        let end = if matches!(self.bytes[self.at], b'?' | b'$') {
            self.bytes[from..]
                .iter()
                .position(|byte| !is(*byte, NAME) || *byte == b'-')
                .map_or(self.bytes.len(), |length| from + length)
        } else {
            self.run(from, NAME)
        };
        self.copy(end);
    }

    fn number(&mut self) {
        let start = self.at;
        let digits = |from: usize| {
            self.bytes[from..]
                .iter()
                .position(|byte| !byte.is_ascii_digit())
                .map_or(self.bytes.len(), |length| from + length)
        };
        let mut end = digits(start);
        let mut kind = ArgumentKind::Integer;
        if self.bytes.get(end) == Some(&b'.') {
            let decimals = digits(end + 1);
            if decimals > end + 1 {
                end = decimals;
                kind = ArgumentKind::Decimal;
            } else if matches!(self.bytes.get(end + 1), Some(b'e' | b'E')) {
                return self.copy(end + 1);
            }
        }
        let goes_on = self
            .bytes
            .get(end)
            .is_some_and(|byte| is(*byte, NAME) && *byte != b'-');
        let follows_point = start > 0 && self.bytes[start - 1] == b'.';
        if goes_on {
            let end = self.run(start, NAME).max(end);
            self.copy(end);
        } else if self.may_cut() && !follows_point {
            self.cut(start, end, kind);
        } else {
            self.copy(end);
        }
    }

    /// A keyword, a function, or the prefix of a name.
    fn word(&mut self) {
        let mut end = self.run(self.at, NAME);
        // A prefix may hold dots, not at its end.
        let mut further = end;
        while self.bytes.get(further) == Some(&b'.') {
            let next = self.run(further + 1, NAME);
            if next > further + 1 {
                end = next;
            }
            further = next;
        }
        let first = self.run(self.at, NAME);
        if self.bytes.get(end) == Some(&b':') {
            self.copy(end);
            self.local();
        } else {
            self.copy(first);
        }
    }

    /// A colon and the local part of a prefixed name.
    fn local(&mut self) {
        let start = self.at + 1;
        let mut end = start;
        let mut is_simple = true;
        while let Some(byte) = self.bytes.get(end) {
            match *byte {
                byte if is(byte, NAME) => {
                    is_simple &= byte < 0x80;
                    end += 1;
                }
                b'.' | b':' | b'%' => {
                    is_simple &= *byte == b'.';
                    end += 1;
                }
                b'\\' => {
                    is_simple = false;
                    end += 2;
                }
                _ => break,
            }
        }
        end = end.min(self.bytes.len());
        while end > start && self.bytes[end - 1] == b'.' {
            end -= 1;
        }
        let local = &self.bytes[start..end];
        is_simple &= !local.is_empty() && local[0] != b'-' && !local.contains(&b'.');
        if is_simple && self.may_cut() && !self.calls(end) {
            self.cut(start, end, ArgumentKind::Local);
        } else {
            self.copy(end);
        }
    }
}

/// True of absolute IRIs that are surely valid and that no base changes: a scheme, then plain
/// characters; after `//` a host of letters, digits, `.` and `-`; one `#` at most; no segment
/// that begins with a dot.
pub(crate) fn is_plain_iri(iri: &[u8]) -> bool {
    let Some(colon) = iri.iter().position(|byte| *byte == b':') else {
        return false;
    };
    let (scheme, rest) = (&iri[..colon], &iri[colon + 1..]);
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    if !is_scheme || rest.is_empty() || !rest.iter().all(|byte| is(*byte, PLAIN_IRI)) {
        return false;
    }
    let path = match rest.strip_prefix(b"//") {
        Some(rest) => {
            let length = rest
                .iter()
                .position(|byte| matches!(byte, b'/' | b'?' | b'#'))
                .unwrap_or(rest.len());
            let is_host = length > 0
                && rest[..length]
                    .iter()
                    .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
            if !is_host {
                return false;
            }
            &rest[length..]
        }
        None if matches!(rest[0], b'/' | b'.') => return false,
        None => rest,
    };
    memmem::find(path, b"/.").is_none() && path.iter().filter(|byte| **byte == b'#').count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuts(text: &str) -> Vec<&str> {
        let shape = shape_of(text).expect("few arguments");
        shape
            .arguments
            .iter()
            .map(|argument| argument.of(text))
            .collect()
    }

    #[test]
    fn constants_inside_braces_are_cut() {
        assert_eq!(
            cuts(
                r#"PREFIX ex: <http://e/> SELECT (1 AS ?o) { ex:a :b <http://e/c>, "d", 'e'@en, 5, 6.50 . }"#
            ),
            ["a", "b", "http://e/c", "d", "e", "5", "6.50"]
        );
    }

    #[test]
    fn what_is_not_plain_stays() {
        for text in [
            "{ ?x1 _:b2 ?y }",
            "{ ?x ?y 1e5, 1.e5, 1.5E3, .5 }",
            r#"{ ?x ?y "a\"b 5", """c "5" d""", '''5''' }"#,
            "{ ?x ?y <relative>, <http://e/%41>, <http://e/a/../b>, <http://e:80/> }",
            "{ # 5 <http://e/a> \"x\"\n ?x ?y ?z }",
            "{ ?x ?y ex:a%20b, ex:c\\,d, ex:e.f, ex:é, ex: }",
            "{ FILTER(ex:function(?x) && xsd:integer (?x)) }",
            "{ FILTER(?a < ?b && ?c > ?d) }",
            "SELECT * WHERE {} LIMIT 5 OFFSET 6",
        ] {
            assert_eq!(cuts(text), Vec::<&str>::new(), "{text}");
        }
    }

    #[test]
    fn datatypes_and_tags_stay_in_the_shape() {
        assert_eq!(
            cuts("{ ?x ?y '5'^^xsd:integer, '6' ^^ <http://e/t>, '7'@en-gb }"),
            ["5", "6", "7"]
        );
    }

    #[test]
    fn a_sign_is_not_part_of_a_number() {
        assert_eq!(cuts("{ FILTER(?x>-5 && ?x<+6.0) }"), ["5", "6.0"]);
    }

    #[test]
    fn a_name_ends_before_a_point() {
        assert_eq!(cuts("{ ?x a ex:T.?y ex:p-q 5.}"), ["T", "p-q", "5"]);
    }

    #[test]
    fn white_space_and_comments_do_not_matter() {
        let key = |text| shape_of(text).expect("few arguments").key;
        assert_eq!(
            key("SELECT * { ?x :p 5 }"),
            key("SELECT  *\n# comment {\n{ ?x\t:p 7\r\n}")
        );
        assert_ne!(key("SELECT * { ?x :p 5 }"), key("SELECT * { ?x :p 5.0 }"));
        assert_ne!(
            key("SELECT * { ?x :p '5' }"),
            key("SELECT * { ?x :p \"5\" }")
        );
    }

    #[test]
    fn odd_texts_do_not_overrun() {
        for text in [
            "{ '", "{ \"\\", "{ '''\\", "{ ex:\\", "{ <", "?", "_:", "{ ^^", "{ 5.", "#",
        ] {
            shape_of(text);
        }
    }
}
