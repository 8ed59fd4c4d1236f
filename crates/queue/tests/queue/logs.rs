//! Keyed log with its waker and tokens.

use std::time::Duration;

use bootstrap::read_wall_clock;
use domain::{FenceStamp, RunFence};
use futures::StreamExt as _;
use queue::{AppendOutcome, WakeupToken};
use tokio::time::timeout;

use crate::world::{World, await_soon, build_outbound_request, build_ticket_key, build_trigger, stays_away};

#[tokio::test]
async fn a_key_is_appended_once() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let AppendOutcome::New(sequence) = log
        .append(&build_trigger(&build_ticket_key(1), "comment:1"))
        .await
        .unwrap()
    else {
        panic!("the key was new")
    };
    let again = log
        .append(&build_trigger(&build_ticket_key(1), "comment:1"))
        .await
        .unwrap();
    assert_eq!(again, AppendOutcome::Known(sequence));
    assert!(matches!(
        log.append(&build_trigger(&build_ticket_key(2), "comment:1"))
            .await
            .unwrap(),
        AppendOutcome::New(_)
    ));
    assert_eq!(
        log.read_after(&build_ticket_key(1), 0).await.unwrap(),
        [(sequence, build_trigger(&build_ticket_key(1), "comment:1"))]
    );
}

#[tokio::test]
async fn concurrent_appends_of_key_store_one() {
    let world = World::new().await;
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let log = world.queue.triggers();
            tokio::spawn(async move {
                log.append(&build_trigger(&build_ticket_key(1), "comment:1"))
                    .await
                    .unwrap()
            })
        })
        .collect();
    let outcomes: Vec<AppendOutcome> = futures::future::join_all(tasks)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let new: Vec<_> = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, AppendOutcome::New(_)))
        .collect();
    assert_eq!(new.len(), 1, "{outcomes:?}");
    assert_eq!(
        world
            .queue
            .triggers()
            .read_after(&build_ticket_key(1), 0)
            .await
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test]
async fn read_returns_ticket_records_after_cursor() {
    let world = World::new().await;
    let log = world.queue.triggers();
    assert_eq!(log.read_after(&build_ticket_key(1), 0).await.unwrap(), []);
    assert_eq!(log.last_sequence(&build_ticket_key(1)).await.unwrap(), None);
    let mut sequences = Vec::new();
    for number in 0..600 {
        let AppendOutcome::New(sequence) = log
            .append(&build_trigger(&build_ticket_key(1), &format!("comment:{number}")))
            .await
            .unwrap()
        else {
            panic!("the key was new")
        };
        sequences.push(sequence);
        if number % 10 == 0 {
            log.append(&build_trigger(
                &build_ticket_key(12),
                &format!("comment:{number}"),
            ))
            .await
            .unwrap();
        }
    }
    let all = log.read_after(&build_ticket_key(1), 0).await.unwrap();
    assert_eq!(
        all.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(),
        sequences
    );
    let rest = log
        .read_after(&build_ticket_key(1), sequences[597])
        .await
        .unwrap();
    assert_eq!(rest.len(), 2);
    assert_eq!(
        log.read_after(&build_ticket_key(1), sequences[599])
            .await
            .unwrap(),
        []
    );
    assert_eq!(
        log.last_sequence(&build_ticket_key(1)).await.unwrap(),
        Some(sequences[599])
    );
    for cursor in [0, sequences[597], sequences[599]] {
        let expected = log.read_expected_after(&build_ticket_key(1), cursor).await;
        let read = log.read_each_after(&build_ticket_key(1), cursor).await;
        assert_eq!(expected.unwrap(), read.unwrap());
    }
}

#[tokio::test]
async fn expected_records_are_read_by_one_request() {
    const READS: u64 = 20;
    let world = World::new().await;
    let log = world.queue.triggers();
    for key in ["comment:1", "comment:2"] {
        world.trigger(1, key).await;
    }
    // The first reads ask for the configuration of the stream in the background.
    await_soon(async {
        loop {
            let before = world.count_received_messages().await;
            for _ in 0..READS {
                let read = log.read_expected_after(&build_ticket_key(1), 0).await.unwrap();
                assert_eq!(read.len(), 2);
            }
            if world.count_received_messages().await - before < READS * 2 - 5 {
                return;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn one_token_per_ticket_is_outstanding() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    log.wake(&build_ticket_key(1)).await.unwrap();
    log.wake(&build_ticket_key(1)).await.unwrap();
    let first = await_soon(tokens.next()).await.unwrap();
    assert_eq!(first.ticket(), &build_ticket_key(1));
    log.wake(&build_ticket_key(1)).await.unwrap();
    assert!(stays_away(tokens.next()).await);

    let fence = first.fence();
    first.finish().await.unwrap();
    assert!(stays_away(tokens.next()).await);
    log.wake(&build_ticket_key(1)).await.unwrap();
    let second = await_soon(tokens.next()).await.unwrap();
    assert!(second.fence() > fence);
}

#[tokio::test]
async fn held_token_does_not_delay_other_tickets() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    log.wake(&build_ticket_key(1)).await.unwrap();
    log.wake(&build_ticket_key(2)).await.unwrap();
    let first = await_soon(tokens.next()).await.unwrap();
    let second = await_soon(tokens.next()).await.unwrap();
    assert_eq!(
        (first.ticket(), second.ticket()),
        (&build_ticket_key(1), &build_ticket_key(2))
    );
}

#[tokio::test]
async fn released_token_returns_with_higher_fence() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    log.wake(&build_ticket_key(1)).await.unwrap();
    let first = await_soon(tokens.next()).await.unwrap();
    let FenceStamp {
        epoch,
        sequence,
        delivered,
    } = first.fence().stamp();
    assert_eq!((epoch, delivered), (1, 1));
    first.release().await;
    let again = await_soon(tokens.next()).await.unwrap();
    assert_eq!(again.fence(), RunFence::new(epoch, sequence, 2));
}

#[tokio::test]
async fn held_token_reports_progress_until_drop() {
    let world = World::new().await;
    let client = async_nats::connect(world.server.url()).await.unwrap();
    let mut acks = client.subscribe("$JS.ACK.WAKEUPS.>").await.unwrap();
    client.flush().await.unwrap();
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    for number in [1, 2] {
        log.wake(&build_ticket_key(number)).await.unwrap();
    }
    await_soon(tokens.next()).await.unwrap().abandon();
    let kept = await_soon(tokens.next()).await.unwrap();
    let progress = await_soon(acks.next()).await.unwrap();
    assert_eq!(progress.payload, "+WPI");
    let stream_sequence = progress.subject.split('.').nth(5).unwrap();
    assert_eq!(stream_sequence, kept.fence().stamp().sequence.to_string());
}

#[tokio::test]
async fn abandoned_or_dropped_token_stays_outstanding() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    for number in [1, 2] {
        log.wake(&build_ticket_key(number)).await.unwrap();
    }
    await_soon(tokens.next()).await.unwrap().abandon();
    drop(await_soon(tokens.next()).await.unwrap());
    assert!(stays_away(tokens.next()).await);
    let mut wakeups = world.raw().await.get_stream("WAKEUPS").await.unwrap();
    assert_eq!(wakeups.info().await.unwrap().state.messages, 2);
}

#[tokio::test]
async fn the_waker_turns_appends_into_tokens() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    world.trigger(1, "comment:1").await;
    let waker = tokio::spawn({
        let (log, shutdown) = (log.clone(), world.shutdown.clone());
        async move { log.run_waker(shutdown).await }
    });
    let token = await_soon(tokens.next()).await.unwrap();
    assert_eq!(token.ticket(), &build_ticket_key(1));
    token.finish().await.unwrap();
    world.trigger(2, "comment:1").await;
    assert_eq!(
        await_soon(tokens.next()).await.unwrap().ticket(),
        &build_ticket_key(2)
    );
    world.shutdown.cancel();
    await_soon(waker).await.unwrap().unwrap();
    assert!(await_soon(tokens.next()).await.is_none());
}

#[tokio::test]
async fn reports_have_tokens_of_their_own() {
    let world = World::new().await;
    let log = world.queue.reports();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    let mut others = world
        .queue
        .triggers()
        .tokens(world.shutdown.clone())
        .await
        .unwrap();
    log.append(&build_outbound_request(&build_ticket_key(1), 5))
        .await
        .unwrap();
    assert!(matches!(
        log.append(&build_outbound_request(&build_ticket_key(1), 5))
            .await
            .unwrap(),
        AppendOutcome::Known(_)
    ));
    let waker = log.clone();
    let shutdown = world.shutdown.clone();
    tokio::spawn(async move { waker.run_waker(shutdown).await });
    let token: WakeupToken<domain::OutboundRequest> = await_soon(tokens.next()).await.unwrap();
    assert_eq!(token.ticket(), &build_ticket_key(1));
    assert_eq!(
        log.read_after(&build_ticket_key(1), 0).await.unwrap()[0].1,
        build_outbound_request(&build_ticket_key(1), 5)
    );
    assert!(stays_away(others.next()).await);
}

#[tokio::test]
async fn due_timer_wakes_ticket_unless_replaced() {
    let world = World::new().await;
    let log = world.queue.triggers();
    let timers = world.queue.timers();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    tokio::spawn({
        let (log, shutdown) = (log.clone(), world.shutdown.clone());
        async move { log.run_waker(shutdown).await }
    });
    timers
        .set(&build_ticket_key(1), read_wall_clock().plus_ms(1_000))
        .await
        .unwrap();
    timers
        .set(&build_ticket_key(1), read_wall_clock().plus_ms(3_600_000))
        .await
        .unwrap();
    timers
        .set(&build_ticket_key(2), read_wall_clock().plus_ms(1_500))
        .await
        .unwrap();
    timers
        .set(&build_ticket_key(3), read_wall_clock().plus_ms(-60_000))
        .await
        .unwrap();
    let mut woken = Vec::new();
    for _ in 0..2 {
        let token = await_soon(tokens.next()).await.unwrap();
        woken.push(token.ticket().clone());
        token.finish().await.unwrap();
    }
    woken.sort();
    assert_eq!(woken, [build_ticket_key(2), build_ticket_key(3)]);
    assert!(stays_away(tokens.next()).await);
}

#[tokio::test]
async fn watch_notifies_of_its_ticket_only() {
    let world = World::new().await;
    let log = world.queue.triggers();
    world.trigger(1, "comment:1").await;
    let mut watch = log.watch(&build_ticket_key(1)).await.unwrap();
    world.trigger(2, "comment:1").await;
    world.trigger(1, "comment:1").await;
    assert!(stays_away(watch.changed()).await);
    world.trigger(1, "comment:2").await;
    await_soon(watch.changed()).await;
    assert_eq!(log.read_after(&build_ticket_key(1), 0).await.unwrap().len(), 2);
    assert!(stays_away(watch.changed()).await);
}

#[tokio::test]
async fn acknowledged_append_is_news_at_once() {
    let world = World::new().await;
    let mut watch = world.queue.triggers().watch(&build_ticket_key(1)).await.unwrap();
    // The acknowledgement of another ticket's record follows all earlier notifications.
    world.trigger(2, "comment:1").await;
    assert!(!watch.has_news());
    world.trigger(1, "comment:1").await;
    assert!(watch.has_news());
    await_soon(watch.changed()).await;
    assert!(!watch.has_news());
}

#[tokio::test]
async fn notification_is_news_until_its_record() {
    let world = World::new().await;
    let client = async_nats::connect(world.server.url()).await.unwrap();
    let mut appends = client.subscribe("journeyman.triggers.>").await.unwrap();
    // The answer shows that the server has the subscription, which precedes the request on this connection.
    client.request("$JS.API.INFO", "".into()).await.unwrap();
    world.trigger(1, "comment:1").await;
    let stored_subject = await_soon(appends.next()).await.unwrap().subject.to_string();
    let (of_ticket, _) = stored_subject.rsplit_once('.').unwrap();
    let publish_after = async |last: &str| {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", last);
        let subject = format!("{of_ticket}.late");
        let request = async_nats::Request::new().headers(headers).payload("{}".into());
        client.send_request(subject, request).await.unwrap();
    };
    let mut watch = world.queue.triggers().watch(&build_ticket_key(1)).await.unwrap();
    // The subject has no message, so the server refuses one after sequence 1: the notification precedes its record.
    publish_after("1").await;
    for _ in 0..2 {
        assert!(stays_away(watch.changed()).await);
        assert!(watch.has_news());
    }
    publish_after("0").await;
    await_soon(watch.changed()).await;
    assert!(stays_away(watch.changed()).await);
    assert!(!watch.has_news());
}

#[tokio::test]
async fn canceled_waits_lose_no_append() {
    let world = World::new().await;
    let mut watch = world.queue.triggers().watch(&build_ticket_key(1)).await.unwrap();
    for number in 1..=3 {
        world.trigger(1, &format!("comment:{number}")).await;
        let noticed = async {
            let mut wait = Duration::from_millis(1);
            while timeout(wait, watch.changed()).await.is_err() {
                wait += Duration::from_millis(1);
            }
        };
        await_soon(noticed).await;
    }
}

#[tokio::test]
async fn tokens_survive_a_restart_of_the_server() {
    let mut world = World::new().await;
    let log = world.queue.triggers();
    let mut tokens = log.tokens(world.shutdown.clone()).await.unwrap();
    world.server.restart().await.unwrap();
    log.wake(&build_ticket_key(1)).await.unwrap();
    let token = await_soon(tokens.next()).await.unwrap();
    assert_eq!(token.fence().stamp().epoch, 1);
}
