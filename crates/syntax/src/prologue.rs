//! Which bases and prefixes are declared where?

use std::borrow::Cow;
use std::mem::size_of;
use std::sync::Arc;

use oxiri::Iri;
use rustc_hash::FxHashMap;

use crate::Options;
use crate::error::Error;
use crate::keywords::Keyword;
use crate::lexer::{Kind, LONG};
use crate::memory::Parsed;
use crate::odd::without_dots;
use crate::parser::Parser;
use crate::words;

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
            let parsed =
                Iri::parse(without_dots(base).into_owned()).map_err(|error| Error::Base {
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
        words::closest(name, self.prefixes.keys().copied())
    }
}

/// Most declarations that [`prefixes`] reads.
const MOST_LISTED: u32 = 64;
/// Most bytes that they may take.
const MOST_LISTED_BYTES: usize = 64 << 10;

/// The prefixes that a text declares before its first keyword of another kind, each with the IRI
/// that it last stands for, by name.
///
/// Of a text with more than 64 declarations, or with some tens of kilobytes of them, only the
/// first ones; of one that is wrong, those before the mistake. Costs a microsecond or so for a few.
#[must_use]
pub fn prefixes(text: &str, base: Option<&str>) -> Vec<(String, String)> {
    let mut left = MOST_LISTED_BYTES;
    let mut reserve = |bytes: usize| match left.checked_sub(bytes) {
        Some(less) => {
            left = less;
            true
        }
        None => false,
    };
    let options = Options {
        base,
        reserve: Some(&mut reserve),
        is_over: None,
    };
    let Ok(mut parser) = Parser::new(text, "query", options) else {
        return Vec::new();
    };
    while parser.names.count < MOST_LISTED && matches!(parser.declaration(), Ok(true)) {}
    let declared = parser.names.prefixes.iter().filter_map(|(name, known)| {
        let (_, prefix) = known.last()?;
        Some(((*name).to_owned(), prefix.iri.to_string()))
    });
    let mut listed: Vec<_> = declared.collect();
    listed.sort_unstable();
    listed
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
        while self.declaration()? {}
        Ok(())
    }

    /// Reads one of them; false if none is next.
    fn declaration(&mut self) -> Parsed<bool> {
        match self.keyword {
            Keyword::Prefix => self.prefix_declaration()?,
            Keyword::Base => {
                self.advance()?;
                let iri = self.declared_iri("a BASE declaration")?;
                self.memory.take(iri.capacity())?;
                let base = Iri::parse_unchecked(match without_dots(&iri) {
                    Cow::Owned(shorter) => shorter,
                    Cow::Borrowed(_) => iri,
                });
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
            _ => return Ok(false),
        }
        Ok(true)
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
            is_plain: is_plain(&iri) && Iri::parse(iri.as_str()).is_ok(),
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

#[cfg(test)]
mod tests {
    use super::{MOST_LISTED, prefixes};

    fn pair(name: &str, iri: &str) -> (String, String) {
        (name.to_owned(), iri.to_owned())
    }

    #[test]
    fn prefixes_are_listed_as_they_hold_after_the_last_declaration() {
        let text = "PREFIX b: <http://e/b#> BASE <http://f/> prefix : <> \
                    PREFIX b: <http://e/c#> # PREFIX c: <http://c>\nSELECT * { ?s :PREFIX b:x }";
        let expected = vec![pair("", "http://f/"), pair("b", "http://e/c#")];
        assert_eq!(prefixes(text, None), expected);
        let text = "PREFIX a: <x#> CONSTRUCT WHERE {}";
        let expected = vec![pair("a", "http://g/x#")];
        assert_eq!(prefixes(text, Some("http://g/y")), expected);
        assert_eq!(prefixes(text, None), []);
        assert_eq!(prefixes("ASK {}", None), []);
        assert_eq!(prefixes("PREFIX a: <http://e/> PREFIX b", None).len(), 1);
    }

    #[test]
    fn many_prefixes_and_long_ones_are_not_all_listed() {
        let many: String = (0..1000)
            .map(|i| format!("PREFIX p{i}: <http://e/{i}/>\n"))
            .collect();
        assert_eq!(prefixes(&many, None).len(), MOST_LISTED as usize);
        let long = "x".repeat(60 << 10);
        let text = format!("BASE <http://e/{long}/> PREFIX a: <> PREFIX b: <>");
        assert!(prefixes(&text, None).is_empty());
    }
}
