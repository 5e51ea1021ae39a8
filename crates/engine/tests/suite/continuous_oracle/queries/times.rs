//! Where do queries ask for the times of triples?
//!
//! A text has a mark for each call of the function, which becomes the call for one side, and whatever the
//! oracle knows of the triple's time for the other.

use super::{Form, Maker, PREDICATES, TYPE};

/// The function as C-SPARQL has it.
const TIMESTAMP: &str = "<http://larkc.eu/csparql/sparql/jena/ext#timestamp>";

impl Maker<'_> {
    /// The mark for the time of a triple: mostly of one that is matched.
    pub(super) fn time(&mut self) -> String {
        let one = self.random.below(PREDICATES);
        let any = [
            self.variable().to_owned(),
            format!(":p{one}"),
            self.variable().to_owned(),
        ];
        let is_path =
            |part: &str| !part.starts_with(['?', ':', '<']) || part.contains(['/', '+', '*', '|']);
        let made = self
            .made
            .iter()
            .filter(|[_, p, _]| p == TYPE || !is_path(p) && !p.ends_with('?'));
        let mut made: Vec<[String; 3]> = made.cloned().collect();
        made.push(any);
        let [s, p, o] = match self.random.percent(80) {
            true => made[0].clone(),
            false => self.random.one_of(&made),
        };
        format!("⟦time {s} {p} {o}⟧")
    }

    pub(super) fn filter_by_time(&mut self, one: &str, other: &str) -> String {
        let number = self.random.below(10);
        let (time, later) = (self.time(), self.time());
        let expression = self.random.one_of(&[
            format!("{time} < {later}"),
            format!("{time} >= {later} - {number}0"),
            format!("!(COALESCE({time}, 0) = 0)"),
            format!("{time} / 20 * 20 != {time} + {number}"),
            format!("isNumeric({time}) || {one} != {other}"),
        ]);
        format!("FILTER({expression}) ")
    }

    /// A text with calls in the place of marks.
    pub(super) fn with_calls(&mut self, text: &str) -> String {
        let function = self.random.one_of(&["timestamp", TIMESTAMP]);
        with_times(text, &|[s, p, o]| format!("{function}({s}, {p}, {o})"))
    }

    /// A form that gives times.
    pub(super) fn form_with_times(&mut self, variable: &str) -> Form {
        let used = self.used.join(" ");
        let (time, other) = (self.time(), self.time());
        let (head, tail) = match self.random.below(4) {
            0 => (
                format!("SELECT OUTPUT {used} ({time} AS ?k0)"),
                String::new(),
            ),
            1 => (
                format!("SELECT OUTPUT {variable} (MAX({time}) AS ?k0) (COUNT({other}) AS ?k1)"),
                format!("GROUP BY {variable} HAVING(COUNT(*) > 0 || MIN({time}) > 0)"),
            ),
            2 => (
                format!("SELECT OUTPUT (AVG({time}) AS ?k0) (COUNT(DISTINCT {other}) AS ?k1)"),
                String::new(),
            ),
            _ => {
                let keys: Vec<String> = self
                    .used
                    .iter()
                    .map(|one| format!("STR({one}) LANG({one})"))
                    .collect();
                (
                    format!("SELECT OUTPUT {used} ({other} AS ?k0)"),
                    format!("ORDER BY DESC({time}) {} LIMIT 4", keys.join(" ")),
                )
            }
        };
        Form {
            head,
            is_ordered: tail.starts_with("ORDER"),
            tail,
        }
    }
}

/// A text with something in the place of each mark for the time of a triple.
pub(crate) fn with_times(text: &str, value: &dyn Fn([&str; 3]) -> String) -> String {
    let mut parts = text.split("⟦time ");
    let mut made = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (triple, rest) = part.split_once('⟧').expect("a mark ends");
        let mut triple = triple.split(' ');
        let triple = [(); 3].map(|()| triple.next().expect("it has three parts"));
        made.push_str(&value(triple));
        made.push_str(rest);
    }
    made
}
