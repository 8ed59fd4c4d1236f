//! Detection of a model that repeats itself.

use domain::{Fact, Job, ModelHint, ModelReply, OutboundAction, RepetitionKind, StopReason, TreeId};
use serde_json::{Value, json};

use super::play::{Play, build_commit_id, build_edit_calls, build_job_request, build_tool_reply};
use crate::run::{RunAction, decide_action};
use crate::transcript::TranscriptMessage;

fn build_read_call() -> (&'static str, Value) {
    ("read_file", json!({"path": "a"}))
}

fn build_bare_reply(name: &'static str) -> ModelReply {
    build_tool_reply(&[(name, json!({}))])
}

fn list_hints(play: &Play) -> Vec<&ModelHint> {
    let facts = play.entries.iter().map(|entry| &entry.fact);
    facts
        .filter_map(|fact| match fact {
            Fact::Hinted { hint, .. } => Some(hint),
            _ => None,
        })
        .collect()
}

fn read_repetition(play: &Play) -> (RepetitionKind, u32) {
    let reason = play
        .state
        .outputs()
        .cut_short()
        .or(play.state.lifecycle().finished());
    match reason {
        Some(StopReason::Stuck(repetition)) => (repetition.kind, repetition.turns),
        other => panic!("{other:?}"),
    }
}

#[test]
fn equal_turns_bring_hint_then_end_work() {
    let mut play = Play::with(std::iter::repeat_with(|| build_tool_reply(&[build_read_call()])).take(9));
    play.until(|action| matches!(action, RunAction::Record(Fact::Hinted { .. })));
    assert_eq!(play.state.conversation().turn_count(), 3);
    play.until_model_call();
    let messages = play.transcript().messages;
    let [
        ..,
        TranscriptMessage::ToolResults(_),
        TranscriptMessage::User(words),
    ] = &messages[..]
    else {
        panic!("{messages:?}")
    };
    assert!(
        words.contains("read_file") && words.contains("same results"),
        "{words}"
    );
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(list_hints(&play).len(), 1);
    assert_eq!(play.state.conversation().turn_count(), 5);
    assert_eq!(read_repetition(&play), (RepetitionKind::Same, 5));
}

#[test]
fn stuck_work_delivers_change_as_draft() {
    let mut replies = vec![build_tool_reply(&build_edit_calls())];
    replies.extend(std::iter::repeat_with(|| build_tool_reply(&[build_read_call()])).take(5));
    let mut play = Play::with(replies);
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
    play.pushed();
    play.drive();
    let early = &play.description().cut_short;
    assert!(matches!(early, Some(StopReason::Stuck(_))), "{early:?}");
    play.opened();
    assert_eq!(play.drive(), RunAction::Rest);
    assert!(matches!(play.reason(), StopReason::Stuck(_)));
}

#[test]
fn call_with_any_difference_is_progress() {
    let with_changes: Vec<ModelReply> = (0..8)
        .flat_map(|at| {
            [
                build_tool_reply(&[("edit_file", json!({"path": at}))]),
                build_tool_reply(&[build_read_call()]),
            ]
        })
        .collect();
    let with_arguments: Vec<ModelReply> = (0..8)
        .map(|line| build_tool_reply(&[("read_file", json!({"path": "a", "offset": line}))]))
        .collect();
    for replies in [with_changes, with_arguments] {
        let mut play = Play::with(replies);
        play.drive();
        assert_eq!(list_hints(&play), Vec::<&ModelHint>::new());
        assert!(!matches!(
            play.state.outputs().cut_short(),
            Some(StopReason::Stuck(_))
        ));
    }
    let mut play = Play::with(std::iter::repeat_with(|| build_tool_reply(&[build_read_call()])).take(8));
    for round in 0..8_u8 {
        let action = play.until(|action| matches!(action, RunAction::CallTool { .. }));
        let RunAction::CallTool { id, .. } = action else {
            panic!("{action:?}")
        };
        let mut result = domain::ToolResult::ok("line\n".repeat(usize::from(round)));
        result.tree = Some(build_tree_id('a'));
        play.append(Fact::ToolFinished { id, result });
    }
    assert_eq!(list_hints(&play), Vec::<&ModelHint>::new());
}

fn build_tree_id(digit: char) -> TreeId {
    build_commit_id(digit).to_string().parse().unwrap()
}

#[test]
fn output_differing_in_numbers_counts_equal() {
    let mut play = Play::with(std::iter::repeat_with(|| build_bare_reply("read_file")).take(8));
    for round in 0..5_u8 {
        let action = play.until(|action| matches!(action, RunAction::CallTool { .. }));
        let RunAction::CallTool { id, .. } = action else {
            panic!("{action:?}")
        };
        let result = domain::ToolResult::ok(format!("Ran 4 tests in 0.{round}s"));
        play.append(Fact::ToolFinished { id, result });
    }
    play.drive();
    assert_eq!(read_repetition(&play), (RepetitionKind::Same, 5));
}

#[test]
fn alternating_edits_end_work_after_six_turns() {
    let there = || build_bare_reply("edit_file");
    let back = || build_bare_reply("write_file");
    let mut play = Play::with((0..4).flat_map(|_| [there(), back()]));
    for round in 0..6_u8 {
        let action = play.until(|action| matches!(action, RunAction::CallTool { .. }));
        let RunAction::CallTool { id, .. } = action else {
            panic!("{action:?}")
        };
        let mut result = domain::ToolResult::ok("done");
        result.changed = true;
        result.tree = Some(build_tree_id(if round % 2 == 0 { 'a' } else { 'b' }));
        play.append(Fact::ToolFinished { id, result });
    }
    play.until(|action| matches!(action, RunAction::Record(Fact::PhaseFinished { .. })));
    play.perform(decide_action(&play.state));
    assert_eq!(read_repetition(&play), (RepetitionKind::Alternating, 6));
    assert_eq!(list_hints(&play).len(), 1);
}

#[test]
fn three_invalid_call_replies_end_work() {
    let wrong = [
        build_tool_reply(&[("fly", json!({}))]),
        build_tool_reply(&[("read_file", json!("{"))]),
    ];
    let replies = wrong.iter().cycle().take(6).cloned();
    let mut play = Play::with(replies);
    assert_eq!(play.drive(), RunAction::Rest);
    assert_eq!(read_repetition(&play), (RepetitionKind::Malformed, 3));
    let mut mended: Vec<ModelReply> = wrong.to_vec();
    mended.extend(super::play::build_work_replies());
    let mut play = Play::with(mended);
    assert_eq!(play.drive(), RunAction::Wait);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
}

#[test]
fn returned_handovers_are_not_repetition() {
    let mut asked = build_job_request(Job::Implement);
    asked.rules.agent.max_turns = 20;
    let mut play = Play::implement(
        asked,
        std::iter::repeat_with(|| build_tool_reply(&[super::play::build_finish_call()])).take(9),
    );
    play.empty = true;
    play.drive();
    assert_eq!(list_hints(&play), Vec::<&ModelHint>::new());
}
