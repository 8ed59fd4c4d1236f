//! Open an issue of GitHub.

use async_trait::async_trait;
use domain::{PlannedIssue, RepositoryName};

use super::{
    Asked, Effect, Outside,
    letters::{find_issue, open_issue},
};
use crate::{
    made::{Made, MadeIssue},
    message,
    outgoing::Outgoing,
    policy::Place,
    trouble::Trouble,
};

/// Open one of the issues of a plan, with a marker. The rules say how many a plan may have.
#[derive(Debug)]
pub(crate) struct CreateIssue {
    pub(crate) repository: RepositoryName,
    pub(crate) issue: PlannedIssue,
    /// How many the plan has.
    pub(crate) of: usize,
}

#[async_trait]
impl Effect for CreateIssue {
    fn name(&self) -> &'static str {
        "create_issue"
    }

    fn absorbs_repetition(&self) -> bool {
        false
    }

    async fn look(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Option<Made>, Trouble> {
        let found = find_issue(&outside.github, &self.repository, asked.id).await?;
        Ok(found.map(|opened| made(opened, &self.issue)))
    }

    /// A plan with too many is refused at its first issue, so that none of it is there.
    async fn create(&self, outside: &Outside, asked: &Asked<'_>) -> Result<Made, Trouble> {
        let allowed = asked.rules.map_or(0, |rules| rules.issues.most_planned);
        if self.of > allowed {
            return Err(Trouble::Refused(message::too_many_issues(self.of, allowed)));
        }
        let title = Outgoing::by_the_model(message::issue_title(&self.issue), Place::IssueTitle)?;
        let (ticket, run) = (&asked.report.ticket, asked.report.run.as_ref());
        let text = Outgoing::by_the_model(message::issue_text(&self.issue, ticket, run), Place::IssueText)?;
        let opened = open_issue(&outside.github, &self.repository, &title, &text, asked.id).await?;
        tracing::info!(repository = %self.repository, number = opened.number, "issue opened");
        Ok(made(opened, &self.issue))
    }
}

fn made(opened: github::OpenedIssue, planned: &PlannedIssue) -> Made {
    Made {
        issues: vec![MadeIssue {
            id: opened.id,
            number: opened.number,
            url: opened.url,
            title: planned.title.clone(),
        }],
        ..Made::default()
    }
}
