//! Reads of the facts that decisions need.

use std::sync::Arc;

use domain::{
    BranchRecord, CommitId, PullRequestFile, RepositoryName, RunId, Spend, TicketCost, TicketKey, TicketRow,
    Trigger, TriggerKey, cause::format_error_chain,
};
use github::{CommitCheck, PullRequest};
use queue::{KeyValueBucket, Queue};

use crate::{
    facts::{
        DecisionFacts, EventActor, Need, ReadIssue, RunProgress,
        gates::{DecisionGate, can_ask, find_open_gate, is_about_gate, is_asking},
        issue_keys::IssueKeys,
        tracker_reader::{ReadError, TrackerIssue, TrackerReader},
    },
    policy::instructors::Instructors,
    router::outcome::EventFailure,
};

/// Reads a value and adds it to the facts under its key.
macro_rules! keep {
    ($facts:ident.$put:ident($($key:ident),+), $read:expr) => {{
        let value = $read?;
        $facts.$put($($key),+, value);
    }};
}

/// Reader of facts from the store, from Jira and from GitHub.
#[derive(Clone)]
pub(crate) struct FactReader {
    queue: Queue,
    outside: Arc<TrackerReader>,
    /// Keys of Jira issues.
    keys: IssueKeys,
    /// Authorization on Jira.
    instructors: Arc<Instructors>,
}

impl FactReader {
    pub(crate) fn new(queue: Queue, outside: Arc<TrackerReader>, instructors: Instructors) -> Self {
        Self {
            keys: IssueKeys::new(queue.clone(), Arc::clone(&outside)),
            queue,
            outside,
            instructors: Arc::new(instructors),
        }
    }

    /// Authorization on Jira.
    pub(crate) fn instructors(&self) -> &Instructors {
        &self.instructors
    }

    /// Keys of Jira issues.
    pub(crate) const fn keys(&self) -> &IssueKeys {
        &self.keys
    }

    /// Sequence of a key in the ticket's log.
    pub(crate) async fn known(
        &self,
        ticket: &TicketKey,
        key: &TriggerKey,
    ) -> Result<Option<u64>, EventFailure> {
        let records = self.keys.records_of(ticket).await?;
        self.sequence_of(&records, key).await
    }

    async fn sequence_of(&self, records: &TicketKey, key: &TriggerKey) -> Result<Option<u64>, EventFailure> {
        Ok(self.queue.triggers().sequence_of(records, key.as_str()).await?)
    }

    /// Ticket that has the records of a ticket. Its identity becomes a fact.
    pub(crate) async fn records(
        &self,
        ticket: &TicketKey,
        facts: &mut DecisionFacts,
    ) -> Result<TicketKey, EventFailure> {
        if !facts.is_identity_known(ticket) {
            let identity = self.keys.identity(ticket).await?;
            facts.put_identity(ticket.clone(), identity);
        }
        Ok(facts.records(ticket).clone())
    }

    /// Reads one fact and adds it.
    #[expect(clippy::too_many_lines, reason = "one table from each need to its read")]
    pub(crate) async fn read(&self, need: Need, facts: &mut DecisionFacts) -> Result<(), EventFailure> {
        match need {
            Need::Known(ticket, key) => {
                let records = self.records(&ticket, facts).await?;
                keep!(
                    facts.put_known(ticket, key),
                    self.sequence_of(&records, &key).await
                );
            }
            Need::Identity(ticket) => {
                keep!(facts.put_identity(ticket), self.keys.identity(&ticket).await);
            }
            Need::Issue(ticket) => {
                // The identity comes first: with it the issue is found by its id, whatever its key is now.
                self.records(&ticket, facts).await?;
                self.outside
                    .name_criteria_fields(ticket.instance(), facts.book.repositories());
                keep!(facts.put_issue(ticket), self.issue(&ticket).await);
            }
            Need::Named(ticket) => keep!(facts.put_named(ticket), self.named(&ticket).await),
            Need::Fields(ticket, names) => keep!(
                facts.put_fields(ticket, names),
                self.outside.fields(&ticket, &names).await
            ),
            Need::OpenPullRequests(repository, ticket) => {
                let records = self.records(&ticket, facts).await?;
                keep!(
                    facts.put_open(repository, ticket),
                    self.open_pull_requests(&repository, &ticket, &records).await
                );
            }
            Need::Row(ticket) => {
                let records = self.records(&ticket, facts).await?;
                keep!(facts.put_row(ticket), self.row(&records).await);
            }
            Need::Progress(ticket) => {
                let records = self.records(&ticket, facts).await?;
                keep!(facts.put_progress(ticket), self.progress(&records).await);
            }
            Need::Branch(repository, branch) => keep!(
                facts.put_branch(repository, branch),
                self.branch_record(&repository, &branch).await
            ),
            Need::Record(repository, number) => keep!(
                facts.put_record(repository, number),
                self.queue.pull_requests().get(&repository, number).await
            ),
            Need::PullRequest(repository, number) => keep!(
                facts.put_pull_request(repository, number),
                self.outside.pull_request(&repository, number).await
            ),
            Need::Checks(repository, head) => keep!(
                facts.put_checks(repository, head),
                self.outside.checks(&repository, &head).await
            ),
            Need::WorkflowRuns(repository, head) => keep!(
                facts.put_workflow_runs(repository, head),
                self.outside.workflow_runs(&repository, &head).await
            ),
            Need::Required(repository, branch) => keep!(
                facts.put_required(repository, branch),
                self.outside.required_checks(&repository, &branch).await
            ),
            Need::Log(repository, check) => keep!(
                facts.put_log(repository, check),
                self.log(facts, &repository, &check).await
            ),
            Need::BranchChecks(repository, branch) => keep!(
                facts.put_branch_checks(repository, branch),
                self.outside.branch_checks(&repository, &branch).await
            ),
            Need::History(ticket) => {
                let records = self.records(&ticket, facts).await?;
                keep!(facts.put_history(ticket), self.history(&records).await);
            }
            Need::Cost(ticket) => {
                let records = self.records(&ticket, facts).await?;
                keep!(facts.put_cost(ticket), self.cost(&records).await);
            }
            Need::Gates(ticket) => {
                let records = self.records(&ticket, facts).await?;
                keep!(facts.put_gates(ticket), self.gates(&records).await);
            }
            Need::Gate(run) => keep!(facts.put_gate(run), self.gate(&run).await),
            Need::Reviews(repository, number) => keep!(
                facts.put_reviews(repository, number),
                self.outside.reviews(&repository, number).await
            ),
            Need::ChangedFiles(repository, number) => keep!(
                facts.put_files(repository, number),
                self.outside.changed_files(&repository, number).await
            ),
            Need::ChangedSince(repository, base, head) => keep!(
                facts.put_changed_since(repository, base, head),
                self.changed_since(&repository, &base, &head).await
            ),
            Need::Commits(repository, number) => keep!(
                facts.put_commits(repository, number),
                self.outside.commits(&repository, number).await
            ),
            Need::ReviewRequests(repository, number) => keep!(
                facts.put_review_requests(repository, number),
                self.outside.review_requests(&repository, number).await
            ),
            Need::Matches(ticket, condition) => keep!(
                facts.put_matches(ticket, condition),
                self.outside.matches(&ticket, &condition).await
            ),
            Need::Authority(person) => keep!(facts.put_authority(person), self.may_instruct(&person).await),
        }
        Ok(())
    }

    /// Reads the ticket. The inner error is permanent.
    async fn issue(&self, ticket: &TicketKey) -> Result<ReadIssue, EventFailure> {
        match self.outside.issue(ticket).await {
            Ok(issue) => Ok(Ok(issue)),
            Err(ReadError::Unreadable(detail)) => Ok(Err(detail)),
            Err(ReadError::Deleted(_)) => Err(EventFailure::Deleted(Box::new(ticket.clone()))),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a ticket that a pull request names; `None` for one that is missing, moved, deleted or unreadable.
    async fn named(&self, ticket: &TicketKey) -> Result<Option<TrackerIssue>, EventFailure> {
        match self.outside.issue(ticket).await {
            Ok(issue) => Ok(Some(issue)),
            Err(
                ReadError::Unreadable(_)
                | ReadError::NotFound(_)
                | ReadError::Transferred(_)
                | ReadError::Deleted(_),
            ) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Lists open pull requests of a repository of the rules. A repository that the reader cannot see is an operator's
    /// mistake, so the event is retried until it is fixed.
    async fn open_pull_requests(
        &self,
        repository: &RepositoryName,
        ticket: &TicketKey,
        records: &TicketKey,
    ) -> Result<Vec<PullRequest>, EventFailure> {
        let mut found = self.mentioning(repository, ticket).await?;
        if records != ticket {
            // Pull requests from before a move of the issue name its old key.
            let older = self.mentioning(repository, records).await?;
            found.extend(older);
            found.sort_by_key(|pull| pull.number);
            found.dedup_by_key(|pull| pull.number);
        }
        Ok(found)
    }

    async fn mentioning(
        &self,
        repository: &RepositoryName,
        ticket: &TicketKey,
    ) -> Result<Vec<PullRequest>, EventFailure> {
        match self.outside.mentioning(repository, ticket).await {
            Err(ReadError::NotFound(detail)) => Err(EventFailure::Later { detail, after: None }),
            found => Ok(found?),
        }
    }

    /// Changed files since a commit; empty when a force push removed that commit.
    async fn changed_since(
        &self,
        repository: &RepositoryName,
        base: &CommitId,
        head: &CommitId,
    ) -> Result<Vec<PullRequestFile>, EventFailure> {
        match self.outside.changed_since(repository, base, head).await {
            Err(ReadError::NotFound(_)) => Ok(Vec::new()),
            found => Ok(found?),
        }
    }

    async fn log(
        &self,
        facts: &DecisionFacts,
        repository: &RepositoryName,
        check: &CommitCheck,
    ) -> Result<Option<String>, EventFailure> {
        let rules = facts.book.for_repository(repository);
        let command = rules.map_or(&[][..], |rules| &rules.ci.logs_command);
        Ok(self.outside.job_log(repository, check, command).await?)
    }

    async fn branch_record(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Option<BranchRecord>, EventFailure> {
        let known = self.queue.branches().get(repository, branch).await?;
        Ok(known.map(|(record, _)| record))
    }

    /// Triggers of a ticket. Unreadable records are skipped: they could not be counted anyway.
    async fn history(&self, ticket: &TicketKey) -> Result<Vec<Trigger>, EventFailure> {
        let read = self.queue.triggers().read_each_after(ticket, 0).await?;
        Ok(read.into_iter().filter_map(|(_, trigger)| trigger.ok()).collect())
    }

    /// Cost of a ticket. A corrupt journal counts as 0, so that the other runs are still reported.
    async fn cost(&self, ticket: &TicketKey) -> Result<TicketCost, EventFailure> {
        let (journal, mut spend) = (self.queue.journal(), Spend::default());
        for run in journal.runs_of(ticket).await? {
            match journal
                .read_kept(&run, |entry| Spend::is_affected_by(&entry.fact))
                .await
            {
                Ok(entries) => spend.add_journal(&run, &entries),
                Err(error @ queue::Error::Corrupt { .. }) => {
                    tracing::warn!(%run, error = %format_error_chain(&error), "run not counted in its ticket's cost");
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(spend.ticket_cost())
    }

    /// Open decisions of the ticket's runs. A decision that arrives before the run has parked fails with [`EventFailure::Early`]
    /// and is retried.
    async fn gates(&self, ticket: &TicketKey) -> Result<Vec<(RunId, DecisionGate)>, EventFailure> {
        let mut gates = Vec::new();
        for run in self.row(ticket).await?.runs {
            // Most runs of a ticket are finished. The check saves the reads of their journals.
            if !can_ask(&run.status) {
                continue;
            }
            let entries = self.queue.journal().read_kept(&run.id, is_about_gate).await?;
            if let Some(gate) = find_open_gate(entries.iter()) {
                if self.is_shown(&run.id, &gate).await? {
                    gates.push((run.id, gate));
                }
            } else if is_asking(entries.iter()) {
                return Err(EventFailure::Early(format!(
                    "run {} asks people just now",
                    run.id
                )));
            }
        }
        Ok(gates)
    }

    /// Open decision of a run. A decision that arrives before the run has parked fails with [`EventFailure::Early`].
    async fn gate(&self, run: &RunId) -> Result<Option<DecisionGate>, EventFailure> {
        let entries = self.queue.journal().read_kept(run, is_about_gate).await?;
        match find_open_gate(entries.iter()) {
            Some(gate) => Ok(self.is_shown(run, &gate).await?.then_some(gate)),
            None if is_asking(entries.iter()) => {
                Err(EventFailure::Early(format!("run {run} asks people just now")))
            }
            None => Ok(None),
        }
    }

    /// True when the reporter has shown the question to users.
    async fn is_shown(&self, run: &RunId, gate: &DecisionGate) -> Result<bool, EventFailure> {
        let read = self.queue.triggers().read_each_after(run.ticket(), 0).await?;
        let triggers = read.iter().filter_map(|(_, trigger)| trigger.as_ref().ok());
        let is_shown = gate.is_shown(run, triggers);
        if !is_shown {
            tracing::error!(%run, head = %gate.head, "no decision: the run's journal asks about what the reporter did not show");
        }
        Ok(is_shown)
    }

    async fn row(&self, ticket: &TicketKey) -> Result<TicketRow, EventFailure> {
        let rows = self.queue.table::<TicketRow>(KeyValueBucket::Tickets);
        let row = rows.get(&ticket.to_string()).await?;
        Ok(row.map(|(row, _)| row).unwrap_or_default())
    }

    /// The row is read before the log. A trigger that arrives in between makes the planner appear behind, never finished work
    /// appear live.
    async fn progress(&self, ticket: &TicketKey) -> Result<RunProgress, EventFailure> {
        let row = self.row(ticket).await?;
        let last = self.queue.triggers().last_sequence(ticket).await?;
        Ok(RunProgress {
            is_live: row.pending.iter().any(|pending| pending.lane.hears_news()),
            is_behind: last.is_some_and(|last| last > row.cursor),
        })
    }

    async fn may_instruct(&self, person: &EventActor) -> Result<bool, EventFailure> {
        match person {
            EventActor::Jira {
                instance,
                project,
                account,
            } => {
                let id = Some(account.id.as_str());
                let place = (instance.as_ref(), project.as_str());
                Ok(self.instructors.include(&self.outside, place, id).await?)
            }
            // The API has checked the token and the role of its caller.
            EventActor::Api { .. } => Ok(true),
            // A deleted account loses its rights.
            EventActor::GitHub { id: None, .. } => Ok(false),
            EventActor::GitHub {
                repository,
                login,
                id: Some(id),
                ..
            } => Ok(self.outside.may_write(repository, login, *id).await?),
        }
    }
}
