//! What is there of this where there are no Unix sockets?

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use jindou_engine::Database;
use tokio::sync::watch;

use super::{Made, Merged};

/// A socket that cannot be.
pub(crate) struct Control(Infallible);

impl Control {
    pub(crate) async fn serve(self, _stopping: watch::Receiver<()>) {
        match self.0 {}
    }
}

pub(crate) fn listen(_store: &Path, _database: &Database, _wait: Duration) -> Option<Control> {
    None
}

/// # Errors
/// Always.
pub(crate) fn backup(store: &Path, _to: &Path) -> anyhow::Result<Made> {
    bail!(refusal(store, "a backup"))
}

/// # Errors
/// Always.
pub(crate) fn compact(store: &Path, _renumber: bool) -> anyhow::Result<Merged> {
    bail!(refusal(store, "a merge"))
}

fn refusal(store: &Path, what: &str) -> String {
    format!(
        "{}: another process is using this store, and cannot be asked for {what} on this system; \
         end it first",
        store.display()
    )
}
