use super::*;
use crate::xml::{XmlReader, XmlWatch};
use oxrdfio::{RdfFormat, RdfParser};
use std::sync::Arc;

const RDF_DECLARED: &str = " xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"";

/// The first literal of a document.
fn literal(document: &str) -> String {
    let watch = Arc::new(XmlWatch::new());
    let reader = XmlReader::new(document.as_bytes(), Arc::clone(&watch), None, None);
    let mut quads = RdfParser::from_format(RdfFormat::RdfXml).for_reader(reader);
    let mut quad = quads.next().expect("a quad").expect(document);
    canonicalize(&mut quad, watch.marks());
    match quad.object {
        Term::Literal(literal) => literal.value().to_owned(),
        other => panic!("{document}: {other}"),
    }
}

/// The XML literal of what a property holds, with `e` for `http://e/` and the default namespace
/// `http://d/` declared outside.
fn parsed(content: &str) -> String {
    literal(&format!(
        "<rdf:RDF{RDF_DECLARED} xmlns:e='http://e/' xmlns='http://d/'>\
         <rdf:Description rdf:about='http://e/s'><e:p rdf:parseType='Literal'>{content}</e:p>\
         </rdf:Description></rdf:RDF>"
    ))
}

#[track_caller]
fn check(content: &str, expected: &str) {
    assert_eq!(parsed(content), expected);
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
fn text_without_elements_is_canonical_too() {
    check("It's \"1\" &gt; 0", "It's \"1\" &gt; 0");
    check("&#13;&#10;\r\r\n", "&#xD;\n\n\n");
}

#[test]
fn an_empty_literal_is_a_literal() {
    check("", "");
    let entities = "<!DOCTYPE a [<!ENTITY w \"http://www.w3.org/\">\
                    <!ENTITY r \"&w;1999/02/22-rdf-syntax-ns&#35;\">]>";
    for (namespace, attribute) in [
        (format!("'{RDF}'"), "r:parseType=\"Literal\""),
        (format!("\"{RDF}\""), "\n r:parseType\n=\n'Literal'\n"),
        ("'&r;'".to_owned(), "r:parseType = 'Literal'"),
        (
            "\"&w;1999/02/22-rdf-syntax-ns#\"".to_owned(),
            "r:parseType='Liter&#97;l'",
        ),
        (
            "'http://e/'".to_owned(),
            "s:parseType='Literal' xmlns:s='&r;'",
        ),
    ] {
        for (begin, end) in [(">", "</e:p>"), ("/>", ""), (" />", "")] {
            let document = format!(
                "{entities}<rdf:RDF{RDF_DECLARED} xmlns:r={namespace} xmlns:e='http://e/'>\
                 <rdf:Description><e:p {attribute}{begin}{end}</rdf:Description></rdf:RDF>"
            );
            assert_eq!(literal(&document), "", "{document}");
        }
    }
}

#[test]
fn only_properties_with_the_attribute_of_the_rdf_namespace_are_xml_literals() {
    let document = |property: &str| {
        format!(
            "<rdf:RDF{RDF_DECLARED} xmlns:e='http://e/'><rdf:Description>{property}\
             </rdf:Description></rdf:RDF>"
        )
    };
    for property in [
        "<e:p rdf:datatype='&quot;'></e:p>",
        "<e:p e:parseType='Literal'/>",
        "<e:p xmlns:r='http://e/' r:parseType='Literal'/>",
        "<e:p>\t \t</e:p>",
        "<e:p rdf:parseType='Resource'><e:q> </e:q></e:p>",
        "<e:p rdf:parseType='Literal'> <e:q rdf:parseType='Literal'/></e:p>",
    ] {
        let document = document(property);
        let watch = Arc::new(XmlWatch::new());
        let mut read = String::new();
        let mut reader = XmlReader::new(document.as_bytes(), Arc::clone(&watch), None, None);
        std::io::Read::read_to_string(&mut reader, &mut read).expect("text");
        let marks = read.matches(&watch.marks().literal).count();
        let expected = usize::from(property.contains("p rdf:parseType='Literal'"));
        assert_eq!(marks, expected, "{property}");
        assert_eq!(
            read.replace(&watch.marks().literal, ""),
            document,
            "{property}"
        );
    }
}

#[test]
fn comments_and_processing_instructions_are_part_of_the_form() {
    check("<!---->", "<!---->");
    check("<!-- <b> & -x- \r\n-->", "<!-- <b> & -x- \n-->");
    check(
        "a<!--b-->c<?d?>e<?f  g & h?i ?>",
        "a<!--b-->c<?d?>e<?f g & h?i ?>",
    );
    check(
        "<a xmlns=''><!-- b --><?c d?><!--e--></a>",
        "<a><!-- b --><?c d?><!--e--></a>",
    );
    check("<![CDATA[<!-- a --><?b?>]]>", "&lt;!-- a --&gt;&lt;?b?&gt;");
}

#[test]
fn what_the_parser_reads_is_the_same_wherever_the_document_is_cut() {
    let document = format!(
        "<rdf:RDF{RDF_DECLARED} xmlns:e='http://e/'>\r\n<e:A e:b='/\r\n/'><!--a--><e:p \
         rdf:parseType='Literal'/><e:p rdf:parseType='Literal'>\r<!-- - --><?b ? c??>\
         <a b='\t'/><![CDATA[-->]]></e:p></e:A></rdf:RDF>"
    );
    /// Hands on two parts.
    struct Cut<'a>(&'a [u8], &'a [u8]);
    impl std::io::Read for Cut<'_> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buf)? {
                0 => self.1.read(buf),
                n => Ok(n),
            }
        }
    }
    let watch = Arc::new(XmlWatch::new());
    let read = |head: usize| {
        let (head, tail) = document.as_bytes().split_at(head);
        let mut text = String::new();
        let mut reader = XmlReader::new(Cut(head, tail), Arc::clone(&watch), None, None);
        std::io::Read::read_to_string(&mut reader, &mut text).expect("text");
        assert!(watch.is_closed());
        text
    };
    let whole = read(0);
    for cut in 1..document.len() {
        assert_eq!(read(cut), whole, "{cut}");
    }
    let marks = watch.marks();
    let (literal, comment, instruction) = (&marks.literal, &marks.comment, &marks.instruction);
    let expected = format!(
        "<rdf:RDF{RDF_DECLARED} xmlns:e='http://e/'>\n<e:A e:b='/ /'><!--a--><e:p \
         rdf:parseType='Literal'>{literal}</e:p><e:p rdf:parseType='Literal'>{literal}\n{} - {}\
         {}b ? c?{}<a b=' '/><![CDATA[-->]]></e:p></e:A></rdf:RDF>",
        comment.begin, comment.end, instruction.begin, instruction.end
    );
    assert_eq!(whole, expected);
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
        let text = format!("<a>{body}");
        assert_eq!(canonical(&text, &Marks::new()), None, "{text}");
    }
    // An entity in a namespace matters only where it is used.
    let text = "<a xmlns:e=\"&e;\"></a>";
    assert_eq!(canonical(text, &Marks::new()).as_deref(), Some("<a></a>"));
    assert_eq!(canonical("\u{feff}", &Marks::new()), None);
}

#[test]
fn a_literal_does_not_grow_without_bound() {
    let text = |namespace: usize, elements: usize| {
        let (namespace, elements) = ("n".repeat(namespace), "<e:b></e:b>".repeat(elements));
        format!("<a xmlns:e=\"{namespace}\"{RDF_DECLARED}>{elements}</a>")
    };
    let marks = Marks::new();
    assert!(canonical(&text(100, 1000), &marks).is_some());
    assert!(canonical(&text(1000, 5), &marks).is_some());
    assert_eq!(canonical(&text(1000, 1000), &marks), None);
    assert_eq!(canonical(&text(MAX_NAMESPACE_BYTES + 1, 1), &marks), None);
}

#[test]
fn the_canonical_form_is_its_own() {
    for content in [
        "<e:a rdf:b='' c=''><d>e &amp; f</d></e:a>",
        "<rdf:a xmlns='' g='h'/>",
    ] {
        let text = parsed(content);
        assert_eq!(parsed(&text), text);
    }
}
