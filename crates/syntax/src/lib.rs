//! Text -> tree: what does a request say, where does each part of it stand, and what is wrong
//! with it?
//!
//! One tokenizer and one recursive-descent parser for queries and updates of SPARQL 1.1 and 1.2,
//! and for continuous queries of RSP-QL, C-SPARQL and the form of Wukong+S ([`continuous`]).
//! The tree ([`tree`]) follows the grammar: names are resolved, abbreviations of triples are
//! written out, and each node has its place in the text. What it means is the planner's to say.
//!
//! Time is linear in the text. Memory is reserved before it is held, and nesting is bounded, so
//! that no text overflows the stack of the thread that parses it.
//!
//! ```
//! use jindou_syntax::{Options, parse_query, position};
//!
//! let query = parse_query("SELECT * { ?s ?p 'o'@en }", Options::default())?;
//! assert_eq!(query.dataset, None);
//!
//! let wrong = "SELCT * {}";
//! let error = parse_query(wrong, Options::default()).expect_err("a misspelt keyword");
//! let span = error.span().expect("a place");
//! assert_eq!(position(wrong, span.start), (1, 1));
//! assert_eq!(error.hint(), Some("did you mean SELECT?"));
//! # Ok::<(), jindou_syntax::Error>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(test)]
mod agreement;
mod chars;
mod check;
pub mod continuous;
#[cfg(test)]
mod continuous_limits;
pub mod data;
mod duration;
mod error;
mod expression;
mod functions;
mod group;
mod hints;
mod keywords;
mod lexer;
#[cfg(test)]
mod limits;
mod memory;
mod names;
mod odd;
mod parser;
mod path;
mod patterns;
mod prefixes;
mod prologue;
mod query;
#[cfg(test)]
mod random;
#[cfg(test)]
mod random_expression;
mod register;
mod scope;
mod shape;
mod terms;
pub mod tree;
mod triples;
mod update;
mod window;
mod words;

pub use error::{Error, position};
pub use names::{is_prefix_name, push_local_name};
pub use odd::{is_readable_iri, is_readable_language, without_dots};
pub use prologue::prefixes;
pub use shape::{Argument, ArgumentKind, Shape, shape_of};
pub use terms::{is_plain_iri, undeclared_prefix};

/// Brackets open at once above which a text is refused: `(`, `[`, `{`, `{|`, `<<` and `<<(`.
pub const MAX_NESTING: usize = 256;

/// Windows of a continuous query above which it is refused.
pub const MAX_WINDOWS: usize = 256;

/// What parsing needs beside the text.
#[derive(Default)]
pub struct Options<'o> {
    /// What relative IRIs are resolved against before the text has a BASE.
    pub base: Option<&'o str>,
    /// Takes this many more bytes, which are about to be held; false if there are not as many.
    /// They are held until the tree is dropped. If there is none, all memory may be used.
    pub reserve: Option<&'o mut dyn FnMut(usize) -> bool>,
    /// Whether to give up, asked every few thousand tokens. If there is none, never.
    pub is_over: Option<&'o dyn Fn() -> bool>,
}

/// Parses a query.
///
/// Costs some ten nanoseconds for each token, and never more than a few times that.
///
/// # Errors
/// Any [`Error`] but [`Error::IsQuery`] and [`Error::Unsupported`].
pub fn parse_query<'t>(text: &'t str, options: Options<'_>) -> Result<tree::Query<'t>, Error> {
    let mut parser = parser::Parser::new(text, "query", options).map_err(|failure| *failure)?;
    parser.query().map_err(|failure| *failure)
}

/// Parses an update request: its operations; none for a text without any.
///
/// The data of INSERT DATA and DELETE DATA is checked, but stays in the text.
///
/// # Errors
/// Any [`Error`] but [`Error::IsUpdate`] and [`Error::Unsupported`].
pub fn parse_update<'t>(
    text: &'t str,
    options: Options<'_>,
) -> Result<Vec<tree::Operation<'t>>, Error> {
    let mut parser = parser::Parser::new(text, "update", options).map_err(|failure| *failure)?;
    parser.update().map_err(|failure| *failure)
}

/// Parses a continuous query, with or without a header that registers it.
///
/// A query of SPARQL is one, too: without windows. The words of continuous queries are keywords
/// only where the grammar has them, so that no name of a query is taken for one. Costs what
/// [`parse_query`] does.
///
/// ```
/// use jindou_syntax::continuous::Extent;
/// use jindou_syntax::{Options, parse_continuous};
///
/// let text = "REGISTER QUERY likes COMPUTED EVERY 1s AS
///     SELECT ?who FROM STREAM <http://e/likes> [RANGE 10s STEP 1s] WHERE { ?who ?likes ?what }";
/// let registration = parse_continuous(text, Options::default())?;
/// let Extent::Time { range, .. } = registration.windows[0].extent else {
///     panic!("a window of time");
/// };
/// assert_eq!(range.ms, 10_000);
/// # Ok::<(), jindou_syntax::Error>(())
/// ```
///
/// # Errors
/// Any [`Error`] but [`Error::IsQuery`]; [`Error::Unsupported`] for what other languages of
/// continuous queries have.
pub fn parse_continuous<'t>(
    text: &'t str,
    options: Options<'_>,
) -> Result<continuous::Registration<'t>, Error> {
    let mut parser = parser::Parser::new(text, "query", options).map_err(|failure| *failure)?;
    parser.registration().map_err(|failure| *failure)
}
