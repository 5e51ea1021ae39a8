//! What is in a query's text, as far as placing its pattern in a graph and comparing its answers
//! ask?

use jindou_syntax::tree::{
    AggregateFunction, Builtin, Column, Deduplicate, Element, Expression, ExpressionKind, Form,
    Group, Modifiers, Projection, Query, Select,
};

/// What a query has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// GRAPH, FROM or FROM NAMED.
    pub names_graphs: bool,
    /// EXISTS in its SELECT clause or its solution modifiers.
    pub exists_outside_pattern: bool,
    /// GROUP BY, HAVING or an aggregate, nested SELECTs apart.
    pub groups: bool,
    /// LIMIT or OFFSET, nested SELECTs apart.
    pub slices: bool,
    /// LIMIT or OFFSET in a nested SELECT.
    pub slices_inside: bool,
    /// REDUCED.
    pub reduced: bool,
    /// SUM, AVG, MIN or MAX, whose value is written in several ways.
    pub computes: bool,
    /// GROUP_CONCAT, whose parts are in any order.
    pub concatenates: bool,
    /// SAMPLE.
    pub samples: bool,
    /// RAND, UUID, STRUUID or BNODE.
    pub makes_terms: bool,
}

impl Facts {
    /// Of a query.
    #[must_use]
    pub fn of(query: &Query<'_>) -> Self {
        let mut facts = Self {
            names_graphs: query.dataset.is_some(),
            ..Self::default()
        };
        match &query.form {
            Form::Select(select) => {
                facts.see_clauses(&select.projection, &select.modifiers);
                facts.see_deduplication(select);
                facts.see_group(&select.group);
            }
            Form::Construct {
                group, modifiers, ..
            }
            | Form::Ask { group, modifiers } => {
                facts.see_clauses(&Projection::All(Vec::new()), modifiers);
                facts.see_group(group);
            }
            Form::Describe {
                group, modifiers, ..
            } => {
                facts.see_clauses(&Projection::All(Vec::new()), modifiers);
                group.iter().for_each(|group| facts.see_group(group));
            }
        }
        facts
    }

    /// What is around the outermost group.
    fn see_clauses(&mut self, projection: &Projection<'_>, modifiers: &Modifiers<'_>) {
        self.groups = !modifiers.group_by.is_empty() || !modifiers.having.is_empty();
        self.slices = modifiers.limit.is_some() || modifiers.offset > 0;
        for expression in expressions(projection, modifiers) {
            self.see_expression(expression, &mut |facts, found| match found {
                Found::Exists => facts.exists_outside_pattern = true,
                Found::Aggregate => facts.groups = true,
            });
        }
    }

    fn see_deduplication(&mut self, select: &Select<'_>) {
        self.reduced |= select.deduplicate == Some(Deduplicate::Reduced);
    }

    fn see_group(&mut self, group: &Group<'_>) {
        for element in &group.elements {
            match element {
                Element::Triples(_) | Element::Values(_) => {}
                Element::Union(branches) => branches.iter().for_each(|b| self.see_group(b)),
                Element::Optional(inner) | Element::Minus(inner) => self.see_group(inner),
                Element::Service(service) => self.see_group(&service.group),
                Element::Graph(_, inner)
                | Element::BareGraph(_, inner)
                | Element::Window(_, inner) => {
                    self.names_graphs = true;
                    self.see_group(inner);
                }
                Element::Filter(expression) | Element::Bind(expression, _) => {
                    self.see_expression(expression, &mut |_, _| {});
                }
                Element::Select(select) => self.see_select(select),
            }
        }
    }

    /// A nested SELECT.
    fn see_select(&mut self, select: &Select<'_>) {
        let modifiers = &select.modifiers;
        self.slices_inside |= modifiers.limit.is_some() || modifiers.offset > 0;
        self.see_deduplication(select);
        for expression in expressions(&select.projection, modifiers) {
            self.see_expression(expression, &mut |_, _| {});
        }
        self.see_group(&select.group);
    }

    fn see_expression(
        &mut self,
        expression: &Expression<'_>,
        note: &mut dyn FnMut(&mut Self, Found),
    ) {
        match &expression.kind {
            ExpressionKind::Exists { group, .. } => {
                note(self, Found::Exists);
                self.see_group(group);
            }
            ExpressionKind::Aggregate(aggregate) => {
                note(self, Found::Aggregate);
                match aggregate.function {
                    AggregateFunction::Count => {}
                    AggregateFunction::Sample => self.samples = true,
                    AggregateFunction::GroupConcat { .. } => self.concatenates = true,
                    AggregateFunction::Sum
                    | AggregateFunction::Min
                    | AggregateFunction::Max
                    | AggregateFunction::Avg => self.computes = true,
                }
            }
            ExpressionKind::Call(
                Builtin::Rand | Builtin::Uuid | Builtin::StrUuid | Builtin::BNode,
                _,
            ) => self.makes_terms = true,
            _ => {}
        }
        for operand in operands(expression) {
            self.see_expression(operand, note);
        }
    }
}

/// What is noted by where it stands.
enum Found {
    Exists,
    Aggregate,
}

/// The expressions of a SELECT clause and of solution modifiers.
fn expressions<'q, 't>(
    projection: &'q Projection<'t>,
    modifiers: &'q Modifiers<'t>,
) -> Vec<&'q Expression<'t>> {
    let columns: &[Column<'_>] = match projection {
        Projection::All(_) => &[],
        Projection::Columns(columns) => columns,
    };
    let computed = columns
        .iter()
        .filter_map(|column| column.expression.as_ref());
    let keys = modifiers.group_by.iter().map(|(key, _)| key);
    let order = modifiers.order_by.iter().map(|key| &key.expression);
    computed
        .chain(keys)
        .chain(&modifiers.having)
        .chain(order)
        .collect()
}

fn operands<'q, 't>(expression: &'q Expression<'t>) -> Vec<&'q Expression<'t>> {
    match &expression.kind {
        ExpressionKind::Variable(_)
        | ExpressionKind::Iri(_)
        | ExpressionKind::Literal(_)
        | ExpressionKind::Exists { .. } => Vec::new(),
        ExpressionKind::Triple(parts) => parts.iter().collect(),
        ExpressionKind::Or(all)
        | ExpressionKind::And(all)
        | ExpressionKind::Call(_, all)
        | ExpressionKind::Function(_, all) => all.iter().collect(),
        ExpressionKind::Compare(_, both) => both.iter().collect(),
        ExpressionKind::In { operand, list, .. } => {
            std::iter::once(&**operand).chain(list).collect()
        }
        ExpressionKind::Sum(first, rest) => std::iter::once(&**first)
            .chain(rest.iter().map(|(_, operand)| operand))
            .collect(),
        ExpressionKind::Product(first, rest) => std::iter::once(&**first)
            .chain(rest.iter().map(|(_, operand)| operand))
            .collect(),
        ExpressionKind::Not(inner) | ExpressionKind::Signed(_, inner) => vec![inner],
        ExpressionKind::Aggregate(aggregate) => aggregate.operand.iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_syntax::{Options, parse_query};

    fn facts(text: &str) -> Facts {
        Facts::of(&parse_query(text, Options::default()).expect("it is a query"))
    }

    #[test]
    fn graphs_are_found_however_deep() {
        assert!(!facts("SELECT * { ?s ?p ?o }").names_graphs);
        assert!(facts("SELECT * FROM <http://e/g> { ?s ?p ?o }").names_graphs);
        assert!(facts("ASK { OPTIONAL { GRAPH ?g { ?s ?p ?o } } }").names_graphs);
        assert!(
            facts("ASK { FILTER(1 + IF(EXISTS { GRAPH ?g {} }, 1, 2) > 2) }").names_graphs,
            "inside EXISTS"
        );
        assert!(facts("ASK { { SELECT * { GRAPH ?g {} } } }").names_graphs);
    }

    #[test]
    fn exists_inside_and_outside_the_pattern_are_apart() {
        let inside = facts("SELECT ?s { ?s ?p ?o FILTER EXISTS { ?o ?p ?s } }");
        assert!(!inside.exists_outside_pattern);
        let outside = facts("SELECT ?s { ?s ?p ?o } ORDER BY (!EXISTS { ?o ?p ?s })");
        assert!(outside.exists_outside_pattern);
    }

    #[test]
    fn nested_grouping_and_slices_are_no_grouping_outside() {
        let nested = facts("SELECT ?s { { SELECT (MAX(?o) AS ?m) { ?s ?p ?o } LIMIT 1 } }");
        assert!(!nested.groups && !nested.slices);
        assert!(nested.slices_inside && nested.computes);
        let outside = facts("SELECT (COUNT(*) AS ?c) { ?s ?p ?o } OFFSET 1");
        assert!(outside.groups && outside.slices && !outside.slices_inside);
    }
}
