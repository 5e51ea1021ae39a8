//! Which literals need no dictionary, and how do they fit into an id?
//!
//! A literal is held inline only when its id gives back exactly its lexical form and datatype;
//! every other spelling of the same value (`"01"`, `"+1"`, `"1e0"`) goes to the dictionary.
//!
//! | kind | payload, 60 bits | lexical forms |
//! |---|---|---|
//! | integer | value + 2^59 | no sign but `-`, no leading zero |
//! | decimal, double, float | (mantissa + 2^55) * 16 + number of fraction digits | the same, and at most 15 digits after a point |
//! | boolean | 0 or 1 | `true`, `false` |
//! | dateTime | local milliseconds since 0000-01-01 * 2048 + zone | years 0000 to 9999, no fraction or three digits that are not all zero |
//! | date | days since 0000-01-01 * 2048 + zone | years 0000 to 9999 |
//!
//! The zone is 0 for none, 1 for `Z`, and 842 + minutes for an offset, within 14 hours. So ids
//! of integers sort by value, and those of dates and times of one zone by time.

use oxrdf::NamedNodeRef;
use oxrdf::vocab::xsd;

use crate::id::{TermId, TermKind};

/// What the IRIs of the datatypes begin with.
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

/// Integers lie in `-INTEGER_BIAS..INTEGER_BIAS`.
const INTEGER_BIAS: i64 = 1 << 59;

/// Mantissas of decimals lie in `-MANTISSA_BIAS..MANTISSA_BIAS`.
const MANTISSA_BIAS: i64 = 1 << 55;
const SCALE_BITS: u32 = 4;
const SCALE_MASK: u64 = (1 << SCALE_BITS) - 1;
/// Up to these a mantissa and a power of ten are exact as `f64`, so that their quotient is the
/// nearest `f64` to the decimal: what parsing gives.
const EXACT_F64: u64 = 1 << 53;
/// The same for `f32`.
const EXACT_F32: u64 = 1 << 24;
const EXACT_F32_SCALE: u8 = 10;
const POWERS: [i64; 16] = {
    let mut powers = [1; 16];
    let mut scale = 1;
    while scale < powers.len() {
        powers[scale] = powers[scale - 1] * 10;
        scale += 1;
    }
    powers
};

const ZONE_BITS: u32 = 11;
const ZONE_MASK: u64 = (1 << ZONE_BITS) - 1;
const ZONE_NONE: u64 = 0;
const ZONE_UTC: u64 = 1;
/// The code of `+00:00`.
const ZONE_ZERO: i64 = 842;
const ZONE_MAX_MINUTES: i64 = 14 * 60;
const MS_PER_MINUTE: i64 = 60_000;
const MS_PER_DAY: i64 = 86_400_000;
/// Days of the years 0000 to 9999.
const DAYS: i64 = 3_652_425;
/// Days from 0000-01-01 to 1970-01-01.
const EPOCH_DAY: i64 = 719_528;

/// The longest lexical form: `YYYY-MM-DDThh:mm:ss.sss+hh:mm`.
const LONGEST: usize = 29;

/// The id of the literal with this lexical form and datatype, if it can be held inline.
///
/// `None` for every other datatype, and for a lexical form that decoding would not give back
/// exactly.
#[must_use]
pub fn encode(lexical: &str, datatype: &str) -> Option<TermId> {
    let text = lexical.as_bytes();
    match datatype.strip_prefix(XSD)? {
        "integer" => encode_integer(text),
        "decimal" => encode_decimal(text),
        "double" => encode_double(text),
        "float" => encode_float(lexical),
        "boolean" => match lexical {
            "true" => Some(from_boolean(true)),
            "false" => Some(from_boolean(false)),
            _ => None,
        },
        "dateTime" => encode_date_time(text),
        "date" => encode_date(text),
        _ => None,
    }
}

/// Appends the lexical form of an inline literal.
///
/// False, with nothing appended, if the id is of no inline kind or, in corrupt data, holds what
/// [`encode`] never makes.
#[must_use]
pub fn decode_lexical(id: TermId, out: &mut String) -> bool {
    match Lexical::of(id) {
        Some(lexical) => {
            // All that is written there is ASCII.
            let text = std::str::from_utf8(lexical.bytes());
            text.map(|text| out.push_str(text)).is_ok()
        }
        None => false,
    }
}

/// As [`decode_lexical`], appending bytes.
#[must_use]
pub fn decode_lexical_bytes(id: TermId, out: &mut Vec<u8>) -> bool {
    match Lexical::of(id) {
        Some(lexical) => {
            out.extend_from_slice(lexical.bytes());
            true
        }
        None => false,
    }
}

/// True of an inline literal as [`encode`] makes it, and of no other id: what came from outside is
/// checked by this. Costs two conversions, but nothing for integers.
#[must_use]
pub fn is_valid(id: TermId) -> bool {
    match id.kind() {
        TermKind::Integer => true,
        _ => {
            let mut lexical = String::new();
            let datatype = datatype(id).filter(|_| decode_lexical(id, &mut lexical));
            datatype.is_some_and(|datatype| encode(&lexical, datatype.as_str()) == Some(id))
        }
    }
}

/// The datatype of an inline literal; `None` if the id is of no inline kind.
#[must_use]
pub const fn datatype(id: TermId) -> Option<NamedNodeRef<'static>> {
    Some(match id.kind() {
        TermKind::Integer => xsd::INTEGER,
        TermKind::Decimal => xsd::DECIMAL,
        TermKind::Double => xsd::DOUBLE,
        TermKind::Float => xsd::FLOAT,
        TermKind::Boolean => xsd::BOOLEAN,
        TermKind::DateTime => xsd::DATE_TIME,
        TermKind::Date => xsd::DATE,
        TermKind::None
        | TermKind::Vertex
        | TermKind::Literal
        | TermKind::Triple
        | TermKind::Window
        | TermKind::Computed => return None,
    })
}

/// Inline ids of one kind that have the same such number are in the order of their values, and no
/// two of them have one value. `None` where ids tell nothing of the order.
#[inline]
#[must_use]
pub const fn order_group(id: TermId) -> Option<u32> {
    match id.kind() {
        TermKind::Integer | TermKind::Boolean => Some(0),
        // The number of fraction digits.
        TermKind::Decimal => Some((id.payload() & SCALE_MASK) as u32),
        TermKind::DateTime | TermKind::Date => Some((id.payload() & ZONE_MASK) as u32),
        // Different digits may make the same nearest number.
        TermKind::Double | TermKind::Float => None,
        TermKind::None
        | TermKind::Vertex
        | TermKind::Literal
        | TermKind::Triple
        | TermKind::Window
        | TermKind::Computed => None,
    }
}

/// The id of the canonical `xsd:integer` of this value; `None` outside `-2^59..2^59`.
#[inline]
#[must_use]
pub const fn from_integer(value: i64) -> Option<TermId> {
    if value < -INTEGER_BIAS || value >= INTEGER_BIAS {
        return None;
    }
    let payload = (value + INTEGER_BIAS).cast_unsigned();
    Some(TermId::new(TermKind::Integer, payload))
}

/// The id of `true` or `false`.
#[inline]
#[must_use]
pub const fn from_boolean(value: bool) -> TermId {
    TermId::new(TermKind::Boolean, value as u64)
}

/// The value of an inline `xsd:integer`.
#[inline]
#[must_use]
pub const fn as_integer(id: TermId) -> Option<i64> {
    match id.kind() {
        TermKind::Integer => Some(id.payload().cast_signed() - INTEGER_BIAS),
        _ => None,
    }
}

/// The value of an inline `xsd:boolean`.
#[inline]
#[must_use]
pub const fn as_boolean(id: TermId) -> Option<bool> {
    match (id.kind(), id.payload()) {
        (TermKind::Boolean, 0) => Some(false),
        (TermKind::Boolean, 1) => Some(true),
        _ => None,
    }
}

/// The value of an inline `xsd:decimal`: mantissa and scale, meaning mantissa / 10^scale; the
/// scale is at most 15.
#[inline]
#[must_use]
pub const fn as_decimal(id: TermId) -> Option<(i64, u8)> {
    match id.kind() {
        TermKind::Decimal => Some(unpack_decimal(id.payload())),
        _ => None,
    }
}

/// The value of an inline `xsd:double`: the nearest to its lexical form.
#[inline]
#[must_use]
pub const fn as_f64(id: TermId) -> Option<f64> {
    match id.kind() {
        TermKind::Double => Some(quotient(unpack_decimal(id.payload()))),
        _ => None,
    }
}

/// The value of an inline `xsd:float`: the nearest to its lexical form.
#[inline]
#[must_use]
pub const fn as_f32(id: TermId) -> Option<f32> {
    match id.kind() {
        TermKind::Float => Some(float_value(unpack_decimal(id.payload()))),
        _ => None,
    }
}

/// The value of an inline `xsd:dateTime`: milliseconds since 1970-01-01T00:00:00Z, and the time
/// zone's minutes east of UTC; without a time zone, the milliseconds are those of UTC.
#[inline]
#[must_use]
pub const fn as_date_time(id: TermId) -> Option<(i64, Option<i16>)> {
    match id.kind() {
        TermKind::DateTime => {
            let local_ms = (id.payload() >> ZONE_BITS).cast_signed();
            if local_ms >= DAYS * MS_PER_DAY {
                return None;
            }
            to_utc(local_ms, id.payload() & ZONE_MASK)
        }
        _ => None,
    }
}

/// The value of an inline `xsd:date`: when the day begins, as [`as_date_time`] tells it.
#[inline]
#[must_use]
pub const fn as_date(id: TermId) -> Option<(i64, Option<i16>)> {
    match id.kind() {
        TermKind::Date => {
            let day = (id.payload() >> ZONE_BITS).cast_signed();
            if day >= DAYS {
                return None;
            }
            to_utc(day * MS_PER_DAY, id.payload() & ZONE_MASK)
        }
        _ => None,
    }
}

/// Year, month and day of an inline `xsd:dateTime` or `xsd:date`, as its lexical form has them.
#[inline]
#[must_use]
pub const fn year_month_day(id: TermId) -> Option<(i64, i64, i64)> {
    let local = (id.payload() >> ZONE_BITS).cast_signed();
    let day = match id.kind() {
        TermKind::DateTime => local / MS_PER_DAY,
        TermKind::Date => local,
        _ => return None,
    };
    if day < DAYS {
        Some(calendar(day))
    } else {
        None
    }
}

/// Milliseconds from midnight to the time of an inline `xsd:dateTime`, as its lexical form has it.
#[inline]
#[must_use]
pub const fn ms_of_day(id: TermId) -> Option<i64> {
    let local_ms = (id.payload() >> ZONE_BITS).cast_signed();
    match id.kind() {
        TermKind::DateTime if local_ms < DAYS * MS_PER_DAY => Some(local_ms % MS_PER_DAY),
        _ => None,
    }
}

/// The ids of `kind`, [`TermKind::DateTime`] or [`TermKind::Date`], with a year from `first` on
/// and before `end` lie from the first of these raw ids on and before the second; `None` of
/// another kind.
#[must_use]
pub fn ids_of_years(kind: TermKind, first: i64, end: i64) -> Option<(u64, u64)> {
    let unit = match kind {
        TermKind::DateTime => MS_PER_DAY,
        TermKind::Date => 1,
        _ => return None,
    };
    let begin = |year: i64| {
        let local = day_number(year.clamp(0, 10_000), 1, 1) * unit;
        TermId::new(kind, local.cast_unsigned() << ZONE_BITS).raw()
    };
    Some((begin(first), begin(end)))
}

/// What tells the time zone in an inline `xsd:dateTime` or `xsd:date`: raw ids of one kind that
/// agree in these bits are in the order of their times.
#[must_use]
pub const fn zone_bits(kind: TermKind) -> Option<u64> {
    match kind {
        TermKind::DateTime | TermKind::Date => Some(ZONE_MASK),
        _ => None,
    }
}

/// The id of the canonical `xsd:decimal` that is `mantissa / 10^scale`; `None` where it does not
/// fit, or is not canonical: where it ends with a zero after the point.
#[must_use]
pub const fn from_decimal(mantissa: i64, scale: u8) -> Option<TermId> {
    if scale as usize >= POWERS.len() || (scale > 0 && mantissa % 10 == 0) {
        return None;
    }
    pack_decimal(
        TermKind::Decimal,
        mantissa < 0,
        mantissa.unsigned_abs(),
        scale,
    )
}

// --- numbers ---

fn encode_integer(text: &[u8]) -> Option<TermId> {
    let (negative, digits) = split_sign(text);
    let value = parse_digits(digits)?;
    if !plain_whole(digits) || (negative && value == 0) {
        return None;
    }
    from_integer(signed(negative, value)?)
}

fn encode_decimal(text: &[u8]) -> Option<TermId> {
    let (negative, magnitude, scale) = parse_decimal(text)?;
    pack_decimal(TermKind::Decimal, negative, magnitude, scale)
}

fn encode_double(text: &[u8]) -> Option<TermId> {
    let (negative, magnitude, scale) = parse_decimal(text)?;
    if magnitude > EXACT_F64 {
        return None;
    }
    pack_decimal(TermKind::Double, negative, magnitude, scale)
}

fn encode_float(lexical: &str) -> Option<TermId> {
    let (negative, magnitude, scale) = parse_decimal(lexical.as_bytes())?;
    if magnitude > EXACT_F64 {
        return None;
    }
    if magnitude > EXACT_F32 || scale > EXACT_F32_SCALE {
        // The value is computed as `f64` and rounded twice, which may differ from parsing.
        let parsed: f32 = lexical.parse().ok()?;
        let computed = float_value((signed(negative, magnitude)?, scale));
        if parsed.to_bits() != computed.to_bits() {
            return None;
        }
    }
    pack_decimal(TermKind::Float, negative, magnitude, scale)
}

const fn pack_decimal(kind: TermKind, negative: bool, magnitude: u64, scale: u8) -> Option<TermId> {
    // The mantissa -2^55 would fit, but leaving it out keeps the range symmetric.
    if magnitude >= MANTISSA_BIAS.cast_unsigned() || (negative && magnitude == 0) {
        return None;
    }
    let mantissa = magnitude.cast_signed();
    let mantissa = if negative { -mantissa } else { mantissa };
    let biased = (mantissa + MANTISSA_BIAS).cast_unsigned();
    Some(TermId::new(kind, (biased << SCALE_BITS) | scale as u64))
}

const fn unpack_decimal(payload: u64) -> (i64, u8) {
    let mantissa = (payload >> SCALE_BITS).cast_signed() - MANTISSA_BIAS;
    (mantissa, (payload & SCALE_MASK) as u8)
}

const fn quotient((mantissa, scale): (i64, u8)) -> f64 {
    mantissa as f64 / POWERS[scale as usize] as f64
}

const fn float_value((mantissa, scale): (i64, u8)) -> f32 {
    if mantissa.unsigned_abs() <= EXACT_F32 && scale <= EXACT_F32_SCALE {
        return mantissa as f32 / POWERS[scale as usize] as f32;
    }
    quotient((mantissa, scale)) as f32
}

/// Sign, digits without the point, and digits after the point of `[-]digits[.digits]`.
fn parse_decimal(text: &[u8]) -> Option<(bool, u64, u8)> {
    let (negative, digits) = split_sign(text);
    let point = digits.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = match point {
        Some(point) => (&digits[..point], &digits[point + 1..]),
        None => (digits, &[][..]),
    };
    if !plain_whole(whole) || (point.is_some() && fraction.is_empty()) {
        return None;
    }
    let scale = u8::try_from(fraction.len()).ok()?;
    let power = POWERS.get(usize::from(scale))?.cast_unsigned();
    let fraction = if scale == 0 {
        0
    } else {
        parse_digits(fraction)?
    };
    let magnitude = parse_digits(whole)?
        .checked_mul(power)?
        .checked_add(fraction)?;
    Some((negative, magnitude, scale))
}

fn split_sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    }
}

/// True of `0` and of what does not begin with it.
fn plain_whole(digits: &[u8]) -> bool {
    matches!(digits, [b'0'] | [b'1'..=b'9', ..])
}

/// The value of one to eighteen digits: more than a payload has room for.
fn parse_digits(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + u64::from(digit);
    }
    Some(value)
}

fn signed(negative: bool, magnitude: u64) -> Option<i64> {
    let value = i64::try_from(magnitude).ok()?;
    Some(if negative { -value } else { value })
}

// --- dates and times ---

fn encode_date_time(text: &[u8]) -> Option<TermId> {
    let (date, rest) = text.split_at_checked(10)?;
    let (time, rest) = rest.split_at_checked(9)?;
    let day = parse_date(date)?;
    let [b'T', h1, h2, b':', m1, m2, b':', s1, s2] = time else {
        return None;
    };
    let hour = number(&[*h1, *h2]).filter(|hour| *hour < 24)?;
    let minute = number(&[*m1, *m2]).filter(|minute| *minute < 60)?;
    let second = number(&[*s1, *s2]).filter(|second| *second < 60)?;
    let (ms, zone) = match rest {
        [b'.', a, b, c, zone @ ..] => (number(&[*a, *b, *c]).filter(|ms| *ms > 0)?, zone),
        zone => (0, zone),
    };
    let local_ms = day * MS_PER_DAY + ((hour * 60 + minute) * 60 + second) * 1000 + ms;
    let payload = (local_ms.cast_unsigned() << ZONE_BITS) | parse_zone(zone)?;
    Some(TermId::new(TermKind::DateTime, payload))
}

fn encode_date(text: &[u8]) -> Option<TermId> {
    let (date, zone) = text.split_at_checked(10)?;
    let payload = (parse_date(date)?.cast_unsigned() << ZONE_BITS) | parse_zone(zone)?;
    Some(TermId::new(TermKind::Date, payload))
}

/// Days from 0000-01-01 to `YYYY-MM-DD`.
fn parse_date(text: &[u8]) -> Option<i64> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else {
        return None;
    };
    let year = number(&[*y1, *y2, *y3, *y4])?;
    let month = number(&[*m1, *m2]).filter(|month| (1..=12).contains(month))?;
    let day = number(&[*d1, *d2]).filter(|day| (1..=days_of(year, month)).contains(day))?;
    Some(day_number(year, month, day))
}

fn parse_zone(text: &[u8]) -> Option<u64> {
    let (sign, h1, h2, m1, m2) = match text {
        [] => return Some(ZONE_NONE),
        [b'Z'] => return Some(ZONE_UTC),
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => (*sign, *h1, *h2, *m1, *m2),
        _ => return None,
    };
    let minutes = number(&[m1, m2]).filter(|minutes| *minutes < 60)? + number(&[h1, h2])? * 60;
    // `-00:00` would come back as `+00:00`.
    if minutes > ZONE_MAX_MINUTES || (sign == b'-' && minutes == 0) {
        return None;
    }
    let minutes = if sign == b'-' { -minutes } else { minutes };
    Some((ZONE_ZERO + minutes).cast_unsigned())
}

fn number(digits: &[u8]) -> Option<i64> {
    parse_digits(digits).map(u64::cast_signed)
}

/// The minutes of a zone's code; the outer `None` for a code that stands for no zone.
const fn zone_minutes(code: u64) -> Option<Option<i16>> {
    let minutes = code.cast_signed() - ZONE_ZERO;
    match code {
        ZONE_NONE => Some(None),
        ZONE_UTC => Some(Some(0)),
        _ if minutes.abs() <= ZONE_MAX_MINUTES => Some(Some(minutes as i16)),
        _ => None,
    }
}

const fn to_utc(local_ms: i64, zone: u64) -> Option<(i64, Option<i16>)> {
    let Some(minutes) = zone_minutes(zone) else {
        return None;
    };
    let offset = match minutes {
        Some(minutes) => minutes as i64 * MS_PER_MINUTE,
        None => 0,
    };
    Some((local_ms - EPOCH_DAY * MS_PER_DAY - offset, minutes))
}

const fn days_of(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 0000-01-01 in the proleptic Gregorian calendar.
///
/// Years are counted from March, so that the leap day is a year's last; the 153 days of five
/// months from March recur.
const fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    // One cycle of 400 years is added so that the year before 0000-03-01 is not negative.
    let year = year + 400;
    let march_first = 365 * year + year / 4 - year / 100 + year / 400;
    march_first + (153 * month + 2) / 5 + day - 1 - 146_097 + 60
}

/// Year, month and day of a [`day_number`].
///
/// With two multiplications for two divisions each, after Neri and Schneider, "Euclidean affine
/// functions and their application to calendar algorithms" (2022).
const fn calendar(day: i64) -> (i64, i64, i64) {
    // Days from 0000-03-01 of 400 years before, in quarters; years begin in March.
    let quarters = 4 * (day as u32 + 146_097 - 60) + 3;
    let century = quarters / 146_097;
    let of_century = (quarters % 146_097) | 3;
    // The year in the upper half, the part of the year that has passed in the lower.
    let scaled = 2_939_745 * of_century as u64;
    let of_year = scaled as u32 / 2_939_745 / 4;
    // The month in the upper half, the part of it that has passed in the lower.
    let scaled_month = 2_141 * of_year + 197_913;
    let month = (scaled_month >> 16) as i64;
    let day = (scaled_month as u16 / 2_141) as i64 + 1;
    let year = (100 * century) as i64 + (scaled >> 32) as i64 - 400;
    if of_year < 306 {
        (year, month, day)
    } else {
        (year + 1, month - 12, day)
    }
}

// --- writing ---

/// A lexical form on the stack.
struct Lexical {
    buffer: [u8; LONGEST],
    length: usize,
}

impl Lexical {
    fn of(id: TermId) -> Option<Self> {
        let mut text = Self {
            buffer: [0; LONGEST],
            length: 0,
        };
        let payload = id.payload();
        match id.kind() {
            TermKind::Integer => text.push_decimal((as_integer(id)?, 0)),
            TermKind::Decimal | TermKind::Double | TermKind::Float => {
                text.push_decimal(unpack_decimal(payload));
            }
            TermKind::Boolean => text.push(if as_boolean(id)? { b"true" } else { b"false" }),
            TermKind::DateTime => {
                as_date_time(id)?;
                text.push_date_time((payload >> ZONE_BITS).cast_signed());
                text.push_zone(payload & ZONE_MASK)?;
            }
            TermKind::Date => {
                as_date(id)?;
                text.push_date((payload >> ZONE_BITS).cast_signed());
                text.push_zone(payload & ZONE_MASK)?;
            }
            TermKind::None
            | TermKind::Vertex
            | TermKind::Literal
            | TermKind::Triple
            | TermKind::Window
            | TermKind::Computed => return None,
        }
        Some(text)
    }

    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.buffer[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    fn push_decimal(&mut self, (mantissa, scale): (i64, u8)) {
        let scale = usize::from(scale);
        if mantissa < 0 {
            self.push(b"-");
        }
        // Written from the right: at most 18 digits and a point.
        let mut digits = [0; 20];
        let mut start = digits.len();
        let mut rest = mantissa.unsigned_abs();
        let mut written = 0;
        while rest > 0 || written <= scale {
            if written == scale && scale > 0 {
                start -= 1;
                digits[start] = b'.';
            }
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            written += 1;
        }
        self.push(&digits[start..]);
    }

    fn push_date(&mut self, day: i64) {
        let (year, month, day) = calendar(day);
        self.push_pair(year / 100);
        self.push_pair(year % 100);
        self.push(b"-");
        self.push_pair(month);
        self.push(b"-");
        self.push_pair(day);
    }

    fn push_date_time(&mut self, local_ms: i64) {
        self.push_date(local_ms / MS_PER_DAY);
        let of_day = local_ms % MS_PER_DAY;
        self.push(b"T");
        self.push_pair(of_day / 3_600_000);
        self.push(b":");
        self.push_pair(of_day / MS_PER_MINUTE % 60);
        self.push(b":");
        self.push_pair(of_day / 1000 % 60);
        let ms = of_day % 1000;
        if ms > 0 {
            self.push(&[b'.', b'0' + (ms / 100) as u8]);
            self.push_pair(ms % 100);
        }
    }

    fn push_zone(&mut self, code: u64) -> Option<()> {
        match zone_minutes(code)? {
            None => {}
            Some(_) if code == ZONE_UTC => self.push(b"Z"),
            Some(minutes) => {
                let minutes = i64::from(minutes);
                self.push(if minutes < 0 { b"-" } else { b"+" });
                self.push_pair(minutes.abs() / 60);
                self.push(b":");
                self.push_pair(minutes.abs() % 60);
            }
        }
        Some(())
    }

    /// Two digits of a number below 100.
    fn push_pair(&mut self, value: i64) {
        self.push(&[b'0' + (value / 10) as u8, b'0' + (value % 10) as u8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_has_the_date_after_the_day_before() {
        let (mut year, mut month, mut day) = (0, 1, 1);
        for number in 0..DAYS {
            assert_eq!(calendar(number), (year, month, day));
            assert_eq!(day_number(year, month, day), number);
            day += 1;
            if day > days_of(year, month) {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!((year, month, day), (10_000, 1, 1));
    }
}
