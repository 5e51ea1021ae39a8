//! `jindou stream watch`: results of a continuous query as they come.
//!
//! Where the server goes away, this connects again and goes on after the last result that it has seen.

use std::io::{BufRead, BufReader};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use jindou_engine::PrefixTable;
use jindou_engine::results::{Names, SolutionsFormat, SolutionsWriter, TermText};
use serde_json::Value;
use ureq::BodyReader;

use super::client::{Asked, Client, Refused};
use crate::output;
use crate::stream_args::WatchArguments;
use jindou_engine::printable;

/// Pauses between attempts to connect again: the first, and the longest, to which they are doubled.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// # Errors
/// A server that cannot be reached at the begin, or that ends where it is not to be connected to again; what it
/// refuses.
pub(super) fn run(arguments: &WatchArguments) -> anyhow::Result<()> {
    let client = Client::new(&arguments.server)?;
    let names = match arguments.json || arguments.full_iris {
        true => Names::default(),
        false => names(&client, &arguments.name),
    };
    let mut watch = Watch {
        client,
        arguments,
        names,
        left: arguments.limit,
        last: None,
    };
    let mut results = watch.open()?.map_err(Refused::error)?;
    loop {
        let lost = match watch.read(results)? {
            Ended::Done => return Ok(()),
            Ended::Lost(reason) => reason,
        };
        if arguments.once {
            let last = watch.last.as_ref();
            let after = last.and_then(|id| id.rsplit(':').next());
            let after = after.map_or_else(String::new, |after| {
                format!("; --after {after} goes on once it is there again")
            });
            bail!("{lost}{after}");
        }
        note!("{lost}; connecting again until Ctrl-C");
        results = watch.open_again()?;
        note!("connected again");
    }
}

/// Results that are being watched.
struct Watch<'a> {
    client: Client,
    arguments: &'a WatchArguments,
    names: Names,
    /// Results to come.
    left: Option<u64>,
    /// The id of the last event.
    last: Option<String>,
}

/// Why results end.
enum Ended {
    /// There are no more, or as many came as were to.
    Done,
    /// The server went away.
    Lost(String),
}

impl Watch<'_> {
    /// Asks for the results that were not seen yet.
    fn open(&self) -> Asked<BodyReader<'static>> {
        let mut path = format!("/continuous/{}/results", self.arguments.name);
        if let (None, Some(after)) = (&self.last, self.arguments.after) {
            path += &format!("?after={after}");
        }
        self.client.open(&path, self.last.as_deref())
    }

    /// The same until the server is there again.
    ///
    /// # Errors
    /// What it refuses then.
    fn open_again(&self) -> anyhow::Result<BodyReader<'static>> {
        let mut pauses = pauses();
        loop {
            let pause = pauses.next().unwrap_or(LONGEST_PAUSE);
            match self.open() {
                Ok(Ok(results)) => return Ok(results),
                Ok(Err(refused)) => match refused.pause() {
                    Some(asked) => thread::sleep(asked.max(pause)),
                    None => return Err(refused.error()),
                },
                Err(_unreached) => thread::sleep(pause),
            }
        }
    }

    /// Prints results as long as they come.
    fn read(&mut self, results: impl std::io::Read) -> anyhow::Result<Ended> {
        let mut events = Events(BufReader::new(results));
        while self.left != Some(0) {
            let event = match events.next() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(Ended::Lost("the server ended".to_owned())),
                Err(error) => return Ok(Ended::Lost(format!("results of the server: {error}"))),
            };
            if event.kind == "end" {
                note!("the query {} was dropped", self.arguments.name);
                return Ok(Ended::Done);
            }
            let result: Value = serde_json::from_str(&event.data).context("a result is no JSON")?;
            match self.arguments.json {
                true => output::print(&format!("{}\n", event.data))?,
                false => output::print(&shown(&result, &self.names)?)?,
            }
            self.last = event.id.or(self.last.take());
            self.left = self.left.map(|left| left - 1);
        }
        Ok(Ended::Done)
    }
}

/// How long to wait before each attempt to connect again but the first.
fn pauses() -> impl Iterator<Item = Duration> {
    let double = |pause: &Duration| Some((*pause * 2).min(LONGEST_PAUSE));
    std::iter::successors(Some(FIRST_PAUSE), double)
}

/// The prefixes by which a query's IRIs are shown: its own, and then those of the store. Where the server does
/// not say them, IRIs are shown whole: if more is wrong, the results say so.
fn names(client: &Client, name: &str) -> Names {
    let mut table = PrefixTable::default();
    let known = client.get("/prefixes").unwrap_or_default();
    for (name, iri) in known.as_object().into_iter().flatten() {
        // What this version takes for no prefix shortens nothing.
        let _unfit = iri.as_str().map(|iri| table.set(name, iri));
    }
    let query = client
        .get(&format!("/continuous/{name}"))
        .unwrap_or_default();
    table.names_for(query["text"].as_str().unwrap_or_default(), None)
}

/// Server-sent events.
struct Events<R>(R);

/// One of them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Event {
    kind: String,
    id: Option<String>,
    data: String,
}

impl<R: BufRead> Events<R> {
    /// The next event; `None` at the end, where one that is not whole is passed over.
    fn next(&mut self) -> std::io::Result<Option<Event>> {
        let (mut event, mut has_data) = (Event::default(), false);
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            match line.trim_end_matches('\n').split_once(": ") {
                Some(("event", name)) => name.clone_into(&mut event.kind),
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("data", text)) => {
                    text.clone_into(&mut event.data);
                    has_data = true;
                }
                // Its end, or that of a comment.
                None if has_data => return Ok(Some(event)),
                _ => {}
            }
        }
    }
}

/// A result as text.
fn shown(result: &Value, names: &Names) -> anyhow::Result<String> {
    let mut head = format!("instant {}", result["instant"]);
    if let Some(missed) = result["missed"].as_u64() {
        head += &format!(", {missed} before it missed");
    }
    let body = match (&result["error"], &result["boolean"], &result["triples"]) {
        (Value::String(error), _, _) => format!("error: {}\n", printable(error)),
        (_, Value::Bool(value), _) => format!("{value}\n"),
        (_, _, Value::String(triples)) => {
            let removed = result["removed"].as_str().unwrap_or_default();
            let removed = removed
                .split_inclusive('\n')
                .map(|line| format!("- {line}"));
            triples.clone() + &removed.collect::<String>()
        }
        _ => {
            let added = table(result, &result["results"], names)?;
            match &result["removed"] {
                Value::Null => added,
                removed if is_empty(removed) => added,
                removed => {
                    let removed = table(result, removed, names)?;
                    let removed = removed.split_inclusive('\n').map(|line| format!("-{line}"));
                    match is_empty(&result["results"]) {
                        true => removed.collect(),
                        false => added + &removed.collect::<String>(),
                    }
                }
            }
        }
    };
    Ok(format!("{head}\n{body}"))
}

fn is_empty(rows: &Value) -> bool {
    rows["bindings"].as_array().is_none_or(Vec::is_empty)
}

/// Rows of a result as a table.
fn table(result: &Value, rows: &Value, names: &Names) -> anyhow::Result<String> {
    let variables = result["head"]["vars"].as_array().into_iter().flatten();
    let variables: Vec<&str> = variables.filter_map(Value::as_str).collect();
    let mut writer =
        SolutionsWriter::new(SolutionsFormat::Table, &variables).with_names(names.clone());
    let mut text = Vec::new();
    writer.start(&mut text)?;
    for row in rows["bindings"].as_array().into_iter().flatten() {
        writer.row(&mut text, variables.iter().map(|name| term(&row[*name])))?;
    }
    writer.finish(&mut text)?;
    String::from_utf8(text).context("a result is not UTF-8")
}

/// A term as SPARQL results in JSON have it.
fn term(value: &Value) -> Option<TermText<'_>> {
    let text = value["value"].as_str()?;
    Some(match value["type"].as_str()? {
        "uri" => TermText::Iri(text),
        "bnode" => TermText::Blank(text),
        _ => TermText::Literal {
            value: text,
            language: value["xml:lang"].as_str(),
            datatype: value["datatype"].as_str(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn comments_and_ids_are_passed_over() {
        let text = ": \n\nevent: result\nid: 5:1\ndata: {\"a\": 1}\n\nevent: end\ndata: {}\n\n";
        let mut events = Events(text.as_bytes());
        let event = |kind: &str, id: Option<&str>, data: &str| Event {
            kind: kind.to_owned(),
            id: id.map(str::to_owned),
            data: data.to_owned(),
        };
        let mut next = || events.next().unwrap();
        assert_eq!(next(), Some(event("result", Some("5:1"), "{\"a\": 1}")));
        assert_eq!(next(), Some(event("end", None, "{}")));
        assert_eq!(next(), None);
        // The server went away in the middle.
        let mut events = Events("event: result\nid: 5:1\ndata: {\"a\"".as_bytes());
        assert_eq!(events.next().unwrap(), None);
    }

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let all: Vec<Duration> = pauses().take(9).collect();
        assert!(all[0] < all[1] && all[1] < all[5]);
        assert_eq!(all[8], LONGEST_PAUSE);
    }

    #[test]
    fn rows_that_are_gone_have_a_minus() {
        let rows = |value: &str| {
            let row = json!({ "x": { "type": "literal", "value": value } });
            json!({ "bindings": [row] })
        };
        let none = json!({ "bindings": [] });
        let head = json!({ "vars": ["x"] });
        let shown = |results: &Value, removed: &Value| {
            let all = json!({ "instant": 5, "head": head, "results": results, "removed": removed });
            shown(&all, &Names::default()).unwrap()
        };
        let both = shown(&rows("new"), &rows("old"));
        assert!(
            both.contains("\n \"new\"") && both.contains("\n- \"old\""),
            "{both}"
        );
        assert!(both.ends_with("-(1 row)\n"), "{both}");
        let gone = shown(&none, &rows("old"));
        assert!(
            gone.contains("\n- \"old\"") && !gone.contains("(0 rows)"),
            "{gone}"
        );
        let added = shown(&rows("new"), &none);
        assert!(
            !added.contains("\n-(") && added.ends_with("\n(1 row)\n"),
            "{added}"
        );
        let triples = json!({ "instant": 5, "triples": "<a> <b> 1 .\n", "removed": "<a> <b> 2 .\n<a> <b> 3 .\n" });
        assert_eq!(
            super::shown(&triples, &Names::default()).unwrap(),
            "instant 5\n<a> <b> 1 .\n- <a> <b> 2 .\n- <a> <b> 3 .\n"
        );
    }

    #[test]
    fn results_of_all_forms_are_shown() {
        let solutions = json!({
            "instant": 5, "missed": 2, "head": { "vars": ["x", "long"] },
            "results": { "bindings": [{ "x": { "type": "uri", "value": "http://e/a" } }] },
        });
        let text = shown(&solutions, &Names::default()).unwrap();
        assert!(
            text.starts_with("instant 5, 2 before it missed\n ?x "),
            "{text}"
        );
        assert!(
            text.contains("<http://e/a>") && text.ends_with("(1 row)\n"),
            "{text}"
        );
        let names = Names::new([("e".to_owned(), "http://e/".to_owned())]);
        let text = shown(&solutions, &names).unwrap();
        assert!(text.contains("\n e:a "), "{text}");
        for (result, body) in [
            (json!({ "instant": 5, "boolean": false }), "false\n"),
            (
                json!({ "instant": 5, "triples": "<a> <b> <c> .\n" }),
                "<a> <b> <c> .\n",
            ),
            (
                json!({ "instant": 5, "error": "too long" }),
                "error: too long\n",
            ),
        ] {
            let text = shown(&result, &Names::default()).unwrap();
            assert_eq!(text, format!("instant 5\n{body}"));
        }
    }
}
