//! Which answers are known to be right?
//!
//! `recorded.tsv` holds the number of rows and a hash of every query on the usual data, as two
//! engines agreed on them; [`OperatorReport::record`](super::OperatorReport::record) writes it.
//! So one engine alone is checked, too.

use std::collections::HashMap;

use super::catalogue::{DataSet, Query};
use super::report::OperatorFigures;

/// Universities of the LUBM data whose answers are recorded.
pub const UNIVERSITIES: u32 = 10;

const TEXT: &str = include_str!("recorded.tsv");

/// Known answers.
#[derive(Debug, Default)]
pub struct Recorded {
    triples: HashMap<&'static str, u64>,
    answers: HashMap<&'static str, (u64, u64)>,
}

impl Recorded {
    /// Those that this program holds.
    ///
    /// # Panics
    /// If the file that was built in is not as it is written.
    #[must_use]
    pub fn kept() -> Self {
        let mut kept = Self::default();
        for line in TEXT.lines() {
            let cells: Vec<&str> = line.split('\t').collect();
            let number = |text: &str| text.parse().expect("recorded numbers are numbers");
            match cells[..] {
                ["data", name, triples] => {
                    kept.triples.insert(name, number(triples));
                }
                [name, rows, hash] => {
                    let hash = u64::from_str_radix(hash, 16).expect("recorded hashes are hex");
                    kept.answers.insert(name, (number(rows), hash));
                }
                _ => panic!("recorded lines have three cells: {line}"),
            }
        }
        kept
    }

    /// Whether answers on a data set with so many triples are known.
    #[must_use]
    pub fn is_about(&self, data: DataSet, triples: u64) -> bool {
        self.triples.get(data.name()) == Some(&triples)
    }

    /// How an answer differs from what is known, if it does.
    pub(super) fn fault(&self, query: &Query, figures: &OperatorFigures) -> Option<String> {
        let &(rows, hash) = self.answers.get(&*query.name)?;
        let found = (figures.rows?, figures.hash?);
        if found == (rows, hash) {
            return None;
        }
        Some(match found.0 == rows {
            true => "other rows, or another order, than recorded".to_owned(),
            false => format!("{} rows, but {rows} are recorded", found.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::held;

    #[test]
    fn every_query_held_has_a_recorded_answer() {
        let kept = Recorded::kept();
        for data in DataSet::ALL {
            assert!(kept.triples.contains_key(data.name()), "{}", data.name());
        }
        for query in held() {
            assert!(kept.answers.contains_key(&*query.name), "{}", query.name);
        }
    }
}
