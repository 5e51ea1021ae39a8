//! The ends of one triple pattern by kind: answered from what the graph has counted, where it has, and otherwise by
//! looking at the triples.

use jindou_model::{Counted, Direction, EndsAsked, PredicateId, TermId};
use jindou_plan::physical::{EndCounts as Planned, Slot, Var};

use crate::ExecError;
use crate::context::{Booked, Context};
use crate::operator::{Boxed, Builder, Operator};
use crate::steps::{Graph, Place};
use crate::table::{self, Table, VarSet};

/// [`jindou_plan::physical::Operator::EndCounts`].
pub(super) fn build(
    builder: &mut Builder<'_>,
    planned: &Planned,
    needed: &VarSet,
) -> Result<Boxed, ExecError> {
    let counted = std::mem::take(&mut builder.counted);
    let general = match planned.counted {
        Counted::Terms => builder.node(&planned.general, needed)?,
        // What reads this takes numbers of rows in any case.
        Counted::Edges => builder.counted_node(&planned.general, needed)?,
    };
    let place = Place::new(planned.scope, builder.cx);
    let (false, Place::Fixed(graph), true) = (builder.has_given(), place, counted) else {
        return Ok(general);
    };
    Ok(Box::new(EndCounts {
        graph,
        end: planned.end,
        predicate: planned.predicate,
        direction: planned.direction,
        counted: planned.counted,
        by_kind: planned.by_kind,
        needed: needed.clone(),
        width: builder.width(),
        general,
        answer: None,
    }))
}

struct EndCounts {
    graph: Graph,
    end: Var,
    predicate: Option<Slot>,
    direction: Direction,
    counted: Counted,
    by_kind: bool,
    needed: VarSet,
    width: usize,
    /// Looks at the triples.
    general: Boxed,
    answer: Option<Answer>,
}

/// How the rows come.
enum Answer {
    General,
    Counted {
        rows: Rows,
        next: usize,
        _booked: Booked,
    },
}

/// Rows by column.
#[derive(Default)]
struct Rows {
    predicates: Vec<TermId>,
    terms: Vec<TermId>,
    counts: Vec<u64>,
}

impl Rows {
    fn bytes(&self) -> usize {
        let ids = self.predicates.capacity() + self.terms.capacity();
        ids * size_of::<TermId>() + self.counts.capacity() * size_of::<u64>()
    }
}

impl EndCounts {
    /// Asks the graph; what it does not know is looked for.
    fn ask(&self, cx: &Context) -> Result<Answer, ExecError> {
        let predicates: Vec<Option<PredicateId>> = match self.predicate {
            None => vec![None],
            Some(Slot::Const(id)) => match cx.source.predicate(cx.constant(id)) {
                Some(predicate) => vec![Some(predicate)],
                None => Vec::new(),
            },
            Some(Slot::Var(_)) => {
                let mut all = Vec::new();
                cx.source.predicates(self.graph.as_ref(), &mut all);
                all.sort_unstable();
                all.dedup();
                all.into_iter().map(Some).collect()
            }
        };
        let (mut rows, mut booked) = (Rows::default(), Booked::default());
        for predicate in predicates {
            cx.check()?;
            let asked = EndsAsked {
                graph: self.graph.as_ref(),
                predicate,
                direction: self.direction,
                counted: self.counted,
                by_kind: self.by_kind,
            };
            let held = rows.bytes();
            // Where there is no memory for it, the triples are looked at by what can spill.
            let mut poll = |bytes| cx.check().is_ok() && cx.book(&mut booked, held + bytes).is_ok();
            let counts = cx.source.count_ends(&asked, &mut poll);
            cx.check()?;
            let Some(counts) = counts else {
                return Ok(Answer::General);
            };
            let term = predicate.map_or(TermId::NONE, |id| cx.source.predicate_term(id));
            for kind in counts {
                rows.predicates.push(term);
                rows.terms.push(kind.term);
                rows.counts.push(kind.count);
            }
        }
        cx.book(&mut booked, rows.bytes())?;
        Ok(Answer::Counted {
            rows,
            next: 0,
            _booked: booked,
        })
    }

    fn table(&self, rows: &Rows, from: usize, to: usize) -> Table {
        let mut table = Table::with_rows(self.width, to - from);
        if self.by_kind && self.needed.contains(self.end) {
            table.set(self.end, rows.terms[from..to].to_vec());
        }
        if let Some(Slot::Var(var)) = self.predicate
            && self.needed.contains(var)
        {
            table.set(var, rows.predicates[from..to].to_vec());
        }
        table.set_counts(rows.counts[from..to].to_vec());
        table
    }
}

impl Operator for EndCounts {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        let answer = match self.answer.take() {
            Some(answer) => answer,
            None => self.ask(cx)?,
        };
        match self.answer.insert(answer) {
            Answer::General => self.general.next(cx),
            Answer::Counted { rows, next, .. } => {
                let from = *next;
                let to = rows.counts.len().min(from + table::batch_rows(self.width));
                if from == to {
                    return Ok(None);
                }
                *next = to;
                let Some(Answer::Counted { rows, .. }) = &self.answer else {
                    unreachable!("it was looked at above");
                };
                Ok(Some(self.table(rows, from, to)))
            }
        }
    }
}
