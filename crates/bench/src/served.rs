//! What do credentials and TLS cost a light query over kept connections?
//!
//! Two servers have the same database, in this process as the clients are: one speaks HTTP to everybody, the
//! other HTTPS to whoever has a name and a password. They are asked by turns, so that whatever else the machine
//! does touches both. Each connection has one request under way at any time; the clients' part of TLS is in the
//! figures, too.

use std::fmt::{self, Display, Formatter};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jindou_datagen::lubm::{LightClass, Lubm};
use jindou_engine::Database;
use jindou_engine::ingest::{LoadOptions, Progress, Source};
use jindou_server::{AccessPolicy, Credentials, Tls, hash_password};
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde::Serialize;

use crate::BenchError;
use crate::http::Connection;
use crate::light::{HTTP_CLASSES, Part, drive_all, requests};
use crate::machine::Machine;
use crate::serving::Serving;
use crate::table::Table;

/// Turns of each server; a tenth of one is driven before and not counted.
const TURNS: u32 = 10;
/// Whom the second server knows: a name and a password, and both as a header has them.
const NAME: &str = "bench";
const PASSWORD: &[u8] = b"bench";
const AUTHORIZATION: &str = "Authorization: Basic YmVuY2g6YmVuY2g=\r\n";
/// What its certificate is for.
const HOST: &str = "localhost";

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Universities of the data; its seed is 0.
    pub universities: u32,
    /// Numbers of connections.
    pub connections: Vec<usize>,
    /// How long each server is asked for one figure.
    pub length: Duration,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct ServedReport {
    /// Where.
    pub machine: Machine,
    /// Universities of the data.
    pub universities: u32,
    /// For each class and number of connections.
    pub figures: Vec<ServedFigures>,
}

/// One class of queries over some connections.
#[derive(Debug, Clone, Serialize)]
pub struct ServedFigures {
    /// Its name.
    pub class: String,
    /// How many, each with one request under way.
    pub connections: usize,
    /// Answers a second, over HTTP without credentials.
    pub plain_per_second: f64,
    /// Answers a second, over HTTPS with credentials.
    pub secured_per_second: f64,
}

impl ServedFigures {
    /// How many times as long a query takes with credentials and TLS.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.plain_per_second / self.secured_per_second
    }
}

/// Measures.
///
/// # Errors
/// Any [`BenchError`].
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<ServedReport, BenchError> {
    let data = Lubm::new(options.universities, 0);
    note("loading");
    let database = loaded(data)?;
    let plain = Serving::start(database.clone())?;
    let folder = tempfile::tempdir().map_err(BenchError::io("a temporary folder"))?;
    let (secured, known) = secured(database, folder.path())?;
    let mut figures = Vec::new();
    for class in HTTP_CLASSES {
        for &connections in &options.connections {
            note(&format!("{}, {connections} connections", class.name()));
            let sides = [
                side((plain.address, None), data, class, connections)?,
                side((secured.address, Some(&known)), data, class, connections)?,
            ];
            let [plain_per_second, secured_per_second] = by_turns(sides, options.length)?;
            figures.push(ServedFigures {
                class: class.name().to_owned(),
                connections,
                plain_per_second,
                secured_per_second,
            });
        }
    }
    plain.stop()?;
    secured.stop()?;
    Ok(ServedReport {
        machine: Machine::here(),
        universities: options.universities,
        figures,
    })
}

fn loaded(data: Lubm) -> Result<Database, BenchError> {
    let mut text = Vec::new();
    data.write(&mut text)
        .map_err(BenchError::io("the generated data"))?;
    let source = Source::bytes("lubm.nt", text);
    let database = Database::new();
    database.load(vec![source], &LoadOptions::default(), &Progress::default())?;
    Ok(database)
}

/// A server with credentials and a certificate, whose files are in a folder, and clients that know it.
fn secured(database: Database, folder: &Path) -> Result<(Serving, Arc<ClientConfig>), BenchError> {
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(BenchError::io(&path))?;
        Ok::<_, BenchError>(path)
    };
    let made: Result<CertifiedKey<KeyPair>, _> = generate_simple_self_signed([HOST.to_owned()]);
    let made = made.map_err(|error| setup(&error))?;
    let certificate = write("certificate.pem", made.cert.pem())?;
    let key = write("key.pem", made.signing_key.serialize_pem())?;
    let tls = Tls::read(certificate, key).map_err(|error| setup(&error))?;
    let hash = hash_password(PASSWORD).map_err(BenchError::io("a password's hash"))?;
    let users = write("users", format!("{NAME}:read:{hash}\n"))?;
    let credentials = Credentials::read(users).map_err(|error| setup(&error))?;
    let serving = Serving::start_with(database, |config| {
        config.tls = Some(tls);
        config.access = AccessPolicy::known(credentials);
    })?;
    let mut roots = RootCertStore::empty();
    let added = roots.add(made.cert.der().clone());
    added.map_err(|error| setup(&error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| setup(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((serving, Arc::new(client)))
}

fn setup(error: &dyn Display) -> BenchError {
    BenchError::Setup {
        reason: error.to_string(),
    }
}

/// A stream of bytes in both directions.
trait Duplex: Read + Write + Send {}
impl<S: Read + Write + Send> Duplex for S {}

type Side = Vec<Part<Box<dyn Duplex>>>;

/// Open connections to a server, with what is to be sent, for some threads.
fn side(
    (address, known): (SocketAddr, Option<&Arc<ClientConfig>>),
    data: Lubm,
    class: LightClass,
    connections: usize,
) -> Result<Side, BenchError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(connections).max(1);
    let headers = known.map_or("", |_| AUTHORIZATION);
    let part = |thread| {
        let held = connections / threads + usize::from(thread < connections % threads);
        let open = (0..held).map(|_| Ok(Connection::over(stream(address, known)?)));
        let open: Result<Vec<_>, BenchError> = open.collect();
        Ok((requests(address, data, class, thread, headers)?, open?))
    };
    (0..threads).map(part).collect()
}

fn stream(
    address: SocketAddr,
    known: Option<&Arc<ClientConfig>>,
) -> Result<Box<dyn Duplex>, BenchError> {
    let stream = TcpStream::connect(address).and_then(|stream| {
        stream.set_nodelay(true)?;
        Ok(stream)
    });
    let stream = stream.map_err(BenchError::io("a connection"))?;
    let Some(known) = known else {
        return Ok(Box::new(stream));
    };
    let name = ServerName::try_from(HOST).map_err(|error| setup(&error))?;
    let client = ClientConnection::new(Arc::clone(known), name);
    let client = client.map_err(|error| setup(&error))?;
    Ok(Box::new(StreamOwned::new(client, stream)))
}

/// Answers a second of each side.
fn by_turns(mut sides: [Side; 2], length: Duration) -> Result<[f64; 2], BenchError> {
    let turn = length / TURNS;
    for side in &mut sides {
        drive_all(side, turn / 10)?;
    }
    let (mut answered, mut spent) = ([0; 2], [Duration::ZERO; 2]);
    for _ in 0..TURNS {
        for (number, side) in sides.iter_mut().enumerate() {
            let start = Instant::now();
            answered[number] += drive_all(side, turn)?;
            spent[number] += start.elapsed();
        }
    }
    Ok([0, 1].map(|side| answered[side] as f64 / spent[side].as_secs_f64()))
}

impl Display for ServedReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n", self.machine)?;
        let mut table = Table::new([
            "light queries",
            "connections",
            "HTTP, a second",
            "HTTPS and credentials, a second",
            "time, times",
        ]);
        for figures in &self.figures {
            table.row([
                figures.class.clone(),
                figures.connections.to_string(),
                format!("{:.0}", figures.plain_per_second),
                format!("{:.0}", figures.secured_per_second),
                format!("{:.2}", figures.ratio()),
            ]);
        }
        write!(f, "{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_servers_answer_and_are_compared() {
        let options = Options {
            universities: 1,
            connections: vec![1, 3],
            length: Duration::from_millis(20),
        };
        let report = measure(&options, |_| {}).expect("both answer");
        assert_eq!(report.figures.len(), 2 * HTTP_CLASSES.len());
        for figures in &report.figures {
            let all = [figures.plain_per_second, figures.secured_per_second];
            assert!(all.iter().all(|per_second| *per_second > 0.), "{figures:?}");
            assert!(figures.ratio().is_finite());
        }
        assert!(report.to_string().contains("HTTPS and credentials"));
    }
}
