//! The edges of a predicate, one by one with their named graphs -> [`PredicateGraphs`].

use std::ops::Range;

use jindou_model::TermId;
use rustc_hash::FxHashMap;

use crate::column::{Column, ColumnBuilder};
use crate::graph_index::{Entry, GraphIndex};
use crate::graph_table::GraphCoder;
use crate::predicate_graphs::{EdgeSets, PredicateGraphs};
use crate::runs::{NO_HOME, Runs};

/// The share of edges beyond which, where they are not just in the home of their subject, each edge
/// says where it is.
const EACH_SHARE: u64 = 8;

/// Codes in four bytes each, or in eight once one needs it.
enum Codes {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Codes {
    #[inline]
    fn push(&mut self, code: u64) {
        match (&mut *self, u32::try_from(code)) {
            (Self::Narrow(codes), Ok(code)) => codes.push(code),
            (Self::Wide(codes), _) => codes.push(code),
            (Self::Narrow(codes), Err(_)) => {
                let mut wide = Vec::with_capacity(codes.capacity());
                wide.extend(codes.iter().map(|code| u64::from(*code)));
                wide.push(code);
                *self = Self::Wide(wide);
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Narrow(codes) => codes.len(),
            Self::Wide(codes) => codes.len(),
        }
    }

    #[inline]
    fn get(&self, place: usize) -> u64 {
        match self {
            Self::Narrow(codes) => codes[place].into(),
            Self::Wide(codes) => codes[place],
        }
    }

    /// Those at some places.
    fn column(&self, places: impl Iterator<Item = usize> + Clone) -> Column {
        let values = places.map(|place| self.get(place));
        let (base, most, len) = values
            .clone()
            .fold((u64::MAX, 0, 0), |(base, most, len), v| {
                (v.min(base), v.max(most), len + 1)
            });
        Column::collect(len, base.min(most), most, values)
    }
}

/// What is counted of one graph.
#[derive(Clone, Copy, Default)]
struct Counted {
    edges: u64,
    /// Of these, those that are not just in the home of their subject.
    listed: u64,
    /// Where the next of its places goes.
    next: u64,
}

/// The run of a subject.
struct Run {
    members: Range<u64>,
    /// `None` for what is not in a run.
    number: Option<u32>,
    home: u32,
}

/// Packs the graphs of one predicate's edges, which come by subject and object.
///
/// Holds four bytes an edge while it packs (eight beyond 2^31 graphs or sets), eight for each of
/// the few edges that are listed by place, and what is made at the end.
pub(crate) struct Packer<'a> {
    coder: &'a mut GraphCoder,
    runs: &'a Runs,
    codes: Codes,
    /// Places of the edges that are not just in the home of their subject, as long as they are
    /// few enough to be listed, and one more.
    listed: Vec<u64>,
    most_listed: u64,
    listed_runs: Vec<u32>,
    of_graph: FxHashMap<u32, Counted>,
    /// A graph, and the last edges that are just in that as their home: they are not in its count.
    at_home: (u32, u64),
    last: Run,
}

impl<'a> Packer<'a> {
    /// One for a predicate that has so many edges, each of them once; `runs` says where subjects
    /// are at home.
    pub(crate) fn new(coder: &'a mut GraphCoder, runs: &'a Runs, edges: u64) -> Self {
        Self {
            coder,
            runs,
            codes: Codes::Narrow(Vec::with_capacity(edges as usize)),
            listed: Vec::new(),
            most_listed: edges / EACH_SHARE,
            listed_runs: Vec::new(),
            of_graph: FxHashMap::default(),
            at_home: (NO_HOME, 0),
            last: Run {
                members: 0..0,
                number: None,
                home: NO_HOME,
            },
        }
    }

    /// The next edge: its subject, and the numbers of its graphs, sorted.
    pub(crate) fn edge(&mut self, subject: TermId, graphs: &[u32]) {
        debug_assert!(!graphs.is_empty() && graphs.is_sorted_by(|a, b| a < b));
        if !self.last.members.contains(&subject.number()) {
            self.find_run(subject);
        }
        let place = self.codes.len() as u64;
        self.codes.push(self.coder.code(graphs));
        if *graphs == [self.last.home] {
            if self.at_home.0 != self.last.home {
                self.count_at_home();
                self.at_home.0 = self.last.home;
            }
            self.at_home.1 += 1;
            return;
        }
        for graph in graphs {
            let counted = self.of_graph.entry(*graph).or_default();
            counted.edges += 1;
            counted.listed += 1;
        }
        if self.is_each() {
            return;
        }
        self.listed.push(place);
        let run = self
            .last
            .number
            .filter(|run| self.listed_runs.last() != Some(run));
        self.listed_runs.extend(run);
    }

    /// True if too many edges are not just in the home of their subject.
    fn is_each(&self) -> bool {
        self.listed.len() as u64 > self.most_listed
    }

    fn find_run(&mut self, subject: TermId) {
        self.last = match self.runs.run_of(subject) {
            Some(run) => Run {
                members: self.runs.members(run),
                number: Some(run as u32),
                home: self.runs.home_of(run),
            },
            None => Run {
                members: 0..0,
                number: None,
                home: NO_HOME,
            },
        };
    }

    fn count_at_home(&mut self) {
        let (graph, edges) = std::mem::take(&mut self.at_home);
        if edges > 0 {
            self.of_graph.entry(graph).or_default().edges += edges;
        }
    }

    /// What all edges say.
    pub(crate) fn finish(mut self) -> PredicateGraphs {
        self.count_at_home();
        let listed = std::mem::take(&mut self.listed);
        if listed.len() as u64 > self.most_listed {
            let all = 0..self.codes.len();
            return PredicateGraphs {
                index: self.index(all.clone(), |counted| counted.edges),
                sets: EdgeSets::Each(self.codes.column(all)),
            };
        }
        let places = listed.iter().map(|place| *place as usize);
        PredicateGraphs {
            index: self.index(places.clone(), |counted| counted.listed),
            sets: EdgeSets::Home {
                places: Column::from_values(&listed),
                sets: self.codes.column(places),
                runs: std::mem::take(&mut self.listed_runs),
            },
        }
    }

    /// The index where these places, in order, are listed for their graphs, so many for each.
    fn index(
        &mut self,
        places: impl Iterator<Item = usize> + Clone,
        listed: fn(&Counted) -> u64,
    ) -> GraphIndex {
        let entry = |(graph, counted): (&u32, &Counted)| Entry {
            graph: *graph,
            edges: counted.edges,
            listed: listed(counted),
        };
        let mut entries: Vec<Entry> = self.of_graph.iter().map(entry).collect();
        entries.sort_unstable();
        let mut begin = 0;
        for entry in &entries {
            let counted = self.of_graph.get_mut(&entry.graph);
            counted.expect("it is of the map").next = begin;
            begin += entry.listed;
        }
        let first = places.clone().next().unwrap_or(0) as u64;
        let last = places.clone().last().unwrap_or(0) as u64;
        let mut column = ColumnBuilder::new(begin as usize, first, last);
        for place in places {
            for graph in self.coder.table().list(self.codes.get(place)).iter() {
                let counted = self.of_graph.get_mut(&graph);
                let next = &mut counted.expect("each graph was counted").next;
                column.set(*next as usize, place as u64);
                *next += 1;
            }
        }
        GraphIndex::new(&entries, column.finish())
    }
}
