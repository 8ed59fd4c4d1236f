//! Responses that the proxy writes itself: one line of text each.

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};

/// Builds a response with a status and one line of text, prefixed with `egress: `.
pub(crate) fn text_response(status: StatusCode, words: &str) -> Response<Body> {
    (status, format!("egress: {words}\n")).into_response()
}

/// Builds the response that switches this connection to another protocol (101).
pub(crate) fn upgrade_response(protocol: &'static str) -> Response<Body> {
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("upgrade")),
        (header::UPGRADE, HeaderValue::from_static(protocol)),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}
