//! The one write path: how does a transaction become the snapshot that readers see?
//!
//! A writer changes a copy of the latest snapshot, appends what it did to the log, and makes its
//! copy the latest: so transactions follow one another. Then it waits until the log is on the
//! device, together with all others that wait, and only then readers see what it did and its
//! client gets an answer.

use std::sync::{Arc, OnceLock};

use jindou_model::SnapshotNumber;
use jindou_store::log::{Log, Ticket};
use jindou_store::{Directory, DurableStore, History, Snapshot, Stage, StoreError, Transaction};

use crate::EngineError;
use crate::database::Inner;
use crate::graph::StoredGraph;
use crate::replica::{FOLLOWER_WRITES, Group, Leader};
use crate::streams::{Copied, Published, Revocation};

/// Hears of each snapshot.
type Told = dyn Fn(&Snapshot) + Send + Sync;

/// What the thread that holds the writer's lock may change.
pub(crate) struct Writer {
    /// Behind the last transaction, on the device or not yet.
    pub(crate) latest: Snapshot,
    /// The files of a stored database.
    pub(crate) store: Option<DurableStore>,
    /// The last transaction's place in the log.
    pub(crate) last: Option<(Arc<Log>, Ticket)>,
    /// Why nothing may be written any more. Shared, so that it can be read without the lock.
    pub(crate) failed: Arc<OnceLock<String>>,
    /// What is to be taken back before anything else is written.
    pub(crate) revocations: Vec<Revocation>,
    /// The directory of a stored database that was opened to be read only, locked against others
    /// that would write it.
    pub(crate) read_from: Option<Arc<Directory>>,
    /// Who hears of each transaction.
    pub(crate) published: Arc<Published>,
    /// The part that this has among copies of the store.
    pub(crate) group: Option<Arc<Group>>,
    /// What sends each transaction to the copies of the store, where this one orders them.
    pub(crate) leads: Option<Arc<Leader>>,
    /// What goes to the copies of the store with each transaction, and what came so.
    pub(crate) copied: Option<Arc<Copied>>,
    /// Told of each snapshot under the lock, so in their order, where others may ask for it by its number.
    pub(crate) told: Option<Box<Told>>,
    /// It is noted that this process makes transactions.
    pub(crate) has_run: bool,
    /// This is a copy of the store, which applies the transactions of another one and has none of its own.
    pub(crate) follows: bool,
}

/// A transaction that was appended to the log, or had nothing to append.
#[must_use = "a transaction is lasting, and seen, once it was published"]
pub(crate) struct Appended {
    snapshot: Snapshot,
    place: Option<(Arc<Log>, Ticket)>,
    /// The term in which this copy led when it was.
    term: Option<u64>,
}

impl Writer {
    /// A copy of the latest snapshot, to be changed by a transaction.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] after the log failed, or where the database was opened to be read;
    /// [`EngineError::Cluster`] where it follows another one.
    pub(crate) fn begin(&self) -> Result<Snapshot, EngineError> {
        self.check_opened_to_write()?;
        self.check_orders()?;
        self.begin_fold()
    }

    /// That no other node orders the transactions, which may have come about since one began.
    fn check_orders(&self) -> Result<(), EngineError> {
        let has_elections = self.group.as_ref().is_some_and(|group| group.has_elections);
        match (self.follows, has_elections) {
            (false, _) => Ok(()),
            (true, false) => Err(EngineError::Cluster(FOLLOWER_WRITES)),
            (true, true) => Err(EngineError::LeaderChanged),
        }
    }

    /// # Errors
    /// [`EngineError::ReadOnly`] where the database was opened to be read.
    pub(crate) fn check_opened_to_write(&self) -> Result<(), EngineError> {
        match &self.read_from {
            None => Ok(()),
            Some(directory) => Err(EngineError::ReadOnly {
                reason: format!("{} was opened to be read only", directory.path().display()),
            }),
        }
    }

    /// A copy of the latest snapshot, of which nothing is changed but how it lies in memory.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] after the log failed.
    pub(crate) fn begin_fold(&self) -> Result<Snapshot, EngineError> {
        match self.failed.get() {
            Some(reason) => Err(EngineError::ReadOnly {
                reason: reason.clone(),
            }),
            None => Ok(self.latest.clone()),
        }
    }

    /// A copy of the latest snapshot for one transaction.
    ///
    /// # Errors
    /// As [`Writer::begin`].
    pub(crate) fn begin_transaction(&self) -> Result<Snapshot, EngineError> {
        let mut working = self.begin()?;
        working.set_documents(working.documents() + 1);
        Ok(working)
    }

    /// The first of the numbers of so many documents, `least` at the least, which no other transaction
    /// gets from now on.
    ///
    /// # Errors
    /// As [`Writer::begin`].
    pub(crate) fn reserve_documents(&mut self, count: u64, least: u64) -> Result<u64, EngineError> {
        let first = self.begin()?.documents().max(least);
        self.latest.set_documents(first + count);
        Ok(first)
    }

    /// A copy of the latest snapshot for a transaction that others may overtake: the numbers of
    /// `documents` documents are its own.
    ///
    /// # Errors
    /// As [`Writer::begin`].
    pub(crate) fn begin_beside(&mut self, documents: u64) -> Result<Snapshot, EngineError> {
        let working = self.begin_transaction()?;
        // Blank nodes of transactions that overtake it must not be called as its own are.
        self.latest.set_documents(working.documents() + documents);
        Ok(working)
    }

    /// Takes back what streams meant to store by transactions that did not come about, at once or, if
    /// there is no space, as soon as something else is to be written.
    pub(crate) fn take_back(&mut self, revocations: impl IntoIterator<Item = Revocation>) {
        self.revocations.extend(revocations);
        if let Err(error) = self.revoke() {
            tracing::warn!(%error, "nothing is written before this is");
        }
    }

    /// Writes the revocations that are due. Until they are written no transaction may be: it would have
    /// the number of one that failed, and be taken for it when the store is opened again.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`], until there is space.
    pub(crate) fn revoke(&mut self) -> Result<(), EngineError> {
        while let Some(revocation) = self.revocations.last() {
            let revoked = revocation.write();
            revoked.map_err(|error| self.refused(error))?;
            self.revocations.pop();
        }
        Ok(())
    }

    /// Appends what led from the latest snapshot to `changed` to the log.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if the log takes no more; nothing has changed then.
    pub(crate) fn append(
        &mut self,
        changed: Snapshot,
        stages: Vec<Stage>,
    ) -> Result<Appended, EngineError> {
        if stages.iter().all(Stage::is_empty) {
            return Ok(self.unchanged());
        }
        self.append_all(changed, stages)
    }

    /// Appends the terms that `changed`, a copy of the latest snapshot, has more than that, to the
    /// log: quads will have them.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub(crate) fn append_terms(&mut self, changed: Snapshot) -> Result<Appended, EngineError> {
        match changed.known_terms() == self.latest.known_terms() {
            true => Ok(self.unchanged()),
            false => self.append_all(changed, Vec::new()),
        }
    }

    /// Appends transactions that do nothing but say what is to be said of streams, until `is_said`.
    ///
    /// # Errors
    /// As [`Writer::append`]; [`EngineError::WriteUnknown`] where this copy does not lead any more: what was said may be
    /// what the others do not have.
    pub(crate) fn append_said(
        &mut self,
        is_said: impl Fn() -> bool,
    ) -> Result<Appended, EngineError> {
        if self.leads.is_none()
            && let Some(group) = &self.group
        {
            let node = group.leader_name();
            return Err(EngineError::WriteUnknown { node });
        }
        let mut appended = self.unchanged();
        while !is_said() {
            let latest = self.begin()?;
            appended = self.append_all(latest, Vec::new())?;
        }
        Ok(appended)
    }

    /// The term in which this copy of the store leads, if it does.
    fn term(&self) -> Option<u64> {
        self.leads.as_ref().map(|leader| leader.term)
    }

    /// The latest snapshot: what a transaction found to be so already may not be on the device yet.
    fn unchanged(&self) -> Appended {
        Appended {
            snapshot: self.latest.clone(),
            place: self.last.clone(),
            term: self.term(),
        }
    }

    fn append_all(
        &mut self,
        mut changed: Snapshot,
        stages: Vec<Stage>,
    ) -> Result<Appended, EngineError> {
        self.check_orders()?;
        self.revoke()?;
        // What it was made of may have been zeros.
        self.latest.base().check()?;
        changed.set_number(SnapshotNumber(self.latest.number().0 + 1));
        // Others may use the numbers that they have meanwhile.
        changed.set_documents(changed.documents().max(self.latest.documents()));
        // New terms alone change no answer.
        let has_changes = !stages.is_empty();
        let transaction = Transaction::between(&self.latest, &changed, stages);
        self.log(&transaction)?;
        changed.keep_terms();
        if has_changes {
            self.published.note(&self.latest, &changed);
        }
        self.latest = changed.clone();
        self.tell_of_next();
        Ok(Appended {
            snapshot: changed,
            place: self.last.clone(),
            term: self.term(),
        })
    }

    /// Notes that this process makes the snapshots from this one on, where the store is or was a copy of a cluster:
    /// as the one that leads all copies (`is_copy`), or alone.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub(crate) fn begin_run(
        &mut self,
        first: SnapshotNumber,
        is_copy: bool,
    ) -> Result<(), EngineError> {
        if let Some(store) = &self.store {
            let directory = store.directory();
            let known = History::read(directory)?;
            if known.is_some() || is_copy {
                let written = known
                    .unwrap_or_default()
                    .with_run(first, is_copy)
                    .write(directory);
                written.map_err(|error| self.refused(error))?;
            }
        }
        self.has_run = true;
        Ok(())
    }

    /// Appends a transaction to the log, if there is one, and queues it for the copies of the store.
    ///
    /// # Errors
    /// As [`Writer::append`]; [`EngineError::TransactionTooLarge`] for the copies.
    pub(crate) fn log(&mut self, transaction: &Transaction) -> Result<(), EngineError> {
        if !self.has_run {
            self.begin_run(transaction.number, false)?;
        }
        let Some(store) = &self.store else {
            return Ok(());
        };
        let mut bytes = Vec::new();
        transaction.encode(&mut bytes);
        let said = match (&self.leads, &self.copied) {
            (Some(_), Some(copied)) => copied.take(bytes.len()),
            _ => Box::default(),
        };
        Transaction::encode_beside(&said, &mut bytes);
        let checked = match &self.leads {
            Some(leader) => leader.check_size(bytes.len()),
            None => Ok(()),
        };
        let appended = checked.map(|()| store.append_encoded(&bytes));
        let log = Arc::clone(store.log());
        let appended = match appended {
            Ok(Ok(ticket)) => Ok(ticket),
            Ok(Err(error)) => Err(self.refused(error)),
            Err(error) => Err(error),
        };
        if let (Err(_), Some(copied)) = (&appended, &self.copied) {
            copied.put_back(&said);
        }
        self.last = Some((log, appended?));
        if let Some(copied) = &self.copied {
            copied.note(transaction.number, said);
        }
        if let Some(leader) = &self.leads {
            leader.queue(transaction.number, bytes);
        }
        Ok(())
    }

    /// Makes a snapshot that a transaction of the store that this one follows led to, with these bytes, the latest; and
    /// notes what it said of streams.
    ///
    /// # Errors
    /// As [`Writer::append`]. The terms of the snapshot are kept all the same: no other one may follow.
    pub(crate) fn follow(
        &mut self,
        next: Snapshot,
        (transaction, said): (&[u8], Box<[u8]>),
    ) -> Result<Appended, EngineError> {
        assert!(
            self.follows,
            "a store that follows no other one is not written so"
        );
        self.latest.base().check()?;
        if let Some(store) = &self.store {
            match store.append_encoded(transaction) {
                Ok(ticket) => self.last = Some((Arc::clone(store.log()), ticket)),
                Err(error) => return Err(self.refused(error)),
            }
        }
        if let Some(copied) = &self.copied {
            copied.note(next.number(), said);
        }
        self.latest = next;
        self.tell_of_next();
        Ok(self.unchanged())
    }

    /// Tells of the latest snapshot, which a transaction has just led to.
    pub(crate) fn tell_of_next(&self) {
        if let Some(group) = &self.group {
            group.note(&self.latest);
        }
        self.tell();
    }

    /// Tells of the latest snapshot.
    pub(crate) fn tell(&self) {
        if let Some(told) = &self.told {
            told(&self.latest);
        }
    }

    /// Makes the first snapshot of the next generation, whose base is written, the latest: its files
    /// become the current ones.
    ///
    /// # Errors
    /// What the operating system says; the generation before goes on.
    pub(crate) fn replace(&mut self, to: &Snapshot) -> Result<(), EngineError> {
        self.revoke()?;
        if let Some(store) = &mut self.store {
            let between = Between(&self.failed);
            let replaced = store.replace(to.generation(), (to.base(), to.number()));
            std::mem::forget(between);
            replaced.map_err(|error| self.refused(error))?;
        }
        self.last = None;
        self.latest = to.clone();
        Ok(())
    }

    /// Makes a snapshot the latest that is upon a base of the same generation which is written and has
    /// more than the log says: files of both become current at once.
    ///
    /// # Errors
    /// What the operating system says; the snapshot before stays the latest.
    pub(crate) fn advance(&mut self, to: Snapshot) -> Result<(), EngineError> {
        self.revoke()?;
        if !self.has_run {
            self.begin_run(to.number(), false)?;
        }
        if let Some(store) = &mut self.store {
            let between = Between(&self.failed);
            let advanced = store.advance(to.clone());
            std::mem::forget(between);
            advanced.map_err(|error| self.refused(error))?;
        }
        self.latest = to;
        Ok(())
    }

    /// What a failure to write means for the transactions to come.
    pub(crate) fn refused(&mut self, error: StoreError) -> EngineError {
        match error {
            // The log is as it was: there may be room again later.
            StoreError::DiskFull { .. } => EngineError::ReadOnly {
                reason: error.to_string(),
            },
            StoreError::LogFailed { .. } | StoreError::Uncertain { .. } => {
                let reason = error.to_string();
                self.failed.get_or_init(|| reason.clone());
                EngineError::ReadOnly { reason }
            }
            other => other.into(),
        }
    }

    /// Takes away what a base or a checkpoint that was not finished left.
    pub(crate) fn abandon(&mut self) {
        if let Some(store) = &self.store {
            store.abandon();
        }
    }
}

/// Files give way to those of another base. A panic meanwhile leaves it open which are current, so
/// that nothing may be written any more.
struct Between<'a>(&'a OnceLock<String>);

impl Drop for Between<'_> {
    fn drop(&mut self) {
        let reason = "an error inside while its files were replaced; open it again";
        self.0.get_or_init(|| reason.to_owned());
    }
}

impl Inner {
    /// Waits until a transaction is on the device, and on those of the copies of the store that are there, and
    /// lets readers see it.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if the log failed: nobody knows whether the transaction is
    /// lasting, so no reader sees it, and no later one is taken until the store is opened again.
    pub(crate) fn publish(&self, appended: Appended) -> Result<(), EngineError> {
        if let Some((log, ticket)) = &appended.place
            && let Err(error) = log.sync(*ticket)
        {
            let mut writer = self.writer.lock();
            // A load or merge in the meantime has put the transaction into a generation of its
            // own, which is on the device; that one's log did not fail.
            let is_current = |store: &DurableStore| Arc::ptr_eq(store.log(), log);
            if writer.store.as_ref().is_none_or(is_current) {
                return Err(writer.refused(error));
            }
        }
        match self.group() {
            // Readers see it when all nodes in sync have it.
            Some(group) => group.publish(appended.snapshot.number(), appended.term)?,
            None => self.show_upon_latest(appended.snapshot),
        }
        Ok(())
    }

    /// Lets readers see a snapshot, unless they see a later one, upon the base that they see already.
    pub(crate) fn show_upon_latest(&self, snapshot: Snapshot) {
        let place = |snapshot: &Snapshot| (snapshot.generation(), snapshot.number());
        let (.., merges) = snapshot.place();
        let latest = self.graph.load().snapshot.place().2 > merges;
        // A merge ended meanwhile: readers shall not go back to the base before it.
        let latest = latest.then(|| self.writer.lock().latest.clone());
        let latest = latest.filter(|latest| place(latest) == place(&snapshot));
        self.show(latest.unwrap_or(snapshot));
    }

    /// Lets readers see a snapshot, unless they see a later one.
    pub(crate) fn show(&self, snapshot: Snapshot) {
        let _one = self.showing.lock();
        if snapshot.place() > self.graph.load().snapshot.place() {
            self.forget_old_plans(&snapshot);
            self.graph.store(Arc::new(StoredGraph { snapshot }));
        }
    }

    /// Lets readers see what is committed as soon as it is on the device, and on those of the copies of the store
    /// that are there, upon the base that is current:
    /// what they see after a merge may be upon the one before, whose files are gone, until what was being
    /// written to the device meanwhile is shown.
    pub(crate) fn show_latest(&self) {
        let (latest, last, term) = {
            let writer = self.writer.lock();
            (writer.latest.clone(), writer.last.clone(), writer.term())
        };
        // Where the log has failed, nothing more will be seen.
        if last.is_some_and(|(log, ticket)| log.sync(ticket).is_err()) {
            return;
        }
        if let Some(group) = self.group() {
            let number = latest.number();
            // Where another node leads now, what it has will be seen.
            if group.publish(number, term).is_err() || !group.has_committed(number) {
                return;
            }
        }
        self.show(latest);
    }

    /// Ids are taken from terms that nothing uses, and plans remember ids.
    pub(crate) fn forget_plans(&self) {
        self.planner.clear();
        self.streams.forget_plans();
    }

    /// Plans stay right when the graph changes, but may become slow: they are forgotten after
    /// many changes.
    fn forget_old_plans(&self, snapshot: &Snapshot) {
        use std::sync::atomic::Ordering::Relaxed;
        let quads = snapshot.triples() + snapshot.named_quads();
        let planned = self.planned_quads.load(Relaxed);
        if quads.abs_diff(planned) > 100 + planned.min(quads) / 4 {
            self.planned_quads.store(quads, Relaxed);
            self.planner.clear();
        }
    }
}
