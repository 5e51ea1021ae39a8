//! How does a server answer those who ask it through its store's folder?
//!
//! Whoever connects owns the store or is root, yet may be a broken program: connections, the length
//! of a request and the time it takes to arrive are bounded, and nothing a client does ends the
//! server.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jindou_engine::{Database, EngineError};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixSocket, UnixStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::Merged;
use super::address::{SOCKET, with_short_path};
use super::message::{MAX_LINE_BYTES, Reply, Request};

/// Most connections at once; others wait. Backups and merges are made one after another
/// anyway.
const MAX_CONNECTIONS: usize = 8;

/// Longest time a request may take to arrive, and a reply to be taken.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time until the next attempt where connections cannot be accepted, as for lack of files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Makes the socket of the store that `database` has open. Where that fails there is none, and a
/// line on standard error says why: serving does not depend on it. A backup or merge that is asked
/// for may `wait` for so long until it begins.
pub(crate) fn listen(store: &Path, database: &Database, wait: Duration) -> Option<Control> {
    match Control::new(store, database, wait) {
        Ok(control) => Some(control),
        Err(error) => {
            let path = store.join(SOCKET);
            note!(
                "warning: {}: {error}; `jindou backup` and `jindou compact` have to wait \
                 until the store is no longer served",
                path.display()
            );
            None
        }
    }
}

/// The socket of a store that is served.
pub(crate) struct Control {
    listener: UnixListener,
    file: SocketFile,
    wait: Duration,
}

/// The socket's file, which goes with this.
struct SocketFile {
    path: PathBuf,
    /// Keeps the store locked for as long as the file is there: the next server's is left alone.
    database: Database,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // What stays is replaced by the next server.
        let _ = fs::remove_file(&self.path);
    }
}

impl Control {
    /// Makes the socket in the folder of the store that `database` has open; inside a runtime.
    ///
    /// # Errors
    /// A name that is taken by something else, and what the operating system says.
    fn new(store: &Path, database: &Database, wait: Duration) -> io::Result<Self> {
        let path = store.join(SOCKET);
        remove_stale(&path)?;
        let socket = UnixSocket::new_stream()?;
        with_short_path(store, |path| socket.bind(path))?;
        let file = SocketFile {
            path,
            database: database.clone(),
        };
        // Nobody can connect before the socket listens.
        fs::set_permissions(&file.path, Permissions::from_mode(0o600))?;
        let backlog = u32::try_from(MAX_CONNECTIONS).expect("it is small");
        let listener = socket.listen(backlog)?;
        Ok(Self {
            listener,
            file,
            wait,
        })
    }

    /// Answers until the sender of `stopping` is gone; then ends what is under way.
    pub(crate) async fn serve(self, mut stopping: watch::Receiver<()>) {
        let Self {
            listener,
            file,
            wait,
        } = self;
        let mut clients = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                _ = stopping.changed() => break,
                Some(_) = clients.join_next() => continue,
                accepted = listener.accept(), if clients.len() < MAX_CONNECTIONS => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let database = file.database.clone();
                    clients.spawn(converse(stream, (database, wait), stopping.clone()));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
        drop(listener);
        drop(file);
        while clients.join_next().await.is_some() {}
    }
}

/// Removes the socket of a process that was killed. The caller has the store locked.
fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => fs::remove_file(path),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "something else has this name",
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Reads a request and replies. A client that went away misses the reply only.
async fn converse(
    mut stream: UnixStream,
    (database, wait): (Database, Duration),
    mut stopping: watch::Receiver<()>,
) {
    let line = tokio::select! {
        line = read_line(&mut stream, PATIENCE) => line,
        _ = stopping.changed() => return,
    };
    let reply = match line {
        Ok(None) => return,
        Ok(Some(line)) => answer(&line, database, wait).await,
        Err(error) => Reply::Error(format!("the request cannot be read: {error}")),
    };
    let mut line = serde_json::to_vec(&reply).expect("numbers and text can be written");
    line.push(b'\n');
    let _ = tokio::time::timeout(PATIENCE, stream.write_all(&line)).await;
}

/// A line; `None` of a client that went away before its end.
async fn read_line(stream: &mut UnixStream, patience: Duration) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut limited = BufReader::new(stream.take(MAX_LINE_BYTES));
    tokio::time::timeout(patience, limited.read_until(b'\n', &mut line)).await??;
    // Part of a line may say something else than the whole.
    match line.last() {
        Some(b'\n') => Ok(Some(line)),
        _ if line.len() as u64 == MAX_LINE_BYTES => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("it is longer than {MAX_LINE_BYTES} bytes"),
        )),
        _ => Ok(None),
    }
}

async fn answer(line: &[u8], database: Database, wait: Duration) -> Reply {
    let request = match serde_json::from_slice(line) {
        Ok(Request::Backup { to }) if !to.is_absolute() => {
            return Reply::Error(format!("{}: give an absolute path", to.display()));
        }
        Ok(request) => request,
        Err(error) => return Reply::Error(format!("the request is not understood: {error}")),
    };
    let (sender, done) = oneshot::channel();
    let work = move || {
        // Nobody waits if the server ends.
        let _ = sender.send(execute(request, &database, wait));
    };
    let thread = std::thread::Builder::new().name("control".to_owned());
    if let Err(error) = thread.spawn(work) {
        return Reply::Error(format!("no thread can be started: {error}"));
    }
    match done.await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => Reply::Error(error.to_string()),
        Err(_) => Reply::Error("an internal error ended what was asked for".to_owned()),
    }
}

fn execute(request: Request, database: &Database, wait: Duration) -> Result<Reply, EngineError> {
    Ok(match request {
        Request::Backup { to } => Reply::Backup(database.backup_within(&to, Some(wait))?.into()),
        Request::Compact { renumber } => {
            Reply::Compact(Merged::of(database, renumber, Some(wait))?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_says_nothing_is_let_go() {
        let (mut server, _silent) = UnixStream::pair().unwrap();
        let error = read_line(&mut server, Duration::ZERO).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_line_counts_only_whole() {
        let (mut server, mut client) = UnixStream::pair().unwrap();
        client.write_all(b"{}\n{\"back").await.unwrap();
        drop(client);
        let line = read_line(&mut server, PATIENCE).await.unwrap();
        assert_eq!(line.as_deref(), Some(&b"{}\n"[..]));
        let (mut server, mut client) = UnixStream::pair().unwrap();
        client.write_all(b"{\"back").await.unwrap();
        drop(client);
        assert_eq!(read_line(&mut server, PATIENCE).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_backup_goes_to_an_absolute_path_only() {
        let request = br#"{"backup": {"to": "here"}}"#;
        let reply = answer(request, Database::new(), PATIENCE).await;
        assert!(matches!(reply, Reply::Error(text) if text.contains("absolute")));
    }

    #[tokio::test]
    async fn changes_are_merged_though_the_client_did_not_wait() {
        let database = Database::new();
        let update = "INSERT DATA { <http://e/a> <http://e/p> 1 }";
        database.update(update).unwrap();
        assert_eq!(database.statistics().changes, 1);
        let (server, mut client) = UnixStream::pair().unwrap();
        client.write_all(b"{\"compact\": {}}\n").await.unwrap();
        drop(client);
        let (_running, stopping) = watch::channel(());
        converse(server, (database.clone(), PATIENCE), stopping).await;
        assert_eq!(database.statistics().changes, 0);
    }

    #[tokio::test]
    async fn a_backup_is_made_though_the_client_did_not_wait() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("copy");
        let (server, mut client) = UnixStream::pair().unwrap();
        let request = serde_json::json!({ "backup": { "to": to } });
        let line = format!("{request}\n");
        client.write_all(line.as_bytes()).await.unwrap();
        drop(client);
        let (_running, stopping) = watch::channel(());
        converse(server, (Database::new(), PATIENCE), stopping).await;
        Database::verify(&to).unwrap();
    }
}
