//! Shortening of long conversations.

use domain::{
    Fact, Job, ModelFault, ModelReply, ModelRole, RepetitionKind, ReplyBlock, ReplyStop, RunPhase,
    StopReason, TokenUsage, ToolResult,
};
use proptest::prelude::*;
use serde_json::json;

use super::play::{
    Play, build_edit_calls, build_end_reply, build_finish_call, build_job_request, build_reply,
    build_tool_reply,
};
use crate::prompts;
use crate::run::{PlannerRunState, RunAction, decide_action, summary_conversation};
use crate::transcript::{ModelTranscript, TranscriptMessage};

const LIMIT: u64 = 10_000;

/// Plays a run whose reads return this many characters each.
fn play_reads(chars: &[usize]) -> Play {
    let read = |at| build_tool_reply(&[("read_file", json!({"path": format!("file{at}")}))]);
    let mut play = Play::implement(build_job_request(Job::Implement), (0..chars.len()).map(read));
    play.limits.context = Some(LIMIT);
    let mut chars = chars.iter();
    for _ in 0..1000 {
        match decide_action(&play.state) {
            RunAction::CallTool { id, .. } => {
                let Some(chars) = chars.next() else { break };
                let result = ToolResult::ok(format!("The first line\n{}", "x".repeat(*chars)));
                play.append(Fact::ToolFinished { id, result });
            }
            RunAction::AskModel { .. } if play.replies.is_empty() => return play,
            action => play.perform(action),
        }
    }
    play
}

fn list_tool_results(transcript: &ModelTranscript) -> Vec<&str> {
    let results = transcript.messages.iter().filter_map(|message| match message {
        TranscriptMessage::ToolResults(results) => {
            Some(results.iter().map(|(_, result)| result.content.as_str()))
        }
        _ => None,
    });
    results.flatten().collect()
}

fn list_clearings(play: &Play) -> Vec<(u32, u64)> {
    let cleared = play.entries.iter().filter_map(|entry| match entry.fact {
        Fact::ContextCleared { turns, tokens, .. } => Some((turns, tokens)),
        _ => None,
    });
    cleared.collect()
}

#[test]
fn a_short_conversation_is_shown_whole() {
    let play = play_reads(&[8_000, 8_000, 8_000]);
    assert_eq!(list_clearings(&play), []);
    assert!(
        list_tool_results(&play.transcript())
            .iter()
            .all(|result| result.len() > 8_000)
    );
}

#[test]
fn old_results_shrink_while_newest_stay() {
    let play = play_reads(&[8_000, 8_000, 8_000, 100, 8_000]);
    assert_eq!(list_clearings(&play), [(3, 7_512)]);
    let transcript = play.transcript();
    let results = list_tool_results(&transcript);
    let cleared =
        "The first line\n[8015 characters left out to make room; call the tool again if you need them]";
    assert_eq!(&results[..3], [cleared; 3]);
    assert!(results[3].len() > 100 && results[4].len() > 8_000);
}

#[test]
fn short_results_stay_although_they_are_old() {
    let play = play_reads(&[100, 15_000, 15_000, 8_000]);
    assert_eq!(list_clearings(&play).len(), 1);
    let transcript = play.transcript();
    assert!(list_tool_results(&transcript)[0].ends_with("xxx"));
}

#[test]
fn clearing_waits_until_it_frees_enough() {
    let play = play_reads(&[1_000, 40_000]);
    assert_eq!(
        list_clearings(&play),
        [],
        "the newest result alone is longer than the limit"
    );
}

#[test]
fn regrown_conversation_is_cleared_again() {
    let play = play_reads(&[15_000; 7]);
    let turns: Vec<u32> = list_clearings(&play)
        .into_iter()
        .map(|(turns, _)| turns)
        .collect();
    assert!(turns.len() >= 2 && turns.is_sorted(), "{turns:?}");
}

/// Returns a turn whose text alone fills this many tokens.
fn long_words(tokens: u64, calls: &[(&str, serde_json::Value)]) -> ModelReply {
    let words = "w".repeat(usize::try_from(tokens * 32 / 10).unwrap());
    build_reply(ReplyStop::ToolUse, &words, calls)
}

fn build_read_call(at: usize) -> (&'static str, serde_json::Value) {
    ("read_file", json!({ "path": format!("file{at}") }))
}

/// Plays a run of long texts, so that clearing results is not enough. It ends before a model call without a
/// reply.
fn play_talk(turns: impl IntoIterator<Item = ModelReply>) -> Play {
    talk_with(turns, [])
}

fn talk_with(
    turns: impl IntoIterator<Item = ModelReply>,
    summaries: impl IntoIterator<Item = ModelReply>,
) -> Play {
    let mut play = Play::implement(build_job_request(Job::Implement), turns);
    play.summaries.extend(summaries);
    play.limits.context = Some(LIMIT);
    drive_on(&mut play);
    play
}

/// Drives to a model call of the work without a reply, or to the end.
fn drive_on(play: &mut Play) {
    for _ in 0..1000 {
        match decide_action(&play.state) {
            RunAction::AskModel { .. }
                if play.replies.is_empty() && play.state.conversation().is_at_work() =>
            {
                return;
            }
            RunAction::Wait | RunAction::Rest => return,
            action => play.perform(action),
        }
    }
    panic!("it never stands still");
}

/// Fails the next model call because of its length, and drives to the following one.
fn overflow_context(play: &mut Play) {
    let RunAction::AskModel { id } = decide_action(&play.state) else {
        panic!("the model is not asked")
    };
    play.append(Fact::ModelFailed {
        id,
        detail: "the conversation is too long for the model (400)".to_owned(),
        transient: false,
        kind: Some(ModelFault::ContextTooLong),
        limit: None,
    });
    drive_on(play);
}

fn list_shortenings(play: &Play) -> Vec<&'static str> {
    let steps = [
        "context_cleared",
        "summary_requested",
        "summarized",
        "summary_failed",
    ];
    let all = play.entries.iter().map(|entry| entry.fact.name());
    all.filter(|name| steps.contains(name)).collect()
}

fn list_user_texts(transcript: &ModelTranscript) -> Vec<&str> {
    let all = transcript.messages.iter().filter_map(|message| match message {
        TranscriptMessage::User(text) => Some(text.as_str()),
        _ => None,
    });
    all.collect()
}

/// Asserts that each sent tool call has exactly one result, in the next message.
fn assert_paired(transcript: &ModelTranscript) {
    let messages = &transcript.messages;
    for (place, message) in messages.iter().enumerate() {
        let next = messages.get(place + 1);
        match message {
            TranscriptMessage::Assistant(blocks) => {
                let calls = blocks.iter().filter_map(|block| match block {
                    ReplyBlock::ToolCall(call) => Some(call.id.as_str()),
                    _ => None,
                });
                let calls: Vec<&str> = calls.collect();
                let results: Vec<&str> = match next {
                    Some(TranscriptMessage::ToolResults(results)) => {
                        results.iter().map(|(id, _)| id.as_str()).collect()
                    }
                    _ => Vec::new(),
                };
                assert_eq!(calls, results, "message {place}");
            }
            TranscriptMessage::ToolResults(_) => {
                assert!(
                    matches!(messages[place - 1], TranscriptMessage::Assistant(_)),
                    "message {place}"
                );
            }
            TranscriptMessage::User(_) | TranscriptMessage::Parts(_) => {}
        }
    }
}

#[test]
fn summary_replaces_turns_when_clearing_fails() {
    let summary = build_end_reply("## Findings\nTotals are in cart.py.");
    let turns = (0..5).map(|at| {
        long_words(
            2_500,
            &[
                build_read_call(at),
                ("edit_file", json!({ "path": "shop/cart.py" })),
            ],
        )
    });
    let play = talk_with(turns, [summary]);
    assert_eq!(list_shortenings(&play), ["summary_requested", "summarized"]);
    let transcript = play.transcript();
    assert_paired(&transcript);
    let users = list_user_texts(&transcript);
    assert!(
        users[0].starts_with("Implement this ticket."),
        "the task stays first"
    );
    let card = users[1];
    for part in ["first 3 turns", "shop/cart.py", "Totals are in cart.py."] {
        assert!(card.contains(part), "{part}: {card}");
    }
    assert!(users.last().unwrap().starts_with("Carry on with the work"));
    let replies = transcript
        .messages
        .iter()
        .filter(|message| matches!(message, TranscriptMessage::Assistant(_)));
    assert_eq!(replies.count(), 2, "the last turns stay as they are");
}

#[test]
fn digest_lists_comments_failures_and_returns() {
    let mut play = Play::implement(
        build_job_request(Job::Implement),
        [long_words(
            2_500,
            &[("run_command", json!({ "command": "make test" }))],
        )],
    );
    let mut command = play.workspace.tools[0].clone();
    command.name = "run_command".to_owned();
    play.workspace.tools.push(command);
    play.failing = vec!["make test"];
    play.limits.context = Some(LIMIT);
    drive_on(&mut play);
    play.append(super::news::build_comment_news(900, "Mind the discounts."));
    play.replies.extend((1..5).map(|at| {
        long_words(
            2_500,
            &[build_read_call(at), ("edit_file", json!({ "path": "a" }))],
        )
    }));
    drive_on(&mut play);
    assert_eq!(list_shortenings(&play), ["summary_requested", "summarized"]);
    let transcript = play.transcript();
    let card = list_user_texts(&transcript)[1];
    for part in [
        "Mind the discounts.",
        "exit code 1: make test",
        "run_command did it",
    ] {
        assert!(card.contains(part), "{part}: {card}");
    }
}

#[test]
fn summary_request_repeats_sent_conversation() {
    let mut play = Play::implement(
        build_job_request(Job::Implement),
        (0..4).map(|at| {
            long_words(
                2_700,
                &[build_read_call(at), ("edit_file", json!({ "path": "a" }))],
            )
        }),
    );
    play.limits.context = Some(LIMIT);
    let mut sent = Vec::new();
    let asked = loop {
        match decide_action(&play.state) {
            RunAction::SumUp { id } => {
                break prompts::render_conversation(&summary_conversation(&play.state, &id).unwrap())
                    .unwrap()
                    .0;
            }
            action => {
                if matches!(action, RunAction::AskModel { .. }) && play.state.conversation().is_at_work() {
                    sent.push(play.transcript());
                }
                play.perform(action);
            }
        }
    };
    let last = sent.last().unwrap();
    let (words, before) = asked.messages.split_last().unwrap();
    assert!(matches!(words, TranscriptMessage::User(text) if text.contains("## Findings")));
    assert_eq!(
        before,
        &last.messages[..before.len()],
        "the provider has it in its cache"
    );
    assert_eq!((&asked.system, &asked.tools), (&last.system, &last.tools));
    assert_paired(&asked);
}

#[test]
fn second_summary_without_change_ends_stuck() {
    let mut turns = vec![build_tool_reply(&build_edit_calls())];
    turns.extend((0..12).map(|at| long_words(2_500, &[build_read_call(at)])));
    let play = play_talk(turns);
    assert_eq!(list_shortenings(&play), ["summary_requested", "summarized"]);
    let Some(StopReason::Stuck(repetition)) = play.state.outputs().cut_short() else {
        panic!("{:?}", play.state.outputs().cut_short())
    };
    assert_eq!(repetition.kind, RepetitionKind::Summaries);
}

#[test]
fn task_near_limit_gets_no_summary() {
    let counted = |at: u64| {
        let usage = TokenUsage {
            input_tokens: 8_000 + at * 1_000,
            ..TokenUsage::default()
        };
        let words = long_words(1_000, &[build_read_call(usize::try_from(at).unwrap())]);
        ModelReply { usage, ..words }
    };
    let play = play_talk((0..8).map(counted));
    assert_eq!(list_shortenings(&play), Vec::<&str>::new());
    assert!(matches!(decide_action(&play.state), RunAction::AskModel { .. }));
}

#[test]
fn run_with_changes_continues_after_summaries() {
    let turns = (0..12).map(|at| {
        long_words(
            2_500,
            &[
                build_read_call(at),
                ("edit_file", json!({ "path": format!("f{at}") })),
            ],
        )
    });
    let mut play = play_talk(turns);
    assert!(
        list_shortenings(&play)
            .iter()
            .filter(|name| **name == "summarized")
            .count()
            >= 2,
        "{:?}",
        list_shortenings(&play)
    );
    let transcript = play.transcript();
    assert_paired(&transcript);
    assert!(
        list_user_texts(&transcript)[1].contains("f0"),
        "the card has what was done before the first summary"
    );
    play.replies.push_back(build_tool_reply(&[build_finish_call()]));
    play.drive();
    assert!(play.state.outputs().exit().is_some() && play.state.outputs().cut_short().is_none());
}

#[test]
fn useless_summary_costs_only_tokens() {
    let empty = build_end_reply(" ");
    let long = build_end_reply(&"x".repeat(20_000));
    let calling = build_tool_reply(&[build_read_call(1)]);
    let cut = build_reply(ReplyStop::MaxTokens, "## Findings", &[]);
    for useless in [empty, long, calling, cut] {
        let turns = (0..5).map(|at| {
            long_words(
                2_500,
                &[build_read_call(at), ("edit_file", json!({ "path": "a" }))],
            )
        });
        let play = talk_with(
            turns,
            [ModelReply {
                usage: TokenUsage {
                    input_tokens: 7,
                    ..TokenUsage::default()
                },
                ..useless
            }],
        );
        assert_eq!(list_shortenings(&play), ["summary_requested", "summarized"]);
        assert_eq!(play.state.budget().spending().models.tokens, 7);
        assert_eq!(
            play.transcript()
                .messages
                .iter()
                .filter(|one| matches!(one, TranscriptMessage::Assistant(_)))
                .count(),
            5
        );
        assert!(matches!(decide_action(&play.state), RunAction::AskModel { .. }));
    }
}

#[test]
fn third_length_refusal_ends_with_draft() {
    let mut turns = vec![build_tool_reply(&build_edit_calls())];
    turns.extend((0..3).map(|at| build_tool_reply(&[build_read_call(at)])));
    let mut play = play_talk(turns);
    play.limits.context = None;
    let before = play.state.conversation().turn_count();
    overflow_context(&mut play);
    assert_eq!(list_shortenings(&play), ["context_cleared"]);
    assert_eq!(
        play.state.conversation().turn_count(),
        before,
        "the failed turn leaves no trace"
    );
    assert!(matches!(decide_action(&play.state), RunAction::AskModel { .. }));
    overflow_context(&mut play);
    assert_eq!(
        list_shortenings(&play),
        ["context_cleared", "summary_requested", "summarized"]
    );
    assert_paired(&play.transcript());
    overflow_context(&mut play);
    assert_eq!(
        play.state.outputs().cut_short(),
        Some(&StopReason::ContextTooLong)
    );
}

#[test]
fn reply_after_shortening_resets_refusal_count() {
    let mut play = play_talk((0..3).map(|at| build_tool_reply(&[build_read_call(at)])));
    for round in 0..4 {
        overflow_context(&mut play);
        assert!(
            matches!(decide_action(&play.state), RunAction::AskModel { .. }),
            "{round}"
        );
        play.replies.extend([build_tool_reply(&[
            build_read_call(10 + round),
            ("edit_file", json!({ "path": "a" })),
        ])]);
        drive_on(&mut play);
    }
}

#[test]
fn too_long_task_ends_run() {
    let mut play = play_talk([]);
    overflow_context(&mut play);
    assert_eq!(play.reason(), &StopReason::ContextTooLong);
}

#[test]
fn former_release_failure_still_ends_run() {
    let mut play = play_talk([]);
    let RunAction::AskModel { id } = decide_action(&play.state) else {
        panic!()
    };
    let record = json!({"type": "model_failed", "id": id, "detail": "refused"});
    play.append(serde_json::from_value(record).unwrap());
    drive_on(&mut play);
    assert!(matches!(play.reason(), StopReason::ModelFailed { .. }));
}

#[test]
fn conversation_limit_follows_role_unless_overridden() {
    let mut limits = domain::RunLimits::default();
    limits.context_by_role.insert(ModelRole::Default, 9);
    assert_eq!(limits.context_of(ModelRole::Default), Some(9));
    assert_eq!(limits.context_of(ModelRole::Fast), None);
    limits.context = Some(5);
    assert_eq!(limits.context_of(ModelRole::Fast), Some(5));
}

#[test]
fn news_of_refused_call_reach_next_call() {
    let mut play = play_talk((0..2).map(|at| build_tool_reply(&[build_read_call(at)])));
    play.append(super::news::build_comment_news(900, "Mind the discounts."));
    overflow_context(&mut play);
    let transcript = play.transcript();
    let shown = list_user_texts(&transcript)
        .iter()
        .filter(|text| text.contains("Mind the discounts."))
        .count();
    assert_eq!(shown, 1);
}

fn any_turn() -> impl Strategy<Value = (u64, usize, bool, bool)> {
    (
        0..4_000_u64,
        0..12_000_usize,
        any::<bool>(),
        prop::bool::weighted(0.15),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// For any reads, replies and refusals: each request is complete, its prefix is stable until content is
    /// omitted, and another planner sends the same.
    #[test]
    fn shortened_run_prefixes_show_same_conversation(turns in prop::collection::vec(any_turn(), 1..25)) {
        let mut play = Play::implement(build_job_request(Job::Implement), []);
        play.limits.context = Some(LIMIT);
        let mut sent: Option<ModelTranscript> = None;
        let mut turns = turns.into_iter().enumerate();
        let mut chars = 0;
        for _ in 0..2000 {
            match decide_action(&play.state) {
                RunAction::AskModel { id } if play.state.conversation().dialog().unwrap().phase == RunPhase::Work => {
                    let folded = PlannerRunState::fold(&play.state.run, &play.entries).unwrap().unwrap();
                    let again = prompts::render_conversation(&crate::run::next_conversation(&folded).unwrap()).unwrap().0;
                    let now = play.transcript();
                    prop_assert_eq!(&again.messages, &now.messages);
                    assert_paired(&now);
                    let steps = list_shortenings(&play).len();
                    if let Some(before) = &sent {
                        let whole = steps > play.summaries_seen || now.messages.starts_with(&before.messages);
                        prop_assert!(whole, "the provider's cache is lost");
                    }
                    play.summaries_seen = steps;
                    sent = Some(now);
                    let Some((at, (tokens, size, changes, refused))) = turns.next() else { break };
                    chars = size;
                    if refused {
                        play.append(Fact::ModelFailed {
                            id,
                            detail: "too long".to_owned(),
                            transient: false,
                            kind: Some(ModelFault::ContextTooLong), limit: None });
                        continue;
                    }
                    let mut calls = vec![build_read_call(at)];
                    if changes {
                        calls.push(("edit_file", json!({ "path": format!("f{at}") })));
                    }
                    let reply = long_words(tokens, &calls);
                    play.append(Fact::ModelReplied { id, reply, prompt: None });
                }
                RunAction::CallTool { id, call, .. } if call.name == "read_file" => {
                    let result = ToolResult::ok("y".repeat(chars));
                    play.append(Fact::ToolFinished { id, result });
                }
                RunAction::Wait | RunAction::Rest => break,
                action => play.perform(action),
            }
        }
    }
}

#[test]
fn refused_length_limits_rest_of_run() {
    let mut play = play_talk((0..4).map(|at| build_tool_reply(&[build_read_call(at)])));
    play.limits.context = None;
    overflow_context(&mut play);
    let cleared = list_shortenings(&play).len();
    // The provider accepts the shortened conversation; from now on it is shortened before a refusal.
    let counted = |at: usize, tokens: u64| {
        let mut reply = build_tool_reply(&[build_read_call(at), ("edit_file", json!({ "path": "a" }))]);
        reply.usage.input_tokens = tokens;
        reply
    };
    play.replies.extend((10..16).map(|at| counted(at, 1_000_000)));
    drive_on(&mut play);
    assert!(
        list_shortenings(&play).len() > cleared,
        "{:?}",
        list_shortenings(&play)
    );
}

#[test]
fn oversized_rate_limit_request_is_shortened_once() {
    let fail = |play: &mut Play| {
        let RunAction::AskModel { id } = decide_action(&play.state) else {
            panic!("the model is not asked")
        };
        play.append(Fact::ModelFailed {
            id,
            detail: "one request needs 40000 tokens, and the limit is 30000".to_owned(),
            transient: false,
            kind: Some(ModelFault::NotOffered),
            limit: Some(30_000),
        });
        drive_on(play);
    };
    let mut play = play_talk((0..3).map(|at| build_tool_reply(&[build_read_call(at)])));
    play.limits.context = None;
    fail(&mut play);
    assert_eq!(list_shortenings(&play), ["context_cleared"]);
    assert!(matches!(decide_action(&play.state), RunAction::AskModel { .. }));
    fail(&mut play);
    let reason = match play.state.outputs().cut_short() {
        Some(reason) => reason,
        None => play.reason(),
    };
    let StopReason::ModelFailed { detail } = reason else {
        panic!("{reason:?}");
    };
    assert!(detail.contains("limit is 30000"), "{detail}");
}
