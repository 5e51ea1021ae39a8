//! Which vertices of LUBM do new triples lead to?

use jindou_engine::results::TermText;
use jindou_engine::{Database, QueryOptions, QueryResults, Solutions, TermId};

use crate::{BenchError, run};

/// IRIs of one class, spread evenly over all that the store has.
#[derive(Debug)]
pub(super) struct Vertices(Vec<String>);

impl Vertices {
    /// Up to `most` of the vertices of a class of LUBM.
    ///
    /// # Errors
    /// [`BenchError::Engine`]; [`BenchError::RowsDiffer`] if there is none.
    pub(super) fn of(database: &Database, class: &str, most: usize) -> Result<Self, BenchError> {
        let text = format!(
            "PREFIX ub: <{}> SELECT ?x WHERE {{ ?x a ub:{class} }}",
            jindou_datagen::lubm::UB
        );
        let rows = run::as_ids(database, &text, 1)?.rows;
        if rows == 0 {
            return Err(BenchError::RowsDiffer {
                query: format!("the class {class}"),
                way: "in the loaded data",
                expected: 1,
                found: 0,
            });
        }
        let every = usize::try_from(rows).unwrap_or(usize::MAX).div_ceil(most);
        Ok(Self(texts(asked(database, &text)?, every)?))
    }

    /// All of them but one.
    pub(super) fn without(mut self, iri: &str) -> Self {
        self.0.retain(|one| one != iri);
        self
    }

    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// One of them, by any number.
    pub(super) fn get(&self, number: u64) -> &str {
        let place = number % self.len();
        &self.0[usize::try_from(place).expect("it is below a length")]
    }
}

fn asked(database: &Database, text: &str) -> Result<Solutions, BenchError> {
    match database.query_with(text, QueryOptions::default())? {
        QueryResults::Solutions(solutions) => Ok(solutions),
        _ => Err(BenchError::NotSolutions { query: text.into() }),
    }
}

/// The IRIs of every so-many-th row.
fn texts(mut solutions: Solutions, every: usize) -> Result<Vec<String>, BenchError> {
    let mut ids: Vec<TermId> = Vec::new();
    let mut row = 0_usize;
    while let Some(batch) = solutions.next_batch()? {
        for &id in batch.column(0) {
            if row.is_multiple_of(every) {
                ids.push(id);
            }
            row += 1;
        }
    }
    let mut decoder = solutions.decoder();
    let iris = ids.into_iter().filter_map(|id| match decoder.text(id) {
        Some(TermText::Iri(iri)) => Some(iri.to_owned()),
        _ => None,
    });
    Ok(iris.collect())
}
