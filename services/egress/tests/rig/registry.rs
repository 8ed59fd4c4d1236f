//! Strict registry: refuses requests without its credential, and records all requests.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use egress::MirrorSettings;
use futures::stream;
use tokio::net::TcpListener;

use super::LOOPBACK;

/// Value of `Authorization` that the registry requires.
pub const CREDENTIAL: &str = "Bearer registry-secret";

/// One request as the registry received it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub uri: String,
    pub headers: HeaderMap,
}

#[derive(Clone)]
pub struct Registry {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Registry {
    pub async fn start() -> Self {
        let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let registry = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
        };
        let router = Router::new()
            .fallback(answer_request)
            .with_state(registry.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        registry
    }

    /// Returns the base. Everything else on this host is out of bounds.
    pub fn base(&self) -> String {
        format!("http://open.example:{}/acme/npm", self.address.port())
    }

    pub fn target(&self) -> String {
        format!("open.example:{}", self.address.port())
    }

    pub fn settings(&self) -> MirrorSettings {
        MirrorSettings {
            url: self.base(),
            repositories: None,
            token: Some("registry-secret".into()),
            user: None,
            password: None,
        }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn answer_request(State(registry): State<Registry>, request: Request) -> Response {
    let seen = Seen {
        uri: request.uri().to_string(),
        headers: request.headers().clone(),
    };
    registry.seen.lock().unwrap().push(seen);
    let (path, base) = (request.uri().path(), registry.base());
    if path == "/public/silent" {
        return std::future::pending().await;
    }
    if path.starts_with("/public/") {
        return answer_public_path(path, request.headers());
    }
    let credentials = [CREDENTIAL, "Basic YWRhOnJlZ2lzdHJ5LXNlY3JldA=="];
    let given = request.headers().get(header::AUTHORIZATION);
    if !given.is_some_and(|given| credentials.iter().any(|wanted| given == wanted)) {
        return (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, "Bearer realm=x")],
        )
            .into_response();
    }
    let json = [
        (header::CONTENT_TYPE, "application/json"),
        (header::SET_COOKIE, "session=registry-secret"),
        (HeaderName::from_static("x-auth-token"), "registry-secret"),
    ];
    match path.strip_prefix("/acme/npm/").unwrap_or("outside") {
        "left-pad" => {
            let tarball = format!("{base}/left-pad.tgz");
            (
                json,
                format!(r#"{{"tarball":"{tarball}","home":"https://left-pad.example/"}}"#),
            )
                .into_response()
        }
        "left-pad.tgz" => ([(header::CONTENT_TYPE, "application/gzip")], base).into_response(),
        "moved" => build_redirect(&format!("{base}/left-pad")),
        "relative" => build_redirect("left-pad?x=1"),
        "elsewhere" => build_redirect(&format!(
            "http://open.example:{}/public/file",
            registry.address.port()
        )),
        "addresses" => (json, format!("{base}/ ").repeat(40_000)).into_response(),
        "large" => (json, format!("{base}/").repeat(1_200_000)).into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn answer_public_path(path: &str, headers: &HeaderMap) -> Response {
    match path {
        "/public/file" => ([(header::CONTENT_TYPE, "text/plain")], "a public file").into_response(),
        "/public/moved" => build_redirect("http://evil.example/"),
        "/public/megabytes" => Body::from(vec![b'x'; 4 * 1024 * 1024]).into_response(),
        // Larger than all socket buffers between registry and client.
        "/public/endless" => {
            let chunk = || Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 64 * 1024]));
            Body::from_stream(stream::repeat_with(chunk)).into_response()
        }
        "/public/headers" => format!("{headers:?}").into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

fn build_redirect(to: &str) -> Response {
    (StatusCode::FOUND, [(header::LOCATION, to)]).into_response()
}
