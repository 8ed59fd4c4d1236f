//! Assignment of a ticket to Journeyman: by assignee, or on GitHub by a label.

use domain::{RepositoryRules, SkipReason, TicketKey, TrackerAccount, TriggerKey, TriggerReason};

use super::{EventKind, EventVerdict, NewTrigger, check_active_work, returned::continue_pull_request};
use crate::{
    facts::{
        DecisionFacts, EventActor, Need, PROGRAM,
        tracker_reader::{AssignmentEvent, AssignmentKind, TrackerIssue},
    },
    policy::{
        job_request::{clean_account_name, decide_after_approval, name_approver, refuse_program},
        status_check::WorkApproval,
    },
    webhook::payload::{UnreadablePayload, WebhookPayload, github as wire},
};

/// Change of a ticket that may request work. The ticket's history contains the entry, so a webhook and a poll find the same
/// entry and the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TicketAssignedEvent {
    ticket: TicketKey,
}

pub(super) fn from_webhook(
    hook: &WebhookPayload<'_>,
) -> Result<Option<TicketAssignedEvent>, UnreadablePayload> {
    let ticket = match hook {
        WebhookPayload::GitHub { event: "issues", .. } => {
            let payload: wire::IssuePayload = hook.read()?;
            let asks = matches!(
                payload.action.as_str(),
                "assigned" | "labeled" | "opened" | "reopened"
            );
            asks.then(|| payload.ticket(hook))
        }
        WebhookPayload::Jira { instance, payload } if payload.is_assignment() => {
            Some(payload.ticket_and_time(*instance)?.0)
        }
        WebhookPayload::GitHub { .. } | WebhookPayload::Jira { .. } => None,
    };
    Ok(ticket.map(|ticket| TicketAssignedEvent { ticket }))
}

impl TicketAssignedEvent {
    /// Ticket from a poll.
    pub(crate) const fn from_poll(ticket: TicketKey) -> Self {
        Self { ticket }
    }

    /// Key of the entry. On Jira one changelog entry may contain a status change as well; the shared key makes it count once.
    fn key(&self, assignment: &AssignmentEvent) -> TriggerKey {
        match &self.ticket {
            TicketKey::Jira { .. } => TriggerKey::new(format!("changelog:{}", assignment.id)),
            TicketKey::GitHub { .. } | TicketKey::Discussion { .. } | TicketKey::Folder { .. } => {
                TriggerKey::new(format!("issue_event:{}", assignment.id))
            }
        }
    }

    /// Reason for a requester without authority.
    fn refused(&self, by: Option<&TrackerAccount>, facts: &DecisionFacts) -> TriggerReason {
        let actor = clean_account_name(by);
        TriggerReason::Skipped(match &self.ticket {
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
fn can_be_assigned(ticket: &TicketKey, rules: &RepositoryRules) -> bool {
    match ticket {
        TicketKey::Jira { .. } => !rules.jira.assignee.is_empty(),
        TicketKey::GitHub { .. } => !rules.issues.is_empty(),
        TicketKey::Discussion { .. } | TicketKey::Folder { .. } => false,
    }
}

/// True for the account to which tickets are assigned.
fn is_us(account: &TrackerAccount, ticket: &TicketKey, rules: &RepositoryRules) -> bool {
    match ticket {
        TicketKey::Jira { .. } => rules.jira.is_assignee(account),
        TicketKey::GitHub { .. } => rules.issues.is_assignee(&account.display_name),
        TicketKey::Discussion { .. } | TicketKey::Folder { .. } => false,
    }
}

/// Last entry that requests work and still holds.
fn find_assignment<'a>(
    issue: &'a TrackerIssue,
    ticket: &TicketKey,
    rules: &RepositoryRules,
) -> Option<&'a AssignmentEvent> {
    let is_ours = || {
        issue
            .assignees
            .iter()
            .any(|account| is_us(account, ticket, rules))
    };
    let has = |label: &str| issue.labels.iter().any(|known| known == label);
    let asks = |assignment: &&AssignmentEvent| match &assignment.how {
        AssignmentKind::Assigned(account) => is_us(account, ticket, rules) && is_ours(),
        AssignmentKind::Labeled(label) => rules.issues.is_label(label) && has(label),
    };
    issue.assignments.iter().rfind(asks)
}

/// True when the ticket is assigned to Journeyman.
pub(super) fn is_assigned(issue: &TrackerIssue, ticket: &TicketKey, rules: &RepositoryRules) -> bool {
    can_be_assigned(ticket, rules) && find_assignment(issue, ticket, rules).is_some()
}

impl EventKind for TicketAssignedEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let place = facts.place(&self.ticket)?;
        let mut candidates = place.candidates();
        let Some(rules) = candidates.find(|rules| can_be_assigned(&self.ticket, rules)) else {
            return Ok(EventVerdict::nothing(
                "no rules select tickets by assignment or label",
            ));
        };
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(EventVerdict::Never(detail.clone())),
        };
        if issue.is_over {
            return Ok(EventVerdict::nothing("the ticket is closed"));
        }
        let Some(assignment) = find_assignment(issue, &self.ticket, rules) else {
            return Ok(EventVerdict::nothing(
                "the ticket is neither assigned to us nor labeled for work",
            ));
        };
        let key = self.key(assignment);
        let approval = WorkApproval {
            changelog: matches!(self.ticket, TicketKey::Jira { .. }).then(|| assignment.id.clone()),
            at: assignment.at,
            by: assignment.by.clone(),
        };
        let person = EventActor::of_account(&self.ticket, &approval.by.clone().unwrap_or_default());
        if facts.is_ours(&person) {
            return Ok(EventVerdict::nothing("our own account did it"));
        }
        if let Some(sequence) = facts.known(&self.ticket, &key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        // An assignment together with a label or a status change is one request.
        if let Some(verdict) = check_active_work(&self.ticket, facts)? {
            return Ok(verdict);
        }
        let reason = if facts.is_program(&person) {
            match refuse_program(&self.ticket, approval.by.as_ref(), facts)? {
                Some(refused) => refused,
                None => return Ok(EventVerdict::nothing(PROGRAM)),
            }
        } else if *facts.authority(&person)? {
            match place.problem() {
                Some(unclear) => TriggerReason::Skipped(unclear),
                None => match continue_pull_request(&self.ticket, issue, &approval, rules, facts)? {
                    Some(reason) => reason,
                    None => match decide_after_approval(&self.ticket, issue, &approval, rules, facts)? {
                        Ok(reason) => reason,
                        Err(problem) => return Ok(EventVerdict::Never(problem.to_string())),
                    },
                },
            }
        } else {
            tracing::info!(ticket = %self.ticket, "no work: the requester is not allowed to request it");
            self.refused(approval.by.as_ref(), facts)
        };
        Ok(EventVerdict::from(NewTrigger {
            ticket: self.ticket.clone(),
            key,
            at: approval.at,
            actor: name_approver(&approval),
            reason,
        }))
    }
}
