//! What does a function give for its arguments?

use jindou_model::{inline, key};
use jindou_plan::expression::Function;
use oxrdf::vocab::rdf;
use oxrdf::{Literal, NamedNodeRef};
use oxsdatatypes::Double;

use super::compile::Code;
use super::numeric::Number;
use super::strings::{Text, simple};
use super::value::{is_large_number, lexical};
use super::{Context, ExprError, Row, Value, calendar, cast, numeric, strings};

/// Evaluates a function; the number of arguments was checked when it was compiled.
pub(super) fn call<R: Row + ?Sized>(
    function: Function,
    arguments: &[Code],
    row: &R,
    cx: &Context,
) -> Result<Value, ExprError> {
    use Function as F;
    let decoded = |index: usize| arguments[index].decoded(row, cx);
    match function {
        F::Str => lexical(&arguments[0].evaluate(row, cx)?, cx.terms()).map(Value::String),
        F::Lang => lang(&*decoded(0)?),
        F::LangMatches => strings::lang_matches(&*decoded(0)?, &*decoded(1)?).map(Value::Boolean),
        F::Datatype => datatype(&arguments[0].evaluate(row, cx)?, cx),
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
        F::Abs | F::Ceil | F::Floor | F::Round => numeric::round(function, &*decoded(0)?),
        F::Concat => {
            let parts = arguments
                .iter()
                .map(|part| part.decoded(row, cx))
                .collect::<Result<Vec<_>, _>>()?;
            let parts: Vec<&Value> = parts.iter().map(|part| &**part).collect();
            strings::concat(&parts, cx)
        }
        F::SubStr => {
            let length = arguments
                .get(2)
                .map(|length| length.decoded(row, cx))
                .transpose()?;
            strings::substr(&*decoded(0)?, &*decoded(1)?, length.as_deref())
        }
        F::StrLen => strings::length(&*decoded(0)?),
        F::Replace => {
            let flags = arguments
                .get(3)
                .map(|flags| flags.decoded(row, cx))
                .transpose()?;
            let flags = flags.as_deref().map_or(Ok(""), simple)?;
            let pattern = cx.pattern(simple(&*decoded(1)?)?, flags)?;
            strings::replace(&*decoded(0)?, &pattern, &*decoded(2)?, cx)
        }
        F::UCase | F::LCase => strings::change_case(function, &*decoded(0)?),
        F::EncodeForUri => strings::encode_for_uri(&*decoded(0)?),
        F::Contains | F::StrStarts | F::StrEnds => {
            strings::search(function, &*decoded(0)?, &*decoded(1)?).map(Value::Boolean)
        }
        F::StrBefore => strings::before(&*decoded(0)?, &*decoded(1)?),
        F::StrAfter => strings::after(&*decoded(0)?, &*decoded(1)?),
        F::Year | F::Month | F::Day | F::Hours | F::Minutes | F::Seconds => {
            calendar::part(function, &*decoded(0)?)
        }
        F::Timezone => calendar::timezone(&*decoded(0)?),
        F::Tz => {
            let text = lexical(&arguments[0].evaluate(row, cx)?, cx.terms())?;
            calendar::tz(&*decoded(0)?, &text)
        }
        F::Now => Ok(Value::DateTime(cx.now())),
        F::Uuid => Ok(Value::Iri(format!("urn:uuid:{}", cx.uuid()))),
        F::StrUuid => Ok(Value::String(cx.uuid())),
        F::Md5 | F::Sha1 | F::Sha256 | F::Sha384 | F::Sha512 => {
            strings::hash(function, &*decoded(0)?)
        }
        F::StrLang => str_lang(&*decoded(0)?, &*decoded(1)?),
        F::StrDt => str_dt(&*decoded(0)?, &*decoded(1)?, cx),
        F::IsIri => Ok(Value::Boolean(matches!(&*decoded(0)?, Value::Iri(_)))),
        F::IsBlank => Ok(Value::Boolean(matches!(&*decoded(0)?, Value::Blank(_)))),
        F::IsLiteral => Ok(Value::Boolean(!matches!(
            &*decoded(0)?,
            Value::Iri(_) | Value::Blank(_)
        ))),
        F::IsNumeric => Ok(Value::Boolean(is_numeric(&*decoded(0)?))),
        F::Regex => {
            let flags = arguments
                .get(2)
                .map(|flags| flags.decoded(row, cx))
                .transpose()?;
            let flags = flags.as_deref().map_or(Ok(""), simple)?;
            let pattern = cx.pattern(simple(&*decoded(1)?)?, flags)?;
            let text = decoded(0)?;
            Ok(Value::Boolean(pattern.is_match(Text::of(&text)?.value)))
        }
        F::CastString
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
        | F::CastYearMonthDuration => cast::cast(function, &*decoded(0)?),
    }
}

fn lang(value: &Value) -> Result<Value, ExprError> {
    match value {
        Value::Iri(_) | Value::Blank(_) => Err(ExprError::Type),
        Value::LangString { language, .. } => Ok(Value::String(language.clone())),
        _ => Ok(Value::String(String::new())),
    }
}

/// The datatype as the term has it: derived types are kept apart.
fn datatype(value: &Value, cx: &Context) -> Result<Value, ExprError> {
    let name = match value {
        Value::Iri(_) | Value::Blank(_) => return Err(ExprError::Type),
        Value::Id(id) => match inline::datatype(*id) {
            Some(datatype) => datatype.as_str().to_owned(),
            None => {
                let mut bytes = Vec::new();
                if !cx.terms().push_key(*id, &mut bytes) {
                    return Err(ExprError::Type);
                }
                let (_, _, datatype) =
                    key::literal_parts(&bytes).expect("the dictionary holds keys of terms");
                datatype.as_str().to_owned()
            }
        },
        value => value.computed_datatype().as_str().to_owned(),
    };
    Ok(Value::Iri(name))
}

fn iri(value: &Value, cx: &Context) -> Result<Value, ExprError> {
    match value {
        Value::Iri(_) => Ok(value.clone()),
        value => cx.resolve(simple(value)?).map(Value::Iri),
    }
}

fn str_lang(text: &Value, language: &Value) -> Result<Value, ExprError> {
    let (text, language) = (simple(text)?, simple(language)?);
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
    Ok(Value::Id(cx.terms().intern_literal(
        &Literal::new_typed_literal(text, datatype),
    )))
}

fn is_numeric(value: &Value) -> bool {
    match value {
        Value::Other { value, datatype } => is_large_number(value, datatype),
        value => Number::of(value).is_some(),
    }
}
