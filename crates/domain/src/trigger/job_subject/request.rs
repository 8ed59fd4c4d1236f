//! A request for work with everything that ingest pins at that moment.

use serde::{Deserialize, Serialize};

use super::JobSubject;
use crate::{
    identity::{
        repository::RepositoryName,
        ticket::{TicketKey, TicketText},
    },
    rules::RepositoryRules,
    trigger::{background::TicketBackground, job::Job, reaction::ReactionSubject},
};

/// A requested job. Ingest pins all its inputs at the time of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRequest {
    /// The kind of work.
    pub job: Job,
    /// The repository that receives the change.
    pub repository: RepositoryName,
    /// The text of the ticket.
    pub text: TicketText,
    /// The rules of the repository.
    pub rules: RepositoryRules,
    /// Knowledge of the trackers about the ticket in addition to its text.
    #[serde(default, skip_serializing_if = "TicketBackground::is_empty")]
    pub background: TicketBackground,
    /// The subject of the job in addition to the ticket.
    #[serde(default, skip_serializing_if = "JobSubject::is_ticket")]
    pub about: JobSubject,
}

impl JobRequest {
    /// Returns the text that requested the work, for reactions such as 👀; absent: GitHub accepts no reaction
    /// on it.
    pub fn reactable(&self, ticket: &TicketKey) -> Option<ReactionSubject> {
        match &self.about {
            JobSubject::Ticket => match ticket {
                TicketKey::GitHub { repository, number } => Some(ReactionSubject::issue(repository, *number)),
                TicketKey::Discussion { repository, number } => {
                    Some(ReactionSubject::discussion(repository, *number))
                }
                // Jira has no reactions, and a folder ticket is in no tracker.
                TicketKey::Jira { .. } | TicketKey::Folder { .. } => None,
            },
            JobSubject::Discussion(discussion) => discussion.comment.clone().or_else(|| match ticket {
                TicketKey::Discussion { repository, number } => {
                    Some(ReactionSubject::discussion(repository, *number))
                }
                TicketKey::Jira { .. } | TicketKey::GitHub { .. } | TicketKey::Folder { .. } => None,
            }),
            // Checks and conflicts have no text that asked for the work, and a rehearsal writes nothing.
            JobSubject::Checks(_) | JobSubject::Conflict(_) | JobSubject::Rehearsal(_) => None,
            JobSubject::Review(round) => {
                let ours = &round.pull_request;
                let whole = || ReactionSubject::issue(&ours.repository, ours.number);
                // GitHub's REST API has no reactions on a review itself, so the first line comment or the
                // pull request gets it.
                let line = round.threads.first().map(|thread| ReactionSubject::LineComment {
                    repository: ours.repository.clone(),
                    id: thread.id,
                });
                Some(line.unwrap_or_else(whole))
            }
            JobSubject::Question(question) => question.comment.clone(),
            JobSubject::Change(change) => {
                let reviewed = &change.pull_request;
                Some(ReactionSubject::issue(&reviewed.repository, reviewed.number))
            }
        }
    }
}
