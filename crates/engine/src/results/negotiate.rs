//! Which of the offered media types does an HTTP `Accept` header prefer?

/// A media type and what it stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<T> {
    /// The media type in lower case, without parameters.
    pub media_type: &'static str,
    /// The format it names.
    pub format: T,
}

impl<T> Offer<T> {
    /// An offer of `format` under `media_type`, which is in lower case and has no parameters.
    #[must_use]
    pub const fn new(media_type: &'static str, format: T) -> Self {
        Self { media_type, format }
    }
}

/// Chooses among `offers`, which are in the server's order of preference, by RFC 9110.
///
/// For each offer the most specific range that matches it decides; the offer with the highest
/// `q` wins, the earlier one among equals. Parameters other than `q` are not looked at; a `q`
/// that is no number counts as 1. No header, or an empty one, accepts anything.
///
/// `None`: nothing that is offered is accepted. Costs one pass over the header for each offer.
///
/// ```
/// use jindou_engine::results::{SolutionsFormat, negotiate};
/// let chosen = negotiate("text/*;q=0.5, application/json", SolutionsFormat::OFFERS).unwrap();
/// assert_eq!(chosen.format, SolutionsFormat::Json);
/// ```
#[must_use]
pub fn negotiate<'o, T>(accept: &str, offers: &'o [Offer<T>]) -> Option<&'o Offer<T>> {
    let accept = accept.trim();
    if accept.is_empty() || accept == "*/*" {
        return offers.first();
    }
    let mut best: Option<(&Offer<T>, u16)> = None;
    for offer in offers {
        let quality = quality_of(offer.media_type, accept);
        if quality > best.map_or(0, |(_, quality)| quality) {
            best = Some((offer, quality));
        }
    }
    best.map(|(offer, _)| offer)
}

/// The quality, in thousandths, that the header gives a media type; 0 is "not acceptable".
fn quality_of(media_type: &str, accept: &str) -> u16 {
    let mut best = (0, 0); // (specificity, quality)
    for range in accept.split(',') {
        let mut parts = range.split(';');
        let specificity = specificity(parts.next().unwrap_or_default().trim(), media_type);
        if specificity > best.0 {
            best = (specificity, parts.find_map(parse_quality).unwrap_or(1000));
        }
    }
    best.1
}

fn specificity(range: &str, media_type: &str) -> u8 {
    if range.eq_ignore_ascii_case(media_type) {
        3
    } else if range == "*/*" || range == "*" {
        1
    } else if let Some(kind) = range.strip_suffix("/*") {
        let matches = media_type
            .split_once('/')
            .is_some_and(|(offered, _)| offered.eq_ignore_ascii_case(kind));
        2 * u8::from(matches)
    } else {
        0
    }
}

fn parse_quality(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let quality: f32 = value.trim().parse().unwrap_or(1.0);
    // In range after the clamp; a NaN, which "nan" parses to, becomes 0.
    Some((quality.clamp(0.0, 1.0) * 1000.0) as u16)
}

#[cfg(test)]
mod tests {
    use super::super::{BooleanFormat, GraphFormat, SolutionsFormat};
    use super::*;

    fn solutions(accept: &str) -> Option<&'static str> {
        negotiate(accept, SolutionsFormat::OFFERS).map(|offer| offer.media_type)
    }

    #[test]
    fn anything_is_json() {
        for accept in [
            "",
            "*/*",
            " * ",
            "application/*",
            "*/*;q=0.1",
            "image/png, */*;q=0.1",
        ] {
            assert_eq!(
                solutions(accept),
                Some("application/sparql-results+json"),
                "{accept}"
            );
        }
    }

    #[test]
    fn the_highest_quality_wins() {
        assert_eq!(
            solutions("text/csv;q=0.2, text/xml;q=0.9"),
            Some("text/xml")
        );
        assert_eq!(
            solutions("application/json;q=0.5,text/tab-separated-values"),
            Some("text/tab-separated-values")
        );
        assert_eq!(
            solutions("TEXT/CSV ; Q=0.7 , text/plain;q=0.5"),
            Some("text/csv")
        );
    }

    #[test]
    fn the_most_specific_range_decides() {
        assert_eq!(
            solutions("application/sparql-results+json;q=0, application/*"),
            Some("application/json")
        );
        assert_eq!(
            solutions("*/*;q=0.5, application/*;q=0.1"),
            Some("text/csv")
        );
    }

    #[test]
    fn a_browser_gets_xml() {
        let accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        assert_eq!(solutions(accept), Some("application/xml"));
    }

    #[test]
    fn nothing_acceptable_is_none() {
        assert_eq!(solutions("image/png"), None);
        assert_eq!(solutions("*/*;q=0"), None);
        assert_eq!(solutions("text/csv;q=nan"), None);
    }

    #[test]
    fn every_offer_can_be_had_by_name_and_by_type() {
        for offer in SolutionsFormat::OFFERS {
            assert_eq!(solutions(offer.media_type), Some(offer.media_type));
        }
        for format in SolutionsFormat::ALL {
            assert_eq!(SolutionsFormat::from_name(format.name()), Some(format));
            assert_eq!(
                negotiate(format.media_type(), SolutionsFormat::OFFERS).map(|o| o.format),
                Some(format)
            );
        }
        for format in BooleanFormat::ALL {
            assert_eq!(BooleanFormat::from_name(format.name()), Some(format));
            assert_eq!(
                negotiate(format.media_type(), BooleanFormat::OFFERS).map(|o| o.format),
                Some(format)
            );
        }
        for format in GraphFormat::ALL {
            assert_eq!(GraphFormat::from_name(format.name()), Some(format));
            assert_eq!(
                negotiate(format.media_type(), GraphFormat::OFFERS).map(|o| o.format),
                Some(format)
            );
        }
    }
}
