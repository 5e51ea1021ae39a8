//! What do files of settings say, and how many connections can the operating system keep open beside the
//! files of this process?

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

#[cfg(unix)]
use crate::connections::SPARE;

/// Files that are open beside connections, with room to spare.
#[cfg(unix)]
const OTHER_FILES: u64 = 128 + SPARE as u64;

/// Reads a file that has no more than so many bytes.
///
/// # Errors
/// What the operating system says, and a file that is larger.
pub fn read_bounded(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= most_bytes {
        true => Ok(bytes),
        false => Err(io::Error::other(format!(
            "more than {most_bytes} bytes, the most that it may have"
        ))),
    }
}

/// Raises the process's limit of open files as far as the system allows, and tells how many
/// connections fit in it: at least one. For programs that serve; it is the whole process's limit.
#[must_use]
pub fn room_for_connections() -> usize {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let before = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: before.maximum,
            maximum: before.maximum,
        };
        let current = match setrlimit(Resource::Nofile, raised) {
            Ok(()) => before.maximum,
            Err(error) => {
                tracing::debug!(%error, "the limit of open files stays");
                before.current
            }
        };
        // None is no limit.
        current.map_or(usize::MAX, |files| {
            usize::try_from(files.saturating_sub(OTHER_FILES))
                .map_or(usize::MAX, |room| room.max(1))
        })
    }
    #[cfg(not(unix))]
    usize::MAX
}
