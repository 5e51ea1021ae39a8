//! `jindou stream list`: which streams and continuous queries are there?

use jindou_bench::table::{Table, bytes, thousands};
use serde_json::{Value, json};

use super::client::Client;
use crate::output;
use crate::stream_args::ListArguments;
use jindou_engine::printable;

/// # Errors
/// A server that cannot be reached, and what it refuses.
pub(super) fn run(arguments: &ListArguments) -> anyhow::Result<()> {
    let client = Client::new(&arguments.server)?;
    let (streams, queries) = (client.get("/streams")?, client.get("/continuous")?);
    if arguments.json {
        let all = json!({ "streams": streams, "continuous": queries });
        return output::print(&format!("{all:#}\n"));
    }
    let (streams, queries) = (table_of_streams(&streams), table_of_queries(&queries));
    output::print(&format!("{streams}\n{queries}"))
}

fn table_of_streams(streams: &Value) -> Table {
    let mut table = Table::new([
        "stream",
        "IRI",
        "tuples",
        "late",
        "windows",
        "queries",
        "stable to",
    ]);
    for stream in streams.as_array().into_iter().flatten() {
        let window_bytes = stream["window_bytes"].as_u64();
        table.row([
            text(&stream["name"]),
            text(&stream["iri"]),
            number(&stream["tuples"]),
            number(&stream["late"]),
            window_bytes.map_or_else(String::new, bytes),
            number(&stream["queries"]),
            time(&stream["stable_ms"]),
        ]);
    }
    table
}

fn table_of_queries(queries: &Value) -> Table {
    let mut table = Table::new([
        "query",
        "streams",
        "executions",
        "failures",
        "rows",
        "last instant",
    ]);
    for query in queries.as_array().into_iter().flatten() {
        let streams = query["streams"].as_array().into_iter().flatten();
        let streams: Vec<String> = streams.map(text).collect();
        let paused = match query["paused"] == true {
            true => " (paused)",
            false => "",
        };
        table.row([
            text(&query["name"]) + paused,
            streams.join(", "),
            number(&query["executions"]),
            number(&query["failures"]),
            number(&query["rows"]),
            time(&query["last_instant_ms"]),
        ]);
    }
    table
}

fn text(value: &Value) -> String {
    printable(value.as_str().unwrap_or_default()).into_owned()
}

fn number(value: &Value) -> String {
    value.as_u64().map_or_else(String::new, thousands)
}

fn time(value: &Value) -> String {
    value
        .as_i64()
        .map_or_else(String::new, |time| time.to_string())
}
