//! Question in a comment that mentions us, while no run is active that could read it.

use std::collections::BTreeSet;

use domain::{
    About, Background, CommentQuestion, Job, JobRequest, PullRequestRecord, PullRequestRef,
    PullRequestStatus, Reactable, Reason, ReviewRound, Rules, SkipReason, TicketKey, TicketText, Timestamp,
    TriggerKey,
};

use super::{Follows, Kind, Verdict, closed::is_closed, discussed::takes_part, reviewed::changes};
use crate::{
    approved::approved,
    deciders::deciders,
    facts::{Facts, Need, Person},
    pin, repair, skip,
    standing::Approval,
};

/// Question of a user to Journeyman.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) ticket: TicketKey,
    /// Key of the comment.
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    pub(crate) author: Person,
    pub(crate) text: String,
    /// Comment on GitHub to react to; absent elsewhere.
    pub(crate) comment: Option<Reactable>,
    /// Our pull request with the comment.
    pub(crate) pull_request: Option<PullRequestRef>,
}

impl Asked {
    /// Text of the ticket: as approved for a comment on our pull request, else the current one.
    fn ticket_text(&self, facts: &Facts) -> Result<Option<TicketText>, Need> {
        if self.pull_request.is_some() {
            let asked = repair::asked_for(facts.history(&self.ticket)?);
            return Ok(asked.map(|asked| asked.text.clone()));
        }
        if matches!(self.ticket, TicketKey::Folder { .. }) {
            return Ok(None);
        }
        let Ok(issue) = facts.issue(&self.ticket)? else {
            return Ok(None);
        };
        let text = pin::pin(skip::text_of(issue), &issue.comments, self.at, &BTreeSet::new());
        Ok(Some(text))
    }
}

impl Asked {
    /// Job that starts if the model takes the comment for a request for changes: on our open pull request, else on the
    /// ticket.
    ///
    /// This code authorizes it, as for any other request; the model only decides about the meaning.
    fn work(&self, rules: &Rules, facts: &Facts) -> Result<Option<JobRequest>, Need> {
        let has_work = matches!(self.ticket, TicketKey::Jira { .. } | TicketKey::GitHub { .. });
        // API callers start such work by a job of the API.
        if !has_work || matches!(self.author, Person::Api { .. }) {
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
        let approval = Approval {
            changelog: None,
            at: self.at,
            by: Some(domain::Account {
                id: String::new(),
                display_name: self.author.name().to_owned(),
                is_bot: false,
            }),
        };
        let Ok(Reason::JobRequested(mut job)) = approved(&self.ticket, issue, &approval, rules, facts)?
        else {
            return Ok(None);
        };
        job.text = pin::with_words(job.text, self.author.name(), self.at, &self.text);
        Ok(Some(*job))
    }

    /// Open pull request for the work: the one with the comment, else the ticket's in the repository of the rules.
    fn open_pull_request<'a>(
        &self,
        rules: &Rules,
        facts: &'a Facts,
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
        rules: &Rules,
        facts: &Facts,
    ) -> Result<Option<JobRequest>, Need> {
        let PullRequestRef {
            repository, number, ..
        } = &record.pull_request;
        let history = facts.history(&self.ticket)?;
        let Some(asked) = repair::asked_for(history) else {
            return Ok(None);
        };
        let round = ReviewRound {
            by_program: false,
            deciders: deciders(&self.ticket, rules, history),
            pull_request: record.pull_request.clone(),
            head: facts.pull_request(repository, number)?.head.clone(),
            id: 0,
            author: pin::cut(&pin::sanitise(self.author.name()), 100),
            asks_for_changes: true,
            body: pin::words(&self.text),
            threads: Vec::new(),
            left: None,
            files: changes(record, facts)?,
        };
        Ok(Some(JobRequest {
            job: Job::AddressReview,
            repository: repository.clone(),
            text: asked.text.clone(),
            rules: rules.clone(),
            background: Background::default(),
            about: About::Review(Box::new(round)),
        }))
    }

    /// Verdict for an author without authority. Journeyman comments once per author.
    fn refused(&self, facts: &Facts) -> Result<Verdict, Need> {
        let group = match (&self.ticket, &self.author) {
            (TicketKey::Jira { .. }, Person::Jira { .. }) => facts.group.clone(),
            (TicketKey::Jira { .. } | TicketKey::GitHub { .. }, Person::GitHub { .. }) => String::new(),
            _ => return Ok(Verdict::nothing("the author may not ask for an answer")),
        };
        let reason = Reason::Skipped(SkipReason::MayNotAsk {
            actor: pin::cut(&pin::sanitise(self.author.name()), 100),
            group,
            on: self.pull_request.clone(),
        });
        if facts
            .history(&self.ticket)?
            .iter()
            .any(|trigger| trigger.reason == reason)
        {
            return Ok(Verdict::nothing(
                "the author may not ask for an answer, and was told",
            ));
        }
        Ok(self.follows(reason))
    }

    fn follows(&self, reason: Reason) -> Verdict {
        Verdict::from(Follows {
            ticket: self.ticket.clone(),
            key: self.key.clone(),
            at: self.at,
            actor: Some(self.author.name().to_owned()),
            reason,
        })
    }
}

impl Kind for Asked {
    fn decide(&self, facts: &Facts) -> Result<Verdict, Need> {
        let Some(rules) = facts.rules(&self.ticket)? else {
            return Ok(Verdict::nothing("no rules for the project"));
        };
        if let Some(sequence) = facts.known(&self.ticket, &self.key)? {
            return Ok(Verdict::Known(*sequence));
        }
        if !*facts.authority(&self.author)? {
            tracing::info!(ticket = %self.ticket, "question not answered: its author may not ask");
            return self.refused(facts);
        }
        if !takes_part(&self.ticket, rules, facts)? {
            return Ok(Verdict::nothing("the rules keep us out of this discussion"));
        }
        let repository = match rules.repository() {
            Ok(repository) => repository,
            Err(problem) => return Ok(Verdict::Never(problem.to_string())),
        };
        let head = match &self.pull_request {
            Some(ours) => Some(facts.pull_request(&ours.repository, &ours.number)?.head.clone()),
            None => None,
        };
        let Some(text) = self.ticket_text(facts)? else {
            return Ok(Verdict::nothing("the ticket's text is not known"));
        };
        if skip::skip(&text, &[], rules, &[]).is_some() {
            return Ok(Verdict::nothing("a skip rule forbids work on the ticket"));
        }
        let question = CommentQuestion {
            author: pin::cut(&pin::sanitise(self.author.name()), 100),
            text: pin::words(&self.text),
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
            background: Background::default(),
            about: About::Question(Box::new(question)),
        };
        Ok(self.follows(Reason::JobRequested(Box::new(request))))
    }
}
