//! `jindou cluster`: what is there beside `jindou serve --peers`? A cluster on one machine, for a first look, and the
//! parts of a store that nodes have.

#[cfg(target_os = "linux")]
mod dev;
#[cfg(target_os = "linux")]
mod dev_node;
#[cfg(target_os = "linux")]
mod dev_store;
#[cfg(target_os = "linux")]
mod split;

use crate::cluster_args::ClusterCommand;

/// # Errors
/// A store or files that cannot be served, and what the operating system refuses.
#[cfg(target_os = "linux")]
pub(crate) fn run(command: ClusterCommand) -> anyhow::Result<()> {
    match command {
        ClusterCommand::Dev(arguments) => dev::run(arguments),
        ClusterCommand::Split(arguments) => split::run(&arguments),
    }
}

/// # Errors
/// That there are none.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: ClusterCommand) -> anyhow::Result<()> {
    anyhow::bail!("nodes of a cluster run on Linux only, for now")
}
