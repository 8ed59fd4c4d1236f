//! Reported spending, which equals the sum of the journals.

use api::types::SpendQuery;
use testkit::fixture;

use crate::{complete_ticket, start_default_world};

#[tokio::test(flavor = "multi_thread")]
async fn reported_spending_equals_sum_of_journals() {
    let world = start_default_world().await;
    let mut tickets = Vec::new();
    for _ in 0..2 {
        let key = complete_ticket(&world).await;
        tickets.push(format!("jira:{key}"));
    }
    let (mut micros, mut tokens, mut calls) = (0, 0, 0);
    for run in world.client.runs().recent(None).await.unwrap() {
        for entry in world
            .client
            .runs()
            .journal(&run.id.parse().unwrap())
            .await
            .unwrap()
        {
            if let Some(charge) = entry.fact.charge() {
                let amount = charge.reply.spend_amount();
                micros += amount.cost_micros;
                tokens += amount.tokens;
                calls += 1;
            }
        }
    }
    let all = world
        .client
        .installation()
        .spend(&SpendQuery::default())
        .await
        .unwrap();
    assert_eq!(all.next, None);
    assert!(calls > 0 && tokens > 0);
    let lines = &all.lines;
    assert_eq!(lines.iter().map(|line| line.calls).sum::<u64>(), calls);
    assert_eq!(lines.iter().map(|line| line.tokens).sum::<u64>(), tokens);
    assert_eq!(
        lines.iter().map(|line| line.cost_usd.micros()).sum::<u64>(),
        micros
    );
    for ticket in tickets {
        assert!(
            lines.iter().any(|line| line.ticket == ticket),
            "{ticket}: {lines:?}"
        );
    }
    let is_known = |repository: &str| repository == fixture::REPOSITORY;
    assert!(lines.iter().all(|line| is_known(&line.repository)), "{lines:?}");
    let before = SpendQuery {
        until: Some("2020-01-01".to_owned()),
        ..SpendQuery::default()
    };
    assert_eq!(
        world.client.installation().spend(&before).await.unwrap().lines,
        []
    );
    world.stop().await.unwrap();
}
