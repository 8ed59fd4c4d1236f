//! The review of a pull request that somebody asks for.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{CommitId, PullRequestRef, Weight};

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
    /// Whether a comment can stand on a line: the pull request adds it, and what was reviewed before does not have it.
    pub fn may_comment(&self, path: &str, line: u32) -> bool {
        let adds = |files: &[ChangedFile]| {
            let mut files = files.iter();
            files.any(|file| file.path == path && file.added_lines().contains(&line))
        };
        adds(&self.files) && self.since.as_ref().is_none_or(|since| adds(&since.files))
    }
}

/// A file of a pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Its path, after the change.
    pub path: String,
    /// Hunks of a unified diff, without a header; empty: the file is binary, only renamed, or too large.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub patch: String,
}

impl ChangedFile {
    /// The lines of the new file that the change adds: only there can a comment stand.
    pub fn added_lines(&self) -> BTreeSet<u32> {
        let mut added = BTreeSet::new();
        let mut next = 0;
        for line in self.patch.lines() {
            match (line.strip_prefix("@@ "), line.chars().next()) {
                (Some(header), _) => next = first_line(header).unwrap_or(next),
                (None, Some('+')) => {
                    added.insert(next);
                    next += 1;
                }
                (None, Some('-' | '\\')) => {}
                (None, _) => next += 1,
            }
        }
        added
    }
}

/// Where the new file begins: the 12 of `-10,2 +12,3 @@ fn total`.
fn first_line(header: &str) -> Option<u32> {
    let new = header.split_once('+')?.1;
    new.split([',', ' ']).next()?.parse().ok()
}

/// What a review says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewOfChange {
    /// The whole, by the model, Markdown; at most 2,000 characters.
    pub summary: String,
    /// Comments on lines that the change adds, the most important first; at most 5.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comments: Vec<LineRemark>,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineRemark {
    /// The file.
    pub path: String,
    /// The line in the new file, from 1.
    pub line: u32,
    /// The input or situation that shows it.
    pub trigger: String,
    /// What goes wrong then.
    pub why: String,
    /// Whether it stands in the way.
    pub weight: Weight,
    /// What the line should be, code that replaces it alone; absent: words say enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

impl ReviewOfChange {
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
        assert!(first.may_comment("x", 1) && first.may_comment("x", 2) && !first.may_comment("y", 1));
        let next = change(Some(since));
        assert!(!next.may_comment("x", 1) && next.may_comment("x", 2) && !next.may_comment("x", 5));
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
