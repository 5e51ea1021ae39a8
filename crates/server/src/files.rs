//! How many connections can the operating system keep open for this process?

#[cfg(unix)]
use crate::connections::SPARE;

/// Files that are open beside connections, with room to spare.
#[cfg(unix)]
const OTHER_FILES: u64 = 128 + SPARE as u64;

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
