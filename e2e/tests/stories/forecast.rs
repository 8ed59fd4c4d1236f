//! Forecast of cost from similar work before a run, and actual cost after it.

use testkit::fixture;

use crate::{complete_ticket, list_ticket_comments, start_default_world};

#[tokio::test(flavor = "multi_thread")]
async fn fourth_ticket_shows_cost_of_earlier_three() {
    let world = start_default_world().await;
    let join_comments = |key: &str| list_ticket_comments(&world, key).join("\n");
    for number in 1..=3 {
        let key = complete_ticket(&world).await;
        assert!(
            !join_comments(&key).contains("Similar tickets"),
            "{number} are too few: {}",
            join_comments(&key)
        );
    }
    let key = complete_ticket(&world).await;
    let compared = async || {
        join_comments(&key)
            .contains("the middle of 3; half of them")
            .then_some(())
    };
    world.until("what similar tickets took", compared).await.unwrap();
    let pulls = world.github.pull_requests(fixture::REPOSITORY);
    assert_eq!(pulls.len(), 4);
    for pull in pulls {
        assert!(pull.body.contains("\n\nIt took "), "{}", pull.body);
    }
    world.stop().await.unwrap();
}
