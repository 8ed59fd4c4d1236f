//! Budgets beyond one run.

use domain::{BudgetScope, Fact, StopReason, TicketKey};
use testkit::fixture;

use crate::{comment_with, end_of, start_world_with_settings};

/// Budget for one ticket and for the change of a second one, but not for its end.
const TOKENS: u64 = 66_000;

#[tokio::test(flavor = "multi_thread")]
async fn repository_budget_stops_second_and_third_ticket() {
    let tokens = TOKENS.to_string();
    let settings = [("PLANNER__BUDGET__REPOSITORY__MONTH__TOKENS", tokens.as_str())];
    let world = start_world_with_settings(&settings).await;
    let first = world.ask().unwrap();
    assert_eq!(end_of(&world, &first, 0).await, StopReason::Completed);

    let second = world.ask().unwrap();
    let reason = end_of(&world, &second, 0).await;
    let StopReason::SharedBudgetSpent(budget) = reason else {
        panic!("{reason:?}")
    };
    assert_eq!(
        (budget.of, budget.name.as_str()),
        (BudgetScope::Repository, "acme/shop")
    );
    assert!(
        budget.spent <= TOKENS && budget.spent + budget.needs > TOKENS,
        "{budget:?}"
    );
    let comment = comment_with(&world, &second, "acme/shop may use 66,000 tokens a month (UTC)").await;
    assert!(
        comment.contains("There is room again from")
            && comment.contains("planner.budget.repository.month.tokens"),
        "{comment}"
    );
    let pulls = world.github.pull_requests(fixture::REPOSITORY);
    let draft = pulls
        .iter()
        .find(|pull| comment.contains(&format!("acme/shop#{}", pull.number)));
    assert!(
        draft.is_some_and(|pull| pull.draft && pull.body.contains("not complete")),
        "{pulls:#?}"
    );

    let third = world.ask().unwrap();
    let comment = comment_with(&world, &third, "It continues at").await;
    assert!(
        comment.contains("acme/shop may use 66,000 tokens a month (UTC)"),
        "{comment}"
    );
    let calls = world.model.calls().len();
    let ticket = TicketKey::jira(&third).unwrap();
    world.client.tickets().stop(&ticket).await.unwrap();
    let run = world.run(&third, 0).await.unwrap();
    let (entries, reason) = world.finished(&run).await.unwrap();
    assert!(matches!(reason, StopReason::Stopped { .. }), "{reason:?}");
    assert_eq!(world.model.calls().len(), calls, "it was not tried in between");
    let is_wait = |fact: &&Fact| matches!(fact, Fact::RetryScheduled { .. });
    let waits = entries.iter().map(|entry| &entry.fact).filter(is_wait).count();
    assert_eq!(
        (waits, world.github.pull_requests(fixture::REPOSITORY).len()),
        (1, 2)
    );
    world.stop().await.unwrap();
}
