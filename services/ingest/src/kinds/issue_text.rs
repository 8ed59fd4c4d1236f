//! New or edited text of a GitHub issue: its triage, where the rules of the repository enable it.

use domain::{Timestamp, TicketKey, TriggerKey};

use super::{
    Kind, Verdict,
    given::is_given,
    text::{Written, triage},
};
use crate::{
    facts::{Facts, Need},
    outside::Issue,
    payload::{Hook, Unreadable, github as wire},
};

/// New or edited text of an issue. The issue itself contains the last author and the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IssueText {
    ticket: TicketKey,
}

pub(super) fn from_webhook(hook: &Hook<'_>) -> Result<Option<IssueText>, Unreadable> {
    let Hook::GitHub { event: "issues", .. } = hook else {
        return Ok(None);
    };
    let payload: wire::IssuePayload = hook.read()?;
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
fn last(issue: &Issue, now: Timestamp) -> (TriggerKey, Timestamp, domain::Account) {
    match issue.edits.last() {
        Some(edit) => (
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

impl Kind for IssueText {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        let rules = facts.rules(&self.ticket)?;
        let Some(rules) = rules.filter(|rules| !rules.triage.is_off()) else {
            return Ok(Verdict::nothing("nothing follows from the issue's text"));
        };
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(Verdict::Never(detail.clone())),
        };
        if issue.is_over {
            return Ok(Verdict::nothing("the issue is closed"));
        }
        if is_given(issue, &self.ticket, rules) {
            return Ok(Verdict::nothing("the issue asks for work"));
        }
        let (key, at, by) = last(issue, facts.now);
        let written = Written {
            ticket: &self.ticket,
            key,
            at,
            by: &by,
        };
        triage(written, |_| true, rules, facts)
    }
}
