//! GitHub issues as tickets.

use domain::StopReason;
use e2e::{Options, TestWorld};
use serde_json::json;
use testkit::{
    ScriptStep, fixture,
    fixture::REPOSITORY,
    github::{ReactedObject, StandInIssue},
};

use crate::{
    assign_issue, await_own_comment, build_polled_options, end_of, list_own_comments, only_pull_request,
    open_issue, start_world_with_rules,
};

const RULES: &str = "issues:\n  assignee: journeyman-agent\n  labels: [for the agent]\npull_request:\n  \
    labels: [by an agent]\n  reviewers: [grace]\n";

fn build_options() -> Options {
    Options {
        rules: RULES.to_owned(),
        ..Options::default()
    }
}

fn read_issue(world: &TestWorld, number: u64) -> StandInIssue {
    world.github.issue(REPOSITORY, number).unwrap()
}

/// Plays from the requested issue to the merge.
async fn to_the_merge(world: &TestWorld, number: u64, ticket: &str) {
    assert_eq!(end_of(world, ticket, 0).await, StopReason::Completed);
    let pull = only_pull_request(world);
    assert!(
        pull.draft && pull.body.contains(&format!("Fixes #{number}")),
        "{pull:#?}"
    );
    let commits = world.github.commits(REPOSITORY, pull.number).unwrap();
    let [commit] = commits.as_slice() else {
        panic!("{commits:#?}")
    };
    assert!(commit.author.starts_with("journeyman[bot] <"), "{commit:?}");
    let asked = "Co-authored-by: rita <";
    assert!(
        commit.message.contains(asked) && commit.message.contains("+rita@users.noreply."),
        "{commit:?}"
    );
    assert!(world.run_ci().await.unwrap(), "the change makes the tests pass");
    let ready = async || (!only_pull_request(world).draft).then_some(());
    world.until("a ready pull request", ready).await.unwrap();
    assert_eq!(end_of(world, ticket, 1).await, StopReason::Completed);
    let pull = only_pull_request(world);
    assert_eq!(pull.labels, ["by an agent"]);
    assert_eq!(pull.requested_reviewers, ["grace"]);
    world.github.merge(REPOSITORY, pull.number, "grace").unwrap();
    assert_eq!(end_of(world, ticket, 2).await, StopReason::Completed);
    assert_eq!(read_issue(world, number).closed_as.as_deref(), Some("completed"));
    let reactions = world.github.reactions(REPOSITORY, ReactedObject::Issue(number));
    assert_eq!(reactions, ["eyes", "rocket"], "each once");
    let said = list_own_comments(world, number);
    assert_eq!(said.len(), 1, "one status comment: {said:#?}");
    assert!(
        said[0].contains("merged") && said[0].contains("**Closed**"),
        "{said:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn assigned_issue_becomes_merged_pull_request() {
    let world = TestWorld::start(build_options()).await.unwrap();
    let (number, ticket) = open_issue(&world, "ada");
    assign_issue(&world, number);
    to_the_merge(&world, number, &ticket).await;
    let runs = world
        .client
        .runs()
        .recent(Some(&ticket.parse().unwrap()))
        .await
        .unwrap();
    assert_eq!(runs.len(), 3, "each once: {runs:#?}");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn polls_find_issue_with_trigger_label() {
    let world = TestWorld::start(Options {
        rules: RULES.to_owned(),
        ..build_polled_options()
    });
    let world = world.await.unwrap();
    let (number, ticket) = open_issue(&world, "ada");
    world
        .github
        .label_issue(REPOSITORY, number, "for the agent", "rita")
        .unwrap();
    to_the_merge(&world, number, &ticket).await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn merge_into_other_branch_closes_issue() {
    let rules = format!("repo:\n  owner: acme\n  name: shop\n  pr_target_branch: next\n{RULES}");
    let world = TestWorld::start(Options {
        more_rules: vec![("shop.yaml", rules)],
        ..Options::default()
    });
    let world = world.await.unwrap();
    world.github.commit(REPOSITORY, "next", "Next", &[]).unwrap();
    let (number, ticket) = open_issue(&world, "ada");
    assign_issue(&world, number);
    to_the_merge(&world, number, &ticket).await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn request_without_write_permission_is_declined() {
    let world = TestWorld::start(build_options()).await.unwrap();
    world.github.set_permission(REPOSITORY, "eve", "read").unwrap();
    let (number, ticket) = open_issue(&world, "eve");
    world
        .github
        .label_issue(REPOSITORY, number, "for the agent", "eve")
        .unwrap();
    let comment = await_own_comment(&world, number, "only people with write permission").await;
    assert!(comment.contains("eve") && !comment.contains("@eve"), "{comment}");
    assert!(
        world
            .client
            .runs()
            .recent(Some(&ticket.parse().unwrap()))
            .await
            .unwrap()
            .is_empty()
    );
    // A user with permission requests it again, as the comment describes.
    assign_issue(&world, number);
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_failure_returns_issue_until_reassigned() {
    let world = TestWorld::start(build_options()).await.unwrap();
    world.model.garble_next(1_000);
    let (number, ticket) = open_issue(&world, "ada");
    assign_issue(&world, number);
    assert!(matches!(
        end_of(&world, &ticket, 0).await,
        StopReason::ModelFailed { .. }
    ));
    let given_back = async || read_issue(&world, number).assignees.is_empty().then_some(());
    world.until("nobody has the issue", given_back).await.unwrap();
    await_own_comment(&world, number, "assign the issue again").await;
    world.model.garble_next(0);
    assign_issue(&world, number);
    assert_eq!(end_of(&world, &ticket, 1).await, StopReason::Completed);
    let state = await_own_comment(&world, number, "\"iteration\":2").await;
    assert!(
        state.contains("\"consecutive_failures\":0") && state.contains("\"failure_type\":null"),
        "{state}"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn issue_question_is_answered_there() {
    let world = TestWorld::start(build_options()).await.unwrap();
    let answer = json!({"answer": "It multiplies by the quantity.", "citations": []});
    let script = vec![
        ScriptStep::call("read_file", json!({"path": "shop/cart.py"})).expecting("What does the cart do?"),
        ScriptStep::call("submit_answer", answer),
    ];
    world.model.set_script_of("Answer this question", "", script);
    let (number, ticket) = open_issue(&world, "ada");
    world
        .github
        .comment_as(REPOSITORY, number, "ada", "@journeyman What does the cart do?")
        .unwrap();
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    await_own_comment(&world, number, "It multiplies by the quantity").await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn new_issue_is_triaged_by_rules() {
    let rules = "triage:\n  labels: [bug, docs]\n  anyone: true\n";
    let world = TestWorld::start(Options {
        rules: format!("{RULES}{rules}"),
        script: Some(vec![ScriptStep::call(
            "submit_triage",
            json!({"labels": ["bug"]}),
        )]),
        ..Options::default()
    });
    let world = world.await.unwrap();
    world.github.set_permission(REPOSITORY, "guest", "read").unwrap();
    let (number, ticket) = open_issue(&world, "guest");
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    assert_eq!(read_issue(&world, number).labels, ["bug", "triaged"]);
    assert!(list_own_comments(&world, number).is_empty(), "labels say enough");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicate_issue_is_labeled_and_stays_open() {
    let rules = "triage:\n  labels: [bug, docs]\n  duplicate_label: duplicate\n";
    let first = "The total of the cart ignores the quantity";
    let world = start_world_with_rules(format!("{RULES}{rules}")).await;
    world.github.set_permission(REPOSITORY, "ada", "write").unwrap();
    let call = |input| ScriptStep::call("submit_triage", input);
    world
        .model
        .set_script_of("Sort this ticket", "", vec![call(json!({"labels": ["bug"]}))]);
    let open = |title: &str| {
        let number = world
            .github
            .open_issue_as(REPOSITORY, "ada", title, "It is wrong.")
            .unwrap();
        (number, format!("github:{REPOSITORY}#{number}"))
    };
    let (one, ticket) = open(first);
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    let repeats =
        call(json!({"labels": ["bug"], "duplicate_of": format!("{REPOSITORY}#{one}")})).expecting(first);
    world.model.set_script_of("Sort this ticket", "", vec![repeats]);
    let (two, ticket) = open("The cart's total ignores the quantity");
    assert_eq!(end_of(&world, &ticket, 0).await, StopReason::Completed);
    await_own_comment(
        &world,
        two,
        &format!("seems to ask for the same as {REPOSITORY}#{one}"),
    )
    .await;
    let found = read_issue(&world, two);
    assert_eq!(found.labels, ["bug", "triaged", "duplicate"]);
    assert!(found.open && read_issue(&world, one).open);
    assert!(list_own_comments(&world, one).is_empty());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn assigned_jira_ticket_starts_exactly_once() {
    for no_webhooks in [false, true] {
        let (owner, name) = REPOSITORY.split_once('/').unwrap();
        let project = fixture::PROJECT;
        let rules = format!(
            "repo:\n  owner: {owner}\n  name: {name}\njira:\n  project_key: {project}\n  assignee: Agent Smith\n"
        );
        let world = TestWorld::start(Options {
            more_rules: vec![("shop.yaml", rules)],
            settings: vec![("INGEST__POLL_INTERVAL_S", "1".to_owned())],
            no_webhooks,
            ..Options::default()
        });
        let world = world.await.unwrap();
        let key = world.file_ticket();
        world.jira.assign(&key, "Agent Smith").unwrap();
        assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
        let pull = only_pull_request(&world);
        assert!(pull.draft && pull.head.contains(&key), "{pull:#?}");
        assert_eq!(world.jira.status(&key).as_deref(), Some("In Progress"));
        world.stop().await.unwrap();
    }
}
