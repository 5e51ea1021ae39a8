//! `jindou load`: files become a store in a folder.

use jindou_engine::Config;

use crate::args::LoadArguments;
use crate::open;

/// # Errors
/// What keeps the store from being made; nothing is left of it then.
pub(crate) fn run(arguments: LoadArguments) -> anyhow::Result<()> {
    let sources = open::sources(&arguments.files, &arguments.read, arguments.base.as_ref())?;
    let mut options = open::load_options(&arguments.read)?;
    options.graph = arguments.graph;
    if let Some(threads) = arguments.threads {
        options.threads = threads;
    }
    let mut config = Config::default();
    config.union_default_graph = arguments.union_default_graph;
    open::create(&arguments.location, sources, &options, config)?;
    Ok(())
}
