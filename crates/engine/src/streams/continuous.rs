//! One continuous query: what is it, how far has it come, and what has it cost?

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::journal::Noted;
use jindou_plan::{ContinuousQuery, Incremental, Output, Recomputed};
use jindou_stream::{Schedule, TimeWindow};
use parking_lot::{Mutex, RwLock};

use super::answer::Answer;
use super::due::Waiting;
use super::held::Held;
use super::histogram::Histogram;
use super::incremental::Keeping;
use super::plans::Plans;
use super::registrations::Registered;
use super::result_log::{ContinuousResult, ResultLog};
use super::rows::Rows;
use super::shapes::Shaped;
use super::sinks::Sink;
use super::stream::{OfWindows, Stream};
use super::subscription::Subscription;
use super::written::LastRows;

/// A continuous query that is registered.
pub(crate) struct Continuous {
    pub(super) name: String,
    /// No other query of the store ever has it.
    pub(super) number: u64,
    /// It reads a durable stream, so its results are kept with the store.
    pub(super) is_durable: bool,
    pub(super) text: String,
    pub(super) query: ContinuousQuery,
    /// Some window has tuples of the instant before, and solutions with these may be kept.
    pub(super) overlaps: bool,
    /// Some window is one of a number of tuples.
    pub(super) has_counts: bool,
    /// Its solutions can be kept, or why they cannot: known once that is of interest.
    pub(super) incremental: OnceLock<Result<Incremental, Recomputed>>,
    /// What others have in common with it.
    pub(super) shaped: Option<Shaped>,
    /// It has no windows, and hears of transactions.
    pub(super) subscription: Option<Subscription>,
    /// Its last plans.
    pub(super) plans: Mutex<Option<Arc<Plans>>>,
    pub(super) schedule: Schedule,
    /// The names of its windows, by number.
    pub(super) window_names: Box<[Arc<str>]>,
    pub(super) streams: OfWindows,
    /// Of each window, nothing before this: tuples were not kept for the query before it came. It is not
    /// due before this is known.
    pub(super) begins: OnceLock<Box<[i64]>>,
    /// The last instant at which it was evaluated.
    pub(super) last_ms: AtomicI64,
    /// Held while it is evaluated.
    pub(super) state: Mutex<State>,
    pub(super) log: ResultLog,
    /// Where results go beside readers.
    pub(super) sinks: RwLock<Vec<Arc<Sink>>>,
    /// How far it is by the log of streams, if it is durable.
    pub(super) reached: Mutex<Reached>,
    /// Results that are in that log, perhaps not on the device yet: nobody has heard of them.
    pub(super) leaving: Mutex<VecDeque<(Noted, Arc<ContinuousResult>)>>,
    /// Held while these are given to readers.
    pub(super) handing_out: Mutex<()>,
    pub(super) is_paused: AtomicBool,
    pub(super) is_gone: AtomicBool,
    /// Reasons to look whether it is due that nobody has looked into; whoever adds the first one does.
    pub(super) wakes: AtomicU64,
    /// In which queue it waits; locked before that of a stream.
    pub(super) waiting: Mutex<Waiting>,
    /// The last evaluation took long.
    pub(super) is_long: AtomicBool,
    /// It takes so long that queries that do not are not to wait for it.
    pub(super) is_slow: AtomicBool,
    /// Where its results go, if they are a stream.
    pub(super) publishes: Option<Arc<Stream>>,
    pub(super) figures: Figures,
    /// What it takes is counted as long as it is there.
    pub(super) registered: Option<Registered>,
}

#[derive(Default)]
pub(super) struct State {
    /// It was evaluated up to here; `None` before it is known when its streams begin.
    pub(super) last_ms: Option<i64>,
    pub(super) keeping: Keeping,
    pub(super) last_rows: LastRows,
    /// All that was found at the last instant, where results are differences.
    pub(super) before: Option<Arc<Answer>>,
    /// Its bytes are counted.
    pub(super) before_held: Option<Arc<Held>>,
    pub(super) sequence: u64,
    /// How many instants in a row were [idle](super::gap::is_idle).
    pub(super) empty: u32,
}

/// What of a [`State`] is to be known after a crash.
#[derive(Clone, Default)]
pub(super) struct Reached {
    pub(super) last_ms: Option<i64>,
    pub(super) before: Option<Arc<Answer>>,
    pub(super) sequence: u64,
    pub(super) empty: u32,
}

#[derive(Default)]
pub(super) struct Figures {
    pub(super) executions: AtomicU64,
    /// Those for which solutions had been kept.
    pub(super) incremental: AtomicU64,
    /// Those that were one execution with others.
    pub(super) together: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) rows: AtomicU64,
    pub(super) nanoseconds: AtomicU64,
    pub(super) took: Histogram,
    pub(super) longest: AtomicU64,
}

/// What every answer of a query is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// Rows of these variables, which are without their question marks.
    Solutions(Vec<String>),
    /// A boolean.
    Boolean,
    /// Triples.
    Triples,
}

/// What a continuous query has done.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[non_exhaustive]
pub struct ContinuousStatus {
    /// What it was registered as.
    pub name: String,
    /// Its text.
    pub text: String,
    /// It is not evaluated for the time being.
    pub paused: bool,
    /// How often it was evaluated.
    pub executions: u64,
    /// How often solutions of the instant before were used.
    pub incremental: u64,
    /// How often it was evaluated together with queries that differ in constants.
    pub together: u64,
    /// How often that ended with an error.
    pub failures: u64,
    /// Rows that it gave.
    pub rows: u64,
    /// Seconds that all evaluations took.
    pub seconds: f64,
    /// Microseconds of half of all evaluations at most, and of 99 of 100.
    pub median_us: f64,
    /// See `median_us`.
    pub p99_us: f64,
    /// The longest one.
    pub longest_us: f64,
    /// The last instant at which it was evaluated.
    pub last_instant_ms: Option<i64>,
    /// The streams of its windows, by their names.
    pub streams: Vec<String>,
}

impl Continuous {
    /// What its answers are.
    pub(super) fn form(&self) -> AnswerForm {
        match self.query.variables() {
            Some(variables) => AnswerForm::Solutions(variables),
            None if self.query.is_ask() => AnswerForm::Boolean,
            None => AnswerForm::Triples,
        }
    }

    /// Where it is to begin: with the batches of its streams that no one has taken yet. It is among the
    /// readers of these already, so that all of them keep what it needs.
    pub(super) fn beginning(&self) -> (Option<i64>, Box<[i64]>) {
        let stable = self.streams.iter().map(|stream| {
            // A batch that is under way may have been found to be read by nobody.
            let _no_batch = stream.closing.lock();
            stream.intake.lock().stable_ms()
        });
        let stable: Vec<Option<i64>> = stable.collect();
        let last_ms = stable.iter().copied().flatten().max();
        let begins = stable.iter().map(|stable| stable.unwrap_or(i64::MIN));
        (last_ms, begins.collect())
    }

    /// Has it begin.
    pub(super) fn begin(&self, last_ms: Option<i64>, begins: Box<[i64]>) {
        {
            // Nobody evaluates it yet.
            let mut state = self.state.lock();
            state.last_ms = last_ms;
            self.reached.lock().last_ms = last_ms;
        }
        self.last_ms.store(last_ms.unwrap_or(i64::MIN), Relaxed);
        let is_first = self.begins.set(begins).is_ok();
        assert!(is_first, "a query begins once");
    }

    /// Has it go on from where it was.
    pub(super) fn resume(&self, at: Reached) {
        let mut state = self.state.lock();
        state.last_ms = at.last_ms;
        state.before.clone_from(&at.before);
        state.sequence = at.sequence;
        state.empty = at.empty;
        self.last_ms.store(at.last_ms.unwrap_or(i64::MIN), Relaxed);
        *self.reached.lock() = at;
    }

    /// Its core, whose solutions can be kept, or why there is none.
    pub(super) fn incremental(&self) -> &Result<Incremental, Recomputed> {
        self.incremental.get_or_init(|| {
            let window = |number: u16| self.schedule.windows[usize::from(number)].time();
            let overlaps = |number: u16| window(number).is_some_and(TimeWindow::overlaps);
            self.query.incremental(&overlaps)
        })
    }

    /// Why there is no such core, where it does not [overlap](Self::overlaps).
    pub(super) fn recomputed(&self) -> Recomputed {
        let reason = self.incremental().as_ref().err();
        reason.copied().unwrap_or(Recomputed::NoOverlap)
    }

    /// Has it gone on to an instant.
    pub(super) fn pass(&self, state: &mut State, last_ms: i64) {
        state.last_ms = Some(last_ms);
        self.last_ms.store(last_ms, Relaxed);
        if self.is_durable {
            self.reached.lock().last_ms = Some(last_ms);
        }
    }

    /// True unless it keeps solutions, takes long or is paused.
    pub(super) fn may_be_together(&self) -> bool {
        let keeps = |plans: &Arc<Plans>| plans.incremental.is_ok();
        !self.is_paused.load(Relaxed)
            && !self.is_long.load(Relaxed)
            && !self.plans.lock().as_ref().is_some_and(keeps)
    }

    /// What is given of an answer, and what is to be remembered for the next one.
    pub(super) fn output(&self, state: &mut State, answer: Answer) -> Answer {
        let is_insert = match self.query.output {
            None | Some(Output::RStream) => return answer,
            Some(Output::IStream) => true,
            Some(Output::DStream) => false,
        };
        let empty = Rows::default();
        let before = state.before.take();
        let before_rows = before.as_deref().and_then(Answer::rows).unwrap_or(&empty);
        let given = answer.rows().map(|rows| match is_insert {
            true => rows.without(before_rows),
            false => before_rows.without(rows),
        });
        let given = given.map(|rows| answer.with_rows(rows));
        let given = given.unwrap_or_else(|| answer.clone());
        state.before = Some(Arc::new(answer));
        given
    }

    pub(super) fn note(&self, rows: Option<usize>, took: Duration) {
        let figures = &self.figures;
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        figures.executions.fetch_add(1, Relaxed);
        figures.nanoseconds.fetch_add(nanoseconds, Relaxed);
        figures.took.note(took);
        figures.longest.fetch_max(nanoseconds, Relaxed);
        match rows {
            Some(rows) => figures.rows.fetch_add(rows as u64, Relaxed),
            None => figures.failures.fetch_add(1, Relaxed),
        };
    }

    /// Whether what is given is a part of what was found.
    pub(super) fn gives_changes(&self) -> bool {
        matches!(self.query.output, Some(Output::IStream | Output::DStream))
    }

    /// The last results that are kept, up to so many bytes, and one at least; oldest first.
    pub(super) fn last_results(&self, most_bytes: usize) -> Vec<Arc<ContinuousResult>> {
        let leaving = self.leaving.lock();
        let left = self.log.all();
        let all = left.iter().chain(leaving.iter().map(|(_, result)| result));
        let mut bytes = 0;
        let mut last: Vec<Arc<ContinuousResult>> = Vec::new();
        for result in all.rev() {
            bytes += result.bytes();
            if bytes > most_bytes && !last.is_empty() {
                break;
            }
            last.push(Arc::clone(result));
        }
        last.reverse();
        last
    }

    pub(super) fn is_paused(&self) -> bool {
        self.is_paused.load(Relaxed)
    }

    /// True if its results are this stream.
    pub(super) fn makes(&self, stream: &Arc<Stream>) -> bool {
        let made = self.publishes.as_ref();
        made.is_some_and(|made| Arc::ptr_eq(made, stream))
    }

    pub(super) fn status(&self) -> ContinuousStatus {
        let figures = &self.figures;
        let executions = figures.executions.load(Relaxed);
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        ContinuousStatus {
            name: self.name.clone(),
            text: self.text.clone(),
            paused: self.is_paused(),
            executions,
            incremental: figures.incremental.load(Relaxed),
            together: figures.together.load(Relaxed),
            failures: figures.failures.load(Relaxed),
            rows: figures.rows.load(Relaxed),
            seconds: figures.nanoseconds.load(Relaxed) as f64 / 1e9,
            median_us: us(figures.took.percentile(0.5)),
            p99_us: us(figures.took.percentile(0.99)),
            longest_us: figures.longest.load(Relaxed) as f64 / 1e3,
            last_instant_ms: (self.log.last() > 0).then(|| self.last_ms.load(Relaxed)),
            streams: self
                .streams
                .iter()
                .map(|stream| stream.name.clone())
                .collect(),
        }
    }
}
