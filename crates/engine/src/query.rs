//! A query's life: text -> plan -> execution -> results.

use std::sync::Arc;

use jindou_exec::{Context, ContextParts, Execution, Limits, Terms, Workers};
use jindou_model::TermId;
use jindou_plan::physical::{ConstId, Form, Plan};
use jindou_plan::{Prepared, explain_profile};

use crate::graph::StoredGraph;
use crate::solutions::Solutions;
use crate::triples::{Graph, GraphForm};
use crate::{Config, EngineError, QueryOptions};

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
    pub(crate) prepared: Prepared,
    pub(crate) memory_bytes: u64,
    pub(crate) seed: u64,
}

impl Running {
    pub(crate) fn start(
        graph: Arc<StoredGraph>,
        prepared: Prepared,
        options: &QueryOptions,
        config: &Config,
        workers: &Arc<Workers>,
        seed: u64,
    ) -> Result<Self, EngineError> {
        let plan = Arc::clone(&prepared.plan);
        let terms = Terms::new(graph.clone());
        let constants = resolve_constants(&prepared, &terms);
        let parts = ContextParts {
            source: graph.clone(),
            terms,
            constants,
            limits: Limits {
                cancellation: options.cancellation.clone().unwrap_or_default(),
                timeout: options.timeout.or(config.query_timeout),
                memory_bytes: config.query_memory_bytes,
            },
            profile: options.profile,
            threads: options.threads.unwrap_or(config.threads),
            seed,
        };
        let cx = Arc::new(Context::new(&plan, parts));
        let execution = Execution::new(&plan, cx, workers)?;
        let memory_bytes = config.query_memory_bytes;
        Ok(Self { execution, graph, prepared, memory_bytes, seed })
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.prepared.plan
    }

    /// Splits off what the query's form makes of its rows.
    pub(crate) fn into_results(mut self) -> Result<QueryResults, EngineError> {
        Ok(match &self.plan().form {
            Form::Select(vars) => {
                let vars = vars.clone();
                QueryResults::Solutions(Solutions::new(self, vars))
            }
            Form::Ask => QueryResults::Boolean(self.execution.next_table()?.is_some()),
            Form::Construct(template) => {
                let form = GraphForm::Construct(template.clone());
                QueryResults::Graph(Graph::new(self, form))
            }
            Form::Describe(slots) => {
                let form = GraphForm::Describe(slots.clone());
                QueryResults::Graph(Graph::new(self, form))
            }
        })
    }

    /// The plan with rows and times, if they were gathered.
    pub(crate) fn profile(&self) -> Option<String> {
        let cx = self.execution.context();
        cx.measured(0)?;
        Some(explain_profile(
            self.plan(),
            &|id| self.prepared.term(id),
            &|id| cx.measured(id).map(|measured| (measured.rows, measured.time)),
        ))
    }
}

/// The ids of a plan's constants for this run.
fn resolve_constants(prepared: &Prepared, terms: &Terms) -> Vec<TermId> {
    (0..prepared.plan.constants.len())
        .map(|number| terms.intern(prepared.term(ConstId(number as u16)).as_ref()))
        .collect()
}
