//! Sinks and options that the tests share.
#![allow(unreachable_pub)]

use jindou_ingest::{IngestError, LoadOptions, Progress, QuadSink, Report, Source, load};
use oxrdf::{Quad, QuadRef};
use std::convert::Infallible;
use std::num::NonZeroUsize;

/// Keeps all quads, in the order in which they come.
#[derive(Default)]
pub struct Collect(pub Vec<Quad>);

impl QuadSink for Collect {
    type Error = Infallible;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), Infallible> {
        self.0.push(quad.into_owned());
        Ok(())
    }
}

pub fn options(threads: usize, chunk_bytes: usize) -> LoadOptions {
    LoadOptions {
        threads: NonZeroUsize::new(threads).unwrap(),
        chunk_bytes: NonZeroUsize::new(chunk_bytes).unwrap(),
        ..LoadOptions::default()
    }
}

/// All quads, sorted by their text, and the report.
pub fn collect(
    sources: Vec<Source>,
    options: &LoadOptions,
) -> Result<(Vec<String>, Report), IngestError> {
    let progress = Progress::default();
    let (sinks, report) = load(sources, options, |_| Collect::default(), &progress)?;
    assert_eq!(sinks.len(), options.threads.get());
    let mut quads: Vec<_> = sinks
        .into_iter()
        .flat_map(|s| s.0)
        .map(|quad| quad.to_string())
        .collect();
    quads.sort();
    assert_eq!(report.quads, quads.len() as u64);
    assert_eq!(progress.quads(), report.quads);
    assert_eq!(progress.bytes_read(), report.bytes_read);
    assert!(
        progress
            .bytes_total()
            .is_none_or(|total| total == report.bytes_read)
            || report.skipped > 0
            || options.share.is_some()
    );
    Ok((quads, report))
}

/// The line and column of a syntax error.
#[track_caller]
pub fn position(error: &IngestError) -> (Option<u64>, Option<u64>) {
    match error {
        IngestError::Syntax(e) => (e.line, e.column),
        other => panic!("not a syntax error: {other}"),
    }
}
