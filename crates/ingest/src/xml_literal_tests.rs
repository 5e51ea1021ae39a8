use super::*;
use oxrdfio::{RdfFormat, RdfParser};

const RDF_DECLARED: &str = " xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"";

/// The XML literal that the parser makes of what a property holds, with `e` for `http://e/` and
/// the default namespace `http://d/` declared outside.
fn parsed(content: &str) -> String {
    let document = format!(
        "<rdf:RDF{RDF_DECLARED} xmlns:e='http://e/' xmlns='http://d/'>\
         <rdf:Description rdf:about='http://e/s'><e:p rdf:parseType='Literal'>{content}</e:p>\
         </rdf:Description></rdf:RDF>"
    );
    let mut quads = RdfParser::from_format(RdfFormat::RdfXml).for_slice(document.as_bytes());
    match quads.next().expect("a quad").expect(content).object {
        Term::Literal(literal) => literal.value().to_owned(),
        other => panic!("{content}: {other}"),
    }
}

#[track_caller]
fn check(content: &str, expected: &str) {
    let text = parsed(content);
    assert_eq!(canonical(&text).as_deref(), Some(expected), "{text}");
}

#[test]
fn only_namespaces_in_use_are_declared() {
    check("<e:a/>", "<e:a xmlns:e=\"http://e/\"></e:a>");
    check("<a/>", "<a xmlns=\"http://d/\"></a>");
    check("<a xmlns=''/>", "<a></a>");
    check(
        "<a xmlns='http://f/' xmlns:g='http://g/'/>",
        "<a xmlns=\"http://f/\"></a>",
    );
    check(
        "<a e:x='1'/>",
        "<a xmlns=\"http://d/\" xmlns:e=\"http://e/\" e:x=\"1\"></a>",
    );
    check("<e:a x='1'/>", "<e:a xmlns:e=\"http://e/\" x=\"1\"></e:a>");
    check(
        "<e:a xml:lang='en'/>",
        "<e:a xmlns:e=\"http://e/\" xml:lang=\"en\"></e:a>",
    );
}

#[test]
fn a_namespace_is_declared_where_it_is_used_first() {
    check(
        "<a><e:b><e:c><a/></e:c></e:b><e:b/></a>",
        "<a xmlns=\"http://d/\"><e:b xmlns:e=\"http://e/\"><e:c><a></a></e:c></e:b>\
         <e:b xmlns:e=\"http://e/\"></e:b></a>",
    );
    check(
        "<e:a/><e:a/>",
        "<e:a xmlns:e=\"http://e/\"></e:a><e:a xmlns:e=\"http://e/\"></e:a>",
    );
    // Declared again in the same way is not declared again.
    check(
        "<e:a><e:b xmlns:e='http://e&#x2f;'/></e:a>",
        "<e:a xmlns:e=\"http://e/\"><e:b></e:b></e:a>",
    );
}

#[test]
fn a_prefix_may_be_declared_otherwise_inside() {
    check(
        "<e:a><e:b xmlns:e='http://f/'><e:c/></e:b><e:d/></e:a>",
        "<e:a xmlns:e=\"http://e/\"><e:b xmlns:e=\"http://f/\"><e:c></e:c></e:b><e:d></e:d></e:a>",
    );
    check(
        "<e:a xmlns:e='http://f/'><e:b xmlns:e='http://e/'><e:c xmlns:e='http://f/'/></e:b></e:a>",
        "<e:a xmlns:e=\"http://f/\"><e:b xmlns:e=\"http://e/\">\
         <e:c xmlns:e=\"http://f/\"></e:c></e:b></e:a>",
    );
}

#[test]
fn the_default_namespace_is_undeclared_where_an_element_is_in_none() {
    check(
        "<a><b xmlns=''><c/></b><d/></a>",
        "<a xmlns=\"http://d/\"><b xmlns=\"\"><c></c></b><d></d></a>",
    );
    check(
        "<a xmlns=''><b xmlns='http://f/'><c xmlns=''/></b><d xmlns=''/></a>",
        "<a><b xmlns=\"http://f/\"><c xmlns=\"\"></c></b><d></d></a>",
    );
    check(
        "<e:a><b xmlns=''/></e:a>",
        "<e:a xmlns:e=\"http://e/\"><b></b></e:a>",
    );
}

#[test]
fn declarations_are_sorted_by_prefix_and_attributes_by_namespace() {
    // The example of Canonical XML 1.0, section 3.3.
    check(
        "<e5 a:attr='out' b:attr='sorted' attr2='all' attr='I&apos;m' xmlns:b='http://www.ietf.org' \
         xmlns:a='http://www.w3.org' xmlns='http://example.org'/>",
        "<e5 xmlns=\"http://example.org\" xmlns:a=\"http://www.w3.org\" \
         xmlns:b=\"http://www.ietf.org\" attr=\"I'm\" attr2=\"all\" b:attr=\"sorted\" \
         a:attr=\"out\"></e5>",
    );
}

#[test]
fn the_default_namespace_is_not_that_of_attributes() {
    check(
        "<a xmlns='http://z/' e:x='1' y='2'/>",
        "<a xmlns=\"http://z/\" xmlns:e=\"http://e/\" y=\"2\" e:x=\"1\"></a>",
    );
    check(
        "<a xmlns='http://e/' e:x='1' x='2'/>",
        "<a xmlns=\"http://e/\" xmlns:e=\"http://e/\" x=\"2\" e:x=\"1\"></a>",
    );
}

#[test]
fn special_characters_are_escaped_as_the_form_has_it() {
    check(
        "<a xmlns=''>It's \"1\" &lt; &quot;2&quot; &gt; 0 &amp; é&#13;<![CDATA[<&>]]>\t\n</a>",
        "<a>It's \"1\" &lt; \"2\" &gt; 0 &amp; é&#xD;&lt;&amp;&gt;\t\n</a>",
    );
    check(
        "<a xmlns='' b='&lt;&gt;&amp;&quot;&apos;&#9;&#10;&#13; \t\n\r\r\n'/>",
        "<a b=\"&lt;>&amp;&quot;'&#x9;&#xA;&#xD;     \"></a>",
    );
    // Line ends of a document mean LF.
    check("<a xmlns=''>\r\n</a>\r\n", "<a>\n</a>\n");
}

#[test]
fn outermost_elements_stand_between_text() {
    check(
        " a <e:b>c</e:b> \"d\" <f xmlns=''/>\n",
        " a <e:b xmlns:e=\"http://e/\">c</e:b> \"d\" <f></f>\n",
    );
}

#[test]
fn what_the_parser_drops_is_lost() {
    check("<a xmlns=''><!-- b --><?c d?></a>", "<a></a>");
}

#[test]
fn what_the_parser_did_not_write_stays() {
    for text in [
        "".to_owned(),
        "text &amp; text".to_owned(),
        "It&apos;s".to_owned(),
        "<br></br>".to_owned(),
        "<br xmlns:e=\"http://e/\"></br>".to_owned(),
        format!("<br{RDF_DECLARED}/>"),
        format!("<br{RDF_DECLARED} e=\"\"></br>"),
        format!("<br{RDF_DECLARED}>it's</br>"),
        format!("<br{RDF_DECLARED}>></br>"),
        format!("<br{RDF_DECLARED}>\"</br>"),
        format!("<br{RDF_DECLARED}><!-- --></br>"),
        format!("<br{RDF_DECLARED}><?a?></br>"),
        format!("<br{RDF_DECLARED}><![CDATA[]]></br>"),
        format!("<br{RDF_DECLARED}></br><br></br>"),
        format!("\u{feff}<br{RDF_DECLARED}></br>"),
    ] {
        assert_eq!(canonical(&text), None, "{text}");
    }
    assert!(canonical(&format!("<br{RDF_DECLARED}></br>")).is_some());
}

#[test]
fn what_is_no_xml_stays() {
    for body in [
        "",
        "<b>",
        "<b></c>",
        "</a></a>",
        "</a>&amp",
        "&nbsp;</a>",
        "<e:b></e:b></a>",
        "<b e:c=\"\"></b></a>",
        "<b c=\"\" c=\"\"></b></a>",
        "<b c></b></a>",
        "<1></1></a>",
        "<e:></e:></a>",
        "<:b></:b></a>",
        "<b xmlns:e=\"\"><e:c></e:c></b></a>",
        "<b xmlns:e=\"u\" xmlns:e=\"v\"></b></a>",
        "<b c=\"&d;\"></b></a>",
        "</a><",
        "<b xmlns:e=\"u\" xmlns:f=\"u\" e:c=\"\" f:c=\"\"></b></a>",
    ] {
        let text = format!("<a{RDF_DECLARED}>{body}");
        assert_eq!(canonical(&text), None, "{text}");
    }
    // An entity in a namespace matters only where it is used.
    let text = format!("<a xmlns:e=\"&e;\"{RDF_DECLARED}></a>");
    assert_eq!(canonical(&text).as_deref(), Some("<a></a>"));
}

#[test]
fn a_literal_does_not_grow_without_bound() {
    let text = |namespace: usize, elements: usize| {
        let (namespace, elements) = ("n".repeat(namespace), "<e:b></e:b>".repeat(elements));
        format!("<a xmlns:e=\"{namespace}\"{RDF_DECLARED}>{elements}</a>")
    };
    assert!(canonical(&text(100, 1000)).is_some());
    assert!(canonical(&text(1000, 5)).is_some());
    assert_eq!(canonical(&text(1000, 1000)), None);
    assert_eq!(canonical(&text(MAX_NAMESPACE_BYTES + 1, 1)), None);
}

#[test]
fn the_canonical_form_is_its_own() {
    for content in [
        "<e:a rdf:b='' c=''><d>e &amp; f</d></e:a>",
        "<rdf:a xmlns='' g='h'/>",
    ] {
        let text = canonical(&parsed(content)).expect(content);
        assert_eq!(canonical(&parsed(&text)), Some(text));
    }
}
