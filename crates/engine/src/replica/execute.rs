//! How does the leader execute the writes of followers?
//!
//! Each on a thread of its own, so many at a time; others wait, within a bound of bytes. A write whose follower is
//! lost goes on. What came of the last ones is kept, as a follower that is linked anew asks again: an answer may
//! have been lost with the link, and so may the write itself.

use std::collections::{BTreeMap, VecDeque};
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
    /// What came of the last ones, the oldest first.
    done: VecDeque<(NodeId, u64, Outcome)>,
    /// Of each node the last one of which that is not known any more.
    forgotten: BTreeMap<NodeId, u64>,
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

impl State {
    /// Keeps what came of a write.
    fn note(&mut self, (node, id): (NodeId, u64), outcome: Outcome) {
        self.known
            .retain(|(of, number, _)| (*of, *number) != (node, id));
        self.done.push_back((node, id, outcome));
        if self.done.len() > MOST_DONE
            && let Some((node, id, _)) = self.done.pop_front()
        {
            let last = self.forgotten.entry(node).or_default();
            *last = id.max(*last);
        }
    }

    /// What came of a write; none while it is executed, or waits to be.
    fn came_of(&self, (node, id): (NodeId, u64)) -> Option<Outcome> {
        let is_it = |of: NodeId, number: u64| (of, number) == (node, id);
        if self.known.iter().any(|(of, number, _)| is_it(*of, *number)) {
            return None;
        }
        let done = self.done.iter().find(|(of, number, _)| is_it(*of, *number));
        let is_forgotten = self.forgotten.get(&node).is_some_and(|last| id <= *last);
        Some(match done {
            Some((.., outcome)) => outcome.clone(),
            None if is_forgotten => Err(Failed::WriteUnknown(String::new())),
            // It was lost with the link.
            None => Err(Failed::LeaderLost(String::new())),
        })
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
            state.note((job.link.to(), id), Err(too_many()));
            drop(state);
            answer(&job.link, id, Err(too_many()));
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

    /// Says once more what came of these writes, which were sent by a link before this one; of those that are under way
    /// that is said once it is known.
    pub(super) fn answer_again(&self, link: &Link, ids: &[u64]) {
        for id in ids {
            let outcome = self.state.lock().came_of((link.to(), *id));
            if let Some(outcome) = outcome {
                answer(link, *id, outcome);
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
            let outcome = executed.map_err(Failed::from);
            let node = job.link.to();
            self.state.lock().note((node, job.id), outcome.clone());
            // The follower may have been linked anew.
            let link = leader.link(node).unwrap_or(job.link);
            answer(&link, job.id, outcome);
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

/// Writes of which is kept what came of them.
const MOST_DONE: usize = 4096;

fn answer(link: &Link, id: u64, outcome: Outcome) {
    let head = Head::Written {
        id,
        outcome: Box::new(outcome),
    };
    // Where the link has ended, it is asked for again by the next one, if anybody waits for it.
    let _is_there = link.send(&head, &[]);
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
