//! How is a query about the default graph written about named graphs?
//!
//! Its text is kept but for what is put around its parts, which the parser's places find: what the
//! engine is asked has the prefixes, comments and spellings of the original.

use crate::query_facts::Facts;
use jindou_syntax::tree::{ExpressionKind, Form, Group, Projection, Query, Select, Span};
use jindou_syntax::{Options, parse_query};
use std::ops::Range;

/// The variable of GRAPH, which no query has of its own.
pub const GRAPH_VARIABLE: &str = "g__";

/// Why a query has no such form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum LeftOut {
    /// The text is no query.
    #[error("is no valid query")]
    Invalid,
    /// GRAPH inside GRAPH is about the inner one, and a dataset replaces another.
    #[error("names graphs itself")]
    NamesGraphs,
    /// What DESCRIBE gives is not of the pattern's graph.
    #[error("DESCRIBE reads the default graph")]
    Describes,
    /// EXISTS outside the pattern asks the default graph.
    #[error("EXISTS outside the pattern asks the default graph")]
    ExistsOutside,
    /// Its solutions are grouped or cut over all graphs.
    #[error("groups or cuts the solutions of all graphs together")]
    AcrossGraphs,
    /// Only SELECT can be nested.
    #[error("is no SELECT")]
    NoSelect,
    /// Blank nodes or random values of each evaluation.
    #[error("makes terms anew in each evaluation")]
    MakesTerms,
    /// The engine took all the time, or memory, that it may.
    #[error("needs more time or memory than it may take")]
    TakesMuch,
}

/// What a query is about, inside GRAPH.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name<'a> {
    /// One graph.
    Iri(&'a str),
    /// Each graph, by [`GRAPH_VARIABLE`].
    Variable,
}

impl Name<'_> {
    fn written(self) -> String {
        match self {
            Self::Iri(iri) => format!("GRAPH <{iri}>"),
            Self::Variable => format!("GRAPH ?{GRAPH_VARIABLE}"),
        }
    }
}

/// A query's text with what was found in it.
#[derive(Debug, Clone)]
pub struct Text {
    text: String,
    /// What it has.
    pub facts: Facts,
    /// Variables of ORDER BY up to the first key that is another expression.
    pub order: Vec<String>,
    /// Whether it is SELECT with `*`.
    pub is_star: bool,
    /// The outermost group with its braces; none of DESCRIBE.
    group: Option<Range<usize>>,
    /// Where SELECT begins.
    select: Option<usize>,
    /// Where a column can be put into the SELECT clause; not where it is `*`.
    column: Option<usize>,
    /// Where a key can be put into GROUP BY.
    group_key: Option<usize>,
}

impl Text {
    /// Looks through a query about the default graph.
    ///
    /// # Errors
    /// Why its answer does not follow from the default graph alone.
    pub fn new(text: &str, base: Option<&str>) -> Result<Self, LeftOut> {
        let options = Options {
            base,
            ..Options::default()
        };
        let query = parse_query(text, options).map_err(|_| LeftOut::Invalid)?;
        let facts = Facts::of(&query);
        if facts.names_graphs {
            return Err(LeftOut::NamesGraphs);
        }
        let select = match &query.form {
            Form::Select(select) => Some(&**select),
            _ => None,
        };
        Ok(Self {
            text: text.to_owned(),
            facts,
            order: order(&query),
            is_star: select.is_some_and(|select| matches!(select.projection, Projection::All(_))),
            group: group(&query).map(|group| range(group.span)),
            select: select.map(|select| range(select.span).start),
            column: select.and_then(|select| column(text, select)),
            group_key: select.and_then(group_key),
        })
    }

    /// As it was.
    #[must_use]
    pub fn as_written(&self) -> &str {
        &self.text
    }

    /// The query with its outermost group inside GRAPH.
    ///
    /// # Errors
    /// Why that asks for other things.
    pub fn with_pattern_in(&self, name: Name<'_>) -> Result<String, LeftOut> {
        if self.facts.exists_outside_pattern {
            return Err(LeftOut::ExistsOutside);
        }
        let group = self.group.clone().ok_or(LeftOut::Describes)?;
        let (before, inside, after) = self.around(group);
        let wrapped = format!("{{ {} {inside} }}", name.written());
        let text = format!("{before}{wrapped}{after}");
        if is_query(&text) {
            return Ok(text);
        }
        // CONSTRUCT without a template, whose pattern is triples only.
        let start = before.to_ascii_uppercase().rfind("WHERE");
        let start = start.expect("CONSTRUCT WHERE has the keyword");
        let (before, keyword) = before.split_at(start);
        Ok(format!("{before}{inside} {keyword}{wrapped}{after}"))
    }

    /// As [`Text::with_pattern_in`] with a variable, which is also a column of SELECT and a key of
    /// GROUP BY: the solutions of all graphs, each with its graph.
    ///
    /// # Errors
    /// Why these are not the solutions of each graph alone.
    pub fn in_each_graph(&self) -> Result<String, LeftOut> {
        if self.facts.groups && self.group_key.is_none() || self.facts.slices {
            return Err(LeftOut::AcrossGraphs);
        }
        if self.facts.makes_terms {
            return Err(LeftOut::MakesTerms);
        }
        let text = self.with_pattern_in(Name::Variable)?;
        // What stands after the pattern has moved by as much as the text has grown.
        let grown = text.len() - self.text.len();
        let places = [self.column, self.group_key.map(|place| place + grown)];
        let mut written = String::with_capacity(text.len() + 2 * GRAPH_VARIABLE.len());
        let mut done = 0;
        for place in places.into_iter().flatten() {
            let more = format!("{} ?{GRAPH_VARIABLE} ", &text[done..place]);
            written.push_str(&more);
            done = place;
        }
        written.push_str(&text[done..]);
        Ok(written)
    }

    /// The whole query nested inside GRAPH with a variable: grouped, sorted and cut within each
    /// graph.
    ///
    /// # Errors
    /// Why it cannot be nested.
    pub fn nested_in_each_graph(&self) -> Result<String, LeftOut> {
        let start = self.select.ok_or(LeftOut::NoSelect)?;
        if self.facts.makes_terms {
            return Err(LeftOut::MakesTerms);
        }
        let (prologue, select) = self.text.split_at(start);
        // A comment may be last.
        Ok(format!(
            "{prologue}SELECT * {{ {} {{ {select}\n}} }}",
            Name::Variable.written()
        ))
    }

    fn around(&self, group: Range<usize>) -> (&str, &str, &str) {
        let text = &self.text;
        (
            &text[..group.start],
            &text[group.clone()],
            &text[group.end..],
        )
    }
}

fn is_query(text: &str) -> bool {
    // It may have relative IRIs.
    let options = Options {
        base: Some("http://example.org/"),
        ..Options::default()
    };
    parse_query(text, options).is_ok()
}

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

fn group<'q, 't>(query: &'q Query<'t>) -> Option<&'q Group<'t>> {
    match &query.form {
        Form::Select(select) => Some(&select.group),
        Form::Construct { group, .. } | Form::Ask { group, .. } => Some(group),
        Form::Describe { .. } => None,
    }
}

fn order(query: &Query<'_>) -> Vec<String> {
    let Form::Select(select) = &query.form else {
        return Vec::new();
    };
    let keys = select.modifiers.order_by.iter();
    keys.map_while(|key| match &key.expression.kind {
        ExpressionKind::Variable(variable) => Some(variable.name.to_owned()),
        _ => None,
    })
    .collect()
}

/// Before the first plain column, or after the last computed one.
fn column(text: &str, select: &Select<'_>) -> Option<usize> {
    let Projection::Columns(columns) = &select.projection else {
        return None;
    };
    let plain = columns.iter().find(|column| column.expression.is_none());
    if let Some(column) = plain {
        return Some(range(column.variable.span).start);
    }
    let end = range(columns.last()?.variable.span).end;
    let bracket = text[end..].find(')').expect("AS is inside brackets");
    Some(end + bracket + 1)
}

/// Before the first key, if that is a plain variable.
fn group_key(select: &Select<'_>) -> Option<usize> {
    match select.modifiers.group_by.first()? {
        (key, None) if matches!(key.kind, ExpressionKind::Variable(_)) => {
            Some(range(key.span).start)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(query: &str) -> Text {
        Text::new(query, Some("http://e/")).expect("it is about the default graph")
    }

    fn wrapped(query: &str) -> String {
        let found = text(query).with_pattern_in(Name::Iri("urn:g"));
        found.expect("it has a pattern")
    }

    #[test]
    fn the_outermost_pattern_is_wrapped() {
        assert_eq!(
            wrapped("SELECT ?s { ?s ?p ?o } ORDER BY ?s # {"),
            "SELECT ?s { GRAPH <urn:g> { ?s ?p ?o } } ORDER BY ?s # {"
        );
        assert_eq!(
            wrapped("ASK WHERE { { SELECT * {} } } VALUES ?x { 1 }"),
            "ASK WHERE { GRAPH <urn:g> { { SELECT * {} } } } VALUES ?x { 1 }"
        );
    }

    #[test]
    fn a_short_construct_is_written_out() {
        assert_eq!(
            wrapped("CONSTRUCT WHERE { ?s ?p 1 } LIMIT 2"),
            "CONSTRUCT { ?s ?p 1 } WHERE { GRAPH <urn:g> { ?s ?p 1 } } LIMIT 2"
        );
        assert_eq!(
            wrapped("CONSTRUCT { ?s ?p 2 } { ?s ?p 1 }"),
            "CONSTRUCT { ?s ?p 2 } { GRAPH <urn:g> { ?s ?p 1 } }"
        );
    }

    #[test]
    fn each_graph_is_a_column() {
        let each = |query: &str| text(query).in_each_graph();
        assert_eq!(
            each("SELECT DISTINCT ?s { ?s ?p ?o }").as_deref(),
            Ok("SELECT DISTINCT  ?g__ ?s { GRAPH ?g__ { ?s ?p ?o } }")
        );
        assert_eq!(
            each("SELECT (MAX(?o) AS ?m) ?s { ?s ?p ?o } GROUP BY ?s").as_deref(),
            Ok("SELECT (MAX(?o) AS ?m)  ?g__ ?s { GRAPH ?g__ { ?s ?p ?o } } GROUP BY  ?g__ ?s")
        );
        assert_eq!(
            each("SELECT (1 AS ?x) {}").as_deref(),
            Ok("SELECT (1 AS ?x) ?g__  { GRAPH ?g__ {} }")
        );
        assert_eq!(
            each("SELECT * {}").as_deref(),
            Ok("SELECT * { GRAPH ?g__ {} }")
        );
        assert_eq!(
            each("SELECT (COUNT(*) AS ?c) {}"),
            Err(LeftOut::AcrossGraphs)
        );
        assert_eq!(each("SELECT * {} LIMIT 1"), Err(LeftOut::AcrossGraphs));
    }

    #[test]
    fn a_whole_select_is_nested() {
        let nested = |query: &str| text(query).nested_in_each_graph();
        assert_eq!(
            nested("PREFIX : <x> SELECT * {} VALUES ?x { 1 }").as_deref(),
            Ok("PREFIX : <x> SELECT * { GRAPH ?g__ { SELECT * {} VALUES ?x { 1 }\n} }")
        );
        assert_eq!(nested("ASK {}"), Err(LeftOut::NoSelect));
    }

    #[test]
    fn what_asks_other_graphs_is_left_out() {
        let refusal = |query: &str| Text::new(query, None).map(|_| ()).expect_err("left out");
        assert_eq!(refusal("SELECT"), LeftOut::Invalid);
        assert_eq!(refusal("ASK { GRAPH ?g {} }"), LeftOut::NamesGraphs);
        assert_eq!(refusal("ASK FROM <urn:g> {}"), LeftOut::NamesGraphs);
        let wrap = |query: &str| text(query).with_pattern_in(Name::Variable);
        assert_eq!(wrap("DESCRIBE <x>"), Err(LeftOut::Describes));
        assert_eq!(wrap("DESCRIBE ?x { ?x ?y 1 }"), Err(LeftOut::Describes));
        assert_eq!(
            wrap("SELECT (EXISTS {} AS ?e) {}"),
            Err(LeftOut::ExistsOutside)
        );
    }
}
