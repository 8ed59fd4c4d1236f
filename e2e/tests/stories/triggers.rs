//! Requests for work on Jira besides a status change: created tickets, and tickets that return.

use domain::StopReason;
use e2e::{Options, TestWorld};
use serde_json::json;
use testkit::{JiraOptions, JiraTransition, ScriptStep, fixture};

use crate::{
    build_polled_options, comment_with, complete_ticket, end_of, only_pull_request, start_default_world,
    start_world_with_script,
};

/// Returns a workflow whose tickets are created in the status that requests work.
fn born_ready() -> JiraOptions {
    let mut jira = JiraOptions::default();
    jira.statuses.swap(0, 1);
    jira
}

/// Waits until no run of the ticket accepts new triggers.
async fn await_ticket_rest(world: &TestWorld, key: &str) {
    let queue = world.queue().await.unwrap();
    let rows = queue.table::<domain::TicketRow>(queue::KeyValueBucket::Tickets);
    let ticket = domain::TicketKey::jira(key).unwrap();
    let settled = async || {
        let (row, _) = rows.get(&ticket.to_string()).await.ok()??;
        let last = queue.triggers().last_sequence(&ticket).await.ok()??;
        (row.pending.is_empty() && last <= row.cursor).then_some(())
    };
    world.until("the ticket rests", settled).await.unwrap();
}

async fn a_created_ticket_is_worked_on(options: Options) {
    let world = TestWorld::start(Options {
        jira: born_ready(),
        ..options
    });
    let world = world.await.unwrap();
    let key = world.file_ticket();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    assert!(only_pull_request(&world).open);
    let runs = world
        .client
        .runs()
        .recent(Some(&domain::TicketKey::jira(&key).unwrap()))
        .await;
    assert_eq!(runs.unwrap().len(), 1, "once");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ticket_created_in_status_is_worked_on() {
    Box::pin(a_created_ticket_is_worked_on(Options::default())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_find_ticket_created_in_status() {
    Box::pin(a_created_ticket_is_worked_on(build_polled_options())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn returned_ticket_is_reworked_with_new_comment() {
    let input =
        json!({"kind": "already_done", "evidence": "shop/cart.py line 27 multiplies by the quantity."});
    let world = start_world_with_script(vec![ScriptStep::call("give_up", input)]).await;
    let key = world.file_ticket();
    world.ask_for_work(&key).unwrap();
    end_of(&world, &key, 0).await;
    await_ticket_rest(&world, &key).await;
    world
        .jira
        .comment_as(&key, "ada", "The total of the cart, please.")
        .unwrap();
    world.model.set_script("", fixture::build_shop_script());
    // Comments in the same millisecond as the status change count as later ones.
    await_ticket_rest(&world, &key).await;
    world.jira.move_issue(&key, "To Do", "ada").unwrap();
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    let calls = world.model.calls().into_iter();
    let prompts: Vec<String> = calls.map(|call| call.request.to_string()).collect();
    let is_marked = |prompt: &String| {
        let (before, _) = prompt.split_once("The total of the cart, please.")?;
        let tag = &before[before.rfind("comment-")?..];
        Some(tag.contains("new=\\\"yes\\\""))
    };
    let marked: Vec<bool> = prompts.iter().filter_map(is_marked).collect();
    assert!(
        !marked.is_empty() && marked.iter().all(|marked| *marked),
        "{prompts:#?}"
    );
    assert!(only_pull_request(&world).open);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn returned_ticket_continues_on_open_pull_request() {
    let world = start_default_world().await;
    let key = complete_ticket(&world).await;
    await_ticket_rest(&world, &key).await;
    world.model.set_script_of(
        "A review of the pull request",
        "",
        fixture::build_note_script("Please add a note on rounding.", &json!([])),
    );
    world
        .jira
        .comment_as(&key, "ada", "Please add a note on rounding.")
        .unwrap();
    // Comments in the same millisecond as the status change count as later ones.
    await_ticket_rest(&world, &key).await;
    world.jira.move_issue(&key, "To Do", "ada").unwrap();
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    let pull = only_pull_request(&world);
    assert_eq!(
        world
            .github
            .subjects(fixture::REPOSITORY, pull.number)
            .unwrap()
            .len(),
        2
    );
    comment_with(&world, &key, "pull request").await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn rule_condition_starts_new_ticket_once() {
    let options = |no_webhooks: bool| Options {
        more_rules: vec![(
            "defaults.yaml",
            "jira:\n  jql: labels = agent AND created >= \"-1d\"\n".to_owned(),
        )],
        settings: vec![("INGEST__POLL_INTERVAL_S", "1".to_owned())],
        no_webhooks,
        ..Options::default()
    };
    for no_webhooks in [false, true] {
        let world = TestWorld::start(options(no_webhooks)).await.unwrap();
        let (title, text) = fixture::describe_shop_ticket();
        let other = world
            .jira
            .create_issue(fixture::PROJECT, "Another", "", "Bug", &[]);
        let key = world
            .jira
            .create_issue(fixture::PROJECT, title, text, "Bug", &["agent"]);
        assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
        assert!(only_pull_request(&world).open);
        world.jira.edit_summary(&key, "Cart total", "ada").unwrap();
        world.jira.set_labels(&key, &["agent", "urgent"]).unwrap();
        comment_with(&world, &key, "pull request").await;
        for (ticket, count) in [(&key, 1), (&other, 0)] {
            let runs = world
                .client
                .runs()
                .recent(Some(&domain::TicketKey::jira(ticket).unwrap()))
                .await;
            assert_eq!(runs.unwrap().len(), count, "{ticket}");
        }
        world.stop().await.unwrap();
    }
}

/// Plays a ticket whose last transition requires these fields. Returns its last status and the comment about
/// it.
async fn merged_where(asks_for: &[&str], rules: &str, comment: &str) -> (Option<String>, Option<String>) {
    let transition = |name: &str, to: &str, asks_for: &[&str]| JiraTransition {
        name: name.to_owned(),
        to: to.to_owned(),
        asks_for: asks_for.iter().map(|name| (*name).to_owned()).collect(),
    };
    let named = vec![
        transition("Start", "In Progress", &[]),
        transition("Close", "Done", asks_for),
    ];
    let world = TestWorld::start(Options {
        jira: JiraOptions {
            named,
            ..JiraOptions::default()
        },
        more_rules: vec![("defaults.yaml", rules.to_owned())],
        ..Options::default()
    });
    let world = world.await.unwrap();
    let key = complete_ticket(&world).await;
    world.run_ci().await.unwrap();
    let ready = async || (!only_pull_request(&world).draft).then_some(());
    world.until("a ready pull request", ready).await.unwrap();
    world
        .github
        .merge(fixture::REPOSITORY, only_pull_request(&world).number, "mia")
        .unwrap();
    comment_with(&world, &key, comment).await;
    let end = (world.jira.status(&key), world.jira.resolution(&key));
    world.stop().await.unwrap();
    end
}

#[tokio::test(flavor = "multi_thread")]
async fn last_transition_fills_resolution_and_rule_fields() {
    let rules = "jira:\n  transition_fields: {Root cause: The quantity was left out}\n";
    let (status, resolution) = merged_where(&["Resolution", "Root cause"], rules, "is now Done").await;
    assert_eq!(
        (status.as_deref(), resolution.as_deref()),
        (Some("Done"), Some("Done"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn unfillable_transition_leaves_ticket_and_names_field() {
    let (status, _) = merged_where(&["Resolution", "Root cause"], "", "fill in Root cause").await;
    assert_eq!(status.as_deref(), Some("In Progress"));
}
