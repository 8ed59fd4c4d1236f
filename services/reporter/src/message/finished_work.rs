//! Texts about the finished work of a ticket, for product people: a summary, the evidence in words, and a link to the
//! change.

use domain::{
    BranchPush, ChangeDescription, CommitId, PullRequestFile, PullRequestRef, RunId, describe_evidence,
    text::truncate_text,
};

use super::{
    description::{render_cut_short, render_summary},
    evidence::render_list,
    transition,
    words::{format_code, format_count, group_digits, is_web_link, one_line},
};
use crate::{
    receipt::{ChangedFiles, ShownChange, TransitionResult},
    sanitize,
};

// Number of files that are named.
const FILES: usize = 20;
// Length of the summary, in characters.
const SUMMARY_CHARS: usize = 4_000;

/// Returns the files to name. Their differences are behind the link to the pull request.
pub(crate) fn select_named_files(files: Vec<PullRequestFile>) -> Vec<PullRequestFile> {
    let names = files.into_iter().take(FILES);
    names
        .map(|file| PullRequestFile {
            patch: String::new(),
            ..file
        })
        .collect()
}

/// Renders the author's summary of the work, what is missing, and the evidence; empty without a description.
pub(crate) fn render_finished_work(description: Option<&ChangeDescription>) -> String {
    let Some(description) = description else {
        return String::new();
    };
    let handover = &description.handover;
    let cut_short = description.cut_short.iter().map(render_cut_short);
    let missing = handover.not_done.iter().map(|line| one_line(line)).collect();
    let said = cut_short
        .chain(render_summary(handover))
        .chain(render_list("What is missing", missing));
    let text = said.collect::<Vec<_>>().join("\n\n");
    let text = sanitize::sanitize_part(&truncate_text(text.trim(), SUMMARY_CHARS));
    match text.trim() {
        "" => String::new(),
        text => format!(
            "**What was done**\n\n{text}\n\n**Evidence.** {}",
            describe_evidence(description)
        ),
    }
}

/// Links the change, or names its files where the pull request has no page; `None` if the files are unknown.
pub(crate) fn render_changed_files(
    changed: Option<&ChangedFiles>,
    pull_request: Option<&PullRequestRef>,
) -> Option<String> {
    let changed = changed.filter(|changed| changed.total > 0)?;
    let count = format_count(changed.total as u64, "file");
    let url = pull_request.map(|pull_request| pull_request.url.as_str());
    if let Some(url) = url.filter(|url| is_web_link(url)) {
        return Some(format!("[Show the change in {count}](<{url}/files>)"));
    }
    let mut names: Vec<String> = changed.files.iter().map(|file| format_code(&file.path)).collect();
    if let more @ 1.. = changed.total.saturating_sub(changed.files.len()) {
        names.push(format!("and {} more", group_digits(more as u64)));
    }
    Some(format!("The change is in {count}: {}.", names.join(", ")))
}

/// Renders the delivery of a change without a pull request.
pub(crate) fn render_delivery(
    push: &BranchPush,
    head: &CommitId,
    moved: Option<&TransitionResult>,
) -> Vec<String> {
    let mut paragraphs = vec![format!(
        "The change is on the branch {} of `{}`, commit `{}`. The rules of the repository ask for no pull request \
         (`agent.finish: done`), so nothing more happens here.",
        format_code(&push.branch),
        push.repository,
        head.short()
    )];
    paragraphs.extend(moved.and_then(transition::render_reached_status));
    paragraphs
}

/// Renders the size of a change without a pull request, and the way to read it.
pub(crate) fn shown_change(shown: &ShownChange, run: Option<&RunId>) -> String {
    let count = format_count(shown.files as u64, "file");
    let run = run.map(|run| format!(", or with {}", format_code(&format!("journeyman diff {run}"))));
    format!(
        "The change is in {count}. Read it on the branch{}.",
        run.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use domain::StopReason;

    use super::*;

    fn pull_request(url: &str) -> PullRequestRef {
        PullRequestRef {
            repository: "acme/shop".parse().unwrap(),
            number: 7,
            branch: "fix/ENG-1".to_owned(),
            url: url.to_owned(),
        }
    }

    fn render_file_list(count: usize, url: &str) -> String {
        let files = (0..count).map(|number| PullRequestFile {
            path: format!("{number}.txt"),
            patch: "+1".to_owned(),
        });
        let all = ChangedFiles {
            total: count,
            files: select_named_files(files.collect()),
        };
        assert!(all.files.iter().all(|file| file.patch.is_empty()));
        render_changed_files(Some(&all), Some(&pull_request(url))).unwrap()
    }

    #[test]
    fn difference_is_behind_a_link() {
        let url = "https://github.test/acme/shop/pull/7";
        assert_eq!(
            render_file_list(1, url),
            "[Show the change in 1 file](<https://github.test/acme/shop/pull/7/files>)"
        );
        assert!(render_file_list(1_200, url).starts_with("[Show the change in 1,200 files]"));
    }

    #[test]
    fn files_without_page_are_named() {
        let text = render_file_list(22, "/home/ada/change.patch");
        assert!(
            text.starts_with("The change is in 22 files: `0.txt`, ") && text.ends_with("and 2 more."),
            "{text}"
        );
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

    #[test]
    fn incomplete_work_names_what_is_missing() {
        let mut description = ChangeDescription {
            cut_short: Some(StopReason::TurnLimit { turns: 60 }),
            ..ChangeDescription::default()
        };
        description.handover.not_done = vec!["Taxes".to_owned()];
        assert_eq!(
            render_finished_work(Some(&description)),
            "**What was done**\n\n**This change is not complete.** The work ended early: turn limit.\n\n\
             **What is missing**\n\n- Taxes\n\n**Evidence.** No check was run, so nothing was verified."
        );
    }
}
