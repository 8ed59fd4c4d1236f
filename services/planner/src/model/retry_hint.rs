//! Time after which a provider accepts the next attempt, in the forms that providers name it.

use std::time::Duration;

use reqwest::header::HeaderMap;
use serde_json::Value;

// Prefix of the provider's headers behind `LiteLLM`.
const PROXIED: &str = "llm_provider-";
// Words of messages before the time.
const LEADS: [&str; 4] = ["try again in ", "retry in ", "retry after ", "wait "];

/// Returns the time that the headers of a response name.
pub(super) fn read_headers(headers: &HeaderMap) -> Option<Duration> {
    ["", PROXIED].iter().find_map(|prefix| {
        let header = |name: &str| headers.get(format!("{prefix}{name}"))?.to_str().ok();
        let number = |name: &str| header(name)?.trim().parse::<f64>().ok();
        let seconds = number("retry-after-ms")
            .map(|ms| ms / 1000.0)
            .or_else(|| number("retry-after"));
        seconds
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .or_else(|| until_date(header("retry-after")?, headers))
            .or_else(|| read_exhausted_limits(&header))
    })
}

/// Returns the time until a date, measured from the date of the response, so that clocks may differ.
fn until_date(date: &str, headers: &HeaderMap) -> Option<Duration> {
    let now = headers.get(reqwest::header::DATE)?.to_str().ok()?;
    let now = httpdate::parse_http_date(now).ok()?;
    let then = httpdate::parse_http_date(date.trim()).ok()?;
    Some(then.duration_since(now).unwrap_or_default())
}

/// Returns the time until the limits with nothing left are reset, as `OpenAI` names them: `6m0s`.
fn read_exhausted_limits<'a>(header: &impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    let resets = ["requests", "tokens"].into_iter().filter_map(|kind| {
        let left = header(&format!("x-ratelimit-remaining-{kind}"))?;
        let reset = header(&format!("x-ratelimit-reset-{kind}"))?;
        (left.trim() == "0").then(|| parse_duration(reset))?
    });
    resets.max()
}

/// Returns the time that a message names, as in `Please try again in 1m30.5s`.
pub(super) fn read_message(message: &str) -> Option<Duration> {
    let message = message.to_ascii_lowercase();
    LEADS.iter().find_map(|lead| {
        let mut places = message.match_indices(lead);
        places.find_map(|(at, _)| parse_duration(&message[at + lead.len()..]))
    })
}

/// Returns the time in the details of an error of Google's APIs.
pub(super) fn read_details(details: &Value) -> Option<Duration> {
    let mut details = details.as_array()?.iter();
    details.find_map(|detail| parse_duration(detail["retryDelay"].as_str()?))
}

/// Parses numbers with units: `250ms`, `6m0s`, `1.5 seconds`.
fn parse_duration(text: &str) -> Option<Duration> {
    let (mut rest, mut total) = (text.trim_start(), None);
    loop {
        let end = rest
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let after = after.trim_start();
        let end = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (Ok(number), Some(seconds)) = (number.parse::<f64>(), seconds_of_unit(unit)) else {
            return total;
        };
        let more = Duration::try_from_secs_f64(number * seconds).ok()?;
        total = Some(total.unwrap_or(Duration::ZERO).checked_add(more)?);
        rest = after;
    }
}

fn seconds_of_unit(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use reqwest::header::{HeaderName, HeaderValue};
    use serde_json::json;

    use super::*;

    fn build_headers(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        headers.iter().map(header).collect()
    }

    #[test]
    fn headers_of_each_kind_are_read() {
        for (headers, wanted) in [
            (vec![("retry-after", "3")], Some(3_000)),
            (vec![("retry-after", "3"), ("retry-after-ms", "250")], Some(250)),
            (vec![("llm_provider-retry-after", "4")], Some(4_000)),
            (vec![("llm_provider-retry-after-ms", "1500")], Some(1_500)),
            (
                vec![
                    ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                    ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"),
                ],
                Some(30_000),
            ),
            (
                vec![
                    ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                    ("retry-after", "Sun, 06 Nov 1994 08:49:07 GMT"),
                ],
                Some(0),
            ),
            (vec![("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], None),
            (
                vec![
                    ("x-ratelimit-remaining-requests", "0"),
                    ("x-ratelimit-reset-requests", "1s"),
                    ("x-ratelimit-remaining-tokens", "0"),
                    ("x-ratelimit-reset-tokens", "6m0s"),
                ],
                Some(360_000),
            ),
            (
                vec![
                    ("x-ratelimit-remaining-tokens", "149984"),
                    ("x-ratelimit-reset-tokens", "6m0s"),
                ],
                None,
            ),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "soon")], None),
        ] {
            let read = read_headers(&build_headers(&headers));
            assert_eq!(read, wanted.map(Duration::from_millis), "{headers:?}");
        }
    }

    #[test]
    fn message_and_details_name_time() {
        for (message, wanted) in [
            (
                "Limit 30000, Used 25000. Please try again in 6s. Visit",
                Some(6_000),
            ),
            ("Please try again in 1m30.5s.", Some(90_500)),
            ("Please try again in 250ms.", Some(250)),
            ("Please retry in 34.07s.", Some(34_070)),
            ("Please retry after 20 seconds.", Some(20_000)),
            ("Please try again in a moment", None),
            ("Please try again in 20", None),
            ("Overloaded", None),
        ] {
            assert_eq!(
                read_message(message),
                wanted.map(Duration::from_millis),
                "{message}"
            );
        }
        let details = json!([
            { "@type": "type.googleapis.com/google.rpc.QuotaFailure" },
            { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s" },
        ]);
        assert_eq!(read_details(&details), Some(Duration::from_secs(34)));
        assert_eq!(read_details(&Value::Null), None);
    }

    proptest! {
        #[test]
        fn fuzz_any_message_is_read_without_panic(message in "(try again in |retry after )?[0-9.a-zé ]{0,20}") {
            let _ = read_message(&message);
        }
    }
}
