//! A table -> bytes.

use jindou_model::{TermId, TermKind};

use super::super::{COUNTS, Column, NUMBERS, OF_ROWS, Table};
use super::{
    ALIGNMENT, ENTRY_BYTES, HEADER_BYTES, MAGIC, OF_THE_ROWS, TERM_ENTRY_BYTES, VERSION,
    column_bytes, texts,
};
use crate::context::{Booked, Context};
use crate::{ExecError, Terms};

/// A table as bytes that mean the same elsewhere; they are reserved in the memory of the query
/// until this is dropped.
pub struct EncodedTable {
    bytes: Vec<u8>,
    _booked: Booked,
}

impl EncodedTable {
    /// The bytes, to be sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Table {
    /// The table as bytes that another process, or a device, can read: see [`Table::decode`].
    /// Computed terms in it are those of `terms`, and go along with their texts.
    ///
    /// Costs a copy of the columns, a sort of the computed ids, and a copy of the text of each.
    ///
    /// # Errors
    /// If the query `cx` has no memory for the bytes.
    ///
    /// # Panics
    /// If a computed term is not one of `terms`.
    pub fn encode(&self, terms: &Terms, cx: &Context) -> Result<EncodedTable, ExecError> {
        let computed_cells = self.id_columns().map(|ids| computed(ids).count());
        let _list = cx.reserve(computed_cells.sum::<usize>() * size_of::<TermId>())?;
        let computed = self.computed_ids();
        let columns = self.columns.iter().flatten();
        let columns: usize = columns.map(encoded_bytes).sum();
        // Keys take as many bytes as texts, datatypes and languages, or more; some are read at once.
        let keys = terms.computed_key_bytes(&computed);
        let _keys = cx.reserve(keys)?;
        let most = HEADER_BYTES + columns + computed.len() * TERM_ENTRY_BYTES + keys;
        let booked = cx.reserve(most)?;
        let mut bytes = Vec::with_capacity(most);
        self.push_header(terms, computed.len(), &mut bytes);
        for column in self.columns.iter().flatten() {
            push_column(column, &computed, &mut bytes);
            bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        }
        let texts = texts::write(&computed, terms, &mut bytes);
        let texts = texts.map_err(|why| cx.without_term(why))? as u64;
        bytes[HEADER_BYTES - size_of::<u64>()..HEADER_BYTES].copy_from_slice(&texts.to_le_bytes());
        debug_assert!(bytes.len() <= most, "no more was written than was reserved");
        Ok(EncodedTable {
            bytes,
            _booked: booked,
        })
    }

    fn id_columns(&self) -> impl Iterator<Item = &[TermId]> {
        self.columns.iter().flatten().filter_map(Column::ids)
    }

    /// The computed terms, each once, in the order of their ids.
    fn computed_ids(&self) -> Vec<TermId> {
        let mut ids: Vec<TermId> = self.id_columns().flat_map(computed).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The header, with no bytes of texts yet, and what says what the columns are.
    fn push_header(&self, terms: &Terms, computed: usize, out: &mut Vec<u8>) {
        let number = |count: usize| u32::try_from(count).expect("a batch has fewer than 2^32");
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&number(self.width()).to_le_bytes());
        out.extend_from_slice(&terms.epoch().0.to_le_bytes());
        out.extend_from_slice(&(self.rows as u64).to_le_bytes());
        let columns = self.columns.iter().flatten().count();
        out.extend_from_slice(&number(columns).to_le_bytes());
        out.extend_from_slice(&number(computed).to_le_bytes());
        out.extend_from_slice(&0_u64.to_le_bytes());
        for (place, column) in self.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            let variable = match place {
                COUNTS | NUMBERS => OF_THE_ROWS,
                place => number(place - OF_ROWS),
            };
            out.extend_from_slice(&variable.to_le_bytes());
            out.extend_from_slice(&(column.kind() as u32).to_le_bytes());
        }
    }
}

fn computed(ids: &[TermId]) -> impl Iterator<Item = TermId> + '_ {
    let all = ids.iter().copied();
    all.filter(|id| id.kind() == TermKind::Computed)
}

/// Bytes of a column and of what says what it is.
fn encoded_bytes(column: &Column) -> usize {
    let bytes = column_bytes(column.kind(), column.len());
    ENTRY_BYTES + bytes.expect("a column in memory has an address at each of its bytes")
}

fn push_column(column: &Column, computed: &[TermId], out: &mut Vec<u8>) {
    match column {
        Column::Ids(ids) if computed.is_empty() => push_words(ids, out, |id| id.raw()),
        Column::Ids(ids) => push_words(ids, out, |id| in_message(*id, computed).raw()),
        Column::Counts(numbers) | Column::Numbers(numbers) => {
            push_words(numbers, out, |number| *number);
        }
        Column::Rows(rows) => {
            let begin = out.len();
            out.resize(begin + size_of_val(rows.as_slice()), 0);
            let (cells, _) = out[begin..].as_chunks_mut();
            for (cell, row) in cells.iter_mut().zip(rows) {
                *cell = row.to_le_bytes();
            }
        }
    }
}

fn push_words<T>(values: &[T], out: &mut Vec<u8>, word: impl Fn(&T) -> u64) {
    let begin = out.len();
    out.resize(begin + size_of_val(values), 0);
    let (cells, _) = out[begin..].as_chunks_mut();
    for (cell, value) in cells.iter_mut().zip(values) {
        *cell = word(value).to_le_bytes();
    }
}

/// The id that a term has in the message.
fn in_message(id: TermId, computed: &[TermId]) -> TermId {
    match id.kind() {
        TermKind::Computed => {
            let place = computed.binary_search(&id).expect("each of them is listed");
            TermId::new(TermKind::Computed, place as u64)
        }
        _ => id,
    }
}
