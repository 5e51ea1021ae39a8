//! How are many JSON objects read with one context, which is processed but once?
//!
//! A context may be a thousand times as long as an event. So objects that have the same one are put
//! into one document of JSON-LD, until they are as long as it, and after each a mark: a statement that
//! says where its event ends. Where such a document is refused, its halves are read, and so on: what
//! is wrong is found by reading the object that it is in by itself.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::sync::Arc;

use jindou_ingest::{Format, JsonSteps, QuadSink, Source};
use oxrdf::{BlankNodeRef, NamedOrBlankNodeRef, QuadRef, TermRef};

use super::sink::Gathered;
use super::{EventError, Place, Reading, read_guarded};
use crate::EngineError;

/// How an object goes into a context of which it knows nothing.
pub(super) const WRAPPED: [&str; 3] = ["{\"@context\":", ",\"@graph\":", "}"];
/// A document has so many bytes of objects, or as many as its context.
const BATCH_BYTES: usize = 16 << 10;

/// An object, which is an event.
pub(super) struct Object {
    /// Where it is in the text.
    pub(super) range: Range<usize>,
    pub(super) place: Place,
    /// The number that its blank nodes have.
    pub(super) scope: u64,
    pub(super) is_empty: bool,
}

/// Objects that wait to be read together.
pub(super) struct Batch<'a> {
    text: &'a [u8],
    /// What they have around them, if anything.
    context: Option<Arc<str>>,
    objects: Vec<Object>,
    bytes: usize,
    /// The IRI of marks: none that a client can know.
    mark: String,
    steps: Arc<JsonSteps>,
}

impl<'a> Batch<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        let random = RandomState::new().build_hasher().finish();
        Self {
            text,
            context: None,
            objects: Vec::new(),
            bytes: 0,
            mark: format!("x-jindou-{random:016x}:end"),
            steps: Arc::new(JsonSteps::of_bytes(text.len())),
        }
    }

    /// Adds an object, and reads those before it if they have another context or are enough.
    pub(super) fn add(
        &mut self,
        reading: &mut Reading<'_>,
        context: Option<&Arc<str>>,
        object: Object,
    ) -> Result<(), EngineError> {
        let is_same = match (&self.context, context) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        let enough = BATCH_BYTES.max(self.context.as_deref().map_or(0, str::len));
        if !is_same || self.bytes + object.range.len() > enough {
            self.read(reading)?;
            self.context = context.cloned();
        }
        self.bytes += object.range.len() + self.mark.len();
        self.objects.push(object);
        Ok(())
    }

    /// Reads the objects that wait.
    pub(super) fn read(&mut self, reading: &mut Reading<'_>) -> Result<(), EngineError> {
        let objects = std::mem::take(&mut self.objects);
        self.bytes = 0;
        self.read_objects(reading, &objects)
    }

    fn read_objects(
        &self,
        reading: &mut Reading<'_>,
        objects: &[Object],
    ) -> Result<(), EngineError> {
        match (objects, self.context.as_deref()) {
            ([], _) => Ok(()),
            ([object], context) => self.read_one(reading, context, object),
            (objects, Some(context)) => {
                let begin = reading.tuples.len();
                if let Some(ends) = self.read_together(reading, context, objects) {
                    return end_events(reading, objects, ends);
                }
                reading.tuples.truncate(begin);
                let (first, second) = objects.split_at(objects.len() / 2);
                self.read_objects(reading, first)?;
                self.read_objects(reading, second)
            }
            (_, None) => unreachable!("an object without a context around it is read by itself"),
        }
    }

    /// Where the tuples of each object end; `None` where something is wrong.
    fn read_together(
        &self,
        reading: &mut Reading<'_>,
        context: &str,
        objects: &[Object],
    ) -> Option<Vec<usize>> {
        let mark = format!("{{\"@id\":\"{0}\",\"@type\":\"{0}\"}}", self.mark);
        let length = objects
            .iter()
            .map(|object| object.range.len() + mark.len() + 2);
        let mut text = Vec::with_capacity(context.len() + 64 + length.sum::<usize>());
        text.extend_from_slice(WRAPPED[0].as_bytes());
        text.extend_from_slice(context.as_bytes());
        text.extend_from_slice(WRAPPED[1].as_bytes());
        for (object, before) in objects
            .iter()
            .zip(std::iter::once(b'[').chain(std::iter::repeat(b',')))
        {
            text.push(before);
            if !object.is_empty {
                text.extend_from_slice(&self.text[object.range.clone()]);
                text.push(b',');
            }
            text.extend_from_slice(mark.as_bytes());
        }
        text.push(b']');
        text.extend_from_slice(WRAPPED[2].as_bytes());
        let scope = objects[0].scope;
        let mut sink = Marked {
            gathered: Gathered::new(&mut reading.tuples, &reading.ledger),
            mark: &self.mark,
            objects,
            prefix: format!("f{scope}"),
            ends: Vec::with_capacity(objects.len()),
        };
        let source = Source::bytes(&*reading.stream.name, text)
            .with_format(Format::JsonLd)
            .with_json_steps(Arc::clone(&self.steps));
        let (inner, deadline) = (reading.inner, &reading.deadline);
        read_guarded(inner, deadline, source, scope, &mut sink).ok()?;
        Some(sink.ends).filter(|ends| ends.len() == objects.len())
    }

    fn read_one(
        &self,
        reading: &mut Reading<'_>,
        context: Option<&str>,
        object: &Object,
    ) -> Result<(), EngineError> {
        let place = object.place;
        if !object.is_empty {
            let [before, after] = match context {
                Some(context) => [
                    [WRAPPED[0], context, WRAPPED[1]].concat(),
                    WRAPPED[2].into(),
                ],
                None => [String::new(), String::new()],
            };
            let text = &self.text[object.range.clone()];
            let text = [before.as_bytes(), text, after.as_bytes()].concat();
            let source = Source::bytes(&*reading.stream.name, text)
                .with_format(Format::JsonLd)
                .with_json_steps(Arc::clone(&self.steps));
            let mut sink = Gathered::new(&mut reading.tuples, &reading.ledger);
            let (inner, deadline) = (reading.inner, &reading.deadline);
            let read = read_guarded(inner, deadline, source, object.scope, &mut sink);
            let added = before.chars().count() as u64;
            read.map_err(|error| place.moved(error, added))?;
        }
        let end = reading.tuples.len();
        end_event(reading, object, end)
    }
}

fn end_events(
    reading: &mut Reading<'_>,
    objects: &[Object],
    ends: Vec<usize>,
) -> Result<(), EngineError> {
    let mut ends = objects.iter().zip(ends);
    ends.try_for_each(|(object, end)| end_event(reading, object, end))
}

fn end_event(reading: &mut Reading<'_>, object: &Object, end: usize) -> Result<(), EngineError> {
    let line = object.place.line;
    if end == reading.begin && !object.is_empty {
        return Err(reading.wrong(line, EventError::NoStatement));
    }
    reading.end_event_at(end, Some(line))
}

/// Gathers the statements of objects, and tells by marks where those of each end.
struct Marked<'a> {
    gathered: Gathered<'a>,
    mark: &'a str,
    objects: &'a [Object],
    /// What the names of all blank nodes begin with, as those of the first object should.
    prefix: String,
    ends: Vec<usize>,
}

impl Marked<'_> {
    /// The name of a blank node of the object that is read.
    fn name(&self, name: &str) -> String {
        let rest = name.strip_prefix(&self.prefix);
        let rest = rest.expect("the names of blank nodes begin with their scope");
        // Of what follows the last mark nothing is an object's.
        let object = self.ends.len().min(self.objects.len() - 1);
        format!("f{}{rest}", self.objects[object].scope)
    }
}

impl QuadSink for Marked<'_> {
    type Error = EngineError;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), EngineError> {
        if matches!(quad.subject, NamedOrBlankNodeRef::NamedNode(node) if node.as_str() == self.mark)
        {
            self.ends.push(self.gathered.tuples.len());
            return Ok(());
        }
        let (subject, object);
        let mut quad: QuadRef<'_> = quad;
        if let NamedOrBlankNodeRef::BlankNode(node) = quad.subject {
            subject = self.name(node.as_str());
            quad.subject = BlankNodeRef::new_unchecked(&subject).into();
        }
        if let TermRef::BlankNode(node) = quad.object {
            object = self.name(node.as_str());
            quad.object = BlankNodeRef::new_unchecked(&object).into();
        }
        self.gathered.add(quad)
    }
}
