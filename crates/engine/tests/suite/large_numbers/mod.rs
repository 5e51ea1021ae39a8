//! Do queries take integers and decimals of any length by their values?

mod naive;

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::{Config, Database, LoadOptions, QueryResults};
use naive::Naive;
use oxrdf::{Literal, NamedNode, Term};

const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
const SEEDS: [u64; 4] = [1, 2, 3, 4];
/// Numbers of a data set: with each other in pairs they are more than one batch.
const NUMBERS: usize = 70;
/// What is near to these is drawn: where ids, words, doubles and decimals end.
const NEAR: [&str; 12] = [
    "0",
    "9007199254740992",
    "576460752303423488",
    "1000000000000000000",
    "9223372036854775808",
    "18446744073709551616",
    "170141183460469231731",
    "170141183460469231731687303715884105728",
    "340282366920938463463374607431768211456",
    "10000000000000000000000000000000000000000",
    "115792089237316195423570985008687907853269984665640564039457584007913129639936",
    "7",
];

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end) as usize
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64)]
    }

    /// A literal that is an integer, or perhaps a decimal, in any spelling.
    fn number(&mut self) -> Literal {
        let near = Naive::parse(self.pick(&NEAR));
        let offset = ["-2", "-1", "0", "0", "1", "2", "58"];
        let mut text = near.plus(&Naive::parse(self.pick(&offset))).text();
        if self.below(2) == 0 {
            text = Naive::parse(&text).negated().text();
        }
        let unsigned = text.trim_start_matches('-').to_owned();
        let is_negative = text.starts_with('-');
        let sign = if is_negative {
            "-"
        } else {
            self.pick(&["", "", "+"])
        };
        let zeros = "0".repeat([0, 0, 1, 30][self.below(4)]);
        let datatype = if self.below(2) == 0 {
            let points = [
                "",
                ".0",
                ".5",
                ".50000000000000000000000",
                ".000000000000000001",
                ".0000000000000000001",
                ".00000000000000000000000000000000000000070",
                ".9999999999999999999999",
            ];
            text = format!("{sign}{zeros}{unsigned}{}", self.pick(&points));
            "decimal"
        } else {
            text = format!("{sign}{zeros}{unsigned}");
            match self.below(4) {
                0 if !is_negative => "nonNegativeInteger",
                0 if unsigned != "0" => "negativeInteger",
                1 if text.parse::<u64>().is_ok() => "unsignedLong",
                1 if text.parse::<i64>().is_ok() => "long",
                _ => "integer",
            }
        };
        Literal::new_typed_literal(text, NamedNode::new_unchecked(format!("{XSD}{datatype}")))
    }

    fn numbers(&mut self) -> Vec<Literal> {
        (0..NUMBERS).map(|_| self.number()).collect()
    }
}

fn value(literal: &Literal) -> Naive {
    Naive::parse(literal.value())
}

fn is_decimal(literal: &Literal) -> bool {
    literal.datatype().as_str().ends_with("#decimal")
}

/// `:s0 :i 0 ; :v` the first literal, and so on, in some of three groups.
fn database(literals: &[Literal]) -> Database {
    let mut text = String::new();
    for (number, literal) in literals.iter().enumerate() {
        let group = number % 3;
        writeln!(
            text,
            "<http://e/s{number}> <http://e/i> {number} ; <http://e/v> {literal} ; \
             <http://e/g> {group} ."
        )
        .unwrap();
    }
    let mut config = Config::default();
    config.threads = 2;
    let database = Database::with_config(config);
    let source = Source::bytes("data.ttl", text.into_bytes());
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .unwrap();
    database
}

fn rows(database: &Database, query: &str) -> Vec<Vec<Option<Term>>> {
    let text = format!("PREFIX : <http://e/> PREFIX xsd: <{XSD}> {query}");
    let QueryResults::Solutions(solutions) = database.query(&text).unwrap() else {
        panic!("no SELECT: {query}")
    };
    let names = solutions.variables().to_vec();
    let row = |solution: jindou_engine::Solution| {
        let cells = names
            .iter()
            .map(|name| solution.get(name.as_str()).cloned());
        cells.collect()
    };
    solutions.map(|solution| row(solution.unwrap())).collect()
}

/// The numbers in each row.
fn indices(database: &Database, query: &str) -> Vec<Vec<usize>> {
    let number = |cell: &Option<Term>| match cell {
        Some(Term::Literal(literal)) => literal.value().parse().unwrap(),
        other => panic!("{query}: {other:?}"),
    };
    let rows = rows(database, query);
    rows.iter()
        .map(|row| row.iter().map(number).collect())
        .collect()
}

fn literals_of(database: &Database, query: &str) -> Vec<Option<Literal>> {
    let literal = |row: Vec<Option<Term>>| match row.into_iter().next().flatten() {
        Some(Term::Literal(literal)) => Some(literal),
        Some(other) => panic!("{query}: {other}"),
        None => None,
    };
    rows(database, query).into_iter().map(literal).collect()
}

type Holds = fn(Ordering) -> bool;

const OPERATORS: [(&str, Holds); 6] = [
    ("=", Ordering::is_eq),
    ("!=", Ordering::is_ne),
    ("<", Ordering::is_lt),
    ("<=", Ordering::is_le),
    (">", Ordering::is_gt),
    (">=", Ordering::is_ge),
];

#[test]
fn filters_compare_by_value() {
    for seed in SEEDS {
        let mut random = Random(seed);
        let numbers = random.numbers();
        let database = database(&numbers);
        let values: Vec<Naive> = numbers.iter().map(value).collect();
        for (operator, holds) in OPERATORS {
            let query = format!(
                "SELECT ?i ?j {{ ?x :i ?i ; :v ?a . ?y :i ?j ; :v ?b FILTER(?a {operator} ?b) }}"
            );
            let got: BTreeSet<Vec<usize>> = indices(&database, &query).into_iter().collect();
            for (i, left) in values.iter().enumerate() {
                for (j, right) in values.iter().enumerate() {
                    let (a, b) = (&numbers[i], &numbers[j]);
                    let expected = holds(left.compare(right));
                    let got = got.contains(&vec![i, j]);
                    assert_eq!(got, expected, "seed {seed}: {a} {operator} {b}");
                }
            }
        }
        let small = Literal::from(5_i64);
        for constant in numbers.iter().take(12).chain([&small]) {
            for (operator, holds) in OPERATORS {
                let query =
                    format!("SELECT ?i {{ ?x :i ?i ; :v ?a FILTER(?a {operator} {constant}) }}");
                let got: BTreeSet<usize> =
                    indices(&database, &query).concat().into_iter().collect();
                for (i, left) in values.iter().enumerate() {
                    let expected = holds(left.compare(&value(constant)));
                    let a = &numbers[i];
                    let got = got.contains(&i);
                    assert_eq!(got, expected, "seed {seed}: {a} {operator} {constant}");
                }
            }
        }
    }
}

#[test]
fn lists_hold_what_is_equal() {
    for seed in SEEDS {
        let mut random = Random(seed);
        let numbers = random.numbers();
        let database = database(&numbers);
        for list in numbers.chunks(5) {
            let text: Vec<String> = list.iter().map(Literal::to_string).collect();
            for (operator, wanted) in [("IN", true), ("NOT IN", false)] {
                let text = text.join(", ");
                let query =
                    format!("SELECT ?i {{ ?x :i ?i ; :v ?a FILTER(?a {operator} ({text})) }}");
                let got: BTreeSet<usize> =
                    indices(&database, &query).concat().into_iter().collect();
                for (i, number) in numbers.iter().enumerate() {
                    let is_in = list
                        .iter()
                        .any(|one| value(one).compare(&value(number)).is_eq());
                    let got = got.contains(&i);
                    assert_eq!(
                        got,
                        is_in == wanted,
                        "seed {seed}: {number} {operator} {text}"
                    );
                }
            }
        }
    }
}

#[test]
fn order_by_goes_by_value() {
    for seed in SEEDS {
        let mut random = Random(seed);
        let numbers = random.numbers();
        let database = database(&numbers);
        let values: Vec<Naive> = numbers.iter().map(value).collect();
        let mut ranks: Vec<usize> = (0..NUMBERS).collect();
        ranks.sort_by(|left, right| values[*left].compare(&values[*right]));
        for (order, reversed) in [("?a", false), ("DESC(?a)", true)] {
            for limit in [NUMBERS, 7] {
                let query =
                    format!("SELECT ?i {{ ?x :i ?i ; :v ?a }} ORDER BY {order} LIMIT {limit}");
                let got = indices(&database, &query).concat();
                assert_eq!(got.len(), limit, "seed {seed}: {query}");
                let expected: Vec<usize> = if reversed {
                    ranks.iter().rev().copied().collect()
                } else {
                    ranks.clone()
                };
                for (got, expected) in got.iter().zip(expected) {
                    let (left, right) = (&numbers[*got], &numbers[expected]);
                    let order = values[*got].compare(&values[expected]);
                    assert!(order.is_eq(), "seed {seed}: {left} in the place of {right}");
                }
            }
        }
    }
}

#[test]
fn min_max_sum_and_avg_go_by_value() {
    for seed in SEEDS {
        let mut random = Random(seed);
        let numbers = random.numbers();
        let database = database(&numbers);
        for group in 0..3 {
            let members = || numbers.iter().skip(group).step_by(3);
            let aggregate = |aggregate: &str| {
                let query = format!(
                    "SELECT ({aggregate}(?a) AS ?r) {{ ?x :g {group} ; :v ?a }} GROUP BY ?g"
                );
                let found = literals_of(&database, &query);
                assert_eq!(found.len(), 1);
                found[0]
                    .clone()
                    .unwrap_or_else(|| panic!("seed {seed}: {query}"))
            };
            let order = |left: &&Literal, right: &&Literal| value(left).compare(&value(right));
            let least = members().min_by(order).unwrap();
            let greatest = members().max_by(order).unwrap();
            for (name, expected) in [("MIN", least), ("MAX", greatest)] {
                let got = aggregate(name);
                let order = value(&got).compare(&value(expected));
                assert!(
                    order.is_eq(),
                    "seed {seed}: {name} is {got}, not {expected}"
                );
            }
            let sum = members().fold(Naive::parse("0"), |sum, one| sum.plus(&value(one)));
            let got = aggregate("SUM");
            assert_eq!(got.value(), sum.text(), "seed {seed}");
            assert_eq!(is_decimal(&got), members().any(is_decimal), "seed {seed}");
            let count = Naive::parse(&members().count().to_string());
            let average = aggregate("AVG");
            check_quotient(&sum, &count, &average, &format!("seed {seed}: AVG"));
        }
    }
}

/// A quotient is cut towards zero after 18 digits behind the point or more.
fn check_quotient(dividend: &Naive, divisor: &Naive, quotient: &Literal, what: &str) {
    assert!(is_decimal(quotient), "{what}: {quotient}");
    let absolute = |number: Naive| match number.compare(&Naive::parse("0")) {
        Ordering::Less => number.negated(),
        _ => number,
    };
    let back = value(quotient).times(divisor);
    let rest = absolute(dividend.plus(&back.negated()));
    let last_digit = Naive::parse("0.000000000000000001");
    let limit = absolute(divisor.clone()).times(&last_digit);
    assert!(rest.compare(&limit).is_lt(), "{what}: {quotient}");
    let is_cut = absolute(back).compare(&absolute(dividend.clone())).is_le();
    assert!(is_cut, "{what}: {quotient}");
}

#[test]
fn arithmetic_is_exact() {
    for seed in SEEDS {
        let mut random = Random(seed);
        let (left, right) = (random.numbers(), random.numbers());
        let pairs = || left.iter().zip(&right);
        let values: Vec<String> = pairs().map(|(a, b)| format!("({a} {b})")).collect();
        let database = database(&[]);
        let values = values.join(" ");
        let results = |expression: &str| {
            let query =
                format!("SELECT ?r {{ VALUES (?a ?b) {{ {values} }} BIND({expression} AS ?r) }}");
            literals_of(&database, &query)
        };
        type Exact = fn(&Naive, &Naive) -> Naive;
        let operators: [(&str, Exact); 5] = [
            ("?a + ?b", |a, b| a.plus(b)),
            ("?a - ?b", |a, b| a.plus(&b.negated())),
            ("?a * ?b", |a, b| a.times(b)),
            ("-?a", |a, _| a.negated()),
            ("ABS(?a)", |a, _| match a.compare(&Naive::parse("0")) {
                Ordering::Less => a.negated(),
                _ => a.clone(),
            }),
        ];
        for (expression, exact) in operators {
            for ((a, b), got) in pairs().zip(results(expression)) {
                let got = got.unwrap_or_else(|| panic!("seed {seed}: {expression} of {a} {b}"));
                let expected = exact(&value(a), &value(b)).text();
                assert_eq!(
                    got.value(),
                    expected,
                    "seed {seed}: {expression} of {a} {b}"
                );
                let decimal = is_decimal(a) || expression.contains('b') && is_decimal(b);
                let name = if decimal { "decimal" } else { "integer" };
                let datatype = got.datatype().as_str();
                assert_eq!(datatype, format!("{XSD}{name}"), "{expression} of {a} {b}");
            }
        }
        for ((a, b), got) in pairs().zip(results("?a / ?b")) {
            let what = format!("seed {seed}: {a} / {b}");
            if value(b).compare(&Naive::parse("0")).is_eq() {
                assert_eq!(got, None, "{what}");
            } else {
                let got = got.unwrap_or_else(|| panic!("{what}"));
                check_quotient(&value(a), &value(b), &got, &what);
            }
        }
        for (function, half, is_up) in [
            ("FLOOR", "0", false),
            ("CEIL", "0", true),
            ("ROUND", "0.5", false),
        ] {
            for ((a, _), got) in pairs().zip(results(&format!("{function}(?a)"))) {
                let got = got.unwrap_or_else(|| panic!("seed {seed}: {function}({a})"));
                let rounded = value(&got);
                // FLOOR(x) <= x < FLOOR(x) + 1; ROUND(x) is FLOOR(x + 0.5).
                let moved = value(a).plus(&Naive::parse(half));
                let one = Naive::parse(if is_up { "-1" } else { "1" });
                let (near, far) = (moved.compare(&rounded), moved.compare(&rounded.plus(&one)));
                let fits = if is_up {
                    near.is_le() && far.is_gt()
                } else {
                    near.is_ge() && far.is_lt()
                };
                assert!(
                    fits && !got.value().contains('.'),
                    "seed {seed}: {function}({a}) is {got}"
                );
            }
        }
    }
}

#[test]
fn doubles_compare_with_the_nearest_double_of_a_large_number() {
    let doubles = [
        "1e0",
        "9223372036854775807e0",
        "1.8446744073709552e19",
        "3.402823669209385e38",
        "-1e40",
        "INF",
        "-INF",
        "NaN",
    ];
    for seed in SEEDS {
        let mut random = Random(seed);
        let mut numbers = random.numbers();
        let double = |text: &&str| {
            Literal::new_typed_literal(*text, NamedNode::new_unchecked(format!("{XSD}double")))
        };
        numbers.extend(doubles.iter().map(double));
        let number = |literal: &Literal| literal.value().parse::<f64>().unwrap();
        let database = database(&numbers);
        let is_double = |i: usize| i >= NUMBERS;
        for (operator, holds) in OPERATORS {
            let query = format!(
                "SELECT ?i ?j {{ ?x :i ?i ; :v ?a . ?y :i ?j ; :v ?b FILTER(?a {operator} ?b) }}"
            );
            let got: BTreeSet<Vec<usize>> = indices(&database, &query).into_iter().collect();
            for i in 0..numbers.len() {
                for j in (0..numbers.len()).filter(|j| is_double(i) || is_double(*j)) {
                    let (a, b) = (&numbers[i], &numbers[j]);
                    let expected = match number(a).partial_cmp(&number(b)) {
                        Some(order) => holds(order),
                        None => operator == "!=",
                    };
                    assert_eq!(
                        got.contains(&vec![i, j]),
                        expected,
                        "seed {seed}: {a} {operator} {b}"
                    );
                }
            }
        }
        // Sorted, no number comes before one that is less.
        let sorted = indices(&database, "SELECT ?i { ?x :i ?i ; :v ?a } ORDER BY ?a").concat();
        assert_eq!(sorted.len(), numbers.len());
        for (place, later) in sorted.iter().enumerate() {
            for earlier in &sorted[..place] {
                let (a, b) = (&numbers[*earlier], &numbers[*later]);
                let order = if is_double(*earlier) || is_double(*later) {
                    number(a).partial_cmp(&number(b))
                } else {
                    Some(value(a).compare(&value(b)))
                };
                assert_ne!(
                    order,
                    Some(Ordering::Greater),
                    "seed {seed}: {a} before {b}"
                );
            }
        }
    }
}

#[test]
fn terms_of_one_value_stay_apart() {
    let literal = |text: &str, datatype: &str| {
        Literal::new_typed_literal(text, NamedNode::new_unchecked(format!("{XSD}{datatype}")))
    };
    let database = database(&[
        literal("9223372036854775808", "integer"),
        literal("09223372036854775808", "integer"),
        literal("9223372036854775808", "decimal"),
        literal("9223372036854775808.0", "decimal"),
        literal("9223372036854775808", "unsignedLong"),
    ]);
    let count = |query: &str| indices(&database, query).concat();
    let distinct = "SELECT (COUNT(DISTINCT ?a) AS ?n) { ?x :v ?a }";
    assert_eq!(count(distinct), [5]);
    let joined = "SELECT (COUNT(*) AS ?n) { ?x :v ?a . ?y :v ?a }";
    assert_eq!(count(joined), [5]);
    let same = "SELECT (COUNT(*) AS ?n) { ?x :v ?a . ?y :v ?b FILTER(sameTerm(?a, ?b)) }";
    assert_eq!(count(same), [5]);
    let equal = "SELECT (COUNT(*) AS ?n) { ?x :v ?a . ?y :v ?b FILTER(?a = ?b) }";
    assert_eq!(count(equal), [25]);
    let values = "SELECT (COUNT(*) AS ?n) { VALUES ?a { 9223372036854775808 } ?x :v ?a }";
    assert_eq!(count(values), [1]);
    let groups = "SELECT (COUNT(*) AS ?n) { { SELECT ?a { ?x :v ?a } GROUP BY ?a } }";
    assert_eq!(count(groups), [5]);
    // A computed term is the one that the data has.
    let computed = "SELECT (COUNT(*) AS ?n) { BIND(9223372036854775807 + 1 AS ?a) ?x :v ?a }";
    assert_eq!(count(computed), [1]);
}

#[test]
fn a_number_outside_of_its_type_is_none() {
    let literal = |text: &str, datatype: &str| {
        Literal::new_typed_literal(text, NamedNode::new_unchecked(format!("{XSD}{datatype}")))
    };
    let database = database(&[
        literal("9223372036854775808", "long"),
        literal("18446744073709551616", "unsignedLong"),
        literal("-9223372036854775809", "nonNegativeInteger"),
        literal("9223372036854775808", "negativeInteger"),
        literal("9223372036854775808.0", "integer"),
        literal("9223372036854775808e0", "decimal"),
        literal("", "integer"),
    ]);
    let query = "SELECT ?i { ?x :i ?i ; :v ?a FILTER(isNumeric(?a) || ?a > 0 || ?a < 0) }";
    assert!(indices(&database, query).is_empty());
}

#[test]
fn results_of_too_many_digits_are_errors() {
    let database = database(&[]);
    let long = format!("1{}", "0".repeat(1000));
    let result = |expression: &str| {
        literals_of(&database, &format!("SELECT ({expression} AS ?r) {{}}"))[0].clone()
    };
    assert_eq!(
        result(&format!("{long} * 10")).unwrap().value(),
        format!("{long}0")
    );
    assert_eq!(result(&format!("{long} * {long}")), None);
    assert_eq!(result(&format!("1 / {long} / {long}")), None);
    // An operand that is too long is compared all the same.
    let longer = format!("{long}{long}");
    assert_eq!(
        result(&format!("{longer} > {long}")).unwrap().value(),
        "true"
    );
    assert_eq!(
        result(&format!("-{longer} < -{long}")).unwrap().value(),
        "true"
    );
    assert_eq!(result(&format!("{longer} + 1")), None);
}

#[test]
fn operators_side_by_side_are_not_nested_however_many_there_are() {
    let database = database(&[Literal::from(3_i64), Literal::from(4_i64)]);
    for count in [1, 255, 256, 257, 600, 10_000] {
        let sum = " + 2 - 1".repeat(count);
        let product = " * 2 / 2".repeat(count);
        for (expression, expected) in [
            (format!("?a{sum}"), 3 + count),
            (format!("?a{product}"), 3),
            (format!("1{sum} + ?a"), 4 + count),
            (format!("?a * 1{product}"), 3),
            (format!("(?a{sum}) * (1{product})"), 3 + count),
        ] {
            let what = format!("{count} pairs of operators");
            let bound = format!("SELECT ?r {{ :s0 :v ?a BIND({expression} AS ?r) }}");
            assert_eq!(indices(&database, &bound), [[expected]], "{what}");
            let kept =
                format!("SELECT ?i {{ ?x :i ?i ; :v ?a FILTER({expression} = {expected}) }}");
            assert_eq!(indices(&database, &kept), [[0]], "{what}");
            let greatest = format!("SELECT (MIN({expression}) AS ?r) {{ ?x :v ?a }}");
            assert_eq!(indices(&database, &greatest), [[expected]], "{what}");
        }
    }
}
