//! What do the tests of expressions share?

use std::str::FromStr as _;
use std::sync::{Arc, Mutex};

use jindou_model::{IdEpoch, TermId, TermKind, Unavailable, inline, key};
use jindou_plan::expression::{Arithmetic, Comparison, Expression, Function};
use jindou_plan::physical::{ConstId, Var};
use oxrdf::{NamedNode, Term};
use oxsdatatypes::DateTime;
use rustc_hash::FxHashMap;
use spargebra::algebra::{Expression as Parsed, Function as ParsedFunction, GraphPattern};
use spargebra::{Query, SparqlParser};

use crate::expr::{Columns, CompiledExpression, Context, Row};
use crate::{TermSource, Terms};

/// Terms that a store would have, numbered as they come.
#[derive(Default)]
pub(in crate::expr) struct MemoryTerms {
    table: Mutex<Keys>,
}

#[derive(Default)]
struct Keys {
    ids: FxHashMap<Vec<u8>, TermId>,
    keys: Vec<Vec<u8>>,
    ends: Vec<Vec<u8>>,
}

impl MemoryTerms {
    /// The id of a term, which the store has from now on.
    pub(super) fn insert(&self, term: &Term) -> TermId {
        if let Term::Literal(literal) = term
            && let Some(id) = inline::encode(literal.value(), literal.datatype().as_str())
        {
            return id;
        }
        let mut bytes = Vec::new();
        let literal = key::push_term(&mut bytes, term.as_ref());
        let mut table = self.table.lock().expect("no test panics here");
        let number = table.keys.len() as u64;
        if let Some(id) = table.ids.get(&bytes) {
            return *id;
        }
        let id = if literal {
            TermId::literal(number)
        } else {
            TermId::vertex(number)
        };
        table.keys.push(bytes.clone());
        table.ids.insert(bytes, id);
        id
    }
}

impl TermSource for MemoryTerms {
    fn epoch(&self) -> IdEpoch {
        IdEpoch(1)
    }

    fn has(&self, id: TermId) -> bool {
        let table = self.table.lock().expect("no test panics here");
        id.number() < table.keys.len() as u64
    }

    fn end_number(&self, id: TermId) -> Option<u8> {
        let mut table = self.table.lock().expect("no test panics here");
        let key = &table.keys[id.number() as usize];
        let border = key.iter().rposition(|byte| *byte == 0)?;
        let end = key[border..].to_vec();
        let known = table.ends.iter().position(|known| *known == end);
        let number = known.unwrap_or_else(|| {
            table.ends.push(end);
            table.ends.len() - 1
        });
        u8::try_from(number).ok()
    }

    fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable> {
        let table = self.table.lock().expect("no test panics here");
        key.extend_from_slice(&table.keys[id.number() as usize]);
        Ok(())
    }

    fn lookup(&self, key: &[u8], literal: bool) -> Result<Option<TermId>, Unavailable> {
        let table = self.table.lock().expect("no test panics here");
        let id = table.ids.get(key).copied();
        let is_fitting = |id: TermId| (id.kind() == TermKind::Literal) == literal;
        assert!(id.is_none_or(is_fitting), "kinds of keys are told apart");
        Ok(id)
    }
}

/// A store of terms and the query's own.
pub(in crate::expr) struct World {
    pub(super) source: Arc<MemoryTerms>,
    pub(super) terms: Terms,
}

impl Default for World {
    fn default() -> Self {
        let source = Arc::<MemoryTerms>::default();
        let terms = Terms::new(source.clone());
        Self { source, terms }
    }
}

impl World {
    pub(in crate::expr) fn context(&self) -> Context {
        let now = DateTime::from_str("2024-02-29T12:34:56.789Z").expect("a dateTime");
        let base = NamedNode::new_unchecked("http://example.org/base/");
        Context::new(self.terms.clone(), Some(now), Some(&base), 7)
    }

    pub(super) fn insert(&self, text: &str) -> TermId {
        self.source
            .insert(&Term::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}")))
    }
}

/// An expression of a query's text with its constants.
pub(super) struct Sample {
    pub(super) expression: Expression,
    pub(super) constants: Vec<Term>,
    variables: Vec<String>,
}

const PREFIXES: &str = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
    PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
    PREFIX : <http://example.org/>";

/// The query that computes an expression for some rows; `VALUES` is its text.
pub(super) fn query(expression: &str, values: &str) -> Query {
    let text = format!("{PREFIXES} SELECT * {{ {values} BIND(({expression}) AS ?result) }}");
    SparqlParser::new()
        .with_base_iri("http://example.org/base/")
        .expect("an absolute IRI")
        .parse_query(&text)
        .unwrap_or_else(|error| panic!("{expression}: {error}"))
}

impl Sample {
    /// Parses an expression over the variables `?a` (0), `?b` (1) and `?c` (2).
    pub(super) fn parse(text: &str) -> Self {
        let Query::Select { pattern, .. } = query(text, "") else {
            unreachable!("the text is a SELECT");
        };
        let mut sample = Self {
            expression: Expression::Or(Vec::new()),
            constants: Vec::new(),
            variables: ["a", "b", "c"].map(str::to_owned).into(),
        };
        sample.expression = sample.convert(&bound_expression(&pattern));
        sample
    }

    pub(super) fn compile(&self, cx: &Context) -> CompiledExpression {
        let constants: Vec<TermId> = self
            .constants
            .iter()
            .map(|term| cx.terms().intern(term.as_ref()).unwrap())
            .collect();
        CompiledExpression::compile(&self.expression, &constants, cx).expect("nothing is refused")
    }

    /// The same with a variable for each constant, from variable 3 on.
    pub(super) fn compile_open(&self, cx: &Context) -> CompiledExpression {
        let open = with_variables(&self.expression);
        CompiledExpression::compile(&open, &[], cx).expect("nothing is refused")
    }

    fn constant(&mut self, term: Term) -> Expression {
        self.constants.push(term);
        Expression::Constant(ConstId((self.constants.len() - 1) as u16))
    }

    fn convert(&mut self, parsed: &Parsed) -> Expression {
        let mut boxed = |part: &Parsed| Box::new(self.convert(part));
        match parsed {
            Parsed::NamedNode(node) => self.constant(node.clone().into()),
            Parsed::Literal(literal) => self.constant(literal.clone().into()),
            Parsed::Variable(var) => Expression::Variable(self.variable(var.as_str())),
            Parsed::Bound(var) => Expression::Bound(self.variable(var.as_str())),
            Parsed::Or(left, right) => Expression::Or(vec![*boxed(left), *boxed(right)]),
            Parsed::And(left, right) => Expression::And(vec![*boxed(left), *boxed(right)]),
            Parsed::Not(part) => Expression::Not(boxed(part)),
            Parsed::Equal(left, right) => {
                Expression::Compare(Comparison::Equal, boxed(left), boxed(right))
            }
            Parsed::SameTerm(left, right) => {
                Expression::Compare(Comparison::SameTerm, boxed(left), boxed(right))
            }
            Parsed::Greater(left, right) => {
                Expression::Compare(Comparison::Greater, boxed(left), boxed(right))
            }
            Parsed::GreaterOrEqual(left, right) => {
                Expression::Compare(Comparison::GreaterOrEqual, boxed(left), boxed(right))
            }
            Parsed::Less(left, right) => {
                Expression::Compare(Comparison::Less, boxed(left), boxed(right))
            }
            Parsed::LessOrEqual(left, right) => {
                Expression::Compare(Comparison::LessOrEqual, boxed(left), boxed(right))
            }
            Parsed::Add(left, right) => {
                Expression::Arithmetic(boxed(left), vec![(Arithmetic::Add, *boxed(right))])
            }
            Parsed::Subtract(left, right) => {
                Expression::Arithmetic(boxed(left), vec![(Arithmetic::Subtract, *boxed(right))])
            }
            Parsed::Multiply(left, right) => {
                Expression::Arithmetic(boxed(left), vec![(Arithmetic::Multiply, *boxed(right))])
            }
            Parsed::Divide(left, right) => {
                Expression::Arithmetic(boxed(left), vec![(Arithmetic::Divide, *boxed(right))])
            }
            Parsed::UnaryPlus(part) => Expression::UnaryPlus(boxed(part)),
            Parsed::UnaryMinus(part) => Expression::UnaryMinus(boxed(part)),
            Parsed::If(condition, then, otherwise) => {
                Expression::If(boxed(condition), boxed(then), boxed(otherwise))
            }
            Parsed::In(part, list) => Expression::In(boxed(part), self.list(list)),
            Parsed::Coalesce(parts) => Expression::Coalesce(self.list(parts)),
            Parsed::FunctionCall(function, list) => {
                Expression::Call(convert_function(function), self.list(list))
            }
            Parsed::Exists(_) => panic!("EXISTS is no part of expressions"),
        }
    }

    fn list(&mut self, parts: &[Parsed]) -> Vec<Expression> {
        parts.iter().map(|part| self.convert(part)).collect()
    }

    fn variable(&mut self, name: &str) -> Var {
        let at = self.variables.iter().position(|known| known == name);
        Var(at.unwrap_or_else(|| panic!("?{name} is no variable of tests")) as u16)
    }
}

fn bound_expression(pattern: &GraphPattern) -> Parsed {
    match pattern {
        GraphPattern::Project { inner, .. } => bound_expression(inner),
        GraphPattern::Extend { expression, .. } => expression.clone(),
        other => panic!("unexpected algebra {other:?}"),
    }
}

fn with_variables(expression: &Expression) -> Expression {
    let one = |part: &Expression| Box::new(with_variables(part));
    let all = |parts: &[Expression]| parts.iter().map(with_variables).collect::<Vec<_>>();
    match expression {
        Expression::Constant(constant) => Expression::Variable(Var(constant.0 + 3)),
        Expression::Variable(_) | Expression::Bound(_) => expression.clone(),
        Expression::Or(parts) => Expression::Or(all(parts)),
        Expression::And(parts) => Expression::And(all(parts)),
        Expression::Coalesce(parts) => Expression::Coalesce(all(parts)),
        Expression::Call(function, parts) => Expression::Call(*function, all(parts)),
        Expression::Not(part) => Expression::Not(one(part)),
        Expression::UnaryPlus(part) => Expression::UnaryPlus(one(part)),
        Expression::UnaryMinus(part) => Expression::UnaryMinus(one(part)),
        Expression::Compare(operator, left, right) => {
            Expression::Compare(*operator, one(left), one(right))
        }
        Expression::Arithmetic(first, rest) => {
            let rest = rest.iter();
            let rest = rest.map(|(operator, part)| (*operator, with_variables(part)));
            Expression::Arithmetic(one(first), rest.collect())
        }
        Expression::In(part, list) => Expression::In(one(part), all(list)),
        Expression::If(condition, then, otherwise) => {
            Expression::If(one(condition), one(then), one(otherwise))
        }
    }
}

fn convert_function(function: &ParsedFunction) -> Function {
    macro_rules! same {
        ($($name:ident)*) => {
            match function {
                $(ParsedFunction::$name => Function::$name,)*
                ParsedFunction::Custom(name) => cast(name.as_str()),
                ParsedFunction::Adjust => panic!("no test asks for ADJUST"),
            }
        };
    }
    same!(Str Lang LangMatches Datatype Iri BNode Rand Abs Ceil Floor Round Concat SubStr StrLen
        Replace UCase LCase EncodeForUri Contains StrStarts StrEnds StrBefore StrAfter Year Month
        Day Hours Minutes Seconds Timezone Tz Now Uuid StrUuid Md5 Sha1 Sha256 Sha384 Sha512
        StrLang StrDt IsIri IsBlank IsLiteral IsNumeric Regex)
}

fn cast(name: &str) -> Function {
    match name.strip_prefix("http://www.w3.org/2001/XMLSchema#") {
        Some("string") => Function::CastString,
        Some("boolean") => Function::CastBoolean,
        Some("integer") => Function::CastInteger,
        Some("decimal") => Function::CastDecimal,
        Some("float") => Function::CastFloat,
        Some("double") => Function::CastDouble,
        Some("dateTime") => Function::CastDateTime,
        Some("date") => Function::CastDate,
        Some("time") => Function::CastTime,
        Some("duration") => Function::CastDuration,
        Some("dayTimeDuration") => Function::CastDayTimeDuration,
        Some("yearMonthDuration") => Function::CastYearMonthDuration,
        _ => panic!("no cast {name}"),
    }
}

/// Rows of the tests: variable `n` is column `n`.
pub(super) struct Table {
    pub(super) columns: Vec<Vec<TermId>>,
}

impl Columns for Table {
    fn column(&self, var: Var) -> Option<&[TermId]> {
        self.columns.get(var.index()).map(Vec::as_slice)
    }

    fn solution(&self, row: usize) -> u64 {
        row as u64
    }
}

/// One row: variable `n` is cell `n`.
pub(super) struct Cells(pub(super) Vec<TermId>);

impl Row for Cells {
    fn get(&self, var: Var) -> TermId {
        self.0.get(var.index()).copied().unwrap_or(TermId::NONE)
    }

    fn solution(&self) -> u64 {
        3
    }
}

/// A sequence that looks random, from a seed.
pub(super) struct Sequence(pub(super) u64);

impl Sequence {
    pub(super) fn next(&mut self, below: usize) -> usize {
        // The constants are those of Knuth's MMIX.
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}

/// Terms of every kind that expressions tell apart, in Turtle's syntax; no blank nodes.
pub(super) fn pool() -> Vec<String> {
    let typed = [
        (
            "integer",
            "0 1 -1 2 42 01 +1 9007199254740993 9223372036854775807 1.5 x 99999999999999999999",
        ),
        (
            "decimal",
            "0.0 1.0 1 2.5 -0.5 0.1 2.50 .5 1.55555555555555 x",
        ),
        (
            "double",
            "0 1 1.0 1e0 -0.0 NaN INF -INF 1e300 2.5 0.1 9007199254740992 x",
        ),
        ("float", "1 0.1 NaN 2.5 1e10 16777217 x"),
        ("int", "1 5"),
        ("nonNegativeInteger", "7"),
        ("byte", "5"),
        ("boolean", "true false 1 0 x"),
        (
            "dateTime",
            "2020-01-01T00:00:00Z 2020-01-01T01:00:00+01:00 2020-01-01T00:00:00 \
             2020-01-01T00:00:00.5Z 2021-06-15T10:20:30-05:00 2019-12-31T12:00:00 x",
        ),
        (
            "date",
            "2020-01-01 2020-01-01Z 2020-01-02+02:00 2019-06-01 x",
        ),
        ("time", "10:00:00Z 10:00:00 11:30:15.25+01:00"),
        ("duration", "P1Y2M3DT4H5M6S P1M P30D"),
        ("dayTimeDuration", "P1D PT24H -PT1H"),
        ("yearMonthDuration", "P1Y P12M"),
        ("hexBinary", "0FB7"),
    ];
    let mut pool: Vec<String> = [
        "<http://example.org/s>",
        "<http://example.org/t>",
        "\"\"",
        "\"abc\"",
        "\"ABC\"",
        "\"b\"",
        "\"1\"",
        "\"true\"",
        "\" 12 \"",
        "\"2020-01-01\"",
        "\"2020-01-01T00:00:00Z\"",
        "\"PT1H\"",
        "\"h\u{e9}llo w\u{f6}rld\"",
        "\"abc\"@en",
        "\"abc\"@fr",
        "\"ABC\"@en",
        "\"\"@en",
        "\"a.b*c\"",
        "\"abc\"^^<http://example.org/type>",
        "\"abd\"^^<http://example.org/type>",
        "\"abc\"^^<http://example.org/other>",
    ]
    .map(str::to_owned)
    .into();
    for (datatype, forms) in typed {
        pool.extend(
            forms
                .split_whitespace()
                .map(|form| format!("\"{form}\"^^<http://www.w3.org/2001/XMLSchema#{datatype}>")),
        );
    }
    pool
}
