//! NATS users of the services: each can do its part and is refused everything else.

use std::time::Duration;

use async_nats::{ConnectOptions, Event};
use domain::{
    CredentialEnd, CredentialEnds, MaintenanceOrder, MaintenanceOutcome, MaintenanceTask, RecordKind,
    cause::format_error_chain,
};
use futures::StreamExt as _;
use queue::{
    DeadLetter, DeliveryDisposition, KeyValueBucket, NatsIdentity, NatsRole, Queue, Settings,
    render_authorization,
};
use secrecy::ExposeSecret as _;
use servers::{NatsOptions, NatsServer};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::world::{
    Text, World, await_soon, build_delivery, build_entry, build_outbound_request, build_run_id, build_text,
    build_ticket_key, build_trigger,
};

struct Users {
    server: NatsServer,
    identities: [(NatsRole, NatsIdentity); 4],
}

impl Users {
    async fn start() -> Self {
        let identities = NatsRole::ALL.map(|role| (role, NatsIdentity::generate()));
        let users = identities
            .each_ref()
            .map(|(role, identity)| (*role, identity.public_key.as_str()));
        let server = NatsServer::start_with(NatsOptions {
            authorization: Some(render_authorization(&users)),
            ..NatsOptions::default()
        });
        Self {
            server: server.await.unwrap(),
            identities,
        }
    }

    fn seed(&self, role: NatsRole) -> secrecy::SecretString {
        let mut all = self.identities.iter();
        all.find(|(other, _)| *other == role).unwrap().1.seed.clone()
    }

    async fn queue(&self, role: NatsRole) -> Queue {
        let settings = Settings {
            url: self.server.url(),
            nkey_seed: Some(self.seed(role)),
            ..Settings::default()
        };
        Queue::connect(&settings, role.name()).await.unwrap()
    }

    /// Plain NATS client with the role's identity, and the errors that the server sends it.
    async fn raw(&self, role: NatsRole) -> (async_nats::Client, mpsc::UnboundedReceiver<String>) {
        let (sender, refusals) = mpsc::unbounded_channel();
        let options = ConnectOptions::new()
            .custom_inbox_prefix(format!("_INBOX.{}", role.name()))
            .nkey(self.seed(role).expose_secret().to_owned())
            .event_callback(move |event| {
                let sender = sender.clone();
                async move {
                    if let Event::ServerError(error) = event {
                        let _ = sender.send(error.to_string());
                    }
                }
            });
        (options.connect(self.server.url()).await.unwrap(), refusals)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_service_works_with_its_user() {
    let users = Users::start().await;
    let [ingest, planner, reporter] = [
        users.queue(NatsRole::Ingest).await,
        users.queue(NatsRole::Planner).await,
        users.queue(NatsRole::Reporter).await,
    ];
    assert!(
        ingest.check_topology(NatsRole::Ingest).await.is_err(),
        "nothing is there yet"
    );
    reporter.ensure_topology().await.unwrap();
    reporter.ensure_topology().await.unwrap();
    ingest.check_topology(NatsRole::Ingest).await.unwrap();
    planner.check_topology(NatsRole::Planner).await.unwrap();
    let stop = CancellationToken::new();
    check_deliveries(&ingest, &stop).await;
    exercise_planner_work(&ingest, &planner, &stop).await;
    exercise_reports(&planner, &reporter, &stop).await;
    check_credential_ends(&ingest, &reporter).await;
    exercise_maintenance(&ingest, &reporter, &stop).await;
    stop.cancel();
}

/// Checks that each service replaces its own record of credential expiry and keeps the other's.
async fn check_credential_ends(ingest: &Queue, reporter: &Queue) {
    let record = |kind: &str, day: &[&str]| CredentialEnds {
        ends: Vec::from_iter(day.iter().map(|day| CredentialEnd {
            kind: kind.to_owned(),
            instance: None,
            ends: domain::Timestamp::parse(&format!("{day}T00:00:00Z")).unwrap(),
        })),
    };
    let reader = record("jira_reader", &["2027-03-01"]);
    ingest
        .publish_credential_ends(NatsRole::Ingest, &reader)
        .await
        .unwrap();
    for days in [&["2027-01-31", "2027-02-28"][..], &[], &["2027-01-31"]] {
        let writer = record("jira_writer", days);
        reporter
            .publish_credential_ends(NatsRole::Reporter, &writer)
            .await
            .unwrap();
        let all = ingest.credential_ends().await.unwrap();
        assert_eq!(all, [writer.ends, reader.ends.clone()].concat());
    }
}

async fn check_deliveries(ingest: &Queue, stop: &CancellationToken) {
    // Larger than a message, so it uses the object store.
    let mut large = build_delivery("large");
    large.body = vec![b'x'; 600 * 1024].into();
    assert!(ingest.deliveries().publish(&large).await.unwrap());
    let (sender, mut handled) = mpsc::unbounded_channel();
    let (queue, stop) = (ingest.deliveries(), stop.clone());
    tokio::spawn(async move {
        let handler = move |delivery: queue::WebhookDelivery| {
            let sender = sender.clone();
            async move {
                let _ = sender.send(delivery.body.len());
                DeliveryDisposition::Reject {
                    reason: "for the dead letters".to_owned(),
                }
            }
        };
        queue.consume(1, stop, handler).await
    });
    assert_eq!(await_soon(handled.recv()).await, Some(600 * 1024));
}

async fn exercise_planner_work(ingest: &Queue, planner: &Queue, stop: &CancellationToken) {
    let (triggers, shutdown) = (ingest.triggers(), stop.clone());
    tokio::spawn(async move { triggers.run_waker(shutdown).await });
    let ticket = build_ticket_key(1);
    let mut watch = planner.triggers().watch(&ticket).await.unwrap();
    ingest
        .triggers()
        .append(&build_trigger(&ticket, "one"))
        .await
        .unwrap();
    await_soon(watch.changed()).await;
    let mut tokens = planner.triggers().tokens(stop.clone()).await.unwrap();
    let token = await_soon(tokens.next()).await.unwrap();
    assert_eq!(planner.triggers().read_after(&ticket, 0).await.unwrap().len(), 1);
    let run = build_run_id(1);
    planner
        .journal()
        .append(&run, 0, &build_entry(0, "nonce"))
        .await
        .unwrap();
    let rows = planner.table::<Text>(KeyValueBucket::Tickets);
    rows.put("jira:ENG-1", &build_text("row"), None).await.unwrap();
    let slots = planner.table::<Text>(KeyValueBucket::Slots);
    slots.put("pool", &build_text("waiting"), None).await.unwrap();
    let pools = planner.table::<Text>(KeyValueBucket::Pools);
    let seen = pools.put("pool", &build_text("seen"), None).await.unwrap();
    pools
        .put("pool", &build_text("seen again"), Some(seen))
        .await
        .unwrap();
    assert_eq!(
        ingest
            .table::<Text>(KeyValueBucket::Pools)
            .list()
            .await
            .unwrap()
            .len(),
        1
    );
    planner
        .timers()
        .set(&ticket, domain::Timestamp::from_unix_ms(1))
        .await
        .unwrap();
    assert!(
        planner
            .table::<Text>(KeyValueBucket::Control)
            .get("stop-all")
            .await
            .unwrap()
            .is_none()
    );
    token.finish().await.unwrap();
    let mut live = ingest.journal().follow_newest(&run).await.unwrap();
    assert_eq!(await_soon(live.next()).await.unwrap().unwrap().position, 0);
    let mut printed = ingest.live().follow(&run).await.unwrap();
    // The server knows the subscription once it answers.
    ingest.ping().await.unwrap();
    let output = domain::LiveOutput {
        call: run.call(1),
        text: "hello".to_owned(),
    };
    planner.live().publish(&run, &output).await.unwrap();
    assert_eq!(await_soon(printed.next()).await, Some(output));
    assert_eq!(
        ingest
            .table::<Text>(KeyValueBucket::Tickets)
            .list()
            .await
            .unwrap()
            .len(),
        1
    );
}

async fn exercise_reports(planner: &Queue, reporter: &Queue, stop: &CancellationToken) {
    let pack = vec![7; 3 * 1024 * 1024];
    let object = planner.objects().put(pack.clone().into()).await.unwrap();
    assert_eq!(planner.objects().put(pack.clone().into()).await.unwrap(), object);
    assert_eq!(reporter.objects().get(&object).await.unwrap(), pack);
    let (log, shutdown) = (reporter.reports(), stop.clone());
    tokio::spawn(async move { log.run_waker(shutdown).await });
    planner
        .reports()
        .append(&build_outbound_request(&build_ticket_key(1), 1))
        .await
        .unwrap();
    let mut tokens = reporter.reports().tokens(stop.clone()).await.unwrap();
    let token = await_soon(tokens.next()).await.unwrap();
    for bucket in [
        KeyValueBucket::Effects,
        KeyValueBucket::Branches,
        KeyValueBucket::PullRequests,
    ] {
        let table = reporter.table::<Text>(bucket);
        let revision = table.put("key", &build_text("value"), None).await.unwrap();
        table
            .put("key", &build_text("other"), Some(revision))
            .await
            .unwrap();
    }
    reporter
        .triggers()
        .append(&build_trigger(&build_ticket_key(1), "settled"))
        .await
        .unwrap();
    let letter = DeadLetter {
        what: RecordKind::Report,
        id: "one".to_owned(),
        ticket: None,
        reason: "a test".to_owned(),
        at: domain::Timestamp::default(),
    };
    reporter
        .dead_letters()
        .publish(&letter, "body".into())
        .await
        .unwrap();
    let row = DeadLetter {
        what: RecordKind::Row,
        ..letter
    };
    planner.dead_letters().publish(&row, "body".into()).await.unwrap();
    token.finish().await.unwrap();
}

async fn exercise_maintenance(ingest: &Queue, reporter: &Queue, stop: &CancellationToken) {
    let letters = ingest.dead_letters();
    let listed = letters.list(10).await.unwrap();
    assert!(listed.len() >= 2, "{listed:?}");
    let (sequence, _) = listed
        .iter()
        .find(|(_, letter)| letter.what == RecordKind::Report)
        .unwrap();
    let control = ingest.table::<Text>(KeyValueBucket::Control);
    control.put("stop-all", &build_text("on"), None).await.unwrap();
    control.delete("stop-all").await.unwrap();
    ingest.reports().wake(&build_ticket_key(1)).await.unwrap();
    let (worker, shutdown) = (
        reporter.maintenance_worker(|| domain::Timestamp::from_unix_ms(1_000)),
        stop.clone(),
    );
    tokio::spawn(async move { worker.run(shutdown).await });
    let drop_letter = MaintenanceTask::DropLetter { letter: *sequence };
    let done = MaintenanceOutcome::Done;
    assert_eq!(
        complete_maintenance_order(ingest, "one", drop_letter.clone()).await,
        done
    );
    assert_eq!(
        complete_maintenance_order(ingest, "two", drop_letter).await,
        MaintenanceOutcome::Missing
    );
    let forget = MaintenanceTask::ForgetTicket {
        ticket: build_ticket_key(1),
    };
    assert_eq!(complete_maintenance_order(ingest, "three", forget).await, done);
    assert_eq!(
        ingest
            .triggers()
            .last_sequence(&build_ticket_key(1))
            .await
            .unwrap(),
        None
    );
    let far = domain::Timestamp::parse("2100-01-01T00:00:00Z").unwrap();
    reporter.objects().remove_superseded().await.unwrap();
    let search = reporter.objects().unreferenced(far, 0).await.unwrap();
    for garbage in &search.garbage {
        assert!(reporter.objects().remove(garbage).await.unwrap());
    }
    assert!(!search.garbage.is_empty());
    reporter.objects().remove_torn(far).await.unwrap();
    reporter.journal().expire(far).await.unwrap();
    let singleton = reporter.singleton(queue::UPKEEP, Duration::from_secs(5));
    let (begun, shutdown) = (CancellationToken::new(), stop.child_token());
    let (started, ended) = (begun.clone(), shutdown.clone());
    let held = tokio::spawn(async move {
        singleton
            .run(ended, || {
                started.cancel();
                std::future::pending()
            })
            .await;
    });
    await_soon(begun.cancelled()).await;
    shutdown.cancel();
    held.await.unwrap();
}

#[tokio::test]
async fn ticket_of_a_newer_release_is_not_forgotten() {
    let world = World::new().await;
    let rows = world.queue.table::<domain::AnyRecord>(KeyValueBucket::Tickets);
    let record = |format: u64| -> domain::AnyRecord {
        serde_json::from_value(serde_json::json!({ "version": format, "runs": "x" })).unwrap()
    };
    rows.put(&build_ticket_key(1).to_string(), &record(99), None)
        .await
        .unwrap();
    rows.put(&build_ticket_key(2).to_string(), &record(1), None)
        .await
        .unwrap();
    let worker = world
        .queue
        .maintenance_worker(|| domain::Timestamp::from_unix_ms(1_000));
    let stop = CancellationToken::new();
    let shutdown = stop.clone();
    let working = tokio::spawn(async move { worker.run(shutdown).await });
    let forget = |number| MaintenanceTask::ForgetTicket {
        ticket: build_ticket_key(number),
    };
    let outcome = complete_maintenance_order(&world.queue, "newer", forget(1)).await;
    assert!(
        matches!(&outcome, MaintenanceOutcome::Refused { reason } if reason.contains("upgrade")),
        "{outcome:?}"
    );
    // A corrupt row prevents nothing.
    assert_eq!(
        complete_maintenance_order(&world.queue, "corrupt", forget(2)).await,
        MaintenanceOutcome::Done
    );
    stop.cancel();
    working.await.unwrap().unwrap();
}

async fn complete_maintenance_order(ingest: &Queue, id: &str, task: MaintenanceTask) -> MaintenanceOutcome {
    let orders = ingest.maintenance_orders();
    let order = MaintenanceOrder {
        id: id.to_owned(),
        at: domain::Timestamp::from_unix_ms(1_000),
        by: "ops".to_owned(),
        task,
    };
    orders.ask(&order).await.unwrap();
    let answered = async {
        loop {
            if let Some(outcome) = orders.outcome(id).await.unwrap() {
                return outcome;
            }
            tokio::task::yield_now().await;
        }
    };
    await_soon(answered).await
}

/// A rollup replaces all other messages without the right to purge.
#[tokio::test(flavor = "multi_thread")]
async fn rollup_cannot_empty_bucket_or_objects() {
    let users = Users::start().await;
    let reporter = users.queue(NatsRole::Reporter).await;
    reporter.ensure_topology().await.unwrap();
    let object = reporter.objects().put("kept".into()).await.unwrap();
    let far = domain::Timestamp::parse("2100-01-01T00:00:00Z").unwrap();
    let long_ago = domain::Timestamp::from_unix_ms(0);
    assert!(
        !reporter.forbid_rollups(long_ago).await.unwrap(),
        "it was made after that"
    );
    assert!(reporter.forbid_rollups(far).await.unwrap());
    assert!(reporter.forbid_rollups(long_ago).await.unwrap(), "it stays so");
    reporter.ensure_topology().await.unwrap();
    for (role, subject) in [
        (NatsRole::Ingest, "$O.objects.C.x"),
        (NatsRole::Planner, "$O.objects.M.x"),
        (NatsRole::Ingest, "$KV.control.x"),
        (NatsRole::Planner, "$KV.control.newer=3Atrigger"),
    ] {
        let (client, _refusals) = users.raw(role).await;
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Nats-Rollup", "all");
        let context = async_nats::jetstream::new(client);
        let sent = context.publish_with_headers(subject, headers, "{}".into());
        let refused = format_error_chain(&sent.await.unwrap().await.unwrap_err());
        assert!(refused.contains("rollup"), "{subject}: {refused}");
    }
    assert_eq!(reporter.objects().get(&object).await.unwrap(), "kept");
    let again = reporter.objects().put("kept".into()).await.unwrap();
    assert_eq!(again, object);
    assert_eq!(reporter.objects().remove_superseded().await.unwrap(), 1);
    assert_eq!(reporter.objects().get(&object).await.unwrap(), "kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_service_can_do_anothers_part() {
    let users = Users::start().await;
    users
        .queue(NatsRole::Reporter)
        .await
        .ensure_topology()
        .await
        .unwrap();
    let everybody = [
        "$JS.API.STREAM.DELETE.JOURNAL",
        "$JS.API.STREAM.PURGE.OBJ_objects",
        "$JS.API.CONSUMER.DELETE.WAKEUPS.planners",
        "$SYS.REQ.SERVER.PING",
    ];
    let cases: [(NatsRole, &[&str]); 3] = [
        (
            NatsRole::Ingest,
            &[
                "journeyman.journal.x",
                "journeyman.reports.x.y",
                "journeyman.dead.report.x",
                "journeyman.dead.ledger.x",
                "$KV.tickets.x",
                "$KV.effects.x",
                "$KV.branches.x",
                "$KV.pull-requests.x",
                "$KV.slots.x",
                "$KV.pools.x",
                "$JS.API.STREAM.CREATE.OTHER",
                "$JS.API.STREAM.UPDATE.TRIGGERS",
                "$JS.API.CONSUMER.CREATE.REPORTS.x",
                "$JS.API.CONSUMER.MSG.NEXT.WAKEUPS.planners",
                "$JS.API.STREAM.PURGE.TRIGGERS",
                "$JS.API.STREAM.PURGE.REPORTS",
                "$JS.API.STREAM.PURGE.JOURNAL",
                "$JS.API.STREAM.PURGE.DELIVERIES",
                "$JS.API.STREAM.PURGE.KV_effects",
                "$JS.API.STREAM.PURGE.KV_control",
                "$JS.API.STREAM.MSG.DELETE.DEAD",
                "$JS.API.STREAM.MSG.DELETE.JOURNAL",
                "$JS.API.STREAM.MSG.DELETE.OBJ_objects",
                "_INBOX.planner.x",
            ],
        ),
        (
            NatsRole::Planner,
            &[
                "journeyman.deliveries.github",
                "journeyman.triggers.x.y",
                "journeyman.report-wakeups.x",
                "journeyman.dead.report.x",
                "$KV.effects.x",
                "$KV.branches.x",
                "$KV.pull-requests.x",
                "$KV.control.stop-all",
                "$KV.control.epoch=3AREPORT=5FWAKEUPS",
                "$KV.control.credentials=3Areporter",
                "$JS.API.STREAM.MSG.GET.KV_effects",
                "$JS.API.DIRECT.GET.DELIVERIES",
                "$JS.API.STREAM.PURGE.JOURNAL",
                "$JS.API.STREAM.MSG.DELETE.JOURNAL",
                "$JS.API.STREAM.UPDATE.TRIGGERS",
                "$JS.API.CONSUMER.CREATE.OBJ_objects.x",
                "$JS.ACK.DELIVERIES.router.1.1.1.1.1",
                "_INBOX.reporter.x",
            ],
        ),
        (
            NatsRole::Reporter,
            &[
                "journeyman.deliveries.github",
                "journeyman.journal.x",
                "journeyman.wakeups.x",
                "journeyman.timers.set.x",
                "$KV.tickets.x",
                "$KV.slots.x",
                "$KV.pools.x",
                "$KV.control.stop-all",
                "$KV.control.credentials=3Aingest",
                "$KV.control.maintenance-order.id.x",
                "$JS.API.STREAM.PURGE.DELIVERIES",
                "$JS.API.STREAM.MSG.DELETE.JOURNAL",
                "$JS.API.CONSUMER.MSG.NEXT.DELIVERIES.router",
                "_INBOX.ingest.x",
            ],
        ),
    ];
    for (role, own) in cases {
        let (client, mut refusals) = users.raw(role).await;
        for subject in own.iter().chain(&everybody) {
            client.publish(*subject, "{}".into()).await.unwrap();
            let refused = await_soon(refusals.recv()).await.unwrap();
            assert!(refused.contains(subject), "{}: {refused}", role.name());
        }
        for subject in [">", "journeyman.reports.>", "$KV.>", "_INBOX.>", "$JS.ACK.>"] {
            let _heard = client.subscribe(subject).await.unwrap();
            let refused = await_soon(refusals.recv()).await.unwrap();
            assert!(refused.contains(subject), "{}: {refused}", role.name());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_nobody_gets_in() {
    let users = Users::start().await;
    let anonymous = Settings {
        url: users.server.url(),
        ..Settings::default()
    };
    let refused = Queue::connect(&anonymous, "stranger").await;
    let refused = format_error_chain(&refused.map(drop).unwrap_err());
    assert!(refused.contains("authorization"), "{refused}");
    let stranger = Settings {
        url: users.server.url(),
        nkey_seed: Some(NatsIdentity::generate().seed),
        ..Settings::default()
    };
    assert!(Queue::connect(&stranger, "ingest").await.is_err());
    // An invalid seed is an error, not a panic.
    let nonsense = Settings {
        url: users.server.url(),
        nkey_seed: Some("nonsense".into()),
        ..Settings::default()
    };
    let refused = await_soon(Queue::connect(&nonsense, "ingest"));
    assert!(refused.await.is_err());
}
