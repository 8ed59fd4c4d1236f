//! A review of ours is not wanted any more: its pull request was merged or closed, or the request was taken back.

use domain::{Job, Reason, RepositoryName, TicketKey, Trigger, TriggerKey, Withdrawal};

use super::{
    Follows, Kind, Verdict,
    closed::is_closed,
    review_requested::{REQUESTED, waits_for},
};
use crate::{
    facts::{Facts, Need, Person},
    payload::{Hook, Unreadable, github as wire},
};

/// A pull request may not want our review any more. Whether it does, the pull request says, for webhooks and polls alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Withdrawn {
    repository: RepositoryName,
    number: u64,
    /// Who did it; only webhooks tell.
    by: Option<String>,
}

pub(super) fn from_webhook(hook: &Hook<'_>) -> Result<Option<Withdrawn>, Unreadable> {
    let Hook::GitHub {
        event: "pull_request",
        ..
    } = hook
    else {
        return Ok(None);
    };
    let payload: wire::PullRequestPayload = hook.read()?;
    let ends = matches!(payload.action.as_str(), "closed" | "review_request_removed");
    Ok(ends.then(|| Withdrawn {
        number: payload.pull_request.number,
        repository: hook.repository(payload.repository),
        by: Some(payload.sender.login),
    }))
}

impl Withdrawn {
    /// A pull request that a listing shows as changed.
    pub(crate) const fn from_poll(repository: RepositoryName, number: u64) -> Self {
        Self {
            repository,
            number,
            by: None,
        }
    }

    /// Whether the run that a key opened is over. A row that does not know the key yet says nothing of it.
    fn is_over(ticket: &TicketKey, asked: &TriggerKey, facts: &Facts) -> Result<bool, Need> {
        let row = facts.row(ticket)?;
        let opened = facts.known(ticket, asked)?;
        let is_live = |sequence: u64| row.pending.iter().any(|pending| pending.sequence == sequence);
        Ok(opened.is_none_or(|sequence| row.cursor >= sequence && !is_live(sequence)))
    }

    /// Whether we reviewed this very head: then nobody waits for us because we are done.
    fn is_reviewed(&self, facts: &Facts, head: &domain::CommitId) -> Result<bool, Need> {
        let reviews = facts.reviews(&self.repository, &self.number)?;
        Ok(reviews.iter().any(|review| {
            let author = Person::GitHub {
                repository: self.repository.clone(),
                login: review.author.clone(),
                id: review.author_id,
                is_bot: review.by_bot,
            };
            review.commit.as_ref() == Some(head) && facts.is_ours(&author)
        }))
    }
}

/// The key of what asked for the last review.
fn last_review(history: &[Trigger]) -> Option<&TriggerKey> {
    let is_review = |trigger: &&Trigger| trigger.reason.job() == Some(Job::Review);
    history.iter().rfind(is_review).map(|trigger| &trigger.key)
}

impl Kind for Withdrawn {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        let rules = facts.book.for_repository(&self.repository);
        let Some(rules) = rules.filter(|rules| !rules.pull_request.reviewer.is_empty()) else {
            return Ok(Verdict::nothing("no rules that name a reviewer"));
        };
        let ticket = TicketKey::GitHub {
            repository: self.repository.clone(),
            number: self.number,
        };
        // Most pull requests have no review of ours under way, and then nothing is read from outside.
        let Some(asked) = last_review(facts.history(&ticket)?) else {
            return Ok(Verdict::nothing("no review of ours was asked for"));
        };
        if Self::is_over(&ticket, asked, facts)? {
            return Ok(Verdict::nothing("no review of ours is under way"));
        }
        let now = facts.pull_request(&self.repository, &self.number)?;
        let why = if is_closed(now) {
            match now.merged {
                true => Withdrawal::Merged,
                false => Withdrawal::Closed,
            }
        } else if !asked.as_str().starts_with(REQUESTED)
            || waits_for(&rules.pull_request.reviewer, now)
            || self.is_reviewed(facts, &now.head)?
        {
            return Ok(Verdict::nothing("our review is wanted, or given"));
        } else {
            Withdrawal::Unrequested
        };
        // One end for each beginning, however it is told.
        let key = TriggerKey::new(format!("withdrawn:{}", asked.as_str()));
        Ok(Verdict::from(Follows {
            ticket,
            key,
            at: facts.now,
            actor: self.by.clone(),
            reason: Reason::ReviewWithdrawn { why },
        }))
    }
}
