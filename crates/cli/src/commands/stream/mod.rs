//! `jindou stream`: streams and continuous queries of a running server.

mod client;
mod create;
mod heartbeat;
mod list;
mod push;
mod register;
mod remove;
mod replay;
mod secured;
mod trust;
mod watch;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, stdin};
use std::ops::Range;
use std::path::Path;

use anyhow::Context;
use flate2::bufread::MultiGzDecoder;
use jindou_engine::ingest::Compression;

use crate::stream_args::StreamCommand;
pub(crate) use client::{Asking, Client, authorization, trust};

/// The media type of lines of time, tab and statement.
const LINES: &str = "text/tab-separated-values";

/// # Errors
/// A server that cannot be reached, and what it refuses.
pub(crate) fn run(command: StreamCommand) -> anyhow::Result<()> {
    match command {
        StreamCommand::Create(arguments) => create::run(&arguments),
        StreamCommand::List(arguments) => list::run(&arguments),
        StreamCommand::Drop(arguments) => remove::run("streams", &arguments),
        StreamCommand::Push(arguments) => push::run(&arguments),
        StreamCommand::Replay(arguments) => replay::run(&arguments),
        StreamCommand::Heartbeat(arguments) => heartbeat::run(&arguments),
        StreamCommand::Register(arguments) => register::run(&arguments),
        StreamCommand::Unregister(arguments) => remove::run("continuous", &arguments),
        StreamCommand::Watch(arguments) => watch::run(&arguments),
    }
}

/// All of a file.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open(path).and_then(|mut file| file.read_to_end(&mut bytes));
    read.with_context(|| format!("{}: cannot read the file", path.display()))?;
    Ok(bytes)
}

/// Opens a file, which is decompressed if its first bytes say that it is compressed, whatever its name says;
/// `-` is standard input.
fn open(path: &Path) -> std::io::Result<Box<dyn BufRead>> {
    let raw: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(stdin()),
        false => Box::new(File::open(path)?),
    };
    let mut file = BufReader::with_capacity(256 << 10, raw);
    Ok(match Compression::from_magic(file.fill_buf()?) {
        Compression::Gzip => Box::new(BufReader::new(MultiGzDecoder::new(file))),
        Compression::Zstd => Box::new(BufReader::new(zstd::Decoder::with_buffer(file)?)),
        _ => Box::new(file),
    })
}

/// The time that a line begins with.
fn time_of(line: &[u8]) -> Option<i64> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    std::str::from_utf8(&line[..tab]).ok()?.parse().ok()
}

/// Times that are read as milliseconds of the first years since 1970, and would be of our time as seconds.
const SECONDS_OF_OUR_TIME: Range<i64> = 100_000_000..100_000_000_000;

/// Says what may be wrong where all tuples, whose times lie between these, were late.
fn hint_at_seconds((first, last): (i64, i64)) {
    if SECONDS_OF_OUR_TIME.contains(&first) && SECONDS_OF_OUR_TIME.contains(&last) {
        note!(
            "all of them were late, and their times look like seconds: the times of a stream are milliseconds \
             since 1970"
        );
    }
}

fn ending(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}
