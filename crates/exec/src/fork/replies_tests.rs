//! Do replies reach their reader in the same way, whether they are in its process or come by messages?

use std::sync::{Arc, mpsc};
use std::thread;

use jindou_model::{ShardId, TermId};
use jindou_plan::physical::Var;

use super::chain::Shape;
use super::inbox::Inbox;
use super::messages::MessageLimits;
use super::outbox::Outbox;
use super::replies::{Pushed, Replies};
use super::test_nodes::{ELSEWHERE, HERE, THERE, TestNodes};
use super::wire::query;
use crate::ExecError;
use crate::context::Context;
use crate::table::Table;

const ONE_COLUMN: Shape = Shape {
    width: 1,
    counted: false,
    origin: None,
};

/// A reader, and sub-queries that reply to it.
struct Case {
    nodes: TestNodes,
    inbox: Arc<Inbox>,
    by_messages: bool,
}

impl Case {
    /// One of each kind.
    fn both() -> [Self; 2] {
        [false, true].map(|by_messages| Self {
            nodes: TestNodes::new(MessageLimits::default()),
            inbox: Arc::new(Inbox::new(ONE_COLUMN)),
            by_messages,
        })
    }

    /// What a sub-query that sets out replies to.
    fn sender(&self) -> Arc<dyn Replies> {
        self.inbox.begin();
        if !self.by_messages {
            return Arc::clone(&self.inbox) as Arc<dyn Replies>;
        }
        let TestNodes {
            cx, here, there, ..
        } = &self.nodes;
        let inbox = Arc::clone(&self.inbox);
        let chain = Arc::clone(&inbox).chain(here, cx);
        let id = here.new_sub_query();
        inbox.leave(id);
        let query = query::part(cx, || here.new_query())
            .expect("there is room")
            .id;
        let window = there.join_window(chain, query);
        Arc::new(Outbox::new(there, window, (chain, id), cx.shared()))
    }

    fn cx(&self) -> &Context {
        &self.nodes.cx
    }

    /// The numbers in the rows that are there until the end.
    fn read(&self) -> Result<Vec<u64>, ExecError> {
        let mut numbers = Vec::new();
        while let Some(table) = self.inbox.wait(self.cx())? {
            let ids = table.get(Var(0)).expect("it is wanted");
            numbers.extend(ids.iter().map(|id| id.number()));
        }
        Ok(numbers)
    }
}

/// Hands a row over; false if nobody reads it.
fn push(sender: &dyn Replies, number: u64, cx: &Context) -> bool {
    let mut table = table(number);
    loop {
        table = match sender.push(table, cx).expect("it may") {
            Pushed::Taken => return true,
            Pushed::Unread => return false,
            Pushed::Full(table) => table,
        };
        let (room, called) = mpsc::channel();
        let resume = move || room.send(()).expect("it waits");
        if sender.when_room(Box::new(resume)).is_none() {
            called.recv().expect("it is called");
        }
    }
}

fn table(number: u64) -> Table {
    let mut table = Table::with_rows(1, 1);
    table.set(Var(0), vec![TermId::vertex(number)]);
    table
}

#[test]
fn rows_come_in_their_order_and_then_the_end() {
    for case in Case::both() {
        let sender = case.sender();
        for number in 0..10 {
            assert!(push(&*sender, number, case.cx()));
        }
        assert_eq!(case.inbox.under_way(), 1);
        sender.end();
        assert_eq!(case.inbox.under_way(), 0);
        assert_eq!(case.read().expect("it ends"), (0..10).collect::<Vec<_>>());
        assert!(case.inbox.ready(case.cx()).expect("no error").is_none());
    }
}

#[test]
fn the_first_error_comes_in_place_of_rows() {
    for case in Case::both() {
        let (one, two) = (case.sender(), case.sender());
        assert!(push(&*one, 1, case.cx()));
        two.fail(ExecError::ShardLost { shard: ShardId(7) });
        one.fail(ExecError::Panicked);
        let error = case.inbox.ready(case.cx()).expect_err("it failed");
        let is_first = matches!(error, ExecError::ShardLost { shard: ShardId(7) });
        assert!(is_first, "{error}");
        one.end();
        two.end();
    }
}

#[test]
fn whoever_finds_more_is_told_that_nobody_reads_it() {
    for case in Case::both() {
        let (one, two) = (case.sender(), case.sender());
        assert!(push(&*one, 1, case.cx()));
        case.inbox.close();
        assert!(!push(&*one, 2, case.cx()));
        assert!(!push(&*two, 3, case.cx()));
        one.end();
        two.end();
        assert_eq!(case.nodes.there.held().1, 0, "no window is left");
    }
}

#[test]
fn a_sender_that_is_ahead_waits_for_its_reader() {
    const TABLES: u64 = 500;
    for case in Case::both() {
        let sender = case.sender();
        let cx = Arc::clone(&case.nodes.cx);
        let sending = thread::spawn(move || {
            for number in 0..TABLES {
                assert!(push(&*sender, number, &cx));
            }
            sender.end();
        });
        let mut numbers = Vec::new();
        let most = MessageLimits::default().waiting_tables.max(64);
        while let Some(table) = case.inbox.wait(case.cx()).expect("no error") {
            assert!(case.inbox.waiting() <= most);
            numbers.push(table.value(Var(0), 0).number());
        }
        sending.join().expect("it ends");
        assert_eq!(numbers, (0..TABLES).collect::<Vec<_>>());
        assert_eq!(case.nodes.there.held().1, 0, "no window is left");
    }
}

#[test]
fn a_reader_that_waits_sees_what_ends_its_query() {
    let [_, case] = Case::both();
    let sender = case.sender();
    let token = case.nodes.token.clone();
    let waiting = thread::spawn(move || token.cancel());
    let error = case.inbox.wait(case.cx()).expect_err("it was cancelled");
    assert!(matches!(error, ExecError::Cancelled), "{error}");
    waiting.join().expect("it ends");
    sender.end();
}

#[test]
fn sub_queries_of_sub_queries_are_waited_for_in_whatever_order_they_end() {
    for first_ends_first in [false, true] {
        let [_, case] = Case::both();
        let TestNodes { there, .. } = &case.nodes;
        let first = case.sender();
        // One of it goes on as a message, to the node of the reader, as it happens.
        first.begin();
        let id = there.new_sub_query();
        first.leave(id);
        assert_eq!(first.under_way(), 1);
        let chain = Arc::clone(&first).chain(there, case.cx());
        let query = case.cx().messages.id().expect("it has one");
        let window = case.nodes.here.join_window(chain, query);
        let shared = case.cx().shared();
        let second = Outbox::new(&case.nodes.here, window, (chain, id), shared);
        assert!(push(&second, 2, case.cx()));
        match first_ends_first {
            true => {
                first.end();
                assert_eq!(case.inbox.under_way(), 1, "that of the second");
                second.end();
            }
            false => {
                second.end();
                assert_eq!(case.inbox.under_way(), 1, "that of the first");
                assert!(push(&*first, 1, case.cx()));
                first.end();
            }
        }
        assert_eq!(case.inbox.under_way(), 0);
        let expected = if first_ends_first {
            vec![2]
        } else {
            vec![2, 1]
        };
        assert_eq!(case.read().expect("it ends"), expected);
        let held = [case.nodes.here.held().1, case.nodes.there.held().1];
        assert_eq!(held, [0, 0], "no window is left");
    }
}

#[test]
fn a_lost_node_ends_the_queries_that_may_need_it() {
    let [local, by_messages] = Case::both();
    let senders = [local.sender(), by_messages.sender()];
    for case in [&local, &by_messages] {
        case.nodes.here.lost(THERE);
        case.nodes.there.lost(HERE);
    }
    assert!(local.inbox.ready(local.cx()).expect("it goes on").is_none());
    let error = by_messages
        .inbox
        .wait(by_messages.cx())
        .expect_err("it is lost");
    let is_lost = matches!(error, ExecError::NodeLost { node: THERE });
    assert!(is_lost, "{error}");
    let pushed = push(&*senders[1], 1, by_messages.cx());
    assert!(!pushed, "its reader is not there any more");
    senders.iter().for_each(|sender| sender.end());
}

/// The reader is at one node, its sub-query at another, and one of that at a third: only the second node
/// hears that its link with the third broke.
#[test]
fn a_link_between_two_other_nodes_that_breaks_ends_a_query() {
    for first_has_ended in [false, true] {
        let [_, case] = Case::both();
        let TestNodes {
            here,
            there,
            elsewhere,
            ..
        } = &case.nodes;
        let first = case.sender();
        first.begin();
        let id = there.new_sub_query();
        first.leave(id);
        let chain = Arc::clone(&first).chain(there, case.cx());
        let query = case.cx().messages.id().expect("it has one");
        let window = elsewhere.join_window(chain, query);
        let second = Outbox::new(elsewhere, window, (chain, id), case.cx().shared());
        if first_has_ended {
            first.end();
        }
        there.lost(ELSEWHERE);
        elsewhere.lost(THERE);
        let error = case.inbox.ready(case.cx()).expect_err("it is lost");
        let is_lost = matches!(error, ExecError::NodeLost { node: ELSEWHERE });
        assert!(is_lost, "{error}");
        case.inbox.close();
        assert!(!push(&second, 1, case.cx()), "nobody reads it");
        second.end();
        if !first_has_ended {
            first.end();
        }
        let held = [here, there, elsewhere].map(|node| node.held().1);
        assert_eq!(held, [0; 3], "no window is left");
    }
}

/// A query came to one node, a second joins rows for it, and a third, which finds some of them, loses the first: the
/// second must not take what it has for all.
#[test]
fn a_node_that_lost_a_query_says_so_to_who_joins_rows_for_it() {
    let [_, case] = Case::both();
    let TestNodes {
        cx,
        here,
        there,
        elsewhere,
        ..
    } = &case.nodes;
    let query = query::part(cx, || here.new_query()).expect("there is room");
    let joining = Arc::new(Inbox::new(ONE_COLUMN));
    joining.begin();
    let chain = Arc::clone(&joining).chain(there, cx);
    let id = there.new_sub_query();
    joining.leave(id);
    let window = elsewhere.join_window(chain, query.id);
    let sender = Outbox::new(elsewhere, window, (chain, id), cx.shared());
    assert!(push(&sender, 1, cx));
    elsewhere.end_query(query.id);
    assert!(!push(&sender, 2, cx), "the query is lost there");
    sender.end();
    let error = joining.ready(cx).expect_err("rows are missing");
    let is_lost = matches!(error, ExecError::NodeLost { node: ELSEWHERE });
    assert!(is_lost, "{error}");
    assert_eq!(joining.under_way(), 0);
}

#[test]
fn a_node_that_is_lost_is_nothing_to_queries_that_have_nothing_under_way() {
    let [_, case] = Case::both();
    let sender = case.sender();
    case.nodes.there.lost(ELSEWHERE);
    assert!(push(&*sender, 1, case.cx()));
    sender.end();
    assert_eq!(case.read().expect("it ends"), [1]);
}

#[test]
fn a_node_that_has_not_met_the_reader_says_so_to_whom_it_got_its_sub_query_from() {
    let nodes = TestNodes::that_met(MessageLimits::default(), Some(HERE));
    let mut table = Table::with_rows(1, 1);
    table.set(Var(0), vec![TermId::vertex(1)]);
    let (sub_query, inbox) = nodes.sub_query(Vec::new(), table, &[Var(0)]);
    let message = nodes.here.encode(sub_query).expect("there is room");
    // The node in between hands it on as it is.
    let received = nodes.elsewhere.receive(THERE, message);
    assert!(received.expect("it is a message").is_none());
    let error = inbox.wait(&nodes.cx).expect_err("nobody replies");
    let is_lost = matches!(error, ExecError::NodeLost { node: ELSEWHERE });
    assert!(is_lost, "{error}");
}
