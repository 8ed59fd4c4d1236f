//! Somebody reviewed a pull request of ours.

use domain::{
    About, Background, Job, JobRequest, LeftThreads, PullRequestRecord, Reason, RepositoryName, ReviewRound,
    ReviewThread, Rules, Trigger, TriggerKey,
};
use github::{Review, ReviewState};

use super::{Follows, Kind, Verdict, closed::is_closed};
use crate::{
    facts::{Facts, Need, Person},
    payload::{Hook, Unreadable, github as wire},
    pin, repair,
};

const THREADS: usize = 50;
const TEXT_CHARS: usize = 8_000;

/// A review was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reviewed {
    repository: RepositoryName,
    number: u64,
    /// The review's id.
    id: u64,
    author: String,
    author_id: Option<u64>,
}

pub(super) fn from_webhook(hook: &Hook<'_>) -> Result<Option<Reviewed>, Unreadable> {
    let Hook::GitHub { event: "pull_request_review", .. } = hook else {
        return Ok(None);
    };
    let wire::ReviewPayload { action, review, pull_request, repository } = hook.read()?;
    let author = wire::User::or_ghost(review.user);
    Ok((action == "submitted").then(|| Reviewed {
        repository: hook.repository(repository),
        number: pull_request.number,
        id: review.id,
        author: author.login,
        author_id: author.id,
    }))
}

impl Reviewed {
    /// A review of a pull request of ours that a poll found.
    pub(crate) fn from_poll(record: &PullRequestRecord, review: &Review) -> Self {
        Self {
            repository: record.pull_request.repository.clone(),
            number: record.pull_request.number,
            id: review.id,
            author: review.author.clone(),
            author_id: review.author_id,
        }
    }

    pub(crate) fn key(&self) -> TriggerKey {
        TriggerKey::new(format!("review:{}", self.id))
    }

    /// Who reviewed.
    pub(super) fn person(&self) -> Person {
        Person::GitHub {
            repository: self.repository.clone(),
            login: self.author.clone(),
            id: self.author_id,
        }
    }

    /// What the review asks for; absent: nothing.
    pub(super) fn wish(
        &self,
        review: &Review,
        record: &PullRequestRecord,
        head: &domain::CommitId,
    ) -> Option<ReviewRound> {
        let round = self.round(review, record, head.clone());
        let says_something = !round.body.trim().is_empty() || !round.threads.is_empty();
        let is_wish = match review.state {
            ReviewState::ChangesRequested | ReviewState::Commented => says_something,
            // A word beside an approval is no reason to change what is approved.
            ReviewState::Approved => !round.threads.is_empty(),
            ReviewState::Dismissed => false,
        };
        is_wish.then_some(round)
    }

    fn round(&self, review: &Review, record: &PullRequestRecord, head: domain::CommitId) -> ReviewRound {
        let text = |text: &str| pin::cut(&pin::words(text), TEXT_CHARS);
        // A reply belongs to the thread of the comment that it replies to, and GitHub takes replies there alone.
        let mut threads: Vec<ReviewThread> = Vec::new();
        for comment in &review.comments {
            let id = comment.in_reply_to.unwrap_or(comment.id);
            match threads.iter_mut().find(|thread| thread.id == id) {
                Some(thread) => thread.text = format!("{}\n\n{}", thread.text, text(&comment.body)),
                None => threads.push(ReviewThread {
                    id,
                    path: pin::cut(&pin::sanitise(&comment.path), 300),
                    line: comment.line,
                    text: text(&comment.body),
                }),
            }
        }
        threads.truncate(THREADS);
        ReviewRound {
            pull_request: record.pull_request.clone(),
            head,
            id: self.id,
            author: pin::cut(&pin::sanitise(&self.author), 100),
            asks_for_changes: review.state == ReviewState::ChangesRequested,
            body: text(&review.body),
            threads,
            left: None,
        }
    }
}

/// Threads that come back after they were worked on as often as the rules allow are left to people, and that is said once.
/// `None` when nothing else is asked for.
fn without_worn(mut round: ReviewRound, history: &[Trigger], rules: &Rules) -> Option<ReviewRound> {
    let earlier = || {
        let rounds = history.iter().filter_map(|trigger| match &trigger.reason {
            Reason::JobRequested(request) => request.about.round(),
            _ => None,
        });
        rounds.filter(|earlier| earlier.pull_request == round.pull_request && earlier.id != round.id)
    };
    let most = rules.review.max_rounds;
    let is_worn = |thread: &ReviewThread| {
        let has_it = |earlier: &&ReviewRound| earlier.threads.iter().any(|known| known.id == thread.id);
        earlier().filter(has_it).count() >= most as usize
    };
    let is_told = |id: &u64| earlier().any(|earlier| earlier.left.iter().any(|left| left.threads.contains(id)));
    let worn: Vec<u64> = round.threads.iter().filter(|thread| is_worn(thread)).map(|thread| thread.id).collect();
    let told: Vec<u64> = worn.iter().filter(|id| !is_told(id)).copied().collect();
    round.threads.retain(|thread| !worn.contains(&thread.id));
    if !told.is_empty() {
        let named = &rules.pull_request.reviewers;
        let asked = if named.is_empty() { vec![round.author.clone()] } else { named.clone() };
        round.left = Some(LeftThreads {
            threads: told,
            rounds: most,
            asked,
        });
    }
    let asks = round.left.is_some() || !round.threads.is_empty() || !round.body.trim().is_empty();
    asks.then_some(round)
}

impl Kind for Reviewed {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        let person = self.person();
        if facts.is_ours(&person) {
            return Ok(Verdict::nothing("our own account said it"));
        }
        let Some(record) = facts.record(&self.repository, &self.number)? else {
            return Ok(Verdict::nothing("not a pull request of ours"));
        };
        if let Some(sequence) = facts.known(&record.ticket, &self.key())? {
            return Ok(Verdict::Known(*sequence));
        }
        let Some(rules) = facts.book.for_repository(&self.repository) else {
            return Ok(Verdict::Unruled(record.ticket.clone()));
        };
        if !*facts.authority(&person)? {
            tracing::info!(repository = %self.repository, "review not followed: its author may not write");
            return Ok(Verdict::nothing("the reviewer may not give orders"));
        }
        let reviews = facts.reviews(&self.repository, &self.number)?;
        let Some(review) = reviews.iter().find(|review| review.id == self.id) else {
            return Ok(Verdict::nothing("the review is gone"));
        };
        let now = facts.pull_request(&self.repository, &self.number)?;
        if is_closed(now) {
            return Ok(Verdict::nothing("the pull request is over"));
        }
        // A reply of ours is a review as well, and the settings may not name our account.
        if now.author.eq_ignore_ascii_case(&self.author) {
            return Ok(Verdict::nothing("the author of the pull request said it"));
        }
        let Some(round) = self.wish(review, record, &now.head) else {
            return Ok(Verdict::nothing("the review asks for nothing"));
        };
        let history = facts.history(&record.ticket)?;
        let Some(round) = without_worn(round, history, rules) else {
            return Ok(Verdict::nothing("its threads were left to people before"));
        };
        let Some(asked) = repair::asked_for(history) else {
            return Ok(Verdict::nothing("what the ticket asked for is not kept any more"));
        };
        let request = JobRequest {
            job: Job::AddressReview,
            repository: self.repository.clone(),
            text: asked.text.clone(),
            rules: rules.clone(),
            background: Background::default(),
            about: About::Review(Box::new(round)),
        };
        Ok(Verdict::from(Follows {
            ticket: record.ticket.clone(),
            key: self.key(),
            at: review.at.unwrap_or(facts.now),
            actor: Some(self.author.clone()),
            reason: Reason::JobRequested(Box::new(request)),
        }))
    }
}
