//! Where does a term lie in the order of texts, as far as numbers tell?

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

/// A place in the order of texts, byte by byte.
///
/// Of two terms of one kind, the one with the lesser `at` has the lesser text. If these are equal and
/// odd, so are the texts. If they are equal and even, the terms of one run but [`Self::ALONE`] are in
/// the order of `order`, and any others have to be compared by their texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TextPlace {
    /// What the term is.
    pub kind: TextKind,
    /// The run of terms that it belongs to: [`Self::MAIN`], another one, or [`Self::ALONE`].
    pub run: u32,
    /// For a literal, `2 n + 1` if it has the text of the one of the main run at position `n`, and
    /// `2 n` if it lies between the texts of those before and that one. 0 for all vertices.
    pub at: u64,
    /// Rises with the text within the run: the position in the main one. Equal only for equal texts.
    pub order: u64,
}

impl TextPlace {
    /// The run of literals that are in order.
    pub const MAIN: u32 = 0;
    /// Not a run: of such terms only `at` tells the order.
    pub const ALONE: u32 = u32::MAX;

    /// The place of a literal of the main run.
    #[inline]
    #[must_use]
    pub fn main(kind: TextKind, position: u64) -> Self {
        Self {
            kind,
            run: Self::MAIN,
            at: 2 * position + 1,
            order: position,
        }
    }
}
