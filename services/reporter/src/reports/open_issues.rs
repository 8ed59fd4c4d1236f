//! Report that requests the issues of a plan or of a split.

use domain::report::OpenIssues;

use super::{EffectList, NoticeContext, NoticePlace, PlanContext, ReportKind};
use crate::{
    effects::{AddSubIssue, CreateIssue},
    message,
};

impl ReportKind for OpenIssues {
    /// Opens all issues before the first link, because a link needs both issues.
    fn effects(&self, _: &PlanContext<'_>) -> EffectList {
        let opened = self.issues.iter().map(|issue| {
            Box::new(CreateIssue {
                repository: self.repository.clone(),
                issue: issue.clone(),
                of: self.issues.len(),
                parent: self.parent,
            }) as _
        });
        let first_part = usize::from(self.parent.is_none());
        let linked = (first_part..self.issues.len()).map(|part| {
            Box::new(AddSubIssue {
                repository: self.repository.clone(),
                parent: self.parent,
                part,
            }) as _
        });
        opened.chain(linked).collect()
    }

    fn heard(&self) -> NoticePlace {
        NoticePlace::Apart
    }

    fn words(&self, told: &NoticeContext<'_>) -> Vec<String> {
        match self.parent {
            Some(_) => message::parts_opened(told.receipts.all()),
            None => message::issues_opened(told.receipts.all()),
        }
    }
}
