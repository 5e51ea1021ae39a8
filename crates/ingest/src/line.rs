//! Which quad does this line of N-Triples or N-Quads hold?
//!
//! [`parse`] knows the lines that real files are made of and says [`Parsed::Unsure`] to all
//! others, right or wrong; these go to `oxttl`. So nothing here decides that a line is bad, and
//! what is accepted here must be what `oxttl` accepts.

use crate::blank::write_labelled;
use crate::iri;
use memchr::{memchr, memchr3};
use oxrdf::vocab::rdf;
use oxrdf::{
    BlankNodeRef, GraphNameRef, LiteralRef, NamedNodeRef, NamedOrBlankNodeRef, QuadRef, TermRef,
};
use std::ops::Range;

/// Room for what cannot be borrowed from the line; kept from line to line.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) subject: String,
    pub(crate) object: String,
    pub(crate) graph: String,
    language: String,
}

/// What a line is.
pub(crate) enum Parsed<'a> {
    /// A statement.
    Quad(QuadRef<'a>),
    /// Blank, or only a comment.
    Nothing,
    /// Not of the plain kind that is known here.
    Unsure,
}

/// How the lines of a document are to be read.
pub(crate) struct LineContext<'a> {
    /// N-Quads: a graph name may follow the object.
    pub(crate) graph_names: bool,
    /// What stands in front of `_label` in the names of blank nodes.
    pub(crate) blank_prefix: &'a str,
    /// The graph of statements that name none.
    pub(crate) default_graph: GraphNameRef<'a>,
}

/// Parses one line, without its line end. Costs some 100 ns and allocates nothing once `scratch`
/// has grown.
pub(crate) fn parse<'a>(
    line: &'a str,
    context: &LineContext<'a>,
    scratch: &'a mut Scratch,
) -> Parsed<'a> {
    match spans(line, context.graph_names) {
        Ok(Some(spans)) => match build(line, spans, context, scratch) {
            Some(quad) => Parsed::Quad(quad),
            None => Parsed::Unsure,
        },
        Ok(None) => Parsed::Nothing,
        Err(Unsure) => Parsed::Unsure,
    }
}

struct Unsure;

/// A subject, graph name, or object that is no literal: where in the line.
enum Node {
    Iri(Range<usize>),
    Blank(Range<usize>),
}

enum Object {
    Node(Node),
    Literal {
        value: Range<usize>,
        escaped: bool,
        kind: Kind,
    },
}

enum Kind {
    Simple,
    Typed(Range<usize>),
    Tagged { tag: Range<usize>, lowercase: bool },
}

struct Spans {
    subject: Node,
    predicate: Range<usize>,
    object: Object,
    graph: Option<Node>,
}

/// Finds the terms of a line and checks all but the escapes of literals.
fn spans(line: &str, graph_names: bool) -> Result<Option<Spans>, Unsure> {
    let mut cursor = Cursor {
        line,
        bytes: line.as_bytes(),
        at: 0,
    };
    cursor.skip_blanks();
    if cursor.is_at_end()? {
        return Ok(None);
    }
    let subject = cursor.node()?;
    cursor.skip_blanks();
    let predicate = cursor.iri()?;
    cursor.skip_blanks();
    let object = match cursor.peek() {
        Some(b'"') => cursor.literal()?,
        _ => Object::Node(cursor.node()?),
    };
    cursor.skip_blanks();
    let graph = match cursor.peek() {
        Some(b'<' | b'_') if graph_names => {
            let graph = cursor.node()?;
            cursor.skip_blanks();
            Some(graph)
        }
        _ => None,
    };
    cursor.expect(b'.')?;
    // ".5" would be a number to oxttl; an error in any case, but for it to tell.
    cursor.skip_blanks();
    if !cursor.is_at_end()? {
        return Err(Unsure);
    }
    Ok(Some(Spans {
        subject,
        predicate,
        object,
        graph,
    }))
}

struct Cursor<'a> {
    line: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<(), Unsure> {
        if self.peek() != Some(byte) {
            return Err(Unsure);
        }
        self.at += 1;
        Ok(())
    }

    /// Whether nothing but a comment follows. A carriage return ends a comment.
    #[inline]
    fn is_at_end(&self) -> Result<bool, Unsure> {
        match self.peek() {
            None => Ok(true),
            Some(b'#') if memchr(b'\r', &self.bytes[self.at..]).is_none() => Ok(true),
            Some(b'#') => Err(Unsure),
            Some(_) => Ok(false),
        }
    }

    #[inline]
    fn node(&mut self) -> Result<Node, Unsure> {
        match self.peek() {
            Some(b'<') => self.iri().map(Node::Iri),
            Some(b'_') => self.blank_node().map(Node::Blank),
            _ => Err(Unsure),
        }
    }

    #[inline]
    fn iri(&mut self) -> Result<Range<usize>, Unsure> {
        self.expect(b'<')?;
        let start = self.at;
        let end = start + memchr(b'>', &self.bytes[start..]).ok_or(Unsure)?;
        if !iri::is_valid(&self.line[start..end]) {
            return Err(Unsure);
        }
        self.at = end + 1;
        Ok(start..end)
    }

    /// Labels of ASCII letters, digits, `_` and `-` with a blank after them. A dot may belong to
    /// the label or end the statement.
    #[inline]
    fn blank_node(&mut self) -> Result<Range<usize>, Unsure> {
        self.expect(b'_')?;
        self.expect(b':')?;
        let start = self.at;
        while let Some(b) = self.peek() {
            match b {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => {}
                b'-' if self.at > start => {}
                b' ' | b'\t' if self.at > start => return Ok(start..self.at),
                _ => return Err(Unsure),
            }
            self.at += 1;
        }
        Err(Unsure)
    }

    #[inline]
    fn literal(&mut self) -> Result<Object, Unsure> {
        self.expect(b'"')?;
        let start = self.at;
        let mut escaped = false;
        loop {
            let found = memchr3(b'"', b'\\', b'\r', &self.bytes[self.at..]).ok_or(Unsure)?;
            self.at += found;
            match self.bytes[self.at] {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    // The escaped character may be a quote; if it is the last, no quote follows.
                    self.at = (self.at + 2).min(self.bytes.len());
                }
                _ => return Err(Unsure),
            }
        }
        let value = start..self.at;
        self.at += 1;
        let kind = match self.peek() {
            Some(b'^') => {
                self.at += 1;
                self.expect(b'^')?;
                let datatype = self.iri()?;
                if &self.line[datatype.clone()] == rdf::LANG_STRING.as_str()
                    || self.line[datatype.clone()].ends_with("#dirLangString")
                {
                    return Err(Unsure);
                }
                Kind::Typed(datatype)
            }
            Some(b'@') => self.language_tag()?,
            _ => Kind::Simple,
        };
        Ok(Object::Literal {
            value,
            escaped,
            kind,
        })
    }

    /// Tags like `en`, `gsw` and `de-CH`, with a blank or the dot after them.
    #[inline]
    fn language_tag(&mut self) -> Result<Kind, Unsure> {
        self.expect(b'@')?;
        let start = self.at;
        let language = self.letters();
        if !(2..=3).contains(&language) {
            return Err(Unsure);
        }
        if self.peek() == Some(b'-') {
            self.at += 1;
            if self.letters() != 2 {
                return Err(Unsure);
            }
        }
        if !matches!(self.peek(), Some(b' ' | b'\t' | b'.')) {
            return Err(Unsure);
        }
        let tag = start..self.at;
        let lowercase = !self.bytes[tag.clone()].iter().any(u8::is_ascii_uppercase);
        Ok(Kind::Tagged { tag, lowercase })
    }

    fn letters(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_alphabetic()) {
            self.at += 1;
        }
        self.at - start
    }
}

/// Makes the quad, borrowing from the line what stands there as it is. `None` if an escape is not
/// one of the known ones.
fn build<'a>(
    line: &'a str,
    spans: Spans,
    context: &LineContext<'a>,
    scratch: &'a mut Scratch,
) -> Option<QuadRef<'a>> {
    let Scratch {
        subject,
        object,
        graph,
        language,
    } = scratch;
    let prefix = context.blank_prefix;
    Some(QuadRef {
        subject: node(line, spans.subject, prefix, subject),
        predicate: NamedNodeRef::new_unchecked(&line[spans.predicate]),
        object: match spans.object {
            Object::Node(span) => node(line, span, prefix, object).into(),
            Object::Literal {
                value,
                escaped,
                kind,
            } => {
                let value = if escaped {
                    unescape(&line[value], object)?;
                    object.as_str()
                } else {
                    &line[value]
                };
                literal(line, value, kind, language)
            }
        },
        graph_name: match spans.graph {
            Some(span) => match node(line, span, prefix, graph) {
                NamedOrBlankNodeRef::NamedNode(n) => GraphNameRef::NamedNode(n),
                NamedOrBlankNodeRef::BlankNode(n) => GraphNameRef::BlankNode(n),
            },
            None => context.default_graph,
        },
    })
}

fn node<'a>(
    line: &'a str,
    span: Node,
    prefix: &str,
    scratch: &'a mut String,
) -> NamedOrBlankNodeRef<'a> {
    match span {
        Node::Iri(span) => NamedNodeRef::new_unchecked(&line[span]).into(),
        Node::Blank(span) => {
            write_labelled(scratch, prefix, &line[span]);
            BlankNodeRef::new_unchecked(scratch).into()
        }
    }
}

fn literal<'a>(line: &'a str, value: &'a str, kind: Kind, language: &'a mut String) -> TermRef<'a> {
    match kind {
        Kind::Simple => LiteralRef::new_simple_literal(value),
        Kind::Typed(datatype) => {
            LiteralRef::new_typed_literal(value, NamedNodeRef::new_unchecked(&line[datatype]))
        }
        Kind::Tagged {
            tag,
            lowercase: true,
        } => LiteralRef::new_language_tagged_literal_unchecked(value, &line[tag]),
        Kind::Tagged {
            tag,
            lowercase: false,
        } => {
            language.clear();
            language.push_str(&line[tag]);
            language.make_ascii_lowercase();
            LiteralRef::new_language_tagged_literal_unchecked(value, language)
        }
    }
    .into()
}

/// Replaces the escapes of a literal. `None` at one that the grammar does not know.
fn unescape(mut text: &str, out: &mut String) -> Option<()> {
    out.clear();
    while let Some(found) = memchr(b'\\', text.as_bytes()) {
        out.push_str(&text[..found]);
        let (c, used) = match text.as_bytes().get(found + 1)? {
            b't' => ('\t', 2),
            b'b' => ('\x08', 2),
            b'n' => ('\n', 2),
            b'r' => ('\r', 2),
            b'f' => ('\x0c', 2),
            c @ (b'"' | b'\'' | b'\\') => (char::from(*c), 2),
            b'u' => (code_point(text.as_bytes().get(found + 2..found + 6)?)?, 6),
            b'U' => (code_point(text.as_bytes().get(found + 2..found + 10)?)?, 10),
            _ => return None,
        };
        out.push(c);
        text = &text[found + used..];
    }
    out.push_str(text);
    Some(())
}

fn code_point(digits: &[u8]) -> Option<char> {
    let mut value = 0_u32;
    for &digit in digits {
        value = value.checked_mul(16)? + char::from(digit).to_digit(16)?;
    }
    char::from_u32(value)
}
