//! Which etcd keeps who leads the cluster of a first look? One that is started for it, where there is one on the path.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

/// Ends etcd when standard input does, as it does when this process ends, whatever ends that.
const WITH_INPUT: &str = "etcd \"$@\" & cat; kill $!; wait";

/// An etcd that ends when this is dropped.
pub(super) struct DevEtcd {
    process: Child,
    url: String,
}

impl DevEtcd {
    /// Starts one that has its data in a folder; none where there is no etcd, which is said.
    ///
    /// # Errors
    /// No free ports, and a process that cannot be started.
    pub(super) fn start(folder: &Path) -> anyhow::Result<Option<Self>> {
        match Command::new("etcd").arg("--version").output() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                note!(
                    "there is no etcd on the path: the first node takes all writes, and while it is away there are \
                     none; with one (Debian's package etcd-server), another node takes its place"
                );
                return Ok(None);
            }
            Err(error) => return Err(error).context("etcd"),
            Ok(_) => {}
        }
        let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        // Held until both are chosen, so that they differ.
        let (clients, peers) = (free()?, free()?);
        let (url, peer) = (at(&clients)?, at(&peers)?);
        drop((clients, peers));
        let process = Command::new("sh")
            .args(["-c", WITH_INPUT, "sh", "--data-dir"])
            .arg(folder.join("etcd"))
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
            // Ctrl-C at a terminal is for this process, which ends it after the nodes.
            .process_group(0)
            .spawn()
            .context("cannot start etcd")?;
        Ok(Some(Self { process, url }))
    }

    /// Where it answers.
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

fn at(listener: &TcpListener) -> anyhow::Result<String> {
    Ok(format!("http://{}", listener.local_addr()?))
}

impl Drop for DevEtcd {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // Its folder is removed after this.
        let _ended = self.process.wait();
    }
}
