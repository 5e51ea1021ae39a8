//! What is there of this where there are no Unix sockets?

use std::convert::Infallible;
use std::path::Path;

use anyhow::bail;
use jindou_engine::Database;
use tokio::sync::watch;

use super::Made;

/// A socket that cannot be.
pub(crate) struct Control(Infallible);

impl Control {
    pub(crate) async fn serve(self, _stopping: watch::Receiver<()>) {
        match self.0 {}
    }
}

pub(crate) fn listen(_store: &Path, _database: &Database) -> Option<Control> {
    None
}

/// # Errors
/// Always.
pub(crate) fn backup(store: &Path, _to: &Path) -> anyhow::Result<Made> {
    bail!(
        "{}: another process is using this store, and cannot be asked for a backup on this system; \
         end it first",
        store.display()
    )
}
