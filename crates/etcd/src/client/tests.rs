//! What does a client make of answers in parts?

use crate::testing::{Fake, LONG, Reply, client_of};
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
    let swapped = client.put_if(b"foo", Expected::Revision(Revision(3)), b"bar");
    assert_eq!(swapped.unwrap(), Swap::Won(Revision(5)));
    let swapped = client.delete_if(b"foo", Expected::Absent);
    assert_eq!(swapped.unwrap(), Swap::Won(Revision(5)));
    assert!(fake.asked()[0].body.contains(r#""mod_revision":"3""#));
    assert!(fake.asked()[1].body.contains(r#""mod_revision":"0""#));
}
