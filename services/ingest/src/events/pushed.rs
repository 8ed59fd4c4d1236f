//! Push of another author to our branch with an open pull request.

use domain::{
    CommitId, PullRequestEvent, PullRequestHead, PullRequestRecord, PullRequestRef, RepositoryName, RunId,
    RunStatus, TicketKey, Trigger, TriggerKey, TriggerReason,
};

use super::{EventKind, EventVerdict, NewTrigger, closed::is_closed};
use crate::{
    facts::{DecisionFacts, EventActor, Need},
    text::text_pin,
    webhook::payload::{UnreadablePayload, WebhookPayload, github as wire},
};

// Time after the request of a base update in which its head may not be recorded yet, in milliseconds. Limits of GitHub
// may delay the update, but a head that comes later is a push of another author.
const UPDATE_MS: i64 = 30 * 60 * 1000;

/// Push to a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PushEvent {
    repository: RepositoryName,
    branch: String,
    head: CommitId,
    /// Actor; absent in a poll.
    by: Option<String>,
}

pub(super) fn from_webhook(hook: &WebhookPayload<'_>) -> Result<Option<PushEvent>, UnreadablePayload> {
    let Some(wire::PushPayload {
        r#ref,
        after,
        deleted,
        repository,
        sender,
    }) = hook.read_event("push")?
    else {
        return Ok(None);
    };
    let branch = r#ref.strip_prefix("refs/heads/").filter(|_| !deleted);
    Ok(branch.map(|branch| PushEvent {
        repository: hook.repository(repository),
        branch: branch.to_owned(),
        head: after,
        by: Some(sender.login),
    }))
}

impl PushEvent {
    /// Head of our open pull request from a listing.
    pub(crate) fn from_poll(record: &PullRequestRecord, head: CommitId) -> Self {
        let PullRequestRef {
            repository, branch, ..
        } = record.pull_request.clone();
        Self {
            repository,
            branch,
            head,
            by: None,
        }
    }
}

/// Returns true until the run of a trigger ends.
fn is_open(trigger: &Trigger, ticket: &TicketKey, facts: &DecisionFacts) -> Result<bool, Need> {
    let Some(sequence) = *facts.known(ticket, &trigger.key)? else {
        return Ok(false);
    };
    let row = facts.row(ticket)?;
    let run = row.run(&RunId::new(ticket.clone(), sequence));
    // Without a run, the planner has not handled the trigger yet, or has forgotten its run.
    Ok(run.map_or(row.cursor < sequence, |run| {
        !matches!(run.status, RunStatus::Finished { .. })
    }))
}

// Skip rules do not apply here: the pull request waits for its checks as a draft, and the verdict
// on the checks applies the rules.
impl EventKind for PushEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let person = self.by.as_ref().map(|login| EventActor::GitHub {
            repository: self.repository.clone(),
            login: login.clone(),
            // The check only concerns our own account, whose login is known.
            id: None,
            is_bot: false,
        });
        if person.is_some_and(|person| facts.is_ours(&person)) {
            return Ok(EventVerdict::nothing("our own account pushed it"));
        }
        let Some(record) = facts.branch(&self.repository, &self.branch)? else {
            return Ok(EventVerdict::nothing("not a branch of ours"));
        };
        // The reporter writes the record before it pushes, so the record contains our own head.
        if record.head == self.head {
            return Ok(EventVerdict::nothing("we pushed it"));
        }
        let Some(ours) = &record.pull_request else {
            return Ok(EventVerdict::nothing("the branch has no pull request"));
        };
        let key = TriggerKey::new(format!("pushed:{}:{}", ours.repository, self.head));
        if let Some(sequence) = facts.known(&record.ticket, &key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        // GitHub makes the commit of a base update, and a listing may show it before the reporter records it.
        let is_update = |trigger: &Trigger| {
            let TriggerReason::PullRequest(PullRequestEvent::Outdated(outdated)) = &trigger.reason else {
                return false;
            };
            outdated.head == record.head && outdated.pull_request.is_same(ours)
        };
        if self.by.is_none() {
            let mut history = facts.history(&record.ticket)?.iter().rev();
            if let Some(update) = history.find(|trigger| is_update(trigger)) {
                let is_recent = facts.now.unix_ms() - update.at.unix_ms() < UPDATE_MS;
                // While no reporter works, the update stays unrecorded for longer.
                if is_recent || is_open(update, &record.ticket, facts)? {
                    return Ok(EventVerdict::nothing("an update of its base by us"));
                }
            }
        }
        let now = facts.pull_request(&self.repository, &ours.number)?;
        if is_closed(now) || now.head != self.head {
            return Ok(EventVerdict::nothing("not the open head of the pull request"));
        }
        // Listings lag behind pushes. A head on which our later work is based is not a push of
        // another author.
        let is_earlier = |trigger: &Trigger| {
            let about = trigger.reason.job_request().map(|request| &request.about);
            // A resolved conflict checks out the base branch, but continues the head of the pull request.
            about.is_some_and(|about| match about.pull_request() {
                Some((_, head)) => *head == self.head,
                None => about.base() == Some(&self.head),
            })
        };
        let opened = facts.record(&self.repository, &ours.number)?.as_ref();
        if opened.is_some_and(|record| record.head.as_ref() == Some(&self.head))
            || facts.history(&record.ticket)?.iter().any(is_earlier)
        {
            return Ok(EventVerdict::nothing("an earlier head of ours"));
        }
        let by = self.by.as_deref().unwrap_or("somebody");
        Ok(EventVerdict::from(NewTrigger {
            ticket: record.ticket.clone(),
            key,
            at: facts.now,
            actor: self.by.clone(),
            reason: PullRequestEvent::PushedByOthers(PullRequestHead {
                pull_request: ours.clone(),
                head: self.head.clone(),
                by: text_pin::clean_text(by, 100),
            })
            .into(),
        }))
    }
}
