//! Our review of a pull request is asked for.

use std::collections::BTreeSet;

use domain::{
    About, Background, ChangedFile, Job, JobRequest, Reason, RepositoryName, ReviewedChange, Rules, SinceReview, TicketKey,
    TicketText, TriggerKey,
};
use github::{PullRequest, Review};

use super::{Follows, Kind, Verdict, closed::is_closed};
use crate::{
    facts::{Facts, Need, Person},
    outside::account,
    payload::{Hook, Unreadable, github as wire},
    pin, since, skip,
};

/// Of one file, and of all; about what a model can read at once.
const PATCH_CHARS: usize = 40_000;
const PATCHES_CHARS: usize = 120_000;

/// Somebody may have asked for our review. Who, and of which commit, the pull request says, for webhooks and polls alike.
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
    let asks = matches!(payload.action.as_str(), "review_requested" | "synchronize" | "opened" | "reopened");
    Ok(asks.then(|| ReviewRequested {
        number: payload.pull_request.number,
        repository: hook.repository(payload.repository),
    }))
}

impl ReviewRequested {
    /// A pull request that a poll found.
    pub(crate) const fn from_poll(repository: RepositoryName, number: u64) -> Self {
        Self { repository, number }
    }

    fn ticket(&self) -> TicketKey {
        TicketKey::GitHub {
            repository: self.repository.clone(),
            number: self.number,
        }
    }

    /// The review of the pull request as it is now.
    /// What came after our last review; absent: there was none, it is of this very head, or a push took its commit away.
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

    pub(super) fn job(
        &self,
        now: &PullRequest,
        files: &[ChangedFile],
        since: Option<SinceReview>,
        rules: &Rules,
    ) -> JobRequest {
        let text = TicketText {
            summary: now.title.clone(),
            description: now.body.clone(),
            url: now.url.clone(),
            ..TicketText::default()
        };
        let change = ReviewedChange {
            pull_request: now.to_ref(&self.repository),
            head: now.head.clone(),
            is_here: now.head_repository.eq_ignore_ascii_case(&self.repository.path()),
            base_branch: now.base_branch.clone(),
            author: pin::cut(&pin::sanitise(&now.author), 100),
            files: bounded(files),
            since: since.map(|since| SinceReview {
                files: bounded(&since.files),
                ..since
            }),
        };
        JobRequest {
            job: Job::Review,
            repository: self.repository.clone(),
            text: pin::pin(text, &[], domain::Timestamp::default(), &BTreeSet::new()),
            rules: rules.clone(),
            background: Background::default(),
            about: About::Change(Box::new(change)),
        }
    }
}

/// Whether it waits for the review of this account.
pub(crate) fn waits_for(reviewer: &str, pull_request: &PullRequest) -> bool {
    let mut asked = pull_request.requested_reviewers.iter();
    !reviewer.is_empty() && asked.any(|login| login.eq_ignore_ascii_case(reviewer))
}

/// The files with their patches, as far as there is room; the others with none.
fn bounded(files: &[ChangedFile]) -> Vec<ChangedFile> {
    let mut room = PATCHES_CHARS;
    let bounded = |file: &ChangedFile| {
        let chars = file.patch.chars().count();
        let fits = chars <= PATCH_CHARS.min(room);
        room -= if fits { chars } else { 0 };
        ChangedFile {
            path: file.path.clone(),
            patch: if fits { file.patch.clone() } else { String::new() },
        }
    };
    files.iter().map(bounded).collect()
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
        if facts.record(&self.repository, &self.number)?.is_some() {
            return Ok(Verdict::nothing("our own pull request: people review it"));
        }
        let requests = facts.review_requests(&self.repository, &self.number)?;
        let asked = requests.iter().rfind(|asked| asked.reviewer.eq_ignore_ascii_case(reviewer));
        let Some(asked) = asked else {
            return Ok(Verdict::Early("who asked for the review is not told yet".to_owned()));
        };
        let ticket = self.ticket();
        let by = asked.by.clone().map(account).unwrap_or_default();
        // A new head is reviewed once more, as long as the review is waited for.
        let key = TriggerKey::new(format!("review:{}:{}", asked.id, now.head.as_str()));
        if let Some(sequence) = facts.known(&ticket, &key)? {
            return Ok(Verdict::Known(*sequence));
        }
        let person = Person::on(&ticket, &by);
        if facts.is_ours(&person) || !*facts.authority(&person)? {
            tracing::info!(%ticket, "no review: who asks for it may not");
            return Ok(Verdict::nothing("who asks for the review may not"));
        }
        let files = facts.files(&self.repository, &self.number)?;
        let since = self.since(now, files, facts)?;
        let job = self.job(now, files, since, rules);
        if skip::skip(&job.text, &[], rules, &[]).is_some() {
            return Ok(Verdict::nothing("a skip rule forbids work on the pull request"));
        }
        Ok(Verdict::from(Follows {
            ticket,
            key,
            at: asked.at,
            actor: Some(by.display_name),
            reason: Reason::JobRequested(Box::new(job)),
        }))
    }
}
