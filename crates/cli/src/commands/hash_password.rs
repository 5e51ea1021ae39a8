//! `jindou hash-password`: what a file of credentials says about a password or a token.

use std::io::{self, BufRead, IsTerminal};

use anyhow::{Context, bail};
use jindou_server::{hash_password, new_token};

use crate::args::HashPasswordArguments;
use crate::output;

/// # Errors
/// A password that is empty or cannot be read.
pub(crate) fn run(arguments: &HashPasswordArguments) -> anyhow::Result<()> {
    let (secret, hash, kind) = match arguments.token {
        true => {
            let (token, hash) = new_token()?;
            (Some(token), hash, "token:")
        }
        false => (None, hash_password(password()?.as_bytes())?, ""),
    };
    let line = match (&arguments.name, arguments.role) {
        (Some(name), Some(role)) => format!("{kind}{name}:{role}:{hash}\n"),
        _ => format!("{hash}\n"),
    };
    if let Some(secret) = secret {
        // The line alone goes into the file.
        note!("the token, which is not shown again: {secret}");
    }
    output::print(&line)
}

/// From the terminal, unseen and twice, or the first line of standard input.
fn password() -> anyhow::Result<String> {
    let password = match io::stdin().is_terminal() {
        true => {
            let read = |prompt| rpassword::prompt_password(prompt).context("reading the password");
            let first = read("password: ")?;
            if read("again: ")? != first {
                bail!("the two passwords differ");
            }
            first
        }
        false => {
            let mut line = String::new();
            let read = io::stdin().lock().read_line(&mut line);
            read.context("reading the password from standard input")?;
            line.trim_end_matches(['\r', '\n']).to_owned()
        }
    };
    match password.is_empty() {
        true => bail!("the password is empty"),
        false => Ok(password),
    }
}
