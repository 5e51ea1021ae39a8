//! How does something that changes the database run?
//!
//! On a thread that it may block, since it waits for its turn and for the device. It is in the
//! list of queries until it has ended, and can be ended from there, or by going away, until it is
//! written.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::HeaderName;
use hyper::{Response, StatusCode};
use jindou_engine::ingest::IngestError;
use jindou_engine::{Database, EngineError, StoreError, UpdateOptions, UpdateReport};
use tokio::sync::oneshot;

use crate::body::{Body, CancelOnDrop};
use crate::error::{Mistake, Refusal};
use crate::execute::{Executor, Stop, Waiting, guarded, no_thread};
use crate::metrics::Ending;
use crate::queries::{Client, Kind, Listed, QueryId, Reason, Running};
use crate::respond;
use crate::threads::{PLAIN_TEXT_BYTES, Purpose, left};

/// Quads that were added and removed, and the snapshot that has them.
const INSERTED: HeaderName = HeaderName::from_static("jindou-inserted");
const DELETED: HeaderName = HeaderName::from_static("jindou-deleted");
const SNAPSHOT: HeaderName = HeaderName::from_static("jindou-snapshot");

/// Something that changes the database.
pub(crate) struct Write {
    /// As the list of queries shows it.
    pub(crate) text: String,
    /// Bytes of text or data that it has to work on.
    pub(crate) size: usize,
    /// From its arrival.
    pub(crate) limit: Duration,
    pub(crate) client: Arc<Client>,
}

impl Executor {
    /// Runs a write to its end.
    pub(crate) async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        write: Write,
        report: fn(&T) -> &UpdateReport,
        work: impl FnOnce(&Database, UpdateOptions) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<(T, QueryId), Refusal> {
        let client = Some(write.client);
        let listed = self
            .queries
            .list(Kind::Update, &write.text, client, write.limit);
        let running = Arc::clone(&listed);
        // Whoever goes away takes it along, if it is not written yet.
        let _cancel = CancelOnDrop::of(&listed);
        let mut waiting = Waiting {
            executor: self,
            query: &running,
            over: false,
        };
        let result = self.write_listed(listed, write.size, work).await;
        waiting.over = true;
        match result {
            Ok(done) => {
                self.wrote(Ending::Ok, &running, Some(report(&done)));
                Ok((done, running.id))
            }
            Err((ending, refusal)) => {
                self.wrote(ending, &running, None);
                let status = refusal.status.as_u16();
                self.queries.failed(running.id, status, &refusal.message);
                Err(refusal.of(running.id))
            }
        }
    }

    fn wrote(&self, ending: Ending, write: &Arc<Running>, report: Option<&UpdateReport>) {
        let elapsed = write.started.elapsed();
        self.metrics.wrote(ending, elapsed, report);
        if let Some(slow) = &self.slow_queries {
            let changed = report.map_or(0, |report| report.inserted + report.deleted);
            slow.ended(write, ending, elapsed, changed);
        }
    }

    pub(crate) async fn write_listed<T: Send + 'static>(
        self: &Arc<Self>,
        listed: Listed,
        size: usize,
        work: impl FnOnce(&Database, UpdateOptions) -> Result<T, EngineError> + Send + 'static,
    ) -> Result<T, (Ending, Refusal)> {
        let refused = |refusal: Refusal| (Ending::of(refusal.status), refusal);
        let place = self.updates.enter(&listed, &self.metrics).await;
        let place = place.map_err(refused)?;
        let (sender, done) = oneshot::channel();
        let executor = Arc::clone(self);
        let work = move || {
            let options = UpdateOptions {
                timeout: Some(left(listed.started, listed.limit)),
                cancellation: Some(listed.token()),
                progress: Some(listed.new_progress()),
                services: Some(executor.services.clone()),
                ..UpdateOptions::default()
            };
            let result = guarded(|| work(&executor.database, options).map_err(Stop::Engine));
            let result = result.map_err(|stop| refusal(stop, &listed));
            drop(place);
            drop(listed);
            // Nobody waits if the client is gone.
            let _ = sender.send(result);
        };
        // Plans of long texts need more stack than the runtime's threads have.
        let purpose = match size <= PLAIN_TEXT_BYTES {
            true => Purpose::LightWrite,
            false => Purpose::Write,
        };
        let started = self.threads.spawn("update", purpose, work);
        started.map_err(|error| refused(no_thread(&error)))?;
        let result = done.await;
        result.unwrap_or_else(|_| Err(refused(Refusal::internal())))
    }
}

/// What the client of a write that failed is told, and how it is counted.
fn refusal(stop: Stop, listed: &Listed) -> (Ending, Refusal) {
    let Stop::Engine(error) = stop else {
        return (Ending::Failed, Refusal::internal());
    };
    let refusal = match error {
        EngineError::Cancelled => {
            let reason = listed.reason().unwrap_or(Reason::Gone);
            let ending = match reason {
                Reason::Request | Reason::Stopped => Ending::Cancelled,
                Reason::Gone | Reason::Stalled => Ending::Abandoned,
            };
            return (ending, Refusal::cancelled(reason));
        }
        EngineError::GraphExists { .. } => {
            return (
                Ending::Refused,
                Refusal::new(StatusCode::CONFLICT, error.to_string()),
            );
        }
        EngineError::GraphAbsent { .. } => Refusal::new(StatusCode::NOT_FOUND, error.to_string()),
        EngineError::Timeout { .. } => Refusal::new(
            StatusCode::GATEWAY_TIMEOUT,
            format!(
                "the update took longer than its limit of {:?}; nothing was changed",
                listed.limit
            ),
        ),
        EngineError::Contended { .. } => {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
        }
        EngineError::ReadOnly { .. } => {
            tracing::error!("{error}");
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
        }
        EngineError::Forbidden { what } => Refusal::new(
            StatusCode::FORBIDDEN,
            format!(
                "{what}: this server may not read it; it may read files of a folder, or what is at \
                 addresses of the web, if it is started with --allow-load FOLDER or --allow-load IRI"
            ),
        ),
        EngineError::DocumentTooLarge { .. } => Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("{error}, which --query-memory sets; `jindou load` reads files of any size"),
        ),
        EngineError::DocumentBeyondPool { .. } => Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "{error}, which is what --memory sets, less a part that is not counted; `jindou load` \
                 reads files of any size"
            ),
        ),
        EngineError::Store(StoreError::TooLarge { reason }) => {
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, reason)
        }
        EngineError::Ingest(error) => document(&error),
        error => error.into(),
    };
    (Ending::of(refusal.status), refusal)
}

/// What is wrong with a document of RDF.
fn document(error: &IngestError) -> Refusal {
    let IngestError::Syntax(error) = error else {
        return Refusal::bad_request(error.to_string());
    };
    let place = match (error.line, error.column) {
        (Some(line), Some(column)) => format!("line {line}, column {column}"),
        (Some(line), None) => format!("line {line}"),
        (None, _) => error.file.to_string(),
    };
    let mistake = error.line.map(|line| Mistake::at(line, error.column));
    Refusal {
        mistake,
        ..Refusal::bad_request(format!("{place}: {}", error.reason))
    }
}

/// The answer to a write: no content, and in its head what was done.
pub(crate) fn written(report: &UpdateReport, query: QueryId) -> Response<Body> {
    written_with(respond::nothing(), report, query)
}

/// An answer to a write, with what was done in its head.
pub(crate) fn written_with(
    mut response: Response<Body>,
    report: &UpdateReport,
    query: QueryId,
) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(INSERTED, report.inserted.into());
    headers.insert(DELETED, report.deleted.into());
    headers.insert(SNAPSHOT, report.snapshot.0.into());
    respond::name(&mut response, query);
    response
}
