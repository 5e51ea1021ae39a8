//! What does a continuous query say, and how is it planned over its windows?
//!
//! Windows are graphs: a pattern in a window is a pattern in the graph of [`Constant::Window`], and
//! windows of the default graph are merged with what the dataset has there. Everything else is as in
//! any other query.
//!
//! [`Constant::Window`]: crate::physical::Constant::Window

use std::sync::Arc;

pub use jindou_syntax::continuous::Output;
use jindou_syntax::continuous::{
    self as parsed, BareName, CatalogueName, Registration, RegistrationKind, WindowRole,
};
use jindou_syntax::parse_continuous as parse;
use jindou_syntax::tree::{Group, Iri, Name};
use oxrdf::NamedNode;

use crate::algebra::{LogicalForm, Pattern, Query};
use crate::arguments::Arguments;
use crate::build::build;
use crate::convert::{Converted, Converter, Scoped, node};
use crate::convert_group::join;
use crate::error::PlanError;
use crate::limits::Limits;
use crate::patience::Patience;
use crate::physical::{ConstId, Constant, Dataset, Scope, Slot, Var, Windows};
use crate::planner::{MAX_KEPT_TEXT_BYTES, without_arguments};
use crate::prepared::Prepared;
use crate::statistics::Statistics;

/// A continuous query, with its pattern converted.
#[derive(Clone, Debug, PartialEq)]
pub struct ContinuousQuery {
    /// What its header calls it: an IRI, or a bare name as it is written.
    pub name: Option<String>,
    /// Its results are a stream that others may read.
    pub publishes: bool,
    /// How often it is evaluated, in milliseconds, where it says so.
    pub every_ms: Option<u64>,
    /// Which results are given each time, where it says so.
    pub output: Option<Output>,
    /// Its windows, by number.
    pub windows: Vec<StreamWindow>,
    query: Arc<Query>,
}

/// A window of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamWindow {
    /// Its own name, or else that of its stream.
    pub name: NamedNode,
    /// The IRI of the stream.
    pub stream: NamedNode,
    /// What it holds.
    pub extent: Extent,
}

/// What a window holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What came in the last so many milliseconds.
    Time {
        /// How long it is.
        range_ms: u64,
        /// How far it slides each time, where it says so.
        step_ms: Option<u64>,
    },
    /// The last so many triples.
    Count {
        /// How many.
        triples: u64,
        /// How many come between two slides, where it says so.
        step: Option<u64>,
    },
}

/// What bare names stand for: those of streams and of stored graphs.
pub type Resolve<'r> = dyn Fn(&str) -> Option<NamedNode> + 'r;

/// Parses a continuous query and converts its pattern, which is when everything that is not supported
/// is refused.
///
/// # Errors
/// What is wrong with the text; [`PlanError::Unsupported`] by name;
/// [`PlanError::UnknownName`] where `resolve` does not know a bare name.
pub fn parse_continuous(
    text: &str,
    base: Option<&str>,
    resolve: &Resolve<'_>,
    union_default_graph: bool,
    limits: Limits<'_>,
) -> Result<ContinuousQuery, PlanError> {
    if text.len() > MAX_KEPT_TEXT_BYTES {
        return Err(PlanError::TooLarge {
            what: "bytes of text",
            limit: MAX_KEPT_TEXT_BYTES,
        });
    }
    let is_over = limits.is_over;
    let registration = limits.parse(text, base, parse, |_| text.len())?;
    let patience = Patience::new(is_over);
    let base = registration.query.base.as_deref();
    let mut converter = Converter::new(text, base, Arguments::none(), &patience);
    let windows = converter.declare(&registration, resolve)?;
    let bare = |names: &[BareName<'_>]| {
        let iris = names.iter().map(|name| resolved(text, resolve, *name));
        iris.collect::<Result<Vec<_>, _>>()
    };
    let default_graphs = bare(&registration.graphs.default)?;
    let named_graphs = bare(&registration.graphs.named)?;
    let Converted { mut query, .. } = converter.query(&registration.query)?;
    let has_default = query
        .windows
        .iter()
        .any(|windows| !windows.default.is_empty());
    if has_default || !default_graphs.is_empty() || !named_graphs.is_empty() {
        let dataset = query.dataset.get_or_insert_with(Dataset::default);
        dataset.default.extend(default_graphs);
        dataset.named.extend(named_graphs);
    }
    query.union_default_graph = union_default_graph;
    Ok(ContinuousQuery {
        name: registration.name.as_ref().map(|name| match name {
            CatalogueName::Iri(iri) => iri.value.clone().into_owned(),
            CatalogueName::Bare(bare) => bare.name.to_owned(),
        }),
        publishes: registration.kind == RegistrationKind::Stream,
        every_ms: registration.every.map(|every| every.ms),
        output: registration.output,
        windows,
        query: Arc::new(query),
    })
}

impl ContinuousQuery {
    /// The plan over windows and stored graphs of these figures.
    ///
    /// # Errors
    /// [`PlanError::Interrupted`], [`PlanError::TooLarge`].
    pub fn plan_until(
        &self,
        statistics: &dyn Statistics,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Prepared<'static>, PlanError> {
        let patience = Patience::new(is_over);
        let plan = build(Query::clone(&self.query), statistics, &patience)?;
        Ok(without_arguments(Arc::new(plan), ""))
    }

    pub(crate) fn logical(&self) -> &Query {
        &self.query
    }

    /// The variables of its rows, without their question marks; `None` if it is no SELECT.
    #[must_use]
    pub fn variables(&self) -> Option<Vec<String>> {
        let LogicalForm::Select(selected) = &self.query.form else {
            return None;
        };
        let name = |var: &Var| self.query.variables[var.index()].clone();
        Some(selected.iter().map(name).collect())
    }

    /// True if its results are booleans.
    #[must_use]
    pub fn is_ask(&self) -> bool {
        matches!(self.query.form, LogicalForm::Ask)
    }

    /// True if its results are triples.
    #[must_use]
    pub fn is_construct(&self) -> bool {
        matches!(self.query.form, LogicalForm::Construct(_))
    }

    /// True if it asks when triples of its windows came.
    #[must_use]
    pub fn reads_times(&self) -> bool {
        self.query.reads_times
    }

    /// The windows that are in the default graph, by their numbers.
    #[must_use]
    pub fn default_windows(&self) -> &[u16] {
        let windows = self.query.windows.as_ref();
        windows.map_or(&[], |windows| &windows.default)
    }
}

fn resolved(text: &str, resolve: &Resolve<'_>, bare: BareName<'_>) -> Result<NamedNode, PlanError> {
    resolve(bare.name).ok_or_else(|| PlanError::unknown_name(bare.name, text, bare.span))
}

/// What names in patterns stand for.
#[derive(Default)]
pub(crate) struct Declared<'t> {
    windows: Vec<DeclaredWindow<'t>>,
    /// Bare names of stored graphs.
    graphs: Vec<(&'t str, NamedNode)>,
}

impl Declared<'_> {
    pub(crate) fn has_windows(&self) -> bool {
        !self.windows.is_empty()
    }
}

struct DeclaredWindow<'t> {
    id: ConstId,
    /// What WINDOW calls it.
    name: Option<String>,
    /// What GRAPH calls it.
    graph: Option<NamedNode>,
    bare: Option<&'t str>,
}

impl<'t> Converter<'t> {
    /// Notes the windows of a continuous query, and says what they are.
    fn declare(
        &mut self,
        registration: &Registration<'t>,
        resolve: &Resolve<'_>,
    ) -> Result<Vec<StreamWindow>, PlanError> {
        let mut declared = Declared::default();
        let mut windows = Windows::default();
        let mut found = Vec::with_capacity(registration.windows.len());
        for (number, window) in (0_u16..).zip(&registration.windows) {
            let (stream, bare) = match &window.stream {
                CatalogueName::Iri(iri) => (node(iri), None),
                CatalogueName::Bare(bare) => {
                    (resolved(self.text(), resolve, *bare)?, Some(bare.name))
                }
            };
            let own = match &window.role {
                WindowRole::Named(iri) => Some(node(iri)),
                WindowRole::Default | WindowRole::Graph | WindowRole::DefaultAndGraph => None,
            };
            let name = own.clone().unwrap_or_else(|| stream.clone());
            let id = self.window_constant(number, &name)?;
            if matches!(
                window.role,
                WindowRole::Default | WindowRole::DefaultAndGraph
            ) {
                windows.default.push(number);
            }
            let is_graph = matches!(window.role, WindowRole::Graph | WindowRole::DefaultAndGraph);
            let graph = is_graph.then(|| stream.clone());
            if graph.is_some() && declared.windows.iter().any(|other| other.graph == graph) {
                let feature = "two windows of a stream as the same graph (FROM NAMED WINDOW gives \
                               each a name of its own)";
                return Err(self.unsupported(window.span, feature));
            }
            declared.windows.push(DeclaredWindow {
                id,
                name: own.map(NamedNode::into_string),
                graph,
                bare: bare.filter(|_| is_graph),
            });
            found.push(StreamWindow {
                name,
                stream,
                extent: extent(window.extent),
            });
        }
        for bare in registration
            .graphs
            .default
            .iter()
            .chain(&registration.graphs.named)
        {
            let graph = resolved(self.text(), resolve, *bare)?;
            declared.graphs.push((bare.name, graph));
        }
        self.set_declared(declared, windows);
        Ok(found)
    }

    /// GRAPH with an IRI, where a window of a stream has it; else the graph is noted as one that is
    /// read.
    pub(crate) fn window_graph(&mut self, iri: &Iri<'t>) -> Option<ConstId> {
        let declared = self.declared()?;
        let is_it = |window: &&DeclaredWindow<'_>| {
            let graph = window.graph.as_ref();
            graph.is_some_and(|graph| graph.as_str() == iri.value)
        };
        let window = declared.windows.iter().find(is_it).map(|window| window.id);
        if window.is_none() {
            self.note_read_graph(node(iri));
        }
        window
    }

    /// GRAPH with a bare name.
    pub(crate) fn bare_graph(
        &mut self,
        name: BareName<'t>,
        group: &Group<'t>,
    ) -> Result<Scoped, PlanError> {
        let Some(declared) = self.declared() else {
            return Err(self.unsupported(name.span, "bare names of graphs"));
        };
        let mut windows = declared.windows.iter();
        let window = windows.find(|window| window.bare == Some(name.name));
        let id = match window.map(|window| window.id) {
            Some(window) => window,
            None => {
                let mut graphs = declared.graphs.iter();
                let known = graphs.find(|(bare, _)| *bare == name.name);
                let Some((_, graph)) = known.cloned() else {
                    return Err(PlanError::unknown_name(name.name, self.text(), name.span));
                };
                self.note_read_graph(graph.clone());
                self.fixed(graph.into())?
            }
        };
        self.in_graph_of(id, group)
    }

    /// WINDOW.
    pub(crate) fn window(
        &mut self,
        name: &Name<'t>,
        group: &Group<'t>,
    ) -> Result<Scoped, PlanError> {
        let (span, iri) = match name {
            Name::Variable(variable) => (variable.span, None),
            Name::Iri(iri) => (iri.span, Some(iri)),
        };
        let Some(declared) = self.declared() else {
            return Err(self.unsupported(span, "windows of streams"));
        };
        let Some(iri) = iri else {
            let windows = declared.windows.iter();
            let named = windows.filter_map(|window| Some((window.id, window.name.clone()?)));
            let named = named.map(|(id, name)| (id, NamedNode::new_unchecked(name)));
            let named: Vec<(ConstId, NamedNode)> = named.collect();
            return Scoped::union(self.in_each_window(name, &named, group)?);
        };
        let is_it = |window: &&DeclaredWindow<'_>| window.name.as_deref() == Some(&*iri.value);
        let window = declared.windows.iter().find(is_it).map(|window| window.id);
        let id = window.expect("the parser knows the names of windows");
        self.in_graph_of(id, group)
    }

    pub(crate) fn in_graph_of(
        &mut self,
        id: ConstId,
        group: &Group<'t>,
    ) -> Result<Scoped, PlanError> {
        let scope = Scope::Graph(Slot::Const(id));
        let inner = self.group(group, scope)?.in_graph(scope);
        Ok(Scoped {
            in_graph: false,
            ..inner
        })
    }

    /// What GRAPH with a variable finds in windows of streams that are graphs.
    pub(crate) fn in_window_graphs(
        &mut self,
        name: &Name<'t>,
        group: &Group<'t>,
    ) -> Result<Vec<Scoped>, PlanError> {
        let windows = self
            .declared()
            .into_iter()
            .flat_map(|declared| &declared.windows);
        let graphs = windows.filter_map(|window| Some((window.id, window.graph.clone()?)));
        let graphs: Vec<(ConstId, NamedNode)> = graphs.collect();
        self.in_each_window(name, &graphs, group)
    }

    /// A pattern in each of some windows, whose name a variable has then.
    fn in_each_window(
        &mut self,
        name: &Name<'t>,
        windows: &[(ConstId, NamedNode)],
        group: &Group<'t>,
    ) -> Result<Vec<Scoped>, PlanError> {
        let mut branches = Vec::with_capacity(windows.len());
        for (window, iri) in windows {
            let inner = self.in_graph_of(*window, group)?;
            let Slot::Var(var) = self.name(name)? else {
                unreachable!("only variables range over windows");
            };
            let iri = self.fixed(iri.clone().into())?;
            let values = Pattern::Values {
                vars: vec![var],
                rows: vec![vec![Some(iri)]],
            };
            branches.push(join(inner, Scoped::leaf(values, false))?);
        }
        Ok(branches)
    }

    fn window_constant(&mut self, number: u16, name: &NamedNode) -> Result<ConstId, PlanError> {
        self.push(Constant::Window {
            number,
            name: name.clone(),
        })
    }
}

fn extent(extent: parsed::Extent) -> Extent {
    match extent {
        parsed::Extent::Time { range, step } => Extent::Time {
            range_ms: range.ms,
            step_ms: step.map(|step| step.ms),
        },
        parsed::Extent::Tumbling { range } => Extent::Time {
            range_ms: range.ms,
            step_ms: Some(range.ms),
        },
        parsed::Extent::Count { triples, step } => Extent::Count { triples, step },
    }
}
