//! What does the measurement of counts say, and how is it printed?

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::machine::Machine;
use crate::table::{Table, thousands};

/// All figures. `Display` is an aligned table, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CountReport {
    /// Where it was measured.
    pub machine: Machine,
    /// Version of this program.
    pub version: String,
    /// Whether the program was built with optimization; figures without it say little.
    pub optimized: bool,
    /// Universities of the LUBM data, whose seed is 0.
    pub universities: u32,
    /// Quads of all data.
    pub quads: u64,
    /// Quads that were inserted then.
    pub changes: u32,
    /// How often each query was asked again.
    pub runs: u32,
    /// Time after which a query was given up.
    pub limit_ms: f64,
    /// Data that is not there.
    pub absent: Vec<PathBuf>,
    /// The queries.
    pub queries: Vec<Counted>,
}

/// One query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Its name.
    pub name: String,
    /// Rows of its answer; none if it was cut or failed.
    pub rows: Option<u64>,
    /// Asked first.
    pub first: Figure,
    /// Asked again.
    pub again: Figure,
    /// With changes that are not merged.
    pub changed: Figure,
    /// Asked first after these were merged.
    pub merged: Figure,
    /// What is wrong with it.
    pub fault: Option<String>,
}

impl Counted {
    fn figures(&self) -> [&Figure; 4] {
        [&self.first, &self.again, &self.changed, &self.merged]
    }

    fn faults(&self) -> impl Iterator<Item = String> {
        let failed = self
            .figures()
            .into_iter()
            .filter_map(|figure| match figure {
                Figure::Failed { reason } => Some(reason.clone()),
                _ => None,
            });
        failed.chain(self.fault.clone())
    }
}

impl CountReport {
    /// Whether no query failed, and each gave the same with changes and after their merge.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.queries
            .iter()
            .all(|query| query.faults().next().is_none())
    }
}

impl Display for CountReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "counts and closures, {} quads (LUBM of {} universities, WatDiv, SSB, made graphs); jindou {} on {}",
            thousands(self.quads),
            self.universities,
            self.version,
            self.machine
        )?;
        for path in &self.absent {
            writeln!(f, "SKIPPED: {} is not there", path.display())?;
        }
        if !self.optimized {
            writeln!(
                f,
                "This program was built without optimization: build with --release."
            )?;
        }
        writeln!(
            f,
            "\nmilliseconds, from a query's text to its last row as text: asked first; again, the median of {}; with {} \
             changes\nthat are not merged; first after these were merged",
            self.runs,
            thousands(u64::from(self.changes))
        )?;
        let mut table = Table::new(["", "rows", "first", "again", "with changes", "merged", ""]);
        for query in &self.queries {
            let mut row = vec![
                query.name.clone(),
                query.rows.map_or_else(String::new, thousands),
            ];
            row.extend(query.figures().map(Figure::to_string));
            let is_wrong = query.faults().next().is_some();
            row.push(if is_wrong { "WRONG" } else { "" }.to_owned());
            table.row(row);
        }
        write!(f, "\n{table}")?;
        for query in &self.queries {
            for fault in query.faults() {
                writeln!(f, "WRONG: {}: {fault}", query.name)?;
            }
        }
        Ok(())
    }
}
