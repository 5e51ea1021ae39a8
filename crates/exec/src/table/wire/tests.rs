//! Does a table arrive as it was sent, and does nothing that arrives do harm?

use std::sync::Arc;

use jindou_model::{IdEpoch, TermId, TermKind, Unavailable, inline, key};
use jindou_plan::physical::Var;
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, Literal, NamedNode, Term, TermRef};
use proptest::prelude::*;

use super::{HEADER_BYTES, VERSION};
use crate::table::{COUNTS, NUMBERS, OF_ROWS};
use crate::test_world::World;
use crate::{Column, ExecError, Table, TermSource, Terms, WireError};

/// Terms that the store has, of each kind.
const STORED: u64 = 20;
/// Bytes that a query has.
const MEMORY_BYTES: u64 = 1 << 30;

/// `http://e/0` to `http://e/19` and `"0"` to `"19"`.
struct Stored {
    epoch: u64,
}

impl TermSource for Stored {
    fn epoch(&self) -> IdEpoch {
        IdEpoch(self.epoch)
    }

    fn has(&self, id: TermId) -> bool {
        id.number() < STORED
    }

    fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable> {
        assert!(self.has(id), "{id:?} is no stored term");
        match id.kind() {
            TermKind::Literal => key.extend(format!("{}\0", id.number()).bytes()),
            _ => key.extend(format!("http://e/{}", id.number()).bytes()),
        }
        Ok(())
    }

    fn lookup(&self, key: &[u8], literal: bool) -> Result<Option<TermId>, Unavailable> {
        let text = std::str::from_utf8(key).expect("keys of tests are texts");
        let number = match literal {
            true => text.strip_suffix('\0'),
            false => text.strip_prefix("http://e/"),
        };
        let known = (0..STORED).find(|known| Some(&*known.to_string()) == number);
        Ok(known.map(|known| match literal {
            true => TermId::literal(known),
            false => TermId::vertex(known),
        }))
    }
}

/// What a query begins with.
fn terms(epoch: u64) -> Terms {
    Terms::new(Arc::new(Stored { epoch }))
}

/// A value of a row, before it has an id.
#[derive(Clone, Debug)]
enum Cell {
    Unbound,
    Known(TermId),
    Term(Term),
}

impl Cell {
    fn id(&self, terms: &Terms) -> TermId {
        match self {
            Self::Unbound => TermId::NONE,
            Self::Known(id) => *id,
            Self::Term(term) => terms.intern(TermRef::from(term)).unwrap(),
        }
    }
}

fn cell() -> impl Strategy<Value = Cell> {
    let text = prop_oneof!["[a-c]{0,3}", any::<String>()];
    let iri = "http://[a-z/]{0,5}".prop_map(|iri| NamedNode::new_unchecked(iri).into());
    let stored = (0..2 * STORED).prop_map(|n| NamedNode::new_unchecked(format!("http://e/{n}")));
    let blank = "[a-z0-9]{1,4}".prop_map(|label| BlankNode::new_unchecked(label).into());
    let number = any::<i128>().prop_map(|n| {
        let lexical = n.to_string();
        Literal::new_typed_literal(lexical, xsd::INTEGER).into()
    });
    let literal = (text, 0..4).prop_map(|(text, kind)| {
        let datatype = NamedNode::new_unchecked("http://e/type");
        let literal = match kind {
            0 => Literal::new_simple_literal(text),
            1 => Literal::new_language_tagged_literal_unchecked(text, "en-gb"),
            2 => Literal::new_typed_literal(text, datatype),
            _ => Literal::new_typed_literal(text, xsd::DOUBLE),
        };
        literal.into()
    });
    let term = prop_oneof![iri, stored.prop_map(Term::from), blank, number, literal];
    let value = (-1_000..1_000_i64).prop_map(|n| inline::from_integer(n).expect("a small one"));
    let known = prop_oneof![
        (0..STORED).prop_map(TermId::vertex),
        (0..STORED).prop_map(TermId::literal),
        value,
        any::<bool>().prop_map(inline::from_boolean),
    ];
    prop_oneof![
        1 => Just(Cell::Unbound),
        2 => known.prop_map(Cell::Known),
        4 => term.prop_map(Cell::Term),
    ]
}

/// A column, before its terms have ids.
#[derive(Clone, Debug)]
enum Plain {
    Cells(Vec<Cell>),
    Other(Column),
}

fn numbers(rows: usize) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0..u64::MAX >> 8, rows)
}

fn column(rows: usize) -> impl Strategy<Value = Plain> {
    let origins = prop::collection::vec(any::<u32>(), rows);
    let other = prop_oneof![
        origins.prop_map(Column::Rows),
        numbers(rows).prop_map(Column::Counts),
        numbers(rows).prop_map(Column::Numbers),
    ];
    prop_oneof![
        4 => prop::collection::vec(cell(), rows).prop_map(Plain::Cells),
        1 => other.prop_map(Plain::Other),
    ]
}

/// A table, before its terms have ids.
#[derive(Clone, Debug)]
struct Described {
    rows: usize,
    columns: Vec<Option<Plain>>,
    counts: Option<Vec<u64>>,
    numbers: Option<Vec<u64>>,
}

fn described() -> impl Strategy<Value = Described> {
    (0..12_usize, 0..6_usize).prop_flat_map(|(rows, width)| {
        let columns = prop::collection::vec(prop::option::of(column(rows)), width);
        let own = || prop::option::of(numbers(rows));
        (columns, own(), own()).prop_map(move |(columns, counts, numbers)| Described {
            rows,
            columns,
            counts,
            numbers,
        })
    })
}

impl Described {
    fn table(&self, terms: &Terms) -> Table {
        let mut table = Table::with_rows(self.columns.len(), self.rows);
        for (number, plain) in self.columns.iter().enumerate() {
            let var = Var(number as u16);
            match plain {
                None => (),
                Some(Plain::Cells(cells)) => {
                    table.set(var, cells.iter().map(|cell| cell.id(terms)).collect());
                }
                Some(Plain::Other(column)) => table.set_column(var, column.clone()),
            }
        }
        table.columns[COUNTS] = self.counts.clone().map(Column::Counts);
        table.columns[NUMBERS] = self.numbers.clone().map(Column::Numbers);
        table
    }
}

/// A column as text.
fn written(column: Option<&Column>, terms: &Terms) -> String {
    match column {
        Some(Column::Ids(ids)) => {
            let terms = ids.iter().map(|id| terms.term(*id).unwrap());
            format!("{:?}", terms.collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

fn assert_same((sent, of_sent): (&Table, &Terms), (got, of_got): (&Table, &Terms)) {
    assert_eq!((got.rows(), got.width()), (sent.rows(), sent.width()));
    for (sent, got) in sent.columns.iter().zip(&got.columns) {
        let (sent, got) = (sent.as_ref(), got.as_ref());
        assert_eq!(written(got, of_got), written(sent, of_sent));
    }
}

/// The error of bytes that are no table.
fn refused(bytes: &[u8], terms: &Terms, world: &World) -> WireError {
    match Table::decode(bytes, terms, &world.cx) {
        Err(ExecError::Wire(error)) => error,
        other => panic!("{other:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_table_arrives_with_the_same_texts_under_other_ids(
        described in described(),
        others in prop::collection::vec(cell(), 0..8),
    ) {
        let world = World::new(MEMORY_BYTES);
        let (here, there) = (terms(1), terms(1));
        for other in &others {
            other.id(&there);
        }
        let sent = described.table(&here);
        let encoded = sent.encode(&here, &world.cx).expect("there is room");
        let got = Table::decode(encoded.bytes(), &there, &world.cx).expect("it was sent so");
        assert_same((&sent, &here), (&got, &there));
        // And each term has one id there, as everywhere.
        for (sent, got) in described.table(&there).columns.iter().zip(&got.columns) {
            prop_assert_eq!(sent, got);
        }
        drop((sent, encoded, got));
        world.assert_clean();
    }

    #[test]
    fn damaged_bytes_are_refused_or_a_table_of_known_terms(
        described in described(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let world = World::new(MEMORY_BYTES);
        let here = terms(1);
        let sent = described.table(&here);
        let mut bytes = sent.encode(&here, &world.cx).expect("there is room").bytes().to_vec();
        for (place, bits) in &damage {
            let place = place.index(bytes.len());
            bytes[place] ^= *bits;
        }
        if let Some(end) = end {
            bytes.truncate(end.index(bytes.len()));
        }
        let there = terms(1);
        match Table::decode(&bytes, &there, &world.cx) {
            Ok(got) => got.columns.iter().for_each(|column| {
                written(column.as_ref(), &there);
            }),
            Err(ExecError::Wire(_)) => (),
            Err(other) => panic!("{other}"),
        }
    }
}

/// A table of a vertex, a computed literal and a number.
fn small(terms: &Terms) -> Table {
    let literal = Literal::new_typed_literal("x", NamedNode::new_unchecked("http://e/t"));
    let literal = terms.intern_literal(&literal).unwrap();
    let mut table = Table::with_rows(2, 3);
    let number = inline::from_integer(5).expect("a small one");
    table.set(Var(1), vec![TermId::vertex(3), literal, number]);
    table
}

#[test]
fn columns_lie_in_place_as_plain_arrays() {
    let (world, terms) = (World::new(MEMORY_BYTES), terms(7));
    let mut table = small(&terms);
    table.set_origins(Var(0));
    let encoded = table.encode(&terms, &world.cx).expect("there is room");
    let bytes = encoded.bytes();
    let word = |place: usize| {
        let (words, _) = bytes[place..].as_chunks();
        u64::from_le_bytes(words[0])
    };
    assert_eq!(word(16), 7, "the epoch");
    assert_eq!(word(24), 3, "the rows");
    let rows = HEADER_BYTES + 2 * 8;
    assert_eq!([word(rows), word(rows + 8)], [1 << 32, 2]);
    let ids = rows + 16;
    let in_message = TermId::new(TermKind::Computed, 0);
    assert_eq!(word(ids), TermId::vertex(3).raw());
    assert_eq!(word(ids + 8), in_message.raw());
    assert!(bytes.ends_with(b"xhttp://e/t"));
}

#[test]
fn what_is_unknown_is_refused_by_name() {
    let (world, here) = (World::new(MEMORY_BYTES), terms(1));
    let encoded = small(&here).encode(&here, &world.cx).expect("room");
    let bytes = encoded.bytes();
    let with = |place: usize, value: u8| {
        let mut bytes = bytes.to_vec();
        bytes[place] = value;
        bytes
    };
    let (column, values) = (HEADER_BYTES, HEADER_BYTES + 8);
    let (term, text) = (values + 3 * 8, values + 3 * 8 + 16);
    let cases = [
        (
            with(0, b'X'),
            WireError::NoTable {
                found: *b"XNDTABLE",
            },
        ),
        (
            with(8, 9),
            WireError::Version {
                found: 9,
                known: VERSION,
            },
        ),
        (
            with(column, 2),
            WireError::Variable {
                column: 0,
                variable: 2,
            },
        ),
        (
            with(column + 4, 9),
            WireError::ColumnKind { column: 0, kind: 9 },
        ),
        (
            with(values + 7, 0x30),
            WireError::Id {
                column: 0,
                row: 0,
                id: 0x3000_0000_0000_0003,
            },
        ),
        (
            with(values, 20),
            WireError::Id {
                column: 0,
                row: 0,
                id: TermId::vertex(20).raw(),
            },
        ),
        (
            with(values + 8, 1),
            WireError::Id {
                column: 0,
                row: 1,
                id: 0xf000_0000_0000_0001,
            },
        ),
        (with(term, 6), WireError::TermKind { term: 0, kind: 6 }),
        (
            with(text, 0xff),
            WireError::Text {
                term: 0,
                part: "text",
            },
        ),
        (
            with(text + 1, 0),
            WireError::Text {
                term: 0,
                part: "text",
            },
        ),
        (
            bytes[..bytes.len() - 1].to_vec(),
            WireError::Truncated {
                part: "the texts",
                end: bytes.len() - 1,
            },
        ),
        ([bytes, b"!"].concat(), WireError::TooLong { bytes: 1 }),
    ];
    for (bytes, error) in cases {
        assert_eq!(refused(&bytes, &terms(1), &world), error);
    }
    let epoch = WireError::Epoch {
        theirs: IdEpoch(1),
        ours: IdEpoch(2),
    };
    assert_eq!(refused(bytes, &terms(2), &world), epoch);
}

#[test]
fn lengths_that_no_table_has_are_refused_before_anything_is_held() {
    let (world, here) = (World::new(MEMORY_BYTES), terms(1));
    let encoded = small(&here).encode(&here, &world.cx).expect("room");
    // From the third byte of the variables on: of a table with 2^16 there may be few columns.
    for place in (14..16).chain(24..HEADER_BYTES) {
        let mut bytes = encoded.bytes().to_vec();
        bytes[place] |= 0xf0;
        let error = refused(&bytes, &terms(1), &world);
        let is_length = matches!(
            error,
            WireError::Truncated { .. } | WireError::TooMany { .. } | WireError::TooLong { .. }
        );
        assert!(is_length, "byte {place}: {error}");
    }
}

#[test]
fn a_term_that_the_receiver_has_gets_its_id_there() {
    let (world, here, there) = (World::new(MEMORY_BYTES), terms(1), terms(1));
    let mut bytes = Vec::new();
    for term in [
        NamedNode::new_unchecked("http://e/4").into(),
        Term::from(Literal::new_simple_literal("4")),
    ] {
        key::push_term(&mut bytes, term.as_ref());
    }
    // A sender whose store lacks them computes them.
    let mut table = Table::with_rows(1, 2);
    let computed = [(&bytes[..10], false), (&bytes[10..], true)];
    let lacking = Terms::new(Arc::new(Lacking));
    let ids = computed.map(|(key, literal)| lacking.intern_key(key, literal).unwrap());
    assert!(ids.iter().all(|id| id.kind() == TermKind::Computed));
    table.set(Var(0), ids.to_vec());
    let encoded = table.encode(&lacking, &world.cx).expect("room");
    for terms in [here, there] {
        let got = Table::decode(encoded.bytes(), &terms, &world.cx).expect("it was sent so");
        let known = [TermId::vertex(4), TermId::literal(4)];
        assert_eq!(got.get(Var(0)), Some(known.as_slice()));
        assert_eq!(terms.computed_bytes(), 0, "nothing is computed twice");
    }
}

/// A store of the same epoch without a term.
struct Lacking;

impl TermSource for Lacking {
    fn epoch(&self) -> IdEpoch {
        IdEpoch(1)
    }

    fn has(&self, _: TermId) -> bool {
        false
    }

    fn push_key(&self, id: TermId, _: &mut Vec<u8>) -> Result<(), Unavailable> {
        panic!("nobody has {id:?}");
    }

    fn lookup(&self, _: &[u8], _: bool) -> Result<Option<TermId>, Unavailable> {
        Ok(None)
    }
}

#[test]
fn a_table_is_reserved_before_it_is_held() {
    let here = terms(1);
    let rows = 1 << 17;
    let mut table = Table::with_rows(1, rows);
    let text = Literal::new_simple_literal("x".repeat(4 << 20));
    table.set(Var(0), vec![here.intern_literal(&text).unwrap(); rows]);
    let roomy = World::new(MEMORY_BYTES);
    let encoded = table.encode(&here, &roomy.cx).expect("there is room");
    assert!(roomy.cx.held_bytes() >= encoded.bytes().len() as u64);
    let narrow = World::new(2 << 20);
    let there = terms(1);
    let read = Table::decode(encoded.bytes(), &there, &narrow.cx);
    assert!(matches!(read, Err(ExecError::Memory { .. })), "{read:?}");
    assert_eq!(there.computed_bytes(), 0, "nothing was put there");
    let written = table.encode(&here, &narrow.cx).map(drop);
    assert!(
        matches!(written, Err(ExecError::Memory { .. })),
        "{written:?}"
    );
}

#[test]
fn columns_of_the_rows_are_counts_and_numbers_only() {
    let (world, here) = (World::new(MEMORY_BYTES), terms(1));
    let mut table = small(&here);
    table.number_solutions(40);
    table.set_counts(vec![2, u64::MAX, 3]);
    assert_eq!(table.columns.len(), OF_ROWS + 2);
    let encoded = table.encode(&here, &world.cx).expect("room");
    let counts = WireError::Counts { column: 0 };
    assert_eq!(refused(encoded.bytes(), &terms(1), &world), counts);
    let mut bytes = encoded.bytes().to_vec();
    bytes[HEADER_BYTES + 4] = 1;
    let error = refused(&bytes, &terms(1), &world);
    assert!(matches!(error, WireError::Id { column: 0, .. }), "{error}");
    bytes[HEADER_BYTES + 4] = 3;
    let error = refused(&bytes, &terms(1), &world);
    assert!(
        matches!(error, WireError::OfRows { column: 1, .. }),
        "{error}"
    );
}
