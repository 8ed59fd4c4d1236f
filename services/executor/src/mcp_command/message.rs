//! Messages of JSON-RPC as lines, as the specification of MCP defines them for standard input and output.

use std::io;

use domain::text::{one_line, sanitize_output, truncate_text};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// Limit of one message of a server, in bytes.
pub(super) const MESSAGE_BYTES: usize = 1 << 20;

// Characters of a server's text in a failure.
const QUOTE_CHARS: usize = 500;

/// Failure of a dialog with a server. The texts may quote the server.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerFailure {
    /// The output ended.
    #[error("the server ended before it answered")]
    Ended,
    /// The socket failed.
    #[error("the server takes no input or gives no output")]
    Broken(#[source] io::Error),
    /// A message exceeds [`MESSAGE_BYTES`].
    #[error("the server sent a message of more than {} MiB", MESSAGE_BYTES >> 20)]
    TooLarge,
    /// The server sent too many messages before its answer.
    #[error("the server sent too many messages before its answer")]
    TooMany,
    /// A message does not follow the protocol.
    #[error("the server does not follow the protocol: {0}")]
    Protocol(String),
    /// The server refused the request.
    #[error("the server refused the request with code {code}: {text}")]
    Refused {
        /// Code of the JSON-RPC error.
        code: i64,
        /// Sanitized text of the server.
        text: String,
    },
}

impl ServerFailure {
    /// Converts an error of the socket. A server that ends with unread input resets it.
    pub(super) fn of_socket(error: io::Error) -> Self {
        use io::ErrorKind::{BrokenPipe, ConnectionReset};
        if matches!(error.kind(), BrokenPipe | ConnectionReset) {
            Self::Ended
        } else {
            Self::Broken(error)
        }
    }

    pub(super) fn of_protocol(problem: &str, quoted: &str) -> Self {
        Self::Protocol(match quoted {
            "" => problem.to_owned(),
            quoted => format!("{problem}: {}", render_quote(quoted)),
        })
    }
}

/// Message of a server.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ServerMessage {
    /// Result of the request with this id.
    Result { id: u64, result: Map<String, Value> },
    /// Refusal of the request with this id.
    Refusal { id: u64, code: i64, text: String },
    /// Request of the server. Its id is a text or a number.
    Request { id: Value, method: String },
    /// Message without an answer.
    Notification,
}

/// Reader of a server's messages.
pub(super) struct MessageReader<R> {
    lines: BufReader<R>,
}

impl<R: AsyncRead + Unpin> MessageReader<R> {
    pub(super) fn new(output: R) -> Self {
        Self {
            lines: BufReader::new(output),
        }
    }

    /// Reads the next message.
    pub(super) async fn read(&mut self) -> Result<ServerMessage, ServerFailure> {
        let line = self.read_line().await?;
        let text = std::str::from_utf8(&line)
            .map_err(|_| ServerFailure::of_protocol("a message is not UTF-8", ""))?;
        parse_message(text)
    }

    async fn read_line(&mut self) -> Result<Vec<u8>, ServerFailure> {
        let mut line = Vec::new();
        loop {
            let part = self.lines.fill_buf().await.map_err(ServerFailure::of_socket)?;
            if part.is_empty() {
                return Err(ServerFailure::Ended);
            }
            let end = part.iter().position(|byte| *byte == b'\n');
            let count = end.unwrap_or(part.len());
            // Checked before the copy, so that an endless line takes no more memory than the limit.
            if line.len() + count > MESSAGE_BYTES {
                return Err(ServerFailure::TooLarge);
            }
            line.extend_from_slice(&part[..count]);
            self.lines.consume(count + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(line);
            }
        }
    }
}

fn parse_message(text: &str) -> Result<ServerMessage, ServerFailure> {
    let problem = |problem: &str| Err(ServerFailure::of_protocol(problem, text));
    let Ok(Value::Object(mut fields)) = serde_json::from_str::<Value>(text) else {
        return problem("a line of its output is not a message");
    };
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return problem("a message is not of JSON-RPC 2.0");
    }
    let id = fields.remove("id");
    if let Some(method) = fields.get("method") {
        let Some(method) = method.as_str() else {
            return problem("the method of a message is not a text");
        };
        return match id {
            None => Ok(ServerMessage::Notification),
            Some(id) if id.is_string() || id.is_number() => Ok(ServerMessage::Request {
                id,
                method: method.to_owned(),
            }),
            Some(_) => problem("the id of a request is neither a text nor a number"),
        };
    }
    // This client numbers its requests, so every other id answers a request that it did not send.
    let Some(id) = id.as_ref().and_then(Value::as_u64) else {
        return problem("a response has no id of a request");
    };
    match (fields.remove("result"), fields.remove("error")) {
        (Some(Value::Object(result)), None) => Ok(ServerMessage::Result { id, result }),
        (None, Some(Value::Object(error))) => match error.get("code").and_then(Value::as_i64) {
            Some(code) => Ok(ServerMessage::Refusal {
                id,
                code,
                text: render_quote(error.get("message").and_then(Value::as_str).unwrap_or_default()),
            }),
            None => problem("an error has no code"),
        },
        _ => problem("a response has neither one result nor one error"),
    }
}

/// Renders a text of a server for a failure: sanitized, on one line, short.
pub(super) fn render_quote(text: &str) -> String {
    // Truncated first, because a message may be long.
    let start: String = text.chars().take(QUOTE_CHARS).collect();
    truncate_text(&one_line(&sanitize_output(&start)), QUOTE_CHARS)
}

/// Renders a message of this client as a line.
pub(super) fn render_line(message: &Value) -> String {
    // Compact JSON contains no line end.
    format!("{message}\n")
}

/// Builds the answer to a request of a server. This client answers pings and offers nothing else.
pub(super) fn build_answer(id: &Value, method: &str) -> Value {
    match method {
        "ping" => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
        _ => json!({"jsonrpc": "2.0", "id": id, "error": {
            "code": -32601, "message": "this client answers no requests of servers"
        }}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: &Value) -> Result<ServerMessage, String> {
        parse_message(&value.to_string()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn messages_have_their_kinds() {
        assert_eq!(
            parse(&json!({"jsonrpc": "2.0", "id": 3, "result": {"a": 1}})).unwrap(),
            ServerMessage::Result {
                id: 3,
                result: json!({"a": 1}).as_object().cloned().unwrap()
            }
        );
        assert_eq!(
            parse(&json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -1, "message": "a\nb"}})).unwrap(),
            ServerMessage::Refusal {
                id: 3,
                code: -1,
                text: "a b".to_owned()
            }
        );
        assert_eq!(
            parse(&json!({"jsonrpc": "2.0", "id": "x", "method": "roots/list"})).unwrap(),
            ServerMessage::Request {
                id: json!("x"),
                method: "roots/list".to_owned()
            }
        );
        assert_eq!(
            parse(&json!({"jsonrpc": "2.0", "method": "notifications/progress"})).unwrap(),
            ServerMessage::Notification
        );
    }

    #[test]
    fn messages_against_protocol_are_refused() {
        for wrong in [
            json!("hello"),
            json!([{"jsonrpc": "2.0", "id": 1, "result": {}}]),
            json!({"id": 1, "result": {}}),
            json!({"jsonrpc": "1.0", "id": 1, "result": {}}),
            json!({"jsonrpc": "2.0", "id": "1", "result": {}}),
            json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "parse"}}),
            json!({"jsonrpc": "2.0", "id": 1}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1}}),
            json!({"jsonrpc": "2.0", "id": 1, "result": "text"}),
            json!({"jsonrpc": "2.0", "id": 1, "error": {"message": "no code"}}),
            json!({"jsonrpc": "2.0", "id": [], "method": "ping"}),
            json!({"jsonrpc": "2.0", "method": 5}),
        ] {
            let problem = parse(&wrong).unwrap_err();
            assert!(
                problem.contains("does not follow the protocol"),
                "{wrong}: {problem}"
            );
        }
    }

    #[test]
    fn only_pings_get_results() {
        assert_eq!(build_answer(&json!(7), "ping")["result"], json!({}));
        for method in ["sampling/createMessage", "elicitation/create", "roots/list"] {
            assert_eq!(build_answer(&json!("a"), method)["error"]["code"], json!(-32601));
        }
    }

    #[tokio::test]
    async fn endless_line_is_refused_at_limit() {
        let endless = tokio::io::repeat(b'x');
        let failure = MessageReader::new(endless).read().await.unwrap_err();
        assert!(matches!(failure, ServerFailure::TooLarge));
        let failure = MessageReader::new(&b"{\"jsonrpc\""[..]).read().await.unwrap_err();
        assert!(
            matches!(failure, ServerFailure::Ended),
            "a line without its end is not a message"
        );
    }
}
