//! `jindou stream register`: how is a text registered, and a mistake in it shown?

use anyhow::anyhow;

use super::client::Client;
use super::read;
use crate::stream_args::RegisterArguments;

/// The media type of continuous queries.
const TEXT: &str = "application/sparql-query";

/// # Errors
/// A server that cannot be reached, and what it refuses.
pub(super) fn run(arguments: &RegisterArguments) -> anyhow::Result<()> {
    let name = arguments.file.display().to_string();
    let text = String::from_utf8(read(&arguments.file)?)
        .map_err(|_| anyhow!("{name}: the text is not UTF-8"))?;
    let path = format!("/continuous/{}", arguments.name);
    let client = Client::new(&arguments.server)?;
    let made = client.ask("PUT", &path, Some((TEXT, text.as_bytes())))?;
    made.map_err(|refused| refused.error_in(&text, &name))?;
    Ok(())
}
