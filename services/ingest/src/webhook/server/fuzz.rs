//! Broken webhooks at their real entry points: headers, signature, body, kinds.

use axum::http::{HeaderName, HeaderValue};
use bytes::Bytes;
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::Value;

use super::*;
use crate::{events, webhook::payload::WebhookPayload};

const SECRET: &str = "secret-number-one";
/// Marker in every recorded body. No error may repeat it.
const CANARY: &str = "canary-3141";

/// Recorded bodies of the services, by event; the event is empty for Jira.
const RECORDED: [(&str, &str); 13] = [
    (
        "check_run",
        r#"{"action":"completed","check_run":{"head_sha":"0000000000000000000000000000000000000abc","output":{"text":"canary-3141"},"check_suite":{"head_branch":"b"}},"repository":{"full_name":"acme/shop"}}"#,
    ),
    (
        "check_suite",
        r#"{"action":"completed","check_suite":{"head_sha":"0000000000000000000000000000000000000abc","head_branch":"canary-3141"},"repository":{"full_name":"acme/shop"}}"#,
    ),
    (
        "workflow_run",
        r#"{"action":"completed","workflow_run":{"head_sha":"0000000000000000000000000000000000000abc","head_branch":"canary-3141"},"repository":{"full_name":"acme/shop"}}"#,
    ),
    (
        "status",
        r#"{"sha":"0000000000000000000000000000000000000abc","state":"failure","branches":[{"name":"canary-3141"}],"repository":{"full_name":"acme/shop"}}"#,
    ),
    (
        "issue_comment",
        r#"{"action":"created","issue":{"number":7},"comment":{"id":1,"body":"/stop canary-3141","user":{"login":"mia","id":5},"created_at":"2026-11-21T10:00:00Z"},"repository":{"full_name":"acme/shop"}}"#,
    ),
    (
        "pull_request",
        r#"{"action":"closed","pull_request":{"number":7,"title":"canary-3141","head":{"ref":"b","repo":{"full_name":"acme/shop"}},"merged":true,"merged_by":{"login":"mia","id":5},"closed_at":"2026-11-21T10:00:00Z"},"repository":{"full_name":"acme/shop"},"sender":{"login":"mia","id":5}}"#,
    ),
    (
        "pull_request_review",
        r#"{"action":"submitted","review":{"id":9,"user":{"login":"mia","id":5},"body":"canary-3141"},"pull_request":{"number":7},"repository":{"full_name":"acme/shop"}}"#,
    ),
    (
        "push",
        r#"{"ref":"refs/heads/canary-3141","after":"0000000000000000000000000000000000000abc","deleted":false,"commits":[],"repository":{"full_name":"acme/shop"},"sender":{"login":"mia","id":5}}"#,
    ),
    (
        "",
        r#"{"webhookEvent":"jira:issue_updated","timestamp":1700000000000,"user":{"accountId":"a1","displayName":"Ada"},"issue":{"id":"1","key":"ENG-12","fields":{"summary":"canary-3141","status":{"name":"Ready for Agent"}}},"changelog":{"id":"10","items":[{"field":"status","fromString":"To Do","toString":"Ready for Agent"}]}}"#,
    ),
    (
        "",
        r#"{"webhookEvent":"jira:issue_created","timestamp":1700000000000,"user":{"accountId":"a1"},"issue":{"key":"ENG-12","fields":{"summary":"canary-3141","status":{"name":"Ready for Agent"}}}}"#,
    ),
    (
        "",
        r#"{"webhookEvent":"comment_created","timestamp":1700000000000,"issue":{"key":"ENG-12"},"comment":{"id":"5","author":{"accountId":"a1"},"body":{"type":"doc","version":1,"content":[{"type":"paragraph","content":[{"type":"text","text":"canary-3141"}]}]}}}"#,
    ),
    (
        "",
        r#"{"webhookEvent":"comment_created","timestamp":1700000000000,"comment":{"self":"https://jira.example/rest/api/2/issue/10000/comment/12000","id":"12000","author":{"name":"ada","key":"JIRAUSER10100"},"body":"/stop canary-3141"}}"#,
    ),
    (
        "",
        r#"{"webhookEvent":"jira:issue_updated","timestamp":1700000000000,"user":{"accountId":"a1"},"issue":{"key":"ENG-12"},"changelog":{"id":10,"items":[{"field":"description","toString":"canary-3141"}]}}"#,
    ),
];

/// Handles a body like [`WebhookHandlers::take`] and the router, after the signature.
fn take_in(event: &str, body: Vec<u8>) -> Result<(), String> {
    let (sender, named) = match event {
        "" => (
            &JIRA,
            DeliveryHeaders {
                id: None,
                event: None,
            },
        ),
        event => {
            let (id, event) = (Some("d".to_owned()), Some(event.to_owned()));
            (&GITHUB, DeliveryHeaders { id, event })
        }
    };
    let verified = verify_body(body);
    let parsed = WebhookBody::parse(verified.body()).map_err(|InvalidBody(reason)| reason.to_owned())?;
    let is_object =
        domain::json::from_slice::<Value>(&domain::json::replace_broken_characters(verified.body()))
            .is_ok_and(|value| value.is_object());
    assert!(is_object, "an unreadable body was accepted");
    parsed
        .must_be(event)
        .map_err(|InvalidBody(reason)| reason.to_owned())?;
    let delivery = named.delivery(sender, None, &verified);
    let hook = WebhookPayload::open(&delivery).map_err(|error| error.to_string())?;
    events::from_webhook(&hook).map_err(|error| error.to_string())?;
    Ok(())
}

fn build_webhook_keys() -> WebhookKeys {
    WebhookKeys::new(&SecretList::new([SECRET.to_owned()]))
}

fn sign_body(body: &[u8]) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
    format!(
        "sha256={}",
        data_encoding::HEXLOWER.encode(ring::hmac::sign(&key, body).as_ref())
    )
}

fn claim_signature(signature: &str) -> ClaimedSignature {
    let value = HeaderValue::from_str(signature).expect("header");
    let headers = HeaderMap::from_iter([(HeaderName::from_static(GITHUB.signature), value)]);
    ClaimedSignature::read(&headers, GITHUB.signature).expect("well formed")
}

fn verify_body(body: Vec<u8>) -> VerifiedBody {
    let claimed = claim_signature(&sign_body(&body));
    build_webhook_keys()
        .verify(&claimed, Bytes::from(body))
        .expect("signed")
}

fn any_event() -> impl Strategy<Value = &'static str> {
    select(RECORDED.map(|(event, _)| event).to_vec())
}

fn any_headers() -> impl Strategy<Value = HeaderMap> {
    let names = [
        GITHUB.signature,
        JIRA.signature,
        GITHUB.id,
        JIRA.id,
        "x-github-event",
    ];
    let value = prop_oneof![
        vec(any::<u8>(), 0..300),
        "(sha256|sha1|SHA256|)[=: ]?[0-9a-fA-FxG]{0,70}".prop_map(String::into_bytes),
        "[a-z_]{0,70}".prop_map(String::into_bytes),
    ];
    vec((select(names.to_vec()), value), 0..8).prop_map(|pairs| {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                headers.append(HeaderName::from_static(name), value);
            }
        }
        headers
    })
}

/// Any JSON with names that payloads contain.
fn any_json() -> impl Strategy<Value = Value> {
    let name = select(vec![
        "action",
        "check_run",
        "check_suite",
        "comment",
        "issue",
        "pull_request",
        "review",
        "repository",
        "full_name",
        "number",
        "id",
        "user",
        "login",
        "body",
        "head",
        "ref",
        "key",
        "fields",
        "status",
        "changelog",
        "items",
        "field",
        "toString",
        "webhookEvent",
        "timestamp",
        "author",
        "accountId",
        "sha",
        "state",
        "branches",
        "commits",
        "after",
        "sender",
        "created_at",
        "head_sha",
        "head_branch",
    ]);
    let leaf = prop_oneof![
        any::<Option<bool>>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        select(vec![
            "created",
            "closed",
            "completed",
            "jira:issue_updated",
            "jira:issue_created",
            "comment_created",
            "ENG-1",
            "acme/shop",
            "status",
            "summary",
            "refs/heads/x"
        ])
        .prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 8, move |inner| {
        let entry = (name.clone().prop_map(str::to_owned), inner.clone());
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::from),
            vec(entry, 0..8).prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}

#[test]
fn every_recorded_body_is_taken_in() {
    for (event, body) in RECORDED {
        assert!(body.contains(CANARY));
        assert_eq!(take_in(event, body.into()), Ok(()), "{event}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(testkit::fuzz_cases()))]

    #[test]
    fn fuzz_any_bytes_body_never_panics(event in any_event(), body in vec(any::<u8>(), 0..200)) {
        let _ = take_in(event, body);
    }

    #[test]
    fn fuzz_any_json_body_never_panics(event in any_event(), body in any_json()) {
        let _ = take_in(event, body.to_string().into_bytes());
    }

    #[test]
    fn fuzz_mutated_body_error_quotes_nothing(
        which in 0..RECORDED.len(), edits in vec(any::<testkit::InputEdit>(), 0..6)
    ) {
        let (event, body) = RECORDED[which];
        if let Err(reason) = take_in(event, testkit::apply_edits(body.as_bytes(), &edits)) {
            prop_assert!(!reason.contains("canary"), "{}", reason);
        }
    }

    #[test]
    fn fuzz_random_headers_never_authenticate(headers in any_headers(), body in vec(any::<u8>(), 0..60)) {
        for sender in [&GITHUB, &JIRA] {
            if let Ok(claimed) = ClaimedSignature::read(&headers, sender.signature) {
                prop_assert!(build_webhook_keys().verify(&claimed, Bytes::from(body.clone())).is_err());
            }
            if let Ok(named) = DeliveryHeaders::read(sender, &headers) {
                let delivery = named.delivery(sender, None, &verify_body(body.clone()));
                prop_assert!(!delivery.id.is_empty() && delivery.id.len() <= ID_CHARS);
                prop_assert!(delivery.event.len() <= EVENT_CHARS);
                prop_assert!(delivery.event.chars().all(|c| c.is_ascii_graphic()));
            }
        }
    }

    #[test]
    fn fuzz_changed_byte_breaks_signature(
        mut body in vec(any::<u8>(), 1..200), at in any::<usize>(), change in 1_u8..
    ) {
        let claimed = claim_signature(&sign_body(&body));
        prop_assert!(build_webhook_keys().verify(&claimed, Bytes::from(body.clone())).is_ok());
        let at = at % body.len();
        body[at] ^= change;
        prop_assert!(build_webhook_keys().verify(&claimed, Bytes::from(body)).is_err());
    }
}
