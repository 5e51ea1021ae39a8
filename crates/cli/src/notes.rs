//! How does the program say something on standard error: to people, or to what collects logs?

use std::fmt::Arguments;
use std::io::{IsTerminal as _, Write as _};
use std::sync::OnceLock;

use chrono::{SecondsFormat, Utc};
use serde_json::json;
use tracing_subscriber::EnvFilter;

use crate::log_args::LogFormatArgument;

/// As `start` was asked, once for the process as the subscriber is.
static FORMAT: OnceLock<LogFormatArgument> = OnceLock::new();

/// Prints warnings and errors from here on, or what the variable `JINDOU_LOG` asks for (`debug`,
/// `jindou_server=info`), and notes, in this form.
pub(crate) fn start(format: LogFormatArgument) {
    let format = *FORMAT.get_or_init(|| format);
    let filter = EnvFilter::try_from_env("JINDOU_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // It would tell standard error, and panic, that standard error is gone.
        .log_internal_errors(false);
    match format {
        LogFormatArgument::Text => subscriber.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormatArgument::Json => subscriber.json().flatten_event(true).init(),
    }
}

/// Prints a line. That nobody reads it, as where the log's reader has ended, is no reason to end:
/// `eprintln!` panics then.
pub(crate) fn print(note: Arguments<'_>) {
    let mut out = std::io::stderr();
    let _unread = match FORMAT.get() {
        Some(LogFormatArgument::Json) => {
            let time = Utc::now().to_rfc3339_opts(SecondsFormat::Micros, true);
            let note = note.to_string();
            // As the subscriber has it.
            let line = json!({ "timestamp": time, "level": "NOTE", "message": note });
            writeln!(out, "{line}")
        }
        _ => writeln!(out, "{note}"),
    };
}
