//! A quad pattern in full generality: unknown predicates, repeated variables, any graph.

use std::ops::ControlFlow;
use std::sync::Arc;

use jindou_model::{
    Cursor, Direction, IdRanges, Lists, Membership, Pattern, Precision, PredicateId, TermId,
};
use jindou_plan::physical::{Scope, Slot, Var};

use super::scope::{Graph, graphs_of};
use super::undecided::Portion;
use crate::ExecError;
use crate::context::{Booked, Context};
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet};

/// Subjects of a scan that are visited between two checks of the time limit.
const SUBJECTS_AT_ONCE: usize = 256;
/// Batches of quads of one end that are taken at once; an end with more is read piece by piece.
const MANY_BATCHES: usize = 4;

/// [`jindou_plan::physical::Step::Match`].
pub(crate) struct Match {
    input: Boxed,
    /// Subject, predicate, object.
    slots: [Slot; 3],
    scope: Scope,
    /// Predicates that are left out, sorted.
    except: Arc<[PredicateId]>,
    keep: VarSet,
    portion: Portion,
    current: Option<(Table, usize, Option<Scan>)>,
}

/// What is known of a pattern in one row.
#[derive(Clone, Copy)]
struct Known {
    subject: Option<TermId>,
    predicate: Option<TermId>,
    object: Option<TermId>,
}

/// Where a row looks.
#[derive(Clone)]
struct Target {
    graph: Graph,
    /// It is the merge of the named graphs, of which each is wanted by itself.
    is_any: bool,
}

/// A known end of a pattern.
type End = (TermId, Direction);

/// A scan of everything that a pattern without two known ends may match: graph by graph and in each
/// of them by predicate, so that segments are read in order.
struct Scan {
    targets: std::vec::IntoIter<Target>,
    /// Of the targets, which may be as many as there are graphs.
    _booked: Booked,
    target: Option<Target>,
    /// The predicate, where it is known.
    predicate: Option<PredicateId>,
    end: Option<End>,
    except: Arc<[PredicateId]>,
    /// Of the target.
    predicates: std::vec::IntoIter<PredicateId>,
    part: Option<Part>,
}

/// What one graph has of a predicate, around an end or in all.
struct Part {
    predicate: PredicateId,
    direction: Direction,
    subjects: IdRanges,
    /// Keys taken so far of the subjects, and those in work.
    taken: u64,
    keys: Vec<TermId>,
    cursor: Cursor,
}

/// Triples found, in columns.
struct Triples {
    /// As many as are wanted at once.
    most: usize,
    subjects: Vec<TermId>,
    predicates: Vec<TermId>,
    objects: Vec<TermId>,
    /// Where each graph is wanted by itself.
    graphs: Vec<TermId>,
}

/// Rows found so far.
struct Found {
    /// As many as are wanted at once.
    most: usize,
    except: Arc<[PredicateId]>,
    rows: Vec<u32>,
    quads: Vec<[TermId; 4]>,
}

impl Match {
    pub(crate) fn new(
        input: Boxed,
        slots: [Slot; 3],
        scope: Scope,
        except: Vec<PredicateId>,
        keep: VarSet,
    ) -> Self {
        Self {
            input,
            slots,
            scope,
            except: except.into(),
            keep,
            portion: Portion::new(None),
            current: None,
        }
    }

    /// The same, with as many rows at once as `portion` says.
    pub(super) fn in_portions(self, portion: Portion) -> Self {
        Self { portion, ..self }
    }

    /// The graphs to read for a row.
    fn targets(&self, table: &Table, row: usize, cx: &Context) -> Vec<Target> {
        let one = |graph| Target {
            graph,
            is_any: false,
        };
        let graph = match self.scope {
            Scope::Default => return vec![one(Graph::default_of(cx))],
            Scope::Named => return vec![one(Graph::all_named(cx))],
            Scope::Graph(slot) => cx.slot(slot, table, row),
        };
        match &cx.dataset {
            _ if !graph.is_none() => vec![one(Graph::named(graph, cx))],
            Some(dataset) => {
                let named = dataset.named.iter();
                named.map(|graph| one(Graph::One(*graph))).collect()
            }
            None => vec![Target {
                graph: Graph::Named,
                is_any: true,
            }],
        }
    }

    fn known(&self, table: &Table, row: usize, cx: &Context) -> Known {
        let of = |slot| Some(cx.slot(slot, table, row)).filter(|id| !id.is_none());
        let [subject, predicate, object] = self.slots;
        Known {
            subject: of(subject),
            predicate: of(predicate),
            object: of(object),
        }
    }

    /// Handles one row that has a known end, or begins its scan.
    fn start_row(
        &self,
        table: &Table,
        row: usize,
        cx: &Context,
        found: &mut Found,
    ) -> Result<Option<Scan>, ExecError> {
        let known = self.known(table, row, cx);
        let predicate = match known.predicate {
            None => None,
            Some(term) => match cx.source.predicate(term) {
                Some(predicate) => Some(predicate),
                None => return Ok(None),
            },
        };
        if predicate.is_some_and(|predicate| is_in(&self.except, predicate)) {
            return Ok(None);
        }
        let end = match (known.subject, known.object) {
            (Some(subject), _) => Some((subject, Direction::Out)),
            (None, Some(object)) => Some((object, Direction::In)),
            (None, None) => None,
        };
        let targets = self.targets(table, row, cx);
        if end.is_some() {
            let pattern = Pattern {
                subject: known.subject,
                predicate,
                object: known.object,
            };
            if !visit_some(cx, &pattern, &targets, row as u32, found)? {
                return Ok(None);
            }
        }
        Scan::new(targets, predicate, end, &self.except, cx).map(Some)
    }

    /// True if this is all of a predicate, or of all predicates, in one graph, with nothing to
    /// compare.
    fn is_one_scan(&self, table: &Table) -> bool {
        let [Slot::Var(subject), predicate, Slot::Var(object)] = self.slots else {
            return false;
        };
        let is_repeated = |var| predicate == Slot::Var(var);
        let is_free = |var| !is_repeated(var) && table.get(var).is_none();
        table.rows() == 1
            && !matches!(self.scope, Scope::Graph(Slot::Var(_)))
            && subject != object
            && is_free(subject)
            && is_free(object)
    }

    /// Goes on with such a scan; `None` at its end.
    fn scan(
        &mut self,
        table: Table,
        begun: Option<Scan>,
        cx: &Context,
    ) -> Result<Option<Table>, ExecError> {
        let most = self.portion.rows(table.width());
        let mut none = Found::new(most, &self.except);
        let begun = match begun {
            Some(scan) => Some(scan),
            None => self.start_row(&table, 0, cx, &mut none)?,
        };
        let Some(mut scan) = begun else {
            return Ok(None);
        };
        let mut triples = Triples::new(most);
        let mut has_more = true;
        while has_more && triples.objects.len() < most {
            cx.check()?;
            has_more = scan.advance(cx, &mut triples)?;
        }
        let count = triples.objects.len();
        let mut found = table.repeat(0, count, &self.keep);
        let parts = [triples.subjects, triples.predicates, triples.objects];
        for (slot, ids) in self.slots.into_iter().zip(parts) {
            if let Slot::Var(var) = slot
                && self.keep.contains(var)
            {
                found.set(var, ids);
            }
        }
        if has_more {
            self.current = Some((table, 0, Some(scan)));
        }
        Ok((count > 0).then_some(found))
    }

    /// The rows found, as a table: variables that were unbound get columns, repeated ones are
    /// compared.
    fn extend(&self, table: &Table, found: Found) -> Table {
        let graph = match self.scope {
            Scope::Graph(slot) => Some(slot),
            Scope::Default | Scope::Named => None,
        };
        let [subject, predicate, object] = self.slots.map(Some);
        let positions = [subject, predicate, object, graph];
        let variables: Vec<(usize, Var)> = positions
            .iter()
            .enumerate()
            .filter_map(|(place, slot)| match slot {
                Some(Slot::Var(var)) => Some((place, *var)),
                _ => None,
            })
            .collect();
        let fits = |index: usize| {
            variables.iter().all(|(place, var)| {
                let value = found.quads[index][*place];
                let bound = table.value(*var, found.rows[index] as usize);
                (bound.is_none() || bound == value)
                    && variables
                        .iter()
                        .all(|(other, same)| same != var || found.quads[index][*other] == value)
            })
        };
        let kept: Vec<usize> = (0..found.rows.len()).filter(|index| fits(*index)).collect();
        let rows: Vec<u32> = kept.iter().map(|index| found.rows[*index]).collect();
        let mut extended = table.gather(&rows, &self.keep);
        for (place, var) in variables {
            if self.keep.contains(var) {
                extended.set(
                    var,
                    kept.iter()
                        .map(|index| found.quads[*index][place])
                        .collect(),
                );
            }
        }
        extended
    }
}

impl Operator for Match {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            cx.check()?;
            let (table, mut row, mut scan) = match self.current.take() {
                Some((table, row, scan)) => {
                    let next = self.portion.go_on(&table, row);
                    if next == table.rows() {
                        continue;
                    }
                    let scan = scan.filter(|_| next == row);
                    if scan.is_none() {
                        self.portion.begin();
                    }
                    (table, next, scan)
                }
                None => match self.input.next(cx)? {
                    Some(table) => {
                        self.portion.begin();
                        (table, 0, None)
                    }
                    None => return Ok(None),
                },
            };
            if self.is_one_scan(&table) {
                match self.scan(table, scan, cx)? {
                    Some(found) => return Ok(Some(found)),
                    None => continue,
                }
            }
            let mut found = Found::new(self.portion.rows(table.width()), &self.except);
            while row < table.rows() && !found.is_full() {
                if scan.is_none() {
                    // A row may read each predicate of the graph, and find nothing.
                    cx.check()?;
                    scan = self.start_row(&table, row, cx, &mut found)?;
                }
                match &mut scan {
                    Some(running) => {
                        if !running.advance_row(row as u32, cx, &mut found)? {
                            scan = None;
                            row += 1;
                        }
                    }
                    None => row += 1,
                }
            }
            let extended = (!found.rows.is_empty()).then(|| self.extend(&table, found));
            if row < table.rows() {
                self.current = Some((table, row, scan));
            }
            if let Some(extended) = extended {
                return Ok(Some(extended));
            }
        }
    }
}

impl Scan {
    fn new(
        targets: Vec<Target>,
        predicate: Option<PredicateId>,
        end: Option<End>,
        except: &Arc<[PredicateId]>,
        cx: &Context,
    ) -> Result<Self, ExecError> {
        let mut booked = Booked::default();
        cx.book(&mut booked, targets.len() * size_of::<Target>())?;
        Ok(Self {
            targets: targets.into_iter(),
            _booked: booked,
            target: None,
            predicate,
            end,
            except: Arc::clone(except),
            predicates: Vec::new().into_iter(),
            part: None,
        })
    }

    /// The next part; false if there is none.
    fn begin_part(&mut self, cx: &Context) -> Result<bool, ExecError> {
        loop {
            if let (Some(target), Some(predicate)) = (&self.target, self.predicates.next()) {
                if is_in(&self.except, predicate) {
                    continue;
                }
                self.part = Some(Part::new(&target.graph, predicate, self.end, cx)?);
                return Ok(true);
            }
            let Some(target) = self.targets.next() else {
                return Ok(false);
            };
            let mut predicates = Vec::new();
            let graph = target.graph.as_ref();
            match (self.predicate, self.end) {
                (Some(predicate), _) => predicates.push(predicate),
                (None, Some((key, direction))) => {
                    cx.predicates_at(graph, key, direction, &mut predicates)?;
                }
                (None, None) => cx.source.predicates(graph, &mut predicates),
            }
            self.predicates = predicates.into_iter();
            self.target = Some(target);
        }
    }

    /// Finds some more triples; false at the end.
    fn advance(&mut self, cx: &Context, found: &mut Triples) -> Result<bool, ExecError> {
        if self.part.is_none() && !self.begin_part(cx)? {
            return Ok(false);
        }
        let (Some(target), Some(part)) = (&self.target, &mut self.part) else {
            return Ok(false);
        };
        if !part.advance(target, cx, found)? {
            self.part = None;
        }
        Ok(true)
    }

    /// Finds some more quads for a row; false at the end.
    fn advance_row(
        &mut self,
        row: u32,
        cx: &Context,
        found: &mut Found,
    ) -> Result<bool, ExecError> {
        while !found.is_full() {
            cx.check()?;
            let mut triples = Triples::new(found.most);
            if !self.advance(cx, &mut triples)? {
                return Ok(false);
            }
            let name = match &self.target {
                Some(Target {
                    graph: Graph::One(graph),
                    ..
                }) => *graph,
                _ => TermId::NONE,
            };
            let quads = (0..triples.objects.len()).map(|index| {
                let graph = triples.graphs.get(index).copied().unwrap_or(name);
                let (s, p) = (triples.subjects[index], triples.predicates[index]);
                [s, p, triples.objects[index], graph]
            });
            found.quads.extend(quads);
            found.rows.resize(found.quads.len(), row);
        }
        Ok(true)
    }
}

/// True if the predicate is one of these, which are sorted.
fn is_in(list: &[PredicateId], predicate: PredicateId) -> bool {
    !list.is_empty() && list.binary_search(&predicate).is_ok()
}

impl Part {
    fn new(
        graph: &Graph,
        predicate: PredicateId,
        end: Option<End>,
        cx: &Context,
    ) -> Result<Self, ExecError> {
        let (subjects, keys, direction) = match end {
            Some((key, direction)) => (IdRanges::new(), vec![key], direction),
            None => {
                let keys = [Membership::Has(predicate, Direction::Out)];
                let subjects = cx.members(graph.as_ref(), &keys, Precision::Exact, None)?;
                (subjects.unwrap_or_default(), Vec::new(), Direction::Out)
            }
        };
        Ok(Self {
            predicate,
            direction,
            subjects,
            taken: 0,
            keys,
            cursor: Cursor::default(),
        })
    }

    /// Adds some more triples; false at the end.
    fn advance(
        &mut self,
        target: &Target,
        cx: &Context,
        found: &mut Triples,
    ) -> Result<bool, ExecError> {
        if self.cursor.key == self.keys.len() {
            self.keys.clear();
            self.cursor = Cursor::default();
            let taken = self
                .subjects
                .copy(self.taken, SUBJECTS_AT_ONCE, &mut self.keys);
            self.taken += taken as u64;
        }
        let list = Lists {
            predicate: self.predicate,
            direction: self.direction,
            keys: &self.keys,
        };
        let budget = found.most.saturating_sub(found.objects.len()).max(1);
        let (mut rows, mut others) = (Vec::new(), Vec::new());
        let graph = target.graph.as_ref();
        cx.expand(
            graph,
            &[list],
            &mut self.cursor,
            None,
            budget,
            &mut rows,
            &mut others,
        )?;
        let mut keys: Vec<TermId> = rows.iter().map(|row| self.keys[*row as usize]).collect();
        if target.is_any {
            let of_edges = Lists {
                keys: &keys,
                ..list
            };
            let (at, graphs) = graphs_of(&of_edges, &others, cx)?;
            let pick = |ids: &[TermId]| at.iter().map(|at| ids[*at as usize]).collect();
            (keys, others) = (pick(&keys), pick(&others));
            found.graphs.extend(graphs);
        }
        let (subjects, objects) = match self.direction {
            Direction::Out => (keys, others),
            Direction::In => (others, keys),
        };
        found.subjects.extend(subjects);
        found.objects.extend(objects);
        let term = cx.source.predicate_term(self.predicate);
        found.predicates.resize(found.objects.len(), term);
        Ok(self.cursor.key < self.keys.len() || self.taken < self.subjects.len())
    }
}

impl Triples {
    fn new(most: usize) -> Self {
        Self {
            most,
            subjects: Vec::new(),
            predicates: Vec::new(),
            objects: Vec::new(),
            graphs: Vec::new(),
        }
    }
}

impl Found {
    fn new(most: usize, except: &Arc<[PredicateId]>) -> Self {
        Self {
            most,
            except: Arc::clone(except),
            rows: Vec::new(),
            quads: Vec::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.most
    }

    /// Adds a quad, if its predicate is wanted.
    fn add(
        &mut self,
        cx: &Context,
        row: u32,
        (subject, predicate, object, graph): (TermId, PredicateId, TermId, TermId),
    ) {
        if !is_in(&self.except, predicate) {
            let predicate = cx.source.predicate_term(predicate);
            self.rows.push(row);
            self.quads.push([subject, predicate, object, graph]);
        }
    }
}

/// Adds the quads that match a pattern with a known end, or adds none and says so, where they are too many to
/// be taken at once.
fn visit_some(
    cx: &Context,
    pattern: &Pattern,
    targets: &[Target],
    row: u32,
    found: &mut Found,
) -> Result<bool, ExecError> {
    let before = found.rows.len();
    // Two known ends have one edge a predicate and graph at most.
    let most = match (pattern.subject, pattern.object) {
        (Some(_), Some(_)) => usize::MAX,
        _ => MANY_BATCHES * found.most,
    };
    for target in targets {
        let mut visit = |s, p, o, g| {
            if found.rows.len() - before >= most {
                return ControlFlow::Break(());
            }
            found.add(cx, row, (s, p, o, g));
            ControlFlow::Continue(())
        };
        let flow = match target.is_any {
            true => cx.for_each_quad(pattern, &mut visit)?,
            false => cx.for_each_match(pattern, target.graph.as_ref(), &mut visit)?,
        };
        if flow.is_break() {
            found.rows.truncate(before);
            found.quads.truncate(before);
            return Ok(true);
        }
    }
    Ok(false)
}
