//! Anthropic's models on Amazon Bedrock.

use std::sync::Arc;

use domain::address::percent_encode;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use serde_json::{Value, json};

use super::{
    ClientError,
    anthropic::{self, MessageCollector},
    aws::BedrockSigner,
    dialect::{
        ModelDialect, ModelRequest, RequestSigner, SettingProblem, base_address, extra_headers, find_api_key,
        find_auth_token, find_secret, secret_header,
    },
    stream::{ReplyCollector, StreamFraming},
    tool_name::ToolNames,
};
use crate::config::ModelSettings;

const VERSION: &str = "bedrock-2023-05-31";

/// Dialect for the operation `InvokeModelWithResponseStream`.
pub(super) struct BedrockDialect;

impl ModelDialect for BedrockDialect {
    fn name(&self) -> &'static str {
        "bedrock"
    }

    fn check(&self, settings: &ModelSettings) -> Result<(), SettingProblem> {
        if settings.region.as_deref().unwrap_or_default().is_empty() {
            return Err(("region", "must be set"));
        }
        let secret_key = find_secret(settings.aws_secret_access_key.as_ref());
        if settings.aws_access_key_id.is_some() != secret_key.is_some() {
            return Err(("aws_secret_access_key", "goes with aws_access_key_id"));
        }
        if find_auth_token(settings).is_some() {
            return Err(("auth_token", "is for Anthropic; a Bedrock API key is an api_key"));
        }
        anthropic::check_thinking(settings)
    }

    fn url(&self, settings: &ModelSettings) -> String {
        let region = settings.region.as_deref().unwrap_or_default();
        // The Chinese partition of AWS has a separate domain.
        let domain = if region.starts_with("cn-") {
            "amazonaws.com.cn"
        } else {
            "amazonaws.com"
        };
        let default = format!("https://bedrock-runtime.{region}.{domain}");
        let base = base_address(settings, &default);
        // Model ids contain `:` and `/`.
        let model = percent_encode(&settings.name);
        format!("{base}/model/{model}/invoke-with-response-stream")
    }

    fn headers(&self, settings: &ModelSettings) -> Result<HeaderMap, ClientError> {
        let mut headers = HeaderMap::new();
        extra_headers(settings, &mut headers)?;
        if let Some(key) = find_api_key(settings) {
            headers.insert(AUTHORIZATION, secret_header("Bearer ", key)?);
        }
        Ok(headers)
    }

    fn signer(&self, settings: &ModelSettings) -> Result<Option<Arc<dyn RequestSigner>>, ClientError> {
        // A Bedrock API key is a bearer token and replaces the signature.
        if find_api_key(settings).is_some() {
            return Ok(None);
        }
        Ok(Some(Arc::new(BedrockSigner::new(settings)?)))
    }

    fn body(&self, ask: &ModelRequest<'_>) -> Value {
        // Not every model on Bedrock supports the cache of an hour.
        let mut body = anthropic::build_request(ask, false);
        body.insert("anthropic_version".to_owned(), json!(VERSION));
        Value::Object(body)
    }

    fn framing(&self) -> StreamFraming {
        StreamFraming::AwsEventStream
    }

    fn collector(&self, tools: ToolNames) -> Box<dyn ReplyCollector> {
        Box::new(MessageCollector::new(tools))
    }
}
