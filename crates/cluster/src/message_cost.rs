//! What does a message to another node take, beside reading what that publishes?

use std::num::NonZero;

use jindou_exec::MessageCost;

/// A message, and the thread that sleeps until it comes, take some tens of microseconds, a list that loads of this
/// process reach some tens of nanoseconds. Measured with a core for each of three nodes: in place and forked, queries
/// take as long where some 4,000 lists are read.
const READS_OF_MAPPED: u32 = 650;
/// A read of those that fly together over TCP, many in a message, takes less than half a microsecond, as a message to the
/// node whose thread makes it does some tens.
const READS_BY_TCP: u32 = 100;
/// A row is gathered, written, copied and read: some tens of nanoseconds, however it goes.
const ROWS: u32 = 700;

/// Of nodes that reach each other by messages over TCP alone.
pub const MESSAGE_COST_BY_TCP: MessageCost = MessageCost {
    reads: READS_BY_TCP,
    rows: ROWS,
};

/// What a message takes between nodes of one machine, mapped or in one process. Where there are fewer cores than `nodes`,
/// threads wait for each other, and messages take longer.
pub(crate) fn of_mapped(nodes: usize) -> MessageCost {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = nodes.div_ceil(cores).max(1) as u32;
    MessageCost {
        reads: READS_OF_MAPPED * share,
        rows: ROWS * share,
    }
}
