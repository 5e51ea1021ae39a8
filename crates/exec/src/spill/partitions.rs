//! Which rows can be looked at apart from all others? Those whose keys have another hash.

use jindou_model::TermId;

use super::file::{Chunk, Run, SpillFile};
use crate::ExecError;
use crate::context::Context;
use crate::table::Table;

/// Parts that rows are put into at once.
pub(crate) const PARTS: usize = 16;
/// Parts are put into parts again so often at most; each time fewer rows are left in each.
pub(crate) const MOST_LEVELS: u32 = 12;

/// Rows in parts by the hash of their keys, in one file.
pub(crate) struct Partitions {
    file: SpillFile,
    level: u32,
    parts: Vec<Part>,
    batch_rows: usize,
}

#[derive(Default)]
struct Part {
    waiting: Table,
    chunks: Vec<Chunk>,
    rows: u64,
    /// Rows of the batch in work.
    chosen: Vec<u32>,
}

impl Partitions {
    /// No rows yet. Each level puts the same keys into other parts.
    pub(crate) fn new(cx: &Context, level: u32, batch_rows: usize) -> Result<Self, ExecError> {
        Ok(Self {
            file: SpillFile::create(cx)?,
            level,
            parts: (0..PARTS).map(|_| Part::default()).collect(),
            batch_rows,
        })
    }

    /// Adds the given rows of a table; `hash` is that of a row's keys.
    pub(crate) fn push(
        &mut self,
        table: &Table,
        rows: impl Iterator<Item = u32>,
        mut hash: impl FnMut(usize) -> u64,
    ) -> Result<(), ExecError> {
        for row in rows {
            let part = part_of(hash(row as usize), self.level);
            self.parts[part].chosen.push(row);
        }
        for part in &mut self.parts {
            if part.chosen.is_empty() {
                continue;
            }
            if part.waiting.rows() == 0 {
                part.waiting = Table::with_rows(table.width(), 0);
            }
            part.waiting.append_rows(table, &part.chosen);
            part.rows += part.chosen.len() as u64;
            part.chosen.clear();
            if part.waiting.rows() >= self.batch_rows {
                part.chunks.push(self.file.append(&part.waiting)?);
                part.waiting = Table::default();
            }
        }
        Ok(())
    }

    /// All parts, the empty ones too.
    pub(crate) fn finish(mut self) -> Result<Vec<Run>, ExecError> {
        for part in &mut self.parts {
            if part.waiting.rows() > 0 {
                part.chunks.push(self.file.append(&part.waiting)?);
                part.waiting = Table::default();
            }
        }
        let file = self.file.seal()?;
        let run = |part: Part| Run::new(&file, part.chunks, part.rows);
        Ok(self.parts.into_iter().map(run).collect())
    }
}

/// The part of a hash: at each level another mixture of its bits.
fn part_of(hash: u64, level: u32) -> usize {
    let mut mixed = hash ^ u64::from(level + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed >> (u64::BITS - PARTS.ilog2())) as usize
}

/// The values of a row's keys, one after the other in `out`.
pub(crate) fn push_values(
    vars: &[jindou_plan::physical::Var],
    table: &Table,
    row: usize,
    out: &mut Vec<TermId>,
) {
    out.clear();
    out.extend(vars.iter().map(|var| table.value(*var, row)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_puts_the_keys_of_one_part_into_all_parts() {
        let hash = |key: u64| crate::rows::hash_row(&[TermId::from_raw(key)]);
        for level in 0..MOST_LEVELS {
            let mut counts = [0; PARTS];
            (0..64_000_u64)
                .map(hash)
                .filter(|hash| level == 0 || part_of(*hash, level - 1) == 3)
                .for_each(|hash| counts[part_of(hash, level)] += 1);
            let all: usize = counts.iter().sum();
            let even = all / PARTS;
            assert!(
                counts
                    .iter()
                    .all(|count| (even / 2..2 * even).contains(count)),
                "level {level}: {counts:?}"
            );
        }
    }
}
