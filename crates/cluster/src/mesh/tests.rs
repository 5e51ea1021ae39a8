//! Does each node get what the others have for it, and what becomes of all when one goes or is another one?

use std::net::TcpListener;
use std::sync::Mutex;

use super::*;

const LONG: Duration = Duration::from_secs(60);
/// More than a connection takes while nobody reads.
const PIECE_BYTES: usize = 1 << 20;

/// A list of so many nodes, and what listens at their addresses.
fn list(nodes: usize) -> (PeerList, Vec<TcpListener>) {
    let listeners: Vec<TcpListener> = (0..nodes)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    let entries = listeners.iter().enumerate().map(|(number, listener)| {
        let address = listener.local_addr().unwrap();
        format!("[[node]]\nname = \"n{number}\"\naddress = \"{address}\"\n")
    });
    let text = format!("shards = 16\n{}", entries.collect::<String>());
    (PeerList::parse(&text).unwrap(), listeners)
}

fn options(peers: &PeerList, here: usize, listener: TcpListener) -> MeshOptions<'_> {
    MeshOptions {
        peers,
        here: NodeId(here as u32),
        secret: None,
        purpose: "load one file".to_owned(),
        listener: Some(listener),
        within: LONG,
    }
}

/// What each of some nodes makes of its mesh.
fn each<T: Send>(
    (peers, listeners): (&PeerList, Vec<TcpListener>),
    change: impl Fn(usize, &mut MeshOptions<'_>) + Sync,
    make: impl Fn(usize, Result<Mesh, MeshError>) -> T + Sync,
) -> Vec<T> {
    thread::scope(|scope| {
        let nodes = listeners.into_iter().enumerate().map(|(here, listener)| {
            let (change, make) = (&change, &make);
            scope.spawn(move || {
                let mut options = options(peers, here, listener);
                change(here, &mut options);
                make(here, Mesh::meet(options, &|_| ()))
            })
        });
        let nodes: Vec<_> = nodes.collect();
        nodes.into_iter().map(|node| node.join().unwrap()).collect()
    })
}

/// What a node has for another one in a round: nothing, little, or more than a pipe takes.
fn bytes(round: usize, from: usize, to: usize) -> Vec<u8> {
    let length = [0, 1, 77, 3 * PIECE_BYTES + 5][(round + from + 2 * to) % 4];
    (0..length)
        .map(|place| (place + round + 3 * from + 7 * to) as u8)
        .collect()
}

#[test]
fn each_node_gets_what_the_others_have_for_it() {
    for nodes in [1, 2, 3, 5] {
        let (peers, listeners) = list(nodes);
        each(
            (&peers, listeners),
            |_, _| (),
            |here, mesh| {
                let mesh = mesh.unwrap();
                assert_eq!((mesh.nodes(), mesh.here().0), (nodes as u32, here as u32));
                for round in 0..8 {
                    let to = (0..nodes).map(|to| bytes(round, here, to)).collect();
                    let got = mesh.exchange(to).unwrap();
                    let expected = (0..nodes).map(|from| bytes(round, from, here));
                    assert!(got.into_iter().eq(expected), "round {round} of {nodes}");
                }
                assert_eq!(mesh.sent_bytes() > 0, nodes > 1);
            },
        );
    }
}

#[test]
fn a_node_that_goes_ends_the_calls_of_all() {
    let (peers, listeners) = list(3);
    let lost = each(
        (&peers, listeners),
        |_, _| (),
        |here, mesh| {
            let mesh = mesh.unwrap();
            if here == 1 {
                return None;
            }
            let to = || (0..3).map(|_| vec![7; 2 * PIECE_BYTES]).collect();
            // It may have written to it before it went.
            let failed = (0..3).find_map(|_| mesh.exchange(to()).err());
            assert!(mesh.exchange(to()).is_err(), "it is over");
            Some(failed.unwrap().to_string())
        },
    );
    for lost in lost.into_iter().flatten() {
        assert!(lost.contains("has gone, and what was begun"), "{lost}");
    }
}

#[test]
fn nodes_that_are_about_to_do_different_things_do_neither() {
    let (peers, listeners) = list(2);
    let other = |here: usize, options: &mut MeshOptions<'_>| {
        if here == 1 {
            options.purpose = "load two files".to_owned();
        }
    };
    let told = each((&peers, listeners), other, |_, mesh| {
        mesh.unwrap_err().to_string()
    });
    assert!(told[0].contains("node n1 is about to load two files, and this one to load one file"));
    assert!(
        told[1].contains("node n0 is about to load one file"),
        "{}",
        told[1]
    );
}

#[test]
fn a_node_that_does_not_come_is_named_and_told_of_meanwhile() {
    let (peers, mut listeners) = list(3);
    // Nobody listens there.
    let gone = listeners.remove(1);
    drop(gone);
    let told = Mutex::new(Vec::new());
    let mut options = options(&peers, 2, listeners.remove(1));
    options.within = Duration::from_millis(2_500);
    let waiting = |names: &[&str]| told.lock().unwrap().push(names.join(" "));
    let error = Mesh::meet(options, &waiting).unwrap_err();
    assert!(
        matches!(&error, MeshError::Missing { names, .. } if *names == ["n0", "n1"]),
        "{error}"
    );
    assert!(
        error.to_string().contains("n0, n1 not there after 2 s"),
        "{error}"
    );
    assert!(told.into_inner().unwrap().contains(&"n0 n1".to_owned()));
}

#[test]
fn nodes_of_another_list_or_secret_are_refused_at_once() {
    let (peers, listeners) = list(2);
    let (others, _held) = list(2);
    let text = format!("{}", listeners[0].local_addr().unwrap());
    drop(others);
    // The second has a list in which the first is the same, and one node more.
    let entries = format!(
        "shards = 16\n[[node]]\nname = \"n0\"\naddress = \"{text}\"\n\
         [[node]]\nname = \"n1\"\naddress = \"127.0.0.1:1\"\n"
    );
    let other = PeerList::parse(&entries).unwrap();
    thread::scope(|scope| {
        let mut listeners = listeners.into_iter();
        let (first, second) = (listeners.next().unwrap(), listeners.next().unwrap());
        let one = scope.spawn(|| Mesh::meet(options(&peers, 0, first), &|_| ()));
        let two = scope.spawn(|| Mesh::meet(options(&other, 1, second), &|_| ()));
        for met in [one, two] {
            let error = met.join().unwrap().unwrap_err();
            assert!(matches!(error, MeshError::Hello(_)), "{error}");
        }
    });
    let (peers, listeners) = list(2);
    let secrets = [
        "one secret of the cluster, which is long",
        "another secret, which is long, too",
    ];
    let secrets = secrets.map(|text| Secret::new(text.as_bytes()).unwrap());
    thread::scope(|scope| {
        let nodes = listeners.into_iter().enumerate().map(|(here, listener)| {
            let mut options = options(&peers, here, listener);
            options.secret = Some(&secrets[here]);
            // Who is connected to knows nothing of who comes, and waits for the node.
            options.within = Duration::from_secs(if here == 0 { 2 } else { 60 });
            scope.spawn(move || Mesh::meet(options, &|_| ()))
        });
        let nodes: Vec<_> = nodes.collect();
        for node in nodes {
            let error = node.join().unwrap().unwrap_err().to_string();
            assert!(error.contains("secret"), "{error}");
        }
    });
}

#[test]
fn strangers_neither_end_a_meeting_nor_hold_it_up() {
    let (peers, listeners) = list(2);
    let address = listeners[0].local_addr().unwrap();
    let begun = std::time::Instant::now();
    // One of another version, and one that says nothing.
    let mut of_other_version = TcpStream::connect(address).unwrap();
    let mut first = b"JNDNODE\0".to_vec();
    first.extend(999_u32.to_le_bytes());
    of_other_version.write_all(&first).unwrap();
    let _silent = TcpStream::connect(address).unwrap();
    each(
        (&peers, listeners),
        |_, _| (),
        |_, mesh| mesh.unwrap().nodes(),
    );
    assert!(begun.elapsed() < LONG);
}

#[test]
fn a_node_that_stands_still_holds_nobody_up_once_another_one_has_gone() {
    let (peers, listeners) = list(3);
    let (gone, is_gone) = std::sync::mpsc::channel();
    let is_gone = Mutex::new(is_gone);
    each(
        (&peers, listeners),
        |_, _| (),
        |here, mesh| {
            let mesh = mesh.unwrap();
            match here {
                // It goes,
                0 => drop(mesh),
                // and this one makes no call before the other one has failed.
                1 => is_gone.lock().unwrap().recv().unwrap(),
                _ => {
                    let failed = mesh.exchange(vec![vec![7; 3 * PIECE_BYTES]; 3]);
                    let failed = failed.unwrap_err().to_string();
                    assert!(failed.contains("node n0 has gone"), "{failed}");
                    gone.send(()).unwrap();
                }
            }
        },
    );
}

#[test]
fn a_message_that_is_damaged_is_refused_with_the_name_of_its_node() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let other = Other {
        name: "n1".to_owned(),
        stream: listener.accept().unwrap().0,
    };
    let mesh = Mesh {
        here: NodeId(0),
        others: vec![None, Some(other)],
        sent: AtomicU64::new(0),
        lost: AtomicU32::new(0),
    };
    for (sent, came) in [(b"whole", b"whole"), (b"whole", b"whale")] {
        let words = [sent.len() as u64, xxh3_64(sent)];
        sender
            .write_all(words.map(u64::to_le_bytes).as_flattened())
            .unwrap();
        sender.write_all(came).unwrap();
        let got = mesh.exchange(vec![Vec::new(); 2]);
        match sent == came {
            true => assert_eq!(got.unwrap()[1], came),
            false => assert!(
                matches!(got.unwrap_err(), MeshError::Damaged { name } if name == "n1"),
                "it is another one"
            ),
        }
    }
}
