//! In which files does a base lie, and how does it come back from them?
//!
//! The dictionary's tables are files of their own, `terms-G-N.jnd`, and so are the edges of each
//! predicate that has many, `edges-G-N.jnd`; those of others share some. None is ever changed, and
//! no number N is used twice. `base-G-M.jnd` names them all, and holds what concerns all predicates:
//! characteristic sets, runs, graphs. A merge writes what it made and the next `base-G-M.jnd`; what
//! the new one does not name any more can go.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use jindou_dictionary::{DictionaryError, HashIndex, Residues, StringTable, TermTable};
use jindou_fabric::Region;
use jindou_model::{Direction, PredicateId, TermId, TermKind};

use crate::StoreError;
use crate::base::Base;
use crate::bulk::{Parts, assemble};
use crate::clusters::Clusters;
use crate::directory::{Current, Directory};
use crate::graph_table::GraphTable;
use crate::identity::Identity;
use crate::image::{ImageReader, ImageWriter};
use crate::layer::{Layer, LayerKind};
use crate::named::NamedGraphs;
use crate::node_part::NodePart;
use crate::predicate_edges::PredicateEdges;
use crate::predicate_graphs::PredicateGraphs;
use crate::regions::{groups, write_group};
use crate::runs::Runs;
use crate::segment::Segment;
use crate::tables::{Part, TermTables};

/// What a file holds, as its header says.
const KIND_BASE: u64 = 1;
const KIND_TERMS: u64 = 2;
const KIND_EDGES: u64 = 4;
/// The base of a node's part: a version that knows no parts, or those only that do not know the order of all texts,
/// refuses it.
const KIND_PART_OF_NODE: u64 = 7;

/// How the numbers of a table are told in its file: a range, a region, or residues.
const RANGE: u64 = 0;
const MAPPED: u64 = 1;
const DEALT: u64 = 2;

/// A file that is mapped.
pub(crate) type Mapped = Arc<(PathBuf, Region)>;

/// In which files a base lies.
#[derive(Clone, Debug, Default)]
pub(crate) struct BaseFiles {
    /// How many merges there were since the bulk load.
    pub(crate) merge: u64,
    /// No file has this number yet; numbers begin with 1.
    next: u64,
    /// The number of the file of each table, of vertices and of literals; 0 is none yet.
    tables: [Vec<u64>; 2],
    /// The number of the file of each predicate's edges; 0 is none yet.
    edges: Vec<u64>,
    /// The checksums of these files, by number.
    checksums: BTreeMap<u64, u64>,
    /// By number; 0 is that of the base itself.
    mapped: BTreeMap<u64, Mapped>,
    /// It was made in a bounded memory: what is read of files that it is written to is let go of.
    pub(crate) is_bounded: bool,
}

impl BaseFiles {
    /// The files of the base that the next merge makes of this one's, whose tables are `after`,
    /// once it merged some predicates.
    pub(crate) fn after_merge(
        &self,
        before: [&TermTables; 2],
        after: [&TermTables; 2],
        merged: &[PredicateId],
        predicates: usize,
    ) -> Self {
        let mut next = Self {
            merge: self.merge + 1,
            ..self.clone()
        };
        next.mapped.remove(&0);
        for kind in 0..2 {
            let file_of = |part: &Arc<crate::tables::Part>| {
                let mut parts = before[kind].parts().iter();
                let place = parts.position(|other| Arc::ptr_eq(other, part));
                let file = place.and_then(|place| self.tables[kind].get(place));
                file.copied().unwrap_or(0)
            };
            next.tables[kind] = after[kind].parts().iter().map(file_of).collect();
        }
        next.edges.resize(predicates, 0);
        for predicate in merged {
            next.edges[predicate.index()] = 0;
        }
        let used = next.numbers();
        next.mapped.retain(|number, _| used.contains(number));
        next.checksums.retain(|number, _| used.contains(number));
        next
    }

    /// The numbers of the files that it names.
    pub(crate) fn numbers(&self) -> BTreeSet<u64> {
        let all = self.tables.iter().flatten().chain(&self.edges);
        all.copied().filter(|number| *number > 0).collect()
    }

    /// The checksum of each predicate's edges' file, with what else that has; none if one was not written.
    pub(crate) fn checksums_of_edges(&self) -> Option<Vec<u64>> {
        let checksum = |file: &u64| self.checksums.get(file).copied();
        self.edges.iter().map(checksum).collect()
    }

    /// The names of all files, those of a generation.
    pub(crate) fn names(&self, generation: u64) -> Vec<String> {
        let tables = self.tables.iter().flatten();
        let tables = tables.map(|number| terms_name(generation, *number));
        let edges: BTreeSet<u64> = self.edges.iter().copied().filter(|n| *n > 0).collect();
        let edges = edges
            .into_iter()
            .map(|number| edges_name(generation, number));
        let base = base_name(generation, self.merge);
        tables.chain(edges).chain([base]).collect()
    }

    /// Those of a base of the same merge that has no files yet.
    pub(crate) fn of_part(&self) -> Self {
        Self {
            merge: self.merge,
            next: self.next,
            ..Self::default()
        }
    }

    pub(crate) fn mapped(&self) -> impl Iterator<Item = &(PathBuf, Region)> {
        self.mapped.values().map(|file| &**file)
    }

    /// The files of edges that are mapped.
    fn mapped_edges(&self) -> impl Iterator<Item = &Region> {
        let edges: BTreeSet<u64> = self.edges.iter().copied().collect();
        let mapped = edges.into_iter();
        mapped.filter_map(|number| Some(&self.mapped.get(&number)?.1))
    }

    /// Gives a number to each table and each predicate's edges that have none: `bytes` are those of
    /// the predicates'.
    fn assign(&mut self, bytes: &[usize]) {
        self.next = self.next.max(1);
        for file in self.tables.iter_mut().flatten().filter(|file| **file == 0) {
            *file = self.next;
            self.next += 1;
        }
        self.edges.resize(bytes.len(), 0);
        for group in groups(bytes, |predicate| self.edges[predicate] == 0) {
            group
                .into_iter()
                .for_each(|predicate| self.edges[predicate] = self.next);
            self.next += 1;
        }
    }
}

fn terms_name(generation: u64, number: u64) -> String {
    format!("terms-{generation}-{number}.jnd")
}

fn edges_name(generation: u64, number: u64) -> String {
    format!("edges-{generation}-{number}.jnd")
}

pub(crate) fn base_name(generation: u64, merge: u64) -> String {
    format!("base-{generation}-{merge}.jnd")
}

impl Base {
    /// The path of the file of a table, of vertices (0) or of literals (1).
    pub(crate) fn table_file(&self, kind: usize, place: usize) -> Option<PathBuf> {
        self.path_of(*self.files.tables[kind].get(place)?)
    }

    /// The path of the file of a predicate's edges.
    pub(crate) fn edges_file(&self, predicate: PredicateId) -> Option<PathBuf> {
        self.path_of(*self.files.edges.get(predicate.index())?)
    }

    /// The path of the file that names the others.
    pub(crate) fn own_file(&self) -> Option<PathBuf> {
        self.path_of(0)
    }

    fn path_of(&self, number: u64) -> Option<PathBuf> {
        self.files.mapped.get(&number).map(|file| file.0.clone())
    }

    /// Gives back the memory that holds what was read of the files of edges, which are then read again: for whoever
    /// has what it needs of them elsewhere.
    pub fn let_go_of_edges(&self) {
        self.files.mapped_edges().for_each(Region::let_go);
    }

    fn tables(&self) -> [&TermTables; 2] {
        [&self.vertices, &self.literals]
    }

    /// Bytes of a predicate's edges.
    pub(crate) fn edge_bytes(&self, predicate: PredicateId) -> usize {
        let layers = LayerKind::ALL.map(|kind| {
            let segments = [Direction::Out, Direction::In]
                .map(|direction| self.layer(kind).segment(predicate, direction));
            segments
                .into_iter()
                .flatten()
                .map(Segment::bytes)
                .sum::<usize>()
        });
        layers.iter().sum::<usize>() + self.named.part(predicate).map_or(0, |part| part.bytes())
    }
}

impl Directory {
    /// Writes those parts of a base that lie in no file yet, and the file that names all.
    ///
    /// # Errors
    /// What the operating system says; the store is as it was.
    fn write_parts(&self, base: &Base, generation: u64) -> Result<BaseFiles, StoreError> {
        let mut files = base.files.clone();
        for (kind, tables) in base.tables().into_iter().enumerate() {
            files.tables[kind].resize(tables.parts().len(), 0);
        }
        files.assign(&base.bytes_of_edges());
        for (kind, tables) in base.tables().into_iter().enumerate() {
            for (place, part) in tables.parts().iter().enumerate() {
                let is_there = base.files.tables[kind].get(place).is_some_and(|n| *n > 0);
                if !is_there {
                    let mut image = ImageWriter::default();
                    write_table(part, &mut image);
                    let name = terms_name(generation, files.tables[kind][place]);
                    let checksum = image.finish(self.storage(), &name, KIND_TERMS)?;
                    files.checksums.insert(files.tables[kind][place], checksum);
                }
            }
        }
        let mut new: BTreeMap<u64, Vec<PredicateId>> = BTreeMap::new();
        for (number, file) in files.edges.iter().enumerate() {
            let is_there = base.files.edges.get(number).is_some_and(|n| *n > 0);
            if *file > 0 && !is_there {
                let predicate = PredicateId(number as u32);
                new.entry(*file).or_default().push(predicate);
            }
        }
        for (number, predicates) in new {
            let edges = predicates.into_iter().map(|id| (id, base.edges_of(id)));
            let image = write_group(edges);
            let name = edges_name(generation, number);
            let checksum = image.finish(self.storage(), &name, KIND_EDGES)?;
            files.checksums.insert(number, checksum);
        }
        Ok(files)
    }

    /// Writes the files of a base that is not current, as far as they are not there, and maps them.
    ///
    /// # Errors
    /// What the operating system says; the store is as it was.
    pub(crate) fn write_base(
        &self,
        base: &Base,
        generation: u64,
        identity: Identity,
    ) -> Result<Base, StoreError> {
        let files = self.write_parts(base, generation)?;
        let mut image = ImageWriter::default();
        identity.0.into_iter().for_each(|word| image.word(word));
        image.word(files.next);
        for (tables, numbers) in base.tables().into_iter().zip(&files.tables) {
            let ends = tables.parts().iter().zip(numbers);
            let entries: Vec<u64> = ends.flat_map(|(part, file)| [part.end, *file]).collect();
            image.words(&entries);
        }
        image.words(&files.edges);
        let checksums = files.checksums.iter();
        image.words(
            &checksums
                .flat_map(|(n, sum)| [*n, *sum])
                .collect::<Vec<_>>(),
        );
        image.word(base.documents);
        image.words(&base.declared);
        image.word(u64::from(base.is_union));
        let predicates: Vec<u64> = base.predicate_terms.iter().map(|id| id.raw()).collect();
        image.words(&predicates);
        for layer in &base.layers {
            layer.clusters.write(&mut image);
        }
        base.named.graphs.write(&mut image);
        base.runs.write(&mut image);
        let kind = match &base.node_part {
            None => KIND_BASE,
            Some(part) => {
                part.write(&mut image);
                KIND_PART_OF_NODE
            }
        };
        let name = base_name(generation, files.merge);
        image.finish(self.storage(), &name, kind)?;
        self.read_base_beside(generation, files.merge, Some(base))
    }

    /// Maps the files of a base. Every file is compared with its checksum.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the name of the file that is missing bytes or altered.
    pub(crate) fn read_base(&self, current: Current) -> Result<Base, StoreError> {
        self.read_base_beside(current.generation, current.merge, None)
    }

    /// The numbers of the files that a base names.
    ///
    /// # Errors
    /// As [`Directory::read_base`].
    pub(crate) fn numbers_of_base(&self, current: Current) -> Result<BTreeSet<u64>, StoreError> {
        let mut image = self.open_base(current.generation, current.merge)?;
        let (_, named) = read_named(&mut image, current.merge)?;
        Ok(named.files.numbers())
    }

    fn open_base(&self, generation: u64, merge: u64) -> Result<ImageReader, StoreError> {
        let path = self.path().join(base_name(generation, merge));
        ImageReader::open_one_of(&path, &[KIND_BASE, KIND_PART_OF_NODE])
    }

    /// As [`Directory::read_base`]; what a base `known` has of the same files is taken from it.
    fn read_base_beside(
        &self,
        generation: u64,
        merge: u64,
        known: Option<&Base>,
    ) -> Result<Base, StoreError> {
        let mut image = self.open_base(generation, merge)?;
        let (identity, named) = read_named(&mut image, merge)?;
        let Named { mut files, ends } = named;
        let mut reader = PartReader {
            directory: self,
            generation,
            known,
            checksums: &files.checksums,
            mapped: BTreeMap::new(),
            is_of_node: image.kind() == KIND_PART_OF_NODE,
            is_bounded: known.is_some_and(|known| known.files.is_bounded),
        };
        let vertices = reader.tables(0, &files.tables[0], &ends[0])?;
        let literals = reader.tables(1, &files.tables[1], &ends[1])?;
        let documents = image.word()?;
        let declared = image.words()?;
        let is_union = image.word()? == 1;
        let predicate_terms: Vec<TermId> =
            image.words()?.into_iter().map(TermId::from_raw).collect();
        let is_known = |id: &TermId| id.kind() == TermKind::Vertex && id.number() < vertices.len();
        let count = predicate_terms.len();
        if !predicate_terms.iter().all(is_known) || files.edges.len() != count {
            return Err(image.corrupt("a predicate is no vertex"));
        }
        let clusters = [
            Clusters::read(&mut image, count)?,
            Clusters::read(&mut image, count)?,
        ];
        let graphs = Arc::new(GraphTable::read(&mut image)?);
        let runs = Runs::read(&mut image, graphs.len())?;
        let node_part = match image.kind() {
            KIND_PART_OF_NODE => {
                let terms = [vertices.len(), literals.len()];
                Some(NodePart::read(&mut image, count, &graphs, terms)?)
            }
            _ => None,
        };
        let types = clusters[LayerKind::Named as usize].type_edges();
        let edges = reader.edges(&files.edges, types, &graphs)?;
        let (segments, parts) = by_layer(edges);
        let named = NamedGraphs::join(graphs, parts);
        if !named.fits(&runs) {
            return Err(image.corrupt("the graphs of edges are of runs that are not there"));
        }
        let (mut clusters, mut kinds) = (clusters.into_iter(), LayerKind::ALL.into_iter());
        let layers = segments.map(|segments| {
            let clusters = clusters.next().expect("a table for each layer");
            let kind = kinds.next().expect("a kind of each layer");
            let layer = Layer::new(clusters, segments);
            match &node_part {
                None => layer,
                Some(part) => layer.of_node(part.counts(kind)),
            }
        });
        let mut mapped = reader.mapped;
        mapped.insert(0, Arc::new(image.file()));
        files.mapped = mapped;
        let mut base = assemble(Parts {
            vertices,
            literals,
            predicate_terms,
            layers,
            named,
            runs,
            documents,
        });
        base.declared = declared;
        base.is_union = is_union;
        base.identity = identity;
        base.files = files;
        if let Some(part) = node_part {
            base = base.of_node(part);
        }
        match base.check_part() {
            Ok(()) => Ok(base),
            Err(reason) => Err(image.corrupt(reason)),
        }
    }
}

/// The files that a base names, and the number behind the last string of each table.
struct Named {
    files: BaseFiles,
    ends: [Vec<u64>; 2],
}

fn read_named(image: &mut ImageReader, merge: u64) -> Result<(Identity, Named), StoreError> {
    let identity = Identity([image.word()?, image.word()?]);
    let mut files = BaseFiles {
        merge,
        next: image.word()?,
        ..BaseFiles::default()
    };
    let mut ends = [Vec::new(), Vec::new()];
    for (ends, tables) in ends.iter_mut().zip(&mut files.tables) {
        for entry in image.words()?.chunks(2) {
            let [end, file] = *entry else {
                return Err(image.corrupt("the list of tables is broken"));
            };
            ends.push(end);
            tables.push(file);
        }
    }
    files.edges = image.words()?;
    for entry in image.words()?.chunks(2) {
        let [number, checksum] = *entry else {
            return Err(image.corrupt("the list of checksums is broken"));
        };
        files.checksums.insert(number, checksum);
    }
    let tables = files.tables.iter().flatten();
    let is_sound = tables.clone().all(|file| *file > 0)
        && tables.chain(&files.edges).all(|file| *file < files.next)
        && files.tables.iter().all(|tables| !tables.is_empty());
    match is_sound {
        true => Ok((identity, Named { files, ends })),
        false => Err(image.corrupt("the list of files is broken")),
    }
}

fn write_table(part: &Part, image: &mut ImageWriter) {
    let table = &part.table;
    image.region(table.strings().region());
    match (table.numbers_region(), table.residues()) {
        (Some(numbers), _) => {
            image.word(MAPPED);
            image.region(numbers);
        }
        (None, Some(residues)) => {
            let all = residues.residues().iter().copied().map(u64::from);
            image.word(DEALT);
            image.word(residues.bits().into());
            image.words(&all.collect::<Vec<_>>());
        }
        (None, None) => image.word(RANGE),
    }
    if let Some(index) = &part.index {
        image.region(index.region());
    }
}

fn read_table(image: &mut ImageReader) -> Result<TermTable, StoreError> {
    let corrupt = |image: &ImageReader, error: DictionaryError| image.corrupt(&error.to_string());
    let strings = image.region()?;
    let strings = StringTable::open(strings).map_err(|error| corrupt(image, error))?;
    let numbers = match image.word()? {
        RANGE => None,
        MAPPED => Some(image.region()?),
        DEALT => {
            let residues = read_residues(image)?;
            return Ok(TermTable::of_residues(residues, strings));
        }
        _ => return Err(image.corrupt("it does not say which numbers its terms have")),
    };
    TermTable::open(strings, numbers, 0).map_err(|error| corrupt(image, error))
}

fn read_residues(image: &mut ImageReader) -> Result<Residues, StoreError> {
    let bits = u32::try_from(image.word()?).ok();
    let residues: Option<Vec<u32>> = (image.words()?.into_iter())
        .map(|residue| u32::try_from(residue).ok())
        .collect();
    let read = bits.zip(residues);
    read.and_then(|(bits, residues)| Residues::new(bits, &residues))
        .ok_or_else(|| image.corrupt("it has the terms of shards that cannot be"))
}

fn read_index(image: &mut ImageReader) -> Result<HashIndex, StoreError> {
    let region = image.region()?;
    HashIndex::open(region).map_err(|error| image.corrupt(&error.to_string()))
}

/// The segments of all predicates by layer and direction, and the graphs of their edges.
pub(crate) type ByLayer = ([Segments; 2], Vec<Arc<PredicateGraphs>>);

/// Segments by direction and predicate.
pub(crate) type Segments = [Vec<Option<Segment>>; 2];

pub(crate) fn by_layer(edges: Vec<PredicateEdges>) -> ByLayer {
    let mut all = ByLayer::default();
    for PredicateEdges {
        segments, graphs, ..
    } in edges
    {
        for (layer, sides) in all.0.iter_mut().zip(segments) {
            for (side, segment) in layer.iter_mut().zip(sides) {
                side.push(segment);
            }
        }
        all.1.push(graphs);
    }
    all
}

/// Reads the files that a base names, but for those that a known base has read.
struct PartReader<'a> {
    directory: &'a Directory,
    generation: u64,
    known: Option<&'a Base>,
    checksums: &'a BTreeMap<u64, u64>,
    mapped: BTreeMap<u64, Mapped>,
    /// Memory that files were read into is given back.
    is_bounded: bool,
    /// The base is the part of a node: all tables but the first, which is empty, have an index.
    is_of_node: bool,
}

impl PartReader<'_> {
    /// The known base and the file, if it lies in that.
    fn known(&mut self, number: u64) -> Option<&Base> {
        let known = self.known?;
        let file = known.files.mapped.get(&number)?;
        self.mapped.insert(number, Arc::clone(file));
        self.known
    }

    fn open(&mut self, number: u64, name: &str, kind: u64) -> Result<ImageReader, StoreError> {
        let path = self.directory.path().join(name);
        let image = match self.is_bounded {
            true => ImageReader::open_and_let_go(&path, kind)?,
            false => ImageReader::open(&path, kind)?,
        };
        if self.checksums.get(&number) != Some(&image.checksum()) {
            return Err(image.corrupt("it is not the file that its base names"));
        }
        self.mapped.insert(number, Arc::new(image.file()));
        Ok(image)
    }

    fn tables(
        &mut self,
        kind: usize,
        files: &[u64],
        ends: &[u64],
    ) -> Result<TermTables, StoreError> {
        let mut parts = Vec::with_capacity(files.len());
        let mut first = 0;
        for (place, (file, end)) in files.iter().zip(ends).enumerate() {
            if let Some(known) = self.known(*file) {
                parts.push(Arc::clone(&known.tables()[kind].parts()[place]));
            } else {
                let name = terms_name(self.generation, *file);
                let mut image = self.open(*file, &name, KIND_TERMS)?;
                let table = read_table(&mut image)?;
                let part = match (place, self.is_of_node) {
                    (0, _) => Part::ground(table, *end),
                    (_, false) => Part::new(table, first, *end),
                    (_, true) => {
                        let index = read_index(&mut image)?;
                        Part::new(table, first, *end).map(|part| part.with_index(index))
                    }
                };
                parts.push(Arc::new(part.ok_or_else(|| {
                    image.corrupt("its terms are not those that the base says it has")
                })?));
            }
            first = *end;
        }
        Ok(TermTables::of_parts(
            parts,
            self.known.map(|known| known.tables()[kind]),
        ))
    }

    fn edges(
        &mut self,
        files: &[u64],
        named_types: u64,
        graphs: &GraphTable,
    ) -> Result<Vec<PredicateEdges>, StoreError> {
        let mut all = vec![PredicateEdges::none(); files.len()];
        let mut of_file: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (predicate, file) in files.iter().enumerate().filter(|(_, file)| **file > 0) {
            of_file.entry(*file).or_default().push(predicate);
        }
        for (file, predicates) in of_file {
            if let Some(known) = self.known(file) {
                for predicate in predicates {
                    all[predicate] = known.edges_of(PredicateId(predicate as u32));
                }
                continue;
            }
            let name = edges_name(self.generation, file);
            let mut image = self.open(file, &name, KIND_EDGES)?;
            let mut wanted: BTreeSet<usize> = predicates.into_iter().collect();
            for _ in 0..image.length()? {
                let predicate = image.length()?;
                let types = if predicate == 0 { named_types } else { 0 };
                // What is not wanted was written anew later.
                let is_wanted = wanted.remove(&predicate);
                let edges = PredicateEdges::read(&mut image, is_wanted.then_some(types), graphs)?;
                if is_wanted {
                    all[predicate] = edges;
                }
            }
            if self.is_bounded {
                image.file().1.let_go();
            }
            if !wanted.is_empty() {
                return Err(image.corrupt("a predicate that the base has in it is missing"));
            }
        }
        Ok(all)
    }
}
