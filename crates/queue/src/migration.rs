//! Comparison of a stream or consumer with the wanted one: change in place, leave to a newer release, or
//! refuse with advice.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Version of the topology. Raise it with every change of `topology.rs`; a release leaves the limits of a
/// newer version alone.
const VERSION: u64 = 7;
const LABEL: &str = "journeyman.topology";

/// Label with the version of this release's topology.
pub(crate) fn build_version_label() -> HashMap<String, String> {
    [(LABEL.to_owned(), VERSION.to_string())].into()
}

/// True when a later release than this one made the stream.
pub(crate) fn is_of_newer_release(labels: &HashMap<String, String>) -> bool {
    let version = labels.get(LABEL).and_then(|text| text.parse::<u64>().ok());
    version.is_some_and(|version| version > VERSION)
}

/// Field that differs from the wanted one. Values are JSON; absent ones are null.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FieldChange {
    pub(crate) field: &'static str,
    pub(crate) found: Value,
    pub(crate) wanted: Value,
}

/// Rule for changes by which the server deletes records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LossPolicy {
    /// Refused: an operator makes such a change by hand.
    Refused,
    /// Allowed: an operator set the smaller limit.
    Wanted,
}

/// Plan for all differing fields of one stream or consumer.
#[derive(Debug, PartialEq)]
pub(crate) enum MigrationPlan {
    /// The config is as wanted, or as a newer release wants it.
    Leave,
    /// The server changes these fields in place and loses no record. Without fields, only the label is new.
    Migrate(Vec<FieldChange>),
    /// The config cannot be used. The text lists for each field the found value, the wanted value and the
    /// remedy.
    Refuse(String),
}

/// Possible treatment of one field.
#[derive(Debug, PartialEq, Eq)]
enum FieldVerdict {
    InPlace,
    /// The server would delete records at once.
    Loses,
    /// The server cannot change the field, or stored messages would get another meaning.
    Fixed,
}

/// Plans the migration of `found` to `wanted`, both JSON objects.
pub(crate) fn plan_migration(
    what: &str,
    fields: &[&'static str],
    loss: LossPolicy,
    found: &Value,
    wanted: &Value,
) -> MigrationPlan {
    let known = version_of(found);
    let changes: Vec<FieldChange> = fields
        .iter()
        .filter_map(|field| compare_field(field, found, wanted))
        .collect();
    let refused: Vec<String> = changes
        .iter()
        .filter_map(|change| explain_refusal(change, known, loss))
        .collect();
    if !refused.is_empty() {
        return MigrationPlan::Refuse(format!("{what} cannot be used: {}", refused.join("; ")));
    }
    if known > VERSION || (changes.is_empty() && known == VERSION) {
        return MigrationPlan::Leave;
    }
    MigrationPlan::Migrate(changes)
}

/// Config with the changed fields as wanted and this release's label. All other fields stay as found.
pub(crate) fn patch_config(mut found: Value, changes: &[FieldChange]) -> Value {
    if let Some(config) = found.as_object_mut() {
        for change in changes {
            // The server omits fields that are off.
            match &change.wanted {
                Value::Null => config.remove(change.field),
                wanted => config.insert(change.field.to_owned(), wanted.clone()),
            };
        }
        let labels = config
            .entry("metadata")
            .or_insert_with(|| Value::Object(Map::new()));
        labels[LABEL] = VERSION.to_string().into();
    }
    found
}

fn version_of(found: &Value) -> u64 {
    let label = found["metadata"][LABEL].as_str();
    label.and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn compare_field(field: &'static str, found: &Value, wanted: &Value) -> Option<FieldChange> {
    let of = |config: &Value| config.get(field).cloned().unwrap_or_default();
    let (found, wanted) = (of(found), of(wanted));
    (found != wanted).then_some(FieldChange { field, found, wanted })
}

/// Reason to refuse a change, or `None` when it is allowed. `known` is the version in the label of the found
/// config.
fn explain_refusal(change: &FieldChange, known: u64, loss: LossPolicy) -> Option<String> {
    let advice = match (judge_change(change), known > VERSION) {
        (FieldVerdict::InPlace, _) | (FieldVerdict::Loses, true) => return None,
        (FieldVerdict::Loses, false) if loss == LossPolicy::Wanted => return None,
        (FieldVerdict::Loses, false) => {
            "the server would delete records at once: change it by hand once they may go (`nats stream edit`)"
        }
        (FieldVerdict::Fixed, false) => {
            "it cannot be changed in place: stop every service, keep what is stored (`nats stream backup`), delete it \
             (`nats stream rm`, `nats consumer rm`) and start again"
        }
        (FieldVerdict::Fixed, true) => "a newer release made it so: bring this service up to date",
    };
    let FieldChange { field, found, wanted } = change;
    Some(format!(
        "{field} is {}, wanted {}: {advice}",
        display_value(found),
        display_value(wanted)
    ))
}

fn judge_change(FieldChange { field, found, wanted }: &FieldChange) -> FieldVerdict {
    let grows = |unlimited: i64| {
        let size = |value: &Value| {
            value
                .as_i64()
                .filter(|size| *size != unlimited)
                .unwrap_or(i64::MAX)
        };
        if size(wanted) >= size(found) {
            FieldVerdict::InPlace
        } else {
            FieldVerdict::Loses
        }
    };
    // These fields delete records when they shrink. Their unlimited values differ: 0 for an age, -1 for a
    // count or size.
    match *field {
        "max_age" => grows(0),
        "max_msgs_per_subject" | "max_bytes" => grows(-1),
        "num_replicas" | "duplicate_window" | "allow_direct" | "allow_rollup_hdrs" | "ack_wait"
        | "max_ack_pending" | "max_deliver" | "headers_only" | "compression" => FieldVerdict::InPlace,
        // The server can turn message schedules on in an existing stream and refuses to turn them off.
        "allow_msg_schedules" if *wanted == Value::Bool(true) => FieldVerdict::InPlace,
        _ => FieldVerdict::Fixed,
    }
}

fn display_value(value: &Value) -> String {
    match value {
        Value::Null => "unset".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judge_field(field: &'static str, found: Value, wanted: Value) -> FieldVerdict {
        judge_change(&FieldChange { field, found, wanted })
    }

    #[test]
    fn each_difference_migrates_or_is_refused() {
        use FieldVerdict::{Fixed, InPlace, Loses};
        for (field, found, wanted, expected) in [
            ("max_age", json!(10), json!(20), InPlace),
            ("max_age", json!(10), json!(0), InPlace),
            ("max_age", json!(20), json!(10), Loses),
            ("max_age", json!(0), json!(10), Loses),
            ("max_msgs_per_subject", json!(1), json!(-1), InPlace),
            ("max_msgs_per_subject", json!(1), json!(5), InPlace),
            ("max_msgs_per_subject", json!(5), json!(1), Loses),
            ("max_msgs_per_subject", json!(-1), json!(1), Loses),
            ("num_replicas", json!(1), json!(3), InPlace),
            ("num_replicas", json!(3), json!(1), InPlace),
            ("duplicate_window", json!(1), json!(2), InPlace),
            ("duplicate_window", json!(2), json!(1), InPlace),
            ("allow_direct", json!(true), json!(false), InPlace),
            ("allow_rollup_hdrs", json!(false), json!(true), InPlace),
            ("allow_msg_schedules", Value::Null, json!(true), InPlace),
            ("allow_msg_schedules", json!(true), Value::Null, Fixed),
            ("subjects", json!(["a.>"]), json!(["a.>", "b.>"]), Fixed),
            ("retention", json!("limits"), json!("workqueue"), Fixed),
            ("storage", json!("memory"), json!("file"), Fixed),
            ("discard", json!("old"), json!("new"), Fixed),
            ("discard_new_per_subject", Value::Null, json!(true), Fixed),
            ("ack_wait", json!(1), json!(2), InPlace),
            ("max_ack_pending", json!(7), json!(10_000), InPlace),
            ("max_deliver", json!(5), json!(-1), InPlace),
            ("headers_only", Value::Null, json!(true), InPlace),
            ("compression", json!("none"), json!("s2"), InPlace),
            ("compression", json!("s2"), json!("none"), InPlace),
            ("deliver_policy", json!("new"), json!("all"), Fixed),
            ("ack_policy", json!("none"), json!("explicit"), Fixed),
            ("filter_subject", json!("a"), json!("b"), Fixed),
            ("backoff", json!([1]), Value::Null, Fixed),
        ] {
            let shown = format!("{field} from {found} to {wanted}");
            assert_eq!(judge_field(field, found, wanted), expected, "{shown}");
        }
    }

    fn build_config(version: Option<u64>, max_age: u64, retention: &str) -> Value {
        let label = version.map(|version| json!({LABEL: version.to_string()}));
        json!({"max_age": max_age, "retention": retention, "metadata": label.unwrap_or_else(|| json!({}))})
    }

    fn plan_change(found: &Value, wanted: &Value) -> MigrationPlan {
        plan_migration(
            "stream S",
            &["max_age", "retention"],
            LossPolicy::Refused,
            found,
            wanted,
        )
    }

    #[test]
    fn older_release_keeps_newer_limits() {
        let wanted = build_config(Some(VERSION), 10, "limits");
        for age in [5, 20] {
            assert_eq!(
                plan_change(&build_config(Some(VERSION + 1), age, "limits"), &wanted),
                MigrationPlan::Leave
            );
        }
        let MigrationPlan::Refuse(why) =
            plan_change(&build_config(Some(VERSION + 1), 10, "interest"), &wanted)
        else {
            panic!("it was not refused")
        };
        assert_eq!(
            why,
            "stream S cannot be used: retention is \"interest\", wanted \"limits\": a newer release made it so: bring \
             this service up to date"
        );
    }

    #[test]
    fn unlabeled_config_without_changes_is_labeled() {
        let wanted = build_config(Some(VERSION), 10, "limits");
        let found = build_config(None, 10, "limits");
        assert_eq!(plan_change(&found, &wanted), MigrationPlan::Migrate(vec![]));
        assert_eq!(patch_config(found, &[]), wanted);
        assert_eq!(plan_change(&wanted, &wanted), MigrationPlan::Leave);
    }

    #[test]
    fn migration_keeps_fields_of_operator() {
        let mut found = build_config(Some(VERSION), 5, "limits");
        found["max_bytes"] = json!(99);
        let wanted = build_config(Some(VERSION), 10, "limits");
        let MigrationPlan::Migrate(changes) = plan_change(&found, &wanted) else {
            panic!("it was not migrated")
        };
        let after = patch_config(found, &changes);
        assert_eq!((&after["max_age"], &after["max_bytes"]), (&json!(10), &json!(99)));
    }

    #[test]
    fn refused_field_prevents_all_changes() {
        let found = build_config(Some(VERSION), 5, "interest");
        let wanted = build_config(Some(VERSION), 10, "limits");
        let MigrationPlan::Refuse(why) = plan_change(&found, &wanted) else {
            panic!("it was not refused")
        };
        assert!(
            why.contains("nats stream backup") && !why.contains("max_age"),
            "{why}"
        );
    }
}
