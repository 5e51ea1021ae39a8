//! Do the steps of plans of random queries come back from bytes as they went?
//!
//! `JINDOU_SEED` sets the first seed, `JINDOU_CASES` the number of cases.

use jindou_conformance::cases::setting;
use jindou_conformance::random::Random;
use jindou_conformance::random_data::Profile;
use jindou_conformance::random_query;
use jindou_model::{Direction, GraphRef, PredicateId, TermId};
use jindou_plan::physical::{Outcome, PlannedStep, Step};
use jindou_plan::{Membership, SegmentStatistics, Statistics, decode_steps, encode_steps, plan};
use oxrdf::TermRef;

const DEFAULT_SEED: u64 = 1;
const DEFAULT_CASES: u64 = 300;

/// Data of which each predicate has as many edges as its number is high.
struct Uneven;

impl Statistics for Uneven {
    fn triples(&self, _: GraphRef<'_>) -> u64 {
        10_000
    }

    fn named_quads(&self) -> u64 {
        1_000
    }

    fn named_graphs(&self) -> u64 {
        3
    }

    fn vertices(&self) -> u64 {
        5_000
    }

    fn predicates(&self) -> u32 {
        256
    }

    fn term(&self, term: TermRef<'_>) -> Option<TermId> {
        let sum = term.to_string().bytes().map(u64::from).sum();
        Some(TermId::vertex(sum))
    }

    fn predicate(&self, iri: &str) -> Option<PredicateId> {
        let last = iri.bytes().last().unwrap_or_default();
        Some(PredicateId(last.into()))
    }

    fn segment(&self, _: GraphRef<'_>, predicate: PredicateId, _: Direction) -> SegmentStatistics {
        let edges = u64::from(predicate.0) * 10;
        SegmentStatistics {
            edges,
            keys: edges / 2,
        }
    }

    fn vertices_with(&self, _: GraphRef<'_>, memberships: &[Membership]) -> f64 {
        1000.0 / (1.0 + memberships.len() as f64)
    }

    fn edges_from(
        &self,
        _: GraphRef<'_>,
        predicate: PredicateId,
        _: Direction,
        memberships: &[Membership],
    ) -> f64 {
        f64::from(predicate.0) / (1.0 + memberships.len() as f64)
    }

    fn edges_between(
        &self,
        _: GraphRef<'_>,
        _: PredicateId,
        _: &[Membership],
        _: &[Membership],
    ) -> Option<f64> {
        None
    }

    fn degree(&self, _: GraphRef<'_>, predicate: PredicateId, _: Direction, _: TermId) -> u64 {
        u64::from(predicate.0) % 7
    }

    fn is_member(&self, _: GraphRef<'_>, vertex: TermId, _: Membership) -> bool {
        vertex.raw().is_multiple_of(2)
    }
}

#[test]
fn plans_of_random_queries_come_back_as_they_went() {
    let first = setting("JINDOU_SEED", DEFAULT_SEED);
    let mut bytes_of_all = 0;
    for seed in first..first + setting("JINDOU_CASES", DEFAULT_CASES) {
        let mut random = Random::new(seed);
        let profile = Profile {
            blanks: false,
            other_spellings: false,
            ..Profile::random(&mut random)
        };
        let text = random_query::bold_query(&mut random, profile).to_string();
        let plan = plan(&text, None, None, &Uneven)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let step = Step::ExistsGiven {
            node: Box::new(plan.root.clone()),
            all_bound: None,
            given: Vec::new(),
            outcome: Outcome::Keep,
        };
        let (rows, id) = (1.0, 0);
        let steps = [PlannedStep { step, rows, id }];
        let bytes = encode_steps(&steps, plan.sizes(), plan.stack()).expect("it is a plan");
        bytes_of_all += bytes.len();
        let decoded =
            decode_steps(&bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        assert!(*decoded == steps, "seed {seed}: {text}");
        // A part of them is none.
        let end = random.below(bytes.len());
        assert!(
            decode_steps(&bytes[..end]).is_err(),
            "seed {seed}: {end} bytes of\n{text}"
        );
    }
    println!("{bytes_of_all} bytes");
}
