//! Tables that go to another machine and come back, between any two operators of a query.

use jindou_engine::TransportOfTables;
use jindou_exec::{Context, ExecError, Table, Transport};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

/// Sends each table as bytes to where no term is computed yet, and from there back to its query.
#[derive(Default)]
pub struct Elsewhere {
    tables: AtomicU64,
    with_computed: AtomicU64,
    threads: Mutex<HashSet<ThreadId>>,
}

impl Elsewhere {
    /// One for the settings of a database.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// It as a setting.
    #[must_use]
    pub fn transport(self: &Arc<Self>) -> TransportOfTables {
        TransportOfTables(Arc::clone(self) as _)
    }

    /// Tables that went there.
    #[must_use]
    pub fn tables(&self) -> u64 {
        self.tables.load(Ordering::Relaxed)
    }

    /// Those of them that took computed terms along.
    #[must_use]
    pub fn with_computed(&self) -> u64 {
        self.with_computed.load(Ordering::Relaxed)
    }

    /// Threads that have sent some.
    ///
    /// # Panics
    /// If one of them did.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.lock().expect("nobody panics with it").len()
    }
}

impl Transport for Elsewhere {
    fn carry(&self, table: Table, cx: &Context) -> Result<Table, ExecError> {
        let there = cx.terms().without_computed();
        let sent = table.encode(cx.terms(), cx)?;
        drop(table);
        let arrived = Table::decode(sent.bytes(), &there, cx)?;
        drop(sent);
        let sent = arrived.encode(&there, cx)?;
        drop(arrived);
        self.tables.fetch_add(1, Ordering::Relaxed);
        if there.computed_bytes() > 0 {
            self.with_computed.fetch_add(1, Ordering::Relaxed);
        }
        let mut threads = self.threads.lock().expect("nobody panics with it");
        threads.insert(thread::current().id());
        drop(threads);
        Table::decode(sent.bytes(), cx.terms(), cx)
    }
}
