//! Is all that a store derives from its edges what the edges say?
//!
//! A checksum tells that a file is as it was written, not that it was written rightly. This reads
//! the whole base and compares what it says twice: the dictionary in both directions, every edge
//! by subject and by object, the index of named graphs and the table of clusters with the edges,
//! and the counts of the changes with what is there.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jindou_model::{Direction, Pattern, PredicateId, TermId, TermKind};
use oxrdf::vocab::rdf;
use xxhash_rust::xxh3::xxh3_64;

use crate::delta::Snapshot;
use crate::named::{EdgeGraphs, OfGraph};
use crate::{Base, Layer, LayerKind, NodePart, Segment, StoreError};
use jindou_dictionary::{DictionaryError, HashIndex, TermTable};

/// A sum over quads that depends on each of them and not on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    quads: u64,
    hashes: u64,
}

impl Sum {
    fn add(&mut self, subject: TermId, predicate: PredicateId, object: TermId, graph: TermId) {
        let words = [
            subject.raw(),
            u64::from(predicate.0),
            object.raw(),
            graph.raw(),
        ];
        self.quads += 1;
        self.hashes = self
            .hashes
            .wrapping_add(xxh3_64(bytemuck::cast_slice(&words)));
    }

    fn add_edge(
        &mut self,
        direction: Direction,
        predicate: PredicateId,
        (key, to, graph): (TermId, TermId, TermId),
    ) {
        match direction {
            Direction::Out => self.add(key, predicate, to, graph),
            Direction::In => self.add(to, predicate, key, graph),
        }
    }
}

/// The error of a file: that of a part, or of the folder where the base lies in none.
fn wrong(path: Option<PathBuf>, folder: &Path, reason: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt {
        path: path.unwrap_or_else(|| folder.to_owned()),
        reason: reason.to_string(),
    }
}

/// Reads the whole base.
///
/// # Errors
/// [`StoreError::Corrupt`] with the file in that folder.
pub(crate) fn base(base: &Base, folder: &Path) -> Result<(), StoreError> {
    let of_base = |reason: &str| wrong(base.own_file(), folder, reason);
    for (kind, tables) in [&base.vertices, &base.literals].into_iter().enumerate() {
        for (place, part) in tables.parts().iter().enumerate() {
            let checked = match (base.node_part(), &part.index) {
                (Some(of), Some(index)) => part_of_dictionary(&part.table, index, of, part.end),
                _ => dictionary(&part.table),
            };
            checked.map_err(|reason| wrong(base.table_file(kind, place), folder, reason))?;
        }
    }
    let known = |id: TermId| match id.kind() {
        TermKind::Vertex => id.number() < base.vertices.len(),
        TermKind::Literal => id.number() < base.literals.len(),
        TermKind::None | TermKind::Window | TermKind::Computed => false,
        _ => true,
    };
    let declared = base
        .declared
        .iter()
        .all(|raw| known(TermId::from_raw(*raw)));
    if !declared || !base.declared.is_sorted() {
        return Err(of_base("the list of declared graphs is broken"));
    }
    if !predicates(base) {
        return Err(of_base("predicates and their vertices are mixed up"));
    }
    (base.runs.check(base.vertices.len())).map_err(of_base)?;
    if let Some(part) = base.node_part() {
        (part.whole.texts.check(base)).map_err(|reason| of_base(&reason))?;
    }
    for layer in &base.layers {
        (layer
            .clusters
            .check(base.vertices.len(), layer.edges() == 0, &known))
        .map_err(of_base)?;
        for number in 0..base.predicate_count() {
            let predicate = PredicateId(number as u32);
            let checked = match base.node_part() {
                None => predicate_edges(layer, predicate, &known),
                Some(part) => rows_of_node(layer, predicate, part, &known),
            };
            checked.map_err(|reason| {
                let mut iri = Vec::new();
                // Every string was read above.
                base.push_key(base.predicate_term(predicate), &mut iri);
                let iri = String::from_utf8_lossy(&iri);
                wrong(
                    base.edges_file(predicate),
                    folder,
                    format!("<{iri}>: {reason}"),
                )
            })?;
        }
    }
    named(base, &known).map_err(of_base)
}

/// Each predicate is a vertex of its own, the first one `rdf:type`.
fn predicates(base: &Base) -> bool {
    let terms = &base.predicate_terms;
    let is_one = |(number, term): (usize, &TermId)| {
        term.kind() == TermKind::Vertex
            && term.number() < base.vertices.len()
            && base.predicate_of_term(*term) == Some(PredicateId(number as u32))
    };
    let mut iri = Vec::new();
    terms.iter().enumerate().all(is_one) && {
        base.push_key(base.predicate_term(PredicateId::TYPE), &mut iri);
        iri == rdf::TYPE.as_str().as_bytes()
    }
}

/// Every string of a node's part has a number of the node's shards, and the index has those whose hash is of these.
fn part_of_dictionary(
    table: &TermTable,
    index: &HashIndex,
    part: &NodePart,
    end: u64,
) -> Result<(), String> {
    let damaged = |error: DictionaryError| error.to_string();
    table.verify().map_err(damaged)?;
    index.verify().map_err(damaged)?;
    let mut decoder = table.decoder();
    for number in table.numbers() {
        // Literals are dealt as vertices are.
        if !part.has_rows_of(TermId::vertex(number)) {
            return Err(format!("string {number} is that of another node"));
        }
        let hash = jindou_dictionary::hash(decoder.get(number).map_err(damaged)?);
        let (mut is_found, mut are_given) = (false, true);
        index.candidates(hash, |candidate| {
            is_found |= candidate == number;
            are_given &= candidate < end;
        });
        let is_asked = part.holds(part.map().shards().of_hash(hash));
        if !are_given || is_found != is_asked {
            return Err(format!("string {number} is not found under its number"));
        }
    }
    Ok(())
}

/// Every string is found under its id, and the bytes are those that were written.
fn dictionary(table: &TermTable) -> Result<(), String> {
    table.verify().map_err(|error| error.to_string())?;
    let mut decoder = table.decoder();
    for number in table.numbers() {
        let key = decoder.get(number).map_err(|error| error.to_string())?;
        if table.lookup(key) != Some(number) {
            return Err(format!("string {number} is not found under its number"));
        }
    }
    Ok(())
}

/// The edges of a layer, in both directions.
fn predicate_edges(
    layer: &Layer,
    predicate: PredicateId,
    known: &dyn Fn(TermId) -> bool,
) -> Result<(), &'static str> {
    let mut sums = [Sum::default(); 2];
    for direction in [Direction::Out, Direction::In] {
        let segment = layer.segment(predicate, direction);
        layer
            .clusters
            .check_predicate(predicate, direction, segment)?;
        let Some(segment) = segment else { continue };
        segment.check(false, known)?;
        let sum = &mut sums[direction as usize];
        for_each_edge(segment, &mut |key, to| {
            sum.add_edge(direction, predicate, (key, to, TermId::NONE));
        });
    }
    match sums[0] == sums[1] {
        true => Ok(()),
        false => Err("the edges by subject are not those by object"),
    }
}

/// The rows of a predicate that the part of a node has: are they its own, and is what it knows of the whole what the
/// clusters say, which are whole?
fn rows_of_node(
    layer: &Layer,
    predicate: PredicateId,
    part: &NodePart,
    known: &dyn Fn(TermId) -> bool,
) -> Result<(), &'static str> {
    let whole = layer.clusters.counts_by_subject(predicate);
    if predicate != PredicateId::TYPE && layer.counts(predicate, Direction::Out) != whole {
        return Err("what it knows of the whole is not what the table of clusters says");
    }
    for direction in [Direction::Out, Direction::In] {
        let Some(segment) = layer.segment(predicate, direction) else {
            continue;
        };
        segment.check(false, known)?;
        let mut are_own = true;
        (segment.domain()).for_each(&mut |key| are_own &= part.has_rows_of(key));
        if !are_own {
            return Err("it has rows of another node's shards");
        }
    }
    Ok(())
}

fn for_each_edge(segment: &Segment, visit: &mut dyn FnMut(TermId, TermId)) {
    segment.domain().for_each(&mut |key| {
        let list = segment.neighbours(key);
        (0..list.len()).for_each(|index| visit(key, list.get(index)));
    });
}

/// The quads of named graphs, by edge and by graph.
fn named(base: &Base, known: &dyn Fn(TermId) -> bool) -> Result<(), &'static str> {
    let (mut by_edge, mut by_graph) = (Sum::default(), Sum::default());
    let graphs: Vec<TermId> = (0..base.named.graphs.len())
        .map(|number| base.named.id(number as u32))
        .collect();
    if !graphs.iter().all(|graph| known(*graph)) {
        return Err("a named graph is no term of the store");
    }
    let layer = base.layer(LayerKind::Named);
    let mut is_sound = true;
    for number in 0..base.predicate_count() {
        let predicate = PredicateId(number as u32);
        let mut of_edges = EdgeGraphs::new(base, predicate);
        let all = Pattern {
            subject: None,
            predicate: Some(predicate),
            object: None,
        };
        let flow = layer.for_each_match(&all, &mut |s, p, o, _| {
            let list = of_edges.of(s, o);
            is_sound &= list.iter().is_sorted_by(|a, b| a < b);
            for graph in list.iter() {
                match graphs.get(graph as usize) {
                    Some(graph) => by_edge.add(s, p, o, *graph),
                    None => is_sound = false,
                }
            }
            ControlFlow::Continue(())
        });
        debug_assert!(flow.is_continue());
    }
    for graph in &graphs {
        let before = by_graph.quads;
        for predicate in base.named.predicates_of(*graph) {
            let Some(of_graph) = OfGraph::new(base, *graph, predicate) else {
                return Err("the index of named graphs is out of order");
            };
            let begin = by_graph.quads;
            let flow = of_graph.for_each(&mut |s, o| {
                by_graph.add(s, predicate, o, *graph);
                ControlFlow::Continue(())
            });
            debug_assert!(flow.is_continue());
            is_sound &= by_graph.quads - begin == of_graph.edges();
        }
        is_sound &= by_graph.quads - before == base.named.quads_of(*graph);
    }
    match is_sound && by_edge == by_graph && by_edge.quads == base.named.quads() {
        true => Ok(()),
        false => Err("the quads of named graphs by edge and by graph differ"),
    }
}

/// Reads every quad of a snapshot and compares their number with what it says.
///
/// # Errors
/// [`StoreError::Corrupt`] with the file of the generation in that folder.
pub(crate) fn counts(snapshot: &Snapshot, folder: &Path) -> Result<(), StoreError> {
    let all = Pattern {
        subject: None,
        predicate: None,
        object: None,
    };
    let mut found = (0_u64, 0_u64);
    let flow = snapshot
        .default_graph()
        .for_each_match(&all, &mut |_, _, _, _| {
            found.0 += 1;
            ControlFlow::Continue(())
        });
    debug_assert!(flow.is_continue());
    let flow = snapshot.for_each_quad(&all, &mut |_, _, _, _| {
        found.1 += 1;
        ControlFlow::Continue(())
    });
    debug_assert!(flow.is_continue());
    let said = match snapshot.base().node_part() {
        None => (snapshot.triples(), snapshot.named_quads()),
        Some(_) => snapshot.base().own_quads(),
    };
    match found == said {
        true => Ok(()),
        false => Err(StoreError::Corrupt {
            path: folder.to_owned(),
            reason: format!(
                "it holds {} triples and {} quads of named graphs and says {} and {}",
                found.0, found.1, said.0, said.1
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::{build, rebuild};
    use crate::delta::Changes;
    use jindou_model::{IdQuad, SnapshotNumber};

    /// A base with types, literals and named graphs.
    fn sample() -> Base {
        let empty = build(Vec::new(), 0).unwrap();
        let mut snapshot = Snapshot::of_base(empty, 1, SnapshotNumber(1));
        let mut add = Vec::new();
        let class = snapshot.intern_node(b"http://e/C").unwrap();
        let type_of = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
        for number in 0..40_u32 {
            let mut node = |text: String| snapshot.intern_node(text.as_bytes()).unwrap();
            let subject = node(format!("http://e/s{number}"));
            let other = node(format!("http://e/s{}", number * 7 % 40));
            let graph = node(format!("http://e/g{}", number % 3));
            let text = format!("\"text {number}");
            let literal = snapshot.intern_literal(text.as_bytes()).unwrap();
            let mut quad = |predicate: &str, object, graph| IdQuad {
                subject,
                predicate: snapshot.intern_predicate(predicate).unwrap(),
                object,
                graph,
            };
            add.push(quad("http://e/p", other, TermId::NONE));
            add.push(quad("http://e/q", literal, TermId::NONE));
            add.push(quad("http://e/p", other, graph));
            if number % 2 == 0 {
                add.push(quad(type_of, class, TermId::NONE));
                add.push(quad("http://e/even", subject, TermId::NONE));
            }
        }
        snapshot.apply(&Changes {
            add,
            ..Changes::default()
        });
        rebuild(&snapshot).unwrap()
    }

    fn reason(altered: &Base) -> String {
        let refused = base(altered, Path::new("/store"));
        refused
            .expect_err("parts contradict each other")
            .to_string()
    }

    #[test]
    fn what_was_built_agrees_with_itself() {
        base(&sample(), Path::new("/store")).unwrap();
        base(&build(Vec::new(), 0).unwrap(), Path::new("/store")).unwrap();
    }

    #[test]
    fn a_part_that_contradicts_another_is_named() {
        let number = sample().find_predicate("http://e/p").unwrap().index();
        let other = sample().find_predicate("http://e/even").unwrap().index();
        let mut altered = sample();
        altered.layers[0].segments[1][number] = None;
        assert!(
            reason(&altered).contains("<http://e/p>"),
            "{}",
            reason(&altered)
        );
        let mut altered = sample();
        let mut edge = 0;
        let segment = altered.layers[0].segments[0][other].as_ref().unwrap();
        segment.domain().for_each(&mut |key| edge = key.raw());
        altered.layers[0].segments[0][other] = Some(Segment::from_sorted(&[(edge, edge)]));
        assert!(reason(&altered).contains("<http://e/even>"));
        let mut altered = sample();
        let unknown = TermId::vertex(1_000_000).raw();
        altered.layers[0].segments[0][number] = Some(Segment::from_sorted(&[(edge, unknown)]));
        assert!(reason(&altered).contains("/store"));
        let mut altered = sample();
        altered.vertices = altered.literals.clone();
        assert!(reason(&altered).contains("/store"));
        let mut altered = sample();
        altered.predicate_terms.swap(0, 1);
        assert!(reason(&altered).contains("predicate"));
        let mut altered = sample();
        altered.declared = vec![unknown];
        assert!(reason(&altered).contains("declared"));
        let mut altered = sample();
        altered.layers[0].clusters = build(Vec::new(), 0).unwrap().layers[0].clusters.clone();
        assert!(reason(&altered).contains("clusters"));
    }
}
