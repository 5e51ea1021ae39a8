//! Which node's part of a store is a base, and what does it know of the whole?
//!
//! A *part* has the rows of the keys whose shards one node of a cluster holds: outgoing edges by subject,
//! incoming ones by object, and the named graphs of its own subjects' edges; and of the dictionary the strings of
//! the ids of these shards. All edges of `rdf:type`, and the tables but for the dictionary are whole. What planners and
//! catalogues count over the rows of all nodes, the names of what they count, and
//! the digests by which nodes compare their bases, cannot be found in a part: the split writes them into it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use jindou_dictionary::{DictionaryError, Residues, StringTable, TermTable};
use jindou_fabric::Region;
use jindou_model::{NodeId, PredicateId, ShardId, TermId, TermKind};
use jindou_partition::{ShardMap, Shards};

use crate::StoreError;
use crate::base::Base;
use crate::column::Column;
use crate::delta::Snapshot;
use crate::graph_index::Entry;
use crate::graph_table::GraphTable;
use crate::image::{ImageReader, ImageWriter};
use crate::later_order::LaterOrder;
use crate::layer::LayerKind;
use crate::named::NamedGraphs;
use crate::predicate_graphs::{PredicateGraphs, rises_below};
use crate::whole_texts::WholeTexts;

/// Edges and distinct keys of a predicate, by direction.
pub(crate) type SegmentCounts = [(u64, u64); 2];

/// Words in which a predicate's counts of a layer are written.
const WORDS_OF_COUNTS: usize = 4;

/// The numbers of the terms whose strings a node has: those of its shards.
pub(crate) fn residues_of(map: &ShardMap, node: NodeId) -> Residues {
    let shards = map.shards();
    let own = shards.all().filter(|shard| map.holder(*shard) == node);
    let own: Vec<u32> = own.map(|shard| shard.0).collect();
    let bits = shards.count().trailing_zeros();
    Residues::new(bits, &own).expect("a node holds shards")
}

/// Of which node a base is the part, and what it knows of the whole.
#[derive(Clone, Debug)]
pub struct NodePart {
    map: ShardMap,
    node: NodeId,
    name: String,
    pub(crate) whole: WholeFigures,
}

/// What is counted over the rows of all nodes.
#[derive(Clone, Debug)]
pub(crate) struct WholeFigures {
    /// By layer and predicate; `rdf:type` is in the characteristic sets and has none here.
    pub(crate) layers: [Arc<[SegmentCounts]>; 2],
    /// How many edges each named graph has of each predicate, without their places.
    pub(crate) named: NamedGraphs,
    /// As those of a [`crate::Cut`].
    pub(crate) digests: Arc<[u64]>,
    /// How many vertices and literals the dictionary has.
    pub(crate) strings: [u64; 2],
    /// The predicates, types and named graphs, by the numbers of these vertices.
    pub(crate) names: TermTable,
    /// The order of all texts.
    pub(crate) texts: WholeTexts,
}

impl NodePart {
    pub(crate) fn new(map: ShardMap, node: NodeId, name: &str, whole: WholeFigures) -> Self {
        assert!(
            (node.0 as usize) < map.nodes().len(),
            "the map has the node"
        );
        Self {
            map,
            node,
            name: name.to_owned(),
            whole,
        }
    }

    /// What is said of a node and the shards that it holds.
    #[must_use]
    pub fn said_of(map: &ShardMap, node: NodeId, name: &str) -> String {
        let shards = map.shards().all();
        let own = shards.filter(|shard| map.holder(*shard) == node).count();
        let (number, nodes, all) = (node.0 + 1, map.nodes().len(), map.shards().count());
        format!("node {name}, {number} of {nodes}, with {own} of {all} shards")
    }

    /// Which node holds which shard.
    #[must_use]
    pub fn map(&self) -> &ShardMap {
        &self.map
    }

    /// The node.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// The node's name in the list by which the store was split.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if it has the rows of a shard.
    #[must_use]
    pub fn holds(&self, shard: ShardId) -> bool {
        self.map.holder(shard) == self.node
    }

    /// True if it has the rows of a key.
    #[inline]
    #[must_use]
    pub fn has_rows_of(&self, key: TermId) -> bool {
        self.map.node_of(key) == self.node
    }

    /// True if every node knows the name of a vertex.
    #[inline]
    pub(crate) fn has_name(&self, id: TermId) -> bool {
        id.kind() == TermKind::Vertex && self.whole.names.contains(id.number())
    }

    /// Why the folder that it is in is not opened as a store.
    #[must_use]
    pub fn refusal(&self, folder: &Path) -> StoreError {
        StoreError::NodePart {
            path: folder.to_owned(),
            part: self.to_string(),
            node: self.name.clone(),
        }
    }

    /// The counts of the whole in a layer, by predicate.
    pub(crate) fn counts(&self, kind: LayerKind) -> Arc<[SegmentCounts]> {
        Arc::clone(&self.whole.layers[kind as usize])
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        image.word(self.map.shards().count() as u64);
        image.word(self.map.nodes().len() as u64);
        image.word(self.node.0.into());
        image.region(&Region::copy_from(self.name.as_bytes()));
        self.whole.write(image);
    }

    /// That of a base with so many predicates, these named graphs, and so many numbers of vertices and literals.
    pub(crate) fn read(
        image: &mut ImageReader,
        predicates: usize,
        graphs: &Arc<GraphTable>,
        terms: [u64; 2],
    ) -> Result<Self, StoreError> {
        let words = [image.word()?, image.word()?, image.word()?];
        let name = String::from_utf8(image.region()?.to_vec());
        let [shards, nodes, node] = words.map(|word| u32::try_from(word).ok());
        let map = shards.zip(nodes).and_then(|(shards, nodes)| {
            let shards = Shards::new(shards).ok()?;
            ShardMap::dealt(shards, nodes).ok()
        });
        let node = node.filter(|node| nodes.is_some_and(|nodes| *node < nodes));
        match (map, node, name) {
            (Some(map), Some(node), Ok(name)) => Ok(Self {
                map,
                node: NodeId(node),
                name,
                whole: WholeFigures::read(image, predicates, graphs, terms)?,
            }),
            _ => Err(image.corrupt("it is the part of a node that cannot be")),
        }
    }
}

impl fmt::Display for NodePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Self::said_of(&self.map, self.node, &self.name))
    }
}

impl WholeFigures {
    /// What a snapshot that is its base says of itself. Costs a pass over all edges, and over all strings of the bulk
    /// load; after each predicate `done` gets its edges.
    ///
    /// # Errors
    /// If the dictionary is damaged.
    pub(crate) fn of(snapshot: &Snapshot, done: &dyn Fn(u64)) -> Result<Self, StoreError> {
        let base = snapshot.base();
        assert!(base.node_part().is_none(), "a part is not split again");
        let counts = |kind, predicate| match predicate {
            PredicateId::TYPE => SegmentCounts::default(),
            _ => base.layer(kind).own_counts(predicate),
        };
        let layers =
            LayerKind::ALL.map(|kind| base.predicates().map(|id| counts(kind, id)).collect());
        let digest = |predicate| {
            let digest = base.digest_of(predicate);
            done(base.edges_by_subject(predicate));
            digest
        };
        Ok(Self {
            layers,
            named: base.named().without_places(),
            digests: base.predicates().map(digest).collect(),
            strings: snapshot.dictionary_terms().into(),
            names: names_of(base, |id| {
                let mut key = Vec::new();
                base.push_key(id, &mut key);
                key
            })?,
            texts: WholeTexts::of(snapshot).map_err(|error| StoreError::TooLarge {
                reason: error.to_string(),
            })?,
        })
    }

    fn write(&self, image: &mut ImageWriter) {
        for layer in &self.layers {
            let words = layer.iter().flatten();
            let words: Vec<u64> = words.flat_map(|(edges, keys)| [*edges, *keys]).collect();
            image.words(&words);
        }
        image.words(&self.digests);
        image.words(&self.strings);
        let (strings, numbers) = self.names.regions();
        image.region(strings);
        image.region(numbers.expect("numbers that are chosen are mapped"));
        self.texts.write(image);
        let (mut ends, mut graphs, mut edges) = (Vec::new(), Vec::new(), Vec::new());
        for predicate in (0..self.digests.len()).map(|number| PredicateId(number as u32)) {
            for (graph, count) in self.named.entries(predicate) {
                graphs.push(graph.into());
                edges.push(count);
            }
            ends.push(graphs.len() as u64);
        }
        for column in [&ends, &graphs, &edges] {
            Column::from_values(column).write(image);
        }
    }

    fn read(
        image: &mut ImageReader,
        predicates: usize,
        graphs: &Arc<GraphTable>,
        terms: [u64; 2],
    ) -> Result<Self, StoreError> {
        let layers = [
            read_counts(image, predicates)?,
            read_counts(image, predicates)?,
        ];
        let digests = image.words()?;
        if digests.len() != predicates {
            return Err(image.corrupt("the digests are not one for each predicate"));
        }
        let strings = <[u64; 2]>::try_from(image.words()?);
        let strings = strings.map_err(|_| image.corrupt("it does not say how many terms are"))?;
        let names = [image.region()?, image.region()?];
        let names = open_names(names).map_err(|error| image.corrupt(&error.to_string()))?;
        let texts = WholeTexts::read(image, terms)?;
        let parts = read_entries(image, predicates, graphs.len())?;
        Ok(Self {
            layers,
            named: NamedGraphs::join(Arc::clone(graphs), parts),
            digests: digests.into(),
            strings,
            names,
            texts,
        })
    }
}

/// The predicates, the types and the named graphs of a base, all of which are vertices but for some types.
fn named_terms(base: &Base) -> Vec<TermId> {
    let types = base.layers.iter().flat_map(|layer| layer.clusters.types());
    let graphs = &base.named.graphs;
    let graphs = graphs.numbers_by_id().map(|number| graphs.id(number));
    let declared = base.declared.iter().map(|raw| TermId::from_raw(*raw));
    let all = base.predicate_terms.iter().copied();
    let mut all: Vec<TermId> = all.chain(types).chain(graphs).chain(declared).collect();
    all.retain(|id| id.kind() == TermKind::Vertex);
    all.sort_unstable();
    all.dedup();
    all
}

/// The names that a base has, of which `key` tells the keys.
pub(crate) fn names_of(
    base: &Base,
    key: impl Fn(TermId) -> Vec<u8>,
) -> Result<TermTable, StoreError> {
    let terms = named_terms(base);
    let numbers: Vec<u64> = terms.iter().map(|id| id.number()).collect();
    let keys: Vec<Vec<u8>> = terms.iter().map(|id| key(*id)).collect();
    TermTable::build(&numbers, |at| &keys[at]).map_err(|error| StoreError::TooLarge {
        reason: error.to_string(),
    })
}

fn open_names([strings, numbers]: [Region; 2]) -> Result<TermTable, DictionaryError> {
    TermTable::open(StringTable::open(strings)?, Some(numbers), 0)
}

impl Base {
    /// It, as the part of a node: what that knows of the order of texts goes where a whole store finds it out.
    pub(crate) fn of_node(mut self, part: NodePart) -> Self {
        self.literals.later = Arc::new(LaterOrder::from(Arc::clone(&part.whole.texts.later)));
        self.node_part = Some(part);
        self
    }

    /// Is it a part of such a whole as it says, if it says so? Of `rdf:type` each part has all edges.
    pub(crate) fn check_part(&self) -> Result<(), &'static str> {
        let Some(NodePart { whole, .. }) = &self.node_part else {
            return Ok(());
        };
        let has_name = |id: &TermId| whole.names.contains(id.number());
        if !named_terms(self).iter().all(has_name) {
            return Err("it does not have the names of all predicates, types and graphs");
        }
        for (tables, strings) in [&self.vertices, &self.literals]
            .into_iter()
            .zip(whole.strings)
        {
            if tables.strings() > strings || strings > tables.len() {
                return Err("it has more terms than it says that the whole has");
            }
        }
        let is_within =
            |(own, whole): (&(u64, u64), &(u64, u64))| own.0 <= whole.0 && own.1 <= whole.1;
        for predicate in self.predicates() {
            let is_type = predicate == PredicateId::TYPE;
            for kind in LayerKind::ALL {
                let counts = &whole.layers[kind as usize][predicate.index()];
                let own = self.layer(kind).own_counts(predicate);
                if !own.iter().zip(counts).all(is_within) {
                    return Err("it has more edges than it says that the whole has");
                }
            }
            for (graph, edges) in self.named.entries(predicate) {
                let all = whole.named.edges_of(graph, predicate);
                if edges > all || (is_type && edges != all) {
                    return Err("a named graph has more quads than it says that the whole has");
                }
            }
        }
        Ok(())
    }
}

fn read_counts(
    image: &mut ImageReader,
    predicates: usize,
) -> Result<Arc<[SegmentCounts]>, StoreError> {
    let words = image.words()?;
    let counts = words.chunks_exact(WORDS_OF_COUNTS);
    let counts: Arc<[SegmentCounts]> = counts.map(|it| [(it[0], it[1]), (it[2], it[3])]).collect();
    let are_sound = |both: &SegmentCounts| {
        let of_side = |(edges, keys): &(u64, u64)| keys <= edges && (*edges == 0) == (*keys == 0);
        both.iter().all(of_side) && both[0].0 == both[1].0
    };
    match words.len() == predicates * WORDS_OF_COUNTS && counts.iter().all(are_sound) {
        true => Ok(counts),
        false => Err(image.corrupt("the counts of the whole contradict each other")),
    }
}

/// What named graphs have of each predicate.
fn read_entries(
    image: &mut ImageReader,
    predicates: usize,
    graph_count: usize,
) -> Result<Vec<Arc<PredicateGraphs>>, StoreError> {
    let [ends, graphs, edges] = [
        Column::read(image)?,
        Column::read(image)?,
        Column::read(image)?,
    ];
    let last = ends.len().checked_sub(1).map_or(0, |last| ends.get(last));
    let mut are_sound = ends.len() == predicates
        && (last, last) == (graphs.len() as u64, edges.len() as u64)
        && (1..ends.len()).all(|place| ends.get(place - 1) <= ends.get(place));
    let mut parts = Vec::new();
    let mut begin = 0;
    for predicate in 0..predicates {
        if !are_sound {
            break;
        }
        let range = begin..ends.get(predicate) as usize;
        begin = range.end;
        let mut counts = range.clone().map(|place| edges.get(place));
        let sum = counts.try_fold(0_u64, |sum, edges| {
            sum.checked_add(edges.checked_sub(1)? + 1)
        });
        are_sound = sum.is_some() && rises_below(&graphs, range.clone(), graph_count as u64);
        let entry = |place| Entry {
            graph: graphs.get(place) as u32,
            edges: edges.get(place),
            listed: 0,
        };
        if are_sound {
            let entries: Vec<Entry> = range.map(entry).collect();
            parts.push(Arc::new(PredicateGraphs::without_places(&entries)));
        }
    }
    match are_sound {
        true => Ok(parts),
        false => Err(image.corrupt("the quads of the whole by graph contradict each other")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind_column::{KeyKinds, KindBuilder};
    use crate::log::Folder;
    use jindou_model::TextKind;

    const PREDICATES: usize = 3;
    /// Numbers of vertices and of literals.
    const TERMS: [u64; 2] = [5, 6];

    fn graphs() -> Arc<GraphTable> {
        Arc::new(GraphTable::new(vec![10, 20], Default::default()))
    }

    /// What a part says: words, the name, counts, digests, and ends, graphs and edges of entries.
    #[derive(Clone)]
    struct Said {
        words: [u64; 3],
        name: Vec<u8>,
        counts: [Vec<u64>; 2],
        digests: Vec<u64>,
        strings: Vec<u64>,
        names: [Vec<u8>; 2],
        /// Those of vertices and of literals in the order of texts, and the one before which later ones begin.
        ordered: [usize; 3],
        entries: [Vec<u64>; 3],
    }

    impl Said {
        fn sound() -> Self {
            let counts = vec![0, 0, 0, 0, 5, 2, 5, 5, 1, 1, 1, 1];
            let names = TermTable::build(&[3, 1], |at| [&b"p"[..], b"q"][at]).unwrap();
            let (strings, numbers) = names.regions();
            Self {
                words: [16, 3, 1],
                name: b"b".to_vec(),
                counts: [counts.clone(), counts],
                digests: vec![7, 8, 9],
                strings: vec![5, 6],
                names: [strings.to_vec(), numbers.unwrap().to_vec()],
                ordered: [5, 6, 6],
                entries: [vec![1, 3, 3], vec![0, 0, 1], vec![2, 4, 1]],
            }
        }

        fn read(&self) -> Result<NodePart, StoreError> {
            let folder = tempfile::tempdir().unwrap();
            let mut image = ImageWriter::default();
            self.words.iter().for_each(|word| image.word(*word));
            image.region(&Region::copy_from(&self.name));
            self.counts.iter().for_each(|words| image.words(words));
            image.words(&self.digests);
            image.words(&self.strings);
            let names = self.names.iter();
            names.for_each(|bytes| image.region(&Region::copy_from(bytes)));
            self.texts().write(&mut image);
            let columns = self.entries.iter();
            columns.for_each(|values| Column::from_values(values).write(&mut image));
            image
                .finish(&Folder::new(folder.path()), "base.jnd", 9)
                .unwrap();
            let mut image = ImageReader::open(&folder.path().join("base.jnd"), 9)?;
            NodePart::read(&mut image, PREDICATES, &graphs(), TERMS)
        }

        fn texts(&self) -> WholeTexts {
            let [vertices, literals, first] = self.ordered;
            let column = |count, kinds, key: &[u8]| {
                let mut builder = KindBuilder::new(kinds);
                (0..count).for_each(|_| builder.push_key(key));
                builder.finish()
            };
            let literal = |count| column(count, KeyKinds::LITERALS, b"a\0");
            let vertices = column(vertices, KeyKinds::VERTICES, b"http://x/");
            let later = WholeTexts::of_load(vertices.clone(), literal(first)).later;
            WholeTexts {
                later,
                ..WholeTexts::of_load(vertices, literal(literals))
            }
        }
    }

    #[test]
    fn what_a_part_says_is_read_and_written_as_it_was() {
        let part = Said::sound().read().unwrap();
        assert_eq!(part.to_string(), "node b, 2 of 3, with 5 of 16 shards");
        assert_eq!(part.counts(LayerKind::Named)[1], [(5, 2), (5, 5)]);
        assert_eq!(part.whole.named.edges_of(1, PredicateId(1)), 1);
        assert_eq!(part.whole.named.quads(), 7);
        let mut image = ImageWriter::default();
        part.write(&mut image);
        let again = NodePart::read(&mut image.in_memory(), PREDICATES, &graphs(), TERMS).unwrap();
        assert_eq!(again.whole.digests, part.whole.digests);
        assert_eq!(again.whole.strings, part.whole.strings);
        assert_eq!(again.whole.names.lookup(b"q"), Some(1));
        assert_eq!(again.whole.layers, part.whole.layers);
        let texts = &again.whole.texts;
        assert_eq!((texts.vertices.len(), texts.literals.len()), (5, 6));
        assert_eq!(texts.vertices.get(4), Some(TextKind::Iri));
        assert_eq!(texts.literals.get(5), Some(TextKind::String));
        assert_eq!(
            (again.map, again.node, again.name),
            (part.map, part.node, part.name)
        );
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let broken: [fn(&mut Said); 26] = [
            |said| said.words[0] = 12,
            |said| said.words[0] = 1 << 40,
            |said| said.words[1] = 0,
            |said| said.words[1] = 17,
            |said| said.words[2] = 3,
            |said| said.name = vec![0xff],
            |said| said.counts[0][4] = 6,
            |said| said.counts[1][5] = 9,
            |said| said.counts[1][11] = 0,
            |said| said.counts[0].truncate(8),
            |said| said.digests.truncate(2),
            |said| said.strings.truncate(1),
            |said| said.names[0].truncate(8),
            |said| said.names[1].truncate(8),
            |said| said.names.reverse(),
            |said| said.ordered[0] = 6,
            |said| said.ordered[1] = 7,
            |said| said.ordered[2] = 5,
            |said| said.ordered[1..].fill(7),
            |said| said.entries[0] = vec![1, 0, 3],
            |said| said.entries[0] = vec![1, 3, 4],
            |said| said.entries[0] = vec![3],
            |said| said.entries[1][2] = 2,
            |said| said.entries[1] = vec![0, 1, 0],
            |said| said.entries[2][0] = 0,
            |said| said.entries[2] = vec![1, u64::MAX, 1],
        ];
        for (number, break_it) in broken.iter().enumerate() {
            let mut said = Said::sound();
            break_it(&mut said);
            let read = said.read();
            assert!(matches!(read, Err(StoreError::Corrupt { .. })), "{number}");
        }
    }
}
