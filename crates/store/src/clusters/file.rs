//! The table of sets in a file.

use jindou_model::PAYLOAD_BITS;

use super::check::traits_in_order;
use super::{Clusters, FixedLists, FixedStretches, PredicateLists};
use crate::StoreError;
use crate::array::Array;
use crate::image::{ImageReader, ImageWriter};

impl Clusters {
    pub(crate) fn write(&self, image: &mut ImageWriter) {
        let (starts, set_of) = self.stretches.parts();
        image.region(starts.region());
        image.region(set_of.region());
        let (offsets, types) = self.types.parts();
        image.region(offsets.region());
        image.region(types.region());
        for has in &self.has {
            let (offsets, predicates, edges) = has.parts();
            image.region(offsets.region());
            image.region(predicates.region());
            image.region(edges.region());
        }
        let (offsets, pairs) = self.pairs.parts();
        image.region(offsets.region());
        image.region(pairs.region());
    }

    /// Reads what [`Clusters::write`] wrote for so many predicates: the arrays stay where they are.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the parts contradict each other.
    pub(crate) fn read(image: &mut ImageReader, predicates: usize) -> Result<Self, StoreError> {
        let stretches = FixedStretches::from_parts(image.array()?, image.array()?)
            .ok_or_else(|| image.corrupt("the stretches of clusters are broken"))?;
        let types = FixedLists::from_parts(image.array()?, image.array()?)
            .ok_or_else(|| image.corrupt("the offsets of a list are broken"))?;
        let has = [
            read_predicates(image, predicates)?,
            read_predicates(image, predicates)?,
        ];
        let pairs = read_pairs(image, types.len() as u64)?;
        let same_length =
            has.iter().all(|lists| lists.len() == types.len()) && pairs.len() == predicates;
        if !same_length
            || !traits_in_order(&types, &has)
            || !each_set_is_used(&stretches, types.len())
            || !type_edges_fit(&stretches, &types)
        {
            return Err(image.corrupt("the table of clusters contradicts itself"));
        }
        Ok(Self::underived(stretches, types, has, pairs).derived())
    }
}

fn read_predicates(
    image: &mut ImageReader,
    predicates: usize,
) -> Result<PredicateLists, StoreError> {
    let (offsets, ids, edges): (_, Array<u64>, Array<u64>) =
        (image.array()?, image.array()?, image.array()?);
    let sound = ids.iter().all(|id| *id < predicates as u64)
        && sum_fits(edges.iter().map(|count| u128::from(*count)));
    let lists = PredicateLists::from_parts(offsets, ids, edges).filter(|_| sound);
    lists.ok_or_else(|| image.corrupt("the predicates of clusters are broken"))
}

fn read_pairs(image: &mut ImageReader, sets: u64) -> Result<FixedLists<[u64; 3]>, StoreError> {
    let (offsets, pairs): (_, Array<[u64; 3]>) = (image.array()?, image.array()?);
    let sound = pairs.iter().all(|pair| pair[0] < sets && pair[1] < sets)
        && sum_fits(pairs.iter().map(|pair| u128::from(pair[2])));
    let lists = FixedLists::from_parts(offsets, pairs).filter(|_| sound);
    lists.ok_or_else(|| image.corrupt("the pairs of clusters are broken"))
}

/// Are the sets of the stretches those below `sets`, each of them there?
fn each_set_is_used(stretches: &FixedStretches, sets: usize) -> bool {
    let mut is_used = vec![false; sets];
    let all_known = stretches.iter().all(|(_, set)| {
        let known = is_used.get_mut(set);
        known.is_some_and(|is_used| {
            *is_used = true;
            true
        })
    });
    all_known && !is_used.contains(&false)
}

fn type_edges_fit(stretches: &FixedStretches, types: &FixedLists<u64>) -> bool {
    let edges = |set: usize| types.get(set).len() as u128;
    sum_fits(
        stretches
            .iter()
            .map(|(members, set)| u128::from(members.end - members.start) * edges(set)),
    )
}

/// Counts of edges that no store can have would overflow where they are added.
fn sum_fits(counts: impl Iterator<Item = u128>) -> bool {
    counts.sum::<u128>() < 1 << PAYLOAD_BITS
}
