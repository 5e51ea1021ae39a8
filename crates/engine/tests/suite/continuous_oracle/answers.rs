//! What was answered, as text that can be compared.

use jindou_engine::results::{TermText, write_term};
use jindou_engine::{Answer, Database, QueryResults, TermId};

/// An answer: rows of terms as N-Triples writes them, nothing where a variable is unbound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Boolean(bool),
    Rows(Vec<Vec<String>>),
}

impl Found {
    /// The same with blank nodes that are all alike, as their labels are of no meaning. Unless the order
    /// of rows matters, they are sorted: as a multiset.
    pub(crate) fn comparable(mut self, is_ordered: bool) -> Self {
        if let Self::Rows(rows) = &mut self {
            let cells = rows.iter_mut().flatten();
            let blanks = cells.filter(|cell| cell.starts_with("_:"));
            blanks.for_each(|cell| cell.truncate(2));
            if !is_ordered {
                rows.sort_unstable();
            }
        }
        self
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Boolean(value) => usize::from(*value),
            Self::Rows(rows) => rows.len(),
        }
    }

    /// The rows that another one does not have, as multisets.
    pub(crate) fn without(&self, other: Option<&Self>) -> Self {
        let (Self::Rows(rows), other) = (self, other) else {
            return self.clone();
        };
        let mut rows = rows.clone();
        if let Some(Self::Rows(others)) = other {
            for row in others {
                if let Some(at) = rows.iter().position(|one| one == row) {
                    rows.remove(at);
                }
            }
        }
        Self::Rows(rows)
    }
}

fn text(term: Option<TermText<'_>>) -> String {
    let mut bytes = Vec::new();
    if let Some(term) = term {
        write_term(&mut bytes, term, false);
    }
    String::from_utf8(bytes).expect("terms are text")
}

/// What a continuous query answered.
pub(crate) fn of_answer(answer: &Answer) -> Found {
    match answer.rows() {
        None => Found::Boolean(*answer == Answer::Boolean(true)),
        Some(rows) => Found::Rows(
            rows.iter()
                .map(|row| row.into_iter().map(text).collect())
                .collect(),
        ),
    }
}

/// What a database answers.
pub(crate) fn asked(database: &Database, query: &str) -> Result<Found, String> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let results = database.query(query).map_err(|error| error.to_string())?;
    match results {
        QueryResults::Boolean(value) => return Ok(Found::Boolean(value)),
        QueryResults::Solutions(mut solutions) => {
            while let Some(batch) = solutions.next_batch().map_err(|error| error.to_string())? {
                let columns: Vec<&[TermId]> = batch.columns().collect();
                let mut decoder = solutions.decoder();
                let cells = |row: usize| columns.iter().map(move |column| column[row]);
                rows.extend((0..batch.rows()).map(|row| {
                    let cells = cells(row).map(|id| text(decoder.text(id)));
                    cells.collect::<Vec<_>>()
                }));
            }
        }
        QueryResults::Graph(mut graph) => {
            while let Some(batch) = graph.next_batch().map_err(|error| error.to_string())? {
                let mut decoder = graph.decoder();
                rows.extend(batch.iter().map(|triple| {
                    let cells = triple.iter().map(|id| text(decoder.text(*id)));
                    cells.collect::<Vec<_>>()
                }));
            }
        }
    }
    Ok(Found::Rows(rows))
}
