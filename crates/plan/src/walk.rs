//! What is inside of an expression of the tree?

use jindou_syntax::tree::{Expression, ExpressionKind, Variable};

/// The expressions that an expression is made of; what an EXISTS looks for is none.
pub(crate) fn parts<'q, 't>(expression: &'q Expression<'t>) -> Vec<&'q Expression<'t>> {
    match &expression.kind {
        ExpressionKind::Variable(_)
        | ExpressionKind::Iri(_)
        | ExpressionKind::Literal(_)
        | ExpressionKind::Exists { .. } => Vec::new(),
        ExpressionKind::Triple(terms) => terms.iter().collect(),
        ExpressionKind::Or(list)
        | ExpressionKind::And(list)
        | ExpressionKind::Call(_, list)
        | ExpressionKind::Function(_, list) => list.iter().collect(),
        ExpressionKind::Compare(_, operands) => operands.iter().collect(),
        ExpressionKind::In { operand, list, .. } => {
            std::iter::once(&**operand).chain(list).collect()
        }
        ExpressionKind::Sum(first, rest) => {
            let rest = rest.iter().map(|(_, operand)| operand);
            std::iter::once(&**first).chain(rest).collect()
        }
        ExpressionKind::Product(first, rest) => {
            let rest = rest.iter().map(|(_, operand)| operand);
            std::iter::once(&**first).chain(rest).collect()
        }
        ExpressionKind::Not(operand) | ExpressionKind::Signed(_, operand) => vec![&**operand],
        ExpressionKind::Aggregate(aggregate) => aggregate.operand.iter().collect(),
    }
}

/// Calls `visit` with each variable of an expression, repeats included; what an EXISTS looks for
/// has none of it.
pub(crate) fn for_each_variable<'t>(
    expression: &Expression<'t>,
    visit: &mut dyn FnMut(&Variable<'t>),
) {
    if let ExpressionKind::Variable(variable) = &expression.kind {
        visit(variable);
    }
    for part in parts(expression) {
        for_each_variable(part, visit);
    }
}
