//! A ticket is given to us: assigned, or at GitHub marked with a label that asks for work.

use domain::{Account, Reason, Rules, SkipReason, TicketKey, TriggerKey};

use super::{
    returned::continue_pull_request,
    Follows, Kind, Verdict, under_way,
};
use crate::{
    approved::{actor, approved, name, refused_program},
    facts::{Facts, Need, PROGRAM, Person},
    outside::{Gift, How, Issue},
    payload::{Hook, Unreadable, github as wire},
    standing::Approval,
};

/// Something was done to a ticket that may ask for work. What it is, the ticket itself says: a webhook and a poll come to the
/// same entry of its history, and so to the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    ticket: TicketKey,
}

pub(super) fn from_webhook(hook: &Hook<'_>) -> Result<Option<Given>, Unreadable> {
    let ticket = match hook {
        Hook::GitHub { event: "issues", .. } => {
            let payload: wire::IssuePayload = hook.read()?;
            let asks = matches!(payload.action.as_str(), "assigned" | "labeled" | "opened" | "reopened");
            asks.then(|| payload.ticket(hook))
        }
        Hook::Jira { instance, payload } if payload.is_assignment() => {
            Some(payload.ticket_and_time(*instance)?.0)
        }
        Hook::GitHub { .. } | Hook::Jira { .. } => None,
    };
    Ok(ticket.map(|ticket| Given { ticket }))
}

impl Given {
    /// A ticket that a poll found.
    pub(crate) const fn from_poll(ticket: TicketKey) -> Self {
        Self { ticket }
    }

    /// The name of the entry that asks. At Jira it may be a move of the ticket as well, which then counts once.
    fn key(&self, gift: &Gift) -> TriggerKey {
        match &self.ticket {
            TicketKey::Jira { .. } => TriggerKey::new(format!("changelog:{}", gift.id)),
            TicketKey::GitHub { .. } | TicketKey::Discussion { .. } | TicketKey::Folder { .. } => {
                TriggerKey::new(format!("issue_event:{}", gift.id))
            }
        }
    }

    /// What follows when nobody asks who may.
    fn refused(&self, by: Option<&Account>, facts: &Facts) -> Reason {
        let actor = name(by);
        Reason::Skipped(match &self.ticket {
            TicketKey::Jira { .. } => SkipReason::NotAllowed {
                actor,
                group: facts.group.clone(),
                role: facts.role.clone(),
            },
            TicketKey::GitHub { .. } | TicketKey::Discussion { .. } | TicketKey::Folder { .. } => {
                SkipReason::NoWritePermission { actor }
            }
        })
    }
}

/// Whether the rules let tickets of this kind be given to us.
fn can_be_given(ticket: &TicketKey, rules: &Rules) -> bool {
    match ticket {
        TicketKey::Jira { .. } => !rules.jira.assignee.is_empty(),
        TicketKey::GitHub { .. } => !rules.issues.is_empty(),
        TicketKey::Discussion { .. } | TicketKey::Folder { .. } => false,
    }
}

/// Whether an account is the one that tickets are given to.
fn is_us(account: &Account, ticket: &TicketKey, rules: &Rules) -> bool {
    match ticket {
        TicketKey::Jira { .. } => rules.jira.is_assignee(account),
        TicketKey::GitHub { .. } => rules.issues.is_assignee(&account.display_name),
        TicketKey::Discussion { .. } | TicketKey::Folder { .. } => false,
    }
}

/// The last entry that asks for work and was not taken back.
fn asking<'a>(issue: &'a Issue, ticket: &TicketKey, rules: &Rules) -> Option<&'a Gift> {
    let is_ours = || issue.assignees.iter().any(|account| is_us(account, ticket, rules));
    let has = |label: &str| issue.labels.iter().any(|known| known == label);
    let asks = |gift: &&Gift| match &gift.how {
        How::Assigned(account) => is_us(account, ticket, rules) && is_ours(),
        How::Labeled(label) => rules.issues.is_label(label) && has(label),
    };
    issue.gifts.iter().rfind(asks)
}

/// Whether the ticket is ours to work on.
pub(super) fn is_given(issue: &Issue, ticket: &TicketKey, rules: &Rules) -> bool {
    can_be_given(ticket, rules) && asking(issue, ticket, rules).is_some()
}

impl Kind for Given {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        let place = facts.place(&self.ticket)?;
        let mut candidates = place.candidates();
        let Some(rules) = candidates.find(|rules| can_be_given(&self.ticket, rules)) else {
            return Ok(Verdict::nothing("no rules that let tickets be given to us"));
        };
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(Verdict::Never(detail.clone())),
        };
        if issue.is_over {
            return Ok(Verdict::nothing("the ticket is closed"));
        }
        let Some(gift) = asking(issue, &self.ticket, rules) else {
            return Ok(Verdict::nothing("the ticket is neither assigned to us nor has it a label that asks"));
        };
        let key = self.key(gift);
        let approval = Approval {
            changelog: matches!(self.ticket, TicketKey::Jira { .. }).then(|| gift.id.clone()),
            at: gift.at,
            by: gift.by.clone(),
        };
        let person = Person::on(&self.ticket, &approval.by.clone().unwrap_or_default());
        if facts.is_ours(&person) {
            return Ok(Verdict::nothing("our own account did it"));
        }
        if let Some(sequence) = facts.known(&self.ticket, &key)? {
            return Ok(Verdict::Known(*sequence));
        }
        // Assigned and labeled, or moved, in one breath is one wish.
        if let Some(verdict) = under_way(&self.ticket, facts)? {
            return Ok(verdict);
        }
        let reason = if facts.is_program(&person) {
            match refused_program(&self.ticket, approval.by.as_ref(), facts)? {
                Some(refused) => refused,
                None => return Ok(Verdict::nothing(PROGRAM)),
            }
        } else if *facts.authority(&person)? {
            match place.problem() {
                Some(unclear) => Reason::Skipped(unclear),
                None => match continue_pull_request(&self.ticket, issue, &approval, rules, facts)? {
                    Some(reason) => reason,
                    None => match approved(&self.ticket, issue, &approval, rules, facts)? {
                        Ok(reason) => reason,
                        Err(problem) => return Ok(Verdict::Never(problem.to_string())),
                    },
                },
            }
        } else {
            tracing::info!(ticket = %self.ticket, "no work: who asks for it may not");
            self.refused(approval.by.as_ref(), facts)
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
