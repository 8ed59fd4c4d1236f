//! Unreadable records: one hides no other, and each can be inspected and repaired.

use bootstrap::read_wall_clock;
use domain::{
    BranchRecord, Fact, JournalEntry, OutboundId, RecordKind, ServiceOrigin, StopReason, TicketKey, TicketRow,
};
use futures::StreamExt as _;
use queue::{DeadLetter, DeliveryDisposition, Error, FoundValue, KeyValueBucket, RecordKey, WebhookDelivery};
use tokio_util::sync::CancellationToken;

use crate::world::{
    World, await_soon, build_entry, build_outbound_request, build_run_id, build_ticket_key, build_trigger,
};

async fn plant_message(world: &World, subject: &str, bytes: &'static str) {
    let raw = world.raw().await;
    let ack = raw.publish(subject.to_owned(), bytes.into()).await.unwrap();
    ack.await.unwrap();
}

fn build_dead_letter(ticket: &TicketKey) -> DeadLetter {
    DeadLetter {
        what: RecordKind::Ticket,
        id: format!("{ticket} at 1"),
        ticket: Some(ticket.clone()),
        reason: "not readable".to_owned(),
        at: read_wall_clock(),
    }
}

#[tokio::test]
async fn unreadable_record_hides_none_and_revives() {
    let world = World::new().await;
    let (log, letters) = (world.queue.triggers(), world.queue.dead_letters());
    plant_message(
        &world,
        "journeyman.triggers.jira=3AENG-1.x",
        r#"{"type":"tomorrow"}"#,
    )
    .await;
    world.trigger(1, "comment:1").await;
    let read = log.read_each_after(&build_ticket_key(1), 0).await.unwrap();
    let unreadable = read[0].1.clone().unwrap_err();
    assert_eq!((read.len(), read[1].1.is_ok()), (2, true));
    assert_eq!(unreadable.bytes(), r#"{"type":"tomorrow"}"#);
    assert!(
        unreadable
            .problem()
            .starts_with("TRIGGERS at 1 is not readable: "),
        "{}",
        unreadable.problem()
    );

    let whole = log.read_after(&build_ticket_key(1), 0).await.unwrap_err();
    assert!(matches!(whole, Error::Corrupt { .. }) && whole.to_string() == unreadable.problem());

    let about = Some(build_ticket_key(1));
    let letter = DeadLetter::about(
        &unreadable,
        RecordKind::Trigger,
        "it",
        about,
        "look at it",
        read_wall_clock(),
    );
    assert_eq!(letter.reason, format!("{}; look at it", unreadable.problem()));
    for _ in 0..2 {
        letters.publish_unreadable(&letter, &unreadable).await.unwrap();
    }
    let listed = letters.list(10).await.unwrap();
    assert_eq!(listed.len(), 1, "buried twice, it is one letter");
    assert_eq!(listed[0].1, letter);
    assert_eq!(
        letters.get(listed[0].0).await.unwrap().unwrap().1,
        unreadable.bytes()
    );
    assert!(letters.revive(listed[0].0).await.unwrap());
    assert!(letters.list(10).await.unwrap().is_empty());
    let again = log
        .read_each_after(&build_ticket_key(1), read[1].0)
        .await
        .unwrap();
    assert_eq!(again[0].1.as_ref().unwrap_err().bytes(), unreadable.bytes());
}

#[tokio::test]
async fn unreadable_value_hides_none_and_is_replaceable() {
    let world = World::new().await;
    let table = world.queue.table::<TicketRow>(KeyValueBucket::Tickets);
    plant_message(&world, "$KV.tickets.a", "{").await;
    table.put("b", &TicketRow::default(), None).await.unwrap();
    assert!(matches!(table.get("a").await, Err(Error::Corrupt { .. })));
    let listed = table.list().await.unwrap();
    assert_eq!(listed, [(RecordKey::from("b"), TicketRow::default())]);
    let Some(FoundValue::Unreadable(unreadable)) = table.find("a").await.unwrap() else {
        panic!("it could be read")
    };
    table
        .put("a", &TicketRow::default(), Some(unreadable.revision()))
        .await
        .unwrap();
    assert_eq!(table.list().await.unwrap().len(), 2);
}

#[tokio::test]
async fn unreadable_delivery_is_dead_lettered() {
    let world = World::new().await;
    plant_message(&world, "journeyman.deliveries.jira", "no header").await;
    let good = WebhookDelivery {
        source: ServiceOrigin::GitHub(None),
        id: "d1".to_owned(),
        event: "push".to_owned(),
        received_at: read_wall_clock(),
        body: "{}".into(),
    };
    world.queue.deliveries().publish(&good).await.unwrap();
    let (stop, stopped) = (CancellationToken::new(), world.shutdown.child_token());
    let (handled, done) = (stop.clone(), stop.clone());
    let consumed = tokio::spawn({
        let deliveries = world.queue.deliveries();
        async move {
            deliveries
                .consume(1, stopped, move |delivery| {
                    assert_eq!(delivery.id, "d1");
                    handled.cancel();
                    async { DeliveryDisposition::Done }
                })
                .await
        }
    });
    await_soon(done.cancelled()).await;
    let listed = world.queue.dead_letters().list(10).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].1.what, RecordKind::Delivery);
    world.shutdown.cancel();
    await_soon(consumed).await.unwrap().unwrap();
}

#[tokio::test]
async fn unreadable_journal_does_not_stop_expiry() {
    let world = World::new().await;
    plant_message(&world, "journeyman.journal.jira=3AENG-1.57", "{").await;
    let over = JournalEntry {
        fact: Fact::RunFinished {
            reason: StopReason::Completed,
        },
        ..build_entry(0, "n")
    };
    world
        .queue
        .journal()
        .append(&build_run_id(2), 0, &over)
        .await
        .unwrap();
    assert!(matches!(
        world.queue.journal().read(&build_run_id(1)).await,
        Err(Error::Corrupt { .. })
    ));
    assert_eq!(world.queue.journal().expire(read_wall_clock()).await.unwrap(), 1);
    assert_eq!(
        world.queue.journal().runs_of(&build_ticket_key(1)).await.unwrap(),
        [build_run_id(1)]
    );
}

#[tokio::test]
async fn unreadable_letter_is_listed_and_removable() {
    let world = World::new().await;
    let letters = world.queue.dead_letters();
    plant_message(&world, "journeyman.dead.ticket.=", "whatever").await;
    letters
        .publish(&build_dead_letter(&build_ticket_key(1)), "{}".into())
        .await
        .unwrap();
    let listed = letters.list(10).await.unwrap();
    let kinds: Vec<&str> = listed.iter().map(|(_, letter)| letter.what.as_str()).collect();
    assert_eq!(kinds, ["letter", "ticket"]);
    assert!(letters.remove(listed[0].0).await.unwrap());
    assert_eq!(letters.list(10).await.unwrap().len(), 1);
}

/// Subjects under which the server stores messages.
async fn list_stored_subjects(world: &World) -> Vec<String> {
    let raw = world.raw().await;
    let mut found = Vec::new();
    let mut names = raw.stream_names();
    while let Some(name) = names.next().await {
        let stream = raw.get_stream(name.unwrap()).await.unwrap();
        let mut subjects = stream.info_with_subjects(">").await.unwrap();
        while let Some(subject) = subjects.next().await {
            found.push(subject.unwrap().0);
        }
    }
    found
}

#[tokio::test]
async fn deleted_ticket_leaves_no_subject() {
    let world = World::new().await;
    for number in [1, 11] {
        let (ticket, queue) = (build_ticket_key(number), &world.queue);
        queue
            .triggers()
            .append(&build_trigger(&ticket, "comment:1"))
            .await
            .unwrap();
        queue.triggers().wake(&ticket).await.unwrap();
        queue
            .reports()
            .append(&build_outbound_request(&ticket, 5))
            .await
            .unwrap();
        queue.reports().wake(&ticket).await.unwrap();
        queue
            .timers()
            .set(&ticket, read_wall_clock().plus_ms(3_600_000))
            .await
            .unwrap();
        queue
            .journal()
            .append(&build_run_id(number), 0, &build_entry(0, "n"))
            .await
            .unwrap();
        let rows = queue.table::<TicketRow>(KeyValueBucket::Tickets);
        rows.put(&ticket.to_string(), &TicketRow::default(), None)
            .await
            .unwrap();
        let record = BranchRecord {
            repository: "acme/shop".parse().unwrap(),
            branch: format!("feat/{}-x", ticket.short()),
            run: build_run_id(number),
            ticket: ticket.clone(),
            head: "0".repeat(40).parse().unwrap(),
            pull_request: None,
            signed: Vec::new(),
        };
        queue.branches().put(&record, None).await.unwrap();
        let effects = queue.table::<domain::AnyRecord>(KeyValueBucket::Effects);
        for key in [
            RecordKey::board(&ticket),
            RecordKey::status(&ticket),
            RecordKey::cursor(&ticket),
            RecordKey::outcome(&ticket, &build_run_id(number).call(2).into()),
            RecordKey::outcome(&ticket, &OutboundId::notice(&ticket, 5)),
            RecordKey::outcome(&ticket, &OutboundId::unreadable(RecordKind::Trigger, &ticket, 5)),
            RecordKey::effect(&ticket, build_run_id(number).call(2).as_str(), "comment"),
            RecordKey::effect(&ticket, OutboundId::quarantine(&ticket, 5).as_str(), "comment"),
        ] {
            effects
                .put(&key, &domain::AnyRecord::default(), None)
                .await
                .unwrap();
        }
        queue
            .dead_letters()
            .publish(&build_dead_letter(&ticket), "{}".into())
            .await
            .unwrap();
    }
    let named = |found: &[String], key: &str| found.iter().filter(|subject| subject.contains(key)).count();
    let before = list_stored_subjects(&world).await;
    assert_eq!((named(&before, "ENG-1"), named(&before, "ENG-11")), (2 * 17, 17));
    world.queue.forget_ticket(&build_ticket_key(1)).await.unwrap();
    let after = list_stored_subjects(&world).await;
    assert_eq!(
        (named(&after, "ENG-1"), named(&after, "ENG-11")),
        (17, 17),
        "{after:?}"
    );
    let letters = world.queue.dead_letters().list(10).await.unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0].1.ticket, Some(build_ticket_key(11)));
}
