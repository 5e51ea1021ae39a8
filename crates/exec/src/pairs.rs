//! Numbered rows in the order of their numbers.

use std::cmp::Ordering;

use crate::discard::Large;

/// Items that are handled between two looks at the clock.
pub(crate) const AT_ONCE: usize = 1 << 14;
/// Bits of a number that one pass looks at.
const DIGIT_BITS: u32 = 11;
/// Fewer pairs are sorted by comparing them.
const FEW: usize = 1 << 10;
/// Wider numbers are sorted by comparing them.
const MOST_PASSES: u32 = 4;

/// A number and a row.
pub(crate) type Pair = (u64, u32);

/// Sorts pairs by their numbers; of one number, by their rows, which rise.
///
/// Calls `check` now and then. Takes as many bytes again as the pairs.
///
/// # Errors
/// Those of `check`.
pub(crate) fn sort_pairs<E>(
    pairs: &mut Vec<Pair>,
    check: &mut dyn FnMut() -> Result<(), E>,
) -> Result<(), E> {
    let (mut least, mut greatest) = (u64::MAX, 0);
    let (mut is_sorted, mut last) = (true, None);
    for some in pairs.chunks(AT_ONCE) {
        check_full(some, check)?;
        for pair in some {
            (least, greatest) = (least.min(pair.0), greatest.max(pair.0));
            is_sorted &= last.is_none_or(|last| last <= *pair);
            last = Some(*pair);
        }
    }
    if is_sorted {
        return Ok(());
    }
    let passes = (u64::BITS - (greatest - least).leading_zeros()).div_ceil(DIGIT_BITS);
    if pairs.len() < FEW || passes > MOST_PASSES {
        return sort_with(pairs, &Pair::cmp, check);
    }
    let mut sorted = Large::from(vec![(0, 0); pairs.len()]);
    for pass in 0..passes {
        let digit = |pair: &Pair| {
            ((pair.0 - least) >> (pass * DIGIT_BITS)) as usize & ((1 << DIGIT_BITS) - 1)
        };
        let mut places = [0_u32; 1 << DIGIT_BITS];
        for some in pairs.chunks(AT_ONCE) {
            check()?;
            for pair in some {
                places[digit(pair)] += 1;
            }
        }
        let mut before = 0;
        for place in &mut places {
            before += std::mem::replace(place, before);
        }
        for some in pairs.chunks(AT_ONCE) {
            check()?;
            for pair in some {
                let place = &mut places[digit(pair)];
                sorted[*place as usize] = *pair;
                *place += 1;
            }
        }
        std::mem::swap(pairs, &mut *sorted);
    }
    Ok(())
}

/// Calls `check` where so many items are to be handled that it costs nothing beside them.
#[inline]
pub(crate) fn check_full<T, E>(
    items: &[T],
    check: &mut dyn FnMut() -> Result<(), E>,
) -> Result<(), E> {
    match items.len() {
        AT_ONCE => check(),
        _ => Ok(()),
    }
}

/// Sorts items, and calls `check` now and then: a merge sort over short runs. Equal items may
/// change places.
///
/// # Errors
/// Those of `check`.
pub(crate) fn sort_with<T: Copy + Send + 'static, E>(
    items: &mut Vec<T>,
    compare: &impl Fn(&T, &T) -> Ordering,
    check: &mut dyn FnMut() -> Result<(), E>,
) -> Result<(), E> {
    for run in items.chunks_mut(AT_ONCE) {
        run.sort_unstable_by(compare);
        check()?;
    }
    let mut merged: Large<T> = Large::default();
    let mut width = AT_ONCE;
    while width < items.len() {
        merged.clear();
        merged.reserve_exact(items.len());
        for pair in items.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, compare, &mut *merged, check)?;
        }
        std::mem::swap(items, &mut *merged);
        width *= 2;
    }
    Ok(())
}

/// Appends two sorted lists as one to `merged`; of equal items those on the left come first.
///
/// # Errors
/// Those of `check`.
pub(crate) fn merge<T: Copy, E>(
    mut left: &[T],
    mut right: &[T],
    compare: &impl Fn(&T, &T) -> Ordering,
    merged: &mut Vec<T>,
    check: &mut dyn FnMut() -> Result<(), E>,
) -> Result<(), E> {
    while let (Some(a), Some(b)) = (left.first(), right.first()) {
        if compare(a, b) == Ordering::Greater {
            merged.push(*b);
            right = &right[1..];
        } else {
            merged.push(*a);
            left = &left[1..];
        }
        if merged.len().is_multiple_of(AT_ONCE) {
            check()?;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_long_sort_looks_at_the_clock_and_agrees_with_the_standard_one() {
        for count in [0, 1, FEW, AT_ONCE, AT_ONCE + 1, 5 * AT_ONCE + 7] {
            for (multiplier, most) in [
                (2_654_435_761, 1_009),
                (2_654_435_761, 1 << 43),
                (0x9e37_79b9_7f4a_7c15, u64::MAX),
                (1, u64::MAX),
            ] {
                let number = |row: u32| (u64::from(row).wrapping_mul(multiplier)) % most;
                let mut pairs: Vec<Pair> =
                    (0..count as u32).map(|row| (number(row), row)).collect();
                let mut expected = pairs.clone();
                expected.sort_unstable();
                let is_sorted = pairs == expected;
                let mut checks = 0;
                sort_pairs(&mut pairs, &mut || {
                    checks += 1;
                    Ok::<(), ()>(())
                })
                .unwrap();
                assert_eq!(pairs, expected, "{count} pairs below {most}");
                assert!(is_sorted || checks >= count / AT_ONCE, "{checks} checks");
            }
        }
    }

    #[test]
    fn a_sort_ends_where_its_check_fails() {
        let mut rows: Vec<u32> = (0..10 * AT_ONCE as u32).rev().collect();
        let calls = Cell::new(0);
        let compare = |a: &u32, b: &u32| {
            calls.set(calls.get() + 1);
            a.cmp(b)
        };
        assert_eq!(sort_with(&mut rows, &compare, &mut || Err(())), Err(()));
        assert!(calls.get() <= 20 * AT_ONCE, "one run was sorted at most");
        let mut pairs: Vec<Pair> = (0..10 * AT_ONCE as u32)
            .map(|row| (u64::from(row % 99), row))
            .collect();
        assert_eq!(sort_pairs(&mut pairs, &mut || Err(())), Err(()));
    }
}
