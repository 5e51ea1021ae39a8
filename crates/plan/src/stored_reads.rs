//! What does a continuous query read of stored graphs, windows aside?

use oxrdf::NamedNode;

use crate::algebra::{LogicalForm, Pattern};
use crate::continuous::ContinuousQuery;
use crate::incremental::Cores;
use crate::physical::{ConstId, PathExpression, Scope, Slot};

/// Something that is read of stored graphs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRead {
    /// The predicate; any without one.
    pub predicate: Option<NamedNode>,
    /// In the default graph.
    pub default: bool,
    /// In some named graph.
    pub named: bool,
}

impl ContinuousQuery {
    /// All that the query reads of stored graphs: while nothing of it changes, neither does its answer.
    ///
    /// What cannot be told by predicates reads everything: variable predicates, paths that may be of no
    /// length, the names of graphs, DESCRIBE.
    #[must_use]
    pub fn stored_reads(&self) -> Vec<StoredRead> {
        let query = self.logical();
        match query.form {
            LogicalForm::Describe(_) => vec![EVERYTHING],
            _ => Cores { query }.stored_reads(&query.pattern),
        }
    }

    /// True if it calls other endpoints.
    #[must_use]
    pub fn calls_services(&self) -> bool {
        self.logical().calls_services
    }
}

impl Cores<'_> {
    /// All that a pattern of the query reads of stored graphs, each once.
    pub(crate) fn stored_reads(&self, pattern: &Pattern) -> Vec<StoredRead> {
        let mut found = Vec::new();
        let mut add = |read: StoredRead| {
            if (read.default || read.named) && !found.contains(&read) {
                found.push(read);
            }
        };
        let mut pattern = pattern.clone();
        pattern.for_each_mut(&mut |pattern| reads_of(self, pattern, &mut add));
        found
    }
}

const EVERYTHING: StoredRead = StoredRead {
    predicate: None,
    default: true,
    named: true,
};

fn reads_of(cores: &Cores<'_>, pattern: &Pattern, add: &mut dyn FnMut(StoredRead)) {
    let read = |scope: Scope, predicate| cores.stored_read(scope, predicate);
    match pattern {
        Pattern::Quads(quads) => {
            for quad in quads {
                let predicate = match quad.predicate {
                    Slot::Const(id) => cores.iri(id),
                    Slot::Var(_) => None,
                };
                add(read(quad.scope, predicate));
            }
        }
        Pattern::Path(path) => {
            let mut predicates = Vec::new();
            match !path.path.is_nullable() && edges(&path.path, &mut predicates) {
                true => (predicates.iter()).for_each(|id| add(read(path.scope, cores.iri(*id)))),
                false => add(read(path.scope, None)),
            }
        }
        // Which graphs there are is told by no predicate.
        Pattern::Graphs(_) | Pattern::EachGraph { .. } | Pattern::Service(_) => add(EVERYTHING),
        Pattern::Unit
        | Pattern::Values { .. }
        | Pattern::Materialized { .. }
        | Pattern::Join(_)
        | Pattern::LeftJoin { .. }
        | Pattern::Minus { .. }
        | Pattern::Exists { .. }
        | Pattern::Subquery(_)
        | Pattern::Union(_)
        | Pattern::Filter { .. }
        | Pattern::Extend { .. }
        | Pattern::Group { .. } => {}
    }
}

/// The predicates of a path; false if it has edges of others.
fn edges(path: &PathExpression, out: &mut Vec<ConstId>) -> bool {
    match path {
        PathExpression::Edge(predicate, _) => {
            out.push(*predicate);
            true
        }
        PathExpression::Negated(..) => false,
        PathExpression::Sequence(parts) | PathExpression::Alternative(parts) => {
            parts.iter().all(|part| edges(part, out))
        }
        PathExpression::ZeroOrOne(inner)
        | PathExpression::ZeroOrMore(inner)
        | PathExpression::OneOrMore(inner) => edges(inner, out),
    }
}
