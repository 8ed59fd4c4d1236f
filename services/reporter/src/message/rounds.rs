//! Texts about an open pull request: repairs, reviews, and pushes by people.

use domain::report::{ChecksRepaired, ConflictResolved, RepairStrategy, ReviewAddressed};
use domain::{
    AwaitedReview, CommitId, DroppedHunk, LeftThreads, PullRequestRef, ThreadDisposition, ThreadReply,
    text::truncate_text,
};

use super::words::{
    format_code, format_times, link_pull_request_name, mention_logins, name_person, quote_markdown,
    sanitize_line,
};
use crate::sanitize;

pub(crate) fn render_repair(report: &ChecksRepaired) -> Vec<String> {
    let what = match report.strategy {
        RepairStrategy::AutoFix => "The repository's own repairs mended the failing checks",
        RepairStrategy::Model => "The failing checks are repaired",
    };
    let commit = report.commit.as_ref();
    let commit = commit.map_or_else(String::new, |commit| {
        format!(" with commit {}", format_code(commit.short()))
    });
    let mut paragraphs = vec![format!(
        "{what} on {}{commit}. It becomes ready for review when its checks pass.",
        link_pull_request_name(&report.pull_request)
    )];
    if report.strategy == RepairStrategy::Model {
        paragraphs.push(quote_markdown(&report.summary));
    }
    paragraphs
}

/// Renders a resolved conflict, with the changes that it dropped for a reason.
pub(crate) fn render_resolution(report: &ConflictResolved) -> Vec<String> {
    let commit = report.commit.as_ref();
    let commit = commit.map_or_else(String::new, |commit| {
        format!(" with commit {}", format_code(commit.short()))
    });
    let mut paragraphs = vec![
        format!(
            "The conflict of {} with {} is resolved{commit}. The merge has {} of the base branch.",
            link_pull_request_name(&report.pull_request),
            format_code(&report.base_branch),
            format_code(report.base.short())
        ),
        quote_markdown(&report.summary),
    ];
    if !report.dropped.is_empty() {
        let row =
            |hunk: &DroppedHunk| format!("- {}: {}", format_code(&hunk.path), sanitize_line(&hunk.reason));
        let rows: Vec<String> = report.dropped.iter().map(row).collect();
        paragraphs.push(format!(
            "Please check these changes of either side, which the merge changed or dropped:\n\n{}",
            rows.join("\n")
        ));
    }
    paragraphs
}

pub(crate) fn render_addressed_review(report: &ReviewAddressed) -> Vec<String> {
    let (who, what) = (
        name_person(&report.reviewer),
        link_pull_request_name(&report.pull_request),
    );
    let left = report.left.as_ref().map_or_else(String::new, left_to_people);
    if report.is_left() {
        return vec![
            format!("The review of {what} by {who} continues with what was discussed before."),
            left,
        ];
    }
    let asked = match report.undecided() {
        0 => String::new(),
        1 => format!(
            " One comment waits for a decision{}.",
            name_deciders(&report.deciders)
        ),
        open => format!(
            " {open} comments wait for a decision{}.",
            name_deciders(&report.deciders)
        ),
    };
    let text = match &report.commit {
        Some(commit) => format!(
            "The review of {what} by {who} is addressed with commit {}. It is a draft until its checks pass.{asked}",
            format_code(commit.short())
        ),
        None => format!("The review of {what} by {who} is answered; nothing was changed.{asked}"),
    };
    vec![text, quote_markdown(&report.summary), left]
}

fn name_deciders(deciders: &[String]) -> String {
    let names: Vec<String> = deciders.iter().map(|name| name_person(name)).collect();
    if names.is_empty() {
        String::new()
    } else {
        format!(" by {}", names.join(", "))
    }
}

/// Renders the open decisions of a review for the people of the ticket, whose logins at GitHub are unknown.
pub(crate) fn decision_call(report: &ReviewAddressed) -> String {
    let (comments, they) = match report.undecided() {
        1 => ("One comment of the review".to_owned(), "It waits"),
        open => (format!("{open} comments of the review"), "They wait"),
    };
    format!(
        "{comments} of {} by {} cannot be settled by what this ticket says. {they} for a decision there: please reply in the \
         thread, or say here what the ticket means.",
        link_pull_request_name(&report.pull_request),
        name_person(&report.reviewer)
    )
}

fn left_to_people(left: &LeftThreads) -> String {
    let threads = match left.threads.len() {
        1 => "One thread of it has".to_owned(),
        count => format!("{count} threads of it have"),
    };
    let names: Vec<String> = left.asked.iter().map(|name| name_person(name)).collect();
    format!(
        "{threads} been worked on {} and came back, so Journeyman leaves that to people. Please decide there: {}.",
        format_times(left.rounds.into()),
        names.join(", ")
    )
}

/// Renders the reply in a thread that is left to people. It mentions them by their logins.
pub(crate) fn thread_left(left: &LeftThreads) -> String {
    format!(
        "Journeyman has worked on this thread {} and leaves it to people now. Please decide here what is right, {}, and push it \
         to the branch or resolve the thread.",
        format_times(left.rounds.into()),
        mention_logins(&left.asked)
    )
}

/// Renders the reminder of a review. It mentions the reviewers by their logins.
pub(crate) fn review_awaited(awaited: &AwaitedReview) -> String {
    let since = awaited.since.to_string();
    let day = since.split('T').next().unwrap_or_default();
    format!(
        "This pull request has waited for a review since {day}: {}. Please review it, or ask someone else to.",
        mention_logins(&awaited.reviewers)
    )
}

pub(crate) fn pushed_by_others(by: &str, pull_request: &PullRequestRef, head: &CommitId) -> String {
    format!(
        "{} pushed {} to {}. It is a draft until the checks of that commit pass.",
        name_person(by),
        format_code(head.short()),
        link_pull_request_name(pull_request)
    )
}

pub(crate) fn render_reopened(by: &str, pull_request: &PullRequestRef) -> String {
    format!(
        "{} opened {} again. Journeyman follows its checks and reviews again.",
        name_person(by),
        link_pull_request_name(pull_request)
    )
}

/// Renders the reply for the reviewer. The first sentence names the commit. An open decision mentions `deciders`.
pub(crate) fn thread_reply(reply: &ThreadReply, commit: Option<&CommitId>, deciders: &[String]) -> String {
    let words = sanitize::sanitize_markdown(&truncate_text(&reply.reply, 2_000));
    let lead = match (reply.disposition, commit) {
        (ThreadDisposition::Changed, Some(commit)) => format!("Changed in {}.", format_code(commit.short())),
        (ThreadDisposition::Changed, None) => "The branch has it already.".to_owned(),
        (ThreadDisposition::Declined, _) => "Not changed.".to_owned(),
        (ThreadDisposition::Asked, _) => {
            let asked = format!("This needs a decision, {}. {words}", mention_logins(deciders));
            return format!(
                "{}\n\nReply here with what is right: Journeyman follows the reply of anyone who may write to the repository.",
                sanitize::close_code_block(asked)
            );
        }
        (ThreadDisposition::Answered, _) => return sanitize::close_code_block(words),
    };
    // The marker of the effect follows the text.
    sanitize::close_code_block(format!("{lead} {words}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_code_block_ends_with_reply() {
        let commit: CommitId = "a".repeat(40).parse().unwrap();
        for disposition in [
            ThreadDisposition::Changed,
            ThreadDisposition::Declined,
            ThreadDisposition::Asked,
            ThreadDisposition::Answered,
        ] {
            let reply = ThreadReply {
                id: 4,
                disposition,
                reply: "It reads:\n\n```\nx".to_owned(),
            };
            let text = thread_reply(&reply, Some(&commit), &[]);
            assert_eq!(sanitize::close_code_block(text.clone()), text);
        }
    }
}
