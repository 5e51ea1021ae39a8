//! What does the measurement of growth say, and how is it printed?

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::model::{Counted, Model, Prediction};
use crate::machine::Machine;
use crate::nodes::NodesFigures;
use crate::table::{Table, millis, thousands};

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, Serialize)]
pub struct ScaleReport {
    /// Where it was measured.
    pub machine: Machine,
    /// One thread of one node, by data.
    pub by_data: Vec<DataPoint>,
    /// One node, over the largest data.
    pub by_threads: Vec<ThreadPoint>,
    /// Universities of the data on nodes.
    pub nodes_universities: u32,
    /// Several nodes of this machine.
    pub by_nodes: Vec<(u32, Vec<NodesFigures>)>,
    /// What counts were made times by.
    pub model: Model,
    /// Many machines.
    pub predictions: Vec<Prediction>,
}

/// A query over some data.
#[derive(Debug, Clone, Serialize)]
pub struct DataPoint {
    /// Universities.
    pub universities: u32,
    /// Triples of these.
    pub triples: u64,
    /// The query.
    pub query: String,
    /// Rows of its answer.
    pub rows: u64,
    /// Its median.
    pub median_ms: f64,
}

/// A query on some threads.
#[derive(Debug, Clone, Serialize)]
pub struct ThreadPoint {
    /// The query.
    pub query: String,
    /// Threads that it may use.
    pub threads: usize,
    /// Its median.
    pub median_ms: f64,
}

/// A table with a row for each query and a column for each of `columns`.
fn by_query<'a>(
    columns: impl IntoIterator<Item = String>,
    cells: impl Iterator<Item = (&'a str, String)>,
) -> Table {
    let headings = std::iter::once("query".to_owned()).chain(columns);
    let mut table = Table::new(headings);
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (query, cell) in cells {
        match rows.iter_mut().find(|row| row[0] == query) {
            Some(row) => row.push(cell),
            None => rows.push(vec![query.to_owned(), cell]),
        }
    }
    rows.into_iter().for_each(|row| table.row(row));
    table
}

/// Those values that come first, each once.
fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

impl Display for ScaleReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}\n\nBy data, one thread of one node, medians in ms\n",
            self.machine
        )?;
        let sizes = distinct(
            self.by_data
                .iter()
                .map(|point| (point.universities, point.triples)),
        );
        let columns = sizes.iter().map(|(universities, triples)| {
            format!("LUBM({universities}), {}", thousands(*triples))
        });
        let cells = self.by_data.iter();
        let cells = cells.map(|point| (&*point.query, millis(point.median_ms)));
        writeln!(f, "{}", by_query(columns, cells))?;
        writeln!(f, "By threads, the largest data, medians in ms\n")?;
        let threads = distinct(self.by_threads.iter().map(|point| point.threads));
        let cells = self.by_threads.iter();
        let cells = cells.map(|point| (&*point.query, millis(point.median_ms)));
        writeln!(
            f,
            "{}",
            by_query(threads.iter().map(usize::to_string), cells)
        )?;
        self.write_nodes(f)?;
        self.write_predictions(f)
    }
}

impl ScaleReport {
    fn write_nodes(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "By logical nodes, which share the cores of this machine, LUBM({}), medians in ms; behind them the model of \
             the last in place\n",
            self.nodes_universities
        )?;
        let columns = self
            .by_nodes
            .iter()
            .map(|(nodes, _)| format!("{nodes} nodes"));
        let columns = std::iter::once("1 node".to_owned()).chain(columns);
        let columns: Vec<String> = columns
            .chain(["in place".to_owned(), "model".to_owned()])
            .collect();
        let mut cells = Vec::new();
        let last = self.by_nodes.last();
        for (number, figures) in last.iter().flat_map(|(_, all)| all.iter().enumerate()) {
            let name = &*figures.name;
            cells.push((name, millis(figures.one_ms)));
            for (_, all) in &self.by_nodes {
                cells.push((name, millis(all[number].dynamic_ms)));
            }
            cells.push((name, millis(figures.in_place_ms)));
            let counted = Counted::of(figures, last.map_or(1, |(nodes, _)| *nodes));
            cells.push((name, millis(self.model.on_shared_memory(&counted))));
        }
        writeln!(f, "{}", by_query(columns, cells.into_iter()))
    }

    fn write_predictions(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let link = &self.model.link;
        writeln!(
            f,
            "Predicted for machines with {:.0} Gb/s, reads of {} us and {} us to wake a thread; a read costs {:.3} us \
             beside its wait. In place, by fork-join (ms), and what bounds the faster\n",
            link.gigabits, link.latency_us, link.wake_us, self.model.read_us
        )?;
        let machines = distinct(
            self.predictions
                .iter()
                .map(|prediction| prediction.machines),
        );
        let columns = machines.iter().flat_map(|machines| {
            [
                format!("{machines}: in place"),
                "fork-join".to_owned(),
                "bound by".to_owned(),
            ]
        });
        let cells = self.predictions.iter().flat_map(|prediction| {
            let name = &*prediction.query;
            [
                (name, millis(prediction.in_place_ms)),
                (name, millis(prediction.fork_join_ms)),
                (name, prediction.bound.to_string()),
            ]
        });
        write!(f, "{}", by_query(columns, cells))
    }
}
