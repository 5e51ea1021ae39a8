//! Does any damaged document make a parser panic or hang?
//!
//! Small documents of each format are damaged at random from a fixed seed. `JINDOU_FUZZ_CASES`
//! sets how many damaged documents of each format are tried, `JINDOU_FUZZ_SEED` the seed.

use crate::common::{collect, options};
use jindou_ingest::{Compression, Format, LoadOptions, Source};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |n| n.parse().expect("a number"))
}

const TURTLE: &str = r#"@prefix : <http://a/> . @base <http://b/> .
:s :p :o , "é"@de-CH , "x"^^:t , 1 , -1.5 , 1e6 , true ; a <c#d> .
[ :p ( 1 [] "a\n\u00e9" ) ] :q '''long ' string''' , _:b1 , :l\~ocal%41 .
PREFIX x: <http://x/>
x:a.b x:c _:b.1 .
"#;
const TRIG: &str = r#"@prefix : <http://a/> . :g { :s :p [ :q () ] . } { :a :b "c" }
GRAPH _:g { :s a :t , """x"y""" } :s :p :o .
"#;
const LINES: &str = "<http://a> <http://b> \"c\\u00e9\"^^<http://d> .\n_:x <http://b> \"c\"@en-GB . \
                     # é\r\n\n<http://ü/%41> <urn:b> _:y.z <http://g> .\r<http://a> <b:> <c:> .";
const RDF_XML: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE rdf:RDF [ <!ENTITY a "http://a/"> <!ENTITY b "&a;b"> ]>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="&a;" xml:lang="en">
<rdf:Description rdf:about="&b;" a:p="é"><a:q rdf:resource="x"/>
<a:r rdf:parseType="Collection"><a:T rdf:nodeID="n"/></a:r>
<a:l rdf:parseType="Literal"><b>x</b></a:l><a:i rdf:datatype="&a;t">1</a:i><rdf:li>2</rdf:li>
</rdf:Description></rdf:RDF>"#;
const JSON_LD: &str = r#"{"@context": {"a": "http://a/", "p": {"@id": "a:p", "@type": "@id"},
"l": {"@id": "a:l", "@container": "@list"}, "@language": "en"}, "@id": "a:s", "p": ["_:x", "b"],
"l": [1, 2.5, true, null, "é"], "@graph": [{"@type": "a:t", "a:q": {"@value": "1", "@type": "a:t"}}],
"@reverse": {"a:r": {"@id": "a:z"}}}"#;

fn damage(random: &mut Random, text: &mut Vec<u8>) {
    const BYTES: &[u8] = b"<>\"'\\\n\r .;,:@^#_[](){}%&!?*+-/=0aeu\xff\xc3\xa9\0\x1f\xf0|~`";
    for _ in 0..=random.below(4) {
        let at = random.below(text.len() + 1);
        let to = text.len().min(at + random.below(6));
        match random.below(5) {
            0 => drop(text.drain(at..to)),
            1 => text.insert(at, BYTES[random.below(BYTES.len())]),
            2 if at < text.len() => text[at] = BYTES[random.below(BYTES.len())],
            3 => {
                let copy = text[at..to].to_vec();
                let target = random.below(text.len() + 1);
                text.splice(target..target, copy);
            }
            _ if random.below(8) == 0 => text.truncate(at),
            _ => {}
        }
    }
}

fn try_all(format: Format, text: &str) {
    let seed = variable("JINDOU_FUZZ_SEED", 1);
    let mut random = Random(seed);
    let mut accepted = 0;
    let cases = variable("JINDOU_FUZZ_CASES", 1500);
    for case in 0..cases {
        let mut damaged = text.as_bytes().to_vec();
        damage(&mut random, &mut damaged);
        for lenient in [false, true] {
            let source = Source::bytes("fuzz", damaged.as_slice())
                .with_format(format)
                .with_compression(Compression::None)
                .with_base_iri("http://base/");
            let options = LoadOptions {
                lenient,
                ..options(2, 40)
            };
            let done = catch_unwind(AssertUnwindSafe(|| collect(vec![source], &options)));
            let Ok(done) = done else {
                panic!(
                    "seed {seed}, case {case}: panicked on b\"{}\"",
                    damaged.escape_ascii()
                );
            };
            accepted += u64::from(!lenient && done.is_ok());
        }
    }
    assert!(
        cases < 100 || (accepted > 0 && accepted < cases),
        "{accepted} of {cases} accepted"
    );
}

#[test]
fn damaged_n_triples_and_n_quads_do_no_harm() {
    try_all(Format::NQuads, LINES);
    try_all(Format::NTriples, &LINES.replace("<http://g>", ""));
}

#[test]
fn damaged_turtle_does_no_harm() {
    try_all(Format::Turtle, TURTLE);
}

#[test]
fn damaged_trig_does_no_harm() {
    try_all(Format::TriG, TRIG);
}

#[test]
fn damaged_rdf_xml_does_no_harm() {
    try_all(Format::RdfXml, RDF_XML);
}

#[test]
fn damaged_json_ld_does_no_harm() {
    try_all(Format::JsonLd, JSON_LD);
}

#[test]
fn deep_nesting_does_no_harm() {
    for (format, open) in [
        (Format::Turtle, "<http://a> <http://b> ("),
        (Format::Turtle, "<http://a> <http://b> ["),
        (Format::JsonLd, "["),
        (Format::JsonLd, "{\"http://a/\":"),
        (Format::RdfXml, "<a xmlns='http://a/'>"),
    ] {
        let deep = match format {
            Format::Turtle => format!("{open}{}", "[ <http://p> (".repeat(100_000)),
            _ => open.repeat(100_000),
        };
        let source = Source::bytes("deep", deep).with_format(format);
        assert!(collect(vec![source], &options(1, 100)).is_err(), "{format}");
    }
}
