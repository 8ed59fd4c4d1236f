//! Start of a discussion, or a command in one.

use std::collections::BTreeSet;

use domain::{
    DiscussionRequest, DiscussionTask, Job, JobRequest, JobSubject, ReactionSubject, RepositoryRules,
    SkipReason, TicketBackground, TicketKey, Timestamp, TriggerKey, TriggerReason,
};

use super::{EventKind, EventVerdict, NewTrigger};
use crate::{
    facts::{DecisionFacts, EventActor, Need, PROGRAM, tracker_reader::TrackerIssue},
    policy::skip,
    text::text_pin,
    webhook::payload::{UnreadablePayload, WebhookPayload, github as wire},
};

/// Task in a discussion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiscussionEvent {
    ticket: TicketKey,
    task: DiscussionTask,
    /// Command of a user; absent for a new discussion.
    order: Option<DiscussionOrder>,
}

/// Command of an authorized user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiscussionOrder {
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    pub(crate) by: String,
    /// Comment with the command, as a target for reactions.
    pub(crate) comment: Option<ReactionSubject>,
}

pub(super) fn from_webhook(hook: &WebhookPayload<'_>) -> Result<Option<DiscussionEvent>, UnreadablePayload> {
    let Some(payload) = hook.read_event::<wire::DiscussionPayload>("discussion")? else {
        return Ok(None);
    };
    Ok((payload.action == "created").then(|| {
        DiscussionEvent::opened(TicketKey::Discussion {
            number: payload.discussion.number,
            repository: hook.repository(payload.repository),
        })
    }))
}

/// True when the rules allow Journeyman to take part on the ticket. Only discussions can be excluded.
pub(super) fn can_take_part(
    ticket: &TicketKey,
    rules: &RepositoryRules,
    facts: &DecisionFacts,
) -> Result<bool, Need> {
    if !matches!(ticket, TicketKey::Discussion { .. }) {
        return Ok(true);
    }
    if !rules.discussions.enabled {
        return Ok(false);
    }
    let issue = facts.issue(ticket)?;
    Ok(issue
        .as_ref()
        .is_ok_and(|issue| rules.discussions.allow(&issue.kind)))
}

impl DiscussionEvent {
    /// Research task for a new discussion, from a webhook or a poll.
    pub(crate) const fn opened(ticket: TicketKey) -> Self {
        Self {
            ticket,
            task: DiscussionTask::Research,
            order: None,
        }
    }

    /// Task that an authorized user commands.
    pub(crate) const fn ordered(ticket: TicketKey, task: DiscussionTask, order: DiscussionOrder) -> Self {
        Self {
            ticket,
            task,
            order: Some(order),
        }
    }

    fn key(&self) -> TriggerKey {
        match &self.order {
            Some(order) => order.key.clone(),
            None => TriggerKey::new("discussion:created"),
        }
    }

    /// Reason against research in a new discussion.
    fn unasked(&self, issue: &TrackerIssue, facts: &DecisionFacts) -> Result<Option<&'static str>, Need> {
        if issue.is_over {
            return Ok(Some("the discussion is closed"));
        }
        let author = EventActor::of_account(&self.ticket, &issue.creator.clone().unwrap_or_default());
        if facts.is_ours(&author) {
            return Ok(Some("our own account began it"));
        }
        if facts.is_program(&author) {
            return Ok(Some(PROGRAM));
        }
        Ok(if *facts.authority(&author)? {
            None
        } else {
            Some("the author of the discussion is not allowed to request work")
        })
    }

    fn follows(&self, issue: &TrackerIssue, facts: &DecisionFacts, reason: TriggerReason) -> EventVerdict {
        let (at, actor) = match &self.order {
            Some(order) => (order.at, Some(order.by.clone())),
            None => {
                let creator = issue.creator.as_ref().map(|creator| creator.display_name.clone());
                (issue.created.unwrap_or(facts.now), creator)
            }
        };
        EventVerdict::from(NewTrigger {
            ticket: self.ticket.clone(),
            key: self.key(),
            at,
            actor,
            reason,
        })
    }
}

impl EventKind for DiscussionEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        if !matches!(self.ticket, TicketKey::Discussion { .. }) {
            return Ok(EventVerdict::nothing("it can be ordered in discussions alone"));
        }
        let is_wanted = |rules: &&RepositoryRules| {
            rules.discussions.enabled && (self.order.is_some() || rules.discussions.research)
        };
        let Some(rules) = facts.rules(&self.ticket)?.filter(is_wanted) else {
            return Ok(EventVerdict::nothing("the rules keep us out of discussions"));
        };
        if let Some(sequence) = facts.known(&self.ticket, &self.key())? {
            return Ok(EventVerdict::Known(*sequence));
        }
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(EventVerdict::Never(detail.clone())),
        };
        if !rules.discussions.allow(&issue.kind) {
            return Ok(EventVerdict::nothing("the rules keep us out of this category"));
        }
        if self.order.is_none()
            && let Some(why) = self.unasked(issue, facts)?
        {
            return Ok(EventVerdict::nothing(why));
        }
        if self.task == DiscussionTask::Complete && issue.is_over {
            return Ok(EventVerdict::nothing("the discussion is closed already"));
        }
        if self.task == DiscussionTask::Plan && rules.issues.most_planned == 0 {
            return Ok(self.follows(issue, facts, TriggerReason::Skipped(SkipReason::NoIssues)));
        }
        let repository = match rules.repository() {
            Ok(repository) => repository,
            Err(problem) => return Ok(EventVerdict::Never(problem.to_string())),
        };
        // Our comments are kept, so that an existing plan is not made again. Nothing is approved here, so every
        // comment up to now counts: GitHub's times are whole seconds and cannot order comments around the command.
        let text = text_pin::pin_text(
            skip::build_ticket_text(issue),
            &issue.comments,
            facts.now,
            &BTreeSet::new(),
        );
        if let Some(reason) = skip::find_skip_reason(&text, &[], rules, &[]) {
            return Ok(self.follows(issue, facts, TriggerReason::Skipped(reason)));
        }
        let discussion = DiscussionRequest {
            task: self.task,
            comment: self.order.as_ref().and_then(|order| order.comment.clone()),
        };
        let request = JobRequest {
            job: Job::Discuss,
            repository,
            text,
            rules: rules.clone(),
            background: TicketBackground::default(),
            about: JobSubject::Discussion(Box::new(discussion)),
        };
        Ok(self.follows(issue, facts, TriggerReason::JobRequested(Box::new(request))))
    }
}
