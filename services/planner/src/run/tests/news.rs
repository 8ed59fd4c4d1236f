//! What is said while a run is under way.

use domain::{Fact, News, ReportRequest, TicketComment, Timestamp};
use serde_json::json;

use super::play::{Play, change, done, end, finish, tools};
use crate::run::{Action, decide};
use crate::transcript::Message;

pub(super) fn said(sequence: u64, text: &str) -> Fact {
    let at = Timestamp::from_unix_ms(1);
    let comment = TicketComment {
        author: "ada".to_owned(),
        at,
        text: text.to_owned(),
        may_instruct: true,
        is_new: false,
    };
    let news = News::Comment {
        comment,
        pull_request: None,
    };
    Fact::NewsArrived { sequence, at, news }
}

/// The places of the messages that tell of news, and what they say.
fn shown(play: &Play) -> Vec<(usize, String)> {
    let messages = play.transcript().messages;
    let news = messages
        .into_iter()
        .enumerate()
        .filter_map(|(place, message)| match message {
            Message::User(text) if text.contains("came in while you worked") => Some((place, text)),
            Message::User(_) | Message::Assistant(_) | Message::ToolResults(_) => None,
        });
    news.collect()
}

#[test]
fn news_stand_behind_the_turn_during_which_they_came_and_are_heard_once() {
    let read = || tools(&[("read_file", json!({"path": "a"}))]);
    let mut play = Play::with([read(), read(), end("Nothing to do.")]);
    play.until_model_call();
    play.append(said(60, "Mind the tax."));
    assert!(
        !play.state.accepts(&said(60, "Mind the tax.")),
        "a repeated trigger says nothing new"
    );
    assert_eq!(shown(&play), [], "a call under way is repeated as it was");
    assert_eq!(play.drive(), Action::Rest);
    let [(place, text)] = &shown(&play)[..] else {
        panic!("{:?}", shown(&play))
    };
    // The task, the reply, its results.
    assert_eq!(*place, 3);
    assert!(text.contains("Mind the tax."));
}

#[test]
fn a_model_that_is_done_reads_what_was_said_before_its_work_is_handed_over() {
    let mut play = Play::with([
        tools(&change()),
        tools(&[finish()]),
        tools(&change()),
        tools(&[finish()]),
    ]);
    play.until_model_call();
    play.perform(decide(&play.state));
    play.until_model_call();
    play.append(said(60, "Mind the tax."));
    assert_eq!(play.drive(), Action::Wait);
    assert_eq!((play.state.turns(), shown(&play).len()), (4, 1));
    assert!(matches!(play.last_request(), ReportRequest::PushBranch(_)));
}

#[test]
fn news_of_a_call_that_failed_are_read_by_the_one_that_takes_its_place() {
    let mut play = Play::with([end("Nothing to do.")]);
    play.until_model_call();
    play.append(said(60, "Mind the tax."));
    play.model_fails(true);
    play.drive();
    play.retry();
    play.until_model_call();
    assert_eq!(shown(&play).len(), 1);
}

#[test]
fn a_parked_run_stays_parked_when_something_is_said() {
    let mut play = Play::with(done());
    assert_eq!(play.drive(), Action::Wait);
    play.append(said(60, "Mind the tax."));
    assert!(play.is_parked_for("report"));
    assert_eq!(play.drive(), Action::Wait);
}
