//! Rolling restart of every service under load.

use std::{collections::BTreeMap, time::Duration};

use domain::TicketRow;
use e2e::{NoteTicket, Options, ServiceMode, TestWorld, WEBHOOK_SECRET, findings};
use testkit::{fixture, poll_until};
use tokio_util::sync::CancellationToken;

const TICKETS: usize = 8;
const THINKING: Duration = Duration::from_millis(300);
// Time limit for loaded machines, far below ten times the delay of a lost wake-up or lease.
const PATIENCE: Duration = Duration::from_secs(150);

/// Returns each ticket's takeovers without progress, from its row.
async fn count_takeovers(world: &TestWorld) -> BTreeMap<String, u32> {
    let queue = world.queue().await.unwrap();
    let rows = queue
        .table::<TicketRow>(queue::KeyValueBucket::Tickets)
        .list()
        .await
        .unwrap();
    rows.into_iter()
        .map(|(ticket, row)| (ticket.to_string(), row.takeovers))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rolling_restart_loses_and_doubles_nothing() {
    let mut world = TestWorld::start(Options {
        mode: ServiceMode::Processes,
        replicas: 2,
        settings: vec![("EXECUTOR__SLOTS", "16".to_owned())],
        rules: "agent: {review_status: In Review}\n".to_owned(),
        jira: NoteTicket::workflow(),
        ..Options::default()
    })
    .await
    .unwrap();
    world.model.set_latency(THINKING);
    world.model.repeat_after("was cut");
    let mut notes: Vec<NoteTicket> = (0..TICKETS)
        .map(|number| NoteTicket::ask(&world, number).unwrap())
        .collect();
    let names: Vec<String> = world.processes().unwrap().names().map(str::to_owned).collect();
    assert_eq!(names.len(), 10, "{names:?}");
    for name in names {
        let processes = world.processes().unwrap();
        processes.drain(&name).await.unwrap();
        processes.restart(&name).await.unwrap();
        NoteTicket::attend_all(&world, &mut notes).unwrap();
        let charged = count_takeovers(&world).await;
        assert!(charged.values().all(|count| *count <= 1), "{name}: {charged:?}");
    }
    let over = async || NoteTicket::attend_all(&world, &mut notes).unwrap().then_some(());
    poll_until("every ticket is merged and Done", PATIENCE, over)
        .await
        .unwrap();
    let problems = findings::find_outside_problems(&world, &notes.iter().collect::<Vec<_>>());
    assert!(problems.is_empty(), "{problems:#?}");
    assert_eq!(world.github.pull_requests(fixture::REPOSITORY).len(), TICKETS);
    assert_eq!(world.github.branches(fixture::REPOSITORY).len(), TICKETS + 1);
    world.stop().await.unwrap();
}

/// Sends signed webhooks until stopped. Returns their number and those that were not accepted.
async fn send_webhooks(
    url: String,
    client: reqwest::Client,
    stop: CancellationToken,
) -> (usize, Vec<String>) {
    let (mut sent, mut lost) = (0, Vec::new());
    while !stop.is_cancelled() {
        sent += 1;
        let id = format!("{:032x}", fastrand::u128(..));
        let body = format!("{{\"id\": \"{id}\"}}");
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, WEBHOOK_SECRET.as_bytes());
        let tag = ring::hmac::sign(&key, body.as_bytes());
        let tag = data_encoding::HEXLOWER.encode(tag.as_ref());
        let request = client
            .post(format!("{url}/webhooks/github"))
            .header("x-github-event", "star")
            .header("x-github-delivery", &id)
            .header("x-hub-signature-256", format!("sha256={tag}"));
        match request.body(body).send().await {
            Ok(answer) if answer.status() == 202 => {}
            Ok(answer) => lost.push(answer.status().to_string()),
            Err(error) => lost.push(format!("{error:?}")),
        }
    }
    (sent, lost)
}

#[tokio::test(flavor = "multi_thread")]
async fn ingest_replacement_loses_no_webhook() {
    let mut world = TestWorld::start(Options {
        mode: ServiceMode::Processes,
        replicas: 2,
        // Longer than the balancer takes to find a replica that drains: two pauses and two probes, 2.5 s.
        settings: vec![("INGEST__DRAIN_MS", "3000".to_owned())],
        ..Options::default()
    })
    .await
    .unwrap();
    let stop = CancellationToken::new();
    let mut senders = tokio::task::JoinSet::new();
    // New connections for each webhook, as GitHub has them, and persistent ones, as a load balancer has them.
    for kept in [0, 0, 1, 1] {
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(kept);
        let client = client.build().unwrap();
        senders.spawn(send_webhooks(world.url.clone(), client, stop.clone()));
    }
    for name in ["ingest", "ingest-2", "ingest", "ingest-2"] {
        let processes = world.processes().unwrap();
        processes.drain(name).await.unwrap();
        processes.restart(name).await.unwrap();
    }
    stop.cancel();
    let (mut sent, mut lost) = (0, Vec::new());
    while let Some(sender) = senders.join_next().await {
        let (some, not_accepted) = sender.unwrap();
        sent += some;
        lost.extend(not_accepted);
    }
    assert!(sent > 100, "{sent}");
    assert!(lost.is_empty(), "{} of {sent}: {lost:#?}", lost.len());
    world.stop().await.unwrap();
}
