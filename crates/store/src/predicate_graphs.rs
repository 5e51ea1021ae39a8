//! The named graphs of one predicate's edges, by edge and by graph: what a merge makes anew where
//! the predicate's edges changed, and shares where they did not.

use crate::StoreError;
use crate::column::Column;
use crate::graph_index::{Entry, GraphIndex};
use crate::graph_table::GraphTable;
use crate::image::{ImageReader, ImageWriter};
use crate::runs::Runs;

/// The graphs of a predicate's edges, as codes (see [`GraphTable`]).
#[derive(Clone, Debug)]
pub(crate) enum EdgeSets {
    /// The home of the subject alone, but for the edges at these places, sorted; and the runs of
    /// the subjects of these, sorted.
    Home {
        places: Column,
        sets: Column,
        runs: Vec<u32>,
    },
    /// Those of each place.
    Each(Column),
}

impl EdgeSets {
    fn bytes(&self) -> usize {
        match self {
            Self::Home { places, sets, runs } => places.bytes() + sets.bytes() + runs.len() * 4,
            Self::Each(sets) => sets.bytes(),
        }
    }

    /// True if no edge is listed whose subject is in a run.
    #[inline]
    pub(crate) fn is_home_alone(&self, run: usize) -> bool {
        match self {
            Self::Each(_) => false,
            Self::Home { runs, .. } => runs.binary_search(&(run as u32)).is_err(),
        }
    }

    /// The code of a place; `None` is the home of the subject.
    #[inline]
    pub(crate) fn set_of(&self, place: usize) -> Option<u64> {
        match self {
            Self::Each(sets) => Some(sets.get(place)),
            Self::Home { places, sets, .. } => {
                let narrow = (place as u64).checked_sub(places.base())?;
                let items = places.narrow();
                let index = items.seek(0, narrow);
                let found = index < items.len() && items.get(index) == narrow;
                found.then(|| sets.get(index))
            }
        }
    }

    fn write(&self, image: &mut ImageWriter) {
        match self {
            Self::Home { places, sets, runs } => {
                image.word(0);
                places.write(image);
                sets.write(image);
                image.words(&runs.iter().map(|run| u64::from(*run)).collect::<Vec<_>>());
            }
            Self::Each(sets) => {
                image.word(1);
                sets.write(image);
            }
        }
    }

    /// Those of so many edges.
    fn read(image: &mut ImageReader, edges: u64, graphs: &GraphTable) -> Result<Self, StoreError> {
        let read = match image.word()? {
            0 => Self::Home {
                places: Column::read(image)?,
                sets: Column::read(image)?,
                runs: read_runs(image)?,
            },
            _ => Self::Each(Column::read(image)?),
        };
        let are_codes =
            |column: &Column| (0..column.len()).all(|place| graphs.is_code(column.get(place)));
        let is_sound = match &read {
            Self::Home { places, sets, runs } => {
                places.len() == sets.len()
                    && rises_below(places, 0..places.len(), edges)
                    && are_codes(sets)
                    && runs.is_sorted_by(|a, b| a < b)
            }
            Self::Each(sets) => sets.len() as u64 == edges && are_codes(sets),
        };
        match is_sound {
            true => Ok(read),
            false => Err(image.corrupt("the graphs of edges are broken")),
        }
    }
}

fn read_runs(image: &mut ImageReader) -> Result<Vec<u32>, StoreError> {
    let runs = image.words()?.into_iter().map(u32::try_from);
    let runs: Result<Vec<u32>, _> = runs.collect();
    runs.map_err(|_| image.corrupt("the graphs of edges are of runs beyond all"))
}

/// True if the numbers of a part of a column rise and all are below a limit.
pub(crate) fn rises_below(column: &Column, part: std::ops::Range<usize>, limit: u64) -> bool {
    let mut numbers = part.map(|place| column.get(place));
    let mut next = 0;
    numbers.all(|number| {
        let is_sound = number >= next && number < limit;
        next = number.saturating_add(1);
        is_sound
    })
}

/// Which graphs has each edge of a predicate, and which edges has each graph?
#[derive(Clone, Debug)]
pub(crate) struct PredicateGraphs {
    pub(crate) sets: EdgeSets,
    pub(crate) index: GraphIndex,
}

impl PredicateGraphs {
    /// Those of a predicate without edges in named graphs.
    pub(crate) fn none() -> Self {
        let empty = || Column::from_values(&[]);
        Self {
            sets: EdgeSets::Home {
                places: empty(),
                sets: empty(),
                runs: Vec::new(),
            },
            index: GraphIndex::new(&[], empty()),
        }
    }

    /// How many edges there are of each graph, and nothing of which ones these are.
    pub(crate) fn without_places(entries: &[Entry]) -> Self {
        Self {
            index: GraphIndex::new(entries, Column::from_values(&[])),
            ..Self::none()
        }
    }

    /// True if the runs of which it speaks are there.
    pub(crate) fn fits(&self, runs: &Runs) -> bool {
        match &self.sets {
            EdgeSets::Home { runs: listed, .. } => {
                listed.last().is_none_or(|run| (*run as usize) < runs.len())
            }
            EdgeSets::Each(_) => true,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.sets.bytes() + self.index.bytes()
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        self.sets.write(image);
        self.index.write(image);
    }

    /// Those of so many edges; `graphs` are those of which they speak.
    pub(crate) fn read(
        image: &mut ImageReader,
        edges: u64,
        graphs: &GraphTable,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            sets: EdgeSets::read(image, edges, graphs)?,
            index: GraphIndex::read(image, edges, graphs.len())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph_table::GraphCoder;
    use crate::log::Folder;

    /// Reads a part back as one of so many edges.
    fn read_back(
        part: &PredicateGraphs,
        edges: u64,
        table: &GraphTable,
    ) -> Result<PredicateGraphs, StoreError> {
        let folder = tempfile::tempdir().unwrap();
        let mut image = ImageWriter::default();
        part.write(&mut image);
        image
            .finish(&Folder::new(folder.path()), "part.jnd", 9)
            .unwrap();
        let mut image = ImageReader::open(&folder.path().join("part.jnd"), 9)?;
        PredicateGraphs::read(&mut image, edges, table)
    }

    fn part(sets: EdgeSets, entries: &[(u32, u64, u64)], places: &[u64]) -> PredicateGraphs {
        let entry = |(graph, edges, listed): &(u32, u64, u64)| Entry {
            graph: *graph,
            edges: *edges,
            listed: *listed,
        };
        let entries: Vec<Entry> = entries.iter().map(entry).collect();
        PredicateGraphs {
            sets,
            index: GraphIndex::new(&entries, Column::from_values(places)),
        }
    }

    fn home(places: &[u64], sets: &[u64], runs: &[u32]) -> EdgeSets {
        EdgeSets::Home {
            places: Column::from_values(places),
            sets: Column::from_values(sets),
            runs: runs.to_vec(),
        }
    }

    #[test]
    fn a_part_that_contradicts_itself_is_refused() {
        let each = |sets: &[u64]| EdgeSets::Each(Column::from_values(sets));
        let ids = vec![10, 20, 30];
        let mut coder = GraphCoder::new(GraphTable::new(ids, Default::default()));
        let both = coder.code(&[0, 2]);
        let table = coder.finish();
        // Four edges: one in both graphs, the others in the first.
        let entries = [(0, 4, 1), (2, 1, 1)];
        let sound = [
            part(home(&[3], &[both], &[7]), &entries, &[3, 3]),
            part(
                each(&[0, 0, 0, both]),
                &[(0, 4, 4), (2, 1, 1)],
                &[0, 1, 2, 3, 3],
            ),
            PredicateGraphs::none(),
        ];
        for part in &sound[..2] {
            let read = read_back(part, 4, &table).unwrap();
            assert_eq!(read.sets.set_of(3), Some(both));
            assert_eq!(read.index.listed(1).collect::<Vec<_>>(), [3]);
        }
        read_back(&sound[2], 0, &table).unwrap();
        let broken = [
            part(home(&[4], &[both], &[7]), &entries, &[3, 3]),
            part(home(&[3, 3], &[both, 0], &[7]), &entries, &[3, 3]),
            part(home(&[3], &[both, 0], &[7]), &entries, &[3, 3]),
            part(home(&[3], &[both + 2], &[7]), &entries, &[3, 3]),
            part(home(&[3], &[6], &[7]), &entries, &[3, 3]),
            part(home(&[3], &[both], &[7, 7]), &entries, &[3, 3]),
            part(home(&[3], &[both], &[7]), &entries, &[3, 4]),
            part(home(&[3], &[both], &[7]), &entries, &[3]),
            part(home(&[3], &[both], &[7]), &[(0, 5, 1), (2, 1, 1)], &[3, 3]),
            part(home(&[3], &[both], &[7]), &[(0, 4, 1), (3, 1, 1)], &[3, 3]),
            part(home(&[3], &[both], &[7]), &[(0, 4, 1), (2, 0, 1)], &[3, 3]),
            part(home(&[3], &[both], &[7]), &[(0, 4, 2)], &[3, 3]),
            part(each(&[0, 0, 0]), &[(0, 4, 1)], &[3]),
        ];
        for (number, part) in broken.iter().enumerate() {
            let read = read_back(part, 4, &table);
            assert!(
                matches!(read, Err(StoreError::Corrupt { .. })),
                "part {number}"
            );
        }
    }
}
