//! How is an error said, and with which exit status does the command end?

use std::fmt;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use jindou_bench::BenchError;
use jindou_engine::ingest::IngestError;
use jindou_engine::results::WriteError;
use jindou_engine::{EngineError, StoreError};

use crate::interrupt::Interrupted;
use jindou_engine::printable;

/// The exit status of what Ctrl-C ended, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Prints `error: what, where and what to do` on standard error, and the line of a query that is
/// wrong with a caret; gives the exit status, 1, or 130
/// after Ctrl-C. A
/// reader that went away (as in `jindou ... | head`) wanted no more: no line then, and status 0.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if is_broken_pipe(error) {
        return ExitCode::SUCCESS;
    }
    let color = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let (before, after) = if color {
        ("\x1b[1;31m", "\x1b[0m")
    } else {
        ("", "")
    };
    note!("{before}error:{after} {}", one_line(error));
    if let Some(wrong) = error.downcast_ref::<WrongQuery>() {
        note!("{}", wrong.excerpt);
    }
    if error.is::<Interrupted>() {
        return ExitCode::from(INTERRUPTED);
    }
    ExitCode::FAILURE
}

/// A mistake in the text of a query or an update.
#[derive(Debug)]
pub(crate) struct WrongQuery {
    /// What and where.
    pub(crate) said: String,
    /// The line with a caret below the place.
    pub(crate) excerpt: String,
}

impl fmt::Display for WrongQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl std::error::Error for WrongQuery {}

/// Characters that are shown before and after a mistake at most.
const SHOWN_AROUND: usize = 60;

/// The line of a text with a caret below a column; line and column count from 1.
pub(crate) fn excerpt(text: &str, line: usize, column: usize) -> String {
    let line = text
        .split('\n')
        .nth(line.saturating_sub(1))
        .unwrap_or_default();
    let before = column.saturating_sub(1);
    let first = before.saturating_sub(SHOWN_AROUND);
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    let part = line.trim_end().chars().skip(first);
    let part: String = part.take(2 * SHOWN_AROUND).map(shown).collect();
    format!("  {part}\n  {}^", " ".repeat(before - first))
}

/// Whether the reader of what the command writes went away. The pipes of a database are others: those to other nodes
/// of a cluster.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_of_database = error
        .chain()
        .any(<dyn std::error::Error>::is::<EngineError>);
    !is_of_database
        && error.chain().any(|cause| {
            cause
                .downcast_ref::<io::Error>()
                .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
        })
}

/// The error and its causes, each said once, with what to do about it.
fn one_line(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let said = cause.to_string();
        // Many errors print their cause themselves.
        if text.contains(&said) {
            continue;
        }
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&said);
    }
    if let Some(advice) = error.chain().find_map(advice) {
        text.push_str("; ");
        text.push_str(advice);
    }
    let words = text.split(['\n', '\r', '\t']).map(str::trim);
    let lines: Vec<&str> = words.filter(|line| !line.is_empty()).collect();
    // Some of it is of a server, or of a file.
    printable(&lines.join(" ")).into_owned()
}

fn advice(cause: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    if let Some(BenchError::Engine(error)) = cause.downcast_ref() {
        return engine_advice(error);
    }
    if let Some(WriteError::Query(error)) = cause.downcast_ref() {
        return engine_advice(error);
    }
    engine_advice(cause.downcast_ref::<EngineError>()?)
}

fn engine_advice(error: &EngineError) -> Option<&'static str> {
    match error {
        EngineError::ServiceNotAllowed { .. } => {
            Some("allow it with --allow-service PREFIX, or --allow-service any")
        }
        EngineError::Store(StoreError::Locked { .. }) => Some(
            "if it is a server, send queries to its /query and updates to its /update, as with \
             `curl --data-binary @FILE -H 'Content-Type: application/sparql-update' \
             http://ADDR:PORT/update`, at the address that it printed (it merges changes by \
             itself); otherwise wait until it has ended, or end it",
        ),
        #[cfg(target_os = "linux")]
        EngineError::NodeAddress { source, .. } => match source.kind() {
            io::ErrorKind::AddrInUse => Some(
                "another program has the port, which may be this node, running already; end it, or \
                 change the address in the list of each node",
            ),
            io::ErrorKind::AddrNotAvailable => {
                Some("the address is none of this machine; check --node")
            }
            _ => None,
        },
        EngineError::Timeout { .. } => Some("allow more with --timeout SECONDS"),
        EngineError::Ingest(IngestError::Syntax(error)) if is_owl_xml(&error.file) => Some(
            "the file looks like OWL/XML, which is no RDF; save the ontology as RDF/XML or Turtle",
        ),
        EngineError::Ingest(IngestError::Syntax(_)) => {
            Some("mend the file, or leave such statements out with --lenient")
        }
        EngineError::Ingest(IngestError::Io { source, .. })
            if source.kind() == io::ErrorKind::NotFound =>
        {
            Some("check the name of the file")
        }
        _ => None,
    }
}

/// Bytes of a file in which the beginning of its first element is looked for.
const BEGINNING_BYTES: u64 = 4096;

/// Whether a file is an ontology in OWL 2 XML, which often has the ending of RDF/XML.
fn is_owl_xml(file: &str) -> bool {
    // A pipe is not read again.
    if !std::fs::metadata(file).is_ok_and(|metadata| metadata.is_file()) {
        return false;
    }
    let mut beginning = Vec::new();
    let read =
        File::open(file).and_then(|file| file.take(BEGINNING_BYTES).read_to_end(&mut beginning));
    let text = String::from_utf8_lossy(&beginning);
    read.is_ok()
        && text.contains("<Ontology")
        && text.contains("http://www.w3.org/2002/07/owl#")
        // RDF/XML, in which an ontology is an element inside of this one.
        && !text.contains(":RDF")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_reader_that_went_away_is_no_node_that_did() {
        let broken = || io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(
            &anyhow::Error::new(broken()).context("standard output")
        ));
        let path = "file".into();
        let of_database = EngineError::Io {
            path,
            source: broken(),
        };
        assert!(!is_broken_pipe(
            &anyhow::Error::new(of_database).context("loading")
        ));
    }

    #[test]
    fn causes_are_said_once_and_on_one_line() {
        let inner = io::Error::other("disk\n  on fire");
        let error = anyhow::Error::new(inner).context("writing a: disk\n  on fire");
        assert_eq!(one_line(&error), "writing a: disk on fire");
        let error = Err::<(), _>(io::Error::other("full")).context("writing b");
        assert_eq!(one_line(&error.unwrap_err()), "writing b: full");
        let sly = anyhow::anyhow!("a\r\n\tb \u{1b}[2Jc\u{9b}1m");
        assert_eq!(one_line(&sly), "a b \\u{1b}[2Jc\\u{9b}1m");
    }

    #[test]
    fn an_excerpt_has_a_caret_below_the_place() {
        assert_eq!(excerpt("ASK {\n\té x\r\n}", 2, 4), "   é x\n     ^");
        assert_eq!(excerpt("ASK {", 1, 6), "  ASK {\n       ^");
        let long = format!("{}!{}", "a".repeat(100), "b".repeat(100));
        let (before, after) = ("a".repeat(60), "b".repeat(59));
        let caret = format!("{}^", " ".repeat(62));
        assert_eq!(
            excerpt(&long, 1, 101),
            format!("  {before}!{after}\n{caret}")
        );
        assert_eq!(excerpt("", 7, 0), "  \n  ^");
    }

    #[test]
    fn a_broken_pipe_is_found_below_its_context() {
        let inner = io::Error::from(io::ErrorKind::BrokenPipe);
        let error = Err::<(), _>(inner)
            .context("writing the result")
            .unwrap_err();
        assert!(is_broken_pipe(&error));
        assert!(!is_broken_pipe(&anyhow::anyhow!("broken pipe")));
    }
}
