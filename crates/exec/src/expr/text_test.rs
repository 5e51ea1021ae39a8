//! Which tests of a string are told by the term's key, many terms at a time?
//!
//! Those of a variable's text, or of its STR, also in one case, with a constant: `CONTAINS`,
//! `STRSTARTS`, `STRENDS`, `REGEX`, comparisons of `STRLEN`, whether `STR` is equal, and which string
//! comes first. Other expressions are evaluated value by value, which costs several times as much.

use std::sync::Arc;

use jindou_model::inline;
use jindou_plan::expression::{Comparison, Function};
use jindou_plan::physical::Var;
use memchr::memmem::Finder;

use super::compare::holds;
use super::compile::Code;
use super::pattern::Pattern;
use super::predicate::flip;
use super::strings::{character_count, split_key};
use super::value::Value;
use crate::KeyKind;

/// A test of some text of a variable with a constant.
#[derive(Clone, Debug)]
pub(super) struct TextTest {
    pub(super) var: Var,
    of: Of,
    case: Option<Case>,
    test: Test,
}

/// The text is tested after its LCASE or UCASE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Lower,
    Upper,
}

/// The text that is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// The variable's, which has to be a string.
    String,
    /// The variable's, which has to be a string without a language tag.
    Plain,
    /// Its STR.
    Str,
}

#[derive(Clone, Debug)]
enum Test {
    Contains(Arc<Finder<'static>>),
    Starts(Box<[u8]>),
    Ends(Box<[u8]>),
    /// One that is matched in linear time.
    Matches(Arc<Pattern>),
    /// A comparison of the number of characters.
    Length(Comparison, i64),
    Equals(Box<[u8]>),
    Differs(Box<[u8]>),
    /// Which comes first.
    Order(Comparison, Box<[u8]>),
}

/// What a key tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Holds(bool),
    /// The test is not defined for this term.
    Error,
    /// There is no key, or it does not tell.
    Nothing,
}

impl TextTest {
    /// The test that an expression is, if it is one.
    pub(super) fn of_code(code: &Code) -> Option<Self> {
        let (text, test) = match code {
            Code::Contains(text, part) => (&**text, Test::Contains(Arc::clone(part))),
            // Other patterns may take long, and end the query.
            Code::Regex(text, pattern) if pattern.as_linear().is_some() => {
                (&**text, Test::Matches(Arc::clone(pattern)))
            }
            Code::Call(function, arguments) => {
                let [text, constant, ..] = arguments.as_slice() else {
                    return None;
                };
                let constant = string(constant)?;
                let test = match function {
                    Function::StrStarts => Test::Starts(constant),
                    Function::StrEnds => Test::Ends(constant),
                    _ => return None,
                };
                (text, test)
            }
            Code::Compare(operator, left, right) => match (&**left, &**right) {
                (Code::Constant(_), text) => comparison(flip(*operator), text, left)?,
                (text, _) => comparison(*operator, text, right)?,
            },
            _ => return None,
        };
        let (case, text) = in_case(text);
        let (of, var) = match text {
            Code::Variable(var) if matches!(test, Test::Order(..)) => (Of::Plain, *var),
            Code::Variable(var) => (Of::String, *var),
            Code::Call(function, arguments) => match (function, arguments.as_slice()) {
                (Function::Str, [Code::Variable(var)]) => (Of::Str, *var),
                _ => return None,
            },
            _ => return None,
        };
        Some(Self {
            var,
            of,
            case,
            test,
        })
    }

    /// True where the result is worth remembering by the variable's value.
    pub(super) fn is_costly(&self) -> bool {
        matches!(self.test, Test::Matches(_))
    }

    /// What the key of a term tells; `cased` is for texts in another case.
    #[inline]
    pub(super) fn told(&self, key: &[u8], kind: KeyKind, cased: &mut Vec<u8>) -> Told {
        let text = match (kind, self.of) {
            (KeyKind::None, _) => return Told::Nothing,
            (KeyKind::Node, Of::Str) if !key.starts_with(b"_:") => key,
            (KeyKind::Node, _) => return Told::Error,
            (KeyKind::Literal, of) => match (split_key(key), of) {
                ((value, []), Of::String | Of::Plain) | ((value, _), Of::Str) => value,
                ((_, [b'@', ..]), Of::Plain) => return Told::Error,
                ((value, [b'@', ..]), Of::String) => value,
                // Of another datatype, which may be a string's long name.
                _ => return Told::Nothing,
            },
        };
        let Some(case) = self.case else {
            return Told::Holds(self.test.holds(text));
        };
        if !text.is_ascii() {
            return Told::Nothing;
        }
        cased.clear();
        cased.extend_from_slice(text);
        match case {
            Case::Lower => cased.make_ascii_lowercase(),
            Case::Upper => cased.make_ascii_uppercase(),
        }
        Told::Holds(self.test.holds(cased))
    }
}

/// What LCASE or UCASE is of, and which it is; the text itself if it is neither.
fn in_case(text: &Code) -> (Option<Case>, &Code) {
    let Code::Call(function, arguments) = text else {
        return (None, text);
    };
    match (function, arguments.as_slice()) {
        (Function::LCase, [inner]) => (Some(Case::Lower), inner),
        (Function::UCase, [inner]) => (Some(Case::Upper), inner),
        _ => (None, text),
    }
}

/// The text and the test of a comparison with a constant.
fn comparison<'c>(
    operator: Comparison,
    text: &'c Code,
    constant: &Code,
) -> Option<(&'c Code, Test)> {
    let is_order = matches!(
        operator,
        Comparison::Less
            | Comparison::LessOrEqual
            | Comparison::Greater
            | Comparison::GreaterOrEqual
    );
    // In one case or not, where it is a string without a language tag.
    let (function, arguments) = match (text, in_case(text).1) {
        (_, Code::Call(Function::Str, arguments)) => (&Function::Str, arguments),
        (Code::Call(function, arguments), _) => (function, arguments),
        (Code::Variable(_), _) if is_order => {
            return Some((text, Test::Order(operator, string(constant)?)));
        }
        _ => return None,
    };
    match function {
        Function::StrLen if operator != Comparison::SameTerm => {
            let Code::Constant(constant) = constant else {
                return None;
            };
            let length = inline::as_integer(constant.id)?;
            Some((&arguments[0], Test::Length(operator, length)))
        }
        Function::Str => match operator {
            Comparison::Equal => Some((text, Test::Equals(string(constant)?))),
            Comparison::NotEqual => Some((text, Test::Differs(string(constant)?))),
            operator if is_order => Some((text, Test::Order(operator, string(constant)?))),
            _ => None,
        },
        _ => None,
    }
}

/// The characters of a constant string without a language tag.
fn string(code: &Code) -> Option<Box<[u8]>> {
    match code.constant_value() {
        Some(Value::String(text)) => Some(text.as_bytes().into()),
        _ => None,
    }
}

impl Test {
    #[inline]
    fn holds(&self, text: &[u8]) -> bool {
        match self {
            Self::Contains(part) => part.find(text).is_some(),
            Self::Starts(part) => text.starts_with(part),
            Self::Ends(part) => text.ends_with(part),
            Self::Matches(pattern) => {
                let regex = pattern.as_linear().expect("no other pattern is a test");
                regex.is_match(std::str::from_utf8(text).expect("strings are UTF-8"))
            }
            Self::Length(operator, length) => {
                holds(*operator, (character_count(text) as i64).cmp(length))
            }
            Self::Equals(other) => *text == **other,
            Self::Differs(other) => *text != **other,
            Self::Order(operator, other) => holds(*operator, text.cmp(other)),
        }
    }
}
