//! Which clients take what they asked for a few bytes at a time, or hold back the last byte of what
//! they send?

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use super::attack::hostile_request;
use super::report::SlowFigures;
use crate::BenchError;

/// Bytes that one reads at a time,
const SIP: usize = 512;
/// and how long it waits after that.
const PAUSE: Duration = Duration::from_secs(1);
/// How long one that was refused waits, as the server asks it to.
const REFUSED_PAUSE: Duration = Duration::from_secs(5);
/// What the system may keep of an answer that is not read, in bytes.
const RECEIVE_BUFFER: u32 = 4096;
/// Clients that send all of a body but its last byte.
const WITHHOLDING: usize = 100;
/// Length of such a body: the largest that a server takes by default.
const WITHHELD_BODY_BYTES: usize = 16 << 20;
/// Bytes of a body that are sent at a time.
const PIECE_BYTES: usize = 64 << 10;
/// How long such a client waits for an answer before it closes the connection.
const WITHHELD_FOR: Duration = Duration::from_secs(1);
/// Everything, and a part that is answered at once.
const QUERIES: [&str; 2] = ["SELECT * { ?s ?p ?o }", "SELECT * { ?s ?p ?o } LIMIT 500"];

#[derive(Default)]
struct Counts {
    answers: Mutex<BTreeMap<String, u64>>,
    withheld: Mutex<BTreeMap<String, u64>>,
    bytes: AtomicU64,
}

fn count(answers: &Mutex<BTreeMap<String, u64>>, status: String) {
    if let Ok(mut answers) = answers.lock() {
        *answers.entry(status).or_default() += 1;
    }
}

/// Connections under way.
pub(super) struct Slow {
    thread: JoinHandle<()>,
    counts: Arc<Counts>,
    connections: usize,
}

impl Slow {
    pub(super) fn join(self) -> Result<SlowFigures, BenchError> {
        self.thread.join().map_err(|_| BenchError::Thread)?;
        let answers = self.counts.answers.lock();
        let withheld = self.counts.withheld.lock();
        Ok(SlowFigures {
            connections: self.connections,
            answers: answers.map_err(|_| BenchError::Thread)?.clone(),
            withholding: WITHHOLDING,
            withheld: withheld.map_err(|_| BenchError::Thread)?.clone(),
            bytes: self.counts.bytes.load(Relaxed),
        })
    }
}

/// Opens so many connections that ask and read slowly until told to stop.
pub(super) fn start(
    address: SocketAddr,
    connections: usize,
    stop: &Arc<AtomicBool>,
) -> Result<Slow, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("the slow clients' event loop"))?;
    let counts = Arc::new(Counts::default());
    let (shared, stop) = (Arc::clone(&counts), Arc::clone(stop));
    let thread = std::thread::spawn(move || {
        super::attack::give_way();
        runtime.block_on(async {
            for number in 0..connections {
                tokio::spawn(sip(address, number, Arc::clone(&shared)));
            }
            for _ in 0..WITHHOLDING {
                tokio::spawn(withhold(address, Arc::clone(&shared)));
            }
            while !stop.load(Relaxed) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        // Its end closes all connections.
        runtime.shutdown_background();
    });
    Ok(Slow {
        thread,
        counts,
        connections,
    })
}

async fn sip(address: SocketAddr, number: usize, counts: Arc<Counts>) {
    let query = QUERIES[number % QUERIES.len()];
    for round in 0_u64.. {
        let request = hostile_request(address, query, &format!("slow {number} {round}"));
        let told = one(address, &request, &counts).await;
        let refused = told == "503";
        count(&counts.answers, told);
        tokio::time::sleep(if refused { REFUSED_PAUSE } else { PAUSE }).await;
    }
}

async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.connect(address).await
}

/// One request, read to its end or to where it is cut.
async fn one(address: SocketAddr, request: &[u8], counts: &Counts) -> String {
    let Ok(mut stream) = connect(address).await else {
        return "no connection".to_owned();
    };
    if stream.write_all(request).await.is_err() {
        return "cut".to_owned();
    }
    let mut status = None;
    let mut buffer = [0; SIP];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return status.map_or("cut", |_| "200, cut").to_owned(),
            Ok(read) => {
                counts.bytes.fetch_add(read as u64, Relaxed);
                let text = String::from_utf8_lossy(&buffer[..read]);
                let first = status.get_or_insert_with(|| text.get(9..12).unwrap_or("?").to_owned());
                if first != "200" {
                    return first.clone();
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Sends bodies again and again, each without its last byte.
async fn withhold(address: SocketAddr, counts: Arc<Counts>) {
    loop {
        let status = one_withheld(address).await;
        count(&counts.withheld, status);
        tokio::time::sleep(REFUSED_PAUSE).await;
    }
}

/// One body without its last byte, as far as it is taken.
async fn one_withheld(address: SocketAddr) -> String {
    let Ok(mut stream) = TcpStream::connect(address).await else {
        return "no connection".to_owned();
    };
    let head = format!(
        "POST /update HTTP/1.1\r\nHost: {address}\r\n\
         Content-Type: application/sparql-update\r\nContent-Length: {WITHHELD_BODY_BYTES}\r\n\r\n"
    );
    let piece = [b' '; PIECE_BYTES];
    let mut left = WITHHELD_BODY_BYTES - 1;
    let mut sent = stream.write_all(head.as_bytes()).await;
    while sent.is_ok() && left > 0 {
        let now = left.min(PIECE_BYTES);
        sent = stream.write_all(&piece[..now]).await;
        left -= now;
    }
    // A server that refuses says so while the body is sent, or cuts the connection.
    let mut answer = [0; SIP];
    match tokio::time::timeout(WITHHELD_FOR, stream.read(&mut answer)).await {
        Ok(Ok(read)) if read > 0 => {
            let text = String::from_utf8_lossy(&answer[..read]);
            text.get(9..12).unwrap_or("?").to_owned()
        }
        Ok(_) => "cut".to_owned(),
        Err(_) => "taken but for a byte".to_owned(),
    }
}
