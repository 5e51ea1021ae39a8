//! `jindou stream`: streams and continuous queries of a running server.

mod client;
mod create;
mod heartbeat;
mod list;
mod push;
mod register;
mod remove;
mod replay;
mod watch;

use std::io::Read;
use std::path::Path;

use anyhow::Context;

use crate::stream_args::StreamCommand;

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
