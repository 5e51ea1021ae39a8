//! `jindou cluster`: what is there beside `jindou serve --peers`? A cluster on one machine, for a first look, the
//! parts of a store that nodes have, and how the nodes are that run.

#[cfg(target_os = "linux")]
mod dev;
#[cfg(target_os = "linux")]
mod dev_node;
#[cfg(target_os = "linux")]
mod dev_store;
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
        #[cfg(not(target_os = "linux"))]
        ClusterCommand::Dev(_) | ClusterCommand::Split(_) => {
            anyhow::bail!("nodes of a cluster run on Linux only, for now")
        }
        ClusterCommand::Status(arguments) => status::run(&arguments),
    }
}
