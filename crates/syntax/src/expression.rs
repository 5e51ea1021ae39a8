//! What does an expression say?

use crate::functions::{Arity, aggregate, builtin};
use crate::group::with_hint;
use crate::hints;
use crate::keywords::Keyword;
use crate::lexer::{Kind, Token};
use crate::memory::{Failure, Parsed};
use crate::parser::{Aggregates, Parser};
use crate::terms::number_kind;
use crate::tree::{
    Aggregate, AggregateFunction, Builtin, Comparison, Expression, ExpressionKind, Factor, Iri,
    Literal, Sign, Span,
};

/// What an operand is, for messages.
const OPERAND: &[&str] = &["a variable", "a value", "a function", "'('"];

impl<'t> Parser<'t, '_> {
    /// An expression.
    pub(crate) fn expression(&mut self) -> Parsed<Expression<'t>> {
        let start = self.token.span.start;
        let first = self.conjunction()?;
        if !self.is(Kind::Or) {
            return Ok(first);
        }
        let mut operands = Vec::new();
        self.memory.push(&mut operands, first)?;
        while self.accept(Kind::Or)? {
            let operand = self.conjunction()?;
            self.memory.push(&mut operands, operand)?;
        }
        Ok(self.made(start, ExpressionKind::Or(operands)))
    }

    fn made(&self, start: u32, kind: ExpressionKind<'t>) -> Expression<'t> {
        Expression {
            span: self.since(start),
            kind,
        }
    }

    fn conjunction(&mut self) -> Parsed<Expression<'t>> {
        let start = self.token.span.start;
        let first = self.relation()?;
        if !self.is(Kind::And) {
            return Ok(first);
        }
        let mut operands = Vec::new();
        self.memory.push(&mut operands, first)?;
        while self.accept(Kind::And)? {
            let operand = self.relation()?;
            self.memory.push(&mut operands, operand)?;
        }
        Ok(self.made(start, ExpressionKind::And(operands)))
    }

    fn relation(&mut self) -> Parsed<Expression<'t>> {
        let start = self.token.span.start;
        let first = self.sum()?;
        let comparison = match self.token.kind {
            Kind::Equal => Comparison::Equal,
            Kind::NotEqual => Comparison::NotEqual,
            Kind::Less => Comparison::Less,
            Kind::LessOrEqual => Comparison::LessOrEqual,
            Kind::Greater => Comparison::Greater,
            Kind::GreaterOrEqual => Comparison::GreaterOrEqual,
            Kind::OpenReified | Kind::OpenTriple => {
                self.split(Kind::Less);
                Comparison::Less
            }
            Kind::Word => return self.membership(start, first),
            _ => return Ok(first),
        };
        self.advance()?;
        let second = self.sum()?;
        let operands = self.memory.boxed([first, second])?;
        Ok(self.made(start, ExpressionKind::Compare(comparison, operands)))
    }

    fn membership(&mut self, start: u32, operand: Expression<'t>) -> Parsed<Expression<'t>> {
        let negated = match self.keyword {
            Keyword::In => false,
            Keyword::Not => {
                self.advance()?;
                true
            }
            _ => return Ok(operand),
        };
        self.expect_word(Keyword::In, "an expression")?;
        let operand = self.memory.boxed(operand)?;
        let list = self.arguments("the list of IN", false)?;
        let kind = ExpressionKind::In {
            negated,
            operand,
            list,
        };
        Ok(self.made(start, kind))
    }

    fn sum(&mut self) -> Parsed<Expression<'t>> {
        let start = self.token.span.start;
        let first = self.product()?;
        if !self.at_sign() {
            return Ok(first);
        }
        let first = self.memory.boxed(first)?;
        let mut rest = Vec::new();
        while self.at_sign() {
            let sign = match self.text.as_bytes()[self.token.span.start as usize] {
                b'-' => Sign::Minus,
                _ => Sign::Plus,
            };
            let operand = match self.token.kind {
                Kind::Plus | Kind::Minus => {
                    self.advance()?;
                    self.product()?
                }
                // `?x -1`: the sign of the number is the operator.
                _ => self.number_after_sign()?,
            };
            self.memory.push(&mut rest, (sign, operand))?;
        }
        Ok(self.made(start, ExpressionKind::Sum(first, rest)))
    }

    /// Whether `+` or `-` is next, perhaps as that of a number.
    fn at_sign(&self) -> bool {
        match self.token.kind {
            Kind::Plus | Kind::Minus => true,
            Kind::Integer | Kind::Decimal | Kind::Double => {
                matches!(
                    self.text.as_bytes()[self.token.span.start as usize],
                    b'+' | b'-'
                )
            }
            _ => false,
        }
    }

    /// A number whose sign is an operator, and what it is multiplied by.
    fn number_after_sign(&mut self) -> Parsed<Expression<'t>> {
        let token = Token {
            span: Span {
                start: self.token.span.start + 1,
                end: self.token.span.end,
            },
            ..self.token
        };
        let kind = number_kind(token.kind).expect("it is a number");
        self.advance()?;
        let literal = Literal {
            span: token.span,
            value: token.of(self.text).into(),
            kind,
        };
        let number = Expression {
            span: token.span,
            kind: ExpressionKind::Literal(literal),
        };
        self.product_of(token.span.start, number)
    }

    fn product(&mut self) -> Parsed<Expression<'t>> {
        let start = self.token.span.start;
        let first = self.unary()?;
        self.product_of(start, first)
    }

    fn product_of(&mut self, start: u32, first: Expression<'t>) -> Parsed<Expression<'t>> {
        if !matches!(self.token.kind, Kind::Star | Kind::Slash) {
            return Ok(first);
        }
        let first = self.memory.boxed(first)?;
        let mut rest = Vec::new();
        loop {
            let factor = match self.token.kind {
                Kind::Star => Factor::Times,
                Kind::Slash => Factor::Divided,
                _ => break,
            };
            self.advance()?;
            let operand = self.unary()?;
            self.memory.push(&mut rest, (factor, operand))?;
        }
        Ok(self.made(start, ExpressionKind::Product(first, rest)))
    }

    fn unary(&mut self) -> Parsed<Expression<'t>> {
        let start = self.token.span.start;
        // `!!!a` is `!a`: more than two are not nested.
        let mut negations = 0_usize;
        while self.accept(Kind::Not)? {
            negations += 1;
        }
        let inner = self.token.span.start;
        let sign = match self.token.kind {
            Kind::Plus => Some(Sign::Plus),
            Kind::Minus => Some(Sign::Minus),
            _ => None,
        };
        let mut made = match sign {
            None => self.primary()?,
            Some(sign) => {
                self.advance()?;
                let operand = self.primary()?;
                let operand = self.memory.boxed(operand)?;
                self.made(inner, ExpressionKind::Signed(sign, operand))
            }
        };
        if negations > 0 {
            for _ in 0..2 - negations % 2 {
                let operand = self.memory.boxed(made)?;
                made = self.made(start, ExpressionKind::Not(operand));
            }
        }
        Ok(made)
    }

    fn primary(&mut self) -> Parsed<Expression<'t>> {
        let start = self.token.span.start;
        let kind = match self.token.kind {
            Kind::OpenParen => return self.bracketed(),
            Kind::OpenTriple => return self.triple_expression(),
            Kind::Variable => {
                let variable = self.variable("an expression")?;
                if let Some(used) = &mut self.used {
                    self.memory.push(used, variable)?;
                }
                ExpressionKind::Variable(variable)
            }
            Kind::Iri | Kind::Name => {
                let iri = self.iri("an expression")?;
                match self.token.kind {
                    Kind::OpenParen | Kind::Nil => return self.function(start, iri),
                    _ => ExpressionKind::Iri(iri),
                }
            }
            _ if self.at_literal() => ExpressionKind::Literal(self.literal()?),
            Kind::Word => return self.call(),
            _ => return Err(self.unexpected("an expression", OPERAND)),
        };
        Ok(self.made(start, kind))
    }

    /// An expression between round brackets.
    pub(crate) fn bracketed(&mut self) -> Parsed<Expression<'t>> {
        self.open(Kind::OpenParen, "an expression")?;
        let inside = self.expression()?;
        self.end_expression(Kind::CloseParen, &["an operator"])?;
        Ok(inside)
    }

    /// Passes over what ends an expression.
    pub(crate) fn end_expression(&mut self, close: Kind, others: &[&str]) -> Parsed<()> {
        match self.is(close) {
            true => self.close(close, "an expression", others),
            false => {
                let mut fits = others.to_vec();
                fits.push(hints::sign(close));
                Err(self.no_operator(&fits))
            }
        }
    }

    /// The error that what follows an operand is no operator.
    #[cold]
    pub(crate) fn no_operator(&self, fits: &[&str]) -> Failure {
        let token = self.token;
        let written = token.of(self.text);
        if token.kind == Kind::Iri && written != "<>" && is_comparison(written) {
            let shown = hints::shown(written);
            let message =
                format!("{shown} is read as an IRI; spaces around < and > make comparisons of it");
            return self.wrong(token.span, message, None);
        }
        self.unexpected("an expression", fits)
    }

    /// A call of a function by its IRI, which was read.
    pub(crate) fn function(&mut self, start: u32, iri: Iri<'t>) -> Parsed<Expression<'t>> {
        let arguments = self.arguments("the arguments of a function", true)?;
        Ok(self.made(start, ExpressionKind::Function(iri, arguments)))
    }

    /// Expressions between round brackets, perhaps none.
    fn arguments(&mut self, what: &str, of_function: bool) -> Parsed<Vec<Expression<'t>>> {
        let mut arguments = Vec::new();
        if self.accept(Kind::Nil)? {
            return Ok(arguments);
        }
        self.open(Kind::OpenParen, what)?;
        if of_function && self.keyword == Keyword::Distinct {
            let message = "DISTINCT is for aggregates, and this function is none";
            return Err(self.wrong(self.token.span, message.to_owned(), None));
        }
        loop {
            let argument = self.expression()?;
            self.memory.push(&mut arguments, argument)?;
            if !self.is(Kind::Comma) {
                break;
            }
            self.advance()?;
        }
        self.end_expression(Kind::CloseParen, &["an operator", "','"])?;
        Ok(arguments)
    }

    /// What may stand after FILTER and HAVING, and in ORDER BY: an expression between brackets,
    /// or a call.
    pub(crate) fn constraint(&mut self, what: &str) -> Parsed<Expression<'t>> {
        let start = self.token.span.start;
        match self.token.kind {
            Kind::OpenParen => self.bracketed(),
            Kind::Iri | Kind::Name => {
                let iri = self.iri(what)?;
                if !matches!(self.token.kind, Kind::OpenParen | Kind::Nil) {
                    return Err(self.unexpected(what, &["'(' after the name of a function"]));
                }
                self.function(start, iri)
            }
            Kind::Word if self.at_call() => self.call(),
            _ => Err(self.unexpected(what, &["'('", "a function"])),
        }
    }

    /// Whether a function of the grammar is next.
    pub(crate) fn at_call(&self) -> bool {
        matches!(self.keyword, Keyword::Exists | Keyword::Not)
            || builtin(self.keyword).is_some()
            || aggregate(self.keyword).is_some()
            || self.at_timestamp()
    }

    /// A call of a function of the grammar.
    pub(crate) fn call(&mut self) -> Parsed<Expression<'t>> {
        let name = self.token;
        if let Some((function, arity)) = builtin(self.keyword) {
            self.advance()?;
            return self.builtin(name, function, arity);
        }
        if let Some(function) = aggregate(self.keyword) {
            self.advance()?;
            return self.aggregate(name, function);
        }
        match self.keyword {
            Keyword::Exists => self.exists(false),
            Keyword::Not => {
                let start = self.token.span.start;
                self.advance()?;
                if self.keyword != Keyword::Exists {
                    return Err(self.unexpected("an expression", &["EXISTS"]));
                }
                let mut made = self.exists(true)?;
                made.span.start = start;
                Ok(made)
            }
            _ if self.at_timestamp() => self.timestamp(),
            _ => Err(self.unexpected("an expression", OPERAND)),
        }
    }

    fn exists(&mut self, negated: bool) -> Parsed<Expression<'t>> {
        let start = self.token.span.start;
        self.advance()?;
        let used = self.used.take();
        let aggregates = self.forbid_aggregates("a graph pattern");
        let group = self.group("EXISTS", false)?;
        self.aggregates = aggregates;
        self.used = used;
        let group = self.memory.boxed(group)?;
        Ok(self.made(start, ExpressionKind::Exists { negated, group }))
    }

    /// Refuses aggregates from here on, and gives what held before.
    pub(crate) fn forbid_aggregates(&mut self, place: &'static str) -> Aggregates {
        std::mem::replace(&mut self.aggregates, Aggregates::Refused(place))
    }

    fn builtin(
        &mut self,
        name: Token,
        function: Builtin,
        (least, most): Arity,
    ) -> Parsed<Expression<'t>> {
        let start = name.span.start;
        let mut arguments = Vec::new();
        if self.is(Kind::Nil) {
            if least > 0 {
                return Err(self.wrong_count(name, (least, most), 0, self.token.span));
            }
            self.advance()?;
            return Ok(self.made(start, ExpressionKind::Call(function, arguments)));
        }
        if !self.is(Kind::OpenParen) {
            let fits = if most == 0 { "'()'" } else { "'('" };
            let what = format!("a call of {}", name.of(self.text).to_ascii_uppercase());
            return Err(self.unexpected(&what, &[fits]));
        }
        if most == 0 {
            return Err(self.wrong_count(name, (0, 0), 1, self.token.span));
        }
        self.open(Kind::OpenParen, "a call")?;
        if function == Builtin::Bound && !self.is(Kind::Variable) {
            return Err(self.unexpected("a call of BOUND", &["a variable"]));
        }
        loop {
            if arguments.len() == most {
                return Err(self.wrong_count(name, (least, most), most + 1, self.token.span));
            }
            let argument = self.expression()?;
            self.memory.push(&mut arguments, argument)?;
            if function == Builtin::Bound && !self.is(Kind::CloseParen) {
                return Err(self.unexpected("a call of BOUND", &["')'"]));
            }
            if !self.is(Kind::Comma) {
                break;
            }
            self.advance()?;
        }
        if self.is(Kind::CloseParen) && arguments.len() < least {
            let count = arguments.len();
            return Err(self.wrong_count(name, (least, most), count, self.token.span));
        }
        let others: &[&str] = match arguments.len() < most {
            true => &["an operator", "','"],
            false => &["an operator"],
        };
        self.end_expression(Kind::CloseParen, others)?;
        if function == Builtin::Bound && !matches!(arguments[0].kind, ExpressionKind::Variable(_)) {
            return Err(self.wrong(
                arguments[0].span,
                "BOUND is asked of a variable".to_owned(),
                None,
            ));
        }
        Ok(self.made(start, ExpressionKind::Call(function, arguments)))
    }

    #[cold]
    fn wrong_count(&self, name: Token, (least, most): Arity, count: usize, span: Span) -> Failure {
        let name = name.of(self.text).to_ascii_uppercase();
        let arguments = match (least, most) {
            (0, 0) => "no arguments".to_owned(),
            (1, 1) => "one argument".to_owned(),
            (least, most) if least == most => format!("{least} arguments"),
            (least, most) if most == least + 1 => format!("{least} or {most} arguments"),
            (least, _) => format!("at least {least} arguments"),
        };
        let surplus = if count > most { "more" } else { "fewer" };
        let message = format!("{name} takes {arguments}, and has {surplus}");
        self.wrong(span, message, None)
    }

    fn aggregate(
        &mut self,
        name: Token,
        function: AggregateFunction<'t>,
    ) -> Parsed<Expression<'t>> {
        let written = name.of(self.text).to_ascii_uppercase();
        match self.aggregates {
            Aggregates::Allowed | Aggregates::Present => (),
            Aggregates::Nested => {
                let message = format!("the aggregate {written} stands inside another");
                let hint = "a nested SELECT computes the inner one".to_owned();
                return Err(self.wrong(name.span, message, Some(hint)));
            }
            Aggregates::Refused(place) => {
                let message = format!("the aggregate {written} cannot stand in {place}");
                let hint = "aggregates stand in the columns of SELECT, in HAVING and in ORDER BY"
                    .to_owned();
                return Err(self.wrong(name.span, message, Some(hint)));
            }
        }
        let what = format!("a call of {written}");
        if self.is(Kind::Nil) {
            let found = match function {
                AggregateFunction::Count => &["'('", "COUNT(*)"][..],
                _ => &["an expression between '(' and ')'"],
            };
            return Err(self.unexpected(&what, found));
        }
        self.open(Kind::OpenParen, &what)?;
        self.aggregates = Aggregates::Nested;
        let used = self.used.take();
        let distinct = self.accept_word(Keyword::Distinct)?;
        let is_star = self.is(Kind::Star) && matches!(function, AggregateFunction::Count);
        let operand = match is_star {
            true => {
                self.advance()?;
                None
            }
            false => Some(self.expression()?),
        };
        let is_concat = matches!(function, AggregateFunction::GroupConcat { .. });
        let mut function = function;
        if is_concat && self.accept(Kind::Semicolon)? {
            self.expect_word(Keyword::Separator, &what)?;
            if !self.accept(Kind::Equal)? {
                return Err(self.unexpected(&what, &["'='"]));
            }
            let separator = Some(self.string(&what)?);
            function = AggregateFunction::GroupConcat { separator };
            if !self.is(Kind::CloseParen) {
                return Err(self.unexpected(&what, &["')'"]));
            }
        }
        let others: &[&str] = match (is_star, is_concat) {
            (true, _) => &[],
            (_, true) => &["an operator", "';'"],
            _ => &["an operator"],
        };
        if is_concat && self.is(Kind::Comma) {
            let failure = self.unexpected(&what, &["an operator", "';'", "')'"]);
            let hint = r#"the separator follows a semicolon: ; SEPARATOR = ", ""#;
            return Err(with_hint(failure, hint));
        }
        self.end_expression(Kind::CloseParen, others)?;
        self.aggregates = Aggregates::Present;
        self.used = used;
        let aggregate = self.memory.boxed(Aggregate {
            function,
            distinct,
            operand,
        })?;
        Ok(self.made(name.span.start, ExpressionKind::Aggregate(aggregate)))
    }

    /// A triple term whose parts may be variables.
    fn triple_expression(&mut self) -> Parsed<Expression<'t>> {
        let start = self.token.span.start;
        self.open(Kind::OpenTriple, "a triple term")?;
        let subject = match self.token.kind {
            Kind::Variable | Kind::Iri | Kind::Name => self.plain_primary()?,
            _ => {
                let what = "the subject of a triple term";
                return Err(self.unexpected(what, &["a variable", "an IRI"]));
            }
        };
        let predicate = match self.keyword {
            Keyword::A => {
                let iri = self.type_iri()?;
                Expression {
                    span: iri.span,
                    kind: ExpressionKind::Iri(iri),
                }
            }
            _ if matches!(self.token.kind, Kind::Variable | Kind::Iri | Kind::Name) => {
                self.plain_primary()?
            }
            _ => {
                let what = "the predicate of a triple term";
                return Err(self.unexpected(what, &["a variable", "an IRI"]));
            }
        };
        let object = match self.token.kind {
            Kind::OpenTriple => self.triple_expression()?,
            Kind::Variable | Kind::Iri | Kind::Name => self.plain_primary()?,
            _ if self.at_literal() => self.plain_primary()?,
            _ => {
                let what = "the object of a triple term";
                let fits = ["a variable", "an IRI", "a literal", "a triple term"];
                return Err(self.unexpected(what, &fits));
            }
        };
        self.close(Kind::CloseTriple, "a triple term", &[])?;
        let parts = self.memory.boxed([subject, predicate, object])?;
        Ok(self.made(start, ExpressionKind::Triple(parts)))
    }

    /// A variable, an IRI that is no function, or a literal.
    fn plain_primary(&mut self) -> Parsed<Expression<'t>> {
        if self.at_iri() {
            let iri = self.iri("a triple term")?;
            return Ok(Expression {
                span: iri.span,
                kind: ExpressionKind::Iri(iri),
            });
        }
        self.primary()
    }
}

/// True if what is between `<` and `>` could have been meant as part of comparisons: an IRI that
/// goes on with `//` after a scheme never is.
fn is_comparison(written: &str) -> bool {
    let inside = &written[1..written.len() - 1];
    let has_authority = inside.split_once("://").is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
    });
    !has_authority
}
