//! Polling fallback: finds events whose webhook was missed, under the same trigger keys.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use bootstrap::rules::RulesBook;
use domain::{InstanceName, RepositoryRules, TicketKey, cause::format_error_chain};
use opentelemetry::{KeyValue, metrics::Counter};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    events::{matched::ConditionMatchEvent, work::WorkRequestEvent},
    facts::tracker_reader::ReadyTicket,
    poll::{
        context::PollContext,
        delivery_log::DeliveryLogScans,
        departures::DepartureSchedule,
        discussions,
        health::HealthSchedule,
        issues::ChangedIssues,
        pull_requests::OpenPullRequests,
        reminders::ReminderSchedule,
        round::count_new_triggers,
        service_pauses::ServicePauses,
        tickets::{poll_jira_changes, poll_repository_comments},
    },
    router::{EventRouter, outcome::EventFailure},
};

/// Poller of Jira (requests for work, changed tickets) and GitHub (our pull requests, issues, discussions, commands in
/// comments).
pub(crate) struct TrackerPoller {
    context: PollContext,
    interval: Duration,
    delivery_logs: DeliveryLogScans,
    pull_requests: OpenPullRequests,
    reminders: ReminderSchedule,
    health: HealthSchedule,
    departures: DepartureSchedule,
    issues: ChangedIssues,
    /// Pauses that Jira asked for, by instance.
    jira_pauses: ServicePauses<Option<InstanceName>>,
    recovered: Counter<u64>,
}

impl TrackerPoller {
    pub(crate) fn new(
        router: EventRouter,
        interval: Duration,
        (settle, pending): (Duration, Duration),
    ) -> Self {
        let recovered = opentelemetry::global::meter("journeyman")
            .u64_counter("journeyman.deliveries.recovered")
            .with_description(
                "Findings that a poll or GitHub's log of deliveries had to bring because no webhook did.",
            )
            .build();
        Self {
            context: PollContext::new(router),
            interval,
            delivery_logs: DeliveryLogScans::default(),
            pull_requests: OpenPullRequests::new(interval, settle, pending),
            reminders: ReminderSchedule::default(),
            health: HealthSchedule::new(),
            departures: DepartureSchedule::default(),
            issues: ChangedIssues::default(),
            jira_pauses: ServicePauses::new(),
            recovered,
        }
    }

    /// Polls at once and then at every interval, until shutdown.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(self.interval);
        // After a slow round, the next one follows a full interval later instead of at once.
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut is_first = true;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = Box::pin(self.poll()) => {}
            }
            // A random offset after the first round, so that installations that start together do not poll in step.
            if std::mem::take(&mut is_first) {
                ticks.reset_after(self.interval.mul_f64(fastrand::f64()));
            }
        }
    }

    /// Earliest time at which a round decides about checks, although nothing changes outside until then.
    pub(crate) fn settles_at(&self) -> Option<Instant> {
        self.pull_requests.settles_at()
    }

    /// Runs one round. A failure of one repository does not block the others.
    pub(crate) async fn poll(&mut self) {
        self.reconcile_github().await;
        // Before the issues, so that the work on a transferred issue ends before it begins at the new place.
        self.poll_departures().await;
        self.poll_issues().await;
        self.poll_discussions().await;
        self.poll_projects().await;
        // The pull requests are polled before the reminders, which use the update times of this poll.
        let polled = self.pull_requests.poll(&mut self.context);
        let recovered = Box::pin(polled).await;
        self.add(recovered, "github");
        self.reminders
            .remind(&self.context.router, &self.pull_requests.open())
            .await;
        // An assessment stores its result, which a dry run does not.
        if !self.context.is_dry_run() {
            self.health.note_ended(self.pull_requests.take_ended());
            let (open, router) = (self.pull_requests.open(), &self.context.router);
            let listed = self.pull_requests.listed_heads(router);
            let assessed = Box::pin(self.health.assess(router, &open, &listed)).await;
            self.add(assessed, "github");
        }
    }

    /// Replays failed deliveries from GitHub's delivery log. An account without such a log polls the comments of each
    /// repository.
    async fn reconcile_github(&mut self) {
        for instance in self.context.router.outside.github_instances() {
            let replayed = self.delivery_logs.replay(&mut self.context, instance.as_ref());
            match replayed.await {
                Ok(Some(recovered)) => self.add(recovered, "github"),
                Ok(None) => self.poll_comments(instance.as_ref()).await,
                Err(failure) => {
                    let instance = instance.as_ref().map(InstanceName::as_str);
                    tracing::warn!(
                        instance,
                        error = %format_error_chain(&failure),
                        "GitHub's delivery log could not be read"
                    );
                }
            }
        }
    }

    /// Polls the issues that runs and open pull requests work for. A dry run knows no tickets.
    async fn poll_departures(&mut self) {
        if self.context.is_dry_run() {
            return;
        }
        let open = self.pull_requests.known_places();
        let polled = self.departures.poll(&self.context.router, open.as_ref());
        let recovered = Box::pin(polled).await;
        self.add(recovered, "github");
    }

    /// Polls issues that request work or a triage, where the rules allow them.
    async fn poll_issues(&mut self) {
        let book = self.context.router.rules.book();
        for rules in book.repositories() {
            let is_wanted = !rules.issues.is_empty() || !rules.triage.is_off();
            let (Ok(repository), None, true) = (rules.repository(), &rules.repo.folder, is_wanted) else {
                continue;
            };
            let polled = self.issues.poll(&mut self.context, &repository, &rules.issues);
            match Box::pin(polled).await {
                Ok(recovered) => self.add(recovered, "github"),
                Err(failure) => {
                    tracing::warn!(%repository, error = %format_error_chain(&failure), "issues could not be read");
                }
            }
        }
    }

    /// Polls discussions, where the rules enable them.
    async fn poll_discussions(&mut self) {
        let book = self.context.router.rules.book();
        for rules in book.repositories() {
            let (Ok(repository), None, true) =
                (rules.repository(), &rules.repo.folder, rules.discussions.enabled)
            else {
                continue;
            };
            let polled = discussions::poll_discussions(&mut self.context, &repository);
            match Box::pin(polled).await {
                Ok(recovered) => self.add(recovered, "github"),
                Err(failure) => {
                    tracing::warn!(
                        %repository,
                        error = %format_error_chain(&failure),
                        "discussions could not be read"
                    );
                }
            }
        }
    }

    async fn poll_comments(&mut self, instance: Option<&InstanceName>) {
        let book = self.context.router.rules.book();
        let repositories = book.repositories().filter_map(|rules| rules.repository().ok());
        for repository in repositories.filter(|repository| repository.instance() == instance) {
            match poll_repository_comments(&mut self.context, &repository).await {
                Ok(recovered) => self.add(recovered, "github"),
                Err(failure) => {
                    tracing::warn!(
                        %repository,
                        error = %format_error_chain(&failure),
                        "comments could not be read"
                    )
                }
            }
        }
    }

    /// Polls the Jira projects. A rate limit of an instance applies to all of its projects, so all of them wait for its end.
    async fn poll_projects(&mut self) {
        let book = self.context.router.rules.book();
        for ((instance, project), sharing) in group_by_project(&book) {
            let instance = instance.cloned();
            if self.jira_pauses.is_paused(&instance, Instant::now()) {
                continue;
            }
            let polled = async {
                let mut statuses = BTreeSet::new();
                for rules in &sharing {
                    // Rules that share a project may share its status too. Each status is searched once.
                    if statuses.insert(&rules.agent.status) {
                        pass_refused_search(self.poll_project(rules).await, project)?;
                    }
                    pass_refused_search(self.poll_condition(rules).await, project)?;
                }
                poll_jira_changes(&mut self.context, &sharing).await
            };
            match Box::pin(polled).await {
                Ok(recovered) => self.add(recovered, "jira"),
                Err(failure) => {
                    tracing::warn!(project, error = %format_error_chain(&failure), "poll of the project failed");
                    self.jira_pauses.record(instance, &failure, Instant::now());
                }
            }
        }
    }

    fn add(&self, recovered: u64, source: &'static str) {
        if recovered > 0 {
            self.recovered
                .add(recovered, &[KeyValue::new("journeyman.source", source)]);
        }
    }

    async fn poll_project(&mut self, rules: &RepositoryRules) -> Result<(), EventFailure> {
        let ready = self
            .context
            .router
            .outside
            .ready(&rules.jira, &rules.agent.status)
            .await?;
        for found in ready {
            match self.poll_ticket(&found).await {
                Ok(()) => {}
                Err(failure) => {
                    let finding = format!("{} in {}", found.ticket, found.status);
                    self.handle_failure(&found.ticket, finding, failure).await?;
                }
            }
        }
        Ok(())
    }

    /// Polls tickets that match the JQL condition of the rules. An invalid condition is logged and blocks no other
    /// poll.
    async fn poll_condition(&mut self, rules: &RepositoryRules) -> Result<(), EventFailure> {
        if rules.jira.jql.is_empty() {
            return Ok(());
        }
        let found = match self.context.router.outside.matching(&rules.jira).await? {
            Ok(found) => found,
            Err(detail) => {
                let project = &rules.jira.project_key;
                tracing::error!(
                    project,
                    detail,
                    "jira does not understand jira.jql of the project"
                );
                return Ok(());
            }
        };
        for stub in found {
            // The update time is part of the finding, so that the next change of the ticket is judged
            // again.
            let remembered = format!("{} matched {}", stub.key, stub.updated);
            if self.context.memory.has_settled(&remembered) {
                continue;
            }
            let matched = ConditionMatchEvent::from_poll(stub.key.clone());
            let taken = self.context.router.take_polled(&matched, stub.id, &stub.key);
            match Box::pin(taken).await {
                Ok(outcome) => {
                    self.add(count_new_triggers(&[outcome]), "jira");
                    self.context.memory.settle(remembered);
                }
                Err(failure) => self.handle_failure(&stub.key, remembered, failure).await?,
            }
        }
        Ok(())
    }

    /// Handles the failed poll of a ticket. One that no retry can read is given up, once for each finding.
    ///
    /// # Errors
    /// A rate limit. It applies to all tickets, so the rest of the round would fail too.
    async fn handle_failure(
        &mut self,
        ticket: &TicketKey,
        finding: String,
        failure: EventFailure,
    ) -> Result<(), EventFailure> {
        if failure.is_limit() {
            return Err(failure);
        }
        if failure.may_pass() {
            tracing::warn!(%ticket, error = %format_error_chain(&failure), "poll of the ticket failed");
        } else if !self.context.memory.has_settled(&finding) {
            self.context
                .give_up(&finding, Some(ticket.clone()), &failure)
                .await?;
            self.context.memory.settle(finding);
        }
        Ok(())
    }

    async fn poll_ticket(&mut self, found: &ReadyTicket) -> Result<(), EventFailure> {
        let moved = self
            .context
            .router
            .outside
            .last_move(&found.ticket, &found.status)
            .await?;
        let work = WorkRequestEvent::from_poll(
            found.ticket.clone(),
            found.status.clone(),
            moved,
            bootstrap::read_wall_clock(),
        );
        // The key contains the changelog id, so a ticket that left the status and returned is a new
        // finding.
        let remembered = format!("{} {}", found.ticket, work.key().as_str());
        if self.context.memory.has_settled(&remembered) {
            return Ok(());
        }
        let taken = self.context.router.take_polled(&work, found.id, &found.ticket);
        let outcome = Box::pin(taken).await?;
        self.add(count_new_triggers(&[outcome]), "jira");
        self.context.memory.settle(remembered);
        Ok(())
    }
}

/// Logs a search that Jira refuses, for example because its status does not exist. It blocks no other poll of the
/// project.
///
/// # Errors
/// An outage or a rate limit, which applies to the other polls, too.
fn pass_refused_search(searched: Result<(), EventFailure>, project: &str) -> Result<(), EventFailure> {
    match searched {
        Err(failure) if !failure.is_of_outside() => {
            tracing::warn!(project, error = %format_error_chain(&failure), "search in the project failed");
            Ok(())
        }
        searched => searched,
    }
}

/// Rules that share each Jira project, in their order.
fn group_by_project(book: &RulesBook) -> BTreeMap<(Option<&InstanceName>, &str), Vec<&RepositoryRules>> {
    let mut projects: BTreeMap<_, Vec<&RepositoryRules>> = BTreeMap::new();
    let with_project = book
        .repositories()
        .filter(|rules| !rules.jira.project_key.is_empty());
    for rules in with_project {
        let project = (rules.jira.instance.as_ref(), rules.jira.project_key.as_str());
        projects.entry(project).or_default().push(rules);
    }
    projects
}
