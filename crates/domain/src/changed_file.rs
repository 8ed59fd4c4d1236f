//! A file of a pull request, as GitHub tells of it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

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
