//! What is known of one node, and what is under way to it?

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use super::link::Link;
use crate::cluster_told::ClusterTold;

/// How long a node may not have answered until requests that wait for it are given up: more than what a merge or a
/// busy machine takes.
const LOST_TIME: Duration = Duration::from_secs(5);

/// A node, by its URL.
pub(super) struct Node {
    pub(super) link: Arc<Link>,
    /// Whether the proxy was started with it; others are of a list that a node has.
    pub(super) is_given: bool,
    underway: AtomicUsize,
    known: Mutex<Known>,
    /// True while it is lost.
    lost: watch::Sender<bool>,
    /// It is to be asked at once.
    pub(super) ask_now: Notify,
}

/// What a node said when it was asked last.
#[derive(Clone, Debug)]
pub(super) enum Said {
    /// It was not asked yet.
    Nothing,
    Told(Arc<ClusterTold>),
    /// It is there, and does not say how: as it asks for credentials.
    Withheld(String),
    /// It is not there.
    Away(String),
}

struct Known {
    said: Said,
    /// Its name, once it was told.
    name: Option<String>,
    /// When it answered last, or was first heard of.
    answered: Instant,
}

impl Node {
    pub(super) fn new(link: Link, is_given: bool) -> Self {
        Self {
            link: Arc::new(link),
            is_given,
            underway: AtomicUsize::new(0),
            known: Mutex::new(Known {
                said: Said::Nothing,
                name: None,
                answered: Instant::now(),
            }),
            lost: watch::Sender::new(false),
            ask_now: Notify::new(),
        }
    }

    /// What people and metrics call it.
    pub(super) fn name(&self) -> String {
        let known = self.lock();
        let name = known.name.clone();
        name.unwrap_or_else(|| self.link.url().to_string())
    }

    /// Its name in the list of nodes, once it told it.
    pub(super) fn own_name(&self) -> Option<String> {
        self.lock().name.clone()
    }

    pub(super) fn said(&self) -> Said {
        self.lock().said.clone()
    }

    /// Notes what came of asking it.
    pub(super) fn note(&self, said: Said, now: Instant) {
        let mut known = self.lock();
        let is_away = matches!(said, Said::Away(_));
        match &said {
            Said::Told(told) => known.name = Some(told.node.clone()),
            Said::Nothing | Said::Withheld(_) | Said::Away(_) => {}
        }
        if !is_away {
            known.answered = now;
        }
        let is_lost = is_away && now.saturating_duration_since(known.answered) >= LOST_TIME;
        known.said = said;
        drop(known);
        if is_away {
            self.link.forget_idle();
        }
        self.lost.send_if_modified(|lost| {
            let changes = *lost != is_lost;
            *lost = is_lost;
            changes
        });
    }

    /// Done once the node has not answered for long.
    pub(super) fn until_lost(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut lost = self.lost.subscribe();
        async move {
            // A node that is not asked any more is in no list any more, and may still answer.
            if lost.wait_for(|lost| *lost).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Requests under way.
    pub(super) fn underway(&self) -> usize {
        self.underway.load(Relaxed)
    }

    /// Counts a request until what this returns is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> UnderwayAt {
        self.underway.fetch_add(1, Relaxed);
        UnderwayAt(Arc::clone(self))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().expect("nobody panics while it has it")
    }
}

/// A request under way to a node.
pub(super) struct UnderwayAt(Arc<Node>);

impl Drop for UnderwayAt {
    fn drop(&mut self) {
        self.0.underway.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_node_is_lost_once_it_has_not_answered_for_long() {
        let url = "http://127.0.0.1:1".parse().expect("a URL");
        let node = Node::new(Link::new(url, None), true);
        let (begun, away) = (Instant::now(), || Said::Away("refused".to_owned()));
        let told = Said::Told(Arc::new(ClusterTold {
            node: "a".to_owned(),
            ..ClusterTold::default()
        }));
        assert_eq!(node.name(), "http://127.0.0.1:1");
        node.note(told.clone(), begun);
        assert_eq!(node.name(), "a");
        let lost = node.until_lost();
        tokio::pin!(lost);
        node.note(away(), begun + LOST_TIME - Duration::from_millis(1));
        assert!(lost.as_mut().now_or_never().is_none());
        node.note(away(), begun + LOST_TIME);
        assert!(lost.as_mut().now_or_never().is_some());
        node.note(told, begun + LOST_TIME);
        assert!(node.until_lost().now_or_never().is_none());
    }

    #[test]
    fn requests_under_way_are_counted() {
        let url = "http://127.0.0.1:1".parse().expect("a URL");
        let node = Arc::new(Node::new(Link::new(url, None), true));
        let (one, other) = (node.begin(), node.begin());
        assert_eq!(node.underway(), 2);
        drop(one);
        drop(other);
        assert_eq!(node.underway(), 0);
    }
}
