//! The console as a service: its assembly, its frame around pages, and its run until shutdown.

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{
        HeaderValue,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
    middleware::{self, Next},
    response::Response,
};
use bootstrap::{ServiceApp, health::ServiceHealth, http};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{
    assets,
    config::Config,
    guard::guard_request,
    layout::{ConsolePage, PageFrame},
    login_seal::LoginSeal,
    oidc::OidcProvider,
    pages,
    person::{ConsoleState, find_visitor, session_id},
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

/// Renders the page of a response. Other responses pass unchanged.
async fn render_response(State(state): State<ConsoleState>, request: Request, next: Next) -> Response {
    // The id is read before the handler consumes the request.
    let session = session_id(&state, request.headers());
    let mut response = next.run(request).await;
    let Some(page) = response.extensions_mut().remove::<ConsolePage>() else {
        return response;
    };
    let visitor = match session {
        Some(id) if page.has_navigation() => find_visitor(&state, &id).await,
        Some(_) | None => None,
    };
    let frame = PageFrame {
        visitor,
        environment: state.environment.clone(),
    };
    *response.body_mut() = Body::from(page.markup(&frame).into_string());
    let headers = response.headers_mut();
    // The router has counted the empty body.
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}
