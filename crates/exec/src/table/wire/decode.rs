//! Bytes -> a table. They may come from anywhere: nothing that they say is taken for granted.

use jindou_model::{IdEpoch, TermId, TermKind};

use super::super::{COUNTS, Column, ColumnKind, NUMBERS, OF_ROWS, Table};
use super::{
    ENTRY_BYTES, MAGIC, OF_THE_ROWS, TERM_ENTRY_BYTES, VERSION, WireError, column_bytes, texts,
};
use crate::context::Context;
use crate::terms::TERM_BYTES;
use crate::{ExecError, Terms};

/// Rows of a table at most: each has a number of 32 bits.
const MOST_ROWS: u64 = u32::MAX as u64;
/// Variables of a table at most: each has a number of 16 bits.
const MOST_VARIABLES: u64 = 1 << u16::BITS;

impl Table {
    /// The table that [`Table::encode`] made these bytes of, here or elsewhere. Its computed terms
    /// are looked for, and if need be put, among `terms` by their texts.
    ///
    /// That terms of the dictionary are known here is checked, and that all other ids are some
    /// term's; [`Column::Rows`] are not, as only who asked for them knows how many there were.
    ///
    /// # Errors
    /// [`ExecError::Wire`] for bytes that are no table, or none of this epoch of ids; what the
    /// query `cx` ends for if it has no memory for the table.
    pub fn decode(bytes: &[u8], terms: &Terms, cx: &Context) -> Result<Self, ExecError> {
        let layout = Layout::read(bytes, terms.epoch())?;
        let _held = cx.reserve(layout.bytes_needed())?;
        let computed = texts::read(layout.terms, layout.texts)?.intern(terms);
        let computed = computed.map_err(|why| cx.without_term(why))?;
        cx.check_computed()?;
        let mut table = Self::with_rows(layout.width, layout.rows);
        for (number, described) in layout.columns.iter().enumerate() {
            let column = described.read(number, &computed, terms)?;
            let place = place_of(number, &column, described.variable, &table)?;
            table.columns[place] = Some(column);
        }
        cx.book_table(&mut table)?;
        Ok(table)
    }
}

/// Where a column lies in a table.
fn place_of(
    number: usize,
    column: &Column,
    variable: u32,
    table: &Table,
) -> Result<usize, WireError> {
    let kind = column.kind();
    let place = match (variable, kind) {
        (OF_THE_ROWS, ColumnKind::Counts) => COUNTS,
        (OF_THE_ROWS, ColumnKind::Numbers) => NUMBERS,
        (OF_THE_ROWS, kind) => {
            return Err(WireError::OfRows {
                column: number,
                kind,
            });
        }
        (variable, _) => OF_ROWS + variable as usize,
    };
    match (table.columns.get(place), variable) {
        (Some(None), _) => Ok(place),
        (_, OF_THE_ROWS) => Err(WireError::OfRows {
            column: number,
            kind,
        }),
        _ => Err(WireError::Variable {
            column: number,
            variable,
        }),
    }
}

/// What bytes say that they are; all of it lies within them.
struct Layout<'a> {
    width: usize,
    rows: usize,
    columns: Vec<Described<'a>>,
    terms: &'a [[u8; TERM_ENTRY_BYTES]],
    texts: &'a [u8],
}

/// A column that was not looked into yet.
struct Described<'a> {
    variable: u32,
    kind: ColumnKind,
    values: &'a [u8],
}

impl<'a> Layout<'a> {
    fn read(bytes: &'a [u8], ours: IdEpoch) -> Result<Self, WireError> {
        let mut rest = Rest {
            bytes,
            end: bytes.len(),
        };
        let found = rest.array("the header")?;
        if found != MAGIC {
            return Err(WireError::NoTable { found });
        }
        let found = rest.u32("the header")?;
        if found != VERSION {
            let known = VERSION;
            return Err(WireError::Version { found, known });
        }
        let width = at_most("variables", rest.u32("the header")?.into(), MOST_VARIABLES)?;
        let theirs = IdEpoch(rest.u64("the header")?);
        if theirs != ours {
            return Err(WireError::Epoch { theirs, ours });
        }
        let rows = at_most("rows", rest.u64("the header")?, MOST_ROWS)?;
        let most = OF_ROWS as u64 + width as u64;
        let columns = at_most("columns", rest.u32("the header")?.into(), most)?;
        let terms = rest.u32("the header")? as usize;
        let texts = rest.u64("the header")?;
        let columns = rest.columns(columns, rows)?;
        let terms = rest.take("the terms", terms.checked_mul(TERM_ENTRY_BYTES))?;
        let (terms, _) = terms.as_chunks();
        let texts = rest.take("the texts", usize::try_from(texts).ok())?;
        match rest.bytes.len() {
            0 => Ok(Self {
                width,
                rows,
                columns,
                terms,
                texts,
            }),
            bytes => Err(WireError::TooLong { bytes }),
        }
    }

    /// Bytes of the table, of its computed terms, and of the list of these, at most.
    fn bytes_needed(&self) -> usize {
        let columns = self.columns.iter().map(|column| column.values.len());
        let places = (OF_ROWS + self.width) * size_of::<Option<Column>>();
        let of_terms = self.terms.len() * (TERM_BYTES + size_of::<TermId>());
        columns.sum::<usize>() + places + of_terms + 2 * self.texts.len()
    }
}

impl Described<'_> {
    fn read(&self, column: usize, computed: &[TermId], terms: &Terms) -> Result<Column, WireError> {
        let (words, _) = self.values.as_chunks();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        Ok(match self.kind {
            ColumnKind::Ids => {
                let ids = words.enumerate().map(|(row, raw)| {
                    let id = known_id(TermId::from_raw(raw), computed, terms);
                    let id_error = WireError::Id {
                        column,
                        row,
                        id: raw,
                    };
                    id.ok_or(id_error)
                });
                Column::Ids(collect(ids, self.values.len())?)
            }
            ColumnKind::Counts => {
                let counts: Vec<u64> = words.collect();
                let sum = counts.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
                sum.ok_or(WireError::Counts { column })?;
                Column::Counts(counts)
            }
            ColumnKind::Numbers => Column::Numbers(words.collect()),
            ColumnKind::Rows => {
                let (rows, _) = self.values.as_chunks();
                Column::Rows(rows.iter().map(|row| u32::from_le_bytes(*row)).collect())
            }
        })
    }
}

/// The ids of a column of so many bytes. Its room is made at once: that is what was reserved.
fn collect(
    ids: impl Iterator<Item = Result<TermId, WireError>>,
    bytes: usize,
) -> Result<Vec<TermId>, WireError> {
    let mut all = Vec::with_capacity(bytes / size_of::<TermId>());
    for id in ids {
        all.push(id?);
    }
    Ok(all)
}

/// The id here of what has this one in a message; `None` if it is no term's.
fn known_id(id: TermId, computed: &[TermId], terms: &Terms) -> Option<TermId> {
    match id.kind() {
        TermKind::Computed => {
            let place = usize::try_from(id.payload()).ok()?;
            computed.get(place).copied()
        }
        _ => terms.has(id).then_some(id),
    }
}

fn at_most(part: &'static str, found: u64, most: u64) -> Result<usize, WireError> {
    let too_many = WireError::TooMany { part, found, most };
    match usize::try_from(found) {
        Ok(count) if found <= most => Ok(count),
        _ => Err(too_many),
    }
}

/// What was not read yet.
struct Rest<'a> {
    bytes: &'a [u8],
    /// Bytes that there are in all.
    end: usize,
}

impl<'a> Rest<'a> {
    /// So many bytes; `None` stands for more than there can be.
    fn take(&mut self, part: &'static str, count: Option<usize>) -> Result<&'a [u8], WireError> {
        let split = count.and_then(|count| self.bytes.split_at_checked(count));
        let end = self.end;
        let (taken, rest) = split.ok_or(WireError::Truncated { part, end })?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, part: &'static str) -> Result<[u8; N], WireError> {
        let taken = self.take(part, Some(N))?;
        Ok(taken.try_into().expect("as many bytes were taken"))
    }

    fn u32(&mut self, part: &'static str) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array(part)?))
    }

    fn u64(&mut self, part: &'static str) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array(part)?))
    }

    /// The columns of so many rows.
    fn columns(&mut self, count: usize, rows: usize) -> Result<Vec<Described<'a>>, WireError> {
        let part = "the kinds of columns";
        let kinds = self.take(part, count.checked_mul(ENTRY_BYTES))?;
        let mut kinds = Rest {
            bytes: kinds,
            end: self.end,
        };
        let mut columns = Vec::with_capacity(count);
        for column in 0..count {
            let variable = kinds.u32(part)?;
            let number = kinds.u32(part)?;
            let kind = ColumnKind::from_number(number);
            let unknown = WireError::ColumnKind {
                column,
                kind: number,
            };
            let kind = kind.ok_or(unknown)?;
            let values = self.take("the columns", column_bytes(kind, rows))?;
            let exact = rows * kind.value_bytes();
            columns.push(Described {
                variable,
                kind,
                values: &values[..exact],
            });
        }
        Ok(columns)
    }
}
