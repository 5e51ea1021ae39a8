//! May the columns of a SELECT stand as they do?
//!
//! What the notes to the grammar and section 18 of SPARQL ask of them: no `AS` of a column that is
//! there or of a variable in scope, and where solutions are grouped, no variables outside of
//! aggregates but the keys and the columns before.

use crate::hints;
use crate::memory::Parsed;
use crate::parser::Parser;
use crate::scope::Set;
use crate::tree::{
    Column, Deduplicate, ExpressionKind, Modifiers, Projection, Span, Values, Variable,
};

/// A SELECT clause, which is judged when what follows is known.
#[derive(Default)]
pub(crate) struct Clause<'t> {
    pub(crate) deduplicate: Option<Deduplicate>,
    pub(crate) is_star: bool,
    pub(crate) columns: Vec<Column<'t>>,
    /// The variables outside of aggregates of all columns.
    pub(crate) used: Vec<Variable<'t>>,
    /// Where in them those of each column end.
    pub(crate) ends: Vec<usize>,
    pub(crate) has_aggregates: bool,
}

/// The names that the keys of GROUP BY have.
pub(crate) fn keys<'t>(modifiers: &Modifiers<'t>) -> impl Iterator<Item = Variable<'t>> {
    modifiers
        .group_by
        .iter()
        .filter_map(|(key, name)| match (name, &key.kind) {
            (Some(name), _) => Some(*name),
            (None, ExpressionKind::Variable(variable)) => Some(*variable),
            _ => None,
        })
}

impl<'t> Parser<'t, '_> {
    /// The columns, if they may stand as they do. In scope is what WHERE and VALUES say.
    pub(crate) fn checked(
        &mut self,
        mut clause: Clause<'t>,
        modifiers: &Modifiers<'t>,
        is_grouped: bool,
        values: Option<&Values<'t>>,
    ) -> Parsed<Projection<'t>> {
        if clause.is_star {
            if is_grouped {
                let message = "SELECT * cannot stand where solutions are grouped";
                let hint = "name the columns: keys of GROUP BY, and aggregates".to_owned();
                let span = modifiers.group_by.first().map(|(key, _)| key.span);
                let having = modifiers.having.first().map(|key| key.span);
                let span = span.or(having).unwrap_or(self.token.span);
                return Err(self.wrong(span, message.to_owned(), Some(hint)));
            }
            return Ok(Projection::All(self.scope.all(&mut self.memory)?));
        }
        if is_grouped {
            self.begin_grouped(modifiers, values)?;
        }
        self.scope.begin_set(Set::Columns);
        let mut start = 0;
        let mut kept = 0;
        for (at, end) in clause.ends.iter().enumerate() {
            let column = &clause.columns[at];
            let variable = column.variable;
            if is_grouped {
                for used in &clause.used[start..*end] {
                    self.check_grouped(*used, modifiers, Some(column))?;
                }
                start = *end;
            }
            match (&column.expression, is_grouped) {
                (None, true) => self.check_grouped(variable, modifiers, None)?,
                (None, false) => (),
                (Some(_), true)
                    if self.scope.is_in(Set::Grouped, variable.name)
                        && !self.scope.is_in(Set::Columns, variable.name) =>
                {
                    let message = format!(
                        "AS assigns ?{}, which GROUP BY, or VALUES at the end, binds already",
                        variable.name
                    );
                    return Err(self.wrong(variable.span, message, None));
                }
                (Some(_), true) => {
                    self.scope
                        .put(Set::Grouped, variable.name, &mut self.memory)?;
                }
                (Some(_), false) => self.check_new(variable)?,
            }
            let is_new = self
                .scope
                .put(Set::Columns, variable.name, &mut self.memory)?;
            if !is_new && column.expression.is_some() {
                let message = format!("?{} is a column twice", variable.name);
                return Err(self.wrong(variable.span, message, None));
            }
            // A variable that is named again adds no column: columns are a set (section 18.2.4.4).
            if is_new {
                clause.columns.swap(kept, at);
                kept += 1;
            }
        }
        clause.columns.truncate(kept);
        self.memory.release(clause.used);
        self.memory.release(clause.ends);
        Ok(Projection::Columns(clause.columns))
    }

    /// Refuses `AS` of a variable that the pattern has.
    fn check_new(&self, variable: Variable<'t>) -> Parsed<()> {
        let Some(before) = self.scope.seen(variable.name) else {
            return Ok(());
        };
        let name = variable.name;
        let message = format!("AS assigns ?{name}, which the WHERE clause has already");
        let hint = format!("?{name} is at {}", self.place(before.start));
        Err(self.wrong(variable.span, message, Some(hint)))
    }

    /// Notes what columns may use where solutions are grouped.
    pub(crate) fn begin_grouped(
        &mut self,
        modifiers: &Modifiers<'t>,
        values: Option<&Values<'t>>,
    ) -> Parsed<()> {
        self.scope.begin_set(Set::Grouped);
        let values = values
            .iter()
            .flat_map(|values| values.variables.iter().copied());
        for variable in keys(modifiers).chain(values) {
            self.scope
                .put(Set::Grouped, variable.name, &mut self.memory)?;
        }
        Ok(())
    }

    /// Refuses a variable that is neither a key nor a column before.
    pub(crate) fn check_grouped(
        &self,
        variable: Variable<'t>,
        modifiers: &Modifiers<'t>,
        column: Option<&Column<'t>>,
    ) -> Parsed<()> {
        let name = variable.name;
        if self.scope.is_in(Set::Grouped, name) {
            return Ok(());
        }
        let message = format!("?{name} is neither in GROUP BY nor in an aggregate");
        let hint = self
            .repeated_key(variable, modifiers, column)
            .unwrap_or_else(|| {
                format!("GROUP BY ?{name}, or an aggregate such as SAMPLE(?{name})")
            });
        Err(self.wrong(variable.span, message, Some(hint)))
    }

    /// What mends a column that repeats a key of GROUP BY which has no name, around a variable.
    #[cold]
    fn repeated_key(
        &self,
        variable: Variable<'t>,
        modifiers: &Modifiers<'t>,
        column: Option<&Column<'t>>,
    ) -> Option<String> {
        let column = column?;
        let whole = column.expression.as_ref()?.span;
        let written = |span: Span| &self.text[span.start as usize..span.end as usize];
        let unnamed = modifiers.group_by.iter().filter(|(_, name)| name.is_none());
        for key in unnamed.map(|(key, _)| written(key.span).trim()) {
            let name = column.variable.name;
            let shown = hints::shown(key);
            if is_same(written(whole), key) {
                return Some(format!(
                    "GROUP BY ({shown} AS ?{name}), and the column ?{name}"
                ));
            }
            let inside = key.find(written(variable.span));
            let start = inside.and_then(|at| (variable.span.start as usize).checked_sub(at));
            let part = start.and_then(|start| self.text.get(start..whole.end as usize));
            if part.is_some_and(|part| part.starts_with(key)) {
                return Some(format!(
                    "GROUP BY ({shown} AS ?key) gives the key a name, which columns may use"
                ));
            }
        }
        None
    }
}

/// Whether two expressions are written alike but for white space.
fn is_same(one: &str, other: &str) -> bool {
    let dense = |c: &char| !c.is_whitespace();
    one.chars().filter(dense).eq(other.chars().filter(dense))
}
