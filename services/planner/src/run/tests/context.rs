//! A long conversation makes room.

use domain::{Fact, Job, ToolResult};
use serde_json::json;

use super::play::{Play, request, tools};
use crate::run::{Action, decide};
use crate::transcript::{Message, Transcript};

const LIMIT: u64 = 10_000;

/// A run whose reads bring so many characters each.
fn read(chars: &[usize]) -> Play {
    let read = |at| tools(&[("read_file", json!({"path": format!("file{at}")}))]);
    let mut play = Play::implement(request(Job::Implement), (0..chars.len()).map(read));
    play.limits.context = Some(LIMIT);
    let mut chars = chars.iter();
    for _ in 0..1000 {
        match decide(&play.state) {
            Action::CallTool { id, .. } => {
                let Some(chars) = chars.next() else { break };
                let result = ToolResult::ok(format!("The first line\n{}", "x".repeat(*chars)));
                play.append(Fact::ToolFinished { id, result });
            }
            Action::AskModel { .. } if play.replies.is_empty() => return play,
            action => play.perform(action),
        }
    }
    play
}

fn results(transcript: &Transcript) -> Vec<&str> {
    let results = transcript.messages.iter().filter_map(|message| match message {
        Message::ToolResults(results) => Some(results.iter().map(|(_, result)| result.content.as_str())),
        _ => None,
    });
    results.flatten().collect()
}

fn clearings(play: &Play) -> Vec<(u32, u64)> {
    let cleared = play.entries.iter().filter_map(|entry| match entry.fact {
        Fact::ContextCleared { turns, tokens, .. } => Some((turns, tokens)),
        _ => None,
    });
    cleared.collect()
}

#[test]
fn a_short_conversation_is_shown_whole() {
    let play = read(&[8_000, 8_000, 8_000]);
    assert_eq!(clearings(&play), []);
    assert!(
        results(&play.transcript())
            .iter()
            .all(|result| result.len() > 8_000)
    );
}

#[test]
fn old_results_are_shown_in_one_line_and_the_newest_stay() {
    let play = read(&[8_000, 8_000, 8_000, 100, 8_000]);
    assert_eq!(clearings(&play), [(3, 7_512)]);
    let transcript = play.transcript();
    let results = results(&transcript);
    let cleared =
        "The first line\n[8015 characters left out to make room; call the tool again if you need them]";
    assert_eq!(&results[..3], [cleared; 3]);
    assert!(results[3].len() > 100 && results[4].len() > 8_000);
}

#[test]
fn short_results_stay_although_they_are_old() {
    let play = read(&[100, 15_000, 15_000, 8_000]);
    assert_eq!(clearings(&play).len(), 1);
    let transcript = play.transcript();
    assert!(results(&transcript)[0].ends_with("xxx"));
}

#[test]
fn a_step_that_brings_little_is_not_taken() {
    let play = read(&[1_000, 40_000]);
    assert_eq!(
        clearings(&play),
        [],
        "the newest result alone is longer than the limit"
    );
}

#[test]
fn a_conversation_is_cleared_again_when_it_grew_again() {
    let play = read(&[15_000; 7]);
    let turns: Vec<u32> = clearings(&play).into_iter().map(|(turns, _)| turns).collect();
    assert!(turns.len() >= 2 && turns.is_sorted(), "{turns:?}");
}
