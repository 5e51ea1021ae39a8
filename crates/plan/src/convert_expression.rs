//! How do the tree's expressions read in our own?

use jindou_syntax::continuous::TIMESTAMP;
use jindou_syntax::tree::{
    Builtin, Comparison as ParsedComparison, Expression as Parsed, ExpressionKind, Factor, Iri,
    Sign, Span,
};
use oxrdf::NamedNodeRef;
use oxrdf::vocab::xsd;

use crate::continuous::Declared;
use crate::convert::Converter;
use crate::error::PlanError;
use crate::expression::{Arithmetic, Comparison, Expression, Function};

/// Expressions nested in each other above which a query is refused; they are evaluated by
/// recursion.
const MAX_DEPTH: usize = 512;

impl<'t> Converter<'t> {
    /// Converts an expression.
    ///
    /// # Errors
    /// [`PlanError::Unsupported`] for functions that SPARQL 1.1 does not have.
    pub(crate) fn expression(&mut self, parsed: &Parsed<'t>) -> Result<Expression, PlanError> {
        self.patience.work(1)?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(PlanError::TooLarge {
                what: "expressions nested in each other",
                limit: MAX_DEPTH,
            });
        }
        let converted = self.expression_of_any_kind(parsed)?;
        self.depth -= 1;
        Ok(converted)
    }

    fn expression_of_any_kind(&mut self, parsed: &Parsed<'t>) -> Result<Expression, PlanError> {
        Ok(match &parsed.kind {
            ExpressionKind::Iri(iri) => Expression::Constant(self.iri(iri)?),
            ExpressionKind::Literal(literal) => Expression::Constant(self.literal(literal)?),
            ExpressionKind::Variable(variable) => {
                Expression::Variable(self.variable(variable.name)?)
            }
            ExpressionKind::Or(list) => Expression::Or(self.expressions(list)?),
            ExpressionKind::And(list) => Expression::And(self.expressions(list)?),
            ExpressionKind::Compare(operator, operands) => {
                self.compare(comparison(*operator), operands)?
            }
            ExpressionKind::In {
                negated,
                operand,
                list,
            } => self.is_in(*negated, operand, list)?,
            ExpressionKind::Sum(first, rest) => self.chain(first, rest, |sign| match sign {
                Sign::Plus => Arithmetic::Add,
                Sign::Minus => Arithmetic::Subtract,
            })?,
            ExpressionKind::Product(first, rest) => {
                self.chain(first, rest, |factor| match factor {
                    Factor::Times => Arithmetic::Multiply,
                    Factor::Divided => Arithmetic::Divide,
                })?
            }
            ExpressionKind::Not(part) => Expression::Not(Box::new(self.expression(part)?)),
            ExpressionKind::Signed(Sign::Plus, part) => {
                Expression::UnaryPlus(Box::new(self.operand(part)?))
            }
            ExpressionKind::Signed(Sign::Minus, part) => {
                Expression::UnaryMinus(Box::new(self.operand(part)?))
            }
            ExpressionKind::Call(function, list) => self.call(parsed.span, *function, list)?,
            ExpressionKind::Function(iri, list) => self.function(parsed.span, iri, list)?,
            ExpressionKind::Exists { negated, group } => {
                let found = Expression::Variable(self.mark(group)?);
                match negated {
                    true => Expression::Not(Box::new(found)),
                    false => found,
                }
            }
            ExpressionKind::Aggregate(_) => match self.aggregates.get(&parsed.span) {
                Some(var) => Expression::Variable(*var),
                None => {
                    let feature = "an aggregate where there are no groups";
                    return Err(self.unsupported(parsed.span, feature));
                }
            },
            ExpressionKind::Triple(_) => {
                return Err(self.unsupported(parsed.span, "triple terms"));
            }
        })
    }

    fn expressions(&mut self, list: &[Parsed<'t>]) -> Result<Vec<Expression>, PlanError> {
        list.iter().map(|part| self.expression(part)).collect()
    }

    /// Converts conditions that all have to hold; none if there are none.
    pub(crate) fn conjunction<'q>(
        &mut self,
        conditions: impl IntoIterator<Item = &'q Parsed<'t>>,
    ) -> Result<Option<Expression>, PlanError>
    where
        't: 'q,
    {
        let mut parts = Vec::new();
        for condition in conditions {
            match &condition.kind {
                ExpressionKind::And(list) => parts.extend(self.expressions(list)?),
                _ => parts.push(self.expression(condition)?),
            }
        }
        Ok(conjunction(parts))
    }

    /// An operand of a comparison or of arithmetic: a constant there is a value.
    fn operand(&mut self, parsed: &Parsed<'t>) -> Result<Expression, PlanError> {
        Ok(match &parsed.kind {
            ExpressionKind::Iri(iri) => Expression::Constant(self.value_iri(iri)?),
            ExpressionKind::Literal(literal) => Expression::Constant(self.value_literal(literal)?),
            _ => self.expression(parsed)?,
        })
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        operands: &[Parsed<'t>; 2],
    ) -> Result<Expression, PlanError> {
        let [left, right] = operands;
        Ok(Expression::Compare(
            comparison,
            Box::new(self.operand(left)?),
            Box::new(self.operand(right)?),
        ))
    }

    fn is_in(
        &mut self,
        negated: bool,
        operand: &Parsed<'t>,
        list: &[Parsed<'t>],
    ) -> Result<Expression, PlanError> {
        let operand = Box::new(self.operand(operand)?);
        let list = list.iter().map(|part| self.operand(part));
        let is_in = Expression::In(operand, list.collect::<Result<_, _>>()?);
        Ok(match negated {
            true => Expression::Not(Box::new(is_in)),
            false => is_in,
        })
    }

    /// Operators of one precedence, from left to right: side by side, not nested in each other.
    fn chain<S: Copy>(
        &mut self,
        first: &Parsed<'t>,
        rest: &[(S, Parsed<'t>)],
        operator: impl Fn(S) -> Arithmetic,
    ) -> Result<Expression, PlanError> {
        let first = Box::new(self.operand(first)?);
        let rest = rest
            .iter()
            .map(|(sign, part)| Ok((operator(*sign), self.operand(part)?)));
        let rest = rest.collect::<Result<_, PlanError>>()?;
        Ok(Expression::Arithmetic(first, rest))
    }

    fn call(
        &mut self,
        span: Span,
        function: Builtin,
        list: &[Parsed<'t>],
    ) -> Result<Expression, PlanError> {
        Ok(match (function, list) {
            (Builtin::Bound, [operand]) => match &operand.kind {
                ExpressionKind::Variable(variable) => {
                    Expression::Bound(self.variable(variable.name)?)
                }
                _ => return Err(self.unsupported(operand.span, "BOUND of what is no variable")),
            },
            (Builtin::If, [condition, then, otherwise]) => Expression::If(
                Box::new(self.expression(condition)?),
                Box::new(self.expression(then)?),
                Box::new(self.expression(otherwise)?),
            ),
            (Builtin::Coalesce, list) => Expression::Coalesce(self.expressions(list)?),
            (Builtin::SameTerm, [left, right]) => Expression::Compare(
                Comparison::SameTerm,
                Box::new(self.operand(left)?),
                Box::new(self.operand(right)?),
            ),
            (function, list) => match builtin(function) {
                Some(function) => Expression::Call(function, self.expressions(list)?),
                None => {
                    let name = self
                        .written(span)
                        .split(['(', ' '])
                        .next()
                        .unwrap_or_default();
                    return Err(self.unsupported(span, name.to_ascii_uppercase()));
                }
            },
        })
    }

    fn function(
        &mut self,
        span: Span,
        iri: &Iri<'t>,
        list: &[Parsed<'t>],
    ) -> Result<Expression, PlanError> {
        self.arguments.note(iri.span);
        match cast(&iri.value) {
            Some(function) if list.len() == 1 => {
                Ok(Expression::Call(function, self.expressions(list)?))
            }
            _ if iri.value == TIMESTAMP => self.timestamp(span, list),
            _ => Err(self.unsupported(span, format!("custom function <{}>", iri.value))),
        }
    }

    fn timestamp(&mut self, span: Span, list: &[Parsed<'t>]) -> Result<Expression, PlanError> {
        let has_windows = self.declared().is_some_and(Declared::has_windows);
        if !has_windows {
            return Err(self.unsupported(span, "timestamp() in a query without windows"));
        }
        if list.len() != 3 {
            let feature = "timestamp() of anything but a triple: it is written with three \
                           arguments, timestamp(?s, ?p, ?o),";
            return Err(self.unsupported(span, feature));
        }
        self.reads_times = true;
        Ok(Expression::Call(
            Function::Timestamp,
            self.expressions(list)?,
        ))
    }
}

/// All of some conditions; none if there are none.
pub(crate) fn conjunction(mut conditions: Vec<Expression>) -> Option<Expression> {
    match conditions.len() {
        0 | 1 => conditions.pop(),
        _ => Some(Expression::And(conditions)),
    }
}

fn comparison(parsed: ParsedComparison) -> Comparison {
    match parsed {
        ParsedComparison::Equal => Comparison::Equal,
        ParsedComparison::NotEqual => Comparison::NotEqual,
        ParsedComparison::Less => Comparison::Less,
        ParsedComparison::LessOrEqual => Comparison::LessOrEqual,
        ParsedComparison::Greater => Comparison::Greater,
        ParsedComparison::GreaterOrEqual => Comparison::GreaterOrEqual,
    }
}

/// The casts of SPARQL 1.1 and of its test suite, by the datatype's IRI.
fn cast(iri: &str) -> Option<Function> {
    const CASTS: [(NamedNodeRef<'_>, Function); 12] = [
        (xsd::STRING, Function::CastString),
        (xsd::BOOLEAN, Function::CastBoolean),
        (xsd::INTEGER, Function::CastInteger),
        (xsd::DECIMAL, Function::CastDecimal),
        (xsd::FLOAT, Function::CastFloat),
        (xsd::DOUBLE, Function::CastDouble),
        (xsd::DATE_TIME, Function::CastDateTime),
        (xsd::DATE, Function::CastDate),
        (xsd::TIME, Function::CastTime),
        (xsd::DURATION, Function::CastDuration),
        (xsd::DAY_TIME_DURATION, Function::CastDayTimeDuration),
        (xsd::YEAR_MONTH_DURATION, Function::CastYearMonthDuration),
    ];
    CASTS
        .iter()
        .find(|(datatype, _)| iri == datatype.as_str())
        .map(|(_, function)| *function)
}

macro_rules! same_names {
    ($function:expr, $($name:ident)*) => {
        match $function {
            $(Builtin::$name => Some(Function::$name),)*
            Builtin::Substr => Some(Function::SubStr),
            // Of SPARQL 1.2; and those that are no functions of their arguments' values.
            _ => None,
        }
    };
}

/// A function of SPARQL 1.1; none for what is handled otherwise, or not at all.
fn builtin(function: Builtin) -> Option<Function> {
    same_names!(function,
        Str Lang LangMatches Datatype Iri BNode Rand Abs Ceil Floor Round Concat StrLen
        Replace UCase LCase EncodeForUri Contains StrStarts StrEnds StrBefore StrAfter Year Month
        Day Hours Minutes Seconds Timezone Tz Now Uuid StrUuid Md5 Sha1 Sha256 Sha384 Sha512
        StrLang StrDt IsIri IsBlank IsLiteral IsNumeric Regex
    )
}
