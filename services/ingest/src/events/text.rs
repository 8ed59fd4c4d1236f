//! New or edited text of a Jira ticket: its triage, where the rules of the repository enable it.

use std::collections::BTreeSet;

use domain::{
    Job, JobRequest, JobSubject, RepositoryRules, RulesProblem, TicketBackground, TicketKey, TicketText,
    Timestamp, TriggerKey, TriggerReason,
};

use super::{EventKind, EventVerdict, NewTrigger};
use crate::{
    facts::{
        DecisionFacts, EventActor, Need, PROGRAM,
        tracker_reader::{TrackerEdit, TrackerIssue},
    },
    policy::{skip, status_check::asks_for_work},
    text::text_pin,
    webhook::payload::{UnreadablePayload, WebhookPayload, jira::build_unknown_account},
};

/// Creation of a ticket, or edit of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TextEditEvent {
    ticket: TicketKey,
    /// Changelog id of the edit; absent: the ticket was created, in this status.
    changelog: Option<String>,
    status: String,
    at: Timestamp,
    /// Author; without an id when Jira does not report the account.
    by: domain::TrackerAccount,
}

pub(super) fn from_webhook(hook: &WebhookPayload<'_>) -> Result<Option<TextEditEvent>, UnreadablePayload> {
    let WebhookPayload::Jira { instance, payload } = hook else {
        return Ok(None);
    };
    let (status, changelog) = match payload.webhook_event.as_str() {
        // A status change is another kind, even when the entry contains an edit too.
        "jira:issue_updated" => match payload.changelog.as_ref() {
            Some(changelog) if changelog.status().is_none() && changelog.is_edit() => {
                (String::new(), Some(changelog.id()))
            }
            Some(_) | None => return Ok(None),
        },
        "jira:issue_created" => match payload.status() {
            Some(status) => (status, None),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let (ticket, at) = payload.ticket_and_time(*instance)?;
    Ok(Some(TextEditEvent {
        ticket,
        changelog,
        status,
        at,
        by: payload.actor(),
    }))
}

impl TextEditEvent {
    /// Last edit of a ticket's text from a poll, or its creation; `None` when both are before `since`.
    pub(crate) fn from_poll(
        issue: &jira::ChangedIssue,
        last_edit: Option<TrackerEdit>,
        since: Timestamp,
    ) -> Option<Self> {
        let written = |changelog: Option<String>, at: Timestamp, by: Option<domain::TrackerAccount>| Self {
            ticket: issue.key.clone(),
            changelog,
            status: issue.status.clone(),
            at,
            by: by.unwrap_or_else(build_unknown_account),
        };
        match last_edit {
            Some(edit) => Some(written(Some(edit.id), edit.at, edit.by)),
            None => (issue.created >= since).then(|| written(None, issue.created, issue.creator.clone())),
        }
    }

    fn key(&self) -> TriggerKey {
        let what = self.changelog.as_deref().unwrap_or("created");
        TriggerKey::new(format!("triage:{what}"))
    }
}

impl EventKind for TextEditEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let Some(rules) = facts.rules(&self.ticket)? else {
            return Ok(EventVerdict::nothing("no rules for the project"));
        };
        if rules.triage.is_off() {
            return Ok(EventVerdict::nothing("nothing follows from the ticket's text"));
        }
        if self.changelog.is_none() && asks_for_work(&self.status, rules) {
            return Ok(EventVerdict::nothing("the new ticket asks for work at once"));
        }
        let written = WrittenText {
            ticket: &self.ticket,
            key: self.key(),
            at: self.at,
            by: &self.by,
        };
        let is_last = |issue: &TrackerIssue| !has_later_text(issue, self.changelog.as_deref(), self.at);
        decide_triage(written, is_last, rules, facts)
    }
}

/// Text of a ticket with its last author.
pub(super) struct WrittenText<'a> {
    pub(super) ticket: &'a TicketKey,
    pub(super) key: TriggerKey,
    pub(super) at: Timestamp,
    pub(super) by: &'a domain::TrackerAccount,
}

/// Verdict on the triage of a ticket.
pub(super) fn decide_triage(
    written: WrittenText<'_>,
    is_last: impl Fn(&TrackerIssue) -> bool,
    rules: &RepositoryRules,
    facts: &DecisionFacts,
) -> Result<EventVerdict, Need> {
    let WrittenText { ticket, key, at, by } = written;
    let person = EventActor::of_account(ticket, by);
    if facts.is_ours(&person) {
        return Ok(EventVerdict::nothing("our own account did it"));
    }
    if facts.is_program(&person) {
        return Ok(EventVerdict::nothing(PROGRAM));
    }
    if let Some(sequence) = facts.known(ticket, &key)? {
        return Ok(EventVerdict::Known(*sequence));
    }
    if !rules.triage.anyone && !*facts.authority(&person)? {
        tracing::info!(%ticket, "no triage: the author of the text is not allowed to request it");
        return Ok(EventVerdict::nothing(
            "the author of the text is not allowed to request a triage",
        ));
    }
    let issue = match facts.issue(ticket)? {
        Ok(issue) => issue,
        Err(detail) => return Ok(EventVerdict::Never(detail.clone())),
    };
    // GitHub keeps the spelling of an existing label, whatever the case of the added one.
    let done = rules.triage.done_label.to_lowercase();
    if issue.labels.iter().any(|label| label.to_lowercase() == done) {
        return Ok(EventVerdict::nothing("the ticket is triaged"));
    }
    if !is_last(issue) {
        return Ok(EventVerdict::nothing("a later edit of the text stands for it"));
    }
    let raw = skip::build_ticket_text(issue);
    if skip::find_skip_reason(&raw, &[], rules, &[]).is_some() {
        return Ok(EventVerdict::nothing("a skip rule forbids work on the ticket"));
    }
    let request = match build_triage_request(text_pin::pin_text(raw, &[], at, &BTreeSet::new()), rules) {
        Ok(request) => request,
        Err(problem) => return Ok(EventVerdict::Never(problem.to_string())),
    };
    Ok(EventVerdict::from(NewTrigger {
        key,
        ticket: ticket.clone(),
        at,
        actor: Some(by.display_name.clone()).filter(|name| !name.is_empty()),
        reason: TriggerReason::JobRequested(Box::new(request)),
    }))
}

/// Triage job for a text.
pub(super) fn build_triage_request(
    text: TicketText,
    rules: &RepositoryRules,
) -> Result<JobRequest, RulesProblem> {
    Ok(JobRequest {
        job: Job::Triage,
        repository: rules.repository()?,
        text,
        rules: rules.clone(),
        background: TicketBackground::default(),
        about: JobSubject::default(),
    })
}

/// True when the text was edited after the edit `changelog`, or after the creation, at `at`.
fn has_later_text(issue: &TrackerIssue, changelog: Option<&str>, at: Timestamp) -> bool {
    match (changelog, issue.edits.last()) {
        (Some(id), Some(last)) => last.id != id && last.at >= at,
        (None, Some(last)) => last.at >= at,
        (_, None) => false,
    }
}
