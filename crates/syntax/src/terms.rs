//! What do IRIs, literals, variables and numbers say?
//!
//! IRIs are resolved, escapes replaced, and language tags put in lower case. What is so already
//! stays in the text.
//!
//! SPARQL 1.2 has codepoint escapes (`\u` and four, `\U` and eight hexadecimal digits) in strings
//! and IRIs only, each for one character that is no surrogate; what one stands for is no part of
//! another escape, and ends no string.

use std::borrow::Cow;

use memchr::memchr;
use oxilangtag::LanguageTag;
use oxiri::Iri as Checked;

use crate::chars::{NAME, PLAIN_IRI, is};
use crate::hints;
use crate::keywords::Keyword;
use crate::lexer::{ESCAPED, Kind, LONG, Token, span};
use crate::memory::{Failure, Parsed};
use crate::odd::{is_readable_iri, is_readable_language};
use crate::parser::Parser;
use crate::prologue::Prefix;
use crate::tree::{Direction, Iri, Literal, LiteralKind, Name, Variable};

/// `rdf:type`, which `a` is.
pub(crate) const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
pub(crate) const RDF_FIRST: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#first";
pub(crate) const RDF_REST: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#rest";
pub(crate) const RDF_NIL: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#nil";
pub(crate) const RDF_REIFIES: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#reifies";

/// IRIs at least as long take as much time to write as dozens of tokens to read.
const LONG_IRI_BYTES: usize = 4 << 10;

/// What is said of a prefix that is not declared, before and after its name.
const UNDECLARED: [&str; 2] = ["the prefix ", ": is not declared"];

/// The prefix that is not declared, if this is the message of an error that says so: whoever knows more
/// prefixes than the text declares can say what it may stand for.
#[must_use]
pub fn undeclared_prefix(message: &str) -> Option<&str> {
    message
        .strip_prefix(UNDECLARED[0])?
        .strip_suffix(UNDECLARED[1])
}

/// True of absolute IRIs that are surely valid and that no base changes: a scheme, then plain
/// characters; after `//` a host of letters, digits, `.` and `-`; one `#` at most; no segment
/// that begins with a dot.
#[must_use]
pub fn is_plain_iri(iri: &[u8]) -> bool {
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let mut at = 0;
    while at < iri.len() && is_scheme(iri[at]) {
        at += 1;
    }
    if at == 0 || !iri[0].is_ascii_alphabetic() || iri.get(at) != Some(&b':') {
        return false;
    }
    at += 1;
    match iri.get(at) {
        None | Some(b'.') => return false,
        Some(b'/') => {
            if iri.get(at + 1) != Some(&b'/') {
                return false;
            }
            at += 2;
            let host = at;
            while at < iri.len() && (iri[at].is_ascii_alphanumeric() || b".-".contains(&iri[at])) {
                at += 1;
            }
            if at == host || (at < iri.len() && !matches!(iri[at], b'/' | b'?' | b'#')) {
                return false;
            }
        }
        Some(_) => (),
    }
    let mut fragments = 0;
    let mut before = 0;
    for byte in &iri[at..] {
        if !is(*byte, PLAIN_IRI) || (before == b'/' && *byte == b'.') {
            return false;
        }
        fragments += u32::from(*byte == b'#');
        before = *byte;
    }
    fragments <= 1
}

/// What a number is.
pub(crate) const fn number_kind(kind: Kind) -> Option<LiteralKind<'static>> {
    match kind {
        Kind::Integer => Some(LiteralKind::Integer),
        Kind::Decimal => Some(LiteralKind::Decimal),
        Kind::Double => Some(LiteralKind::Double),
        _ => None,
    }
}

/// The prefix and the local part of a name.
fn parts_of(token: Token, written: &str) -> (&str, &str) {
    let colon = (token.extra & !ESCAPED) as usize;
    (&written[..colon], &written[colon + 1..])
}

impl<'t> Parser<'t, '_> {
    /// Whether an IRI is next, in either way of writing it.
    pub(crate) fn at_iri(&self) -> bool {
        matches!(self.token.kind, Kind::Iri | Kind::Name)
    }

    /// An IRI.
    pub(crate) fn iri(&mut self, what: &str) -> Parsed<Iri<'t>> {
        if !self.at_iri() {
            return Err(self.unexpected(what, &["an IRI"]));
        }
        let span = self.token.span;
        let value = self.iri_value(self.token)?;
        self.advance()?;
        Ok(Iri { span, value })
    }

    /// An IRI or a variable.
    pub(crate) fn name(&mut self, what: &str) -> Parsed<Name<'t>> {
        match self.token.kind {
            Kind::Variable => Ok(Name::Variable(self.variable(what)?)),
            Kind::Iri | Kind::Name => Ok(Name::Iri(self.iri(what)?)),
            _ => Err(self.unexpected(what, &["a variable", "an IRI"])),
        }
    }

    /// A variable.
    pub(crate) fn variable(&mut self, what: &str) -> Parsed<Variable<'t>> {
        if self.token.kind != Kind::Variable {
            return Err(self.unexpected(what, &["a variable"]));
        }
        let span = self.token.span;
        let name = &self.token.of(self.text)[1..];
        self.advance()?;
        Ok(Variable { span, name })
    }

    fn iri_value(&mut self, token: Token) -> Parsed<Cow<'t, str>> {
        let written = token.of(self.text);
        let mut value = String::new();
        if token.kind == Kind::Name {
            let (name, local) = parts_of(token, written);
            let Some(prefix) = self.names.prefix(name, self.visible) else {
                return Err(self.undeclared(token, name));
            };
            let most = prefix.iri.len() + local.len();
            self.memory.take(most)?;
            value.reserve_exact(most);
            self.write_name(token, (prefix, local), &mut value)?;
            self.poll_after(&value)?;
            return Ok(Cow::Owned(value));
        }
        if token.kind == Kind::Iri {
            let inside = &written[1..written.len() - 1];
            if is_plain_iri(inside.as_bytes()) {
                return Ok(Cow::Borrowed(inside));
            }
            let has_base = self.names.base(self.visible).is_some();
            if !has_base && token.extra == 0 {
                return match Checked::parse(inside) {
                    Ok(_) => Ok(Cow::Borrowed(inside)),
                    Err(_) if self.takes_odd(inside) => Ok(Cow::Borrowed(inside)),
                    Err(error) => Err(self.no_iri(token, &error.to_string())),
                };
            }
        }
        let most = self.most_bytes(token);
        self.memory.take(most)?;
        value.reserve_exact(most);
        self.write_iri(token, &mut value)?;
        Ok(Cow::Owned(value))
    }

    /// Most bytes that an IRI has when it is resolved; escapes and dots only make it shorter.
    pub(crate) fn most_bytes(&self, token: Token) -> usize {
        let written = token.of(self.text);
        if token.kind == Kind::Iri {
            let base = self.names.base(self.visible);
            return written.len() + base.map_or(0, |base| base.as_str().len());
        }
        let (name, local) = parts_of(token, written);
        let prefix = self.names.prefix(name, self.visible);
        prefix.map_or(0, |prefix| prefix.iri.len()) + local.len()
    }

    /// Writes an IRI, resolved, over what is in `out`.
    pub(crate) fn write_iri(&mut self, token: Token, out: &mut String) -> Parsed<()> {
        self.resolve(token, out)?;
        self.poll_after(out)
    }

    /// Asks whether to give up after a long IRI: those of prefixes and bases are written for tokens
    /// of a few bytes.
    fn poll_after(&mut self, written: &str) -> Parsed<()> {
        match written.len() {
            0..LONG_IRI_BYTES => Ok(()),
            _ => self.poll(),
        }
    }

    fn resolve(&self, token: Token, out: &mut String) -> Parsed<()> {
        out.clear();
        let written = token.of(self.text);
        if token.kind == Kind::Name {
            let (name, local) = parts_of(token, written);
            return match self.names.prefix(name, self.visible) {
                Some(prefix) => self.write_name(token, (prefix, local), out),
                None => Err(self.undeclared(token, name)),
            };
        }
        let inside = &written[1..written.len() - 1];
        if is_plain_iri(inside.as_bytes()) {
            out.push_str(inside);
            return Ok(());
        }
        let mut unescaped = String::new();
        let reference = match token.extra {
            0 => inside,
            _ => {
                self.unescape(token.span.start as usize + 1, inside, &mut unescaped)?;
                &unescaped
            }
        };
        let base = self.names.base(self.visible);
        let resolved = match base {
            Some(base) => base.resolve_into(reference, out),
            None => Checked::parse(reference).map(|_| out.push_str(reference)),
        };
        let Err(error) = resolved else {
            return Ok(());
        };
        out.clear();
        match base {
            Some(base) => base.resolve_into_unchecked(reference, out),
            None => out.push_str(reference),
        }
        match self.takes_odd(out) {
            true => Ok(()),
            false => Err(self.no_iri(token, &error.to_string())),
        }
    }

    /// Whether this text may stand for an IRI here, though it is none: data may hold it.
    fn takes_odd(&self, iri: &str) -> bool {
        !self.inserts && is_readable_iri(iri)
    }

    fn no_iri(&self, token: Token, reason: &str) -> Failure {
        let shown = hints::shown(token.of(self.text));
        let is_relative = reason.contains("No scheme");
        let hint = is_relative
            .then(|| "relative IRIs need a base: BASE <http://...> before the query".to_owned());
        self.wrong(token.span, format!("{shown} is not an IRI: {reason}"), hint)
    }

    fn write_name(
        &self,
        token: Token,
        (prefix, local): (&Prefix, &str),
        out: &mut String,
    ) -> Parsed<()> {
        out.push_str(&prefix.iri);
        if token.extra & ESCAPED == 0 {
            out.push_str(local);
            let is_plain = |byte: &u8| is(*byte, NAME) || *byte == b'.';
            if prefix.is_plain && local.as_bytes().iter().all(is_plain) {
                return Ok(());
            }
        } else {
            let mut rest = local;
            while let Some(at) = memchr(b'\\', rest.as_bytes()) {
                out.push_str(&rest[..at]);
                // What is escaped is one byte, and may be a backslash no more.
                out.push_str(&rest[at + 1..at + 2]);
                rest = &rest[at + 2..];
            }
            out.push_str(rest);
        }
        match Checked::parse(out.as_str()) {
            Ok(_) => Ok(()),
            Err(_) if self.takes_odd(out) => Ok(()),
            Err(error) => {
                let (shown, written) = (hints::shown(out), token.of(self.text));
                let message = format!("{written} is <{shown}>, which is not an IRI: {error}");
                Err(self.wrong(token.span, message, None))
            }
        }
    }

    fn undeclared(&self, token: Token, name: &str) -> Failure {
        let span = span(
            token.span.start as usize,
            token.span.start as usize + name.len() + 1,
        );
        let usual = hints::usual_iri(name);
        let hint = match (usual, self.names.like(name)) {
            _ if matches!(name, "http" | "https" | "urn" | "mailto" | "ftp") => {
                Some("IRIs stand between < and >".to_owned())
            }
            (Some(iri), _) => Some(format!(
                "PREFIX {name}: <{iri}> before the query declares it"
            )),
            (None, Some(like)) => Some(format!("did you mean {like}:?")),
            (None, None) if name.is_empty() => {
                Some("PREFIX : <http://...> before the query declares it".to_owned())
            }
            (None, None) => None,
        };
        let name = hints::shown(name);
        let [before, after] = UNDECLARED;
        self.wrong(span, format!("{before}{name}{after}"), hint)
    }

    /// Whether a literal is next.
    pub(crate) fn at_literal(&self) -> bool {
        match self.token.kind {
            Kind::String | Kind::Integer | Kind::Decimal | Kind::Double => true,
            Kind::Word => matches!(self.keyword, Keyword::True | Keyword::False),
            _ => false,
        }
    }

    /// A literal, which is next.
    pub(crate) fn literal(&mut self) -> Parsed<Literal<'t>> {
        let token = self.token;
        if let Some(kind) = number_kind(token.kind) {
            self.advance()?;
            let value = Cow::Borrowed(token.of(self.text));
            return Ok(Literal {
                span: token.span,
                value,
                kind,
            });
        }
        if token.kind == Kind::Word {
            let value = match self.keyword {
                Keyword::True => "true",
                _ => "false",
            };
            self.advance()?;
            return Ok(Literal {
                span: token.span,
                value: Cow::Borrowed(value),
                kind: LiteralKind::Boolean,
            });
        }
        let value = self.string_value(token)?;
        self.advance()?;
        let kind = match self.token.kind {
            Kind::Language => self.language()?,
            Kind::Datatype => {
                self.advance()?;
                LiteralKind::Typed(self.iri("the datatype of a literal")?)
            }
            _ => LiteralKind::String,
        };
        let span = span(token.span.start as usize, self.end as usize);
        Ok(Literal { span, value, kind })
    }

    /// A string, with nothing behind it.
    pub(crate) fn string(&mut self, what: &str) -> Parsed<Cow<'t, str>> {
        if self.token.kind != Kind::String {
            return Err(self.unexpected(what, &["a string"]));
        }
        let value = self.string_value(self.token)?;
        self.advance()?;
        Ok(value)
    }

    fn string_value(&mut self, token: Token) -> Parsed<Cow<'t, str>> {
        let (start, inside) = self.inside_string(token);
        if token.extra & 1 == 0 {
            return Ok(Cow::Borrowed(inside));
        }
        self.memory.take(inside.len())?;
        let mut value = String::with_capacity(inside.len());
        self.unescape(start, inside, &mut value)?;
        Ok(Cow::Owned(value))
    }

    fn inside_string(&self, token: Token) -> (usize, &'t str) {
        let quotes = if token.extra & LONG == 0 { 1 } else { 3 };
        let written = token.of(self.text);
        let inside = &written[quotes..written.len() - quotes];
        (token.span.start as usize + quotes, inside)
    }

    /// Writes what a string says over what is in `out`.
    pub(crate) fn write_string(&self, token: Token, out: &mut String) -> Parsed<()> {
        out.clear();
        let (start, inside) = self.inside_string(token);
        if token.extra & 1 == 0 {
            out.push_str(inside);
            return Ok(());
        }
        self.unescape(start, inside, out)
    }

    /// Appends a part of the text, which is at `start`, with its escapes replaced.
    fn unescape(&self, start: usize, part: &str, out: &mut String) -> Parsed<()> {
        let bytes = part.as_bytes();
        let mut at = 0;
        while let Some(length) = memchr(b'\\', &bytes[at..]) {
            let escape = at + length;
            out.push_str(&part[at..escape]);
            let wrong = |length: usize, message: &str| {
                let end = (escape + length).min(part.len());
                self.wrong(span(start + escape, start + end), message.to_owned(), None)
            };
            let (c, length) = match bytes.get(escape + 1) {
                Some(b't') => ('\t', 2),
                Some(b'b') => ('\u{8}', 2),
                Some(b'n') => ('\n', 2),
                Some(b'r') => ('\r', 2),
                Some(b'f') => ('\u{c}', 2),
                Some(byte @ (b'"' | b'\'' | b'\\')) => (char::from(*byte), 2),
                Some(byte @ (b'u' | b'U')) => {
                    let length = if *byte == b'u' { 6 } else { 10 };
                    let digits = bytes.get(escape + 2..escape + length);
                    let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
                    let Some(digits) = digits else {
                        let digits = length - 2;
                        let message = format!("an escape that has not {digits} hexadecimal digits");
                        return Err(wrong(2, &message));
                    };
                    let value = digits.iter().fold(0_u32, |value, digit| {
                        let digit = char::from(*digit).to_digit(16);
                        value.wrapping_shl(4) | digit.unwrap_or(0)
                    });
                    match char::from_u32(value) {
                        Some(c) => (c, length),
                        None => return Err(wrong(length, "an escape that is no character")),
                    }
                }
                _ => {
                    let end = start + escape + 1;
                    let message = "an escape that SPARQL does not have".to_owned();
                    let hint = r"a backslash is written \\; there are \t, \b, \n, \r, \f, quotes, \uXXXX and \UXXXXXXXX";
                    return Err(self.wrong(
                        span(start + escape, end),
                        message,
                        Some(hint.to_owned()),
                    ));
                }
            };
            out.push(c);
            at = escape + length;
        }
        out.push_str(&part[at..]);
        Ok(())
    }

    fn language(&mut self) -> Parsed<LiteralKind<'t>> {
        let (written, direction) = self.language_parts()?;
        let tag = match written.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => {
                self.memory.take(written.len())?;
                Cow::Owned(written.to_ascii_lowercase())
            }
            false => Cow::Borrowed(written),
        };
        if !self.takes_language(&tag) {
            let shown = hints::shown(written);
            let message = format!("{shown} is not a language tag");
            return Err(self.wrong(self.token.span, message, None));
        }
        self.advance()?;
        Ok(LiteralKind::Language { tag, direction })
    }

    /// Writes the language that is next, in lower case, over what is in `out`.
    pub(crate) fn write_language(&mut self, out: &mut String) -> Parsed<Option<Direction>> {
        out.clear();
        let (written, direction) = self.language_parts()?;
        out.push_str(written);
        out.make_ascii_lowercase();
        if !self.takes_language(out) {
            let shown = hints::shown(written);
            let message = format!("{shown} is not a language tag");
            return Err(self.wrong(self.token.span, message, None));
        }
        self.advance()?;
        Ok(direction)
    }

    /// Whether this is a language tag, or may stand for one here.
    fn takes_language(&self, tag: &str) -> bool {
        LanguageTag::parse(tag).is_ok() || (!self.inserts && is_readable_language(tag))
    }

    /// The tag as it is written, and the direction, of the token that is next.
    fn language_parts(&self) -> Parsed<(&'t str, Option<Direction>)> {
        let written = &self.token.of(self.text)[1..];
        let Some((tag, direction)) = written.split_once("--") else {
            return Ok((written, None));
        };
        let direction = match direction {
            "ltr" => Direction::Ltr,
            "rtl" => Direction::Rtl,
            _ => {
                let message = format!("--{direction} is no base direction");
                let hint = "base directions are --ltr and --rtl".to_owned();
                return Err(self.wrong(self.token.span, message, Some(hint)));
            }
        };
        Ok((tag, Some(direction)))
    }
}

#[cfg(test)]
mod tests {
    use super::is_plain_iri;

    #[test]
    fn plain_iris_are_valid_and_absolute() {
        for iri in [
            "http://e/a",
            "http://e",
            "https://e.org/a/b?c=d#e",
            "urn:x:y",
            "mailto:a@b.c",
            "tag:e,2000:(x)",
            "http://e/a/b.c",
        ] {
            assert!(is_plain_iri(iri.as_bytes()), "{iri}");
            let base = oxiri::Iri::parse("http://base/x/y").expect("an IRI");
            assert_eq!(base.resolve(iri).expect("an IRI").as_str(), iri);
        }
        for iri in [
            "",
            "a",
            "a:",
            ":a",
            "1a:b",
            "/a",
            "a/b:c",
            "http:/a",
            "http:///a",
            "http://e:80/",
            "http://u@e/",
            "http://[::1]/",
            "http://e/%41",
            "http://e/a/../b",
            "http://e/./a",
            "urn:.",
            "http://e/#a#b",
            "http://e/\u{e9}",
            "http://e/a b",
            "http://e/<",
        ] {
            assert!(!is_plain_iri(iri.as_bytes()), "{iri}");
        }
    }
}
