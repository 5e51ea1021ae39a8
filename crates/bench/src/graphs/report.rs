//! What does the measurement of named graphs say, and how is it printed?

use std::fmt::{self, Display, Formatter};

use serde::{Deserialize, Serialize};

use super::{Form, Layout};
use crate::figure::{Figure, Ratio};
use crate::machine::Machine;
use crate::table::{Table, bytes, thousands};

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphReport {
    /// Where it was measured.
    pub machine: Machine,
    /// Version of this program.
    pub version: String,
    /// Whether the program was built with optimization; figures without it say little.
    pub optimized: bool,
    /// Universities of the data, whose seed is 0.
    pub universities: u32,
    /// Timed runs of each query in each form, where they fit within the limit together.
    pub runs: u32,
    /// Time after which a query was given up.
    pub limit_ms: f64,
    /// What the data takes in each layout; the default graph once for each size of the data.
    pub layouts: Vec<LayoutFigures>,
    /// The queries by layout.
    pub queries: Vec<QueryFigures>,
}

/// What the data takes in one layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayoutFigures {
    /// Which.
    pub layout: Layout,
    /// Universities of its data.
    pub universities: u32,
    /// Named graphs.
    pub graphs: u64,
    /// Quads, those of the default graph among them.
    pub quads: u64,
    /// Different triples in all graphs together.
    pub triples: u64,
    /// What the store says it holds, in bytes.
    pub held_bytes: u64,
    /// The dictionary among that.
    pub dictionary_bytes: u64,
    /// Time until the data can be queried.
    pub load_seconds: f64,
}

/// One query in one layout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryFigures {
    /// The layout.
    pub layout: Layout,
    /// The query's name.
    pub name: String,
    /// The default graph first, then each form of the layout.
    pub forms: Vec<FormFigures>,
}

/// One query in one form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FormFigures {
    /// The form.
    pub form: Form,
    /// Rows of its answer; none if it was cut or failed.
    pub rows: Option<u64>,
    /// Whether the default graph's answer decides what is right.
    pub must_match: bool,
    /// How long it takes: every id of every row read, on one thread.
    pub figure: Figure,
    /// What is wrong with it: a wrong answer, a failure.
    pub fault: Option<String>,
}

impl QueryFigures {
    /// How many times longer the form in this place takes than the default graph.
    #[must_use]
    pub fn ratio(&self, form: usize) -> Option<Ratio> {
        Ratio::of(&self.forms.get(form)?.figure, &self.forms.first()?.figure)
    }

    fn rows(&self, form: usize) -> String {
        self.forms[form].rows.map_or_else(String::new, thousands)
    }

    /// Whether a form gave other rows than the default graph.
    fn has_other_rows(&self, form: usize) -> bool {
        let (rows, default) = (self.forms[form].rows, self.forms[0].rows);
        rows.is_some() && rows != default
    }
}

impl GraphReport {
    /// Whether every query was answered, or cut, and all answers that were compared are right.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.faults().next().is_none()
    }

    fn faults(&self) -> impl Iterator<Item = String> {
        self.queries.iter().flat_map(|query| {
            query.forms.iter().filter_map(|form| {
                let fault = form.fault.as_ref()?;
                let (layout, heading) = (query.layout, form.form.heading());
                Some(format!("{layout}: {}, {heading}: {fault}", query.name))
            })
        })
    }

    fn write_layouts(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut table = Table::new([
            "layout",
            "universities",
            "graphs",
            "quads",
            "triples",
            "load, s",
            "quads/s",
            "held",
            "dictionary",
            "B/quad",
            "B/triple",
        ]);
        for layout in &self.layouts {
            let rate = layout.quads as f64 / layout.load_seconds;
            let held_for = |count: u64| {
                let each = layout.held_bytes as f64 / count.max(1) as f64;
                format!("{each:.1}")
            };
            table.row([
                layout.layout.name().to_owned(),
                layout.universities.to_string(),
                thousands(layout.graphs),
                thousands(layout.quads),
                thousands(layout.triples),
                format!("{:.2}", layout.load_seconds),
                format!("{:.2} M", rate / 1e6),
                bytes(layout.held_bytes),
                bytes(layout.dictionary_bytes),
                held_for(layout.quads),
                held_for(layout.triples),
            ]);
        }
        write!(f, "\n{table}")
    }

    fn write_layout(&self, f: &mut Formatter<'_>, layout: Layout) -> fmt::Result {
        let of_layout = self.queries.iter().filter(|query| query.layout == layout);
        let queries: Vec<&QueryFigures> = of_layout.collect();
        let Some(first) = queries.first() else {
            return Ok(());
        };
        let forms = 1..first.forms.len();
        let has_rows: Vec<bool> = (0..first.forms.len())
            .map(|form| queries.iter().any(|query| query.has_other_rows(form)))
            .collect();
        let mut headings = vec![layout.name(), "rows", Form::DefaultGraph.heading()];
        for form in forms.clone() {
            headings.push(first.forms[form].form.heading());
            headings.push("ratio");
            if has_rows[form] {
                headings.push("rows");
            }
        }
        headings.push("");
        let mut table = Table::new(headings);
        for query in &queries {
            let default = query.forms[0].figure.to_string();
            let mut row = vec![query.name.clone(), query.rows(0), default];
            for form in forms.clone() {
                row.push(query.forms[form].figure.to_string());
                row.push(Ratio::cell(query.ratio(form)));
                if has_rows[form] {
                    row.push(query.rows(form));
                }
            }
            let is_wrong = query.forms.iter().any(|form| form.fault.is_some());
            row.push(if is_wrong { "WRONG" } else { "" }.to_owned());
            table.row(row);
        }
        let mut row = vec!["geometric mean".to_owned(), String::new(), String::new()];
        for form in forms {
            let ratios = queries.iter().filter_map(|query| query.ratio(form));
            row.push(String::new());
            row.push(Ratio::cell(Ratio::mean(ratios)));
            if has_rows[form] {
                row.push(String::new());
            }
        }
        row.push(String::new());
        table.row(row);
        write!(f, "\n{table}")
    }
}

impl Display for GraphReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "named graphs, LUBM, {} universities, seed 0; jindou {} on {}",
            self.universities, self.version, self.machine
        )?;
        if !self.optimized {
            writeln!(
                f,
                "This program was built without optimization: build with --release."
            )?;
        }
        self.write_layouts(f)?;
        if !self.queries.is_empty() {
            writeln!(
                f,
                "\nmilliseconds, median of {} warm runs by turns or of those within {} s, every id \
                 read, 1 thread;\nratios are to the default graph with the same data; rows only \
                 where they differ from its",
                self.runs,
                self.limit_ms / 1e3
            )?;
        }
        for layout in Layout::ALL {
            self.write_layout(f, layout)?;
        }
        for fault in self.faults() {
            writeln!(f, "WRONG: {fault}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::timing::Timing;

    fn form(form: Form, rows: u64, ms: u64) -> FormFigures {
        FormFigures {
            form,
            rows: Some(rows),
            must_match: true,
            figure: Figure::Timed {
                timing: Timing::of(vec![Duration::from_millis(ms)]),
            },
            fault: None,
        }
    }

    fn report(queries: Vec<QueryFigures>) -> GraphReport {
        GraphReport {
            machine: Machine::here(),
            version: "0".to_owned(),
            optimized: true,
            universities: 1,
            runs: 1,
            limit_ms: 20_000.0,
            layouts: Vec::new(),
            queries,
        }
    }

    #[test]
    fn rows_are_printed_where_they_differ_and_faults_are_named() {
        let cut = FormFigures {
            rows: None,
            figure: Figure::gave_up(Duration::from_secs(20)),
            ..form(Form::From, 0, 1)
        };
        let wrong = FormFigures {
            fault: Some("9 rows, not 10".to_owned()),
            ..form(Form::AnyGraph, 9, 300)
        };
        let query = QueryFigures {
            layout: Layout::OneGraph,
            name: "q4".to_owned(),
            forms: vec![
                form(Form::DefaultGraph, 10, 100),
                form(Form::Graph, 10, 200),
                wrong,
                cut,
            ],
        };
        let report = report(vec![query]);
        assert!(!report.is_right());
        let text = report.to_string();
        let table: Vec<Vec<&str>> = text
            .lines()
            .skip_while(|line| !line.starts_with("one-graph"))
            .map(|line| line.split("  ").map(str::trim).collect())
            .map(|cells: Vec<&str>| cells.into_iter().filter(|cell| !cell.is_empty()).collect())
            .collect();
        assert_eq!(
            table,
            [
                vec![
                    "one-graph",
                    "rows",
                    "default graph",
                    "GRAPH <g>",
                    "ratio",
                    "GRAPH ?g",
                    "ratio",
                    "rows",
                    "FROM <g>",
                    "ratio"
                ],
                vec![
                    "q4", "10", "100.0", "200.0", "2.00", "300.0", "3.00", "9", "> 20 s",
                    "> 200.0", "WRONG"
                ],
                vec!["geometric mean", "2.00", "3.00", "> 200.0"],
                vec!["WRONG: one-graph: q4, GRAPH ?g: 9 rows, not 10"],
            ]
        );
    }
}
