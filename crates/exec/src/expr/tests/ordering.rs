//! Is the order of terms total, and does it agree with `<` and with SPARQL's order of kinds?

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use jindou_model::{IdEpoch, TermId, TermKind, TextKind, TextPlace, Unavailable, inline, key};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode};

use super::support::{Cells, Sample, World, pool};
use crate::expr::extreme::of_all;
use crate::expr::{Numbered, OrderedTerms, SortKey, order_numbers};
use crate::{TermSource, Terms, TextOrder};

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
    loop {
        let order = &terms.extend_order(&mut |_| true);
        let found = order_numbers(ids, OrderedTerms { terms, order }, &mut |_| {
            Ok::<bool, ()>(true)
        });
        match found.unwrap() {
            Numbered::Numbers(numbers) => return numbers.to_vec(),
            Numbered::NoMemory => panic!("there is memory"),
            Numbered::OrderIsWanting => {}
            Numbered::Lost(why) => panic!("{why}"),
        }
    }
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
                terms.term(ids[left]).unwrap(),
                terms.term(ids[right]).unwrap()
            );
        }
    }
}

/// Terms in the order of their texts, as a store has them: vertices in two runs, behind them a
/// few without order; literals of a bulk load, behind them some of which the first are in order.
struct SortedTerms {
    vertices: Vec<Vec<u8>>,
    /// Where the second run and those without order begin.
    borders: [usize; 2],
    literals: Vec<Vec<u8>>,
    /// Where later ones begin.
    later: usize,
    /// How many literals are in order now.
    in_order: AtomicUsize,
    /// After how many texts that were read for want of it the order is to have all.
    patience: usize,
    /// How many keys were read, and how many of these were noted for want of an order.
    read: AtomicUsize,
    noted: AtomicUsize,
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
        let in_order = literals.len();
        let of_second = ["b3", "b11", "aaa", "zzz 11", "zzz 12", ""];
        literals.extend(of_second.map(|text| literal(text, "")));
        // The last one is that of a forgotten literal.
        let of_third = ["b10", "zzz 0", "zzz 111", "zzz 3", "0", "ab"];
        literals.extend(of_third.map(|text| literal(text, "")));
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
            later: border,
            in_order: AtomicUsize::new(in_order),
            patience: usize::MAX,
            read: AtomicUsize::new(0),
            noted: AtomicUsize::new(0),
        }
    }

    /// How many literals are in order from the beginning, and after how many texts all are.
    fn shared(in_order: usize, patience: usize) -> Arc<SortedSource> {
        let new = Self::new();
        Arc::new(SortedSource(Arc::new(Self {
            in_order: AtomicUsize::new(new.later + in_order),
            patience,
            ..new
        })))
    }

    fn ids(&self) -> Vec<TermId> {
        let vertices = (0..self.vertices.len()).map(|n| TermId::vertex(n as u64));
        let literals = (0..self.literals.len()).map(|n| TermId::literal(n as u64));
        vertices.chain(literals).collect()
    }
}

/// Shares its terms with the orders that it gives.
struct SortedSource(Arc<SortedTerms>);

/// The order of so many first literals.
struct SortedOrder(Arc<SortedTerms>, usize);

impl std::ops::Deref for SortedSource {
    type Target = SortedTerms;

    fn deref(&self) -> &SortedTerms {
        &self.0
    }
}

impl SortedOrder {
    fn literal_place(&self, local: usize, kind: TextKind) -> TextPlace {
        let Self(terms, in_order) = self;
        let key = &terms.literals[local];
        let mut ordered = terms.literals[..*in_order].to_vec();
        ordered.sort_unstable();
        ordered.dedup();
        match ordered.binary_search(key) {
            Ok(position) if local < *in_order => TextPlace::main(kind, position as u64),
            found => TextPlace {
                kind,
                run: TextPlace::ALONE,
                at: found.map_or_else(|next| 2 * next, |same| 2 * same + 1) as u64,
                order: 0,
            },
        }
    }
}

impl TextOrder for SortedOrder {
    fn place(&self, id: TermId) -> Option<TextPlace> {
        let terms = &self.0;
        let local = id.number() as usize;
        if id.kind() == TermKind::Vertex {
            let kind = match terms.vertices[local].starts_with(b"_:") {
                true => TextKind::Blank,
                false => TextKind::Iri,
            };
            let run = terms.borders.iter().filter(|border| local >= **border);
            let run = run.count() as u32;
            return (local < terms.borders[1]).then_some(TextPlace {
                kind,
                run,
                at: 0,
                order: local as u64,
            });
        }
        let (text, tag, datatype) = key::literal_parts(&terms.literals[local])?;
        let kind = match tag {
            _ if text.contains('\0') => return None,
            Some(_) => TextKind::LangString,
            None if datatype == xsd::STRING => TextKind::String,
            None => return None,
        };
        Some(self.literal_place(local, kind))
    }

    fn note_texts_read(&self, texts: usize) {
        self.0.noted.fetch_add(texts, Relaxed);
    }

    fn is_wanting(&self) -> bool {
        self.1 < self.0.literals.len() && self.0.noted.load(Relaxed) > self.0.patience
    }

    fn extended(&self, poll: &mut dyn FnMut(usize) -> bool) -> Option<Arc<dyn TextOrder>> {
        if !poll(1000) {
            return None;
        }
        self.0.in_order.store(self.0.literals.len(), Relaxed);
        Some(Arc::new(Self(Arc::clone(&self.0), self.0.literals.len())))
    }
}

impl TermSource for SortedSource {
    fn epoch(&self) -> IdEpoch {
        IdEpoch(1)
    }

    fn has(&self, id: TermId) -> bool {
        self.ids().contains(&id)
    }

    fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable> {
        let keys = match id.kind() {
            TermKind::Literal => &self.literals,
            _ => &self.vertices,
        };
        self.read.fetch_add(1, Relaxed);
        key.extend_from_slice(&keys[id.number() as usize]);
        Ok(())
    }

    fn lookup(&self, key: &[u8], literal: bool) -> Result<Option<TermId>, Unavailable> {
        let keys = if literal {
            &self.literals
        } else {
            &self.vertices
        };
        let number = keys.iter().position(|known| known == key);
        Ok(number.map(|number| match literal {
            true => TermId::literal(number as u64),
            false => TermId::vertex(number as u64),
        }))
    }

    fn text_order(&self) -> Option<Arc<dyn TextOrder>> {
        let in_order = self.in_order.load(Relaxed);
        Some(Arc::new(SortedOrder(Arc::clone(&self.0), in_order)))
    }
}

#[test]
fn numbers_order_any_terms_as_their_keys_do() {
    let world = World::default();
    let cx = world.context();
    let mut ids: Vec<TermId> = keys(&world).into_iter().map(|(_, id, _)| id).collect();
    ids.push(
        cx.terms()
            .intern_literal(&Literal::new_simple_literal("computed"))
            .unwrap(),
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
    for (in_order, patience) in [(0, usize::MAX), (10, usize::MAX), (24, 0), (0, 0), (3, 40)] {
        let source = SortedTerms::shared(in_order, patience);
        assert_runs_ordered_as_keys(&source);
    }
}

fn assert_runs_ordered_as_keys(source: &Arc<SortedSource>) {
    let terms = Terms::new(source.clone());
    let mut ids = source.ids();
    ids.extend([TermId::NONE, inline::from_boolean(true)]);
    ids.extend((-2..3).filter_map(inline::from_integer));
    for text in ["a computed one", "", "zzz"] {
        ids.push(
            terms
                .intern_literal(&Literal::new_simple_literal(text))
                .unwrap(),
        );
    }
    ids.push(
        terms
            .intern(NamedNode::new_unchecked("http://a/10").as_ref().into())
            .unwrap(),
    );
    let all = ids.len();
    for seed in 0..150_u64 {
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
fn no_text_is_read_where_positions_tell_the_order() {
    let source = SortedTerms::shared(10, usize::MAX);
    let terms = Terms::new(source.clone());
    let order = source.text_order().unwrap();
    let is_string = |id: &TermId| {
        let place = order.place(*id).filter(|_| id.kind() == TermKind::Literal);
        place.is_some_and(|place| place.kind == TextKind::String && place.run == TextPlace::MAIN)
    };
    let mut strings: Vec<TermId> = source.ids().into_iter().filter(is_string).collect();
    strings.sort_by_key(|id| &source.literals[id.number() as usize]);
    let ordered = numbers(&strings, &terms);
    assert!(ordered.is_sorted_by(|a, b| a < b), "numbers rise");
    assert!(
        ordered.len() > 12 && ordered[0] > strings.len() as u64,
        "they are no places"
    );
    assert_eq!(source.read.load(Relaxed), 0);
}

#[test]
fn only_texts_between_the_same_two_positions_are_read() {
    let source = SortedTerms::shared(10, usize::MAX);
    let terms = Terms::new(source.clone());
    let of_texts = |texts: &[&str]| -> Vec<TermId> {
        let id = |text: &&str| {
            let found = source.lookup(format!("{text}\0").as_bytes(), true);
            found.unwrap().unwrap()
        };
        texts.iter().map(id).collect()
    };
    let read = |texts: &[&str]| {
        let before = source.read.load(Relaxed);
        let numbers = numbers(&of_texts(texts), &terms);
        assert!(numbers.is_sorted_by(|a, b| a < b), "{texts:?}: {numbers:?}");
        source.read.load(Relaxed) - before
    };
    assert_eq!(read(&["", "A", "a", "aa", "ab", "b", "b1", "b2", "zz"]), 0);
    assert_eq!(
        read(&["b", "zz", "zzz 1", "zzz 11", "zzz 2", "\u{fffd}"]),
        0
    );
    assert_eq!(read(&["b", "b1", "b10", "b11", "zzz 1", "zzz 11"]), 2);
    assert_eq!(read(&["0", "a", "aaa", "b10"]), 0);
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

#[test]
fn texts_are_read_until_the_order_is_extended() {
    let source = SortedTerms::shared(0, 3);
    let ids: Vec<TermId> = source.ids();
    let strings = |terms: &Terms| {
        let order = terms.text_order();
        let is_placed = |id: &TermId| id.kind() == TermKind::Literal && order.place(*id).is_some();
        let some: Vec<TermId> = ids.iter().copied().filter(is_placed).collect();
        let before = source.read.load(Relaxed);
        numbers(&some, terms);
        source.read.load(Relaxed) - before
    };
    // Refused at first, it goes by what is known.
    let refused = Terms::new(source.clone());
    refused.text_order().note_texts_read(4);
    refused.extend_order(&mut |_| false);
    assert!(!refused.text_order().is_wanting());
    assert!(strings(&refused) > 0);
    assert!(strings(&refused) > 0);
    // The next query extends it, and reads no text.
    let next = Terms::new(source.clone());
    assert_eq!(strings(&next), 0);
    assert_eq!(strings(&next), 0);
    assert!(strings(&refused) > 0, "its order is another one");
}

/// Strings come in order, and all numbers before them.
fn assert_ordered(numbers: &[u64]) {
    let (strings, others) = numbers.split_at(numbers.len() - 2);
    assert!(strings.is_sorted_by(|a, b| a < b), "{strings:?}");
    assert!(others.iter().max() < strings.iter().min(), "{numbers:?}");
}

#[test]
fn least_and_greatest_of_placed_literals_are_those_of_their_keys() {
    let source = SortedTerms::shared(10, 200);
    let terms = Terms::new(source.clone());
    let ids = source.ids();
    let before = terms.text_order();
    for seed in 0..300_usize {
        let some = (0..9).map(|n| ids[(seed * 7919 + n * n * 31 + n * seed) % ids.len()]);
        let some: Vec<TermId> = some.collect();
        let now = terms.extend_order(&mut |_| true);
        for greatest in [false, true] {
            let found = of_all(&some, greatest, &terms, [&before, &now]);
            let keys = some.iter().map(|id| SortKey::new(*id, &terms));
            let right = if greatest { keys.max() } else { keys.min() };
            assert_eq!(Some(SortKey::new(found, &terms)), right);
        }
    }
    assert!(!before.is_same(&terms.text_order()), "it was extended");
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
