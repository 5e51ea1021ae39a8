//! Do processes reach each other by UCX, and what do those get whose peer is killed?
//!
//! This test starts itself again as the peer, which offers a region and words, and sends back each
//! message. `JINDOU_KILLS` sets how many peers are killed.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jindou_fabric::FabricError;
use jindou_fabric::remote::{
    Batch, Doorbell, Fabric, Interrupt, MemoryKey, NodeId, RemoteMemory, SharedMemory,
};
use jindou_fabric::ring::{Invitation, Receiver, RingError, RingOptions, Sender};
use jindou_fabric::ucx::{Transport, UcxFabric, UcxOptions};

use crate::is_skipped;

const CHILD: &str = "JINDOU_FABRIC_CHILD";
const DEFAULT_KILLS: u64 = 3;
const REGION_BYTES: usize = 3 << 20;
const LIMIT: Duration = Duration::from_secs(60);

fn soon(fabric: &UcxFabric) -> Interrupt<'static> {
    Interrupt::at(fabric.now() + LIMIT)
}

fn pattern(place: usize) -> u8 {
    (place * 31 + (place >> 8) * 7) as u8
}

fn options(node: u32, transports: &str) -> UcxOptions {
    let transports = match transports {
        "tcp" => vec![Transport::Tcp],
        _ => vec![Transport::SharedMemory, Transport::Tcp],
    };
    UcxOptions {
        transports,
        // Where the connection is not made when the peer is killed.
        connect_within: Duration::from_secs(5),
        ..UcxOptions::new(NodeId(node))
    }
}

/// A ring for a sender, which may be killed before it has come.
fn ring_from(sender: u32) -> RingOptions {
    RingOptions {
        sender: Some(NodeId(sender)),
        bytes: 16 << 10,
        probe_every: Duration::from_millis(50),
        ..RingOptions::default()
    }
}

/// A line of bytes.
fn say(mut to: impl std::io::Write, bytes: &[u8]) {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(to, "@{digits}").unwrap();
    to.flush().unwrap();
}

/// The next line of bytes, among whatever else is written.
fn hear(from: &mut impl std::io::BufRead) -> Vec<u8> {
    loop {
        let mut line = String::new();
        assert!(from.read_line(&mut line).unwrap() > 0, "the peer ended");
        if let Some((_, digits)) = line.trim().split_once('@') {
            let digits = digits.as_bytes().chunks(2);
            let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
            return digits.map(byte).collect();
        }
    }
}

/// The peer: only when started for that.
#[test]
fn peer() {
    let Ok(transports) = std::env::var(CHILD) else {
        return;
    };
    let (mut input, output) = (std::io::stdin().lock(), std::io::stdout);
    let fabric = UcxFabric::new(&options(1, &transports)).unwrap();
    say(output(), &fabric.address());
    fabric.connect(NodeId(0), &hear(&mut input)).unwrap();
    let mut builder = fabric.allocate(REGION_BYTES).unwrap();
    let bytes: Vec<u8> = (0..REGION_BYTES).map(pattern).collect();
    builder.copy_from_slice(&bytes);
    let region = fabric.register(&builder.finish()).unwrap();
    let (_words, shared) = fabric.share(1 << 10).unwrap();
    let bell = Arc::new(fabric.doorbell().unwrap());
    let as_fabric = Arc::clone(&fabric) as Arc<dyn Fabric>;
    let mut receiver =
        Receiver::new(Arc::clone(&as_fabric), Arc::clone(&bell), &ring_from(0)).unwrap();
    say(output(), &region.key().to_bytes());
    say(output(), &shared.key().to_bytes());
    say(output(), &receiver.invitation().to_bytes());
    let invitation = Invitation::from_bytes(&hear(&mut input)).unwrap();
    let mut sender = Sender::new(as_fabric, bell, &invitation, &soon(&fabric)).unwrap();
    while let Ok(message) = receiver.receive(&soon(&fabric)) {
        if sender.send(&message, &soon(&fabric)).is_err() {
            break;
        }
    }
}

/// What a test has of its peer.
struct Peer {
    process: Child,
    fabric: Arc<UcxFabric>,
    region: RemoteMemory,
    words: RemoteMemory,
    sender: Sender,
    receiver: Receiver,
}

impl Peer {
    fn start(transports: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::peer", "--nocapture"])
            .env(CHILD, transports)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = process.stdin.take().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let fabric = UcxFabric::new(&options(0, transports)).unwrap();
        say(&mut input, &fabric.address());
        fabric.connect(NodeId(1), &hear(&mut output)).unwrap();
        assert_eq!(fabric.is_neighbour(NodeId(1)), transports != "tcp");
        let mut open = || {
            fabric
                .open(&MemoryKey::from_bytes(&hear(&mut output)).unwrap())
                .unwrap()
        };
        let (region, words) = (open(), open());
        let invitation = Invitation::from_bytes(&hear(&mut output)).unwrap();
        let bell: Arc<Doorbell> = Arc::new(fabric.doorbell().unwrap());
        let as_fabric = Arc::clone(&fabric) as Arc<dyn Fabric>;
        let (shared, own) = (Arc::clone(&as_fabric), Arc::clone(&bell));
        let receiver = Receiver::new(shared, own, &ring_from(1)).unwrap();
        say(&mut input, &receiver.invitation().to_bytes());
        let sender = Sender::new(as_fabric, bell, &invitation, &soon(&fabric)).unwrap();
        // What the peer prints later is nothing to us, but it must not block.
        std::thread::spawn(move || for _ in output.lines() {});
        Self {
            process,
            fabric,
            region,
            words,
            sender,
            receiver,
        }
    }

    /// Reads, writes and adds; an error only if the peer is lost.
    fn operate(&self, round: usize) -> Result<(), FabricError> {
        let mut batch = Batch::new();
        let start = round * 4099 % (REGION_BYTES / 2);
        let length = [8, 100, REGION_BYTES / 2][round % 3];
        let read = batch.read(&self.region, start as u64, length)?;
        let _ = batch.write(&self.words, 64, &[round as u64; 100])?;
        let _ = batch.fetch_add(&self.words, 0, 1)?;
        let completed = self.fabric.complete(batch, &soon(&self.fabric))?;
        let expected = (start..start + length).map(pattern);
        assert!(
            completed.bytes(read).iter().copied().eq(expected),
            "round {round}"
        );
        Ok(())
    }

    /// Sends a message and gets it back.
    fn echo(&mut self, round: usize) -> Result<(), RingError> {
        let message: Vec<u8> = (0..[0, 10, 5000, 40_000][round % 4]).map(pattern).collect();
        self.sender.send(&message, &soon(&self.fabric))?;
        let back = self.receiver.receive(&soon(&self.fabric))?;
        assert_eq!(back, message, "round {round}");
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn pass(transports: &str) {
    if is_skipped() {
        return;
    }
    let mut peer = Peer::start(transports);
    for round in 0..60 {
        peer.operate(round).unwrap();
        peer.echo(round).unwrap();
    }
    let mut batch = Batch::new();
    let count = batch.read(&peer.words, 0, 8).unwrap();
    let completed = peer.fabric.complete(batch, &soon(&peer.fabric)).unwrap();
    assert_eq!(completed.word(count), 60);
    peer.sender.close(&soon(&peer.fabric)).unwrap();
    assert!(peer.process.wait().unwrap().success());
}

#[test]
fn processes_of_one_machine_reach_each_other() {
    pass("shared memory");
}

#[test]
fn processes_that_only_tcp_joins_reach_each_other() {
    pass("tcp");
}

/// Kills peers while they are used: what comes is whole, or says that the peer is lost.
fn kill(transports: &str) {
    if is_skipped() {
        return;
    }
    let kills = std::env::var("JINDOU_KILLS").map_or(DEFAULT_KILLS, |text| text.parse().unwrap());
    println!("{kills} kills (JINDOU_KILLS)");
    for kill in 0..kills {
        let mut peer = Peer::start(transports);
        let id = peer.process.id() as i32;
        let (fabric, bell) = (Arc::clone(&peer.fabric), peer.fabric.doorbell().unwrap());
        std::thread::scope(|scope| {
            let address = bell.address();
            scope.spawn(|| {
                fabric.wait(&bell, 0, &soon(&fabric)).unwrap();
                // SAFETY: a signal to a child that was not waited for.
                unsafe { libc::kill(id, libc::SIGKILL) };
            });
            let mut round = 0;
            let (operated, echoed) = loop {
                if round == kill as usize * 7 % 20 {
                    peer.fabric.wake(address, &soon(&peer.fabric)).unwrap();
                }
                let (operated, echoed) = (peer.operate(round), peer.echo(round));
                let lost = FabricError::PeerLost(NodeId(1));
                assert!(
                    operated.is_ok() || operated == Err(lost.clone()),
                    "{operated:?}"
                );
                assert!(echoed.is_ok() || echoed == Err(lost.into()), "{echoed:?}");
                if operated.is_err() && echoed.is_err() {
                    break (operated, echoed);
                }
                round += 1;
            };
            let lost = FabricError::PeerLost(NodeId(1));
            assert_eq!(operated, Err(lost.clone()));
            assert_eq!(echoed, Err(RingError::Fabric(lost.clone())));
            let probed = peer.fabric.probe(NodeId(1), &soon(&peer.fabric));
            assert_eq!(probed, Err(lost));
        });
        // Its own memory is as it was.
        let (words, registration): (SharedMemory, _) = peer.fabric.share(1).unwrap();
        let memory = peer.fabric.open(registration.key()).unwrap();
        let mut batch = Batch::new();
        let _ = batch.fetch_add(&memory, 0, 5).unwrap();
        peer.fabric.complete(batch, &soon(&peer.fabric)).unwrap();
        assert_eq!(words.words()[0].load(Ordering::SeqCst), 5);
    }
}

#[test]
fn a_killed_neighbour_is_an_error() {
    kill("shared memory");
}

#[test]
fn a_killed_peer_behind_tcp_is_an_error() {
    kill("tcp");
}
