use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{
    identity::ticket::TicketText,
    journal::record_format::{decode_stored_record, encode_stored_record},
    rules::RepositoryRules,
};

fn build_run_id() -> RunId {
    "jira:ENG-1@7".parse().unwrap()
}

fn build_entry(position: u64, at: i64, fact: &Value) -> JournalEntry {
    serde_json::from_value(
        json!({"position": position, "nonce": "n", "fence": {"epoch": 1, "sequence": 1, "delivered": 1},
        "at": at, "fact": fact}),
    )
    .unwrap_or_else(|error| panic!("{error}: {fact}"))
}

fn build_start_fact() -> Value {
    json!({"type": "run_started", "trigger": {"ticket": "jira:ENG-1", "key": "k", "at": 1, "source": "webhook", "actor": "ada",
        "reason": {"type": "job_requested", "job": "implement", "repository": "acme/shop", "rules": RepositoryRules::default(),
            "text": TicketText { summary: "Totals are wrong".to_owned(), ..TicketText::default() }}}})
}

fn build_call_fact(name: &str, id: u64) -> Value {
    json!({"type": name, "id": format!("jira:ENG-1@7:{id}")})
}

fn merge_fields(mut fact: Value, more: Value) -> Value {
    let (Value::Object(fields), Value::Object(more)) = (&mut fact, more) else {
        panic!("objects")
    };
    fields.extend(more);
    fact
}

fn build_reply_fact(id: u64, cost: Option<u64>) -> Value {
    let reply = json!({"blocks": [], "stop": "end_turn", "model": "m", "provider": "p",
        "usage": {"input_tokens": 90, "output_tokens": 10, "cache_read_tokens": 0, "cache_write_tokens": 0}, "cost_micros": cost});
    merge_fields(build_call_fact("model_replied", id), json!({ "reply": reply }))
}

fn build_push_fact(id: u64) -> Value {
    let request = json!({"type": "decision_needed", "repository": "acme/shop", "branch": "fix/ENG-1", "base": "a".repeat(40),
        "head": "b".repeat(40), "pack": {"sha256": "c".repeat(64), "size_bytes": 1}, "expected": null});
    json!({"type": "report_requested", "id": format!("jira:ENG-1@7:{id}"), "request": request, "answers": null})
}

fn build_settled_fact(id: u64, receipt: &Value) -> Value {
    json!({"type": "report_settled", "id": format!("jira:ENG-1@7:{id}"),
        "outcome": merge_fields(json!({"outcome": "done"}), receipt.clone())})
}

/// A run that calls a model, waits for a decision, is taken over during the wait, and opens a pull request.
fn build_story() -> Vec<JournalEntry> {
    let opened = json!({"type": "pull_request_opened", "repository": "acme/shop", "number": 3, "branch": "fix/ENG-1",
        "url": "https://github.example/acme/shop/pull/3"});
    let facts = [
        (0, build_start_fact()),
        (
            1_000,
            merge_fields(
                build_call_fact("model_requested", 1),
                json!({"turn": 1, "phase": "work"}),
            ),
        ),
        (4_000, build_reply_fact(1, Some(20_000))),
        (
            4_500,
            merge_fields(
                build_call_fact("tool_requested", 3),
                json!({"call": {"id": "t", "name": "diff", "input": {}}}),
            ),
        ),
        (
            5_500,
            merge_fields(
                build_call_fact("tool_finished", 3),
                json!({"result": {"status": "ok", "content": "", "truncated": false}}),
            ),
        ),
        (6_000, build_push_fact(5)),
        (6_000, json!({"type": "parked", "waits_for": "decision"})),
        (
            9_000,
            json!({"type": "taken_over", "fence": {"epoch": 1, "sequence": 1, "delivered": 2}}),
        ),
        (
            16_000,
            json!({"type": "decided", "by": "eve",
            "decision": {"run": "jira:ENG-1@7", "head": "b".repeat(40), "verdict": "approve"}}),
        ),
        (16_500, build_settled_fact(5, &opened)),
        (
            17_000,
            merge_fields(
                build_call_fact("model_requested", 10),
                json!({"turn": 2, "phase": "review"}),
            ),
        ),
        (18_000, build_reply_fact(10, None)),
        (
            18_000,
            json!({"type": "run_finished", "reason": {"type": "completed"}}),
        ),
    ];
    let facts = facts.iter().zip(0..);
    facts
        .map(|((at, fact), position)| build_entry(position, *at, fact))
        .collect()
}

#[test]
fn overview_contains_cost_and_results() {
    let seen = RunOverview::of(&build_run_id(), &build_story()).unwrap();
    assert_eq!((seen.job, seen.turns, seen.tool_calls), (Job::Implement, 2, 1));
    assert_eq!(seen.title, "Totals are wrong");
    assert_eq!(
        seen.repository.as_ref().map(ToString::to_string).as_deref(),
        Some("acme/shop")
    );
    assert_eq!(seen.actor.as_deref(), Some("ada"));
    assert_eq!(
        (
            seen.spend.cost_usd.micros(),
            seen.spend.tokens,
            seen.spend.unpriced
        ),
        (20_000, 200, 1)
    );
    assert_eq!(
        seen.time,
        TimeSpent {
            model_ms: 4_000,
            tools_ms: 1_000,
            waiting_ms: 10_000
        },
        "a planner that takes over does not end the wait"
    );
    assert_eq!((seen.takeovers, seen.retries), (1, 0));
    assert_eq!(
        (seen.pull_requests.len(), seen.branch.as_deref()),
        (1, Some("fix/ENG-1"))
    );
    assert_eq!(
        (seen.phase, seen.last.as_str()),
        (Some(RunPhase::Review), "run_finished")
    );
    assert!(matches!(seen.status, RunStatus::Finished { .. }) && seen.gate.is_none());
    assert_eq!(seen.finished_at, Some(Timestamp::from_unix_ms(18_000)));
}

#[test]
fn gate_is_open_until_the_decision() {
    let entries = build_story();
    let open: Vec<u64> = (1..=entries.len())
        .filter_map(|length| {
            let seen = RunOverview::of(&build_run_id(), entries.iter().take(length))?;
            let is_waiting =
                matches!(seen.status, RunStatus::Parked { waits_for } if waits_for.is_for_person());
            assert_eq!(seen.gate.is_some(), is_waiting);
            seen.gate.map(|_| length as u64 - 1)
        })
        .collect();
    assert_eq!(open, [6, 7]);
    let gate = RunOverview::of(&build_run_id(), entries.iter().take(8))
        .unwrap()
        .gate
        .unwrap();
    assert_eq!((gate.position, gate.head.short()), (6, "bbbbbbbbbbbb"));
    assert_eq!(gate.key(&build_run_id()), "decision:jira:ENG-1@7:6");
}

#[test]
fn wait_begins_once_and_ends_with_work() {
    let parked = json!({"type": "parked", "waits_for": "answer"});
    let taken_over = json!({"type": "taken_over", "fence": {"epoch": 1, "sequence": 1, "delivered": 2}});
    let entries = [
        build_entry(0, 0, &build_start_fact()),
        build_entry(1, 1_000, &parked),
        build_entry(2, 5_000, &taken_over),
        build_entry(3, 5_500, &parked),
        build_entry(4, 7_000, &json!({"type": "parked", "waits_for": "report"})),
        build_entry(5, 9_000, &json!({"type": "stop_requested", "by": "ada"})),
        build_entry(6, 9_500, &parked),
        build_entry(
            7,
            9_900,
            &json!({"type": "run_finished", "reason": {"type": "completed"}}),
        ),
    ];
    let waits = (1..=entries.len()).map(|length| {
        let seen = RunOverview::of(&build_run_id(), entries.iter().take(length));
        seen.unwrap().parked_at.map(Timestamp::unix_ms)
    });
    let of_answer = Some(1_000);
    assert_eq!(
        waits.collect::<Vec<_>>(),
        [
            None,
            of_answer,
            of_answer,
            of_answer,
            Some(7_000),
            None,
            Some(9_500),
            None
        ]
    );
}

#[test]
fn questions_stay_until_run_asks_again() {
    let ask = |id: u64, request: Value| json!({"type": "report_requested", "id": format!("jira:ENG-1@7:{id}"), "request": request, "answers": null});
    let long = "x".repeat(QUESTION_CHARS + 1);
    let questions = json!({"type": "question_asked", "questions": [{"text": "Which rounding?", "options": ["half up", "half even"]},
        {"text": long}]});
    let mut entries = vec![
        build_entry(0, 0, &build_start_fact()),
        build_entry(1, 1_000, &ask(1, questions)),
        build_entry(2, 2_000, &json!({"type": "parked", "waits_for": "answer"})),
    ];
    let waiting = RunOverview::of(&build_run_id(), &entries).unwrap();
    assert_eq!(waiting.questions.len(), 2);
    assert_eq!(waiting.questions[0].options, ["half up", "half even"]);
    assert_eq!(waiting.questions[1].text.chars().count(), QUESTION_CHARS);
    entries.push(build_entry(3, 3_000, &build_push_fact(5)));
    let decided = RunOverview::of(&build_run_id(), &entries).unwrap();
    assert!(decided.questions.is_empty(), "a change asks without words");
}

#[test]
fn overview_requires_first_journal_entry() {
    assert_eq!(
        RunOverview::of(&build_run_id(), build_story().iter().skip(1)),
        None
    );
    assert_eq!(RunOverview::of(&build_run_id(), []), None);
}

proptest! {
    /// An overview may be stored and continued later, or receive entries twice. The result is that of a
    /// single fold.
    #[test]
    fn stored_overview_continues_like_single_fold(at in 1_usize..13, back in 0_usize..5) {
        let entries = build_story();
        let begun = RunOverview::of(&build_run_id(), entries.iter().take(at)).unwrap();
        let stored = encode_stored_record(&begun).unwrap();
        let mut again: RunOverview = decode_stored_record(&stored).unwrap();
        for entry in entries.iter().skip(at.saturating_sub(back)) {
            again.apply(entry);
        }
        prop_assert_eq!(Some(again), RunOverview::of(&build_run_id(), &entries));
    }
}
