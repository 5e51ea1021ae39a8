use oxrdf::NamedNode;

use super::*;
use crate::continuous::parse_continuous;
use crate::limits::Limits;

fn query(from: &str, pattern: &str) -> ContinuousQuery {
    let text = format!("PREFIX : <http://e/> SELECT * {from} WHERE {{ {pattern} }}");
    let resolve = |_: &str| -> Option<NamedNode> { None };
    let limits = Limits {
        reserve: &mut |_| true,
        is_over: &|| false,
    };
    parse_continuous(&text, None, &resolve, false, limits).expect("it is sound")
}

const TWO: &str = "FROM NAMED WINDOW :a ON :s [RANGE 2s STEP 1s] \
                   FROM NAMED WINDOW :b ON :t [RANGE 1s]";

fn windows_of(incremental: &Incremental) -> Vec<u16> {
    incremental.deltas().map(|(window, _)| window).collect()
}

#[test]
fn each_pattern_of_a_window_is_followed_by_itself() {
    let made = query(
        TWO,
        "?x :stored ?z . WINDOW :a { ?x :p ?y } WINDOW :b { ?y :q ?z . ?y :r 1 }",
    );
    let incremental = made
        .incremental(&|window| window == 0)
        .expect("it has a core");
    assert_eq!(windows_of(&incremental), [0, 1, 1]);
    assert_eq!(incremental.columns(), 3);
    assert_eq!(incremental.patterns().len(), 3);
    let read = StoredRead {
        predicate: Some(NamedNode::new_unchecked("http://e/stored")),
        default: true,
        named: false,
    };
    assert_eq!(incremental.reads(), [read]);
}

#[test]
fn windows_of_the_default_graph_are_followed_each() {
    let made = query(
        "FROM STREAM :s [RANGE 2s STEP 1s] FROM STREAM :t [RANGE 1s] FROM :g",
        "?x :p ?y . ?y a ?z FILTER(?y != :no)",
    );
    let incremental = made.incremental(&|_| true).expect("it has a core");
    assert_eq!(windows_of(&incremental), [0, 1, 0, 1]);
    let graph = NamedNode::new_unchecked("http://e/g");
    assert!(
        incremental
            .patterns()
            .iter()
            .all(|one| one.stored == [graph.clone()])
    );
    assert!(
        incremental
            .reads()
            .iter()
            .all(|one| one.named && !one.default)
    );
}

#[test]
fn what_stands_above_a_core_is_done_anew() {
    for above in [
        "{ SELECT ?x (COUNT(*) AS ?n) { WINDOW :a { ?x :p ?y } } GROUP BY ?x }",
        "WINDOW :a { ?x :p ?y } OPTIONAL { ?y :q ?z }",
        "WINDOW :a { ?x :p ?y } OPTIONAL { WINDOW :b { ?y :q ?z } }",
        "WINDOW :a { ?x :p ?y } MINUS { ?y :q ?z }",
        "WINDOW :a { ?x :p ?y } FILTER NOT EXISTS { ?y :q ?z }",
        "WINDOW :a { ?x :p ?y } BIND(STR(?y) AS ?z)",
        "WINDOW :a { ?x :p ?y } FILTER(RAND() < 0.5)",
        "WINDOW :a { ?x :p ?y } { ?y :q ?z } UNION { ?y :r ?z }",
    ] {
        let made = query(TWO, above);
        let incremental = made.incremental(&|_| true);
        let incremental = incremental.unwrap_or_else(|reason| panic!("{above}: {reason}"));
        assert_eq!(windows_of(&incremental), [0], "{above}");
        assert_eq!(incremental.columns(), 2, "{above}");
    }
}

#[test]
fn what_another_evaluation_may_decide_otherwise_is_no_part_of_a_core() {
    for (filter, is_kept) in [
        ("?y < 5", true),
        ("NOW() < ?y", false),
        ("YEAR(NOW()) = 2026", false),
        ("?y > 1 && (?y < 5 || ?y > NOW())", false),
        ("RAND() < 0.5", false),
        ("STR(?y) != STRUUID()", false),
    ] {
        let made = query(TWO, &format!("WINDOW :a {{ ?x :p ?y }} FILTER({filter})"));
        let incremental = made.incremental(&|_| true).expect("it has a core");
        let is_in_core = matches!(incremental.full.pattern, Pattern::Filter { .. });
        let is_above = matches!(incremental.rest.pattern, Pattern::Filter { .. });
        assert_eq!((is_in_core, is_above), (is_kept, !is_kept), "{filter}");
    }
}

#[test]
fn a_path_over_stored_edges_is_part_of_a_core() {
    let made = query(TWO, "WINDOW :a { ?x :p ?y } ?y (:q|:r)+ ?z");
    let incremental = made.incremental(&|_| true).expect("it has a core");
    assert_eq!(incremental.columns(), 3);
    let reads: Vec<_> = incremental
        .reads()
        .iter()
        .filter_map(|read| read.predicate.clone())
        .collect();
    assert_eq!(reads.len(), 2);
    let made = query(TWO, "WINDOW :a { ?x :p ?y } ?y :q* ?z");
    let incremental = made.incremental(&|_| true).expect("it has a core");
    assert!(
        incremental
            .reads()
            .iter()
            .all(|read| read.predicate.is_none())
    );
}

#[test]
fn reasons_are_given_for_what_is_not_kept() {
    let reason = |pattern: &str| query(TWO, pattern).incremental(&|window| window == 0).err();
    assert_eq!(
        reason("WINDOW :b { ?x :p ?y }"),
        Some(Recomputed::NoOverlap)
    );
    assert_eq!(reason("?x :p ?y"), Some(Recomputed::NoCore));
    assert_eq!(reason("WINDOW :a { ?x :p+ ?y }"), Some(Recomputed::NoCore));
    assert_eq!(reason("WINDOW ?w { ?x :p ?y }"), Some(Recomputed::NoCore));
    let apart = "WINDOW :a { ?x :p ?y . ?z :q ?u }";
    assert_eq!(reason(apart), Some(Recomputed::NotConnected));
    let many: String = (0..40).map(|n| format!("?x :p{n} ?y . ")).collect();
    let many = format!("WINDOW :a {{ {many} }}");
    assert_eq!(reason(&many), Some(Recomputed::TooLarge));
    let times =
        "WINDOW :a { ?x :p ?y } FILTER EXISTS { ?z :p ?u BIND(timestamp(?x, :p, ?y) AS ?t) }";
    assert_eq!(reason(times), Some(Recomputed::Times));
    let counted = format!("{TWO} FROM STREAM :u [TRIPLES 10 STEP 1]");
    let counted = query(&counted, "WINDOW :a { ?x :p ?y }");
    let reason_of_all = counted.incremental(&|_| true).err();
    assert_eq!(reason_of_all, Some(Recomputed::Counted));
    let windows = query(TWO, "WINDOW :a { ?x :p ?y }");
    assert_eq!(
        windows.incremental(&|_| false).err(),
        Some(Recomputed::NoOverlap)
    );
}

#[test]
fn what_counts_solutions_takes_equal_ones_once() {
    let counted = |select: &str, after: &str, ordered: &str| {
        let text = format!(
            "PREFIX : <http://e/> SELECT {select} {TWO} WHERE {{ WINDOW :a {{ ?x :p ?y ; :q ?z }} \
             {after} }} {ordered}"
        );
        let resolve = |_: &str| -> Option<NamedNode> { None };
        let limits = Limits {
            reserve: &mut |_| true,
            is_over: &|| false,
        };
        let made = parse_continuous(&text, None, &resolve, false, limits).expect("it is sound");
        let incremental = made.incremental(&|_| true).expect("it has a core");
        assert_eq!(incremental.columns(), 3, "{text}");
        incremental.counted().map(<[usize]>::len)
    };
    for (select, after, ordered, columns) in [
        ("(COUNT(*) AS ?n)", "", "", Some(0)),
        ("(COUNT(?y) AS ?n)", "FILTER(?y != ?z)", "", Some(0)),
        (
            "?x (COUNT(*) AS ?n)",
            "",
            "GROUP BY ?x ORDER BY ?n",
            Some(1),
        ),
        (
            "(COUNT(DISTINCT ?y) AS ?n) (MAX(?z) AS ?m)",
            "",
            "",
            Some(2),
        ),
        ("?x (SUM(?y + 1) AS ?n)", "", "GROUP BY ?x", Some(2)),
        ("(GROUP_CONCAT(DISTINCT ?y) AS ?n)", "", "", Some(1)),
        ("DISTINCT ?x", "", "LIMIT 3", Some(1)),
        ("DISTINCT ?x ?nothing", "", "", Some(1)),
        // All columns, or each solution, are needed.
        (
            "?x (SUM(?y) AS ?n) (MAX(?z) AS ?m)",
            "",
            "GROUP BY ?x",
            None,
        ),
        ("(COUNT(DISTINCT *) AS ?n)", "", "", None),
        ("(GROUP_CONCAT(?y) AS ?n)", "", "", None),
        ("(SUM(RAND()) AS ?n)", "", "", None),
        ("?x", "", "", None),
        ("DISTINCT ?x", "", "ORDER BY ?y", None),
        ("DISTINCT ?x ?y ?z", "", "", None),
        ("(COUNT(*) AS ?n)", "OPTIONAL { ?y :r ?o }", "", None),
    ] {
        assert_eq!(
            counted(select, after, ordered),
            columns,
            "{select} {after} {ordered}"
        );
    }
}
