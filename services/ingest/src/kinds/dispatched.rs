//! Manual dispatch of a job by an authorized user. The subject is fetched from its tracker; the caller adds text at
//! most.

use std::collections::BTreeSet;

use domain::{
    About, Background, Conclusion, DiscussionTask, Job, JobRequest, PullRequestRecord, PullRequestRef,
    PullRequestStatus, Reactable, Reason, RepositoryName, ReviewRound, Rules, SkipReason, TicketKey,
    Timestamp, TriggerKey,
};
use github::PullRequest;

use super::{
    Follows, Kind, Verdict,
    asked::Asked,
    checks,
    closed::is_closed,
    discussed::{Discussed, Order},
    review_requested::ReviewRequested,
    reviewed::{self, Reviewed},
    text,
    work::Work,
};
use crate::{
    deciders::deciders,
    facts::{Facts, Need, Person},
    pin, repair, skip,
};

/// Job request of an authorized user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dispatched {
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
    pub(crate) comment: Option<Reactable>,
}

/// Value, or the verdict that replaces it.
type Or<T> = Result<Result<T, Verdict>, Need>;

impl Kind for Dispatched {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        if let Some(sequence) = facts.known(&self.ticket, &self.key)? {
            return Ok(Verdict::Known(*sequence));
        }
        let of_a_ticket = matches!(self.job, Job::Implement | Job::Triage | Job::Review);
        if let Some(record) = self.ours.as_ref().filter(|_| of_a_ticket) {
            let url = &record.pull_request.url;
            return Ok(Verdict::nothing(format!(
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
            Job::MarkReady | Job::Finish | Job::BackToDraft | Job::Reopen | Job::Rehearse | Job::Remind => {
                return Ok(Verdict::nothing("it follows from what happens to a pull request"));
            }
        };
        Ok(job.map_or_else(|verdict| verdict, |job| self.follows(job)))
    }
}

impl Dispatched {
    fn implement(&self) -> Verdict {
        let (ticket, key, by) = (self.ticket.clone(), self.key.clone(), self.by.clone());
        let work = Work::ordered(ticket, key, self.repository.clone(), self.at, by);
        Verdict::Becomes(Box::new(work.with_words(self.words.clone())))
    }

    fn answer(&self) -> Verdict {
        Verdict::Becomes(Box::new(Asked {
            ticket: self.ticket.clone(),
            key: self.key.clone(),
            at: self.at,
            author: Person::Api {
                name: self.by.clone(),
            },
            text: self.words.clone().unwrap_or_default(),
            comment: self.comment.clone(),
            pull_request: self.ours.as_ref().map(|record| record.pull_request.clone()),
        }))
    }

    fn discuss(&self) -> Verdict {
        let Some(task) = self.task else {
            return Verdict::nothing("what to do in the discussion is not said");
        };
        let order = Order {
            key: self.key.clone(),
            at: self.at,
            by: self.by.clone(),
            comment: self.comment.clone(),
        };
        Verdict::Becomes(Box::new(Discussed::ordered(self.ticket.clone(), task, order)))
    }

    /// Triage job. A manual request repeats a triage that was done before.
    fn triage(&self, facts: &Facts) -> Or<JobRequest> {
        let Some(rules) = facts.rules(&self.ticket)? else {
            return Ok(Err(Verdict::Unruled(self.ticket.clone())));
        };
        if rules.triage.is_off() {
            return Ok(refused(
                "the rules name nothing that a triage may set (triage.labels and the others)",
            ));
        }
        let issue = match facts.issue(&self.ticket)? {
            Ok(issue) => issue,
            Err(detail) => return Ok(Err(Verdict::Never(detail.clone()))),
        };
        if issue.is_over {
            return Ok(refused("the ticket is closed"));
        }
        let raw = skip::text_of(issue);
        if let Some(reason) = skip::skip(&raw, &[], rules, &[]) {
            return Ok(Err(self.skipped(reason)));
        }
        let text = pin::pin(raw, &[], self.at, &BTreeSet::new());
        Ok(text::request(text, rules).map_err(|problem| Verdict::Never(problem.to_string())))
    }

    fn review(&self, facts: &Facts) -> Or<JobRequest> {
        let TicketKey::GitHub { repository, number } = &self.ticket else {
            return Ok(refused("a pull request is reviewed: github:OWNER/NAME#NUMBER"));
        };
        let rules = facts.book.for_repository(repository);
        let Some(rules) = rules.filter(|rules| !rules.pull_request.reviewer.is_empty()) else {
            return Ok(refused("no rules let us review there (pull_request.reviewer)"));
        };
        let now = facts.pull_request(repository, number)?;
        if is_closed(now) {
            return Ok(refused("the pull request is over"));
        }
        if let Some(reason) = skip::of_pull_request(now, rules) {
            return Ok(Err(self.skipped(reason)));
        }
        let files = facts.files(repository, number)?;
        let review = ReviewRequested::from_poll(repository.clone(), *number);
        let since = review.since(now, files, facts)?;
        let background = review.named(now, rules, facts)?;
        let mut job = review.job(now, files, since, rules, background);
        job.text = self.with_words(job.text);
        Ok(Ok(job))
    }

    /// Repair job. The limits apply only to repairs that start automatically.
    fn fix_ci(&self, facts: &Facts) -> Or<JobRequest> {
        let (record, now, rules) = match self.on_ours(facts)? {
            Ok(found) => found,
            Err(verdict) => return Ok(Err(verdict)),
        };
        if !rules.ci.repair {
            return Ok(refused("the rules turn repairs off (ci.repair)"));
        }
        let ours = &record.pull_request;
        let seen = facts.checks(&ours.repository, &now.head)?;
        match github::conclusion(seen) {
            _ if seen.is_empty() => {
                return Ok(refused("no check has reported on the head of the pull request"));
            }
            None => return Ok(refused("the checks of the pull request are not complete")),
            Some(Conclusion::Success | Conclusion::Absent) => return Ok(Err(Verdict::NothingFailed)),
            Some(Conclusion::Failure) => {}
        }
        let mut checks = checks::failure(ours, &now.head, seen, facts)?;
        checks.suspects = repair::suspects(&checks, facts.history(&self.ticket)?, facts)?;
        self.again(facts, record, rules, About::Checks(Box::new(checks)), true)
    }

    fn address_review(&self, facts: &Facts) -> Or<JobRequest> {
        let (record, now, rules) = match self.on_ours(facts)? {
            Ok(found) => found,
            Err(verdict) => return Ok(Err(verdict)),
        };
        let found = match &self.words {
            Some(words) => Some(self.said(record, now, words)),
            None => self.last_wish(facts, record, now)?,
        };
        let Some(round) = found else {
            return Ok(refused(
                "no review of somebody who may write asks for anything; say what to change as `feedback`",
            ));
        };
        let round = ReviewRound {
            deciders: deciders(&self.ticket, rules, facts.history(&self.ticket)?),
            files: reviewed::changes(record, facts)?,
            ..round
        };
        // The feedback is the review round itself, so the text of the ticket stays unchanged.
        self.again(facts, record, rules, About::Review(Box::new(round)), false)
    }

    /// Review round from the caller's feedback, as a review of the whole.
    fn said(&self, record: &PullRequestRecord, now: &PullRequest, words: &str) -> ReviewRound {
        ReviewRound {
            pull_request: record.pull_request.clone(),
            head: now.head.clone(),
            id: 0,
            author: pin::cut(&pin::sanitise(&self.by), 100),
            asks_for_changes: true,
            body: pin::words(words),
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
        facts: &Facts,
        record: &PullRequestRecord,
        now: &PullRequest,
    ) -> Result<Option<ReviewRound>, Need> {
        let ours = &record.pull_request;
        let reviews = facts.reviews(&ours.repository, &ours.number)?;
        for review in reviews.iter().rev() {
            let told = Reviewed::from_poll(record, review);
            let person = told.person();
            // Our replies are reviews too, and the settings may not name our account.
            let is_ours = facts.is_ours(&person) || now.author.eq_ignore_ascii_case(&review.author);
            if is_ours {
                continue;
            }
            if let Some(round) = told.wish(review, reviews, record, now)
                && *facts.authority(&person)?
            {
                return Ok(Some(round));
            }
        }
        Ok(None)
    }

    /// Our open pull request for the job, its current state, and its rules.
    fn on_ours<'a>(&'a self, facts: &'a Facts) -> Or<(&'a PullRequestRecord, &'a PullRequest, &'a Rules)> {
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
        let Some(rules) = rules.filter(|rules| rules.cover(&self.ticket)) else {
            return Ok(Err(Verdict::Unruled(self.ticket.clone())));
        };
        let pending = &facts.row(&self.ticket)?.pending;
        let is_it = |job: &domain::Pending| job.job == self.job && job.branch.as_ref() == Some(branch);
        if pending.iter().any(is_it) {
            return Ok(refused("such a job is under way on the pull request"));
        }
        let now = facts.pull_request(repository, number)?;
        if is_closed(now) {
            return Ok(refused("the pull request is over"));
        }
        if let Some(reason) = skip::of_ours(now, rules) {
            return Ok(Err(self.skipped(reason)));
        }
        Ok(Ok((record, now, rules)))
    }

    fn of_the_ticket<'a>(&self, facts: &'a Facts) -> Or<&'a PullRequestRecord> {
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
            [] => refused("the ticket has no such open pull request of ours"),
            several => {
                let names = several.iter().map(|record| {
                    let PullRequestRef {
                        repository, number, ..
                    } = &record.pull_request;
                    format!("github:{}#{number}", repository.path())
                });
                let names: Vec<_> = names.collect();
                refused(format!(
                    "the ticket has several open pull requests; name one: {}",
                    names.join(", ")
                ))
            }
        })
    }

    /// Job on the pull request, with the text that its ticket was last approved with.
    fn again(
        &self,
        facts: &Facts,
        record: &PullRequestRecord,
        rules: &Rules,
        about: About,
        with_words: bool,
    ) -> Or<JobRequest> {
        let Some(asked) = repair::asked_for(facts.history(&self.ticket)?) else {
            return Ok(refused("what the ticket asked for is not kept any more"));
        };
        let text = asked.text.clone();
        Ok(Ok(JobRequest {
            job: self.job,
            repository: record.pull_request.repository.clone(),
            text: if with_words { self.with_words(text) } else { text },
            rules: rules.clone(),
            background: Background::default(),
            about,
        }))
    }

    fn with_words(&self, text: domain::TicketText) -> domain::TicketText {
        match &self.words {
            Some(words) => pin::with_words(text, &self.by, self.at, words),
            None => text,
        }
    }

    fn skipped(&self, reason: SkipReason) -> Verdict {
        self.reason(Reason::Skipped(reason))
    }

    fn follows(&self, job: JobRequest) -> Verdict {
        self.reason(Reason::JobRequested(Box::new(job)))
    }

    fn reason(&self, reason: Reason) -> Verdict {
        Verdict::from(Follows {
            ticket: self.ticket.clone(),
            key: self.key.clone(),
            at: self.at,
            actor: Some(self.by.clone()),
            reason,
        })
    }
}

fn refused<T>(why: impl Into<String>) -> Result<T, Verdict> {
    Err(Verdict::nothing(why))
}
