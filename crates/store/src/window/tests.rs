//! Does a window answer as a list of tuples that is read from scratch?

mod oracle;
mod random;
mod sizes;

use std::ops::ControlFlow;

use jindou_model::{
    Cursor, Direction, IdRanges, Lists, Membership, Pattern, Precision, PredicateId, TermId,
    TermKind,
};

use super::{Bounds, Ring, RingOptions, Run, StreamTuple, Window, WindowError};

/// A ring without limits.
fn ring() -> Ring {
    Ring::new(RingOptions {
        longest_run_ms: u64::MAX,
    })
}

fn tuple(time_ms: i64, subject: u64, predicate: u32, object: u64) -> StreamTuple {
    StreamTuple {
        time_ms,
        subject: TermId::vertex(subject),
        predicate: PredicateId(predicate),
        object: TermId::vertex(object),
    }
}

fn run(batch: &[StreamTuple]) -> Run {
    Run::from_batch(batch).expect("ids of terms")
}

fn window(ring: &Ring, from_ms: i64, until_ms: i64) -> Window {
    let bounds = Bounds { from_ms, until_ms };
    Window::new([(ring.snapshot(), bounds)])
}

fn triples(window: &Window) -> Vec<(u64, u32, u64)> {
    let all = Pattern {
        subject: None,
        predicate: None,
        object: None,
    };
    let mut found = Vec::new();
    let flow = window.for_each_match(&all, &mut |s, p, o, graph| {
        assert!(graph.is_none());
        found.push((s.raw(), p.0, o.raw()));
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    found
}

#[test]
fn an_empty_batch_leaves_nothing() {
    let mut ring = ring();
    ring.append(run(&[])).unwrap();
    assert_eq!((ring.snapshot().runs().len(), ring.bytes()), (0, 0));
    let window = window(&ring, i64::MIN, i64::MAX);
    assert!(window.is_empty() && triples(&window).is_empty());
    assert_eq!(run(&[]).times_ms(), None);
    assert_eq!(window.edges(PredicateId(1)), Some(0));
}

#[test]
fn a_triple_expires_with_its_last_time() {
    let mut ring = ring();
    ring.append(run(&[
        tuple(1, 1, 1, 1),
        tuple(5, 1, 1, 1),
        tuple(1, 1, 1, 1),
    ]))
    .unwrap();
    assert_eq!(ring.snapshot().runs()[0].len(), 2);
    for (from, until, count) in [(0, 1, 0), (1, 2, 1), (2, 5, 0), (2, 6, 1), (0, 6, 1)] {
        assert_eq!(
            triples(&window(&ring, from, until)).len(),
            count,
            "{from}..{until}"
        );
    }
    assert_eq!(ring.forget_before(5), 0);
    assert_eq!(triples(&window(&ring, 0, 6)).len(), 1);
    assert_eq!(ring.forget_before(6), 1);
    assert_eq!(triples(&window(&ring, 0, 6)).len(), 0);
}

#[test]
fn the_first_and_the_last_millisecond_do_not_overflow() {
    let batch = [
        tuple(i64::MIN, 1, 1, 1),
        tuple(0, 2, 1, 1),
        tuple(i64::MAX, 3, 1, 1),
    ];
    let mut ring = ring();
    ring.append(run(&batch[..2])).unwrap();
    ring.append(run(&batch[2..])).unwrap();
    for _ in 0..2 {
        let all = triples(&window(&ring, i64::MIN, i64::MAX));
        assert_eq!(all.len(), 2, "the last millisecond is no window's");
        assert_eq!(triples(&window(&ring, i64::MIN, i64::MIN)).len(), 0);
        assert_eq!(triples(&window(&ring, i64::MIN, i64::MIN + 1)).len(), 1);
        assert_eq!(triples(&window(&ring, i64::MAX, i64::MIN)).len(), 0);
        let merged = super::merge::merge(ring.snapshot().runs().iter().map(|run| &**run), i64::MIN);
        assert_eq!(
            (merged.len(), merged.times_ms()),
            (3, Some((i64::MIN, i64::MAX)))
        );
        ring = self::ring();
        ring.append(merged).unwrap();
    }
    assert_eq!(ring.forget_before(i64::MAX), 0);
}

#[test]
fn what_is_no_term_or_out_of_order_is_refused() {
    for id in [
        TermId::NONE,
        TermId::new(TermKind::Computed, 3),
        TermId::from_raw(u64::MAX),
    ] {
        let mut wrong = tuple(1, 1, 1, 1);
        wrong.object = id;
        assert_eq!(
            Run::from_batch(&[wrong]).err(),
            Some(WindowError::NotATerm(id))
        );
    }
    let mut ring = ring();
    ring.append(run(&[tuple(5, 1, 1, 1)])).unwrap();
    ring.append(run(&[tuple(5, 1, 1, 1)])).unwrap();
    let refused = ring.append(run(&[tuple(4, 1, 1, 1), tuple(9, 1, 1, 1)]));
    let error = WindowError::OutOfOrder {
        first_ms: 4,
        last_ms: 5,
    };
    assert_eq!(refused, Err(error));
    assert_eq!(ring.snapshot().runs().len(), 2);
}

#[test]
fn a_snapshot_stays_as_it_is() {
    let mut ring = ring();
    ring.append(run(&[tuple(1, 1, 1, 1)])).unwrap();
    ring.append(run(&[tuple(2, 2, 1, 1)])).unwrap();
    let before = window(&ring, 0, 9);
    let merged = ring.merge_due().expect("two of one size").execute();
    assert!(ring.apply(merged));
    assert_eq!(ring.snapshot().runs().len(), 1);
    ring.forget_before(100);
    assert_eq!(triples(&before).len(), 2);
    assert_eq!(triples(&window(&ring, 0, 9)).len(), 0);
}

#[test]
fn a_merge_is_installed_once_and_only_where_its_runs_are() {
    let mut ring = ring();
    for time in 0..4 {
        ring.append(run(&[tuple(time, 1, 1, time as u64)])).unwrap();
    }
    let [first, second] = [(); 2].map(|()| ring.merge_due().expect("four of one size"));
    // The oldest goes meanwhile.
    assert_eq!(ring.forget_before(1), 1);
    assert!(ring.apply(first.execute()));
    assert!(!ring.apply(second.execute()));
    assert_eq!(triples(&window(&ring, 0, 9)).len(), 3);
    let late = {
        let four = (0..4).map(|object| tuple(5, 2, 1, object));
        ring.append(run(&four.collect::<Vec<_>>())).unwrap();
        ring.merge_due().expect("two of one size")
    };
    ring.forget_before(9);
    assert!(!ring.apply(late.execute()));
    assert_eq!((ring.snapshot().runs().len(), ring.bytes()), (0, 0));
}

#[test]
fn a_merged_run_is_no_longer_than_it_may_be() {
    let mut ring = Ring::new(RingOptions { longest_run_ms: 30 });
    for time in 0..16 {
        ring.append(run(&[tuple(10 * time, 1, 1, 1)])).unwrap();
        while let Some(merge) = ring.merge_due() {
            assert!(ring.apply(merge.execute()));
        }
    }
    let snapshot = ring.snapshot();
    let lengths: Vec<usize> = snapshot.runs().iter().map(|run| run.len()).collect();
    assert_eq!(lengths, [4, 4, 4, 4]);
}

#[test]
fn counts_are_exact_for_a_run_inside_and_estimates_otherwise() {
    let mut ring = ring();
    let batch: Vec<_> = (0..100).map(|n| tuple(n as i64, n % 10, 1, n)).collect();
    ring.append(run(&batch)).unwrap();
    let whole = window(&ring, 0, 100);
    assert_eq!(whole.edges(PredicateId(1)), Some(100));
    let counts = |window: &Window, direction| {
        let counts = window.counts(PredicateId(1), direction);
        (counts.triples, counts.keys)
    };
    assert_eq!(counts(&whole, Direction::Out), (100, 10));
    assert_eq!(counts(&whole, Direction::In), (100, 100));
    assert_eq!(whole.tuples(), 100);
    let half = window(&ring, 0, 50);
    assert_eq!(half.edges(PredicateId(1)), None);
    assert_eq!(counts(&half, Direction::Out), (50, 5));
    assert_eq!(counts(&half, Direction::In), (50, 50));
    let none = window(&ring, 200, 300);
    assert_eq!((none.edges(PredicateId(1)), none.runs()), (Some(0), 0));
    assert_eq!(counts(&none, Direction::Out), (0, 0));
}

#[test]
fn a_long_list_is_entered_at_any_place() {
    let mut ring = ring();
    // Two of three subjects come in both runs, some twice in one.
    for (begin, time) in [(0, 0), (1000, 10), (1500, 20)] {
        let new = (begin..begin + 3000).map(|n| tuple(time + (n % 5) as i64, n, 1, 7));
        let again = (begin..begin + 500).map(|n| tuple(time + 7, n, 1, 7));
        ring.append(run(&new.chain(again).collect::<Vec<_>>()))
            .unwrap();
    }
    let keys = [TermId::vertex(7)];
    let list = Lists {
        predicate: PredicateId(1),
        direction: Direction::In,
        keys: &keys,
    };
    for (from, until) in [(0, 40), (3, 22), (0, 8)] {
        let window = window(&ring, from, until);
        let places = window.places(&list) as usize;
        let (mut rows, mut all) = (Vec::new(), Vec::new());
        let cursor = &mut Cursor::default();
        window.expand(&[list], cursor, None, places, &mut rows, &mut all);
        assert_eq!(
            (*cursor, rows.len()),
            (Cursor { key: 1, offset: 0 }, all.len())
        );
        assert!(all.is_sorted_by(|a, b| a < b));
        let mut pieces = Vec::new();
        for begin in (0..places).step_by(97) {
            let end = places.min(begin + 97);
            let mut cursor = Cursor {
                key: 0,
                offset: begin,
            };
            while cursor.key == 0 && cursor.offset < end {
                let budget = pieces.len() + end - cursor.offset;
                window.expand(&[list], &mut cursor, None, budget, &mut rows, &mut pieces);
            }
        }
        assert_eq!(pieces, all);
    }
}

#[test]
fn a_piece_within_one_neighbour_leaves_the_next_one_to_others() {
    let mut ring = ring();
    ring.append(run(&[tuple(1, 1, 1, 5), tuple(2, 1, 1, 5)]))
        .unwrap();
    ring.append(run(&[tuple(3, 1, 1, 9)])).unwrap();
    let window = window(&ring, 0, 9);
    let keys = [TermId::vertex(1)];
    let list = Lists {
        predicate: PredicateId(1),
        direction: Direction::Out,
        keys: &keys,
    };
    assert_eq!(window.places(&list), 3);
    let pieces = [0, 1, 2].map(|offset| {
        let mut cursor = Cursor { key: 0, offset };
        let (mut rows, mut out) = (Vec::new(), Vec::new());
        window.expand(&[list], &mut cursor, None, 1, &mut rows, &mut out);
        out
    });
    let [first, second] = [5, 9].map(|number| vec![TermId::vertex(number)]);
    assert_eq!(pieces, [first, Vec::new(), second]);
}

#[test]
fn members_of_nothing_asked_are_all_ids() {
    let window = window(&ring(), 0, 1);
    assert_eq!(
        window.members(&[], Precision::Exact, None),
        Some(IdRanges::all())
    );
    assert_eq!(window.members(&[], Precision::Filter, None), None);
    let typed = [Membership::Type(TermId::vertex(1))];
    assert_eq!(
        window.members(&typed, Precision::Filter, None),
        Some(IdRanges::new())
    );
}
