//! How much may the parser of Turtle or TriG hold for this document, and where do its statements end?
//!
//! It keeps a stack entry for each bracket that is open, with the predicate in front of it, all
//! prefixes with their IRIs, and the token that it reads: a few bytes of a document may stand for
//! long IRIs in each. So this watches the bytes on their way to the parser and reserves what that
//! may hold before it gets them. What is wrong with them is the parser's business.

use crate::source::Guard;
use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

/// What the parser holds for an open bracket beside the name of its predicate. A test of the engine
/// measures this and what follows.
const OPEN_BYTES: u64 = 1024;
/// What it holds for a prefix beside its name and IRI, with what its table keeps free.
const PREFIX_BYTES: u64 = 256;
/// How often a name may be there: in its place, and in lists that grow.
const NAME_COPIES: u64 = 2;
/// How often a token may be there: in the buffer that grows for it, as it is written and as it is
/// meant, and as what a sink makes of it.
const TOKEN_COPIES: u64 = 8;
/// Tokens of fewer bytes are among the buffers that nobody counts.
const SHORT_TOKEN_BYTES: u64 = 16 << 10;
/// The longest word that says something by itself.
const KEYWORD_BYTES: usize = 8;

/// Hands on the bytes of a document after memory for them was reserved.
pub(crate) struct TurtleReader<R> {
    inner: R,
    guard: Arc<dyn Guard>,
    watch: TurtleWatch,
    held: u64,
}

impl<R: Read> TurtleReader<R> {
    pub(crate) fn new(inner: R, guard: Arc<dyn Guard>, base_iri: Option<&str>) -> Self {
        let watch = TurtleWatch {
            base_bytes: base_iri.map_or(0, str::len) as u64,
            ..TurtleWatch::default()
        };
        Self {
            inner,
            guard,
            watch,
            held: 0,
        }
    }
}

impl<R: Read> Read for TurtleReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        for byte in &buf[..n] {
            self.watch.byte(*byte);
        }
        let most = self.watch.most();
        if most > self.held {
            self.guard.hold(most - self.held)?;
            self.held = most;
        }
        Ok(n)
    }
}

/// Where in a token the document is.
#[derive(Clone, Copy, Default)]
enum State {
    #[default]
    Between,
    /// A prefixed name, a keyword, a number, or a tag.
    Word,
    Iri,
    Comment,
    /// After one quote, or two.
    Quoted(u8),
    QuotedTwice(u8),
    Short(u8),
    /// With this many of three closing quotes.
    Long(u8, u8),
}

/// What a declaration is about to say.
#[derive(Default)]
enum Declares {
    #[default]
    Nothing,
    /// The name of a prefix follows.
    Prefix,
    /// The IRI of the prefix with this name follows.
    PrefixIri(Box<[u8]>),
    /// The IRI of the base follows.
    Base,
}

/// Follows a document from its first byte.
#[derive(Default)]
pub(crate) struct TurtleWatch {
    state: State,
    /// The next byte is escaped.
    escaped: bool,
    declares: Declares,
    /// The word from its last point on, if it may be a keyword; all of the name of a prefix.
    word: Vec<u8>,
    /// The word begins with `@`.
    is_tag: bool,
    /// The IRI has a scheme; none before it is known.
    has_scheme: Option<bool>,
    token_bytes: u64,
    longest_token: u64,
    base_bytes: u64,
    /// Bytes of the prefixes by their names, and of all.
    prefixes: HashMap<Box<[u8]>, u64>,
    prefix_bytes: u64,
    /// The longest IRI of a prefix.
    longest_prefix: u64,
    /// The longest name that a bracket may have in front of it.
    longest_name: u64,
    /// Bytes by open bracket, of all, and the most that these and the prefixes were.
    open: Vec<u64>,
    open_bytes: u64,
    most_state: u64,
    /// The word so far ends with a point that is not escaped, which is no part of it.
    after_point: bool,
    ends: Ends,
}

/// What there was so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    /// Statements and blocks of graphs that have ended, whatever brackets are open: a point and a
    /// closing brace end one also where they are wrong. A point is known to be one by the byte
    /// after it.
    pub(crate) statements: u64,
    /// Opening and closing braces.
    pub(crate) opened: u64,
    pub(crate) closed: u64,
    /// Strings of one line and IRIs that are not closed where they have to be.
    pub(crate) broken: u64,
}

impl TurtleWatch {
    /// What statements and the like have ended.
    pub(crate) fn ends(&self) -> Ends {
        self.ends
    }

    /// The most bytes that the parser held so far.
    fn most(&self) -> u64 {
        let token = self.longest_token.max(self.token_bytes);
        let token = token.saturating_sub(SHORT_TOKEN_BYTES);
        self.most_state
            .saturating_add(token.saturating_mul(TOKEN_COPIES))
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.token_bytes += 1;
        if self.escaped {
            self.escaped = false;
            self.after_point = false;
            return;
        }
        match self.state {
            State::Between => self.begin(byte),
            State::Word => match byte {
                b'\\' => self.escaped = true,
                _ if ends_word(byte) || (self.is_tag && !is_in_tag(byte)) => {
                    self.ends.statements += u64::from(self.after_point);
                    self.end_word();
                    self.begin(byte);
                }
                _ => self.push_word(byte),
            },
            State::Iri => self.iri_byte(byte),
            State::Comment if matches!(byte, b'\n' | b'\r') => self.end_token(),
            State::Comment => {}
            State::Quoted(quote) if byte == quote => self.state = State::QuotedTwice(quote),
            State::Quoted(quote) => {
                self.state = State::Short(quote);
                self.after_point = false;
                self.short_byte(byte, quote);
            }
            State::QuotedTwice(quote) if byte == quote => self.state = State::Long(quote, 0),
            State::QuotedTwice(_) => {
                self.end_token();
                self.begin(byte);
            }
            State::Short(quote) => self.short_byte(byte, quote),
            State::Long(quote, closing) => match byte {
                b'\\' => {
                    self.escaped = true;
                    self.state = State::Long(quote, 0);
                }
                byte if byte != quote => self.state = State::Long(quote, 0),
                _ if closing == 2 => self.end_token(),
                _ => self.state = State::Long(quote, closing + 1),
            },
        }
    }

    /// Begins a token, or is one.
    fn begin(&mut self, byte: u8) {
        self.token_bytes = 1;
        self.state = match byte {
            b'#' => State::Comment,
            b'"' | b'\'' => State::Quoted(byte),
            b'<' => {
                self.word.clear();
                self.has_scheme = None;
                State::Iri
            }
            b'(' | b'[' | b'{' => {
                self.ends.opened += u64::from(byte == b'{');
                self.open_bracket();
                State::Between
            }
            b')' | b']' | b'}' => {
                self.ends.statements += u64::from(byte == b'}');
                self.ends.closed += u64::from(byte == b'}');
                self.open_bytes -= self.open.pop().unwrap_or(0);
                State::Between
            }
            _ if ends_word(byte) && byte != b'@' => State::Between,
            _ => {
                self.word.clear();
                self.is_tag = byte == b'@';
                self.push_word(byte);
                self.escaped = byte == b'\\';
                State::Word
            }
        };
    }

    fn short_byte(&mut self, byte: u8, quote: u8) {
        match byte {
            b'\\' => self.escaped = true,
            // At the end of its line it is an error. A point before that is the statement's.
            b'\n' | b'\r' => {
                self.ends.broken += 1;
                self.ends.statements += u64::from(self.after_point);
                self.end_token();
            }
            byte if byte == quote => self.end_token(),
            b' ' | b'\t' => {}
            _ => self.after_point = byte == b'.',
        }
    }

    fn iri_byte(&mut self, byte: u8) {
        match byte {
            b'>' => self.end_iri(),
            // It is no IRI then.
            b'<' | b' ' | b'\t' | b'\n' | b'\r' | b'"' => {
                self.ends.broken += 1;
                self.end_token();
                self.begin(byte);
            }
            b':' => {
                self.has_scheme.get_or_insert(true);
            }
            byte if byte.is_ascii_alphanumeric() || b"+-.".contains(&byte) => {}
            _ => {
                self.has_scheme.get_or_insert(false);
            }
        }
    }

    fn end_token(&mut self) {
        self.longest_token = self.longest_token.max(self.token_bytes);
        self.token_bytes = 0;
        self.state = State::Between;
    }

    fn push_word(&mut self, byte: u8) {
        let is_name = matches!(self.declares, Declares::Prefix);
        self.after_point = byte == b'.';
        if byte == b'.' && !is_name {
            // What follows a number and a point is a word of its own.
            self.word.clear();
        } else if is_name || self.word.len() <= KEYWORD_BYTES {
            self.word.push(byte);
        }
    }

    fn end_word(&mut self) {
        let name = self.longest_prefix.saturating_add(self.token_bytes);
        self.longest_name = self.longest_name.max(name);
        let word = self.word.as_slice();
        let is = |keyword: &[u8]| word.eq_ignore_ascii_case(keyword);
        self.declares = if matches!(self.declares, Declares::Prefix) && word.ends_with(b":") {
            Declares::PrefixIri(word.into())
        } else if is(b"@prefix") || is(b"prefix") {
            Declares::Prefix
        } else if is(b"@base") || is(b"base") {
            Declares::Base
        } else {
            Declares::Nothing
        };
        self.end_token();
    }

    fn end_iri(&mut self) {
        let bytes = match self.has_scheme {
            Some(true) => self.token_bytes,
            // It is resolved, and then written with the base or with a part of that.
            _ => self.base_bytes.saturating_add(self.token_bytes),
        };
        self.longest_name = self.longest_name.max(bytes);
        match std::mem::take(&mut self.declares) {
            Declares::Base => self.base_bytes = bytes,
            Declares::PrefixIri(name) => {
                self.longest_prefix = self.longest_prefix.max(bytes);
                // The name is kept here, too.
                let all = bytes + NAME_COPIES * name.len() as u64 + PREFIX_BYTES;
                let before = self.prefixes.insert(name, all).unwrap_or(0);
                self.prefix_bytes = self.prefix_bytes - before + all;
                self.note_state();
            }
            Declares::Prefix | Declares::Nothing => {}
        }
        self.end_token();
    }

    fn open_bracket(&mut self) {
        let bytes = OPEN_BYTES + NAME_COPIES * self.longest_name;
        self.open.push(bytes);
        self.open_bytes += bytes;
        self.note_state();
    }

    fn note_state(&mut self) {
        let state = self.open_bytes.saturating_add(self.prefix_bytes);
        self.most_state = self.most_state.max(state);
    }
}

/// True of bytes that are in no name unless they are escaped.
fn ends_word(byte: u8) -> bool {
    byte <= b' ' || b"<>\"'()[]{};,#@".contains(&byte)
}

/// True of bytes that a tag may have after its `@`.
fn is_in_tag(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(text: &str) -> TurtleWatch {
        let mut watch = TurtleWatch::default();
        text.bytes().for_each(|byte| watch.byte(byte));
        watch
    }

    #[test]
    fn brackets_are_counted_while_they_are_open_and_none_in_tokens() {
        let text = r##"@prefix e: <http://e/([> . # ([
            e:a\([ e:p "([", '([', """(["([\"""", '''['([''' ; <p([> (1 2) ] e:q "\"([" ."##;
        let watch = watched(text);
        assert!(watch.open.is_empty());
        let deepest = 2 * (OPEN_BYTES + NAME_COPIES * watch.longest_name);
        assert!(watch.most_state <= deepest + watch.prefix_bytes);
        assert!(watch.most_state > OPEN_BYTES + watch.prefix_bytes);
        assert_eq!(watched("<a> <b> ((([[{").open.len(), 6);
        assert_eq!(watched("\"a\\\\\" (").open.len(), 1);
        assert_eq!(watched("\"\"(").open.len(), 1);
    }

    #[test]
    fn prefixes_are_counted_with_their_iris_and_once_if_they_are_replaced() {
        let base = "x".repeat(1000);
        let one = watched(&format!("@base <http://{base}> . PREFIX a: <b>"));
        assert!(one.prefix_bytes > 1000);
        let again = watched(&format!(
            "@base <http://{base}> . PREFIX a: <b> @prefix a: <b> ."
        ));
        assert_eq!(again.prefix_bytes, one.prefix_bytes);
        let other = watched(&format!(
            "@base <http://{base}> . PREFIX a: <b> PREFIX c: <b>"
        ));
        assert_eq!(other.prefix_bytes, 2 * one.prefix_bytes);
        let absolute = watched(&format!("base <http://{base}> prefix : <http:b>"));
        assert!(absolute.prefix_bytes < 1000);
        for begin in [
            "@prefix:",
            "<a> <b> 1.PREFIX p:",
            "<c>.@PREFIX p:",
            "e:a.@prefix p:",
        ] {
            let declared = watched(&format!("{begin}<http:b>"));
            assert_eq!(declared.prefixes.len(), 1, "{begin}");
        }
        // Relative bases add up, absolute ones do not.
        assert!(watched(&"@base <a/> .".repeat(100)).base_bytes >= 200);
        assert_eq!(watched(&"@base <a:b> .".repeat(100)).base_bytes, 5);
        assert_eq!(watched("e:a e:prefix e:b , <c> . prefix:a").prefix_bytes, 0);
    }

    #[test]
    fn statements_end_at_points_that_are_in_no_token() {
        let tokens = r#"<a.b.> e:a.b e:a\. 1.5 .5 ". " '. ' """. " .""" # . .
            "x"@en"#;
        assert_eq!(watched(&format!("{tokens} ")).ends.statements, 0);
        for (text, ended) in [
            ("<a> <b> <c> . ", 1),
            ("<a> <b> <c> .", 0),
            ("<a> <b> <c>.<d>", 1),
            ("<a> e:b e:c.\n", 1),
            ("<a> <b> 1.\n<a> <b> 1.5.\n", 2),
            ("<a> <b> _:c.#.\n", 1),
            ("<a> <b> 'c'@en.\n", 1),
            ("<a> <b> [ <c> 1 . <d> <e> 2 . ", 2),
            ("<g> { <a> <b> 1 . <a> <b> 2 } <h> {}", 3),
            ("\"not closed . \n <a> <b> <c> . ", 2),
            ("\"not closed \n <a> <b> <c> . ", 1),
        ] {
            assert_eq!(watched(text).ends.statements, ended, "{text}");
        }
    }

    #[test]
    fn what_is_not_closed_where_it_has_to_be_is_broken() {
        for (text, broken) in [
            ("<a> <b> 'c' , \"\"\"d\n\"\"\" , '' .\n", 0),
            ("<a> <b> \"c .\n<a> <b> 'd' .\n", 1),
            ("<a> <b> 'c\\' .\n<a> <b> <c .\n<d> <e> \"f\" .\n", 2),
        ] {
            let ends = watched(text).ends;
            assert_eq!(ends.broken, broken, "{text}");
            assert_eq!((ends.opened, ends.closed), (0, 0));
        }
        let ends = watched("<g> { <a> <b> '{' , <{> } {} # {\n").ends;
        assert_eq!((ends.opened, ends.closed), (2, 2));
    }

    #[test]
    fn long_tokens_are_counted_as_they_come() {
        let long = "x".repeat(1 << 20);
        for begin in ["\"", "'''", "<", "e:", "#", "_:"] {
            let most = watched(&format!("<a> <b> {begin}{long}")).most();
            assert!(most > TOKEN_COPIES << 19, "{begin}: {most}");
        }
        assert_eq!(watched(&"<a> <b> \"c\" .\n".repeat(10_000)).most(), 0);
    }
}
