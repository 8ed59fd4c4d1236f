//! Validation of a webhook body before it is parsed: a single JSON object without duplicate keys, whose top-level keys
//! match the event in the header.

use std::{collections::BTreeSet, fmt};

use domain::json;
use serde::{
    Deserialize, Deserializer,
    de::{Error, MapAccess, SeqAccess, Visitor},
};

/// Events of GitHub that ingest reads, each with the names of [`MARKS`] that its body has at the top level.
const EVENTS: [(&str, &[&str]); 11] = [
    ("check_run", &["check_run"]),
    ("check_suite", &["check_suite"]),
    ("discussion", &["discussion"]),
    ("discussion_comment", &["comment", "discussion"]),
    ("issue_comment", &["comment", "issue"]),
    ("issues", &["issue"]),
    ("pull_request", &["pull_request"]),
    ("pull_request_review", &["pull_request", "review"]),
    ("push", &["commits", "ref"]),
    ("status", &["sha", "state"]),
    ("workflow_run", &["workflow_run"]),
];

// Every name of [`EVENTS`], and `thread` and `deployment`, which occur only in bodies of other events.
const MARKS: [&str; 14] = [
    "check_run",
    "check_suite",
    "comment",
    "commits",
    "deployment",
    "discussion",
    "issue",
    "pull_request",
    "ref",
    "review",
    "sha",
    "state",
    "thread",
    "workflow_run",
];

/// Reason why a body is rejected, for log and metrics. It contains nothing of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidBody(pub(crate) &'static str);

const NO_OBJECT: InvalidBody = InvalidBody("not a JSON object");
const TOO_DEEP: InvalidBody = InvalidBody("nested too deep");
const KEY_TWICE: InvalidBody = InvalidBody("a key twice in one object");
const OTHER_EVENT: InvalidBody = InvalidBody("not of the event in the header");

/// Top-level keys of a validated body.
#[derive(Debug)]
pub(crate) struct WebhookBody(BTreeSet<String>);

impl WebhookBody {
    /// Validates a whole body. Rejects duplicate keys, because two parsers could pick different values, and nesting deeper
    /// than the payload parsers accept.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, InvalidBody> {
        let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
        if first != Some(&b'{') {
            return Err(NO_OBJECT);
        }
        // The payload parser replaces broken characters too, and both must see the same text.
        let body = json::replace_broken_characters(body);
        let mut deserializer = json::create_deserializer(&body).map_err(|_| TOO_DEEP)?;
        // The body starts with `{` and every value type is accepted, so a data error can only be a duplicate key.
        let wrong = |error: serde_json::Error| if error.is_data() { KEY_TWICE } else { NO_OBJECT };
        let UniqueKeyObject(names) = UniqueKeyObject::deserialize(&mut deserializer).map_err(wrong)?;
        deserializer.end().map_err(wrong)?;
        Ok(Self(names))
    }

    /// Checks that the top-level keys match the event in the header. The signature does not cover that header: a signed
    /// body could be replayed as another event.
    pub(crate) fn must_be(&self, event: &str) -> Result<(), InvalidBody> {
        let Some((_, wanted)) = EVENTS.iter().find(|(name, _)| *name == event) else {
            // Ingest ignores all other events, so their shape does not matter.
            return Ok(());
        };
        let marks = MARKS.iter().filter(|mark| self.0.contains(**mark));
        if marks.eq(wanted.iter()) {
            Ok(())
        } else {
            Err(OTHER_EVENT)
        }
    }
}

/// Top-level keys of an object without duplicate keys at any depth.
struct UniqueKeyObject(BTreeSet<String>);

/// Any JSON value whose objects have no duplicate keys.
struct UniqueKeyValue;

struct UniqueKeyVisitor;

impl<'de> Deserialize<'de> for UniqueKeyObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeyVisitor)
    }
}

impl<'de> Deserialize<'de> for UniqueKeyValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer
            .deserialize_any(UniqueKeyVisitor)
            .map(|UniqueKeyObject(_)| Self)
    }
}

/// Values other than objects have no keys.
macro_rules! no_keys {
    ($($visit:ident: $type:ty),+) => {
        $(fn $visit<E: Error>(self, _: $type) -> Result<UniqueKeyObject, E> {
            Ok(UniqueKeyObject(BTreeSet::new()))
        })+
    };
}

impl<'de> Visitor<'de> for UniqueKeyVisitor {
    type Value = UniqueKeyObject;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    no_keys!(visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E: Error>(self) -> Result<UniqueKeyObject, E> {
        Ok(UniqueKeyObject(BTreeSet::new()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueKeyObject, A::Error> {
        // Every item is visited, because only a visit finds duplicate keys in nested objects.
        while items.next_element::<UniqueKeyValue>()?.is_some() {}
        Ok(UniqueKeyObject(BTreeSet::new()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<UniqueKeyObject, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = entries.next_key::<String>()? {
            entries.next_value::<UniqueKeyValue>()?;
            if !keys.insert(key) {
                return Err(A::Error::custom("a key stands twice"));
            }
        }
        Ok(UniqueKeyObject(keys))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_webhook_body(text: &str) -> Result<WebhookBody, InvalidBody> {
        WebhookBody::parse(text.as_bytes())
    }

    #[test]
    fn only_one_whole_json_object_is_taken() {
        for good in ["{}", " \n{\"a\": [1, -1, 1.5, true, null, {\"b\": \"c\"}]}\n"] {
            assert!(parse_webhook_body(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            " ",
            "[]",
            "[{}]",
            "\"{}\"",
            "1",
            "null",
            "{",
            "{}{}",
            "{} 1",
            "{'a': 1}",
            "{\"a\": 1,}",
            "\u{feff}{}",
            "{1: 2}",
        ] {
            assert_eq!(parse_webhook_body(bad).unwrap_err(), NO_OBJECT, "{bad}");
        }
    }

    #[test]
    fn broken_characters_do_not_reject_body() {
        for body in [
            &br#"{"a": "cut \ud83d", "b": {"\udc00": ["\udfff\ud800"]}}"#[..],
            b"{\"a\": \"\xff\xff\"}",
            b"{\"a\": \"\xed\xa0\xbd\"}",
        ] {
            assert!(
                WebhookBody::parse(body).is_ok(),
                "{}",
                String::from_utf8_lossy(body)
            );
        }
    }

    #[test]
    fn too_deeply_nested_body_is_rejected() {
        let nested = |levels: usize| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse_webhook_body(&nested(json::MAX_DEPTH - 1)).is_ok());
        for levels in [json::MAX_DEPTH, 100_000] {
            assert_eq!(parse_webhook_body(&nested(levels)).unwrap_err(), TOO_DEEP);
        }
    }

    #[test]
    fn duplicate_key_is_rejected_in_any_spelling() {
        for bad in [
            r#"{"a": 1, "a": 1}"#,
            r#"{"a": 1, "\u0061": 2}"#,
            r#"{"comment": {"body": {"type": "doc", "content": [1, {"x": [], "y": 0, "x": {}}]}}}"#,
            r#"{"": 1, "": 2}"#,
        ] {
            assert_eq!(parse_webhook_body(bad).unwrap_err(), KEY_TWICE, "{bad}");
        }
        for good in [
            r#"{"a": {"a": {"a": 1}}}"#,
            r#"{"a": [{"b": 1}, {"b": 1}], "A": 2}"#,
        ] {
            assert!(parse_webhook_body(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn body_matches_exactly_one_read_event() {
        for (event, names) in EVENTS {
            let fields = names.iter().map(|name| format!("\"{name}\": {{}},"));
            let body = parse_webhook_body(&format!(
                "{{{}\"action\": \"created\"}}",
                fields.collect::<String>()
            ))
            .unwrap();
            for (other, _) in EVENTS {
                let expected = if other == event { Ok(()) } else { Err(OTHER_EVENT) };
                assert_eq!(body.must_be(other), expected, "{event} as {other}");
            }
            assert_eq!(body.must_be("star"), Ok(()), "nothing is read of a star");
            assert!(names.iter().all(|name| MARKS.contains(name)), "{event}");
            assert!(names.is_sorted(), "{event}");
        }
        assert!(MARKS.is_sorted());
    }

    /// Top-level names in bodies of GitHub's other events, from the descriptions that GitHub publishes.
    #[test]
    fn unread_event_bodies_match_no_read_event() {
        for body in [
            r#"{"action": "created", "comment": {}, "pull_request": {}}"#,
            r#"{"action": "resolved", "thread": {}, "pull_request": {}}"#,
            r#"{"action": "created", "comment": {}}"#,
            r#"{"action": "created", "deployment": {}, "workflow": {}, "workflow_run": {}}"#,
            r#"{"action": "created", "check_run": null, "deployment": {}, "deployment_status": {}}"#,
            r#"{"ref": "a", "ref_type": "branch", "master_branch": "main"}"#,
            r#"{"action": "queued", "workflow_job": {}}"#,
            r#"{"zen": "", "hook_id": 1, "hook": {}}"#,
            "{}",
        ] {
            let body = parse_webhook_body(body).unwrap();
            for (event, _) in EVENTS {
                assert_eq!(body.must_be(event), Err(OTHER_EVENT), "{body:?} as {event}");
            }
        }
    }
}
