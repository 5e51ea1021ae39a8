//! Which parts of an update's text are its operations?
//!
//! The parser reads one prologue only, before the first operation, while SPARQL allows one before
//! each; and it does not tell ADD, COPY and MOVE from the operations that they stand for. So the
//! text is cut into runs, each of which it reads alone: a new prologue begins a run, and those
//! three are runs by themselves. Nearly all texts are one run. The parser is not given data, of
//! which its tree would be large, but an operation in its place.

use std::borrow::Cow;
use std::ops::Range;

use crate::lexer::{Lexer, Token};
use crate::parse::nesting;

/// What the parser is given in the place of INSERT DATA and DELETE DATA.
const IN_PLACE_OF_DATA: &str = "CLEAR ALL;";

/// Consecutive operations that can be parsed together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// So many of the earlier prologues hold for it.
    prologues: usize,
    /// The text of the run, with the prologue that begins it.
    pub(crate) body: Range<usize>,
    /// Where its operations are, without prologues.
    pub(crate) operations: Vec<Outlined>,
    /// Whether it is ADD, COPY or MOVE.
    pub(crate) is_transfer: bool,
}

impl Run {
    /// Whether nothing of it is for the parser.
    pub(crate) fn is_data(&self) -> bool {
        !self.operations.is_empty() && self.operations.iter().all(|operation| operation.is_data)
    }

    pub(crate) fn has_data(&self) -> bool {
        self.operations.iter().any(|operation| operation.is_data)
    }
}

/// Where an operation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outlined {
    pub(crate) range: Range<usize>,
    /// Whether it is INSERT DATA or DELETE DATA.
    pub(crate) is_data: bool,
}

/// The text of an update, taken apart.
#[derive(Debug)]
pub(crate) struct Outline {
    prologues: Vec<Range<usize>>,
    pub(crate) runs: Vec<Run>,
    /// A semicolon that no operation is before; what follows it is not in `runs`.
    pub(crate) superfluous: Option<usize>,
    /// An upper bound of the brackets open at once.
    pub(crate) nesting: usize,
    /// Bytes that may hold expressions and patterns, over whose length the parser recurses.
    pub(crate) recursive_bytes: usize,
}

impl Outline {
    /// Takes a text apart in one pass; what is no update may come apart anywhere.
    pub(crate) fn new(text: &str) -> Self {
        let mut outline = Self {
            prologues: Vec::new(),
            runs: Vec::new(),
            superfluous: None,
            nesting: 0,
            recursive_bytes: 0,
        };
        let mut lexer = Lexer::new(text.as_bytes());
        // The text from which on `<` may be an operator: there strings may not be what they seem,
        // so that brackets in them count as well.
        let mut doubtful = None;
        loop {
            let item = lexer.item();
            if doubtful.is_none() {
                match item.operation {
                    Some((start, Kind::Pattern)) => doubtful = Some(start),
                    _ => outline.nesting = outline.nesting.max(item.nesting),
                }
            }
            let ends_text = item.end == text.len() && !item.has_separator;
            if item.operation.is_none() && !ends_text {
                outline.superfluous = Some(item.end - 1);
                break;
            }
            outline.add(item);
            if ends_text {
                break;
            }
        }
        if let Some(start) = doubtful {
            outline.nesting = outline.nesting.max(nesting(&text[start..]));
            outline.recursive_bytes = text.len() - start;
        }
        outline
    }

    fn add(&mut self, item: Item) {
        let is_transfer = matches!(item.operation, Some((_, Kind::Transfer)));
        let (start, end) = (item.start, item.end);
        let operation = item.operation.map(|(operation, kind)| Outlined {
            range: operation..item.end,
            is_data: kind == Kind::Data,
        });
        let is_blank = operation.is_none() && !item.has_prologue;
        match self.runs.last_mut() {
            Some(run) if is_blank || !(item.has_prologue || run.is_transfer || is_transfer) => {
                run.body.end = end;
                run.operations.extend(operation);
            }
            _ => {
                let prologue_end = operation
                    .as_ref()
                    .map_or(end, |operation| operation.range.start);
                self.runs.push(Run {
                    prologues: self.prologues.len(),
                    body: start..end,
                    operations: operation.into_iter().collect(),
                    is_transfer,
                });
                if item.has_prologue {
                    self.prologues.push(start..prologue_end);
                }
            }
        }
    }

    /// The prologues that hold for the operations of a run, the one that begins it included.
    pub(crate) fn prologues_of(&self, run: &Run) -> &[Range<usize>] {
        let own = self.prologues.get(run.prologues);
        let has_own = own.is_some_and(|own| own.start == run.body.start);
        &self.prologues[..run.prologues + usize::from(has_own)]
    }

    /// What the parser is given for a run: ranges of the text, and those that are replaced.
    fn pieces<'a>(&'a self, run: &'a Run) -> impl Iterator<Item = Piece> + 'a {
        let copied = |range: Range<usize>| Piece {
            range,
            is_copied: true,
        };
        let data = run.operations.iter().filter(|operation| operation.is_data);
        let starts = std::iter::once(run.body.start);
        let starts = starts.chain(data.clone().map(|operation| operation.range.end));
        let data = data.map(|operation| operation.range.clone());
        let ends = data.clone().map(Some).chain([None]);
        let body = starts.zip(ends).flat_map(move |(start, data)| {
            let end = data.as_ref().map_or(run.body.end, |data| data.start);
            let replaced = data.map(|range| Piece {
                range,
                is_copied: false,
            });
            std::iter::once(copied(start..end)).chain(replaced)
        });
        let prologues = self.prologues[..run.prologues].iter().cloned();
        prologues.map(copied).chain(body)
    }

    /// Bytes that the parser is given for all runs together.
    pub(crate) fn parsed_bytes(&self) -> usize {
        let mut before = vec![0];
        for prologue in &self.prologues {
            before.push(before[before.len() - 1] + prologue.len());
        }
        let bytes = |run: &Run| before[run.prologues] + run.body.len();
        let parsed = self.runs.iter().filter(|run| !run.is_data());
        parsed.map(bytes).sum()
    }

    /// What the parser is given for a run.
    pub(crate) fn text_of<'a>(&self, run: &Run, text: &'a str) -> Cow<'a, str> {
        if run.prologues == 0 && !run.has_data() {
            return Cow::Borrowed(&text[run.body.clone()]);
        }
        Cow::Owned(self.pieces(run).map(|piece| piece.of(text)).collect())
    }

    /// Where in the whole text a line and column (from 1) of a run's text are, as such.
    pub(crate) fn place(
        &self,
        run: &Run,
        text: &str,
        (line, column): (usize, usize),
    ) -> (usize, usize) {
        let parsed = self.text_of(run, text);
        let mut offset = offset_of(&parsed, line, column);
        let mut last = 0;
        for piece in self.pieces(run) {
            let length = piece.of(text).len();
            // The end of a piece is the beginning of the next.
            if offset < length {
                let inside = if piece.is_copied { offset } else { 0 };
                return place_of(text, piece.range.start + inside);
            }
            offset -= length;
            last = piece.range.end;
        }
        place_of(text, last)
    }
}

/// A part of what the parser is given.
struct Piece {
    range: Range<usize>,
    is_copied: bool,
}

impl Piece {
    fn of<'a>(&self, text: &'a str) -> &'a str {
        match self.is_copied {
            true => &text[self.range.clone()],
            false => IN_PLACE_OF_DATA,
        }
    }
}

/// Line and column, from 1, of an offset.
pub(crate) fn place_of(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let line_start = text
        .split_inclusive('\n')
        .take(line.saturating_sub(1))
        .map(str::len)
        .sum::<usize>();
    text[line_start..]
        .chars()
        .take(column.saturating_sub(1))
        .map(char::len_utf8)
        .sum::<usize>()
        + line_start
}

/// Where an operation that is no data has blank nodes in what it deletes, and a message that says
/// so. The parser is vague about these.
pub(crate) fn misplaced(text: &str, operation: &Range<usize>) -> Option<(usize, &'static str)> {
    let mut lexer = Lexer::new(&text.as_bytes()[..operation.end]);
    lexer.at = operation.start;
    let (mut deletes, mut is_where, mut braces) = (false, false, 0_usize);
    while lexer.at < operation.end {
        let start = lexer.at;
        let token = lexer.token();
        let bytes = &lexer.bytes[start..];
        let is_blank = bytes.starts_with(b"_:") || bytes[0] == b'[';
        match token {
            Token::Word(word) if braces == 0 => {
                let is = |keyword: &[u8]| lexer.bytes[word.clone()].eq_ignore_ascii_case(keyword);
                deletes |= is(b"DELETE");
                is_where |= is(b"WHERE");
            }
            Token::Open | Token::Other if braces > 0 && is_blank && deletes => {
                let message = match is_where {
                    true => "blank nodes are not allowed in DELETE WHERE",
                    false => "blank nodes are not allowed in what is deleted",
                };
                return Some((start, message));
            }
            Token::Open => braces += usize::from(bytes[0] == b'{'),
            Token::Close if bytes[0] == b'}' => {
                braces = braces.saturating_sub(1);
                if braces == 0 {
                    return None;
                }
            }
            _ => (),
        }
    }
    None
}

/// What an operation begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// ADD, COPY or MOVE.
    Transfer,
    /// What manages graphs: no expressions inside.
    Plain,
    /// INSERT DATA and DELETE DATA.
    Data,
    /// All others, and what is no operation.
    Pattern,
}

/// A prologue and an operation, each of which may be missing, up to the semicolon after them.
#[derive(Debug)]
struct Item {
    start: usize,
    end: usize,
    has_prologue: bool,
    /// Where the operation begins.
    operation: Option<(usize, Kind)>,
    /// Whether a semicolon is its last character.
    has_separator: bool,
    /// Brackets open at once.
    nesting: usize,
}

/// How items are made of tokens.
impl Lexer<'_> {
    fn item(&mut self) -> Item {
        let mut item = Item {
            start: self.at,
            end: self.bytes.len(),
            has_prologue: false,
            operation: None,
            has_separator: false,
            nesting: 0,
        };
        let (mut braces, mut open) = (0_usize, 0_usize);
        while self.at < self.bytes.len() {
            let start = self.at;
            match self.token() {
                Token::Space => (),
                Token::Separator if braces == 0 => {
                    item.has_separator = true;
                    item.end = self.at;
                    return item;
                }
                Token::Open => {
                    open += 1;
                    braces += usize::from(self.bytes[start] == b'{');
                    item.nesting = item.nesting.max(open);
                    item.operation.get_or_insert((start, Kind::Pattern));
                }
                Token::Close => {
                    item.operation.get_or_insert((start, Kind::Pattern));
                    open = open.saturating_sub(1);
                    braces -= usize::from(braces > 0 && self.bytes[start] == b'}');
                }
                Token::Word(word) if item.operation.is_none() => {
                    match self.kind(&self.bytes[word.clone()]) {
                        Some(kind) => item.operation = Some((word.start, kind)),
                        None => item.has_prologue = true,
                    }
                }
                Token::Word(_) | Token::Separator => (),
                Token::Iri(_) | Token::Other => item.has_prologue |= item.operation.is_none(),
            }
        }
        item
    }

    /// The kind of the operation that a keyword begins; none if it is the prologue's.
    fn kind(&mut self, word: &[u8]) -> Option<Kind> {
        let is = |keyword: &[u8]| word.eq_ignore_ascii_case(keyword);
        // The parser takes keywords that nothing separates from the next.
        let begins = |keyword: &[u8]| {
            word.get(..keyword.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(keyword))
        };
        if is(b"PREFIX") || is(b"BASE") || is(b"VERSION") {
            return None;
        }
        let any = |keywords: &[&[u8]]| keywords.iter().any(|keyword| begins(keyword));
        Some(if any(&[b"ADD", b"COPY", b"MOVE"]) {
            Kind::Transfer
        } else if any(&[b"LOAD", b"CLEAR", b"DROP", b"CREATE"]) {
            Kind::Plain
        } else if is(b"INSERTDATA")
            || is(b"DELETEDATA")
            || ((is(b"INSERT") || is(b"DELETE")) && self.data_follows())
        {
            Kind::Data
        } else {
            Kind::Pattern
        })
    }

    /// True if DATA is the next word.
    fn data_follows(&mut self) -> bool {
        let at = self.at;
        let word = loop {
            if self.at == self.bytes.len() {
                break None;
            }
            match self.token() {
                Token::Space => (),
                Token::Word(word) => break Some(word),
                _ => break None,
            }
        };
        self.at = at;
        word.is_some_and(|word| self.bytes[word].eq_ignore_ascii_case(b"DATA"))
    }
}
