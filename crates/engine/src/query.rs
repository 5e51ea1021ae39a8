//! A query's life: text -> plan -> execution -> results.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jindou_exec::{
    Context, ContextParts, ExecError, Execution, Forked, KeyKind, Keys, Limits, MaterializedRows,
    Table, Terms, Workers,
};
use jindou_model::{TermId, TermKind, Unavailable, key};
use jindou_plan::Prepared;
use jindou_plan::physical::{ConstId, Constant, Form, Operator, Plan};
use oxrdf::Term;

use crate::graph::StoredGraph;
use crate::service::services;
use crate::shards::{Asked, Holders};
use crate::solutions::{Solutions, term};
use crate::texts::Texts;
use crate::triples::{Graph, GraphForm};
use crate::{Config, EngineError, QueryOptions, TermDecoder};

/// What a query returns.
#[derive(Debug)]
pub enum QueryResults {
    /// Of SELECT.
    Solutions(Solutions),
    /// Of ASK.
    Boolean(bool),
    /// Of CONSTRUCT and DESCRIBE.
    Graph(Graph),
}

/// A query under way, with all that it needs.
pub(crate) struct Running {
    pub(crate) execution: Execution,
    pub(crate) graph: Arc<StoredGraph>,
    /// The terms of the rows that were handed over last, where they are not all here.
    texts: Texts,
    pub(crate) prepared: Prepared<'static>,
    pub(crate) workers: Arc<Workers>,
    pub(crate) seed: u64,
    /// Who has the shards that it may lack.
    pub(crate) holders: Holders,
}

impl Running {
    /// Starts a query of a graph.
    pub(crate) fn start(
        graph: Asked,
        prepared: Prepared<'_>,
        options: &QueryOptions,
        config: &Config,
        workers: &Arc<Workers>,
        place: (Instant, u64),
    ) -> Result<Self, EngineError> {
        let rows = Arc::default();
        let timeout = options.timeout.or(config.query_timeout);
        Self::start_within(
            timeout,
            graph,
            (prepared, rows),
            options,
            config,
            workers,
            place,
        )
    }

    /// Starts an evaluation of a continuous query, whose plan may be over rows that are kept.
    pub(crate) fn start_over(
        graph: Asked,
        plan: (Prepared<'_>, Arc<MaterializedRows>),
        options: &QueryOptions,
        config: &Config,
        workers: &Arc<Workers>,
        place: (Instant, u64),
    ) -> Result<Self, EngineError> {
        let timeout = options.timeout.or(config.continuous_timeout);
        Self::start_within(timeout, graph, plan, options, config, workers, place)
    }

    fn start_within(
        timeout: Option<Duration>,
        asked: Asked,
        (prepared, materialized): (Prepared<'_>, Arc<MaterializedRows>),
        options: &QueryOptions,
        config: &Config,
        workers: &Arc<Workers>,
        (begun, seed): (Instant, u64),
    ) -> Result<Self, EngineError> {
        let plan = Arc::clone(&prepared.plan);
        if let Some(max_cost) = options.max_cost
            && plan.cost > max_cost
            && !may_end_early(&plan)
        {
            return Err(EngineError::TooCostly { cost: plan.cost });
        }
        let Asked {
            graph,
            terms,
            source,
            forks,
            holders,
        } = asked;
        let texts = match &terms {
            None => Texts::AllHere,
            Some(_) => Texts::default(),
        };
        let terms = Terms::new(terms.unwrap_or_else(|| graph.clone()));
        let cancellation = options.cancellation.clone().unwrap_or_default();
        if !matches!(texts, Texts::AllHere) {
            let ends = cancellation.clone();
            terms.wait_until(move |_| {
                ends.is_cancelled() || timeout.is_some_and(|limit| begun.elapsed() > limit)
            });
        }
        let constants = resolve_constants(&prepared, &graph, &terms).map_err(|why| {
            let limit = timeout.filter(|limit| begun.elapsed() > *limit);
            holders.name(match limit {
                Some(limit) if why == Unavailable::NotNow => ExecError::Timeout { limit }.into(),
                _ => ExecError::of_unavailable(why).into(),
            })
        })?;
        let account = options
            .progress
            .as_ref()
            .map_or_else(Arc::default, |progress| Arc::clone(&progress.account));
        if let Some(pool) = &config.memory_pool {
            account.join(pool);
        }
        let parts = ContextParts {
            source,
            terms,
            constants,
            limits: Limits {
                cancellation,
                started: begun,
                timeout,
                memory_bytes: config.query_memory_bytes,
                spill: config.spill.clone(),
                account,
            },
            services: plan.calls_services.then(|| services(config, options)),
            profile: options.profile,
            threads: (options.threads)
                .map_or(config.threads, |threads| threads.min(config.threads)),
            seed,
            transport: config.transport.as_ref().map(|by| Arc::clone(&by.0)),
            materialized,
            forks,
            class: options.class,
        };
        let begin = || {
            let cx = Arc::new(Context::new(&plan, parts)?);
            Ok(Execution::new(&plan, cx, workers, config.sharing)?)
        };
        let execution = begin().map_err(|error| holders.name(error))?;
        let prepared = prepared.into_owned();
        Ok(Self {
            execution,
            graph,
            texts,
            prepared,
            workers: Arc::clone(workers),
            seed,
            holders,
        })
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// The limit that the query met; a file of the store that lost bytes.
    pub(crate) fn next_table(&mut self) -> Result<Option<Table>, EngineError> {
        let Self {
            execution,
            graph,
            holders,
            ..
        } = self;
        let table = graph.read(|| execution.next_table())?;
        table.map_err(|error| holders.name(error.into()))
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.prepared.plan
    }

    /// Reads the terms of rows that are about to be handed over, all together, where they are not all here.
    ///
    /// # Errors
    /// The limit that the query met, and that a node is lost that has some of them.
    pub(crate) fn read_texts<'i>(
        &mut self,
        ids: impl Iterator<Item = &'i TermId>,
    ) -> Result<(), EngineError> {
        if matches!(self.texts, Texts::AllHere) {
            return Ok(());
        }
        let read = Texts::read(ids, self.execution.context());
        self.texts = read.map_err(|error| self.holders.name(error.into()))?;
        Ok(())
    }

    /// The terms of the rows that were handed over last.
    pub(crate) fn texts(&self) -> &Texts {
        &self.texts
    }

    /// What turns ids of the rows that were handed over last into text.
    pub(crate) fn decoder(&self) -> TermDecoder<'_> {
        self.decoder_of(&self.texts)
    }

    /// A term of the rows that were handed over last; `None` where nothing is bound.
    pub(crate) fn term(&self, id: TermId) -> Option<Term> {
        term(self.execution.context().terms(), self.texts.read_ones(), id)
    }

    /// What turns ids of rows into text whose terms are these.
    pub(crate) fn decoder_of<'a>(&'a self, texts: &'a Texts) -> TermDecoder<'a> {
        TermDecoder::new(
            &self.graph,
            self.execution.context().terms(),
            texts.read_ones(),
        )
    }

    /// Splits off what the query's form makes of its rows.
    pub(crate) fn into_results(mut self) -> Result<QueryResults, EngineError> {
        Ok(match &self.plan().form {
            Form::Select(vars) => {
                let vars = vars.clone();
                QueryResults::Solutions(Solutions::new(self, vars))
            }
            Form::Ask => QueryResults::Boolean(self.next_table()?.is_some()),
            Form::Construct(template) => {
                let form = GraphForm::construct(self.plan(), template);
                QueryResults::Graph(Graph::new(self, form))
            }
            Form::Describe(slots) => {
                let form = GraphForm::Describe(slots.as_slice().into());
                QueryResults::Graph(Graph::new(self, form))
            }
        })
    }

    /// The plan, and what several threads do of it.
    ///
    /// # Errors
    /// [`EngineError::NoStack`].
    pub(crate) fn explain(&self) -> Result<String, EngineError> {
        let exchanges = self.execution.exchanges();
        Ok(self.prepared.explain_shared(exchanges)?)
    }

    /// The plan with rows and times, if they were gathered.
    ///
    /// # Errors
    /// [`EngineError::NoStack`].
    pub(crate) fn profile(&self) -> Result<Option<String>, EngineError> {
        let cx = self.execution.context();
        if cx.measured(0).is_none() {
            return Ok(None);
        }
        let actual = |id| {
            cx.measured(id)
                .map(|measured| (measured.rows, measured.time))
        };
        let exchanges = self.execution.exchanges();
        let explained = self.prepared.explain_profile(exchanges, &actual);
        let mut explained = explained?;
        let forked = cx.forked();
        if forked != Forked::default() {
            let Forked {
                sub_queries,
                rows,
                bytes,
            } = forked;
            explained.push_str(&format!(
                "sub-queries at other nodes: {sub_queries}, with {rows} rows in {bytes} bytes\n"
            ));
        }
        Ok(Some(explained))
    }
}

/// Whether the plan's whole cost may never be paid.
fn may_end_early(plan: &Plan) -> bool {
    let sliced = matches!(plan.root.operator, Operator::Slice { limit: Some(_), .. });
    matches!(plan.form, Form::Ask) || sliced
}

/// The ids of a plan's constants for this run.
///
/// Those that are the same at every run are looked up once in each generation of the graph.
///
/// # Errors
/// As [`Terms::intern_key`].
fn resolve_constants(
    prepared: &Prepared<'_>,
    graph: &StoredGraph,
    terms: &Terms,
) -> Result<Vec<TermId>, Unavailable> {
    let plan = &prepared.plan;
    let remembered = plan.remembered.get(graph.snapshot.generation());
    if !terms.are_here() {
        expect_constants(prepared, terms);
    }
    let mut key = Vec::new();
    let mut ids = Vec::with_capacity(plan.constants.len());
    for (number, constant) in plan.constants.iter().enumerate() {
        let known = remembered.map_or(TermId::NONE, |known| known[number]);
        let id = ConstId(number as u16);
        ids.push(match constant {
            Constant::Window { number, .. } => TermId::window(*number),
            // A plan may have been used at a later snapshot, with terms that came after this one.
            _ if !known.is_none() && graph.snapshot.knows(known) => known,
            Constant::Iri { .. } => {
                key.clear();
                prepared.push_key(id, &mut key);
                terms.intern_key(&key, false)?
            }
            // Literals may be held inline, which their keys do not tell.
            _ => terms.intern(prepared.term(id).as_ref())?,
        });
    }
    if remembered.is_none() {
        // What the graph does not have gets an id of each query's own.
        let lasting = |(id, constant): (&TermId, &Constant)| match constant {
            Constant::Fixed(_) if id.kind() != TermKind::Computed => *id,
            _ => TermId::NONE,
        };
        plan.remembered.set(
            graph.snapshot.generation(),
            ids.iter().zip(&plan.constants).map(lasting).collect(),
        );
    }
    Ok(ids)
}

/// Has the terms of a plan's constants sent here together.
fn expect_constants(prepared: &Prepared<'_>, terms: &Terms) {
    let mut keys = Keys::default();
    for (number, constant) in prepared.plan.constants.iter().enumerate() {
        let id = ConstId(number as u16);
        match constant {
            Constant::Window { .. } => {}
            Constant::Iri { .. } => {
                keys.push_with(|key| {
                    prepared.push_key(id, key);
                    KeyKind::Node
                });
            }
            Constant::Fixed(_) | Constant::Literal { .. } => {
                let term = prepared.term(id);
                keys.push_with(|bytes| KeyKind::of_term(key::push_term(bytes, term.as_ref())));
            }
        }
    }
    terms.expect_keys(&keys);
}
