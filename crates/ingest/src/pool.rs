//! Which thread parses what next, and which error is the first?
//!
//! There is no reader thread and no queue: a thread takes an open stream, reads one chunk from
//! it, gives it back and parses the chunk. So one thread decompresses while others parse, memory
//! is one chunk a thread, and chunks are numbered in the order of the document. A new source is
//! opened only when every open one is in someone's hands.

use crate::blank::scope_prefix;
use crate::chunk::{Buffer, CutError, FilePart, Sizes, Stream, lines_before};
use crate::document::{self, DocumentContext, DocumentTally, QuadScratch};
use crate::error::{IngestError, SyntaxError};
use crate::format::Format;
use crate::line::{LineContext, Scratch};
use crate::lines::{BadLine, LineReader, Stop, Tally};
use crate::load::{LoadOptions, Mistaken, QuadSink, Skipped, ThreadStart};
use crate::odd::{Faults, Odd};
use crate::prefixes::Prefixes;
use crate::progress::Progress;
use crate::source::{Expected, Opened, Prepared, read_error};
use oxrdf::GraphNameRef;
use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The stack of a thread that parses: what JSON-LD within its bounds takes, in a build without
/// optimizations, is far less. Pages that are not touched cost nothing.
pub(crate) const PARSER_STACK_BYTES: usize = 32 << 20;

/// What all threads came to.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) quads: u64,
    pub(crate) skipped: u64,
    pub(crate) errors: Vec<Skipped>,
    pub(crate) prefixes: Prefixes,
    pub(crate) faults: Faults,
    pub(crate) odd: Odd,
    pub(crate) mistaken: Vec<Mistaken>,
}

/// Parses all sources, with one thread a sink.
pub(crate) fn run<S: QuadSink>(
    sources: Vec<Prepared>,
    options: &LoadOptions,
    sizes: Sizes,
    sinks: Vec<S>,
    progress: &Progress,
) -> Result<(Vec<S>, Outcome), IngestError> {
    let names: Vec<_> = sources.iter().map(|s| Arc::clone(&s.name)).collect();
    let pool = Pool {
        state: Mutex::new(State {
            unopened: sources.into_iter().enumerate().collect(),
            idle: VecDeque::new(),
            held: 0,
            failure: None,
            ledgers: names.iter().map(|_| Ledger::default()).collect(),
            mistaken: BTreeMap::new(),
            outcome: Outcome::default(),
        }),
        changed: Condvar::new(),
        stopping: AtomicBool::new(false),
        options,
        sizes,
        progress,
    };
    let sinks = thread::scope(|scope| {
        let mut workers = Vec::with_capacity(sinks.len());
        for mut sink in sinks {
            let pool = &pool;
            let spawned = thread::Builder::new()
                .name("jindou-parse".to_owned())
                .stack_size(PARSER_STACK_BYTES)
                .spawn_scoped(scope, move || {
                    let guard = StopOnPanic(pool);
                    if let Some(ThreadStart(start)) = &pool.options.thread_start {
                        start();
                    }
                    pool.work(&mut sink);
                    drop(guard);
                    sink
                });
            match spawned {
                Ok(worker) => workers.push(worker),
                Err(source) => {
                    pool.stop();
                    return Err(IngestError::Thread { source });
                }
            }
        }
        let results: Vec<_> = workers
            .into_iter()
            .map(thread::ScopedJoinHandle::join)
            .collect();
        Ok(results
            .into_iter()
            .map(|r| r.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect())
    })?;
    let state = pool
        .state
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let State {
        failure,
        ledgers,
        mistaken,
        mut outcome,
        ..
    } = state;
    if let Some(Failure { place, error }) = failure {
        return Err(error.in_document(&names[place.source], &ledgers[place.source]));
    }
    for ledger in ledgers {
        let room = options.max_reported_errors - outcome.errors.len();
        outcome.errors.extend(ledger.errors.into_iter().take(room));
    }
    outcome.mistaken = mistaken.into_values().collect();
    Ok((sinks, outcome))
}

/// A chunk's place among all: by source, then by number within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    source: usize,
    chunk: u64,
}

/// Lines and errors of one source's chunks, put together in the order of the document.
#[derive(Default)]
struct Ledger {
    /// How many chunks, from the first on, are added up in `lines`.
    chunks: u64,
    lines: u64,
    /// Chunks that were done before one in front of them; no more than there are threads.
    ahead: BTreeMap<u64, (u64, Vec<BadLine>)>,
    errors: Vec<Skipped>,
    /// The part of the file that is in front of the first chunk, which others read.
    front: Option<Front>,
}

/// The first bytes of a file.
struct Front {
    file: Arc<File>,
    bytes: u64,
    lines: OnceCell<Option<u64>>,
}

impl Front {
    /// How many lines begin in it, if it can be read, which it is when that is asked for first.
    fn lines(&self) -> Option<u64> {
        let read = || lines_before(&self.file, self.bytes).ok();
        *self.lines.get_or_init(read)
    }
}

impl Ledger {
    fn add(&mut self, file: &Arc<str>, chunk: u64, lines: u64, bad: Vec<BadLine>, room: usize) {
        self.ahead.insert(chunk, (lines, bad));
        while let Some((lines, bad)) = self.ahead.remove(&self.chunks) {
            for bad in bad.into_iter().take(room - self.errors.len()) {
                let error = located(file, self.lines_so_far(), bad);
                self.errors.push(Skipped {
                    error,
                    rest_dropped: false,
                });
            }
            self.lines += lines;
            self.chunks += 1;
        }
    }

    /// Lines of the file in front of the next chunk, if they are known.
    fn lines_so_far(&self) -> Option<u64> {
        let in_front = self.front.as_ref().map_or(Some(0), Front::lines);
        in_front.map(|lines| lines + self.lines)
    }
}

fn located(file: &Arc<str>, lines_before: Option<u64>, bad: BadLine) -> SyntaxError {
    SyntaxError {
        file: Arc::clone(file),
        line: lines_before.map(|before| before + bad.line + 1),
        column: Some(bad.column),
        reason: bad.reason,
    }
}

/// An error whose line is known only once all chunks in front are done.
enum ChunkError {
    Bad(BadLine),
    TooLong {
        lines_before: u64,
        limit_bytes: usize,
    },
    Other(IngestError),
}

impl ChunkError {
    fn in_document(self, file: &Arc<str>, ledger: &Ledger) -> IngestError {
        match self {
            Self::Bad(bad) => located(file, ledger.lines_so_far(), bad).into(),
            Self::TooLong {
                lines_before,
                limit_bytes,
            } => IngestError::TooLong {
                file: Arc::clone(file),
                line: ledger
                    .lines_so_far()
                    .map(|so_far| so_far + lines_before + 1),
                limit_bytes,
            },
            Self::Other(error) => error,
        }
    }
}

struct Failure {
    place: Place,
    error: ChunkError,
}

/// A line-based source from which chunks are still to be taken.
struct Open {
    source: usize,
    next_chunk: u64,
    shared: Arc<OpenShared>,
    cutter: Cutter,
}

/// What chunks of one source have in common.
struct OpenShared {
    name: Arc<str>,
    format: Format,
    blank_prefix: String,
}

enum Cutter {
    Stream(Stream),
    File {
        file: Arc<File>,
        next: u64,
        /// Where the part ends of which chunks are taken, and the file.
        end: u64,
        len: u64,
    },
}

struct State {
    unopened: VecDeque<(usize, Prepared)>,
    idle: VecDeque<Open>,
    /// Open sources in the hands of threads, from which chunks may still come.
    held: usize,
    failure: Option<Failure>,
    ledgers: Vec<Ledger>,
    /// By source, those that are in another format than their name says.
    mistaken: BTreeMap<usize, Mistaken>,
    outcome: Outcome,
}

struct Pool<'a> {
    state: Mutex<State>,
    /// Signalled when a thread that waits for work should look again.
    changed: Condvar,
    stopping: AtomicBool,
    options: &'a LoadOptions,
    sizes: Sizes,
    progress: &'a Progress,
}

/// A thread that panics takes its open source with it; the others must not wait for it.
struct StopOnPanic<'a, 'b>(&'a Pool<'b>);

impl Drop for StopOnPanic<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

enum Job {
    Cut(Open),
    Open(usize, Prepared),
}

impl Pool<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the threads from taking up more.
    fn stop(&self) {
        self.stopping.store(true, Relaxed);
        // Taking the lock keeps the signal from getting lost between a look and a wait.
        drop(self.lock());
        self.changed.notify_all();
    }

    fn work<S: QuadSink>(&self, sink: &mut S) {
        let mut buffer = Buffer::default();
        let mut scratch = Some((Scratch::default(), QuadScratch::default()));
        while let Some(job) = self.next_job() {
            match job {
                Job::Cut(open) => self.cut(open, sink, &mut buffer, &mut scratch),
                Job::Open(index, source) => self.open(index, source, sink),
            }
        }
    }

    fn next_job(&self) -> Option<Job> {
        let mut state = self.lock();
        loop {
            if self.stopping.load(Relaxed) {
                return None;
            }
            if let Some(open) = state.idle.pop_front() {
                state.held += 1;
                return Some(Job::Cut(open));
            }
            if let Some((index, source)) = state.unopened.pop_front() {
                state.held += 1;
                return Some(Job::Open(index, source));
            }
            if state.held == 0 {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives an open source back, for anyone to take.
    fn give_back(&self, open: Open) {
        let mut state = self.lock();
        state.held -= 1;
        state.idle.push_back(open);
        drop(state);
        self.changed.notify_one();
    }

    /// Nothing more is to be taken from a source.
    fn finish_taking(&self) {
        let mut state = self.lock();
        state.held -= 1;
        let all_taken = state.held == 0;
        drop(state);
        if all_taken {
            self.changed.notify_all();
        }
    }

    fn fail(&self, place: Place, error: ChunkError) {
        let mut state = self.lock();
        if state
            .failure
            .as_ref()
            .is_none_or(|known| place < known.place)
        {
            state.failure = Some(Failure { place, error });
        }
        self.stopping.store(true, Relaxed);
        drop(state);
        self.changed.notify_all();
    }

    /// Whether a chunk is to be left. Chunks in front of a failure are done to their end: one of
    /// them may hold an earlier error, and the line of an error is counted through them.
    fn leaves_chunk(&self, place: Place) -> bool {
        self.stopping.load(Relaxed)
            && self
                .lock()
                .failure
                .as_ref()
                .is_none_or(|failure| failure.place < place)
    }

    fn open<S: QuadSink>(&self, index: usize, source: Prepared, sink: &mut S) {
        let name = Arc::clone(&source.name);
        let expected = source.format;
        let base_iri = source.base_iri.clone();
        self.progress.set_current(Arc::clone(&name));
        let scope = self.options.blank_scope_start + index as u64;
        let opened = match source.open(self.progress) {
            Ok(opened) => opened,
            Err(error) => {
                self.finish_taking();
                return self.fail(
                    Place {
                        source: index,
                        chunk: 0,
                    },
                    ChunkError::Other(error),
                );
            }
        };
        let format = opened.format;
        if let Expected::Likely(Some(likely)) = expected
            && likely != format
        {
            let file = Arc::clone(&name);
            let mistaken = Mistaken {
                file,
                likely,
                format,
            };
            self.lock().mistaken.insert(index, mistaken);
        }
        let is_cut = format.is_line_based() && opened.plain_file.is_some();
        let share = self.options.share;
        if !is_cut && share.is_some_and(|share| !share.has(index)) {
            self.finish_taking();
            return self.progress.finish_source();
        }
        if format.is_line_based() {
            let cutter = match opened.plain_file {
                Some((file, len)) => {
                    let file = Arc::new(file);
                    let range = share.map_or(0..len, |share| share.range(len));
                    self.lock().ledgers[index].front = (range.start > 0).then(|| Front {
                        file: Arc::clone(&file),
                        bytes: range.start,
                        lines: OnceCell::new(),
                    });
                    Cutter::File {
                        file,
                        next: range.start,
                        end: range.end,
                        len,
                    }
                }
                None => Cutter::Stream(Stream::new(opened.reader, opened.guard)),
            };
            let shared = Arc::new(OpenShared {
                name,
                format,
                blank_prefix: scope_prefix(scope),
            });
            return self.give_back(Open {
                source: index,
                next_chunk: 0,
                shared,
                cutter,
            });
        }
        self.finish_taking();
        let context = DocumentContext {
            file: &name,
            base_iri: base_iri.as_deref(),
            scope,
            default_graph: self.default_graph(),
            lenient: self.options.lenient,
            max_described: self.options.max_reported_errors,
            contexts: &self.options.contexts,
            progress: self.progress,
        };
        self.read_document(index, format, opened, &context, sink);
    }

    fn default_graph(&self) -> GraphNameRef<'_> {
        self.options
            .graph
            .as_ref()
            .map_or(GraphNameRef::DefaultGraph, Into::into)
    }

    fn read_document<S: QuadSink>(
        &self,
        index: usize,
        format: Format,
        opened: Opened,
        context: &DocumentContext<'_>,
        sink: &mut S,
    ) {
        let mut tally = DocumentTally::default();
        let asked_to_stop = || self.stopping.load(Relaxed);
        let done = document::read(format, opened, context, sink, asked_to_stop, &mut tally);
        let mut state = self.lock();
        state.outcome.quads += tally.quads;
        state.outcome.skipped += tally.skipped;
        state.outcome.prefixes.add(index, tally.prefixes);
        state.outcome.faults.add(tally.faults);
        state.outcome.odd.add(tally.odd);
        state.ledgers[index].errors = tally.described;
        drop(state);
        match done {
            Ok(()) => self.progress.finish_source(),
            Err(error) => {
                self.fail(
                    Place {
                        source: index,
                        chunk: 0,
                    },
                    ChunkError::Other(error),
                );
            }
        }
    }

    /// Takes one chunk from an open source, gives the source back, and parses the chunk.
    fn cut<S: QuadSink>(
        &self,
        mut open: Open,
        sink: &mut S,
        buffer: &mut Buffer,
        scratch: &mut Option<(Scratch, QuadScratch)>,
    ) {
        let place = Place {
            source: open.source,
            chunk: open.next_chunk,
        };
        open.next_chunk += 1;
        let shared = Arc::clone(&open.shared);
        let begin = match &mut open.cutter {
            Cutter::Stream(stream) => match stream.next(buffer, self.sizes) {
                Ok(()) if buffer.bytes.is_empty() => {
                    self.finish_taking();
                    return self.progress.finish_source();
                }
                Ok(()) => {
                    self.give_back(open);
                    Ok(0)
                }
                Err(error) => {
                    self.finish_taking();
                    Err(error)
                }
            },
            Cutter::File {
                file,
                next,
                end,
                len,
            } => {
                let (from, end, file_len) = (*next, *end, *len);
                let to = end.min(from.saturating_add(self.sizes.chunk_bytes as u64));
                *next = to;
                let part = FilePart {
                    file: Arc::clone(file),
                    from,
                    to,
                    file_len,
                };
                if to < end {
                    self.give_back(open);
                } else {
                    self.finish_taking();
                    self.progress.finish_source();
                }
                let begin = part.read(&mut buffer.bytes, self.sizes);
                self.progress.add_bytes(to - from);
                begin
            }
        };
        match begin {
            Ok(begin) => self.parse(place, &shared, &buffer.bytes[begin..], sink, scratch),
            Err(CutError::Io(error)) => {
                self.fail(place, ChunkError::Other(read_error(error, &shared.name)));
            }
            Err(CutError::TooLong { lines_before }) => {
                let limit_bytes = self.sizes.max_line_bytes;
                self.fail(
                    place,
                    ChunkError::TooLong {
                        lines_before,
                        limit_bytes,
                    },
                );
            }
        }
    }

    fn parse<S: QuadSink>(
        &self,
        place: Place,
        shared: &OpenShared,
        bytes: &[u8],
        sink: &mut S,
        scratch: &mut Option<(Scratch, QuadScratch)>,
    ) {
        let (line_scratch, quad_scratch) = scratch.take().unwrap_or_default();
        let mut reader = LineReader {
            context: LineContext {
                graph_names: shared.format == Format::NQuads,
                blank_prefix: &shared.blank_prefix,
                default_graph: self.default_graph(),
            },
            lenient: self.options.lenient,
            max_described: self.options.max_reported_errors,
            scratch: line_scratch,
            quad_scratch,
        };
        let mut tally = Tally::default();
        let done = reader.read(bytes, sink, || self.leaves_chunk(place), &mut tally);
        *scratch = Some((reader.scratch, reader.quad_scratch));
        self.progress.add_quads(tally.quads);
        let mut state = self.lock();
        state.outcome.quads += tally.quads;
        state.outcome.skipped += tally.skipped;
        state.outcome.faults.add(tally.faults);
        state.outcome.odd.add(tally.odd);
        if done.is_ok() {
            let room = self.options.max_reported_errors;
            state.ledgers[place.source].add(
                &shared.name,
                place.chunk,
                tally.lines,
                tally.bad,
                room,
            );
        }
        drop(state);
        match done {
            Ok(()) | Err(Stop::Asked) => {}
            Err(Stop::Bad(bad)) => self.fail(place, ChunkError::Bad(bad)),
            Err(Stop::Sink(error)) => {
                let file = Arc::clone(&shared.name);
                let error = IngestError::Sink {
                    file,
                    source: Box::new(error),
                };
                self.fail(place, ChunkError::Other(error));
            }
        }
    }
}
