//! What is a result of a continuous query as an object of JSON?
//!
//! The object of SPARQL results with members of its own, as server-sent events, sockets and messages of
//! brokers have it. A server that sends it in pieces writes the rows itself; here it is written whole, where
//! it has to be one message, and given up once it is too long for that.

use serde_json::json;

use super::ResultsError;
use super::{BooleanFormat, SolutionsFormat, SolutionsWriter, write_boolean, write_term};
use crate::{Answer, ContinuousResult, Rows};

/// A result that takes more bytes than it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the result takes more than the {most_bytes} bytes that a message may have")]
pub struct TooLong {
    /// What it may take.
    pub most_bytes: usize,
}

/// The id of a result, `INSTANT:SEQUENCE`.
#[must_use]
pub fn result_id(result: &ContinuousResult) -> String {
    format!("{}:{}", result.instant_ms, result.sequence)
}

/// The members of a result of a query that come before its answer, with the bracket before them. `missed`
/// is how many results before it the reader was too slow for.
#[must_use]
pub fn result_members(query: &str, result: &ContinuousResult, missed: u64) -> Vec<u8> {
    let windows = result.windows.iter().map(|window| {
        let held = &window.held;
        let mut members = json!({
            "name": &*window.name,
            "from": held.from_ms,
            "until": held.until_ms,
        });
        if let Some((first, last)) = held.numbers {
            (members["first"], members["last"]) = (first.into(), last.into());
        }
        members
    });
    let mut members = json!({
        "query": query,
        "instant": result.instant_ms,
        "windows": windows.collect::<Vec<_>>(),
        "snapshot": result.snapshot,
        "sequence": result.sequence,
    });
    if missed > 0 {
        members["missed"] = missed.into();
    }
    let mut text = members.to_string().into_bytes();
    text.pop();
    text
}

/// A result of a query, whole.
///
/// # Errors
/// [`TooLong`], found out when at most a row more than that was written.
pub fn result_json(
    query: &str,
    result: &ContinuousResult,
    most_bytes: usize,
) -> Result<Vec<u8>, TooLong> {
    let mut whole = Whole {
        out: result_members(query, result, 0),
        most_bytes,
    };
    match &result.answer {
        Ok(answer) => {
            whole.out.push(b',');
            if let Some(removed) = &result.removed {
                whole.removed(answer, removed)?;
            }
            whole.answer(answer)?;
        }
        Err(error) => whole.error(error),
    }
    whole.check()?;
    Ok(whole.out)
}

/// The object that stands for a result that cannot be sent, with the reason.
#[must_use]
pub fn unsent_json(query: &str, result: &ContinuousResult, reason: &TooLong) -> Vec<u8> {
    let mut whole = Whole {
        out: result_members(query, result, 0),
        most_bytes: reason.most_bytes,
    };
    whole.error(&reason.to_string());
    whole.out
}

struct Whole {
    out: Vec<u8>,
    most_bytes: usize,
}

impl Whole {
    fn check(&self) -> Result<(), TooLong> {
        let most_bytes = self.most_bytes;
        match self.out.len() <= most_bytes {
            true => Ok(()),
            false => Err(TooLong { most_bytes }),
        }
    }

    fn error(&mut self, error: &str) {
        let error = format!(",\"error\":{}}}", json!(error));
        self.out.extend_from_slice(error.as_bytes());
    }

    /// The members of an answer and the end of the object.
    fn answer(&mut self, answer: &Answer) -> Result<(), TooLong> {
        match answer {
            Answer::Boolean(value) => {
                let begin = self.out.len();
                write_boolean(&mut self.out, BooleanFormat::Json, *value);
                // The bracket is there already.
                self.out.remove(begin);
            }
            Answer::Solutions { variables, rows } => {
                let mut writer = SolutionsWriter::new(SolutionsFormat::Json, variables);
                let begin = self.out.len();
                expect_json(writer.start(&mut self.out));
                self.out.remove(begin);
                self.rows(&mut writer, rows)?;
                expect_json(writer.finish(&mut self.out));
            }
            Answer::Triples(rows) => {
                self.out.extend_from_slice(b"\"triples\":");
                self.triples(rows)?;
                self.out.push(b'}');
            }
        }
        Ok(())
    }

    /// The member with the rows that are gone, in the form of those that came, and a comma.
    fn removed(&mut self, answer: &Answer, removed: &Rows) -> Result<(), TooLong> {
        self.out.extend_from_slice(b"\"removed\":");
        match answer {
            Answer::Solutions { variables, .. } => {
                let mut writer = SolutionsWriter::new(SolutionsFormat::Json, variables);
                let begin = self.out.len();
                expect_json(writer.start(&mut self.out));
                // The head is beside it already.
                self.out.truncate(begin);
                self.out.extend_from_slice(b"{\"bindings\":[");
                self.rows(&mut writer, removed)?;
                self.out.extend_from_slice(b"]}");
            }
            _ => self.triples(removed)?,
        }
        self.out.push(b',');
        Ok(())
    }

    fn rows(&mut self, writer: &mut SolutionsWriter, rows: &Rows) -> Result<(), TooLong> {
        for row in rows.iter() {
            expect_json(writer.row(&mut self.out, row));
            self.check()?;
        }
        Ok(())
    }

    /// A string of N-Triples.
    fn triples(&mut self, rows: &Rows) -> Result<(), TooLong> {
        let mut triple = Vec::new();
        self.out.push(b'"');
        for row in rows.iter() {
            triple.clear();
            for term in row.into_iter().flatten() {
                write_term(&mut triple, term, false);
                triple.push(b' ');
            }
            triple.extend_from_slice(b".\n");
            let quoted = json!(String::from_utf8_lossy(&triple)).to_string();
            self.out
                .extend_from_slice(&quoted.as_bytes()[1..quoted.len() - 1]);
            self.check()?;
        }
        self.out.push(b'"');
        Ok(())
    }
}

/// JSON can hold every answer.
fn expect_json<T>(written: Result<T, ResultsError>) -> T {
    written.expect("JSON holds all terms")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;

    use super::*;
    use crate::{Database, NextResult, StreamDefinition, TupleFormat};

    /// The first result of a query over a window with two tuples, one of which has a text that has to be
    /// escaped.
    fn first(form: &str) -> ContinuousResult {
        let database = Database::new();
        let made = database.create_stream("s", StreamDefinition::new("http://e/s"));
        made.expect("it is new");
        let query =
            format!("{form} FROM STREAM <http://e/s> [RANGE 1s] WHERE {{ ?x <http://e/p> ?y }}");
        database.register("q", &query).expect("it is sound");
        let lines = "1\t<http://e/a> <http://e/p> \"\\\"b\\\"\\n\u{e9}\" .\n\
                     2\t<http://e/a> <http://e/p> <http://e/c> .\n\
                     1500\t<http://e/a> <http://e/p> \"1\" .\n";
        let pushed = database.push("s", TupleFormat::Lines, None, lines.as_bytes().to_vec());
        pushed.expect("they are sound");
        let mut results = database.results_of("q", Some(0)).expect("it is there");
        let NextResult::Result(result, 0) = results.next_within(Duration::ZERO) else {
            panic!("a window is complete");
        };
        (*result).clone()
    }

    fn json(result: &ContinuousResult) -> Value {
        let text = result_json("q", result, 10_000).expect("it is short");
        serde_json::from_slice(&text).expect("it is JSON")
    }

    #[test]
    fn all_forms_of_answers_are_objects() {
        let rows = json(&first("SELECT ?y"));
        assert_eq!(
            (&rows["query"], &rows["sequence"]),
            (&"q".into(), &1.into())
        );
        assert_eq!(rows["windows"][0]["until"], 1000);
        assert_eq!(rows["head"]["vars"][0], "y");
        let bindings = rows["results"]["bindings"].as_array().expect("rows");
        let mut values: Vec<&str> = bindings
            .iter()
            .filter_map(|row| row["y"]["value"].as_str())
            .collect();
        values.sort_unstable();
        assert_eq!(values, ["\"b\"\n\u{e9}", "http://e/c"]);
        assert_eq!(json(&first("ASK"))["boolean"], true);
        let triples = json(&first("CONSTRUCT { ?x <http://e/q> ?y }"));
        let triples = triples["triples"].as_str().expect("a string");
        let mut lines: Vec<&str> = triples.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            [
                "<http://e/a> <http://e/q> \"\\\"b\\\"\\n\u{e9}\" .",
                "<http://e/a> <http://e/q> <http://e/c> ."
            ]
        );
    }

    #[test]
    fn what_a_transaction_removed_is_beside_what_it_added() {
        for (form, member) in [
            ("SELECT ?y", "bindings"),
            ("CONSTRUCT { ?x <http://e/q> ?y }", ""),
        ] {
            let mut result = first(form);
            let answer = result.answer.clone().expect("it was found");
            result.removed = answer.rows().cloned();
            let both = json(&result);
            match member {
                "" => assert_eq!(both["removed"], both["triples"]),
                member => assert_eq!(both["removed"][member], both["results"][member]),
            }
        }
    }

    #[test]
    fn one_that_is_too_long_is_given_up_and_one_that_failed_says_why() {
        let mut result = first("SELECT ?y");
        let most_bytes = result_json("q", &result, 10_000)
            .expect("it is short")
            .len();
        assert!(result_json("q", &result, most_bytes).is_ok());
        let refused = result_json("q", &result, most_bytes - 1).expect_err("it is longer");
        let unsent = unsent_json("q", &result, &refused);
        let unsent: Value = serde_json::from_slice(&unsent).expect("it is JSON");
        let error = unsent["error"].as_str().expect("a string");
        assert!(
            error.contains(&format!("{} bytes", most_bytes - 1)),
            "{error}"
        );
        assert_eq!(
            (&unsent["sequence"], unsent.get("results")),
            (&1.into(), None)
        );
        result.answer = Err("it \"failed\"".to_owned());
        assert_eq!(json(&result)["error"], "it \"failed\"");
        assert_eq!(result_id(&result), "1000:1");
    }
}
