//! Assembly of the console, and its run until shutdown.

use std::sync::Arc;

use axum::{Router, middleware};
use bootstrap::{health::Health, http};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    assets,
    config::Config,
    guard::guard,
    login_seal::LoginSeal,
    oidc::Provider,
    pages,
    person::State,
    problem::Problem,
    session::{self, Sessions},
};

/// Runs the console until shutdown.
///
/// # Errors
/// When the HTTP client of the provider cannot be built, or the system has no random numbers.
pub async fn serve(config: Config, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
    let health = Health::new();
    let over_tls = config.console.is_over_tls();
    let provider = config.console.oidc.map(Provider::new).transpose()?;
    let state = State {
        api: config.console.api,
        sessions: Sessions::new(session::LASTS),
        provider: provider.map(Arc::new),
        seal: Arc::new(LoginSeal::new()?),
        over_tls,
        shutdown: shutdown.clone(),
    };
    health.set_ready(true);
    tracing::info!("console ready");
    http::serve(
        listener,
        router(state).merge(health.router()),
        http::Limits::default(),
        shutdown,
    )
    .await;
    Ok(())
}

fn router(state: State) -> Router {
    pages::routes()
        .merge(assets::routes())
        .fallback(async || Problem::NotFound)
        // The guard is the outermost layer, so it also covers the fallback.
        .layer(middleware::from_fn(guard))
        .with_state(state)
}
