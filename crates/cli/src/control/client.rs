//! How is the server of a store asked for a backup or a merge?

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{anyhow, bail};

use super::address::{SOCKET, with_short_path};
use super::message::{MAX_LINE_BYTES, Reply, Request};
use super::{Made, Merged};

/// Has the server that has the store open make a backup, and waits for it.
///
/// # Errors
/// A process that cannot be asked, and what keeps the server from making the backup.
pub(crate) fn backup(store: &Path, to: &Path) -> anyhow::Result<Made> {
    // The server has a current folder of its own.
    let to = std::path::absolute(to)?;
    let place = to.display();
    match ask(store, &Request::Backup { to: to.clone() }, "a backup")? {
        Ok(Reply::Backup(made)) => Ok(made),
        Ok(other) => bail!(unexpected(&other)),
        Err(error) => bail!(
            "the server was gone before it said what became of the backup ({error}); {place} is \
             there only if it is whole"
        ),
    }
}

/// Has the server that has the store open merge all changes, and waits for that. The server does
/// so, too, if nobody waits.
///
/// # Errors
/// A process that cannot be asked, and what keeps the server from merging.
pub(crate) fn compact(store: &Path, renumber: bool) -> anyhow::Result<Merged> {
    match ask(store, &Request::Compact { renumber }, "a merge")? {
        Ok(Reply::Compact(merged)) => Ok(merged),
        Ok(other) => bail!(unexpected(&other)),
        Err(error) => bail!(
            "the server was gone before it said what became of the merge ({error}); the store is \
             as it was or merged"
        ),
    }
}

/// What a server replied, or why it did not once it was asked.
///
/// # Errors
/// A process that cannot be asked, and what the server refused.
fn ask(store: &Path, request: &Request, what: &str) -> anyhow::Result<Result<Reply, io::Error>> {
    let request = serde_json::to_string(request)
        .map_err(|_| anyhow!("{}: give names in UTF-8", store.display()))?;
    let stream = with_short_path(store, |path| UnixStream::connect(path))
        .map_err(|e| no_server(store, what, &e))?;
    let reply = exchange(stream, &request).and_then(|reply| Ok(serde_json::from_str(&reply)?));
    match reply {
        Ok(Reply::Error(error)) => bail!(error),
        // Told as text, since a pipe that breaks here is not standard output's, whose reader wants
        // no more.
        reply => Ok(reply),
    }
}

fn unexpected(reply: &Reply) -> String {
    format!("the server replied to another request: {reply:?}")
}

/// Sends a line, and waits for another.
fn exchange(mut stream: UnixStream, request: &str) -> io::Result<String> {
    stream.write_all(format!("{request}\n").as_bytes())?;
    let mut reply = String::new();
    BufReader::new(stream.take(MAX_LINE_BYTES)).read_line(&mut reply)?;
    match reply.is_empty() {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(reply),
    }
}

fn no_server(store: &Path, what: &str, error: &io::Error) -> anyhow::Error {
    let advice = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            "a server does it once it has started; wait for any other command, or end it"
        }
        io::ErrorKind::PermissionDenied => "run this as the user who runs the server",
        _ => "end the process first",
    };
    anyhow!(
        "{}: another process is using this store and cannot be asked for {what} ({}: {error}); \
         {advice}",
        store.display(),
        store.join(SOCKET).display()
    )
}
