//! Which sequences of updates are worth making, and what is asked between them?
//!
//! Requests are written over the vocabulary of [`crate::random_data`], mixed more boldly: vertices
//! become classes and predicates, predicates become vertices, graphs appear and vanish. What the
//! oracle does otherwise is left out:
//! - terms equal in value but written differently, which its store makes one;
//! - templates take values straight from the data, none that are computed;
//! - blank nodes are no names of graphs in templates: the oracle makes such quads;
//! - an operation that fails where a graph is absent, or there, stands first in its request: a
//!   graph that other operations emptied is there in the oracle, and not in the engine.

use crate::answer::Answer;
use crate::contents::as_data;
use crate::engines::ask_oracle;
use crate::query::{Form, Query};
use crate::random::Random;
use crate::random_data::{
    self, CLASSES, Domain, GRAPHS, NAMESPACE, NODE_PREDICATES, Profile, VERTICES, iri, node,
};
use crate::random_query::{self, Column, domain_of};
use oxigraph::sparql::SparqlEvaluator;
use oxigraph::store::Store;
use oxrdf::vocab::rdf;
use oxrdf::{Dataset, GraphName, NamedOrBlankNode, Quad, Term};

/// Solutions of a WHERE clause at most: more would make everything too large to compare.
const SOLUTIONS_LIMIT: usize = 60;
/// Quads from which on a sequence deletes rather than inserts.
const QUADS_MANY: usize = 220;
/// WHERE clauses tried for one request in search of one with solutions.
const CLAUSES_TRIED: usize = 5;

/// One thing done to a database.
#[derive(Debug, Clone)]
pub enum Step {
    /// A request.
    Update(String),
    /// A query, its whole answer compared.
    Query(Box<Query>),
    /// A query for [`crate::differential::compare_to_definitions`].
    Defined(Box<Query>),
    /// A SELECT for [`crate::differential::compare_select`].
    Select(String),
    /// A load of more quads, without blank nodes.
    Load(Vec<Quad>),
    /// A merge.
    Merge,
    /// A checkpoint.
    Checkpoint,
    /// Closing and opening again, if the database is stored.
    Reopen,
}

/// How the database of a sequence is set.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Whether it is in files.
    pub stored: bool,
    /// Changes from which on the background merges; none: never.
    pub merge_changes: Option<u64>,
    /// Bytes of the log from which on the background writes checkpoints.
    pub log_bytes: u64,
}

/// A database's life.
#[derive(Debug, Clone)]
pub struct Sequence {
    /// How the database is set.
    pub setting: Setting,
    /// What is loaded first.
    pub quads: Vec<Quad>,
    /// What is done then.
    pub steps: Vec<Step>,
}

/// The sequence of a seed.
///
/// # Panics
/// When the generator made what the oracle refuses as wrong.
#[must_use]
pub fn sequence(seed: u64) -> Sequence {
    let mut random = Random::new(seed);
    let profile = Profile {
        other_spellings: false,
        graphs: random.chance(70),
        ..Profile::random(&mut random)
    };
    let setting = Setting {
        stored: random.chance(40),
        merge_changes: random.chance(60).then(|| random.between(1, 25) as u64),
        log_bytes: *random.pick(&[400, 2_000, 1 << 30]),
    };
    let quads = if random.chance(30) {
        Vec::new()
    } else {
        random_data::dataset(&mut random, profile)
    };
    let store = Store::new().expect("a store in memory");
    store
        .extend(quads.iter().cloned())
        .expect("a store in memory");
    let count = if random.chance(4) {
        random.between(150, 300)
    } else {
        random.between(15, 60)
    };
    let mut generator = Generator {
        random,
        profile,
        store,
        queries: Vec::new(),
        operations: 0,
    };
    let steps = (0..count).map(|_| generator.step()).collect();
    Sequence {
        setting,
        quads,
        steps,
    }
}

/// Executes a request on the oracle.
///
/// # Errors
/// The oracle's message: a graph that is absent, or is there.
///
/// # Panics
/// When the request is not SPARQL.
pub fn update_oracle(store: &Store, request: &str) -> Result<(), String> {
    SparqlEvaluator::new()
        .parse_update(request)
        .unwrap_or_else(|error| panic!("the oracle cannot parse: {error}\n{request}"))
        .on_store(store)
        .execute()
        .map_err(|error| error.to_string())
}

/// The quads of the oracle.
///
/// # Panics
/// Never, as it is in memory.
#[must_use]
pub fn quads_of(store: &Store) -> Vec<Quad> {
    store
        .iter()
        .map(|quad| quad.expect("a store in memory"))
        .collect()
}

/// What the objects of a predicate can be, by its IRI.
fn domain_of_predicate(predicate: &str) -> Domain {
    match predicate.strip_prefix(NAMESPACE) {
        None | Some("p0" | "p1" | "p2") => Domain::Node,
        Some("num") => Domain::Number,
        Some("str") => Domain::String,
        Some("lang") => Domain::Language,
        Some("date") => Domain::Date,
        Some("flag") => Domain::Boolean,
        Some(_) => Domain::Any,
    }
}

fn is_ground(quad: &Quad) -> bool {
    matches!(quad.subject, NamedOrBlankNode::NamedNode(_))
        && !matches!(quad.object, Term::BlankNode(_))
}

struct Generator {
    random: Random,
    profile: Profile,
    /// What the oracle holds after the steps so far.
    store: Store,
    /// Asked before, and asked again when everything has changed.
    queries: Vec<Step>,
    operations: usize,
}

impl Generator {
    fn step(&mut self) -> Step {
        match self.random.below(100) {
            0..=44 => {
                let request = self.request();
                // It fails on both sides where it fails.
                let _ = update_oracle(&self.store, &request);
                Step::Update(request)
            }
            45..=61 if !self.queries.is_empty() => self.random.pick(&self.queries).clone(),
            45..=71 if !self.profile.blanks && self.random.chance(40) => {
                let query = random_query::bold_query(&mut self.random, self.profile);
                self.asked(Step::Defined(Box::new(query)))
            }
            45..=71 => {
                let query = random_query::query(&mut self.random, self.profile);
                self.asked(Step::Query(Box::new(query)))
            }
            72..=87 => {
                let query = self.select();
                self.asked(Step::Select(query))
            }
            88..=92 => Step::Merge,
            93..=94 => Step::Checkpoint,
            95..=96 => {
                let quads: Vec<Quad> = (0..self.random.between(1, 10))
                    .map(|_| self.quad(false))
                    .collect();
                self.store
                    .extend(quads.iter().cloned())
                    .expect("a store in memory");
                Step::Load(quads)
            }
            _ => Step::Reopen,
        }
    }

    fn asked(&mut self, step: Step) -> Step {
        self.queries.push(step.clone());
        step
    }

    // Terms.

    fn quad(&mut self, blanks: bool) -> Quad {
        let profile = Profile {
            blanks: blanks && self.profile.blanks && self.random.chance(20),
            ..self.profile
        };
        let random = &mut self.random;
        let graph = if profile.graphs && random.chance(40) {
            iri(random.name(&GRAPHS)).into()
        } else {
            GraphName::DefaultGraph
        };
        let subject: NamedOrBlankNode = match random.below(10) {
            0 => iri(random.name(&CLASSES)).into(),
            1 => iri(random.name(&["mix", "g0"])).into(),
            _ => node(random, profile),
        };
        let (predicate, object) = match random.below(20) {
            0 => (
                iri(random.name(&VERTICES)),
                random_data::term(random, Domain::Any, profile),
            ),
            1 | 2 => {
                let class = match random.below(4) {
                    0 => iri(random.name(&VERTICES)),
                    1 => iri(random.name(&NODE_PREDICATES)),
                    _ => iri(random.name(&CLASSES)),
                };
                (rdf::TYPE.into_owned(), class.into())
            }
            3 if profile.types => (
                rdf::TYPE.into_owned(),
                random_data::term(random, Domain::Node, profile),
            ),
            4 => (
                iri(random.name(&CLASSES)),
                random_data::term(random, Domain::Node, profile),
            ),
            _ => {
                let domain = *random.pick(&[
                    Domain::Node,
                    Domain::Node,
                    Domain::Node,
                    Domain::Number,
                    Domain::String,
                    Domain::Language,
                    Domain::Date,
                    Domain::Boolean,
                    Domain::Any,
                ]);
                let object = random_data::term(random, domain, profile);
                (random_data::predicate(random, domain), object)
            }
        };
        Quad::new(subject, predicate, object, graph)
    }

    /// Quads without blank nodes that are there, in an order that the seed decides.
    fn known(&self) -> Vec<Quad> {
        let mut quads = quads_of(&self.store);
        quads.retain(is_ground);
        quads.sort_by_cached_key(ToString::to_string);
        quads
    }

    fn graph(&mut self) -> &'static str {
        self.random.name(&["g0", "g1", "g2", "v0"])
    }

    // Queries beside those of `random_query`.

    /// All matches of one or two patterns, each position bound to a term that is there, or not.
    fn select(&mut self) -> String {
        const FIXED: [&str; 10] = [
            "SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p",
            "SELECT ?c (COUNT(?s) AS ?n) { ?s a ?c } GROUP BY ?c",
            "SELECT * { ?s a ?c . ?c ?p ?o }",
            "SELECT * { ?s a ?c . ?c a ?d }",
            "SELECT * { ?s ?p ?o . ?p ?q ?r }",
            "SELECT ?g (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } } GROUP BY ?g",
            "SELECT * { ?s :p0+ ?o }",
            "SELECT * { ?s :p0 ?o FILTER NOT EXISTS { ?o a ?c } }",
            "SELECT DISTINCT ?p { ?s ?p ?o }",
            "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }",
        ];
        if self.random.chance(30) {
            return format!("PREFIX : <{NAMESPACE}> {}", self.random.name(&FIXED));
        }
        let known = self.known();
        let mut patterns = String::new();
        for index in 0..self.random.between(1, 2) {
            let quad = if known.is_empty() || self.random.chance(20) {
                self.quad(false)
            } else {
                self.random.pick(&known).clone()
            };
            let mut position = |term: String, variable: &str| {
                if self.random.chance(50) {
                    term
                } else {
                    format!("?{variable}")
                }
            };
            let subject = position(quad.subject.to_string(), "s");
            let predicate = position(quad.predicate.to_string(), &format!("p{index}"));
            let object = position(quad.object.to_string(), &format!("o{index}"));
            let pattern = format!("{subject} {predicate} {object} .");
            patterns.push_str(&match &quad.graph_name {
                GraphName::NamedNode(name) if self.random.chance(70) => {
                    let name = if self.random.chance(50) {
                        name.to_string()
                    } else {
                        "?g".to_owned()
                    };
                    format!(" GRAPH {name} {{ {pattern} }}")
                }
                _ => format!(" {pattern}"),
            });
        }
        format!("SELECT * {{{patterns} }}")
    }

    // Requests.

    fn request(&mut self) -> String {
        let mut request = format!(
            "PREFIX : <{NAMESPACE}>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n{}",
            self.operation(true)
        );
        while self.random.chance(25) {
            // Solutions are counted before the request, which is near enough.
            request.push_str(";\n");
            request.push_str(&self.operation(false));
        }
        request
    }

    /// One operation; labels of blank nodes are its own, as a request may not share them.
    fn operation(&mut self, is_first: bool) -> String {
        self.operations += 1;
        let own = format!("_:o{}x", self.operations);
        self.any_operation(is_first).replace("_:", &own)
    }

    fn any_operation(&mut self, is_first: bool) -> String {
        let quads = self.store.len().expect("a store in memory");
        match self.random.below(100) {
            0..=29 if quads < QUADS_MANY => {
                let count = self.random.between(1, 8);
                let quads: Vec<Quad> = (0..count).map(|_| self.quad(true)).collect();
                format!("INSERT DATA {{\n{}}}", as_data(&quads))
            }
            0..=49 => self.delete_data(),
            50..=74 => self.modify(quads < QUADS_MANY),
            75..=81 => self.delete_where(),
            _ => self.whole_graphs(is_first),
        }
    }

    fn delete_data(&mut self) -> String {
        let known = self.known();
        let mut quads = Vec::new();
        // Now and then all of one predicate, subject or object, so that it vanishes.
        if !known.is_empty() && self.random.chance(30) {
            let chosen = self.random.pick(&known).clone();
            let part = self.random.below(3);
            quads.extend(known.into_iter().filter(|quad| match part {
                0 => quad.predicate == chosen.predicate,
                1 => quad.subject == chosen.subject,
                _ => quad.object == chosen.object,
            }));
        } else {
            for _ in 0..self.random.between(1, 8) {
                if known.is_empty() || self.random.chance(20) {
                    quads.push(self.quad(false));
                } else {
                    quads.push(self.random.pick(&known).clone());
                }
            }
        }
        format!("DELETE DATA {{\n{}}}", as_data(&quads))
    }

    fn delete_where(&mut self) -> String {
        let known = self.known();
        let quad = if known.is_empty() {
            self.quad(false)
        } else {
            self.random.pick(&known).clone()
        };
        let (mut s, mut p, mut o) = (
            quad.subject.to_string(),
            quad.predicate.to_string(),
            quad.object.to_string(),
        );
        let unbound = self.random.between(1, 6);
        for (bit, place, variable) in [(1, &mut s, "?s"), (2, &mut p, "?p"), (4, &mut o, "?o")] {
            if unbound & bit != 0 {
                *place = variable.to_owned();
            }
        }
        let pattern = format!("{s} {p} {o}");
        match &quad.graph_name {
            GraphName::DefaultGraph => format!("DELETE WHERE {{ {pattern} }}"),
            graph => format!("DELETE WHERE {{ GRAPH {graph} {{ {pattern} }} }}"),
        }
    }

    fn modify(&mut self, may_insert: bool) -> String {
        let Some((mut query, variables)) = self.clause() else {
            return self.delete_where();
        };
        let inserts = may_insert && self.random.chance(70);
        let deletes = !inserts || self.random.chance(50);
        let mut text = String::new();
        if query.from.is_empty() && self.random.chance(10) {
            text.push_str(&format!("WITH :{}\n", self.graph()));
        }
        if deletes {
            text.push_str(&format!(
                "DELETE {{{} }}\n",
                self.template(&variables, false)
            ));
        }
        if inserts {
            text.push_str(&format!(
                "INSERT {{{} }}\n",
                self.template(&variables, true)
            ));
        }
        for name in std::mem::take(&mut query.from) {
            text.push_str(&format!("USING {name}\n"));
        }
        for name in std::mem::take(&mut query.from_named) {
            text.push_str(&format!("USING NAMED {name}\n"));
        }
        text.push_str(&format!("WHERE {}", query.pattern));
        text
    }

    /// A WHERE clause, mostly with solutions, and its variables that keep terms as they are.
    fn clause(&mut self) -> Option<(Query, Vec<String>)> {
        let dataset: Dataset = quads_of(&self.store).iter().collect();
        let mut found = None;
        for _ in 0..CLAUSES_TRIED {
            let mut query = random_query::query(&mut self.random, self.profile);
            query.form = Form::Select {
                distinct: false,
                items: Vec::new(),
            };
            query.group_by.clear();
            query.having = None;
            let query = query.unordered();
            let Ok(Answer::Solutions(table)) = ask_oracle(&dataset, &query.to_string()) else {
                continue;
            };
            let is_something = !table.rows.is_empty();
            if table.rows.len() > SOLUTIONS_LIMIT {
                continue;
            }
            let mut variables = table.variables;
            variables.retain(|name| Column::of(name) == Column::Exact);
            if variables.is_empty() {
                continue;
            }
            variables.sort();
            found = Some((query, variables));
            if is_something {
                break;
            }
        }
        found
    }

    /// Triples of variables and terms; some make no triple for some solutions.
    fn template(&mut self, variables: &[String], blanks: bool) -> String {
        let mut text = String::new();
        for _ in 0..self.random.between(1, 3) {
            let quad = self.quad(false);
            let blanks = blanks && self.profile.blanks;
            // Objects keep to the domain of their predicate, and predicates of literals are no
            // vertices: what the oracle makes of IRIs in comparisons is its own.
            let domain = domain_of_predicate(quad.predicate.as_str());
            let nodes = |name: &&String| name.starts_with(['x', 'g']);
            let fitting = |name: &&String| domain == Domain::Any || domain_of(name) == domain;
            let not_predicate = |name: &&String| !name.starts_with('q');
            let subjects: Vec<&String> = variables.iter().filter(not_predicate).collect();
            let predicates: Vec<&String> = variables.iter().filter(nodes).collect();
            let objects = subjects.iter().copied().filter(|name| fitting(name));
            let objects: Vec<&String> = objects.collect();
            let is_free = domain == Domain::Any;
            let mut position = |percent: usize, term: String, names: &[&String], blank: bool| {
                if !names.is_empty() && self.random.chance(percent) {
                    format!("?{}", self.random.pick(names))
                } else if blank && blanks && self.random.chance(10) {
                    "_:t".to_owned()
                } else {
                    term
                }
            };
            let subject = position(70, quad.subject.to_string(), &subjects, true);
            let is_node = is_free || domain == Domain::Node;
            let object = position(70, quad.object.to_string(), &objects, is_node);
            let predicate = quad.predicate.to_string();
            let predicate = if object.starts_with("?x") {
                position(25, predicate, &predicates, false)
            } else {
                predicate
            };
            let pattern = format!("{subject} {predicate} {object} .");
            if self.profile.graphs && self.random.chance(30) {
                // Only variables of GRAPH: the oracle takes blank nodes for names of graphs.
                let names = variables.iter().filter(|name| name.starts_with('g'));
                let names: Vec<&String> = names.collect();
                let graph = if !names.is_empty() && self.random.chance(40) {
                    format!("?{}", self.random.pick(&names))
                } else {
                    format!(":{}", self.graph())
                };
                text.push_str(&format!(" GRAPH {graph} {{ {pattern} }}"));
            } else {
                text.push_str(&format!(" {pattern}"));
            }
        }
        text
    }

    fn whole_graphs(&mut self, is_first: bool) -> String {
        let silent = if is_first && self.random.chance(50) {
            ""
        } else {
            "SILENT "
        };
        let graph = self.graph();
        let place = |this: &mut Self| match this.random.below(3) {
            0 => "DEFAULT".to_owned(),
            _ => format!(":{}", this.graph()),
        };
        match self.random.below(12) {
            0 | 1 => format!("CREATE {silent}GRAPH :{graph}"),
            2 => format!("CLEAR {silent}GRAPH :{graph}"),
            3 => format!("DROP {silent}GRAPH :{graph}"),
            4 => {
                let verb = self.random.name(&["CLEAR", "DROP"]);
                let what = self
                    .random
                    .name(&["DEFAULT", "DEFAULT", "NAMED", "NAMED", "ALL"]);
                format!("{verb} {silent}{what}")
            }
            _ => {
                let verb = self.random.name(&["COPY", "MOVE", "ADD"]);
                let (from, to) = (place(self), place(self));
                let transfer = format!("{verb} {silent}{from} TO {to}");
                // The oracle takes an absent graph for an empty one.
                match from.as_str() {
                    "DEFAULT" => transfer,
                    graph => format!("CREATE SILENT GRAPH {graph} ; {transfer}"),
                }
            }
        }
    }
}
