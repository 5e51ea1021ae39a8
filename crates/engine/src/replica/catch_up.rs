//! How does a follower that was away get what it lacks, while transactions go on?
//!
//! A thread for each link sends it transactions from the backlog, or where that begins later, from the log, as long
//! as what the follower has not applied fits into the window. When there are none left, the follower gets what is
//! new at once from then on.

use std::ops::ControlFlow;
use std::sync::Arc;

use jindou_model::{NodeId, PredicateId, SnapshotNumber};
use jindou_store::{DurableStore, Transaction};

use super::leader::{Item, Leader, What};
use super::wire::RefusedCopy;

/// What comes next for a follower that catches up.
enum Next {
    /// The link has ended, or the database.
    Over,
    /// Extents are to be closed, so that it may merge.
    Close,
    /// What follows a snapshot is in the log only.
    Read(Wanted),
}

/// Transactions after one snapshot and up to another one.
#[derive(Clone, Copy)]
struct Wanted {
    after: SnapshotNumber,
    until: SnapshotNumber,
}

impl Leader {
    /// Sends a follower what it lacks until the link ends.
    pub(super) fn catch_up(self: Arc<Self>, session: (NodeId, u64)) {
        loop {
            let done = match self.next(session) {
                Next::Over => return,
                Next::Close => self.close_extents(session),
                Next::Read(wanted) => match self.read_log(wanted) {
                    Ok(Some(items)) => self.send_read(session, &items),
                    Ok(None) => ControlFlow::Break(()),
                    Err(reason) => {
                        self.refuse_session(session, reason);
                        ControlFlow::Break(())
                    }
                },
            };
            if done.is_break() {
                return;
            }
        }
    }

    /// Sends from the backlog what fits, and waits until something else is to be done.
    fn next(&self, session: (NodeId, u64)) -> Next {
        let mut state = self.state.lock();
        loop {
            let (backlog_from, last) = (state.backlog_from(), state.sent);
            let Some(now) = state.session(session) else {
                return Next::Over;
            };
            let after = now.sent;
            if !now.is_pushed && now.unapplied_bytes < self.options.window_bytes {
                if after < last && backlog_from.is_none_or(|from| from > after) {
                    // What is in the backlog is taken from there, with the merges between transactions.
                    let until = backlog_from.unwrap_or(last);
                    return Next::Read(Wanted { after, until });
                }
                let at = state.first_after(session);
                let item = at.and_then(|at| state.backlog.get(at)).cloned();
                let now = state.session(session).expect("it goes on");
                match item {
                    Some(item) if now.send(&item) => continue,
                    Some(_) => {}
                    None => {
                        now.is_pushed = true;
                        if !std::mem::replace(&mut now.has_closed, true) {
                            return Next::Close;
                        }
                    }
                }
            }
            self.changed.wait(&mut state);
        }
    }

    /// Closes the extents of new vertices at the latest snapshot, so that a follower may merge there
    /// what was merged here while it was away.
    fn close_extents(&self, session: (NodeId, u64)) -> ControlFlow<()> {
        let Some(inner) = self.inner.upgrade() else {
            return ControlFlow::Break(());
        };
        {
            let writer = inner.writer.lock();
            writer.latest.close_extents();
            let changed = writer.latest.changed_predicates().into_iter();
            let unmerged: Vec<PredicateId> = changed.map(|one| one.predicate).collect();
            self.queue_closed(writer.latest.number(), session, &unmerged);
        }
        self.send_rest();
        ControlFlow::Continue(())
    }

    /// Sends what was read from the log.
    fn send_read(&self, session: (NodeId, u64), items: &[Item]) -> ControlFlow<()> {
        let mut state = self.state.lock();
        let Some(now) = state.session(session) else {
            return ControlFlow::Break(());
        };
        match items.iter().all(|item| now.send(item)) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }

    /// Reads transactions from the log, as many as the window takes, one at least; `None` if the database is gone.
    ///
    /// # Errors
    /// Why they cannot be had.
    fn read_log(&self, wanted: Wanted) -> Result<Option<Vec<Item>>, RefusedCopy> {
        let Some(inner) = self.inner.upgrade() else {
            return Ok(None);
        };
        let log = || {
            let writer = inner.writer.lock();
            let store = writer
                .store
                .as_ref()
                .expect("a copy of a cluster is stored");
            (Arc::clone(store.log()), store.checkpointed())
        };
        let (log_now, checkpointed) = log();
        if checkpointed > wanted.after {
            return Err(RefusedCopy::TooOld);
        }
        let mut found = Found::new(wanted, self.options.window_bytes);
        let read = DurableStore::logged(&log_now, |bytes| found.note(bytes));
        if !found.items.is_empty() {
            return Ok(Some(found.items));
        }
        // A checkpoint meanwhile may have removed a file.
        if log().1 > wanted.after {
            return Err(RefusedCopy::TooOld);
        }
        let reason = match read {
            Err(error) => error.to_string(),
            Ok(()) => format!("it has no transaction after snapshot {}", wanted.after.0),
        };
        Err(RefusedCopy::Unreadable(reason))
    }
}

/// What was found in a log: transactions that follow each other.
struct Found {
    wanted: Wanted,
    items: Vec<Item>,
    bytes: usize,
    most_bytes: usize,
}

impl Found {
    fn new(wanted: Wanted, most_bytes: usize) -> Self {
        Self {
            wanted,
            items: Vec::new(),
            bytes: 0,
            most_bytes,
        }
    }

    fn note(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        let last = self
            .items
            .last()
            .map_or(self.wanted.after, |item| item.number);
        let number = Transaction::number_of(bytes).filter(|number| *number > last);
        let Some(number) = number else {
            return ControlFlow::Continue(());
        };
        let follows = number.0 == last.0 + 1;
        if !follows || number > self.wanted.until || self.bytes >= self.most_bytes {
            return ControlFlow::Break(());
        }
        self.bytes += bytes.len();
        let what = What::Transaction(bytes.into());
        self.items.push(Item {
            number,
            place: None,
            what,
        });
        ControlFlow::Continue(())
    }
}
