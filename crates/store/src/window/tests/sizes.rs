//! How many runs and merges do n batches make, and how many bytes a tuple?

use jindou_model::{PredicateId, TermId};

use super::super::{Run, StreamTuple};
use super::{ring, tuple};

#[test]
fn runs_are_logarithmic_and_so_are_the_merges_of_a_tuple() {
    const BATCHES: u64 = 1000;
    const TUPLES: u64 = 8;
    for merge_every in [1, 7, 100] {
        let mut ring = ring();
        // How often the tuples of each batch were merged.
        let mut merges = vec![0_u32; BATCHES as usize];
        for batch in 0..BATCHES {
            let tuples = (0..TUPLES).map(|n| tuple(batch as i64, n, 1, batch));
            let run = Run::from_batch(&tuples.collect::<Vec<_>>()).unwrap();
            ring.append(run).unwrap();
            if (batch + 1) % merge_every > 0 {
                continue;
            }
            while let Some(merge) = ring.merge_due() {
                for run in merge.runs() {
                    let (first_ms, last_ms) = run.times_ms().unwrap();
                    let merged = &mut merges[first_ms as usize..=last_ms as usize];
                    merged.iter_mut().for_each(|times| *times += 1);
                }
                assert!(ring.apply(merge.execute()));
            }
            let most = (batch + 1).ilog2() + 1;
            assert!(ring.snapshot().runs().len() <= most as usize);
        }
        let most = merges.iter().max().copied();
        assert!(most <= Some(BATCHES.ilog2() + 1), "{most:?}");
        let runs = ring.snapshot();
        let tuples: usize = runs.runs().iter().map(|run| run.len()).sum();
        assert_eq!(tuples as u64, BATCHES * TUPLES);
    }
}

/// A batch of ten seconds of an ordinary stream.
fn batch() -> Vec<StreamTuple> {
    let mixed = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let tuple = |n: u64| StreamTuple {
        time_ms: 1_700_000_000_000 + n as i64,
        subject: TermId::vertex(mixed(n)),
        predicate: PredicateId((n % 5) as u32),
        object: TermId::vertex(mixed(n + 1_000_000)),
    };
    (0..10_000).map(tuple).collect()
}

#[test]
fn a_tuple_takes_twelve_bytes() {
    // Its entry in the table, and its guides.
    const PREDICATE_BYTES: usize = 400;
    let run = Run::from_batch(&batch()).unwrap();
    assert_eq!(run.len(), 10_000);
    let most = 12 * run.len() + 5 * PREDICATE_BYTES;
    assert!(run.footprint() <= most, "{} bytes", run.footprint());
    // In one tenth of a second, a time is a byte.
    let mut quick = batch();
    quick.iter_mut().for_each(|tuple| tuple.time_ms %= 100);
    let run = Run::from_batch(&quick).unwrap();
    let most = 11 * run.len() + 5 * PREDICATE_BYTES;
    assert!(run.footprint() <= most, "{} bytes", run.footprint());
    // Those of one moment have none.
    quick.iter_mut().for_each(|tuple| tuple.time_ms = 7);
    let run = Run::from_batch(&quick).unwrap();
    let most = 10 * run.len() + 5 * PREDICATE_BYTES;
    assert!(run.footprint() <= most, "{} bytes", run.footprint());
}
