use super::*;
use crate::continuous::parse_continuous;
use crate::limits::Limits;

fn query(text: &str) -> ContinuousQuery {
    let text = format!("PREFIX : <http://e/> {text}");
    let resolve = |_: &str| -> Option<NamedNode> { None };
    let limits = Limits {
        reserve: &mut |_| true,
        is_over: &|| false,
    };
    parse_continuous(&text, None, &resolve, false, limits).expect("it is sound")
}

fn shape(pattern: &str) -> Option<(SharedQuery, Vec<Term>)> {
    query(&format!(
        "SELECT ?x FROM STREAM :s [RANGE 1s] WHERE {{ {pattern} }}"
    ))
    .shared()
}

fn node(name: &str) -> Term {
    NamedNode::new_unchecked(format!("http://e/{name}")).into()
}

#[test]
fn subjects_and_objects_are_what_queries_of_a_shape_differ_in() {
    let (one, constants) = shape("?x :p :a . :b :q ?x . ?x a :T").expect("it has a shape");
    assert_eq!(constants, [node("a"), node("b")]);
    assert_eq!((one.parameters(), one.columns()), (2, 1));
    let (other, constants) = shape("?x :p :c . :c :q ?x . ?x a :T").expect("it has a shape");
    assert_eq!(constants, [node("c"), node("c")]);
    assert_eq!(one.key(), other.key());
    for different in [
        "?x :p :a . :b :r ?x . ?x a :T",
        "?x :p :a . :b :q ?x . ?x a :U",
        "?x :p :a . :b :q ?x . ?x a :T FILTER(?x != :n)",
        "?y :p :a . :b :q ?x . ?y a :T",
    ] {
        let (different, _) = shape(different).expect("it has a shape");
        assert_ne!(one.key(), different.key());
    }
    let times = shape("?x :p :a FILTER(timestamp(?x, :p, ?x) > 1)");
    assert!(times.is_some(), "times are those of equal windows");
    let (equal, constants) = shape("?x :p ?y").expect("it has a shape");
    assert_eq!((equal.parameters(), constants.len()), (0, 0));
}

#[test]
fn a_constant_that_stands_for_something_else_too_is_part_of_the_shape() {
    let (one, _) = shape("?x :p :a FILTER(?x != :a)").expect("it has a shape");
    let (other, _) = shape("?x :p :b FILTER(?x != :b)").expect("it has a shape");
    assert_ne!(one.key(), other.key());
    let (one, _) = shape("?x :p :g GRAPH :g { ?x :q ?y }").expect("it has a shape");
    let (other, _) = shape("?x :p :h GRAPH :h { ?x :q ?y }").expect("it has a shape");
    assert_ne!(one.key(), other.key());
}

#[test]
fn shapes_that_differ_are_different_although_their_texts_are_not() {
    let (one, _) = shape("?x :p :a FILTER(?x != :a)").expect("it has a shape");
    for different in [
        "?x :p :b FILTER(?x != :b)",
        "?x :p :a FILTER(?x = :a)",
        "?x :q :a FILTER(?x != :a)",
    ] {
        let (mut different, _) = shape(different).expect("it has a shape");
        let key = Arc::get_mut(&mut different.key).expect("nobody else has it");
        key.text_hash = one.key.text_hash;
        assert_ne!(one.key(), different.key());
    }
    let known = FxHashMap::from_iter([(Arc::clone(one.key()), 1)]);
    let (same, _) = shape("?x :p :a FILTER(?x != :a)").expect("it has a shape");
    assert_eq!(known.get(same.key()), Some(&1));
}

#[test]
fn what_would_say_something_else_together_has_no_shape() {
    for alone in [
        "{ ?x :p :a } UNION { ?x :q :a }",
        "{ SELECT (COUNT(*) AS ?x) { ?y :p :a } }",
        "?x :p :a FILTER(RAND() < 0.5)",
        "?x :p :a BIND(UUID() AS ?z)",
    ] {
        assert!(shape(alone).is_none(), "{alone}");
    }
    let from = "FROM STREAM :s [RANGE 1s] WHERE { ?x :p :a }";
    for alone in [
        format!("SELECT ?x {from} LIMIT 1"),
        format!("SELECT ?x {from} ORDER BY ?x"),
        format!("SELECT (COUNT(*) AS ?n) {from}"),
        format!("ASK {from}"),
    ] {
        assert!(query(&alone).shared().is_none(), "{alone}");
    }
    let by = query(&format!("SELECT ?x (COUNT(*) AS ?n) {from} GROUP BY ?x"));
    assert!(by.shared().is_some());
    let other_window = query("SELECT ?x FROM STREAM :s [RANGE 2s] WHERE { ?x :p :a }");
    let (one, _) = shape("?x :p :a").expect("it has a shape");
    let (other, _) = other_window.shared().expect("it has a shape");
    assert_ne!(one.key(), other.key());
}
