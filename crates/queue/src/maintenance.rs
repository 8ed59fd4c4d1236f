//! Maintenance that ingest orders from the reporter. Ingest writes the orders to the control records, the
//! reporter writes the answers to its ledger. One of its tasks is the deletion of a ticket.

use std::{sync::Arc, time::Duration};

use domain::{
    IssueIdentity, MaintenanceAnswer, MaintenanceOrder, MaintenanceOutcome, MaintenanceTask, TicketKey,
    TicketRow, Timestamp, cause::format_error_chain,
};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::{
    connection::NatsConnection,
    dead_letters::DeadLetters,
    error::Error,
    issue_identities::IssueIdentities,
    names::{self, KeyValueBucket, RecordKey},
    pull_request_calls::CallClaim,
    table::TypedTable,
    unreadable_record::{FoundValue, TableRevision},
};

/// Time without an outcome after which a reporter counts as dead. Every task may be repeated.
const TAKEN_FOR: Duration = Duration::from_secs(60);
/// Interval between two reads of new orders.
const LOOK_EVERY: Duration = Duration::from_millis(500);
const HOUR_MS: i64 = 60 * 60 * 1000;

/// Orders and their answers. Cheap to clone.
#[derive(Clone)]
pub struct MaintenanceOrders {
    connection: Arc<NatsConnection>,
    orders: TypedTable<MaintenanceOrder>,
    answers: TypedTable<MaintenanceAnswer>,
}

impl MaintenanceOrders {
    pub(crate) fn new(connection: Arc<NatsConnection>) -> Self {
        Self {
            orders: TypedTable::new(connection.clone(), KeyValueBucket::Control),
            answers: TypedTable::new(connection.clone(), KeyValueBucket::Effects),
            connection,
        }
    }

    /// Stores an order.
    ///
    /// # Errors
    /// [`Error::Conflict`] when its id exists already; [`Error::Unavailable`].
    pub async fn ask(&self, order: &MaintenanceOrder) -> Result<(), Error> {
        self.orders
            .put(build_order_key(&order.id), order, None)
            .await
            .map(drop)
    }

    /// Outcome of an order; `None` until it is executed.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn outcome(&self, id: &str) -> Result<Option<MaintenanceOutcome>, Error> {
        let answer = self.answers.get(build_order_key(id)).await?;
        Ok(answer.and_then(|(answer, _)| answer.outcome))
    }

    /// Orders after a revision, oldest first, and the revision for the next call.
    async fn changes_after(
        &self,
        after: TableRevision,
    ) -> Result<(Vec<MaintenanceOrder>, TableRevision), Error> {
        let filter = KeyValueBucket::Control.under(&build_order_prefix());
        self.orders.changes_under(&filter, after).await
    }

    /// Claims an order, so that no other reporter executes it at the same time.
    async fn take(&self, id: &str, now: Timestamp) -> Result<CallClaim, Error> {
        let last = match self.answers.get(build_order_key(id)).await? {
            None => None,
            Some((known, _)) if known.outcome.is_some() => return Ok(CallClaim::Answered),
            Some((known, _)) if now < known.taken_at.plus(TAKEN_FOR) => return Ok(CallClaim::Theirs),
            Some((_, revision)) => Some(revision),
        };
        let ours = MaintenanceAnswer {
            taken_at: now,
            outcome: None,
            forgot_ticket: false,
        };
        match self.answers.put(build_order_key(id), &ours, last).await {
            Ok(revision) => Ok(CallClaim::Ours(revision)),
            Err(Error::Conflict) => Ok(CallClaim::Theirs),
            Err(error) => Err(error),
        }
    }

    /// Number of tickets that were deleted since an instant.
    async fn forgotten_since(&self, since: Timestamp) -> Result<usize, Error> {
        let answers = self
            .answers
            .list_under(&KeyValueBucket::Effects.under(&build_order_prefix()))
            .await?;
        let is_recent =
            |answer: &MaintenanceAnswer| answer.forgot_ticket && answer.taken_at.unix_ms() >= since.unix_ms();
        Ok(answers.iter().filter(|(_, answer)| is_recent(answer)).count())
    }

    /// Deletes the orders that were made before an instant, with their answers, and returns their number.
    /// Only the reporter has the right.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; a repeated call continues.
    pub async fn forget_before(&self, before: Timestamp) -> Result<u64, Error> {
        let (orders, _) = self.changes_after(TableRevision::default()).await?;
        let mut forgotten = 0;
        for order in orders.iter().filter(|order| order.at < before) {
            // The order goes last: it lists what a repeated call has to delete. Without its answer it is not
            // executed again, because orders past their retention are skipped.
            for bucket in [KeyValueBucket::Effects, KeyValueBucket::Control] {
                let subject = bucket.subject(&build_order_key(&order.id));
                self.connection.purge(&bucket.stream(), &subject).await?;
            }
            forgotten += 1;
        }
        Ok(forgotten)
    }
}

/// Executes orders one after another.
pub struct MaintenanceWorker {
    connection: Arc<NatsConnection>,
    now: fn() -> Timestamp,
}

impl MaintenanceWorker {
    pub(crate) const fn new(connection: Arc<NatsConnection>, now: fn() -> Timestamp) -> Self {
        Self { connection, now }
    }

    /// Executes orders until shutdown.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when orders cannot be read; a new call continues.
    pub async fn run(&self, shutdown: CancellationToken) -> Result<(), Error> {
        let orders = MaintenanceOrders::new(self.connection.clone());
        let mut ticks = interval(LOOK_EVERY);
        // After a slow order, the missed ticks must not become a burst of reads.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut seen, mut waiting) = (TableRevision::default(), Vec::new());
        while shutdown.run_until_cancelled(ticks.tick()).await.is_some() {
            let (new, newest) = orders.changes_after(seen).await?;
            waiting.extend(new);
            seen = newest;
            // Orders that another reporter has claimed, or that failed, are tried again at the next tick.
            let mut left = Vec::new();
            for order in waiting {
                if !self.has_ended(&orders, &order).await {
                    left.push(order);
                }
            }
            waiting = left;
        }
        Ok(())
    }

    /// Executes an order if needed. Returns true when it has its outcome; a passing failure is logged and
    /// retried.
    async fn has_ended(&self, orders: &MaintenanceOrders, order: &MaintenanceOrder) -> bool {
        match self.carry_out(orders, order).await {
            Ok(has_ended) => has_ended,
            Err(error) => {
                tracing::warn!(order = order.id, error = %format_error_chain(&error), "maintenance not carried out; tried again");
                false
            }
        }
    }

    async fn carry_out(&self, orders: &MaintenanceOrders, order: &MaintenanceOrder) -> Result<bool, Error> {
        let now = (self.now)();
        // The answer to an order that is older than its retention is gone; executing the order again would
        // repeat it.
        if order.at < now.plus_ms(-i64::try_from(MaintenanceOrder::KEPT.as_millis()).unwrap_or(i64::MAX)) {
            return Ok(true);
        }
        let taken = match orders.take(&order.id, now).await? {
            CallClaim::Answered => return Ok(true),
            CallClaim::Theirs => return Ok(false),
            CallClaim::Ours(revision) => revision,
        };
        let outcome = match &order.task {
            MaintenanceTask::ForgetTicket { ticket } => self.forget_ticket(orders, ticket, now).await?,
            MaintenanceTask::ReviveReport { letter } => self.revive_report(*letter).await?,
            MaintenanceTask::DropLetter { letter } => done_or_missing(self.letters().remove(*letter).await?),
        };
        tracing::warn!(order = order.id, by = order.by, task = ?order.task, ?outcome, "maintenance carried out");
        let is_ticket = matches!(order.task, MaintenanceTask::ForgetTicket { .. });
        let answer = MaintenanceAnswer {
            taken_at: now,
            forgot_ticket: is_ticket && outcome == MaintenanceOutcome::Done,
            outcome: Some(outcome),
        };
        orders
            .answers
            // With the revision of the claim: another reporter may have taken over a task that lasted
            // longer than the claim.
            .put(build_order_key(&order.id), &answer, Some(taken))
            .await?;
        Ok(true)
    }

    /// Deletes a ticket without live runs. The row decides, not the caller, and the number per hour is
    /// limited.
    async fn forget_ticket(
        &self,
        orders: &MaintenanceOrders,
        ticket: &TicketKey,
        now: Timestamp,
    ) -> Result<MaintenanceOutcome, Error> {
        let rows: TypedTable<TicketRow> = TypedTable::new(self.connection.clone(), KeyValueBucket::Tickets);
        let row = rows.find(&ticket.to_string()).await?;
        match row {
            Some(FoundValue::Value(row, _)) if !row.pending.is_empty() => {
                return Ok(MaintenanceOutcome::Refused {
                    reason: format!("{ticket} has live runs; stop them first"),
                });
            }
            Some(FoundValue::Unreadable(unreadable)) => {
                // A newer release may work on the ticket. A corrupt row must not prevent that the ticket is forgotten.
                if let Err(newer) = unreadable.unless_newer() {
                    return Ok(MaintenanceOutcome::Refused {
                        reason: format!("{newer}; finish the upgrade, then try again"),
                    });
                }
            }
            Some(FoundValue::Value(..)) | None => {}
        }
        let most = MaintenanceOrder::TICKETS_AN_HOUR;
        if orders.forgotten_since(now.plus_ms(-HOUR_MS)).await? >= most {
            return Ok(MaintenanceOutcome::Refused {
                reason: format!("{most} tickets were forgotten within the last hour; try again in an hour"),
            });
        }
        forget_ticket(&self.connection, ticket).await?;
        Ok(MaintenanceOutcome::Done)
    }

    fn letters(&self) -> DeadLetters {
        DeadLetters::new(self.connection.clone())
    }

    async fn revive_report(&self, letter: u64) -> Result<MaintenanceOutcome, Error> {
        let letters = self.letters();
        if !letters.is_of_report(letter).await? {
            return Ok(MaintenanceOutcome::Missing);
        }
        Ok(done_or_missing(letters.revive(letter).await?))
    }
}

const fn done_or_missing(is_done: bool) -> MaintenanceOutcome {
    if is_done {
        MaintenanceOutcome::Done
    } else {
        MaintenanceOutcome::Missing
    }
}

/// Common prefix of the keys, in both tables.
fn build_order_prefix() -> RecordKey {
    RecordKey::from("maintenance-order").and("id")
}

fn build_order_key(id: &str) -> RecordKey {
    build_order_prefix().and(id)
}

/// Deletes a ticket: one purge for each stream and table that has records of it.
pub(crate) async fn forget_ticket(connection: &Arc<NatsConnection>, ticket: &TicketKey) -> Result<(), Error> {
    let key = RecordKey::from(ticket);
    let mut filters = vec![
        (names::JOURNAL.to_owned(), names::journals_of(ticket)),
        (
            KeyValueBucket::Effects.stream(),
            KeyValueBucket::Effects.under(&key),
        ),
        (KeyValueBucket::Runs.stream(), KeyValueBucket::Runs.under(&key)),
    ];
    for names in [&names::TRIGGERS, &names::REPORTS] {
        filters.push((names.stream.to_owned(), names.records_of(ticket)));
        filters.push((names.wakeups.to_owned(), names.token(ticket)));
    }
    filters.extend([
        (names::TIMERS.to_owned(), names::timer_set(ticket)),
        (names::TIMERS.to_owned(), names::timer_due(ticket)),
        (
            KeyValueBucket::Tickets.stream(),
            KeyValueBucket::Tickets.subject(&key),
        ),
        (KeyValueBucket::Branches.stream(), names::branches_of(ticket)),
        (
            KeyValueBucket::PullRequests.stream(),
            names::pull_requests_of(ticket),
        ),
        (names::DEAD.to_owned(), names::letters_of(ticket)),
    ]);
    let control = KeyValueBucket::Control;
    filters.extend(
        list_identity_names(connection, ticket)
            .await?
            .iter()
            .map(|name| (control.stream(), control.subject(&RecordKey::from(name.as_str())))),
    );
    for (stream, filter) in filters {
        connection.purge(&stream, &filter).await?;
    }
    Ok(())
}

/// Names of the control records about the issue whose records are those of the ticket.
async fn list_identity_names(
    connection: &Arc<NatsConnection>,
    ticket: &TicketKey,
) -> Result<Vec<String>, Error> {
    let known = match IssueIdentities::new(connection.clone()).of_key(ticket).await {
        Ok(known) => known,
        // A record that cannot be read must not keep the ticket: deletion is also the repair.
        Err(Error::Corrupt { .. }) => return Ok(vec![IssueIdentity::name_of_key(ticket)]),
        Err(error) => return Err(error),
    };
    let Some(identity) = known.filter(|identity| identity.ticket == *ticket) else {
        return Ok(Vec::new());
    };
    let of_id = IssueIdentity::name_of_id(ticket.instance(), identity.id);
    let of_keys = identity.keys().into_iter().map(IssueIdentity::name_of_key);
    Ok(of_keys.chain([of_id]).collect())
}
