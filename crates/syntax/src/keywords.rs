//! Which words are keywords of SPARQL?
//!
//! Keywords are the same in all cases, but `a`. As the longest token that fits is taken, keywords
//! may follow each other without white space: `INSERTDATA` are two.

/// Longest keyword in bytes.
const MAX_BYTES: usize = 16;
/// Longest word in bytes that is taken apart.
const MAX_TOGETHER: usize = 64;
/// Places of the table in which keywords are found by their hash.
const PLACES: usize = 1024;

macro_rules! keywords {
    ($($name:ident = $text:literal,)*) => {
        /// A keyword.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Keyword {
            /// No keyword.
            None,
            $($name,)*
        }

        /// The keywords in the order of [`Keyword`].
        pub(crate) const KEYWORDS: &[(Keyword, &str)] = &[$((Keyword::$name, $text),)*];
    };
}

keywords! {
    A = "a",
    Abs = "ABS",
    Add = "ADD",
    All = "ALL",
    As = "AS",
    Asc = "ASC",
    Ask = "ASK",
    Avg = "AVG",
    Base = "BASE",
    Bind = "BIND",
    Bnode = "BNODE",
    Bound = "BOUND",
    By = "BY",
    Ceil = "CEIL",
    Clear = "CLEAR",
    Coalesce = "COALESCE",
    Concat = "CONCAT",
    Construct = "CONSTRUCT",
    Contains = "CONTAINS",
    Copy = "COPY",
    Count = "COUNT",
    Create = "CREATE",
    Data = "DATA",
    Datatype = "DATATYPE",
    Day = "DAY",
    Default = "DEFAULT",
    Delete = "DELETE",
    Desc = "DESC",
    Describe = "DESCRIBE",
    Distinct = "DISTINCT",
    Drop = "DROP",
    EncodeForUri = "ENCODE_FOR_URI",
    Exists = "EXISTS",
    False = "FALSE",
    Filter = "FILTER",
    Floor = "FLOOR",
    From = "FROM",
    Graph = "GRAPH",
    Group = "GROUP",
    GroupConcat = "GROUP_CONCAT",
    Haslang = "HASLANG",
    Haslangdir = "HASLANGDIR",
    Having = "HAVING",
    Hours = "HOURS",
    If = "IF",
    In = "IN",
    Insert = "INSERT",
    Into = "INTO",
    Iri = "IRI",
    Isblank = "ISBLANK",
    Isiri = "ISIRI",
    Isliteral = "ISLITERAL",
    Isnumeric = "ISNUMERIC",
    Istriple = "ISTRIPLE",
    Isuri = "ISURI",
    Lang = "LANG",
    Langdir = "LANGDIR",
    Langmatches = "LANGMATCHES",
    Lcase = "LCASE",
    Limit = "LIMIT",
    Load = "LOAD",
    Max = "MAX",
    Md5 = "MD5",
    Min = "MIN",
    Minus = "MINUS",
    Minutes = "MINUTES",
    Month = "MONTH",
    Move = "MOVE",
    Named = "NAMED",
    Not = "NOT",
    Now = "NOW",
    Object = "OBJECT",
    Offset = "OFFSET",
    Optional = "OPTIONAL",
    Order = "ORDER",
    Predicate = "PREDICATE",
    Prefix = "PREFIX",
    Rand = "RAND",
    Reduced = "REDUCED",
    Regex = "REGEX",
    Replace = "REPLACE",
    Round = "ROUND",
    Sameterm = "SAMETERM",
    Sample = "SAMPLE",
    Seconds = "SECONDS",
    Select = "SELECT",
    Separator = "SEPARATOR",
    Service = "SERVICE",
    Sha1 = "SHA1",
    Sha256 = "SHA256",
    Sha384 = "SHA384",
    Sha512 = "SHA512",
    Silent = "SILENT",
    Str = "STR",
    Strafter = "STRAFTER",
    Strbefore = "STRBEFORE",
    Strdt = "STRDT",
    Strends = "STRENDS",
    Strlang = "STRLANG",
    Strlangdir = "STRLANGDIR",
    Strlen = "STRLEN",
    Strstarts = "STRSTARTS",
    Struuid = "STRUUID",
    Subject = "SUBJECT",
    Substr = "SUBSTR",
    Sum = "SUM",
    Timezone = "TIMEZONE",
    To = "TO",
    Triple = "TRIPLE",
    True = "TRUE",
    Tz = "TZ",
    Ucase = "UCASE",
    Undef = "UNDEF",
    Union = "UNION",
    Uri = "URI",
    Using = "USING",
    Uuid = "UUID",
    Values = "VALUES",
    Version = "VERSION",
    Where = "WHERE",
    With = "WITH",
    Year = "YEAR",
}

/// For each hash the number of a keyword, from 1; after it those that have no place of their own.
const TABLE: [u8; PLACES] = table();

const fn hash(word: &[u8]) -> usize {
    let mut hash = word.len();
    let mut at = 0;
    while at < word.len() {
        hash = (hash ^ (word[at] & 0xdf) as usize).wrapping_mul(0x01000193) & 0xffff_ffff;
        at += 1;
    }
    (hash ^ (hash >> 15)) % PLACES
}

const fn table() -> [u8; PLACES] {
    let mut table = [0; PLACES];
    let mut number = 0;
    while number < KEYWORDS.len() {
        let mut place = hash(KEYWORDS[number].1.as_bytes());
        while table[place] != 0 {
            place = (place + 1) % PLACES;
        }
        #[expect(clippy::cast_possible_truncation, reason = "there are fewer than 255")]
        {
            table[place] = number as u8 + 1;
        }
        number += 1;
    }
    table
}

impl Keyword {
    /// What keyword a word is.
    pub(crate) fn of(word: &[u8]) -> Self {
        if word.len() > MAX_BYTES {
            return Self::None;
        }
        let mut place = hash(word);
        while TABLE[place] != 0 {
            let (keyword, text) = KEYWORDS[usize::from(TABLE[place]) - 1];
            if text.as_bytes().eq_ignore_ascii_case(word) && (keyword != Self::A || word == b"a") {
                return keyword;
            }
            place = (place + 1) % PLACES;
        }
        Self::None
    }

    /// Its usual writing; nothing for [`Keyword::None`].
    pub(crate) fn text(self) -> &'static str {
        let found = KEYWORDS.iter().find(|(keyword, _)| *keyword == self);
        found.map_or("", |(_, text)| text)
    }
}

/// The length of the first of the keywords and numbers that a word is made of, if it is.
pub(crate) fn first_of(word: &[u8]) -> Option<usize> {
    if word.len() > MAX_TOGETHER {
        return None;
    }
    let part = |rest: &[u8]| {
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 {
            return Some(digits);
        }
        (1..=rest.len().min(MAX_BYTES))
            .rev()
            .find(|length| Keyword::of(&rest[..*length]) != Keyword::None)
    };
    let first = part(word)?;
    let mut at = first;
    while at < word.len() {
        at += part(&word[at..])?;
    }
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_keyword_is_found_in_any_case() {
        for (keyword, text) in KEYWORDS {
            assert_eq!(Keyword::of(text.as_bytes()), *keyword);
            assert_eq!(keyword.text(), *text);
            if *keyword != Keyword::A {
                assert_eq!(Keyword::of(text.to_lowercase().as_bytes()), *keyword);
            }
        }
        for word in ["", "A", "SELEC", "SELECTS", "GROUP CONCAT", "é"] {
            assert_eq!(Keyword::of(word.as_bytes()), Keyword::None, "{word}");
        }
    }

    #[test]
    fn words_are_taken_apart_where_all_parts_are_keywords() {
        for (word, first) in [
            ("insertDATA", Some(6)),
            ("LIMIT10OFFSET5", Some(5)),
            ("STRLANG", Some(7)),
            ("SELCT", None),
            ("selected", None),
            ("", None),
        ] {
            assert_eq!(first_of(word.as_bytes()), first, "{word}");
        }
    }
}
