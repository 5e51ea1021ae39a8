//! A quad pattern in full generality: unknown predicates, repeated variables, graphs, datasets.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use jindou_model::{Cursor, Direction, Graphs, IdRanges, Membership, Pattern, PredicateId, TermId};
use jindou_plan::physical::{Scope, Slot, Var};
use rustc_hash::FxBuildHasher;

use super::graphs::{is_named_graph, named_graphs};
use crate::ExecError;
use crate::context::{Booked, Context};
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet, batch_rows};

/// Subjects of a scan that are visited between two checks of the time limit.
const SUBJECTS_AT_ONCE: usize = 256;
/// Batches of quads of one end that are taken at once; an end with more is read piece by piece.
const MANY_BATCHES: usize = 4;
/// A predicate with so few quads is read at once rather than graph by graph.
const FEW_QUADS: u64 = 1 << 16;
/// Quads of one end that are visited between two checks of the time limit.
const QUADS_AT_ONCE: usize = 2048;

/// [`jindou_plan::physical::Step::Match`].
pub(crate) struct Match {
    input: Boxed,
    /// Subject, predicate, object.
    slots: [Slot; 3],
    scope: Scope,
    /// Predicates that are left out, sorted.
    except: Arc<[PredicateId]>,
    keep: VarSet,
    current: Option<(Table, usize, Option<Scan>)>,
}

/// What is known of a pattern in one row.
#[derive(Clone, Copy)]
struct Known {
    subject: Option<TermId>,
    predicate: Option<TermId>,
    object: Option<TermId>,
}

/// One part of a scan without a known end.
enum ScanPart {
    /// What the default graph has of a predicate.
    Default(OfPredicate),
    /// The edges of one end in the default graph, and how many are done.
    Edges {
        predicate: PredicateId,
        direction: Direction,
        key: TermId,
        done: usize,
    },
    /// A named graph, and how many of its quads are done.
    Graph {
        graph: TermId,
        predicate: Option<PredicateId>,
        done: usize,
    },
    /// What all named graphs have of a predicate, at once.
    Named(PredicateId),
    /// What was read at once and is too much for a batch.
    Read(Rest),
}

/// Quads that were read with others and are handed on after them. Their memory is reserved.
#[derive(Default)]
struct Rest {
    quads: Vec<[TermId; 4]>,
    /// Those that were handed on.
    done: usize,
    booked: Booked,
}

/// A scan of what the default graph has of a predicate.
struct OfPredicate {
    predicate: PredicateId,
    subjects: IdRanges,
    /// Subjects taken so far, and those in work.
    taken: u64,
    keys: Vec<TermId>,
    cursor: Cursor,
}

/// Triples found, in columns.
struct Triples {
    /// As many as are wanted at once.
    most: usize,
    /// Which of the subjects in work each is of.
    rows: Vec<u32>,
    subjects: Vec<TermId>,
    predicates: Vec<TermId>,
    objects: Vec<TermId>,
}

/// A part of a scan that has not begun.
enum Part {
    Quads(Graphs, Option<PredicateId>),
    Edges(TermId, PredicateId, Direction),
}

/// A scan of everything that a pattern without a known end may match.
struct Scan {
    parts: std::vec::IntoIter<Part>,
    /// Of the parts, which may be as many as there are graphs.
    _booked: Booked,
    part: Option<ScanPart>,
    /// Triples seen, where several graphs are merged.
    seen: Option<HashSet<[TermId; 3], FxBuildHasher>>,
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
            current: None,
        }
    }

    /// The graphs to read for a row: several only where a dataset merges them.
    fn graphs(&self, table: &Table, row: usize, cx: &Context) -> Vec<Graphs> {
        match (self.scope, &cx.dataset) {
            (Scope::Default, None) => vec![Graphs::Default],
            (Scope::Default, Some(dataset)) => dataset
                .default
                .iter()
                .map(|graph| Graphs::One(*graph))
                .collect(),
            (Scope::Graph(slot), dataset) => {
                let graph = cx.slot(slot, table, row);
                if !graph.is_none() {
                    let named = is_named_graph(cx, graph);
                    return if named {
                        vec![Graphs::One(graph)]
                    } else {
                        Vec::new()
                    };
                }
                match dataset {
                    None => vec![Graphs::Named],
                    Some(_) => named_graphs(cx).into_iter().map(Graphs::One).collect(),
                }
            }
        }
    }

    /// True where triples of several graphs must be merged into one graph.
    fn merges(&self, cx: &Context) -> bool {
        self.scope == Scope::Default && cx.dataset.as_ref().is_some_and(|d| d.default.len() > 1)
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
        let graphs = self.graphs(table, row, cx);
        if known.subject.is_none() && known.object.is_none() {
            let merge = self.merges(cx);
            return Scan::new(graphs, predicate, merge, &self.except, cx).map(Some);
        }
        let pattern = Pattern {
            subject: known.subject,
            predicate,
            object: known.object,
        };
        if let [Graphs::Default] = graphs.as_slice() {
            let has_more = visit_some(cx, &pattern, row as u32, found);
            return Ok(has_more.then(|| Scan::of_end(&pattern, &self.except, cx)));
        }
        let mut visit = Visitor::new(cx, row as u32, found);
        let mut seen = self.merges(cx).then(HashSet::default);
        for graph in graphs {
            visit.all(&pattern, graph, &mut seen)?;
        }
        Ok(visit.rest().map(Scan::of_rest))
    }

    /// True if this is all of a predicate, or of all predicates, in the default graph, with
    /// nothing to compare.
    fn is_one_scan(&self, table: &Table, cx: &Context) -> bool {
        let [Slot::Var(subject), predicate, Slot::Var(object)] = self.slots else {
            return false;
        };
        let is_repeated = |var| predicate == Slot::Var(var);
        let is_free = |var| !is_repeated(var) && table.get(var).is_none();
        table.rows() == 1
            && self.scope == Scope::Default
            && cx.dataset.is_none()
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
        let most = batch_rows(table.width());
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
            has_more = scan.advance_triples(cx, &mut triples);
        }
        let count = triples.objects.len();
        let mut found = Table::with_rows(table.width(), count);
        let columns = table.bound().filter(|var| self.keep.contains(*var));
        for var in columns {
            found.set(var, vec![table.value(var, 0); count]);
        }
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
            Scope::Default => None,
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
                Some(current) => current,
                None => match self.input.next(cx)? {
                    Some(table) => (table, 0, None),
                    None => return Ok(None),
                },
            };
            if self.is_one_scan(&table, cx) {
                match self.scan(table, scan, cx)? {
                    Some(found) => return Ok(Some(found)),
                    None => continue,
                }
            }
            let mut found = Found::new(batch_rows(table.width()), &self.except);
            while row < table.rows() && !found.is_full() {
                if scan.is_none() {
                    scan = self.start_row(&table, row, cx, &mut found)?;
                }
                match &mut scan {
                    Some(running) => {
                        if !running.advance(row as u32, cx, &mut found)? {
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
        graphs: Vec<Graphs>,
        predicate: Option<PredicateId>,
        merge: bool,
        except: &[PredicateId],
        cx: &Context,
    ) -> Result<Self, ExecError> {
        let mut booked = Booked::default();
        let mut parts = Vec::new();
        for graph in graphs {
            match (graph, predicate) {
                // By predicate, so that segments are read in order.
                (Graphs::Default, None) => parts.extend(
                    (0..cx.source.predicate_count())
                        .map(PredicateId)
                        .filter(|predicate| !is_in(except, *predicate))
                        .map(|predicate| Part::Quads(Graphs::Default, Some(predicate))),
                ),
                (Graphs::Named, Some(predicate)) if is_quick(cx, predicate) => {
                    parts.push(Part::Quads(graph, Some(predicate)));
                }
                (Graphs::Named, _) => {
                    let mut all = Vec::new();
                    cx.source.graphs(&mut all);
                    let more = all.len() * (size_of::<TermId>() + size_of::<Part>());
                    cx.book_more(&mut booked, more)?;
                    parts.extend(
                        all.into_iter()
                            .map(|graph| Part::Quads(Graphs::One(graph), predicate)),
                    );
                }
                (graph, predicate) => parts.push(Part::Quads(graph, predicate)),
            }
        }
        Ok(Self {
            parts: parts.into_iter(),
            _booked: booked,
            part: None,
            seen: merge.then(HashSet::default),
        })
    }

    /// What the default graph has around the known end of a pattern.
    fn of_end(pattern: &Pattern, except: &[PredicateId], cx: &Context) -> Self {
        let (key, direction) = match (pattern.subject, pattern.object) {
            (Some(subject), _) => (subject, Direction::Out),
            (None, object) => (object.expect("the pattern has a known end"), Direction::In),
        };
        let mut predicates = Vec::new();
        match pattern.predicate {
            Some(predicate) => predicates.push(predicate),
            None => cx.source.predicates_of(key, direction, &mut predicates),
        }
        let parts: Vec<Part> = predicates
            .into_iter()
            .filter(|predicate| !is_in(except, *predicate))
            .map(|predicate| Part::Edges(key, predicate, direction))
            .collect();
        Self {
            parts: parts.into_iter(),
            _booked: Booked::default(),
            part: None,
            seen: None,
        }
    }

    /// What was read at once and is not handed on yet.
    fn of_rest(rest: Rest) -> Self {
        Self {
            parts: Vec::new().into_iter(),
            _booked: Booked::default(),
            part: Some(ScanPart::Read(rest)),
            seen: None,
        }
    }

    /// Finds some more triples of the default graph; false at the end.
    fn advance_triples(&mut self, cx: &Context, found: &mut Triples) -> bool {
        if self.part.is_none() {
            self.part = self.parts.next().map(|part| ScanPart::new(part, cx));
        }
        match &mut self.part {
            Some(ScanPart::Default(part)) => {
                if !part.advance(cx, found) {
                    self.part = None;
                }
                true
            }
            Some(_) => unreachable!("a scan of the default graph is one by predicate"),
            None => false,
        }
    }

    /// Finds some more quads; false at the end.
    fn advance(&mut self, row: u32, cx: &Context, found: &mut Found) -> Result<bool, ExecError> {
        while !found.is_full() {
            if self.part.is_none() {
                self.part = self.parts.next().map(|part| ScanPart::new(part, cx));
            }
            let Some(part) = &mut self.part else {
                return Ok(false);
            };
            cx.check()?;
            let before = found.rows.len();
            if !part.advance(row, cx, &mut self.seen, found)? {
                self.part = None;
            }
            if self.seen.is_some() {
                cx.charge((found.rows.len() - before) * size_of::<[TermId; 4]>())?;
            }
        }
        Ok(true)
    }
}

/// True if the predicate is one of these, which are sorted.
fn is_in(list: &[PredicateId], predicate: PredicateId) -> bool {
    !list.is_empty() && list.binary_search(&predicate).is_ok()
}

/// True if the quads of a predicate in named graphs are so few that they are read at once.
fn is_quick(cx: &Context, predicate: PredicateId) -> bool {
    cx.source.named_edges(predicate) <= FEW_QUADS
}

impl ScanPart {
    fn new(part: Part, cx: &Context) -> Self {
        let (graphs, predicate) = match part {
            Part::Quads(graphs, predicate) => (graphs, predicate),
            Part::Edges(key, predicate, direction) => {
                return Self::Edges {
                    predicate,
                    direction,
                    key,
                    done: 0,
                };
            }
        };
        match (graphs, predicate) {
            (Graphs::One(graph), predicate) => Self::Graph {
                graph,
                predicate,
                done: 0,
            },
            (Graphs::Default, Some(predicate)) => {
                let keys = [Membership::Has(predicate, Direction::Out)];
                Self::Default(OfPredicate {
                    predicate,
                    subjects: cx.source.ids_with(&keys, true, None).unwrap_or_default(),
                    taken: 0,
                    keys: Vec::new(),
                    cursor: Cursor::default(),
                })
            }
            (Graphs::Named, Some(predicate)) => Self::Named(predicate),
            (Graphs::Default | Graphs::Named, None) => {
                unreachable!("scans go by predicate or by named graph")
            }
        }
    }

    /// Some more quads; false at the end.
    fn advance(
        &mut self,
        row: u32,
        cx: &Context,
        seen: &mut Option<HashSet<[TermId; 3], FxBuildHasher>>,
        found: &mut Found,
    ) -> Result<bool, ExecError> {
        Ok(match self {
            Self::Default(part) => {
                let mut triples = Triples::new(found.most);
                let has_more = part.advance(cx, &mut triples);
                let subjects = triples.subjects.iter().zip(&triples.predicates);
                let quads = subjects
                    .zip(&triples.objects)
                    .map(|((s, p), o)| [*s, *p, *o, TermId::NONE]);
                found.quads.extend(quads);
                found.rows.resize(found.quads.len(), row);
                has_more
            }
            Self::Edges {
                predicate,
                direction,
                key,
                done,
            } => {
                let list = cx.source.neighbours(*predicate, *direction, *key);
                let mut others = Vec::new();
                list.copy(*done, found.most, &mut others);
                *done += others.len();
                for other in others {
                    let (subject, object) = match direction {
                        Direction::Out => (*key, other),
                        Direction::In => (other, *key),
                    };
                    let quad = (subject, *predicate, object, TermId::NONE);
                    found.add(cx, row, &mut None, quad);
                }
                *done < list.len()
            }
            Self::Graph {
                graph,
                predicate,
                done,
            } => {
                let from = *done;
                let most = found.most;
                *done += most;
                cx.source
                    .scan_graph(*graph, *predicate, from, most, &mut |s, p, o, g| {
                        found.add(cx, row, seen, (s, p, o, g));
                        ControlFlow::Continue(())
                    })
            }
            Self::Named(predicate) => {
                let pattern = Pattern {
                    subject: None,
                    predicate: Some(*predicate),
                    object: None,
                };
                let mut visit = Visitor::new(cx, row, found);
                visit.all(&pattern, Graphs::Named, seen)?;
                match visit.rest() {
                    Some(rest) => {
                        *self = Self::Read(rest);
                        true
                    }
                    None => false,
                }
            }
            Self::Read(rest) => {
                let end = rest.quads.len().min(rest.done + found.most);
                found.quads.extend_from_slice(&rest.quads[rest.done..end]);
                found.rows.resize(found.quads.len(), row);
                rest.done = end;
                end < rest.quads.len()
            }
        })
    }
}

impl OfPredicate {
    /// Adds some more triples; false at the end.
    fn advance(&mut self, cx: &Context, found: &mut Triples) -> bool {
        if self.cursor.key == self.keys.len() {
            self.keys.clear();
            self.cursor = Cursor::default();
            let taken = self
                .subjects
                .copy(self.taken, SUBJECTS_AT_ONCE, &mut self.keys);
            self.taken += taken as u64;
        }
        let before = found.rows.len();
        cx.source.expand(
            self.predicate,
            Direction::Out,
            &self.keys,
            &mut self.cursor,
            None,
            found.most,
            &mut found.rows,
            &mut found.objects,
        );
        let subjects = found.rows[before..].iter();
        found
            .subjects
            .extend(subjects.map(|row| self.keys[*row as usize]));
        let term = cx.source.predicate_term(self.predicate);
        found.predicates.resize(found.objects.len(), term);
        self.cursor.key < self.keys.len() || self.taken < self.subjects.len()
    }
}

impl Triples {
    fn new(most: usize) -> Self {
        Self {
            most,
            rows: Vec::new(),
            subjects: Vec::new(),
            predicates: Vec::new(),
            objects: Vec::new(),
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

    /// Adds a quad, unless its triple was seen in another graph.
    fn add(
        &mut self,
        cx: &Context,
        row: u32,
        seen: &mut Option<HashSet<[TermId; 3], FxBuildHasher>>,
        quad: (TermId, PredicateId, TermId, TermId),
    ) {
        if let Some(quad) = self.quad(cx, seen, quad) {
            self.rows.push(row);
            self.quads.push(quad);
        }
    }

    /// The terms of a quad that is wanted and whose triple was not seen in another graph.
    fn quad(
        &self,
        cx: &Context,
        seen: &mut Option<HashSet<[TermId; 3], FxBuildHasher>>,
        (subject, predicate, object, graph): (TermId, PredicateId, TermId, TermId),
    ) -> Option<[TermId; 4]> {
        if is_in(&self.except, predicate) {
            return None;
        }
        let predicate = cx.source.predicate_term(predicate);
        let is_new = seen
            .as_mut()
            .is_none_or(|seen| seen.insert([subject, predicate, object]));
        is_new.then_some([subject, predicate, object, graph])
    }
}

/// Adds the quads of the default graph that match a pattern with a known end, or tells that they
/// are too many to be taken at once and adds none.
fn visit_some(cx: &Context, pattern: &Pattern, row: u32, found: &mut Found) -> bool {
    let before = found.rows.len();
    // Two known ends have one edge a predicate at most.
    let most = match (pattern.subject, pattern.object) {
        (Some(_), Some(_)) => usize::MAX,
        _ => MANY_BATCHES * found.most,
    };
    let flow = cx
        .source
        .for_each_match(pattern, Graphs::Default, &mut |s, p, o, g| {
            if found.rows.len() - before >= most {
                return ControlFlow::Break(());
            }
            found.add(cx, row, &mut None, (s, p, o, g));
            ControlFlow::Continue(())
        });
    if flow.is_break() {
        found.rows.truncate(before);
        found.quads.truncate(before);
    }
    flow.is_break()
}

/// Reads quads for one row: those of some batches go to what was found, the others are kept.
struct Visitor<'a> {
    cx: &'a Context,
    row: u32,
    found: &'a mut Found,
    /// As many as `found` has when it has enough.
    most: usize,
    rest: Rest,
    visited: usize,
}

impl<'a> Visitor<'a> {
    fn new(cx: &'a Context, row: u32, found: &'a mut Found) -> Self {
        Self {
            cx,
            row,
            most: found.rows.len() + MANY_BATCHES * found.most,
            found,
            rest: Rest::default(),
            visited: 0,
        }
    }

    /// Reads the quads of some graphs that match a pattern.
    fn all(
        &mut self,
        pattern: &Pattern,
        graphs: Graphs,
        seen: &mut Option<HashSet<[TermId; 3], FxBuildHasher>>,
    ) -> Result<(), ExecError> {
        let cx = self.cx;
        let mut ended = Ok(());
        let flow = cx
            .source
            .for_each_match(pattern, graphs, &mut |s, p, o, g| {
                ended = self.add((s, p, o, g), seen);
                match ended {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                }
            });
        debug_assert_eq!(flow.is_break(), ended.is_err());
        ended
    }

    fn add(
        &mut self,
        quad: (TermId, PredicateId, TermId, TermId),
        seen: &mut Option<HashSet<[TermId; 3], FxBuildHasher>>,
    ) -> Result<(), ExecError> {
        self.visited += 1;
        if self.visited.is_multiple_of(QUADS_AT_ONCE) {
            self.cx.check()?;
        }
        let room = self.rest.quads.capacity() - self.rest.quads.len();
        if self.found.rows.len() >= self.most && room == 0 {
            self.make_room(seen)?;
        }
        let Some(quad) = self.found.quad(self.cx, seen, quad) else {
            return Ok(());
        };
        if self.found.rows.len() < self.most {
            self.found.rows.push(self.row);
            self.found.quads.push(quad);
        } else {
            self.rest.quads.push(quad);
        }
        Ok(())
    }

    /// Reserves memory for more quads, and as many triples that were seen, before they are there.
    fn make_room(
        &mut self,
        seen: &Option<HashSet<[TermId; 3], FxBuildHasher>>,
    ) -> Result<(), ExecError> {
        // A set may grow to twice what it has.
        const SEEN_BYTES: usize = 2 * (size_of::<[TermId; 3]>() + 1);
        let more = self.rest.quads.capacity().max(QUADS_AT_ONCE);
        let quads = self.rest.quads.capacity() + more;
        let seen = seen.as_ref().map_or(0, HashSet::capacity) + more;
        let bytes = quads * size_of::<[TermId; 4]>() + seen * SEEN_BYTES;
        self.cx.book(&mut self.rest.booked, bytes)?;
        self.rest.quads.reserve_exact(more);
        Ok(())
    }

    /// What is too much for a batch, if anything is.
    fn rest(self) -> Option<Rest> {
        (!self.rest.quads.is_empty()).then_some(self.rest)
    }
}
