//! Over which streams and graphs is a continuous query asked?

use std::borrow::Cow;

use crate::MAX_WINDOWS;
use crate::continuous::{CatalogueName, Duration, Extent, TIMESTAMP, Window, WindowRole};
use crate::error::Error;
use crate::group::with_hint;
use crate::hints;
use crate::keywords::Keyword;
use crate::lexer::Kind;
use crate::memory::{Failure, Parsed};
use crate::parser::Parser;
use crate::register::{NAMES, Refused};
use crate::tree::{Dataset, Element, Expression, Iri, Name};
use crate::words;

const CONTINUOUS: &str = "FROM is read here in continuous queries only";

const REFUSED_IN_WINDOWS: &Refused = &[
    ("NOW", "the window [NOW] of CQELS"),
    ("ALL", "the window [ALL] of CQELS"),
    ("UNBOUNDED", "windows without an end"),
    ("FROM", "windows of the past, from an instant to another"),
    ("ITEM", "windows of items; TRIPLES counts triples"),
    ("SLIDE", "SLIDE of CQELS; the same is written STEP"),
];

/// What may stand after the pattern in older texts.
pub(crate) const REFUSED_AT_END: &Refused = &[(
    "AGGREGATE",
    "AGGREGATE of C-SPARQL; SPARQL 1.1 has GROUP BY and aggregates",
)];

/// Words that begin no element of a group, in languages of which other words do.
pub(crate) const REFUSED_IN_GROUPS: &Refused = &[
    ("STREAM", "STREAM of CQELS; FROM STREAM stands before WHERE"),
    ("SEQ", "sequences of events, as SEQ of EP-SPARQL"),
    (
        "OPTIONALSEQ",
        "sequences of events, as OPTIONALSEQ of EP-SPARQL",
    ),
    ("EQUALS", "sequences of events, as EQUALS of EP-SPARQL"),
    (
        "EQUALSOPTIONAL",
        "sequences of events, as EQUALSOPTIONAL of EP-SPARQL",
    ),
];

impl<'t> Parser<'t, '_> {
    /// FROM, which is next, with a window or a graph.
    pub(crate) fn source(&mut self, dataset: &mut Dataset<'t>) -> Parsed<()> {
        let start = self.token.span.start;
        self.advance()?;
        let is_named = self.accept_word(Keyword::Named)?;
        if self.at_spelled("WINDOW") {
            return self.named_window(start, is_named);
        }
        let is_stream = self.accept_spelled("STREAM")?;
        let (what, fits): (_, &[&str]) = match (is_named, is_stream) {
            (true, true) => ("FROM NAMED STREAM", NAMES),
            (false, true) => ("FROM STREAM", NAMES),
            (true, false) => ("FROM NAMED", &["an IRI", "a name", "STREAM", "WINDOW"]),
            (false, false) => ("FROM", &["an IRI", "a name", "STREAM", "NAMED"]),
        };
        let name = self.catalogue_name(what, fits)?;
        if is_stream || matches!(self.token.kind, Kind::OpenBracket | Kind::Anon) {
            let role = match (is_named, is_stream) {
                (true, _) => WindowRole::Graph,
                (false, true) => WindowRole::Default,
                (false, false) => WindowRole::DefaultAndGraph,
            };
            return self.window(start, role, name);
        }
        self.graph(is_named, name, dataset)
    }

    /// FROM or FROM NAMED without a window.
    fn graph(
        &mut self,
        is_named: bool,
        name: CatalogueName<'t>,
        dataset: &mut Dataset<'t>,
    ) -> Parsed<()> {
        let name = match name {
            CatalogueName::Iri(iri) => {
                let list = match is_named {
                    true => &mut dataset.named,
                    false => &mut dataset.default,
                };
                return self.memory.push(list, iri);
            }
            CatalogueName::Bare(name) => name,
        };
        if self.at_iri() {
            return Err(self.no_stream(name.name));
        }
        let graphs = &mut self.clauses.as_mut().expect(CONTINUOUS).graphs;
        let list = match is_named {
            true => &mut graphs.named,
            false => &mut graphs.default,
        };
        self.memory.push(list, name)
    }

    /// The error that an IRI follows a word that was read as a bare name.
    #[cold]
    fn no_stream(&self, name: &str) -> Failure {
        let failure = self.unexpected("FROM", &["a window", "FROM", "WHERE", "'{'"]);
        let words = ["STREAM", "NAMED", "WINDOW"];
        match words::closest(name, words.into_iter()) {
            Some(word) => with_hint(failure, &format!("did you mean FROM {word}?")),
            None => failure,
        }
    }

    /// WINDOW, which is next, with its name and its stream.
    fn named_window(&mut self, start: u32, is_named: bool) -> Parsed<()> {
        let what = "FROM NAMED WINDOW";
        if !is_named {
            let failure = self.unexpected("FROM", &["an IRI", "a name", "STREAM", "NAMED"]);
            return Err(with_hint(failure, "it is written FROM NAMED WINDOW"));
        }
        self.advance()?;
        let name = self.iri(what)?;
        if self.declares(&name) {
            let shown = hints::shown(&name.value);
            let message = format!("there are two windows with the name <{shown}>");
            return Err(self.wrong(name.span, message, None));
        }
        if !self.accept_spelled("ON")? {
            return Err(self.unexpected(what, &["ON"]));
        }
        self.accept_spelled("STREAM")?;
        let stream = self.catalogue_name(what, NAMES)?;
        self.window(start, WindowRole::Named(name), stream)
    }

    /// Whether a window has this name. There are few of them.
    fn declares(&self, name: &Iri<'t>) -> bool {
        let mut windows = self.clauses.iter().flat_map(|clauses| &clauses.windows);
        windows.any(|window| match &window.role {
            WindowRole::Named(known) => known.value == name.value,
            _ => false,
        })
    }

    /// What a window holds, between brackets, which ends its clause.
    fn window(
        &mut self,
        start: u32,
        role: WindowRole<'t>,
        stream: CatalogueName<'t>,
    ) -> Parsed<()> {
        if !self.is(Kind::OpenBracket) {
            let fits = ["a window such as [RANGE 10s STEP 1s]"];
            return Err(self.unexpected("the clause of a stream", &fits));
        }
        let bracket = self.token.span;
        self.open(Kind::OpenBracket, "a window")?;
        let extent = self.extent()?;
        if !self.is(Kind::CloseBracket) {
            let fits: &[&str] = match extent {
                Extent::Time { step: None, .. } => &["STEP", "TUMBLING", "']'"],
                Extent::Count { step: None, .. } => &["STEP", "']'"],
                _ => &["']'"],
            };
            return Err(self.no_window(fits));
        }
        self.close(Kind::CloseBracket, "a window", &[])?;
        let window = Window {
            span: self.since(start),
            role,
            stream,
            extent,
        };
        let windows = &mut self.clauses.as_mut().expect(CONTINUOUS).windows;
        if windows.len() == MAX_WINDOWS {
            return Err(Box::new(Error::TooLarge {
                span: bracket,
                what: "windows",
                limit: MAX_WINDOWS,
            }));
        }
        self.memory.push(windows, window)
    }

    fn extent(&mut self) -> Parsed<Extent> {
        let has_range = self.accept_spelled("RANGE")?;
        if self.accept_spelled("TRIPLES")? {
            let triples = self.count("TRIPLES")?;
            let step = match self.accept_spelled("STEP")? {
                true => Some(self.count("STEP")?),
                false => None,
            };
            return Ok(Extent::Count { triples, step });
        }
        if !has_range {
            return Err(self.no_window(&["RANGE", "TRIPLES"]));
        }
        let range = self.length("RANGE")?;
        if self.accept_spelled("TUMBLING")? {
            return Ok(Extent::Tumbling { range });
        }
        let step = match self.accept_spelled("STEP")? {
            true => Some(self.length("STEP")?),
            false => None,
        };
        Ok(Extent::Time { range, step })
    }

    /// A duration in a window.
    fn length(&mut self, what: &str) -> Parsed<Duration> {
        match self.refused(REFUSED_IN_WINDOWS) {
            Some(failure) => Err(failure),
            None => self.duration(what),
        }
    }

    /// A number of triples, which is not zero.
    fn count(&mut self, what: &str) -> Parsed<u64> {
        let span = self.token.span;
        match self.number(what)? {
            0 => {
                let message = format!("{what} needs at least one triple");
                Err(self.wrong(span, message, None))
            }
            count => Ok(count),
        }
    }

    /// The error that the next token is not what fits in a window.
    #[cold]
    fn no_window(&self, fits: &[&str]) -> Failure {
        let refused = self.refused(REFUSED_IN_WINDOWS);
        refused.unwrap_or_else(|| self.unexpected("a window", fits))
    }

    /// Whether a pattern that is matched in a window is next.
    #[inline]
    pub(crate) fn at_window(&self) -> bool {
        self.clauses.is_some() && self.at_spelled("WINDOW")
    }

    /// WINDOW, which is next, with its pattern.
    pub(crate) fn window_pattern(&mut self) -> Parsed<Element<'t>> {
        self.advance()?;
        let name = self.visible_name("WINDOW")?;
        if let Name::Iri(iri) = &name
            && !self.declares(iri)
        {
            let shown = hints::shown(&iri.value);
            let message = format!("no window has the name <{shown}>");
            let hint = "FROM NAMED WINDOW before WHERE gives a window its name".to_owned();
            return Err(self.wrong(iri.span, message, Some(hint)));
        }
        let group = self.group("WINDOW", true)?;
        Ok(Element::Window(name, group))
    }

    /// Whether a call of `timestamp` without a prefix is next, in a continuous query: no other
    /// word that is no keyword has a bracket after it.
    pub(crate) fn at_timestamp(&self) -> bool {
        self.clauses.is_some() && self.at_spelled("timestamp") && words::is_call(self)
    }

    /// Such a call.
    pub(crate) fn timestamp(&mut self) -> Parsed<Expression<'t>> {
        let span = self.token.span;
        self.advance()?;
        let value = Cow::Borrowed(TIMESTAMP);
        self.function(span.start, Iri { span, value })
    }
}
