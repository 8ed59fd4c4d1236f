//! Nkeys and permissions of each service at the NATS server.
//!
//! A service proves its identity with an nkey, of which the server knows the public half only. The permissions are
//! rendered from the topology, so that no second list exists.

use std::fmt::Write as _;

use domain::{NewerRecord, RecordKind};
use secrecy::SecretString;

use crate::names::{
    self, DEAD, DELIVERIES, JOURNAL, KeyValueBucket, LogNames, OBJECT_CHUNKS, OBJECT_METAS, OBJECTS, REPORTS,
    ROUTER, RecordKey, TIMERS, TRIGGERS, WAKER,
};

/// Name of the [`crate::Queue::singleton`] for maintenance, which one reporter does at a time.
pub const UPKEEP: &str = "upkeep";

/// Services with their own NATS user. Executor and egress have none: they know neither the server nor a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum NatsRole {
    /// Stores deliveries, appends triggers and serves the API. It is exposed to the internet, so it deletes
    /// no record and requests only maintenance from the reporter.
    Ingest,
    /// Takes tickets, writes journals and rows, requests reports.
    Planner,
    /// Settles reports, keeps the ledger, owns the topology and deletes expired records. Text of outside
    /// users reaches it least of all services.
    Reporter,
    /// Command of an operator for backup and restore. It reads and creates whole streams, but no single
    /// record.
    Backup,
}

/// New key pair (nkey) of one user.
#[derive(Debug)]
pub struct NatsIdentity {
    /// Public key that names the user in the server's configuration.
    pub public_key: String,
    /// Seed with which the client signs: `nats.nkey_seed` of its settings.
    pub seed: SecretString,
}

impl NatsIdentity {
    /// Generates a pair from the system's random numbers.
    pub fn generate() -> Self {
        let pair = nkeys::KeyPair::new_user();
        // A generated pair always has a seed; only pairs of public keys have none.
        let seed = pair.seed().unwrap_or_default();
        Self {
            public_key: pair.public_key(),
            seed: SecretString::from(seed),
        }
    }
}

/// Subjects that one user may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NatsPermissions {
    /// Subjects that the user may publish to.
    pub publish: Vec<String>,
    /// Subjects that the user may subscribe to.
    pub subscribe: Vec<String>,
}

impl NatsRole {
    /// All users.
    pub const ALL: [Self; 4] = [Self::Ingest, Self::Planner, Self::Reporter, Self::Backup];

    /// Name under which the service connects; also the end of its inbox prefix.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Streams that must exist before the service can work.
    pub(crate) fn streams(self) -> Vec<String> {
        let mut streams: Vec<String> = [DEAD, JOURNAL, OBJECTS].map(str::to_owned).into();
        streams.extend(self.logs().iter().map(|log| log.stream.to_owned()));
        streams.extend(self.tokens().iter().map(|log| log.wakeups.to_owned()));
        streams.extend(self.buckets().iter().map(|bucket| bucket.stream()));
        match self {
            Self::Ingest => streams.extend([DELIVERIES, TIMERS].map(str::to_owned)),
            Self::Planner => streams.push(TIMERS.to_owned()),
            Self::Reporter | Self::Backup => {}
        }
        streams
    }

    /// Streams that the service takes work from and writes first. Without their leaders it is not ready.
    pub(crate) const fn probed(self) -> &'static [&'static str] {
        match self {
            Self::Ingest => &[DELIVERIES, TRIGGERS.stream],
            Self::Planner => &[TRIGGERS.wakeups, JOURNAL],
            Self::Reporter => &[REPORTS.wakeups, REPORTS.stream],
            Self::Backup => &[],
        }
    }

    /// Logs that the service reads.
    const fn logs(self) -> &'static [&'static LogNames] {
        &[&TRIGGERS, &REPORTS]
    }

    /// Logs whose tokens the service publishes or takes.
    const fn tokens(self) -> &'static [&'static LogNames] {
        match self {
            Self::Ingest => &[&TRIGGERS, &REPORTS],
            Self::Planner => &[&TRIGGERS],
            Self::Reporter => &[&REPORTS],
            Self::Backup => &[],
        }
    }

    /// Buckets that the service reads.
    const fn buckets(self) -> &'static [KeyValueBucket] {
        match self {
            Self::Ingest => &KeyValueBucket::ALL,
            Self::Planner => &[
                KeyValueBucket::Tickets,
                KeyValueBucket::Control,
                KeyValueBucket::Slots,
                KeyValueBucket::History,
                KeyValueBucket::Pools,
            ],
            Self::Reporter => &[
                KeyValueBucket::Effects,
                KeyValueBucket::Branches,
                KeyValueBucket::PullRequests,
                KeyValueBucket::Control,
            ],
            Self::Backup => &[],
        }
    }

    /// True for the one service that writes a bucket. Rights for epochs and similar control records are added
    /// in [`NatsRole::permissions`].
    const fn writes(self, bucket: KeyValueBucket) -> bool {
        match bucket {
            KeyValueBucket::Tickets
            | KeyValueBucket::Slots
            | KeyValueBucket::History
            | KeyValueBucket::Pools => {
                matches!(self, Self::Planner)
            }
            KeyValueBucket::Effects | KeyValueBucket::Branches | KeyValueBucket::PullRequests => {
                matches!(self, Self::Reporter)
            }
            KeyValueBucket::Control | KeyValueBucket::Runs => matches!(self, Self::Ingest),
        }
    }

    /// Kinds of records about which the service writes dead letters.
    ///
    /// A letter about a report becomes a report again when it is revived, so only the reporter may write such
    /// a letter.
    const fn letters(self) -> &'static [RecordKind] {
        match self {
            Self::Ingest => &[RecordKind::Delivery, RecordKind::Ticket],
            Self::Planner => &[RecordKind::Trigger, RecordKind::Row, RecordKind::Ticket],
            Self::Reporter => &[RecordKind::Report, RecordKind::Ledger],
            Self::Backup => &[],
        }
    }

    /// Durable consumers that the service takes messages from, with their streams.
    pub(crate) const fn consumers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Ingest => &[(DELIVERIES, ROUTER), (TRIGGERS.stream, WAKER), (TIMERS, WAKER)],
            Self::Planner => &[(TRIGGERS.wakeups, TRIGGERS.workers)],
            Self::Reporter => &[(REPORTS.stream, WAKER), (REPORTS.wakeups, REPORTS.workers)],
            Self::Backup => &[],
        }
    }

    /// Rights of the service: the subjects that it may publish and subscribe to.
    pub fn permissions(self) -> NatsPermissions {
        let mut allowed = NatsPermissions::default();
        allowed.subscribe.push(format!("{}.>", self.inbox_prefix()));
        if self == Self::Backup {
            allowed.backup();
            return allowed;
        }
        allowed.publish("$JS.API.INFO");
        for stream in self.streams() {
            allowed.read(&stream);
        }
        for (stream, durable) in self.consumers() {
            allowed.consume(stream, durable);
        }
        // Every service may store a body that is too large for a message, a letter about a record that it
        // cannot handle, and a note about a record of a newer release.
        allowed.publish(OBJECT_CHUNKS);
        allowed.publish(OBJECT_METAS);
        for what in self.letters() {
            allowed.publish(names::letters_about(*what));
        }
        for kind in RecordKind::ALL {
            let met = NewerRecord::key(kind);
            allowed.publish(KeyValueBucket::Control.subject(&RecordKey::from(met.as_str())));
        }
        for log in self.tokens() {
            allowed.publish(log.tokens());
        }
        let buckets = KeyValueBucket::ALL
            .into_iter()
            .filter(|bucket| self.writes(*bucket));
        for bucket in buckets {
            allowed.publish(bucket.all());
        }
        match self {
            Self::Ingest => allowed.ingest(),
            Self::Planner => allowed.planner(),
            Self::Reporter => allowed.reporter(),
            Self::Backup => {}
        }
        allowed.publish.sort();
        allowed.publish.dedup();
        allowed
    }

    /// Prefix of the inboxes that receive the service's answers. No other service may subscribe below it.
    pub(crate) fn inbox_prefix(self) -> String {
        inbox_prefix(self.name())
    }
}

/// Prefix of the inboxes of a client.
pub(crate) fn inbox_prefix(client_name: &str) -> String {
    format!("_INBOX.{client_name}")
}

impl NatsPermissions {
    fn ingest(&mut self) {
        self.publish(names::build_delivery_filter());
        self.publish(TRIGGERS.records());
        self.follow(JOURNAL);
        // It watches the journals of followed runs.
        self.subscribe.push(names::build_journal_filter());
        self.subscribe.push(names::build_live_filter());
    }

    fn planner(&mut self) {
        self.publish(names::build_journal_filter());
        self.publish(names::build_live_filter());
        self.publish(REPORTS.records());
        self.publish(names::timers_set());
        self.epoch(&TRIGGERS);
        // The planner removes the snapshot that a newer one replaces, message by message.
        self.publish(format!("$JS.API.STREAM.MSG.DELETE.{OBJECTS}"));
        // It watches the log for new records while it works on the ticket.
        self.subscribe.push(TRIGGERS.records());
    }

    fn reporter(&mut self) {
        self.publish(TRIGGERS.records());
        self.publish(REPORTS.records());
        self.epoch(&REPORTS);
        for what in ["INFO", "CREATE", "UPDATE"] {
            self.publish(format!("$JS.API.STREAM.{what}.*"));
        }
        for what in ["INFO", "CREATE", "DURABLE.CREATE"] {
            self.publish(format!("$JS.API.CONSUMER.{what}.>"));
        }
        // The reporter migrates the stream of triggers' tokens too, and raises the epoch of a rebuilt one.
        self.read(TRIGGERS.wakeups);
        self.epoch(&TRIGGERS);
        self.publish(KeyValueBucket::Control.subject(&NatsRole::Reporter.credential_ends()));
        self.upkeep();
    }

    /// Rights for maintenance: deleting tickets, old journals, old calls and orders, and collecting objects.
    ///
    /// Objects are deleted message by message, so that no service needs the right to purge the object store.
    fn upkeep(&mut self) {
        let (buckets, logs) = (
            KeyValueBucket::ALL.map(KeyValueBucket::stream),
            [&TRIGGERS, &REPORTS],
        );
        let held = [DELIVERIES, TIMERS].map(str::to_owned);
        for stream in buckets.iter().chain(&held) {
            self.read(stream);
        }
        let purged = [
            JOURNAL.to_owned(),
            TIMERS.to_owned(),
            DEAD.to_owned(),
            KeyValueBucket::Tickets.stream(),
            KeyValueBucket::Effects.stream(),
            KeyValueBucket::Runs.stream(),
            KeyValueBucket::Branches.stream(),
            KeyValueBucket::PullRequests.stream(),
            KeyValueBucket::Control.stream(),
        ];
        let of_logs = logs.iter().flat_map(|log| [log.stream, log.wakeups]);
        for stream in purged.into_iter().chain(of_logs.map(str::to_owned)) {
            self.publish(format!("$JS.API.STREAM.PURGE.{stream}"));
        }
        for stream in [OBJECTS, DEAD] {
            self.publish(format!("$JS.API.STREAM.MSG.DELETE.{stream}"));
        }
        let holder = RecordKey::from(names::build_singleton_key(UPKEEP).as_str());
        self.publish(KeyValueBucket::Control.subject(&holder));
    }

    fn backup(&mut self) {
        for subject in [
            "$JS.API.INFO",
            "$JS.API.STREAM.INFO.*",
            "$JS.API.STREAM.SNAPSHOT.*",
            "$JS.API.STREAM.RESTORE.*",
            "$JS.SNAPSHOT.ACK.*.*",
            "$JS.SNAPSHOT.RESTORE.*.*",
        ] {
            self.publish(subject);
        }
    }

    fn publish(&mut self, subject: impl Into<String>) {
        self.publish.push(subject.into());
    }

    fn read(&mut self, stream: &str) {
        self.publish(format!("$JS.API.STREAM.INFO.{stream}"));
        self.publish(format!("$JS.API.STREAM.MSG.GET.{stream}"));
        self.publish(format!("$JS.API.DIRECT.GET.{stream}"));
        self.publish(format!("$JS.API.DIRECT.GET.{stream}.>"));
    }

    /// Rights for the messages of a durable consumer.
    fn consume(&mut self, stream: &str, durable: &str) {
        self.publish(format!("$JS.API.CONSUMER.INFO.{stream}.{durable}"));
        self.publish(format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.{durable}"));
        self.publish(format!("$JS.ACK.{stream}.{durable}.>"));
    }

    /// Right to raise the epoch of a log, the first part of its tokens' fences.
    fn epoch(&mut self, log: &LogNames) {
        self.publish(KeyValueBucket::Control.subject(&RecordKey::from(log.epoch().as_str())));
    }

    /// Rights for the ephemeral consumers of journals. A user that may create consumers can have one deliver
    /// to any subject, so only ingest has them: its API follows journals.
    fn follow(&mut self, stream: &str) {
        self.publish(format!("$JS.API.CONSUMER.CREATE.{stream}"));
        self.publish(format!("$JS.API.CONSUMER.CREATE.{stream}.>"));
        self.publish(format!("$JS.API.CONSUMER.INFO.{stream}.*"));
        self.publish(format!("$JS.API.CONSUMER.DELETE.{stream}.*"));
        self.publish(format!("$JS.API.CONSUMER.MSG.NEXT.{stream}.*"));
        self.publish(format!("$JS.ACK.{stream}.*.>"));
    }
}

/// Renders the server's `authorization` block with one user per role and its public key.
///
/// A key may be a variable of the server's configuration (`$NAME`).
pub fn render_authorization(users: &[(NatsRole, &str)]) -> String {
    let mut text = String::from("authorization {\n  users: [\n");
    for (role, key) in users {
        let NatsPermissions { publish, subscribe } = role.permissions();
        let _ = writeln!(text, "    {{ # {}\n      nkey: {key}", role.name());
        text.push_str("      permissions: {\n");
        for (what, subjects) in [("publish", publish), ("subscribe", subscribe)] {
            let _ = writeln!(text, "        {what}: {{ allow: [");
            for subject in subjects {
                let _ = writeln!(text, "          \"{subject}\"");
            }
            text.push_str("        ] }\n");
        }
        text.push_str("      }\n    }\n");
    }
    text.push_str("  ]\n}\n");
    text
}
