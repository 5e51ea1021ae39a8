//! How is the server of a store asked for a backup?

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{anyhow, bail};

use super::Made;
use super::address::{SOCKET, with_short_path};
use super::message::{MAX_LINE_BYTES, Reply, Request};

/// Has the server that has the store open make a backup, and waits for it.
///
/// # Errors
/// A process that cannot be asked, and what keeps the server from making the backup.
pub(crate) fn backup(store: &Path, to: &Path) -> anyhow::Result<Made> {
    // The server has a current folder of its own.
    let to = std::path::absolute(to)?;
    let request = serde_json::to_string(&Request::Backup { to: to.clone() })
        .map_err(|_| anyhow!("{}: give a name in UTF-8", to.display()))?;
    let stream = with_short_path(store, |path| UnixStream::connect(path))
        .map_err(|e| no_server(store, &e))?;
    // As text, since a pipe that breaks here is not standard output's, whose reader wants no more.
    let reply = exchange(stream, &request)
        .and_then(|reply| Ok(serde_json::from_str(&reply)?))
        .map_err(|error| {
            anyhow!(
                "the server was gone before it said what became of the backup ({error}); {} is \
                 there only if it is whole",
                to.display()
            )
        })?;
    match reply {
        Reply::Backup(made) => Ok(made),
        Reply::Error(error) => bail!(error),
    }
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

fn no_server(store: &Path, error: &io::Error) -> anyhow::Error {
    let advice = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            "a server makes the backup once it has started; wait for any other command, or end it"
        }
        io::ErrorKind::PermissionDenied => "run this as the user who runs the server",
        _ => "end the process first",
    };
    anyhow!(
        "{}: another process is using this store and cannot be asked for a backup ({}: {error}); \
         {advice}",
        store.display(),
        store.join(SOCKET).display()
    )
}
