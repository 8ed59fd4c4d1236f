//! Review of the change by a second model.

use domain::{Fact, Job, ModelReply, OutboundAction, ReturnReason, RunPhase};
use serde_json::json;

use super::play::{
    Play, build_end_reply, build_job_request, build_review_reply, build_tool_reply, build_work_replies,
};
use crate::run::RunAction;
use crate::transcript::TranscriptMessage;

fn play_reviews(rounds: u32, reviews: impl IntoIterator<Item = ModelReply>) -> Play {
    let mut request = build_job_request(Job::Implement);
    request.rules.agent.review_rounds = rounds;
    let replies = (0..5).flat_map(|_| build_work_replies());
    let mut play = Play::implement_reviewed(request, replies, reviews);
    assert_eq!(play.drive(), RunAction::Wait);
    play
}

/// Returns the number of returns by the reviewer.
fn count_reviewer_returns(play: &Play) -> usize {
    let is_it = |known: &&_| {
        matches!(
            known,
            Fact::Returned {
                why: ReturnReason::Reviewed { .. }
            }
        )
    };
    play.entries.iter().map(|entry| &entry.fact).filter(is_it).count()
}

fn read_published_objections(play: &mut Play) -> Vec<String> {
    play.pushed();
    play.drive();
    play.description().objections.clone()
}

#[test]
fn a_change_without_objections_is_delivered() {
    let mut play = play_reviews(1, [build_review_reply(&[])]);
    assert!(play.state.outputs().review().unwrap().is_complete);
    assert_eq!(read_published_objections(&mut play), [""; 0]);
}

#[test]
fn reviewer_sees_change_without_author_text() {
    let request = build_job_request(Job::Implement);
    let mut play = Play::implement_reviewed(request, build_work_replies(), []);
    play.until(|action| matches!(action, RunAction::AskModel { .. }));
    play.until(|_| true);
    let mut shown = None;
    for _ in 0..200 {
        let action = crate::run::decide_action(&play.state);
        let is_review = play
            .state
            .conversation()
            .dialog()
            .is_some_and(|dialog| dialog.phase == RunPhase::Review);
        if matches!(action, RunAction::AskModel { .. }) && is_review {
            shown = Some(play.transcript());
            break;
        }
        play.perform(action);
    }
    let shown = shown.unwrap();
    let [TranscriptMessage::User(task)] = shown.messages.as_slice() else {
        panic!("{:?}", shown.messages)
    };
    assert!(
        task.contains("+++ b/shop/cart.py") && task.contains("Nothing could be run."),
        "{task}"
    );
    assert!(!task.contains("Totals are right again."), "{task}");
}

#[test]
fn objection_returns_work_before_fresh_review() {
    let mut play = play_reviews(
        1,
        [
            build_review_reply(&[("shop/cart.py", 3, "an empty cart")]),
            build_review_reply(&[]),
        ],
    );
    assert_eq!(count_reviewer_returns(&play), 1);
    let rounds: Vec<u32> = play
        .state
        .conversation()
        .dialogs()
        .iter()
        .filter(|dialog| dialog.phase == RunPhase::Review)
        .map(|dialog| dialog.round)
        .collect();
    assert_eq!(rounds, [0, 1]);
    assert_eq!(read_published_objections(&mut play), [""; 0]);
}

#[test]
fn the_author_reads_the_objection() {
    let mut play = play_reviews(1, [build_review_reply(&[("shop/cart.py", 3, "an empty cart")])]);
    let returned = play
        .entries
        .iter()
        .position(|entry| matches!(entry.fact, Fact::Returned { .. }))
        .unwrap();
    let entries = play.entries[..=returned].to_vec();
    let state = crate::run::PlannerRunState::fold(&super::play::run_id(), &entries)
        .unwrap()
        .unwrap();
    play = Play::resumed(entries, state, Vec::new());
    play.until_model_call();
    let transcript = play.transcript();
    let Some(TranscriptMessage::User(words)) = transcript.messages.last() else {
        panic!("no words")
    };
    assert!(
        words.contains("shop/cart.py line 3") && words.contains("an empty cart"),
        "{words}"
    );
}

#[test]
fn last_round_lists_open_objections() {
    let again = |line: u32, trigger: &'static str| build_review_reply(&[("shop/cart.py", line, trigger)]);
    let mut play = play_reviews(
        2,
        [
            again(1, "no line"),
            again(2, "two lines"),
            again(3, "three lines"),
        ],
    );
    assert_eq!(count_reviewer_returns(&play), 2);
    assert_eq!(
        read_published_objections(&mut play),
        ["shop/cart.py line 3: It divides by zero. (three lines)"]
    );
}

#[test]
fn repeated_objections_end_review_rounds() {
    let again = || build_review_reply(&[("shop/cart.py", 3, "an empty cart")]);
    let mut play = play_reviews(3, [again(), again(), again()]);
    assert_eq!(count_reviewer_returns(&play), 1);
    assert_eq!(read_published_objections(&mut play).len(), 1);
}

#[test]
fn an_objection_to_another_file_is_refused() {
    let mut play = play_reviews(
        1,
        [
            build_review_reply(&[("shop/other.py", 3, "an empty cart")]),
            build_review_reply(&[]),
        ],
    );
    let refused = play.entries.iter().any(|entry| {
        matches!(&entry.fact, Fact::ToolFinished { result, .. } if result.content.contains("path of a file of the diff"))
    });
    assert!(refused);
    assert_eq!(count_reviewer_returns(&play), 0);
    assert_eq!(read_published_objections(&mut play), [""; 0]);
}

#[test]
fn endless_review_does_not_block_delivery() {
    let read = || build_tool_reply(&[("read_file", json!({"path": "a"}))]);
    let play = play_reviews(1, (0..9).map(|_| read()).chain([build_end_reply("Hm.")]));
    assert!(!play.state.outputs().review().unwrap().is_complete);
    assert!(matches!(play.last_request(), OutboundAction::PushBranch(_)));
}
