//! How many rows would the last step give? Where nobody looks at what it binds, that number is
//! enough: the lengths of adjacency lists, without a look at what is in them.

use jindou_model::{Direction, GraphRef, IdRanges, Lists, PredicateId, TermId};
use jindou_plan::physical::{PlannedStep, Requirement, Side, Slot, Step, Var};

use super::graphs::EachGraph;
use super::path::FollowPath;
use super::scope::{Graph, Place};
use super::{ResolvedSide, precision_for, required_ids};
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet};

/// Ranges of ids up to which the neighbours in them are counted by searching for their ends.
const FEW_RANGES: usize = 8;
/// Rows whose adjacency is located together.
const ROWS_AT_ONCE: usize = 1024;

/// The last of `steps` as an operator that gives each row once, with the number of rows that it
/// stands for, if it is of a kind that can; `needed` are the variables wanted behind it. Else the
/// input is given back. What comes in binds nothing where it `is_unit`.
pub(crate) fn build(
    input: Boxed,
    is_unit: bool,
    steps: &[PlannedStep],
    needed: &VarSet,
    cx: &Context,
) -> Result<Result<Boxed, Boxed>, ExecError> {
    let Some((last, before)) = steps.split_last() else {
        return Ok(Err(input));
    };
    let keep = needed.clone();
    match &last.step {
        step @ Step::Bind {
            sides,
            requires,
            scope,
            ..
        } if is_by_length(step, needed) => {
            let Place::Fixed(graph) = Place::new(*scope, cx) else {
                return Ok(Err(input));
            };
            CountBind::build(input, graph, (sides, requires), keep, cx)
                .map(|built| built.map(|count| Box::new(count) as Boxed))
        }
        Step::Match {
            subject,
            predicate,
            object,
            scope,
        } => {
            let place = Place::new(*scope, cx);
            let slots = [*subject, *predicate, *object];
            let is_bound = |slot: Slot| match slot {
                Slot::Const(_) => true,
                Slot::Var(var) => before.iter().any(|planned| binds(&planned.step, var)),
            };
            let is_wanted = |slot: Slot| matches!(slot, Slot::Var(var) if needed.contains(var));
            let repeats = slots[0] == slots[1] || slots[0] == slots[2] || slots[1] == slots[2];
            let ends_are_free = [slots[0], slots[2]]
                .iter()
                .all(|end| is_bound(*end) || !is_wanted(*end));
            if repeats || !ends_are_free {
                return Ok(Err(input));
            }
            let input: Boxed = match &place {
                Place::Fixed(graph) if is_counted(graph, cx) => input,
                // Each graph counts what it has; an end that is bound would be asked for in each.
                Place::Var(graph)
                    if is_unit && before.is_empty() && !slots.contains(&Slot::Var(*graph)) =>
                {
                    let mut keep = needed.clone();
                    keep.insert(*graph);
                    Box::new(EachGraph::new(input, Slot::Var(*graph), keep))
                }
                Place::Fixed(_) | Place::Var(_) => return Ok(Err(input)),
            };
            Ok(Ok(Box::new(CountMatch {
                input,
                place,
                slots,
                keep,
                current: None,
            })))
        }
        Step::Path {
            subject,
            path,
            object,
            scope,
        } => {
            let ends = [*subject, *object];
            let path = FollowPath::new(input, ends, path, *scope, keep, cx);
            Ok(Ok(Box::new(path.counted())))
        }
        _ => Ok(Err(input)),
    }
}

/// True if the rows of a step are counted by the lengths of lists, where only these variables are wanted behind it.
pub(crate) fn is_by_length(step: &Step, needed: &VarSet) -> bool {
    matches!(step, Step::Bind { var, sides, .. } if !needed.contains(*var) && sides.len() < 2)
}

/// A step that binds a variable which nobody wants behind it, as an operator that keeps the rows for which there is
/// a value, each once: inside EXISTS, where one is as good as many. `None` of those that would have
/// to read lists, with the input.
pub(crate) fn build_any(
    input: Boxed,
    planned: &PlannedStep,
    needed: &VarSet,
    cx: &Context,
) -> Result<Result<Boxed, Boxed>, ExecError> {
    let Step::Bind {
        var,
        sides,
        requires,
        scope,
    } = &planned.step
    else {
        return Ok(Err(input));
    };
    if needed.contains(*var) || sides.len() > 1 {
        return Ok(Err(input));
    }
    match Place::new(*scope, cx) {
        // Of others, neighbours are counted one by one.
        Place::Fixed(graph @ (Graph::Default | Graph::Named)) => {
            let count = CountBind::build(input, graph, (sides, requires), needed.clone(), cx)?;
            Ok(count.map(|count| {
                Box::new(CountBind {
                    is_any: true,
                    ..count
                }) as Boxed
            }))
        }
        Place::Fixed(_) | Place::Var(_) => Ok(Err(input)),
    }
}

/// True if the edges of each predicate are counted in a graph.
fn is_counted(graph: &Graph, cx: &Context) -> bool {
    let mut predicates = Vec::new();
    cx.source.predicates(graph.as_ref(), &mut predicates);
    let mut predicates = predicates.into_iter();
    predicates.all(|predicate| cx.source.edges(graph.as_ref(), predicate).is_some())
}

/// True if this step gives the variable a value in each row.
fn binds(step: &Step, var: Var) -> bool {
    matches!(step, Step::Bind { var: bound, .. } if *bound == var)
}

/// Keeps the rows that stand for some, with their numbers unless they are to be there once.
fn counted(mut table: Table, counts: Vec<u64>, keep: &VarSet, is_any: bool) -> Table {
    let rows: Vec<u32> = (0..table.rows() as u32)
        .filter(|row| counts[*row as usize] > 0)
        .collect();
    table.retain_columns(keep);
    table.retain_rows(&rows);
    if !is_any {
        table.set_counts(counts.into_iter().filter(|count| *count > 0).collect());
    }
    table
}

/// [`Step::Bind`] of a variable that nobody wants, from one side or none.
struct CountBind {
    input: Boxed,
    graph: Graph,
    /// None for a scan.
    side: Option<ResolvedSide>,
    allowed: Option<IdRanges>,
    keep: VarSet,
    /// Whether there are some is all that is asked.
    is_any: bool,
}

impl CountBind {
    /// The input is given back where lists would have to be read.
    fn build(
        input: Boxed,
        graph: Graph,
        (sides, requires): (&[Side], &[Requirement]),
        keep: VarSet,
        cx: &Context,
    ) -> Result<Result<Self, Boxed>, ExecError> {
        let side = sides.first().map(|side| ResolvedSide::new(side, cx));
        let precision = precision_for(sides, cx);
        let allowed = required_ids(graph.as_ref(), requires, precision, None, cx)?;
        let ranges = allowed.as_ref().map_or(0, |allowed| allowed.ranges().len());
        if ranges > FEW_RANGES && side.is_some() {
            return Ok(Err(input));
        }
        Ok(Ok(Self {
            input,
            graph,
            side,
            allowed,
            keep,
            is_any: false,
        }))
    }

    fn counts(&self, table: &Table, cx: &Context) -> Result<Vec<u64>, ExecError> {
        let Some(side) = self.side else {
            let ids = self.allowed.as_ref().expect("a scan names what it scans");
            return Ok(vec![ids.len(); table.rows()]);
        };
        let Some(predicate) = side.predicate else {
            return Ok(vec![0; table.rows()]);
        };
        let mut counts = Vec::with_capacity(table.rows());
        let mut count = |keys: &[TermId]| {
            let list = Lists {
                predicate,
                direction: side.direction,
                keys,
            };
            let allowed = self.allowed.as_ref();
            cx.degrees(self.graph.as_ref(), &list, allowed, &mut counts)
        };
        match side.from {
            Slot::Const(id) => {
                count(&[cx.constant(id)])?;
                let count = counts[0];
                counts.resize(table.rows(), count);
            }
            Slot::Var(var) => {
                for keys in table.get(var).unwrap_or_default().chunks(ROWS_AT_ONCE) {
                    cx.check()?;
                    count(keys)?;
                }
                counts.resize(table.rows(), 0);
            }
        }
        Ok(counts)
    }
}

impl Operator for CountBind {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let Some(table) = self.input.next(cx)? else {
            return Ok(None);
        };
        let counts = self.counts(&table, cx)?;
        Ok(Some(counted(table, counts, &self.keep, self.is_any)))
    }
}

/// [`Step::Match`] in a graph that is known in each row, and whose ends, where it binds them, nobody
/// wants.
struct CountMatch {
    input: Boxed,
    place: Place,
    slots: [Slot; 3],
    keep: VarSet,
    current: Option<(Table, usize)>,
}

/// The rows found, those of one predicate each where somebody wants it.
#[derive(Default)]
struct Found {
    rows: Vec<u32>,
    predicates: Vec<TermId>,
    counts: Vec<u64>,
}

impl CountMatch {
    /// Triples of one predicate that match.
    fn count(
        graph: GraphRef<'_>,
        predicate: PredicateId,
        ends: [Option<TermId>; 2],
        cx: &Context,
    ) -> Result<u64, ExecError> {
        let degree = |direction, key: TermId| {
            let mut counts = Vec::with_capacity(1);
            let keys = [key];
            let list = Lists {
                predicate,
                direction,
                keys: &keys,
            };
            cx.degrees(graph, &list, None, &mut counts)?;
            Ok(counts[0])
        };
        match ends {
            [None, None] => {
                let counted = cx.source.edges(graph, predicate);
                Ok(counted.expect("such graphs count their edges"))
            }
            [Some(subject), None] => degree(Direction::Out, subject),
            [None, Some(object)] => degree(Direction::In, object),
            [Some(subject), Some(object)] => {
                let mut rows = Vec::with_capacity(1);
                let list = Lists {
                    predicate,
                    direction: Direction::Out,
                    keys: &[subject],
                };
                cx.contains(graph, &list, &[object], &mut rows)?;
                Ok(rows.len() as u64)
            }
        }
    }

    fn count_row(
        &self,
        table: &Table,
        row: usize,
        found: &mut Found,
        cx: &Context,
    ) -> Result<(), ExecError> {
        let known = |slot| Some(cx.slot(slot, table, row)).filter(|id| !id.is_none());
        let [subject, term, object] = self.slots.map(known);
        let ends = [subject, object];
        let mut add = |count: u64, term: TermId| {
            if count > 0 {
                found.rows.push(row as u32);
                found.counts.push(count);
                found.predicates.push(term);
            }
        };
        let graph = match &self.place {
            Place::Fixed(graph) => graph.clone(),
            Place::Var(var) => Graph::named(table.value(*var, row), cx),
        };
        let (source, graph) = (&cx.source, graph.as_ref());
        if let Some(term) = term {
            if let Some(predicate) = source.predicate(term) {
                add(Self::count(graph, predicate, ends, cx)?, term);
            }
            return Ok(());
        }
        let mut predicates = Vec::new();
        match ends {
            [Some(subject), _] => {
                cx.predicates_at(graph, subject, Direction::Out, &mut predicates)?;
            }
            [None, Some(object)] => {
                cx.predicates_at(graph, object, Direction::In, &mut predicates)?;
            }
            [None, None] => source.predicates(graph, &mut predicates),
        }
        let is_wanted = matches!(self.slots[1], Slot::Var(var) if self.keep.contains(var));
        let mut sum = 0;
        for predicate in predicates {
            let count = Self::count(graph, predicate, ends, cx)?;
            match is_wanted {
                true => add(count, source.predicate_term(predicate)),
                false => sum += count,
            }
        }
        add(sum, TermId::NONE);
        Ok(())
    }
}

impl Operator for CountMatch {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let (table, mut row) = match self.current.take() {
            Some(current) => current,
            None => match self.input.next(cx)? {
                Some(table) => (table, 0),
                None => return Ok(None),
            },
        };
        let mut found = Found::default();
        while row < table.rows() && found.rows.len() < ROWS_AT_ONCE {
            // A row may look at each predicate of the graph.
            cx.check()?;
            self.count_row(&table, row, &mut found, cx)?;
            row += 1;
        }
        let mut extended = table.gather(&found.rows, &self.keep);
        if let Slot::Var(var) = self.slots[1]
            && self.keep.contains(var)
        {
            extended.set(var, found.predicates);
        }
        extended.set_counts(found.counts);
        if row < table.rows() {
            self.current = Some((table, row));
        }
        Ok(Some(extended))
    }
}
