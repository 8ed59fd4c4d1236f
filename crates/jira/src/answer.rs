//! Answers of Jira: body within its limit, or classification of the failure.

use std::time::Duration;

use domain::{ErrorCause, json};
use reqwest::{
    Response, StatusCode,
    header::{self, HeaderMap},
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Error, error::truncate_text, limits};

const DEFAULT_RATE_LIMIT_WAIT: Duration = Duration::from_secs(60);
// Limit of 15 minutes: an administrator can set an interval of a day, which would block the account as long.
const MAX_INTERVAL_S: u64 = 900;
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Headers of an answer that determine the result of the request.
pub(crate) struct AnswerHeaders {
    pub(crate) content_type: String,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) is_of_one_issue: bool,
}

impl AnswerHeaders {
    pub(crate) fn read(headers: &HeaderMap) -> Self {
        let content_type = headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok());
        Self {
            content_type: content_type.unwrap_or_default().to_owned(),
            retry_after: parse_retry_after(headers),
            is_of_one_issue: limits::is_of_one_issue(headers),
        }
    }
}

/// Time that an answer asks to wait. A Data Center may send 0 or no value; its next requests come with the
/// next interval.
fn parse_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = |name: &str| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    let asked = seconds("retry-after").filter(|asked| *asked > 0);
    let interval =
        || seconds("x-ratelimit-interval-seconds").map(|interval| interval.clamp(1, MAX_INTERVAL_S));
    asked.or_else(interval).map(Duration::from_secs)
}

pub(crate) async fn read_bounded_body(mut response: Response, write: bool) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| classify_failure(error, write))?
    {
        // Checked for each chunk, because the header `content-length` may be missing or wrong.
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            let detail = format!("more than {} MiB", MAX_ANSWER_BYTES >> 20);
            return Err(classify_unreadable(write, detail));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Returns a temporary failure for a successful status whose body is not from Jira. An empty body (204) is
/// valid for a write.
pub(crate) fn check_origin(content_type: &str, body: &[u8], name: &str, write: bool) -> Result<(), Error> {
    if write && body.is_empty() {
        return Ok(());
    }
    json::find_foreign_answer(content_type, body).map_or(Ok(()), |problem| {
        Err(classify_lost(
            write,
            format!("{name} was answered by {problem}"),
            None,
        ))
    })
}

/// Parses a body; an empty one (204) counts as null.
pub(crate) fn parse_body<T: DeserializeOwned>(body: &[u8], name: &str, write: bool) -> Result<T, Error> {
    let body = if body.is_empty() { b"null" } else { body };
    read_json(body).map_err(|error| match error {
        json::Error::TooDeep if !write => Error::TooDeep {
            what: format!("the answer to {name}"),
        },
        json::Error::TooDeep | json::Error::Unreadable(_) => {
            classify_unreadable(write, format!("{name}, {error}"))
        }
    })
}

/// Parses JSON in which single texts may be nested too deeply. Raw and ignored values are skipped without
/// recursion at any depth, and the limit of `serde_json` (128 levels) bounds the others.
fn read_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, json::Error> {
    match json::from_slice(body) {
        // Only `serde_json` itself can skip values; the stricter parser measures the depth of the whole text.
        Err(json::Error::TooDeep) => serde_json::from_slice(body).map_err(|error| {
            if error.is_data() {
                json::Error::Unreadable(error)
            } else {
                json::Error::TooDeep
            }
        }),
        read => read,
    }
}

/// Jira's message: general messages first, then those about fields.
pub(crate) fn parse_message(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let general = value["errorMessages"].as_array().into_iter().flatten();
    let general = general.filter_map(Value::as_str).map(str::to_owned);
    let fields = value["errors"].as_object().into_iter().flatten();
    let fields = fields.filter_map(|(field, text)| Some(format!("{field}: {}", text.as_str()?)));
    truncate_text(&general.chain(fields).collect::<Vec<_>>().join("; "))
}

pub(crate) fn classify_refusal(
    name: &str,
    status: StatusCode,
    headers: &AnswerHeaders,
    message: &str,
    write: bool,
) -> Error {
    let what = || format!("{name} answered {}", status.as_u16());
    let detail = || {
        if message.is_empty() {
            what()
        } else {
            message.to_owned()
        }
    };
    match status.as_u16() {
        // A login page or portal at the API's address redirects; nothing was done there.
        300..=399 => classify_lost(false, format!("{} with a redirect", what()), None),
        404 | 410 if json::is_page(&headers.content_type) => {
            classify_lost(write, format!("{} with a page", what()), None)
        }
        401 => Error::Unauthorized {
            check: "the account's address and API token, or its personal access token".to_owned(),
        },
        403 => Error::Forbidden { detail: detail() },
        404 | 410 => Error::NotFound {
            what: name.to_owned(),
        },
        409 => Error::Conflict { detail: detail() },
        429 => Error::RateLimited {
            retry_after: headers.retry_after.unwrap_or(DEFAULT_RATE_LIMIT_WAIT),
        },
        // A 503 counts as not executed, also for a write; after any other server error the write may have
        // been done.
        503 => classify_lost(false, what(), None),
        500.. => classify_lost(write, what(), None),
        _ => Error::Rejected { detail: detail() },
    }
}

/// Error of an exchange without Jira's answer, or with a gateway's only: a write may have been done.
const fn classify_lost(write: bool, detail: String, source: Option<ErrorCause>) -> Error {
    if write {
        Error::Unknown { detail, source }
    } else {
        Error::Unavailable { detail, source }
    }
}

/// Error of an answer that cannot be read. A repeated read gives the same answer, whereas a write may have been
/// done.
fn classify_unreadable(write: bool, detail: String) -> Error {
    if write {
        classify_lost(write, detail, None)
    } else {
        Error::Malformed { detail }
    }
}

/// Classifies a failed exchange. Only a connection that was never established proves that nothing was sent.
pub(crate) fn classify_failure(error: reqwest::Error, write: bool) -> Error {
    if error.is_builder() {
        return Error::Rejected {
            detail: "the path is not a legal URL".to_owned(),
        };
    }
    let (write, detail) = if error.is_connect() {
        (false, "cannot connect")
    } else if error.is_timeout() {
        (write, "timed out")
    } else {
        (write, "the connection was lost")
    };
    // The URL is removed: its query contains the caller's text, e.g. JQL.
    classify_lost(write, detail.to_owned(), Some(error.without_url().into()))
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use domain::TrackerAccount;

    use super::*;
    use crate::JiraDialect;
    use crate::wire::{self, WireComment, WirePage};

    fn on_a_small_stack<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> T {
        let thread = std::thread::Builder::new().stack_size(256 * 1024);
        thread.spawn(read).unwrap().join().unwrap()
    }

    fn nest_arrays(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn deep_comment_hides_no_other_comment() {
        for levels in [100, 400, 2000, 1_000_000] {
            let texts = on_a_small_stack(move || {
                let deep = nest_arrays(levels);
                let comment = |body: &str, value: &str| {
                    format!(
                        r#"{{"id": 1, "created": "2026-01-01T00:00:00.000+0000", "body": {body}, "unknown": {value},
                            "properties": [{{"key": "other", "value": {value}}},
                                {{"key": "journeyman", "value": {{"id": "m1"}}}},
                                {{"key": "journeyman", "value": {value}}}]}}"#
                    )
                };
                let comments = [comment("null", &deep), comment(&deep, "1")].join(",");
                let page = format!(r#"{{"unknown": {deep}, "total": 2, "comments": [{comments}]}}"#);
                let page: WirePage<WireComment> = parse_body(page.as_bytes(), "GET x", false).unwrap();
                let us = TrackerAccount {
                    is_bot: false,
                    id: "us".to_owned(),
                    ..TrackerAccount::default()
                };
                let read = page
                    .values
                    .into_iter()
                    .map(|wire| wire.into_comment(&us, JiraDialect::Cloud).unwrap());
                read.map(|comment| (comment.text, comment.marker))
                    .collect::<Vec<_>>()
            });
            let deep = if levels > json::MAX_DEPTH {
                "[This comment is nested too deeply to be read.]"
            } else {
                ""
            };
            let marker = || "m1".to_owned();
            assert_eq!(
                texts,
                [(String::new(), marker()), (deep.to_owned(), marker())],
                "{levels}"
            );
        }
    }

    #[test]
    fn wait_follows_retry_after_or_interval() {
        for (headers, expected) in [
            (&[("retry-after", "7")][..], Some(7)),
            (
                &[("retry-after", "7"), ("x-ratelimit-interval-seconds", "60")],
                Some(7),
            ),
            (
                &[("retry-after", "0"), ("x-ratelimit-interval-seconds", "60")],
                Some(60),
            ),
            (&[("x-ratelimit-interval-seconds", "86400")], Some(900)),
            (&[("retry-after", "soon")], None),
            (&[], None),
        ] {
            let pairs = headers.iter().map(|(name, value)| {
                let name: reqwest::header::HeaderName = name.parse().unwrap();
                (name, value.parse().unwrap())
            });
            let headers: HeaderMap = pairs.collect();
            let wait = parse_retry_after(&headers);
            assert_eq!(wait.map(|wait| wait.as_secs()), expected, "{headers:?}");
        }
    }

    #[test]
    fn deep_value_is_refused_as_too_deep() {
        for text in [nest_arrays(400), nest_arrays(2000), nest_arrays(1_000_000)] {
            let refused =
                on_a_small_stack(move || parse_body::<Value>(text.as_bytes(), "GET x", false).unwrap_err());
            assert!(matches!(refused, Error::TooDeep { .. }), "{refused}");
        }
        let id = format!(r#"{{"id": {}}}"#, nest_arrays(400));
        let refused =
            on_a_small_stack(move || parse_body::<wire::WireId>(id.as_bytes(), "GET x", false).err());
        assert!(matches!(refused, Some(Error::TooDeep { .. })), "{refused:?}");
    }

    #[test]
    fn deep_answer_of_wrong_shape_is_malformed() {
        let body = format!(r#"{{"deep": {}, "values": 1}}"#, nest_arrays(400));
        let refused = parse_body::<WirePage<Box<RawValue>>>(body.as_bytes(), "GET x", false).err();
        assert!(matches!(refused, Some(Error::Malformed { .. })), "{refused:?}");
    }
}
