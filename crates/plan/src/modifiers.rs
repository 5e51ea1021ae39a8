//! How are the solutions of a SELECT, nested or not, ordered, projected and cut?

use crate::algebra::{Deduplicate, Modifiers};
use crate::facts::size;
use crate::physical::{Node, Operator, Var};
use crate::rows::node;

/// The plan of a SELECT whose pattern is planned, and the work that its modifiers add.
///
/// Without `project` the columns do not matter.
pub(crate) fn modified(
    pattern: Node,
    modifiers: Modifiers,
    project: Option<Vec<Var>>,
) -> (Node, f64) {
    let Modifiers {
        order,
        deduplicate,
        offset,
        limit,
    } = modifiers;
    let (mut root, mut cost) = (pattern, 0.0);
    if !order.is_empty() {
        let sorted = root.rows.max(1.0);
        cost += sorted * sorted.log2().max(1.0);
        // Repeated rows are removed after sorting, so no first rows can be told before.
        let first = match deduplicate {
            Deduplicate::No => limit.map(|limit| limit.saturating_add(offset)),
            Deduplicate::Distinct | Deduplicate::Reduced => None,
        };
        root = wrap(root, |input| Operator::OrderBy {
            input,
            keys: order,
            limit: first,
        });
        if let Some(first) = first {
            root.rows = root.rows.min(size(first));
        }
    }
    if let Some(vars) = project {
        root = wrap(root, |input| Operator::Project { input, vars });
    }
    root = match deduplicate {
        Deduplicate::No => root,
        Deduplicate::Distinct => wrap(root, |input| Operator::Distinct { input }),
        Deduplicate::Reduced => wrap(root, |input| Operator::Reduced { input }),
    };
    if offset > 0 || limit.is_some() {
        let passed = (root.rows - size(offset)).max(0.0);
        let passed = limit.map_or(passed, |limit| passed.min(size(limit)));
        root = wrap(root, |input| Operator::Slice {
            input,
            offset,
            limit,
        });
        root.rows = passed;
    }
    (root, cost)
}

fn wrap(input: Node, operator: impl FnOnce(Box<Node>) -> Operator) -> Node {
    let rows = input.rows;
    node(operator(Box::new(input)), rows)
}
