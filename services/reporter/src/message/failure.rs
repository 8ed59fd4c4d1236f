//! Texts about what was not done: skipped requests, records that are set aside, and failed effects.

use domain::{InstanceName, SkipReason, TextMarkup, TicketKey};

use super::words::{format_code, is_web_link, name_person, sanitize_line};
use crate::refused_notice::NoticeRefusal;

const MARKS: TextMarkup = TextMarkup {
    // The words contain orders to Journeyman itself, such as `/approve`, for people to copy.
    code: domain::text::format_code,
    person: name_person,
    name: |name| format!("**{}**", sanitize_line(name)),
    link: |words, url| {
        if is_web_link(url) {
            format!("[{words}](<{url}>)")
        } else {
            words.to_owned()
        }
    },
};

pub(crate) fn render_skip(reason: &SkipReason, retry: &str) -> Vec<String> {
    let words = reason.words(&MARKS);
    let words = if reason.can_be_retried() {
        format!("{words} {retry}")
    } else {
        words
    };
    let choices = reason.choices(&MARKS);
    let choices = choices.into_iter().map(|choice| format!("- {choice}"));
    std::iter::once(words).chain(choices).collect()
}

pub(crate) fn render_quarantine(reason: &str) -> Vec<String> {
    vec![
        format!(
            "Journeyman has paused this ticket: {}. Nothing more happens here until an operator reviews it.",
            format_code(reason)
        ),
        "To try again from where it stands, comment `/retry`.".to_owned(),
    ]
}

pub(crate) fn render_unreadable(what: &str, is_poison: bool) -> Vec<String> {
    let what = format_code(what);
    let first = if is_poison {
        format!("Journeyman failed to handle a {what} about this ticket five times and has set it aside.")
    } else {
        format!("Journeyman could not read a {what} about this ticket and has set it aside.")
    };
    vec![
        first,
        "Everything else continues. If something that you asked for does not happen, ask for it again; an operator \
         finds what was set aside among the dead letters (`journeyman dead list`)."
            .to_owned(),
    ]
}

/// Describes a missing folder section.
pub(crate) fn no_such_folder(folder: &InstanceName) -> String {
    format!("the settings have no section [folder.{folder}]")
}

/// Describes a change that GitHub's API cannot take as signed commits.
pub(crate) fn too_large_to_sign(writes: usize, bytes: u64) -> String {
    format!(
        "the branch accepts signed commits alone, and GitHub's API takes at most {writes} writes and {} MiB of content for a \
         push; make the change smaller, with fewer commits and fewer binary files, or let an operator set an SSH key \
         (`reporter.signing.private_key`)",
        bytes >> 20
    )
}

/// Describes an object that GitHub stored with another content than the verified one.
pub(crate) fn object_differs(wanted: &str, stored: &str) -> String {
    format!("GitHub stored the object {stored} instead of {wanted}, so no commit was made from it")
}

/// Describes a branch that cannot be moved because its new head does not descend from the present one.
pub(crate) fn signed_history_rewritten(branch: &str) -> String {
    format!(
        "the branch {} accepts signed commits alone, and GitHub's API does not replace commits on it; continue from its present \
         head",
        format_code(branch)
    )
}

/// Describes a write to a ticket that is in no tracker.
pub(crate) fn no_tracker(ticket: &TicketKey) -> String {
    format!("{ticket} is in no tracker: nothing can be written on it")
}

/// Describes a target that does not belong to the report's ticket.
pub(crate) fn foreign_target(ticket: &TicketKey) -> String {
    format!("what was to be written to does not belong to {ticket}")
}

/// Describes an effect whose target was not checked.
pub(crate) fn unchecked_effect() -> String {
    "the reporter did not check what this writes to".to_owned()
}

/// Describes a ticket that neither rules nor records know.
pub(crate) fn unknown_ticket(ticket: &TicketKey) -> String {
    format!("no rules cover {ticket}, and nobody asked for work on it")
}

/// Describes rejected credentials of GitHub or Jira.
pub(crate) fn credentials_refused() -> String {
    "the reporter's credentials are refused; an operator must look into it".to_owned()
}

/// Describes an unreadable request.
pub(crate) fn unreadable_request() -> String {
    "the reporter could not read what it was asked for".to_owned()
}

/// Describes a report that ended the reporter at each attempt.
pub(crate) fn poison_request() -> String {
    "the reporter stopped unexpectedly at each of five attempts; an operator finds the request among the dead letters \
     (`journeyman dead list`)"
        .to_owned()
}

/// Describes an edit of a reply in a review, which is not possible.
pub(crate) fn replies_stay() -> String {
    "A reply in a review stays as it was written.".to_owned()
}

/// Describes a comment id of the ledger that GitHub does not use.
pub(crate) fn no_comment_of_github() -> String {
    "the ledger names no comment of GitHub".to_owned()
}

/// Describes a push without a run.
pub(crate) fn no_run() -> String {
    "a push needs a run".to_owned()
}

/// Describes a link without a pull request.
pub(crate) fn nothing_to_link() -> String {
    "there is no pull request to link".to_owned()
}

/// Describes an accepted inspection without a difference.
pub(crate) fn no_difference() -> String {
    "the inspector gave no difference".to_owned()
}

/// Describes a push that another push of the branch prevents.
pub(crate) fn push_in_progress(branch: &str) -> String {
    format!(
        "another push of the branch {} is in progress",
        format_code(branch)
    )
}

/// Describes work on a repository that did not finish.
pub(crate) fn work_was_cut() -> String {
    "the work on the repository was cut".to_owned()
}

/// Renders the refusal of an authenticated request, with the settings section of the account.
pub(crate) fn describe_denied_permission(section: &str, detail: &str) -> String {
    format!(
        "{detail}; an operator must give the account of [{section}] the missing permission (docs/permissions.md)"
    )
}

/// Renders a text for a ticket that is on its pull request, after the cause for that.
pub(crate) fn render_relocated_text(ticket: &TicketKey, cause: NoticeRefusal, text: &str) -> String {
    let ticket = format_code(&ticket.short());
    let cause = match cause {
        NoticeRefusal::Locked => format!("The conversation of {ticket} is locked, so this text is here."),
        NoticeRefusal::Moved => format!("{ticket} moved to another place, so this text is here."),
        NoticeRefusal::Deleted => format!("{ticket} was deleted, so this text is here."),
        NoticeRefusal::Archived => format!("The repository of {ticket} is archived, so this text is here."),
    };
    format!("{cause}\n\n{text}")
}
