//! Transfer or deletion of an issue that is a ticket.

use domain::{TicketDeparture, TicketKey, TriggerKey, TriggerReason};

use super::{EventKind, EventVerdict, NewTrigger};
use crate::{
    facts::{DecisionFacts, Need},
    text::text_pin,
    webhook::payload::{UnreadablePayload, WebhookPayload, github as wire},
};

const PLACE_CHARS: usize = 200;
const NAME_CHARS: usize = 100;

/// Departure of a ticket from its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TicketDepartureEvent {
    ticket: TicketKey,
    departure: TicketDeparture,
    /// User of the webhook; absent when a read found the departure.
    by: Option<String>,
}

pub(super) fn from_webhook(
    hook: &WebhookPayload<'_>,
) -> Result<Option<TicketDepartureEvent>, UnreadablePayload> {
    let Some(wire::IssueMovePayload {
        action,
        issue,
        changes,
        repository,
        sender,
    }) = hook.read_event("issues")?
    else {
        return Ok(None);
    };
    let changes = changes.unwrap_or_default();
    let ((repository, issue), departure) = match action.as_str() {
        "deleted" => ((repository, issue), TicketDeparture::Deleted),
        "transferred" => {
            let to = changes.new_repository.zip(changes.new_issue);
            let to = to.map(|(repository, issue)| describe_place(&repository, &issue));
            ((repository, issue), TicketDeparture::Transferred { to })
        }
        // The new place reports its former one, so a lost webhook of the former place does no harm.
        "opened" => match changes.old_repository.zip(changes.old_issue) {
            Some(former) => {
                let to = Some(describe_place(&repository, &issue));
                (former, TicketDeparture::Transferred { to })
            }
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(TicketDepartureEvent {
        ticket: TicketKey::GitHub {
            repository: hook.repository(repository),
            number: issue.number,
        },
        departure,
        by: sender.map(|sender| sender.login),
    }))
}

fn describe_place(repository: &wire::GithubHookRepository, issue: &wire::GithubHookIssue) -> String {
    format!("{}#{}", repository.full_name.path(), issue.number)
}

impl TicketDepartureEvent {
    /// Departure that a read of the ticket shows.
    pub(crate) const fn found(ticket: TicketKey, departure: TicketDeparture) -> Self {
        Self {
            ticket,
            departure,
            by: None,
        }
    }
}

impl EventKind for TicketDepartureEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        // GitHub gives the number of a ticket to no other issue, so a ticket leaves once.
        let key = TriggerKey::new("ticket_left");
        if let Some(sequence) = facts.known(&self.ticket, &key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        let row = facts.row(&self.ticket)?;
        // The log forgets old keys.
        if row.left.is_some() {
            return Ok(EventVerdict::nothing("the departure of the ticket is known"));
        }
        // The row does not have a trigger that no planner has handled.
        if row.cursor == 0 && !facts.progress(&self.ticket)?.is_behind {
            return Ok(EventVerdict::nothing("no ticket of ours"));
        }
        let departure = match &self.departure {
            TicketDeparture::Transferred { to } => TicketDeparture::Transferred {
                to: to.as_deref().map(|to| text_pin::clean_text(to, PLACE_CHARS)),
            },
            TicketDeparture::Deleted => TicketDeparture::Deleted,
        };
        Ok(EventVerdict::from(NewTrigger {
            ticket: self.ticket.clone(),
            key,
            at: facts.now,
            actor: self.by.as_deref().map(|by| text_pin::clean_text(by, NAME_CHARS)),
            reason: TriggerReason::TicketLeft(departure),
        }))
    }
}
