//! `jindou proxy`: one address for the nodes of a cluster, until Ctrl-C.

use anyhow::{Context, bail};
use jindou_server::{NodesFound, Proxy, ProxyConfig, Tls, room_for_connections};
use ureq::http::HeaderValue;

use super::serve::cannot_listen;
use super::stream::{authorization, trust};
use crate::access_args::is_loopback;
use crate::interrupt::{Signals, end_at_once};
use crate::proxy_args::ProxyArguments;

/// Bodies of the largest size that are held at once.
const HELD_BODIES: usize = 64;
/// Files that the connections to nodes take, for each of a client.
const FILES_A_CLIENT: usize = 2;

/// # Errors
/// An address, a certificate or credentials that cannot be used.
pub(crate) fn run(arguments: &ProxyArguments) -> anyhow::Result<()> {
    check_open(arguments)?;
    let config = config(arguments)?;
    let scheme = match config.tls {
        Some(_) => "https",
        None => "http",
    };
    let runtime = jindou_server::runtime().context("cannot start the proxy's threads")?;
    runtime.block_on(async {
        let signals = Signals::new().context("cannot watch for Ctrl-C")?;
        let proxy = Proxy::new(config);
        let listener = proxy.bind().map_err(cannot_listen)?;
        let address = listener.local_addr().context("cannot tell the address")?;
        for line in told(&proxy.until_asked().await) {
            note!("{line}");
        }
        note!(
            "a proxy at {scheme}://{address}/ (queries at /query, updates at /update); Ctrl-C ends"
        );
        proxy.serve(listener, stop(signals)).await;
        Ok(())
    })
}

fn config(arguments: &ProxyArguments) -> anyhow::Result<ProxyConfig> {
    let authorization = authorization(&arguments.identity);
    let authorization = authorization.map(|header| {
        let mut header = HeaderValue::try_from(header)?;
        header.set_sensitive(true);
        anyhow::Ok(header)
    });
    let tls = arguments
        .tls_certificate
        .as_ref()
        .zip(arguments.tls_key.as_ref());
    let tls = tls.map(|(certificate, key)| Tls::read(certificate, key));
    let body_bytes = usize::try_from(arguments.body_bytes).unwrap_or(usize::MAX);
    let room = room_for_connections() / FILES_A_CLIENT;
    Ok(ProxyConfig {
        address: arguments.bind,
        nodes: arguments.nodes.clone(),
        authorization: authorization.transpose().context("--user")?,
        trust: Some(trust(&arguments.identity)?),
        max_connections: arguments.connections.get().min(room.max(1)),
        timeout: arguments.timeout,
        body_bytes,
        all_body_bytes: body_bytes.saturating_mul(HELD_BODIES),
        tls: tls.transpose().context("--tls-certificate and --tls-key")?,
        ..ProxyConfig::default()
    })
}

/// Fails if the address can be reached from elsewhere, and nothing says that nodes ask for credentials.
fn check_open(arguments: &ProxyArguments) -> anyhow::Result<()> {
    let identity = &arguments.identity;
    let is_meant = arguments.insecure || identity.user.is_some() || identity.token.is_some();
    if is_meant || is_loopback(arguments.bind.ip()) {
        return Ok(());
    }
    bail!(
        "{} can be reached from other machines, and whoever reaches it may do everything at nodes that ask nobody for \
         credentials; where they do, give the proxy its own by --user or --token; otherwise listen at 127.0.0.1, or say \
         --insecure if that is meant",
        arguments.bind
    )
}

/// How the nodes are.
fn told(found: &NodesFound) -> Vec<String> {
    let there = match (&found.there[..], &found.leader) {
        ([], _) => "no node is there yet".to_owned(),
        (there, None) => format!("nodes that are there: {}", there.join(", ")),
        (there, Some(leader)) => {
            format!("nodes that are there: {}; {leader} leads", there.join(", "))
        }
    };
    let away = found.away.iter().map(|away| format!("away: {away}"));
    let silent = found.silent.iter();
    let silent = silent.map(|silent| format!("warning: {silent}; see --user and --token"));
    [there].into_iter().chain(away).chain(silent).collect()
}

/// Done at the first signal. A second one ends the process.
async fn stop(mut signals: Signals) {
    signals.next().await;
    note!("ending once the requests under way have; Ctrl-C again ends at once");
    tokio::spawn(async move {
        signals.next().await;
        end_at_once();
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream_args::IdentityArguments;

    fn arguments(bind: &str) -> ProxyArguments {
        ProxyArguments {
            nodes: vec!["http://a:1".parse().expect("a URL")],
            bind: bind.parse().expect("an address"),
            tls_certificate: None,
            tls_key: None,
            insecure: false,
            connections: std::num::NonZeroUsize::MIN,
            timeout: std::time::Duration::from_secs(1),
            body_bytes: 1,
            identity: IdentityArguments::default(),
        }
    }

    #[test]
    fn an_address_beyond_this_machine_needs_credentials_or_leave() {
        assert!(check_open(&arguments("127.0.0.1:1")).is_ok());
        let mut beyond = arguments("0.0.0.0:1");
        let said = check_open(&beyond).expect_err("it is open").to_string();
        assert!(
            said.contains("--insecure") && said.contains("--user"),
            "{said}"
        );
        beyond.insecure = true;
        assert!(check_open(&beyond).is_ok());
        beyond.insecure = false;
        beyond.identity.token = Some("x".to_owned());
        assert!(check_open(&beyond).is_ok());
    }
}
