//! What can be done for an expression once for the whole query?

use std::sync::Arc;

use jindou_model::{IdRanges, TermId};
use jindou_plan::expression::{Arithmetic, Comparison, Expression, Function};
use jindou_plan::physical::Var;
use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

use super::pattern::{Pattern, PatternError};
use super::predicate::Predicate;
use super::row::NoRow;
use super::{Context, ExprError, Value, functions};

/// An expression that this engine refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CompileError {
    /// A constant pattern of REGEX or REPLACE that is beyond what this engine does.
    #[error("{reason}")]
    Pattern {
        /// What about it.
        reason: String,
    },
    /// A function with a number of arguments that it does not take.
    #[error("{function:?} does not take {arguments} arguments")]
    Arguments {
        /// Which function.
        function: Function,
        /// How many it was given.
        arguments: usize,
    },
}

/// An expression, ready to be evaluated for many rows by many threads.
#[derive(Clone, Debug)]
pub struct CompiledExpression {
    pub(super) program: Program,
    pub(super) predicate: Predicate,
    /// How many memories of single variables the predicate has.
    pub(super) memories: usize,
    /// The variable on whose value alone the result depends, where it is worth remembering.
    pub(super) remembered: Option<Var>,
    /// The variable on whose LANG and DATATYPE alone the result depends.
    pub(super) of_end: Option<Var>,
    variables: Box<[Var]>,
    /// It makes blank nodes by label, which differ between solutions.
    pub(super) tells_solutions_apart: bool,
}

impl CompiledExpression {
    /// Compiles an expression of a plan whose constants have these ids.
    ///
    /// # Errors
    /// [`CompileError`] for what this engine refuses. A constant part that has no value (a
    /// malformed pattern, `1/0`) is no such error: it has none for any row.
    ///
    /// # Panics
    /// If the expression has a constant beyond `constants`.
    pub fn compile(
        expression: &Expression,
        constants: &[TermId],
        cx: &Context,
    ) -> Result<Self, CompileError> {
        let code = Compiler { constants, cx }.compile(expression)?;
        let mut variables = Vec::new();
        expression.for_each_variable(&mut |var| variables.push(var));
        variables.sort_unstable();
        variables.dedup();
        let mut memories = 0;
        let predicate = Predicate::compile(&code, &mut memories);
        let remembered = code.worth_remembering();
        let of_end = code.of_end();
        Ok(Self {
            program: Program::new(code),
            predicate,
            memories,
            remembered,
            of_end,
            variables: variables.into(),
            tells_solutions_apart: expression.calls(Function::BNode),
        })
    }

    /// The variables that the expression names, in order, each once.
    #[must_use]
    pub fn variables(&self) -> &[Var] {
        &self.variables
    }

    /// The ids of a set without some, or most, of those that a filter would not keep as values of
    /// this variable: cheaper by far than to evaluate it for each.
    #[must_use]
    pub fn cut(&self, var: Var, ids: IdRanges) -> IdRanges {
        self.predicate.cut(var, ids)
    }

    /// The variable that the whole expression is, if it is one: no evaluation is needed then.
    #[must_use]
    pub fn as_variable(&self) -> Option<Var> {
        match self.program.code {
            Code::Variable(var) => Some(var),
            _ => None,
        }
    }
}

/// A constant of the query: its id and its value.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    pub(super) id: TermId,
    pub(super) value: Value,
}

/// A tree to be evaluated for many rows.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) code: Code,
    /// The variables whose texts are read, each once: their keys are fetched for many rows at a
    /// time.
    pub(super) texts: Box<[Var]>,
    /// Other variables whose values are read, each once.
    pub(super) values: Box<[Var]>,
}

impl Program {
    pub(super) fn new(code: Code) -> Self {
        let mut texts = Vec::new();
        code.for_each_text(&mut |var| {
            if !texts.contains(&var) {
                texts.push(var);
            }
        });
        let mut values = Vec::new();
        code.for_each_value(&mut |var| {
            if !texts.contains(&var) && !values.contains(&var) {
                values.push(var);
            }
        });
        Self {
            code,
            texts: texts.into(),
            values: values.into(),
        }
    }
}

/// The tree that is evaluated.
#[derive(Clone, Debug)]
pub(super) enum Code {
    Variable(Var),
    Constant(Box<Constant>),
    /// A constant part that has no value.
    Error(ExprError),
    Or(Vec<Self>),
    And(Vec<Self>),
    Not(Box<Self>),
    Compare(Comparison, Box<Self>, Box<Self>),
    In(Box<Self>, Vec<Self>),
    /// From left to right.
    Arithmetic(Box<Self>, Vec<(Arithmetic, Self)>),
    Plus(Box<Self>),
    Minus(Box<Self>),
    Bound(Var),
    If(Box<Self>, Box<Self>, Box<Self>),
    Coalesce(Vec<Self>),
    Call(Function, Vec<Self>),
    /// CONTAINS of a constant without a language tag.
    Contains(Box<Self>, Arc<Finder<'static>>),
    /// REGEX with a constant pattern.
    Regex(Box<Self>, Arc<Pattern>),
    /// REPLACE with a constant pattern.
    Replace(Box<Self>, Arc<Pattern>, Box<Self>),
}

struct Compiler<'a> {
    constants: &'a [TermId],
    cx: &'a Context,
}

impl Compiler<'_> {
    fn compile(&self, expression: &Expression) -> Result<Code, CompileError> {
        let code = match expression {
            Expression::Variable(var) => return Ok(Code::Variable(*var)),
            Expression::Bound(var) => return Ok(Code::Bound(*var)),
            Expression::Constant(constant) => {
                return Ok(self.constant(Value::Id(self.constants[constant.index()])));
            }
            Expression::Or(parts) => Code::Or(self.list(parts)?),
            Expression::And(parts) => Code::And(self.list(parts)?),
            Expression::Not(part) => Code::Not(self.boxed(part)?),
            Expression::Compare(operator, left, right) => {
                Code::Compare(*operator, self.boxed(left)?, self.boxed(right)?)
            }
            Expression::In(part, list) => Code::In(self.boxed(part)?, self.list(list)?),
            Expression::Arithmetic(first, rest) => return self.arithmetic(first, rest),
            Expression::UnaryPlus(part) => Code::Plus(self.boxed(part)?),
            Expression::UnaryMinus(part) => Code::Minus(self.boxed(part)?),
            Expression::If(condition, then, otherwise) => Code::If(
                self.boxed(condition)?,
                self.boxed(then)?,
                self.boxed(otherwise)?,
            ),
            Expression::Coalesce(parts) => Code::Coalesce(self.list(parts)?),
            Expression::Call(function, arguments) => self.call(*function, arguments)?,
        };
        Ok(self.fold(code))
    }

    /// Arithmetic, of which the constants that come first are one.
    fn arithmetic(
        &self,
        first: &Expression,
        rest: &[(Arithmetic, Expression)],
    ) -> Result<Code, CompileError> {
        let mut first = self.compile(first)?;
        let mut chain = Vec::new();
        for (operator, part) in rest {
            let part = self.compile(part)?;
            if chain.is_empty() && first.is_constant() && part.is_constant() {
                first = self.fold(Code::Arithmetic(Box::new(first), vec![(*operator, part)]));
            } else {
                chain.push((*operator, part));
            }
        }
        Ok(match chain.is_empty() {
            true => first,
            false => Code::Arithmetic(Box::new(first), chain),
        })
    }

    fn boxed(&self, expression: &Expression) -> Result<Box<Code>, CompileError> {
        self.compile(expression).map(Box::new)
    }

    fn list(&self, expressions: &[Expression]) -> Result<Vec<Code>, CompileError> {
        expressions
            .iter()
            .map(|expression| self.compile(expression))
            .collect()
    }

    fn call(&self, function: Function, arguments: &[Expression]) -> Result<Code, CompileError> {
        if !argument_counts(function).contains(&arguments.len()) {
            return Err(CompileError::Arguments {
                function,
                arguments: arguments.len(),
            });
        }
        let mut list = self.list(arguments)?;
        if function == Function::Contains
            && let Some(Value::String(part)) = list[1].constant_value()
        {
            let finder = Arc::new(Finder::new(part.as_bytes()).into_owned());
            return Ok(Code::Contains(Box::new(list.swap_remove(0)), finder));
        }
        let flags_at = match function {
            Function::Regex => 2,
            Function::Replace => 3,
            _ => return Ok(Code::Call(function, list)),
        };
        let no_flags = Value::String(String::new());
        let (Some(pattern), Some(flags)) = (
            list[1].constant_value(),
            list.get(flags_at)
                .map_or(Some(&no_flags), Code::constant_value),
        ) else {
            return Ok(Code::Call(function, list));
        };
        let (Value::String(pattern), Value::String(flags)) = (pattern, flags) else {
            return Ok(Code::Error(ExprError::Type));
        };
        // Each thread compiles its own.
        match Pattern::compile(pattern, flags, self.cx) {
            Ok(pattern) => {
                let pattern = Arc::new(pattern);
                list.truncate(flags_at);
                let last = list.pop().map(Box::new);
                let text = Box::new(list.swap_remove(0));
                Ok(match last {
                    Some(replacement) if function == Function::Replace => {
                        Code::Replace(text, pattern, replacement)
                    }
                    // Of REGEX the last was the pattern.
                    _ => Code::Regex(text, pattern),
                })
            }
            Err(PatternError::Invalid) => Ok(Code::Error(ExprError::Value)),
            Err(PatternError::Over) => Ok(Code::Error(ExprError::Refused)),
            Err(PatternError::Refused(reason)) => Err(CompileError::Pattern { reason }),
        }
    }

    /// Evaluates what is constant.
    fn fold(&self, code: Code) -> Code {
        let mut constant = code.is_stable();
        code.for_each_part(&mut |part| {
            constant &= part.is_constant();
        });
        if !constant {
            return code;
        }
        match code.evaluate(&NoRow, self.cx) {
            Ok(value) => self.constant(value),
            Err(error) => Code::Error(error),
        }
    }

    fn constant(&self, value: Value) -> Code {
        let terms = self.cx.terms();
        let (id, value) = match value {
            Value::Id(id) => match Value::decode(id, terms) {
                Ok(value) => (id, value),
                Err(error) => return Code::Error(error),
            },
            value => match value.clone().into_id(terms) {
                Ok(id) => (id, value),
                Err(error) => return Code::Error(error),
            },
        };
        Code::Constant(Box::new(Constant { id, value }))
    }
}

impl Code {
    /// True of what has one value for all rows, or has none for any.
    fn is_constant(&self) -> bool {
        matches!(self, Self::Constant(_) | Self::Error(_))
    }

    pub(super) fn constant_value(&self) -> Option<&Value> {
        match self {
            Self::Constant(constant) => Some(&constant.value),
            _ => None,
        }
    }

    /// True unless this node itself gives other results for the same values of its parts.
    fn is_stable(&self) -> bool {
        match self {
            Self::Variable(_) | Self::Bound(_) => false,
            Self::Call(function, _) => !matches!(
                function,
                Function::Rand | Function::Uuid | Function::StrUuid | Function::BNode
            ),
            _ => true,
        }
    }

    /// Calls `visit` with each direct part.
    fn for_each_part(&self, visit: &mut dyn FnMut(&Self)) {
        match self {
            Self::Variable(_) | Self::Constant(_) | Self::Error(_) | Self::Bound(_) => {}
            Self::Or(parts) | Self::And(parts) | Self::Coalesce(parts) | Self::Call(_, parts) => {
                parts.iter().for_each(visit);
            }
            Self::Not(part)
            | Self::Plus(part)
            | Self::Minus(part)
            | Self::Contains(part, _)
            | Self::Regex(part, _) => {
                visit(part);
            }
            Self::Compare(_, left, right) | Self::Replace(left, _, right) => {
                visit(left);
                visit(right);
            }
            Self::Arithmetic(first, rest) => {
                visit(first);
                rest.iter().for_each(|(_, part)| visit(part));
            }
            Self::In(part, parts) => {
                visit(part);
                parts.iter().for_each(visit);
            }
            Self::If(condition, then, otherwise) => {
                visit(condition);
                visit(then);
                visit(otherwise);
            }
        }
    }

    /// True if the value, where there is one, is a string.
    pub(super) fn gives_text(&self) -> bool {
        match self {
            Self::Call(function, _) => functions::gives_text(*function),
            Self::Constant(constant) => {
                matches!(constant.value, Value::String(_) | Value::LangString { .. })
            }
            Self::Replace(..) => true,
            _ => false,
        }
    }

    /// True if the value, where there is one, is a number that is computed.
    pub(super) fn gives_number(&self) -> bool {
        match self {
            Self::Arithmetic(..) | Self::Plus(_) | Self::Minus(_) => true,
            Self::Call(function, _) => functions::gives_number(*function),
            _ => false,
        }
    }

    /// Calls `visit` with each variable of which the text is read.
    fn for_each_text(&self, visit: &mut dyn FnMut(Var)) {
        let reads = match self {
            Self::Call(function, _) => functions::reads_text(*function),
            Self::Contains(..) | Self::Regex(..) | Self::Replace(..) => true,
            Self::Compare(_, left, right) => left.gives_text() || right.gives_text(),
            _ => false,
        };
        self.for_each_part(&mut |part| match part {
            Self::Variable(var) if reads => visit(*var),
            part => part.for_each_text(visit),
        });
    }

    /// Calls `visit` with the variables whose values are read, and not only passed on or compared as terms.
    fn for_each_value(&self, visit: &mut dyn FnMut(Var)) {
        let reads = match self {
            Self::Compare(operator, ..) => *operator != Comparison::SameTerm,
            Self::If(..) | Self::Coalesce(_) => false,
            _ => true,
        };
        self.for_each_part(&mut |part| match part {
            Self::Variable(var) if reads => visit(*var),
            part => part.for_each_value(visit),
        });
    }

    /// The one variable on whose LANG and DATATYPE alone the result depends, if there is one.
    pub(super) fn of_end(&self) -> Option<Var> {
        let mut ends = Ends {
            var: None,
            sole: true,
        };
        ends.visit(self);
        ends.var.filter(|_| ends.sole)
    }

    /// The one variable on which the result depends, if it costs more than looking it up.
    pub(super) fn worth_remembering(&self) -> Option<Var> {
        let mut survey = Survey {
            var: None,
            sole: true,
            stable: true,
            costly: false,
        };
        survey.visit(self);
        survey
            .var
            .filter(|_| survey.sole && survey.stable && survey.costly)
    }
}

/// What [`Code::worth_remembering`] looks for.
struct Survey {
    var: Option<Var>,
    sole: bool,
    stable: bool,
    costly: bool,
}

impl Survey {
    fn visit(&mut self, code: &Code) {
        match code {
            Code::Variable(var) | Code::Bound(var) => {
                self.sole &= self.var.is_none_or(|known| known == *var);
                self.var = Some(*var);
            }
            code => {
                self.stable &= code.is_stable();
                self.costly |= match code {
                    // What the id of most numbers and times tells is not worth it.
                    // A tag is told by the end of a key.
                    Code::Call(Function::Lang | Function::Datatype, _) => false,
                    Code::Call(function, _) => {
                        !functions::gives_number(*function) || functions::reads_text(*function)
                    }
                    Code::Contains(..) | Code::Regex(..) | Code::Replace(..) | Code::In(..) => true,
                    _ => false,
                };
                code.for_each_part(&mut |part| self.visit(part));
            }
        }
    }
}

/// What [`Code::of_end`] looks for.
struct Ends {
    var: Option<Var>,
    sole: bool,
}

impl Ends {
    fn visit(&mut self, code: &Code) {
        if let Code::Call(Function::Lang | Function::Datatype, arguments) = code
            && let [Code::Variable(var)] = arguments.as_slice()
        {
            self.sole &= self.var.is_none_or(|known| known == *var);
            self.var = Some(*var);
            return;
        }
        // Variables are not stable, and so are none of these here.
        self.sole &= code.is_stable();
        code.for_each_part(&mut |part| self.visit(part));
    }
}

/// How many arguments a function takes.
fn argument_counts(function: Function) -> std::ops::RangeInclusive<usize> {
    use Function as F;
    match function {
        F::Rand | F::Now | F::Uuid | F::StrUuid => 0..=0,
        F::BNode => 0..=1,
        F::Concat => 0..=usize::MAX,
        F::LangMatches
        | F::Contains
        | F::StrStarts
        | F::StrEnds
        | F::StrBefore
        | F::StrAfter
        | F::StrLang
        | F::StrDt => 2..=2,
        F::SubStr | F::Regex => 2..=3,
        F::Timestamp => 3..=3,
        F::Replace => 3..=4,
        F::Str
        | F::Lang
        | F::Datatype
        | F::Iri
        | F::Abs
        | F::Ceil
        | F::Floor
        | F::Round
        | F::StrLen
        | F::UCase
        | F::LCase
        | F::EncodeForUri
        | F::Year
        | F::Month
        | F::Day
        | F::Hours
        | F::Minutes
        | F::Seconds
        | F::Timezone
        | F::Tz
        | F::Md5
        | F::Sha1
        | F::Sha256
        | F::Sha384
        | F::Sha512
        | F::IsIri
        | F::IsBlank
        | F::IsLiteral
        | F::IsNumeric
        | F::CastString
        | F::CastBoolean
        | F::CastInteger
        | F::CastDecimal
        | F::CastFloat
        | F::CastDouble
        | F::CastDateTime
        | F::CastDate
        | F::CastTime
        | F::CastDuration
        | F::CastDayTimeDuration
        | F::CastYearMonthDuration => 1..=1,
    }
}
