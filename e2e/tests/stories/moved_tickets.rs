//! Jira tickets that move to another project while a run works on them.

use domain::{StopReason, TicketKey};

use crate::{
    comment_with, complete_ticket, end_of, list_ticket_comments, only_pull_request, start_default_world,
    start_world_with_rules,
};

#[tokio::test(flavor = "multi_thread")]
async fn moved_ticket_keeps_run_and_comment() {
    let world = start_world_with_rules("agent:\n  approval: before_push\n").await;
    let key = world.ask().unwrap();
    comment_with(&world, &key, "approve").await;
    let moved = world.jira.move_to_project(&key, "OPS", "ada").unwrap();
    assert_ne!(moved, key);
    world.jira.comment_as(&moved, "ada", "/stop").unwrap();
    assert_eq!(
        end_of(&world, &key, 0).await,
        StopReason::Stopped { by: "ada".to_owned() }
    );
    // The end is reported in the comment that the ticket had before its move.
    comment_with(&world, &moved, "stopped").await;
    let ours = list_ticket_comments(&world, &moved).len();
    assert_eq!(
        ours,
        list_ticket_comments(&world, &key).len(),
        "both keys lead to one issue"
    );
    let named = TicketKey::jira(&moved).unwrap();
    let ticket = world.client.tickets().read(&named).await.unwrap();
    assert_eq!(ticket.ticket, format!("jira:{key}"));
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_ticket_gets_no_second_pull_request() {
    let world = start_default_world().await;
    let key = complete_ticket(&world).await;
    only_pull_request(&world);
    // The rules follow the project, as a team does that moves its tickets.
    let rules = std::fs::read_to_string(world.rules_file()).unwrap();
    let rules = rules.replace("project_key: ENG", "project_key: OPS");
    std::fs::write(world.rules_file(), rules).unwrap();
    let follows = async || {
        let read = world.client.installation().rules().await.ok()?;
        let mut repositories = read.repositories.iter();
        repositories.any(|rules| rules.project == "OPS").then_some(())
    };
    world.until("rules of the new project", follows).await.unwrap();
    let moved = world.jira.move_to_project(&key, "OPS", "ada").unwrap();
    world.jira.move_issue(&moved, "To Do", "ada").unwrap();
    world.jira.move_issue(&moved, "Ready for Agent", "ada").unwrap();
    world.jira.comment_as(&moved, "ada", "/cost").unwrap();
    comment_with(&world, &moved, "Models have taken").await;
    only_pull_request(&world);
    world.stop().await.unwrap();
}
