//! Reads what decisions need.

use domain::{Row, RunId, RunStatus, TicketKey, WaitsFor};
use queue::Bucket;

use crate::{
    facts::{Facts, Need, Person},
    gates::{Gate, open_gate},
    outcome::Failure,
    outside::ReadError,
    router::Router,
};

impl Router {
    /// Reads one thing and adds it to what is known.
    pub(crate) async fn read(&self, need: Need, facts: &mut Facts) -> Result<(), Failure> {
        match need {
            Need::Known(ticket, key) => {
                let known = self.known(&ticket, &key).await?;
                facts.put_known(ticket, key, known);
            }
            Need::Issue(ticket) => {
                let issue = match self.outside.issue(&ticket).await {
                    Ok(issue) => Ok(issue),
                    Err(ReadError::Unreadable(detail)) => Err(detail),
                    Err(error) => return Err(error.into()),
                };
                facts.put_issue(ticket, issue);
            }
            Need::OpenPullRequests(repository, ticket) => {
                let found = self.outside.mentioning(&repository, &ticket).await;
                facts.put_open(repository, ticket, found.map_err(must_exist)?);
            }
            Need::Row(ticket) => {
                let row = self.row(&ticket).await?;
                facts.put_row(ticket, row);
            }
            Need::Listeners(ticket) => {
                let listeners = self.has_listeners(&ticket).await?;
                facts.put_listeners(ticket, listeners);
            }
            Need::Branch(repository, branch) => {
                let record = self.queue.branches().get(&repository, &branch).await?;
                facts.put_branch(repository, branch, record.map(|(record, _)| record));
            }
            Need::Record(repository, number) => {
                let record = self.queue.pull_requests().get(&repository, number).await?;
                facts.put_record(repository, number, record);
            }
            Need::PullRequest(repository, number) => {
                let now = self.outside.pull_request(&repository, number).await?;
                facts.put_pull_request(repository, number, now);
            }
            Need::Checks(repository, head) => {
                let checks = self.outside.checks(&repository, &head).await?;
                facts.put_checks(repository, head, checks);
            }
            Need::Log(repository, check) => {
                let log = self.outside.job_log(&repository, &check).await?;
                facts.put_log(repository, check, log);
            }
            Need::BranchChecks(repository, branch) => {
                let checks = self.outside.branch_checks(&repository, &branch).await?;
                facts.put_branch_checks(repository, branch, checks);
            }
            Need::History(ticket) => {
                let read = self.queue.triggers().read_each_after(&ticket, 0).await?;
                // One that cannot be read asks for nothing that could be counted.
                let history = read.into_iter().filter_map(|(_, trigger)| trigger.ok());
                facts.put_history(ticket, history.collect());
            }
            Need::Gates(ticket) => {
                let gates = self.gates(&ticket).await?;
                facts.put_gates(ticket, gates);
            }
            Need::Reviews(repository, number) => {
                let reviews = self.outside.reviews(&repository, number).await?;
                facts.put_reviews(repository, number, reviews);
            }
            Need::ChangedFiles(repository, number) => {
                let files = self.outside.changed_files(&repository, number).await?;
                facts.put_files(repository, number, files);
            }
            Need::ReviewRequests(repository, number) => {
                let requests = self.outside.review_requests(&repository, number).await?;
                facts.put_review_requests(repository, number, requests);
            }
            Need::Authority(person) => {
                let may = self.may_instruct(&person).await?;
                facts.put_authority(person, may);
            }
        }
        Ok(())
    }

    async fn gates(&self, ticket: &TicketKey) -> Result<Vec<(RunId, Gate)>, Failure> {
        let mut gates = Vec::new();
        let decision = RunStatus::Parked {
            waits_for: WaitsFor::Decision,
        };
        for run in self.row(ticket).await?.runs {
            if run.status != decision {
                continue;
            }
            let entries = self.queue.journal().read(&run.id).await?;
            if let Some(gate) = open_gate(entries.iter().map(|(_, entry)| entry)) {
                gates.push((run.id, gate));
            }
        }
        Ok(gates)
    }

    async fn row(&self, ticket: &TicketKey) -> Result<Row, Failure> {
        let rows = self.queue.table::<Row>(Bucket::Tickets);
        let row = rows.get(&ticket.to_string()).await?;
        Ok(row.map(|(row, _)| row).unwrap_or_default())
    }

    /// True while a run of the ticket takes news in, or may be about to: a trigger is not folded yet.
    async fn has_listeners(&self, ticket: &TicketKey) -> Result<bool, Failure> {
        let row = self.row(ticket).await?;
        if row.pending.iter().any(|pending| pending.lane.hears_news()) {
            return Ok(true);
        }
        let last = self.queue.triggers().last_sequence(ticket).await?;
        Ok(last.is_some_and(|last| last > row.cursor))
    }

    async fn may_instruct(&self, person: &Person) -> Result<bool, Failure> {
        match person {
            Person::Jira { instance, account } => {
                let id = Some(account.id.as_str());
                let instance = instance.as_ref();
                Ok(self.instructors.include(&self.outside, instance, id).await?)
            }
            Person::Api { .. } => Ok(true),
            // The account is gone, and with it what it was allowed.
            Person::GitHub { id: None, .. } => Ok(false),
            Person::GitHub {
                repository,
                login,
                id: Some(id),
            } => Ok(self.outside.may_write(repository, login, *id).await?),
        }
    }
}

/// The repository that rules name must be visible; until an operator fixes that, the finding waits.
fn must_exist(error: ReadError) -> Failure {
    match error {
        ReadError::NotFound(detail) => Failure::Later { detail, after: None },
        other @ (ReadError::Unreadable(_) | ReadError::Later { .. }) => other.into(),
    }
}
