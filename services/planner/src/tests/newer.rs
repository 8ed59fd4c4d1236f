//! Records of a newer release: an older planner leaves them unchanged to a planner of that release.

use super::*;

/// Format below the first release: every stored record is newer.
const OLDER_RELEASE: u32 = 0;

impl World {
    /// Waits until a planner reads a record of a newer release, and asserts that it does nothing else.
    async fn left_alone(&self, kind: domain::RecordKind) {
        let met = async || {
            let met = self.queue.newer_records().await.ok()?;
            met.into_iter().find(|record| record.kind == kind)
        };
        let record = self.until("a planner met a newer record", met).await;
        assert_eq!(record.ticket, Some(build_ticket_key()));
        assert_eq!(self.queue.dead_letters().list(10).await.unwrap(), []);
        let reports = self
            .queue
            .reports()
            .read_after(&build_ticket_key(), 0)
            .await
            .unwrap();
        let is_aside = |report: &OutboundRequest| {
            matches!(
                report.request,
                OutboundAction::Unreadable(_) | OutboundAction::Quarantined(_)
            )
        };
        assert!(!reports.iter().any(|(_, report)| is_aside(report)), "{reports:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rolled_back_release_leaves_newer_tickets() {
    let world = World::start(build_fix_script()).await;
    world.ask_and_stop_in_the_middle().await;
    let before = world.row().await.unwrap();
    let journal = world.queue.journal().runs_of(&build_ticket_key()).await.unwrap();
    let entries = world.queue.journal().read(&journal[0]).await.unwrap().len();

    let old = world.planner_that_reads(OLDER_RELEASE).await;
    world.left_alone(domain::RecordKind::Row).await;
    old.stop().await;
    assert_eq!(world.row().await.unwrap(), before, "the row is as it was");
    assert_eq!(
        world.queue.journal().read(&journal[0]).await.unwrap().len(),
        entries
    );

    let new = world.planner().await;
    let row = world.finished(1).await;
    assert_eq!((&row.runs[0].status, row.opened), (&COMPLETED, 1));
    world.stop(new).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newer_trigger_is_left_without_failure_count() {
    let world = World::start(build_fix_script()).await;
    let body = serde_json::json!({"version": 2, "reason": {"type": "tomorrow"}}).to_string();
    let subject = "journeyman.triggers.jira=3AENG-12.newer";
    testkit::publish_raw(&world.nats.url(), subject, body.as_bytes())
        .await
        .unwrap();
    world.ask().await;
    let planner = world.planner().await;
    world.left_alone(domain::RecordKind::Trigger).await;
    let row = world.row().await.unwrap();
    assert_eq!((row.cursor, row.takeovers), (0, 0));
    assert_eq!(row.quarantined, None);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn newer_journal_is_left_without_failure_count() {
    let world = World::start(build_fix_script()).await;
    world.ask_and_stop_in_the_middle().await;
    let body = serde_json::json!({"version": 2, "fact": {"type": "tomorrow"}}).to_string();
    let subject = "journeyman.journal.jira=3AENG-12.1";
    testkit::publish_raw(&world.nats.url(), subject, body.as_bytes())
        .await
        .unwrap();
    let takeovers = world.row().await.unwrap().takeovers;
    let planner = world.planner().await;
    world.left_alone(domain::RecordKind::Entry).await;
    let settled = async || (world.row().await?.takeovers == takeovers).then_some(());
    world.until("the takeover is forgotten", settled).await;
    assert_eq!(world.row().await.unwrap().quarantined, None);
    world.stop(planner).await;
}
