//! Which terms are in the order of their ids?

/// Kinds of terms that are ordered by their texts, in the order in which SPARQL puts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TextKind {
    /// Blank nodes, by their labels.
    Blank,
    /// IRIs.
    Iri,
    /// Literals of `xsd:string`.
    String,
    /// Literals with a language tag: by their lexical forms, then by their tags.
    LangString,
}

/// Terms whose ids rise as their texts do, byte by byte: of two terms of one run, the one with the
/// lesser id has the lesser text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextRun {
    /// What its terms are.
    pub kind: TextKind,
    /// Tells it from other runs of this kind.
    pub number: u32,
}
