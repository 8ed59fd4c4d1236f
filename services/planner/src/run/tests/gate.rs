//! Decision of a person before the push.

use domain::{
    ApprovalRule, CommitId, DecisionVerdict, Fact, Job, OutboundAction, OutboundOutcome, OutboundRefusal,
    StopReason,
};

use super::play::{Play, build_commit_id, build_decision, build_job_request, build_work_replies, decided_on};
use crate::run::RunAction;
use crate::transcript::TranscriptMessage;

fn before_the_gate() -> Play {
    let mut asked = build_job_request(Job::Implement);
    asked.rules.agent.approval = ApprovalRule::BeforePush;
    let mut play = Play::implement(asked, (0..5).flat_map(|_| build_work_replies()));
    assert_eq!(play.drive(), RunAction::Wait);
    play
}

/// Plays to the decision, with the change shown to the person.
fn play_to_decision() -> Play {
    let mut play = before_the_gate();
    confirm_shown_change(&mut play);
    play
}

/// Reports the change as shown; the run then waits for the decision.
fn confirm_shown_change(play: &mut Play) {
    assert!(play.is_parked_for("report"));
    play.shown();
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(play.is_parked_for("decision"));
}

#[test]
fn an_approved_change_is_pushed() {
    let mut play = play_to_decision();
    play.append(build_decision(DecisionVerdict::Approve));
    assert!(
        !play.state.accepts(&build_decision(DecisionVerdict::Approve)),
        "a repeated decision says nothing new"
    );
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
}

#[test]
fn a_rejected_change_ends_the_run() {
    let mut play = play_to_decision();
    play.append(build_decision(DecisionVerdict::Reject));
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::Rejected { by: "ada".to_owned() });
}

#[test]
fn revised_change_requests_new_decision() {
    let mut play = play_to_decision();
    play.append(build_decision(DecisionVerdict::Revise));
    assert_eq!(play.drive(), RunAction::Wait);
    let has_feedback = |message: &TranscriptMessage| matches!(message, TranscriptMessage::User(words) if words.contains("Add a test."));
    assert!(play.transcript().messages.iter().any(has_feedback));
    confirm_shown_change(&mut play);
    let gates = play
        .state
        .delivery()
        .reports()
        .iter()
        .filter(|report| matches!(report.request, OutboundAction::DecisionNeeded(_)));
    assert_eq!(gates.count(), 2);
}

/// Returns the commits in the decision requests.
fn asked_about(play: &Play) -> Vec<CommitId> {
    let reports = play.state.delivery().reports().iter();
    reports
        .filter_map(|report| match &report.request {
            OutboundAction::DecisionNeeded(asked) => Some(asked.push.head.clone()),
            _ => None,
        })
        .collect()
}

/// Returns the digit of the commit in the last decision request.
fn last_asked(play: &Play) -> char {
    asked_about(play).last().unwrap().as_str().chars().next().unwrap()
}

#[test]
fn decision_request_names_commit_and_pack() {
    let play = play_to_decision();
    let OutboundAction::DecisionNeeded(domain::PushProposal { push, .. }) = play.last_request() else {
        panic!("nobody is asked")
    };
    assert_eq!(
        (&push.head, &push.base),
        (&build_commit_id('1'), &build_commit_id('b'))
    );
    assert_eq!(push.pack, play.snapshot().pack);
}

#[test]
fn approval_covers_only_its_commit() {
    let mut play = play_to_decision();
    play.append(build_decision(DecisionVerdict::Approve));
    assert_eq!(play.drive(), RunAction::Wait);
    // The reporter refuses the push because the change is too large, so the model commits again.
    let detail = "too large".to_owned();
    play.settle(OutboundOutcome::Refused(OutboundRefusal::Outside { detail }));
    assert_eq!(play.drive(), RunAction::Wait);
    confirm_shown_change(&mut play);
    assert_eq!(asked_about(&play), [build_commit_id('1'), build_commit_id('2')]);
    assert!(
        !play.state.accepts(&build_decision(DecisionVerdict::Approve)),
        "an approval of the first commit says nothing of the second"
    );
    play.append(decided_on('2', DecisionVerdict::Approve));
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(
        matches!(play.last_request(), OutboundAction::PushBranch(push) if push.head == build_commit_id('2'))
    );
}

#[test]
fn third_revision_limit_ends_run() {
    let mut play = play_to_decision();
    for _ in 0..3 {
        let head = last_asked(&play);
        play.append(decided_on(head, DecisionVerdict::Revise));
        assert_eq!(play.drive(), RunAction::Wait);
        confirm_shown_change(&mut play);
    }
    let head = last_asked(&play);
    play.append(decided_on(head, DecisionVerdict::Revise));
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(play.reason(), &StopReason::RevisionLimit { revisions: 3 });
}

#[test]
fn refused_change_returns_to_model_before_decision() {
    let mut play = before_the_gate();
    let detail = "`.github/workflows/ci.yml` is protected".to_owned();
    play.settle(OutboundOutcome::Refused(OutboundRefusal::Outside { detail }));
    play.drive();
    let is_third_turn =
        |entry: &domain::JournalEntry| matches!(&entry.fact, Fact::ModelRequested { turn: 3, .. });
    assert!(play.entries.iter().any(is_third_turn), "the model goes on");
    assert_eq!(asked_about(&play), [build_commit_id('1'), build_commit_id('2')]);
}
