//! Duration of a planner's hold on a ticket, and of the handover to another.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn busy_planner_keeps_ticket_beyond_ack_wait() {
    let world = World::start_with(build_fix_script(), 2_000).await;
    world.model.set_latency(Duration::from_secs(4));
    let planner = world.planner().await;
    world.ask().await;
    let replied = async || (world.model.calls().len() == 2).then_some(());
    world.until("two replies", replied).await;
    world.model.set_latency(Duration::ZERO);
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    let entries = world.queue.journal().read(&row.runs[0].id).await.unwrap();
    let fences: std::collections::BTreeSet<_> = entries
        .iter()
        .take_while(|(_, entry)| entry.fact.name() != "parked")
        .map(|(_, entry)| entry.fence)
        .collect();
    assert_eq!(fences.len(), 1, "the token never went to anybody else");
    assert_eq!(world.model.calls().len(), 3);
    world.stop(planner).await;
}

/// With a minute instead of seconds, the wait for the end would time out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dead_planner_loses_ticket_within_seconds() {
    let ack_wait_ms = queue::Settings::default().ack_wait_ms;
    assert!(lease::Settings::default().ttl_ms < ack_wait_ms);
    let world = World::start_with(build_fix_script(), ack_wait_ms).await;
    world.ask().await;
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.child_token()).await.unwrap();
    let token = tokens.next().await.unwrap();
    // A process that dies sends nothing.
    drop(token);
    let planner = world.planner().await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    world.stop(planner).await;
}
