//! Is this JSON-LD document nested no deeper than its parser can follow?
//!
//! The parser calls itself for each value within a value, for each term of a context that is
//! defined by another term, and for each context within the definition of a term: a few thousand
//! bytes of such would take more stack than a thread has, which ends the process. So this watches
//! the bytes on their way to the parser, finds out how deep it would go and how long it would take
//! (`json_cost`), and refuses what is beyond the bounds before the parser sees it. What is well
//! formed it leaves to the parser.

use crate::contexts::Contexts;
use crate::json_cost::{Cost, JsonSteps};
use crate::json_terms::Terms;
use crate::source::Guard;
use std::collections::HashSet;
use std::io::{self, Read};
use std::sync::Arc;

/// How many arrays and objects of a JSON-LD document may be open at once.
pub(crate) const MAX_JSON_DEPTH: usize = 256;

/// How many terms of a context may be defined each by the next, those of the contexts within
/// their definitions included.
pub(crate) const MAX_DEFINITION_DEPTH: usize = 64;

/// How many contexts that documents name may name each other.
const MAX_NAMED_CONTEXTS: usize = 8;

/// What the parser holds, besides names, for each value of a document: all quads are made at its
/// end. What it takes is measured by a test of the engine.
const TOKEN_BYTES: u64 = 640;

/// How many names a value may be kept with: a subject, a property and a type or graph.
const TOKEN_NAMES: u64 = 4;

/// What the parser holds for each byte of a document.
const BYTE_BYTES: u64 = 4;

/// A longer term with a context of its own is taken for every text of the document.
const MAX_TERM_BYTES: usize = 256;

/// A JSON-LD document that is nested too deeply, or takes too long.
#[derive(Debug, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct TooDeep {
    /// Counted from 1.
    pub(crate) line: u64,
    /// In characters, counted from 1.
    pub(crate) column: u64,
    pub(crate) reason: String,
}

/// Hands on the bytes of a JSON-LD document that are within the bounds.
pub(crate) struct JsonReader<R> {
    inner: R,
    guard: Option<Arc<dyn Guard>>,
    watch: JsonWatch,
}

impl<R: Read> JsonReader<R> {
    pub(crate) fn new(
        inner: R,
        guard: Option<Arc<dyn Guard>>,
        shared: Option<Arc<JsonSteps>>,
        known: Contexts,
    ) -> Self {
        Self {
            inner,
            guard,
            watch: JsonWatch {
                shared,
                known,
                ..JsonWatch::default()
            },
        }
    }
}

impl<R> Drop for JsonReader<R> {
    fn drop(&mut self) {
        if let Some(shared) = &self.watch.shared {
            shared.take(self.watch.cost.steps());
        }
    }
}

impl<R: Read> Read for JsonReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.watch
            .feed(&buf[..n])
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        if let Some(guard) = &self.guard {
            let tokens = std::mem::take(&mut self.watch.tokens);
            let longest = (self.watch.longest_name as u64).max(self.watch.longest_term);
            let terms = self.watch.cost.memory_bytes();
            let more = terms - std::mem::replace(&mut self.watch.memory_bytes, terms);
            let values = tokens * (TOKEN_BYTES + TOKEN_NAMES * longest);
            guard.hold((n as u64 * BYTE_BYTES + values).saturating_add(more))?;
        }
        Ok(n)
    }
}

/// What an open array or object is to the contexts around it.
enum Open {
    /// None of their business.
    Other,
    /// What `@context` says: a context, or an array of them.
    Contexts {
        terms: Option<Box<Terms>>,
        /// How deep the deepest of the array is.
        depth: usize,
    },
    /// The object, or array, that defines the latest term of the context around it.
    Definition,
}

struct Container {
    open: Open,
    is_object: bool,
    /// Whether the latest key is `@context`.
    at_context: bool,
}

/// Follows a JSON document from its first byte.
#[derive(Default)]
struct JsonWatch {
    containers: Vec<Container>,
    /// Those of them that are contexts.
    contexts: usize,
    in_string: bool,
    escaped: bool,
    /// What the string says so far, as it is written; outside of contexts only its beginning.
    string: Vec<u8>,
    /// The string, if it is the last thing seen: a colon makes a key of it.
    has_string: bool,
    line: u64,
    column: u64,
    /// Values begun since they were asked for, or so.
    tokens: u64,
    /// The length of the string being read, and whether it may be, or be part of, an IRI.
    string_bytes: usize,
    is_name: bool,
    /// The length of the longest string so far that may be an IRI.
    longest_name: usize,
    /// The length of the longest IRI that a term may stand for.
    longest_term: u64,
    cost: Cost,
    /// What the document shares with others.
    shared: Option<Arc<JsonSteps>>,
    /// The contexts that it may name, and how many name each other where it is.
    known: Contexts,
    named: usize,
    read: u64,
    /// The terms with contexts of their own.
    scoped: HashSet<String>,
    /// Whether one of them is too long to be among them.
    has_long_scoped: bool,
    /// The latest count of what terms take.
    memory_bytes: u64,
}

impl JsonWatch {
    fn feed(&mut self, bytes: &[u8]) -> Result<(), TooDeep> {
        self.read += bytes.len() as u64;
        for &b in bytes {
            // The bytes of a character but for the first are no columns of their own.
            self.column += u64::from(b & 0b1100_0000 != 0b1000_0000);
            if b == b'\n' {
                self.line += 1;
                self.column = 0;
            }
            if self.in_string {
                self.string_byte(b);
            } else {
                self.byte(b).map_err(|reason| TooDeep {
                    line: self.line + 1,
                    column: self.column.max(1),
                    reason,
                })?;
            }
        }
        Ok(())
    }

    /// The string seen last, if it ends here as a value. A context that it names counts as if it stood
    /// there.
    fn end_value(&mut self) -> Result<(), String> {
        let context = match self.has_string && self.is_at_context() {
            true => self.known.context(&unescape(&self.string)),
            false => None,
        };
        self.value();
        let Some(context) = context else {
            return Ok(());
        };
        if self.named == MAX_NAMED_CONTEXTS {
            return Err(format!(
                "contexts name each other in a circle, or more than {MAX_NAMED_CONTEXTS} deep"
            ));
        }
        self.named += 1;
        for b in context.bytes() {
            match self.in_string {
                true => self.string_byte(b),
                false => self.byte(b)?,
            }
        }
        self.named -= 1;
        Ok(())
    }

    /// Whether a text here is the IRI of a context.
    fn is_at_context(&self) -> bool {
        let innermost = self.containers.last();
        innermost.is_some_and(|it| match it.open {
            Open::Contexts { terms: None, .. } => true,
            _ => it.is_object && it.at_context,
        })
    }

    fn string_byte(&mut self, b: u8) {
        if b == b'"' && !self.escaped {
            self.in_string = false;
            self.has_string = true;
            if self.is_name {
                self.longest_name = self.longest_name.max(self.string_bytes);
            }
            return;
        }
        self.string_bytes += 1;
        self.is_name &= b != b' ';
        self.escaped = b == b'\\' && !self.escaped;
        // A term with each of its characters escaped.
        if self.contexts > 0 || self.string.len() <= 6 * MAX_TERM_BYTES {
            self.string.push(b);
        }
    }

    fn byte(&mut self, b: u8) -> Result<(), String> {
        match b {
            b'"' => {
                self.value();
                self.in_string = true;
                self.escaped = false;
                self.string.clear();
                self.string_bytes = 0;
                self.is_name = true;
            }
            b':' => {
                self.key();
                return self.cost.check(self.read, self.shared.as_deref());
            }
            b'{' | b'[' => {
                self.tokens += 1;
                self.value();
                self.word();
                return self.open(b == b'{');
            }
            b'}' | b']' => {
                self.end_value()?;
                self.close()?;
                return self.cost.check(self.read, self.shared.as_deref());
            }
            b',' => {
                self.tokens += 1;
                self.end_value()?;
                self.word();
                return self.cost.check(self.read, self.shared.as_deref());
            }
            _ => {}
        }
        Ok(())
    }

    /// A value: each comma and each bracket that opens counts as one. Values of objects count
    /// with their keys.
    fn word(&mut self) {
        self.cost.word();
        if self.contexts == 0 {
            let is_object = self.containers.last().is_some_and(|it| it.is_object);
            if !is_object {
                self.cost.value();
            }
            return;
        }
        let is_part = match self.containers.last().map(|container| &container.open) {
            Some(Open::Contexts { terms: None, .. }) => {
                self.cost.element();
                false
            }
            Some(Open::Definition) => true,
            _ => false,
        };
        self.cost.context_word(is_part);
    }

    /// Whether a text may be a term with a context of its own.
    fn is_scoped(&self, text: &str) -> bool {
        self.has_long_scoped || self.scoped.contains(text)
    }

    /// The string seen last is a key.
    fn key(&mut self) {
        if !std::mem::take(&mut self.has_string) {
            return;
        }
        self.cost.word();
        let key = unescape(&self.string);
        let is_scoped = self.contexts == 0 && self.is_scoped(&key);
        let Some(container) = self.containers.last_mut().filter(|it| it.is_object) else {
            return;
        };
        container.at_context = key == "@context";
        let defines_scoped = container.at_context && matches!(container.open, Open::Definition);
        if self.contexts > 0 {
            self.cost.context_text(self.string_bytes);
            if key == "@protected" {
                self.cost.protect();
            }
        } else if container.at_context {
            self.cost.context_key();
        } else {
            self.cost.key(self.string_bytes, is_scoped);
            self.cost.value();
        }
        if let Open::Contexts {
            terms: Some(terms), ..
        } = &mut container.open
        {
            terms.define(key);
        }
        if defines_scoped {
            self.define_scoped();
        }
    }

    /// The string seen last, if any, is a value.
    fn value(&mut self) {
        if !std::mem::take(&mut self.has_string) {
            return;
        }
        if self.contexts == 0 {
            let is_scoped = self.has_long_scoped
                || (!self.scoped.is_empty() && self.is_scoped(&unescape(&self.string)));
            return self.cost.text(self.string_bytes, self.is_name, is_scoped);
        }
        self.cost.context_text(self.string_bytes);
        let is_definition = |open: &Open| matches!(open, Open::Definition);
        let within = self
            .containers
            .iter()
            .rposition(|container| !is_definition(&container.open));
        let Some(within) = within else {
            return;
        };
        if let Open::Contexts {
            terms: Some(terms), ..
        } = &mut self.containers[within].open
        {
            terms.refer(&unescape(&self.string));
        }
    }

    fn open(&mut self, is_object: bool) -> Result<(), String> {
        if self.containers.len() == MAX_JSON_DEPTH {
            return Err(format!(
                "more than {MAX_JSON_DEPTH} arrays and objects within one another"
            ));
        }
        let contexts = || Open::Contexts {
            terms: is_object.then(Box::default),
            depth: 0,
        };
        let open = match self.containers.last() {
            Some(Container {
                at_context: true,
                is_object: true,
                ..
            }) => contexts(),
            Some(Container {
                open: Open::Contexts { terms, .. },
                ..
            }) => match terms {
                Some(_) => Open::Definition,
                None => contexts(),
            },
            Some(Container {
                open: Open::Definition,
                ..
            }) => Open::Definition,
            _ => Open::Other,
        };
        let is_element = self.is_in_contexts();
        let is_context = matches!(open, Open::Contexts { .. });
        self.contexts += usize::from(is_context);
        if is_context && !is_element {
            self.cost.open_context();
        }
        self.cost.open(is_object);
        self.containers.push(Container {
            open,
            is_object,
            at_context: false,
        });
        Ok(())
    }

    /// Whether the innermost container is a context, or an array of them.
    fn is_in_contexts(&self) -> bool {
        let innermost = self.containers.last();
        innermost.is_some_and(|it| matches!(it.open, Open::Contexts { .. }))
    }

    /// The term whose definition is open has a context of its own.
    fn define_scoped(&mut self) {
        self.cost.define_scoped();
        let mut around = self
            .containers
            .iter()
            .rev()
            .map(|container| &container.open);
        let Some(Open::Contexts {
            terms: Some(terms), ..
        }) = around.find(|open| !matches!(open, Open::Definition))
        else {
            return;
        };
        match terms.latest() {
            Some(term) if term.len() <= MAX_TERM_BYTES => {
                self.scoped.insert(term.to_owned());
            }
            _ => self.has_long_scoped = true,
        }
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(closed) = self.containers.pop() else {
            return Ok(());
        };
        let Open::Contexts { terms, depth } = closed.open else {
            self.cost.close(closed.is_object);
            return Ok(());
        };
        self.contexts -= 1;
        let chain = terms.map(|terms| terms.chain()).unwrap_or_default();
        self.cost.context_names(chain.name_bytes);
        self.longest_term = self.longest_term.max(chain.name_bytes);
        let is_element = self.is_in_contexts();
        self.cost.close(closed.is_object);
        if !is_element {
            self.cost.close_context();
        }
        let depth = depth.max(chain.definitions);
        if depth > MAX_DEFINITION_DEPTH {
            return Err(format!(
                "the terms of the @context are defined by one another in a circle, or more than \
                 {MAX_DEFINITION_DEPTH} deep"
            ));
        }
        // It is part of what is around it: of an array of contexts, or of the definition of a term.
        for container in self.containers.iter_mut().rev() {
            match &mut container.open {
                Open::Definition => {}
                Open::Contexts { terms, depth: all } => {
                    match terms {
                        Some(terms) => terms.hold(depth),
                        None => *all = depth.max(*all),
                    }
                    break;
                }
                Open::Other => break,
            }
        }
        Ok(())
    }
}

/// What a JSON string says. What is wrong with it is the parser's business.
fn unescape(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    if !text.contains('\\') {
        return text.into_owned();
    }
    let mut units = Vec::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let unit = match c {
            '\\' => match rest.next() {
                Some('u') => {
                    let digits: String = rest.by_ref().take(4).collect();
                    u16::from_str_radix(&digits, 16).unwrap_or(0xfffd)
                }
                Some('b') => 8,
                Some('f') => 12,
                Some('n') => 10,
                Some('r') => 13,
                Some('t') => 9,
                Some(c) => {
                    units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                    continue;
                }
                None => break,
            },
            c => {
                units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
                continue;
            }
        };
        units.push(unit);
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
