//! Filters and functions: of numbers, dates, languages and strings.

use crate::operators::catalogue::DataSet::{Lubm, Ssb, Watdiv};
use crate::operators::catalogue::Family::{FilterDate, FilterLanguage, FilterNumber, FilterString};
use crate::operators::catalogue::Query;

pub(super) const QUERIES: &[Query] = &[
    Query::new(
        FilterNumber,
        Ssb,
        "range of numbers",
        "SELECT ?lo ?q WHERE { ?lo s:lo_quantity ?q FILTER(?q >= 10 && ?q < 13) }",
    ),
    Query::new(
        FilterNumber,
        Ssb,
        "arithmetic on two columns",
        "SELECT ?lo ?e ?r WHERE {
           ?lo s:lo_extendedprice ?e ; s:lo_revenue ?r FILTER(?e - ?r > 700000) }",
    ),
    Query::new(
        FilterNumber,
        Ssb,
        "list of numbers",
        "SELECT ?lo ?q WHERE { ?lo s:lo_quantity ?q FILTER(?q IN (1, 7, 13, 42)) }",
    ),
    Query::new(
        FilterNumber,
        Ssb,
        "two columns compared",
        "SELECT ?lo ?c WHERE {
           ?lo s:lo_supplycost ?c ; s:lo_revenue ?r FILTER(?c * 10 > ?r) }",
    ),
    Query::new(
        FilterNumber,
        Ssb,
        "division and rounding",
        "SELECT ?lo ?e WHERE {
           ?lo s:lo_extendedprice ?e FILTER(FLOOR(?e / 100000) = 25) }",
    ),
    Query::new(
        FilterDate,
        Ssb,
        "range of dates",
        "SELECT ?lo ?d WHERE {
           ?lo x:committedOn ?d
           FILTER(?d >= \"1995-03-01\"^^xsd:date && ?d < \"1995-06-01\"^^xsd:date) }",
    ),
    Query::new(
        FilterDate,
        Ssb,
        "date and time before",
        "SELECT ?lo ?t WHERE {
           ?lo x:orderedAt ?t FILTER(?t < \"1992-03-01T12:00:00Z\"^^xsd:dateTime) }",
    ),
    Query::new(
        FilterDate,
        Ssb,
        "year and month of a time",
        "SELECT ?lo ?t WHERE { ?lo x:orderedAt ?t FILTER(YEAR(?t) = 1994 && MONTH(?t) = 6) }",
    ),
    Query::new(
        FilterDate,
        Ssb,
        "groups by year and month",
        "SELECT ?y ?m (COUNT(*) AS ?n) WHERE { ?lo x:orderedAt ?t }
         GROUP BY (YEAR(?t) AS ?y) (MONTH(?t) AS ?m)",
    ),
    Query::new(
        FilterDate,
        Watdiv,
        "strings cast to dates",
        "SELECT ?o ?d WHERE {
           ?o gr:validThrough ?d FILTER(xsd:date(?d) >= \"2013-12-01\"^^xsd:date) }",
    ),
    Query::new(
        FilterLanguage,
        Ssb,
        "language equals",
        "SELECT ?lo ?l WHERE { ?lo x:label ?l FILTER(LANG(?l) = \"de\") }",
    ),
    Query::new(
        FilterLanguage,
        Ssb,
        "language range",
        "SELECT ?lo ?l WHERE { ?lo x:label ?l FILTER(LANGMATCHES(LANG(?l), \"en\")) }",
    ),
    Query::new(
        FilterLanguage,
        Ssb,
        "groups by language",
        "SELECT ?g (COUNT(*) AS ?n) WHERE { ?lo x:label ?l } GROUP BY (LANG(?l) AS ?g)",
    ),
    Query::new(
        FilterString,
        Lubm,
        "regular expression",
        "SELECT ?x ?e WHERE {
           ?x ub:emailAddress ?e FILTER(REGEX(?e, \"Student1[0-9]@Department[0-4]\")) }",
    ),
    Query::new(
        FilterString,
        Lubm,
        "regular expression, any case",
        "SELECT ?x ?n WHERE { ?x ub:name ?n FILTER(REGEX(?n, \"^full.*7$\", \"i\")) }",
    ),
    Query::new(
        FilterString,
        Lubm,
        "strstarts of an IRI",
        "SELECT ?x ?d WHERE {
           ?x ub:memberOf ?d FILTER(STRSTARTS(STR(?x), \"http://www.Department1.\")) }",
    ),
    Query::new(
        FilterString,
        Lubm,
        "strends",
        "SELECT ?x ?e WHERE {
           ?x ub:emailAddress ?e FILTER(STRENDS(?e, \"@Department3.University4.edu\")) }",
    ),
    Query::new(
        FilterString,
        Lubm,
        "contains",
        "SELECT ?x ?e WHERE { ?x ub:emailAddress ?e FILTER(CONTAINS(?e, \"Student42@\")) }",
    ),
    Query::new(
        FilterString,
        Lubm,
        "ucase",
        "SELECT ?x ?n WHERE { ?x ub:name ?n FILTER(UCASE(?n) = \"FULLPROFESSOR3\") }",
    ),
    Query::new(
        FilterString,
        Lubm,
        "strlen",
        "SELECT ?x ?e WHERE { ?x ub:emailAddress ?e FILTER(STRLEN(?e) < 40) }",
    ),
    Query::new(
        FilterString,
        Lubm,
        "substr of all",
        "SELECT ?x (SUBSTR(?n, 1, 4) AS ?k) WHERE { ?x ub:name ?n }",
    ),
    Query::new(
        FilterString,
        Lubm,
        "concat of two",
        "SELECT (CONCAT(?n, \" <\", ?e, \">\") AS ?m)
         WHERE { ?x ub:name ?n ; ub:emailAddress ?e }",
    ),
    Query::new(
        FilterString,
        Lubm,
        "replace",
        "SELECT ?x (REPLACE(?e, \"@.*$\", \"\") AS ?u)
         WHERE { ?x rdf:type ub:GraduateStudent ; ub:emailAddress ?e }",
    ),
    Query::new(
        FilterString,
        Watdiv,
        "words within long texts",
        "SELECT ?r ?t WHERE { ?r rev:text ?t FILTER(REGEX(LCASE(?t), \"(mod|rad)[a-z]*ing\")) }",
    ),
];
