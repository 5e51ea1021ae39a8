//! Is every change heard once, whatever the server does, and does a watch end at once?

use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use super::*;
use crate::Options;
use crate::testing::{Fake, LONG, NEVER, Reply, SOON, closed_port, streamed};

const CREATED: &str = r#"{"result":{"header":{"revision":"9"},"created":true}}"#;

fn put(revision: u64) -> String {
    format!(
        r#"{{"result":{{"header":{{}},"events":[{{"kv":{{"key":"YQ==","mod_revision":"{revision}","version":"1"}}}}]}}}}"#
    )
}

/// A watch of all keys after revision 1, for which silence is over soon.
fn watch(endpoints: &[String], quiet: Duration) -> (Watch, Receiver<Event>) {
    let mut options = Options::new(endpoints.join(",").parse().unwrap());
    options.timeout = NEVER;
    let transport = Transport::new(options).unwrap();
    let (heard, events) = mpsc::channel();
    let watch = Watch::start(&transport, b"", Revision(1), quiet, move |event| {
        // The test may have heard enough.
        let _enough = heard.send(event);
    });
    (watch.unwrap(), events)
}

fn next(events: &Receiver<Event>) -> Event {
    events.recv_timeout(LONG).expect("an event")
}

#[track_caller]
fn expect_put(events: &Receiver<Event>, expected: u64) {
    match next(events) {
        Event::Put { key, value } => {
            assert_eq!((&key[..], value.revision), (&b"a"[..], Revision(expected)));
        }
        other => panic!("{other:?}"),
    }
}

fn starts(fake: &Fake) -> Vec<String> {
    let asked = fake.asked();
    let start = |body: &str| {
        let start = body.split(r#""start_revision":""#).nth(1).unwrap();
        start.split('"').next().unwrap().to_owned()
    };
    asked.iter().map(|one| start(&one.body)).collect()
}

#[test]
fn a_broken_stream_goes_on_after_the_last_event_without_being_away() {
    let (two, three, four) = (put(2), put(3), put(4));
    let fake = Fake::new([
        Reply::Raw(streamed(&[CREATED, &two, &three])),
        Reply::Raw(streamed(&[CREATED, &four[..20]])),
        Reply::Raw(streamed(&[CREATED, "{\"result\":{}}", "garbage"])),
        Reply::Held(streamed(&[CREATED, "", &four])),
    ]);
    let (_watch, events) = watch(&[fake.address()], NEVER);
    for revision in [2, 3, 4] {
        expect_put(&events, revision);
    }
    assert_eq!(starts(&fake), ["2", "4", "4", "4"]);
}

#[test]
fn a_silent_connection_is_replaced() {
    let two = put(2);
    let fake = Fake::new([
        Reply::Held(streamed(&[CREATED])),
        // A message that never ends.
        Reply::Held(streamed(&[CREATED, &two, CREATED])[..230].to_vec()),
        Reply::Held(streamed(&[CREATED, &two])),
    ]);
    let (_watch, events) = watch(&[fake.address()], SOON);
    expect_put(&events, 2);
    fake.wait_ended(2);
}

#[test]
fn who_cannot_be_reached_is_away_and_then_back() {
    let two = put(2);
    let no_leader =
        r#"{"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader"}}"#;
    let fake = Fake::new([
        Reply::Raw(Vec::new()),
        Reply::Status(503, "busy".to_owned()),
        Reply::Held(streamed(&[no_leader])),
        Reply::Raw(streamed(&[
            r#"{"result":{"created":true,"canceled":true,"cancel_reason":"x"}}"#,
        ])),
        Reply::Held(streamed(&[CREATED, &two])),
    ]);
    let (_watch, events) = watch(&[fake.address()], NEVER);
    let away = next(&events);
    assert!(
        matches!(&away, Event::Away(Error::NoAnswer { .. })),
        "{away:?}"
    );
    assert!(matches!(next(&events), Event::Back));
    expect_put(&events, 2);
}

#[test]
fn another_endpoint_is_watched_without_being_away() {
    let (two, three) = (put(2), put(3));
    let fakes = [
        Fake::new([
            Reply::Raw(streamed(&[CREATED, &two])),
            Reply::Raw(Vec::new()),
        ]),
        Fake::new([Reply::Held(streamed(&[CREATED, &three]))]),
    ];
    let (_watch, events) = watch(&fakes.each_ref().map(Fake::address), NEVER);
    expect_put(&events, 2);
    expect_put(&events, 3);
}

#[test]
fn what_is_compacted_is_the_last_event() {
    let canceled = r#"{"result":{"header":{},"canceled":true,"compact_revision":"30"}}"#;
    let fake = Fake::new([Reply::Held(streamed(&[CREATED, canceled]))]);
    let (_watch, events) = watch(&[fake.address()], NEVER);
    assert!(matches!(next(&events), Event::Compacted(Revision(30))));
    let ended = events.recv_timeout(LONG);
    assert!(matches!(ended, Err(mpsc::RecvTimeoutError::Disconnected)));
}

#[test]
fn a_message_without_end_is_read_up_to_the_bound() {
    let two = put(2);
    let long = "x".repeat(MOST_ANSWER_BYTES + (1 << 20));
    let fake = Fake::new([
        Reply::Held(streamed(&[CREATED, &long])),
        Reply::Held(streamed(&[CREATED, &two])),
    ]);
    let (_watch, events) = watch(&[fake.address()], NEVER);
    expect_put(&events, 2);
}

#[test]
fn a_watch_that_is_not_allowed_is_away_for_that_reason() {
    let denied = r#"{"result":{"created":true,"canceled":true,"cancel_reason":"etcdserver: permission denied"}}"#;
    let fake = Fake::new([Reply::Raw(streamed(&[denied]))]);
    let (_watch, events) = watch(&[fake.address()], NEVER);
    let away = next(&events);
    assert!(
        matches!(&away, Event::Away(Error::Refused { code: 7, .. })),
        "{away:?}"
    );
}

#[test]
fn a_watch_ends_at_once_wherever_it_waits() {
    let nobody = format!("http://127.0.0.1:{}", closed_port());
    let silent = Fake::new([Reply::Held(Vec::new())]);
    let watched = Fake::new([Reply::Held(streamed(&[CREATED]))]);
    for (endpoint, fake) in [
        (nobody, None),
        (silent.address(), Some(&silent)),
        (watched.address(), Some(&watched)),
    ] {
        let (watch, events) = watch(&[endpoint], NEVER);
        match fake {
            Some(fake) => fake.wait_asked(1),
            None => assert!(matches!(next(&events), Event::Away(_))),
        }
        let (ended, is_ended) = mpsc::channel();
        std::thread::spawn(move || {
            drop(watch);
            ended.send(()).expect("it is waited for");
        });
        is_ended.recv_timeout(LONG).expect("it ends");
        // The thread is gone, and with it what it calls.
        assert!(matches!(
            events.try_recv(),
            Err(mpsc::TryRecvError::Disconnected)
        ));
        if let Some(fake) = fake {
            fake.wait_ended(1);
        }
    }
}

#[test]
fn a_watch_may_be_dropped_by_what_it_calls() {
    let two = put(2);
    let fake = Fake::new([Reply::Held(streamed(&[CREATED, &two]))]);
    let mut options = Options::new(fake.address().parse().unwrap());
    options.timeout = NEVER;
    let transport = Transport::new(options).unwrap();
    let (give, take) = mpsc::channel::<Watch>();
    let (ended, is_ended) = mpsc::channel::<()>();
    let watch = Watch::start(&transport, b"", Revision(1), NEVER, move |_| {
        let _alive = &ended;
        drop(take.recv());
    });
    give.send(watch.unwrap()).unwrap();
    let over = is_ended.recv_timeout(LONG);
    assert_eq!(over, Err(mpsc::RecvTimeoutError::Disconnected));
}
