//! Do rows go to other nodes at all? Which keys does a step read by, does a scan go to all nodes, and does a chain go to any?

use jindou_model::PredicateId;
use jindou_plan::physical::{Node, Operator, PlannedStep, Side, Slot, Step};

use super::{ForkPolicy, Forks, MessageCost};
use crate::context::Context;

/// True if rows may go on at other nodes.
pub(crate) fn may_fork(forks: &dyn Forks) -> bool {
    forks.holding() > 1 && forks.settings().policy != ForkPolicy::InPlace
}

/// A chain that is expected to read one in so many of the lists from which on rows are better sent is not made ready
/// for that: it would cost a light query more than its reads do.
const UNDERESTIMATE: f64 = 4.0;

/// What having all nodes go on costs, in reads: a message to each, and one back.
pub(super) fn cost_of_forks(forks: &dyn Forks) -> f64 {
    2.0 * f64::from(forks.holding()) * f64::from(forks.message_cost().reads)
}

/// True if rows of a chain of these steps, which has so many before the first, may well go on at other nodes.
pub(crate) fn is_made_ready(steps: &[PlannedStep], before: f64, forks: &dyn Forks) -> bool {
    match forks.settings().policy {
        ForkPolicy::InPlace => false,
        ForkPolicy::ForkJoin => true,
        ForkPolicy::Dynamic => lists_read(steps, before) * UNDERESTIMATE > cost_of_forks(forks),
    }
}

/// How many lists each of these steps is expected to read, with so many rows before the first of them. Each is taken to
/// have one row at least before it.
fn lists_of_each(steps: &[PlannedStep], before: f64) -> impl DoubleEndedIterator<Item = f64> {
    (0..steps.len()).map(move |place| {
        let rows = match place.checked_sub(1) {
            Some(last) => steps[last].rows,
            None => before,
        };
        rows.max(1.0) * lists(&steps[place].step) as f64
    })
}

/// How many lists these steps are expected to read.
fn lists_read(steps: &[PlannedStep], before: f64) -> f64 {
    lists_of_each(steps, before).sum()
}

/// For each step, how many lists it and those behind it are expected to read; and 0 for the end.
pub(super) fn lists_ahead(steps: &[PlannedStep], before: f64) -> Vec<f64> {
    let mut ahead = vec![0.0];
    for lists in lists_of_each(steps, before).rev() {
        ahead.push(ahead[ahead.len() - 1] + lists);
    }
    ahead.reverse();
    ahead
}

/// Lists that a step reads for each row.
fn lists(step: &Step) -> usize {
    match step {
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
    }
}

/// Rows of a chain before one of its steps, as they are expected.
pub(super) struct RowsAhead {
    /// Rows before the step.
    pub(super) before: f64,
    /// Lists that they read from there on.
    pub(super) lists: f64,
    /// Rows behind the last step.
    pub(super) behind: f64,
}

impl RowsAhead {
    /// What is saved for each of these rows that goes on at the node of its key, in reads: the lists that are read from
    /// there on, less what is `sent` for it and what comes back.
    pub(super) fn saved_each(&self, sent: f64, forks: &dyn Forks) -> f64 {
        let MessageCost { reads, rows } = forks.message_cost();
        let per_row = f64::from(reads) / f64::from(rows);
        (self.lists - per_row * self.behind) / self.before.max(1.0) - per_row * sent
    }

    /// What is saved if all go whose keys are elsewhere.
    pub(super) fn saved(&self, sent: f64, forks: &dyn Forks) -> f64 {
        let nodes = f64::from(forks.holding());
        self.before * (nodes - 1.0) / nodes * self.saved_each(sent, forks)
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
    let is_worth_it = || match forks.settings().policy {
        ForkPolicy::InPlace => false,
        ForkPolicy::ForkJoin => true,
        // Each node finds the rows by itself: none is sent.
        ForkPolicy::Dynamic => {
            let found = RowsAhead {
                before: first.rows,
                lists: lists_read(&steps[1..], first.rows),
                behind: steps[steps.len() - 1].rows,
            };
            found.saved(0.0, forks) > cost_of_forks(forks)
        }
    };
    is_scan && forks.settings().splits_scans && may_fork(forks) && is_worth_it()
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
        Operator::EndCounts(planned) => needs_its_node(&planned.general),
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

        fn message_cost(&self) -> MessageCost {
            MessageCost { reads: 1, rows: 1 }
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

    #[test]
    fn rows_go_for_the_lists_that_they_read_and_not_to_come_back_as_they_are_found() {
        let saved = |lists, behind, sent| {
            let rows = RowsAhead {
                before: 1000.0,
                lists,
                behind,
            };
            let nodes = Nodes(4, ForkPolicy::Dynamic);
            assert_eq!(
                rows.saved(sent, &nodes),
                750.0 * rows.saved_each(sent, &nodes)
            );
            rows.saved_each(sent, &nodes)
        };
        assert_eq!(saved(3000.0, 0.0, 1.0), 2.0);
        assert_eq!(saved(3000.0, 500.0, 1.0), 1.5);
        assert_eq!(
            saved(1000.0, 1000.0, 0.0),
            0.0,
            "a list for each row that comes back"
        );
        assert_eq!(saved(1000.0, 1000.0, 1.0), -1.0);
    }
}
