//! Forgetting a ticket: everything that the streams and tables hold of it.

use domain::{BranchRecord, PullRequestRecord, RunId, TicketKey};

use crate::{
    Bucket, DeadLetters, Error, Queue, subject, table,
    topology::{JOURNAL, JOURNAL_PREFIX, REPORTS, TIMERS, TIMERS_DUE, TIMERS_SET, TRIGGERS},
};

const LETTERS: usize = 10_000;

impl Queue {
    /// Forgets a ticket: triggers, reports, journals, row, ledger, branches, timer, tokens and dead letters. Objects
    /// that only it referred to are collected later. Only for a ticket that nobody works on.
    ///
    /// # Errors
    /// [`Error::Unavailable`]; repeating it goes on.
    pub async fn forget_ticket(&self, ticket: &TicketKey) -> Result<(), Error> {
        let (connection, text) = (&self.connection, ticket.to_string());
        for run in self.runs_of(ticket).await? {
            let subject = subject::under(JOURNAL_PREFIX, &run.to_string());
            connection.purge(JOURNAL, &subject).await?;
        }
        self.forget_effects(&text).await?;
        for names in [&TRIGGERS, &REPORTS] {
            let records = format!("{}.*", subject::under(names.prefix, &text));
            connection.purge(names.stream, &records).await?;
            let token = subject::under(names.wakeup_prefix, &text);
            connection.purge(names.wakeups, &token).await?;
        }
        for prefix in [TIMERS_SET, TIMERS_DUE] {
            connection.purge(TIMERS, &subject::under(prefix, &text)).await?;
        }
        let tickets = Bucket::Tickets.name();
        let row = subject::under(&table::prefix_of(tickets), &text);
        connection.purge(&table::stream_of(tickets), &row).await?;
        self.forget_branches(ticket).await?;
        self.forget_pull_requests(ticket).await?;
        self.forget_letters(ticket).await
    }

    /// The runs that have a journal, oldest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub async fn runs_of(&self, ticket: &TicketKey) -> Result<Vec<RunId>, Error> {
        let subjects = self
            .connection
            .subjects(JOURNAL, &format!("{JOURNAL_PREFIX}.*"))
            .await?;
        let runs = subjects
            .iter()
            .filter_map(|subject| subject::text_of(JOURNAL_PREFIX, subject)?.parse::<RunId>().ok());
        let mut runs: Vec<RunId> = runs.filter(|run| run.ticket() == ticket).collect();
        runs.sort_by_key(RunId::sequence);
        Ok(runs)
    }

    /// Ledger rows are named after a run of the ticket, a notice to it, or the ticket itself.
    async fn forget_effects(&self, ticket: &str) -> Result<(), Error> {
        let bucket = Bucket::Effects.name();
        let (stream, prefix) = (table::stream_of(bucket), table::prefix_of(bucket));
        let (mark, own) = (format!("{ticket}@"), format!(":{ticket}"));
        for subject in self.connection.subjects(&stream, &format!("{prefix}.>")).await? {
            let key = subject::text_of(&prefix, &subject).unwrap_or_default();
            let is_its_own = key
                .find(&mark)
                .is_some_and(|at| at == 0 || key[..at].ends_with(':'));
            if is_its_own || key.ends_with(&own) {
                self.connection.purge(&stream, &subject).await?;
            }
        }
        Ok(())
    }

    async fn forget_branches(&self, ticket: &TicketKey) -> Result<(), Error> {
        let bucket = Bucket::Branches.name();
        let (stream, prefix) = (table::stream_of(bucket), table::prefix_of(bucket));
        for (key, record) in self.table::<BranchRecord>(Bucket::Branches).list().await? {
            if record.ticket == *ticket {
                let subject = subject::under(&prefix, &key);
                self.connection.purge(&stream, &subject).await?;
            }
        }
        Ok(())
    }

    async fn forget_pull_requests(&self, ticket: &TicketKey) -> Result<(), Error> {
        let bucket = Bucket::PullRequests.name();
        let (stream, prefix) = (table::stream_of(bucket), table::prefix_of(bucket));
        let table = self.table::<PullRequestRecord>(Bucket::PullRequests);
        for (key, record) in table.list().await? {
            if record.ticket == *ticket {
                let subject = subject::under(&prefix, &key);
                self.connection.purge(&stream, &subject).await?;
            }
        }
        Ok(())
    }

    async fn forget_letters(&self, ticket: &TicketKey) -> Result<(), Error> {
        let letters: DeadLetters = self.dead_letters();
        for (sequence, letter) in letters.list(LETTERS).await? {
            if letter.ticket.as_ref() == Some(ticket) {
                letters.remove(sequence).await?;
            }
        }
        Ok(())
    }
}
