//! How does a load become part of a base that has data, while others commit?
//!
//! Terms come first: what the load lacks is numbered and goes to the log, without quads, so that ids
//! stay from then on whatever others add. Its quads are made in a copy of that snapshot, of which a
//! base is merged and written. At the end, with the writer's lock, what others committed meanwhile is
//! made in it, too, and the new base becomes current with a checkpoint, by one rename. Until then the
//! old base and the log are the store, and they have none of the quads; what a crash leaves of the
//! terms is forgotten with the next merge.

use std::sync::atomic::Ordering;

use jindou_model::{IdQuad, SnapshotNumber};
use jindou_store::bulk::{BulkSink, Loaded, LoadedQuads};
use jindou_store::{DurableStore, Merged, Rebase, Snapshot};

use crate::EngineError;
use crate::database::Inner;
use crate::graph::read_whole;

/// How often terms are moved onto what others committed while they were looked up, before all wait
/// for it.
const MOST_MOVES: usize = 4;

/// While it is there, the terms of a load are without their quads.
struct TermsOfLoad<'a>(&'a Inner);

impl Drop for TermsOfLoad<'_> {
    fn drop(&mut self) {
        self.0.load_bytes.store(0, Ordering::Relaxed);
    }
}

impl Inner {
    /// Makes what was collected, and all changes, part of a new base, if `stands` is true of the snapshot
    /// that it comes after. Gives the quads that were not there, and the first snapshot that has them.
    /// The caller has the turn.
    ///
    /// # Errors
    /// Too many terms; what the operating system says; [`EngineError::Contended`] if it does not stand.
    /// The graph is then as it was.
    pub(crate) fn load_onto(
        &self,
        sinks: Vec<BulkSink>,
        latest: Snapshot,
        stands: &dyn Fn(&Snapshot) -> bool,
    ) -> Result<(u64, SnapshotNumber), EngineError> {
        let quads = read_whole(&latest, || LoadedQuads::new(sinks, &latest))??;
        drop(latest);
        let _terms = TermsOfLoad(self);
        let (start, quads) = self.keep_terms(quads)?;
        let loaded = read_whole(&start, || Loaded::new(start.clone(), quads))?;
        if loaded.added() == 0 {
            let writer = self.writer.lock();
            if writer.latest.is_same_version(&start) {
                return Ok((0, writer.latest.number()));
            }
        }
        let merged = read_whole(&start, || loaded.merged())??;
        let merged = match &self.directory {
            Some(directory) => DurableStore::write_merged(directory, merged)?,
            None => merged,
        };
        let number = self.make_current(&loaded, merged, stands)?;
        Ok((loaded.added(), number))
    }

    /// Commits the terms of a load, and gives the snapshot that has them and the quads in its ids.
    fn keep_terms(&self, mut quads: LoadedQuads) -> Result<(Snapshot, Vec<IdQuad>), EngineError> {
        for moves in 0.. {
            let mut writer = self.writer.lock();
            let latest = writer.begin()?;
            if !quads.is_on(&latest) {
                let is_last = moves == MOST_MOVES;
                let waiting = is_last.then_some(writer);
                read_whole(&latest, || quads.move_onto(&latest))??;
                match waiting {
                    Some(still) => writer = still,
                    None => continue,
                }
            }
            let (working, quads) = quads.into_parts();
            // Nobody waits for a merge, which comes after the load, on account of these.
            let bytes = working.pending_bytes() as u64;
            self.load_bytes.store(bytes, Ordering::Relaxed);
            let appended = writer.append_terms(working)?;
            let start = writer.latest.clone();
            start.close_extents();
            drop(writer);
            self.publish(appended)?;
            return Ok((start, quads));
        }
        unreachable!("the last move ends it")
    }

    /// Makes a loaded base current, with what others committed since it was begun.
    fn make_current(
        &self,
        loaded: &Loaded,
        merged: Merged,
        stands: &dyn Fn(&Snapshot) -> bool,
    ) -> Result<SnapshotNumber, EngineError> {
        let mut writer = self.writer.lock();
        let latest = writer.begin()?;
        if !read_whole(&latest, || stands(&latest))? {
            return Err(EngineError::Contended { executions: 1 });
        }
        let (next, forgets) = read_whole(&latest, || {
            let with = loaded.onto(&latest);
            let rebase = Rebase::new(merged, &with);
            let mut next = rebase.apply(&with);
            next.set_number(SnapshotNumber(latest.number().0 + 1));
            let unused = self.streams.without_held(rebase.unused());
            next.forget_terms(&unused);
            (next, !unused.is_empty())
        })?;
        writer.advance(next.clone())?;
        writer.published.note(&latest, &next);
        if forgets {
            self.forget_plans();
        }
        let number = next.number();
        self.show(next);
        Ok(number)
    }
}
