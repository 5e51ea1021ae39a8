//! What does a client make of answers in parts, and of a lease that ends?

use std::sync::mpsc;
use std::time::Duration;

use crate::testing::{Fake, LONG, Reply, client_of, streamed};
use crate::wire::encode;
use crate::{Client, Error, Expected, Revision, Swap};

fn json(text: &str) -> Reply {
    Reply::Json(text.to_owned())
}

fn page(keys: &[&str], more: bool) -> Reply {
    let entries: Vec<String> = keys
        .iter()
        .map(|key| {
            let key = encode(key.as_bytes());
            format!(r#"{{"key":"{key}","mod_revision":"3","version":"1"}}"#)
        })
        .collect();
    let entries = entries.join(",");
    Reply::Json(format!(
        r#"{{"header":{{"revision":"9"}},"more":{more},"kvs":[{entries}]}}"#
    ))
}

fn compacted() -> Reply {
    let text = r#"{"message":"etcdserver: mvcc: required revision has been compacted","code":11}"#;
    Reply::Status(400, text.to_owned())
}

fn client(fake: &Fake) -> Client {
    client_of(&[fake.address()], LONG)
}

#[test]
fn a_list_is_read_in_pages_of_one_revision() {
    let fake = Fake::new([page(&["a1", "a2"], true), page(&["a3"], false)]);
    let listing = client(&fake).get_all(b"a").unwrap();
    let keys: Vec<&[u8]> = listing.entries.iter().map(|(key, _)| &key[..]).collect();
    assert_eq!(keys, [b"a1", b"a2", b"a3"]);
    assert_eq!(listing.revision, Revision(9));
    let asked = fake.asked();
    assert!(asked[0].body.contains(r#""revision":"0""#));
    assert!(asked[1].body.contains(r#""revision":"9""#));
    assert!(asked[1].body.contains(&encode(b"a2\0")));
}

#[test]
fn a_list_whose_revision_is_forgotten_is_begun_anew() {
    let fake = Fake::new([page(&["a1"], true), compacted(), page(&["a1", "a2"], false)]);
    assert_eq!(client(&fake).get_all(b"a").unwrap().entries.len(), 2);
    let always = Fake::new([compacted()]);
    let refused = client(&always).get_all(b"a");
    assert!(matches!(refused, Err(Error::Refused { code: 11, .. })));
}

#[test]
fn a_page_that_is_too_large_is_asked_for_with_fewer_keys() {
    let large = [
        &b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"[..],
        &vec![b' '; 17 << 20],
    ];
    let large = Reply::Raw(large.concat());
    let fake = Fake::new([large.clone(), page(&["a1"], false)]);
    assert_eq!(client(&fake).get_all(b"a").unwrap().entries.len(), 1);
    assert!(fake.asked()[0].body.contains(r#""limit":"256""#));
    assert!(fake.asked()[1].body.contains(r#""limit":"128""#));
    let always = Fake::new([large]);
    let refused = client(&always).get_all(b"a");
    assert!(matches!(refused, Err(Error::TooLarge { .. })));
    assert_eq!(always.asked().len(), 9);
}

#[test]
fn a_list_that_does_not_go_on_is_malformed() {
    for reply in [
        page(&[], true),
        page(&["a2", "a1"], false),
        page(&["a1", "a1"], false),
        page(&["b"], false),
    ] {
        let fake = Fake::new([reply]);
        let refused = client(&fake).get_all(b"a");
        assert!(
            matches!(refused, Err(Error::NoAnswer { .. })),
            "{refused:?}"
        );
    }
    // The same page again and again.
    let fake = Fake::new([page(&["a1"], true)]);
    assert!(client(&fake).get_all(b"a").is_err());
    assert_eq!(fake.asked().len(), 2);
}

#[test]
fn a_comparison_names_the_revision_that_is_expected() {
    let won = r#"{"header":{"revision":"5"},"succeeded":true}"#;
    let fake = Fake::new([json(won)]);
    let client = client(&fake);
    let swapped = client.put_if(b"foo", Expected::Revision(Revision(3)), b"bar", None);
    assert_eq!(swapped.unwrap(), Swap::Won(Revision(5)));
    let swapped = client.delete_if(b"foo", Expected::Absent);
    assert_eq!(swapped.unwrap(), Swap::Won(Revision(5)));
    assert!(fake.asked()[0].body.contains(r#""mod_revision":"3""#));
    assert!(fake.asked()[1].body.contains(r#""mod_revision":"0""#));
}

#[test]
fn a_lease_is_lost_once_etcd_says_so_or_says_nothing() {
    let granted = json(r#"{"header":{},"ID":"7","TTL":"1"}"#);
    let gone = Reply::Json(r#"{"result":{"header":{},"ID":"7"}}"#.to_owned());
    let silent = Reply::Held(streamed(&[]));
    for reply in [gone, Reply::Raw(Vec::new()), silent, json("[]")] {
        let fake = Fake::new([granted.clone(), reply]);
        let (lost, is_lost) = mpsc::channel();
        let lease = client(&fake).lease(Duration::from_secs(1), move || {
            lost.send(()).expect("it is waited for");
        });
        let lease = lease.unwrap();
        assert_eq!(lease.id(), 7);
        is_lost.recv_timeout(LONG).expect("it is lost");
        assert!(fake.asked()[1].path.ends_with("/keepalive"));
        drop(fake);
    }
}

#[test]
fn a_lease_that_is_dropped_is_revoked_and_not_lost() {
    let kept = json(r#"{"ID":"7","TTL":"90","result":{"ID":"7","TTL":"90"}}"#);
    let fake = Fake::new([kept]);
    let (lost, is_lost) = mpsc::channel::<()>();
    let lease = client(&fake).lease(Duration::from_millis(89_001), move || drop(lost));
    drop(lease.unwrap());
    assert_eq!(is_lost.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    let asked = fake.asked();
    assert!(asked[0].body.contains(r#""90""#));
    assert!(asked[1].path.ends_with("/revoke") && asked[1].body.contains(r#""7""#));
}

#[test]
fn a_lease_without_number_or_time_is_refused() {
    for text in [
        "{}",
        r#"{"ID":"7"}"#,
        r#"{"TTL":"1"}"#,
        r#"{"ID":"-7","TTL":"1"}"#,
    ] {
        let fake = Fake::new([json(text)]);
        assert!(client(&fake).lease(LONG, || ()).is_err(), "{text}");
    }
}
