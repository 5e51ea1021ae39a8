//! Are some rows a part of others, up to the names of blank nodes?
//!
//! What LIMIT and OFFSET leave of an answer is any part of the whole, and the engines name blank
//! nodes each in their own way. The names are consistent in all rows and two nodes stay two, so an
//! injective map of nodes is sought under which no row occurs more often than in the whole. Which
//! nodes a node may become is narrowed by the rows it occurs in first; what remains is tried out
//! with backtracking, within a bound on the number of attempts.

use oxrdf::Term;
use std::collections::HashMap;

/// Nodes tried before giving up.
const ATTEMPTS_LIMIT: usize = 200_000;

type Row = Vec<Option<Term>>;
/// A row whose blank nodes are replaced by the position at which each stands first.
type Shape = Vec<Result<Option<Term>, usize>>;

/// Whether there is an injective map of the blank nodes of `part` to those of `whole` under which
/// each row of `part` is in `whole`, as often at least.
///
/// # Panics
/// When more than two hundred thousand assignments were tried without an answer.
#[must_use]
pub fn is_part_of(part: &[Row], whole: &[Row]) -> bool {
    let (part, whole) = (Side::new(part), Side::new(whole));
    let ground_fits = part.counts.iter().all(|(row, count)| {
        !row.iter().flatten().all(|term| !term.is_blank_node())
            || whole.counts.get(row).is_some_and(|there| there >= count)
    });
    if !ground_fits {
        return false;
    }
    let mut candidates = Vec::new();
    for uses in &part.uses {
        let fitting = whole.uses.iter().enumerate();
        let fitting: Vec<usize> = fitting
            .filter(|(_, others)| {
                uses.iter()
                    .all(|(place, counts)| covers(others.get(place), counts))
            })
            .map(|(node, _)| node)
            .collect();
        if fitting.is_empty() {
            return false;
        }
        candidates.push(fitting);
    }
    if !all_find_one(&candidates, whole.names.len()) {
        return false;
    }
    let mut search = Search {
        assigned: vec![None; part.names.len()],
        used: vec![false; whole.names.len()],
        part,
        whole,
        candidates,
        attempts: 0,
    };
    search.run()
}

/// Whether distinct rows that occur `needed` times each find as many others that occur as often at
/// least; both are in descending order.
fn covers(there: Option<&Vec<usize>>, needed: &[usize]) -> bool {
    there.is_some_and(|there| {
        there.len() >= needed.len() && there.iter().zip(needed).all(|(have, need)| have >= need)
    })
}

/// Whether each finds a candidate that no other takes, whatever the rows say of them together: what
/// is alike and too many is not tried in every order.
fn all_find_one(candidates: &[Vec<usize>], count: usize) -> bool {
    fn find(
        node: usize,
        candidates: &[Vec<usize>],
        taken: &mut [Option<usize>],
        seen: &mut [bool],
    ) -> bool {
        candidates[node].iter().any(|&target| {
            if std::mem::replace(&mut seen[target], true) {
                return false;
            }
            let gives_way = match taken[target] {
                Some(other) => find(other, candidates, taken, seen),
                None => true,
            };
            if gives_way {
                taken[target] = Some(node);
            }
            gives_way
        })
    }
    let mut taken = vec![None; count];
    (0..candidates.len()).all(|node| find(node, candidates, &mut taken, &mut vec![false; count]))
}

/// Rows, and the blank nodes in them by number.
struct Side<'a> {
    names: Vec<&'a str>,
    numbers: HashMap<&'a str, usize>,
    /// How often each row occurs.
    counts: HashMap<&'a Row, usize>,
    /// For each node the distinct rows it is in.
    rows: Vec<Vec<&'a Row>>,
    /// For each node the shapes of its rows with its place in them, and how often the rows of that
    /// shape occur, in descending order.
    uses: Vec<HashMap<(Shape, usize), Vec<usize>>>,
}

impl<'a> Side<'a> {
    fn new(rows: &'a [Row]) -> Self {
        let mut side = Self {
            names: Vec::new(),
            numbers: HashMap::new(),
            counts: HashMap::new(),
            rows: Vec::new(),
            uses: Vec::new(),
        };
        for row in rows {
            *side.counts.entry(row).or_default() += 1;
        }
        for (row, count) in &side.counts {
            let shape = shape_of(row);
            for (position, cell) in shape.iter().enumerate() {
                let Some(Term::BlankNode(node)) = &row[position] else {
                    continue;
                };
                if *cell != Err(position) {
                    // It stands further left as well.
                    continue;
                }
                let name = node.as_str();
                let number = *side.numbers.entry(name).or_insert_with(|| {
                    side.names.push(name);
                    side.rows.push(Vec::new());
                    side.uses.push(HashMap::new());
                    side.names.len() - 1
                });
                side.rows[number].push(row);
                let counts = side.uses[number].entry((shape.clone(), position));
                counts.or_default().push(*count);
            }
        }
        for counts in side.uses.iter_mut().flat_map(HashMap::values_mut) {
            counts.sort_unstable_by(|a, b| b.cmp(a));
        }
        side
    }
}

fn shape_of(row: &Row) -> Shape {
    let first = |term: &Term| row.iter().position(|cell| cell.as_ref() == Some(term));
    row.iter()
        .map(|cell| match cell {
            Some(term @ Term::BlankNode(_)) => Err(first(term).expect("it is in the row")),
            other => Ok(other.clone()),
        })
        .collect()
}

struct Search<'a> {
    part: Side<'a>,
    whole: Side<'a>,
    /// For each node of the part those of the whole that it may become.
    candidates: Vec<Vec<usize>>,
    assigned: Vec<Option<usize>>,
    used: Vec<bool>,
    attempts: usize,
}

impl Search<'_> {
    /// Maps every node, taking back the last one that can become another when one fits nowhere.
    fn run(&mut self) -> bool {
        let order = self.order();
        let mut choices: Vec<usize> = Vec::new();
        let mut next = 0;
        while let Some(&node) = order.get(choices.len()) {
            let count = self.candidates[node].len();
            if let Some(choice) = (next..count).find(|choice| self.assign(node, *choice)) {
                choices.push(choice);
                next = 0;
            } else if let Some(last) = choices.pop() {
                let node = order[choices.len()];
                self.used[self.candidates[node][last]] = false;
                self.assigned[node] = None;
                next = last + 1;
            } else {
                return false;
            }
        }
        true
    }

    /// The nodes, those with the fewest candidates first and each followed by those it shares rows
    /// with, whose rows then say soon whether it was a good choice.
    fn order(&self) -> Vec<usize> {
        let mut starts: Vec<usize> = (0..self.candidates.len()).collect();
        starts.sort_by_key(|node| self.candidates[*node].len());
        let mut order = Vec::new();
        let mut is_placed = vec![false; starts.len()];
        for start in starts {
            let mut waiting = vec![start];
            while let Some(node) = waiting.pop() {
                if std::mem::replace(&mut is_placed[node], true) {
                    continue;
                }
                order.push(node);
                for term in self.part.rows[node].iter().copied().flatten().flatten() {
                    if let Term::BlankNode(other) = term {
                        waiting.push(self.part.numbers[other.as_str()]);
                    }
                }
            }
        }
        order
    }

    /// Lets a node become a candidate, unless that is taken or a row whose nodes are all known then
    /// is not in the whole.
    fn assign(&mut self, node: usize, choice: usize) -> bool {
        let target = self.candidates[node][choice];
        if self.used[target] {
            return false;
        }
        self.attempts += 1;
        assert!(
            self.attempts < ATTEMPTS_LIMIT,
            "the blank nodes are too symmetric to compare in {ATTEMPTS_LIMIT} attempts"
        );
        self.assigned[node] = Some(target);
        let fits = self.part.rows[node]
            .iter()
            .all(|row| match self.mapped(row) {
                Some(mapped) => self.whole.counts.get(&mapped) >= self.part.counts.get(row),
                None => true,
            });
        if fits {
            self.used[target] = true;
        } else {
            self.assigned[node] = None;
        }
        fits
    }

    /// The row under the map, or none where it does not know a node of it yet.
    fn mapped(&self, row: &Row) -> Option<Row> {
        let cells = row.iter().map(|cell| match cell {
            Some(Term::BlankNode(node)) => {
                let target = self.assigned[self.part.numbers[node.as_str()]]?;
                let name = self.whole.names[target];
                Some(Some(oxrdf::BlankNode::new_unchecked(name).into()))
            }
            other => Some(other.clone()),
        });
        cells.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use oxrdf::{BlankNode, NamedNode};

    /// Rows of words: `_:a` is a blank node, `-` is unbound.
    fn rows(lines: &[&str]) -> Vec<Row> {
        let term = |word: &str| -> Option<Term> {
            match word.strip_prefix("_:") {
                Some(label) => Some(BlankNode::new_unchecked(label).into()),
                None if word == "-" => None,
                None => Some(NamedNode::new_unchecked(word).into()),
            }
        };
        let row = |line: &&str| line.split(' ').map(term).collect();
        lines.iter().map(row).collect()
    }

    fn part_of(part: &[&str], whole: &[&str]) -> bool {
        is_part_of(&rows(part), &rows(whole))
    }

    #[test]
    fn renamed_blank_nodes_are_the_same_rows() {
        assert!(part_of(&[], &[]));
        assert!(part_of(&[], &["x y"]));
        assert!(part_of(&["x _:a"], &["x y", "x _:p", "_:p y"]));
        assert!(part_of(
            &["x _:a", "_:a y", "z z"],
            &["z z", "x _:q", "x _:p", "_:p y"]
        ));
        assert!(part_of(&["_:a -", "_:a -"], &["_:q -", "_:p -", "_:p -"]));
    }

    #[test]
    fn a_row_that_is_not_there_is_no_part() {
        assert!(!part_of(&["x y"], &[]));
        assert!(!part_of(&["x y"], &["x z"]));
        assert!(!part_of(&["x y"], &["x _:a"]));
        assert!(!part_of(&["x _:a"], &["x y", "_:a x"]));
        assert!(!part_of(&["x -"], &["x y", "x _:a"]));
        assert!(!part_of(&["x _:a"], &["x -"]));
    }

    #[test]
    fn a_row_occurs_no_more_often_than_in_the_whole() {
        assert!(!part_of(&["x y", "x y"], &["x y", "x z"]));
        assert!(!part_of(&["x _:a", "x _:a"], &["x _:p", "x _:q"]));
        assert!(!part_of(
            &["_:a x", "_:a x", "_:b x", "_:b x"],
            &["_:p x", "_:p x", "_:p x", "_:q x"]
        ));
    }

    #[test]
    fn two_blank_nodes_do_not_become_one_nor_one_two() {
        assert!(!part_of(&["_:a x", "_:b x"], &["_:p x", "_:p x"]));
        assert!(!part_of(&["_:a _:b"], &["_:p _:p"]));
        assert!(!part_of(&["_:a _:a"], &["_:p _:q"]));
        assert!(!part_of(&["_:a x", "_:a y"], &["_:p x", "_:q y"]));
        assert!(!part_of(
            &["_:a x", "_:b x", "_:a y"],
            &["_:p x", "_:q x", "_:r y"]
        ));
    }

    #[test]
    fn nodes_are_told_apart_by_the_rows_they_share() {
        // A path of three is in a cycle of six, and not in two cycles of three.
        let path = ["_:a _:b", "_:b _:c", "_:c _:d"];
        let six = [
            "_:1 _:2", "_:2 _:3", "_:3 _:4", "_:4 _:5", "_:5 _:6", "_:6 _:1",
        ];
        let threes = [
            "_:1 _:2", "_:2 _:3", "_:3 _:1", "_:4 _:5", "_:5 _:6", "_:6 _:4",
        ];
        assert!(part_of(&path, &six));
        assert!(!part_of(&path, &threes));
        assert!(part_of(&threes[..5], &threes));
        assert!(!part_of(&threes, &six));
    }

    #[test]
    fn many_nodes_alike_are_no_trouble() {
        let whole: Vec<Row> = (0..200)
            .flat_map(|node| {
                let kinds: &[&str] = if node % 2 == 0 {
                    &["x", "y"]
                } else {
                    &["x", "y", "z"]
                };
                let row = move |kind: &&str| rows(&[&format!("_:n{node} {kind}")]).remove(0);
                kinds.iter().map(row)
            })
            .collect();
        assert!(is_part_of(&whole[3..], &whole));
        let mut wrong = whole.clone();
        // One node more of those with three rows.
        wrong.extend(rows(&["_:n0 z"]));
        assert!(!is_part_of(&wrong[1..], &whole));
    }

    #[test]
    fn renamed_parts_are_parts_and_changed_ones_are_not() {
        for seed in 0..400 {
            let mut random = Random::new(seed);
            let word = |random: &mut Random| match random.below(6) {
                0..=2 => format!("_:n{}", random.below(5)),
                3 => "-".to_owned(),
                _ => random.name(&["x", "y"]).to_owned(),
            };
            let lines: Vec<String> = (0..random.between(1, 25))
                .map(|_| format!("{} {}", word(&mut random), word(&mut random)))
                .collect();
            let mut part: Vec<String> = lines
                .iter()
                .filter(|_| random.chance(80))
                .map(|line| line.replace("_:n", "_:m9"))
                .collect();
            let shown = |lines: &[String]| -> Vec<Row> {
                rows(&lines.iter().map(String::as_str).collect::<Vec<_>>())
            };
            assert!(is_part_of(&shown(&part), &shown(&lines)), "seed {seed}");
            // More rows of one shape than the whole has cannot be a part of it.
            let extra = random.pick(&lines).replace("_:n", "_:m9");
            let shape = |line: &str| shape_of(&shown(&[line.to_owned()])[0]);
            let wanted = shape(&extra);
            let count = |lines: &[String]| lines.iter().filter(|l| shape(l) == wanted).count();
            while count(&part) <= count(&lines) {
                part.push(extra.clone());
            }
            assert!(!is_part_of(&shown(&part), &shown(&lines)), "seed {seed}");
        }
    }

    /// All injective maps, tried one after another.
    fn is_part_by_trying_all(part: &[Row], whole: &[Row]) -> bool {
        fn labels(rows: &[Row]) -> Vec<String> {
            let mut found: Vec<String> = Vec::new();
            for term in rows.iter().flatten().flatten() {
                if let Term::BlankNode(node) = term
                    && !found.iter().any(|known| known == node.as_str())
                {
                    found.push(node.as_str().to_owned());
                }
            }
            found
        }
        fn any(
            part: &[Row],
            whole: &[Row],
            from: &[String],
            to: &[String],
            map: &mut Vec<usize>,
        ) -> bool {
            if map.len() < from.len() {
                return (0..to.len()).any(|choice| {
                    if map.contains(&choice) {
                        return false;
                    }
                    map.push(choice);
                    let found = any(part, whole, from, to, map);
                    map.pop();
                    found
                });
            }
            let mut left = whole.to_vec();
            part.iter().all(|row| {
                let mapped: Row = row
                    .iter()
                    .map(|cell| match cell {
                        Some(Term::BlankNode(node)) => {
                            let at = from.iter().position(|name| name == node.as_str());
                            let name = &to[map[at.expect("it was listed")]];
                            Some(BlankNode::new_unchecked(name).into())
                        }
                        other => other.clone(),
                    })
                    .collect();
                match left.iter().position(|other| *other == mapped) {
                    Some(at) => {
                        left.swap_remove(at);
                        true
                    }
                    None => false,
                }
            })
        }
        any(part, whole, &labels(part), &labels(whole), &mut Vec::new())
    }

    #[test]
    fn it_decides_as_trying_all_maps_does() {
        let (mut parts, mut others) = (0, 0);
        for seed in 0..3000 {
            let mut random = Random::new(seed);
            let mut table = |count: usize| -> Vec<Row> {
                let word = |random: &mut Random| match random.below(5) {
                    0..=2 => format!("_:n{}", random.below(4)),
                    _ => random.name(&["x", "y"]).to_owned(),
                };
                let lines: Vec<String> = (0..count)
                    .map(|_| format!("{} {}", word(&mut random), word(&mut random)))
                    .collect();
                rows(&lines.iter().map(String::as_str).collect::<Vec<_>>())
            };
            let (part, whole) = (
                table(1 + usize::try_from(seed % 4).expect("small")),
                table(8),
            );
            let wanted = is_part_by_trying_all(&part, &whole);
            assert_eq!(is_part_of(&part, &whole), wanted, "seed {seed}");
            *(if wanted { &mut parts } else { &mut others }) += 1;
        }
        assert!(
            parts > 300 && others > 300,
            "{parts} parts, {others} others"
        );
    }
}
