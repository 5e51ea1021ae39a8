//! Are two sets of rows the same up to the names of blank nodes?
//!
//! Blank nodes are coloured by refinement first (a node's colour is the multiset of the rows it
//! occurs in, with the colours of the others), which decides nearly every case; what remains equal
//! in colour is tried out with backtracking, within a bound on the number of attempts.

use oxrdf::Term;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Assignments tried before giving up; W3C tests need a few hundred at most.
const ATTEMPTS_LIMIT: usize = 2_000_000;

type Row = Vec<Option<Term>>;
type Colours<'a> = HashMap<&'a str, u64>;

/// Whether there is a bijection of the blank nodes of `left` and `right` that makes both the same
/// multiset of rows, or the same sequence when `ordered`.
///
/// # Panics
/// When more than two million assignments were tried without an answer.
pub fn isomorphic(left: &[Row], right: &[Row], ordered: bool) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let left_colours = colours(left, ordered);
    let right_colours = colours(right, ordered);
    let mut by_signature: HashMap<u64, Vec<usize>> = HashMap::new();
    for (index, row) in right.iter().enumerate() {
        by_signature
            .entry(signature(row, index, ordered, &right_colours))
            .or_default()
            .push(index);
    }
    let mut candidates: Vec<(usize, &[usize])> = Vec::new();
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for (index, row) in left.iter().enumerate() {
        let key = signature(row, index, ordered, &left_colours);
        let Some(rows) = by_signature.get(&key) else {
            return false;
        };
        *counts.entry(key).or_default() += 1;
        candidates.push((index, rows));
    }
    if counts
        .iter()
        .any(|(key, count)| by_signature[key].len() != *count)
    {
        return false;
    }
    // Rows without blank nodes are settled by their signature; the rest, most certain first.
    candidates.retain(|(index, _)| blanks(&left[*index]).next().is_some());
    candidates.sort_by_key(|(_, rows)| rows.len());
    let mut search = Search {
        left,
        right,
        candidates,
        used: vec![false; right.len()],
        forward: HashMap::new(),
        backward: HashMap::new(),
        attempts: 0,
    };
    search.run()
}

struct Search<'a> {
    left: &'a [Row],
    right: &'a [Row],
    candidates: Vec<(usize, &'a [usize])>,
    used: Vec<bool>,
    forward: HashMap<&'a str, &'a str>,
    backward: HashMap<&'a str, &'a str>,
    attempts: usize,
}

/// A row that was matched with one of its candidates.
struct Placed {
    /// Which candidate.
    choice: usize,
    /// The row it is.
    target: usize,
    /// Where in the rows the blank nodes stand that were assigned for it.
    added: Vec<(usize, usize)>,
}

impl Search<'_> {
    /// Places every row, taking back the last one that can go elsewhere when one fits nowhere.
    fn run(&mut self) -> bool {
        let mut placed: Vec<Placed> = Vec::new();
        let mut next = 0;
        while let Some(&(index, rows)) = self.candidates.get(placed.len()) {
            let fitting = (next..rows.len()).find_map(|choice| {
                let target = rows[choice];
                if self.used[target] {
                    return None;
                }
                self.attempts += 1;
                assert!(
                    self.attempts < ATTEMPTS_LIMIT,
                    "the blank nodes are too symmetric to compare in {ATTEMPTS_LIMIT} attempts"
                );
                Some((choice, target, self.unify(index, target)?))
            });
            if let Some((choice, target, added)) = fitting {
                self.used[target] = true;
                placed.push(Placed {
                    choice,
                    target,
                    added,
                });
                next = 0;
            } else if let Some(last) = placed.pop() {
                self.used[last.target] = false;
                self.undo(&last.added);
                next = last.choice + 1;
            } else {
                return false;
            }
        }
        true
    }

    /// Extends the bijection so that the rows agree; `None`, with nothing changed, if it cannot.
    fn unify(&mut self, index: usize, target: usize) -> Option<Vec<(usize, usize)>> {
        let (left, right) = (self.left, self.right);
        let mut added = Vec::new();
        for (position, pair) in left[index].iter().zip(&right[target]).enumerate() {
            let agree = match pair {
                (Some(Term::BlankNode(a)), Some(Term::BlankNode(b))) => {
                    let (a, b) = (a.as_str(), b.as_str());
                    match (self.forward.get(a), self.backward.get(b)) {
                        (Some(known), _) => *known == b,
                        (None, Some(_)) => false,
                        (None, None) => {
                            self.forward.insert(a, b);
                            self.backward.insert(b, a);
                            added.push((index, position));
                            true
                        }
                    }
                }
                (a, b) => a == b,
            };
            if !agree {
                self.undo(&added);
                return None;
            }
        }
        Some(added)
    }

    fn undo(&mut self, added: &[(usize, usize)]) {
        for &(index, position) in added {
            if let Some(Term::BlankNode(a)) = &self.left[index][position]
                && let Some(b) = self.forward.remove(a.as_str())
            {
                self.backward.remove(b);
            }
        }
    }
}

fn blanks(row: &Row) -> impl Iterator<Item = &str> {
    row.iter().filter_map(|term| match term {
        Some(Term::BlankNode(node)) => Some(node.as_str()),
        _ => None,
    })
}

fn signature(row: &Row, index: usize, ordered: bool, colours: &Colours<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    if ordered {
        index.hash(&mut hasher);
    }
    for term in row {
        match term {
            Some(Term::BlankNode(node)) => (1u8, colours[node.as_str()]).hash(&mut hasher),
            Some(term) => (2u8, term).hash(&mut hasher),
            None => 3u8.hash(&mut hasher),
        }
    }
    hasher.finish()
}

fn colours(rows: &[Row], ordered: bool) -> Colours<'_> {
    let mut current: Colours<'_> = rows.iter().flat_map(blanks).map(|node| (node, 0)).collect();
    let mut classes = usize::from(!current.is_empty());
    for _ in 0..current.len() {
        let mut seen: HashMap<&str, Vec<(u64, usize)>> = HashMap::new();
        for (index, row) in rows.iter().enumerate() {
            let key = signature(row, index, ordered, &current);
            for (position, term) in row.iter().enumerate() {
                if let Some(Term::BlankNode(node)) = term {
                    seen.entry(node.as_str()).or_default().push((key, position));
                }
            }
        }
        current = seen
            .into_iter()
            .map(|(node, mut places)| {
                places.sort_unstable();
                let mut hasher = DefaultHasher::new();
                places.hash(&mut hasher);
                (node, hasher.finish())
            })
            .collect();
        let refined = current
            .values()
            .collect::<std::collections::HashSet<_>>()
            .len();
        if refined == classes {
            break;
        }
        classes = refined;
    }
    current
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::{BlankNode, NamedNode};

    fn rows(pairs: &[(&str, &str)]) -> Vec<Row> {
        let term = |text: &str| -> Option<Term> {
            Some(match text.strip_prefix("_:") {
                Some(label) => BlankNode::new_unchecked(label).into(),
                None => NamedNode::new_unchecked(text).into(),
            })
        };
        pairs.iter().map(|(a, b)| vec![term(a), term(b)]).collect()
    }

    #[test]
    fn renamed_blank_nodes_are_the_same_rows() {
        let left = rows(&[("_:a", "_:b"), ("_:b", "x"), ("y", "y")]);
        let right = rows(&[("y", "y"), ("_:q", "x"), ("_:p", "_:q")]);
        assert!(isomorphic(&left, &right, false));
        assert!(!isomorphic(&left, &right, true));
    }

    #[test]
    fn a_cycle_of_six_is_not_two_cycles_of_three() {
        let cycle = |names: &[&str]| -> Vec<(String, String)> {
            (0..names.len())
                .map(|i| (names[i].to_owned(), names[(i + 1) % names.len()].to_owned()))
                .collect()
        };
        let as_rows = |pairs: Vec<(String, String)>| {
            rows(
                &pairs
                    .iter()
                    .map(|(a, b)| (a.as_str(), b.as_str()))
                    .collect::<Vec<_>>(),
            )
        };
        let six = as_rows(cycle(&["_:a", "_:b", "_:c", "_:d", "_:e", "_:f"]));
        let mut pairs = cycle(&["_:a", "_:b", "_:c"]);
        pairs.extend(cycle(&["_:d", "_:e", "_:f"]));
        let threes = as_rows(pairs);
        assert!(isomorphic(&six, &six, false));
        assert!(isomorphic(&threes, &threes, false));
        assert!(!isomorphic(&six, &threes, false));
    }

    #[test]
    fn two_blank_nodes_do_not_become_one() {
        let left = rows(&[("_:a", "x"), ("_:b", "x")]);
        let right = rows(&[("_:a", "x"), ("_:a", "x")]);
        assert!(!isomorphic(&left, &right, false));
        assert!(!isomorphic(&right, &left, false));
    }
}
