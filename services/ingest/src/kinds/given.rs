//! An issue of GitHub is given to us: assigned, or marked with a label that asks for work.

use domain::{IssueRules, Reason, SkipReason, TicketKey, TriggerKey};
use github::{IssueEvent, IssueWish};

use super::{
    Follows, Kind, Verdict,
    work::{actor, approved, name},
};
use crate::{
    facts::{Facts, Need, Person},
    outside::{Issue, OPEN, account},
    payload::{Hook, Unreadable, github as wire},
    standing::Approval,
};

/// Something was done to an issue that may ask for work. What it is, the issue itself says: a webhook and a poll come to
/// the same event of it, and so to the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    ticket: TicketKey,
}

pub(super) fn from_webhook(hook: &Hook<'_>) -> Result<Option<Given>, Unreadable> {
    let Hook::GitHub { event: "issues", .. } = hook else {
        return Ok(None);
    };
    let payload: wire::IssuePayload = hook.read()?;
    let asks = matches!(payload.action.as_str(), "assigned" | "labeled" | "opened" | "reopened");
    Ok(asks.then(|| Given {
        ticket: payload.ticket(hook),
    }))
}

impl Given {
    /// An open issue that a poll found.
    pub(crate) const fn from_poll(ticket: TicketKey) -> Self {
        Self { ticket }
    }
}

/// The last event that asks for work and was not taken back.
fn asking<'a>(issue: &'a Issue, rules: &IssueRules) -> Option<&'a IssueEvent> {
    let is_ours = || issue.assignees.iter().any(|login| rules.is_assignee(login));
    let has = |label: &str| issue.labels.iter().any(|known| known == label);
    let asks = |event: &&IssueEvent| match &event.wish {
        IssueWish::Assigned(login) => rules.is_assignee(login) && is_ours(),
        IssueWish::Labeled(label) => rules.is_label(label) && has(label),
    };
    issue.events.iter().rfind(asks)
}

/// Whether the issue is ours to work on.
pub(super) fn is_given(issue: &Issue, rules: &IssueRules) -> bool {
    asking(issue, rules).is_some()
}

impl Kind for Given {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        let Some(rules) = facts.rules(&self.ticket).filter(|rules| !rules.issues.is_empty()) else {
            return Ok(Verdict::nothing("no rules that let issues of the repository ask for work"));
        };
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(Verdict::Never(detail.clone())),
        };
        if issue.status != OPEN {
            return Ok(Verdict::nothing("the issue is closed"));
        }
        let Some(event) = asking(issue, &rules.issues) else {
            return Ok(Verdict::nothing("the issue is neither assigned to us nor has it a label that asks"));
        };
        let key = TriggerKey::new(format!("issue_event:{}", event.id));
        let approval = Approval {
            changelog: None,
            at: event.at,
            by: event.by.clone().map(account),
        };
        let by = approval.by.clone().unwrap_or_default();
        let person = Person::on(&self.ticket, &by);
        if facts.is_ours(&person) {
            return Ok(Verdict::nothing("our own account did it"));
        }
        if let Some(sequence) = facts.known(&self.ticket, &key)? {
            return Ok(Verdict::Known(*sequence));
        }
        let reason = if *facts.authority(&person)? {
            match approved(&self.ticket, issue, &approval, rules, facts)? {
                Ok(reason) => reason,
                Err(problem) => return Ok(Verdict::Never(problem.to_string())),
            }
        } else {
            tracing::info!(ticket = %self.ticket, "no work: who asks for it may not");
            let actor = name(approval.by.as_ref());
            Reason::Skipped(SkipReason::NoWritePermission { actor })
        };
        Ok(Verdict::from(Follows {
            ticket: self.ticket.clone(),
            key,
            at: approval.at,
            actor: actor(&approval),
            reason,
        }))
    }
}
