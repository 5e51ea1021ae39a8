//! How does a write at a follower get to the leader, and when is it done here?
//!
//! It is sent with the time that it has left. The leader answers it when all that are there have it, this node among
//! them; where this one still catches up, its client waits until it has.

use std::time::Instant;

use jindou_ingest::Source;
use jindou_model::SnapshotNumber;
use oxrdf::NamedNode;
use parking_lot::MutexGuard;

use super::Role;
use super::execute::execute;
use super::follower::{Follower, State, WriteState};
use super::outcome::{Failed, Outcome, Written};
use super::wire::{DocumentHead, Head, Request, WriteOptions};
use crate::database::Inner;
use crate::deadline::{Deadline, TURN_LOOK};
use crate::prefixes::PrefixTable;
use crate::{Database, EngineError, GraphReport, UpdateOptions, UpdateReport};

/// Where a copy that follows hands writes on, and how much of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forwarding {
    /// The name of the node that leads, while it is known.
    pub leader: Option<String>,
    /// Bytes that the documents of one write may have.
    pub document_bytes: usize,
}

impl Database {
    /// How this copy hands writes on, where another one leads: whoever has larger documents sends them to that node.
    #[must_use]
    pub fn forwarding(&self) -> Option<Forwarding> {
        let follower = self.inner().follower()?;
        Some(Forwarding {
            leader: Some(follower.leader_name()).filter(|name| !name.is_empty()),
            document_bytes: follower.options.document_bytes,
        })
    }
}

/// What is written for a graph, or for all of them.
pub(crate) enum Target<'a> {
    Graph(Option<&'a NamedNode>),
    Dataset,
}

fn text_of(name: Option<&NamedNode>) -> Option<String> {
    name.map(|name| name.as_str().to_owned())
}

impl Follower {
    /// Has the leader execute an update.
    ///
    /// # Errors
    /// What the leader says; [`EngineError::LeaderLost`], [`EngineError::WriteUnknown`], [`EngineError::Behind`],
    /// [`EngineError::ReadOnly`] after this copy was refused; [`EngineError::Unsupported`] if the changed quads are
    /// asked for.
    pub(crate) fn update(
        &self,
        inner: &Inner,
        text: &str,
        options: &UpdateOptions,
    ) -> Result<UpdateReport, EngineError> {
        self.check_without_delta(options)?;
        let text = text.to_owned();
        let written = self.write(inner, Request::Update { text }, (options, &[]))?;
        Ok(written.report())
    }

    /// Has the leader drop a graph.
    ///
    /// # Errors
    /// As [`Follower::update`].
    pub(crate) fn drop_graph(
        &self,
        inner: &Inner,
        graph: Option<&NamedNode>,
        options: &UpdateOptions,
    ) -> Result<UpdateReport, EngineError> {
        self.check_without_delta(options)?;
        let graph = text_of(graph);
        let written = self.write(inner, Request::DropGraph { graph }, (options, &[]))?;
        Ok(written.report())
    }

    /// Has the leader write documents into a graph, or into all that they name.
    ///
    /// # Errors
    /// As [`Follower::update`]; [`EngineError::DocumentsBeyondLink`].
    pub(crate) fn write_documents(
        &self,
        inner: &Inner,
        (target, replace): (Target<'_>, bool),
        documents: Vec<Source>,
        options: &UpdateOptions,
    ) -> Result<GraphReport, EngineError> {
        self.check_without_delta(options)?;
        let (heads, bytes) = self.read_documents(documents)?;
        let request = match target {
            Target::Graph(graph) => Request::WriteGraph {
                graph: text_of(graph),
                replace,
                documents: heads,
            },
            Target::Dataset => Request::WriteDataset {
                replace,
                documents: heads,
            },
        };
        let body: Vec<&[u8]> = bytes.iter().map(Vec::as_slice).collect();
        let written = self.write(inner, request, (options, &body))?;
        Ok(GraphReport {
            existed: written.existed,
            update: written.report(),
        })
    }

    /// Has the leader change its prefixes as a table here was changed.
    ///
    /// # Errors
    /// As [`Follower::update`].
    pub(crate) fn change_prefixes(
        &self,
        inner: &Inner,
        before: &PrefixTable,
        after: &PrefixTable,
    ) -> Result<(), EngineError> {
        let is_new = |(name, iri): &(&str, &str)| before.get(name) != Some(iri);
        let own = |(name, iri): (&str, &str)| (name.to_owned(), iri.to_owned());
        let set: Vec<_> = after.iter().filter(is_new).map(own).collect();
        let is_gone = |(name, _): &(&str, &str)| after.get(name).is_none();
        let gone = before.iter().filter(is_gone);
        let removed: Vec<_> = gone.map(|(name, _)| name.to_owned()).collect();
        if set.is_empty() && removed.is_empty() {
            return Ok(());
        }
        let request = Request::ChangePrefixes { set, removed };
        let options = UpdateOptions::default();
        self.write(inner, request, (&options, &[])).map(drop)
    }

    fn check_without_delta(&self, options: &UpdateOptions) -> Result<(), EngineError> {
        match options.return_delta {
            false => Ok(()),
            true => Err(EngineError::Unsupported {
                feature: format!(
                    "returning the changed quads at a node that follows: ask node {}",
                    self.leader_name()
                ),
                place: None,
            }),
        }
    }

    /// Heads and bytes of documents.
    fn read_documents(
        &self,
        documents: Vec<Source>,
    ) -> Result<(Vec<DocumentHead>, Vec<Vec<u8>>), EngineError> {
        let (mut heads, mut all) = (Vec::new(), Vec::new());
        let mut left = self.options.document_bytes;
        for document in documents {
            let Some(raw) = document.into_raw(left)? else {
                return Err(EngineError::DocumentsBeyondLink {
                    limit_bytes: self.options.document_bytes,
                    node: self.leader_name(),
                });
            };
            left -= raw.bytes.len();
            heads.push(DocumentHead::of(&raw));
            all.push(raw.bytes);
        }
        Ok((heads, all))
    }

    /// Has the leader execute a request, and waits until what it did is shown here.
    fn write(
        &self,
        inner: &Inner,
        request: Request,
        (options, body): (&UpdateOptions, &[&[u8]]),
    ) -> Result<Written, EngineError> {
        let deadline = options.deadline(inner);
        let left = deadline.left()?;
        let texts = |names: &[NamedNode]| names.iter().map(|it| it.as_str().to_owned()).collect();
        let sent = WriteOptions {
            timeout_us: left.map(|left| u64::try_from(left.as_micros()).unwrap_or(u64::MAX)),
            using_graphs: texts(&options.using_graphs),
            using_named_graphs: texts(&options.using_named_graphs),
            union_default_graph: Some(inner.is_union(options.union_default_graph)),
            base: text_of(options.base.as_ref()),
            services: options.services.clone(),
        };
        let Some(written) = self.ask(&request, sent, body, &deadline)? else {
            return self.write_anew(&request, (options, body), &deadline);
        };
        self.wait_until_shown(SnapshotNumber(written.snapshot), &deadline)?;
        Ok(written)
    }

    /// Does what no leader has done as the node's part has it now, which may be to lead.
    fn write_anew(
        &self,
        request: &Request,
        (options, body): (&UpdateOptions, &[&[u8]]),
        deadline: &Deadline,
    ) -> Result<Written, EngineError> {
        let Some(inner) = self.inner.upgrade() else {
            return Err(EngineError::Cancelled);
        };
        let options = UpdateOptions {
            timeout: deadline.left()?,
            ..options.clone()
        };
        execute(&Database::within(inner), (request, &body.concat()), options)
    }

    /// Whether this node has another part now: it leads, or did and follows again.
    fn is_over(&self) -> bool {
        let role = self.group.upgrade().map(|group| group.role());
        match role.as_deref() {
            Some(Role::Leader(_)) => true,
            Some(Role::Follower(now)) => !std::ptr::eq(&raw const **now, self),
            None => false,
        }
    }

    /// Has the leader execute a request: the next one, where another node takes the place of one that has not done it. None
    /// if this one has another part by then.
    fn ask(
        &self,
        request: &Request,
        options: WriteOptions,
        body: &[&[u8]],
        deadline: &Deadline,
    ) -> Result<Option<Written>, EngineError> {
        let until = Instant::now() + self.options.wait;
        let (request, options) = (Box::new(request.clone()), Box::new(options));
        let mut head = Head::Write {
            id: 0,
            request,
            options,
        };
        loop {
            let asked = self.ask_once(&mut head, body, (until, deadline));
            let is_undone = matches!(
                asked,
                Err(EngineError::LeaderLost { .. } | EngineError::LeaderChanged)
            );
            if is_undone && self.is_over() {
                return Ok(None);
            }
            if !is_undone || !self.waits_for_leader(until, deadline) {
                return asked.map(Some);
            }
            // It may not know yet that it does not lead, or this one which node does.
            let mut state = self.state.lock();
            self.changed.wait_for(&mut state, TURN_LOOK);
        }
    }

    fn ask_once(
        &self,
        head: &mut Head,
        body: &[&[u8]],
        (until, deadline): (Instant, &Deadline),
    ) -> Result<Written, EngineError> {
        let (id, link) = {
            let mut state = self.wait_for_leader(until, deadline)?;
            let Some(link) = state.link.clone() else {
                drop(state);
                return Err(self.leader_lost());
            };
            state.writes_so_far += 1;
            let id = state.writes_so_far;
            let sent = state.sent_now();
            state.writes.insert(id, sent);
            (id, link)
        };
        if let Head::Write { id: place, .. } = head {
            *place = id;
        }
        // Of what was not sent whole nothing is done.
        if !link.send(head, body) {
            self.state.lock().writes.remove(&id);
            return Err(self.leader_lost());
        }
        let outcome = self.wait_for_outcome(id, deadline, || {
            let link = self.state.lock().link.clone();
            // Where there is none, it is asked what became of the write once there is one.
            let _is_there = link.is_some_and(|link| link.send(&Head::Cancel { id }, &[]));
        });
        self.state.lock().writes.remove(&id);
        match outcome {
            Some(Ok(written)) => Ok(written),
            Some(Err(Failed::LeaderLost(_))) => Err(self.leader_lost()),
            Some(Err(Failed::WriteUnknown(_))) | None => Err(EngineError::WriteUnknown {
                node: self.leader_name(),
            }),
            Some(Err(failed)) => Err(failed.into()),
        }
    }

    /// What became of a write; `None` if that cannot be known: another term has begun, or the leader was away for too
    /// long. Calls `cancel` once nobody wants it any more: the
    /// leader says what it came to.
    fn wait_for_outcome(&self, id: u64, deadline: &Deadline, cancel: impl Fn()) -> Option<Outcome> {
        let mut state = self.state.lock();
        let mut given_up: Option<Instant> = None;
        loop {
            match state.writes.get(&id) {
                Some(WriteState::Sent(_)) if !state.stopped => {}
                Some(WriteState::Done(outcome)) => return Some(outcome.clone()),
                Some(WriteState::Sent(_) | WriteState::Unknown) | None => return None,
            }
            let is_lost = |at: Instant| at.elapsed() > self.options.wait;
            if state.link.is_none() && state.lost_at.is_some_and(is_lost) {
                return None;
            }
            match given_up {
                Some(until) if until <= Instant::now() => return None,
                Some(_) => {}
                None if deadline.left().is_err() => {
                    given_up = Some(Instant::now() + self.options.wait);
                    drop(state);
                    cancel();
                    state = self.state.lock();
                    continue;
                }
                None => {}
            }
            // Whether a client is still there is looked at now and then.
            self.changed.wait_for(&mut state, TURN_LOOK);
        }
    }

    /// Waits until there is a link with the leader, where another node may take its place.
    fn wait_for_leader(
        &self,
        until: Instant,
        deadline: &Deadline,
    ) -> Result<MutexGuard<'_, State>, EngineError> {
        let mut state = self.state.lock();
        loop {
            if let Some(reason) = self.ended() {
                return Err(EngineError::ReadOnly { reason });
            }
            if state.link.is_some() || state.stopped || !self.waits_for_leader(until, deadline) {
                return Ok(state);
            }
            self.changed.wait_for(&mut state, TURN_LOOK);
        }
    }

    /// Whether a write waits for another leader.
    fn waits_for_leader(&self, until: Instant, deadline: &Deadline) -> bool {
        let group = self.group.upgrade();
        let has_elections = group.is_some_and(|group| group.has_elections);
        let is_late = deadline.left().is_err() || Instant::now() >= until;
        has_elections && !is_late
    }

    /// # Errors
    /// [`EngineError::Behind`] if it is not within the time that a request has.
    fn wait_until_shown(
        &self,
        snapshot: SnapshotNumber,
        deadline: &Deadline,
    ) -> Result<(), EngineError> {
        let Some(group) = self.group.upgrade() else {
            return Ok(());
        };
        while !group.wait_for_snapshot(snapshot, TURN_LOOK) {
            if deadline.left().is_err() || group.ended().is_some() || self.state.lock().stopped {
                return Err(EngineError::Behind {
                    node: self.leader_name(),
                    snapshot,
                });
            }
        }
        Ok(())
    }

    fn leader_lost(&self) -> EngineError {
        EngineError::LeaderLost {
            node: self.leader_name(),
        }
    }
}
