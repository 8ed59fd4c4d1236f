//! Unreadable records do not block their ticket.

use super::*;

fn count_unreadable_reports(reports: &[(u64, OutboundRequest)]) -> usize {
    let is_told = |report: &OutboundRequest| matches!(report.request, OutboundAction::Unreadable(_));
    reports.iter().filter(|(_, report)| is_told(report)).count()
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
