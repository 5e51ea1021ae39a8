//! Do our engine and the oracle answer one query over one data set alike?

use crate::answer::{Answer, Table, by_value, ground_blank, numeric_value, value_key_of_any_type};
use crate::engines::{
    OracleError, Patience, ask, ask_oracle, ask_oracle_within, guarded, load_quads_with, settings,
    without_source_prefix,
};
use crate::graph_history::merged_in_parts;
use crate::isomorphism::isomorphic;
use crate::part::is_part_of;
use crate::query::{Expression, Form, Query, SEPARATOR};
use crate::random::Random;
use crate::random_data::{self, BLANKS, Domain, Profile};
use crate::random_query::{self, Column, domain_of};
use crate::reference::{Reference, Undecided};
use crate::shrink::Case;
use jindou_engine::{Config, Database, EngineError, QueryResults};
use oxrdf::{Dataset, Literal, Quad, Term};
use oxsdatatypes::{Boolean, DateTime};
use std::cmp::Ordering;
use std::time::Duration;

/// For a query over much data.
const PATIENCE: Patience = Patience {
    time: Duration::from_millis(700),
    rows: 50_000,
};
/// Time that the engine has, in which the machine may have other things to do.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Queries tried for one case in search of one with results.
const QUERIES_TRIED: usize = 8;

/// The case of a seed: a data set and a query, mostly one that has results by the oracle.
///
/// # Panics
/// When the generator made a query that the oracle refuses.
pub fn case(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let profile = Profile::random(&mut random);
    let quads = random_data::dataset(&mut random, profile);
    let dataset: Dataset = quads.iter().collect();
    let tried = if random.chance(10) { 1 } else { QUERIES_TRIED };
    let mut query = random_query::query(&mut random, profile);
    for _ in 1..tried {
        match ask_oracle(&dataset, &query.unordered().to_string()) {
            Ok(answer) if !answer.is_empty() => break,
            Ok(_) | Err(OracleError::TooLarge) => {
                query = random_query::query(&mut random, profile);
            }
            Err(error) => panic!("seed {seed} made a wrong query: {error}\n{query}"),
        }
    }
    Case { quads, query }
}

/// The case of a seed for the definitions: a data set and a query of any kind, mostly one that has
/// results.
#[must_use]
pub fn bold_case(seed: u64) -> Case {
    let mut random = Random::new(seed);
    let profile = Profile {
        blanks: false,
        other_spellings: false,
        graphs: random.chance(75),
        ..Profile::random(&mut random)
    };
    let mut quads = random_data::dataset(&mut random, profile);
    quads.truncate(random.between(5, 40));
    let mut query = random_query::bold_query(&mut random, profile);
    for _ in 1..QUERIES_TRIED {
        match Reference::new(&quads, &[], &query).answer(&query.unordered()) {
            Ok(answer) if !answer.is_empty() => break,
            _ => query = random_query::bold_query(&mut random, profile),
        }
    }
    Case { quads, query }
}

/// The case of a seed with all data in the default graph, and whether its query is a bold one.
///
/// # Panics
/// When the generator made a query that the oracle refuses.
#[must_use]
pub fn default_graph_case(seed: u64) -> (Case, bool) {
    let mut random = Random::new(seed);
    let is_bold = random.chance(40);
    let any = Profile::random(&mut random);
    let profile = Profile {
        graphs: false,
        blanks: any.blanks && !is_bold,
        other_spellings: any.other_spellings && !is_bold,
        ..any
    };
    let mut quads = random_data::dataset(&mut random, profile);
    if is_bold {
        quads.truncate(random.between(5, 40));
    }
    let dataset: Dataset = quads.iter().collect();
    let mut query = None;
    for _ in 0..QUERIES_TRIED {
        let tried = match is_bold {
            true => random_query::bold_query(&mut random, profile),
            false => random_query::query(&mut random, profile),
        };
        let unordered = tried.unordered();
        let is_something = match is_bold {
            true => Reference::new(&quads, &[], &tried)
                .answer(&unordered)
                .is_ok_and(|answer| !answer.is_empty()),
            false => match ask_oracle(&dataset, &unordered.to_string()) {
                Ok(answer) => !answer.is_empty(),
                Err(OracleError::TooLarge) => false,
                Err(error) => panic!("seed {seed} made a wrong query: {error}\n{tried}"),
            },
        };
        query = Some(tried);
        if is_something {
            break;
        }
    }
    let query = query.expect("one was tried");
    (Case { quads, query }, is_bold)
}

/// A large data set, how the engine holds it, and queries over it.
pub struct LargeCase {
    /// The data.
    pub quads: Vec<Quad>,
    /// Threads, and how much memory a query has before it goes to disk.
    pub config: Config,
    /// What is asked.
    pub queries: Vec<Query>,
}

/// Queries over one large data set, as loading it takes longer than asking.
const LARGE_QUERIES: usize = 12;

/// The large case of a seed.
#[must_use]
pub fn large_case(seed: u64) -> LargeCase {
    let mut random = Random::new(seed);
    let profile = Profile::random(&mut random);
    large_case_of(random, profile)
}

/// The large case of a seed with all data in the default graph.
#[must_use]
pub fn large_default_graph_case(seed: u64) -> LargeCase {
    let mut random = Random::new(seed);
    let profile = Profile {
        graphs: false,
        ..Profile::random(&mut random)
    };
    large_case_of(random, profile)
}

fn large_case_of(mut random: Random, profile: Profile) -> LargeCase {
    let mut config = settings();
    config.query_timeout = Some(TIME_LIMIT);
    config.threads = random.between(1, 4);
    config.query_memory_bytes = *random.pick(&[1 << 30, 4 << 20, 1 << 20]);
    LargeCase {
        quads: random_data::large_dataset(&mut random, profile),
        config,
        queries: (0..LARGE_QUERIES)
            .map(|_| random_query::query(&mut random, profile))
            .collect(),
    }
}

/// A data set loaded into both engines.
pub struct Loaded {
    /// With the data.
    pub database: Database,
    dataset: Dataset,
    quads: Vec<Quad>,
}

/// How a comparison ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The same answer; whether it held anything.
    Same {
        /// Whether there was a row, a triple, or the answer true.
        something: bool,
    },
    /// Our engine refuses a feature, by this name.
    Unsupported(String),
    /// The answer is too large to compare.
    TooLarge,
    /// The oracle refuses the query, which a generated one never is but a shrunk one may be.
    Invalid(String),
    /// They differ, told in full.
    Different(String),
}

impl Loaded {
    /// Loads the quads into both.
    ///
    /// # Errors
    /// What our engine says, or how it panicked.
    pub fn new(quads: &[Quad]) -> Result<Self, String> {
        Self::with_config(quads, settings())
    }

    /// As [`Loaded::new`], with settings.
    ///
    /// # Errors
    /// What our engine says, or how it panicked.
    pub fn with_config(quads: &[Quad], config: Config) -> Result<Self, String> {
        Self::made(quads, || load_quads_with(quads, config))
    }

    /// How many rows our engine answers a query with; none unless it is a SELECT.
    ///
    /// # Errors
    /// What the query ends with.
    pub fn count_rows(&self, query: &str) -> Result<usize, EngineError> {
        let QueryResults::Solutions(solutions) = self.database.query(query)? else {
            return Ok(0);
        };
        solutions
            .into_iter()
            .try_fold(0, |rows, row| row.map(|_| rows + 1))
    }

    /// Brings the quads into ours by updates, each followed by a merge of half of the predicates
    /// that have changed.
    ///
    /// # Errors
    /// What our engine says, or how it panicked.
    pub fn merged_in_parts(quads: &[Quad]) -> Result<Self, String> {
        Self::made(quads, || merged_in_parts(quads, &[], Config::default()))
    }

    fn made(
        quads: &[Quad],
        make: impl FnOnce() -> Result<Database, EngineError>,
    ) -> Result<Self, String> {
        let database = guarded(make)?;
        let database = database.map_err(|error| error.to_string())?;
        Ok(Self {
            database,
            dataset: quads.iter().collect(),
            quads: quads.to_vec(),
        })
    }

    /// Asks ours, and compares with what follows from the definitions.
    pub fn compare_to_definitions(&self, query: &Query) -> Outcome {
        compare_to_definitions(&self.database, &self.quads, &[], query)
    }

    /// Asks both and compares.
    pub fn compare(&self, query: &Query) -> Outcome {
        compare(&self.database, &self.dataset, query)
    }

    /// As [`Loaded::compare`], for much data: fewer queries are waited for, and larger answers.
    pub fn compare_much(&self, query: &Query) -> Outcome {
        compare_by(&self.database, query, &|query| {
            ask_oracle_within(&self.dataset, query, PATIENCE)
        })
    }
}

/// Asks our engine and the oracle, and compares.
pub fn compare(database: &Database, dataset: &Dataset, query: &Query) -> Outcome {
    compare_by(database, query, &|query| ask_oracle(dataset, query))
}

/// How the oracle is asked.
type Oracle<'a> = &'a dyn Fn(&str) -> Result<Answer, OracleError>;

fn compare_by(database: &Database, query: &Query, oracle: Oracle<'_>) -> Outcome {
    let unordered = query.unordered();
    let note = if *query == unordered {
        ""
    } else {
        " (without ORDER BY, LIMIT and OFFSET)"
    };
    let texts = (query.to_string(), unordered.to_string());
    let texts = [texts.0.as_str(), texts.1.as_str()];
    compare_with(database, texts, oracle, &|whole, actual| {
        Some((differ(query, whole, actual)?, note))
    })
}

/// As [`compare`], for a SELECT in any words, without ORDER BY, LIMIT and OFFSET, whose values
/// come out as they are in the data.
pub fn compare_select(database: &Database, dataset: &Dataset, query: &str) -> Outcome {
    let oracle = |query: &str| ask_oracle(dataset, query);
    compare_with(database, [query; 2], &oracle, &|whole, actual| {
        let (Answer::Solutions(left), Answer::Solutions(right)) = (whole, actual) else {
            return Some(("not a SELECT".to_owned(), ""));
        };
        let same = left.same_variables(right)
            && isomorphic(&left.rows, &right.reordered(&left.variables).rows, false);
        (!same).then(|| ("other rows".to_owned(), ""))
    })
}

/// What is different, and a note for the oracle's answer.
type Difference = Option<(String, &'static str)>;

fn compare_with(
    database: &Database,
    [query, oracle_query]: [&str; 2],
    oracle: Oracle<'_>,
    differ: &dyn Fn(&Answer, &Answer) -> Difference,
) -> Outcome {
    let whole = match oracle(oracle_query) {
        Ok(answer) => answer.map_terms(&|term| ground(term, |label| label)),
        Err(OracleError::TooLarge) => return Outcome::TooLarge,
        Err(error) => return Outcome::Invalid(error.to_string()),
    };
    compare_to(database, query, &whole, differ)
}

/// As [`compare`], with the answer that follows from the definitions in place of the oracle's.
/// Named graphs are those with quads, and `graphs`.
pub fn compare_to_definitions(
    database: &Database,
    quads: &[Quad],
    graphs: &[Term],
    query: &Query,
) -> Outcome {
    let whole = match Reference::new(quads, graphs, query).answer(&query.unordered()) {
        Ok(answer) => answer,
        Err(Undecided::TooLarge) => return Outcome::TooLarge,
        Err(Undecided::Open(what)) => return Outcome::Unsupported(format!("open: {what}")),
        Err(error) => return Outcome::Invalid(error.to_string()),
    };
    compare_to(database, &query.to_string(), &whole, &|whole, actual| {
        Some((differ(query, whole, actual)?, ""))
    })
}

fn compare_to(
    database: &Database,
    query: &str,
    whole: &Answer,
    differ: &dyn Fn(&Answer, &Answer) -> Difference,
) -> Outcome {
    let actual = match guarded(|| ask(database, query, None)) {
        Ok(Ok(answer)) => answer.map_terms(&|term| ground(term, without_source_prefix)),
        Ok(Err(EngineError::Unsupported { feature, .. })) => return Outcome::Unsupported(feature),
        Ok(Err(EngineError::MemoryExceeded { .. })) => {
            return Outcome::Unsupported("more memory than the case allows".to_owned());
        }
        Ok(Err(error)) => return Outcome::Different(format!("the engine says: {error}")),
        Err(panic) => return Outcome::Different(panic),
    };
    match differ(whole, &actual) {
        None => Outcome::Same {
            something: !actual.is_empty(),
        },
        Some((reason, note)) => {
            Outcome::Different(format!("{reason}\noracle{note}:\n{whole}engine:\n{actual}"))
        }
    }
}

/// Blank nodes of the data become names; those made by a query stay blank.
pub(crate) fn ground(term: Term, label_of: impl Fn(&str) -> &str) -> Term {
    if let Term::BlankNode(node) = &term {
        let label = label_of(node.as_str());
        if BLANKS.contains(&label) {
            return ground_blank(label);
        }
    }
    term
}

/// What is different between the whole answer to a query without ORDER BY, LIMIT and OFFSET, and
/// an answer to the query with them.
#[must_use]
pub fn differ(query: &Query, whole: &Answer, actual: &Answer) -> Option<String> {
    match (whole, actual) {
        (Answer::Boolean(left), Answer::Boolean(right)) => {
            (left != right).then(|| "another truth".to_owned())
        }
        (Answer::Graph(left), Answer::Graph(right)) => {
            let rows = |triples: &[oxrdf::Triple]| -> Vec<Vec<Option<Term>>> {
                triples
                    .iter()
                    .map(|triple| {
                        vec![
                            Some(triple.subject.clone().into()),
                            Some(triple.predicate.clone().into()),
                            // A variable of the template may be computed.
                            Some(by_value(triple.object.clone())),
                        ]
                    })
                    .collect()
            };
            (!isomorphic(&rows(left), &rows(right), false)).then(|| "other triples".to_owned())
        }
        (Answer::Solutions(left), Answer::Solutions(right)) => tables_differ(query, left, right),
        _ => Some(format!("{} instead of {}", actual.kind(), whole.kind())),
    }
}

fn tables_differ(query: &Query, whole: &Table, actual: &Table) -> Option<String> {
    let star = matches!(&query.form, Form::Select { items, .. } if items.is_empty());
    if star {
        if !whole.same_variables(actual) {
            return Some("other variables".to_owned());
        }
    } else if whole.variables != actual.variables {
        return Some("other variables, or in another order".to_owned());
    }
    let actual = actual.reordered(&whole.variables);
    let total = whole.rows.len();
    let start = query.offset.unwrap_or(0).min(total);
    let end = query
        .limit
        .map_or(total, |limit| total.min(start.saturating_add(limit)));
    if actual.rows.len() != end - start {
        return Some(format!("not {} rows", end - start));
    }
    let expected_rows = comparable(whole);
    let actual_rows = comparable(&actual);
    if end - start == total {
        if !isomorphic(&expected_rows, &actual_rows, false) {
            return Some("other rows".to_owned());
        }
    } else if !is_part_of(&actual_rows, &expected_rows) {
        return Some("rows that are not in the whole answer".to_owned());
    }
    order_differs(query, whole, &actual, start, end)
        .then(|| "the rows are not in the order asked for".to_owned())
}

/// True if two tables of generated queries hold the same rows in any order, as far as values that
/// depend on the order of evaluation allow.
#[must_use]
pub fn same_rows(left: &Table, right: &Table) -> bool {
    left.same_variables(right)
        && isomorphic(
            &comparable(left),
            &comparable(&right.reordered(&left.variables)),
            false,
        )
}

/// The rows with each column reduced to what has to agree in it.
fn comparable(table: &Table) -> Vec<Vec<Option<Term>>> {
    let columns: Vec<_> = table
        .variables
        .iter()
        .map(|name| Column::of(name))
        .collect();
    table
        .rows
        .iter()
        .map(|row| {
            row.iter()
                .zip(&columns)
                .map(|(term, column)| term.as_ref().map(|term| reduced(term, *column)))
                .collect()
        })
        .collect()
}

fn reduced(term: &Term, column: Column) -> Term {
    match (column, term) {
        (Column::Exact, _) => term.clone(),
        (Column::Value, _) => by_value(term.clone()),
        (Column::ValueOfAnyType, Term::Literal(_)) => {
            Literal::new_simple_literal(value_key_of_any_type(term)).into()
        }
        (Column::Parts, Term::Literal(literal)) => {
            let mut parts: Vec<_> = literal.value().split(SEPARATOR).collect();
            parts.sort_unstable();
            Literal::new_simple_literal(parts.join(SEPARATOR)).into()
        }
        (Column::Presence, _) => Literal::new_simple_literal("something").into(),
        (Column::ValueOfAnyType | Column::Parts, _) => term.clone(),
    }
}

/// What ORDER BY sees of a term: unbound, then blank nodes, IRIs and literals.
#[derive(Debug, Clone, PartialEq)]
enum Key {
    Unbound,
    /// Blank nodes are in no order among each other.
    Blank,
    Iri(String),
    /// To ten significant digits.
    Number(f64),
    Text(String),
    Date(DateTime),
    Boolean(bool),
    /// A literal that need not be comparable with the others of its variable.
    AnyLiteral,
}

impl Key {
    /// Whether terms with this key may differ and yet be in no order among each other: what later
    /// keys say of them then tells nothing.
    fn is_open(&self) -> bool {
        matches!(self, Self::Blank | Self::AnyLiteral)
    }

    fn class(&self) -> u8 {
        match self {
            Self::Unbound => 0,
            Self::Blank => 1,
            Self::Iri(_) => 2,
            _ => 3,
        }
    }

    fn compare(&self, other: &Self) -> Ordering {
        let within = match (self, other) {
            (Self::Iri(left), Self::Iri(right)) | (Self::Text(left), Self::Text(right)) => {
                Some(left.cmp(right))
            }
            (Self::Number(left), Self::Number(right)) => left.partial_cmp(right),
            (Self::Date(left), Self::Date(right)) => left.partial_cmp(right),
            (Self::Boolean(left), Self::Boolean(right)) => Some(left.cmp(right)),
            _ => None,
        };
        self.class()
            .cmp(&other.class())
            .then(within.unwrap_or(Ordering::Equal))
    }
}

/// The keys of each row that can be compared, of those ORDER BY names.
struct SortKeys {
    descending: Vec<bool>,
    rows: Vec<Vec<Key>>,
}

impl SortKeys {
    fn of(query: &Query, table: &Table) -> Self {
        let mut descending = Vec::new();
        let mut rows = vec![Vec::new(); table.rows.len()];
        for (expression, reverse) in &query.order_by {
            let Expression::Variable(name) = expression else {
                break;
            };
            let Some(position) = table.position(name) else {
                break;
            };
            descending.push(*reverse);
            let domain = domain_of(name);
            for (keys, row) in rows.iter_mut().zip(&table.rows) {
                keys.push(sort_key(row[position].as_ref(), domain));
            }
            if rows
                .iter()
                .any(|keys| keys.last().is_some_and(Key::is_open))
            {
                break;
            }
        }
        Self { descending, rows }
    }

    fn compare(&self, left: &[Key], right: &[Key]) -> Ordering {
        left.iter()
            .zip(right)
            .zip(&self.descending)
            .map(|((left, right), descending)| {
                let ordering = left.compare(right);
                if *descending {
                    ordering.reverse()
                } else {
                    ordering
                }
            })
            .find(|ordering| ordering.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

/// Whether the rows from `start` to `end` of the whole answer, sorted, have other keys than the
/// actual rows in their order. The order is found here: the oracle's panics on mixed literals.
fn order_differs(query: &Query, whole: &Table, actual: &Table, start: usize, end: usize) -> bool {
    let mut expected = SortKeys::of(query, whole);
    let mut rows = std::mem::take(&mut expected.rows);
    rows.sort_by(|left, right| expected.compare(left, right));
    let actual = SortKeys::of(query, actual);
    rows[start..end]
        .iter()
        .zip(&actual.rows)
        .any(|(left, right)| expected.compare(left, right).is_ne())
}

fn sort_key(term: Option<&Term>, domain: Domain) -> Key {
    let literal = match term {
        None => return Key::Unbound,
        Some(Term::BlankNode(_)) => return Key::Blank,
        Some(Term::NamedNode(node)) if is_ground_blank(node.as_str()) => return Key::Blank,
        Some(Term::NamedNode(node)) => return Key::Iri(node.as_str().to_owned()),
        Some(Term::Literal(literal)) => literal,
    };
    let value = literal.value();
    let key = match domain {
        Domain::Number => numeric_value(literal)
            .and_then(|value| format!("{value:.9e}").parse().ok())
            .map(Key::Number),
        Domain::String => Some(Key::Text(value.to_owned())),
        Domain::Date => value.parse().ok().map(Key::Date),
        Domain::Boolean => value
            .parse::<Boolean>()
            .ok()
            .map(|value| Key::Boolean(value.into())),
        Domain::Node | Domain::Language | Domain::Any => None,
    };
    key.unwrap_or(Key::AnyLiteral)
}

fn is_ground_blank(iri: &str) -> bool {
    BLANKS
        .iter()
        .any(|label| matches!(ground_blank(label), Term::NamedNode(node) if node.as_str() == iri))
}
