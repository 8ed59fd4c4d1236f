//! Deletion of a ticket: one purge for each stream and table that has records of it.

use domain::TicketKey;

use crate::{
    connection::NatsConnection,
    error::Error,
    names::{self, KeyValueBucket, RecordKey},
};

pub(crate) async fn forget_ticket(connection: &NatsConnection, ticket: &TicketKey) -> Result<(), Error> {
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
    for (stream, filter) in filters {
        connection.purge(&stream, &filter).await?;
    }
    Ok(())
}
