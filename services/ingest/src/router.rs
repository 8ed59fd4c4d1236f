//! Router: turns events of webhooks, polls and the API into triggers of their tickets, or into a reason against one.
//!
//! The kind of an event decides what follows. The router reads the facts that the decision needs, and appends the
//! trigger.

use std::{sync::Arc, time::Duration};

use bootstrap::rules::RulesStore;
use domain::{About, Job, Reason, Rules, Source, TicketKey, Trigger, TriggerKey, cause::chain};
use queue::{Disposition, Queue, WebhookDelivery};

use crate::{
    facts::{Facts, Patience},
    instructors::Instructors,
    kinds::{self, Follows, Kind, Verdict},
    outcome::{Failure, Outcome, disposition},
    outside::Outside,
    own::OwnAccounts,
    payload::Hook,
    seen::Seen,
    tracker::Tracker,
};

// Time limit of one delivery in a slot. A service that does not answer must not block the deliveries of the others.
const HANDLING_LIMIT: Duration = Duration::from_secs(20);
// Limit of reads for one decision: one per author of a ticket, with a margin. It stops a decision that never has enough.
const MOST_READS: usize = 1_000;

/// Shared context of all decisions.
#[derive(Clone)]
pub(crate) struct Router {
    pub(crate) queue: Queue,
    pub(crate) outside: Arc<Outside>,
    pub(crate) rules: Arc<RulesStore>,
    pub(crate) own_accounts: Arc<OwnAccounts>,
    /// Check of the rules against Jira's projects and statuses.
    pub(crate) tracker: Arc<Tracker>,
    /// Authorization on Jira.
    pub(crate) instructors: Arc<Instructors>,
    pub(crate) patience: Patience,
    /// Sink of a dry run. When set, it receives the triggers instead of the tickets' logs.
    pub(crate) seen: Option<Arc<Seen>>,
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
            Ok(outcomes) => outcomes.iter().for_each(Outcome::log),
            Err(failure) => tracing::warn!(error = %chain(failure), "delivery not handled"),
        }
        disposition(
            result.map(|_| ()),
            bootstrap::now().unix_ms() - delivery.received_at.unix_ms(),
        )
    }

    async fn route(&self, delivery: &WebhookDelivery) -> Result<Vec<Outcome>, Failure> {
        let hook = Hook::open(delivery)?;
        let events = kinds::from_webhook(&hook)?;
        let mut outcomes = Vec::new();
        for event in &events {
            // After a failed event the whole delivery is retried. The keys in the log make repeated events harmless.
            outcomes.push(Box::pin(self.take(&**event, Source::Webhook)).await?);
        }
        if events.is_empty() {
            outcomes.push(Outcome::Nothing(hook.name()));
        }
        Ok(outcomes)
    }

    /// Decides about an event, and appends the resulting trigger to the ticket's log.
    pub(crate) async fn take(&self, event: &dyn Kind, source: Source) -> Result<Outcome, Failure> {
        match self.judge(event, source).await? {
            Ok(follows) => {
                let trigger = Trigger {
                    seen: event.seen(),
                    ..follows.into_trigger(source)
                };
                self.append(trigger).await
            }
            Err(outcome) => Ok(outcome),
        }
    }

    /// Decides about an event without appending anything. `Err` of the inner result is an outcome without a trigger.
    pub(crate) async fn judge(
        &self,
        event: &dyn Kind,
        source: Source,
    ) -> Result<Result<Follows, Outcome>, Failure> {
        let group = self.instructors.group().to_owned();
        let mut facts = Facts::new(source, self.rules.book(), self.own_accounts.names(), group);
        facts.patience = self.patience;
        self.instructors.role().clone_into(&mut facts.role);
        let mut stands_for_it: Option<Box<dyn Kind>> = None;
        // Each iteration reads one fact and decides again from the start: decisions are pure and cheap, reads are not.
        for _ in 0..MOST_READS {
            let decided = stands_for_it.as_deref().unwrap_or(event).decide(&facts);
            let outcome = match decided {
                Err(need) => {
                    self.read(need, &mut facts).await?;
                    continue;
                }
                Ok(Verdict::Becomes(other)) => {
                    stands_for_it = Some(other);
                    continue;
                }
                Ok(Verdict::Follows(follows)) => return Ok(Ok(self.with_background(*follows, &facts).await)),
                Ok(Verdict::Known(sequence)) => Outcome::Known(sequence),
                Ok(Verdict::NoChecks) => Outcome::NoChecks,
                Ok(Verdict::NothingFailed) => Outcome::NothingFailed,
                Ok(Verdict::Nothing(why)) => Outcome::Nothing(why),
                Ok(Verdict::Early(why)) => return Err(Failure::Early(why)),
                Ok(Verdict::Unsettled { why, after }) => return Err(Failure::Unsettled { why, after }),
                Ok(Verdict::Never(why)) => return Err(Failure::Never(why)),
                Ok(Verdict::Unruled(ticket)) => return Err(self.unruled(&ticket)),
            };
            return Ok(Err(outcome));
        }
        Err(Failure::Never(format!(
            "more than {MOST_READS} reads for one event"
        )))
    }

    /// Adds the background of the ticket to a job request. The background has no influence on the decision.
    async fn with_background(&self, mut follows: Follows, facts: &Facts) -> Follows {
        if let Reason::JobRequested(job) = &mut follows.reason
            && let Ok(Ok(issue)) = facts.issue(&follows.ticket)
        {
            // A job that a question may start gets the same background as a direct request.
            let job = match &mut job.about {
                About::Question(question) => match &mut question.work {
                    Some(work) => work,
                    None => return follows,
                },
                _ => job,
            };
            // The decision has set the requester; the background must not overwrite it.
            let requester = job.background.requester.take();
            let looks_for_duplicates = !job.rules.triage.duplicate_label.is_empty();
            job.background = match job.job {
                Job::Implement => self.background(&follows.ticket, issue, &job.repository).await,
                Job::Triage if looks_for_duplicates => self.candidates(&follows.ticket, issue).await,
                _ => return follows,
            };
            job.background.requester = requester;
        }
        follows
    }

    /// True when one of these names or ids is an account of ours.
    pub(crate) fn is_ours(&self, names: &[&str]) -> bool {
        let ours = self.own_accounts.names();
        names.iter().any(|name| ours.contains(*name))
    }

    /// Rules of the ticket's project; [`Failure::Never`] without any.
    pub(crate) fn rules_for(&self, ticket: &TicketKey) -> Result<Rules, Failure> {
        let book = self.rules.book();
        book.for_ticket(ticket)
            .cloned()
            .ok_or_else(|| self.unruled(ticket))
    }

    fn unruled(&self, ticket: &TicketKey) -> Failure {
        let book = self.rules.book();
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
    }

    /// Sequence of a key in the ticket's log.
    pub(crate) async fn known(&self, ticket: &TicketKey, key: &TriggerKey) -> Result<Option<u64>, Failure> {
        Ok(self.queue.triggers().sequence_of(ticket, key.as_str()).await?)
    }

    /// Appends a trigger. The log accepts a key once per ticket.
    pub(crate) async fn append(&self, trigger: Trigger) -> Result<Outcome, Failure> {
        let appended = match &self.seen {
            Some(seen) => seen.add(&trigger),
            None => self.queue.triggers().append(&trigger).await?,
        };
        Ok(Outcome::Appended {
            trigger: Box::new(trigger),
            appended,
        })
    }
}
