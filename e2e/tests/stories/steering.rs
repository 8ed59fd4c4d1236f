//! People steer: decisions at the gate, stops.

use domain::{Fact, Receipt, ReportOutcome, ReportRequest, RunId, StopReason, TicketKey, Verdict, WaitsFor};
use e2e::{Options, World};
use serde_json::json;
use testkit::{Step, fixture};

use crate::{comment_with, end_of, only_pull_request};

async fn at_the_gate() -> (World, String, RunId) {
    at_the_gate_of("before_push").await
}

async fn at_the_gate_of(approval: &str) -> (World, String, RunId) {
    let rules = format!("agent:\n  approval: {approval}\n");
    let world = World::start(Options {
        rules,
        ..Options::default()
    })
    .await
    .unwrap();
    let key = world.ask().unwrap();
    let run = world.run(&key, 0).await.unwrap();
    let waits = async || {
        let journal = world.client.journal(&run).await.ok()?;
        journal
            .iter()
            .any(|entry| {
                matches!(
                    entry.fact,
                    Fact::Parked {
                        waits_for: WaitsFor::Decision
                    }
                )
            })
            .then_some(())
    };
    world.until("the gate", waits).await.unwrap();
    (world, key, run)
}

/// The commit that a person was asked about.
async fn asked_about(world: &World, run: &RunId) -> String {
    let journal = world.client.journal(run).await.unwrap();
    let asked = journal.iter().find_map(|entry| match &entry.fact {
        Fact::ReportSettled {
            outcome: ReportOutcome::Done(Receipt::DecisionAsked { head, .. }),
            ..
        } => Some(head.to_string()),
        _ => None,
    });
    asked.expect("a person was asked")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_work_begins_before_a_person_approves_the_plan() {
    let (world, key, run) = at_the_gate_of("plan").await;
    comment_with(&world, &key, "the smallest change").await;
    assert_eq!(world.model.calls().len(), 0, "no work yet");
    let journal = world.client.journal(&run).await.unwrap();
    let asked = journal.iter().find_map(|entry| match &entry.fact {
        Fact::ReportRequested {
            request: ReportRequest::PlanProposed { id, .. },
            ..
        } => Some(id.short().to_owned()),
        _ => None,
    });
    let plan = asked.expect("a plan was proposed");
    world
        .client
        .decide(&run, Verdict::Approve, &plan, "")
        .await
        .unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    only_pull_request(&world);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_pushed_before_a_person_approves() {
    let (world, key, run) = at_the_gate().await;
    comment_with(&world, &key, "approve").await;
    assert_eq!(world.github.branches(fixture::REPOSITORY).len(), 1);
    let diff = world.client.diff(&run).await.unwrap();
    assert!(diff.starts_with("diff --git "), "{diff}");
    let other = world
        .client
        .decide(&run, Verdict::Approve, &"0".repeat(40), "")
        .await;
    assert!(other.unwrap_err().to_string().contains("journeyman diff"));
    let head = asked_about(&world, &run).await;
    world
        .client
        .decide(&run, Verdict::Approve, &head, "")
        .await
        .unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    assert!(only_pull_request(&world).draft);
    let again = world
        .client
        .decide(&run, Verdict::Approve, &head, "")
        .await
        .unwrap_err();
    assert!(again.to_string().contains("wait"), "{again}");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_change_is_never_pushed() {
    let (world, key, run) = at_the_gate().await;
    world.client.decide(&run, Verdict::Reject, "", "").await.unwrap();
    let reason = end_of(&world, &key, 0).await;
    assert!(matches!(reason, StopReason::Rejected { .. }), "{reason:?}");
    assert_eq!(world.github.branches(fixture::REPOSITORY).len(), 1);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_a_command_that_runs() {
    let script = vec![
        Step::call("run_command", json!({"command": "sleep 300", "timeout_s": 300})),
        Step::say("never"),
    ];
    let world = World::start(Options {
        script: Some(script),
        ..Options::default()
    })
    .await
    .unwrap();
    let key = world.ask().unwrap();
    let run = world.run(&key, 0).await.unwrap();
    let runs = async || {
        let journal = world.client.journal(&run).await.ok()?;
        matches!(journal.last()?.fact, Fact::ToolRequested { .. }).then_some(())
    };
    world.until("the command", runs).await.unwrap();
    world
        .client
        .stop_ticket(&TicketKey::jira(&key).unwrap())
        .await
        .unwrap();
    let reason = end_of(&world, &key, 0).await;
    assert!(matches!(reason, StopReason::Stopped { .. }), "{reason:?}");
    comment_with(&world, &key, "stop").await;
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_live_journal_ends_with_the_run() {
    use futures::StreamExt;
    let world = World::start(Options::default()).await.unwrap();
    let key = world.ask().unwrap();
    let run = world.run(&key, 0).await.unwrap();
    let live: Vec<_> = world
        .client
        .follow(&run)
        .await
        .unwrap()
        .map(Result::unwrap)
        .collect()
        .await;
    assert_eq!(live, world.client.journal(&run).await.unwrap());
    assert!(matches!(live.last().unwrap().fact, Fact::RunFinished { .. }));
    world.stop().await.unwrap();
}
