//! One exchange with a service: the bounded answer, or the meaning of its loss.

use std::{borrow::Cow, fmt};

use domain::{ErrorCause, json};
use reqwest::{RequestBuilder, Response, StatusCode, header::HeaderMap};

/// Purpose of a request, which decides what the loss of its answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestIntent {
    /// The request changes nothing and may be repeated.
    Read,
    /// The request changes something, which may have been done although the answer is lost.
    Write,
}

impl RequestIntent {
    /// True for a write.
    pub const fn is_write(self) -> bool {
        match self {
            Self::Read => false,
            Self::Write => true,
        }
    }

    /// Error of an exchange without an answer of the service, or with that of a gateway only.
    pub fn lose_answer(self, detail: String, source: Option<ErrorCause>) -> ExchangeError {
        match self {
            Self::Read => ExchangeError::Unavailable { detail, source },
            Self::Write => ExchangeError::Unknown { detail, source },
        }
    }

    /// Error of an answer that is JSON of another service, such as a gateway. Such an answer passes.
    pub fn lose_to_foreign_answer(self, name: &str) -> ExchangeError {
        self.lose_answer(format!("{name} was answered by JSON of another service"), None)
    }

    /// Error of an answer that cannot be read: too large, or of another shape than documented.
    pub fn refuse_answer(self, detail: String) -> ExchangeError {
        match self {
            // A repeated read gives the same answer.
            Self::Read => ExchangeError::Malformed { detail },
            Self::Write => self.lose_answer(detail, None),
        }
    }
}

/// Failure of an exchange without a refusal of the service.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The address of the request is not a URL; nothing was sent.
    #[error("the path is not a legal URL")]
    InvalidUrl,
    /// Nothing was done: the connection failed, or a read has no answer of the service.
    #[error("the service is unavailable: {detail}")]
    Unavailable {
        /// Status or class of the failure.
        detail: String,
        /// Cause of a failed connection.
        source: Option<ErrorCause>,
    },
    /// A write was sent and its outcome is unknown.
    #[error("the outcome of a write is unknown: {detail}")]
    Unknown {
        /// Status or class of the failure.
        detail: String,
        /// Cause of a failed connection.
        source: Option<ErrorCause>,
    },
    /// The answer to a read cannot be used; a repeated request gives the same answer.
    #[error("the answer cannot be read: {detail}")]
    Malformed {
        /// Location in the answer, without its text.
        detail: String,
    },
}

/// Meaning of a status that refuses a request, as far as the services agree on it.
#[derive(Debug)]
pub enum ServiceRefusal {
    /// The credentials are missing, wrong or expired.
    Unauthorized,
    /// The credentials are valid and insufficient.
    Forbidden,
    /// The resource does not exist, or the credentials cannot see it.
    NotFound,
    /// The request clashes with the present state.
    Conflict,
    /// A rate limit refused the request.
    RateLimited,
    /// The service or its gateway failed.
    Failed(ExchangeError),
    /// The service does not accept the request as it is.
    Rejected,
}

/// Answer of a service with its whole body.
pub struct ServiceAnswer {
    /// Status of the answer.
    pub status: StatusCode,
    /// Headers of the answer.
    pub headers: HeaderMap,
    /// Body. [`exchange_request`] replaces broken characters by U+FFFD, [`download_file`] keeps all bytes.
    pub body: Vec<u8>,
    intent: RequestIntent,
}

// Headers and body may be confidential.
impl fmt::Debug for ServiceAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceAnswer")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl ServiceAnswer {
    /// Text of a header; `None` for a missing one and for one that is not text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Checks that the service wrote the answer to the request `name` (method and path).
    ///
    /// The page of a proxy or portal counts as an outage; a truncated answer is one, too. An empty body is
    /// valid for a write.
    ///
    /// # Errors
    /// [`ExchangeError::Unavailable`] for a read, [`ExchangeError::Unknown`] for a write.
    pub fn check_origin(&self, name: &str) -> Result<(), ExchangeError> {
        let content_type = self.header("content-type").unwrap_or_default();
        let problem = match self.status.as_u16() {
            200..300 if self.intent.is_write() && self.body.is_empty() => None,
            200..300 => json::find_foreign_answer(content_type, &self.body),
            // The services send their own 404 in JSON. A page comes from a proxy or a maintenance, so the
            // resource may exist.
            404 | 410 if json::is_page(content_type) => Some("a page"),
            _ => None,
        };
        problem.map_or(Ok(()), |problem| {
            let detail = format!("{name} answered {} with {problem}", self.status.as_u16());
            Err(self.intent.lose_answer(detail, None))
        })
    }

    /// Classifies the status of an answer that is not a success.
    pub fn refusal(&self, name: &str) -> ServiceRefusal {
        match self.status.as_u16() {
            401 => ServiceRefusal::Unauthorized,
            403 => ServiceRefusal::Forbidden,
            404 | 410 => ServiceRefusal::NotFound,
            409 => ServiceRefusal::Conflict,
            429 => ServiceRefusal::RateLimited,
            // After each of them a write may have been done, after a 503, too: neither GitHub nor Jira documents
            // that it did nothing then, and a gateway may send it after it passed the request on.
            status @ 500.. => {
                ServiceRefusal::Failed(self.intent.lose_answer(format!("{name} answered {status}"), None))
            }
            _ => ServiceRefusal::Rejected,
        }
    }
}

/// Sends a request once and reads the answer, of at most `max_bytes`.
///
/// # Errors
/// [`ExchangeError`] when the service gave no answer, or one above the limit.
pub async fn exchange_request(
    request: RequestBuilder,
    intent: RequestIntent,
    max_bytes: usize,
) -> Result<ServiceAnswer, ExchangeError> {
    let response = request
        .send()
        .await
        .map_err(|error| classify_failure(error, intent))?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = read_bounded_body(response, intent, max_bytes).await?;
    // The services may truncate a text within a surrogate pair; serde would then reject the whole answer.
    let replaced = match json::replace_broken_characters(&body) {
        Cow::Owned(replaced) => Some(replaced),
        Cow::Borrowed(_) => None,
    };
    Ok(ServiceAnswer {
        status,
        headers,
        body: replaced.unwrap_or(body),
        intent,
    })
}

/// Outcome of a download.
#[derive(Debug)]
pub enum FileDownload {
    /// The answer with its whole body.
    Whole(ServiceAnswer),
    /// The file is larger than the limit; the rest was not read.
    TooLarge,
}

/// Sends a read once and returns the bytes of the answer as they are, at most `max_bytes`. No encoding is undone, so the
/// limit holds for what is kept.
///
/// # Errors
/// [`ExchangeError::Unavailable`] when the service gave no answer.
pub async fn download_file(request: RequestBuilder, max_bytes: usize) -> Result<FileDownload, ExchangeError> {
    let intent = RequestIntent::Read;
    let response = request
        .send()
        .await
        .map_err(|error| classify_failure(error, intent))?;
    if response.status().is_success()
        && response
            .content_length()
            .is_some_and(|length| length > max_bytes as u64)
    {
        return Ok(FileDownload::TooLarge);
    }
    let (status, headers) = (response.status(), response.headers().clone());
    let Some(body) = collect_body(response, intent, max_bytes).await? else {
        return Ok(FileDownload::TooLarge);
    };
    Ok(FileDownload::Whole(ServiceAnswer {
        status,
        headers,
        body,
        intent,
    }))
}

async fn read_bounded_body(
    response: Response,
    intent: RequestIntent,
    max_bytes: usize,
) -> Result<Vec<u8>, ExchangeError> {
    let body = collect_body(response, intent, max_bytes).await?;
    body.ok_or_else(|| intent.refuse_answer(format!("more than {max_bytes} bytes")))
}

/// Reads a body; `None` above the limit.
async fn collect_body(
    mut response: Response,
    intent: RequestIntent,
    max_bytes: usize,
) -> Result<Option<Vec<u8>>, ExchangeError> {
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| classify_failure(error, intent))?
    {
        // Checked for each chunk, because the header `content-length` may be missing or wrong.
        if body.len() + chunk.len() > max_bytes {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

/// Classifies a failed exchange. Only a connection that was never established proves that nothing was sent.
pub fn classify_failure(error: reqwest::Error, intent: RequestIntent) -> ExchangeError {
    if error.is_builder() {
        return ExchangeError::InvalidUrl;
    }
    let (intent, detail) = if error.is_connect() {
        (RequestIntent::Read, "cannot connect")
    } else if error.is_timeout() {
        (intent, "timed out")
    } else {
        (intent, "the connection was lost")
    };
    // The URL is removed: it may contain the caller's text, e.g. JQL, or the signature of a text at another host.
    intent.lose_answer(detail.to_owned(), Some(error.without_url().into()))
}

/// Truncates a text of a service to 300 characters, for errors.
pub fn truncate_service_text(text: &str) -> String {
    text.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use reqwest::header::{CONTENT_TYPE, HeaderValue};
    use tokio::{io::AsyncReadExt, net::TcpListener};

    use super::*;
    use RequestIntent::{Read, Write};

    fn build_answer(status: u16, content_type: &str, body: &str, intent: RequestIntent) -> ServiceAnswer {
        let content_type: HeaderValue = content_type.parse().unwrap();
        ServiceAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::from_iter([(CONTENT_TYPE, content_type)]),
            body: body.as_bytes().to_vec(),
            intent,
        }
    }

    #[tokio::test]
    async fn answer_above_limit_is_refused() {
        let answer = || Response::from(http::Response::new("12345678"));
        assert_eq!(read_bounded_body(answer(), Read, 8).await.unwrap(), b"12345678");
        let refused = read_bounded_body(answer(), Read, 7).await.unwrap_err();
        assert!(matches!(refused, ExchangeError::Malformed { .. }), "{refused}");
        let unknown = read_bounded_body(answer(), Write, 7).await.unwrap_err();
        assert!(matches!(unknown, ExchangeError::Unknown { .. }), "{unknown}");
    }

    /// The service receives the request and sends no answer.
    #[tokio::test]
    async fn timeout_after_sending_loses_the_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.read(&mut [0; 1024]).await;
                // The connection stays open, so that the client waits.
                open.push(stream);
            }
        });
        let client = crate::build_client(&url, HeaderMap::new()).unwrap();
        for (intent, is_unknown) in [(Read, false), (Write, true)] {
            // Long enough for the request to leave a loaded machine.
            let request = client.post(&url).timeout(Duration::from_secs(2)).body("x");
            let lost = exchange_request(request, intent, 1024).await.unwrap_err();
            assert!(lost.to_string().ends_with("timed out"), "{lost}");
            let found = matches!(lost, ExchangeError::Unknown { .. });
            assert_eq!(found, is_unknown, "{lost}");
        }
    }

    #[tokio::test]
    async fn unconnected_write_is_unavailable() {
        // No program listens on port 1.
        let url = "http://127.0.0.1:1/?secret";
        let client = crate::build_client(url, HeaderMap::new()).unwrap();
        let failed = exchange_request(client.post(url), Write, 1024).await.unwrap_err();
        assert!(matches!(failed, ExchangeError::Unavailable { .. }), "{failed}");
        assert!(!format!("{failed:?}").contains("secret"), "{failed:?}");
    }

    #[test]
    fn foreign_answer_loses_the_answer() {
        let json = "application/json";
        for (status, content_type, body, intent, is_ours) in [
            (200, json, "{}", Read, true),
            (200, json, "{\"cut", Read, false),
            (200, json, "", Read, false),
            (204, "", "", Write, true),
            (201, json, "{\"cut", Write, false),
            (201, "text/html", "{}", Write, false),
            (404, "text/html", "<html>", Read, false),
            (404, json, "{}", Read, true),
            (302, "text/html", "<html>", Read, true),
        ] {
            let checked = build_answer(status, content_type, body, intent).check_origin("GET /x");
            match checked {
                Ok(()) => assert!(is_ours, "{status} {body}"),
                Err(lost) => {
                    assert!(!is_ours, "{status} {body}: {lost}");
                    let is_unknown = matches!(lost, ExchangeError::Unknown { .. });
                    assert_eq!(is_unknown, intent.is_write(), "{status} {body}: {lost}");
                }
            }
        }
    }

    #[test]
    fn server_error_leaves_write_unknown() {
        for status in [500, 502, 503, 504, 520] {
            for intent in [Read, Write] {
                let refusal = build_answer(status, "", "", intent).refusal("POST /x");
                let ServiceRefusal::Failed(error) = refusal else {
                    panic!("{status}: {refusal:?}");
                };
                let is_unknown = matches!(error, ExchangeError::Unknown { .. });
                assert_eq!(is_unknown, intent.is_write(), "{error}");
                assert!(
                    error.to_string().contains(&format!("answered {status}")),
                    "{error}"
                );
            }
        }
        let refusal = build_answer(422, "", "", Write).refusal("POST /x");
        assert!(matches!(refusal, ServiceRefusal::Rejected), "{refusal:?}");
    }
}
