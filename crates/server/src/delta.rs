//! How do the quads that an update changed reach its client?
//!
//! As JSON or as an RDF Patch, which are written part by part while the client reads: the update is
//! done and holds up nobody.

use std::sync::Arc;

use bytes::Bytes;
use hyper::header::{HeaderValue, VARY};
use hyper::{Response, StatusCode};
use jindou_engine::results::{Offer, QuadText, TermText, negotiate, write_term};
use jindou_engine::{EngineError, SnapshotNumber, UpdateDelta};
use tokio::sync::mpsc;

use crate::body::{Body, Chunk};
use crate::error::Refusal;
use crate::execute::Executor;
use crate::respond;

/// Quads written at once.
const PART_QUADS: usize = 512;
/// Parts that wait for a slow client, at most.
const QUEUED_PARTS: usize = 1;

/// How a delta is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeltaFormat {
    Json,
    /// RDF Patch, as of Apache Jena: https://afs.github.io/rdf-delta/rdf-patch.html
    Patch,
}

const OFFERS: &[Offer<DeltaFormat>] = &[
    Offer::new("application/json", DeltaFormat::Json),
    Offer::new("application/rdf-patch", DeltaFormat::Patch),
];

impl DeltaFormat {
    /// The one that a client accepts.
    pub(crate) fn of(accept: &str) -> Result<Self, Refusal> {
        negotiate(accept, OFFERS)
            .map(|offer| offer.format)
            .ok_or_else(|| {
                let message = format!(
                    "what an update changed is not available as {accept}; available: \
                     application/json, application/rdf-patch"
                );
                Refusal::new(StatusCode::NOT_ACCEPTABLE, message)
            })
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Patch => "application/rdf-patch",
        }
    }
}

/// A delta of which a part is written.
struct DeltaWriter {
    delta: UpdateDelta,
    format: DeltaFormat,
    snapshot: SnapshotNumber,
    /// Quads written: in JSON those added come first, in a patch those removed.
    written: usize,
    is_begun: bool,
}

impl DeltaWriter {
    /// The next part, and whether it is the last one.
    fn part(&mut self) -> Result<(Vec<u8>, bool), EngineError> {
        let mut out = Vec::new();
        if !self.is_begun {
            self.is_begun = true;
            match self.format {
                DeltaFormat::Json => {
                    let head = format!("{{\"snapshot\":{},\"added\":[", self.snapshot.0);
                    out.extend_from_slice(head.as_bytes());
                }
                DeltaFormat::Patch => out.extend_from_slice(b"TX .\n"),
            }
        }
        let (added, removed) = (self.delta.added(), self.delta.removed());
        let (written, end) = (self.written, self.written + PART_QUADS);
        match self.format {
            DeltaFormat::Json => {
                let mut is_first = written == 0;
                self.delta.for_each_added(written..end, |quad| {
                    json_line(&mut out, quad, std::mem::take(&mut is_first));
                    Ok::<(), EngineError>(())
                })?;
                if written <= added && end > added {
                    out.extend_from_slice(b"],\"removed\":[");
                }
                let numbers = written.saturating_sub(added)..end.saturating_sub(added);
                let mut is_first = numbers.start == 0;
                self.delta.for_each_removed(numbers, |quad| {
                    json_line(&mut out, quad, std::mem::take(&mut is_first));
                    Ok::<(), EngineError>(())
                })?;
            }
            DeltaFormat::Patch => {
                self.delta.for_each_removed(written..end, |quad| {
                    patch_line(&mut out, b'D', quad);
                    Ok::<(), EngineError>(())
                })?;
                let numbers = written.saturating_sub(removed)..end.saturating_sub(removed);
                self.delta.for_each_added(numbers, |quad| {
                    patch_line(&mut out, b'A', quad);
                    Ok::<(), EngineError>(())
                })?;
            }
        }
        self.written = end;
        let is_last = end > added + removed;
        if is_last {
            out.extend_from_slice(match self.format {
                DeltaFormat::Json => b"]}\n",
                DeltaFormat::Patch => b"TC .\n",
            });
        }
        Ok((out, is_last))
    }
}

/// A line of N-Quads, without its end, as a string of JSON.
fn json_line(out: &mut Vec<u8>, quad: QuadText<'_>, is_first: bool) {
    if !is_first {
        out.push(b',');
    }
    let mut line = Vec::new();
    push_terms(&mut line, quad);
    line.push(b'.');
    let line = String::from_utf8_lossy(&line);
    let line = serde_json::to_string(&line).expect("a string is JSON");
    out.extend_from_slice(line.as_bytes());
}

fn patch_line(out: &mut Vec<u8>, what: u8, quad: QuadText<'_>) {
    out.extend_from_slice(&[what, b' ']);
    push_terms(out, quad);
    out.extend_from_slice(b".\n");
}

fn push_terms(out: &mut Vec<u8>, quad: QuadText<'_>) {
    let predicate = TermText::Iri(quad.predicate);
    let terms = [quad.subject, predicate, quad.object];
    for term in terms.into_iter().chain(quad.graph) {
        write_term(out, term, false);
        out.push(b' ');
    }
}

impl Executor {
    /// An answer with the quads that an update changed.
    pub(crate) fn delta(
        self: &Arc<Self>,
        delta: UpdateDelta,
        format: DeltaFormat,
        snapshot: SnapshotNumber,
    ) -> Response<Body> {
        let (sender, chunks) = mpsc::channel(QUEUED_PARTS);
        let writer = DeltaWriter {
            delta,
            format,
            snapshot,
            written: 0,
            is_begun: false,
        };
        tokio::spawn(Arc::clone(self).send_delta(writer, sender));
        let mut response = respond::with_body(format.media_type(), Body::Events(chunks));
        let vary = HeaderValue::from_static("accept");
        response.headers_mut().insert(VARY, vary);
        response
    }

    /// Sends a delta as fast as its client reads; what cannot be read is cut short.
    async fn send_delta(self: Arc<Self>, mut writer: DeltaWriter, chunks: mpsc::Sender<Chunk>) {
        loop {
            let written = self.ask(move |_| writer.part().map(|part| (writer, part)));
            let Ok((next, (bytes, is_last))) = written.await else {
                return;
            };
            writer = next;
            let is_gone = chunks.send(Chunk::Data(Bytes::from(bytes))).await.is_err();
            if is_gone {
                return;
            }
            if is_last {
                // A client that is gone now has all.
                let _ = chunks.send(Chunk::End).await;
                return;
            }
        }
    }
}
