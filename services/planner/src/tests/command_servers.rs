//! MCP servers that are commands, at the stand-in of an executor.

use domain::{McpCommand, McpProblem, ToolStatus};

use super::*;

async fn ask_with_commands(world: &World) {
    let mut request = build_job_request(Job::Implement);
    let build = |name: &str, program: &str| {
        let command: McpCommand = serde_json::from_value(json!({ "command": [program] })).unwrap();
        (name.to_owned(), command)
    };
    request.rules.agent.mcp = vec!["lint".to_owned(), "gone".to_owned()];
    request.rules.agent.mcp_commands = [build("lint", "linter"), build("gone", "absent")].into();
    let job = TriggerReason::JobRequested(Box::new(request));
    world.trigger("changelog:1", job).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn command_server_is_called_through_executor() {
    let mut script = build_fix_script();
    script.insert(0, ScriptStep::call("lint__check", json!({ "text": "a" })));
    script[1] = ScriptStep::call("read_file", json!({ "path": "a" })).expecting("check of linter did it");
    let world = World::start(script).await;
    let planner = world.planner().await;
    ask_with_commands(&world).await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!(world.executor.ran()[0], "lint__check");
    let entries = world.queue.journal().read(&row.runs[0].id).await.unwrap();
    let mut facts = entries.iter().map(|(_, entry)| &entry.fact);
    let listed = facts.find_map(|fact| match fact {
        Fact::McpToolsListed { servers } => Some(servers),
        _ => None,
    });
    let listed = listed.unwrap();
    assert_eq!(listed[0].tools[0].spec.name, "lint__check");
    assert!(listed[0].command.is_some() && !listed[0].tools[0].spec.read_only);
    assert_eq!(listed[1].problem, Some(McpProblem::CommandFailed));
    let result = facts.find_map(|fact| match fact {
        Fact::ToolFinished { result, .. } => Some(result),
        _ => None,
    });
    let result = result.unwrap();
    assert!(result.status == ToolStatus::Ok && result.changed);
    assert!(
        result.content.starts_with("<mcp-result-") && result.content.contains("server=\"lint\""),
        "{}",
        result.content
    );
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_workspace_repeats_command_call() {
    let mut script = build_fix_script();
    script[0] = ScriptStep::call("lint__check", json!({ "text": "a" }));
    script[1] = ScriptStep::call("edit_file", json!({ "path": "a" })).expecting("check of linter did it");
    let world = World::start(script).await;
    world.executor.lose_workspace_at("lint__check");
    let planner = world.planner().await;
    ask_with_commands(&world).await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!(world.executor.ran()[0], "lint__check");
    world.stop(planner).await;
}
