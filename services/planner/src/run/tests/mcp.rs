use domain::{Fact, Job, McpCommand, McpProblem, McpServerTools, ToolStatus};
use serde_json::json;

use super::play::{
    Play, build_finish_call, build_job_request, build_mcp_server, build_review_reply, build_tool_reply,
    build_work_replies, build_workspace,
};
use crate::run::{RunAction, decide_action};

fn start_play(replies: impl IntoIterator<Item = domain::ModelReply>) -> Play {
    let mut asked = build_job_request(Job::Implement);
    asked.rules.agent.mcp = vec!["docs".to_owned()];
    Play::implement(asked, replies)
}

fn play_until_mcp_call(play: &mut Play) {
    play.until(|action| matches!(action, RunAction::CallMcpTool { .. }));
}

fn take_over(play: &mut Play) {
    let fence = play.state.journal.fence;
    play.append(Fact::TakenOver { fence });
}

#[test]
fn tools_are_offered_after_those_of_executor() {
    let mut play = start_play([build_tool_reply(&[build_finish_call()])]);
    play.until_model_call();
    let transcript = play.transcript();
    let names: Vec<&str> = transcript.tools.iter().map(|tool| tool.name.as_str()).collect();
    let place = |name: &str| names.iter().position(|known| *known == name).unwrap();
    assert!(place("diff") < place("docs__search") && place("docs__create") < place("finish"));
    assert!(transcript.system.join("\n").contains("- `docs` is available."));
}

#[test]
fn run_without_rule_lists_no_tools() {
    let mut play = Play::with(build_work_replies());
    play.until_model_call();
    assert!(!play.state.mcp().is_listed());
    assert!(!play.transcript().system.join("\n").contains("MCP"));
}

#[test]
fn unavailable_server_is_noted_for_model() {
    let mut play = start_play(build_work_replies());
    play.until(|action| *action == RunAction::ListMcpTools);
    play.append(Fact::McpToolsListed {
        servers: vec![McpServerTools {
            problem: Some(McpProblem::Unreachable),
            tools: Vec::new(),
            ..build_mcp_server("docs")
        }],
    });
    play.until_model_call();
    let system = play.transcript().system.join("\n");
    assert!(
        system.contains("`docs` is not available in this run: it cannot be reached"),
        "{system}"
    );
}

#[test]
fn interrupted_write_is_not_repeated() {
    for (tool, is_repeated) in [("docs__search", true), ("docs__create", false)] {
        let mut play = start_play([
            build_tool_reply(&[(tool, json!({}))]),
            build_tool_reply(&[build_finish_call()]),
        ]);
        play_until_mcp_call(&mut play);
        take_over(&mut play);
        let next = decide_action(&play.state);
        assert_eq!(
            matches!(next, RunAction::CallMcpTool { .. }),
            is_repeated,
            "{tool}: {next:?}"
        );
        play.perform(next);
        let status = play.last_result().status;
        assert_eq!(status == ToolStatus::Interrupted, !is_repeated, "{tool}");
    }
}

#[test]
fn lost_workspace_repeats_no_server_call() {
    let mut play = start_play([
        build_tool_reply(&[("docs__create", json!({})), ("read_file", json!({}))]),
        build_tool_reply(&[build_finish_call()]),
    ]);
    play.until(|action| matches!(action, RunAction::CallTool { call, .. } if call.name == "read_file"));
    play.append(Fact::WorkspaceRestored {
        workspace: build_workspace(),
        snapshot: None,
        repository: None,
    });
    play.until_model_call();
    let is_create =
        |fact: &Fact| matches!(fact, Fact::ToolRequested { call, .. } if call.name == "docs__create");
    let requests = play.entries.iter().filter(|entry| is_create(&entry.fact)).count();
    assert_eq!(requests, 1);
}

#[test]
fn reviewer_calls_reading_tools_alone() {
    let mut asked = build_job_request(Job::Implement);
    asked.rules.agent.mcp = vec!["docs".to_owned()];
    let reviews = [
        build_tool_reply(&[("docs__create", json!({})), ("docs__search", json!({}))]),
        build_review_reply(&[]),
    ];
    let mut play = Play::implement_reviewed(asked, build_work_replies(), reviews);
    play_until_mcp_call(&mut play);
    let created = play.result_of("docs__create");
    assert_eq!(created.status, ToolStatus::Error);
    assert!(
        created.content.contains("declare to change nothing"),
        "{created:?}"
    );
}

fn start_command_play(replies: impl IntoIterator<Item = domain::ModelReply>) -> Play {
    let mut asked = build_job_request(Job::Implement);
    let command: McpCommand = serde_json::from_value(json!({"command": ["lint"]})).unwrap();
    asked.rules.agent.mcp = vec!["lint".to_owned()];
    asked.rules.agent.mcp_commands = [("lint".to_owned(), command)].into();
    Play::implement(asked, replies)
}

fn is_call_of(action: &RunAction, name: &str) -> bool {
    matches!(action, RunAction::CallTool { call, .. } if call.name == name)
}

#[test]
fn command_server_runs_in_workspace() {
    let mut play = start_command_play([
        build_tool_reply(&[("lint__search", json!({}))]),
        build_tool_reply(&[build_finish_call()]),
    ]);
    play.until(|action| is_call_of(action, "lint__search"));
    let is_bound = |fact: &Fact| matches!(fact, Fact::ToolRequested { call, server: None, .. } if call.name == "lint__search");
    assert!(play.entries.iter().any(|entry| is_bound(&entry.fact)));
    let place = play.state.mcp().find_command_tool("lint__search").unwrap();
    assert_eq!((place.server, place.tool.tool.as_str()), ("lint", "search"));
    assert_eq!(place.command.command, ["lint"]);
    assert!(play.state.mcp().find_command_tool("run_command").is_none());
}

#[test]
fn interrupted_command_call_asks_executor_again() {
    let mut play = start_command_play([
        build_tool_reply(&[("lint__create", json!({}))]),
        build_tool_reply(&[build_finish_call()]),
    ]);
    play.until(|action| is_call_of(action, "lint__create"));
    let RunAction::CallTool { id: first, .. } = decide_action(&play.state) else {
        panic!("the call is open");
    };
    take_over(&mut play);
    // The executor has the result of this id, so the call has no second effect.
    let RunAction::CallTool { id: second, .. } = decide_action(&play.state) else {
        panic!("the call is repeated");
    };
    assert_eq!(first, second);
}

#[test]
fn lost_workspace_repeats_command_call() {
    let mut play = start_command_play([
        build_tool_reply(&[("lint__create", json!({})), ("read_file", json!({}))]),
        build_tool_reply(&[build_finish_call()]),
    ]);
    play.until(|action| is_call_of(action, "read_file"));
    play.append(Fact::WorkspaceRestored {
        workspace: build_workspace(),
        snapshot: None,
        repository: None,
    });
    play.until_model_call();
    let is_create =
        |fact: &Fact| matches!(fact, Fact::ToolRequested { call, .. } if call.name == "lint__create");
    let requests = play.entries.iter().filter(|entry| is_create(&entry.fact)).count();
    assert_eq!(requests, 2);
}
