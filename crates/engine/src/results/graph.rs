//! How is a graph or a dataset written, quad by quad?

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use jindou_model::TermId;
use oxrdf::{
    BlankNodeRef, GraphNameRef, LiteralRef, NamedNodeRef, NamedOrBlankNodeRef, QuadRef, TermRef,
    TripleRef,
};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfSerializer, WriterQuadSerializer};

use super::columnar::{Columnar, Encoding};
use super::columns::Shape;
use super::escape::not_xml;
use super::rows::{ENOUGH_BYTES, Frame, ROWS_BEFORE};
use super::stage::{Ids, Stage};
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
/// Text holds nothing back but what the format needs to group triples of one subject. Arrow and
/// Parquet hold some 16 MiB at most; their columns are `subject` and `predicate` (the IRI, or
/// `_:label`), `object` (a struct of kind, value, datatype and language) and `graph` (null in the
/// default graph).
///
/// Turtle, TriG and N3 go on with `;` and `,` where a quad has the subject and the predicate of the
/// one before, and abbreviate IRIs by the prefixes of the query that [`advance`](Self::advance)
/// writes.
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
    Foreign(Box<WriterQuadSerializer<Shared>>, Shared),
    /// Not made before there is something to append to.
    Columns(Encoding, Option<Box<Columnar>>),
}

impl GraphWriter {
    /// A writer in this format.
    #[must_use]
    pub fn new(format: GraphFormat) -> Self {
        let foreign = |format| Encoder::foreign(RdfSerializer::from_format(format));
        let encoder = match format {
            GraphFormat::NTriples | GraphFormat::NQuads => Encoder::Lines,
            GraphFormat::Turtle => foreign(RdfFormat::Turtle),
            GraphFormat::N3 => foreign(RdfFormat::N3),
            GraphFormat::RdfXml => foreign(RdfFormat::RdfXml),
            GraphFormat::TriG => foreign(RdfFormat::TriG),
            GraphFormat::JsonLd => foreign(RdfFormat::JsonLd {
                profile: JsonLdProfileSet::empty(),
            }),
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

    /// Abbreviates IRIs by these prefixes, where the format has them; before the first quad.
    pub(super) fn abbreviate(&mut self, prefixes: &[(String, String)]) {
        let format = match self.format {
            GraphFormat::Turtle => RdfFormat::Turtle,
            GraphFormat::TriG => RdfFormat::TriG,
            GraphFormat::N3 => RdfFormat::N3,
            _ => return,
        };
        assert_eq!(self.quads, 0, "prefixes are declared before they are used");
        let mut serializer = RdfSerializer::from_format(format);
        for (name, iri) in prefixes {
            // The IRI was checked when the query was parsed; one that is refused abbreviates
            // nothing.
            if let Ok(more) = serializer.clone().with_prefix(name, iri) {
                serializer = more;
            }
        }
        self.encoder = Encoder::foreign(serializer);
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
            Encoder::Foreign(serializer, shared) => {
                if format == GraphFormat::RdfXml {
                    check_xml(quad)?;
                }
                serializer
                    .serialize_quad(quad_ref(quad))
                    .map_err(|source| ResultsError::Graph { format, source })?;
                match format {
                    GraphFormat::RdfXml => append_xml(out, &mut shared.lock()),
                    _ => out.append(&mut shared.lock()),
                }
            }
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
            if self.quads == 0 && !graph.prefixes().is_empty() {
                self.abbreviate(graph.prefixes());
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
            let stage = Stage::new(Style::NTriples, frame(), Ids::Triples(triples));
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
        let format = self.format;
        match self.encoder {
            Encoder::Lines | Encoder::Staged(_) => {}
            Encoder::Foreign(serializer, shared) => {
                serializer
                    .finish()
                    .map_err(|source| ResultsError::Graph { format, source })?;
                out.append(&mut shared.lock());
            }
            Encoder::Columns(encoding, mut columns) => {
                begun(encoding, &mut columns, out)?.finish(out)?;
            }
        }
        Ok(())
    }
}

impl Encoder {
    fn foreign(serializer: RdfSerializer) -> Self {
        let shared = Shared::default();
        let serializer = serializer.for_writer(shared.clone());
        Self::Foreign(Box::new(serializer), shared)
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

fn quad_ref(quad: QuadText<'_>) -> QuadRef<'_> {
    QuadRef::new(
        node_ref(quad.subject),
        NamedNodeRef::new_unchecked(quad.predicate),
        term_ref(quad.object),
        quad.graph
            .map_or(GraphNameRef::DefaultGraph, |graph| node_ref(graph).into()),
    )
}

fn node_ref(node: TermText<'_>) -> NamedOrBlankNodeRef<'_> {
    match node {
        TermText::Iri(iri) => NamedNodeRef::new_unchecked(iri).into(),
        TermText::Blank(label) => BlankNodeRef::new_unchecked(label).into(),
        TermText::Literal { value, .. } => panic!("the literal {value:?} stands for a node"),
    }
}

fn term_ref(term: TermText<'_>) -> TermRef<'_> {
    match term {
        TermText::Literal {
            value,
            language,
            datatype,
        } => match (language, datatype) {
            (Some(language), _) => {
                LiteralRef::new_language_tagged_literal_unchecked(value, language)
            }
            (None, Some(datatype)) => {
                LiteralRef::new_typed_literal(value, NamedNodeRef::new_unchecked(datatype))
            }
            (None, None) => LiteralRef::new_simple_literal(value),
        }
        .into(),
        node => node_ref(node).into(),
    }
}

/// Appends a piece of XML with the carriage returns of its literals as references: a reader takes
/// those that are not for ends of lines.
fn append_xml(out: &mut Vec<u8>, piece: &mut Vec<u8>) {
    let mut at = 0;
    for end in memchr::memchr_iter(b'\r', piece) {
        out.extend_from_slice(&piece[at..end]);
        out.extend_from_slice(b"&#xD;");
        at = end + 1;
    }
    out.extend_from_slice(&piece[at..]);
    piece.clear();
}

fn check_xml(quad: QuadText<'_>) -> Result<(), ResultsError> {
    let text = |term: TermText<'_>| match term {
        TermText::Iri(text) | TermText::Blank(text) | TermText::Literal { value: text, .. } => {
            not_xml(text)
        }
    };
    let found = text(quad.subject)
        .or_else(|| not_xml(quad.predicate))
        .or_else(|| text(quad.object));
    if let Some(character) = found {
        return Err(ResultsError::NotXml { character });
    }
    if !is_property_element(quad.predicate) {
        let reason = format!(
            "no XML element can stand for the predicate <{}>",
            quad.predicate
        );
        return Err(ResultsError::Graph {
            format: GraphFormat::RdfXml,
            source: io::Error::new(io::ErrorKind::InvalidInput, reason),
        });
    }
    Ok(())
}

/// Whether an IRI ends in a name that XML allows for an element, and is not one that means
/// something else there (section 7.2.5 of RDF 1.1 XML Syntax).
fn is_property_element(iri: &str) -> bool {
    const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
    const OTHER: [&str; 12] = [
        "Description",
        "RDF",
        "ID",
        "about",
        "parseType",
        "resource",
        "nodeID",
        "datatype",
        "li",
        "aboutEach",
        "aboutEachPrefix",
        "bagID",
    ];
    if iri
        .strip_prefix(RDF)
        .is_some_and(|name| OTHER.contains(&name))
    {
        return false;
    }
    let name = iri.trim_end_matches(is_name_char);
    iri[name.len()..].contains(is_name_start_char)
}

/// `NameStartChar` of XML 1.0, without the colon.
fn is_name_start_char(c: char) -> bool {
    matches!(c,
        'A'..='Z' | '_' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}'
        | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}' | '\u{37f}'..='\u{1fff}'
        | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}'
        | '\u{10000}'..='\u{effff}')
}

/// `NameChar` of XML 1.0, without the colon.
fn is_name_char(c: char) -> bool {
    is_name_start_char(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

/// A buffer that the serializer fills and the writer drains: the serializer keeps what it writes
/// to, and gives it back only at its end. The lock is never waited for.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().expect("no one panics while appending bytes")
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
