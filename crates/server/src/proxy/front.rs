//! How are clients' connections accepted and served? As those of a server, by the same means.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::gateway::{Gateway, Left};
use crate::connections::{Activity, Connections, Open};
use crate::presence::Attended;
use crate::queries::Client;
use crate::server::{LEAVE_GRACE, MIN_HEADER_BYTES, Secure, accept, bound_unsent, sleep_until};
use crate::stall::StallGuard;

/// The largest head of a request, in bytes.
const HEADER_BYTES: usize = 64 << 10;

/// Serves clients until `shutdown` is done, and lets requests under way end for a while.
pub(super) async fn serve(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    mut shutdown: Pin<&mut (dyn Future<Output = ()> + Send + '_)>,
) {
    let connections = Arc::new(Connections::new(gateway.config.max_connections));
    let (stop, stopping) = watch::channel(());
    let mut tasks = JoinSet::new();
    loop {
        let (stream, address, leave) = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &connections) => accepted,
        };
        let open = connections.open(leave);
        let gateway = Arc::clone(&gateway);
        tasks.spawn(connection(
            gateway,
            (stream, address),
            open,
            stopping.clone(),
        ));
        while tasks.try_join_next().is_some() {}
    }
    drop(listener);
    drop(stop);
    let drained = async { while tasks.join_next().await.is_some() {} };
    let grace = gateway.config.shutdown_grace;
    if tokio::time::timeout(grace, drained).await.is_err() {
        let connections = tasks.len();
        tracing::warn!(connections, "requests did not end in time; cut");
        tasks.shutdown().await;
    }
}

async fn connection(
    gateway: Arc<Gateway>,
    (stream, address): (TcpStream, SocketAddr),
    open: Open,
    mut stopping: watch::Receiver<()>,
) {
    let _connected = gateway.forwarder.metrics.connected();
    let peer = Arc::clone(&open.0);
    let client = Arc::new(Client::new(address));
    // Answers are written whole, or as they come.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection was gone at once");
        return;
    }
    bound_unsent(&stream);
    let stream = StallGuard::new(stream, gateway.config.write_timeout);
    let secure = Secure {
        tls: gateway.config.tls.clone(),
        limit: gateway.config.idle_timeout,
    };
    let Some(wire) = secure.wire(stream, &peer, &mut stopping).await else {
        return;
    };
    let io = TokioIo::new(Attended::new(wire, &peer, &client));
    let left = Arc::new(Left::default());
    let (answering, asking, leaving) = (Arc::clone(&gateway), Arc::clone(&peer), Arc::clone(&left));
    let served = builder(gateway.config.idle_timeout).serve_connection(
        io,
        service_fn(move |request| {
            let (gateway, left) = (Arc::clone(&answering), Arc::clone(&leaving));
            let underway = asking.begin(request.version());
            let peer = Arc::clone(&asking);
            async move {
                let response = gateway.respond(request, &peer, &left).await;
                Ok::<_, Infallible>(response.map(|answer| answer.attended(underway)))
            }
        }),
    );
    let served = served.with_upgrades();
    tokio::pin!(served);
    let mut serving = true;
    // Set once the connection is to give way to another.
    let mut leave_at = None;
    let ended = loop {
        tokio::select! {
            biased;
            ended = served.as_mut() => break ended,
            () = peer.until_told_to_leave(), if leave_at.is_none() => {
                leave_at = Some(tokio::time::Instant::now() + LEAVE_GRACE);
                served.as_mut().graceful_shutdown();
            }
            // Half a head, or an answer that the client does not take.
            () = sleep_until(leave_at), if leave_at.is_some() => {
                if peer.activity() == Activity::Idle {
                    tracing::debug!(%address, "cut to give way to another");
                    return;
                }
                leave_at = Some(tokio::time::Instant::now() + LEAVE_GRACE);
            }
            // Nothing is ever sent: this is the sender's end.
            _ = stopping.changed(), if serving => {
                serving = false;
                served.as_mut().graceful_shutdown();
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
    if let Some(tunnel) = left.take() {
        tokio::select! {
            () = tunnel.run(&peer) => {}
            _ = stopping.changed(), if serving => {}
        }
    }
}

fn builder(idle_timeout: Duration) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(idle_timeout)
        // The end of what a client sends is not its own end: see `presence`.
        .half_close(true)
        .max_buf_size(HEADER_BYTES.max(MIN_HEADER_BYTES));
    http
}
