//! Which rows of a table go on at other nodes?

use std::sync::{Arc, OnceLock};

use jindou_model::{NodeId, TermId};
use jindou_plan::physical::Slot;
use rustc_hash::FxHashSet;

use super::chain::ForkPlace;
use super::decide::cost_of_forks;
use super::history::{History, Parted};
use super::{ForkKey, ForkPolicy, Forks};
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::Table;

/// Neighbours of one key from which on they are followed at its node.
const LONG_LIST: f64 = 4096.0;
/// Sub-queries of one chain that may be under way: beyond that, rows go on where they are.
const MOST_UNDER_WAY: usize = 256;

/// Rows of a table from which on what the plan expects of all of them counts, too.
const MANY_ROWS: usize = 1024;
/// Messages that follow others, to threads that are awake, cost as much as one to a thread that sleeps and one back.
const MESSAGES_TO_AWAKE: f64 = 64.0;

/// What it costs, in reads, to send more to nodes whose threads are awake.
fn cost_of_more(forks: &dyn Forks) -> f64 {
    cost_of_forks(forks) / MESSAGES_TO_AWAKE
}

/// Before a step: has rows go on at the nodes of their keys, where that is less work than to read
/// these from here.
pub(crate) struct Fork {
    input: Boxed,
    key: ForkKey,
    /// The step.
    from: usize,
    /// Rows expected of the step for each row.
    fan_out: f64,
    /// What a row that goes saves, in reads.
    saved: f64,
    /// The plan expects so many rows that it is worth it for all of them.
    is_expected: bool,
    /// What those that stayed would have saved.
    spent: f64,
    place: ForkPlace,
    forks: Arc<dyn Forks>,
    /// Of the keys of a table.
    nodes: Vec<NodeId>,
    /// How rows are parted that go without their history, once some are large enough.
    history: OnceLock<Option<History>>,
}

impl Fork {
    pub(crate) fn new(
        input: Boxed,
        (from, key): (usize, ForkKey),
        fan_out: f64,
        place: ForkPlace,
        forks: &Arc<dyn Forks>,
    ) -> Self {
        let ahead = place.chain.ahead(from);
        Self {
            input,
            key,
            from,
            fan_out,
            saved: ahead.saved_each(1.0, &**forks),
            is_expected: ahead.saved(1.0, &**forks) > cost_of_forks(&**forks),
            spent: 0.0,
            place,
            forks: Arc::clone(forks),
            nodes: Vec::new(),
            history: OnceLock::new(),
        }
    }

    /// The rows that go on here; the others have set out.
    fn split(&mut self, table: Table, cx: &Context) -> Result<Table, ExecError> {
        let here = self.forks.here();
        Ok(match self.key_of(&table) {
            Some(Slot::Const(id)) => {
                let node = self.forks.node_of(cx.constant(id));
                if node == here || !self.is_worth_it(1, table.rows()) {
                    return Ok(table);
                }
                let nothing = Table::with_rows(table.width(), 0);
                self.send(node, table, cx)?;
                nothing
            }
            Some(Slot::Var(var)) => {
                let keys = table.get(var).unwrap_or_default();
                let all = u32::try_from(keys.len()).unwrap_or(u32::MAX);
                // If it is not for all of them, those elsewhere need not be counted.
                if !self.is_worth_it(all, keys.len()) {
                    self.spent += f64::from(all) * self.saved;
                    return Ok(table);
                }
                self.forks.nodes_of(keys, &mut self.nodes);
                let elsewhere = self.distinct_elsewhere(keys);
                match self.is_worth_it(elsewhere, keys.len()) {
                    true => self.split_by_nodes(&table, cx)?,
                    false => {
                        self.spent += f64::from(elsewhere) * self.saved;
                        table
                    }
                }
            }
            None => table,
        })
    }

    /// The first of the keys that is bound.
    fn key_of(&self, table: &Table) -> Option<Slot> {
        let is_bound = |slot: &&Slot| match slot {
            Slot::Const(_) => true,
            Slot::Var(var) => table.get(*var).is_some(),
        };
        self.key.iter().find(is_bound).copied()
    }

    /// How many keys other nodes have, up to as many as decide.
    fn distinct_elsewhere(&self, keys: &[TermId]) -> u32 {
        let here = self.forks.here();
        let most = match self.saved > 0.0 {
            true => ((cost_of_forks(&*self.forks) / self.saved) as u32).saturating_add(1),
            false => 1,
        };
        let mut met: FxHashSet<TermId> = FxHashSet::default();
        let mut last = TermId::NONE;
        for (key, node) in keys.iter().zip(&self.nodes) {
            // Equal keys often follow each other.
            if *node == here || *key == last {
                continue;
            }
            last = *key;
            if met.insert(*key) && met.len() as u32 == most {
                break;
            }
        }
        met.len() as u32
    }

    /// True if some rows should go to so many keys elsewhere.
    ///
    /// Reading costs no more than forking would until as much was read. So where the rows that came tell it, or
    /// the plan, and a table has keys enough for a message of a flow of them, they go.
    fn is_worth_it(&self, keys: u32, rows: usize) -> bool {
        if self.place.under_way() >= MOST_UNDER_WAY {
            return false;
        }
        match self.forks.settings().policy {
            ForkPolicy::InPlace => false,
            ForkPolicy::ForkJoin => keys > 0,
            ForkPolicy::Dynamic => {
                let saved = f64::from(keys) * self.saved;
                let is_expected = self.is_expected && rows >= MANY_ROWS;
                let is_flow = is_expected || self.spent + saved > cost_of_forks(&*self.forks);
                (is_flow && saved > cost_of_more(&*self.forks))
                    || (keys > 0 && self.fan_out > LONG_LIST)
            }
        }
    }

    fn split_by_nodes(&self, table: &Table, cx: &Context) -> Result<Table, ExecError> {
        let here = self.forks.here();
        let mut by_node: Vec<Vec<u32>> = vec![Vec::new(); self.forks.nodes() as usize];
        for (row, node) in self.nodes.iter().enumerate() {
            by_node[node.0 as usize].push(row as u32);
        }
        let own = table.gather_whole(&by_node[here.0 as usize]);
        for (node, rows) in by_node.iter().enumerate() {
            if node != here.0 as usize && !rows.is_empty() {
                self.send(NodeId(node as u32), table.gather_whole(rows), cx)?;
            }
        }
        Ok(own)
    }

    fn send(&self, to: NodeId, table: Table, cx: &Context) -> Result<(), ExecError> {
        let sub_query = match self.part(table) {
            Err(table) => self.place.sub_query(self.from, false, table),
            Ok((history, mut parted)) => {
                cx.book_table(&mut parted.stayed.table)?;
                let how = (self.from, history);
                self.place.sub_query_of_part(how, parted, &self.forks)
            }
        };
        self.forks.send(to, sub_query);
        Ok(())
    }

    /// Parts rows whose history is larger than it may be; gives others back.
    fn part(&self, table: Table) -> Result<(&History, Parted), Table> {
        let budget = self.forks.settings().history_bytes;
        if table.value_bytes() <= budget {
            return Err(table);
        }
        let history = || History::new(&self.place.chain, self.from);
        match self.history.get_or_init(history) {
            Some(history) => Ok((history, history.part(table, budget)?)),
            None => Err(table),
        }
    }
}

impl Operator for Fork {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            let Some(table) = self.input.next(cx)? else {
                return Ok(None);
            };
            let here = self.split(table, cx)?;
            let kept = match here.rows() {
                0 => None,
                _ => self.place.lend(self.from, here, &*self.forks),
            };
            if kept.is_some() {
                return Ok(kept);
            }
            cx.check()?;
        }
    }
}

/// At the start of a chain that scans an index vertex: has each other node scan its part.
pub(crate) struct ForkScan {
    input: Boxed,
    place: ForkPlace,
    forks: Arc<dyn Forks>,
}

impl ForkScan {
    pub(crate) fn new(input: Boxed, place: ForkPlace, forks: &Arc<dyn Forks>) -> Self {
        Self {
            input,
            place,
            forks: Arc::clone(forks),
        }
    }
}

impl Operator for ForkScan {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let Some(table) = self.input.next(cx)? else {
            return Ok(None);
        };
        for node in (0..self.forks.nodes()).map(NodeId) {
            if node != self.forks.here() && self.forks.holds(node) {
                let sub_query = self.place.sub_query(0, true, table.clone());
                self.forks.send(node, sub_query);
            }
        }
        Ok(Some(table))
    }
}
