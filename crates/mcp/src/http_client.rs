//! HTTP client under the SDK's transport, in which every error answers its request.

use std::{collections::HashMap, sync::Arc};

use reqwest::header::{HeaderName, HeaderValue};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::{
        common::client_side_sse::BoxedSseResponse,
        streamable_http_client::{
            StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
            StreamableHttpResponseLimits,
        },
    },
};

type HttpError = StreamableHttpError<reqwest::Error>;
type CustomHeaders = HashMap<HeaderName, HeaderValue>;

/// HTTP client that gives each error in a body of JSON the id of the request that it answers.
///
/// Errors with the HTTP status 400 or 500 often have another id or none, such as that for an unknown session. The SDK
/// drops them, and the request would wait until its time limit.
#[derive(Clone, Debug)]
pub(crate) struct CorrelatingClient(pub(crate) reqwest::Client);

impl StreamableHttpClient for CorrelatingClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: CustomHeaders,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session_id, auth_header, custom_headers, limits)
            .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: CustomHeaders,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let request_id = if let ClientJsonRpcMessage::Request(request) = &message {
            Some(request.id.clone())
        } else {
            None
        };
        let sent = self.0.post_message_with_response_limits(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            limits,
        );
        let mut response = Box::pin(sent).await?;
        if let StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), _) = &mut response
            && request_id.is_some()
        {
            error.id = request_id;
        }
        Ok(response)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: CustomHeaders,
    ) -> Result<(), HttpError> {
        let deleted = self
            .0
            .delete_session(uri, session_id, auth_header, custom_headers);
        Box::pin(deleted).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: CustomHeaders,
    ) -> Result<BoxedSseResponse, HttpError> {
        let opened = self
            .0
            .get_stream(uri, session_id, last_event_id, auth_header, custom_headers);
        Box::pin(opened).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: CustomHeaders,
        max_sse_event_size: usize,
    ) -> Result<BoxedSseResponse, HttpError> {
        let opened = self.0.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        Box::pin(opened).await
    }
}
