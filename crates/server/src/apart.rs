//! Where does a connection run while a long body comes in?
//!
//! To take megabytes from the network keeps a thread busy that others wait for: so a connection
//! moves to a runtime of its kind, whose thread has the priority of long work, until the body is
//! there, and then back to where light requests are read.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use crate::connections::Peer;
use crate::threads::HeavyPriority;

/// The runtime of connections with long bodies.
pub(crate) struct Apart(Option<Runtime>);

/// A connection, which can be polled on any thread.
pub(crate) type Connection = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Apart {
    /// # Errors
    /// What the operating system says.
    pub(crate) fn start(priority: HeavyPriority) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("long-bodies")
            .enable_all()
            .on_thread_start(move || priority.take_to_read())
            .build()?;
        Ok(Self(Some(runtime)))
    }

    pub(crate) fn handle(&self) -> Handle {
        let runtime = self.0.as_ref().expect("it is there until this is dropped");
        runtime.handle().clone()
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        // A runtime may not be waited for where others run.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Runs a connection to its end: here, and while a long body comes in on `apart`.
pub(crate) async fn run(mut connection: Connection, peer: Arc<Peer>, apart: Handle) {
    loop {
        let is_over = poll_fn(|context| match connection.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(true),
            Poll::Pending if peer.receives_long() => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        });
        if is_over.await {
            return;
        }
        let moved = Moved(apart.spawn(receive(connection, Arc::clone(&peer))));
        match moved.back().await {
            Some(back) => connection = back,
            None => return,
        }
    }
}

/// Runs a connection until its long body is there; `None` if it ended before.
async fn receive(mut connection: Connection, peer: Arc<Peer>) -> Option<Connection> {
    let is_over = poll_fn(|context| match connection.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(true),
        Poll::Pending if !peer.receives_long() => Poll::Ready(false),
        Poll::Pending => Poll::Pending,
    });
    match is_over.await {
        true => None,
        false => Some(connection),
    }
}

/// A connection that runs elsewhere; it ends when this is dropped.
struct Moved(JoinHandle<Option<Connection>>);

impl Moved {
    async fn back(mut self) -> Option<Connection> {
        match (&mut self.0).await {
            Ok(connection) => connection,
            Err(error) => {
                tracing::error!(%error, "a connection ended while a body came in");
                None
            }
        }
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::connections::Connections;

    fn thread() -> String {
        std::thread::current().name().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn a_connection_moves_while_a_long_body_comes_in() {
        let connections = Arc::new(Connections::new(1));
        let open = connections.open(connections.leave().await);
        let (peer, own) = (Arc::clone(&open.0), thread());
        let apart = Apart::start(HeavyPriority::Idle).expect("a thread");
        let threads = Arc::new(Mutex::new(Vec::new()));
        let (noted, other) = (Arc::clone(&threads), Arc::clone(&peer));
        let connection = async move {
            let note = || noted.lock().expect("no panic").push(thread());
            note();
            let long = other.begin_long();
            tokio::task::yield_now().await;
            note();
            // It sleeps where it is.
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            note();
            drop(long);
            tokio::task::yield_now().await;
            note();
        };
        run(Box::pin(connection), peer, apart.handle()).await;
        let threads = threads.lock().expect("no panic").clone();
        assert_eq!(threads, [&own, "long-bodies", "long-bodies", &own]);
    }

    #[tokio::test]
    async fn a_connection_that_is_given_up_ends_where_it_is() {
        let connections = Arc::new(Connections::new(1));
        let open = connections.open(connections.leave().await);
        let peer = Arc::clone(&open.0);
        let apart = Apart::start(HeavyPriority::Same).expect("a thread");
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let long = peer.begin_long();
        let connection = async move {
            std::future::pending::<()>().await;
            drop(sender);
        };
        let task = tokio::spawn(run(Box::pin(connection), peer, apart.handle()));
        tokio::task::yield_now().await;
        task.abort();
        assert!(receiver.await.is_err(), "it was dropped");
        drop(long);
    }
}
