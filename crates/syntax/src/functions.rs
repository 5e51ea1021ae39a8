//! Which functions does the grammar name, and how many arguments do they take?

use crate::keywords::Keyword;
use crate::tree::{AggregateFunction, Builtin};

/// Fewest and most arguments.
pub(crate) type Arity = (usize, usize);

/// The function of a keyword.
pub(crate) const fn builtin(keyword: Keyword) -> Option<(Builtin, Arity)> {
    use Keyword as K;
    const ANY: usize = usize::MAX;
    Some(match keyword {
        K::Str => (Builtin::Str, (1, 1)),
        K::Lang => (Builtin::Lang, (1, 1)),
        K::Langmatches => (Builtin::LangMatches, (2, 2)),
        K::Langdir => (Builtin::LangDir, (1, 1)),
        K::Datatype => (Builtin::Datatype, (1, 1)),
        K::Bound => (Builtin::Bound, (1, 1)),
        K::Iri | K::Uri => (Builtin::Iri, (1, 1)),
        K::Bnode => (Builtin::BNode, (0, 1)),
        K::Rand => (Builtin::Rand, (0, 0)),
        K::Abs => (Builtin::Abs, (1, 1)),
        K::Ceil => (Builtin::Ceil, (1, 1)),
        K::Floor => (Builtin::Floor, (1, 1)),
        K::Round => (Builtin::Round, (1, 1)),
        K::Concat => (Builtin::Concat, (0, ANY)),
        K::Strlen => (Builtin::StrLen, (1, 1)),
        K::Ucase => (Builtin::UCase, (1, 1)),
        K::Lcase => (Builtin::LCase, (1, 1)),
        K::EncodeForUri => (Builtin::EncodeForUri, (1, 1)),
        K::Contains => (Builtin::Contains, (2, 2)),
        K::Strstarts => (Builtin::StrStarts, (2, 2)),
        K::Strends => (Builtin::StrEnds, (2, 2)),
        K::Strbefore => (Builtin::StrBefore, (2, 2)),
        K::Strafter => (Builtin::StrAfter, (2, 2)),
        K::Year => (Builtin::Year, (1, 1)),
        K::Month => (Builtin::Month, (1, 1)),
        K::Day => (Builtin::Day, (1, 1)),
        K::Hours => (Builtin::Hours, (1, 1)),
        K::Minutes => (Builtin::Minutes, (1, 1)),
        K::Seconds => (Builtin::Seconds, (1, 1)),
        K::Timezone => (Builtin::Timezone, (1, 1)),
        K::Tz => (Builtin::Tz, (1, 1)),
        K::Now => (Builtin::Now, (0, 0)),
        K::Uuid => (Builtin::Uuid, (0, 0)),
        K::Struuid => (Builtin::StrUuid, (0, 0)),
        K::Md5 => (Builtin::Md5, (1, 1)),
        K::Sha1 => (Builtin::Sha1, (1, 1)),
        K::Sha256 => (Builtin::Sha256, (1, 1)),
        K::Sha384 => (Builtin::Sha384, (1, 1)),
        K::Sha512 => (Builtin::Sha512, (1, 1)),
        K::Coalesce => (Builtin::Coalesce, (0, ANY)),
        K::If => (Builtin::If, (3, 3)),
        K::Strlang => (Builtin::StrLang, (2, 2)),
        K::Strlangdir => (Builtin::StrLangDir, (3, 3)),
        K::Strdt => (Builtin::StrDt, (2, 2)),
        K::Sameterm => (Builtin::SameTerm, (2, 2)),
        K::Isiri | K::Isuri => (Builtin::IsIri, (1, 1)),
        K::Isblank => (Builtin::IsBlank, (1, 1)),
        K::Isliteral => (Builtin::IsLiteral, (1, 1)),
        K::Isnumeric => (Builtin::IsNumeric, (1, 1)),
        K::Haslang => (Builtin::HasLang, (1, 1)),
        K::Haslangdir => (Builtin::HasLangDir, (1, 1)),
        K::Regex => (Builtin::Regex, (2, 3)),
        K::Substr => (Builtin::Substr, (2, 3)),
        K::Replace => (Builtin::Replace, (3, 4)),
        K::Istriple => (Builtin::IsTriple, (1, 1)),
        K::Triple => (Builtin::Triple, (3, 3)),
        K::Subject => (Builtin::Subject, (1, 1)),
        K::Predicate => (Builtin::Predicate, (1, 1)),
        K::Object => (Builtin::Object, (1, 1)),
        _ => return None,
    })
}

/// The aggregate of a keyword; that of GROUP_CONCAT without its separator.
pub(crate) const fn aggregate(keyword: Keyword) -> Option<AggregateFunction<'static>> {
    Some(match keyword {
        Keyword::Count => AggregateFunction::Count,
        Keyword::Sum => AggregateFunction::Sum,
        Keyword::Min => AggregateFunction::Min,
        Keyword::Max => AggregateFunction::Max,
        Keyword::Avg => AggregateFunction::Avg,
        Keyword::Sample => AggregateFunction::Sample,
        Keyword::GroupConcat => AggregateFunction::GroupConcat { separator: None },
        _ => return None,
    })
}
