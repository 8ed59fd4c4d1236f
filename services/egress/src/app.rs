//! The egress proxy as a service: its assembly, and its shutdown.

use std::{sync::Arc, time::Duration};

use bootstrap::{
    ServiceApp,
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

/// Egress proxy with its listener's TLS, ready to serve.
pub struct EgressApp {
    proxy: EgressProxy,
    secure: Option<ListenerTls>,
    health: ServiceHealth,
}

impl EgressApp {
    /// Builds the proxy with another resolver and other limits.
    ///
    /// # Errors
    /// A wrong setting, or TLS that cannot be set up.
    pub fn build_with(
        config: &Config,
        resolver: Arc<dyn HostResolver>,
        limits: TimeLimits,
    ) -> anyhow::Result<Self> {
        let health = ServiceHealth::new();
        Ok(Self {
            proxy: EgressProxy::new(config, resolver, limits)?,
            secure: ListenerTls::of(config.tls.as_ref(), health.router())?,
            health,
        })
    }
}

impl ServiceApp for EgressApp {
    type Config = Config;

    async fn build(config: Config) -> anyhow::Result<Self> {
        Self::build_with(&config, Arc::new(SystemResolver), TimeLimits::default())
    }

    /// Requests and tunnels in progress have 15 s to end after the shutdown.
    async fn run(self, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
        let Self {
            mut proxy,
            secure,
            health,
        } = self;
        proxy.shutdown = shutdown.clone();
        let limits = proxy.limits;
        let proxy = Arc::new(proxy);
        let router = session_endpoint::build_router(Arc::clone(&proxy)).merge(health.router());
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
}
