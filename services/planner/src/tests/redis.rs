//! Work continues without Redis.

use super::*;

impl World {
    async fn ready(&self, planner: &Planner, wanted: &str) {
        bootstrap::install_tls_provider();
        let url = format!("http://{}/readyz", planner.address);
        let says = async || {
            let answer = reqwest::get(&url).await.ok()?;
            let text = format!("{} {}", answer.status().as_u16(), answer.text().await.ok()?);
            text.contains(wanted).then_some(())
        };
        self.until(wanted, says).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_complete_while_redis_is_down() {
    let mut world = World::start(build_fix_script()).await;
    // Longer in total than the lease lasts.
    world.model.set_latency(Duration::from_millis(400));
    let planner = world.planner().await;
    world.ask().await;
    world.until_the_model_is_asked().await;
    world.redis.kill();
    let row = world.finished(1).await;
    assert_eq!((row.runs[0].status.clone(), row.takeovers), (COMPLETED, 0));
    assert_eq!(world.model.calls().len(), 3, "nothing was done twice");
    assert_eq!(world.executor.ran(), super::RAN);
    planner.stop().await;
    let planner = world.planner().await;
    let pull_request = row.pull_requests[0].clone();
    let by = "ada".to_owned();
    world
        .trigger(
            "merged:7",
            TriggerReason::from(domain::PullRequestEvent::Merged(domain::PullRequestEnd {
                pull_request,
                by,
            })),
        )
        .await;
    assert_eq!(world.finished(2).await.runs[1].status, COMPLETED);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readiness_needs_nats_and_tells_of_redis() {
    let mut world = World::start(build_fix_script()).await;
    let planner = world.planner().await;
    world.ready(&planner, "200 ready").await;
    world.redis.kill();
    world.ready(&planner, "work goes on without leases").await;
    world.nats.kill();
    world.ready(&planner, "503 not ready").await;
    world.nats.restart().await.unwrap();
    world.redis.restart().await.unwrap();
    world.ready(&planner, "200 ready\n").await;
    world.stop(planner).await;
}
