//! From a complete batch to data: a transaction, and a run of the stream's ring.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use jindou_model::{IdQuad, TermId};
use jindou_store::window::StreamTuple;
use jindou_store::{Snapshot, Stage};
use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashSet;

use super::brought::bytes_of_timing;
use super::journal::Revocation;
use super::records::Facts;
use super::stream::Stream;
use super::together::{Batches, Standing};
use super::tuples::Tuples;
use crate::EngineError;
use crate::database::Inner;
use crate::deadline::Deadline;
use crate::graph::read_whole;
use crate::update::{Run, UpdateOptions};

/// Tuples whose terms have ids, on their way into a ring: they hold their terms as a ring does.
#[derive(Default)]
pub(super) struct Staged(Mutex<Vec<Arc<Vec<IdQuad>>>>);

impl Staged {
    fn add(&self, tuples: Vec<IdQuad>) -> Arc<Vec<IdQuad>> {
        let tuples = Arc::new(tuples);
        self.0.lock().push(Arc::clone(&tuples));
        tuples
    }

    fn remove(&self, tuples: &Arc<Vec<IdQuad>>) {
        self.0.lock().retain(|staged| !Arc::ptr_eq(staged, tuples));
    }
}

/// Terms to be looked at by a merge; they come back if it fails.
pub(crate) struct Candidates<'a> {
    streams: &'a super::Streams,
    terms: Vec<TermId>,
}

impl Candidates<'_> {
    pub(crate) fn terms(&self) -> &[TermId] {
        &self.terms
    }

    /// The merge has looked at them.
    pub(crate) fn settle(mut self) {
        self.terms.clear();
    }
}

impl Drop for Candidates<'_> {
    fn drop(&mut self) {
        self.streams.candidates.lock().append(&mut self.terms);
    }
}

impl super::Streams {
    /// # Errors
    /// [`EngineError::InUse`] if a stream has tuples, which are ids.
    pub(crate) fn check_without_tuples(&self) -> Result<(), EngineError> {
        // What is staged no more is in its ring already.
        let is_staged = self.staged.0.lock().iter().any(|tuples| !tuples.is_empty());
        let names = self.names.read();
        let has_runs = |stream: &&Arc<Stream>| {
            let rings = stream.rings();
            rings.iter().any(|ring| !ring.runs().is_empty())
        };
        match names.streams.values().find(has_runs) {
            None if !is_staged => Ok(()),
            found => Err(EngineError::InUse {
                message: format!(
                    "windows of {} hold ids, which numbering anew would change",
                    found.map_or("a stream", |stream| &stream.name)
                ),
            }),
        }
    }

    /// Terms that were found unused and that a stream had then, to be looked at again.
    pub(crate) fn take_candidates(&self) -> Candidates<'_> {
        Candidates {
            streams: self,
            terms: std::mem::take(&mut *self.candidates.lock()),
        }
    }

    /// Leaves those of some unused terms that no stream has.
    ///
    /// Costs a look at each tuple of all rings.
    pub(crate) fn without_held(&self, terms: &[TermId]) -> Vec<TermId> {
        self.held_by.lock().clear();
        if terms.is_empty() {
            return Vec::new();
        }
        let mut left: FxHashSet<TermId> = terms.iter().copied().collect();
        // What is staged no more is in its ring already.
        for quad in self.staged.0.lock().iter().flat_map(|staged| staged.iter()) {
            left.remove(&quad.subject);
            left.remove(&quad.object);
        }
        let streams: Vec<Arc<Stream>> = self.names.read().streams.values().cloned().collect();
        let held_by = streams.into_iter().map(|stream| {
            let mut held = Vec::new();
            for run in stream.rings().iter().flat_map(|ring| ring.runs()) {
                run.for_each_term(&mut |id| {
                    if left.remove(&id) {
                        held.push(id);
                    }
                });
            }
            (stream, held)
        });
        *self.held_by.lock() = held_by.collect();
        let (free, held): (Vec<TermId>, Vec<TermId>) =
            terms.iter().copied().partition(|id| left.contains(id));
        self.candidates.lock().extend(held);
        free
    }
}

impl Inner {
    /// Makes all complete batches of a stream part of the data.
    ///
    /// # Errors
    /// Those of a transaction; the batch that met it waits, and so do those after it.
    pub(super) fn close_batches(self: &Arc<Self>, stream: &Stream) -> Result<(), EngineError> {
        let closed = self.close_groups(stream, usize::MAX, stream.closing.lock());
        if closed.is_err() || !stream.is_left.load(SeqCst) {
            return closed.map(drop);
        }
        // Those that were left since the last look. What is left after that has the next tick, so that this
        // thread is not kept for ever.
        let left = self.close_groups(stream, usize::MAX, stream.closing.lock());
        left.map(drop)
    }

    /// Makes some complete batches of a stream part of the data, as many as one transaction takes. Waits for
    /// nobody: where another thread is at those of the stream, that one has these, too. False if there
    /// may be more.
    ///
    /// # Errors
    /// As [`Self::close_batches`].
    pub(super) fn close_some(self: &Arc<Self>, stream: &Stream) -> Result<bool, EngineError> {
        // Before it is known that somebody has the lock: whoever gives it back looks after that.
        stream.is_left.store(true, SeqCst);
        match stream.closing.try_lock() {
            None => Ok(true),
            Some(one) => {
                let is_done = self.close_groups(stream, 1, one)?;
                Ok(is_done && !stream.is_left.load(SeqCst))
            }
        }
    }

    /// Makes groups of complete batches part of the data, by the thread that has the lock. True if there are
    /// no more.
    pub(super) fn close_groups(
        self: &Arc<Self>,
        stream: &Stream,
        most: usize,
        mut one: MutexGuard<'_, ()>,
    ) -> Result<bool, EngineError> {
        stream.is_left.store(false, SeqCst);
        let closed = self.close_groups_of(stream, most, &mut one);
        stream.is_behind.store(closed.is_err(), Relaxed);
        if let Some(stable_ms) = stream.intake.lock().stable_ms() {
            stream.set_stable(stable_ms);
        }
        closed
    }

    fn close_groups_of(
        self: &Arc<Self>,
        stream: &Stream,
        most: usize,
        one: &mut MutexGuard<'_, ()>,
    ) -> Result<bool, EngineError> {
        for _ in 0..most {
            // Whoever waits for a moment between batches has it, and may go on with those that are left.
            MutexGuard::bump(one);
            self.absorb_late(stream)?;
            let mut batches = Batches::take_complete(stream);
            if batches.are_none() {
                return Ok(true);
            }
            let before = (batches.bytes(), batches.len());
            let absorbed = self.absorb(stream, &mut batches);
            let absorbed_bytes = before.0 - batches.bytes();
            stream.waiting_bytes.fetch_sub(absorbed_bytes, Relaxed);
            let absorbed_batches = before.1 - batches.len();
            if batches.standing() != Standing::Counted {
                stream.counts.batches.fetch_add(absorbed_batches, Relaxed);
            }
            if let Err(error) = absorbed {
                batches.put_back(stream);
                return Err(error);
            }
        }
        Ok(false)
    }

    /// Makes batches part of the data, in one transaction; takes away those that are.
    ///
    /// # Errors
    /// Those of a transaction; those of a ring, which has the batches that were taken away.
    fn absorb(self: &Arc<Self>, stream: &Stream, batches: &mut Batches) -> Result<(), EngineError> {
        let Some(facts_of) = batches.facts() else {
            return Ok(());
        };
        let standing = batches.standing();
        let tuples = batches.joined();
        let mut stored = stored(stream, &tuples);
        let (mut absorbed, mut unread) = (0, 0);
        if standing != Standing::Counted {
            absorbed = stored.iter().filter(|is_stored| **is_stored).count() as u64;
            unread = tuples.len() as u64 - absorbed;
        }
        if standing != Standing::New {
            // They were, and may have been deleted since.
            stored.fill(false);
        }
        if stream.readers.read().is_empty() {
            // Nobody can read the others.
            let facts = only(&tuples, &stored);
            let (ids, _) = self.insert(stream, &facts, &vec![true; facts.len()], facts_of)?;
            self.streams.staged.remove(&ids);
            stream.counts.absorbed.fetch_add(absorbed, Relaxed);
            stream.counts.unread.fetch_add(unread, Relaxed);
            stream.skip_numbers(tuples.len());
            drop(tuples);
            batches.clear();
            return Ok(());
        }
        let (ids, brought_bytes) = self.insert(stream, &tuples, &stored, facts_of)?;
        stream.counts.absorbed.fetch_add(absorbed, Relaxed);
        let timed = timed(&tuples, &ids);
        let term_bytes = bytes_of_timing(&tuples, &stored, brought_bytes);
        drop(tuples);
        let appended = batches.append_to(stream, &timed);
        // A merge that ends before this does not find them in windows.
        stream.brought.lock().add_terms(term_bytes);
        self.streams.staged.remove(&ids);
        appended
    }

    /// Stores the facts that came late. Late tuples enter no window.
    ///
    /// # Errors
    /// Those of a transaction; facts that met it wait.
    fn absorb_late(self: &Arc<Self>, stream: &Stream) -> Result<(), EngineError> {
        loop {
            // Nobody else takes one away.
            let Some((name, late)) = stream.late_facts.lock().first().cloned() else {
                return Ok(());
            };
            let facts = only(&late, &stored(stream, &late));
            let all = vec![true; facts.len()];
            let (ids, _) = self.insert(stream, &facts, &all, Facts::Late(name))?;
            self.streams.staged.remove(&ids);
            let count = facts.len() as u64;
            stream.counts.absorbed.fetch_add(count, Relaxed);
            stream.late_facts.lock().remove(0);
        }
    }

    /// One transaction: gives tuples their ids, and stores some. The ids are staged; with them come the bytes of
    /// the terms that are new.
    fn insert(
        self: &Arc<Self>,
        stream: &Stream,
        tuples: &Tuples,
        is_stored: &[bool],
        facts: Facts,
    ) -> Result<(Arc<Vec<IdQuad>>, u64), EngineError> {
        let streams = &self.streams;
        if tuples.is_empty() {
            return Ok((streams.staged.add(Vec::new()), 0));
        }
        let deadline = Deadline::never();
        let options = UpdateOptions::default();
        let graph = stream.definition.graph.as_deref();
        self.wait_for_merge(&deadline, tuples.len() as u64)?;
        let mut writer = self.take_turn(&deadline)?;
        writer.revoke()?;
        let mut working = writer.begin_transaction()?;
        let term_bytes = |of: &Snapshot| of.appended_bytes() + of.pending_bytes();
        let before = term_bytes(&working);
        let (ids, done) = read_whole(&writer.latest, || {
            let mut run = Run::new(self, &options, &deadline, &mut working);
            let ids = run.absorb(tuples.iter().map(|(_, keys)| keys), is_stored, graph)?;
            Ok::<_, EngineError>((ids, run.done()))
        })??;
        let brought = term_bytes(&working).saturating_sub(before) as u64;
        let stages = done.into_stages();
        // Where all that is to be stored is there already, the others may have new terms all the same.
        let appended = match stages.iter().all(Stage::is_empty) {
            true => {
                if is_stored.contains(&true)
                    && let Some(journal) = self.journal_of(stream)
                {
                    // They were stored, whatever is deleted after that.
                    let intended = journal.intend(stream, facts, writer.latest.number().0)?;
                    journal.sync_intent(intended)?;
                }
                writer.append_terms(working)?
            }
            false => match self.journal_of(stream) {
                None => writer.append(working, stages)?,
                Some(journal) => {
                    let next = writer.latest.number().0 + 1;
                    let intended = journal.intend(stream, facts, next)?;
                    let appended = journal
                        .sync_intent(intended)
                        .and_then(|()| writer.append(working, stages));
                    let revocation = Revocation::new(journal, stream.number, facts);
                    appended.inspect_err(|_| writer.take_back([revocation]))?
                }
            },
        };
        // Before anybody can think that nothing has the terms.
        let ids = streams.staged.add(ids);
        drop(writer);
        if let Err(error) = self.publish(appended) {
            streams.staged.remove(&ids);
            return Err(error);
        }
        self.note_transaction();
        self.tell_subscriptions();
        Ok((ids, brought))
    }
}

/// Tuples with their ids.
fn timed(tuples: &Tuples, ids: &[IdQuad]) -> Vec<StreamTuple> {
    let timed = tuples.times().iter().zip(ids);
    let timed = timed.map(|(time_ms, quad)| StreamTuple {
        time_ms: *time_ms,
        subject: quad.subject,
        predicate: quad.predicate,
        object: quad.object,
    });
    timed.collect()
}

/// Whether each of some tuples is a fact.
pub(super) fn stored(stream: &Stream, tuples: &Tuples) -> Vec<bool> {
    if !stream.definition.has_timeless() {
        return vec![false; tuples.len()];
    }
    let mut last = ("", false);
    let is_stored = tuples.iter().map(|(_, keys)| {
        // Tuples of a predicate often come together.
        if keys.predicate != last.0 {
            last = (keys.predicate, stream.timeless.has(keys.predicate));
        }
        last.1
    });
    is_stored.collect()
}

/// Those of some tuples that are chosen.
fn only(tuples: &Tuples, is_chosen: &[bool]) -> Tuples {
    let mut chosen = Tuples::default();
    let numbers = (0..tuples.len()).filter(|tuple| is_chosen[*tuple]);
    numbers.for_each(|tuple| chosen.copy(tuples, tuple));
    chosen
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jindou_stream::{Predicates, StreamDefinition};

    use crate::{Answer, Database, NextResult, TupleFormat};

    fn push(database: &Database, text: &str) {
        let text = text.as_bytes().to_vec();
        let pushed = database.push("s", TupleFormat::Lines, None, text);
        pushed.expect("it is sound");
    }

    fn database(timeless: Predicates) -> Database {
        let database = Database::new();
        let mut definition = StreamDefinition::new("http://e/s");
        definition.timeless = Some(timeless);
        database.create_stream("s", definition).expect("it is new");
        database
    }

    #[test]
    fn batches_that_nobody_reads_stage_nothing() {
        let database = database(Predicates::ALL);
        for batch in 0..5 {
            let time = batch * 100;
            let tuple = format!("<http://e/a> <http://e/b> <http://e/{batch}>");
            push(&database, &format!("{time}\t{tuple} .\n"));
        }
        assert_eq!(database.quad_counts().triples, 4);
        assert!(database.inner().streams.staged.0.lock().is_empty());
    }

    #[test]
    fn terms_of_windows_are_kept_where_all_facts_of_the_batch_are_known() {
        let database = database(Predicates::Some(vec!["http://e/fact".to_owned()]));
        let text = "ASK FROM STREAM <http://e/s> [RANGE 100ms] \
                    WHERE { <http://e/x> <http://e/new> \"a text\" }";
        database.register("q", text).expect("it is sound");
        push(
            &database,
            "10\t<http://e/a> <http://e/fact> <http://e/b> .\n",
        );
        let fact = "110\t<http://e/a> <http://e/fact> <http://e/b> .\n";
        let other = "120\t<http://e/x> <http://e/new> \"a text\" .\n";
        push(&database, &format!("{fact}{other}"));
        database.heartbeat("s", 200).expect("it is sound");
        let mut results = database.results_of("q", Some(1)).expect("it is there");
        let NextResult::Result(result, _) = results.next_within(Duration::ZERO) else {
            panic!("there are two");
        };
        let found = (result.instant_ms, &result.answer);
        assert_eq!(found, (200, &Ok(Answer::Boolean(true))));
    }
}
