//! Stored formats: records of earlier releases remain readable, and no stored name changes by accident.
//!
//! `stored/v<format>/<record>.jsonl` has records as they are stored, one a line. Lines are added and never changed; a new
//! format gets a folder of its own, and records of the older ones must still be read.

use std::{collections::BTreeSet, path::Path};

use domain::{
    AwaitedReview, BranchRecord, ChecksConclusion, ChecksSummary, ConflictEnd, ConflictedBase,
    CredentialEnds, EffortHistory, Fact, FailedCheck, FailureClass, IssueIdentity, Job, JournalEntry,
    MaintenanceAnswer, MaintenanceOrder, ModelHint, NewerRecord, OutboundAction, OutboundCursor,
    OutboundOutcome, OutboundReceipt, OutboundRefusal, OutboundRequest, OutdatedBase, PolicyViolation,
    ProjectionPosition, PullRequestAnswer, PullRequestCall, PullRequestEnd, PullRequestEvent,
    PullRequestHead, PullRequestRecord, PullRequestRef, RepairEnd, RunOverview, RunStatus, SecretPlace,
    SkipReason, SlotQueue, StopAll, StopReason, StoredRecord, TicketRow, Timestamp, Trigger, TriggerReason,
    UpdateWay, WaitCondition,
    record_format::{decode_stored_record, encode_stored_record},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn read_stored_lines(version: u32, name: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored");
    let file = folder.join(format!("v{version}")).join(format!("{name}.jsonl"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines().map(str::to_owned).collect()
}

/// Returns true when `whole` contains every field of `part`. It may have more fields, which are defaults.
fn is_within(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|other| is_within(value, other))),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() == whole.len() && part.iter().zip(whole).all(|(part, whole)| is_within(part, whole))
        }
        (part, whole) => part == whole,
    }
}

/// Reads every record of every format, and compares those of the current format after writing them again.
fn check_round_trip<T: StoredRecord>(name: &str) {
    for version in 1..=T::VERSION {
        let lines = read_stored_lines(version, name);
        assert!(!lines.is_empty(), "{name} has no record of format {version}");
        for line in lines {
            let record: T = decode_stored_record(line.as_bytes())
                .unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
            let mut kept: Value = serde_json::from_str(&line).unwrap();
            if let Some(rules) = kept.pointer_mut("/reason/rules").and_then(Value::as_object_mut) {
                rules.remove("a_key_of_a_later_release");
            }
            if let Some(rules) = kept
                .pointer_mut("/fact/trigger/reason/rules")
                .and_then(Value::as_object_mut)
            {
                rules.remove("a_key_of_a_later_release");
            }
            let written: Value = serde_json::from_slice(&encode_stored_record(&record).unwrap()).unwrap();
            if kept["version"] == written["version"] {
                assert!(
                    is_within(&kept, &written),
                    "{name}\n read {kept}\nwrote {written}"
                );
            }
        }
    }
}

#[test]
fn stored_records_round_trip_unchanged() {
    check_round_trip::<Trigger>("trigger");
    check_round_trip::<JournalEntry>("entry");
    check_round_trip::<OutboundRequest>("report");
    check_round_trip::<TicketRow>("row");
    check_round_trip::<OutboundOutcome>("outcome");
    check_round_trip::<OutboundCursor>("cursor");
    check_round_trip::<BranchRecord>("branch");
    check_round_trip::<PullRequestRecord>("pull_request");
    check_round_trip::<PullRequestCall>("pull_request_call");
    check_round_trip::<PullRequestAnswer>("pull_request_answer");
    check_round_trip::<MaintenanceOrder>("maintenance_order");
    check_round_trip::<MaintenanceAnswer>("maintenance_answer");
    check_round_trip::<SlotQueue>("slots");
    check_round_trip::<EffortHistory>("history");
    check_round_trip::<StopAll>("stop_all");
    check_round_trip::<NewerRecord>("newer");
    check_round_trip::<IssueIdentity>("issue_identity");
    check_round_trip::<ProjectionPosition>("place");
    check_round_trip::<CredentialEnds>("credentials");
    check_round_trip::<RunOverview>("overview");
}

/// Returns the names of an enum's variants from the error message for an unknown variant.
fn list_variants<T: DeserializeOwned>(unknown: Value) -> BTreeSet<String> {
    let error = serde_json::from_value::<T>(unknown)
        .err()
        .expect("no such variant");
    let text = error.to_string();
    let (_, names) = text.split_once("expected").unwrap_or_else(|| panic!("{text}"));
    let quoted = names.split('`').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

#[test]
fn routine_steps_are_stored_facts() {
    let mut routine = list_variants::<Fact>(json!({"type": "?"}));
    routine.retain(|name| Fact::is_routine_name(name));
    let expected = [
        "check_ran",
        "check_requested",
        "code_found",
        "mcp_tools_listed",
        "model_replied",
        "model_requested",
        "snapshot_taken",
        "tool_finished",
        "tool_requested",
    ];
    assert_eq!(routine, BTreeSet::from(expected.map(str::to_owned)));
    for line in read_stored_lines(1, "entry") {
        let entry: JournalEntry = decode_stored_record(line.as_bytes()).unwrap();
        let stored: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(stored["fact"]["type"], entry.fact.name(), "{line}");
    }
}

fn collect_tags(records: &[Value], path: &str) -> BTreeSet<String> {
    let tag = |record: &Value| Some(record.pointer(path)?.as_str()?.to_owned());
    records.iter().filter_map(tag).collect()
}

#[test]
fn every_variant_has_a_stored_record() {
    let read = |name| -> Vec<Value> {
        let lines = read_stored_lines(1, name);
        lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let (triggers, entries, reports) = (read("trigger"), read("entry"), read("report"));
    let (rows, outcomes) = (read("row"), read("outcome"));
    let listed = outcomes
        .iter()
        .filter_map(|outcome| outcome["violations"].as_array());
    let violations: Vec<Value> = listed.flatten().cloned().collect();
    let runs = rows[0]["runs"].as_array().unwrap().clone();
    let tagged = |tag: &str| json!({ tag: "?" });
    for (of, all, kept) in [
        (
            "reason",
            list_variants::<TriggerReason>(tagged("type")),
            collect_tags(&triggers, "/reason/type"),
        ),
        (
            "job",
            list_variants::<Job>(json!("?")),
            collect_tags(&triggers, "/reason/job"),
        ),
        (
            "skip",
            list_variants::<SkipReason>(tagged("rule")),
            collect_tags(&triggers, "/reason/rule"),
        ),
        (
            "fact",
            list_variants::<Fact>(tagged("type")),
            collect_tags(&entries, "/fact/type"),
        ),
        (
            "waits_for",
            list_variants::<WaitCondition>(json!("?")),
            collect_tags(&entries, "/fact/waits_for"),
        ),
        (
            "stop",
            list_variants::<StopReason>(tagged("type")),
            collect_tags(&entries, "/fact/reason/type"),
        ),
        (
            "hint",
            list_variants::<ModelHint>(tagged("type")),
            collect_tags(&entries, "/fact/hint/type"),
        ),
        (
            "request",
            list_variants::<OutboundAction>(tagged("type")),
            collect_tags(&reports, "/request/type"),
        ),
        (
            "outcome",
            list_variants::<OutboundOutcome>(tagged("outcome")),
            collect_tags(&outcomes, "/outcome"),
        ),
        (
            "refusal",
            list_variants::<OutboundRefusal>(json!({ "code": "?" })),
            collect_tags(&outcomes, "/code"),
        ),
        (
            "violation",
            list_variants::<PolicyViolation>(tagged("type")),
            collect_tags(&violations, "/type"),
        ),
        (
            "place of a secret",
            list_variants::<SecretPlace>(tagged("place")),
            collect_tags(&violations, "/place/place"),
        ),
        (
            "receipt",
            list_variants::<OutboundReceipt>(tagged("type")),
            collect_tags(&outcomes, "/type"),
        ),
        (
            "status",
            list_variants::<RunStatus>(tagged("status")),
            collect_tags(&runs, "/status/status"),
        ),
    ] {
        let missing: Vec<_> = all.difference(&kept).collect();
        assert!(missing.is_empty(), "{of}: no stored record for {missing:?}");
    }
}

#[test]
fn pinned_rules_ignore_keys_of_later_release() {
    let line = &read_stored_lines(1, "trigger")[0];
    assert!(line.contains("a_key_of_a_later_release"));
    let trigger: Trigger = decode_stored_record(line.as_bytes()).unwrap();
    let TriggerReason::JobRequested(request) = trigger.reason else {
        panic!("{line}")
    };
    assert_eq!(request.rules.repo.name, "shop");
}

/// Returns copies of a record, each with an unknown field at a different place. `skip` selects maps, whose
/// keys are data.
fn with_a_field_of_a_later_release(record: &Value, skip: &dyn Fn(&str) -> bool) -> Vec<(String, Value)> {
    fn places(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.push(path.to_owned());
                for (key, inner) in fields {
                    places(
                        inner,
                        &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")),
                        found,
                    );
                }
            }
            Value::Array(items) => {
                for (at, inner) in items.iter().enumerate() {
                    places(inner, &format!("{path}/{at}"), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    places(record, "", &mut found);
    let kept = found.into_iter().filter(|path| !skip(path));
    kept.map(|path| {
        let mut changed = record.clone();
        let place = changed.pointer_mut(&path).and_then(Value::as_object_mut).unwrap();
        place.insert("of_a_later_release".to_owned(), json!({"deep": [1]}));
        (path, changed)
    })
    .collect()
}

/// Asserts that records with an unknown field at any place are readable and unchanged.
fn check_unknown_fields<T: StoredRecord>(name: &str, refused: &mut BTreeSet<String>) {
    for line in read_stored_lines(1, name) {
        let plain: Value = serde_json::from_slice(
            &encode_stored_record(&decode_stored_record::<T>(line.as_bytes()).unwrap()).unwrap(),
        )
        .unwrap();
        let is_free =
            |path: &str| is_map(path) || FREE.iter().any(|(of, at)| *of == name && path.contains(at));
        for (path, changed) in with_a_field_of_a_later_release(&plain, &is_free) {
            let text = serde_json::to_vec(&changed).unwrap();
            let place: Vec<&str> = path
                .split('/')
                .filter(|part| part.parse::<u32>().is_err())
                .collect();
            match decode_stored_record::<T>(&text) {
                Ok(read) => {
                    let again: Value = serde_json::from_slice(&encode_stored_record(&read).unwrap()).unwrap();
                    if plain != again {
                        refused.insert(format!("{name}{}: it is kept", place.join("/")));
                    }
                }
                Err(error) => drop(refused.insert(format!("{name}{}: {error}", place.join("/")))),
            }
        }
    }
}

/// Documents that are stored unchanged: a call with its answer, and a block that only its provider reads.
const FREE: [(&str, &str); 3] = [
    ("pull_request_call", "/request"),
    ("pull_request_answer", "/answer"),
    ("entry", "/value"),
];

/// Objects whose keys are data: inputs of tools and their schemas, and tables by name.
fn is_map(path: &str) -> bool {
    MAPS.iter().any(|map| path.split('/').any(|part| part == *map))
}

const MAPS: [&str; 7] = [
    "input",
    "input_schema",
    "fields",
    "transition_fields",
    "types",
    "models",
    "context_by_role",
];

#[test]
fn unknown_field_anywhere_in_record_is_ignored() {
    let mut refused = BTreeSet::new();
    check_unknown_fields::<Trigger>("trigger", &mut refused);
    check_unknown_fields::<JournalEntry>("entry", &mut refused);
    check_unknown_fields::<OutboundRequest>("report", &mut refused);
    check_unknown_fields::<TicketRow>("row", &mut refused);
    check_unknown_fields::<OutboundOutcome>("outcome", &mut refused);
    check_unknown_fields::<OutboundCursor>("cursor", &mut refused);
    check_unknown_fields::<BranchRecord>("branch", &mut refused);
    check_unknown_fields::<PullRequestRecord>("pull_request", &mut refused);
    check_unknown_fields::<PullRequestCall>("pull_request_call", &mut refused);
    check_unknown_fields::<PullRequestAnswer>("pull_request_answer", &mut refused);
    check_unknown_fields::<MaintenanceOrder>("maintenance_order", &mut refused);
    check_unknown_fields::<MaintenanceAnswer>("maintenance_answer", &mut refused);
    check_unknown_fields::<SlotQueue>("slots", &mut refused);
    check_unknown_fields::<EffortHistory>("history", &mut refused);
    check_unknown_fields::<StopAll>("stop_all", &mut refused);
    check_unknown_fields::<NewerRecord>("newer", &mut refused);
    check_unknown_fields::<IssueIdentity>("issue_identity", &mut refused);
    check_unknown_fields::<ProjectionPosition>("place", &mut refused);
    check_unknown_fields::<CredentialEnds>("credentials", &mut refused);
    check_unknown_fields::<RunOverview>("overview", &mut refused);
    assert!(refused.is_empty(), "{refused:#?}");
}

const HEAD: &str = "89abcdef0123456789abcdef0123456789abcdef";

fn build_pull_request() -> PullRequestRef {
    PullRequestRef {
        repository: "acme/shop".parse().unwrap(),
        number: 7,
        url: "u".to_owned(),
        branch: "b".to_owned(),
    }
}

/// Asserts the stored bytes of an event in a trigger and in a request. `PULL` and `HEAD` stand for the common fields.
fn check_event_bytes(event: PullRequestEvent, reason: &str, request: &str) {
    let fill = |text: &str| {
        let pull = r#""pull_request":{"repository":"acme/shop","number":7,"url":"u","branch":"b"}"#;
        text.replace("PULL", pull)
            .replace("HEAD", &format!(r#""head":"{HEAD}""#))
    };
    let (reason, request) = (fill(reason), fill(request));
    let trigger = TriggerReason::from(event.clone());
    assert_eq!(serde_json::to_string(&trigger).unwrap(), reason);
    assert_eq!(serde_json::from_str::<TriggerReason>(&reason).unwrap(), trigger);
    let action = OutboundAction::from(event);
    assert_eq!(serde_json::to_string(&action).unwrap(), request);
    assert_eq!(serde_json::from_str::<OutboundAction>(&request).unwrap(), action);
}

#[test]
fn event_bytes_stay_those_of_earlier_releases() {
    let ended = || PullRequestEnd {
        pull_request: build_pull_request(),
        by: "ada".to_owned(),
        moved_to: None,
    };
    let moved = || PullRequestHead {
        pull_request: build_pull_request(),
        head: HEAD.parse().unwrap(),
        by: "ada".to_owned(),
    };
    check_event_bytes(
        PullRequestEvent::PushedByOthers(moved()),
        r#"{"type":"head_moved",PULL,HEAD,"by":"ada"}"#,
        r#"{"type":"pushed_by_others",PULL,HEAD,"by":"ada"}"#,
    );
    check_event_bytes(
        PullRequestEvent::Reopened(moved()),
        r#"{"type":"pull_request_reopened",PULL,HEAD,"by":"ada"}"#,
        r#"{"type":"reopened",PULL,HEAD,"by":"ada"}"#,
    );
    check_event_bytes(
        PullRequestEvent::Merged(ended()),
        r#"{"type":"pull_request_merged",PULL,"by":"ada"}"#,
        r#"{"type":"merged",PULL,"by":"ada"}"#,
    );
    check_event_bytes(
        PullRequestEvent::MergedElsewhere(ended()),
        r#"{"type":"merged_elsewhere",PULL,"by":"ada"}"#,
        r#"{"type":"merged_elsewhere",PULL,"by":"ada"}"#,
    );
    check_event_bytes(
        PullRequestEvent::Closed(ended()),
        r#"{"type":"pull_request_closed",PULL,"by":"ada"}"#,
        r#"{"type":"closed",PULL,"by":"ada"}"#,
    );
    check_event_bytes(
        PullRequestEvent::Closed(PullRequestEnd {
            moved_to: Some("acme/other#220".to_owned()),
            ..ended()
        }),
        r#"{"type":"pull_request_closed",PULL,"by":"ada","moved_to":"acme/other#220"}"#,
        r#"{"type":"closed",PULL,"by":"ada","moved_to":"acme/other#220"}"#,
    );
    let conflict = || {
        let base = "0123456789abcdef0123456789abcdef01234567".parse().unwrap();
        ConflictedBase::new(
            build_pull_request(),
            HEAD.parse().unwrap(),
            base,
            "main".to_owned(),
        )
    };
    check_event_bytes(
        PullRequestEvent::Conflicted(conflict()),
        r#"{"type":"base_conflicted",PULL,HEAD,"base":"0123456789abcdef0123456789abcdef01234567","base_branch":"main"}"#,
        r#"{"type":"conflicted",PULL,HEAD,"base":"0123456789abcdef0123456789abcdef01234567","base_branch":"main"}"#,
    );
    check_event_bytes(
        PullRequestEvent::Conflicted(ConflictedBase {
            unresolved: Some(ConflictEnd::Off),
            asked: vec!["ada".to_owned()],
            ..conflict()
        }),
        r#"{"type":"base_conflicted",PULL,HEAD,"base":"0123456789abcdef0123456789abcdef01234567","base_branch":"main","unresolved":"off","asked":["ada"]}"#,
        r#"{"type":"conflicted",PULL,HEAD,"base":"0123456789abcdef0123456789abcdef01234567","base_branch":"main","unresolved":"off","asked":["ada"]}"#,
    );
    let outdated = |way| {
        PullRequestEvent::Outdated(OutdatedBase {
            pull_request: build_pull_request(),
            head: HEAD.parse().unwrap(),
            base_branch: "main".to_owned(),
            way,
        })
    };
    check_event_bytes(
        outdated(UpdateWay::Merge),
        r#"{"type":"base_outdated",PULL,HEAD,"base_branch":"main"}"#,
        r#"{"type":"outdated",PULL,HEAD,"base_branch":"main"}"#,
    );
    check_event_bytes(
        outdated(UpdateWay::Rebase),
        r#"{"type":"base_outdated",PULL,HEAD,"base_branch":"main","way":"rebase"}"#,
        r#"{"type":"outdated",PULL,HEAD,"base_branch":"main","way":"rebase"}"#,
    );
    check_event_bytes(
        PullRequestEvent::ReviewAwaited(AwaitedReview {
            pull_request: build_pull_request(),
            reviewers: vec!["rita".to_owned()],
            since: Timestamp::from_unix_ms(900),
        }),
        r#"{"type":"review_awaited",PULL,"reviewers":["rita"],"since":900}"#,
        r#"{"type":"review_awaited",PULL,"reviewers":["rita"],"since":900}"#,
    );
}

#[test]
fn checks_bytes_stay_those_of_earlier_releases() {
    let summary = |conclusion| ChecksSummary::new(build_pull_request(), HEAD.parse().unwrap(), conclusion);
    let failed = || {
        vec![FailedCheck {
            name: "unit".to_owned(),
            url: "p".to_owned(),
            log_tail: "2 failed".to_owned(),
            class: FailureClass::Real,
            step: String::new(),
            command: String::new(),
            log: String::new(),
        }]
    };
    check_event_bytes(
        PullRequestEvent::ChecksCompleted(ChecksSummary {
            page: "p".to_owned(),
            ..summary(ChecksConclusion::Success)
        }),
        r#"{"type":"checks_completed",PULL,HEAD,"conclusion":"success","failed":[],"page":"p"}"#,
        r#"{"type":"checks_passed",PULL,HEAD,"page":"p"}"#,
    );
    check_event_bytes(
        PullRequestEvent::ChecksCompleted(ChecksSummary {
            unfinished: vec!["WIP".to_owned()],
            ignored: vec!["codecov/patch".to_owned()],
            ..summary(ChecksConclusion::Success)
        }),
        r#"{"type":"checks_completed",PULL,HEAD,"conclusion":"success","failed":[],"unfinished":["WIP"],"ignored":["codecov/patch"]}"#,
        r#"{"type":"checks_passed",PULL,HEAD,"unfinished":["WIP"],"ignored":["codecov/patch"]}"#,
    );
    check_event_bytes(
        PullRequestEvent::ChecksCompleted(summary(ChecksConclusion::Absent)),
        r#"{"type":"checks_completed",PULL,HEAD,"conclusion":"absent","failed":[]}"#,
        r#"{"type":"checks_absent",PULL,HEAD}"#,
    );
    check_event_bytes(
        PullRequestEvent::ChecksCompleted(ChecksSummary {
            failed: failed(),
            rerun: vec![301],
            ..summary(ChecksConclusion::Failure)
        }),
        r#"{"type":"checks_completed",PULL,HEAD,"conclusion":"failure","failed":[{"name":"unit","url":"p","log_tail":"2 failed"}],"rerun":[301]}"#,
        r#"{"type":"rerun_checks",PULL,HEAD,"failed":[{"name":"unit","url":"p","log_tail":"2 failed"}],"runs":[301]}"#,
    );
    check_event_bytes(
        PullRequestEvent::ChecksCompleted(ChecksSummary {
            failed: failed(),
            unrepaired: Some(RepairEnd::PerHead),
            asked: vec!["ada".to_owned()],
            page: "p".to_owned(),
            ..summary(ChecksConclusion::Failure)
        }),
        r#"{"type":"checks_completed",PULL,HEAD,"conclusion":"failure","failed":[{"name":"unit","url":"p","log_tail":"2 failed"}],"unrepaired":"per_head","asked":["ada"],"page":"p"}"#,
        r#"{"type":"checks_failed",PULL,HEAD,"failed":[{"name":"unit","url":"p","log_tail":"2 failed"}],"unrepaired":"per_head","asked":["ada"],"page":"p"}"#,
    );
}
