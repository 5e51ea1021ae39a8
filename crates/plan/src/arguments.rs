//! Which constants of a parsed text are arguments, and where do they stand?
//!
//! To plan a shape once for all its arguments, the text is parsed with a unique placeholder for
//! each argument. A placeholder in the place of a value (a subject, an object, a cell of inline
//! data, an operand of a comparison) becomes a parameter of the plan; one found anywhere else,
//! or nowhere, marks its argument as part of the plan's structure.

use oxrdf::{Literal, NamedNode};

use crate::physical::Constant;

/// No text that holds this, or [`NUMBER`], is given placeholders.
pub(crate) const WORD: &str = "jindou-argument-";
/// The first digits of placeholders of numbers.
pub(crate) const NUMBER: &str = "91782536409170";

/// What kind of token an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ArgumentKind {
    /// What is between `<` and `>`.
    Iri,
    /// What follows the colon of a prefixed name.
    Local,
    /// What is between the quotes.
    Text,
    /// Digits.
    Integer,
    /// Digits, a point, digits.
    Decimal,
}

/// What became of a placeholder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fate {
    /// Found as a value.
    pub(crate) value: bool,
    /// Found elsewhere.
    pub(crate) structural: bool,
    /// For [`ArgumentKind::Local`]: the IRI of the prefix.
    pub(crate) prefix: Option<String>,
}

/// The placeholders of a text.
#[derive(Debug)]
pub(crate) struct Placeholders {
    /// One for each slot; a slot whose own text was left in place is never found.
    pub(crate) fates: Vec<Fate>,
}

impl Placeholders {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            fates: vec![Fate::default(); slots],
        }
    }

    /// Appends the placeholder of a slot as it stands in the text, without delimiters.
    pub(crate) fn push(text: &mut String, kind: ArgumentKind, slot: usize) {
        use std::fmt::Write as _;
        let written = match kind {
            // The exclamation mark keeps `< placeholder >` from being read as two comparisons.
            ArgumentKind::Iri => write!(text, "{WORD}:!{slot}"),
            ArgumentKind::Local | ArgumentKind::Text => write!(text, "{WORD}{slot}"),
            ArgumentKind::Integer => write!(text, "{NUMBER}{slot:05}"),
            ArgumentKind::Decimal => write!(text, "{NUMBER}.{slot:05}1"),
        };
        written.expect("a string takes all that is written");
    }

    fn slot(&self, digits: &str) -> Option<usize> {
        digits.parse().ok().filter(|slot| *slot < self.fates.len())
    }

    /// The slot of an IRI, and the IRI of its prefix.
    fn slot_of_iri<'a>(&self, iri: &'a str) -> Option<(usize, Option<&'a str>)> {
        let start = iri.rfind(WORD)?;
        let rest = &iri[start + WORD.len()..];
        match rest.strip_prefix(":!") {
            Some(digits) if start == 0 => Some((self.slot(digits)?, None)),
            Some(_) => None,
            None => Some((self.slot(rest)?, Some(&iri[..start]))),
        }
    }

    fn slot_of_literal(&self, literal: &Literal) -> Option<usize> {
        let value = literal.value();
        if let Some(digits) = value.strip_prefix(WORD) {
            return self.slot(digits);
        }
        let digits = value.strip_prefix(NUMBER)?;
        match digits.strip_prefix('.') {
            Some(decimals) => self.slot(decimals.strip_suffix('1')?),
            None => self.slot(digits),
        }
    }

    /// The parameter for an IRI in the place of a value, if it is a placeholder.
    pub(crate) fn iri_value(&mut self, node: &NamedNode) -> Option<Constant> {
        let (slot, prefix) = self.slot_of_iri(node.as_str())?;
        let prefix = prefix.map(str::to_owned);
        self.fates[slot].value = true;
        self.fates[slot].prefix = prefix;
        Some(Constant::Iri { slot: number(slot) })
    }

    /// The parameter for a literal in the place of a value, if it is a placeholder.
    pub(crate) fn literal_value(&mut self, literal: &Literal) -> Option<Constant> {
        self.note_iri(literal.datatype().as_str());
        let slot = self.slot_of_literal(literal)?;
        self.fates[slot].value = true;
        Some(Constant::Literal {
            slot: number(slot),
            language: literal.language().map(str::to_owned),
            datatype: literal.datatype().into_owned(),
        })
    }

    /// Notes an IRI in a place where a parameter may not stand.
    pub(crate) fn note_iri(&mut self, iri: &str) {
        if let Some((slot, _)) = self.slot_of_iri(iri) {
            self.fates[slot].structural = true;
        }
    }

    /// Notes a literal in a place where a parameter may not stand.
    pub(crate) fn note_literal(&mut self, literal: &Literal) {
        self.note_iri(literal.datatype().as_str());
        if let Some(slot) = self.slot_of_literal(literal) {
            self.fates[slot].structural = true;
        }
    }
}

fn number(slot: usize) -> u16 {
    u16::try_from(slot).expect("the lexer cuts at most u16::MAX arguments")
}
