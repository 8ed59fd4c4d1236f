//! Assignment of a ticket to Journeyman: by assignee, or on GitHub by a label.

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

/// Change of a ticket that may request work. The ticket's history contains the entry, so a webhook and a poll find the same
/// entry and the same key.
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
    /// Ticket from a poll.
    pub(crate) const fn from_poll(ticket: TicketKey) -> Self {
        Self { ticket }
    }

    /// Key of the entry. On Jira one changelog entry may contain a status change as well; the shared key makes it count once.
    fn key(&self, gift: &Gift) -> TriggerKey {
        match &self.ticket {
            TicketKey::Jira { .. } => TriggerKey::new(format!("changelog:{}", gift.id)),
            TicketKey::GitHub { .. } | TicketKey::Discussion { .. } | TicketKey::Folder { .. } => {
                TriggerKey::new(format!("issue_event:{}", gift.id))
            }
        }
    }

    /// Reason for a requester without authority.
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

/// True when the rules accept assignments of tickets of this kind.
fn can_be_given(ticket: &TicketKey, rules: &Rules) -> bool {
    match ticket {
        TicketKey::Jira { .. } => !rules.jira.assignee.is_empty(),
        TicketKey::GitHub { .. } => !rules.issues.is_empty(),
        TicketKey::Discussion { .. } | TicketKey::Folder { .. } => false,
    }
}

/// True for the account to which tickets are assigned.
fn is_us(account: &Account, ticket: &TicketKey, rules: &Rules) -> bool {
    match ticket {
        TicketKey::Jira { .. } => rules.jira.is_assignee(account),
        TicketKey::GitHub { .. } => rules.issues.is_assignee(&account.display_name),
        TicketKey::Discussion { .. } | TicketKey::Folder { .. } => false,
    }
}

/// Last entry that requests work and still holds.
fn asking<'a>(issue: &'a Issue, ticket: &TicketKey, rules: &Rules) -> Option<&'a Gift> {
    let is_ours = || issue.assignees.iter().any(|account| is_us(account, ticket, rules));
    let has = |label: &str| issue.labels.iter().any(|known| known == label);
    let asks = |gift: &&Gift| match &gift.how {
        How::Assigned(account) => is_us(account, ticket, rules) && is_ours(),
        How::Labeled(label) => rules.issues.is_label(label) && has(label),
    };
    issue.gifts.iter().rfind(asks)
}

/// True when the ticket is assigned to Journeyman.
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
        // An assignment together with a label or a status change is one request.
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
