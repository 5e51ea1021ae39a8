//! Which nodes are there, and how does each stand? Each is asked again and again, and all at once where one fails.
//!
//! Nodes are those that the proxy was given and, of the lists that these have, all others whose HTTP server is named
//! there. One that goes by two URLs is asked by the one that was given.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, StatusCode};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::config::ProxyConfig;
use super::headers::add_via;
use super::link::{Link, Unanswered};
use super::node::{Node, Said};
use super::outgoing::Outgoing;
use super::standing::{Standing, To};
use super::url::NodeUrl;
use crate::cluster::CLUSTER;
use crate::cluster_told::ClusterTold;
use crate::server::AbortOnDrop;

/// How long a node may take to say how it is.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// Intervals after which a node is asked again that does not say how it is: wrong credentials that are tried more often
/// would have it refuse those of clients, which come from the same address.
const WITHHELD_INTERVALS: u32 = 10;
/// The longest answer that is read.
const MOST_ANSWER_BYTES: usize = 4 << 20;
/// Nodes at most, whatever lists say.
const MOST_NODES: usize = 1024;

/// All nodes.
pub(super) struct Nodes {
    config: ProxyConfig,
    /// In the order in which they were heard of, those that were given first.
    all: Mutex<Vec<Arc<Node>>>,
    standing: ArcSwap<Standing>,
    turn: AtomicUsize,
    /// Nodes came or went, or were asked for the first time.
    changed: Notify,
}

impl Nodes {
    pub(super) fn new(config: ProxyConfig) -> Self {
        let mut given: Vec<NodeUrl> = Vec::new();
        for url in &config.nodes {
            if !given.contains(url) {
                given.push(url.clone());
            }
        }
        let node = |url| Arc::new(Node::new(Link::new(url, config.trust.clone()), true));
        let all: Vec<_> = given.into_iter().map(node).collect();
        Self {
            standing: ArcSwap::from_pointee(Standing::of(all.clone())),
            all: Mutex::new(all),
            turn: AtomicUsize::new(0),
            changed: Notify::new(),
            config,
        }
    }

    pub(super) fn standing(&self) -> Arc<Standing> {
        self.standing.load_full()
    }

    /// The next node that a request goes to, of those that were not tried.
    pub(super) fn choose(&self, to: To, tried: &[Arc<Node>]) -> Option<Arc<Node>> {
        self.standing.load().choose(to, tried, &self.turn)
    }

    /// The node that a URL is of, as it was given or as a list has it.
    pub(super) fn at(&self, url: &NodeUrl) -> Option<Arc<Node>> {
        let all = self.lock();
        if let Some(node) = all.iter().find(|node| node.link.url() == url) {
            return Some(Arc::clone(node));
        }
        let lists = all.iter().filter_map(|node| match node.said() {
            Said::Told(told) => Some(told),
            _ => None,
        });
        let name = lists.into_iter().find_map(|told| {
            let listed = told.nodes.iter();
            let mut listed = listed.filter(|one| url_of(one.http.as_deref()).as_ref() == Some(url));
            listed.next().map(|one| one.name.clone())
        })?;
        let node = all
            .iter()
            .find(|node| node.own_name().as_ref() == Some(&name));
        node.cloned()
    }

    /// Notes that a node failed, and has all asked.
    pub(super) fn failed(&self, node: &Arc<Node>, reason: String) {
        tracing::debug!(node = node.name(), reason, "a node failed");
        if self.take_in(node, Said::Away(reason)) {
            self.changed.notify_waiters();
        }
        for node in self.lock().iter() {
            node.ask_now.notify_one();
        }
    }

    /// Waits until all that were given were asked, and those that they name.
    pub(super) async fn until_asked(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // From here on no change is missed.
            changed.as_mut().enable();
            let is_asked = |node: &Arc<Node>| !matches!(node.said(), Said::Nothing);
            if self.lock().iter().all(is_asked) {
                return;
            }
            changed.await;
        }
    }

    /// Asks all nodes, for ever.
    pub(super) async fn keep_asking(self: Arc<Self>) {
        let mut asking: Vec<(Arc<Node>, AbortOnDrop)> = Vec::new();
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let all = self.lock().clone();
            asking.retain(|(node, _)| all.iter().any(|one| Arc::ptr_eq(one, node)));
            for node in all {
                if !asking.iter().any(|(one, _)| Arc::ptr_eq(one, &node)) {
                    let task = Arc::clone(&self).keep_asking_one(Arc::clone(&node));
                    asking.push((node, AbortOnDrop::new(tokio::spawn(task))));
                }
            }
            changed.await;
        }
    }

    async fn keep_asking_one(self: Arc<Self>, node: Arc<Node>) {
        let mut is_first = true;
        loop {
            let said = self.ask(&node).await;
            let wait = match said {
                Said::Withheld(_) => self.config.interval * WITHHELD_INTERVALS,
                Said::Nothing | Said::Told(_) | Said::Away(_) => self.config.interval,
            };
            if self.take_in(&node, said) || is_first {
                self.changed.notify_waiters();
            }
            is_first = false;
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = node.ask_now.notified() => {}
            }
        }
    }

    async fn ask(&self, node: &Node) -> Said {
        let asked = timeout(ANSWER_TIME, ask(node, self.config.authorization.as_ref())).await;
        let late = || Said::Away(format!("no answer within {} s", ANSWER_TIME.as_secs()));
        asked.unwrap_or_else(|_| late())
    }

    /// Notes what came of asking a node, and looks at how all stand now; true if nodes came or went.
    fn take_in(&self, node: &Node, said: Said) -> bool {
        // Until all is done: nobody sees that all were asked before those are there that this one names, and nothing
        // older replaces what is newer.
        let mut all = self.lock();
        node.note(said, Instant::now());
        let changes = self.follow_lists(&mut all);
        self.standing.store(Arc::new(Standing::of(all.clone())));
        changes
    }

    /// Takes up nodes that lists name, and gives up those that no list does any more. While nobody answers, all stay.
    fn follow_lists(&self, all: &mut Vec<Arc<Node>>) -> bool {
        let said: Vec<Said> = all.iter().map(|node| node.said()).collect();
        let mut listed: BTreeMap<String, NodeUrl> = BTreeMap::new();
        for said in &said {
            let Said::Told(told) = said else { continue };
            for one in &told.nodes {
                if let Some(url) = url_of(one.http.as_deref()) {
                    listed.insert(one.name.clone(), url);
                }
            }
        }
        if !said.iter().any(|said| matches!(said, Said::Told(_))) {
            return false;
        }
        let given = all.iter().filter(|node| node.is_given);
        let given: BTreeSet<String> = given.filter_map(|node| node.own_name()).collect();
        listed.retain(|name, _| !given.contains(name));
        let before = all.len();
        let urls: BTreeSet<&NodeUrl> = listed.values().collect();
        all.retain(|node| node.is_given || urls.contains(node.link.url()));
        let mut changes = all.len() != before;
        for url in urls {
            let is_known = all.iter().any(|node| node.link.url() == url);
            if !is_known && all.len() < MOST_NODES {
                let link = Link::new(url.clone(), self.config.trust.clone());
                all.push(Arc::new(Node::new(link, false)));
                changes = true;
            }
        }
        changes
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Node>>> {
        self.all.lock().expect("nobody panics while it has it")
    }
}

fn url_of(http: Option<&str>) -> Option<NodeUrl> {
    http?.trim_end_matches('/').parse().ok()
}

/// Asks a node how it is, and how it has the others.
async fn ask(node: &Node, authorization: Option<&HeaderValue>) -> Said {
    let mut request = Request::new(Outgoing::empty());
    *request.uri_mut() = hyper::Uri::from_static(CLUSTER);
    let headers = request.headers_mut();
    if let Ok(host) = HeaderValue::try_from(node.link.url().authority()) {
        headers.insert(HOST, host);
    }
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(authorization) = authorization {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
    add_via(headers);
    let response = match node.link.send(request).await {
        Ok(response) => response,
        Err(Unanswered::Unsent(_, error)) => return Said::Away(error.to_string()),
        Err(Unanswered::Lost(error)) => return Said::Away(said_of(&error)),
        // It brings nothing.
        Err(Unanswered::Body) => return Said::Away("nothing could be sent".to_owned()),
    };
    let status = response.status();
    match status {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            return Said::Withheld(format!(
                "it does not say how it is to whom it does not know ({status})"
            ));
        }
        StatusCode::NOT_FOUND => return Said::Away("it is no node of a cluster".to_owned()),
        StatusCode::LOOP_DETECTED => return Said::Away("it is a proxy, and no node".to_owned()),
        // It is there, and has too much to do.
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            return Said::Withheld(format!("it answers {status}"));
        }
        status => return Said::Away(format!("it answers {status}")),
    }
    let body = http_body_util::Limited::new(response.into_body(), MOST_ANSWER_BYTES);
    match http_body_util::BodyExt::collect(body).await {
        Ok(whole) => match serde_json::from_slice::<ClusterTold>(&whole.to_bytes()) {
            Ok(told) if !told.node.is_empty() => Said::Told(Arc::new(told)),
            _ => Said::Away("it answers what no node does".to_owned()),
        },
        Err(error) => Said::Away(error.to_string()),
    }
}

/// An error of HTTP with its cause, which says more.
pub(super) fn said_of(error: &hyper::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(given: &[&str]) -> Nodes {
        Nodes::new(ProxyConfig {
            nodes: given
                .iter()
                .map(|url| url.parse().expect("a URL"))
                .collect(),
            ..ProxyConfig::default()
        })
    }

    fn urls(nodes: &Nodes) -> Vec<String> {
        let all = nodes.lock();
        all.iter().map(|node| node.link.url().to_string()).collect()
    }

    fn tell(nodes: &Nodes, number: usize, text: &str) {
        let told: ClusterTold = serde_json::from_str(text).expect("JSON");
        let node = Arc::clone(&nodes.lock()[number]);
        nodes.take_in(&node, Said::Told(told.into()));
    }

    const LIST: &str = r#""nodes":[{"name":"a","http":"http://a:1"},{"name":"b","http":"http://b:1/"},{"name":"c"}]"#;

    #[test]
    fn nodes_that_a_list_names_are_taken_up_and_given_up_with_it() {
        let nodes = nodes(&["http://x:1", "http://x:1"]);
        assert_eq!(urls(&nodes), ["http://x:1"]);
        tell(&nodes, 0, &format!(r#"{{"node":"a",{LIST}}}"#));
        assert_eq!(urls(&nodes), ["http://x:1", "http://b:1"], "x is a");
        let b = Arc::clone(&nodes.lock()[1]);
        nodes.failed(&b, "refused".to_owned());
        assert_eq!(urls(&nodes).len(), 2, "it may come back");
        let list = r#""nodes":[{"name":"a"},{"name":"d","http":"http://d:1"}]"#;
        tell(&nodes, 0, &format!(r#"{{"node":"a",{list}}}"#));
        assert_eq!(urls(&nodes), ["http://x:1", "http://d:1"]);
        let a = Arc::clone(&nodes.lock()[0]);
        nodes.failed(&a, "refused".to_owned());
        assert_eq!(urls(&nodes).len(), 2, "nobody says otherwise");
    }

    #[test]
    fn a_redirection_leads_to_a_node_by_the_list_too() {
        let nodes = nodes(&["http://x:1", "http://y:1"]);
        tell(&nodes, 0, &format!(r#"{{"node":"a",{LIST}}}"#));
        tell(&nodes, 1, &format!(r#"{{"node":"b",{LIST}}}"#));
        assert_eq!(urls(&nodes), ["http://x:1", "http://y:1"]);
        let at = |url: &str| {
            let node = nodes.at(&url.parse().expect("a URL"))?;
            Some(node.name())
        };
        assert_eq!(at("http://a:1").as_deref(), Some("a"));
        assert_eq!(at("http://b:1").as_deref(), Some("b"));
        assert_eq!(at("http://y:1").as_deref(), Some("b"));
        assert_eq!(at("http://elsewhere:1"), None);
    }
}
