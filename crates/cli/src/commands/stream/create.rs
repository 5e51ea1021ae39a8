//! `jindou stream create`: how is a stream described?

use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Client, Refused};
use super::read;
use crate::stream_args::CreateArguments;

/// # Errors
/// A server that cannot be reached, and what it refuses.
pub(super) fn run(arguments: &CreateArguments) -> anyhow::Result<()> {
    let definition = match &arguments.definition {
        Some(path) => read(path)?,
        None => definition(arguments).to_string().into_bytes(),
    };
    let path = format!("/streams/{}", arguments.name);
    let body = Some(("application/json", &*definition));
    let made = Client::new(&arguments.server)?.ask("PUT", &path, body)?;
    made.map_err(Refused::error)?;
    Ok(())
}

/// What was given of a definition; the server knows the rest.
fn definition(arguments: &CreateArguments) -> Value {
    let mut definition = json!({ "iri": arguments.iri.as_ref().map(|iri| iri.as_str()) });
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let predicates = |given: &[String]| match given {
        [] => None,
        [all] if all == "all" => Some(json!("all")),
        iris => Some(json!(iris)),
    };
    let fields = [
        ("time", arguments.time.as_ref().map(|time| json!(time))),
        (
            "lateness_ms",
            arguments.lateness.map(|time| json!(ms(time))),
        ),
        (
            "interval_ms",
            arguments.interval.map(|time| json!(ms(time))),
        ),
        ("idle_ms", arguments.idle.map(|time| json!(ms(time)))),
        (
            "max_ahead_ms",
            arguments.max_ahead.map(|time| json!(ms(time))),
        ),
        ("timing", predicates(&arguments.timing)),
        ("timeless", predicates(&arguments.timeless)),
        (
            "graph",
            arguments.graph.as_ref().map(|graph| json!(graph.as_str())),
        ),
        ("memory", arguments.memory.map(|bytes| json!(bytes))),
        ("durable", arguments.durable.then_some(json!(true))),
    ];
    for (field, value) in fields {
        if let Some(value) = value {
            definition[field] = value;
        }
    }
    definition
}
