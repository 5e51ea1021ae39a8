//! What is logged, where and how: which options say so?

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, ValueEnum};
use jindou_server::{Log, LogFormat, LogTarget, ServerConfig, SlowQueries};

use crate::values::parse_any_duration;

/// What is logged.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Logs")]
pub(crate) struct LogArguments {
    /// File that gets a line for each request, or `-` for standard output: who sent it when, its method and
    /// path, the status, bytes and seconds of the answer; no text of a query. Files of logs are opened again
    /// on SIGHUP
    #[arg(long, value_name = "FILE", value_parser = parse_target)]
    pub(crate) access_log: Option<LogTarget>,
    /// Note queries and updates that take as long, or longer, as in 500ms; 0 is all of them
    #[arg(
        long,
        value_name = "TIME",
        value_parser = parse_any_duration,
        requires = "slow_query_log",
        allow_negative_numbers = true
    )]
    pub(crate) slow_queries: Option<Duration>,
    /// File that gets a line for each of these, or `-` for standard output: the first 4,096 bytes of the
    /// text, seconds, rows, how it ended, and who sent it
    #[arg(long, value_name = "FILE", value_parser = parse_target, requires = "slow_queries")]
    pub(crate) slow_query_log: Option<LogTarget>,
    /// Form of these logs and of the program's own lines on standard error
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub(crate) log_format: LogFormatArgument,
}

/// How a line of a log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormatArgument {
    /// For people and tools of lines: requests in the Common Log Format, with the seconds at the end, and
    /// slow queries as name=value
    #[default]
    Text,
    /// An object of JSON on each line
    Json,
}

/// A file, or `-`.
fn parse_target(text: &str) -> Result<LogTarget, String> {
    match text {
        "" => Err("give a file, or -".to_owned()),
        "-" => Ok(LogTarget::Standard),
        path => Ok(LogTarget::File(PathBuf::from(path))),
    }
}

impl LogArguments {
    /// Opens the logs that were asked for, and puts them into the settings of a server.
    ///
    /// # Errors
    /// Files that cannot be written.
    pub(crate) fn apply(&self, config: &mut ServerConfig) -> anyhow::Result<()> {
        let format = match self.log_format {
            LogFormatArgument::Text => LogFormat::Text,
            LogFormatArgument::Json => LogFormat::Json,
        };
        let open = |target: &LogTarget, option: &str| {
            let log = Log::open(target.clone(), format);
            log.with_context(|| format!("{option} {target}"))
        };
        if let Some(target) = &self.access_log {
            config.access_log = Some(open(target, "--access-log")?);
        }
        if let Some((from, target)) = self.slow_queries.zip(self.slow_query_log.as_ref()) {
            // One file has one writer.
            let log = match (&self.access_log, &config.access_log) {
                (Some(same), Some(log)) if same == target => log.clone(),
                _ => open(target, "--slow-query-log")?,
            };
            config.slow_queries = Some(SlowQueries { from, log });
        }
        Ok(())
    }
}
