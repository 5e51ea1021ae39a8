//! How are sinks of continuous queries made, dropped and asked about, and what is said of sources?

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use jindou_brokers::{Connectors, Refused, SinkStatus, SourceStatus};
use jindou_engine::{
    Database, EngineError, ResultSink, SinkDefinition, SourceDefinition, StreamStatus, WebError,
};
use serde::Serialize;

use crate::body::Body;
use crate::error::Refusal;
use crate::queries::Client;
use crate::service::{Service, content_type, media_type};
use crate::streams::{JSON, absent, created, described};

/// A stream, and how its source is.
#[derive(Serialize)]
pub(crate) struct Fed {
    #[serde(flatten)]
    status: StreamStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_status: Option<SourceStatus>,
}

impl Fed {
    pub(crate) fn new(status: StreamStatus, database: &Database, connectors: &Connectors) -> Self {
        if status.definition.source.is_none() {
            return Self {
                status,
                source_status: None,
            };
        }
        let source_status = connectors.source(&status.name);
        // Asked again after that: a message counts once its tuples do.
        let status = database.stream(&status.name).unwrap_or(status);
        Self {
            source_status,
            status,
        }
    }
}

/// A sink, and how it is.
#[derive(Serialize)]
pub(crate) struct Sink {
    name: String,
    query: String,
    #[serde(flatten)]
    definition: SinkDefinition,
    /// The number of the last result that it got.
    delivered: u64,
    /// Results that were dropped before it could get them.
    missed: u64,
    #[serde(flatten)]
    status: SinkStatus,
}

impl Sink {
    pub(crate) fn new(sink: &ResultSink, connectors: &Connectors) -> Self {
        let delivered = sink.delivered();
        Self {
            name: sink.name().to_owned(),
            query: sink.query().to_owned(),
            definition: sink.definition().clone(),
            delivered: delivered.sequence,
            missed: delivered.missed,
            status: connectors.sink(sink.number()).unwrap_or_default(),
        }
    }

    /// For metrics: the query, the name, and how it is.
    pub(crate) fn parts(&self) -> (&str, &str, u64, &SinkStatus) {
        (&self.query, &self.name, self.missed, &self.status)
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let status = match refused {
            Refused::NotBuilt { .. } => StatusCode::NOT_IMPLEMENTED,
            Refused::Page {
                reason: WebError::NoAddress { .. },
                ..
            } => StatusCode::BAD_REQUEST,
            Refused::NotAllowed { .. } | Refused::Page { .. } => StatusCode::FORBIDDEN,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, refused.to_string())
    }
}

impl Service {
    /// Refuses a source that is not supported or not allowed, or is one too many.
    pub(crate) async fn check_source(
        &self,
        stream: &str,
        source: Option<&SourceDefinition>,
    ) -> Result<(), Refusal> {
        let Some(source) = source else {
            return Ok(());
        };
        self.connectors.check_source(source)?;
        let name = stream.to_owned();
        let is_known = move |database: &Database| Ok(database.stream(&name).is_some());
        self.check_room(is_known).await
    }

    /// Refuses one source or sink too many, unless it is there.
    async fn check_room(
        &self,
        is_known: impl FnOnce(&Database) -> Result<bool, EngineError> + Send + 'static,
    ) -> Result<(), Refusal> {
        let connectors = Arc::clone(&self.connectors);
        let ask = move |database: &Database| match is_known(database)? {
            true => Ok(Ok(())),
            false => Ok(connectors.check_room()),
        };
        Ok(self.executor.ask(ask).await??)
    }

    /// Answers a request about the sinks of a query.
    pub(crate) async fn sinks(
        &self,
        query: String,
        request: &Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let connectors = Arc::clone(&self.connectors);
        let all = self.executor.ask(move |database| {
            let sinks = database.sinks_of(&query)?;
            let shown = sinks.iter().map(|sink| Sink::new(sink, &connectors));
            Ok(shown.collect::<Vec<_>>())
        });
        self.json(&all.await?, request.headers())
    }

    /// Answers a request about one sink.
    pub(crate) async fn sink(
        &self,
        (query, name): (String, String),
        request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        let connectors = Arc::clone(&self.connectors);
        match *request.method() {
            Method::PUT => self.create_sink((query, name), request, client).await,
            Method::DELETE => {
                let work = move |database: &Database| match database.drop_sink(&query, &name)? {
                    true => {
                        connectors.update();
                        Ok(())
                    }
                    false => Err(absent("sink", &name)),
                };
                self.done(&request, client, work).await
            }
            _ => {
                let one = self
                    .executor
                    .ask(move |database| shown(database, (&query, &name), &connectors));
                self.json(&one.await?, request.headers())
            }
        }
    }

    async fn create_sink(
        &self,
        (query, name): (String, String),
        request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        let kind = media_type(&content_type(request.headers())?);
        if !matches!(&*kind, "" | JSON) {
            let message = format!("a sink is described by {JSON}, not by {kind}");
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let write = self.write_of(described(&request), 0, client);
        let body = self.receive(request).await?;
        let definition: SinkDefinition = serde_json::from_slice(&body.bytes)
            .map_err(|error| Refusal::bad_request(format!("this describes no sink: {error}")))?;
        self.connectors.check_sink(&definition)?;
        let (of, called) = (query.clone(), name.clone());
        let is_known = move |database: &Database| {
            let sinks = database.sinks_of(&of)?;
            Ok(sinks.iter().any(|sink| sink.name() == called))
        };
        self.check_room(is_known).await?;
        let connectors = Arc::clone(&self.connectors);
        let work = move |database: &Database| {
            let is_new = database.create_sink(&query, &name, definition)?;
            connectors.update();
            Ok((is_new, shown(database, (&query, &name), &connectors)?))
        };
        created(self.executor.change(write, work).await?)
    }
}

fn shown(
    database: &Database,
    (query, name): (&str, &str),
    connectors: &Connectors,
) -> Result<Sink, EngineError> {
    let sinks = database.sinks_of(query)?;
    let sink = sinks.iter().find(|sink| sink.name() == name);
    let sink = sink.ok_or_else(|| absent("sink", name))?;
    Ok(Sink::new(sink, connectors))
}
