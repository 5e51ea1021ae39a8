//! A plan from the cache is the plan that the text would get without one.

use crate::common::Flat;
use jindou_plan::physical::{ConstId, Dataset};
use jindou_plan::{PlanError, Planner, PlannerConfig, Prepared};
use oxrdf::{NamedNode, Term};
use proptest::prelude::*;

/// Texts with holes: `%i` an IRI or prefixed name, `%s` a literal, `%n` a number.
const TEXTS: &[&str] = &[
    "SELECT * WHERE { %i ex:p ?x . ?x ex:q %s ; ex:r %n }",
    "SELECT ?x { ?x a %i ; %i %i , %s . FILTER(?x != %i && ?y < %n || ?x IN (%i, %s)) ?x ex:y ?y }",
    "ASK { GRAPH %i { ?x %i %s } }",
    "SELECT * { VALUES (?x ?y) { (%i %s) (UNDEF %n) (%s UNDEF) } ?x ex:p ?y OPTIONAL { ?y ex:q %i } }",
    "SELECT * { ?x ex:p ?y FILTER(REGEX(?y, %s) && -%n > ?y + %n * 2) BIND(%n AS ?z) BIND(%i AS ?w) }",
    "CONSTRUCT { ?x ex:p %i . %i %i _:b } WHERE { ?x ?p %s . %i ?p ?x }",
    "CONSTRUCT WHERE { ?x ex:p %i ; a %i }",
    "DESCRIBE ?x %i WHERE { ?x ex:p %s # %s < %i\n }",
    "SELECT (COUNT(*) AS ?n) { { ?x ex:p %i } UNION { %i ex:p ?x } } GROUP BY ?x HAVING (COUNT(*) > %n) LIMIT %n",
    "BASE <http://base.org/a/b> SELECT * { <rel> ex:p %i, %i . ?x <../q> %s }",
    "SELECT * { ?x ex:p ?y FILTER(?x < ?y && %n > ?y) FILTER(?a<?b && ?c>%n) FILTER(?x=TRUE||?x=<%n,(a)>) FILTER(STRLEN(STR(%i)) = %n) }",
    "SELECT * { ?x %i/%i ?y . ?y ^%i %s }",
    "SELECT * { ?x ex:p %s@en , %s^^ex:t , %s^^<http://e/%n> ; ex:q 1.%n , %n.5 , %n }",
    "SELECT * { ?x ex:p ?y { SELECT ?y (COUNT(?z) AS ?n) { ?y ex:q ?z, %i } GROUP BY ?y LIMIT %n } }",
    "SELECT * { ?x ex:p ?y FILTER(EXISTS { ?y ex:q %i FILTER(?y != %s) } && ?x < %n) MINUS { ?x ex:r %s } }",
    "SELECT * { { SELECT DISTINCT ?x { ?x ex:p ?y . GRAPH %i { ?x ex:q %n } } } FILTER NOT EXISTS { ?x ex:p %i } }",
    "SELECT * { ?x ex:p [ ex:q %i ; ex:r ( %n %s ) ] } VALUES ?x { %i }",
];

fn iri() -> impl Strategy<Value = String> {
    prop_oneof![
        "ex:[a-zA-Z0-9_][a-zA-Z0-9_-]{0,5}",
        ":[a-z0-9]{1,3}",
        "ex:[a-z]{1,2}[.:%-][a-z0-9]{1,3}",
        "<http://(e|e\\.org)/[a-z0-9/#?.:%&é-]{0,8}>",
        "<urn:[a-z]{1,3}:[a-z!0-9/.]{0,5}>",
        Just("rdf:type".to_owned()),
        Just("a".to_owned()),
        Just("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>".to_owned()),
        Just("xsd:integer(\"5\")".to_owned()),
        Just("<relative>".to_owned()),
    ]
}

fn literal() -> impl Strategy<Value = String> {
    prop_oneof![
        "\"[a-z #<>{}'?0-9é]{0,6}\"",
        "'[a-z #<>{}\"?0-9]{0,6}'",
        Just("\"\"\"long \" {5}\"\"\"".to_owned()),
        Just("\"escaped \\\" <http://e/x>\"".to_owned()),
        Just("true".to_owned()),
        Just("TRUE".to_owned()),
        "[0-9]{1,4}",
    ]
}

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,6}",
        "[0-9]{1,3}\\.[0-9]{1,3}",
        "[0-9]{1,2}[eE]-?[0-9]"
    ]
}

type Constants = (Vec<String>, Vec<String>, Vec<String>);

fn constants() -> impl Strategy<Value = Constants> {
    (
        proptest::collection::vec(iri(), 8),
        proptest::collection::vec(literal(), 8),
        proptest::collection::vec(number(), 8),
    )
}

fn fill(template: &str, (iris, literals, numbers): &Constants) -> String {
    let mut text = "PREFIX ex: <http://e.org/> PREFIX : <http://e.org/empty#> \
        PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> \
        PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> "
        .to_owned();
    let (mut iris, mut literals, mut numbers) = (iris.iter(), literals.iter(), numbers.iter());
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        text.push_str(&rest[..at]);
        let next = match &rest[at + 1..=at + 1] {
            "i" => iris.next(),
            "s" => literals.next(),
            _ => numbers.next(),
        };
        text.push_str(next.expect("enough constants"));
        rest = &rest[at + 2..];
    }
    text + rest
}

fn shown(
    prepared: Result<Prepared<'_>, PlanError>,
) -> Result<(String, Vec<Term>, Vec<u8>), PlanError> {
    let prepared = prepared?;
    let ids = (0..prepared.plan.constants.len()).map(|id| ConstId(id as u16));
    let mut keys = Vec::new();
    for id in ids.clone() {
        let is_literal = prepared.push_key(id, &mut keys);
        keys.push(u8::from(is_literal));
    }
    let terms = ids.map(|id| prepared.term(id)).collect();
    Ok((prepared.explain()?, terms, keys))
}

fn uncached() -> Planner {
    Planner::new(&PlannerConfig { cached_plans: 0 })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cached_plans_are_those_without_a_cache(
        template in proptest::sample::select(TEXTS),
        all in proptest::collection::vec(constants(), 4),
    ) {
        let (planner, uncached) = (Planner::new(&PlannerConfig::default()), uncached());
        for constants in all {
            let text = fill(template, &constants);
            for _ in 0..2 {
                let cached = shown(planner.prepare(&text, None, None, &Flat));
                prop_assert_eq!(&cached, &shown(uncached.prepare(&text, None, None, &Flat)), "{}", text);
            }
        }
    }

    #[test]
    fn cut_iris_are_what_the_parser_reads(
        tail in "(//[a-z0-9.:@-]{0,5})?[a-zA-Z0-9/#?.:%&;=!~é\\[\\]-]{0,10}",
        base in proptest::option::of(Just("http://base.org/x/y")),
    ) {
        let planner = Planner::new(&PlannerConfig::default());
        planner
            .prepare("SELECT * { ?s <http://e/p> <http://e/first> }", base, None, &Flat)
            .expect("a plan");
        let text = format!("SELECT * {{ ?s <http://e/p> <http:{tail}> }}");
        let cached = shown(planner.prepare(&text, base, None, &Flat));
        prop_assert_eq!(cached, shown(uncached().prepare(&text, base, None, &Flat)), "{}", text);
    }
}

#[test]
fn texts_that_differ_in_values_share_a_plan() {
    let planner = Planner::new(&PlannerConfig::default());
    let plans: Vec<_> = ["ex:a", "ex:b", "ex:c"]
        .iter()
        .map(|iri| format!("PREFIX ex: <http://e/> SELECT * {{ ?x ex:p {iri} ; a ex:T }}"))
        .map(|text| {
            planner
                .prepare(&text, None, None, &Flat)
                .expect("a plan")
                .into_owned()
        })
        .collect();
    assert!(std::sync::Arc::ptr_eq(&plans[0].plan, &plans[2].plan));
    assert_eq!(planner.cached_plans(), 1);
    planner.clear();
    assert_eq!(planner.cached_plans(), 0);
}

#[test]
fn lists_that_differ_in_values_share_a_plan() {
    let planner = Planner::new(&PlannerConfig::default());
    for (number, name) in [(1, "a"), (2, "b"), (3, "c")] {
        let text = format!(
            "PREFIX ex: <http://e/> SELECT * {{ ?x ex:p ({number} ex:{name} '{name}'), \
             [ex:q <http://e/{name}> ; ex:r {number}] }}"
        );
        let cached = shown(planner.prepare(&text, None, None, &Flat));
        assert_eq!(cached, shown(uncached().prepare(&text, None, None, &Flat)));
    }
    assert_eq!(planner.cached_plans(), 1);
}

#[test]
fn a_boolean_in_upper_case_is_part_of_a_shape() {
    let planner = Planner::new(&PlannerConfig::default());
    let text = |name: &str| {
        format!("SELECT * {{ ?TRUE <http://e/p> TRUE, '{name}' FILTER(?TRUE = False) }}")
    };
    let shown = ["True", "b", "TRUE"].map(|name| {
        let text = text(name);
        let lower = text
            .replace(" TRUE,", " true,")
            .replace("= False", "= false");
        let prepared = shown(planner.prepare(&text, None, None, &Flat)).expect("a plan");
        assert_eq!(
            Ok(&prepared),
            shown(uncached().prepare(&lower, None, None, &Flat)).as_ref()
        );
        prepared.1
    });
    assert_ne!(shown[0], shown[2]);
    assert_eq!(planner.cached_plans(), 1);
}

#[test]
fn texts_that_differ_in_predicates_or_types_do_not_share_a_plan() {
    let planner = Planner::new(&PlannerConfig::default());
    for (predicate, class) in [("p", "T"), ("q", "T"), ("p", "U"), ("p", "T")] {
        let text =
            format!("PREFIX ex: <http://e/> SELECT * {{ ?x ex:{predicate} ex:a ; a ex:{class} }}");
        planner.prepare(&text, None, None, &Flat).expect("a plan");
    }
    assert_eq!(planner.cached_plans(), 3);
}

#[test]
fn the_cache_is_bounded() {
    let planner = Planner::new(&PlannerConfig { cached_plans: 32 });
    for number in 0..500 {
        let text = format!(
            "SELECT ?x{number} {{ ?x{number} <http://e/p{}> ?y }}",
            number % 7
        );
        planner.prepare(&text, None, None, &Flat).expect("a plan");
        assert!(planner.cached_plans() <= 32);
    }
    assert!(planner.cached_plans() > 8);
}

#[test]
fn options_are_part_of_the_key() {
    let planner = Planner::new(&PlannerConfig::default());
    let text = "SELECT * { <a> <http://e/p> ?x }";
    let term = |base| {
        let prepared = planner
            .prepare(text, Some(base), None, &Flat)
            .expect("a plan");
        prepared.term(ConstId(0)).to_string()
    };
    assert_eq!(term("http://one/"), "<http://one/a>");
    assert_eq!(term("http://two/"), "<http://two/a>");
    let dataset = Dataset {
        default: vec![NamedNode::new_unchecked("http://g")],
        named: Vec::new(),
    };
    let with = planner
        .prepare(text, Some("http://one/"), Some(&dataset), &Flat)
        .expect("a plan");
    assert_eq!(with.plan.dataset.as_ref(), Some(&dataset));
}

#[test]
fn threads_that_share_a_planner_get_their_own_arguments() {
    let planner = Planner::new(&PlannerConfig { cached_plans: 16 });
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let planner = &planner;
            scope.spawn(move || {
                for number in 0..500 {
                    let text = format!(
                        "SELECT * {{ ?x <http://e/p{}> <http://e/{thread}/{number}> }}",
                        number % 40
                    );
                    let prepared = planner.prepare(&text, None, None, &Flat).expect("a plan");
                    let terms: Vec<String> = (0..prepared.plan.constants.len())
                        .map(|id| prepared.term(ConstId(id as u16)).to_string())
                        .collect();
                    assert!(terms.contains(&format!("<http://e/{thread}/{number}>")));
                    assert!(terms.contains(&format!("<http://e/p{}>", number % 40)));
                    if number % 100 == 99 {
                        planner.clear();
                    }
                }
            });
        }
    });
}
