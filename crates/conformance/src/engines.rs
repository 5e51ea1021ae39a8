//! How is each engine, ours and the oracle, given data and asked a query?

use crate::answer::{Answer, Table};
use crate::elsewhere::Elsewhere;
use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{
    Config, Database, EngineError, ForkPolicy, LoadOptions, MessageLimits, QueryClass,
    QueryOptions, ServiceCall, ServiceCaller, ServiceError, ServiceNext, ServiceRows, Shards,
};
use oxigraph::sparql::{CancellationToken, SparqlEvaluator};
use oxrdf::{Dataset, NamedNode, Quad};
use oxrdfio::{RdfFormat, RdfSerializer};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

/// The settings of databases under test: the defaults, with as many virtual shards as `JINDOU_SHARDS`
/// says, on as many nodes as `JINDOU_NODES` says, which is with eight shards unless said otherwise, to which
/// rows go always where `JINDOU_FORKS` is set, and as messages where `JINDOU_FORK_MESSAGES` is; whose terms each have
/// a part of where `JINDOU_TERMS` is `dealt`; and where
/// `JINDOU_ELSEWHERE` is set with tables that go to another machine and back.
///
/// # Panics
/// If these are no numbers of shards and nodes.
#[must_use]
pub fn settings() -> Config {
    let mut config = Config::default();
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        let number: u32 = text
            .parse()
            .unwrap_or_else(|error| panic!("{name}={text}: {error}"));
        Some(number)
    };
    if let Some(nodes) = number("JINDOU_NODES") {
        config.nodes = nodes;
        config.shards = Shards::new(8).expect("a power of two");
    }
    if let Some(count) = number("JINDOU_SHARDS") {
        config.shards = Shards::new(count).unwrap_or_else(|error| panic!("{error}"));
    }
    if std::env::var_os("JINDOU_FORKS").is_some() {
        config.fork_policy = ForkPolicy::ForkJoin;
        config.fork_lend_rows = 1;
    }
    if std::env::var_os("JINDOU_FORK_MESSAGES").is_some() {
        config.fork_messages = Some(MessageLimits::default());
    }
    if let Some(terms) = std::env::var_os("JINDOU_TERMS") {
        assert_eq!(terms, "dealt", "JINDOU_TERMS");
        config.deal_terms = true;
    }
    if std::env::var_os("JINDOU_ELSEWHERE").is_some() {
        config.transport = Some(Elsewhere::new().transport());
    }
    config
}

/// Loads files, their formats and compression told by their names, into an empty database in
/// memory.
///
/// # Errors
/// Whatever the engine says of them.
pub fn load_files(paths: &[&Path]) -> Result<Database, EngineError> {
    load(paths.iter().map(|path| Source::path(*path)).collect())
}

/// Loads sources into an empty database in memory, or where `JINDOU_MEMBERS` is set into a store that as many
/// members of a cluster read, or have parts of.
///
/// # Errors
/// Whatever the engine says of them.
pub fn load(sources: Vec<Source>) -> Result<Database, EngineError> {
    load_as_set(sources, settings())
}

/// As [`load`], with settings.
fn load_as_set(sources: Vec<Source>, config: Config) -> Result<Database, EngineError> {
    #[cfg(target_os = "linux")]
    if let Some(members) = crate::members::Members::of_environment() {
        return members.load(sources, config);
    }
    load_with(sources, config)
}

/// Loads sources into an empty database in memory, with settings.
///
/// # Errors
/// Whatever the engine says of them.
pub fn load_with(sources: Vec<Source>, config: Config) -> Result<Database, EngineError> {
    let database = Database::with_config(config);
    database.load(sources, &LoadOptions::default(), &Progress::default())?;
    Ok(database)
}

/// Loads quads into an empty database in memory, as one N-Quads document. Blank nodes come out
/// with the engine's prefix before their label, see [`without_source_prefix`].
///
/// # Errors
/// Whatever the engine says of them.
pub fn load_quads<'a>(quads: impl IntoIterator<Item = &'a Quad>) -> Result<Database, EngineError> {
    load(vec![as_source(quads)])
}

/// As [`load_quads`], with settings.
///
/// # Errors
/// Whatever the engine says of them.
pub fn load_quads_with<'a>(
    quads: impl IntoIterator<Item = &'a Quad>,
    config: Config,
) -> Result<Database, EngineError> {
    load_with(vec![as_source(quads)], config)
}

/// Loads the data of a test that calls endpoints, as [`load`] does.
///
/// # Errors
/// Whatever the engine says of them.
pub fn load_quads_calling<'a>(
    quads: impl IntoIterator<Item = &'a Quad>,
    endpoints: &Arc<Endpoints>,
) -> Result<Database, EngineError> {
    load_as_set(vec![as_source(quads)], endpoints.config())
}

/// Quads as a document.
fn as_source<'a>(quads: impl IntoIterator<Item = &'a Quad>) -> Source {
    let mut writer = RdfSerializer::from_format(RdfFormat::NQuads).for_writer(Vec::new());
    for quad in quads {
        writer
            .serialize_quad(quad)
            .expect("writing to memory never fails");
    }
    let bytes = writer.finish().expect("writing to memory never fails");
    Source::bytes("data.nq", bytes)
}

/// Endpoints in this process: for each IRI the database that answers. Others cannot be reached.
#[derive(Debug, Default)]
pub struct Endpoints {
    databases: OnceLock<BTreeMap<String, Database>>,
}

impl Endpoints {
    /// Endpoints that are given their data by [`Endpoints::serve`].
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The settings of a database that calls these endpoints.
    #[must_use]
    pub fn config(self: &Arc<Self>) -> Config {
        let mut config = settings();
        config.service_caller = Some(self.clone());
        config
    }

    /// Gives the endpoints their databases.
    ///
    /// # Panics
    /// If they have some already.
    pub fn serve(&self, databases: BTreeMap<String, Database>) {
        let given = self.databases.set(databases);
        given.expect("endpoints are given their databases once");
    }
}

impl ServiceCaller for Endpoints {
    fn call(&self, call: &ServiceCall<'_>) -> Result<Box<dyn ServiceRows>, ServiceError> {
        let database = self.databases.get().and_then(|all| all.get(call.endpoint));
        let Some(database) = database else {
            return Err(ServiceError::Unreachable {
                reason: "there is no such endpoint".to_owned(),
            });
        };
        let malformed = |reason: String| ServiceError::Malformed { reason };
        let answer = ask(database, call.query, None)
            .map_err(|error| malformed(format!("{error} in {}", call.query)))?;
        let Answer::Solutions(table) = answer else {
            return Err(malformed("not a table".to_owned()));
        };
        let place = |name: &String| table.variables.iter().position(|known| known == name);
        let places: Vec<_> = call.variables.iter().map(place).collect();
        let pick = |row: Vec<Option<oxrdf::Term>>| {
            let cell = |place: &Option<usize>| place.and_then(|place| row[place].clone());
            places.iter().map(cell).collect()
        };
        Ok(Box::new(Answered(
            table.rows.into_iter().map(pick).collect(),
        )))
    }
}

/// Rows that are all there.
struct Answered(VecDeque<Vec<Option<oxrdf::Term>>>);

impl ServiceRows for Answered {
    fn next(&mut self, _: Duration) -> Result<ServiceNext, ServiceError> {
        Ok(match self.0.pop_front() {
            Some(row) => ServiceNext::Rows(vec![row]),
            None => ServiceNext::End,
        })
    }

    fn received_bytes(&self) -> u64 {
        0
    }
}

/// The label a blank node had in its source: our engine keeps the nodes of several sources apart
/// by prefixing `f<number of the source>_`.
pub fn without_source_prefix(label: &str) -> &str {
    label
        .strip_prefix('f')
        .and_then(|rest| rest.split_once('_'))
        .filter(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
        .map_or(label, |(_, rest)| rest)
}

/// Runs `body` of our engine, so that one test's panic does not hide the others.
///
/// # Errors
/// The message of a panic.
pub fn guarded<T>(body: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a message");
        format!("the engine panicked: {message}")
    })
}

/// The whole answer of our engine.
///
/// # Errors
/// Whatever the engine says, while planning or while running.
pub fn ask(
    database: &Database,
    query: &str,
    base: Option<&NamedNode>,
) -> Result<Answer, EngineError> {
    // Rows of heavy queries go on at other threads of their node.
    let class = match query.len() % 2 {
        0 => QueryClass::Light,
        _ => QueryClass::Heavy,
    };
    let options = QueryOptions {
        base: base.cloned(),
        class,
        ..QueryOptions::default()
    };
    ask_with(database, query, options)
}

/// As [`ask`], with all that can be set for a query.
///
/// # Errors
/// Whatever the engine says, while planning or while running.
pub fn ask_with(
    database: &Database,
    query: &str,
    options: QueryOptions,
) -> Result<Answer, EngineError> {
    let answer = ask_at_most(database, query, options, usize::MAX)?;
    Ok(answer.expect("no answer has more rows"))
}

/// As [`ask_with`]; none if there are more rows or triples than this.
///
/// # Errors
/// Whatever the engine says, while planning or while running.
pub fn ask_at_most(
    database: &Database,
    query: &str,
    options: QueryOptions,
    rows_limit: usize,
) -> Result<Option<Answer>, EngineError> {
    match database.query_with(query, options)? {
        jindou_engine::QueryResults::Boolean(value) => Ok(Some(Answer::Boolean(value))),
        jindou_engine::QueryResults::Graph(triples) => {
            let limit = rows_limit.saturating_add(1);
            let triples = triples.take(limit).collect::<Result<Vec<_>, _>>()?;
            Ok((triples.len() <= rows_limit).then(|| Answer::graph(triples)))
        }
        jindou_engine::QueryResults::Solutions(solutions) => {
            let variables = solutions.variables().to_vec();
            let mut rows = Vec::new();
            for solution in solutions {
                if rows.len() == rows_limit {
                    return Ok(None);
                }
                let solution = solution?;
                rows.push(
                    (0..variables.len())
                        .map(|index| solution.get_index(index).cloned())
                        .collect(),
                );
            }
            Ok(Some(Answer::Solutions(Table { variables, rows })))
        }
    }
}

/// Rows or triples that an answer of the oracle may have.
const ORACLE_ROWS_LIMIT: usize = 5000;

/// The whole answer of oxigraph's evaluator over a plain data set.
///
/// Not over its store: that one rewrites numbers, booleans and dates to their canonical form,
/// whereas a plain data set keeps every term as written.
///
/// # Errors
/// The evaluator's message.
pub fn ask_oracle(dataset: &Dataset, query: &str) -> Result<Answer, OracleError> {
    ask_evaluator(SparqlEvaluator::new(), dataset, query, ORACLE_ROWS_LIMIT)
}

/// What the oracle may take for an answer.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Time until it gives up.
    pub time: Duration,
    /// Rows or triples at most.
    pub rows: usize,
}

/// As [`ask_oracle`], which gives up after some time or rows.
///
/// # Errors
/// The evaluator's message; that the answer is too large, if it takes longer.
pub fn ask_oracle_within(
    dataset: &Dataset,
    query: &str,
    patience: Patience,
) -> Result<Answer, OracleError> {
    let token = CancellationToken::new();
    let evaluator = SparqlEvaluator::new().with_cancellation_token(token.clone());
    let (answered, is_answered) = mpsc::channel();
    let answer = thread::scope(|scope| {
        let token = &token;
        scope.spawn(move || {
            // Either an answer was found, or the time is up.
            if is_answered.recv_timeout(patience.time).is_err() {
                token.cancel();
            }
        });
        let answer = ask_evaluator(evaluator, dataset, query, patience.rows);
        answered.send(()).ok();
        answer
    });
    // What was found by then may be anything: EXISTS takes an interruption for a solution.
    if token.is_cancelled() {
        return Err(OracleError::TooLarge);
    }
    answer
}

fn ask_evaluator(
    evaluator: SparqlEvaluator,
    dataset: &Dataset,
    query: &str,
    limit: usize,
) -> Result<Answer, OracleError> {
    let results = evaluator
        .parse_query(query)
        .map_err(|error| OracleError::Syntax(error.to_string()))?
        .on_queryable_dataset(dataset)
        .execute()
        .map_err(|error| OracleError::Evaluation(error.to_string()))?;
    let failed =
        |error: oxigraph::sparql::QueryEvaluationError| OracleError::Evaluation(error.to_string());
    match results {
        oxigraph::sparql::QueryResults::Boolean(value) => Ok(Answer::Boolean(value)),
        oxigraph::sparql::QueryResults::Graph(triples) => {
            let triples: Vec<_> = triples
                .take(limit + 1)
                .collect::<Result<_, _>>()
                .map_err(failed)?;
            if triples.len() > limit {
                return Err(OracleError::TooLarge);
            }
            Ok(Answer::graph(triples))
        }
        oxigraph::sparql::QueryResults::Solutions(solutions) => {
            let variables: Vec<_> = solutions
                .variables()
                .iter()
                .map(|variable| variable.as_str().to_owned())
                .collect();
            let mut rows = Vec::new();
            for solution in solutions {
                if rows.len() == limit {
                    return Err(OracleError::TooLarge);
                }
                rows.push(solution.map_err(failed)?.values().to_vec());
            }
            Ok(Answer::Solutions(Table { variables, rows }))
        }
    }
}

/// Why the oracle did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OracleError {
    /// The query is not SPARQL.
    #[error("the oracle cannot parse the query: {0}")]
    Syntax(String),
    /// The query cannot be evaluated.
    #[error("the oracle cannot evaluate the query: {0}")]
    Evaluation(String),
    /// The answer is larger than a test needs.
    #[error("the answer has too many rows, or takes too long")]
    TooLarge,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_prefix_of_a_source_is_taken_off_a_label() {
        assert_eq!(without_source_prefix("f0_b1"), "b1");
        assert_eq!(without_source_prefix("f12_x_y"), "x_y");
        assert_eq!(without_source_prefix("foo_b"), "foo_b");
        assert_eq!(without_source_prefix("f_b"), "f_b");
        assert_eq!(without_source_prefix("b1"), "b1");
    }
}
