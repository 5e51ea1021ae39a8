//! What is on a page of an event stream: which members, with which statements, and where does it lead?

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::Arc;

use jindou_engine::ingest::{
    Format, Guard, IngestError, QuadSink, Source, read_document, read_lines, with_parser_stack,
};
use jindou_engine::{EngineError, MemoryPool, Page, Reservation, milliseconds_of};
use oxrdf::vocab::rdf;
use oxrdf::{GraphName, NamedNode, NamedNodeRef, NamedOrBlankNode, Quad, QuadRef, Term};
use parking_lot::Mutex;

use super::{GREATER, GREATER_OR_EQUAL, MEMBER, NODE, PATH, RELATION, TIMESTAMP_PATH, VALUE, VIEW};

/// What the terms of a page may take, as its prefixes may stand for much.
const MOST_TERM_BYTES: u64 = 64 << 20;
/// What a quad takes beside its text: five strings, and places in three maps.
const QUAD_BYTES: u64 = 320;
/// The longest address of a page.
const MOST_ADDRESS_BYTES: usize = 2_000;
/// The longest path to a time.
const MOST_STEPS: usize = 16;

/// Why a page cannot be taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// It does not come.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// It is in no format that is read.
    #[error("it is {found}, which is no format of RDF that is read here")]
    MediaType {
        /// What it is.
        found: String,
    },
    /// It is no text of its format, or takes more memory than a page may.
    #[error(transparent)]
    Text(#[from] IngestError),
    /// It leads to a page of which too much would have to be remembered.
    #[error("it leads to an address of more than {MOST_ADDRESS_BYTES} bytes")]
    Address,
    /// Its members have no times.
    #[error(
        "no page that was read says the ldes:timestampPath of the event stream, which a stream with times \
         of events needs; `time` can be \"arrival\" or a predicate"
    )]
    NoTimePath,
    /// Their times are where they are not looked for.
    #[error(
        "the ldes:timestampPath is neither a predicate nor a list of at most {MOST_STEPS} predicates"
    )]
    TimePath,
}

/// The quads of a page, by what they are looked for.
pub(super) struct Quads {
    quads: Vec<Quad>,
    by_subject: HashMap<NamedOrBlankNode, Vec<usize>>,
    by_graph: HashMap<NamedNode, Vec<usize>>,
    _memory: Arc<PageMemory>,
}

/// A page that another one leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    /// Its address, without a fragment.
    pub(super) address: String,
    /// Its members have no times before this one, as far as the relation says so.
    pub(super) from_ms: i64,
}

/// The predicates that lead from a member to its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TimePath(pub(super) Vec<NamedNode>);

/// The address of the page that an IRI is on.
pub(super) fn page_of(iri: &str) -> &str {
    iri.split_once('#').map_or(iri, |(page, _)| page)
}

impl Quads {
    /// Reads a page. Its blank nodes have labels of their own, as each member is a document by itself.
    ///
    /// # Errors
    /// [`PageError::MediaType`], [`PageError::Text`].
    pub(super) fn read(page: &Page, pool: Option<Arc<MemoryPool>>) -> Result<Self, PageError> {
        let told = page.media_type.as_deref().unwrap_or("without a media type");
        let Ok(format) = Format::from_name(told) else {
            let found = told.to_owned();
            return Err(PageError::MediaType { found });
        };
        let memory = Arc::new(PageMemory {
            pool,
            held: Mutex::default(),
        });
        let mut sink = PageSink {
            quads: Vec::new(),
            memory: Arc::clone(&memory),
        };
        if format.is_line_based() {
            read_lines(&page.address, &page.bytes, 0, &mut sink)?;
        } else {
            let guard: Arc<dyn Guard> = Arc::clone(&memory) as _;
            // The parser has a copy of its own.
            memory
                .hold(page.bytes.len() as u64)
                .map_err(|source| IngestError::Sink {
                    file: page.address.as_str().into(),
                    source: Box::new(source),
                })?;
            let source = Source::bytes(&*page.address, &*page.bytes)
                .with_format(format)
                .with_base_iri(&*page.address)
                .with_guard(guard);
            with_parser_stack(|| read_document(source, 0, &mut sink))??;
        }
        Ok(Self::of(sink.quads, memory))
    }

    fn of(quads: Vec<Quad>, memory: Arc<PageMemory>) -> Self {
        let (mut by_subject, mut by_graph) = (HashMap::new(), HashMap::new());
        for (place, quad) in quads.iter().enumerate() {
            let places: &mut Vec<usize> = by_subject.entry(quad.subject.clone()).or_default();
            places.push(place);
            if let GraphName::NamedNode(graph) = &quad.graph_name {
                let places: &mut Vec<usize> = by_graph.entry(graph.clone()).or_default();
                places.push(place);
            }
        }
        Self {
            quads,
            by_subject,
            by_graph,
            _memory: memory,
        }
    }

    fn with_predicate(&self, predicate: NamedNodeRef<'static>) -> impl Iterator<Item = &Quad> {
        let quads = self.quads.iter();
        quads.filter(move |quad| quad.predicate.as_ref() == predicate)
    }

    fn objects(
        &self,
        subject: &NamedOrBlankNode,
        predicate: NamedNodeRef<'static>,
    ) -> impl Iterator<Item = &Term> {
        let places = self.by_subject.get(subject).into_iter().flatten();
        let quads = places.map(|place| &self.quads[*place]);
        let with = quads.filter(move |quad| quad.predicate.as_ref() == predicate);
        with.map(|quad| &quad.object)
    }

    /// Each event stream that the page speaks of, with a view of it.
    pub(super) fn views(&self) -> impl Iterator<Item = (&NamedOrBlankNode, &NamedNode)> {
        self.with_predicate(VIEW)
            .filter_map(|quad| match &quad.object {
                Term::NamedNode(view) => Some((&quad.subject, view)),
                _ => None,
            })
    }

    /// The members on the page, each once; of one event stream where that is known.
    pub(super) fn members(&self, stream: Option<&NamedNode>) -> Vec<&Term> {
        let is_of = |subject: &NamedOrBlankNode| match (stream, subject) {
            (Some(stream), NamedOrBlankNode::NamedNode(subject)) => subject == stream,
            // A name without an IRI is one of this page.
            _ => true,
        };
        let quads = self
            .with_predicate(MEMBER)
            .filter(|quad| is_of(&quad.subject));
        let mut seen = HashSet::new();
        let members = quads.map(|quad| &quad.object);
        members.filter(|member| seen.insert(*member)).collect()
    }

    /// The statements of a member: those with it as subject, those with their blank nodes as subjects, and
    /// so on, and the graph of its name. What other members say in their graphs is theirs.
    pub(super) fn statements(&self, member: &NamedNode, members: &HashSet<&str>) -> Vec<&Quad> {
        let (mut places, mut nodes) = (BTreeSet::new(), HashSet::new());
        let mut waiting: Vec<usize> = Vec::new();
        let of_subject = |node: NamedOrBlankNode| self.by_subject.get(&node).into_iter().flatten();
        waiting.extend(of_subject(member.clone().into()));
        waiting.extend(self.by_graph.get(member).into_iter().flatten());
        while let Some(place) = waiting.pop() {
            let quad = &self.quads[place];
            let is_of_other = match &quad.graph_name {
                GraphName::NamedNode(graph) => graph != member && members.contains(graph.as_str()),
                _ => false,
            };
            if is_of_other || !places.insert(place) {
                continue;
            }
            if let Term::BlankNode(node) = &quad.object
                && nodes.insert(node)
            {
                waiting.extend(of_subject(node.clone().into()));
            }
        }
        places.into_iter().map(|place| &self.quads[place]).collect()
    }

    /// The pages that this one leads to, by relations of any kind.
    ///
    /// # Errors
    /// [`PageError::Address`].
    pub(super) fn links(&self, path: Option<&TimePath>) -> Result<Vec<Link>, PageError> {
        let mut links = Vec::new();
        for quad in self.with_predicate(RELATION) {
            let Some(relation) = as_subject(&quad.object) else {
                continue;
            };
            let from_ms = self.earliest_ms(&relation, path).unwrap_or(i64::MIN);
            for node in self.objects(&relation, NODE) {
                if let Term::NamedNode(node) = node {
                    let address = page_of(node.as_str()).to_owned();
                    if address.len() > MOST_ADDRESS_BYTES {
                        return Err(PageError::Address);
                    }
                    links.push(Link { address, from_ms });
                }
            }
        }
        Ok(links)
    }

    /// The time before which no member is found by a relation, where that is known.
    fn earliest_ms(&self, relation: &NamedOrBlankNode, path: Option<&TimePath>) -> Option<i64> {
        let is_lower = |kind: &Term| match kind {
            Term::NamedNode(kind) => [GREATER, GREATER_OR_EQUAL].contains(&kind.as_ref()),
            _ => false,
        };
        let [time] = path?.0.as_slice() else {
            return None;
        };
        let is_time = |path: &Term| matches!(path, Term::NamedNode(path) if path == time);
        if !self.objects(relation, rdf::TYPE).any(is_lower)
            || !self.objects(relation, PATH).any(is_time)
        {
            return None;
        }
        self.objects(relation, VALUE).find_map(time_of)
    }

    /// Where members have their times, if the page says so.
    ///
    /// # Errors
    /// [`PageError::TimePath`].
    pub(super) fn time_path(&self) -> Result<Option<TimePath>, PageError> {
        let Some(quad) = self.with_predicate(TIMESTAMP_PATH).next() else {
            return Ok(None);
        };
        if let Term::NamedNode(predicate) = &quad.object
            && predicate.as_ref() != rdf::NIL
        {
            return Ok(Some(TimePath(vec![predicate.clone()])));
        }
        let (mut steps, mut list) = (Vec::new(), quad.object.clone());
        while list != Term::from(rdf::NIL) {
            let node = as_subject(&list).ok_or(PageError::TimePath)?;
            match self.objects(&node, rdf::FIRST).next() {
                Some(Term::NamedNode(step)) if steps.len() < MOST_STEPS => steps.push(step.clone()),
                _ => return Err(PageError::TimePath),
            }
            let rest = self.objects(&node, rdf::REST).next();
            list = rest.ok_or(PageError::TimePath)?.clone();
        }
        match steps.is_empty() {
            true => Err(PageError::TimePath),
            false => Ok(Some(TimePath(steps))),
        }
    }
}

impl TimePath {
    /// The time of a member, if its statements say one, and no other.
    pub(super) fn time_ms(&self, member: &NamedNode, statements: &[&Quad]) -> Option<i64> {
        let mut ends: Vec<Term> = vec![member.clone().into()];
        for step in &self.0 {
            let nodes: Vec<NamedOrBlankNode> = ends.iter().filter_map(as_subject).collect();
            let quads = statements.iter();
            let on = quads.filter(|quad| quad.predicate == *step && nodes.contains(&quad.subject));
            ends = on.map(|quad| quad.object.clone()).collect();
        }
        ends.sort_by_key(ToString::to_string);
        ends.dedup();
        match ends.as_slice() {
            [time] => time_of(time),
            _ => None,
        }
    }
}

fn time_of(term: &Term) -> Option<i64> {
    match term {
        Term::Literal(literal) => milliseconds_of(literal.as_ref()),
        _ => None,
    }
}

fn as_subject(term: &Term) -> Option<NamedOrBlankNode> {
    match term {
        Term::NamedNode(node) => Some(node.clone().into()),
        Term::BlankNode(node) => Some(node.clone().into()),
        _ => None,
    }
}

/// Why a page takes no more memory.
#[derive(Debug, thiserror::Error)]
enum NoMemory {
    #[error("its terms take more than {MOST_TERM_BYTES} bytes")]
    OfPage,
    #[error("all memory of the pool of {limit_bytes} bytes is taken")]
    OfPool { limit_bytes: u64 },
}

/// What the terms of a page take, until it was taken.
struct PageMemory {
    pool: Option<Arc<MemoryPool>>,
    held: Mutex<(u64, Option<Reservation>)>,
}

impl PageMemory {
    fn hold(&self, bytes: u64) -> Result<(), NoMemory> {
        let mut held = self.held.lock();
        let (all, reservation) = &mut *held;
        *all += bytes;
        if *all > MOST_TERM_BYTES {
            return Err(NoMemory::OfPage);
        }
        let Some(pool) = &self.pool else {
            return Ok(());
        };
        let is_held = match reservation {
            Some(reservation) => reservation.try_grow(bytes),
            none => {
                *none = pool.reserve(bytes);
                none.is_some()
            }
        };
        match is_held {
            true => Ok(()),
            false => Err(NoMemory::OfPool {
                limit_bytes: pool.limit_bytes(),
            }),
        }
    }
}

impl Guard for PageMemory {
    fn look(&self) -> io::Result<()> {
        Ok(())
    }

    fn hold(&self, bytes: u64) -> io::Result<()> {
        Self::hold(self, bytes).map_err(io::Error::other)
    }
}

struct PageSink {
    quads: Vec<Quad>,
    memory: Arc<PageMemory>,
}

impl QuadSink for PageSink {
    type Error = io::Error;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), io::Error> {
        let quad = quad.into_owned();
        let text = quad.subject.to_string().len()
            + quad.predicate.as_str().len()
            + quad.object.to_string().len()
            + quad.graph_name.to_string().len();
        // The subject and the graph are in maps, too.
        Guard::hold(&*self.memory, 2 * text as u64 + QUAD_BYTES)?;
        self.quads.push(quad);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quads(text: &str) -> Quads {
        let memory = Arc::new(PageMemory {
            pool: None,
            held: Mutex::default(),
        });
        let mut sink = PageSink {
            quads: Vec::new(),
            memory: Arc::clone(&memory),
        };
        let text = format!(
            "@prefix : <http://e/> . @prefix tree: <https://w3id.org/tree#> .\n\
             @prefix ldes: <https://w3id.org/ldes#> .\n{text}"
        );
        let source = Source::bytes("page", text.into_bytes())
            .with_format(Format::TriG)
            .with_base_iri("http://e/page");
        let read = with_parser_stack(|| read_document(source, 0, &mut sink));
        read.expect("a thread starts").expect("it is TriG");
        Quads::of(sink.quads, memory)
    }

    fn iri(name: &str) -> NamedNode {
        NamedNode::new_unchecked(format!("http://e/{name}"))
    }

    #[test]
    fn the_statements_of_a_member_are_its_own_and_those_of_its_blank_nodes() {
        let page = quads(
            ":c tree:member :a, :b . :a :p [ :q [ :r 1 ] ; :to :b ] . :b :p 2 . :other :p 3 .\n\
             :a { :x :y [ :z 4 ] . :b :p 5 } :b { :x :y 6 . :a :p 7 }",
        );
        let members = page.members(None);
        assert_eq!(members, [&Term::from(iri("a")), &iri("b").into()]);
        let names = HashSet::from(["http://e/a", "http://e/b"]);
        let counts = ["a", "b"].map(|name| page.statements(&iri(name), &names).len());
        // Of a: itself, two of each blank node's, the graph of two and that of its node; of b: one, and its graph.
        assert_eq!(counts, [1 + 2 + 1 + 2 + 1, 1 + 2]);
        assert_eq!(page.members(Some(&iri("d"))), Vec::<&Term>::new());
    }

    #[test]
    fn times_are_found_by_a_predicate_or_a_list_of_them() {
        let text =
            ":a :at 5 ; :made [ :at 7, \"7\"^^<http://www.w3.org/2001/XMLSchema#integer> ] .";
        let names = HashSet::new();
        for (path, time_ms) in [
            (":at", Some(5)),
            ("(:made :at)", Some(7)),
            ("(:made :never)", None),
            (":made", None),
        ] {
            let page = quads(&format!(":c ldes:timestampPath {path} . {text}"));
            let found = page.time_path().expect("it is one").expect("it is there");
            let statements = page.statements(&iri("a"), &names);
            assert_eq!(found.time_ms(&iri("a"), &statements), time_ms, "{path}");
        }
        for wrong in ["()", "\"at\"", "[ :inverse :at ]", "(:a [])"] {
            let page = quads(&format!(":c ldes:timestampPath {wrong} ."));
            assert!(
                matches!(page.time_path(), Err(PageError::TimePath)),
                "{wrong}"
            );
        }
        assert_eq!(quads(text).time_path().expect("there is none"), None);
    }

    #[test]
    fn relations_of_every_kind_lead_on_and_some_say_from_when() {
        let page = quads(
            "<> tree:relation [ tree:node <1#x> ] ,\n\
             [ a tree:GreaterThanOrEqualToRelation ; tree:path :at ; tree:value 9 ; tree:node <2> ] ,\n\
             [ a tree:LessThanRelation ; tree:path :at ; tree:value 9 ; tree:node <3> ] ,\n\
             [ a tree:GreaterThanRelation ; tree:path :size ; tree:value 9 ; tree:node <4> ] .",
        );
        let path = TimePath(vec![iri("at")]);
        let mut links = page.links(Some(&path)).expect("they are short");
        links.sort_by(|one, other| one.address.cmp(&other.address));
        let link = |name: &str, from_ms| Link {
            address: iri(name).into_string(),
            from_ms,
        };
        let none = i64::MIN;
        assert_eq!(
            links,
            [
                link("1", none),
                link("2", 9),
                link("3", none),
                link("4", none)
            ]
        );
    }

    #[test]
    fn a_page_that_takes_too_much_is_refused() {
        let memory = PageMemory {
            pool: Some(Arc::new(MemoryPool::new(1_000))),
            held: Mutex::default(),
        };
        memory.hold(900).expect("there is as much");
        let refused = memory.hold(200).expect_err("there is not as much");
        assert!(refused.to_string().contains("1000 bytes"), "{refused}");
        let refused = memory.hold(MOST_TERM_BYTES).expect_err("it is too much");
        assert!(refused.to_string().contains("its terms"), "{refused}");
    }
}
