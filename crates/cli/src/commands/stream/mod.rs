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
use std::path::Path;

use anyhow::Context;
use flate2::bufread::MultiGzDecoder;
use jindou_engine::ingest::Compression;

use crate::stream_args::StreamCommand;
pub(crate) use client::{Asking, Client};

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

fn ending(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}
