//! How is a term written in Turtle, and what of a graph as its quads come?

use super::escape::push_turtle_string;
use super::names::Names;
use super::term::{is_bare, push_iri};
use super::{QuadText, TermText};

pub(super) const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// Writes terms with the names of some prefixes, and notes which of these it used.
pub(super) struct Pen<'n> {
    names: &'n Names,
    pub(super) used: Vec<bool>,
}

impl<'n> Pen<'n> {
    pub(super) fn new(names: &'n Names) -> Self {
        Self {
            names,
            used: vec![false; names.declared().len()],
        }
    }

    /// One that notes nothing.
    pub(super) fn forgetful(names: &'n Names) -> Self {
        Self {
            names,
            used: Vec::new(),
        }
    }

    pub(super) fn predicate(&mut self, out: &mut Vec<u8>, iri: &str) {
        match iri {
            RDF_TYPE => out.push(b'a'),
            iri => self.iri(out, iri),
        }
    }

    pub(super) fn term(&mut self, out: &mut Vec<u8>, term: TermText<'_>) {
        match term {
            TermText::Iri(iri) => self.iri(out, iri),
            TermText::Blank(label) => {
                out.extend_from_slice(b"_:");
                out.extend_from_slice(label.as_bytes());
            }
            TermText::Literal {
                value,
                language,
                datatype,
            } => {
                let datatype = TermText::written_datatype(language, datatype);
                if datatype.is_some_and(|iri| is_bare(value, iri)) {
                    return out.extend_from_slice(value.as_bytes());
                }
                push_string(out, value);
                if let Some(language) = language {
                    out.push(b'@');
                    out.extend_from_slice(language.as_bytes());
                } else if let Some(datatype) = datatype {
                    out.extend_from_slice(b"^^");
                    self.iri(out, datatype);
                }
            }
        }
    }

    fn iri(&mut self, out: &mut Vec<u8>, iri: &str) {
        match self.names.push(out, iri) {
            Some(number) => {
                if let Some(used) = self.used.get_mut(number) {
                    *used = true;
                }
            }
            None => push_iri(out, iri),
        }
    }
}

/// Appends a string in quotes: in three of them where it has line ends, which then stand as they are.
fn push_string(out: &mut Vec<u8>, value: &str) {
    if !value.contains('\n') {
        out.push(b'"');
        push_turtle_string(out, value);
        return out.push(b'"');
    }
    out.extend_from_slice(b"\"\"\"");
    let mut rest = value;
    while let Some(at) = rest.find(['\n', '"']) {
        push_turtle_string(out, &rest[..at]);
        let after = &rest[at + 1..];
        match rest.as_bytes()[at] {
            // One that stands alone ends nothing.
            b'"' if !after.is_empty() && !after.starts_with('"') => out.push(b'"'),
            b'"' => out.extend_from_slice(b"\\\""),
            line_end => out.push(line_end),
        }
        rest = after;
    }
    push_turtle_string(out, rest);
    out.extend_from_slice(b"\"\"\"");
}

/// Appends the declarations of prefixes, in Turtle, TriG and N3.
pub(super) fn push_prefixes<'a>(
    out: &mut Vec<u8>,
    prefixes: impl Iterator<Item = (&'a str, &'a str)>,
) {
    for (name, iri) in prefixes {
        out.extend_from_slice(b"@prefix ");
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        push_iri(out, iri);
        out.extend_from_slice(b" .\n");
    }
}

/// Writes quads in the order in which they come: with `;` and `,` where one has the subject, or the
/// subject and the predicate, of the one before.
#[derive(Default)]
pub(super) struct AsTheyCome {
    /// Whether a statement is open, and whether it is in the block of a graph.
    is_open: bool,
    is_in_graph: bool,
    /// Of the quad before, as they are written.
    graph: Vec<u8>,
    subject: Vec<u8>,
    predicate: String,
    scratch: Vec<u8>,
}

impl AsTheyCome {
    pub(super) fn quad(&mut self, out: &mut Vec<u8>, pen: &mut Pen<'_>, quad: QuadText<'_>) {
        let same_graph = self.is_open && self.is_same_graph(pen, quad.graph);
        self.scratch.clear();
        pen.term(&mut self.scratch, quad.subject);
        let same_subject = same_graph && self.scratch == self.subject;
        let same_predicate = same_subject && self.predicate == quad.predicate;
        if same_predicate {
            out.extend_from_slice(b", ");
            return pen.term(out, quad.object);
        }
        if same_subject {
            out.extend_from_slice(b" ;\n    ");
        } else if !same_graph {
            self.end(out);
            if let Some(graph) = quad.graph {
                self.graph.clear();
                pen.term(&mut self.graph, graph);
                self.is_in_graph = true;
                out.extend_from_slice(&self.graph);
                out.extend_from_slice(b" {\n");
            }
        } else {
            out.extend_from_slice(b" .\n");
        }
        if self.is_in_graph {
            out.extend_from_slice(b"    ");
        }
        if !same_subject {
            std::mem::swap(&mut self.subject, &mut self.scratch);
            out.extend_from_slice(&self.subject);
            out.push(b' ');
        }
        pen.predicate(out, quad.predicate);
        out.push(b' ');
        pen.term(out, quad.object);
        self.predicate.clear();
        self.predicate.push_str(quad.predicate);
        self.is_open = true;
    }

    fn is_same_graph(&mut self, pen: &mut Pen<'_>, graph: Option<TermText<'_>>) -> bool {
        let Some(graph) = graph else {
            return !self.is_in_graph;
        };
        self.scratch.clear();
        pen.term(&mut self.scratch, graph);
        self.is_in_graph && self.scratch == self.graph
    }

    /// Ends the statement, and the graph, that the last quad is in.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_open) {
            out.extend_from_slice(b" .\n");
            if std::mem::take(&mut self.is_in_graph) {
                out.extend_from_slice(b"}\n");
            }
        }
    }
}
