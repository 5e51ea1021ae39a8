//! Random small graphs, and random queries of them.

use super::{Quads, TYPE};

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % bound
    }
}

pub(crate) fn data(random: &mut Random) -> Quads {
    let mut quads = Quads::new();
    for _ in 0..6 + random.below(14) {
        let graph = match random.below(4) {
            0 => "http://e/c0".to_owned(),
            1 => "http://e/c1".to_owned(),
            _ => String::new(),
        };
        let node = |random: &mut Random| format!("http://e/c{}", random.below(5));
        let (predicate, object) = match random.below(5) {
            0 => (TYPE.to_owned(), format!("http://e/T{}", random.below(2))),
            _ => (format!("http://e/p{}", random.below(3)), node(random)),
        };
        quads.insert((graph, node(random), predicate, object));
    }
    quads
}

fn variable(random: &mut Random) -> String {
    format!("?{}", ["a", "b", "c", "d", "g"][random.below(5) as usize])
}

fn end(random: &mut Random) -> String {
    match random.below(6) {
        0 => format!("e:c{}", random.below(5)),
        1 => "_:x".to_owned(),
        _ => variable(random),
    }
}

fn path(random: &mut Random, depth: u64) -> String {
    let inner = |random: &mut Random| path(random, depth - 1);
    match random.below(if depth == 0 { 3 } else { 10 }) {
        0 => "a".to_owned(),
        1 | 2 => format!("e:p{}", random.below(3)),
        3 => format!("(^{})", inner(random)),
        4 => format!("({}/{})", inner(random), inner(random)),
        5 => format!("({}|{})", inner(random), inner(random)),
        6 => format!("({}?)", inner(random)),
        7 => format!("({}*)", inner(random)),
        8 => format!("({}+)", inner(random)),
        _ => match random.below(3) {
            0 => "!a".to_owned(),
            1 => format!("!(e:p{}|^e:p{})", random.below(3), random.below(3)),
            _ => format!("!(^e:p{})", random.below(3)),
        },
    }
}

fn triple(random: &mut Random) -> String {
    match random.below(10) {
        8 | 9 => format!("{} {} {} .", end(random), path(random, 3), end(random)),
        0 => format!("{} a e:T{} .", variable(random), random.below(2)),
        1 => format!(
            "{} {} {} .",
            variable(random),
            variable(random),
            variable(random)
        ),
        2 => format!("{} a {} .", variable(random), variable(random)),
        _ => format!("{} e:p{} {} .", end(random), random.below(3), end(random)),
    }
}

fn condition(random: &mut Random, depth: u64) -> String {
    match random.below(if depth == 0 { 6 } else { 8 }) {
        6 => format!("EXISTS {}", group(random, depth - 1)),
        7 => format!("NOT EXISTS {}", group(random, depth - 1)),
        0 => format!("BOUND({})", variable(random)),
        1 => format!("!BOUND({})", variable(random)),
        2 => format!("{} = e:c{}", variable(random), random.below(5)),
        3 => format!(
            "({} || {})",
            condition(random, depth),
            condition(random, depth)
        ),
        4 => format!(
            "({} && {})",
            condition(random, depth),
            condition(random, depth)
        ),
        _ => format!("{} != {}", variable(random), variable(random)),
    }
}

/// A nested SELECT. Without an order a slice is only determined if it passes all rows or none.
fn subquery(random: &mut Random, depth: u64) -> String {
    let inner = group(random, depth);
    let (a, b) = (variable(random), variable(random));
    match random.below(8) {
        0 | 1 => format!("{{ SELECT {a} {inner} }}"),
        2 => format!("{{ SELECT DISTINCT {a} {b} {inner} }}"),
        3 => format!("{{ SELECT * {inner} LIMIT 1000 }}"),
        4 => format!("{{ SELECT {a} {inner} OFFSET 1000 }}"),
        5 => format!("{{ SELECT (COUNT(*) AS {a}) {inner} }}"),
        6 => format!("{{ SELECT {a} (COUNT(*) AS ?n) {inner} GROUP BY {a} }}"),
        _ => format!(
            "{{ SELECT {a} {inner} GROUP BY {a} {b} HAVING({}) }}",
            condition(random, depth)
        ),
    }
}

pub(crate) fn group(random: &mut Random, depth: u64) -> String {
    let mut text = String::from("{ ");
    for _ in 0..1 + random.below(3) {
        let element = match random.below(if depth == 0 { 7 } else { 18 }) {
            0..=3 => triple(random).replace("_:x", &format!("_:x{}", random.below(1_000_000))),
            4 => format!("FILTER({})", condition(random, depth)),
            5 => {
                let cell = |random: &mut Random| match random.below(3) {
                    0 => "UNDEF".to_owned(),
                    _ => format!("e:c{}", random.below(5)),
                };
                let rows: Vec<String> = (0..1 + random.below(2))
                    .map(|_| format!("({} {})", cell(random), cell(random)))
                    .collect();
                format!(
                    "VALUES ({} {}) {{ {} }}",
                    variable(random),
                    variable(random),
                    rows.join(" ")
                )
            }
            6 => {
                let value = match random.below(2) {
                    0 => variable(random),
                    _ => format!("e:c{}", random.below(5)),
                };
                format!("BIND({value} AS {})", variable(random))
            }
            7..=9 => format!("OPTIONAL {}", group(random, depth - 1)),
            10 => group(random, depth - 1),
            11 => format!("GRAPH {} {}", variable(random), group(random, depth - 1)),
            13 | 14 => format!("MINUS {}", group(random, depth - 1)),
            15 | 16 => subquery(random, depth - 1),
            12 => format!("GRAPH e:c{} {}", random.below(3), group(random, depth - 1)),
            _ => format!(
                "{} UNION {}",
                group(random, depth - 1),
                group(random, depth - 1)
            ),
        };
        text.push_str(&element);
        text.push(' ');
    }
    text + "}"
}
