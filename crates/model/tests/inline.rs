//! Do inline literals give back what was put in, and mean what `oxsdatatypes` says they mean?

use std::str::FromStr;

use jindou_model::{TermId, TermKind, inline};
use oxrdf::vocab::xsd;
use oxrdf::{NamedNodeRef, vocab::rdf};
use oxsdatatypes::{Date, DateTime, DayTimeDuration, Decimal, Double, Float};
use proptest::prelude::*;

fn decoded(id: TermId) -> String {
    let mut text = String::from("before ");
    assert!(inline::decode_lexical(id, &mut text));
    let mut bytes = b"before ".to_vec();
    assert!(inline::decode_lexical_bytes(id, &mut bytes));
    assert_eq!(text.as_bytes(), bytes);
    text.split_off(7)
}

/// Encodes, checks that an id gives back the literal, and that its value is the oracle's.
fn check(lexical: &str, datatype: NamedNodeRef<'_>) -> Option<TermId> {
    let id = inline::encode(lexical, datatype.as_str())?;
    assert!(id.is_inline() && inline::is_valid(id));
    assert_eq!(decoded(id), lexical);
    assert_eq!(inline::datatype(id), Some(datatype));
    check_value(lexical, id);
    Some(id)
}

fn check_value(lexical: &str, id: TermId) {
    match id.kind() {
        TermKind::Integer => {
            let value: i64 = lexical.parse().unwrap();
            assert_eq!(inline::as_integer(id), Some(value));
            assert_eq!(inline::from_integer(value), Some(id));
        }
        TermKind::Decimal => {
            let (mantissa, scale) = inline::as_decimal(id).unwrap();
            let value = i128::from(mantissa) * 10_i128.pow(18 - u32::from(scale));
            assert_eq!(
                value.to_be_bytes(),
                Decimal::from_str(lexical).unwrap().to_be_bytes()
            );
            let canonical = Decimal::from_str(lexical).unwrap().to_string() == lexical;
            let made = inline::from_decimal(mantissa, scale);
            assert_eq!(made, canonical.then_some(id), "{lexical}");
        }
        TermKind::Double => {
            let value = f64::from(Double::from_str(lexical).unwrap());
            assert_eq!(inline::as_f64(id).unwrap().to_bits(), value.to_bits());
        }
        TermKind::Float => {
            let value = f32::from(Float::from_str(lexical).unwrap());
            assert_eq!(inline::as_f32(id).unwrap().to_bits(), value.to_bits());
        }
        TermKind::Boolean => {
            let value = inline::as_boolean(id).unwrap();
            assert_eq!(value, lexical == "true");
            assert_eq!(inline::from_boolean(value), id);
        }
        TermKind::DateTime => {
            let value = DateTime::from_str(lexical).unwrap();
            check_instant(inline::as_date_time(id).unwrap(), value);
            check_parts(id, value);
        }
        TermKind::Date => {
            let value = DateTime::try_from(Date::from_str(lexical).unwrap()).unwrap();
            check_instant(inline::as_date(id).unwrap(), value);
            check_parts(id, value);
        }
        other => panic!("{lexical} became a {other:?}"),
    }
}

/// Year, month, day and time, and the ids of the year.
fn check_parts(id: TermId, value: DateTime) {
    let parts = (value.year(), value.month().into(), value.day().into());
    assert_eq!(inline::year_month_day(id), Some(parts));
    if id.kind() == TermKind::DateTime {
        let minutes = i64::from(value.hour()) * 60 + i64::from(value.minute());
        let ms = inline::ms_of_day(id).unwrap();
        assert_eq!(ms / 60_000, minutes);
        let second = Decimal::new(i128::from(ms % 60_000), 3).unwrap();
        assert_eq!(second, value.second());
    } else {
        assert_eq!(inline::ms_of_day(id), None);
    }
    for year in [
        -1,
        0,
        value.year() - 1,
        value.year(),
        value.year() + 1,
        10_000,
    ] {
        let (first, end) = inline::ids_of_years(id.kind(), year, year + 1).unwrap();
        let is_inside = first <= id.raw() && id.raw() < end;
        assert_eq!(is_inside, value.year() == year, "{id:?} in {year}");
    }
}

fn check_instant((ms, zone): (i64, Option<i16>), value: DateTime) {
    let minutes = value
        .timezone_offset()
        .map(|offset| i16::from_be_bytes(offset.to_be_bytes()));
    assert_eq!(zone, minutes);
    let epoch = if zone.is_some() {
        "1970-01-01T00:00:00Z"
    } else {
        "1970-01-01T00:00:00"
    };
    let since = value
        .checked_sub(DateTime::from_str(epoch).unwrap())
        .unwrap();
    let duration = DayTimeDuration::from_str(&format!(
        "{}PT{}.{:03}S",
        if ms < 0 { "-" } else { "" },
        ms.abs() / 1000,
        ms.abs() % 1000
    ));
    assert_eq!(since, duration.unwrap());
}

const INSIDE: [(&str, NamedNodeRef<'static>); 45] = [
    ("0", xsd::INTEGER),
    ("7", xsd::INTEGER),
    ("-7", xsd::INTEGER),
    ("576460752303423487", xsd::INTEGER),
    ("-576460752303423488", xsd::INTEGER),
    ("0", xsd::DECIMAL),
    ("5", xsd::DECIMAL),
    ("-5", xsd::DECIMAL),
    ("0.0", xsd::DECIMAL),
    ("0.00", xsd::DECIMAL),
    ("1.50", xsd::DECIMAL),
    ("-0.5", xsd::DECIMAL),
    ("-0.01", xsd::DECIMAL),
    ("36028797018963967", xsd::DECIMAL),
    ("-36028797018963967", xsd::DECIMAL),
    ("0.000000000000001", xsd::DECIMAL),
    ("36.028797018963967", xsd::DECIMAL),
    ("3.14", xsd::DOUBLE),
    ("-2.0", xsd::DOUBLE),
    ("21", xsd::DOUBLE),
    ("0", xsd::DOUBLE),
    ("0.1", xsd::DOUBLE),
    ("9007199254740992", xsd::DOUBLE),
    ("3.14", xsd::FLOAT),
    ("-2.0", xsd::FLOAT),
    ("21", xsd::FLOAT),
    ("0.1", xsd::FLOAT),
    ("16777217", xsd::FLOAT),
    ("3.141592653589793", xsd::FLOAT),
    ("true", xsd::BOOLEAN),
    ("false", xsd::BOOLEAN),
    ("1970-01-01T00:00:00Z", xsd::DATE_TIME),
    ("2024-02-29T23:59:59.999+14:00", xsd::DATE_TIME),
    ("2000-02-29T00:00:00.500-14:00", xsd::DATE_TIME),
    ("0001-01-01T00:00:00", xsd::DATE_TIME),
    ("0000-01-01T00:00:00", xsd::DATE_TIME),
    ("0000-02-29T12:00:00", xsd::DATE_TIME),
    ("9999-12-31T23:59:59.999Z", xsd::DATE_TIME),
    ("2012-07-04T10:20:30+00:00", xsd::DATE_TIME),
    ("2012-07-04T10:20:30-00:01", xsd::DATE_TIME),
    ("1970-01-01", xsd::DATE),
    ("1969-12-31Z", xsd::DATE),
    ("2004-02-29+05:30", xsd::DATE),
    ("0000-03-01", xsd::DATE),
    ("9999-12-31-14:00", xsd::DATE),
];

const OUTSIDE: [(&str, NamedNodeRef<'static>); 88] = [
    ("", xsd::INTEGER),
    ("-", xsd::INTEGER),
    ("01", xsd::INTEGER),
    ("+1", xsd::INTEGER),
    ("-0", xsd::INTEGER),
    ("00", xsd::INTEGER),
    ("--1", xsd::INTEGER),
    (" 1", xsd::INTEGER),
    ("1 ", xsd::INTEGER),
    ("1.0", xsd::INTEGER),
    ("1e0", xsd::INTEGER),
    ("x", xsd::INTEGER),
    ("٣", xsd::INTEGER),
    ("576460752303423488", xsd::INTEGER),
    ("-576460752303423489", xsd::INTEGER),
    ("9223372036854775807", xsd::INTEGER),
    ("99999999999999999999999", xsd::INTEGER),
    ("1", xsd::INT),
    ("1", xsd::STRING),
    ("1", rdf::LANG_STRING),
    ("", xsd::DECIMAL),
    ("-", xsd::DECIMAL),
    (".", xsd::DECIMAL),
    ("-.5", xsd::DECIMAL),
    ("+1.5", xsd::DECIMAL),
    ("01.5", xsd::DECIMAL),
    (".5", xsd::DECIMAL),
    ("5.", xsd::DECIMAL),
    ("-0.0", xsd::DECIMAL),
    ("-0", xsd::DECIMAL),
    ("1.2.3", xsd::DECIMAL),
    ("1.-2", xsd::DECIMAL),
    ("1e2", xsd::DECIMAL),
    ("36028797018963968", xsd::DECIMAL),
    ("-36028797018963968", xsd::DECIMAL),
    ("0.0000000000000001", xsd::DECIMAL),
    ("1000000000000.000000000000001", xsd::DECIMAL),
    ("1e0", xsd::DOUBLE),
    ("3.14E0", xsd::DOUBLE),
    ("INF", xsd::DOUBLE),
    ("-INF", xsd::DOUBLE),
    ("NaN", xsd::DOUBLE),
    ("-0.0", xsd::DOUBLE),
    ("-0", xsd::DOUBLE),
    ("+1", xsd::DOUBLE),
    ("9007199254740993", xsd::DOUBLE),
    ("INF", xsd::FLOAT),
    ("-0", xsd::FLOAT),
    ("1e0", xsd::FLOAT),
    ("1", xsd::BOOLEAN),
    ("0", xsd::BOOLEAN),
    ("True", xsd::BOOLEAN),
    ("true ", xsd::BOOLEAN),
    ("", xsd::DATE_TIME),
    ("2024-02-29", xsd::DATE_TIME),
    ("2024-02-29T", xsd::DATE_TIME),
    ("2023-02-29T00:00:00", xsd::DATE_TIME),
    ("1900-02-29T00:00:00", xsd::DATE_TIME),
    ("2024-04-31T00:00:00", xsd::DATE_TIME),
    ("2024-00-01T00:00:00", xsd::DATE_TIME),
    ("2024-13-01T00:00:00", xsd::DATE_TIME),
    ("2024-01-00T00:00:00", xsd::DATE_TIME),
    ("2024-01-01T24:00:00", xsd::DATE_TIME),
    ("2024-01-01T23:60:00", xsd::DATE_TIME),
    ("2024-01-01T23:59:60", xsd::DATE_TIME),
    ("2024-01-01T00:00:00.000", xsd::DATE_TIME),
    ("2024-01-01T00:00:00.5", xsd::DATE_TIME),
    ("2024-01-01T00:00:00.50", xsd::DATE_TIME),
    ("2024-01-01T00:00:00.1234", xsd::DATE_TIME),
    ("2024-01-01T00:00:00.", xsd::DATE_TIME),
    ("2024-01-01T00:00:00z", xsd::DATE_TIME),
    ("2024-01-01T00:00:00-00:00", xsd::DATE_TIME),
    ("2024-01-01T00:00:00+14:01", xsd::DATE_TIME),
    ("2024-01-01T00:00:00+15:00", xsd::DATE_TIME),
    ("2024-01-01T00:00:00+05:60", xsd::DATE_TIME),
    ("2024-01-01T00:00:00+0530", xsd::DATE_TIME),
    ("2024-01-01T00:00:00Z ", xsd::DATE_TIME),
    ("2024-01-01t00:00:00", xsd::DATE_TIME),
    ("-0001-01-01T00:00:00", xsd::DATE_TIME),
    ("10000-01-01T00:00:00", xsd::DATE_TIME),
    ("２０24-01-01T00:00:00", xsd::DATE_TIME),
    ("2024-01-01", xsd::TIME),
    ("2023-02-29", xsd::DATE),
    ("2024-1-01", xsd::DATE),
    ("2024-01-01T00:00:00", xsd::DATE),
    ("2024-01-01-00:00", xsd::DATE),
    ("2024/01/01", xsd::DATE),
    ("-0001-01-01", xsd::DATE),
];

#[test]
fn plain_spellings_are_held_inline() {
    for (lexical, datatype) in INSIDE {
        assert!(
            check(lexical, datatype).is_some(),
            "{lexical}^^{datatype} is not inline"
        );
    }
}

#[test]
fn other_spellings_are_left_to_the_dictionary() {
    for (lexical, datatype) in OUTSIDE {
        assert_eq!(
            inline::encode(lexical, datatype.as_str()),
            None,
            "{lexical}^^{datatype}"
        );
    }
    assert_eq!(inline::encode("1", ""), None);
    assert_eq!(inline::encode("1", "integer"), None);
}

#[test]
fn ids_of_other_kinds_hold_no_value() {
    let others = [
        TermId::NONE,
        TermId::new(TermKind::Vertex, 5),
        TermId::new(TermKind::Literal, 5),
    ];
    for id in others {
        let mut text = String::new();
        assert!(!inline::decode_lexical(id, &mut text));
        assert!(text.is_empty());
        assert_eq!(inline::datatype(id), None);
        assert_eq!(inline::as_integer(id), None);
        assert_eq!(inline::as_date_time(id), None);
    }
    assert_eq!(inline::from_integer(1 << 59), None);
    assert_eq!(inline::from_integer(i64::MIN), None);
}

#[test]
fn every_day_of_the_calendar_comes_back_in_order() {
    let mut last = None;
    for year in 0..10_000 {
        for (month, day) in [(1, 1), (2, 28), (2, 29), (3, 1), (7, 31), (12, 31)] {
            let lexical = format!("{year:04}-{month:02}-{day:02}");
            let Some(id) = check(&lexical, xsd::DATE) else {
                assert!(Date::from_str(&lexical).is_err());
                continue;
            };
            assert!(last < Some(id), "{lexical} is out of order");
            last = Some(id);
        }
    }
}

fn zone() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("Z".to_owned()),
        (prop::bool::ANY, 0..=14, 0..60).prop_map(|(east, hours, minutes)| format!(
            "{}{hours:02}:{minutes:02}",
            if east { '+' } else { '-' }
        )),
    ]
}

fn any_datatype() -> impl Strategy<Value = NamedNodeRef<'static>> {
    prop::sample::select(vec![
        xsd::INTEGER,
        xsd::DECIMAL,
        xsd::DOUBLE,
        xsd::FLOAT,
        xsd::BOOLEAN,
        xsd::DATE_TIME,
        xsd::DATE,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn integers_round_trip_and_sort_by_value(a in -(1_i64 << 59)..1 << 59, b in -1000_i64..1000) {
        let a_id = check(&a.to_string(), xsd::INTEGER).expect("inline");
        let b_id = check(&b.to_string(), xsd::INTEGER).expect("inline");
        prop_assert_eq!(a.cmp(&b), a_id.cmp(&b_id));
    }

    #[test]
    fn short_decimals_are_inline(lexical in "-?[1-9][0-9]{0,7}(\\.[0-9]{1,7})?") {
        for datatype in [xsd::DECIMAL, xsd::DOUBLE] {
            prop_assert!(check(&lexical, datatype).is_some());
        }
        check(&lexical, xsd::FLOAT);
    }

    #[test]
    fn long_decimals_round_trip_if_inline(lexical in "[+-]?[0-9]{0,12}\\.?[0-9]{0,18}") {
        for datatype in [xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE, xsd::FLOAT] {
            check(&lexical, datatype);
        }
    }

    #[test]
    fn times_round_trip_and_sort_within_a_zone(
        days in (0..10_000, 1..=12, 1..=28),
        other_year in 0..10_000,
        time in (0..24, 0..60, 0..60, 1..1000),
        fraction in prop::bool::ANY,
        zone in zone(),
    ) {
        let (year, month, day) = days;
        let (hour, minute, second, ms) = time;
        let fraction = if fraction { format!(".{ms:03}") } else { String::new() };
        let at = |year: i32| {
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}")
        };
        let id = check(&at(year), xsd::DATE_TIME);
        let valid = zone != "-00:00" && (zone.len() < 2 || &zone[1..] <= "14:00");
        prop_assert_eq!(id.is_some(), valid);
        let other_id = check(&at(other_year), xsd::DATE_TIME);
        if valid {
            prop_assert_eq!(other_id.cmp(&id), other_year.cmp(&year));
        }
        let date = check(&format!("{year:04}-{month:02}-{day:02}{zone}"), xsd::DATE);
        prop_assert_eq!(date.is_some(), valid);
    }

    #[test]
    fn any_text_round_trips_if_inline(lexical in "[0-9TZ:.+eE-]{0,30}|\\PC{0,12}", datatype in any_datatype()) {
        check(&lexical, datatype);
    }

    #[test]
    fn no_bits_of_an_id_make_decoding_panic(kind in 0_u64..16, payload: u64) {
        let id = TermId::from_raw((kind << 60) | (payload >> 4));
        let mut text = String::new();
        let is_decoded = inline::decode_lexical(id, &mut text);
        let again = inline::datatype(id)
            .filter(|_| is_decoded)
            .and_then(|datatype| inline::encode(&text, datatype.as_str()));
        prop_assert_eq!(inline::is_valid(id), again.is_some());
        if let Some(again) = again {
            prop_assert_eq!(again, id);
        }
        let _ = inline::as_integer(id);
        let _ = inline::as_boolean(id);
        let _ = inline::as_decimal(id);
        let _ = inline::as_f64(id);
        let _ = inline::as_f32(id);
        let _ = inline::as_date_time(id);
        let _ = inline::as_date(id);
    }
}
