//! Faults: errors that a test orders from a stand-in.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Moment of a fault relative to the request's effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FaultPoint {
    /// Before the effect, which then does not happen.
    #[default]
    BeforeEffect,
    /// After the effect. The caller cannot know that it happened.
    AfterEffect,
}

/// Error answer for the next matching requests.
#[derive(Debug, Clone)]
pub struct ServiceFault {
    /// HTTP method that the fault applies to; every method if absent.
    pub method: Option<String>,
    /// Part of the path that the fault applies to; every path if empty.
    pub path_contains: String,
    /// Part of the body that the fault applies to; every body if empty. GraphQL calls share one path, so only
    /// the body distinguishes them.
    pub body_contains: String,
    /// Number of requests that meet the fault.
    pub times: u32,
    /// HTTP status of the answer. Only 403 and 429 carry `retry-after`.
    pub status: u16,
    /// Moment relative to the effect.
    pub point: FaultPoint,
    /// Value of `retry-after`, in seconds.
    pub retry_after_s: u32,
    /// Breaks the connection before the answer is complete.
    pub cut: bool,
    /// Delay of the answer, or of the break.
    pub hold: Duration,
    /// Content type and body that replace the service's own error body.
    pub page: Option<(&'static str, &'static str)>,
}

impl ServiceFault {
    /// Creates a fault without effect for the next `times` requests whose path contains `path_contains`.
    #[must_use]
    pub fn new(path_contains: &str, times: u32, status: u16) -> Self {
        Self {
            method: None,
            path_contains: path_contains.to_owned(),
            body_contains: String::new(),
            times,
            status,
            point: FaultPoint::BeforeEffect,
            retry_after_s: 1,
            cut: false,
            hold: Duration::ZERO,
            page: None,
        }
    }

    /// Replaces the answer's content type (none if empty) and body, as a proxy between caller and service
    /// would.
    #[must_use]
    pub fn page(mut self, content_type: &'static str, body: &'static str) -> Self {
        self.page = Some((content_type, body));
        self
    }

    /// Sets `retry-after` in seconds, for statuses 403 and 429.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_s = seconds;
        self
    }

    /// Breaks the connection before the answer is complete.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.cut = true;
        self
    }

    /// Delays the answer, or the break.
    #[must_use]
    pub fn held(mut self, hold: Duration) -> Self {
        self.hold = hold;
        self
    }

    /// Limits the fault to an HTTP method.
    #[must_use]
    pub fn on(mut self, method: &str) -> Self {
        self.method = Some(method.to_owned());
        self
    }

    /// Limits the fault to requests whose body contains `text`.
    #[must_use]
    pub fn with(mut self, text: &str) -> Self {
        text.clone_into(&mut self.body_contains);
        self
    }

    /// Lets the effect happen and loses the answer.
    #[must_use]
    pub fn after_effect(mut self) -> Self {
        self.point = FaultPoint::AfterEffect;
        self
    }

    pub(crate) fn matches(&self, method: &str, path: &str, body: &[u8]) -> bool {
        let is_in =
            |wanted: &[u8]| wanted.is_empty() || body.windows(wanted.len()).any(|part| part == wanted);
        self.method.as_deref().is_none_or(|wanted| wanted == method)
            && path.contains(&self.path_contains)
            && is_in(self.body_contains.as_bytes())
    }

    pub(crate) fn response(&self) -> Response {
        if self.cut {
            // A failing body stream closes the connection after the headers, which clients see as a truncated
            // answer.
            let broken = futures::stream::once(async { Err::<Bytes, _>(std::io::Error::other("cut")) });
            return Response::new(Body::from_stream(broken));
        }
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if let Some((content_type, body)) = self.page {
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = status;
            if !content_type.is_empty() {
                let value = header::HeaderValue::from_static(content_type);
                response.headers_mut().insert(header::CONTENT_TYPE, value);
            }
            return response;
        }
        let message = format!("the stand-in had the order to answer {status}");
        let body =
            json!({"type": "error", "message": message, "error": {"type": "api_error", "message": message}});
        let mut response = (status, axum::Json(body)).into_response();
        if matches!(self.status, 403 | 429) {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, self.retry_after_s.into());
        }
        response
    }
}
