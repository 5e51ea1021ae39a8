//! `jindou query` and `jindou explain`: one query, its result or its plan.

use std::time::Duration;

use anyhow::bail;
use jindou_engine::results::Names;
use jindou_engine::{Config, Database, EngineError, QueryOptions};
use oxrdf::NamedNode;

use crate::allow::service_policy;
use crate::args::{ExplainArguments, QueryArguments, ResultsFormat, TextArguments};
use crate::failure::{WrongQuery, excerpt};
use crate::interrupt::{self, Interrupted};
use crate::target::{Name, Target, refuse_terminal};
use crate::{open, output};

/// A load that takes less is not worth a line.
const PATIENCE: Duration = Duration::from_secs(1);

/// # Errors
/// A query or data that is wrong, and what else the engine reports.
pub(crate) fn run(arguments: QueryArguments) -> anyhow::Result<()> {
    let path = arguments
        .output
        .as_deref()
        .filter(|path| path.as_os_str() != "-");
    let file = Name::of(path)?;
    let format = results_format(arguments.results_format, &file)?;
    if let Some(binary) = format.filter(|format| format.is_binary()) {
        let called = format!("{binary:?}").to_lowercase();
        file.refuse_compression(&called)?;
        refuse_terminal(path, &called)?;
    }
    let (text, name) = open::query_text(arguments.text, "query")?;
    let mut config = Config::default();
    arguments.spill.apply(&mut config)?;
    let database = match &arguments.subject.location {
        Some(location) => open::to_read(location, config)?,
        None => {
            // A wrong query should not wait for the files to be loaded.
            // Other endpoints should not be called for a trial.
            let options = QueryOptions {
                must_not_wait: true,
                base: arguments.base.clone(),
                ..QueryOptions::default()
            };
            match Database::new().query_with(&text, options) {
                Ok(trial) => output::check_format(&trial, format)?,
                Err(EngineError::WouldWait) => (),
                Err(error) => return Err(in_query(error, &text, &name)),
            }
            open::in_memory(&arguments.subject.data, &arguments.read, PATIENCE, config)?
        }
    };
    if arguments.explain {
        let union = arguments.union_default_graph;
        return print_plan(&database, &text, &name, (arguments.base, union));
    }
    // Without a file there is nothing to tidy up, and Ctrl-C may end the process as it always does.
    let token = match path {
        Some(_) => Some(interrupt::watch()?),
        None => None,
    };
    let options = QueryOptions {
        cancellation: token.clone(),
        timeout: arguments.timeout,
        profile: arguments.profile,
        threads: arguments.threads.map(usize::from),
        base: arguments.base,
        union_default_graph: arguments.union_default_graph.then_some(true),
        services: service_policy(&arguments.allow_service),
        ..QueryOptions::default()
    };
    let hint = database.hint(&text, &options);
    let names = match arguments.full_iris {
        true => Names::default(),
        false => {
            let base = options.base.as_ref().map(NamedNode::as_str);
            database.names_for(&text, base)
        }
    };
    let answer = || -> anyhow::Result<Option<String>> {
        let results = database
            .query_with(&text, options)
            .map_err(|e| in_query(e, &text, &name))?;
        // Before a file is begun that could not be ended.
        output::check_format(&results, format)?;
        let mut target = Target::create(path, &file)?;
        let profile = output::write(results, format, names, &mut target)?;
        if token.as_ref().is_none_or(|token| !token.is_cancelled()) {
            target.finish()?;
        }
        Ok(profile)
    };
    let answer = answer();
    if token.is_some_and(|token| token.is_cancelled()) {
        return Err(Interrupted.into());
    }
    let profile = answer?;
    if let Ok(Some(hint)) = hint {
        note!("{hint} (--union-default-graph)");
    }
    if arguments.profile {
        match profile {
            Some(profile) => note!("{}", profile.trim_end()),
            None => note!("profile: kept for tables of solutions (SELECT) only"),
        }
    }
    Ok(())
}

/// The format asked for, or the one that the output's name tells.
fn results_format(
    given: Option<ResultsFormat>,
    file: &Name,
) -> anyhow::Result<Option<ResultsFormat>> {
    if given.is_some() {
        return Ok(given);
    }
    let Some(ending) = file.ending.as_deref() else {
        return Ok(None);
    };
    match ResultsFormat::from_ending(ending) {
        Some(format) => Ok(Some(format)),
        None if matches!(ending, "arrow" | "feather") => {
            bail!(
                "what is written is an Arrow stream; name it .arrows, or give --results-format arrow"
            )
        }
        None => bail!("the ending .{ending} tells no format; name it with --results-format"),
    }
}

/// # Errors
/// A query that is wrong, and a folder that is no store.
pub(crate) fn explain(arguments: &ExplainArguments) -> anyhow::Result<()> {
    let (text, name) = open::query_text(
        TextArguments {
            query: arguments.text.query.clone(),
            query_file: arguments.text.query_file.clone(),
        },
        "query",
    )?;
    print_plan(
        &open::to_read(&arguments.location, Config::default())?,
        &text,
        &name,
        (arguments.base.clone(), arguments.union_default_graph),
    )
}

fn print_plan(
    database: &Database,
    text: &str,
    name: &str,
    (base, union): (Option<NamedNode>, bool),
) -> anyhow::Result<()> {
    let options = QueryOptions {
        base,
        union_default_graph: union.then_some(true),
        ..QueryOptions::default()
    };
    let mut plan = database
        .explain_with(text, &options)
        .map_err(|e| in_query(e, text, name))?;
    if !plan.ends_with('\n') {
        plan.push('\n');
    }
    output::print(&plan)
}

/// Says where in which query.
pub(super) fn in_query(error: EngineError, text: &str, name: &str) -> anyhow::Error {
    let wrong = |line, column| WrongQuery {
        said: format!("{name}, {error}"),
        excerpt: excerpt(text, line, column),
    };
    match error {
        EngineError::Syntax { line, column, .. } => wrong(line as usize, column as usize).into(),
        EngineError::Unsupported {
            place: Some(place), ..
        } => wrong(place.line as usize, place.column as usize).into(),
        EngineError::Unsupported { .. } | EngineError::InvalidQuery { .. } => {
            anyhow::Error::new(error).context(name.to_owned())
        }
        error => error.into(),
    }
}
