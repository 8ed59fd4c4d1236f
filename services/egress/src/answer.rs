//! Answers of the proxy's own: one line of text each.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};

/// One line of text with a status.
pub(crate) fn line(status: StatusCode, words: &str) -> Response<Body> {
    (status, format!("egress: {words}\n")).into_response()
}

/// The switch to another protocol on this connection.
pub(crate) fn switch(protocol: &'static str) -> Response<Body> {
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::UPGRADE, HeaderValue::from_static(protocol)),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}
