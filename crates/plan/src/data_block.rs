//! Which quads does the block of an INSERT DATA or DELETE DATA say?
//!
//! They are handed on one by one while the text is read: no tree is built, and nothing is kept but
//! what the brackets open at the time need. The block is read once to check it before anything is
//! executed, and again when its operation is executed.

use std::mem::size_of;
use std::ops::Range;
use std::sync::Arc;

use oxrdf::vocab::rdf;
use oxrdf::{LiteralRef, NamedNodeRef};
use rustc_hash::FxHashMap;

use crate::data_terms::{Cursor, Declarations, Object, ObjectKind, Reserve, Scope};
use crate::error::PlanError;
use crate::stack::MAX_NESTING;

/// Bytes of a label that is remembered: its entry in a table, which may just have been doubled
/// and copied.
const LABEL_BYTES: usize = 4 * (size_of::<(&str, u32)>() + 1);

/// The data of an INSERT DATA or DELETE DATA, as its text.
#[derive(Clone, Debug, PartialEq)]
pub struct DataBlock<'a> {
    /// The text up to the end of the operation, without the semicolon after it.
    text: &'a str,
    /// Where its opening brace is.
    start: usize,
    declarations: Arc<Declarations<'a>>,
    visible: u32,
    /// Whether blank nodes are allowed.
    has_blanks: bool,
}

/// A quad of a [`DataBlock`]. It holds until the next one is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataQuad<'q> {
    /// An IRI or a blank node.
    pub subject: DataTerm<'q>,
    /// The predicate's IRI.
    pub predicate: &'q str,
    /// Any term.
    pub object: DataTerm<'q>,
    /// The graph's IRI; none for the default graph.
    pub graph: Option<&'q str>,
}

/// A subject or object of a [`DataBlock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataTerm<'q> {
    /// An IRI.
    Iri(&'q str),
    /// A literal.
    Literal(LiteralRef<'q>),
    /// A blank node by its label: a new node whenever the operation is executed, unlike any of
    /// the store or of another operation; the same label is the same node.
    Label(&'q str),
    /// A blank node without a label, by a number from 0 on that no other has.
    Anonymous(u64),
}

impl<'a> DataBlock<'a> {
    /// The block of the operation that a text has at a range, with the keywords before and perhaps
    /// a semicolon after it.
    ///
    /// # Errors
    /// [`PlanError::Syntax`].
    pub(crate) fn new(
        text: &'a str,
        operation: &Range<usize>,
        declarations: &Arc<Declarations<'a>>,
        visible: u32,
    ) -> Result<Self, PlanError> {
        let mut cursor = Cursor::new(&text[..operation.end], operation.start);
        let word = cursor.word();
        // INSERT or DELETE, and DATA, which may follow at once.
        let (verb, rest) = text[word.clone()].split_at(6);
        cursor.at = word.end;
        if rest.is_empty() {
            cursor.skip_space();
            cursor.at = cursor.word().end;
        }
        cursor.skip_space();
        Ok(Self {
            text: cursor.text,
            start: cursor.at,
            declarations: Arc::clone(declarations),
            visible,
            has_blanks: verb.eq_ignore_ascii_case("INSERT"),
        })
    }

    /// Whether it is that of INSERT DATA.
    pub(crate) const fn inserts(&self) -> bool {
        self.has_blanks
    }

    /// Reads the block, and hands each quad to `sink`, in no particular order, repeats included.
    ///
    /// Costs some hundred nanoseconds for each quad. Holds the terms in front of the brackets open
    /// at the time, and nothing else.
    ///
    /// # Errors
    /// What `sink` returns, which ends it.
    pub fn for_each<E: From<PlanError>>(
        &self,
        sink: &mut dyn FnMut(&DataQuad<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.read(sink, &mut |_, _| Ok(false), &mut |_| true)
    }

    /// Reads the block to its end, so that [`DataBlock::for_each`] finds nothing wrong with it.
    /// What reading it takes is reserved.
    ///
    /// # Errors
    /// [`PlanError::Syntax`], [`PlanError::TooLarge`] and [`PlanError::MemoryRefused`].
    pub(crate) fn check(
        &self,
        labels: Option<&mut Labels<'a>>,
        reserve: &mut Reserve<'_>,
    ) -> Result<(), PlanError> {
        let Some(labels) = labels else {
            return self.read::<PlanError>(&mut |_| Ok(()), &mut |_, _| Ok(false), reserve);
        };
        labels.block += 1;
        let mut see = |label: &'a str, at: usize| {
            labels.see(label).ok_or_else(|| {
                let message =
                    format!("the blank node _:{label} is used in two INSERT DATA operations");
                Cursor::new(self.text, at).wrong(at, message)
            })
        };
        self.read::<PlanError>(&mut |_| Ok(()), &mut see, reserve)
    }

    fn read<E: From<PlanError>>(
        &self,
        sink: &mut dyn FnMut(&DataQuad<'_>) -> Result<(), E>,
        see: &mut dyn FnMut(&'a str, usize) -> Result<bool, PlanError>,
        reserve: &mut Reserve<'_>,
    ) -> Result<(), E> {
        let mut reader = Reader {
            cursor: Cursor::new(self.text, self.start),
            scope: Scope {
                declarations: &self.declarations,
                visible: self.visible,
            },
            has_blanks: self.has_blanks,
            object: Object::default(),
            names: String::new(),
            graph: None,
            frames: Vec::new(),
            anonymous: 0,
            reserved: 0,
            see,
            reserve,
            sink,
        };
        reader.block()
    }
}

/// The labels of the INSERT DATA operations of a request.
#[derive(Debug, Default)]
pub(crate) struct Labels<'a> {
    seen: FxHashMap<&'a str, u32>,
    block: u32,
}

impl<'a> Labels<'a> {
    /// Whether a label of the present block is new; none if it is one of an earlier block.
    fn see(&mut self, label: &'a str) -> Option<bool> {
        let mut is_new = false;
        let block = self.seen.entry(label).or_insert_with(|| {
            is_new = true;
            self.block
        });
        (*block == self.block).then_some(is_new)
    }
}

/// A subject or an object.
#[derive(Clone, Debug)]
enum Node {
    /// It is at this range of the names.
    Iri(Range<usize>),
    Label(Range<usize>),
    Anonymous(u64),
}

/// Brackets that are open, or the triples of one subject.
#[derive(Debug)]
struct Frame {
    kind: FrameKind,
    /// The subject, or the present node of a list.
    subject: Node,
    /// Where the names begin that are its own; the subject's is before the predicate's.
    names: usize,
    /// Where the predicate is.
    predicate: Range<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FrameKind {
    Subject,
    /// Between `[` and `]`.
    Properties,
    /// Between `(` and `)`.
    List {
        /// The number of its first node, which is what the list is to others.
        first: u64,
        is_empty: bool,
    },
}

/// Brackets that open and have something in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    Properties,
    List,
}

/// The object of a quad.
#[derive(Clone, Copy)]
enum Last {
    /// The term read last.
    Term,
    Anonymous(u64),
    Nil,
}

/// What has to come next.
#[derive(Clone, Copy)]
enum Next {
    Verb,
    Object,
    AfterObject,
    /// After `[...]` or `(...)` as a subject.
    AfterSubject,
}

struct Reader<'r, 'a, E> {
    cursor: Cursor<'a>,
    scope: Scope<'r, 'a>,
    has_blanks: bool,
    /// The last term.
    object: Object,
    /// The IRIs and labels that the graph and the frames need, one after the other.
    names: String,
    graph: Option<usize>,
    frames: Vec<Frame>,
    /// Blank nodes without label so far.
    anonymous: u64,
    reserved: usize,
    /// Told of each label; gives whether it is to be remembered.
    see: &'r mut dyn FnMut(&'a str, usize) -> Result<bool, PlanError>,
    reserve: &'r mut Reserve<'r>,
    sink: &'r mut dyn FnMut(&DataQuad<'_>) -> Result<(), E>,
}

impl<E: From<PlanError>> Reader<'_, '_, E> {
    fn block(&mut self) -> Result<(), E> {
        self.expect(b'{')?;
        loop {
            self.cursor.skip_space();
            if self.cursor.peek() == Some(b'}') {
                self.cursor.at += 1;
                break;
            }
            if self.cursor.has_graph() {
                self.graph_block()?;
            } else {
                self.statement()?;
            }
            self.cursor.skip_space();
            // The parser of patterns does without points here, too.
            if self.cursor.peek() == Some(b'.') {
                self.cursor.at += 1;
            }
        }
        self.cursor.skip_space();
        if self.cursor.peek() == Some(b';') {
            self.cursor.at += 1;
            self.cursor.skip_space();
        }
        match self.cursor.peek() {
            None => Ok(()),
            Some(_) => Err(self.cursor.unexpected("; or the end of the update").into()),
        }
    }

    fn graph_block(&mut self) -> Result<(), E> {
        self.cursor.at = self.cursor.word().end;
        self.cursor.skip_space();
        self.cursor.iri(self.scope, &mut self.object)?;
        self.names.push_str(&self.object.value);
        self.graph = Some(self.names.len());
        self.cursor.skip_space();
        self.expect(b'{')?;
        loop {
            self.cursor.skip_space();
            if self.cursor.peek() == Some(b'}') {
                break;
            }
            self.statement()?;
            self.cursor.skip_space();
            match self.cursor.peek() {
                Some(b'.') => self.cursor.at += 1,
                Some(b'}') => break,
                _ => return Err(self.cursor.unexpected("one of ., ;, , and }").into()),
            }
        }
        self.cursor.at += 1;
        self.graph = None;
        self.names.clear();
        Ok(())
    }

    fn expect(&mut self, byte: u8) -> Result<(), PlanError> {
        if self.cursor.peek() != Some(byte) {
            return Err(self.cursor.unexpected(&char::from(byte).to_string()));
        }
        self.cursor.at += 1;
        Ok(())
    }

    /// Reads the triples of one subject and of what is nested in them.
    fn statement(&mut self) -> Result<(), E> {
        let mut next = match self.opening()? {
            Some(opening) => {
                let number = self.fresh();
                self.open(opening, number)?
            }
            None => {
                let start = self.cursor.at;
                self.term()?;
                if self.object.is_literal() {
                    let message = "a literal cannot be a subject";
                    return Err(self.cursor.wrong(start, message).into());
                }
                let names = self.names.len();
                self.names.push_str(&self.object.value);
                let range = names..self.names.len();
                let subject = match self.object.kind {
                    ObjectKind::Label => Node::Label(range),
                    ObjectKind::Anonymous(number) => Node::Anonymous(number),
                    _ => Node::Iri(range),
                };
                self.push(FrameKind::Subject, subject, names)?;
                Next::Verb
            }
        };
        while !self.frames.is_empty() {
            self.cursor.skip_space();
            next = match next {
                Next::Verb => self.verb()?,
                Next::Object => self.read_object()?,
                Next::AfterObject => self.after_object()?,
                Next::AfterSubject if self.cursor.has_verb() => Next::Verb,
                Next::AfterSubject => self.close(),
            };
        }
        Ok(())
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a statement is being read")
    }

    fn verb(&mut self) -> Result<Next, E> {
        self.cursor.verb(self.scope, &mut self.object)?;
        let frame = self.frames.last_mut().expect("a statement is being read");
        let start = match &frame.subject {
            Node::Iri(range) | Node::Label(range) => range.end,
            Node::Anonymous(_) => frame.names,
        };
        self.names.truncate(start);
        self.names.push_str(&self.object.value);
        frame.predicate = start..self.names.len();
        Ok(Next::Object)
    }

    fn read_object(&mut self) -> Result<Next, E> {
        let Some(opening) = self.opening()? else {
            self.term()?;
            self.emit()?;
            return Ok(Next::AfterObject);
        };
        let number = self.fresh();
        self.object.kind = ObjectKind::Anonymous(number);
        self.emit()?;
        Ok(self.open(opening, number)?)
    }

    fn after_object(&mut self) -> Result<Next, E> {
        let byte = self.cursor.peek();
        match self.frame().kind {
            FrameKind::List { .. } => {
                if byte != Some(b')') {
                    return Ok(Next::Object);
                }
                self.cursor.at += 1;
                self.send(Some(rdf::REST), Last::Nil)?;
                Ok(self.close_brackets())
            }
            kind => {
                match byte {
                    Some(b',') => {
                        self.cursor.at += 1;
                        return Ok(Next::Object);
                    }
                    Some(b';') => {
                        while self.cursor.peek() == Some(b';') {
                            self.cursor.at += 1;
                            self.cursor.skip_space();
                        }
                        if self.cursor.has_verb() {
                            return Ok(Next::Verb);
                        }
                    }
                    _ => (),
                }
                if kind == FrameKind::Subject {
                    return Ok(self.close());
                }
                if self.cursor.peek() != Some(b']') {
                    return Err(self.cursor.unexpected("one of ,, ; and ]").into());
                }
                self.cursor.at += 1;
                Ok(self.close_brackets())
            }
        }
    }

    /// Ends a frame whose brackets were closed: as an object of another, or as a subject.
    fn close_brackets(&mut self) -> Next {
        if self.frames.len() > 1 {
            return self.close();
        }
        let frame = self.frame();
        if let FrameKind::List { first, .. } = frame.kind {
            frame.subject = Node::Anonymous(first);
        }
        frame.kind = FrameKind::Subject;
        frame.predicate = 0..0;
        Next::AfterSubject
    }

    fn close(&mut self) -> Next {
        if let Some(frame) = self.frames.pop() {
            self.names.truncate(frame.names);
        }
        Next::AfterObject
    }

    /// The brackets that open here, if they do and have anything in them.
    fn opening(&self) -> Result<Option<Opening>, PlanError> {
        let (close, opening) = match self.cursor.peek() {
            Some(b'[') => (b']', Opening::Properties),
            Some(b'(') => (b')', Opening::List),
            _ => return Ok(None),
        };
        let is_empty = self.cursor.empty_brackets(close).is_some();
        if !self.has_blanks && (opening == Opening::Properties || !is_empty) {
            return Err(self.no_blanks());
        }
        Ok((!is_empty).then_some(opening))
    }

    fn no_blanks(&self) -> PlanError {
        let message = "blank nodes are not allowed in DELETE DATA";
        self.cursor.wrong(self.cursor.at, message)
    }

    /// A number for a blank node.
    fn fresh(&mut self) -> u64 {
        self.anonymous += 1;
        self.anonymous - 1
    }

    /// Opens brackets whose node has this number.
    fn open(&mut self, opening: Opening, number: u64) -> Result<Next, PlanError> {
        self.cursor.at += 1;
        let (kind, next) = match opening {
            Opening::Properties => (FrameKind::Properties, Next::Verb),
            Opening::List => {
                let list = FrameKind::List {
                    first: number,
                    is_empty: true,
                };
                (list, Next::Object)
            }
        };
        let names = self.names.len();
        self.push(kind, Node::Anonymous(number), names)?;
        Ok(next)
    }

    fn push(&mut self, kind: FrameKind, subject: Node, names: usize) -> Result<(), PlanError> {
        if self.frames.len() > MAX_NESTING {
            return Err(PlanError::TooLarge {
                what: "brackets open at once",
                limit: MAX_NESTING,
            });
        }
        self.frames.push(Frame {
            kind,
            subject,
            names,
            predicate: 0..0,
        });
        Ok(())
    }

    /// Reads a term that is no brackets with anything in them.
    fn term(&mut self) -> Result<(), PlanError> {
        let bytes = &self.cursor.text.as_bytes()[self.cursor.at..];
        match bytes.first() {
            Some(b'[') => {
                self.cursor.at = self.cursor.empty_brackets(b']').expect("it is no opening");
                self.object.value.clear();
                self.object.kind = ObjectKind::Anonymous(self.fresh());
            }
            Some(b'(') => {
                self.cursor.at = self.cursor.empty_brackets(b')').expect("it is no opening");
                self.object.kind = ObjectKind::Iri;
                self.object.value.clear();
                self.object.value.push_str(rdf::NIL.as_str());
            }
            Some(b'_') if bytes.starts_with(b"_:") => {
                if !self.has_blanks {
                    return Err(self.no_blanks());
                }
                let at = self.cursor.at;
                let label = self.cursor.label()?;
                if (self.see)(label, at)? && !(self.reserve)(LABEL_BYTES) {
                    return Err(PlanError::MemoryRefused);
                }
                self.object.kind = ObjectKind::Label;
                self.object.value.clear();
                self.object.value.push_str(label);
            }
            _ => self.cursor.term(self.scope, &mut self.object)?,
        }
        let held = self.object.capacity() + self.names.capacity();
        if held > self.reserved {
            if !(self.reserve)(held - self.reserved) {
                return Err(PlanError::MemoryRefused);
            }
            self.reserved = held;
        }
        Ok(())
    }

    /// Hands the quad on whose object, or the item of a list, is the last term.
    fn emit(&mut self) -> Result<(), E> {
        let FrameKind::List { first, is_empty } = self.frame().kind else {
            return self.send(None, Last::Term);
        };
        if !is_empty {
            let node = self.fresh();
            self.send(Some(rdf::REST), Last::Anonymous(node))?;
            self.frame().subject = Node::Anonymous(node);
        }
        let is_empty = false;
        self.frame().kind = FrameKind::List { first, is_empty };
        self.send(Some(rdf::FIRST), Last::Term)
    }

    /// Hands on a quad of the present frame.
    fn send(&mut self, predicate: Option<NamedNodeRef<'static>>, object: Last) -> Result<(), E> {
        let frame = self.frames.last().expect("a statement is being read");
        let quad = DataQuad {
            subject: match &frame.subject {
                Node::Iri(range) => DataTerm::Iri(&self.names[range.clone()]),
                Node::Label(range) => DataTerm::Label(&self.names[range.clone()]),
                Node::Anonymous(number) => DataTerm::Anonymous(*number),
            },
            predicate: match predicate {
                Some(predicate) => predicate.as_str(),
                None => &self.names[frame.predicate.clone()],
            },
            object: match object {
                Last::Term => term_of(&self.object),
                Last::Anonymous(number) => DataTerm::Anonymous(number),
                Last::Nil => DataTerm::Iri(rdf::NIL.as_str()),
            },
            graph: self.graph.map(|end| &self.names[..end]),
        };
        (self.sink)(&quad)
    }
}

/// A term as it is handed on.
fn term_of(object: &Object) -> DataTerm<'_> {
    let value = object.value.as_str();
    DataTerm::Literal(match object.kind {
        ObjectKind::Iri => return DataTerm::Iri(value),
        ObjectKind::Label => return DataTerm::Label(value),
        ObjectKind::Anonymous(number) => return DataTerm::Anonymous(number),
        ObjectKind::Simple => LiteralRef::new_simple_literal(value),
        ObjectKind::Language => {
            LiteralRef::new_language_tagged_literal_unchecked(value, &object.suffix)
        }
        ObjectKind::Typed => {
            LiteralRef::new_typed_literal(value, NamedNodeRef::new_unchecked(&object.suffix))
        }
        ObjectKind::Known(datatype) => {
            LiteralRef::new_typed_literal(value, NamedNodeRef::new_unchecked(datatype))
        }
    })
}
