//! `jindou stream drop` and `unregister`: what is taken away?

use super::client::{Client, Refused};
use crate::stream_args::DropArguments;

/// `kind` is the collection that it is of.
///
/// # Errors
/// A server that cannot be reached, and what it refuses.
pub(super) fn run(kind: &str, arguments: &DropArguments) -> anyhow::Result<()> {
    let path = format!("/{kind}/{}", arguments.name);
    let gone = Client::new(&arguments.server)?.ask("DELETE", &path, None)?;
    gone.map_err(Refused::error)?;
    Ok(())
}
