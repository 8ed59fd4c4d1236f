//! Entry point of the crate: typed access to all streams, tables and objects behind one connection.

use std::{path::Path, sync::Arc, time::Duration};

use domain::{OutboundRequest, StoredRecord, TicketKey, Timestamp, Trigger};

use crate::{
    backup::{self, StreamTransfer},
    branches::BranchIndex,
    connection::NatsConnection,
    dead_letters::DeadLetters,
    delivery::DeliveryQueue,
    error::Error,
    issue_identities::IssueIdentities,
    journal::RunJournals,
    keyed_log::KeyedLog,
    maintenance::{self, MaintenanceOrders, MaintenanceWorker},
    names::{self, KeyValueBucket},
    objects::ContentStore,
    permissions::NatsRole,
    pull_request_calls::PullRequestCalls,
    pull_requests::PullRequestIndex,
    runs::RunOverviews,
    settings::Settings,
    singleton::SingletonWork,
    store::{StoreUse, StreamUse},
    table::TypedTable,
    topology,
    waker::TicketTimers,
    watch::LiveChannel,
};

/// Connection with its topology. Cheap to clone.
#[derive(Clone)]
pub struct Queue {
    pub(crate) connection: Arc<NatsConnection>,
}

impl Queue {
    /// Connects within 10 s; refuses a server older than 2.12.5. Afterwards the client reconnects by itself.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the address; [`Error::Topology`] for an old server or an unreadable
    /// credentials file.
    pub async fn connect(settings: &Settings, client_name: &str) -> Result<Self, Error> {
        let connection = NatsConnection::open(settings, client_name).await?;
        Ok(Self {
            connection: Arc::new(connection),
        })
    }

    /// Creates every stream, consumer and bucket, and the object store.
    ///
    /// A different one is changed in place if that loses no record. Limits of a newer release are left alone.
    ///
    /// # Errors
    /// [`Error::Topology`] with the fields that cannot be changed and the remedy.
    pub async fn ensure_topology(&self) -> Result<(), Error> {
        let ensured = Box::pin(topology::ensure_wanted_topology(&self.connection));
        at_topology(ensured).await
    }

    /// Checks that the streams and consumers of a service exist. The reporter creates them, see
    /// [`Queue::ensure_topology`].
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the name of the missing stream.
    pub async fn check_topology(&self, role: NatsRole) -> Result<(), Error> {
        let checked = Box::pin(topology::await_role_topology(&self.connection, role));
        at_topology(checked).await
    }

    /// Writes every stream to a new folder and calls `done` after each. Services may run meanwhile.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the stream or file; the folder is then not a complete backup.
    pub async fn back_up(&self, folder: &Path, done: impl FnMut(&StreamTransfer)) -> Result<(), Error> {
        backup::back_up_streams(&self.connection, folder, done).await
    }

    /// Restores a backup into a server without Journeyman's streams, while no service runs. Calls `done`
    /// after each stream.
    ///
    /// # Errors
    /// [`Error::Topology`] when a stream exists; [`Error::Unavailable`] with the missing stream or file. In
    /// both cases nothing is restored. If the connection is lost during the restore, some streams are.
    pub async fn restore(&self, folder: &Path, done: impl FnMut(&StreamTransfer)) -> Result<(), Error> {
        backup::restore_streams(&self.connection, folder, done).await
    }

    /// True while the client considers the connection open. It notices a silent server within ten seconds.
    pub fn is_connected(&self) -> bool {
        self.connection.client.connection_state() == async_nats::connection::State::Connected
    }

    /// Makes one round trip, for readiness.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without an answer within 5 s.
    pub async fn ping(&self) -> Result<(), Error> {
        self.connection.ping().await
    }

    /// Asks the leaders of the streams that a service needs for any work, for readiness.
    ///
    /// A server without a quorum, or with a full store, answers [`Queue::ping`] but not this request.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without an answer within 5 s.
    pub async fn probe(&self, role: NatsRole) -> Result<(), Error> {
        let asked = role
            .probed()
            .iter()
            .map(|stream| self.connection.stream_info(stream));
        futures::future::try_join_all(asked).await.map(drop)
    }

    /// Use of the servers' file store, in bytes at each server.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn store_use(&self) -> Result<StoreUse, Error> {
        self.connection.store_use().await
    }

    /// Use of the store by each stream that a service reads, in bytes.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn stream_uses(&self, role: NatsRole) -> Result<Vec<StreamUse>, Error> {
        self.connection.stream_uses(&role.streams()).await
    }

    /// Number of wake-up tokens of planners and reporters that wait or are held.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn count_tokens(&self) -> Result<u64, Error> {
        let mut tokens = 0;
        for log in [&names::TRIGGERS, &names::REPORTS] {
            tokens += self.connection.stream_info(log.wakeups).await?.state.messages;
        }
        Ok(tokens)
    }

    /// Verified webhook deliveries.
    pub fn deliveries(&self) -> DeliveryQueue {
        DeliveryQueue::new(self.connection.clone())
    }

    /// Log of triggers, by ticket.
    pub fn triggers(&self) -> KeyedLog<Trigger> {
        KeyedLog::new(self.connection.clone(), &names::TRIGGERS)
    }

    /// Log of requests to the reporter, by ticket.
    pub fn reports(&self) -> KeyedLog<OutboundRequest> {
        KeyedLog::new(self.connection.clone(), &names::REPORTS)
    }

    /// Journals of the runs.
    pub fn journal(&self) -> RunJournals {
        RunJournals::new(self.connection.clone())
    }

    /// Live output of running tools.
    pub fn live(&self) -> LiveChannel {
        LiveChannel::new(self.connection.clone())
    }

    /// Typed view of one key-value bucket.
    pub fn table<V: StoredRecord + Send + Sync>(&self, bucket: KeyValueBucket) -> TypedTable<V> {
        TypedTable::new(self.connection.clone(), bucket)
    }

    /// Index of head branches and their tickets.
    pub fn branches(&self) -> BranchIndex {
        BranchIndex::new(self.connection.clone())
    }

    /// Identities of Jira issues.
    pub fn issue_identities(&self) -> IssueIdentities {
        IssueIdentities::new(self.connection.clone())
    }

    /// Index of Journeyman's pull requests.
    pub fn pull_requests(&self) -> PullRequestIndex {
        PullRequestIndex::new(self.connection.clone())
    }

    /// Pull requests that callers of the API request.
    pub fn pull_request_calls(&self) -> PullRequestCalls {
        PullRequestCalls::new(self.connection.clone())
    }

    /// Maintenance orders from ingest to the reporter.
    pub fn maintenance_orders(&self) -> MaintenanceOrders {
        MaintenanceOrders::new(self.connection.clone())
    }

    /// Worker of the reporter that executes maintenance orders; `now` is its clock.
    pub fn maintenance_worker(&self, now: fn() -> Timestamp) -> MaintenanceWorker {
        MaintenanceWorker::new(self.connection.clone(), now)
    }

    /// Forbids rollups in the object store if no message was rolled up since an instant of the server's
    /// clock. Returns true when they are forbidden.
    ///
    /// With a rollup, one message replaces all others. Only processes of earlier releases need them.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn forbid_rollups(&self, quiet_since: Timestamp) -> Result<bool, Error> {
        topology::forbid_rollups(&self.connection, quiet_since).await
    }

    /// Overviews of runs for the API and the console.
    pub fn runs(&self) -> RunOverviews {
        RunOverviews::new(self.connection.clone())
    }

    /// Work that one process of the cluster does at a time, identified by its name. After the holder dies,
    /// another process begins within `ttl`.
    pub fn singleton(&self, name: &str, ttl: Duration) -> SingletonWork {
        SingletonWork::new(self.table(KeyValueBucket::Control), name, ttl)
    }

    /// Object store for large bodies and packs.
    pub fn objects(&self) -> ContentStore {
        ContentStore::new(self.connection.clone())
    }

    /// Dead letters: records that could not be handled.
    pub fn dead_letters(&self) -> DeadLetters {
        DeadLetters::new(self.connection.clone())
    }

    /// Timers of the tickets.
    pub fn timers(&self) -> TicketTimers {
        TicketTimers::new(self.connection.clone())
    }

    /// Deletes all records of a ticket: triggers, reports, journals, row, ledger, branches, pull requests,
    /// timer, tokens and dead letters.
    ///
    /// Objects that only this ticket referred to are collected later. The ticket must have no live run.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; a repeated call continues.
    pub async fn forget_ticket(&self, ticket: &TicketKey) -> Result<(), Error> {
        maintenance::forget_ticket(&self.connection, ticket).await
    }
}

/// Wraps the topology work of a service's start in its failpoint.
async fn at_topology(work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    failpoint::around("queue.topology.ensure", work).await
}
