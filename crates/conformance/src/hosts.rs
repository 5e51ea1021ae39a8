//! How are there several hosts on one machine?
//!
//! Each is a network namespace with an address of its own, on one bridge: its processes see nothing of the others but
//! what goes over the network. They need root, and `ip`.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// So many networks of one process may be there at a time.
const NETWORKS: u32 = 5;

/// Network namespaces on a bridge; they go when this does.
pub struct Hosts {
    count: usize,
    /// The first letters of their names, and of the bridge's.
    prefix: String,
    /// The first three numbers of their addresses.
    network: String,
}

impl Hosts {
    /// So many hosts.
    ///
    /// # Errors
    /// Why this process may not make them.
    pub fn new(count: usize) -> Result<Self, String> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let pid = std::process::id();
        let number = MADE.fetch_add(1, Ordering::Relaxed) % NETWORKS;
        let (above, below) = (pid / 50 % 100, pid % 50 * NETWORKS + number);
        let hosts = Self {
            count,
            prefix: format!("jc{pid}n{number}"),
            network: format!("10.{}.{below}", 28 + above),
        };
        let Self {
            prefix, network, ..
        } = &hosts;
        let bridge = format!("{prefix}b");
        let mut commands = vec![
            format!("link add {bridge} type bridge"),
            format!("addr add {network}.254/24 dev {bridge}"),
            format!("link set {bridge} up"),
        ];
        for host in 0..count {
            let (space, end) = (hosts.space(host), hosts.end(host));
            commands.extend([
                format!("netns add {space}"),
                format!("link add {end} type veth peer name eth0 netns {space}"),
                format!("link set {end} master {bridge} up"),
                format!("-n {space} addr add {}/24 dev eth0", hosts.address(host)),
                format!("-n {space} link set eth0 up"),
                format!("-n {space} link set lo up"),
            ]);
        }
        for command in commands {
            ip(&command).map_err(|why| format!("ip {command}: {why}"))?;
        }
        Ok(hosts)
    }

    /// The address of a host.
    #[must_use]
    pub fn address(&self, host: usize) -> String {
        format!("{}.{}", self.network, host + 1)
    }

    /// A command that runs another one at a host: the arguments that follow.
    #[must_use]
    pub fn command(&self, host: usize) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.space(host)]);
        command
    }

    fn space(&self, host: usize) -> String {
        format!("{}h{host}", self.prefix)
    }

    /// The bridge's end of a host's cable.
    fn end(&self, host: usize) -> String {
        format!("{}v{host}", self.prefix)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        // What was not made is not there to be removed.
        for host in 0..self.count {
            let _gone = ip(&format!("link del {}", self.end(host)));
            let _gone = ip(&format!("netns del {}", self.space(host)));
        }
        let _gone = ip(&format!("link del {}b", self.prefix));
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip")
        .args(arguments.split_whitespace())
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
