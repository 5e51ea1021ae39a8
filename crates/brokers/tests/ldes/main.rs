//! Does a stream have each member of an event stream once, whatever fails meanwhile?

mod feed;

use std::collections::BTreeMap;
use std::path::Path;

use feed::{Feed, FeedPage, statements_of};
use jindou_brokers::{BrokerPolicy, Connection, Connectors, Refused, SourceStatus};
use jindou_engine::{
    AddressPolicy, Config, Database, MergePolicy, QueryResults, StreamDefinition, StreamStatus,
};

fn page(
    members: impl IntoIterator<Item = u32>,
    leads_to: &[usize],
    is_immutable: bool,
) -> FeedPage {
    FeedPage {
        members: members.into_iter().collect(),
        leads_to: leads_to.to_vec(),
        is_immutable,
        ..FeedPage::default()
    }
}

/// A database that reads an event stream.
struct Follower {
    database: Database,
    connectors: Connectors,
}

impl Follower {
    fn start(database: Database) -> Self {
        let connectors = Connectors::new(database.clone(), BrokerPolicy::None);
        connectors.start();
        Self {
            database,
            connectors,
        }
    }

    /// One with a stream that is stored, and all of whose tuples are facts.
    fn open(location: &Path, feed: &Feed, time: &str) -> Self {
        let mut config = Config::default();
        config.threads = 1;
        config.merge = MergePolicy::never();
        let database = Database::open_or_create(location, config).expect("it is whole");
        let definition = definition(feed, time, "durable");
        database
            .create_stream("s", definition)
            .expect("it is new, or alike");
        Self::start(database)
    }

    fn stream(&self) -> StreamStatus {
        self.database.stream("s").expect("it is there")
    }

    fn source(&self) -> SourceStatus {
        self.connectors.source("s").expect("it is there")
    }

    /// How often the stream had each member: a blank node is another one each time.
    fn members(&self) -> BTreeMap<String, usize> {
        let beat = self.database.heartbeat("s", 1 << 40);
        beat.expect("all is stored");
        let query = "PREFIX : <http://e/> SELECT ?m ?d \
                     { ?m :value ?v ; :at ?at ; :in ?b . ?b :deep ?d FILTER(?v = ?d) }";
        let QueryResults::Solutions(rows) = self.database.query(query).expect("it is sound") else {
            unreachable!("it is SELECT");
        };
        let mut members = BTreeMap::new();
        for row in rows {
            let row = row.expect("it is found");
            let member = row.get("m").expect("it is bound").to_string();
            *members.entry(member).or_default() += 1;
        }
        members
    }
}

fn definition(feed: &Feed, time: &str, durable: &str) -> StreamDefinition {
    let url = feed.address(0);
    let text = format!(
        r#"{{"iri":"http://e/s","time":"{time}","timeless":"all","lateness_ms":3600000,"durable":{},
            "source":{{"ldes":{{"url":"{url}","poll_ms":10}}}}}}"#,
        durable == "durable"
    );
    serde_json::from_str(&text).expect("it is a definition")
}

fn once(members: impl IntoIterator<Item = u32>) -> BTreeMap<String, usize> {
    let name = |member| (format!("<http://e/m{member}>"), 1);
    members.into_iter().map(name).collect()
}

/// A root that leads to two pages that never change and one that does; the second one is not there at first.
fn first_pages() -> Vec<FeedPage> {
    let mut second = page(20..29, &[], true);
    second.fails = 2;
    vec![
        page([1, 2], &[1, 2, 3], false),
        page(10..19, &[0, 1], true),
        second,
        page(30..33, &[0], false),
    ]
}

/// The last page goes on, never changes from then on, and leads to another one.
fn grow(pages: &mut Vec<FeedPage>) {
    pages[3] = page(30..39, &[4], true);
    // One that is on another page, too.
    pages.push(page([40, 41, 12], &[0, 5], false));
    pages.push(page([50], &[4], false));
}

#[test]
fn it_is_replicated_and_then_followed_each_member_once() {
    for time in ["event", "http://e/at", "arrival"] {
        let location = tempfile::tempdir().expect("a folder");
        let feed = Feed::serve(first_pages());
        let follower = Follower::open(location.path(), &feed, time);
        feed.wait("the page that fails", |asked| asked.sent.contains_key(&2));
        feed.settle(0);
        let first = [1, 2].into_iter().chain(10..19).chain(20..29).chain(30..33);
        assert_eq!(follower.source().messages, 23);
        feed.change(grow);
        feed.wait("a page that a page leads to", |asked| {
            asked.sent.contains_key(&5)
        });
        feed.settle(0);
        feed.change(|pages| pages[5].members.push(42));
        feed.settle(0);
        let all: Vec<u32> = first.chain(33..39).chain([40, 41, 42, 50]).collect();
        let statements: u64 = [(0, 2), (1, 9), (2, 9), (3, 9), (4, 2), (5, 2)]
            .map(|(page, members)| members * statements_of(page))
            .iter()
            .sum();
        let stream = follower.stream();
        assert_eq!((stream.tuples, stream.late), (statements, 0), "{time}");
        let source = follower.source();
        assert_eq!(source.connection, Connection::Connected, "{source:?}");
        assert_eq!((source.messages, source.refused), (all.len() as u64, 0));
        // Where the clock says when they come, the last ones wait for it.
        if time != "arrival" {
            assert_eq!(follower.members(), once(all), "{time}");
        }
        let asked = feed.asked();
        assert_eq!([1, 2].map(|page| asked.sent[&page]), [1, 1], "{asked:?}");
        assert!(asked.unchanged[&0] > 1, "{asked:?}");
        assert_eq!(asked.sent[&0], 1, "{asked:?}");
        let pages = source.pages.expect("it has some");
        assert_eq!((pages.done, pages.open, pages.waiting), (3, 3, 0));
    }
}

#[test]
fn each_member_is_there_once_wherever_the_database_is_closed() {
    for requests in 1..12 {
        let location = tempfile::tempdir().expect("a folder");
        let feed = Feed::serve(first_pages());
        let follower = Follower::open(location.path(), &feed, "event");
        feed.wait("some requests", |asked| asked.requests >= requests);
        follower.connectors.stop();
        drop(follower);
        feed.change(grow);
        let before = feed.asked().requests;
        let follower = Follower::open(location.path(), &feed, "event");
        feed.wait("some more", |asked| asked.requests >= before + requests);
        drop(follower);
        let follower = Follower::open(location.path(), &feed, "event");
        feed.wait("all pages", |asked| asked.sent.len() == 6);
        feed.settle(0);
        follower.database.cut_stream_log().expect("it is stored");
        drop(follower);
        let follower = Follower::open(location.path(), &feed, "event");
        feed.settle(0);
        let all = [1, 2].into_iter().chain(10..19).chain(20..29).chain(30..39);
        let all = all.chain([40, 41, 50]);
        assert_eq!(
            follower.members(),
            once(all),
            "closed after {requests} requests"
        );
        let sent = feed.asked().sent;
        // Once more at most where what was read was not part of the stream yet.
        assert!([1, 2].iter().all(|page| sent[page] <= 3), "{sent:?}");
        let pages = follower.source().pages.expect("it has some");
        assert_eq!((pages.done, pages.open, pages.waiting), (3, 3, 0));
    }
}

#[test]
fn the_event_stream_itself_tells_which_view_it_has() {
    let feed = Feed::serve(vec![
        page([], &[], false),
        page([1], &[2], false),
        page([2], &[], true),
    ]);
    let base = feed.base.clone();
    feed.change(|pages| {
        pages[0].text = Some(format!(
            "<{base}/feed> <https://w3id.org/tree#view> <{base}/1#view> , <{base}/7> ; \
             <https://w3id.org/ldes#timestampPath> <http://e/at> ."
        ));
        pages[1].text = Some(format!(
            "<{base}/feed> <https://w3id.org/tree#view> <{base}/1#view> ; \
             <https://w3id.org/tree#member> <http://e/m1> , <http://e/unsaid> , [] . \
             <http://e/m1> <http://e/value> 1 ; <http://e/at> 1000 ; <http://e/in> [ <http://e/deep> 1 ] . \
             <{base}/1> <https://w3id.org/tree#relation> [ <https://w3id.org/tree#node> <{base}/2> ] ."
        ));
    });
    let database = Database::new();
    database
        .create_stream("s", definition(&feed, "event", "no"))
        .expect("it is new");
    let follower = Follower::start(database);
    feed.settle(1);
    assert_eq!(follower.members(), once([1, 2]));
    let refused = follower.source().last_refused;
    let said: Vec<&str> = refused.iter().map(|refused| &*refused.error).collect();
    assert!(said[0].contains("no statements"), "{said:?}");
    assert!(refused[0].place.contains("http://e/unsaid"), "{refused:?}");
    assert!(!feed.asked().sent.contains_key(&7));
}

#[test]
fn only_pages_that_may_be_read_are_asked_for() {
    let other = Feed::serve(vec![page([9], &[], true)]);
    let feed = Feed::serve(vec![
        page([1], &[1, 2], false),
        page([2], &[], true),
        page([], &[], true),
    ]);
    feed.change(|pages| pages[2].redirects_to = Some(other.address(0)));
    let with = |addresses: AddressPolicy| {
        let mut config = Config::default();
        config.load_addresses = addresses;
        Database::with_config(config)
    };
    let database = with(AddressPolicy::None);
    let connectors = Connectors::new(database, BrokerPolicy::Any);
    let refused = definition(&feed, "event", "no").source;
    let refused = connectors.check_source(&refused.expect("it has one"));
    let refused = refused.expect_err("it may not be read");
    assert!(matches!(refused, Refused::Page { .. }));
    assert!(refused.to_string().contains("--allow-load"), "{refused}");
    let prefix = feed
        .base
        .parse()
        .expect("it is the beginning of an address");
    let database = with(AddressPolicy::Allowed([prefix].into()));
    database
        .create_stream("s", definition(&feed, "event", "no"))
        .expect("it is new");
    let follower = Follower::start(database);
    feed.settle(0);
    assert_eq!(follower.members(), once([1, 2]));
    let source = follower.source();
    assert_eq!(source.connection, Connection::Failed, "{source:?}");
    let error = source.error.expect("a page fails");
    assert!(
        error.contains(&feed.address(2)) && error.contains("may not be"),
        "{error}"
    );
    assert_eq!(other.asked().requests, 0);
}

#[test]
fn a_page_that_makes_no_sense_is_named_and_read_when_it_does() {
    let feed = Feed::serve(vec![page([1], &[1], false), page([2], &[], true)]);
    let base = feed.base.clone();
    let no_path = format!("<{base}/feed> <https://w3id.org/tree#member> <http://e/m1> .");
    for (wrong, part) in [
        ("no turtle at all".to_owned(), "1:"),
        (no_path, "ldes:timestampPath"),
    ] {
        let text = Some(wrong);
        feed.change(|pages| pages[0].text = text);
        let database = Database::new();
        database
            .create_stream("s", definition(&feed, "event", "no"))
            .expect("it is new");
        let follower = Follower::start(database);
        feed.settle(0);
        let source = follower.source();
        assert_eq!(source.connection, Connection::Failed, "{source:?}");
        let error = source.error.expect("it fails");
        assert!(
            error.contains(&feed.address(0)) && error.contains(part),
            "{error}"
        );
        feed.change(|pages| pages[0].text = None);
        feed.settle(0);
        feed.settle(0);
        assert_eq!(follower.members(), once([1, 2]));
        assert_eq!(follower.source().error, None);
    }
}
