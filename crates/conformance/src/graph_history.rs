//! How did quads come into a database, and how does it hold them?
//!
//! The same quads are loaded at once, or half of them, with the others written by updates that
//! also delete what they put back, and put what they delete. Later they are moved to where the
//! engine reads faster, which must not change what they are.

use crate::contents::as_data;
use crate::graph_placement::{hash, triple_text};
use crate::update_differential::Forced;
use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{Config, Database, EngineError, LoadOptions, MergePolicy, UpdateOptions};
use oxrdf::{GraphName, Literal, NamedNode, Quad, Term};
use oxrdfio::{RdfFormat, RdfSerializer};

/// Quads in one update.
const QUADS_TOGETHER: usize = 4000;
/// One of this many quads is deleted and put back.
const BACK_EVERY: u64 = 7;
/// For one of this many quads another is put and deleted.
const NOISE_EVERY: u64 = 11;

/// What was done to a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum History {
    /// All quads were loaded.
    Loaded,
    /// Half were loaded, updates did the rest.
    Updated,
    /// [`History::Updated`], and changed lists of neighbours are written out.
    Folded,
    /// [`History::Updated`], and the changes are merged into the base.
    Merged,
    /// Half were loaded, updates did the rest, and after each of them half of the predicates that
    /// had changed were merged.
    MergedInParts,
}

/// Loads quads at once. Graphs of `graphs` without quads are there as well.
///
/// # Errors
/// Whatever the engine says.
pub fn loaded(
    quads: &[Quad],
    graphs: &[NamedNode],
    config: Config,
) -> Result<Database, EngineError> {
    let database = Database::with_config(config);
    if !quads.is_empty() {
        let source = Source::bytes("data.nq", document(quads));
        database.load(vec![source], &LoadOptions::default(), &Progress::default())?;
    }
    for graph in graphs {
        let named = GraphName::from(graph.clone());
        if !quads.iter().any(|quad| quad.graph_name == named) {
            database.update(&format!("CREATE GRAPH {graph}"))?;
        }
    }
    Ok(database)
}

/// Loads half of the quads and puts the others there by updates. Blank nodes have names in a load
/// only, so their quads are in that half. Changes stay changes until they are folded or merged.
///
/// # Errors
/// Whatever the engine says.
pub fn updated(
    quads: &[Quad],
    graphs: &[NamedNode],
    config: Config,
) -> Result<Database, EngineError> {
    changed(quads, graphs, config, Forced::Nothing)
}

/// As [`updated`], with half of the predicates that have changed merged after each update.
///
/// # Errors
/// Whatever the engine says.
pub fn merged_in_parts(
    quads: &[Quad],
    graphs: &[NamedNode],
    config: Config,
) -> Result<Database, EngineError> {
    changed(quads, graphs, config, Forced::Half(quads.len() as u64))
}

fn changed(
    quads: &[Quad],
    graphs: &[NamedNode],
    mut config: Config,
    forced: Forced,
) -> Result<Database, EngineError> {
    config.merge = MergePolicy::never();
    let ground: Vec<&Quad> = quads.iter().filter(|quad| !has_blank(quad)).collect();
    let is_late = |quad: &Quad| number(quad).is_multiple_of(2);
    let (late, early): (Vec<Quad>, Vec<Quad>) = quads
        .iter()
        .cloned()
        .partition(|quad| !has_blank(quad) && is_late(quad));
    let mut writing = Writing {
        database: loaded(&early, graphs, config)?,
        forced,
        updates: 0,
    };
    let chunks = late.chunks(QUADS_TOGETHER.min(late.len().div_ceil(3).max(1)));
    for (index, chunk) in chunks.enumerate() {
        match index % 3 {
            2 => writing.add(chunk)?,
            _ => writing.write("INSERT", chunk)?,
        }
    }
    let one_of = |quad: &Quad, every: u64| (number(quad) / 2).is_multiple_of(every);
    let back = ground.iter().filter(|quad| one_of(quad, BACK_EVERY));
    let back: Vec<Quad> = back.copied().cloned().collect();
    let noise = ground.iter().filter(|quad| one_of(quad, NOISE_EVERY));
    let noise: Vec<Quad> = noise.map(|quad| noise_beside(quad)).collect();
    writing.write("DELETE", &back)?;
    writing.write("INSERT", &noise)?;
    writing.write("INSERT", &back)?;
    writing.write("DELETE", &noise)?;
    // Another graph comes and goes.
    let gone = NamedNode::new_unchecked("urn:jindou-conformance:gone");
    let in_gone = |quad: &Quad| Quad {
        graph_name: gone.clone().into(),
        ..quad.clone()
    };
    writing.write("INSERT", &back.iter().map(in_gone).collect::<Vec<_>>())?;
    writing.update(&format!("DROP SILENT GRAPH {gone}"))?;
    Ok(writing.database)
}

fn number(quad: &Quad) -> u64 {
    hash(&triple_text(quad)) >> 8
}

fn has_blank(quad: &Quad) -> bool {
    quad.subject.is_blank_node() || quad.object.is_blank_node()
}

/// A quad that is nowhere in the data, beside one that is.
fn noise_beside(quad: &Quad) -> Quad {
    let text = format!("noise {}", number(quad));
    Quad {
        object: Term::from(Literal::new_simple_literal(text)),
        ..quad.clone()
    }
}

/// A database under updates, and what is merged after each.
struct Writing {
    database: Database,
    forced: Forced,
    updates: u64,
}

impl Writing {
    fn merge(&mut self) -> Result<(), EngineError> {
        self.updates += 1;
        self.forced.merge(&self.database, self.updates).map(drop)
    }

    fn update(&mut self, request: &str) -> Result<(), EngineError> {
        self.database.update(request)?;
        self.merge()
    }

    fn write(&mut self, operation: &str, quads: &[Quad]) -> Result<(), EngineError> {
        for chunk in quads.chunks(QUADS_TOGETHER) {
            self.update(&format!("{operation} DATA {{\n{}}}", as_data(chunk)))?;
        }
        Ok(())
    }

    /// Adds quads as a document, without SPARQL.
    fn add(&mut self, quads: &[Quad]) -> Result<(), EngineError> {
        let source = Source::bytes("more.nq", document(quads));
        self.database
            .add_to_dataset(vec![source], &UpdateOptions::default())?;
        self.merge()
    }
}

fn document(quads: &[Quad]) -> Vec<u8> {
    let mut writer = RdfSerializer::from_format(RdfFormat::NQuads).for_writer(Vec::new());
    for quad in quads {
        writer
            .serialize_quad(quad)
            .expect("writing to memory never fails");
    }
    writer.finish().expect("writing to memory never fails")
}
