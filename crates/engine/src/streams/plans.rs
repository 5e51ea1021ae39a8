//! How is a query evaluated at its next instants: all of it anew, or by what came since the last one?

use jindou_model::SnapshotNumber;
use jindou_plan::{Incremental, Prepared, Recomputed, Statistics};
use jindou_stream::{WindowedFigures, WindowedGraph};

use super::continuous::Continuous;
use super::incremental::has_tuples;
use crate::graph::StoredGraph;
use crate::{EngineError, KeepSolutions};

/// A plan is made anew when there is so many times as much, or as little, as when it was made.
const REPLAN: u64 = 2;
/// So many more or less do not matter.
const FEW: u64 = 64;
/// Solutions are kept where evaluating all anew is expected to cost so many times as much.
const GAIN: f64 = 2.0;
/// What costs less than this is evaluated anew: two plans take longer to begin than it takes.
const SMALL_COST: f64 = 300.0;

/// The plans of a query, and how much there was when they were made.
pub(super) struct Plans {
    pub(super) whole: Prepared<'static>,
    /// Where solutions are kept, otherwise why not.
    pub(super) incremental: Result<IncrementalPlans, NotKept>,
    size: Size,
}

/// How much there was when a plan was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    tuples: u64,
    quads: u64,
    /// Rows that are given.
    rows: u64,
    /// Of the stored graph's ids, which plans remember, and how often some had been taken from terms.
    place: (u64, u64),
}

impl Size {
    /// True while there is about as much as then.
    pub(super) fn is_like(&self, then: &Self) -> bool {
        let is_like =
            |now: u64, then: u64| now <= REPLAN * then + FEW && then <= REPLAN * now + FEW;
        self.place == then.place
            && is_like(self.tuples, then.tuples)
            && is_like(self.quads, then.quads)
            && is_like(self.rows, then.rows)
    }
}

/// The plans of a query whose solutions are kept.
pub(super) struct IncrementalPlans {
    /// The core over whole windows.
    pub(super) full: Prepared<'static>,
    /// The core with one pattern over new tuples each.
    pub(super) deltas: Vec<Prepared<'static>>,
    /// What is above the core.
    pub(super) rest: Prepared<'static>,
}

/// Why all of a query is evaluated anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotKept {
    #[error("{0}")]
    Query(Recomputed),
    #[error("it is expected to cost less")]
    Cost,
    #[error("what it reads of stored graphs changes at most instants")]
    Changes,
    #[error("its solutions take more memory than a query may")]
    Memory,
    #[error("the configuration says so")]
    Configured,
}

/// What plans are made for.
pub(super) struct Figures<'a> {
    pub(super) graph: &'a StoredGraph,
    /// With the windows of new tuples behind the others.
    pub(super) windowed: &'a WindowedGraph,
    /// How often ids had been taken from terms.
    pub(super) forgotten: u64,
    /// Rows that what is above the core is given now.
    pub(super) given: u64,
}

impl Figures<'_> {
    /// How much there is, in so many windows, with so many rows that are given.
    pub(super) fn size(&self, windows: usize, rows: u64) -> Size {
        let snapshot = &self.graph.snapshot;
        let numbers = 0..windows as u16;
        let tuples = numbers.map(|number| self.windowed.window(number).tuples());
        Size {
            tuples: tuples.sum(),
            quads: snapshot.triples() + snapshot.named_quads(),
            rows,
            place: (snapshot.generation(), self.forgotten),
        }
    }
}

impl Plans {
    /// Plans a query; `ruled_out` says why solutions are not kept, if that is known.
    pub(super) fn new(
        query: &Continuous,
        figures: &Figures<'_>,
        keep: KeepSolutions,
        ruled_out: Option<NotKept>,
    ) -> Result<Self, EngineError> {
        let statistics = WindowedFigures::new(figures.graph, figures.windowed);
        let whole = query.query.plan_until(&statistics, &|| false)?;
        let always = keep == KeepSolutions::Always;
        let incremental = match (ruled_out, keep) {
            (Some(reason), _) => Err(reason),
            (None, KeepSolutions::Never) => Err(NotKept::Configured),
            (None, _) if !query.overlaps => Err(NotKept::Query(query.recomputed())),
            (None, _) if !always && whole.plan.cost <= SMALL_COST => Err(NotKept::Cost),
            (None, _) => incremental(query, figures.given, &statistics)?.and_then(|plans| {
                match always || plans.are_worth(query, &whole, figures) {
                    true => Ok(plans),
                    false => Err(NotKept::Cost),
                }
            }),
        };
        Ok(Self {
            whole,
            incremental,
            size: figures.size(query.streams.len(), 0),
        })
    }

    /// True while there is about as much as when they were made.
    pub(super) fn fit(&self, query: &Continuous, figures: &Figures<'_>) -> bool {
        figures.size(query.streams.len(), 0).is_like(&self.size)
    }

    /// True if solutions are kept unless something rules that out for now.
    pub(super) fn agree_with(&self, ruled_out: Option<NotKept>) -> bool {
        !matches!(
            (&self.incremental, ruled_out),
            (Err(NotKept::Changes | NotKept::Memory), None) | (Ok(_), Some(_))
        )
    }

    /// What is done at an instant, for people.
    pub(super) fn explain(&self) -> Result<String, EngineError> {
        let plans = match &self.incremental {
            Err(reason) => {
                let whole = self.whole.explain()?;
                return Ok(format!("recomputed at each instant: {reason}\n{whole}"));
            }
            Ok(plans) => plans,
        };
        let mut text = String::from(
            "incremental: solutions of the core are kept until the first of their tuples expires\n",
        );
        for (number, delta) in (1..).zip(&plans.deltas) {
            text += &format!("new solutions, {number} of {}:\n", plans.deltas.len());
            text += &delta.explain()?;
        }
        text += "all solutions, at the first instant and when what they read of stored graphs changes:\n";
        text += &plans.full.explain()?;
        text += "results:\n";
        text += &plans.rest.explain()?;
        Ok(text)
    }
}

fn incremental(
    query: &Continuous,
    given: u64,
    statistics: &dyn Statistics,
) -> Result<Result<IncrementalPlans, NotKept>, EngineError> {
    let incremental = match query.incremental() {
        Ok(incremental) => incremental,
        Err(reason) => return Ok(Err(NotKept::Query(*reason))),
    };
    let deltas = 0..incremental.deltas().len();
    let deltas = deltas.map(|delta| incremental.plan_delta(delta, statistics, &|| false));
    let full = incremental.plan_full(statistics, &|| false)?;
    let given = match incremental.counted() {
        Some([]) => 1,
        // How many combinations there are is not known before there are any.
        Some(_) if given > 0 => given,
        _ => given.max(full.plan.root.rows as u64),
    };
    Ok(Ok(IncrementalPlans {
        full,
        deltas: deltas.collect::<Result<_, _>>()?,
        rest: incremental.plan_rest(given, statistics, &|| false)?,
    }))
}

impl IncrementalPlans {
    fn are_worth(&self, query: &Continuous, whole: &Prepared<'_>, figures: &Figures<'_>) -> bool {
        let windows = query.streams.len() as u16;
        let read = query.incremental().iter().flat_map(Incremental::deltas);
        let deltas = self
            .deltas
            .iter()
            .zip(read)
            .filter(|(_, (window, predicate))| {
                has_tuples(
                    figures.graph,
                    figures.windowed,
                    windows + window,
                    *predicate,
                )
            });
        let deltas: f64 = deltas.map(|(delta, _)| delta.plan.cost).sum();
        whole.plan.cost > GAIN * deltas
    }
}

/// What was read of stored graphs: numbers that are others once it has changed. Merges change nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadVersions {
    /// In another one ids mean other terms.
    generation: u64,
    versions: Vec<u64>,
}

/// The version of a predicate that no quad has, whatever else changes.
const NOT_THERE: u64 = u64::MAX;

impl ReadVersions {
    pub(super) fn of(query: &jindou_plan::Incremental, graph: &StoredGraph) -> Self {
        let snapshot = &graph.snapshot;
        let (generation, SnapshotNumber(all), _) = snapshot.place();
        let mut versions = Vec::new();
        for read in query.reads() {
            let known = read.predicate.as_ref();
            let known = known.and_then(|iri| graph.predicate(iri.as_str()));
            let layers = [
                (read.default, jindou_store::LayerKind::Default),
                (read.named, jindou_store::LayerKind::Named),
            ];
            for (_, layer) in layers.into_iter().filter(|(is_read, _)| *is_read) {
                versions.push(match (known, &read.predicate) {
                    (Some(predicate), _) => snapshot.version_of(layer, predicate),
                    (None, Some(_)) => NOT_THERE,
                    (None, None) => all,
                });
            }
        }
        Self {
            generation,
            versions,
        }
    }
}
