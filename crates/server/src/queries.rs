//! Which queries does the server run, how far are they, and how is one ended from outside?

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::hash::BuildHasher;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jindou_engine::{CancellationToken, QueryProgress};
use jindou_fabric::schedule::{ThreadId, run_when_idle};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::stopping::STOPPED;
use crate::threads::{HeavyPriority, Purpose};

/// Bytes of a query's text kept for the list.
const TEXT_BYTES: usize = 4096;
/// Queries that failed, remembered so that their clients may ask why.
const REMEMBERED: usize = 256;
/// Parts of the table of running queries, each with a lock of its own.
const PARTS: usize = 16;

/// The name of a query: 16 hexadecimal digits that nobody can guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct QueryId(u64);

impl QueryId {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(text, 16).ok().map(Self))?
    }
}

impl fmt::Display for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// What a query is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Waits for its turn among the heavy ones.
    Queued,
    /// Computes; nothing was sent yet.
    Running,
    /// Its client has begun to receive.
    Sending,
}

impl State {
    const ALL: [Self; 3] = [Self::Queued, Self::Running, Self::Sending];

    const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Sending => "sending",
        }
    }
}

/// What a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Query,
    /// Something that changes the database: an update, or a write to the graph store.
    Update,
    /// Something that changes or feeds a stream or a continuous query.
    Stream,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Query => "query",
            Self::Update => "update",
            Self::Stream => "stream",
        }
    }
}

/// Why a query was ended from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Somebody asked for it.
    Request,
    /// Its client went away.
    Gone,
    /// Its client does not read.
    Stalled,
    /// The server stops, and has waited for it.
    Stopped,
}

impl Reason {
    pub(crate) const fn message(self) -> &'static str {
        match self {
            Self::Request => "the query was cancelled through DELETE /queries",
            Self::Gone => "the client went away",
            Self::Stalled => "the client did not read its results for too long",
            Self::Stopped => STOPPED,
        }
    }
}

/// A connection, for the queries that come by it.
pub(crate) struct Client {
    address: SocketAddr,
    /// Who sent the request under way, of which a connection has one at a time.
    user: Mutex<Option<Arc<str>>>,
    cut: Notify,
    /// When its connection last took something of an answer.
    reading: Mutex<Option<Instant>>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            user: Mutex::default(),
            cut: Notify::new(),
            reading: Mutex::default(),
        }
    }

    /// Notes that its connection takes something of an answer.
    pub(crate) fn note_reading(&self, now: Instant) {
        *self.reading.lock().expect("nobody panics while it has it") = Some(now);
    }

    /// When its connection last took something of an answer that waits since then.
    pub(crate) fn reading_since(&self, since: Instant) -> Instant {
        let reading = self.reading.lock().expect("nobody panics while it has it");
        reading.map_or(since, |reading| reading.max(since))
    }

    /// Who sent the request under way, where it is known.
    pub(crate) fn user(&self) -> Option<Arc<str>> {
        self.lock_user().clone()
    }

    /// Notes who sent the request under way; nobody, as it begins.
    pub(crate) fn set_user(&self, user: Option<Arc<str>>) {
        *self.lock_user() = user;
    }

    fn lock_user(&self) -> MutexGuard<'_, Option<Arc<str>>> {
        self.user.lock().expect("nobody panics while it has it")
    }

    /// Where it comes from.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Has the connection closed at once.
    pub(crate) fn cut(&self) {
        self.cut.notify_one();
    }

    /// Waits until the connection is to be closed at once, whatever is under way on it.
    pub(crate) async fn until_cut(&self) {
        self.cut.notified().await;
    }
}

/// One query while the server has it.
pub(crate) struct Running {
    pub(crate) id: QueryId,
    kind: Kind,
    pub(crate) started: Instant,
    /// From its start.
    pub(crate) limit: Duration,
    started_at: SystemTime,
    text: Box<str>,
    text_bytes: usize,
    client: Option<Arc<Client>>,
    user: Option<Arc<str>>,
    state: AtomicU8,
    heavy: AtomicBool,
    rows_sent: AtomicU64,
    bytes_sent: AtomicU64,
    /// When its client ceased to read, in nanoseconds after `started`; 0 while it reads.
    stalled_nanos: AtomicU64,
    progress: Mutex<QueryProgress>,
    token: CancellationToken,
    reason: OnceLock<Reason>,
    cancelled: Notify,
    executing: Mutex<Option<Executing>>,
}

/// The thread that executes a query, while it does.
struct Executing {
    thread: ThreadId,
    /// Runs as others do, so that the query is gone soon.
    is_hurried: bool,
}

/// A query is executed by this thread until this is dropped.
pub(crate) struct ExecutedHere(Arc<Running>);

impl Drop for ExecutedHere {
    fn drop(&mut self) {
        // From here on nobody hurries the thread.
        let executing = self.0.lock_executing().take();
        if executing.is_some_and(|executing| executing.is_hurried)
            && let Err(error) = run_when_idle()
        {
            tracing::debug!(%error, "a thread keeps the priority of others");
        }
    }
}

impl Running {
    fn new(
        id: QueryId,
        kind: Kind,
        text: &str,
        client: Option<Arc<Client>>,
        started: Instant,
        limit: Duration,
    ) -> Self {
        let kept = text.floor_char_boundary(TEXT_BYTES);
        Self {
            id,
            kind,
            started,
            limit,
            started_at: SystemTime::now(),
            text: text[..kept].into(),
            text_bytes: text.len(),
            user: client.as_ref().and_then(|client| client.user()),
            client,
            state: AtomicU8::new(State::Running as u8),
            heavy: AtomicBool::new(false),
            rows_sent: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            stalled_nanos: AtomicU64::new(0),
            progress: Mutex::default(),
            token: CancellationToken::new(),
            reason: OnceLock::new(),
            cancelled: Notify::new(),
            executing: Mutex::default(),
        }
    }

    /// Notes that the calling thread executes the query. Once it is cancelled, the thread runs as others do, where the
    /// operating system allows that: one that runs only while a core is idle would hold what the query has, memory and
    /// a place, for as long as no core is.
    pub(crate) fn executed_here(self: &Arc<Self>, purpose: Purpose) -> ExecutedHere {
        // Threads of other priorities get a share of the cores in any case.
        let runs_when_idle = purpose == Purpose::Heavy(HeavyPriority::Idle);
        *self.lock_executing() = runs_when_idle.then(|| Executing {
            thread: ThreadId::own(),
            is_hurried: false,
        });
        if self.reason().is_some() {
            self.hurry();
        }
        ExecutedHere(Arc::clone(self))
    }

    /// Has the thread that executes it run as others do.
    fn hurry(&self) {
        let mut executing = self.lock_executing();
        let Some(executing) = executing.as_mut().filter(|one| !one.is_hurried) else {
            return;
        };
        match executing.thread.run_as_usual() {
            Ok(()) => executing.is_hurried = true,
            Err(error) => {
                tracing::debug!(%error, "a cancelled query ends when a core is idle");
            }
        }
    }

    fn lock_executing(&self) -> MutexGuard<'_, Option<Executing>> {
        self.executing
            .lock()
            .expect("nobody panics while it has it")
    }

    /// As much of its text as is kept, and how many bytes it has.
    pub(crate) fn text(&self) -> (&str, usize) {
        (&self.text, self.text_bytes)
    }

    pub(crate) fn kind(&self) -> &'static str {
        self.kind.name()
    }

    /// Who asked it, where that is known.
    pub(crate) fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.client.as_ref().map(|client| client.address())
    }

    /// What the engine looks at to learn that the query is to end.
    pub(crate) fn token(&self) -> CancellationToken {
        self.token.clone()
    }

    /// Ends the query. The first reason is the one that is told.
    pub(crate) fn cancel(&self, reason: Reason) {
        self.reason.get_or_init(|| reason);
        self.token.cancel();
        self.hurry();
        self.cancelled.notify_waiters();
        let sending = self.state.load(Relaxed) == State::Sending as u8;
        // Where the server stops, who reads gets what was found, and then sees that it is cut short.
        if sending && !matches!(reason, Reason::Gone | Reason::Stopped) {
            self.cut();
        }
    }

    /// Closes the client's connection: it has part of the results, and is to see that there will
    /// be no more.
    pub(crate) fn cut(&self) {
        if let Some(client) = &self.client {
            client.cut();
        }
    }

    /// Why it is to end, if it is.
    pub(crate) fn reason(&self) -> Option<Reason> {
        self.reason.get().copied()
    }

    /// Waits until the query is ended from outside.
    pub(crate) async fn until_cancelled(&self) -> Reason {
        loop {
            let notified = self.cancelled.notified();
            tokio::pin!(notified);
            // From here on no cancellation is missed.
            notified.as_mut().enable();
            if let Some(reason) = self.reason() {
                return reason;
            }
            notified.await;
        }
    }

    pub(crate) fn set_state(&self, state: State) {
        self.state.store(state as u8, Relaxed);
    }

    pub(crate) fn set_heavy(&self) {
        self.heavy.store(true, Relaxed);
    }

    /// Begins anew: gives the engine what it is to count in.
    pub(crate) fn new_progress(&self) -> QueryProgress {
        let progress = QueryProgress::default();
        *self.lock_progress() = progress.clone();
        progress
    }

    fn lock_progress(&self) -> MutexGuard<'_, QueryProgress> {
        self.progress.lock().expect("nobody panics while it counts")
    }

    pub(crate) fn sent(&self, rows: u64, bytes: u64) {
        self.rows_sent.store(rows, Relaxed);
        self.bytes_sent.store(bytes, Relaxed);
    }

    /// Notes that the client does not read, or that it does again.
    pub(crate) fn set_stalled(&self, stalled: bool) {
        let nanos = match stalled {
            true => (self.started.elapsed().as_nanos() as u64).max(1),
            false => 0,
        };
        self.stalled_nanos.store(nanos, Relaxed);
    }

    fn json(&self) -> Value {
        let progress = self.lock_progress().clone();
        let state = State::ALL[usize::from(self.state.load(Relaxed))];
        let elapsed = self.started.elapsed();
        let since_epoch = self.started_at.duration_since(UNIX_EPOCH);
        let stalled = match self.stalled_nanos.load(Relaxed) {
            0 => Duration::ZERO,
            nanos => elapsed.saturating_sub(Duration::from_nanos(nanos)),
        };
        json!({
            "id": self.id.to_string(),
            "kind": self.kind.name(),
            "state": state.name(),
            "class": if self.heavy.load(Relaxed) { "heavy" } else { "light" },
            "cancelled": self.reason().is_some(),
            "client": self.address().map(|address| address.to_string()),
            "user": self.user(),
            "started_unix_seconds": since_epoch.unwrap_or_default().as_secs_f64(),
            "elapsed_seconds": elapsed.as_secs_f64(),
            "timeout_seconds": self.limit.as_secs_f64(),
            "rows_found": progress.rows(),
            "batches": progress.batches(),
            "memory_bytes": progress.memory_bytes(),
            "rows_sent": self.rows_sent.load(Relaxed),
            "bytes_sent": self.bytes_sent.load(Relaxed),
            "stalled_seconds": stalled.as_secs_f64(),
            "query": &*self.text,
            "query_bytes": self.text_bytes,
        })
    }
}

/// All queries that the server has, and the last that failed.
pub(crate) struct Queries {
    ids: RandomState,
    next: AtomicU64,
    parts: [Mutex<HashMap<QueryId, Arc<Running>>>; PARTS],
    failed: Mutex<VecDeque<Failed>>,
    /// Whatever comes is ended at once.
    stopped: AtomicBool,
}

struct Failed {
    id: QueryId,
    status: u16,
    message: String,
}

/// Keeps a query in the list until it is dropped.
pub(crate) struct Listed {
    queries: Arc<Queries>,
    running: Arc<Running>,
}

impl std::ops::Deref for Listed {
    type Target = Arc<Running>;

    fn deref(&self) -> &Arc<Running> {
        &self.running
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let id = self.running.id;
        self.queries.part(id).remove(&id);
    }
}

impl Queries {
    pub(crate) fn new() -> Self {
        Self {
            ids: RandomState::new(),
            next: AtomicU64::new(0),
            parts: Default::default(),
            failed: Mutex::default(),
            stopped: AtomicBool::new(false),
        }
    }

    /// Puts a query that begins now into the list.
    pub(crate) fn list(
        self: &Arc<Self>,
        kind: Kind,
        text: &str,
        client: Option<Arc<Client>>,
        limit: Duration,
    ) -> Listed {
        let started = Instant::now();
        loop {
            // Hashes under a secret key: two may meet once in a very long while.
            let id = QueryId(self.ids.hash_one(self.next.fetch_add(1, Relaxed)));
            let mut part = self.part(id);
            if part.contains_key(&id) {
                continue;
            }
            let running = Arc::new(Running::new(id, kind, text, client, started, limit));
            part.insert(id, Arc::clone(&running));
            drop(part);
            // Either this is seen, or `stop` sees the query: the lock orders the two.
            if self.stopped.load(Relaxed) {
                running.cancel(Reason::Stopped);
            }
            let queries = Arc::clone(self);
            return Listed { queries, running };
        }
    }

    /// Ends all queries, and those that come.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Relaxed);
        for running in self.all() {
            running.cancel(Reason::Stopped);
        }
    }

    /// A name that nothing else has, and nobody can guess.
    pub(crate) fn new_name(&self) -> String {
        let part = || QueryId(self.ids.hash_one(self.next.fetch_add(1, Relaxed)));
        format!("{}{}", part(), part())
    }

    fn part(&self, id: QueryId) -> MutexGuard<'_, HashMap<QueryId, Arc<Running>>> {
        self.parts[id.0 as usize % PARTS]
            .lock()
            .expect("nobody panics while it holds the list")
    }

    pub(crate) fn get(&self, id: QueryId) -> Option<Arc<Running>> {
        self.part(id).get(&id).cloned()
    }

    fn all(&self) -> Vec<Arc<Running>> {
        let mut all = Vec::new();
        for part in &self.parts {
            let part = part.lock().expect("nobody panics while it holds the list");
            all.extend(part.values().cloned());
        }
        all.sort_by_key(|running| running.started);
        all
    }

    /// The query whose client has not read for longest.
    pub(crate) fn longest_stalled(&self) -> Option<Arc<Running>> {
        let since = |running: &Running| match running.stalled_nanos.load(Relaxed) {
            0 => None,
            nanos => Some(running.started + Duration::from_nanos(nanos)),
        };
        let stalled = self.all().into_iter().filter(|r| r.reason().is_none());
        let stalled = stalled.filter_map(|running| Some((since(&running)?, running)));
        stalled
            .min_by_key(|(since, _)| *since)
            .map(|(_, running)| running)
    }

    /// Remembers why a query failed, for as long as few others do.
    pub(crate) fn failed(&self, id: QueryId, status: u16, message: &str) {
        let mut failed = self.lock_failed();
        if failed.len() == REMEMBERED {
            failed.pop_front();
        }
        let kept = message.floor_char_boundary(TEXT_BYTES);
        let message = message[..kept].to_owned();
        failed.push_back(Failed {
            id,
            status,
            message,
        });
    }

    fn lock_failed(&self) -> MutexGuard<'_, VecDeque<Failed>> {
        self.failed
            .lock()
            .expect("nobody panics while it remembers")
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        let len = |part: &Mutex<HashMap<_, _>>| part.lock().map_or(0, |part| part.len());
        self.parts.iter().map(len).sum()
    }

    /// All queries, the oldest first.
    pub(crate) fn json(&self) -> Value {
        self.all().iter().map(|running| running.json()).collect()
    }

    /// One query: as it runs, or how it failed.
    pub(crate) fn json_of(&self, id: QueryId) -> Option<Value> {
        // One that has failed may be listed for a moment longer.
        self.failure(id)
            .or_else(|| self.get(id).map(|running| running.json()))
    }

    fn failure(&self, id: QueryId) -> Option<Value> {
        let failed = self.lock_failed();
        let failed = failed.iter().rev().find(|failed| failed.id == id)?;
        Some(json!({
            "id": id.to_string(),
            "state": "failed",
            "status": failed.status,
            "error": failed.message,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(queries: &Arc<Queries>, text: &str) -> Listed {
        queries.list(Kind::Query, text, None, Duration::from_secs(1))
    }

    #[test]
    fn a_query_is_listed_until_it_ends() {
        let queries = Arc::new(Queries::new());
        let listed = list(&queries, "ASK {}");
        let id = listed.id;
        assert_eq!(QueryId::parse(&id.to_string()), Some(id));
        assert_eq!(queries.json()[0]["query"], "ASK {}");
        drop(listed);
        assert!(queries.get(id).is_none() && queries.json_of(id).is_none());
    }

    #[test]
    fn a_query_that_comes_when_all_were_ended_is_ended_too() {
        let queries = Arc::new(Queries::new());
        let before = list(&queries, "ASK {}");
        assert_eq!(before.reason(), None);
        queries.stop();
        let after = list(&queries, "ASK {}");
        for listed in [before, after] {
            assert_eq!(listed.reason(), Some(Reason::Stopped));
            assert!(listed.token().is_cancelled());
        }
    }

    #[test]
    fn ids_are_sixteen_digits_and_nothing_else() {
        for wrong in [
            "",
            "1",
            "+123456789abcdef",
            "0123456789abcdef0",
            "0123456789abcdeg",
        ] {
            assert_eq!(QueryId::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let queries = Arc::new(Queries::new());
        let listed = list(&queries, &format!("a{}", "é".repeat(TEXT_BYTES)));
        let json = listed.json();
        let kept = json["query"].as_str().expect("text").len();
        assert_eq!(kept, TEXT_BYTES - 1);
        assert_eq!(json["query_bytes"], 2 * TEXT_BYTES + 1);
    }

    #[test]
    fn failures_are_remembered_up_to_a_bound() {
        let queries = Arc::new(Queries::new());
        for number in 0..=REMEMBERED as u64 {
            queries.failed(QueryId(number), 504, "too long");
        }
        assert!(queries.json_of(QueryId(0)).is_none());
        let last = queries.json_of(QueryId(REMEMBERED as u64));
        assert_eq!(last.expect("remembered")["error"], "too long");
    }

    #[test]
    fn who_waits_for_a_cancellation_never_misses_it() {
        let queries = Arc::new(Queries::new());
        let listed = list(&queries, "ASK {}");
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(async {
            let waiting = tokio::spawn({
                let running = Arc::clone(&listed);
                async move { running.until_cancelled().await }
            });
            tokio::task::yield_now().await;
            listed.cancel(Reason::Request);
            listed.cancel(Reason::Gone);
            assert_eq!(waiting.await.expect("no panic"), Reason::Request);
            assert_eq!(listed.until_cancelled().await, Reason::Request);
        });
        assert!(listed.token().is_cancelled());
    }

    #[test]
    fn the_longest_stalled_query_is_found() {
        let queries = Arc::new(Queries::new());
        let [one, two, _three] = ["1", "2", "3"].map(|text| list(&queries, text));
        assert!(queries.longest_stalled().is_none());
        two.set_stalled(true);
        one.set_stalled(true);
        let longest = || queries.longest_stalled().expect("two are").id;
        assert_eq!(longest(), two.id);
        two.cancel(Reason::Stalled);
        assert_eq!(longest(), one.id);
    }

    #[test]
    fn a_cancelled_query_is_hurried_by_the_thread_that_executes_it_and_no_other() {
        let queries = Arc::new(Queries::new());
        let one = Arc::clone(&list(&queries, "1"));
        let executes = std::thread::spawn(move || {
            let is_hurried = || {
                let executing = one.lock_executing();
                executing.as_ref().map(|executing| executing.is_hurried)
            };
            let idle = Purpose::Heavy(HeavyPriority::Idle);
            run_when_idle().expect("any thread may");
            let may_hurry = {
                let may = ThreadId::own().run_as_usual().is_ok();
                run_when_idle().expect("any thread may");
                may
            };
            let here = one.executed_here(idle);
            assert_eq!(is_hurried(), Some(false));
            one.cancel(Reason::Request);
            assert_eq!(is_hurried(), Some(may_hurry));
            drop(here);
            assert_eq!(is_hurried(), None);
            one.cancel(Reason::Gone);
            assert_eq!(is_hurried(), None);
            // One that was cancelled while it waited for the thread.
            let here = one.executed_here(idle);
            assert_eq!(is_hurried(), Some(may_hurry));
            drop(here);
            let _here = one.executed_here(Purpose::Heavy(HeavyPriority::Low));
            assert_eq!(is_hurried(), None);
        });
        executes.join().expect("no panic");
    }
}
