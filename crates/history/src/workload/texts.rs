//! Which SPARQL text is each operation?
//!
//! Each is one request of one operation, so that it is one transaction.

use std::fmt::Write;

use super::names::{BASE, Family, in_graph, iri};
use crate::{Key, Value};

/// Adds a line to a text.
macro_rules! line {
    ($text:expr, $($words:tt)*) => {
        writeln!($text, $($words)*).expect("a string takes all")
    };
}

/// Keys in the order in which they are named first, each with what is appended to it.
fn by_key(appends: &[(Key, Value)]) -> Vec<(Key, Vec<Value>)> {
    let mut keys: Vec<(Key, Vec<Value>)> = Vec::new();
    for (key, value) in appends {
        match keys.iter_mut().find(|(known, _)| known == key) {
            Some((_, values)) => values.push(*value),
            None => keys.push((*key, vec![*value])),
        }
    }
    keys
}

/// A subquery that counts the items of a list.
fn count(key: Key, variable: &str) -> String {
    let list = iri(Family::List, key);
    let items = in_graph(key, &format!("<{list}> <{BASE}item> ?{variable}i"));
    format!("  {{ SELECT (COUNT(?{variable}i) AS ?{variable}) WHERE {{ {items} }} }}")
}

/// An update that appends values to lists.
#[must_use]
pub fn append(appends: &[(Key, Value)]) -> String {
    read_append(&[], appends)
}

/// An update that appends values to lists, and notes at each how long the lists that it reads are.
#[must_use]
pub fn read_append(reads: &[Key], appends: &[(Key, Value)]) -> String {
    let (mut inserts, mut patterns) = (String::new(), String::new());
    let mut lengths = Vec::new();
    for (place, key) in reads.iter().enumerate() {
        line!(patterns, "{}", count(*key, &format!("r{place}")));
        lengths.push(format!("\"{}=\", STR(?r{place})", key.0));
    }
    if !reads.is_empty() {
        line!(
            patterns,
            "  BIND(CONCAT({}) AS ?saw)",
            lengths.join(", \" \", ")
        );
    }
    for (place, (key, values)) in by_key(appends).into_iter().enumerate() {
        let list = iri(Family::List, key);
        line!(patterns, "{}", count(key, &format!("n{place}")));
        for (offset, value) in values.iter().enumerate() {
            let name = format!("{place}x{offset}");
            line!(patterns, "  BIND(?n{place} + {offset} AS ?at{name})");
            line!(
                patterns,
                "  BIND(IRI(CONCAT(\"{list}/\", STR(?at{name}))) AS ?item{name})"
            );
            let saw = match reads {
                [] => String::new(),
                _ => format!(" ; <{BASE}saw> ?saw"),
            };
            let triples = format!(
                "<{list}> <{BASE}item> ?item{name} . \
                 ?item{name} <{BASE}at> ?at{name} ; <{BASE}value> {value}{saw} ."
            );
            line!(inserts, "  {}", in_graph(key, &triples));
        }
    }
    format!("INSERT {{\n{inserts}}}\nWHERE {{\n{patterns}}}")
}

/// A query for lists, which [`super::decode_lists`] reads.
#[must_use]
pub fn read_lists(keys: &[Key]) -> String {
    let one = |key: &Key| {
        let list = iri(Family::List, *key);
        let pattern = format!(
            "<{list}> <{BASE}item> ?item \
             OPTIONAL {{ ?item <{BASE}at> ?at }} \
             OPTIONAL {{ ?item <{BASE}value> ?value }} \
             OPTIONAL {{ ?item <{BASE}saw> ?saw }}"
        );
        format!(
            "  {{ {} BIND(<{list}> AS ?key) }}",
            in_graph(*key, &pattern)
        )
    };
    let lists: Vec<String> = keys.iter().map(one).collect();
    let lists = lists.join("\n  UNION\n");
    format!("SELECT ?key ?item ?at ?value ?saw WHERE {{\n{lists}\n}}")
}

/// An update that replaces the values of registers.
#[must_use]
pub fn write(writes: &[(Key, Value)]) -> String {
    read_write(&[], writes)
}

/// An update that replaces the values of registers, and notes at each which values the registers that it reads had: the
/// word `saw` of a register is like that of an item, with `-` for a register without a value.
#[must_use]
pub fn read_write(reads: &[Key], writes: &[(Key, Value)]) -> String {
    let predicate = Family::Register.predicate();
    let saw_predicate = format!("<{BASE}register-saw>");
    let (mut deletes, mut inserts, mut patterns) = (String::new(), String::new(), String::new());
    let mut seen = Vec::new();
    for (place, key) in reads.iter().enumerate() {
        let register = iri(Family::Register, *key);
        let triple = in_graph(*key, &format!("<{register}> {predicate} ?r{place}"));
        line!(patterns, "  OPTIONAL {{ {triple} }}");
        seen.push(format!("\"{}=\", COALESCE(STR(?r{place}), \"-\")", key.0));
    }
    if !reads.is_empty() {
        line!(
            patterns,
            "  BIND(CONCAT({}) AS ?saw)",
            seen.join(", \" \", ")
        );
    }
    for (place, (key, value)) in writes.iter().enumerate() {
        let register = iri(Family::Register, *key);
        let old = format!("<{register}> {predicate} ?old{place}");
        let old_saw = format!("<{register}> {saw_predicate} ?oldsaw{place}");
        for old in [old, old_saw] {
            let old = in_graph(*key, &old);
            line!(deletes, "  {old} .");
            line!(patterns, "  OPTIONAL {{ {old} }}");
        }
        let saw = match reads {
            [] => String::new(),
            _ => format!(" ; {saw_predicate} ?saw"),
        };
        let new = format!("<{register}> {predicate} {value}{saw} .");
        line!(inserts, "  {}", in_graph(*key, &new));
    }
    format!("DELETE {{\n{deletes}}}\nINSERT {{\n{inserts}}}\nWHERE {{\n{patterns}}}")
}

/// A query for the numbers of registers, counters or accounts, which [`super::decode_numbers`] reads.
#[must_use]
pub fn read_numbers(family: Family, keys: &[Key]) -> String {
    let predicate = family.predicate();
    let one = |key: &Key| {
        let subject = iri(family, *key);
        let pattern = format!(
            "<{subject}> {predicate} ?value OPTIONAL {{ <{subject}> <{BASE}register-saw> ?saw }}"
        );
        format!(
            "  {{ {} BIND(<{subject}> AS ?key) }}",
            in_graph(*key, &pattern)
        )
    };
    let subjects: Vec<String> = keys.iter().map(one).collect();
    let subjects = subjects.join("\n  UNION\n");
    format!("SELECT ?key ?value ?saw WHERE {{\n{subjects}\n}}")
}

/// An update that adds to counters, each of which is there.
#[must_use]
pub fn increment(by: &[(Key, u32)]) -> String {
    let changes = by.iter().map(|(key, by)| (*key, i64::from(*by)));
    change(Family::Counter, &changes.collect::<Vec<_>>(), "")
}

/// An update that moves an amount from one account to another, if the first has as much.
///
/// # Panics
/// If both are one account.
#[must_use]
pub fn transfer(from: Key, to: Key, amount: u32) -> String {
    assert_ne!(from, to, "a transfer has two accounts");
    let by = i64::from(amount);
    let covered = format!("  FILTER(?old0 >= {amount})\n");
    change(Family::Account, &[(from, -by), (to, by)], &covered)
}

fn change(family: Family, changes: &[(Key, i64)], filter: &str) -> String {
    let predicate = family.predicate();
    let (mut deletes, mut inserts, mut patterns) = (String::new(), String::new(), String::new());
    for (place, (key, by)) in changes.iter().enumerate() {
        let subject = iri(family, *key);
        let old = in_graph(*key, &format!("<{subject}> {predicate} ?old{place}"));
        let new = in_graph(*key, &format!("<{subject}> {predicate} ?new{place}"));
        line!(deletes, "  {old} .");
        line!(inserts, "  {new} .");
        line!(patterns, "  {old} .");
        line!(patterns, "  BIND(?old{place} + {by} AS ?new{place})");
    }
    format!("DELETE {{\n{deletes}}}\nINSERT {{\n{inserts}}}\nWHERE {{\n{patterns}{filter}}}")
}
