//! What a hit of the plan cache costs; run with `--release --ignored --nocapture`.

use std::time::Instant;

use crate::common::Flat;
use jindou_plan::{Planner, PlannerConfig};

#[test]
#[ignore = "a measurement"]
fn a_hit_is_measured() {
    let planner = Planner::new(&PlannerConfig::default());
    let text = |number: u32| {
        format!(
            "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\n\
             PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>\n\
             SELECT ?X ?Y1 ?Y2 ?Y3 WHERE {{\n  ?X ub:worksFor <http://www.Department{number}.University0.edu> .\n  \
             ?X rdf:type ub:FullProfessor .\n  ?X ub:name ?Y1 .\n  ?X ub:emailAddress ?Y2 .\n  ?X ub:telephone ?Y3 .\n}}"
        )
    };
    let texts: Vec<String> = (0..1000).map(text).collect();
    let begin = Instant::now();
    planner
        .prepare(&texts[0], None, None, &Flat)
        .expect("a plan");
    let miss = begin.elapsed();
    let begin = Instant::now();
    let rounds = 300;
    for _ in 0..rounds {
        for text in &texts {
            std::hint::black_box(planner.prepare(text, None, None, &Flat).expect("a plan"));
        }
    }
    let each = begin.elapsed() / (rounds * texts.len() as u32);
    println!("{} bytes: miss {miss:?}, hit {each:?}", texts[0].len());
    assert_eq!(planner.cached_plans(), 1);
}
