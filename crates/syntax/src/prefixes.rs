//! What do well-known prefixes usually stand for?

/// Prefixes and their IRIs.
pub(crate) const PREFIXES: &[(&str, &str)] = &[
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dct", "http://purl.org/dc/terms/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("schema", "http://schema.org/"),
    ("wd", "http://www.wikidata.org/entity/"),
    ("wdt", "http://www.wikidata.org/prop/direct/"),
    ("wds", "http://www.wikidata.org/entity/statement/"),
    ("wdv", "http://www.wikidata.org/value/"),
    ("wdno", "http://www.wikidata.org/prop/novalue/"),
    ("wikibase", "http://wikiba.se/ontology#"),
    ("p", "http://www.wikidata.org/prop/"),
    ("ps", "http://www.wikidata.org/prop/statement/"),
    ("psv", "http://www.wikidata.org/prop/statement/value/"),
    ("pq", "http://www.wikidata.org/prop/qualifier/"),
    ("pr", "http://www.wikidata.org/prop/reference/"),
    ("bd", "http://www.bigdata.com/rdf#"),
    ("dbo", "http://dbpedia.org/ontology/"),
    ("dbr", "http://dbpedia.org/resource/"),
    ("dbp", "http://dbpedia.org/property/"),
    ("dbc", "http://dbpedia.org/resource/Category:"),
    ("geo", "http://www.opengis.net/ont/geosparql#"),
    ("geof", "http://www.opengis.net/def/function/geosparql/"),
    ("sf", "http://www.opengis.net/ont/sf#"),
    ("wgs", "http://www.w3.org/2003/01/geo/wgs84_pos#"),
    ("wgs84", "http://www.w3.org/2003/01/geo/wgs84_pos#"),
    ("gn", "http://www.geonames.org/ontology#"),
    ("prov", "http://www.w3.org/ns/prov#"),
    ("void", "http://rdfs.org/ns/void#"),
    ("dcat", "http://www.w3.org/ns/dcat#"),
    ("org", "http://www.w3.org/ns/org#"),
    ("qb", "http://purl.org/linked-data/cube#"),
    ("sh", "http://www.w3.org/ns/shacl#"),
    ("sosa", "http://www.w3.org/ns/sosa/"),
    ("ssn", "http://www.w3.org/ns/ssn/"),
    ("time", "http://www.w3.org/2006/time#"),
    ("vcard", "http://www.w3.org/2006/vcard/ns#"),
    ("sd", "http://www.w3.org/ns/sparql-service-description#"),
    ("sioc", "http://rdfs.org/sioc/ns#"),
    ("doap", "http://usefulinc.com/ns/doap#"),
    ("cc", "http://creativecommons.org/ns#"),
    ("fn", "http://www.w3.org/2005/xpath-functions#"),
    ("math", "http://www.w3.org/2005/xpath-functions/math#"),
    ("afn", "http://jena.apache.org/ARQ/function#"),
    ("ub", "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"),
    ("obo", "http://purl.obolibrary.org/obo/"),
    ("up", "http://purl.uniprot.org/core/"),
    ("bibo", "http://purl.org/ontology/bibo/"),
    ("as", "https://www.w3.org/ns/activitystreams#"),
    ("saref", "https://saref.etsi.org/core/"),
];

#[cfg(test)]
mod tests {
    use super::PREFIXES;

    #[test]
    fn prefixes_are_there_once() {
        let mut names: Vec<&str> = PREFIXES.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PREFIXES.len());
        assert!(names.len() >= 50);
    }
}
