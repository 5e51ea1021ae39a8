//! Do patterns with back-references match what XPath says, within their bounds?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use regex::Regex;

use super::support::{Cells, Sample, Sequence, World};
use crate::Terms;
use crate::expr::backtrack::{Group, Matcher, Modes, Program};
use crate::expr::pattern::{Pattern, PatternError};
use crate::expr::{Context, ExprError};

/// Whether a pattern matches; `None` if it is none.
fn is_match(pattern: &str, flags: &str, text: &str) -> Option<bool> {
    let cx = World::default().context();
    match Pattern::compile(pattern, flags, &cx) {
        Ok(pattern) => Some(pattern.is_match(text, &cx).expect("it takes few steps")),
        Err(PatternError::Invalid) => None,
        Err(other) => panic!("{pattern}: {other:?}"),
    }
}

#[test]
fn references_match_what_their_groups_did() {
    for (pattern, flags, text, expected) in [
        (r"(.)\1", "", "hello", true),
        (r"(.)\1", "", "helo", false),
        (r"^(a+)b\1$", "", "aabaa", true),
        (r"^(a+)b\1$", "", "aaba", false),
        (r#"('|").*\1"#, "", r#"say 'x"y'"#, true),
        (r#"('|").*\1"#, "", r#"say 'x""#, false),
        (r"^(\w+) \1$", "", "so so", true),
        (r"^(?:x)(a)\1$", "", "xaa", true),
        (r"^(a(b)(c))\2\3\1$", "", "abcbcabc", true),
        (r"^((.)\2)+$", "", "aabb", true),
        (r"^((.)\2)+$", "", "aab", false),
        // The shortest first, then longer ones.
        (r"^(a+?)\1{2}$", "", "aaaaaa", true),
        (r"^(aa+)\1+$", "", "aaaaaaa", false),
        (r"^(aa+)\1+$", "", "aaaaaaaaa", true),
        // The last of what a group matched counts.
        (r"^(a|b)+\1$", "", "abb", true),
        (r"^(a|b)+\1$", "", "aba", false),
        // A group that matched nothing stands for the empty string.
        (r"^(a)?\1b$", "", "b", true),
        (r"^(?:(a)|b)\1$", "", "b", true),
        (r"^(a*)\1*$", "", "", true),
        // Flags.
        (r"^(a)\1$", "i", "aA", true),
        (r"^(a)\1$", "", "aA", false),
        (r"^(.)\1$", "i", "\u{e9}\u{c9}", true),
        (r"^(.)\1$", "i", "k\u{212a}", true),
        (r"^(.)\1$", "", "k\u{212a}", false),
        (r"^(.)\1$", "i", "ab", false),
        (r"^(.)\1$", "", "\n\n", false),
        (r"^(.)\1$", "s", "\n\n", true),
        (r"^(.)\1$", "", "x\naa\ny", false),
        (r"^(.)\1$", "m", "x\naa\ny", true),
        (r"^ ( . ) \1 $", "x", "aa", true),
        (r"^(.)[ ]\1$", "x", "a a", true),
        (r"(a)\1", "q", r"(a)\1", true),
        (r"(a)\1", "q", "aa", false),
        // More digits belong to a reference as long as there are as many groups before it.
        (r"^(a)\10$", "", "aa0", true),
        (
            r"^(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\10$",
            "",
            "abcdefghijj",
            true,
        ),
        (
            r"^(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\11$",
            "",
            "abcdefghija1",
            true,
        ),
        (r"^(a)\1 0$", "x", "aa0", true),
    ] {
        let got = is_match(pattern, flags, text);
        assert_eq!(got, Some(expected), "{pattern} with {flags:?} in {text:?}");
    }
}

#[test]
fn references_to_no_closed_group_are_malformed() {
    for pattern in [
        r"\1",
        r"(a)\2",
        r"(a\1)",
        r"\1(a)",
        r"((a)\1)",
        r"(a)[\1]",
        r"(?:a)\1",
        r"(a)\0",
        r"(?P<n>a)\1",
        r"(?i)(a)\1",
        r"(a)\1(",
        r"(a)\1)",
        r"(a)\1\b",
        r"(a)\1{2,1}",
    ] {
        assert_eq!(is_match(pattern, "", "aa"), None, "{pattern}");
    }
}

#[test]
fn replace_takes_groups_of_patterns_with_references() {
    for (text, pattern, replacement, expected) in [
        ("hello wood", r"(.)\1", "<$1>", Some("he<l>o w<o>d")),
        ("hello wood", r"(.)\1", "", Some("heo wd")),
        ("aabbc", r"((.)\2)", "[$1$2$0$3]", Some("[aaaaa][bbbbb]c")),
        (
            "the the cat sat sat",
            r"(\i+) \1",
            "$1",
            Some("the cat sat"),
        ),
        (
            "\u{e9}\u{e9}x",
            r"(.)\1",
            "$1$1$1",
            Some("\u{e9}\u{e9}\u{e9}x"),
        ),
        ("abc", r"(.)\1", "x", Some("abc")),
        ("", r"(.)\1", "x", Some("")),
        // FORX0003 and FORX0004.
        ("aa", r"(a)?\1", "x", None),
        ("aa", r"(a)\1", "$", None),
        ("aa", r"(a)\1", r"\x", None),
    ] {
        let cx = World::default().context();
        let compiled = Pattern::compile(pattern, "", &cx).expect("a pattern");
        let got = compiled.replace(text, replacement, &cx);
        let expected = expected.map(str::to_owned).ok_or(ExprError::Value);
        assert_eq!(got, expected, "{pattern} in {text}");
    }
}

#[test]
fn queries_match_references_of_constants_and_of_rows() {
    let world = World::default();
    let cx = world.context();
    let row = Cells(vec![
        world.insert("\"abab\""),
        world.insert(r#""^(..)\\1$""#),
    ]);
    for (text, expected) in [
        (r#"REGEX(?a, "^(..)\\1$")"#, "true"),
        (r#"REGEX(?a, "^(.)\\1$")"#, "false"),
        (r#"!REGEX(?a, "^(.)\\1$")"#, "true"),
        ("REGEX(?a, ?b)", "true"),
        (r#"REGEX(UCASE(?a), "^(ab)\\1$", "i")"#, "true"),
        (r#"REPLACE(?a, "(b)(a)", "$2$1")"#, "\"aabb\""),
        (r#"REPLACE(?a, "(.)(.)\\1\\2", "$2$1")"#, "\"ba\""),
        (r#"REPLACE(?a, ?b, "x")"#, "\"x\""),
    ] {
        let id = Sample::parse(text).compile(&cx).evaluate_id(&row, &cx);
        let term = cx.terms().term(id).unwrap().expect("a value").to_string();
        assert!(
            term.starts_with(expected) || term.starts_with(&format!("\"{expected}\"")),
            "{text}: {term}"
        );
    }
    let filter = Sample::parse(r#"REGEX(?a, "^(..)\\1$")"#).compile(&cx);
    let table = super::support::Table {
        columns: vec![
            ["\"abab\"", "\"abba\"", "\"xyxy\"@en", "<http://e/>"]
                .map(|term| world.insert(term))
                .into(),
        ],
    };
    let mut keep = Vec::new();
    filter.evaluator().filter(&table, 4, &cx, &mut keep);
    assert_eq!(keep, [0, 2]);
}

#[test]
fn only_patterns_with_references_leave_the_linear_engine() {
    let cx = World::default().context();
    for (pattern, flags, is_linear) in [
        ("a", "", true),
        ("(a)(b)", "", true),
        (r"(a)\\1", "", true),
        (r"(a)\1", "q", true),
        (r"\d[\s\S]{3}(?:x|y)*", "smix", true),
        (r"(a)\1", "", false),
        (r"(a)\1", "smix", false),
    ] {
        let compiled = Pattern::compile(pattern, flags, &cx).expect("a pattern");
        assert_eq!(
            compiled.as_linear().is_some(),
            is_linear,
            "{pattern} with {flags:?}"
        );
    }
}

/// A pattern that takes exponential time, and a text for it.
const ENDLESS: (&str, &str) = (
    r"^(a|aa)+(b)\2$",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab",
);

#[test]
fn a_match_without_end_is_refused_by_name() {
    let cx = World::default().context();
    let pattern = Pattern::compile(ENDLESS.0, "", &cx).expect("a pattern");
    assert_eq!(pattern.is_match(ENDLESS.1, &cx), Err(ExprError::Refused));
    let refusal = cx.refusal().expect("a refusal").to_owned();
    assert!(refusal.contains("134217728 steps"), "{refusal}");
    // Further rows of the query take no time.
    assert_eq!(pattern.is_match("b", &cx), Err(ExprError::Refused));
}

#[test]
fn a_match_looks_at_the_limits_of_the_query() {
    const LOOKS: u64 = 30;
    let mut cx = World::default().context();
    let looks = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&looks);
    cx.watch(Arc::new(move |_: &Terms| {
        counted.fetch_add(1, Relaxed) + 1 >= LOOKS
    }));
    let pattern = Pattern::compile(ENDLESS.0, "", &cx).expect("a pattern");
    assert_eq!(pattern.is_match(ENDLESS.1, &cx), Err(ExprError::Refused));
    assert_eq!(cx.refusal(), None);
    assert_eq!(looks.load(Relaxed), LOOKS);
}

#[test]
fn memory_for_ways_that_are_left_is_counted_and_bounded() {
    let held = |length: usize, limit: usize| {
        let world = World::default();
        let mut cx = world.context();
        let most = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&most);
        cx.watch(Arc::new(move |terms: &Terms| {
            seen.fetch_max(terms.computed_bytes() as u64, Relaxed);
            terms.computed_bytes() > limit
        }));
        let pattern = Pattern::compile(r"^(.*)x\1", "", &cx).expect("a pattern");
        let got = pattern.is_match(&"a".repeat(length), &cx);
        (got, most.load(Relaxed), cx.refusal().map(str::to_owned))
    };
    // A way for each character.
    let (got, most, _) = held(1 << 18, usize::MAX);
    assert_eq!(got, Ok(false));
    assert!(most >= 16 << 18, "{most}");
    let (got, _, refusal) = held(1 << 18, 2 << 20);
    assert_eq!((got, refusal), (Err(ExprError::Refused), None));
    let (got, _, refusal) = held(5 << 20, usize::MAX);
    assert_eq!(got, Err(ExprError::Refused));
    assert!(refusal.is_some_and(|reason| reason.contains("67108864 bytes")));
}

/// Patterns without references, which both engines match.
struct Grammar(Sequence);

impl Grammar {
    fn pattern(&mut self, depth: usize) -> String {
        let atoms = [
            "a", "b", "\u{e9}", ".", "[ab]", "[^a]", "^", "$", "ab", "(?:)",
        ];
        if depth == 0 {
            return atoms[self.0.next(atoms.len())].to_owned();
        }
        let shallower = depth - 1;
        match self.0.next(6) {
            0 => format!("({})", self.pattern(shallower)),
            1 => format!(
                "(?:{}|{})",
                self.pattern(shallower),
                self.pattern(shallower)
            ),
            2 => format!("({}|{})", self.pattern(shallower), self.pattern(shallower)),
            3 => {
                let signs = ["?", "*", "+", "{2}", "{1,3}", "{2,}", "{0,2}"];
                let sign = signs[self.0.next(signs.len())];
                let lazy = ["", "?"][self.0.next(2)];
                format!("(?:{}){sign}{lazy}", self.pattern(shallower))
            }
            _ => format!("{}{}", self.pattern(shallower), self.pattern(shallower)),
        }
    }

    fn text(&mut self) -> String {
        let length = self.0.next(9);
        let mut text = String::new();
        for _ in 0..length {
            text.push(['a', 'a', 'b', '\u{e9}', '\n'][self.0.next(5)]);
        }
        text
    }
}

fn groups(
    found: Option<(usize, usize)>,
    matcher: &Matcher<'_>,
    count: usize,
) -> Option<Vec<Option<String>>> {
    found.map(|_| {
        (0..=count)
            .map(|group| matcher.group(group).map(str::to_owned))
            .collect()
    })
}

fn matched(program: &Program, text: &str, cx: &Context) -> Option<Vec<Option<String>>> {
    let mut matcher = Matcher::new(program, text, cx);
    let found = matcher.find(0).expect("it takes few steps");
    groups(found, &matcher, program.captures())
}

#[test]
fn without_references_both_engines_find_the_same() {
    let cx = World::default().context();
    let mut found = 0;
    for seed in 0..4000 {
        let mut grammar = Grammar(Sequence(seed));
        let depth = 1 + grammar.0.next(5);
        let pattern = grammar.pattern(depth);
        let regex = Regex::new(&pattern).expect("a pattern");
        let captures = (1..regex.captures_len()).map(|group| Group::Capture(group as u32));
        let captures: Vec<Group> = captures.collect();
        let program =
            Program::compile(&pattern, &captures, Modes::default(), 100).expect("a pattern");
        for _ in 0..8 {
            let text = grammar.text();
            let expected = regex.captures(&text).map(|captures| {
                let groups = captures.iter();
                groups
                    .map(|group| group.map(|group| group.as_str().to_owned()))
                    .collect::<Vec<_>>()
            });
            found += usize::from(expected.is_some());
            let got = matched(&program, &text, &cx);
            assert_eq!(got, expected, "seed {seed}: {pattern} in {text:?}");
        }
    }
    assert!(found > 8000, "{found}");
}

#[test]
fn a_text_twice_is_what_a_reference_finds() {
    let cx = World::default().context();
    for seed in 0..2000 {
        let mut grammar = Grammar(Sequence(seed));
        let depth = 1 + grammar.0.next(3);
        // Assertions see other neighbours in the halves of a text.
        let inner = grammar.pattern(depth).replace(['^', '$'], "a");
        let whole = Regex::new(&format!("^(?:{inner})$")).expect("a pattern");
        let groups = Regex::new(&inner).expect("a pattern").captures_len();
        let pattern = Pattern::compile(&format!(r"^({inner})\1$"), "", &cx).expect("a pattern");
        for _ in 0..8 {
            let half = grammar.text();
            let text = match grammar.0.next(3) {
                0 => grammar.text(),
                _ => format!("{half}{half}"),
            };
            let (first, second) = text.split_at(text.floor_char_boundary(text.len() / 2));
            let expected = first == second && whole.is_match(first);
            let got = pattern.is_match(&text, &cx);
            assert_eq!(
                got,
                Ok(expected),
                "seed {seed}, {groups} groups: {inner} in {text:?}"
            );
        }
    }
}
