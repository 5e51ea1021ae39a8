//! How is a graph written in a format that has prefixes?
//!
//! It is gathered as long as that takes little memory. Of a graph that is whole then, the prefixes that it
//! uses are declared, and Turtle, TriG and N3 are laid out as a person would do it (see `tree`). Otherwise
//! all prefixes are declared, up to a bound, and quads are written in the order in which they come.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard};

use jindou_exec::MemoryPool;
use oxrdf::{
    BlankNodeRef, GraphNameRef, LiteralRef, NamedNodeRef, NamedOrBlankNodeRef, QuadRef, TermRef,
};
use oxrdfio::{JsonLdProfileSet, RdfFormat, RdfSerializer, WriterQuadSerializer};

use super::gathered::Gathered;
use super::json_ld;
use super::names::Names;
use super::pen::{AsTheyCome, Pen, RDF_TYPE, push_prefixes};
use super::tree::Tree;
use super::xml_names::{can_be_declared, check_xml, drop_unused, namespace};
use super::{GraphFormat, QuadText, ResultsError, TermText};
use crate::request_memory::RequestMemory;

/// What is gathered without asking for memory: with its text less than a writer may hold.
pub(super) const UNASKED_BYTES: usize = 320 << 10;
/// Prefixes declared that may not be used.
const MOST_UNUSED: usize = 100;

/// Writes quads in Turtle, TriG, N3, RDF/XML or JSON-LD.
pub(super) struct Prefixed {
    format: GraphFormat,
    names: Names,
    gathered: Option<Gathered>,
    /// Bytes up to which quads are gathered, and what of them is reserved.
    most_bytes: usize,
    reserved: usize,
    memory: RequestMemory,
    begun: Begun,
}

/// What has begun to write.
enum Begun {
    Nothing,
    /// With the prefixes that are declared.
    Turtle(AsTheyCome, Names),
    Foreign(Box<WriterQuadSerializer<Shared>>, Shared),
}

impl Prefixed {
    pub(super) fn new(format: GraphFormat) -> Self {
        Self {
            format,
            names: Names::default(),
            gathered: Some(Gathered::default()),
            most_bytes: UNASKED_BYTES,
            reserved: 0,
            memory: RequestMemory::default(),
            begun: Begun::Nothing,
        }
    }

    pub(super) fn set_names(&mut self, names: Names) {
        assert!(
            matches!(self.begun, Begun::Nothing),
            "prefixes are declared before they are used"
        );
        self.names = names;
    }

    pub(super) fn set_memory(&mut self, pool: Option<&Arc<MemoryPool>>, most_bytes: usize) {
        self.memory = RequestMemory::new(pool);
        self.most_bytes = most_bytes;
    }

    /// # Errors
    /// What the format cannot hold.
    pub(super) fn quad(
        &mut self,
        out: &mut Vec<u8>,
        quad: QuadText<'_>,
    ) -> Result<(), ResultsError> {
        if self.format == GraphFormat::RdfXml {
            check_xml(quad)?;
        }
        let Some(gathered) = &mut self.gathered else {
            return self.write(out, quad);
        };
        gathered.push(quad);
        let bytes = gathered.bytes();
        let more = bytes - self.reserved;
        self.reserved = bytes;
        let fits = bytes <= self.most_bytes && self.memory.try_reserve(more as u64);
        if fits || bytes <= UNASKED_BYTES.min(self.most_bytes) {
            return Ok(());
        }
        let gathered = self.gathered.take().expect("it was there above");
        let names = self.names_of_part(&gathered);
        self.begin(out, &names);
        gathered
            .quads()
            .try_for_each(|quad| self.write(out, quad))?;
        drop(gathered);
        self.memory = RequestMemory::default();
        Ok(())
    }

    /// # Errors
    /// What the serializer says.
    pub(super) fn finish(mut self, out: &mut Vec<u8>) -> Result<(), ResultsError> {
        if let Some(gathered) = self.gathered.take() {
            match self.format {
                GraphFormat::RdfXml => {
                    let names = self.used_by_xml(&gathered);
                    self.begin(out, &names);
                }
                GraphFormat::JsonLd => {
                    if json_ld::write(out, &gathered, &self.names) {
                        return Ok(());
                    }
                    self.begin(out, &Names::default());
                }
                _ => {
                    self.write_tree(out, &gathered);
                    return Ok(());
                }
            }
            gathered
                .quads()
                .try_for_each(|quad| self.write(out, quad))?;
        }
        match self.begun {
            Begun::Nothing => unreachable!("what is not gathered was begun"),
            Begun::Turtle(mut writer, _) => writer.end(out),
            Begun::Foreign(serializer, shared) => {
                let format = self.format;
                serializer
                    .finish()
                    .map_err(|source| ResultsError::Graph { format, source })?;
                drain(format, out, &shared);
            }
        }
        Ok(())
    }

    fn write_tree(&self, out: &mut Vec<u8>, gathered: &Gathered) {
        let mut body = Vec::new();
        let mut pen = Pen::new(&self.names);
        Tree::new(gathered).write(&mut body, &mut pen);
        let declared = self.names.declared().iter().zip(&pen.used);
        let used = declared.filter(|(_, is_used)| **is_used);
        push_prefixes(out, used.map(|((name, iri), _)| (&**name, &**iri)));
        if pen.used.contains(&true) {
            out.push(b'\n');
        }
        out.append(&mut body);
    }

    /// The prefixes that are declared for a graph of which only a part is known: those that this uses,
    /// and of the others the first.
    fn names_of_part(&self, gathered: &Gathered) -> Names {
        if self.format == GraphFormat::JsonLd {
            // An IRI that comes later may have a scheme that is called as a prefix.
            return Names::default();
        }
        let mut pen = Pen::new(&self.names);
        let (mut writer, mut text) = (AsTheyCome::default(), Vec::new());
        for quad in gathered.quads() {
            writer.quad(&mut text, &mut pen, quad);
            text.clear();
        }
        let mut unused = 0;
        let declared = self.names.declared().iter().zip(&pen.used);
        let kept = declared.filter(|(_, is_used)| {
            unused += usize::from(!**is_used);
            **is_used || unused <= MOST_UNUSED
        });
        Names::new(kept.map(|(pair, _)| pair.clone()))
    }

    /// The prefixes that stand for the elements of a graph in RDF/XML.
    fn used_by_xml(&self, gathered: &Gathered) -> Names {
        let mut namespaces = std::collections::HashSet::new();
        for quad in gathered.quads() {
            namespaces.extend(namespace(quad.predicate));
            if let (RDF_TYPE, TermText::Iri(class)) = (quad.predicate, quad.object) {
                namespaces.extend(namespace(class));
            }
        }
        let used = self.names.declared().iter();
        let used = used.filter(|(_, iri)| namespaces.contains(iri.as_str()));
        Names::new(used.cloned())
    }

    /// Begins with these prefixes, where nothing was written yet.
    fn begin(&mut self, out: &mut Vec<u8>, names: &Names) {
        let format = match self.format {
            GraphFormat::RdfXml => RdfFormat::RdfXml,
            GraphFormat::JsonLd => RdfFormat::JsonLd {
                profile: JsonLdProfileSet::empty(),
            },
            _ => {
                let declared = names.declared().iter();
                push_prefixes(out, declared.map(|(name, iri)| (&**name, &**iri)));
                if !names.is_empty() {
                    out.push(b'\n');
                }
                self.begun = Begun::Turtle(AsTheyCome::default(), names.clone());
                return;
            }
        };
        let mut serializer = RdfSerializer::from_format(format);
        for (name, iri) in names.declared() {
            // What the serializer does not take abbreviates nothing.
            if can_be_declared(name, iri)
                && let Ok(more) = serializer.clone().with_prefix(name, iri)
            {
                serializer = more;
            }
        }
        let shared = Shared::default();
        let serializer = serializer.for_writer(shared.clone());
        self.begun = Begun::Foreign(Box::new(serializer), shared);
    }

    fn write(&mut self, out: &mut Vec<u8>, quad: QuadText<'_>) -> Result<(), ResultsError> {
        let format = self.format;
        match &mut self.begun {
            Begun::Nothing => unreachable!("what is not gathered was begun"),
            Begun::Turtle(writer, names) => writer.quad(out, &mut Pen::forgetful(names), quad),
            Begun::Foreign(serializer, shared) => {
                serializer
                    .serialize_quad(quad_ref(quad))
                    .map_err(|source| ResultsError::Graph { format, source })?;
                drain(format, out, shared);
            }
        }
        Ok(())
    }
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

/// Takes what a serializer has written.
fn drain(format: GraphFormat, out: &mut Vec<u8>, shared: &Shared) {
    match format {
        GraphFormat::RdfXml => {
            let mut piece = shared.lock();
            drop_unused(&mut piece);
            append_xml(out, &mut piece);
        }
        _ => out.append(&mut shared.lock()),
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
