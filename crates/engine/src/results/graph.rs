//! How is a graph written, triple by triple?

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use jindou_model::TermId;
use oxrdf::{GraphNameRef, NamedOrBlankNodeRef, QuadRef, TermRef, TripleRef};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfSerializer, WriterQuadSerializer};

use super::cells::Cells;
use super::escape::not_xml;
use super::style::Style;
use super::{GraphFormat, ResultsError, TermText, write_term};
use crate::TermDecoder;

/// Writes a graph in one format: triples, then [`finish`](Self::finish). Nothing is held back
/// but what the format needs to group triples of one subject.
pub struct GraphWriter {
    format: GraphFormat,
    cells: Cells,
    triples: u64,
    /// `None`: a line per triple, written here.
    serializer: Option<(WriterQuadSerializer<Shared>, Shared)>,
}

impl GraphWriter {
    /// A writer in this format.
    #[must_use]
    pub fn new(format: GraphFormat) -> Self {
        let foreign = match format {
            GraphFormat::NTriples | GraphFormat::NQuads => None,
            GraphFormat::Turtle => Some(RdfFormat::Turtle),
            GraphFormat::RdfXml => Some(RdfFormat::RdfXml),
            GraphFormat::TriG => Some(RdfFormat::TriG),
            GraphFormat::JsonLd => Some(RdfFormat::JsonLd {
                profile: JsonLdProfileSet::empty(),
            }),
        };
        let serializer = foreign.map(|format| {
            let shared = Shared::default();
            (
                RdfSerializer::from_format(format).for_writer(shared.clone()),
                shared,
            )
        });
        Self {
            format,
            cells: Cells::new(Style::NTriples),
            triples: 0,
            serializer,
        }
    }

    /// Triples written so far.
    #[must_use]
    pub fn triples(&self) -> u64 {
        self.triples
    }

    /// Appends one triple.
    ///
    /// # Errors
    /// [`ResultsError::NotXml`] and [`ResultsError::Graph`] when the format cannot hold it; the
    /// output is then of no use.
    pub fn triple(&mut self, out: &mut Vec<u8>, triple: TripleRef<'_>) -> Result<(), ResultsError> {
        let format = self.format;
        match &mut self.serializer {
            None => {
                let subject = match triple.subject {
                    NamedOrBlankNodeRef::NamedNode(node) => TermText::Iri(node.as_str()),
                    NamedOrBlankNodeRef::BlankNode(node) => TermText::Blank(node.as_str()),
                };
                write_term(out, subject, false);
                out.push(b' ');
                write_term(out, TermText::Iri(triple.predicate.as_str()), false);
                out.push(b' ');
                write_term(out, triple.object.into(), false);
                out.extend_from_slice(b" .\n");
            }
            Some((serializer, shared)) => {
                if format == GraphFormat::RdfXml {
                    check_xml(triple)?;
                }
                let quad = QuadRef::new(
                    triple.subject,
                    triple.predicate,
                    triple.object,
                    GraphNameRef::DefaultGraph,
                );
                serializer
                    .serialize_quad(quad)
                    .map_err(|source| ResultsError::Graph { format, source })?;
                out.append(&mut shared.lock());
            }
        }
        self.triples += 1;
        Ok(())
    }

    /// Appends one triple of a query given as ids. The text of terms that come again, or that
    /// are neighbours in the dictionary, is remembered where the format is a line per triple.
    ///
    /// # Errors
    /// As [`Self::triple`].
    ///
    /// # Panics
    /// If the ids are not those of a triple of the query.
    #[inline]
    pub fn ids(
        &mut self,
        out: &mut Vec<u8>,
        triple: [TermId; 3],
        decoder: &mut TermDecoder<'_>,
    ) -> Result<(), ResultsError> {
        if self.serializer.is_some() {
            return self.triple(out, decoder.triple(triple).as_ref());
        }
        let [subject, predicate, object] = triple;
        self.cells.push(out, subject, decoder, self.triples)?;
        out.push(b' ');
        self.cells.push(out, predicate, decoder, self.triples)?;
        out.push(b' ');
        self.cells.push(out, object, decoder, self.triples)?;
        out.extend_from_slice(b" .\n");
        self.triples += 1;
        Ok(())
    }

    /// Appends what comes after the last triple.
    ///
    /// # Errors
    /// [`ResultsError::Graph`] when the serializer cannot end here.
    pub fn finish(self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        let format = self.format;
        if let Some((serializer, shared)) = self.serializer {
            serializer
                .finish()
                .map_err(|source| ResultsError::Graph { format, source })?;
            out.append(&mut shared.lock());
        }
        Ok(())
    }
}

fn check_xml(triple: TripleRef<'_>) -> Result<(), ResultsError> {
    let subject = match triple.subject {
        NamedOrBlankNodeRef::NamedNode(node) => node.as_str(),
        NamedOrBlankNodeRef::BlankNode(node) => node.as_str(),
    };
    let object = match triple.object {
        TermRef::NamedNode(node) => node.as_str(),
        TermRef::BlankNode(node) => node.as_str(),
        TermRef::Literal(literal) => literal.value(),
    };
    for text in [subject, triple.predicate.as_str(), object] {
        if let Some(character) = not_xml(text) {
            return Err(ResultsError::NotXml { character });
        }
    }
    Ok(())
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
