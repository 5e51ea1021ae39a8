//! What is done with all rows together: DISTINCT, GROUP BY, ORDER BY.

use crate::operators::catalogue::DataSet::{Lubm, Ssb};
use crate::operators::catalogue::Family::{Distinct, Group, Order};
use crate::operators::catalogue::Query;

pub(super) const QUERIES: &[Query] = &[
    Query::new(
        Distinct,
        Lubm,
        "distinct predicates",
        "SELECT DISTINCT ?p WHERE { ?s ?p ?o }",
    ),
    Query::new(
        Distinct,
        Lubm,
        "distinct types",
        "SELECT DISTINCT ?t WHERE { ?x rdf:type ?t }",
    ),
    Query::new(
        Distinct,
        Lubm,
        "distinct objects",
        "SELECT DISTINCT ?c WHERE { ?x ub:takesCourse ?c }",
    ),
    Query::new(
        Distinct,
        Lubm,
        "distinct pairs of a join",
        "SELECT DISTINCT ?d ?c WHERE { ?x ub:memberOf ?d ; ub:takesCourse ?c }",
    ),
    Query::new(
        Distinct,
        Ssb,
        "distinct pairs of numbers",
        "SELECT DISTINCT ?q ?dc WHERE { ?lo s:lo_quantity ?q ; s:lo_discount ?dc }",
    ),
    Query::new(
        Group,
        Lubm,
        "count by group",
        "SELECT ?c (COUNT(?x) AS ?n) WHERE { ?x ub:takesCourse ?c } GROUP BY ?c",
    ),
    Query::new(
        Group,
        Lubm,
        "count by type",
        "SELECT ?t (COUNT(*) AS ?n) WHERE { ?x rdf:type ?t } GROUP BY ?t",
    ),
    Query::new(
        Group,
        Lubm,
        "count distinct by group",
        "SELECT ?d (COUNT(DISTINCT ?c) AS ?n)
         WHERE { ?x ub:memberOf ?d ; ub:takesCourse ?c } GROUP BY ?d",
    ),
    Query::new(
        Group,
        Ssb,
        "sum by group",
        "SELECT ?c (SUM(?r) AS ?t) WHERE { ?lo s:lo_custkey ?c ; s:lo_revenue ?r } GROUP BY ?c",
    ),
    Query::new(
        Group,
        Ssb,
        "avg by group",
        "SELECT ?q (AVG(?r) AS ?a) WHERE { ?lo s:lo_quantity ?q ; s:lo_revenue ?r } GROUP BY ?q",
    ),
    Query::new(
        Group,
        Ssb,
        "min by group",
        "SELECT ?p (MIN(?r) AS ?m) WHERE { ?lo s:lo_partkey ?p ; s:lo_revenue ?r } GROUP BY ?p",
    ),
    Query::new(
        Group,
        Lubm,
        "max of strings by group",
        "SELECT ?d (MAX(?n) AS ?m) WHERE { ?x ub:memberOf ?d ; ub:name ?n } GROUP BY ?d",
    ),
    // Every member of a department is in the same university: one sample is right.
    Query::new(
        Group,
        Lubm,
        "sample by group",
        "SELECT ?d (SAMPLE(?u) AS ?s)
         WHERE { ?x ub:memberOf ?d . ?d ub:subOrganizationOf ?u } GROUP BY ?d",
    ),
    // The order of the parts is free, the length of the whole is not.
    Query::new(
        Group,
        Lubm,
        "group_concat by group",
        "SELECT ?d (STRLEN(GROUP_CONCAT(?n; separator=\", \")) AS ?l)
         WHERE { ?x ub:memberOf ?d ; ub:name ?n } GROUP BY ?d",
    ),
    Query::new(
        Group,
        Lubm,
        "groups with having",
        "SELECT ?a (COUNT(*) AS ?n) WHERE { ?x ub:advisor ?a }
         GROUP BY ?a HAVING(COUNT(*) > 12)",
    ),
    Query::new(
        Group,
        Ssb,
        "five aggregates without groups",
        "SELECT (COUNT(*) AS ?n) (SUM(?r) AS ?t) (AVG(?q) AS ?a) (MIN(?r) AS ?lo) (MAX(?r) AS ?hi)
         WHERE { ?l s:lo_revenue ?r ; s:lo_quantity ?q }",
    ),
    Query::in_order(
        Order,
        Ssb,
        "ten largest numbers",
        "SELECT ?lo ?r WHERE { ?lo s:lo_revenue ?r } ORDER BY DESC(?r) ?lo LIMIT 10",
    ),
    Query::in_order(
        Order,
        Ssb,
        "all in order of a number",
        "SELECT ?lo ?r WHERE { ?lo s:lo_revenue ?r } ORDER BY ?r ?lo",
    ),
    Query::in_order(
        Order,
        Ssb,
        "all in order of two numbers",
        "SELECT ?q ?r WHERE { ?lo s:lo_quantity ?q ; s:lo_revenue ?r } ORDER BY ?q DESC(?r)",
    ),
    Query::in_order(
        Order,
        Lubm,
        "all in order of a string",
        "SELECT ?x ?e WHERE { ?x ub:emailAddress ?e } ORDER BY ?e",
    ),
    Query::in_order(
        Order,
        Lubm,
        "all in order of an IRI",
        "SELECT ?x WHERE { ?x rdf:type ub:UndergraduateStudent } ORDER BY ?x",
    ),
    Query::in_order(
        Order,
        Lubm,
        "first strings",
        "SELECT ?x ?n WHERE { ?x ub:name ?n } ORDER BY ?n ?x LIMIT 20",
    ),
    Query::in_order(
        Order,
        Lubm,
        "a page of strings",
        "SELECT ?x ?e WHERE { ?x ub:emailAddress ?e } ORDER BY ?e LIMIT 20 OFFSET 5000",
    ),
    Query::in_order(
        Order,
        Lubm,
        "first by an expression",
        "SELECT ?x ?e WHERE { ?x ub:emailAddress ?e } ORDER BY STRLEN(?e) ?e LIMIT 10",
    ),
];
