//! Reviews of pull requests of other authors.

use std::{collections::BTreeSet, ops::RangeInclusive};

use serde::{Deserialize, Serialize};

use crate::{
    identity::commit::CommitId,
    trigger::pull_request::{PullRequestFile, PullRequestRef},
    work::review::ObjectionWeight,
};

/// A pull request to review, pinned at the time of the request.
// Pinned, so that the planner can check a comment against the added lines before it leaves, also for forks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewedChange {
    /// The pull request to review.
    pub pull_request: PullRequestRef,
    /// Its head at the time of the request.
    pub head: CommitId,
    /// True when the repository itself contains the head. The head of a fork cannot be checked out.
    pub is_here: bool,
    /// Name of its target branch.
    pub base_branch: String,
    /// Login of its author.
    pub author: String,
    /// Changed files; at most 300.
    pub files: Vec<PullRequestFile>,
    /// Changes after our previous review; absent: there was no review, or the branch no longer contains its
    /// commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<SinceReview>,
}

/// Changes of a pull request after our previous review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinceReview {
    /// The previously reviewed commit.
    pub commit: CommitId,
    /// Files that differ from it; at most 300.
    pub files: Vec<PullRequestFile>,
}

impl ReviewedChange {
    /// Returns true when GitHub accepts a comment on all of these lines and none of them was reviewed before.
    pub fn may_comment(&self, path: &str, lines: RangeInclusive<u32>) -> bool {
        let adds = |files: &[PullRequestFile]| {
            let added = files.iter().filter(|file| file.path == path);
            // A merge of the target branch changes lines after the review that the pull request does not add,
            // so both lists have to contain the line.
            let added: BTreeSet<u32> = added.flat_map(PullRequestFile::added_lines).collect();
            !lines.is_empty() && lines.clone().all(|line| added.contains(&line))
        };
        adds(&self.files) && self.since.as_ref().is_none_or(|since| adds(&since.files))
    }
}

/// Contents of a review.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewOfChange {
    /// The assessment as Markdown, written by the model; at most 2,000 characters.
    pub summary: String,
    /// Comments on lines that the change adds, the most important first; at most 5.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<LineRemark>,
    /// Verdicts about the criteria of the ticket that the pull request names; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<JudgedCriterion>,
}

/// Verdict of a review about one criterion of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedCriterion {
    /// The criterion as quoted from the ticket.
    pub quote: String,
    /// The verdict about the criterion.
    pub verdict: CriterionVerdict,
}

/// Verdict about a criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CriterionVerdict {
    /// The change meets the criterion.
    Met,
    /// The change does not meet the criterion.
    NotMet,
    /// The code alone cannot answer it: a person has to check.
    NeedsPerson,
}

/// A problem on a line or a range of lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRemark {
    /// Path of the file, relative to the root.
    pub path: String,
    /// The line in the new file, from 1; the last one of a range.
    pub line: u32,
    /// The first line of a range; absent: the problem is on a single line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u32>,
    /// The input or situation that causes the problem.
    pub trigger: String,
    /// Effect of the problem.
    pub why: String,
    /// Severity of the problem.
    pub weight: ObjectionWeight,
    /// Code that replaces exactly these lines; absent: the explanation is sufficient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl LineRemark {
    /// Returns the lines that the remark is about.
    pub fn lines(&self) -> RangeInclusive<u32> {
        self.start_line.unwrap_or(self.line)..=self.line
    }
}

impl ReviewOfChange {
    /// Returns true when the change misses a criterion of the ticket.
    pub fn leaves_open(&self) -> bool {
        let mut judged = self.criteria.iter();
        judged.any(|criterion| criterion.verdict == CriterionVerdict::NotMet)
    }

    /// Returns true when the change should not be merged in its current state.
    pub fn is_blocking(&self) -> bool {
        self.comments
            .iter()
            .any(|comment| comment.weight == ObjectionWeight::Blocking)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_review_comments_on_new_lines_only() {
        let file = |patch: &str| PullRequestFile {
            path: "x".to_owned(),
            patch: patch.to_owned(),
        };
        let commit: CommitId = "a".repeat(40).parse().unwrap();
        let change = |since| ReviewedChange {
            pull_request: PullRequestRef {
                repository: "acme/shop".parse().unwrap(),
                number: 1,
                url: String::new(),
                branch: "b".to_owned(),
            },
            head: commit.clone(),
            is_here: true,
            base_branch: "main".to_owned(),
            author: "sam".to_owned(),
            files: vec![file("@@ -0,0 +1,3 @@\n+a\n+b\n+c")],
            since,
        };
        let since = SinceReview {
            commit: commit.clone(),
            // Line 5 comes from a merge of the target branch: the pull request does not add it.
            files: vec![file("@@ -1,2 +1,2 @@\n a\n-x\n+b\n@@ -4 +4,2 @@\n d\n+e")],
        };
        let first = change(None);
        let one = |change: &ReviewedChange, path: &str, line: u32| change.may_comment(path, line..=line);
        assert!(one(&first, "x", 1) && one(&first, "x", 2) && !one(&first, "y", 1));
        assert!(first.may_comment("x", 1..=3) && !first.may_comment("x", 2..=4));
        assert!(
            !first.may_comment("x", RangeInclusive::new(3, 2)),
            "no lines at all"
        );
        let next = change(Some(since));
        assert!(!one(&next, "x", 1) && one(&next, "x", 2) && !one(&next, "x", 5));
        assert!(!next.may_comment("x", 1..=2));
    }

    #[test]
    fn added_lines_are_read_from_patch() {
        let patch = "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+C\n d\n@@ -20 +21,2 @@ fn x()\n-x\n+y\n+z\n\\ No newline at end of file";
        let file = PullRequestFile {
            path: "x".to_owned(),
            patch: patch.to_owned(),
        };
        assert_eq!(file.added_lines(), BTreeSet::from([2, 3, 21, 22]));
        assert!(PullRequestFile::default().added_lines().is_empty());
    }
}
