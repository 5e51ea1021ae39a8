//! What do the functions on strings give (SPARQL 1.1, section 17.4.3)?

use std::borrow::Cow;

use jindou_plan::expression::Function;
use md5::Md5;
use memchr::{memmem, memrchr};
use oxrdf::vocab::xsd;
use oxsdatatypes::Integer;
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use super::numeric::Number;
use super::pattern::Pattern;
use super::value::push_hex;
use super::{Context, ExprError, Value};
use crate::terms::HeldBytes;

/// The characters and the language tag of a string literal, as UTF-8: borrowed from the key of a
/// term where that can be, so that most functions copy and test nothing.
#[derive(Clone, Debug)]
pub(super) struct Text<'a> {
    pub(super) value: Cow<'a, [u8]>,
    pub(super) language: Option<Cow<'a, [u8]>>,
}

impl<'a> Text<'a> {
    /// A string without a tag.
    pub(super) fn simple(value: &'a [u8]) -> Self {
        Self {
            value: Cow::Borrowed(value),
            language: None,
        }
    }

    /// A string of its own without a tag.
    pub(super) fn owned(value: String) -> Self {
        Self {
            value: Cow::Owned(value.into_bytes()),
            language: None,
        }
    }

    /// The string literal of a key; `None` of a literal of another datatype.
    #[inline]
    pub(super) fn of_key(key: &'a [u8]) -> Option<Self> {
        let (value, suffix) = split_key(key);
        match suffix {
            [] => Some(Self::simple(value)),
            [b'@', language @ ..] => Some(Self {
                value: Cow::Borrowed(value),
                language: Some(Cow::Borrowed(language)),
            }),
            [_, datatype @ ..] if datatype == xsd::STRING.as_str().as_bytes() => {
                Some(Self::simple(value))
            }
            _ => None,
        }
    }

    /// The string literal that a decoded value is.
    pub(super) fn of(value: &'a Value) -> Result<Self, ExprError> {
        match value {
            Value::String(value) => Ok(Self::simple(value.as_bytes())),
            Value::LangString { value, language } => Ok(Self {
                value: Cow::Borrowed(value.as_bytes()),
                language: Some(Cow::Borrowed(language.as_bytes())),
            }),
            _ => Err(ExprError::Type),
        }
    }

    /// As [`Text::of`], of a value that is not needed any more.
    pub(super) fn take(value: Value) -> Result<Self, ExprError> {
        match value {
            Value::String(value) => Ok(Self::owned(value)),
            Value::LangString { value, language } => Ok(Self {
                value: Cow::Owned(value.into_bytes()),
                language: Some(Cow::Owned(language.into_bytes())),
            }),
            _ => Err(ExprError::Type),
        }
    }

    /// Counts the text, if it is its own and long, while something else is evaluated.
    ///
    /// # Errors
    /// As [`Context::hold`].
    #[inline]
    pub(super) fn hold(&self, cx: &Context) -> Result<Option<HeldBytes>, ExprError> {
        match &self.value {
            Cow::Borrowed(_) => Ok(None),
            Cow::Owned(value) => cx.hold_text(value.capacity()),
        }
    }

    pub(super) fn into_value(self) -> Value {
        let value = into_string(self.value);
        match self.language {
            None => Value::String(value),
            Some(language) => Value::LangString {
                value,
                language: into_string(language),
            },
        }
    }

    /// Appends the key of the literal.
    pub(super) fn push_key(&self, key: &mut Vec<u8>) {
        key.extend_from_slice(&self.value);
        key.push(0);
        if let Some(language) = &self.language {
            key.push(b'@');
            key.extend_from_slice(language);
        }
    }

    /// The characters.
    pub(super) fn str(&self) -> &str {
        utf8(&self.value)
    }

    /// The characters of a string without a language tag.
    pub(super) fn plain(&self) -> Result<&str, ExprError> {
        self.plain_bytes().map(utf8)
    }

    /// The same as bytes.
    fn plain_bytes(&self) -> Result<&[u8], ExprError> {
        match self.language {
            None => Ok(&self.value),
            Some(_) => Err(ExprError::Type),
        }
    }

    /// Another string with the same tag.
    fn with(self, value: Cow<'a, [u8]>) -> Self {
        Self {
            value,
            language: self.language,
        }
    }

    /// Part of the string, with the same tag.
    fn slice(self, from: usize, to: usize) -> Self {
        let value = match self.value {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[from..to]),
            Cow::Owned(mut bytes) => {
                bytes.truncate(to);
                bytes.drain(..from);
                Cow::Owned(bytes)
            }
        };
        Self {
            value,
            language: self.language,
        }
    }

    /// What `=` says of two strings.
    pub(super) fn equals(&self, other: &Self) -> bool {
        let tags = match (&self.language, &other.language) {
            (None, None) => true,
            (Some(left), Some(right)) => left.eq_ignore_ascii_case(right),
            _ => false,
        };
        tags && self.value == other.value
    }

    /// The order of two strings that have no tag or the same one.
    ///
    /// # Errors
    /// [`ExprError::Type`] of others.
    pub(super) fn order(&self, other: &Self) -> Result<std::cmp::Ordering, ExprError> {
        match (&self.language, &other.language) {
            (None, None) => {}
            (Some(left), Some(right)) if left.eq_ignore_ascii_case(right) => {}
            _ => return Err(ExprError::Type),
        }
        Ok(self.value.cmp(&other.value))
    }
}

fn utf8(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("strings are UTF-8")
}

fn into_string(bytes: Cow<'_, [u8]>) -> String {
    String::from_utf8(bytes.into_owned()).expect("strings are UTF-8")
}

/// A literal's key as its lexical form and what tells its datatype.
#[inline]
pub(super) fn split_key(key: &[u8]) -> (&[u8], &[u8]) {
    // Plain strings end with the border.
    if let [value @ .., 0] = key {
        return (value, &[]);
    }
    let border = memrchr(0, key).expect("the dictionary holds keys of terms");
    (&key[..border], &key[border + 1..])
}

/// The characters of a string without a language tag.
pub(super) fn simple(value: &Value) -> Result<&str, ExprError> {
    match value {
        Value::String(value) => Ok(value),
        _ => Err(ExprError::Type),
    }
}

/// Two strings may be compared (section 17.4.3.1.2) if the second has no tag or the first's.
fn compatible(left: &Text<'_>, right: &Text<'_>) -> Result<(), ExprError> {
    let same = match (&left.language, &right.language) {
        (_, None) => true,
        (Some(left), Some(right)) => left.eq_ignore_ascii_case(right),
        (None, Some(_)) => false,
    };
    if same { Ok(()) } else { Err(ExprError::Type) }
}

/// CONTAINS, STRSTARTS or STRENDS.
pub(super) fn search(
    function: Function,
    text: &Text<'_>,
    part: &Text<'_>,
) -> Result<bool, ExprError> {
    compatible(text, part)?;
    Ok(match function {
        Function::StrStarts => text.value.starts_with(&part.value),
        Function::StrEnds => text.value.ends_with(&part.value),
        _ => memmem::find(&text.value, &part.value).is_some(),
    })
}

/// STRBEFORE: without a match, the empty string without a tag.
pub(super) fn before<'a>(text: Text<'a>, part: &Text<'_>) -> Result<Text<'a>, ExprError> {
    compatible(&text, part)?;
    Ok(match memmem::find(&text.value, &part.value) {
        Some(at) => text.slice(0, at),
        None => Text::simple(&[]),
    })
}

/// STRAFTER: without a match, the empty string without a tag.
pub(super) fn after<'a>(text: Text<'a>, part: &Text<'_>) -> Result<Text<'a>, ExprError> {
    compatible(&text, part)?;
    Ok(match memmem::find(&text.value, &part.value) {
        Some(at) => {
            let end = text.value.len();
            text.slice(at + part.value.len(), end)
        }
        None => Text::simple(&[]),
    })
}

/// CONCAT: the tag that all parts share, if they do.
pub(super) fn concat<'a>(
    parts: impl Iterator<Item = Result<Text<'a>, ExprError>>,
    cx: &Context,
) -> Result<Text<'a>, ExprError> {
    let mut text: Vec<u8> = Vec::new();
    let mut language = None;
    let mut held = None;
    for (index, part) in parts.enumerate() {
        let part = part?;
        let bytes = text.len() + part.value.len();
        cx.check_string(bytes, "CONCAT")?;
        if bytes > text.capacity() {
            // It grows to twice its bytes, and is there twice meanwhile, with the part.
            held = cx.hold_text(4 * bytes)?;
        }
        text.extend_from_slice(&part.value);
        if index == 0 {
            language = part.language;
        } else if language != part.language {
            language = None;
        }
    }
    drop(held);
    Ok(Text {
        value: Cow::Owned(text),
        language,
    })
}

/// SUBSTR: the characters at positions from `start` on, counted from 1, and before
/// `start + length`.
pub(super) fn substr(
    text: Text<'_>,
    start: Number,
    length: Option<Number>,
) -> Result<Text<'_>, ExprError> {
    let start = position(start);
    let end = length.map_or(f64::INFINITY, |length| start + position(length));
    // Comparisons with NaN are false, so that nothing is selected.
    if start.partial_cmp(&end) != Some(std::cmp::Ordering::Less) {
        return Ok(text.slice(0, 0));
    }
    // Beyond the text, and of a string's length, all numbers are alike.
    let index = |position: f64| (position.max(1.0) - 1.0).min(text.value.len() as f64) as usize;
    let (from, to) = (index(start), index(end));
    if text.value.is_ascii() {
        return Ok(text.slice(from, to));
    }
    let byte_of = |character: usize| {
        let mut starts = text.str().char_indices().map(|(at, _)| at);
        starts.nth(character).unwrap_or(text.value.len())
    };
    let (from, to) = (byte_of(from), byte_of(to));
    Ok(text.slice(from, to))
}

fn position(number: Number) -> f64 {
    number.to_double().round().into()
}

/// STRLEN, in code points.
pub(super) fn length(text: &Text<'_>) -> Result<Number, ExprError> {
    let length = i64::try_from(character_count(&text.value)).map_err(|_| ExprError::Overflow)?;
    Ok(Number::Integer(Integer::from(length)))
}

/// The code points of UTF-8.
#[inline]
pub(super) fn character_count(text: &[u8]) -> usize {
    // All bytes of a code point but the first begin with the bits 10.
    let starts = text.iter().filter(|byte| **byte & 0xc0 != 0x80);
    starts.count()
}

/// UCASE or LCASE.
pub(super) fn change_case<'a>(
    function: Function,
    text: Text<'a>,
    cx: &Context,
) -> Result<Text<'a>, ExprError> {
    // A character may become three, and the string grows to twice its bytes.
    let _held = cx.hold_text(7 * text.value.len())?;
    let upper = function == Function::UCase;
    let changed = match (text.value.is_ascii(), upper) {
        (true, true) => text.value.to_ascii_uppercase(),
        (true, false) => text.value.to_ascii_lowercase(),
        (false, true) => text.str().to_uppercase().into_bytes(),
        (false, false) => text.str().to_lowercase().into_bytes(),
    };
    cx.check_string(changed.len(), function_name(function))?;
    Ok(text.with(Cow::Owned(changed)))
}

fn function_name(function: Function) -> &'static str {
    match function {
        Function::UCase => "UCASE",
        _ => "LCASE",
    }
}

/// ENCODE_FOR_URI: all but the unreserved characters of RFC 3986 is escaped.
pub(super) fn encode_for_uri(text: &Text<'_>, cx: &Context) -> Result<Text<'static>, ExprError> {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let escaped = text.value.iter().filter(|byte| !is_plain(**byte)).count();
    let bytes = text.value.len() + 2 * escaped;
    cx.check_string(bytes, "ENCODE_FOR_URI")?;
    let _held = cx.hold_text(text.value.len() + bytes)?;
    let mut out = String::with_capacity(bytes);
    for byte in text.value.iter().copied() {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
    Ok(Text::owned(out))
}

/// REPLACE.
pub(super) fn replace<'a>(
    text: Text<'a>,
    pattern: &Pattern,
    replacement: &Text<'_>,
    cx: &Context,
) -> Result<Text<'a>, ExprError> {
    let _held = replacement.hold(cx)?;
    let replaced = pattern.replace(text.str(), replacement.plain()?, cx)?;
    Ok(text.with(Cow::Owned(replaced.into_bytes())))
}

/// LANGMATCHES: basic filtering of RFC 4647.
pub(super) fn lang_matches(tag: &Text<'_>, range: &Text<'_>) -> Result<bool, ExprError> {
    let (tag, range) = (tag.plain_bytes()?, range.plain_bytes()?);
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
pub(super) fn hash(
    function: Function,
    text: &Text<'_>,
    cx: &Context,
) -> Result<Text<'static>, ExprError> {
    let bytes = text.plain_bytes()?;
    let mut out = String::new();
    match function {
        Function::Md5 => push_digest::<Md5>(bytes, &mut out, cx),
        Function::Sha1 => push_digest::<Sha1>(bytes, &mut out, cx),
        Function::Sha256 => push_digest::<Sha256>(bytes, &mut out, cx),
        Function::Sha384 => push_digest::<Sha384>(bytes, &mut out, cx),
        _ => push_digest::<Sha512>(bytes, &mut out, cx),
    }?;
    Ok(Text::owned(out))
}

/// Bytes that are hashed between two looks at the query's limits.
const HASHED_AT_ONCE: usize = 1 << 18;

fn push_digest<D: md5::Digest>(
    bytes: &[u8],
    out: &mut String,
    cx: &Context,
) -> Result<(), ExprError> {
    let mut digest = D::new();
    for part in bytes.chunks(HASHED_AT_ONCE) {
        cx.count_text(part.len())?;
        digest.update(part);
    }
    push_hex(out, &digest.finalize());
    Ok(())
}
