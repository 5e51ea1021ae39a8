//! `jindou stream push`: how does a file become tuples?

use std::path::Path;

use jindou_engine::TupleFormat;
use jindou_engine::ingest::Format;
use serde_json::Value;

use super::client::{Client, Refused};
use super::{LINES, ending, read};
use crate::output;
use crate::stream_args::PushArguments;

/// # Errors
/// A server that cannot be reached, and what it refuses.
pub(super) fn run(arguments: &PushArguments) -> anyhow::Result<()> {
    let file = &arguments.file;
    // Without that of its compression.
    let stem = match ending(file) {
        Some("gz" | "zst") => file.file_stem().map_or(file.as_path(), Path::new),
        _ => file,
    };
    let ending = ending(stem);
    let given = arguments.format.map(Format::media_type);
    let of_events = || ending.and_then(TupleFormat::media_type_of_ending);
    let of_document = || Some(Format::from_extension(ending?)?.media_type());
    let media_type = given.or_else(of_events).or_else(of_document);
    let media_type = media_type.unwrap_or(LINES);
    let mut path = format!("/streams/{}", arguments.name);
    if let Some(time) = arguments.time {
        path += &format!("?time={time}");
    }
    let body = read(file)?;
    let producer = arguments.producer.as_deref().zip(arguments.sequence);
    let client = Client::new(&arguments.server)?;
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
