//! Why a call of the API did not succeed.

use reqwest::StatusCode;

/// Why a call of the API did not succeed. The words are those of the API where it has some; none of them holds a token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No client can be made on this machine.
    #[error("no HTTP client can be made")]
    Client(#[source] reqwest::Error),
    /// The request did not arrive, or no answer came in time.
    #[error("the API at {url} cannot be reached")]
    Unreachable {
        /// Its base URL.
        url: String,
        /// Why.
        source: reqwest::Error,
    },
    /// The API does not know the token.
    #[error("the API does not know this token")]
    UnknownToken,
    /// The API has a reason against it.
    #[error("{}", words(*.status, .detail))]
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// A stable name of the condition, e.g. `not_found`; empty where the answer has none.
        name: String,
        /// In words; empty where the answer has none.
        detail: String,
    },
    /// There is nothing to do, for this reason.
    #[error("{0}")]
    Needless(String),
    /// The answer is no JSON of the expected form: the API may be of another release.
    #[error("the API's answer is not understood")]
    NotUnderstood(#[source] serde_json::Error),
    /// The connection was lost while the answer came.
    #[error("the connection to the API was lost")]
    Lost(#[source] reqwest::Error),
    /// A stream of events ended too early.
    #[error("the events of the API broke off")]
    BrokenOff,
    /// The same, with a reason.
    #[error("the events of the API broke off")]
    Events(#[source] eventsource_stream::EventStreamError<reqwest::Error>),
}

impl Error {
    /// Whether another token may help: this one is not known, or may not do it.
    pub fn refuses_token(&self) -> bool {
        matches!(self, Self::UnknownToken)
            || matches!(self, Self::Refused { status, .. } if *status == StatusCode::FORBIDDEN)
    }
}

fn words(status: StatusCode, detail: &str) -> String {
    match detail {
        "" => format!("the API answered {status}"),
        detail => detail.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_is_not_known_or_may_not_do_it_is_refused_and_nothing_else_is() {
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
