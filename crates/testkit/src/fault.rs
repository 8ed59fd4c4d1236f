//! An error that a stand-in is told to answer with.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// When a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FaultPoint {
    /// Instead of the effect.
    #[default]
    BeforeEffect,
    /// After the effect: the caller cannot know that it happened.
    AfterEffect,
}

/// Answers the next matching requests with an error.
#[derive(Debug, Clone)]
pub struct Fault {
    /// Only this method; without it every one.
    pub method: Option<String>,
    /// Only paths that contain this; empty: every one.
    pub path_contains: String,
    /// Only bodies that contain this; empty: every one. All calls of GraphQL have one path.
    pub body_contains: String,
    /// How many requests.
    pub times: u32,
    /// The status to answer; 403 and 429 carry `retry-after`.
    pub status: u16,
    /// Before or after the effect.
    pub point: FaultPoint,
    /// What `retry-after` says, in seconds.
    pub retry_after_s: u32,
    /// The connection breaks before the answer is whole.
    pub cut: bool,
    /// How long the answer, or its cut, is held back.
    pub hold: Duration,
    /// Content type and body of the answer, in the place of the service's own words.
    pub page: Option<(&'static str, &'static str)>,
}

impl Fault {
    /// The next `times` requests whose path contains `path_contains` fail with `status`, without effect.
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

    /// The answer has this content type (none when empty) and this body: a page of somebody between caller and service.
    #[must_use]
    pub fn page(mut self, content_type: &'static str, body: &'static str) -> Self {
        self.page = Some((content_type, body));
        self
    }

    /// The caller is asked to wait this long (403 and 429).
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_s = seconds;
        self
    }

    /// The connection breaks before the answer is whole.
    #[must_use]
    pub fn cut(mut self) -> Self {
        self.cut = true;
        self
    }

    /// The answer, or its cut, is held back this long.
    #[must_use]
    pub fn held(mut self, hold: Duration) -> Self {
        self.hold = hold;
        self
    }

    /// Only requests of this method.
    #[must_use]
    pub fn on(mut self, method: &str) -> Self {
        self.method = Some(method.to_owned());
        self
    }

    /// Only requests whose body contains this.
    #[must_use]
    pub fn with(mut self, text: &str) -> Self {
        text.clone_into(&mut self.body_contains);
        self
    }

    /// The effect happens, the answer is lost.
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
        let message = format!("the stand-in was told to answer {status}");
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
