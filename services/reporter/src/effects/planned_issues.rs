//! Opens the GitHub issues of a plan or of a split, and links them.

use async_trait::async_trait;
use domain::{OutboundRefusal, PlannedIssue, RepositoryName, SecretPlace as Place};

use super::{
    EffectContext, EffectTarget, OutboundClients, OutboundEffect,
    text_writes::{find_issue, open_issue},
};
use crate::{
    cleared_text::ClearedText,
    effect_error::EffectError,
    message,
    receipt::{EffectReceipts, MadeIssue},
};

/// Opens one issue of a plan or of a split, with a marker. The rules limit their number.
#[derive(Debug)]
pub(crate) struct CreateIssue {
    pub(crate) repository: RepositoryName,
    pub(crate) issue: PlannedIssue,
    /// Number of issues in the plan.
    pub(crate) of: usize,
    /// Number of the parent issue; absent: the issues are not sub-issues.
    pub(crate) parent: Option<u64>,
}

#[async_trait]
impl OutboundEffect for CreateIssue {
    type Output = MadeIssue;

    const ABSORBS_REPETITION: bool = false;

    fn name(&self) -> &'static str {
        "create_issue"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::IssuePart(&self.repository, self.parent)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let found = find_issue(&outside.github, &self.repository, asked.id).await?;
        Ok(found.map(|opened| convert_issue(opened, &self.issue)))
    }

    /// The first issue carries the refusal, so that a forbidden plan creates none of its issues.
    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        self.check(asked)?;
        self.check_parent(outside, asked).await?;
        let title = ClearedText::by_the_model(message::issue_title(&self.issue), Place::IssueTitle)?;
        let (ticket, run) = (&asked.report.ticket, asked.report.run.as_ref());
        let text =
            ClearedText::by_the_model(message::issue_text(&self.issue, ticket, run), Place::IssueText)?;
        let opened = open_issue(&outside.github, &self.repository, &title, &text, asked.id).await?;
        tracing::info!(repository = %self.repository, number = opened.number, "issue opened");
        Ok(convert_issue(opened, &self.issue))
    }
}

impl CreateIssue {
    fn check(&self, asked: &EffectContext<'_>) -> Result<(), EffectError> {
        let (rules, planned) = (asked.rules, self.of as u64);
        let refusal = match self.parent {
            Some(_) => {
                let allowed = rules.map_or(0, |rules| rules.triage.most_sub_issues) as u64;
                (planned > allowed).then_some(OutboundRefusal::TooManyParts { planned, allowed })
            }
            None => {
                let allowed = rules.map_or(0, |rules| rules.issues.most_planned) as u64;
                (planned > allowed).then_some(OutboundRefusal::TooManyIssues { planned, allowed })
            }
        };
        refusal.map_or(Ok(()), |refusal| Err(EffectError::Refused(refusal)))
    }

    /// Refuses a split of an issue that already has sub-issues, of any author.
    async fn check_parent(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<(), EffectError> {
        // A repetition of the report finds its own sub-issues, so only its first issue checks.
        let is_first = asked.receipts.last::<MadeIssue>().is_none();
        let Some(parent) = self.parent.filter(|_| is_first) else {
            return Ok(());
        };
        let parts = outside
            .github
            .issues()
            .sub_issues(&self.repository, parent)
            .await?;
        if parts.is_empty() {
            Ok(())
        } else {
            Err(EffectError::Refused(OutboundRefusal::PartedAlready))
        }
    }
}

fn convert_issue(opened: github::OpenedIssue, planned: &PlannedIssue) -> MadeIssue {
    MadeIssue {
        id: opened.id,
        number: opened.number,
        url: opened.url,
        title: planned.title.clone(),
    }
}

/// Adds an issue that the report opened as a sub-issue.
#[derive(Debug)]
pub(crate) struct AddSubIssue {
    pub(crate) repository: RepositoryName,
    /// Number of the parent issue; absent: the first issue that the report opened.
    pub(crate) parent: Option<u64>,
    /// Index of the sub-issue among the issues that the report opened.
    pub(crate) part: usize,
}

impl AddSubIssue {
    fn ends<'a>(&self, receipts: &'a EffectReceipts) -> Option<(u64, &'a MadeIssue)> {
        let mut issues = receipts.all::<MadeIssue>();
        let part = issues.clone().nth(self.part)?;
        let parent = self.parent.or(issues.next().map(|first| first.number))?;
        Some((parent, part))
    }
}

#[async_trait]
impl OutboundEffect for AddSubIssue {
    type Output = ();

    const ONLY_INFORMS: bool = true;

    fn name(&self) -> &'static str {
        "add_sub_issue"
    }

    fn target(&self) -> EffectTarget<'_> {
        EffectTarget::IssuePart(&self.repository, self.parent)
    }

    async fn find_result(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Option<Self::Output>, EffectError> {
        let Some((parent, part)) = self.ends(asked.receipts) else {
            return Ok(None);
        };
        let parts = outside
            .github
            .issues()
            .sub_issues(&self.repository, parent)
            .await?;
        Ok(parts.contains(&part.number).then_some(()))
    }

    async fn create(
        &self,
        outside: &OutboundClients,
        asked: &EffectContext<'_>,
    ) -> Result<Self::Output, EffectError> {
        if let Some((parent, part)) = self.ends(asked.receipts) {
            let github = &outside.github;
            github
                .issues()
                .add_sub_issue(&self.repository, parent, part.id)
                .await?;
            tracing::info!(repository = %self.repository, parent, number = part.number, "issue is a part of another");
        }
        Ok(())
    }
}
