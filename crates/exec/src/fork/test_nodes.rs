//! Nodes in one thread for tests: what one sends another has at once.

use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

use jindou_model::{NodeId, SnapshotNumber, TermId};
use jindou_plan::physical::{PlannedStep, Var};

use super::chain::{Encoded, ForkedChain, Lent, Rest, Shape, Steps};
use super::decide::lists_ahead;
use super::inbox::Inbox;
use super::messages::{ForkNode, MessageLimits, Messages};
use super::replies::Replies;
use super::{Arrived, ForkPolicy, ForkSettings, Forks, MessageCost, Resources, SubQuery};
use crate::context::{CancellationToken, Context, Limits};
use crate::table::{Table, VarSet};
use crate::test_world::{Empty, World};
use crate::{GraphSource, QueryClass, SpillLimits, Terms};

/// Bytes that a query may hold at the node that is not its own.
pub(super) const MEMORY_THERE: u64 = 1 << 26;

pub(super) const HERE: NodeId = NodeId(0);
pub(super) const THERE: NodeId = NodeId(1);
pub(super) const ELSEWHERE: NodeId = NodeId(2);

/// What a node sends, and what it is a message to.
struct Way {
    from: NodeId,
    nodes: Arc<OnceLock<[Weak<ForkNode>; 3]>>,
    /// A node that it has not met yet.
    unknown: Option<NodeId>,
    /// Messages that were sent, if they are to be kept, instead of being received.
    kept: Option<Mutex<Vec<Vec<u8>>>>,
}

impl Messages for Way {
    fn send(&self, to: NodeId, message: Vec<u8>) {
        if !self.reaches(to) {
            return;
        }
        if let Some(kept) = &self.kept {
            kept.lock().expect("nobody panics with it").push(message);
            return;
        }
        let nodes = self.nodes.get().expect("all are there");
        if let Some(node) = nodes[to.0 as usize].upgrade() {
            let received = node.receive(self.from, message);
            assert!(received.expect("it is a message").is_none());
        }
    }

    fn reaches(&self, node: NodeId) -> bool {
        self.unknown != Some(node)
    }
}

/// A graph of two nodes to which nothing goes.
pub(super) struct Alone;

impl Forks for Alone {
    fn here(&self) -> NodeId {
        THERE
    }

    fn nodes(&self) -> u32 {
        2
    }

    fn snapshot(&self) -> SnapshotNumber {
        SnapshotNumber(7)
    }

    fn node_of(&self, _: TermId) -> NodeId {
        THERE
    }

    fn settings(&self) -> ForkSettings {
        ForkSettings {
            policy: ForkPolicy::InPlace,
            ..ForkSettings::default()
        }
    }

    fn message_cost(&self) -> MessageCost {
        MessageCost { reads: 1, rows: 1 }
    }

    fn send(&self, _: NodeId, _: SubQuery) {
        panic!("nothing goes anywhere");
    }

    fn resume(&self, _: QueryClass, job: Box<dyn FnOnce() + Send>) {
        job();
    }
}

/// A query at one node, and two other nodes.
pub(super) struct TestNodes {
    pub(super) cx: Arc<Context>,
    pub(super) token: CancellationToken,
    pub(super) here: Arc<ForkNode>,
    pub(super) there: Arc<ForkNode>,
    pub(super) elsewhere: Arc<ForkNode>,
    _world: World,
}

impl TestNodes {
    pub(super) fn new(limits: MessageLimits) -> Self {
        Self::that_met(limits, None)
    }

    /// Those of which `ELSEWHERE` does not know one yet, if it is given.
    pub(super) fn that_met(limits: MessageLimits, unknown: Option<NodeId>) -> Self {
        Self::of(World::new(1 << 26), limits, unknown)
    }

    /// Those of a query that may run on so many threads of each.
    pub(super) fn of_threads(threads: usize, class: QueryClass) -> Self {
        let world = World::of(1 << 26, (threads, class));
        Self::of(world, MessageLimits::default(), None)
    }

    fn of(world: World, limits: MessageLimits, unknown: Option<NodeId>) -> Self {
        let nodes: Arc<OnceLock<[Weak<ForkNode>; 3]>> = Arc::default();
        let node = |from: NodeId| {
            let way = Way {
                from,
                nodes: Arc::clone(&nodes),
                unknown: unknown.filter(|_| from == ELSEWHERE),
                kept: None,
            };
            ForkNode::new(from, 3, 0, Arc::new(way), limits)
        };
        let (here, there, elsewhere) = (node(HERE), node(THERE), node(ELSEWHERE));
        let all = [&here, &there, &elsewhere].map(Arc::downgrade);
        assert!(nodes.set(all).is_ok());
        Self {
            cx: Arc::new(Context::of_shared(
                Arc::clone(world.cx.shared()),
                Arc::new(Empty),
                Arc::new(Alone),
            )),
            token: world.token.clone(),
            here,
            there,
            elsewhere,
            _world: world,
        }
    }

    /// What the other node has for a query.
    pub(super) fn resources(memory_bytes: u64) -> Resources {
        let source = Arc::new(Empty);
        Resources {
            source: Arc::clone(&source) as Arc<dyn GraphSource>,
            terms: Terms::new(source),
            forks: Arc::new(Alone),
            limits: Limits {
                cancellation: CancellationToken::new(),
                started: Instant::now(),
                timeout: None,
                memory_bytes,
                spill: SpillLimits::off(),
                account: Arc::default(),
            },
            transport: None,
        }
    }

    /// A chain of these steps over tables of so many variables.
    pub(super) fn chain(
        &self,
        steps: Vec<PlannedStep>,
        width: usize,
        needed: &[Var],
    ) -> ForkedChain {
        ForkedChain {
            lists_ahead: lists_ahead(&steps, 1.0),
            steps: Arc::new(Steps::Planned(steps.into())),
            needed: needed.iter().copied().collect::<VarSet>(),
            shape: Shape {
                width,
                counted: false,
                origin: None,
            },
            variables: width,
            hidden: width as u16,
            rows_before: 1.0,
            stack: self.cx.stack,
            cx: Arc::clone(&self.cx),
            encoded: Encoded::default(),
        }
    }

    /// A sub-query of these steps with a table, and where what it finds is read.
    pub(super) fn sub_query(
        &self,
        steps: Vec<PlannedStep>,
        table: Table,
        needed: &[Var],
    ) -> (SubQuery, Arc<Inbox>) {
        let chain = self.chain(steps, table.width(), needed);
        let inbox = Arc::new(Inbox::new(chain.shape));
        inbox.begin();
        let sub_query = SubQuery {
            cx: Arc::clone(&self.cx),
            rest: Rest {
                chain: Arc::new(chain),
                from: 0,
                own_scan: false,
                stayed: false,
                lent: Lent::default(),
            },
            table,
            replies: Arc::clone(&inbox) as Arc<dyn Replies>,
            lent: None,
            settled: false,
            has_left: false,
        };
        (sub_query, inbox)
    }

    /// The sub-query of a message that came to the other node.
    pub(super) fn arrived(&self, message: Vec<u8>) -> Arrived {
        let received = self.there.receive(HERE, message);
        let arrived = received.expect("it is a message");
        arrived.expect("it is a sub-query")
    }
}

/// A node whose messages are kept.
pub(super) fn kept(
    here: NodeId,
    limits: MessageLimits,
) -> (Arc<ForkNode>, impl Fn() -> Vec<Vec<u8>>) {
    let way = Arc::new(Way {
        from: here,
        nodes: Arc::default(),
        unknown: None,
        kept: Some(Mutex::default()),
    });
    let node = ForkNode::new(here, 2, 0, Arc::clone(&way) as _, limits);
    let take = move || {
        let kept = way.kept.as_ref().expect("it keeps them");
        std::mem::take(&mut *kept.lock().expect("nobody panics with it"))
    };
    (node, take)
}
