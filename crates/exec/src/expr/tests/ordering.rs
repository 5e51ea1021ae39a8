//! Is the order of terms total, and does it agree with `<` and with SPARQL's order of kinds?

use std::cmp::Ordering;

use jindou_model::{TermId, inline};

use super::support::{Cells, Sample, World, pool};
use crate::expr::{SortColumn, SortKey};

/// Every term of the pool, unbound and blank nodes included, with its key.
fn keys(world: &World) -> Vec<(String, TermId, SortKey)> {
    let cx = world.context();
    let mut terms = pool();
    terms.extend(["_:a".to_owned(), "_:b".to_owned()]);
    let mut keys: Vec<_> = terms
        .into_iter()
        .map(|text| {
            let id = world.insert(&text);
            (text, id, SortKey::new(id, cx.terms()))
        })
        .collect();
    keys.push((
        "unbound".to_owned(),
        TermId::NONE,
        SortKey::new(TermId::NONE, cx.terms()),
    ));
    keys
}

#[test]
fn the_order_is_total() {
    let world = World::default();
    let keys = keys(&world);
    for (a, _, left) in &keys {
        for (b, _, middle) in &keys {
            assert_eq!(left.cmp(middle), middle.cmp(left).reverse(), "{a} and {b}");
            for (c, _, right) in &keys {
                if left <= middle && middle <= right {
                    assert!(left <= right, "{a}, {b}, {c}");
                }
                if left == middle {
                    assert_eq!(left.cmp(right), middle.cmp(right), "{a}, {b}, {c}");
                }
            }
        }
    }
}

#[test]
fn what_is_less_comes_before() {
    let world = World::default();
    let cx = world.context();
    let less = Sample::parse("?a < ?b").compile(&cx);
    let mut ordered = 0;
    let keys = keys(&world);
    for (a, left_id, left) in &keys {
        for (b, right_id, right) in &keys {
            if less.effective_boolean(&Cells(vec![*left_id, *right_id]), &cx) {
                assert_eq!(left.cmp(right), Ordering::Less, "{a} < {b}");
                ordered += 1;
            }
        }
    }
    assert!(ordered > 500, "only {ordered} pairs are ordered");
}

#[test]
fn kinds_of_terms_come_in_the_order_of_section_15_1() {
    let world = World::default();
    let cx = world.context();
    let ids = ["\"z\"", "1", "<http://example.org/a>", "_:z"].map(|text| world.insert(text));
    let keys = ids.map(|id| SortKey::new(id, cx.terms()));
    assert!(keys[0] > keys[1] && keys[1] > keys[2] && keys[2] > keys[3]);
    assert!(keys[3] > SortKey::new(TermId::NONE, cx.terms()));
}

#[test]
fn numbers_beyond_what_doubles_tell_apart_are_ordered() {
    let world = World::default();
    let cx = world.context();
    let texts = [
        "9007199254740992",
        "\"9007199254740992.000000000000000001\"^^<http://www.w3.org/2001/XMLSchema#decimal>",
        "\"9007199254740992.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>",
        "9007199254740993",
        "9223372036854775806",
        "9223372036854775807",
    ];
    let keys = texts.map(|text| SortKey::new(world.insert(text), cx.terms()));
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
    let double = world.insert("\"9007199254740992\"^^<http://www.w3.org/2001/XMLSchema#double>");
    assert_eq!(SortKey::new(double, cx.terms()), keys[0]);
    assert!(SortKey::new(double, cx.terms()) < keys[1]);
}

#[test]
fn a_column_of_integers_needs_no_keys_and_sorts_the_same() {
    let world = World::default();
    let cx = world.context();
    let ids: Vec<TermId> = [5, -3, 0, 5, 1 << 40]
        .into_iter()
        .filter_map(inline::from_integer)
        .collect();
    let integers = SortColumn::new(&ids, cx.terms());
    assert!(matches!(integers, SortColumn::Integers(_)));
    let mut mixed = ids.clone();
    mixed.push(world.insert("\"a\""));
    let keys = SortColumn::new(&mixed, cx.terms());
    assert!(matches!(keys, SortColumn::Keys(_)));
    assert!(keys.bytes() > integers.bytes());
    for left in 0..ids.len() {
        for right in 0..ids.len() {
            assert_eq!(integers.compare(left, right), keys.compare(left, right));
        }
    }
}

#[test]
fn times_held_inline_and_others_share_one_time_line() {
    let world = World::default();
    let cx = world.context();
    for (inline, other) in [
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.0Z"),
        ("2024-02-29T12:00:00+01:00", "2024-02-29T12:00:00.0+01:00"),
        ("0001-01-01T00:00:00", "0001-01-01T00:00:00.00"),
        ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.9990Z"),
    ] {
        let keys = [inline, other].map(|text| {
            let id = world.insert(&format!(
                "\"{text}\"^^<http://www.w3.org/2001/XMLSchema#dateTime>"
            ));
            (id.is_inline(), SortKey::new(id, cx.terms()))
        });
        assert!(
            keys[0].0 && !keys[1].0,
            "{inline} is held inline and {other} is not"
        );
        assert_eq!(keys[0].1, keys[1].1, "{inline}");
    }
}
