//! The crate's public face (skeleton; the bodies are being filled in, the signatures stand).
#![allow(unused_variables, missing_docs, clippy::todo, reason = "skeleton")]

use std::{marker::PhantomData, time::Duration};

use bytes::Bytes;
use domain::{
    Entry, FenceStamp, ObjectRef, Report, ReportFence, RunFence, RunId, TicketKey, Timestamp, Trigger,
};
use futures::stream::BoxStream;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio_util::sync::CancellationToken;

/// `[nats]` of the settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// `nats://host:port`, several separated by commas.
    pub url: String,
    /// Replicas of streams and buckets: 1, or 3 in a cluster.
    pub replicas: usize,
    /// A NATS credentials file, when the server asks for one.
    pub credentials_file: Option<std::path::PathBuf>,
}
impl Default for Settings {
    fn default() -> Self {
        Self { url: "nats://127.0.0.1:4222".into(), replicas: 1, credentials_file: None }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server cannot be reached or did not answer in time; worth trying again.
    #[error("nats is unavailable: {0}")]
    Unavailable(String),
    /// A record is not what it should be.
    #[error("{what} is not readable: {problem}")]
    Corrupt { what: String, problem: String },
    /// The server is too old or a stream differs from what is wanted.
    #[error("{0}")]
    Topology(String),
    /// Somebody else wrote first (compare-and-set lost, or taken over).
    #[error("somebody else wrote first")]
    Conflict,
}

/// A connection with its topology. Cheap to clone.
#[derive(Clone)]
pub struct Queue {}

impl Queue {
    /// Connects (10 s limit) and refuses a server older than 2.12.5.
    pub async fn connect(settings: &Settings, client_name: &str) -> Result<Self, Error> {
        todo!()
    }
    /// Creates every stream, consumer, bucket and the object store, and compares the returned config with the wanted one.
    pub async fn ensure_topology(&self) -> Result<(), Error> {
        todo!()
    }
    /// One round trip, for readiness.
    pub async fn ping(&self) -> Result<(), Error> {
        todo!()
    }
    pub fn deliveries(&self) -> Deliveries {
        todo!()
    }
    pub fn triggers(&self) -> KeyedLog<Trigger> {
        todo!()
    }
    pub fn reports(&self) -> KeyedLog<Report> {
        todo!()
    }
    pub fn journal(&self) -> Journal {
        todo!()
    }
    /// Typed view of one key-value bucket.
    pub fn table<V: Serialize + DeserializeOwned + Send + Sync>(&self, bucket: Bucket) -> Table<V> {
        todo!()
    }
    pub fn objects(&self) -> Objects {
        todo!()
    }
    pub fn dead_letters(&self) -> DeadLetters {
        todo!()
    }
    pub fn timers(&self) -> Timers {
        todo!()
    }
}

/// One verified webhook call (or poll finding), raw.
#[derive(Clone, Debug)]
pub struct WebhookDelivery {
    /// `jira` or `github`.
    pub source: String,
    /// Unique id of the delivery (`X-GitHub-Delivery`, `X-Atlassian-Webhook-Identifier`, or the hash of the body).
    pub id: String,
    /// `X-GitHub-Event`, or Jira's `webhookEvent`; empty when unknown.
    pub event: String,
    pub received_at: Timestamp,
    pub body: Bytes,
}

/// What a handler says of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// Handled; forget it.
    Done,
    /// Not now; again after this long. Never dead-letters by itself.
    Retry { after: Duration },
    /// It can never be handled: to the dead letters with this reason.
    Reject { reason: String },
}

#[derive(Clone)]
pub struct Deliveries {}
impl Deliveries {
    /// Publishes with the delivery id as message id and waits for the ack. Bodies over 512 KiB go to the object store.
    /// Returns false when the id was known.
    pub async fn publish(&self, delivery: &WebhookDelivery) -> Result<bool, Error> {
        todo!()
    }
    /// Handles deliveries, at most `slots` at once, until shutdown; then lets those in hand finish.
    pub async fn consume<F, Fut>(&self, slots: usize, shutdown: CancellationToken, handler: F) -> Result<(), Error>
    where
        F: Fn(WebhookDelivery) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Disposition> + Send + 'static,
    {
        todo!()
    }
}

/// What a keyed log holds.
pub trait Keyed: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The fence that this log's tokens give.
    type Fence: From<FenceStamp> + Copy + Ord + Send;
    fn ticket(&self) -> &TicketKey;
    fn key(&self) -> &str;
}
impl Keyed for Trigger {
    type Fence = RunFence;
    fn ticket(&self) -> &TicketKey {
        &self.ticket
    }
    fn key(&self) -> &str {
        self.key.as_str()
    }
}
impl Keyed for Report {
    type Fence = ReportFence;
    fn ticket(&self) -> &TicketKey {
        &self.ticket
    }
    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    New(u64),
    /// The key was there already, at this sequence.
    Known(u64),
}

/// A log by ticket and semantic key, with one outstanding wake-up token per ticket.
#[derive(Clone)]
pub struct KeyedLog<T> {
    _t: PhantomData<fn() -> T>,
}
impl<T: Keyed> KeyedLog<T> {
    pub async fn append(&self, record: &T) -> Result<Appended, Error> {
        todo!()
    }
    /// The ticket's records after `cursor` (exclusive stream sequence), oldest first.
    pub async fn read_after(&self, ticket: &TicketKey, cursor: u64) -> Result<Vec<(u64, T)>, Error> {
        todo!()
    }
    /// Stream sequence of the ticket's last record; cheap.
    pub async fn last_sequence(&self, ticket: &TicketKey) -> Result<Option<u64>, Error> {
        todo!()
    }
    /// Publishes the ticket's token; an outstanding one counts as success.
    pub async fn wake(&self, ticket: &TicketKey) -> Result<(), Error> {
        todo!()
    }
    /// Runs the waker (a durable consumer over the log, and due timers) until shutdown.
    pub async fn run_waker(&self, shutdown: CancellationToken) -> Result<(), Error> {
        todo!()
    }
    /// Hands out tokens until shutdown.
    pub async fn tokens(&self, shutdown: CancellationToken) -> Result<Tokens<T>, Error> {
        todo!()
    }
    /// Notifies of appends to one ticket's log, without delivery promise: read the log on each notification.
    pub async fn watch(&self, ticket: &TicketKey) -> Result<Watch, Error> {
        todo!()
    }
}

pub struct Tokens<T> {
    _t: PhantomData<fn() -> T>,
}
impl<T: Keyed> Tokens<T> {
    /// The next token (fetches exactly one); `None` at shutdown. Survives reconnects.
    pub async fn next(&mut self) -> Option<Token<T>> {
        todo!()
    }
}

/// One delivery of a ticket's token. A heartbeat task sends progress every 15 s until it is finished, released or
/// abandoned. Dropping it without a word is `abandon`.
pub struct Token<T> {
    _t: PhantomData<fn() -> T>,
}
impl<T: Keyed> Token<T> {
    pub fn ticket(&self) -> &TicketKey {
        todo!()
    }
    pub fn fence(&self) -> T::Fence {
        todo!()
    }
    /// Acknowledges with confirmation.
    pub async fn finish(self) -> Result<(), Error> {
        todo!()
    }
    /// Gives it back now; somebody gets it at once.
    pub async fn release(self) {
        todo!()
    }
    /// Gives it back after a delay.
    pub async fn release_after(self, after: Duration) {
        todo!()
    }
    /// Sends nothing: the ticket belongs to somebody else.
    pub fn abandon(self) {}
}

pub struct Watch {}
impl Watch {
    /// Waits for the next append to the ticket's log.
    pub async fn changed(&mut self) {
        todo!()
    }
}

/// The runs' journals.
#[derive(Clone)]
pub struct Journal {}
impl Journal {
    /// Appends after the entry at stream sequence `last` (0: the run's first entry) and returns the new sequence. A lost
    /// acknowledgement is resolved by reading the last entry: our nonce means success, another's is [`Error::Conflict`].
    pub async fn append(&self, run: &RunId, last: u64, entry: &Entry) -> Result<u64, Error> {
        todo!()
    }
    /// Every entry with its stream sequence, oldest first; empty for an unknown run.
    pub async fn read(&self, run: &RunId) -> Result<Vec<(u64, Entry)>, Error> {
        todo!()
    }
    /// Entries from position `from` on, then new ones as they come; never ends by itself. Entries by stream sequence.
    pub async fn follow(&self, run: &RunId, from: u64) -> Result<BoxStream<'static, Result<Entry, Error>>, Error> {
        todo!()
    }
    /// New entries of every run, from now on.
    pub async fn follow_all(&self) -> Result<BoxStream<'static, Result<(RunId, Entry), Error>>, Error> {
        todo!()
    }
}

/// The key-value buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// Ticket rows, by ticket key.
    Tickets,
    /// The reporter's ledger, by effect id.
    Effects,
    /// Head branches, by `BranchRecord::key`.
    Branches,
    /// Control records (stop-all …) and epochs.
    Control,
}

/// The revision a value was read at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision(pub u64);

#[derive(Clone)]
pub struct Table<V> {
    _v: PhantomData<fn() -> V>,
}
impl<V: Serialize + DeserializeOwned + Send + Sync> Table<V> {
    /// Any text is a legal key. Reads from the leader.
    pub async fn get(&self, key: &str) -> Result<Option<(V, Revision)>, Error> {
        todo!()
    }
    /// Compare-and-set: `None` creates. [`Error::Conflict`] when the revision is not the last.
    pub async fn put(&self, key: &str, value: &V, last: Option<Revision>) -> Result<Revision, Error> {
        todo!()
    }
    pub async fn delete(&self, key: &str) -> Result<(), Error> {
        todo!()
    }
    /// Every key with its value.
    pub async fn list(&self) -> Result<Vec<(String, V)>, Error> {
        todo!()
    }
}

#[derive(Clone)]
pub struct Objects {}
impl Objects {
    /// Stores bytes under their SHA-256; storing them again is free.
    pub async fn put(&self, bytes: Bytes) -> Result<ObjectRef, Error> {
        todo!()
    }
    pub async fn get(&self, object: &ObjectRef) -> Result<Bytes, Error> {
        todo!()
    }
}

/// What could not be handled, why, and how to retry it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeadLetter {
    /// `delivery`, `trigger`, `report` or `ticket`.
    pub what: String,
    /// Its identity.
    pub id: String,
    pub ticket: Option<TicketKey>,
    pub reason: String,
    pub at: Timestamp,
}

#[derive(Clone)]
pub struct DeadLetters {}
impl DeadLetters {
    pub async fn publish(&self, letter: &DeadLetter, payload: Bytes) -> Result<(), Error> {
        todo!()
    }
    /// Newest last, at most `limit`.
    pub async fn list(&self, limit: usize) -> Result<Vec<(u64, DeadLetter)>, Error> {
        todo!()
    }
}

#[derive(Clone)]
pub struct Timers {}
impl Timers {
    /// Sets the ticket's one timer; the waker wakes the ticket when it is due. The row holds the due time too.
    pub async fn set(&self, ticket: &TicketKey, due: Timestamp) -> Result<(), Error> {
        todo!()
    }
}
