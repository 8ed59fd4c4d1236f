//! Puts the egress proxy together and runs it until shutdown.

use std::{sync::Arc, time::Duration};

use bootstrap::{
    health::Health,
    http::{self, Secure},
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    config::Config,
    door,
    proxy::{Limits, Proxy},
    resolve::{Resolver, SystemResolver},
};

/// Connections that have not become sessions, at a time.
const MAX_CONNECTIONS: usize = 1024;
/// Those of one executor: its commands may reach this listener, and must not keep other executors out.
const MAX_PER_ADDRESS: usize = 256;
/// How long what was cut may take to notice.
const CUT_LIMIT: Duration = Duration::from_secs(2);

/// Runs the egress proxy until shutdown; what is under way then has 15 s to end.
///
/// # Errors
/// When a setting is wrong or TLS cannot be set up.
pub async fn serve(config: Config, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
    serve_with(
        config,
        listener,
        shutdown,
        Arc::new(SystemResolver),
        Limits::default(),
    )
    .await
}

/// The same with another way to look names up, and other limits.
///
/// # Errors
/// As for [`serve`].
pub async fn serve_with(
    config: Config,
    listener: TcpListener,
    shutdown: CancellationToken,
    resolver: Arc<dyn Resolver>,
    limits: Limits,
) -> anyhow::Result<()> {
    let health = Health::new();
    let proxy = Arc::new(Proxy::new(&config.egress, resolver, limits, shutdown.clone())?);
    let router = door::router(Arc::clone(&proxy)).merge(health.router());
    let secure = Secure::of(config.tls.as_ref(), health.router())?;
    health.set_ready(true);
    tracing::info!("egress ready");
    let bounds = http::Limits {
        connections: MAX_CONNECTIONS,
        per_address: MAX_PER_ADDRESS,
        head: limits.header,
        drain: limits.drain,
        ..http::Limits::default()
    };
    let mut ended = Box::pin(async {
        http::serve_over(listener, router, secure, bounds, shutdown.clone()).await;
        // A connection becomes a session, so that the sessions come last.
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
    let _ = tokio::time::timeout(CUT_LIMIT, ended).await;
    Ok(())
}
