//! Windows of a year with steps of milliseconds, of more tuples than there will be, and streams whose windows
//! may take a byte.

use std::time::Instant;

use super::{Ground, line};
use crate::BenchError;
use crate::hostile::streams::client::{Client, Told};

const YEAR_MS: i64 = 365 * 24 * 60 * 60 * 1000;
/// Bytes that the windows of the stream may take: it is to be full.
const STREAM_BYTES: u64 = 4 << 20;
/// Bytes that are pushed at least: a tuple takes a dozen of them in a window.
const PUSHED_BYTES: u64 = 16 * STREAM_BYTES;
/// Tuples of a push.
const TUPLES: u64 = 1_000;

/// Windows, and whether they may be registered.
const WINDOWS: [(&str, &[u16]); 8] = [
    ("[RANGE 365d STEP 10ms]", &[201]),
    ("[RANGE 365d STEP 1ms]", &[201]),
    ("[RANGE 1ms STEP 365d]", &[201]),
    ("[RANGE 9223372036854775807ms STEP 1ms]", &[201]),
    (
        "[RANGE 9223372036854775807ms STEP 9223372036854775807ms]",
        &[201],
    ),
    ("[RANGE 9223372036854775808ms]", &[400]),
    ("[TRIPLES 9223372036854775807 STEP 1]", &[400]),
    ("[TRIPLES 1 STEP 9223372036854775807]", &[400]),
];

pub(super) fn run(ground: &Ground) -> Result<Told, BenchError> {
    let mut client = Client::new(ground.address);
    let mut told = Told::default();
    let year = client.put_stream("year", &format!(",\"memory\":{STREAM_BYTES}"))?;
    told.expect("a stream", &[201], &year);
    let byte = client.put_stream("byte", ",\"memory\":1")?;
    told.expect("a ring of a byte", &[201], &byte);
    let text = "ASK FROM STREAM <http://e/byte> [RANGE 1s] WHERE { ?x ?p ?y }";
    told.expect("registering", &[201], &client.register("byte", text)?);
    for (number, (window, right)) in WINDOWS.iter().enumerate() {
        let text = format!(
            "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/year> {window} WHERE {{ ?x <http://e/p> ?y }}"
        );
        let answer = client.register(&format!("year{number}"), &text)?;
        told.expect(&format!("registering {window}"), right, &answer);
    }
    // A leap of a year: each window of one holds something at billions of instants.
    told.expect("a leap", &[200], &client.push("year", &line(0, 0))?);
    told.expect(
        "a leap",
        &[200],
        &client.push("year", &line(YEAR_MS - 1_000, 1))?,
    );
    fill(ground, &mut client, &mut told)?;
    for number in 0..WINDOWS.len() {
        client.delete(&format!("/continuous/year{number}"))?;
    }
    let free = client.push("year", &line(2 * YEAR_MS, 7))?;
    told.expect("a push after its queries are dropped", &[200], &free);
    client.delete("/continuous/byte")?;
    for name in ["year", "byte"] {
        told.expect(
            "dropping",
            &[204],
            &client.delete(&format!("/streams/{name}"))?,
        );
    }
    Ok(told)
}

/// Pushes until the windows are full, and goes on.
fn fill(ground: &Ground, client: &mut Client, told: &mut Told) -> Result<(), BenchError> {
    let begun = Instant::now();
    let (mut next, mut pushed_bytes) = (0, 0);
    while begun.elapsed() < ground.length || pushed_bytes < PUSHED_BYTES {
        let lines: String = (next..next + TUPLES)
            .map(|tuple| line(YEAR_MS + tuple as i64, tuple))
            .collect();
        next += TUPLES;
        pushed_bytes += lines.len() as u64;
        told.expect("a push", &[200, 503], &client.push("year", &lines)?);
        told.expect(
            "a push to a ring of a byte",
            &[200, 503],
            &client.push("byte", &lines)?,
        );
    }
    Ok(())
}
