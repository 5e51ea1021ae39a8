//! What is the text of this XML literal of an RDF/XML document?
//!
//! Of a property with `rdf:parseType="Literal"` it is the [exclusive canonical form] of what the
//! property holds, comments included ([RDF/XML], section 7.2.17). The parser writes every namespace
//! in scope on the outermost elements instead, escapes quotes, and leaves attributes in their order;
//! so what it made is read and written anew. Comments and processing instructions it gets between
//! marks, as text.
//!
//! [exclusive canonical form]: https://www.w3.org/TR/xml-exc-c14n/
//! [RDF/XML]: https://www.w3.org/TR/rdf-syntax-grammar/

use crate::xml_marks::Marks;
use oxrdf::vocab::rdf;
use oxrdf::{Literal, Quad, Term};
use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The namespace of RDF.
pub(crate) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// A literal that would become so many times longer stays as it is: each of many elements may have
/// to declare a namespace that is declared once.
const MAX_GROWTH: usize = 16;

/// A literal that declares a longer namespace stays as it is: they are compared at every name.
const MAX_NAMESPACE_BYTES: usize = 1024;

/// Gives an XML literal that the parser made of a `rdf:parseType="Literal"` its canonical form.
/// Literals of the datatype that are spelt out stay as they are; they have no mark.
pub(crate) fn canonicalize(quad: &mut Quad, marks: &Marks) {
    let Term::Literal(literal) = &quad.object else {
        return;
    };
    if literal.datatype() != rdf::XML_LITERAL {
        return;
    }
    if let Some(text) = literal.value().strip_prefix(marks.literal.as_str()) {
        let text = canonical(text, marks).unwrap_or_else(|| without_marked(text, marks));
        quad.object = Literal::new_typed_literal(text, rdf::XML_LITERAL).into();
    }
}

/// The canonical form of a text that the parser wrote; none if it is no XML.
fn canonical(text: &str, marks: &Marks) -> Option<String> {
    // A mark of the byte order the reader would drop.
    if text.starts_with('\u{feff}') {
        return None;
    }
    let mut reader = Reader::from_str(text);
    let mut writer = Canonical::new(marks);
    loop {
        match reader.read_event().ok()? {
            Event::Start(tag) => writer.start(&tag)?,
            Event::End(_) => writer.end()?,
            Event::Text(raw) => writer.text(str::from_utf8(&raw).ok()?)?,
            Event::Eof => return writer.open.is_empty().then_some(writer.out),
            // The parser writes nothing else, not even tags of empty elements.
            _ => return None,
        }
        if writer.out.len() / MAX_GROWTH > text.len() {
            return None;
        }
    }
}

/// The text without comments and processing instructions.
fn without_marked(text: &str, marks: &Marks) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, _, after)) = marked(rest, marks) {
        out.push_str(before);
        rest = after;
    }
    out + rest
}

/// The first comment or processing instruction, with what is in front of it and after it.
fn marked<'a>(text: &'a str, marks: &Marks) -> Option<(&'a str, Marked<'a>, &'a str)> {
    let comment = text.split_once(&marks.comment.begin);
    let instruction = text.split_once(&marks.instruction.begin);
    let is_comment = match (&comment, &instruction) {
        (Some((before, _)), Some((other, _))) => before.len() < other.len(),
        (comment, _) => comment.is_some(),
    };
    if is_comment {
        let (before, rest) = comment?;
        let (content, after) = rest.split_once(&marks.comment.end)?;
        return Some((before, Marked::Comment(content), after));
    }
    let (before, rest) = instruction?;
    let (content, after) = rest.split_once(&marks.instruction.end)?;
    Some((before, Marked::Instruction(content), after))
}

enum Marked<'a> {
    Comment(&'a str),
    Instruction(&'a str),
}

/// Writes the canonical form, event by event.
struct Canonical<'a> {
    marks: &'a Marks,
    out: String,
    /// The names of the elements that are open.
    open: Vec<String>,
    /// Namespaces as the text declares them, with what is escaped in their IRIs.
    declared: Scope,
    /// Namespaces as the output declares them.
    written: Scope,
}

impl<'m> Canonical<'m> {
    fn new(marks: &'m Marks) -> Self {
        Self {
            marks,
            out: String::new(),
            open: Vec::new(),
            declared: Scope::default(),
            written: Scope::default(),
        }
    }

    fn start(&mut self, tag: &BytesStart<'_>) -> Option<()> {
        let name = str::from_utf8(tag.name().into_inner()).ok()?.to_owned();
        let (prefix, _) = split_name(&name)?;
        self.declared.open();
        self.written.open();
        let mut attributes = Vec::new();
        for attribute in tag.attributes().with_checks(false) {
            let attribute = attribute.ok()?;
            let name = str::from_utf8(attribute.key.into_inner()).ok()?;
            let raw = str::from_utf8(&attribute.value).ok()?;
            if let Some(prefix) = declared_prefix(name) {
                if raw.len() > MAX_NAMESPACE_BYTES {
                    return None;
                }
                // What an element declares itself the parser repeats.
                self.declared.bind(prefix, raw)?;
            } else {
                attributes.push((name.to_owned(), value(raw)?));
            }
        }
        self.out.push('<');
        self.out.push_str(&name);
        let prefixes = attributes.iter().filter_map(|(name, _)| prefix_of(name));
        let namespaces = self.namespaces(prefixes.chain([prefix]).collect())?;
        self.attributes(&attributes, &namespaces)?;
        self.out.push('>');
        self.open.push(name);
        Some(())
    }

    /// Declares those of an element's prefixes that are not yet; returns their namespaces.
    fn namespaces<'a>(&mut self, used: BTreeSet<&'a str>) -> Option<BTreeMap<&'a str, String>> {
        let mut namespaces = BTreeMap::new();
        for prefix in used {
            if prefix == "xml" {
                namespaces.insert(prefix, XML.to_owned());
                continue;
            }
            let namespace = value(self.declared.get(prefix))?;
            if namespace.is_empty() && !prefix.is_empty() {
                return None;
            }
            if self.written.get(prefix) != namespace {
                let name = match prefix {
                    "" => "xmlns".to_owned(),
                    prefix => format!("xmlns:{prefix}"),
                };
                self.attribute(&name, &namespace);
                self.written.bind(prefix, &namespace)?;
            }
            namespaces.insert(prefix, namespace);
        }
        Some(namespaces)
    }

    /// Writes attributes in the order of their namespaces, then of their names.
    fn attributes(
        &mut self,
        attributes: &[(String, String)],
        namespaces: &BTreeMap<&str, String>,
    ) -> Option<()> {
        let mut sorted = BTreeMap::new();
        for (name, value) in attributes {
            let (prefix, local) = split_name(name)?;
            let namespace = match prefix {
                // The default is for elements only.
                "" => "",
                prefix => namespaces.get(prefix)?,
            };
            if sorted.insert((namespace, local), (name, value)).is_some() {
                return None;
            }
        }
        for (name, value) in sorted.into_values() {
            self.attribute(name, value);
        }
        Some(())
    }

    fn attribute(&mut self, name: &str, value: &str) {
        self.out.push(' ');
        self.out.push_str(name);
        self.out.push_str("=\"");
        for c in value.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '"' => self.out.push_str("&quot;"),
                '\t' => self.out.push_str("&#x9;"),
                '\n' => self.out.push_str("&#xA;"),
                '\r' => self.out.push_str("&#xD;"),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    fn end(&mut self) -> Option<()> {
        self.out.push_str("</");
        self.out.push_str(&self.open.pop()?);
        self.out.push('>');
        self.declared.close();
        self.written.close();
        Some(())
    }

    fn text(&mut self, raw: &str) -> Option<()> {
        let text = unescape(raw).ok()?;
        let mut rest = &*text;
        while let Some((before, content, after)) = marked(rest, self.marks) {
            self.characters(before);
            match content {
                Marked::Comment(content) => {
                    self.out.push_str("<!--");
                    self.out.push_str(content);
                    self.out.push_str("-->");
                }
                Marked::Instruction(content) => {
                    self.out.push_str("<?");
                    self.instruction(content);
                    self.out.push_str("?>");
                }
            }
            rest = after;
        }
        self.characters(rest);
        Some(())
    }

    /// One space stands between the target and the rest.
    fn instruction(&mut self, content: &str) {
        match content.split_once([' ', '\t', '\n']) {
            None => self.out.push_str(content),
            Some((target, rest)) => {
                self.out.push_str(target);
                let rest = rest.trim_start_matches([' ', '\t', '\n']);
                if !rest.is_empty() {
                    self.out.push(' ');
                    self.out.push_str(rest);
                }
            }
        }
    }

    fn characters(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '&' => self.out.push_str("&amp;"),
                '<' => self.out.push_str("&lt;"),
                '>' => self.out.push_str("&gt;"),
                '\r' => self.out.push_str("&#xD;"),
                c => self.out.push(c),
            }
        }
    }
}

/// The namespaces by prefix within the elements that are open; the empty prefix is the default's.
#[derive(Default)]
struct Scope {
    /// The innermost namespace last.
    bound: HashMap<String, Vec<String>>,
    /// For each element the prefixes that it binds.
    elements: Vec<BTreeSet<String>>,
}

impl Scope {
    fn open(&mut self) {
        self.elements.push(BTreeSet::new());
    }

    fn close(&mut self) {
        for prefix in self.elements.pop().unwrap_or_default() {
            if let Some(bound) = self.bound.get_mut(&prefix) {
                bound.pop();
            }
        }
    }

    /// Binds a prefix in the innermost element; none if that binds it to something else.
    fn bind(&mut self, prefix: &str, namespace: &str) -> Option<()> {
        if !self.elements.last_mut()?.insert(prefix.to_owned()) {
            return (self.get(prefix) == namespace).then_some(());
        }
        let bound = self.bound.entry(prefix.to_owned()).or_default();
        bound.push(namespace.to_owned());
        Some(())
    }

    /// The namespace of a prefix; empty if there is none.
    fn get(&self, prefix: &str) -> &str {
        let bound = self.bound.get(prefix).and_then(|bound| bound.last());
        bound.map_or("", String::as_str)
    }
}

/// The prefix that an attribute declares, empty for the default; none if it is no declaration.
fn declared_prefix(attribute: &str) -> Option<&str> {
    match attribute {
        "xmlns" => Some(""),
        name => name.strip_prefix("xmlns:"),
    }
}

/// The prefix of an attribute that has one.
fn prefix_of(name: &str) -> Option<&str> {
    name.split_once(':').map(|(prefix, _)| prefix)
}

/// The prefix, which may be empty, and the local part of a name; none if it is no name.
fn split_name(name: &str) -> Option<(&str, &str)> {
    let is_name = |part: &str| {
        let starts = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
        let goes_on = |c: char| starts(c) || c.is_ascii_digit() || matches!(c, '-' | '.');
        part.starts_with(starts) && part.chars().all(goes_on)
    };
    match name.split_once(':') {
        Some((prefix, local)) if is_name(prefix) && is_name(local) => Some((prefix, local)),
        None if is_name(name) => Some(("", name)),
        _ => None,
    }
}

/// The value of an attribute, of what stands between its quotes.
fn value(raw: &str) -> Option<String> {
    Some(unescape(raw).ok()?.into_owned())
}

#[cfg(test)]
#[path = "xml_literal_tests.rs"]
mod tests;
