//! Question in a comment that mentions us, while no run is active that could read it.

use std::collections::BTreeSet;

use domain::{
    CommentQuestion, Job, JobRequest, JobSubject, PullRequestRecord, PullRequestRef, PullRequestStatus,
    ReactionSubject, RepositoryRules, ReviewRound, SkipReason, TicketBackground, TicketKey, TicketText,
    Timestamp, TriggerKey, TriggerReason,
};

use super::{
    EventKind, EventVerdict, NewTrigger, closed::is_closed, discussed::can_take_part,
    reviewed::list_own_changes,
};
use crate::{
    facts::{DecisionFacts, EventActor, Need},
    policy::{
        deciders::list_deciders, job_request::decide_after_approval, repair, skip, status_check::WorkApproval,
    },
    text::text_pin,
};

/// Question of a user to Journeyman.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuestionEvent {
    pub(crate) ticket: TicketKey,
    /// Key of the comment.
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    pub(crate) author: EventActor,
    pub(crate) text: String,
    /// Comment on GitHub to react to; absent elsewhere.
    pub(crate) comment: Option<ReactionSubject>,
    /// Our pull request with the comment.
    pub(crate) pull_request: Option<PullRequestRef>,
}

impl QuestionEvent {
    /// Text of the ticket: as approved for a comment on our pull request, else the current one.
    fn ticket_text(&self, facts: &DecisionFacts) -> Result<Option<TicketText>, Need> {
        if self.pull_request.is_some() {
            let asked = repair::find_last_request(facts.history(&self.ticket)?);
            return Ok(asked.map(|asked| asked.text.clone()));
        }
        if matches!(self.ticket, TicketKey::Folder { .. }) {
            return Ok(None);
        }
        let Ok(issue) = facts.issue(&self.ticket)? else {
            return Ok(None);
        };
        let text = text_pin::pin_text(
            skip::build_ticket_text(issue),
            &issue.comments,
            self.at,
            &BTreeSet::new(),
        );
        Ok(Some(text))
    }
}

impl QuestionEvent {
    /// Job that starts if the model takes the comment for a request for changes: on our open pull request, else on the
    /// ticket.
    ///
    /// This code authorizes it, as for any other request; the model only decides about the meaning.
    fn work(&self, rules: &RepositoryRules, facts: &DecisionFacts) -> Result<Option<JobRequest>, Need> {
        let has_work = matches!(self.ticket, TicketKey::Jira { .. } | TicketKey::GitHub { .. });
        // API callers start such work by a job of the API.
        if !has_work || matches!(self.author, EventActor::Api { .. }) {
            return Ok(None);
        }
        if let Some(record) = self.open_pull_request(rules, facts)? {
            return self.on_pull_request(record, rules, facts);
        }
        if self.pull_request.is_some() {
            return Ok(None);
        }
        let Ok(issue) = facts.issue(&self.ticket)? else {
            return Ok(None);
        };
        if issue.is_over {
            return Ok(None);
        }
        // The question counts as an approval of the current text, because its author may request work.
        let approval = WorkApproval {
            changelog: None,
            at: self.at,
            by: Some(domain::TrackerAccount {
                id: String::new(),
                display_name: self.author.name().to_owned(),
                is_bot: false,
            }),
        };
        let Ok(TriggerReason::JobRequested(mut job)) =
            decide_after_approval(&self.ticket, issue, &approval, rules, facts)?
        else {
            return Ok(None);
        };
        job.text = text_pin::add_instruction(job.text, self.author.name(), self.at, &self.text);
        Ok(Some(*job))
    }

    /// Open pull request for the work: the one with the comment, else the ticket's in the repository of the rules.
    fn open_pull_request<'a>(
        &self,
        rules: &RepositoryRules,
        facts: &'a DecisionFacts,
    ) -> Result<Option<&'a PullRequestRecord>, Need> {
        let named = match &self.pull_request {
            Some(ours) => vec![ours],
            None => facts.row(&self.ticket)?.pull_requests.iter().rev().collect(),
        };
        for ours in named {
            let is_here = self.pull_request.is_some()
                || rules
                    .repository()
                    .is_ok_and(|repository| repository == ours.repository);
            if is_here
                && let Some(record) = facts.record(&ours.repository, &ours.number)?
                && record.status == PullRequestStatus::Open
                && !is_closed(facts.pull_request(&ours.repository, &ours.number)?)
            {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Job that treats the comment as a review of the whole pull request.
    fn on_pull_request(
        &self,
        record: &PullRequestRecord,
        rules: &RepositoryRules,
        facts: &DecisionFacts,
    ) -> Result<Option<JobRequest>, Need> {
        let PullRequestRef {
            repository, number, ..
        } = &record.pull_request;
        let history = facts.history(&self.ticket)?;
        let Some(asked) = repair::find_last_request(history) else {
            return Ok(None);
        };
        let round = ReviewRound {
            by_program: false,
            deciders: list_deciders(&self.ticket, rules, history),
            pull_request: record.pull_request.clone(),
            head: facts.pull_request(repository, number)?.head.clone(),
            id: 0,
            author: text_pin::clean_text(self.author.name(), 100),
            asks_for_changes: true,
            body: text_pin::pin_words(&self.text),
            threads: Vec::new(),
            left: None,
            files: list_own_changes(record, facts)?,
        };
        Ok(Some(JobRequest {
            job: Job::AddressReview,
            repository: repository.clone(),
            text: asked.text.clone(),
            rules: rules.clone(),
            background: TicketBackground::default(),
            about: JobSubject::Review(Box::new(round)),
        }))
    }

    /// Verdict for an author without authority. Journeyman comments once per author.
    fn refused(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let group = match (&self.ticket, &self.author) {
            (TicketKey::Jira { .. }, EventActor::Jira { .. }) => facts.group.clone(),
            (TicketKey::Jira { .. } | TicketKey::GitHub { .. }, EventActor::GitHub { .. }) => String::new(),
            _ => {
                return Ok(EventVerdict::nothing(
                    "the author is not allowed to ask for an answer",
                ));
            }
        };
        let reason = TriggerReason::Skipped(SkipReason::MayNotAsk {
            actor: text_pin::clean_text(self.author.name(), 100),
            group,
            on: self.pull_request.clone(),
        });
        if facts
            .history(&self.ticket)?
            .iter()
            .any(|trigger| trigger.reason == reason)
        {
            return Ok(EventVerdict::nothing(
                "the author is not allowed to ask for an answer, and was notified",
            ));
        }
        Ok(self.follows(reason))
    }

    fn follows(&self, reason: TriggerReason) -> EventVerdict {
        EventVerdict::from(NewTrigger {
            ticket: self.ticket.clone(),
            key: self.key.clone(),
            at: self.at,
            actor: Some(self.author.name().to_owned()),
            reason,
        })
    }
}

impl EventKind for QuestionEvent {
    fn decide(&self, facts: &DecisionFacts) -> Result<EventVerdict, Need> {
        let Some(rules) = facts.rules(&self.ticket)? else {
            return Ok(EventVerdict::nothing("no rules for the project"));
        };
        if let Some(sequence) = facts.known(&self.ticket, &self.key)? {
            return Ok(EventVerdict::Known(*sequence));
        }
        if !*facts.authority(&self.author)? {
            tracing::info!(ticket = %self.ticket, "question not answered: its author is not allowed to ask");
            return self.refused(facts);
        }
        if !can_take_part(&self.ticket, rules, facts)? {
            return Ok(EventVerdict::nothing("the rules keep us out of this discussion"));
        }
        let repository = match rules.repository() {
            Ok(repository) => repository,
            Err(problem) => return Ok(EventVerdict::Never(problem.to_string())),
        };
        let head = match &self.pull_request {
            Some(ours) => Some(facts.pull_request(&ours.repository, &ours.number)?.head.clone()),
            None => None,
        };
        let Some(text) = self.ticket_text(facts)? else {
            return Ok(EventVerdict::nothing("the ticket's text is not known"));
        };
        if skip::find_skip_reason(&text, &[], rules, &[]).is_some() {
            return Ok(EventVerdict::nothing("a skip rule forbids work on the ticket"));
        }
        let question = CommentQuestion {
            author: text_pin::clean_text(self.author.name(), 100),
            text: text_pin::pin_words(&self.text),
            pull_request: self.pull_request.clone(),
            head,
            comment: self.comment.clone(),
            work: self.work(rules, facts)?.map(Box::new),
        };
        let request = JobRequest {
            job: Job::Answer,
            repository,
            text,
            rules: rules.clone(),
            background: TicketBackground::default(),
            about: JobSubject::Question(Box::new(question)),
        };
        Ok(self.follows(TriggerReason::JobRequested(Box::new(request))))
    }
}
