//! Does a history keep to a level?

use rustc_hash::{FxHashMap, FxHashSet};

use crate::orders::{Lists, Order, Writers, numbered};
use crate::registers::Registers;
use crate::report::{Report, Sizes};
use crate::{Anomaly, Edge, Kind, Operation, OperationId, Outcome, Value};
use crate::{cycles, edges, orders, reads, registers, snapshots};

/// What a database promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Each transaction reads a snapshot, and of two that run at once and write one key, one fails. Write skew is allowed,
    /// and so are old snapshots.
    SnapshotIsolation,
    /// The same, and a transaction's snapshot has all that was acknowledged before it began.
    StrongSnapshotIsolation,
    /// Transactions could have happened one after the other, each between its begin and its end.
    StrictSerializable,
}

/// What a history is checked for.
#[derive(Clone, Debug)]
pub struct Check {
    /// What is promised.
    pub level: Level,
    /// When the final reads began: together they are to show all that was acknowledged before. `None` if there are none.
    pub finals_from: Option<u64>,
    /// Snapshot numbers that one client sees never go back.
    pub clients_go_forward: bool,
    /// An operation has no smaller snapshot number than one that was acknowledged, to any client, before it began.
    pub monotonic: bool,
    /// What was read may be seen before it is acknowledged, and not be there at another server a moment later: by real time,
    /// only what changed something, and was acknowledged, is before what began after that.
    pub reads_see_ahead: bool,
}

impl Check {
    /// A level, without what is optional.
    #[must_use]
    pub fn new(level: Level) -> Self {
        Self {
            level,
            finals_from: None,
            clients_go_forward: false,
            monotonic: false,
            reads_see_ahead: false,
        }
    }
}

/// Why a history cannot be checked: whoever recorded it made a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// It has more operations than ids.
    #[error("a history has 2^31 operations at most")]
    TooLong,
    /// Values are to be unique among lists, and among registers.
    #[error("{value} is written by {first} and by {then}")]
    ValueWrittenTwice {
        /// The value.
        value: Value,
        /// Its first writer.
        first: OperationId,
        /// Another, or the same.
        then: OperationId,
    },
    /// An operation ended before it began, or is done and has no end.
    #[error("{0} has no end, or one before its begin")]
    Times(OperationId),
    /// An operation names a key twice of which it can only use one, or read more or fewer values than it has keys.
    #[error("what {0} read or wrote does not fit its keys")]
    Keys(OperationId),
}

/// Checks a history. The order of operations in it does not matter. For n operations that read a bounded number of values
/// and run a bounded number at a time, it costs n log n.
///
/// # Errors
/// [`HistoryError`] for what is no history.
pub fn check(history: &[Operation], check: &Check) -> Result<Report, HistoryError> {
    let (list_writers, register_writers) = validate(history)?;
    let mut report = Report::new(check.level);
    let mut found = |anomaly| report.add(anomaly);
    let done = history.iter().map(Operation::is_done).collect();
    let Lists {
        orders: lists,
        mut committed,
    } = orders::of_lists(history, &list_writers, done, &mut found);
    let registers = registers::of_registers(history, &register_writers, &mut committed, &mut found);
    check_reads(history, &lists, &registers, &mut found);
    let strong = check.level > Level::SnapshotIsolation;
    let unchecked = all_orders(&lists, &registers)
        .map(|order| {
            if strong {
                reads::stale(history, order, &mut found);
            }
            let finals_from = check.finals_from;
            finals_from.map_or(0, |from| {
                reads::lost_writes(history, order, from, &mut found)
            })
        })
        .sum();
    let written_by = |value| register_writers[&value].0;
    for links in registers.links.iter().filter(|_| strong) {
        reads::stale_of_links(history, links, written_by, &mut found);
    }
    let mut edges = Vec::new();
    for order in all_orders(&lists, &registers) {
        edges::of_order(order, &mut edges);
    }
    for links in &registers.links {
        edges::of_links(history, links, &register_writers, &mut edges);
    }
    let data_edges = edges.len();
    check_cycles(history, check, &committed, &mut edges, &mut found);
    check_numbers(history, check, all_orders(&lists, &registers), &mut found);
    report.sizes = Sizes {
        operations: history.len(),
        committed: committed.iter().filter(|committed| **committed).count(),
        data_edges,
        real_time_edges: edges.len() - data_edges,
        unchecked_for_loss: unchecked,
    };
    Ok(report)
}

fn all_orders<'o>(lists: &'o [Order], registers: &'o Registers) -> impl Iterator<Item = &'o Order> {
    lists.iter().chain(&registers.orders)
}

fn check_reads(
    history: &[Operation],
    lists: &[Order],
    registers: &Registers,
    found: &mut impl FnMut(Anomaly),
) {
    for order in lists {
        reads::intermediate(history, order, found);
    }
    for (orders, shows) in [
        (lists, reads::Shows::All),
        (&registers.orders, reads::Shows::Last),
    ] {
        let positions = reads::positions(orders);
        reads::partial(history, orders, &positions, shows, found);
    }
    for order in all_orders(lists, registers) {
        reads::lost_updates(history, order, found);
    }
    for links in &registers.links {
        reads::lost_updates_of_links(links, found);
    }
}

fn check_cycles(
    history: &[Operation],
    check: &Check,
    committed: &[bool],
    edges: &mut Vec<Edge>,
    found: &mut impl FnMut(Anomaly),
) {
    let with_g2 = check.level == Level::StrictSerializable;
    cycles::report(history.len(), edges, with_g2, false, found);
    if check.level > Level::SnapshotIsolation {
        let is_first = |operation: &Operation| !check.reads_see_ahead || operation.is_update();
        edges::of_real_time(history, committed, is_first, edges);
        cycles::report(history.len(), edges, with_g2, true, found);
    }
}

fn check_numbers<'o>(
    history: &[Operation],
    check: &Check,
    orders: impl Iterator<Item = &'o Order>,
    found: &mut impl FnMut(Anomaly),
) {
    let reads_before_itself = check.level == Level::StrictSerializable;
    let mut bounds = snapshots::Bounds::default();
    snapshots::reused(history, found);
    for order in orders {
        snapshots::of_order(history, order, reads_before_itself, &mut bounds, found);
    }
    bounds.report(found);
    if check.clients_go_forward {
        snapshots::clients(history, found);
    }
    if check.monotonic {
        snapshots::monotonic(history, found);
    }
}

/// Who wrote each value of lists, and of registers.
fn validate(history: &[Operation]) -> Result<(Writers, Writers), HistoryError> {
    // Cycles are looked for on twice as many nodes, which have numbers of 32 bits.
    if history.len() >= 1 << 31 {
        return Err(HistoryError::TooLong);
    }
    let (mut lists, mut registers) = (Writers::default(), Writers::default());
    for (id, operation) in numbered(history) {
        let ended = operation.ended;
        if ended.is_some_and(|at| at < operation.begun) || operation.is_done() && ended.is_none() {
            return Err(HistoryError::Times(id));
        }
        if !fits(operation) {
            return Err(HistoryError::Keys(id));
        }
        add_writers(&mut lists, id, operation.appends())?;
        add_writers(&mut registers, id, operation.writes())?;
    }
    Ok((lists, registers))
}

fn add_writers(
    writers: &mut Writers,
    id: OperationId,
    written: &[(crate::Key, Value)],
) -> Result<(), HistoryError> {
    for (key, value) in written {
        if let Some((first, _)) = writers.insert(*value, (id, *key)) {
            return Err(HistoryError::ValueWrittenTwice {
                value: *value,
                first,
                then: id,
            });
        }
    }
    Ok(())
}

/// True if there is a value for each key that was read, if any is, and no key twice.
fn fits(operation: &Operation) -> bool {
    let (keys, read) = match &operation.kind {
        Kind::Append { .. } | Kind::Write { .. } => (&[][..], None),
        Kind::Read { keys, lists } => (&keys[..], Some(lists.len())),
        Kind::ReadAppend { keys, lists, .. } => (&keys[..], lists.as_ref().map(Vec::len)),
        Kind::ReadRegister { keys, values } => (&keys[..], Some(values.len())),
        Kind::ReadWrite { keys, values, .. } => (&keys[..], values.as_ref().map(Vec::len)),
    };
    let mut seen = FxHashSet::default();
    let mut written = FxHashMap::default();
    let reads_nothing = read == Some(0) && !matches!(operation.outcome, Outcome::Done { .. });
    keys.iter().all(|key| seen.insert(*key))
        && (reads_nothing || read.is_none_or(|count| count == keys.len()))
        && operation
            .writes()
            .iter()
            .all(|(key, value)| written.insert(*key, *value).is_none())
}
