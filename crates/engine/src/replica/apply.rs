//! How does a transaction of the leader become the latest snapshot of a follower?
//!
//! As one of the log does when a store is opened, after it was checked that it is one: what is at fault is refused,
//! and leaves the snapshot and the log as they were.

use jindou_model::{SnapshotNumber, TermId, TermKind};
use jindou_store::{NewTerms, Replay, ReplayError, Snapshot, Stage, Transaction, TransactionError};
use rustc_hash::FxHashSet;

use crate::EngineError;
use crate::database::Inner;
use crate::graph::read_whole;
use crate::streams::check_said;
use crate::writer::Appended;

/// Why a follower cannot apply what it was sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApplyError {
    /// It is not the one that comes next.
    #[error("snapshot {} was sent, and this copy is at {}", .sent.0, .latest.0)]
    OutOfOrder {
        sent: SnapshotNumber,
        latest: SnapshotNumber,
    },
    /// It does not follow from what is here.
    #[error("a transaction of the leader does not fit this copy of the store: {0}")]
    Unrelated(#[from] ReplayError),
    /// It names what is no term, or uses one as what it is not.
    #[error("a transaction of the leader has a term where none of its kind can be")]
    Misplaced,
    /// It says of streams what nobody understands.
    #[error("a transaction of the leader cannot be understood: {0}")]
    Unclear(String),
    /// The log does not take it.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<TransactionError> for ApplyError {
    fn from(error: TransactionError) -> Self {
        Self::Unrelated(error.into())
    }
}

impl Inner {
    /// Applies the encoded transaction that makes a snapshot, which is one more than the latest. Its new vertices have
    /// numbers from `sealed` on: a merge may be under way whose base has all before. It is lasting and seen once it was
    /// published.
    ///
    /// # Errors
    /// Why it cannot be; the latest snapshot and the log are then as they were, and nothing more may be applied.
    pub(super) fn apply(
        &self,
        number: SnapshotNumber,
        bytes: &[u8],
        sealed: u64,
    ) -> Result<Appended, ApplyError> {
        let mut transaction = Transaction::decode(bytes)?;
        check_said(&transaction.beside).map_err(ApplyError::Unclear)?;
        let mut writer = self.writer.lock();
        let latest = writer.begin_fold()?;
        let is_next = number.0 == latest.number().0 + 1;
        if !is_next || transaction.number != number {
            return Err(ApplyError::OutOfOrder {
                sent: transaction.number,
                latest: latest.number(),
            });
        }
        let vertices = &transaction.terms.vertices;
        if vertices.iter().any(|(number, _)| *number < sealed) {
            return Err(TransactionError::Unrelated.into());
        }
        check(&latest, &transaction)?;
        let next = read_whole(&latest, || replayed(&latest, &transaction))??;
        if !transaction.forgotten.is_empty() {
            // Ids are taken from terms, and plans remember ids.
            self.forget_plans();
        }
        let said = std::mem::take(&mut transaction.beside);
        Ok(writer.follow(next, (bytes, said))?)
    }
}

fn replayed(latest: &Snapshot, transaction: &Transaction) -> Result<Snapshot, ReplayError> {
    let mut replay = Replay::new(latest.clone());
    replay.add(transaction)?;
    Ok(replay.finish())
}

/// That what a replay takes from the log on trust is so, and that all terms are known: a replay notices only after it
/// has kept the new ones.
fn check(latest: &Snapshot, transaction: &Transaction) -> Result<(), ApplyError> {
    let mut forgotten = transaction.forgotten.clone();
    forgotten.sort_unstable();
    let are_distinct = forgotten.is_sorted_by(|a, b| a < b);
    let is_living = |id: &TermId| {
        let is_term = matches!(id.kind(), TermKind::Vertex | TermKind::Literal);
        is_term && latest.knows(*id) && latest.is_living(*id)
    };
    if !are_distinct || !forgotten.iter().all(is_living) {
        return Err(TransactionError::UnknownTerm.into());
    }
    let is_text = |(_, key): &(u64, Box<[u8]>)| std::str::from_utf8(key).is_ok();
    if !transaction.terms.vertices.iter().all(is_text) {
        return Err(ApplyError::Misplaced);
    }
    let known = Known::after(latest, &transaction.terms);
    (transaction.stages.iter()).try_for_each(|stage| known.check(stage))
}

/// The terms that there are once those of a transaction are added.
struct Known<'a> {
    latest: &'a Snapshot,
    new_vertices: FxHashSet<u64>,
    literals: u64,
    predicates: usize,
}

impl<'a> Known<'a> {
    fn after(latest: &'a Snapshot, terms: &NewTerms) -> Self {
        Self {
            latest,
            new_vertices: terms.vertices.iter().map(|(number, _)| *number).collect(),
            literals: latest.literal_count() + terms.literals.len() as u64,
            predicates: latest.predicate_count() + terms.predicates.len(),
        }
    }

    /// That a step names terms that there are, each where its kind may be.
    fn check(&self, stage: &Stage) -> Result<(), ApplyError> {
        let quads = stage.changes.remove.iter().chain(&stage.changes.add);
        for quad in quads {
            if quad.predicate.index() >= self.predicates {
                return Err(TransactionError::UnknownTerm.into());
            }
            self.check_vertex(quad.subject)?;
            self.check_object(quad.object)?;
            if !quad.graph.is_none() {
                self.check_vertex(quad.graph)?;
            }
        }
        let mut graphs = stage.forget.iter().chain(&stage.declare);
        graphs.try_for_each(|graph| self.check_vertex(*graph))
    }

    fn check_vertex(&self, id: TermId) -> Result<(), ApplyError> {
        if id.kind() != TermKind::Vertex {
            return Err(ApplyError::Misplaced);
        }
        match self.new_vertices.contains(&id.number()) || self.latest.knows(id) {
            true => Ok(()),
            false => Err(TransactionError::UnknownTerm.into()),
        }
    }

    fn check_object(&self, id: TermId) -> Result<(), ApplyError> {
        match id.kind() {
            TermKind::Vertex => self.check_vertex(id),
            TermKind::Literal if id.number() >= self.literals => {
                Err(TransactionError::UnknownTerm.into())
            }
            TermKind::Literal
            | TermKind::Integer
            | TermKind::Decimal
            | TermKind::Double
            | TermKind::Float
            | TermKind::Boolean
            | TermKind::DateTime
            | TermKind::Date => Ok(()),
            TermKind::None | TermKind::Window | TermKind::Triple | TermKind::Computed => {
                Err(ApplyError::Misplaced)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use jindou_model::{IdQuad, PredicateId};

    use super::*;
    use crate::{Config, Database};

    /// A store with one quad, which follows another one.
    fn follower(folder: &std::path::Path) -> Database {
        let location = folder.join("store");
        let database = Database::open_or_create(&location, Config::default()).expect("room");
        let update = "INSERT DATA { <http://e/a> <http://e/p> \"text\" }";
        database.update(update).expect("there is room");
        database.inner().writer.lock().follows = true;
        database
    }

    /// The transaction that adds a quad of known terms and a new vertex.
    fn next(latest: &Snapshot) -> (Transaction, IdQuad) {
        let mut after = latest.clone();
        let quad = IdQuad {
            subject: after.intern_node(b"http://e/b").expect("it is the first"),
            predicate: latest.find_predicate("http://e/p").expect("it is there"),
            object: latest.find_node(b"http://e/a").expect("it is there"),
            graph: TermId::NONE,
        };
        let mut stage = Stage::default();
        stage.changes.add.push(quad);
        after.set_number(SnapshotNumber(latest.number().0 + 1));
        (Transaction::between(latest, &after, vec![stage]), quad)
    }

    #[test]
    fn what_is_no_transaction_that_comes_next_leaves_everything_as_it_was() {
        let folder = tempfile::tempdir().expect("there is room");
        let database = follower(folder.path());
        let inner = database.inner();
        let latest = inner.writer.lock().latest.clone();
        let (sound, quad) = next(&latest);
        let with_quad = |quad: IdQuad| {
            let mut wrong = sound.clone();
            wrong.stages[0].changes.add = vec![quad];
            wrong
        };
        let literal = latest.find_literal(b"text\0").unwrap_or(TermId::literal(0));
        let subject = literal;
        let graph = TermId::window(3);
        let object = TermId::vertex(1 << 40);
        let predicate = PredicateId(99);
        let number = SnapshotNumber(sound.number.0 + 1);
        let forgotten = vec![object];
        let terms = NewTerms {
            numbers: 0,
            ..sound.terms.clone()
        };
        let documents = sound.documents;
        for wrong in [
            with_quad(IdQuad { subject, ..quad }),
            with_quad(IdQuad { graph, ..quad }),
            with_quad(IdQuad { object, ..quad }),
            with_quad(IdQuad { predicate, ..quad }),
            with_quad(IdQuad {
                object: TermId::NONE,
                ..quad
            }),
            Transaction {
                number,
                ..sound.clone()
            },
            Transaction {
                forgotten,
                ..sound.clone()
            },
            Transaction {
                terms,
                ..sound.clone()
            },
            Transaction {
                documents,
                ..Transaction::default()
            },
        ] {
            let mut bytes = Vec::new();
            wrong.encode(&mut bytes);
            let log_bytes = || {
                let writer = inner.writer.lock();
                writer
                    .store
                    .as_ref()
                    .map(jindou_store::DurableStore::log_bytes)
            };
            let before = log_bytes();
            let said = inner.apply(sound.number, &bytes, 0).map(drop);
            assert!(said.is_err(), "{wrong:?}");
            assert!(inner.writer.lock().latest.is_same_version(&latest));
            assert_eq!(log_bytes(), before);
        }
        drop(database);
        let reopened = Database::open(&folder.path().join("store"), Config::default());
        let number = reopened.expect("the log is sound").snapshot_number();
        assert_eq!(number, latest.number());
    }

    #[test]
    fn the_transaction_that_comes_next_is_seen_and_lasts() {
        let folder = tempfile::tempdir().expect("there is room");
        let database = follower(folder.path());
        let inner = database.inner();
        let latest = inner.writer.lock().latest.clone();
        let (sound, _) = next(&latest);
        let mut bytes = Vec::new();
        sound.encode(&mut bytes);
        let appended = inner.apply(sound.number, &bytes, 0).expect("it is sound");
        inner.publish(appended).expect("there is room");
        assert_eq!(database.snapshot_number(), sound.number);
        assert_eq!(database.quad_counts().triples, 2);
        drop(database);
        let reopened = Database::open(&folder.path().join("store"), Config::default());
        assert_eq!(reopened.expect("it is whole").quad_counts().triples, 2);
    }

    /// The bytes of all transactions of a store.
    fn transactions(database: &Database) -> Vec<Vec<u8>> {
        let log = {
            let writer = database.inner().writer.lock();
            let store = writer.store.as_ref().expect("it is stored");
            std::sync::Arc::clone(store.log())
        };
        let mut all = Vec::new();
        let read = jindou_store::DurableStore::logged(&log, |bytes| {
            all.push(bytes.to_vec());
            std::ops::ControlFlow::Continue(())
        });
        read.expect("the log is sound");
        all
    }

    #[test]
    fn a_merge_begins_where_extents_were_closed_though_more_was_applied() {
        let folder = tempfile::tempdir().expect("there is room");
        let config = Config {
            merge: crate::MergePolicy::never(),
            ..Config::default()
        };
        let open = |name: &str| {
            let location = folder.path().join(name);
            Database::open_or_create(&location, config.clone()).expect("there is room")
        };
        let leader = open("leader");
        leader
            .backup(&folder.path().join("follower"))
            .expect("there is room");
        let follower = open("follower");
        let inner = follower.inner();
        inner.writer.lock().follows = true;
        let insert = |class: u32, numbers: std::ops::Range<u32>| {
            let quad = |n: u32| format!("<http://e/v{class}-{n}> a <http://e/c{class}> . ");
            let quads: String = numbers.map(quad).collect();
            let done = leader.update(&format!("INSERT DATA {{ {quads} }}"));
            done.expect("there is room");
        };
        let mut applied = 0;
        let mut apply_all = || {
            for bytes in &transactions(&leader)[applied..] {
                applied += 1;
                let number = Transaction::decode(bytes).expect("it is sound").number;
                let appended = inner.apply(number, bytes, 0).expect("it follows");
                inner.publish(appended).expect("there is room");
            }
        };
        // Extents of a class that is known are as large as what it needed before.
        insert(0, 0..1);
        insert(0, 1..10);
        leader.inner().writer.lock().latest.close_extents();
        apply_all();
        let closed = inner.writer.lock().latest.clone();
        insert(0, 10..11);
        insert(1, 0..3);
        apply_all();
        let owed = crate::replica::Owed::all_of(closed);
        let merged = inner.merge_owed(&owed, &crate::deadline::Deadline::never());
        assert!(merged.expect("there is room"));
        // These are in the extent that the first one after the closing left room in.
        let given = inner.writer.lock().latest.vertex_numbers();
        insert(0, 11..15);
        let all = transactions(&leader);
        let last = Transaction::decode(all.last().expect("there is one")).expect("it is sound");
        let numbers: Vec<u64> = last.terms.vertices.iter().map(|vertex| vertex.0).collect();
        assert!(
            numbers.iter().any(|number| *number < given),
            "{numbers:?} {given}"
        );
        apply_all();
        assert_eq!(follower.quad_counts(), leader.quad_counts());
        let number = follower.snapshot_number();
        assert_eq!(number, leader.snapshot_number());
        drop((follower, leader));
        assert_eq!(open("follower").quad_counts().triples, 18);
    }
}
