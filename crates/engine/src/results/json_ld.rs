//! How is a graph written as JSON-LD with prefixes, once all of it is known?

use std::collections::HashSet;

use super::escape::push_json;
use super::gathered::{Gathered, NO_TERM};
use super::names::Names;
use super::pen::RDF_TYPE;
use super::tree::in_order;
use super::{QuadText, TermText};

/// Appends a document, subject by subject; false, and nothing appended, if no prefix is of use.
pub(super) fn write(out: &mut Vec<u8>, gathered: &Gathered, names: &Names) -> bool {
    let names = usable(gathered, names);
    let mut writer = Writer {
        used: vec![false; names.declared().len()],
        names,
        body: Vec::new(),
    };
    writer.write(gathered);
    if !writer.used.contains(&true) {
        return false;
    }
    out.extend_from_slice(b"{\"@context\":{");
    let declared = writer.names.declared().iter().zip(&writer.used);
    let mut separator: &[u8] = b"";
    for ((name, iri), _) in declared.filter(|(_, is_used)| **is_used) {
        out.extend_from_slice(separator);
        separator = b",";
        push_string(out, name);
        out.push(b':');
        push_string(out, iri);
    }
    out.extend_from_slice(b"},\"@graph\":[");
    out.append(&mut writer.body);
    out.extend_from_slice(b"]}");
    true
}

/// The prefixes that a reader expands as they are meant: of IRIs that end as namespaces do, and none that
/// is called as the scheme of an IRI that is written whole.
fn usable(gathered: &Gathered, names: &Names) -> Names {
    let mut schemes = HashSet::new();
    let mut add = |iri: &str| {
        if let Some((scheme, _)) = iri.split_once(':')
            && !schemes.contains(scheme)
        {
            schemes.insert(scheme.to_owned());
        }
    };
    for number in 0..gathered.terms() as u32 {
        match gathered.term(number) {
            TermText::Iri(iri) => add(iri),
            TermText::Literal {
                datatype: Some(iri),
                ..
            } => add(iri),
            TermText::Literal { .. } | TermText::Blank(_) => {}
        }
    }
    let usable = names.declared().iter().filter(|(name, iri)| {
        !name.is_empty()
            && iri.ends_with([':', '/', '?', '#', '[', ']', '@'])
            && !schemes.contains(name)
    });
    Names::new(usable.cloned())
}

fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    push_json(out, text);
    out.push(b'"');
}

struct Writer {
    names: Names,
    used: Vec<bool>,
    body: Vec<u8>,
}

/// What of the document is open: a graph, a subject in it, a list of values, as they are in a quad.
type Open = (u32, u32, u32);

impl Writer {
    fn write(&mut self, gathered: &Gathered) {
        // Types that are literals are values of a member as any other.
        let is_type = |predicate: u32| gathered.iri(predicate) == Some(RDF_TYPE);
        let all_are_nodes = gathered
            .quads
            .iter()
            .all(|&[_, predicate, object, _]| !is_type(predicate) || !gathered.is_literal(object));
        let mut open: Option<Open> = None;
        for number in in_order(gathered) {
            let [subject, predicate, _, graph] = gathered.quads[number as usize];
            let is_type = all_are_nodes && is_type(predicate);
            let text = gathered.quad(number);
            let now = (graph, subject, predicate);
            self.go_to(open, now, text, is_type);
            open = Some(now);
            match is_type {
                true => self.node(text.object),
                false => self.value(text.object),
            }
        }
        if let Some((graph, ..)) = open {
            self.body.extend_from_slice(b"]}");
            self.close_graph(graph);
        }
    }

    /// Closes what is open and is not of the next quad, and opens what is.
    fn go_to(&mut self, open: Option<Open>, now: Open, quad: QuadText<'_>, is_type: bool) {
        if open == Some(now) {
            return self.body.push(b',');
        }
        let same_graph = open.is_some_and(|open| open.0 == now.0);
        if same_graph && open.is_some_and(|open| open.1 == now.1) {
            self.body.extend_from_slice(b"],");
        } else {
            if let Some((graph, ..)) = open {
                self.body.extend_from_slice(b"]}");
                if !same_graph {
                    self.close_graph(graph);
                }
                self.body.extend_from_slice(b",");
            }
            if !same_graph && let Some(graph) = quad.graph {
                self.body.extend_from_slice(b"{\"@id\":");
                self.node(graph);
                self.body.extend_from_slice(b",\"@graph\":[");
            }
            self.body.extend_from_slice(b"{\"@id\":");
            self.node(quad.subject);
            self.body.push(b',');
        }
        match is_type {
            true => self.body.extend_from_slice(b"\"@type\""),
            false => self.iri(quad.predicate),
        }
        self.body.extend_from_slice(b":[");
    }

    fn close_graph(&mut self, graph: u32) {
        if graph != NO_TERM {
            self.body.extend_from_slice(b"]}");
        }
    }

    fn iri(&mut self, iri: &str) {
        self.body.push(b'"');
        match self.names.longest(iri) {
            Some((number, local)) if !local.is_empty() && !local.starts_with("//") => {
                self.used[number] = true;
                let name = &self.names.declared()[number].0;
                push_json(&mut self.body, name);
                self.body.push(b':');
                push_json(&mut self.body, local);
            }
            _ => push_json(&mut self.body, iri),
        }
        self.body.push(b'"');
    }

    fn node(&mut self, node: TermText<'_>) {
        match node {
            TermText::Iri(iri) => self.iri(iri),
            TermText::Blank(label) => push_string(&mut self.body, &format!("_:{label}")),
            TermText::Literal { value, .. } => panic!("the literal {value:?} stands for a node"),
        }
    }

    fn value(&mut self, term: TermText<'_>) {
        let TermText::Literal {
            value,
            language,
            datatype,
        } = term
        else {
            self.body.extend_from_slice(b"{\"@id\":");
            self.node(term);
            return self.body.push(b'}');
        };
        let datatype = TermText::written_datatype(language, datatype);
        if language.is_none() && datatype.is_none() {
            return push_string(&mut self.body, value);
        }
        self.body.push(b'{');
        if let Some(language) = language {
            self.body.extend_from_slice(b"\"@language\":");
            push_string(&mut self.body, language);
        } else if let Some(datatype) = datatype {
            self.body.extend_from_slice(b"\"@type\":");
            self.iri(datatype);
        }
        self.body.extend_from_slice(b",\"@value\":");
        push_string(&mut self.body, value);
        self.body.push(b'}');
    }
}
