//! Which characters do the names of SPARQL's grammar hold?

/// Classes of bytes, looked up by byte.
pub(crate) const WORD: u8 = 1;
/// What an IRI reference may hold between its brackets, but for escapes.
pub(crate) const IRI: u8 = 2;
/// What plain absolute IRIs hold, see [`crate::terms::is_plain_iri`].
pub(crate) const PLAIN_IRI: u8 = 4;
pub(crate) const SPACE: u8 = 8;
/// ASCII characters of names: those of words, and `-`.
pub(crate) const NAME: u8 = 16;
pub(crate) const DIGIT: u8 = 32;

const CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let byte = index as u8;
        let mut class = 0;
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            class |= WORD | NAME;
        }
        if byte == b'-' {
            class |= NAME;
        }
        if byte.is_ascii_digit() {
            class |= DIGIT;
        }
        if byte > 0x20
            && !matches!(
                byte,
                b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\'
            )
        {
            class |= IRI;
        }
        if byte.is_ascii_alphanumeric() || byte == b'#' || is_reserved(byte) {
            class |= PLAIN_IRI;
        }
        if matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
            class |= SPACE;
        }
        table[index] = class;
        index += 1;
    }
    table
}

/// What an IRI's path and query may hold besides letters and digits, short of escapes.
const fn is_reserved(byte: u8) -> bool {
    matches!(
        byte,
        b'-' | b'.'
            | b'_'
            | b'~'
            | b'!'
            | b'$'
            | b'&'
            | b'\''
            | b'('
            | b')'
            | b'*'
            | b'+'
            | b','
            | b';'
            | b'='
            | b':'
            | b'@'
            | b'/'
            | b'?'
    )
}

#[inline]
pub(crate) fn is(byte: u8, class: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// The end of the run of bytes of a class.
#[inline]
pub(crate) fn run(bytes: &[u8], from: usize, class: u8) -> usize {
    let mut end = from;
    while end < bytes.len() && is(bytes[end], class) {
        end += 1;
    }
    end
}

/// `PN_CHARS_BASE`.
pub(crate) fn is_base(c: char) -> bool {
    c.is_ascii_alphabetic()
        || (!c.is_ascii()
            && matches!(c,
                '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
                | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}'
                | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}'
                | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}' | '\u{10000}'..='\u{EFFFF}'))
}

/// `PN_CHARS_U`.
pub(crate) fn is_start(c: char) -> bool {
    c == '_' || is_base(c)
}

/// `PN_CHARS`, and what names of variables may go on with, but for `-`.
pub(crate) fn is_inner(c: char) -> bool {
    is_start(c)
        || matches!(c, '-' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// What `PN_LOCAL_ESC` escapes.
pub(crate) fn is_escapable(byte: u8) -> bool {
    b"_~.-!$&'()*+,;=/?#@%".contains(&byte)
}
