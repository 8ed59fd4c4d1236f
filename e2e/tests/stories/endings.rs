//! Ends of runs that do not succeed: typed, and reported on the ticket.

use domain::StopReason;
use e2e::{Options, TestWorld};
use serde_json::json;
use testkit::{ScriptStep, ServiceFault, fixture};

use crate::{comment_with, complete_ticket, end_of, only_pull_request, start_default_world};

/// Plays a ticket and returns the world after its first run, with the reason of the run's end.
async fn play_first_run(options: Options) -> (TestWorld, String, StopReason) {
    let world = TestWorld::start(options).await.unwrap();
    let key = world.ask().unwrap();
    let reason = end_of(&world, &key, 0).await;
    (world, key, reason)
}

/// Plays a ticket like [`play_first_run`], with this script of the model.
async fn play_script(script: Vec<ScriptStep>) -> (TestWorld, String, StopReason) {
    play_first_run(Options {
        script: Some(script),
        ..Options::default()
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn ending_without_change_is_commented() {
    let said = || ScriptStep::reply("The ticket is already solved on main.");
    let script = vec![said(), said().expecting("not handed over yet"), said()];
    let (world, key, reason) = play_script(script).await;
    assert!(matches!(reason, StopReason::NoChange { .. }), "{reason:?}");
    comment_with(&world, &key, "already solved on main").await;
    assert!(world.github.pull_requests(fixture::REPOSITORY).is_empty());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn change_without_handover_stays_as_draft() {
    let mut script = fixture::build_shop_script();
    script.pop();
    let said = || ScriptStep::reply("The count is used now.");
    script.extend([
        said(),
        said().expecting("not handed over yet"),
        said().expecting("not handed over yet"),
    ]);
    let (world, key, reason) = play_script(script).await;
    assert!(
        matches!(&reason, StopReason::Unfinished { unsaved, .. } if unsaved.is_empty()),
        "{reason:?}"
    );
    let pull = only_pull_request(&world);
    for words in ["not complete", "The count is used now."] {
        assert!(pull.draft && pull.body.contains(words), "{}", pull.body);
    }
    let comment = comment_with(&world, &key, "The draft stays open").await;
    assert!(comment.contains("The count is used now."), "{comment}");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_errors_reach_model_and_run_continues() {
    let mut script = vec![
        ScriptStep::call("read_file", json!({"path": "no/such/file.py"})),
        ScriptStep::call("run_commnad", json!({"command": "true"}))
            .even_if_not_offered()
            .expecting("no/such/file.py"),
        ScriptStep::call("run_command", json!({"command": "exit 3"})).expecting("run_command"),
        ScriptStep::call("read_file", json!({"path": "../../etc/passwd"})).expecting("3"),
    ];
    script.extend(
        fixture::build_shop_script()
            .into_iter()
            .enumerate()
            .map(|(at, mut step)| {
                if at == 0 {
                    step.expect = None;
                }
                step
            }),
    );
    let (world, _, reason) = play_script(script).await;
    assert_eq!(reason, StopReason::Completed);
    assert!(only_pull_request(&world).draft);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn branch_only_rules_finish_without_pull_request() {
    let (world, key, reason) = play_first_run(Options {
        rules: "agent: {finish: done}\n".to_owned(),
        ..Options::default()
    })
    .await;
    assert_eq!(reason, StopReason::Completed);
    let comment = comment_with(&world, &key, "The change is in 1 file.").await;
    let done = async || (world.jira.status(&key).as_deref() == Some("Done")).then_some(());
    world.until("the ticket Done", done).await.unwrap();
    assert!(world.github.pull_requests(fixture::REPOSITORY).is_empty());
    let branches = world.github.branches(fixture::REPOSITORY);
    let branch = branches.keys().find(|name| name.contains(&key)).unwrap();
    assert!(comment.contains(branch.as_str()), "{comment}");
    let cart = world
        .github
        .file(fixture::REPOSITORY, branch, "shop/cart.py")
        .unwrap();
    assert!(cart.contains("line.price * line.quantity"), "{cart}");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn turn_limit_keeps_draft() {
    let mut script = fixture::build_shop_script();
    // The script without its `finish`.
    script.pop();
    while script.len() < 70 {
        let pattern = format!("nothing{}", script.len());
        script.push(ScriptStep::call("search_files", json!({"pattern": pattern})));
    }
    let (world, key, reason) = play_script(script).await;
    assert_eq!(reason, StopReason::TurnLimit { turns: 60 });
    assert_eq!(world.model.calls().len(), 60);
    let comment = comment_with(&world, &key, "60").await;
    let pull = only_pull_request(&world);
    assert!(
        pull.draft && pull.open && comment.contains("acme/shop#1"),
        "{comment}"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn repetition_is_reported_then_draft_kept() {
    let mut script = fixture::build_shop_script();
    script.pop();
    let turns = script.len();
    for round in 0..9 {
        let step = ScriptStep::call("run_command", json!({"command": "ls"}));
        script.push(if round == 3 {
            step.expecting("made the same calls (run_command)")
        } else {
            step
        });
    }
    let (world, key, reason) = play_script(script).await;
    assert!(matches!(reason, StopReason::Stuck(_)), "{reason:?}");
    assert_eq!(world.model.calls().len(), turns + 5);
    comment_with(&world, &key, "the model repeated itself").await;
    let pull = only_pull_request(&world);
    assert!(pull.draft && pull.body.contains("not complete"), "{}", pull.body);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn exhausted_budget_leaves_draft_and_remedy() {
    let mut script = fixture::build_shop_script();
    script.pop();
    for round in 0..40 {
        let pattern = format!("nothing{round}");
        script.push(ScriptStep::call("search_files", json!({"pattern": pattern})));
    }
    let (world, key, reason) = play_first_run(Options {
        script: Some(script),
        rules: "agent:\n  budget: {tokens: 60000}\n".to_owned(),
        ..Options::default()
    })
    .await;
    let StopReason::BudgetSpent { spent, limit, .. } = reason else {
        panic!("{reason:?}")
    };
    assert!((54_000..60_000).contains(&spent) && limit == 60_000, "{spent}");
    let comment = comment_with(&world, &key, "agent.budget.tokens").await;
    let pull = only_pull_request(&world);
    assert!(pull.draft && comment.contains("acme/shop#1"), "{comment}");
    let asked = format!("{}", world.model.calls().last().unwrap().request);
    assert!(
        asked.contains("50 % of what this work may take is used"),
        "{asked}"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_pull_request_is_commented() {
    let (world, key, _) = play_first_run(Options::default()).await;
    world
        .github
        .close(fixture::REPOSITORY, only_pull_request(&world).number, "grace")
        .unwrap();
    end_of(&world, &key, 1).await;
    comment_with(&world, &key, "closed").await;
    assert_eq!(world.jira.status(&key).as_deref(), Some("In Progress"));
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn protected_path_refusal_reaches_model() {
    let workflow = json!({"path": ".github/workflows/ci.yml", "content": "on: push\n"});
    let script = vec![
        ScriptStep::call("write_file", workflow),
        fixture::build_finish_step("ci", "Change the workflow"),
        ScriptStep::reply("I may not change workflows.").expecting(".github/workflows"),
        ScriptStep::reply("I may not change workflows."),
        ScriptStep::reply("I may not change workflows."),
    ];
    let (world, _, reason) = play_script(script).await;
    assert!(!matches!(reason, StopReason::Completed), "{reason:?}");
    assert_eq!(
        world.github.branches(fixture::REPOSITORY).len(),
        1,
        "nothing was pushed"
    );
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn model_refusal_is_commented() {
    let world = start_default_world().await;
    world.model.fail_next(ServiceFault::new("", 1, 400));
    let key = world.ask().unwrap();
    let reason = end_of(&world, &key, 0).await;
    assert!(matches!(reason, StopReason::ModelFailed { .. }), "{reason:?}");
    comment_with(&world, &key, "400").await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn transient_model_error_is_retried() {
    let world = start_default_world().await;
    world.model.fail_next(ServiceFault::new("", 1, 529));
    world.model.cut_next(1);
    complete_ticket(&world).await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn garbled_model_reply_is_commented() {
    let world = start_default_world().await;
    world.model.garble_next(20);
    let key = world.ask().unwrap();
    let reason = end_of(&world, &key, 0).await;
    assert!(matches!(reason, StopReason::ModelFailed { .. }), "{reason:?}");
    comment_with(&world, &key, "model provider").await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_clone_is_commented() {
    let world = start_default_world().await;
    world.github.fail_next(ServiceFault::new("/info/refs", 1000, 403));
    let key = world.ask().unwrap();
    let reason = end_of(&world, &key, 0).await;
    assert!(
        matches!(reason, StopReason::WorkspaceUnavailable { .. }),
        "{reason:?}"
    );
    comment_with(&world, &key, "acme/shop").await;
    world.stop().await.unwrap();
}
