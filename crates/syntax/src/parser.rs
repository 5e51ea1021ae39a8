//! Where is the parser in the text, and what is wrong there?

use std::mem::size_of;
use std::sync::Arc;

use crate::error::{Error, position};
use crate::hints;
use crate::keywords::{Keyword, first_of};
use crate::lexer::{Kind, LONG, Lexer, Token, span};
use crate::memory::{Failure, Memory, Parsed};
use crate::prologue::Declarations;
use crate::register::Clauses;
use crate::scope::Scope;
use crate::tree::Span;
use crate::{MAX_NESTING, Options};

/// Tokens after which it is asked whether to give up.
const TOKENS_PER_POLL: u32 = 4096;

/// A place in a text, and what is known there.
pub(crate) struct Parser<'t, 'o> {
    pub(crate) text: &'t str,
    pub(crate) lexer: Lexer<'t>,
    /// The next token.
    pub(crate) token: Token,
    /// What keyword it is.
    pub(crate) keyword: Keyword,
    /// Where the token before it ends.
    pub(crate) end: u32,
    pub(crate) names: Arc<Declarations<'t>>,
    /// What of the declarations is seen here.
    pub(crate) visible: u32,
    pub(crate) memory: Memory<'o>,
    is_over: Option<&'o dyn Fn() -> bool>,
    until_poll: u32,
    /// Where the brackets are that are open.
    open: Vec<u32>,
    pub(crate) scope: Scope<'t>,
    /// Whether an aggregate may stand here.
    pub(crate) aggregates: Aggregates,
    /// Whether what is read would be stored: then IRIs and language tags are those of their standards.
    pub(crate) inserts: bool,
    /// Variables of the columns outside of aggregates, while these are read.
    pub(crate) used: Option<Vec<crate::tree::Variable<'t>>>,
    /// Those of a continuous query; none while another text is read.
    pub(crate) clauses: Option<Box<Clauses<'t>>>,
    /// What the whole text is, for messages.
    pub(crate) whole: &'static str,
}

/// Whether an aggregate may stand in an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aggregates {
    /// In columns, HAVING and ORDER BY.
    Allowed,
    /// As before, and one is there.
    Present,
    /// Inside another.
    Nested,
    /// Elsewhere, with the name of the place.
    Refused(&'static str),
}

impl<'t, 'o> Parser<'t, 'o> {
    /// A parser at the first token of a text.
    pub(crate) fn new(text: &'t str, whole: &'static str, options: Options<'o>) -> Parsed<Self> {
        if text.len() > crate::lexer::MAX_TEXT_BYTES {
            return Err(Box::new(Error::TooLarge {
                span: Span::default(),
                what: "bytes of text",
                limit: crate::lexer::MAX_TEXT_BYTES,
            }));
        }
        let names = Arc::new(Declarations::new(options.base)?);
        let memory = Memory::new(options.reserve);
        let mut parser = Self::at(text, 0, names, memory);
        parser.is_over = options.is_over;
        parser.whole = whole;
        parser.memory.take(2 * size_of::<Declarations<'_>>())?;
        parser.memory.take(options.base.map_or(0, str::len))?;
        parser.advance()?;
        Ok(parser)
    }

    /// A parser before the token at a place.
    pub(crate) fn at(
        text: &'t str,
        start: usize,
        names: Arc<Declarations<'t>>,
        memory: Memory<'o>,
    ) -> Self {
        Self {
            text,
            lexer: Lexer::new(text, start),
            token: Token {
                kind: Kind::End,
                span: span(start, start),
                extra: 0,
            },
            keyword: Keyword::None,
            end: 0,
            names,
            visible: 0,
            memory,
            is_over: None,
            until_poll: TOKENS_PER_POLL,
            open: Vec::new(),
            scope: Scope::default(),
            aggregates: Aggregates::Refused("here"),
            inserts: false,
            used: None,
            clauses: None,
            whole: "query",
        }
    }

    /// Goes to the next token.
    #[inline]
    pub(crate) fn advance(&mut self) -> Parsed<()> {
        self.end = self.token.span.end;
        self.read()
    }

    /// Reads the token from here on.
    #[inline]
    fn read(&mut self) -> Parsed<()> {
        self.token = self.lexer.next();
        self.keyword = Keyword::None;
        if self.token.kind == Kind::Word {
            self.word();
        }
        self.count_token()
    }

    /// Asks now and then whether to give up.
    #[inline]
    pub(crate) fn count_token(&mut self) -> Parsed<()> {
        self.until_poll -= 1;
        match self.until_poll {
            0 => self.poll(),
            _ => Ok(()),
        }
    }

    fn word(&mut self) {
        let word = self.token.of(self.text).as_bytes();
        self.keyword = Keyword::of(word);
        if self.keyword == Keyword::None {
            self.take_apart();
        }
    }

    /// Reads the first of several keywords that nothing separates.
    #[cold]
    fn take_apart(&mut self) {
        let word = self.token.of(self.text).as_bytes();
        if let Some(length) = first_of(word).filter(|length| *length < word.len()) {
            self.token.span.end = self.token.span.start + crate::lexer::offset(length);
            self.lexer.go_to(self.token.span.end);
            self.keyword = Keyword::of(&word[..length]);
        }
    }

    #[cold]
    pub(crate) fn poll(&mut self) -> Parsed<()> {
        self.until_poll = TOKENS_PER_POLL;
        match self.is_over.is_some_and(|is_over| is_over()) {
            true => Err(Box::new(Error::Interrupted)),
            false => Ok(()),
        }
    }

    /// Reads the first byte of the token as a token of its own: `<<(` where an operator has to be
    /// is `<`, as it was before SPARQL 1.2 had triple terms.
    pub(crate) fn split(&mut self, kind: Kind) {
        self.token.kind = kind;
        self.token.span.end = self.token.span.start + 1;
        self.lexer.go_to(self.token.span.end);
    }

    #[inline]
    pub(crate) fn is(&self, kind: Kind) -> bool {
        self.token.kind == kind
    }

    /// Passes over a token if it is the next.
    #[inline]
    pub(crate) fn accept(&mut self, kind: Kind) -> Parsed<bool> {
        let is_next = self.token.kind == kind;
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    /// Passes over a keyword if it is the next.
    #[inline]
    pub(crate) fn accept_word(&mut self, keyword: Keyword) -> Parsed<bool> {
        let is_next = self.keyword == keyword;
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    /// Passes over a keyword, which has to be the next.
    pub(crate) fn expect_word(&mut self, keyword: Keyword, what: &str) -> Parsed<()> {
        match self.accept_word(keyword)? {
            true => Ok(()),
            false => Err(self.unexpected(what, &[keyword.text()])),
        }
    }

    /// Passes over a bracket that opens, which has to be the next.
    pub(crate) fn open(&mut self, kind: Kind, what: &str) -> Parsed<()> {
        if self.token.kind != kind {
            return Err(self.unexpected(what, &[hints::sign(kind)]));
        }
        if self.open.len() == MAX_NESTING {
            return Err(Box::new(Error::TooLarge {
                span: self.token.span,
                what: "brackets open at once",
                limit: MAX_NESTING,
            }));
        }
        self.memory.push(&mut self.open, self.token.span.start)?;
        self.advance()
    }

    /// Passes over a bracket that closes, which has to be the next unless one of `others` fits.
    pub(crate) fn close(&mut self, kind: Kind, what: &str, others: &[&str]) -> Parsed<()> {
        if self.token.kind != kind {
            let mut fits = others.to_vec();
            fits.push(hints::sign(kind));
            return Err(self.unexpected(what, &fits));
        }
        let opened = self.open.pop();
        debug_assert!(opened.is_some(), "what closes was opened");
        self.advance()
    }

    /// The place from a byte to the end of the last token.
    pub(crate) fn since(&self, start: u32) -> Span {
        Span {
            start,
            end: self.end.max(start),
        }
    }

    /// An error at a place.
    #[cold]
    pub(crate) fn wrong(&self, span: Span, message: String, hint: Option<String>) -> Failure {
        Box::new(Error::Syntax {
            span,
            message,
            hint,
        })
    }

    /// The error that the next token is not what fits in `what`.
    #[cold]
    pub(crate) fn unexpected(&self, what: &str, fits: &[&str]) -> Failure {
        if self.token.kind == Kind::Unclosed {
            return self.unclosed();
        }
        let found = hints::found(self);
        let fits_here = hints::list(fits);
        let message = match what {
            "" => format!("expected {fits_here}, found {found}"),
            _ => format!("expected {fits_here} in {what}, found {found}"),
        };
        let hint = hints::hint(self, what, fits);
        self.wrong(self.token.span, message, hint)
    }

    /// The error that the string that is next is not closed.
    fn unclosed(&self) -> Failure {
        let start = self.token.span.start as usize;
        let bytes = self.text.as_bytes();
        // An empty string before it, if it is no long one that is not closed either.
        let quote = bytes[start];
        let is_long = self.token.extra & LONG != 0;
        if is_long || bytes[..start].ends_with(&[quote; 2]) {
            let start = if is_long { start } else { start - 2 };
            let message = "this string between three quotes is not closed".to_owned();
            return self.wrong(span(start, start + 3), message, None);
        }
        let message = "this string is not closed on its line".to_owned();
        let hint = match bytes[..start].last() {
            Some(byte) if byte.is_ascii_alphanumeric() => {
                r#"a quote inside of a string is written \' or \""#
            }
            _ => "strings of several lines stand between three quotes",
        };
        self.wrong(span(start, start + 1), message, Some(hint.to_owned()))
    }

    /// Where the innermost bracket is that is open.
    pub(crate) fn innermost(&self) -> Option<u32> {
        self.open.last().copied()
    }

    /// A place as it is said: line and column.
    pub(crate) fn place(&self, at: u32) -> String {
        let (line, column) = position(self.text, at);
        format!("line {line}, column {column}")
    }
}
