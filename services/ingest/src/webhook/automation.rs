//! Web requests of Jira Automation: a fixed secret in a header instead of a signature, and the key of a ticket.
//!
//! Nothing else of the body is trusted, because any editor of a rule chooses it. Ingest reads the ticket itself.

use std::time::Duration;

use axum::http::HeaderMap;
use bytes::Bytes;
use domain::{InstanceName, TicketKey, json};
use parking_lot::Mutex;
use ring::digest::{SHA256, digest};
use serde::Deserialize;
use tokio::time::Instant;

use super::{body::WebhookBody, payload::jira::TICKET_READ_EVENT};
use crate::config::SecretList;

/// Header with the secret. Automation hides the value of a header when the rule marks it.
pub(crate) const TOKEN_HEADER: &str = "x-journeyman-token";
/// Requests within a minute for one secret and process. A rule that runs for each ticket of a large project stays below it.
pub(crate) const REQUESTS_PER_MINUTE: u32 = 120;

const MINUTE: Duration = Duration::from_secs(60);

/// Active secrets of the web requests of one site.
pub(crate) struct AutomationKeys(Vec<AutomationKey>);

struct AutomationKey {
    hash: Vec<u8>,
    window: Mutex<RequestWindow>,
}

/// Requests since the start of a minute.
struct RequestWindow {
    start: Instant,
    count: u32,
}

/// Reason why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AutomationRefusal {
    /// The secret is missing or wrong.
    Token,
    /// Too many requests with this secret.
    Rate,
}

impl AutomationKeys {
    pub(crate) fn new(secrets: &SecretList) -> Self {
        let key = |secret: &[u8]| AutomationKey {
            hash: digest(&SHA256, secret).as_ref().to_vec(),
            window: Mutex::new(RequestWindow {
                start: Instant::now(),
                count: 0,
            }),
        };
        Self(secrets.bytes().map(key).collect())
    }

    /// Admits a request with exactly one header that has one of the secrets, within the rate of that secret.
    pub(crate) fn admit(&self, headers: &HeaderMap, now: Instant) -> Result<(), AutomationRefusal> {
        let mut values = headers.get_all(TOKEN_HEADER).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(AutomationRefusal::Token);
        };
        // Hashes are compared in full and for every secret, so that the time reveals nothing.
        let hash = digest(&SHA256, value.as_bytes());
        let found = self.0.iter().fold(None, |found, key| {
            let pairs = key.hash.iter().zip(hash.as_ref());
            let difference = pairs.fold(0, |sum, (a, b)| sum | (a ^ b));
            if difference == 0 { Some(key) } else { found }
        });
        let key = found.ok_or(AutomationRefusal::Token)?;
        if key.window.lock().admit(now) {
            Ok(())
        } else {
            Err(AutomationRefusal::Rate)
        }
    }
}

impl RequestWindow {
    fn admit(&mut self, now: Instant) -> bool {
        if now.saturating_duration_since(self.start) >= MINUTE {
            (self.start, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= REQUESTS_PER_MINUTE
    }
}

/// Body of a web request: the data of an issue, which has the key at the top, or an object around it.
#[derive(Deserialize)]
struct AutomationBody {
    key: Option<String>,
    issue: Option<AutomationIssue>,
}

#[derive(Deserialize)]
struct AutomationIssue {
    key: String,
}

/// Ticket that the body of a web request names.
///
/// # Errors
/// The reason for log and metrics.
pub(crate) fn read_named_ticket(
    instance: Option<&InstanceName>,
    body: &[u8],
) -> Result<TicketKey, &'static str> {
    WebhookBody::parse(body).map_err(|invalid| invalid.0)?;
    let body: AutomationBody =
        json::from_slice(&json::replace_broken_characters(body)).map_err(|_| "not of an issue")?;
    let key = body.issue.map(|issue| issue.key).or(body.key);
    let key = key.ok_or("without the key of an issue")?;
    TicketKey::jira_on(instance.cloned(), &key).map_err(|_| "not the key of an issue")
}

/// Body of the delivery that asks the router to read a ticket.
pub(crate) fn build_ticket_read_body(ticket: &TicketKey) -> Bytes {
    let body = serde_json::json!({"webhookEvent": TICKET_READ_EVENT, "issue": {"key": ticket.short()}});
    Bytes::from(body.to_string())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const SECRET: &str = "automation-secret-1";

    fn build_keys(secrets: &[&str]) -> AutomationKeys {
        AutomationKeys::new(&SecretList::new(
            secrets.iter().map(|secret| (*secret).to_owned()),
        ))
    }

    fn build_headers(tokens: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for token in tokens {
            headers.append(TOKEN_HEADER, HeaderValue::from_str(token).unwrap());
        }
        headers
    }

    #[test]
    fn one_header_with_active_secret_is_admitted() {
        let keys = build_keys(&[SECRET, "automation-secret-2"]);
        let admit = |tokens: &[&str]| keys.admit(&build_headers(tokens), Instant::now());
        assert_eq!(admit(&[SECRET]), Ok(()));
        assert_eq!(admit(&["automation-secret-2"]), Ok(()));
        for tokens in [
            &[][..],
            &[""],
            &["automation-secret"],
            &["automation-secret-11"],
            &["Automation-Secret-1"],
            &[SECRET, SECRET],
        ] {
            assert_eq!(admit(tokens), Err(AutomationRefusal::Token), "{tokens:?}");
        }
        assert_eq!(
            build_keys(&[]).admit(&build_headers(&[""]), Instant::now()),
            Err(AutomationRefusal::Token),
            "without a secret the way in is closed"
        );
    }

    #[test]
    fn each_secret_has_its_own_rate() {
        let keys = build_keys(&[SECRET, "automation-secret-2"]);
        let start = Instant::now();
        let headers = build_headers(&[SECRET]);
        for _ in 0..REQUESTS_PER_MINUTE {
            assert_eq!(keys.admit(&headers, start), Ok(()));
        }
        assert_eq!(keys.admit(&headers, start), Err(AutomationRefusal::Rate));
        assert_eq!(
            keys.admit(&build_headers(&["automation-secret-2"]), start),
            Ok(())
        );
        assert_eq!(keys.admit(&headers, start + MINUTE), Ok(()));
    }

    #[test]
    fn body_counts_for_its_key_alone() {
        let named = |body: &str| read_named_ticket(None, body.as_bytes()).map(|key| key.to_string());
        for body in [
            r#"{"issue": {"key": "ENG-1"}}"#,
            r#"{"issue": {"key": "ENG-1", "fields": {"status": {"name": "Ready"}}}, "webhookEvent": "jira:issue_updated"}"#,
            r#"{"self": "https://x", "id": 10001, "key": "ENG-1", "fields": {"summary": "cut \ud83d"}}"#,
        ] {
            assert_eq!(named(body).as_deref(), Ok("jira:ENG-1"), "{body}");
        }
        for (body, why) in [
            ("", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("{}", "without the key of an issue"),
            (r#"{"issue": {"id": 1}}"#, "not of an issue"),
            (r#"{"issue": "ENG-1"}"#, "not of an issue"),
            (r#"{"key": 7}"#, "not of an issue"),
            (r#"{"key": "eng-1"}"#, "not the key of an issue"),
            (r#"{"key": "ENG-1/../../x"}"#, "not the key of an issue"),
            (r#"{"key": "ENG-1", "key": "ENG-2"}"#, "a key twice in one object"),
        ] {
            assert_eq!(named(body), Err(why), "{body}");
        }
    }
}
