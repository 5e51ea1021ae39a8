//! Is a change sent once, a read sent on, and nobody waited for?

use crate::testing::{Fake, LONG, Reply, SOON, client_of, closed_port, streamed};
use crate::{Cause, Client, Error, Expected, Options, Revision, Swap, User};

const NOTHING: &str = r#"{"header":{"revision":"4"}}"#;
const FOO: &str = r#"{"header":{"revision":"4"},"kvs":[{"key":"Zm9v","mod_revision":"4","version":"1","value":"YmFy"}],"count":"1"}"#;
const WON: &str =
    r#"{"header":{"revision":"5"},"succeeded":true,"responses":[{"response_put":{}}]}"#;

fn json(text: &str) -> Reply {
    Reply::Json(text.to_owned())
}

fn refusal(status: u16, code: u32, message: &str) -> Reply {
    let text = format!(r#"{{"error":"{message}","message":"{message}","code":{code}}}"#);
    Reply::Status(status, text)
}

fn put(client: &Client) -> Result<Swap, Error> {
    client.put_if(b"foo", Expected::Absent, b"bar")
}

/// Answers that are none, each with a wait that is long enough for it not to be cut.
fn broken() -> Vec<(&'static str, Reply)> {
    let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"header\"";
    let large = b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n";
    vec![
        ("hangs up", Reply::Raw(Vec::new())),
        ("is cut", Reply::Raw(cut.to_vec())),
        ("is cut in its head", Reply::Raw(b"HTTP/1.1 2".to_vec())),
        (
            "is no HTTP",
            Reply::Raw(b"\x15\x03\x01\0\x02\x02\x16".to_vec()),
        ),
        ("is no JSON", json("<html>")),
        ("is no answer", json("[]")),
        ("is not encoded", json(&FOO.replace("YmFy", "%"))),
        ("is of another", json(&FOO.replace("Zm9v", "YmFy"))),
        ("was never written", json(&FOO.replace("\"4\"", "\"0\""))),
        (
            "is too large",
            Reply::Raw([&large[..], &vec![b' '; 17 << 20]].concat()),
        ),
        ("is no etcd", Reply::Status(404, "Not Found".to_owned())),
        ("redirects", Reply::Status(307, String::new())),
        (
            "had no time",
            refusal(503, 14, "etcdserver: request timed out"),
        ),
        ("failed", refusal(500, 2, "context canceled")),
        ("never ends", Reply::Held(cut.to_vec())),
        ("says nothing", Reply::Held(Vec::new())),
    ]
}

#[test]
fn a_read_that_got_no_answer_is_sent_to_the_next_endpoint() {
    for (how, reply) in broken() {
        if how == "is too large" {
            continue;
        }
        let fakes = [Fake::new([reply]), Fake::new([json(FOO)])];
        let wait = if matches!(how, "never ends" | "says nothing") {
            SOON
        } else {
            LONG
        };
        let client = client_of(&fakes.each_ref().map(Fake::address), wait);
        let found = client.get(b"foo").expect(how).expect(how);
        assert_eq!(found.bytes, b"bar", "{how}");
        // The one that worked is the first now.
        client.get(b"foo").expect(how);
        assert_eq!(fakes[0].asked().len(), 1, "{how}");
        assert_eq!(fakes[1].asked().len(), 2, "{how}");
    }
}

#[test]
fn a_change_without_an_answer_is_unknown_and_not_sent_again() {
    for (how, reply) in broken() {
        if matches!(
            how,
            "is not encoded" | "is of another" | "was never written"
        ) {
            continue;
        }
        let fakes = [Fake::new([reply]), Fake::new([json(WON)])];
        let wait = if matches!(how, "never ends" | "says nothing") {
            SOON
        } else {
            LONG
        };
        let client = client_of(&fakes.each_ref().map(Fake::address), wait);
        let error = put(&client).expect_err(how);
        assert!(matches!(error, Error::Unknown { .. }), "{how}: {error:?}");
        assert_eq!(fakes[1].asked().len(), 0, "{how}");
        // Another endpoint is asked next.
        assert!(put(&client).is_ok(), "{how}");
    }
}

#[test]
fn a_change_that_cannot_have_been_handled_is_sent_to_the_next_endpoint() {
    let good = Fake::new([json(WON)]);
    let nobody = format!("http://127.0.0.1:{}", closed_port());
    let nowhere = "http://name.invalid:1".to_owned();
    let leaderless = Fake::new([refusal(503, 14, "etcdserver: no leader")]);
    for other in [nobody, nowhere, leaderless.address()] {
        let client = client_of(&[other, good.address()], LONG);
        assert_eq!(put(&client).unwrap(), Swap::Won(Revision(5)));
    }
    assert_eq!(leaderless.asked().len(), 1);
}

#[test]
fn without_any_endpoint_nothing_was_changed() {
    let nobody = || format!("http://127.0.0.1:{}", closed_port());
    let client = client_of(&[nobody(), nobody()], LONG);
    assert!(matches!(put(&client), Err(Error::NoAnswer { .. })));
    assert!(matches!(client.get(b"foo"), Err(Error::NoAnswer { .. })));
}

#[test]
fn a_refusal_is_the_answer() {
    let fakes = [
        Fake::new([refusal(400, 3, "etcdserver: request is too large")]),
        Fake::new([json(WON)]),
    ];
    let client = client_of(&fakes.each_ref().map(Fake::address), LONG);
    let error = put(&client).unwrap_err();
    assert!(
        matches!(&error, Error::Refused { code: 3, .. }),
        "{error:?}"
    );
    assert_eq!(fakes[1].asked().len(), 0);
}

#[test]
fn a_large_answer_to_a_read_is_an_error_of_its_own() {
    let bytes = [
        &b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"[..],
        &vec![b' '; 17 << 20],
    ];
    let fake = Fake::new([Reply::Raw(bytes.concat())]);
    let client = client_of(&[fake.address()], LONG);
    let limit = crate::MOST_ANSWER_BYTES;
    let error = client.get(b"foo").unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit_bytes } if limit_bytes == limit));
}

#[test]
fn a_refusal_with_trailers_leaves_the_connection_usable() {
    let text = r#"{"error":"etcdserver: permission denied","message":"etcdserver: permission denied","code":7}"#;
    let size = text.len();
    let head = "HTTP/1.1 403 Forbidden\r\nTrailer: Grpc-Trailer-Content-Type\r\nTransfer-Encoding: chunked";
    let tail = "0\r\nGrpc-Trailer-Content-Type: application/grpc\r\n\r\n";
    let bytes = format!("{head}\r\n\r\n{size:x}\r\n{text}\r\n{tail}");
    let fake = Fake::new([Reply::Held(bytes.into_bytes()), json(NOTHING)]);
    let client = client_of(&[fake.address()], LONG);
    let error = client.get(b"foo").unwrap_err();
    assert!(matches!(error, Error::Refused { code: 7, .. }), "{error:?}");
    assert_eq!(client.get(b"foo").unwrap(), None);
}

fn user_of(fake: &Fake) -> Client {
    let mut options = Options::new(fake.address().parse().unwrap());
    options.timeout = LONG;
    options.user = Some(User {
        name: "root".to_owned(),
        password: "secret".to_owned(),
    });
    Client::new(options).unwrap()
}

#[test]
fn a_token_is_asked_for_once_and_again_where_it_is_not_known() {
    let fake = Fake::new([
        json(r#"{"header":{},"token":"one"}"#),
        json(NOTHING),
        json(WON),
        refusal(401, 16, "etcdserver: invalid auth token"),
        json(r#"{"header":{},"token":"two"}"#),
        json(WON),
    ]);
    let client = user_of(&fake);
    client.get(b"foo").unwrap();
    for _ in 0..2 {
        assert_eq!(put(&client).unwrap(), Swap::Won(Revision(5)));
    }
    let asked = fake.asked();
    let paths: Vec<&str> = asked
        .iter()
        .map(|one| one.path.rsplit('/').next().unwrap())
        .collect();
    assert_eq!(
        paths,
        ["authenticate", "range", "txn", "txn", "authenticate", "txn"]
    );
    assert!(asked[3].headers.contains("authorization: one\r\n"));
    assert!(asked[5].headers.contains("authorization: two\r\n"));
    assert!(!asked[4].headers.contains("authorization"));
    assert!(asked[4].body.contains("\"secret\""));
}

#[test]
fn who_is_not_known_is_refused_and_nothing_is_unknown() {
    let wrong = "etcdserver: authentication failed, invalid user ID or password";
    let fake = Fake::new([refusal(400, 3, wrong)]);
    assert!(matches!(
        put(&user_of(&fake)),
        Err(Error::Refused { code: 3, .. })
    ));
    let silent = Fake::new([Reply::Raw(Vec::new())]);
    assert!(matches!(
        put(&user_of(&silent)),
        Err(Error::NoAnswer { .. })
    ));
    let strange = Fake::new([json(r#"{"token":"a\nb"}"#)]);
    assert!(put(&user_of(&strange)).is_err());
    let off = Fake::new([
        refusal(412, 9, "etcdserver: authentication is not enabled"),
        json(WON),
    ]);
    assert!(put(&user_of(&off)).is_ok());
}

#[test]
fn a_member_is_asked_not_to_wait_for_a_leader() {
    let fake = Fake::new([json(NOTHING)]);
    client_of(&[fake.address()], LONG).get(b"foo").unwrap();
    assert!(
        fake.asked()[0]
            .headers
            .contains("grpc-metadata-hasleader: true\r\n")
    );
}

#[test]
fn an_error_names_its_cause() {
    let fake = Fake::new([Reply::Held(streamed(&["{"]))]);
    let client = client_of(&[fake.address()], SOON);
    let Error::NoAnswer { source, .. } = client.get(b"foo").unwrap_err() else {
        panic!("it gave no answer");
    };
    assert!(matches!(source, Cause::Connection(_)));
    assert!(source.to_string().contains("timeout"), "{source}");
}
