//! What do all operators of one query share, and how is the query kept within its limits?

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use jindou_model::{TermId, TermKind, Unavailable};
use jindou_plan::Stack;
use jindou_plan::physical::{ConstId, Dataset, Plan, Slot, Windows};
use oxrdf::TermRef;

use crate::account::Account;
use crate::class::QueryClass;
use crate::fork::{ForkCounts, Forked, Forks, QueryMessages};
use crate::spill::{self, Space, SpillLimits};
use crate::table::Table;
use crate::terms::{QueryOrder, WaitsUntil};
use crate::{ExecError, GraphSource, MaterializedRows, Services, Terms, Transport, expr};

/// A table of so few bytes is not booked: the operator that holds it takes about as much itself,
/// and light queries have no others.
const UNBOOKED_TABLE_BYTES: usize = 1 << 10;

/// Ends a query from outside: clones share one switch.
#[derive(Clone, Debug, Default)]
pub struct CancellationToken {
    cancelled: Arc<AtomicBool>,
    /// Looks at it so far, and the one at which it cancels itself: tests count work by them.
    #[cfg(test)]
    looks: Arc<(AtomicU64, AtomicU64)>,
}

impl CancellationToken {
    /// A token that nobody has cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the queries that have this token, at their next batch of rows.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// True once it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        #[cfg(test)]
        if self.looks.0.fetch_add(1, Ordering::Relaxed) + 1 == self.looks.1.load(Ordering::Relaxed)
        {
            self.cancel();
        }
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Cancels itself at this look at it, counted from 1.
    #[cfg(test)]
    pub(crate) fn cancel_at_look(&self, look: u64) {
        self.looks.1.store(look, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn looks(&self) -> u64 {
        self.looks.0.load(Ordering::Relaxed)
    }
}

/// The limits of one query.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Ends it from outside.
    pub cancellation: CancellationToken,
    /// When it began: before it was planned.
    pub started: Instant,
    /// Ends it after this time.
    pub timeout: Option<Duration>,
    /// Bytes that its operators may hold together.
    pub memory_bytes: u64,
    /// Where sorts, groups, distinct rows and joins put what does not fit, and how much of it.
    pub spill: SpillLimits,
    /// Where it books what it holds; a new one for each query.
    pub account: Arc<Account>,
}

/// Rows and time of one step or operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Rows that it handed on.
    pub rows: u64,
    /// Time spent in it, without what it called.
    pub time: Duration,
}

/// Rows and time by the ids of steps and operators.
pub(crate) struct Profile {
    rows: Vec<AtomicU64>,
    nanoseconds: Vec<AtomicU64>,
}

impl Profile {
    fn new(ids: u32) -> Self {
        let zeros = || (0..ids).map(|_| AtomicU64::new(0)).collect();
        Self {
            rows: zeros(),
            nanoseconds: zeros(),
        }
    }

    /// Adds what another node measured. Numbers that the plan has not are left out.
    pub(crate) fn add(&self, id: u32, rows: u64, nanoseconds: u64) {
        if let (Some(all_rows), Some(all_time)) = (
            self.rows.get(id as usize),
            self.nanoseconds.get(id as usize),
        ) {
            all_rows.fetch_add(rows, Ordering::Relaxed);
            all_time.fetch_add(nanoseconds, Ordering::Relaxed);
        }
    }

    /// Takes away what was measured, by the numbers of steps and operators: rows and nanoseconds.
    pub(crate) fn take(&self) -> Vec<(u32, u64, u64)> {
        let all = self.rows.iter().zip(&self.nanoseconds).zip(0..);
        let all = all.map(|((rows, time), id)| {
            let rows = rows.swap(0, Ordering::Relaxed);
            (id, rows, time.swap(0, Ordering::Relaxed))
        });
        all.filter(|(_, rows, time)| *rows > 0 || *time > 0)
            .collect()
    }

    /// Runs one call of the operator `id` and books its rows and its own time: without that of the
    /// calls in it, which `nested` sums up on the thread that makes them.
    pub(crate) fn measure(
        &self,
        id: u32,
        nested: &AtomicU64,
        call: impl FnOnce() -> Result<Option<Table>, ExecError>,
    ) -> Result<Option<Table>, ExecError> {
        let outer = nested.swap(0, Ordering::Relaxed);
        let begin = Instant::now();
        let result = call();
        let total = begin.elapsed().as_nanos() as u64;
        let own = total.saturating_sub(nested.load(Ordering::Relaxed));
        nested.store(outer + total, Ordering::Relaxed);
        self.nanoseconds[id as usize].fetch_add(own, Ordering::Relaxed);
        if let Ok(Some(table)) = &result {
            self.rows[id as usize].fetch_add(table.counted_rows(), Ordering::Relaxed);
        }
        result
    }
}

/// Why expressions have no values any more.
enum End {
    Cancelled,
    Timeout,
    Memory,
    /// Of this size in bytes.
    Pool(u64),
}

/// What a query and its expressions know of its end.
struct Ending {
    /// The limits that expressions look at between rows.
    cancellation: CancellationToken,
    account: Arc<Account>,
    started: Instant,
    timeout: Option<Duration>,
    pool_bytes: u64,
    /// Why expressions have no values any more.
    end: OnceLock<End>,
    /// Nobody reads the query's rows any more.
    finished: AtomicBool,
}

impl WaitsUntil for Ending {
    fn is_over(&self, terms: &Terms) -> bool {
        match self.look(terms) {
            // Whoever waits for terms is not to wait for ever.
            None => self.finished.load(Ordering::Relaxed),
            Some(end) => {
                self.end.get_or_init(|| end);
                true
            }
        }
    }
}

impl Ending {
    fn look(&self, terms: &Terms) -> Option<End> {
        if self.cancellation.is_cancelled() {
            return Some(End::Cancelled);
        }
        if self
            .timeout
            .is_some_and(|limit| self.started.elapsed() > limit)
        {
            return Some(End::Timeout);
        }
        self.account.note_computed(terms.computed_bytes() as u64);
        if self.account.add(0, 0) > self.pool_bytes {
            return Some(End::Memory);
        }
        self.account.cover().err().map(End::Pool)
    }
}

/// One query while it runs, as a node sees it; the node's threads share it.
pub struct Context {
    pub(crate) source: Arc<dyn GraphSource>,
    /// How rows go on at other nodes, if there are any.
    pub(crate) forks: Option<Arc<dyn Forks>>,
    /// Time of what the running operator of a profiled query has called so far: its calls nest, as
    /// this query, or this part of it, runs on one thread.
    pub(crate) nested: AtomicU64,
    shared: Arc<SharedContext>,
}

impl Deref for Context {
    type Target = SharedContext;

    fn deref(&self) -> &SharedContext {
        &self.shared
    }
}

/// What is the same of a query wherever it runs.
pub struct SharedContext {
    pub(crate) expressions: expr::Context,
    /// Ids of the plan's constants; those that no edge has are ids of this query only.
    pub(crate) constants: Vec<TermId>,
    pub(crate) dataset: Option<ActiveDataset>,
    /// Without a dataset, the default graph is all graphs together.
    pub(crate) union_default_graph: bool,
    /// How other endpoints are called, if they are.
    pub(crate) services: Option<Services>,
    limits: Limits,
    /// Bytes that whoever comes first may hold: all but what is set aside.
    pool_bytes: u64,
    space: Arc<Space>,
    ending: Arc<Ending>,
    solutions: AtomicU64,
    pub(crate) profile: Option<Profile>,
    /// Threads that a heavy part may use.
    pub(crate) threads: usize,
    /// How tables get from one operator to the next, where they are not handed over as they are.
    pub(crate) transport: Option<Arc<dyn Transport>>,
    /// What [`Operator::Materialized`](jindou_plan::physical::Operator::Materialized) hands over.
    pub(crate) materialized: Arc<MaterializedRows>,
    /// What a thread does whose rows nobody has room for.
    meanwhile: OnceLock<Meanwhile>,
    pub(crate) fork_counts: ForkCounts,
    /// It is heavy, or has turned so.
    is_heavy: AtomicBool,
    /// The stack for a recursion over the plan, or over what is made of it.
    pub(crate) stack: Stack,
    /// How many operators of the plan can spill at the same time.
    pub(crate) spilling_operators: u64,
    /// What the numbers of the plan's steps and operators are below.
    pub(crate) ids: u32,
    /// What goes with its sub-queries, where these go as messages.
    pub(crate) messages: QueryMessages,
}

/// Does some work; false if there is none.
type Meanwhile = Box<dyn Fn() -> bool + Send + Sync>;

/// The graphs of a query's dataset clause.
pub(crate) struct ActiveDataset {
    /// Merged, they are the default graph.
    pub(crate) default: Vec<TermId>,
    /// These are all named graphs that there are.
    pub(crate) default_is_all: bool,
    /// What `GRAPH` ranges over, sorted.
    pub(crate) named: Vec<TermId>,
    /// What `GRAPH` may name beside windows, sorted: more than it ranges over.
    pub(crate) within: Vec<TermId>,
}

/// What a [`Context`] is made of.
pub struct ContextParts {
    /// The graph.
    pub source: Arc<dyn GraphSource>,
    /// Terms of the graph and of the query.
    pub terms: Terms,
    /// By constant of the plan.
    pub constants: Vec<TermId>,
    /// Its limits.
    pub limits: Limits,
    /// How other endpoints are called; without it they may not be.
    pub services: Option<Services>,
    /// Gather rows and times.
    pub profile: bool,
    /// Threads that heavy parts may use, this one included.
    pub threads: usize,
    /// Seed of `RAND()`, `UUID()` and `BNODE()`; no two queries should share one.
    pub seed: u64,
    /// How tables get from one operator to the next; without it they are handed over as they are.
    pub transport: Option<Arc<dyn Transport>>,
    /// The rows of [`Operator::Materialized`](jindou_plan::physical::Operator::Materialized), for a
    /// plan that has it.
    pub materialized: Arc<MaterializedRows>,
    /// How rows go on at other nodes; without it there are none.
    pub forks: Option<Arc<dyn Forks>>,
    /// As other nodes are to take what they get of it.
    pub class: QueryClass,
}

/// What the parts of a [`Context`] are made of, whoever says it.
pub(crate) struct Assembly {
    pub(crate) expressions: expr::Context,
    pub(crate) source: Arc<dyn GraphSource>,
    pub(crate) forks: Option<Arc<dyn Forks>>,
    pub(crate) constants: Vec<TermId>,
    pub(crate) dataset: Option<ActiveDataset>,
    pub(crate) union_default_graph: bool,
    pub(crate) services: Option<Services>,
    pub(crate) limits: Limits,
    /// How many operators can spill at the same time.
    pub(crate) spilling_operators: u64,
    pub(crate) is_profiled: bool,
    /// What the numbers of steps and operators are below.
    pub(crate) ids: u32,
    pub(crate) threads: usize,
    pub(crate) transport: Option<Arc<dyn Transport>>,
    pub(crate) materialized: Arc<MaterializedRows>,
    pub(crate) class: QueryClass,
    /// The number of the first solution that is numbered here.
    pub(crate) first_solution: u64,
    pub(crate) stack: Stack,
    pub(crate) messages: QueryMessages,
}

impl Context {
    /// The same query as another node sees it.
    pub(crate) fn at_node(&self, source: Arc<dyn GraphSource>, forks: Arc<dyn Forks>) -> Self {
        Self::of_shared(Arc::clone(&self.shared), source, forks)
    }

    /// The context of a query by `plan`.
    ///
    /// # Errors
    /// [`ExecError::NoStack`].
    pub fn new(plan: &Plan, parts: ContextParts) -> Result<Self, ExecError> {
        let ContextParts {
            source,
            terms,
            constants,
            limits,
            services,
            profile,
            threads,
            seed,
            transport,
            materialized,
            forks,
            class,
        } = parts;
        let dataset = plan
            .dataset
            .as_ref()
            .map(|dataset| ActiveDataset::new(dataset, plan.windows.as_ref(), &terms, &*source));
        let dataset = dataset.transpose().map_err(ExecError::of_unavailable)?;
        let threads = if profile { 1 } else { threads.max(1) };
        let count = || spill::count_operators(&plan.root, threads as u64);
        let stack = plan.stack();
        Ok(Self::assemble(Assembly {
            expressions: expr::Context::new(terms, None, plan.base.as_ref(), seed),
            source,
            forks,
            constants,
            dataset,
            union_default_graph: plan.union_default_graph,
            services,
            limits,
            spilling_operators: stack.run(count)?,
            is_profiled: profile,
            ids: plan.ids,
            threads,
            transport,
            materialized,
            class,
            first_solution: 0,
            stack,
            messages: QueryMessages::default(),
        }))
    }

    /// The context of a query, or of what another node has of one.
    pub(crate) fn assemble(parts: Assembly) -> Self {
        let Assembly {
            mut expressions,
            source,
            forks,
            limits,
            spilling_operators,
            ..
        } = parts;
        expressions.set_source(Arc::clone(&source));
        let space = Space::new(
            limits.spill.clone(),
            limits.memory_bytes,
            spilling_operators,
        );
        let set_aside = (space.own_bytes() as u64).saturating_mul(spilling_operators);
        let pool_bytes = limits.memory_bytes.saturating_sub(set_aside);
        let ending = Arc::new(Ending {
            cancellation: limits.cancellation.clone(),
            account: Arc::clone(&limits.account),
            started: limits.started,
            timeout: limits.timeout,
            pool_bytes,
            end: OnceLock::new(),
            finished: AtomicBool::new(false),
        });
        expressions.watch(Arc::clone(&ending) as _);
        let shared = SharedContext {
            expressions,
            constants: parts.constants,
            dataset: parts.dataset,
            union_default_graph: parts.union_default_graph,
            pool_bytes,
            ending,
            space: Arc::new(space),
            services: parts.services,
            limits,
            solutions: AtomicU64::new(parts.first_solution),
            profile: parts.is_profiled.then(|| Profile::new(parts.ids)),
            threads: parts.threads,
            transport: parts.transport,
            materialized: parts.materialized,
            meanwhile: OnceLock::new(),
            fork_counts: ForkCounts::default(),
            is_heavy: AtomicBool::new(parts.class == QueryClass::Heavy),
            stack: parts.stack,
            spilling_operators,
            ids: parts.ids,
            messages: parts.messages,
        };
        Self {
            source,
            forks,
            nested: AtomicU64::new(0),
            shared: Arc::new(shared),
        }
    }

    /// What is the same of the query wherever it runs.
    pub(crate) fn shared(&self) -> &Arc<SharedContext> {
        &self.shared
    }

    /// A part of the query whose other parts have this, at a node that sees the graph and the other
    /// nodes like this.
    pub(crate) fn of_shared(
        shared: Arc<SharedContext>,
        source: Arc<dyn GraphSource>,
        forks: Arc<dyn Forks>,
    ) -> Self {
        Self {
            source,
            forks: Some(forks),
            nested: AtomicU64::new(0),
            shared,
        }
    }

    /// Sets what the ids of constants and graphs are, which are read with the limits of the query;
    /// before anybody else has a part of it.
    pub(crate) fn set_ids(&mut self, constants: Vec<TermId>, dataset: Option<ActiveDataset>) {
        let shared = Arc::get_mut(&mut self.shared).expect("nobody else has a part of it yet");
        (shared.constants, shared.dataset) = (constants, dataset);
    }
}

impl SharedContext {
    /// How other nodes are to take what they get of the query from now on.
    #[must_use]
    pub fn class(&self) -> QueryClass {
        match self.is_heavy.load(Ordering::Relaxed) {
            true => QueryClass::Heavy,
            false => QueryClass::Light,
        }
    }

    /// From now on it is heavy: no query becomes light again.
    pub(crate) fn turn_heavy(&self) {
        self.is_heavy.store(true, Ordering::Relaxed);
    }

    /// Sub-queries that the query had other nodes answer, and their rows, so far.
    #[must_use]
    pub fn forked(&self) -> Forked {
        self.fork_counts.sum()
    }

    /// Threads that the query may use, its own included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Says what threads of the query may do while they have found more rows than its reader has
    /// taken: some work that does not take long; false if there is none. Only the first call
    /// counts.
    pub fn set_meanwhile(&self, work: impl Fn() -> bool + Send + Sync + 'static) {
        self.meanwhile.get_or_init(|| Box::new(work));
    }

    /// Does some other work; false if there is none.
    pub(crate) fn work_meanwhile(&self) -> bool {
        self.meanwhile.get().is_some_and(|work| work())
    }

    /// Books bytes that what uses the query's rows is going to hold; `None` if there is no room.
    #[must_use]
    pub fn hold(&self, bytes: usize) -> Option<Held> {
        let mut booked = Booked::default();
        let has_room = self.room(&mut booked, bytes).unwrap_or(false);
        has_room.then_some(Held { _booked: booked })
    }

    /// As [`SharedContext::hold`].
    ///
    /// # Errors
    /// What the query ends for if there is no room.
    pub fn hold_or_end(&self, bytes: usize) -> Result<Held, ExecError> {
        let booked = self.reserve(bytes)?;
        Ok(Held { _booked: booked })
    }

    /// The terms of the query.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        self.expressions.terms()
    }

    /// True if GRAPH with a variable ranges over a graph: it need not exist.
    pub(crate) fn ranges_over(&self, graph: TermId) -> bool {
        let dataset = self.dataset.as_ref();
        dataset.is_none_or(|dataset| dataset.named.binary_search(&graph).is_ok())
    }

    /// True if the clause of the dataset has it as a named graph: it need not have quads.
    pub(crate) fn is_named_by_clause(&self, graph: TermId) -> bool {
        let dataset = self.dataset.as_ref();
        dataset.is_some_and(|dataset| dataset.named.binary_search(&graph).is_ok())
    }

    /// True if GRAPH with the name of a graph looks into it: it need not exist.
    pub(crate) fn is_in_dataset(&self, graph: TermId) -> bool {
        let dataset = self.dataset.as_ref();
        dataset.is_none_or(|dataset| {
            graph.kind() == TermKind::Window || dataset.within.binary_search(&graph).is_ok()
        })
    }

    /// The id of a constant.
    #[must_use]
    pub fn constant(&self, id: ConstId) -> TermId {
        self.constants[id.index()]
    }

    /// Time since the query began.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.limits.started.elapsed()
    }

    /// The time that the query has left, if that is limited.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        let limit = self.limits.timeout?;
        Some(limit.saturating_sub(self.limits.started.elapsed()))
    }

    /// What a query without any time left ends for.
    pub(crate) fn out_of_time(&self) -> ExecError {
        ExecError::Timeout {
            limit: self.limits.timeout.unwrap_or_default(),
        }
    }

    /// What a step or operator did, if the query is profiled.
    #[must_use]
    pub fn measured(&self, id: u32) -> Option<Measured> {
        let profile = self.profile.as_ref()?;
        Some(Measured {
            rows: profile.rows.get(id as usize)?.load(Ordering::Relaxed),
            time: Duration::from_nanos(profile.nanoseconds[id as usize].load(Ordering::Relaxed)),
        })
    }

    /// Ends the query here if it was cancelled, ran out of time, or met something refused. Every
    /// operator asks once a batch, and so does what makes something else of rows.
    ///
    /// # Errors
    /// What it ends for.
    pub fn check(&self) -> Result<(), ExecError> {
        self.limits.account.count_batch();
        if self.limits.cancellation.is_cancelled() || self.ending.finished.load(Ordering::Relaxed) {
            return Err(ExecError::Cancelled);
        }
        if let Some(limit) = self.limits.timeout
            && self.limits.started.elapsed() > limit
        {
            return Err(ExecError::Timeout { limit });
        }
        match self.ending.end.get() {
            None => {}
            Some(End::Cancelled) => return Err(ExecError::Cancelled),
            Some(End::Timeout) => return Err(self.out_of_time()),
            Some(End::Memory) => return Err(self.memory_exceeded()),
            Some(&End::Pool(limit_bytes)) => return Err(ExecError::PoolExhausted { limit_bytes }),
        }
        if let Some(why) = self.terms().lost() {
            return Err(ExecError::of_unavailable(why));
        }
        match self.expressions.refusal() {
            Some(reason) => Err(ExecError::Refused {
                reason: reason.to_owned(),
            }),
            // Terms are computed without being booked one by one.
            None => self.charge(0),
        }
    }

    /// What the query ends for where a term cannot be had: see [`Terms::lost`].
    #[must_use]
    pub fn without_term(&self, why: Unavailable) -> ExecError {
        // A limit that it met while it waited comes first.
        self.check()
            .err()
            .unwrap_or_else(|| ExecError::of_unavailable(why))
    }

    /// Counts rows of the query's answer.
    pub(crate) fn count_rows(&self, rows: usize) {
        self.limits.account.count_rows(rows);
    }

    /// Ends what other threads still do for the query.
    pub(crate) fn finish(&self) {
        self.ending.finished.store(true, Ordering::Relaxed);
    }

    /// True if nobody reads the query's rows any more.
    pub(crate) fn is_finished(&self) -> bool {
        self.ending.finished.load(Ordering::Relaxed)
    }

    /// Ends the query from outside.
    pub(crate) fn cancel(&self) {
        self.limits.cancellation.cancel();
    }

    /// Books bytes that an operator, or what uses its rows, holds beyond one batch.
    ///
    /// # Errors
    /// If the query then holds more than it may, or all queries together do.
    pub fn charge(&self, bytes: usize) -> Result<(), ExecError> {
        self.limits
            .account
            .note_computed(self.terms().computed_bytes() as u64);
        let held = self.limits.account.add(bytes as u64, bytes as u64);
        if held > self.pool_bytes {
            return Err(self.memory_exceeded());
        }
        let covered = self.limits.account.cover();
        covered.map_err(|limit_bytes| ExecError::PoolExhausted { limit_bytes })
    }

    pub(crate) fn memory_exceeded(&self) -> ExecError {
        ExecError::Memory {
            limit_bytes: self.limits.memory_bytes,
        }
    }

    /// Ends the query if the terms that it computed need more than its memory: they stay there.
    pub(crate) fn check_computed(&self) -> Result<(), ExecError> {
        if self.terms().computed_bytes() as u64 > self.pool_bytes {
            return Err(self.memory_exceeded());
        }
        Ok(())
    }

    /// Bytes that the query has written to temporary files so far.
    #[must_use]
    pub fn spilled_bytes(&self) -> u64 {
        self.space.spilled_bytes()
    }

    /// Bytes that its operators hold together, as far as they are booked.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.limits.account.held_bytes()
    }

    /// Takes away what was written so far, for whoever sums it up.
    pub(crate) fn take_spilled(&self) -> u64 {
        self.space.take_spilled()
    }

    /// Counts what another node has written to temporary files for the query.
    pub(crate) fn note_spilled(&self, bytes: u64) {
        self.space.note_spilled(bytes);
    }

    pub(crate) fn space(&self) -> &Arc<Space> {
        &self.space
    }

    /// The books of an operator that can spill.
    pub(crate) fn spilling(&self) -> Booked {
        Booked {
            bytes: 0,
            pooled: 0,
            own: self.space.own_bytes(),
            held: None,
        }
    }

    /// Books what an operator that can spill is going to hold, be it more or less than before;
    /// false if there is no room for it, and then nothing has changed.
    ///
    /// # Errors
    /// If there is no room, and none would come by spilling.
    pub(crate) fn room(&self, booked: &mut Booked, bytes: usize) -> Result<bool, ExecError> {
        let account = &self.limits.account;
        let computed = self.terms().computed_bytes() as u64;
        account.note_computed(computed);
        booked.held.get_or_insert_with(|| Arc::clone(account));
        let pooled = bytes.saturating_sub(booked.own);
        if bytes <= booked.bytes {
            let less = (booked.bytes - bytes, booked.pooled - pooled);
            account.subtract(less.0 as u64, less.1 as u64);
            (booked.bytes, booked.pooled) = (bytes, pooled);
            return Ok(true);
        }
        let more = (
            (bytes - booked.bytes) as u64,
            (pooled - booked.pooled) as u64,
        );
        let may_spill = self.space.is_allowed() && computed <= self.pool_bytes;
        // The last part is left to what cannot go to disk.
        let left = if may_spill { self.pool_bytes / 8 } else { 0 };
        let held = account.add(more.0, more.1);
        let fits = more.1 == 0 || held <= self.pool_bytes - left;
        let covered = if fits { account.cover() } else { Ok(()) };
        if fits && covered.is_ok() {
            (booked.bytes, booked.pooled) = (bytes, pooled);
            return Ok(true);
        }
        account.subtract(more.0, more.1);
        match covered {
            // What is set aside for it is the least with which it can go on.
            _ if may_spill && more.1 > 0 => Ok(false),
            Ok(()) => Err(self.memory_exceeded()),
            Err(limit_bytes) => Err(ExecError::PoolExhausted { limit_bytes }),
        }
    }

    /// [`Context::room`] for what the query can do without: false where there is none, whether or not anything may
    /// go to disk.
    pub(crate) fn has_room(&self, booked: &mut Booked, bytes: usize) -> bool {
        self.room(booked, bytes).unwrap_or(false)
    }

    /// The order of terms by their texts, which is extended first if that is due and there is memory
    /// for it.
    ///
    /// # Errors
    /// If the query must end.
    pub(crate) fn text_order(&self) -> Result<QueryOrder, ExecError> {
        let order = self.terms().text_order();
        if !order.is_wanting() {
            return Ok(order);
        }
        let mut booked = Booked::default();
        let mut checked = Ok(());
        let order = self.terms().extend_order(&mut |bytes| {
            checked = self.check();
            // Without memory for it the query goes on with what is known.
            checked.is_ok() && self.room(&mut booked, bytes).unwrap_or(false)
        });
        checked.map(|()| order)
    }

    /// Bytes that the query's operators may hold together, if no other query holds any.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let limits = &self.limits;
        let pool = limits.account.pool_limit_bytes();
        pool.map_or(limits.memory_bytes, |pool| pool.min(limits.memory_bytes))
    }

    /// Books bytes that are going to be held, until the result is dropped.
    ///
    /// # Errors
    /// If there is no room for them.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<Booked, ExecError> {
        let mut booked = Booked::default();
        self.book(&mut booked, bytes)?;
        Ok(booked)
    }

    /// Books what an operator holds beyond what it held before.
    pub(crate) fn book_more(&self, booked: &mut Booked, more: usize) -> Result<(), ExecError> {
        self.book(booked, booked.bytes + more)
    }

    /// Books what an operator holds now, where it held less before.
    pub(crate) fn book(&self, booked: &mut Booked, bytes: usize) -> Result<(), ExecError> {
        let more = bytes.saturating_sub(booked.bytes);
        self.charge(more)?;
        booked.bytes += more;
        booked.pooled += more;
        booked
            .held
            .get_or_insert_with(|| Arc::clone(&self.limits.account));
        Ok(())
    }

    /// Books what a table holds, until it is dropped: the columns of one that was booked before
    /// may have become more or fewer.
    pub(crate) fn book_table(&self, table: &mut Table) -> Result<(), ExecError> {
        let bytes = table.bytes();
        if bytes <= table.booked.bytes().max(UNBOOKED_TABLE_BYTES) {
            table.booked.shrink(bytes);
            return Ok(());
        }
        table.booked.grow(bytes, &self.limits.account);
        self.charge(0)
    }

    /// Gives back what [`Context::charge`] booked.
    pub(crate) fn release(&self, bytes: usize) {
        self.limits.account.subtract(bytes as u64, bytes as u64);
    }

    /// Numbers the rows of a table that expressions will look at.
    pub(crate) fn number_solutions(&self, table: &mut Table) {
        let first = self
            .solutions
            .fetch_add(table.rows() as u64, Ordering::Relaxed);
        table.number_solutions(first);
    }

    /// The value of a slot in a row: `NONE` for a variable that is unbound.
    #[inline]
    pub(crate) fn slot(&self, slot: Slot, table: &Table, row: usize) -> TermId {
        match slot {
            Slot::Const(id) => self.constant(id),
            Slot::Var(var) => table.value(var, row),
        }
    }
}

impl Drop for SharedContext {
    fn drop(&mut self) {
        self.limits.account.close();
    }
}

/// Bytes that an operator holds beyond one batch; given back when it is dropped, as the operators
/// of a nested plan are while the query goes on.
#[derive(Default)]
pub(crate) struct Booked {
    /// What it holds.
    bytes: usize,
    /// The part of that which is beyond what is set aside for it.
    pooled: usize,
    /// What is set aside for it.
    own: usize,
    held: Option<Arc<Account>>,
}

/// Bytes that are booked until this is dropped.
pub struct Held {
    _booked: Booked,
}

impl Booked {
    /// Holds what another has booked as well.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        let Some(account) = other.held.take() else {
            return;
        };
        let before = self.pooled + other.pooled;
        self.bytes += other.bytes;
        self.pooled = self.bytes.saturating_sub(self.own);
        // What is set aside for this may have room for some of it.
        account.subtract(0, (before - self.pooled) as u64);
        self.held.get_or_insert(account);
    }
}

impl Drop for Booked {
    fn drop(&mut self) {
        if let Some(held) = &self.held {
            held.subtract(self.bytes as u64, self.pooled as u64);
        }
    }
}

impl ActiveDataset {
    fn new(
        dataset: &Dataset,
        windows: Option<&Windows>,
        terms: &Terms,
        source: &dyn GraphSource,
    ) -> Result<Self, Unavailable> {
        let ids = |nodes: &mut dyn Iterator<Item = &oxrdf::NamedNode>| {
            let mut ids = Vec::new();
            let nodes = nodes.map(|node| Some(TermRef::from(node.as_ref())));
            terms.intern_all(nodes, &mut ids).map(|()| ids)
        };
        let sorted = |ids: &mut dyn Iterator<Item = TermId>| {
            let mut ids: Vec<TermId> = ids.collect();
            ids.sort_unstable();
            ids.dedup();
            ids
        };
        let of_default = windows.iter().flat_map(|windows| &windows.default);
        let of_default = of_default.map(|number| TermId::window(*number));
        let default = ids(&mut dataset.default.iter())?;
        let default = sorted(&mut default.into_iter().chain(of_default));
        let named = sorted(&mut ids(&mut dataset.named.iter())?.into_iter());
        let by_name = ids(&mut windows.iter().flat_map(|windows| &windows.graphs))?;
        let within = sorted(&mut by_name.into_iter().chain(named.iter().copied()));
        let has_window = default.iter().any(|graph| graph.kind() == TermKind::Window);
        // Of one graph nothing is gained.
        let may_be_all = default.len() > 1 && source.graph_count() <= default.len() as u64;
        let may_be_all = may_be_all && !has_window;
        let default_is_all = may_be_all && {
            let mut all = Vec::new();
            source.graphs(&mut all);
            all.iter().all(|graph| default.binary_search(graph).is_ok())
        };
        Ok(Self {
            default,
            default_is_all,
            named,
            within,
        })
    }
}
