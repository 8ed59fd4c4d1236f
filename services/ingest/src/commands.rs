//! What people order in comments, `/stop` and `/retry`, and what a retry means for a ticket.

use domain::{Job, Reason, RepositoryName, Row, RunStatus, StopReason, TicketKey, Trigger};
use queue::Bucket;

use crate::{
    outcome::{Failure, Outcome},
    request::{Asked, Request},
    router::Router,
    said::{Command, Order},
};

/// What a retry would do now.
#[derive(Debug, PartialEq, Eq)]
enum Retry {
    /// A run waits, or the ticket is quarantined: it goes on.
    GoOn,
    /// The last run failed: the job is asked for again.
    Again,
    /// Nothing has failed.
    Nothing,
}

impl Router {
    /// Obeys an order that somebody may give.
    pub(crate) async fn obey(&self, command: Command, order: Order) -> Result<Outcome, Failure> {
        match command {
            Command::Stop => self.write_down(order, Reason::StopRequested { run: None }).await,
            Command::Retry => self.retry(order).await,
        }
    }

    /// Tries again: what waits at once, what failed from the start.
    pub(crate) async fn retry(&self, order: Order) -> Result<Outcome, Failure> {
        let table = self.queue.table::<Row>(Bucket::Tickets);
        let row = table.get(&order.ticket.to_string()).await?.map(|(row, _)| row);
        match row.as_ref().map_or(Retry::Nothing, retry_of) {
            Retry::GoOn => self.write_down(order, Reason::RetryRequested).await,
            Retry::Nothing => Ok(Outcome::Nothing(
                "nothing has failed that could be tried again".to_owned(),
            )),
            Retry::Again if matches!(order.ticket, TicketKey::Folder { .. }) => Ok(Outcome::Nothing(
                "a ticket of a folder is started again with its text".to_owned(),
            )),
            Retry::Again => {
                let rules = self.rules_for(&order.ticket)?;
                let request = Request {
                    ticket: order.ticket,
                    key: order.key,
                    source: order.source,
                    asked: Asked::Ordered {
                        at: order.at,
                        by: order.actor,
                    },
                };
                Box::pin(self.job_for_issue(request, &rules)).await
            }
        }
    }

    /// The order of a Jira comment, when its author is one of the instructors and no account of ours.
    pub(crate) async fn jira_command(
        &self,
        command: Command,
        order: Order,
        account: &str,
    ) -> Result<Outcome, Failure> {
        let refused = |why: &str| Ok(Outcome::Nothing(why.to_owned()));
        if self.is_ours(&[account, &order.actor]) {
            return refused("our own account said it");
        }
        if !self
            .instructors
            .include(&self.outside, order.ticket.instance(), Some(account))
            .await?
        {
            tracing::info!(ticket = %order.ticket, "order refused: its author may not give any");
            return refused("the author may not give orders");
        }
        self.obey(command, order).await
    }

    /// The order of a GitHub comment, when its author may write to the repository and is no account of ours. A pull
    /// request of ours stands for its ticket.
    pub(crate) async fn github_command(
        &self,
        command: Command,
        (repository, number): (&RepositoryName, u64),
        order: Order,
    ) -> Result<Outcome, Failure> {
        if self.is_ours(&[&order.actor]) {
            return Ok(Outcome::Nothing("our own account said it".to_owned()));
        }
        if !self.outside.may_write(repository, &order.actor).await? {
            tracing::info!(%repository, "order refused: its author may not write");
            return Ok(Outcome::Nothing("the author may not give orders".to_owned()));
        }
        let ours = self.queue.pull_requests().get(repository, number).await?;
        let ticket = ours.map_or(order.ticket.clone(), |record| record.ticket);
        self.obey(command, Order { ticket, ..order }).await
    }

    pub(crate) async fn write_down(&self, order: Order, reason: Reason) -> Result<Outcome, Failure> {
        self.outcome(Trigger {
            ticket: order.ticket,
            key: order.key,
            at: order.at,
            source: order.source,
            actor: Some(order.actor),
            reason,
        })
        .await
    }
}

fn retry_of(row: &Row) -> Retry {
    if row.quarantined.is_some() || row.waiting_for_retry().next().is_some() {
        return Retry::GoOn;
    }
    let last = row.runs.iter().rev().find(|run| run.job == Job::Implement);
    match last.map(|run| &run.status) {
        Some(RunStatus::Finished { reason }) if *reason != StopReason::Completed => Retry::Again,
        Some(_) | None => Retry::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use domain::{Lane, Pending, RunId, Timestamp, WaitsFor};

    use super::*;

    #[test]
    fn a_retry_goes_on_or_starts_again_or_does_nothing() {
        let run = RunId::new("jira:ENG-1".parse().unwrap(), 5);
        let with = |status: RunStatus| {
            let mut row = Row::default();
            row.open(
                Pending::new(run.clone(), Job::Implement, Lane::Talk),
                Timestamp::default(),
            );
            row.run_mut(&run).unwrap().status = status;
            row
        };
        let finished = |reason| with(RunStatus::Finished { reason });
        let parked = |waits_for| with(RunStatus::Parked { waits_for });
        assert_eq!(retry_of(&Row::default()), Retry::Nothing);
        assert_eq!(retry_of(&with(RunStatus::Active)), Retry::Nothing);
        assert_eq!(retry_of(&parked(WaitsFor::Report)), Retry::Nothing);
        assert_eq!(retry_of(&finished(StopReason::Completed)), Retry::Nothing);
        assert_eq!(retry_of(&parked(WaitsFor::Retry)), Retry::GoOn);
        assert_eq!(
            retry_of(&finished(StopReason::TurnLimit { turns: 50 })),
            Retry::Again
        );
        let quarantined = Row {
            quarantined: Some("stuck".to_owned()),
            ..Row::default()
        };
        assert_eq!(retry_of(&quarantined), Retry::GoOn);
    }
}
