//! What does a text register, under which name, and when is it computed?
//!
//! The words of continuous queries are keywords only where they are asked for here, never in the
//! table of `keywords`: a query or an update does not know them.

use crate::chars::{NAME, run};
use crate::continuous::{
    BareName, CatalogueGraphs, CatalogueName, Duration, Output, Registration, RegistrationKind,
    Window,
};
use crate::error::Error;
use crate::group::with_hint;
use crate::keywords::Keyword;
use crate::lexer::Kind;
use crate::memory::{Failure, Parsed};
use crate::parser::Parser;

const BEGINNINGS: &[&str] = &[
    "REGISTER",
    "SELECT",
    "CONSTRUCT",
    "DESCRIBE",
    "ASK",
    "PREFIX",
    "BASE",
];
const REGISTERED: &[&str] = &["QUERY", "STREAM", "RSTREAM", "ISTREAM", "DSTREAM"];
/// What catalogue names may be, for messages.
pub(crate) const NAMES: &[&str] = &["an IRI", "a name"];

/// Words with what they stand for in other languages of continuous queries.
pub(crate) type Refused = [(&'static str, &'static str)];

const REFUSED_IN_HEADER: &Refused = &[
    ("ON", "results on events, as ON UPDATE asks for"),
    ("UNDER", "UNDER ENTAILMENT REGIME"),
];

/// What the clauses of a continuous query have said so far.
#[derive(Debug, Default)]
pub(crate) struct Clauses<'t> {
    pub(crate) output: Option<Output>,
    pub(crate) windows: Vec<Window<'t>>,
    pub(crate) graphs: CatalogueGraphs<'t>,
}

#[derive(Default)]
struct Header<'t> {
    kind: RegistrationKind,
    name: Option<CatalogueName<'t>>,
    every: Option<Duration>,
}

impl<'t> Parser<'t, '_> {
    /// A continuous query, which is all of the text.
    pub(crate) fn registration(&mut self) -> Parsed<Registration<'t>> {
        let clauses = self.memory.boxed(Clauses::default())?;
        self.clauses = Some(clauses);
        let start = self.token.span.start;
        self.prologue()?;
        let Header { kind, name, every } = self.header()?;
        let query = self.query()?;
        let clauses = self.clauses.take().unwrap_or_default();
        Ok(Registration {
            span: self.since(start),
            name,
            kind,
            every,
            output: clauses.output,
            windows: clauses.windows,
            graphs: clauses.graphs,
            query,
        })
    }

    /// From REGISTER to AS, which the paper of Wukong+S leaves out.
    fn header(&mut self) -> Parsed<Header<'t>> {
        if !self.accept_spelled("REGISTER")? {
            // What else is no query, the query says.
            return match self.is(Kind::Word) && self.keyword == Keyword::None {
                true => Err(self.unexpected("a continuous query", BEGINNINGS)),
                false => Ok(Header::default()),
            };
        }
        let kind = self.registered()?;
        let name = Some(self.catalogue_name("REGISTER", NAMES)?);
        let every = self.every()?;
        if !self.accept_word(Keyword::As)? && !self.at_query() {
            let fits: &[&str] = match every {
                None => &["COMPUTED EVERY", "AS"],
                Some(_) => &["AS"],
            };
            let refused = self.refused(REFUSED_IN_HEADER);
            return Err(refused.unwrap_or_else(|| self.unexpected("REGISTER", fits)));
        }
        Ok(Header { kind, name, every })
    }

    /// What is registered.
    fn registered(&mut self) -> Parsed<RegistrationKind> {
        if self.accept_spelled("QUERY")? {
            return Ok(RegistrationKind::Query);
        }
        if !self.accept_spelled("STREAM")? && !self.accept_output()? {
            return Err(self.unexpected("REGISTER", REGISTERED));
        }
        Ok(RegistrationKind::Stream)
    }

    /// Whether a query is next, or its prologue.
    fn at_query(&self) -> bool {
        use Keyword as K;
        matches!(
            self.keyword,
            K::Prefix | K::Base | K::Version | K::Select | K::Construct | K::Describe | K::Ask
        )
    }

    /// COMPUTED EVERY, if it is next.
    fn every(&mut self) -> Parsed<Option<Duration>> {
        if !self.accept_spelled("COMPUTED")? && !self.accept_spelled("COMPUTE")? {
            return Ok(None);
        }
        if !self.accept_spelled("EVERY")? {
            let refused = self.refused(REFUSED_IN_HEADER);
            return Err(refused.unwrap_or_else(|| self.unexpected("COMPUTED EVERY", &["EVERY"])));
        }
        self.duration("COMPUTED EVERY").map(Some)
    }

    /// Passes over RSTREAM, ISTREAM or DSTREAM if one is next, in a continuous query.
    pub(crate) fn accept_output(&mut self) -> Parsed<bool> {
        let Some(clauses) = &self.clauses else {
            return Ok(false);
        };
        let words = [
            ("RSTREAM", Output::RStream),
            ("ISTREAM", Output::IStream),
            ("DSTREAM", Output::DStream),
        ];
        let Some((_, output)) = words.into_iter().find(|(word, _)| self.at_spelled(word)) else {
            return Ok(false);
        };
        if clauses.output.is_some() {
            let message = "a second output: REGISTER is followed by one already";
            return Err(self.wrong(self.token.span, message.to_owned(), None));
        }
        self.advance()?;
        if let Some(clauses) = &mut self.clauses {
            clauses.output = Some(output);
        }
        Ok(true)
    }

    /// An IRI or a bare name.
    pub(crate) fn catalogue_name(
        &mut self,
        what: &str,
        fits: &[&str],
    ) -> Parsed<CatalogueName<'t>> {
        if self.at_iri() {
            return Ok(CatalogueName::Iri(self.iri(what)?));
        }
        if let Some(name) = self.accept_bare_name()? {
            return Ok(CatalogueName::Bare(name));
        }
        let failure = self.unexpected(what, fits);
        Err(match self.keyword {
            Keyword::None => failure,
            _ => with_hint(
                failure,
                "a keyword of SPARQL is no name: use another, or an IRI",
            ),
        })
    }

    /// Passes over a bare name if one is next, in a continuous query. Its first word may be all
    /// of it, or be keywords that were taken apart.
    pub(crate) fn accept_bare_name(&mut self) -> Parsed<Option<BareName<'t>>> {
        if self.clauses.is_none() || !self.is(Kind::Word) {
            return Ok(None);
        }
        let start = self.token.span.start as usize;
        let end = run(self.text.as_bytes(), start, NAME);
        let name = &self.text[start..end];
        if Keyword::of(name.as_bytes()) != Keyword::None {
            return Ok(None);
        }
        self.extend_token(end);
        let span = self.token.span;
        self.advance()?;
        Ok(Some(BareName { span, name }))
    }

    /// Whether a word is next that is a keyword in some place of a continuous query.
    pub(crate) fn at_spelled(&self, word: &str) -> bool {
        self.is(Kind::Word) && self.token.of(self.text).eq_ignore_ascii_case(word)
    }

    /// Passes over such a word if it is next.
    pub(crate) fn accept_spelled(&mut self, word: &str) -> Parsed<bool> {
        let is_next = self.at_spelled(word);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    /// The error that the next word is of another language of continuous queries, if it is.
    #[cold]
    pub(crate) fn refused(&self, words: &Refused) -> Option<Failure> {
        self.clauses.as_ref()?;
        let (_, what) = words.iter().find(|(word, _)| self.at_spelled(word))?;
        let span = self.token.span;
        Some(Box::new(Error::Unsupported { span, what }))
    }
}
