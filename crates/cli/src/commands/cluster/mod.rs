//! `jindou cluster`: what is there beside `jindou serve --peers`? A cluster on one machine, for a first look, the
//! parts of a store that nodes have, how the nodes are that run, and which come and go.

#[cfg(target_os = "linux")]
mod dev;
#[cfg(target_os = "linux")]
mod dev_node;
#[cfg(target_os = "linux")]
mod dev_store;
#[cfg(target_os = "linux")]
mod list;
#[cfg(target_os = "linux")]
mod split;
mod status;

use crate::cluster_args::ClusterCommand;

/// # Errors
/// A store or files that cannot be served, what the operating system refuses, and a cluster that is not whole where it is
/// asked how it is.
pub(crate) fn run(command: ClusterCommand) -> anyhow::Result<()> {
    match command {
        #[cfg(target_os = "linux")]
        ClusterCommand::Dev(arguments) => dev::run(arguments),
        #[cfg(target_os = "linux")]
        ClusterCommand::Split(arguments) => split::run(&arguments),
        #[cfg(target_os = "linux")]
        ClusterCommand::Add(arguments) => list::add(&arguments),
        #[cfg(target_os = "linux")]
        ClusterCommand::Drain(arguments) => list::drain(&arguments),
        #[cfg(not(target_os = "linux"))]
        ClusterCommand::Dev(_)
        | ClusterCommand::Split(_)
        | ClusterCommand::Add(_)
        | ClusterCommand::Drain(_) => {
            anyhow::bail!("nodes of a cluster run on Linux only, for now")
        }
        ClusterCommand::Status(arguments) => status::run(&arguments),
    }
}
