//! How does an expression read the rows it is evaluated for?

use jindou_model::TermId;
use jindou_plan::physical::Var;

use crate::{KeyKind, Keys};

/// One solution, as expressions see it.
pub trait Row {
    /// The value of a variable; [`TermId::NONE`] where it is unbound.
    fn get(&self, var: Var) -> TermId;

    /// The key of a variable's value where it is at hand: no key of an inline value is.
    #[inline]
    fn key(&self, _var: Var) -> Option<(&[u8], KeyKind)> {
        None
    }

    /// A number that tells this solution from the others of the query, and is the same for all
    /// expressions evaluated for it: only `BNODE("label")` looks at it.
    fn solution(&self) -> u64;
}

/// Rows in columns.
pub trait Columns {
    /// The column of a variable; `None` if it is unbound in all rows.
    fn column(&self, var: Var) -> Option<&[TermId]>;

    /// As [`Row::solution`], of the row with this index.
    fn solution(&self, row: usize) -> u64;
}

/// One row of some [`Columns`].
pub struct ColumnRow<'a> {
    columns: &'a dyn Columns,
    index: usize,
}

impl<'a> ColumnRow<'a> {
    /// The row `index` of `columns`.
    #[must_use]
    pub fn new(columns: &'a dyn Columns, index: usize) -> Self {
        Self { columns, index }
    }
}

impl Row for ColumnRow<'_> {
    fn get(&self, var: Var) -> TermId {
        self.columns
            .column(var)
            .map_or(TermId::NONE, |column| column[self.index])
    }

    fn solution(&self) -> u64 {
        self.columns.solution(self.index)
    }
}

/// One row of some [`Columns`], with keys of some variables at hand.
pub(super) struct BatchRow<'a> {
    pub(super) columns: &'a dyn Columns,
    pub(super) row: usize,
    /// The variables whose keys are at hand, and these.
    pub(super) texts: &'a [Var],
    pub(super) keys: &'a [Keys],
    /// The row's place in the keys.
    pub(super) place: usize,
}

impl Row for BatchRow<'_> {
    #[inline]
    fn get(&self, var: Var) -> TermId {
        self.columns
            .column(var)
            .map_or(TermId::NONE, |column| column[self.row])
    }

    #[inline]
    fn key(&self, var: Var) -> Option<(&[u8], KeyKind)> {
        let at = self.texts.iter().position(|text| *text == var)?;
        let (key, kind) = self.keys[at].get(self.place);
        (kind != KeyKind::None).then_some((key, kind))
    }

    fn solution(&self) -> u64 {
        self.columns.solution(self.row)
    }
}

/// The row of no variables, in which constant expressions are evaluated.
pub(super) struct NoRow;

impl Row for NoRow {
    fn get(&self, _var: Var) -> TermId {
        TermId::NONE
    }

    fn solution(&self) -> u64 {
        0
    }
}

/// A row of one variable, for results that are remembered by its value.
pub(super) struct SingleRow {
    pub(super) id: TermId,
}

impl Row for SingleRow {
    fn get(&self, _var: Var) -> TermId {
        self.id
    }

    fn solution(&self) -> u64 {
        0
    }
}
