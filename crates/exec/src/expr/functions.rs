//! What does a function give for its arguments?

use std::sync::Arc;

use jindou_model::{inline, key};
use jindou_plan::expression::Function;
use oxrdf::vocab::rdf;
use oxrdf::{Literal, NamedNodeRef};
use oxsdatatypes::Double;

use super::compile::Code;
use super::numeric::Number;
use super::pattern::Pattern;
use super::strings::{Text, simple};
use super::value::lexical;
use super::{Context, ExprError, Row, Value, calendar, cast, numeric, strings};
use crate::KeyKind;

/// True of functions whose value is a string.
pub(super) fn gives_text(function: Function) -> bool {
    use Function as F;
    matches!(
        function,
        F::Str
            | F::Lang
            | F::Concat
            | F::SubStr
            | F::Replace
            | F::UCase
            | F::LCase
            | F::EncodeForUri
            | F::StrBefore
            | F::StrAfter
            | F::StrUuid
            | F::Md5
            | F::Sha1
            | F::Sha256
            | F::Sha384
            | F::Sha512
    )
}

/// True of functions whose value is a number.
pub(super) fn gives_number(function: Function) -> bool {
    use Function as F;
    matches!(
        function,
        F::StrLen
            | F::Abs
            | F::Ceil
            | F::Floor
            | F::Round
            | F::Year
            | F::Month
            | F::Day
            | F::Hours
            | F::Minutes
            | F::Seconds
    )
}

/// True of functions on strings that are true or false.
pub(super) fn tests_text(function: Function) -> bool {
    use Function as F;
    matches!(
        function,
        F::LangMatches | F::Contains | F::StrStarts | F::StrEnds | F::Regex
    )
}

/// True of functions that read the characters, the tag or the datatype of their arguments.
pub(super) fn reads_text(function: Function) -> bool {
    gives_text(function)
        || tests_text(function)
        || matches!(
            function,
            Function::StrLen | Function::Datatype | Function::CastDate | Function::CastDateTime
        )
}

/// A function whose value is a string.
pub(super) fn text<'r, R: Row + ?Sized>(
    function: Function,
    arguments: &'r [Code],
    row: &'r R,
    cx: &Context,
) -> Result<Text<'r>, ExprError> {
    use Function as F;
    let at = |index: usize| counted(&arguments[index], row, cx);
    let text = match function {
        F::Str => str_of(&arguments[0], row, cx),
        F::Lang => lang(&arguments[0], row, cx),
        F::Concat => strings::concat(arguments.iter().map(|part| part.text(row, cx)), cx),
        F::SubStr => {
            let text = at(0)?;
            let _held = text.hold(cx)?;
            let length = arguments.get(2).map(|length| length.number(row, cx));
            strings::substr(text, arguments[1].number(row, cx)?, length.transpose()?)
        }
        F::Replace => {
            let pattern = pattern(arguments, 3, row, cx)?;
            let text = at(0)?;
            let _held = text.hold(cx)?;
            strings::replace(text, &pattern, &at(2)?, cx)
        }
        F::UCase | F::LCase => strings::change_case(function, at(0)?, cx),
        F::EncodeForUri => strings::encode_for_uri(&at(0)?, cx),
        F::StrBefore | F::StrAfter => {
            let text = at(0)?;
            let _held = text.hold(cx)?;
            let part = at(1)?;
            match function {
                F::StrBefore => strings::before(text, &part),
                _ => strings::after(text, &part),
            }
        }
        F::StrUuid => Ok(Text::owned(cx.uuid())),
        F::Md5 | F::Sha1 | F::Sha256 | F::Sha384 | F::Sha512 => {
            strings::hash(function, &at(0)?, cx)
        }
        other => unreachable!("{other:?} gives no string"),
    }?;
    cx.count_text(text.value.len())?;
    Ok(text)
}

/// A function whose value is a number.
pub(super) fn number<R: Row + ?Sized>(
    function: Function,
    arguments: &[Code],
    row: &R,
    cx: &Context,
) -> Result<Number, ExprError> {
    use Function as F;
    let argument = &arguments[0];
    match function {
        F::StrLen => strings::length(&counted(argument, row, cx)?),
        F::Abs | F::Ceil | F::Floor | F::Round => {
            Ok(numeric::round(function, argument.number(row, cx)?))
        }
        F::Year | F::Month | F::Day | F::Hours | F::Minutes | F::Seconds => {
            if let Code::Variable(var) = argument
                && let Some(part) = calendar::part_of_id(function, row.get(*var))
            {
                return Ok(part);
            }
            calendar::part(function, &*argument.decoded(row, cx)?)
        }
        other => unreachable!("{other:?} gives no number"),
    }
}

/// A function on strings that is true or false.
pub(super) fn test<R: Row + ?Sized>(
    function: Function,
    arguments: &[Code],
    row: &R,
    cx: &Context,
) -> Result<bool, ExprError> {
    use Function as F;
    let at = |index: usize| counted(&arguments[index], row, cx);
    if function == F::Regex {
        let pattern = pattern(arguments, 2, row, cx)?;
        return pattern.is_match(at(0)?.str(), cx);
    }
    let text = at(0)?;
    let _held = text.hold(cx)?;
    let part = at(1)?;
    match function {
        F::LangMatches => strings::lang_matches(&text, &part),
        _ => strings::search(function, &text, &part),
    }
}

/// An argument that is a string, counted before it is read through.
fn counted<'r, R: Row + ?Sized>(
    argument: &'r Code,
    row: &'r R,
    cx: &Context,
) -> Result<Text<'r>, ExprError> {
    let text = argument.text(row, cx)?;
    cx.count_text(text.value.len())?;
    Ok(text)
}

/// The pattern of REGEX or REPLACE, whose flags are the argument `flags_at`, if it is given.
fn pattern<R: Row + ?Sized>(
    arguments: &[Code],
    flags_at: usize,
    row: &R,
    cx: &Context,
) -> Result<Arc<Pattern>, ExprError> {
    let flags = match arguments.get(flags_at) {
        Some(flags) => flags.text(row, cx)?,
        None => Text::simple(&[]),
    };
    let _held = flags.hold(cx)?;
    cx.pattern(arguments[1].text(row, cx)?.plain()?, flags.plain()?)
}

/// Evaluates a function; the number of arguments was checked when it was compiled.
pub(super) fn call<R: Row + ?Sized>(
    function: Function,
    arguments: &[Code],
    row: &R,
    cx: &Context,
) -> Result<Value, ExprError> {
    use Function as F;
    if gives_text(function) {
        return text(function, arguments, row, cx).map(Text::into_value);
    }
    if gives_number(function) {
        return number(function, arguments, row, cx).map(Value::from);
    }
    if tests_text(function) {
        return test(function, arguments, row, cx).map(Value::Boolean);
    }
    let decoded = |index: usize| arguments[index].decoded(row, cx);
    match function {
        F::Datatype => datatype(&arguments[0], row, cx),
        F::Iri => iri(&*decoded(0)?, cx),
        F::BNode => match arguments {
            [] => Ok(Value::Blank(cx.fresh_label())),
            _ => {
                let name = decoded(0)?;
                Ok(Value::Blank(
                    cx.label_in_solution(simple(&name)?, row.solution()),
                ))
            }
        },
        F::Rand => Ok(Value::Double(Double::from(cx.random_unit()))),
        F::Timezone => calendar::timezone(&*decoded(0)?),
        F::Tz => {
            let text = lexical(&arguments[0].evaluate(row, cx)?, cx.terms())?;
            calendar::tz(&*decoded(0)?, &text)
        }
        F::Now => Ok(Value::DateTime(cx.now())),
        F::Timestamp => {
            let triple = [0, 1, 2].map(|part| arguments[part].id(row, cx));
            Ok(Value::Integer(cx.time_of(triple)?.into()))
        }
        F::Uuid => Ok(Value::Iri(format!("urn:uuid:{}", cx.uuid()))),
        F::StrLang | F::StrDt => {
            let text = decoded(0)?;
            let _held = text.hold(cx)?;
            let other = decoded(1)?;
            match function {
                F::StrLang => str_lang(&text, &other, cx),
                _ => str_dt(&text, &other, cx),
            }
        }
        F::IsIri => Ok(Value::Boolean(matches!(&*decoded(0)?, Value::Iri(_)))),
        F::IsBlank => Ok(Value::Boolean(matches!(&*decoded(0)?, Value::Blank(_)))),
        F::IsLiteral => Ok(Value::Boolean(!matches!(
            &*decoded(0)?,
            Value::Iri(_) | Value::Blank(_)
        ))),
        F::IsNumeric => Ok(Value::Boolean(is_numeric(&*decoded(0)?))),
        F::CastDate | F::CastDateTime => {
            if let Code::Variable(var) = &arguments[0]
                && let Some((key, KeyKind::Literal)) = row.key(*var)
                && let (text, []) = strings::split_key(key)
                && let Some(id) = cast::inline_time(function, Text::simple(text).str())
            {
                return Ok(Value::Id(id));
            }
            let value = decoded(0)?;
            let inline = match &*value {
                Value::String(text) => cast::inline_time(function, text),
                _ => None,
            };
            match inline {
                Some(id) => Ok(Value::Id(id)),
                None => cast::cast(function, &value),
            }
        }
        _ => cast::cast(function, &*decoded(0)?),
    }
}

/// STR: the characters of a literal, or an IRI.
fn str_of<'r, R: Row + ?Sized>(
    code: &'r Code,
    row: &'r R,
    cx: &Context,
) -> Result<Text<'r>, ExprError> {
    if let Code::Variable(var) = code
        && let Some((key, kind)) = row.key(*var)
    {
        return match kind {
            KeyKind::Literal => Ok(Text::simple(strings::split_key(key).0)),
            _ if key.starts_with(b"_:") => Err(ExprError::Type),
            _ => Ok(Text::simple(key)),
        };
    }
    lexical(&code.evaluate(row, cx)?, cx.terms()).map(Text::owned)
}

fn lang<'r, R: Row + ?Sized>(
    code: &'r Code,
    row: &'r R,
    cx: &Context,
) -> Result<Text<'r>, ExprError> {
    if let Code::Variable(var) = code
        && let Some((key, kind)) = row.key(*var)
    {
        if kind != KeyKind::Literal {
            return Err(ExprError::Type);
        }
        return Ok(Text::simple(match strings::split_key(key).1 {
            [b'@', language @ ..] => language,
            _ => &[],
        }));
    }
    match code.decoded(row, cx)?.into_owned() {
        Value::Iri(_) | Value::Blank(_) => Err(ExprError::Type),
        Value::LangString { language, .. } => Ok(Text::owned(language)),
        _ => Ok(Text::simple(&[])),
    }
}

/// The datatype as the term has it: derived types are kept apart.
fn datatype<R: Row + ?Sized>(code: &Code, row: &R, cx: &Context) -> Result<Value, ExprError> {
    let of_key = |key: &[u8]| {
        let parts = key::literal_parts(key).expect("the dictionary holds keys of terms");
        parts.2.as_str().to_owned()
    };
    if let Code::Variable(var) = code
        && let Some((key, kind)) = row.key(*var)
    {
        return match kind {
            KeyKind::Literal => Ok(Value::Iri(of_key(key))),
            _ => Err(ExprError::Type),
        };
    }
    let value = code.evaluate(row, cx)?;
    let name = match &value {
        Value::Iri(_) | Value::Blank(_) => return Err(ExprError::Type),
        Value::Id(id) => match inline::datatype(*id) {
            Some(datatype) => datatype.as_str().to_owned(),
            None => {
                let mut bytes = Vec::new();
                if !cx.terms().push_key(*id, &mut bytes)? {
                    return Err(ExprError::Type);
                }
                of_key(&bytes)
            }
        },
        value => value.computed_datatype().as_str().to_owned(),
    };
    Ok(Value::Iri(name))
}

fn iri(value: &Value, cx: &Context) -> Result<Value, ExprError> {
    match value {
        Value::Iri(_) => Ok(value.clone()),
        value => {
            let iri = simple(value)?;
            let _held = cx.hold_text(2 * iri.len())?;
            cx.resolve(iri).map(Value::Iri)
        }
    }
}

fn str_lang(text: &Value, language: &Value, cx: &Context) -> Result<Value, ExprError> {
    let (text, language) = (simple(text)?, simple(language)?);
    let _held = cx.hold_text(2 * (text.len() + language.len()))?;
    let literal =
        Literal::new_language_tagged_literal(text, language).map_err(|_| ExprError::Value)?;
    let language = literal.language().unwrap_or_default().to_owned();
    Ok(Value::LangString {
        value: text.to_owned(),
        language,
    })
}

/// The lexical form is kept as it is, so the result is a term and not a value.
fn str_dt(text: &Value, datatype: &Value, cx: &Context) -> Result<Value, ExprError> {
    let (text, Value::Iri(datatype)) = (simple(text)?, datatype) else {
        return Err(ExprError::Type);
    };
    let datatype = NamedNodeRef::new_unchecked(datatype);
    if datatype == rdf::LANG_STRING {
        return Err(ExprError::Value);
    }
    // As a term and as its key, which the query's own terms count.
    let _held = cx.hold_text(2 * (text.len() + datatype.as_str().len()))?;
    let literal = Literal::new_typed_literal(text, datatype);
    Ok(Value::Id(cx.terms().intern_literal(&literal)?))
}

fn is_numeric(value: &Value) -> bool {
    matches!(
        value,
        Value::Integer(_)
            | Value::Decimal(_)
            | Value::Large(_)
            | Value::Float(_)
            | Value::Double(_)
    )
}
