//! Which format and which compression is that file in?

use crate::error::IngestError;
use std::fmt;

/// An RDF format that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// [N-Triples](https://www.w3.org/TR/n-triples/).
    NTriples,
    /// [N-Quads](https://www.w3.org/TR/n-quads/).
    NQuads,
    /// [Turtle](https://www.w3.org/TR/turtle/). Files that end in `.n3` are read as Turtle: the
    /// rules and formulas of Notation3 are refused as syntax errors.
    Turtle,
    /// [TriG](https://www.w3.org/TR/trig/).
    TriG,
    /// [RDF/XML](https://www.w3.org/TR/rdf-syntax-grammar/).
    RdfXml,
    /// [JSON-LD](https://www.w3.org/TR/json-ld/) without remote contexts.
    JsonLd,
}

impl Format {
    pub(crate) const ENDINGS: &'static str = ".nt, .ntriples, .nq, .nquads, .ttl, .turtle, .n3, \
                                              .trig, .rdf, .xml, .owl, .jsonld, .json";
    pub(crate) const NAMES: &'static str = "nt, nq, turtle, trig, rdfxml, jsonld";

    /// All formats, in the order of the documentation.
    pub const ALL: [Self; 6] = [
        Self::NTriples,
        Self::NQuads,
        Self::Turtle,
        Self::TriG,
        Self::RdfXml,
        Self::JsonLd,
    ];

    /// The format of files with this ending (without the dot, in any case).
    pub fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "nt" | "ntriples" => Self::NTriples,
            "nq" | "nquads" => Self::NQuads,
            "ttl" | "turtle" | "n3" => Self::Turtle,
            "trig" => Self::TriG,
            "rdf" | "xml" | "owl" => Self::RdfXml,
            "jsonld" | "json" => Self::JsonLd,
            _ => return None,
        })
    }

    /// The format a person or a media type calls by that name, in any case; parameters of a media
    /// type (`; charset=utf-8`) are left aside.
    ///
    /// # Errors
    /// [`IngestError::UnknownFormatName`], which lists the names.
    pub fn from_name(name: &str) -> Result<Self, IngestError> {
        let plain = name
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        Ok(match plain.as_str() {
            "nt" | "ntriples" | "n-triples" | "application/n-triples" | "text/plain" => {
                Self::NTriples
            }
            "nq" | "nquads" | "n-quads" | "application/n-quads" | "text/x-nquads" => Self::NQuads,
            "ttl" | "turtle" | "n3" | "text/turtle" | "application/x-turtle" | "text/n3" => {
                Self::Turtle
            }
            "trig" | "application/trig" | "application/x-trig" => Self::TriG,
            "rdf"
            | "xml"
            | "owl"
            | "rdfxml"
            | "rdf/xml"
            | "rdf-xml"
            | "application/rdf+xml"
            | "application/xml"
            | "text/xml" => Self::RdfXml,
            "jsonld" | "json-ld" | "json" | "application/ld+json" | "application/json" => {
                Self::JsonLd
            }
            _ => {
                return Err(IngestError::UnknownFormatName {
                    name: name.to_owned(),
                });
            }
        })
    }

    /// The short name, as `--format` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NTriples => "nt",
            Self::NQuads => "nq",
            Self::Turtle => "turtle",
            Self::TriG => "trig",
            Self::RdfXml => "rdfxml",
            Self::JsonLd => "jsonld",
        }
    }

    /// The registered media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::NTriples => "application/n-triples",
            Self::NQuads => "application/n-quads",
            Self::Turtle => "text/turtle",
            Self::TriG => "application/trig",
            Self::RdfXml => "application/rdf+xml",
            Self::JsonLd => "application/ld+json",
        }
    }

    /// Whether a document in this format may hold named graphs.
    pub fn has_named_graphs(self) -> bool {
        matches!(self, Self::NQuads | Self::TriG | Self::JsonLd)
    }

    /// Whether each line stands alone, so that a document can be cut at any line end.
    pub fn is_line_based(self) -> bool {
        matches!(self, Self::NTriples | Self::NQuads)
    }

    /// The format that a file's name tells, and the compression its last ending tells:
    /// `data.nt.gz` is N-Triples in gzip.
    pub fn from_file_name(name: &str) -> (Option<Self>, Compression) {
        let name = name.rsplit(['/', '\\']).next().unwrap_or(name);
        let Some((stem, ending)) = name.rsplit_once('.') else {
            return (None, Compression::None);
        };
        match Compression::from_extension(ending) {
            Some(compression) => {
                let inner = stem.rsplit_once('.').map(|(_, ending)| ending);
                (inner.and_then(Self::from_extension), compression)
            }
            None => (Self::from_extension(ending), Compression::None),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NTriples => "N-Triples",
            Self::NQuads => "N-Quads",
            Self::Turtle => "Turtle",
            Self::TriG => "TriG",
            Self::RdfXml => "RDF/XML",
            Self::JsonLd => "JSON-LD",
        })
    }
}

/// How a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, any number of members.
    Gzip,
    /// Zstandard, any number of frames.
    Zstd,
    /// bzip2, any number of streams.
    Bzip2,
}

impl Compression {
    /// How many first bytes [`Self::from_magic`] wants to see.
    pub(crate) const MAGIC_BYTES: usize = 10;

    /// The compression of files with this ending (without the dot, in any case).
    pub fn from_extension(extension: &str) -> Option<Self> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "gz" | "gzip" => Self::Gzip,
            "zst" | "zstd" => Self::Zstd,
            "bz2" | "bzip2" => Self::Bzip2,
            _ => return None,
        })
    }

    /// The compression that the first bytes of a file tell. None of the marks can begin an RDF
    /// text: gzip's and zstd's are no UTF-8, and bzip2's is taken with the binary mark of its
    /// first block, for `BZh1` alone could begin a Turtle prefix.
    pub fn from_magic(head: &[u8]) -> Self {
        const BLOCK: &[u8] = &[0x31, 0x41, 0x59, 0x26, 0x53, 0x59];
        const END_OF_STREAM: &[u8] = &[0x17, 0x72, 0x45, 0x38, 0x50, 0x90];
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            // A skippable frame in front of the first frame.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            [b'B', b'Z', b'h', b'1'..=b'9', mark @ ..]
                if mark.starts_with(BLOCK) || mark.starts_with(END_OF_STREAM) =>
            {
                Self::Bzip2
            }
            _ => Self::None,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "uncompressed",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_tell_format_and_compression() {
        for (name, format, compression) in [
            ("data.nt.gz", Some(Format::NTriples), Compression::Gzip),
            ("/a.b/x.NQ", Some(Format::NQuads), Compression::None),
            ("x.n3", Some(Format::Turtle), Compression::None),
            ("x.owl.bz2", Some(Format::RdfXml), Compression::Bzip2),
            ("x.json.zst", Some(Format::JsonLd), Compression::Zstd),
            ("x.gz", None, Compression::Gzip),
            ("dir.nt/file", None, Compression::None),
            ("README", None, Compression::None),
        ] {
            assert_eq!(
                Format::from_file_name(name),
                (format, compression),
                "{name}"
            );
        }
    }

    #[test]
    fn each_name_and_media_type_leads_back_to_its_format() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()).unwrap(), format);
            assert_eq!(Format::from_name(format.media_type()).unwrap(), format);
        }
        for (name, format) in [
            ("rdf/xml", Format::RdfXml),
            ("OWL", Format::RdfXml),
            ("text/turtle; charset=utf-8", Format::Turtle),
            ("ntriples", Format::NTriples),
            ("nquads", Format::NQuads),
        ] {
            assert_eq!(Format::from_name(name).unwrap(), format, "{name}");
        }
        assert!(
            Format::from_name("csv")
                .unwrap_err()
                .to_string()
                .contains("rdfxml")
        );
    }

    #[test]
    fn a_turtle_prefix_is_not_taken_for_bzip2() {
        assert_eq!(
            Compression::from_magic(b"BZh9:x a <y> ."),
            Compression::None
        );
        assert_eq!(Compression::from_magic(b"BZh91AY&SY"), Compression::Bzip2);
        assert_eq!(Compression::from_magic(b""), Compression::None);
    }
}
