//! How are named graphs asked for what the default graph would answer?

use crate::graph_placement::Placement;
use crate::graph_text::{LeftOut, Name, Text};
use jindou_engine::QueryOptions;
use oxrdf::NamedNode;
use std::fmt;

/// A way to ask. One more is a variant here, with where its data lies and what is asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GraphForm {
    /// The pattern inside GRAPH with the name of a graph.
    PatternInName,
    /// The pattern inside GRAPH with a variable, which is bound to the only graph.
    PatternInVariable,
    /// The query as it is, with a graph as the request's default graph.
    Dataset,
    /// The query as it is, with the merge of graphs that share triples as the default graph.
    MergedDataset,
    /// The pattern inside GRAPH with a variable that is a column: the solutions of each graph.
    EachGraph,
    /// The whole SELECT inside GRAPH with a variable: evaluated for each graph.
    NestedInEachGraph,
    /// The query as it is, with the union of all graphs as the default graph.
    Union,
}

/// What the engine is asked.
#[derive(Debug, Clone)]
pub struct Request {
    /// The query.
    pub text: String,
    /// Its dataset, unless that is the whole database.
    pub options: QueryOptions,
}

impl GraphForm {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::PatternInName,
        Self::PatternInVariable,
        Self::Dataset,
        Self::MergedDataset,
        Self::EachGraph,
        Self::NestedInEachGraph,
        Self::Union,
    ];

    /// Where the data lies.
    #[must_use]
    pub fn placement(self) -> Placement {
        match self {
            Self::PatternInVariable => Placement::One,
            Self::PatternInName | Self::Dataset => Placement::OneOfTwo,
            Self::MergedDataset => Placement::Overlapping,
            Self::EachGraph | Self::NestedInEachGraph => Placement::BySubject,
            Self::Union => Placement::Spread,
        }
    }

    /// Whether the answer is that of each graph alone, with the graph; otherwise it is that of the
    /// data in the default graph.
    #[must_use]
    pub fn asks_each_graph(self) -> bool {
        matches!(self, Self::EachGraph | Self::NestedInEachGraph)
    }

    /// What is asked for the answer of `query`.
    ///
    /// # Errors
    /// Why nothing has this answer.
    pub fn request(self, query: &Text) -> Result<Request, LeftOut> {
        let plain = |text: String| Request {
            text,
            options: QueryOptions::default(),
        };
        let graphs = self.placement().graphs();
        Ok(match self {
            Self::PatternInName => plain(query.with_pattern_in(Name::Iri(graphs[0].as_str()))?),
            Self::PatternInVariable => plain(query.with_pattern_in(Name::Variable)?),
            Self::Dataset | Self::MergedDataset => Request {
                text: query.as_written().to_owned(),
                options: merge_of(graphs),
            },
            Self::Union => Request {
                text: query.as_written().to_owned(),
                options: QueryOptions {
                    union_default_graph: Some(true),
                    ..QueryOptions::default()
                },
            },
            Self::EachGraph => plain(query.in_each_graph()?),
            Self::NestedInEachGraph => plain(query.nested_in_each_graph()?),
        })
    }
}

/// The merge of named graphs as the default graph, each by its name.
fn merge_of(graphs: Vec<NamedNode>) -> QueryOptions {
    QueryOptions {
        default_graphs: graphs,
        ..QueryOptions::default()
    }
}

impl fmt::Display for GraphForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::PatternInName => "GRAPH <g> { pattern }",
            Self::PatternInVariable => "GRAPH ?g { pattern }",
            Self::Dataset => "FROM <g>",
            Self::MergedDataset => "FROM of several",
            Self::EachGraph => "GRAPH ?g of several",
            Self::NestedInEachGraph => "GRAPH ?g { SELECT }",
            Self::Union => "union of all graphs",
        })
    }
}
