//! Reads of one reply that may run at the same time.

use serde_json::{Value, json};

use super::play::{Play, build_end_reply, build_tool_reply};
use crate::run::{RunAction, decide_action, list_following_reads};

/// Drives a run with these calls in its first reply. Returns each call that an executor runs, with the reads
/// that may run beside it.
fn list_calls(calls: &[(&str, Value)]) -> Vec<(String, Vec<String>)> {
    let mut play = Play::with([build_tool_reply(calls), build_end_reply("Nothing to do.")]);
    let path = |input: &Value| input["path"].as_str().unwrap_or_default().to_owned();
    let mut listed = Vec::new();
    while listed.len() < calls.len() {
        let action = decide_action(&play.state);
        if let RunAction::CallTool { call, .. } = &action {
            let following = list_following_reads(&play.state);
            let beside = following.iter().map(|(_, call)| path(&call.input)).collect();
            listed.push((path(&call.input), beside));
        }
        play.perform(action);
    }
    listed
}

fn build_read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({ "path": path }))
}

#[test]
fn reads_before_change_run_together() {
    let edit = ("edit_file", json!({ "path": "e" }));
    let calls = [
        build_read("a"),
        build_read("b"),
        build_read("c"),
        edit,
        build_read("d"),
    ];
    let wanted = [
        ("a", vec!["b", "c"]),
        ("b", vec!["c"]),
        ("c", vec![]),
        ("e", vec![]),
        ("d", vec![]),
    ];
    let wanted = wanted.map(|(path, beside)| {
        let beside: Vec<String> = beside.into_iter().map(str::to_owned).collect();
        (path.to_owned(), beside)
    });
    assert_eq!(list_calls(&calls), wanted);
}

#[test]
fn number_of_reads_together_is_limited() {
    let calls: Vec<_> = (0..12).map(|number| build_read(&format!("f{number}"))).collect();
    let listed = list_calls(&calls);
    assert_eq!(listed[0].1.len(), 7);
    assert_eq!(listed[4].1.len(), 7);
    assert_eq!(listed[11].1.len(), 0);
}
