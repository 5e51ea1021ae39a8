//! How does a computed term leave its process? By its text.

use jindou_model::{TermId, Unavailable, key};
use oxrdf::vocab::xsd;
use oxrdf::{BlankNodeRef, LiteralRef, NamedNodeRef, TermRef};

use super::{TERM_ENTRY_BYTES, WireError};
use crate::Terms;

/// What begins the key of a blank node, and no IRI.
const BLANK: &str = "_:";

/// What a computed term is, as a number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Its text is the IRI.
    Iri = 1,
    /// Its text is the label.
    Blank = 2,
    /// `xsd:string`.
    String = 3,
    /// Its second text is the language.
    OfLanguage = 4,
    /// Its second text is the datatype.
    Typed = 5,
}

impl Kind {
    fn from_number(number: u32) -> Option<Self> {
        [
            Self::Iri,
            Self::Blank,
            Self::String,
            Self::OfLanguage,
            Self::Typed,
        ]
        .into_iter()
        .find(|kind| *kind as u32 == number)
    }
}

/// A computed term: what it is, its text, and its datatype or language.
struct Text<'a> {
    kind: Kind,
    text: &'a str,
    of: &'a str,
}

impl<'a> Text<'a> {
    /// The term of this key.
    ///
    /// # Panics
    /// If it is none: terms of a query have keys of terms.
    fn of_key(bytes: &'a [u8], literal: bool) -> Self {
        if literal {
            let parts = key::literal_parts(bytes).expect("a literal has the key of one");
            let (text, language, datatype) = parts;
            return match language {
                Some(of) => Self::new(Kind::OfLanguage, text, of),
                None if datatype == xsd::STRING => Self::new(Kind::String, text, ""),
                None => Self::new(Kind::Typed, text, datatype.as_str()),
            };
        }
        let text = std::str::from_utf8(bytes).expect("a node has the key of one");
        match text.strip_prefix(BLANK) {
            Some(label) => Self::new(Kind::Blank, label, ""),
            None => Self::new(Kind::Iri, text, ""),
        }
    }

    fn new(kind: Kind, text: &'a str, of: &'a str) -> Self {
        Self { kind, text, of }
    }

    /// The term; `None` if another one has its key, or none can.
    fn term(&self) -> Option<TermRef<'a>> {
        // The border in the keys of literals, which no other part of a key holds.
        let has_border = |text: &str| text.contains('\0');
        if has_border(self.of) {
            return None;
        }
        let node = |term: TermRef<'a>| (!has_border(self.text)).then_some(term);
        let literal = |literal: LiteralRef<'a>| Some(literal.into());
        match self.kind {
            Kind::Iri if self.text.starts_with(BLANK) => None,
            Kind::Iri => node(NamedNodeRef::new_unchecked(self.text).into()),
            Kind::Blank => node(BlankNodeRef::new_unchecked(self.text).into()),
            Kind::String => literal(LiteralRef::new_simple_literal(self.text)),
            Kind::OfLanguage => literal(LiteralRef::new_language_tagged_literal_unchecked(
                self.text, self.of,
            )),
            Kind::Typed => {
                let datatype = NamedNodeRef::new_unchecked(self.of);
                literal(LiteralRef::new_typed_literal(self.text, datatype))
            }
        }
    }
}

/// Appends what says of computed terms what they are, and then their texts; gives how many bytes
/// the texts take.
///
/// # Errors
/// As [`Terms::push_keys`], but that a query has its own terms.
pub(super) fn write(
    ids: &[TermId],
    terms: &Terms,
    out: &mut Vec<u8>,
) -> Result<usize, Unavailable> {
    let entries = out.len();
    out.resize(entries + ids.len() * TERM_ENTRY_BYTES, 0);
    let texts = out.len();
    let mut place = entries;
    terms.for_each_key(ids, &mut |_, bytes, literal| {
        let term = Text::of_key(bytes, literal);
        let of_bytes = u32::try_from(term.of.len()).expect("a datatype takes less than 4 GiB");
        let entry = &mut out[place..place + TERM_ENTRY_BYTES];
        entry[..4].copy_from_slice(&(term.kind as u32).to_le_bytes());
        entry[4..8].copy_from_slice(&of_bytes.to_le_bytes());
        entry[8..].copy_from_slice(&(term.text.len() as u64).to_le_bytes());
        place += TERM_ENTRY_BYTES;
        out.extend_from_slice(term.text.as_bytes());
        out.extend_from_slice(term.of.as_bytes());
    })?;
    Ok(out.len() - texts)
}

/// Computed terms that came.
pub(super) struct Read<'a>(Vec<TermRef<'a>>);

impl Read<'_> {
    /// The ids that they have for `terms`, all looked up together.
    ///
    /// # Errors
    /// As [`Terms::intern_all`].
    pub(super) fn intern(&self, terms: &Terms) -> Result<Vec<TermId>, Unavailable> {
        let mut ids = Vec::with_capacity(self.0.len());
        terms.intern_all(self.0.iter().map(|term| Some(*term)), &mut ids)?;
        Ok(ids)
    }
}

/// The terms of these entries and texts.
///
/// # Errors
/// What is wrong with which of them.
pub(super) fn read<'a>(
    entries: &[[u8; TERM_ENTRY_BYTES]],
    mut texts: &'a [u8],
) -> Result<Read<'a>, WireError> {
    let end = texts.len();
    let mut terms = Vec::with_capacity(entries.len());
    for (term, entry) in entries.iter().enumerate() {
        let [k0, k1, k2, k3, o0, o1, o2, o3, text @ ..] = *entry;
        let number = u32::from_le_bytes([k0, k1, k2, k3]);
        let kind = Kind::from_number(number).ok_or(WireError::TermKind { term, kind: number })?;
        let mut part = |part, bytes: u64| {
            let bytes = usize::try_from(bytes).ok();
            let split = bytes.and_then(|bytes| texts.split_at_checked(bytes));
            let (own, rest) = split.ok_or(WireError::Truncated { part: "texts", end })?;
            texts = rest;
            std::str::from_utf8(own).map_err(|_| WireError::Text { term, part })
        };
        let text = part("text", u64::from_le_bytes(text))?;
        let of = part(
            "datatype or language",
            u32::from_le_bytes([o0, o1, o2, o3]).into(),
        )?;
        let read = Text { kind, text, of }.term();
        terms.push(read.ok_or(WireError::Text { term, part: "text" })?);
    }
    match texts.len() {
        0 => Ok(Read(terms)),
        bytes => Err(WireError::TooLong { bytes }),
    }
}
