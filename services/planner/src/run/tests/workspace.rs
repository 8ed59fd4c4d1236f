use domain::{Fact, Job, RunPhase, StopReason, ToolStatus};
use serde_json::json;

use super::play::{
    Play, build_edit_calls, build_end_reply, build_finish_call, build_job_request, build_review_reply,
    build_tool_reply, build_work_replies, build_workspace,
};
use crate::run::{RunAction, decide_action};
use crate::transcript::TranscriptMessage;

const REASON: &str = "the pack is larger than 256 MiB";

fn replace_workspace(play: &mut Play) {
    let snapshot = play.state.source().work().snapshot.clone();
    play.append(Fact::WorkspaceRestored {
        workspace: build_workspace(),
        snapshot,
        repository: None,
    });
}

fn play_until_call(play: &mut Play, name: &str) {
    play.until(|action| matches!(action, RunAction::CallTool { call, .. } if call.name == name));
}

fn fails_to_save(play: &mut Play) {
    play.until(|action| *action == RunAction::TakeSnapshot);
    play.append(Fact::SnapshotFailed {
        reason: REASON.to_owned(),
        repository: None,
    });
}

fn join_tool_results(play: &Play) -> String {
    let results = play.transcript().messages.into_iter();
    let results = results.filter_map(|message| match message {
        TranscriptMessage::ToolResults(results) => Some(results),
        TranscriptMessage::User(_) | TranscriptMessage::Parts(_) | TranscriptMessage::Assistant(_) => None,
    });
    results
        .flatten()
        .map(|(_, result)| result.content)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn twice_deadly_call_gets_error() {
    let deadly = ("edit_file", json!({ "path": "s.yaml" }));
    let mut play = Play::with([
        build_tool_reply(&[("read_file", json!({})), deadly]),
        build_end_reply("I give up."),
    ]);
    for _ in 0..2 {
        play_until_call(&mut play, "edit_file");
        replace_workspace(&mut play);
    }
    let again = play.until(|action| {
        matches!(action, RunAction::CallTool { call, .. } if call.name == "edit_file")
            || matches!(action, RunAction::AskModel { .. })
    });
    assert!(matches!(again, RunAction::AskModel { .. }), "{again:?}");
    assert_eq!(play.last_result().status, ToolStatus::Error);
    assert!(join_tool_results(&play).contains("stopped twice while this call ran"));
    // The other call of the reply was only voided, so it has run again.
    assert!(join_tool_results(&play).contains("read_file did it"));
}

/// The planner fetched the change for the reviewer, so the loss voids a call of each.
#[test]
fn lost_workspace_in_review_resumes_reviewer_first() {
    let reviews = [
        build_tool_reply(&[("read_file", json!({ "path": "shop/cart.py" }))]),
        build_review_reply(&[]),
    ];
    let request = build_job_request(Job::Implement);
    let mut play = Play::implement_reviewed(request, build_work_replies(), reviews);
    play_until_call(&mut play, "read_file");
    let dialog = play.state.conversation().dialog().unwrap();
    assert_eq!(dialog.phase, RunPhase::Review);
    replace_workspace(&mut play);
    let next = play.until(|action| matches!(action, RunAction::CallTool { .. }));
    assert!(
        matches!(&next, RunAction::CallTool { call, .. } if call.name == "read_file"),
        "{next:?}"
    );
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(play.state.outputs().review().unwrap().is_complete);
}

#[test]
fn workspace_losses_count_per_call() {
    let mut play = Play::with(build_work_replies());
    play_until_call(&mut play, "edit_file");
    replace_workspace(&mut play);
    play_until_call(&mut play, "commit_changes");
    replace_workspace(&mut play);
    play_until_call(&mut play, "commit_changes");
}

#[test]
fn unsaved_changes_are_reported_once() {
    let look = build_tool_reply(&[("read_file", json!({}))]);
    let mut play = Play::with([
        build_tool_reply(&build_edit_calls()),
        look,
        build_end_reply("Too large."),
        build_end_reply("Too large."),
        build_end_reply("Too large."),
    ]);
    fails_to_save(&mut play);
    let before = play.entries.len();
    assert_eq!(play.drive(), RunAction::Rest);
    let after = &play.entries[before..];
    let ran = after.iter().filter_map(|entry| match &entry.fact {
        Fact::ToolRequested { call, .. } => Some(call.name.as_str()),
        _ => None,
    });
    assert_eq!(ran.collect::<Vec<_>>(), ["read_file"]);
    assert!(!after.iter().any(|entry| matches!(
        entry.fact,
        Fact::SnapshotTaken { .. } | Fact::SnapshotFailed { .. } | Fact::WorkspaceRestored { .. }
    )));
    assert_eq!(
        join_tool_results(&play).matches(REASON).count(),
        1,
        "{}",
        join_tool_results(&play)
    );
    let StopReason::Unfinished { summary, unsaved } = play.reason() else {
        panic!("{:?}", play.reason())
    };
    assert_eq!(
        (summary.as_str(), unsaved.as_slice()),
        ("Too large.", &[REASON.to_owned()][..])
    );
}

#[test]
fn further_change_is_saved_then_pushed() {
    let mut play = Play::with([
        build_tool_reply(&build_edit_calls()),
        build_tool_reply(&build_edit_calls()),
        build_tool_reply(&[build_finish_call()]),
    ]);
    fails_to_save(&mut play);
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(play.state.source().work().unkept.is_none());
    play.pushed();
    assert!(play.state.source().work().pushed.is_some());
}

#[test]
fn unsaved_change_blocks_handover_with_reason() {
    let mut play = Play::with(build_work_replies());
    play_until_call(&mut play, "commit_changes");
    play.perform(decide_action(&play.state));
    fails_to_save(&mut play);
    play.until_model_call();
    let shown = play.transcript().messages;
    assert!(
        matches!(shown.last(), Some(TranscriptMessage::User(words)) if words.contains(REASON)),
        "{shown:?}"
    );
}

#[test]
fn fruitless_run_reports_omitted_files() {
    let mut play = Play::with([
        build_tool_reply(&[("edit_file", json!({}))]),
        build_end_reply("No."),
        build_end_reply("No."),
        build_end_reply("No."),
    ]);
    play.until(|action| *action == RunAction::TakeSnapshot);
    let mut snapshot = play.snapshot();
    snapshot.files_changed = 0;
    snapshot.omitted = vec!["secret/: permission denied".to_owned()];
    play.append(Fact::SnapshotTaken {
        snapshot,
        repository: None,
    });
    assert_eq!(play.drive(), RunAction::Rest);
    let StopReason::Unfinished { unsaved, .. } = play.reason() else {
        panic!("{:?}", play.reason())
    };
    assert_eq!(unsaved, &["secret/: permission denied"]);
    assert_eq!(decide_action(&play.state), RunAction::Rest);
}
