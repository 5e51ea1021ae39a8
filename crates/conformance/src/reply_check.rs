//! Is an answer over HTTP what a protocol test expects?

use crate::exchange::{Expected, Form};
use crate::isomorphism::isomorphic;
use crate::served::Reply;
use oxrdf::{Quad, Term};
use oxrdfio::{RdfFormat, RdfParser};
use sparesults::{QueryResultsFormat, QueryResultsParser, SliceQueryResultsParserOutput};

/// Looks at everything that is expected.
///
/// # Errors
/// What is otherwise.
pub fn check(reply: &Reply, expected: &Expected) -> Result<(), String> {
    let told = |what: String| {
        Err(format!(
            "{what}; the answer was {} {:?}\n{}",
            reply.status,
            reply.headers,
            reply.text()
        ))
    };
    if !expected.statuses.iter().any(|s| s.holds(reply.status)) {
        return told(format!("expected one of {:?}", expected.statuses));
    }
    for (name, value) in &expected.headers {
        let found = reply.header(name).unwrap_or_default();
        if !same_value(found, value) {
            return told(format!("expected {name}: {value}"));
        }
    }
    if expected.location.is_some() && reply.header("location").is_none_or(str::is_empty) {
        return told("expected a Location".to_owned());
    }
    if let Err(reason) = check_form(reply, expected) {
        return told(reason);
    }
    if let Some(document) = &expected.document {
        let same = || -> Result<bool, String> {
            let wanted = graph(document.as_bytes(), RdfFormat::Turtle)?;
            let found = graph(&reply.body, rdf_format(reply)?)?;
            Ok(isomorphic(&rows(&found), &rows(&wanted), false))
        };
        match same() {
            Ok(true) => {}
            Ok(false) => return told(format!("expected the graph\n{document}")),
            Err(reason) => return told(reason),
        }
    }
    Ok(())
}

fn check_form(reply: &Reply, expected: &Expected) -> Result<(), String> {
    let Some(form) = expected.form else {
        return match expected.boolean {
            None => Ok(()),
            Some(_) => Err("a boolean is expected of no boolean answer".to_owned()),
        };
    };
    if form == Form::Rdf {
        return graph(&reply.body, rdf_format(reply)?).map(drop);
    }
    let kind = reply.media_type();
    let format = QueryResultsFormat::from_media_type(&kind)
        .ok_or_else(|| format!("{kind:?} is no format of results"))?;
    let malformed = |error: &dyn std::fmt::Display| format!("the results are malformed: {error}");
    let parsed = QueryResultsParser::from_format(format)
        .for_slice(&reply.body)
        .map_err(|error| malformed(&error))?;
    match (form, parsed) {
        (Form::Boolean, SliceQueryResultsParserOutput::Boolean(value)) => {
            match expected.boolean.is_none_or(|expected| expected == value) {
                true => Ok(()),
                false => Err(format!("the answer is {value}")),
            }
        }
        (Form::Tabular, SliceQueryResultsParserOutput::Solutions(mut solutions)) => {
            let wrong = solutions.find_map(Result::err);
            wrong.map_or(Ok(()), |error| Err(malformed(&error)))
        }
        _ => Err(format!("expected an answer that is {form:?}")),
    }
}

/// The statements of a body that is RDF.
///
/// # Errors
/// When it is none, or not of the type that the answer names.
pub fn body_graph(reply: &Reply) -> Result<Vec<Quad>, String> {
    graph(&reply.body, rdf_format(reply)?)
}

fn rdf_format(reply: &Reply) -> Result<RdfFormat, String> {
    let kind = reply.media_type();
    RdfFormat::from_media_type(&kind).ok_or_else(|| format!("{kind:?} is no format of RDF"))
}

fn graph(bytes: &[u8], format: RdfFormat) -> Result<Vec<Quad>, String> {
    RdfParser::from_format(format)
        .for_slice(bytes)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the RDF is malformed: {error}"))
}

fn rows(quads: &[Quad]) -> Vec<Vec<Option<Term>>> {
    let row = |quad: &Quad| {
        vec![
            Some(quad.subject.clone().into()),
            Some(quad.predicate.clone().into()),
            Some(quad.object.clone()),
        ]
    };
    quads.iter().map(row).collect()
}

/// Whether two values of a header say the same: in any case, with or without spaces.
fn same_value(left: &str, right: &str) -> bool {
    let plain = |value: &str| value.replace(' ', "").to_ascii_lowercase();
    plain(left) == plain(right)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Status;

    fn reply(kind: &str, body: &str) -> Reply {
        Reply {
            status: 200,
            headers: vec![("content-type".to_owned(), kind.to_owned())],
            body: body.into(),
        }
    }

    fn expected(form: Option<Form>) -> Expected {
        Expected {
            statuses: vec![Status::Class(2)],
            form,
            ..Expected::default()
        }
    }

    const JSON: &str = "application/sparql-results+json";

    #[test]
    fn each_expectation_is_looked_at() {
        let yes = reply(JSON, r#"{"head": {}, "boolean": true}"#);
        let mut wanted = expected(Some(Form::Boolean));
        wanted.boolean = Some(true);
        assert_eq!(check(&yes, &wanted), Ok(()));
        let otherwise: [fn(&mut Expected); 6] = [
            |e| e.boolean = Some(false),
            |e| e.form = Some(Form::Tabular),
            |e| e.form = Some(Form::Rdf),
            |e| e.statuses = vec![Status::Is(204), Status::Class(4)],
            |e| e.location = Some("$LOCATION$".to_owned()),
            |e| e.headers = vec![("content-type".to_owned(), "text/csv".to_owned())],
        ];
        for (index, change) in otherwise.iter().enumerate() {
            let mut wrong = wanted.clone();
            change(&mut wrong);
            assert!(check(&yes, &wrong).is_err(), "{index}");
        }
        assert!(check(&reply("text/plain", "true"), &wanted).is_err());
        assert!(check(&reply(JSON, r#"{"head": {}"#), &wanted).is_err());
    }

    #[test]
    fn graphs_are_compared_up_to_the_names_of_blank_nodes() {
        let mut wanted = expected(None);
        wanted.document = Some("_:a <http://e/p> [ <http://e/q> 1 ] .".to_owned());
        let body = "_:x <http://e/p> _:y . _:y <http://e/q> 1 .";
        assert_eq!(
            check(&reply("text/turtle; charset=utf-8", body), &wanted),
            Ok(())
        );
        assert!(
            check(
                &reply("text/turtle", &body.replace("_:y <", "_:x <")),
                &wanted
            )
            .is_err()
        );
        assert!(check(&reply("text/plain", body), &wanted).is_err());
        assert!(check(&reply("text/turtle", ""), &wanted).is_err());
    }
}
