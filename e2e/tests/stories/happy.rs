//! From a request in Jira to a merged pull request.

use domain::StopReason;
use e2e::{Options, ProviderDialect, ServiceMode, TestWorld};
use testkit::fixture;

use crate::{
    build_polled_options, complete_ticket, end_of, list_ticket_comments, only_pull_request,
    start_default_world, start_world_with_settings,
};

/// Plays the whole story and checks the final state of the external services.
async fn play_whole_story(options: Options) {
    let world = TestWorld::start(options).await.unwrap();
    let key = world.ask().unwrap();
    to_the_merge(&world, &key).await;
    assert_final_state(&world, &key);
    assert_difference_is_kept(&world, &key).await;
    world.stop().await.unwrap();
}

pub(crate) async fn to_the_merge(world: &TestWorld, key: &str) {
    let reason = end_of(world, key, 0).await;
    assert_eq!(reason, StopReason::Completed);
    let pull = only_pull_request(world);
    assert!(pull.draft, "CI has not spoken yet");
    assert!(world.run_ci().await.unwrap(), "the change makes the tests pass");
    world
        .until("a ready pull request", async || {
            (!only_pull_request(world).draft).then_some(())
        })
        .await
        .unwrap();
    assert_eq!(end_of(world, key, 1).await, StopReason::Completed);
    world
        .github
        .merge(fixture::REPOSITORY, pull.number, "grace")
        .unwrap();
    let done = async || (world.jira.status(key).as_deref() == Some("Done")).then_some(());
    world.until("the ticket Done", done).await.unwrap();
    assert_eq!(end_of(world, key, 2).await, StopReason::Completed);
}

/// Checks that the run shows the change that it pushed, although no person was asked about it.
async fn assert_difference_is_kept(world: &TestWorld, key: &str) {
    let run = world.run(key, 0).await.unwrap();
    let diff = world.client.runs().diff(&run).await.unwrap();
    assert_eq!(diff.source, api::types::DiffSource::Pushed);
    assert!(
        diff.text.starts_with("diff --git ") && diff.text.contains("line.price * line.quantity"),
        "{}",
        diff.text
    );
}

fn assert_final_state(world: &TestWorld, key: &str) {
    let pull = only_pull_request(world);
    assert!(pull.merged && !pull.draft);
    assert_eq!(pull.base, "main");
    assert!(pull.head.contains(key), "{}", pull.head);
    let cart = world
        .github
        .file(fixture::REPOSITORY, "main", "shop/cart.py")
        .unwrap();
    assert!(cart.contains("line.price * line.quantity"), "{cart}");
    assert_eq!(
        world.jira.status_history(key),
        ["To Do", "Ready for Agent", "In Progress", "Done"]
    );
    let links = world.jira.remote_links(key);
    assert_eq!(
        links.iter().map(|link| link.url.as_str()).collect::<Vec<_>>(),
        [pull.url.as_str()]
    );
    let said = list_ticket_comments(world, key);
    assert_eq!(said.len(), 1, "one status comment: {said:#?}");
    let newest_first = ["merged", "All checks passed", "Draft", "has started"];
    let places = newest_first.map(|words| said[0].find(words));
    assert!(
        places.iter().all(Option::is_some) && places.is_sorted(),
        "{said:#?}"
    );
    for words in newest_first {
        assert_eq!(
            said[0].matches(words).count(),
            1,
            "{words} is said once: {said:#?}"
        );
    }
    for words in [
        "What was done",
        "A test that failed before passes",
        "the change in 1 file",
    ] {
        assert!(said[0].contains(words), "{words} stays until the end: {said:#?}");
    }
    let branches = world.github.branches(fixture::REPOSITORY);
    assert_eq!(branches.len(), 2, "main and one head branch: {branches:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ticket_becomes_a_merged_pull_request() {
    play_whole_story(Options::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_dialect_does_the_same() {
    play_whole_story(Options {
        dialect: ProviderDialect::OpenAi,
        ..Options::default()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_dialect_reaches_merge_statelessly() {
    play_whole_story(Options {
        dialect: ProviderDialect::Responses,
        ..Options::default()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_of_their_own_do_the_same() {
    play_whole_story(Options {
        mode: ServiceMode::Processes,
        ..Options::default()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_reach_merge_behind_private_authority() {
    play_whole_story(Options {
        mode: ServiceMode::Processes,
        private_authority: true,
        ..Options::default()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_reach_merge_with_internal_tls() {
    play_whole_story(Options {
        mode: ServiceMode::Processes,
        tls: true,
        ..Options::default()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn renewed_certificates_need_no_restart() {
    let options = Options {
        mode: ServiceMode::Processes,
        tls: true,
        ..Options::default()
    };
    let mut world = TestWorld::start(options).await.unwrap();
    complete_ticket(&world).await;
    world.renew_certificates().unwrap();
    // The new executor starts with the new certificate. The planner continues and uses its own renewed one.
    let processes = world.processes().unwrap();
    processes.kill("executor").await.unwrap();
    processes.restart("executor").await.unwrap();
    let second = world.ask().unwrap();
    assert_eq!(end_of(&world, &second, 0).await, StopReason::Completed);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_alone_does_the_same() {
    play_whole_story(build_polled_options()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_deliveries_reach_same_final_state() {
    let world = start_default_world().await;
    let key = world.ask().unwrap();
    world.jira.redeliver_all();
    end_of(&world, &key, 0).await;
    repeat_every_message(&world, &key).await;
    assert!(world.run_ci().await.unwrap());
    world.github.redeliver_all();
    end_of(&world, &key, 1).await;
    repeat_every_message(&world, &key).await;
    let number = only_pull_request(&world).number;
    world.github.merge(fixture::REPOSITORY, number, "grace").unwrap();
    world.github.redeliver_all();
    end_of(&world, &key, 2).await;
    repeat_every_message(&world, &key).await;
    world
        .until("the ticket Done", async || {
            (world.jira.status(&key)? == "Done").then_some(())
        })
        .await
        .unwrap();
    let ticket = domain::TicketKey::jira(&key).unwrap();
    assert_eq!(world.client.runs().recent(Some(&ticket)).await.unwrap().len(), 3);
    assert_final_state(&world, &key);
    world.stop().await.unwrap();
}

/// Appends every trigger and report again and wakes planner and reporter, until both have read them.
async fn repeat_every_message(world: &TestWorld, key: &str) {
    let ticket = domain::TicketKey::jira(key).unwrap();
    // Ingest's NATS user has no permission to publish reports.
    let (triggers, reports) = (
        world.queue().await.unwrap().triggers(),
        world.queue_as("reporter").await.unwrap().reports(),
    );
    for (sequence, trigger) in triggers.read_after(&ticket, 0).await.unwrap() {
        assert_eq!(
            triggers.append(&trigger).await.unwrap(),
            queue::AppendOutcome::Known(sequence)
        );
    }
    for (sequence, report) in reports.read_after(&ticket, 0).await.unwrap() {
        assert_eq!(
            reports.append(&report).await.unwrap(),
            queue::AppendOutcome::Known(sequence)
        );
    }
    for _ in 0..3 {
        triggers.wake(&ticket).await.unwrap();
        reports.wake(&ticket).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repository_without_checks_hands_over_pull_request() {
    let world =
        start_world_with_settings(&[("INGEST__POLL_INTERVAL_S", "1"), ("INGEST__CHECKS_ABSENT_S", "1")])
            .await;
    let key = complete_ticket(&world).await;
    let ready = async || (!only_pull_request(&world).draft).then_some(());
    world.until("a ready pull request", ready).await.unwrap();
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    let said = list_ticket_comments(&world, &key);
    assert!(said[0].contains("No check reports"), "{said:#?}");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn note_replaces_draft_of_repository_without_drafts() {
    let world = start_default_world().await;
    world.github.disable_drafts(fixture::REPOSITORY).unwrap();
    let key = complete_ticket(&world).await;
    let pull = only_pull_request(&world);
    assert!(!pull.draft && pull.body.contains("Work in progress"), "{pull:?}");
    assert!(world.run_ci().await.unwrap(), "the change makes the tests pass");
    world
        .until("a description without the note", async || {
            (!only_pull_request(&world).body.contains("Work in progress")).then_some(())
        })
        .await
        .unwrap();
    assert_eq!(end_of(&world, &key, 1).await, StopReason::Completed);
    world.stop().await.unwrap();
}
