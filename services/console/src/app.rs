//! The console as a service: its assembly, and its run until shutdown.

use std::sync::Arc;

use axum::{Router, middleware};
use bootstrap::{ServiceApp, health::ServiceHealth, http};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    assets,
    config::Config,
    frame::render_response,
    guard::guard_request,
    login_seal::LoginSeal,
    oidc::OidcProvider,
    pages,
    person::ConsoleState,
    problem::PageProblem,
    session::{self, SessionTable},
};

/// Console with the state of its pages, ready to serve.
pub struct ConsoleApp {
    state: ConsoleState,
}

impl ServiceApp for ConsoleApp {
    type Config = Config;

    /// Fails when the HTTP client of the provider cannot be built, or the system has no random numbers.
    async fn build(config: Config) -> anyhow::Result<Self> {
        let over_tls = config.console.is_over_tls();
        let provider = config.console.oidc.map(OidcProvider::new).transpose()?;
        let state = ConsoleState {
            api: config.console.api,
            sessions: SessionTable::new(session::LASTS),
            provider: provider.map(Arc::new),
            seal: Arc::new(LoginSeal::new()?),
            over_tls,
            environment: config.console.environment,
            shutdown: CancellationToken::new(),
        };
        Ok(Self { state })
    }

    async fn run(self, listener: TcpListener, shutdown: CancellationToken) -> anyhow::Result<()> {
        let health = ServiceHealth::new();
        let state = ConsoleState {
            shutdown: shutdown.clone(),
            ..self.state
        };
        // Ready without a check of the API, because the pages show that the API is unreachable.
        health.set_ready(true);
        tracing::info!("console ready");
        http::serve_http(
            listener,
            build_router(state).merge(health.router()),
            http::ListenerLimits::default(),
            shutdown,
        )
        .await;
        Ok(())
    }
}

fn build_router(state: ConsoleState) -> Router {
    pages::build_page_routes()
        .merge(assets::build_asset_routes())
        .fallback(async || PageProblem::NotFound)
        // The guard also covers the fallback, and the outermost layer renders the guard's page.
        .layer(middleware::from_fn(guard_request))
        .layer(middleware::from_fn_with_state(state.clone(), render_response))
        .with_state(state)
}
