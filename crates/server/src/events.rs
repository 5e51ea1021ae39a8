//! How do results of continuous queries reach those who wait for them?
//!
//! As server-sent events, as messages of a socket, or as columns ([`crate::result_columns`]): a task for each reader takes results from the log of its query, writes them
//! and waits until the client has taken them. The engine waits for nobody; it drops the oldest results
//! of its log, and a reader that was too slow for some is told how many it missed.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode};
use jindou_engine::results::{
    BooleanFormat, Offer, RESULT_COLUMNS_BYTES, ResultColumns, ResultsError, SolutionsFormat,
    SolutionsWriter, TermText, negotiate, result_id, result_members, write_boolean,
};
use jindou_engine::{
    Answer, ContinuousResult, ContinuousResults, Database, NextResult, Reservation, Rows,
};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use crate::body::{Body, Chunk};
use crate::error::Refusal;
use crate::pieces::{self, Part};
use crate::respond;
use crate::result_columns::columns_of;
use crate::result_request::{Begin, Slow};
use crate::service::{self, Service};

/// Tells a proxy of the kind of nginx to pass events on as they come.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Events are sent when there are so many bytes of them, or none follows at once.
const FULL_BYTES: usize = 32 << 10;
/// What a chunk holds at most: it may have been all but full before a cell without long texts came, or a
/// piece of one.
const CHUNK_BYTES: usize = 2 * FULL_BYTES;
const _: () = assert!(3 * 7 * pieces::PIECE_BYTES < FULL_BYTES);
/// Chunks that wait for a slow client, at most.
const QUEUED_CHUNKS: usize = 1;
/// What a reader holds: chunks made, waiting and being written.
const READER_BYTES: usize = (QUEUED_CHUNKS + 3) * CHUNK_BYTES;
/// When to come again to a server that has as many readers as it may, in seconds.
const COME_AGAIN_SECONDS: u32 = 5;

/// All readers of results.
pub(crate) struct Readers {
    places: Arc<Semaphore>,
    most: usize,
    keep_alive: Duration,
    pub(crate) stopping: watch::Sender<bool>,
}

impl Readers {
    /// At most so many at once, each of which hears something so often.
    pub(crate) fn new(most: usize, keep_alive: Duration) -> Self {
        let most = most.min(Semaphore::MAX_PERMITS);
        Self {
            places: Arc::new(Semaphore::new(most)),
            most,
            keep_alive,
            stopping: watch::Sender::new(false),
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.most - self.places.available_permits()
    }

    /// Ends all of them.
    pub(crate) fn stop(&self) {
        self.stopping.send_replace(true);
    }

    fn place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let message = format!(
                "{} clients read results of continuous queries, as many as --result-readers lets; \
                 try again later",
                self.most
            );
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message).come_again(COME_AGAIN_SECONDS)
        })
    }
}

impl Service {
    /// The results of a continuous query as they come, after the last that the client has seen.
    pub(crate) async fn results(
        &self,
        name: String,
        request: &Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        let accept = service::accept(request.headers());
        let offer = negotiate(&accept, OFFERS).ok_or_else(|| {
            let message = format!("results come as {EVENT_STREAM} or {ARROW_STREAM}");
            Refusal::new(StatusCode::NOT_ACCEPTABLE, message)
        })?;
        let framing = offer.format;
        let chunks = self.read_results(name, request, framing).await?;
        let media_type = match framing {
            Framing::Columns => ARROW_STREAM,
            Framing::Events | Framing::Messages => EVENT_STREAM,
        };
        let body = match framing {
            Framing::Columns => Body::Results(chunks),
            Framing::Events | Framing::Messages => Body::Events(chunks),
        };
        let mut response = respond::with_body(media_type, body);
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
        Ok(response)
    }

    /// Begins to read results for a client.
    pub(crate) async fn read_results(
        &self,
        name: String,
        request: &Request<Incoming>,
        framing: Framing,
    ) -> Result<mpsc::Receiver<Chunk>, Refusal> {
        let begin = Begin::of(request)?;
        let slow = Slow::of(request.uri().query().unwrap_or_default())?;
        let place = self.readers.place()?;
        let memory = self.reserve_large(match framing {
            Framing::Columns => READER_BYTES + RESULT_COLUMNS_BYTES,
            Framing::Events | Framing::Messages => READER_BYTES,
        })?;
        let asked = name.clone();
        let ask = move |database: &Database| {
            let mut results = begin.results_of(database, &asked)?;
            if slow == Slow::Wait {
                results.wait_for_each();
            }
            Ok((results, database.answer_form(&asked)?))
        };
        let (results, form) = self.executor.ask(ask).await?;
        let mut out = Vec::new();
        let columns = match framing {
            Framing::Columns => Some(columns_of(&form, &mut out)?),
            Framing::Events | Framing::Messages => None,
        };
        let (sender, chunks) = mpsc::channel(QUEUED_CHUNKS);
        let reader = Reader {
            name,
            framing,
            slow,
            columns,
            out,
            chunks: sender,
            stopping: self.readers.stopping.subscribe(),
            keep_alive: self.readers.keep_alive,
            _place: place,
            _memory: memory,
        };
        tokio::spawn(reader.run(results));
        Ok(chunks)
    }
}

/// How results are told from one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// As server-sent events.
    Events,
    /// As messages of a socket.
    Messages,
    /// As record batches of Arrow.
    Columns,
}

const EVENT_STREAM: &str = "text/event-stream";
const ARROW_STREAM: &str = "application/vnd.apache.arrow.stream";
const OFFERS: &[Offer<Framing>] = &[
    Offer::new(EVENT_STREAM, Framing::Events),
    Offer::new(ARROW_STREAM, Framing::Columns),
];

/// One client that reads results.
pub(crate) struct Reader {
    name: String,
    framing: Framing,
    slow: Slow,
    /// Of [`Framing::Columns`].
    pub(crate) columns: Option<ResultColumns>,
    /// Events that are not sent yet.
    pub(crate) out: Vec<u8>,
    chunks: mpsc::Sender<Chunk>,
    stopping: watch::Receiver<bool>,
    keep_alive: Duration,
    _place: OwnedSemaphorePermit,
    _memory: Option<Reservation>,
}

/// The client went away, or the server stops.
pub(crate) struct Gone;

/// What a reader waits for.
enum Event {
    Next(NextResult),
    KeepAlive,
    Stop,
}

impl Reader {
    async fn run(mut self, mut results: ContinuousResults) {
        // Whoever is gone takes nothing, and what does not end as it should is cut.
        if self.send_all(&mut results).await.is_ok() {
            let _ = self.chunks.send(Chunk::End).await;
        }
    }

    async fn send_all(&mut self, results: &mut ContinuousResults) -> Result<(), Gone> {
        loop {
            let next = match results.next_within(Duration::ZERO) {
                NextResult::None => {
                    self.flush().await?;
                    self.wait(results).await?
                }
                next => Event::Next(next),
            };
            match next {
                Event::Next(NextResult::Result(result, missed))
                    if missed > 0 && self.slow != Slow::Drop =>
                {
                    return self.end_slow(&result, missed).await;
                }
                Event::Next(NextResult::Result(result, missed)) => {
                    self.write(&result, missed).await?;
                }
                Event::Next(NextResult::Over) => {
                    return self.write_end().await;
                }
                Event::Next(_) => {}
                Event::KeepAlive if self.framing != Framing::Events => {}
                Event::KeepAlive => self.out.extend_from_slice(b": \n\n"),
                Event::Stop => return self.flush().await,
            }
        }
    }

    async fn wait(&mut self, results: &mut ContinuousResults) -> Result<Event, Gone> {
        tokio::select! {
            () = self.chunks.closed() => Err(Gone),
            _ = self.stopping.wait_for(|stops| *stops) => Ok(Event::Stop),
            next = poll_fn(|context| results.poll_next(context)) => Ok(Event::Next(next)),
            () = tokio::time::sleep(self.keep_alive) => Ok(Event::KeepAlive),
        }
    }

    /// Writes a result, and sends what there is of it whenever that is much.
    async fn write(&mut self, result: &ContinuousResult, missed: u64) -> Result<(), Gone> {
        if self.framing == Framing::Columns {
            return self.write_columns(result, missed).await;
        }
        let event = match &result.answer {
            Ok(_) => "result",
            Err(_) => "error",
        };
        self.begin(event, Some(&result_id(result)));
        self.out
            .extend_from_slice(&result_members(&self.name, result, missed));
        match &result.answer {
            Ok(answer) => {
                self.out.push(b',');
                if let Some(removed) = &result.removed {
                    self.write_removed(answer, removed).await?;
                }
                self.write_answer(answer).await?;
            }
            Err(error) => {
                let error = format!(",\"error\":{}}}", json!(error));
                self.out.extend_from_slice(error.as_bytes());
            }
        }
        self.end().await
    }

    /// Tells the reader that it was too slow.
    async fn end_slow(&mut self, result: &ContinuousResult, missed: u64) -> Result<(), Gone> {
        let error = match self.slow {
            Slow::Wait => {
                "the reader was too slow for results to be kept for it, and asked by slow=wait to miss none"
            }
            _ => {
                "the reader was too slow for some results, and asked by slow=disconnect to miss none"
            }
        };
        if self.framing == Framing::Columns {
            return self.end_columns(result, missed, error).await;
        }
        let data = json!({ "query": self.name, "missed": missed, "error": error });
        self.begin("error", None);
        self.out.extend_from_slice(data.to_string().as_bytes());
        self.end().await?;
        self.flush().await
    }

    /// Says that there are no more results.
    async fn write_end(&mut self) -> Result<(), Gone> {
        match self.framing {
            Framing::Events => {
                let end = json!({ "query": self.name });
                self.begin("end", None);
                self.out.extend_from_slice(end.to_string().as_bytes());
                self.end().await?;
            }
            Framing::Messages => {}
            Framing::Columns => self.finish_columns()?,
        }
        self.flush().await
    }

    /// Writes what stands before the data of an event.
    fn begin(&mut self, event: &str, id: Option<&str>) {
        if self.framing == Framing::Events {
            let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
            let head = format!("event: {event}\n{id}data: ");
            self.out.extend_from_slice(head.as_bytes());
        }
    }

    /// Ends an event.
    async fn end(&mut self) -> Result<(), Gone> {
        match self.framing {
            Framing::Events => {
                self.out.extend_from_slice(b"\n\n");
                self.flush_if_full().await
            }
            Framing::Columns => self.flush_if_full().await,
            Framing::Messages => {
                let bytes = Bytes::from(std::mem::take(&mut self.out));
                self.send(Chunk::Last(bytes)).await
            }
        }
    }

    /// Writes the members of an answer and the end of its object.
    async fn write_answer(&mut self, answer: &Answer) -> Result<(), Gone> {
        match answer {
            Answer::Boolean(value) => {
                let begin = self.out.len();
                write_boolean(&mut self.out, BooleanFormat::Json, *value);
                self.out.remove(begin);
            }
            Answer::Solutions { variables, rows } => {
                let mut writer = SolutionsWriter::new(SolutionsFormat::Json, variables);
                let begin = self.out.len();
                expect_json(writer.start(&mut self.out));
                self.out.remove(begin);
                for row in rows.iter() {
                    self.write_row(&mut writer, row).await?;
                }
                expect_json(writer.finish(&mut self.out));
            }
            Answer::Triples(rows) => {
                self.out.extend_from_slice(b"\"triples\":");
                self.write_triples(rows).await?;
                self.out.push(b'}');
            }
            other => {
                tracing::error!(?other, "an answer that this server does not know");
                return Err(Gone);
            }
        }
        Ok(())
    }

    /// Writes the member with the rows that are gone, in the form of those that came, and a comma.
    async fn write_removed(&mut self, answer: &Answer, removed: &Rows) -> Result<(), Gone> {
        self.out.extend_from_slice(b"\"removed\":");
        match answer {
            Answer::Solutions { variables, .. } => {
                let mut writer = SolutionsWriter::new(SolutionsFormat::Json, variables);
                let begin = self.out.len();
                expect_json(writer.start(&mut self.out));
                // It is beside a head already.
                let bindings = b"{\"bindings\":[";
                self.out.truncate(begin);
                self.out.extend_from_slice(bindings);
                for row in removed.iter() {
                    self.write_row(&mut writer, row).await?;
                }
                self.out.extend_from_slice(b"]}");
            }
            _ => self.write_triples(removed).await?,
        }
        self.out.push(b',');
        Ok(())
    }

    /// Writes triples as a string of N-Triples.
    async fn write_triples(&mut self, rows: &Rows) -> Result<(), Gone> {
        self.out.push(b'"');
        for row in rows.iter() {
            for term in row.into_iter().flatten() {
                self.write_parts(pieces::triple_term(term)).await?;
                self.out.push(b' ');
            }
            self.out.extend_from_slice(b".\\n");
        }
        self.out.push(b'"');
        Ok(())
    }

    /// Writes a row of solutions, and sends what there is of it whenever that is much.
    async fn write_row<'t>(
        &mut self,
        writer: &mut SolutionsWriter,
        row: impl IntoIterator<Item = Option<TermText<'t>>>,
    ) -> Result<(), Gone> {
        writer.begin_row(&mut self.out);
        let cells: Vec<_> = row.into_iter().collect();
        for cell in cells {
            match cell.filter(|term| pieces::is_long(*term)) {
                Some(long) => {
                    let parts = expect_json(pieces::cell(writer, long));
                    self.write_parts(parts).await?;
                }
                None => {
                    expect_json(writer.cell(&mut self.out, cell));
                    self.flush_if_full().await?;
                }
            }
        }
        expect_json(writer.end_row(&mut self.out));
        Ok(())
    }

    async fn write_parts(&mut self, parts: Vec<Part<'_>>) -> Result<(), Gone> {
        for part in parts {
            match part {
                Part::Written(bytes) => self.out.extend_from_slice(&bytes),
                Part::Text(text, escape) => {
                    for piece in pieces::pieces(text) {
                        pieces::push(&mut self.out, piece, escape);
                        self.flush_if_full().await?;
                    }
                }
            }
            self.flush_if_full().await?;
        }
        Ok(())
    }

    pub(crate) async fn flush_if_full(&mut self) -> Result<(), Gone> {
        match self.out.len() >= FULL_BYTES {
            true => self.flush().await,
            false => Ok(()),
        }
    }

    pub(crate) async fn flush(&mut self) -> Result<(), Gone> {
        if self.out.is_empty() {
            return Ok(());
        }
        let bytes = Bytes::from(std::mem::take(&mut self.out));
        self.send(Chunk::Data(bytes)).await
    }

    async fn send(&mut self, chunk: Chunk) -> Result<(), Gone> {
        tokio::select! {
            biased;
            sent = self.chunks.send(chunk) => sent.map_err(|_| Gone),
            _ = self.stopping.wait_for(|stops| *stops) => Err(Gone),
        }
    }
}

/// JSON can hold every answer.
fn expect_json<T>(written: Result<T, ResultsError>) -> T {
    written.expect("JSON holds all terms")
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_engine::results::write_term;
    use serde_json::Value;

    /// A reader, and the chunks that it sends.
    fn reader(readers: &Readers) -> (Reader, mpsc::Receiver<Chunk>) {
        let (sender, chunks) = mpsc::channel(QUEUED_CHUNKS);
        let reader = Reader {
            name: "q".to_owned(),
            framing: Framing::Events,
            slow: Slow::Drop,
            columns: None,
            out: Vec::new(),
            chunks: sender,
            stopping: readers.stopping.subscribe(),
            keep_alive: Duration::from_secs(1),
            _place: readers
                .place()
                .unwrap_or_else(|_| unreachable!("it has room")),
            _memory: None,
        };
        (reader, chunks)
    }

    #[tokio::test]
    async fn long_terms_are_sent_in_chunks() {
        let long = |part: &str| part.repeat(200_000 / part.len());
        let (value, iri, label) = (long("é\"\u{1}\\\n<"), long("http://e/ü"), long("b"));
        let literal = |value, language, datatype| TermText::Literal {
            value,
            language,
            datatype,
        };
        let terms = [
            literal(&value, None, None),
            literal("short", None, Some(&*iri)),
            literal(&value, None, Some(&*iri)),
            literal(&value, Some(&*label), None),
            TermText::Iri(&iri),
            TermText::Blank(&label),
            TermText::Iri("http://e/short"),
        ];
        let names: Vec<_> = (0..=terms.len())
            .map(|number| format!("v{number}"))
            .collect();
        let cells = || terms.into_iter().map(Some).chain([None]);
        let writer = || SolutionsWriter::new(SolutionsFormat::Json, &names);
        let mut all = Vec::new();
        writer().row(&mut all, cells()).expect("JSON holds all");
        let mut triple = Vec::new();
        for term in terms {
            write_term(&mut triple, term, false);
        }

        let readers = Readers::new(1, Duration::from_secs(1));
        let (mut reader, mut chunks) = reader(&readers);
        let sent = async {
            let row = reader.write_row(&mut writer(), cells()).await;
            let mut is_sent = row.is_ok() && reader.flush().await.is_ok();
            for term in terms {
                is_sent &= reader.write_parts(pieces::triple_term(term)).await.is_ok();
            }
            assert!(is_sent && reader.flush().await.is_ok());
            drop(reader);
        };
        let taken = async {
            let mut text = Vec::new();
            while let Some(Chunk::Data(bytes)) = chunks.recv().await {
                assert!(bytes.len() <= CHUNK_BYTES, "{}", bytes.len());
                text.extend_from_slice(&bytes);
            }
            text
        };
        let ((), text) = tokio::join!(sent, taken);
        let mut values = serde_json::Deserializer::from_slice(&text).into_iter::<Value>();
        let row = values.next().expect("a row").expect("JSON");
        assert!(row == serde_json::from_slice::<Value>(&all).expect("JSON"));
        let rest = String::from_utf8_lossy(&text[values.byte_offset()..]);
        let rest: String = serde_json::from_str(&format!("\"{rest}\"")).expect("JSON");
        assert!(rest.as_bytes() == triple);
    }
}
