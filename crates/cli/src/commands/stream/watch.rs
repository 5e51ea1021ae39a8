//! `jindou stream watch`: results of a continuous query as they come.

use std::io::{BufRead, BufReader};

use anyhow::{Context, bail};
use jindou_engine::PrefixTable;
use jindou_engine::results::{Names, SolutionsFormat, SolutionsWriter, TermText};
use serde_json::Value;

use super::client::Client;
use crate::output;
use crate::printable::printable;
use crate::stream_args::WatchArguments;

/// # Errors
/// A server that cannot be reached or that ends, and what it refuses.
pub(super) fn run(arguments: &WatchArguments) -> anyhow::Result<()> {
    let mut path = format!("/continuous/{}/results", arguments.name);
    if let Some(after) = arguments.after {
        path += &format!("?after={after}");
    }
    let client = Client::new(&arguments.server)?;
    let names = match arguments.json || arguments.full_iris {
        true => Names::default(),
        false => names(&client, &arguments.name),
    };
    let mut events = Events(BufReader::new(client.open(&path)?));
    let mut left = arguments.limit;
    let mut last = arguments.after;
    while left != Some(0) {
        let Some((kind, data)) = events.next()? else {
            let after = last.map_or_else(String::new, |last| {
                format!("; --after {last} goes on once it is there again")
            });
            bail!("the server ended{after}");
        };
        if kind == "end" {
            note!("the query {} was dropped", arguments.name);
            return Ok(());
        }
        let result: Value = serde_json::from_str(&data).context("a result is no JSON")?;
        last = result["sequence"].as_u64().or(last);
        match arguments.json {
            true => output::print(&format!("{data}\n"))?,
            false => output::print(&shown(&result, &names)?)?,
        }
        left = left.map(|left| left - 1);
    }
    Ok(())
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

impl<R: BufRead> Events<R> {
    /// The kind and the data of the next event; `None` at the end.
    fn next(&mut self) -> anyhow::Result<Option<(String, String)>> {
        let (mut kind, mut data) = (String::new(), None);
        let mut line = String::new();
        loop {
            line.clear();
            let read = self.0.read_line(&mut line);
            // As text: a connection that breaks is not standard output's, whose reader wants no more.
            let read = read.map_err(|error| anyhow::anyhow!("results of the server: {error}"))?;
            if read == 0 {
                return Ok(None);
            }
            match line.trim_end_matches('\n').split_once(": ") {
                Some(("event", name)) => name.clone_into(&mut kind),
                Some(("data", text)) => data = Some(text.to_owned()),
                // Its end, or that of a comment.
                None => {
                    if let Some(data) = data.take() {
                        return Ok(Some((kind, data)));
                    }
                }
                Some(_) => {}
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
        let owned = |kind: &str, data: &str| Some((kind.to_owned(), data.to_owned()));
        assert_eq!(events.next().unwrap(), owned("result", "{\"a\": 1}"));
        assert_eq!(events.next().unwrap(), owned("end", "{}"));
        assert_eq!(events.next().unwrap(), None);
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
