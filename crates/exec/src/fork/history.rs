//! What of some rows goes along to the node of their keys, and what stays?
//!
//! With its whole history a row needs nobody when it is finished: full-history pruning. But where rows are wide,
//! or many are alike in what the steps ahead of them look at, most of what travels is nothing that they read. Then
//! only that goes ([`History::part`]), each combination of values once, with a number; what stays is joined with
//! what was found by that number ([`Stayed`]): one-step pruning with a join (Wukong, OSDI'16, section 5.2).

use std::cmp::Ordering;
use std::sync::Arc;

use jindou_plan::physical::Var;

use super::arrived::MOST_COLUMNS;
use super::chain::{Encoded, ForkedChain, Shape};
use super::wire::SubQueryWireError;
use crate::steps;
use crate::table::{Table, VarSet, batch_rows};

/// How the rows before one step of a chain can be parted.
pub(super) struct History {
    /// The chain, as it is for rows that go without their history.
    chain: Arc<ForkedChain>,
    /// What the steps read or bind.
    read: VarSet,
    /// What only those want who read the chain.
    stays: VarSet,
    /// The steps find the same for rows of the same values.
    are_merged: bool,
    origin: Var,
}

/// Rows in two parts.
pub(super) struct Parted {
    /// What goes along.
    pub(super) goes: Table,
    pub(super) stayed: Stayed,
}

/// What stays of rows.
pub(super) struct Stayed {
    /// Those that belong to one row that went lie together.
    pub(super) table: Table,
    /// Where those of each row that went begin, and at last their number.
    starts: Vec<u32>,
    origin: Var,
    /// Columns of the tables in which they are joined.
    width: usize,
}

impl History {
    /// Of rows before step `from`. `None` if no table has room for one more column.
    pub(super) fn new(chain: &Arc<ForkedChain>, from: usize) -> Option<Self> {
        let ahead = &chain.steps[from..];
        let read = steps::needed_before(ahead, &VarSet::default());
        let (goes_on, stays): (Vec<Var>, Vec<Var>) =
            chain.needed.iter().partition(|var| read.contains(*var));
        // Where the rows came without a history themselves, their own number is a part of that, and stays.
        let free = || {
            let has_room = chain.shape.width + 1 < MOST_COLUMNS as usize;
            has_room.then_some(Var(chain.shape.width as u16))
        };
        let origin = chain.shape.origin.or_else(free)?;
        let width = chain.shape.width.max(origin.index() + 1);
        let inner = ForkedChain {
            steps: Arc::clone(&chain.steps),
            needed: goes_on.into_iter().chain([origin]).collect(),
            shape: Shape {
                width,
                origin: Some(origin),
                ..chain.shape
            },
            variables: chain.variables,
            hidden: chain.hidden,
            rows_before: chain.rows_before,
            lists_ahead: chain.lists_ahead.clone(),
            stack: chain.stack,
            cx: Arc::clone(&chain.cx),
            encoded: Encoded::default(),
        };
        Some(Self {
            chain: Arc::new(inner),
            read,
            stays: stays.into_iter().collect(),
            are_merged: !ahead.iter().any(steps::is_volatile),
            origin,
        })
    }

    /// The chain that rows go on in without their history.
    pub(super) fn chain(&self) -> &Arc<ForkedChain> {
        &self.chain
    }

    /// Parts rows, if more than `budget` bytes fewer go then; otherwise gives them back.
    pub(super) fn part(&self, table: Table, budget: usize) -> Result<Parted, Table> {
        let (rows, starts) = self.alike(&table);
        let groups = starts.len() - 1;
        let firsts: Vec<u32> = starts[..groups]
            .iter()
            .map(|start| rows[*start as usize])
            .collect();
        let mut goes = table.gather_whole(&firsts);
        goes.retain_columns(&self.read);
        goes.set_width(self.chain.shape.width);
        goes.set_origins(self.origin);
        let fewer = table.value_bytes().saturating_sub(goes.value_bytes());
        if fewer <= budget {
            return Err(table);
        }
        let stayed = Stayed {
            table: table.gather(&rows, &self.stays),
            starts,
            origin: self.origin,
            width: table.width(),
        };
        Ok(Parted { goes, stayed })
    }

    /// The rows of a table, those together that are alike in what goes along, and where each such group begins,
    /// with the end of the last.
    fn alike(&self, table: &Table) -> (Vec<u32>, Vec<u32>) {
        let count = table.rows() as u32;
        let mut rows: Vec<u32> = (0..count).collect();
        // Numbered solutions differ for functions that tell them apart.
        if !self.are_merged || table.has_solution_numbers() {
            return (rows, (0..=count).collect());
        }
        let read = table.bound().filter(|var| self.read.contains(*var));
        let columns: Vec<_> = read.filter_map(|var| table.get(var)).collect();
        let order = |a: &u32, b: &u32| {
            let values = columns
                .iter()
                .map(|ids| ids[*a as usize].cmp(&ids[*b as usize]));
            values.fold(Ordering::Equal, Ordering::then)
        };
        rows.sort_unstable_by(order);
        let mut starts: Vec<u32> = (0..count)
            .filter(|place| match place.checked_sub(1) {
                None => true,
                Some(before) => {
                    order(&rows[before as usize], &rows[*place as usize]) != Ordering::Equal
                }
            })
            .collect();
        starts.push(count);
        (rows, starts)
    }
}

/// Rows that were found, while they are joined with those that stayed.
pub(super) struct Joining {
    found: Table,
    /// Which row that went each of these belongs to.
    origins: Vec<u32>,
    /// The next row, and the next of those that it belongs to.
    next: (usize, u32),
}

impl Stayed {
    /// Begins to join what was found.
    ///
    /// # Errors
    /// [`SubQueryWireError::Mismatch`] if it was found for rows that never went.
    pub(super) fn join(&self, mut found: Table) -> Result<Joining, SubQueryWireError> {
        let origins = found.take_origins(self.origin);
        let went = self.starts.len() as u32 - 1;
        if origins.iter().any(|origin| *origin >= went) {
            let what = "of rows that belong to none of those that went";
            return Err(SubQueryWireError::Mismatch { what });
        }
        found.set_width(self.width);
        Ok(Joining {
            found,
            origins,
            next: (0, 0),
        })
    }

    /// The next rows; `None` once all are joined.
    pub(super) fn joined(&self, joining: &mut Joining) -> Option<Table> {
        let most = batch_rows(self.width);
        let (mut found, mut stayed) = (Vec::new(), Vec::new());
        let (mut row, mut within) = joining.next;
        while row < joining.origins.len() && found.len() < most {
            let origin = joining.origins[row] as usize;
            let (start, end) = (self.starts[origin], self.starts[origin + 1]);
            let place = start + within;
            found.push(row as u32);
            stayed.push(place);
            (row, within) = match place + 1 == end {
                true => (row + 1, 0),
                false => (row, within + 1),
            };
        }
        joining.next = (row, within);
        if found.is_empty() {
            return None;
        }
        let mut table = joining.found.gather_whole(&found);
        for var in self.table.bound() {
            let column = self
                .table
                .of_any_kind(var)
                .map(|column| column.gather(&stayed));
            table.set_column(var, column.expect("it is bound"));
        }
        Some(table)
    }
}

#[cfg(test)]
mod tests {
    use jindou_model::TermId;
    use jindou_plan::expression::{Expression, Function};
    use jindou_plan::physical::{PlannedStep, Step};

    use super::super::messages::MessageLimits;
    use super::super::test_nodes::TestNodes;
    use super::*;

    const KEY: Var = Var(0);
    const BOUND: Var = Var(1);
    const HISTORY: Var = Var(2);
    const WIDTH: usize = 3;

    /// Before a step that binds a variable to what a function gives for the key.
    fn history(function: Function) -> History {
        let nodes = TestNodes::new(MessageLimits::default());
        let step = Step::Extend {
            var: BOUND,
            expression: Expression::Call(function, vec![Expression::Variable(KEY)]),
        };
        let planned = PlannedStep {
            step,
            rows: 1.0,
            id: 1,
        };
        let chain = nodes.chain(vec![planned], WIDTH, &[BOUND, HISTORY]);
        History::new(&Arc::new(chain), 0).expect("there is room for a column")
    }

    fn vertices(numbers: &[u64]) -> Vec<TermId> {
        numbers.iter().copied().map(TermId::vertex).collect()
    }

    /// Rows of keys, each with another history.
    fn table(keys: &[u64]) -> Table {
        let mut table = Table::with_rows(WIDTH, keys.len());
        table.set(KEY, vertices(keys));
        let histories: Vec<u64> = (100..100 + keys.len() as u64).collect();
        table.set(HISTORY, vertices(&histories));
        table
    }

    #[test]
    fn equal_keys_go_once_and_what_is_found_belongs_to_all_their_rows() {
        let history = history(Function::Str);
        let Ok(Parted { goes, stayed }) = history.part(table(&[7, 5, 7, 7]), 0) else {
            panic!("it is shorter");
        };
        assert_eq!(goes.get(KEY), Some(&vertices(&[5, 7])[..]));
        assert!(goes.get(HISTORY).is_none(), "no step reads it");
        // Of the second key two rows are found, of the first none.
        let mut found = goes.gather_whole(&[1, 1]);
        found.set(BOUND, vertices(&[1, 2]));
        let mut joining = stayed.join(found).expect("they went");
        let joined = stayed.joined(&mut joining).expect("there are rows");
        let column = |var| joined.get(var).expect("it is wanted").iter();
        let mut rows: Vec<(u64, u64)> = column(BOUND)
            .zip(column(HISTORY))
            .map(|(bound, history)| (bound.number(), history.number()))
            .collect();
        rows.sort_unstable();
        let expected = [(1, 100), (1, 102), (1, 103), (2, 100), (2, 102), (2, 103)];
        assert_eq!(rows, expected);
        assert_eq!(joined.width(), WIDTH);
        assert!(stayed.joined(&mut joining).is_none());
    }

    #[test]
    fn rows_of_equal_keys_all_go_where_a_step_may_find_another_thing_for_each() {
        let Ok(parted) = history(Function::BNode).part(table(&[7, 5, 7, 7]), 0) else {
            panic!("it is shorter");
        };
        assert_eq!(parted.goes.get(KEY), Some(&vertices(&[7, 5, 7, 7])[..]));
    }

    #[test]
    fn what_would_be_shorter_by_no_more_than_the_budget_goes_whole() {
        let history = history(Function::Str);
        // Two keys and two numbers in the place of four rows of two columns.
        let fewer = 4 * 16 - 2 * 12;
        assert!(history.part(table(&[7, 5, 7, 7]), fewer).is_err());
        assert!(history.part(table(&[7, 5, 7, 7]), fewer - 1).is_ok());
    }

    #[test]
    fn joins_of_many_rows_come_a_batch_at_a_time() {
        let keys = [7; 3000];
        let Ok(Parted { goes, stayed }) = history(Function::Str).part(table(&keys), 0) else {
            panic!("it is shorter");
        };
        let found = goes.gather_whole(&[0, 0]);
        let mut joining = stayed.join(found).expect("they went");
        let mut rows = 0;
        while let Some(joined) = stayed.joined(&mut joining) {
            assert!(joined.rows() <= batch_rows(WIDTH));
            rows += joined.rows();
        }
        assert_eq!(rows, 2 * keys.len());
    }

    #[test]
    fn rows_that_were_found_for_none_that_went_are_refused() {
        let Ok(Parted { goes, stayed }) = history(Function::Str).part(table(&[7, 5]), 0) else {
            panic!("it is shorter");
        };
        let (mut found, origin) = (Table::with_rows(goes.width(), 1), Var(WIDTH as u16));
        found.set_column(origin, crate::table::Column::Rows(vec![2]));
        let refused = stayed.join(found).err();
        let is_refused = matches!(refused, Some(SubQueryWireError::Mismatch { .. }));
        assert!(is_refused, "{refused:?}");
    }
}
