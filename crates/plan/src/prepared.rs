//! Which terms does a plan, made for a shape, get from this text?

use std::borrow::Cow;
use std::sync::Arc;

use jindou_model::key;
use jindou_syntax::Argument;
use oxrdf::{Literal, NamedNode, Term};

use crate::cache::Prefixes;
use crate::explain::{Actual, Exchange, explain, explain_profile};
use crate::physical::{ConstId, Constant, Plan};
use crate::stack::NoStack;

/// A plan with the arguments that one text gives it.
#[derive(Clone, Debug)]
pub struct Prepared<'a> {
    /// The plan, shared with other texts of the same shape.
    pub plan: Arc<Plan>,
    /// For each argument slot the IRI of the prefix, for arguments that follow one.
    pub(crate) prefixes: Prefixes,
    pub(crate) text: Cow<'a, str>,
    pub(crate) arguments: Vec<Argument>,
}

impl Prepared<'_> {
    /// The same with a copy of the text.
    #[must_use]
    pub fn into_owned(self) -> Prepared<'static> {
        Prepared {
            plan: self.plan,
            prefixes: self.prefixes,
            text: Cow::Owned(self.text.into_owned()),
            arguments: self.arguments,
        }
    }

    /// The argument in a slot: the IRI of its prefix, if it has one, and what the text has.
    fn argument(&self, slot: u16) -> (&str, &str) {
        let slot = usize::from(slot);
        let prefix = self.prefixes[slot].as_deref().unwrap_or_default();
        (prefix, self.arguments[slot].of(&self.text))
    }

    /// The term of a constant. Costs an allocation or two.
    ///
    /// # Panics
    /// If the constant is not of this plan.
    #[must_use]
    pub fn term(&self, constant: ConstId) -> Term {
        let constant = &self.plan.constants[constant.index()];
        let (prefix, written) = match constant {
            Constant::Fixed(_) | Constant::Window { .. } => ("", ""),
            Constant::Iri { slot } | Constant::Literal { slot, .. } => self.argument(*slot),
        };
        parameter_term(constant, prefix, written)
    }

    /// Appends the dictionary's key of a constant (see [`jindou_model::key`]) and tells whether
    /// it is a literal's. Allocates nothing but what `key` needs.
    ///
    /// # Panics
    /// If the constant is not of this plan.
    pub fn push_key(&self, constant: ConstId, key: &mut Vec<u8>) -> bool {
        match &self.plan.constants[constant.index()] {
            Constant::Fixed(term) => key::push_term(key, term.as_ref()),
            Constant::Window { name, .. } => key::push_term(key, name.as_ref().into()),
            Constant::Iri { slot } => {
                let (prefix, rest) = self.argument(*slot);
                key.extend_from_slice(prefix.as_bytes());
                key.extend_from_slice(rest.as_bytes());
                false
            }
            Constant::Literal {
                slot,
                language,
                datatype,
            } => {
                let value = self.argument(*slot).1;
                key::push_literal_parts(key, value, language.as_deref(), datatype.as_ref());
                true
            }
        }
    }

    /// The plan as a tree with expected rows, with this text's arguments.
    ///
    /// # Errors
    /// [`NoStack`].
    pub fn explain(&self) -> Result<String, NoStack> {
        self.explain_shared(&[])
    }

    /// [`Prepared::explain`], and what several threads do of it.
    ///
    /// # Errors
    /// [`NoStack`].
    pub fn explain_shared(&self, exchanges: &[Exchange]) -> Result<String, NoStack> {
        explain(&self.plan, exchanges, &|constant| self.term(constant))
    }

    /// The plan as a tree with expected and actual rows and time, by ids of steps and operators.
    ///
    /// # Errors
    /// [`NoStack`].
    pub fn explain_profile(
        &self,
        exchanges: &[Exchange],
        actual: &(dyn Fn(u32) -> Option<Actual> + Sync),
    ) -> Result<String, NoStack> {
        let term = |constant| self.term(constant);
        explain_profile(&self.plan, exchanges, &term, actual)
    }
}

/// The term of a constant whose argument is this text after the IRI of this prefix.
pub(crate) fn parameter_term(constant: &Constant, prefix: &str, written: &str) -> Term {
    match constant {
        Constant::Fixed(term) => term.clone(),
        Constant::Window { name, .. } => name.clone().into(),
        Constant::Iri { .. } => NamedNode::new_unchecked(format!("{prefix}{written}")).into(),
        Constant::Literal {
            language: Some(tag),
            ..
        } => Literal::new_language_tagged_literal_unchecked(written, tag).into(),
        Constant::Literal { datatype, .. } => {
            Literal::new_typed_literal(written, datatype.clone()).into()
        }
    }
}
