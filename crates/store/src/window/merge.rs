//! From several runs to one: a pass over the rows of each predicate in both orders, without a sort.

use std::collections::VecDeque;

use jindou_model::{Narrow, PredicateId, with_narrow};

use super::frame::{Frame, ObjectKey, Row, Word};
use super::run::{PredicateRows, Run, RunWriter, SortedRows};

/// The run of all tuples of some runs but those before `kept_from_ms`.
///
/// Merges two at a time, the smallest first, so each row is merged as often as the logarithm of the
/// number of runs. Costs about 60 bytes a row of one predicate meanwhile.
pub(super) fn merge<'a>(runs: impl Iterator<Item = &'a Run>, kept_from_ms: i64) -> Run {
    let runs: Vec<&Run> = runs.filter(|run| !run.is_empty()).collect();
    let (Some(first), Some(last)) = (
        runs.iter().map(|run| run.first_ms).min(),
        runs.iter().map(|run| run.last_ms).max(),
    ) else {
        return RunWriter::default().finish(0, 0);
    };
    let first_ms = first.max(kept_from_ms);
    let mut writer = RunWriter::default();
    if last < first_ms {
        return writer.finish(0, 0);
    }
    let cut = first_ms.wrapping_sub(first) as u64;
    let mut sorted = SortedRows::default();
    for predicate in predicates(&runs) {
        let inputs = runs.iter().filter_map(|run| {
            let rows = run.of(predicate)?;
            let later = run.first_ms.wrapping_sub(first) as u64;
            Some(Input::new(run, rows, later))
        });
        sorted.clear();
        merge_inputs(&inputs.collect::<Vec<_>>(), cut, &mut sorted);
        writer.add(predicate, &sorted);
    }
    writer.finish(first_ms, last)
}

fn predicates(runs: &[&Run]) -> Vec<PredicateId> {
    let of_runs = runs.iter().flat_map(|run| run.predicates());
    let mut predicates: Vec<PredicateId> = of_runs.map(|rows| rows.predicate).collect();
    predicates.sort_unstable();
    predicates.dedup();
    predicates
}

/// The rows of a predicate in one run.
struct Input<'a> {
    len: usize,
    /// The least of each column; times are those since the first of all runs.
    least: Row,
    most: Row,
    subjects: Narrow<'a>,
    objects: Narrow<'a>,
    /// Empty where all are the same.
    times: Narrow<'a>,
    by_object: Narrow<'a>,
}

impl<'a> Input<'a> {
    /// `later`: milliseconds from the first time of all runs to that of this one.
    fn new(run: &'a Run, rows: &PredicateRows, later: u64) -> Self {
        let narrow = |slot: super::pack::Slot| slot.narrow(run.region(), rows.len());
        let (subjects, objects) = (narrow(rows.subjects), narrow(rows.objects));
        let by_object = narrow(rows.by_object);
        let last = rows.len() - 1;
        Self {
            len: rows.len(),
            least: Row {
                subject: rows.subjects.base,
                object: rows.objects.base,
                time: rows.times.base + later,
            },
            most: Row {
                subject: rows.subjects.base + subjects.get(last),
                object: rows.objects.base + objects.get(by_object.get(last) as usize),
                time: rows.last_time + later,
            },
            subjects,
            objects,
            times: narrow(rows.times),
            by_object,
        }
    }

    /// Its rows, with times from `cut` on.
    fn sorted<W: Word>(&self, frame: &Frame, cut: u64) -> Sorted<W> {
        let mut rows = vec![self.least; self.len];
        add(self.subjects, &mut rows, |row| &mut row.subject);
        add(self.objects, &mut rows, |row| &mut row.object);
        if !self.times.is_empty() {
            add(self.times, &mut rows, |row| &mut row.time);
        }
        let by_object = with_narrow!(self.by_object, items => {
            items.iter().map(|row| u64::from(*row) as u32).collect()
        });
        if self.least.time >= cut {
            return Sorted {
                words: rows.into_iter().map(|row| W::pack(row, frame)).collect(),
                by_object,
            };
        }
        let is_kept = |row: &Row| row.time >= cut;
        // How many kept ones are before each row.
        let numbers = rows.iter().scan(0_u32, |next, row| {
            let number = *next;
            *next += u32::from(is_kept(row));
            Some(number)
        });
        let numbers: Vec<u32> = numbers.collect();
        let kept = by_object
            .into_iter()
            .filter(|row| is_kept(&rows[*row as usize]));
        let by_object = kept.map(|row| numbers[row as usize]).collect();
        let kept = rows.into_iter().filter(is_kept);
        Sorted {
            words: kept.map(|row| W::pack(row, frame)).collect(),
            by_object,
        }
    }
}

/// Adds the numbers of a column to those of rows.
fn add(column: Narrow<'_>, rows: &mut [Row], of: impl Fn(&mut Row) -> &mut u64) {
    with_narrow!(column, items => {
        for (row, item) in rows.iter_mut().zip(items) {
            *of(row) += u64::from(*item);
        }
    });
}

/// Fills `sorted` with the distinct rows of all inputs whose time is `cut` or more, and counts their
/// times from there.
fn merge_inputs(inputs: &[Input<'_>], cut: u64, sorted: &mut SortedRows) {
    let inputs: Vec<&Input<'_>> = inputs
        .iter()
        .filter(|input| input.most.time >= cut)
        .collect();
    let Some((first, others)) = inputs.split_first() else {
        return;
    };
    let (mut least, mut most) = (first.least, first.most);
    for input in others {
        least.subject = least.subject.min(input.least.subject);
        least.object = least.object.min(input.least.object);
        least.time = least.time.min(input.least.time);
        most.subject = most.subject.max(input.most.subject);
        most.object = most.object.max(input.most.object);
        most.time = most.time.max(input.most.time);
    }
    least.time = least.time.max(cut);
    let frame = Frame::new(least, most);
    match frame.bits {
        0..u64::BITS => merge_words::<u64>(&inputs, &frame, cut, sorted),
        u64::BITS..u128::BITS => merge_words::<u128>(&inputs, &frame, cut, sorted),
        _ => merge_words::<Row>(&inputs, &frame, cut, sorted),
    }
}

fn merge_words<W: Word>(inputs: &[&Input<'_>], frame: &Frame, cut: u64, sorted: &mut SortedRows) {
    let inputs = inputs.iter().map(|input| input.sorted(frame, cut));
    let mut inputs: VecDeque<Sorted<W>> = inputs.collect();
    inputs
        .make_contiguous()
        .sort_by_key(|input| input.words.len());
    let merged = loop {
        match (inputs.pop_front(), inputs.pop_front()) {
            (Some(one), Some(other)) if frame.has_short_objects() => {
                inputs.push_back(one.merged::<u64>(&other, frame));
            }
            (Some(one), Some(other)) => inputs.push_back(one.merged::<u128>(&other, frame)),
            (one, _) => break one.unwrap_or_default(),
        }
    };
    for word in merged.words {
        let row = word.unpack(frame);
        sorted.push(row.subject, row.object, row.time - cut);
    }
    sorted
        .by_object
        .extend(merged.by_object.into_iter().map(u64::from));
}

/// Distinct rows, and their numbers in the order of (object, subject, time).
#[derive(Default)]
struct Sorted<W> {
    words: Vec<W>,
    by_object: Vec<u32>,
}

impl<W: Word> Sorted<W> {
    fn merged<K: ObjectKey>(&self, other: &Self, frame: &Frame) -> Self {
        let mut numbers = vec![0; self.words.len()];
        let mut other_numbers = vec![0; other.words.len()];
        let words = union(
            (&self.words, &other.words),
            |index, number| numbers[index] = number as u32,
            |index, number| other_numbers[index] = number as u32,
        );
        let keys = self.object_keys::<K>(&numbers, frame);
        let other_keys = other.object_keys::<K>(&other_numbers, frame);
        let keys = union((&keys, &other_keys), |_, _| {}, |_, _| {});
        Self {
            words,
            by_object: keys.into_iter().map(K::number).collect(),
        }
    }

    /// Objects with the new numbers of rows: sorted, as these rise where rows do.
    fn object_keys<K: ObjectKey>(&self, numbers: &[u32], frame: &Frame) -> Vec<K> {
        let rows = self.by_object.iter().map(|row| *row as usize);
        rows.map(|row| K::new(self.words[row].object(frame), numbers[row]))
            .collect()
    }
}

/// The items that are in one of two slices or in both; each slice is sorted and distinct. Calls a
/// function of each slice with indices of its items and those of what is returned: what was said of
/// an item last holds.
fn union<T: Copy + Default + Ord>(
    slices: (&[T], &[T]),
    mut number: impl FnMut(usize, usize),
    mut number_other: impl FnMut(usize, usize),
) -> Vec<T> {
    let (some, others) = slices;
    let mut out = vec![T::default(); some.len() + others.len()];
    let (mut index, mut other, mut len) = (0, 0, 0);
    while index < some.len() && other < others.len() {
        let (left, right) = (some[index], others[other]);
        number(index, len);
        number_other(other, len);
        out[len] = left.min(right);
        // No branch, as none could be foreseen.
        index += usize::from(left <= right);
        other += usize::from(right <= left);
        len += 1;
    }
    out.truncate(len);
    for (index, item) in some.iter().enumerate().skip(index) {
        number(index, out.len());
        out.push(*item);
    }
    for (other, item) in others.iter().enumerate().skip(other) {
        number_other(other, out.len());
        out.push(*item);
    }
    out
}
