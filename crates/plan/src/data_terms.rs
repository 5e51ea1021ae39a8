//! How are the terms and the declarations of a block of data written?
//!
//! As in SPARQL's grammar, the longest token that fits is taken. Terms get the forms that the
//! parser of patterns gives them: IRIs are resolved as it does, language tags are in lower case,
//! and a literal of `xsd:string` is a simple one.

use std::mem::size_of;

use memchr::memchr;
use oxilangtag::LanguageTag;
use oxiri::{Iri, IriParseError};
use oxrdf::vocab::{rdf, xsd};
use rustc_hash::FxHashMap;

use crate::error::PlanError;
use crate::update_text::place_of;

/// Most characters of a text that a message shows.
const MOST_SHOWN: usize = 40;
/// Bytes that a declaration takes beside its IRI: its entries in the tables, which may just have
/// doubled.
const DECLARATION_BYTES: usize = 4 * (size_of::<(&str, Vec<(u32, Box<str>)>)>() + 2 * 24);

/// Takes so many more bytes of memory for an update; false if there are not as many.
pub(crate) type Reserve<'r> = dyn FnMut(usize) -> bool + Send + 'r;

/// The bases and prefixes that a request declares, each with the number of the declaration. An
/// operation sees those up to a number: nothing is copied for the next operation.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Declarations<'a> {
    bases: Vec<(u32, Iri<String>)>,
    prefixes: FxHashMap<&'a str, Vec<(u32, Box<str>)>>,
    count: u32,
}

impl<'a> Declarations<'a> {
    pub(crate) fn new(base: Option<&str>) -> Result<Self, PlanError> {
        let mut declarations = Self::default();
        if let Some(base) = base {
            let parsed = Iri::parse(base.to_owned()).map_err(|error| PlanError::Base {
                iri: base.to_owned(),
                message: error.to_string(),
            })?;
            declarations.bases.push((0, parsed));
        }
        Ok(declarations)
    }

    /// Declarations so far: what an operation that follows now sees.
    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    /// Reads the declarations of a prologue, which is all of `text[..end]` from `start` on.
    pub(crate) fn read(
        &mut self,
        text: &'a str,
        (start, end): (usize, usize),
        reserve: &mut Reserve<'_>,
    ) -> Result<(), PlanError> {
        let mut cursor = Cursor::new(&text[..end], start);
        let mut object = Object::default();
        loop {
            cursor.skip_space();
            if cursor.peek().is_none() {
                return Ok(());
            }
            let word = cursor.word();
            let is = |keyword: &str| text[word.clone()].eq_ignore_ascii_case(keyword);
            let (is_base, is_prefix) = (is("BASE"), is("PREFIX"));
            if !is_base && !is_prefix {
                return Err(cursor.unexpected("PREFIX, BASE or an operation"));
            }
            cursor.at = word.end;
            cursor.skip_space();
            let name = match is_prefix {
                true => Some(cursor.declared_prefix()?),
                false => None,
            };
            cursor.skip_space();
            if cursor.peek() != Some(b'<') {
                return Err(cursor.unexpected("an IRI"));
            }
            let scope = Scope {
                declarations: self,
                visible: self.count,
            };
            cursor.iri(scope, &mut object)?;
            if !reserve(DECLARATION_BYTES + object.value.len()) {
                return Err(PlanError::MemoryRefused);
            }
            self.count += 1;
            let iri = object.value.as_str();
            match name {
                Some(name) => {
                    let known = self.prefixes.entry(name).or_default();
                    known.push((self.count, iri.into()));
                }
                None => {
                    let base = Iri::parse_unchecked(iri.to_owned());
                    self.bases.push((self.count, base));
                }
            }
        }
    }
}

/// The declarations that an operation sees.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'p, 'a> {
    pub(crate) declarations: &'p Declarations<'a>,
    pub(crate) visible: u32,
}

impl<'p> Scope<'p, '_> {
    fn last<T>(self, declared: &'p [(u32, T)]) -> Option<&'p T> {
        let end = declared.partition_point(|(number, _)| *number <= self.visible);
        Some(&declared[..end].last()?.1)
    }

    fn base(self) -> Option<&'p Iri<String>> {
        self.last(&self.declarations.bases)
    }

    fn prefix(self, name: &str) -> Option<&'p str> {
        let declared = self.declarations.prefixes.get(name)?;
        self.last(declared).map(|iri| &**iri)
    }
}

/// What kind of term an [`Object`] holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    #[default]
    Iri,
    /// A blank node by its label.
    Label,
    /// A blank node by its number.
    Anonymous(u64),
    Simple,
    Language,
    Typed,
    /// A literal of this datatype.
    Known(&'static str),
}

/// The term that was read last. Its buffers are used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Object {
    pub(crate) kind: ObjectKind,
    /// The IRI, label or lexical form.
    pub(crate) value: String,
    /// The language or the datatype.
    pub(crate) suffix: String,
}

impl Object {
    /// Bytes of its buffers.
    pub(crate) fn capacity(&self) -> usize {
        self.value.capacity() + self.suffix.capacity()
    }

    pub(crate) const fn is_literal(&self) -> bool {
        use ObjectKind::{Known, Language, Simple, Typed};
        matches!(self.kind, Simple | Language | Typed | Known(_))
    }

    fn set(&mut self, kind: ObjectKind, value: &str) {
        self.kind = kind;
        self.value.clear();
        self.value.push_str(value);
    }
}

/// A place in a text.
#[derive(Clone)]
pub(crate) struct Cursor<'t> {
    pub(crate) text: &'t str,
    pub(crate) at: usize,
}

impl<'t> Cursor<'t> {
    pub(crate) const fn new(text: &'t str, at: usize) -> Self {
        Self { text, at }
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn character(&self, at: usize) -> Option<char> {
        match self.text.as_bytes().get(at)? {
            byte if byte.is_ascii() => Some(char::from(*byte)),
            _ => self.text[at..].chars().next(),
        }
    }

    /// Passes over white space and comments.
    pub(crate) fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                b'#' => {
                    let comment = &bytes[self.at..];
                    let end = memchr::memchr2(b'\n', b'\r', comment);
                    self.at += end.unwrap_or(comment.len());
                }
                _ => return,
            }
        }
    }

    /// The end of what has nothing but white space between two brackets, such as `[ ]`.
    pub(crate) fn empty_brackets(&self, close: u8) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let inside = &bytes[self.at + 1..];
        let length = inside
            .iter()
            .position(|byte| !matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))?;
        (inside[length] == close).then_some(self.at + length + 2)
    }

    pub(crate) fn wrong(&self, at: usize, message: impl Into<String>) -> PlanError {
        let (line, column) = place_of(self.text, at);
        PlanError::Syntax {
            line,
            column,
            message: message.into(),
        }
    }

    /// The error of what stands here.
    pub(crate) fn unexpected(&self, expected: &str) -> PlanError {
        let word = |c: &char| c.is_alphanumeric() || matches!(c, '_' | ':' | '?' | '$' | '-');
        let rest = self.rest();
        let mut found: String = rest.chars().take_while(word).take(MOST_SHOWN).collect();
        if found.is_empty() {
            found.extend(rest.chars().next());
        }
        let found = match found.is_empty() {
            true => "end of the update".to_owned(),
            false => format!("'{found}'"),
        };
        self.wrong(self.at, format!("unexpected {found}, expected {expected}"))
    }

    /// The keyword that stands here, perhaps an empty one.
    pub(crate) fn word(&self) -> std::ops::Range<usize> {
        let bytes = &self.text.as_bytes()[self.at..];
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = bytes.iter().position(|byte| !is_word(byte));
        self.at..self.at + length.unwrap_or(bytes.len())
    }

    /// The end of a prefix or a label that begins here: points may only be inside.
    fn dotted_end(&self) -> usize {
        let mut end = self.at;
        let mut at = self.at;
        while let Some(c) = self.character(at) {
            if c != '.' && !is_inner(c) {
                break;
            }
            at += c.len_utf8();
            if c != '.' {
                end = at;
            }
        }
        end
    }

    /// The end of the prefix of a prefixed name that begins here, where its colon is.
    fn prefix_end(&self) -> Option<usize> {
        let first = self.character(self.at)?;
        let end = match first {
            ':' => self.at,
            _ if is_base(first) => self.dotted_end(),
            _ => return None,
        };
        (self.text.as_bytes().get(end) == Some(&b':')).then_some(end)
    }

    /// The prefix that a declaration is about.
    fn declared_prefix(&mut self) -> Result<&'t str, PlanError> {
        let Some(end) = self.prefix_end() else {
            return Err(self.unexpected("a prefix with a colon"));
        };
        let name = &self.text[self.at..end];
        self.at = end + 1;
        Ok(name)
    }

    /// True if an IRI, or a variable in its place, stands here.
    pub(crate) fn has_verb(&self) -> bool {
        match self.peek() {
            Some(b'<' | b':' | b'?' | b'$') => true,
            Some(_) => self.prefix_end().is_some() || &self.text[self.word()] == "a",
            None => false,
        }
    }

    /// True if the keyword GRAPH stands here.
    pub(crate) fn has_graph(&self) -> bool {
        self.text[self.word()].eq_ignore_ascii_case("GRAPH") && self.prefix_end().is_none()
    }

    /// Reads a verb.
    pub(crate) fn verb(
        &mut self,
        scope: Scope<'_, '_>,
        object: &mut Object,
    ) -> Result<(), PlanError> {
        if self.prefix_end().is_none() && &self.text[self.word()] == "a" {
            object.set(ObjectKind::Iri, rdf::TYPE.as_str());
            self.at += 1;
            return Ok(());
        }
        self.iri(scope, object)
    }

    /// Reads an IRI, in either way of writing it.
    pub(crate) fn iri(
        &mut self,
        scope: Scope<'_, '_>,
        object: &mut Object,
    ) -> Result<(), PlanError> {
        let start = self.at;
        object.kind = ObjectKind::Iri;
        let value = &mut object.value;
        match self.peek() {
            Some(b'<') => self.iri_reference(scope, value),
            Some(b'?' | b'$') => Err(self.wrong(start, "variables are not allowed in data")),
            _ => match self.prefix_end() {
                Some(colon) => self.prefixed(scope, colon, value),
                None => Err(self.unexpected("an IRI")),
            },
        }
    }

    fn iri_reference(&mut self, scope: Scope<'_, '_>, value: &mut String) -> Result<(), PlanError> {
        let start = self.at;
        let Some(length) = memchr(b'>', self.rest().as_bytes()) else {
            return Err(self.wrong(start, "an IRI that is not closed"));
        };
        let end = start + length;
        let written = &self.text[start + 1..end];
        value.clear();
        let invalid = |error: IriParseError| self.wrong(start, format!("not an IRI: {error}"));
        if memchr(b'\\', written.as_bytes()).is_some() {
            let mut unescaped = String::with_capacity(written.len());
            let inside = Cursor::new(&self.text[..end], start + 1);
            inside.unescape(end, true, &mut unescaped)?;
            resolve(scope.base(), &unescaped, value).map_err(invalid)?;
        } else {
            resolve(scope.base(), written, value).map_err(invalid)?;
        }
        self.at = end + 1;
        Ok(())
    }

    fn prefixed(
        &mut self,
        scope: Scope<'_, '_>,
        colon: usize,
        value: &mut String,
    ) -> Result<(), PlanError> {
        let start = self.at;
        let name = &self.text[start..colon];
        let Some(prefix) = scope.prefix(name) else {
            return Err(self.wrong(start, format!("the prefix {name}: is not declared")));
        };
        value.clear();
        value.push_str(prefix);
        self.at = colon + 1;
        self.local(value);
        match Iri::parse(value.as_str()) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.wrong(start, format!("not an IRI: {error}"))),
        }
    }

    /// Reads the local part of a prefixed name, which may be empty.
    fn local(&mut self, value: &mut String) {
        let bytes = self.text.as_bytes();
        let mut is_first = true;
        // Points may only be inside.
        let mut points = 0;
        while let Some(c) = self.character(self.at + points) {
            let at = self.at + points;
            let length = match c {
                '.' if !is_first => {
                    points += 1;
                    continue;
                }
                '%' => {
                    let digits = bytes.get(at + 1..at + 3);
                    match digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                        true => 3,
                        false => return,
                    }
                }
                '\\' => match bytes.get(at + 1) {
                    Some(byte) if b"_~.-!$&'()*+,;=/?#@%".contains(byte) => 2,
                    _ => return,
                },
                ':' => 1,
                _ if is_first && !(is_start(c) || c.is_ascii_digit()) => return,
                _ if is_inner(c) => c.len_utf8(),
                _ => return,
            };
            value.push_str(&self.text[self.at..at]);
            let kept = if c == '\\' { at + 1 } else { at };
            value.push_str(&self.text[kept..at + length]);
            self.at = at + length;
            (points, is_first) = (0, false);
        }
    }

    /// The label of a blank node, after `_:`.
    pub(crate) fn label(&mut self) -> Result<&'t str, PlanError> {
        let start = self.at;
        self.at += 2;
        let first = self.character(self.at);
        if !first.is_some_and(|c| is_start(c) || c.is_ascii_digit()) {
            return Err(self.wrong(start, "a blank node needs a label after _:"));
        }
        let end = self.dotted_end();
        let label = &self.text[self.at..end];
        self.at = end;
        Ok(label)
    }

    /// Reads a term that is neither blank nor empty brackets.
    pub(crate) fn term(
        &mut self,
        scope: Scope<'_, '_>,
        object: &mut Object,
    ) -> Result<(), PlanError> {
        match self.peek() {
            Some(b'"' | b'\'') => return self.literal(scope, object),
            Some(b'0'..=b'9' | b'+' | b'-' | b'.') => return self.number(object),
            Some(b'<' | b':' | b'?' | b'$') => return self.iri(scope, object),
            _ => (),
        }
        let word = &self.text[self.word()];
        let is = |keyword: &str| word.eq_ignore_ascii_case(keyword);
        let boolean = match (is("true"), is("false")) {
            (true, _) => Some("true"),
            (_, true) => Some("false"),
            _ => None,
        };
        match (self.prefix_end(), boolean) {
            // A point may be the end of a triple after a boolean, if it is in no known prefix.
            (Some(colon), None) => self.prefixed(scope, colon, &mut object.value).map(|()| {
                object.kind = ObjectKind::Iri;
            }),
            (Some(colon), Some(_)) if scope.prefix(&self.text[self.at..colon]).is_some() => {
                self.iri(scope, object)
            }
            (_, Some(boolean)) => {
                object.set(ObjectKind::Known(xsd::BOOLEAN.as_str()), boolean);
                self.at += word.len();
                Ok(())
            }
            (None, None) => Err(self.unexpected("a term")),
        }
    }

    fn number(&mut self, object: &mut Object) -> Result<(), PlanError> {
        let bytes = self.text.as_bytes();
        let digits = |at: usize| {
            let rest = &bytes[at..];
            let length = rest.iter().position(|byte| !byte.is_ascii_digit());
            at + length.unwrap_or(rest.len())
        };
        let exponent = |at: usize| {
            if !matches!(bytes.get(at), Some(b'e' | b'E')) {
                return None;
            }
            let is_signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
            let start = at + 1 + usize::from(is_signed);
            let end = digits(start.min(bytes.len()));
            (end > start).then_some(end)
        };
        let start = self.at + usize::from(matches!(self.peek(), Some(b'+' | b'-')));
        let whole = digits(start);
        let fraction = match bytes.get(whole) {
            Some(b'.') => digits(whole + 1),
            _ => whole,
        };
        let has_digits = whole > start || fraction > whole + 1;
        let (end, datatype) = match exponent(fraction).filter(|_| has_digits) {
            Some(end) => (end, xsd::DOUBLE),
            None if fraction > whole + 1 => (fraction, xsd::DECIMAL),
            None if whole > start => (whole, xsd::INTEGER),
            None => return Err(self.unexpected("a term")),
        };
        object.set(
            ObjectKind::Known(datatype.as_str()),
            &self.text[self.at..end],
        );
        self.at = end;
        Ok(())
    }

    fn literal(&mut self, scope: Scope<'_, '_>, object: &mut Object) -> Result<(), PlanError> {
        self.string(&mut object.value)?;
        object.kind = ObjectKind::Simple;
        let end = self.at;
        self.skip_space();
        if self.rest().starts_with("^^") {
            self.at += 2;
            self.skip_space();
            // The datatype is read as any IRI.
            std::mem::swap(&mut object.value, &mut object.suffix);
            let datatype = self.iri(scope, object);
            std::mem::swap(&mut object.value, &mut object.suffix);
            datatype?;
            object.kind = match object.suffix == xsd::STRING.as_str() {
                true => ObjectKind::Simple,
                false => ObjectKind::Typed,
            };
        } else if self.peek() == Some(b'@') {
            self.language(&mut object.suffix)?;
            object.kind = ObjectKind::Language;
        } else {
            self.at = end;
        }
        Ok(())
    }

    fn language(&mut self, out: &mut String) -> Result<(), PlanError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let part = |at: usize| {
            let rest = &bytes[at.min(bytes.len())..];
            let is_part = |byte: &u8| match at == start + 1 {
                true => byte.is_ascii_alphabetic(),
                false => byte.is_ascii_alphanumeric(),
            };
            rest.iter().take_while(|byte| is_part(byte)).count()
        };
        let mut end = start + 1 + part(start + 1);
        while bytes.get(end) == Some(&b'-') && part(end + 1) > 0 {
            end += 1 + part(end + 1);
        }
        if bytes[end..].starts_with(b"--") {
            let message = "base directions of literals are not supported";
            return Err(self.wrong(end, message));
        }
        out.clear();
        out.push_str(&self.text[start + 1..end]);
        out.make_ascii_lowercase();
        if LanguageTag::parse(out.as_str()).is_err() {
            return Err(self.wrong(start, "not a language tag"));
        }
        self.at = end;
        Ok(())
    }

    fn string(&mut self, out: &mut String) -> Result<(), PlanError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let quote = bytes[start];
        let long = [quote; 3];
        let is_long = bytes[start..].starts_with(&long);
        let opening = if is_long { 3 } else { 1 };
        out.clear();
        self.at += opening;
        loop {
            let from = self.at;
            let stop = bytes[from..].iter().position(|byte| {
                *byte == quote || *byte == b'\\' || (!is_long && matches!(byte, b'\n' | b'\r'))
            });
            let Some(length) = stop else {
                return Err(self.wrong(start, "a string that is not closed"));
            };
            let at = from + length;
            out.push_str(&self.text[from..at]);
            match bytes[at] {
                b'\\' => {
                    let escape = Cursor::new(self.text, at);
                    let (c, end) = escape.escape(false)?;
                    out.push(c);
                    self.at = end;
                }
                byte if byte != quote => {
                    return Err(self.wrong(start, "a string that its line does not close"));
                }
                _ if !is_long || bytes[at..].starts_with(&long) => {
                    self.at = at + opening;
                    return Ok(());
                }
                _ => {
                    out.push(char::from(quote));
                    self.at = at + 1;
                }
            }
        }
    }

    /// Replaces the escapes up to a place.
    fn unescape(mut self, end: usize, in_iri: bool, out: &mut String) -> Result<(), PlanError> {
        while self.at < end {
            let rest = &self.text[self.at..end];
            let Some(length) = memchr(b'\\', rest.as_bytes()) else {
                out.push_str(rest);
                break;
            };
            out.push_str(&rest[..length]);
            self.at += length;
            let (c, after) = self.escape(in_iri)?;
            out.push(c);
            self.at = after;
        }
        Ok(())
    }

    /// The character that an escape stands for, and where it ends.
    fn escape(&self, in_iri: bool) -> Result<(char, usize), PlanError> {
        let bytes = self.text.as_bytes();
        let known = bytes.get(self.at + 1).copied();
        let c = match known {
            Some(b't') => '\t',
            Some(b'b') => '\u{8}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b'f') => '\u{c}',
            Some(byte @ (b'"' | b'\'' | b'\\')) => char::from(byte),
            Some(byte @ (b'u' | b'U')) => {
                let end = self.at + if byte == b'u' { 6 } else { 10 };
                let digits = bytes.get(self.at + 2..end);
                let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
                let code = digits.map(|_| &self.text[self.at + 2..end]);
                let code = code.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                return match code.and_then(char::from_u32) {
                    Some(c) => Ok((c, end)),
                    None => Err(self.wrong(self.at, "an escape that is no character")),
                };
            }
            _ => return Err(self.wrong(self.at, "an escape that SPARQL does not have")),
        };
        match in_iri {
            true => Err(self.wrong(self.at, "an escape that IRIs do not have")),
            false => Ok((c, self.at + 2)),
        }
    }
}

fn resolve(
    base: Option<&Iri<String>>,
    written: &str,
    value: &mut String,
) -> Result<(), IriParseError> {
    match base {
        Some(base) => base.resolve_into(written, value),
        None => {
            Iri::parse(written)?;
            value.push_str(written);
            Ok(())
        }
    }
}

/// `PN_CHARS_BASE` of SPARQL's grammar.
fn is_base(c: char) -> bool {
    c.is_ascii_alphabetic()
        || (!c.is_ascii()
            && matches!(c,
                '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
                | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}'
                | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}'
                | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}'))
}

/// `PN_CHARS_U`.
fn is_start(c: char) -> bool {
    c == '_' || is_base(c)
}

/// `PN_CHARS`.
fn is_inner(c: char) -> bool {
    is_start(c)
        || matches!(c, '-' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}
