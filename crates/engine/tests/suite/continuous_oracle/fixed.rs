//! Do windows of two streams differ where they should? Counts that follow from the arithmetic of the
//! streams, by hand.

use std::time::Duration;

use jindou_engine::{Database, NextResult, StreamDefinition, TupleFormat};

use super::answers::{Found, of_answer};

/// Five instants at which both windows slide.
const INSTANTS: [i64; 5] = [500, 1000, 1500, 2000, 2500];

/// The numbers that a query counted, by their instants.
fn counts(database: &Database, name: &str) -> Vec<(i64, i64)> {
    let mut results = database.results_of(name, Some(0)).expect("it is there");
    let mut counts = Vec::new();
    while let NextResult::Result(result, _) = results.next_within(Duration::ZERO) {
        let answer = result.answer.as_ref().expect("it is sound");
        let Found::Rows(rows) = of_answer(answer) else {
            panic!("rows");
        };
        let number = rows[0][0].split('"').nth(1).expect("it is a literal");
        counts.push((result.instant_ms, number.parse().expect("it is a number")));
    }
    counts
}

fn at_instants(counts: [i64; 5]) -> Vec<(i64, i64)> {
    INSTANTS.into_iter().zip(counts).collect()
}

/// Tuples of two streams by slots of 500 ms: 40, 30, 50, 20, 60 of one, and 7, 11, 13, 3, 5 of the
/// other. At the end of each slot a window of 1 s has the tuples of two slots, 40, 70, 80, 70, 80 of the
/// first stream, and one of 500 ms those of one slot of the second: 47, 81, 93, 73, 85 together. With one
/// window of 1 s for both streams it would be 47, 88, 104, 86, 88, and with one of 500 ms 47, 41, 63, 23,
/// 65.
#[test]
fn windows_of_two_ranges_are_counted_together() {
    let database = Database::new();
    let text = "PREFIX : <http://e/> SELECT (COUNT(*) AS ?tuples) \
                FROM STREAM :a [RANGE 1s STEP 500ms] FROM STREAM :b [RANGE 500ms STEP 500ms] \
                WHERE { ?x :is ?y }";
    let feeds = [("a", [40, 30, 50, 20, 60]), ("b", [7, 11, 13, 3, 5])];
    for (name, _) in feeds {
        let definition = StreamDefinition::new(format!("http://e/{name}"));
        database.create_stream(name, definition).expect("it is new");
    }
    database.register("q", text).expect("it is sound");
    for (name, slots) in feeds {
        let mut text = String::new();
        for (slot, count) in (0..).zip(slots) {
            for number in 0..count {
                // The first one exactly on the bound of the slot, the others after it.
                let time = slot * 500 + number * 8;
                text += &format!(
                    "{time}\t<http://e/{name}{slot}-{number}> <http://e/is> <http://e/x> .\n"
                );
            }
        }
        let pushed = database.push(name, TupleFormat::Lines, None, text.into_bytes());
        pushed.expect("it is sound");
        database.heartbeat(name, 2500).expect("it is sound");
    }
    assert_eq!(counts(&database, "q"), at_instants([47, 81, 93, 73, 85]));
}

/// Two streams, one of which has a tuple every 10 ms and a window of 1 s, the other one every 25 ms and a
/// window of 500 ms. What is counted are pairs with the same number modulo 10.
///
/// At instant `t` (a multiple of 500) the first window has the tuples `i` of times `10 i` in
/// `[t - 1000, t)`: 100 consecutive numbers, or `t / 10` of them at first, and so ten of each
/// remainder, or five at 500. The second has the tuples `j` of times `25 j` in `[t - 500, t)`: 20
/// consecutive numbers, two of each remainder. So the pairs are 10 remainders times 10 times 2, which
/// is 200, and 100 at 500. With one window of 1 s for both streams they would be 10 times 10 times 4,
/// which is 400, and with one of 500 ms 10 times 5 times 2, which is 100.
#[test]
fn each_of_two_streams_has_the_window_of_its_own_range() {
    let database = Database::new();
    let mut feeds = Vec::new();
    for (name, period) in [("a", 10), ("b", 25)] {
        let definition = StreamDefinition::new(format!("http://e/{name}"));
        database
            .create_stream(name, definition)
            .expect("it is sound");
        let line = |number: i64| {
            let time = number * period;
            let remainder = number % 10;
            format!(
                "{time}\t<http://e/{name}{number}> <http://e/{name}> <http://e/r{remainder}> .\n"
            )
        };
        let text: String = (0..=2500 / period).map(line).collect();
        feeds.push((name, text));
    }
    let texts = [
        (
            "windows",
            "SELECT (COUNT(*) AS ?pairs) \
             FROM NAMED WINDOW :wa ON :a [RANGE 1s STEP 500ms] \
             FROM NAMED WINDOW :wb ON :b [RANGE 500ms STEP 500ms] \
             WHERE { WINDOW :wa { ?x :a ?r } WINDOW :wb { ?y :b ?r } }",
        ),
        (
            "graphs",
            "SELECT (COUNT(*) AS ?pairs) \
             FROM NAMED STREAM :a [RANGE 1s STEP 500ms] \
             FROM NAMED STREAM :b [RANGE 500ms STEP 500ms] \
             WHERE { GRAPH :a { ?x :a ?r } GRAPH :b { ?y :b ?r } }",
        ),
        (
            "merged",
            "SELECT (COUNT(*) AS ?pairs) \
             FROM STREAM :a [RANGE 1s STEP 500ms] FROM STREAM :b [RANGE 500ms STEP 500ms] \
             WHERE { ?x :a ?r . ?y :b ?r }",
        ),
    ];
    for (name, text) in texts {
        let text = format!("PREFIX : <http://e/> {text}");
        database.register(name, &text).expect("it is sound");
    }
    for (name, text) in feeds {
        let text = text.into_bytes();
        database
            .push(name, TupleFormat::Lines, None, text)
            .expect("it is sound");
    }
    for (name, _) in texts {
        let expected = at_instants([100, 200, 200, 200, 200]);
        assert_eq!(counts(&database, name), expected, "{name}");
    }
}
