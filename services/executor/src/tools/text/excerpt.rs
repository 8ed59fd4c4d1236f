//! Renders lines for the model.

use std::{ops::Range, time::Duration};

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// Limits of an excerpt: lines, and bytes of a line.
const MAX_LINES: usize = 60;
const MAX_LINE: usize = 300;

/// Lines of context around a change, and the limit of all changes in bytes.
const CONTEXT: usize = 2;
const MAX_CHANGES: usize = 8 * 1024;
// Time limit of the diff. After it the diff is coarser, so more lines than necessary are shown.
const LOOK_TIME: Duration = Duration::from_secs(1);

/// Renders the lines of `new` that differ from `old`, with line numbers and context.
pub(in crate::tools) fn render_changes(old: &[String], new: &[String]) -> String {
    let mut shown = String::new();
    let mut ranges = changed_ranges(old, new).into_iter().peekable();
    while let Some(range) = ranges.next() {
        let part = render_numbered_lines(new, range);
        if shown.len() + part.len() > MAX_CHANGES {
            shown.push_str("[more changes; see diff]\n");
            break;
        }
        shown.push_str(&part);
        if ranges.peek().is_some() {
            shown.push_str("   ...\n");
        }
    }
    if new.is_empty() {
        shown.push_str("The file is empty now.\n");
    }
    shown
}

fn changed_ranges(old: &[String], new: &[String]) -> Vec<Range<usize>> {
    #[expect(clippy::disallowed_types, reason = "the crate takes no other clock")]
    let deadline = std::time::Instant::now() + LOOK_TIME;
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for step in capture_diff_slices_deadline(Algorithm::Myers, old, new, Some(deadline)) {
        if matches!(step, DiffOp::Equal { .. }) {
            continue;
        }
        let at = step.new_range();
        let range = at.start.saturating_sub(CONTEXT)..(at.end + CONTEXT).min(new.len());
        match ranges.last_mut() {
            Some(last) if last.end >= range.start => last.end = range.end,
            Some(_) | None => ranges.push(range),
        }
    }
    ranges
}

/// Renders lines with their numbers, from 1. Of a long range, only the beginning and the end.
pub(in crate::tools) fn render_numbered_lines(lines: &[String], range: Range<usize>) -> String {
    let range = range.start..range.end.min(lines.len());
    let half = MAX_LINES / 2;
    let mut shown = String::new();
    for at in range.clone() {
        if range.len() > MAX_LINES && at == range.start + half {
            shown.push_str(&format!("      [{} lines]\n", range.len() - MAX_LINES));
        }
        let is_inner = at >= range.start + half && at + half < range.end;
        if range.len() > MAX_LINES && is_inner {
            continue;
        }
        let line = &lines[at];
        let head = domain::text::truncate_bytes(line, MAX_LINE);
        let more = if head.len() < line.len() { " […]" } else { "" };
        shown.push_str(&format!("{:>6} {head}{more}\n", at + 1));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_changes_have_context() {
        let old: Vec<String> = (1..=20).map(|number| format!("line {number}")).collect();
        let mut new = old.clone();
        new[1] = "changed".to_owned();
        new.remove(15);
        let shown = render_changes(&old, &new);
        assert_eq!(
            shown,
            "     1 line 1\n     2 changed\n     3 line 3\n     4 line 4\n   ...\n    14 line 14\n    15 line 15\n    \
             16 line 17\n    17 line 18\n"
        );
        assert!(render_changes(&old, &[]).contains("empty now"));
        let many: Vec<String> = (0..5000).map(|number| format!("other {number}")).collect();
        assert!(render_changes(&old, &many).len() < MAX_CHANGES + 200);
    }

    #[test]
    fn long_excerpt_is_truncated_with_note() {
        let lines: Vec<String> = (1..=100).map(|number| format!("line {number}")).collect();
        assert_eq!(
            render_numbered_lines(&lines, 1..3),
            "     2 line 2\n     3 line 3\n"
        );
        let shown = render_numbered_lines(&lines, 0..100);
        assert_eq!(shown.lines().count(), MAX_LINES + 1);
        assert!(
            shown.contains("    30 line 30\n      [40 lines]\n    71 line 71\n"),
            "{shown}"
        );
        assert!(render_numbered_lines(&["x".repeat(1000)], 0..1).ends_with("x […]\n"));
    }
}
