//! New or edited text of a GitHub issue: its triage, where the rules of the repository enable it.

use domain::{TicketKey, Timestamp, TriggerKey};

use super::{
    EventKind, EventVerdict,
    assignment::is_assigned,
    text::{WrittenText, decide_triage},
};
use crate::{
    facts::{DecisionFacts, Need, tracker_reader::TrackerIssue},
    webhook::payload::{UnreadablePayload, WebhookPayload, github as wire},
};

/// New or edited text of an issue. The issue itself contains the last author and the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IssueText {
    ticket: TicketKey,
}

pub(super) fn from_webhook(hook: &WebhookPayload<'_>) -> Result<Option<IssueText>, UnreadablePayload> {
    let Some(payload) = hook.read_event::<wire::IssuePayload>("issues")? else {
        return Ok(None);
    };
    let is_text = matches!(payload.action.as_str(), "opened" | "edited");
    Ok(is_text.then(|| IssueText {
        ticket: payload.ticket(hook),
    }))
}

impl IssueText {
    /// Open issue from a poll.
    pub(crate) const fn from_poll(ticket: TicketKey) -> Self {
        Self { ticket }
    }
}

/// Key, time and author of the last edit, or of the creation.
fn find_last_text(issue: &TrackerIssue, now: Timestamp) -> (TriggerKey, Timestamp, domain::TrackerAccount) {
    match issue.edits.last() {
        Some(edit) => (
            // Edits on GitHub have no ids, so the time identifies the edit.
            TriggerKey::new(format!("triage:{}", edit.at)),
            edit.at,
            edit.by.clone().unwrap_or_default(),
        ),
        None => (
            TriggerKey::new("triage:created"),
            issue.created.unwrap_or(now),
            issue.creator.clone().unwrap_or_default(),
        ),
    }
}

impl EventKind for IssueText {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let rules = facts.rules(&self.ticket)?;
        let Some(rules) = rules.filter(|rules| !rules.triage.is_off()) else {
            return Ok(EventVerdict::nothing("nothing follows from the issue's text"));
        };
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(EventVerdict::Never(detail.clone())),
        };
        if issue.is_over {
            return Ok(EventVerdict::nothing("the issue is closed"));
        }
        if is_assigned(issue, &self.ticket, rules) {
            return Ok(EventVerdict::nothing("the issue asks for work"));
        }
        let (key, at, by) = find_last_text(issue, facts.now);
        let written = WrittenText {
            ticket: &self.ticket,
            key,
            at,
            by: &by,
        };
        decide_triage(written, |_| true, rules, facts)
    }
}
