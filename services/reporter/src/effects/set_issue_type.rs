//! Sets the type of a ticket.

use async_trait::async_trait;
use domain::TicketKey;

use super::{Asked, Effect, EffectTarget, Outside};
use crate::{
    made::{Left, Made, Why, Wish},
    trouble::Trouble,
};

/// Sets the type of a GitHub issue without one. A Jira issue always has a type, so it changes only where the rules
/// allow it; elsewhere the comment suggests the type.
#[derive(Debug)]
pub(crate) struct SetIssueType {
    pub(crate) ticket: TicketKey,
    pub(crate) name: String,
}

#[async_trait]
impl Effect for SetIssueType {
    fn name(&self) -> &'static str {
        "set_issue_type"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::Ticket(&self.ticket)
    }

    fn only_tells(&self) -> bool {
        true
    }

    async fn look(&self, outside: &Outside, _: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        let current = self.current(outside).await?;
        let is_it = current.is_some_and(|name| name.eq_ignore_ascii_case(&self.name));
        Ok(is_it.then(Made::default))
    }

    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let wish = Wish::Type {
            name: self.name.clone(),
        };
        let changes = asked.rules.is_some_and(|rules| rules.triage.change_jira_type);
        let set = match &self.ticket {
            TicketKey::Jira { .. } if !changes => return Ok(Left::because(wish, Why::Suggested)),
            TicketKey::Jira { .. } => {
                let set = outside.jira.set_issue_type(&self.ticket, &self.name).await;
                set.map_err(Trouble::from)
            }
            TicketKey::GitHub { repository, number } => {
                if let Some(current) = self.current(outside).await? {
                    return Ok(Left::because(wish, Why::Has { current }));
                }
                let github = &outside.github;
                let set = github.set_issue_type(repository, *number, &self.name).await;
                set.map_err(Trouble::from)
            }
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => return Ok(Made::default()),
        };
        Left::when_refused(set, wish)
    }
}

impl SetIssueType {
    async fn current(&self, outside: &Outside) -> Result<Option<String>, Trouble> {
        Ok(match &self.ticket {
            TicketKey::Jira { .. } => Some(outside.jira.sorted(&self.ticket).await?.issue_type),
            TicketKey::GitHub { repository, number } => {
                outside.github.issue_type(repository, *number).await?
            }
            TicketKey::Folder { .. } | TicketKey::Discussion { .. } => None,
        })
    }
}
