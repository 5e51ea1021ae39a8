//! What does the parser read in place of this RDF/XML document?
//!
//! The parser takes line ends and the white space of attributes as they are; an XML processor
//! hands on line feeds and spaces for them (XML 1.0, sections 2.11 and 3.3.3). And it gets marks
//! in XML literals, see `xml_marks`.

use crate::xml::{At, Step};
use crate::xml_marks::{Marks, Pair};
use quick_xml::escape::escape;
use std::sync::Arc;

pub(crate) struct Rewriter {
    marks: Arc<Marks>,
    /// Read, but not known to be handed on as they are: part of a tag's end, or of what begins or
    /// ends a comment or processing instruction. A few bytes.
    held: Vec<u8>,
    after_return: bool,
    /// Where in `out` the value of the attribute begins that is being read, if it is all there.
    value_at: Option<usize>,
    /// What is handed on.
    pub(crate) out: Vec<u8>,
}

const COMMENT: &[u8] = b"-->";
const INSTRUCTION: &[u8] = b"?>";

impl Rewriter {
    pub(crate) fn new(marks: Arc<Marks>) -> Self {
        Self {
            marks,
            held: Vec::new(),
            after_return: false,
            value_at: None,
            out: Vec::new(),
        }
    }

    /// The byte that stands for this one; none for the second of a line end of two.
    pub(crate) fn line_end(&mut self, b: u8) -> Option<u8> {
        let after_return = std::mem::replace(&mut self.after_return, b == b'\r');
        match b {
            b'\n' if after_return => None,
            b'\r' => Some(b'\n'),
            b => Some(b),
        }
    }

    /// What is put out was handed on.
    pub(crate) fn begin_line(&mut self) {
        self.out.clear();
        self.value_at = None;
    }

    /// Takes a byte that a look at the document was taken with.
    pub(crate) fn push(&mut self, b: u8, step: &Step<'_>) {
        match (step.before, step.at) {
            (At::Start { quote: Some(_), .. }, _) if matches!(b, b'\t' | b'\n') => {
                self.out.push(b' ');
            }
            (At::Start { quote: None, .. }, At::Start { quote: Some(_), .. }) => {
                self.flush();
                self.out.push(b);
                self.value_at = Some(self.out.len());
            }
            (At::Start { quote: Some(_), .. }, At::Start { quote: None, .. }) => {
                if let (Some(base), Some(at)) = (&step.base, self.value_at) {
                    self.out.truncate(at);
                    self.out.extend_from_slice(escape(base.as_str()).as_bytes());
                }
                self.out.push(b);
            }
            (At::Start { quote: None, .. }, At::Start { quote: None, .. }) if b == b'/' => {
                self.flush();
                self.held.push(b);
            }
            (At::Start { .. }, At::Text) => self.start_tag(step),
            _ if step.is_within_literal => self.literal(b, step),
            _ => {
                self.flush();
                self.out.push(b);
            }
        }
    }

    /// What was held back, once nothing can come after it.
    pub(crate) fn flush(&mut self) {
        self.out.append(&mut self.held);
    }

    fn start_tag(&mut self, step: &Step<'_>) {
        match step.literal {
            None => {
                self.flush();
                self.out.push(b'>');
            }
            Some(name) => {
                let is_empty = self.held == b"/";
                self.held.clear();
                self.out.push(b'>');
                self.out.extend_from_slice(self.marks.literal.as_bytes());
                if is_empty {
                    self.out.extend_from_slice(b"</");
                    self.out.extend_from_slice(name);
                    self.out.push(b'>');
                }
            }
        }
    }

    fn literal(&mut self, b: u8, step: &Step<'_>) {
        match (step.before, step.at) {
            (_, At::Less | At::Bang(_)) => self.held.push(b),
            (At::Until(end, _), At::Until(..)) => self.dropped(b, end),
            (At::Until(end, _), At::Text) => match self.pair(end) {
                Some(pair) => {
                    let mark = pair.end.clone();
                    self.mark(&mark);
                }
                None => self.out.push(b),
            },
            (_, At::Until(end, _)) => match self.pair(end) {
                Some(pair) => {
                    let mark = pair.begin.clone();
                    self.mark(&mark);
                }
                None => {
                    self.flush();
                    self.out.push(b);
                }
            },
            _ => {
                self.flush();
                self.out.push(b);
            }
        }
    }

    /// The marks of what ends with these bytes, if the parser would drop it.
    fn pair(&self, end: &[u8]) -> Option<&Pair> {
        match end {
            COMMENT => Some(&self.marks.comment),
            INSTRUCTION => Some(&self.marks.instruction),
            _ => None,
        }
    }

    fn mark(&mut self, mark: &str) {
        self.held.clear();
        self.out.extend_from_slice(mark.as_bytes());
    }

    /// A byte of what ends with these bytes, if not of the end itself.
    fn dropped(&mut self, b: u8, end: &[u8]) {
        if self.pair(end).is_none() {
            return self.out.push(b);
        }
        if b == end[0] {
            if self.held.len() == end.len() - 1 {
                self.out.push(b);
            } else {
                self.held.push(b);
            }
            return;
        }
        self.flush();
        match b {
            b'&' => self.out.extend_from_slice(b"&amp;"),
            b'<' => self.out.extend_from_slice(b"&lt;"),
            b => self.out.push(b),
        }
    }
}
