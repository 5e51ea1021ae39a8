//! Linked Data Event Streams: members of a collection, on pages that relations lead to.
//!
//! By <https://w3id.org/ldes/specification> and <https://w3id.org/tree/specification>. [`source`] goes from
//! page to page, [`page`] says what is on one, and [`marks`] remembers what was taken.

mod marks;
mod page;
mod source;

use oxrdf::NamedNodeRef;

pub use page::PageError;
pub(crate) use source::read;

macro_rules! tree {
    ($name:literal) => {
        NamedNodeRef::new_unchecked(concat!("https://w3id.org/tree#", $name))
    };
}

const VIEW: NamedNodeRef<'static> = tree!("view");
const MEMBER: NamedNodeRef<'static> = tree!("member");
const RELATION: NamedNodeRef<'static> = tree!("relation");
const NODE: NamedNodeRef<'static> = tree!("node");
const PATH: NamedNodeRef<'static> = tree!("path");
const VALUE: NamedNodeRef<'static> = tree!("value");
const GREATER: NamedNodeRef<'static> = tree!("GreaterThanRelation");
const GREATER_OR_EQUAL: NamedNodeRef<'static> = tree!("GreaterThanOrEqualToRelation");
const TIMESTAMP_PATH: NamedNodeRef<'static> =
    NamedNodeRef::new_unchecked("https://w3id.org/ldes#timestampPath");
