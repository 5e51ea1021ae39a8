//! Which requests make quads and terms come and go, and what do they leave?

use std::collections::BTreeSet;

use jindou_engine::ingest::{Format, Source};

use crate::Random;

const PREFIX: &str = "http://e/";
const TYPE: &str = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";
const INTEGER: &str = "http://www.w3.org/2001/XMLSchema#integer";
/// Quads from which on more are deleted than inserted.
const QUADS_MANY: usize = 160;
/// Predicates that are so large that each has files of its own, and the edges that each has.
pub(crate) const LARGE: u64 = 3;
const LARGE_EDGES: u64 = 9_000;

/// Subject, predicate, object and graph as N-Quads writes them; no text is the default graph.
pub(crate) type Quad = [String; 4];

/// The predicate of this number of those that are large.
pub(crate) fn large(number: u64) -> String {
    format!("<{PREFIX}large{number}>")
}

/// What a store with large predicates begins with.
pub(crate) fn large_document() -> Vec<Source> {
    let line = |place: u64| {
        let (predicate, subject) = (large(place % LARGE), place / LARGE);
        let object = Random(place).below(1 << 40);
        format!("<{PREFIX}l{subject}> {predicate} \"{object}\"^^<{INTEGER}> .\n")
    };
    let text: String = (0..LARGE * LARGE_EDGES).map(line).collect();
    vec![Source::bytes("large.nt", text).with_format(Format::NTriples)]
}

/// A request, and what it leaves of these quads.
pub(crate) struct Change {
    pub(crate) request: String,
    pub(crate) quads: BTreeSet<Quad>,
}

/// Makes random requests; texts are never the same twice, so that terms fall out of use.
#[derive(Clone)]
pub(crate) struct Requests {
    pub(crate) random: Random,
    /// Made so far.
    pub(crate) texts: u64,
    /// Whether large predicates gain and lose edges, too.
    pub(crate) has_large: bool,
}

impl Requests {
    fn pick(&mut self, kind: &str, count: u64) -> String {
        format!("<{PREFIX}{kind}{}>", self.random.below(count))
    }

    fn text(&mut self) -> String {
        self.texts += 1;
        format!("\"a text of its own, {}\"", self.texts)
    }

    pub(crate) fn quad(&mut self) -> Quad {
        if self.has_large && self.random.below(3) == 0 {
            // Those that were there have no negative numbers.
            self.texts += 1;
            let object = format!("\"-{}\"^^<{INTEGER}>", self.texts);
            let predicate = large(self.random.below(LARGE));
            return [self.pick("s", 14), predicate, object, String::new()];
        }
        let subject = match self.random.below(8) {
            0 => {
                self.texts += 1;
                format!("<{PREFIX}new{}>", self.texts)
            }
            1 => self.pick("class", 3),
            _ => self.pick("s", 14),
        };
        let (predicate, object) = match self.random.below(9) {
            0 => (TYPE.to_owned(), self.pick("class", 5)),
            1 | 2 => (self.pick("p", 3), self.pick("s", 14)),
            3 | 4 => (self.pick("text", 2), self.text()),
            5 => {
                let number = self.random.below(20);
                (self.pick("n", 2), format!("\"{number}\"^^<{INTEGER}>"))
            }
            6 => {
                let number = self.random.below(6);
                (self.pick("word", 2), format!("\"word {number}\""))
            }
            // Vertices are predicates too, and predicates are vertices.
            7 => (self.pick("s", 3), self.pick("p", 3)),
            _ => (self.pick("rare", 30), self.pick("s", 14)),
        };
        let graph = match self.random.below(5) {
            0 | 1 => self.pick("g", 3),
            _ => String::new(),
        };
        [subject, predicate, object, graph]
    }

    fn known(&mut self, quads: &BTreeSet<Quad>) -> Option<Quad> {
        let count = quads.len() as u64;
        (count > 0)
            .then(|| self.random.below(count) as usize)
            .and_then(|place| quads.iter().nth(place).cloned())
    }

    pub(crate) fn next(&mut self, quads: &BTreeSet<Quad>) -> Change {
        let (mut left, mut requests) = (quads.clone(), Vec::new());
        for _ in 0..=self.random.below(2) {
            requests.push(self.operation(&mut left));
        }
        Change {
            request: requests.join(" ;\n"),
            quads: left,
        }
    }

    fn operation(&mut self, quads: &mut BTreeSet<Quad>) -> String {
        let is_many = quads.len() > QUADS_MANY;
        let Some(known) = self.known(quads) else {
            return self.insert(quads);
        };
        let [subject, predicate, object, _] = &known;
        let everywhere = |pattern: &str| {
            format!("DELETE WHERE {{ {pattern} }} ; DELETE WHERE {{ GRAPH ?g {{ {pattern} }} }}")
        };
        match self.random.below(20) {
            0..=9 if !is_many => self.insert(quads),
            0..=12 => {
                let count = 1 + self.random.below(6);
                let gone: Vec<Quad> = (0..count).filter_map(|_| self.known(quads)).collect();
                quads.retain(|quad| !gone.contains(quad));
                format!("DELETE DATA {{ {} }}", data(&gone))
            }
            13 | 14 => {
                quads.retain(|quad| quad[0] != *subject);
                everywhere(&format!("{subject} ?p ?o"))
            }
            15 if !predicate.contains("large") => {
                quads.retain(|quad| quad[1] != *predicate);
                everywhere(&format!("?s {predicate} ?o"))
            }
            16 => {
                quads.retain(|quad| quad[2] != *object);
                everywhere(&format!("?s ?p {object}"))
            }
            17 => {
                let graph = self.pick("g", 3);
                quads.retain(|quad| quad[3] != graph);
                format!("DROP SILENT GRAPH {graph}")
            }
            18 if !self.has_large && self.random.below(4) == 0 => {
                quads.clear();
                "DROP ALL".to_owned()
            }
            _ => {
                let (place, text) = (self.pick("s", 14), self.text());
                let predicate = format!("<{PREFIX}text0>");
                quads.retain(|[s, p, _, g]| !(*s == place && *p == predicate && g.is_empty()));
                let request = format!(
                    "DELETE WHERE {{ {place} {predicate} ?o }} ; \
                     INSERT DATA {{ {place} {predicate} {text} }}"
                );
                quads.insert([place, predicate, text, String::new()]);
                request
            }
        }
    }

    fn insert(&mut self, quads: &mut BTreeSet<Quad>) -> String {
        let count = 1 + self.random.below(12);
        let new: Vec<Quad> = (0..count).map(|_| self.quad()).collect();
        quads.extend(new.iter().cloned());
        format!("INSERT DATA {{ {} }}", data(&new))
    }
}

fn data(quads: &[Quad]) -> String {
    let line = |[s, p, o, g]: &Quad| match g.is_empty() {
        true => format!("{s} {p} {o} . "),
        false => format!("GRAPH {g} {{ {s} {p} {o} }} "),
    };
    quads.iter().map(line).collect()
}

/// A choice of predicates by their IRIs, some half of them.
pub(crate) fn half(seed: u64) -> impl Fn(&str) -> bool {
    move |iri: &str| {
        let mut random = Random(seed);
        iri.bytes().fold(0, |_, byte| {
            random.0 ^= u64::from(byte);
            random.next()
        }) % 2
            == 0
    }
}
