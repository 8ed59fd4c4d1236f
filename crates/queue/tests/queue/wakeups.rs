//! No wake-up is lost: with three servers, after a worker's death behind its acknowledgement, and with a
//! token in hand. No sweeper runs here, so it cannot be the cause of a wake-up.

use bootstrap::read_wall_clock;
use domain::{OutboundCursor, TicketRow};
use queue::{AppendOutcome, KeyValueBucket, KeyedLog, RecordKey};
use servers::{NatsCluster, NatsOptions};
use tokio_util::sync::CancellationToken;

use crate::world::{
    World, await_soon, build_outbound_request, build_ticket_key, build_trigger, open_queue, settings_for,
    stays_away,
};

fn extract_sequence(appended: AppendOutcome) -> u64 {
    match appended {
        AppendOutcome::New(sequence) | AppendOutcome::Known(sequence) => sequence,
    }
}

fn run_waker<T: queue::KeyedRecord>(log: &KeyedLog<T>, shutdown: &CancellationToken) {
    let (log, shutdown) = (log.clone(), shutdown.clone());
    tokio::spawn(async move { log.run_waker(shutdown).await });
}

#[tokio::test]
async fn refused_token_after_ack_is_retried() {
    let cluster = NatsCluster::start(NatsOptions::default()).await.unwrap();
    let settings = queue::Settings {
        replicas: 3,
        ..settings_for(cluster.url())
    };
    let queue = open_queue(&settings).await;
    let shutdown = CancellationToken::new();
    let log = queue.triggers();
    let mut tokens = log.tokens(shutdown.clone()).await.unwrap();
    log.wake(&build_ticket_key(1)).await.unwrap();
    for round in 0..60 {
        let token = await_soon(tokens.next()).await.unwrap();
        let record = build_trigger(&build_ticket_key(1), &format!("comment:{round}"));
        let appended = extract_sequence(log.append(&record).await.unwrap());
        token.finish().await.unwrap();
        // A worker does this after its acknowledgement, when the removal of its token may not be applied yet.
        log.wake_beyond(&build_ticket_key(1), appended).await.unwrap();
        let next = await_soon(log.rewake(&build_ticket_key(1))).await;
        assert!(!next.unwrap(), "round {round}: the token was lost");
    }
    shutdown.cancel();
}

#[tokio::test]
async fn worker_dies_after_ack_record_wakes() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    run_waker(&log, &world.shutdown);
    world.trigger(1, "comment:1").await;
    let token = await_soon(tokens.next()).await.unwrap();
    world.trigger(1, "comment:2").await;
    // The waker's token for the second record is refused while the first token is in hand.
    assert!(stays_away(tokens.next()).await);
    token.finish().await.unwrap();
    let again = await_soon(tokens.next()).await.expect("the wake-up by a record");
    assert_eq!(again.ticket(), &build_ticket_key(1));
}

#[tokio::test]
async fn worker_of_reports_dies_record_wakes() {
    let world = World::new().await;
    let log = world.queue.reports();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    run_waker(&log, &world.shutdown);
    log.append(&build_outbound_request(&build_ticket_key(1), 1))
        .await
        .unwrap();
    let token = await_soon(tokens.next()).await.unwrap();
    log.append(&build_outbound_request(&build_ticket_key(1), 2))
        .await
        .unwrap();
    assert!(stays_away(tokens.next()).await);
    token.finish().await.unwrap();
    let again = await_soon(tokens.next()).await.expect("the wake-up by a record");
    assert_eq!(again.ticket(), &build_ticket_key(1));
}

#[tokio::test]
async fn due_timer_wakes_after_token_in_hand() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    log.wake(&build_ticket_key(1)).await.unwrap();
    let token = await_soon(tokens.next()).await.unwrap();
    let due = read_wall_clock();
    let rows = world.queue.table::<TicketRow>(KeyValueBucket::Tickets);
    let row = TicketRow {
        due: Some(due),
        ..TicketRow::default()
    };
    rows.put(&build_ticket_key(1).to_string(), &row, None)
        .await
        .unwrap();
    world.queue.timers().set(&build_ticket_key(1), due).await.unwrap();
    run_waker(&log, &world.shutdown);
    assert!(stays_away(tokens.next()).await);
    token.finish().await.unwrap();
    let again = await_soon(tokens.next()).await.expect("the wake-up by a timer");
    assert_eq!(again.ticket(), &build_ticket_key(1));
}

/// Waits until the waker of a stream holds no message.
async fn await_idle_waker(world: &World, stream: &str) {
    let mut waker = world
        .raw()
        .await
        .get_consumer_from_stream::<async_nats::jetstream::consumer::pull::Config, _, _>("waker", stream)
        .await
        .unwrap();
    let idle = async {
        loop {
            let info = waker.info().await.unwrap();
            if info.num_pending == 0 && info.num_ack_pending == 0 {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    await_soon(idle).await;
}

/// Stores that the worker of the first ticket has consumed its triggers up to `cursor`.
async fn store_cursor(world: &World, cursor: u64) {
    let rows = world.queue.table::<TicketRow>(KeyValueBucket::Tickets);
    let row = TicketRow {
        cursor,
        ..TicketRow::default()
    };
    rows.put(&build_ticket_key(1).to_string(), &row, None)
        .await
        .unwrap();
}

#[tokio::test]
async fn consumed_records_are_not_held() {
    let world = World::new().await;
    let (triggers, reports) = (world.queue.triggers(), world.queue.reports());
    triggers.wake(&build_ticket_key(1)).await.unwrap();
    reports.wake(&build_ticket_key(1)).await.unwrap();
    let mut trigger_tokens = triggers.tokens(world.shutdown.clone()).await.unwrap();
    let mut report_tokens = reports.tokens(world.shutdown.clone()).await.unwrap();
    let _in_hand = (
        await_soon(trigger_tokens.next()).await.unwrap(),
        await_soon(report_tokens.next()).await.unwrap(),
    );
    let cursor = extract_sequence(
        triggers
            .append(&build_trigger(&build_ticket_key(1), "comment:1"))
            .await
            .unwrap(),
    );
    let settled = extract_sequence(
        reports
            .append(&build_outbound_request(&build_ticket_key(1), 1))
            .await
            .unwrap(),
    );
    store_cursor(&world, cursor).await;
    let cursors = world.queue.table::<OutboundCursor>(KeyValueBucket::Effects);
    let cursor = OutboundCursor {
        sequence: settled,
        ..OutboundCursor::default()
    };
    cursors
        .put(RecordKey::cursor(&build_ticket_key(1)), &cursor, None)
        .await
        .unwrap();
    run_waker(&triggers, &world.shutdown);
    run_waker(&reports, &world.shutdown);
    await_idle_waker(&world, "TRIGGERS").await;
    await_idle_waker(&world, "REPORTS").await;
}

#[tokio::test]
async fn record_consumed_after_refusal_wakes_nothing() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    log.wake(&build_ticket_key(1)).await.unwrap();
    let token = await_soon(tokens.next()).await.unwrap();
    let record = build_trigger(&build_ticket_key(1), "settled:1");
    let cursor = extract_sequence(log.append(&record).await.unwrap());
    run_waker(&log, &world.shutdown);
    // The waker's token is refused meanwhile, and the waker holds the record.
    assert!(stays_away(tokens.next()).await);
    store_cursor(&world, cursor).await;
    token.finish().await.unwrap();
    await_idle_waker(&world, "TRIGGERS").await;
    assert!(
        log.rewake(&build_ticket_key(1)).await.unwrap(),
        "the record woke a worker that has nothing to do"
    );
}
