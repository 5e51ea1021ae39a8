//! What is said over the socket?
//!
//! A request is one line of JSON, `{"backup": {"to": "/absolute/path"}}` or `{"compact": {}}`
//! (`{"compact": {"renumber": true}}`), and
//! so is the reply: `{"backup": {"quads": 4, "bytes": 7000, "is_linked": true}}`,
//! `{"compact": {"had_changes": true, "changes": 1, "quads": 4}}` or `{"error": "..."}`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Made, Merged};

/// Longest line: several times the longest path that a system takes, all of it escaped.
pub(super) const MAX_LINE_BYTES: u64 = 64 << 10;

/// What can be asked for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Request {
    /// A backup in a folder, by its absolute path.
    Backup { to: PathBuf },
    /// A merge of all changes into the base, or the whole base numbered anew.
    Compact {
        #[serde(default)]
        renumber: bool,
    },
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reply {
    Backup(Made),
    Compact(Merged),
    Error(String),
}
