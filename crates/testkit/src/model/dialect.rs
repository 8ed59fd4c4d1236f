//! Providers that the stand-in imitates: credentials, errors and request formats.

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::Value;

use super::script::Transcript;
use super::{anthropic, bedrock, openai};
use crate::http::{answer, header_text};

/// API key of all dialects.
pub const MODEL_API_KEY: &str = "model-key-of-the-stand-in";
/// OAuth token that replaces the API key of the Messages interface.
pub const MODEL_AUTH_TOKEN: &str = "token-of-the-stand-in";
/// Beta flag that permits OAuth tokens.
const OAUTH: &str = "oauth-2025-04-20";
/// Provider that the stand-in imitates for a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Anthropic,
    Bedrock,
    OpenAi,
    Azure,
}

impl Dialect {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Bedrock => "bedrock",
            Self::OpenAi => "openai",
            Self::Azure => "azure",
        }
    }

    pub(super) fn error(self, status: StatusCode, kind: &str, message: &str) -> Response {
        let body = match self {
            Self::Anthropic => anthropic::error(kind, message),
            Self::Bedrock => bedrock::error(message),
            Self::OpenAi | Self::Azure => openai::error(kind, message),
        };
        let mut response = answer(status, body);
        if self == Self::Bedrock {
            let class = if status == StatusCode::BAD_REQUEST {
                "ValidationException"
            } else {
                "AccessDeniedException"
            };
            let headers = response.headers_mut();
            headers.insert("x-amzn-errortype", HeaderValue::from_static(class));
        }
        response
    }

    pub(super) fn read(self, body: &Value) -> Result<Transcript, String> {
        match self {
            Self::Anthropic | Self::Bedrock => anthropic::read(body),
            Self::OpenAi | Self::Azure => openai::read(body),
        }
    }

    pub(super) fn authorized(self, headers: &HeaderMap) -> bool {
        match self {
            Self::Anthropic => {
                let allowed = header_text(headers, "anthropic-beta")
                    .split(',')
                    .any(|beta| beta == OAUTH);
                let key = header_text(headers, "x-api-key");
                // A bearer token requires the beta flag and excludes the API key.
                match bearer(headers) {
                    Some(token) => allowed && token == MODEL_AUTH_TOKEN && key.is_empty(),
                    None => key == MODEL_API_KEY,
                }
            }
            Self::Azure => header_text(headers, "api-key") == MODEL_API_KEY,
            // `invoke` verifies signed requests before this check.
            Self::Bedrock => bearer(headers) == Some(MODEL_API_KEY),
            Self::OpenAi => bearer(headers) == Some(MODEL_API_KEY),
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get("authorization")?.to_str().ok()?;
    value.strip_prefix("Bearer ")
}
