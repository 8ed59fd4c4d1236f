//! The tools that the planner itself answers, and who answers a call.

use domain::{ReplyStop, ToolCall, ToolResult, ToolSpec, WorkspaceInfo};
use serde_json::{Value, json};

const PUSH_BRANCH: &str = "push_branch";
const CREATE_PULL_REQUEST: &str = "create_pull_request";
const TITLE_CHARS: std::ops::RangeInclusive<usize> = 5..=256;
const BODY_CHARS: std::ops::RangeInclusive<usize> = 10..=60_000;

/// Who answers a tool call.
#[derive(Debug, PartialEq)]
pub(super) enum Route {
    /// The executor.
    Executor,
    /// The planner, with this.
    Answer(ToolResult),
    /// The reporter pushes.
    Push,
    /// The reporter opens the pull request.
    OpenPullRequest { title: String, body: String },
}

/// Every tool that the model is offered, the executor's first.
pub(crate) fn offered(info: &WorkspaceInfo) -> Vec<ToolSpec> {
    info.tools
        .iter()
        .cloned()
        .chain([push_branch(), create_pull_request()])
        .collect()
}

/// Who answers a tool call of a reply that stopped in this way.
pub(super) fn route(call: &ToolCall, info: &WorkspaceInfo, stop: ReplyStop) -> Route {
    if stop == ReplyStop::MaxTokens {
        return refuse(
            "Not run: the reply was cut at its token limit. Work in smaller steps and call the tool again.",
        );
    }
    if !call.input.is_object() {
        return refuse("Not run: the arguments are not a JSON object. Call the tool again with valid JSON.");
    }
    match call.name.as_str() {
        PUSH_BRANCH => Route::Push,
        CREATE_PULL_REQUEST => pull_request(&call.input),
        name if info.tools.iter().any(|tool| tool.name == name) => Route::Executor,
        name => {
            let names: Vec<String> = offered(info).into_iter().map(|tool| tool.name).collect();
            let name: String = name.chars().take(80).collect();
            refuse(&format!(
                "There is no tool {name:?}. Available tools: {}.",
                names.join(", ")
            ))
        }
    }
}

fn pull_request(input: &Value) -> Route {
    let text = |field: &str| {
        input
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let (title, body) = (text("title"), text("body"));
    if !TITLE_CHARS.contains(&title.chars().count()) || title.contains('\n') {
        return refuse("title must be one line of 5 to 256 characters.");
    }
    if !BODY_CHARS.contains(&body.chars().count()) {
        return refuse(
            "body must have 10 to 60000 characters: say what was changed, why, and how it was tested.",
        );
    }
    Route::OpenPullRequest { title, body }
}

fn refuse(words: &str) -> Route {
    Route::Answer(ToolResult::error(words))
}

fn push_branch() -> ToolSpec {
    ToolSpec {
        name: PUSH_BRANCH.to_owned(),
        description:
            "Pushes the commits of your branch to the remote repository. Commit everything first. Call it \
                      again after further commits."
                .to_owned(),
        input_schema: json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        read_only: false,
    }
}

fn create_pull_request() -> ToolSpec {
    ToolSpec {
        name: CREATE_PULL_REQUEST.to_owned(),
        description:
            "Opens the draft pull request for the pushed branch and returns its URL. Call push_branch first."
                .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "title": { "type": "string", "description": "One line of 5 to 256 characters." },
                "body": {
                    "type": "string",
                    "description": "Markdown: what was changed, why, and how it was tested."
                }
            },
            "required": ["title", "body"],
            "additionalProperties": false
        }),
        read_only: false,
    }
}
