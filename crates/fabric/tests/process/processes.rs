//! Do processes reach each other, and what do those get whose peer is killed?
//!
//! This test starts itself again as the peer, which offers a region and words, and sends back each
//! message. `JINDOU_KILLS` sets how many peers are killed.

use std::io::{BufRead as _, BufReader};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use jindou_fabric::FabricError;
use jindou_fabric::process::{ProcessFabric, ProcessOptions, UcxOptions};
use jindou_fabric::remote::{
    Batch, Doorbell, Fabric, Interrupt, MemoryKey, NodeId, RemoteMemory, SharedMemory,
};
use jindou_fabric::ring::{Invitation, Receiver, RingError, RingOptions, Sender};

use crate::is_without_ucx;

const CHILD: &str = "JINDOU_FABRIC_CHILD";
const DEFAULT_KILLS: u64 = 3;
const REGION_BYTES: usize = 3 << 20;
const LIMIT: Duration = Duration::from_secs(60);

fn soon(fabric: &ProcessFabric) -> Interrupt<'static> {
    Interrupt::at(fabric.now() + LIMIT)
}

fn pattern(place: usize) -> u8 {
    (place * 31 + (place >> 8) * 7) as u8
}

/// How the processes are joined, by the name that the peer is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Near,
    Far,
    NearByUcx,
    FarByUcx,
}

impl Way {
    const ALL: [Self; 4] = [Self::Near, Self::Far, Self::NearByUcx, Self::FarByUcx];

    fn is_near(self) -> bool {
        matches!(self, Self::Near | Self::NearByUcx)
    }

    fn is_by_ucx(self) -> bool {
        matches!(self, Self::NearByUcx | Self::FarByUcx)
    }
}

fn options(node: u32, way: Way) -> ProcessOptions {
    ProcessOptions {
        maps_memory: way.is_near(),
        ucx: way.is_by_ucx().then(UcxOptions::default),
        // Where the connection is not made when the peer is killed.
        connect_within: Duration::from_secs(5),
        ..ProcessOptions::new(NodeId(node))
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

fn connect(
    fabric: &ProcessFabric,
    node: u32,
    address: &[u8],
    way: Way,
    connection: TcpStream,
) -> Result<(), FabricError> {
    if way.is_by_ucx() {
        return fabric.connect_by_ucx(NodeId(node), address);
    }
    fabric.connect(NodeId(node), address, connection)
}

/// The peer: only when started for that.
#[test]
fn peer() {
    let Ok(started) = std::env::var(CHILD) else {
        return;
    };
    let (name, port) = started.split_once(' ').unwrap();
    let way = Way::ALL.into_iter().find(|way| format!("{way:?}") == name);
    let way = way.unwrap();
    let (mut input, output) = (std::io::stdin().lock(), std::io::stdout);
    let fabric = ProcessFabric::new(&options(1, way)).unwrap();
    let connection = TcpStream::connect(("127.0.0.1", port.parse().unwrap())).unwrap();
    say(output(), &fabric.address());
    connect(&fabric, 0, &hear(&mut input), way, connection).unwrap();
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
    // Until the other one has all that it asked for.
    let _ = std::io::copy(&mut input, &mut std::io::sink());
}

/// What a test has of its peer.
struct Peer {
    process: Child,
    /// It goes on until this is dropped.
    input: Option<ChildStdin>,
    fabric: Arc<ProcessFabric>,
    region: RemoteMemory,
    words: RemoteMemory,
    sender: Sender,
    receiver: Receiver,
}

/// Starts this test as a peer; the connection that it made.
fn start(way: Way) -> (Child, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::peer", "--nocapture"])
        .env(CHILD, format!("{way:?} {port}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    (process, listener.accept().unwrap().0)
}

impl Peer {
    fn start(way: Way) -> Self {
        let (mut process, connection) = start(way);
        let mut input = process.stdin.take().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let fabric = ProcessFabric::new(&options(0, way)).unwrap();
        say(&mut input, &fabric.address());
        connect(&fabric, 1, &hear(&mut output), way, connection).unwrap();
        assert_eq!(fabric.is_neighbour(NodeId(1)), way.is_near());
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
            input: Some(input),
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

fn pass(way: Way) {
    if way.is_by_ucx() && is_without_ucx() {
        return;
    }
    let mut peer = Peer::start(way);
    for round in 0..60 {
        peer.operate(round).unwrap();
        peer.echo(round).unwrap();
    }
    let mut batch = Batch::new();
    let count = batch.read(&peer.words, 0, 8).unwrap();
    let completed = peer.fabric.complete(batch, &soon(&peer.fabric)).unwrap();
    assert_eq!(completed.word(count), 60);
    peer.sender.close(&soon(&peer.fabric)).unwrap();
    drop(peer.input.take());
    assert!(peer.process.wait().unwrap().success());
}

#[test]
fn processes_of_one_machine_reach_each_other() {
    pass(Way::Near);
}

#[test]
fn processes_far_from_each_other_reach_each_other() {
    pass(Way::Far);
}

#[test]
fn processes_with_messages_by_ucx_reach_each_other() {
    pass(Way::NearByUcx);
    pass(Way::FarByUcx);
}

/// Kills peers while they are used: what comes is whole, or says that the peer is lost.
fn kill(way: Way) {
    if way.is_by_ucx() && is_without_ucx() {
        return;
    }
    let kills = std::env::var("JINDOU_KILLS").map_or(DEFAULT_KILLS, |text| text.parse().unwrap());
    println!("{kills} kills (JINDOU_KILLS)");
    for kill in 0..kills {
        let mut peer = Peer::start(way);
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
                // While UCX makes its connections it does not survive that the other side ends.
                let first = if way.is_by_ucx() { 5 } else { 0 };
                if round == first + kill as usize * 7 % 20 {
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

/// Kills peers about when they are connected: this process goes on, and calls them lost.
fn kill_early(way: Way) {
    if way.is_by_ucx() && is_without_ucx() {
        return;
    }
    let kills = std::env::var("JINDOU_KILLS").map_or(DEFAULT_KILLS, |text| text.parse().unwrap());
    for kill in 0..kills {
        let (mut process, connection) = start(way);
        let mut input = process.stdin.take().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let address = hear(&mut output);
        let fabric = ProcessFabric::new(&options(0, way)).unwrap();
        say(&mut input, &fabric.address());
        let id = process.id() as i32;
        std::thread::scope(|scope| {
            let killer = scope.spawn(|| {
                // Work instead of time, so that the kill comes at another place each round.
                for _ in 0..kill * 37 % 1000 {
                    std::hint::black_box(std::process::id());
                    std::thread::yield_now();
                }
                // SAFETY: a signal to a child that was not waited for.
                unsafe { libc::kill(id, libc::SIGKILL) };
            });
            let connected = connect(&fabric, 1, &address, way, connection);
            killer.join().unwrap();
            let lost = match connected {
                Ok(()) => loop {
                    if let Err(error) = fabric.probe(NodeId(1), &soon(&fabric)) {
                        break error;
                    }
                },
                Err(error) => error,
            };
            let is_typed = matches!(
                lost,
                FabricError::PeerLost(NodeId(1)) | FabricError::Transport { .. }
            );
            assert!(is_typed, "{lost:?}");
        });
        process.wait().unwrap();
    }
}

#[test]
fn a_neighbour_killed_while_it_is_connected_is_an_error() {
    kill_early(Way::Near);
}

#[test]
fn a_far_peer_killed_while_it_is_connected_is_an_error() {
    kill_early(Way::Far);
}

#[test]
fn a_killed_neighbour_is_an_error() {
    kill(Way::Near);
}

#[test]
fn a_killed_far_peer_is_an_error() {
    kill(Way::Far);
}

#[test]
fn a_killed_peer_with_messages_by_ucx_is_an_error() {
    kill(Way::NearByUcx);
    kill(Way::FarByUcx);
}
