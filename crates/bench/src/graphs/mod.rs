//! What do named graphs cost beside the default graph?
//!
//! [`measure`] holds the same data of LUBM in two databases at a time: in the default graph, and
//! in one [`Layout`] of named graphs. It asks the seven queries of both by turns, of the named
//! graphs in every [`Form`] that suits the layout, so that whatever else the machine does touches
//! all. An answer that must be the default graph's is compared with it, row by row in short; one
//! that differs makes the report [wrong](GraphReport::is_right).

mod form;
mod layout;
mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use jindou_datagen::lubm::{Lubm, QUERIES};
use jindou_engine::{Database, QueryOptions};

pub use form::Form;
pub use layout::{Layout, QuadsFile};
pub use report::{FormFigures, GraphReport, LayoutFigures, QueryFigures};

use crate::figure::Figure;
use crate::machine::Machine;
use crate::operators::{Answer, Check, answer_of, within_limit};
use crate::turns::{Bounds, by_turns};
use crate::{BenchError, child, data, run};
use form::Expected;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Universities of the data, whose seed is 0; see [`Layout::universities`].
    pub universities: u32,
    /// Timed runs of each query in each form; fewer where they take longer than `limit` together.
    pub runs: u32,
    /// Time after which a query is given up.
    pub limit: Duration,
    /// Only these layouts; all if empty.
    pub layouts: Vec<Layout>,
    /// The query of this name only.
    pub only: Option<String>,
    /// Threads of loads; queries have one.
    pub load_threads: usize,
    /// Where files are generated; they are removed once they are loaded.
    pub folder: PathBuf,
}

impl Options {
    /// The usual measurement of this many universities.
    #[must_use]
    pub fn new(universities: u32) -> Self {
        Self {
            universities,
            runs: 15,
            limit: Duration::from_secs(20),
            layouts: Vec::new(),
            only: None,
            load_threads: std::thread::available_parallelism().map_or(1, usize::from),
            folder: data::DEFAULT_FOLDER.into(),
        }
    }

    fn wants(&self, layout: Layout) -> bool {
        self.layouts.is_empty() || self.layouts.contains(&layout)
    }
}

/// Measures; `note` is given what is being done, a few words at a time. Holds two databases, and
/// a generated file on the disk: 1 GB for 40 universities.
///
/// # Errors
/// Data that cannot be generated or loaded. A query that fails, or is answered wrongly, is in the
/// report.
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<GraphReport, BenchError> {
    let mut report = GraphReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        universities: options.universities,
        runs: options.runs,
        limit_ms: options.limit.as_secs_f64() * 1e3,
        layouts: Vec::new(),
        queries: Vec::new(),
    };
    let mut default: Option<Held> = None;
    for layout in Layout::ALL {
        if !options.wants(layout) {
            continue;
        }
        let data = Lubm::new(layout.universities(options.universities), 0);
        // Of other data, it goes before the next is loaded.
        default = default.filter(|held| held.data == data);
        if default.is_none() {
            let held = Held::load(Layout::DefaultGraph, data, options, &mut note)?;
            report.layouts.push(held.figures.clone());
            default = Some(held);
        }
        let default = default.as_ref().expect("it was just loaded");
        if layout == Layout::DefaultGraph {
            continue;
        }
        let named = Held::load(layout, data, options, &mut note)?;
        report.layouts.push(named.figures.clone());
        for (name, text) in QUERIES {
            if options.only.as_deref().is_some_and(|only| only != name) {
                continue;
            }
            note(&format!("{layout}: {name}"));
            let forms = query(default, &named, text, options);
            report.queries.push(QueryFigures {
                layout,
                name: name.to_owned(),
                forms,
            });
        }
    }
    Ok(report)
}

/// A database with one layout.
struct Held {
    layout: Layout,
    data: Lubm,
    database: Database,
    figures: LayoutFigures,
}

impl Held {
    fn load(
        layout: Layout,
        data: Lubm,
        options: &Options,
        note: &mut impl FnMut(&str),
    ) -> Result<Self, BenchError> {
        note(&format!("generating {layout}"));
        let file = QuadsFile::write(&options.folder, layout, data)?;
        note(&format!("loading {layout}"));
        let load = || child::load(&file.path, options.load_threads);
        let (database, load_time) = run::once(load)?;
        let statistics = database.statistics();
        let quads = database.quad_counts().total();
        if quads != file.quads {
            return Err(BenchError::TriplesDiffer {
                file: file.path.clone(),
                expected: file.quads,
                found: quads,
            });
        }
        let figures = LayoutFigures {
            layout,
            universities: data.universities,
            graphs: statistics.named_graphs,
            quads,
            triples: data.count()?.distinct(),
            held_bytes: statistics.total_bytes(),
            dictionary_bytes: statistics.dictionary_bytes,
            load_seconds: load_time.as_secs_f64(),
        };
        Ok(Self {
            layout,
            data,
            database,
            figures,
        })
    }
}

/// One query in one form, ready to be run.
struct Asked<'d> {
    database: &'d Database,
    text: String,
    options: QueryOptions,
}

impl<'d> Asked<'d> {
    fn new(form: Form, held: &'d Held, query: &str, limit: Duration) -> Self {
        Self {
            database: &held.database,
            text: form.text(query),
            options: QueryOptions {
                threads: Some(1),
                timeout: Some(limit),
                ..form.options(held.layout, held.data)
            },
        }
    }

    fn answer(&self) -> Result<Option<Answer>, BenchError> {
        answer_of(self.database, &self.text, self.options.clone())
    }

    /// The time of one run; `None` if that passed its limit.
    fn run(&self, name: &str, rows: Option<u64>) -> Result<Option<Duration>, BenchError> {
        let options = self.options.clone();
        let start = Instant::now();
        let ids = run::as_ids_with(self.database, &self.text, options);
        let time = start.elapsed();
        let Some(outcome) = within_limit(ids)? else {
            return Ok(None);
        };
        if let Some(rows) = rows {
            run::check_rows(name, "when run again", rows, outcome.rows)?;
        }
        Ok(Some(time))
    }
}

/// All forms of a query of `named`, after the query of the default graph.
fn query(default: &Held, named: &Held, query: &str, options: &Options) -> Vec<FormFigures> {
    let forms = named.layout.forms();
    let sides = std::iter::once((Form::DefaultGraph, default))
        .chain(forms.iter().map(|&form| (form, named)));
    let asked: Vec<(Form, Asked<'_>)> = sides
        .map(|(form, held)| (form, Asked::new(form, held, query, options.limit)))
        .collect();
    let mut of_default: Option<Answer> = None;
    let (mut figures, mut ended) = (Vec::new(), Vec::new());
    for (form, asked) in &asked {
        let (answer, known) = match asked.answer() {
            Ok(Some(answer)) => (Some(answer), None),
            Ok(None) => (None, Some(Figure::gave_up(options.limit))),
            Err(error) => (None, Some(Figure::failed(&error))),
        };
        if *form == Form::DefaultGraph {
            of_default = answer;
        }
        let expected = form.expected(named.layout, query);
        let compared = of_default.zip(answer);
        let fault = compared.and_then(|(right, found)| fault(expected, right, found));
        figures.push(FormFigures {
            form: *form,
            rows: answer.map(|answer| answer.rows),
            must_match: expected != Expected::Other,
            figure: Figure::gave_up(options.limit),
            fault,
        });
        ended.push(known);
    }
    let bounds = Bounds {
        max_runs: options.runs.max(1) as usize,
        budget: options.limit,
        limit: options.limit,
    };
    let timed = by_turns(ended, bounds, |side| {
        let (form, asked) = &asked[side];
        asked.run(form.heading(), figures[side].rows)
    });
    for (figures, figure) in figures.iter_mut().zip(timed) {
        if let Figure::Failed { reason } = &figure {
            figures.fault.get_or_insert_with(|| reason.clone());
        }
        figures.figure = figure;
    }
    figures
}

/// What is wrong with an answer beside that of the default graph.
fn fault(expected: Expected, default: Answer, found: Answer) -> Option<String> {
    let right = match expected {
        Expected::Other => return None,
        Expected::Same => default.rows,
        Expected::Times(times) => default.rows * times,
    };
    if found.rows != right {
        return Some(format!("{} rows, not {right}", found.rows));
    }
    let others = expected == Expected::Same && !found.same(&default, Check::Rows);
    others.then(|| "other rows than the default graph's".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(rows: u64, bag: u64) -> Answer {
        Answer {
            rows,
            bag,
            sequence: 0,
        }
    }

    #[test]
    fn an_answer_is_wrong_by_its_number_of_rows_or_by_the_rows() {
        let default = answer(3, 7);
        let said = |expected, found| fault(expected, default, found);
        assert_eq!(said(Expected::Same, answer(3, 7)), None);
        let few = said(Expected::Same, answer(2, 7)).unwrap();
        assert_eq!(few, "2 rows, not 3");
        let others = said(Expected::Same, answer(3, 8)).unwrap();
        assert_eq!(others, "other rows than the default graph's");
        assert_eq!(said(Expected::Times(20), answer(60, 8)), None);
        let once = said(Expected::Times(20), answer(3, 7)).unwrap();
        assert_eq!(once, "3 rows, not 60");
        assert_eq!(said(Expected::Other, answer(0, 0)), None);
    }
}
