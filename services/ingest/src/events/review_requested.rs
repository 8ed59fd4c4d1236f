//! Request for our review of a pull request.

use std::collections::BTreeSet;

use domain::{
    Job, JobRequest, JobSubject, LinkedTicket, PullRequestFile, RepositoryName, RepositoryRules,
    ReviewedChange, SinceReview, TicketBackground, TicketKey, TicketText, TriggerKey, TriggerReason,
};
use github::{PullRequest, PullRequestReview};

use super::{EventKind, EventVerdict, NewTrigger, closed::is_closed};
use crate::{
    facts::{
        DecisionFacts, EventActor, Need,
        patches::{PatchLimits, find_changes_since, limit_patches},
        tracker_reader::convert_user,
    },
    policy::skip,
    text::{text_pin, ticket_mentions},
    webhook::payload::{UnreadablePayload, WebhookPayload, github as wire},
};

/// Prefix of the keys of reviews that a user requested on the pull request.
pub(super) const REQUESTED: &str = "review:";

// Limits for the tickets that a pull request names: they are background of the review.
const TICKETS: usize = 3;
const TICKET_CHARS: usize = 12_000;

/// Possible request for our review. The pull request contains the requester and the commit, for webhooks and polls alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReviewRequestEvent {
    repository: RepositoryName,
    number: u64,
}

pub(super) fn from_webhook(
    hook: &WebhookPayload<'_>,
) -> Result<Option<ReviewRequestEvent>, UnreadablePayload> {
    let Some(payload) = hook.read_event::<wire::PullRequestPayload>("pull_request")? else {
        return Ok(None);
    };
    // `synchronize` reports a new head, which is reviewed again while the review request is open.
    let asks = matches!(
        payload.action.as_str(),
        "review_requested" | "synchronize" | "opened" | "reopened" | "ready_for_review"
    );
    Ok(asks.then(|| ReviewRequestEvent {
        number: payload.pull_request.number,
        repository: hook.repository(payload.repository),
    }))
}

impl ReviewRequestEvent {
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
        files: &[PullRequestFile],
        facts: &DecisionFacts,
    ) -> Result<Option<SinceReview>, Need> {
        let is_ours = |review: &&PullRequestReview| facts.is_our_user(&review.author, review.author_id);
        let reviews = facts.reviews(&self.repository, &self.number)?;
        let mut ours = reviews
            .iter()
            .filter(is_ours)
            .filter_map(|review| review.commit.as_ref());
        let Some(last) = ours.next_back().filter(|last| **last != now.head) else {
            return Ok(None);
        };
        if !facts.commits(&self.repository, &self.number)?.contains(last) {
            return Ok(None);
        }
        Ok(find_changes_since(last, facts.history(&self.ticket())?, files))
    }

    /// Tickets that the pull request names. They describe its purpose, as information.
    pub(super) fn named(
        &self,
        now: &PullRequest,
        rules: &RepositoryRules,
        facts: &DecisionFacts,
    ) -> Result<TicketBackground, Need> {
        let keys = ticket_mentions::find_jira_ticket(&[&now.title, &now.branch], rules).into_iter();
        let keys = keys.chain(ticket_mentions::list_closed_issues(&now.title, &self.repository));
        let keys = keys.chain(ticket_mentions::list_closed_issues(&now.body, &self.repository));
        // The limit counts tickets, not how often they are named.
        let mut tickets: Vec<TicketKey> = Vec::new();
        for key in keys {
            if !tickets.contains(&key) {
                tickets.push(key);
            }
        }
        tickets.truncate(TICKETS);
        let mut background = TicketBackground::default();
        for key in tickets {
            let Some(issue) = facts.named(&key)? else {
                continue;
            };
            background.linked.push(LinkedTicket {
                key: key.short(),
                relation: "named by the pull request".to_owned(),
                summary: text_pin::clean_line(&issue.summary, 300),
                status: text_pin::clean_line(&issue.status, 100),
                description: text_pin::clean_text(&issue.description, TICKET_CHARS),
            });
        }
        Ok(background)
    }

    /// Review job for the current state of the pull request.
    pub(super) fn job(
        &self,
        now: &PullRequest,
        files: &[PullRequestFile],
        since: Option<SinceReview>,
        rules: &RepositoryRules,
        background: TicketBackground,
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
            author: text_pin::clean_text(&now.author, 100),
            files: limit_patches(files, PatchLimits::WHOLE),
            since: since.map(|since| SinceReview {
                files: limit_patches(&since.files, PatchLimits::WHOLE),
                ..since
            }),
        };
        JobRequest {
            job: Job::Review,
            repository: self.repository.clone(),
            // The time only selects comments, and a review gets none.
            text: text_pin::pin_text(text, &[], domain::Timestamp::default(), &BTreeSet::new()),
            rules: rules.clone(),
            background,
            about: JobSubject::Change(Box::new(change)),
        }
    }
}

/// True when the pull request waits for the review of this account.
pub(crate) fn is_waiting_for(reviewer: &str, pull_request: &PullRequest) -> bool {
    let mut asked = pull_request.requested_reviewers.iter();
    !reviewer.is_empty() && asked.any(|login| login.eq_ignore_ascii_case(reviewer))
}

/// Reason against a review of our own pull request.
fn find_own_refusal(now: &PullRequest, rules: &RepositoryRules) -> Option<&'static str> {
    if !rules.pull_request.self_review {
        Some("our own pull request: people review it")
    } else if now.draft {
        Some("our own pull request is a draft")
    } else {
        skip::find_own_skip(now, rules).map(|_| skip::FORBIDDEN)
    }
}

impl EventKind for ReviewRequestEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let rules = facts.book.for_repository(&self.repository);
        let Some(rules) = rules.filter(|rules| !rules.pull_request.reviewer.is_empty()) else {
            return Ok(EventVerdict::nothing("no rules that name a reviewer"));
        };
        let reviewer = &rules.pull_request.reviewer;
        let now = facts.pull_request(&self.repository, &self.number)?;
        if is_closed(now) || !is_waiting_for(reviewer, now) {
            return Ok(EventVerdict::nothing(
                "the pull request does not wait for our review",
            ));
        }
        let is_ours = facts.record(&self.repository, &self.number)?.is_some();
        if let Some(why) = find_own_refusal(now, rules).filter(|_| is_ours) {
            return Ok(EventVerdict::nothing(why));
        }
        let requests = facts.review_requests(&self.repository, &self.number)?;
        let asked = requests
            .iter()
            .rfind(|asked| asked.reviewer.eq_ignore_ascii_case(reviewer));
        // GitHub's timeline may lag behind its webhook.
        let Some(asked) = asked else {
            return Ok(EventVerdict::Early(
                "the requester of the review is not known yet".to_owned(),
            ));
        };
        let ticket = self.ticket();
        let by = asked.by.clone().map(convert_user).unwrap_or_default();
        // A new head is reviewed again while the review request is open.
        let key = if is_ours {
            format!("review:own:{}", now.head.as_str())
        } else {
            format!("{REQUESTED}{}:{}", asked.id, now.head.as_str())
        };
        let key = TriggerKey::new(key);
        if let Some(sequence) = facts.known(&ticket, &key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        let person = EventActor::of_account(&ticket, &by);
        // Journeyman itself requests the review of its pull request.
        let by_us = facts.is_ours(&person) || (is_ours && by.display_name.eq_ignore_ascii_case(&now.author));
        let may = if by_us {
            is_ours
        } else {
            !facts.is_program(&person) && *facts.authority(&person)?
        };
        if !may {
            tracing::info!(%ticket, "no review: the requester is not allowed to request it");
            return Ok(EventVerdict::nothing(
                "the requester of the review is not allowed to request it",
            ));
        }
        if !is_ours && skip::find_pull_request_skip(now, rules).is_some() {
            return Ok(EventVerdict::nothing(skip::FORBIDDEN));
        }
        let files = facts.files(&self.repository, &self.number)?;
        let since = self.since(now, files, facts)?;
        let background = self.named(now, rules, facts)?;
        let job = self.job(now, files, since, rules, background);
        Ok(EventVerdict::from(NewTrigger {
            ticket,
            key,
            at: asked.at,
            actor: Some(by.display_name),
            reason: TriggerReason::JobRequested(Box::new(job)),
        }))
    }
}
