//! Do places tell the order of literals that their texts have: of a bulk load, of tables that merges
//! made, and of the delta?

use std::cmp::Ordering;
use std::collections::BTreeSet;

use jindou_model::{
    GraphRef, IdQuad, Pattern, SnapshotNumber, TermId, TermKind, TextKind, TextPlace, key,
};
use jindou_store::bulk::{BulkSink, build};
use jindou_store::{Changes, Merged, Rebase, Snapshot};
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
        Ordering::Equal if left.run == right.run && left.run != TextPlace::ALONE => {
            Some(left.order.cmp(&right.order))
        }
        Ordering::Equal => None,
        order => Some(order),
    }
}

fn compare(now: &Snapshot) {
    let literals = living(now);
    for (id, key) in &literals {
        let (text, tag, _) = key::literal_parts(key).unwrap();
        let place = now.text_place(*id);
        let expected = match tag {
            _ if text.contains('\0') => None,
            Some(_) => Some(TextKind::LangString),
            None if key.ends_with(&[0]) => Some(TextKind::String),
            None => None,
        };
        assert_eq!(place.map(|place| place.kind), expected, "{key:?}");
        for (other_id, other) in &literals {
            let both = place.zip(now.text_place(*other_id));
            let both = both.filter(|(one, other)| one.kind == other.kind);
            if let Some(told) = both.and_then(|(one, other)| order(one, other)) {
                assert_eq!(told, key.cmp(other), "{key:?} and {other:?}");
            }
            let in_main = [id, other_id].map(|id| {
                let place = now.text_place(*id);
                place.is_some_and(|place| place.run == TextPlace::MAIN)
            });
            let is_told = both.is_none_or(|(one, other)| order(one, other).is_some());
            assert!(is_told || in_main == [false; 2], "{key:?} and {other:?}");
        }
    }
}

proptest! {
    #[test]
    fn places_tell_the_order_of_texts(
        ground in literals(),
        rounds in prop::collection::vec((literals(), 0..3_usize, any::<bool>()), 0..6),
    ) {
        let mut now = load(&ground);
        let mut known = ground;
        compare(&now);
        for (added, removed, is_merged) in rounds {
            let removed: Vec<Literal> = known.iter().skip(removed).step_by(3).cloned().collect();
            change(&mut now, &removed, &added);
            known.extend(added);
            compare(&now);
            if is_merged {
                now = merge(&now);
                compare(&now);
            }
        }
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
    let ask = |now: &Snapshot| {
        let all = living(now);
        assert!(all.iter().all(|(id, _)| now.text_place(*id).is_some()));
    };
    let unasked = merge(&now);
    let before = now.appended_bytes();
    ask(&now);
    let asked = now.appended_bytes() - before;
    assert!((2000 * 8..2000 * 8 + 8192).contains(&asked), "{asked}");
    let bytes = |now: &Snapshot| now.base().literal_tables().bytes();
    let before = bytes(&unasked);
    ask(&unasked);
    let asked = bytes(&unasked) - before;
    assert!((2000 * 8..2000 * 8 + 8192).contains(&asked), "{asked}");
    // Places that somebody asked for are found by the merge.
    let merged = merge(&now);
    let before = bytes(&merged);
    assert_eq!(before, bytes(&unasked));
    ask(&merged);
    assert_eq!(bytes(&merged), before);
}
