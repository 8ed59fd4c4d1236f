//! What is asked for when work is asked for.

use serde::{Deserialize, Serialize};

use super::About;
use crate::{Background, Job, Reactable, RepositoryName, Rules, TicketKey, TicketText};

/// A job that was asked for, with everything pinned at that moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRequest {
    /// The kind of work.
    pub job: Job,
    /// Where the change goes.
    pub repository: RepositoryName,
    /// The ticket's text.
    pub text: TicketText,
    /// The repository's rules.
    pub rules: Rules,
    /// What is known of the ticket beside its text.
    #[serde(default, skip_serializing_if = "Background::is_empty")]
    pub background: Background,
    /// What it is about beside the ticket.
    #[serde(default, skip_serializing_if = "About::is_ticket")]
    pub about: About,
}

impl JobRequest {
    /// What the person who asked for the work wrote; absent: it cannot be reacted to.
    pub fn reactable(&self, ticket: &TicketKey) -> Option<Reactable> {
        match &self.about {
            About::Ticket => match ticket {
                TicketKey::GitHub { repository, number } => Some(Reactable::issue(repository, *number)),
                TicketKey::Discussion { repository, number } => {
                    Some(Reactable::discussion(repository, *number))
                }
                TicketKey::Jira { .. } | TicketKey::Folder { .. } => None,
            },
            About::Discussion(discussion) => discussion.comment.clone().or_else(|| match ticket {
                TicketKey::Discussion { repository, number } => {
                    Some(Reactable::discussion(repository, *number))
                }
                TicketKey::Jira { .. } | TicketKey::GitHub { .. } | TicketKey::Folder { .. } => None,
            }),
            // Nobody wrote anything, or nothing is to be written.
            About::Checks(_) | About::Rehearsal(_) => None,
            About::Review(round) => {
                let ours = &round.pull_request;
                let whole = || Reactable::issue(&ours.repository, ours.number);
                let line = round.threads.first().map(|thread| Reactable::LineComment {
                    repository: ours.repository.clone(),
                    id: thread.id,
                });
                Some(line.unwrap_or_else(whole))
            }
            About::Question(question) => question.comment.clone(),
            About::Change(change) => {
                let reviewed = &change.pull_request;
                Some(Reactable::issue(&reviewed.repository, reviewed.number))
            }
        }
    }
}
