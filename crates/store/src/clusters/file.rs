//! The table of sets in a file.

use jindou_fabric::Region;
use jindou_model::{PAYLOAD_BITS, PredicateId};

use super::check::traits_in_order;
use super::count::PairEdges;
use super::{Clusters, Edges, Lists, Stretches};
use crate::StoreError;
use crate::image::{ImageReader, ImageWriter};

impl Clusters {
    pub(crate) fn write(&self, image: &mut ImageWriter) {
        let (starts, set_of) = self.stretches.parts();
        image.words(starts);
        image.region(&Region::copy_from(bytemuck::cast_slice(set_of)));
        write_offsets(image, &self.types);
        image.words(self.types.parts().1);
        for has in &self.has {
            write_offsets(image, has);
            let (ids, edges): (Vec<u64>, Vec<u64>) = has
                .parts()
                .1
                .iter()
                .map(|(id, edges)| (u64::from(id.0), *edges))
                .unzip();
            image.words(&ids);
            image.words(&edges);
        }
        write_offsets(image, &self.pairs);
        let flat = |pair: &PairEdges| [pair.subjects.into(), pair.objects.into(), pair.edges];
        let pairs = self.pairs.parts().1.iter();
        image.words(&pairs.flat_map(flat).collect::<Vec<u64>>());
    }

    /// Reads what [`Clusters::write`] wrote for so many predicates.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the parts contradict each other.
    pub(crate) fn read(image: &mut ImageReader, predicates: usize) -> Result<Self, StoreError> {
        let starts = image.words()?;
        let set_of = image.region()?;
        if !set_of.len().is_multiple_of(4) {
            return Err(image.corrupt("an array of sets has a broken length"));
        }
        let set_of = set_of.as_slice::<u32>().to_vec();
        let stretches = Stretches::from_parts(starts, set_of)
            .ok_or_else(|| image.corrupt("the stretches of clusters are broken"))?;
        let offsets = image.words()?;
        let types = lists(image, offsets, |image| image.words())?;
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
        Ok(Self::new(stretches, types, has, pairs))
    }
}

fn write_offsets<T>(image: &mut ImageWriter, lists: &Lists<T>) {
    let words = lists.parts().0.iter().map(|word| *word as u64);
    image.words(&words.collect::<Vec<_>>());
}

fn read_predicates(image: &mut ImageReader, predicates: usize) -> Result<Lists<Edges>, StoreError> {
    let offsets = image.words()?;
    lists(image, offsets, |image| {
        let ids = image.words()?;
        let edges = image.words()?;
        if ids.len() != edges.len()
            || ids.iter().any(|id| *id >= predicates as u64)
            || !sum_fits(edges.iter().map(|count| u128::from(*count)))
        {
            return Err(image.corrupt("the predicates of clusters are broken"));
        }
        let ids = ids.iter().map(|id| PredicateId(*id as u32));
        Ok(ids.zip(edges).collect())
    })
}

fn read_pairs(image: &mut ImageReader, sets: u64) -> Result<Lists<PairEdges>, StoreError> {
    let offsets = image.words()?;
    lists(image, offsets, |image| {
        let words = image.words()?;
        let sound = |pair: &[u64]| pair[0] < sets && pair[1] < sets;
        if !words.len().is_multiple_of(3)
            || !words.chunks(3).all(sound)
            || !sum_fits(words.chunks(3).map(|pair| u128::from(pair[2])))
        {
            return Err(image.corrupt("the pairs of clusters are broken"));
        }
        let pair = |pair: &[u64]| PairEdges {
            subjects: pair[0] as u32,
            objects: pair[1] as u32,
            edges: pair[2],
        };
        Ok(words.chunks(3).map(pair).collect())
    })
}

/// Are the sets of the stretches those below `sets`, each of them there?
fn each_set_is_used(stretches: &Stretches, sets: usize) -> bool {
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

fn type_edges_fit(stretches: &Stretches, types: &Lists<u64>) -> bool {
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

fn lists<T>(
    image: &mut ImageReader,
    offsets: Vec<u64>,
    items: impl FnOnce(&mut ImageReader) -> Result<Vec<T>, StoreError>,
) -> Result<Lists<T>, StoreError> {
    let items = items(image)?;
    Lists::from_parts(offsets, items)
        .ok_or_else(|| image.corrupt("the offsets of a list are broken"))
}
