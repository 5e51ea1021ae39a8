//! Does a sub-query that goes as a message do what it would have done at its own node, and is everything
//! else refused?
//!
//! `JINDOU_SEED` sets the seed of the changed bytes, `JINDOU_CASES` how many messages are changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jindou_model::TermId;
use jindou_plan::expression::{Expression, Function};
use jindou_plan::physical::{PlannedStep, Step, Var};
use oxrdf::{Literal, Term};

use super::super::inbox::Inbox;
use super::super::messages::MessageLimits;
use super::super::replies::Replies as _;
use super::super::test_nodes::{HERE, MEMORY_THERE, THERE, TestNodes, kept};
use super::super::{ForkNode, QueryMessages, SubQuery};
use super::{Failure, HEADER_BYTES, Message, SubQueryWireError, query, read_any, write};
use crate::context::{ActiveDataset, Context};
use crate::table::Table;
use crate::test_world::World;
use crate::{ExecError, ServiceError};

const WIDTH: usize = 4;

fn extend(var: u16, expression: Expression) -> PlannedStep {
    PlannedStep {
        step: Step::Extend {
            var: Var(var),
            expression,
        },
        rows: 1.0,
        id: 1,
    }
}

fn call(function: Function, arguments: Vec<Expression>) -> Expression {
    Expression::Call(function, arguments)
}

/// ?1 is ?0 twice, ?2 a new UUID and ?3 the time.
fn steps() -> Vec<PlannedStep> {
    let given = || Expression::Variable(Var(0));
    vec![
        extend(1, call(Function::Concat, vec![given(), given()])),
        extend(2, call(Function::StrUuid, vec![])),
        extend(3, call(Function::Now, vec![])),
    ]
}

/// Strings that no graph has.
fn strings(nodes: &TestNodes, rows: usize) -> Table {
    let string = |row| Literal::new_simple_literal(format!("string {row}"));
    let id = |row| nodes.cx.terms().intern_literal(&string(row)).unwrap();
    let mut table = Table::with_rows(WIDTH, rows);
    table.set(Var(0), (0..rows).map(id).collect());
    table
}

fn sub_query(nodes: &TestNodes, rows: usize) -> (SubQuery, Arc<Inbox>) {
    let table = strings(nodes, rows);
    let needed: Vec<Var> = (0..WIDTH as u16).map(Var).collect();
    nodes.sub_query(steps(), table, &needed)
}

/// What its reader gets.
fn rows_of(nodes: &TestNodes, inbox: &Inbox) -> Result<Vec<[String; WIDTH]>, ExecError> {
    let text = |id: TermId| match nodes.cx.terms().term(id).unwrap() {
        Some(Term::Literal(literal)) => literal.value().to_owned(),
        other => panic!("{other:?}"),
    };
    let mut rows = Vec::new();
    while let Some(table) = inbox.wait(&nodes.cx)? {
        for row in 0..table.rows() {
            rows.push([0, 1, 2, 3].map(|var| text(table.value(Var(var), row))));
        }
    }
    Ok(rows)
}

/// The messages of sub-queries, run at the other node; the first error that their reader gets.
fn run(
    nodes: &TestNodes,
    rows: usize,
    memory_bytes: u64,
) -> Result<Vec<[String; WIDTH]>, ExecError> {
    let (sub_query, inbox) = sub_query(nodes, rows);
    if let Some(message) = nodes.here.encode(sub_query) {
        let arrived = nodes.arrived(message);
        arrived.run(TestNodes::resources(memory_bytes));
    }
    rows_of(nodes, &inbox)
}

fn ended(nodes: &TestNodes, memory_bytes: u64, rows: usize) -> ExecError {
    run(nodes, rows, memory_bytes).expect_err("it ends")
}

#[test]
fn a_sub_query_finds_at_another_node_what_it_means_at_its_own() {
    let nodes = TestNodes::new(MessageLimits::default());
    let mut uuids = std::collections::BTreeSet::new();
    let now = nodes.cx.expressions.now().to_string();
    for _ in 0..3 {
        let rows = run(&nodes, 10, MEMORY_THERE).expect("it is answered");
        assert_eq!(rows.len(), 10);
        for (row, [given, twice, uuid, time]) in rows.into_iter().enumerate() {
            assert_eq!(given, format!("string {row}"));
            assert_eq!(twice, given.repeat(2));
            assert_eq!(time, now, "one NOW a query");
            assert!(uuids.insert(uuid), "no UUID comes twice");
        }
        assert_eq!(nodes.there.held(), (0, 0), "nothing is left");
    }
    // Its own node draws others.
    let own = nodes.cx.expressions.uuid();
    assert!(!uuids.contains(&own));
}

#[test]
fn the_ids_of_a_query_mean_the_same_elsewhere() {
    let (here, _) = kept(HERE, MessageLimits::default());
    let mut world = World::new(1 << 20);
    let text = |cx: &Context, id: TermId| cx.terms().term(id).unwrap().expect("a term").to_string();
    let own = |text: &str| {
        let literal = Literal::new_simple_literal(text);
        world.cx.terms().intern_literal(&literal).unwrap()
    };
    let (window, vertex) = (TermId::window(3), TermId::vertex(5));
    // Elsewhere the second is the first that is computed.
    let (second, first) = (own("second"), own("first"));
    let constants = vec![window, first, vertex, second, TermId::NONE];
    let dataset = ActiveDataset {
        default: vec![vertex, window],
        default_is_all: true,
        named: vec![second, first],
        within: vec![first, second],
    };
    let cx = std::sync::Arc::get_mut(&mut world.cx).expect("nobody else has it");
    cx.set_ids(constants.clone(), Some(dataset));
    let part = query::part(&world.cx, || here.new_query()).expect("there is room");
    let resources = TestNodes::resources(MEMORY_THERE);
    let messages = QueryMessages::default();
    let cx = query::decode(&part.bytes, here.new_sub_query(), resources, messages);
    let cx = cx.expect("it is read");
    assert_eq!(cx.constants.len(), 5);
    assert_eq!(
        [cx.constants[0], cx.constants[2], cx.constants[4]],
        [window, vertex, TermId::NONE]
    );
    for place in [1, 3] {
        assert_eq!(
            text(&cx, cx.constants[place]),
            text(&world.cx, constants[place])
        );
    }
    let dataset = cx.dataset.as_ref().expect("it has one");
    assert!(dataset.default_is_all);
    assert_eq!(dataset.default, [vertex, window]);
    for graphs in [&dataset.named, &dataset.within] {
        assert!(graphs.is_sorted(), "they are searched");
        assert_eq!(graphs.len(), 2);
        assert!(graphs.contains(&cx.constants[1]) && graphs.contains(&cx.constants[3]));
    }
    // No list of ids is longer than those that there are.
    for end in 0..part.bytes.len() {
        let (resources, messages) = (TestNodes::resources(MEMORY_THERE), QueryMessages::default());
        let part = query::decode(
            &part.bytes[..end],
            here.new_sub_query(),
            resources,
            messages,
        );
        assert!(part.is_err(), "the first {end} bytes");
    }
}

#[test]
fn what_is_held_elsewhere_is_charged_there() {
    let nodes = TestNodes::new(MessageLimits::default());
    let error = ended(&nodes, 10_000, 2000);
    let ExecError::Memory { limit_bytes } = error else {
        panic!("{error}");
    };
    assert_eq!(limit_bytes, 10_000, "the limit that was met");
    assert_eq!(nodes.there.held(), (0, 0), "nothing is left");
    assert_eq!(
        run(&nodes, 2000, MEMORY_THERE)
            .expect("there is room")
            .len(),
        2000
    );
}

#[test]
fn a_message_that_is_too_large_is_not_sent_and_ends_its_query() {
    let limits = MessageLimits {
        message_bytes: 2000,
        ..MessageLimits::default()
    };
    let nodes = TestNodes::new(limits);
    // The sub-query itself.
    let error = ended(&nodes, MEMORY_THERE, 2000);
    let ExecError::SubQuery(SubQueryWireError::TooLarge { bytes, most: 2000 }) = error else {
        panic!("{error}");
    };
    assert!(bytes > 2000);
    // What it finds, which is more than it took along.
    let error = ended(&nodes, MEMORY_THERE, 20);
    let ExecError::SubQuery(SubQueryWireError::Elsewhere {
        node: THERE,
        reason,
    }) = error
    else {
        panic!("{error}");
    };
    assert!(reason.contains("where 2000 are the most"), "{reason}");
    assert_eq!(nodes.there.held(), (0, 0), "nothing is left");
    // One that comes all the same.
    let (whole, _) = kept(HERE, MessageLimits::default());
    let (sub_query, _inbox) = sub_query(&nodes, 2000);
    let message = whole.encode(sub_query).expect("it may be as large");
    let received = nodes.there.receive(HERE, message).err();
    assert!(
        matches!(received, Some(SubQueryWireError::TooLarge { .. })),
        "{received:?}"
    );
}

#[test]
fn a_query_that_was_cancelled_ends_elsewhere_and_stays_ended() {
    let nodes = TestNodes::new(MessageLimits::default());
    let (first, first_inbox) = sub_query(&nodes, 10);
    let (second, second_inbox) = sub_query(&nodes, 10);
    let message = nodes.here.encode(first).expect("it is sent");
    let arrived = nodes.arrived(message);
    let query = arrived.query();
    assert_eq!(Some(query), nodes.cx.messages.id());
    // Its reader goes, with the query, before it began.
    nodes.cx.finish();
    first_inbox.close();
    arrived.run(TestNodes::resources(MEMORY_THERE));
    assert_eq!(nodes.there.held(), (0, 0), "nothing is left");
    drop((second, second_inbox));
}

#[test]
fn a_query_under_way_is_cancelled_by_its_id() {
    let nodes = TestNodes::new(MessageLimits::default());
    let (sub_query, inbox) = sub_query(&nodes, 10);
    let message = nodes.here.encode(sub_query).expect("it is sent");
    let arrived = nodes.arrived(message);
    let resources = TestNodes::resources(MEMORY_THERE);
    let token = resources.limits.cancellation.clone();
    // The operators look at their token after the sub-query was read.
    token.cancel_at_look(3);
    arrived.run(resources);
    let error = rows_of(&nodes, &inbox).expect_err("it was cancelled there");
    assert!(matches!(error, ExecError::Cancelled), "{error}");
    let query = nodes.cx.messages.id().expect("it has one");
    let (late, late_inbox) = super::tests::sub_query(&nodes, 10);
    let message = nodes.here.encode(late).expect("it is sent");
    nodes.there.end_query(query);
    // What comes late ends before it begins.
    nodes
        .arrived(message)
        .run(TestNodes::resources(MEMORY_THERE));
    assert_eq!(
        rows_of(&nodes, &late_inbox).expect("it ended"),
        Vec::<[String; WIDTH]>::new()
    );
}

#[test]
fn what_nobody_waits_for_is_answered_with_an_end() {
    let limits = MessageLimits::default();
    let nodes = TestNodes::new(limits);
    let (there, sent) = kept(THERE, limits);
    let (sub_query, inbox) = sub_query(&nodes, 10);
    let message = nodes.here.encode(sub_query).expect("it is sent");
    let arrived = there.receive(HERE, message).expect("it is a message");
    arrived
        .expect("a sub-query")
        .run(TestNodes::resources(MEMORY_THERE));
    let replies = sent();
    assert_eq!(replies.len(), 2, "rows and the end");
    drop(inbox);
    // The reader is gone: another node of the same number says what it answers.
    let (here, answers) = kept(HERE, limits);
    for reply in replies {
        assert!(
            here.receive(THERE, reply)
                .expect("it is a message")
                .is_none()
        );
    }
    let answers = answers();
    assert_eq!(answers.len(), 1, "to the rows");
    let (answer, _) = read_any(&answers[0]).expect("it is a message");
    assert!(matches!(answer, Message::Closed { .. }), "{answer:?}");
    assert_eq!(there.held().1, 1, "a table is on the way");
    let received = there.receive(HERE, answers[0].clone());
    assert!(received.expect("it is a message").is_none());
    assert_eq!(there.held(), (0, 0));
}

#[test]
fn a_sub_query_that_is_dropped_ends_its_query() {
    let nodes = TestNodes::new(MessageLimits::default());
    let (sub_query, inbox) = sub_query(&nodes, 10);
    let message = nodes.here.encode(sub_query).expect("it is sent");
    drop(nodes.arrived(message));
    let error = rows_of(&nodes, &inbox).expect_err("it is lost");
    assert!(matches!(error, ExecError::Panicked), "{error}");
}

#[test]
fn a_sub_query_that_finds_no_memory_to_wait_in_ends_its_query() {
    let nodes = TestNodes::new(MessageLimits::default());
    let (sub_query, inbox) = sub_query(&nodes, 10);
    let message = nodes.here.encode(sub_query).expect("it is sent");
    let bytes = message.len();
    let arrived = nodes.arrived(message);
    assert_eq!(arrived.bytes(), bytes);
    arrived.fail(ExecError::PoolExhausted { limit_bytes: 9 });
    let error = rows_of(&nodes, &inbox).expect_err("it is refused");
    let is_refused = matches!(error, ExecError::PoolExhausted { limit_bytes: 9 });
    assert!(is_refused, "{error}");
    assert_eq!(inbox.under_way(), 0);
}

#[test]
fn another_query_by_the_same_number_is_refused() {
    let nodes = TestNodes::new(MessageLimits::default());
    let (first, first_inbox) = sub_query(&nodes, 10);
    let first = nodes.arrived(nodes.here.encode(first).expect("it is sent"));
    // A node that began anew gives numbers that it gave before.
    let others = TestNodes::new(MessageLimits::default());
    let (second, _inbox) = sub_query(&others, 10);
    let second = others.here.encode(second).expect("it is sent");
    let resources = TestNodes::resources(MEMORY_THERE);
    let (_held, cx) = first
        .sub_query(resources)
        .expect("it is read")
        .expect("it is new");
    let second = nodes.arrived(second);
    let error = second.sub_query(TestNodes::resources(MEMORY_THERE)).err();
    let is_mismatch = |error: &Option<ExecError>| {
        let mismatch = matches!(
            error,
            Some(ExecError::SubQuery(SubQueryWireError::Mismatch { .. }))
        );
        // The two have the same bytes if they began at the same moment.
        mismatch || others.cx.expressions.now() == nodes.cx.expressions.now()
    };
    assert!(is_mismatch(&error), "{error:?}");
    drop((cx, first_inbox));
}

#[test]
fn errors_are_at_the_reader_what_they_were() {
    let nodes = TestNodes::new(MessageLimits::default());
    let directory = std::path::PathBuf::from("/tmp/x");
    let errors = [
        ExecError::Cancelled,
        ExecError::Memory { limit_bytes: 7 },
        ExecError::SpillExceeded { limit_bytes: 8 },
        ExecError::Spill {
            directory: directory.clone(),
            source: std::io::Error::from_raw_os_error(28),
        },
        ExecError::PoolExhausted { limit_bytes: 9 },
        ExecError::ShardLost {
            shard: jindou_model::ShardId(3),
        },
        ExecError::NodeLost {
            node: jindou_model::NodeId(4),
        },
        ExecError::NoStack(jindou_plan::NoStack { bytes: 11 }),
        ExecError::Panicked,
        ExecError::Service {
            endpoint: "<http://e/>".to_owned(),
            source: ServiceError::Status {
                status: 503,
                body: "no".to_owned(),
            },
        },
        ExecError::Expression(crate::expr::CompileError::Pattern {
            reason: "too hard".to_owned(),
        }),
        ExecError::Refused {
            reason: "too long".to_owned(),
        },
    ];
    let carried = |error: ExecError| {
        let failure = postcard::to_allocvec(&Failure::of(error)).expect("it is written");
        let failure: Failure = postcard::from_bytes(&failure).expect("it is read");
        failure.into_error(THERE, nodes.cx.shared())
    };
    for error in errors {
        let was = format!("{error:?} {error}");
        let is = carried(error);
        assert_eq!(format!("{is:?} {is}"), was);
    }
    // The limit is the query's own, not what was left of it.
    let left = ExecError::Timeout {
        limit: std::time::Duration::from_nanos(1),
    };
    let is = carried(left);
    assert!(
        matches!(is, ExecError::Timeout { limit } if limit.is_zero()),
        "a query without a limit has none: {is}"
    );
    let wire = carried(SubQueryWireError::TooLong { bytes: 3 }.into());
    let said = SubQueryWireError::Elsewhere {
        node: THERE,
        reason: "3 bytes follow the message".to_owned(),
    };
    assert!(matches!(wire, ExecError::SubQuery(error) if error == said));
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// Numbers that follow from a seed: SplitMix64.
fn random() -> impl Fn() -> u64 {
    let seed = setting("JINDOU_SEED", 1);
    println!("JINDOU_SEED={seed}");
    let state = AtomicU64::new(seed);
    move || {
        let next = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        let mixed = (next ^ (next >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A message with some bytes changed, taken away or added; all of them are other bytes in one of eight.
fn changed(message: &[u8], next: &impl Fn() -> u64) -> Vec<u8> {
    let mut changed = message.to_vec();
    match next() % 8 {
        0 => {
            let bytes = next() as usize % 200;
            changed.truncate(HEADER_BYTES);
            changed.extend((0..bytes).map(|_| next() as u8));
        }
        1 => changed.truncate(next() as usize % message.len()),
        2 => changed.extend((0..=next() % 9).map(|_| next() as u8)),
        _ => {
            for _ in 0..=next() % 4 {
                // The header is known to be checked.
                let place = HEADER_BYTES + next() as usize % (message.len() - HEADER_BYTES);
                changed[place] = next() as u8;
            }
        }
    }
    changed
}

#[test]
fn changed_messages_are_answered_or_refused() {
    let next = random();
    let cases = setting("JINDOU_CASES", 400);
    let limits = MessageLimits::default();
    let nodes = TestNodes::new(limits);
    let (mut refused, mut ran, mut replies_refused) = (0, 0, 0);
    for _ in 0..cases {
        let (sub_query, _inbox) = sub_query(&nodes, 3);
        let message = nodes.here.encode(sub_query).expect("it is sent");
        // A node of its own, as a message may say that some query has ended.
        let (there, sent) = kept(THERE, limits);
        match there.receive(HERE, changed(&message, &next)) {
            Err(_) => refused += 1,
            Ok(None) => (),
            Ok(Some(arrived)) => {
                arrived.run(TestNodes::resources(MEMORY_THERE));
                ran += 1;
            }
        }
        assert_eq!(there.held().0, 0, "nothing is left of the query");
        for reply in sent() {
            // The reader must live through it, whatever it says.
            replies_refused +=
                u32::from(nodes.here.receive(THERE, changed(&reply, &next)).is_err());
        }
    }
    println!("{refused} refused, {ran} run, {replies_refused} replies refused");
    assert!(refused > 0 && ran > 0 && replies_refused > 0);
}

#[test]
fn no_part_of_a_message_is_taken_for_the_whole() {
    let limits = MessageLimits::default();
    let nodes = TestNodes::new(limits);
    let (sub_query, _inbox) = sub_query(&nodes, 3);
    let message = nodes.here.encode(sub_query).expect("it is sent");
    let (there, sent) = kept(THERE, limits);
    let read = |message: &[u8]| match there.receive(HERE, message.to_vec()) {
        Err(_) => false,
        Ok(arrived) => {
            let arrived = arrived.expect("it is a sub-query");
            let is_read = arrived
                .sub_query(TestNodes::resources(MEMORY_THERE))
                .is_ok();
            arrived.run(TestNodes::resources(MEMORY_THERE));
            is_read
        }
    };
    for end in 0..message.len() {
        assert!(!read(&message[..end]), "the first {end} bytes");
    }
    assert!(read(&message));
    for reply in sent() {
        for end in 0..reply.len().min(60) {
            // Rows are read when they are taken, and no node of this number waits for them.
            let (here, _) = kept(HERE, limits);
            let _ = here.receive(THERE, reply[..end].to_vec());
        }
    }
}

#[test]
fn rows_that_are_none_end_the_query_of_their_reader() {
    let nodes = TestNodes::new(MessageLimits::default());
    let next = random();
    let (there, sent) = kept(THERE, MessageLimits::default());
    let mut failed = 0;
    for _ in 0..setting("JINDOU_CASES", 100) {
        let (sub_query, inbox) = sub_query(&nodes, 3);
        let message = nodes.here.encode(sub_query).expect("it is sent");
        let arrived = there.receive(HERE, message).expect("it is a message");
        arrived
            .expect("a sub-query")
            .run(TestNodes::resources(MEMORY_THERE));
        let mut replies = sent();
        assert_eq!(replies.len(), 2, "rows and the end");
        let rows = &mut replies[0];
        let (_, table) = read_any(rows).expect("it is a message");
        let begin = rows.len() - table.len();
        let place = begin + next() as usize % (rows.len() - begin);
        rows[place] ^= 1 << (next() % 8);
        for reply in replies {
            assert!(
                nodes
                    .here
                    .receive(THERE, reply)
                    .expect("it is a message")
                    .is_none()
            );
        }
        // Some other text is as good as the first, which nobody can tell.
        failed += u32::from(inbox.wait(&nodes.cx).is_err());
    }
    assert!(failed > 0);
}

#[test]
fn a_message_is_written_and_read_by_its_version() {
    let limits = MessageLimits::default();
    let (node, _) = kept(HERE, limits);
    let refused = |node: &Arc<ForkNode>, bytes: Vec<u8>| {
        node.receive(THERE, bytes)
            .map(|_| ())
            .expect_err("it is refused")
    };
    let message = Message::Cancelled {
        query: node.new_query(),
    };
    let bytes = write(&message, &[], &limits).expect("it is short");
    let mut other = bytes.clone();
    other[0] = b'x';
    let found = *b"xNDFORKS";
    assert_eq!(
        refused(&node, other),
        SubQueryWireError::NoMessage { found }
    );
    let mut other = bytes.clone();
    other[8] = 7;
    let (found, known) = (7, 5);
    assert_eq!(
        refused(&node, other),
        SubQueryWireError::Version { found, known }
    );
    let mut other = bytes.clone();
    other.push(0);
    assert_eq!(
        refused(&node, other),
        SubQueryWireError::TooLong { bytes: 1 }
    );
    assert!(node.receive(THERE, bytes).expect("it is one").is_none());
}
