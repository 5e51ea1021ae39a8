//! Long texts are planned in time linear in their length, and given up at any point: both in
//! units of work, not in time.

use std::cell::Cell;

use jindou_model::{Direction, GraphRef, Membership, PredicateId, TermId};
use jindou_syntax::{Options, parse_query};
use oxrdf::TermRef;

use super::{Patience, UNITS_PER_QUESTION};
use crate::arguments::Arguments;
use crate::build::build;
use crate::convert::Converter;
use crate::error::PlanError;
use crate::limits::Limits;
use crate::physical::Plan;
use crate::statistics::{SegmentStatistics, Statistics};
use crate::update::{Operation, Update, parse_update_within};

thread_local! {
    /// Units of work done on this thread.
    static SPENT: Cell<usize> = const { Cell::new(0) };
}

/// Counts units of work; a loop that is left before its work counts as one.
pub(super) fn count(units: usize) {
    SPENT.set(SPENT.get() + units);
}

/// Units at most that are done once planning is over: those of the recursion at hand.
const LATER: usize = 4 * UNITS_PER_QUESTION;

/// Units at most for each part of a long text.
const UNITS_PER_PART: usize = 500;

/// A graph of which nothing is known.
struct Empty;

impl Statistics for Empty {
    fn triples(&self, _: GraphRef<'_>) -> u64 {
        0
    }
    fn named_quads(&self) -> u64 {
        0
    }
    fn named_graphs(&self) -> u64 {
        0
    }
    fn vertices(&self) -> u64 {
        0
    }
    fn predicates(&self) -> u32 {
        1
    }
    fn term(&self, _: TermRef<'_>) -> Option<TermId> {
        None
    }
    fn predicate(&self, _: &str) -> Option<PredicateId> {
        None
    }
    fn segment(&self, _: GraphRef<'_>, _: PredicateId, _: Direction) -> SegmentStatistics {
        SegmentStatistics::default()
    }
    fn vertices_with(&self, _: GraphRef<'_>, _: &[Membership]) -> f64 {
        0.0
    }
    fn edges_from(&self, _: GraphRef<'_>, _: PredicateId, _: Direction, _: &[Membership]) -> f64 {
        0.0
    }
    fn edges_between(
        &self,
        _: GraphRef<'_>,
        _: PredicateId,
        _: &[Membership],
        _: &[Membership],
    ) -> Option<f64> {
        None
    }
    fn degree(&self, _: GraphRef<'_>, _: PredicateId, _: Direction, _: TermId) -> u64 {
        0
    }
    fn is_member(&self, _: GraphRef<'_>, _: TermId, _: Membership) -> bool {
        false
    }
}

/// Texts that say a thing `n` times.
fn texts(n: usize) -> Vec<String> {
    let numbered = |part: &str| -> String {
        let parts = (0..n).map(|number| part.replace('#', &number.to_string()));
        parts.collect()
    };
    vec![
        format!("ASK {{ ?s !(a{}) ?o }}", "|^a".repeat(n)),
        format!("ASK {{ ?s !(a{}) ?o }}", numbered("|<a:#>")),
        format!("ASK {{ {} }}", "SERVICE<a:>{}".repeat(n)),
        format!("ASK {{ {} }}", numbered("SERVICE<a:#>{?s ?p ?o#}")),
        format!("ASK {{ ?s ?p ?o FILTER({}?o=?s) }}", "?o!=?p&&".repeat(n)),
        format!("ASK {{ ?s ?p ?o FILTER({}?o=?s) }}", "?o>1&&".repeat(n)),
        format!(
            "ASK {{ ?s ?p ?o FILTER({}?o=?s) }}",
            "?o>1 && ?o < 3 && ".repeat(n)
        ),
        format!(
            "SELECT (COUNT(*) AS ?c) {{}} HAVING{}",
            "(COUNT(*)>0)".repeat(n)
        ),
        format!(
            "SELECT (COUNT(*) AS ?c) {{}} HAVING{}",
            numbered("(SUM(#)>0)")
        ),
        format!("ASK {{ {} }}", "GRAPH<a:>{}".repeat(n)),
        format!("ASK {{ {} }}", "GRAPH?g{}".repeat(n)),
        format!("ASK {{ {} }}", numbered("GRAPH?g#{}")),
        format!("ASK {{ ?s ?p ?o {} }}", "FILTER(?o!=?p)".repeat(n)),
        format!("ASK {{ ?s ?p ?o {} }}", "FILTER(?o=1)".repeat(n)),
        format!("ASK {{ ?s ?p ?o {} }}", "FILTER(RAND()<1)".repeat(n)),
        format!("ASK {{ ?s ?p ?o {} }}", "FILTER REGEX(?o,'a')".repeat(n)),
        format!("ASK {{ BIND(1 AS ?a){} }}", numbered("BIND(?a AS ?b#)")),
        format!(
            "ASK {{ BIND(1 AS ?a){} }}",
            numbered("BIND(?a AS ?b#)FILTER(?b#=1)")
        ),
        format!(
            "ASK {{ {} ?s ?p ?o }}",
            numbered("FILTER(?u#=1)BIND(1 AS ?b#)")
        ),
        format!("ASK {{ ?s ?p ?o FILTER(?o IN(1{})) }}", ",2".repeat(n)),
        format!("ASK {{ VALUES ?a {{ {} }} }}", "1 ".repeat(n)),
        format!("ASK {{ {} }}", "VALUES?a{1}".repeat(n)),
        format!("ASK {{ {} }}", numbered("VALUES?a#{1}")),
        format!("ASK {{ {} }}", "VALUES?a{UNDEF}".repeat(n)),
        format!("ASK {{ {{}}{} }}", "UNION{}".repeat(n)),
        format!("ASK {{ {} }}", "{}UNION{}".repeat(n)),
        format!("ASK {{ {} }}", "{}UNION{VALUES?a{1}}".repeat(n)),
        format!("ASK {{ {} }}", "{SELECT*{}LIMIT 1}".repeat(n)),
        format!("ASK {{}} ORDER BY {}", "(1)".repeat(n)),
        format!("SELECT (COUNT(*) AS ?c) {{}} GROUP BY {}", "(1)".repeat(n)),
        format!("SELECT {} {{}}", numbered("(1 AS ?a#)")),
    ]
}

/// Inline data of which each part is connected with the next, with filters that wait for it: its
/// order is looked for in time that grows with the square of its length.
fn numbered_chain(n: usize) -> String {
    let parts = (0..n).map(|number| {
        let next = number + 1;
        format!("VALUES(?a{number} ?a{next}){{(1 1)}}FILTER(?a{next}>?a{number})")
    });
    format!("ASK {{ {} }}", parts.collect::<String>())
}

/// Texts whose parts build on each other or are triple patterns, of which there are few.
fn short_texts(n: usize) -> Vec<String> {
    vec![
        numbered_chain(n * 10),
        format!(
            "ASK {{ {}{}{} }}",
            "{<a:s> <a:p> 1 . ".repeat(n),
            "FILTER(1=1)".repeat(10 * n),
            "}".repeat(n)
        ),
        format!("ASK {{ {} }}", "OPTIONAL{?s <a:p> ?o}".repeat(n)),
        format!(
            "ASK {{ {} }}",
            "OPTIONAL{?s <a:p> ?o FILTER(?o=1)}".repeat(n)
        ),
        format!("ASK {{ ?s ?p ?o {} }}", "MINUS{?s <a:p> 1}".repeat(n)),
        format!(
            "ASK {{ ?s ?p ?o {} }}",
            "FILTER EXISTS{?s <a:p> 1}".repeat(n)
        ),
        format!("ASK {{ {{?s ?p ?o}}{} }}", "UNION{?s <a:p> ?o}".repeat(n)),
        format!(
            "ASK {{ {} }}",
            "?s <a:p> ?o,?o2 . ?o ?p ?o2 .".repeat(n / 3)
        ),
        format!(
            "ASK {{ {}{} }}",
            "{?s ?p ?o OPTIONAL".repeat(n / 4),
            "{}".to_owned() + &"}".repeat(n / 4)
        ),
    ]
}

fn plan(text: &str, patience: &Patience<'_>) -> Result<Plan, PlanError> {
    let parsed = parse_query(text, Options::default()).expect("a query");
    let converter = Converter::new(text, None, Arguments::none(), patience);
    build(converter.query(&parsed)?.query, &Empty, patience)
}

fn beginning(text: &str) -> &str {
    &text[..text.len().min(60)]
}

/// Does `work` with a question that is answered by yes from the time on that it was asked `most`
/// times; returns how often it was asked, and the units of work that were done later.
fn asked<T>(
    most: usize,
    work: impl FnOnce(&dyn Fn() -> bool) -> Result<T, PlanError>,
) -> (Result<T, PlanError>, usize, usize) {
    let (questions, over) = (Cell::new(0_usize), Cell::new(None));
    let is_over = || {
        questions.set(questions.get() + 1);
        if questions.get() > most && over.get().is_none() {
            over.set(Some(SPENT.get()));
        }
        over.get().is_some()
    };
    let done = work(&is_over);
    let later = over.get().map_or(0, |over| SPENT.get() - over);
    (done, questions.get(), later)
}

/// Gives `work` up at several points of it.
fn assert_is_given_up<T>(text: &str, work: impl Fn(&dyn Fn() -> bool) -> Result<T, PlanError>) {
    let (done, questions, _) = asked(usize::MAX, &work);
    assert!(done.is_ok(), "{}: {:?}", beginning(text), done.err());
    for part in 0..8 {
        let most = (questions - 1) * part / 7;
        let (done, _, later) = asked(most, &work);
        let what = format!("{} after {most} of {questions}", beginning(text));
        assert_eq!(done.err(), Some(PlanError::Interrupted), "{what}");
        assert!(later <= LATER, "{what}: {later} units later");
    }
}

#[test]
fn planning_is_given_up_wherever_it_is() {
    let all = [texts(2000), texts(4000), short_texts(100), short_texts(200)].concat();
    for text in all {
        assert_is_given_up(&text, |is_over| plan(&text, &Patience::new(is_over)));
    }
}

#[test]
fn long_texts_are_planned_in_linear_work() {
    let spent = |text: &str| {
        let before = SPENT.get();
        let done = plan(text, &Patience::new(&|| false));
        assert!(done.is_ok(), "{}: {:?}", beginning(text), done.err());
        SPENT.get() - before
    };
    for (text, twice) in texts(2000).iter().zip(texts(4000)) {
        let (one, two) = (spent(text), spent(&twice));
        let what = format!("{}: {one} and {two} units", beginning(text));
        // Numbers get longer.
        assert!(two * 10 <= one * 22, "{what}");
        assert!(one <= 2000 * UNITS_PER_PART, "{what}");
    }
}

#[test]
fn updates_are_given_up_wherever_they_are() {
    for text in ["FILTER(?o!=?p)", "GRAPH<a:>{}", "VALUES?a{UNDEF}"] {
        let text = format!(
            "DELETE {{?s ?p ?o}} WHERE {{ ?s ?p ?o {} }}",
            text.repeat(2000)
        );
        fn parse<'t>(text: &'t str, is_over: &dyn Fn() -> bool) -> Result<Update<'t>, PlanError> {
            let reserve = &mut |_| true;
            parse_update_within(text, None, (None, false), Limits { reserve, is_over })
        }
        assert_is_given_up(&text, |is_over| parse(&text, is_over));
        let update = parse(&text, &|| false).expect("an update");
        let [Operation::Modify(modify)] = &*update.operations else {
            panic!("one operation is expected");
        };
        assert_is_given_up(&text, |is_over| modify.plan_until(&Empty, is_over));
    }
}
