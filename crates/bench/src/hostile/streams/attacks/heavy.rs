//! Heavy queries with small steps: cross products of windows, again and again.

use std::time::{Duration, Instant};

use super::{Ground, line, made};
use crate::BenchError;
use crate::hostile::streams::client::{Client, Events, Told};

/// Queries of each kind.
const EACH: usize = 8;
/// Tuples of a batch: a window has those of a second.
const TUPLES: u64 = 200;
/// From one batch to the next.
const PACE: Duration = Duration::from_millis(50);

/// What is found: nothing, in a very long time; more than any memory; the product of two windows.
const PATTERNS: [&str; 3] = [
    "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/heavy> [W] \
     WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(STR(?a) > STR(?i) && STR(?f) < STR(?c)) }",
    "SELECT * FROM STREAM <http://e/heavy> [W] WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i } ORDER BY ?i ?a",
    "SELECT (COUNT(?x) AS ?n) FROM NAMED WINDOW <http://e/v> ON <http://e/heavy> [W] \
     FROM NAMED WINDOW <http://e/w> ON <http://e/heavy> [W] WHERE { \
     WINDOW <http://e/v> { ?a ?b ?c . ?g ?h ?i } WINDOW <http://e/w> { ?d ?e ?f } \
     BIND(CONCAT(STR(?a), STR(?f), STR(?i)) AS ?x) }",
];

pub(super) fn run(ground: &Ground) -> Result<Told, BenchError> {
    let mut client = Client::new(ground.address);
    let mut told = Told::default();
    made(&mut client, "heavy", "")?;
    for (kind, pattern) in PATTERNS.iter().enumerate() {
        let text = pattern.replace("[W]", "[RANGE 1s STEP 10ms]");
        for number in 0..EACH {
            let answer = client.register(&format!("heavy{kind}_{number}"), &text)?;
            told.expect("registering", &[201], &answer);
        }
    }
    let begun = Instant::now();
    let mut time_ms = 0;
    while begun.elapsed() < ground.length {
        let at = Instant::now();
        time_ms += 100;
        let lines: String = (0..TUPLES)
            .map(|tuple| line(time_ms, time_ms as u64 * TUPLES + tuple))
            .collect();
        told.expect("a push", &[200, 503], &client.push("heavy", &lines)?);
        std::thread::sleep(PACE.saturating_sub(at.elapsed()));
    }
    for kind in 0..PATTERNS.len() {
        for number in 0..EACH {
            let path = format!("/continuous/heavy{kind}_{number}");
            told.expect("dropping", &[204], &client.delete(&path)?);
        }
    }
    after(ground, &mut client, &mut told, time_ms)?;
    told.expect("dropping", &[204], &client.delete("/streams/heavy")?);
    Ok(told)
}

/// A query that takes long enough to need a thread of those of heavy ones has it once these are gone.
fn after(
    ground: &Ground,
    client: &mut Client,
    told: &mut Told,
    time_ms: i64,
) -> Result<(), BenchError> {
    let text = "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/heavy> [RANGE 1s] \
                WHERE { ?a <http://e/p> ?c . ?d <http://e/p> ?f FILTER(STR(?a) < STR(?f)) }";
    told.expect("registering", &[201], &client.register("fair", text)?);
    let mut events = Events::of(ground.address, "fair").map_err(BenchError::io("events"))?;
    let at = (time_ms / 1_000 + 2) * 1_000;
    let lines: String = (0..1_000).map(|tuple| line(at, tuple)).collect();
    told.expect("a push", &[200, 503], &client.push("heavy", &lines)?);
    let beat = client.heartbeat("heavy", &(at + 1_000).to_string())?;
    told.expect("a heartbeat", &[204], &beat);
    loop {
        match events.next() {
            Ok(event) if event.instant_ms < at + 1_000 => {}
            Ok(event) if event.data.contains("\"bindings\"") => break,
            Ok(event) => {
                told.wrong(format!("a query after the heavy ones: {}", event.data));
                break;
            }
            Err(error) => {
                told.wrong(format!(
                    "a query after the heavy ones has no result: {error}"
                ));
                break;
            }
        }
    }
    told.expect("dropping", &[204], &client.delete("/continuous/fair")?);
    Ok(())
}
