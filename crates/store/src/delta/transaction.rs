//! A transaction as the log keeps it: which terms were new, and what changed?
//!
//! Little-endian words. The numbers of new vertices are runs: the first and how many.

use jindou_model::{Change, IdQuad, PredicateId, SnapshotNumber, TermId};
use rustc_hash::FxHashMap;

use super::apply::Changes;
use super::snapshot::Snapshot;
use super::terms::GivenNumbers;
use crate::StoreError;

/// One step of a transaction, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// Quads removed and added.
    pub changes: Changes,
    /// Named graphs that exist only while they have quads from then on.
    pub forget: Vec<TermId>,
    /// Named graphs that exist without quads, too, from then on.
    pub declare: Vec<TermId>,
}

impl Stage {
    /// True if nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.forget.is_empty() && self.declare.is_empty()
    }
}

/// The number of a vertex, and its key.
pub type NumberedKey = (u64, Box<[u8]>);

/// Terms that a transaction appended; literals and predicates in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewTerms {
    /// Numbers and keys of vertices.
    pub vertices: Vec<NumberedKey>,
    /// The number behind the last that a vertex has from then on, or that is set aside for one.
    pub numbers: u64,
    /// Keys of literals.
    pub literals: Vec<Box<[u8]>>,
    /// The vertices, old or new, that became predicates.
    pub predicates: Vec<TermId>,
}

impl NewTerms {
    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty() && self.literals.is_empty() && self.predicates.is_empty()
    }
}

/// What one transaction did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// The snapshot that it made.
    pub number: SnapshotNumber,
    /// Documents and updates seen after it.
    pub documents: u64,
    /// The numbers of terms that were given before it.
    pub known: GivenNumbers,
    /// Those that no quad had any more and that were forgotten, before it appended others.
    pub forgotten: Vec<TermId>,
    /// Those that it appended.
    pub terms: NewTerms,
    /// Its steps.
    pub stages: Vec<Stage>,
    /// What else is said with it, which means nothing to the store: it lasts, and reaches copies, as the rest does.
    pub beside: Box<[u8]>,
}

impl Transaction {
    /// True if it changes nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
            && self.forgotten.is_empty()
            && self.stages.iter().all(Stage::is_empty)
            && self.beside.is_empty()
    }
}

/// Why bytes are no transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransactionError {
    /// They end too early.
    #[error("a transaction ends in the middle")]
    Short,
    /// There are bytes behind it.
    #[error("bytes follow the end of a transaction")]
    Long,
    /// It was made beside other terms.
    #[error("a transaction does not follow from the terms before it")]
    Unrelated,
    /// Its snapshot comes before that of the transaction before it.
    #[error("a transaction makes the snapshot {}, and the one before it made {}", .made.0, .before.0)]
    Earlier {
        /// The snapshot that it says to make.
        made: SnapshotNumber,
        /// The snapshot before it.
        before: SnapshotNumber,
    },
    /// It names a term that nobody appended.
    #[error("a transaction names a term that is not known")]
    UnknownTerm,
}

impl Transaction {
    /// The transaction of these steps, between two snapshots of one generation.
    ///
    /// # Panics
    /// If they are not of one generation, or a number was given twice: nothing of that may be lasting.
    #[must_use]
    pub fn between(before: &Snapshot, after: &Snapshot, stages: Vec<Stage>) -> Self {
        assert!(
            before.is_of_generation_of(after),
            "a transaction stays in its generation"
        );
        let terms = after.terms_since(before.known_terms());
        assert!(before.are_new(&terms), "a number is given once");
        Self {
            number: after.number(),
            documents: after.documents(),
            known: before.known_terms().given(),
            forgotten: Vec::new(),
            terms,
            stages,
            beside: Box::default(),
        }
    }

    /// The transaction that leads from the base of a snapshot's generation to the snapshot.
    #[must_use]
    pub fn from_base(snapshot: &Snapshot) -> Self {
        Self {
            number: snapshot.number(),
            documents: snapshot.documents(),
            known: snapshot.base().term_counts().given(),
            forgotten: snapshot.forgotten_terms(),
            terms: snapshot.terms_since(snapshot.base().term_counts()),
            stages: vec![snapshot.all_changes()],
            beside: Box::default(),
        }
    }

    /// The same, which forgets no terms.
    pub(crate) fn without_forgotten(self) -> Self {
        Self {
            forgotten: Vec::new(),
            ..self
        }
    }

    /// The transaction that does nothing to a snapshot but to forget some terms.
    #[must_use]
    pub fn forgetting(snapshot: &Snapshot, forgotten: Vec<TermId>) -> Self {
        Self {
            forgotten,
            ..Self::between(snapshot, snapshot, Vec::new())
        }
    }

    /// Appends its bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let word = |out: &mut Vec<u8>, word: u64| out.extend_from_slice(&word.to_le_bytes());
        word(out, self.number.0);
        word(out, self.documents);
        word(out, self.known.vertices);
        word(out, self.known.literals);
        word(out, self.known.predicates);
        let ids = |out: &mut Vec<u8>, ids: &[TermId]| {
            word(out, ids.len() as u64);
            ids.iter().for_each(|id| word(out, id.raw()));
        };
        ids(out, &self.forgotten);
        let numbers = self.terms.vertices.iter().map(|(number, _)| *number);
        let runs = runs_of(numbers);
        word(out, runs.len() as u64);
        for (first, count) in runs {
            word(out, first);
            word(out, count);
        }
        word(out, self.terms.numbers);
        let key = |out: &mut Vec<u8>, key: &[u8]| {
            word(out, key.len() as u64);
            out.extend_from_slice(key);
        };
        word(out, self.terms.vertices.len() as u64);
        (self.terms.vertices.iter()).for_each(|(_, vertex)| key(out, vertex));
        word(out, self.terms.literals.len() as u64);
        (self.terms.literals.iter()).for_each(|literal| key(out, literal));
        ids(out, &self.terms.predicates);
        word(out, self.stages.len() as u64);
        for stage in &self.stages {
            for quads in [&stage.changes.remove, &stage.changes.add] {
                word(out, quads.len() as u64);
                for quad in quads {
                    word(out, quad.subject.raw());
                    word(out, quad.object.raw());
                    word(out, quad.graph.raw());
                    out.extend_from_slice(&quad.predicate.0.to_le_bytes());
                }
            }
            ids(out, &stage.forget);
            ids(out, &stage.declare);
        }
        Self::encode_beside(&self.beside, out);
    }

    /// Appends what is said with a transaction to the bytes of one that says nothing more.
    pub fn encode_beside(beside: &[u8], out: &mut Vec<u8>) {
        if !beside.is_empty() {
            out.extend_from_slice(&(beside.len() as u64).to_le_bytes());
            out.extend_from_slice(beside);
        }
    }

    /// The snapshot that the transaction of these bytes makes, if they have so much.
    #[must_use]
    pub fn number_of(bytes: &[u8]) -> Option<SnapshotNumber> {
        let word = bytes.first_chunk::<8>()?;
        Some(SnapshotNumber(u64::from_le_bytes(*word)))
    }

    /// The transaction of these bytes.
    ///
    /// # Errors
    /// [`TransactionError`]; never allocates more than a few times the bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, TransactionError> {
        let mut reader = Reader { rest: bytes };
        let number = SnapshotNumber(reader.word()?);
        let documents = reader.word()?;
        let known = GivenNumbers {
            vertices: reader.word()?,
            literals: reader.word()?,
            predicates: reader.word()?,
        };
        let forgotten = reader.ids()?;
        let runs = reader.runs()?;
        let numbers = reader.word()?;
        let terms = NewTerms {
            vertices: numbered(&runs, reader.keys()?)?,
            numbers,
            literals: reader.keys()?,
            predicates: reader.ids()?,
        };
        let count = reader.count(32)?;
        let mut stages = Vec::with_capacity(count);
        for _ in 0..count {
            stages.push(Stage {
                changes: Changes {
                    remove: reader.quads()?,
                    add: reader.quads()?,
                },
                forget: reader.ids()?,
                declare: reader.ids()?,
            });
        }
        let beside = match reader.rest {
            [] => Box::default(),
            _ => reader.beside()?,
        };
        if !reader.rest.is_empty() {
            return Err(TransactionError::Long);
        }
        Ok(Self {
            number,
            documents,
            known,
            forgotten,
            terms,
            stages,
            beside,
        })
    }
}

/// Numbers as runs of such as follow one another: the first of each, and how many.
fn runs_of(numbers: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            _ => runs.push((number, 1)),
        }
    }
    runs
}

/// Keys with the numbers of the runs, of which there are as many.
fn numbered(
    runs: &[(u64, u64)],
    keys: Vec<Box<[u8]>>,
) -> Result<Vec<NumberedKey>, TransactionError> {
    let counts = runs.iter().try_fold(0_u64, |sum, (first, count)| {
        first.checked_add(*count)?;
        sum.checked_add(*count)
    });
    if counts != Some(keys.len() as u64) {
        return Err(TransactionError::Unrelated);
    }
    let numbers = runs
        .iter()
        .flat_map(|(first, count)| *first..*first + *count);
    Ok(numbers.zip(keys).collect())
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], TransactionError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(TransactionError::Short)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn word(&mut self) -> Result<u64, TransactionError> {
        let bytes = self.bytes(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    }

    /// A number of things of `size` bytes at least, which must be there.
    fn count(&mut self, size: usize) -> Result<usize, TransactionError> {
        let count = usize::try_from(self.word()?).map_err(|_| TransactionError::Short)?;
        match count.checked_mul(size) {
            Some(bytes) if bytes <= self.rest.len() => Ok(count),
            _ => Err(TransactionError::Short),
        }
    }

    /// What is said beside the rest, of which there is something.
    fn beside(&mut self) -> Result<Box<[u8]>, TransactionError> {
        let count = self.count(1)?;
        match count {
            0 => Err(TransactionError::Long),
            _ => Ok(self.bytes(count)?.into()),
        }
    }

    fn runs(&mut self) -> Result<Vec<(u64, u64)>, TransactionError> {
        let count = self.count(16)?;
        (0..count)
            .map(|_| Ok((self.word()?, self.word()?)))
            .collect()
    }

    fn quads(&mut self) -> Result<Vec<IdQuad>, TransactionError> {
        let count = self.count(28)?;
        let mut quads = Vec::with_capacity(count);
        for _ in 0..count {
            let subject = TermId::from_raw(self.word()?);
            let object = TermId::from_raw(self.word()?);
            let graph = TermId::from_raw(self.word()?);
            let predicate = self.bytes(4)?.try_into().expect("four bytes");
            quads.push(IdQuad {
                subject,
                predicate: PredicateId(u32::from_le_bytes(predicate)),
                object,
                graph,
            });
        }
        Ok(quads)
    }

    fn keys(&mut self) -> Result<Vec<Box<[u8]>>, TransactionError> {
        let count = self.count(8)?;
        let mut keys = Vec::with_capacity(count);
        for _ in 0..count {
            let length = self.count(1)?;
            keys.push(self.bytes(length)?.into());
        }
        Ok(keys)
    }

    fn ids(&mut self) -> Result<Vec<TermId>, TransactionError> {
        let count = self.count(8)?;
        (0..count)
            .map(|_| self.word().map(TermId::from_raw))
            .collect()
    }
}

/// Applies transactions of a log to a snapshot, many at once.
pub struct Replay {
    snapshot: Snapshot,
    /// The last word on each quad since the last time these were applied.
    waiting: FxHashMap<IdQuad, Change>,
}

/// Quads that wait before they are applied together.
const REPLAYED_TOGETHER: usize = 1 << 16;

impl Replay {
    /// Goes on from a snapshot.
    #[must_use]
    pub fn new(snapshot: Snapshot) -> Self {
        Self {
            snapshot,
            waiting: FxHashMap::default(),
        }
    }

    /// Adds what a transaction did.
    ///
    /// # Errors
    /// [`TransactionError`] if it does not follow from those before it.
    pub fn add(&mut self, transaction: &Transaction) -> Result<(), ReplayError> {
        if transaction.known != self.snapshot.known_terms().given() {
            return Err(TransactionError::Unrelated.into());
        }
        let before = self.snapshot.number();
        // The same number is that of a checkpoint, which `CURRENT` names, or of a copy of a store.
        if transaction.number < before {
            let made = transaction.number;
            return Err(TransactionError::Earlier { made, before }.into());
        }
        self.snapshot.forget_terms(&transaction.forgotten);
        self.snapshot.append_terms(&transaction.terms)?;
        for stage in &transaction.stages {
            self.add_stage(stage)?;
        }
        self.snapshot.set_number(transaction.number);
        self.snapshot.set_documents(transaction.documents);
        Ok(())
    }

    fn add_stage(&mut self, stage: &Stage) -> Result<(), ReplayError> {
        let quads = stage.changes.remove.iter().chain(&stage.changes.add);
        let graphs = stage.forget.iter().chain(&stage.declare);
        let is_known = quads.clone().all(|quad| {
            let ids = [quad.subject, quad.object, quad.graph];
            ids.iter().all(|id| self.snapshot.knows(*id))
                && quad.predicate.index() < self.snapshot.predicate_count()
        });
        if !is_known || !graphs.clone().all(|id| self.snapshot.knows(*id)) {
            return Err(TransactionError::UnknownTerm.into());
        }
        for quad in &stage.changes.remove {
            self.waiting.insert(*quad, Change::Remove);
        }
        for quad in &stage.changes.add {
            self.waiting.insert(*quad, Change::Add);
        }
        self.snapshot.forget_graphs(&stage.forget);
        self.snapshot.declare_graphs(&stage.declare);
        if self.waiting.len() >= REPLAYED_TOGETHER {
            self.apply();
        }
        Ok(())
    }

    fn apply(&mut self) {
        let mut changes = Changes::default();
        for (quad, change) in self.waiting.drain() {
            match change {
                Change::Add => changes.add.push(quad),
                Change::Remove => changes.remove.push(quad),
            }
        }
        self.snapshot.apply(&changes);
    }

    /// The snapshot behind all transactions.
    #[must_use]
    pub fn finish(mut self) -> Snapshot {
        self.apply();
        self.snapshot
    }
}

/// Why a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// It holds something else than transactions that follow each other.
    #[error(transparent)]
    Transaction(#[from] TransactionError),
    /// See the error inside.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Brings steps that were made in a changed copy of a snapshot into other copies of it: which ids
/// do their new terms have there?
pub struct NewIds {
    /// Ids that this snapshot knows are the same on both sides.
    shared: Snapshot,
    /// The copy, which knows all terms of the steps.
    from: Snapshot,
    terms: FxHashMap<TermId, TermId>,
    /// Those found for the step at work.
    new: Vec<TermId>,
    predicates: FxHashMap<PredicateId, PredicateId>,
}

impl NewIds {
    /// For what was done in `from`, a changed copy of `shared`, and for snapshots that other changes
    /// led to from `shared`.
    ///
    /// # Panics
    /// If they are of different generations.
    #[must_use]
    pub fn beside(shared: Snapshot, from: Snapshot) -> Self {
        assert!(
            shared.is_of_generation_of(&from),
            "a copy stays in its generation"
        );
        Self {
            shared,
            from,
            terms: FxHashMap::default(),
            new: Vec::new(),
            predicates: FxHashMap::default(),
        }
    }

    /// A step in the ids of another snapshot, which gets the terms that it lacks, with numbers as
    /// [`Snapshot::arrange`] gives them.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] after 2^32 terms.
    pub fn stage(&mut self, stage: &Stage, to: &mut Snapshot) -> Result<Stage, StoreError> {
        let since = to.known_terms();
        let mut made = Stage {
            changes: Changes {
                remove: self.quads(&stage.changes.remove, to)?,
                add: self.quads(&stage.changes.add, to)?,
            },
            forget: self.graphs(&stage.forget, to)?,
            declare: self.graphs(&stage.declare, to)?,
        };
        let arranged = to.arranged(since, &mut made);
        for from in self.new.drain(..) {
            let id = self.terms.get_mut(&from).expect("it was found");
            *id = arranged.term(*id);
        }
        Ok(made)
    }

    fn quads(&mut self, quads: &[IdQuad], to: &mut Snapshot) -> Result<Vec<IdQuad>, StoreError> {
        quads
            .iter()
            .map(|quad| {
                Ok(IdQuad {
                    subject: self.term(quad.subject, to)?,
                    predicate: self.predicate(quad.predicate, to)?,
                    object: self.term(quad.object, to)?,
                    graph: self.term(quad.graph, to)?,
                })
            })
            .collect()
    }

    fn graphs(&mut self, graphs: &[TermId], to: &mut Snapshot) -> Result<Vec<TermId>, StoreError> {
        graphs.iter().map(|graph| self.term(*graph, to)).collect()
    }

    fn term(&mut self, id: TermId, to: &mut Snapshot) -> Result<TermId, StoreError> {
        use jindou_model::TermKind;
        let literal = match id.kind() {
            TermKind::Vertex => false,
            TermKind::Literal => true,
            _ => return Ok(id),
        };
        if self.shared.knows(id) {
            return Ok(id);
        }
        if let Some(known) = self.terms.get(&id) {
            return Ok(*known);
        }
        let mut key = Vec::new();
        self.from.push_key(id, &mut key);
        let new = if literal {
            to.intern_literal(&key)?
        } else {
            to.intern_node(&key)?
        };
        self.terms.insert(id, new);
        self.new.push(id);
        Ok(new)
    }

    fn predicate(&mut self, id: PredicateId, to: &mut Snapshot) -> Result<PredicateId, StoreError> {
        if id.index() < self.shared.predicate_count() {
            return Ok(id);
        }
        if let Some(known) = self.predicates.get(&id) {
            return Ok(*known);
        }
        let mut key = Vec::new();
        self.from.push_key(self.from.predicate_term(id), &mut key);
        let iri = std::str::from_utf8(&key).expect("predicates are IRIs, which are UTF-8");
        let new = to.intern_predicate(iri)?;
        self.predicates.insert(id, new);
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample() -> Transaction {
        let quad = |number: u64| IdQuad {
            subject: TermId::from_raw(number),
            predicate: PredicateId(number as u32),
            object: TermId::from_raw(number * 3),
            graph: TermId::NONE,
        };
        Transaction {
            number: SnapshotNumber(7),
            documents: 3,
            known: GivenNumbers {
                vertices: 1,
                literals: 2,
                predicates: 3,
            },
            forgotten: vec![TermId::literal(4)],
            terms: NewTerms {
                vertices: vec![
                    (9, b"http://a".as_slice().into()),
                    (10, b"_:b".as_slice().into()),
                    (3, b"http://c".as_slice().into()),
                ],
                numbers: 11,
                literals: vec![b"".as_slice().into()],
                predicates: vec![TermId::vertex(7)],
            },
            stages: vec![
                Stage::default(),
                Stage {
                    changes: Changes {
                        remove: vec![quad(1)],
                        add: vec![quad(2), quad(3)],
                    },
                    forget: vec![],
                    declare: vec![TermId::from_raw(9)],
                },
            ],
            beside: b"more".as_slice().into(),
        }
    }

    #[test]
    fn a_transaction_comes_back_and_no_part_of_it_is_one() {
        let mut bytes = Vec::new();
        sample().encode(&mut bytes);
        assert_eq!(Transaction::decode(&bytes), Ok(sample()));
        let mut alone = sample();
        alone.beside = Box::default();
        let mut bytes_alone = Vec::new();
        alone.encode(&mut bytes_alone);
        assert_eq!(Transaction::decode(&bytes_alone), Ok(alone));
        // What is said beside it comes last: without that it is whole.
        for end in (0..bytes.len()).filter(|end| *end != bytes_alone.len()) {
            assert_eq!(
                Transaction::decode(&bytes[..end]),
                Err(TransactionError::Short)
            );
        }
        bytes.push(0);
        assert_eq!(Transaction::decode(&bytes), Err(TransactionError::Long));
        bytes_alone.extend_from_slice(&0_u64.to_le_bytes());
        assert_eq!(
            Transaction::decode(&bytes_alone),
            Err(TransactionError::Long)
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(mut bytes: Vec<u8>, at: usize, with: u8) {
            let _ = Transaction::decode(&bytes);
            sample().encode(&mut bytes);
            let place = at % bytes.len();
            bytes[place] ^= with;
            let _ = Transaction::decode(&bytes);
        }
    }
}
