//! `jindou stream heartbeat`: up to when is a stream complete?

use super::client::{Client, Refused};
use crate::stream_args::HeartbeatArguments;

/// # Errors
/// A server that cannot be reached, and what it refuses.
pub(super) fn run(arguments: &HeartbeatArguments) -> anyhow::Result<()> {
    beat(
        &Client::new(&arguments.server)?,
        &arguments.name,
        arguments.time,
    )
}

/// Says that nothing before a time will come any more; a stream with times of arrival takes none.
pub(super) fn beat(client: &Client, name: &str, time: Option<i64>) -> anyhow::Result<()> {
    let mut path = format!("/streams/{name}/heartbeat");
    if let Some(time) = time {
        path += &format!("?time={time}");
    }
    client.ask("POST", &path, None)?.map_err(Refused::error)?;
    Ok(())
}
