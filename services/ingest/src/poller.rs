//! The second door: polls find what no webhook told, under the same keys.

use std::{collections::BTreeSet, time::Duration};

use domain::{BranchRecord, Rules, Source};
use opentelemetry::metrics::Counter;
use queue::{Appended, Bucket};
use tokio_util::sync::CancellationToken;

use crate::{
    detect::{self, PinnedFields},
    outcome::{Failure, Outcome},
    outside::Ready,
    router::{Request, Router, entry_key},
};

/// How many keys are remembered, so that a known finding costs no reads.
const REMEMBERED: usize = 10_000;

/// Polls Jira for tickets that ask for work, and GitHub for our pull requests.
pub(crate) struct Poller {
    router: Router,
    interval: Duration,
    seen: BTreeSet<String>,
    recovered: Counter<u64>,
}

impl Poller {
    pub(crate) fn new(router: Router, interval: Duration) -> Self {
        let recovered = opentelemetry::global::meter("journeyman")
            .u64_counter("journeyman_deliveries_recovered_total")
            .with_description(
                "Findings that a poll or GitHub's log of deliveries had to bring because no webhook did.",
            )
            .build();
        Self {
            router,
            interval,
            seen: BTreeSet::new(),
            recovered,
        }
    }

    /// Polls at once and then at every interval, until shutdown.
    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(self.interval);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = Box::pin(self.poll()) => {}
            }
        }
    }

    /// One round. A failure of one repository does not keep the others from their turn.
    pub(crate) async fn poll(&mut self) {
        if self.seen.len() > REMEMBERED {
            self.seen.clear();
        }
        match self.router.reconcile().await {
            Ok(recovered) => self.recovered.add(recovered, &[]),
            Err(failure) => {
                tracing::warn!(%failure, "github's log of deliveries could not be looked through")
            }
        }
        let book = self.router.rules.book();
        for rules in book
            .repositories()
            .filter(|rules| !rules.jira.project_key.is_empty())
        {
            if let Err(failure) = self.poll_project(rules).await {
                tracing::warn!(project = rules.jira.project_key, %failure, "poll of the project failed");
            }
        }
        match self
            .router
            .queue
            .table::<BranchRecord>(Bucket::Branches)
            .list()
            .await
        {
            Ok(records) => {
                for (_, record) in records {
                    self.poll_record(&record).await;
                }
            }
            Err(error) => tracing::warn!(%error, "poll of the pull requests failed"),
        }
    }

    async fn poll_project(&mut self, rules: &Rules) -> Result<(), Failure> {
        let ready = self
            .router
            .outside
            .ready(&rules.jira.project_key, &rules.agent.status)
            .await?;
        for found in ready {
            if let Err(failure) = self.poll_ticket(&found, rules).await {
                tracing::warn!(ticket = %found.ticket, %failure, "poll of the ticket failed");
            }
        }
        Ok(())
    }

    async fn poll_ticket(&mut self, found: &Ready, rules: &Rules) -> Result<(), Failure> {
        let changelog = self
            .router
            .outside
            .last_move(&found.ticket, &found.status)
            .await?;
        let key = entry_key(&found.ticket, changelog.as_deref());
        let remembered = format!("{} {}", found.ticket, key.as_str());
        if self.seen.contains(&remembered) {
            return Ok(());
        }
        let request = Request {
            ticket: found.ticket.clone(),
            key,
            at: None,
            actor: None,
            source: Source::Poll,
            pinned: PinnedFields::default(),
        };
        let outcome = self.router.job_for_issue(request, rules).await?;
        self.count(&outcome);
        self.seen.insert(remembered);
        Ok(())
    }

    async fn poll_record(&mut self, record: &BranchRecord) {
        let Some(ours) = &record.pull_request else { return };
        let remembered = format!("{}#{}", ours.repository, ours.number);
        if self.seen.contains(&remembered) {
            return;
        }
        match self.poll_pull_request(record, ours).await {
            Ok(over) => {
                if over {
                    self.seen.insert(remembered);
                }
            }
            Err(failure) => {
                tracing::warn!(ticket = %record.ticket, repository = %ours.repository, %failure, "poll of the pull request failed");
            }
        }
    }

    /// True when the pull request is over and need not be polled again.
    async fn poll_pull_request(
        &self,
        record: &BranchRecord,
        ours: &domain::PullRequestRef,
    ) -> Result<bool, Failure> {
        let now = self
            .router
            .outside
            .pull_request(&ours.repository, ours.number)
            .await?;
        let outcome = match detect::closing(&now) {
            Some(closing) => {
                self.router
                    .closed(&record.ticket, ours, &closing, Source::Poll)
                    .await?
            }
            None => {
                self.router
                    .checks(&record.ticket, ours, &now.head, Source::Poll)
                    .await?
            }
        };
        self.count(&outcome);
        Ok(now.merged)
    }

    fn count(&self, outcome: &Outcome) {
        if let Outcome::Appended {
            trigger,
            appended: Appended::New(_),
        } = outcome
        {
            tracing::info!(ticket = %trigger.ticket, key = trigger.key.as_str(), "found by poll");
            self.recovered.add(1, &[]);
        }
    }
}
