//! Which small data sets make joins, types and values collide?
//!
//! The vocabulary is fixed. Predicates have a kind of object, so that a query generator knows what
//! a variable can be: `:p0` to `:p2` and `rdf:type` lead to nodes, `:num`, `:str`, `:lang`,
//! `:date` and `:flag` to literals of one kind, `:mix` to anything. Some predicates are vertices.

use crate::random::Random;
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use std::collections::BTreeSet;

/// The namespace of everything generated.
pub const NAMESPACE: &str = "http://example.org/";
/// Predicates whose objects are nodes, besides `rdf:type`.
pub const NODE_PREDICATES: [&str; 3] = ["p0", "p1", "p2"];
/// Names of the vertices.
pub const VERTICES: [&str; 6] = ["v0", "v1", "v2", "v3", "v4", "v5"];
/// Names of the classes.
pub const CLASSES: [&str; 3] = ["C0", "C1", "C2"];
/// Names of the named graphs.
pub const GRAPHS: [&str; 3] = ["g0", "g1", "g2"];
/// Labels of the blank nodes.
pub const BLANKS: [&str; 3] = ["b0", "b1", "b2"];

/// What literals of one predicate, or values of one variable, can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Domain {
    /// IRIs and blank nodes.
    Node,
    /// Integers, decimals and doubles; no NaN, no infinity.
    Number,
    /// Plain strings.
    String,
    /// Strings with a language.
    Language,
    /// `xsd:dateTime` with a time zone, so that any two compare.
    Date,
    /// Booleans.
    Boolean,
    /// All of these.
    Any,
}

/// What a data set has.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    /// Statements of `rdf:type`.
    pub types: bool,
    /// Named graphs.
    pub graphs: bool,
    /// Blank nodes.
    pub blanks: bool,
    /// Literals equal in value but written differently, such as `01` and `1`.
    pub other_spellings: bool,
}

impl Profile {
    /// A random one.
    pub fn random(random: &mut Random) -> Self {
        Self {
            types: random.chance(70),
            graphs: random.chance(50),
            blanks: random.chance(50),
            other_spellings: random.chance(40),
        }
    }
}

/// An IRI of the generated namespace.
pub fn iri(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("{NAMESPACE}{name}"))
}

/// The predicate with objects of this domain.
pub fn predicate(random: &mut Random, domain: Domain) -> NamedNode {
    iri(match domain {
        Domain::Node => random.name(&NODE_PREDICATES),
        Domain::Number => "num",
        Domain::String => "str",
        Domain::Language => "lang",
        Domain::Date => "date",
        Domain::Boolean => "flag",
        Domain::Any => "mix",
    })
}

/// A literal of a domain; in [`Domain::Node`] and [`Domain::Any`] also a node.
pub fn term(random: &mut Random, domain: Domain, profile: Profile) -> Term {
    match domain {
        Domain::Node => return node(random, profile).into(),
        Domain::Any => {
            let domains = [
                Domain::Node,
                Domain::Number,
                Domain::Number,
                Domain::String,
                Domain::Language,
                Domain::Date,
                Domain::Boolean,
            ];
            let domain = *random.pick(&domains);
            return term(random, domain, profile);
        }
        Domain::Number => number(random, profile),
        Domain::String => {
            Literal::from(*random.pick(&["a", "b", "ab", "abc", "", "a b", "Zürich", "1", "B"]))
        }
        Domain::Language => {
            let (value, language) = *random.pick(&[
                ("a", "en"),
                ("a", "fr"),
                ("b", "en"),
                ("chat", "fr"),
                ("hello", "en-us"),
            ]);
            Literal::new_language_tagged_literal_unchecked(value, language)
        }
        Domain::Date => {
            let mut spellings = vec![
                "2020-01-01T00:00:00Z",
                "2020-06-15T12:30:00Z",
                "2021-12-31T23:59:59Z",
                "1999-02-28T08:05:01.5Z",
            ];
            if profile.other_spellings {
                spellings.extend(["2020-01-01T00:00:00+00:00", "2020-01-01T01:00:00+01:00"]);
            }
            Literal::new_typed_literal(*random.pick(&spellings), xsd::DATE_TIME)
        }
        Domain::Boolean => {
            let spellings: &[_] = if profile.other_spellings {
                &["true", "false", "1", "0"]
            } else {
                &["true", "false"]
            };
            Literal::new_typed_literal(*random.pick(spellings), xsd::BOOLEAN)
        }
    }
    .into()
}

fn number(random: &mut Random, profile: Profile) -> Literal {
    let mut spellings = vec![
        ("0", xsd::INTEGER),
        ("1", xsd::INTEGER),
        ("2", xsd::INTEGER),
        ("3", xsd::INTEGER),
        ("10", xsd::INTEGER),
        ("-1", xsd::INTEGER),
        ("0.5", xsd::DECIMAL),
        ("1", xsd::DECIMAL),
        ("2.5", xsd::DECIMAL),
        ("-2.5", xsd::DECIMAL),
        ("0.5", xsd::DOUBLE),
        ("2", xsd::DOUBLE),
        ("-1.25", xsd::DOUBLE),
    ];
    if profile.other_spellings {
        spellings.extend([
            ("01", xsd::INTEGER),
            ("+1", xsd::INTEGER),
            ("1.0", xsd::DECIMAL),
            ("2.50", xsd::DECIMAL),
            ("2.0E0", xsd::DOUBLE),
            ("5e-1", xsd::DOUBLE),
        ]);
    }
    let (value, datatype) = *random.pick(&spellings);
    Literal::new_typed_literal(value, datatype)
}

/// A vertex, now and then a blank node or a predicate.
pub fn node(random: &mut Random, profile: Profile) -> NamedOrBlankNode {
    if profile.blanks && random.chance(15) {
        return BlankNode::new_unchecked(random.name(&BLANKS)).into();
    }
    if random.chance(5) {
        return iri(random.name(&NODE_PREDICATES)).into();
    }
    iri(random.name(&VERTICES)).into()
}

/// A data set of at most 15 to 70 quads.
pub fn dataset(random: &mut Random, profile: Profile) -> Vec<Quad> {
    let count = random.between(15, 70);
    let mut quads = Vec::with_capacity(count);
    for _ in 0..count {
        let quad = quad(random, profile);
        if !quads.contains(&quad) {
            quads.push(quad);
        }
    }
    quads
}

/// Quads of a large data set.
const MANY: std::ops::RangeInclusive<usize> = 4_000..=16_000;

/// A data set in which batches fill up: most vertices are of thousands, a few are hubs.
pub fn large_dataset(random: &mut Random, profile: Profile) -> Vec<Quad> {
    let count = random.between(*MANY.start(), *MANY.end());
    let vertices = random.between(count / 8, count);
    let hubs_percent = random.between(1, 12);
    let is_vertex = |node: &NamedNode| {
        let name = node.as_str().strip_prefix(NAMESPACE);
        name.is_some_and(|name| VERTICES.contains(&name))
    };
    let (mut seen, mut found) = (BTreeSet::new(), Vec::with_capacity(count));
    for _ in 0..count {
        let mut quad = quad(random, profile);
        let mut spread = |node: &mut NamedNode| {
            if is_vertex(node) && !random.chance(hubs_percent) {
                *node = iri(&format!("v{}", random.below(vertices)));
            }
        };
        if let NamedOrBlankNode::NamedNode(node) = &mut quad.subject {
            spread(node);
        }
        match &mut quad.object {
            Term::NamedNode(node) => spread(node),
            Term::Literal(literal) if literal.datatype() == xsd::INTEGER && random.chance(70) => {
                let number = i64::try_from(random.below(2_000)).expect("it is small");
                *literal = Literal::from(number - 500);
            }
            Term::Literal(literal) if literal.datatype() == xsd::STRING && random.chance(70) => {
                let text = format!("{}{}", literal.value(), random.below(500));
                *literal = Literal::from(text);
            }
            _ => {}
        }
        if seen.insert(quad.to_string()) {
            found.push(quad);
        }
    }
    found
}

fn quad(random: &mut Random, profile: Profile) -> Quad {
    let graph = if profile.graphs && random.chance(35) {
        iri(random.name(&GRAPHS)).into()
    } else {
        GraphName::DefaultGraph
    };
    let subject = node(random, profile);
    let (predicate, object) = if profile.types && random.chance(20) {
        (rdf::TYPE.into_owned(), iri(random.name(&CLASSES)).into())
    } else {
        let domain = *random.pick(&[
            Domain::Node,
            Domain::Node,
            Domain::Node,
            Domain::Node,
            Domain::Number,
            Domain::Number,
            Domain::String,
            Domain::Language,
            Domain::Date,
            Domain::Boolean,
            Domain::Any,
            Domain::Any,
        ]);
        (predicate(random, domain), term(random, domain, profile))
    };
    Quad::new(subject, predicate, object, graph)
}
