//! How are the nodes called that have copies of a store, and which are there to be?

use std::sync::Arc;

use jindou_model::NodeId;
use parking_lot::RwLock;

/// The names of nodes, by their numbers. Clones are the same ones: nodes may be added, and leave, while a copy runs; a
/// number means one node for ever.
#[derive(Clone, Debug)]
pub struct NodeNames(Arc<RwLock<Vec<Named>>>);

#[derive(Clone, Debug)]
struct Named {
    name: String,
    has_left: bool,
}

impl NodeNames {
    /// Those of nodes all of which are to be there.
    #[must_use]
    pub fn new(names: Vec<String>) -> Self {
        let named = |name| Named {
            name,
            has_left: false,
        };
        Self(Arc::new(RwLock::new(
            names.into_iter().map(named).collect(),
        )))
    }

    /// From now on there are these, each with whether it has left: nothing is taken of that one, or told to it.
    pub fn set(&self, nodes: impl IntoIterator<Item = (String, bool)>) {
        let named = |(name, has_left)| Named { name, has_left };
        *self.0.write() = nodes.into_iter().map(named).collect();
    }

    /// The name of a node, or its number where it has none yet.
    pub(super) fn name(&self, node: NodeId) -> String {
        let named = self.0.read();
        let named = named.get(node.0 as usize);
        named.map_or_else(|| node.to_string(), |named| named.name.clone())
    }

    /// The node of this name, whether it has left or not.
    pub(super) fn node(&self, name: &str) -> Option<NodeId> {
        let named = self.0.read();
        let place = named.iter().position(|named| named.name == name)?;
        Some(NodeId(place as u32))
    }

    /// Whether it is to be there.
    pub(super) fn has(&self, node: NodeId) -> bool {
        let named = self.0.read();
        let named = named.get(node.0 as usize);
        named.is_some_and(|named| !named.has_left)
    }

    /// The numbers of those that are to be there.
    pub(super) fn numbers(&self) -> Vec<NodeId> {
        let named = self.0.read();
        let numbered = (0..).map(NodeId).zip(&*named);
        let there = numbered.filter(|(_, named)| !named.has_left);
        there.map(|(node, _)| node).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_name_when_its_node_has_left() {
        let names = NodeNames::new(vec!["a".to_owned(), "b".to_owned()]);
        let same = names.clone();
        let left = |name: &str, has_left| (name.to_owned(), has_left);
        same.set([left("a", true), left("b", false), left("c", false)]);
        assert_eq!(names.name(NodeId(0)), "a");
        assert_eq!(names.name(NodeId(2)), "c");
        assert_eq!(names.name(NodeId(3)), "3");
        assert_eq!(names.numbers(), [NodeId(1), NodeId(2)]);
        assert!(!names.has(NodeId(0)) && names.has(NodeId(2)) && !names.has(NodeId(3)));
    }
}
