//! Request for work on a ticket: it entered the ready status, or an authorized user requested it.

use domain::{
    RepositoryName, RepositoryRules, SkipReason, TicketKey, Timestamp, TriggerChannel, TriggerKey,
    TriggerReason,
};

use super::{EventKind, EventVerdict, NewTrigger, check_active_work, returned::continue_pull_request};
use crate::{
    facts::{DecisionFacts, EventActor, Need, PROGRAM, tracker_reader::TrackerIssue},
    policy::{
        job_request::{clean_account_name, decide_after_approval, name_approver, refuse_program},
        status_check::{StatusCheck, WorkApproval, asks_for_work, check_status},
    },
    text::text_pin,
    webhook::payload::{
        UnreadablePayload, WebhookPayload,
        jira::{JiraHookPayload, build_unknown_account},
    },
};

/// Request for work on a ticket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkRequestEvent {
    ticket: TicketKey,
    key: TriggerKey,
    /// Repository for a ticket of a shared project.
    repository: Option<RepositoryName>,
    asked: WorkRequestForm,
    /// Text that the requester adds to the ticket's text.
    words: Option<String>,
}

/// Form of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WorkRequestForm {
    /// Entry into the status, from a webhook or a search. The actor still needs a check.
    Entered { status: String, approval: WorkApproval },
    /// Request of an authorized user.
    Ordered { at: Timestamp, by: String },
}

pub(super) fn from_webhook(hook: &WebhookPayload<'_>) -> Result<Option<WorkRequestEvent>, UnreadablePayload> {
    let WebhookPayload::Jira { instance, payload } = hook else {
        return Ok(None);
    };
    let Some((status, changelog)) = find_entered_status(payload) else {
        return Ok(None);
    };
    let (ticket, at) = payload.ticket_and_time(*instance)?;
    let by = Some(payload.actor()).filter(|actor| !actor.id.is_empty());
    Ok(Some(WorkRequestEvent::entered(
        ticket,
        status,
        WorkApproval { changelog, at, by },
    )))
}

/// New status of an issue, by a status change or by its creation, and the changelog id of the change.
fn find_entered_status(payload: &JiraHookPayload) -> Option<(String, Option<String>)> {
    match payload.webhook_event.as_str() {
        "jira:issue_updated" => {
            let (id, status) = payload.changelog.as_ref()?.status()?;
            Some((status, Some(id)))
        }
        "jira:issue_created" => Some((payload.status()?, None)),
        _ => None,
    }
}

impl WorkRequestEvent {
    /// Entry of a ticket into a status: by the change with the approval's changelog id, or by its creation.
    pub(crate) fn entered(ticket: TicketKey, status: String, approval: WorkApproval) -> Self {
        let key = match &approval.changelog {
            Some(id) => TriggerKey::new(format!("changelog:{id}")),
            None => TriggerKey::new(format!("created:{ticket}")),
        };
        Self {
            ticket,
            key,
            repository: None,
            asked: WorkRequestForm::Entered { status, approval },
            words: None,
        }
    }

    /// Ticket that a search found in a status, with the status change that brought it there; without one it was
    /// created there.
    pub(crate) fn from_poll(
        ticket: TicketKey,
        status: String,
        moved: Option<jira::StatusChange>,
        now: Timestamp,
    ) -> Self {
        let approval = WorkApproval {
            changelog: moved.as_ref().map(|moved| moved.id.to_string()),
            at: moved.as_ref().and_then(|moved| moved.at).unwrap_or(now),
            by: moved.and_then(|moved| moved.by),
        };
        Self::entered(ticket, status, approval)
    }

    /// Request of an authorized user.
    pub(crate) fn ordered(
        ticket: TicketKey,
        key: TriggerKey,
        repository: Option<RepositoryName>,
        at: Timestamp,
        by: String,
    ) -> Self {
        Self {
            ticket,
            key,
            repository,
            asked: WorkRequestForm::Ordered { at, by },
            words: None,
        }
    }

    /// Adds the requester's text to the ticket's text.
    #[must_use]
    pub(crate) fn with_words(self, words: Option<String>) -> Self {
        Self { words, ..self }
    }

    pub(crate) const fn key(&self) -> &TriggerKey {
        &self.key
    }

    /// Key in the ticket's log. The creation of an issue has the key of its records, so that it counts once after a move.
    fn key_among(&self, facts: &DecisionFacts) -> TriggerKey {
        match &self.asked {
            WorkRequestForm::Entered { approval, .. } if approval.changelog.is_none() => {
                TriggerKey::new(format!("created:{}", facts.records(&self.ticket)))
            }
            WorkRequestForm::Entered { .. } | WorkRequestForm::Ordered { .. } => self.key.clone(),
        }
    }

    /// Rules for the request, and the reason why the repository is ambiguous, if it is.
    fn rules<'a>(
        &self,
        facts: &'a DecisionFacts,
    ) -> Result<Option<(&'a RepositoryRules, Option<SkipReason>)>, Need> {
        if let Some(repository) = &self.repository {
            return Ok(facts.book.for_repository(repository).map(|rules| (rules, None)));
        }
        let place = facts.place(&self.ticket)?;
        let first = place.candidates().next();
        let asking = place.candidates().find(|rules| self.is_interested(rules));
        Ok(asking.or(first).map(|rules| (rules, place.problem())))
    }

    fn is_interested(&self, rules: &RepositoryRules) -> bool {
        match &self.asked {
            WorkRequestForm::Entered { status, .. } => asks_for_work(status, rules),
            WorkRequestForm::Ordered { .. } => true,
        }
    }

    /// Verdict that needs no read, if there is one.
    fn uninteresting(&self, facts: &DecisionFacts) -> Option<EventVerdict> {
        let WorkRequestForm::Entered { status, approval } = &self.asked else {
            return None;
        };
        if approval
            .by
            .as_ref()
            .is_some_and(|by| facts.is_ours(&self.person(by)))
        {
            return Some(EventVerdict::nothing("our own account did it"));
        }
        let mut covering = facts
            .book
            .repositories()
            .filter(|rules| rules.cover(&self.ticket))
            .peekable();
        // A Data Center sends events of every project, so those without rules are ignored. A status that some rules
        // name is kept: its dead letter shows the operator a project whose rules are missing.
        if covering.peek().is_none() && !is_work_status(status, facts) {
            return Some(EventVerdict::nothing("no rules for the project"));
        }
        (covering.peek().is_some() && !covering.any(|rules| self.is_interested(rules)))
            .then(|| self.of_no_interest(status))
    }

    fn of_no_interest(&self, status: &str) -> EventVerdict {
        EventVerdict::nothing(format!("status {status:?} asks for nothing"))
    }

    fn person(&self, account: &domain::TrackerAccount) -> EventActor {
        EventActor::of_account(&self.ticket, account)
    }

    /// Approval of the request, with its actor and time; else the verdict without one.
    fn approval(
        &self,
        issue: &TrackerIssue,
        rules: &RepositoryRules,
        facts: &DecisionFacts,
    ) -> Result<Result<WorkApproval, EventVerdict>, Need> {
        let reported = match &self.asked {
            WorkRequestForm::Entered { approval, .. } => approval.clone(),
            WorkRequestForm::Ordered { at, by } => {
                let by = Some(domain::TrackerAccount {
                    display_name: by.clone(),
                    ..domain::TrackerAccount::default()
                });
                let changelog = None;
                return Ok(Ok(WorkApproval {
                    changelog,
                    at: *at,
                    by,
                }));
            }
        };
        let approval = match check_status(issue, reported.clone(), rules) {
            StatusCheck::Asks(approval) => approval,
            StatusCheck::Repeated => {
                return Ok(Err(EventVerdict::nothing(
                    "a later move into the status asks for it",
                )));
            }
            // A search index may lag behind, so a poll ignores the ticket silently. A webhook is exact, so
            // Journeyman comments on the ticket.
            StatusCheck::Left { .. } if facts.source == TriggerChannel::Poll => {
                return Ok(Err(EventVerdict::nothing("the ticket has left the status")));
            }
            StatusCheck::Left { status } => {
                let wanted = rules.agent.status.clone();
                let reason = SkipReason::StatusLeft { wanted, status };
                return Ok(Err(self.skipped(&reported, reason)));
            }
        };
        let account = approval.by.clone().unwrap_or_else(build_unknown_account);
        let person = self.person(&account);
        // The settings may not name the writer account. Its marked comments on the issue reveal it.
        if approval.by.is_some() && (facts.is_ours(&person) || issue.our_accounts.contains(&account.id)) {
            return Ok(Err(EventVerdict::nothing("our own account did it")));
        }
        if facts.is_program(&person) {
            let refused = refuse_program(&self.ticket, approval.by.as_ref(), facts)?;
            let refused = refused.map(|reason| self.follows(approval.at, name_approver(&approval), reason));
            return Ok(Err(refused.unwrap_or_else(|| EventVerdict::nothing(PROGRAM))));
        }
        if *facts.authority(&person)? {
            return Ok(Ok(approval));
        }
        tracing::info!(ticket = %self.ticket, "no work: the requester is not allowed to request it");
        let reason = SkipReason::NotAllowed {
            actor: clean_account_name(approval.by.as_ref()),
            group: facts.group.clone(),
            role: facts.role.clone(),
        };
        Ok(Err(self.skipped(&approval, reason)))
    }

    fn skipped(&self, approval: &WorkApproval, reason: SkipReason) -> EventVerdict {
        self.follows(
            approval.at,
            name_approver(approval),
            TriggerReason::Skipped(reason),
        )
    }

    fn follows(&self, at: Timestamp, actor: Option<String>, reason: TriggerReason) -> EventVerdict {
        EventVerdict::from(NewTrigger {
            ticket: self.ticket.clone(),
            key: self.key.clone(),
            at,
            actor,
            reason,
        })
    }

    fn worded(&self, mut reason: TriggerReason, approval: &WorkApproval) -> TriggerReason {
        if let (TriggerReason::JobRequested(job), Some(words)) = (&mut reason, &self.words) {
            let by = clean_account_name(approval.by.as_ref());
            job.text = text_pin::add_instruction(std::mem::take(&mut job.text), &by, approval.at, words);
        }
        reason
    }

    fn unreadable(&self, detail: &str) -> EventVerdict {
        tracing::error!(ticket = %self.ticket, detail, "the ticket cannot be read");
        let (at, actor) = match &self.asked {
            WorkRequestForm::Entered { approval, .. } => (approval.at, name_approver(approval)),
            WorkRequestForm::Ordered { at, by } => (*at, Some(by.clone())),
        };
        self.follows(at, actor, TriggerReason::Skipped(SkipReason::Unreadable))
    }
}

impl EventKind for WorkRequestEvent {
    fn ticket(&self) -> Option<&TicketKey> {
        Some(&self.ticket)
    }

    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        if let Some(verdict) = self.uninteresting(facts) {
            return Ok(verdict);
        }
        // The lookup in the log comes first, because a known key makes all further reads unnecessary.
        if let Some(sequence) = facts.known(&self.ticket, &self.key_among(facts))? {
            return Ok(EventVerdict::Known(*sequence));
        }
        let Some((rules, unclear)) = self.rules(facts)? else {
            return Ok(EventVerdict::Unruled(self.ticket.clone()));
        };
        if let WorkRequestForm::Entered { status, .. } = &self.asked
            && !self.is_interested(rules)
        {
            return Ok(self.of_no_interest(status));
        }
        // An assignment together with a status change is one request.
        let may_be_given =
            !rules.jira.assignee.is_empty() && matches!(self.asked, WorkRequestForm::Entered { .. });
        if may_be_given && let Some(verdict) = check_active_work(&self.ticket, facts)? {
            return Ok(verdict);
        }
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(self.unreadable(detail)),
        };
        let approval = match self.approval(issue, rules, facts)? {
            Ok(approval) => approval,
            Err(verdict) => return Ok(verdict),
        };
        if let Some(unclear) = unclear {
            tracing::info!(ticket = %self.ticket, "no work: it is not clear for which repository");
            return Ok(self.skipped(&approval, unclear));
        }
        // A status change with new comments requests more work on the open pull request. A dispatched job names its
        // subject itself.
        if matches!(self.asked, WorkRequestForm::Entered { .. })
            && let Some(reason) = continue_pull_request(&self.ticket, issue, &approval, rules, facts)?
        {
            return Ok(self.follows(approval.at, name_approver(&approval), reason));
        }
        Ok(
            match decide_after_approval(&self.ticket, issue, &approval, rules, facts)? {
                Ok(reason) => self.follows(
                    approval.at,
                    name_approver(&approval),
                    self.worded(reason, &approval),
                ),
                Err(problem) => EventVerdict::Never(problem.to_string()),
            },
        )
    }
}

/// True when some repository, or the default, requests work by this status.
fn is_work_status(status: &str, facts: &DecisionFacts) -> bool {
    asks_for_work(status, &RepositoryRules::default())
        || facts
            .book
            .repositories()
            .any(|rules| asks_for_work(status, rules))
}
