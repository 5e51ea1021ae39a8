//! The context of a query of an empty graph, for tests of what needs no more of one.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use jindou_model::{
    Cursor, Direction, GraphRef, IdEpoch, IdRanges, Lists, Membership, Pattern, Precision,
    PredicateId, TermId, TermKind, Unavailable, Visit,
};
use jindou_plan::physical::{Form, Node, Operator as Planned, Plan, RememberedIds};
use tempfile::TempDir;

use crate::context::{CancellationToken, Context, ContextParts, Limits};
use crate::{Catalogue, GraphSource, QueryClass, SpillLimits, TermSource, Terms};

/// A graph without a quad.
pub(crate) struct Empty;

impl TermSource for Empty {
    fn epoch(&self) -> IdEpoch {
        IdEpoch(1)
    }

    fn has(&self, id: TermId) -> bool {
        // It has no keys of literals.
        id.kind() == TermKind::Vertex
    }

    fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable> {
        // Vertices sort by their numbers turned around.
        key.extend(format!("v{:08}", id.number().reverse_bits() >> 40).bytes());
        Ok(())
    }

    fn lookup(&self, _: &[u8], _: bool) -> Result<Option<TermId>, Unavailable> {
        Ok(None)
    }
}

impl Catalogue for Empty {
    fn predicate(&self, _: TermId) -> Option<PredicateId> {
        None
    }

    fn predicate_term(&self, predicate: PredicateId) -> TermId {
        TermId::vertex(predicate.0.into())
    }

    fn predicates(&self, _: GraphRef<'_>, _: &mut Vec<PredicateId>) {}

    fn predicates_of(&self, _: GraphRef<'_>, _: TermId, _: Direction, _: &mut Vec<PredicateId>) {}

    fn has_graph(&self, _: TermId) -> bool {
        false
    }

    fn graph_count(&self) -> u64 {
        0
    }

    fn graphs(&self, _: &mut Vec<TermId>) {}

    fn named_quads(&self, _: PredicateId) -> Option<u64> {
        Some(0)
    }

    fn edges(&self, _: GraphRef<'_>, _: PredicateId) -> Option<u64> {
        Some(0)
    }
}

impl GraphSource for Empty {
    fn members(
        &self,
        _: GraphRef<'_>,
        _: &[Membership],
        _: Precision,
        _: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        Ok(None)
    }

    fn expand(
        &self,
        _: GraphRef<'_>,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        _: Option<&IdRanges>,
        _: usize,
        _: &mut Vec<u32>,
        _: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        cursor.key = lists[0].keys.len();
        Ok(())
    }

    fn places(&self, _: GraphRef<'_>, _: &Lists<'_>) -> Result<u64, Unavailable> {
        Ok(0)
    }

    fn contains(
        &self,
        _: GraphRef<'_>,
        _: &Lists<'_>,
        _: &[TermId],
        _: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        Ok(())
    }

    fn degrees(
        &self,
        _: GraphRef<'_>,
        list: &Lists<'_>,
        _: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        out.resize(out.len() + list.keys.len(), 0);
        Ok(())
    }

    fn graphs_of(
        &self,
        _: &Lists<'_>,
        _: &[TermId],
        _: &mut Vec<u32>,
        _: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        Ok(())
    }

    fn for_each_match(
        &self,
        _: &Pattern,
        _: GraphRef<'_>,
        _: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        Ok(ControlFlow::Continue(()))
    }

    fn for_each_quad(
        &self,
        _: &Pattern,
        _: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        Ok(ControlFlow::Continue(()))
    }
}

/// A context, the switch that ends it, and the directory of its files.
pub(crate) struct World {
    pub(crate) cx: Arc<Context>,
    pub(crate) token: CancellationToken,
    directory: TempDir,
}

impl World {
    pub(crate) fn new(memory_bytes: u64) -> Self {
        Self::of(memory_bytes, (1, QueryClass::Light))
    }

    /// One of a query that may run on so many threads.
    pub(crate) fn of(memory_bytes: u64, (threads, class): (usize, QueryClass)) -> Self {
        let unit = Node {
            operator: Planned::Explore {
                input: None,
                steps: [].into(),
            },
            rows: 1.0,
            id: 0,
        };
        let root = Node {
            operator: Planned::Reduced {
                input: Box::new(Node {
                    operator: Planned::Distinct {
                        input: Box::new(unit),
                    },
                    rows: 1.0,
                    id: 1,
                }),
            },
            rows: 1.0,
            id: 2,
        };
        let plan = Plan {
            form: Form::Ask,
            variables: Vec::new(),
            constants: Vec::new(),
            root,
            dataset: None,
            windows: None,
            union_default_graph: false,
            reads_default_graph: false,
            base: None,
            calls_services: false,
            cost: 0.0,
            ids: 3,
            levels: 3,
            remembered: RememberedIds::default(),
        };
        let directory = tempfile::tempdir().expect("there is room");
        let token = CancellationToken::new();
        let source = Arc::new(Empty);
        let parts = ContextParts {
            source: Arc::clone(&source) as Arc<dyn GraphSource>,
            terms: Terms::new(source),
            constants: Vec::new(),
            limits: Limits {
                cancellation: token.clone(),
                started: Instant::now(),
                timeout: None,
                memory_bytes,
                account: Arc::default(),
                spill: SpillLimits::new(directory.path(), 1 << 30),
            },
            services: None,
            profile: false,
            threads,
            seed: 1,
            transport: None,
            materialized: Arc::default(),
            forks: None,
            class,
        };
        Self {
            cx: Arc::new(Context::new(&plan, parts).expect("a shallow plan")),
            token,
            directory,
        }
    }

    /// Nothing is held and nothing is on disk any more.
    pub(crate) fn assert_clean(&self) {
        assert_eq!((self.cx.held_bytes(), self.cx.space().used_bytes()), (0, 0));
        let files = self.directory.path().read_dir().expect("it is there");
        assert_eq!(files.count(), 0, "files have no names");
    }
}
