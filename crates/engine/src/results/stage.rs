//! How do several threads write one answer as text, in its order?
//!
//! The thread of the query asks for rows and hands them out as *pieces*; workers that are idle, or
//! wait because the query's thread is slower than they are, write pieces into buffers of their
//! own; the query's thread gives the buffers out in the order of the pieces, and writes pieces
//! itself when there is nothing else to do. So rows leave in the order in which they are found,
//! and the first ones without waiting for others: they are written by the query's thread alone,
//! which is all that happens to answers of a few thousand rows.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use jindou_exec::{Held, Terms, Workers};
use jindou_model::TermId;

use super::memory::{Column, Size};
use super::rows::{Frame, Rows};
use super::style::Style;
use super::{ResultsError, WriteError};
use crate::graph::StoredGraph;
use crate::query::Running;
use crate::texts::Texts;
use crate::{Batch, EngineError, Graph, Solutions, TermDecoder};

/// Rows that the query's thread writes before others help.
const ROWS_ALONE: u64 = 1024;
/// Pieces with fewer rows are not worth handing over.
const PIECE_ROWS: usize = 256;
/// Bytes of a piece's text that others write; the query's thread writes the rest.
const PIECE_BYTES: usize = 512 << 10;
/// Pieces under way, for each thread.
const PIECES_PER_THREAD: usize = 4;

/// Rows of ids, and their terms.
pub(super) struct Ids {
    rows: IdRows,
    texts: Texts,
}

/// Rows of ids.
pub(super) enum IdRows {
    /// Solutions.
    Columns(Batch),
    /// Triples.
    Triples(Vec<[TermId; 3]>),
}

impl Ids {
    /// The rows that a query handed over last.
    pub(super) fn last_of(running: &Running, rows: IdRows) -> Self {
        let texts = running.texts().clone();
        Self { rows, texts }
    }

    pub(super) fn rows(&self) -> usize {
        match &self.rows {
            IdRows::Columns(batch) => batch.rows(),
            IdRows::Triples(triples) => triples.len(),
        }
    }

    /// Appends rows from number `from` on, as [`Rows::write`].
    fn write(
        &self,
        from: usize,
        rows: &mut Rows,
        out: &mut Vec<u8>,
        decoder: &mut TermDecoder<'_>,
    ) -> Result<usize, ResultsError> {
        let all = from..self.rows();
        match &self.rows {
            IdRows::Columns(batch) => {
                let columns: Vec<_> = batch.columns().map(|ids| Column { ids, step: 1 }).collect();
                rows.write(out, &columns, all, decoder)
            }
            IdRows::Triples(triples) => {
                let ids = triples.as_flattened();
                let columns = [0, 1, 2].map(|place| Column {
                    ids: ids.get(place..).unwrap_or_default(),
                    step: 3,
                });
                rows.write(out, &columns, all, decoder)
            }
        }
    }
}

/// Rows that were written, as far as a piece's text goes.
struct Written {
    text: Vec<u8>,
    ids: Ids,
    /// The row that comes next.
    next: usize,
}

enum State {
    Waiting(Ids),
    Begun,
    Done(Result<Written, WriteError>),
}

/// Some rows of the answer.
struct Piece {
    state: Mutex<State>,
    done: Condvar,
}

impl Piece {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics at a piece")
    }

    /// Begins to write it, unless somebody did.
    fn begin(&self) -> Option<Ids> {
        let mut state = self.state();
        match std::mem::replace(&mut *state, State::Begun) {
            State::Waiting(ids) => Some(ids),
            other => {
                *state = other;
                None
            }
        }
    }

    fn is_done(&self) -> bool {
        matches!(*self.state(), State::Done(_))
    }

    fn finish(&self, result: Result<Written, WriteError>) {
        *self.state() = State::Done(result);
        self.done.notify_one();
    }

    /// What was written, once it is.
    fn wait(&self) -> Result<Written, WriteError> {
        let mut state = self.state();
        loop {
            match std::mem::replace(&mut *state, State::Begun) {
                State::Done(result) => return result,
                other => *state = other,
            }
            state = self.done.wait(state).expect("nobody panics at a piece");
        }
    }
}

/// What the threads that write one answer share.
struct Shared {
    graph: Arc<StoredGraph>,
    terms: Terms,
    style: Style,
    frame: Arc<Frame>,
    /// Pieces that nobody has begun.
    waiting: Mutex<VecDeque<Arc<Piece>>>,
    /// Memories of threads that are not at work, and empty buffers.
    memories: Mutex<Vec<Rows>>,
    buffers: Mutex<Vec<Vec<u8>>>,
    /// Workers that were asked for help and have not gone again.
    at_work: AtomicUsize,
    /// For the texts of pieces.
    _held: Held,
}

impl Shared {
    /// Writes the first piece that nobody has begun; false if there is none.
    fn write_one(&self) -> bool {
        loop {
            let piece = lock(&self.waiting).pop_front();
            let Some(piece) = piece else {
                return false;
            };
            if let Some(ids) = piece.begin() {
                // A panic must reach the reader, who would wait for the piece.
                let written = catch_unwind(AssertUnwindSafe(|| self.write(ids)));
                piece.finish(written.unwrap_or(Err(EngineError::Internal.into())));
                return true;
            }
        }
    }

    fn write(&self, ids: Ids) -> Result<Written, WriteError> {
        let mut text = lock(&self.buffers).pop().unwrap_or_default();
        let rows = lock(&self.memories).pop();
        let mut rows = rows.unwrap_or_else(|| Rows::new(self.style, &self.frame, Size::Large));
        let texts = ids.texts.clone();
        let mut decoder = TermDecoder::new(&self.graph, &self.terms, texts.read_ones());
        let mut next = 0;
        while next < ids.rows() && text.len() < PIECE_BYTES {
            next = ids.write(next, &mut rows, &mut text, &mut decoder)?;
        }
        lock(&self.memories).push(rows);
        Ok(Written { text, ids, next })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics while it holds this")
}

/// Where rows come from.
pub(super) trait Source {
    /// Some more rows; `None` at the end.
    fn find(&mut self) -> Result<Option<Ids>, EngineError>;

    /// The query.
    fn running(&self) -> &Running;
}

/// What [`Stage::advance`] did.
pub(super) struct Step {
    /// Rows appended.
    pub(super) rows: u64,
    /// Whether more has to be found before more can be written.
    pub(super) waits: bool,
}

impl Source for Solutions {
    fn find(&mut self) -> Result<Option<Ids>, EngineError> {
        let batch = self.next_batch()?;
        Ok(batch.map(|batch| Ids::last_of(Self::running(self), IdRows::Columns(batch))))
    }

    fn running(&self) -> &Running {
        Self::running(self)
    }
}

impl Source for Graph {
    fn find(&mut self) -> Result<Option<Ids>, EngineError> {
        let triples = self.next_batch()?;
        Ok(triples.map(|triples| Ids::last_of(Self::running(self), IdRows::Triples(triples))))
    }

    fn running(&self) -> &Running {
        Self::running(self)
    }
}

/// Writes one answer.
pub(super) struct Stage {
    style: Style,
    frame: Arc<Frame>,
    /// The memory of the query's thread.
    rows: Rows,
    /// What the query's thread is writing, and the row that comes next.
    rest: Option<(Ids, usize)>,
    /// Rows that were written so far, before others were asked.
    alone: u64,
    /// Room for a larger memory, once the answer is long and if there is any.
    long: Option<Held>,
    helped: Option<Helped>,
}

impl Stage {
    /// Begins with these rows.
    pub(super) fn new(style: Style, frame: Frame, first: Ids) -> Self {
        Self {
            style,
            rows: Rows::new(style, &frame, Size::Small),
            frame: Arc::new(frame),
            rest: Some((first, 0)),
            alone: 0,
            long: None,
            helped: None,
        }
    }

    /// Appends some more rows; `None` at the end.
    ///
    /// # Errors
    /// What the query met, or what the format cannot hold.
    pub(super) fn advance(
        &mut self,
        out: &mut Vec<u8>,
        source: &mut impl Source,
    ) -> Result<Option<Step>, WriteError> {
        loop {
            if let Some((ids, from)) = self.rest.take() {
                return self.write(out, ids, from, source.running()).map(Some);
            }
            let Some(helped) = &mut self.helped else {
                let Some(ids) = source.find()? else {
                    return Ok(None);
                };
                self.rest = Some((ids, 0));
                if self.alone >= ROWS_ALONE {
                    self.alone = 0;
                    self.grow(source.running());
                }
                continue;
            };
            helped.hand_out(source)?;
            match helped.take() {
                None => return Ok(None),
                Some(Taken::Waiting(ids)) => self.rest = Some((ids, 0)),
                Some(Taken::Written(written)) => {
                    let Written { text, ids, next } = written?;
                    helped.give(out, text);
                    if next < ids.rows() {
                        self.rest = Some((ids, next));
                    }
                    let waits = self.rest.is_none() && !helped.has_more();
                    let rows = next as u64;
                    return Ok(Some(Step { rows, waits }));
                }
            }
        }
    }

    /// Asks for more memory and for help, as the answer is long.
    fn grow(&mut self, running: &Running) {
        if self.long.is_none() {
            self.long = running.execution.context().hold(Size::Large.bytes());
            if self.long.is_some() {
                self.rows.enlarge();
            }
        }
        self.helped = Helped::ask(self.style, &self.frame, running);
    }

    fn write(
        &mut self,
        out: &mut Vec<u8>,
        ids: Ids,
        from: usize,
        running: &Running,
    ) -> Result<Step, WriteError> {
        let mut decoder = running.decoder_of(&ids.texts);
        let next = ids.write(from, &mut self.rows, out, &mut decoder)?;
        drop(decoder);
        let rows = (next - from) as u64;
        self.alone += rows;
        let more = self.helped.as_ref().is_some_and(Helped::has_more);
        let waits = next == ids.rows() && !more;
        if next < ids.rows() {
            self.rest = Some((ids, next));
        }
        Ok(Step { rows, waits })
    }
}

/// What became of the first piece.
enum Taken {
    Waiting(Ids),
    Written(Result<Written, WriteError>),
}

/// The work on an answer that others help with.
struct Helped {
    shared: Arc<Shared>,
    workers: Arc<Workers>,
    helpers: usize,
    /// In the order of the answer.
    pieces: VecDeque<Arc<Piece>>,
    /// Nothing more is to be found.
    ended: bool,
}

impl Helped {
    /// Help for a query, if there is anybody, and room for what they write.
    fn ask(style: Style, frame: &Arc<Frame>, running: &Running) -> Option<Self> {
        let context = running.execution.context();
        let helpers = (context.threads() - 1).min(running.workers.count());
        if helpers == 0 {
            return None;
        }
        let pieces = (helpers + 1) * PIECES_PER_THREAD * PIECE_BYTES;
        let held = context.hold(pieces + helpers * Size::Large.bytes())?;
        let shared = Arc::new(Shared {
            graph: Arc::clone(&running.graph),
            terms: context.terms().clone(),
            style,
            frame: Arc::clone(frame),
            waiting: Mutex::default(),
            memories: Mutex::default(),
            buffers: Mutex::default(),
            at_work: AtomicUsize::new(0),
            _held: held,
        });
        // Threads that find rows faster than they are written write some.
        let weak = Arc::downgrade(&shared);
        context.set_meanwhile(move || weak.upgrade().is_some_and(|shared| shared.write_one()));
        Some(Self {
            shared,
            workers: Arc::clone(&running.workers),
            helpers,
            pieces: VecDeque::new(),
            ended: false,
        })
    }

    /// Finds rows and hands them out, until enough pieces are under way or the first one is
    /// written.
    fn hand_out(&mut self, source: &mut impl Source) -> Result<(), WriteError> {
        let most = (self.helpers + 1) * PIECES_PER_THREAD;
        while !self.ended && self.pieces.len() < most && !self.has_more() {
            match source.find()? {
                Some(ids) => self.add(ids),
                None => self.ended = true,
            }
        }
        Ok(())
    }

    /// Whether the first piece is written.
    fn has_more(&self) -> bool {
        self.pieces.front().is_some_and(|piece| piece.is_done())
    }

    fn add(&mut self, ids: Ids) {
        let large = ids.rows() >= PIECE_ROWS;
        let piece = Arc::new(Piece {
            state: Mutex::new(State::Waiting(ids)),
            done: Condvar::new(),
        });
        self.pieces.push_back(Arc::clone(&piece));
        lock(&self.shared.waiting).push_back(piece);
        let at_work = &self.shared.at_work;
        if large && at_work.load(Ordering::Relaxed) < self.helpers {
            at_work.fetch_add(1, Ordering::Relaxed);
            let shared = Arc::clone(&self.shared);
            self.workers.spawn(move || {
                while shared.write_one() {}
                shared.at_work.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    /// The first piece: written, or to be written here; `None` if there are no more.
    fn take(&mut self) -> Option<Taken> {
        let first = self.pieces.pop_front()?;
        if let Some(ids) = first.begin() {
            return Some(Taken::Waiting(ids));
        }
        // Others are at it: meanwhile something that comes later can be written.
        while !first.is_done() && self.shared.write_one() {}
        Some(Taken::Written(first.wait()))
    }

    /// Appends a piece's text; its buffer is used again.
    fn give(&self, out: &mut Vec<u8>, mut text: Vec<u8>) {
        if out.is_empty() {
            std::mem::swap(out, &mut text);
        } else {
            out.extend_from_slice(&text);
            text.clear();
        }
        let mut buffers = lock(&self.shared.buffers);
        if buffers.len() <= self.helpers {
            buffers.push(text);
        }
    }
}

impl Drop for Helped {
    fn drop(&mut self) {
        // Nobody wants what was not begun.
        lock(&self.shared.waiting).clear();
    }
}
