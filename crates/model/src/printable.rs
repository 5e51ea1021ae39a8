//! What of a text that others wrote may go to a terminal or a log? Neither control characters nor those that
//! change the direction of a line: both are obeyed and not shown.

use std::borrow::Cow;
use std::fmt::Write as _;

/// True if each character of the text is shown as it is.
#[must_use]
pub fn is_printable(text: &str) -> bool {
    !text.contains(is_obeyed)
}

/// The text with what would be obeyed as escapes: `\u{1b}`.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if is_printable(text) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match is_obeyed(character) {
            true => write!(shown, "{}", character.escape_unicode()).expect("a String takes all"),
            false => shown.push(character),
        }
    }
    shown.into()
}

fn is_obeyed(character: char) -> bool {
    let turns = ['\u{200e}', '\u{200f}', '\u{2028}', '\u{2029}'];
    character.is_control()
        || turns.contains(&character)
        || ('\u{202a}'..='\u{202e}').contains(&character)
        || ('\u{2066}'..='\u{2069}').contains(&character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert!(is_printable("größer 𝛼"));
        assert_eq!(printable("größer 𝛼"), "größer 𝛼");
        let sly = "a\u{1b}]0;\u{9b}2J\r\n\u{202e}b";
        assert!(!is_printable(sly));
        assert_eq!(printable(sly), "a\\u{1b}]0;\\u{9b}2J\\u{d}\\u{a}\\u{202e}b");
    }
}
