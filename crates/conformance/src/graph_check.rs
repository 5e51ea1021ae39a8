//! Do data in named graphs give the answers that the same data give in the default graph?

use crate::answer::{Answer, Table};
use crate::differential::{differ, ground};
use crate::engines::{ask, ask_at_most, ask_with, guarded, without_source_prefix};
use crate::graph_form::GraphForm;
use crate::graph_history::{loaded, merged_in_parts, updated};
use crate::graph_placement::{Everywhere, Placement};
use crate::graph_text::{GRAPH_VARIABLE, LeftOut, Text};
use crate::latitude::Latitude;
use crate::query::Query;
use jindou_engine::{Config, Database, EngineError, QueryOptions};
use oxrdf::{BlankNode, GraphName, NamedNode, Quad, Term};
use std::collections::BTreeSet;

/// Rows or triples of an answer to a generated query.
const GENERATED_ROWS_LIMIT: usize = 20_000;

/// Data in default graphs, which say what is right.
pub struct Baseline {
    /// All of it.
    pub whole: Database,
    /// The content of each graph of [`Placement::BySubject`] in a database of its own.
    alone: Vec<(NamedNode, Database)>,
    /// Labels of the data's blank nodes.
    labels: BTreeSet<String>,
}

impl Baseline {
    /// Loads the triples of `quads`, whatever graphs they name.
    ///
    /// # Errors
    /// Whatever the engine says.
    pub fn new(
        quads: &[Quad],
        everywhere: Everywhere,
        config: &Config,
    ) -> Result<Self, EngineError> {
        let whole = Placement::Default.place(quads, everywhere);
        let by_subject = Placement::BySubject.place(quads, everywhere);
        let alone = |graph: NamedNode| {
            let name = GraphName::from(graph.clone());
            let content = by_subject.iter().filter(|quad| quad.graph_name == name);
            let content = content.map(|quad| Quad {
                graph_name: GraphName::DefaultGraph,
                ..quad.clone()
            });
            let content: Vec<Quad> = content.collect();
            Ok((graph, loaded(&content, &[], config.clone())?))
        };
        let terms = quads
            .iter()
            .flat_map(|quad| [Term::from(quad.subject.clone()), quad.object.clone()]);
        let labels = terms.filter_map(|term| match term {
            Term::BlankNode(node) => Some(node.into_string()),
            _ => None,
        });
        Ok(Self {
            whole: loaded(&whole, &[], config.clone())?,
            alone: Placement::BySubject
                .graphs()
                .into_iter()
                .map(alone)
                .collect::<Result<_, EngineError>>()?,
            labels: labels.collect(),
        })
    }

    /// The answers of the graphs each alone, united: rows with the graph as last column, triples
    /// of any, truth of any.
    ///
    /// # Errors
    /// Whatever the engine says.
    pub fn each(&self, query: &str, base: Option<&NamedNode>) -> Result<Answer, EngineError> {
        let mut united = None;
        for (index, (graph, database)) in self.alone.iter().enumerate() {
            let answer = ask(database, query, base)?.map_terms(&|term| self.apart(term, index));
            let answer = with_graph(answer, graph);
            united = Some(match united {
                None => answer,
                Some(before) => unite(before, answer),
            });
        }
        Ok(united.expect("there are graphs"))
    }

    /// Blank nodes that a database made are of that database.
    fn apart(&self, term: Term, index: usize) -> Term {
        match term {
            Term::BlankNode(node)
                if !self.labels.contains(without_source_prefix(node.as_str())) =>
            {
                BlankNode::new_unchecked(format!("{}of{index}", node.as_str())).into()
            }
            other => other,
        }
    }
}

fn with_graph(answer: Answer, graph: &NamedNode) -> Answer {
    let Answer::Solutions(mut table) = answer else {
        return answer;
    };
    table.variables.push(GRAPH_VARIABLE.to_owned());
    for row in &mut table.rows {
        row.push(Some(graph.clone().into()));
    }
    Answer::Solutions(table)
}

fn unite(left: Answer, right: Answer) -> Answer {
    match (left, right) {
        (Answer::Solutions(mut left), Answer::Solutions(right)) => {
            let right = right.reordered(&left.variables);
            left.rows.extend(right.rows);
            Answer::Solutions(left)
        }
        (Answer::Graph(left), Answer::Graph(right)) => Answer::graph(left.into_iter().chain(right)),
        (Answer::Boolean(left), Answer::Boolean(right)) => Answer::Boolean(left || right),
        (left, right) => panic!("one query gave {} and {}", left.kind(), right.kind()),
    }
}

/// Makes a database of quads, in which some graphs are there without any.
type Make = fn(&[Quad], &[NamedNode], Config) -> Result<Database, EngineError>;

/// The same data in named graphs: a database for each placement.
pub struct Stores(Vec<(Placement, Database)>);

impl Stores {
    /// Loads all of it.
    ///
    /// # Errors
    /// Whatever the engine says.
    pub fn loaded(
        quads: &[Quad],
        everywhere: Everywhere,
        config: &Config,
    ) -> Result<Self, EngineError> {
        Self::made(quads, everywhere, config, loaded)
    }

    /// Loads half of it and writes the rest by updates.
    ///
    /// # Errors
    /// Whatever the engine says.
    pub fn updated(
        quads: &[Quad],
        everywhere: Everywhere,
        config: &Config,
    ) -> Result<Self, EngineError> {
        Self::made(quads, everywhere, config, updated)
    }

    /// Loads half of it and writes the rest by updates, each followed by a merge of half of the
    /// predicates.
    ///
    /// # Errors
    /// Whatever the engine says.
    pub fn merged_in_parts(
        quads: &[Quad],
        everywhere: Everywhere,
        config: &Config,
    ) -> Result<Self, EngineError> {
        Self::made(quads, everywhere, config, merged_in_parts)
    }

    fn made(
        quads: &[Quad],
        everywhere: Everywhere,
        config: &Config,
        make: Make,
    ) -> Result<Self, EngineError> {
        let store = |placement: Placement| {
            let quads = placement.place_beside_others(quads, everywhere);
            let database = make(&quads, &placement.graphs(), config.clone())?;
            Ok((placement, database))
        };
        Ok(Self(
            Placement::NAMED
                .into_iter()
                .map(store)
                .collect::<Result<_, EngineError>>()?,
        ))
    }

    /// Writes changed lists of neighbours out.
    ///
    /// # Errors
    /// Whatever the engine says.
    pub fn fold(&self) -> Result<(), EngineError> {
        self.0
            .iter()
            .try_for_each(|(_, store)| store.fold().map(drop))
    }

    /// Merges the changes into the base.
    ///
    /// # Errors
    /// Whatever the engine says.
    pub fn merge(&self) -> Result<(), EngineError> {
        self.0
            .iter()
            .try_for_each(|(_, store)| store.compact().map(drop))
    }

    fn of(&self, placement: Placement) -> &Database {
        let found = self.0.iter().find(|(known, _)| *known == placement);
        &found.expect("there is a database for it").1
    }
}

/// A query with its right answers.
pub struct Expected<'a> {
    /// What is asked of the whole data.
    text: Text,
    /// What is asked of each graph.
    each_text: Text,
    base: Option<&'a NamedNode>,
    whole: Answer,
    each: Answer,
    same: Same<'a>,
}

/// By what answers are compared.
enum Same<'a> {
    Text(Box<Latitude>),
    Generated(&'a Query),
}

/// Why there is nothing to compare with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoAnswer {
    /// The query is left out.
    #[error(transparent)]
    LeftOut(#[from] LeftOut),
    /// The engine does not answer it on a default graph.
    #[error("the engine says: {0}")]
    Refused(#[from] EngineError),
}

impl<'a> Expected<'a> {
    /// Of a query in any words.
    ///
    /// # Errors
    /// Why there is no right answer.
    pub fn of_text(
        baseline: &Baseline,
        query: &str,
        base: Option<&'a NamedNode>,
    ) -> Result<Self, NoAnswer> {
        let text = Text::new(query, base.map(NamedNode::as_str))?;
        Ok(Self {
            same: Same::Text(Box::new(Latitude::of(&text))),
            each_text: text.clone(),
            base,
            whole: ask(&baseline.whole, query, base)?,
            each: baseline.each(query, base)?,
            text,
        })
    }

    /// Of a generated query, whose variables say how their values compare.
    ///
    /// # Errors
    /// Why there is no right answer, or a long one.
    pub fn of_generated(baseline: &Baseline, query: &'a Query) -> Result<Self, NoAnswer> {
        let unordered = query.unordered().to_string();
        Ok(Self {
            text: Text::new(&query.to_string(), None)?,
            each_text: Text::new(&unordered, None)?,
            base: None,
            whole: ask_at_most(
                &baseline.whole,
                &unordered,
                QueryOptions::default(),
                GENERATED_ROWS_LIMIT,
            )?
            .ok_or(LeftOut::TakesMuch)?,
            each: baseline.each(&unordered, None)?,
            same: Same::Generated(query),
        })
    }

    /// Whether the right answer of a form holds anything.
    #[must_use]
    pub fn is_something(&self, form: GraphForm) -> bool {
        !self.answer(form).is_empty()
    }

    fn answer(&self, form: GraphForm) -> &Answer {
        match form.asks_each_graph() {
            true => &self.each,
            false => &self.whole,
        }
    }

    /// Asks in one form, and says what is wrong with the answer, if anything.
    ///
    /// # Errors
    /// Why the query has no such form.
    pub fn check(&self, form: GraphForm, stores: &Stores) -> Result<Option<String>, LeftOut> {
        let request = form.request(match form.asks_each_graph() {
            true => &self.each_text,
            false => &self.text,
        })?;
        let options = QueryOptions {
            base: self.base.cloned(),
            ..request.options
        };
        let database = stores.of(form.placement());
        let answer = guarded(|| ask_with(database, &request.text, options));
        let reason = match answer {
            Err(panic) => panic,
            Ok(Err(
                EngineError::Timeout { .. }
                | EngineError::MemoryExceeded { .. }
                | EngineError::SpillExceeded { .. },
            )) => return Err(LeftOut::TakesMuch),
            Ok(Err(error)) => format!("the engine says: {error}"),
            Ok(Ok(answer)) => match self.differ(form, answer) {
                None => return Ok(None),
                Some(reason) => reason,
            },
        };
        Ok(Some(format!("{form}: {reason}\n{}", request.text)))
    }

    fn differ(&self, form: GraphForm, actual: Answer) -> Option<String> {
        let expected = self.answer(form);
        let actual = match like(form, expected, actual) {
            Ok(actual) => actual,
            Err(reason) => return Some(reason),
        };
        let reason = match &self.same {
            Same::Text(latitude) if form.asks_each_graph() => {
                let latitude = latitude.as_ref().clone().in_any_order();
                latitude.differ(expected, &actual).map(str::to_owned)
            }
            Same::Text(latitude) => latitude.differ(expected, &actual).map(str::to_owned),
            Same::Generated(query) => {
                let named = |answer: &Answer| {
                    let term = |term| ground(term, without_source_prefix);
                    answer.clone().map_terms(&term)
                };
                let unordered;
                let query = match form.asks_each_graph() {
                    true => {
                        unordered = query.unordered();
                        &unordered
                    }
                    false => *query,
                };
                differ(query, &named(expected), &named(&actual))
            }
        };
        Some(format!("{}\nright:\n{expected}answer:\n{actual}", reason?))
    }
}

/// The answer with the columns of the right one in its order: where that one has no graph, the
/// only graph is taken off.
fn like(form: GraphForm, expected: &Answer, actual: Answer) -> Result<Answer, String> {
    let (Answer::Solutions(expected), Answer::Solutions(actual)) = (expected, &actual) else {
        return Ok(actual);
    };
    if expected.same_variables(actual) {
        // What a query projects stands in its order.
        let actual = match form.asks_each_graph() {
            true => actual.reordered(&expected.variables),
            false => actual.clone(),
        };
        return Ok(Answer::Solutions(actual));
    }
    let mut with_graph = Table {
        variables: expected.variables.clone(),
        rows: Vec::new(),
    };
    with_graph.variables.push(GRAPH_VARIABLE.to_owned());
    if form != GraphForm::PatternInVariable || !with_graph.same_variables(actual) {
        return Err(format!(
            "the variables {:?}, not {:?}",
            actual.variables, expected.variables
        ));
    }
    let graph = Some(Term::from(form.placement().graphs().remove(0)));
    let mut actual = actual.reordered(&with_graph.variables);
    if let Some(row) = actual.rows.iter().find(|row| row.last() != Some(&graph)) {
        return Err(format!("the graph is not bound in {row:?}"));
    }
    actual.variables.pop();
    actual.rows.iter_mut().for_each(|row| drop(row.pop()));
    Ok(Answer::Solutions(actual))
}
