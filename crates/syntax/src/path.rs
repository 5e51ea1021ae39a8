//! What does a property path say?

use crate::keywords::Keyword;
use crate::lexer::Kind;
use crate::memory::Parsed;
use crate::parser::Parser;
use crate::tree::{Iri, Path};

impl<'t> Parser<'t, '_> {
    /// A property path, perhaps just an IRI.
    pub(crate) fn path(&mut self) -> Parsed<Path<'t>> {
        let first = self.path_sequence()?;
        if !self.is(Kind::Pipe) {
            return Ok(first);
        }
        let mut paths = Vec::new();
        self.memory.push(&mut paths, first)?;
        while self.accept(Kind::Pipe)? {
            let path = self.path_sequence()?;
            self.memory.push(&mut paths, path)?;
        }
        Ok(Path::Alternative(paths))
    }

    fn path_sequence(&mut self) -> Parsed<Path<'t>> {
        let first = self.path_step()?;
        if !self.is(Kind::Slash) {
            return Ok(first);
        }
        let mut paths = Vec::new();
        self.memory.push(&mut paths, first)?;
        while self.accept(Kind::Slash)? {
            let path = self.path_step()?;
            self.memory.push(&mut paths, path)?;
        }
        Ok(Path::Sequence(paths))
    }

    fn path_step(&mut self) -> Parsed<Path<'t>> {
        if self.accept(Kind::Caret)? {
            let path = self.path_element()?;
            return Ok(Path::Inverse(self.memory.boxed(path)?));
        }
        self.path_element()
    }

    fn path_element(&mut self) -> Parsed<Path<'t>> {
        let path = self.path_primary()?;
        let repeat = match self.token.kind {
            Kind::Question => Path::ZeroOrOne,
            Kind::Star => Path::ZeroOrMore,
            Kind::Plus => Path::OneOrMore,
            _ => return Ok(path),
        };
        self.advance()?;
        Ok(repeat(self.memory.boxed(path)?))
    }

    fn path_primary(&mut self) -> Parsed<Path<'t>> {
        match self.token.kind {
            Kind::Not => {
                self.advance()?;
                self.negated()
            }
            Kind::OpenParen => {
                self.open(Kind::OpenParen, "a property path")?;
                let path = self.path()?;
                let others = ["'/'", "'|'"];
                self.close(Kind::CloseParen, "a property path", &others)?;
                Ok(path)
            }
            _ => Ok(Path::Iri(self.path_iri("a property path")?)),
        }
    }

    fn path_iri(&mut self, what: &str) -> Parsed<Iri<'t>> {
        match self.keyword == Keyword::A {
            true => self.type_iri(),
            false => self.iri(what),
        }
    }

    /// What follows `!`.
    fn negated(&mut self) -> Parsed<Path<'t>> {
        let (mut forward, mut inverse) = (Vec::new(), Vec::new());
        let mut one = |parser: &mut Self| {
            let list = match parser.accept(Kind::Caret)? {
                true => &mut inverse,
                false => &mut forward,
            };
            let iri = parser.path_iri("a negated property set")?;
            parser.memory.push(list, iri)
        };
        match self.token.kind {
            Kind::Nil => self.advance()?,
            Kind::OpenParen => {
                self.open(Kind::OpenParen, "a negated property set")?;
                if !self.is(Kind::CloseParen) {
                    one(self)?;
                    while self.accept(Kind::Pipe)? {
                        one(self)?;
                    }
                }
                self.close(Kind::CloseParen, "a negated property set", &["'|'"])?;
            }
            _ => one(self)?,
        }
        Ok(Path::Negated { forward, inverse })
    }
}
