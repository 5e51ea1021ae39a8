//! `jindou backup` and `jindou restore`: a copy of a store, and a store of a copy.

use std::time::Instant;

use jindou_bench::table::{bytes, thousands};
use jindou_engine::{Config, Database};

use crate::args::{BackupArguments, RestoreArguments};
use crate::control::{self, Made};
use crate::open;

/// # Errors
/// A folder that is no store or in use by something else than a server, and what keeps the backup
/// from being made; nothing is left of it then.
pub(crate) fn backup(arguments: &BackupArguments) -> anyhow::Result<()> {
    open::check_new_folder(&arguments.to)?;
    let begin = Instant::now();
    let made: Made = match open::to_copy(&arguments.location, Config::default()) {
        Ok(database) => database.backup(&arguments.to)?.into(),
        Err(error) if open::is_in_use(&error) => {
            control::backup(&arguments.location, &arguments.to)?
        }
        Err(error) => return Err(error),
    };
    let shared = match made.is_linked {
        true => ", which it shares with the store but for the changes since the last merge",
        false => "",
    };
    note!(
        "wrote {} quads, {}{shared}, to {} in {:.2} s",
        thousands(made.quads),
        bytes(made.bytes),
        arguments.to.display(),
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

/// # Errors
/// A backup that is damaged, and what keeps the store from being made; nothing is left of it then.
pub(crate) fn restore(arguments: &RestoreArguments) -> anyhow::Result<()> {
    open::check_there(&arguments.from, "name one that `jindou backup` made")?;
    open::check_new_folder(&arguments.location)?;
    let begin = Instant::now();
    let report = Database::restore(&arguments.from, &arguments.location)?;
    note!(
        "read and copied {} quads, {}, to {} in {:.2} s",
        thousands(report.triples + report.named_quads),
        bytes(report.files.iter().map(|file| file.bytes).sum()),
        arguments.location.display(),
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}
