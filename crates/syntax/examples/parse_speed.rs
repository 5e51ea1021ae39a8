//! What does parsing a light query cost, beside another parser? Run with `--release`.

use std::hint::black_box;
use std::time::Instant;

use jindou_syntax::{Options, parse_query, shape_of};
use spargebra::SparqlParser;

const PROLOGUE: &str = "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\n\
    PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>\n";

/// Light queries of the LUBM.
const QUERIES: [(&str, &str); 3] = [
    (
        "q4",
        "SELECT ?X ?Y1 ?Y2 ?Y3 WHERE {\n  ?X ub:worksFor <http://www.Department0.University0.edu> .\n  \
         ?X rdf:type ub:FullProfessor .\n  ?X ub:name ?Y1 .\n  ?X ub:emailAddress ?Y2 .\n  ?X ub:telephone ?Y3 .\n}",
    ),
    (
        "q5",
        "SELECT ?X WHERE {\n  ?X ub:subOrganizationOf <http://www.Department0.University0.edu> .\n  \
         ?X rdf:type ub:ResearchGroup .\n}",
    ),
    (
        "q6",
        "SELECT ?X ?Y WHERE {\n  ?Y ub:subOrganizationOf <http://www.University0.edu> .\n  \
         ?Y rdf:type ub:Department .\n  ?X ub:worksFor ?Y .\n  ?X rdf:type ub:FullProfessor .\n}",
    ),
];

const ROUNDS: u32 = 20_000;

/// Nanoseconds that `work` takes, the least of a few measurements.
fn nanoseconds(mut work: impl FnMut()) -> u128 {
    let measured = (0..7).map(|_| {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            work();
        }
        begin.elapsed().as_nanos() / u128::from(ROUNDS)
    });
    measured.min().unwrap_or_default()
}

fn main() {
    for (name, query) in QUERIES {
        let text = format!("{PROLOGUE}{query}");
        let ours = nanoseconds(|| {
            black_box(parse_query(black_box(&text), Options::default()).is_ok());
        });
        let theirs = nanoseconds(|| {
            let parsed = SparqlParser::new().parse_query(black_box(&text));
            black_box(parsed.is_ok());
        });
        let shape = nanoseconds(|| {
            black_box(shape_of(black_box(&text)).is_some());
        });
        println!(
            "{name}: {} bytes, ours {ours} ns, spargebra {theirs} ns, {:.1} times; shape {shape} ns",
            text.len(),
            theirs as f64 / ours.max(1) as f64
        );
    }
}
