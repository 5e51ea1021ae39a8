//! Do places tell the order of literals that their texts have: of a bulk load, of tables that merges
//! made, and of the delta, before they are put in order and after that?

use std::cmp::Ordering;
use std::collections::BTreeSet;

use jindou_model::{
    GraphRef, IdQuad, Pattern, SnapshotNumber, TermId, TermKind, TextKind, TextPlace, key,
};
use jindou_store::bulk::{BulkSink, build};
use jindou_store::{Changes, Merged, Rebase, Snapshot, TextOrder};
use oxrdf::{GraphNameRef, Literal, NamedNode, NamedNodeRef, QuadRef};
use proptest::prelude::*;

const PREDICATE: NamedNodeRef<'_> = NamedNodeRef::new_unchecked("http://example.org/p");
const SUBJECT: NamedNodeRef<'_> = NamedNodeRef::new_unchecked("http://example.org/s");

/// Texts that are often near each other, or the same but for what comes behind the border.
fn literals() -> impl Strategy<Value = Vec<Literal>> {
    let text = "[ab\u{0}\u{e9}]{0,4}";
    let literal = (text, 0..8_u8).prop_map(|(text, end)| match end {
        0 => Literal::new_language_tagged_literal_unchecked(text, "en"),
        1 => Literal::new_language_tagged_literal_unchecked(text, "de"),
        2 => Literal::new_typed_literal(text, NamedNode::new_unchecked("http://example.org/t")),
        _ => Literal::new_simple_literal(text),
    });
    prop::collection::vec(literal, 0..60)
}

fn load(literals: &[Literal]) -> Snapshot {
    let mut sink = BulkSink::new();
    for literal in literals {
        let graph = GraphNameRef::DefaultGraph;
        let quad = QuadRef::new(SUBJECT, PREDICATE, literal.as_ref(), graph);
        sink.quad(quad).unwrap();
    }
    Snapshot::of_base(build(vec![sink], 1).unwrap(), 1, SnapshotNumber(1))
}

fn quad(now: &mut Snapshot, literal: &Literal) -> IdQuad {
    let mut bytes = Vec::new();
    key::push_literal(&mut bytes, literal.as_ref());
    IdQuad {
        subject: now.intern_node(SUBJECT.as_str().as_bytes()).unwrap(),
        predicate: now.intern_predicate(PREDICATE.as_str()).unwrap(),
        object: now.intern_literal(&bytes).unwrap(),
        graph: TermId::NONE,
    }
}

fn change(now: &mut Snapshot, remove: &[Literal], add: &[Literal]) {
    let changes = Changes {
        remove: remove.iter().map(|literal| quad(now, literal)).collect(),
        add: add.iter().map(|literal| quad(now, literal)).collect(),
    };
    now.apply(&changes);
    now.keep_terms();
    now.set_number(SnapshotNumber(now.number().0 + 1));
}

/// Merges all, and forgets what nothing uses.
fn merge(now: &Snapshot) -> Snapshot {
    let changed = now.changed_predicates().into_iter();
    now.close_extents();
    let merged = Merged::new(now.clone(), changed.map(|one| one.predicate).collect()).unwrap();
    let rebase = Rebase::new(merged, now);
    let mut next = rebase.apply(now);
    next.forget_terms(rebase.unused());
    next
}

/// The literals that quads have, with their keys.
fn living(now: &Snapshot) -> Vec<(TermId, Vec<u8>)> {
    let mut ids = BTreeSet::new();
    let all = Pattern {
        subject: None,
        predicate: None,
        object: None,
    };
    let flow = now.for_each_match(&all, GraphRef::Default, &mut |_, _, object, _| {
        ids.insert(object);
        std::ops::ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    let literals = ids.into_iter().filter(|id| id.kind() == TermKind::Literal);
    let with_key = |id: TermId| {
        let mut key = Vec::new();
        now.push_key(id, &mut key);
        (id, key)
    };
    literals.map(with_key).collect()
}

/// By the rules of [`TextPlace`]; `None` if these do not tell.
fn order(left: TextPlace, right: TextPlace) -> Option<Ordering> {
    match left.at.cmp(&right.at) {
        Ordering::Equal if left.at % 2 == 1 => Some(Ordering::Equal),
        Ordering::Equal => None,
        order => Some(order),
    }
}

/// The order with all literals.
fn extended(order: &TextOrder) -> TextOrder {
    order.extended(&mut |_| true).expect("nothing is damaged")
}

/// Compares the places of all literals with their texts, and gives how many are not in order.
fn compare(now: &Snapshot, by: &TextOrder) -> usize {
    let literals = living(now);
    let mut unordered = 0;
    for (id, key) in &literals {
        let (text, tag, _) = key::literal_parts(key).unwrap();
        let place = by.place(*id);
        let expected = match tag {
            _ if text.contains('\0') => None,
            Some(_) => Some(TextKind::LangString),
            None if key.ends_with(&[0]) => Some(TextKind::String),
            None => None,
        };
        assert_eq!(place.map(|place| place.kind), expected, "{key:?}");
        let is_main = |place: Option<TextPlace>| place.is_some_and(|p| p.run == TextPlace::MAIN);
        unordered += usize::from(place.is_some() && !is_main(place));
        for (other_id, other) in &literals {
            let both = place.zip(by.place(*other_id));
            let both = both.filter(|(one, other)| one.kind == other.kind);
            let told = both.and_then(|(one, other)| order(one, other));
            if let Some(told) = told {
                assert_eq!(told, key.cmp(other), "{key:?} and {other:?}");
            }
            let is_told = both.is_none() || told.is_some();
            let in_main = is_main(place) || is_main(by.place(*other_id));
            assert!(is_told || !in_main, "{key:?} and {other:?}");
        }
    }
    unordered
}

/// The snapshots of a store, from the first on, while literals come and go and tables are merged.
type Rounds = Vec<(Vec<Literal>, usize, bool)>;

fn rounds() -> impl Strategy<Value = Rounds> {
    prop::collection::vec((literals(), 0..3_usize, any::<bool>()), 0..6)
}

fn snapshots(ground: Vec<Literal>, rounds: Rounds) -> Vec<Snapshot> {
    let mut now = load(&ground);
    let mut known = ground;
    let mut all = vec![now.clone()];
    for (added, removed, is_merged) in rounds {
        let removed: Vec<Literal> = known.iter().skip(removed).step_by(3).cloned().collect();
        change(&mut now, &removed, &added);
        known.extend(added);
        all.push(now.clone());
        if is_merged {
            now = merge(&now);
            all.push(now.clone());
        }
    }
    all
}

proptest! {
    #[test]
    fn places_tell_the_order_of_texts(
        ground in literals(),
        rounds in rounds(),
        asked in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..12),
    ) {
        let all = snapshots(ground, rounds);
        // Orders that others extended meanwhile stay as they are.
        let mut before: Vec<(usize, TextOrder)> = Vec::new();
        let mut newest = 0;
        for (which, is_extended) in asked {
            let which = which.index(all.len());
            let mut order = all[which].text_order();
            if is_extended {
                order = extended(&order);
                newest = newest.max(which);
                let unordered = compare(&all[which], &order);
                // A newer one leaves out those whose texts went in a merge since.
                prop_assert!(unordered == 0 || which < newest, "{unordered} are not in order");
            }
            before.push((which, order));
            for (which, order) in &before {
                compare(&all[*which], order);
            }
        }
    }
}

/// Literals of a transaction under way have numbers that others may get, too.
#[test]
fn terms_that_are_not_kept_are_not_put_in_order() {
    let literal = |text: &str| Literal::new_simple_literal(text);
    let mut now = load(&[literal("b"), literal("d")]);
    let mut pending = now.clone();
    let changes = Changes {
        remove: Vec::new(),
        add: ["a", "e", "c1"]
            .map(|text| quad(&mut pending, &literal(text)))
            .to_vec(),
    };
    pending.apply(&changes);
    compare(&pending, &pending.text_order());
    compare(&pending, &extended(&pending.text_order()));
    change(&mut now, &[], &["z", "c", "c1"].map(literal));
    assert_eq!(compare(&now, &extended(&now.text_order())), 0);
    assert_eq!(compare(&pending, &pending.text_order()), 3);
    assert_eq!(compare(&now, &now.text_order()), 0);
}

#[test]
fn an_order_is_wanting_once_it_cost_about_what_extending_it_does() {
    let text = |number: usize| Literal::new_simple_literal(format!("text {number:04}"));
    let mut now = load(&(0..100).map(text).collect::<Vec<_>>());
    let wanting = |now: &Snapshot| {
        let order = now.text_order();
        let literals = living(now);
        let mut places = literals.iter().map(|(id, _)| order.place(*id));
        let found = places.position(|_| order.is_wanting());
        found.map(|_| extended(&order)).is_some()
    };
    assert!(!wanting(&now), "nothing came after the load");
    change(&mut now, &[], &(200..300).map(text).collect::<Vec<_>>());
    assert!(wanting(&now));
    assert!(!wanting(&now), "all are in order");
    change(&mut now, &[], &[text(150)]);
    assert!(
        !wanting(&now),
        "one place was searched instead of a pass over all"
    );
    now = merge(&now);
    assert!(!wanting(&now));
    let order = now.text_order();
    order.note_texts_read(10);
    assert!(order.is_wanting());
    assert!(order.extended(&mut |_| false).is_none());
    assert!(
        !order.is_wanting(),
        "who was refused does not try again at once"
    );
    assert_eq!(compare(&now, &extended(&order)), 0);
}

#[test]
fn threads_that_ask_at_once_get_one_order() {
    let text =
        |number: usize| Literal::new_simple_literal(format!("text {:04}", number * 7919 % 3000));
    let mut now = load(&(0..100).map(text).collect::<Vec<_>>());
    change(&mut now, &[], &(100..600).map(text).collect::<Vec<_>>());
    let merged = merge(&now);
    let mut later = merged.clone();
    change(&mut later, &[], &(600..700).map(text).collect::<Vec<_>>());
    std::thread::scope(|threads| {
        for number in 0..12 {
            let snapshot = [&now, &merged, &later][number % 3];
            threads.spawn(move || {
                let order = extended(&snapshot.text_order());
                let mut literals = living(snapshot);
                literals.sort_by_key(|(id, _)| order.place(*id).unwrap().at);
                assert!(literals.is_sorted_by_key(|(_, key)| key.clone()));
            });
        }
    });
}

#[test]
fn extending_an_order_ends_where_its_poll_says_so() {
    let text =
        |number: usize| Literal::new_simple_literal(format!("{:07}", number * 7919 % 100_000));
    let mut now = load(&(0..1000).map(text).collect::<Vec<_>>());
    change(&mut now, &[], &(1000..30_000).map(text).collect::<Vec<_>>());
    let order = now.text_order();
    let mut calls = 0;
    let mut held = 0;
    let done = order.extended(&mut |bytes| {
        calls += 1;
        held = bytes;
        true
    });
    assert!(done.is_some() && calls > 8, "{calls} calls");
    assert!((29_000 * 40..29_000 * 90).contains(&held), "{held} bytes");
    for last in 0..calls {
        let now = load(&[text(1)]);
        let mut now = now;
        change(&mut now, &[], &(1000..30_000).map(text).collect::<Vec<_>>());
        let mut left = last;
        let stopped = now.text_order().extended(&mut |_| {
            left -= 1;
            left >= 0
        });
        if last < calls - 2 {
            assert!(stopped.is_none(), "after {last} calls");
        }
        assert!(left >= -1, "nothing is done after it said no");
    }
}

#[test]
fn what_is_remembered_of_later_literals_is_counted() {
    let text =
        |number: usize| Literal::new_simple_literal(format!("text {:04}", number * 7 % 5000));
    let ground: Vec<Literal> = (0..3000).map(text).collect();
    let added: Vec<Literal> = (3000..5000).map(text).collect();
    let mut now = load(&ground);
    change(&mut now, &[], &added);
    let bytes = |now: &Snapshot| now.base().literal_tables().bytes();
    let before = bytes(&now);
    let order = now.text_order();
    let all = living(&now);
    assert!(all.iter().all(|(id, _)| order.place(*id).is_some()));
    let asked = bytes(&now) - before;
    // The kinds of the load are remembered, too.
    assert!(
        (2000 * 8 + 3000..2000 * 8 + 12_288).contains(&asked),
        "{asked}"
    );
    extended(&order);
    let ordered = bytes(&now) - before - 3000;
    assert!((2000 * 12..=2000 * 14 + 64).contains(&ordered), "{ordered}");
    // Merges keep it.
    let merged = merge(&now);
    let before = bytes(&merged);
    assert_eq!(compare(&merged, &merged.text_order()), 0);
    assert_eq!(bytes(&merged), before);
}

#[test]
fn literals_that_come_and_go_for_ever_leave_no_order_of_their_numbers() {
    let literals = |numbers: std::ops::Range<u32>| -> Vec<Literal> {
        let text = |number: u32| Literal::new_simple_literal(format!("text {number:06}"));
        numbers.map(text).collect()
    };
    let mut now = load(&literals(0..10));
    let mut last = Vec::new();
    // Ten thousand at a time, until many more numbers were given than there are literals.
    for round in 1..20 {
        let next = literals(round * 10_000..(round + 1) * 10_000);
        change(&mut now, &last, &next);
        now = merge(&now);
        last = next;
    }
    change(&mut now, &last, &literals(900_000..900_100));
    now = merge(&now);
    assert!(now.text_order().extended(&mut |_| true).is_none());
    compare(&now, &now.text_order());
    assert!(now.base().literal_tables().bytes() < 1 << 20);
}

fn literal(text: &str, tag: &str) -> Literal {
    match tag {
        "" => Literal::new_simple_literal(text),
        tag => Literal::new_language_tagged_literal_unchecked(text, tag),
    }
}

/// So many empty texts, but for some.
fn with(count: usize, others: &[(usize, &str, &str)]) -> Vec<Literal> {
    let mut all = vec![literal("", "en"); count];
    for (place, text, tag) in others {
        all[*place] = literal(text, tag);
    }
    all
}

#[test]
fn an_order_that_was_extended_before_merges_is_right_after_them() {
    let ground = [
        (1, "éé", "en"),
        (3, "éé", "en"),
        (4, "éé", ""),
        (8, "b", "en"),
    ];
    let second = [(2, "", "de"), (6, "é", "en"), (7, "a", "en")];
    let rounds = vec![
        (with(10, &[]), 0, false),
        (with(32, &second), 0, false),
        (with(16, &[]), 0, false),
        (with(17, &[(16, "aé", "en")]), 2, true),
        (vec![literal("aéé", "en")], 0, true),
    ];
    let all = snapshots(with(12, &ground), rounds);
    compare(&all[2], &extended(&all[2].text_order()));
    compare(&all[4], &all[4].text_order());
    compare(&all[7], &all[7].text_order());
}

#[test]
fn an_order_that_was_extended_after_merges_is_right_before_them() {
    let rounds = vec![
        (with(6, &[]), 0, false),
        (with(54, &[(4, "ba", ""), (34, "baa", "")]), 0, false),
        (with(9, &[(8, "ba", "")]), 1, true),
        (vec![], 1, true),
        (vec![], 1, false),
    ];
    let all = snapshots(with(6, &[]), rounds);
    let order = extended(&all[7].text_order());
    compare(&all[7], &order);
    compare(&all[2], &all[2].text_order());
}
