//! Does a real etcd do what the client says of it?
//!
//! It is started on loopback: the program that `JINDOU_ETCD` names, or `etcd`, which Debian's package
//! etcd-server has.

#![forbid(unsafe_code)]

#[path = "etcd/server.rs"]
mod server;

use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use jindou_etcd::{
    Client, Error, Event, Expected, Identity, Options, Revision, Swap, TlsFiles, User, Watch,
};

use server::{Etcd, PATIENCE, Security, base64};

/// A server, or that the test is skipped as there is none.
macro_rules! etcd_or_skip {
    ($test:literal) => {
        etcd_or_skip!($test, Security::None)
    };
    ($test:literal, $security:expr) => {
        match Etcd::start($security) {
            Ok(etcd) => etcd,
            Err(reason) => {
                println!("SKIPPED: {} ({reason})", $test);
                return;
            }
        }
    };
}

fn options(etcd: &Etcd) -> Options {
    let mut options = Options::new(etcd.address().parse().expect("endpoints"));
    // Two cores may have more to do than this test.
    options.timeout = PATIENCE;
    options
}

fn client(etcd: &Etcd) -> Client {
    Client::new(options(etcd)).expect("options")
}

#[track_caller]
fn won(swap: Result<Swap, Error>) -> Revision {
    match swap.expect("etcd is there") {
        Swap::Won(revision) => revision,
        Swap::Lost(found) => panic!("there is {found:?}"),
    }
}

/// Writes whatever is there.
#[track_caller]
fn put(client: &Client, key: &str, value: &str) -> Revision {
    let found = client.get(key.as_bytes()).expect("etcd is there");
    let expected = found.map_or(Expected::Absent, |value| Expected::Revision(value.revision));
    won(client.put_if(key.as_bytes(), expected, value.as_bytes()))
}

fn watch(client: &Client, prefix: &str, after: Revision) -> (Watch, Receiver<Event>) {
    let (heard, events) = mpsc::channel();
    let watch = client.watch(prefix.as_bytes(), after, move |event| {
        // The test may have heard enough.
        let _enough = heard.send(event);
    });
    (watch.expect("a thread"), events)
}

#[track_caller]
fn next(events: &Receiver<Event>) -> Event {
    events.recv_timeout(PATIENCE).expect("an event")
}

/// The next event, as `+key value` or `-key`, and its revision.
#[track_caller]
fn change(events: &Receiver<Event>) -> (String, Revision) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    match next(events) {
        Event::Put { key, value } => {
            let change = format!("+{} {}", text(key), text(value.bytes));
            (change, value.revision)
        }
        Event::Deleted { key, revision } => (format!("-{}", text(key)), revision),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_value_is_read_as_it_was_written_last() {
    let etcd = etcd_or_skip!("values of etcd");
    let client = client(&etcd);
    let status = client.status().unwrap();
    assert!(status.version.starts_with("3."), "{status:?}");
    assert_eq!(client.get(b"a").unwrap(), None);
    let value = [0, 255, b'"', b'\n'];
    let first = won(client.put_if(b"a", Expected::Absent, &value));
    let found = client.get(b"a").unwrap().unwrap();
    assert_eq!(
        (&found.bytes[..], found.revision, found.version),
        (&value[..], first, 1)
    );
    let lost = client.put_if(b"a", Expected::Absent, b"x").unwrap();
    assert_eq!(lost, Swap::Lost(Some(found)));
    let second = won(client.put_if(b"a", Expected::Revision(first), b""));
    assert!(second > first);
    let lost = client.delete_if(b"a", Expected::Revision(first)).unwrap();
    assert!(
        matches!(lost, Swap::Lost(Some(found)) if found.revision == second && found.version == 2)
    );
    won(client.delete_if(b"a", Expected::Revision(second)));
    assert_eq!(client.get(b"a").unwrap(), None);
    let lost = client
        .put_if(b"a", Expected::Revision(second), b"x")
        .unwrap();
    assert_eq!(lost, Swap::Lost(None));
    let large = vec![0; 2 << 20];
    let refused = client.put_if(b"a", Expected::Absent, &large);
    assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    assert!(matches!(client.get(b""), Err(Error::Refused { .. })));
}

#[test]
fn a_list_has_the_keys_with_the_prefix_and_their_revision() {
    let etcd = etcd_or_skip!("lists of etcd");
    let client = client(&etcd);
    // More than a page has.
    let keys: Vec<String> = (0..600).map(|number| format!("list/{number:03}")).collect();
    let mut last = Revision(0);
    for key in &keys {
        last = won(client.put_if(key.as_bytes(), Expected::Absent, key.as_bytes()));
    }
    let other = put(&client, "lisu", "");
    let listing = client.get_all(b"list/").unwrap();
    assert_eq!(listing.revision, other);
    assert_eq!(listing.entries.len(), keys.len());
    for ((key, value), expected) in listing.entries.iter().zip(&keys) {
        assert_eq!(
            (&key[..], &value.bytes[..]),
            (expected.as_bytes(), expected.as_bytes())
        );
    }
    assert_eq!(listing.entries.last().unwrap().1.revision, last);
    assert_eq!(client.get_all(b"").unwrap().entries.len(), keys.len() + 1);
    assert_eq!(client.get_all(b"none").unwrap().entries, []);
}

#[test]
fn increments_by_eight_threads_are_all_counted() {
    const THREADS: u64 = 8;
    const TIMES: u64 = 25;
    let etcd = etcd_or_skip!("races for a key of etcd");
    let client = client(&etcd);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    increment(&client);
                }
            });
        }
    });
    let sum = client.get(b"sum").unwrap().unwrap();
    assert_eq!(sum.bytes, (THREADS * TIMES).to_string().as_bytes());
    assert_eq!(sum.version, THREADS * TIMES);
}

fn increment(client: &Client) {
    let mut found = client.get(b"sum").unwrap();
    loop {
        let (number, expected) = match &found {
            None => (0, Expected::Absent),
            Some(value) => {
                let text = std::str::from_utf8(&value.bytes).unwrap();
                (text.parse().unwrap(), Expected::Revision(value.revision))
            }
        };
        let next: u64 = number + 1;
        match client.put_if(b"sum", expected, next.to_string().as_bytes()) {
            Ok(Swap::Won(_)) => return,
            Ok(Swap::Lost(other)) => found = other,
            Err(error) => panic!("{error:?}"),
        }
    }
}

#[test]
fn changes_are_heard_in_their_order_across_a_kill_of_etcd() {
    let mut etcd = etcd_or_skip!("changes across a kill of etcd");
    let client = client(&etcd);
    let before = put(&client, "w/0", "before");
    let (_watch, events) = watch(&client, "w/", before);
    let mut expected = Vec::new();
    for round in 0..3 {
        put(&client, "v", "not watched");
        for number in 0..5 {
            let value = format!("{round}.{number}");
            let revision = put(&client, "w/1", &value);
            expected.push((format!("+w/1 {value}"), revision));
        }
        let found = client.get(b"w/1").unwrap().unwrap();
        let removed = won(client.delete_if(b"w/1", Expected::Revision(found.revision)));
        expected.push(("-w/1".to_owned(), removed));
        for expected in expected.drain(..) {
            assert_eq!(change(&events), expected);
        }
        etcd.kill();
        assert!(matches!(next(&events), Event::Away(Error::NoAnswer { .. })));
        etcd.restart();
        assert!(matches!(next(&events), Event::Back));
    }
}

#[test]
fn a_change_while_etcd_is_away_is_not_made_or_unknown() {
    let mut etcd = etcd_or_skip!("changes while etcd is away");
    let client = client(&etcd);
    put(&client, "a", "1");
    etcd.kill();
    let refused = client.put_if(b"a", Expected::Absent, b"2");
    assert!(
        matches!(refused, Err(Error::NoAnswer { .. } | Error::Unknown { .. })),
        "{refused:?}"
    );
    assert!(matches!(client.get(b"a"), Err(Error::NoAnswer { .. })));
    etcd.restart();
    assert_eq!(client.get(b"a").unwrap().unwrap().bytes, b"1");
}

#[test]
fn a_watch_from_a_forgotten_revision_says_so() {
    let etcd = etcd_or_skip!("compaction of etcd");
    let client = client(&etcd);
    let first = put(&client, "c", "1");
    put(&client, "c", "2");
    let last = put(&client, "c", "3");
    etcd.ask("/v3/kv/compaction", &format!(r#"{{"revision":"{last}"}}"#))
        .unwrap();
    let (_watch, events) = watch(&client, "c", first);
    assert!(matches!(next(&events), Event::Compacted(revision) if revision == last));
    // As is to be done then.
    let listing = client.get_all(b"c").unwrap();
    assert_eq!(listing.entries[0].1.bytes, b"3");
    let (_watch, events) = watch(&client, "c", listing.revision);
    let next = put(&client, "c", "4");
    assert_eq!(change(&events), ("+c 4".to_owned(), next));
}

#[test]
fn a_large_history_is_heard_in_parts() {
    let etcd = etcd_or_skip!("a large history of etcd");
    let client = client(&etcd);
    let before = put(&client, "big", "");
    // More than a message has.
    let text = "x".repeat(1 << 20);
    let mut last = before;
    let mut revisions = Vec::new();
    for _ in 0..20 {
        last = won(client.put_if(b"big", Expected::Revision(last), text.as_bytes()));
        revisions.push(last);
    }
    let (_watch, events) = watch(&client, "big", before);
    for expected in revisions {
        assert_eq!(change(&events).1, expected);
    }
}

#[test]
fn a_client_and_etcd_show_each_other_certificates() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = server::certificates(folder.path());
    let etcd = etcd_or_skip!("TLS with etcd", Security::Mutual(certificates.clone()));
    let with = |ca: &str, identity: Option<(&str, &str)>| {
        let mut options = options(&etcd);
        options.tls = Some(TlsFiles {
            ca: certificates.join(ca),
            identity: identity.map(|(certificate, key)| Identity {
                certificate: certificates.join(certificate),
                key: certificates.join(key),
            }),
        });
        Client::new(options)
    };
    let own = Some(("client.pem", "client.key"));
    let client = with("ca.pem", own).unwrap();
    let before = put(&client, "a", "1");
    let (_watch, events) = watch(&client, "a", before);
    let next = put(&client, "a", "2");
    assert_eq!(change(&events), ("+a 2".to_owned(), next));
    // Of another authority: seen before anything is sent.
    let distrusts = with("other.pem", own).unwrap();
    let written = distrusts.put_if(b"a", Expected::Absent, b"");
    assert!(
        matches!(written, Err(Error::NoAnswer { .. })),
        "{written:?}"
    );
    // Without showing anything, or with another's certificate: etcd says so later.
    for identity in [None, Some(("other.pem", "other.key"))] {
        let distrusted = with("ca.pem", identity).unwrap();
        let read = distrusted.get(b"a");
        assert!(matches!(read, Err(Error::NoAnswer { .. })), "{read:?}");
        let written = distrusted.put_if(b"a", Expected::Absent, b"");
        assert!(matches!(written, Err(Error::Unknown { .. })), "{written:?}");
    }
    for (ca, identity) in [
        ("ca.pem", Some(("client.pem", "other.key"))),
        ("ca.pem", Some(("client.key", "client.key"))),
        ("ca.pem", Some(("client.pem", "client.pem"))),
        ("client.key", own),
        ("garbage.pem", own),
    ] {
        assert!(
            matches!(with(ca, identity), Err(Error::Pem { .. })),
            "{ca} {identity:?}"
        );
    }
    assert!(matches!(with("absent.pem", own), Err(Error::File { .. })));
    let mut plain = Options::new("http://a:1".parse().unwrap());
    plain.tls = Some(TlsFiles {
        ca: certificates.join("ca.pem"),
        identity: None,
    });
    assert!(matches!(Client::new(plain), Err(Error::Endpoints { .. })));
}

fn as_user(etcd: &Etcd, name: &str, password: &str) -> Client {
    let mut options = options(etcd);
    options.user = Some(User {
        name: name.to_owned(),
        password: password.to_owned(),
    });
    Client::new(options).expect("options")
}

#[test]
fn a_user_may_do_what_the_role_allows() {
    let mut etcd = etcd_or_skip!("users of etcd");
    for (path, request) in [
        (
            "user/add",
            r#"{"name":"root","password":"secret"}"#.to_owned(),
        ),
        ("user/grant", r#"{"user":"root","role":"root"}"#.to_owned()),
        (
            "user/add",
            r#"{"name":"node","password":"word"}"#.to_owned(),
        ),
        ("role/add", r#"{"name":"nodes"}"#.to_owned()),
        (
            "role/grant",
            format!(
                r#"{{"name":"nodes","perm":{{"permType":"READWRITE","key":"{}","range_end":"{}"}}}}"#,
                base64("n/"),
                base64("n0"),
            ),
        ),
        ("user/grant", r#"{"user":"node","role":"nodes"}"#.to_owned()),
        ("auth/enable", "{}".to_owned()),
    ] {
        let path = match path {
            "auth/enable" => "/v3/auth/enable".to_owned(),
            path => format!("/v3/auth/{path}"),
        };
        // The role root is there in some versions already.
        etcd.ask(&path, &request)
            .unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let node = as_user(&etcd, "node", "word");
    let before = put(&node, "n/1", "a");
    let (_watch, events) = watch(&node, "n/", before);
    let next_revision = put(&node, "n/1", "b");
    assert_eq!(change(&events), ("+n/1 b".to_owned(), next_revision));
    assert!(matches!(
        node.get(b"other"),
        Err(Error::Refused { code: 7, .. })
    ));
    let (_denied, denials) = watch(&node, "other", Revision(1));
    assert!(matches!(next(&denials), Event::Away(Error::Refused { .. })));
    for stranger in [as_user(&etcd, "node", "wrong"), client(&etcd)] {
        let refused = stranger.get(b"n/1");
        assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    }
    // Tokens go with the process that gave them.
    etcd.kill();
    assert!(matches!(next(&events), Event::Away(_)));
    etcd.restart();
    assert!(matches!(next(&events), Event::Back));
    let last = put(&node, "n/1", "c");
    assert_eq!(change(&events), ("+n/1 c".to_owned(), last));
    let root = as_user(&etcd, "root", "secret");
    put(&root, "other", "");
}

#[test]
fn what_waits_for_etcd_ends_when_it_is_dropped() {
    let etcd = etcd_or_skip!("ends of watches of etcd");
    let client = client(&etcd);
    for _ in 0..10 {
        let (watch, events) = watch(&client, "", Revision(1));
        let key = put(&client, "x", "");
        while change(&events).1 != key {}
        drop(watch);
        let over = events.recv_timeout(Duration::ZERO);
        assert!(matches!(over, Err(mpsc::RecvTimeoutError::Disconnected)));
    }
}
