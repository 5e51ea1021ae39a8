//! `jindou stream`: streams and continuous queries of a running server.

mod client;
mod replay;
mod watch;

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use jindou_bench::table::{Table, bytes, thousands};
use jindou_engine::TupleFormat;
use jindou_engine::ingest::Format;
use serde_json::{Value, json};

use crate::output;
use crate::stream_args::{
    CreateArguments, DropArguments, HeartbeatArguments, ListArguments, PushArguments,
    RegisterArguments, StreamCommand,
};
use client::{Client, Refused};

const JSON: &str = "application/json";
const LINES: &str = "text/tab-separated-values";
const TEXT: &str = "application/sparql-query";

/// # Errors
/// A server that cannot be reached, and what it refuses.
pub(crate) fn run(command: StreamCommand) -> anyhow::Result<()> {
    match command {
        StreamCommand::Create(arguments) => create(&arguments),
        StreamCommand::List(arguments) => list(&arguments),
        StreamCommand::Drop(arguments) => remove("streams", &arguments),
        StreamCommand::Push(arguments) => push(&arguments),
        StreamCommand::Replay(arguments) => replay::run(&arguments),
        StreamCommand::Heartbeat(arguments) => heartbeat(&arguments),
        StreamCommand::Register(arguments) => register(&arguments),
        StreamCommand::Unregister(arguments) => remove("continuous", &arguments),
        StreamCommand::Watch(arguments) => watch::run(&arguments),
    }
}

fn create(arguments: &CreateArguments) -> anyhow::Result<()> {
    let definition = match &arguments.definition {
        Some(path) => read(path)?,
        None => definition(arguments).to_string().into_bytes(),
    };
    let path = format!("/streams/{}", arguments.name);
    let body = Some((JSON, &*definition));
    let made = Client::new(&arguments.server).ask("PUT", &path, body)?;
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

fn list(arguments: &ListArguments) -> anyhow::Result<()> {
    let client = Client::new(&arguments.server);
    let (streams, queries) = (client.get("/streams")?, client.get("/continuous")?);
    if arguments.json {
        let all = json!({ "streams": streams, "continuous": queries });
        return output::print(&format!("{all:#}\n"));
    }
    let number = |value: &Value| value.as_u64().map_or_else(String::new, thousands);
    let mut shown = Table::new([
        "stream",
        "IRI",
        "tuples",
        "late",
        "windows",
        "queries",
        "stable to",
    ]);
    for stream in streams.as_array().into_iter().flatten() {
        shown.row([
            text(&stream["name"]),
            text(&stream["iri"]),
            number(&stream["tuples"]),
            number(&stream["late"]),
            stream["window_bytes"]
                .as_u64()
                .map_or_else(String::new, bytes),
            number(&stream["queries"]),
            stream["stable_ms"]
                .as_i64()
                .map_or_else(String::new, |time| time.to_string()),
        ]);
    }
    let mut table = Table::new([
        "query",
        "streams",
        "executions",
        "failures",
        "rows",
        "last instant",
    ]);
    for query in queries.as_array().into_iter().flatten() {
        let streams: Vec<String> = query["streams"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        let paused = if query["paused"] == true {
            " (paused)"
        } else {
            ""
        };
        table.row([
            text(&query["name"]) + paused,
            streams.join(", "),
            number(&query["executions"]),
            number(&query["failures"]),
            number(&query["rows"]),
            query["last_instant_ms"]
                .as_i64()
                .map_or_else(String::new, |time| time.to_string()),
        ]);
    }
    output::print(&format!("{shown}\n{table}"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn remove(kind: &str, arguments: &DropArguments) -> anyhow::Result<()> {
    let path = format!("/{kind}/{}", arguments.name);
    let gone = Client::new(&arguments.server).ask("DELETE", &path, None)?;
    gone.map_err(Refused::error)?;
    Ok(())
}

fn push(arguments: &PushArguments) -> anyhow::Result<()> {
    let ending = arguments
        .file
        .extension()
        .and_then(|ending| ending.to_str());
    let given = arguments.format.map(Format::media_type);
    let of_events = || ending.and_then(TupleFormat::media_type_of_ending);
    let of_document = || Some(Format::from_extension(ending?)?.media_type());
    let media_type = given.or_else(of_events).or_else(of_document);
    let media_type = media_type.unwrap_or(LINES);
    let mut path = format!("/streams/{}", arguments.name);
    if let Some(time) = arguments.time {
        path += &format!("?time={time}");
    }
    let body = read(&arguments.file)?;
    let producer = arguments.producer.as_deref().zip(arguments.sequence);
    let client = Client::new(&arguments.server);
    let report = client.ask_as(producer, ("POST", &*path), Some((media_type, &*body)))?;
    let report: Value = serde_json::from_str(&report.map_err(Refused::error)?)?;
    if report["repeated"] == true {
        return output::print("accepted before\n");
    }
    output::print(&format!(
        "{} accepted, {} late\n",
        report["accepted"], report["late"]
    ))
}

fn heartbeat(arguments: &HeartbeatArguments) -> anyhow::Result<()> {
    beat(
        &Client::new(&arguments.server),
        &arguments.name,
        arguments.time,
    )
}

fn beat(client: &Client, name: &str, time: Option<i64>) -> anyhow::Result<()> {
    let mut path = format!("/streams/{name}/heartbeat");
    if let Some(time) = time {
        path += &format!("?time={time}");
    }
    client.ask("POST", &path, None)?.map_err(Refused::error)?;
    Ok(())
}

fn register(arguments: &RegisterArguments) -> anyhow::Result<()> {
    let name = arguments.file.display().to_string();
    let text = String::from_utf8(read(&arguments.file)?)
        .map_err(|_| anyhow!("{name}: the text is not UTF-8"))?;
    let path = format!("/continuous/{}", arguments.name);
    let client = Client::new(&arguments.server);
    let made = client.ask("PUT", &path, Some((TEXT, text.as_bytes())))?;
    made.map_err(|refused| refused.error_in(&text, &name))?;
    Ok(())
}

/// All of a file; `-` is standard input.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .context("standard input")?;
        return Ok(bytes);
    }
    std::fs::read(path).with_context(|| format!("{}: cannot read the file", path.display()))
}
