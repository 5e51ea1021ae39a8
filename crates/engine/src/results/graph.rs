//! How is a graph or a dataset written, quad by quad?

use std::sync::Arc;

use jindou_exec::MemoryPool;
use jindou_model::TermId;
use oxrdf::TripleRef;

use super::columnar::{Columnar, Encoding};
use super::columns::Shape;
use super::names::Names;
use super::prefixed::Prefixed;
use super::rows::{ENOUGH_BYTES, Frame, ROWS_BEFORE};
use super::stage::{IdRows, Ids, Stage};
use super::style::Style;
use super::{Advance, GraphFormat, QuadText, ResultsError, TermText, WriteError, write_term};
use crate::{Graph, TermDecoder};

/// The columns of quads: their shapes, names, and whether a cell may be empty.
const COLUMNS: [(Shape, &str, bool); 4] = [
    (Shape::Node, "subject", false),
    (Shape::RepeatedNode, "predicate", false),
    (Shape::Term, "object", false),
    (Shape::RepeatedNode, "graph", true),
];

/// Writes a graph or a dataset in one format: triples or quads, then [`finish`](Self::finish).
///
/// N-Triples and N-Quads hold nothing back. Turtle, TriG, N3, RDF/XML and JSON-LD hold back quads up to some
/// hundred KiB, or what [`with_memory`](Self::with_memory) allows: a graph that is whole then declares the
/// prefixes that it uses, and is laid out in Turtle, TriG and N3 as a person would do it: by subject and
/// predicate, with nested blank nodes and lists. Otherwise quads are written in the order in which they
/// come. Arrow and Parquet hold some 16 MiB at most; their columns are `subject` and `predicate` (the IRI, or
/// `_:label`), `object` (a struct of kind, value, datatype and language) and `graph` (null in the
/// default graph).
pub struct GraphWriter {
    format: GraphFormat,
    quads: u64,
    /// Whether prefixes were asked for.
    is_begun: bool,
    encoder: Encoder,
    /// What is left of a batch, from this triple on.
    rest: Option<(Vec<[TermId; 3]>, usize)>,
}

enum Encoder {
    /// A line per triple, written here.
    Lines,
    /// The same, of a query with more than a few triples.
    Staged(Box<Stage>),
    Prefixed(Box<Prefixed>),
    /// Not made before there is something to append to.
    Columns(Encoding, Option<Box<Columnar>>),
}

impl GraphWriter {
    /// A writer in this format.
    #[must_use]
    pub fn new(format: GraphFormat) -> Self {
        let encoder = match format {
            GraphFormat::NTriples | GraphFormat::NQuads => Encoder::Lines,
            GraphFormat::Turtle
            | GraphFormat::N3
            | GraphFormat::RdfXml
            | GraphFormat::TriG
            | GraphFormat::JsonLd => Encoder::Prefixed(Box::new(Prefixed::new(format))),
            GraphFormat::Arrow => Encoder::Columns(Encoding::ArrowStream, None),
            GraphFormat::Parquet => Encoder::Columns(Encoding::Parquet, None),
        };
        Self {
            format,
            quads: 0,
            is_begun: false,
            encoder,
            rest: None,
        }
    }

    /// Abbreviates IRIs by these prefixes, where the format has them.
    #[must_use]
    pub fn with_names(mut self, names: Names) -> Self {
        if let Encoder::Prefixed(writer) = &mut self.encoder {
            writer.set_names(names);
        }
        self
    }

    /// Lets a format with prefixes gather quads up to so many bytes, with what is written of them, as
    /// long as the pool has as many.
    #[must_use]
    pub fn with_memory(mut self, pool: Option<&Arc<MemoryPool>>, most_bytes: usize) -> Self {
        if let Encoder::Prefixed(writer) = &mut self.encoder {
            writer.set_memory(pool, most_bytes);
        }
        self
    }

    /// Triples and quads written so far.
    #[must_use]
    pub fn triples(&self) -> u64 {
        self.quads
    }

    /// Appends one triple, of the default graph.
    ///
    /// # Errors
    /// As [`Self::quad`].
    pub fn triple(&mut self, out: &mut Vec<u8>, triple: TripleRef<'_>) -> Result<(), ResultsError> {
        self.quad(out, triple.into())
    }

    /// Appends one quad.
    ///
    /// # Errors
    /// What the format cannot hold: [`ResultsError::NoNamedGraphs`], [`ResultsError::NotXml`],
    /// [`ResultsError::Graph`] and [`ResultsError::TooLong`]; the output is then of no use.
    ///
    /// # Panics
    /// If the subject or the graph is a literal.
    pub fn quad(&mut self, out: &mut Vec<u8>, quad: QuadText<'_>) -> Result<(), ResultsError> {
        let format = self.format;
        if let Some(graph) = quad.graph.filter(|_| !format.has_named_graphs()) {
            let mut name = Vec::new();
            write_term(&mut name, graph, false);
            let graph = String::from_utf8_lossy(&name).into_owned();
            return Err(ResultsError::NoNamedGraphs { format, graph });
        }
        match &mut self.encoder {
            Encoder::Lines | Encoder::Staged(_) => write_line(out, quad),
            Encoder::Prefixed(writer) => writer.quad(out, quad)?,
            Encoder::Columns(encoding, columns) => {
                let columns = begun(*encoding, columns, out)?;
                columns.cell(Some(quad.subject))?;
                columns.cell(Some(TermText::Iri(quad.predicate)))?;
                columns.cell(Some(quad.object))?;
                columns.cell(quad.graph)?;
                columns.end_row(out)?;
            }
        }
        self.quads += 1;
        Ok(())
    }

    /// Appends some more triples of a query, mostly some tens or hundreds of KiB; `None` at the
    /// end. All triples are of one query.
    ///
    /// Where the format is a line per triple, the text of terms that come again, or that are
    /// neighbours in the dictionary, is remembered, and threads that the query may use help with
    /// answers of more than some thousands of triples; these stay in their order.
    ///
    /// # Errors
    /// What the query met, and as [`Self::quad`].
    pub fn advance(
        &mut self,
        out: &mut Vec<u8>,
        graph: &mut Graph,
    ) -> Result<Option<Advance>, WriteError> {
        if !self.is_begun {
            self.is_begun = true;
            if self.quads == 0
                && let Encoder::Prefixed(writer) = &mut self.encoder
            {
                writer.set_names(graph.names());
            }
        }
        let stored = Arc::clone(&graph.running().graph);
        stored.read(|| self.advance_unchecked(out, graph))?
    }

    /// As [`Self::advance`] for files of the store that are whole.
    fn advance_unchecked(
        &mut self,
        out: &mut Vec<u8>,
        graph: &mut Graph,
    ) -> Result<Option<Advance>, WriteError> {
        if !matches!(self.encoder, Encoder::Staged(_)) {
            let (triples, from) = match self.rest.take() {
                Some(rest) => rest,
                None => match graph.next_batch()? {
                    Some(triples) => (triples, 0),
                    None => return Ok(None),
                },
            };
            if !matches!(self.encoder, Encoder::Lines) || triples.len() < ROWS_BEFORE {
                return Ok(Some(self.batch(out, triples, from, graph)?));
            }
            let ids = Ids::last_of(graph.running(), IdRows::Triples(triples));
            let stage = Stage::new(Style::NTriples, frame(), ids);
            self.encoder = Encoder::Staged(Box::new(stage));
        }
        let Encoder::Staged(stage) = &mut self.encoder else {
            unreachable!("made above")
        };
        let Some(step) = stage.advance(out, graph)? else {
            return Ok(None);
        };
        self.quads += step.rows;
        Ok(Some(Advance { waits: step.waits }))
    }

    /// Appends triples of a batch one by one.
    fn batch(
        &mut self,
        out: &mut Vec<u8>,
        triples: Vec<[TermId; 3]>,
        from: usize,
        graph: &Graph,
    ) -> Result<Advance, ResultsError> {
        let mut decoder = graph.decoder();
        let before = out.len();
        let mut next = from;
        while next < triples.len() && out.len() - before < ENOUGH_BYTES {
            match self.encoder {
                Encoder::Lines => {
                    write_line_of_ids(out, triples[next], &mut decoder);
                    self.quads += 1;
                }
                _ => {
                    let triple = decoder.triple(triples[next]);
                    self.quad(out, triple.as_ref().into())?;
                }
            }
            next += 1;
        }
        let waits = next == triples.len();
        if !waits {
            self.rest = Some((triples, next));
        }
        Ok(Advance { waits })
    }

    /// Told, between quads, that the next one may be long in coming: what an Arrow stream held
    /// back is written, if it is much or the last ones left a while ago.
    ///
    /// # Errors
    /// [`ResultsError::Arrow`].
    pub fn pause(&mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        match &mut self.encoder {
            Encoder::Columns(_, Some(columns)) => columns.pause(out),
            _ => Ok(()),
        }
    }

    /// Appends what comes after the last quad.
    ///
    /// # Errors
    /// [`ResultsError::Graph`], [`ResultsError::Arrow`] or [`ResultsError::Parquet`] when the
    /// serializer cannot end here.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        match self.encoder {
            Encoder::Lines | Encoder::Staged(_) => {}
            Encoder::Prefixed(writer) => writer.finish(out)?,
            Encoder::Columns(encoding, mut columns) => {
                begun(encoding, &mut columns, out)?.finish(out)?;
            }
        }
        Ok(())
    }
}

/// What stands around the terms of a triple.
fn frame() -> Frame {
    let after = [&b" "[..], b" ", b" .\n"].map(<[u8]>::to_vec);
    Frame::After {
        cells: after.to_vec(),
        empty: Vec::new(),
    }
}

fn begun<'c>(
    encoding: Encoding,
    columns: &'c mut Option<Box<Columnar>>,
    out: &mut Vec<u8>,
) -> Result<&'c mut Columnar, ResultsError> {
    if columns.is_none() {
        *columns = Some(Box::new(Columnar::new(encoding, &COLUMNS, out)?));
    }
    Ok(columns.as_mut().expect("made above"))
}

fn write_line(out: &mut Vec<u8>, quad: QuadText<'_>) {
    write_term(out, quad.subject, false);
    out.push(b' ');
    write_term(out, TermText::Iri(quad.predicate), false);
    out.push(b' ');
    write_term(out, quad.object, false);
    if let Some(graph) = quad.graph {
        out.push(b' ');
        write_term(out, graph, false);
    }
    out.extend_from_slice(b" .\n");
}

fn write_line_of_ids(out: &mut Vec<u8>, triple: [TermId; 3], decoder: &mut TermDecoder<'_>) {
    for id in triple {
        write_term(out, decoder.text(id).expect("a triple has terms"), false);
        out.push(b' ');
    }
    out.extend_from_slice(b".\n");
}
