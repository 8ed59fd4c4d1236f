//! Router: turns events of webhooks, polls and the API into triggers of their tickets, or into a reason against one.
//!
//! The kind of an event decides what follows. The router reads the facts that the decision needs, and appends the
//! trigger.

pub(crate) mod conversation_locks;
pub(crate) mod outcome;
mod ticket_events;

use std::{sync::Arc, time::Duration};

use bootstrap::rules::RulesStore;
use domain::{
    PullRequestStatus, RepositoryRules, TicketDeparture, TicketKey, Timestamp, Trigger, TriggerChannel,
    cause::format_error_chain,
};
use parking_lot::Mutex;
use queue::{AppendOutcome, DeliveryDisposition, Queue, WebhookDelivery};

use crate::{
    events::{
        self, EventKind, EventVerdict, NewTrigger, WebhookEvents, closed, comment::CommentEvent,
        departure::TicketDepartureEvent,
    },
    facts::{
        ChecksPatience, DecisionFacts, Need, attachments::TicketAttachmentReader,
        background::BackgroundReader, reader::FactReader, tracker_reader::TrackerReader,
    },
    policy::{own_accounts::OwnAccounts, status_cache::StatusCache},
    router::outcome::{EventFailure, EventOutcome, choose_disposition},
    webhook::payload::{WebhookPayload, jira::SeenIssue},
};

// Time limit of one delivery in a slot. A service that does not answer must not block the deliveries of the others.
const HANDLING_LIMIT: Duration = Duration::from_secs(20);
// Limit of reads for one decision: one per author of a ticket, with a margin. It stops a decision that never has enough.
const MOST_READS: usize = 1_000;

/// Decision about an event, before anything is appended.
#[derive(Debug)]
pub(crate) enum EventDecision {
    /// Trigger to append.
    Trigger(Box<NewTrigger>),
    /// Outcome without a trigger.
    Outcome(EventOutcome),
}

/// Shared context of all decisions.
#[derive(Clone)]
pub(crate) struct EventRouter {
    pub(crate) queue: Queue,
    pub(crate) outside: Arc<TrackerReader>,
    pub(crate) rules: Arc<RulesStore>,
    pub(crate) own_accounts: Arc<OwnAccounts>,
    /// Check of the rules against Jira's projects and statuses.
    pub(crate) tracker: Arc<StatusCache>,
    pub(crate) facts: FactReader,
    pub(crate) background: BackgroundReader,
    pub(crate) attachments: TicketAttachmentReader,
    pub(crate) patience: ChecksPatience,
    /// Sink of a dry run. When set, it receives the triggers instead of the tickets' logs.
    pub(crate) seen: Option<Arc<DryRunSink>>,
}

impl EventRouter {
    /// Handles one delivery.
    #[tracing::instrument(skip_all, fields(delivery = %delivery.id, source = %delivery.source, event = %delivery.event))]
    pub(crate) async fn handle(&self, delivery: WebhookDelivery) -> DeliveryDisposition {
        let routed = tokio::time::timeout(HANDLING_LIMIT, Box::pin(self.route(&delivery)));
        let result = routed.await.unwrap_or_else(|_| {
            Err(EventFailure::Later {
                detail: format!("not handled within {} s", HANDLING_LIMIT.as_secs()),
                after: None,
            })
        });
        match &result {
            Ok(outcomes) => outcomes.iter().for_each(EventOutcome::log),
            Err(failure) => tracing::warn!(error = %format_error_chain(failure), "delivery not handled"),
        }
        choose_disposition(
            result.map(|_| ()),
            bootstrap::read_wall_clock().unix_ms() - delivery.received_at.unix_ms(),
        )
    }

    async fn route(&self, delivery: &WebhookDelivery) -> Result<Vec<EventOutcome>, EventFailure> {
        let mut hook = WebhookPayload::open(delivery)?;
        if let Some((id, key)) = self.find_commented_issue(&hook).await? {
            hook.add_issue(id, &key);
        }
        let issue = hook.seen_issue();
        if let Some(issue) = &issue {
            self.note_issue(issue).await?;
        }
        let (events, channel) = match hook.requested_ticket()? {
            // What a read of the ticket finds is judged like the finding of a poll.
            Some(ticket) => (self.list_events_of(&ticket).await?, TriggerChannel::Poll),
            None => (events::from_webhook(&hook)?, TriggerChannel::Webhook),
        };
        self.note_lock_change(&hook, delivery.received_at).await?;
        let mut outcomes = Vec::new();
        for event in &events {
            // After a failed event the whole delivery is retried. The keys in the log make repeated events harmless.
            outcomes.push(Box::pin(self.take(&**event, channel)).await?);
        }
        if let Some(issue) = &issue {
            self.note_records(issue, &outcomes).await?;
        }
        if events.is_empty() {
            outcomes.push(EventOutcome::Nothing(hook.describe_nothing()));
        }
        Ok(outcomes)
    }

    /// Finds the issue of a comment whose webhook does not contain it, by the comment's address. `None` for any other
    /// webhook, for a site without rules, and for an issue that the reader account does not see.
    async fn find_commented_issue(
        &self,
        hook: &WebhookPayload<'_>,
    ) -> Result<Option<(u64, TicketKey)>, EventFailure> {
        let Some((instance, comment)) = hook.lone_comment() else {
            return Ok(None);
        };
        // A site sends the comments of all its projects. Without rules none of them is worth a read.
        let has_rules = self
            .rules
            .book()
            .repositories()
            .any(|rules| !rules.jira.project_key.is_empty() && rules.jira.instance.as_ref() == instance);
        if !has_rules {
            return Ok(None);
        }
        let address = comment.address.as_str().unwrap_or_default();
        let found = self
            .outside
            .issue_of_comment(instance, address, &comment.id.text())?;
        let id = found.ok_or_else(|| {
            hook.broken(
                "the event has no issue, and its comment has no address (self) at this site; compare base_url and site_url of the settings with the base URL of Jira (docs/data-center.md)",
            )
        })?;
        let key = self.facts.keys().key_of_id(instance, id).await?;
        Ok(key.map(|key| (id, key)))
    }

    /// Reads a ticket under its present key, and lists what follows from it.
    async fn list_events_of(&self, ticket: &TicketKey) -> Result<WebhookEvents, EventFailure> {
        let ticket = self.facts.keys().present_key(ticket).await?;
        let (book, now) = (self.rules.book(), bootstrap::read_wall_clock());
        let listed = ticket_events::list_ticket_events(&self.outside, &book, &ticket, now);
        Box::pin(listed).await
    }

    /// Handles an event of a poll, about an issue with this id.
    pub(crate) async fn take_polled(
        &self,
        event: &dyn EventKind,
        id: Option<u64>,
        key: &TicketKey,
    ) -> Result<EventOutcome, EventFailure> {
        let issue = id.map(|id| SeenIssue {
            id,
            key: key.clone(),
            moved_from: None,
            at: bootstrap::read_wall_clock(),
        });
        if let Some(issue) = &issue {
            self.note_issue(issue).await?;
        }
        let outcome = self.take(event, TriggerChannel::Poll).await?;
        if let Some(issue) = &issue {
            self.note_records(issue, std::slice::from_ref(&outcome)).await?;
        }
        Ok(outcome)
    }

    /// Notes the key of an issue before its events are decided.
    pub(crate) async fn note_issue(&self, issue: &SeenIssue) -> Result<(), EventFailure> {
        if self.seen.is_some() {
            return Ok(());
        }
        let has_rules = self.rules.book().for_ticket(&issue.key).is_some();
        self.facts.keys().note(issue, has_rules).await
    }

    /// Notes the key of an issue after its events: from its first trigger on it has records.
    pub(crate) async fn note_records(
        &self,
        issue: &SeenIssue,
        outcomes: &[EventOutcome],
    ) -> Result<(), EventFailure> {
        let is_kept = |outcome: &EventOutcome| outcome.sequence().is_some();
        if self.seen.is_some() || !outcomes.iter().any(is_kept) {
            return Ok(());
        }
        self.facts.keys().note_new(issue).await
    }

    /// Decides about an event, and appends the resulting trigger to the ticket's log.
    pub(crate) async fn take(
        &self,
        event: &dyn EventKind,
        source: TriggerChannel,
    ) -> Result<EventOutcome, EventFailure> {
        let judged = match self.judge(event, source).await {
            Err(failure @ (EventFailure::Transferred(_) | EventFailure::Deleted(_))) => {
                return self.end_absent(failure, source).await;
            }
            judged => judged?,
        };
        match judged {
            EventDecision::Trigger(follows) => {
                let trigger = Trigger {
                    seen: event.seen(&self.own_accounts.names()),
                    ..follows.into_trigger(source)
                };
                self.append(trigger).await
            }
            EventDecision::Outcome(outcome) => Ok(outcome),
        }
    }

    /// Ends the work on an issue or pull request that an event found at another place or deleted.
    ///
    /// # Errors
    /// The failure itself for a call of the API, whose request has no effect.
    async fn end_absent(
        &self,
        failure: EventFailure,
        source: TriggerChannel,
    ) -> Result<EventOutcome, EventFailure> {
        let end = match failure.clone() {
            EventFailure::Transferred(moved) => self.end_transferred(moved, source).await?,
            EventFailure::Deleted(ticket) => {
                self.end_departed(*ticket, TicketDeparture::Deleted, source)
                    .await?
            }
            EventFailure::Later { .. }
            | EventFailure::Refused(_)
            | EventFailure::Early(_)
            | EventFailure::Unsettled { .. }
            | EventFailure::Unknown(_)
            | EventFailure::Never(_) => return Err(failure),
        };
        if source == TriggerChannel::Api {
            return Err(failure);
        }
        Ok(end)
    }

    /// Ends our open pull request that GitHub moved to another place, or the work on a ticket that moved, once. Nothing
    /// follows for any other issue or pull request.
    pub(crate) async fn end_transferred(
        &self,
        moved: Box<github::TransferredThread>,
        source: TriggerChannel,
    ) -> Result<EventOutcome, EventFailure> {
        let (repository, number) = (&moved.repository, moved.number);
        let Some(record) = self.queue.pull_requests().get(repository, number).await? else {
            let ticket = TicketKey::GitHub {
                repository: repository.clone(),
                number,
            };
            let departure = TicketDeparture::Transferred { to: Some(moved.to) };
            return self.end_departed(ticket, departure, source).await;
        };
        if record.status != PullRequestStatus::Open {
            return Ok(EventOutcome::Nothing(moved.to_string()));
        }
        let end = closed::build_move(&record, &moved.to, bootstrap::read_wall_clock());
        let outcome = self.append(end.into_trigger(source)).await?;
        if let EventOutcome::Appended {
            appended: AppendOutcome::New(_),
            ..
        } = &outcome
        {
            tracing::warn!(ticket = %record.ticket, %repository, number, to = moved.to, "our pull request moved; its work ends");
        }
        Ok(outcome)
    }

    /// Ends the work on a ticket that left its place, once. Nothing follows for a ticket without records.
    pub(crate) async fn end_departed(
        &self,
        ticket: TicketKey,
        departure: TicketDeparture,
        source: TriggerChannel,
    ) -> Result<EventOutcome, EventFailure> {
        let event = TicketDepartureEvent::found(ticket, departure);
        let follows = match Box::pin(self.judge(&event, source)).await? {
            EventDecision::Trigger(follows) => follows,
            EventDecision::Outcome(outcome) => return Ok(outcome),
        };
        let outcome = self.append(follows.into_trigger(source)).await?;
        if let EventOutcome::Appended {
            trigger,
            appended: AppendOutcome::New(_),
        } = &outcome
        {
            tracing::warn!(ticket = %trigger.ticket, "the ticket left its place; its work ends");
        }
        Ok(outcome)
    }

    /// Stores or removes the lock of a conversation that a webhook reports.
    async fn note_lock_change(&self, hook: &WebhookPayload<'_>, at: Timestamp) -> Result<(), EventFailure> {
        match conversation_locks::parse_change(hook) {
            Some(change) if self.seen.is_none() => {
                Ok(conversation_locks::store_change(&self.queue, &change, at).await?)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Stores the lock of a conversation as a read shows it.
    pub(crate) async fn note_lock(
        &self,
        ticket: &TicketKey,
        lock: Option<&github::ConversationLock>,
    ) -> Result<(), EventFailure> {
        if self.seen.is_some() {
            return Ok(());
        }
        let now = bootstrap::read_wall_clock();
        Ok(conversation_locks::store_seen(&self.queue, ticket, lock, now).await?)
    }

    /// Decides about an event without appending anything.
    pub(crate) async fn judge(
        &self,
        event: &dyn EventKind,
        source: TriggerChannel,
    ) -> Result<EventDecision, EventFailure> {
        let mut facts = self.new_facts(source);
        if let Some(ticket) = event.ticket() {
            self.facts.records(ticket, &mut facts).await?;
        }
        let mut stands_for_it: Option<Box<dyn EventKind>> = None;
        // Each iteration reads one fact and decides again from the start: decisions are pure and cheap, reads are not.
        for _ in 0..MOST_READS {
            let decided = stands_for_it.as_deref().unwrap_or(event).decide(&facts);
            let outcome = match decided {
                Err(need) => {
                    let read = if let Need::Issue(ticket) = &need {
                        Some(ticket.clone())
                    } else {
                        None
                    };
                    self.facts.read(need, &mut facts).await?;
                    if let Some(ticket) = read
                        && let Ok(Ok(issue)) = facts.issue(&ticket)
                    {
                        self.note_lock(&ticket, issue.lock.as_ref()).await?;
                    }
                    continue;
                }
                Ok(EventVerdict::Becomes(other)) => {
                    // The facts stay, because the replacing event is often about the same ticket.
                    stands_for_it = Some(other);
                    continue;
                }
                Ok(EventVerdict::Follows(follows)) => {
                    return Ok(EventDecision::Trigger(Box::new(
                        self.complete(*follows, &facts).await,
                    )));
                }
                Ok(EventVerdict::Known(sequence)) => EventOutcome::Known(sequence),
                Ok(EventVerdict::NoChecks) => EventOutcome::NoChecks,
                Ok(EventVerdict::NothingFailed) => EventOutcome::NothingFailed,
                Ok(EventVerdict::Nothing(why)) => EventOutcome::Nothing(why),
                Ok(EventVerdict::Early(why)) => return Err(EventFailure::Early(why)),
                Ok(EventVerdict::Unsettled { why, after }) => {
                    return Err(EventFailure::Unsettled { why, after });
                }
                Ok(EventVerdict::Never(why)) => return Err(EventFailure::Never(why)),
                Ok(EventVerdict::Unruled(ticket)) => return Err(self.unruled(&ticket)),
            };
            return Ok(EventDecision::Outcome(outcome));
        }
        Err(EventFailure::Never(format!(
            "more than {MOST_READS} reads for one event"
        )))
    }

    /// Adds what the work needs beside the decision: background and attachments.
    async fn complete(&self, follows: NewTrigger, facts: &DecisionFacts) -> NewTrigger {
        // A dry run stores nothing.
        if self.seen.is_some() {
            return Box::pin(self.background.add_to(follows, facts)).await;
        }
        // At the same time, because one delivery has a limit for both.
        let wanted = follows.clone();
        let (follows, attached) = tokio::join!(
            Box::pin(self.background.add_to(follows, facts)),
            Box::pin(self.attachments.read(&wanted, facts)),
        );
        TicketAttachmentReader::add_to(follows, attached)
    }

    /// Facts of a decision before its first read.
    fn new_facts(&self, source: TriggerChannel) -> DecisionFacts {
        let instructors = self.facts.instructors();
        let group = instructors.group().to_owned();
        let mut facts = DecisionFacts::new(source, self.rules.book(), self.own_accounts.names(), group);
        facts.patience = self.patience;
        instructors.role().clone_into(&mut facts.role);
        facts
    }

    /// True for a comment that may address Journeyman. Most comments on GitHub do not, and handling one costs reads.
    pub(crate) fn is_for_us(&self, said: &CommentEvent) -> bool {
        let facts = self.new_facts(TriggerChannel::Poll);
        said.is_order(&facts.own_accounts) || said.names_us(&facts)
    }

    /// Rules of the ticket's project; [`EventFailure::Never`] without any.
    pub(crate) fn rules_for(&self, ticket: &TicketKey) -> Result<RepositoryRules, EventFailure> {
        let book = self.rules.book();
        book.for_ticket(ticket)
            .cloned()
            .ok_or_else(|| self.unruled(ticket))
    }

    fn unruled(&self, ticket: &TicketKey) -> EventFailure {
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
        EventFailure::Never(format!("no rules name the project of {ticket}{hint}"))
    }

    /// Appends a trigger. The log accepts a key once per ticket.
    pub(crate) async fn append(&self, trigger: Trigger) -> Result<EventOutcome, EventFailure> {
        let trigger = Trigger {
            ticket: self.facts.keys().records_of(&trigger.ticket).await?,
            ..trigger
        };
        let appended = match &self.seen {
            Some(seen) => seen.add(&trigger),
            None => self.queue.triggers().append(&trigger).await?,
        };
        Ok(EventOutcome::Appended {
            trigger: Box::new(trigger),
            appended,
        })
    }
}

/// Triggers collected by a dry run.
#[derive(Debug, Default)]
pub(crate) struct DryRunSink(Mutex<Vec<Trigger>>);

impl DryRunSink {
    /// Adds a trigger once per ticket and key, like the log does.
    pub(crate) fn add(&self, trigger: &Trigger) -> AppendOutcome {
        let mut kept = self.0.lock();
        let is_it = |other: &Trigger| other.ticket == trigger.ticket && other.key == trigger.key;
        if kept.iter().any(is_it) {
            return AppendOutcome::Known(0);
        }
        kept.push(trigger.clone());
        AppendOutcome::New(0)
    }

    /// Removes and returns the collected triggers.
    pub(crate) fn take(&self) -> Vec<Trigger> {
        std::mem::take(&mut *self.0.lock())
    }
}

#[cfg(test)]
mod tests {
    use domain::{Timestamp, TriggerKey, TriggerReason};

    use super::*;

    #[test]
    fn dry_run_trigger_is_kept_once() {
        let trigger = |ticket: &str, key: &str| Trigger {
            ticket: ticket.parse().unwrap(),
            key: TriggerKey::new(key),
            at: Timestamp::default(),
            source: TriggerChannel::Poll,
            actor: None,
            seen: None,
            reason: TriggerReason::RetryRequested,
        };
        let seen = DryRunSink::default();
        assert_eq!(seen.add(&trigger("jira:ENG-1", "a")), AppendOutcome::New(0));
        assert_eq!(seen.add(&trigger("jira:ENG-1", "a")), AppendOutcome::Known(0));
        assert_eq!(seen.add(&trigger("jira:ENG-2", "a")), AppendOutcome::New(0));
        assert_eq!(seen.take().len(), 2);
    }
}
