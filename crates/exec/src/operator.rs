//! A plan's tree -> operators that hand over tables.

use std::sync::Arc;

use jindou_model::TermId;
use jindou_plan::physical::{Node, Operator as Planned, Plan, PlannedStep, Service, Step, Var};

use crate::ExecError;
use crate::ForkPolicy;
use crate::context::Context;
use crate::exchange::{
    Exchange, Ids, Morsels, Partial, PassOn, Rows, Shared, SharedRows, TakeRows,
};
use crate::execution::Parallel;
use crate::fork::{
    Fork, ForkPlace, ForkScan, ForkedChain, Forks, fork_key, forks_scan, is_made_ready, stays_here,
};
use crate::operators;
use crate::steps::{self, Behind, Chain, Undecided};
use crate::table::{Table, VarSet};
use crate::transport::Carried;

/// What a row of a step is expected to cost.
const COST_OF_ROW: f64 = 8.0;

/// To join takes as long as so many steps.
const STEPS_OF_JOIN: usize = 2;

/// Steps that are built between two looks at the limits.
const STEPS_PER_LOOK: usize = 1024;

/// Something that hands over rows, a table at a time.
pub(crate) trait Operator: Send {
    /// The next rows; `None` at the end. A table may be empty.
    ///
    /// After the end an operator may be asked again: if its input has new rows, it goes on with
    /// those. So the steps of OPTIONAL and UNION serve one batch after the other.
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError>;

    /// [`Operator::produce`], with the bytes of the table reserved until it is dropped: an operator
    /// that keeps it need not reserve them again.
    ///
    /// # Errors
    /// As there, and if the query then holds more than it may.
    fn next(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let mut next = self.produce(cx)?;
        if cx.expressions.is_over() {
            // Expressions have had no values since.
            cx.check()?;
        }
        if let Some(table) = &mut next {
            cx.book_table(table)?;
        }
        Ok(next)
    }
}

/// An operator of any kind.
pub(crate) type Boxed = Box<dyn Operator>;

/// One row without columns, once.
pub(crate) struct Unit {
    width: usize,
    done: bool,
}

impl Operator for Unit {
    fn produce(&mut self, _cx: &Context) -> Result<Option<Table>, ExecError> {
        Ok((!std::mem::replace(&mut self.done, true)).then(|| Table::unit(self.width)))
    }
}

/// Variables that have a value from the start in a plan inside another: the current values of
/// EXISTS, or a graph.
pub(crate) type Given = Arc<[(Var, TermId)]>;

/// One row of what is given, once.
struct GivenRow {
    width: usize,
    given: Given,
    done: bool,
}

impl Operator for GivenRow {
    fn produce(&mut self, _cx: &Context) -> Result<Option<Table>, ExecError> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        let mut table = Table::unit(self.width);
        for (var, id) in self.given.iter() {
            table.set(*var, vec![*id]);
        }
        Ok(Some(table))
    }
}

/// Gives rows back what is given, after they lost it in a projection or group.
struct GiveAgain {
    input: Boxed,
    given: Given,
}

impl Operator for GiveAgain {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let Some(mut table) = self.input.next(cx)? else {
            return Ok(None);
        };
        for (var, id) in self.given.iter() {
            table.set(*var, vec![*id; table.rows()]);
        }
        Ok(Some(table))
    }
}

/// Counts rows and time of the operator inside.
struct Profiled {
    inner: Boxed,
    id: u32,
}

impl Operator for Profiled {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        let profile = cx
            .profile
            .as_ref()
            .expect("only profiled queries have this operator");
        profile.measure(self.id, &cx.nested, || self.inner.next(cx))
    }
}

/// The rows of a node's last step that are counted and not listed, where nobody wants more of them than `needed`.
fn counted_rows(node: &Node, needed: &VarSet) -> f64 {
    match &node.operator {
        Planned::Project { input, .. } | Planned::Reduced { input } => counted_rows(input, needed),
        Planned::Explore { steps, .. } => match steps.last() {
            Some(last) if steps::count::is_by_length(&last.step, needed) => last.rows,
            _ => 0.0,
        },
        _ => 0.0,
    }
}

/// What the chains of several threads have in common while they are built.
struct Chains<'a> {
    /// What they share out.
    morsels: Morsels,
    /// What they read, by its node.
    shared: Vec<(u32, Arc<dyn Shared>)>,
    /// What the builder has where it builds no chain.
    parallel: Parallel<'a>,
    forked: Option<&'a Arc<Context>>,
}

/// Where the rows of a node begin that look at no other ones on their way.
enum Begin<'n> {
    /// In an exploration.
    First(&'n Node),
    /// As the rows of a node.
    Rows(&'n Node),
}

/// How rows come to a node from where they begin.
struct Way<'n> {
    begin: Begin<'n>,
    /// Steps on the way.
    steps: usize,
    /// Rows that are expected of all of them together.
    rows: f64,
}

/// Turns plans into operators.
pub(crate) struct Builder<'a> {
    pub(crate) cx: &'a Context,
    /// How many variables the plan has.
    variables: usize,
    /// Columns of a table: the plan's variables, and a hidden one for each nested step.
    width: usize,
    hidden: u16,
    given: Option<Given>,
    /// Set where the rows of a node may be found by several threads.
    pub(crate) parallel: Option<Parallel<'a>>,
    /// Set where this builds what one of several threads does.
    chains: Option<Chains<'a>>,
    /// The exploration, by its id, of which it is known that there is nothing to share out.
    not_shared: Option<u32>,
    /// The query, where its explorations may go on at other nodes.
    pub(crate) forked: Option<&'a Arc<Context>>,
    /// Set where the rows of the next node may come once each, with their numbers.
    pub(crate) counted: bool,
    /// Set where the next step is to scan only what this node has of an index vertex.
    pub(crate) own_scan: bool,
    /// Set for steps inside EXISTS: what was found there.
    pub(crate) undecided: Option<Undecided>,
    /// What several threads do.
    pub(crate) exchanges: Vec<jindou_plan::Exchange>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(plan: &'a Plan, cx: &'a Context) -> Self {
        let variables = plan.variables.len();
        Self {
            cx,
            variables,
            width: variables + count_hidden(&plan.root),
            hidden: variables as u16,
            given: None,
            parallel: None,
            chains: None,
            not_shared: None,
            forked: None,
            counted: false,
            own_scan: false,
            undecided: None,
            exchanges: Vec::new(),
        }
    }

    /// Of the rest of a chain, in a plan of so many variables and columns of which those from
    /// `hidden` on are free.
    pub(crate) fn for_rest(
        cx: &'a Context,
        (variables, width): (usize, usize),
        hidden: u16,
    ) -> Self {
        Self {
            cx,
            variables,
            width,
            hidden,
            given: None,
            parallel: None,
            chains: None,
            not_shared: None,
            forked: None,
            counted: false,
            own_scan: false,
            undecided: None,
            exchanges: Vec::new(),
        }
    }

    /// How many variables the plan has.
    pub(crate) fn variable_count(&self) -> usize {
        self.variables
    }

    /// The first column that no step has for itself yet.
    pub(crate) fn next_hidden(&self) -> u16 {
        self.hidden
    }

    /// True inside a plan of which variables have values from the start.
    pub(crate) fn has_given(&self) -> bool {
        self.given.is_some()
    }

    /// The variables of the plan.
    pub(crate) fn variables(&self) -> impl Iterator<Item = Var> + use<> {
        (0..self.variables as u16).map(Var)
    }

    /// Sets a plan aside that is to be evaluated anew for each combination of given values.
    pub(crate) fn template(&mut self, node: &Node, needed: VarSet) -> Template {
        let hidden = self.hidden;
        self.hidden += count_hidden(node) as u16;
        Template {
            node: node.clone(),
            needed,
            variables: self.variables,
            width: self.width,
            hidden,
            outer: self.given.clone(),
        }
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// A variable for the executor's own use.
    pub(crate) fn hidden_variable(&mut self) -> Var {
        self.hidden += 1;
        Var(self.hidden - 1)
    }

    pub(crate) fn unit(&self) -> Boxed {
        match &self.given {
            Some(given) => Box::new(GivenRow {
                width: self.width,
                given: Arc::clone(given),
                done: false,
            }),
            None => Box::new(Unit {
                width: self.width,
                done: false,
            }),
        }
    }

    /// A service whose query has what is given in the places of its variables. No other place
    /// knows our blank nodes.
    pub(crate) fn given_to(&self, service: &Service) -> Service {
        let mut service = service.clone();
        if let Some(given) = &self.given {
            let value = |var| {
                let (_, id) = given.iter().find(|(other, _)| *other == var)?;
                // Where it is lost, no row of the query counts any more.
                let term = self.cx.terms().term(*id).ok().flatten();
                term.filter(operators::can_be_written)
            };
            service.query = service.query.given(&value);
        }
        service
    }

    /// An operator that drops columns, with what is given in its rows again.
    pub(crate) fn give_again(&self, input: Boxed) -> Boxed {
        match &self.given {
            Some(given) => Box::new(GiveAgain {
                input,
                given: Arc::clone(given),
            }),
            None => input,
        }
    }

    /// An operator as what reads it sees it: its tables carried where there is a transport, its rows
    /// and time counted where the query is profiled.
    fn finished(&self, inner: Boxed, id: u32) -> Boxed {
        let inner = match &self.cx.transport {
            Some(transport) => Box::new(Carried::new(inner, Arc::clone(transport))),
            None => inner,
        };
        match self.cx.profile {
            Some(_) => Box::new(Profiled { inner, id }),
            None => inner,
        }
    }

    /// The operator of a node of which `needed` is wanted.
    pub(crate) fn node(&mut self, node: &Node, needed: &VarSet) -> Result<Boxed, ExecError> {
        let counted = std::mem::take(&mut self.counted);
        if self.parallel.is_some()
            && let Some(exchange) = self.exchange(node, needed, counted, |_, _| Ok(PassOn))?
        {
            return Ok(exchange);
        }
        if let Some((source, first)) = self.shared_out(node, needed, counted)? {
            return match &node.operator {
                Planned::Explore { steps, .. } if first > 0 => {
                    self.last_steps(Some(source), &steps[first..], needed, counted)
                }
                _ => Ok(source),
            };
        }
        let operator = match &node.operator {
            Planned::Explore { input, steps } => {
                let forked = self.forked_at(input.as_deref(), steps);
                let before = steps::needed_before(steps, needed);
                // The steps behind counts take or leave all rows that one stands for.
                self.counted = counted && input.as_deref().is_some_and(is_of_counts);
                let input = input.as_deref().map(|input| self.node(input, &before));
                self.counted = false;
                let input = input.transpose()?;
                let Some(cx) = forked else {
                    return self.last_steps(input, steps, needed, counted);
                };
                let chain = ForkedChain::new((cx, self), steps, (needed, counted));
                let (place, join) = ForkPlace::new(chain);
                let own = self.chain(input, steps, needed, counted, Some(place))?;
                return Ok(join.with(own));
            }
            Planned::Project { .. } | Planned::Materialized { .. } | Planned::EndCounts(_) => {
                self.counted = counted;
                operators::build(self, node, needed)?
            }
            _ => operators::build(self, node, needed)?,
        };
        Ok(self.finished(operator, node.id))
    }

    /// The query, where rows of a chain of these steps behind `input` may go on at other nodes.
    fn forked_at(&self, input: Option<&Node>, steps: &[PlannedStep]) -> Option<&'a Arc<Context>> {
        let rows = input.map_or(1.0, |input| input.rows);
        let may_go_on = |cx: &&Arc<Context>| {
            let is_ready = |forks: &Arc<dyn Forks>| is_made_ready(steps, rows, &**forks);
            cx.forks.as_ref().is_some_and(is_ready) && !stays_here(steps)
        };
        let forked = self.forked.filter(may_go_on);
        forked.filter(|_| !input.is_some_and(is_of_counts))
    }

    /// What finds the rows of a node on several threads, each of which has what `partial` makes take
    /// them, if they are many. Other than those of [`Builder::node`], they come in no order.
    ///
    /// `partial` is given the variable of which each value is in the rows of one thread only, if there
    /// is one.
    pub(crate) fn exchange<P: Partial>(
        &mut self,
        node: &Node,
        needed: &VarSet,
        counted: bool,
        mut partial: impl FnMut(Option<Var>, &Context) -> Result<P, ExecError>,
    ) -> Result<Option<Box<Exchange<P>>>, ExecError> {
        let Some(parallel) = self.parallel else {
            return Ok(None);
        };
        let Some(Way { begin, steps, rows }) = self.way(node) else {
            return Ok(None);
        };
        // To find the rows of one step, or to count them, takes less than to hand them over.
        let is_cheap = steps < 2 && (counted || !P::IS_WORK);
        let listed = match counted {
            true => rows - counted_rows(node, needed),
            false => rows,
        };
        let is_counted = listed < rows && listed < parallel.sharing.least_cost / COST_OF_ROW;
        if is_cheap || is_counted {
            return Ok(None);
        }
        let Some(morsels) = self.morsels((&begin, rows), parallel)? else {
            return Ok(None);
        };
        let distinct = match &morsels {
            Morsels::Ids(ids) => ids.distinct_var().filter(|var| passes(node, *var)),
            Morsels::Rows(_) => None,
        };
        self.exchanges.push(jindou_plan::Exchange {
            node: node.id,
            threads: parallel.threads,
            dealt: morsels.dealt(),
        });
        let mut shares = Vec::with_capacity(parallel.threads);
        let before = self.hidden;
        self.chains = Some(Chains {
            morsels,
            shared: Vec::new(),
            parallel,
            forked: self.forked.take(),
        });
        self.parallel = None;
        for _ in 0..parallel.threads {
            self.hidden = before;
            self.counted = counted;
            shares.push((self.node(node, needed)?, partial(distinct, self.cx)?));
        }
        let chains = self.chains.take().expect("it was set above");
        (self.parallel, self.forked) = (Some(parallel), chains.forked);
        let shared = chains.shared.into_iter().map(|(_, shared)| shared);
        let around = (parallel.cx, parallel.workers);
        let exchange = Exchange::new(shares, shared.collect(), parallel.plan.stack(), around);
        Ok(Some(Box::new(exchange)))
    }

    /// What several threads share out, if it is worth it.
    fn morsels(
        &mut self,
        (begin, rows): (&Begin<'_>, f64),
        parallel: Parallel<'_>,
    ) -> Result<Option<Morsels>, ExecError> {
        let sharing = parallel.sharing;
        let many = (parallel.threads, sharing.least_rows);
        let least = sharing.least_cost / COST_OF_ROW;
        let node = match begin {
            Begin::Rows(_) if rows < least => return Ok(None),
            Begin::Rows(node) => return Ok(Rows::of(node, many).map(Morsels::Rows)),
            Begin::First(node) => *node,
        };
        if self.not_shared == Some(node.id) {
            return Ok(None);
        }
        if let Some(few) = Rows::of_few(node, many, least) {
            return Ok(Some(Morsels::Rows(few)));
        }
        let ids = Ids::of(node, rows, many, self.width, self.cx)?.map(Morsels::Ids);
        let morsels = ids.or_else(|| Rows::of_first(node, many, least).map(Morsels::Rows));
        if morsels.is_none() {
            self.not_shared = Some(node.id);
        }
        Ok(morsels)
    }

    /// Where one of several threads gets its rows, if it is this node where these are shared out, and the
    /// number of steps of the exploration that are done then.
    fn shared_out(
        &mut self,
        node: &Node,
        needed: &VarSet,
        counted: bool,
    ) -> Result<Option<(Boxed, usize)>, ExecError> {
        let Some(chains) = &self.chains else {
            return Ok(None);
        };
        let (first, known) = match &chains.morsels {
            Morsels::Ids(ids) if ids.are_of(node) => return Ok(Some((ids.source(), 1))),
            Morsels::Rows(rows) if rows.are_of(node) => (rows.steps, rows.shared.clone()),
            _ => return Ok(None),
        };
        let threads = chains.parallel.threads;
        let steps = match &node.operator {
            Planned::Explore { steps, .. } => steps.split_at(first),
            _ => (&[][..], &[][..]),
        };
        let shared = match known {
            Some(shared) => {
                self.hidden += match first {
                    0 => count_hidden(node) as u16,
                    _ => count_in_steps(steps.0) as u16,
                };
                shared
            }
            None => {
                let source = self.outside(|builder| match first {
                    0 => {
                        builder.counted = counted;
                        builder.node(node, needed)
                    }
                    _ => {
                        let before = steps::needed_before(steps.1, needed);
                        builder.last_steps(None, steps.0, &before, false)
                    }
                })?;
                let shared = Arc::new(SharedRows::new(source, threads));
                if let Some(chains) = &mut self.chains
                    && let Morsels::Rows(rows) = &mut chains.morsels
                {
                    rows.shared = Some(Arc::clone(&shared));
                }
                shared
            }
        };
        Ok(Some((Box::new(TakeRows(shared)), first)))
    }

    /// Builds what is in none of the chains of several threads, if this builds one.
    fn outside<T>(
        &mut self,
        build: impl FnOnce(&mut Self) -> Result<T, ExecError>,
    ) -> Result<T, ExecError> {
        let Some(chains) = self.chains.take() else {
            return build(self);
        };
        (self.parallel, self.forked) = (Some(chains.parallel), chains.forked);
        let built = build(self);
        (self.parallel, self.forked) = (None, None);
        self.chains = Some(chains);
        built
    }

    /// What the chains of several threads read for a node: made with the first of these, and for itself where
    /// there is one thread. `inside` are the nodes that it has.
    pub(crate) fn shared<T: Shared + 'static>(
        &mut self,
        id: u32,
        inside: &Node,
        make: impl FnOnce(&mut Self) -> Result<T, ExecError>,
    ) -> Result<Arc<T>, ExecError> {
        let known = self.chains.as_ref().and_then(|chains| {
            let shared = chains.shared.iter().find(|(node, _)| *node == id);
            shared.map(|(_, shared)| Arc::clone(shared))
        });
        if let Some(known) = known {
            self.hidden += count_hidden(inside) as u16;
            let known = known.into_any().downcast();
            return Ok(known.expect("a node makes one thing"));
        }
        let made = Arc::new(self.outside(make)?);
        if let Some(chains) = &mut self.chains {
            let shared: Arc<dyn Shared> = Arc::<T>::clone(&made);
            chains.shared.push((id, shared));
        }
        Ok(made)
    }

    /// Where the rows of a node begin, and what is on their way, if that looks at them one by one, on this
    /// machine, in no order that counts.
    fn way<'n>(&self, node: &'n Node) -> Option<Way<'n>> {
        let (input, steps, rows) = match &node.operator {
            Planned::Explore { input, steps } => {
                if self.forked_at(input.as_deref(), steps).is_some() {
                    return None;
                }
                let rows = steps.iter().map(|step| step.rows).sum();
                let steps = steps.len();
                match input {
                    Some(input) => (input, steps, rows),
                    None => {
                        let begin = Begin::First(node);
                        return Some(Way { begin, steps, rows });
                    }
                }
            }
            Planned::Project { input, .. } | Planned::Reduced { input } => (input, 0, 0.0),
            Planned::Join {
                probe: input,
                loose,
                ..
            }
            | Planned::LeftJoin {
                left: input, loose, ..
            } if loose.is_empty() => (input, STEPS_OF_JOIN, node.rows + input.rows),
            Planned::Minus { left, .. } => (left, STEPS_OF_JOIN, left.rows),
            _ => return None,
        };
        match self.way(input) {
            Some(before) => Some(Way {
                begin: before.begin,
                steps: before.steps + steps,
                rows: before.rows + rows,
            }),
            None if operators::is_ordered(input) => None,
            None => Some(Way {
                begin: Begin::Rows(input),
                steps,
                rows,
            }),
        }
    }

    /// The operator of a node whose rows may come once each, with their numbers: what reads
    /// them counts them, or does not care.
    pub(crate) fn counted_node(
        &mut self,
        node: &Node,
        needed: &VarSet,
    ) -> Result<Boxed, ExecError> {
        self.counted = true;
        self.node(node, needed)
    }

    /// A chain of steps behind `input`.
    pub(crate) fn steps(
        &mut self,
        input: Boxed,
        steps: &[PlannedStep],
        needed: &VarSet,
    ) -> Result<Boxed, ExecError> {
        self.last_steps(Some(input), steps, needed, false)
    }

    /// A chain of steps behind `input`, or at the start of all; where rows may be `counted`, the last
    /// step may give each row once, with its number.
    pub(crate) fn last_steps(
        &mut self,
        input: Option<Boxed>,
        steps: &[PlannedStep],
        needed: &VarSet,
        counted: bool,
    ) -> Result<Boxed, ExecError> {
        self.chain(input, steps, needed, counted, None)
    }

    /// The steps of a chain that goes on here, behind `input`; what they have others do replies to
    /// `place`.
    pub(crate) fn forked_steps(
        &mut self,
        input: Boxed,
        steps: &[PlannedStep],
        needed: &VarSet,
        counted: bool,
        place: ForkPlace,
    ) -> Result<Boxed, ExecError> {
        self.chain(Some(input), steps, needed, counted, Some(place))
    }

    /// As [`Builder::last_steps`]; with a `place`, before each step rows may go on at other nodes.
    fn chain(
        &mut self,
        input: Option<Boxed>,
        steps: &[PlannedStep],
        needed: &VarSet,
        counted: bool,
        place: Option<ForkPlace>,
    ) -> Result<Boxed, ExecError> {
        let mut chain = Chain::default();
        let is_unit = input.is_none() && self.given.is_none();
        let mut operator = input.unwrap_or_else(|| self.unit());
        let mut wanted = Behind::new(steps, needed);
        let first = place.as_ref().map_or(0, |place| place.from);
        if let Some(place) = &place {
            operator = self.fork_scan(operator, is_unit, steps, place);
        }
        // Filters that the pattern before them has taken over, BINDs that the first one has.
        let mut taken_over = 0;
        for (index, planned) in steps.iter().enumerate().skip(first) {
            if index < taken_over {
                // With a profile, BINDs have an operator each.
                if self.cx.profile.is_some() {
                    operator = self.finished(chain.input(operator), planned.id);
                }
                continue;
            }
            operator = chain.input(operator);
            if let Some(place) = &place {
                operator = match self.fork(operator, steps, index, place) {
                    Ok(fork) => chain.input(fork),
                    Err(input) => input,
                };
            }
            if index % STEPS_PER_LOOK == STEPS_PER_LOOK - 1 {
                self.cx.check()?;
            }
            let keep = |count| wanted.behind(index + count).clone();
            if self.cx.profile.is_none() && matches!(planned.step, Step::Extend { .. }) {
                let (extends, count) =
                    steps::build_extends(operator, &steps[index..], keep, self.cx)?;
                operator = extends;
                taken_over = index + count;
                continue;
            }
            match steps::build_match_except(operator, &steps[index..], keep, self.cx) {
                Ok((matching, count)) => {
                    operator = self.finished(matching, planned.id);
                    taken_over = index + count;
                    continue;
                }
                Err(input) => operator = input,
            }
            if counted && index + 1 == steps.len() {
                match steps::count::build(operator, is_unit, steps, needed, self.cx)? {
                    Ok(last) => return Ok(chain.end(self.finished(last, planned.id))),
                    Err(input) => operator = input,
                }
            }
            let keep = wanted.behind(index + 1).clone();
            if self.undecided.is_some() {
                match steps::count::build_any(operator, planned, &keep, self.cx)? {
                    Ok(any) => {
                        operator = self.finished(any, planned.id);
                        continue;
                    }
                    Err(input) => operator = input,
                }
            }
            operator = steps::build(self, operator, &steps[index..], keep)?;
            operator = self.finished(operator, planned.id);
        }
        Ok(chain.end(operator))
    }

    /// Before the first step that is built: has all nodes scan what they have of an index vertex, if
    /// that is due.
    fn fork_scan(
        &mut self,
        input: Boxed,
        is_unit: bool,
        steps: &[PlannedStep],
        place: &ForkPlace,
    ) -> Boxed {
        self.own_scan = place.own_scan;
        match &self.cx.forks {
            Some(forks) if is_unit && forks_scan(steps, &**forks) => {
                self.own_scan = true;
                Box::new(ForkScan::new(input, place.clone(), forks))
            }
            _ => input,
        }
    }

    /// What has rows go on at other nodes before a step, if that reads what only its node has; else
    /// the input is given back.
    fn fork(
        &self,
        input: Boxed,
        steps: &[PlannedStep],
        index: usize,
        place: &ForkPlace,
    ) -> Result<Boxed, Boxed> {
        let Some(forks) = &self.cx.forks else {
            return Err(input);
        };
        let key = fork_key(&steps[index].step, self.cx);
        let may_go = forks.settings().policy != ForkPolicy::InPlace && place.may_part_before(index);
        if key.is_empty() || !may_go {
            return Err(input);
        }
        let fan_out = steps[index].rows / place.rows_before(index).max(1.0);
        let place = place.clone();
        Ok(Box::new(Fork::new(
            input,
            (index, key),
            fan_out,
            place,
            forks,
        )))
    }
}

/// A plan inside another that is evaluated many times, with other given values each time.
pub(crate) struct Template {
    node: Node,
    needed: VarSet,
    variables: usize,
    width: usize,
    hidden: u16,
    /// What is given to the plan around.
    outer: Option<Given>,
}

impl Template {
    /// What the plan around has from the start.
    pub(crate) fn given(&self, var: Var) -> Option<TermId> {
        let outer = self.outer.as_ref()?;
        outer
            .iter()
            .find(|(other, _)| *other == var)
            .map(|(_, id)| *id)
    }

    /// Starts an evaluation.
    pub(crate) fn start(&self, given: &[(Var, TermId)], cx: &Context) -> Result<Boxed, ExecError> {
        let around = self.outer.iter().flat_map(|outer| outer.iter());
        let around = around.filter(|(var, _)| !given.iter().any(|(other, _)| other == var));
        let mut builder = Builder {
            cx,
            variables: self.variables,
            width: self.width,
            hidden: self.hidden,
            given: Some(given.iter().chain(around).copied().collect()),
            parallel: None,
            chains: None,
            not_shared: None,
            forked: None,
            counted: false,
            own_scan: false,
            undecided: None,
            exchanges: Vec::new(),
        };
        builder.node(&self.node, &self.needed)
    }
}

/// True if the rows of a node have the variable as the exploration binds it with which they begin.
fn passes(node: &Node, var: Var) -> bool {
    match &node.operator {
        Planned::Project { input, vars } => vars.contains(&var) && passes(input, var),
        Planned::Explore {
            input: Some(input), ..
        }
        | Planned::Reduced { input } => passes(input, var),
        _ => true,
    }
}

fn is_of_counts(node: &Node) -> bool {
    matches!(node.operator, Planned::EndCounts(_))
}

/// How many steps of a plan need a hidden column: those that number the rows they are asked for.
fn count_hidden(node: &Node) -> usize {
    match &node.operator {
        Planned::Explore { input, steps } => {
            input.as_deref().map_or(0, count_hidden) + count_in_steps(steps)
        }
        Planned::Join { build, probe, .. } => count_hidden(build) + count_hidden(probe),
        Planned::LeftJoin {
            left, right, marks, ..
        } => count_hidden(left) + count_hidden(right) + count_in_steps(marks),
        Planned::Service { input, marks, .. } => {
            input.as_deref().map_or(0, count_hidden) + count_in_steps(marks)
        }
        Planned::Minus { left, right, .. } => count_hidden(left) + count_hidden(right),
        Planned::Union(inputs) => inputs.iter().map(count_hidden).sum(),
        Planned::Materialized { .. } => 0,
        Planned::EndCounts(planned) => count_hidden(&planned.general),
        Planned::EachGraph { input, .. }
        | Planned::Group { input, .. }
        | Planned::OrderBy { input, .. }
        | Planned::Project { input, .. }
        | Planned::Distinct { input }
        | Planned::Reduced { input }
        | Planned::Slice { input, .. } => count_hidden(input),
    }
}

pub(crate) fn count_in_steps(steps: &[PlannedStep]) -> usize {
    steps.iter().map(count_in_step).sum()
}

fn count_in_step(planned: &PlannedStep) -> usize {
    match &planned.step {
        Step::Optional { steps, .. } | Step::Exists { steps, .. } => 1 + count_in_steps(steps),
        Step::ExistsGiven {
            node, all_bound, ..
        } => count_hidden(node) + all_bound.as_deref().map_or(0, count_hidden),
        Step::Union(branches) => branches.iter().flatten().map(count_in_step).sum(),
        _ => 0,
    }
}
