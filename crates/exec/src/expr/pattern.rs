//! What does a regular expression of XPath match?
//!
//! Patterns are rewritten for the `regex` crate, which matches in linear time; those with
//! back-references are matched by [`super::backtrack`]. Blocks (`\p{IsGreek}`) and patterns beyond
//! [`PATTERN_BYTES`] are refused by name.

use std::sync::Arc;
use std::thread::{self, ThreadId};

use regex::{Regex, RegexBuilder};
use rustc_hash::FxHashMap;

use super::backtrack::{self, Group, Matcher, Modes, Program, Uncompiled};
use super::{Context, ExprError};
use crate::terms::HeldBytes;

/// How much a compiled pattern takes.
#[derive(Clone, Copy)]
struct Size {
    /// The most that its automaton may take, in bytes.
    automaton_bytes: usize,
    /// The most that matching it may take for a cache of states, in bytes.
    cache_bytes: usize,
}

/// The sizes of patterns, of which each gets the least that will do: the crate does not tell what a
/// pattern takes, but keeps it below a limit.
const SIZES: [Size; 3] = [
    Size {
        automaton_bytes: 32 << 10,
        cache_bytes: 256 << 10,
    },
    Size {
        automaton_bytes: 256 << 10,
        cache_bytes: 1 << 20,
    },
    Size {
        automaton_bytes: PATTERN_BYTES,
        cache_bytes: 1 << 20,
    },
];

impl Size {
    /// What a pattern takes at most without what matching it takes. A test of the engine measures
    /// this.
    const fn own_bytes(self) -> usize {
        // There are automata for both directions, and both are made in two steps.
        4 * self.automaton_bytes
    }

    /// What each thread that matches it takes at most: a cache for each direction.
    const fn matching_bytes(self) -> usize {
        2 * self.cache_bytes + self.automaton_bytes
    }
}

/// What a pattern with groups may take beside that, where it is such that one pass finds them.
const GROUPS_BYTES: usize = 1 << 20;
/// What parsing takes for each byte of a pattern, and for each that may begin a class.
const PARSED_BYTES: usize = 512;
const PARSED_CLASS_BYTES: usize = 36 << 10;

/// The most that the automaton of one pattern may take, in bytes.
const PATTERN_BYTES: usize = 2 << 20;
/// The longest pattern, in bytes: to parse one takes hundreds of times as many.
const PATTERN_TEXT_BYTES: usize = 1 << 18;
/// How deep groups may nest.
const NESTING: u32 = 100;
/// How many patterns that are not constant one query keeps.
const CACHED: usize = 32;
/// How many bytes their texts may have together.
const CACHED_BYTES: usize = 1 << 20;

/// A compiled pattern with its flags.
#[derive(Debug)]
pub(super) struct Pattern {
    engine: Engine,
    /// The flag `q`: pattern and replacement are plain text.
    literal: bool,
    matches_empty: bool,
    /// What each thread that matches it takes.
    matching_bytes: usize,
    /// What it takes, with one thread that matches it.
    _held: HeldBytes,
}

/// What matches a pattern.
#[derive(Debug)]
enum Engine {
    Linear(Regex),
    /// One with back-references.
    Backtracking(Program),
}

/// Why a pattern was not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatternError {
    /// It is no pattern of XPath.
    Invalid,
    /// It is one, but this engine refuses it.
    Refused(String),
    /// The query must end: it may not hold as much, perhaps.
    Over,
}

impl PatternError {
    pub(super) fn into_expr_error(self, cx: &Context) -> ExprError {
        match self {
            Self::Invalid => ExprError::Value,
            Self::Refused(reason) => cx.refuse(reason),
            Self::Over => ExprError::Refused,
        }
    }
}

impl Pattern {
    /// Compiles a pattern that one thread is going to match.
    pub(super) fn compile(text: &str, flags: &str, cx: &Context) -> Result<Self, PatternError> {
        if text.len() > PATTERN_TEXT_BYTES {
            return Err(PatternError::Refused(format!(
                "a pattern has more than {PATTERN_TEXT_BYTES} bytes"
            )));
        }
        let (mut literal, mut spaces) = (false, true);
        let (mut any, mut lines, mut cases) = (false, false, false);
        for flag in flags.chars() {
            match flag {
                's' => any = true,
                'm' => lines = true,
                'i' => cases = true,
                'x' => spaces = false,
                'q' => literal = true,
                _ => return Err(PatternError::Invalid),
            }
        }
        let hold = |bytes: usize| cx.hold(bytes).map_err(|_| PatternError::Over);
        let classes = text.bytes().filter(|byte| b"\\[".contains(byte)).count();
        let classes = if literal { 0 } else { classes };
        let _parsed = hold(text.len() * PARSED_BYTES + classes * PARSED_CLASS_BYTES)?;
        let rewritten = if literal {
            regex::escape(text)
        } else {
            let rewritten = Rewriter::rewrite(text, spaces)?;
            if rewritten.has_references() {
                let modes = Modes {
                    dot_matches_all: any,
                    lines,
                    any_case: cases,
                };
                return Self::compile_references(text, &rewritten, modes, cx);
            }
            rewritten.out
        };
        let groups = if text.contains('(') { GROUPS_BYTES } else { 0 };
        for size in SIZES {
            let held = hold(size.own_bytes() + size.matching_bytes() + groups)?;
            let built = RegexBuilder::new(&rewritten)
                .dot_matches_new_line(any && !literal)
                .multi_line(lines && !literal)
                .case_insensitive(cases)
                .size_limit(size.automaton_bytes)
                .dfa_size_limit(size.cache_bytes)
                .nest_limit(NESTING)
                .build();
            match built {
                Ok(regex) => {
                    return Ok(Self {
                        matches_empty: regex.is_match(""),
                        engine: Engine::Linear(regex),
                        literal,
                        matching_bytes: size.matching_bytes(),
                        _held: held,
                    });
                }
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(_) => return Err(PatternError::Invalid),
            }
        }
        Err(PatternError::Refused(format!(
            "the pattern {text:?} needs more than {PATTERN_BYTES} bytes when compiled"
        )))
    }

    fn compile_references(
        text: &str,
        rewritten: &Rewriter<'_>,
        modes: Modes,
        cx: &Context,
    ) -> Result<Self, PatternError> {
        let hold = |bytes: usize| cx.hold(bytes).map_err(|_| PatternError::Over);
        let compiling = hold(backtrack::COMPILING_BYTES)?;
        let program = Program::compile(&rewritten.out, &rewritten.groups, modes, NESTING);
        let program = program.map_err(|error| match error {
            Uncompiled::Invalid => PatternError::Invalid,
            Uncompiled::TooLong => PatternError::Refused(format!(
                "the pattern {text:?} needs more than {} instructions when compiled",
                backtrack::INSTRUCTIONS
            )),
        })?;
        let matching_bytes = program.matching_bytes();
        let held = hold(program.bytes() + matching_bytes)?;
        drop(compiling);
        let matches_empty = Matcher::new(&program, "", cx).find(0);
        Ok(Self {
            matches_empty: matches_empty.map_err(|_| PatternError::Over)?.is_some(),
            engine: Engine::Backtracking(program),
            literal: false,
            matching_bytes,
            _held: held,
        })
    }

    /// Whether it matches in a part of a text.
    ///
    /// # Errors
    /// As [`Matcher::find`]; none of a pattern that [`Pattern::as_linear`] gives.
    pub(super) fn is_match(&self, text: &str, cx: &Context) -> Result<bool, ExprError> {
        match &self.engine {
            Engine::Linear(regex) => Ok(regex.is_match(text)),
            Engine::Backtracking(program) => {
                let found = Matcher::new(program, text, cx).find(0)?;
                Ok(found.is_some())
            }
        }
    }

    /// The `regex` crate's pattern, which matches in linear time and without errors; `None` of one
    /// with back-references.
    pub(super) fn as_linear(&self) -> Option<&Regex> {
        match &self.engine {
            Engine::Linear(regex) => Some(regex),
            Engine::Backtracking(_) => None,
        }
    }

    /// `fn:replace`: every match is replaced, from left to right.
    ///
    /// # Errors
    /// [`ExprError::Value`] if the replacement is malformed (FORX0004) or the pattern matches
    /// the empty string (FORX0003), and as [`Matcher::find`].
    pub(super) fn replace(
        &self,
        text: &str,
        replacement: &str,
        cx: &Context,
    ) -> Result<String, ExprError> {
        if self.matches_empty {
            return Err(ExprError::Value);
        }
        let groups = match &self.engine {
            Engine::Linear(regex) => regex.captures_len() - 1,
            Engine::Backtracking(program) => program.captures(),
        };
        let pieces = if self.literal {
            vec![Piece::Text(replacement.to_owned())]
        } else {
            parse_replacement(replacement, groups)?
        };
        let mut out = Replaced {
            text,
            out: String::new(),
            end: 0,
            counted: 0,
            held: None,
            held_bytes: 0,
            cx,
        };
        match (&self.engine, pieces.as_slice()) {
            (Engine::Linear(regex), [Piece::Text(plain)]) => {
                // Where the groups of a match are not asked for, it is found faster.
                for found in regex.find_iter(text) {
                    out.copy_until(found.start())?;
                    out.push(plain)?;
                    out.go_on_from(found.end())?;
                }
            }
            (Engine::Linear(regex), pieces) => {
                for captures in regex.captures_iter(text) {
                    let whole = captures.get_match();
                    out.copy_until(whole.start())?;
                    let group = |group| captures.get(group).map(|found| found.as_str());
                    out.push_pieces(pieces, group)?;
                    out.go_on_from(whole.end())?;
                }
            }
            (Engine::Backtracking(program), pieces) => {
                let mut matcher = Matcher::new(program, text, cx);
                while let Some((start, end)) = matcher.find(out.end)? {
                    out.copy_until(start)?;
                    out.push_pieces(pieces, |group| matcher.group(group))?;
                    out.go_on_from(end)?;
                    assert!(end > start, "what matches nothing matches the empty string");
                }
            }
        }
        out.copy_until(text.len())?;
        Ok(out.out)
    }
}

/// A text in which matches are being replaced.
struct Replaced<'a> {
    text: &'a str,
    out: String,
    /// Where the last match ends.
    end: usize,
    /// Bytes of the result that were counted.
    counted: usize,
    /// The memory of a long result, and for how many bytes that is.
    held: Option<HeldBytes>,
    held_bytes: usize,
    cx: &'a Context,
}

impl Replaced<'_> {
    fn copy_until(&mut self, start: usize) -> Result<(), ExprError> {
        self.push(&self.text[self.end..start])
    }

    fn push(&mut self, part: &str) -> Result<(), ExprError> {
        let bytes = self.out.len() + part.len();
        self.cx.check_string(bytes, "REPLACE")?;
        if bytes > self.held_bytes {
            // A string grows to twice its bytes, and is there twice meanwhile.
            self.held = self.cx.hold_text(3 * bytes)?;
            self.held_bytes = 2 * bytes;
        }
        self.out.push_str(part);
        Ok(())
    }

    fn push_pieces<'t>(
        &mut self,
        pieces: &[Piece],
        group_text: impl Fn(usize) -> Option<&'t str>,
    ) -> Result<(), ExprError> {
        for piece in pieces {
            self.push(match piece {
                Piece::Text(text) => text,
                Piece::Group(group) => group_text(*group).unwrap_or_default(),
            })?;
        }
        Ok(())
    }

    fn go_on_from(&mut self, end: usize) -> Result<(), ExprError> {
        self.cx.count_text(self.out.len() - self.counted)?;
        self.counted = self.out.len();
        self.end = end;
        Ok(())
    }
}

/// Part of a replacement.
#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Group(usize),
}

/// `$N` is a group, as many digits as there are groups for; `\$` and `\\` are plain.
fn parse_replacement(text: &str, groups: usize) -> Result<Vec<Piece>, ExprError> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '\\' => match rest.next() {
                Some(escaped @ ('\\' | '$')) => plain.push(escaped),
                _ => return Err(ExprError::Value),
            },
            '$' => {
                let mut group = rest.next().and_then(digit).ok_or(ExprError::Value)?;
                while let Some(more) = rest.peek().copied().and_then(digit) {
                    let longer = group * 10 + more;
                    if longer > groups {
                        break;
                    }
                    group = longer;
                    rest.next();
                }
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                // A group that the pattern does not have is empty.
                if group <= groups {
                    pieces.push(Piece::Group(group));
                }
            }
            other => plain.push(other),
        }
    }
    pieces.push(Piece::Text(plain));
    Ok(pieces)
}

fn digit(character: char) -> Option<usize> {
    character.to_digit(10).map(|digit| digit as usize)
}

/// Rewrites a pattern of XPath as one of the `regex` crate, each back-reference as a group of one
/// character.
struct Rewriter<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    out: String,
    /// False with the flag `x`: white space outside classes is left out.
    spaces: bool,
    /// The groups of the rewritten pattern, but for those that do not capture.
    groups: Vec<Group>,
    /// The numbers of groups that are open, `None` of those that do not capture.
    open: Vec<Option<u32>>,
    /// Whether the capturing group with this number, less one, is closed.
    closed: Vec<bool>,
    /// There is a group of a kind that XPath does not have.
    has_foreign_group: bool,
}

impl<'a> Rewriter<'a> {
    fn rewrite(text: &'a str, spaces: bool) -> Result<Self, PatternError> {
        let mut rewriter = Self {
            rest: text.chars().peekable(),
            out: String::new(),
            spaces,
            groups: Vec::new(),
            open: Vec::new(),
            closed: Vec::new(),
            has_foreign_group: false,
        };
        while let Some(next) = rewriter.rest.next() {
            match next {
                '\\' => rewriter.escape(false)?,
                '[' => rewriter.class(0)?,
                '(' => rewriter.open_group(),
                ')' => rewriter.close_group(),
                ' ' | '\t' | '\n' | '\r' if !rewriter.spaces => {}
                other => rewriter.out.push(other),
            }
        }
        // The numbers of groups would not be those that were counted.
        if rewriter.has_references() && rewriter.has_foreign_group {
            return Err(PatternError::Invalid);
        }
        Ok(rewriter)
    }

    fn has_references(&self) -> bool {
        let is_reference = |group: &Group| matches!(group, Group::Reference(_));
        self.groups.iter().any(is_reference)
    }

    /// The next character that is not left out.
    fn peek(&mut self) -> Option<char> {
        while !self.spaces && matches!(self.rest.peek(), Some(' ' | '\t' | '\n' | '\r')) {
            self.rest.next();
        }
        self.rest.peek().copied()
    }

    fn open_group(&mut self) {
        self.out.push('(');
        if self.peek() == Some('?') {
            self.rest.next();
            self.out.push('?');
            self.has_foreign_group |= self.peek() != Some(':');
            self.open.push(None);
            return;
        }
        self.closed.push(false);
        let number = self.closed.len() as u32;
        self.groups.push(Group::Capture(number));
        self.open.push(Some(number));
    }

    fn close_group(&mut self) {
        self.out.push(')');
        // Where none is open, the pattern is malformed, which is found when it is parsed.
        if let Some(Some(number)) = self.open.pop() {
            self.closed[number as usize - 1] = true;
        }
    }

    /// A back-reference, after its first digit. Further digits are part of it as long as that many
    /// groups begin before it (XQuery and XPath Functions 3.1, section 5.6.1).
    fn reference(&mut self, first: char) -> Result<(), PatternError> {
        let mut group = digit(first).ok_or(PatternError::Invalid)?;
        while let Some(more) = self.peek().and_then(digit) {
            let longer = group * 10 + more;
            if longer > self.closed.len() {
                break;
            }
            group = longer;
            self.rest.next();
        }
        if self.closed.get(group - 1) != Some(&true) {
            return Err(PatternError::Invalid);
        }
        self.groups.push(Group::Reference(group as u32));
        self.out.push_str("(.)");
        Ok(())
    }

    /// What follows a backslash.
    fn escape(&mut self, in_class: bool) -> Result<(), PatternError> {
        let next = self.rest.next().ok_or(PatternError::Invalid)?;
        let class = match next {
            's' => r"[ \t\n\r]",
            'S' => r"[^ \t\n\r]",
            'w' => r"[^\p{P}\p{Z}\p{C}]",
            'W' => r"[\p{P}\p{Z}\p{C}]",
            // The names of XML.
            'i' => NAME_START,
            'I' => NOT_NAME_START,
            'c' => NAME,
            'C' => NOT_NAME,
            'p' | 'P' => return self.property(next),
            '1'..='9' if !in_class => return self.reference(next),
            other => {
                self.out.push('\\');
                self.out.push(other);
                return Ok(());
            }
        };
        self.out.push_str(class);
        Ok(())
    }

    /// `\p{..}`: general categories are the same; blocks are not known.
    fn property(&mut self, letter: char) -> Result<(), PatternError> {
        let mut name = String::new();
        if self.rest.next() != Some('{') {
            return Err(PatternError::Invalid);
        }
        loop {
            match self.rest.next().ok_or(PatternError::Invalid)? {
                '}' => break,
                other => name.push(other),
            }
        }
        if name.starts_with("Is") {
            return Err(PatternError::Refused(format!(
                "the pattern has the block \\{letter}{{{name}}}, which is not supported"
            )));
        }
        self.out.push('\\');
        self.out.push(letter);
        self.out.push('{');
        self.out.push_str(&name);
        self.out.push('}');
        Ok(())
    }

    /// A character class, after its `[`.
    fn class(&mut self, depth: u32) -> Result<(), PatternError> {
        if depth > NESTING {
            return Err(PatternError::Invalid);
        }
        self.out.push('[');
        if self.rest.peek() == Some(&'^') {
            self.rest.next();
            self.out.push('^');
        }
        loop {
            match self.rest.next().ok_or(PatternError::Invalid)? {
                '\\' => self.escape(true)?,
                ']' => break,
                // Subtraction.
                '-' if self.rest.peek() == Some(&'[') => {
                    self.rest.next();
                    self.out.push_str("--");
                    self.class(depth + 1)?;
                }
                // These mean more to the `regex` crate than to XPath.
                special @ ('[' | '&' | '~') => {
                    self.out.push('\\');
                    self.out.push(special);
                }
                other => self.out.push(other),
            }
        }
        self.out.push(']');
        Ok(())
    }
}

const NAME_START: &str = concat!(
    r"[:A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}",
    r"\x{200C}-\x{200D}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}",
    r"\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}]"
);
const NOT_NAME_START: &str = concat!(
    r"[^:A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}",
    r"\x{200C}-\x{200D}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}",
    r"\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}]"
);
const NAME: &str = concat!(
    r"[:A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}",
    r"\x{200C}-\x{200D}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}",
    r"\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}\-.0-9\x{B7}\x{300}-\x{36F}\x{203F}-\x{2040}]"
);
const NOT_NAME: &str = concat!(
    r"[^:A-Z_a-z\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{2FF}\x{370}-\x{37D}\x{37F}-\x{1FFF}",
    r"\x{200C}-\x{200D}\x{2070}-\x{218F}\x{2C00}-\x{2FEF}\x{3001}-\x{D7FF}\x{F900}-\x{FDCF}",
    r"\x{FDF0}-\x{FFFD}\x{10000}-\x{EFFFF}\-.0-9\x{B7}\x{300}-\x{36F}\x{203F}-\x{2040}]"
);

/// A pattern, or why there is none.
type Compiled = Result<Arc<Pattern>, PatternError>;

/// Patterns that were met in rows, by text and flags.
#[derive(Default)]
pub(super) struct PatternCache {
    patterns: FxHashMap<(Box<str>, Box<str>), Cached>,
    /// Of their texts.
    bytes: usize,
}

/// A pattern, and the threads that match it, with what that takes beyond the first.
struct Cached {
    compiled: Compiled,
    first: ThreadId,
    others: Vec<(ThreadId, HeldBytes)>,
}

impl Cached {
    /// The pattern for a thread.
    fn for_thread(&mut self, thread: ThreadId, cx: &Context) -> Compiled {
        if let Ok(pattern) = &self.compiled
            && self.first != thread
            && self.others.iter().all(|(other, _)| *other != thread)
        {
            let held = cx.hold(pattern.matching_bytes);
            self.others
                .push((thread, held.map_err(|_| PatternError::Over)?));
        }
        self.compiled.clone()
    }
}

impl PatternCache {
    pub(super) fn get(&mut self, text: &str, flags: &str, cx: &Context) -> Compiled {
        let thread = thread::current().id();
        let name = (text.into(), flags.into());
        if let Some(known) = self.patterns.get_mut(&name) {
            return known.for_thread(thread, cx);
        }
        let full = self.patterns.len() >= CACHED || self.bytes + text.len() > CACHED_BYTES;
        if full {
            self.bytes = 0;
            self.patterns.clear();
        }
        let compiled = Pattern::compile(text, flags, cx).map(Arc::new);
        self.bytes += text.len();
        let cached = Cached {
            compiled: compiled.clone(),
            first: thread,
            others: Vec::new(),
        };
        self.patterns.insert(name, cached);
        compiled
    }
}
