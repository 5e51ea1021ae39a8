//! What is a generated property path, and how is it written?

use crate::random::Random;
use std::fmt;

/// A path as the grammar has it. Predicates are names in the generated namespace, or `type` for
/// `rdf:type`.
#[derive(Debug, Clone, PartialEq)]
pub enum Path {
    /// A predicate.
    Edge(String),
    /// A negated property set: forward and inverse members, one at least.
    Negated(Vec<String>, Vec<String>),
    /// `^`
    Inverse(Box<Self>),
    /// `/`
    Sequence(Box<Self>, Box<Self>),
    /// `|`
    Alternative(Box<Self>, Box<Self>),
    /// `?`
    ZeroOrOne(Box<Self>),
    /// `*`
    ZeroOrMore(Box<Self>),
    /// `+`
    OneOrMore(Box<Self>),
}

fn predicate(random: &mut Random) -> String {
    match random.below(12) {
        0 => "nowhere".to_owned(),
        1 => "type".to_owned(),
        _ => format!("p{}", random.below(3)),
    }
}

impl Path {
    /// Any path, nested `depth` deep at most.
    pub fn random(random: &mut Random, depth: usize) -> Self {
        let inner = |random: &mut Random| Box::new(Self::random(random, depth - 1));
        match random.below(if depth == 0 { 4 } else { 13 }) {
            0..=2 => Self::Edge(predicate(random)),
            3 => {
                let forward: Vec<_> = (0..random.below(3)).map(|_| predicate(random)).collect();
                let least = usize::from(forward.is_empty());
                let inverse = (0..random.between(least, 1)).map(|_| predicate(random));
                Self::Negated(forward, inverse.collect())
            }
            4 | 5 => Self::Inverse(inner(random)),
            6..=8 => Self::Sequence(inner(random), inner(random)),
            9 | 10 => Self::Alternative(inner(random), inner(random)),
            _ => Self::random_repeated(random, depth),
        }
    }

    /// A path that is repeated, which connects each pair of terms once at most.
    pub fn random_repeated(random: &mut Random, depth: usize) -> Self {
        let inner = Box::new(Self::random(random, depth - 1));
        match random.below(7) {
            0 | 1 => Self::ZeroOrOne(inner),
            2..=4 => Self::ZeroOrMore(inner),
            _ => Self::OneOrMore(inner),
        }
    }

    /// A path whose parts are joined with all their duplicates: a sequence of edges and repeated
    /// paths, in either direction.
    pub fn random_sequence(random: &mut Random, depth: usize) -> Self {
        let part = match random.below(3) {
            0 => Self::Edge(predicate(random)),
            _ => Self::random_repeated(random, depth),
        };
        let part = match random.chance(25) {
            true => Self::Inverse(Box::new(part)),
            false => part,
        };
        if random.chance(75) {
            return part;
        }
        let rest = Box::new(Self::random_sequence(random, depth));
        Self::Sequence(Box::new(part), rest)
    }

    /// Whether a term is connected with itself without an edge.
    #[must_use]
    pub fn is_nullable(&self) -> bool {
        match self {
            Self::Edge(_) | Self::Negated(..) => false,
            Self::Inverse(inner) | Self::OneOrMore(inner) => inner.is_nullable(),
            Self::Sequence(first, second) => first.is_nullable() && second.is_nullable(),
            Self::Alternative(first, second) => first.is_nullable() || second.is_nullable(),
            Self::ZeroOrOne(_) | Self::ZeroOrMore(_) => true,
        }
    }

    /// Whether [`Path::random_sequence`] may make it.
    #[must_use]
    pub fn is_sequence(&self) -> bool {
        match self {
            Self::Edge(_) | Self::ZeroOrOne(_) | Self::ZeroOrMore(_) | Self::OneOrMore(_) => true,
            Self::Inverse(inner) => inner.is_sequence(),
            Self::Sequence(first, second) => first.is_sequence() && second.is_sequence(),
            Self::Negated(..) | Self::Alternative(..) => false,
        }
    }

    /// Paths with one thing less.
    #[must_use]
    pub fn simpler(&self) -> Vec<Self> {
        let one = |inner: &Self, make: &dyn Fn(Box<Self>) -> Self| {
            let mut paths = vec![inner.clone()];
            paths.extend(inner.simpler().into_iter().map(|path| make(Box::new(path))));
            paths
        };
        let two = |first: &Self, second: &Self, make: &dyn Fn(Box<Self>, Box<Self>) -> Self| {
            let mut paths = vec![first.clone(), second.clone()];
            let boxed = |path: &Self| Box::new(path.clone());
            paths.extend(
                first
                    .simpler()
                    .into_iter()
                    .map(|path| make(Box::new(path), boxed(second))),
            );
            paths.extend(
                second
                    .simpler()
                    .into_iter()
                    .map(|path| make(boxed(first), Box::new(path))),
            );
            paths
        };
        match self {
            Self::Edge(_) | Self::Negated(..) => Vec::new(),
            Self::Inverse(inner) => one(inner, &Self::Inverse),
            Self::Sequence(first, second) => two(first, second, &Self::Sequence),
            Self::Alternative(first, second) => two(first, second, &Self::Alternative),
            Self::ZeroOrOne(inner) => one(inner, &Self::ZeroOrOne),
            Self::ZeroOrMore(inner) => one(inner, &Self::ZeroOrMore),
            Self::OneOrMore(inner) => one(inner, &Self::OneOrMore),
        }
    }
}

struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "type" => f.write_str("a"),
            name => write!(f, ":{name}"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edge(predicate) => write!(f, "{}", Name(predicate)),
            Self::Negated(forward, inverse) => {
                let forward = forward.iter().map(|name| Name(name).to_string());
                let inverse = inverse.iter().map(|name| format!("^{}", Name(name)));
                let members: Vec<String> = forward.chain(inverse).collect();
                write!(f, "!({})", members.join("|"))
            }
            Self::Inverse(inner) => write!(f, "(^{inner})"),
            Self::Sequence(first, second) => write!(f, "({first}/{second})"),
            Self::Alternative(first, second) => write!(f, "({first}|{second})"),
            Self::ZeroOrOne(inner) => write!(f, "({inner}?)"),
            Self::ZeroOrMore(inner) => write!(f, "({inner}*)"),
            Self::OneOrMore(inner) => write!(f, "({inner}+)"),
        }
    }
}
