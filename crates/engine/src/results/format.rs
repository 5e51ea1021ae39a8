//! Which formats are there, and what are they called?

use super::negotiate::Offer;

const ARROW_STREAM: &str = "application/vnd.apache.arrow.stream";
const PARQUET: &str = "application/vnd.apache.parquet";

/// Formats of a table of solutions (SELECT).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SolutionsFormat {
    /// SPARQL 1.1 Query Results JSON Format.
    Json,
    /// SPARQL Query Results XML Format.
    Xml,
    /// SPARQL 1.1 Query Results CSV: plain values, kinds and datatypes are lost.
    Csv,
    /// SPARQL 1.1 Query Results TSV: terms as in Turtle.
    Tsv,
    /// Aligned columns for people; long values are cut.
    Table,
    /// An Apache Arrow IPC stream: a struct column (kind, value, datatype, language) for each
    /// variable, null where it is unbound.
    Arrow,
    /// An Apache Parquet file with the same columns.
    Parquet,
}

impl SolutionsFormat {
    /// All formats, in order of preference.
    pub const ALL: [Self; 7] = [
        Self::Json,
        Self::Xml,
        Self::Csv,
        Self::Tsv,
        Self::Table,
        Self::Arrow,
        Self::Parquet,
    ];

    /// Media types this format is offered under, in order of preference.
    pub const OFFERS: &[Offer<Self>] = &[
        Offer::new("application/sparql-results+json", Self::Json),
        Offer::new("application/json", Self::Json),
        Offer::new("application/sparql-results+xml", Self::Xml),
        Offer::new("application/xml", Self::Xml),
        Offer::new("text/csv", Self::Csv),
        Offer::new("text/tab-separated-values", Self::Tsv),
        Offer::new("text/xml", Self::Xml),
        Offer::new("text/plain", Self::Table),
        Offer::new(ARROW_STREAM, Self::Arrow),
        Offer::new(PARQUET, Self::Parquet),
    ];

    /// The short name used on command lines and in `format=`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Xml => "xml",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Table => "table",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
        }
    }

    /// The format with this short name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The media type, without parameters.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/sparql-results+json",
            Self::Xml => "application/sparql-results+xml",
            Self::Csv => "text/csv",
            Self::Tsv => "text/tab-separated-values",
            Self::Table => "text/plain",
            Self::Arrow => ARROW_STREAM,
            Self::Parquet => PARQUET,
        }
    }
}

/// Formats of a truth value (ASK).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BooleanFormat {
    /// SPARQL 1.1 Query Results JSON Format.
    Json,
    /// SPARQL Query Results XML Format.
    Xml,
    /// `true` or `false`, under `text/boolean` or `text/plain`.
    Text,
    /// `true` or `false`, for those who ask for CSV.
    Csv,
    /// `true` or `false`, for those who ask for TSV.
    Tsv,
}

impl BooleanFormat {
    /// All formats, in order of preference.
    pub const ALL: [Self; 5] = [Self::Json, Self::Xml, Self::Text, Self::Csv, Self::Tsv];

    /// Media types this format is offered under, in order of preference.
    pub const OFFERS: &[Offer<Self>] = &[
        Offer::new("application/sparql-results+json", Self::Json),
        Offer::new("application/json", Self::Json),
        Offer::new("application/sparql-results+xml", Self::Xml),
        Offer::new("application/xml", Self::Xml),
        Offer::new("text/boolean", Self::Text),
        Offer::new("text/plain", Self::Text),
        Offer::new("text/csv", Self::Csv),
        Offer::new("text/tab-separated-values", Self::Tsv),
        Offer::new("text/xml", Self::Xml),
    ];

    /// The short name used on command lines and in `format=`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Xml => "xml",
            Self::Text => "text",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
        }
    }

    /// The format with this short name; `table` is text too.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "table" {
            return Some(Self::Text);
        }
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The media type, without parameters.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/sparql-results+json",
            Self::Xml => "application/sparql-results+xml",
            Self::Text => "text/boolean",
            Self::Csv => "text/csv",
            Self::Tsv => "text/tab-separated-values",
        }
    }
}

/// Formats of a graph (CONSTRUCT and DESCRIBE) or of a whole dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GraphFormat {
    /// Turtle.
    Turtle,
    /// N-Triples.
    NTriples,
    /// RDF/XML.
    RdfXml,
    /// JSON-LD.
    JsonLd,
    /// TriG.
    TriG,
    /// N-Quads.
    NQuads,
    /// Notation3, of which only what is Turtle too is written.
    N3,
    /// An Apache Arrow IPC stream with the columns subject, predicate, object and graph.
    Arrow,
    /// An Apache Parquet file with the same columns.
    Parquet,
}

impl GraphFormat {
    /// All formats, in order of preference.
    pub const ALL: [Self; 9] = [
        Self::Turtle,
        Self::NTriples,
        Self::RdfXml,
        Self::JsonLd,
        Self::TriG,
        Self::NQuads,
        Self::N3,
        Self::Arrow,
        Self::Parquet,
    ];

    /// Media types this format is offered under, in order of preference.
    pub const OFFERS: &[Offer<Self>] = &[
        Offer::new("text/turtle", Self::Turtle),
        Offer::new("application/n-triples", Self::NTriples),
        Offer::new("application/rdf+xml", Self::RdfXml),
        Offer::new("application/ld+json", Self::JsonLd),
        Offer::new("application/trig", Self::TriG),
        Offer::new("application/n-quads", Self::NQuads),
        Offer::new("application/x-turtle", Self::Turtle),
        Offer::new("application/xml", Self::RdfXml),
        Offer::new("application/json", Self::JsonLd),
        Offer::new("text/plain", Self::NTriples),
        Offer::new("text/xml", Self::RdfXml),
        Offer::new("text/n3", Self::N3),
        Offer::new(ARROW_STREAM, Self::Arrow),
        Offer::new(PARQUET, Self::Parquet),
    ];

    /// The media types of formats that have named graphs, in order of preference for a dataset.
    pub const DATASET_OFFERS: &[Offer<Self>] = &[
        Offer::new("application/trig", Self::TriG),
        Offer::new("application/n-quads", Self::NQuads),
        Offer::new("application/ld+json", Self::JsonLd),
        Offer::new("application/json", Self::JsonLd),
        Offer::new(ARROW_STREAM, Self::Arrow),
        Offer::new(PARQUET, Self::Parquet),
    ];

    /// Whether quads outside the default graph can be written.
    #[must_use]
    pub const fn has_named_graphs(self) -> bool {
        match self {
            Self::TriG | Self::NQuads | Self::JsonLd | Self::Arrow | Self::Parquet => true,
            Self::Turtle | Self::NTriples | Self::RdfXml | Self::N3 => false,
        }
    }

    /// The short name used on command lines and in `format=`; also the usual file extension.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Turtle => "ttl",
            Self::NTriples => "nt",
            Self::RdfXml => "rdf",
            Self::JsonLd => "jsonld",
            Self::TriG => "trig",
            Self::NQuads => "nq",
            Self::N3 => "n3",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
        }
    }

    /// The format with this short name; `json` means JSON-LD and `xml` RDF/XML here.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "json" | "json-ld" => Some(Self::JsonLd),
            "xml" | "rdf+xml" => Some(Self::RdfXml),
            "turtle" => Some(Self::Turtle),
            _ => Self::ALL.into_iter().find(|format| format.name() == name),
        }
    }

    /// The media type, without parameters.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Turtle => "text/turtle",
            Self::NTriples => "application/n-triples",
            Self::RdfXml => "application/rdf+xml",
            Self::JsonLd => "application/ld+json",
            Self::TriG => "application/trig",
            Self::NQuads => "application/n-quads",
            Self::N3 => "text/n3",
            Self::Arrow => ARROW_STREAM,
            Self::Parquet => PARQUET,
        }
    }
}
