//! How do the parser's expressions and aggregates read in our own?

use oxrdf::vocab::xsd;
use oxrdf::{NamedNode, NamedNodeRef};
use spargebra::algebra::{
    AggregateExpression, AggregateFunction as ParsedAggregate, Expression as Parsed,
    Function as ParsedFunction,
};

use crate::convert::Converter;
use crate::error::PlanError;
use crate::expression::{
    Aggregate, AggregateFunction, Arithmetic, Comparison, Expression, Function,
};

/// Expressions nested in each other above which a query is refused; they are evaluated by
/// recursion.
const MAX_DEPTH: usize = 512;

impl Converter<'_> {
    /// Converts an expression.
    ///
    /// # Errors
    /// [`PlanError::Unsupported`] for functions that SPARQL 1.1 does not have.
    pub(crate) fn expression(&mut self, parsed: Parsed) -> Result<Expression, PlanError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(PlanError::TooLarge {
                what: "expressions nested in each other",
                limit: MAX_DEPTH,
            });
        }
        let expression = self.expression_of_any_kind(parsed)?;
        self.depth -= 1;
        Ok(expression)
    }

    fn expression_of_any_kind(&mut self, parsed: Parsed) -> Result<Expression, PlanError> {
        Ok(match parsed {
            Parsed::NamedNode(node) => Expression::Constant(self.iri(node)?),
            Parsed::Literal(literal) => Expression::Constant(self.literal(literal)?),
            Parsed::Variable(variable) => Expression::Variable(self.variable(variable)?),
            Parsed::Or(left, right) => {
                let parts = chain(*left, *right, |parsed| match parsed {
                    Parsed::Or(left, right) => Ok((*left, *right)),
                    other => Err(other),
                });
                Expression::Or(self.expressions(parts)?)
            }
            Parsed::And(left, right) => {
                let parts = chain(*left, *right, |parsed| match parsed {
                    Parsed::And(left, right) => Ok((*left, *right)),
                    other => Err(other),
                });
                Expression::And(self.expressions(parts)?)
            }
            Parsed::Equal(left, right) => self.compare(Comparison::Equal, *left, *right)?,
            Parsed::SameTerm(left, right) => self.compare(Comparison::SameTerm, *left, *right)?,
            Parsed::Greater(left, right) => self.compare(Comparison::Greater, *left, *right)?,
            Parsed::GreaterOrEqual(left, right) => {
                self.compare(Comparison::GreaterOrEqual, *left, *right)?
            }
            Parsed::Less(left, right) => self.compare(Comparison::Less, *left, *right)?,
            Parsed::LessOrEqual(left, right) => {
                self.compare(Comparison::LessOrEqual, *left, *right)?
            }
            Parsed::In(part, list) => Expression::In(
                Box::new(self.operand(*part)?),
                list.into_iter()
                    .map(|part| self.operand(part))
                    .collect::<Result<_, _>>()?,
            ),
            Parsed::Add(left, right) => self.arithmetic(Arithmetic::Add, *left, *right)?,
            Parsed::Subtract(left, right) => {
                self.arithmetic(Arithmetic::Subtract, *left, *right)?
            }
            Parsed::Multiply(left, right) => {
                self.arithmetic(Arithmetic::Multiply, *left, *right)?
            }
            Parsed::Divide(left, right) => self.arithmetic(Arithmetic::Divide, *left, *right)?,
            Parsed::UnaryPlus(part) => Expression::UnaryPlus(Box::new(self.operand(*part)?)),
            Parsed::UnaryMinus(part) => Expression::UnaryMinus(Box::new(self.operand(*part)?)),
            Parsed::Not(part) => match *part {
                // `a != b` arrives as the negation of `a = b`, which it equals in value and error.
                Parsed::Equal(left, right) => self.compare(Comparison::NotEqual, *left, *right)?,
                part => Expression::Not(Box::new(self.expression(part)?)),
            },
            Parsed::Exists(pattern) => {
                let pattern = self.exists(*pattern, self.scope)?;
                let var = self.make_up_variable()?;
                self.marks.push((var, pattern));
                Expression::Variable(var)
            }
            Parsed::Bound(variable) => Expression::Bound(self.variable(variable)?),
            Parsed::If(condition, then, otherwise) => Expression::If(
                Box::new(self.expression(*condition)?),
                Box::new(self.expression(*then)?),
                Box::new(self.expression(*otherwise)?),
            ),
            Parsed::Coalesce(list) => Expression::Coalesce(self.expressions(list)?),
            Parsed::FunctionCall(function, list) => self.call(function, list)?,
        })
    }

    fn expressions(&mut self, list: Vec<Parsed>) -> Result<Vec<Expression>, PlanError> {
        list.into_iter().map(|part| self.expression(part)).collect()
    }

    /// An operand of a comparison or of arithmetic: a constant there is a value.
    fn operand(&mut self, parsed: Parsed) -> Result<Expression, PlanError> {
        Ok(match parsed {
            Parsed::NamedNode(node) => Expression::Constant(self.value_iri(node)?),
            Parsed::Literal(literal) => Expression::Constant(self.value_literal(literal)?),
            other => self.expression(other)?,
        })
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: Parsed,
        right: Parsed,
    ) -> Result<Expression, PlanError> {
        Ok(Expression::Compare(
            comparison,
            Box::new(self.operand(left)?),
            Box::new(self.operand(right)?),
        ))
    }

    fn arithmetic(
        &mut self,
        operator: Arithmetic,
        left: Parsed,
        right: Parsed,
    ) -> Result<Expression, PlanError> {
        Ok(Expression::Arithmetic(
            operator,
            Box::new(self.operand(left)?),
            Box::new(self.operand(right)?),
        ))
    }

    fn call(
        &mut self,
        function: ParsedFunction,
        list: Vec<Parsed>,
    ) -> Result<Expression, PlanError> {
        let function = match function {
            ParsedFunction::Custom(iri) => {
                self.note_function(&iri);
                match cast(&iri) {
                    Some(cast) if list.len() == 1 => cast,
                    _ => return Err(PlanError::unsupported(format!("custom function {iri}"))),
                }
            }
            ParsedFunction::Adjust => return Err(PlanError::unsupported("ADJUST")),
            known => builtin(&known),
        };
        Ok(Expression::Call(function, self.expressions(list)?))
    }

    /// Converts an aggregate.
    ///
    /// # Errors
    /// As for [`Converter::expression`], and for custom aggregates.
    pub(crate) fn aggregate(
        &mut self,
        parsed: AggregateExpression,
    ) -> Result<Aggregate, PlanError> {
        let (name, operand, distinct) = match parsed {
            AggregateExpression::CountSolutions { distinct } => {
                return Ok(Aggregate {
                    function: AggregateFunction::Count,
                    operand: None,
                    distinct,
                });
            }
            AggregateExpression::FunctionCall {
                name,
                expr,
                distinct,
            } => (name, expr, distinct),
        };
        let function = match name {
            ParsedAggregate::Count => AggregateFunction::Count,
            ParsedAggregate::Sum => AggregateFunction::Sum,
            ParsedAggregate::Avg => AggregateFunction::Avg,
            ParsedAggregate::Min => AggregateFunction::Min,
            ParsedAggregate::Max => AggregateFunction::Max,
            ParsedAggregate::Sample => AggregateFunction::Sample,
            ParsedAggregate::GroupConcat { separator } => {
                AggregateFunction::GroupConcat(separator.unwrap_or_else(|| " ".to_owned()))
            }
            ParsedAggregate::Custom(iri) => {
                return Err(PlanError::unsupported(format!("custom aggregate {iri}")));
            }
        };
        Ok(Aggregate {
            function,
            operand: Some(self.expression(operand)?),
            distinct,
        })
    }
}

/// The operands of a chain of one operator, in order; the parser makes chains that lean to the
/// left.
pub(crate) fn chain(
    left: Parsed,
    right: Parsed,
    split: impl Fn(Parsed) -> Result<(Parsed, Parsed), Parsed>,
) -> Vec<Parsed> {
    let mut parts = vec![right];
    let mut rest = left;
    loop {
        match split(rest) {
            Ok((left, right)) => {
                parts.push(right);
                rest = left;
            }
            Err(other) => {
                parts.push(other);
                break;
            }
        }
    }
    parts.reverse();
    parts
}

/// The casts of SPARQL 1.1 and of its test suite, by the datatype's IRI.
fn cast(iri: &NamedNode) -> Option<Function> {
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
        .find(|(datatype, _)| iri == datatype)
        .map(|(_, function)| *function)
}

macro_rules! same_names {
    ($function:expr, $($name:ident)*) => {
        match $function {
            $(ParsedFunction::$name => Function::$name,)*
            ParsedFunction::Custom(_) | ParsedFunction::Adjust => {
                unreachable!("what is no function of SPARQL 1.1 is handled before")
            }
        }
    };
}

fn builtin(function: &ParsedFunction) -> Function {
    same_names!(function,
        Str Lang LangMatches Datatype Iri BNode Rand Abs Ceil Floor Round Concat SubStr StrLen
        Replace UCase LCase EncodeForUri Contains StrStarts StrEnds StrBefore StrAfter Year Month
        Day Hours Minutes Seconds Timezone Tz Now Uuid StrUuid Md5 Sha1 Sha256 Sha384 Sha512
        StrLang StrDt IsIri IsBlank IsLiteral IsNumeric Regex
    )
}
