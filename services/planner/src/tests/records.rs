//! Records that this release cannot read: an older planner leaves those of a newer release unchanged to a
//! planner of that release, and an unreadable one blocks nothing but itself.

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

fn count_unreadable_reports(reports: &[(u64, OutboundRequest)]) -> usize {
    let is_notice = |report: &OutboundRequest| matches!(report.request, OutboundAction::Unreadable(_));
    reports.iter().filter(|(_, report)| is_notice(report)).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_trigger_is_dead_lettered_without_blocking() {
    let world = World::start(build_fix_script()).await;
    let subject = "journeyman.triggers.jira=3AENG-12.garbage";
    testkit::publish_raw(&world.nats.url(), subject, b"!!!")
        .await
        .unwrap();
    world.ask().await;
    let planner = world.planner().await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!(row.quarantined, None);
    let letters = world.queue.dead_letters().list(10).await.unwrap();
    assert_eq!(letters.len(), 1, "{letters:?}");
    let (_, letter) = &letters[0];
    assert_eq!(
        (letter.what.as_str(), letter.ticket.clone()),
        ("trigger", Some(build_ticket_key()))
    );
    assert!(
        letter.reason.contains("journeyman dead retry"),
        "{}",
        letter.reason
    );
    let reports = world
        .queue
        .reports()
        .read_after(&build_ticket_key(), 0)
        .await
        .unwrap();
    assert_eq!(count_unreadable_reports(&reports), 1);

    testkit::publish_raw(&world.nats.url(), &format!("{subject}-last"), b"{}")
        .await
        .unwrap();
    let second = async || {
        let letters = world.queue.dead_letters().list(10).await.ok()?;
        (letters.len() == 2).then_some(())
    };
    world.until("the last trigger is set aside too", second).await;
    let last = world
        .queue
        .triggers()
        .last_sequence(&build_ticket_key())
        .await
        .unwrap();
    let folded = async || (Some(world.row().await?.cursor) == last).then_some(());
    world.until("the cursor is behind it", folded).await;
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_row_is_rebuilt_and_run_continues() {
    let world = World::start(build_fix_script()).await;
    world.ask_and_stop_in_the_middle().await;
    testkit::publish_raw(&world.nats.url(), "$KV.tickets.jira=3AENG-12", b"{\"version\":")
        .await
        .unwrap();
    let planner = world.planner().await;
    let row = world.finished(1).await;
    assert_eq!(row.runs[0].status, COMPLETED);
    assert_eq!((row.opened, row.pull_requests.len()), (1, 1));
    let letters = world.queue.dead_letters().list(10).await.unwrap();
    let kinds: Vec<&str> = letters.iter().map(|(_, letter)| letter.what.as_str()).collect();
    assert_eq!(kinds, ["row"]);
    world.stop(planner).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_journal_ends_run_after_retry() {
    let world = World::start(build_fix_script()).await;
    world.ask_and_stop_in_the_middle().await;
    let journal = "journeyman.journal.jira=3AENG-12.1";
    testkit::publish_raw(&world.nats.url(), journal, b"{")
        .await
        .unwrap();
    let planner = world.planner().await;
    let letter = async || world.queue.dead_letters().list(10).await.ok()?.pop();
    let (_, letter) = world.until("a dead letter", letter).await;
    assert_eq!(letter.what.as_str(), "ticket");
    world.trigger("comment:9", TriggerReason::RetryRequested).await;
    let row = world.finished(1).await;
    assert!(
        matches!(
            &row.runs[0].status,
            RunStatus::Finished {
                reason: StopReason::JournalUnreadable
            }
        ),
        "{:?}",
        row.runs[0].status
    );
    assert_eq!(row.quarantined, None);
    world.stop(planner).await;
}
