//! Which expressions are worth asking about variables of known domains?
//!
//! Where the standard leaves an outcome open, or the oracle is known to differ from it, nothing is
//! generated; each place says so:
//! - `=` and `!=` between literals of different kinds (an error by the standard, false in the
//!   oracle), so both sides are always of one domain, strings with a language only by `sameTerm`;
//! - `<=` and `>=` of what cannot be compared (`:a >= :a` is true in the oracle);
//! - arithmetic on dates, which the oracle has as an extension;
//! - the text of numbers, booleans and dates where the data spells equal values differently, since
//!   the oracle computes with values only; `sameTerm` of such literals for the same reason;
//! - division by anything but a constant, which may make NaN, about which `<=` is another matter.

use crate::query::Expression;
use crate::random::Random;
use crate::random_data::{self, Domain, Profile, iri};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, NamedNode};

/// A variable that an expression may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Variable {
    /// Without `?`.
    pub name: String,
    /// What it can be.
    pub domain: Domain,
    /// Whether it is bound in every solution.
    pub certain: bool,
}

/// Makes expressions over some variables.
pub struct Expressions<'a> {
    /// Where choices come from.
    pub random: &'a mut Random,
    /// What the data has.
    pub profile: Profile,
    /// What expressions may use.
    pub variables: &'a [Variable],
}

/// `?name`.
pub fn variable(name: &str) -> Expression {
    Expression::Variable(name.to_owned())
}

fn text(value: &str) -> Expression {
    Expression::Term(Literal::from(value).into())
}

fn integer(value: i64) -> Expression {
    Expression::Term(Literal::from(value).into())
}

fn binary(operator: &'static str, left: Expression, right: Expression) -> Expression {
    Expression::Binary(operator, Box::new(left), Box::new(right))
}

const COMPARISONS: [&str; 6] = ["=", "!=", "<", "<=", ">", ">="];

impl Expressions<'_> {
    fn of(&mut self, domain: Domain) -> Option<Expression> {
        let found: Vec<_> = self
            .variables
            .iter()
            .filter(|variable| variable.domain == domain)
            .collect();
        (!found.is_empty()).then(|| variable(&self.random.pick(&found).name))
    }

    fn any(&mut self) -> Option<Expression> {
        (!self.variables.is_empty()).then(|| variable(&self.random.pick(self.variables).name))
    }

    fn constant(&mut self, domain: Domain) -> Expression {
        let profile = Profile {
            blanks: false,
            ..self.profile
        };
        Expression::Term(random_data::term(self.random, domain, profile))
    }

    fn of_or_constant(&mut self, domain: Domain) -> Expression {
        if self.random.chance(60)
            && let Some(found) = self.of(domain)
        {
            return found;
        }
        self.constant(domain)
    }

    /// A condition.
    pub fn boolean(&mut self, depth: usize) -> Expression {
        if depth > 0 && self.random.chance(35) {
            return match self.random.below(6) {
                0 | 1 => binary("&&", self.boolean(depth - 1), self.boolean(depth - 1)),
                2 | 3 => binary("||", self.boolean(depth - 1), self.boolean(depth - 1)),
                4 => Expression::Unary("!", Box::new(self.boolean(depth - 1))),
                _ => Expression::Call(
                    if self.random.chance(50) {
                        "IF"
                    } else {
                        "COALESCE"
                    },
                    vec![
                        self.boolean(depth - 1),
                        self.boolean(depth - 1),
                        self.boolean(depth - 1),
                    ],
                ),
            };
        }
        match self.random.below(14) {
            0..=2 => {
                let operator = self.random.name(&COMPARISONS);
                binary(operator, self.number(depth), self.number(depth))
            }
            3 => {
                let operator = self.random.name(&COMPARISONS);
                binary(operator, self.string(depth), self.string(depth))
            }
            4 => {
                let operator = self.random.name(&COMPARISONS);
                let left = self.of_or_constant(Domain::Date);
                binary(operator, left, self.constant(Domain::Date))
            }
            5 => self.of_or_constant(Domain::Boolean),
            6 => self.about_nodes(),
            7 => match self.any() {
                Some(found) => Expression::Call("BOUND", vec![found]),
                None => self.constant(Domain::Boolean),
            },
            8 | 9 => self.about_any(),
            10 | 11 => self.about_text(depth),
            12 => self.about_language(),
            _ => {
                let count = self.random.between(1, 3);
                let list = (0..count).map(|_| self.constant(Domain::Number)).collect();
                let negated = self.random.chance(40);
                Expression::In(Box::new(self.number(depth)), negated, list)
            }
        }
    }

    fn about_nodes(&mut self) -> Expression {
        let left = self.of_or_constant(Domain::Node);
        match self.random.below(3) {
            0 => {
                let count = self.random.between(1, 3);
                let list = (0..count).map(|_| self.constant(Domain::Node)).collect();
                let negated = self.random.chance(40);
                Expression::In(Box::new(left), negated, list)
            }
            1 => binary("=", left, self.of_or_constant(Domain::Node)),
            _ => binary("!=", left, self.of_or_constant(Domain::Node)),
        }
    }

    fn about_any(&mut self) -> Expression {
        let Some(found) = self.of(Domain::Any).or_else(|| self.any()) else {
            return self.constant(Domain::Boolean);
        };
        match self.random.below(7) {
            0 => Expression::Call("isIRI", vec![found]),
            1 => Expression::Call("isBLANK", vec![found]),
            2 => Expression::Call("isLITERAL", vec![found]),
            3 => Expression::Call("isNUMERIC", vec![found]),
            4 => {
                let domain = if self.profile.other_spellings {
                    Domain::Node
                } else {
                    Domain::Any
                };
                let other = self.constant(domain);
                Expression::Call("sameTerm", vec![found, other])
            }
            5 => {
                let datatype: NamedNode = (*self.random.pick(&[
                    xsd::INTEGER,
                    xsd::DECIMAL,
                    xsd::STRING,
                    xsd::DATE_TIME,
                    xsd::BOOLEAN,
                ]))
                .into_owned();
                binary(
                    "=",
                    Expression::Call("DATATYPE", vec![found]),
                    Expression::Term(datatype.into()),
                )
            }
            _ => {
                let operator = if self.random.chance(50) { "<" } else { ">" };
                binary(operator, found, self.constant(Domain::Number))
            }
        }
    }

    fn about_text(&mut self, depth: usize) -> Expression {
        let left = self.string(depth);
        match self.random.below(4) {
            0 => {
                let pattern = self.random.name(&["^a", "b$", "a.c", "[A-Z]", "^$"]);
                let mut arguments = vec![left, text(pattern)];
                if self.random.chance(40) {
                    arguments.push(text("i"));
                }
                Expression::Call("REGEX", arguments)
            }
            1 => Expression::Call("CONTAINS", vec![left, self.string(0)]),
            2 => Expression::Call("STRSTARTS", vec![left, self.string(0)]),
            _ => Expression::Call("STRENDS", vec![left, self.string(0)]),
        }
    }

    fn about_language(&mut self) -> Expression {
        let Some(found) = self.of(Domain::Language).or_else(|| self.of(Domain::Any)) else {
            return self.constant(Domain::Boolean);
        };
        let language = Expression::Call("LANG", vec![found]);
        if self.random.chance(50) {
            let range = self.random.name(&["en", "fr", "*", "EN"]);
            Expression::Call("LANGMATCHES", vec![language, text(range)])
        } else {
            binary("=", language, text(self.random.name(&["en", "fr", ""])))
        }
    }

    /// A number, or an error.
    pub fn number(&mut self, depth: usize) -> Expression {
        if depth == 0 || self.random.chance(50) {
            return self.of_or_constant(Domain::Number);
        }
        match self.random.below(10) {
            0 => binary("+", self.number(depth - 1), self.number(depth - 1)),
            1 => binary("-", self.number(depth - 1), self.number(depth - 1)),
            2 => binary("*", self.number(depth - 1), self.number(depth - 1)),
            3 => {
                let divisor = integer(*self.random.pick(&[1, 2, 3, -4]));
                binary("/", self.number(depth - 1), divisor)
            }
            4 => Expression::Unary("-", Box::new(self.number(depth - 1))),
            5 => {
                let name = self.random.name(&["ABS", "CEIL", "FLOOR", "ROUND"]);
                Expression::Call(name, vec![self.number(depth - 1)])
            }
            6 => Expression::Call("STRLEN", vec![self.string(depth - 1)]),
            7 => {
                let parts = ["YEAR", "MONTH", "DAY", "HOURS", "MINUTES", "SECONDS"];
                let name = self.random.name(&parts);
                Expression::Call(name, vec![self.of_or_constant(Domain::Date)])
            }
            8 => {
                let name = *self
                    .random
                    .pick(&["xsd:integer", "xsd:decimal", "xsd:double"]);
                Expression::Call(name, vec![self.number(depth - 1)])
            }
            _ => Expression::Call(
                "IF",
                vec![
                    self.boolean(depth - 1),
                    self.number(depth - 1),
                    self.number(depth - 1),
                ],
            ),
        }
    }

    /// A plain string, or an error.
    pub fn string(&mut self, depth: usize) -> Expression {
        if depth == 0 || self.random.chance(40) {
            return self.of_or_constant(Domain::String);
        }
        match self.random.below(10) {
            0 => {
                let mut domains = vec![Domain::Node, Domain::Language, Domain::String];
                if !self.profile.other_spellings {
                    domains.extend([Domain::Date, Domain::Boolean, Domain::Any]);
                }
                let domain = *self.random.pick(&domains);
                Expression::Call("STR", vec![self.of_or_constant(domain)])
            }
            1 => Expression::Call("LCASE", vec![self.string(depth - 1)]),
            2 => Expression::Call("UCASE", vec![self.string(depth - 1)]),
            3 => Expression::Call(
                "CONCAT",
                vec![self.string(depth - 1), self.string(depth - 1)],
            ),
            4 => {
                let mut arguments = vec![
                    self.string(depth - 1),
                    integer(*self.random.pick(&[0, 1, 2])),
                ];
                if self.random.chance(50) {
                    arguments.push(integer(*self.random.pick(&[0, 1, 2])));
                }
                Expression::Call("SUBSTR", arguments)
            }
            5 => Expression::Call("STRBEFORE", vec![self.string(depth - 1), text("b")]),
            6 => Expression::Call("STRAFTER", vec![self.string(depth - 1), text("a")]),
            7 => Expression::Call(
                "REPLACE",
                vec![self.string(depth - 1), text("a"), text("x")],
            ),
            8 => Expression::Call("ENCODE_FOR_URI", vec![self.string(depth - 1)]),
            _ => Expression::Call(
                "COALESCE",
                vec![self.string(depth - 1), self.string(depth - 1)],
            ),
        }
    }

    /// A number to be bound to a variable: computed, so that it has the canonical spelling even
    /// where the data has others.
    pub fn computed_number(&mut self) -> Expression {
        let inner = self.number(2);
        if self.profile.other_spellings {
            binary("+", inner, integer(0))
        } else {
            inner
        }
    }

    /// A condition to be bound to a variable, with the canonical spelling as above.
    pub fn computed_boolean(&mut self) -> Expression {
        let inner = self.boolean(1);
        if self.profile.other_spellings {
            Expression::Unary("!", Box::new(Expression::Unary("!", Box::new(inner))))
        } else {
            inner
        }
    }

    /// The IRI of a vertex that may or may not be in the data, computed.
    pub fn node(&mut self) -> Expression {
        if self.random.chance(50)
            && let Some(found) = self.of(Domain::Node)
        {
            return Expression::Call("IRI", vec![Expression::Call("STR", vec![found])]);
        }
        let name = self.random.name(&random_data::VERTICES);
        Expression::Call("IRI", vec![text(iri(name).as_str())])
    }
}
