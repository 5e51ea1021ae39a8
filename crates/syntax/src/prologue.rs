//! Which bases and prefixes are declared where?

use std::mem::size_of;
use std::sync::Arc;

use oxiri::Iri;
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::hints;
use crate::keywords::Keyword;
use crate::lexer::{Kind, LONG};
use crate::memory::Parsed;
use crate::parser::Parser;

/// A prefix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Prefix {
    /// What it stands for.
    pub(crate) iri: Box<str>,
    /// Whether the names of letters, digits, `_`, `-` and points make IRIs of it without a check:
    /// its end is behind a host, or it has none.
    pub(crate) is_plain: bool,
}

/// The bases and prefixes that a request declares, each with the number of the declaration. An
/// operation sees those up to a number: nothing is copied for the next operation.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Declarations<'t> {
    bases: Vec<(u32, Iri<String>)>,
    prefixes: FxHashMap<&'t str, Vec<(u32, Prefix)>>,
    pub(crate) count: u32,
}

const ALONE: &str = "nothing shares declarations while they are read";

fn last<T>(declared: &[(u32, T)], visible: u32) -> Option<&T> {
    match declared.last() {
        Some((number, last)) if *number <= visible => Some(last),
        _ => {
            let end = declared.partition_point(|(number, _)| *number <= visible);
            Some(&declared[..end].last()?.1)
        }
    }
}

impl<'t> Declarations<'t> {
    pub(crate) fn new(base: Option<&str>) -> Result<Self, Error> {
        let mut declarations = Self::default();
        if let Some(base) = base {
            let parsed = Iri::parse(base.to_owned()).map_err(|error| Error::Base {
                iri: base.to_owned(),
                message: error.to_string(),
            })?;
            declarations.bases.push((0, parsed));
        }
        Ok(declarations)
    }

    pub(crate) fn base(&self, visible: u32) -> Option<&Iri<String>> {
        last(&self.bases, visible)
    }

    pub(crate) fn prefix(&self, name: &str, visible: u32) -> Option<&Prefix> {
        last(self.prefixes.get(name)?, visible)
    }

    /// The declared prefix that is most like a name.
    pub(crate) fn like(&self, name: &str) -> Option<&'t str> {
        hints::closest(name, self.prefixes.keys().copied())
    }
}

/// Whether names of plain characters make IRIs of a valid prefix without a check.
fn is_plain(prefix: &str) -> bool {
    match prefix.split_once(':') {
        Some((_, rest)) => match rest.strip_prefix("//") {
            Some(rest) => rest.contains(['/', '?', '#']),
            None => true,
        },
        None => false,
    }
}

impl<'t> Parser<'t, '_> {
    /// Reads PREFIX, BASE and VERSION as long as there are some.
    pub(crate) fn prologue(&mut self) -> Parsed<()> {
        loop {
            match self.keyword {
                Keyword::Prefix => self.prefix_declaration()?,
                Keyword::Base => {
                    self.advance()?;
                    let iri = self.declared_iri("a BASE declaration")?;
                    self.memory.take(iri.capacity())?;
                    let base = Iri::parse_unchecked(iri);
                    let declarations = Arc::get_mut(&mut self.names).expect(ALONE);
                    declarations.count += 1;
                    let number = declarations.count;
                    self.memory.push(&mut declarations.bases, (number, base))?;
                    self.visible = number;
                }
                Keyword::Version => {
                    self.advance()?;
                    if self.token.kind != Kind::String || self.token.extra & LONG != 0 {
                        let fits = ["a string between single quotes or double quotes"];
                        return Err(self.unexpected("a VERSION declaration", &fits));
                    }
                    self.advance()?;
                }
                _ => return Ok(()),
            }
        }
    }

    fn prefix_declaration(&mut self) -> Parsed<()> {
        self.advance()?;
        let token = self.token;
        let written = token.of(self.text);
        let is_prefix = token.kind == Kind::Name && written.ends_with(':');
        if !is_prefix || token.extra as usize + 1 != written.len() {
            return Err(self.unexpected("a PREFIX declaration", &["a prefix with a colon"]));
        }
        let name = &written[..written.len() - 1];
        self.advance()?;
        let iri = self.declared_iri("a PREFIX declaration")?;
        // The entry in the table, the list of its declarations, and the IRI.
        self.memory
            .take(iri.len() + 2 * size_of::<(u32, Prefix)>())?;
        let prefix = Prefix {
            is_plain: is_plain(&iri),
            iri: iri.into_boxed_str(),
        };
        let declarations = Arc::get_mut(&mut self.names).expect(ALONE);
        self.memory.place(&mut declarations.prefixes)?;
        declarations.count += 1;
        let number = declarations.count;
        let known = declarations.prefixes.entry(name).or_default();
        self.memory.push(known, (number, prefix))?;
        self.visible = number;
        Ok(())
    }

    fn declared_iri(&mut self, what: &str) -> Parsed<String> {
        if self.token.kind != Kind::Iri {
            return Err(self.unexpected(what, &["an IRI between < and >"]));
        }
        let mut iri = String::new();
        self.write_iri(self.token, &mut iri)?;
        self.advance()?;
        Ok(iri)
    }
}
