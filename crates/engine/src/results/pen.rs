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
            Some(number) => self.used[number] = true,
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
    /// Of the quad before; nothing was written before the first one.
    last: Option<Last>,
}

struct Last {
    /// As it is written.
    graph: Option<Vec<u8>>,
    subject: Vec<u8>,
    predicate: String,
}

impl AsTheyCome {
    pub(super) fn quad(&mut self, out: &mut Vec<u8>, pen: &mut Pen<'_>, quad: QuadText<'_>) {
        let written = |pen: &mut Pen<'_>, term| {
            let mut text = Vec::new();
            pen.term(&mut text, term);
            text
        };
        let graph = quad.graph.map(|graph| written(pen, graph));
        let subject = written(pen, quad.subject);
        let (same_graph, same_subject, same_predicate) = match &self.last {
            None => (false, false, false),
            Some(last) => (
                last.graph == graph,
                last.subject == subject,
                last.predicate == quad.predicate,
            ),
        };
        let indent: &[u8] = if graph.is_some() { b"    " } else { b"" };
        if same_graph && same_subject && same_predicate {
            out.extend_from_slice(b", ");
        } else if same_graph && same_subject {
            out.extend_from_slice(b" ;\n    ");
            out.extend_from_slice(indent);
        } else {
            if !same_graph {
                self.end(out);
                if let Some(graph) = &graph {
                    out.extend_from_slice(graph);
                    out.extend_from_slice(b" {\n");
                }
            } else if self.last.is_some() {
                out.extend_from_slice(b" .\n");
            }
            out.extend_from_slice(indent);
            out.extend_from_slice(&subject);
            out.push(b' ');
        }
        if !(same_graph && same_subject && same_predicate) {
            pen.predicate(out, quad.predicate);
            out.push(b' ');
        }
        pen.term(out, quad.object);
        self.last = Some(Last {
            graph,
            subject,
            predicate: quad.predicate.to_owned(),
        });
    }

    /// Ends the statement, and the graph, that the last quad is in.
    pub(super) fn end(&mut self, out: &mut Vec<u8>) {
        if let Some(last) = self.last.take() {
            out.extend_from_slice(b" .\n");
            if last.graph.is_some() {
                out.extend_from_slice(b"}\n");
            }
        }
    }
}
