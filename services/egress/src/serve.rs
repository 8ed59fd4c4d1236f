//! Assembly of the egress proxy, and its shutdown.

use std::{sync::Arc, time::Duration};

use bootstrap::{
    health::ServiceHealth,
    http::{self, ListenerTls},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    config::Config,
    proxy::{EgressProxy, TimeLimits},
    resolve::{HostResolver, SystemResolver},
    session_endpoint,
};

/// Concurrent connections that have not become sessions.
const MAX_CONNECTIONS: usize = 1024;
/// Concurrent connections of one address. Commands of an executor can reach this listener and must not exhaust it for
/// other executors.
const MAX_PER_ADDRESS: usize = 256;
// Time for canceled sessions to end. Their tasks only have to notice the token.
const CUT_LIMIT: Duration = Duration::from_secs(2);

/// Runs the egress proxy until shutdown. Requests and tunnels in progress then have 15 s to end.
///
/// # Errors
/// A wrong setting, or TLS that cannot be set up.
pub async fn serve_proxy(
    config: Config,
    listener: TcpListener,
    shutdown: CancellationToken,
) -> anyhow::Result<()> {
    serve_with(
        config,
        listener,
        shutdown,
        Arc::new(SystemResolver),
        TimeLimits::default(),
    )
    .await
}

/// Runs the proxy with another resolver and other limits.
///
/// # Errors
/// The errors of [`serve_proxy`].
pub async fn serve_with(
    config: Config,
    listener: TcpListener,
    shutdown: CancellationToken,
    resolver: Arc<dyn HostResolver>,
    limits: TimeLimits,
) -> anyhow::Result<()> {
    let health = ServiceHealth::new();
    let proxy = Arc::new(EgressProxy::new(
        &config.egress,
        resolver,
        limits,
        shutdown.clone(),
    )?);
    let router = session_endpoint::build_router(Arc::clone(&proxy)).merge(health.router());
    let secure = ListenerTls::of(config.tls.as_ref(), health.router())?;
    health.set_ready(true);
    tracing::info!("egress ready");
    let bounds = http::ListenerLimits {
        connections: MAX_CONNECTIONS,
        per_address: MAX_PER_ADDRESS,
        head: limits.header,
        drain: limits.drain,
        ..http::ListenerLimits::default()
    };
    let mut ended = Box::pin(async {
        http::serve_https(listener, router, secure, bounds, shutdown.clone()).await;
        // Sessions come last, because a connection can become a session until the listener has ended.
        proxy.sessions.close();
        proxy.sessions.wait().await;
    });
    let over = async {
        shutdown.cancelled().await;
        health.set_ready(false);
        tokio::time::sleep(limits.drain).await;
    };
    tokio::select! {
        () = &mut ended => return Ok(()),
        () = over => {}
    }
    tracing::info!(sessions = proxy.sessions.len(), "sessions cut off");
    proxy.cut.cancel();
    // A timeout is not an error: the process ends anyway.
    let _ = tokio::time::timeout(CUT_LIMIT, ended).await;
    Ok(())
}
