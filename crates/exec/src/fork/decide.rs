//! Do rows go to other nodes at all? Which keys does a step read by, does a scan go to all nodes, and does a chain go to any?

use jindou_model::PredicateId;
use jindou_plan::physical::{Node, Operator, PlannedStep, Side, Slot, Step};

use super::split::{READS_PER_KEY, cost_of_forks};
use super::{ForkPolicy, Forks};
use crate::context::Context;

/// True if rows may go on at other nodes.
pub(crate) fn may_fork(forks: &dyn Forks) -> bool {
    forks.nodes() > 1 && forks.settings().policy != ForkPolicy::InPlace
}

/// A chain that is expected to read one in so many of the lists from which on rows are better sent is not made ready
/// for that: it would cost a light query more than its reads do.
const UNDERESTIMATE: f64 = 4.0;

/// True if rows of a chain of these steps, which has so many before the first, may well go on at other nodes.
pub(crate) fn is_made_ready(steps: &[PlannedStep], before: f64, forks: &dyn Forks) -> bool {
    let most = steps
        .iter()
        .map(|planned| planned.rows)
        .fold(before, f64::max);
    match forks.settings().policy {
        ForkPolicy::InPlace => false,
        ForkPolicy::ForkJoin => true,
        ForkPolicy::Dynamic => {
            let reads = most * f64::from(READS_PER_KEY);
            reads * UNDERESTIMATE > f64::from(cost_of_forks(forks))
        }
    }
}

/// What a step is to be near to: the first of these that is bound.
pub(crate) type ForkKey = Vec<Slot>;

/// The keys by which a step reads what only their nodes have; empty for one that reads nothing but what
/// every node knows.
pub(crate) fn fork_key(step: &Step, cx: &Context) -> ForkKey {
    match step {
        Step::Bind { sides, .. } => {
            let side = sides.iter().find(|side| is_read(side, cx));
            side.map(|side| side.from).into_iter().collect()
        }
        Step::Check { side, .. } if is_read(side, cx) => vec![side.from],
        Step::Match {
            subject, object, ..
        }
        | Step::Path {
            subject, object, ..
        } => vec![*subject, *object],
        Step::Optional { steps } | Step::Exists { steps, .. } => {
            let keys = steps.iter().map(|planned| fork_key(&planned.step, cx));
            keys.into_iter()
                .find(|key| !key.is_empty())
                .unwrap_or_default()
        }
        Step::Check { .. }
        | Step::Test { .. }
        | Step::Graphs { .. }
        | Step::Filter(_)
        | Step::Extend { .. }
        | Step::Values { .. }
        | Step::Union(_)
        | Step::ExistsGiven { .. } => Vec::new(),
    }
}

/// The types of all vertices follow from their characteristic sets, which every node has.
fn is_read(side: &Side, cx: &Context) -> bool {
    let predicate = cx.source.predicate(cx.constant(side.predicate));
    predicate.is_some_and(|predicate| predicate != PredicateId::TYPE)
}

/// True if a chain of these steps, with nothing before them, begins with the scan of an index vertex
/// that each node is to do for its part.
pub(crate) fn forks_scan(steps: &[PlannedStep], forks: &dyn Forks) -> bool {
    let [first, _, ..] = steps else {
        return false;
    };
    let is_scan = matches!(&first.step, Step::Bind { sides, .. } if sides.is_empty());
    let is_worth_it = match forks.settings().policy {
        ForkPolicy::InPlace => false,
        ForkPolicy::ForkJoin => true,
        ForkPolicy::Dynamic => expected_reads(steps, forks) > f64::from(cost_of_forks(forks)),
    };
    is_scan && is_worth_it && forks.settings().splits_scans && may_fork(forks)
}

/// Lists of other nodes that the steps behind the first one are expected to read.
fn expected_reads(steps: &[PlannedStep], forks: &dyn Forks) -> f64 {
    let lists = |step: &Step| match step {
        Step::Bind { sides, .. } => sides.len(),
        Step::Check { .. }
        | Step::Match { .. }
        | Step::Path { .. }
        | Step::Optional { .. }
        | Step::Exists { .. } => 1,
        Step::Test { .. }
        | Step::Graphs { .. }
        | Step::Filter(_)
        | Step::Extend { .. }
        | Step::Values { .. }
        | Step::Union(_)
        | Step::ExistsGiven { .. } => 0,
    };
    let reads = |pair: &[PlannedStep]| pair[0].rows * lists(&pair[1].step) as f64;
    let nodes = f64::from(forks.nodes());
    steps.windows(2).map(reads).sum::<f64>() * (nodes - 1.0) / nodes
}

/// True if a chain of these steps goes on where it is, as only its own node has what they ask for: other
/// endpoints, which its user may call from there, or rows that are given with the execution.
pub(crate) fn stays_here(steps: &[PlannedStep]) -> bool {
    steps.iter().any(|planned| match &planned.step {
        Step::Optional { steps } | Step::Exists { steps, .. } => stays_here(steps),
        Step::Union(branches) => branches.iter().any(|branch| stays_here(branch)),
        Step::ExistsGiven {
            node, all_bound, ..
        } => needs_its_node(node) || all_bound.as_deref().is_some_and(needs_its_node),
        Step::Bind { .. }
        | Step::Check { .. }
        | Step::Test { .. }
        | Step::Match { .. }
        | Step::Path { .. }
        | Step::Graphs { .. }
        | Step::Filter(_)
        | Step::Extend { .. }
        | Step::Values { .. } => false,
    })
}

fn needs_its_node(node: &Node) -> bool {
    match &node.operator {
        Operator::Service { .. } | Operator::Materialized { .. } => true,
        Operator::Explore { input, steps } => {
            input.as_deref().is_some_and(needs_its_node) || stays_here(steps)
        }
        Operator::Join { build, probe, .. } => needs_its_node(build) || needs_its_node(probe),
        Operator::LeftJoin {
            left, right, marks, ..
        } => needs_its_node(left) || needs_its_node(right) || stays_here(marks),
        Operator::Minus { left, right, .. } => needs_its_node(left) || needs_its_node(right),
        Operator::Union(inputs) => inputs.iter().any(needs_its_node),
        Operator::EachGraph { input, .. }
        | Operator::Group { input, .. }
        | Operator::OrderBy { input, .. }
        | Operator::Project { input, .. }
        | Operator::Distinct { input }
        | Operator::Reduced { input }
        | Operator::Slice { input, .. } => needs_its_node(input),
    }
}

#[cfg(test)]
mod tests {
    use jindou_model::{NodeId, SnapshotNumber, TermId};

    use super::*;
    use crate::{ForkSettings, QueryClass, SubQuery};

    struct Nodes(u32, ForkPolicy);

    impl Forks for Nodes {
        fn here(&self) -> NodeId {
            NodeId(0)
        }

        fn nodes(&self) -> u32 {
            self.0
        }

        fn snapshot(&self) -> SnapshotNumber {
            SnapshotNumber(1)
        }

        fn node_of(&self, _: TermId) -> NodeId {
            NodeId(0)
        }

        fn settings(&self) -> ForkSettings {
            ForkSettings {
                policy: self.1,
                ..ForkSettings::default()
            }
        }

        fn reads_per_message(&self) -> u32 {
            1
        }

        fn send(&self, _: NodeId, _: SubQuery) {
            unreachable!("nothing goes anywhere")
        }

        fn resume(&self, _: QueryClass, _: Box<dyn FnOnce() + Send>) {
            unreachable!("nothing is put aside")
        }
    }

    #[test]
    fn only_several_nodes_that_take_rows_keep_an_exploration_from_the_threads_of_one() {
        use ForkPolicy::{Dynamic, ForkJoin, InPlace};
        for policy in [Dynamic, ForkJoin, InPlace] {
            assert!(!may_fork(&Nodes(1, policy)), "{policy:?}");
            assert_eq!(may_fork(&Nodes(3, policy)), policy != InPlace, "{policy:?}");
        }
    }
}
