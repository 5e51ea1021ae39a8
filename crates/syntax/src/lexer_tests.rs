use super::*;

fn tokens(text: &str) -> Vec<(Kind, &str)> {
    let mut lexer = Lexer::new(text, 0);
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next();
        if token.kind == Kind::End {
            return tokens;
        }
        tokens.push((token.kind, token.of(text)));
    }
}

#[test]
fn the_longest_token_that_fits_is_taken() {
    use Kind as K;
    for (text, expected) in [
        ("1.5.5", vec![(K::Decimal, "1.5"), (K::Decimal, ".5")]),
        (
            "1.e5 1e",
            vec![(K::Double, "1.e5"), (K::Integer, "1"), (K::Word, "e")],
        ),
        ("?x-1", vec![(K::Variable, "?x"), (K::Integer, "-1")]),
        (
            "?x- 1",
            vec![(K::Variable, "?x"), (K::Minus, "-"), (K::Integer, "1")],
        ),
        ("a.b-c:d.e.", vec![(K::Name, "a.b-c:d.e"), (K::Dot, ".")]),
        (
            "true.?x",
            vec![(K::Word, "true"), (K::Dot, "."), (K::Variable, "?x")],
        ),
        ("a-b", vec![(K::Word, "a"), (K::Minus, "-"), (K::Word, "b")]),
        (
            "e:a%20%2\\,",
            vec![
                (K::Name, "e:a%20"),
                (K::Unknown, "%"),
                (K::Integer, "2"),
                (K::Unknown, "\\"),
                (K::Comma, ","),
            ],
        ),
        (
            "e:a\\,b e:-",
            vec![(K::Name, "e:a\\,b"), (K::Name, "e:"), (K::Minus, "-")],
        ),
        (
            "?a?b ?*",
            vec![
                (K::Variable, "?a"),
                (K::Variable, "?b"),
                (K::Question, "?"),
                (K::Star, "*"),
            ],
        ),
        (
            "_:a.b. _:",
            vec![(K::Label, "_:a.b"), (K::Dot, "."), (K::Unknown, "_:")],
        ),
        (
            "'a'@en-GB--ltr",
            vec![(K::String, "'a'"), (K::Language, "@en-GB--ltr")],
        ),
        (
            "'a'@en- ^^",
            vec![
                (K::String, "'a'"),
                (K::Language, "@en"),
                (K::Minus, "-"),
                (K::Datatype, "^^"),
            ],
        ),
        (
            "'''a''b''''",
            vec![(K::String, "'''a''b'''"), (K::Unclosed, "'")],
        ),
        ("'''a'", vec![(K::String, "''"), (K::String, "'a'")]),
        (
            "<<(<a>)>>",
            vec![
                (K::OpenTriple, "<<("),
                (K::Iri, "<a>"),
                (K::CloseTriple, ")>>"),
            ],
        ),
        (
            "<a><=<b>>=<<c>",
            vec![
                (K::Iri, "<a>"),
                (K::LessOrEqual, "<="),
                (K::Iri, "<b>"),
                (K::GreaterOrEqual, ">="),
                (K::OpenReified, "<<"),
                (K::Word, "c"),
                (K::Greater, ">"),
            ],
        ),
        (
            "<a\\u00e9> <a\\x>",
            vec![
                (K::Iri, "<a\\u00e9>"),
                (K::Less, "<"),
                (K::Word, "a"),
                (K::Unknown, "\\"),
                (K::Word, "x"),
                (K::Greater, ">"),
            ],
        ),
        (
            "( ) [\n] ( #\n)",
            vec![
                (K::Nil, "( )"),
                (K::Anon, "[\n]"),
                (K::OpenParen, "("),
                (K::CloseParen, ")"),
            ],
        ),
        (
            "{|a|}||&&&",
            vec![
                (K::OpenAnnotation, "{|"),
                (K::Word, "a"),
                (K::CloseAnnotation, "|}"),
                (K::Or, "||"),
                (K::And, "&&"),
                (K::Unknown, "&"),
            ],
        ),
        (
            "\u{e9}:\u{1F600} \u{b7}x",
            vec![
                (K::Name, "\u{e9}:\u{1F600}"),
                (K::Unknown, "\u{b7}"),
                (K::Word, "x"),
            ],
        ),
    ] {
        assert_eq!(tokens(text), expected, "{text}");
    }
}
