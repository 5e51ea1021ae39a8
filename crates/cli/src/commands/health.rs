//! `jindou health`: is a server well? What runs containers and services asks so.

use clap::CommandFactory;

use super::stream::{Asking, Client};
use crate::args::{Arguments, HealthArguments};
use crate::output;
use crate::sources::Listening;

/// # Errors
/// A server that cannot be reached, does not answer in time, or is not well.
pub(crate) fn run(arguments: &HealthArguments) -> anyhow::Result<()> {
    let mut server = arguments.server.clone();
    let mut asking = Asking {
        limit: Some(arguments.timeout),
        ..Asking::default()
    };
    if server.url.is_none() {
        let listening = Listening::of_environment(&Arguments::command())?;
        server.url = Some(listening.url());
        // Its certificate is for a name, and it is asked by an address of this machine. So it gets no
        // credentials, which it does not ask for here.
        asking.trusts_any = listening.is_tls && server.identity.ca.is_none();
        (server.identity.user, server.identity.token) = (None, None);
    }
    let health = Client::asking(&server, asking)?.get("/health")?;
    output::print(&format!("{health}\n"))
}
