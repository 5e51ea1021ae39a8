//! Which constants of a text are arguments of its plan, and which are part of its structure?
//!
//! What the text's shape leaves out becomes a parameter of the plan where it stands for a value (a
//! subject, an object, a cell of inline data, an operand of a comparison). What stands in
//! another place, or is no constant at all, as a LIMIT, is part of the plan's structure.

use jindou_syntax::tree::{Iri, Span};
use jindou_syntax::{Argument, ArgumentKind, is_plain_iri};
use oxrdf::Literal;

use crate::cache::{Prefixes, Structural};
use crate::physical::Constant;
use crate::prepared::parameter_term;

/// What the shape of a text leaves out, and what becomes of it.
pub(crate) struct Arguments<'t> {
    text: &'t str,
    /// In the order of the text, apart from each other.
    cut: &'t [Argument],
    fates: Vec<Fate>,
}

/// What becomes of an argument.
#[derive(Clone, Debug, Default)]
struct Fate {
    is_value: bool,
    is_structural: bool,
    /// The IRI of the prefix, for what follows one.
    prefix: Option<Box<str>>,
}

/// Which arguments are structural, and the prefixes of the others.
pub(crate) type Parameters = (Structural, Prefixes);

impl<'t> Arguments<'t> {
    /// Those of a text; `structural` are known to be such, as other texts of the shape have them.
    pub(crate) fn new(text: &'t str, cut: &'t [Argument], structural: &[u16]) -> Self {
        let mut fates = vec![Fate::default(); cut.len()];
        for slot in structural {
            fates[usize::from(*slot)].is_structural = true;
        }
        Self { text, cut, fates }
    }

    /// A text without arguments.
    pub(crate) fn none() -> Self {
        Self {
            text: "",
            cut: &[],
            fates: Vec::new(),
        }
    }

    /// The slot of the argument that a constant is; what stands for a list has a place with others
    /// in it.
    fn slot(&self, span: Span) -> Option<usize> {
        let slot = self
            .cut
            .partition_point(|argument| argument.span.start < span.start);
        let Argument { span: cut, kind } = *self.cut.get(slot)?;
        let is_it = match kind {
            ArgumentKind::Iri | ArgumentKind::Text => cut.start == span.start + 1,
            ArgumentKind::Integer | ArgumentKind::Decimal => cut.start == span.start,
            ArgumentKind::Local => cut.end == span.end,
        };
        (is_it && cut.end <= span.end).then_some(slot)
    }

    /// Notes a constant in a place where a parameter may not stand.
    pub(crate) fn note(&mut self, span: Span) {
        if let Some(slot) = self.slot(span) {
            self.fates[slot].is_structural = true;
        }
    }

    /// The parameter for an IRI in the place of a value.
    pub(crate) fn iri(&mut self, iri: &Iri<'_>) -> Option<Constant> {
        let slot = self.slot(iri.span)?;
        let argument = self.cut[slot];
        let prefix = iri.value.strip_suffix(argument.of(self.text))?;
        let has_prefix = match argument.kind {
            ArgumentKind::Iri => false,
            // Where every local name makes a valid IRI.
            ArgumentKind::Local if is_plain_iri(prefix.as_bytes()) => true,
            _ => return None,
        };
        if !has_prefix && !prefix.is_empty() {
            return None;
        }
        let slot = self.value(slot, has_prefix.then(|| prefix.into()))?;
        Some(Constant::Iri { slot })
    }

    /// The parameter for a literal in the place of a value.
    pub(crate) fn literal(&mut self, span: Span, literal: &Literal) -> Option<Constant> {
        let slot = self.slot(span)?;
        let argument = self.cut[slot];
        let is_lexical = match argument.kind {
            ArgumentKind::Text | ArgumentKind::Integer | ArgumentKind::Decimal => true,
            ArgumentKind::Iri | ArgumentKind::Local => false,
        };
        if !is_lexical || literal.value() != argument.of(self.text) {
            return None;
        }
        let slot = self.value(slot, None)?;
        Some(Constant::Literal {
            slot,
            language: literal.language().map(str::to_owned),
            datatype: literal.datatype().into_owned(),
        })
    }

    fn value(&mut self, slot: usize, prefix: Option<Box<str>>) -> Option<u16> {
        let fate = &mut self.fates[slot];
        if fate.is_structural {
            return None;
        }
        fate.is_value = true;
        fate.prefix = prefix;
        u16::try_from(slot).ok()
    }

    /// Makes all arguments structural.
    pub(crate) fn fix(&mut self) {
        for fate in &mut self.fates {
            fate.is_structural = true;
        }
    }

    /// Makes constants of the parameters that turned out to be structural elsewhere in the text.
    pub(crate) fn settle(self, constants: &mut [Constant]) -> Parameters {
        for constant in constants {
            let (Constant::Iri { slot } | Constant::Literal { slot, .. }) = constant else {
                continue;
            };
            let slot = usize::from(*slot);
            let fate = &self.fates[slot];
            if fate.is_structural {
                let prefix = fate.prefix.as_deref().unwrap_or_default();
                let written = self.cut[slot].of(self.text);
                let term = parameter_term(constant, prefix, written);
                *constant = Constant::Fixed(term);
            }
        }
        let slots = (0_u16..).zip(&self.fates);
        let structural = slots
            .filter(|(_, fate)| fate.is_structural || !fate.is_value)
            .map(|(slot, _)| slot)
            .collect();
        let prefixes = self.fates.into_iter().map(|fate| fate.prefix).collect();
        (structural, prefixes)
    }
}
