//! Somebody asks us something in a comment, while no run is under way that could take it in.

use std::collections::BTreeSet;

use domain::{
    About, Background, CommentQuestion, Job, JobRequest, PullRequestRef, Reactable, Reason, TicketKey,
    TicketText, Timestamp, TriggerKey,
};

use super::{Follows, Kind, Verdict, discussed::takes_part};
use crate::{
    facts::{Facts, Need, Person},
    pin, repair, skip,
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
            return Ok(Verdict::nothing("the author may not ask for an answer"));
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
        };
        let request = JobRequest {
            job: Job::Answer,
            repository,
            text,
            rules: rules.clone(),
            background: Background::default(),
            about: About::Question(Box::new(question)),
        };
        Ok(Verdict::from(Follows {
            ticket: self.ticket.clone(),
            key: self.key.clone(),
            at: self.at,
            actor: Some(self.author.name().to_owned()),
            reason: Reason::JobRequested(Box::new(request)),
        }))
    }
}
