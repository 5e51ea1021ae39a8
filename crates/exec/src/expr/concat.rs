//! GROUP_CONCAT: which texts does a group have, one behind the other?

use jindou_model::TermId;

use super::context::STRING_BYTES;
use super::value::lexical_of_id;
use super::{Context, ExprError};
use crate::Terms;

/// Terms whose texts are kept.
const SLOTS: usize = 1 << 12;
/// Longer texts are not kept, so that all take half a megabyte at most.
const LONGEST_KEPT: usize = 96;

/// The texts of the last few terms: groups mostly have few distinct ones, or share them.
#[derive(Debug, Default)]
pub(super) struct TextCache {
    /// By slot; empty until the first text is asked for.
    slots: Vec<(TermId, String)>,
    /// Bytes of the texts in the slots.
    kept_bytes: usize,
    /// A text that is not kept.
    long: String,
}

impl TextCache {
    /// The text of a term: what STR gives.
    fn get(&mut self, id: TermId, terms: &Terms) -> Result<&str, ExprError> {
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, Default::default);
        }
        let hash = id.raw().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (known, text) = &mut self.slots[(hash >> 32) as usize % SLOTS];
        if id.is_none() || *known != id {
            let mut read = lexical_of_id(id, terms)?;
            if read.len() > LONGEST_KEPT {
                self.long = read;
                return Ok(&self.long);
            }
            read.shrink_to_fit();
            *known = id;
            self.kept_bytes = self.kept_bytes + read.capacity() - text.capacity();
            *text = read;
        }
        Ok(text)
    }

    pub(super) fn bytes(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<(TermId, String)>();
        slots + self.kept_bytes + self.long.capacity()
    }
}

/// The text of GROUP_CONCAT so far; `None` before the first value.
#[derive(Debug, Default)]
pub(super) struct Concat {
    text: Option<String>,
    /// A value was an error.
    pub(super) error: bool,
}

impl Concat {
    /// Bytes that this added.
    pub(super) fn add(
        &mut self,
        id: TermId,
        separator: &str,
        texts: &mut TextCache,
        cx: &Context,
    ) -> usize {
        match texts.get(id, cx.terms()) {
            Ok(value) => self.push(value, separator, cx),
            Err(_) => {
                self.error = true;
                0
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Self, separator: &str, cx: &Context) -> usize {
        self.error |= other.error;
        other
            .text
            .as_ref()
            .map_or(0, |text| self.push(text, separator, cx))
    }

    fn push(&mut self, value: &str, separator: &str, cx: &Context) -> usize {
        let Some(text) = &mut self.text else {
            self.text = Some(value.to_owned());
            return value.len();
        };
        if text.len() + separator.len() + value.len() > STRING_BYTES {
            self.error = true;
            cx.refuse(format!("GROUP_CONCAT made more than {STRING_BYTES} bytes"));
            return 0;
        }
        text.push_str(separator);
        text.push_str(value);
        separator.len() + value.len()
    }

    pub(super) fn take(&mut self) -> Result<String, ExprError> {
        if self.error {
            return Err(ExprError::Type);
        }
        Ok(self.text.take().unwrap_or_default())
    }
}
