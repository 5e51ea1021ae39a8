//! What do the functions on strings give (SPARQL 1.1, section 17.4.3)?

use md5::{Digest as _, Md5};
use oxsdatatypes::Integer;
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use jindou_plan::expression::Function;

use super::context::STRING_BYTES;
use super::numeric::Number;
use super::pattern::Pattern;
use super::value::push_hex;
use super::{Context, ExprError, Value};

/// The characters and language tag of a string literal.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) value: &'a str,
    pub(super) language: Option<&'a str>,
}

impl<'a> Text<'a> {
    /// The string literal that a decoded value is.
    pub(super) fn of(value: &'a Value) -> Result<Self, ExprError> {
        match value {
            Value::String(value) => Ok(Self {
                value,
                language: None,
            }),
            Value::LangString { value, language } => Ok(Self {
                value,
                language: Some(language),
            }),
            _ => Err(ExprError::Type),
        }
    }

    /// Another string with the same tag.
    fn with(self, value: String) -> Value {
        match self.language {
            None => Value::String(value),
            Some(language) => Value::LangString {
                value,
                language: language.to_owned(),
            },
        }
    }
}

/// The characters of a string without a language tag.
pub(super) fn simple(value: &Value) -> Result<&str, ExprError> {
    match value {
        Value::String(value) => Ok(value),
        _ => Err(ExprError::Type),
    }
}

/// Two strings that may be compared (section 17.4.3.1.2): the second has no tag or the first's.
fn compatible<'a>(left: &'a Value, right: &'a Value) -> Result<(Text<'a>, &'a str), ExprError> {
    let (left, right) = (Text::of(left)?, Text::of(right)?);
    let same = match (left.language, right.language) {
        (_, None) => true,
        (Some(left), Some(right)) => left.eq_ignore_ascii_case(right),
        (None, Some(_)) => false,
    };
    if same {
        Ok((left, right.value))
    } else {
        Err(ExprError::Type)
    }
}

/// CONTAINS, STRSTARTS or STRENDS.
pub(super) fn search(function: Function, left: &Value, right: &Value) -> Result<bool, ExprError> {
    let (text, part) = compatible(left, right)?;
    Ok(match function {
        Function::StrStarts => text.value.starts_with(part),
        Function::StrEnds => text.value.ends_with(part),
        _ => text.value.contains(part),
    })
}

/// STRBEFORE: without a match, the empty string without a tag.
pub(super) fn before(left: &Value, right: &Value) -> Result<Value, ExprError> {
    let (text, part) = compatible(left, right)?;
    Ok(match text.value.find(part) {
        Some(at) => text.with(text.value[..at].to_owned()),
        None => Value::String(String::new()),
    })
}

/// STRAFTER: without a match, the empty string without a tag.
pub(super) fn after(left: &Value, right: &Value) -> Result<Value, ExprError> {
    let (text, part) = compatible(left, right)?;
    Ok(match text.value.find(part) {
        Some(at) => text.with(text.value[at + part.len()..].to_owned()),
        None => Value::String(String::new()),
    })
}

/// CONCAT: the tag that all parts share, if they do.
pub(super) fn concat(parts: &[&Value], cx: &Context) -> Result<Value, ExprError> {
    let mut text = String::new();
    let mut language = None;
    for (index, part) in parts.iter().enumerate() {
        let part = Text::of(part)?;
        if text.len() + part.value.len() > STRING_BYTES {
            return Err(cx.refuse(format!("CONCAT made more than {STRING_BYTES} bytes")));
        }
        text.push_str(part.value);
        if index == 0 {
            language = part.language;
        } else if language != part.language {
            language = None;
        }
    }
    Ok(Text {
        value: "",
        language,
    }
    .with(text))
}

/// SUBSTR: the characters at positions from `start` on, counted from 1, and before
/// `start + length`.
pub(super) fn substr(
    text: &Value,
    start: &Value,
    length: Option<&Value>,
) -> Result<Value, ExprError> {
    let text = Text::of(text)?;
    let start = position(start)?;
    let end = match length {
        Some(length) => start + position(length)?,
        None => f64::INFINITY,
    };
    // Comparisons with NaN are false, so that nothing is selected.
    let selected = text
        .value
        .chars()
        .zip(1_u64..)
        .skip_while(|(_, at)| (*at as f64) < start)
        .take_while(|(_, at)| *at as f64 >= start && (*at as f64) < end)
        .map(|(character, _)| character)
        .collect();
    Ok(text.with(selected))
}

fn position(value: &Value) -> Result<f64, ExprError> {
    Number::of(value)
        .map(|number| number.to_double().round().into())
        .ok_or(ExprError::Type)
}

/// STRLEN, in code points.
pub(super) fn length(text: &Value) -> Result<Value, ExprError> {
    let length = Text::of(text)?.value.chars().count();
    let length = i64::try_from(length).map_err(|_| ExprError::Overflow)?;
    Ok(Value::Integer(Integer::from(length)))
}

/// UCASE or LCASE.
pub(super) fn change_case(function: Function, text: &Value) -> Result<Value, ExprError> {
    let text = Text::of(text)?;
    let changed = match function {
        Function::UCase => text.value.to_uppercase(),
        _ => text.value.to_lowercase(),
    };
    Ok(text.with(changed))
}

/// ENCODE_FOR_URI: all but the unreserved characters of RFC 3986 is escaped.
pub(super) fn encode_for_uri(text: &Value) -> Result<Value, ExprError> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let text = Text::of(text)?.value;
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    Ok(Value::String(out))
}

/// REPLACE.
pub(super) fn replace(
    text: &Value,
    pattern: &Pattern,
    replacement: &Value,
    cx: &Context,
) -> Result<Value, ExprError> {
    let text = Text::of(text)?;
    Ok(text.with(pattern.replace(text.value, simple(replacement)?, cx)?))
}

/// LANGMATCHES: basic filtering of RFC 4647.
pub(super) fn lang_matches(tag: &Value, range: &Value) -> Result<bool, ExprError> {
    let (tag, range) = (simple(tag)?.as_bytes(), simple(range)?.as_bytes());
    if range == b"*" {
        return Ok(!tag.is_empty());
    }
    Ok(match tag.split_at_checked(range.len()) {
        Some((start, rest)) => {
            start.eq_ignore_ascii_case(range) && matches!(rest.first(), None | Some(b'-'))
        }
        None => false,
    })
}

/// MD5 and the SHA functions, of a string's UTF-8 bytes.
pub(super) fn hash(function: Function, text: &Value) -> Result<Value, ExprError> {
    let bytes = simple(text)?.as_bytes();
    let mut out = String::new();
    match function {
        Function::Md5 => push_hex(&mut out, &Md5::digest(bytes)),
        Function::Sha1 => push_hex(&mut out, &Sha1::digest(bytes)),
        Function::Sha256 => push_hex(&mut out, &Sha256::digest(bytes)),
        Function::Sha384 => push_hex(&mut out, &Sha384::digest(bytes)),
        _ => push_hex(&mut out, &Sha512::digest(bytes)),
    }
    Ok(Value::String(out))
}
