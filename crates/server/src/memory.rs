//! How much memory may the queries of a server hold, and how is its database set up for that?

use std::fs;
use std::sync::Arc;

use jindou_engine::ingest::ThreadStart;
use jindou_engine::{Config, MemoryPool};

use crate::threads::HeavyPriority;

/// What all queries may hold together where the machine does not tell its memory.
const UNKNOWN_TOTAL_BYTES: u64 = 4 << 30;
/// What one query may hold at most unless told otherwise.
const QUERY_BYTES: u64 = 4 << 30;
/// The part of the total that is kept for what nobody counts: connections, threads, queries that
/// have just begun, and what the allocator has not given back yet.
const UNCOUNTED_SHARE: u64 = 5;
/// The most that is kept for that: it grows with clients and not with the machine.
const MOST_UNCOUNTED_BYTES: u64 = 512 << 20;

/// Bounds on the memory of queries. The data itself is not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// All queries together, the answers that wait for their clients, and what of both is not
    /// counted: half of the machine's memory, or of what its control group allows. A fifth, and
    /// 512 MiB at most, is kept for what is not counted.
    pub total_bytes: u64,
    /// One query: 4 GiB, and no more than half of what all may hold.
    pub query_bytes: u64,
}

impl MemoryLimits {
    /// These bounds, where they are given, and the defaults for the rest. Reads two files of the
    /// system.
    #[must_use]
    pub fn new(total_bytes: Option<u64>, query_bytes: Option<u64>) -> Self {
        let half = || machine_bytes().map_or(UNKNOWN_TOTAL_BYTES, |bytes| bytes / 2);
        let total_bytes = total_bytes.unwrap_or_else(half);
        let query_bytes = query_bytes.unwrap_or(QUERY_BYTES.min(counted(total_bytes) / 2));
        Self {
            total_bytes,
            query_bytes,
        }
    }

    /// Settings for a database that is served: these bounds, and threads for heavy queries with
    /// this priority, which should be that of the server's configuration.
    #[must_use]
    pub fn engine_config(self, heavy_priority: HeavyPriority) -> Config {
        let mut config = Config::default();
        config.query_memory_bytes = self.query_bytes;
        config.memory_pool = Some(Arc::new(MemoryPool::new(counted(self.total_bytes))));
        config.worker_start = Some(ThreadStart::new(move || heavy_priority.take()));
        config.reading_start = Some(ThreadStart::new(move || heavy_priority.take_to_read()));
        config.update_start = Some(ThreadStart::new(move || heavy_priority.take_to_update()));
        config
    }
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self::new(None, None)
    }
}

/// What queries may hold of a total, as it is counted.
fn counted(total_bytes: u64) -> u64 {
    total_bytes - (total_bytes / UNCOUNTED_SHARE).min(MOST_UNCOUNTED_BYTES)
}

/// What is left out of a pool of this size that [`MemoryLimits::engine_config`] made.
pub(crate) fn spare_bytes(pool_bytes: u64) -> u64 {
    (pool_bytes / (UNCOUNTED_SHARE - 1)).min(MOST_UNCOUNTED_BYTES)
}

/// The memory of the machine, or of this process's control group if that is less.
fn machine_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok();
    let machine = machine.as_deref().and_then(total);
    // "max" where there is no limit.
    let group = fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let group = group.and_then(|text| text.trim().parse().ok());
    match (machine, group) {
        (Some(machine), Some(group)) => Some(machine.min(group)),
        (machine, group) => machine.or(group),
    }
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_query_never_has_all_unless_it_is_told_to() {
        assert_eq!(
            MemoryLimits::new(Some(1 << 30), None).query_bytes,
            counted(1 << 30) / 2
        );
        assert_eq!(
            MemoryLimits::new(Some(64 << 30), None).query_bytes,
            QUERY_BYTES
        );
        assert_eq!(MemoryLimits::new(Some(5), Some(7)).query_bytes, 7);
        let defaults = MemoryLimits::default();
        assert!(defaults.query_bytes <= defaults.total_bytes);
    }

    #[test]
    fn what_is_spared_follows_from_the_pool() {
        for total in [8, 1 << 20, 1 << 30, 5 << 30] {
            let sum = counted(total) + spare_bytes(counted(total));
            assert!(sum.abs_diff(total) <= 1, "{total}");
        }
    }

    #[test]
    fn the_machines_memory_is_read() {
        let text = "MemFree: 1 kB\nMemTotal:       2048 kB\n";
        assert_eq!(total(text), Some(2 << 20));
        assert_eq!(total("MemTotal: many"), None);
    }
}
