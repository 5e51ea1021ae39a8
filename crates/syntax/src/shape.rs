//! What is left of a query's text when its constants are cut out?
//!
//! Two texts of the same shape differ only in constants between the outermost braces, in white
//! space and in comments. Cut are absolute IRIs, the local parts of prefixed names, short
//! strings without escapes, and unsigned integers and decimals; each is cut only where its form
//! is so plain that any other of that form would be parsed alike. Everything else stays as it
//! is: a constant that stays costs a hit of the plan cache, never a wrong plan.

use crate::chars::{NAME, SPACE, is, run};
use crate::lexer::{ESCAPED, Kind, Lexer, MAX_TEXT_BYTES, Token};
use crate::terms::is_plain_iri;
use crate::tree::Span;

/// Arguments above which a text is not worth caching.
const MAX_ARGUMENTS: usize = 512;
/// Precedes the kind of a cut token; no UTF-8 text holds this byte.
const MARK: u8 = 0xff;

/// What kind of token an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ArgumentKind {
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

/// A constant cut out of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Where it is: without `<` and `>`, without the prefix, without quotes.
    pub span: Span,
    /// What it is.
    pub kind: ArgumentKind,
}

impl Argument {
    /// The argument as it stands in the text that it was cut out of.
    #[must_use]
    pub fn of<'t>(&self, text: &'t str) -> &'t str {
        &text[self.span.start as usize..self.span.end as usize]
    }
}

/// A text taken apart.
#[derive(Debug)]
pub struct Shape {
    /// The text without its arguments, with a mark and their kind in each's place, and with one
    /// space for white space and comments.
    pub key: Vec<u8>,
    /// What was cut out, in the order of the text.
    pub arguments: Vec<Argument>,
}

/// Takes a text apart in one pass, without a look at what it means; none if it has too many
/// arguments.
///
/// Costs about a nanosecond for each byte of the text.
#[must_use]
pub fn shape_of(text: &str) -> Option<Shape> {
    if text.len() > MAX_TEXT_BYTES {
        return None;
    }
    let mut cutter = Cutter {
        bytes: text.as_bytes(),
        kept: 0,
        depth: 0,
        names_datatype: false,
        key: Vec::with_capacity(text.len() + 16),
        arguments: Vec::with_capacity(8),
    };
    let mut lexer = Lexer::new(text, 0);
    let mut end = 0;
    loop {
        let token = lexer.next();
        let start = token.span.start as usize;
        if start > end {
            cutter.space(end, start);
        }
        if token.kind == Kind::End {
            cutter.flush(start);
            break;
        }
        end = token.span.end as usize;
        cutter.token(token);
    }
    let Cutter { key, arguments, .. } = cutter;
    (arguments.len() <= MAX_ARGUMENTS).then_some(Shape { key, arguments })
}

struct Cutter<'t> {
    bytes: &'t [u8],
    /// From here on the text is as the shape has it, and still to be copied there.
    kept: usize,
    /// Braces open.
    depth: u32,
    /// After `^^`, where an IRI is a datatype.
    names_datatype: bool,
    key: Vec<u8>,
    arguments: Vec<Argument>,
}

impl Cutter<'_> {
    fn flush(&mut self, end: usize) {
        self.key.extend_from_slice(&self.bytes[self.kept..end]);
        self.kept = end;
    }

    /// White space and comments, as one space.
    fn space(&mut self, start: usize, end: usize) {
        if end != start + 1 || self.bytes[start] != b' ' {
            self.flush(start);
            self.key.push(b' ');
            self.kept = end;
        }
    }

    fn token(&mut self, token: Token) {
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        let may_cut = self.depth > 0 && !self.names_datatype;
        self.names_datatype = false;
        match token.kind {
            Kind::OpenBrace | Kind::OpenAnnotation => self.depth += 1,
            Kind::CloseBrace | Kind::CloseAnnotation => self.depth = self.depth.saturating_sub(1),
            Kind::Datatype => self.names_datatype = true,
            Kind::Iri if may_cut && token.extra == 0 => {
                let is_plain = is_plain_iri(&self.bytes[start + 1..end - 1]);
                if is_plain && !self.calls(end) {
                    self.cut(start + 1, end - 1, ArgumentKind::Iri);
                }
            }
            Kind::Name if may_cut && token.extra & ESCAPED == 0 => {
                let from = start + token.extra as usize + 1;
                let local = &self.bytes[from..end];
                let is_plain = |byte: &u8| is(*byte, NAME);
                if !local.is_empty() && local.iter().all(is_plain) && !self.calls(end) {
                    self.cut(from, end, ArgumentKind::Local);
                }
            }
            // Neither escapes nor three quotes.
            Kind::String if may_cut && token.extra == 0 => {
                self.cut(start + 1, end - 1, ArgumentKind::Text);
            }
            Kind::Integer if may_cut => self.number(start, end, ArgumentKind::Integer),
            Kind::Decimal if may_cut => self.number(start, end, ArgumentKind::Decimal),
            _ => (),
        }
    }

    /// A number, whose sign stays.
    fn number(&mut self, start: usize, end: usize, kind: ArgumentKind) {
        let start = start + usize::from(matches!(self.bytes[start], b'+' | b'-'));
        let goes_on = match self.bytes.get(end) {
            // `5.e` may go on as a number with an exponent.
            Some(b'.') => matches!(self.bytes.get(end + 1), Some(b'e' | b'E')),
            Some(b'-') | None => false,
            Some(byte) => is(*byte, NAME) || *byte >= 0x80,
        };
        let follows_point = start > 0 && self.bytes[start - 1] == b'.';
        if !goes_on && !follows_point && self.bytes[start] != b'.' {
            self.cut(start, end, kind);
        }
    }

    /// True if a parenthesis follows: then the name before it may be that of a function.
    fn calls(&self, from: usize) -> bool {
        let next = run(self.bytes, from, SPACE);
        matches!(self.bytes.get(next), Some(b'(' | b'#'))
    }

    fn cut(&mut self, start: usize, end: usize, kind: ArgumentKind) {
        self.flush(start);
        self.key.extend_from_slice(&[MARK, kind as u8]);
        self.kept = end;
        let span = crate::lexer::span(start, end);
        self.arguments.push(Argument { span, kind });
    }
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
            assert!(shape_of(text).is_some(), "{text}");
        }
    }
}
