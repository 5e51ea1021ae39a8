//! `jindou demo`: what does it do, in one command and without any file?

mod streams;

use std::time::Instant;

use jindou_bench::run::{self, Outcome};
use jindou_bench::table::{Table, millis, thousands};
use jindou_datagen::lubm::{Lubm, QUERIES};
use jindou_engine::Database;
use jindou_engine::ingest::{LoadOptions, Progress};
use jindou_server::{HeavyPriority, MemoryLimits};

use crate::access_args::check_open;
use crate::allow::load_policies;
use crate::args::{DemoArguments, DemoCommand};
use crate::commands::serve;
use crate::limit_args::LimitArguments;
use crate::progress::Watch;
use crate::{open, output, universities};

/// Runs of each query after the first.
const WARM_RUNS: u32 = 5;

/// # Errors
/// A port that is taken; anything else is our own fault.
pub(crate) fn run(arguments: DemoArguments) -> anyhow::Result<()> {
    if let Some(DemoCommand::Streams(arguments)) = &arguments.command {
        return streams::run(arguments);
    }
    if !arguments.no_serve {
        check_open(arguments.bind, arguments.insecure)?;
        serve::check_address(arguments.bind)?;
    }
    let data = Lubm::new(arguments.universities.get(), 0);
    let database = load(data)?;
    output::print(&queries(&database)?.to_string())?;
    if !arguments.no_serve {
        return serve::serve(
            database,
            serve::config(arguments.bind, &LimitArguments::default()),
            None,
        );
    }
    Ok(())
}

/// Generates and loads, a university at a time on the way.
fn load(data: Lubm) -> anyhow::Result<Database> {
    let statements = data.count()?.statements();
    let sources = universities::sources(data)?;
    let mut config = MemoryLimits::default().engine_config(HeavyPriority::default());
    // As of a server that is started without --allow-load.
    (config.load, config.load_addresses) = load_policies(&[]);
    let database = Database::with_config(config);
    let progress = Progress::default();
    let start = Instant::now();
    let watch = Watch::load("generating and loading", progress.clone(), Some(statements));
    let loaded = database.load(sources, &LoadOptions::default(), &progress);
    drop(watch);
    open::tell(&loaded?, start.elapsed());
    Ok(database)
}

fn queries(database: &Database) -> anyhow::Result<Table> {
    // Asking for it reads files, which takes longer than a light query.
    let threads = threads();
    let mut table = Table::new(["query", "rows", "first run, ms", "best warm run, ms"]);
    for (name, text) in QUERIES {
        let once = || run::once(|| run::as_ids(database, text, threads));
        let (Outcome { rows, .. }, first) = once()?;
        let mut best = first;
        for number in 0..WARM_RUNS {
            let (again, time) = once()?;
            run::check_rows(name, "when run again", rows, again.rows)?;
            best = if number == 0 { time } else { best.min(time) };
        }
        let ms = |time: std::time::Duration| millis(time.as_secs_f64() * 1e3);
        table.row([name.to_owned(), thousands(rows), ms(first), ms(best)]);
    }
    Ok(table)
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
