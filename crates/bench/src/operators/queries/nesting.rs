//! Patterns within patterns: OPTIONAL, MINUS, EXISTS, UNION, VALUES.

use crate::operators::catalogue::DataSet::{Lubm, Ssb, Watdiv};
use crate::operators::catalogue::Family::{Exists, Minus, Optional, Union, Values};
use crate::operators::catalogue::Query;

pub(super) const QUERIES: &[Query] = &[
    Query::new(
        Optional,
        Lubm,
        "optional, seldom there",
        "SELECT ?x ?d ?h WHERE { ?x ub:worksFor ?d OPTIONAL { ?x ub:headOf ?h } }",
    ),
    Query::new(
        Optional,
        Lubm,
        "two optionals",
        "SELECT ?x ?d ?a ?c WHERE {
           ?x ub:memberOf ?d
           OPTIONAL { ?x ub:advisor ?a } OPTIONAL { ?x ub:teachingAssistantOf ?c } }",
    ),
    Query::new(
        Optional,
        Lubm,
        "nested optionals",
        "SELECT ?x ?a ?h WHERE {
           ?x rdf:type ub:UndergraduateStudent
           OPTIONAL { ?x ub:advisor ?a OPTIONAL { ?a ub:headOf ?h } } }",
    ),
    Query::new(
        Optional,
        Ssb,
        "optional with a filter",
        "SELECT ?c ?lo ?q WHERE {
           ?c s:c_city ?city
           OPTIONAL { ?lo s:lo_custkey ?c ; s:lo_quantity ?q FILTER(?q > 48) } }",
    ),
    Query::new(
        Optional,
        Watdiv,
        "four optionals",
        "SELECT ?u ?b ?n ?j ?l WHERE {
           ?u wsdbm:userId ?id
           OPTIONAL { ?u sorg:birthDate ?b } OPTIONAL { ?u sorg:nationality ?n }
           OPTIONAL { ?u sorg:jobTitle ?j } OPTIONAL { ?u dc:Location ?l } }",
    ),
    Query::new(
        Minus,
        Lubm,
        "minus one pattern",
        "SELECT ?x WHERE {
           ?x rdf:type ub:UndergraduateStudent MINUS { ?x ub:advisor ?a } }",
    ),
    Query::new(
        Minus,
        Lubm,
        "minus on two variables",
        "SELECT ?x ?c WHERE {
           ?x ub:takesCourse ?c MINUS { ?x ub:advisor ?a . ?a ub:teacherOf ?c } }",
    ),
    Query::new(
        Minus,
        Watdiv,
        "minus of an edge",
        "SELECT ?a ?b WHERE { ?a wsdbm:follows ?b MINUS { ?a wsdbm:friendOf ?b } }",
    ),
    Query::new(
        Exists,
        Lubm,
        "exists",
        "SELECT ?x ?d WHERE { ?x ub:memberOf ?d FILTER EXISTS { ?x ub:advisor ?a } }",
    ),
    Query::new(
        Exists,
        Lubm,
        "not exists",
        "SELECT ?x ?d WHERE { ?x ub:memberOf ?d FILTER NOT EXISTS { ?x ub:advisor ?a } }",
    ),
    Query::new(
        Exists,
        Lubm,
        "exists on two variables",
        "SELECT ?x ?a WHERE {
           ?x ub:advisor ?a FILTER EXISTS { ?x ub:takesCourse ?c . ?a ub:teacherOf ?c } }",
    ),
    Query::new(
        Exists,
        Watdiv,
        "not exists of an edge",
        "SELECT ?a ?b WHERE {
           ?a wsdbm:follows ?b FILTER NOT EXISTS { ?b wsdbm:follows ?a } }",
    ),
    Query::new(
        Union,
        Lubm,
        "union of two",
        "SELECT ?x ?d WHERE { { ?x ub:worksFor ?d } UNION { ?x ub:memberOf ?d } }",
    ),
    Query::new(
        Union,
        Lubm,
        "union within a join",
        "SELECT ?d ?x ?n WHERE {
           ?d ub:subOrganizationOf u0:
           { ?x ub:worksFor ?d } UNION { ?x ub:memberOf ?d }
           ?x ub:name ?n }",
    ),
    Query::new(
        Union,
        Lubm,
        "union of four types",
        "SELECT ?x ?m WHERE {
           { ?x rdf:type ub:FullProfessor } UNION { ?x rdf:type ub:AssociateProfessor }
           UNION { ?x rdf:type ub:AssistantProfessor } UNION { ?x rdf:type ub:Lecturer }
           ?x ub:emailAddress ?m }",
    ),
    Query::new(
        Values,
        Lubm,
        "values of IRIs",
        "SELECT ?d ?x ?n WHERE {
           VALUES ?d { d0: <http://www.Department3.University2.edu>
                       <http://www.Department5.University7.edu> <http://www.Nowhere.edu> }
           ?x ub:memberOf ?d ; ub:name ?n }",
    ),
    Query::new(
        Values,
        Ssb,
        "values of pairs of numbers",
        "SELECT ?lo ?dc ?q ?r WHERE {
           ?lo s:lo_discount ?dc ; s:lo_quantity ?q ; s:lo_revenue ?r
           VALUES (?dc ?q) { (1 10) (2 20) (3 30) (4 40) (10 UNDEF) } }",
    ),
    Query::new(
        Values,
        Ssb,
        "bind of a product",
        "SELECT ?lo ?v WHERE {
           ?lo s:lo_extendedprice ?e ; s:lo_discount ?dc BIND(?e * ?dc AS ?v) }",
    ),
];
