//! `jindou prefixes`: which names does a store know for the beginnings of IRIs?

use anyhow::bail;
use jindou_engine::{Config, PrefixTable};

use crate::args::PrefixesArguments;
use crate::{open, output};

/// # Errors
/// A folder that is no store, or in use where something is to be changed; names and IRIs that are none;
/// a name to be removed that is not there. Nothing is changed then.
pub(crate) fn run(arguments: &PrefixesArguments) -> anyhow::Result<()> {
    let location = &arguments.location;
    if arguments.set.is_empty() && arguments.remove.is_empty() {
        let table = open::to_read(location, Config::default())?.prefixes();
        return print(&table, arguments.turtle);
    }
    let database =
        open::stored(location, Config::default()).map_err(|error| {
            match open::is_in_use(&error) {
                true => {
                    error.context("prefixes of a store that is served are changed by PUT /prefixes")
                }
                false => error,
            }
        })?;
    let mut changed = PrefixTable::clone(&database.prefixes());
    for name in &arguments.remove {
        let name = name.strip_suffix(':').unwrap_or(name);
        if !changed.remove(name) {
            bail!("the store knows no prefix {name}:");
        }
    }
    for pair in &arguments.set {
        changed.set(&pair.name, &pair.iri)?;
    }
    // The store is this process's own, so nobody has changed them meanwhile.
    database.set_prefixes(changed)?;
    Ok(())
}

fn print(table: &PrefixTable, as_turtle: bool) -> anyhow::Result<()> {
    if as_turtle {
        return output::print(&table.to_turtle());
    }
    // Names with their colons, below the head.
    let widest = table.iter().map(|(name, _)| name.chars().count() + 1).max();
    let width = widest.unwrap_or(0).max("prefix".len());
    let mut shown = format!("{:<width$}  IRI\n", "prefix");
    for (name, iri) in table.iter() {
        shown.push_str(&format!("{:<width$}  {iri}\n", format!("{name}:")));
    }
    output::print(&shown)
}
