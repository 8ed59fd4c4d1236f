//! Details of failed effects, for people.

use domain::{InstanceName, TicketKey};

/// Describes a missing folder section.
pub(crate) fn no_such_folder(folder: &InstanceName) -> String {
    format!("the settings have no section [folder.{folder}]")
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

/// Describes work on a repository that did not finish.
pub(crate) fn work_was_cut() -> String {
    "the work on the repository was cut".to_owned()
}
