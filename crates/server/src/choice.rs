//! In which format is a result sent?

use hyper::StatusCode;
use jindou_engine::results::{Offer, negotiate};

use crate::error::Refusal;
use crate::execute::{Query, Stop};

/// The format to answer in: the first of those that the parameters name and that there is for
/// this form of query, or else by `Accept`.
///
/// Parameters alone refuse nothing: SPARQLWrapper and others send several of them whatever the query
/// is, some with values that are of use to other servers only, and say in `Accept` what they can read.
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
    if let Some(named) = query.parameters.formats.iter().find_map(named) {
        return Ok(named);
    }
    let chosen = negotiate(&query.accept, offers).map(offered);
    chosen.ok_or_else(|| {
        let available: Vec<&str> = offers.iter().map(|offer| offer.media_type).collect();
        let available = available.join(", ");
        let asked = &query.accept;
        let message =
            format!("the results of {form} are not available as {asked}; available: {available}");
        Stop::Refused(Refusal::new(StatusCode::NOT_ACCEPTABLE, message))
    })
}

fn is_media_type(name: &str) -> bool {
    name.contains('/')
}

/// A name or media type, whose + the encoding of URLs takes for a space.
fn unspaced(name: &str) -> String {
    name.replace(' ', "+")
}
