//! Answers of Jira: body, or classification of the refusal.

use std::time::Duration;

use domain::json;
use reqwest::header::HeaderMap;
use serde::de::DeserializeOwned;
use serde_json::Value;
use webclient::{RequestIntent, ServiceAnswer, ServiceRefusal};

use crate::Error;

const DEFAULT_RATE_LIMIT_WAIT: Duration = Duration::from_secs(60);
// Limit of 15 minutes: an administrator can set an interval of a day, which would block the account as long.
const MAX_INTERVAL_S: u64 = 900;

/// Time that an answer asks to wait. A Data Center may send 0 or no value; its next requests come with the
/// next interval.
fn parse_retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = |name: &str| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
    let asked = seconds("retry-after").filter(|asked| *asked > 0);
    let interval =
        || seconds("x-ratelimit-interval-seconds").map(|interval| interval.clamp(1, MAX_INTERVAL_S));
    asked.or_else(interval).map(Duration::from_secs)
}

/// True when the refusal is for too many writes to one issue, which does not affect other issues.
pub(crate) fn is_of_one_issue(headers: &HeaderMap) -> bool {
    let reason = headers.get("ratelimit-reason");
    let reason = reason.and_then(|reason| reason.to_str().ok());
    reason.is_some_and(|reason| reason.contains("per-issue"))
}

/// Parses a body; an empty one (204) counts as null.
pub(crate) fn parse_body<T: DeserializeOwned>(
    body: &[u8],
    name: &str,
    intent: RequestIntent,
) -> Result<T, Error> {
    let body = if body.is_empty() { b"null" } else { body };
    read_json(body).map_err(|error| match error {
        json::Error::TooDeep if !intent.is_write() => Error::TooDeep {
            what: format!("the answer to {name}"),
        },
        // JSON of a gateway passes; only Jira's own answer stays the same.
        json::Error::TooDeep | json::Error::Unreadable(_) if json::is_foreign_object::<T>(body) => {
            intent.lose_to_foreign_answer(name).into()
        }
        json::Error::TooDeep | json::Error::Unreadable(_) => {
            intent.refuse_answer(format!("{name}, {error}")).into()
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
fn parse_message(body: &[u8]) -> String {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let general = value["errorMessages"].as_array().into_iter().flatten();
    let general = general.filter_map(Value::as_str).map(str::to_owned);
    let fields = value["errors"].as_object().into_iter().flatten();
    let fields = fields.filter_map(|(field, text)| Some(format!("{field}: {}", text.as_str()?)));
    webclient::truncate_service_text(&general.chain(fields).collect::<Vec<_>>().join("; "))
}

/// Classifies an answer that is not a success.
pub(crate) fn classify_refusal(name: &str, answer: &ServiceAnswer) -> Error {
    let status = answer.status.as_u16();
    // A login page or portal at the API's address redirects; nothing was done there.
    if answer.status.is_redirection() {
        let detail = format!("{name} answered {status} with a redirect");
        return RequestIntent::Read.lose_answer(detail, None).into();
    }
    let message = parse_message(&answer.body);
    let detail = if message.is_empty() {
        format!("{name} answered {status}")
    } else {
        message
    };
    match answer.refusal(name) {
        ServiceRefusal::Unauthorized => Error::Unauthorized {
            check: "the account's address and API token, or its personal access token".to_owned(),
        },
        ServiceRefusal::Forbidden => Error::Forbidden { detail },
        ServiceRefusal::NotFound => Error::NotFound {
            what: name.to_owned(),
        },
        ServiceRefusal::Conflict => Error::Conflict { detail },
        ServiceRefusal::RateLimited => Error::RateLimited {
            retry_after: parse_retry_after(&answer.headers).unwrap_or(DEFAULT_RATE_LIMIT_WAIT),
        },
        ServiceRefusal::Failed(error) => error.into(),
        ServiceRefusal::Rejected => Error::Rejected { detail },
    }
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
                let page: WirePage<WireComment> =
                    parse_body(page.as_bytes(), "GET x", RequestIntent::Read).unwrap();
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
            let refused = on_a_small_stack(move || {
                parse_body::<Value>(text.as_bytes(), "GET x", RequestIntent::Read).unwrap_err()
            });
            assert!(matches!(refused, Error::TooDeep { .. }), "{refused}");
        }
        let id = format!(r#"{{"id": {}}}"#, nest_arrays(400));
        let refused = on_a_small_stack(move || {
            parse_body::<wire::WireId>(id.as_bytes(), "GET x", RequestIntent::Read).err()
        });
        assert!(matches!(refused, Some(Error::TooDeep { .. })), "{refused:?}");
    }

    #[test]
    fn deep_answer_of_wrong_shape_is_malformed() {
        let body = format!(r#"{{"deep": {}, "values": 1}}"#, nest_arrays(400));
        let refused =
            parse_body::<WirePage<Box<RawValue>>>(body.as_bytes(), "GET x", RequestIntent::Read).err();
        assert!(matches!(refused, Some(Error::Malformed { .. })), "{refused:?}");
    }

    #[test]
    fn json_without_known_field_is_an_outage() {
        fn refuse<T: DeserializeOwned>(body: &str, intent: RequestIntent) -> Error {
            match parse_body::<T>(body.as_bytes(), "GET x", intent) {
                Ok(_) => panic!("{body} is read"),
                Err(error) => error,
            }
        }
        for body in [
            r#"{"message":"Service Unavailable"}"#,
            r#"{"status":503,"error":"busy"}"#,
            "{}",
        ] {
            for refused in [
                refuse::<WirePage<WireComment>>(body, RequestIntent::Read),
                refuse::<wire::WireId>(body, RequestIntent::Read),
                refuse::<wire::WireIssue>(body, RequestIntent::Read),
                refuse::<Vec<wire::WireTypeStatuses>>(body, RequestIntent::Read),
                // Empty lists would drop events, or deny people their rights.
                refuse::<wire::WireSearch<wire::WireStub>>(body, RequestIntent::Read),
                refuse::<wire::WireWithHistory>(body, RequestIntent::Read),
                refuse::<wire::WireGroupsOnly>(body, RequestIntent::Read),
                refuse::<wire::WirePickedGroups>(body, RequestIntent::Read),
                refuse::<wire::WireMembers>(body, RequestIntent::Read),
                refuse::<wire::WireRole>(body, RequestIntent::Read),
                refuse::<wire::WirePermissions>(body, RequestIntent::Read),
            ] {
                let is_passing = matches!(refused, Error::Unavailable { .. }) && refused.is_retryable();
                assert!(is_passing, "{body}: {refused}");
            }
            let lost = refuse::<wire::WireId>(body, RequestIntent::Write);
            assert!(matches!(lost, Error::Unknown { .. }), "{body}: {lost}");
        }
        let own = refuse::<wire::WireId>(r#"{"message":"x","id":[]}"#, RequestIntent::Read);
        assert!(matches!(own, Error::Malformed { .. }), "{own}");
    }

    #[test]
    fn issue_limit_differs_from_account_limit() {
        for (reason, is_of_one) in [
            ("jira-per-issue-on-write", true),
            ("jira-quota-tenant-based", false),
            ("jira-burst-based", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("ratelimit-reason", reason.parse().unwrap());
            assert_eq!(is_of_one_issue(&headers), is_of_one, "{reason}");
        }
        assert!(!is_of_one_issue(&HeaderMap::new()));
    }
}
