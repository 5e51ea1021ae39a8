//! Which line of this XML document is being read, and is it closed where its bytes end?
//!
//! The RDF/XML parser does not say where it found an error. And it takes the end of a file for the
//! end of the document, whatever is open, so that a download cut short would load without a word.
//! So this watches the bytes on their way to the parser: it counts lines and open elements, and
//! leaves all other questions of well-formedness to the parser. Entities and tags are watched next
//! door. And it looks out for `rdf:parseType`, without which no XML literal is the parser's own work.

use crate::xml_entities::{Entities, TooMuch};
use crate::xml_tags::Tags;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// What is known about the bytes that the parser has got.
#[derive(Default)]
pub(crate) struct XmlWatch {
    line: AtomicU64,
    closed: AtomicBool,
    has_parse_type: AtomicBool,
}

impl XmlWatch {
    /// The line of the last byte read, counted from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line.load(Relaxed).max(1)
    }

    /// Whether the document may end after the last byte read.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Whether an attribute that was read may be `rdf:parseType`.
    pub(crate) fn has_parse_type(&self) -> bool {
        self.has_parse_type.load(Relaxed)
    }
}

/// Hands on at most one line at a time, so that the parser is never far behind the watch.
pub(crate) struct XmlReader<R> {
    inner: BufReader<R>,
    at_line_start: bool,
    end: XmlEnd,
    parse_type: ParseType,
    watch: Arc<XmlWatch>,
}

impl<R: Read> XmlReader<R> {
    pub(crate) fn new(inner: R, watch: Arc<XmlWatch>) -> Self {
        let inner = BufReader::with_capacity(1 << 16, inner);
        Self {
            inner,
            at_line_start: true,
            end: XmlEnd::new(),
            parse_type: ParseType::default(),
            watch,
        }
    }
}

impl<R: Read> Read for XmlReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let available = self.inner.fill_buf()?;
        let end = memchr::memchr(b'\n', available).map_or(available.len(), |at| at + 1);
        let n = end.min(buf.len());
        buf[..n].copy_from_slice(&available[..n]);
        self.inner.consume(n);
        if n > 0 {
            self.watch
                .line
                .fetch_add(u64::from(self.at_line_start), Relaxed);
            self.at_line_start = buf[n - 1] == b'\n';
            self.end
                .feed(&buf[..n])
                .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
            self.watch.closed.store(self.end.is_closed(), Relaxed);
            if self.parse_type.feed(&buf[..n]) {
                self.watch.has_parse_type.store(true, Relaxed);
            }
        }
        Ok(n)
    }
}

/// Finds the name `parseType`, wherever the bytes are cut.
#[derive(Default)]
struct ParseType {
    /// So many bytes of it were the last ones.
    matched: usize,
}

impl ParseType {
    /// Whether the name ends in these bytes.
    fn feed(&mut self, bytes: &[u8]) -> bool {
        const NAME: &[u8] = b"parseType";
        for &b in bytes {
            // In XML the name follows a blank or a colon, never a part of itself.
            self.matched = match b {
                b if b == NAME[self.matched] => self.matched + 1,
                b => usize::from(b == NAME[0]),
            };
            if self.matched == NAME.len() {
                self.matched = 0;
                return true;
            }
        }
        false
    }
}

#[derive(Clone, Copy)]
enum At {
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
}

impl XmlEnd {
    fn new() -> Self {
        Self {
            at: At::Text,
            tags: Tags::default(),
            has_root: false,
            entities: Entities::default(),
        }
    }

    /// Whether there was a root element and nothing is open.
    fn is_closed(&self) -> bool {
        self.has_root && self.tags.open() == 0 && matches!(self.at, At::Text)
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), TooMuch> {
        self.tags.read(bytes.len());
        for &b in bytes {
            let before = self.at;
            self.at = self.next(b);
            self.follow_tag(before, b)?;
            match (before, self.at) {
                (At::DocType(_), At::DocType(_)) => self.entities.declare(b)?,
                (At::DocType(_), _) => self.entities.finish_declaration()?,
                (_, At::DocType(_)) => {}
                _ => self.entities.refer(b)?,
            }
        }
        self.entities.finish_declaration()
    }

    fn follow_tag(&mut self, before: At, b: u8) -> Result<(), TooMuch> {
        match (before, self.at) {
            (At::Less, At::Start { .. }) => {
                self.tags.begin();
                self.tags.outside(b);
            }
            (At::Start { quote: None, .. }, At::Start { .. }) => self.tags.outside(b),
            (At::Start { quote: Some(_), .. }, At::Start { quote, .. }) => match quote {
                Some(_) => self.tags.inside(b),
                None => self.tags.attribute()?,
            },
            (At::Start { slash, .. }, At::Text) => {
                self.has_root = true;
                self.tags.end(slash)?;
            }
            (At::End, At::Text) => self.tags.close(),
            _ => {}
        }
        Ok(())
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

    fn is_closed(text: &str) -> bool {
        let mut end = XmlEnd::new();
        end.feed(text.as_bytes()).unwrap();
        end.is_closed()
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

    #[test]
    fn the_parse_type_is_found_wherever_the_bytes_are_cut() {
        let text = b"<a parse='' rdf:pparseType='Literal'/>";
        for cut in 0..text.len() {
            let mut name = ParseType::default();
            let (head, tail) = text.split_at(cut);
            assert!(name.feed(head) != name.feed(tail), "{cut}");
        }
        assert!(!ParseType::default().feed(b"<a parseTyp='' parse Type='' parsetype=''/>"));
    }

    fn declared(declarations: &str, body: &str) -> Result<(), TooMuch> {
        let mut end = XmlEnd::new();
        end.feed(format!("<!DOCTYPE a [{declarations}]><a>{body}</a>").as_bytes())
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
