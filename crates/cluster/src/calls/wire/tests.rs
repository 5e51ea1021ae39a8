//! Does a call arrive as it was made, and does nothing that arrives do harm?

use std::borrow::Cow;

use jindou_model::{
    Cursor, Direction, IdRanges, Membership, Pattern, Precision, PredicateId, ShardId, TermId,
    TermKind, Unavailable,
};
use proptest::prelude::*;

use super::super::words::{
    Answer, AskedGraph, AskedList, AskedPattern, Call, MOST_ROWS, Page, PageAsked, Place, Quad,
    Refusal, Request, RequestNumber, ServedId, Strings,
};
use super::{CallError, NUMBER, number_of_answer, number_of_request, set_number};

fn id() -> impl Strategy<Value = TermId> {
    let kinds = [
        TermKind::Vertex,
        TermKind::Literal,
        TermKind::Integer,
        TermKind::Date,
        TermKind::Computed,
    ];
    let payload = prop_oneof![0..100_u64, 0..1_u64 << 60];
    let some = (prop::sample::select(kinds.to_vec()), payload);
    prop_oneof![
        9 => some.prop_map(|(kind, payload)| TermId::new(kind, payload)),
        1 => Just(TermId::NONE),
    ]
}

fn ids(count: usize) -> impl Strategy<Value = Cow<'static, [TermId]>> {
    prop::collection::vec(id(), count).prop_map(Cow::Owned)
}

fn ranges() -> impl Strategy<Value = IdRanges> {
    prop::collection::vec((1..1_000_u64, 1..1_000_u64), 0..6).prop_map(|steps| {
        let (mut ranges, mut at) = (IdRanges::new(), 0);
        for (gap, length) in steps {
            let first = at + gap;
            at = first + length;
            ranges.push(TermId::from_raw(first), TermId::from_raw(at));
        }
        ranges
    })
}

fn some_ranges() -> impl Strategy<Value = Option<IdRanges>> {
    prop_oneof![
        Just(None),
        Just(Some(IdRanges::all())),
        ranges().prop_map(Some)
    ]
}

fn direction() -> impl Strategy<Value = Direction> {
    prop::sample::select(vec![Direction::Out, Direction::In])
}

fn predicate() -> impl Strategy<Value = PredicateId> {
    prop_oneof![0..9_u32, any::<u32>()].prop_map(PredicateId)
}

fn membership() -> impl Strategy<Value = Membership> {
    let has = (predicate(), direction());
    prop_oneof![
        id().prop_map(Membership::Type),
        has.prop_map(|(predicate, direction)| Membership::Has(predicate, direction)),
    ]
}

fn graph_of_no_row() -> impl Strategy<Value = AskedGraph<'static>> {
    prop_oneof![
        Just(AskedGraph::Default),
        Just(AskedGraph::Named),
        Just(AskedGraph::Union),
        id().prop_map(AskedGraph::One),
        (0..5_usize).prop_flat_map(ids).prop_map(AskedGraph::Some),
    ]
}

fn graph(rows: usize) -> impl Strategy<Value = AskedGraph<'static>> {
    prop_oneof![
        4 => graph_of_no_row(),
        1 => ids(rows).prop_map(AskedGraph::Each),
    ]
}

fn list(rows: usize) -> impl Strategy<Value = AskedList<'static>> {
    (predicate(), direction(), ids(rows)).prop_map(|(predicate, direction, keys)| AskedList {
        predicate,
        direction,
        keys,
    })
}

fn asked_pattern(predicates: usize) -> impl Strategy<Value = AskedPattern<'static>> {
    let predicates = prop::collection::vec(predicate(), predicates);
    (pattern(), predicates).prop_map(|(pattern, predicates)| AskedPattern {
        pattern,
        predicates: Cow::Owned(predicates),
    })
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let end = || prop::option::of(id());
    (end(), prop::option::of(predicate()), end()).prop_map(|(subject, predicate, object)| Pattern {
        subject,
        predicate,
        object,
    })
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        Just(Place::Start),
        any::<u64>().prop_map(Place::After),
        (id(), any::<usize>()).prop_map(|(id, offset)| Place::At(id, offset)),
    ]
}

fn page_asked() -> impl Strategy<Value = PageAsked> {
    let asked = (any::<u32>(), place(), 0..1000_usize);
    asked.prop_map(|(turn, from, most)| PageAsked { turn, from, most })
}

fn expand(rows: usize) -> impl Strategy<Value = Call<'static>> {
    let lists = prop::collection::vec(list(rows), 1..4);
    let numbers = (any::<usize>(), 0..60_000_usize);
    (graph(rows), lists, numbers, some_ranges()).prop_map(
        |(graph, lists, (offset, budget), allowed)| Call::Expand {
            graph,
            lists,
            offset,
            allowed,
            budget,
        },
    )
}

fn members() -> impl Strategy<Value = Call<'static>> {
    let precision = prop_oneof![
        Just(Precision::Exact),
        Just(Precision::Filter),
        membership().prop_map(Precision::FilterOf),
    ];
    let memberships = prop::collection::vec(membership(), 0..4);
    let asked = (graph_of_no_row(), memberships, precision);
    (asked, some_ranges(), any::<u64>()).prop_map(
        |((graph, memberships, precision), within, from_range)| Call::Members {
            graph,
            memberships: Cow::Owned(memberships),
            precision,
            within,
            from_range,
        },
    )
}

fn strings(count: usize) -> impl Strategy<Value = Strings> {
    let string = prop::collection::vec(any::<u8>(), 0..9);
    prop::collection::vec(string, count).prop_map(|all| {
        let mut strings = Strings::default();
        all.iter().for_each(|string| strings.push(string));
        strings
    })
}

fn keys_of(rows: usize) -> impl Strategy<Value = Call<'static>> {
    let asked = (ids(rows), any::<u64>(), 0..1_usize << 20);
    asked.prop_map(|(ids, from_byte, most_bytes)| Call::Keys {
        ids,
        from_byte,
        most_bytes,
    })
}

fn candidates(rows: usize) -> impl Strategy<Value = Call<'static>> {
    let kinds = prop::collection::vec(any::<bool>(), rows);
    let hashes = prop::collection::vec(any::<u64>(), rows);
    (hashes, kinds).prop_map(|(hashes, are_literals)| Call::Candidates {
        hashes,
        are_literals,
    })
}

fn call() -> impl Strategy<Value = Call<'static>> {
    (0..7_usize).prop_flat_map(|rows| {
        let asked = move || (graph(rows), list(rows));
        prop_oneof![
            members(),
            expand(rows),
            (graph(1), list(1)).prop_map(|(graph, list)| Call::Places { graph, list }),
            (asked(), ids(rows)).prop_map(|((graph, list), to)| Call::Contains { graph, list, to }),
            (asked(), some_ranges()).prop_map(|((graph, list), allowed)| Call::Degrees {
                graph,
                list,
                allowed
            }),
            (list(rows), ids(rows)).prop_map(|(list, to)| Call::GraphsOf { list, to }),
            (asked_pattern(rows), graph_of_no_row(), page_asked()).prop_map(
                |(pattern, graph, page)| {
                    Call::Matches {
                        pattern,
                        graph,
                        page,
                    }
                }
            ),
            (asked_pattern(rows), page_asked())
                .prop_map(|(pattern, page)| Call::Quads { pattern, page }),
            keys_of(rows),
            candidates(rows),
        ]
    })
}

fn request() -> impl Strategy<Value = Request<'static>> {
    let shards = prop::collection::vec(any::<u32>().prop_map(ShardId), 0..4);
    (any::<u64>(), any::<u64>(), shards, call()).prop_map(|(number, served, shards, call)| {
        Request {
            number: RequestNumber(number),
            served: ServedId(served),
            shards: Cow::Owned(shards),
            call,
        }
    })
}

fn page() -> impl Strategy<Value = Page> {
    let few = || (0..3_u64).prop_map(TermId::vertex);
    let quad = (few(), (0..2_u32).prop_map(PredicateId), few(), few());
    let quads = prop::collection::btree_set(quad, 0..9);
    (quads, prop::option::of((any::<u32>(), place()))).prop_map(|(quads, next)| {
        let quads: Vec<Quad> = quads.into_iter().collect();
        Page::new(&quads, next)
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    let rows = || prop::collection::vec(any::<u32>(), 0..9);
    let rows_and_ids = || {
        rows().prop_flat_map(|rows| {
            let count = rows.len();
            (Just(rows), ids(count).prop_map(Cow::into_owned))
        })
    };
    let refusals = vec![Refusal::Malformed, Refusal::NotServed, Refusal::Broken];
    prop_oneof![
        (some_ranges(), any::<bool>()).prop_map(|(ids, is_cut)| Answer::Members { ids, is_cut }),
        (rows_and_ids(), any::<(usize, usize)>()).prop_map(|((rows, ids), (key, offset))| {
            let cursor = Cursor { key, offset };
            Answer::Expanded { rows, ids, cursor }
        }),
        any::<u64>().prop_map(Answer::Places),
        rows().prop_map(Answer::Contained),
        prop::collection::vec(any::<u64>(), 0..9).prop_map(Answer::Degrees),
        (rows_and_ids(), 0..MOST_ROWS).prop_map(|((rows, graphs), done)| Answer::GraphsOf {
            rows,
            graphs,
            done
        }),
        page().prop_map(Answer::Page),
        ((0..9_usize).prop_flat_map(strings), any::<u64>())
            .prop_map(|(keys, rest)| Answer::Keys { keys, rest }),
        (rows_and_ids(), 0..MOST_ROWS).prop_map(|((rows, ids), done)| Answer::Candidates {
            rows,
            ids,
            done
        }),
        Just(Answer::Unavailable(Unavailable::NotNow)),
        any::<u32>().prop_map(|n| Answer::Unavailable(Unavailable::Never(ShardId(n)))),
        prop::sample::select(refusals).prop_map(Answer::Refused),
    ]
}

/// Decodes bytes as everything, which is not to panic.
fn decode_as_all(bytes: &[u8]) {
    let _ = number_of_request(bytes);
    let _ = number_of_answer(bytes);
    if let Ok(request) = Request::decode(bytes) {
        assert_eq!(request.encode(), bytes, "{request:?}");
    }
    if let Ok(answer) = Answer::decode(bytes) {
        let number = number_of_answer(bytes).expect("it was read");
        // A column of equal values may have been written out.
        let again = Answer::decode(&answer.encode(number));
        assert_eq!(again.as_ref(), Ok(&answer));
    }
}

/// Every prefix is refused, and every changed byte makes another message or none.
fn damage(bytes: &[u8]) {
    for length in 0..bytes.len() {
        assert!(Request::decode(&bytes[..length]).is_err(), "{length}");
        assert!(Answer::decode(&bytes[..length]).is_err(), "{length}");
    }
    let mut damaged = bytes.to_vec();
    for place in 0..bytes.len() {
        for flipped in [0x01, 0x80, 0xff] {
            damaged[place] ^= flipped;
            decode_as_all(&damaged);
            damaged[place] ^= flipped;
        }
    }
    damaged.push(0);
    let too_long = CallError::TooLong { bytes: 1 };
    let (request, answer) = (Request::decode(&damaged), Answer::decode(&damaged));
    assert!(request.err() == Some(too_long.clone()) || answer.err() == Some(too_long));
}

proptest! {
    #[test]
    fn requests_arrive_as_they_were_made(request in request(), number in any::<u64>()) {
        let mut bytes = request.encode();
        prop_assert_eq!(Request::decode(&bytes), Ok(request.clone()));
        prop_assert_eq!(number_of_request(&bytes), Ok(request.number));
        damage(&bytes);
        set_number(&mut bytes, RequestNumber(number));
        let numbered = Request { number: RequestNumber(number), ..request };
        prop_assert_eq!(Request::decode(&bytes), Ok(numbered));
    }

    #[test]
    fn answers_arrive_as_they_were_made(answer in answer(), number in any::<u64>()) {
        let bytes = answer.encode(RequestNumber(number));
        prop_assert_eq!(Answer::decode(&bytes), Ok(answer));
        prop_assert_eq!(number_of_answer(&bytes), Ok(RequestNumber(number)));
        damage(&bytes);
    }

    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..14_u32) {
        decode_as_all(&bytes);
        // Behind a header that is right, more of it is looked at.
        for magic in [super::REQUEST, super::ANSWER] {
            let mut message = magic.to_vec();
            message.extend(super::VERSION.to_le_bytes());
            message.extend([0; 8]);
            message.extend(kind.to_le_bytes());
            message.extend(&bytes);
            decode_as_all(&message);
            // And behind one without shards, with few rows.
            message.truncate(NUMBER.end + 4);
            message.extend([0; 12]);
            message.extend(u32::from(kind % 3 != 0).to_le_bytes());
            message.extend(bytes.iter().map(|byte| byte % 4));
            decode_as_all(&message);
        }
    }
}

fn contains(keys: Vec<TermId>) -> Request<'static> {
    let list = AskedList {
        predicate: PredicateId(3),
        direction: Direction::In,
        keys: Cow::Owned(keys.clone()),
    };
    Request {
        number: RequestNumber(1),
        served: ServedId(2),
        shards: Cow::Borrowed(&[ShardId(3)]),
        call: Call::Contains {
            graph: AskedGraph::Default,
            list,
            to: Cow::Owned(keys),
        },
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let bytes = contains(vec![TermId::vertex(1), TermId::vertex(2)]).encode();
    // The header, snapshot, shards and rows are 40 bytes, and the graph is four.
    let (rows, keys) = (36, 52);
    let with = |place: usize, byte: u8| {
        let mut changed = bytes.clone();
        changed[place] = byte;
        changed
    };
    let cases = [
        (
            with(3, b'!'),
            CallError::NoMessage {
                expected: "request",
                found: *b"JND!",
            },
        ),
        (with(4, 1), CallError::Version { found: 1, known: 5 }),
        (
            with(16, 99),
            CallError::Unknown {
                part: "call",
                at: 16,
                found: 99,
            },
        ),
        (
            with(rows + 3, 0x7f),
            CallError::TooMany {
                part: "rows",
                at: rows,
                found: 0x7f00_0002,
                most: MOST_ROWS as u64,
            },
        ),
        (
            with(rows, 3),
            CallError::Truncated {
                part: "the other ends",
                at: keys + 24,
                end: bytes.len(),
            },
        ),
        (
            with(rows + 4, 9),
            CallError::Unknown {
                part: "kind of graph",
                at: rows + 4,
                found: 9,
            },
        ),
        (
            with(keys - 4, 7),
            CallError::Unknown {
                part: "direction",
                at: keys - 4,
                found: 7,
            },
        ),
        (
            with(keys + 15, 0xb0),
            CallError::Id {
                part: "the keys",
                at: keys + 8,
                id: 0xb000_0000_0000_0002,
            },
        ),
        (
            bytes[..bytes.len() - 1].to_vec(),
            CallError::Truncated {
                part: "the other ends",
                at: keys + 16,
                end: bytes.len() - 1,
            },
        ),
        ([&bytes[..], b"!"].concat(), CallError::TooLong { bytes: 1 }),
    ];
    for (bytes, error) in cases {
        assert_eq!(Request::decode(&bytes), Err(error));
    }
}

#[test]
fn ranges_that_are_none_or_in_no_order_are_refused() {
    let set = |ranges: &[(u64, u64)]| {
        let mut bytes = Answer::Members {
            ids: Some(IdRanges::new()),
            is_cut: false,
        }
        .encode(RequestNumber(1));
        let count = bytes.len() - 4;
        bytes[count] = ranges.len() as u8;
        for (first, end) in ranges {
            bytes.extend(first.to_le_bytes());
            bytes.extend(end.to_le_bytes());
        }
        Answer::decode(&bytes)
    };
    assert!(set(&[(1, 4), (5, 6), (9, u64::MAX)]).is_ok());
    for ranges in [
        &[(4, 4)][..],
        &[(4, 3)],
        &[(1, 4), (4, 6)],
        &[(1, 4), (3, 6)],
        &[(5, 6), (1, 2)],
    ] {
        let refused = set(ranges);
        assert!(
            matches!(refused, Err(CallError::Range { .. })),
            "{ranges:?}"
        );
    }
}

#[test]
fn one_quad_is_not_sent_many_times_by_saying_so() {
    let quad = (
        TermId::vertex(1),
        PredicateId(2),
        TermId::vertex(3),
        TermId::NONE,
    );
    let mut page = Page::new(&[quad], None);
    assert_eq!(page.quads().collect::<Vec<_>>(), [quad]);
    page.count = 1 << 30;
    let refused = Answer::decode(&Answer::Page(page).encode(RequestNumber(1)));
    assert!(
        matches!(refused, Err(CallError::Rows { .. })),
        "{refused:?}"
    );
}
