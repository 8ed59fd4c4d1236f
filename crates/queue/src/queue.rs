//! The way to everything behind the connection.

use std::{path::Path, sync::Arc, time::Duration};

use domain::{Report, Stored, TicketKey, Timestamp, Trigger};

use crate::{
    backup::{self, Kept},
    branches::Branches,
    connection::Connection,
    dead::DeadLetters,
    delivery::Deliveries,
    error::Error,
    journal::Journal,
    keyed_log::KeyedLog,
    live::Live,
    maintenance::{MaintenanceOrders, MaintenanceWorker},
    names::{self, Bucket},
    objects::Objects,
    permissions::Role,
    pull_request_calls::PullRequestCalls,
    pull_requests::PullRequests,
    purge,
    runs::Runs,
    settings::Settings,
    singleton::Singleton,
    store::{StoreUse, StreamUse},
    table::Table,
    timers::Timers,
    topology,
};

/// A connection with its topology. Cheap to clone.
#[derive(Clone)]
pub struct Queue {
    pub(crate) connection: Arc<Connection>,
}

impl Queue {
    /// Connects (10 s limit) and refuses a server older than 2.12.5. Afterwards it reconnects by itself.
    ///
    /// # Errors
    /// [`Error::Unavailable`] names the address; [`Error::Topology`] for an old server or an unreadable credentials
    /// file.
    pub async fn connect(settings: &Settings, client_name: &str) -> Result<Self, Error> {
        let connection = Connection::open(settings, client_name).await?;
        Ok(Self {
            connection: Arc::new(connection),
        })
    }

    /// Creates every stream, consumer, bucket and the object store. One that differs is changed in place where nothing
    /// is lost by it; a newer release's limits are left alone.
    ///
    /// # Errors
    /// [`Error::Topology`] lists the fields that cannot be changed, with what to do.
    pub async fn ensure_topology(&self) -> Result<(), Error> {
        let ensured = Box::pin(topology::ensure(&self.connection));
        at_topology(ensured).await
    }

    /// Looks whether what a service needs has been created: [`Queue::ensure_topology`] is the reporter's part.
    ///
    /// # Errors
    /// [`Error::Unavailable`] names the stream that is not there yet.
    pub async fn check_topology(&self, role: Role) -> Result<(), Error> {
        let checked = Box::pin(topology::check(&self.connection, role));
        at_topology(checked).await
    }

    /// Writes every stream to a folder that does not exist yet, and tells of each when it is done. Services may go on meanwhile.
    ///
    /// # Errors
    /// [`Error::Unavailable`] names the stream or the file; what is there by then is no backup.
    pub async fn back_up(&self, folder: &Path, done: impl FnMut(&Kept)) -> Result<(), Error> {
        backup::back_up(&self.connection, folder, done).await
    }

    /// Reads a backup into a server that has no stream of ours, while no service runs.
    ///
    /// # Errors
    /// [`Error::Topology`] when a stream exists; [`Error::Unavailable`] names the stream or file that is missing. Nothing is
    /// restored then, unless the connection was lost in the middle.
    pub async fn restore(&self, folder: &Path, done: impl FnMut(&Kept)) -> Result<(), Error> {
        backup::restore(&self.connection, folder, done).await
    }

    /// Whether the connection stands as far as is known; a silent server is noticed within ten seconds.
    pub fn is_connected(&self) -> bool {
        self.connection.client.connection_state() == async_nats::connection::State::Connected
    }

    /// One round trip, for readiness.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without an answer within 5 s.
    pub async fn ping(&self) -> Result<(), Error> {
        self.connection.ping().await
    }

    /// Asks the leaders of what a service cannot work without, for readiness. A server without a quorum, or whose store is
    /// full beyond what it can work with, answers a ping but not this.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without an answer within 5 s.
    pub async fn probe(&self, role: Role) -> Result<(), Error> {
        let asked = role
            .probed()
            .iter()
            .map(|stream| self.connection.stream_info(stream));
        futures::future::try_join_all(asked).await.map(drop)
    }

    /// Use of the servers' file store.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn store_use(&self) -> Result<StoreUse, Error> {
        self.connection.store_use().await
    }

    /// Use of the store by each stream that a service reads.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn stream_uses(&self, role: Role) -> Result<Vec<StreamUse>, Error> {
        self.connection.stream_uses(&role.streams()).await
    }

    /// The verified webhook calls.
    pub fn deliveries(&self) -> Deliveries {
        Deliveries::new(self.connection.clone())
    }

    /// The reasons to act, by ticket.
    pub fn triggers(&self) -> KeyedLog<Trigger> {
        KeyedLog::new(self.connection.clone(), &names::TRIGGERS)
    }

    /// The requests to the reporter, by ticket.
    pub fn reports(&self) -> KeyedLog<Report> {
        KeyedLog::new(self.connection.clone(), &names::REPORTS)
    }

    /// The runs' journals.
    pub fn journal(&self) -> Journal {
        Journal::new(self.connection.clone())
    }

    /// What running tools print.
    pub fn live(&self) -> Live {
        Live::new(self.connection.clone())
    }

    /// Typed view of one key-value bucket.
    pub fn table<V: Stored + Send + Sync>(&self, bucket: Bucket) -> Table<V> {
        Table::new(self.connection.clone(), bucket)
    }

    /// Which ticket a head branch belongs to.
    pub fn branches(&self) -> Branches {
        Branches::new(self.connection.clone())
    }

    /// The index of our pull requests.
    pub fn pull_requests(&self) -> PullRequests {
        PullRequests::new(self.connection.clone())
    }

    /// Pull requests that callers of the API ask for.
    pub fn pull_request_calls(&self) -> PullRequestCalls {
        PullRequestCalls::new(self.connection.clone())
    }

    /// Maintenance that ingest asks the reporter for.
    pub fn maintenance_orders(&self) -> MaintenanceOrders {
        MaintenanceOrders::new(self.connection.clone())
    }

    /// Carries that maintenance out, by this clock.
    pub fn maintenance_worker(&self, now: fn() -> Timestamp) -> MaintenanceWorker {
        MaintenanceWorker::new(self.connection.clone(), now)
    }

    /// Forbids rollups in the object store, by which one message can take the place of all others, once nobody has rolled up
    /// since an instant (of the server's clock): processes of earlier releases need them. True when they are forbidden.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn forbid_rollups(&self, quiet_since: Timestamp) -> Result<bool, Error> {
        topology::forbid_rollups(&self.connection, quiet_since).await
    }

    /// The runs as people see them.
    pub fn runs(&self) -> Runs {
        Runs::new(self.connection.clone())
    }

    /// Work by its name, which is the same in every process. When its holder dies, another process begins within `ttl`.
    pub fn singleton(&self, name: &str, ttl: Duration) -> Singleton {
        Singleton::new(self.table(Bucket::Control), name, ttl)
    }

    /// The object store.
    pub fn objects(&self) -> Objects {
        Objects::new(self.connection.clone())
    }

    /// What could not be handled.
    pub fn dead_letters(&self) -> DeadLetters {
        DeadLetters::new(self.connection.clone())
    }

    /// The tickets' timers.
    pub fn timers(&self) -> Timers {
        Timers::new(self.connection.clone())
    }

    /// Forgets a ticket: triggers, reports, journals, row, ledger, branches, pull requests, timer, tokens and dead letters. Objects
    /// that only it referred to are collected later. Only for a ticket that nobody works on.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; repeating it goes on.
    pub async fn forget_ticket(&self, ticket: &TicketKey) -> Result<(), Error> {
        purge::forget_ticket(&self.connection, ticket).await
    }
}

/// What is made of the topology at a service's start.
async fn at_topology(work: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    failpoint::around("queue.topology.ensure", work).await
}
