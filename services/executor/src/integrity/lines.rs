//! Lines that a change adds and removes, with their numbers.

use std::time::Duration;

use similar::{Algorithm, ChangeTag, TextDiff};

use crate::workspace::ChangedFile;

// After this time the diff falls back to a coarser result, which is sufficient here.
const LIMIT: Duration = Duration::from_millis(500);

/// A line with its number in its version of the file, from 1.
pub(super) type NumberedLine<'t> = (usize, &'t str);

#[derive(Debug, Default)]
pub(super) struct ChangedLines<'t> {
    pub(super) added: Vec<NumberedLine<'t>>,
    pub(super) removed: Vec<NumberedLine<'t>>,
}

pub(super) fn compare_lines(file: &ChangedFile) -> ChangedLines<'_> {
    let (before, after) = (
        file.before.as_deref().unwrap_or_default(),
        file.after.as_deref().unwrap_or_default(),
    );
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Patience)
        .timeout(LIMIT)
        .diff_lines(before, after);
    let mut found = ChangedLines::default();
    for change in diff.iter_all_changes() {
        let line = change.value().trim_end_matches(['\n', '\r']);
        match (change.tag(), change.old_index(), change.new_index()) {
            (ChangeTag::Insert, _, Some(at)) => found.added.push((at + 1, line)),
            (ChangeTag::Delete, Some(at), _) => found.removed.push((at + 1, line)),
            _ => {}
        }
    }
    found
}
