//! Somebody asks us something in a comment, while no run is under way that could take it in.

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

/// A question to us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) ticket: TicketKey,
    /// That of the comment.
    pub(crate) key: TriggerKey,
    pub(crate) at: Timestamp,
    pub(crate) author: Person,
    pub(crate) text: String,
    /// The comment, where it can be reacted to.
    pub(crate) comment: Option<Reactable>,
    /// Our pull request that it was asked on.
    pub(crate) pull_request: Option<PullRequestRef>,
}

impl Asked {
    /// What the ticket says: as it was approved where a pull request came of it, else as it is now.
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
    /// The work that begins when the comment turns out to ask for a change: on our open pull request, else on the ticket. It
    /// is decided here, by what decides for everybody else who asks; a model only says whether it is meant.
    fn work(&self, rules: &Rules, facts: &Facts) -> Result<Option<JobRequest>, Need> {
        let has_work = matches!(self.ticket, TicketKey::Jira { .. } | TicketKey::GitHub { .. });
        // The API has jobs of its own for it.
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

    /// The one that it was said on, else the ticket's in the repository of the rules.
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

    /// The comment as a review of the whole.
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

    /// Whoever may not ask is told so, once.
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
