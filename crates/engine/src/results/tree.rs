//! How is a graph written in Turtle as a person would write it, once all of it is known?
//!
//! Graph by graph and subject by subject, in the order in which they came first, `a` before all other
//! predicates. A blank node that one quad alone has as object is written in its place, as `[ ]` or, if it
//! is the head of a list, as `( )`; brackets are nested up to a bound, so that neither who writes nor
//! who reads needs a stack by the size of the graph.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::gathered::{Gathered, NO_TERM};
use super::pen::{Pen, RDF_TYPE};

/// Brackets open at once.
const MOST_NESTED: u32 = 16;
const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// What is known of a term as a blank node.
#[derive(Clone, Copy, Default)]
struct Node {
    /// Quads that have it as object, and the last of them.
    references: u32,
    reference: u32,
    /// Graphs in which it is a subject.
    graphs: u32,
    is_graph: bool,
    /// Whether all that is reached by `rdf:rest` from here is a list to its end.
    is_list: bool,
    place: Place,
}

/// Where a node is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Unknown,
    /// By its label, or as the subject of a statement of its own.
    Apart,
    /// In the place of the object that it is, in as many brackets.
    Nested(u32),
}

/// The quads in the order in which they are written.
pub(super) struct Tree<'g> {
    gathered: &'g Gathered,
    /// Numbers of quads.
    order: Vec<u32>,
    /// Those of each subject in each graph.
    subjects: FxHashMap<(u32, u32), Range<usize>>,
    nodes: Vec<Node>,
    first: Option<u32>,
    rest: Option<u32>,
    nil: Option<u32>,
}

impl<'g> Tree<'g> {
    pub(super) fn new(gathered: &'g Gathered) -> Self {
        let rdf = |name: &str| number_of(gathered, &format!("{RDF}{name}"));
        let order = in_order(gathered);
        let mut subjects: FxHashMap<(u32, u32), Range<usize>> = FxHashMap::default();
        for (place, number) in order.iter().enumerate() {
            let [subject, _, _, graph] = gathered.quads[*number as usize];
            subjects.entry((graph, subject)).or_insert(place..place).end = place + 1;
        }
        let mut tree = Self {
            gathered,
            order,
            subjects,
            nodes: vec![Node::default(); gathered.terms()],
            first: rdf("first"),
            rest: rdf("rest"),
            nil: rdf("nil"),
        };
        tree.count();
        tree.find_lists();
        tree.find_places();
        tree
    }

    fn quad(&self, number: u32) -> [u32; 4] {
        self.gathered.quads[number as usize]
    }

    /// The quads of a subject in a graph, as numbers.
    fn quads_of(&self, subject: u32, graph: u32) -> &[u32] {
        let range = self.subjects.get(&(graph, subject)).cloned();
        &self.order[range.unwrap_or_default()]
    }

    fn count(&mut self) {
        for (number, &[_, _, object, graph]) in self.gathered.quads.iter().enumerate() {
            let node = &mut self.nodes[object as usize];
            node.references += 1;
            node.reference = number as u32;
            if graph != NO_TERM {
                self.nodes[graph as usize].is_graph = true;
            }
        }
        for (_, subject) in self.subjects.keys() {
            self.nodes[*subject as usize].graphs += 1;
        }
    }

    /// Whether a node may be written in the place where it is an object.
    fn may_be_nested(&self, number: u32) -> bool {
        let node = &self.nodes[number as usize];
        if !self.gathered.is_blank(number) || node.references != 1 || node.is_graph {
            return false;
        }
        let [_, _, _, graph] = self.quad(node.reference);
        match node.graphs {
            0 => true,
            1 => self.subjects.contains_key(&(graph, number)),
            _ => false,
        }
    }

    /// The element and the rest of a cell of a list, which has nothing else.
    fn cell(&self, number: u32, graph: u32) -> Option<(u32, u32)> {
        let &[one, other] = self.quads_of(number, graph) else {
            return None;
        };
        let ([_, p, o, _], [_, q, r, _]) = (self.quad(one), self.quad(other));
        match (Some(p), Some(q)) {
            (first, rest) if first == self.first && rest == self.rest => Some((o, r)),
            (rest, first) if first == self.first && rest == self.rest => Some((r, o)),
            _ => None,
        }
    }

    /// Marks the cells of lists, from the ends of these on.
    fn find_lists(&mut self) {
        let Some(nil) = self.nil else { return };
        for &[subject, predicate, object, graph] in &self.gathered.quads {
            if Some(predicate) != self.rest || object != nil {
                continue;
            }
            let mut cell = subject;
            while self.gathered.is_blank(cell)
                && self.nodes[cell as usize].graphs == 1
                && self.cell(cell, graph).is_some()
            {
                let node = &mut self.nodes[cell as usize];
                node.is_list = true;
                let before = node.reference;
                if !self.may_be_nested(cell) {
                    break;
                }
                let [subject, predicate, _, _] = self.quad(before);
                if Some(predicate) != self.rest {
                    break;
                }
                cell = subject;
            }
        }
    }

    /// Whether a quad leads from one cell of a list to the next one, so that no bracket is opened.
    fn is_inside_of_list(&self, [subject, predicate, _, _]: [u32; 4]) -> bool {
        Some(predicate) == self.rest && self.nodes[subject as usize].is_list
    }

    /// Decides where nodes are written: one of a cycle, and what would be in too many brackets, has a
    /// statement of its own. Cells of a list stay with the one before them.
    fn find_places(&mut self) {
        for node in 0..self.nodes.len() as u32 {
            if !self.may_be_nested(node) {
                self.nodes[node as usize].place = Place::Apart;
            }
        }
        self.break_cycles();
        let mut path = Vec::new();
        for start in 0..self.nodes.len() as u32 {
            let mut at = start;
            while self.nodes[at as usize].place == Place::Unknown {
                path.push(at);
                at = self.holder(at)[0];
            }
            for node in path.drain(..).rev() {
                let holder = self.holder(node);
                let outer = match self.nodes[holder[0] as usize].place {
                    Place::Nested(depth) => depth,
                    Place::Apart | Place::Unknown => 0,
                };
                let depth = outer + u32::from(!self.is_inside_of_list(holder));
                self.nodes[node as usize].place = match depth > MOST_NESTED {
                    true => Place::Apart,
                    false => Place::Nested(depth),
                };
            }
        }
    }

    /// The quad that has a node as object.
    fn holder(&self, node: u32) -> [u32; 4] {
        self.quad(self.nodes[node as usize].reference)
    }

    /// Sets one node of each cycle apart: one that is not inside of a list.
    fn break_cycles(&mut self) {
        // The walk that came to a node last.
        let mut walks = vec![0_u32; self.nodes.len()];
        for start in 0..self.nodes.len() as u32 {
            let (walk, mut at) = (start + 1, start);
            while self.nodes[at as usize].place == Place::Unknown && walks[at as usize] == 0 {
                walks[at as usize] = walk;
                at = self.holder(at)[0];
            }
            let is_cycle =
                self.nodes[at as usize].place == Place::Unknown && walks[at as usize] == walk;
            if is_cycle {
                let mut left = self.nodes.len();
                while self.is_inside_of_list(self.holder(at)) {
                    at = self.holder(at)[0];
                    left = left
                        .checked_sub(1)
                        .expect("a list has an end: none is a cycle alone");
                }
                self.nodes[at as usize].place = Place::Apart;
            }
        }
    }

    /// Appends all statements.
    pub(super) fn write(&self, out: &mut Vec<u8>, pen: &mut Pen<'_>) {
        let mut at = 0;
        let mut open = NO_TERM;
        let mut is_first = true;
        while at < self.order.len() {
            let [subject, _, _, graph] = self.quad(self.order[at]);
            let quads = self.subjects[&(graph, subject)].clone();
            at = quads.end;
            if matches!(self.nodes[subject as usize].place, Place::Nested(_)) {
                continue;
            }
            if graph != open {
                if open != NO_TERM {
                    out.extend_from_slice(b"}\n");
                }
                if graph != NO_TERM {
                    separate(out, &mut is_first);
                    pen.term(out, self.gathered.term(graph));
                    out.extend_from_slice(b" {\n");
                    is_first = true;
                }
                open = graph;
            }
            separate(out, &mut is_first);
            let indent = usize::from(graph != NO_TERM);
            push_indent(out, indent);
            match self.gathered.is_blank(subject)
                && self.nodes[subject as usize].references == 0
                && !self.nodes[subject as usize].is_graph
                && self.nodes[subject as usize].graphs == 1
            {
                true => out.extend_from_slice(b"[]"),
                false => pen.term(out, self.gathered.term(subject)),
            }
            out.push(b' ');
            self.write_quads(out, pen, quads, indent + 1);
            out.extend_from_slice(b" .\n");
        }
        if open != NO_TERM {
            out.extend_from_slice(b"}\n");
        }
    }

    /// Appends the predicates and objects of one subject, predicates below each other.
    fn write_quads(
        &self,
        out: &mut Vec<u8>,
        pen: &mut Pen<'_>,
        quads: Range<usize>,
        indent: usize,
    ) {
        let mut last = None;
        for number in &self.order[quads] {
            let [_, predicate, object, graph] = self.quad(*number);
            if last == Some(predicate) {
                out.extend_from_slice(b", ");
            } else {
                if last.is_some() {
                    out.extend_from_slice(b" ;\n");
                    push_indent(out, indent);
                }
                let iri = self.gathered.iri(predicate).expect("predicates are IRIs");
                pen.predicate(out, iri);
                out.push(b' ');
            }
            last = Some(predicate);
            self.write_object(out, pen, (object, graph), indent);
        }
    }

    fn write_object(
        &self,
        out: &mut Vec<u8>,
        pen: &mut Pen<'_>,
        (object, graph): (u32, u32),
        indent: usize,
    ) {
        let node = &self.nodes[object as usize];
        if Some(object) == self.nil {
            return out.extend_from_slice(b"()");
        }
        if !matches!(node.place, Place::Nested(_)) {
            return pen.term(out, self.gathered.term(object));
        }
        if node.is_list {
            return self.write_list(out, pen, (object, graph), indent);
        }
        let range = self.subjects.get(&(graph, object)).cloned();
        match range.filter(|range| !range.is_empty()) {
            None => out.extend_from_slice(b"[]"),
            Some(quads) => {
                out.extend_from_slice(b"[\n");
                push_indent(out, indent + 1);
                self.write_quads(out, pen, quads, indent + 1);
                out.push(b'\n');
                push_indent(out, indent);
                out.push(b']');
            }
        }
    }

    fn write_list(
        &self,
        out: &mut Vec<u8>,
        pen: &mut Pen<'_>,
        (head, graph): (u32, u32),
        indent: usize,
    ) {
        out.extend_from_slice(b"( ");
        let mut cell = head;
        while Some(cell) != self.nil {
            let (first, rest) = self.cell(cell, graph).expect("all cells of a list are");
            self.write_object(out, pen, (first, graph), indent);
            out.push(b' ');
            cell = rest;
        }
        out.push(b')');
    }
}

/// Four spaces for each level.
fn push_indent(out: &mut Vec<u8>, levels: usize) {
    out.resize(out.len() + 4 * levels, b' ');
}

/// An empty line before all statements but the first.
fn separate(out: &mut Vec<u8>, is_first: &mut bool) {
    if !std::mem::take(is_first) {
        out.push(b'\n');
    }
}

/// The number of an IRI, if it is there.
fn number_of(gathered: &Gathered, iri: &str) -> Option<u32> {
    let is_it = |number: &u32| gathered.iri(*number) == Some(iri);
    (0..gathered.terms() as u32).find(is_it)
}

/// The numbers of quads in the order in which they are written: graphs, subjects and predicates as they
/// came first, but `rdf:type` before other predicates.
pub(super) fn in_order(gathered: &Gathered) -> Vec<u32> {
    let rdf_type = number_of(gathered, RDF_TYPE);
    let mut graphs = FxHashMap::default();
    let mut subjects = FxHashMap::default();
    let mut predicates = FxHashMap::default();
    let mut keyed = Vec::with_capacity(gathered.quads.len());
    for (number, &[subject, predicate, _, graph]) in (0_u32..).zip(&gathered.quads) {
        let of_graph = *graphs.entry(graph).or_insert(number);
        let of_subject = *subjects.entry((graph, subject)).or_insert(number);
        let came = predicates.entry((of_subject, predicate)).or_insert(number);
        let of_predicate = match Some(predicate) == rdf_type {
            true => 0,
            false => 1 + u64::from(*came),
        };
        keyed.push((of_graph, of_subject, of_predicate, number));
    }
    keyed.sort_unstable();
    keyed.into_iter().map(|key| key.3).collect()
}
