//! Which quads does this run of whole lines hold, and which of its lines are bad?

use crate::blank::scope_prefix;
use crate::blank::write_labelled;
use crate::document::{self, QuadScratch};
use crate::error::{IngestError, SyntaxError};
use crate::line::{LineContext, Parsed, Scratch, parse};
use crate::load::QuadSink;
use crate::odd::{self, Fault, Faults, Odd};
use memchr::{memchr, memchr_iter};
use oxrdf::{GraphNameRef, Quad};
use oxttl::{NQuadsParser, NTriplesParser, TurtleSyntaxError};

/// How many lines are parsed between two looks at the stop signal.
const LINES_PER_POLL: u64 = 1024;

/// A bad line; its number is counted from 0 within the run of lines.
#[derive(Debug)]
pub(crate) struct BadLine {
    pub(crate) line: u64,
    pub(crate) column: u64,
    pub(crate) reason: String,
}

/// Why a run of lines was left before its end.
pub(crate) enum Stop<E> {
    /// A bad line, in strict mode.
    Bad(BadLine),
    /// The sink refused a quad.
    Sink(E),
    /// The stop signal was given.
    Asked,
}

/// What a run of lines came to.
#[derive(Default)]
pub(crate) struct Tally {
    /// Lines seen, counting a line feed, a carriage return, or both together as one line end.
    pub(crate) lines: u64,
    pub(crate) quads: u64,
    /// Bad lines left out, in lenient mode.
    pub(crate) skipped: u64,
    /// The first few of them.
    pub(crate) bad: Vec<BadLine>,
    pub(crate) faults: Faults,
    /// What was kept, in lenient mode.
    pub(crate) odd: Odd,
}

/// Reads lines of N-Quads that are in memory on the calling thread: for texts that are too short to be
/// worth others. `_:x` reaches the sink as `fN_x`, where N is `blank_scope`.
///
/// # Errors
/// [`IngestError::Syntax`] with the line and column of `text`; [`IngestError::Sink`].
pub fn read_lines<S: QuadSink>(
    name: &str,
    text: &[u8],
    blank_scope: u64,
    sink: &mut S,
) -> Result<(), IngestError> {
    let blank_prefix = scope_prefix(blank_scope);
    let mut reader = LineReader {
        context: LineContext {
            graph_names: true,
            blank_prefix: &blank_prefix,
            default_graph: GraphNameRef::DefaultGraph,
        },
        lenient: false,
        max_described: 0,
        scratch: Scratch::default(),
        quad_scratch: QuadScratch::default(),
    };
    let mut tally = Tally::default();
    let read = reader.read(text, sink, || false, &mut tally);
    read.map_err(|stop| match stop {
        Stop::Bad(bad) => IngestError::Syntax(SyntaxError {
            file: name.into(),
            line: Some(bad.line + 1),
            column: Some(bad.column),
            reason: bad.reason,
        }),
        Stop::Sink(error) => IngestError::Sink {
            file: name.into(),
            source: Box::new(error),
        },
        Stop::Asked => unreachable!("nobody asks"),
    })
}

/// Reads runs of lines on one thread.
pub(crate) struct LineReader<'a> {
    pub(crate) context: LineContext<'a>,
    pub(crate) lenient: bool,
    /// How many bad lines are described; the others are counted.
    pub(crate) max_described: usize,
    pub(crate) scratch: Scratch,
    pub(crate) quad_scratch: QuadScratch,
}

impl LineReader<'_> {
    /// Hands the quads of `bytes` to `sink`. The tally is right up to the line that stopped it.
    pub(crate) fn read<S: QuadSink>(
        &mut self,
        bytes: &[u8],
        sink: &mut S,
        asked_to_stop: impl Fn() -> bool,
        tally: &mut Tally,
    ) -> Result<(), Stop<S::Error>> {
        // One look at the whole run is much cheaper than one at each line. If it fails, the bad
        // bytes may still stand in a comment, where nobody minds.
        let whole = str::from_utf8(bytes).ok();
        let mut start = 0;
        let mut next_poll = LINES_PER_POLL;
        while start < bytes.len() {
            let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |at| start + at);
            let stripped = match bytes[start..end] {
                [.., b'\r'] => end - 1,
                _ => end,
            };
            match whole {
                Some(text) => self.line(&text[start..stripped], sink, tally)?,
                None => match str::from_utf8(&bytes[start..stripped]) {
                    Ok(line) => self.line(line, sink, tally)?,
                    Err(_) => self.unsure(&bytes[start..stripped], sink, tally)?,
                },
            }
            tally.lines += 1;
            start = end + 1;
            if tally.lines >= next_poll {
                next_poll = tally.lines + LINES_PER_POLL;
                if asked_to_stop() {
                    return Err(Stop::Asked);
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn line<S: QuadSink>(
        &mut self,
        line: &str,
        sink: &mut S,
        tally: &mut Tally,
    ) -> Result<(), Stop<S::Error>> {
        match parse(line, &self.context, &mut self.scratch) {
            Parsed::Quad(quad) => {
                sink.quad(quad).map_err(Stop::Sink)?;
                tally.quads += 1;
                Ok(())
            }
            Parsed::Nothing => Ok(()),
            Parsed::Unsure => self.unsure(line.as_bytes(), sink, tally),
        }
    }

    /// A line that is not of the plain kind. It may hold carriage returns, which end lines too.
    #[cold]
    fn unsure<S: QuadSink>(
        &mut self,
        line: &[u8],
        sink: &mut S,
        tally: &mut Tally,
    ) -> Result<(), Stop<S::Error>> {
        let mut start = 0;
        for end in memchr_iter(b'\r', line).chain([line.len()]) {
            self.exact(&line[start..end], sink, tally)?;
            if end < line.len() {
                tally.lines += 1;
            }
            start = end + 1;
        }
        Ok(())
    }

    /// Lets oxttl have the last word about one line. A line with any error gives no quad.
    fn exact<S: QuadSink>(
        &mut self,
        line: &[u8],
        sink: &mut S,
        tally: &mut Tally,
    ) -> Result<(), Stop<S::Error>> {
        let (column, reason, fault) = match self.parsed(line, false) {
            Ok(quads) => match quads.iter().find_map(document::unsupported) {
                Some(reason) => (0, reason.to_owned(), Fault::Other),
                None => return self.emit(&quads, sink, tally),
            },
            Err(e) => {
                let reason = about_a_line(&e, line);
                let fault = Fault::of_parser(&reason);
                (e.location().start.column, reason, fault)
            }
        };
        if self.lenient
            && let Some((quads, odd)) = self.read_odd(line)
        {
            tally.odd.add(odd);
            return self.emit(&quads, sink, tally);
        }
        let bad = BadLine {
            line: tally.lines,
            column: column + 1,
            reason,
        };
        if !self.lenient {
            return Err(Stop::Bad(bad));
        }
        tally.skipped += 1;
        tally.faults.count(fault);
        if tally.bad.len() < self.max_described {
            tally.bad.push(bad);
        }
        Ok(())
    }

    /// What oxttl makes of a line; IRIs and language tags may be let pass.
    fn parsed(&self, line: &[u8], lets_pass: bool) -> Result<Vec<Quad>, TurtleSyntaxError> {
        if self.context.graph_names {
            let parser = NQuadsParser::new();
            let parser = if lets_pass { parser.lenient() } else { parser };
            return parser.for_slice(line).collect();
        }
        let parser = NTriplesParser::new();
        let parser = if lets_pass { parser.lenient() } else { parser };
        let quad = |triple: oxrdf::Triple| triple.in_graph(oxrdf::GraphName::DefaultGraph);
        parser
            .for_slice(line)
            .map(|triple| Ok(quad(triple?)))
            .collect()
    }

    /// The quads of a line with odd terms, if they can be read.
    fn read_odd(&self, line: &[u8]) -> Option<(Vec<Quad>, Odd)> {
        let quads = self.parsed(line, true).ok()?;
        let mut odd = Odd {
            escapes: odd::surrogates(line),
            ..Odd::default()
        };
        let mut is_read = |quad: &Quad| {
            document::unsupported(quad).is_none() && odd::reads(quad.as_ref(), &mut odd)
        };
        quads.iter().all(&mut is_read).then_some((quads, odd))
    }

    fn emit<S: QuadSink>(
        &mut self,
        quads: &[Quad],
        sink: &mut S,
        tally: &mut Tally,
    ) -> Result<(), Stop<S::Error>> {
        let prefix = self.context.blank_prefix;
        for quad in quads {
            let quad = self
                .quad_scratch
                .outside(quad, self.context.default_graph, |out, node| {
                    write_labelled(out, prefix, node.as_str());
                });
            sink.quad(quad).map_err(Stop::Sink)?;
            tally.quads += 1;
        }
        Ok(())
    }
}

/// oxttl has seen one line and takes its end for the end of the file.
fn about_a_line(error: &TurtleSyntaxError, line: &[u8]) -> String {
    let at = usize::try_from(error.location().start.offset).ok();
    let in_string = at.is_some_and(|at| line.get(at) == Some(&b'"'));
    match error.message() {
        "Unexpected end of file" | "Unexpected end" if in_string => {
            "Unexpected end of line in a string".to_owned()
        }
        "Unexpected end of file" | "Unexpected end" => "Unexpected end of line".to_owned(),
        message => message.to_owned(),
    }
}
