//! Manual dispatch of a job by an authorized user. The subject is fetched from its tracker; the caller adds text at
//! most.

use std::collections::BTreeSet;

use domain::{
    ChecksConclusion, DiscussionTask, Job, JobRequest, JobSubject, PullRequestRecord, PullRequestRef,
    PullRequestStatus, ReactionSubject, RepositoryName, RepositoryRules, RequestPlace, ReviewRound,
    SkipReason, TicketBackground, TicketKey, Timestamp, TriggerKey, TriggerReason,
};
use github::PullRequest;

use super::{
    EventKind, EventVerdict, NewTrigger,
    closed::is_closed,
    discussed::{DiscussionEvent, DiscussionOrder},
    question::QuestionEvent,
    review_requested::ReviewRequestEvent,
    reviewed::{self, ReviewEvent},
    text,
    work::WorkRequestEvent,
};
use crate::{
    facts::{DecisionFacts, EventActor, Need, failed_checks::summarize_failure},
    policy::{deciders::list_deciders, repair, skip},
    text::text_pin,
};

/// Job request of an authorized user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DispatchEvent {
    /// Ticket whose log gets the job.
    pub(crate) ticket: TicketKey,
    /// Our pull request, when the caller named it instead of its ticket.
    pub(crate) ours: Option<PullRequestRecord>,
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    pub(crate) by: String,
    pub(crate) job: Job,
    /// Repository for a ticket of a shared project; for the job `implement` alone.
    pub(crate) repository: Option<RepositoryName>,
    /// Number that selects one of the ticket's pull requests.
    pub(crate) number: Option<u64>,
    /// Instructions, question or feedback of the caller.
    pub(crate) words: Option<String>,
    /// Task in a discussion; required by the job `discuss`.
    pub(crate) task: Option<DiscussionTask>,
    /// Comment on GitHub with the request; for the jobs `answer` and `discuss`.
    pub(crate) comment: Option<ReactionSubject>,
}

/// Value, or the verdict that replaces it.
type ValueOrVerdict<T> = Result<Result<T, EventVerdict>, Need>;

impl EventKind for DispatchEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        if let Some(sequence) = facts.known(&self.ticket, &self.key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        let is_for_ours = self.job.is_for(RequestPlace::OwnPullRequest);
        if let Some(record) = self.ours.as_ref().filter(|_| !is_for_ours) {
            let url = &record.pull_request.url;
            return Ok(EventVerdict::nothing(format!(
                "{url} is our own pull request, of {}",
                self.ticket
            )));
        }
        let job = match self.job {
            Job::Implement => return Ok(self.implement()),
            Job::Answer => return Ok(self.answer()),
            Job::Discuss => return Ok(self.discuss()),
            Job::Triage => self.triage(facts)?,
            Job::Review => self.review(facts)?,
            Job::FixCi => self.fix_ci(facts)?,
            Job::AddressReview => self.address_review(facts)?,
            Job::ResolveConflict
            | Job::MarkReady
            | Job::Finish
            | Job::UpdateBase
            | Job::BackToDraft
            | Job::Reopen
            | Job::Rehearse
            | Job::Remind => {
                return Ok(EventVerdict::nothing(
                    "it follows from what happens to a pull request",
                ));
            }
        };
        Ok(job.map_or_else(|verdict| verdict, |job| self.follows(job)))
    }
}

impl DispatchEvent {
    fn implement(&self) -> EventVerdict {
        let (ticket, key, by) = (self.ticket.clone(), self.key.clone(), self.by.clone());
        let work = WorkRequestEvent::ordered(ticket, key, self.repository.clone(), self.at, by);
        EventVerdict::Becomes(Box::new(work.with_words(self.words.clone())))
    }

    fn answer(&self) -> EventVerdict {
        EventVerdict::Becomes(Box::new(QuestionEvent {
            ticket: self.ticket.clone(),
            key: self.key.clone(),
            at: self.at,
            author: EventActor::Api {
                name: self.by.clone(),
            },
            text: self.words.clone().unwrap_or_default(),
            comment: self.comment.clone(),
            pull_request: self.ours.as_ref().map(|record| record.pull_request.clone()),
        }))
    }

    fn discuss(&self) -> EventVerdict {
        let Some(task) = self.task else {
            return EventVerdict::nothing("what to do in the discussion is not said");
        };
        let order = DiscussionOrder {
            key: self.key.clone(),
            at: self.at,
            by: self.by.clone(),
            comment: self.comment.clone(),
        };
        EventVerdict::Becomes(Box::new(DiscussionEvent::ordered(
            self.ticket.clone(),
            task,
            order,
        )))
    }

    /// Triage job. A manual request repeats a triage that was done before.
    fn triage(&self, facts: &DecisionFacts) -> ValueOrVerdict<JobRequest> {
        let Some(rules) = facts.rules(&self.ticket)? else {
            return Ok(Err(EventVerdict::Unruled(self.ticket.clone())));
        };
        if rules.triage.is_off() {
            return Ok(refuse_job(
                "the rules name nothing that a triage may set (triage.labels and the others)",
            ));
        }
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(Err(EventVerdict::Never(detail.clone()))),
        };
        if issue.is_over {
            return Ok(refuse_job("the ticket is closed"));
        }
        let raw = skip::build_ticket_text(issue);
        if let Some(reason) = skip::find_skip_reason(&raw, &[], rules, &[]) {
            return Ok(Err(self.skipped(reason)));
        }
        let text = text_pin::pin_text(raw, &[], self.at, &BTreeSet::new());
        Ok(text::build_triage_request(text, rules)
            .map_err(|problem| EventVerdict::Never(problem.to_string())))
    }

    fn review(&self, facts: &DecisionFacts) -> ValueOrVerdict<JobRequest> {
        let TicketKey::GitHub { repository, number } = &self.ticket else {
            return Ok(refuse_job("a pull request is reviewed: github:OWNER/NAME#NUMBER"));
        };
        let rules = facts.book.for_repository(repository);
        let Some(rules) = rules.filter(|rules| !rules.pull_request.reviewer.is_empty()) else {
            return Ok(refuse_job("no rules let us review there (pull_request.reviewer)"));
        };
        let now = facts.pull_request(repository, number)?;
        if is_closed(now) {
            return Ok(refuse_job("the pull request is over"));
        }
        if let Some(reason) = skip::find_pull_request_skip(now, rules) {
            return Ok(Err(self.skipped(reason)));
        }
        let files = facts.files(repository, number)?;
        let review = ReviewRequestEvent::from_poll(repository.clone(), *number);
        let since = review.since(now, files, facts)?;
        let background = review.named(now, rules, facts)?;
        let mut job = review.job(now, files, since, rules, background);
        job.text = self.with_words(job.text);
        Ok(Ok(job))
    }

    /// Repair job. The limits apply only to repairs that start automatically.
    fn fix_ci(&self, facts: &DecisionFacts) -> ValueOrVerdict<JobRequest> {
        let (record, now, rules) = match self.on_ours(facts)? {
            Ok(found) => found,
            Err(verdict) => return Ok(Err(verdict)),
        };
        if !rules.ci.repair {
            return Ok(refuse_job("the rules turn repairs off (ci.repair)"));
        }
        let ours = &record.pull_request;
        let seen = facts.counted_checks(&ours.repository, &now.head)?;
        match github::conclude_checks(&seen) {
            _ if seen.is_empty() => {
                return Ok(refuse_job(
                    "no check has reported on the head of the pull request",
                ));
            }
            None => return Ok(refuse_job("the checks of the pull request are not complete")),
            Some(ChecksConclusion::Success | ChecksConclusion::Absent) => {
                return Ok(Err(EventVerdict::NothingFailed));
            }
            Some(ChecksConclusion::Failure) => {}
        }
        let mut checks = summarize_failure(ours, &now.head, &seen, facts)?;
        checks.suspects = repair::find_suspects(&checks, facts.history(&self.ticket)?, facts)?;
        self.again(facts, record, rules, JobSubject::Checks(Box::new(checks)), true)
    }

    fn address_review(&self, facts: &DecisionFacts) -> ValueOrVerdict<JobRequest> {
        let (record, now, rules) = match self.on_ours(facts)? {
            Ok(found) => found,
            Err(verdict) => return Ok(Err(verdict)),
        };
        let found = match &self.words {
            Some(words) => Some(self.said(record, now, words)),
            None => self.last_wish(facts, record, now)?,
        };
        let Some(round) = found else {
            return Ok(refuse_job(
                "no review of somebody who may write asks for anything; say what to change as `feedback`",
            ));
        };
        let round = ReviewRound {
            deciders: list_deciders(&self.ticket, rules, facts.history(&self.ticket)?),
            files: reviewed::list_own_changes(record, facts)?,
            ..round
        };
        // The feedback is the review round itself, so the text of the ticket stays unchanged.
        self.again(facts, record, rules, JobSubject::Review(Box::new(round)), false)
    }

    /// Review round from the caller's feedback, as a review of the whole.
    fn said(&self, record: &PullRequestRecord, now: &PullRequest, words: &str) -> ReviewRound {
        ReviewRound {
            pull_request: record.pull_request.clone(),
            head: now.head.clone(),
            id: 0,
            author: text_pin::clean_text(&self.by, 100),
            asks_for_changes: true,
            body: text_pin::pin_words(words),
            threads: Vec::new(),
            left: None,
            deciders: Vec::new(),
            by_program: false,
            files: Vec::new(),
        }
    }

    /// Last review with a request, by an author with write permission.
    fn last_wish(
        &self,
        facts: &DecisionFacts,
        record: &PullRequestRecord,
        now: &PullRequest,
    ) -> Result<Option<ReviewRound>, Need> {
        let ours = &record.pull_request;
        let reviews = facts.reviews(&ours.repository, &ours.number)?;
        for review in reviews.iter().rev() {
            let event = ReviewEvent::from_poll(record, review);
            let person = event.person();
            // Our replies are reviews too, and the settings may not name our account.
            let is_ours = facts.is_ours(&person) || now.author.eq_ignore_ascii_case(&review.author);
            if is_ours {
                continue;
            }
            if let Some(round) = event.wish(review, reviews, record, now)
                && *facts.authority(&person)?
            {
                return Ok(Some(round));
            }
        }
        Ok(None)
    }

    /// Our open pull request for the job, its current state, and its rules.
    fn on_ours<'a>(
        &'a self,
        facts: &'a DecisionFacts,
    ) -> ValueOrVerdict<(&'a PullRequestRecord, &'a PullRequest, &'a RepositoryRules)> {
        let record = match &self.ours {
            Some(record) => record,
            None => match self.of_the_ticket(facts)? {
                Ok(record) => record,
                Err(verdict) => return Ok(Err(verdict)),
            },
        };
        let PullRequestRef {
            repository,
            number,
            branch,
            ..
        } = &record.pull_request;
        let rules = facts.book.for_repository(repository);
        let unruled = || Ok(Err(EventVerdict::Unruled(self.ticket.clone())));
        let Some(rules) = rules else {
            return unruled();
        };
        if !facts.covers(rules, &self.ticket)? {
            return unruled();
        }
        let pending = &facts.row(&self.ticket)?.pending;
        let is_it = |job: &domain::PendingRun| job.job == self.job && job.branch.as_ref() == Some(branch);
        if pending.iter().any(is_it) {
            return Ok(refuse_job("such a job is under way on the pull request"));
        }
        let now = facts.pull_request(repository, number)?;
        if is_closed(now) {
            return Ok(refuse_job("the pull request is over"));
        }
        if let Some(reason) = skip::find_own_skip(now, rules) {
            return Ok(Err(self.skipped(reason)));
        }
        Ok(Ok((record, now, rules)))
    }

    fn of_the_ticket<'a>(&self, facts: &'a DecisionFacts) -> ValueOrVerdict<&'a PullRequestRecord> {
        let mut open = Vec::new();
        for ours in &facts.row(&self.ticket)?.pull_requests {
            if self.number.is_some_and(|number| number != ours.number) {
                continue;
            }
            let record = facts.record(&ours.repository, &ours.number)?.as_ref();
            open.extend(record.filter(|record| record.status == PullRequestStatus::Open));
        }
        Ok(match open.as_slice() {
            [record] => Ok(*record),
            [] => refuse_job("the ticket has no such open pull request of ours"),
            several => {
                let names = several.iter().map(|record| {
                    let PullRequestRef {
                        repository, number, ..
                    } = &record.pull_request;
                    format!("github:{}#{number}", repository.path())
                });
                let names: Vec<_> = names.collect();
                refuse_job(format!(
                    "the ticket has several open pull requests; name one: {}",
                    names.join(", ")
                ))
            }
        })
    }

    /// Job on the pull request, with the text that its ticket was last approved with.
    fn again(
        &self,
        facts: &DecisionFacts,
        record: &PullRequestRecord,
        rules: &RepositoryRules,
        about: JobSubject,
        with_words: bool,
    ) -> ValueOrVerdict<JobRequest> {
        let Some(asked) = repair::find_last_request(facts.history(&self.ticket)?) else {
            return Ok(refuse_job("what the ticket asked for is not kept any more"));
        };
        let text = asked.text.clone();
        Ok(Ok(JobRequest {
            job: self.job,
            repository: record.pull_request.repository.clone(),
            text: if with_words { self.with_words(text) } else { text },
            rules: rules.clone(),
            background: TicketBackground::default(),
            about,
        }))
    }

    fn with_words(&self, text: domain::TicketText) -> domain::TicketText {
        match &self.words {
            Some(words) => text_pin::add_instruction(text, &self.by, self.at, words),
            None => text,
        }
    }

    fn skipped(&self, reason: SkipReason) -> EventVerdict {
        self.reason(TriggerReason::Skipped(reason))
    }

    fn follows(&self, job: JobRequest) -> EventVerdict {
        self.reason(TriggerReason::JobRequested(Box::new(job)))
    }

    fn reason(&self, reason: TriggerReason) -> EventVerdict {
        EventVerdict::from(NewTrigger {
            ticket: self.ticket.clone(),
            key: self.key.clone(),
            at: self.at,
            actor: Some(self.by.clone()),
            reason,
        })
    }
}

fn refuse_job<T>(why: impl Into<String>) -> Result<T, EventVerdict> {
    Err(EventVerdict::nothing(why))
}
