//! GitHub issues that are transferred or deleted while Journeyman works on them.

use domain::{StopReason, TicketDeparture, TicketKey};
use e2e::{Options, TestWorld};
use testkit::{fixture, fixture::REPOSITORY};

use crate::{
    ISSUE_RULES, assign_issue, await_end_of_requests, await_own_comment, build_polled_options, end_of,
    list_own_comments, only_pull_request, open_issue,
};

const OTHER: &str = "acme/other";

/// Starts a world with a second repository, and an issue that is assigned to Journeyman. Returns its number and ticket.
async fn start_with_issue(options: Options) -> (TestWorld, u64, String) {
    let world = TestWorld::start(options).await.unwrap();
    world
        .github
        .create_repository(OTHER, &fixture::list_shop_files())
        .unwrap();
    let (number, ticket) = open_issue(&world, "ada");
    assign_issue(&world, number);
    (world, number, ticket)
}

/// Checks that the ticket has one run, and that the pull request stays open with one comment about the departure.
async fn check_pull_request(world: &TestWorld, ticket: &str, text: &str) {
    let pull = only_pull_request(world);
    await_own_comment(world, pull.number, text).await;
    let pull = only_pull_request(world);
    assert!(pull.open, "{pull:#?}");
    let about = list_own_comments(world, pull.number);
    let about = about.iter().filter(|comment| comment.contains(text));
    assert_eq!(about.count(), 1);
    let ticket: TicketKey = ticket.parse().unwrap();
    let runs = world.client.runs().recent(Some(&ticket)).await.unwrap();
    assert_eq!(runs.len(), 1, "{runs:#?}");
}

/// Transfers an issue whose run waits for a decision, and checks the end of the run.
async fn check_waiting_run(options: Options) {
    let (world, number, ticket) = start_with_issue(Options {
        rules: format!("{ISSUE_RULES}agent:\n  approval: before_push\n"),
        ..options
    })
    .await;
    await_own_comment(&world, number, "/approve").await;
    let to = world
        .github
        .transfer_issue(REPOSITORY, number, OTHER, "ada")
        .unwrap();
    let to = Some(format!("{OTHER}#{to}"));
    assert_eq!(
        end_of(&world, &ticket, 0).await,
        StopReason::TicketLeft(TicketDeparture::Transferred { to })
    );
    assert!(world.github.pull_requests(REPOSITORY).is_empty());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn transferred_issue_ends_waiting_run() {
    Box::pin(check_waiting_run(Options::default())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_find_transfer_during_run() {
    Box::pin(check_waiting_run(build_polled_options())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn transferred_issue_starts_at_new_place() {
    let other = format!("repo:\n  owner: acme\n  name: other\n{ISSUE_RULES}");
    let (world, number, ticket) = start_with_issue(Options {
        rules: ISSUE_RULES.to_owned(),
        more_rules: vec![("other.yaml", other)],
        ..Options::default()
    })
    .await;
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    let to = world
        .github
        .transfer_issue(REPOSITORY, number, OTHER, "rita")
        .unwrap();
    check_pull_request(
        &world,
        &ticket,
        &format!("The issue was transferred to `{OTHER}#{to}`"),
    )
    .await;
    // The assignment moves with the issue, so it asks for work at the new place.
    world.run(&format!("github:{OTHER}#{to}"), 0).await.unwrap();
    check_pull_request(&world, &ticket, "This pull request stays open.").await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_find_deletion_after_delivery() {
    let (world, number, ticket) = start_with_issue(Options {
        rules: ISSUE_RULES.to_owned(),
        ..build_polled_options()
    })
    .await;
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    world.github.delete_issue(REPOSITORY, number, "ada").unwrap();
    check_pull_request(&world, &ticket, "The issue was deleted").await;
    // The row of the ticket records the departure after the comment. Until then, a poll may read the issue again.
    await_end_of_requests(&world, &format!("/issues/{number}"), 410).await;
    world.stop().await.unwrap();
}
