//! `jindou health`: is a server well? What runs containers and services asks so.

use super::stream::Client;
use crate::args::HealthArguments;
use crate::output;

/// # Errors
/// A server that cannot be reached, or is not well.
pub(crate) fn run(arguments: &HealthArguments) -> anyhow::Result<()> {
    let health = Client::new(&arguments.server)?.get("/health")?;
    output::print(&format!("{health}\n"))
}
