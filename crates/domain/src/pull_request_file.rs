//! A changed file of a pull request as GitHub's API lists it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// A changed file of a pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequestFile {
    /// Its path after the change.
    pub path: String,
    /// Hunks of a unified diff without a header; empty: the file is binary, only renamed, or too large.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub patch: String,
}

impl PullRequestFile {
    /// Returns the line numbers that the change adds to the new file: the only lines that accept comments.
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
                // `\ No newline at end of file` is not a line of either file.
                (None, Some('-' | '\\')) => {}
                (None, _) => next += 1,
            }
        }
        added
    }
}

/// Returns the first line of the new file from a hunk header: the 12 of `-10,2 +12,3 @@ fn total`.
fn first_line(header: &str) -> Option<u32> {
    let new = header.split_once('+')?.1;
    new.split([',', ' ']).next()?.parse().ok()
}
