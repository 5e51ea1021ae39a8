//! Producers that lie about time: far ahead, long ago, backwards, and what is no time.

use std::time::Instant;

use super::{Ground, line, made, now_ms};
use crate::BenchError;
use crate::hostile::streams::client::{Answer, Client, Told};

/// A year, in milliseconds.
const YEAR_MS: i64 = 365 * 24 * 60 * 60 * 1000;
const QUERY: &str = "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/STREAM> [RANGE 1s STEP 100ms] \
                     WHERE { ?s ?p ?o }";

pub(super) fn run(ground: &Ground) -> Result<Told, BenchError> {
    let mut client = Client::new(ground.address);
    let mut told = Told::default();
    // One keeps to the clock, the other takes all times.
    for (name, more) in [("clocked", ""), ("any", ",\"max_ahead_ms\":null")] {
        made(&mut client, name, more)?;
        let answer = client.register(name, &QUERY.replace("STREAM>", &format!("{name}>")))?;
        told.expect("registering", &[201], &answer);
    }
    let begun = Instant::now();
    let mut tuple = 0;
    while begun.elapsed() < ground.length {
        tuple += 1;
        lie(&mut client, &mut told, tuple)?;
    }
    // A producer whose times are right is served as ever.
    let honest = client.push("clocked", &line(now_ms(), tuple))?;
    told.expect("a true time", &[200], &honest);
    if !honest.body.contains("\"accepted\":1,\"late\":0") {
        told.wrong(format!("a true time after lies: {}", honest.body));
    }
    for name in ["clocked", "any"] {
        client.delete(&format!("/continuous/{name}"))?;
        client.delete(&format!("/streams/{name}"))?;
    }
    Ok(told)
}

fn lie(client: &mut Client, told: &mut Told, tuple: u64) -> Result<(), BenchError> {
    let now = now_ms();
    // Ahead: refused. Before now: taken, late or not.
    for (what, time_ms, right) in [
        ("a year ahead", now + YEAR_MS, 400),
        ("the end of time", i64::MAX, 400),
        ("a year ago", now - YEAR_MS, 200),
        ("before 1970", -YEAR_MS, 200),
        ("the beginning of time", i64::MIN, 200),
    ] {
        told.expect(
            what,
            &[right],
            &client.push("clocked", &line(time_ms, tuple))?,
        );
    }
    for time in [
        "x",
        "1.5",
        "1e9",
        "",
        "9223372036854775808",
        "NaN",
        "2026-01-01T00:00:00Z",
    ] {
        let answer = client.push("clocked", &line(time, tuple))?;
        told.expect("no number", &[400], &answer);
        if !time.is_empty() {
            told.expect(
                "a heartbeat of no number",
                &[400],
                &client.heartbeat("clocked", time)?,
            );
        }
    }
    let decreasing: String = (0..100)
        .map(|step| line(now - 10_000 - step * 1_000, tuple))
        .collect();
    told.expect("decreasing", &[200], &client.push("clocked", &decreasing)?);
    let mixed = format!(
        "{}{}",
        line(now - 20_000, tuple),
        line(now + YEAR_MS, tuple)
    );
    told.expect(
        "one of two is ahead",
        &[400],
        &client.push("clocked", &mixed)?,
    );
    told.expect(
        "a heartbeat ahead",
        &[400],
        &client.heartbeat("clocked", &i64::MAX.to_string())?,
    );
    document(client, told, now + YEAR_MS)?;
    // Where all times are taken, leaps are.
    let leap = tuple as i64 * YEAR_MS;
    for (what, time_ms) in [("a leap", leap), ("and back", leap - 50 * YEAR_MS)] {
        told.expect(what, &[200], &client.push("any", &line(time_ms, tuple))?);
    }
    Ok(())
}

fn document(client: &mut Client, told: &mut Told, time_ms: i64) -> Result<(), BenchError> {
    let path = format!("/streams/clocked?time={time_ms}");
    let answer: Answer = client.ask(("POST", &path), "text/turtle", b"<a:a> <a:b> 1 .")?;
    told.expect("a document a year ahead", &[400], &answer);
    Ok(())
}
