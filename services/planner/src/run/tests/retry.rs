//! Failures that a run retries, and failures that end it.

use domain::{
    Fact, Job, OutboundAction, OutboundOutcome, OutboundReceipt, PullRequestEnd, PullRequestEvent, ReplyStop,
    StopReason, TriggerReason, report,
};
use serde_json::json;

use super::play::{
    Play, build_edit_calls, build_job_request, build_reply, build_tool_reply, build_work_replies,
    pull_request, stop_requested,
};
use crate::run::{RunAction, decide_action};

#[test]
fn transient_failure_is_retried_five_times() {
    let mut play = Play::with([]);
    for attempt in 1..=5 {
        assert_eq!(play.fail_once(), RunAction::Wait);
        assert!(play.is_parked_for("retry"));
        assert!(matches!(play.last_request(),
            OutboundAction::RetryScheduled(report::RetryScheduled { attempt: reported, most: 5, .. }) if *reported == attempt));
        play.retry();
        assert!(
            !play.state.accepts(&Fact::Retried {
                by: None,
                trigger: None
            }),
            "a repeated one says nothing new"
        );
    }
    assert_eq!(play.fail_once(), RunAction::Rest);
    assert!(matches!(play.reason(), StopReason::ModelFailed { .. }));
    assert!(play.reason().breaks_circuit());
    assert!(matches!(play.last_request(), OutboundAction::RunStopped(_)));
}

#[test]
fn rules_override_number_of_retries() {
    for most in [0, 2] {
        let mut asked = build_job_request(Job::Implement);
        asked.rules.agent.max_retries = Some(most);
        let mut play = Play::implement(asked, []);
        for _ in 0..most {
            assert_eq!(play.fail_once(), RunAction::Wait);
            play.retry();
        }
        assert_eq!(play.fail_once(), RunAction::Rest);
        assert!(matches!(play.reason(), StopReason::ModelFailed { .. }));
    }
}

#[test]
fn run_without_reply_ends_when_not_waiting() {
    let mut play = Play::with([]);
    play.waits_for_model = false;
    assert_eq!(play.fail_once(), RunAction::Rest);
    assert!(matches!(play.reason(), StopReason::ModelFailed { .. }));
    assert!(
        play.entries
            .iter()
            .all(|entry| !matches!(entry.fact, Fact::RetryScheduled { .. }))
    );
    let mut play = Play::with([build_tool_reply(&[("read_file", json!({"path": "a"}))])]);
    play.waits_for_model = false;
    play.until_model_call();
    play.perform(decide_action(&play.state));
    assert_eq!(
        play.fail_once(),
        RunAction::Wait,
        "what was paid for is not given up"
    );
}

#[test]
fn reply_and_user_reset_retry_count() {
    let mut play = Play::with([build_tool_reply(&[("read_file", json!({"path": "a"}))])]);
    for by in [None, Some("ada".to_owned())] {
        play.fail_once();
        play.append(Fact::Retried { by, trigger: None });
    }
    assert_eq!(play.state.lifecycle().retries(), 0);
    play.fail_once();
    play.retry();
    play.until_model_call();
    play.perform(decide_action(&play.state));
    assert_eq!(
        (
            play.state.lifecycle().retries(),
            play.state.conversation().turn_count()
        ),
        (0, 1)
    );
}

#[test]
fn resumption_is_reported_only_for_users() {
    let starts = |play: &Play| -> Vec<(Option<String>, bool)> {
        let reports = play.state.delivery().reports().iter();
        let started = reports.filter_map(|report| match &report.request {
            OutboundAction::WorkStarted(started) => Some(&started.begun),
            _ => None,
        });
        started.map(|begun| (begun.by.clone(), begun.is_again)).collect()
    };
    let mut play = Play::with([build_tool_reply(&[("read_file", json!({"path": "a"}))])]);
    play.fail_once();
    play.retry();
    play.fail_once();
    assert_eq!(starts(&play).len(), 1);
    play.append(Fact::Retried {
        by: Some("ada".to_owned()),
        trigger: None,
    });
    play.until_model_call();
    let all = starts(&play);
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(!all[0].1, "{all:?}");
    assert_eq!(all[1], (Some("ada".to_owned()), true));
}

#[test]
fn stop_ends_run_waiting_for_retry() {
    let mut play = Play::with([]);
    play.fail_once();
    play.append(stop_requested());
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::Stopped { by: "ada".to_owned() });
}

#[test]
fn failed_push_retries_as_new_report() {
    let mut play = Play::with(build_work_replies());
    play.drive();
    let first = play.state.delivery().reports().last().unwrap().id.clone();
    play.settle(OutboundOutcome::Failed {
        detail: "502".to_owned(),
    });
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(play.is_parked_for("retry"));
    play.retry();
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
    assert_ne!(play.state.delivery().reports().last().unwrap().id, first);
    play.pushed();
    assert!(play.state.source().work().pushed.is_some());
}

#[test]
fn failed_handover_is_retried() {
    let mut play = Play::new(TriggerReason::from(PullRequestEvent::Merged(PullRequestEnd {
        pull_request: pull_request(),
        by: "ada".to_owned(),
        moved_to: None,
    })));
    play.drive();
    play.settle(OutboundOutcome::Failed {
        detail: "502".to_owned(),
    });
    assert_eq!(play.drive(), RunAction::Wait);
    play.retry();
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(matches!(
        play.last_request(),
        OutboundAction::PullRequest(PullRequestEvent::Merged(_))
    ));
    play.settle(OutboundOutcome::Done(OutboundReceipt::Told));
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::Completed);
}

#[test]
fn failures_end_the_run_with_their_reason() {
    let mut denied = Play::with([]);
    denied.until_model_call();
    denied.model_fails(false);
    assert_eq!(denied.drive(), RunAction::Rest);
    assert!(matches!(denied.reason(), StopReason::ModelFailed { .. }));

    let mut refused = Play::with([build_reply(ReplyStop::Refusal, "No.", &[])]);
    refused.drive();
    assert_eq!(refused.reason(), &StopReason::ModelRefused);

    let calls = build_edit_calls();
    let mut interrupted = Play::with([build_reply(ReplyStop::Refusal, "I will", &calls)]);
    interrupted.drive();
    assert_eq!(interrupted.reason(), &StopReason::ModelRefused);
    let mut facts = interrupted.entries.iter().map(|entry| &entry.fact);
    assert!(!facts.any(|fact| matches!(fact, Fact::ToolRequested { .. })));

    for setup in [false, true] {
        let mut play = Play::with([]);
        play.until(|action| matches!(action, RunAction::OpenWorkspace { .. }));
        let id = play.state.next_id();
        play.append(Fact::WorkspaceFailed {
            id,
            detail: "gone".to_owned(),
            setup,
            permanent: false,
            repository: None,
        });
        if setup {
            assert_eq!(play.drive(), RunAction::Rest);
            assert!(matches!(play.reason(), StopReason::SetupFailed { .. }));
        } else {
            assert_eq!(play.drive(), RunAction::Wait);
            play.retry();
            assert!(matches!(
                decide_action(&play.state),
                RunAction::Record(Fact::WorkspaceRequested { .. })
            ));
        }
    }
}
