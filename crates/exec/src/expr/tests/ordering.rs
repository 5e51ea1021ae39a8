//! Is the order of terms total, and does it agree with `<` and with SPARQL's order of kinds?

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use jindou_model::{IdEpoch, TermId, TermKind, TextKind, TextPlace, inline, key};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode};

use super::support::{Cells, Sample, World, pool};
use crate::expr::extreme::of_all;
use crate::expr::{SortKey, order_numbers};
use crate::{TermSource, Terms};

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

/// The numbers of ids, none of which may be refused for want of memory.
fn numbers(ids: &[TermId], terms: &Terms) -> Vec<u64> {
    let numbers = order_numbers(ids, terms, &mut |_| Ok::<bool, ()>(true));
    numbers.unwrap().expect("there is memory").to_vec()
}

fn assert_ordered_as_keys(ids: &[TermId], terms: &Terms) {
    let numbers = numbers(ids, terms);
    let keys: Vec<SortKey> = ids.iter().map(|id| SortKey::new(*id, terms)).collect();
    for left in 0..ids.len() {
        for right in 0..ids.len() {
            assert_eq!(
                numbers[left].cmp(&numbers[right]),
                keys[left].cmp(&keys[right]),
                "{:?} and {:?}",
                terms.term(ids[left]),
                terms.term(ids[right])
            );
        }
    }
}

/// Terms in the order of their texts, as a store has them: vertices in two runs, behind them a
/// few without order; literals of a bulk load, behind them those of two tables and of none.
struct SortedTerms {
    vertices: Vec<Vec<u8>>,
    /// Where the second run and those without order begin.
    borders: [usize; 2],
    literals: Vec<Vec<u8>>,
    /// Where those of the tables begin, and those of none.
    literal_borders: [usize; 3],
    /// How many keys were read.
    read: AtomicUsize,
}

impl SortedTerms {
    fn new() -> Self {
        let vertex = |text: &str| text.as_bytes().to_vec();
        let mut first = [
            "http://a/1",
            "http://a/12",
            "_:b",
            "_:b1",
            "Http://a",
            "http://a/2",
        ];
        let mut second = [
            "http://a/11",
            "http://a/",
            "_:a",
            "_:b2",
            "x:y",
            "http://a/3",
        ];
        first.sort_unstable();
        second.sort_unstable();
        let rest = ["http://a/13", "_:b0", "_:", "http://a/0"];
        let literal = |text: &str, suffix: &str| format!("{text}\0{suffix}").into_bytes();
        let mut literals = Vec::new();
        for text in [
            "",
            "a",
            "a\0b",
            "a\u{1}",
            "ab",
            "b",
            "\u{fffd}",
            "\u{10000}",
        ] {
            literals.push(literal(text, ""));
            for tag in ["@de", "@en", "@en-GB"] {
                literals.push(literal(text, tag));
            }
        }
        literals.push(literal("01", "^http://www.w3.org/2001/XMLSchema#integer"));
        literals.push(literal("x", "^http://example.org/t"));
        literals.sort_unstable();
        let border = literals.len();
        // Not in the order of the texts, as terms keep the numbers that they got.
        let of_first = ["b2", "aa", "A", "b1", "zz", "zzz 2", "zzz 1", "aab\0"];
        literals.extend(of_first.map(|text| literal(text, "")));
        literals.extend([literal("a", "@en-A"), literal("b", "@zz")]);
        let of_second = ["b3", "b11", "aaa", "zzz 11", "zzz 12", ""];
        literals.extend(of_second.map(|text| literal(text, "")));
        let third = literals.len();
        // The last one is that of a forgotten literal.
        let of_none = ["b10", "zzz 0", "zzz 111", "zzz 3", "0", "ab"];
        literals.extend(of_none.map(|text| literal(text, "")));
        literals.extend([literal("b", "@zy"), literal("02", "^http://e/t")]);
        Self {
            borders: [first.len(), first.len() + second.len()],
            vertices: first
                .into_iter()
                .chain(second)
                .chain(rest)
                .map(vertex)
                .collect(),
            literals,
            literal_borders: [border, border + 10, third],
            read: AtomicUsize::new(0),
        }
    }

    fn ids(&self) -> Vec<TermId> {
        let vertices = (0..self.vertices.len()).map(|n| TermId::vertex(n as u64));
        let literals = (0..self.literals.len()).map(|n| TermId::literal(n as u64));
        vertices.chain(literals).collect()
    }
}

impl SortedTerms {
    fn literal_place(&self, local: usize, kind: TextKind) -> TextPlace {
        let [ground, first, second] = self.literal_borders;
        let run = [ground, first, second].into_iter().filter(|b| local >= *b);
        let (run, begin) = match run.count() {
            0 => (TextPlace::MAIN, 0),
            1 => (1, ground),
            2 => (2, first),
            _ => (TextPlace::ALONE, second),
        };
        let key = &self.literals[local];
        let less = |keys: &[Vec<u8>]| keys.iter().filter(|other| *other < key).count() as u64;
        let is_there = self.literals[..ground].contains(key);
        let order = match run {
            TextPlace::ALONE => 0,
            TextPlace::MAIN => local as u64,
            1 => less(&self.literals[begin..first]),
            _ => less(&self.literals[begin..second]),
        };
        TextPlace {
            kind,
            run,
            at: 2 * less(&self.literals[..ground]) + u64::from(is_there),
            order,
        }
    }
}

impl TermSource for SortedTerms {
    fn epoch(&self) -> IdEpoch {
        IdEpoch(1)
    }

    fn has(&self, id: TermId) -> bool {
        self.ids().contains(&id)
    }

    fn push_key(&self, id: TermId, key: &mut Vec<u8>) {
        let keys = match id.kind() {
            TermKind::Literal => &self.literals,
            _ => &self.vertices,
        };
        self.read.fetch_add(1, Relaxed);
        key.extend_from_slice(&keys[id.number() as usize]);
    }

    fn lookup(&self, key: &[u8], literal: bool) -> Option<TermId> {
        let keys = if literal {
            &self.literals
        } else {
            &self.vertices
        };
        let number = keys.iter().position(|known| known == key)? as u64;
        Some(match literal {
            true => TermId::literal(number),
            false => TermId::vertex(number),
        })
    }

    fn text_place(&self, id: TermId) -> Option<TextPlace> {
        let local = id.number() as usize;
        if id.kind() == TermKind::Vertex {
            let is_blank = self.vertices[local].starts_with(b"_:");
            let kind = if is_blank {
                TextKind::Blank
            } else {
                TextKind::Iri
            };
            let number = self
                .borders
                .iter()
                .filter(|border| local >= **border)
                .count();
            return (local < self.borders[1]).then_some(TextPlace {
                kind,
                run: number as u32,
                at: 0,
                order: local as u64,
            });
        }
        let (text, tag, datatype) = key::literal_parts(&self.literals[local])?;
        let kind = match tag {
            _ if text.contains('\0') => return None,
            Some(_) => TextKind::LangString,
            None if datatype == xsd::STRING => TextKind::String,
            None => return None,
        };
        Some(self.literal_place(local, kind))
    }
}

#[test]
fn numbers_order_any_terms_as_their_keys_do() {
    let world = World::default();
    let cx = world.context();
    let mut ids: Vec<TermId> = keys(&world).into_iter().map(|(_, id, _)| id).collect();
    ids.push(
        cx.terms()
            .intern_literal(&Literal::new_simple_literal("computed")),
    );
    ids.extend_from_within(..);
    assert_ordered_as_keys(&ids, cx.terms());
    for kind in [
        TermKind::Integer,
        TermKind::Decimal,
        TermKind::Double,
        TermKind::DateTime,
    ] {
        let of_kind: Vec<TermId> = ids.iter().copied().filter(|id| id.kind() == kind).collect();
        assert!(of_kind.len() > 2, "{kind:?}");
        assert_ordered_as_keys(&of_kind, cx.terms());
    }
}

#[test]
fn numbers_order_terms_of_sorted_runs_as_their_keys_do() {
    let source = Arc::new(SortedTerms::new());
    let terms = Terms::new(source.clone());
    let mut ids = source.ids();
    ids.extend([TermId::NONE, inline::from_boolean(true)]);
    ids.extend((-2..3).filter_map(inline::from_integer));
    for text in ["a computed one", "", "zzz"] {
        ids.push(terms.intern_literal(&Literal::new_simple_literal(text)));
    }
    ids.push(terms.intern(NamedNode::new_unchecked("http://a/10").as_ref().into()));
    let all = ids.len();
    for seed in 0..400_u64 {
        // Subsets of all sizes and kinds; few of them hold what no order is known of.
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        let (from, to) = (random() % all, random() % all);
        let some = &ids[from.min(to)..=from.max(to)];
        let some: Vec<TermId> = (0..40).map(|_| some[random() % some.len()]).collect();
        assert_ordered_as_keys(&some, &terms);
    }
}

#[test]
fn no_text_is_read_where_ids_tell_the_order() {
    let source = Arc::new(SortedTerms::new());
    let terms = Terms::new(source.clone());
    let is_string = |id: &TermId| {
        let place = source
            .text_place(*id)
            .filter(|_| id.kind() == TermKind::Literal);
        place.is_some_and(|place| place.kind == TextKind::String && place.run == TextPlace::MAIN)
    };
    let strings: Vec<TermId> = source.ids().into_iter().filter(is_string).collect();
    let ordered = numbers(&strings, &terms);
    assert!(ordered.is_sorted_by(|a, b| a < b), "numbers rise as ids do");
    assert!(
        ordered.len() > 5 && ordered[0] > strings.len() as u64,
        "they are no places"
    );
    assert_eq!(source.read.load(Relaxed), 0);
}

#[test]
fn only_texts_between_the_same_two_of_the_bulk_load_are_read() {
    let source = Arc::new(SortedTerms::new());
    let terms = Terms::new(source.clone());
    let of_texts = |texts: &[&str]| -> Vec<TermId> {
        let id = |text: &&str| source.lookup(format!("{text}\0").as_bytes(), true).unwrap();
        texts.iter().map(id).collect()
    };
    let read = |texts: &[&str]| {
        let before = source.read.load(Relaxed);
        let numbers = numbers(&of_texts(texts), &terms);
        assert!(numbers.is_sorted_by(|a, b| a < b), "{texts:?}: {numbers:?}");
        source.read.load(Relaxed) - before
    };
    // Those of one table are in the order of their rows there.
    assert_eq!(read(&["", "A", "a", "aa", "ab", "b", "b1", "b2", "zz"]), 0);
    assert_eq!(read(&["b", "zz", "zzz 1", "zzz 2", "\u{fffd}"]), 0);
    assert_eq!(read(&["b", "b1", "b11", "zzz 11", "zzz 12"]), 2);
    assert_eq!(read(&["0", "a", "aaa", "b10"]), 0);
    assert_eq!(read(&["A", "a", "aaa", "b1", "b10"]), 2);
    let mixed = of_texts(&["A", "aa", "ab", "b", "b1", "b2", "zz"]);
    let before = source.read.load(Relaxed);
    let doubles = (1..3).map(|n| inline::encode(&format!("{n}.5"), xsd::DOUBLE.as_str()));
    let mixed: Vec<TermId> = mixed
        .into_iter()
        .chain(doubles.map(Option::unwrap))
        .collect();
    assert_ordered(&numbers(&mixed, &terms));
    assert_eq!(source.read.load(Relaxed), before);
}

/// Strings come in order, and all numbers before them.
fn assert_ordered(numbers: &[u64]) {
    let (strings, others) = numbers.split_at(numbers.len() - 2);
    assert!(strings.is_sorted_by(|a, b| a < b), "{strings:?}");
    assert!(others.iter().max() < strings.iter().min(), "{numbers:?}");
}

#[test]
fn least_and_greatest_of_placed_literals_are_those_of_their_keys() {
    let source = Arc::new(SortedTerms::new());
    let terms = Terms::new(source.clone());
    let ids = source.ids();
    for seed in 0..300_usize {
        let some = (0..9).map(|n| ids[(seed * 7919 + n * n * 31 + n * seed) % ids.len()]);
        let some: Vec<TermId> = some.collect();
        for greatest in [false, true] {
            let found = of_all(&some, greatest, &terms);
            let keys = some.iter().map(|id| SortKey::new(*id, &terms));
            let right = if greatest { keys.max() } else { keys.min() };
            assert_eq!(Some(SortKey::new(found, &terms)), right);
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
