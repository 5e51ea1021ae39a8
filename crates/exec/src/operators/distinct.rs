//! DISTINCT: has this row been seen before?
//!
//! Where the rows are found by several threads, each looks whether it has seen its own
//! ([`PartialDistinct`]).

use jindou_model::inline;
use jindou_plan::physical::Var;

use super::dedup::Dedup;
use super::partial_distinct::{PartialDistinct, Sent};
use super::sorter::{SortBy, Sorter};
use crate::ExecError;
use crate::context::Context;
use crate::exchange::Exchange;
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet};

/// Where rows come from.
pub(super) enum Input {
    /// One thread.
    Rows(Boxed),
    /// Several threads, in no order.
    Exchange(Box<Exchange<PartialDistinct>>),
}

impl Input {
    fn next(&mut self, cx: &Context) -> Result<Option<Sent>, ExecError> {
        match self {
            Self::Rows(input) => Ok(input.next(cx)?.map(|table| Sent {
                table,
                is_distinct: false,
            })),
            Self::Exchange(exchange) => exchange.receive(cx),
        }
    }
}

/// Passes each row once.
pub(super) struct Distinct {
    input: Input,
    dedup: Dedup,
    /// Set where rows come in an order that must be kept.
    order: Option<Order>,
    /// The input is at its end.
    is_read: bool,
}

/// What brings rows into their order again that were put off.
struct Order {
    /// The column behind those of the plan that numbers the rows.
    number: Var,
    rows: i64,
    sorter: Sorter,
    is_sorted: bool,
}

impl Distinct {
    /// `width` is the columns of a row, and `ordered` tells that the order of rows matters.
    pub(super) fn new(
        input: Input,
        vars: Vec<Var>,
        ordered: bool,
        width: usize,
        cx: &Context,
    ) -> Self {
        let number = Var(u16::try_from(width).expect("a plan has fewer than 2^16 columns"));
        let by = SortBy {
            var: number,
            descending: false,
        };
        let all: VarSet = (0..number.0).map(Var).collect();
        Self {
            input,
            dedup: Dedup::new(vars, cx),
            order: ordered.then(|| Order {
                number,
                rows: 0,
                sorter: Sorter::new(vec![by], None, all, cx),
                is_sorted: false,
            }),
            is_read: false,
        }
    }
}

impl Order {
    fn number(&mut self, table: &mut Table) {
        let first = self.rows;
        self.rows += table.rows() as i64;
        let id = |row| inline::from_integer(row).expect("fewer than 2^59 rows");
        table.set_width(self.number.index() + 1);
        table.set(self.number, (first..self.rows).map(id).collect());
    }

    fn next(&mut self, dedup: &mut Dedup, cx: &Context) -> Result<Option<Table>, ExecError> {
        if !self.is_sorted {
            while let Some(table) = dedup.next_late(cx)? {
                self.sorter.push(&table, cx)?;
            }
            self.is_sorted = true;
        }
        self.sorter.next(cx)
    }
}

impl Operator for Distinct {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        if !self.is_read {
            if let Some(Sent {
                mut table,
                is_distinct,
            }) = self.input.next(cx)?
            {
                table.take_counts();
                if is_distinct {
                    return Ok(Some(table));
                }
                if let Some(order) = &mut self.order {
                    order.number(&mut table);
                }
                let fresh = self.dedup.fresh(&table, cx)?;
                table.retain_rows(&fresh);
                if let Some(order) = &self.order {
                    table.set_width(order.number.index());
                }
                return Ok(Some(table));
            }
            self.is_read = true;
        }
        let table = match &mut self.order {
            None => self.dedup.next_late(cx)?,
            Some(order) => order.next(&mut self.dedup, cx)?,
        };
        Ok(table.map(|mut table| {
            if let Some(order) = &self.order {
                table.set_width(order.number.index());
            }
            table
        }))
    }
}
