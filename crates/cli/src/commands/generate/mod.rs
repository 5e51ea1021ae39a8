//! `jindou generate`: benchmark data as files.

mod literals;
mod lsbench;
mod lubm;
mod output;

use crate::args::GenerateCommand;

/// # Errors
/// What keeps files from being written; parts of them may be left.
pub(crate) fn run(command: GenerateCommand) -> anyhow::Result<()> {
    match command {
        GenerateCommand::Lubm(arguments) => lubm::run(&arguments),
        GenerateCommand::Literals(arguments) => literals::run(&arguments),
        GenerateCommand::Lsbench(arguments) => lsbench::run(&arguments),
    }
}
