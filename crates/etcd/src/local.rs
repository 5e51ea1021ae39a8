//! How does a program get an etcd of its own? It starts the one that is on the path, which ends with it.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Ends etcd when standard input does, as it does when this process ends, whatever ends that.
const WITH_INPUT: &str = "etcd \"$@\" & cat; kill $!; wait";

/// An etcd of one member on loopback. It ends when this is dropped, or this process ends.
#[derive(Debug)]
pub struct LocalEtcd {
    process: Child,
    url: String,
}

impl LocalEtcd {
    /// Starts one that has its data in a folder, which stays; none where there is no etcd on the path. That it answers
    /// is not waited for.
    ///
    /// # Errors
    /// No free ports, and a process that cannot be started.
    pub fn start(folder: &Path) -> io::Result<Option<Self>> {
        match Command::new("etcd").arg("--version").output() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        // Held until both are chosen, so that they differ.
        let (clients, peers) = (free()?, free()?);
        let (url, peer) = (at(&clients)?, at(&peers)?);
        drop((clients, peers));
        let process = Command::new("sh")
            .args(["-c", WITH_INPUT, "sh", "--data-dir"])
            .arg(folder)
            .args([
                "--listen-client-urls",
                &url,
                "--advertise-client-urls",
                &url,
            ])
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ])
            .args(["--initial-cluster", &format!("default={peer}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C at a terminal is for this process, which ends it after whoever uses it.
            .process_group(0)
            .spawn()?;
        Ok(Some(Self { process, url }))
    }

    /// Where it answers.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn at(listener: &TcpListener) -> io::Result<String> {
    Ok(format!("http://{}", listener.local_addr()?))
}

impl Drop for LocalEtcd {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // Its folder may be removed after this.
        let _ended = self.process.wait();
    }
}
