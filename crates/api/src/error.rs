//! Errors of API calls.

use reqwest::StatusCode;

/// Error of an API call. Its text is that of the API if the API sent one. No text contains a token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The HTTP client cannot be created on this machine.
    #[error("no HTTP client can be made")]
    Client(#[source] reqwest::Error),
    /// The request did not arrive, or no answer came in time.
    #[error("the API at {url} cannot be reached")]
    Unreachable {
        /// Its base URL.
        url: String,
        /// Error of the HTTP client.
        source: reqwest::Error,
    },
    /// The API does not know the token.
    #[error("the API does not know this token")]
    UnknownToken,
    /// The API refused the request.
    #[error("{}", describe_refused(*.status, .detail))]
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// A stable name of the condition, e.g. `not_found`; empty if the answer has none.
        name: String,
        /// Description for people; empty if the answer has none.
        detail: String,
    },
    /// The job is not necessary; the text gives the reason.
    #[error("{0}")]
    Needless(String),
    /// The answer is not JSON of the expected form: the API may belong to another release.
    #[error("the API's answer is not understood")]
    NotUnderstood(#[source] serde_json::Error),
    /// The connection was lost during the answer.
    #[error("the connection to the API was lost")]
    Lost(#[source] reqwest::Error),
    /// A stream of events ended too early.
    #[error("the events of the API broke off")]
    BrokenOff,
    /// A stream of events failed with this error.
    #[error("the events of the API broke off")]
    Events(#[source] eventsource_stream::EventStreamError<reqwest::Error>),
}

impl Error {
    /// Returns true when another token may help: this one is unknown or forbidden.
    pub fn refuses_token(&self) -> bool {
        matches!(self, Self::UnknownToken)
            || matches!(self, Self::Refused { status, .. } if *status == StatusCode::FORBIDDEN)
    }
}

fn describe_refused(status: StatusCode, detail: &str) -> String {
    match detail {
        "" => format!("the API answered {status}"),
        detail => detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_token_only_for_unauthorized_or_forbidden() {
        let refused = |status| Error::Refused {
            status,
            name: String::new(),
            detail: String::new(),
        };
        assert!(Error::UnknownToken.refuses_token());
        assert!(refused(StatusCode::FORBIDDEN).refuses_token());
        for other in [
            StatusCode::NOT_FOUND,
            StatusCode::CONFLICT,
            StatusCode::BAD_GATEWAY,
        ] {
            assert!(!refused(other).refuses_token(), "{other}");
        }
    }
}
