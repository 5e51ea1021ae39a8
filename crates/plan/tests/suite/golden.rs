//! Golden plans: for each `plans/NAME.rq` the plan over the toy graph is `plans/NAME.plan`.
//!
//! `JINDOU_REWRITE_PLANS=1 cargo test -p jindou-plan --test suite golden::` writes the plans anew.

use std::path::Path;

use crate::common::Toy;
use jindou_plan::physical::Constant;
use jindou_plan::{explain, plan};

#[test]
fn plans_are_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let rewrite = std::env::var_os("JINDOU_REWRITE_PLANS").is_some();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let toy = Toy::parse(&read(&folder.join("university.toy")));
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of plans")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rq"))
        .collect();
    names.sort();
    assert!(!names.is_empty());
    let mut wrong = Vec::new();
    for query in names {
        let text = read(&query);
        let planned = plan(&text, None, None, &toy).expect("a plan");
        let shown = explain(&planned, &[], &|id| match &planned.constants[id.index()] {
            Constant::Fixed(term) => term.clone(),
            other => panic!("{other:?} without a cache"),
        })
        .expect("a stack");
        let golden = query.with_extension("plan");
        if rewrite {
            std::fs::write(&golden, &shown).expect("to write a plan");
        } else if read(&golden) != shown {
            wrong.push(format!("{}:\n{text}\n{shown}", query.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_nested_deep_is_shown_in_space_linear_in_it() {
    let shown = |services: usize| {
        let text = format!("ASK {{ {} }}", "SERVICE<a:>{}".repeat(services));
        let planned = plan(&text, None, None, &crate::common::Flat).expect("a plan");
        let term = oxrdf::Term::from(oxrdf::NamedNode::new_unchecked("a:"));
        explain(&planned, &[], &|_| term.clone())
            .expect("a stack")
            .len()
    };
    let (one, two) = (shown(1000), shown(2000));
    assert!(two * 10 <= one * 22, "{one} and {two} bytes");
}
