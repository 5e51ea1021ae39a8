//! `jindou query` and `jindou explain`: one query, its result or its plan.

use std::time::Duration;

use anyhow::anyhow;
use jindou_engine::{Config, Database, EngineError, QueryOptions};

use crate::args::{ExplainArguments, QueryArguments, TextArguments};
use crate::{open, output};

/// A load that takes less is not worth a line.
const PATIENCE: Duration = Duration::from_secs(1);

/// # Errors
/// A query or data that is wrong, and what else the engine reports.
pub(crate) fn run(arguments: QueryArguments) -> anyhow::Result<()> {
    let (text, name) = open::query_text(arguments.text)?;
    let database = match &arguments.subject.location {
        Some(location) => open::stored(location, Config::default())?,
        None => {
            // A wrong query should not wait for the files to be loaded.
            let trial = Database::new()
                .query(&text)
                .map_err(|e| in_query(e, &name))?;
            output::check_format(&trial, arguments.results_format)?;
            open::in_memory(
                &arguments.subject.data,
                &arguments.read,
                PATIENCE,
                Config::default(),
            )?
        }
    };
    if arguments.explain {
        return print_plan(&database, &text, &name);
    }
    let options = QueryOptions {
        timeout: arguments.timeout,
        profile: arguments.profile,
        threads: arguments.threads.map(usize::from),
        ..QueryOptions::default()
    };
    let results = database
        .query_with(&text, options)
        .map_err(|e| in_query(e, &name))?;
    let mut out = std::io::stdout().lock();
    let profile = output::write(results, arguments.results_format, &mut out)?;
    if arguments.profile {
        match profile {
            Some(profile) => eprintln!("{}", profile.trim_end()),
            None => eprintln!("profile: kept for tables of solutions (SELECT) only"),
        }
    }
    Ok(())
}

/// # Errors
/// A query that is wrong, and a folder that is no store.
pub(crate) fn explain(arguments: &ExplainArguments) -> anyhow::Result<()> {
    let (text, name) = open::query_text(TextArguments {
        query: arguments.text.query.clone(),
        query_file: arguments.text.query_file.clone(),
    })?;
    print_plan(
        &open::stored(&arguments.location, Config::default())?,
        &text,
        &name,
    )
}

fn print_plan(database: &Database, text: &str, name: &str) -> anyhow::Result<()> {
    let mut plan = database.explain(text).map_err(|e| in_query(e, name))?;
    if !plan.ends_with('\n') {
        plan.push('\n');
    }
    output::print(&plan)
}

/// Says where in which query.
fn in_query(error: EngineError, name: &str) -> anyhow::Error {
    match error {
        EngineError::Syntax {
            line,
            column,
            message,
        } => {
            anyhow!("{name}, line {line}, column {column}: {message}")
        }
        EngineError::Unsupported { .. } | EngineError::InvalidQuery { .. } => {
            anyhow::Error::new(error).context(name.to_owned())
        }
        error => error.into(),
    }
}
