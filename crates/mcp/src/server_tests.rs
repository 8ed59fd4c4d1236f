//! Client against the strict stand-in of a server.

use std::collections::BTreeMap;

use domain::{McpCommand, McpProblem};
use serde_json::{Map, json};
use testkit::{FakeMcpServer, FakeMcpTool, McpReply, ServiceFault, mcp::MCP_TOKEN};

use crate::{CommandListing, McpError, McpServers, Settings};

async fn start_server() -> FakeMcpServer {
    FakeMcpServer::start(vec![
        FakeMcpTool::reading("search", McpReply::Text("Page A\u{202e}".to_owned())),
        FakeMcpTool::reading("fail", McpReply::Failure("no such page".to_owned())),
        FakeMcpTool::reading("refuse", McpReply::Refusal("query is missing".to_owned())),
        FakeMcpTool::reading("large", McpReply::Oversized(5 << 20)),
        FakeMcpTool::reading("garbled", McpReply::Garbled),
        FakeMcpTool::reading("silent", McpReply::Silent),
        FakeMcpTool::writing("create", McpReply::Text("created".to_owned())),
    ])
    .await
    .unwrap()
}

fn connect_to(url: &str, token: &str, timeout_ms: u64) -> McpServers {
    let settings = json!({"servers": {"docs": {"url": url, "auth_token": token, "timeout_ms": timeout_ms}}});
    let settings: Settings = serde_json::from_value(settings).unwrap();
    McpServers::new(&settings).unwrap()
}

#[tokio::test]
async fn pages_of_tools_are_joined() {
    let server = start_server().await;
    let servers = connect_to(&server.url(), MCP_TOKEN, 20_000);
    let listed = servers.list_tools(&["docs".to_owned()], &BTreeMap::new()).await;
    let names: Vec<&str> = listed[0].tools.iter().map(|tool| tool.tool.as_str()).collect();
    assert_eq!(names, ["search", "fail", "refuse", "large", "garbled", "silent"]);
    assert_eq!((listed[0].omitted, listed[0].problem), (1, None));
    let (program, inspected) = servers.inspect("docs").await.unwrap();
    assert_eq!((program.as_str(), inspected), ("stand-in 1.2", listed[0].clone()));
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn endless_list_offers_each_tool_once() {
    let server = start_server().await;
    let servers = connect_to(&server.url(), MCP_TOKEN, 20_000);
    // An empty cursor, and one of an earlier page.
    for cursor in ["", "2"] {
        server.end_lists_with(cursor);
        let listed = servers.list_tools(&["docs".to_owned()], &BTreeMap::new()).await;
        let names: Vec<&str> = listed[0].tools.iter().map(|tool| tool.tool.as_str()).collect();
        assert_eq!(
            names,
            ["search", "fail", "refuse", "large", "garbled", "silent"],
            "{cursor:?}"
        );
        assert_eq!((listed[0].omitted, listed[0].problem), (1, None), "{cursor:?}");
    }
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn answers_arrive_as_json_and_as_stream() {
    let server = start_server().await;
    let servers = connect_to(&server.url(), MCP_TOKEN, 20_000);
    for is_stream in [false, true] {
        if is_stream {
            server.answer_with_streams();
        }
        let session = servers.connect("docs").await.unwrap();
        let answer = session.call("search", Map::new()).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.is_error), ("Page A<U+202E>", false));
        let failed = session.call("fail", Map::new()).await.unwrap();
        assert_eq!((failed.text.as_str(), failed.is_error), ("no such page", true));
        let refused = session.call("refuse", Map::new()).await.unwrap_err();
        let text = "query is missing".to_owned();
        assert_eq!(refused, McpError::Refused { code: -32602, text });
    }
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn older_version_of_protocol_is_accepted() {
    let server = start_server().await;
    server.speak_version("2025-03-26");
    let servers = connect_to(&server.url(), MCP_TOKEN, 20_000);
    assert_eq!(
        servers.list_tools(&["docs".to_owned()], &BTreeMap::new()).await[0]
            .tools
            .len(),
        6
    );
    assert_eq!(server.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn unusable_answers_are_failures() {
    let server = start_server().await;
    let servers = connect_to(&server.url(), MCP_TOKEN, 20_000);
    for tool in ["large", "garbled"] {
        let session = servers.connect("docs").await.unwrap();
        let failed = session.call(tool, Map::new()).await.unwrap_err();
        assert!(!failed.is_before_effect(), "{tool}: {failed}");
    }
}

#[tokio::test]
async fn misaddressed_error_answers_its_request() {
    for id in [json!(null), json!("server-error")] {
        let reply = McpReply::Misaddressed(id);
        let server = FakeMcpServer::start(vec![FakeMcpTool::writing("create", reply)])
            .await
            .unwrap();
        let servers = connect_to(&server.url(), MCP_TOKEN, 20_000);
        let session = servers.connect("docs").await.unwrap();
        let refused = session.call("create", Map::new()).await.unwrap_err();
        let text = "no such session".to_owned();
        assert_eq!(refused, McpError::Refused { code: -32000, text });
    }
}

#[tokio::test]
async fn silent_call_ends_at_limit() {
    let server = start_server().await;
    // Long enough for the handshake on a loaded machine.
    let servers = connect_to(&server.url(), MCP_TOKEN, 3_000);
    let session = servers.connect("docs").await.unwrap();
    let late = session.call("silent", Map::new()).await.unwrap_err();
    assert_eq!(late, McpError::Late(3_000));
}

#[tokio::test]
async fn session_of_restarted_server_is_renewed() {
    let server = start_server().await;
    let servers = connect_to(&server.url(), MCP_TOKEN, 20_000);
    let session = servers.connect("docs").await.unwrap();
    server.forget_sessions();
    let answer = session.call("create", Map::new()).await.unwrap();
    assert_eq!(answer.text, "created");
    assert_eq!((server.calls().len(), server.opened_sessions()), (1, 2));
}

#[tokio::test]
async fn unavailable_servers_are_named_with_reason() {
    let server = start_server().await;
    let url = server.url();
    let problem = async |servers: McpServers, name: &str| {
        servers.list_tools(&[name.to_owned()], &BTreeMap::new()).await[0].problem
    };
    let wrong = connect_to(&url, "another-token", 20_000);
    assert_eq!(problem(wrong, "docs").await, Some(McpProblem::Unauthorized));
    let right = connect_to(&url, MCP_TOKEN, 20_000);
    assert_eq!(problem(right.clone(), "wiki").await, Some(McpProblem::Unknown));
    server.fail_next(ServiceFault::new("/mcp", 1, 503));
    assert_eq!(
        problem(right.clone(), "docs").await,
        None,
        "one failure is retried"
    );
    server.fail_next(ServiceFault::new("/mcp", 1_000, 503));
    assert_eq!(
        problem(right.clone(), "docs").await,
        Some(McpProblem::Unreachable)
    );
    server.stop().await;
    assert_eq!(problem(right, "docs").await, Some(McpProblem::Unreachable));
}

fn build_listing(tools: Result<Vec<String>, McpProblem>) -> CommandListing {
    CommandListing {
        command: McpCommand {
            command: vec!["lint".to_owned()],
            directory: String::new(),
            environment: BTreeMap::new(),
            tools: None,
            timeout_ms: 1_000,
        },
        tools,
        omitted: 2,
    }
}

#[tokio::test]
async fn command_tools_join_those_of_remote() {
    let server = start_server().await;
    let servers = connect_to(&server.url(), MCP_TOKEN, 20_000);
    let tool = |name: &str, is_read: bool| {
        json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": is_read}})
            .to_string()
    };
    let commands = BTreeMap::from([
        (
            "lint".to_owned(),
            build_listing(Ok(vec![tool("check", true), tool("fix", false)])),
        ),
        ("gone".to_owned(), build_listing(Err(McpProblem::CommandFailed))),
        (
            "odd".to_owned(),
            build_listing(Ok(vec!["{\"name\": 5}".to_owned()])),
        ),
    ]);
    let names = ["lint", "docs", "gone", "odd"].map(str::to_owned);
    let listed = servers.list_tools(&names, &commands).await;
    let lint = &listed[0];
    assert_eq!((lint.tools.len(), lint.omitted, lint.problem), (1, 3, None));
    assert_eq!(lint.tools[0].spec.name, "lint__check");
    assert!(
        !lint.tools[0].spec.read_only,
        "a command may change the workspace"
    );
    assert_eq!(lint.command, Some(commands["lint"].command.clone()));
    assert!(listed[1].command.is_none() && listed[1].tools.len() == 6);
    let problems = [listed[2].problem, listed[3].problem];
    assert_eq!(
        problems,
        [Some(McpProblem::CommandFailed), Some(McpProblem::Unusable)]
    );
}

#[test]
fn command_of_settings_has_no_connection() {
    let settings = json!({"servers": {"lint": {"command": ["lint", "--mcp"], "tools": ["check"]}}});
    let settings: Settings = serde_json::from_value(settings).unwrap();
    let servers = McpServers::new(&settings).unwrap();
    let command = servers.command("lint").unwrap();
    assert_eq!(
        (command.command.len(), command.tools.as_deref()),
        (2, Some(&["check".to_owned()][..]))
    );
    assert!(servers.contains("lint") && servers.command("docs").is_none());
}
