//! In which forms is one query asked of named graphs, and what must its answer be?

use jindou_datagen::lubm::Lubm;
use jindou_engine::QueryOptions;
use oxrdf::NamedNode;
use serde::{Deserialize, Serialize};

use super::layout::{Layout, REPEATS, graph_iri};

/// How a query of the default graph is asked of named graphs.
///
/// A form is a text ([`Form::text`]) with settings of the query: one that is asked by a setting, as
/// [`Form::MergeOfAll`] is, has the plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Form {
    /// As it is.
    DefaultGraph,
    /// All its patterns in `GRAPH <g> { }` of the first graph.
    Graph,
    /// All its patterns in one `GRAPH ?g { }`.
    AnyGraph,
    /// Each pattern in a `GRAPH ?g { }` with a variable of its own.
    AnyGraphEach,
    /// `FROM <g>` of the first graph.
    From,
    /// As it is, with the merge of all named graphs for a default graph. The graphs are given by
    /// name with the query, as the protocol's `default-graph-uri` does.
    MergeOfAll,
    /// As it is, with the union of all graphs for a default graph.
    Union,
}

/// What is known of an answer by that of the default graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// The same rows.
    Same,
    /// Each row this many times.
    Times(u64),
    /// Nothing: the form asks for something else there.
    Other,
}

impl Form {
    /// Its heading in tables.
    #[must_use]
    pub const fn heading(self) -> &'static str {
        match self {
            Self::DefaultGraph => "default graph",
            Self::Graph => "GRAPH <g>",
            Self::AnyGraph => "GRAPH ?g",
            Self::AnyGraphEach => "GRAPH ?g each",
            Self::From => "FROM <g>",
            Self::MergeOfAll => "merge of all",
            Self::Union => "union",
        }
    }

    /// The text of a query of [`QUERIES`](jindou_datagen::lubm::QUERIES) in this form.
    ///
    /// # Panics
    /// If the query is not a basic graph pattern with a pattern a line.
    #[must_use]
    pub fn text(self, query: &str) -> String {
        let parts = Parts::of(query);
        let head = parts.head;
        let graph = graph_iri(0);
        match self {
            Self::DefaultGraph | Self::MergeOfAll | Self::Union => query.to_owned(),
            Self::Graph => format!(
                "{head}WHERE {{ GRAPH <{graph}> {{\n{}\n}} }}\n",
                parts.lines()
            ),
            Self::AnyGraph => format!("{head}WHERE {{ GRAPH ?g {{\n{}\n}} }}\n", parts.lines()),
            Self::AnyGraphEach => {
                let each = |(number, pattern)| format!("GRAPH ?g{number} {{ {pattern} }}\n");
                let patterns = parts.patterns.iter().enumerate().map(each);
                format!("{head}WHERE {{\n{}}}\n", patterns.collect::<String>())
            }
            Self::From => format!("{head}FROM <{graph}>\nWHERE {{\n{}\n}}\n", parts.lines()),
        }
    }

    /// Settings of a query in this form; here a form without a text of its own says what it is.
    pub(super) fn options(self, layout: Layout, data: Lubm) -> QueryOptions {
        let mut options = QueryOptions::default();
        if self == Self::MergeOfAll {
            let node = |number| NamedNode::new_unchecked(graph_iri(number));
            options.default_graphs = (0..layout.graphs(data)).map(node).collect();
        }
        options.union_default_graph = Some(self == Self::Union);
        options
    }

    /// What the answer of a query in this form is, beside that of the default graph.
    pub(super) fn expected(self, layout: Layout, query: &str) -> Expected {
        match (layout, self) {
            (_, Self::DefaultGraph | Self::MergeOfAll | Self::Union)
            | (Layout::OneGraph, _)
            // A quad is in one graph only: each row has one choice of graphs.
            | (Layout::RandomGraph, Self::AnyGraphEach) => Expected::Same,
            // All statements that a row is made of come from one university: each query either
            // joins on members of one department, or asks for degrees from their own university.
            (Layout::GraphPerUniversity, Self::AnyGraph) => Expected::Same,
            (Layout::GraphPerUniversity, Self::Graph) if query.contains("University0.edu") => {
                Expected::Same
            }
            // Graphs have all of a subject or nothing.
            (Layout::RepeatedInGraphs, Self::AnyGraph) if Parts::of(query).is_star() => {
                Expected::Times(u64::from(REPEATS))
            }
            _ => Expected::Other,
        }
    }
}

/// A query of a basic graph pattern, taken apart.
struct Parts<'q> {
    /// Everything before `WHERE`.
    head: &'q str,
    /// The triple patterns, each with its full stop.
    patterns: Vec<&'q str>,
}

impl<'q> Parts<'q> {
    fn of(query: &'q str) -> Self {
        let (head, rest) = query.split_once("WHERE {").expect("it has a WHERE clause");
        let (patterns, _) = rest.rsplit_once('}').expect("the clause ends");
        let lines = patterns.lines().map(str::trim);
        let patterns: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        let is_pattern = |line: &str| line.ends_with(" .") && !line.contains('{');
        assert!(patterns.iter().all(|line| is_pattern(line)), "{query}");
        Self { head, patterns }
    }

    fn lines(&self) -> String {
        self.patterns.join("\n")
    }

    /// Whether all patterns are about one subject.
    fn is_star(&self) -> bool {
        let mut subjects = self.patterns.iter().map(|line| line.split(' ').next());
        let first = subjects.next();
        subjects.all(|subject| Some(subject) == first)
    }
}

#[cfg(test)]
mod tests {
    use jindou_datagen::lubm::QUERIES;

    use super::*;

    #[test]
    fn every_query_is_taken_apart_into_its_patterns() {
        let patterns = QUERIES.map(|(_, text)| Parts::of(text).patterns.len());
        assert_eq!(patterns, [6, 2, 6, 5, 2, 4, 6]);
        let stars = QUERIES.map(|(_, text)| Parts::of(text).is_star());
        assert_eq!(stars, [false, true, false, true, true, false, false]);
    }

    #[test]
    fn a_form_puts_the_patterns_where_it_says() {
        let (_, text) = QUERIES[4];
        let body = |form: Form| {
            let text = form.text(text);
            let (_, body) = text.split_once("SELECT").unwrap();
            body.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let patterns = "?X ub:subOrganizationOf <http://www.Department0.University0.edu> . \
                        ?X rdf:type ub:ResearchGroup .";
        assert_eq!(
            body(Form::DefaultGraph),
            format!("?X WHERE {{ {patterns} }}")
        );
        assert_eq!(body(Form::MergeOfAll), body(Form::DefaultGraph));
        assert_eq!(
            body(Form::Graph),
            format!("?X WHERE {{ GRAPH <http://example.org/graph/0> {{ {patterns} }} }}")
        );
        assert_eq!(
            body(Form::AnyGraph),
            format!("?X WHERE {{ GRAPH ?g {{ {patterns} }} }}")
        );
        assert_eq!(
            body(Form::AnyGraphEach),
            "?X WHERE { GRAPH ?g0 { ?X ub:subOrganizationOf \
             <http://www.Department0.University0.edu> . } \
             GRAPH ?g1 { ?X rdf:type ub:ResearchGroup . } }"
        );
        assert_eq!(
            body(Form::From),
            format!("?X FROM <http://example.org/graph/0> WHERE {{ {patterns} }}")
        );
    }

    #[test]
    fn only_stars_are_repeated_as_often_as_their_subjects() {
        let expected =
            QUERIES.map(|(_, text)| Form::AnyGraph.expected(Layout::RepeatedInGraphs, text));
        let (other, times) = (Expected::Other, Expected::Times(20));
        assert_eq!(expected, [other, times, other, times, times, other, other]);
    }
}
