//! Request for our review of a pull request.

use std::collections::BTreeSet;

use domain::{
    About, Background, ChangedFile, Job, JobRequest, LinkedTicket, Reason, RepositoryName, ReviewedChange, Rules, SinceReview, TicketKey,
    TicketText, TriggerKey,
};
use github::{PullRequest, Review};

use super::{Follows, Kind, Verdict, closed::is_closed};
use crate::{
    facts::{Facts, Need, Person},
    named,
    outside::account,
    patches::{Room, bounded},
    payload::{Hook, Unreadable, github as wire},
    pin, since, skip,
};

/// Prefix of the keys of reviews that a user requested on the pull request.
pub(super) const REQUESTED: &str = "review:";

// Limits for the tickets that a pull request names: they are background of the review.
const TICKETS: usize = 3;
const TICKET_CHARS: usize = 12_000;

/// Possible request for our review. The pull request contains the requester and the commit, for webhooks and polls alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReviewRequested {
    repository: RepositoryName,
    number: u64,
}

pub(super) fn from_webhook(hook: &Hook<'_>) -> Result<Option<ReviewRequested>, Unreadable> {
    let Hook::GitHub { event: "pull_request", .. } = hook else {
        return Ok(None);
    };
    let payload: wire::PullRequestPayload = hook.read()?;
    // `synchronize` reports a new head, which is reviewed again while the review request is open.
    let asks = matches!(payload.action.as_str(), "review_requested" | "synchronize" | "opened" | "reopened" | "ready_for_review");
    Ok(asks.then(|| ReviewRequested {
        number: payload.pull_request.number,
        repository: hook.repository(payload.repository),
    }))
}

impl ReviewRequested {
    /// Pull request from a poll.
    pub(crate) const fn from_poll(repository: RepositoryName, number: u64) -> Self {
        Self { repository, number }
    }

    fn ticket(&self) -> TicketKey {
        TicketKey::GitHub {
            repository: self.repository.clone(),
            number: self.number,
        }
    }

    /// Changes since our last review; `None` without an earlier review, for a review of this same head, and when a force
    /// push removed its commit.
    pub(super) fn since(
        &self,
        now: &PullRequest,
        files: &[ChangedFile],
        facts: &Facts,
    ) -> Result<Option<SinceReview>, Need> {
        let is_ours = |review: &&Review| {
            facts.is_ours(&Person::GitHub {
                repository: self.repository.clone(),
                login: review.author.clone(),
                id: review.author_id,
                is_bot: review.by_bot,
            })
        };
        let reviews = facts.reviews(&self.repository, &self.number)?;
        let mut ours = reviews.iter().filter(is_ours).filter_map(|review| review.commit.as_ref());
        let Some(last) = ours.next_back().filter(|last| **last != now.head) else {
            return Ok(None);
        };
        if !facts.commits(&self.repository, &self.number)?.contains(last) {
            return Ok(None);
        }
        Ok(since::since(last, facts.history(&self.ticket())?, files))
    }

    /// Tickets that the pull request names. They describe its purpose, as information.
    pub(super) fn named(&self, now: &PullRequest, rules: &Rules, facts: &Facts) -> Result<Background, Need> {
        let keys = named::on_jira(&[&now.title, &now.branch], rules).into_iter();
        let keys = keys.chain(named::closed_by(&now.title, &self.repository));
        let keys = keys.chain(named::closed_by(&now.body, &self.repository));
        let mut background = Background::default();
        for key in keys.take(TICKETS) {
            let Some(issue) = facts.named(&key)? else {
                continue;
            };
            let line = |text: &str, most| pin::cut(&pin::sanitise(text).replace('\n', " "), most);
            let ticket = LinkedTicket {
                key: key.short(),
                relation: "named by the pull request".to_owned(),
                summary: line(&issue.summary, 300),
                status: line(&issue.status, 100),
                description: pin::cut(&pin::sanitise(&issue.description), TICKET_CHARS),
            };
            if !background.linked.contains(&ticket) {
                background.linked.push(ticket);
            }
        }
        Ok(background)
    }

    /// Review job for the current state of the pull request.
    pub(super) fn job(
        &self,
        now: &PullRequest,
        files: &[ChangedFile],
        since: Option<SinceReview>,
        rules: &Rules,
        background: Background,
    ) -> JobRequest {
        let text = TicketText {
            summary: now.title.clone(),
            description: now.body.clone(),
            url: now.url.clone(),
            labels: now.labels.clone(),
            ..TicketText::default()
        };
        let change = ReviewedChange {
            pull_request: now.to_ref(&self.repository),
            head: now.head.clone(),
            is_here: now.head_repository.eq_ignore_ascii_case(&self.repository.path()),
            base_branch: now.base_branch.clone(),
            author: pin::cut(&pin::sanitise(&now.author), 100),
            files: bounded(files, Room::WHOLE),
            since: since.map(|since| SinceReview {
                files: bounded(&since.files, Room::WHOLE),
                ..since
            }),
        };
        JobRequest {
            job: Job::Review,
            repository: self.repository.clone(),
            text: pin::pin(text, &[], domain::Timestamp::default(), &BTreeSet::new()),
            rules: rules.clone(),
            background,
            about: About::Change(Box::new(change)),
        }
    }
}

/// True when the pull request waits for the review of this account.
pub(crate) fn waits_for(reviewer: &str, pull_request: &PullRequest) -> bool {
    let mut asked = pull_request.requested_reviewers.iter();
    !reviewer.is_empty() && asked.any(|login| login.eq_ignore_ascii_case(reviewer))
}

/// Reason against a review of our own pull request.
fn ours_is_left(now: &PullRequest, rules: &Rules) -> Option<&'static str> {
    if !rules.pull_request.self_review {
        Some("our own pull request: people review it")
    } else if now.draft {
        Some("our own pull request is a draft")
    } else {
        skip::of_ours(now, rules).map(|_| skip::FORBIDDEN)
    }
}

impl Kind for ReviewRequested {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        let rules = facts.book.for_repository(&self.repository);
        let Some(rules) = rules.filter(|rules| !rules.pull_request.reviewer.is_empty()) else {
            return Ok(Verdict::nothing("no rules that name a reviewer"));
        };
        let reviewer = &rules.pull_request.reviewer;
        let now = facts.pull_request(&self.repository, &self.number)?;
        if is_closed(now) || !waits_for(reviewer, now) {
            return Ok(Verdict::nothing("the pull request does not wait for our review"));
        }
        let is_ours = facts.record(&self.repository, &self.number)?.is_some();
        if let Some(why) = ours_is_left(now, rules).filter(|_| is_ours) {
            return Ok(Verdict::nothing(why));
        }
        let requests = facts.review_requests(&self.repository, &self.number)?;
        let asked = requests.iter().rfind(|asked| asked.reviewer.eq_ignore_ascii_case(reviewer));
        // GitHub's timeline may lag behind its webhook.
        let Some(asked) = asked else {
            return Ok(Verdict::Early("who asked for the review is not told yet".to_owned()));
        };
        let ticket = self.ticket();
        let by = asked.by.clone().map(account).unwrap_or_default();
        // A new head is reviewed again while the review request is open.
        let key = match is_ours {
            true => format!("review:own:{}", now.head.as_str()),
            false => format!("{REQUESTED}{}:{}", asked.id, now.head.as_str()),
        };
        let key = TriggerKey::new(key);
        if let Some(sequence) = facts.known(&ticket, &key)? {
            return Ok(Verdict::Known(*sequence));
        }
        let person = Person::on(&ticket, &by);
        // Journeyman itself requests the review of its pull request.
        let by_us = facts.is_ours(&person) || (is_ours && by.display_name.eq_ignore_ascii_case(&now.author));
        let may = match by_us {
            true => is_ours,
            false => !facts.is_program(&person) && *facts.authority(&person)?,
        };
        if !may {
            tracing::info!(%ticket, "no review: who asks for it may not");
            return Ok(Verdict::nothing("who asks for the review may not"));
        }
        if !is_ours && skip::of_pull_request(now, rules).is_some() {
            return Ok(Verdict::nothing(skip::FORBIDDEN));
        }
        let files = facts.files(&self.repository, &self.number)?;
        let since = self.since(now, files, facts)?;
        let background = self.named(now, rules, facts)?;
        let job = self.job(now, files, since, rules, background);
        Ok(Verdict::from(Follows {
            ticket,
            key,
            at: asked.at,
            actor: Some(by.display_name),
            reason: Reason::JobRequested(Box::new(job)),
        }))
    }
}
