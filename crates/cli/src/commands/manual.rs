//! `jindou completions` and `jindou manual`: what shells and man know about the command.

use std::fs;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Arguments, CompletionsArguments, ManualArguments};
use crate::output;

/// # Errors
/// Those of writing.
pub(crate) fn completions(arguments: &CompletionsArguments) -> anyhow::Result<()> {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "jindou", &mut script);
    output::print(&String::from_utf8(script).context("the script is no text")?)
}

/// # Errors
/// A folder that cannot be written.
pub(crate) fn pages(arguments: &ManualArguments) -> anyhow::Result<()> {
    let folder = &arguments.folder;
    let named = || format!("{}: cannot write the pages", folder.display());
    fs::create_dir_all(folder).with_context(named)?;
    clap_mangen::generate_to(Arguments::command(), folder).with_context(named)
}
