//! Comments that arrive while a run works.

use domain::{Fact, OutboundAction, TicketComment, TicketNews, Timestamp};
use serde_json::json;

use super::play::{
    Play, build_edit_calls, build_end_reply, build_finish_call, build_tool_reply, build_work_replies,
};
use crate::run::{RunAction, decide_action, machine::MAX_STRANGER_COMMENTS};
use crate::transcript::TranscriptMessage;

pub(super) fn build_comment_news(sequence: u64, text: &str) -> Fact {
    said_by(true, sequence, text)
}

fn said_by(may_instruct: bool, sequence: u64, text: &str) -> Fact {
    let at = Timestamp::from_unix_ms(1);
    let comment = TicketComment {
        author: "ada".to_owned(),
        at,
        text: text.to_owned(),
        may_instruct,
        is_new: false,
    };
    let news = TicketNews::Comment {
        comment,
        pull_request: None,
        attachments: Vec::new(),
    };
    Fact::NewsArrived { sequence, at, news }
}

/// Returns the messages with news, and their positions.
fn find_news_messages(play: &Play) -> Vec<(usize, String)> {
    let messages = play.transcript().messages;
    let news = messages
        .into_iter()
        .enumerate()
        .filter_map(|(place, message)| match message {
            TranscriptMessage::User(text) if text.contains("came in while you worked") => Some((place, text)),
            TranscriptMessage::User(_)
            | TranscriptMessage::Parts(_)
            | TranscriptMessage::Assistant(_)
            | TranscriptMessage::ToolResults(_) => None,
        });
    news.collect()
}

#[test]
fn news_follow_their_turn_once() {
    let read = || build_tool_reply(&[("read_file", json!({"path": "a"}))]);
    let mut play = Play::with([read(), read(), build_end_reply("Nothing to do.")]);
    play.until_model_call();
    play.append(build_comment_news(60, "Mind the tax."));
    assert!(
        !play.state.accepts(&build_comment_news(60, "Mind the tax.")),
        "a repeated trigger says nothing new"
    );
    assert_eq!(
        find_news_messages(&play),
        [],
        "a call under way is repeated as it was"
    );
    assert_eq!(play.drive(), RunAction::Rest);
    let [(place, text)] = &find_news_messages(&play)[..] else {
        panic!("{:?}", find_news_messages(&play))
    };
    // After the task, the reply and its results.
    assert_eq!(*place, 3);
    assert!(text.contains("Mind the tax."));
}

#[test]
fn unread_comment_delays_finish_by_turn() {
    let mut play = Play::with([
        build_tool_reply(&build_edit_calls()),
        build_tool_reply(&[build_finish_call()]),
        build_tool_reply(&build_edit_calls()),
        build_tool_reply(&[build_finish_call()]),
    ]);
    play.until_model_call();
    play.perform(decide_action(&play.state));
    play.until_model_call();
    play.append(build_comment_news(60, "Mind the tax."));
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(
        (
            play.state.conversation().turn_count(),
            find_news_messages(&play).len()
        ),
        (4, 1)
    );
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
}

#[test]
fn news_of_failed_call_reach_retry() {
    let mut play = Play::with([build_end_reply("Nothing to do.")]);
    play.until_model_call();
    play.append(build_comment_news(60, "Mind the tax."));
    play.model_fails(true);
    play.drive();
    play.retry();
    play.until_model_call();
    assert_eq!(find_news_messages(&play).len(), 1);
}

#[test]
fn comment_leaves_parked_run_parked() {
    let mut play = Play::with(build_work_replies());
    assert_eq!(play.drive(), RunAction::Wait);
    play.append(build_comment_news(60, "Mind the tax."));
    assert!(play.is_parked_for("report"));
    assert_eq!(play.drive(), RunAction::Wait);
}

/// Appends a fact if the run accepts it, as its planner does.
fn offer_fact(play: &mut Play, fact: Fact) {
    if play.state.accepts(&fact) {
        play.append(fact);
    }
}

#[test]
fn two_hundred_comments_of_stranger_prolong_nothing() {
    let mut play = Play::with([
        build_tool_reply(&build_edit_calls()),
        build_tool_reply(&[build_finish_call()]),
    ]);
    for turn in 0..2 {
        play.until_model_call();
        for number in 0..100 {
            let text = format!("Do this as well: {}", "x".repeat(5_000));
            offer_fact(&mut play, said_by(false, 1_000 + turn * 100 + number, &text));
        }
        play.perform(decide_action(&play.state));
    }
    assert_eq!(play.drive(), RunAction::Wait);
    assert_eq!(play.state.conversation().turn_count(), 2);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
    assert_eq!(
        play.state.conversation().news().received().len(),
        MAX_STRANGER_COMMENTS
    );
}

#[test]
fn comments_of_strangers_fill_no_conversation() {
    let read = || build_tool_reply(&[("read_file", json!({"path": "a"}))]);
    let mut play = Play::with([read(), read(), build_end_reply("Nothing to do.")]);
    play.until_model_call();
    for number in 0..200 {
        offer_fact(&mut play, said_by(false, 60 + number, &"x".repeat(5_000)));
    }
    offer_fact(&mut play, build_comment_news(900, "Mind the tax."));
    play.perform(decide_action(&play.state));
    play.until_model_call();
    let [(_, text)] = &find_news_messages(&play)[..] else {
        panic!("{:?}", find_news_messages(&play))
    };
    assert!(text.contains("Mind the tax."));
    assert!(text.len() < 30_000, "{}", text.len());
    assert!(
        text.contains("older comments by people who may not instruct are left out"),
        "{text}"
    );
    assert!(text.contains("no more of their comments are shown"), "{text}");
}

#[test]
fn journal_with_more_comments_stays_readable() {
    let mut play = Play::with([build_end_reply("Nothing to do.")]);
    play.until_model_call();
    for number in 0..100 {
        play.append(said_by(false, 60 + number, "It is slow."));
    }
    assert_eq!(play.drive(), RunAction::Rest);
}

#[test]
fn comments_of_maintainer_prolong_within_limit() {
    let mut play = Play::with([
        build_tool_reply(&build_edit_calls()),
        build_tool_reply(&[build_finish_call()]),
        build_tool_reply(&[build_finish_call()]),
    ]);
    play.until_model_call();
    play.perform(decide_action(&play.state));
    play.until_model_call();
    for number in 0..200 {
        offer_fact(
            &mut play,
            build_comment_news(60 + number, &format!("{number}: {}", "x".repeat(5_000))),
        );
    }
    play.perform(decide_action(&play.state));
    play.until_model_call();
    assert_eq!(play.state.conversation().turn_count(), 3);
    let [(_, text)] = &find_news_messages(&play)[..] else {
        panic!("{:?}", find_news_messages(&play))
    };
    assert!(text.len() < 40_000, "{}", text.len());
    assert!(
        text.contains("older comments by people who may instruct are left out"),
        "{text}"
    );
    assert!(text.contains("\n199: "), "the newest is shown");
}
