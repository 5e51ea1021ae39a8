//! Where do the messages of an RDF message log end?
//!
//! A scanner that knows of Turtle, TriG and their lines what may stand around a directive: strings, IRIs,
//! comments, words and brackets. It finds directives where statements may begin, and overwrites them
//! with blanks, so that errors of the parser have the places of the text. What else is wrong with the
//! text, as `MESSAGE` within a statement or a graph, is for the parser to say.

use super::EventError;

/// The messages of a text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Messages {
    /// Where each ends; the last one with the text.
    pub(super) ends: Vec<usize>,
    /// The line that each begins on, from 1.
    pub(super) lines: Vec<u64>,
}

/// Whether a text begins with a version that has messages.
pub(super) fn announces(text: &[u8]) -> bool {
    let mut scanner = Scanner::new(text, false);
    match scanner.token() {
        Token::Word(b"@version") => {}
        Token::Word(word) if word.eq_ignore_ascii_case(b"VERSION") => {}
        _ => return false,
    }
    matches!(scanner.token(), Token::Text(label) if has_messages(label))
}

/// Finds the messages of a text, and takes its directives about messages out. Lines have fewer forms of
/// these.
///
/// # Errors
/// A directive that is not what it should be, with its line.
pub(super) fn split(text: &mut [u8], is_lines: bool) -> Result<Messages, (u64, EventError)> {
    let (messages, directives) = find(text, is_lines)?;
    for directive in directives {
        for byte in &mut text[directive] {
            if !byte.is_ascii_whitespace() {
                *byte = b' ';
            }
        }
    }
    Ok(messages)
}

type Found = (Messages, Vec<std::ops::Range<usize>>);

fn find(text: &[u8], is_lines: bool) -> Result<Found, (u64, EventError)> {
    let mut scanner = Scanner::new(text, is_lines);
    let mut messages = Messages {
        ends: Vec::new(),
        lines: vec![1],
    };
    let mut directives = Vec::new();
    loop {
        let is_start = scanner.is_start();
        let begin = match scanner.token() {
            Token::End => break,
            Token::Word(word) if is_start => {
                let Some(directive) = Directive::of(word, is_lines) else {
                    scanner.begin_declaration(word);
                    continue;
                };
                let begin = scanner.at - word.len();
                scanner.directive(directive)?;
                if directive.is_message {
                    messages.ends.push(scanner.at);
                    messages.lines.push(scanner.line());
                }
                begin
            }
            _ => continue,
        };
        directives.push(begin..scanner.at);
    }
    messages.ends.push(text.len());
    Ok((messages, directives))
}

/// A directive about messages.
#[derive(Clone, Copy)]
struct Directive {
    name: &'static str,
    is_message: bool,
    /// It ends with a point.
    has_point: bool,
}

impl Directive {
    fn of(word: &[u8], is_lines: bool) -> Option<Self> {
        let is = |name: &str| match is_lines {
            true => word == name.as_bytes(),
            false => word.eq_ignore_ascii_case(name.as_bytes()),
        };
        let (name, is_message, has_point) = match word {
            b"@message" if !is_lines => ("@message", true, true),
            b"@version" if !is_lines => ("@version", false, true),
            _ if is("MESSAGE") => ("MESSAGE", true, false),
            _ if is("VERSION") => ("VERSION", false, false),
            _ => return None,
        };
        Some(Self {
            name,
            is_message,
            has_point,
        })
    }
}

fn has_messages(version: &[u8]) -> bool {
    matches!(
        version,
        b"1.1-messages" | b"1.2-basic-messages" | b"1.2-messages"
    )
}

/// A part of a text that is one thing.
#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    /// A name, a keyword, a number or a tag, without the point that may follow.
    Word(&'a [u8]),
    /// What a string has between its quotes, escapes and all.
    Text(&'a [u8]),
    Iri,
    Point,
    Other,
    End,
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// Up to here line ends were counted.
    counted: usize,
    lines: u64,
    /// Braces, and other brackets, that are open.
    graphs: u32,
    brackets: u32,
    /// A statement may begin.
    starts: bool,
    /// The IRI that comes next ends a declaration.
    declares: bool,
}

impl<'a> Scanner<'a> {
    fn new(text: &'a [u8], is_lines: bool) -> Self {
        let mark = "\u{feff}".as_bytes();
        let at = match !is_lines && text.starts_with(mark) {
            true => mark.len(),
            false => 0,
        };
        Self {
            text,
            at,
            counted: 0,
            lines: 0,
            graphs: 0,
            brackets: 0,
            starts: true,
            declares: false,
        }
    }

    fn is_start(&self) -> bool {
        self.starts && self.graphs == 0 && self.brackets == 0
    }

    /// The line that is read, from 1.
    fn line(&mut self) -> u64 {
        let passed = &self.text[self.counted..self.at];
        self.lines += memchr::memchr_iter(b'\n', passed).count() as u64;
        self.counted = self.at;
        self.lines + 1
    }

    /// A word that begins a statement, or a declaration that an IRI ends.
    fn begin_declaration(&mut self, word: &[u8]) {
        self.declares = [&b"PREFIX"[..], b"BASE"]
            .iter()
            .any(|declares| word.eq_ignore_ascii_case(declares));
    }

    /// What a directive has after its word.
    fn directive(&mut self, directive: Directive) -> Result<(), (u64, EventError)> {
        let wrong = |line, wanted| {
            let directive = directive.name;
            (line, EventError::Directive { directive, wanted })
        };
        if !directive.is_message {
            match self.token() {
                Token::Text(label) if has_messages(label) => {}
                Token::Text(label) => {
                    let version = String::from_utf8_lossy(label).into_owned();
                    return Err((self.line(), EventError::Version { version }));
                }
                _ => return Err(wrong(self.line(), "a version between quotes")),
            }
        }
        if directive.has_point && self.token() != Token::Point {
            return Err(wrong(self.line(), "a point"));
        }
        self.starts = true;
        Ok(())
    }

    fn token(&mut self) -> Token<'a> {
        self.pass_blanks();
        let Some(byte) = self.text.get(self.at) else {
            return Token::End;
        };
        let begin = self.at;
        self.at += 1;
        let token = match byte {
            b'"' | b'\'' => self.string(*byte),
            b'<' => {
                let end = memchr::memchr(b'>', &self.text[self.at..]);
                self.at = end.map_or(self.text.len(), |end| self.at + end + 1);
                Token::Iri
            }
            b'.' => Token::Point,
            b'{' => {
                self.graphs += 1;
                Token::Other
            }
            b'}' => {
                self.graphs = self.graphs.saturating_sub(1);
                // A graph ends as a statement does.
                self.starts = true;
                return Token::Other;
            }
            b'[' | b'(' => {
                self.brackets += 1;
                Token::Other
            }
            b']' | b')' => {
                self.brackets = self.brackets.saturating_sub(1);
                Token::Other
            }
            b';' | b',' | b'^' => Token::Other,
            _ => self.word(begin),
        };
        let ends_declaration = token == Token::Iri && self.declares;
        self.declares &= matches!(token, Token::Word(_));
        self.starts = token == Token::Point || ends_declaration;
        token
    }

    fn pass_blanks(&mut self) {
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'#' => {
                    let end = memchr::memchr2(b'\n', b'\r', &self.text[self.at..]);
                    self.at = end.map_or(self.text.len(), |end| self.at + end);
                }
                byte if byte.is_ascii_whitespace() => self.at += 1,
                _ => return,
            }
        }
    }

    fn word(&mut self, begin: usize) -> Token<'a> {
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'\\' => self.at += 1,
                b'"' | b'\'' | b'<' | b'>' | b'{' | b'}' | b'[' | b']' | b'(' | b')' | b';'
                | b',' | b'^' | b'#' => break,
                byte if byte.is_ascii_whitespace() => break,
                _ => {}
            }
            self.at += 1;
        }
        self.at = self.at.min(self.text.len());
        let word = &self.text[begin..self.at];
        let points = word.iter().rev().take_while(|byte| **byte == b'.').count();
        // A point at the end is no part of a word.
        self.at -= points;
        Token::Word(&word[..word.len() - points])
    }

    /// A string, after its first quote.
    fn string(&mut self, quote: u8) -> Token<'a> {
        let is_long = self.text[self.at..].starts_with(&[quote, quote]);
        let quotes = if is_long { 3 } else { 1 };
        self.at += quotes - 1;
        let begin = self.at;
        while let Some(byte) = self.text.get(self.at) {
            let rest = &self.text[self.at..];
            match byte {
                b'\\' => self.at += 1,
                b'\n' | b'\r' if !is_long => break,
                _ if rest.len() >= quotes && rest[..quotes].iter().all(|byte| *byte == quote) => {
                    self.at += quotes;
                    return Token::Text(&self.text[begin..self.at - quotes]);
                }
                _ => {}
            }
            self.at += 1;
        }
        // It does not end, as the parser will say.
        self.at = self.at.min(self.text.len());
        Token::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Result<Vec<String>, u64> {
        let mut bytes = text.as_bytes().to_vec();
        let messages = split(&mut bytes, false).map_err(|(line, _)| line)?;
        assert_eq!(bytes.len(), text.len());
        let mut begin = 0;
        let part = |end: usize| {
            let part = String::from_utf8_lossy(&bytes[begin..end])
                .trim()
                .to_owned();
            begin = end;
            part
        };
        Ok(messages.ends.into_iter().map(part).collect())
    }

    #[test]
    fn messages_end_where_statements_may_begin() {
        for (text, expected) in [
            (
                "VERSION '1.2-messages' <a> <b> <c> .",
                vec!["<a> <b> <c> ."],
            ),
            (
                "@version \"1.1-messages\" . :a :b 1.5. MESSAGE :d :e :f.",
                vec![":a :b 1.5.", ":d :e :f."],
            ),
            ("MESSAGE message :a :b :c .", vec!["", "", ":a :b :c ."]),
            (
                "PREFIX : <x#.> MESSAGE BASE <y> @message # now\n .",
                vec!["PREFIX : <x#.>", "BASE <y>", ""],
            ),
            ("@prefix : <x> . @message .", vec!["@prefix : <x> .", ""]),
            (
                "<g> { :a :b :c } MESSAGE :d :e [ :f ( :g ) ] .",
                vec!["<g> { :a :b :c }", ":d :e [ :f ( :g ) ] ."],
            ),
            (
                ":a :b \"\"\" . MESSAGE \\\"\"\"\" , 'MESSAGE', :MESSAGE .",
                vec![":a :b \"\"\" . MESSAGE \\\"\"\"\" , 'MESSAGE', :MESSAGE ."],
            ),
            // What follows is wrong, and the parser's business.
            (
                "<g> { :a :b :c . MESSAGE }",
                vec!["<g> { :a :b :c . MESSAGE }"],
            ),
            (":a MESSAGE :c .", vec![":a MESSAGE :c ."]),
            (
                "MESSAGE:a :b 'open\n. MESSAGE",
                vec!["MESSAGE:a :b 'open\n.", ""],
            ),
            (":a :b \\", vec![":a :b \\"]),
        ] {
            let expected = expected.into_iter().map(str::to_owned).collect();
            assert_eq!(parts(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn directives_have_a_form() {
        for (text, line) in [
            (":a :b :c .\n@message <d>", 2),
            ("VERSION", 1),
            ("VERSION 1.2-messages", 1),
            ("\n@version '1.2-messages'", 2),
            ("VERSION '1.2-messages'\nVERSION '1.2'", 2),
        ] {
            assert_eq!(parts(text), Err(line), "{text}");
        }
    }

    #[test]
    fn a_log_announces_itself() {
        for text in [
            "VERSION \"1.2-messages\"",
            "\u{feff}# a log\n version '1.1-messages'",
            "@version \"1.2-basic-messages\" .",
        ] {
            assert!(announces(text.as_bytes()), "{text}");
        }
        for text in [
            "",
            "VERSION \"1.2\"",
            "<a> <b> <c> .",
            ":a :b 'VERSION \"1.2-messages\"' .",
        ] {
            assert!(!announces(text.as_bytes()), "{text}");
        }
    }
}
