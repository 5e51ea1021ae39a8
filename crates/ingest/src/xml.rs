//! Which line of this XML document is being read, and is it closed where its bytes end?
//!
//! The RDF/XML parser does not say where it found an error. And it takes the end of a file for the
//! end of the document, whatever is open, so that a download cut short would load without a word.
//! So this watches the bytes on their way to the parser: it counts lines and open elements, and
//! leaves all other questions of well-formedness to the parser. Entities, tags and XML literals
//! are watched next door, where it is also said what the parser reads instead.

use crate::source::Guard;
use crate::xml_base::Bases;
use crate::xml_entities::{Entities, TooMuch};
use crate::xml_marks::{Literals, Marks};
use crate::xml_names::RootNames;
use crate::xml_rewrite::Rewriter;
use crate::xml_tags::Tags;
use std::io::{self, BufRead, BufReader, Read};
use std::mem::take;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// What is known about the bytes that the parser has got.
pub(crate) struct XmlWatch {
    line: AtomicU64,
    closed: AtomicBool,
    marks: Arc<Marks>,
    /// Set once the start tag of the root is read.
    root_names: OnceLock<RootNames>,
}

impl XmlWatch {
    pub(crate) fn new() -> Self {
        Self {
            line: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            marks: Arc::new(Marks::new()),
            root_names: OnceLock::new(),
        }
    }

    /// The line of the last byte read, counted from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line.load(Relaxed).max(1)
    }

    /// Whether the document may end after the last byte read.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// The prefixes that the root element declares, as far as it was read.
    pub(crate) fn root_names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.root_names.get().into_iter().flat_map(RootNames::iter)
    }

    /// What is put into the XML literals of the document.
    pub(crate) fn marks(&self) -> &Marks {
        &self.marks
    }
}

/// Hands on at most one line at a time, so that the parser is never far behind the watch.
pub(crate) struct XmlReader<R> {
    inner: BufReader<R>,
    at_line_start: bool,
    end: XmlEnd,
    rewriter: Rewriter,
    /// How much of what the rewriter put out was handed on.
    handed_on: usize,
    watch: Arc<XmlWatch>,
    kept: Kept,
    /// Where memory is reserved for what the parser keeps, and how much was.
    guard: Option<Arc<dyn Guard>>,
    held: u64,
}

impl<R: Read> XmlReader<R> {
    /// A reader of a document with this base, if it has one.
    pub(crate) fn new(
        inner: R,
        watch: Arc<XmlWatch>,
        guard: Option<Arc<dyn Guard>>,
        base_iri: Option<&str>,
    ) -> Self {
        let inner = BufReader::with_capacity(1 << 16, inner);
        Self {
            inner,
            at_line_start: true,
            end: XmlEnd::new(Bases::new(base_iri)),
            rewriter: Rewriter::new(Arc::clone(&watch.marks)),
            handed_on: 0,
            watch,
            kept: Kept::default(),
            guard,
            held: 0,
        }
    }

    /// Reserves what the parser may hold by now, before it gets the bytes.
    fn hold(&mut self) -> io::Result<()> {
        let most = self.kept.most();
        if let Some(guard) = self.guard.as_ref().filter(|_| most > self.held) {
            guard.hold(most - self.held)?;
            self.held = most;
        }
        Ok(())
    }

    /// Reads on to the end of the line, or of what is in memory; false at the end of the document.
    fn read_line(&mut self) -> io::Result<bool> {
        self.rewriter.begin_line();
        self.handed_on = 0;
        let available = self.inner.fill_buf()?;
        if available.is_empty() {
            self.rewriter.flush();
            return Ok(false);
        }
        let n = memchr::memchr(b'\n', available).map_or(available.len(), |at| at + 1);
        let line = &available[..n];
        self.watch
            .line
            .fetch_add(u64::from(self.at_line_start), Relaxed);
        self.at_line_start = line[n - 1] == b'\n';
        let refused = |e| io::Error::new(io::ErrorKind::InvalidData, e);
        self.end.tags.read(n);
        for &b in line {
            if let Some(b) = self.rewriter.line_end(b) {
                let step = self.end.step(b).map_err(refused)?;
                self.kept.step(&step);
                self.rewriter.push(b, &step);
            }
        }
        if matches!(self.end.at, At::DocType(_)) {
            // The parser may see it before its end is read.
            self.end.entities.finish_declaration().map_err(refused)?;
        }
        self.watch.closed.store(self.end.is_closed(), Relaxed);
        if self.end.has_root {
            let names = || take(&mut self.end.root_names);
            self.watch.root_names.get_or_init(names);
        }
        self.inner.consume(n);
        self.hold()?;
        Ok(true)
    }
}

impl<R: Read> Read for XmlReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        // A line may come to nothing that is known to be handed on.
        while self.handed_on == self.rewriter.out.len() && self.read_line()? {}
        let rest = &self.rewriter.out[self.handed_on..];
        let n = rest.len().min(buf.len());
        buf[..n].copy_from_slice(&rest[..n]);
        self.handed_on += n;
        Ok(n)
    }
}

/// How often the parser may have what lies between two tags of elements: in its buffer, as it is written and
/// as it is meant, and as what a sink makes of it. A test of the engine measures this and what follows.
const TEXT_COPIES: u64 = 8;
/// How many bytes may be held for a byte of an XML literal: the parser writes the namespaces in scope into
/// each of its outermost elements.
const LITERAL_COPIES: u64 = 64;
/// Shorter ones are among the buffers that nobody counts.
const SHORT_BYTES: u64 = 16 << 10;

/// What the parser keeps of a document: the text, comments and attributes since the last tag, and the XML
/// literal that it is in.
#[derive(Default)]
struct Kept {
    text: u64,
    longest_text: u64,
    literal: u64,
    longest_literal: u64,
}

impl Kept {
    fn step(&mut self, step: &Step<'_>) {
        self.text += 1;
        self.longest_text = self.longest_text.max(self.text);
        let ends_tag = matches!(step.before, At::Start { .. } | At::End);
        if ends_tag && matches!(step.at, At::Text) {
            self.text = 0;
        }
        self.literal = match step.is_within_literal {
            true => self.literal + 1,
            false => 0,
        };
        self.longest_literal = self.longest_literal.max(self.literal);
    }

    fn most(&self) -> u64 {
        let of = |bytes: u64, copies: u64| match bytes > SHORT_BYTES {
            true => bytes * copies,
            false => 0,
        };
        of(self.longest_text, TEXT_COPIES) + of(self.longest_literal, LITERAL_COPIES)
    }
}

/// What became known with a byte.
pub(crate) struct Step<'a> {
    pub(crate) before: At,
    pub(crate) at: At,
    /// Whether the byte is part of what an XML literal holds.
    pub(crate) is_within_literal: bool,
    /// The name of an element that holds an XML literal, where its start tag ends.
    pub(crate) literal: Option<&'a [u8]>,
    /// What the parser is to read in place of the attribute that ends.
    pub(crate) base: Option<String>,
}

/// Which part of a document a byte is followed by.
#[derive(Clone, Copy)]
pub(crate) enum At {
    Text,
    /// After `<`.
    Less,
    /// In a start tag, in quotes or not; whether the last byte was a slash.
    Start {
        quote: Option<u8>,
        slash: bool,
    },
    End,
    /// After `<!`, with how many bytes of `--` or `[CDATA[` seen.
    Bang(usize),
    /// In a section that ends with these bytes; how many of them were seen.
    Until(&'static [u8], usize),
    /// In a document type declaration, with so many `<` open.
    DocType(u64),
}

/// Follows an XML document from its first byte.
struct XmlEnd {
    at: At,
    tags: Tags,
    has_root: bool,
    entities: Entities,
    literals: Literals,
    bases: Bases,
    root_names: RootNames,
}

/// What is known where an attribute or a tag ends.
enum Ended {
    Nothing,
    /// The start tag of an element that holds an XML literal.
    Literal,
    /// An attribute that says this to the parser.
    Base(String),
}

impl XmlEnd {
    fn new(bases: Bases) -> Self {
        Self {
            bases,
            at: At::Text,
            tags: Tags::default(),
            has_root: false,
            entities: Entities::default(),
            literals: Literals::default(),
            root_names: RootNames::default(),
        }
    }

    /// Whether there was a root element and nothing is open.
    fn is_closed(&self) -> bool {
        self.has_root && self.tags.open() == 0 && matches!(self.at, At::Text)
    }

    fn step(&mut self, b: u8) -> Result<Step<'_>, TooMuch> {
        let before = self.at;
        self.at = self.next(b);
        let ended = self.follow_tag(before, b)?;
        match (before, self.at) {
            (At::DocType(_), At::DocType(_)) => self.entities.declare(b)?,
            (At::DocType(_), _) => self.entities.finish_declaration()?,
            (_, At::DocType(_)) => {}
            _ => self.entities.refer(b)?,
        }
        Ok(Step {
            before,
            at: self.at,
            is_within_literal: self.literals.is_within(),
            literal: matches!(ended, Ended::Literal).then(|| self.literals.name()),
            base: match ended {
                Ended::Base(base) => Some(base),
                Ended::Literal | Ended::Nothing => None,
            },
        })
    }

    fn follow_tag(&mut self, before: At, b: u8) -> Result<Ended, TooMuch> {
        match (before, self.at) {
            (At::Less, At::Start { .. }) => {
                self.tags.begin();
                self.literals.begin();
                self.outside(b);
            }
            (At::Start { quote: None, .. }, At::Start { .. }) => self.outside(b),
            (At::Start { quote: Some(_), .. }, At::Start { quote, .. }) => match quote {
                Some(_) => self.tags.inside(b),
                None => {
                    let attribute = self.tags.attribute()?;
                    if !self.has_root {
                        self.root_names.attribute(&attribute, &self.entities);
                    }
                    self.literals.attribute(&attribute, &self.entities);
                    if !self.literals.is_within()
                        && let Some(base) = self.bases.attribute(&attribute, &self.entities)
                    {
                        return Ok(Ended::Base(base.to_owned()));
                    }
                }
            },
            (At::Start { slash, .. }, At::Text) => {
                self.has_root = true;
                self.tags.end(slash)?;
                self.bases.begin();
                if slash {
                    self.bases.close();
                }
                if self.literals.end(slash) {
                    return Ok(Ended::Literal);
                }
            }
            (At::End, At::Text) => {
                self.tags.close();
                self.literals.close();
                self.bases.close();
            }
            _ => {}
        }
        Ok(Ended::Nothing)
    }

    fn outside(&mut self, b: u8) {
        self.tags.outside(b);
        self.literals.outside(b);
    }

    fn next(&self, b: u8) -> At {
        match (self.at, b) {
            (At::Text, b'<') => At::Less,
            (At::Text, _) => At::Text,
            (At::Less, b'/') => At::End,
            (At::Less, b'!') => At::Bang(0),
            (At::Less, b'?') => At::Until(b"?>", 0),
            (At::Less, _) => At::Start {
                quote: None,
                slash: false,
            },
            (At::Start { quote: None, .. }, b'>') => At::Text,
            (At::Start { quote: None, .. }, b'"' | b'\'') => At::Start {
                quote: Some(b),
                slash: false,
            },
            (At::Start { quote, .. }, b) => At::Start {
                quote: quote.filter(|&q| q != b),
                slash: b == b'/',
            },
            (At::End, b'>') => At::Text,
            (At::End, _) => At::End,
            (At::Bang(0), b'-') => At::Bang(1),
            (At::Bang(1), b'-') => At::Until(b"-->", 0),
            (At::Bang(0), b'[') => At::Until(b"]]>", 0),
            (At::Bang(_), b'>') => At::Text,
            (At::Bang(_), _) => At::DocType(1),
            (At::Until(end, seen), b) => Self::section(end, seen, b),
            (At::DocType(1), b'>') => At::Text,
            (At::DocType(open), b'>') => At::DocType(open - 1),
            (At::DocType(open), b'<') => At::DocType(open + 1),
            (At::DocType(open), _) => At::DocType(open),
        }
    }

    fn section(end: &'static [u8], seen: usize, b: u8) -> At {
        if end[seen] == b {
            return match seen + 1 {
                all if all == end.len() => At::Text,
                seen => At::Until(end, seen),
            };
        }
        // The ends are of the form `xx>` or `x>`: after more `x` than it takes, the last ones count.
        match b == end[0] {
            true => At::Until(end, seen.max(1)),
            false => At::Until(end, 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<XmlEnd, TooMuch> {
        let mut end = XmlEnd::new(Bases::default());
        end.tags.read(text.len());
        for b in text.bytes() {
            end.step(b)?;
        }
        end.entities.finish_declaration()?;
        Ok(end)
    }

    fn is_closed(text: &str) -> bool {
        read(text).unwrap().is_closed()
    }

    #[test]
    fn whole_documents_are_closed_and_each_cut_one_is_not() {
        let text = "<?xml version='1.0'?><!DOCTYPE a [ <!ENTITY b \"c\"> ]><!-- <a> --->\
                    <a b='>/' c=\"'/>\"><d/><e ></e><![CDATA[<f>]]]></a>";
        assert!(is_closed(text));
        assert!(is_closed(&format!("{text}\n<!-- x --><?y?>\n")));
        for cut in 0..text.len() {
            assert!(!is_closed(&text[..cut]), "{}", &text[..cut]);
        }
        assert!(is_closed("<a/>"));
    }

    fn declared(declarations: &str, body: &str) -> Result<(), TooMuch> {
        read(&format!("<!DOCTYPE a [{declarations}]><a>{body}</a>")).map(drop)
    }

    #[test]
    fn entities_for_namespaces_are_let_pass() {
        let namespaces = "<!ENTITY a \"http://a/\">\n<!ENTITY b \"&a;b#\" >";
        declared(namespaces, &"<b c='&b;c'/>".repeat(10_000)).unwrap();
    }

    #[test]
    fn entities_that_grow_without_bound_are_refused() {
        let mut declarations = String::from("<!ENTITY e0 \"lol\">");
        for i in 1..10 {
            let value = format!("&e{};", i - 1).repeat(10);
            declarations.push_str(&format!("<!ENTITY e{i} \"{value}\">"));
        }
        assert!(declared(&declarations, "&e9;").is_err());
        let long = format!("<!ENTITY e \"{}\">", "x".repeat(1000));
        declared(&long, &"&e;".repeat(1000)).unwrap();
        assert!(declared(&long, &"&e;".repeat(100_000)).is_err());
    }
}
