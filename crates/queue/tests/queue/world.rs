//! Fixture: one server per test, and sample records.

use std::time::Duration;

use bootstrap::read_wall_clock;
use domain::{
    Fact, Job, JobRequest, JournalEntry, OutboundId, OutboundRequest, RunFence, RunId, ServiceOrigin,
    SkipReason, TicketKey, TicketText, Timestamp, Trigger, TriggerChannel, TriggerKey, TriggerReason, report,
};
use queue::{Queue, Settings, WebhookDelivery};
use servers::NatsServer;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Limit of every wait in these tests.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub(crate) server: NatsServer,
    pub(crate) queue: Queue,
    pub(crate) shutdown: CancellationToken,
}

impl World {
    pub(crate) async fn new() -> Self {
        let server = NatsServer::start().await.unwrap();
        let queue = open_queue(&build_server_settings(&server)).await;
        Self {
            server,
            queue,
            shutdown: CancellationToken::new(),
        }
    }

    /// Publishes a delivery with this id; false when it is known already.
    pub(crate) async fn deliver(&self, id: &str) -> bool {
        self.queue
            .deliveries()
            .publish(&build_delivery(id))
            .await
            .unwrap()
    }

    /// Appends a trigger with this key to the ticket with this number.
    pub(crate) async fn trigger(&self, ticket: u64, key: &str) {
        let trigger = build_trigger(&build_ticket_key(ticket), key);
        self.queue.triggers().append(&trigger).await.unwrap();
    }

    /// Number of messages that the server has received so far.
    pub(crate) async fn count_received_messages(&self) -> u64 {
        let (_, answer) = self.server.monitor("/varz").await.unwrap();
        let fields: serde_json::Value = serde_json::from_str(&answer).unwrap();
        fields["in_msgs"].as_u64().unwrap()
    }

    /// Plain NATS context, to inspect the server without the crate.
    pub(crate) async fn raw(&self) -> async_nats::jetstream::Context {
        async_nats::jetstream::new(async_nats::connect(self.server.url()).await.unwrap())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

pub(crate) fn build_server_settings(server: &NatsServer) -> Settings {
    settings_for(server.url())
}

pub(crate) fn settings_for(url: String) -> Settings {
    Settings {
        url,
        ..Settings::default()
    }
}

/// Connects with these settings and creates the streams.
pub(crate) async fn open_queue(settings: &Settings) -> Queue {
    let queue = Queue::connect(settings, "test").await.unwrap();
    queue.ensure_topology().await.unwrap();
    queue
}

/// Waits for a result that must arrive within [`LIMIT`].
pub(crate) async fn await_soon<T>(coming: impl Future<Output = T>) -> T {
    timeout(LIMIT, coming).await.expect("it did not come in time")
}

/// Waits for a result for at most this time; `None` without one. While the whole machine stands still, the time does
/// not pass.
pub(crate) async fn bound_running_time<T>(limit: Duration, coming: impl Future<Output = T>) -> Option<T> {
    const TICK: Duration = Duration::from_millis(25);
    let over = async {
        for _ in 0..limit.as_millis().div_ceil(TICK.as_millis()) {
            sleep(TICK).await;
        }
    };
    tokio::select! {
        biased;
        found = coming => Some(found),
        () = over => None,
    }
}

/// True when no result arrives within 300 ms.
pub(crate) async fn stays_away<T>(coming: impl Future<Output = T>) -> bool {
    timeout(Duration::from_millis(300), coming).await.is_err()
}

pub(crate) fn build_delivery(id: &str) -> WebhookDelivery {
    WebhookDelivery {
        source: ServiceOrigin::GitHub(None),
        id: id.to_owned(),
        event: "issue_comment".to_owned(),
        received_at: read_wall_clock(),
        body: bytes::Bytes::from_static(b"{\"action\":\"created\"}"),
    }
}

pub(crate) fn build_ticket_key(number: u64) -> TicketKey {
    TicketKey::jira(&format!("ENG-{number}")).unwrap()
}

pub(crate) fn build_trigger(ticket: &TicketKey, key: &str) -> Trigger {
    trigger_with(ticket, key, "[AGENT-SKIP]".to_owned())
}

pub(crate) fn trigger_with(ticket: &TicketKey, key: &str, phrase: String) -> Trigger {
    Trigger {
        ticket: ticket.clone(),
        key: TriggerKey::new(key),
        at: Timestamp::from_unix_ms(1_790_000_000_000),
        source: TriggerChannel::Webhook,
        actor: None,
        seen: None,
        reason: TriggerReason::Skipped(SkipReason::Phrase {
            phrase,
            place: domain::SkipPlace::Summary,
        }),
    }
}

/// First fact of a run that implements a ticket of `acme/shop`.
pub(crate) fn build_started_fact(ticket: &TicketKey) -> Fact {
    let request = JobRequest {
        job: Job::Implement,
        repository: "acme/shop".parse().unwrap(),
        text: TicketText::default(),
        rules: domain::RepositoryRules::default(),
        background: domain::TicketBackground::default(),
        about: domain::JobSubject::default(),
    };
    let trigger = Trigger {
        reason: TriggerReason::JobRequested(Box::new(request)),
        ..build_trigger(ticket, "k")
    };
    Fact::RunStarted {
        trigger: Box::new(trigger),
    }
}

pub(crate) fn build_outbound_request(ticket: &TicketKey, sequence: u64) -> OutboundRequest {
    OutboundRequest {
        id: OutboundId::notice(ticket, sequence),
        ticket: ticket.clone(),
        run: None,
        fence: RunFence::new(1, 1, 1),
        at: Timestamp::from_unix_ms(1_790_000_000_000),
        progress: None,
        request: domain::OutboundAction::WorkStarted(report::WorkStarted {
            job: domain::Job::Implement,
            repository: "acme/shop".parse().unwrap(),
            begun: report::WorkOrigin::default(),
        }),
    }
}

pub(crate) fn build_run_id(number: u64) -> RunId {
    RunId::new(build_ticket_key(number), 57)
}

pub(crate) fn build_entry(position: u64, nonce: &str) -> JournalEntry {
    JournalEntry {
        position,
        nonce: nonce.to_owned(),
        fence: RunFence::new(1, 1, 1),
        at: Timestamp::from_unix_ms(1_790_000_000_000),
        fact: Fact::StopRequested { by: "ann".to_owned() },
    }
}

/// Sample record of the tests.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) struct Text {
    pub(crate) text: String,
}

impl domain::StoredRecord for Text {
    const KIND: domain::RecordKind = domain::RecordKind::Control;
}

pub(crate) fn build_text(text: &str) -> Text {
    Text {
        text: text.to_owned(),
    }
}
