//! The continuous queries of LSBench as the Wukong+S paper uses them, with windows of a second that
//! slide by a tenth; C4 to C6 count what L4 to L6 find.

use std::fmt::Write as _;

use jindou_datagen::lsbench::{STORED_GRAPH_IRI, Stream};

/// A continuous query: its name, what it reads, and its pattern.
pub(super) struct Query {
    pub(super) name: &'static str,
    pub(super) windows: &'static [Stream],
    is_joined_with_stored: bool,
    select: &'static str,
    /// `USER` and `PERSON` stand for where it starts.
    pattern: &'static str,
    /// It starts at one user, so that there may be many of it.
    pub(super) is_selective: bool,
}

/// Two posts of a user that share a tag.
const SHARED_TAGS: &str = "?one sib:hashtag ?tag . ?user sioc:creator_of ?one . \
    ?user sioc:creator_of ?other . ?other sib:hashtag ?tag . FILTER(?one != ?other)";
/// Photos that a friend of somebody on them likes.
const LIKED_PHOTOS: &str =
    "?photo sib:usertag ?one . ?one foaf:knows ?other . ?other sib:like ?photo .";
/// Posts of channels that a friend of a subscriber likes.
const LIKED_POSTS: &str = "?channel sioc:container_of ?post . ?user sioc:subscriber_of ?channel . \
    ?user foaf:knows ?friend . ?friend sib:like ?post .";

pub(super) const QUERIES: [Query; 9] = [
    Query {
        name: "L1",
        windows: &[Stream::Post, Stream::Gps],
        is_joined_with_stored: false,
        select: "?p ?o",
        pattern: "USER ?p ?o .",
        is_selective: true,
    },
    Query {
        name: "L2",
        windows: &[Stream::Post],
        is_joined_with_stored: true,
        select: "?post",
        pattern: "?user sioc:account_of PERSON . ?user sioc:creator_of ?post .",
        is_selective: true,
    },
    Query {
        name: "L3",
        windows: &[Stream::Post],
        is_joined_with_stored: true,
        select: "?friend ?post",
        pattern: "?user sioc:account_of PERSON . ?user foaf:knows ?friend . \
                  ?friend sioc:creator_of ?post .",
        is_selective: true,
    },
    Query {
        name: "L4",
        windows: &[Stream::Post],
        is_joined_with_stored: false,
        select: "?one ?other ?tag",
        pattern: SHARED_TAGS,
        is_selective: false,
    },
    Query {
        name: "L5",
        windows: &[Stream::Photo, Stream::PhotoLike],
        is_joined_with_stored: true,
        select: "?one ?other ?photo",
        pattern: LIKED_PHOTOS,
        is_selective: false,
    },
    Query {
        name: "L6",
        windows: &[Stream::Post, Stream::PostLike],
        is_joined_with_stored: true,
        select: "?user ?friend ?post ?channel",
        pattern: LIKED_POSTS,
        is_selective: false,
    },
    Query {
        name: "C4",
        windows: &[Stream::Post],
        is_joined_with_stored: false,
        select: "(COUNT(*) AS ?count)",
        pattern: SHARED_TAGS,
        is_selective: false,
    },
    Query {
        name: "C5",
        windows: &[Stream::Photo, Stream::PhotoLike],
        is_joined_with_stored: true,
        select: "(COUNT(*) AS ?count)",
        pattern: LIKED_PHOTOS,
        is_selective: false,
    },
    Query {
        name: "C6",
        windows: &[Stream::Post, Stream::PostLike],
        is_joined_with_stored: true,
        select: "(COUNT(*) AS ?count)",
        pattern: LIKED_POSTS,
        is_selective: false,
    },
];

impl Query {
    /// The one of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        QUERIES.iter().find(|query| query.name == name)
    }

    /// The stream whose batch completes its windows, where those of all are completed in the order of
    /// [`Stream::ALL`].
    pub(super) fn last_stream(&self) -> Stream {
        let last = self.windows.iter().max();
        *last.expect("a query reads a stream")
    }

    /// Its text; a selective one starts at this user.
    pub(super) fn text(&self, range_ms: u64, step_ms: u64, user: u32) -> String {
        let mut text = format!(
            "PREFIX sib: <http://www.ins.cwi.nl/sib/vocabulary/> \
             PREFIX sioc: <http://rdfs.org/sioc/ns#> \
             PREFIX foaf: <http://xmlns.com/foaf/0.1/> SELECT {} ",
            self.select
        );
        for stream in self.windows {
            let window = format!("[RANGE {range_ms}ms STEP {step_ms}ms]");
            let _ = write!(text, "FROM STREAM <{}> {window} ", stream.iri());
        }
        if self.is_joined_with_stored {
            let _ = write!(text, "FROM <{STORED_GRAPH_IRI}> ");
        }
        let user_iri = format!("<http://www.ins.cwi.nl/sib/user/u{user}>");
        let person = format!("<http://www.ins.cwi.nl/sib/person/p{user}>");
        let pattern = self
            .pattern
            .replace("USER", &user_iri)
            .replace("PERSON", &person);
        let _ = write!(text, "WHERE {{ {pattern} }}");
        text
    }
}
