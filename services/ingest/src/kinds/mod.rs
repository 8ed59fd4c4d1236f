//! The kinds of events, one file each: how a webhook and a poll tell of it, its key, and what follows from it.

use std::time::Duration;

use domain::{Reactable, Reason, TicketKey, Timestamp, Trigger, TriggerKey};

use crate::{
    facts::{Facts, Need},
    payload::{Hook, Unreadable},
};

/// Something that happened outside.
pub(crate) trait Kind: std::fmt::Debug + Send + Sync {
    /// What follows from it.
    ///
    /// # Errors
    /// What has to be read before that can be said; it is asked again with that.
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need>;

    /// The comment that it is, when whoever wrote it should see that it was read.
    fn seen(&self) -> Option<Reactable> {
        None
    }
}

/// What one webhook tells; usually one event or none.
pub(crate) type Events = Vec<Box<dyn Kind>>;

/// What follows from an event.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// A reason for a ticket's log.
    Follows(Box<Follows>),
    /// The ticket's log has it, at this sequence.
    Known(u64),
    /// No check has reported on the commit yet.
    NoChecks,
    /// Nothing to repair: every check passed.
    NothingFailed,
    /// Nothing; why not, for the log.
    Nothing(String),
    /// Another event stands for it.
    Becomes(Box<dyn Kind>),
    /// The facts for it come soon, or it never was ours.
    Early(String),
    /// More may happen with it until then.
    Unsettled { why: String, after: Duration },
    /// It cannot be handled.
    Never(String),
    /// No rules name the ticket's project, and some are needed.
    Unruled(TicketKey),
}

/// A reason for a ticket's log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Follows {
    pub(crate) ticket: TicketKey,
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    /// Who acted, as the outside names them.
    pub(crate) actor: Option<String>,
    pub(crate) reason: Reason,
}

impl Verdict {
    pub(crate) fn nothing(why: impl Into<String>) -> Self {
        Self::Nothing(why.into())
    }

    /// A planner has not taken in what was asked for on the ticket; once it has, it is clear what its runs do.
    fn behind() -> Self {
        Self::Unsettled {
            why: "what was asked for on the ticket is not taken in yet".to_owned(),
            after: TAKEN_IN,
        }
    }
}

impl From<Follows> for Verdict {
    fn from(follows: Follows) -> Self {
        Self::Follows(Box::new(follows))
    }
}

/// How long to wait for a planner that takes in what was asked for last.
const TAKEN_IN: Duration = Duration::from_secs(2);

/// What follows from another wish for work while work is under way: nothing, when both were made in one breath. Before
/// everything that was asked for is taken in nobody can tell: the work may just have ended, and then it is a new wish.
fn under_way(ticket: &TicketKey, facts: &Facts) -> Result<Option<Verdict>, Need> {
    let progress = facts.progress(ticket)?;
    if progress.is_behind {
        return Ok(Some(Verdict::behind()));
    }
    Ok(progress
        .is_live
        .then(|| Verdict::nothing("work on the ticket is under way")))
}

impl Follows {
    pub(crate) fn into_trigger(self, source: domain::Source) -> Trigger {
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

/// Each kind is a module with a function `from_webhook`, which gives the events of its kind in a webhook.
macro_rules! kinds {
    ($($kind:ident),+ $(,)?) => {
        $(pub(crate) mod $kind;)+

        /// Every event that a webhook tells.
        ///
        /// # Errors
        /// [`Unreadable`] when the webhook is not what it claims to be.
        pub(crate) fn from_webhook(hook: &Hook<'_>) -> Result<Events, Unreadable> {
            let mut events = Events::new();
            $(events.extend($kind::from_webhook(hook)?.into_iter().map(|event| Box::new(event) as Box<dyn Kind>));)+
            Ok(events)
        }
    };
}

// These follow from comments, from the API and from time alone.
pub(crate) mod asked;
pub(crate) mod awaited;
pub(crate) mod decided;
pub(crate) mod dispatched;
pub(crate) mod retry;
pub(crate) mod stopped;

kinds! {
    work,
    given,
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
    elsewhere,
    pushed,
    reviewed,
    review_requested,
}

#[cfg(test)]
mod agents_tests;
#[cfg(test)]
mod asked_tests;
#[cfg(test)]
mod bots_tests;
#[cfg(test)]
mod discussed_tests;
#[cfg(test)]
mod dispatched_tests;
#[cfg(test)]
mod doors_tests;
#[cfg(test)]
mod given_up_tests;
#[cfg(test)]
mod green_tests;
#[cfg(test)]
mod issue_tests;
#[cfg(test)]
mod left_alone_tests;
#[cfg(test)]
mod matched_tests;
#[cfg(test)]
mod returned_tests;
#[cfg(test)]
mod review_request_tests;
#[cfg(test)]
mod rounds_tests;
#[cfg(test)]
mod settled_tests;
#[cfg(test)]
mod shared_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod withdrawn_tests;
