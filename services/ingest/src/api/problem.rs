//! Refusals of the API, by condition, and the query of a request, which may cause one.

use api::types::ProblemView;
use axum::{
    Json,
    extract::{
        FromRequestParts, Query,
        rejection::{JsonRejection, QueryRejection},
    },
    http::{HeaderValue, StatusCode, header::RETRY_AFTER, request::Parts},
    response::{IntoResponse, Response},
};
use domain::cause::format_error_chain;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::router::outcome::EventFailure;

// Seconds after which a caller with too many requests may retry.
const RETRY_AFTER_S: &str = "3";

/// Reason why a request is not served.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ApiProblem {
    Unauthorized,
    Forbidden,
    BadRequest(String),
    NotFound(String),
    Conflict(String),
    Unprocessable(String),
    TooMany(String),
    Unavailable(String),
    /// An error that only operators can act on: its causes go to the log, never to the caller.
    Internal(String),
}

impl ApiProblem {
    fn parts(self) -> (StatusCode, &'static str, String) {
        match self {
            Self::Unauthorized => (
                StatusCode::UNAUTHORIZED,
                "unauthorized",
                "send a valid bearer token".to_owned(),
            ),
            Self::Forbidden => (
                StatusCode::FORBIDDEN,
                "forbidden",
                "the token's role does not allow this".to_owned(),
            ),
            Self::BadRequest(detail) => (StatusCode::BAD_REQUEST, "bad_request", detail),
            Self::NotFound(detail) => (StatusCode::NOT_FOUND, "not_found", detail),
            Self::Conflict(detail) => (StatusCode::CONFLICT, "conflict", detail),
            Self::Unprocessable(detail) => (StatusCode::UNPROCESSABLE_ENTITY, "unprocessable", detail),
            Self::TooMany(detail) => (StatusCode::TOO_MANY_REQUESTS, "too_many", detail),
            Self::Unavailable(detail) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail),
            Self::Internal(causes) => {
                let id = Uuid::new_v4();
                tracing::error!(request = %id, error = causes, "a call of the API failed");
                let detail = format!("internal error; the log of ingest has its causes under request {id}");
                (StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
            }
        }
    }
}

impl IntoResponse for ApiProblem {
    fn into_response(self) -> Response {
        let (status, error, detail) = self.parts();
        let error = error.to_owned();
        let mut response = (status, Json(ProblemView { error, detail })).into_response();
        if status == StatusCode::TOO_MANY_REQUESTS {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
        }
        response
    }
}

impl From<queue::Error> for ApiProblem {
    fn from(error: queue::Error) -> Self {
        match error {
            queue::Error::Unavailable { .. } => {
                tracing::warn!(error = %format_error_chain(&error), "a call of the API is refused");
                Self::Unavailable("the queue does not answer; try again".to_owned())
            }
            queue::Error::Full { .. } => Self::Unavailable(error.to_string()),
            queue::Error::Newer { .. } => {
                Self::Unavailable(format!("{error}; ask a process of that release"))
            }
            queue::Error::Conflict => Self::Conflict(error.to_string()),
            queue::Error::Corrupt { .. } | queue::Error::Topology { .. } => {
                Self::Internal(format_error_chain(&error))
            }
        }
    }
}

impl From<EventFailure> for ApiProblem {
    fn from(failure: EventFailure) -> Self {
        match failure {
            EventFailure::Later { detail, .. }
            | EventFailure::Refused(detail)
            | EventFailure::Early(detail)
            | EventFailure::Unsettled { why: detail, .. } => Self::Unavailable(detail),
            EventFailure::Unknown(detail) => Self::NotFound(detail),
            EventFailure::Transferred(_) | EventFailure::Deleted(_) => Self::NotFound(failure.to_string()),
            EventFailure::Never(detail) => Self::Unprocessable(detail),
        }
    }
}

impl From<JsonRejection> for ApiProblem {
    fn from(rejection: JsonRejection) -> Self {
        Self::BadRequest(rejection.body_text())
    }
}

impl From<QueryRejection> for ApiProblem {
    fn from(rejection: QueryRejection) -> Self {
        Self::BadRequest(rejection.body_text())
    }
}

/// Query of a request.
pub(crate) struct ApiQuery<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = ApiProblem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiProblem> {
        let Query(query) = Query::<T>::from_request_parts(parts, state).await?;
        Ok(Self(query))
    }
}

impl From<domain::InvalidId> for ApiProblem {
    fn from(invalid: domain::InvalidId) -> Self {
        Self::BadRequest(invalid.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn internal_errors_keep_their_causes_from_callers() {
        let causes = "the stream TRIGGERS has other subjects: nats://10.0.0.7";
        let answer = ApiProblem::Internal(causes.to_owned()).into_response();
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = axum::body::to_bytes(answer.into_body(), 10_000).await.unwrap();
        let text = String::from_utf8_lossy(&body);
        assert!(
            text.contains("under request ") && !text.contains("10.0.0.7"),
            "{text}"
        );
    }
}
