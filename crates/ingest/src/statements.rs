//! Which statements of this Turtle or TriG document can be read, where some cannot?
//!
//! Nothing of a statement that cannot be read as a whole may be stored, and none of the others may be
//! lost with it. So a lenient load cuts a document at the ends of statements, which are known without
//! the parser (`turtle`): a string that is not closed ends with its line. Many statements go to the
//! parser at once, as it has them in any other load; where it finds an error in them, they go to it
//! once more, with IRIs and language tags let pass that can be read; and if that is not all, each
//! alone. Declarations and the graph around are written before whatever goes to it.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::rc::Rc;

use oxrdf::{BlankNode, GraphName, Quad};
use oxrdfio::TextPosition;
use oxttl::{TriGParser, TurtleParser, TurtleSyntaxError};

use crate::document::{Delivery, unsupported};
use crate::error::{IngestError, SyntaxError};
use crate::format::Format;
use crate::iri;
use crate::load::QuadSink;
use crate::odd::{Fault, Odd, reads, surrogates};
use crate::source::read_error;
use crate::turtle::TurtleWatch;

/// About how much text of whole statements goes to the parser at once.
const BATCH_BYTES: usize = 256 << 10;
/// A longer statement is left out: it is kept until it is known to be whole.
const MOST_STATEMENT_BYTES: usize = 64 << 20;
/// Bytes read at once.
const READ_BYTES: usize = 64 << 10;

const TOO_LONG: &str = "the statement has more than 64 MiB, which is more than is kept until it is \
                        known to be whole; without --lenient it can be read";
const NOT_CLOSED: &str = "a string or an IRI is not closed where it has to be";
const FORMULA: &str = "it is part of a formula of Notation3, which is not read";

/// Hands on the quads of all statements that can be read.
///
/// # Errors
/// What is not about the text.
pub(crate) fn read<S: QuadSink>(
    format: Format,
    reader: impl Read,
    base_iri: Option<&str>,
    delivery: &mut Delivery<'_, S>,
    asked_to_stop: impl Fn() -> bool,
) -> Result<(), IngestError> {
    let mut cutter = Cutter::new(reader, format == Format::TriG);
    let mut declared = Declared {
        base: base_iri.map(str::to_owned),
        prefixes: BTreeMap::new(),
    };
    loop {
        let batch = cutter.next_batch();
        let batch = batch.map_err(|error| read_error(error, delivery.file()))?;
        if batch.pieces.is_empty() {
            return Ok(());
        }
        Reader {
            format,
            declared: &mut declared,
            delivery,
        }
        .batch(&batch)?;
        if delivery.is_time_to_look() && asked_to_stop() {
            return Ok(());
        }
    }
}

/// A statement, a declaration, or the beginning or end of a graph's block, with what is before it.
#[derive(Debug)]
struct Piece {
    /// Where it begins in the batch.
    at: usize,
    /// Where it begins in the document, counted from 0, the column in characters.
    line: u64,
    column: u64,
    /// The beginning of the graph's block that it is in.
    graph: Option<Rc<[u8]>>,
    /// A string or an IRI in it is not closed.
    is_broken: bool,
    /// Why it is not looked at.
    refused: Option<&'static str>,
}

/// Whole statements that follow each other.
#[derive(Debug, Default)]
struct Batch {
    text: Vec<u8>,
    pieces: Vec<Piece>,
    /// Whether the text ends within a graph's block.
    ends_within: bool,
}

impl Batch {
    fn text_of(&self, number: usize) -> &[u8] {
        let next = self.pieces.get(number + 1);
        &self.text[self.pieces[number].at..next.map_or(self.text.len(), |next| next.at)]
    }
}

/// What a byte does to the blocks of graphs, or to the formulas, that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Brace {
    Opens,
    Closes,
    /// It is none.
    None,
}

/// Cuts a document into statements.
struct Cutter<R> {
    inner: R,
    is_trig: bool,
    watch: TurtleWatch,
    read: Box<[u8]>,
    begin: usize,
    end: usize,
    line: u64,
    column: u64,
    after_return: bool,
    /// The beginning of the graph's block that is open.
    graph: Option<Rc<[u8]>>,
    /// Formulas of Notation3 that are open.
    formulas: u64,
    /// A byte that is the first of the next batch, and what it does.
    carried: Option<(u8, Brace)>,
}

impl<R: Read> Cutter<R> {
    fn new(inner: R, is_trig: bool) -> Self {
        Self {
            inner,
            is_trig,
            watch: TurtleWatch::default(),
            read: vec![0; READ_BYTES].into(),
            begin: 0,
            end: 0,
            line: 0,
            column: 0,
            after_return: false,
            graph: None,
            formulas: 0,
            carried: None,
        }
    }

    /// The statements that follow; none at the end of the document.
    fn next_batch(&mut self) -> io::Result<Batch> {
        let mut batch = Batch::default();
        self.begin_piece(&mut batch);
        if let Some((byte, brace)) = self.carried.take() {
            self.take(&mut batch, byte, brace);
        }
        loop {
            if self.begin == self.end {
                self.end = self.inner.read(&mut self.read)?;
                self.begin = 0;
                if self.end == 0 {
                    break;
                }
            }
            let byte = self.read[self.begin];
            self.begin += 1;
            if self.cut(&mut batch, byte) {
                break;
            }
        }
        let last = batch.pieces.last();
        if last.is_some_and(|last| last.at == batch.text.len()) {
            batch.pieces.pop();
        }
        batch.ends_within = self.graph.is_some();
        Ok(batch)
    }

    /// Takes the next byte, or carries it to the next batch; whether this one is full.
    fn cut(&mut self, batch: &mut Batch, byte: u8) -> bool {
        let before = self.watch.ends();
        self.watch.byte(byte);
        let after = self.watch.ends();
        let brace = if after.opened > before.opened {
            Brace::Opens
        } else if after.closed > before.closed {
            Brace::Closes
        } else {
            Brace::None
        };
        let of_brace = u64::from(brace == Brace::Closes);
        let is_point = after.statements - before.statements > of_brace;
        // That the line of a string or the like has ended is known by the byte after it.
        if after.broken > before.broken
            && let Some(piece) = batch.pieces.last_mut()
        {
            piece.is_broken = true;
        }
        // A point is known to end a statement by the byte after it.
        if is_point {
            if batch.text.len() >= BATCH_BYTES {
                self.carried = Some((byte, brace));
                return true;
            }
            self.begin_piece(batch);
        }
        self.take(batch, byte, brace)
    }

    /// Adds a byte to the last piece; whether the batch is full, as it ends with a brace of a graph's block.
    fn take(&mut self, batch: &mut Batch, byte: u8, brace: Brace) -> bool {
        self.push(batch, byte);
        if !self.is_trig {
            self.follow_formula(batch, brace);
            return false;
        }
        self.graph = match brace {
            Brace::Opens => Some(self.header(batch).into()),
            Brace::Closes => None,
            Brace::None => return false,
        };
        self.begin_piece(batch);
        batch.text.len() >= BATCH_BYTES
    }

    fn begin_piece(&self, batch: &mut Batch) {
        batch.pieces.push(Piece {
            at: batch.text.len(),
            line: self.line,
            column: self.column,
            graph: self.graph.clone(),
            is_broken: false,
            refused: (self.formulas > 0).then_some(FORMULA),
        });
    }

    fn push(&mut self, batch: &mut Batch, byte: u8) {
        match byte {
            b'\n' if self.after_return => {}
            b'\n' | b'\r' => {
                self.line += 1;
                self.column = 0;
            }
            // All but the first byte of a character are of this form.
            0x80..0xc0 => {}
            _ => self.column += 1,
        }
        self.after_return = byte == b'\r';
        let Some(piece) = batch.pieces.last_mut() else {
            return;
        };
        if batch.text.len() - piece.at < MOST_STATEMENT_BYTES {
            batch.text.push(byte);
        } else {
            piece.refused = Some(TOO_LONG);
        }
    }

    /// Turtle has no braces, and Notation3 has statements between them that are not facts.
    fn follow_formula(&mut self, batch: &mut Batch, brace: Brace) {
        match brace {
            Brace::Opens => {
                self.formulas += 1;
                if let Some(piece) = batch.pieces.last_mut() {
                    piece.refused = Some(FORMULA);
                }
            }
            Brace::Closes => self.formulas = self.formulas.saturating_sub(1),
            Brace::None => {}
        }
    }

    /// The beginning of the block of a graph, which is the last piece. A graph without a name gets one,
    /// as it must be the same graph for all of its statements.
    fn header(&self, batch: &mut Batch) -> Vec<u8> {
        let Some(piece) = batch.pieces.last() else {
            return Vec::new();
        };
        let written = batch.text[piece.at..].to_vec();
        if !has_anonymous_name(&written) {
            return written;
        }
        let mut named: Vec<u8> = written.iter().copied().filter(|&b| b == b'\n').collect();
        named.extend_from_slice(format!("GRAPH {} {{", BlankNode::default()).as_bytes());
        batch.text.truncate(piece.at);
        batch.text.extend_from_slice(&named);
        named
    }
}

/// Whether the name of a graph begins with a bracket, behind white space, comments and its keyword.
fn has_anonymous_name(header: &[u8]) -> bool {
    let mut rest = header;
    loop {
        rest = rest.trim_ascii_start();
        if let [b'#', ..] = rest {
            let end = memchr::memchr2(b'\n', b'\r', rest);
            rest = &rest[end.unwrap_or(rest.len())..];
        } else if rest.len() > 5 && rest[..5].eq_ignore_ascii_case(b"graph") {
            rest = &rest[5..];
        } else {
            return rest.starts_with(b"[");
        }
    }
}

/// Which declarations hold.
struct Declared {
    base: Option<String>,
    prefixes: BTreeMap<String, String>,
}

impl Declared {
    /// Them as text on one line; without those of IRIs that the parser would refuse, unless it is to
    /// let them pass.
    fn written(&self, lets_pass: bool) -> String {
        let mut text = String::new();
        let passes = |iri: &str| lets_pass || iri::is_valid(iri);
        if let Some(base) = self.base.as_deref().filter(|base| passes(base)) {
            push_declaration(&mut text, "@base", base);
        }
        for (name, iri) in self.prefixes.iter().filter(|(_, iri)| passes(iri)) {
            push_declaration(&mut text, &format!("@prefix {name}:"), iri);
        }
        text
    }
}

fn push_declaration(text: &mut String, what: &str, iri: &str) {
    text.push_str(what);
    text.push_str(" <");
    for c in iri.chars() {
        match c {
            '\0'..=' ' | '<' | '>' | '"' | '{' | '}' | '|' | '^' | '`' | '\\' => {
                text.push_str(&format!("\\u{:04X}", u32::from(c)));
            }
            c => text.push(c),
        }
    }
    text.push_str("> . ");
}

/// What the parser made of a text.
struct Parsed {
    quads: Vec<Quad>,
    error: Option<TurtleSyntaxError>,
    base: Option<String>,
    prefixes: Vec<(String, String)>,
    /// The line on which the text begins, behind what was written before it.
    first_line: u64,
}

/// Reads batches into a sink.
struct Reader<'a, 'd, S> {
    format: Format,
    declared: &'a mut Declared,
    delivery: &'a mut Delivery<'d, S>,
}

impl<S: QuadSink> Reader<'_, '_, S> {
    fn batch(&mut self, batch: &Batch) -> Result<(), IngestError> {
        let Some(first) = batch.pieces.first() else {
            return Ok(());
        };
        let is_whole = |piece: &Piece| !piece.is_broken && piece.refused.is_none();
        if batch.pieces.iter().all(is_whole) {
            for lets_pass in [false, true] {
                let parsed = self.parse(first, &batch.text, batch.ends_within, lets_pass);
                if self.deliver(parsed, &batch.text, lets_pass)?.is_ok() {
                    return Ok(());
                }
            }
        }
        (0..batch.pieces.len()).try_for_each(|number| self.alone(batch, number))
    }

    /// Reads one statement, or leaves it out.
    fn alone(&mut self, batch: &Batch, number: usize) -> Result<(), IngestError> {
        let (piece, text) = (&batch.pieces[number], batch.text_of(number));
        if let Some(reason) = piece.refused {
            let error = self.error(piece, None, reason.to_owned());
            self.delivery.leave_out(error, Fault::Other, false);
            return Ok(());
        }
        let is_end = text.ends_with(b"}");
        let is_within = match piece.graph {
            Some(_) => !is_end,
            // The beginning of a block.
            None => self.format == Format::TriG && text.ends_with(b"{"),
        };
        let parsed = self.parse(piece, text, is_within, false);
        let refused = match self.deliver(parsed, text, false)? {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        if !piece.is_broken {
            let parsed = self.parse(piece, text, is_within, true);
            if self.deliver(parsed, text, true)?.is_ok() {
                return Ok(());
            }
        }
        let (error, fault) = self.refusal(piece, *refused);
        self.delivery.leave_out(error, fault, false);
        Ok(())
    }

    fn parse(&self, first: &Piece, text: &[u8], is_within: bool, lets_pass: bool) -> Parsed {
        let mut whole = self.declared.written(lets_pass).into_bytes();
        whole.push(b'\n');
        if let Some(graph) = &first.graph {
            whole.extend_from_slice(graph);
            whole.push(b'\n');
        }
        let first_line = line_ends(&whole);
        whole.extend_from_slice(text);
        if is_within {
            whole.extend_from_slice(b"\n}");
        }
        let mut parsed = Parsed {
            quads: Vec::new(),
            error: None,
            base: None,
            prefixes: Vec::new(),
            first_line,
        };
        let owned = |(name, iri): (&str, &str)| (name.to_owned(), iri.to_owned());
        if self.format == Format::TriG {
            let parser = TriGParser::new();
            let parser = if lets_pass { parser.lenient() } else { parser };
            let mut items = parser.for_slice(&whole);
            parsed.take(items.by_ref());
            parsed.base = items.base_iri().map(str::to_owned);
            parsed.prefixes = items.prefixes().map(owned).collect();
        } else {
            let parser = TurtleParser::new();
            let parser = if lets_pass { parser.lenient() } else { parser };
            let mut items = parser.for_slice(&whole);
            let quad = |triple: oxrdf::Triple| triple.in_graph(GraphName::DefaultGraph);
            parsed.take(items.by_ref().map(|triple| triple.map(quad)));
            parsed.base = items.base_iri().map(str::to_owned);
            parsed.prefixes = items.prefixes().map(owned).collect();
        }
        parsed
    }

    /// Hands on all quads if the text could be read, otherwise none.
    fn deliver(
        &mut self,
        parsed: Parsed,
        text: &[u8],
        lets_pass: bool,
    ) -> Result<Result<(), Box<Parsed>>, IngestError> {
        let mut odd = Odd::default();
        let is_read = |quad: &Quad| {
            unsupported(quad).is_none() && (!lets_pass || reads(quad.as_ref(), &mut odd))
        };
        if parsed.error.is_some() || !parsed.quads.iter().all(is_read) {
            return Ok(Err(Box::new(parsed)));
        }
        if lets_pass {
            odd.escapes = surrogates(text);
            self.delivery.keep_odd(odd);
        }
        self.declare(parsed.base, parsed.prefixes);
        for quad in parsed.quads {
            self.delivery.deliver(quad)?;
        }
        Ok(Ok(()))
    }

    fn declare(&mut self, base: Option<String>, prefixes: Vec<(String, String)>) {
        if base.is_some() {
            self.declared.base = base;
        }
        let named = prefixes
            .iter()
            .map(|(name, iri)| (name.as_str(), iri.as_str()));
        self.delivery.note_prefixes(named);
        self.declared.prefixes.extend(prefixes);
    }

    /// Why a statement is left out; what it declares before its error holds.
    fn refusal(&mut self, piece: &Piece, parsed: Parsed) -> (SyntaxError, Fault) {
        let (place, reason, fault) = match &parsed.error {
            Some(error) => {
                let start = error.location().start;
                let on = start.line.checked_sub(parsed.first_line);
                let place = on.map(|line| TextPosition {
                    line: piece.line + line,
                    column: start.column + if line == 0 { piece.column } else { 0 },
                    offset: 0,
                });
                let message = error.message();
                match piece.is_broken && message.starts_with("Unexpected end") {
                    true => (place, NOT_CLOSED, Fault::String),
                    false => (place, message, Fault::of_parser(message)),
                }
            }
            None => match parsed.quads.iter().find_map(unsupported) {
                Some(reason) => (None, reason, Fault::Other),
                None => (None, "it cannot be read", Fault::Iri),
            },
        };
        let error = self.error(piece, place, reason.to_owned());
        self.declare(parsed.base, parsed.prefixes);
        (error, fault)
    }

    fn error(&self, piece: &Piece, place: Option<TextPosition>, reason: String) -> SyntaxError {
        let (line, column) = place.map_or((piece.line, piece.column), |it| (it.line, it.column));
        SyntaxError {
            file: std::sync::Arc::clone(self.delivery.file()),
            line: Some(line + 1),
            column: Some(column + 1),
            reason,
        }
    }
}

impl Parsed {
    /// Takes quads up to the first error.
    fn take(&mut self, items: impl Iterator<Item = Result<Quad, TurtleSyntaxError>>) {
        for item in items {
            match item {
                Ok(quad) => self.quads.push(quad),
                Err(error) => {
                    self.error = Some(error);
                    return;
                }
            }
        }
    }
}

/// How many lines end in a text, counted as the parser does.
fn line_ends(text: &[u8]) -> u64 {
    let ends = |at: &usize| text[*at] == b'\n' || text.get(at + 1) != Some(&b'\n');
    memchr::memchr2_iter(b'\n', b'\r', text)
        .filter(ends)
        .count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The statements of a document, with what is after the last.
    fn pieces(text: &str, is_trig: bool) -> Vec<String> {
        let mut cutter = Cutter::new(text.as_bytes(), is_trig);
        let mut found = Vec::new();
        loop {
            let batch = cutter.next_batch().expect("it is in memory");
            if batch.pieces.is_empty() {
                return found;
            }
            found.extend((0..batch.pieces.len()).map(|number| {
                String::from_utf8(batch.text_of(number).to_vec()).expect("it is text")
            }));
        }
    }

    #[test]
    fn documents_are_cut_behind_statements_and_nothing_is_lost() {
        let text = "@prefix e: <http://e/> . e:a e:b 1.5, \". \" .<a> <b> <c>.\n<d> <e> 'x";
        let found = pieces(text, false);
        assert_eq!(found.concat(), text);
        assert_eq!(found.len(), 4, "{found:?}");
        let text = "<g> { <a> <b> 1 . <a> <b> 2 } GRAPH e:h{<a> <b> <c>.}{} # }\n";
        let found = pieces(text, true);
        assert_eq!(found.concat(), text);
        let expected = [
            "<g> {",
            " <a> <b> 1 .",
            " <a> <b> 2 }",
            " GRAPH e:h{",
            "<a> <b> <c>.",
            "}",
            "{",
            "}",
            " # }\n",
        ];
        assert_eq!(found, expected);
    }

    /// The longest batch of a document, which is whole in its batches.
    fn longest_batch(text: &str, is_trig: bool) -> usize {
        let mut cutter = Cutter::new(text.as_bytes(), is_trig);
        let (mut whole, mut batches, mut lines, mut longest) = (Vec::new(), 0, 0, 0);
        while let batch = cutter.next_batch().expect("it is in memory")
            && let Some(first) = batch.pieces.first()
        {
            assert_eq!(first.line, lines);
            lines += line_ends(&batch.text);
            longest = longest.max(batch.text.len());
            whole.extend_from_slice(&batch.text);
            batches += 1;
        }
        assert!(whole == text.as_bytes());
        assert!(batches > 2, "{batches}");
        longest
    }

    #[test]
    fn batches_end_wherever_the_text_is_long() {
        let of_point = "<a> <b> 1 . <a> <b> 2.5 .\n";
        for (repeated, is_trig) in [
            (of_point, false),
            (of_point, true),
            ("{ <a> <b> 1 .} .\n", false),
            ("{<a> <b> <c>.}", false),
            ("<g> { <a> <b> <c> }\n", true),
            ("<g> { <a> <b> <c> .}\n", true),
            ("<g> { <a> <b> <c> .\n }", true),
            ("GRAPH <g>{<a> <b> <c>}<d> <e> <f> .{<a> <b> <c>}", true),
            ("{ <a> <b> 1 .{ <a> <b> 1 .\n", true),
            ("}", true),
        ] {
            let text = repeated.repeat((3 * BATCH_BYTES).div_ceil(repeated.len()));
            let longest = longest_batch(&text, is_trig);
            assert!(longest < BATCH_BYTES + 100, "{repeated}: {longest}");
        }
    }

    #[test]
    fn batches_of_blocks_have_the_graphs_of_their_statements() {
        let text = "<g> { <a> <b> <c> .}<d> <e> <f> .{<a> <b> <d>}".repeat(20_000);
        let mut cutter = Cutter::new(text.as_bytes(), true);
        let mut counts = BTreeMap::new();
        while let batch = cutter.next_batch().expect("it is in memory")
            && !batch.pieces.is_empty()
        {
            for (number, piece) in batch.pieces.iter().enumerate() {
                let graph = piece.graph.as_deref().map(<[u8]>::to_vec);
                let text = batch.text_of(number).to_vec();
                *counts.entry((graph, text)).or_insert(0) += 1;
            }
        }
        let within = |graph: &str| Some(graph.as_bytes().to_vec());
        let expected = [
            (None, "<d> <e> <f> ."),
            (None, "<g> {"),
            (None, "{"),
            (within("<g> {"), " <a> <b> <c> ."),
            (within("<g> {"), "}"),
            (within("{"), "<a> <b> <d>}"),
        ];
        let expected = expected.map(|(graph, text)| ((graph, text.as_bytes().to_vec()), 20_000));
        assert_eq!(counts, BTreeMap::from(expected));
    }

    #[test]
    fn a_graph_without_a_name_gets_one_for_all_of_its_statements() {
        let found = pieces("# [\nGRAPH [] { <a> <b> 1 . <a> <b> 2 }", true);
        assert!(found[0].starts_with("\nGRAPH _:"), "{found:?}");
        assert!(!has_anonymous_name(b" <[> {"));
        assert!(has_anonymous_name(b"[ ] {"));
    }
}
