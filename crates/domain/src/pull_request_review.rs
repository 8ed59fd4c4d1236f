//! The review of a pull request that somebody asks for.

use std::{collections::BTreeSet, ops::RangeInclusive};

use serde::{Deserialize, Serialize};

use crate::{ChangedFile, CommitId, PullRequestRef, Weight};

/// A pull request of somebody that is to be reviewed, as it was when that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewedChange {
    /// The pull request.
    pub pull_request: PullRequestRef,
    /// Its head.
    pub head: CommitId,
    /// Whether the head is in the repository itself: a fork's cannot be checked out.
    pub is_here: bool,
    /// The branch that it goes to.
    pub base_branch: String,
    /// Login of its author.
    pub author: String,
    /// What it changes; at most 300 files.
    pub files: Vec<ChangedFile>,
    /// What came after our last review of it; absent: there was none, or its commit is no part of the branch any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<SinceReview>,
}

/// What came after our last review of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SinceReview {
    /// The commit that was reviewed last.
    pub commit: CommitId,
    /// What differs from it; at most 300 files.
    pub files: Vec<ChangedFile>,
}

impl ReviewedChange {
    /// Whether a comment can stand on all of these lines: the pull request adds them, and what was reviewed before does not
    /// have them.
    pub fn may_comment(&self, path: &str, lines: RangeInclusive<u32>) -> bool {
        let adds = |files: &[ChangedFile]| {
            let added = files.iter().filter(|file| file.path == path);
            let added: BTreeSet<u32> = added.flat_map(ChangedFile::added_lines).collect();
            !lines.is_empty() && lines.clone().all(|line| added.contains(&line))
        };
        adds(&self.files) && self.since.as_ref().is_none_or(|since| adds(&since.files))
    }
}

/// What a review says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewOfChange {
    /// The whole, by the model, Markdown; at most 2,000 characters.
    pub summary: String,
    /// Comments on lines that the change adds, the most important first; at most 5.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<LineRemark>,
    /// What becomes of the criteria of the ticket that the pull request names; at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<JudgedCriterion>,
}

/// What a review says of one criterion of a ticket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgedCriterion {
    /// The ticket's own words.
    pub quote: String,
    /// What becomes of it.
    pub verdict: CriterionVerdict,
}

/// Whether a change meets a criterion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CriterionVerdict {
    /// It does.
    Met,
    /// It does not.
    NotMet,
    /// The code does not tell: a person has to look.
    NeedsPerson,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRemark {
    /// The file.
    pub path: String,
    /// The line in the new file, from 1; of several lines the last.
    pub line: u32,
    /// The first of several lines; absent: it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_line: Option<u32>,
    /// The input or situation that shows it.
    pub trigger: String,
    /// What goes wrong then.
    pub why: String,
    /// Whether it stands in the way.
    pub weight: Weight,
    /// What the lines should be, code that replaces exactly them; absent: words say enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl LineRemark {
    /// The lines that it is about.
    pub fn lines(&self) -> RangeInclusive<u32> {
        self.start_line.unwrap_or(self.line)..=self.line
    }
}

impl ReviewOfChange {
    /// Whether something that the ticket asks for is not done.
    pub fn leaves_open(&self) -> bool {
        let mut judged = self.criteria.iter();
        judged.any(|criterion| criterion.verdict == CriterionVerdict::NotMet)
    }

    /// Whether the change should not be merged as it is.
    pub fn is_blocking(&self) -> bool {
        self.comments
            .iter()
            .any(|comment| comment.weight == Weight::Blocking)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_review_only_lines_that_are_new_since_then_take_comments() {
        let file = |patch: &str| ChangedFile {
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
    fn comments_can_stand_on_lines_that_the_change_adds() {
        let patch = "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+C\n d\n@@ -20 +21,2 @@ fn x()\n-x\n+y\n+z\n\\ No newline at end of file";
        let file = ChangedFile {
            path: "x".to_owned(),
            patch: patch.to_owned(),
        };
        assert_eq!(file.added_lines(), BTreeSet::from([2, 3, 21, 22]));
        assert!(ChangedFile::default().added_lines().is_empty());
    }
}
