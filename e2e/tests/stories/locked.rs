//! Locked conversations, and pull requests that move to another repository.

use domain::{StopReason, TicketKey};
use testkit::{
    fixture::REPOSITORY,
    github::{LockReach, ReactedObject},
};

use crate::{
    ISSUE_RULES, assign_issue, await_end_of_requests, await_own_comment, comment_with, complete_ticket,
    end_of, list_own_comments, only_pull_request, open_issue, start_default_world, start_world_with_rules,
    start_world_with_settings,
};

#[tokio::test(flavor = "multi_thread")]
async fn locked_ticket_is_worked_on_quietly() {
    let world = start_world_with_rules(ISSUE_RULES).await;
    let (number, ticket) = open_issue(&world, "ada");
    let key: TicketKey = ticket.parse().unwrap();
    world
        .github
        .lock_conversation(REPOSITORY, number, "ada", LockReach::Tokens)
        .unwrap();
    assign_issue(&world, number);
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    let pull = only_pull_request(&world);
    await_own_comment(&world, pull.number, "is locked, so this text is here").await;
    assert!(list_own_comments(&world, number).is_empty());
    let reactions = world.github.reactions(REPOSITORY, ReactedObject::Issue(number));
    assert!(reactions.is_empty(), "{reactions:?}");
    // Ingest stores the lock apart from the work on the ticket.
    let locked = async || {
        let seen = world.client.tickets().read(&key).await.ok()?;
        seen.conversation_lock
    };
    let lock = world.until("the lock of the ticket", locked).await.unwrap();
    assert_eq!(lock.reason, "too heated");
    assert_eq!(world.dead_letters().await.unwrap(), Vec::<String>::new());

    world
        .github
        .unlock_conversation(REPOSITORY, number, "ada")
        .unwrap();
    assert!(world.run_ci().await.unwrap(), "the change makes the tests pass");
    assert_eq!(end_of(&world, &ticket, 1).await, StopReason::Completed);
    await_own_comment(&world, number, "All checks passed").await;
    let there = list_own_comments(&world, pull.number).into_iter();
    let there = there.filter(|comment| comment.contains("is locked"));
    assert_eq!(there.count(), 1, "written once");
    let open = async || {
        let seen = world.client.tickets().read(&key).await.ok()?;
        seen.conversation_lock.is_none().then_some(())
    };
    world.until("the end of the lock", open).await.unwrap();
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn answer_on_locked_pull_request_is_recorded() {
    let world = start_default_world().await;
    let key = complete_ticket(&world).await;
    let number = only_pull_request(&world).number;
    world
        .github
        .lock_conversation(REPOSITORY, number, "ada", LockReach::Tokens)
        .unwrap();
    let seen = async || {
        let ticket = TicketKey::jira(&key).ok()?;
        let seen = world.client.tickets().read(&ticket).await.ok()?;
        seen.standing.first()?.conversation_lock.clone()
    };
    world.until("the lock on the page", seen).await.unwrap();
    world
        .github
        .comment_as(REPOSITORY, number, "rita", "/cost")
        .unwrap();
    let refused = || {
        let requests = world.github.requests().into_iter();
        let path = format!("/issues/{number}/comments");
        let refused = requests.filter(|request| request.path.ends_with(&path) && request.status == 403);
        refused.count()
    };
    let tried = async || (refused() > 0).then_some(());
    world.until("the refused answer", tried).await.unwrap();
    world
        .github
        .unlock_conversation(REPOSITORY, number, "ada")
        .unwrap();
    // The reports of a ticket are settled in order, so the first answer is settled before the second one.
    world
        .github
        .comment_as(REPOSITORY, number, "rita", "/cost")
        .unwrap();
    await_own_comment(&world, number, "Models have taken").await;
    assert_eq!(refused(), 1, "the first answer is not repeated");
    let answers = list_own_comments(&world, number);
    let answers = answers
        .iter()
        .filter(|comment| comment.contains("Models have taken"));
    assert_eq!(answers.count(), 1);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_pull_request_ends_its_ticket_once() {
    let world = start_world_with_settings(&[("INGEST__POLL_INTERVAL_S", "1")]).await;
    let key = complete_ticket(&world).await;
    let number = only_pull_request(&world).number;
    world
        .github
        .transfer_thread(REPOSITORY, number, ("other/else", 220))
        .unwrap();
    world.github.close(REPOSITORY, number, "ada").unwrap();
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    let comment = comment_with(&world, &key, "moved").await;
    assert!(comment.contains("other/else#220"), "{comment}");

    // The poller reads the record of the end in a later round.
    let path = format!("/pulls/{number}");
    await_end_of_requests(&world, &path, 301).await;
    let reads = world
        .github
        .count_requests(|request| request.path.contains(&path) && request.status == 301);
    // A slow machine polls more often until the end is recorded, and each round reads the pull request a few times.
    let listing = format!("/repos/{REPOSITORY}/pulls?state=all");
    let rounds = world
        .github
        .count_requests(|request| request.path.contains(&listing));
    assert!(reads < 20 + 3 * rounds, "{reads} reads in {rounds} rounds");
    let ticket = TicketKey::jira(&key).unwrap();
    let runs = world.client.runs().recent(Some(&ticket)).await.unwrap();
    assert_eq!(runs.len(), 2, "{runs:#?}");
    world.stop().await.unwrap();
}
