//! Which continuous queries are asked, and what ordinary query is each of them for the oracle?
//!
//! A pattern is made once, with marks where windows are named, which become `WINDOW :w0` or `GRAPH :s0`
//! for one side and `GRAPH <http://oracle/w0>` for the other. Where the time of a triple is asked for,
//! there is a mark, too, which the oracle replaces at each instant.

mod times;

use std::fmt::Write as _;

pub(crate) use times::with_times;

use super::model::{Asked, Output, Unit, Window, window_graph};
use super::random::Random;

pub(crate) const PREFIX: &str = "PREFIX : <http://e/> ";
/// Stored graphs of queries; the second may have the IRI of a stream, and the last is never there.
const GRAPHS: [&str; 4] = ["g0", "s0", "g1", "nowhere"];
pub(crate) const PREDICATES: usize = 4;
pub(crate) const VERTICES: usize = 5;
pub(crate) const CLASSES: usize = 2;

/// A continuous query in both languages.
pub(crate) struct Made {
    pub(crate) text: String,
    pub(crate) windows: Vec<Window>,
    pub(crate) every_ms: Option<i64>,
    pub(crate) asked: Asked,
}

/// What queries may be about.
#[derive(Clone, Copy)]
pub(crate) struct World {
    pub(crate) streams: usize,
    /// The stored default graph is the union of all graphs.
    pub(crate) is_union: bool,
    /// There are blank nodes, which have no order.
    pub(crate) has_blanks: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Role {
    Named,
    Default,
    Graph,
    Both,
}

struct Maker<'r> {
    random: &'r mut Random,
    windows: Vec<(Window, Role)>,
    /// Graphs of FROM and of FROM NAMED.
    from: Vec<&'static str>,
    named: Vec<&'static str>,
    /// Graphs that patterns name.
    read: Vec<&'static str>,
    used: Vec<&'static str>,
    /// Triple patterns that may still be made.
    patterns: usize,
    /// Numbers of made-up variables.
    fresh: usize,
    /// Triple patterns that were made, of which times may be asked for.
    made: Vec<[String; 3]>,
    asks_times: bool,
}

const TYPE: &str = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";
const VARIABLES: [&str; 5] = ["?a", "?b", "?c", "?d", "?e"];
const STEPS: [i64; 8] = [30, 50, 70, 100, 100, 150, 200, 500];
const RANGES: [i64; 11] = [1, 70, 100, 150, 200, 250, 300, 500, 500, 1000, 1000];
/// Of windows of a number of tuples.
const COUNTS: [i64; 8] = [1, 3, 8, 13, 25, 40, 60, 100];
/// After so many tuples these slide; 0 says nothing.
const COUNT_STEPS: [i64; 8] = [0, 1, 1, 1, 2, 3, 7, 20];

/// A query of this world.
pub(crate) fn query(random: &mut Random, name: &str, world: World) -> Made {
    let windows = windows(random, world.streams);
    let every_ms = random
        .percent(20)
        .then(|| random.one_of(&[40, 100, 250, 300]));
    let has_graph = windows
        .iter()
        .any(|(_, role)| matches!(role, Role::Graph | Role::Both));
    // A stored graph of a stream's IRI is not to be seen beside the stream as a graph.
    let graphs: Vec<&'static str> = GRAPHS
        .into_iter()
        .filter(|graph| *graph != "s0" || !has_graph)
        .collect();
    let some = |random: &mut Random, percent: u64| {
        let mut some: Vec<&'static str> = Vec::new();
        for graph in &graphs {
            if random.percent(percent) {
                some.push(graph);
            }
        }
        some
    };
    let from = match random.percent(50) {
        true => some(random, 45),
        false => Vec::new(),
    };
    let named = match random.percent(25) {
        true => some(random, 45),
        false => Vec::new(),
    };
    // Expressions name no blank nodes.
    let asks_times = !world.has_blanks && random.percent(35);
    let mut maker = Maker {
        patterns: 1 + random.below(4),
        random,
        windows,
        from,
        named,
        read: Vec::new(),
        used: Vec::new(),
        fresh: 0,
        made: Vec::new(),
        asks_times,
    };
    maker.make(name, every_ms, world)
}

/// Windows over streams: with their steps, which are their ranges where nothing is said.
fn windows(random: &mut Random, streams: usize) -> Vec<(Window, Role)> {
    let count = random.one_of(&[1, 1, 2, 2, 3]);
    let is_counted = random.percent(45);
    let mut windows: Vec<(Window, Role)> = Vec::new();
    for _ in 0..count {
        let stream = random.below(streams);
        let unit = match is_counted {
            true => random.one_of(&[Unit::Tuples, Unit::Tuples, Unit::Milliseconds]),
            false => Unit::Milliseconds,
        };
        let (range, step) = match unit {
            Unit::Tuples => (random.one_of(&COUNTS), random.one_of(&COUNT_STEPS)),
            Unit::Milliseconds => {
                let range = random.one_of(&RANGES);
                let has_step = !random.percent(20) || range < 50;
                let step = random.one_of(&STEPS);
                (range, if has_step { step } else { 0 })
            }
        };
        let mut role = random.one_of(&[
            Role::Named,
            Role::Named,
            Role::Default,
            Role::Default,
            Role::Graph,
            Role::Both,
        ]);
        let is_graph = |role: Role| matches!(role, Role::Graph | Role::Both);
        let is_taken =
            |(window, other): &(Window, Role)| window.stream == stream && is_graph(*other);
        if is_graph(role) && windows.iter().any(is_taken) {
            role = Role::Default;
        }
        let window = Window {
            stream,
            unit,
            range,
            step,
        };
        windows.push((window, role));
    }
    windows
}

impl Maker<'_> {
    fn make(&mut self, name: &str, every_ms: Option<i64>, world: World) -> Made {
        let mut body = String::new();
        let in_windows: Vec<usize> = (0..self.windows.len())
            .filter(|number| self.windows[*number].1 != Role::Default)
            .collect();
        if !in_windows.is_empty() && self.random.percent(80) {
            let number = self.random.one_of(&in_windows);
            let group = self.group(1);
            let _ = write!(body, "{} {{ {group}}} ", mark(number));
        } else {
            body.push_str(&self.triples());
        }
        while self.patterns > 0 {
            body.push_str(&self.element(2));
        }
        if self.random.percent(15) {
            body.push_str(&self.filter(1));
        }
        self.finish(name, every_ms, world, &body)
    }

    /// Text, windows and the oracle's text of a body.
    fn finish(&mut self, name: &str, every_ms: Option<i64>, world: World, body: &str) -> Made {
        let form = self.form(world);
        let output = match form.head.contains("OUTPUT") {
            true => self.random.below(10),
            false => 0,
        };
        let (word, output) = match output {
            0..6 => ("", Output::All),
            6 => ("RSTREAM", Output::All),
            7..9 => ("ISTREAM", Output::New),
            _ => ("DSTREAM", Output::Gone),
        };
        let has_header = every_ms.is_some() || self.random.percent(50);
        let mut text = String::from(PREFIX);
        if has_header {
            let _ = write!(text, "REGISTER QUERY {name} ");
            if let Some(every) = every_ms {
                let _ = write!(text, "COMPUTED EVERY {every}ms ");
            }
            text.push_str("AS ");
        }
        let _ = write!(text, "{} ", form.head.replace("OUTPUT", word));
        let mut asked = format!("{PREFIX}{} ", form.head.replace("OUTPUT", ""));
        let mut windows = Vec::new();
        for number in 0..self.windows.len() {
            let clause = self.window_clause(number, every_ms);
            let _ = write!(text, "{clause} ");
            windows.push(self.windows[number].0);
        }
        for (clause, graphs) in [("FROM", &self.from), ("FROM NAMED", &self.named)] {
            for graph in graphs {
                let _ = write!(text, "{clause} :{graph} ");
            }
        }
        asked.push_str(&self.dataset());
        let body = format!("WHERE {{ {body}}} {}", form.tail);
        text.push_str(&self.unmarked(&body));
        asked.push_str(&self.unmarked_for_oracle(&body));
        Made {
            text: self.with_calls(&text),
            windows,
            every_ms,
            asked: Asked {
                text: asked,
                is_ordered: form.is_ordered && output == Output::All,
                output,
                is_union: world.is_union,
            },
        }
    }

    fn window_clause(&mut self, number: usize, every_ms: Option<i64>) -> String {
        let (window, role) = &mut self.windows[number];
        let (range, step, unit) = (window.range, window.step, window.unit);
        let role = *role;
        let has_step = step > 0;
        let is_tumbling = unit == Unit::Milliseconds && !has_step && self.random.percent(50);
        let window = &mut self.windows[number].0;
        if !has_step {
            window.step = match is_tumbling || unit == Unit::Tuples {
                true => range,
                false => every_ms.unwrap_or(range),
            };
        }
        let stream = window.stream;
        let mut extent = match unit {
            Unit::Milliseconds => format!("[RANGE {}", self.duration(range)),
            Unit::Tuples => {
                let word = self.random.one_of(&["RANGE ", ""]);
                format!("[{word}TRIPLES {range}")
            }
        };
        if is_tumbling {
            extent.push_str(" TUMBLING");
        } else if has_step {
            let step = match unit {
                Unit::Milliseconds => self.duration(step),
                Unit::Tuples => step.to_string(),
            };
            let _ = write!(extent, " STEP {step}");
        }
        extent.push(']');
        match role {
            Role::Named => {
                let of = self.random.one_of(&[
                    format!(":s{stream}"),
                    format!("STREAM :s{stream}"),
                    format!("s{stream}"),
                ]);
                format!("FROM NAMED WINDOW :w{number} ON {of} {extent}")
            }
            Role::Default => format!("FROM STREAM :s{stream} {extent}"),
            Role::Graph => format!("FROM NAMED STREAM :s{stream} {extent}"),
            Role::Both => format!("FROM s{stream} {extent}"),
        }
    }

    fn duration(&mut self, ms: i64) -> String {
        match self.random.below(4) {
            0 => format!("PT{}.{:03}S", ms / 1000, ms % 1000),
            1 if ms % 1000 == 0 => format!("{}s", ms / 1000),
            _ => format!("{ms}ms"),
        }
    }

    fn has_dataset(&self) -> bool {
        let in_default = |(_, role): &(Window, Role)| matches!(role, Role::Default | Role::Both);
        !self.from.is_empty() || !self.named.is_empty() || self.windows.iter().any(in_default)
    }

    /// The dataset of the oracle: without one of the query's own it is everything stored.
    fn dataset(&self) -> String {
        let mut clauses = String::new();
        if !self.has_dataset() {
            return clauses;
        }
        for (number, (_, role)) in self.windows.iter().enumerate() {
            let graph = window_graph(number);
            if matches!(role, Role::Default | Role::Both) {
                let _ = write!(clauses, "FROM {graph} ");
            }
            let _ = write!(clauses, "FROM NAMED {graph} ");
        }
        for graph in &self.from {
            let _ = write!(clauses, "FROM :{graph} ");
        }
        for graph in &self.named {
            let _ = write!(clauses, "FROM NAMED :{graph} ");
        }
        // What a pattern names it may see, if that is there.
        for graph in &self.read {
            let _ = write!(clauses, "⟦there :{graph}⟧ ");
        }
        clauses
    }

    fn unmarked(&self, body: &str) -> String {
        let mut text = body.replace("⟦ranging⟧", "");
        for (number, (window, role)) in self.windows.iter().enumerate() {
            let stream = window.stream;
            let name = match role {
                Role::Named => format!("WINDOW :w{number}"),
                Role::Graph => format!("GRAPH :s{stream}"),
                Role::Both => format!("GRAPH s{stream}"),
                Role::Default => String::new(),
            };
            text = text.replace(&mark(number), &name);
        }
        text
    }

    fn unmarked_for_oracle(&self, body: &str) -> String {
        let filter = match self.has_dataset() {
            false => "FILTER(!STRSTARTS(STR(?g), \"http://oracle/\"))".to_owned(),
            true => {
                let named: Vec<String> = self.named.iter().map(|one| format!(":{one}")).collect();
                format!("FILTER(?g IN ({}))", named.join(", "))
            }
        };
        let mut text = body.replace("⟦ranging⟧", &filter);
        for number in 0..self.windows.len() {
            text = text.replace(&mark(number), &format!("GRAPH {}", window_graph(number)));
        }
        text
    }

    /// Part of a group: patterns here or in a window or graph, and what else may stand there.
    fn element(&mut self, depth: usize) -> String {
        if depth == 0 || self.patterns <= 1 {
            return self.triples();
        }
        let kind = self.random.below(100);
        match kind {
            0..15 => self.triples(),
            15..52 => self.in_graph(depth),
            52..62 => format!("OPTIONAL {{ {}}} ", self.group(depth - 1)),
            62..70 => format!("MINUS {{ {}}} ", self.group(depth - 1)),
            70..79 => {
                let one = self.group(depth - 1);
                format!("{{ {one}}} UNION {{ {}}} ", self.group(depth - 1))
            }
            79..90 => self.filter(depth),
            90..95 => self.nested(depth),
            95..97 => {
                let variable = self.variable();
                let vertex = self.random.below(VERTICES);
                format!("VALUES {variable} {{ :v{vertex} :v0 3 :nothing UNDEF }} ")
            }
            _ => {
                let variable = self.variable();
                self.fresh += 1;
                let new = format!("?new{}", self.fresh);
                let mut values = vec![
                    format!("STR({variable})"),
                    format!("{variable} + 1"),
                    variable.to_owned(),
                ];
                if self.asks_times {
                    values = vec![self.time()];
                }
                let value = self.random.one_of(&values);
                format!("BIND({value} AS {new}) ")
            }
        }
    }

    fn group(&mut self, depth: usize) -> String {
        let mut group = match depth > 0 && self.random.percent(40) {
            true => self.in_graph(depth),
            false => self.triples(),
        };
        if depth > 0 && self.patterns > 0 && self.random.percent(40) {
            group.push_str(&self.element(depth));
        }
        group
    }

    fn in_graph(&mut self, depth: usize) -> String {
        let mut names: Vec<String> = (0..self.windows.len())
            .filter(|number| self.windows[*number].1 != Role::Default)
            .map(mark)
            .collect();
        names.extend(names.clone());
        let has_graph = |(_, role): &(Window, Role)| matches!(role, Role::Graph | Role::Both);
        let has_graph = self.windows.iter().any(has_graph);
        let stored = self.random.one_of(&GRAPHS);
        let stored = if has_graph && stored == "s0" {
            "g0"
        } else {
            stored
        };
        names.push(format!("GRAPH :{stored}"));
        if !has_graph {
            names.push("GRAPH ?g".to_owned());
        }
        let name = self.random.one_of(&names);
        if name == "GRAPH ?g" {
            let group = self.triples();
            return format!("{{ GRAPH ?g {{ {group}}} ⟦ranging⟧ }} ");
        }
        if name.starts_with("GRAPH :") {
            self.read.push(stored);
        }
        let group = self.group(depth - 1);
        format!("{name} {{ {group}}} ")
    }

    fn nested(&mut self, depth: usize) -> String {
        let before = self.used.len();
        let group = self.group(depth - 1);
        let first = self.variable();
        let second = self.variable();
        self.used.truncate(before.max(1));
        self.fresh += 1;
        let new = self.fresh;
        match self.random.below(3) {
            0 => format!(
                "{{ SELECT {first} (COUNT(*) AS ?new{new}) WHERE {{ {group}}} GROUP BY {first} }} "
            ),
            1 => {
                format!("{{ SELECT (COUNT(DISTINCT {second}) AS ?new{new}) WHERE {{ {group}}} }} ")
            }
            _ => format!("{{ SELECT DISTINCT {first} {second} WHERE {{ {group}}} }} "),
        }
    }

    fn filter(&mut self, depth: usize) -> String {
        if self.patterns > 0 && depth > 0 && self.random.percent(50) {
            let not = self.random.one_of(&["", "NOT "]);
            return format!("FILTER {not}EXISTS {{ {}}} ", self.group(depth - 1));
        }
        let (one, other) = (self.variable(), self.variable());
        let vertex = self.random.below(VERTICES);
        let number = self.random.below(10);
        if self.asks_times && self.random.percent(70) {
            return self.filter_by_time(one, other);
        }
        let expression = self.random.one_of(&[
            format!("{one} != {other}"),
            format!("{one} = {other}"),
            format!("{one} > {number} || isIRI({one})"),
            format!("{one} < {number}"),
            format!("isIRI({one})"),
            format!("BOUND({one})"),
            format!("!BOUND({one})"),
            format!("{one} IN (:v{vertex}, {number}, :v1)"),
            format!("{one} != :v{vertex} || {other} > {number}"),
            format!("STR({one}) < \"http://e/v{vertex}\""),
            format!("isLiteral({one}) || !isNumeric({other})"),
        ]);
        format!("FILTER({expression}) ")
    }

    /// A variable that a pattern has.
    fn variable(&mut self) -> &'static str {
        match self.used.is_empty() {
            true => "?a",
            false => self.random.one_of(&self.used.clone()),
        }
    }

    /// A variable of a pattern, mostly one that there is.
    fn place(&mut self, percent_known: u64) -> &'static str {
        if !self.used.is_empty() && self.random.percent(percent_known) {
            return self.variable();
        }
        let variable = self.random.one_of(&VARIABLES);
        self.note(variable);
        variable
    }

    /// A variable that no pattern has, if there is one.
    fn new_place(&mut self) -> &'static str {
        let used = self.used.clone();
        let new = VARIABLES.into_iter().find(|one| !used.contains(one));
        let variable = new.unwrap_or("?a");
        self.note(variable);
        variable
    }

    fn note(&mut self, variable: &'static str) {
        if !self.used.contains(&variable) {
            self.used.push(variable);
        }
    }

    /// Some triple patterns.
    fn triples(&mut self) -> String {
        let count = 1 + self.random.below(2);
        let mut text = String::new();
        for _ in 0..count.min(self.patterns.max(1)) {
            self.patterns = self.patterns.saturating_sub(1);
            text.push_str(&self.triple());
        }
        text
    }

    fn triple(&mut self) -> String {
        let vertex = self.random.below(VERTICES);
        let subject = match self.random.percent(4) {
            true => format!(":v{vertex}"),
            false => self.place(85).to_owned(),
        };
        let kind = self.random.below(100);
        if kind < 17 {
            let class = match self.random.percent(60) {
                true => format!(":c{}", self.random.below(CLASSES)),
                false => self.new_place().to_owned(),
            };
            self.made
                .push([subject.clone(), TYPE.to_owned(), class.clone()]);
            return format!("{subject} a {class} . ");
        }
        let one = self.random.below(PREDICATES);
        let other = self.random.below(PREDICATES);
        let predicate = match kind {
            17..25 => {
                self.note("?p");
                "?p".to_owned()
            }
            25..40 => self.random.one_of(&[
                format!(":p{one}+"),
                format!(":p{one}*"),
                format!(":p{one}?"),
                format!(":p{one}/:p{other}"),
                format!("^:p{one}"),
                format!(":p{one}|:p{other}"),
                format!("(:p{one}|:p{other})+"),
                format!("(:p{one}/^:p{other})*"),
                format!("!:p{one}"),
                format!("!(:p{one}|^:p{other})"),
                "a/^a".to_owned(),
            ]),
            _ => format!(":p{one}"),
        };
        let object = match self.random.below(100) {
            0..5 => format!(":v{}", self.random.below(VERTICES)),
            5..8 => self.random.below(10).to_string(),
            8..88 => self.new_place().to_owned(),
            _ => self.place(50).to_owned(),
        };
        self.made
            .push([subject.clone(), predicate.clone(), object.clone()]);
        format!("{subject} {predicate} {object} . ")
    }

    fn form(&mut self, world: World) -> Form {
        let used = self.used.clone();
        let one = self.variable();
        let other = self.variable();
        let plain = |head: String| Form {
            head,
            tail: String::new(),
            is_ordered: false,
        };
        if self.asks_times && !self.made.is_empty() && self.random.percent(50) {
            return self.form_with_times(one);
        }
        match self.random.below(100) {
            0..6 => plain("ASK".to_owned()),
            6..8 => plain(format!("DESCRIBE {one} :v1")),
            8..18 => plain(format!(
                "CONSTRUCT OUTPUT {{ {one} :made {other} . {other} a :Made }}"
            )),
            18..30 => Form {
                head: format!(
                    "SELECT OUTPUT {one} (COUNT(*) AS ?k0) (COUNT(DISTINCT {other}) AS ?k1) \
                     (SUM({other}) AS ?k2) (MIN(STR({other})) AS ?k3) (AVG({other}) AS ?k4)"
                ),
                tail: match self.random.percent(40) {
                    true => format!("GROUP BY {one} HAVING(COUNT(*) > 1)"),
                    false => format!("GROUP BY {one}"),
                },
                is_ordered: false,
            },
            30..36 => plain(format!(
                "SELECT OUTPUT (COUNT(*) AS ?k0) (MAX(STR({one})) AS ?k1) (COUNT({other}) AS ?k2)"
            )),
            36..48 if !world.has_blanks && !used.is_empty() => {
                let keys: Vec<String> = used
                    .iter()
                    .map(|one| format!("STR({one}) LANG({one})"))
                    .collect();
                let mut tail = format!("ORDER BY {}", keys.join(" "));
                if self.random.percent(70) {
                    let _ = write!(tail, " LIMIT {}", 1 + self.random.below(5));
                }
                if self.random.percent(20) {
                    let _ = write!(tail, " OFFSET {}", 1 + self.random.below(3));
                }
                Form {
                    head: format!("SELECT OUTPUT {}", used.join(" ")),
                    tail,
                    is_ordered: true,
                }
            }
            48..62 => plain(format!("SELECT OUTPUT DISTINCT {one} {other}")),
            62..80 if !used.is_empty() => plain(format!("SELECT OUTPUT {}", used.join(" "))),
            80..90 => plain(format!("SELECT OUTPUT {one}")),
            _ => plain("SELECT OUTPUT *".to_owned()),
        }
    }
}

struct Form {
    head: String,
    tail: String,
    is_ordered: bool,
}

/// Where a window is named.
fn mark(number: usize) -> String {
    format!("⟦{number}⟧")
}
