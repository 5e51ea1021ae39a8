//! In which format is a result sent?

use hyper::StatusCode;
use jindou_engine::results::{BooleanFormat, GraphFormat, Offer, SolutionsFormat, negotiate};

use crate::error::Refusal;
use crate::execute::{Query, Stop};
use crate::protocol::Parameters;

/// The short names of all formats.
const NAMES: [&str; 15] = [
    "json", "xml", "csv", "tsv", "table", "text", "ttl", "nt", "rdf", "jsonld", "trig", "nq", "n3",
    "arrow", "parquet",
];

/// The format to answer in: the first of those that the parameters name and that there is for
/// this form of query, or else by `Accept`.
///
/// One that is named and that there is not is refused, with the exception of clients that send the
/// same wish in several parameters: SPARQLWrapper does so whatever the query is, and says in `Accept`
/// what it can read.
pub(crate) fn choose<T: Copy>(
    query: &Query,
    form: &str,
    offers: &'static [Offer<T>],
    from_name: fn(&str) -> Option<T>,
    media_type: fn(T) -> &'static str,
) -> Result<(&'static str, T), Stop> {
    let offered = |offer: &Offer<T>| (offer.media_type, offer.format);
    let named = |name: &String| match is_media_type(name) {
        true => negotiate(&unspaced(name), offers).map(offered),
        false => from_name(&unspaced(name)).map(|format| (media_type(format), format)),
    };
    let refused = |asked: &str, available: &[&str]| {
        let available = available.join(", ");
        let message =
            format!("the results of {form} are not available as {asked}; available: {available}");
        Stop::Refused(Refusal::new(StatusCode::NOT_ACCEPTABLE, message))
    };
    if let Some(named) = query.parameters.formats.iter().find_map(named) {
        return Ok(named);
    }
    let media_types = || offers.iter().map(|offer| offer.media_type).collect();
    if let Some(asked) = binding(&query.parameters) {
        let available: Vec<&str> = match is_media_type(asked) {
            true => media_types(),
            false => NAMES
                .into_iter()
                .filter(|name| from_name(name).is_some())
                .collect(),
        };
        return Err(refused(asked, &available));
    }
    let chosen = negotiate(&query.accept, offers).map(offered);
    chosen.ok_or_else(|| {
        let available: Vec<&str> = media_types();
        refused(&query.accept, &available)
    })
}

/// The format that was asked for and no other will do, if there is one.
fn binding(parameters: &Parameters) -> Option<&str> {
    let first = parameters.formats.first()?;
    let is_one_wish = parameters.format_parameters == 1;
    let is_known = parameters.formats.iter().any(|name| is_of_any_form(name));
    (is_one_wish || !is_known).then_some(first)
}

/// Whether the results of any form of query have this format.
fn is_of_any_form(name: &str) -> bool {
    let name = &*unspaced(name);
    if is_media_type(name) {
        return negotiate(name, SolutionsFormat::OFFERS).is_some()
            || negotiate(name, BooleanFormat::OFFERS).is_some()
            || negotiate(name, GraphFormat::OFFERS).is_some();
    }
    SolutionsFormat::from_name(name).is_some()
        || BooleanFormat::from_name(name).is_some()
        || GraphFormat::from_name(name).is_some()
}

fn is_media_type(name: &str) -> bool {
    name.contains('/')
}

/// A name or media type, whose + the encoding of URLs takes for a space.
fn unspaced(name: &str) -> String {
    name.replace(' ', "+")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_its_name_in_the_list() {
        let solutions = SolutionsFormat::ALL.iter().map(|format| format.name());
        let booleans = BooleanFormat::ALL.iter().map(|format| format.name());
        let graphs = GraphFormat::ALL.iter().map(|format| format.name());
        for name in solutions.chain(booleans).chain(graphs) {
            assert!(NAMES.contains(&name), "{name}");
        }
        assert!(NAMES.into_iter().all(is_of_any_form));
        // Those of SPARQLWrapper.
        for name in [
            "json", "xml", "turtle", "n3", "rdf", "rdf+xml", "csv", "tsv", "json-ld",
        ] {
            assert!(is_of_any_form(name), "{name}");
        }
    }

    #[test]
    fn one_wish_is_binding_and_the_same_one_in_several_parameters_is_not() {
        let binding = |encoded: &str| {
            let mut parameters = Parameters::default();
            parameters.add(encoded).expect("they are good");
            super::binding(&parameters).map(ToOwned::to_owned)
        };
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(binding("format="), None);
        assert_eq!(binding("format=foo&output="), some("foo"));
        assert_eq!(binding("output=ttl"), some("ttl"));
        assert_eq!(binding("format=xml&output=xml&results=xml"), None);
        assert_eq!(binding("format=foo&output=xml"), None);
        assert_eq!(binding("format=foo&output=bar&results=foo"), some("foo"));
    }
}
