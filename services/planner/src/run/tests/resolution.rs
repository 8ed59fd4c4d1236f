//! Conflicts of a pull request with its base branch: limits, merges, and hunks that the result lacks.

use domain::report::ConflictResolved;
use domain::{
    ConflictFile, ConflictKind, ConflictLeft, ConflictedBase, Job, JobRequest, JobSubject, LostHunk,
    MergeSide, ModelReply, OutboundAction, OutboundOutcome, OutboundRefusal, ReturnReason, StopReason,
};
use serde_json::{Value, json};

use super::play::{
    Play, build_commit_id, build_edit_calls, build_finish_call, build_job_request, build_tool_reply,
    pull_request,
};

fn build_request() -> JobRequest {
    let (head, base) = (build_commit_id('e'), build_commit_id('b'));
    let conflict = ConflictedBase::new(pull_request(), head, base, "main".to_owned());
    JobRequest {
        about: JobSubject::Conflict(Box::new(conflict)),
        ..build_job_request(Job::ResolveConflict)
    }
}

fn build_conflict_file(kind: ConflictKind) -> ConflictFile {
    ConflictFile {
        path: "shop/cart.py".to_owned(),
        kind,
        bytes: 300,
        hunks: 1,
    }
}

fn build_lost_hunk() -> LostHunk {
    LostHunk {
        side: MergeSide::Base,
        path: "shop/cart.py".to_owned(),
        lines: vec!["return round(total, 2)".to_owned()],
        is_removal: false,
    }
}

fn build_play(kind: ConflictKind, replies: Vec<ModelReply>) -> Play {
    let mut play = Play::implement(build_request(), replies);
    play.workspace.conflicts = vec![build_conflict_file(kind)];
    play
}

fn build_edit_reply() -> ModelReply {
    build_tool_reply(&build_edit_calls())
}

fn build_finish_reply() -> ModelReply {
    build_tool_reply(&[build_finish_call()])
}

/// Returns a reply that names a dropped hunk.
fn build_naming_reply(reason: &str) -> ModelReply {
    let (name, mut input): (&str, Value) = build_finish_call();
    input["dropped"] = json!([{"path": "shop/cart.py", "quote": "return round(total, 2)", "reason": reason}]);
    build_tool_reply(&[(name, input)])
}

#[test]
fn resolution_is_pushed_as_merge() {
    let mut play = build_play(
        ConflictKind::Content,
        vec![build_edit_reply(), build_finish_reply()],
    );
    play.until_model_call();
    let shown = format!("{:?}", play.transcript().messages);
    for part in [
        "conflicts with main",
        "`shop/cart.py`: 1 conflicting hunk(s) between markers",
        "eeeeeeeeeeee",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    play.drive_to_rest();
    let reports = play.state.delivery().reports().iter();
    let mut pushes = reports.filter_map(|report| match &report.request {
        OutboundAction::PushBranch(push) => Some(push.clone()),
        _ => None,
    });
    let push = pushes.next().expect("a push");
    assert_eq!(push.branch, pull_request().branch);
    assert_eq!(push.expected, Some(build_commit_id('e')), "no force");
    assert_eq!(push.base, build_commit_id('b'));
    assert_eq!(push.merge.expect("a merge").head, build_commit_id('e'));
    let OutboundAction::ConflictResolved(ConflictResolved { commit, base, .. }) = play.last_request() else {
        panic!("{:?}", play.last_request())
    };
    assert_eq!(
        (commit.as_ref(), base),
        (Some(&build_commit_id('1')), &build_commit_id('b'))
    );
    assert_eq!(play.reason(), &StopReason::Completed);
}

#[test]
fn missing_signing_key_ends_resolution_before_model() {
    let refusal = OutboundRefusal::NoSigningKey {
        repository: "acme/shop".parse().unwrap(),
        branch: "main".to_owned(),
    };
    let mut play = build_play(ConflictKind::Content, vec![build_edit_reply()]);
    play.start = Some(OutboundOutcome::Refused(refusal.clone()));
    play.drive_to_rest();
    assert_eq!(play.reason(), &StopReason::ReportRefused(refusal));
    assert!(
        play.state.conversation().dialogs().is_empty(),
        "no model was paid"
    );
}

#[test]
fn lost_hunk_returns_twice_then_ends() {
    let finishes = (0..3).map(|_| build_finish_reply());
    let replies = std::iter::once(build_edit_reply()).chain(finishes).collect();
    let mut play = build_play(ConflictKind::Content, replies);
    play.checks.change.lost_hunks = vec![build_lost_hunk()];
    play.drive_to_rest();
    let lost = ReturnReason::HunksLost {
        hunks: vec![build_lost_hunk()],
        marked_files: Vec::new(),
    };
    assert_eq!(play.returns(), [&lost, &lost]);
    assert_eq!(
        play.reason(),
        &StopReason::ConflictLeft {
            why: ConflictLeft::HunksLost,
            files: vec!["shop/cart.py".to_owned()],
        }
    );
    let mut reports = play.state.delivery().reports().iter();
    assert!(!reports.any(|report| matches!(report.request, OutboundAction::PushBranch(_))));
}

#[test]
fn named_hunk_is_delivered_with_reason() {
    let replies = vec![
        build_edit_reply(),
        build_naming_reply(""),
        build_naming_reply("one line has both"),
    ];
    let mut play = build_play(ConflictKind::Content, replies);
    play.checks.change.lost_hunks = vec![build_lost_hunk()];
    play.drive_to_rest();
    assert_eq!(play.returns().len(), 1, "a hunk without a reason returns");
    let OutboundAction::ConflictResolved(ConflictResolved { dropped, .. }) = play.last_request() else {
        panic!("{:?}", play.last_request())
    };
    assert_eq!(dropped[0].reason, "one line has both");
    assert_eq!(play.reason(), &StopReason::Completed);
}

#[test]
fn full_list_of_lost_hunks_is_never_accepted() {
    // As many as an inspection reports; the result may lack more.
    const REPORTED: usize = 200;
    let (name, mut input): (&str, Value) = build_finish_call();
    let hunk = json!({"path": "shop/cart.py", "quote": "return round(total, 2)", "reason": "one side wins"});
    input["dropped"] = json!(vec![hunk; REPORTED]);
    let finish = || build_tool_reply(&[(name, input.clone())]);
    let replies = vec![build_edit_reply(), finish(), finish(), finish()];
    let mut play = build_play(ConflictKind::Content, replies);
    play.checks.change.lost_hunks = vec![build_lost_hunk(); REPORTED];
    play.drive_to_rest();
    assert_eq!(play.returns().len(), 2);
    assert_eq!(
        play.reason(),
        &StopReason::ConflictLeft {
            why: ConflictLeft::HunksLost,
            files: vec!["shop/cart.py".to_owned()],
        }
    );
}

#[test]
fn leftover_markers_return_to_model() {
    let finishes = (0..3).map(|_| build_finish_reply());
    let replies = std::iter::once(build_edit_reply()).chain(finishes).collect();
    let mut play = build_play(ConflictKind::BothAdded, replies);
    play.checks.change.marked_files = vec!["shop/cart.py".to_owned()];
    play.drive_to_rest();
    assert_eq!(play.returns().len(), 2);
    assert!(matches!(play.reason(), StopReason::ConflictLeft { .. }));
}

#[test]
fn binary_conflict_needs_no_model_call() {
    let mut play = build_play(ConflictKind::Binary, Vec::new());
    play.drive_to_rest();
    assert_eq!(play.state.conversation().turn_count(), 0);
    assert_eq!(
        play.reason(),
        &StopReason::ConflictLeft {
            why: ConflictLeft::Unreadable,
            files: vec!["shop/cart.py".to_owned()],
        }
    );
}

#[test]
fn clean_merge_needs_no_model_call() {
    let mut play = Play::implement(build_request(), []);
    play.drive_to_rest();
    assert_eq!(play.state.conversation().turn_count(), 0);
    let OutboundAction::ConflictResolved(ConflictResolved { summary, .. }) = play.last_request() else {
        panic!("{:?}", play.last_request())
    };
    assert_eq!(summary, "Git merges main without a conflict.");
}
