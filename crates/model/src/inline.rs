//! Which literals need no dictionary, and how do they fit into an id?

use oxrdf::NamedNodeRef;

use crate::TermId;
