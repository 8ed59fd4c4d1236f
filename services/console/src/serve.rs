//! Puts the console together and runs it until shutdown.

use axum::{Router, middleware};
use bootstrap::{health::Health, http};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    assets, config::Config, guard::guard, pages, person::State, problem::Problem, session::Sessions,
};

/// Runs the console until shutdown.
///
/// # Errors
/// None yet; the type is that of every service.
pub async fn serve(config: Config, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
    let health = Health::new();
    let state = State {
        api: config.api().to_owned(),
        sessions: Sessions::default(),
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
        .layer(middleware::from_fn(guard))
        .with_state(state)
}
