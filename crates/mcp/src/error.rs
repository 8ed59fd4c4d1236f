//! Failures of MCP servers.

use std::error::Error as StdError;

use domain::{
    McpProblem, is_mcp_rejection,
    text::{sanitize_output, truncate_text},
};
use rmcp::{
    ErrorData, ServiceError,
    service::ClientInitializeError,
    transport::{DynamicTransportError, streamable_http_client::StreamableHttpError},
};

// Characters of a refusal's text.
const REFUSAL_CHARS: usize = 1_000;

/// Failure of a request to an MCP server. Only [`McpError::Refused`] contains text of the server.
// The errors of the SDK contain parts of bodies, so none of them is kept as a source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The settings have no server of this name.
    #[error("the settings have no MCP server of this name")]
    Unknown,
    /// The connection failed or broke.
    #[error("the server cannot be reached, or the connection broke")]
    Unreachable,
    /// The server exceeded its `timeout_ms`.
    #[error("the server did not answer within {0} ms")]
    Late(u64),
    /// The server refused the credential.
    #[error("the server refused the credential")]
    Unauthorized,
    /// The server answered with an error status of HTTP.
    #[error("the server answered with HTTP status {0}")]
    Status(u16),
    /// The answer is larger than the limit.
    #[error("the answer of the server is too large")]
    TooLarge,
    /// The answer does not follow the protocol.
    #[error("the answer of the server does not follow the protocol")]
    Protocol,
    /// The server asks for input of a person, or continues in the background.
    #[error("the server asks for input or works in the background, which is not supported")]
    Unfinished,
    /// The server refused the request; with its code and its text.
    #[error("the server refused the request with code {code}: {text}")]
    Refused {
        /// Code of the JSON-RPC error.
        code: i32,
        /// Sanitized text of the server.
        text: String,
    },
}

impl McpError {
    /// Returns the reason that a server with this failure is not available.
    #[must_use]
    pub const fn problem(&self) -> McpProblem {
        match self {
            Self::Unknown => McpProblem::Unknown,
            Self::Unreachable | Self::Late(_) | Self::Status(500..) => McpProblem::Unreachable,
            Self::Unauthorized => McpProblem::Unauthorized,
            Self::Status(_) | Self::TooLarge | Self::Protocol | Self::Unfinished | Self::Refused { .. } => {
                McpProblem::Unusable
            }
        }
    }

    /// Returns true if the same request may succeed at once.
    #[must_use]
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable | Self::Status(429 | 500..))
    }

    /// Returns true if the server certainly did not perform the request.
    #[must_use]
    pub const fn is_before_effect(&self) -> bool {
        match self {
            Self::Unknown | Self::Unauthorized | Self::Status(400..500) => true,
            Self::Refused { code, .. } => is_mcp_rejection(*code),
            Self::Unreachable
            | Self::Late(_)
            | Self::Status(_)
            | Self::TooLarge
            | Self::Protocol
            | Self::Unfinished => false,
        }
    }

    fn of_http(error: &StreamableHttpError<reqwest::Error>) -> Self {
        if matches!(
            error,
            StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_)
        ) {
            return Self::Unauthorized;
        }
        if let StreamableHttpError::HttpStatus(answer) = error {
            return Self::Status(answer.status);
        }
        if let StreamableHttpError::UnexpectedServerResponse(text) = error {
            return Self::of_status(text);
        }
        if matches!(error, StreamableHttpError::ResponseBodyTooLarge { .. }) {
            return Self::TooLarge;
        }
        let is_broken = matches!(
            error,
            StreamableHttpError::Client(_)
                | StreamableHttpError::Io(_)
                | StreamableHttpError::UnexpectedEndOfStream
                | StreamableHttpError::TransportChannelClosed
                | StreamableHttpError::SessionExpired
                | StreamableHttpError::SessionRecoveryTimeout
                | StreamableHttpError::ControlRequestTimeout
        );
        if is_broken {
            Self::Unreachable
        } else {
            Self::Protocol
        }
    }

    /// Reads the status from the SDK's text `HTTP 404 Not Found: …`; other texts are about the protocol.
    fn of_status(text: &str) -> Self {
        let status = text.strip_prefix("HTTP ").and_then(|rest| rest.get(..3));
        match status.and_then(|status| status.parse().ok()) {
            Some(401 | 403) => Self::Unauthorized,
            Some(status) => Self::Status(status),
            None => Self::Protocol,
        }
    }

    fn of_transport(error: &DynamicTransportError) -> Self {
        let mut next: Option<&(dyn StdError + 'static)> = Some(error.error.as_ref());
        while let Some(cause) = next {
            if let Some(http) = cause.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
                return Self::of_http(http);
            }
            next = cause.source();
        }
        Self::Unreachable
    }

    fn of_refusal(error: &ErrorData) -> Self {
        Self::Refused {
            code: error.code.0,
            text: truncate_text(&sanitize_output(&error.message), REFUSAL_CHARS),
        }
    }
}

impl From<&ClientInitializeError> for McpError {
    fn from(error: &ClientInitializeError) -> Self {
        if let ClientInitializeError::TransportError { error, .. } = error {
            return Self::of_transport(error);
        }
        if let ClientInitializeError::JsonRpcError(error) = error {
            return Self::of_refusal(error);
        }
        if matches!(error, ClientInitializeError::ConnectionClosed(_)) {
            Self::Unreachable
        } else {
            Self::Protocol
        }
    }
}

impl From<&ServiceError> for McpError {
    fn from(error: &ServiceError) -> Self {
        if let ServiceError::McpError(error) = error {
            return Self::of_refusal(error);
        }
        if let ServiceError::TransportSend(error) = error {
            return Self::of_transport(error);
        }
        let is_broken = matches!(
            error,
            ServiceError::TransportClosed | ServiceError::Cancelled { .. } | ServiceError::Timeout { .. }
        );
        if is_broken {
            Self::Unreachable
        } else {
            Self::Protocol
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_text_becomes_typed_failure() {
        for (text, expected) in [
            ("HTTP 401 Unauthorized: <html>", McpError::Unauthorized),
            ("HTTP 403 Forbidden: ", McpError::Unauthorized),
            ("HTTP 404 Not Found: nothing", McpError::Status(404)),
            ("HTTP 4", McpError::Protocol),
            ("HTTP é", McpError::Protocol),
            ("no JSON", McpError::Protocol),
        ] {
            assert_eq!(McpError::of_status(text), expected, "{text}");
        }
    }

    #[test]
    fn only_refused_requests_had_no_effect() {
        let refused = McpError::Refused {
            code: -32602,
            text: String::new(),
        };
        assert!(refused.is_before_effect() && McpError::Status(404).is_before_effect());
        for unknown in [
            McpError::Unreachable,
            McpError::Late(1),
            McpError::Status(502),
            McpError::TooLarge,
            McpError::Protocol,
        ] {
            assert!(!unknown.is_before_effect(), "{unknown}");
        }
    }

    #[test]
    fn error_within_server_leaves_effect_unknown() {
        let refuse = |code| McpError::Refused {
            code,
            text: String::new(),
        };
        for code in [-32700, -32602, -32601, -32600] {
            assert!(refuse(code).is_before_effect(), "{code}");
        }
        // An internal error, the time limit and the closed connection of an SDK, and codes of servers.
        for code in [-32603, -32001, -32000, -1, 500] {
            assert!(!refuse(code).is_before_effect(), "{code}");
        }
    }
}
