//! MCP servers that are commands in the workspace: real child processes, good and hostile ones.

use std::collections::HashMap;

use executor::ConfinementMechanism;
use proto::executor::{ListServerToolsRequest, ListServerToolsResponse, ServerCommand};

use super::*;

const SERVER: &str = include_str!("../../../../crates/testkit/src/mcp_command.py");
const LIMIT_MS: u32 = 60_000;

fn build_server(mode: &str) -> ServerCommand {
    ServerCommand {
        command: ["python3", "-c", SERVER, mode].map(str::to_owned).to_vec(),
        directory: String::new(),
        environment: HashMap::from([("MODE".to_owned(), "fast".to_owned())]),
        limit_ms: LIMIT_MS,
        tool: String::new(),
    }
}

impl Session {
    async fn list_tools_of(&self, server: ServerCommand) -> Result<ListServerToolsResponse, Status> {
        let request = ListServerToolsRequest {
            workspace_id: self.id.clone(),
            fence: Some(self.fence.into()),
            server: Some(server),
        };
        let request = add_bearer_token(&self.token, request);
        Ok(self.client.clone().list_server_tools(request).await?.into_inner())
    }

    async fn start_server_call(
        &self,
        id: &str,
        tool: &str,
        (server, text): (ServerCommand, &str),
    ) -> Result<Streaming<CallToolResponse>, Status> {
        let call = CallToolRequest {
            workspace_id: self.id.clone(),
            fence: Some(self.fence.into()),
            call_id: id.to_owned(),
            name: format!("lint__{tool}"),
            input_json: json!({ "text": text }).to_string(),
            commit_time_s: 0,
            commit_author: String::new(),
            server: Some(ServerCommand {
                tool: tool.to_owned(),
                ..server
            }),
        };
        let request = add_bearer_token(&self.token, call);
        Ok(self.client.clone().call_tool(request).await?.into_inner())
    }

    async fn call_server(&self, id: &str, tool: &str, (mode, text): (&str, &str)) -> ToolResult {
        let asked = (build_server(mode), text);
        await_result(self.start_server_call(id, tool, asked).await.unwrap()).await
    }
}

fn read_text(result: &ToolResult) -> String {
    assert_eq!(result.status(), ToolStatus::Ok, "{}", result.content);
    let content: Value = serde_json::from_str(&result.content).unwrap();
    content["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_command_are_listed_from_pages() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let listed = session.list_tools_of(build_server("good")).await.unwrap();
    assert_eq!((listed.failure.as_str(), listed.omitted), ("", 0));
    let tools = listed.tools_json.iter();
    let tools: Vec<Value> = tools.map(|tool| serde_json::from_str(tool).unwrap()).collect();
    assert_eq!((tools.len(), tools[0]["name"].as_str()), (8, Some("check")));
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], json!(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_list_offers_each_tool_once() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    for mode in ["empty_cursor", "same_cursor"] {
        let listed = session.list_tools_of(build_server(mode)).await.unwrap();
        assert_eq!((listed.failure.as_str(), listed.omitted), ("", 0), "{mode}");
        assert_eq!(listed.tools_json.len(), 8, "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn call_runs_in_sandbox_of_workspace() {
    for without in [Vec::new(), vec![ConfinementMechanism::Namespaces]] {
        let world = World::start_without(1, without).await;
        let session = world.open(1).await;
        let checked = session.call_server("1", "check", ("good", "é")).await;
        assert_eq!(read_text(&checked), "checked é");
        assert!(!checked.changed);
        let place = read_text(&session.call_server("2", "place", ("good", "")).await);
        let folder = session.shell("3", "pwd").await;
        let place: Value = serde_json::from_str(&place).unwrap();
        assert!(
            folder.contains(place["folder"].as_str().unwrap()),
            "{place} {folder}"
        );
        assert_eq!(place["mode"], "fast");
        let failed = session.call_server("4", "fail", ("good", "")).await;
        assert_eq!(
            read_text(&failed),
            "it failed",
            "a failure of the tool is a result"
        );
        let refused = session.call_server("5", "refuse", ("good", "")).await;
        assert_eq!(refused.status(), ToolStatus::Error);
        assert!(
            refused.content.contains("code -32602: text is missing"),
            "{}",
            refused.content
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn internal_error_leaves_effect_unknown() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let failed = session.call_server("1", "refuse", ("good", "a")).await;
    assert_eq!(failed.status(), ToolStatus::Interrupted, "{}", failed.content);
    assert!(
        failed.content.contains("code -32603: disk is full"),
        "{}",
        failed.content
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_call_has_one_effect() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let first = session.call_server("1", "write", ("good", "once")).await;
    assert!(read_text(&first) == "written" && first.changed && !first.tree.is_empty());
    let again = session.call_server("1", "write", ("good", "once")).await;
    assert_eq!(first, again);
    let notes = session.shell("2", "cat notes.txt").await;
    assert_eq!(notes.matches("once").count(), 1, "{notes}");
}

/// Builds a server that changes a file when it starts.
fn build_writing_server() -> ServerCommand {
    let script = "echo started >> README.md; exec \"$@\"";
    let command = ["sh", "-c", script, "sh", "python3", "-c", SERVER, "good"];
    ServerCommand {
        command: command.map(str::to_owned).to_vec(),
        ..build_server("good")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_listed_server_is_in_next_tree() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let listed = session.list_tools_of(build_writing_server()).await.unwrap();
    assert_eq!(listed.failure, "");
    let input = json!({ "path": "new.txt", "content": "new\n" });
    let written = session.ok("1", "write_file", input).await;
    let command = json!({ "command": "cat README.md new.txt" });
    let read = session.ok("2", "run_command", command).await;
    assert_eq!(read.content, "exit code: 0\n# Shop\nstarted\nnew\n");
    assert!(written.changed && !read.changed);
    assert_eq!(written.tree, read.tree);
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_list_ends_its_server() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let marker = format!("mcp-list-{}-{}", std::process::id(), world.address.port());
    let silent = ServerCommand {
        command: ["python3", "-c", "import time; time.sleep(600)", &marker]
            .map(str::to_owned)
            .to_vec(),
        ..build_server("good")
    };
    {
        let listing = session.list_tools_of(silent);
        tokio::pin!(listing);
        tokio::select! {
            listed = &mut listing => panic!("a silent server was listed: {listed:?}"),
            () = wait_for_process(&marker, true) => {}
        }
    }
    wait_until_gone(&marker).await;
    assert!(session.shell("1", "echo works").await.contains("works"));
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_server_ends_with_named_failure() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    for (mode, status, words) in [
        ("endless", ToolStatus::Interrupted, "a message of more than 1 MiB"),
        ("wrong_id", ToolStatus::Interrupted, "a request that is not open"),
        ("banner", ToolStatus::Interrupted, "Welcome to the server!"),
        ("chatter", ToolStatus::Interrupted, "too many messages"),
        ("old", ToolStatus::Error, "1999-01-01"),
        ("exit", ToolStatus::Error, "no license found"),
    ] {
        let result = session.call_server(mode, "check", (mode, "")).await;
        assert_eq!(result.status(), status, "{mode}: {}", result.content);
        assert!(result.content.contains(words), "{mode}: {}", result.content);
        let listed = session.list_tools_of(build_server(mode)).await.unwrap();
        assert!(
            listed.failure.contains(words) && listed.tools_json.is_empty(),
            "{mode}: {}",
            listed.failure
        );
    }
    let missing = ServerCommand {
        command: vec!["no-such-program".to_owned()],
        ..build_server("good")
    };
    let listed = session.list_tools_of(missing).await.unwrap();
    assert!(listed.failure.contains("no-such-program"), "{}", listed.failure);
    assert!(session.shell("after", "echo works").await.contains("works"));
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_server_ends_at_its_limit() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let server = ServerCommand {
        limit_ms: 2_000,
        ..build_server("good")
    };
    let called = session.start_server_call("1", "silent", (server, "")).await;
    let result = await_result(called.unwrap()).await;
    assert_ne!(result.status(), ToolStatus::Ok);
    assert!(
        result.content.contains("did not answer within 2000 ms"),
        "{}",
        result.content
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn flooded_error_stream_stays_out_of_result() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let result = session.call_server("1", "check", ("stderr", "")).await;
    assert_eq!(read_text(&result), "quiet now");
    assert!(!result.content.contains("noise"));
}

#[tokio::test(flavor = "multi_thread")]
async fn forked_process_ends_with_call() {
    for without in [Vec::new(), vec![ConfinementMechanism::Namespaces]] {
        let world = World::start_without(1, without).await;
        let session = world.open(1).await;
        let marker = format!("mcp-fork-{}-{}", std::process::id(), world.address.port());
        let result = session.call_server("1", "fork", ("good", &marker)).await;
        assert_eq!(read_text(&result), "forked");
        wait_until_gone(&marker).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crashed_server_starts_again_at_next_call() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let crashed = session.call_server("1", "crash_once", ("good", "")).await;
    assert_eq!(
        crashed.status(),
        ToolStatus::Interrupted,
        "the call may have had its effect"
    );
    assert!(
        crashed.changed
            && crashed.content.contains("(exit code 3)")
            && crashed.content.contains("out of luck"),
        "{}",
        crashed.content
    );
    let next = session.call_server("2", "crash_once", ("good", "")).await;
    assert_eq!(read_text(&next), "alive");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_server_command_is_refused() {
    let world = World::start(1).await;
    let session = world.open(1).await;
    let good = || build_server("good");
    for wrong in [
        ServerCommand {
            command: Vec::new(),
            ..good()
        },
        ServerCommand {
            command: vec!["x".repeat(70_000)],
            ..good()
        },
        ServerCommand {
            command: vec!["a\0b".to_owned()],
            ..good()
        },
        ServerCommand {
            directory: "../outside".to_owned(),
            ..good()
        },
        ServerCommand {
            environment: HashMap::from([("A=B".to_owned(), String::new())]),
            ..good()
        },
    ] {
        let refused = session.list_tools_of(wrong.clone()).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused}");
        let refused = session.start_server_call("1", "check", (wrong, "")).await;
        assert_eq!(refused.unwrap_err().code(), Code::InvalidArgument);
    }
}
