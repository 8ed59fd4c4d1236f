//! Kinds of events, one file each: parsing from webhook and poll, trigger key, and decision.

use std::{collections::BTreeSet, time::Duration};

use domain::{ReactionSubject, TicketKey, Timestamp, Trigger, TriggerKey, TriggerReason};

use crate::{
    facts::{DecisionFacts, Need},
    webhook::payload::{UnreadablePayload, WebhookPayload},
};

/// Event outside of Journeyman.
pub(crate) trait EventKind: std::fmt::Debug + Send + Sync {
    /// Decides about the event.
    ///
    /// # Errors
    /// The fact that has to be read first. The router then calls again with that fact.
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need>;

    /// Ticket of the event by its present key, for an event whose decision depends on earlier keys.
    fn ticket(&self) -> Option<&TicketKey> {
        None
    }

    /// Comment that the event is, when its author should get a reaction as a receipt. `ours` are the names and ids of our
    /// accounts.
    fn seen(&self, _ours: &BTreeSet<String>) -> Option<ReactionSubject> {
        None
    }
}

/// Events of one webhook; usually one or none.
pub(crate) type WebhookEvents = Vec<Box<dyn EventKind>>;

/// Decision about an event.
#[derive(Debug)]
pub(crate) enum EventVerdict {
    /// New trigger for a ticket's log.
    Follows(Box<NewTrigger>),
    /// Known in the ticket's log, at this sequence.
    Known(u64),
    /// No check has reported on the commit yet.
    NoChecks,
    /// Every check passed, so there is nothing to repair.
    NothingFailed,
    /// Ignored, with the reason for the log.
    Nothing(String),
    /// Replaced by another event.
    Becomes(Box<dyn EventKind>),
    /// The record for the event is expected soon, or the event does not concern Journeyman.
    Early(String),
    /// The state may still change until then.
    Unsettled { why: String, after: Duration },
    /// Permanent failure.
    Never(String),
    /// No rules name the ticket's project, and the event needs rules.
    Unruled(TicketKey),
}

/// Content of a new trigger.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewTrigger {
    pub(crate) ticket: TicketKey,
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    /// Actor, as named by the tracker.
    pub(crate) actor: Option<String>,
    pub(crate) reason: TriggerReason,
}

impl EventVerdict {
    pub(crate) fn nothing(why: impl Into<String>) -> Self {
        Self::Nothing(why.into())
    }

    /// Verdict while a planner has not handled the ticket's last trigger. Afterwards the state of the runs is known.
    fn behind() -> Self {
        Self::Unsettled {
            why: "the last request on the ticket is not handled yet".to_owned(),
            after: HANDLING_TIME,
        }
    }
}

impl From<NewTrigger> for EventVerdict {
    fn from(follows: NewTrigger) -> Self {
        Self::Follows(Box::new(follows))
    }
}

// Time for a planner to handle the last trigger.
const HANDLING_TIME: Duration = Duration::from_secs(2);

/// Verdict on another request while work is active: ignored, because simultaneous requests are one.
///
/// While triggers are unhandled it is undecided: the work may just have ended, and the request would be new.
fn check_active_work(ticket: &TicketKey, facts: &DecisionFacts) -> Result<Option<EventVerdict>, Need> {
    let progress = facts.progress(ticket)?;
    if progress.is_behind {
        return Ok(Some(EventVerdict::behind()));
    }
    Ok(progress
        .is_live
        .then(|| EventVerdict::nothing("work on the ticket is under way")))
}

impl NewTrigger {
    pub(crate) fn into_trigger(self, source: domain::TriggerChannel) -> Trigger {
        Trigger {
            ticket: self.ticket,
            key: self.key,
            at: self.at,
            source,
            actor: self.actor,
            seen: None,
            reason: self.reason,
        }
    }
}

/// Declares the kinds. Each is a module with a function `from_webhook`, which returns the events of its kind in a
/// webhook.
macro_rules! kinds {
    ($($kind:ident),+ $(,)?) => {
        $(pub(crate) mod $kind;)+

        /// Parses all events of a webhook.
        ///
        /// # Errors
        /// [`UnreadablePayload`] when the payload does not match its event.
        pub(crate) fn from_webhook(hook: &WebhookPayload<'_>) -> Result<WebhookEvents, UnreadablePayload> {
            let mut events = WebhookEvents::new();
            $(events.extend($kind::from_webhook(hook)?.into_iter().map(|event| Box::new(event) as Box<dyn EventKind>));)+
            Ok(events)
        }
    };
}

// These kinds come from comments, the API or the passage of time, never directly from a webhook.
pub(crate) mod decision;
pub(crate) mod dispatch;
pub(crate) mod health;
pub(crate) mod overdue_review;
pub(crate) mod question;
pub(crate) mod retry;
pub(crate) mod stop;

kinds! {
    // First, so that the work on a transferred issue ends before it begins at the new place.
    departure,
    work,
    assignment,
    text,
    issue_text,
    comment,
    checks,
    closed,
    withdrawn,
    discussed,
    reopened,
    returned,
    matched,
    given_up,
    competing_close,
    pushed,
    reviewed,
    review_requested,
}

#[cfg(test)]
mod agents_tests;
#[cfg(test)]
mod bots_tests;
#[cfg(test)]
mod channels_tests;
#[cfg(test)]
mod checks_settle_tests;
#[cfg(test)]
mod competing_close_tests;
#[cfg(test)]
mod condition_match_tests;
#[cfg(test)]
mod departure_tests;
#[cfg(test)]
mod discussion_tests;
#[cfg(test)]
mod dispatch_tests;
#[cfg(test)]
mod green_tests;
#[cfg(test)]
mod issue_tests;
#[cfg(test)]
mod question_tests;
#[cfg(test)]
mod review_request_tests;
#[cfg(test)]
mod review_withdrawal_tests;
#[cfg(test)]
mod rounds_tests;
#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod skip_label_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod ticket_return_tests;
