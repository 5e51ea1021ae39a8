//! What did a check find?

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use crate::{Anomaly, AnomalyName, Level, Operation};

/// Anomalies of one name that a report describes; it counts all.
pub const MOST_EXAMPLES: usize = 16;

/// How much was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Operations of the history.
    pub operations: usize,
    /// Those that are acknowledged, or whose values were read.
    pub committed: usize,
    /// Edges from what was read and written.
    pub data_edges: usize,
    /// Edges of real time, after the reduction.
    pub real_time_edges: usize,
    /// Writes that could be lost without notice, as no final read has their keys.
    pub unchecked_for_loss: usize,
}

/// What a check found. It displays as one line for each anomaly.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was promised.
    pub level: Level,
    /// How much was checked.
    pub sizes: Sizes,
    examples: Vec<Anomaly>,
    counts: BTreeMap<AnomalyName, usize>,
}

impl Report {
    pub(crate) fn new(level: Level) -> Self {
        Self {
            level,
            sizes: Sizes::default(),
            examples: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    pub(crate) fn add(&mut self, anomaly: Anomaly) {
        let count = self.counts.entry(anomaly.name()).or_default();
        *count += 1;
        if *count <= MOST_EXAMPLES {
            self.examples.push(anomaly);
        }
    }

    /// True if nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.counts.is_empty()
    }

    /// True if an anomaly has this name.
    #[must_use]
    pub fn has(&self, name: AnomalyName) -> bool {
        self.counts.contains_key(&name)
    }

    /// How many anomalies of each name there are.
    #[must_use]
    pub fn counts(&self) -> &BTreeMap<AnomalyName, usize> {
        &self.counts
    }

    /// The first [`MOST_EXAMPLES`] of each name.
    #[must_use]
    pub fn anomalies(&self) -> &[Anomaly] {
        &self.examples
    }

    /// The report, with the operations of each anomaly below it.
    ///
    /// # Panics
    /// If the history is not the one that was checked.
    #[must_use]
    pub fn explain(&self, history: &[Operation]) -> String {
        assert_eq!(history.len(), self.sizes.operations, "another history");
        let mut text = self.summary();
        for anomaly in &self.examples {
            writeln!(text, "{anomaly}").expect("a string takes all");
            let mut operations = anomaly.operations();
            operations.sort_unstable();
            operations.dedup();
            for id in operations {
                let operation = &history[id.0 as usize];
                writeln!(text, "    {id}: {operation}").expect("a string takes all");
            }
        }
        text
    }

    fn summary(&self) -> String {
        let mut text = format!(
            "{:?}: {} operations, {} committed",
            self.level, self.sizes.operations, self.sizes.committed
        );
        for (name, count) in &self.counts {
            write!(text, "; {count} x {name}").expect("a string takes all");
        }
        if self.counts.is_empty() {
            text.push_str("; nothing is wrong");
        }
        text.push('\n');
        text
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.summary())?;
        for anomaly in &self.examples {
            writeln!(f, "{anomaly}")?;
        }
        Ok(())
    }
}
