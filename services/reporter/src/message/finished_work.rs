//! Texts about the finished work of a ticket: a summary, and the changed files.

use domain::{BranchPush, ChangeDescription, PullRequestFile, PullRequestRef, text::truncate_text};

use super::{
    transition,
    words::{fence_text, format_code, is_web_link},
};
use crate::{
    receipt::{ChangedFiles, ShownChange, TransitionResult},
    sanitize,
};

// Length of all differences in a comment, in characters. Jira's limit is 32,767, and other text needs room.
const SHOWN_CHARS: usize = 8_000;
// Number of files that are named.
const FILES: usize = 20;
// Length of the summary, in characters.
const SUMMARY_CHARS: usize = 4_000;

/// Returns the first files with the differences that fit. A file whose difference does not fit has none, because a
/// part of it would mislead.
pub(crate) fn what_fits(files: Vec<PullRequestFile>) -> Vec<PullRequestFile> {
    let mut left = SHOWN_CHARS;
    let files = files.into_iter().take(FILES);
    files
        .map(|file| match left.checked_sub(file.patch.chars().count()) {
            Some(rest) => {
                left = rest;
                file
            }
            None => PullRequestFile {
                patch: String::new(),
                ..file
            },
        })
        .collect()
}

/// Renders the author's summary of the work; empty without a summary.
pub(crate) fn render_finished_work(description: Option<&ChangeDescription>) -> String {
    let Some(description) = description else {
        return String::new();
    };
    let handover = &description.handover;
    let cause = handover.root_cause.as_deref().map(str::trim).unwrap_or_default();
    let cause = if cause.is_empty() {
        String::new()
    } else {
        format!("\n\n**Root cause.** {cause}")
    };
    let text = format!("{}{cause}", handover.summary.trim());
    let text = sanitize::sanitize_markdown(&truncate_text(text.trim(), SUMMARY_CHARS));
    match text.trim() {
        "" => String::new(),
        text => format!("**What was done**\n\n{text}"),
    }
}

/// Lists the changed files, with their differences if these are short; `None` if the files are unknown.
pub(crate) fn render_changed_files(
    changed: Option<&ChangedFiles>,
    pull_request: Option<&PullRequestRef>,
) -> Option<String> {
    let changed = changed.filter(|changed| changed.total > 0)?;
    let mut parts = vec!["**Changed files**".to_owned()];
    parts.extend(changed.files.iter().map(render_file));
    if let more @ 1.. = changed.total.saturating_sub(changed.files.len()) {
        parts.push(format!("and {more} more"));
    }
    let is_whole =
        changed.total == changed.files.len() && changed.files.iter().all(|file| !file.patch.is_empty());
    let url = pull_request.map(|pull_request| pull_request.url.as_str());
    if let Some(url) = url.filter(|url| !is_whole && is_web_link(url)) {
        parts.push(format!("[The whole change](<{url}/files>)"));
    }
    Some(parts.join("\n\n"))
}

/// Renders the delivery of a change without a pull request.
pub(crate) fn render_delivery(push: &BranchPush, moved: Option<&TransitionResult>) -> Vec<String> {
    let mut paragraphs = vec![format!(
        "The change is on the branch {} of `{}`, commit `{}`. The rules of the repository ask for no pull request \
         (`agent.finish: done`), so nothing more happens here.",
        format_code(&push.branch),
        push.repository,
        push.head.short()
    )];
    paragraphs.extend(moved.and_then(transition::render_reached_status));
    paragraphs
}

/// Lists the files like [`render_changed_files`], for a change that was shown before its push.
pub(crate) fn shown_change(shown: &ShownChange) -> String {
    let mut parts = vec!["**Changed files**".to_owned(), fence_text("diff", &shown.excerpt)];
    if let more @ 1.. = shown.hidden_lines {
        let named = shown
            .hidden_files
            .iter()
            .take(FILES)
            .map(|file| format_code(file));
        let named = named.collect::<Vec<_>>().join(", ");
        parts.push(format!("{more} more lines are on the branch, of {named}."));
    }
    parts.join("\n\n")
}

fn render_file(file: &PullRequestFile) -> String {
    let name = format_code(&file.path);
    match file.patch.is_empty() {
        true => format!("{name} (not shown here)"),
        false => format!("{name}\n\n{}", fence_text("diff", &file.patch)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed_file(path: &str, patch: &str) -> PullRequestFile {
        PullRequestFile {
            path: path.to_owned(),
            patch: patch.to_owned(),
        }
    }

    fn pull_request() -> PullRequestRef {
        PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            branch: "fix/ENG-1".to_owned(),
            url: "https://github.test/acme/shop/pull/7".to_owned(),
        }
    }

    fn render_file_list(files: Vec<PullRequestFile>) -> String {
        let all = ChangedFiles {
            total: files.len(),
            files: what_fits(files),
        };
        render_changed_files(Some(&all), Some(&pull_request())).unwrap()
    }

    #[test]
    fn small_change_is_shown_without_link() {
        let text = render_file_list(vec![changed_file("src/cart.rs", "@@ -1 +1 @@\n-1\n+2")]);
        assert_eq!(
            text,
            "**Changed files**\n\n`src/cart.rs`\n\n```diff\n@@ -1 +1 @@\n-1\n+2\n```"
        );
    }

    #[test]
    fn oversized_change_is_named_and_linked() {
        let large = "+x\n".repeat(SHOWN_CHARS);
        let text = render_file_list(vec![
            changed_file("big.txt", &large),
            changed_file("small.txt", "@@ -0,0 +1 @@\n+1"),
        ]);
        assert!(
            text.contains("`big.txt` (not shown here)\n\n`small.txt`\n\n```diff"),
            "{text}"
        );
        assert!(
            text.ends_with("[The whole change](<https://github.test/acme/shop/pull/7/files>)"),
            "{text}"
        );
        let many = (0..30).map(|number| changed_file(&format!("{number}.txt"), "+1"));
        let text = render_file_list(many.collect());
        assert!(text.contains("and 10 more\n\n[The whole change]"), "{text}");
        assert!(text.len() < SHOWN_CHARS + 2_000);
    }

    #[test]
    fn a_difference_cannot_end_its_block() {
        let text = render_file_list(vec![changed_file("a.md", "+```\n+@everyone\n+````")]);
        assert!(text.contains("`````diff\n"), "{text}");
        assert!(text.ends_with("`````"), "{text}");
    }

    #[test]
    fn a_summary_notifies_and_closes_nothing() {
        let mut description = ChangeDescription::default();
        description.handover.summary = "Fixes #3 with @mia ![x](https://x.test/1.png)".to_owned();
        let text = render_finished_work(Some(&description));
        assert!(text.starts_with("**What was done**"), "{text}");
        assert!(
            !text.contains("Fixes #3") && !text.contains(" @mia") && !text.contains("!["),
            "{text}"
        );
        assert_eq!(render_finished_work(Some(&ChangeDescription::default())), "");
    }
}
