//! What does a regular expression of XPath match?
//!
//! Patterns are rewritten for the `regex` crate, which matches in linear time. Back-references,
//! blocks (`\p{IsGreek}`) and patterns beyond [`PATTERN_BYTES`] are refused by name.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use rustc_hash::FxHashMap;

use super::context::STRING_BYTES;
use super::{Context, ExprError};

/// The most that one compiled pattern may take, in bytes.
const PATTERN_BYTES: usize = 2 << 20;
/// The longest pattern, in bytes: to parse one takes hundreds of times as many.
const PATTERN_TEXT_BYTES: usize = 1 << 18;
/// The most that matching one pattern may take for its cache, in bytes.
const MATCH_BYTES: usize = 1 << 20;
/// How deep groups may nest.
const NESTING: u32 = 100;
/// How many patterns that are not constant one query keeps.
const CACHED: usize = 32;
/// How many bytes their texts may have together.
const CACHED_BYTES: usize = 1 << 20;

/// A compiled pattern with its flags.
#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    /// The flag `q`: pattern and replacement are plain text.
    literal: bool,
    matches_empty: bool,
}

/// Why a pattern was not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PatternError {
    /// It is no pattern of XPath.
    Invalid,
    /// It is one, but this engine refuses it.
    Refused(String),
}

impl PatternError {
    pub(super) fn into_expr_error(self, cx: &Context) -> ExprError {
        match self {
            Self::Invalid => ExprError::Value,
            Self::Refused(reason) => cx.refuse(reason),
        }
    }
}

impl Pattern {
    pub(super) fn compile(text: &str, flags: &str) -> Result<Self, PatternError> {
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
        let rewritten = if literal {
            regex::escape(text)
        } else {
            Rewriter::rewrite(text, spaces)?
        };
        let regex = RegexBuilder::new(&rewritten)
            .dot_matches_new_line(any && !literal)
            .multi_line(lines && !literal)
            .case_insensitive(cases)
            .size_limit(PATTERN_BYTES)
            .dfa_size_limit(MATCH_BYTES)
            .nest_limit(NESTING)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(limit) => PatternError::Refused(format!(
                    "the pattern {text:?} needs more than {limit} bytes when compiled"
                )),
                _ => PatternError::Invalid,
            })?;
        let matches_empty = regex.is_match("");
        Ok(Self {
            regex,
            literal,
            matches_empty,
        })
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// `fn:replace`: every match is replaced, from left to right.
    ///
    /// # Errors
    /// [`ExprError::Value`] if the replacement is malformed (FORX0004) or the pattern matches
    /// the empty string (FORX0003).
    pub(super) fn replace(
        &self,
        text: &str,
        replacement: &str,
        cx: &Context,
    ) -> Result<String, ExprError> {
        if self.matches_empty {
            return Err(ExprError::Value);
        }
        let pieces = if self.literal {
            vec![Piece::Text(replacement.to_owned())]
        } else {
            parse_replacement(replacement, self.regex.captures_len() - 1)?
        };
        let mut out = Replaced {
            text,
            out: String::new(),
            end: 0,
            counted: 0,
            cx,
        };
        if let [Piece::Text(plain)] = pieces.as_slice() {
            // Where the groups of a match are not asked for, it is found faster.
            for found in self.regex.find_iter(text) {
                out.copy_until(found.start());
                out.out.push_str(plain);
                out.go_on_from(found.end())?;
            }
        } else {
            for captures in self.regex.captures_iter(text) {
                let whole = captures.get_match();
                out.copy_until(whole.start());
                for piece in &pieces {
                    out.out.push_str(match piece {
                        Piece::Text(text) => text,
                        Piece::Group(group) => captures.get(*group).map_or("", |g| g.as_str()),
                    });
                }
                out.go_on_from(whole.end())?;
            }
        }
        out.copy_until(text.len());
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
    cx: &'a Context,
}

impl Replaced<'_> {
    fn copy_until(&mut self, start: usize) {
        self.out.push_str(&self.text[self.end..start]);
    }

    fn go_on_from(&mut self, end: usize) -> Result<(), ExprError> {
        self.cx.count_text(self.out.len() - self.counted)?;
        self.counted = self.out.len();
        if self.out.len() > STRING_BYTES {
            let reason = format!("REPLACE made more than {STRING_BYTES} bytes");
            return Err(self.cx.refuse(reason));
        }
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

/// Rewrites a pattern of XPath as one of the `regex` crate.
struct Rewriter<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    out: String,
    /// False with the flag `x`: white space outside classes is left out.
    spaces: bool,
}

impl<'a> Rewriter<'a> {
    fn rewrite(text: &'a str, spaces: bool) -> Result<String, PatternError> {
        let mut rewriter = Self {
            rest: text.chars().peekable(),
            out: String::new(),
            spaces,
        };
        while let Some(next) = rewriter.rest.next() {
            match next {
                '\\' => rewriter.escape(false)?,
                '[' => rewriter.class(0)?,
                ' ' | '\t' | '\n' | '\r' if !rewriter.spaces => {}
                other => rewriter.out.push(other),
            }
        }
        Ok(rewriter.out)
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
            '1'..='9' if !in_class => {
                return Err(PatternError::Refused(format!(
                    "the pattern has a back-reference (\\{next}), which is not supported"
                )));
            }
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
    patterns: FxHashMap<(Box<str>, Box<str>), Compiled>,
    /// Of their texts.
    bytes: usize,
}

impl PatternCache {
    pub(super) fn get(&mut self, text: &str, flags: &str) -> Compiled {
        let name = (text.into(), flags.into());
        if let Some(known) = self.patterns.get(&name) {
            return known.clone();
        }
        let full = self.patterns.len() >= CACHED || self.bytes + text.len() > CACHED_BYTES;
        if full {
            self.bytes = 0;
            self.patterns.clear();
        }
        let pattern = Pattern::compile(text, flags).map(Arc::new);
        self.bytes += text.len();
        self.patterns.insert(name, pattern.clone());
        pattern
    }
}
