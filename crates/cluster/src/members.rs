//! Which ids have these types and predicates?
//!
//! Of vertices every machine knows it. Of literals and values, which are in no characteristic set, the
//! shards know it: each for those that it owns.

use jindou_model::{
    Direction, GraphRef, IdRanges, Membership, Precision, PredicateId, TermId, TermKind,
    Unavailable,
};

use crate::Sharded;
use crate::ask::worse;

impl Sharded {
    /// As [`jindou_exec::GraphSource::members`].
    pub(crate) fn members_of(
        &self,
        graph: GraphRef<'_>,
        traits: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        let is_type = |asked: &Membership| matches!(asked, Membership::Type(_));
        let is_some = matches!(graph, GraphRef::One(_) | GraphRef::Some(_));
        if is_some && !traits.iter().any(is_type) {
            return match traits.first() {
                Some(Membership::Has(_, Direction::Out)) if precision.is_exact() => {
                    self.subjects(graph, traits, within)
                }
                // What other named graphs have may be among it.
                _ => self.members_of(GraphRef::Named, traits, precision, within),
            };
        }
        let vertices = self.shared.members(graph, traits, precision, within)?;
        let has_literals = |asked: &Membership| matches!(asked, Membership::Has(predicate, Direction::In) if *predicate != PredicateId::TYPE);
        if traits.is_empty() || !traits.iter().all(has_literals) {
            return Ok(vertices);
        }
        let Some(mut all) = vertices else {
            return Ok(None);
        };
        let mut literals = IdRanges::new();
        literals.push(
            TermId::new(TermKind::Literal, 0),
            TermId::from_raw(u64::MAX),
        );
        for of_part in self.of_each_part(graph, traits, precision, within)? {
            match of_part {
                Some(ids) => all = all.union(&ids.within(&literals)),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    /// The subjects of a predicate in some named graphs: those at home there, and what each shard has
    /// besides.
    fn subjects(
        &self,
        graph: GraphRef<'_>,
        traits: &[Membership],
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        let Some(mut all) = self
            .shared
            .members(graph, traits, Precision::Exact, within)?
        else {
            return Ok(None);
        };
        for of_part in self.of_each_part(graph, traits, Precision::Exact, within)? {
            match of_part {
                Some(ids) => all = all.union(&ids),
                None => return Ok(None),
            }
        }
        Ok(Some(all))
    }

    /// What the shards of each node say. All are asked before it is said that one does not answer.
    fn of_each_part(
        &self,
        graph: GraphRef<'_>,
        traits: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Vec<Option<IdRanges>>, Unavailable> {
        let mut all = Vec::new();
        let mut reason = None;
        for shard in self.parts() {
            let rows = self.of_shard(shard);
            match rows.and_then(|rows| rows.members(graph, traits, precision, within)) {
                Ok(ids) => all.push(ids),
                Err(why) => reason = Some(worse(reason, why)),
            }
        }
        reason.map_or(Ok(all), Err)
    }
}
