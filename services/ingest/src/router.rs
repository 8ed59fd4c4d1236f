//! The router: a delivery or a poll finding becomes a trigger of its ticket, or a reason why not.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bootstrap::rules::RulesStore;
use domain::{
    BranchRecord, CommitId, Origin, PullRequestRef, Reason, RepositoryName, Rules, Source, TicketKey,
    Timestamp, Trigger, TriggerKey, cause::chain,
};
use queue::{Appended, Disposition, Queue, WebhookDelivery};

use crate::{
    detect::{self, Approval, ChecksVerdict, Closing},
    events,
    instructors::Instructors,
    outcome::{Failure, Outcome, disposition},
    outside::Outside,
    request::{Asked, Request},
    tracker::Tracker,
};

/// How long one delivery may occupy a slot; a service that does not answer must not hold back the others.
const HANDLING_LIMIT: Duration = Duration::from_secs(20);

/// Everything that a finding is judged with.
#[derive(Clone)]
pub(crate) struct Router {
    pub(crate) queue: Queue,
    pub(crate) outside: Arc<Outside>,
    pub(crate) rules: Arc<RulesStore>,
    pub(crate) own_accounts: Arc<BTreeSet<String>>,
    /// Whether Jira knows what the rules name.
    pub(crate) tracker: Arc<Tracker>,
    /// Who may instruct us on Jira.
    pub(crate) instructors: Arc<Instructors>,
}

impl Router {
    /// Handles one delivery.
    #[tracing::instrument(skip_all, fields(delivery = %delivery.id, source = %delivery.source, event = %delivery.event))]
    pub(crate) async fn handle(&self, delivery: WebhookDelivery) -> Disposition {
        let routed = tokio::time::timeout(HANDLING_LIMIT, Box::pin(self.route(&delivery)));
        let result = routed.await.unwrap_or_else(|_| {
            Err(Failure::Later {
                detail: format!("not handled within {} s", HANDLING_LIMIT.as_secs()),
                after: None,
            })
        });
        match &result {
            Ok(Outcome::Appended { trigger, appended }) => {
                tracing::info!(ticket = %trigger.ticket, key = trigger.key.as_str(), ?appended, "trigger appended");
            }
            Ok(Outcome::Known(sequence)) => tracing::debug!(sequence, "known already"),
            Ok(Outcome::NoChecks) => tracing::debug!("no check reports yet"),
            Ok(Outcome::Nothing(why)) => tracing::debug!(why, "nothing follows"),
            Err(failure) => tracing::warn!(error = %chain(failure), "delivery not handled"),
        }
        disposition(
            result.map(|_| ()),
            bootstrap::now().unix_ms() - delivery.received_at.unix_ms(),
        )
    }

    async fn route(&self, delivery: &WebhookDelivery) -> Result<Outcome, Failure> {
        match &delivery.source {
            Origin::Jira(_) => self.jira(delivery).await,
            Origin::GitHub(_) => self.github(delivery).await,
        }
    }

    async fn jira(&self, delivery: &WebhookDelivery) -> Result<Outcome, Failure> {
        let entered = match events::jira::parse(&delivery.body)?.on(delivery.source.instance()) {
            events::jira::Event::Entered(entered) => entered,
            events::jira::Event::Commented {
                remark,
                order,
                account,
            } => return self.jira_remark(remark, order, &account).await,
            events::jira::Event::Edited(edited) => {
                let rules = self.rules_for(&edited.ticket).unwrap_or_default();
                return self.triage(edited, &rules).await;
            }
            events::jira::Event::Other(what) => return Ok(Outcome::Nothing(what)),
        };
        if self.is_ours(&[&entered.actor.id, &entered.actor.display_name]) {
            return Ok(Outcome::Nothing("our own account did it".to_owned()));
        }
        match self.rules_for(&entered.ticket) {
            Ok(rules) if entered.changelog.is_none() && !detect::asks_for_work(&entered.status, &rules) => {
                self.triage(entered, &rules).await
            }
            Ok(rules) if !detect::asks_for_work(&entered.status, &rules) => Ok(Outcome::Nothing(format!(
                "status {:?} asks for nothing",
                entered.status
            ))),
            Err(_) if !self.asks_anybody(&entered.status) => {
                Ok(Outcome::Nothing("no rules for the project".to_owned()))
            }
            Err(failure) => Err(failure),
            Ok(rules) => {
                let request = Request {
                    key: entry_key(&entered.ticket, entered.changelog.as_deref()),
                    ticket: entered.ticket,
                    source: Source::Webhook,
                    asked: Asked::Entered(Approval {
                        changelog: entered.changelog,
                        at: entered.at,
                        by: Some(entered.actor).filter(|actor| !actor.id.is_empty()),
                    }),
                };
                self.job_for_issue(request, &rules).await
            }
        }
    }

    async fn github(&self, delivery: &WebhookDelivery) -> Result<Outcome, Failure> {
        use events::github::Event;
        match events::github::parse(&delivery.event, &delivery.body)?.on(delivery.source.instance()) {
            Event::Other(what) => Ok(Outcome::Nothing(what)),
            Event::Ordered {
                command,
                repository,
                number,
                order,
            } => self.github_command(command, (&repository, number), order).await,
            Event::ChecksChanged {
                repository,
                head,
                branches,
            } => {
                let mut outcome = Outcome::Nothing("the checks belong to no branch".to_owned());
                for branch in branches {
                    outcome = self.checks_of_branch(&repository, &branch, &head).await?;
                    if matches!(outcome, Outcome::Appended { .. }) {
                        break;
                    }
                }
                Ok(outcome)
            }
            Event::Closed {
                repository,
                number,
                branch,
                closing,
            } => {
                if self.is_ours(&[&closing.by]) {
                    return Ok(Outcome::Nothing("our own account did it".to_owned()));
                }
                let Some(record) = self.record(&repository, &branch).await? else {
                    return Ok(Outcome::Nothing("not a branch of ours".to_owned()));
                };
                let Some(ours) = detect::same_pull_request(&record, number) else {
                    return Ok(Outcome::Nothing("another pull request of the branch".to_owned()));
                };
                // The webhook may come late: what counts is how the pull request is now.
                let now = self.outside.pull_request(&repository, number).await?;
                match detect::closing(&now) {
                    None => Ok(Outcome::Nothing("the pull request is open again".to_owned())),
                    Some(current) => {
                        let by = if current.merged { current.by } else { closing.by };
                        let closing = Closing { by, ..current };
                        self.closed(&record.ticket, ours, &closing, Source::Webhook).await
                    }
                }
            }
        }
    }

    /// Whether one of these names, an id or what people see, is an account of ours.
    pub(crate) fn is_ours(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.own_accounts.contains(*name))
    }

    /// The rules of the ticket's project, or the reason why it has none.
    pub(crate) fn rules_for(&self, ticket: &TicketKey) -> Result<Rules, Failure> {
        let book = self.rules.book();
        book.for_ticket(ticket).cloned().ok_or_else(|| {
            let broken: Vec<_> = book
                .problems()
                .iter()
                .map(|problem| problem.file.as_str())
                .collect();
            let hint = if broken.is_empty() {
                String::new()
            } else {
                format!("; broken files: {}", broken.join(", "))
            };
            Failure::Never(format!("no rules name the project of {ticket}{hint}"))
        })
    }

    /// True when some repository, or the default, asks for work by this status.
    fn asks_anybody(&self, status: &str) -> bool {
        let book = self.rules.book();
        detect::asks_for_work(status, &Rules::default())
            || book
                .repositories()
                .any(|rules| detect::asks_for_work(status, rules))
    }

    async fn checks_of_branch(
        &self,
        repository: &RepositoryName,
        branch: &str,
        head: &CommitId,
    ) -> Result<Outcome, Failure> {
        let Some(record) = self.record(repository, branch).await? else {
            return Ok(Outcome::Nothing("not a branch of ours".to_owned()));
        };
        let Some(ours) = &record.pull_request else {
            return Err(Failure::Early(format!(
                "the pull request of {branch} is not recorded yet"
            )));
        };
        let now = self.outside.pull_request(repository, ours.number).await?;
        if now.head != *head || detect::closing(&now).is_some() {
            return Ok(Outcome::Nothing(
                "not the open head of the pull request".to_owned(),
            ));
        }
        self.checks(&record.ticket, ours, head, Source::Webhook).await
    }

    /// Appends the verdict of a head's checks, once all are complete.
    pub(crate) async fn checks(
        &self,
        ticket: &TicketKey,
        ours: &PullRequestRef,
        head: &CommitId,
        source: Source,
    ) -> Result<Outcome, Failure> {
        let checks = self.outside.checks(&ours.repository, head).await?;
        match detect::checks(ours, head, &checks) {
            ChecksVerdict::None => Ok(Outcome::NoChecks),
            ChecksVerdict::Incomplete => Ok(Outcome::Nothing("checks are not complete".to_owned())),
            ChecksVerdict::Complete { key, at, summary } => {
                let at = at.unwrap_or_else(bootstrap::now);
                self.outcome(trigger(
                    ticket,
                    key,
                    at,
                    source,
                    None,
                    Reason::ChecksCompleted(*summary),
                ))
                .await
            }
        }
    }

    /// Appends that no check reports on a head.
    pub(crate) async fn no_checks(
        &self,
        ticket: &TicketKey,
        ours: &PullRequestRef,
        head: &CommitId,
    ) -> Result<Outcome, Failure> {
        let (key, reason) = detect::no_checks(ours, head);
        let trigger = trigger(ticket, key, bootstrap::now(), Source::Poll, None, reason);
        self.outcome(trigger).await
    }

    /// Appends the end of a pull request of ours.
    pub(crate) async fn closed(
        &self,
        ticket: &TicketKey,
        ours: &PullRequestRef,
        closing: &Closing,
        source: Source,
    ) -> Result<Outcome, Failure> {
        let (key, reason) = detect::closed(ours, closing);
        self.outcome(trigger(
            ticket,
            key,
            closing.at,
            source,
            Some(closing.by.clone()),
            reason,
        ))
        .await
    }

    async fn record(
        &self,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Option<BranchRecord>, Failure> {
        let found = self.queue.branches().get(repository, branch).await?;
        Ok(found.map(|(record, _)| record))
    }

    /// Appends a trigger, once per ticket and key.
    pub(crate) async fn append(&self, trigger: &Trigger) -> Result<Appended, Failure> {
        Ok(self.queue.triggers().append(trigger).await?)
    }

    /// The same, with what became of it.
    pub(crate) async fn outcome(&self, trigger: Trigger) -> Result<Outcome, Failure> {
        let appended = self.append(&trigger).await?;
        Ok(Outcome::Appended {
            trigger: Box::new(trigger),
            appended,
        })
    }
}

fn trigger(
    ticket: &TicketKey,
    key: TriggerKey,
    at: Timestamp,
    source: Source,
    actor: Option<String>,
    reason: Reason,
) -> Trigger {
    Trigger {
        ticket: ticket.clone(),
        key,
        at,
        source,
        actor,
        reason,
    }
}

/// The key of an entry into a status: its changelog id, or the ticket for one created there. Every door derives it.
pub(crate) fn entry_key(ticket: &TicketKey, changelog: Option<&str>) -> TriggerKey {
    match changelog {
        Some(id) => TriggerKey::new(format!("changelog:{id}")),
        None => TriggerKey::new(format!("created:{ticket}")),
    }
}
