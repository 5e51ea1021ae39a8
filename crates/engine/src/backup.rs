//! Copies of a database: how is one made while everything goes on, how is it checked, and how does
//! it become a store again?
//!
//! A backup is a store of its own: `jindou serve --location BACKUP` works. It is built in a new
//! directory beside its place and takes its name when it is whole and on the device: see
//! [`Partial`].

use std::path::Path;
use std::time::{Duration, Instant};

use jindou_model::SnapshotNumber;
use jindou_store::bulk::rebuild;
use jindou_store::{Directory, DurableStore, History, Partial, Recovery, Snapshot, StoreFile};

use crate::deadline::Deadline;
use crate::statistics::PartStatistics;
use crate::{Database, EngineError, Occupation, prefixes};

/// What a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// The snapshot that it is of: all transactions up to that one, and no other.
    pub snapshot: SnapshotNumber,
    /// Triples of the default graph.
    pub triples: u64,
    /// Quads of named graphs.
    pub named_quads: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// The large files, which never change, are those of the store under a second name: the backup
    /// cost no space, and damage to one of these on the device is damage to both.
    pub is_linked: bool,
}

/// What a store holds, as reading all of it has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreReport {
    /// The number of its latest snapshot.
    pub snapshot: SnapshotNumber,
    /// Its files.
    pub files: Vec<StoreFile>,
    /// Triples of the default graph.
    pub triples: u64,
    /// Quads of named graphs.
    pub named_quads: u64,
    /// Named graphs.
    pub named_graphs: u64,
    /// IRIs and blank nodes.
    pub vertices: u64,
    /// Literals in the dictionary.
    pub literals: u64,
    /// Predicates.
    pub predicates: u64,
    /// Quads changed since the last merge.
    pub changes: u64,
    /// What its log holds.
    pub recovery: Recovery,
    /// What is here, of the part of a store: the numbers above are those of the whole.
    pub part: Option<PartStatistics>,
}

impl Database {
    /// Makes a consistent copy of the database in a directory, which must be absent or empty:
    /// a store that holds what the database held at some moment between the call and its return.
    /// It is on the device when this returns, and not in its place before it is whole.
    ///
    /// Queries and updates go on meanwhile; a load, a merge or a checkpoint waits. Waits for its
    /// own turn as [`Database::compact`] does, but for no update. Costs the
    /// changes since the last merge where the directory is on the device of the store, whose files
    /// are linked; else a copy of them; for a database in memory what storing it costs.
    ///
    /// # Errors
    /// As [`Database::backup_within`].
    pub fn backup(&self, to: &Path) -> Result<BackupReport, EngineError> {
        self.backup_within(to, self.config().query_timeout)
    }

    /// [`Database::backup`] that waits for so long at most until it can begin; without a limit for
    /// ever.
    ///
    /// # Errors
    /// [`EngineError::Busy`] if something else was under way for all that time; what the operating
    /// system says. Of two backups made to the same place at the same time the one that ends later
    /// is refused.
    pub fn backup_within(
        &self,
        to: &Path,
        wait: Option<Duration>,
    ) -> Result<BackupReport, EngineError> {
        let deadline = Deadline::new(Instant::now(), wait, None);
        let place = Partial::begin(to)?;
        let (snapshot, is_linked) = self.copy_into(&place, &deadline)?;
        let bytes = place
            .directory()
            .files()?
            .iter()
            .map(|file| file.bytes)
            .sum();
        place.finish()?;
        Ok(BackupReport {
            snapshot: snapshot.number(),
            triples: snapshot.triples(),
            named_quads: snapshot.named_quads(),
            bytes,
            is_linked,
        })
    }

    pub(crate) fn copy_into(
        &self,
        place: &Partial,
        deadline: &Deadline,
    ) -> Result<(Snapshot, bool), EngineError> {
        let inner = self.inner();
        let locked = inner.directory.as_ref();
        if let Some(directory) = locked.filter(|directory| directory.is_locked()) {
            // What is current stays so; what readers see is on the device.
            let _one = inner.turn.take(Occupation::Backup, deadline)?;
            let (mut graph, mut streams) = inner.graph_and_streams()?;
            if !DurableStore::is_upon_current(directory, &graph.snapshot)? {
                inner.show_latest();
                (graph, streams) = inner.graph_and_streams()?;
            }
            let snapshot = graph.snapshot.clone();
            let copied = DurableStore::copy(directory, &snapshot, place.directory())?;
            let number = snapshot.number();
            inner.copy_streams(streams.as_ref(), number, place.directory())?;
            inner.copy_prefixes(place.directory())?;
            if let Some(history) = History::read(directory)? {
                history.write(place.directory())?;
            }
            return Ok((snapshot, copied.is_linked));
        }
        let snapshot = self.graph().snapshot.clone();
        // What lies in files is not written again, and they are another folder's.
        let is_base = snapshot.is_merged() && !snapshot.base().is_in_files();
        let rebuilt = match is_base {
            true => None,
            false => Some(inner.builders()?.install(|| rebuild(&snapshot))?),
        };
        let base = rebuilt.as_ref().unwrap_or(snapshot.base());
        DurableStore::write_new(place.directory(), base, snapshot.number())?;
        inner.copy_prefixes(place.directory())?;
        Ok((snapshot, false))
    }

    /// Reads all of a store and compares whatever it says twice: checksums, the dictionary in both
    /// directions, edges by subject and by object, the tables derived from them, counts. Alters
    /// nothing. Reads every edge several times.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] with the file that is not as it should be; as [`Database::open`].
    pub fn verify(location: &Path) -> Result<StoreReport, EngineError> {
        Ok(report(&Directory::open_to_read(location)?)?.0)
    }

    /// Makes a store in a directory, which must be absent or empty, of a backup, which is
    /// [verified](Database::verify) first and stays as it is.
    ///
    /// # Errors
    /// As [`Database::verify`]; what the operating system says. The directory is then as it was.
    pub fn restore(backup: &Path, location: &Path) -> Result<StoreReport, EngineError> {
        let from = Directory::open_to_copy(backup)?;
        let place = Partial::begin(location)?;
        let (report, snapshot) = report(&from)?;
        if let Some(part) = snapshot.base().node_part() {
            return Err(part.refusal(backup).into());
        }
        from.copy_to(place.directory())?;
        place.finish()?;
        Ok(report)
    }
}

fn report(directory: &Directory) -> Result<(StoreReport, Snapshot), EngineError> {
    let (snapshot, recovery) = DurableStore::verify(directory)?;
    Database::check_streams(directory)?;
    prefixes::read(directory)?;
    let (vertices, literals) = snapshot.dictionary_terms();
    let report = StoreReport {
        snapshot: snapshot.number(),
        files: directory.files()?,
        triples: snapshot.triples(),
        named_quads: snapshot.named_quads(),
        named_graphs: snapshot.named_graphs(),
        vertices,
        literals,
        predicates: snapshot.predicate_count() as u64,
        changes: snapshot.changes(),
        recovery,
        part: PartStatistics::of(&snapshot),
    };
    Ok((report, snapshot))
}

#[cfg(test)]
mod tests {
    use jindou_model::{IdQuad, TermId};
    use jindou_store::Stage;

    use super::*;
    use crate::Config;

    /// Between the sync of a transaction and the moment at which readers see it, a merge may end:
    /// what they see is then upon a base whose files are gone.
    #[test]
    fn a_backup_is_made_while_a_transaction_that_was_merged_is_not_shown_yet() {
        let folder = tempfile::tempdir().expect("there is room");
        let location = folder.path().join("store");
        let database = Database::open_or_create(&location, Config::default()).expect("it is new");
        let first = "INSERT DATA { <http://e/a> <http://e/p> \"first\" }";
        database.update(first).expect("there is room");
        database.compact().expect("there is room");
        let inner = database.inner();
        let appended = {
            let mut writer = inner.writer.lock();
            let mut working = writer.begin().expect("nothing failed");
            let object = working.intern_literal(b"second\0");
            let quad = IdQuad {
                subject: working.find_node(b"http://e/a").expect("it is there"),
                predicate: working.find_predicate("http://e/p").expect("it is there"),
                object: object.expect("there are few literals"),
                graph: TermId::NONE,
            };
            let mut stage = Stage::default();
            stage.changes.add.push(quad);
            working.apply_stage(&stage);
            let appended = writer.append(working, vec![stage]);
            appended.expect("there is room")
        };
        database.compact().expect("there is room");
        let (seen, latest) = (
            database.graph().snapshot.number(),
            inner.writer.lock().latest.number(),
        );
        assert!(seen < latest, "it is not shown yet");
        let to = folder.path().join("backup");
        let report = database.backup(&to).expect("all files are there");
        assert_eq!(report.triples, 2);
        assert_eq!(Database::verify(&to).expect("it is whole").triples, 2);
        inner.publish(appended).expect("it is on the device");
    }
}
