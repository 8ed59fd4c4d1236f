//! Puts the egress proxy together and runs it until shutdown.

use std::{sync::Arc, time::Duration};

use bootstrap::health::{Health, without_delay};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::Config,
    connection, door,
    proxy::Proxy,
    resolve::{Resolver, SystemResolver},
};

/// Connections that have not become sessions, at a time; more wait to be accepted.
const MAX_CONNECTIONS: usize = 1024;
/// Pause after a connection that could not be accepted, mostly for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long what was cut may take to notice.
const CUT_LIMIT: Duration = Duration::from_secs(1);

/// How long the parts of a connection may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Looking a name up and connecting to it.
    pub connect: Duration,
    /// From the wait for a request, or for a tunnel's first bytes, to the end of its head.
    pub header: Duration,
    /// Without a byte in either direction.
    pub idle: Duration,
    /// From shutdown to the end of what is under way.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            header: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            drain: Duration::from_secs(15),
        }
    }
}

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
    health.set_ready(true);
    tracing::info!("egress ready");
    let connections = TaskTracker::new();
    accept(&listener, router, &proxy, &connections).await;
    health.set_ready(false);
    drain(&proxy, &connections).await;
    Ok(())
}

async fn accept(listener: &TcpListener, router: axum::Router, proxy: &Arc<Proxy>, connections: &TaskTracker) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let Some((place, accepted)) = proxy.shutdown.run_until_cancelled(next).await else {
            return;
        };
        match accepted {
            Ok((stream, _)) => {
                let (router, proxy) = (router.clone(), Arc::clone(proxy));
                connections.spawn(async move {
                    serve_connection(stream, router, &proxy).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "connection was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve_connection(mut stream: TcpStream, router: axum::Router, proxy: &Proxy) {
    without_delay(&mut stream);
    let service = TowerToHyperService::new(router);
    let serving = connection::serve(
        TokioIo::new(stream),
        service,
        proxy.limits.header,
        &proxy.shutdown,
    );
    proxy.cut.run_until_cancelled(Box::pin(serving)).await;
}

/// Lets everything end for a while, then ends it.
async fn drain(proxy: &Proxy, connections: &TaskTracker) {
    let ended = async {
        // A connection becomes a session, so that the sessions come last.
        connections.close();
        connections.wait().await;
        proxy.sessions.close();
        proxy.sessions.wait().await;
    };
    let mut ended = std::pin::pin!(ended);
    if tokio::time::timeout(proxy.limits.drain, ended.as_mut())
        .await
        .is_err()
    {
        tracing::info!(sessions = proxy.sessions.len(), "sessions cut off");
        proxy.cut.cancel();
        let _ = tokio::time::timeout(CUT_LIMIT, ended).await;
    }
}
