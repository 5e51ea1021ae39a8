//! How does the leader execute the writes of followers?
//!
//! Each on a thread of its own, so many at a time; others wait, within a bound of bytes. A write whose follower is
//! lost goes on: nobody hears what came of it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jindou_exec::CancellationToken;
use jindou_ingest::{RawSource, Source};
use jindou_model::NodeId;
use oxrdf::NamedNode;
use parking_lot::Mutex;

use super::ReplicaOptions;
use super::leader::Leader;
use super::link::Link;
use super::outcome::{Failed, Outcome, Written};
use super::wire::{Head, Request, WriteOptions, documents};
use crate::prefixes::PrefixTable;
use crate::{Database, EngineError, LeaderErrorClass, UpdateOptions};

/// The writes of followers.
pub(super) struct Writes {
    most_threads: usize,
    most_bytes: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Job>,
    waiting_bytes: usize,
    /// Those that are executed, and wait to be.
    known: Vec<(NodeId, u64, CancellationToken)>,
    /// Threads at work.
    at_work: usize,
    threads: Vec<JoinHandle<()>>,
    stopped: bool,
}

/// A write of a follower.
struct Job {
    link: Arc<Link>,
    id: u64,
    request: Request,
    options: WriteOptions,
    body: Vec<u8>,
    begun: Instant,
    cancellation: CancellationToken,
}

impl Job {
    /// About what it holds.
    fn bytes(&self) -> usize {
        let text = match &self.request {
            Request::Update { text } => text.len(),
            _ => 0,
        };
        size_of::<Self>() + self.body.len() + text
    }
}

impl Writes {
    pub(super) fn new(options: &ReplicaOptions) -> Self {
        Self {
            most_threads: options.write_threads.max(1),
            most_bytes: options.waiting_bytes,
            state: Mutex::default(),
        }
    }

    /// Takes a write: it is executed, or refused where too many wait.
    pub(super) fn take(
        self: &Arc<Self>,
        leader: &Arc<Leader>,
        (link, id): (Arc<Link>, u64),
        (request, options, body): (Request, WriteOptions, Vec<u8>),
    ) -> Result<(), String> {
        let job = Job {
            link,
            id,
            request,
            options,
            body,
            begun: Instant::now(),
            cancellation: CancellationToken::new(),
        };
        let mut state = self.state.lock();
        let bytes = state.waiting_bytes.saturating_add(job.bytes());
        if state.stopped || (bytes > self.most_bytes && !state.waiting.is_empty()) {
            drop(state);
            answer(&job, Err(too_many()));
            return Ok(());
        }
        state.waiting_bytes = bytes;
        let token = job.cancellation.clone();
        state.known.push((job.link.to(), id, token));
        state.waiting.push_back(job);
        if state.at_work < self.most_threads {
            let (writes, leader) = (Arc::clone(self), Arc::clone(leader));
            let thread = std::thread::Builder::new().name("jindou-write".to_owned());
            let thread = thread.stack_size(STACK_BYTES);
            let thread = thread.spawn(move || writes.work(&leader));
            let thread = thread.map_err(|error| format!("no thread can be started: {error}"))?;
            state.at_work += 1;
            state.threads.retain(|thread| !thread.is_finished());
            state.threads.push(thread);
        }
        Ok(())
    }

    /// Ends a write of a follower, if it is not done.
    pub(super) fn cancel(&self, node: NodeId, id: u64) {
        for (of, number, token) in &self.state.lock().known {
            if (*of, *number) == (node, id) {
                token.cancel();
            }
        }
    }

    /// Executes what waits, until nothing does.
    fn work(&self, leader: &Leader) {
        loop {
            let job = {
                let mut state = self.state.lock();
                let Some(job) = state.waiting.pop_front() else {
                    state.at_work -= 1;
                    return;
                };
                state.waiting_bytes -= job.bytes();
                job
            };
            let executed = catch_unwind(AssertUnwindSafe(|| {
                let Some(inner) = leader.inner.upgrade() else {
                    return Err(EngineError::Cancelled);
                };
                let options = job.options()?;
                execute(&Database::within(inner), (&job.request, &job.body), options)
            }));
            let executed = executed.unwrap_or(Err(EngineError::Internal));
            answer(&job, executed.map_err(Failed::from));
            let of = (job.link.to(), job.id);
            let mut state = self.state.lock();
            state.known.retain(|(node, id, _)| (*node, *id) != of);
        }
    }

    /// Cancels all, and waits until none is executed.
    pub(super) fn stop(&self) {
        let threads = {
            let mut state = self.state.lock();
            state.stopped = true;
            state.waiting.clear();
            state.waiting_bytes = 0;
            state.known.iter().for_each(|(.., token)| token.cancel());
            std::mem::take(&mut state.threads)
        };
        for thread in threads {
            // What it panicked with was printed.
            let _ = thread.join();
        }
    }
}

/// Stack of the threads: plans of long texts need as much.
const STACK_BYTES: usize = 8 << 20;

fn answer(job: &Job, outcome: Outcome) {
    let head = Head::Written {
        id: job.id,
        outcome: Box::new(outcome),
    };
    // Where the link has ended, nobody waits for it.
    let _is_there = job.link.send(&head, &[]);
}

fn too_many() -> Failed {
    Failed::Other {
        class: LeaderErrorClass::Unavailable,
        message: "too many writes of other nodes wait at the leader; nothing was changed; try again later"
            .to_owned(),
    }
}

/// Does what is asked for, with the documents of a body, at the node that leads.
///
/// # Errors
/// As of what is done.
pub(super) fn execute(
    database: &Database,
    (request, body): (&Request, &[u8]),
    options: UpdateOptions,
) -> Result<Written, EngineError> {
    let body = |heads: &Vec<_>| documents(heads.clone(), body).map_err(invalid);
    match request {
        Request::Update { text } => {
            let report = database.update_with(text, options)?;
            Ok(Written::of(&report, true))
        }
        Request::WriteGraph {
            graph,
            replace,
            documents,
        } => {
            let (graph, documents) = (name(graph.as_ref())?, sources(body(documents)?));
            let report = match replace {
                true => database.replace_graph(graph.as_ref(), documents, &options)?,
                false => database.add_to_graph(graph.as_ref(), documents, &options)?,
            };
            Ok(Written::of(&report.update, report.existed))
        }
        Request::DropGraph { graph } => {
            let report = database.drop_graph(name(graph.as_ref())?.as_ref(), &options)?;
            Ok(Written::of(&report, true))
        }
        Request::WriteDataset { replace, documents } => {
            let documents = sources(body(documents)?);
            let report = match replace {
                true => database.replace_dataset(documents, &options)?,
                false => database.add_to_dataset(documents, &options)?,
            };
            Ok(Written::of(&report, true))
        }
        Request::ChangePrefixes { set, removed } => change_prefixes(database, set, removed),
    }
}

fn change_prefixes(
    database: &Database,
    set: &[(String, String)],
    removed: &[String],
) -> Result<Written, EngineError> {
    let change = |table: &mut PrefixTable| {
        let mut changed = table.clone();
        for name in removed {
            changed.remove(name);
        }
        for (name, iri) in set {
            changed.set(name, iri)?;
        }
        *table = changed;
        Ok(())
    };
    let changed: Result<(), crate::PrefixError> = database.change_prefixes(change)?;
    changed.map_err(|error| invalid(error.to_string()))?;
    Ok(Written {
        inserted: 0,
        deleted: 0,
        snapshot: 0,
        existed: true,
    })
}

fn sources(raw: Vec<RawSource>) -> Vec<Source> {
    raw.into_iter().map(Source::from).collect()
}

fn invalid(message: String) -> EngineError {
    EngineError::InvalidQuery { message }
}

fn name(text: Option<&String>) -> Result<Option<NamedNode>, EngineError> {
    let node = text.map(NamedNode::new).transpose();
    node.map_err(|error| invalid(error.to_string()))
}

impl Job {
    /// The options, with the time that is left.
    fn options(&self) -> Result<UpdateOptions, EngineError> {
        let sent = &self.options;
        let names = |texts: &[String]| {
            let names = texts.iter().map(NamedNode::new);
            let names: Result<Vec<NamedNode>, _> = names.collect();
            names.map_err(|error| invalid(error.to_string()))
        };
        let left = |limit: u64| Duration::from_micros(limit).saturating_sub(self.begun.elapsed());
        Ok(UpdateOptions {
            timeout: sent.timeout_us.map(left),
            cancellation: Some(self.cancellation.clone()),
            using_graphs: names(&sent.using_graphs)?,
            using_named_graphs: names(&sent.using_named_graphs)?,
            union_default_graph: sent.union_default_graph,
            base: name(sent.base.as_ref())?,
            services: sent.services.clone(),
            progress: None,
            return_delta: false,
        })
    }
}
