//! Text in, plan out: from the cache, or made anew.

use std::borrow::Cow;
use std::sync::Arc;

use memchr::memmem;

use crate::algebra::Query;
use crate::arguments::{self, ArgumentKind, Placeholders};
use crate::build::build;
use crate::cache::{Cache, Found, Prefixes, Structural, Template};
use crate::error::PlanError;
use crate::parse::{on_fitting_stack, parse};
use crate::physical::{Constant, Dataset, Plan};
use crate::prepared::Prepared;
use crate::shape::{Argument, Shape, is_plain_iri, shape_of};
use crate::statistics::Statistics;

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
        statistics: &(dyn Statistics + Sync),
    ) -> Result<Prepared<'a>, PlanError> {
        self.prepare_until(text, base, dataset, statistics, &|| false)
    }

    /// [`Planner::prepare`] that is given up once `is_over`, which is asked every few
    /// microseconds while ways to join are compared; parsing, which takes a few milliseconds for
    /// the longest texts, goes on to its end.
    ///
    /// # Errors
    /// As there, and [`PlanError::Interrupted`].
    pub fn prepare_until<'a>(
        &self,
        text: &'a str,
        base: Option<&str>,
        dataset: Option<&Dataset>,
        statistics: &(dyn Statistics + Sync),
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<Prepared<'a>, PlanError> {
        if !self.cache.is_used() || text.len() > MAX_CACHED_TEXT_BYTES {
            return prepare_alone(text, base, dataset, statistics, is_over);
        }
        let Some(mut shape) = shape_of(text) else {
            return prepare_alone(text, base, dataset, statistics, is_over);
        };
        push_options(&mut shape.key, base, dataset);
        let structure = |slots: &[u16], texts: &mut Vec<u8>| {
            push_structure(text, &shape.arguments, slots, texts);
        };
        let structural = match self.cache.find(&shape.key, structure) {
            Found::Plan(template) => return Ok(prepared(template, text, shape.arguments)),
            Found::Shape(structural) => structural,
            Found::Nothing => Structural::from([]),
        };
        let generation = self.cache.generation();
        let made = on_fitting_stack(text, || {
            let mut made = make(text, base, &shape, &structural, is_over)?;
            made.query = with_dataset(made.query, dataset);
            let plan = Arc::new(build(made.query, statistics, is_over)?);
            Ok(made
                .template
                .map(|(structural, prefixes)| (structural, prefixes, Arc::clone(&plan)))
                .ok_or(plan))
        })?;
        Ok(match made {
            Ok((structural, prefixes, plan)) => {
                let template = Template { plan, prefixes };
                let mut texts = Vec::new();
                push_structure(text, &shape.arguments, &structural, &mut texts);
                self.cache
                    .insert(&shape.key, &structural, texts, template.clone(), generation);
                prepared(template, text, shape.arguments)
            }
            Err(plan) => without_arguments(plan, text),
        })
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
    statistics: &(dyn Statistics + Sync),
) -> Result<Plan, PlanError> {
    plan_until(text, base, dataset, statistics, &|| false)
}

fn plan_until(
    text: &str,
    base: Option<&str>,
    dataset: Option<&Dataset>,
    statistics: &(dyn Statistics + Sync),
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<Plan, PlanError> {
    on_fitting_stack(text, || {
        let query = with_dataset(parse(text, base, None)?, dataset);
        build(query, statistics, is_over)
    })
}

fn prepare_alone<'a>(
    text: &'a str,
    base: Option<&str>,
    dataset: Option<&Dataset>,
    statistics: &(dyn Statistics + Sync),
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<Prepared<'a>, PlanError> {
    let plan = plan_until(text, base, dataset, statistics, is_over)?;
    Ok(without_arguments(Arc::new(plan), text))
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

fn push_options(key: &mut Vec<u8>, base: Option<&str>, dataset: Option<&Dataset>) {
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

/// A query, and what is needed to keep its plan for other texts of its shape, if that can be.
struct Made {
    query: Query,
    template: Option<(Structural, Prefixes)>,
}

/// Parses a text so that its plan serves all texts of its shape, as far as possible.
fn make(
    text: &str,
    base: Option<&str>,
    shape: &Shape,
    known: &Structural,
    is_over: &dyn Fn() -> bool,
) -> Result<Made, PlanError> {
    let query = parse(text, base, None)?;
    // What is sent to other endpoints holds the arguments as text.
    let general = if query.calls_services || mentions_placeholders(text) {
        None
    } else {
        generalize(text, base, &shape.arguments, known, is_over)
    };
    Ok(match general {
        // The general query must say what the text says: whatever the lexer may have got wrong
        // shows here, and costs no more than the cache.
        Some((general, structural, prefixes))
            if says_the_same(&general, &query, text, &shape.arguments, &prefixes) =>
        {
            Made {
                query: general,
                template: Some((structural, prefixes)),
            }
        }
        _ => Made {
            query,
            template: None,
        },
    })
}

fn mentions_placeholders(text: &str) -> bool {
    [arguments::WORD, arguments::NUMBER]
        .iter()
        .any(|word| memmem::find(text.as_bytes(), word.as_bytes()).is_some())
}

type General = (Query, Structural, Prefixes);

/// Parses the text with placeholders for all arguments that are values.
///
/// Which are is found by trying: what turns out to be structural, or is not found at all, is
/// put back, and that may show more.
fn generalize(
    text: &str,
    base: Option<&str>,
    arguments: &[Argument],
    known: &Structural,
    is_over: &dyn Fn() -> bool,
) -> Option<General> {
    let mut structural = vec![false; arguments.len()];
    for slot in known.iter() {
        structural[usize::from(*slot)] = true;
    }
    while !is_over() {
        let mut placeholders = Placeholders::new(arguments.len());
        let replaced = replace(text, arguments, &structural);
        let query = parse(&replaced, base, Some(&mut placeholders)).ok()?;
        let mut settled = true;
        for (slot, fate) in placeholders.fates.iter().enumerate() {
            let is_value =
                fate.value && !fate.structural && has_plain_prefix(fate, arguments[slot]);
            if !structural[slot] && !is_value {
                structural[slot] = true;
                settled = false;
            }
        }
        if settled {
            let slots = (0u16..).zip(&structural);
            let slots = slots.filter(|(_, is)| **is).map(|(slot, _)| slot).collect();
            let prefixes = placeholders
                .fates
                .into_iter()
                .map(|fate| fate.prefix.map(String::into_boxed_str))
                .collect();
            return Some((query, slots, prefixes));
        }
    }
    None
}

/// A local name may follow its prefix only where every local name makes a valid IRI.
fn has_plain_prefix(fate: &arguments::Fate, argument: Argument) -> bool {
    match (argument.kind, &fate.prefix) {
        (ArgumentKind::Local, Some(prefix)) => is_plain_iri(prefix.as_bytes()),
        (ArgumentKind::Local, None) | (_, Some(_)) => false,
        (_, None) => true,
    }
}

fn replace(text: &str, arguments: &[Argument], structural: &[bool]) -> String {
    let mut replaced = String::with_capacity(text.len() + 24 * arguments.len());
    let mut end = 0;
    for (slot, argument) in arguments.iter().enumerate() {
        if structural[slot] {
            continue;
        }
        replaced.push_str(&text[end..argument.start as usize]);
        Placeholders::push(&mut replaced, argument.kind, slot);
        end = argument.end as usize;
    }
    replaced.push_str(&text[end..]);
    replaced
}

/// True if `general` with this text's arguments is `query`.
fn says_the_same(
    general: &Query,
    query: &Query,
    text: &str,
    arguments: &[Argument],
    prefixes: &[Option<Box<str>>],
) -> bool {
    let value = |slot: u16| arguments[usize::from(slot)].of(text);
    let same_constants = general.constants.len() == query.constants.len()
        && general
            .constants
            .iter()
            .zip(&query.constants)
            .all(|(general, own)| match (general, own) {
                (Constant::Fixed(general), Constant::Fixed(own)) => general == own,
                (Constant::Iri { slot }, Constant::Fixed(oxrdf::Term::NamedNode(own))) => {
                    let prefix = prefixes[usize::from(*slot)].as_deref().unwrap_or_default();
                    own.as_str().strip_prefix(prefix) == Some(value(*slot))
                }
                (
                    Constant::Literal {
                        slot,
                        language,
                        datatype,
                    },
                    Constant::Fixed(oxrdf::Term::Literal(own)),
                ) => {
                    own.value() == value(*slot)
                        && own.language() == language.as_deref()
                        && own.datatype() == datatype.as_ref()
                }
                _ => false,
            });
    same_constants
        && general.form == query.form
        && general.variables == query.variables
        && general.dataset == query.dataset
        && general.base == query.base
        && general.pattern == query.pattern
        && general.modifiers == query.modifiers
}
