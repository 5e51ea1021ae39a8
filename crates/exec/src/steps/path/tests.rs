//! How much work is a path, and does it keep to its limits?

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jindou_model::{
    Cursor, Direction, GraphRef, IdEpoch, IdRanges, Lists, Membership, Pattern, Precision,
    PredicateId, TermId, Unavailable, Visit,
};
use jindou_plan::physical::{
    ConstId, Form, Node, Operator as Planned, PathExpression, Plan, RememberedIds, Scope, Slot, Var,
};

use super::FollowPath;
use crate::SpillLimits;
use crate::context::{CancellationToken, Context, ContextParts, Limits};
use crate::operator::Operator;
use crate::table::{BATCH_ROWS, Table};
use crate::{Catalogue, ExecError, GraphSource, TermSource, Terms};

/// The vertices from this number on are predicates.
const PREDICATES: u64 = 1 << 20;

/// A default graph of vertices, which counts the edges that it shows.
pub(super) struct Toy {
    edges: BTreeMap<(u8, PredicateId, TermId), Vec<u64>>,
    predicates: u32,
    shown: AtomicU64,
}

pub(super) fn vertex(number: u64) -> TermId {
    TermId::vertex(number)
}

impl Toy {
    /// Edges: subject, predicate, object.
    fn new(triples: impl IntoIterator<Item = (u64, u32, u64)>) -> Self {
        let mut edges: BTreeMap<(u8, PredicateId, TermId), Vec<u64>> = BTreeMap::new();
        let mut predicates = 0;
        for (subject, predicate, object) in triples {
            predicates = predicates.max(predicate + 1);
            let (subject, object) = (vertex(subject), vertex(object));
            let predicate = PredicateId(predicate);
            for (direction, key, to) in [
                (Direction::Out, subject, object),
                (Direction::In, object, subject),
            ] {
                let list = edges.entry((direction as u8, predicate, key)).or_default();
                list.push(to.raw());
                list.sort_unstable();
            }
        }
        Self {
            edges,
            predicates,
            shown: AtomicU64::new(0),
        }
    }

    pub(super) fn shown(&self) -> u64 {
        self.shown.swap(0, Ordering::Relaxed)
    }
}

impl TermSource for Toy {
    fn epoch(&self) -> IdEpoch {
        IdEpoch(1)
    }

    fn has(&self, _: TermId) -> bool {
        true
    }

    fn push_key(&self, id: TermId, _: &mut Vec<u8>) -> Result<(), Unavailable> {
        panic!("nobody asks for the term of {id:?}");
    }

    fn lookup(&self, _: &[u8], _: bool) -> Result<Option<TermId>, Unavailable> {
        Ok(None)
    }
}

impl Toy {
    fn list(&self, list: &Lists<'_>, key: TermId) -> &[u64] {
        let edges = self.edges.get(&(list.direction as u8, list.predicate, key));
        edges.map_or(&[], |list| list)
    }
}

impl Catalogue for Toy {
    fn predicate(&self, term: TermId) -> Option<PredicateId> {
        let number = term.number().checked_sub(PREDICATES)?;
        Some(PredicateId(number as u32))
    }

    fn predicate_term(&self, predicate: PredicateId) -> TermId {
        TermId::vertex(PREDICATES + u64::from(predicate.0))
    }

    fn predicates(&self, _: GraphRef<'_>, out: &mut Vec<PredicateId>) {
        out.extend((0..self.predicates).map(PredicateId));
    }

    fn predicates_of(&self, _: GraphRef<'_>, _: TermId, _: Direction, _: &mut Vec<PredicateId>) {
        panic!("a path asks for no predicates");
    }

    fn has_graph(&self, _: TermId) -> bool {
        false
    }

    fn graph_count(&self) -> u64 {
        0
    }

    fn graphs(&self, _: &mut Vec<TermId>) {}

    fn named_quads(&self, _: PredicateId) -> Option<u64> {
        panic!("a path counts no quads");
    }

    fn edges(&self, _: GraphRef<'_>, predicate: PredicateId) -> Option<u64> {
        let of_predicate = |(key, _): &(&(u8, PredicateId, TermId), &Vec<u64>)| {
            (key.0, key.1) == (Direction::Out as u8, predicate)
        };
        let lists = self.edges.iter().filter(of_predicate);
        Some(lists.map(|(_, list)| list.len() as u64).sum())
    }
}

impl GraphSource for Toy {
    fn members(
        &self,
        _: GraphRef<'_>,
        memberships: &[Membership],
        _: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        assert_eq!(within, None, "a path asks for all");
        let [Membership::Has(predicate, direction)] = memberships else {
            panic!("a path asks for one edge");
        };
        let keys: BTreeSet<TermId> = self
            .edges
            .keys()
            .filter(|(d, p, _)| *d == *direction as u8 && p == predicate)
            .map(|(_, _, key)| *key)
            .collect();
        let mut ids = IdRanges::new();
        for key in keys {
            ids.push(key, TermId::from_raw(key.raw() + 1));
        }
        Ok(Some(ids))
    }

    fn expand(
        &self,
        _: GraphRef<'_>,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        assert!(allowed.is_none(), "a path filters nothing");
        let [asked] = lists else {
            panic!("a path intersects nothing");
        };
        while cursor.key < asked.keys.len() && out.len() < budget {
            let list = self.list(asked, asked.keys[cursor.key]);
            let before = out.len();
            let rest = list.iter().skip(cursor.offset).take(budget - before);
            out.extend(rest.map(|raw| TermId::from_raw(*raw)));
            cursor.offset += out.len() - before;
            rows.resize(out.len(), cursor.key as u32);
            let shown = (out.len() - before) as u64;
            self.shown.fetch_add(shown, Ordering::Relaxed);
            if cursor.offset >= list.len() {
                *cursor = Cursor {
                    key: cursor.key + 1,
                    offset: 0,
                };
            }
        }
        Ok(())
    }

    fn places(&self, _: GraphRef<'_>, _: &Lists<'_>) -> Result<u64, Unavailable> {
        panic!("a path is not shared out");
    }

    fn contains(
        &self,
        _: GraphRef<'_>,
        _: &Lists<'_>,
        _: &[TermId],
        _: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        panic!("a path checks nothing");
    }

    fn degrees(
        &self,
        _: GraphRef<'_>,
        _: &Lists<'_>,
        _: Option<&IdRanges>,
        _: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        panic!("a path counts nothing");
    }

    fn graphs_of(
        &self,
        _: &Lists<'_>,
        _: &[TermId],
        _: &mut Vec<u32>,
        _: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        panic!("a path lies in one graph");
    }

    fn for_each_match(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        assert_eq!(graph, GraphRef::Default);
        for ((direction, predicate, subject), objects) in &self.edges {
            let is_asked = *direction == Direction::Out as u8
                && pattern.subject.is_none_or(|asked| asked == *subject)
                && pattern.predicate.is_none_or(|asked| asked == *predicate);
            for object in objects.iter().map(|raw| TermId::from_raw(*raw)) {
                let fits = is_asked && pattern.object.is_none_or(|asked| asked == object);
                if fits && visit(*subject, *predicate, object, TermId::NONE).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn for_each_quad(
        &self,
        _: &Pattern,
        _: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        panic!("a path lies in one graph");
    }
}

/// Hands over tables made before.
pub(super) struct Given(pub(super) Vec<Table>);

impl Operator for Given {
    fn produce(&mut self, _: &Context) -> Result<Option<Table>, ExecError> {
        Ok(self.0.pop())
    }
}

pub(super) const X: Slot = Slot::Var(Var(0));
pub(super) const Y: Slot = Slot::Var(Var(1));

/// The first constants are the predicates, behind them vertices.
pub(super) fn predicate(number: u16) -> PathExpression {
    PathExpression::Edge(ConstId(number), Direction::Out)
}

fn constant(vertex: u16) -> Slot {
    Slot::Const(ConstId(8 + vertex))
}

pub(super) fn star(inner: PathExpression) -> PathExpression {
    PathExpression::ZeroOrMore(Box::new(inner))
}

pub(super) fn plus(inner: PathExpression) -> PathExpression {
    PathExpression::OneOrMore(Box::new(inner))
}

pub(super) struct World {
    pub(super) toy: Arc<Toy>,
    limits: Limits,
}

impl World {
    pub(super) fn new(triples: impl IntoIterator<Item = (u64, u32, u64)>) -> Self {
        Self {
            toy: Arc::new(Toy::new(triples)),
            limits: Limits {
                cancellation: CancellationToken::new(),
                started: Instant::now(),
                timeout: None,
                memory_bytes: 1 << 30,
                spill: SpillLimits::off(),
                account: Arc::default(),
            },
        }
    }

    pub(super) fn context(&self) -> Context {
        let plan = Plan {
            form: Form::Ask,
            variables: vec!["x".to_owned(), "y".to_owned()],
            constants: Vec::new(),
            root: Node {
                operator: Planned::Explore {
                    input: None,
                    steps: [].into(),
                },
                rows: 1.0,
                id: 0,
            },
            dataset: None,
            windows: None,
            union_default_graph: false,
            reads_default_graph: false,
            base: None,
            calls_services: false,
            cost: 0.0,
            ids: 1,
            levels: 1,
            remembered: RememberedIds::default(),
        };
        let predicates = (0..8).map(|number| vertex(PREDICATES + number));
        let parts = ContextParts {
            source: Arc::clone(&self.toy) as Arc<dyn GraphSource>,
            terms: Terms::new(Arc::clone(&self.toy) as Arc<dyn TermSource>),
            constants: predicates.chain((0..100).map(vertex)).collect(),
            limits: Limits {
                started: Instant::now(),
                account: Arc::default(),
                ..self.limits.clone()
            },
            services: None,
            profile: false,
            threads: 1,
            seed: 1,
            transport: None,
            materialized: std::sync::Arc::default(),
            forks: None,
            class: crate::QueryClass::Light,
        };
        Context::new(&plan, parts).expect("a shallow plan")
    }

    /// Rows of a path whose subject or object may have these columns.
    pub(super) fn rows(
        &self,
        ends: [Slot; 2],
        path: &PathExpression,
        columns: &[(u16, Vec<u64>)],
    ) -> Result<Vec<(u64, u64)>, ExecError> {
        let mut table = match columns.first() {
            Some((_, column)) => Table::with_rows(2, column.len()),
            None => Table::unit(2),
        };
        for (var, column) in columns {
            table.set(Var(*var), column.iter().copied().map(vertex).collect());
        }
        let cx = self.context();
        let keep = [Var(0), Var(1)].into_iter().collect();
        let input = Box::new(Given(vec![table]));
        let mut step = FollowPath::new(input, ends, path, Scope::Default, keep, &cx);
        let mut rows = Vec::new();
        while let Some(table) = step.next(&cx)? {
            assert!(table.rows() <= BATCH_ROWS, "a table of {}", table.rows());
            rows.extend((0..table.rows()).map(|row| {
                let number = |slot| cx.slot(slot, &table, row).number();
                (number(ends[0]), number(ends[1]))
            }));
        }
        rows.sort_unstable();
        Ok(rows)
    }
}

/// Every vertex to the three behind it, and back to the first: `3 * vertices` edges.
fn dense(vertices: u64) -> Vec<(u64, u32, u64)> {
    let mut triples = Vec::new();
    for from in 0..vertices {
        triples.extend((1..=3).map(|step| (from, 0, (from + step) % vertices)));
    }
    triples
}

#[test]
fn a_closure_from_one_vertex_follows_each_edge_once() {
    let world = World::new(dense(5000));
    let all: Vec<u64> = (0..5000).collect();
    for path in [
        star(predicate(0)),
        plus(predicate(0)),
        star(star(predicate(0))),
        plus(plus(predicate(0))),
        star(PathExpression::ZeroOrOne(Box::new(predicate(0)))),
    ] {
        let rows = world.rows([constant(7), Y], &path, &[]).expect("an answer");
        assert_eq!(rows.iter().map(|(_, y)| *y).collect::<Vec<_>>(), all);
        assert_eq!(world.toy.shown(), 15_000, "{path:?}");
        let rows = world.rows([X, constant(7)], &path, &[]).expect("an answer");
        assert_eq!(rows.iter().map(|(x, _)| *x).collect::<Vec<_>>(), all);
        assert_eq!(world.toy.shown(), 15_000, "{path:?}");
    }
}

#[test]
fn rows_with_the_same_source_share_one_search() {
    let world = World::new(dense(1000));
    let sources: Vec<u64> = (0..300).map(|row| row % 3).collect();
    let rows = world
        .rows([X, Y], &plus(predicate(0)), &[(0, sources)])
        .expect("an answer");
    assert_eq!(rows.len(), 300 * 1000);
    // One search follows all edges, and a closure does for all other sources.
    assert_eq!(world.toy.shown(), 2 * 3000);
}

#[test]
fn a_constant_end_is_searched_once_for_all_rows() {
    // A chain: each vertex leads to the next.
    let world = World::new((0..2000).map(|from| (from, 0, from + 1)));
    let sources: Vec<u64> = (0..2000).rev().collect();
    let path = star(predicate(0));
    let rows = world
        .rows([X, constant(90)], &path, &[(0, sources)])
        .expect("an answer");
    assert_eq!(rows.len(), 91);
    // From the constant at most 90 edges lead back; a row goes as far only while it is asked.
    let shown = world.toy.shown();
    assert!(shown <= 4 * 90, "{shown} edges");
}

#[test]
fn two_known_ends_cost_what_the_cheaper_end_costs() {
    // From vertex 0 everything is reached, to vertex 50 leads one edge only.
    let mut triples = dense(4000);
    triples.push((9000, 0, 50_000));
    triples.push((0, 0, 9000));
    let world = World::new(triples);
    let path = plus(predicate(0));
    let rows = world
        .rows([X, Y], &path, &[(0, vec![9000]), (1, vec![0])])
        .expect("an answer");
    assert_eq!(rows, []);
    let shown = world.toy.shown();
    assert!(shown < 100, "{shown} edges");
}

#[test]
fn pairs_of_unbound_ends_are_each_found_once() {
    let world = World::new(dense(60).into_iter().chain([(100, 1, 101), (101, 1, 100)]));
    let both = PathExpression::Alternative(Box::new([predicate(0), predicate(1)]));
    let rows = world.rows([X, Y], &star(both.clone()), &[]).expect("rows");
    assert_eq!(rows.len(), 60 * 60 + 4);
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len());
    let loops = world.rows([X, X], &plus(both), &[]).expect("rows");
    assert_eq!(loops.len(), 62);
    // `+` of one predicate starts from that predicate's subjects alone.
    world.toy.shown();
    let rows = world.rows([X, Y], &plus(predicate(1)), &[]).expect("rows");
    assert_eq!(rows, [(100, 100), (100, 101), (101, 100), (101, 101)]);
    assert_eq!(world.toy.shown(), 4);
}

#[test]
fn a_search_keeps_to_the_limits_of_its_query() {
    let mut world = World::new(dense(20_000));
    world.limits.memory_bytes = 50_000;
    let path = star(predicate(0));
    let error = world.rows([constant(0), Y], &path, &[]);
    assert!(matches!(error, Err(ExecError::Memory { .. })), "{error:?}");
    world.limits.memory_bytes = 1 << 30;
    world.limits.timeout = Some(Duration::ZERO);
    let error = world.rows([X, Y], &path, &[]);
    assert!(matches!(error, Err(ExecError::Timeout { .. })), "{error:?}");
    world.limits.timeout = None;
    world.limits.cancellation.cancel();
    let error = world.rows([X, Y], &path, &[]);
    assert!(matches!(error, Err(ExecError::Cancelled)), "{error:?}");
}

#[test]
fn kept_searches_give_way_where_memory_is_short() {
    let mut world = World::new((0..4000).map(|from| (from, 0, from + 1)));
    world.limits.memory_bytes = 3_000_000;
    let sources: Vec<u64> = (3000..3900).collect();
    let rows = world
        .rows([X, Y], &plus(predicate(0)), &[(0, sources.clone())])
        .expect("searches that are not needed any more are dropped");
    let wanted: u64 = sources.iter().map(|from| 4000 - from).sum();
    assert_eq!(rows.len() as u64, wanted);
}

/// Three edges from each vertex, to whichever, of two predicates.
pub(super) fn scattered(vertices: u64) -> Vec<(u64, u32, u64)> {
    let mut state = 7_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % vertices
    };
    let edges = (0..3 * vertices).map(|edge| (edge / 3, (edge % 2) as u32, next()));
    let distinct: BTreeSet<(u64, u32, u64)> = edges.collect();
    distinct.into_iter().collect()
}

#[test]
fn a_search_from_many_starts_finds_what_one_from_each_finds() {
    let mut world = World::new(scattered(700));
    let all: Vec<u64> = (0..700).collect();
    let sequence = PathExpression::Sequence(Box::new([predicate(0), star(predicate(1))]));
    let either = PathExpression::Alternative(Box::new([predicate(0), predicate(1)]));
    for path in [plus(predicate(0)), star(either), plus(sequence)] {
        // As much memory as the search from many wants, and too little for it.
        for memory_bytes in [1 << 30, 400_000] {
            world.limits.memory_bytes = 1 << 30;
            let from_each = all.iter().map(|start| {
                let rows = world.rows([X, Y], &path, &[(0, vec![*start])]);
                rows.expect("rows")
            });
            let one_by_one: Vec<(u64, u64)> = from_each.flatten().collect();
            let from_all = world.rows([X, Y], &path, &[(0, all.clone())]);
            assert_eq!(from_all.expect("rows"), one_by_one, "{path:?}");
            world.limits.memory_bytes = memory_bytes;
            let together = world.rows([X, Y], &path, &[]).expect("rows");
            assert_eq!(together, one_by_one, "{path:?}");
            let loops: Vec<(u64, u64)> = together.into_iter().filter(|(x, y)| x == y).collect();
            let found = world.rows([X, X], &path, &[]).expect("rows");
            assert_eq!(found, loops, "{path:?}");
        }
    }
}

#[test]
fn a_closure_of_all_follows_an_edge_once_a_level_and_not_once_a_start() {
    let triples = scattered(1000);
    let edges = triples.len() as u64;
    let world = World::new(triples);
    let both = PathExpression::Alternative(Box::new([predicate(0), predicate(1)]));
    let rows = world.rows([X, Y], &plus(both), &[]).expect("rows");
    assert!(rows.len() > 500 * 1000, "{} pairs", rows.len());
    let shown = world.toy.shown();
    assert!(shown < 100 * edges, "{shown} edges shown of {edges}");
}

#[test]
fn an_edge_or_nothing_gives_each_end_once_and_itself_where_it_is_in_the_graph() {
    let world = World::new([(1, 0, 2), (1, 0, 3), (4, 0, 4), (4, 0, 1), (5, 1, 6)]);
    let path = PathExpression::ZeroOrOne(Box::new(predicate(0)));
    // Vertex 9 is in no edge.
    let rows = world.rows([X, Y], &path, &[(0, vec![4, 1, 9, 5, 1])]);
    let wanted = [
        (1, 1),
        (1, 1),
        (1, 2),
        (1, 2),
        (1, 3),
        (1, 3),
        (4, 1),
        (4, 4),
        (5, 5),
    ];
    assert_eq!(rows.expect("rows"), wanted);
    let rows = world.rows([X, Y], &path, &[(1, vec![4, 1, 9])]);
    assert_eq!(rows.expect("rows"), [(1, 1), (4, 1), (4, 4)]);
    let rows = world.rows([X, X], &path, &[(0, vec![4, 9])]);
    assert_eq!(rows.expect("rows"), [(4, 4)]);
}

#[test]
fn pairs_that_nobody_looks_at_are_only_counted() {
    let world = World::new(scattered(700));
    let cx = world.context();
    let path = plus(predicate(0));
    let pairs = world.rows([X, Y], &path, &[]).expect("rows").len() as u64;
    let input = Box::new(Given(vec![Table::unit(2)]));
    let keep = crate::table::VarSet::default();
    let step = FollowPath::new(input, [X, Y], &path, Scope::Default, keep, &cx);
    let mut step = step.counted();
    let (mut counted, mut rows) = (0, 0);
    while let Some(table) = step.next(&cx).expect("rows") {
        counted += table.counted_rows();
        rows += table.rows() as u64;
    }
    assert_eq!(counted, pairs);
    assert!(rows < pairs / 10, "{rows} rows for {pairs} pairs");
}
