//! Text in, plan out: from the cache, or made anew.

use std::borrow::Cow;
use std::sync::Arc;

use jindou_syntax::{Argument, parse_query, shape_of};

use crate::algebra::Query;
use crate::arguments::{Arguments, Parameters};
use crate::build::build;
use crate::cache::{Cache, Found, Structural, Template};
use crate::convert::{Converted, Converter};
use crate::error::PlanError;
use crate::limits::Limits;
use crate::patience::Patience;
use crate::physical::{Dataset, Plan};
use crate::prepared::Prepared;
use crate::statistics::Statistics;

/// Bytes of text above which a query is refused.
pub(crate) const MAX_TEXT_BYTES: usize = 64 << 20;
/// Bytes of text above which a continuous query is refused, and an operation of an update that is no
/// data: both are kept, or planned while nobody else may write.
pub(crate) const MAX_KEPT_TEXT_BYTES: usize = 4 << 20;
/// Texts longer than this are not cached.
const MAX_CACHED_TEXT_BYTES: usize = 16 << 10;
/// Separates the shape from the options that a plan depends on; in no UTF-8 text.
const OPTION: u8 = 0xfe;

/// How the planner works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannerConfig {
    /// Plans kept for texts of the same shape, a few kilobytes each; 0 for no cache.
    pub cached_plans: usize,
}

impl Default for PlannerConfig {
    fn default() -> Self {
        Self { cached_plans: 4096 }
    }
}

/// Parses and plans queries, and remembers the plans by the shapes of texts.
///
/// Safe to share between threads: those that find their plan do not wait for each other.
#[derive(Debug)]
pub struct Planner {
    cache: Cache,
}

impl Planner {
    /// A planner with an empty cache.
    #[must_use]
    pub fn new(config: &PlannerConfig) -> Self {
        Self {
            cache: Cache::new(config.cached_plans),
        }
    }

    /// The plan for a query.
    ///
    /// `base` resolves relative IRIs; `dataset` replaces the query's own dataset clause. Costs
    /// under a microsecond when the shape is known, tens or hundreds when it is not.
    ///
    /// # Errors
    /// [`PlanError`]: what is wrong with the text, or what in it is not supported.
    pub fn prepare<'a>(
        &self,
        text: &'a str,
        base: Option<&str>,
        dataset: Option<&Dataset>,
        statistics: &dyn Statistics,
    ) -> Result<Prepared<'a>, PlanError> {
        self.prepare_until(text, base, dataset, statistics, &|| false)
    }

    /// [`Planner::prepare`] that is given up once `is_over`, which is asked every few
    /// microseconds.
    ///
    /// # Errors
    /// As there, and [`PlanError::Interrupted`].
    pub fn prepare_until<'a>(
        &self,
        text: &'a str,
        base: Option<&str>,
        dataset: Option<&Dataset>,
        statistics: &dyn Statistics,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Prepared<'a>, PlanError> {
        let reserve = &mut |_| true;
        let limits = Limits { reserve, is_over };
        self.prepare_within(text, base, (dataset, false), statistics, limits)
    }

    /// [`Planner::prepare`] within limits, and for all graphs together as the default graph where
    /// that is asked for beside the dataset and the query names none. What it reserves is held
    /// until this returns.
    ///
    /// # Errors
    /// As there, [`PlanError::MemoryRefused`] and [`PlanError::Interrupted`].
    pub fn prepare_within<'a>(
        &self,
        text: &'a str,
        base: Option<&str>,
        (dataset, union_default_graph): (Option<&Dataset>, bool),
        statistics: &dyn Statistics,
        limits: Limits<'_>,
    ) -> Result<Prepared<'a>, PlanError> {
        let is_cached = self.cache.is_used() && text.len() <= MAX_CACHED_TEXT_BYTES;
        let Some(mut shape) = is_cached.then(|| shape_of(text)).flatten() else {
            let request = Request {
                text,
                base,
                dataset,
                union_default_graph,
            };
            let (plan, _) = request.plan(Arguments::none(), statistics, limits)?;
            return Ok(without_arguments(Arc::new(plan), text));
        };
        push_options(&mut shape.key, base, dataset, union_default_graph);
        let structure = |slots: &[u16], texts: &mut Vec<u8>| {
            push_structure(text, &shape.arguments, slots, texts);
        };
        let structural = match self.cache.find(&shape.key, structure) {
            Found::Plan(template) => return Ok(prepared(template, text, shape.arguments)),
            Found::Shape(structural) => structural,
            Found::Nothing => Structural::from([]),
        };
        let generation = self.cache.generation();
        let request = Request {
            text,
            base,
            dataset,
            union_default_graph,
        };
        let arguments = Arguments::new(text, &shape.arguments, &structural);
        let (plan, parameters) = request.plan(arguments, statistics, limits)?;
        let plan = Arc::new(plan);
        let Some((structural, prefixes)) = parameters else {
            return Ok(without_arguments(plan, text));
        };
        let template = Template { plan, prefixes };
        let mut texts = Vec::new();
        push_structure(text, &shape.arguments, &structural, &mut texts);
        let kept = template.clone();
        self.cache
            .insert(&shape.key, &structural, texts, kept, generation);
        Ok(prepared(template, text, shape.arguments))
    }

    /// Forgets all plans: for when the data, and so the statistics, have changed much.
    ///
    /// Old plans stay correct, they may only have become slow.
    pub fn clear(&self) {
        self.cache.clear();
    }

    /// Plans kept now.
    #[must_use]
    pub fn cached_plans(&self) -> usize {
        self.cache.len()
    }
}

/// Parses and plans a query, without any cache.
///
/// `base` resolves relative IRIs; `dataset` replaces the query's own dataset clause. Costs tens
/// of microseconds for a small query.
///
/// # Errors
/// [`PlanError`]: what is wrong with the text, or what in it is not supported.
pub fn plan(
    text: &str,
    base: Option<&str>,
    dataset: Option<&Dataset>,
    statistics: &dyn Statistics,
) -> Result<Plan, PlanError> {
    let (reserve, is_over) = (&mut |_| true, &|| false);
    plan_within(text, base, dataset, statistics, Limits { reserve, is_over })
}

/// [`plan`] within limits. What it reserves is held until this returns.
///
/// # Errors
/// As there, [`PlanError::MemoryRefused`] and [`PlanError::Interrupted`].
pub fn plan_within(
    text: &str,
    base: Option<&str>,
    dataset: Option<&Dataset>,
    statistics: &dyn Statistics,
    limits: Limits<'_>,
) -> Result<Plan, PlanError> {
    let request = Request {
        text,
        base,
        dataset,
        union_default_graph: false,
    };
    Ok(request.plan(Arguments::none(), statistics, limits)?.0)
}

/// What is asked.
struct Request<'r, 't> {
    text: &'t str,
    base: Option<&'r str>,
    dataset: Option<&'r Dataset>,
    union_default_graph: bool,
}

impl<'t> Request<'_, 't> {
    /// The plan; with the parameters that make it that of other texts, if it is.
    fn plan(
        &self,
        arguments: Arguments<'t>,
        statistics: &dyn Statistics,
        limits: Limits<'_>,
    ) -> Result<(Plan, Option<Parameters>), PlanError> {
        if self.text.len() > MAX_TEXT_BYTES {
            return Err(PlanError::TooLarge {
                what: "bytes of text",
                limit: MAX_TEXT_BYTES,
            });
        }
        let is_over = limits.is_over;
        let (text, base) = (self.text, self.base);
        let parsed = limits.parse(text, base, parse_query, |_| text.len())?;
        let patience = Patience::new(is_over);
        let converter = Converter::new(text, parsed.base.as_deref(), arguments, &patience);
        let Converted { query, parameters } = converter.query(&parsed)?;
        drop(parsed);
        let mut query = with_dataset(query, self.dataset);
        query.union_default_graph = self.union_default_graph;
        let plan = build(query, statistics, &patience)?;
        Ok((plan, parameters))
    }
}

/// A plan of a text none of whose constants are arguments.
pub(crate) fn without_arguments(plan: Arc<Plan>, text: &str) -> Prepared<'_> {
    let template = Template {
        plan,
        prefixes: Arc::from([]),
    };
    prepared(template, text, Vec::new())
}

fn prepared(template: Template, text: &str, arguments: Vec<Argument>) -> Prepared<'_> {
    Prepared {
        plan: template.plan,
        prefixes: template.prefixes,
        text: Cow::Borrowed(text),
        arguments,
    }
}

fn with_dataset(mut query: Query, dataset: Option<&Dataset>) -> Query {
    if let Some(dataset) = dataset {
        query.dataset = Some(dataset.clone());
    }
    query
}

fn push_options(key: &mut Vec<u8>, base: Option<&str>, dataset: Option<&Dataset>, union: bool) {
    if union {
        key.extend_from_slice(&[OPTION, b'u']);
    }
    if let Some(base) = base {
        key.extend_from_slice(&[OPTION, b'b']);
        key.extend_from_slice(base.as_bytes());
    }
    if let Some(dataset) = dataset {
        key.extend_from_slice(&[OPTION, b'd']);
        for (kind, graphs) in [(b'f', &dataset.default), (b'n', &dataset.named)] {
            for graph in graphs {
                key.extend_from_slice(&[OPTION, kind]);
                key.extend_from_slice(graph.as_str().as_bytes());
            }
        }
    }
}

fn push_structure(text: &str, arguments: &[Argument], slots: &[u16], texts: &mut Vec<u8>) {
    for slot in slots {
        texts.extend_from_slice(arguments[usize::from(*slot)].of(text).as_bytes());
        texts.push(OPTION);
    }
}
