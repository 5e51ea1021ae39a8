//! How do the strings of several term tables become one table in the order of their bytes?
//!
//! A table in that order is one sorted source. The rows of another table are divided into parts of
//! a bounded size, and each part, sorted by its strings, is a source, too: a list of rows, whose
//! strings stay where they are. Strings that are sampled from all sources divide the result into
//! pieces, and each piece is merged and encoded by itself, in parallel. The bytes are the same as
//! if the strings had been sorted and given to a builder.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use rayon::prelude::*;

use crate::block::BLOCK;
use crate::build::{self, Run, RunBuilder};
use crate::decoder::Decoder;
use crate::error::DictionaryError;
use crate::index::Parts;
use crate::numbers::NumbersView;
use crate::table::StringTable;
use crate::term_table::{TermTable, test_count};

/// Strings of a piece, about: fewer make splitting costly, more leave processors idle.
const PIECE: usize = 1 << 16;
/// The most pieces, about: each costs a binary search in all sources.
const PIECES: usize = 1 << 10;
/// Rows that are sorted together, at the most.
const SORTED_ROWS: u64 = 1 << 20;
/// Bytes of strings that are sorted together, but for the last one.
const SORTED_BYTES: usize = 64 << 20;

/// Rows of one table in the order of their strings.
struct Source<'a> {
    table: &'a TermTable,
    /// The first row that may be among them.
    first: u64,
    /// The rows less the first one.
    rows: Vec<u32>,
    /// Whether these rows ascend, so that neighbours lie in one block.
    is_ascending: bool,
}

impl<'a> Source<'a> {
    fn row(&self, at: usize) -> u64 {
        self.first + u64::from(self.rows[at])
    }

    /// Where the first string lies that is not less than `string`.
    fn lower_bound(&self, string: &[u8]) -> Result<usize, DictionaryError> {
        let (mut start, mut end) = (0, self.rows.len());
        let mut text = Vec::new();
        while start < end {
            let middle = start.midpoint(end);
            text.clear();
            self.table.strings().extract(self.row(middle), &mut text)?;
            if text.as_slice() < string {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        Ok(start)
    }
}

/// The strings of all tables whose number is to be kept, by text, and their numbers in the same
/// order, in pieces.
pub(crate) fn merge<K>(
    tables: &[&TermTable],
    keep: &K,
) -> Result<(StringTable, Vec<Vec<u64>>), DictionaryError>
where
    K: Fn(u64) -> bool + Sync,
{
    let mut sources = Vec::new();
    for table in tables {
        if table.is_text_ordered() {
            sources.push(ordered_source(table, keep)?);
        } else {
            sources.append(&mut sorted_sources(table, keep)?);
        }
    }
    let total: usize = sources.iter().map(|source| source.rows.len()).sum();
    test_count(total as u64)?;
    let parts = build::parts_for(total as u64)?;
    let pieces = cuts(&sources, total)?
        .par_windows(2)
        .map(|cuts| merge_piece(&sources, &cuts[0], &cuts[1], parts))
        .collect::<Result<Vec<_>, _>>()?;
    drop(sources);
    let (runs, numbers): (Vec<Run>, Vec<Vec<u64>>) = pieces.into_iter().unzip();
    let region = build::assemble(total as u64, Some(parts), runs)?;
    Ok((StringTable::open(region)?, numbers))
}

/// The source of a table whose rows are in the order of their strings.
fn ordered_source<'a, K>(table: &'a TermTable, keep: &K) -> Result<Source<'a>, DictionaryError>
where
    K: Fn(u64) -> bool + Sync,
{
    let view = table.numbers_view();
    let rows = (0..table.len() as u32)
        .into_par_iter()
        .map(|row| Ok((row, number_at(&view, u64::from(row))?)))
        .filter_map(|row| match row {
            Ok((row, number)) => keep(number).then_some(Ok(row)),
            Err(error) => Some(Err(error)),
        });
    Ok(Source {
        table,
        first: 0,
        rows: rows.collect::<Result<_, _>>()?,
        is_ascending: true,
    })
}

/// The sources of a table whose rows are in any order.
fn sorted_sources<'a, K>(table: &'a TermTable, keep: &K) -> Result<Vec<Source<'a>>, DictionaryError>
where
    K: Fn(u64) -> bool + Sync,
{
    let sources: Vec<Vec<Source<'a>>> = (0..table.len().div_ceil(SORTED_ROWS))
        .into_par_iter()
        .map(|part| {
            let first = part * SORTED_ROWS;
            sort_rows(table, first, table.len().min(first + SORTED_ROWS), keep)
        })
        .collect::<Result<_, _>>()?;
    Ok(sources.into_iter().flatten().collect())
}

/// The sources of the rows from `first` to before `end`.
fn sort_rows<'a, K>(
    table: &'a TermTable,
    first: u64,
    end: u64,
    keep: &K,
) -> Result<Vec<Source<'a>>, DictionaryError>
where
    K: Fn(u64) -> bool,
{
    let view = table.numbers_view();
    let mut decoder = table.strings().decoder();
    let mut sources = Vec::new();
    let (mut text, mut entries) = (Vec::new(), Vec::new());
    for row in first..end {
        if keep(number_at(&view, row)?) {
            let start = text.len();
            decoder.push(row, &mut text)?;
            entries.push((start..text.len(), (row - first) as u32));
        }
        if !entries.is_empty() && (text.len() >= SORTED_BYTES || row + 1 == end) {
            entries.sort_unstable_by(|a, b| text[a.0.clone()].cmp(&text[b.0.clone()]));
            sources.push(Source {
                table,
                first,
                rows: entries.iter().map(|(_, row)| *row).collect(),
                is_ascending: false,
            });
            text.clear();
            entries.clear();
        }
    }
    Ok(sources)
}

fn number_at(view: &NumbersView<'_>, row: u64) -> Result<u64, DictionaryError> {
    let what = "a row has no number";
    view.number_at(row).ok_or(DictionaryError::Damaged { what })
}

/// A place between two strings of the result.
struct Cut {
    /// Where the later strings begin in each source.
    starts: Vec<usize>,
    /// How many earlier strings there are in all sources.
    rank: u64,
}

impl Cut {
    fn new(starts: Vec<usize>) -> Self {
        let rank = starts.iter().map(|start| *start as u64).sum();
        Self { starts, rank }
    }

    /// The end of the last block of `total` strings that begins before the cut: pieces meet there,
    /// so that each block belongs to one piece.
    fn block_end(&self, total: u64) -> u64 {
        self.rank.next_multiple_of(BLOCK as u64).min(total)
    }
}

/// The cuts between pieces, and those before the first string and after the last one.
fn cuts(sources: &[Source<'_>], total: usize) -> Result<Vec<Cut>, DictionaryError> {
    let step = PIECE.max(total / PIECES);
    let mut samples = Vec::new();
    for source in sources {
        for at in (step..source.rows.len()).step_by(step) {
            let mut text = Vec::new();
            source.table.strings().extract(source.row(at), &mut text)?;
            samples.push(text);
        }
    }
    samples.par_sort_unstable();
    let starts = |sample: &Vec<u8>| {
        let starts = sources.iter().map(|source| source.lower_bound(sample));
        starts.collect::<Result<Vec<usize>, _>>()
    };
    let between: Vec<Cut> = samples
        .par_iter()
        .map(|sample| starts(sample).map(Cut::new))
        .collect::<Result<_, _>>()?;
    let mut cuts = vec![Cut::new(vec![0; sources.len()])];
    cuts.extend(between);
    let ends = sources.iter().map(|source| source.rows.len());
    cuts.push(Cut::new(ends.collect()));
    if !cuts.is_sorted_by(|a, b| a.starts.iter().zip(&b.starts).all(|(a, b)| a <= b)) {
        return Err(OUT_OF_ORDER);
    }
    Ok(cuts)
}

const OUT_OF_ORDER: DictionaryError = DictionaryError::Damaged {
    what: "the strings are out of order",
};

/// Merges and encodes the blocks that begin from one cut on and before the next one, and gives
/// the numbers of their strings, too.
fn merge_piece(
    sources: &[Source<'_>],
    begin: &Cut,
    end: &Cut,
    parts: Parts,
) -> Result<(Run, Vec<u64>), DictionaryError> {
    let total = sources.iter().map(|source| source.rows.len() as u64).sum();
    let (first, end) = (begin.block_end(total), end.block_end(total));
    let mut run = RunBuilder::new(first, (end - first) as usize);
    let mut numbers = Vec::with_capacity((end - first) as usize);
    if first == end {
        return Ok((run.finish(Some(parts)), numbers));
    }
    let mut merged = Merged::new(sources, &begin.starts)?;
    let mut block: [Vec<u8>; BLOCK] = Default::default();
    let mut last = None;
    for row in begin.rank..end {
        let place = (row % BLOCK as u64) as usize;
        let number = merged.next(&mut block[place])?;
        if let Some(last) = last {
            let previous = &block[(place + BLOCK - 1) % BLOCK];
            test_order(previous, last, &block[place], number)?;
        }
        last = Some(number);
        if row < first {
            continue;
        }
        numbers.push(number);
        if place == BLOCK - 1 || row + 1 == end {
            let strings: [&[u8]; BLOCK] = std::array::from_fn(|place| block[place].as_slice());
            run.push(&strings[..=place])?;
        }
    }
    Ok((run.finish(Some(parts)), numbers))
}

/// Refuses a string that does not follow the one before.
fn test_order(
    previous: &[u8],
    previous_number: u64,
    string: &[u8],
    number: u64,
) -> Result<(), DictionaryError> {
    match previous.cmp(string) {
        Ordering::Less => Ok(()),
        Ordering::Equal => Err(DictionaryError::RepeatedString {
            one: previous_number,
            other: number,
        }),
        Ordering::Greater => Err(OUT_OF_ORDER),
    }
}

/// The strings of all sources from some places on, by text.
struct Merged<'a> {
    cursors: BinaryHeap<Box<Cursor<'a>>>,
}

impl<'a> Merged<'a> {
    fn new(sources: &'a [Source<'a>], starts: &[usize]) -> Result<Self, DictionaryError> {
        let mut cursors = Vec::with_capacity(sources.len());
        for (source, start) in sources.iter().zip(starts) {
            if *start < source.rows.len() {
                cursors.push(Box::new(Cursor::new(source, *start)?));
            }
        }
        let cursors = BinaryHeap::from(cursors);
        Ok(Self { cursors })
    }

    /// The number of the next string, which is put into `text`, whatever was there.
    fn next(&mut self, text: &mut Vec<u8>) -> Result<u64, DictionaryError> {
        // There are as many strings as the sources together have rows.
        let mut top = self.cursors.peek_mut().ok_or(OUT_OF_ORDER)?;
        let number = top.number()?;
        std::mem::swap(text, &mut top.text);
        top.at += 1;
        if top.at == top.source.rows.len() {
            PeekMut::pop(top);
        } else {
            top.read()?;
        }
        Ok(number)
    }
}

/// A place in a source, and the string there. The least cursor is the one with the greatest
/// string, as the greatest one comes first in a heap.
struct Cursor<'a> {
    source: &'a Source<'a>,
    numbers: NumbersView<'a>,
    /// Reads rows that are neighbours; others are read by themselves.
    decoder: Decoder<'a>,
    at: usize,
    text: Vec<u8>,
}

impl<'a> Cursor<'a> {
    fn new(source: &'a Source<'a>, at: usize) -> Result<Self, DictionaryError> {
        let mut cursor = Self {
            source,
            numbers: source.table.numbers_view(),
            decoder: source.table.strings().decoder(),
            at,
            text: Vec::new(),
        };
        cursor.read()?;
        Ok(cursor)
    }

    fn number(&self) -> Result<u64, DictionaryError> {
        number_at(&self.numbers, self.source.row(self.at))
    }

    fn read(&mut self) -> Result<(), DictionaryError> {
        let row = self.source.row(self.at);
        self.text.clear();
        if self.source.is_ascending {
            self.decoder.push(row, &mut self.text)
        } else {
            self.source.table.strings().extract(row, &mut self.text)
        }
    }
}

impl Ord for Cursor<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.text.cmp(&self.text)
    }
}

impl PartialOrd for Cursor<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Cursor<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Cursor<'_> {}
