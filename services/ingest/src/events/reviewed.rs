//! Review of our pull request by a user or a program.

use domain::{
    Job, JobRequest, JobSubject, LeftThreads, PullRequestRecord, PullRequestRef, RepositoryName,
    RepositoryRules, ReviewRound, ReviewThread, ThreadRemark, TicketBackground, TicketText, Trigger,
    TriggerKey, TriggerReason,
};
use github::{PullRequest, PullRequestReview, ReviewLineComment, ReviewVerdict};

use super::{EventKind, EventVerdict, NewTrigger, closed::is_closed};
use crate::{
    facts::{
        DecisionFacts, EventActor, Need, PROGRAM,
        patches::{PatchLimits, limit_patches},
    },
    policy::{deciders::list_deciders, repair, skip},
    text::text_pin,
    webhook::payload::{UnreadablePayload, WebhookPayload, github as wire},
};

const THREADS: usize = 50;
const TEXT_CHARS: usize = 8_000;
// Limits for the earlier remarks of a thread.
const EARLIER: usize = 20;
const EARLIER_CHARS: usize = 2_000;
const HUNK_CHARS: usize = 3_000;

/// Submitted review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReviewEvent {
    repository: RepositoryName,
    number: u64,
    /// Id of the review.
    id: u64,
    author: String,
    author_id: Option<u64>,
    by_bot: bool,
}

pub(super) fn from_webhook(hook: &WebhookPayload<'_>) -> Result<Option<ReviewEvent>, UnreadablePayload> {
    let Some(wire::ReviewPayload {
        action,
        review,
        pull_request,
        repository,
    }) = hook.read_event("pull_request_review")?
    else {
        return Ok(None);
    };
    let author = wire::GithubHookUser::or_ghost(review.user);
    Ok((action == "submitted").then(|| ReviewEvent {
        repository: hook.repository(repository),
        number: pull_request.number,
        id: review.id,
        by_bot: author.r#type == "Bot",
        author: author.login,
        author_id: author.id,
    }))
}

impl ReviewEvent {
    /// Review of our pull request from a poll.
    pub(crate) fn from_poll(record: &PullRequestRecord, review: &PullRequestReview) -> Self {
        Self {
            repository: record.pull_request.repository.clone(),
            number: record.pull_request.number,
            id: review.id,
            author: review.author.clone(),
            author_id: review.author_id,
            by_bot: review.by_bot,
        }
    }

    pub(crate) fn key(&self) -> TriggerKey {
        TriggerKey::new(format!("review:{}", self.id))
    }

    /// Author of the review.
    pub(super) fn person(&self) -> EventActor {
        EventActor::GitHub {
            repository: self.repository.clone(),
            login: self.author.clone(),
            id: self.author_id,
            is_bot: self.by_bot,
        }
    }

    /// Request of the review; `None` when it requests nothing. `all` contains all reviews of the pull request.
    pub(super) fn wish(
        &self,
        review: &PullRequestReview,
        all: &[PullRequestReview],
        record: &PullRequestRecord,
        now: &PullRequest,
    ) -> Option<ReviewRound> {
        let round = self.round(review, all, record, now);
        let says_something = !round.body.trim().is_empty() || !round.threads.is_empty();
        let is_wish = match review.state {
            ReviewVerdict::ChangesRequested | ReviewVerdict::Commented => says_something,
            // A remark in the body of an approval is not a reason to change the approved code.
            ReviewVerdict::Approved => !round.threads.is_empty(),
            ReviewVerdict::Dismissed => false,
        };
        is_wish.then_some(round)
    }

    fn round(
        &self,
        review: &PullRequestReview,
        all: &[PullRequestReview],
        record: &PullRequestRecord,
        now: &PullRequest,
    ) -> ReviewRound {
        let text = |text: &str| text_pin::truncate_text(&text_pin::pin_words(text), TEXT_CHARS);
        // A reply belongs to the thread of the comment that it replies to. GitHub accepts replies only to the first
        // comment of a thread.
        let mut threads: Vec<ReviewThread> = Vec::new();
        for comment in &review.comments {
            let id = comment.in_reply_to.unwrap_or(comment.id);
            match threads.iter_mut().find(|thread| thread.id == id) {
                Some(thread) => thread.text = format!("{}\n\n{}", thread.text, text(&comment.body)),
                None => threads.push(ReviewThread {
                    id,
                    path: text_pin::clean_text(&comment.path, 300),
                    line: comment.line,
                    text: text(&comment.body),
                    earlier: list_earlier_remarks(id, review, all, &now.author),
                    hunk: truncate_hunk(&comment.hunk),
                }),
            }
        }
        threads.truncate(THREADS);
        ReviewRound {
            pull_request: record.pull_request.clone(),
            head: now.head.clone(),
            id: self.id,
            author: text_pin::clean_text(&self.author, 100),
            asks_for_changes: review.state == ReviewVerdict::ChangesRequested,
            body: text(&review.body),
            threads,
            left: None,
            deciders: Vec::new(),
            by_program: false,
            files: Vec::new(),
        }
    }

    /// Reason against following the review. Followed are people with authority, programs that the rules name, and
    /// ourselves where the rules enable it.
    fn may(&self, by: ReviewAuthor, facts: &DecisionFacts) -> Result<Option<&'static str>, Need> {
        let person = self.person();
        if by != ReviewAuthor::Person {
            return Ok(None);
        }
        if facts.is_program(&person) {
            return Ok(Some(PROGRAM));
        }
        if !*facts.authority(&person)? {
            tracing::info!(repository = %self.repository, "review not followed: its author is not allowed to write");
            return Ok(Some("the reviewer is not allowed to give orders"));
        }
        Ok(None)
    }
}

/// Author of a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReviewAuthor {
    Person,
    /// Program that the rules name.
    Agent,
    /// Journeyman itself.
    Ourselves,
}

/// True when our review contains more than replies. GitHub reports each reply as a review too.
fn is_self_review(review: &PullRequestReview, now: &PullRequest) -> bool {
    let begins = |comment: &ReviewLineComment| comment.in_reply_to.is_none();
    review.commit.as_ref() == Some(&now.head) && review.comments.iter().any(begins)
}

/// Reason against working on another review of a program. Programs never tire, so all reviews of a program on the pull
/// request count, and ours once per head.
fn find_round_limit(
    round: &ReviewRound,
    by: ReviewAuthor,
    history: &[Trigger],
    rules: &RepositoryRules,
) -> Option<&'static str> {
    let rounds = list_rounds(history);
    let of_program = |earlier: &&ReviewRound| {
        earlier.by_program
            && earlier.pull_request == round.pull_request
            && earlier.author.eq_ignore_ascii_case(&round.author)
    };
    let earlier: Vec<&ReviewRound> = rounds.filter(of_program).collect();
    if earlier.len() >= rules.review.max_rounds as usize {
        return Some("the program's reviews were worked on as often as the rules allow");
    }
    let is_same = |earlier: &&ReviewRound| earlier.head == round.head;
    (by == ReviewAuthor::Ourselves && earlier.iter().any(is_same))
        .then_some("a review of ours of this head was worked on")
}

/// Remarks of earlier reviews in a thread. GitHub stores a reply as a review too.
fn list_earlier_remarks(
    thread: u64,
    review: &PullRequestReview,
    all: &[PullRequestReview],
    us: &str,
) -> Vec<ThreadRemark> {
    let of_it = |comment: &&ReviewLineComment| comment.id == thread || comment.in_reply_to == Some(thread);
    let before = all.iter().take_while(|known| known.id != review.id);
    let comments = before.flat_map(|known| &known.comments).filter(of_it);
    let remark = |comment: &ReviewLineComment| ThreadRemark {
        author: text_pin::clean_text(&comment.author, 100),
        is_ours: comment.author.eq_ignore_ascii_case(us),
        is_stranger: false,
        text: text_pin::truncate_text(&text_pin::pin_words(&comment.body), EARLIER_CHARS),
    };
    let said: Vec<ThreadRemark> = comments.map(remark).collect();
    // The first remark is kept, because it contains the subject of the thread.
    let Some((first, rest)) = said.split_first() else {
        return Vec::new();
    };
    let last = &rest[rest.len().saturating_sub(EARLIER - 1)..];
    std::iter::once(first).chain(last).cloned().collect()
}

/// Marks earlier remarks of accounts without authority.
fn mark_strangers(
    round: &mut ReviewRound,
    reviews: &[PullRequestReview],
    repository: &RepositoryName,
    facts: &DecisionFacts,
) -> Result<(), Need> {
    let rules = facts.book.for_repository(repository);
    let comments = || reviews.iter().flat_map(|review| &review.comments);
    for remark in round.threads.iter_mut().flat_map(|thread| &mut thread.earlier) {
        if remark.is_ours || rules.is_some_and(|rules| rules.review.is_agent(&remark.author)) {
            continue;
        }
        let said = comments().find(|comment| text_pin::clean_text(&comment.author, 100) == remark.author);
        remark.is_stranger = match said {
            Some(said) if !said.by_bot => {
                let person = EventActor::GitHub {
                    repository: repository.clone(),
                    login: said.author.clone(),
                    id: said.author_id,
                    is_bot: false,
                };
                !*facts.authority(&person)?
            }
            Some(_) | None => true,
        };
    }
    Ok(())
}

/// Last lines of a hunk within the limit. The comment is on the last line.
fn truncate_hunk(whole: &str) -> String {
    let clean = domain::text::remove_hidden(whole);
    let mut room = HUNK_CHARS;
    let fits = |line: &&str| {
        let length = line.chars().count() + 1;
        let has_room = length <= room;
        room = room.saturating_sub(length);
        has_room
    };
    let mut lines: Vec<&str> = clean.lines().rev().take_while(fits).collect();
    lines.reverse();
    lines.join("\n")
}

/// Reviews that jobs of the ticket were asked to address, oldest first.
fn list_rounds(history: &[Trigger]) -> impl Iterator<Item = &ReviewRound> {
    let requests = history.iter().filter_map(|trigger| trigger.reason.job_request());
    requests.filter_map(|request| request.about.round())
}

/// Leaves threads to people after the allowed number of rounds, with one notice per thread. `None` when nothing else is
/// requested.
fn leave_worn_threads(
    mut round: ReviewRound,
    history: &[Trigger],
    rules: &RepositoryRules,
) -> Option<ReviewRound> {
    let earlier = || {
        let rounds = list_rounds(history);
        rounds.filter(|earlier| earlier.pull_request == round.pull_request && earlier.id != round.id)
    };
    let most = rules.review.max_rounds;
    let is_worn = |thread: &ReviewThread| {
        let has_it = |earlier: &&ReviewRound| earlier.threads.iter().any(|known| known.id == thread.id);
        earlier().filter(has_it).count() >= most as usize
    };
    let is_notified =
        |id: &u64| earlier().any(|earlier| earlier.left.iter().any(|left| left.threads.contains(id)));
    let worn: Vec<u64> = round
        .threads
        .iter()
        .filter(|thread| is_worn(thread))
        .map(|thread| thread.id)
        .collect();
    let unnotified: Vec<u64> = worn.iter().filter(|id| !is_notified(id)).copied().collect();
    round.threads.retain(|thread| !worn.contains(&thread.id));
    if !unnotified.is_empty() {
        let named = &rules.pull_request.reviewers;
        let asked = if named.is_empty() {
            vec![round.author.clone()]
        } else {
            named.clone()
        };
        round.left = Some(LeftThreads {
            threads: unnotified,
            rounds: most,
            asked,
        });
    }
    let asks = round.left.is_some() || !round.threads.is_empty() || !round.body.trim().is_empty();
    asks.then_some(round)
}

/// Changed files of our pull request, as context for work on it.
pub(super) fn list_own_changes(
    record: &PullRequestRecord,
    facts: &DecisionFacts,
) -> Result<Vec<domain::PullRequestFile>, Need> {
    let PullRequestRef {
        repository, number, ..
    } = &record.pull_request;
    Ok(limit_patches(
        facts.files(repository, number)?,
        PatchLimits::BESIDE,
    ))
}

impl ReviewEvent {
    fn request(&self, text: TicketText, rules: RepositoryRules, round: ReviewRound) -> JobRequest {
        JobRequest {
            job: Job::AddressReview,
            repository: self.repository.clone(),
            text,
            rules,
            background: TicketBackground::default(),
            about: JobSubject::Review(Box::new(round)),
        }
    }
}

impl EventKind for ReviewEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let rules = facts.book.for_repository(&self.repository);
        let reviews_itself = rules.is_some_and(|rules| rules.pull_request.self_review);
        let is_ours = facts.is_ours(&self.person());
        if is_ours && !reviews_itself {
            return Ok(EventVerdict::nothing("our own account said it"));
        }
        let Some(record) = facts.record(&self.repository, &self.number)? else {
            return Ok(EventVerdict::nothing("not a pull request of ours"));
        };
        if let Some(sequence) = facts.known(&record.ticket, &self.key())? {
            return Ok(EventVerdict::Known(*sequence));
        }
        let Some(rules) = rules else {
            return Ok(EventVerdict::Unruled(record.ticket.clone()));
        };
        let by = if is_ours {
            ReviewAuthor::Ourselves
        } else if rules.review.is_agent(&self.author) {
            ReviewAuthor::Agent
        } else {
            ReviewAuthor::Person
        };
        if let Some(why) = self.may(by, facts)? {
            return Ok(EventVerdict::nothing(why));
        }
        // The webhook names only the review. Its text is read here, so that an edited or deleted review
        // counts as it is now.
        let reviews = facts.reviews(&self.repository, &self.number)?;
        let Some(review) = reviews.iter().find(|review| review.id == self.id) else {
            return Ok(EventVerdict::nothing("the review is gone"));
        };
        let now = facts.pull_request(&self.repository, &self.number)?;
        if is_closed(now) {
            return Ok(EventVerdict::nothing("the pull request is over"));
        }
        if skip::find_own_skip(now, rules).is_some() {
            return Ok(EventVerdict::nothing(skip::FORBIDDEN));
        }
        // A reply of ours is a review too, and the settings may not contain our account.
        let is_own = by == ReviewAuthor::Ourselves || now.author.eq_ignore_ascii_case(&self.author);
        if is_own && !(reviews_itself && is_self_review(review, now)) {
            return Ok(EventVerdict::nothing("the author of the pull request said it"));
        }
        let by = if is_own { ReviewAuthor::Ourselves } else { by };
        let Some(mut round) = self.wish(review, reviews, record, now) else {
            return Ok(EventVerdict::nothing("the review asks for nothing"));
        };
        let history = facts.history(&record.ticket)?;
        round.by_program = by != ReviewAuthor::Person;
        if round.by_program
            && let Some(why) = find_round_limit(&round, by, history, rules)
        {
            tracing::info!(ticket = %record.ticket, why, "review not followed");
            return Ok(EventVerdict::nothing(why));
        }
        let Some(mut round) = leave_worn_threads(round, history, rules) else {
            return Ok(EventVerdict::nothing("its threads were left to people before"));
        };
        mark_strangers(&mut round, reviews, &self.repository, facts)?;
        let Some(asked) = repair::find_last_request(history) else {
            return Ok(EventVerdict::nothing(
                "what the ticket asked for is not kept any more",
            ));
        };
        let files = match round.only_left() {
            Some(_) => Vec::new(),
            None => list_own_changes(record, facts)?,
        };
        let round = ReviewRound {
            deciders: list_deciders(&record.ticket, rules, history),
            files,
            ..round
        };
        let request = self.request(asked.text.clone(), rules.clone(), round);
        Ok(EventVerdict::from(NewTrigger {
            ticket: record.ticket.clone(),
            key: self.key(),
            at: review.at.unwrap_or(facts.now),
            actor: Some(self.author.clone()),
            reason: TriggerReason::JobRequested(Box::new(request)),
        }))
    }
}
