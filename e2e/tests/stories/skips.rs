//! Skip rules: no run, and a comment with the reason.

use domain::TicketKey;
use e2e::{Options, TestWorld};
use testkit::fixture;

use crate::{comment_with, start_default_world};

/// Creates a ticket, prepares it, requests work, and expects a comment with `reason` and no run.
async fn expect_skip(prepare: impl FnOnce(&TestWorld, &str), reason: &str) {
    let world = start_default_world().await;
    let key = world.file_ticket();
    prepare(&world, &key);
    world.ask_for_work(&key).unwrap();
    comment_with(&world, &key, reason).await;
    let runs = world
        .client
        .runs()
        .recent(Some(&TicketKey::jira(&key).unwrap()))
        .await
        .unwrap();
    assert!(runs.is_empty(), "{runs:#?}");
    assert_eq!(world.jira.status(&key).as_deref(), Some("Ready for Agent"));
    assert!(world.model.calls().is_empty());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn phrase_in_comment_skips_ticket() {
    expect_skip(
        |world, key| drop(world.jira.comment_as(key, "ada", "[AGENT-SKIP] mine").unwrap()),
        "[AGENT-SKIP]",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn phrase_in_text_skips_ticket() {
    let world = start_default_world().await;
    let key = world.jira.create_issue(
        fixture::PROJECT,
        "Leave me",
        "Not for robots [AGENT-SKIP]",
        "Task",
        &[],
    );
    world.ask_for_work(&key).unwrap();
    comment_with(&world, &key, "[AGENT-SKIP]").await;
    assert!(world.model.calls().is_empty());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skip_label_skips_the_ticket() {
    expect_skip(
        |world, key| world.jira.set_labels(key, &["skip-dispatch"]).unwrap(),
        "skip-dispatch",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_pull_request_skips_ticket() {
    let open = |world: &TestWorld, key: &str| {
        world
            .github
            .commit(
                fixture::REPOSITORY,
                "ada-tries",
                "Try",
                &[("NOTES.md", "a try\n")],
            )
            .expect("a branch of a person");
        let title = format!("{key}: count the quantity");
        world
            .github
            .open_pull_request_as(fixture::REPOSITORY, "ada", "ada-tries", &title, "by hand")
            .expect("a pull request of a person");
    };
    expect_skip(open, "a pull request by ada").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_merge_completes_skipped_ticket() {
    let world = start_default_world().await;
    let key = world.file_ticket();
    let (shop, files) = (fixture::REPOSITORY, [("NOTES.md", "a try\n")]);
    world.github.commit(shop, "ada-tries", "Try", &files).unwrap();
    let title = format!("{key}: count the quantity");
    let number = world
        .github
        .open_pull_request_as(shop, "ada", "ada-tries", &title, "")
        .unwrap();
    world.jira.move_issue(&key, "Ready for Agent", "ada").unwrap();
    comment_with(&world, &key, "a pull request by ada").await;
    world.github.merge(shop, number, "mia").unwrap();
    comment_with(&world, &key, "which names this ticket").await;
    assert_eq!(world.jira.status(&key).as_deref(), Some("Done"));
    assert_eq!(world.model.calls().len(), 0);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_repository_is_asked_about_on_ticket() {
    let sharing = |name: &str, marks: &str| {
        format!(
            "repo: {{owner: acme, name: {name}}}\njira: {{project_key: {}, {marks}}}\n",
            fixture::PROJECT
        )
    };
    let options = Options {
        more_rules: vec![
            ("basket.yaml", sharing("basket", "components: [Basket]")),
            ("manual.yaml", sharing("manual", "labels: [manual]")),
        ],
        ..Options::default()
    };
    let world = TestWorld::start(options).await.unwrap();
    let key = world.file_ticket();
    world.jira.set_components(&key, &["Basket"]).unwrap();
    world.jira.set_labels(&key, &["manual"]).unwrap();
    world.ask_for_work(&key).unwrap();
    let comment = comment_with(&world, &key, "several repositories share this project").await;
    for choice in [
        "acme/basket: the component Basket",
        "acme/manual: the label manual",
    ] {
        assert!(comment.replace('`', "").contains(choice), "{comment}");
    }
    assert!(world.model.calls().is_empty());
    // The rules of acme/shop name no component or label, so they cover the rest of the project.
    world.jira.set_components(&key, &[]).unwrap();
    world.jira.set_labels(&key, &[]).unwrap();
    world.jira.move_issue(&key, "To Do", "ada").unwrap();
    world.ask_for_work(&key).unwrap();
    comment_with(&world, &key, "Draft").await;
    assert!(!world.model.calls().is_empty());
    world.stop().await.unwrap();
}
