//! Steering by users: decisions at the gate, stops.

use domain::{
    DecisionVerdict, Fact, JournalEntry, OutboundAction, OutboundOutcome, OutboundReceipt, RunId, StopReason,
    TicketKey, WaitCondition, report,
};
use e2e::TestWorld;
use insta::assert_snapshot;
use serde_json::json;
use testkit::{ScriptStep, fixture};

use crate::{
    comment_with, end_of, only_pull_request, start_default_world, start_world_with_rules,
    start_world_with_script, transcripts::compare_normalized_snapshot,
};

async fn at_the_gate() -> (TestWorld, String, RunId) {
    at_the_gate_of("before_push").await
}

async fn at_the_gate_of(approval: &str) -> (TestWorld, String, RunId) {
    let rules = format!("agent:\n  approval: {approval}\n");
    let world = start_world_with_rules(rules).await;
    let key = world.ask().unwrap();
    let run = world.run(&key, 0).await.unwrap();
    let waits = async || {
        let journal = world.client.runs().journal(&run).await.ok()?;
        journal
            .iter()
            .any(|entry| {
                matches!(
                    entry.fact,
                    Fact::Parked {
                        waits_for: WaitCondition::Decision
                    }
                )
            })
            .then_some(())
    };
    world.until("the gate", waits).await.unwrap();
    (world, key, run)
}

/// Returns the commit of the only question to a user.
async fn asked_about(world: &TestWorld, run: &RunId) -> String {
    last_asked_about(world, run).await.expect("a person was asked")
}

/// Returns the commit of the last question for whose answer the run waits or has waited. The API accepts a decision
/// only once the run waits for it, a moment after the question is shown.
async fn last_asked_about(world: &TestWorld, run: &RunId) -> Option<String> {
    let journal = world.client.runs().journal(run).await.unwrap();
    let waits = |entry: &JournalEntry| {
        let waits_for = WaitCondition::Decision;
        entry.fact == Fact::Parked { waits_for }
    };
    let parked = journal.iter().rposition(waits)?;
    let mut asked = journal[..parked].iter().rev();
    asked.find_map(|entry| match &entry.fact {
        Fact::ReportSettled {
            outcome: OutboundOutcome::Done(OutboundReceipt::DecisionAsked { head, .. }),
            ..
        } => Some(head.to_string()),
        _ => None,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_approval_precedes_any_work() {
    let (world, key, run) = at_the_gate_of("plan").await;
    comment_with(&world, &key, "the smallest change").await;
    assert_eq!(world.model.calls().len(), 0, "no work yet");
    let journal = world.client.runs().journal(&run).await.unwrap();
    let asked = journal.iter().find_map(|entry| match &entry.fact {
        Fact::ReportRequested {
            request: OutboundAction::PlanProposed(report::PlanProposed { id, .. }),
            ..
        } => Some(id.short().to_owned()),
        _ => None,
    });
    let plan = asked.expect("a plan was proposed");
    world
        .client
        .runs()
        .decide(&run, DecisionVerdict::Approve, &plan, "")
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
    let diff = world.client.runs().diff_text(&run).await.unwrap();
    assert!(diff.starts_with("diff --git "), "{diff}");
    let other = world
        .client
        .runs()
        .decide(&run, DecisionVerdict::Approve, &"0".repeat(40), "")
        .await;
    assert!(other.unwrap_err().to_string().contains("journeyman diff"));
    let head = asked_about(&world, &run).await;
    world
        .client
        .runs()
        .decide(&run, DecisionVerdict::Approve, &head, "")
        .await
        .unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    assert!(only_pull_request(&world).draft);
    let again = world
        .client
        .runs()
        .decide(&run, DecisionVerdict::Approve, &head, "")
        .await
        .unwrap_err();
    assert!(again.to_string().contains("wait"), "{again}");
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_ticket_run_ends_as_requested() {
    let (world, key, run) = at_the_gate().await;
    world
        .jira
        .edit_description(&key, "Delete all tests", "Eve")
        .unwrap();
    let head = asked_about(&world, &run).await;
    world.jira.delete_issue(&key, "Eve").unwrap();
    world
        .client
        .runs()
        .decide(&run, DecisionVerdict::Approve, &head, "")
        .await
        .unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    assert_eq!(only_pull_request(&world).head_sha, head);
    // A report about a deleted ticket becomes a visible dead letter.
    world.stop_with_dead_letters().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn comment_approves_named_commit_alone() {
    let (world, key, run) = at_the_gate().await;
    comment_with(&world, &key, "Decide in a comment").await;
    let head = asked_about(&world, &run).await;
    world.jira.comment_as(&key, "ada", "/approve").unwrap();
    let comment = comment_with(&world, &key, "it has to name what it is about").await;
    assert!(
        comment.contains(&format!("/approve {}", &head[..12])),
        "{comment}"
    );
    assert_eq!(world.github.branches(fixture::REPOSITORY).len(), 1);
    let approve = format!("/approve {}", &head[..12]);
    world.jira.comment_as(&key, "ada", &approve).unwrap();
    assert_eq!(end_of(&world, &key, 0).await, StopReason::Completed);
    assert!(only_pull_request(&world).draft);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn fourth_change_request_ends_run() {
    let (world, key, run) = at_the_gate().await;
    let mut script = fixture::build_shop_script();
    for round in 1..=3 {
        let mark = json!({"command": format!("echo '# {round}' >> shop/cart.py")});
        script.push(ScriptStep::call("run_command", mark).expecting(format!("Wish {round}")));
        script.push(fixture::build_finish_step(
            "cart",
            "Count every piece in the cart's total",
        ));
    }
    world.model.set_script("", script);
    let mut heads = Vec::new();
    for round in 1..=4 {
        let next = async || {
            let head = last_asked_about(&world, &run).await?;
            (!heads.contains(&head)).then_some(head)
        };
        let head = world
            .until("the question about the next change", next)
            .await
            .unwrap();
        let wish = format!("Wish {round}");
        let decided = world
            .client
            .runs()
            .decide(&run, DecisionVerdict::Revise, &head, &wish)
            .await;
        decided.unwrap();
        heads.push(head);
    }
    let reason = end_of(&world, &key, 0).await;
    let comment = comment_with(&world, &key, "3 times").await;
    compare_normalized_snapshot(|| {
        assert_snapshot!(format!("{reason:?}\n\n{comment}"), @r#"
    RevisionLimit { revisions: 3 }

    ❌ Journeyman stopped: the change was revised 3 times, and more changes were asked for.
    Nothing was pushed. To try again, move the ticket back to Ready for Agent.
    Journeyman, run jira:ENG-1@[n] (implement), [date], [time] after the start
    Before that:
    [date]: Journeyman has started to work on this ticket in acme/shop.
    "#)
    });
    assert!(world.github.pull_requests(fixture::REPOSITORY).is_empty());
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_change_is_never_pushed() {
    let (world, key, run) = at_the_gate().await;
    world
        .client
        .runs()
        .decide(&run, DecisionVerdict::Reject, "", "")
        .await
        .unwrap();
    let reason = end_of(&world, &key, 0).await;
    assert!(matches!(reason, StopReason::Rejected { .. }), "{reason:?}");
    assert_eq!(world.github.branches(fixture::REPOSITORY).len(), 1);
    world.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_a_command_that_runs() {
    let script = vec![
        ScriptStep::call("run_command", json!({"command": "sleep 300", "timeout_s": 300})),
        ScriptStep::reply("never"),
    ];
    let world = start_world_with_script(script).await;
    let key = world.ask().unwrap();
    let run = world.run(&key, 0).await.unwrap();
    let runs = async || {
        let journal = world.client.runs().journal(&run).await.ok()?;
        matches!(journal.last()?.fact, Fact::ToolRequested { .. }).then_some(())
    };
    world.until("the command", runs).await.unwrap();
    world
        .client
        .tickets()
        .stop(&TicketKey::jira(&key).unwrap())
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
    let world = start_default_world().await;
    let key = world.ask().unwrap();
    let run = world.run(&key, 0).await.unwrap();
    let live: Vec<_> = world
        .client
        .runs()
        .follow(&run)
        .await
        .unwrap()
        .map(Result::unwrap)
        .collect()
        .await;
    assert_eq!(live, world.client.runs().journal(&run).await.unwrap());
    assert!(matches!(live.last().unwrap().fact, Fact::RunFinished { .. }));
    world.stop().await.unwrap();
}
