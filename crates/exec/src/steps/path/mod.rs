//! Property paths that are repeated: which ends are connected?

mod automaton;
mod closed;
mod closure;
#[cfg(test)]
mod closure_tests;
mod id_set;
mod many;
mod optional;
mod search;
#[cfg(test)]
mod tests;
mod view;

use jindou_model::TermId;
use jindou_plan::physical::{PathExpression, Scope, Slot, Var};
use rustc_hash::FxHashMap;

use super::graphs::{is_named_graph, named_graphs};
use super::scope::Graph;
use super::undecided::Portion;
use crate::ExecError;
use crate::context::{Booked, Context};
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet};
use automaton::Automaton;
use closed::Closed;
use many::Many;
use optional::OrNothing;
use search::Search;
use view::{Starts, View};

/// Bytes of searches that are kept for rows to come.
const KEPT_BYTES: usize = 64 << 20;
/// The part of the query's memory that they may take.
const KEPT_PART: u64 = 4;
/// Terms that a scan takes at once.
const STARTS_AT_ONCE: usize = 1024;
/// Starts of a scan that are searched from one by one, as the first rows may be enough.
const FIRST_STARTS: usize = 4;

/// [`jindou_plan::physical::Step::Path`].
pub(crate) struct FollowPath {
    input: Boxed,
    /// Subject and object.
    ends: [Slot; 2],
    scope: Scope,
    keep: VarSet,
    /// From the subject and from the object.
    automata: [Automaton; 2],
    /// Rows may come once each, with their numbers.
    counted: bool,
    or_nothing: Option<OrNothing>,
    searches: Searches,
    closed: Closed,
    /// The graph that was asked last, if it is one of the dataset.
    view: Option<(TermId, Option<View>)>,
    /// The starts of a scan of one graph.
    starts: Option<(TermId, Starts)>,
    portion: Portion,
    current: Option<Current>,
}

/// The input table in work, and how far.
struct Current {
    table: Table,
    /// Its rows, those with the same ends together.
    order: Vec<u32>,
    /// The graphs to try for each row, where the rows do not tell; else `NONE` alone.
    graphs: Vec<TermId>,
    /// Of the graphs.
    _booked: Booked,
    graph: usize,
    row: usize,
    /// Answers of the row's search that were handed on.
    answers: usize,
    /// They were of a closure.
    is_known: bool,
    scan: Option<Scan>,
}

impl Current {
    /// Goes on with the next row.
    fn pass_row(&mut self) {
        self.row += 1;
        self.answers = 0;
        self.is_known = false;
        self.scan = None;
    }
}

/// A row without a known end: a search from each term.
struct Scan {
    /// Starts taken so far.
    taken: usize,
    /// The last ones taken, the next at the end.
    starts: Vec<TermId>,
    current: Option<FromStarts>,
    /// Starts are searched from one by one: together they take too much memory.
    one_by_one: bool,
}

/// A search of a scan.
enum FromStarts {
    One(TermId, Search),
    /// One from which all that is reached is known.
    Known(TermId),
    Many(Many),
}

/// Rows found so far: row of the table; subject, object, graph.
struct Found {
    /// As many as are wanted at once.
    most: usize,
    rows: Vec<u32>,
    terms: Vec<[TermId; 3]>,
    /// How many rows each stands for.
    counts: Vec<u64>,
}

impl Found {
    fn new(most: usize) -> Self {
        Self {
            most,
            rows: Vec::new(),
            terms: Vec::new(),
            counts: Vec::new(),
        }
    }

    fn push(&mut self, row: u32, terms: [TermId; 3]) {
        self.push_many(row, terms, 1);
    }

    fn push_many(&mut self, row: u32, terms: [TermId; 3], count: u64) {
        self.rows.push(row);
        self.terms.push(terms);
        self.counts.push(count);
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.most
    }
}

/// Searches kept by end (0 from the subject, 1 from the object), graph and term.
#[derive(Default)]
struct Searches {
    kept: FxHashMap<(usize, TermId, TermId), Search>,
    bytes: usize,
}

impl Searches {
    fn take(&mut self, key: (usize, TermId, TermId)) -> Option<Search> {
        let search = self.kept.remove(&key)?;
        self.bytes -= search.bytes();
        Some(search)
    }

    /// Keeps searches just used; where the others are too many, they go.
    fn keep<const N: usize>(&mut self, used: [((usize, TermId, TermId), Search); N], cx: &Context) {
        let more: usize = used.iter().map(|(_, search)| search.bytes()).sum();
        let most = KEPT_BYTES.min((cx.memory_bytes() / KEPT_PART) as usize);
        if self.bytes + more > most {
            for (_, search) in self.kept.drain() {
                search.release(cx);
            }
            self.bytes = 0;
        }
        self.bytes += more;
        self.kept.extend(used);
    }
}

impl FollowPath {
    pub(super) fn new(
        input: Boxed,
        ends: [Slot; 2],
        path: &PathExpression,
        scope: Scope,
        keep: VarSet,
        cx: &Context,
    ) -> Self {
        Self {
            input,
            ends,
            scope,
            keep,
            automata: [
                Automaton::new(path, cx),
                Automaton::new(&path.reversed(), cx),
            ],
            counted: false,
            or_nothing: None,
            searches: Searches::default(),
            closed: Closed::default(),
            view: None,
            starts: None,
            portion: Portion::new(None),
            current: None,
        }
    }

    /// The same, with as many rows at once as `portion` says.
    pub(super) fn in_portions(self, portion: Portion) -> Self {
        Self { portion, ..self }
    }

    /// The same, with rows once each and their numbers where nobody looks at their ends.
    pub(super) fn counted(self) -> Self {
        Self {
            counted: true,
            ..self
        }
    }

    fn begin(&self, table: Table, cx: &Context) -> Result<Current, ExecError> {
        let mut order: Vec<u32> = (0..table.rows() as u32).collect();
        let graph = match self.scope {
            Scope::Graph(slot) => Some(slot),
            Scope::Default | Scope::Named => None,
        };
        let value = |slot: Slot, row: u32| cx.slot(slot, &table, row as usize);
        order.sort_by_key(|row| {
            let graph = graph.map_or(TermId::NONE, |slot| value(slot, *row));
            (graph, self.ends.map(|end| value(end, *row)))
        });
        let is_unbound = |slot: Slot| match slot {
            Slot::Var(var) => table.get(var).is_none(),
            Slot::Const(_) => false,
        };
        let graphs = if graph.is_some_and(is_unbound) {
            named_graphs(cx)
        } else {
            vec![TermId::NONE]
        };
        let mut booked = Booked::default();
        cx.book(&mut booked, graphs.capacity() * size_of::<TermId>())?;
        Ok(Current {
            table,
            order,
            graphs,
            _booked: booked,
            graph: 0,
            row: 0,
            answers: 0,
            is_known: false,
            scan: None,
        })
    }

    /// The graph of a row (`NONE`: the default graph), and what is to be seen of it; `None`
    /// where it is no graph of the dataset.
    fn view(&mut self, current: &Current, row: u32, cx: &Context) -> (TermId, Option<View>) {
        let asked = match self.scope {
            Scope::Default | Scope::Named => TermId::NONE,
            Scope::Graph(slot) => match current.graphs[current.graph] {
                TermId::NONE => cx.slot(slot, &current.table, row as usize),
                graph => graph,
            },
        };
        if let Some((graph, view)) = &self.view
            && *graph == asked
        {
            return (asked, view.clone());
        }
        let graph = match self.scope {
            Scope::Default => Some(Graph::default_of(cx)),
            Scope::Named => Some(Graph::all_named(cx)),
            Scope::Graph(slot) => is_named_graph(cx, slot, asked).then_some(Graph::One(asked)),
        };
        let view = graph.map(View::new);
        self.view = Some((asked, view.clone()));
        (asked, view)
    }

    /// True if the term at this end is connected with itself without an edge.
    fn is_own_answer(
        &self,
        end: usize,
        term: TermId,
        view: &View,
        cx: &Context,
    ) -> Result<bool, ExecError> {
        let automaton = &self.automata[end];
        let is_constant = matches!(self.ends[end], Slot::Const(_));
        Ok(automaton.is_nullable
            && ((is_constant && automaton.matches_absent) || view.has(term, cx)?))
    }

    fn search(
        &mut self,
        key: (usize, TermId, TermId),
        view: &View,
        cx: &Context,
    ) -> Result<Search, ExecError> {
        if let Some(begun) = self.searches.take(key) {
            return Ok(begun);
        }
        let (end, _, term) = key;
        let is_answer = self.is_own_answer(end, term, view, cx)?;
        Ok(Search::new(term, is_answer, &self.automata[end]))
    }

    /// Handles a piece of the row at hand; false at the end of the table.
    fn go_on(
        &mut self,
        current: &mut Current,
        found: &mut Found,
        cx: &Context,
    ) -> Result<bool, ExecError> {
        if current.row == current.order.len() {
            current.row = 0;
            current.graph += 1;
        }
        if current.graph >= current.graphs.len() || current.order.is_empty() {
            return Ok(false);
        }
        let row = current.order[current.row];
        if self.portion.passes_over(&current.table, row as usize) {
            current.pass_row();
            return Ok(true);
        }
        let (graph, view) = self.view(current, row, cx);
        let Some(view) = view else {
            current.row += 1;
            return Ok(true);
        };
        let [subject, object] = self
            .ends
            .map(|end| cx.slot(end, &current.table, row as usize));
        let is_done = match (subject.is_none(), object.is_none()) {
            (false, false) => {
                if self.are_connected([subject, object], graph, &view, cx)? {
                    found.push(row, [subject, object, graph]);
                }
                true
            }
            (false, true) => {
                let emit = |answer| [subject, answer, graph];
                self.reach((0, graph, subject), row, current, &view, &emit, found, cx)?
            }
            (true, false) => {
                let emit = |answer| [answer, object, graph];
                self.reach((1, graph, object), row, current, &view, &emit, found, cx)?
            }
            (true, true) => self.scan(current, row, graph, &view, found, cx)?,
        };
        if is_done {
            current.pass_row();
        }
        Ok(true)
    }

    /// Hands on what is reached from one known end; true when that is all.
    #[expect(
        clippy::too_many_arguments,
        reason = "the place of the search and that of its answers"
    )]
    fn reach(
        &mut self,
        key: (usize, TermId, TermId),
        row: u32,
        current: &mut Current,
        view: &View,
        emit: &dyn Fn(TermId) -> [TermId; 3],
        found: &mut Found,
        cx: &Context,
    ) -> Result<bool, ExecError> {
        let known = self.reach_known(key, row, current, view, emit, found, cx)?;
        if let Some(is_done) = known {
            return Ok(is_done);
        }
        let mut search = self.search(key, view, cx)?;
        if self.counts_ends(key.0) {
            let mut work = 0;
            while !search.is_done() {
                work += search.advance(&self.automata[key.0], view, cx)?;
            }
            self.closed.note_work((key.0, key.1), work as u64);
            let count = search.answers().len() as u64;
            if count > 0 {
                found.push_many(row, emit(TermId::NONE), count);
            }
            self.searches.keep([(key, search)], cx);
            return Ok(true);
        }
        let is_done = loop {
            while let Some(answer) = search.answers().get(current.answers) {
                if found.is_full() {
                    break;
                }
                found.push(row, emit(*answer));
                current.answers += 1;
            }
            if current.answers < search.answers().len() {
                break false;
            }
            if search.is_done() {
                break true;
            }
            let work = search.advance(&self.automata[key.0], view, cx)?;
            self.closed.note_work((key.0, key.1), work as u64);
        };
        self.searches.keep([(key, search)], cx);
        Ok(is_done)
    }

    /// True if one of both ends is known in rows and nobody looks at the other one, so that it is enough to know how many
    /// there are.
    fn counts_ends(&self, known: usize) -> bool {
        let other = self.ends[1 - known];
        self.counted && self.ends[0] != self.ends[1] && self.is_unwanted(other)
    }

    /// True of a variable that nobody looks at behind the path, and that is nothing else in it.
    fn is_unwanted(&self, slot: Slot) -> bool {
        let is_graph = matches!(self.scope, Scope::Graph(graph) if graph == slot);
        !is_graph && matches!(slot, Slot::Var(var) if !self.keep.contains(var))
    }

    /// True if a path leads from one known end to the other.
    ///
    /// Searches from both ends, with as much work from each, so that the end from which less is reached decides how
    /// long it takes; what was searched is kept for the next rows with one of these ends.
    fn are_connected(
        &mut self,
        ends: [TermId; 2],
        graph: TermId,
        view: &View,
        cx: &Context,
    ) -> Result<bool, ExecError> {
        if ends[0] == ends[1]
            && (self.is_own_answer(0, ends[0], view, cx)?
                || self.is_own_answer(1, ends[1], view, cx)?)
        {
            return Ok(true);
        }
        let keys = [(0, graph, ends[0]), (1, graph, ends[1])];
        let answer = |search: &Search, other: TermId| {
            let has = search.has_reached(other);
            (has || search.is_done()).then_some(has)
        };
        for (key, other) in keys.iter().zip([ends[1], ends[0]]) {
            let kept = self.searches.kept.get(key);
            if let Some(known) = kept.and_then(|search| answer(search, other)) {
                return Ok(known);
            }
        }
        let [first, second] = keys;
        let mut searches = [
            self.search(first, view, cx)?,
            self.search(second, view, cx)?,
        ];
        let mut work = [0, 0];
        let connected = loop {
            let end = usize::from(work[1] < work[0]);
            work[end] += searches[end].advance(&self.automata[end], view, cx)?;
            if let Some(known) = answer(&searches[end], ends[1 - end]) {
                break known;
            }
        };
        let [first, second] = searches;
        self.searches
            .keep([(keys[0], first), (keys[1], second)], cx);
        Ok(connected)
    }

    /// Hands on all pairs that a path connects; true when that is all.
    fn scan(
        &mut self,
        current: &mut Current,
        row: u32,
        graph: TermId,
        view: &View,
        found: &mut Found,
        cx: &Context,
    ) -> Result<bool, ExecError> {
        let automaton = &self.automata[0];
        if self.starts.as_ref().is_none_or(|(of, _)| *of != graph) {
            let starts = view.starts(automaton, cx)?;
            if let Some((_, old)) = self.starts.take() {
                cx.release(old.bytes());
            }
            cx.charge(starts.bytes())?;
            self.starts = Some((graph, starts));
        }
        let (_, starts) = self.starts.as_ref().expect("it was found above");
        let scan = current.scan.get_or_insert_with(|| Scan {
            taken: 0,
            starts: Vec::new(),
            current: None,
            one_by_one: false,
        });
        let is_loop = self.ends[0] == self.ends[1];
        let only_counts =
            self.counted && !is_loop && self.ends.iter().all(|end| self.is_unwanted(*end));
        let has_begun = scan.taken > 0 || scan.current.is_some();
        if only_counts && !has_begun {
            let all = starts.len();
            if let Some(closure) = self.closed.get((0, graph), automaton, view, cx)? {
                // Other terms of the graph are their own answers, where that needs no edge.
                let others = match automaton.is_nullable {
                    true => all - closure.begins(),
                    false => 0,
                };
                let count = closure.count_all(cx)? + others;
                if count > 0 {
                    found.push_many(row, [TermId::NONE, TermId::NONE, graph], count);
                }
                return Ok(true);
            }
        }
        loop {
            let mut search = match scan.current.take() {
                Some(search) => search,
                None => {
                    if scan.starts.is_empty() {
                        starts.copy(scan.taken, STARTS_AT_ONCE, &mut scan.starts);
                        scan.taken += scan.starts.len();
                        scan.starts.reverse();
                        cx.check()?;
                    }
                    let may_know = !only_counts && !is_loop;
                    let way = (0, graph);
                    let closed = &mut self.closed;
                    let next = match may_know && closed.is_worth(way, automaton, view, cx)? {
                        true => scan.starts.pop().map(FromStarts::Known),
                        false => scan.begin(automaton, view, cx)?,
                    };
                    let Some(search) = next else {
                        return Ok(true);
                    };
                    if let FromStarts::Many(search) = &search {
                        closed.note_work(way, search.followed());
                    }
                    current.answers = 0;
                    search
                }
            };
            let is_done = match &mut search {
                FromStarts::Many(search) if only_counts => {
                    found.push_many(row, [TermId::NONE, TermId::NONE, graph], search.count());
                    true
                }
                FromStarts::Many(search) if is_loop => {
                    search.for_each_loop(|term| found.push(row, [term, term, graph]));
                    true
                }
                FromStarts::Many(search) => search.hand_on(&mut |start, end| {
                    found.push(row, [start, end, graph]);
                    !found.is_full()
                }),
                FromStarts::Known(start) => {
                    let own = Some(*start).filter(|_| automaton.is_nullable);
                    let emit = |answer| [*start, answer, graph];
                    let answers = &mut current.answers;
                    self.closed
                        .hand_on((*start, own), row, answers, &emit, found, cx)?
                }
                FromStarts::One(start, search) => {
                    let start = (*start, is_loop, graph);
                    let answers = &mut current.answers;
                    hand_on(search, start, automaton, row, answers, view, found, cx)?
                }
            };
            match search {
                FromStarts::One(_, search) if is_done => search.release(cx),
                FromStarts::Many(search) if is_done => search.release(cx),
                FromStarts::Known(_) if is_done => {}
                search => scan.current = Some(search),
            }
            if found.is_full() {
                return Ok(false);
            }
        }
    }

    /// The rows found, as a table: variables that were unbound get columns, repeated ones are
    /// compared.
    fn extend(&self, table: &Table, found: Found) -> Table {
        let graph = match self.scope {
            Scope::Graph(slot) => Some(slot),
            Scope::Default | Scope::Named => None,
        };
        let slots = [Some(self.ends[0]), Some(self.ends[1]), graph];
        let variables: Vec<(usize, Var)> = slots
            .iter()
            .enumerate()
            .filter_map(|(place, slot)| match slot {
                Some(Slot::Var(var)) => Some((place, *var)),
                _ => None,
            })
            .collect();
        let fits = |index: usize| {
            let terms = &found.terms[index];
            variables.iter().all(|(place, var)| {
                let bound = table.value(*var, found.rows[index] as usize);
                (bound.is_none() || bound == terms[*place])
                    && variables
                        .iter()
                        .all(|(other, same)| same != var || terms[*other] == terms[*place])
            })
        };
        let kept: Vec<usize> = (0..found.rows.len()).filter(|index| fits(*index)).collect();
        let rows: Vec<u32> = kept.iter().map(|index| found.rows[*index]).collect();
        let mut extended = table.gather(&rows, &self.keep);
        for (place, var) in variables {
            if self.keep.contains(var) {
                let column = kept.iter().map(|index| found.terms[*index][place]);
                extended.set(var, column.collect());
            }
        }
        if self.counted {
            extended.set_counts(kept.iter().map(|index| found.counts[*index]).collect());
        }
        extended
    }
}

impl Scan {
    /// Begins with the next start, or with many; `None` if there are no more.
    fn begin(
        &mut self,
        automaton: &Automaton,
        view: &View,
        cx: &Context,
    ) -> Result<Option<FromStarts>, ExecError> {
        let is_first = self.taken - self.starts.len() < FIRST_STARTS;
        if !self.one_by_one && !is_first && self.starts.len() > 1 {
            let rest = self.starts.len().saturating_sub(many::STARTS);
            let starts: Vec<TermId> = self.starts.drain(rest..).rev().collect();
            let mut search = Many::new(starts, automaton);
            let most_bytes = (cx.memory_bytes() / KEPT_PART) as usize;
            if search.run(automaton, view, most_bytes, cx)? {
                return Ok(Some(FromStarts::Many(search)));
            }
            self.one_by_one = true;
            self.starts.extend(search.into_starts(cx).into_iter().rev());
        }
        // All starts of a path that need not have an edge are terms of the graph.
        Ok(self.starts.pop().map(|start| {
            let search = Search::new(start, automaton.is_nullable, automaton);
            FromStarts::One(start, search)
        }))
    }
}

/// Hands on what is reached from a start of a scan; true when that is all.
#[expect(
    clippy::too_many_arguments,
    reason = "the search and the place of its answers"
)]
fn hand_on(
    search: &mut Search,
    (start, is_loop, graph): (TermId, bool, TermId),
    automaton: &Automaton,
    row: u32,
    answers: &mut usize,
    view: &View,
    found: &mut Found,
    cx: &Context,
) -> Result<bool, ExecError> {
    loop {
        if is_loop && search.has_reached(start) {
            found.push(row, [start, start, graph]);
            return Ok(true);
        }
        while !is_loop && !found.is_full() {
            let Some(answer) = search.answers().get(*answers) else {
                break;
            };
            found.push(row, [start, *answer, graph]);
            *answers += 1;
        }
        if found.is_full() {
            return Ok(false);
        }
        if search.is_done() {
            return Ok(true);
        }
        search.advance(automaton, view, cx)?;
    }
}

impl FollowPath {
    /// Takes a table in which the path is `p?` and needs no search; gives any other back.
    fn or_nothing(&mut self, table: Table) -> Result<(), Table> {
        // Anywhere else it may be another graph for each row.
        if self.scope != Scope::Default {
            return Err(table);
        }
        let edges = self.automata.each_ref().map(optional::edge_of);
        self.or_nothing = Some(OrNothing::new(table, self.ends, edges)?);
        Ok(())
    }
}

impl Operator for FollowPath {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            cx.check()?;
            if let Some(rows) = &mut self.or_nothing {
                let graph = Graph::default_of(cx);
                if let Some(mut table) = rows.next(&graph, &self.keep, cx)? {
                    if self.counted {
                        table.set_counts(vec![1; table.rows()]);
                    }
                    return Ok(Some(table));
                }
                self.or_nothing = None;
            }
            let mut current = match self.current.take() {
                Some(current) => {
                    if let Some(row) = current.order.get(current.row) {
                        self.portion.go_on(&current.table, *row as usize);
                    }
                    current
                }
                None => match self.input.next(cx)? {
                    Some(table) => match self.or_nothing(table) {
                        Ok(()) => continue,
                        Err(table) => self.begin(table, cx)?,
                    },
                    None => return Ok(None),
                },
            };
            let mut found = Found::new(self.portion.rows(current.table.width()));
            let mut has_more = true;
            while has_more && !found.is_full() {
                has_more = self.go_on(&mut current, &mut found, cx)?;
            }
            let extended = (!found.rows.is_empty()).then(|| self.extend(&current.table, found));
            if has_more {
                self.current = Some(current);
            }
            if let Some(extended) = extended {
                return Ok(Some(extended));
            }
        }
    }
}
