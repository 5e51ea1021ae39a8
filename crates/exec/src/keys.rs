//! How do the keys of many terms lie together?

use jindou_model::{TermId, TermKind};

/// What a key of [`Keys`] belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// No term, or one that is held inline: its key is empty.
    None,
    /// An IRI or a blank node.
    Node,
    /// A literal.
    Literal,
}

impl KeyKind {
    /// Of the key of a vertex, predicate or dictionary literal.
    #[inline]
    #[must_use]
    pub fn of(id: TermId) -> Self {
        Self::of_term(id.kind() == TermKind::Literal)
    }

    /// Of the key of a literal, or of a node.
    #[inline]
    #[must_use]
    pub fn of_term(literal: bool) -> Self {
        match literal {
            true => Self::Literal,
            false => Self::Node,
        }
    }
}

/// The keys (see [`jindou_model::key`]) of some terms, one after the other in one piece of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<(usize, KeyKind)>,
}

impl Keys {
    /// Number of keys.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all keys together.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<(usize, KeyKind)>()
    }

    /// Forgets all keys.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The key with this number.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    #[must_use]
    pub fn get(&self, number: usize) -> (&[u8], KeyKind) {
        let (end, kind) = self.ends[number];
        let start = match number {
            0 => 0,
            number => self.ends[number - 1].0,
        };
        (&self.bytes[start..end], kind)
    }

    /// Adds a key.
    #[inline]
    pub fn push(&mut self, key: &[u8], kind: KeyKind) {
        self.bytes.extend_from_slice(key);
        self.ends.push((self.bytes.len(), kind));
    }

    /// Adds the key that `write` appends to the bytes of those before it; gives what it gives.
    #[inline]
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>) -> KeyKind) {
        let kind = write(&mut self.bytes);
        self.ends.push((self.bytes.len(), kind));
    }

    /// All keys in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], KeyKind)> {
        (0..self.len()).map(|number| self.get(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_back_in_order() {
        let mut keys = Keys::default();
        keys.push(b"a", KeyKind::Node);
        keys.push(b"", KeyKind::None);
        keys.push_with(|bytes| {
            bytes.extend_from_slice(b"bc\0");
            KeyKind::Literal
        });
        let all: Vec<_> = keys.iter().collect();
        let expected: [(&[u8], KeyKind); 3] = [
            (b"a", KeyKind::Node),
            (b"", KeyKind::None),
            (b"bc\0", KeyKind::Literal),
        ];
        assert_eq!(all, expected);
        assert_eq!(keys.bytes(), 4);
    }
}
