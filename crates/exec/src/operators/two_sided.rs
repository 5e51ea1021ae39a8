//! What joins and MINUS have in common: one side is kept in memory, the other streams past it.
//!
//! If the kept side does not fit, the rows of both sides are put into parts on disk by the hash of
//! their keys, and rows of equal keys meet part by part; a part that is still too large is put
//! into smaller parts. Where that does not help, because too many rows have the same key or there
//! is none, the kept rows of a part are taken some at a time, and for each time the part's
//! streaming rows are read again.

use std::sync::Arc;

use jindou_model::TermId;
use jindou_plan::physical::Var;

use super::kept::Place;
use super::kept_side::KeptSide;
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::rows::hash_row;
use crate::spill::{MOST_LEVELS, Partitions, Run, RunReader, batch_rows, push_values};
use crate::table::{Table, VarSet};

/// The rows that are kept in memory.
pub(super) trait KeptRows: Send + Sync + 'static {
    /// Takes some more rows. All must be in before rows stream past.
    fn add(&mut self, table: &Table);

    /// Bytes at most after it took these rows, what finds them among the others included.
    fn bytes_with(&self, table: &Table) -> usize;

    /// True if the rows could not be numbered.
    fn is_full(&self, table: &Table) -> bool;

    fn is_empty(&self) -> bool;

    /// Gives some of the rows back; `None` if there are no more.
    fn pop(&mut self) -> Option<Table>;

    /// Lets go of all rows.
    fn clear(&mut self);
}

/// What becomes of the rows that stream past.
pub(super) trait Side: Send {
    type Kept: KeptRows;

    /// What keeps no row yet.
    fn empty(&self) -> Self::Kept;

    /// Goes on with a table of the streaming side; gives what was joined.
    fn probe(
        &mut self,
        kept: &KeptSide<Self::Kept>,
        probe: &mut Probe,
        cx: &Context,
    ) -> Result<Option<Table>, ExecError>;
}

/// A table of the streaming side and how far it has come.
pub(super) struct Probe {
    pub(super) table: Table,
    pub(super) place: Place,
    /// Which rows have met one of the kept side.
    pub(super) met: Vec<bool>,
}

impl Probe {
    fn new(table: Table) -> Self {
        Self {
            met: vec![false; table.rows()],
            table,
            place: Place::default(),
        }
    }
}

/// Joins two sides.
pub(super) struct TwoSided<S: Side> {
    kept: Arc<KeptSide<S::Kept>>,
    input: Boxed,
    side: S,
    keep: VarSet,
    phase: Phase,
}

enum Phase {
    /// Nothing was read.
    Start,
    /// The kept side is in memory; the table in work streams past it.
    InMemory(Option<Probe>),
    /// Both sides are on disk.
    OnDisk(Box<OnDisk>),
}

/// Parts of both sides.
#[derive(Default)]
struct OnDisk {
    parts: Vec<Part>,
    current: Option<Current>,
}

/// The rows of both sides that have keys of some hashes.
struct Part {
    kept: Run,
    streaming: Run,
    /// How often the rows were put into parts.
    level: u32,
    /// The last time all kept rows came into one part.
    is_stuck: bool,
}

/// A part in work.
struct Current {
    streaming: Run,
    /// The kept rows that were not taken yet: a table, and what follows it.
    waiting: Option<Table>,
    kept: RunReader,
    reader: RunReader,
    probe: Option<Probe>,
    /// Where there are kept rows that were not taken: which streaming rows have met one.
    met: Option<Vec<u64>>,
    /// Streaming rows before the table in work.
    before: usize,
}

impl<S: Side> TwoSided<S> {
    /// Rows of `input` that meet nothing are handed over too if it is a `left` join.
    pub(super) fn new(
        kept_input: Boxed,
        input: Boxed,
        side: S,
        keys: &[Var],
        left: bool,
        keep: VarSet,
        cx: &Context,
    ) -> Self {
        let kept = KeptSide::new(kept_input, side.empty(), (keys, left), cx);
        Self::past(Arc::new(kept), input, side, keep)
    }

    /// Of rows that stream past those of a side that others may read as well.
    pub(super) fn past(kept: Arc<KeptSide<S::Kept>>, input: Boxed, side: S, keep: VarSet) -> Self {
        Self {
            kept,
            input,
            side,
            keep,
            phase: Phase::Start,
        }
    }

    /// Reads the kept side, into memory if it fits there.
    fn start(&mut self, cx: &Context) -> Result<Phase, ExecError> {
        self.kept.read(cx)?;
        let Some(kept) = self.kept.take_parts() else {
            return Ok(Phase::InMemory(None));
        };
        let mut streaming: Option<Partitions> = None;
        while let Some(table) = self.input.next(cx)? {
            cx.check()?;
            let parts = match &mut streaming {
                Some(parts) => parts,
                None => streaming.insert(Partitions::new(cx, 0, batch_rows(cx, table.width()))?),
            };
            put_into_parts(parts, &self.kept.keys, &table)?;
        }
        let mut on_disk = OnDisk::default();
        if let Some(streaming) = streaming {
            on_disk.push(kept, streaming.finish()?, 1, self.kept.left);
        }
        Ok(Phase::OnDisk(Box::new(on_disk)))
    }

    /// Begins with the next part; false at the end.
    fn next_part(&mut self, on_disk: &mut OnDisk, cx: &Context) -> Result<bool, ExecError> {
        while let Some(part) = on_disk.parts.pop() {
            self.kept.clear(cx)?;
            let mut kept = part.kept.reader();
            let waiting = self.kept.take_rows(None, &mut kept, cx)?;
            if waiting.is_some() && part.level < MOST_LEVELS && !part.is_stuck {
                self.divide(&part, on_disk, cx)?;
                continue;
            }
            on_disk.current = Some(Current {
                met: waiting
                    .is_some()
                    .then(|| vec![0; (part.streaming.rows() as usize).div_ceil(64)]),
                reader: part.streaming.reader(),
                streaming: part.streaming,
                waiting,
                kept,
                probe: None,
                before: 0,
            });
            return Ok(true);
        }
        Ok(false)
    }

    /// Puts the rows of a part into smaller parts.
    fn divide(&mut self, part: &Part, on_disk: &mut OnDisk, cx: &Context) -> Result<(), ExecError> {
        self.kept.clear(cx)?;
        let mut sides = Vec::with_capacity(2);
        for run in [&part.kept, &part.streaming] {
            let mut reader = run.reader();
            let mut parts: Option<Partitions> = None;
            while let Some(table) = reader.next(cx)? {
                let parts = match &mut parts {
                    Some(parts) => parts,
                    None => parts.insert(Partitions::new(
                        cx,
                        part.level,
                        batch_rows(cx, table.width()),
                    )?),
                };
                put_into_parts(parts, &self.kept.keys, &table)?;
            }
            match parts {
                Some(parts) => sides.push(parts.finish()?),
                // No streaming rows: nothing to join.
                None => return Ok(()),
            }
        }
        if let (Some(streaming), Some(kept)) = (sides.pop(), sides.pop()) {
            on_disk.push(kept, streaming, part.level + 1, self.kept.left);
        }
        Ok(())
    }

    /// Some more rows of the part in work; `None` if it is done.
    fn advance(&mut self, current: &mut Current, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            cx.check()?;
            let mut probe = match current.probe.take() {
                Some(probe) => probe,
                None => match current.next_probe(cx)? {
                    Some(probe) => probe,
                    None if current.waiting.is_none() => return Ok(None),
                    None => {
                        self.next_rows(current, cx)?;
                        continue;
                    }
                },
            };
            let joined = self.side.probe(&self.kept, &mut probe, cx)?;
            let rest = if probe.place.row < probe.table.rows() {
                current.probe = Some(probe);
                None
            } else {
                let is_last = current.waiting.is_none();
                current.end_probe(&probe);
                (self.kept.left && is_last)
                    .then(|| unmet(probe, &self.keep))
                    .flatten()
            };
            if let Some(table) = both(joined, rest) {
                return Ok(Some(table));
            }
        }
    }

    /// Lets the streaming rows of a part pass the next of its kept rows.
    fn next_rows(&mut self, current: &mut Current, cx: &Context) -> Result<(), ExecError> {
        self.kept.clear(cx)?;
        let first = current.waiting.take();
        current.waiting = self.kept.take_rows(first, &mut current.kept, cx)?;
        current.reader = current.streaming.reader();
        current.before = 0;
        Ok(())
    }

    fn next_in_memory(
        &mut self,
        current: &mut Option<Probe>,
        cx: &Context,
    ) -> Result<Option<Table>, ExecError> {
        if self.kept.meets_nothing() {
            // Nothing streaming can find anything.
            return Ok(None);
        }
        loop {
            cx.check()?;
            let mut probe = match current.take() {
                Some(probe) => probe,
                None => match self.input.next(cx)? {
                    Some(table) => Probe::new(table),
                    None => return Ok(None),
                },
            };
            let joined = self.side.probe(&self.kept, &mut probe, cx)?;
            let rest = if probe.place.row < probe.table.rows() {
                *current = Some(probe);
                None
            } else if self.kept.left {
                unmet(probe, &self.keep)
            } else {
                None
            };
            if let Some(table) = both(joined, rest) {
                return Ok(Some(table));
            }
        }
    }

    fn next_on_disk(
        &mut self,
        on_disk: &mut OnDisk,
        cx: &Context,
    ) -> Result<Option<Table>, ExecError> {
        loop {
            if let Some(current) = &mut on_disk.current {
                if let Some(table) = self.advance(current, cx)? {
                    return Ok(Some(table));
                }
                on_disk.current = None;
            }
            if !self.next_part(on_disk, cx)? {
                self.kept.clear(cx)?;
                return Ok(None);
            }
        }
    }
}

impl OnDisk {
    /// Adds the parts that have something to join, or to hand over.
    fn push(&mut self, kept: Vec<Run>, streaming: Vec<Run>, level: u32, left: bool) {
        let all: u64 = kept.iter().map(Run::rows).sum();
        for (kept, streaming) in kept.into_iter().zip(streaming) {
            if streaming.rows() > 0 && (left || kept.rows() > 0) {
                self.parts.push(Part {
                    is_stuck: kept.rows() == all,
                    kept,
                    streaming,
                    level,
                });
            }
        }
    }
}

impl Current {
    fn next_probe(&mut self, cx: &Context) -> Result<Option<Probe>, ExecError> {
        let Some(table) = self.reader.next(cx)? else {
            return Ok(None);
        };
        let mut probe = Probe::new(table);
        if let Some(met) = &self.met {
            for (row, is_met) in probe.met.iter_mut().enumerate() {
                let row = self.before + row;
                *is_met = met[row / 64] & (1 << (row % 64)) != 0;
            }
        }
        Ok(Some(probe))
    }

    /// Remembers which rows of a table have met something.
    fn end_probe(&mut self, probe: &Probe) {
        if let Some(met) = &mut self.met {
            for (row, _) in probe.met.iter().enumerate().filter(|(_, met)| **met) {
                let row = self.before + row;
                met[row / 64] |= 1 << (row % 64);
            }
        }
        self.before += probe.table.rows();
    }
}

pub(super) fn put_into_parts(
    parts: &mut Partitions,
    keys: &[Var],
    table: &Table,
) -> Result<(), ExecError> {
    let mut values: Vec<TermId> = Vec::with_capacity(keys.len());
    parts.push(table, 0..table.rows() as u32, |row| {
        push_values(keys, table, row, &mut values);
        hash_row(&values)
    })
}

fn both(joined: Option<Table>, rest: Option<Table>) -> Option<Table> {
    match (joined, rest) {
        (Some(mut joined), Some(rest)) => {
            joined.append(&rest);
            Some(joined)
        }
        (joined, rest) => joined.or(rest),
    }
}

/// The streaming rows that met nothing.
fn unmet(probe: Probe, keep: &VarSet) -> Option<Table> {
    let mut table = probe.table;
    let rows: Vec<u32> = (0..table.rows() as u32)
        .filter(|row| !probe.met[*row as usize])
        .collect();
    table.retain_columns(keep);
    table.retain_rows(&rows);
    (!rows.is_empty()).then_some(table)
}

impl<S: Side> Operator for TwoSided<S> {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let mut phase = match std::mem::replace(&mut self.phase, Phase::Start) {
            Phase::Start => self.start(cx)?,
            begun => begun,
        };
        let next = match &mut phase {
            Phase::InMemory(current) => self.next_in_memory(current, cx),
            Phase::OnDisk(on_disk) => self.next_on_disk(on_disk, cx),
            Phase::Start => unreachable!("it was started above"),
        };
        self.phase = phase;
        next
    }
}
