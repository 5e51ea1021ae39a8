//! How is an etcd of one member started for a test?

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use ::base64::Engine as _;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use tempfile::TempDir;

/// How long anything may take that is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(10);
/// How often other ports are tried, as another process may be faster.
const MOST_STARTS: usize = 5;

/// What it writes, in its folder, and what it writes once it has a leader.
const LOG: &str = "log";
const READY: &str = "ready to serve client requests";

/// How clients are known.
pub(crate) enum Security {
    /// Not at all.
    None,
    /// By certificates, with those of this folder.
    Mutual(PathBuf),
}

/// A server that is killed when it is dropped.
pub(crate) struct Etcd {
    program: PathBuf,
    security: Security,
    child: Option<Child>,
    client_port: u16,
    peer_port: u16,
    folder: TempDir,
}

impl Etcd {
    /// # Errors
    /// Why there is none.
    pub(crate) fn start(security: Security) -> Result<Self, String> {
        let program =
            PathBuf::from(std::env::var_os("JINDOU_ETCD").unwrap_or_else(|| "etcd".into()));
        let version = Command::new(&program).arg("--version").output();
        if version.is_err() {
            let name = program.display();
            return Err(format!(
                "there is no {name}; Debian's package etcd-server has it"
            ));
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut etcd = Self {
            program,
            security,
            child: None,
            client_port: 0,
            peer_port: 0,
            folder,
        };
        for _ in 0..MOST_STARTS {
            (etcd.client_port, etcd.peer_port) = free_ports();
            if etcd.is_restarted() {
                return Ok(etcd);
            }
        }
        panic!("etcd does not start: {}", etcd.log());
    }

    fn spawn(&self) -> Child {
        let client = self.address();
        let peer = format!("http://127.0.0.1:{}", self.peer_port);
        let folder = self.folder.path();
        let log = std::fs::File::create(folder.join(LOG)).expect("a log");
        let mut command = Command::new(&self.program);
        command
            .arg("--data-dir")
            .arg(folder.join(format!("data-{}", self.peer_port)))
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if let Security::Mutual(certificates) = &self.security {
            command.arg("--client-cert-auth");
            for (option, file) in [
                ("--trusted-ca-file", "ca.pem"),
                ("--cert-file", "server.pem"),
                ("--key-file", "server.key"),
            ] {
                command.arg(option).arg(certificates.join(file));
            }
        }
        command.spawn().expect("it was there a moment ago")
    }

    /// Ends it as a loss of power would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ended = child.kill();
            child.wait().expect("it ends");
        }
    }

    /// Starts it again, at the same port and with what it kept.
    pub(crate) fn restart(&mut self) {
        assert!(self.is_restarted(), "etcd does not start: {}", self.log());
    }

    /// False if it ended instead.
    fn is_restarted(&mut self) -> bool {
        self.kill();
        let mut child = self.spawn();
        let until = Instant::now() + PATIENCE;
        while !self.log().contains(READY) {
            if child.try_wait().expect("it can be asked").is_some() {
                return false;
            }
            assert!(
                Instant::now() < until,
                "not within {PATIENCE:?}: {}",
                self.log()
            );
            std::thread::sleep(LOOK);
        }
        self.child = Some(child);
        true
    }

    fn log(&self) -> String {
        let bytes = std::fs::read(self.folder.path().join(LOG)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    pub(crate) fn address(&self) -> String {
        format!(
            "{}://127.0.0.1:{}",
            self.security.scheme(),
            self.client_port
        )
    }

    /// Asks for something that the client has no call for.
    ///
    /// # Errors
    /// What it answers instead.
    pub(crate) fn ask(&self, path: &str, request: &str) -> Result<String, String> {
        let sent = ureq::post(format!("{}{path}", self.address())).send(request);
        let mut response = sent.map_err(|error| error.to_string())?;
        let text = response.body_mut().read_to_string();
        text.map_err(|error| error.to_string())
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Security {
    fn scheme(&self) -> &'static str {
        match self {
            Self::None => "http",
            Self::Mutual(_) => "https",
        }
    }
}

/// Two ports at which nobody listens at the moment.
fn free_ports() -> (u16, u16) {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = |listener: &TcpListener| listener.local_addr().expect("an address").port();
    let (one, other) = (listen(), listen());
    (port(&one), port(&other))
}

pub(crate) fn base64(text: &str) -> String {
    ::base64::engine::general_purpose::STANDARD.encode(text)
}

/// Puts certificates and keys into a folder: those of an authority, of server and client signed by it, and of
/// another authority.
pub(crate) fn certificates(folder: &Path) -> PathBuf {
    let write = |name: &str, text: String| std::fs::write(folder.join(name), text).expect("a file");
    let authority = |name: &str| {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new([]).expect("names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        let certificate = parameters.self_signed(&key).expect("signed");
        write(&format!("{name}.pem"), certificate.pem());
        write(&format!("{name}.key"), key.serialize_pem());
        Issuer::new(parameters, key)
    };
    let issuer = authority("ca");
    authority("other");
    for name in ["server", "client"] {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new(["127.0.0.1".to_owned()]).expect("names");
        // The gateway is a client of the server that it is part of, with the server's certificate.
        parameters.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = parameters.signed_by(&key, &issuer).expect("signed");
        write(&format!("{name}.pem"), certificate.pem());
        write(&format!("{name}.key"), key.serialize_pem());
    }
    write("garbage.pem", "no certificate".to_owned());
    folder.to_owned()
}
