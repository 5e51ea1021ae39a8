//! Which quads are of statements that can be read as a whole?
//!
//! The parser of Turtle and TriG gives quads as they are found, also of a statement that proves to
//! be wrong a word later. In a lenient load nothing of such a statement may be stored. So the parser
//! gets one statement at a time, and the quads of one are kept until it gives one of another: where
//! a word is not closed, it may look for its end in the statements that follow, and then finds an
//! error that began in the one before.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use oxrdf::Quad;

use crate::turtle::TurtleWatch;

/// The most quads of one statement that are kept until its end is known.
pub(crate) const MOST_QUADS: usize = 1 << 20;
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// How far the parser has got.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    /// The number of the statement that it has got last.
    number: Cell<u64>,
    /// The statement whose quads are kept, and where it ends, if the parser has got more.
    kept: Cell<u64>,
    kept_end: Cell<Option<u64>>,
}

/// Hands on a document statement by statement: no read goes beyond the end of one, but for the byte
/// after its point, without which that may be the begin of a number.
pub(crate) struct StatementReader<R> {
    inner: R,
    watch: TurtleWatch,
    read: Box<[u8]>,
    /// What of `read` was not handed on.
    begin: usize,
    end: usize,
    /// Bytes handed on.
    place: u64,
    /// Where the statement has ended, if the next byte is of another one.
    ended_at: Option<u64>,
    reached: Rc<Reached>,
}

impl<R: Read> StatementReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self {
            inner,
            watch: TurtleWatch::default(),
            read: vec![0; READ_BYTES].into(),
            begin: 0,
            end: 0,
            place: 0,
            ended_at: None,
            reached: Rc::default(),
        }
    }

    pub(crate) fn reached(&self) -> Rc<Reached> {
        Rc::clone(&self.reached)
    }

    fn begin_next(&mut self) {
        let Some(end) = self.ended_at.take() else {
            return;
        };
        let reached = &self.reached;
        if reached.kept.get() == reached.number.get() {
            reached.kept_end.set(Some(end));
        }
        reached.number.set(reached.number.get() + 1);
    }
}

impl<R: Read> Read for StatementReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.begin == self.end {
            self.end = self.inner.read(&mut self.read)?;
            self.begin = 0;
        }
        let waiting = (self.end - self.begin).min(buf.len());
        if waiting == 0 {
            return Ok(0);
        }
        self.begin_next();
        let waiting = &self.read[self.begin..self.begin + waiting];
        let ended = self.watch.ended();
        let last = waiting.iter().position(|&byte| {
            self.watch.byte(byte);
            self.watch.ended() > ended
        });
        let count = last.map_or(waiting.len(), |last| last + 1);
        buf[..count].copy_from_slice(&waiting[..count]);
        self.begin += count;
        self.place += count as u64;
        // The byte after a point is of what follows; a brace is the end itself.
        let is_brace = |last: usize| u64::from(buf[last] != b'}');
        self.ended_at = last.map(|last| self.place - is_brace(last));
        Ok(count)
    }
}

/// The quads of the statement that is being parsed.
pub(crate) struct Kept {
    reached: Rc<Reached>,
    quads: Vec<Quad>,
    /// The statement of which nothing is kept any more.
    bad: Option<u64>,
}

/// There are more quads in a statement than are kept.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Kept {
    pub(crate) fn new(reached: Rc<Reached>) -> Self {
        Self {
            reached,
            quads: Vec::new(),
            bad: None,
        }
    }

    /// The quads that were kept, if the parser gives one of another statement: theirs is good.
    pub(crate) fn before_quad(&mut self) -> Vec<Quad> {
        match self.reached.kept.get() == self.reached.number.get() {
            true => Vec::new(),
            false => self.finish(),
        }
    }

    /// Keeps a quad, unless its statement is known to be bad.
    ///
    /// # Errors
    /// One quad is one too many: the statement is bad.
    pub(crate) fn keep(&mut self, quad: Quad) -> Result<(), TooMany> {
        let number = self.reached.number.get();
        if self.bad == Some(number) {
            return Ok(());
        }
        if self.quads.len() == MOST_QUADS {
            return Err(TooMany);
        }
        self.reached.kept.set(number);
        self.reached.kept_end.set(None);
        self.quads.push(quad);
        Ok(())
    }

    /// Leaves out the statement of an error that begins at a byte. Gives the quads that were kept,
    /// if they are of one that ended before.
    pub(crate) fn spoil(&mut self, place: Option<u64>) -> Vec<Quad> {
        self.bad = Some(self.reached.number.get());
        let kept = std::mem::take(&mut self.quads);
        match (self.reached.kept_end.get(), place) {
            (Some(end), Some(place)) if place >= end => kept,
            _ => Vec::new(),
        }
    }

    /// The quads of the last statement.
    pub(crate) fn finish(&mut self) -> Vec<Quad> {
        std::mem::take(&mut self.quads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_read_is_of_one_statement_and_nothing_is_lost() {
        let text =
            "@prefix e: <http://e/> . e:a e:b 1.5, \". \" .<a> <b> <c>.\n<d> { <e> <f> 1 } .";
        let mut reader = StatementReader::new(text.as_bytes());
        let reached = reader.reached();
        let mut parts = Vec::new();
        loop {
            let mut buf = [0; 1000];
            let count = reader.read(&mut buf).expect("it is in memory");
            if count == 0 {
                break;
            }
            let part = String::from_utf8(buf[..count].to_vec()).expect("it is text");
            parts.push((reached.number.get(), part));
        }
        let whole: String = parts.iter().map(|(_, part)| part.as_str()).collect();
        assert_eq!(whole, text);
        let numbers: Vec<u64> = parts.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4], "{parts:?}");
    }

    #[test]
    fn what_is_handed_on_does_not_depend_on_how_it_is_read() {
        let text = "<a> <b> 1 . <a> <b> 2.5 . ".repeat(100);
        let mut reader = StatementReader::new(text.as_bytes());
        let (mut whole, mut buf) = (Vec::new(), [0; 7]);
        while let count @ 1.. = reader.read(&mut buf).expect("it is in memory") {
            whole.extend_from_slice(&buf[..count]);
        }
        assert_eq!(whole, text.as_bytes());
        assert_eq!(reader.reached().number.get(), 199);
    }
}
