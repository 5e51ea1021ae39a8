//! What is said of wrong texts of the kinds that people write: `messages.txt`, which is reviewed.
//!
//! With `JINDOU_WRITE_MESSAGES=1` the file is written anew, to be reviewed.

use std::fmt::Write as _;

use jindou_syntax::{Options, parse_continuous, parse_query, parse_update, position};

const MESSAGES: &str = include_str!("messages.txt");

/// What is said of a text, by the name of its case.
fn said(text: &str, name: &str) -> String {
    let parsed = match name.rsplit_once(' ') {
        Some((_, "(update)")) => parse_update(text, Options::default()).map(drop),
        Some((_, "(continuous)")) => parse_continuous(text, Options::default()).map(drop),
        _ => parse_query(text, Options::default()).map(drop),
    };
    let Err(error) = parsed else {
        return "=> nothing\n".to_owned();
    };
    let span = error.span().expect("a place");
    let (line, column) = position(text, span.start);
    let mut said = format!("=> {line}:{column} {error}\n");
    if let Some(hint) = error.hint() {
        writeln!(said, "=> {hint}").expect("a string takes all that is written");
    }
    said
}

#[test]
fn messages_are_those_of_the_file() {
    let mut written = String::new();
    let mut cases = MESSAGES.split("\n## ");
    written.push_str(cases.next().expect("a header"));
    let mut count = 0;
    for case in cases {
        let (name, rest) = case.split_once('\n').expect("a text after the name");
        let lines = rest.lines().filter_map(|line| line.strip_prefix('|'));
        let lines: Vec<&str> = lines
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        let text = lines.join("\n");
        let shown = rest.lines().take_while(|line| line.starts_with('|'));
        let shown: String = shown.map(|line| format!("{line}\n")).collect();
        let said = said(&text, name);
        assert_ne!(said, "=> nothing\n", "{name}");
        write!(written, "\n## {name}\n{shown}{said}").expect("a string takes all");
        count += 1;
    }
    assert!(count >= 60, "{count}");
    if std::env::var_os("JINDOU_WRITE_MESSAGES").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/messages.txt");
        std::fs::write(path, written).expect("the file can be written");
        return;
    }
    for (ours, theirs) in written.lines().zip(MESSAGES.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(written, MESSAGES);
}
