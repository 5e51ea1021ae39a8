//! What is this document's blank node called outside the document?
//!
//! `_:x` of the document with scope 7 is handed on as `f7_x`. A node without a label of its own
//! gets a random id from the parser; it is handed on as `f7-0`, `f7-1`, ... in the order in which
//! such nodes are first seen, so that a load gives the same names each time. No label begins with
//! `-`, so the two kinds cannot meet.

use oxrdf::BlankNode;
use std::collections::HashMap;
use std::fmt::Write;

/// The parsers' random ids have 128 bits; a shorter one than this is a label that happens to look
/// like a hexadecimal number. A label longer than this that looks like one is treated as if it
/// were a random id: renamed, and always to the same name.
const MIN_RANDOM_HEX_DIGITS: usize = 24;

/// How many random ids a document's map remembers (some 32 bytes each). Nodes first seen after
/// that keep the random id in their name: right, only not the same name each time.
const MAX_RENAMED: usize = 8 << 20;

/// The start of all blank node labels of a scope.
pub(crate) fn scope_prefix(scope: u64) -> String {
    format!("f{scope}")
}

/// Writes the outside name of a node that a document calls `label`.
pub(crate) fn write_labelled(out: &mut String, prefix: &str, label: &str) {
    out.clear();
    out.push_str(prefix);
    out.push('_');
    out.push_str(label);
}

/// The names of one document's blank nodes, for parsers that make up ids.
pub(crate) struct BlankNames {
    prefix: String,
    renamed: HashMap<u128, u64>,
    max_renamed: usize,
}

impl BlankNames {
    pub(crate) fn new(scope: u64) -> Self {
        Self {
            prefix: scope_prefix(scope),
            renamed: HashMap::new(),
            max_renamed: MAX_RENAMED,
        }
    }

    /// How many bytes more the names need before those of one more quad are written.
    pub(crate) fn growth(&self) -> u64 {
        /// Of an entry, with what a table of them leaves free.
        const ENTRY_BYTES: usize = 40;
        /// Of a quad.
        const NODES: usize = 3;
        let capacity = self.renamed.capacity();
        match self.renamed.len() + NODES > capacity && capacity < self.max_renamed {
            true => (2 * capacity.max(NODES + 1) * ENTRY_BYTES) as u64,
            false => 0,
        }
    }

    pub(crate) fn write(&mut self, out: &mut String, node: &BlankNode) {
        let label = node.as_str();
        let id = node
            .as_ref()
            .unique_id()
            .filter(|_| label.len() >= MIN_RANDOM_HEX_DIGITS);
        let Some(id) = id else {
            return write_labelled(out, &self.prefix, label);
        };
        out.clear();
        let next = self.renamed.len();
        let number = if next < self.max_renamed {
            Some(*self.renamed.entry(id).or_insert(next as u64))
        } else {
            self.renamed.get(&id).copied()
        };
        match number {
            Some(number) => write!(out, "{}-{number}", self.prefix),
            None => write!(out, "{}-x{label}", self.prefix),
        }
        .expect("writing to a string does not fail");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(names: &mut BlankNames, node: &BlankNode) -> String {
        let mut out = String::from("left over");
        names.write(&mut out, node);
        out
    }

    #[test]
    fn labels_stay_readable_and_random_ids_become_numbers() {
        let mut names = BlankNames::new(3);
        let (a, b) = (BlankNode::default(), BlankNode::default());
        assert_eq!(name(&mut names, &BlankNode::new("x").unwrap()), "f3_x");
        assert_eq!(
            name(&mut names, &BlankNode::new("abc1").unwrap()),
            "f3_abc1"
        );
        assert_eq!(name(&mut names, &a), "f3-0");
        assert_eq!(name(&mut names, &b), "f3-1");
        assert_eq!(name(&mut names, &a), "f3-0");
        assert!(BlankNode::new("f3-0").is_ok());
    }

    #[test]
    fn names_stay_apart_when_the_map_is_full() {
        let mut names = BlankNames::new(0);
        names.max_renamed = 1;
        let (a, b, c) = (
            BlankNode::default(),
            BlankNode::default(),
            BlankNode::default(),
        );
        assert_eq!(name(&mut names, &a), "f0-0");
        let (b1, c1) = (name(&mut names, &b), name(&mut names, &c));
        assert_ne!(b1, c1);
        assert_eq!(b1, name(&mut names, &b));
        assert_eq!(name(&mut names, &a), "f0-0");
        assert!(BlankNode::new(b1).is_ok());
    }
}
