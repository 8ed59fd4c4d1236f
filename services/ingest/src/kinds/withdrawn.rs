//! End of a requested review: its pull request was merged or closed, or the request was withdrawn.

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

/// Possible end of a requested review. The pull request contains the state, for webhooks and polls alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Withdrawn {
    repository: RepositoryName,
    number: u64,
    /// Actor; absent in a poll.
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
    /// Changed pull request from a listing.
    pub(crate) const fn from_poll(repository: RepositoryName, number: u64) -> Self {
        Self {
            repository,
            number,
            by: None,
        }
    }

    /// True when the run of the key has ended. A row that does not contain the key yet decides nothing.
    fn is_over(ticket: &TicketKey, asked: &TriggerKey, facts: &Facts) -> Result<bool, Need> {
        let row = facts.row(ticket)?;
        let opened = facts.known(ticket, asked)?;
        let is_live = |sequence: u64| row.pending.iter().any(|pending| pending.sequence == sequence);
        Ok(opened.is_none_or(|sequence| row.cursor >= sequence && !is_live(sequence)))
    }

    /// True when we reviewed this same head: GitHub removes the request after a review.
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

/// Key of the trigger that requested the last review.
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
        // Most pull requests have no active review of ours. The check comes first, because it reads nothing outside.
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
        // The key allows one withdrawal per request, whatever its channel.
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
