//! Queries of a named graph beside the other engine: how long does each take?
//!
//! Both engines hold the same quads, all in one named graph or in another layout, and run the
//! seven queries by turns under `GRAPH <g>` and `GRAPH ?g`, from the query's text to all of its
//! rows as TSV.

use std::fmt::{self, Display, Formatter};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jindou_bench::data;
use jindou_bench::figure::{Figure, Ratio};
use jindou_bench::graphs::{Form, Layout, QuadsFile};
use jindou_bench::machine::Machine;
use jindou_bench::operators::{Answer, Check, Engine, Jindou};
use jindou_bench::table::{Table, thousands};
use jindou_bench::turns::{Bounds, by_turns};
use jindou_datagen::lubm::{Lubm, QUERIES};
use serde::Serialize;

use crate::operators::Oxigraph;

/// How the queries are asked.
const FORMS: [Form; 2] = [Form::Graph, Form::AnyGraph];

/// Measure queries of a named graph beside oxigraph: q1 to q7 of LUBM under GRAPH
#[derive(Debug, clap::Args)]
pub(crate) struct GraphArguments {
    /// How many universities
    #[arg(long, value_name = "N", default_value_t = 40)]
    universities: u32,
    /// How the statements are spread over named graphs: one of the layouts of `bench graphs`
    #[arg(long, value_name = "L", default_value_t = Layout::OneGraph)]
    layout: Layout,
    /// Timed runs of each query in each form and engine, the median of which counts
    #[arg(long, value_name = "R", default_value_t = 15)]
    runs: usize,
    /// Seconds after which a query is given up, and for all its runs in one form
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0)]
    limit: f64,
    /// Only this query, such as q4
    #[arg(long, value_name = "QUERY")]
    only: Option<String>,
    /// Threads of loads [default: all]; queries have one
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Folder of generated data
    #[arg(long, value_name = "DIR", default_value = data::DEFAULT_FOLDER)]
    data: PathBuf,
    /// Write the figures as JSON to this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

pub(crate) fn compare(arguments: &GraphArguments) -> anyhow::Result<()> {
    let limit = Duration::try_from_secs_f64(arguments.limit)
        .with_context(|| format!("{} is no time", arguments.limit))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = arguments.threads.unwrap_or(cores);
    eprintln!("generating ...");
    let layout = arguments.layout;
    let data = Lubm::new(layout.universities(arguments.universities), 0);
    let file = QuadsFile::write(&arguments.data, layout, data)?;
    let mut ours = Jindou::new(Some(1));
    let mut theirs = Oxigraph::new()?;
    for engine in [&mut ours as &mut dyn Engine, &mut theirs] {
        eprintln!("loading into {} ...", engine.name());
        let quads = engine.load(std::slice::from_ref(&file.path), threads)?;
        if quads != file.quads {
            bail!("{} holds {quads} quads, not {}", engine.name(), file.quads);
        }
    }
    let mut comparison = Comparison {
        machine: Machine::here(),
        layout,
        universities: data.universities,
        graphs: layout.graphs(data),
        quads: file.quads,
        queries: Vec::new(),
    };
    drop(file);
    let bounds = Bounds {
        max_runs: arguments.runs,
        budget: limit,
        limit,
    };
    let is_asked = |name: &str| arguments.only.as_deref().is_none_or(|only| only == name);
    for form in FORMS {
        for (name, text) in QUERIES.into_iter().filter(|(name, _)| is_asked(name)) {
            eprintln!("{}: {name} ...", form.heading());
            let engines: [&mut dyn Engine; 2] = [&mut ours, &mut theirs];
            let query = QueryComparison::measure((form, name), text, bounds, engines);
            comparison.queries.push(query);
        }
    }
    print!("{comparison}");
    if let Some(path) = &arguments.json {
        let text = serde_json::to_string_pretty(&comparison)? + "\n";
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
    }
    if comparison.queries.iter().any(|query| query.fault.is_some()) {
        bail!("some answers are wrong or missing: see the lines that begin with WRONG");
    }
    Ok(())
}

/// All figures.
#[derive(Serialize)]
struct Comparison {
    machine: Machine,
    layout: Layout,
    universities: u32,
    graphs: u32,
    quads: u64,
    queries: Vec<QueryComparison>,
}

/// One query in one form.
#[derive(Serialize)]
struct QueryComparison {
    form: Form,
    name: &'static str,
    /// Rows of the first answer that came.
    rows: Option<u64>,
    jindou: Figure,
    oxigraph: Figure,
    /// What is wrong: answers that differ, an engine that failed.
    fault: Option<String>,
}

impl QueryComparison {
    fn measure(
        (form, name): (Form, &'static str),
        query: &str,
        bounds: Bounds,
        mut engines: [&mut dyn Engine; 2],
    ) -> Self {
        let text = form.text(query);
        let answers = engines
            .each_mut()
            .map(|engine| engine.answer(&text, bounds.limit));
        let found: Vec<Answer> = answers.iter().flatten().flatten().copied().collect();
        let mut fault = match found[..] {
            [ours, theirs] if !ours.same(&theirs, Check::Rows) => Some(format!(
                "jindou has {} rows, oxigraph {}, or their rows differ",
                ours.rows, theirs.rows
            )),
            _ => None,
        };
        let ended = answers.iter().map(|answer| match answer {
            Ok(Some(_)) => None,
            Ok(None) => Some(Figure::gave_up(bounds.limit)),
            Err(error) => Some(Figure::failed(error)),
        });
        let figures = by_turns(ended.collect(), bounds, |engine| {
            let start = Instant::now();
            let whole = engines[engine].run(&text, bounds.limit)?;
            Ok(whole.map(|()| start.elapsed()))
        });
        for (engine, figure) in engines.iter().zip(&figures) {
            if let Figure::Failed { reason } = figure {
                fault = Some(format!("{}: {reason}", engine.name()));
            }
        }
        let [jindou, oxigraph] = figures.try_into().expect("there is a figure a side");
        Self {
            form,
            name,
            rows: found.first().map(|answer| answer.rows),
            jindou,
            oxigraph,
            fault,
        }
    }

    fn ratio(&self) -> Option<Ratio> {
        Ratio::of(&self.oxigraph, &self.jindou)
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}, LUBM, {} universities, seed 0: {} quads, named graphs: {}\n{}",
            self.layout,
            self.universities,
            thousands(self.quads),
            thousands(self.graphs.into()),
            self.machine
        )?;
        if cfg!(debug_assertions) {
            writeln!(
                f,
                "This program was built without optimization: build with --release."
            )?;
        }
        writeln!(
            f,
            "\nmilliseconds from a query's text to all rows as TSV, one thread each, median of \
             warm runs; ratios are oxigraph / jindou"
        )?;
        for form in FORMS {
            let mut table = Table::new([form.heading(), "rows", "jindou", "oxigraph", "ratio", ""]);
            let of_form = || self.queries.iter().filter(|query| query.form == form);
            for query in of_form() {
                table.row([
                    query.name.to_owned(),
                    query.rows.map_or_else(String::new, thousands),
                    query.jindou.to_string(),
                    query.oxigraph.to_string(),
                    Ratio::cell(query.ratio()),
                    if query.fault.is_some() { "WRONG" } else { "" }.to_owned(),
                ]);
            }
            let mean = Ratio::mean(of_form().filter_map(QueryComparison::ratio));
            table.row(["geometric mean", "", "", "", &Ratio::cell(mean), ""]);
            write!(f, "\n{table}")?;
        }
        for query in &self.queries {
            if let Some(fault) = &query.fault {
                let heading = query.form.heading();
                writeln!(f, "WRONG: {heading}: {}: {fault}", query.name)?;
            }
        }
        Ok(())
    }
}
