//! Providers that the stand-in imitates: credentials, errors, request formats and requirements for reply schemas.

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::Value;

use super::script::PlayedTranscript;
use super::{anthropic, bedrock, openai, responses};
use crate::http::{header_text, render_json_answer};

/// API key of all dialects.
pub const MODEL_API_KEY: &str = "model-key-of-the-stand-in";
/// OAuth token that replaces the API key of the Messages interface.
pub const MODEL_AUTH_TOKEN: &str = "token-of-the-stand-in";
/// Beta flag that permits OAuth tokens.
const OAUTH: &str = "oauth-2025-04-20";
/// Provider that the stand-in imitates for a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlayedDialect {
    Anthropic,
    Bedrock,
    OpenAi,
    Azure,
    Responses,
    AzureResponses,
}

impl PlayedDialect {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Bedrock => "bedrock",
            Self::OpenAi => "openai",
            Self::Azure => "azure",
            Self::Responses => "openai-responses",
            Self::AzureResponses => "azure-responses",
        }
    }

    pub(super) fn error(self, status: StatusCode, kind: &str, message: &str) -> Response {
        let body = match self {
            Self::Anthropic => anthropic::render_error(kind, message),
            Self::Bedrock => bedrock::render_error(message),
            Self::OpenAi | Self::Azure | Self::Responses | Self::AzureResponses => {
                openai::render_error(kind, message)
            }
        };
        let mut response = render_json_answer(status, body);
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

    pub(super) fn read(self, body: &Value) -> Result<PlayedTranscript, String> {
        match self {
            Self::Anthropic | Self::Bedrock => anthropic::read_request(body),
            Self::OpenAi | Self::Azure => openai::read_request(body),
            Self::Responses | Self::AzureResponses => responses::read_request(body),
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
                match read_bearer_token(headers) {
                    Some(token) => allowed && token == MODEL_AUTH_TOKEN && key.is_empty(),
                    None => key == MODEL_API_KEY,
                }
            }
            Self::Azure | Self::AzureResponses => header_text(headers, "api-key") == MODEL_API_KEY,
            // `invoke` verifies signed requests before this check.
            Self::Bedrock => read_bearer_token(headers) == Some(MODEL_API_KEY),
            Self::OpenAi | Self::Responses => read_bearer_token(headers) == Some(MODEL_API_KEY),
        }
    }
}

fn read_bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get("authorization")?.to_str().ok()?;
    value.strip_prefix("Bearer ")
}

/// JSON Schema keywords that providers refuse in structured outputs.
const REFUSED: [&str; 8] = [
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "maxItems",
    "uniqueItems",
    "multipleOf",
];

/// Checks that every object is closed and free of refused keywords. In the strict form every property is also
/// required.
pub(super) fn check_schema(schema: &Value, is_strict: bool) -> Result<(), String> {
    if schema["type"] != "object" {
        return Err("schema must be of type object".to_owned());
    }
    check_part(schema, is_strict)
}

fn check_part(schema: &Value, is_strict: bool) -> Result<(), String> {
    if let Some(keyword) = REFUSED.iter().find(|keyword| !schema[**keyword].is_null()) {
        return Err(format!("property '{keyword}' is not supported"));
    }
    if let Some(properties) = schema["properties"].as_object() {
        if schema["additionalProperties"] != false {
            return Err(
                "for 'object' type, 'additionalProperties' must be explicitly set to false".to_owned(),
            );
        }
        for (name, property) in properties {
            let listed = schema["required"]
                .as_array()
                .is_some_and(|list| list.iter().any(|one| one == name));
            if is_strict && !listed {
                return Err(format!(
                    "'required' must include every key in properties; missing '{name}'"
                ));
            }
            check_part(property, is_strict)?;
        }
    }
    match &schema["items"] {
        Value::Null => Ok(()),
        items => check_part(items, is_strict),
    }
}

/// Checks an image as providers do, and returns the words by which scripts recognize it.
pub(super) fn describe_image(media_type: &str, data: Option<&str>) -> Result<String, String> {
    if !["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&media_type) {
        return Err(format!(
            "image.source.media_type: {media_type:?} is not supported"
        ));
    }
    let bytes = base64::Engine::decode(&base64::prelude::BASE64_STANDARD, data.unwrap_or_default());
    match bytes {
        Ok(bytes) if !bytes.is_empty() => Ok(format!("[{media_type} of {} bytes]", bytes.len())),
        Ok(_) | Err(_) => Err("image.source.data: the image is not valid base64".to_owned()),
    }
}
