//! `jindou stream push`: how does a file become tuples?

use std::path::Path;

use jindou_engine::TupleFormat;
use jindou_engine::ingest::Format;
use serde_json::Value;

use super::client::{Client, Refused};
use super::{LINES, ending, hint_at_seconds, read, time_of};
use crate::output;
use crate::stream_args::PushArguments;

/// # Errors
/// A server that cannot be reached, and what it refuses.
pub(super) fn run(arguments: &PushArguments) -> anyhow::Result<()> {
    let file = &arguments.file;
    let told = arguments.format.map(Format::media_type);
    let told = told.or_else(|| media_type_of_name(file));
    let media_type = told.unwrap_or(LINES);
    let mut path = format!("/streams/{}", arguments.name);
    if let Some(time) = arguments.time {
        path += &format!("?time={time}");
    }
    let body = read(file)?;
    let producer = arguments.producer.as_deref().zip(arguments.sequence);
    let client = Client::new(&arguments.server)?;
    let report = client.ask_as(producer, ("POST", &*path), Some((media_type, &*body)))?;
    let report = report.map_err(|refused| {
        let is_untold = told.is_none() && refused.line().is_some();
        let error = refused_file(refused, file, &body);
        match is_untold {
            true => error.context(UNTOLD),
            false => error,
        }
    })?;
    let report: Value = serde_json::from_str(&report)?;
    if report["repeated"] == true {
        return output::print("accepted before\n");
    }
    output::print(&format!(
        "{} accepted, {} late\n",
        report["accepted"], report["late"]
    ))?;
    if report["accepted"] == 0
        && report["late"] != 0
        && let Some(times) = times(arguments.time, &body)
    {
        hint_at_seconds(times);
    }
    Ok(())
}

/// The earliest and the latest time of tuples: that which was given for all, or those of lines.
fn times(given: Option<i64>, body: &[u8]) -> Option<(i64, i64)> {
    let of_lines = || body.split(|byte| *byte == b'\n').filter_map(time_of);
    let first = given.or_else(|| of_lines().min())?;
    let last = given.or_else(|| of_lines().max())?;
    Some((first, last))
}

/// What the name of a file says of its format, whatever it says of its compression.
fn media_type_of_name(file: &Path) -> Option<&'static str> {
    let stem = match ending(file) {
        Some("gz" | "zst") => file.file_stem().map(Path::new)?,
        _ => file,
    };
    let ending = ending(stem)?;
    match ending {
        "tsv" => Some(LINES),
        _ => TupleFormat::media_type_of_ending(ending)
            .or_else(|| Some(Format::from_extension(ending)?.media_type())),
    }
}

/// What is said where a file was refused of which nothing says its format.
const UNTOLD: &str = "neither the file's name nor --format says a format, so it was sent as lines of time, \
                      tab and statement";

/// Why a file was refused, with its name and the line where that is what is wrong.
fn refused_file(refused: Refused, file: &Path, body: &[u8]) -> anyhow::Error {
    refused.error_in(&String::from_utf8_lossy(body), &file.display().to_string())
}
