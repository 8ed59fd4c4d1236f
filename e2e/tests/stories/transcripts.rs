//! Texts for the model and for users, normalized so that every run gives the same text.

use e2e::TestWorld;
use insta::Settings;
use serde_json::Value;
use testkit::{
    github::StandInPullRequest,
    model::{ModelCall, surrounding_replies},
};

/// Number of shown lines at each end of a long text.
const ENDS: usize = 32;

/// Patterns that differ from run to run, with their replacements.
const CHANGING: [(&str, &str); 10] = [
    (r"/tmp/\.tmp[0-9A-Za-z]+", "[folder]"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "[date]"),
    (r"\b[0-9a-f]{40}\b", "[commit]"),
    (r"\b[0-9a-f]{12}\b", "[short]"),
    (r"<(/?)([a-z_]+(?:-[a-z]+)*)-[0-9a-f]{16}\b", "<$1$2-[code]"),
    (r"http://127\.0\.0\.1:\d+", "http://[server]"),
    (r"\b\d+(\.\d+)? ?(ms|s)\b", "[time]"),
    (r"\$\d+\.\d+", "$[cost]"),
    (r"\b\d{1,3}(,\d{3})+ tokens\b", "[n] tokens"),
    (r"@\d+\b", "@[n]"),
];

/// Compares with an inline snapshot after normalization.
pub(crate) fn compare_normalized_snapshot(compare: impl FnOnce()) {
    let mut settings = Settings::clone_current();
    for (pattern, name) in CHANGING {
        settings.add_filter(pattern, name);
    }
    settings.bind(compare);
}

/// Returns a model request as text: each message, long ones abridged. The first message is shown for the
/// first call alone, and the system prompt never, because the tests of prompts cover them.
pub(crate) fn abridge_model_request(call: &ModelCall) -> String {
    let messages = call.request["messages"].as_array().cloned().unwrap_or_default();
    let mut requests = messages.iter().filter(|message| message["role"] == "user");
    let last = requests.next_back().cloned().unwrap_or_default();
    render_message_content(&last["content"]).join("\n---\n")
}

fn render_message_content(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![abridge_text(text)],
        Value::Array(blocks) => blocks.iter().flat_map(render_content_block).collect(),
        _ => Vec::new(),
    }
}

fn render_content_block(block: &Value) -> Vec<String> {
    match block["type"].as_str() {
        Some("text") => vec![abridge_text(block["text"].as_str().unwrap_or_default())],
        Some("tool_result") => render_message_content(&block["content"]),
        _ => Vec::new(),
    }
}

fn abridge_text(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    match lines.len().checked_sub(2 * ENDS) {
        Some(between) if between > 0 => {
            let (first, last) = (&lines[..ENDS], &lines[lines.len() - ENDS..]);
            format!("{}\n[{between} lines]\n{}", first.join("\n"), last.join("\n"))
        }
        _ => lines.join("\n"),
    }
}

/// Returns the whole first message of the work.
pub(crate) fn first_of_work(world: &TestWorld) -> String {
    let calls = world.model.calls();
    let first = &calls.first().expect("the model worked").request["messages"][0]["content"];
    let blocks = first.as_array().into_iter().flatten();
    let texts = blocks.filter_map(|block| block["text"].as_str());
    let text: String = texts.collect();
    text + first.as_str().unwrap_or_default()
}

/// Returns the last call of the work.
pub(crate) fn last_of_work(world: &TestWorld) -> ModelCall {
    world.model.calls().pop().expect("the model worked")
}

/// Returns the last call of the review.
pub(crate) fn last_of_review(world: &TestWorld) -> ModelCall {
    world
        .model
        .calls_of(surrounding_replies::REVIEW)
        .pop()
        .expect("the change was reviewed")
}

/// Returns a pull request as users read it.
pub(crate) fn render_pull_text(pull: &StandInPullRequest) -> String {
    let state = if pull.draft { "draft" } else { "ready" };
    format!("{} ({state})\n\n{}", pull.title, pull.body.trim_end())
}
