//! The effects on the outside: each one can look whether it is done, and do it.

mod ci;
mod comment;
mod labels;
mod letters;
mod mark_ready;
mod patch;
mod pull_request;
mod push_branch;
mod record_end;
mod remote_link;
mod show_change;
mod transition;
mod unassign;

use std::sync::Arc;

use domain::{BranchRecord, PullRequestRef, Report, RepositoryName, Rules, TicketKey, Trigger};
use queue::{Branches, KeyedLog, Objects, PullRequests};

use crate::{
    inspect::Inspector, made::Made, message, mirror::Mirrors, outgoing::Outgoing, plan::Effect,
    policy::LimitSettings, trouble::Trouble,
};

/// Everything that reaches outside.
pub(crate) struct Outside {
    pub(crate) github: github::Writer,
    pub(crate) jira: jira::Writer,
    pub(crate) mirrors: Arc<Mirrors>,
    pub(crate) objects: Objects,
    pub(crate) branches: Branches,
    pub(crate) pull_requests: PullRequests,
    /// Read only: what people decided stands there.
    pub(crate) triggers: KeyedLog<Trigger>,
    pub(crate) inspector: Inspector,
    pub(crate) limits: LimitSettings,
}

/// Whose effect it is.
pub(crate) struct Asked<'a> {
    pub(crate) report: &'a Report,
    /// Absent when the repository has no usable rules.
    pub(crate) rules: Option<&'a Rules>,
    /// What the earlier effects of the report made.
    pub(crate) made: &'a Made,
    /// The effect's id in the ledger and in markers.
    pub(crate) id: &'a str,
    /// The comment to write, for an effect that is one.
    pub(crate) text: &'a Outgoing,
}

impl Outside {
    /// What the effect made, when the outside shows that it is done.
    pub(crate) async fn look(&self, asked: &Asked<'_>, effect: &Effect) -> Result<Option<Made>, Trouble> {
        match effect {
            Effect::PushBranch(push) => push_branch::look(self, push).await,
            // Looking at the same objects again gives the same text, which is kept under the name of its content.
            Effect::ShowChange(_) => Ok(None),
            Effect::OpenPullRequest(draft) => pull_request::look(self, asked, draft).await,
            // Repeating the link replaces it by itself.
            Effect::LinkPullRequest { .. } => Ok(None),
            Effect::MarkReady { pull_request, .. } | Effect::MarkReadyUnchecked { pull_request, .. } => {
                mark_ready::look(self, &asked.report.ticket, pull_request).await
            }
            Effect::Transition { issue, goals } => transition::look(self, issue, goals).await,
            // Repeating either changes nothing.
            Effect::AddLabels { .. } | Effect::Unassign { .. } | Effect::RecordEnd { .. } => Ok(None),
            Effect::Comment { ticket, .. } => comment::look(self, asked, ticket).await,
        }
    }

    /// Does it. Call only after the attempt is in the ledger.
    pub(crate) async fn create(&self, asked: &Asked<'_>, effect: &Effect) -> Result<Made, Trouble> {
        match effect {
            Effect::PushBranch(push) => Box::pin(push_branch::create(self, asked, push)).await,
            Effect::ShowChange(push) => Box::pin(show_change::create(self, asked, push)).await,
            Effect::OpenPullRequest(draft) => pull_request::create(self, asked, draft).await,
            Effect::LinkPullRequest { issue } => remote_link::create(self, asked, issue).await,
            Effect::MarkReady { pull_request, head } => mark_ready::create(self, pull_request, head).await,
            Effect::MarkReadyUnchecked {
                pull_request,
                head,
                required,
            } => mark_ready::create_unchecked(self, pull_request, head, *required).await,
            // What stays a draft is not handed over.
            Effect::Transition { .. } if asked.made.awaited.is_some() => Ok(Made::default()),
            Effect::Transition { issue, goals } => transition::create(self, issue, goals).await,
            Effect::AddLabels { ticket, labels } => labels::create(self, ticket, labels).await,
            Effect::Unassign { issue } => unassign::create(self, issue).await,
            Effect::RecordEnd { pull_request, status } => {
                record_end::create(self, asked, pull_request, *status).await
            }
            Effect::Comment { ticket, .. } => comment::create(self, asked, ticket).await,
        }
    }

    fn ticket_url(&self, ticket: &TicketKey, rules: Option<&Rules>) -> Option<String> {
        let TicketKey::Jira { .. } = ticket else {
            return None;
        };
        let configured = rules
            .map(|rules| rules.jira.base_url.as_str())
            .filter(|url| !url.is_empty());
        match configured {
            Some(base) => Some(format!(
                "{}/browse/{}",
                base.trim_end_matches('/'),
                ticket.short()
            )),
            None => self.jira.browse_url(ticket),
        }
    }

    /// The record of a branch of the report's own ticket; refused when the branch is another ticket's.
    async fn own_branch(
        &self,
        ticket: &TicketKey,
        repository: &RepositoryName,
        branch: &str,
    ) -> Result<Option<(BranchRecord, queue::Revision)>, Trouble> {
        match self.branches.get(repository, branch).await? {
            Some((record, _)) if record.ticket != *ticket => Err(Trouble::Refused(
                message::branch_of_another_ticket(&record.branch, &record.ticket),
            )),
            known => Ok(known),
        }
    }

    fn made_pull_request(pull_request: PullRequestRef) -> Made {
        Made {
            pull_request: Some(pull_request),
            ..Made::default()
        }
    }
}
