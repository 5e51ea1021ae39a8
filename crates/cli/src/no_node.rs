//! Where may a server be no node of a cluster? On all systems but Linux, for now.

use std::path::Path;

use anyhow::{anyhow, bail};
use jindou_engine::{Anew, Database};

use crate::cluster_args::ClusterArguments;

/// There is none.
pub(crate) enum Node {}

impl Node {
    /// # Errors
    /// That there is no node here, where the options ask for one.
    pub(crate) fn of(
        arguments: &ClusterArguments,
        _: Option<&Path>,
        _: bool,
    ) -> anyhow::Result<Option<Self>> {
        let asked = (
            &arguments.peers,
            &arguments.node,
            arguments.no_shared_memory,
        );
        match asked {
            (None, None, false) => Ok(None),
            _ => bail!("--peers: nodes of a cluster run on Linux only, for now"),
        }
    }

    pub(crate) fn copy_if_needed(&self, _: &Path, _: bool) -> anyhow::Result<()> {
        match *self {}
    }

    pub(crate) fn on_leaving(&self) -> Option<fn() -> anyhow::Result<()>> {
        match *self {}
    }

    pub(crate) fn makes_store(&self) -> bool {
        match *self {}
    }

    pub(crate) fn join(self, _: &Database) -> anyhow::Result<ToEnd> {
        match self {}
    }
}

/// Why a server is to end.
pub(crate) enum End {
    Anew(Anew),
    Left,
}

/// Only a node of a cluster is ended by this.
pub(crate) struct ToEnd;

impl ToEnd {
    pub(crate) fn never() -> Self {
        Self
    }

    pub(crate) async fn wait(self) -> End {
        std::future::pending().await
    }
}

pub(crate) fn start_anew(_: Anew) -> anyhow::Error {
    anyhow!("nodes of a cluster run on Linux only, for now")
}
