//! What of a text that others wrote may go to a terminal? All but control characters, which a terminal obeys.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with its control characters as escapes: `\u{1b}`.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character.is_control() {
            true => write!(shown, "{}", character.escape_unicode()).expect("a String takes all"),
            false => shown.push(character),
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(printable("größer 𝛼"), "größer 𝛼");
        let sly = "a\u{1b}]0;x\u{7}b\u{9b}2Jc\u{7f}\r\n";
        let shown = "a\\u{1b}]0;x\\u{7}b\\u{9b}2Jc\\u{7f}\\u{d}\\u{a}";
        assert_eq!(printable(sly), shown);
    }
}
